"""``splits_first``: moves ``split`` before elementwise operations [semantics.md F7].

``split(a + b)`` becomes ``split(a)``, ``split(b)`` and a sum of each part, so that the sum does not
end a fused group, and the whole sum never exists.
"""

from attrs import define, field

from letir.ast.attrs import Attrs
from letir.ast.builder import LetBuilder
from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Bind, Lambda, Local
from letir.ops.shape.concatenate_stack_split import split
from letir.visitors.usedef import use_counts

_LARGE = 1 << 14  # elements of a part: for smaller parts one operation on the whole is faster
_MAX_PARTS = 8  # parts


def splits_first(fn: Lambda) -> Lambda:
    """``fn``, without dead binds, with its splits moved before exact elementwise operations.

    Only for values without other uses, and large parts read by elementwise operations: results keep
    their bits and memory order. ``fn`` itself if it has no such split.
    """
    if not any(bind.op is split for bind in fn.binds):
        return fn
    specs = _Specs(fn).run()
    return _Splitter(fn, specs).run() if specs else fn


@define(eq=False)
class _Specs:
    """The values to be computed in parts: {local: (sections, axis counted from the end)}."""

    fn: Lambda
    specs: dict = field(factory=dict)
    # locals that are read by a bind that is not elementwise
    whole: set = field(factory=set)

    def run(self) -> dict:
        """Visit the binds in reverse, uses before definitions."""
        makers = {binder: bind for bind in self.fn.binds for binder in bind.binders}
        counts = use_counts(self.fn)
        self.whole.update(self.fn.ret.locals())
        for bind in reversed(self.fn.binds):
            if bind.op is split and self.is_movable(bind):
                axis = bind.attrs["axis"]
                aval = bind.args[0].type
                spec = bind.attrs["sections"], axis if axis < 0 else axis - aval.ndim
                operands = bind.args
            else:
                spec = self.specs.get(bind.binders[0]) if bind.binders else None
                operands = () if spec is None else bind.args
            for arg in operands:
                if type(arg) is not Local or counts.get(arg) != 1 or arg not in makers:
                    continue
                if self.is_split(arg, makers[arg], spec):
                    self.specs[arg] = spec
            if not bind.op.elementwise:
                self.whole.update(bind.locals())
        return self.specs

    def is_movable(self, bind: Bind) -> bool:
        """Whether a split makes few large parts that are read by elementwise operations."""
        avals = [binder.type for binder in bind.binders]
        return (
            len(avals) <= _MAX_PARTS
            and all(map(has_static_shape, avals))
            and all(aval.size >= _LARGE for aval in avals)
            and self.whole.isdisjoint(bind.binders)
        )

    def is_split(self, arg: Local, bind: Bind, spec: tuple) -> bool:
        """Whether a value can be computed in the parts that its only reader needs."""
        avals = [a.type for a in bind.args if type(a) is Local]
        if not bind.op.exact or None in (*avals, arg.type):
            return False
        return _split_extent(arg, spec) > 1 and all(aval.dtype.kind in "biuf" for aval in avals)


def _split_extent(arg, spec: tuple) -> int:
    """The length of an operand along the split axis; 1 if it lacks the axis."""
    return arg.type.shape[spec[1]] if arg.type.ndim >= -spec[1] else 1


@define(eq=False)
class _Splitter:
    """Emits a program whose values in ``specs`` are computed in parts."""

    fn: Lambda
    specs: dict
    builder: LetBuilder = field(factory=LetBuilder)
    parts: dict = field(factory=dict)  # (local, sections, axis) -> its parts
    names: dict = field(factory=dict)

    def run(self) -> Lambda:
        """The program."""
        names = self.names
        for bind in self.fn.binds:
            self.builder.source = bind.source
            spec = self.specs.get(bind.binders[0]) if bind.binders else None
            if spec is not None:
                self.emit_in_parts(bind, spec)
            elif bind.op is split and bind.args[0] in self.specs:
                parts = self.parts[bind.args[0], *self.specs[bind.args[0]]]
                for binder, part in zip(bind.binders, parts, strict=True):
                    names[binder] = part
                    part.name = part.name or binder.name
            elif names and not names.keys().isdisjoint(bind.args):
                self.builder.binds.append(bind.substitute(names))
            else:
                self.builder.binds.append(bind)
        return self.fn.with_binds(self.builder.binds)

    def emit_in_parts(self, bind: Bind, spec: tuple) -> None:
        """Emit an elementwise bind once for each part."""
        operands = [self.parts_of(arg, spec) for arg in bind.args]
        new_parts = [
            self.builder.emit(bind.op, args, bind.attrs)[0] for args in zip(*operands, strict=True)
        ]
        self.parts[bind.binders[0], *spec] = new_parts

    def parts_of(self, arg, spec: tuple) -> list:
        """The operands for each part: parts of the operand, or itself if it broadcasts."""
        arg = self.names.get(arg, arg)
        sections, axis = spec
        if type(arg) is not Local or _split_extent(arg, spec) == 1:
            return [arg] * (sections if type(sections) is int else len(sections) + 1)
        if (arg, *spec) not in self.parts:
            attrs = Attrs(sections=sections, axis=axis + arg.type.ndim)
            self.parts[arg, *spec] = list(self.builder.emit(split, (arg,), attrs))
        return self.parts[arg, *spec]

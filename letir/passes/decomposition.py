"""``decompose``: replaces composites by the operations that they consist of."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from attrs import define, field

from letir.ast import entry_point
from letir.ast.bodies import bodies_of
from letir.ast.primitive import Primitive, primitive_named
from letir.ast.process_state import paused_gc
from letir.ast.symbolic_sizes import has_static_shape, is_static_shape
from letir.ast.terms import NO_TYPE, Arg, Bind, Lambda, Local, substitute_args
from letir.ast.types import ArrayType
from letir.errors import LetirError
from letir.ops.define.composite_programs import is_computed_by_parts, is_derived_by_parts
from letir.ops.define.records import decomposition
from letir.passes.type_propagation import map_fitting_bodies

_MIN_OUTER = 1 << 14  # elements of an outer product that is decomposed


@entry_point
def decompose(
    fn: Lambda,
    *,
    ops: Collection[str] | None = None,
    keep_rules: bool = True,
    exact: bool = True,
) -> Lambda:
    """Replace composites by their decompositions, recursively and also in bodies [semantics.md B4].

    By default only composites whose ``impl`` is the decomposition and that have no derivative rule:
    results and derivatives keep their bits. ``keep_rules=False``, for programs that will not be
    differentiated, includes composites with a rule, and large outer products, whose multiplication
    can then be fused with other operations. ``exact=False`` includes composites computed by NumPy's
    own function, which rounds in another order. ``ops``: exactly the composites of these names;
    raises LetirError if there is no such operation. A composite of unknown types or sizes stays in
    the program.

    >>> from letir.ast.text.parser import parse
    >>> f = parse('''lambda %0: float64[3], %1: float64[2, 3] {
    ...   %2: float64[2] = linear(%0, %1, None);
    ...   return %2 }''')
    >>> print(decompose(f).listing(), end="")
    %2 = transpose %1, None
    %3 = matmul %0, %2
    return %3
    """
    if ops is not None:
        for name in ops:
            primitive_named(name)  # raises LetirError for a misspelled name
        return without_composites(fn, lambda op: op.name in ops)

    def is_wanted(op: Primitive) -> bool:
        if op.product == "outer" and not keep_rules:  # its decomposition has NumPy's bits
            return True
        return (is_computed_by_parts(op) or not exact) and (
            is_derived_by_parts(op) or not keep_rules
        )

    return without_composites(fn, is_wanted, _is_no_small_outer if exact else lambda bind: True)


def _is_no_small_outer(bind: Bind) -> bool:
    """Whether a bind is not an outer product, or one that a kernel may compute with others."""
    aval = bind.binders[0].type
    if bind.op.product != "outer":
        return True
    return has_static_shape(aval) and aval.size >= _MIN_OUTER


def without_composites(
    fn: Lambda,
    is_wanted: Callable[[Primitive], bool],
    where: Callable[[Bind], bool] = lambda bind: True,
) -> Lambda:
    """``fn`` with the composites for which ``is_wanted(op)`` decomposed where possible."""
    decisions: dict[Primitive, bool] = {}  # once an operation

    def is_composite(op: Primitive) -> bool:
        if op not in decisions:
            decisions[op] = op.decompose is not None and is_wanted(op)
        return decisions[op]

    parts = CompositeParts(is_composite, where)
    with paused_gc():
        return map_fitting_bodies(fn, parts.decompose_level)


@define(eq=False)
class CompositeParts:
    """Decomposes composites; each decomposition is itself decomposed once."""

    is_wanted: Callable[[Primitive], bool]
    where: Callable[[Bind], bool]
    programs: dict[int, tuple[Lambda, Lambda]] = field(factory=dict)  # by id: (from, to)

    def decompose_level(self, fn: Lambda) -> Lambda:
        """``fn`` without composites; bodies do not change."""
        if not any(self.is_wanted(bind.op) for bind in fn.binds):
            return fn
        names: dict[Local, Arg] = {}
        binds: list[Bind] = []
        changed = False
        for bind in fn.binds:
            program = self.program(bind) if self.is_wanted(bind.op) else None
            args = substitute_args(bind.args, names)
            if program is not None:
                changed = True
                _inline_decomposition(bind, program, args, binds, names)
            else:
                binds.append(bind.with_args(args))
        if not changed:
            return fn
        return fn.replace(binds=binds, ret=fn.ret.substitute(names))

    def program(self, bind: Bind) -> Lambda | None:
        """The fully decomposed program of a composite; None if it must stay."""
        types = [None if arg.type is NO_TYPE else arg.type for arg in bind.args]
        unknown = any(arg.type is None for arg in (*bind.args, *bind.binders))
        if unknown or not self.where(bind) or (bodies_of(bind) and any(map(_is_named, types))):
            return None  # the decomposition of a reduction depends on the number of elements
        try:
            parts = decomposition(bind.op.decompose, tuple(types), bind.attrs)
        except LetirError:  # a size is symbolic where a number is needed
            return None
        pairs = zip(parts.ret.args, bind.binders, strict=True)
        if any(result.type is not binder.type for result, binder in pairs):
            return None
        if id(parts) not in self.programs:
            self.programs[id(parts)] = parts, self.decompose_level(parts)
        return self.programs[id(parts)][1]


def _is_named(aval: ArrayType | None) -> bool:
    """Whether a type has a symbolic size."""
    return aval is not None and not is_static_shape(aval.shape)


def _inline_decomposition(
    bind: Bind, program: Lambda, args: Iterable[Arg], binds: list[Bind], names: dict[Local, Arg]
) -> None:
    """Append the binds of ``program`` on ``args`` in place of ``bind``, keeping its binders.

    Binders of results that are operands are entered into ``names``.
    """
    # the program has no parameter for None
    typed = [arg for arg in args if arg.type is not NO_TYPE]
    inner: dict[Local, Any] = dict(zip(program.params, typed, strict=True))
    for result, binder in zip(program.ret.args, bind.binders, strict=True):
        if type(result) is Local and result not in inner:
            inner[result] = binder
    for part in program.binds:
        operands = tuple([inner[a] if type(a) is Local else a for a in part.args])
        binders = tuple(
            [
                inner[b] if b in inner else inner.setdefault(b, Local(b.type, b.name))
                for b in part.binders
            ]
        )
        binds.append(Bind(binders, part.op, operands, part.attrs, bind.source))
    for result, binder in zip(program.ret.args, bind.binders, strict=True):
        source = inner[result] if type(result) is Local else result
        if source is not binder:
            names[binder] = source

"""``unroll``: loop unrolling [semantics.md F5].

A ``fori_loop`` or ``scan`` of few steps is unrolled completely, a long one into a loop over blocks
of eight steps with an epilogue. The part for ``scan`` is ``letir.passes.loops.scan_unrolling``.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from attrs import define, field

from letir.ast import entry_point
from letir.ast.attrs import Attrs
from letir.ast.bodies import has_bodies, map_bodies
from letir.ast.builder import LetBuilder
from letir.ast.primitive import Primitive
from letir.ast.process_state import paused_gc
from letir.ast.terms import Arg, Bind, Const, Lambda, Local
from letir.ast.types import ArrayType
from letir.ops.control_flow.while_and_fori import fori_loop
from letir.ops.elementwise.casting import cast
from letir.ops.elementwise.ufuncs import add, floor_divide, maximum, mul, remainder, sub
from letir.passes.fusion.clustering import bytes_of
from letir.passes.loops.scan_unrolling import scan_steps
from letir.visitors.usedef import use_counts

_MAX_BINDS = 32  # binds of a body
_WHOLE = 64  # fewer steps than this are unrolled completely
_BLOCK = 8
_MAX_BYTES = 1 << 20  # bytes of stacked results
_COUNT = ArrayType(np.int64)


@entry_point
@paused_gc()
def unroll(fn: Lambda, *, keeps: Callable[[Bind], bool] | None = None) -> Lambda:
    """Unroll counted loops, ``fori_loop`` and ``scan``, with small bodies.

    Bodies of at most 32 binds are unrolled, inner loops first: completely for fewer than 64 known
    steps (a loop without steps disappears), otherwise by 8, with an epilogue. A ``scan`` with an
    unknown number of steps, or with stacked results of more than 1 MiB, stays. Results are the same
    to the bit; names and source lines stay. A loop for which ``keeps(bind)`` stays too. Linear in
    the number of binds; ``fn`` itself is returned if it has no such loop.

    >>> from letir.ast.text.parser import parse
    >>> f = parse('''lambda %0: float64[] {
    ...   %1: float64[] = fori_loop(0, 3, %0, body=lambda %2: int64[], %3: float64[] {
    ...     %4: float64[] = exp(%3); return %4 }); return %1 }''')
    >>> print(unroll(f).listing(), end="")
    %1 = exp %0
    %2 = exp %1
    %3 = exp %2
    return %3
    """
    if not has_bodies(fn):
        return fn
    return map_bodies(fn, partial(_unrolled_level, keeps=keeps or _keeps_nothing))


def _keeps_nothing(bind: Bind) -> bool:
    return False


def _unrolled_level(fn: Lambda, keeps: Callable[[Bind], bool]) -> Lambda:
    """``fn`` with its loops, but not loops in bodies, unrolled."""
    if not any(map(_is_counted, fn.binds)):
        return fn
    unroller = _Unroller(keeps)
    for bind in fn.binds:
        unroller.bind(bind)
    if not unroller.is_changed:
        return fn
    return fn.replace(binds=unroller.builder.binds, ret=fn.ret.substitute(unroller.names))


@define(eq=False)
class _Unroller:
    """Emits the binds of one level; ``names`` maps results of loops to their replacements."""

    keeps: Callable[[Bind], bool]
    builder: LetBuilder = field(factory=LetBuilder)
    names: dict = field(factory=dict)
    producers: dict = field(factory=dict)  # integer local -> the bind that computes it
    is_changed: bool = False

    def bind(self, bind: Bind) -> None:
        """Emit a bind, or the unrolled form of a loop."""
        names = self.names
        if names and not names.keys().isdisjoint(bind.args):
            bind = bind.substitute(names)
        self.builder.source = bind.source
        is_unrolled = _is_counted(bind) and not self.keeps(bind)
        results = _LOOPS[bind.op.bodies.loop](self, bind) if is_unrolled else None
        if results is None:
            if _may_be_known(bind) and _is_one_integer(bind.binders[0]):
                self.producers[bind.binders[0]] = bind
            self.builder.binds.append(bind)
            return
        self.is_changed = True
        for binder, result in zip(bind.binders, results, strict=True):
            names[binder] = result
            if type(result) is Local and result.name is None:
                result.name = binder.name

    # ---- numbers ----

    def known_integer(self, arg: Arg) -> int | None:
        """The value of an operand that is a known integer, else None."""
        if type(arg) is Const:
            return int(arg.value)
        bind = self.producers.get(arg)
        return int(bind.attrs["value"]) if bind is not None and bind.op.role == "constant" else None

    def is_rest(self, arg: Arg) -> bool:
        """Whether an operand is known to be less than ``_BLOCK``: the rest of an unrolled loop."""
        bind = self.producers.get(arg)
        if bind is None or bind.op.result_below is None:
            return False
        return self.known_integer(bind.args[bind.op.result_below]) == _BLOCK

    def emit_number(self, op: Primitive, *args: Arg) -> Local:
        """The result of an operation on numbers."""
        (result,) = self.builder.emit(op, args)
        self.producers[result] = self.builder.binds[-1]
        return result

    def as_int64(self, arg: Arg) -> Arg:
        """A bound of a loop as a 64-bit integer."""
        if type(arg) is Const or arg.type is _COUNT:
            return arg
        return self.builder.emit(cast, (arg,), Attrs(dtype=_COUNT.dtype))[0]

    # ---- fori_loop ----

    def unroll_fori(self, bind: Bind) -> Sequence[Arg] | None:
        """The results of a ``fori_loop``; None if it does not change."""
        lower, upper, *operands = bind.args
        body = bind.attrs["body"]
        avals = [arg.type for arg in operands]
        if not _may_unroll(body, [body.params[0].type, *avals], avals[: len(body.ret.args)]):
            return None
        start, end = self.known_integer(lower), self.known_integer(upper)
        if start is not None and end is not None and end - start < _WHOLE:
            return self.unroll_steps(body, range(start, end), operands)
        # the index is a Python number: arithmetic in the unrolled steps would give NumPy's scalars
        if body.params[0].type is not _COUNT and body.params[0] in use_counts(body):
            return None
        if start is not None and end is not None:
            blocks = (end - start) // _BLOCK
            carry = self.loop_over_blocks(body, Const(blocks), Const(start), operands, _BLOCK)
            rest = range(start + blocks * _BLOCK, end)
            return self.unroll_steps(body, rest, [*carry, *operands[len(carry) :]])
        numbers = [arg.type for arg in (lower, upper)]
        if self.is_rest(upper) or None in numbers or any(k.dtype == np.uint64 for k in numbers):
            return None
        return self.blocks_and_rest(body, self.as_int64(lower), self.as_int64(upper), operands)

    def unroll_steps(self, body: Lambda, numbers: range, operands: list) -> tuple[Arg, ...]:
        """The unrolled steps for these indices."""
        count, is_read = len(body.ret.args), body.params[0] in use_counts(body)
        carry, captured = tuple(operands[:count]), operands[count:]
        i: Arg = Const(0)
        for number in numbers:
            if is_read and body.params[0].type is _COUNT:
                i = self.builder.constant(np.int64(number))
            elif is_read:
                i = Const(number)
            carry = self.builder.inline(body, (i, *carry, *captured))
        return carry

    def blocks_and_rest(self, body: Lambda, lower: Arg, upper: Arg, operands: list) -> tuple:
        """A loop with bounds known only at run time: one over the blocks, one over the rest."""
        steps = self.emit_number(maximum, self.emit_number(sub, upper, lower), Const(0))
        blocks = self.emit_number(floor_divide, steps, Const(_BLOCK))
        rest = self.emit_number(remainder, steps, Const(_BLOCK))
        carry = self.loop_over_blocks(body, blocks, lower, operands, _BLOCK)
        start = self.emit_number(add, self.emit_number(mul, blocks, Const(_BLOCK)), lower)
        return self.loop_over_blocks(body, rest, start, [*carry, *operands[len(carry) :]], 1)

    def loop_over_blocks(
        self, body: Lambda, count: Arg, start: Arg, operands: list, size: int
    ) -> tuple:
        """``count`` blocks of ``size`` steps, starting at the index ``start``."""
        inner = _block_body(body, start, size)
        # a start that the body needs and that is not a constant is captured
        more = () if len(inner.params) == len(body.params) else (start,)
        args = (Const(0), count, *operands, *more)
        return self.builder.emit(fori_loop, args, Attrs(body=inner))


def _block_body(body: Lambda, start: Arg, size: int) -> Lambda:
    """The body of a loop over blocks of ``size`` steps of ``body``."""
    builder, count = LetBuilder(), len(body.ret.args)
    params = [builder.param(p.type, p.name).arg for p in body.params]
    at, carry, captured = params[0], tuple(params[1 : 1 + count]), params[1 + count :]
    is_read = body.params[0] in use_counts(body)
    if is_read and size > 1:
        (at,) = builder.emit(mul, (at, Const(size)))
    if is_read and type(start) is Local:
        (at,) = builder.emit(add, (at, builder.param(_COUNT).arg))
        start = Const(0)
    first = start.value if type(start) is Const else 0
    for i in range(size):
        number = at
        if is_read and first + i:
            (number,) = builder.emit(add, (at, Const(first + i)))
        carry = builder.inline(body, (number, *carry, *captured))
    return builder.build(carry)


def _may_unroll(body: Lambda, args: Sequence, returned: Sequence) -> bool:
    """Whether a body for operands of types ``args``, with these result types, may be unrolled."""
    if len(body.binds) > _MAX_BINDS or len(args) != len(body.params):
        return False
    pairs = [*zip(body.params, args, strict=True), *zip(body.ret.args, returned, strict=True)]
    return all(arg.type is kind for arg, kind in pairs)


def _scan_of(unroller: _Unroller, bind: Bind) -> Sequence[Arg] | None:
    """The results of a ``scan``; None if it does not change."""
    steps = scan_steps(bind)
    if steps is None or not _may_unroll(bind.attrs["body"], steps.given, steps.returned):
        return None
    # the loop writes results to their final place; unrolled steps would need twice the memory
    if steps.length * sum(map(bytes_of, steps.stacked_types)) > _MAX_BYTES:
        return None
    return steps.unroll_results(unroller.builder, _BLOCK if steps.length >= _WHOLE else None)


_LOOPS = {"numbers": _Unroller.unroll_fori, "elements": _scan_of}


def _is_counted(bind: Bind) -> bool:
    """Whether a bind is a loop over numbers or elements with carried values."""
    layout = bind.op.bodies
    return layout is not None and layout.loop in _LOOPS and layout.is_separable


def _may_be_known(bind: Bind) -> bool:
    """Whether the value of a bind's result may be a known number."""
    return bind.op.role == "constant" or bind.op.result_below is not None


def _is_one_integer(local: Local) -> bool:
    """Whether a local is a scalar integer."""
    return local.type is not None and not local.type.shape and local.type.dtype.kind in "biu"

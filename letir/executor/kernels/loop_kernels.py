"""Loops whose bodies compute with few numbers, as calls of kernels that contain the loop."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.bodies import all_bodies, bodies_of, map_bodies
from letir.ast.terms import Bind, Lambda, Local, Ret
from letir.eval.float_warnings import KernelError
from letir.executor.kernels.kernel_binds import kernel_bind
from letir.kernels.flat_arrays.array_loops import ArrayLoop, array_loop
from letir.kernels.llvm import machine_code
from letir.kernels.loop_groups import (
    MAX_COUNT,
    MAX_STEPS,
    LoopKernel,
    is_plain_loop,
    loop_kernel,
)
from letir.kernels.loop_parts import LoopParts
from letir.kernels.machine_costs import machine_costs
from letir.passes.decomposition import decompose
from letir.passes.fusion.unrolled_clusters import UnrolledCluster
from letir.passes.loops.captured_constants import with_captured_constants
from letir.passes.loops.constant_carry import without_constant_carry

_USUAL_STEPS = 64  # the assumed number of steps, if it is unknown
_FIRST_ROWS = 64  # the first size of stacked results whose number is unknown


def with_loop_kernels(fn: Lambda, is_exact: bool = False) -> Lambda:
    """``fn`` with its loops on few numbers replaced by calls of kernels, which are compiled here.

    A loop is tried before the loops in its body. ``is_exact``: only kernels whose bits are NumPy's.
    """
    fn = with_captured_constants(without_constant_carry(fn))
    loops: dict[int, tuple[Bind, LoopKernel | ArrayLoop, int]] = {}
    todo, visited = [fn], {id(fn)}
    while todo:
        for bind in todo.pop().binds:
            if not bind.op.holds_lambdas or id(bind) in loops:
                continue
            lowered = _kernel_for(bind, is_exact)
            if lowered is not None:
                loops[id(bind)] = (bind, *lowered)
                continue
            new = [body for body in bodies_of(bind) if id(body) not in visited]
            todo += new
            visited.update(map(id, new))
    if not loops:
        return fn
    pairs = [(lowered.kernel, lowered.signature) for _, lowered, _ in loops.values()]
    ufuncs = dict(zip(loops, machine_code.ufuncs_of(pairs), strict=True))
    calls = {key: _kernel_call(*loops[key], ufuncs[key], is_exact) for key in loops}
    return map_bodies(fn, partial(_level_with_calls, calls=calls))


def becomes_loop_kernel(is_exact: bool, bind: Bind) -> bool:
    """Whether a counted loop becomes a kernel once its composites are decomposed."""
    program = Lambda((), (bind,), Ret(bind.binders))
    if any(inner.op.decompose is not None for body in all_bodies(program) for inner in body.binds):
        program = decompose(program, keep_rules=False)
    program = with_captured_constants(without_constant_carry(program))
    return _kernel_for(program.binds[-1], is_exact) is not None


def _level_with_calls(fn: Lambda, calls: dict[int, Bind]) -> Lambda:
    """``fn`` with its loops, but not loops in bodies, replaced by calls."""
    if not any(id(bind) in calls for bind in fn.binds):
        return fn
    return fn.with_binds([calls.get(id(bind), bind) for bind in fn.binds])


def _kernel_for(bind: Bind, is_exact: bool) -> tuple[LoopKernel | ArrayLoop, int] | None:
    """A loop's kernel and the least number of steps for it; None if NumPy computes the loop."""
    if not is_plain_loop(bind):
        return None
    loop = LoopParts.from_bind(bind)
    least = _least_steps(loop)
    if least is None or any(type(arg) is not Local for arg in loop.xs):
        return None
    steps = loop.steps
    calls = sum([body.memo(_count_calls) for body in bodies_of(bind)])
    if calls * (_USUAL_STEPS if steps is None else steps) < machine_costs().least_loop_calls:
        return None
    if steps is not None and steps < least:
        return None
    own = bind if loop.test is None else _with_own_carry(bind)
    result = None if own is None else loop_kernel(own, is_exact) or array_loop(own, is_exact)
    return None if result is None else (result, least)


def _count_calls(body: Lambda) -> int:
    """The number of NumPy's calls in a body."""
    total = 0
    for bind in body.binds:
        inner = [inner_body.memo(_count_calls) for inner_body in bodies_of(bind)]
        total += sum(inner) if bind.op.role == "fused" or not inner else 8 * sum(inner)
        total += bind.op.role != "fused" and bool(bind.args)
    return total


def _least_steps(loop: LoopParts) -> int | None:
    """The fewest steps after which all carried results are new objects; None if no number suffices.

    NumPy returns a carried operand that no step replaces; a kernel would copy it, or return a
    scalar for a 0-d array.
    """
    returned = loop.body.ret.args
    makers = {binder: bind for bind in loop.body.binds for binder in bind.binders}
    least = 1
    for k, param in enumerate(loop.carry_params):
        steps, place = 1, k
        while returned[place] in loop.carry_params:
            place = loop.carry_params.index(returned[place])
            steps += 1
            if steps > len(loop.carry) + 1:
                return None
        least = max(least, steps)
        arg = returned[place]
        if param.type is not None and param.type.weak:
            continue
        if type(arg) is not Local or arg not in makers or not _is_new(makers, arg):
            return None
    return least


def _is_new(makers: dict[Local, Bind], binder: Local) -> bool:
    """Whether a kernel returns a result of a bind in NumPy's form: a scalar or a new array."""
    bind = makers[binder]
    if not is_plain_loop(bind):
        return UnrolledCluster(producers=makers).has_form_of_numpys_result(bind, binder)
    loop = LoopParts.from_bind(bind)
    least = _least_steps(loop)
    return least is not None and loop.steps is not None and loop.steps >= least


# ---- calls ----


def _with_own_carry(bind: Bind) -> Bind | None:
    """A ``while_loop`` on new locals for its carry, so that a call can continue an earlier one.

    None if an initial value is converted for the body.
    """
    loop = LoopParts.from_bind(bind)
    for arg, param in zip(loop.carry, loop.carry_params, strict=True):
        aval, own = arg.type, param.type
        if aval is None or own is None or (aval.dtype, aval.shape) != (own.dtype, own.shape):
            return None
    fresh = [Local(param.type, param.name) for param in loop.carry_params]
    return bind.replace(args=(*loop.ahead, *fresh, *loop.captured)) if fresh else None


def _kernel_call(
    bind: Bind, lowered: LoopKernel | ArrayLoop, least: int, ufunc: np.ufunc, is_exact: bool
) -> Bind:
    """The bind that calls the kernel of a loop."""
    loop = LoopParts.from_bind(bind)
    operands = tuple(dict.fromkeys([x for x in bind.args if type(x) is Local]))
    params = tuple([Local(x.type, x.name) for x in operands])
    binders = tuple([Local(x.type, x.name) for x in bind.binders])
    inner = bind.substitute(dict(zip(operands, params, strict=True))).replace(binders=binders)
    body = Lambda(params, (inner,), Ret(binders))
    avals = [binder.type for binder in binders]
    numbers = tuple([n for n, aval in enumerate(avals) if aval is not None and aval.weak])
    places = {operand: n for n, operand in enumerate(operands)}

    def take(args: Sequence) -> tuple:
        return tuple([_OperandSource(places.get(arg), getattr(arg, "value", None)) for arg in args])

    counts = tuple([n for n, x in enumerate(operands) if _is_count(x)])
    call: Callable
    if type(lowered) is ArrayLoop:
        results = [(aval.shape, aval.dtype) for aval in avals]
        call = ArrayCall(ufunc, lowered.scratch, tuple(results), [x.type for x in operands])
    elif loop.test is not None:
        returned = loop.body.ret.args[len(loop.carry) :]
        rows = tuple([(x.type.shape, x.type.dtype) for x in returned if x.type is not None])
        others = [x for x in lowered.operands if x in places]
        call = TestedCall(
            ufunc, least, numbers, take(loop.carry), take(others), rows, bool(loop.n_own), counts
        )
    else:
        sizes = take(loop.ahead or loop.xs[:1]) if loop.steps is None else ()
        call = CountedCall(ufunc, least, numbers, sizes, counts)
    return kernel_bind(bind.binders, operands, body, call, bind.source, keeps_order=is_exact)


@frozen
class _OperandSource:
    """An operand of a loop: a position among the operands of the call, or a constant."""

    place: int | None
    value: Any

    def value_among(self, operands: Sequence) -> Any:
        return self.value if self.place is None else operands[self.place]


@frozen(eq=False)
class CountedCall:
    """A call of a loop whose number of steps is known before it.

    ``numbers``: the positions of results that are Python numbers. ``sizes``: the operands that give
    the number of steps, which are the bounds of a ``fori_loop`` or an array that a ``scan``
    iterates over; empty if the number is constant.
    """

    ufunc: np.ufunc
    least: int
    numbers: tuple[int, ...]
    sizes: tuple[_OperandSource, ...]
    counts: tuple[int, ...]

    def __call__(self, *operands: Any) -> Any:
        return self.compute_with(np, self.ufunc, operands)

    def compute_with(self, xp: Any, call: Callable, operands: Sequence) -> Any:
        """The results by ``call``, which runs the kernel on arrays of the module ``xp``."""
        _expect_small(operands, self.counts)
        if self.sizes:
            sizes = [source.value_among(operands) for source in self.sizes]
            steps = int(sizes[1]) - int(sizes[0]) if len(sizes) == 2 else len(sizes[0])
            if steps < self.least:
                raise KernelError("too few steps")
        try:
            results = call(*operands)
        except (ValueError, OverflowError) as error:
            raise KernelError("operands of other sizes") from error
        return _with_numbers(results, self.numbers)


@frozen(eq=False)
class ArrayCall:
    """A call of a loop on arrays, which are given flat.

    ``scratch``: the number of elements and the dtype of each scratch array; ``results``: the shapes
    and dtypes of the results.
    """

    ufunc: np.ufunc
    scratch: tuple[tuple[int, np.dtype], ...]
    results: tuple[tuple, ...]
    avals: list

    def __call__(self, *operands: Any) -> Any:
        inputs = []
        for x, aval in zip(operands, self.avals, strict=True):
            if np.shape(x) != aval.shape:
                raise KernelError("operands of other sizes")
            try:
                inputs.append(np.ascontiguousarray(x, aval.dtype).reshape(-1))
            except OverflowError as error:
                raise KernelError("a large Python integer") from error
        inputs += [np.empty(size, dtype) for size, dtype in self.scratch]
        outputs = [np.empty(shape, dtype) for shape, dtype in self.results]
        self.ufunc(*inputs, out=tuple([y.reshape(-1) for y in outputs]))
        result = tuple([y if y.shape else y[()] for y in outputs])  # [()]: NumPy's scalar
        return result if len(result) > 1 else result[0]


@frozen(eq=False)
class TestedCall:
    """A call of a loop with a test; ``rows`` are the shapes and dtypes of its stacked results."""

    ufunc: np.ufunc
    least: int
    numbers: tuple[int, ...]
    carry: tuple[_OperandSource, ...]
    others: tuple[_OperandSource, ...]
    rows: tuple[tuple, ...]
    is_counted: bool  # whether the iteration numbers are a result
    counts: tuple[int, ...]

    def __call__(self, *operands: Any) -> Any:
        return self.compute_with(np, self.ufunc, operands)

    def compute_with(self, xp: Any, call: Callable, operands: Sequence) -> Any:
        """The results by ``call``, which runs the kernel on arrays of the module ``xp``."""
        _expect_small(operands, self.counts)
        carry = tuple([source.value_among(operands) for source in self.carry])
        others = [source.value_among(operands) for source in self.others]
        total, most = 0, _FIRST_ROWS if self.rows else MAX_STEPS
        parts: list[list] = [[] for _ in self.rows]
        while True:
            stacks = [xp.empty((most, *shape), dtype) for shape, dtype in self.rows]
            out = (*[None] * len(carry), *stacks, None)
            try:
                results = call(*carry, *others, out=out)
            except (ValueError, OverflowError) as error:
                raise KernelError("operands of other sizes") from error
            done, carry = int(results[-1]), results[: len(carry)]
            for part, rows in zip(parts, stacks, strict=True):
                part.append(rows[:done])
            total += done
            _expect_small(carry, [n for n in self.numbers if n < len(carry)])
            if done < most:
                break
            most = min(4 * most, MAX_STEPS) if self.rows else most
        if total < self.least:
            raise KernelError("too few steps")
        numbers = [xp.arange(total)] if self.is_counted else []
        stacked = [xp.concatenate(part) for part in parts]
        carry = (*carry, *numbers, *stacked)
        return _with_numbers(carry if len(carry) > 1 else carry[0], self.numbers)


def _is_count(operand: Local) -> bool:
    """Whether an operand is a Python integer."""
    aval = operand.type
    return aval is not None and aval.weak and aval.dtype.kind == "i"


def _expect_small(values: Sequence, places: Sequence[int]) -> None:
    """Raise KernelError for Python integers that might leave 64 bits in the kernel."""
    for n in places:
        if isinstance(values[n], (int, np.integer, np.ndarray)) and abs(values[n]) > MAX_COUNT:
            raise KernelError("a large Python integer")


def _with_numbers(results: Any, places: tuple[int, ...]) -> Any:
    """The results of a ufunc, converted to Python numbers at these positions."""
    if not places:
        return results
    if type(results) is not tuple:
        return results.item()
    return tuple([x.item() if n in places else x for n, x in enumerate(results)])


LATE_BOUND.update(with_loop_kernels=with_loop_kernels, becomes_loop_kernel=becomes_loop_kernel)

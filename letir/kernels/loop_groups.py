"""Kernels that contain a whole loop, for loops whose bodies compute with few numbers.

The elements of the carried values become carried scalars of a loop of the loop language. A ``scan``
loads its arrays row by row and stores its stacked results row by row. Nested loops are loops of
the kernel too, except nested loops over rows of arrays, which are unrolled.
"""

from collections.abc import Sequence

import numpy as np
from attrs import define, field, frozen

from letir.ast.bodies import bodies_of
from letir.ast.liveness import has_effect
from letir.ast.terms import Arg, Bind, Const, Lambda, Local
from letir.eval.float_warnings import KERNEL
from letir.kernels.loop_language import Array, Kernel, Operand, Scalar
from letir.kernels.loop_parts import LoopParts, known_rows
from letir.kernels.scalar_forms import any_scalar_name, is_of_python_integers, scalar_name
from letir.kernels.scalar_lowering import MAX_ARRAYS, NoKernel
from letir.kernels.unrolled_groups import (
    Places,
    Unrolling,
    core_of,
    has_form,
    known_type,
)

_MAX_SCALARS = 2_500  # the most scalars of a kernel, which bounds LLVM's time
MAX_STEPS = 1 << 20  # the most steps of one call, so that Python can handle signals between calls
MAX_COUNT = 1 << 50  # the largest initial value of a Python integer that a loop carries
_MAX_ADDED = 1 << 10  # the largest increment: 2,500 of them in 2**40 steps add up to 2**62
_INDEX = np.dtype("int64")
_STEPS = "steps"  # the name of the number of steps of a ``scan`` that is unknown until the call


@frozen(eq=False)
class LoopKernel:
    """The kernel of a loop, with its ``signature`` as a generalized ufunc.

    Its inputs are ``operands``; the arrays of a ``scan`` are passed as a whole. Its outputs are the
    results of the loop, without iteration numbers. A ``while_loop`` also returns the number of
    steps that it made: at most ``MAX_STEPS`` in one call, or the length of the stacked results.
    """

    kernel: Kernel
    signature: str
    operands: tuple[Local, ...]


def loop_kernel(bind: Bind, is_exact: bool = False) -> LoopKernel | None:
    """The kernel of a loop; None if an operation has no scalar form, or the kernel is too large.

    ``is_exact``: also None if the bits of the results could differ from NumPy's.
    """
    try:
        return _LoopLowering(is_exact).loop_kernel(LoopParts.from_bind(bind))
    except (NoKernel, TypeError):
        return None


def is_plain_loop(bind: Bind) -> bool:
    """Whether the record and the bodies of a bind allow it to become a kernel with a loop."""
    layout = bind.op.bodies
    if layout is None or layout.loop not in ("numbers", "test", "elements"):
        return False
    if bind.op.decompose is not None or has_effect(bind):
        return False
    return all(body.memo(_has_forms) for body in bodies_of(bind))


def _has_forms(body: Lambda) -> bool:
    """Whether each bind of ``body`` has a type, and a form that a kernel can compute."""
    if any(local.type is None for bind in body.binds for local in bind.binders):
        return False
    return all(is_plain_loop(b) or has_form(b) or is_count(b) for b in body.binds)


def is_count(bind: Bind) -> bool:
    """Whether a bind compares Python integers, or adds a small constant to a Python integer.

    A counter used only by such binds stays within 64 bits if it begins below ``MAX_COUNT``.
    """
    if bind.op.role == "fused":
        body = bind.attrs["body"]
        return all(has_form(inner) or is_count(inner) for inner in body.binds)
    if not is_of_python_integers(bind):
        return False
    python = bind.op.python
    small = [type(x) is Const and abs(x.value) <= _MAX_ADDED for x in bind.args]
    return python.compares or (python.is_sum and sum(small) == 1)


@define(eq=False)
class _LoopLowering(Unrolling):
    """The lowering of one loop and of the loops nested in it."""

    rows: dict[Arg, Array] = field(factory=dict)  # the arrays of elements
    outputs: list[Array] = field(factory=list)
    depth: int = 0  # the number of loops around the bind that is lowered
    n_rows: Scalar = field(factory=lambda: Scalar(_INDEX, _STEPS))

    def loop_kernel(self, loop: LoopParts) -> LoopKernel:
        if not set(loop.xs).isdisjoint((*loop.ahead, *loop.carry, *loop.captured)):
            raise NoKernel
        operands = tuple(dict.fromkeys([x for x in loop.bind.args if type(x) is Local]))
        inputs = []
        for n, operand in enumerate(operands):
            if operand in loop.xs:
                aval = known_rows(operand.type)
                axes = (_STEPS, *[f"x{n}_{axis}" for axis in range(1, len(aval.shape))])
                array = self.rows[operand] = Array(f"x{n}", aval.dtype, ("", *axes))
            else:
                array = self.add_input(n, operand)
            inputs.append(array)
        results = self.while_loop(loop) if loop.test is not None else self.counted_loop(loop)
        stacked = self.outputs
        self.outputs = [self.store(f"y{n}", *pair) for n, pair in enumerate(results)]
        self.outputs[len(loop.carry) : len(loop.carry)] = stacked
        return self.finish_kernel(loop, inputs, operands)

    def finish_kernel(self, loop: LoopParts, inputs: list, operands: tuple) -> LoopKernel:
        """The kernel that consists of the statements built so far."""
        arrays = (*inputs, *self.outputs)
        if not self.outputs or len(arrays) > MAX_ARRAYS:
            raise NoKernel
        signature = "->".join([",".join(map(core_of, part)) for part in (inputs, self.outputs)])
        sizes = dict.fromkeys([name for array in arrays for name in array.extents[1:]])
        # the extents are in the order of NumPy's dimensions
        names = ("calls", *sizes)
        extents = tuple([self.n_rows if n == _STEPS else self.builder.extent(n) for n in names])
        name = f"{KERNEL} of a loop of {len(loop.body.binds)} binds"
        kernel = Kernel(name, arrays, extents, self.builder.statements())
        return LoopKernel(kernel, signature, operands)

    # ---- the outermost loop ----

    def counted_loop(self, loop: LoopParts) -> list[tuple[Places, np.dtype]]:
        """Build a ``fori_loop`` or ``scan``; returns the last carried values."""
        b, steps = self.builder, loop.steps
        self.capture(loop, loop.body)
        first = self.scalars_of(self.first_values(loop))
        if loop.ahead:
            lower, upper = self.bounds(loop)
            extent: Operand = b.sub(upper, lower)
        else:
            lower = b.number(0, _INDEX)
            extent = self.n_rows if steps is None else b.number(steps, _INDEX)
        # the iteration number is carried, so that ``b.loop`` yields a step even without a carry
        with b.loop(extent, lower, *first, is_parallel=False) as step:
            place = step.index
            if loop.is_reverse:
                place = b.sub(b.sub(extent, b.number(1, _INDEX)), place)
            self.load_rows(loop, place)
            values = self.step_results(loop, step.carried[1:], step.carried[0])
            self.store_rows(loop, values, place, steps)
            carried = self.scalars_of(values[: len(loop.carry)])
            step.next(b.add(step.carried[0], b.number(1, _INDEX)), *carried)
        return self.carried_results(loop, step.results[1:])

    def while_loop(self, loop: LoopParts) -> list[tuple[Places, np.dtype]]:
        """Build a ``while_loop``; returns the last carried values and the number of steps."""
        b, zero = self.builder, self.builder.number(0, _INDEX)
        first = self.scalars_of(self.first_values(loop))
        has_rows = len(loop.body.ret.args) > len(loop.carry)
        most = self.n_rows if has_rows else b.number(MAX_STEPS, _INDEX)
        with b.repeat(zero, *first) as step:
            continues = self.loop_condition(loop, step.carried[1:])
            step.holds(b.let("and", continues, b.let("lt", step.carried[0], most)))
            self.capture(loop, loop.body)
            values = self.step_results(loop, step.carried[1:], None)
            self.store_rows(loop, values, step.carried[0], None)
            carried = self.scalars_of(values[: len(loop.carry)])
            step.next(b.add(step.carried[0], b.number(1, _INDEX)), *carried)
        count = self.new([step.results[0]], ())
        return [*self.carried_results(loop, step.results[1:]), (count, _INDEX)]

    def load_rows(self, loop: LoopParts, place: Operand) -> None:
        """Load the row at an index of each array that a ``scan`` iterates over."""
        b = self.builder
        for param, x in zip(loop.x_params, loop.xs, strict=True):
            aval, array = known_type(param.type), self.rows[x]
            if (aval.dtype, aval.shape) != (array.dtype, x.type.shape[1:]):
                raise NoKernel
            inner = [[b.number(i, _INDEX) for i in index] for index in np.ndindex(aval.shape)]
            zero = b.number(0, _INDEX)
            loaded = [b.load(array, (zero, place, *index)) for index in inner]
            self.places[param] = self.new(loaded, aval.shape)

    def store_rows(
        self, loop: LoopParts, values: list[Places], place: Operand, steps: int | None
    ) -> None:
        """Store the results of one step that the loop stacks."""
        b, n_carry = self.builder, len(loop.carry)
        length = _STEPS if steps is None else str(steps)
        for n, (arg, places) in enumerate(zip(loop.body.ret.args, values, strict=True)):
            if n < n_carry:
                continue
            aval = known_type(arg.type)
            axes = ("", length, *map(str, aval.shape))
            array = Array(f"rows{n}", aval.dtype, axes, is_written=True)
            self.outputs.append(array)
            for index in np.ndindex(aval.shape):
                inner = [b.number(i, _INDEX) for i in index]
                value = self.element(int(places[index]))
                b.store(array, (b.number(0, _INDEX), place, *inner), value)

    # ---- all loops ----

    def add(self, bind: Bind) -> None:
        if self.builder.count > _MAX_SCALARS:
            raise NoKernel
        if bind.op.bodies is None or bind.op.bodies.loop is None:
            super().add(bind)
            return
        loop = LoopParts.from_bind(bind)
        if loop.ahead:
            results = self.nested_counted_loop(loop)
        elif loop.test is not None:
            results = self.nested_while_loop(loop)
        else:
            results = self.unrolled_loop(loop)
        for binder, (places, dtype) in zip(bind.binders, results, strict=True):
            aval = known_type(binder.type)
            if (aval.dtype, aval.shape) != (dtype, np.shape(places)):
                raise NoKernel
            self.places[binder] = places

    def name_of(self, bind: Bind) -> str | None:
        if not is_of_python_integers(bind):
            return scalar_name(bind)
        name = any_scalar_name(bind)
        # the steps of inner loops are not bounded
        return name if is_count(bind) and (self.depth <= 1 or bind.op.python.compares) else None

    def nested_counted_loop(self, loop: LoopParts) -> list[tuple[Places, np.dtype]]:
        """Build a nested ``fori_loop``."""
        self.capture(loop, loop.body)
        first = self.scalars_of(self.first_values(loop))
        b, (lower, upper) = self.builder, self.bounds(loop)
        with b.loop(b.sub(upper, lower), lower, *first, is_parallel=False) as step:
            values = self.step_results(loop, step.carried[1:], step.carried[0])
            step.next(b.add(step.carried[0], b.number(1, _INDEX)), *self.scalars_of(values))
        return self.carried_results(loop, step.results[1:])

    def nested_while_loop(self, loop: LoopParts) -> list[tuple[Places, np.dtype]]:
        """Build a nested ``while_loop``, which stacks no results."""
        if len(loop.bind.binders) != len(loop.carry):
            raise NoKernel
        first = self.scalars_of(self.first_values(loop))
        with self.builder.repeat(*first) as step:
            step.holds(self.loop_condition(loop, step.carried))
            self.capture(loop, loop.body)
            step.next(*self.scalars_of(self.step_results(loop, step.carried, None)))
        return self.carried_results(loop, step.results)

    def unrolled_loop(self, loop: LoopParts) -> list[tuple[Places, np.dtype]]:
        """Unroll a nested loop over rows of arrays."""
        n, n_carry = loop.steps, len(loop.carry)
        if not n:
            raise NoKernel
        self.capture(loop, loop.body)
        carry, rows = self.first_values(loop), []
        for step in reversed(range(n)) if loop.is_reverse else range(n):
            for param, x in zip(loop.x_params, loop.xs, strict=True):
                self.places[param] = self.places[x][step]
            values = self.step_results(loop, self.scalars_of(carry), None)
            carry = values[:n_carry]
            rows.append(values[n_carry:])
        rows = rows[::-1] if loop.is_reverse else rows
        stacked = [np.stack(parts) for parts in zip(*rows, strict=True)]
        dtypes = [known_type(arg.type).dtype for arg in loop.body.ret.args]
        return list(zip([*carry, *stacked], dtypes, strict=True))

    def bounds(self, loop: LoopParts) -> list[Operand]:
        """The bounds of a ``fori_loop``: its first index, and the end of its range."""
        return [self.element(int(self.operand(arg, _INDEX))) for arg in loop.ahead]

    def capture(self, loop: LoopParts, body: Lambda) -> None:
        """Bind the last parameters of a body to the values that it captures."""
        params = body.params[len(body.params) - len(loop.captured) :]
        for param, arg in zip(params, loop.captured, strict=True):
            self.places[param] = self.as_param(arg, param)

    def first_values(self, loop: LoopParts) -> list[Places]:
        """The initial values of the carry."""
        return [self.as_param(*pair) for pair in zip(loop.carry, loop.carry_params, strict=True)]

    def as_param(self, arg: Arg, param: Local | Arg) -> Places:
        """The operand, converted to the type of the parameter."""
        aval = known_type(param.type)
        places = self.operand(arg, aval.dtype)
        if np.shape(places) != aval.shape:
            raise NoKernel
        return places

    def scalars_of(self, values: Sequence[Places]) -> list[Operand]:
        """The scalars of all elements, one array after the other."""
        return [self.element(int(place)) for places in values for place in places.ravel()]

    def shape_scalars(self, params: Sequence[Local], scalars: Sequence[Operand]) -> list[Places]:
        """The scalars, shaped to values of the parameters."""
        result, start = [], 0
        for param in params:
            aval = known_type(param.type)
            result.append(self.new(scalars[start : start + aval.size], aval.shape))
            start += aval.size
        return result

    def step_results(
        self, loop: LoopParts, carried: Sequence[Operand], number: Operand | None
    ) -> list[Places]:
        """The results of the body for these carried values and this iteration number."""
        for param in loop.numbers:
            assert number is not None
            self.places[param] = self.new([number], ())
        carry = self.shape_scalars(loop.carry_params, carried)
        self.places.update(zip(loop.carry_params, carry, strict=True))
        self.depth += 1
        for bind in loop.body.binds:
            self.add(bind)
        self.depth -= 1
        like = (*loop.carry_params, *loop.body.ret.args[len(loop.carry) :])
        values = [self.as_param(*pair) for pair in zip(loop.body.ret.args, like, strict=True)]
        self.expect_c_order(values)
        return values

    def loop_condition(self, loop: LoopParts, carried: Sequence[Operand]) -> Operand:
        """The scalar of the test: whether the loop continues with these carried values."""
        test = loop.test
        assert test is not None
        self.capture(loop, test)
        own = test.params[: len(loop.carry)]
        self.places.update(zip(own, self.shape_scalars(own, carried), strict=True))
        for bind in test.binds:
            self.add(bind)
        (arg,) = test.ret.args
        condition = self.element(int(self.as_param(arg, arg)))
        return self.builder.let("ne", condition, self.builder.number(0, condition.dtype))

    def carried_results(self, loop: LoopParts, scalars: Sequence[Operand]) -> list:
        """The scalars, shaped and converted to the carried results of the loop."""
        dtypes = [known_type(param.type).dtype for param in loop.carry_params]
        return list(zip(self.shape_scalars(loop.carry_params, scalars), dtypes, strict=True))

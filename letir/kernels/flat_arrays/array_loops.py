"""Loops whose bodies work on small arrays as kernels, with the loop and these arrays inside.

Each value of the body has a place in the kernel's scratch memory; elementwise groups, products of
matrices and reductions are loops over it. Arrays are flat: they have one axis, without gaps.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from letir.ast.process_state import float_errors
from letir.ast.terms import Arg, Bind, Const, Lambda, Local
from letir.eval.float_warnings import KERNEL
from letir.kernels.flat_arrays.array_moves import MovedRun, moved_runs, view_layout
from letir.kernels.flat_arrays.flat_memory import FlatPlace, Memory, c_strides, flatten_group
from letir.kernels.flat_arrays.matrix_products import Matrix, emit_product
from letir.kernels.loop_language import Array, Kernel, Operand
from letir.kernels.loop_parts import LoopParts, known_rows
from letir.kernels.reduction_forms import Parts
from letir.kernels.row_passes import reduced_axes, reduction_form
from letir.kernels.scalar_lowering import MAX_ARRAYS, NoKernel, ScalarLowering, operand_dtypes
from letir.kernels.unrolled_groups import known_type

_MAX_PRODUCT = 1 << 17  # the most multiplications in one matrix product
_MAX_BY_CALL = 1 << 14  # the most multiplications for each saved call of NumPy
_MAX_REDUCED = 1 << 10  # the most elements of a sum, which is computed as one block
_MAX_BINDS = 200
_INDEX = np.dtype("int64")


@frozen(eq=False)
class ArrayLoop:
    """The kernel of a loop; its arguments are ``operands`` and then the arrays of ``scratch``.

    ``scratch``: (number of elements, dtype) of each scratch array. All arrays are flat.
    """

    kernel: Kernel
    signature: str
    operands: tuple[Local, ...]
    scratch: tuple[tuple[int, np.dtype], ...]


def array_loop(bind: Bind, is_exact: bool = False) -> ArrayLoop | None:
    """The kernel of a loop over elements or numbers; None if NumPy has to compute it.

    ``is_exact``: also None if the bits of the results could differ from NumPy's.
    """
    try:
        loop = LoopParts.from_bind(bind)
        if loop.test is not None or loop.steps is None or len(loop.body.binds) > _MAX_BINDS:
            return None
        return _ArrayLowering(is_exact=is_exact).array_loop(loop)
    except (NoKernel, TypeError):
        return None


@define(eq=False)
class _ArrayLowering(Memory):
    """The lowering of one loop.

    ``products`` and ``calls``: the multiplications in products of a step, and NumPy's calls.
    """

    is_exact: bool = field(kw_only=True)
    places: dict[Arg, FlatPlace] = field(factory=dict)
    products: int = 0
    calls: int = 0

    def array_loop(self, loop: LoopParts) -> ArrayLoop:
        operands = tuple(dict.fromkeys([x for x in loop.bind.args if type(x) is Local]))
        inputs = [self.flat_array(f"x{n}", _known_rows_or_array(x)) for n, x in enumerate(operands)]
        for operand, array in zip(operands, inputs, strict=True):
            self.places[operand] = self.flat_place(array, _known_rows_or_array(operand).shape)
        outputs = [
            Array(f"y{n}", known_type(binder.type).dtype, ("", f"y{n}_0"), is_written=True)
            for n, binder in enumerate(loop.bind.binders)
        ]
        pairs = zip(outputs, loop.bind.binders, strict=True)
        self.emit(loop, [self.flat_place(y, b.type.shape) for y, b in pairs])
        if self.products > _MAX_BY_CALL * self.calls:
            raise NoKernel
        scratch = tuple(self.scratch.values())
        arrays = (*inputs, *scratch, *outputs)
        is_weak = any(binder.type.weak for binder in loop.bind.binders)
        if not outputs or is_weak or len(arrays) > MAX_ARRAYS:
            raise NoKernel
        parts = [*inputs, *scratch], outputs
        signature = "->".join([",".join(f"({x.extents[1]})" for x in part) for part in parts])
        b = self.builder
        extents = tuple([b.extent(n) for n in ("calls", *[x.extents[1] for x in arrays])])
        kernel = Kernel(
            f"{KERNEL} of a loop of {len(loop.body.binds)} binds on arrays",
            arrays,
            extents,
            b.statements(),
            takes_contiguous=True,
        )
        sizes = tuple([(self.sizes[array.dtype], array.dtype) for array in scratch])
        return ArrayLoop(kernel, signature, operands, sizes)

    def emit(self, loop: LoopParts, results: list[FlatPlace]) -> None:
        """Write the whole loop; ``results``: the places of its results."""
        b, n_carry = self.builder, len(loop.carry)
        carry = [self.new(known_type(param.type)) for param in loop.carry_params]
        for place, arg, param in zip(carry, loop.carry, loop.carry_params, strict=True):
            self.copy(self.operand(arg, known_type(param.type).dtype), place)
        for param, arg in zip(loop.captured_params, loop.captured, strict=True):
            self.places[param] = self.operand(arg, known_type(param.type).dtype)
        self.make_constants(loop.body)
        steps = loop.steps
        assert steps is not None
        with b.loop(b.number(steps, _INDEX), is_parallel=False) as index:
            at: Operand = b.sub(b.number(steps - 1, _INDEX), index) if loop.is_reverse else index
            self.start_step(loop, index, at)
            self.places.update(zip(loop.carry_params, carry, strict=True))
            for bind in loop.body.binds:
                self.add(bind)
            values = [
                self.loop_result(arg, known_type(like.type))
                for arg, like in zip(
                    loop.body.ret.args,
                    [*loop.carry_params, *loop.body.ret.args[n_carry:]],
                    strict=True,
                )
            ]
            for value, whole in zip(values[n_carry:], results[n_carry:], strict=True):
                self.copy(value, self.row(whole, at))
            self.replace(carry, values[:n_carry])
        for place, result in zip(carry, results, strict=False):
            self.copy(place, result)

    def start_step(self, loop: LoopParts, index: Operand, place: Operand) -> None:
        """Set the places of the elements that a step reads, and of its number."""
        b = self.builder
        for param, x in zip(loop.x_params, loop.xs, strict=True):
            row = self.row(self.places[x], place)
            aval = known_type(param.type)
            if (row.array.dtype, row.shape) != (aval.dtype, aval.shape):
                raise NoKernel
            self.places[param] = row
        for param in loop.numbers:
            lower = self.loaded(self.operand(loop.ahead[0], _INDEX))
            number = self.places[param] = self.new(known_type(param.type))
            self.put(number, (), b.add(lower, index))

    def replace(self, carry: list[FlatPlace], values: list[FlatPlace]) -> None:
        """Copy the values of a step into the carried places, after all copies that read these
        places.
        """
        copies = []
        for value in values:
            copied = value
            if any(value.owner is place for place in carry):
                copied = self.scratch_place(value.array.dtype, value.shape)
                self.copy(value, copied)
            copies.append(copied)
        for value, place in zip(copies, carry, strict=True):
            self.copy(value, place)

    # ---- values ----

    def operand(self, arg: Arg, dtype: np.dtype) -> FlatPlace:
        """An operand in the dtype in which NumPy takes it."""
        if type(arg) is Const:
            with float_errors(all="raise"):
                try:
                    number = self.builder.number(arg.value, dtype)
                except (ArithmeticError, ValueError):
                    raise NoKernel from None
            place = self.scratch_place(dtype, ())
            self.put(place, (), number)
            return place
        place = self.places[arg]
        if place.array.dtype != dtype:
            raise NoKernel
        return place

    def loop_result(self, arg: Arg, aval: Any) -> FlatPlace:
        """A result of the body, converted to its type as a result of the loop."""
        place = self.operand(arg, aval.dtype)
        if place.shape != aval.shape:
            raise NoKernel
        return place

    def make_constants(self, body: Lambda) -> None:
        """Write the values of operations without operands, before the loop."""
        for bind in body.binds:
            if bind.args or bind.op.bodies is not None:
                continue
            aval = known_type(bind.binders[0].type)
            value = np.asarray(bind.op.impl(np, **bind.attrs))
            number = value.ravel()[0]
            # the bits, because 0.0 == -0.0
            if value.dtype != aval.dtype or value.tobytes() != number.tobytes() * value.size:
                raise NoKernel
            single = self.scratch_place(aval.dtype, ())
            self.put(single, (), self.builder.number(number, aval.dtype))
            place = self.places[bind.binders[0]] = self.new(aval)
            self.copy(single, place)

    # ---- binds ----

    def add(self, bind: Bind) -> None:
        """Write the statements that compute the results of a bind."""
        op = bind.op
        if not bind.args:
            return
        if self.is_exact and not op.exact and op.role != "fused":
            raise NoKernel
        if op.role == "fused":
            body = bind.attrs["body"]
            if any(type(arg) is not Local for arg in bind.args):
                raise NoKernel
            self.places.update(zip(body.params, [self.places[x] for x in bind.args], strict=True))
            self.elementwise(body.binds, body.ret.args)
            self.places.update(
                zip(bind.binders, [self.places[x] for x in body.ret.args], strict=True)
            )
        elif op.elementwise:
            self.elementwise((bind,), bind.binders)
        elif op.bodies is not None or op.effect or op.random or op.is_user_defined:
            raise NoKernel
        elif op.memory == "view" or op.moves_elements:
            self.move_elements(bind)
        elif reduction_form(bind) is not None:
            self.reduce(bind)
        elif op.product == "matrix":
            self.multiply(bind, *self.operands(bind))
        elif op.product == "outer":
            self.multiply(bind, *self.as_column_and_row(*self.operands(bind)))
        else:
            raise NoKernel
        self.calls += len(bind.attrs["body"].binds) if op.role == "fused" else op.memory != "view"

    def elementwise(self, binds: Sequence[Bind], results: Sequence[Arg]) -> None:
        """Write one loop for a group of binds whose results have the same shape."""
        avals = [known_type(bind.binders[0].type) for bind in binds]
        shape = avals[0].shape
        if any(aval.shape != shape for aval in avals) or any(not b.op.elementwise for b in binds):
            raise NoKernel
        computed = {binder for bind in binds for binder in bind.binders}
        operands = dict.fromkeys(
            [x for b in binds for x in b.args if type(x) is Local and x not in computed]
        )
        places = {arg: self.places[arg] for arg in operands}
        if len(shape) > 1 and any(p.shape == shape and not p.is_in_order for p in places.values()):
            raise NoKernel  # NumPy's result might have another order
        targets = {arg: self.new(known_type(arg.type)) for arg in dict.fromkeys(results)}
        if not computed.issuperset(targets):
            raise NoKernel
        loops, places = flatten_group(shape, places)
        flat = {
            arg: FlatPlace(p.array, p.start, loops, c_strides(loops)) for arg, p in targets.items()
        }

        def body(index: list[Operand]) -> None:
            lowering = ScalarLowering(self.is_exact, self.builder)
            for operand, place in places.items():
                lowering.scalars[operand] = self.get(place, index)
            for bind in binds:
                lowering.add(bind)
            for result, place in flat.items():
                self.put(place, index, lowering.scalars[result])

        self.loop_over(loops, body)
        self.places.update(targets)

    def move_elements(self, bind: Bind) -> None:
        """Compute an operation that moves elements: a view, or copies of runs of elements."""
        places = [self.places[arg] if type(arg) is Local else None for arg in bind.args]
        first = places[0]
        if len(places) == 1 and first is not None:
            views = view_layout(bind, first.shape, first.strides)
            if views is not None:
                for binder, (offset, shape, strides) in zip(bind.binders, views, strict=True):
                    start = self.builder.add(first.start, self.builder.number(offset, _INDEX))
                    self.places[binder] = FlatPlace(first.array, start, shape, strides, first.owner)
                return
        if any(p is None for p in places) or len(bind.binders) != 1 or not bind.op.moves_elements:
            raise NoKernel
        self.gather(bind, [p for p in places if p is not None])

    def gather(self, bind: Bind, places: list[FlatPlace]) -> None:
        """Copy runs of elements of several operands, as ``stack`` does."""
        aval = known_type(bind.binders[0].type)
        if any(place.array.dtype != aval.dtype for place in places):
            raise NoKernel
        target = self.new(aval)
        for run in moved_runs(bind, [place.shape for place in places]):
            source = self.copy_to_c_order(places[run.operand])
            self.copy(
                self.run_of(source, run),
                self.run_of(target, MovedRun(0, run.target, 1, 0, run.count)),
            )
        self.places[bind.binders[0]] = target

    def run_of(self, place: FlatPlace, run: MovedRun) -> FlatPlace:
        b = self.builder
        start = b.add(place.start, b.number(run.start, _INDEX))
        return FlatPlace(place.array, start, (run.count,), (run.step,))

    def copy_to_c_order(self, place: FlatPlace) -> FlatPlace:
        """A value in C order, copied if it is in another order."""
        if place.is_flat:
            return place
        result = self.scratch_place(place.array.dtype, place.shape)
        self.copy(place, result)
        return result

    def reduce(self, bind: Bind) -> None:
        """Write a reduction along any axes."""
        form, source, b = reduction_form(bind), self.places[bind.args[0]], self.builder
        assert form is not None
        aval = known_type(bind.binders[0].type)
        axes = reduced_axes(bind)
        count = math.prod([source.shape[n] for n in axes])
        if count > _MAX_REDUCED or (self.is_exact and not form.is_exact(aval.dtype)):
            raise NoKernel
        remaining = [n for n in range(len(source.shape)) if n not in axes]
        target, accumulator = self.new(aval), form.accumulator(aval.dtype)
        shape = tuple([source.shape[n] for n in remaining])
        flat = FlatPlace(target.array, target.start, shape, c_strides(shape))
        if flat.size != target.size:
            raise NoKernel

        def along(rest: tuple[int, ...], index: dict[int, Operand], parts: Parts) -> Parts:
            if not rest:
                x = self.get(source, [index[n] for n in range(len(source.shape))])
                return accumulator.step(b, parts, form.element(b, x, aval.dtype))
            loop = b.loop(b.number(source.shape[rest[0]], _INDEX), *parts)
            with loop:
                loop.next(*along(rest[1:], {**index, rest[0]: loop.index}, loop.carried))
            return loop.results

        def body(index: list[Operand]) -> None:
            first = accumulator.first(b)
            block = along(
                axes, dict(zip(remaining, index, strict=True)), accumulator.block(b, first)
            )
            total = accumulator.value(b, accumulator.with_block(b, first, block))
            self.put(flat, index, form.divided(b, total, b.number(count, _INDEX)))

        self.loop_over(shape, body)
        self.places[bind.binders[0]] = target

    def operands(self, bind: Bind) -> list[FlatPlace]:
        """The operands of a product."""
        return [self.operand(*pair) for pair in zip(bind.args, operand_dtypes(bind), strict=True)]

    def as_column_and_row(self, x: FlatPlace, y: FlatPlace) -> tuple[FlatPlace, FlatPlace]:
        """Two vectors as a column and a row, whose matrix product is their outer product."""
        x, y = self.copy_to_c_order(x), self.copy_to_c_order(y)
        return (
            FlatPlace(x.array, x.start, (x.size, 1), (1, 1)),
            FlatPlace(y.array, y.start, (1, y.size), (y.size, 1)),
        )

    def multiply(self, bind: Bind, x: FlatPlace, y: FlatPlace) -> None:
        """Write a product of matrices or vectors."""
        aval = known_type(bind.binders[0].type)
        if aval.dtype.kind != "f" or {len(x.shape), len(y.shape)} - {1, 2} or self.is_exact:
            raise NoKernel
        is_same = all(p.array.dtype == aval.dtype for p in (x, y))
        if not is_same or any(value is not None for value in bind.attrs.values()):
            raise NoKernel
        rows = x.shape[0] if len(x.shape) == 2 else 1
        columns = y.shape[1] if len(y.shape) == 2 else 1
        inner = x.shape[-1]
        own = rows * columns * inner
        if own > _MAX_PRODUCT:
            raise NoKernel
        self.products += own
        target = self.new(aval)
        left = (0, *x.strides)[-2:]
        right = (*y.strides, 0)[:2]
        emit_product(
            self.builder,
            Matrix(target.array, target.start, (rows, columns), (columns, 1)),
            Matrix(x.array, x.start, (rows, inner), (left[0], left[1])),
            Matrix(y.array, y.start, (inner, columns), (right[0], right[1])),
        )
        self.places[bind.binders[0]] = target


def _known_rows_or_array(x: Local) -> Any:
    """The type of an operand, with a known shape."""
    return (
        known_type(x.type) if not x.type or not x.type.shape else _static_type(known_rows(x.type))
    )


def _static_type(aval: Any) -> Any:
    if any(type(n) is not int or n == 0 for n in aval.shape):
        raise NoKernel
    return aval

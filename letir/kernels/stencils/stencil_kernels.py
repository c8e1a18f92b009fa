"""Kernels that read arrays at shifted indices, and may write into a part of an array.

NumPy's ufuncs copy parts of rows into buffers, which takes longer than a few sums. The kernel of a
stencil is a generalized ufunc on whole arrays: it contains the loops over the elements of the
result, and reads each operand at the places of its view. Along an axis on which a rolled array
wraps around, the first and last elements are computed in a loop of their own.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from letir.ast.terms import Lambda, Local
from letir.ast.types import ArrayType
from letir.kernels.elementwise_groups import kernel_name
from letir.kernels.loop_language import Array, Kernel, Operand
from letir.kernels.scalar_lowering import MAX_ARRAYS, NoKernel, ScalarLowering, expect_known
from letir.kernels.stencils.stencil_places import MAX_ROLL, AxisPlace, Places, View

_INTEGER = np.dtype("int64")
_MIN_ROW = 8  # elements of a whole row; NumPy takes several shorter rows together
_MIN_PART = 2  # elements of a part of a row
_MAX_EDGE = 2 * MAX_ROLL  # elements at the ends of a row that are computed apart


@frozen
class StencilRead:
    """The value of a parameter of a group: its ``view`` of the array number ``array``."""

    array: int
    view: View


@frozen
class StencilKernel:
    """A kernel and how to call it: ``ufunc(*arrays, out=results)``.

    ``loops``: the lengths of its loops; ``shape`` and ``dtypes``: of the arrays of results.
    """

    kernel: Kernel
    signature: str
    loops: tuple[int, ...]
    shape: tuple[int, ...]
    dtypes: tuple[np.dtype, ...]


@frozen
class StencilTarget:
    """The array of type ``aval`` into whose part ``view`` the only result is written.

    ``around``: the number of the array from which the elements around that part are copied into a
    new array; None if the kernel writes into an existing array. ``copies_rows``: whether the kernel
    also copies the rows before and after the part; otherwise its caller does.
    """

    aval: ArrayType
    view: View
    around: int | None = None
    copies_rows: bool = True


def stencil_kernel(
    body: Lambda,
    reads: Mapping[Local, StencilRead],
    arrays: Sequence[ArrayType],
    target: StencilTarget | None = None,
    *,
    is_exact: bool = False,
) -> StencilKernel | None:
    """The kernel of a group's ``body``, whose parameters are views of ``arrays``; None if there is
    none. Without a ``target``, the results are arrays of their own.
    """
    try:
        lowering = _StencilLowering(is_exact, body=body, reads=reads, avals=arrays, target=target)
        return lowering.kernel()
    except (NoKernel, TypeError):
        return None


@define(eq=False)
class _StencilLowering(ScalarLowering):
    """The lowering of one group. ``loops``: the lengths of the loops over the result."""

    body: Lambda = field(kw_only=True)
    reads: Mapping[Any, StencilRead] = field(kw_only=True)
    avals: Sequence[ArrayType] = field(kw_only=True)
    target: StencilTarget | None = field(kw_only=True)
    loops: tuple[int, ...] = field(init=False)
    inputs: list[Array] = field(factory=list)
    outputs: list[Array] = field(factory=list)
    extents: dict[str, Operand] = field(factory=dict)
    places: dict[Local, Places] = field(factory=dict)
    write: Places = ()
    outer: Operand = field(init=False)  # the index of the matrices over which NumPy loops
    # whether each parameter's row exists in its array, where the view has zeros around it
    inside: dict[Local, Operand | None] = field(factory=dict)  # None: the row always exists
    edges: tuple[int, int] = (0, 0)  # the elements at the ends of rows that are computed apart

    def kernel(self) -> StencilKernel:
        """The kernel."""
        self.loops = self.body.binds[-1].binders[0].type.shape
        self.declare_arrays()
        if not self.loops or not self.fits_rows():
            raise NoKernel
        b, arrays = self.builder, (*self.inputs, *self.outputs)
        outer = b.extent("o")
        lengths = [self.length_of(axis) for axis in range(len(self.loops))]
        with b.loop(outer) as self.outer:
            self.emit_loops(lengths, [])
        names = [name for array in arrays for name in array.extents[1:]]
        extents: Any = (outer, *[self.extents[name] for name in names])
        kernel = Kernel(kernel_name(self.body), arrays, extents, b.statements(), is_flat=True)
        inputs, outputs = [
            ",".join([f"({','.join(array.extents[1:])})" for array in part])
            for part in (self.inputs, self.outputs)
        ]
        dtypes = tuple([array.dtype for array in self.outputs])
        shape = self.target.aval.shape if self.target else self.loops
        return StencilKernel(kernel, f"{inputs}->{outputs}", self.loops, shape, dtypes)

    # ---- arrays ----

    def declare_arrays(self) -> None:
        """The parameters of the kernel, and the places at which it reads and writes them."""
        for n, aval in enumerate(self.avals):
            expect_known(aval)
            self.inputs.append(self.declare(f"x{n}", aval, is_written=False))
        for n, arg in enumerate(self.body.ret.args):
            made = any(arg in bind.binders for bind in self.body.binds)
            if not made or arg.type.weak or arg.type.shape != self.loops:
                raise NoKernel
            aval = self.target.aval if self.target else arg.type
            expect_known(arg.type)
            if aval.dtype != arg.type.dtype:
                raise NoKernel
            self.outputs.append(self.declare(f"y{n}", aval, is_written=True))
        if len(self.inputs) + len(self.outputs) > MAX_ARRAYS:
            raise NoKernel
        written = self.target.view if self.target else View.whole(self.loops)
        self.write = written.in_loops(self.loops)
        for param in self.body.params:
            self.places[param] = self.reads[param].view.in_loops(self.loops)

    def declare(self, name: str, aval: ArrayType, *, is_written: bool) -> Array:
        names = [f"{name}_{axis}" for axis in range(len(aval.shape))]
        self.extents |= {key: self.builder.extent(key) for key in names}
        return Array(name, aval.dtype, ("o", *names), is_written)

    def fits_rows(self) -> bool:
        """Whether rows of the result are written, and read, from rows of arrays. Sets ``edges``."""
        last, left, right = len(self.loops) - 1, 0, 0
        is_whole = True
        written = [loop for place in self.write if (loop := place.loop) is not None]
        if written != sorted(range(len(self.loops))) or not _is_along_rows(self.write, last):
            return False
        if self.is_new_whole and any(p.loop is None or p.step != 1 for p in self.write):
            return False
        for param, places in self.places.items():
            if not _is_along_rows(places, last):
                return False
            if not places or places[-1].loop != last:
                continue
            length, start = self.avals[self.reads[param].array].shape[-1], places[-1].start
            is_whole = is_whole and length == self.loops[-1]
            if not places[-1].is_within:
                left, right = max(left, -start), max(right, start + self.loops[-1] - length)
        self.edges = left, right
        shortest = max(left + right + _MIN_PART, _MIN_ROW if is_whole else 0)
        return left + right <= _MAX_EDGE and shortest <= self.loops[-1]

    @property
    def is_new_whole(self) -> bool:
        """Whether the kernel copies the elements around the part that it computes."""
        return self.target is not None and self.target.around is not None

    def length_of(self, axis: int) -> Operand:
        """The number of steps of a loop.

        Where possible, it is the length of the written array's axis less a constant, so that the
        kernels of arrays of different sizes have the same code.
        """
        output = self.outputs[0]
        whole = self.target.aval.shape if self.target else self.loops
        for n, place in enumerate(self.write):
            if place.loop == axis and place.step == 1:
                extent = self.extents[output.extents[n + 1]]
                missing = whole[n] - self.loops[axis]
                return self.builder.sub(extent, self.integer(missing)) if missing else extent
        return self.integer(self.loops[axis])

    def integer(self, value: int) -> Operand:
        """A constant index."""
        return self.builder.number(value, _INTEGER)

    # ---- loops ----

    def emit_loops(self, lengths: list[Operand], indices: list[Operand]) -> None:
        """Write the loops that are left, inside of loops with these ``indices``."""
        b, depth = self.builder, len(indices)
        if depth < len(self.loops) - 1:
            with self.surrounded(indices), b.loop(lengths[depth]) as index:
                self.emit_loops(lengths, [*indices, index])
            return
        with self.surrounded(indices):
            self.emit_row(lengths, indices)

    def emit_row(self, lengths: list[Operand], indices: list[Operand]) -> None:
        """Write the loops over a row."""
        b = self.builder
        rows = {
            key: self.row_of(places, array, indices)
            for key, places, array in [
                *[(p, self.places[p], self.array_of(p)) for p in self.places],
                *[(y, self.write, y) for y in self.outputs],
            ]
        }
        self.inside = {
            p: self.flag_of(self.places[p], rows[p], self.array_of(p)) for p in self.places
        }
        rows |= {p: self.within(self.places[p], rows[p], self.array_of(p)) for p in self.places}
        for param, row in rows.items():  # values that are the same along the row
            if type(param) is Local and len(row) == len(self.array_of(param).extents):
                self.scalars[param] = self.load(param, row)
        left, right = self.edges
        middle = lengths[-1]
        if left + right:
            middle = b.sub(middle, self.integer(left + right))
            with b.loop(self.integer(left + right)) as number:
                beyond = b.add(number, middle)
                is_first = b.let("lt", number, self.integer(left))
                self.emit_element(rows, b.select(is_first, number, beyond), wraps=True)
        with b.loop(middle) as index:
            self.emit_element(rows, b.add(index, self.integer(left)) if left else index)

    @contextmanager
    def surrounded(self, indices: list[Operand]) -> Iterator[None]:
        """Copy the elements before and after the part that is computed along the next axis."""
        axis, target = len(indices), self.target
        copies = self.is_new_whole and (axis > 0 or target.copies_rows)  # type: ignore[union-attr]
        if not copies:
            yield
            return
        assert target is not None, "there are elements to copy"
        output, start = self.outputs[0], self.write[axis].start
        extent, after = self.extents[output.extents[axis + 1]], target.aval.shape[axis]
        after -= start + self.loops[axis]
        places = zip(self.write, indices, output.extents[1:], strict=False)
        outer = [self.outer, *[self.index_at(*x, wraps=False) for x in places]]
        self.copy_range(outer, None, start)
        yield
        self.copy_range(outer, self.builder.sub(extent, self.integer(after)), after)

    def copy_range(self, outer: list[Operand], begin: Operand | None, count: int) -> None:
        """Copy the elements at ``count`` indices from ``begin`` on along the next axis."""
        if count:
            with self.builder.loop(self.integer(count)) as index:
                place = index if begin is None else self.builder.add(index, begin)
                self.copy_all([*outer, place])

    def copy_all(self, outer: list[Operand]) -> None:
        """Copy the elements whose first indices are ``outer``."""
        assert self.target is not None and self.target.around is not None, "see ``surrounded``"
        b, source, output = self.builder, self.inputs[self.target.around], self.outputs[0]
        if len(outer) == len(output.extents):
            b.store(output, tuple(outer), b.load(source, tuple(outer)))
            return
        with b.loop(self.extents[output.extents[len(outer)]]) as index:
            self.copy_all([*outer, index])

    def array_of(self, param: Local) -> Array:
        return self.inputs[self.reads[param].array]

    def row_of(self, places: Places, array: Array, indices: list[Operand]) -> tuple[Operand, ...]:
        """The indices of a row of an array; all of its indices if they do not depend on the loop
        over the row.
        """
        result, last = [self.outer], len(self.loops) - 1
        for n, place in enumerate(places):
            if place.loop != last:
                index = None if place.loop is None else indices[place.loop]
                result.append(self.index_at(place, index, array.extents[n + 1], wraps=place.wraps))
        return tuple(result)

    def flag_of(self, places: Places, indices: tuple[Operand, ...], array: Array) -> Operand | None:
        """Whether all indices are those of elements, None if they always are."""
        result = None
        for place, index, name in zip(places, indices[1:], array.extents[1:], strict=False):
            if place.fills:
                flag = self.is_on_axis(index, name)
                result = flag if result is None else self.builder.let("and", result, flag)
        return result

    def is_on_axis(self, index: Operand, extent: str) -> Operand:
        """Whether an axis of this extent has an element at this index."""
        b = self.builder
        is_less = b.let("lt", index, self.extents[extent])
        return b.let("and", b.let("ge", index, self.integer(0)), is_less)

    def within(
        self, places: Places, indices: tuple[Operand, ...], array: Array
    ) -> tuple[Operand, ...]:
        """The indices, and 0 for those that may be outside of an axis."""
        result, zero = [indices[0]], self.integer(0)
        for place, index, name in zip(places, indices[1:], array.extents[1:], strict=False):
            if place.fills:
                flag = self.is_on_axis(index, name)
                index = self.builder.select(flag, index, zero)  # noqa: PLW2901
            result.append(index)
        return tuple(result)

    def load(self, param: Local, indices: tuple[Operand, ...], flag: Operand | None = None) -> Any:
        """The element of a parameter at these indices, 0 if it is outside of the array."""
        b, array, inside = self.builder, self.array_of(param), self.inside[param]
        value: Operand = b.load(array, indices)
        if not any(place.fills for place in self.places[param]):
            return value
        zero = b.number(0, array.dtype)
        if array.dtype.kind == "f":
            value = b.add(value, zero)  # NumPy adds the part to zeros, which makes 0.0 of -0.0
        flags = [x for x in (inside, flag) if x is not None]
        for x in flags:
            value = b.select(x, value, zero)
        return value

    def index_at(
        self, place: AxisPlace, index: Operand | None, name: str, *, wraps: bool
    ) -> Operand:
        """The index along an axis of this extent, at ``index`` of the place's loop."""
        b = self.builder
        if index is None:
            return self.integer(place.start)
        index = b.mul(index, self.integer(place.step)) if place.step != 1 else index
        index = b.add(index, self.integer(place.start)) if place.start else index
        if not wraps or not place.start:
            return index
        length, zero = self.extents[name], self.integer(0)
        if place.start < 0:
            return b.select(b.let("lt", index, zero), b.add(index, length), index)
        return b.select(b.let("ge", index, length), b.sub(index, length), index)

    def emit_element(self, rows: dict, index: Operand, *, wraps: bool = False) -> None:
        """Write the computation of one element; ``wraps``: it may be at the end of a row."""
        b, last = self.builder, len(self.loops) - 1
        kept, self.selected = dict(self.scalars), set()
        for param, places in self.places.items():
            if places and places[-1].loop == last:
                array, wraps_here = self.array_of(param), wraps and places[-1].wraps
                column = self.index_at(places[-1], index, array.extents[-1], wraps=wraps_here)
                flag = None
                if wraps and places[-1].fills:
                    here = (self.outer, column)
                    flag = self.flag_of(places[-1:], here, _last_axis(array))
                    _, column = self.within(places[-1:], here, _last_axis(array))
                self.scalars[param] = self.load(param, (*rows[param], column), flag)
        for bind in self.body.binds:
            self.add(bind)
        for output, arg in zip(self.outputs, self.body.ret.args, strict=True):
            column = self.index_at(self.write[-1], index, output.extents[-1], wraps=False)
            b.store(output, (*rows[output], column), self.scalars[arg])
        self.scalars = kept


def _last_axis(array: Array) -> Array:
    """An array with the outer axis and the last axis of another one."""
    return evolve(array, extents=(array.extents[0], array.extents[-1]))


def _is_along_rows(places: Places, last: int) -> bool:
    """Whether the innermost loop, number ``last``, moves along the last axis, by single steps, and
    the loops follow the order of the axes.
    """
    loops = [place.loop for place in places if place.loop is not None]
    inner = [n for n, place in enumerate(places) if place.loop == last]
    is_row = not inner or (inner == [len(places) - 1] and places[-1].step == 1)
    return is_row and loops == sorted(set(loops))

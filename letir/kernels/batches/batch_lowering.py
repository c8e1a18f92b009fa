"""Kernels over batches of small items: one loop over items, whose elements are scalars.

Operations on points, rows of a table or small matrices, one for each item of a batch, become
straight-line code within the loop, in which slicing, joining and products of small matrices need no
memory. Elements are read from tables at computed indices. An index out of bounds is replaced by 0,
so that nothing outside of an array is read, and a flag is set, after which NumPy computes the
group. Sums at indices are computed in the order of the items, as by NumPy: the items of a block
store their parts and indices, and a second loop adds them.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from letir.ast.attrs import Here
from letir.ast.terms import Arg, Bind, Const, Lambda, Local
from letir.eval.float_warnings import KERNEL
from letir.kernels.batches.item_binds import (
    adds_to_operand,
    axes_sum_of,
    bind_kind,
    gathered_item,
    is_batch,
    is_shared,
    is_sum_to_shape,
    resize_bind,
    scattered_parts,
)
from letir.kernels.loop_language import Array, Kernel, Operand
from letir.kernels.scalar_instructions import BOOL
from letir.kernels.scalar_lowering import MAX_ARRAYS, NoKernel
from letir.kernels.unrolled_groups import Unrolling, core_of

_BLOCK = 128  # items whose parts are added together while they are in the cache
_MAX_SCALARS = 3_000  # the most scalars of a kernel, which bounds LLVM's time
_INDEX = np.dtype("int64")


@frozen(eq=False)
class BatchKernel:
    """A kernel over a batch, and how to call it.

    Its arrays are flat: the operands, ``sizes`` (the first item, the end of the items, and the
    ``lengths`` of axes that are indexed), ``scratch`` (lengths and dtypes), the results, and a flag
    that an index is out of bounds. ``starts``: for each result the operand to which its parts are
    added, -1 for zeros, None for a result without indices.
    """

    kernel: Kernel
    signature: str
    n: int
    lengths: tuple[int, ...]
    scratch: tuple[tuple[int, np.dtype], ...]
    starts: tuple[int | None, ...]

    @property
    def may_split(self) -> bool:
        """Whether items may be computed in any order."""
        return all(start is None for start in self.starts)


def batch_kernel(body: Lambda, n: int, is_exact: bool = False) -> BatchKernel | None:
    """The kernel of a body over ``n`` items; None if NumPy has to compute it."""
    try:
        return _BatchLowering(is_exact, body=body, n=n).batch_kernel()
    except (NoKernel, TypeError):
        return None


@frozen(eq=False)
class _Sum:
    """A sum that the second loop adds to ``target``: the ``parts`` of each item, at each index in
    ``places`` plus each of ``offsets``.
    """

    target: Array
    parts: Array
    places: Array
    n_places: int
    offsets: tuple[int, ...]


@define(eq=False)
class _BatchLowering(Unrolling):
    """The lowering of one body.

    ``arrays``: the operands, by parameter; ``lengths``: of indexed axes, with the scalars that hold
    them; ``batch``: for the first element number of each operand that is loaded its array, its
    elements, and whether they belong to the current item; ``item``: the number of this item;
    ``offset``: its place within a block; ``outside``: whether an index was out of bounds;
    ``known_indices``: the result of ``checked_index``, by index and length; ``sums``: the sums of
    the second loop.
    """

    body: Lambda = field(kw_only=True)
    n: int = field(kw_only=True)
    arrays: dict[Arg, Array] = field(factory=dict)
    sizes: Array = field(factory=lambda: Array("sizes", _INDEX, ("", "k")))
    lengths: dict[int, Operand] = field(factory=dict)
    batch: dict[int, tuple[Array, int, bool]] = field(factory=dict)
    scratch: list[tuple[Array, int]] = field(factory=list)
    outputs: dict[Arg, Array] = field(factory=dict)
    sums: list[_Sum] = field(factory=list)
    item: Any = None
    offset: Any = None
    outside: Any = None
    binders: tuple[Local, ...] = ()  # the results of the bind that is being lowered, for one item
    known_indices: dict[tuple[int, int], Operand] = field(factory=dict)

    def batch_kernel(self) -> BatchKernel:
        """The kernel."""
        b = self.builder
        for place, param in enumerate(self.body.params):
            self.arrays[param] = Array(f"x{place}", param.type.dtype, ("", f"s{place}"))
        for place, arg in enumerate(self.body.ret.args):
            dtype = arg.type.dtype
            self.outputs[arg] = Array(f"y{place}", dtype, ("", f"t{place}"), is_written=True)
        flag = Array("outside", BOOL, ("", "f"), is_written=True)
        first, end = [self.size(place) for place in (0, 1)]
        self.load_shared()
        starts = self.result_starts()
        if any(start is not None for start in starts):
            outside = self.emit_blocks(first, end)
        else:
            outside = self.emit_items(first, b.sub(end, first))
        b.store(flag, (self.zero, self.zero), outside)
        inputs = [*self.arrays.values(), self.sizes, *[array for array, _ in self.scratch]]
        results = [*self.outputs.values(), flag]
        if len(inputs) + len(results) > MAX_ARRAYS or b.count > _MAX_SCALARS:
            raise NoKernel
        signature = "->".join([",".join(map(core_of, part)) for part in (inputs, results)])
        names = ("calls", *[array.extents[1] for array in (*inputs, *results)])
        kernel = Kernel(
            f"{KERNEL} of {len(self.body.binds)} binds on items",
            (*inputs, *results),
            tuple([b.extent(name) for name in names]),
            b.statements(),
            takes_contiguous=True,
        )
        scratch = tuple([(size, array.dtype) for array, size in self.scratch])
        return BatchKernel(kernel, signature, self.n, tuple(self.lengths), scratch, starts)

    # ---- operands ----

    @property
    def zero(self) -> Operand:
        return self.builder.number(0, _INDEX)

    def index(self, number: int) -> Operand:
        return self.builder.number(number, _INDEX)

    def size(self, place: int) -> Operand:
        """An element of ``sizes``, loaded before all loops."""
        return self.builder.load(self.sizes, (self.zero, self.index(place)), is_first=True)

    def length(self, n: int) -> Operand:
        """The scalar that holds the length of an indexed axis."""
        if n not in self.lengths:
            self.lengths[n] = self.size(2 + len(self.lengths))
        return self.lengths[n]

    def load_shared(self) -> None:
        """Number the elements of all operands; items are loaded at their first use."""
        for param, array in self.arrays.items():
            aval = param.type
            if is_batch(aval, self.n):
                shape = (1, *aval.shape[1:])
            elif is_shared(aval):
                shape = aval.shape
            else:
                continue  # only read at indices
            start, size = len(self.elements), math.prod(shape)
            self.batch[start] = array, size, is_batch(aval, self.n)
            self.starts.append(start)
            self.elements += [None] * size
            self.places[param] = np.arange(start, start + size).reshape(shape)

    def element(self, place: int) -> Operand:
        result = self.elements[place]
        if result is None:
            at = int(np.searchsorted(self.starts, place, "right")) - 1
            start = self.starts[at]
            array, size, is_item = self.batch[start]
            index = self.index(place - start)
            if is_item:
                index = self.place_in(self.item, size, place - start)
            result = self.builder.load(array, (self.zero, index), is_first=not is_item)
            self.elements[place] = result
        return result

    # ---- loops ----

    def emit_items(self, first: Operand, count: Operand) -> Operand:
        """Write the loop over items; returns whether an index was out of bounds."""
        b = self.builder
        with b.loop(count, b.number(False, BOOL)) as loop:
            self.offset, self.item = loop.index, b.add(first, loop.index)
            self.outside = loop.carried[0]
            for bind in self.body.binds:
                self.add(bind)
                if b.count > _MAX_SCALARS:
                    raise NoKernel
            for arg, array in self.outputs.items():
                if arg in self.places:
                    self.store_item(arg, array)
            loop.next(self.outside)
        return loop.results[0]

    def emit_blocks(self, first: Operand, end: Operand) -> Operand:
        """Write the loop over blocks of items, whose parts are added after each block."""
        b = self.builder
        bits, most = self.index(_BLOCK.bit_length() - 1), self.index(_BLOCK)
        count = b.let("shr", b.add(b.sub(end, first), self.index(_BLOCK - 1)), bits)
        with b.loop(count, b.number(False, BOOL), is_parallel=False) as loop:
            start = b.add(first, b.let("shl", loop.index, bits))
            left = b.sub(end, start)
            size = b.select(b.let("lt", left, most), left, most)
            is_outside = self.emit_items(start, size)
            with b.loop(size, is_parallel=False) as place:
                self.add_parts(place)
            loop.next(b.let("or", loop.carried[0], is_outside))
        return loop.results[0]

    def add_parts(self, item: Operand) -> None:
        """Add the parts of an item of the block to the results."""
        b = self.builder
        for scattered in self.sums:
            size = scattered.n_places * len(scattered.offsets)
            for n in range(scattered.n_places):
                place = b.load(
                    scattered.places, (self.zero, self.place_in(item, scattered.n_places, n))
                )
                for m, offset in enumerate(scattered.offsets):
                    at = self.place_in(item, size, n * len(scattered.offsets) + m)
                    target_index = (
                        self.zero,
                        b.add(place, self.index(offset)) if offset else place,
                    )
                    part = b.load(scattered.parts, (self.zero, at))
                    b.store(
                        scattered.target,
                        target_index,
                        b.add(b.load(scattered.target, target_index), part),
                    )

    def place_in(self, item: Operand, size: int, place: int) -> Operand:
        """The index of an element of an item in an array with items of this size."""
        b = self.builder
        first = item if size == 1 else b.let("mul", item, self.index(size))
        return b.add(first, self.index(place)) if place else first

    def store_item(self, arg: Arg, array: Array) -> None:
        """Store a result of the current item."""
        places = self.places[arg].ravel()
        for n, place in enumerate(places):
            index = self.place_in(self.item, len(places), n)
            self.builder.store(array, (self.zero, index), self.element(int(place)))

    # ---- binds ----

    def add(self, bind: Bind) -> None:
        kind = bind_kind(bind, self.n, self.is_exact)
        if kind == "gather":
            self.gather(bind)
        elif kind == "scatter":
            self.scatter(bind)
        elif kind == "item":
            super().add(self.bind_for_item(bind))
            for binder, local in zip(bind.binders, self.binders, strict=True):
                self.places[binder] = self.places.pop(local)
        else:
            raise NoKernel

    def bind_for_item(self, bind: Bind) -> Bind:
        """The bind for one item; its results are ``binders``."""
        attrs, kinds = resize_bind(bind, self.n, 1)
        self.binders = tuple([Local(aval) for aval in kinds])
        names: dict[Arg, Arg] = {}
        for arg in bind.args:
            if type(arg) is not Const and is_batch(arg.type, self.n):
                names[arg] = Local(arg.type.with_shape((1, *arg.type.shape[1:])))
                self.places[names[arg]] = self.places[arg]
        args = tuple([arg if type(arg) is Const else names.get(arg, arg) for arg in bind.args])
        result = Bind(self.binders, bind.op, args, attrs, bind.source)
        return axes_sum_of(result) if is_sum_to_shape(bind) else result

    def scalar_of(self, name: str | None, form: Any, operands: Sequence[Operand]) -> Operand:
        return form(self.builder, *operands)  # inline: LLVM does not vectorise calls

    def gather(self, bind: Bind) -> None:
        """Load elements of a table at indices."""
        entries, (table, *arrays) = gathered_item(bind, self.n), bind.args
        assert entries is not None
        array = self.arrays.get(table)
        if array is None:
            raise NoKernel  # a value of the kernel itself
        shape = (1, *bind.binders[0].type.shape[1:])
        b = self.builder
        places, offsets = self.indices(table.type.shape, entries, arrays)
        loaded: list[Operand] = [
            b.load(array, (self.zero, b.add(place, self.index(offset)) if offset else place))
            for place in places
            for offset in offsets
        ]
        self.places[bind.binders[0]] = self.new(loaded, shape)

    def indices(
        self, shape: tuple, entries: list, arrays: Sequence[Arg]
    ) -> tuple[list[Operand], tuple[int, ...]]:
        """(indices in a flat table, offsets): an index selects all of their sums, in this order."""
        b, remaining = self.builder, iter(arrays)
        # the offsets of the integers and slices; the strides of the index arrays
        rest, steps = np.zeros((), np.int64), []
        step = math.prod(shape)
        for entry, n in zip(entries, shape, strict=True):
            step //= n
            if type(entry) is Here:
                steps.append((self.places[next(remaining)], n, step))
            elif type(entry) is int:
                rest = rest + (entry + n if entry < 0 else entry) * step
            else:
                rest = rest[..., None] + np.arange(n)[entry] * step
        spread = np.broadcast_arrays(*[places for places, _, _ in steps])
        result = []
        for own in zip(*[places.ravel() for places in spread], strict=True):
            at: Operand | None = None
            for place, (_, n, size) in zip(own, steps, strict=True):
                index = self.checked_index(int(place), n)
                index = index if size == 1 else b.let("mul", index, self.index(size))
                at = index if at is None else b.add(at, index)
            assert at is not None
            result.append(at)
        return result, tuple(rest.ravel().tolist())

    def checked_index(self, place: int, n: int) -> Operand:
        """An index below ``n``, counted from the start; 0 for an index out of bounds."""
        b, length = self.builder, self.length(n)
        index = b.convert(self.element(place), _INDEX)
        checked = self.known_indices.get((id(index), n))
        if checked is not None:
            return checked
        wrapped = b.select(b.let("lt", index, self.zero), b.add(index, length), index)
        kinds = [b.bits(x, "u8") for x in (wrapped, length)]
        is_outside = b.let("ge", *kinds)
        self.outside = b.let("or", self.outside, is_outside)
        result = b.select(is_outside, self.zero, wrapped)
        self.known_indices[id(index), n] = result
        return result

    def scatter(self, bind: Bind) -> None:
        """Store the parts and indices of an item; ``add_parts`` adds them."""
        aval, target = bind.binders[0].type, self.outputs[bind.binders[0]]
        for entries, part, arrays in scattered_parts(bind, self.n):
            places, offsets = self.indices(aval.shape, entries, arrays)
            parts = [self.element(int(place)) for place in self.places[part].ravel()]
            if len(parts) != len(places) * len(offsets):
                raise NoKernel
            stored = self.store_scratch(aval.dtype, parts), self.store_scratch(_INDEX, places)
            self.sums.append(_Sum(target, *stored, len(places), offsets))

    def store_scratch(self, dtype: np.dtype, values: Sequence[Operand]) -> Array:
        """Store values of the current item in memory for the items of a block."""
        name, size = len(self.scratch), len(values)
        array = Array(f"z{name}", dtype, ("", f"r{name}"))
        self.scratch.append((array, size * _BLOCK))
        for n, value in enumerate(values):
            self.builder.store(array, (self.zero, self.place_in(self.offset, size, n)), value)
        return array

    def result_starts(self) -> tuple[int | None, ...]:
        """For each result the operand to which parts are added, see ``BatchKernel``."""
        starts: dict[Arg, int] = {}
        for bind in self.body.binds:
            if bind_kind(bind, self.n, self.is_exact) == "scatter":
                base = bind.args[0] if adds_to_operand(bind) else None
                places: list[Arg] = list(self.body.params)
                if base is not None and base not in places:
                    raise NoKernel
                starts[bind.binders[0]] = -1 if base is None else places.index(base)
        return tuple([starts.get(arg) for arg in self.body.ret.args])

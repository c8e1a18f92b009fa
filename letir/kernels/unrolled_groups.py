"""Kernels without loops for chains of operations on few numbers: each element is a scalar.

Chains of small arrays and numbers, such as unrolled loops, spend their time in calls, not in
arithmetic. While such a kernel is built, every value is an array of element numbers. Operations
that only move elements (indexing, joining, reshaping) are applied to these arrays and emit no code.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from attrs import define, field

from letir.ast.primitive import Primitive
from letir.ast.process_state import float_errors
from letir.ast.terms import NO_TYPE, Arg, Bind, Const, Lambda, Local
from letir.ast.types import ArrayType
from letir.eval.float_warnings import KERNEL
from letir.kernels.array_forms import array_form_of
from letir.kernels.elementary import ELEMENTARY
from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Array, Kernel, Number, Operand
from letir.kernels.scalar_forms import form_of, scalar_name
from letir.kernels.scalar_lowering import (
    DTYPES,
    MAX_ARRAYS,
    NoKernel,
    has_c_order,
    operand_dtypes,
)

# the most elements of a value in the group; operands need no code and may have more
MAX_ELEMENTS = 1 << 12
# the most loads and stores: LLVM's time grows with the square of their number
_MAX_ACCESSES = 600
# the fewest elements of a result whose unchanged elements a loop copies
_MIN_COPIED = 64
Places = np.ndarray  # contains element numbers


def unrolled_kernel(
    body: Lambda, is_exact: bool = False, keeps_order: bool = False
) -> tuple[Kernel, str] | None:
    """The kernel of a body on small arrays, and its signature as a generalized ufunc.

    None if an operation has no form. ``is_exact``: also None if the bits could differ from NumPy's.
    ``keeps_order``: also None if a result of NumPy would not be in C order.
    """
    try:
        return Unrolling(is_exact, keeps_order=keeps_order).kernel(body)
    except (NoKernel, TypeError):
        return None


def has_form(bind: Bind) -> bool:
    """Whether the record of a bind allows it to be part of an unrolled kernel."""
    op = bind.op
    if op.role == "fused":
        return all(map(has_form, bind.attrs["body"].binds))
    if not bind.args or op.moves_elements:
        is_plain = not (op.effect or op.random or op.holds_lambdas or op.is_user_defined)
        return is_plain and len(bind.args) <= op.moves_elements
    form = form_of if _is_elementwise(op) else array_form_of
    return form(scalar_name(bind)) is not None


def _is_elementwise(op: Primitive) -> bool:
    """Whether an operation has a scalar form, elementwise or as a function of Python numbers."""
    return op.elementwise or op.python_errors


@define(eq=False)
class Unrolling:
    """The elements of a kernel that is being built.

    ``elements``: the scalar of each element number; None for an element of an input that has not
    been loaded yet. ``inputs``: (first element number, array), of each input. ``places``: arrays in
    NumPy's memory order. ``accesses``: the loads and stores outside of loops. ``keeps_order``:
    whether there is no kernel if NumPy's results are not in C order.
    """

    is_exact: bool
    builder: Builder = field(factory=Builder)
    elements: list[Operand | None] = field(factory=list)
    inputs: list[tuple[int, Array, tuple]] = field(factory=list)
    starts: list[int] = field(factory=list)
    places: dict[Arg, Places] = field(factory=dict)
    accesses: int = 0
    keeps_order: bool = False

    def kernel(self, body: Lambda) -> tuple[Kernel, str]:
        """The kernel of a body, and its signature."""
        inputs = []
        for n, param in enumerate(body.params):
            inputs.append(self.add_input(n, param))
        for bind in body.binds:
            self.add(bind)
        results = [self.places[arg] for arg in body.ret.args]
        if (self.is_exact or self.keeps_order) and not all(map(has_c_order, results)):
            raise NoKernel  # a kernel makes arrays in C order, NumPy's have another order
        outputs = [
            self.store(f"y{n}", self.places[arg], known_type(arg.type).dtype)
            for n, arg in enumerate(body.ret.args)
        ]
        arrays = (*inputs, *outputs)
        if not outputs or len(arrays) > MAX_ARRAYS:
            raise NoKernel
        signature = "->".join([",".join(map(core_of, part)) for part in (inputs, outputs)])
        extent = self.builder.extent("calls")
        name = f"{KERNEL} of {len(body.binds)} binds"
        return Kernel(name, arrays, (extent,), self.builder.statements()), signature

    def add_input(self, n: int, param: Local) -> Array:
        """Number the elements of a parameter, an array of the kernel."""
        aval = known_type(param.type)
        axes = tuple([f"x{n}_{axis}" for axis in range(len(aval.shape))])
        start, size = len(self.elements), aval.size
        array = Array(f"x{n}", aval.dtype, ("", *axes))
        self.inputs.append((start, array, aval.shape))
        self.starts.append(start)
        self.elements += [None] * size
        self.places[param] = np.arange(start, start + size).reshape(aval.shape)
        return array

    def element(self, place: int) -> Operand:
        """The scalar of an element number; an element of an input is loaded at its first use."""
        result = self.elements[place]
        if result is None:
            start, array, shape = self.inputs[np.searchsorted(self.starts, place, "right") - 1]
            index = np.unravel_index(place - start, shape)
            indices = [self.builder.number(i, "int64") for i in (0, *index)]
            # loaded before all loops, because code in a loop and code after it may both read it
            result = self.builder.load(array, tuple(indices), is_first=True)
            self.note_accesses(1)
            self.elements[place] = result
        return result

    def new(self, scalars: Sequence[Operand], shape: tuple) -> Places:
        """New element numbers for scalars."""
        start = len(self.elements)
        self.elements += scalars
        return np.arange(start, start + len(scalars)).reshape(shape) if shape else np.array(start)

    def expect_c_order(self, values: Sequence[Places]) -> None:
        """Raise NoKernel for operands in another memory order, in which NumPy would add them."""
        if self.is_exact and not all(map(has_c_order, values)):
            raise NoKernel

    def store(self, name: str, places: Places, dtype: np.dtype) -> Array:
        """Store a result, an array of the kernel."""
        array = Array(name, dtype, ("", *map(str, np.shape(places))), is_written=True)
        changed = np.argwhere(~self.is_copied_by_loop(array, places))
        self.note_accesses(len(changed))
        for index in map(tuple, changed):
            indices = [self.builder.number(i, "int64") for i in (0, *index)]
            self.builder.store(array, tuple(indices), self.element(int(places[index])))
        return array

    def note_accesses(self, count: int) -> None:
        """Raise NoKernel for more loads and stores than LLVM compiles in a short time."""
        self.accesses += count
        if self.accesses > _MAX_ACCESSES:
            raise NoKernel

    def is_copied_by_loop(self, array: Array, places: Places) -> np.ndarray:
        """Whether a loop copies each element, from the input with most of the elements."""
        shape = np.shape(places)
        none = np.zeros(shape, bool)
        if none.size < _MIN_COPIED:
            return none
        for start, source, kind in self.inputs:
            if kind != shape or source.dtype != array.dtype:
                continue
            same = places == np.arange(start, start + none.size).reshape(shape)
            if 2 * np.sum(same) > none.size:
                self.copy(source, array, shape)
                return same
        return none

    def copy(self, source: Array, array: Array, shape: tuple) -> None:
        """Store all elements of an input into a result."""
        b = self.builder
        with ExitStack() as loops:
            indices = [loops.enter_context(b.loop(b.number(n, "int64"))) for n in shape]
            place = (b.number(0, "int64"), *indices)
            b.store(array, place, b.load(source, place))

    # ---- binds ----

    def add(self, bind: Bind) -> None:
        """Compute the elements of a bind's results."""
        op = bind.op
        if op.role == "fused":
            self.inline(bind)
            return
        if not bind.args:
            results = [self.constant(op.impl(np, **bind.attrs))]
        elif op.moves_elements:
            results = self.move_elements(bind)
        elif self.is_exact and not op.exact:
            raise NoKernel
        elif _is_elementwise(op):
            results = [self.elementwise(bind)]
        elif (whole := array_form_of(scalar_name(bind))) is not None:
            results = [self.apply_array_form(bind, whole)]
        else:
            raise NoKernel
        for binder, places in zip(bind.binders, results, strict=True):
            aval = known_type(binder.type)
            if np.shape(places) != aval.shape or aval.size > MAX_ELEMENTS:
                raise NoKernel
            self.places[binder] = np.asarray(places)

    def inline(self, bind: Bind) -> None:
        """Compute the elements of all binds in the body of a group."""
        body = bind.attrs["body"]
        for param, arg in zip(body.params, bind.args, strict=True):
            if type(arg) is Const:
                raise NoKernel
            self.places[param] = self.places[arg]
        for inner in body.binds:
            self.add(inner)
        for binder, arg in zip(bind.binders, body.ret.args, strict=True):
            self.places[binder] = self.places[arg]

    def move_elements(self, bind: Bind) -> list[Places]:
        """The results of an operation that moves elements, computed on element numbers."""
        dtype, op = bind.binders[0].type.dtype, bind.op
        if not all(np.can_cast(d, dtype) for d in operand_dtypes(bind)):
            raise NoKernel
        operands = [self.operand(arg, dtype) for arg in bind.args]
        try:
            moved = op.impl(np, *operands, **bind.attrs)
        except ValueError:  # NumPy writes an array of one boolean as an element, but no other one
            raise NoKernel from None
        results = list(moved) if op.results is not None else [moved]
        if any(np.asarray(places).dtype.kind != "i" for places in results):
            raise NoKernel
        return results

    def constant(self, value: Any) -> Places:
        value = np.asarray(value)
        if value.dtype not in DTYPES or value.size > MAX_ELEMENTS:
            raise NoKernel
        return self.new([Number(x) for x in value.ravel()], value.shape)

    def operands(self, bind: Bind) -> list[Places]:
        """The element numbers of the operands, converted to the dtypes of NumPy's inner loop."""
        dtypes = operand_dtypes(bind)
        return [self.operand(arg, d) for arg, d in zip(bind.args, dtypes, strict=True)]

    def operand(self, arg: Arg, dtype: np.dtype) -> Places:
        if type(arg) is Const:
            if type(arg.value) is float and dtype == np.float64:  # no error is possible
                return self.new([self.builder.number(arg.value, dtype)], ())
            with float_errors(all="raise"):
                try:
                    return self.new([self.builder.number(arg.value, dtype)], ())
                except (ArithmeticError, ValueError):
                    raise NoKernel from None
        places = self.places[arg]
        if known_type(arg.type).dtype == dtype:
            return places
        if arg.type.dtype.kind == "f" and dtype.kind in "iu":
            raise NoKernel  # NumPy's result depends on the machine beyond the range
        scalars = [self.builder.convert(self.element(int(p)), dtype) for p in places.ravel()]
        return _laid_like(places, self.new(scalars, places.shape))

    def elementwise(self, bind: Bind) -> Places:
        """The scalar form for each element of the result."""
        name = self.name_of(bind)
        form: Any = form_of(name)
        if form is None:
            raise NoKernel
        aval, parts = known_type(bind.binders[0].type), self.operands(bind)
        # the other form takes twice as long for numbers
        spread = [np.broadcast_to(p, aval.shape).ravel() for p in parts] if aval.shape else ()
        # calls of a function follow each other, so that they are computed together
        rows = [[self.element(int(p)) for p in places] for places in zip(*spread, strict=True)]
        rows = rows if aval.shape else [[self.element(int(p)) for p in parts]]
        results = [self.scalar_of(name, form, operands) for operands in rows]
        if aval.dtype.kind in "iu" and any(x.dtype.kind == "f" for x in results):
            raise NoKernel
        scalars = [self.builder.convert(x, aval.dtype) for x in results]
        new = self.new(scalars, aval.shape)
        return _laid_like(np.asarray(sum(parts)), new) if aval.shape else new

    def scalar_of(self, name: str | None, form: Any, operands: Sequence[Operand]) -> Operand:
        """The result of a scalar form, which is a function of the kernel if it is long."""
        if name in ELEMENTARY:
            return self.builder.call(name, form, *operands)
        return form(self.builder, *operands)

    def name_of(self, bind: Bind) -> str | None:
        """The name of a bind's scalar form."""
        return scalar_name(bind)

    def apply_array_form(self, bind: Bind, form: Callable) -> Places:
        """Apply an array form to the arrays of scalars of the operands."""
        operands = []
        aval = known_type(bind.binders[0].type)
        # NumPy lays out other results with several axes like the operands
        is_in_c_order = len(aval.shape) < 2 or bind.op.product == "matrix"
        for places in self.operands(bind):
            self.expect_c_order([places])
            if self.keeps_order and not (is_in_c_order or has_c_order(places)):
                raise NoKernel
            scalars = np.empty(places.shape, object)
            for index in np.ndindex(places.shape):
                scalars[index] = self.element(int(places[index]))
            operands.append(scalars)
        computed = np.asarray(form(self.builder, *operands, **bind.attrs), object)
        return self.new(
            [self.builder.convert(x, aval.dtype) for x in computed.ravel()], computed.shape
        )


def known_type(aval: ArrayType | None) -> ArrayType:
    """The type of a value of the group, whose shape and dtype are known. It has elements."""
    if aval is None or aval is NO_TYPE or aval.dtype not in DTYPES:
        raise NoKernel
    # a generalized ufunc gives no empty arrays, and the reduction of one has no first element
    if any(type(n) is not int or not n for n in aval.shape):
        raise NoKernel
    return aval


def _laid_like(x: Places, places: Places) -> Places:
    """``places`` in the memory order in which NumPy's ufuncs give results for ``x``."""
    if has_c_order(x):
        return places
    result = np.empty_like(x)
    result[...] = places
    return result


def core_of(array: Array) -> str:
    """The core dimensions of an array in a signature: names for inputs, numbers for results."""
    return f"({','.join(array.extents[1:])})"

"""Groups of operations on few numbers as kernels without loops: each element is a scalar.

Chains of small arrays and numbers, as of an unrolled loop, spend their time in calls, not in
arithmetic. Here each value of the group is an array of element numbers: operations that only move
elements (indexing, joining, reshaping) move these numbers, when the kernel is made.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import define, field

from letir.ast.primitive import Primitive
from letir.ast.terms import NO_TYPE, Arg, Bind, Const, Lambda, Local
from letir.ast.types import ArrayType
from letir.eval.float_warnings import KERNEL
from letir.kernels.array_forms import array_form_of
from letir.kernels.elementary import ELEMENTARY
from letir.kernels.loop_language import Array, Builder, Kernel, Number, Operand
from letir.kernels.scalar_forms import form_of, scalar_name
from letir.kernels.scalar_lowering import DTYPES, MOST_ARRAYS, NoKernel, operand_dtypes

MOST_ELEMENTS = 1 << 12  # of a value of the group; those of operands are only numbered
Places = np.ndarray  # of element numbers


def unrolled_kernel(body: Lambda, is_exact: bool = False) -> tuple[Kernel, str] | None:
    """(the kernel of a body on small arrays, its signature as a generalized ufunc).

    None if an operation has no form. ``is_exact``: only with the bits that NumPy computes.
    """
    try:
        return Unrolling(is_exact).kernel(body)
    except (NoKernel, TypeError):
        return None


def has_form(bind: Bind) -> bool:
    """Whether a bind may be part of an unrolled kernel, from its record alone."""
    op = bind.op
    if op.role == "fused":
        return all(map(has_form, bind.attrs["body"].binds))
    if not bind.args or op.moves_elements:
        is_plain = not (op.effect or op.random or op.holds_lambdas or op.is_users)
        return is_plain and len(bind.args) <= op.moves_elements
    form = form_of if _is_elementwise(op) else array_form_of
    return form(scalar_name(bind)) is not None


def _is_elementwise(op: Primitive) -> bool:
    """Whether an operation has a scalar form; functions of Python's numbers have no other."""
    return op.elementwise or op.python_errors


@define(eq=False)
class Unrolling:
    """The elements of a kernel under construction.

    ``elements``: the scalar of each element number; None for an element of an input that has not
    been loaded yet. ``inputs``: (first element number, array), of each input.
    """

    is_exact: bool
    builder: Builder = field(factory=Builder)
    elements: list[Operand | None] = field(factory=list)
    inputs: list[tuple[int, Array, tuple]] = field(factory=list)
    starts: list[int] = field(factory=list)
    places: dict[Arg, Places] = field(factory=dict)

    def kernel(self, body: Lambda) -> tuple[Kernel, str]:
        """The kernel of a body, and its signature."""
        inputs = []
        for n, param in enumerate(body.params):
            inputs.append(self.add_input(n, param))
        for bind in body.binds:
            self.add(bind)
        outputs = [
            self.store(f"y{n}", self.places[arg], known_type(arg.type).dtype)
            for n, arg in enumerate(body.ret.args)
        ]
        arrays = (*inputs, *outputs)
        if not outputs or len(arrays) > MOST_ARRAYS:
            raise NoKernel
        signature = "->".join([",".join(map(core_of, part)) for part in (inputs, outputs)])
        extent = self.builder.extent("calls")
        name = f"{KERNEL} of {len(body.binds)} binds"
        functions = tuple(self.builder.functions.values())
        return Kernel(name, arrays, (extent,), self.builder.taken(), functions), signature

    def add_input(self, n: int, param: Local) -> Array:
        """Number the elements of a parameter, an array of the kernel."""
        kind = known_type(param.type)
        axes = tuple([f"x{n}_{axis}" for axis in range(len(kind.shape))])
        start, size = len(self.elements), kind.size
        array = Array(f"x{n}", kind.dtype, ("", *axes))
        self.inputs.append((start, array, kind.shape))
        self.starts.append(start)
        self.elements += [None] * size
        self.places[param] = np.arange(start, start + size).reshape(kind.shape)
        return array

    def element(self, place: int) -> Operand:
        """The scalar of an element number, loaded when it is first asked for."""
        found = self.elements[place]
        if found is None:
            start, array, shape = self.inputs[np.searchsorted(self.starts, place, "right") - 1]
            index = np.unravel_index(place - start, shape)
            indices = [self.builder.number(i, "int64") for i in (0, *index)]
            # before all loops: it may be read in one and after it
            found = self.builder.load(array, tuple(indices), is_first=True)
            self.elements[place] = found
        return found

    def new(self, scalars: Sequence[Operand], shape: tuple) -> Places:
        """New element numbers for scalars."""
        start = len(self.elements)
        self.elements += scalars
        return np.arange(start, start + len(scalars)).reshape(shape)

    def store(self, name: str, places: Places, dtype: np.dtype) -> Array:
        """Store a result, an array of the kernel."""
        array = Array(name, dtype, ("", *map(str, np.shape(places))), is_written=True)
        for index in np.ndindex(np.shape(places)):
            indices = [self.builder.number(i, "int64") for i in (0, *index)]
            self.builder.store(array, tuple(indices), self.element(int(places[index])))
        return array

    # ---- binds ----

    def add(self, bind: Bind) -> None:
        """The elements of the results of a bind."""
        op = bind.op
        if op.role == "fused":
            self.inline(bind)
            return
        if not bind.args:
            results = [self.constant(op.impl(np, **bind.attrs))]
        elif op.moves_elements:
            results = self.moved(bind)
        elif self.is_exact and not op.exact:
            raise NoKernel
        elif _is_elementwise(op):
            results = [self.elementwise(bind)]
        elif (whole := array_form_of(scalar_name(bind))) is not None:
            results = [self.whole(bind, whole)]
        else:
            raise NoKernel
        for binder, places in zip(bind.binders, results, strict=True):
            kind = known_type(binder.type)
            if np.shape(places) != kind.shape or kind.size > MOST_ELEMENTS:
                raise NoKernel
            self.places[binder] = np.asarray(places)

    def inline(self, bind: Bind) -> None:
        """The elements of the binds of a group."""
        body = bind.attrs["body"]
        for param, arg in zip(body.params, bind.args, strict=True):
            if type(arg) is Const:
                raise NoKernel
            self.places[param] = self.places[arg]
        for inner in body.binds:
            self.add(inner)
        for binder, arg in zip(bind.binders, body.ret.args, strict=True):
            self.places[binder] = self.places[arg]

    def moved(self, bind: Bind) -> list[Places]:
        """The results of an operation that moves elements, computed on element numbers."""
        made, op = bind.binders[0].type.dtype, bind.op
        if any(d != made for d in operand_dtypes(bind)):
            raise NoKernel
        found = op.impl(np, *self.operands(bind), **bind.attrs)
        results = list(found) if op.results is not None else [found]
        if any(np.asarray(places).dtype.kind != "i" for places in results):
            raise NoKernel
        return results

    def constant(self, value: Any) -> Places:
        value = np.asarray(value)
        if value.dtype not in DTYPES or value.size > MOST_ELEMENTS:
            raise NoKernel
        return self.new([Number(x) for x in value.ravel()], value.shape)

    def operands(self, bind: Bind) -> list[Places]:
        """The places of the operands, with the dtypes in which NumPy takes them."""
        dtypes = operand_dtypes(bind)
        return [self.operand(arg, d) for arg, d in zip(bind.args, dtypes, strict=True)]

    def operand(self, arg: Arg, dtype: np.dtype) -> Places:
        if type(arg) is Const:
            with np.errstate(all="raise"):
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
        return self.new(scalars, places.shape)

    def elementwise(self, bind: Bind) -> Places:
        """The scalar form for each element of the result."""
        name = self.name_of(bind)
        form: Any = form_of(name)
        if form is None:
            raise NoKernel
        kind = known_type(bind.binders[0].type)
        spread = [np.broadcast_to(p, kind.shape).ravel() for p in self.operands(bind)]
        scalars = []
        for places in zip(*spread, strict=True):
            operands = [self.element(int(p)) for p in places]
            if name in ELEMENTARY:
                found = self.builder.call(name, form, *operands)
            else:
                found = form(self.builder, *operands)
            if found.dtype.kind == "f" and kind.dtype.kind in "iu":
                raise NoKernel
            scalars.append(self.builder.convert(found, kind.dtype))
        return self.new(scalars, kind.shape)

    def name_of(self, bind: Bind) -> str | None:
        """The name of the scalar form of a bind."""
        return scalar_name(bind)

    def whole(self, bind: Bind, form: Callable) -> Places:
        """The array form, on arrays of scalars."""
        operands = []
        for places in self.operands(bind):
            scalars = np.empty(places.shape, object)
            for index in np.ndindex(places.shape):
                scalars[index] = self.element(int(places[index]))
            operands.append(scalars)
        kind = known_type(bind.binders[0].type)
        found = np.asarray(form(self.builder, *operands, **bind.attrs), object)
        return self.new([self.builder.convert(x, kind.dtype) for x in found.ravel()], found.shape)


def known_type(kind: ArrayType | None) -> ArrayType:
    """The type of a value of the group, whose shape and dtype are known."""
    if kind is None or kind is NO_TYPE or kind.dtype not in DTYPES:
        raise NoKernel
    if any(type(n) is not int for n in kind.shape):
        raise NoKernel
    return kind


def core_of(array: Array) -> str:
    """The core dimensions of an array in a signature: names for inputs, numbers for results."""
    return f"({','.join(array.extents[1:])})"

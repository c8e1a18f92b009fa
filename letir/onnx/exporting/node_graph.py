"""``Graph``: an ONNX graph that is being written, and the table of export rules.

A rule appends the nodes of one bind and returns the names of its results. Rules of operations that
are a single node without attributes are strings in the records themselves.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
from attrs import define, field

from letir.ast.sizes.size import Quotient, Size
from letir.ast.terms import Arg, Bind, Const, Lambda, Local
from letir.ast.types import ArrayType, Undef
from letir.onnx.package import onnx_package

COMPLEX = "complex numbers, for which ONNX has next to no operations"
UNDEFINED = "an undefined cotangent; export the program of letir.grad"
_rules: dict[str, Callable] = {}
_programs: dict[str, Callable] = {}
_refusals: dict[str, str] = {}
_cautions: dict[str, str] = {}
_not_finite_where_raising: set[str] = set()


class Unexportable(Exception):
    """Raised by a rule for a bind that ONNX cannot express, with the reason."""


def exports_op(*names: str) -> Callable[[Callable], Callable]:
    """Register ``rule(graph, bind)``, which returns the names of the results, for operations."""
    return registers_in(_rules, names)


def registers_in(table: dict[str, Callable], names: Iterable[str]) -> Callable:
    """A decorator that enters a function into ``table`` under these names."""

    def registered(function: Callable) -> Callable:
        table.update(dict.fromkeys(names, function))
        return function

    return registered


def exports_as(**words: str) -> Callable[[Callable], Callable]:
    """Register ``rule(graph, bind, word)`` for operations, each with its own ``word``."""

    def registered(rule: Callable) -> Callable:
        for name, word in words.items():
            _rules[name] = partial(rule, word=word)
        return rule

    return registered


def computes_op(*names: str) -> Callable[[Callable], Callable]:
    """Register ``program(*values, **attrs)``, which computes the named operations with letir
    operations that can be exported.
    """
    return registers_in(_programs, names)


def refuses_operations(reason: str, *names: str) -> None:
    """Register the reason why operations cannot be exported."""
    _refusals.update(dict.fromkeys(names, reason))


def warns_of_operations(text: str, *names: str) -> None:
    """Register a warning for users about operations whose numbers may differ from NumPy's."""
    _cautions.update(dict.fromkeys(names, text))


def not_finite_where_raising(*names: str) -> None:
    """State that results of operations are not finite where NumPy raises an error."""
    _not_finite_where_raising.update(names)


def shows_errors(name: str) -> bool:
    """Whether the results of an operation are not finite where NumPy raises an error."""
    return name in _not_finite_where_raising


def caution_of(name: str) -> str | None:
    """The warning for users of the exported operation with this name, None if there is none."""
    return _cautions.get(name)


def rule_for(name: str) -> Callable | None:
    """The rule of the operation with this name."""
    return _rules.get(name)


def program_for(name: str) -> Callable | None:
    """The program of exportable operations that computes the operation with this name."""
    return _programs.get(name)


def refusal_of(name: str) -> str | None:
    """Why the operation with this name has no form in ONNX."""
    return _refusals.get(name)


def registered_names() -> set[str]:
    """The names of all operations with a rule, a program, or a reason why there is none."""
    return {*_rules, *_programs, *_refusals}


@define(eq=False)
class UniqueNames:
    """Unique names of values and nodes, shared by a graph and its subgraphs."""

    taken: set[str] = field(factory=set)
    numbers: Any = field(factory=lambda: itertools.count(1))

    def new(self, stem: str) -> str:
        """A name that begins with ``stem`` and is not taken."""
        name = stem
        while name in self.taken:
            name = f"{stem}_{next(self.numbers)}"
        self.taken.add(name)
        return name


class Emitter(Protocol):
    """The functions that rules may call; ``letir.onnx.exporting.node_emission`` implements them."""

    def body(self, g: "Graph", fn: Lambda, operands: Sequence) -> list[str]:
        """Append the nodes of a program; the names of its results."""

    def emitted(self, g: "Graph", bind: Bind) -> str | Sequence[str]:
        """Append the nodes of a bind; the name or the names of its results."""

    def recorded(self, g: "Graph", fn: Lambda, operands: Sequence[str]) -> list[str]:
        """Append the nodes of a program that computes a part of a bind."""

    def parts(self, g: "Graph", bind: Bind) -> Sequence[str]:
        """Append the nodes of the decomposition of a bind."""

    def written(self, g: "Graph", bind: Bind, program: Callable) -> Sequence[str]:
        """Append the nodes of a function of NumPy's that computes a bind."""


@define(eq=False)
class Graph:
    """An ONNX graph that is being built.

    ``graph("Add", x, y)`` appends a node and returns the name of its result.
    """

    opset: int
    emitter: "Emitter"
    names: UniqueNames = field(factory=UniqueNames)
    nodes: list = field(factory=list)
    initializers: list = field(factory=list)
    values: dict[Local, str] = field(factory=dict)
    arrays: dict[Any, str] = field(factory=dict)  # by dtype, shape and bytes
    imaginary: dict[str, str] = field(factory=dict)  # by the name of the real part
    constants: dict[str, np.ndarray] = field(factory=dict)  # the constant arrays, by name
    inputs: list[tuple[Local, str]] = field(factory=list)
    makers: dict[Local, Bind] = field(factory=dict)  # the bind that made a value
    unread: set[Local] = field(factory=set)  # values on which no result depends
    parent: "Graph | None" = None
    bind: Bind | None = None  # the bind whose nodes are being appended
    # (name of a condition, its bind, what holds then) of guards
    checks: list[tuple[str, Bind, str]] = field(factory=list)

    # ---- nodes ----

    def __call__(self, kind: str, *inputs: str, results: int = 1, domain: str = "", **attrs) -> Any:
        """Append a node; the name of its result, or a tuple of names with several ``results``."""
        stem = kind.lower()
        outputs = [self.names.new(f"{stem}_{next(self.names.numbers)}") for _ in range(results)]
        self.append(kind, inputs, outputs, domain, attrs)
        return outputs[0] if results == 1 else tuple(outputs)

    def append(
        self, kind: str, inputs: Iterable[str], outputs: Sequence[str], domain: str, attrs: dict
    ) -> None:
        """Append a node with these names of its results, and the bind's source line."""
        onnx = onnx_package()
        node = onnx.NodeProto(op_type=kind, input=inputs, output=outputs, domain=domain)
        node.name = outputs[0]
        node.attribute.extend(
            [onnx.helper.make_attribute(k, v) for k, v in attrs.items() if v is not None]
        )
        if self.bind is not None:
            node.metadata_props.add(key="operation", value=self.bind.op.name)
            source = self.bind.source
            if source is not None:
                node.metadata_props.add(key="source", value=source.short)
        self.nodes.append(node)

    def array(self, value: Any, dtype: Any = None) -> str:
        """The name of a constant array; equal small ones share one initializer."""
        array = np.asarray(value, dtype=dtype)
        # ascontiguousarray would make a 0-d array 1-d
        array = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        key = (array.dtype.str, array.shape, array.tobytes()) if array.size <= 64 else id(array)
        top = self.top
        if key not in top.arrays:
            name = self.names.new(f"constant_{next(self.names.numbers)}")
            top.initializers.append(onnx_package().numpy_helper.from_array(array, name))
            top.arrays[key] = name
            top.constants[name] = array
            if array.size > 64:
                return top.arrays.pop(key)  # an id may be reused for another array
        return top.arrays[key]

    @property
    def top(self) -> "Graph":
        """The main graph, whose values all subgraphs may read."""
        graph = self
        while graph.parent is not None:
            graph = graph.parent
        return graph

    # ---- operands ----

    def operand(self, arg: Arg, dtype: np.dtype | None = None) -> str:
        """The name of an operand, cast to ``dtype``; an empty name for None."""
        if type(arg) is Const:
            if arg.value is None:
                return ""
            if is_undefined(arg):
                raise Unexportable(UNDEFINED)
            if not isinstance(arg.value, int | float | complex):
                raise Unexportable(f"the operand {arg.value!r}")
            target = arg.type.dtype if dtype is None else np.dtype(dtype)
            if target.kind == "c":
                parts = arg.value.real, arg.value.imag
                return self.paired(*[self.array(part, real_dtype(target)) for part in parts])
            return self.array(arg.value, target)
        name = self.value(arg)
        return name if dtype is None else self.cast(name, arg.type.dtype, dtype)

    def operands(self, bind: Bind, dtype: np.dtype | None = None) -> list[str]:
        """The names of all operands of a bind, cast to ``dtype``."""
        return [self.operand(arg, dtype) for arg in bind.args]

    def value(self, local: Local) -> str:
        """The name of a local's value, here or in an outer graph."""
        graph: Graph | None = self
        while graph is not None:
            name = graph.values.get(local)
            if name is not None:
                return name
            graph = graph.parent
        raise Unexportable("an operand could not be exported")

    def cast(self, name: str, have: np.dtype, want: Any) -> str:
        """A value of dtype ``have`` as dtype ``want``."""
        want = np.dtype(want)
        if have == want:
            return name
        if "c" in (have.kind, want.kind):
            return self._complex_cast(name, have, want)
        return self("Cast", name, to=tensor_dtype(want))

    # ---- complex values: two real ones, known by the name of the first ----

    def paired(self, re: str, im: str) -> str:
        """The complex value with these parts."""
        pairs = self.top.imaginary
        name = re if pairs.get(re, im) == im else self("Identity", re)
        pairs[name] = im
        return name

    def parts(self, name: str) -> tuple[str, str]:
        """The real and the imaginary part of a complex value."""
        return name, self.top.imaginary[name]

    def zeros_like(self, name: str, dtype: np.dtype) -> str:
        """Zeros in the shape of a value."""
        zero = onnx_package().numpy_helper.from_array(np.zeros(1, dtype))
        return self("ConstantOfShape", self("Shape", name), value=zero)

    def _complex_cast(self, name: str, have: np.dtype, want: np.dtype) -> str:
        """A cast from or to complex numbers."""
        part, whole = real_dtype(have), real_dtype(want)
        re, im = self.parts(name) if have.kind == "c" else (name, "")
        if want.kind == "b":
            zero = self.array(0, part)
            return self("Or", *[self("Not", self("Equal", x, zero)) for x in (re, im)])
        if want.kind != "c":
            return self.cast(re, part, want)
        re = self.cast(re, part, whole)
        return self.paired(re, self.cast(im, part, whole) if im else self.zeros_like(re, whole))

    # ---- sizes ----

    def ints(self, numbers: Iterable[int | Size]) -> str:
        """A 1-d int64 array of numbers, some of which may be symbolic sizes."""
        numbers = list(numbers)
        if all(type(n) is not Size for n in numbers):
            return self.array(numbers, np.int64)
        parts = [self("Reshape", self.number(n), self.array([1], np.int64)) for n in numbers]
        return parts[0] if len(parts) == 1 else self("Concat", *parts, axis=0)

    def number(self, n: int | Size) -> str:
        """A number or a symbolic size as a 0-d int64 array."""
        if type(n) is not Size:
            return self.array(n, np.int64)
        total = None
        for names, factor in n.terms:
            product = self.array(factor, np.int64)
            for name in names:
                product = self("Mul", product, self._size(name))
            total = product if total is None else self("Add", total, product)
        return total or self.array(0, np.int64)

    def _size(self, name: str) -> str:
        """The value of a name of a size, read from the shape of an input."""
        if isinstance(name, Quotient):
            # Div rounds toward 0, which is floor division, as sizes are not negative
            return self("Div", self.number(name.of), self.array(name.by, np.int64))
        for local, value in self.top.inputs:
            for axis, n in enumerate(local.type.shape):
                result = self._size_from_axis(name, n, value, axis)
                if result is not None:
                    return result
        raise Unexportable(f"the size {name} is not a size of an input")

    def _size_from_axis(self, name: str, n: Any, value: str, axis: int) -> str | None:
        """The value of ``name`` from an axis with the size ``factor * name + rest``."""
        match n.terms if type(n) is Size else ():
            case (((only,), factor),) | (((only,), factor), ((), _)) if only == name:
                shape = self("Shape", value)
                result = self("Gather", shape, self.array(axis, np.int64))
                rest = dict(n.terms).get((), 0)
                if rest:
                    result = self("Sub", result, self.array(rest, np.int64))
                return result if factor == 1 else self("Div", result, self.array(factor, np.int64))
        return None

    # ---- shapes ----

    def reshape(self, name: str, shape: Iterable[int | Size]) -> str:
        """A value in another shape, in which a size of 0 means 0 (allowzero)."""
        return self("Reshape", name, self.ints(shape), allowzero=1)

    def squeeze(self, name: str, axes: Sequence[int]) -> str:
        """A value without these axes."""
        return self("Squeeze", name, self.array(axes, np.int64)) if len(axes) else name

    def unsqueeze(self, name: str, axes: Sequence[int]) -> str:
        """A value with axes of length 1 at these places of the result."""
        return self("Unsqueeze", name, self.array(axes, np.int64)) if len(axes) else name

    def transpose(self, name: str, axes: Sequence[int]) -> str:
        """A value with its axes in another order."""
        moved = list(axes) != list(range(len(axes)))
        return self("Transpose", name, perm=list(axes)) if moved else name

    # ---- bodies ----

    def subgraph(self) -> "Graph":
        """A graph inside this one, for a body."""
        inner = Graph(self.opset, self.emitter, names=self.names, parent=self)
        inner.bind = self.bind
        return inner


def is_complex(aval: ArrayType) -> bool:
    """Whether a type is complex."""
    return aval.dtype.kind == "c"


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts of complex numbers; other dtypes are returned unchanged."""
    return np.empty(0, dtype).real.dtype


def is_undefined(arg: Arg) -> bool:
    """Whether an operand is a symbolic zero of a gradient program."""
    return type(arg) is Const and arg.value is Undef


def tensor_dtype(dtype: np.dtype) -> int:
    """ONNX's number for a dtype. Raises Unexportable for a dtype that ONNX lacks."""
    try:
        return onnx_package().helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    except (KeyError, ValueError):
        raise Unexportable(f"the dtype {dtype}") from None


def value_info(name: str, aval: ArrayType) -> Any:
    """The declaration of an input or output; a symbolic size is a named dimension."""
    shape = [str(n) if type(n) is Size else int(n) for n in aval.shape]
    return onnx_package().helper.make_tensor_value_info(name, tensor_dtype(aval.dtype), shape)


def result_types(bind: Bind) -> list[ArrayType]:
    """The types of a bind's results. Raises Unexportable where one is not known."""
    types = [binder.type for binder in bind.binders]
    if any(aval is None for aval in types):
        raise Unexportable("the type of a result is not known")
    return types

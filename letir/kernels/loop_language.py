"""The loop language: kernels as loops over arrays with scalar instructions in them.

A ``Kernel`` has array parameters and a list of statements. ``Let`` computes a scalar by an
instruction, ``Load`` and ``Store`` read and write an element, ``Loop`` repeats its statements for
each index below an extent, and ``While`` repeats them as long as a condition is true. Both loops
may carry scalars from step to step. ``str(kernel)`` prints the program.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define, field, frozen

from letir.kernels.scalar_instructions import result_dtype


@frozen(eq=False)
class Scalar:
    """A scalar variable, assigned once."""

    dtype: np.dtype
    name: str

    def __str__(self):
        return self.name


@frozen
class Number:
    """A constant scalar: its bits are those of ``value``, a NumPy scalar."""

    value: np.generic

    @property
    def dtype(self) -> np.dtype:
        return self.value.dtype

    def __str__(self):
        return str(self.value)


Operand = Scalar | Number


@frozen
class Array:
    """An array parameter: ``extents`` are the names of its axes' lengths, "" for a broadcast axis.

    A broadcast axis has the stride 0. ``is_written``: the kernel stores into it.
    """

    name: str
    dtype: np.dtype
    extents: tuple[str, ...]
    is_written: bool = False

    def __str__(self):
        axes = ", ".join(n or "1" for n in self.extents)
        return f"{'out ' * self.is_written}{self.name}: {self.dtype}[{axes}]"


@frozen(eq=False)
class Let:
    """``result = name(operands)``, an instruction.

    ``reassociates``: LLVM may change the order of a chain of such instructions.
    """

    result: Scalar
    name: str
    operands: tuple[Operand, ...]
    reassociates: bool = False

    def __str__(self):
        name = self.name + " reassociates" * self.reassociates
        return f"{self.result}: {self.result.dtype} = {name} {_joined(self.operands)}"


@frozen(eq=False)
class Load:
    """``result = array[indices]``, or its ``part``, "real" or "imag", of a complex array."""

    result: Scalar
    array: Array
    indices: tuple[Operand, ...]
    part: str = ""

    def __str__(self):
        return f"{self.result}: {self.result.dtype} = {_place_text(self)}"


@frozen(eq=False)
class Store:
    """``array[indices] = value``, or only its ``part``, "real" or "imag"."""

    array: Array
    indices: tuple[Operand, ...]
    value: Operand
    part: str = ""

    def __str__(self):
        return f"{_place_text(self)} = {self.value}"


@frozen(eq=False)
class Loop:
    """Run ``body`` for each ``index`` from 0 up to, but not including, ``extent``.

    ``carried``: for each carried scalar a tuple of the scalar in the body, its initial value, its
    value for the next step, and the scalar that holds its last value after the loop.
    ``is_parallel``: no step reads an element that another step stores.
    """

    index: Scalar
    extent: Operand
    body: tuple["Statement", ...]
    carried: tuple[tuple[Scalar, Operand, Operand, Scalar], ...] = ()
    is_parallel: bool = True


@frozen(eq=False)
class While:
    """Run ``test`` and ``body`` in turn until the ``condition`` that ``test`` computes is false.

    ``carried``: as in ``Loop``; the last values are the values when the condition is false.
    """

    test: tuple["Statement", ...]
    condition: Operand
    body: tuple["Statement", ...]
    carried: tuple[tuple[Scalar, Operand, Operand, Scalar], ...]


@frozen(eq=False)
class Function:
    """A function of scalars that a kernel calls, so that its code exists only once.

    ``body`` contains the instructions that compute ``result`` from ``params``.
    """

    name: str
    params: tuple[Scalar, ...]
    body: tuple["Statement", ...]
    result: Operand

    def __str__(self):
        head = ", ".join([f"{p}: {p.dtype}" for p in self.params])
        lines = [f"function {self.name}({head}) -> {self.result.dtype} {{"]
        lines += [f"  {one}" for one in self.body]
        return "\n".join([*lines, f"  return {self.result}", "}"])


@frozen(eq=False)
class Call:
    """``result = function(operands)``."""

    result: Scalar
    function: Function
    operands: tuple[Operand, ...]

    def __str__(self):
        call = f"{self.function.name}({_joined(self.operands)})"
        return f"{self.result}: {self.result.dtype} = {call}"


Statement = Let | Load | Store | Loop | While | Call


@frozen(eq=False)
class Kernel:
    """A kernel: its array parameters, the extents that its caller passes, and its statements.

    ``takes_contiguous``: whether all arrays must be contiguous along the last extent. ``columns``:
    the length of the last extent if rows must follow each other without gaps as well, else 0.

    >>> b = Builder()
    >>> x, y = Array("x", np.dtype("f8"), ("n",)), Array("y", np.dtype("f8"), ("n",), True)
    >>> n = b.extent("n")
    >>> with b.loop(n) as i:
    ...     b.store(y, (i,), b.add(b.load(x, (i,)), b.number(1.0, x.dtype)))
    >>> print(Kernel("shift", (x, y), (n,), b.statements()))
    kernel shift(x: float64[n], out y: float64[n]) {
      for %0 < n {
        %1: float64 = x[%0]
        %2: float64 = add %1, 1.0
        y[%0] = %2
      }
    }
    """

    name: str
    arrays: tuple[Array, ...]
    extents: tuple[Scalar, ...]
    body: tuple[Statement, ...]
    functions: tuple[Function, ...] = ()
    takes_contiguous: bool = False
    columns: int = 0

    def __str__(self):
        lines = [*map(str, self.functions), f"kernel {self.name}({_joined(self.arrays)}) {{"]
        _write(self.body, "  ", lines)
        return "\n".join([*lines, "}"])


def count_accesses(kernel: Kernel) -> int:
    """The number of loads and stores of a kernel outside of loops."""
    return sum([isinstance(one, Load | Store) for one in kernel.body])


def _place_text(one: Load | Store) -> str:
    part = one.part and f".{one.part}"
    return f"{one.array.name}[{_joined(one.indices)}]{part}"


def _element_dtype(array: Array, part: str) -> np.dtype:
    """The dtype of an element, or of its real or imaginary part."""
    return np.dtype(f"f{array.dtype.itemsize // 2}") if part else array.dtype


def _joined(parts: tuple) -> str:
    return ", ".join(map(str, parts))


def _write(body: tuple[Statement, ...], indent: str, lines: list[str]) -> None:
    """Append the lines of a body."""
    for one in body:
        if not isinstance(one, Loop | While):
            lines.append(f"{indent}{one}")
            continue
        carried = "".join([f" carry {c} = {first}" for c, first, _, _ in one.carried])
        if isinstance(one, While):
            lines.append(f"{indent}while{carried} {{")
            _write(one.test, indent + "  ", lines)
            lines.append(f"{indent}}} holds {one.condition} {{")
        else:
            lines.append(f"{indent}for {one.index} < {one.extent}{carried} {{")
        _write(one.body, indent + "  ", lines)
        last = "".join([f" next {c} = {then}, {end} after" for c, _, then, end in one.carried])
        lines.append(f"{indent}}}{last}")


@define(eq=False)
class Builder:
    """Builds statements: one method for each instruction, and ``load``, ``store`` and ``loop``.

    Common subexpressions within a body are computed once, and instructions on constants are folded.
    """

    bodies: list[list[Statement]] = field(factory=lambda: [[]])
    known: list[dict] = field(factory=lambda: [{}])
    functions: dict[tuple, Function] = field(factory=dict)
    count: int = 0

    def statements(self) -> tuple[Statement, ...]:
        """The statements of the outermost body."""
        return tuple(self.bodies[0])

    def scalar(self, dtype: np.dtype) -> Scalar:
        """A new variable."""
        self.count += 1
        return Scalar(dtype, f"%{self.count - 1}")

    def number(self, value: Any, dtype: Any) -> Number:
        """A constant of this dtype. Raises TypeError if ``value`` is not a number."""
        if value is None:
            raise TypeError("None is not a number")
        return Number(np.dtype(dtype).type(value))

    def extent(self, name: str) -> Scalar:
        """The number of steps that the caller of the kernel passes under this name."""
        return Scalar(np.dtype("int64"), name)

    def let(
        self,
        name: str,
        *operands: Operand,
        dtype: np.dtype | None = None,
        reassociates: bool = False,
    ) -> Operand:
        """The result of an instruction."""
        kind = result_dtype(name, tuple([x.dtype for x in operands]), dtype)
        key = (name, tuple([_key(x) for x in operands]), kind, reassociates)
        for known in reversed(self.known):
            if key in known:
                return known[key]
        made = self.known[-1][key] = self.scalar(kind)
        self.bodies[-1].append(Let(made, name, operands, reassociates))
        return made

    def call(self, name: str, form: Callable, *operands: Operand) -> Operand:
        """A call of a function of the kernel; ``form(builder, *params)`` writes it at first use."""
        dtypes = tuple([x.dtype for x in operands])
        function = self.functions.get((name, dtypes))
        if function is None:
            inner = Builder()
            params = tuple([inner.scalar(dtype) for dtype in dtypes])
            result = form(inner, *params)
            full = "_".join([name, *map(str, dtypes)])
            function = Function(full, params, inner.statements(), result)
            self.functions[name, dtypes] = function
        key = (function, tuple([_key(x) for x in operands]))
        for known in reversed(self.known):
            if key in known:
                return known[key]
        made = self.known[-1][key] = self.scalar(function.result.dtype)
        self.bodies[-1].append(Call(made, function, operands))
        return made

    def load(
        self, array: Array, indices: tuple[Operand, ...], part: str = "", *, is_first: bool = False
    ) -> Scalar:
        """An element of an array; ``is_first``: load it before all loops that are being built."""
        made = self.scalar(_element_dtype(array, part))
        self.bodies[0 if is_first else -1].append(Load(made, array, indices, part))
        return made

    def store(
        self, array: Array, indices: tuple[Operand, ...], value: Operand, part: str = ""
    ) -> None:
        """Write an element of an array."""
        if value.dtype != _element_dtype(array, part):
            raise TypeError(f"a {value.dtype} is not stored into {array}")
        self.bodies[-1].append(Store(array, indices, value, part))

    def loop(self, extent: Operand, *first: Operand, **options: bool) -> "_OpenLoop":
        """A context manager for a ``Loop``; ``first``: the initial values of carried scalars."""
        return _OpenLoop(self, extent, first, options)

    def repeat(self, *first: Operand) -> "_OpenLoop":
        """A context manager for a ``While``; ``first``: the initial values of carried scalars."""
        return _OpenLoop(self, None, first, {})

    # ---- instructions ----

    def add(self, x: Operand, y: Operand) -> Operand:
        """The instruction ``add``."""
        return self.let("add", x, y)

    def sub(self, x: Operand, y: Operand) -> Operand:
        """The instruction ``sub``."""
        return self.let("sub", x, y)

    def mul(self, x: Operand, y: Operand) -> Operand:
        """The instruction ``mul``."""
        return self.let("mul", x, y)

    def div(self, x: Operand, y: Operand) -> Operand:
        """The instruction ``div``."""
        return self.let("div", x, y)

    def fma(self, x: Operand, y: Operand, z: Operand) -> Operand:
        """``x * y + z`` with one rounding."""
        return self.let("fma", x, y, z)

    def select(self, condition: Operand, x: Operand, y: Operand) -> Operand:
        """``x`` where the condition is true, else ``y``; both are computed."""
        return self.let("select", condition, x, y)

    def convert(self, x: Operand, dtype: Any) -> Operand:
        """A number of another dtype, rounded to nearest, or towards zero for integers."""
        dtype = np.dtype(dtype)
        if type(x) is Number and dtype.kind == "f":
            return self.number(x.value, dtype)
        return x if x.dtype == dtype else self.let("convert", x, dtype=dtype)

    def bits(self, x: Operand, dtype: Any) -> Operand:
        """The same bits as another dtype."""
        return self.let("bits", x, dtype=np.dtype(dtype))


def _key(x: Operand):
    return (x.dtype, x.value.tobytes()) if type(x) is Number else id(x)


@define(eq=False)
class _OpenLoop:
    """A loop whose body is being built: a ``While`` if ``extent`` is None, else a ``Loop``.

    ``carried``: the carried scalars in the body; ``results``: their last values, after the loop.
    """

    builder: Builder
    extent: Operand | None
    first: tuple[Operand, ...]
    options: dict
    index: Scalar = field(init=False)
    carried: tuple[Scalar, ...] = field(init=False)
    results: tuple[Scalar, ...] = field(init=False)
    then: tuple[Operand, ...] = ()
    condition: Operand | None = None
    test: tuple[Statement, ...] = ()

    def __enter__(self):
        b = self.builder
        self.index = b.scalar(np.dtype("int64"))
        self.carried = tuple([b.scalar(x.dtype) for x in self.first])
        self.results = tuple([b.scalar(x.dtype) for x in self.first])
        b.bodies.append([])
        b.known.append({})
        return self if self.first else self.index

    def holds(self, condition: Operand) -> None:
        """End the test of a ``While`` with the condition under which it continues."""
        self.condition, self.test = condition, tuple(self.builder.bodies.pop())
        self.builder.bodies.append([])  # the body may use the scalars of the test

    def next(self, *values: Operand) -> None:
        """Set the values of the carried scalars for the next step."""
        self.then = values

    def __exit__(self, kind, error, traceback):
        b = self.builder
        body, _ = tuple(b.bodies.pop()), b.known.pop()
        if kind is not None:
            return
        carried = tuple(zip(self.carried, self.first, self.then, self.results, strict=True))
        if self.extent is not None:
            b.bodies[-1].append(Loop(self.index, self.extent, body, carried, **self.options))
        else:
            b.bodies[-1].append(While(self.test, self.condition, body, carried))

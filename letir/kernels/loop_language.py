"""The loop language: kernels as loops over arrays with scalar instructions in them.

A ``Kernel`` has array parameters and a list of statements: ``Let`` computes a scalar by an
instruction, ``Load`` and ``Store`` read and write an element, ``Loop`` repeats its statements for
an index below an extent and ``While`` as long as a test holds; both may carry scalars from step to
step. ``str(kernel)`` prints it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define, field, frozen

from letir.kernels.instructions import result_dtype


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

    ``reassociates``: a chain of these may be computed in another order.
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
    """``result = array[indices]``."""

    result: Scalar
    array: Array
    indices: tuple[Operand, ...]

    def __str__(self):
        place = f"{self.array.name}[{_joined(self.indices)}]"
        return f"{self.result}: {self.result.dtype} = {place}"


@frozen(eq=False)
class Store:
    """``array[indices] = value``."""

    array: Array
    indices: tuple[Operand, ...]
    value: Operand

    def __str__(self):
        return f"{self.array.name}[{_joined(self.indices)}] = {self.value}"


@frozen(eq=False)
class Loop:
    """The ``body`` for each value of ``index`` from 0 to below ``extent``.

    ``carried``: (scalar in the body, its value in the first step, its value in the next step, the
    scalar that has its last value after the loop). ``is_parallel``: no step reads what another one
    stores.
    """

    index: Scalar
    extent: Operand
    body: tuple["Statement", ...]
    carried: tuple[tuple[Scalar, Operand, Operand, Scalar], ...] = ()
    is_parallel: bool = True


@frozen(eq=False)
class While:
    """``test``, then ``body``, and so on until the ``condition`` that ``test`` computes fails.

    ``carried``: as of a ``Loop``; the last values are those in ``test`` when the condition fails.
    """

    test: tuple["Statement", ...]
    condition: Operand
    body: tuple["Statement", ...]
    carried: tuple[tuple[Scalar, Operand, Operand, Scalar], ...]


@frozen(eq=False)
class Function:
    """A function of scalars, written once however often a kernel calls it.

    ``body`` computes ``result`` from ``params`` by instructions.
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
    """A kernel: ``arrays``, the ``extents`` that its caller gives, and a body.

    ``takes_contiguous``: its caller gives arrays that are contiguous along the last extent.

    >>> b = Builder()
    >>> x, y = Array("x", np.dtype("f8"), ("n",)), Array("y", np.dtype("f8"), ("n",), True)
    >>> n = b.extent("n")
    >>> with b.loop(n) as i:
    ...     b.store(y, (i,), b.add(b.load(x, (i,)), b.number(1.0, x.dtype)))
    >>> print(Kernel("shift", (x, y), (n,), b.taken()))
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

    def __str__(self):
        lines = [*map(str, self.functions), f"kernel {self.name}({_joined(self.arrays)}) {{"]
        _write(self.body, "  ", lines)
        return "\n".join([*lines, "}"])


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

    Equal instructions on equal operands are one within a body; instructions on constants alone are
    computed at once.
    """

    bodies: list[list[Statement]] = field(factory=lambda: [[]])
    known: list[dict] = field(factory=lambda: [{}])
    functions: dict[tuple, Function] = field(factory=dict)
    count: int = 0

    def taken(self) -> tuple[Statement, ...]:
        """The statements of the outermost body."""
        return tuple(self.bodies[0])

    def scalar(self, dtype: np.dtype) -> Scalar:
        """A new variable."""
        self.count += 1
        return Scalar(dtype, f"%{self.count - 1}")

    def number(self, value: Any, dtype: Any) -> Number:
        """A constant of this dtype. Raises TypeError for what is not a number."""
        if value is None:
            raise TypeError("None is not a number")
        return Number(np.dtype(dtype).type(value))

    def extent(self, name: str) -> Scalar:
        """The number of steps that the caller of the kernel gives by this name."""
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
        """``form(builder, *operands)`` as a call of a function that the kernel has once."""
        dtypes = tuple([x.dtype for x in operands])
        function = self.functions.get((name, dtypes))
        if function is None:
            inner = Builder()
            params = tuple([inner.scalar(dtype) for dtype in dtypes])
            result = form(inner, *params)
            full = "_".join([name, *map(str, dtypes)])
            function = Function(full, params, inner.taken(), result)
            self.functions[name, dtypes] = function
        key = (function, tuple([_key(x) for x in operands]))
        for known in reversed(self.known):
            if key in known:
                return known[key]
        made = self.known[-1][key] = self.scalar(function.result.dtype)
        self.bodies[-1].append(Call(made, function, operands))
        return made

    def load(self, array: Array, indices: tuple[Operand, ...], *, is_first: bool = False) -> Scalar:
        """The element of an array; ``is_first``: loaded before the loops that are being built."""
        made = self.scalar(array.dtype)
        self.bodies[0 if is_first else -1].append(Load(made, array, indices))
        return made

    def store(self, array: Array, indices: tuple[Operand, ...], value: Operand) -> None:
        """Write an element of an array."""
        if value.dtype != array.dtype:
            raise TypeError(f"a {value.dtype} is not stored into {array}")
        self.bodies[-1].append(Store(array, indices, value))

    def loop(self, extent: Operand, *first: Operand, **options: bool) -> "_OpenLoop":
        """A context manager for a loop; ``first`` are the first values of carried scalars."""
        return _OpenLoop(self, extent, first, options)

    def repeat(self, *first: Operand) -> "_OpenLoop":
        """A context manager for a ``While``; ``first`` are the first values of carried scalars."""
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
    """A loop whose body is being built; without an extent a ``While``, whose test comes first.

    ``carried``: the scalars of a step; ``results``: their last values, after the loop.
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
        """End the test of a ``While``, which goes on while the condition is true."""
        self.condition, self.test = condition, tuple(self.builder.bodies.pop())
        self.builder.bodies.append([])  # what the test has computed stays known

    def next(self, *values: Operand) -> None:
        """Give the values of the carried scalars in the next step."""
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

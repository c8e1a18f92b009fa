"""``Builder``, which builds the statements of a kernel of the loop language."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import define, field

from letir.kernels.loop_language import (
    Array,
    Function,
    FunctionCall,
    Let,
    Load,
    Loop,
    Number,
    Operand,
    Prefetch,
    Scalar,
    Statement,
    Store,
    While,
)
from letir.kernels.scalar_instructions import HIDDEN, instruction_dtype


def _element_dtype(array: Array, part: str) -> np.dtype:
    """The dtype of an element, or of its real or imaginary part."""
    return np.dtype(f"f{array.dtype.itemsize // 2}") if part else array.dtype


_ORDERED = {"lt", "le", "gt", "ge"}  # comparisons that are undefined for nan
_functions: dict[tuple, Function] = {}  # (name, dtypes of the operands) -> for all kernels


@define(eq=False)
class Builder:
    """Builds statements: one method for each instruction, and ``load``, ``store`` and ``loop``.

    Common subexpressions within a body are computed once, and instructions on constants are folded.
    """

    bodies: list[list[Statement]] = field(factory=lambda: [[]])
    scopes: list[dict] = field(factory=lambda: [{}])
    count: int = 0
    hides: int = 0  # numbers that are hidden
    is_quiet: bool = False  # comparisons with nan raise no flag

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
        if self.is_quiet and name in _ORDERED and operands[0].dtype.kind == "f":
            return self.quiet_comparison(name, *operands)
        kind = instruction_dtype(name, tuple([x.dtype for x in operands]), dtype)
        key = (name, tuple([_expression_key(x) for x in operands]), kind, reassociates)
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        result = self.scopes[-1][key] = self.scalar(kind)
        self.bodies[-1].append(Let(result, name, operands, reassociates))
        return result

    def quiet_comparison(self, name: str, x: Operand, y: Operand) -> Operand:
        """A comparison of floats in which zeros stand for nan, and which is then false.

        Processors raise the flag of an invalid operation where they compare nan, except for
        equality.
        """
        unordered = self.let("or", self.let("ne", x, x), self.let("ne", y, y))
        zero = self.hidden(self.number(0, x.dtype))
        x, y = [
            operand if type(operand) is Number else self.select(unordered, zero, operand)
            for operand in (x, y)
        ]
        self.is_quiet = False
        result = self.let(name, x, y)
        self.is_quiet = True
        ordered = self.let("xor", unordered, self.number(True, np.dtype("?")))
        return self.let("and", result, self.hidden(ordered))

    def call(self, name: str, form: Callable, *operands: Operand, is_cold: bool = False) -> Operand:
        """A call of a function; ``form(builder, *params)`` writes it at its first use.

        ``name`` stands for one form in all kernels. ``is_cold``: the call is rarely reached.
        """
        key = (name, tuple([x.dtype for x in operands]))
        function = _functions.get(key)
        if function is None:
            inner, params = _inner_builder(operands)
            result = form(inner, *params)
            function = _shared_function(key, params, inner.statements(), result, is_cold=is_cold)
        return self.call_function(function, operands)

    def call_rarely(
        self, name: str, test: Callable, form: Callable, usual: Operand, *operands: Operand
    ) -> Operand:
        """``form(builder, *operands)`` where ``test(builder, *operands)`` is true, else ``usual``.

        The form is a function, as in ``call``, but compiled without optimisation. It runs only if
        the test is true, in a vectorised loop for one of the elements that are computed side by
        side. It must not raise a floating-point flag for the others.
        """
        key = (f"usual_or_{name}", tuple([x.dtype for x in operands]))
        function = _functions.get(key)
        if function is None:
            inner, params = _inner_builder((usual, *operands))
            condition = test(inner, *params[1:])
            ahead = len(inner.bodies[0])
            result = inner.call(name, form, *params[1:], is_cold=True)
            body = inner.statements()
            rare = (body[ahead:], result, body[:ahead], condition)
            function = _shared_function(key, params, *rare)
        return self.call_function(function, (usual, *operands))

    def call_function(self, function: Function, operands: tuple[Operand, ...]) -> Operand:
        """The result of a function of the kernel."""
        key = (function, tuple([_expression_key(x) for x in operands]))
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        result = self.scopes[-1][key] = self.scalar(function.result.dtype)
        self.bodies[-1].append(FunctionCall(result, function, operands))
        return result

    def load(
        self, array: Array, indices: tuple[Operand, ...], part: str = "", *, is_first: bool = False
    ) -> Scalar:
        """An element of an array; ``is_first``: load it before all loops that are being built."""
        result = self.scalar(_element_dtype(array, part))
        self.bodies[0 if is_first else -1].append(Load(result, array, indices, part))
        return result

    def store(
        self, array: Array, indices: tuple[Operand, ...], value: Operand, part: str = ""
    ) -> None:
        """Write an element of an array."""
        if value.dtype != _element_dtype(array, part):
            raise TypeError(f"a {value.dtype} is not stored into {array}")
        self.bodies[-1].append(Store(array, indices, value, part))

    def prefetch(self, array: Array, indices: tuple[Operand, ...]) -> None:
        """Let the processor read an element, which may be outside of the array, into its cache."""
        self.bodies[-1].append(Prefetch(array, indices))

    def prefetch_columns(
        self, arrays: Sequence[Array], row: tuple[Operand, ...], start: Operand, size: Operand
    ) -> None:
        """Write a loop that prefetches ``size`` elements of a row of each array, from ``start``."""
        line = 64 // max([array.dtype.itemsize for array in arrays], default=1)  # of the cache
        bits = self.number(line.bit_length() - 1, "i8")
        lines = self.let("shr", self.add(size, self.number(line - 1, "i8")), bits)
        with self.loop(lines, is_parallel=False) as index:
            column = self.add(start, self.let("shl", index, bits))
            for array in arrays:
                self.prefetch(array, (*row, column))

    def loop(self, extent: Operand, *first: Operand, **options: Any) -> "_OpenLoop":
        """A context manager for a ``Loop`` with these ``options``, such as ``is_parallel``.

        ``first``: the initial values of carried scalars.
        """
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

    def hidden(self, x: Operand) -> Operand:
        """The same number, of which LLVM does not know how it has been computed."""
        self.hides += 1
        return self.let(f"hide{self.hides % HIDDEN}", x)

    def convert(self, x: Operand, dtype: Any) -> Operand:
        """A number of another dtype, rounded to nearest, or towards zero for integers."""
        dtype = np.dtype(dtype)
        if type(x) is Number and dtype.kind == "f":
            return self.number(x.value, dtype)
        return x if x.dtype == dtype else self.let("convert", x, dtype=dtype)

    def bits(self, x: Operand, dtype: Any) -> Operand:
        """The same bits as another dtype."""
        return self.let("bits", x, dtype=np.dtype(dtype))


def _inner_builder(operands: Sequence[Operand]) -> tuple[Builder, tuple[Scalar, ...]]:
    """A builder for a function of such operands, and its params."""
    inner = Builder()
    return inner, tuple([inner.scalar(x.dtype) for x in operands])


def _shared_function(key: tuple, *parts: Any, **options: Any) -> Function:
    """The function of these fields and a name made of ``key``, or an equal one.

    Another thread may have made it at the same time; a kernel must not contain both.
    """
    name, dtypes = key
    full = "_".join([name, *map(str, dtypes)])
    return _functions.setdefault(key, Function(full, *parts, **options))


def _expression_key(x: Operand):
    """What identifies an operand when equal expressions are looked up."""
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
        b.scopes.append({})
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
        body, _ = tuple(b.bodies.pop()), b.scopes.pop()
        if kind is not None:
            return
        carried = tuple(zip(self.carried, self.first, self.then, self.results, strict=True))
        if self.extent is not None:
            b.bodies[-1].append(Loop(self.index, self.extent, body, carried, **self.options))
        else:
            b.bodies[-1].append(While(self.test, self.condition, body, carried))

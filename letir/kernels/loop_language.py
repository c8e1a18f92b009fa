"""The loop language: kernels as loops over arrays with scalar instructions in them.

A ``Kernel`` has array parameters and a list of statements. ``Let`` computes a scalar by an
instruction, ``Load`` and ``Store`` read and write an element, ``Loop`` repeats its statements for
each index below an extent, and ``While`` repeats them as long as a condition is true. Both loops
may carry scalars from step to step. ``str(kernel)`` prints the program.
"""

import functools
from collections.abc import Iterator

import numpy as np
from attrs import field, frozen


@frozen(eq=False)
class Scalar:
    """A scalar variable, assigned once."""

    dtype: np.dtype
    name: str

    def __str__(self):
        return self.name


@frozen
class Number:
    """A constant scalar with the bits of ``value``, a NumPy scalar."""

    value: np.generic

    @property
    def dtype(self) -> np.dtype:
        return self.value.dtype

    def __str__(self):
        # all digits: NumPy's text of a scalar depends on its options for printing
        return repr(self.value.item())


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
        return (
            f"{self.result}: {_dtype_name(self.result.dtype)} = {name} {_join_texts(self.operands)}"
        )


@frozen(eq=False)
class Load:
    """``result = array[indices]``, or its ``part``, "real" or "imag", of a complex array."""

    result: Scalar
    array: Array
    indices: tuple[Operand, ...]
    part: str = ""

    def __str__(self):
        return f"{self.result}: {_dtype_name(self.result.dtype)} = {_place_text(self)}"


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
class Prefetch:
    """Let the processor read ``array[indices]`` into its cache; the place may be outside."""

    array: Array
    indices: tuple[Operand, ...]
    part: str = ""

    def __str__(self):
        return f"prefetch {_place_text(self)}"


@frozen(eq=False)
class Loop:
    """Run ``body`` for each ``index`` from 0 up to, but not including, ``extent``.

    ``carried``: for each carried scalar a tuple of the scalar in the body, its initial value, its
    value for the next step, and the scalar that holds its last value after the loop.
    ``is_parallel``: no step reads an element that another step stores. ``lanes``: the number of
    neighbouring steps that vectors compute together, with the inner loops of the body; 0 if LLVM
    decides. Such a loop has a known extent, computes floats, adds to its index at most, and carries
    sums only.
    """

    index: Scalar
    extent: Operand
    body: tuple["Statement", ...]
    carried: tuple[tuple[Scalar, Operand, Operand, Scalar], ...] = ()
    is_parallel: bool = True
    lanes: int = 0


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

    ``body`` contains the instructions that compute ``result`` from ``params``. ``test``: the
    instructions that compute ``condition`` from the params, for results that are rarely needed.
    Where the condition is false, the function returns its first parameter without computing
    ``body``. ``is_cold``: whether it is called rarely, so that fast code is not worth its compile
    time.
    """

    name: str
    params: tuple[Scalar, ...]
    body: tuple["Statement", ...]
    result: Operand
    test: tuple["Statement", ...] = ()
    condition: Operand | None = None
    is_cold: bool = False

    def __str__(self):
        head = ", ".join([f"{p}: {p.dtype}" for p in self.params])
        lines = [f"function {self.name}({head}) -> {_dtype_name(self.result.dtype)} {{"]
        lines += [f"  {statement}" for statement in self.test]
        if self.condition is not None:
            lines.append(f"  return {self.params[0]} unless {self.condition}")
        lines += [f"  {statement}" for statement in self.body]
        return "\n".join([*lines, f"  return {self.result}", "}"])


@frozen(eq=False)
class FunctionCall:
    """``result = function(operands)``."""

    result: Scalar
    function: Function
    operands: tuple[Operand, ...]

    def __str__(self):
        call = f"{self.function.name}({_join_texts(self.operands)})"
        return f"{self.result}: {_dtype_name(self.result.dtype)} = {call}"


Statement = Let | Load | Store | Prefetch | Loop | While | FunctionCall


@frozen(eq=False)
class Kernel:
    """A kernel: its array parameters, the extents that its caller passes, and its statements.

    ``takes_contiguous``: whether all arrays must be contiguous along the last extent. ``columns``:
    the length of the last extent if rows must follow each other without gaps as well, else 0.
    ``is_flat``: each array must be contiguous along its last axis, whose extent is its own.
    ``buffers``: small arrays of the kernel itself, with one axis of a known length, such as "8".

    >>> from letir.kernels.loop_builder import Builder
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
    takes_contiguous: bool = False
    columns: int = 0
    is_flat: bool = False
    buffers: tuple[Array, ...] = ()
    functions: tuple[Function, ...] = field(init=False)  # that the statements call

    @functions.default
    def _called_functions(self) -> tuple[Function, ...]:
        return tuple(dict.fromkeys(_functions_called_in(self.body)))

    @property
    def is_elementwise(self) -> bool:
        """Whether the kernel is one loop along the only axis of all its arrays."""
        return all(len(array.extents) == 1 for array in self.arrays)

    def __str__(self):
        lines = [*map(str, self.functions), f"kernel {self.name}({_join_texts(self.arrays)}) {{"]
        lines += [f"  buffer {buffer}" for buffer in self.buffers]
        _write_lines(self.body, "  ", lines)
        return "\n".join([*lines, "}"])


def _functions_called_in(body: tuple[Statement, ...]) -> Iterator[Function]:
    """The functions that statements call, with repetitions, each after those that it calls."""
    for statement in body:
        if type(statement) is FunctionCall:
            yield from _functions_called_in(statement.function.body)
            yield statement.function
        elif type(statement) is While:
            yield from _functions_called_in((*statement.test, *statement.body))
        elif type(statement) is Loop:
            yield from _functions_called_in(statement.body)


def count_accesses(kernel: Kernel) -> int:
    """The number of loads and stores of a kernel outside of loops."""
    return sum([isinstance(statement, Load | Store) for statement in kernel.body])


@functools.lru_cache(64)
def _dtype_name(dtype: np.dtype) -> str:
    """``str(dtype)``, which takes NumPy as long as all else in the text of an instruction."""
    return str(dtype)


def _place_text(access: Load | Store | Prefetch) -> str:
    part = access.part and f".{access.part}"
    return f"{access.array.name}[{_join_texts(access.indices)}]{part}"


def _join_texts(parts: tuple) -> str:
    return ", ".join(map(str, parts))


def _write_lines(body: tuple[Statement, ...], indent: str, lines: list[str]) -> None:
    """Append the lines of a body."""
    for statement in body:
        if not isinstance(statement, Loop | While):
            lines.append(f"{indent}{statement}")
            continue
        carried = "".join([f" carry {c} = {first}" for c, first, _, _ in statement.carried])
        if isinstance(statement, While):
            lines.append(f"{indent}while{carried} {{")
            _write_lines(statement.test, indent + "  ", lines)
            lines.append(f"{indent}}} holds {statement.condition} {{")
        else:
            lanes = f" in vectors of {statement.lanes}" if statement.lanes else ""
            lines.append(f"{indent}for {statement.index} < {statement.extent}{lanes}{carried} {{")
        _write_lines(statement.body, indent + "  ", lines)
        last = "".join(
            [f" next {c} = {then}, {end} after" for c, _, then, end in statement.carried]
        )
        lines.append(f"{indent}}}{last}")

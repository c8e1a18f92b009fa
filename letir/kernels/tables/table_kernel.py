"""The kernel that executes a table of instructions on one flat array.

LLVM would take seconds to compile thousands of small operations. A table of instructions needs no
code of its own: for each row the kernel selects one of its loops. Programs that
use the same operations share the kernel.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

from letir.eval.float_warnings import KERNEL
from letir.kernels.elementary import ELEMENTARY
from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Array, Kernel, Operand
from letir.kernels.scalar_forms import form_of

# The columns of a table: the operation; the lengths of the two loops; for the result and for each
# operand the first element, and the steps of both loops in elements.
COLUMNS = ("op", "n0", "n1", "y", "y0", "y1", "a", "a0", "a1", "b", "b0", "b1")
ENTRY = np.dtype("int32")
SIGNATURE = "(k),(s)->(r)"
_USUAL = ("copy", "add", "sub", "mul", "div", "dot")  # the first operations of every kernel
_INDEX = np.dtype("int64")
_TOGETHER = 4  # elements for which an elementary function is called at once
_TERMS = 4  # terms that "muladd" adds while the sums are in registers


def table_operations(names: Sequence[str], dtype: np.dtype) -> tuple[str, ...]:
    """The operations of a kernel: the usual ones and ``names``; rows refer to them by position."""
    usual = [name for name in _USUAL if name != "div" or dtype.kind == "f"]
    return (*usual, *sorted(set(names).difference(usual)))


@cache
def table_kernel(names: tuple[str, ...], dtype: np.dtype) -> Kernel:
    """The kernel for tables of these operations on elements of this dtype.

    Its operands are the rows of the table and the memory, which it changes; its result is the
    beginning of the memory after the last instruction.
    """
    b = Builder()
    table, memory = Array("t", ENTRY, ("", "k")), Array("m", dtype, ("", "s"))
    result = Array("y", dtype, ("", "r"), is_written=True)
    zero, width = b.number(0, _INDEX), b.number(len(COLUMNS), _INDEX)
    extents = tuple([b.extent(name) for name in ("calls", "k", "s", "r")])
    with b.loop(b.let("quotient", extents[1], width), is_parallel=False) as row:
        first = b.let("mul", row, width)
        entries = [
            b.convert(b.load(table, (zero, b.add(first, b.number(n, _INDEX)))), _INDEX)
            for n in range(len(COLUMNS))
        ]
        for number, name in enumerate(names):
            is_chosen = b.let("eq", entries[0], b.number(number, _INDEX))
            _emit(b, memory, name, is_chosen, entries)
    with b.loop(extents[3]) as index:
        b.store(result, (zero, index), b.load(memory, (zero, index)))
    return Kernel(
        f"{KERNEL} of a table of {', '.join(names)}",
        (table, memory, result),
        extents,
        b.statements(),
        takes_contiguous=True,
    )


def _emit(
    b: Builder, memory: Array, name: str, is_chosen: Operand, entries: Sequence[Operand]
) -> None:
    """The loops of one operation, which have no iterations unless ``is_chosen``."""
    _, n0, n1, y, y0, y1, *operands = entries
    zero = b.number(0, _INDEX)
    if name == "muladd":
        _emit_muladd(b, memory, b.select(is_chosen, n0, zero), entries)
        return
    with b.loop(b.select(is_chosen, n0, zero), is_parallel=False) as i:
        target = b.add(y, b.let("mul", i, y0))
        places = [
            (b.add(operands[n], b.let("mul", i, operands[n + 1])), operands[n + 2]) for n in (0, 3)
        ]

        def value(n: int, j: Operand) -> Operand:
            start, step = places[n]
            return b.load(memory, (zero, b.add(start, b.let("mul", j, step))))

        if name == "dot":
            with b.loop(n1, b.number(0, memory.dtype)) as loop:
                term = b.mul(value(0, loop.index), value(1, loop.index))
                loop.next(b.let("add", loop.carried[0], term, reassociates=True))
            b.store(memory, (zero, target), loop.results[0])
            return
        if name in ELEMENTARY:
            steps, places_of = _steps_of_several(b, n1)
        else:
            steps, places_of = n1, lambda j: [j]
        with b.loop(steps, is_parallel=False) as step:
            operands_at = [(j, _operands(b, name, partial(value, j=j))) for j in places_of(step)]
            results = [(j, _apply_operation(b, name, operands)) for j, operands in operands_at]
            for j, value_at in results:
                b.store(memory, (zero, b.add(target, b.let("mul", j, y1))), value_at)


def _emit_muladd(b: Builder, memory: Array, terms: Operand, entries: Sequence[Operand]) -> None:
    """Add the products of ``terms`` numbers a and rows b to the row y, one after the other.

    The elements of rows lie side by side; ``a0`` and ``b0`` are the steps between terms.
    """
    _, _, columns, y, _, _, a, a0, _, other, b0, _ = entries
    zero, count = b.number(0, _INDEX), b.number(_TERMS, _INDEX)
    groups = b.let("quotient", terms, count)
    done = b.let("mul", groups, count)

    def add_terms(first: Operand, together: int) -> None:
        places = [b.add(first, b.number(n, _INDEX)) for n in range(together)]
        factors = [b.load(memory, (zero, b.add(a, b.let("mul", k, a0)))) for k in places]
        rows = [b.add(other, b.let("mul", k, b0)) for k in places]
        with b.loop(columns) as j:
            total: Operand = b.load(memory, (zero, b.add(y, j)))
            for factor, row in zip(factors, rows, strict=True):
                total = b.add(total, b.mul(factor, b.load(memory, (zero, b.add(row, j)))))
            b.store(memory, (zero, b.add(y, j)), total)

    with b.loop(groups, is_parallel=False) as group:
        add_terms(b.let("mul", group, count), _TERMS)
    with b.loop(b.sub(terms, done), is_parallel=False) as rest:
        add_terms(b.add(done, rest), 1)


def _steps_of_several(b: Builder, n1: Operand) -> tuple[Operand, Callable]:
    """The number of steps of a loop whose step computes several elements by one call, and the
    function from a step to these; the last step repeats the last element.
    """
    count = [b.number(k, _INDEX) for k in range(_TOGETHER + 1)]
    last = b.sub(n1, count[1])

    def places(step: Operand) -> list[Operand]:
        first = b.let("mul", step, count[-1])
        return [b.let("min", b.add(first, k), last) for k in count[:-1]]

    return b.let("quotient", b.add(last, count[-1]), count[-1]), places


def _operands(b: Builder, name: str, operand: Callable[[int], Operand]) -> list[Operand]:
    """The operands of an operation, of which ``operand(n)`` loads the one number n."""
    return [operand(n) for n in range(1 if name == "copy" else arity_of(name))]


def _apply_operation(b: Builder, name: str, operands: list[Operand]) -> Operand:
    """The result of an elementwise operation."""
    if name == "copy":
        return operands[0]
    form = form_of(name)
    assert form is not None
    if name in ELEMENTARY:
        return b.call(name, form, *operands)
    return form(b, *operands)


@cache
def arity_of(name: str) -> int:
    """The number of operands of an operation: 1 or 2; 0 if tables do not support it."""
    form = form_of(name)
    for count in (1, 2) if form is not None else ():
        b = Builder()
        operands = [b.scalar(np.dtype("f8")) for _ in range(count)]
        try:
            result = form(b, *operands)  # type: ignore[misc]
        except (TypeError, IndexError, KeyError, ValueError):
            continue
        return count if result.dtype == np.dtype("f8") else 0
    return 0

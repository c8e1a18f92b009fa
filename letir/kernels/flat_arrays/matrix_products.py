"""Products of small matrices as loops of the loop language."""

import numpy as np
from attrs import frozen

from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Array, Operand

_INDEX = np.dtype("int64")
_SUMS_TOGETHER = 4  # rows whose sums are computed in one loop
_ROWS_TOGETHER, _TERMS_TOGETHER = 2, 8  # rows of sums, and terms that are added to them in one loop


@frozen
class Matrix:
    """Elements of a flat array from ``start`` on, with ``strides`` in elements."""

    array: Array
    start: Operand
    shape: tuple[int, int]
    strides: tuple[int, int]

    @property
    def transposed(self) -> "Matrix":
        return Matrix(self.array, self.start, self.shape[::-1], self.strides[::-1])

    def place(self, b: Builder, i: Operand, j: Operand) -> tuple[Operand, Operand]:
        result = self.start
        for index, n, step in zip((i, j), self.shape, self.strides, strict=True):
            if n > 1 and step:
                part = index if step == 1 else b.let("mul", index, b.number(step, _INDEX))
                result = b.add(result, part)
        return b.number(0, _INDEX), result

    def get(self, b: Builder, i: Operand, j: Operand) -> Operand:
        return b.load(self.array, self.place(b, i, j))

    def put(self, b: Builder, i: Operand, j: Operand, value: Operand) -> None:
        b.store(self.array, self.place(b, i, j), value)


def emit_product(b: Builder, target: Matrix, x: Matrix, y: Matrix) -> None:
    """``target = x @ y``, with the innermost loop along elements that lie side by side."""
    if y.shape[1] == 1 and (x.shape[0] > 1 and x.strides[0] == 1):
        _emit_terms(b, target.transposed, y.transposed, x.transposed)
    elif y.shape[1] > 1 and y.strides[1] == 1:
        _emit_terms(b, target, x, y)
    elif y.shape[1] > 1 and x.shape[0] > 1 and x.strides[0] == 1 and x.strides[1] != 1:
        _emit_terms(b, target.transposed, y.transposed, x.transposed)
    elif x.shape[0] == 1:
        _emit_sums(b, target.transposed, y.transposed, x.transposed)
    else:
        _emit_sums(b, target, x, y)


def groups_of_rows(length: int, each: int) -> list[tuple[int, int, int]]:
    """(first, number, size) of the groups of ``each`` rows, and of the remaining rows."""
    many, rest = divmod(length, each)
    groups = [(0, many, each)] if many else []
    return [*groups, *([(many * each, 1, rest)] if rest else [])]


def _emit_sums(b: Builder, target: Matrix, x: Matrix, y: Matrix) -> None:
    """Compute each element as a sum; one loop computes the sums of several rows of ``x``."""
    with b.loop(b.number(y.shape[1], _INDEX)) as j:
        for first, number, size in groups_of_rows(x.shape[0], _SUMS_TOGETHER):
            with b.loop(b.number(number, _INDEX)) as group:
                rows = _places_of(b, group, (first, number, size))
                zeros = [b.number(0.0, target.array.dtype)] * size
                with b.loop(b.number(x.shape[1], _INDEX), *zeros) as loop:
                    other = y.get(b, loop.index, j)
                    terms = [b.mul(x.get(b, row, loop.index), other) for row in rows]
                    loop.next(
                        *[
                            b.let("add", total, term, reassociates=True)
                            for total, term in zip(loop.carried, terms, strict=True)
                        ]
                    )
                for row, total in zip(rows, loop.results, strict=True):
                    target.put(b, row, j, total)


def _emit_terms(b: Builder, target: Matrix, x: Matrix, y: Matrix) -> None:
    """Add rows of ``y``, multiplied by elements of ``x``, to each row of the target.

    Two rows of the target share the loads of a row of ``y``. Each sum is in the order of its terms.
    """
    for group in groups_of_rows(x.shape[0], _ROWS_TOGETHER):
        with b.loop(b.number(group[1], _INDEX)) as place:
            rows = _places_of(b, place, group)
            _add_terms(b, rows, target, x, y)


def _add_terms(b: Builder, rows: list, target: Matrix, x: Matrix, y: Matrix) -> None:
    """Compute these rows of the target."""
    n_columns = b.number(y.shape[1], _INDEX)
    with b.loop(n_columns) as j:
        for i in rows:
            target.put(b, i, j, b.number(0.0, target.array.dtype))
    for group in groups_of_rows(x.shape[1], _TERMS_TOGETHER):
        with b.loop(b.number(group[1], _INDEX), is_parallel=False) as place:
            terms = _places_of(b, place, group)
            factors = [[x.get(b, i, term) for term in terms] for i in rows]
            with b.loop(n_columns) as j:
                totals: list[Operand] = [target.get(b, i, j) for i in rows]
                for n, term in enumerate(terms):
                    other = y.get(b, term, j)
                    pairs = zip(totals, factors, strict=True)
                    totals = [b.add(total, b.mul(own[n], other)) for total, own in pairs]
                for i, total in zip(rows, totals, strict=True):
                    target.put(b, i, j, total)


def _places_of(b: Builder, place: Operand, group: tuple[int, int, int]) -> list[Operand]:
    """The positions of the rows in one of these groups."""
    first, _, size = group
    start = b.add(b.let("mul", place, b.number(size, _INDEX)), b.number(first, _INDEX))
    return [b.add(start, b.number(n, _INDEX)) for n in range(size)]

"""Which binds fit into a cluster of a matrix, as what, and for which splits of its axes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import letir as lt
from letir.passes.fusion.cluster_fits import (
    Split,
    all_splits,
    fit_into_cluster,
    joins_group,
    least_split,
)

MATRIX, CUBE = (40, 50), (4, 5, 6)
NOWHERE = ("", set[tuple]())


def fit(
    f: Callable, shapes: list, matrix: tuple, kinds: dict | None = None
) -> tuple[str, set[tuple]]:
    """(kind, splits) of the only bind of ``f``; ``kinds``: of the operands inside, by number."""
    (bind,) = lt.trace(f, *[np.ones(shape) for shape in shapes]).binds
    inside: dict[Any, str] = {bind.args[n]: kind for n, kind in (kinds or {}).items()}
    kind, bits = fit_into_cluster(bind, matrix, all_splits(matrix), inside)
    return kind, splits_in(bits, matrix)


def splits_in(bits: int, matrix: tuple) -> set[tuple]:
    """The splits in a set: (lead, rows), or (lead, rows, True) if it is stacked."""
    result = set()
    while bits:
        lead, rows, is_stacked = least_split(matrix, bits)
        result.add((lead, rows, True) if is_stacked else (lead, rows))
        bits &= bits - 1
    return result


def every_split(matrix: tuple) -> set[tuple]:
    n = len(matrix)
    plain = {(lead, rows) for lead in range(n) for rows in range(lead, n)}
    return plain | {(*split, True) for split in plain if split[0]}


def of_rows(rows: int, matrix: tuple = MATRIX) -> set[tuple]:
    """All splits with this number of axes for rows."""
    return {split for split in every_split(matrix) if split[1] == rows}


def test_a_full_value_reads_numbers_and_full_operands_for_all_splits():
    assert ("full", every_split(MATRIX)) == fit(lambda x: x + 1.0, [MATRIX], MATRIX)
    assert ("full", every_split(MATRIX)) == fit(lambda x, y: x + y, [MATRIX, (1, 1)], MATRIX)
    assert ("full", every_split(MATRIX)) == fit(
        lambda x, y: x + y, [MATRIX, MATRIX], MATRIX, {0: "full", 1: "spread"}
    )


@pytest.mark.parametrize(
    ("kind", "shape", "splits"),
    [
        ("total", (), {(0, 0)}),
        ("row", (40, 1), of_rows(1)),
        ("row", (), of_rows(0)),
        ("column", (50,), set()),
    ],
)
def test_a_full_value_reads_values_of_the_cluster_where_these_are_known(kind, shape, splits):
    assert ("full", splits) == fit(lambda x, y: x + y, [MATRIX, shape], MATRIX, {1: kind})


@pytest.mark.parametrize(
    ("shape", "splits"),
    [
        ((6,), {(0, 2), (1, 2), (1, 2, True), (2, 2), (2, 2, True)}),
        ((5, 6), {(0, 1), (1, 1), (1, 1, True), (1, 2), (1, 2, True), (2, 2)}),
        ((4, 1, 6), {(1, 2), (1, 2, True), (2, 2)}),
    ],
)
def test_a_full_value_reads_operands_from_outside_along_whole_axes(shape, splits):
    assert ("full", splits) == fit(lambda x, y: x + y, [CUBE, shape], CUBE)


def test_a_value_of_rows_has_an_element_for_each_of_them():
    assert ("row", of_rows(1)) == fit(np.sqrt, [(40,)], MATRIX, {0: "row"})
    assert ("row", of_rows(1)) == fit(np.sqrt, [(40, 1)], MATRIX, {0: "row"})
    assert ("row", of_rows(0)) == fit(np.sqrt, [()], MATRIX, {0: "row"})
    assert ("row", set()) == fit(np.sqrt, [(50,)], MATRIX, {0: "row"})
    assert NOWHERE == fit(np.sqrt, [(40,)], MATRIX)


def test_a_number_that_numpy_gives_as_an_array_does_not_fit():
    def chosen(x, y):
        return np.where(x, y, y)

    assert ("row", set()) == fit(chosen, [(), ()], MATRIX, {0: "row"})
    assert ("row", of_rows(1)) == fit(chosen, [(40,), ()], MATRIX, {0: "row"})


def test_a_value_of_rows_reads_totals_and_no_other_values_of_the_cluster():
    def total(kind: str) -> tuple[str, set]:
        return fit(np.add, [(), ()], MATRIX, {0: "row", 1: kind})

    assert ("row", {(0, 0)}) == total("total")
    assert [NOWHERE] * 3 == [total(kind) for kind in ("full", "column", "spread")]
    assert NOWHERE == fit(np.add, [(4, 5), (4, 1)], CUBE, {0: "row", 1: "row"})


@pytest.mark.parametrize("ones", [(), (1,)])
def test_a_value_of_rows_reads_operands_that_are_broadcast_along_lead_axes(ones):
    shapes = [(4, 5, *ones), (5, *ones)]

    assert ("row", {(1, 2), (1, 2, True), (2, 2)}) == fit(np.add, shapes, CUBE, {0: "row"})
    assert ("row", of_rows(2, matrix=CUBE)) == fit(np.add, [shapes[0], ()], CUBE, {0: "row"})
    assert ("row", of_rows(2, matrix=CUBE)) == fit(np.add, [shapes[0]] * 2, CUBE, {0: "row"})


def test_reductions_are_of_rows_of_columns_or_of_all():
    def total(axis: Any, **kinds: Any) -> tuple[str, set]:
        return fit(lambda x: x.sum(axis=axis), [MATRIX], MATRIX, **kinds)

    assert ("row", of_rows(1)) == total(1)
    assert ("column", {(0, 1), (1, 1, True)}) == total(0)
    assert ("total", {(0, 0), (0, 1)}) == total(None)
    assert ("total", {(0, 0), (0, 1)}) == total((0, 1), kinds={0: "full"})


def test_stacks_of_matrices_are_reduced_along_each_of_their_axes():
    def total(axis: Any) -> tuple[str, set]:
        return fit(lambda x: x.sum(axis=axis), [CUBE], CUBE)

    assert ("column", {(0, 1), (1, 1, True), (1, 2, True)}) == total(0)
    assert ("column", {(1, 2), (1, 2, True)}) == total(1)
    assert ("column", {(0, 2), (1, 2, True), (2, 2, True)}) == total((0, 1))


def test_all_values_of_rows_are_reduced_together_or_not_at_all():
    def total(shape: tuple, axis: Any, kind: str, matrix: tuple = CUBE) -> tuple[str, set]:
        return fit(lambda x: x.sum(axis=axis), [shape], matrix, {0: kind})

    plain = {(0, 1), (0, 2)}
    assert ("total", plain) == total((4, 5), None, "row")
    assert NOWHERE == total((4, 5), 0, "row")
    assert NOWHERE == total((4, 5), None, "column")
    assert ("total", {(0, 1)}) == total((40, 1), None, "row", matrix=(40, 1))
    assert NOWHERE == total((40, 1), 1, "full", matrix=(40, 1))  # of one element each


def test_products_are_of_a_full_value_and_a_vector():
    def product(*shapes: tuple, **kinds: Any) -> tuple[str, set]:
        return fit(np.matmul, list(shapes), MATRIX, **kinds)

    assert ("row", {(0, 1)}) == product(MATRIX, (50,))
    assert ("row", {(0, 1)}) == product(MATRIX, (50,), kinds={0: "full"})
    assert ("column", {(0, 1)}) == product((40,), MATRIX, kinds={0: "row"})
    assert NOWHERE == product(MATRIX, (50,), kinds={1: "column"})
    assert NOWHERE == product((40,), MATRIX)
    assert NOWHERE == product(MATRIX, (50,), kinds={0: "spread"})
    assert NOWHERE == product((50, 40), (40,))


def test_views_keep_the_elements_in_order_or_spread_a_value_of_rows():
    def view(f: Callable, shape: tuple, kind: str | None, matrix: tuple = MATRIX) -> tuple:
        return fit(f, [shape], matrix, {} if kind is None else {0: kind})

    def spread(x):
        return np.broadcast_to(x, MATRIX)

    assert ("row", every_split(MATRIX)) == view(lambda x: x[:, None], (40,), "row")
    assert ("spread", of_rows(1)) == view(spread, (40, 1), "row")
    assert ("spread", {(0, 0)}) == view(spread, (), "total")
    assert NOWHERE == view(lambda x: np.broadcast_to(x, (7, 40)), (40,), "row")
    assert NOWHERE == view(lambda x: x[:, None], (40,), None)
    assert NOWHERE == view(lambda x: x[:, None], (40,), "column")
    assert NOWHERE == view(lambda x: x[::-1], (40,), "row")
    assert NOWHERE == view(lambda x: x[:20], (40,), "row")
    assert NOWHERE == view(lambda x: x.T, (4, 5), "row", CUBE)
    assert NOWHERE == view(lambda x: x.T, MATRIX, "full")


def test_a_bind_joins_a_group_as_a_full_value_or_as_a_value_of_rows():
    def joins(shape: tuple, matrix: tuple) -> bool:
        (bind,) = lt.trace(lambda y: y * 2.0, np.ones(shape)).binds
        return joins_group(bind, matrix, Split(0, 1), set())

    assert joins((40, 50), (40, 50))
    assert joins((40,), (40, 50))
    assert joins((40, 1), (40, 50))
    assert joins((40, 1), (40, 40))
    assert not joins((50,), (40, 50))
    assert not joins((40,), (40, 40))  # it may be read as a row of the matrix


def test_a_value_of_rows_joins_a_group_with_the_same_split():
    def joins(split: Split, matrix: tuple = CUBE, inside: tuple = ()) -> bool:
        (bind,) = lt.trace(np.add, np.ones((4, 5)), np.ones((4, 1))).binds
        return joins_group(bind, matrix, split, {bind.args[n] for n in inside})

    assert joins(Split(1, 2))
    assert joins(Split(1, 2), inside=(0,))
    assert not joins(Split(1, 2), inside=(1,))  # its rows are others
    assert not joins(Split(0, 2))
    assert not joins(Split(1, 1))
    assert not joins(Split(0, 3))  # without columns

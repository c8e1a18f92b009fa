"""Binds on small arrays become the rows of a table."""

import numpy as np
import pytest

import letir as lt
from letir.ast.text.parser import parse
from letir.executor.kernels.table_kernels import TableCall
from letir.kernels.interpreted_calls import InterpretedCall
from letir.kernels.tables.table_kernel import COLUMNS, SIGNATURE, arity_of, table_kernel
from letir.kernels.tables.table_lowering import NotInTable, lower_to_table
from letir.testing import assert_close, assert_same

F8 = np.dtype("f8")


def rows(text: str) -> list[tuple]:
    """The operation, the lengths of the loops and the address of the result, of each row."""
    table = lower_to_table(parse(text), F8)
    return [(table.names[row[0]], *row[1:4].tolist()) for row in split(table)]


def split(table) -> np.ndarray:
    return table.rows.reshape(-1, len(COLUMNS))


def run(text: str, *args):
    """The results of the kernel for a program, run by the interpreter, which tests all indices."""
    body = parse(text)
    table = lower_to_table(body, F8)
    ufunc = InterpretedCall(table_kernel(table.names, F8), SIGNATURE)
    return TableCall(ufunc, table, tuple([x.type.shape for x in body.params]))(*args)


def test_indices_take_no_rows_and_a_write_none_next_to_the_operation():
    text = """lambda %0: float64[4, 5] {
      %1: float64[] = index(%0, item=(1, 2))
      %2: float64[] = index(%0, item=(-1, 0))
      %3: float64[] = mul(%1, %2)
      %4: float64[4, 5] = index_set(%0, %3, item=(2, 2))
      return %4 }"""
    x = np.arange(20.0).reshape(4, 5)

    assert rows(text) == [("mul", 1, 1, 20 + 12), ("copy", 1, 20, 0)]
    expected = x.copy()
    expected[2, 2] = x[1, 2] * x[3, 0]
    assert_close(expected, run(text, x))


def test_an_array_with_other_uses_is_copied_before_a_write():
    text = """lambda %0: float64[3] {
      %1: float64[2] = index(%0, item=0:2)
      %2: float64[3] = index_set(%0, %1, item=1:3)
      %3: float64[3] = add(%2, %0)
      return (%2, %3) }"""

    assert [name for name, *_ in rows(text)] == ["copy", "copy", "add", "copy", "copy"]
    assert_close((np.array([1.0, 1, 2]), np.array([2.0, 3, 5])), run(text, np.array([1.0, 2, 3])))


def test_a_part_of_a_new_array_is_copied():
    text = """lambda %0: float64[3], %1: float64[4] {
      %2: float64[4] = mul(%1, 2.0)
      %3: float64[3] = index(%2, item=1:4)
      %4: float64[3] = index(%3, item=::-1)
      %5: float64[3] = index_set(%0, %4, item=:)
      return %5 }"""

    assert_close(np.array([8.0, 6, 4]), run(text, np.zeros(3), np.arange(1.0, 5)))


def test_elements_that_are_read_after_a_later_write_are_copied_instead_of_their_array():
    text = """lambda %0: float64[100] {
      %1: float64[100] = neg(%0)
      %2: float64[10] = index(%1, item=20:30)
      %3: float64[] = index(%2, item=0)
      %4: float64[100] = index_set(%1, 5.0, item=20)
      %5: float64[] = mul(%3, 2.0)
      %6: float64[100] = index_add(%4, %5, item=20)
      return %6 }"""
    x = np.arange(100.0)
    expected = -x
    expected[20] = 5.0 - 2 * 20.0

    assert ("copy", 1, 100) not in [row[:3] for row in rows(text)[:-1]]
    assert_close(expected, run(text, x))


def test_products_and_sums_of_all_shapes():
    text = """lambda %0: float64[3, 4], %1: float64[4], %2: float64[3] {
      %3: float64[3] = matmul(%0, %1)
      %4: float64[4] = matmul(%2, %0)
      %5: float64[4, 3] = transpose(%0, axes=None)
      %6: float64[3, 3] = matmul(%0, %5)
      %7: float64[3, 4] = outer(%3, %4)
      %8: float64[4] = sum(%7, axis=0)
      %9: float64[] = dot(%8, %1)
      return (%6, %7, %9) }"""
    a, x, y = np.arange(12.0).reshape(3, 4), np.arange(4.0), np.ones(3)
    outer = np.outer(a @ x, y @ a)

    found = run(text, a, x, y)

    assert_close((a @ a.T, outer, outer.sum(axis=0) @ x), found)


@pytest.mark.parametrize("terms", [2, 3, 4, 5, 12])
def test_sums_whose_terms_lie_apart_are_computed_side_by_side(terms):
    text = f"""lambda %0: float64[{terms}, 9], %1: float64[{terms}], %2: float64[{terms}, 3] {{
      %3: float64[9, {terms}] = transpose(%0)
      %4: float64[9] = matmul(%3, %1)
      %5: float64[9] = matmul(%1, %0)
      %6: float64[3, {terms}] = transpose(%2)
      %7: float64[3, 9] = matmul(%6, %0)
      %8: float64[9, {terms}] = add(%3, %3)
      %9: float64[9] = matmul(%8, %1)
      return (%4, %5, %7, %9) }}"""
    x, v, y = [np.random.default_rng(2).normal(size=n) for n in ((terms, 9), terms, (terms, 3))]

    names = [name for name, *_ in rows(text)]
    assert (5, 1) == (names.count("muladd"), names.count("dot"))
    assert_close((x.T @ v, v @ x, y.T @ x, (x + x).T @ v), run(text, x, v, y))


def test_a_sum_of_negative_zeros_is_a_positive_zero():
    text = """lambda %0: float64[2, 9], %1: float64[2] {
      %2: float64[9] = matmul(%1, %0)
      return %2 }"""

    assert not np.signbit(run(text, np.full((2, 9), -0.0), np.ones(2))).any()


def test_elements_are_moved_in_runs():
    text = """lambda %0: float64[3, 4], %1: float64[3] {
      %2: float64[4, 3] = transpose(%0, axes=None)
      %3: float64[12] = reshape(%2, shape=(12,))
      %4: float64[15] = concatenate(%3, %1, axis=0)
      %5: float64[2, 3] = stack(%1, %1, axis=0)
      return (%4, %5) }"""
    a, x = np.arange(12.0).reshape(3, 4), np.arange(3.0)

    assert_close((np.concatenate((a.T.ravel(), x)), np.stack((x, x))), run(text, a, x))


def test_an_operation_without_a_form_is_named():
    text = """lambda %0: float64[3, 4], %1: float32[3] {
      %2: float64[3, 4] = neg(%0)
      %3: float64[3] = cast(%1, dtype=float64)
      return (%2, %3) }"""

    with pytest.raises(NotInTable) as error:
        lower_to_table(parse(text), F8)

    assert error.value.position == 1
    assert [arity_of(name) for name in ("tanh", "maximum", "less", "where")] == [1, 2, 0, 0]


def test_sums_of_parts_take_a_row_for_each_part():
    text = """lambda %0: float64[], %1: float64[2], %2: float64[2] {
      %3: float64[3] = assemble(%0, %1, items=(2, 0:2), shape=(3,))
      %4: float64[3] = assemble(%1, %2, items=(0:2, 1:3), shape=(3,))
      %5: float64[4] = assemble(%1, items=(1:3,), shape=(4,))
      %6: float64[4] = index_add(%5, %2, item=2:4)
      %7: float64[4] = index_add(%6, %6, item=::-1)
      return (%3, %4, %5, %7) }"""
    a, b, c = np.array(-0.0), np.array([1.0, 2]), np.array([3.0, 4])

    assert [name for name, *_ in rows(text)][:2] == ["add", "add"]
    six = np.array([0.0, 1, 5, 4])
    expected = np.array([1.0, 2, 0]), np.array([1.0, 5, 4]), np.array([0.0, 1, 2, 0])
    assert_same((*expected, six + six[::-1]), run(text, a, b, c))


def test_all_results_of_a_split_are_views():
    text = """lambda %0: float64[4] {
      %1: float64[2], %2: float64[2] = split(%0, sections=2, axis=0)
      %3: float64[2] = mul(%1, %2)
      return %3 }"""

    assert [("mul", 1, 2, 6), ("copy", 1, 2, 0)] == rows(text)
    assert_close(np.array([3.0, 8]), run(text, np.arange(1.0, 5)))


@pytest.mark.parametrize("length", [1, 3, 4, 5, 8, 9])
def test_elementary_functions_of_rows_of_any_length_are_computed_four_at_a_time(length):
    text = f"""lambda %0: float64[3, {length}] {{
      %1: float64[3, {length}] = sin(%0)
      %2: float64[{length}] = index(%1, item=(1,))
      %3: float64[{length}] = arctan2(%2, %2)
      return %1, %3 }}"""
    x = np.linspace(0.1, 3, 3 * length).reshape(3, length)

    sines, angles = run(text, x)

    assert_close(np.sin(x), sines, rtol=1e-15)
    assert_close(np.arctan2(np.sin(x[1]), np.sin(x[1])), angles, rtol=1e-15)


def test_values_of_growing_and_shrinking_sizes_use_the_memory_of_earlier_ones():
    def solved(x):
        """A triangular system, whose right side becomes shorter in each step."""
        total = 0.0
        for k in range(1, 60):
            grown = x[:k] * 2.0 + 1.0
            total = total + (grown + x[k] * grown).sum()
            shrunk = x[k:] - total / 100.0
            total = total + np.sqrt((shrunk * shrunk).sum())
        return total

    x = np.linspace(-1.0, 1.0, 60)
    program = lt.trace(solved, x)
    table = lower_to_table(program, F8)

    assert table.size < 3_000  # 5,375 if only values of equal sizes shared it
    ufunc = InterpretedCall(table_kernel(table.names, F8), SIGNATURE)
    assert_close(solved(x), TableCall(ufunc, table, ((60,),))(x))


def test_a_result_in_fortran_order_is_refused():
    text = """lambda %0: float64[4, 5] {
      %1: float64[4, 5] = mul(%0, 2.0)
      %2: float64[4, 5] = copy(%1, order='F')
      return %2 }"""

    with pytest.raises(NotInTable):
        rows(text)

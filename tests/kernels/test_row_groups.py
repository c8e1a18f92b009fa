"""Kernels of groups with reductions: their text, and their values by the interpreter."""

import numpy as np
import pytest

import letir as lt
from letir.kernels import row_passes
from letir.kernels.few_columns import row_kernel
from letir.kernels.interpreter import run_kernel
from letir.kernels.row_passes import Space


def kernel_of(f, *args, split: int = 1):
    """The kernel of a function whose binds are one group."""
    return row_kernel(lt.trace(f, *args), Space(args[0].shape, 0, split))


def test_a_sum_of_squares_is_taken_in_blocks():
    found = kernel_of(lambda x: (x * x).sum(axis=1), np.ones((4, 300)))

    assert "(m,n)->(m)" == found.signature
    assert 1 == str(found.kernel).count("mul %")
    assert 4 == str(found.kernel).count("for ")  # arrays, rows, blocks, elements


def test_short_rows_are_one_block_of_a_known_length():
    found = kernel_of(lambda x: (x * x).sum(axis=1), np.ones((4, 15)))

    assert 3 == str(found.kernel).count("for ")  # arrays, rows, elements
    assert " < 15 carry" in str(found.kernel)


def test_values_needed_again_are_computed_again_if_cheap():
    x = np.ones((4, 15))
    cheap = kernel_of(lambda x: (x * 2) / (x * 2).max(axis=1, keepdims=True), x)
    costly = kernel_of(lambda x: (y := np.exp(x)) / y.sum(axis=1, keepdims=True), x)

    assert (0, 1) == (len(cheap.scratch), len(costly.scratch))


def test_few_columns_are_computed_without_a_loop_over_them():
    found = kernel_of(lambda x: (y := np.exp(x)) / y.sum(axis=1, keepdims=True), np.ones((4, 5)))

    assert 2 == str(found.kernel).count("for ")  # arrays, rows
    assert () == found.scratch  # costly values stay in registers


def test_operations_without_a_form_have_no_kernel():
    assert kernel_of(lambda x: np.sort(x).sum(axis=1), np.ones((4, 15))) is None


@pytest.mark.parametrize("n", [7, 17])
def test_the_interpreter_computes_rows_columns_and_totals(n):
    def f(x, row):
        y = x * row
        return y.sum(axis=1), y.max(axis=0), (y - y.mean(axis=1, keepdims=True)).sum()

    x, row = np.random.default_rng(0).normal(size=(4, n)), np.arange(n) * 1.0
    found = kernel_of(f, x, row)
    results = [np.zeros((1, 4)), np.zeros((1, n)), np.zeros(1)]
    run_kernel(found.kernel, x[None], row[None], *results, o=1, m=4, n=n)

    assert "(m,n),(n)->(m),(n),()" == found.signature
    for expected, y in zip(f(x, row), results, strict=True):
        assert np.allclose(expected, y[0], atol=1e-13)


def log_of_sums(x):
    top = x.max(axis=1, keepdims=True)
    return np.log(np.exp(x - top).sum(axis=1)) + top[:, 0]


def correlated(x):
    """A second pass that only adds to totals of columns."""
    return (x * x.sum(axis=1, keepdims=True)).sum(axis=0)


@pytest.mark.parametrize("f", [log_of_sums, correlated])
def test_the_second_pass_over_a_row_reads_the_next_row_ahead(f):
    found = kernel_of(f, np.ones((400, 1000)))
    text = str(found.kernel)

    first, second = text.index("x0[%"), text.rindex("x0[%")
    assert 1 == text.count("prefetch x0[")
    assert first < text.index("prefetch x0[") < second
    assert "prefetch" not in str(found.for_device.kernel)


@pytest.mark.parametrize("shape", [(100, 1000), (40, 10_000), (4000, 80)])
def test_small_matrices_and_rows_of_other_lengths_are_not_read_ahead(shape):
    assert "prefetch" not in str(kernel_of(correlated, np.ones(shape)).kernel)


def test_a_pass_that_only_writes_does_not_read_ahead():
    found = kernel_of(lambda x: x / x.sum(axis=1, keepdims=True), np.ones((400, 1000)))

    assert "prefetch" not in str(found.kernel)


@pytest.mark.parametrize("f", [log_of_sums, correlated])
def test_reading_ahead_beyond_the_last_row_changes_nothing(f, monkeypatch):
    monkeypatch.setattr(row_passes, "_MANY", 1)
    x = np.random.default_rng(0).normal(size=(3, 300))
    found, results = kernel_of(f, x), []
    for kernel in (found.kernel, found.for_device.kernel):
        results.append(np.zeros((1, *found.shape_of(*found.results))))
        run_kernel(kernel, x[None], results[-1], o=1, m=3, n=300)

    assert "prefetch" in str(found.kernel)
    assert np.array_equal(*results)
    assert np.allclose(f(x), results[0][0], rtol=1e-12)

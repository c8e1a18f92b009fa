"""Operations on symbolic sizes: shapes that fit some sizes only, and what depends on the order of
two sizes.
"""

import numpy as np
import pytest

import letir as lt
from letir.ast.sizes.size import Size, exact_quotient
from letir.testing import assert_close, assert_same

N, LONGER = lt.ShapeDtype("n"), lt.ShapeDtype((Size("n") + 1,))


def test_a_polynomial_is_divided_by_a_polynomial():
    n, m = Size.named("n"), Size.named("m")

    assert (n - 1, 2, 3 * m + n) == (
        exact_quotient(n * n - 1, n + 1),
        exact_quotient(4 * n + 8, 2 * n + 4),
        exact_quotient(n * n + 3 * n * m, n),
    )
    assert [None] * 4 == [
        exact_quotient(*pair) for pair in ((n * n + 1, n + 1), (n, 2), (6, n), (n, 0))
    ]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.reshape(x.shape[0] // 2, 2) * 1.0,
        lambda x: x.reshape(-1, 2).sum(1),
        lambda x: x.reshape(2, x.shape[0] // 2).T,
    ],
)
def test_a_reshape_that_fits_some_sizes_raises_at_the_others(f):
    program, fast = lt.trace(f, N), lt.jit(f)
    gradient = lt.grad(lambda x: (f(x) ** 3).sum())

    for n in (4, 6, 2, 10):
        x = np.arange(1.0, n + 1)
        assert_same(f(x), program(x))
        assert_same(f(x), fast(x))
        assert_close(6.0 * x**2 if f(x).ndim == 2 else gradient(x) * 2, gradient(x) * 2)
    for n in (5, 7):
        for run in (program, fast, lt.compile(program, exact=True)):
            with pytest.raises(ValueError, match="cannot reshape array of size"):
                run(np.ones(n))


def test_a_reshape_that_fits_no_size_is_refused():
    with pytest.raises(lt.ShapeError, match="the number of elements must stay"):
        lt.trace(lambda x: x.reshape(x.shape[0] + 1), N)


def test_an_unused_reshape_that_may_raise_is_kept_if_exact():
    def f(x):
        x.reshape(-1, 2)
        return x

    program = lt.trace(f, N)

    with pytest.raises(ValueError, match="cannot reshape"):
        lt.compile(program, exact=True)(np.ones(3))


def test_counts_of_copies_may_be_sizes_in_abstract_traces():
    def f(x):
        n = x.shape[0]
        return np.tile(x, n), np.repeat(x, n), np.pad(x, (n, 1)), np.diag(x, 2), np.vander(x, n)

    program = lt.trace(f, LONGER)
    gradient = lt.trace(lt.grad(lambda x: sum((part**2).sum() for part in f(x))), LONGER)

    for n in (1, 2, 5):
        x = np.linspace(0.5, 1.5, n)
        for expected, actual in zip(f(x), program(x), strict=True):
            assert_same(expected, actual)
        assert_close(lt.grad(lambda x: sum((part**2).sum() for part in f(x)))(x), gradient(x))


def test_the_smaller_side_of_a_matrix_is_found_from_some_size_on():
    f = lt.jit(lambda x: np.linalg.svd(x, compute_uv=False))
    for n in (2, 3, 5, 6, 9, 2):
        x = np.sin(np.arange(n * 5.0)).reshape(n, 5)
        assert_close(f.__wrapped__(x), f(x))

    assert "float64[n0+5, 5]" in {str(plan.spec) for plan in f.debug_state().plans}


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_borders_of_copied_elements_have_gradients_at_all_sizes(mode):
    def loss(x):
        padded = np.pad(x, ((2, 1), (0, 0)), mode)
        return (padded**3 * np.arange(padded.size).reshape(padded.shape)).sum()

    gradient = lt.jit(lt.grad(loss))
    for n in (4, 5, 6, 9):
        x = np.sin(np.arange(n * 2.0)).reshape(n, 2)
        assert_close(lt.grad(loss)(x), gradient(x))

    assert gradient.counters["compiles"] <= 3


@pytest.mark.parametrize("parts", [1, 2, 3, 4, 5])
def test_uneven_parts_of_any_size(parts):
    program = lt.trace(lambda x: np.array_split(x, parts), lt.ShapeDtype((Size("n") + 2, 2)))

    for n in range(2, 12):
        x = np.arange(2.0 * n).reshape(n, 2)
        for expected, actual in zip(np.array_split(x, parts), program(x), strict=True):
            assert_same(expected, actual)


@pytest.mark.parametrize("k", [-2, -1, 0, 1])
@pytest.mark.parametrize("indices", [np.tril_indices, np.triu_indices])
def test_the_indices_of_a_triangle_of_any_size(indices, k):
    f = lt.jit(lambda x: indices(x.shape[0], k))
    for n in (4, 3, 5, 8, 2, 1):
        for expected, actual in zip(f.__wrapped__(np.ones(n)), f(np.ones(n)), strict=True):
            assert_same(expected, actual)

    assert f.counters["compiles"] <= 4


def test_grids_and_diagonals_of_any_size():
    def f(x):
        n = x.shape[0]
        filled = np.outer(x, x)
        np.fill_diagonal(filled, 7)
        rows, columns = np.indices((n, 3))
        sparse = np.indices((n, n), sparse=True)
        filled[np.diag_indices(n)] += 1
        table = np.fromfunction(lambda i, j: i * 10 + j, (n, 2), dtype=int)
        return filled, rows - columns, sparse[0] + sparse[1], table

    fast = lt.jit(f)
    for n in (3, 4, 6, 8, 2):
        x = np.arange(1.0, n + 1)
        for expected, actual in zip(f(x), fast(x), strict=True):
            assert_same(expected, actual)

    assert fast.counters["compiles"] == 2


@pytest.mark.parametrize("order", ["C", "F"])
def test_flat_indices_of_arrays_of_any_size(order):
    def f(x):
        table = np.outer(x, x[:2])
        largest = np.unravel_index(np.argmax(table), table.shape, order)
        places = np.unravel_index(np.argsort(table, axis=None), (x.size, 2), order)
        return *largest, *places

    fast = lt.jit(f)
    for n in (3, 5, 4, 7):
        x = np.sin(np.arange(1.0, n + 1))
        for expected, actual in zip(f(x), fast(x), strict=True):
            assert_same(expected, actual)

    assert fast.counters["compiles"] == 2


def test_a_flat_index_beyond_the_end_raises_numpys_error():
    fast = lt.jit(lambda x, k: np.unravel_index(k, (x.size, 2)))
    for n, k in ((3, 5), (4, 5), (5, 9)):
        assert fast.__wrapped__(np.ones(n), k) == fast(np.ones(n), k)

    for k in (10, -1):
        with pytest.raises(ValueError, match=f"index {k} is out of bounds for array with size 10"):
            fast(np.ones(5), k)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.delete(x, 1),
        lambda x: np.delete(x, -2),
        lambda x: np.delete(x, [1, 0, 1]),
        lambda x: np.delete(x, np.array([-1, 0])),
        lambda x: np.delete(np.outer(x, x), (1, -1), axis=1),
        lambda x: np.split(x, [1, len(x) - 1])[1],
        lambda x: np.array_split(np.outer(x, x), [len(x) // 2], axis=1)[1],
        lambda x: np.delete(np.outer(x, x), 0, axis=1),
        lambda x: np.insert(x, 1, 0.5),
        lambda x: np.insert(x, x.size, x[:2]),
        lambda x: np.insert(x, -1, 7),
        lambda x: np.insert(np.outer(x, x), 2, x, axis=0),
    ],
)
def test_delete_and_insert_at_places_of_arrays_of_any_size(f):
    fast, gradient = lt.jit(f), lt.jit(lt.grad(lambda x: (f(x) ** 2).sum()))
    for n in (3, 5, 4, 8, 2):
        x = np.linspace(0.5, 1.5, n)
        assert_same(f(x), fast(x))
        assert_close(lt.grad(lambda x: (f(x) ** 2).sum())(x), gradient(x))

    assert fast.counters["compiles"] <= 3


def test_a_place_beyond_the_end_is_an_index_error_at_that_size():
    fast = lt.jit(lambda x: np.delete(x, 3))
    for n in (5, 6, 4, 7):
        assert_same(fast.__wrapped__(np.ones(n)), fast(np.ones(n)))

    with pytest.raises(IndexError, match="out of bounds"):
        fast(np.ones(3))

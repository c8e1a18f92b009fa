"""Products of known sparse matrices with traced values."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close, check_grads

sparse = pytest.importorskip("scipy.sparse")
linalg = pytest.importorskip("scipy.sparse.linalg")
DENSE = np.array([[1.0, 2, 0], [0, 0, 0], [3, 0, 4], [0, 5, 6]])
X = np.array([1.0, -2.0, 0.5])


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dia", "lil", "dok"])
def test_products_with_vectors_and_matrices(make, form):
    matrix = make(DENSE).asformat(form)

    def f(x):
        rows = np.stack([x, 2 * x])
        return matrix @ x, matrix.dot(rows.T), (matrix @ x) @ matrix, matrix.T @ (matrix @ rows.T)

    program = lt.trace(f, X)

    for x in (X, X[::-1] + 1):
        assert_close(f(x), program(x))
    check_grads(lambda x: matrix @ x, (X,), order=2)


def test_entries_of_one_place_are_added_in_the_type_of_the_product():
    """The entries True and True of one place multiply by 2, and two of 100 in int8 by 200."""

    def f(x):
        rows, columns = np.array([0, 2, 0]), np.array([1, 0, 1])
        ones = sparse.coo_matrix((np.ones(3, bool), (rows, columns)), shape=(3, 3))
        hundreds = sparse.coo_array((np.full(3, 100, np.int8), (rows, columns)), shape=(3, 3))
        return ones @ x, ones.tocsr() @ x, x @ ones, hundreds @ x, hundreds.tocsc() @ x

    assert_close(f(X), lt.trace(f, X)(X))


def test_a_matrix_without_elements_and_one_that_the_function_makes():
    def f(x):
        return sparse.csr_matrix((2, 3)) @ x, sparse.eye(3).tocsr() @ x

    assert_close(f(X), lt.trace(f, X)(X))


def test_sums_of_matrices_that_the_function_makes_solve_for_traced_values():
    """As in the Hodrick-Prescott filter."""

    def f(x):
        data = np.repeat([[1.0], [-2.0], [1.0]], 3, axis=1)
        k = sparse.dia_array((data, [0, 1, 2]), shape=(1, 3))
        return linalg.spsolve((sparse.eye_array(3) + 5 * k.T.dot(k)).tocsc(), x)

    program = lt.trace(f, X)

    assert_close(f(X), program(X))
    assert_close(f(2 * X + 1), program(2 * X + 1))
    assert_close(f(X), lt.jit(f)(X))


def test_shapes_that_do_not_fit_are_named():
    matrix = sparse.csr_matrix(DENSE)

    with pytest.raises(lt.ShapeError, match="a vector or a matrix with 3 rows"):
        lt.trace(lambda x: matrix @ x, np.ones(4))


def test_the_methods_are_scipys_after_a_recording():
    matrix = sparse.csr_matrix(DENSE)
    before = type(matrix)._matmul_dispatch
    lt.trace(lambda x: matrix @ x, X)

    assert type(matrix)._matmul_dispatch is before

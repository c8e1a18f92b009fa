"""Functions of scipy.linalg refuse infinite and missing elements, in recorded programs too."""

import numpy as np
import pytest
from scipy import linalg

import letir as lt
from tests.each_sample import in_one_test

MATRIX = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
LINE = np.array([1.0, -2.0, 0.5])
FUNCTIONS = {
    "cholesky": linalg.cholesky,
    "cho_factor": lambda a: linalg.cho_solve(linalg.cho_factor(a), LINE),
    "cho_solve": lambda a: linalg.cho_solve((np.tril(MATRIX), True), a[0]),
    "det": linalg.det,
    "eigh": lambda a: linalg.eigh(a)[0],
    "eigh of two": lambda a: linalg.eigh(MATRIX, a)[0],
    "eigvalsh": linalg.eigvalsh,
    "inv": linalg.inv,
    "lu_solve": lambda a: linalg.lu_solve(linalg.lu_factor(MATRIX), a[0]),
    "norm": linalg.norm,
    "polar": linalg.polar,
    "solve": lambda a: linalg.solve(a, LINE),
    "solve_banded": lambda a: linalg.solve_banded((1, 1), a, LINE),
    "solve_sylvester": lambda a: linalg.solve_sylvester(a, MATRIX, MATRIX),
    "solve_toeplitz": lambda a: linalg.solve_toeplitz(a[0], LINE),
    "solve_triangular": lambda a: linalg.solve_triangular(a, LINE),
    "solveh_banded": lambda a: linalg.solveh_banded(np.stack([a[0] / 9, np.diag(MATRIX)]), LINE),
    "svd": lambda a: linalg.svd(a)[1],
    "svdvals": linalg.svdvals,
}


@in_one_test
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jit_raises_scipys_error_for_a_missing_element(name):
    f, wrong = FUNCTIONS[name], MATRIX.copy()
    wrong[0, 1] = wrong[1, 0] = np.nan
    fast = lt.jit(f)
    for _ in range(3):
        fast(MATRIX)

    for call in (f, fast, lt.trace(f, MATRIX)):
        with pytest.raises(ValueError, match="must not contain infs or NaNs"):
            call(wrong)


def test_a_program_without_the_test_accepts_them():
    fn = lt.trace(lambda a: linalg.norm(a, check_finite=False), MATRIX)

    assert np.isnan(fn(MATRIX * np.nan))
    assert "checked_finite" not in str(fn)


def test_the_test_has_the_derivative_of_the_identity():
    found = lt.grad(linalg.det)(MATRIX)

    np.testing.assert_allclose(found, linalg.det(MATRIX) * linalg.inv(MATRIX).T)

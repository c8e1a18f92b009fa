"""Derivatives of functions that read one triangle of a matrix, where the other one differs."""

import numpy as np
import pytest
from scipy import linalg

import letir as lt
from letir.testing import assert_close
from tests.each_sample import in_one_test

RNG = np.random.default_rng(0)
ROOT, WEIGHTS, ALONG = RNG.normal(size=(3, 4, 4))
HERMITIAN = ROOT @ ROOT.T + np.diag([4.0, 5.0, 6.0, 7.0])
OTHER = np.diag([1.0, 2.0, 3.0, 4.0]) + 0.1 * (ROOT + ROOT.T)


def vectors(pair):
    """A smooth function of eigenvalues and eigenvectors that does not depend on their signs."""
    w, v = pair
    return (w * WEIGHTS[0, : len(w)]).sum() + (v**2 * WEIGHTS[:, : len(w)]).sum()


OF_LOWER = {
    "cholesky": lambda x: (np.linalg.cholesky(x) * WEIGHTS).sum(),
    "eigh": lambda x: vectors(np.linalg.eigh(x)),
    "eigvalsh": lambda x: np.linalg.eigvalsh(x) @ WEIGHTS[0],
    "cholesky of SciPy": lambda x: (linalg.cholesky(x, lower=True) * WEIGHTS).sum(),
    "eigh of SciPy": lambda x: vectors(linalg.eigh(x)),
    "some eigenvectors": lambda x: vectors(linalg.eigh(x, subset_by_index=[0, 1])),
    "the first of a pair": lambda x: vectors(linalg.eigh(x, OTHER)),
    "the second of a pair": lambda x: vectors(linalg.eigh(OTHER, x)),
    "a stack": lambda x: (np.linalg.cholesky(np.stack([x, x.T])) * WEIGHTS).sum(),
}
OF_UPPER = {
    "upper cholesky": lambda x: (np.linalg.cholesky(x, upper=True) * WEIGHTS).sum(),
    "upper eigh": lambda x: vectors(np.linalg.eigh(x, "U")),
    "upper eigvalsh": lambda x: np.linalg.eigvalsh(x, "U") @ WEIGHTS[0],
    "upper cholesky of SciPy": lambda x: (linalg.cholesky(x) * WEIGHTS).sum(),
}
CASES = {name: (f, np.tril(HERMITIAN), np.tril) for name, f in OF_LOWER.items()}
CASES |= {name: (f, np.triu(HERMITIAN), np.triu) for name, f in OF_UPPER.items()}
CASES["a stack"] = (OF_LOWER["a stack"], HERMITIAN + np.triu(0.1 * ROOT, 1), None)


@in_one_test
@pytest.mark.parametrize("name", CASES)
def test_the_triangle_that_is_read_has_the_whole_derivative(name):
    f, x, part = CASES[name]
    step = 1e-5 * ALONG
    numeric = (f(x + step) - f(x - step)) / 2e-5

    gradient = lt.grad(f)(x)

    assert (gradient * ALONG).sum() == pytest.approx(numeric, rel=1e-6)
    assert lt.jvp(f, (x,), (ALONG,))[1] == pytest.approx(numeric, rel=1e-6)
    if part is not None:
        np.testing.assert_array_equal(part(gradient), gradient)


@in_one_test
@pytest.mark.parametrize("f", [*OF_LOWER.values(), *OF_UPPER.values()])
def test_both_triangles_of_a_hermitian_matrix_share_the_derivative(f):
    step = 1e-5 * (ALONG + ALONG.T)
    numeric = (f(HERMITIAN + step) - f(HERMITIAN - step)) / 2e-5

    gradient = lt.grad(f)(HERMITIAN)

    assert_close(gradient, gradient.T)
    assert (gradient * (ALONG + ALONG.T)).sum() == pytest.approx(numeric, rel=1e-6)


def test_a_quaternion_from_the_lower_triangle_of_its_matrix():
    """The matrix of Bar-Itzhack's method, whose upper triangle is often left at zero."""

    def quaternion(rotation):
        (a, b, c), (d, e, f), (g, h, i) = rotation.T
        lower = np.array(
            [
                [a - e - i, 0, 0, 0],
                [b + d, e - a - i, 0, 0],
                [c + g, f + h, i - a - e, 0],
                [f - h, g - c, b - d, a + e + i],
            ]
        )
        w, v = np.linalg.eigh(lower / 3)
        q = v[[3, 0, 1, 2], np.argmax(w)]
        return q * np.sign(q[0])

    rotation = np.linalg.qr(ROOT[:3, :3])[0]
    rotation *= np.sign(np.linalg.det(rotation))
    step = 1e-5 * ALONG[:3, :3]

    _, slope = lt.jvp(quaternion, (rotation,), (ALONG[:3, :3],))

    numeric = (quaternion(rotation + step) - quaternion(rotation - step)) / 2e-5
    np.testing.assert_allclose(slope, numeric, atol=1e-8)

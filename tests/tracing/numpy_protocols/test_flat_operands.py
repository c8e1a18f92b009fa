"""``x.flat`` as an operand of NumPy's functions [B2]."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from tests.each_sample import in_one_test

X = np.array([[0.5, 2.0, 1.0], [3.0, 0.25, 2.5]])
CALLS = {
    "ufunc": lambda x: np.sin(x.flat),
    "ufunc of two": lambda x: np.add(x.ravel(), x.flat),
    "operator": lambda x: x.ravel() * x.flat,
    "method of a ufunc": lambda x: np.add.reduce(x.flat),
    "sum": lambda x: np.sum(x.flat),
    "sort": lambda x: np.sort(x.flat),
    "interp": lambda x: np.interp(x.flat, [0.0, 1.0, 3.0], [0.0, 2.0, 7.0]),
    "concatenate": lambda x: np.concatenate([x.flat, x.ravel()]),
    "dot": lambda x: np.dot(x.flat, x.flat),
    "norm": lambda x: np.linalg.norm(x.flat),
    "array": lambda x: np.array(x.flat) * 2,
    "array of a list": lambda x: np.array([x.flat, x.flat]),
    "array of a mixed list": lambda x: np.asarray([[x.flat], [[1, 2, 3, 4, 5, 6]]]),
    "asarray": lambda x: np.asarray(x.flat) * 2,
    "keyword": lambda x: np.clip(x, a_min=None, a_max=np.max(a=x.flat) / 2),
}


@in_one_test
@pytest.mark.parametrize("f", CALLS.values(), ids=CALLS)
def test_flat_elements_are_operands(f):
    program, fast = lt.trace(f, X), lt.jit(f, exact=True)

    for x in (X, X[::-1] * 2):
        assert_same(f(x), program(x))
        assert_same(f(x), fast(x))


def test_the_gradient_flows_through_flat_elements():
    assert_same(np.cos(X), lt.grad(lambda x: np.sum(np.sin(x.flat)))(X))

"""np.ravel in an abstract trace: a view or a copy, as in NumPy, for any memory order."""

import numpy as np
import pytest

import letir as lt
from letir.passes import peephole
from tests.each_sample import in_one_test

X = np.arange(24.0).reshape(4, 6)
ARRAYS = {
    "rows": X,
    "columns": X.T,
    "every_other": X[:, ::2],
    "backwards": X[::-1],
    "some_rows": X[1:3],
    "a_row": X[0],
    "of_a_row": X[0, ::2],
    "one": X[:1, :1],
}
WAYS = {
    "jit": lambda f, x: lt.jit(f)(x),
    "abstract": lambda f, x: lt.trace(f, x, abstract=True)(x),
    "types": lambda f, x: lt.trace(f, lt.ShapeDtype(x.shape))(x),
}


@in_one_test
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("way", WAYS)
def test_ravel_of_a_contiguous_array_is_a_view_and_of_others_a_copy(way, name, order):
    x = ARRAYS[name]

    found, expected = WAYS[way](lambda x: x.ravel(order), x), x.ravel(order)

    assert np.array_equal(found, expected)
    assert found.strides == expected.strides
    assert np.shares_memory(found, x) == np.shares_memory(expected, x)


def test_one_program_ravels_arrays_in_any_memory_order():
    f = lt.trace(np.ravel, lt.ShapeDtype((4, 6)))

    for x in (X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        found, expected = f(x), np.ravel(x)
        assert found.strides == expected.strides
        assert np.shares_memory(found, x) == np.shares_memory(expected, x)


def test_a_write_into_a_ravelled_view_changes_the_array():
    def f(x):
        y = x.ravel()
        y[0] = 5.0
        return x * 1

    for name in ("rows", "every_other", "columns"):
        own, also = ARRAYS[name].copy("K"), ARRAYS[name].copy("K")
        assert np.array_equal(f(own), lt.jit(f)(also))
        assert np.array_equal(own, also)


def test_derivatives_and_batches_agree_with_a_reshape():
    df = lt.grad(lambda x: (x.ravel("F") ** 2).sum())

    assert np.array_equal(2 * X, df(X))
    assert np.array_equal(X.reshape(2, 12), lt.vmap(np.ravel)(X.reshape(2, 3, 4)))


def test_ravel_of_a_known_contiguous_array_becomes_a_reshape():
    f = lt.trace(lambda x: (x @ x.T).ravel(), lt.ShapeDtype((4, 6)))
    g = lt.trace(lambda x: np.tanh(x).ravel(), lt.ShapeDtype((4, 6)))

    assert "reshape" == peephole(f).binds[-1].op.name
    # in Fortran order for an array in Fortran order
    assert "ravel" == peephole(g).binds[-1].op.name

"""Arguments that NumPy refuses, or takes with a warning: traced arrays do as NumPy does."""

import functools

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same

X = np.array([1.5, 0.5, 2.5, 3.5])
A = np.arange(12.0).reshape(3, 4) + 0.5

REFUSED = {
    "insert at floats": (lambda x: np.insert(x, np.array([]), 1.0), IndexError),
    "insert at a float": (lambda x: np.insert(x, [1.0], 1.0), TypeError),
    "bool size": (lambda x: x.reshape((True, -1)), TypeError),
    "bool sizes": (lambda x: x.reshape(True, -1), TypeError),
    "bool shape": (lambda x: np.zeros((2, True)) + x[0], TypeError),
    "copy as text": (lambda x: np.array(x, copy="always"), ValueError),
    "no copy of another dtype": (lambda x: np.array(x, np.float32, copy=False), ValueError),
    "a size as dtype": (lambda x: np.zeros(x.size, int(x[0])), TypeError),
    "an array as dtype": (lambda x: np.sum(np.ones(3), 0, x), TypeError),
    "an array as dtype of a ufunc": (lambda x: np.add(x, 1.0, dtype=x), TypeError),
    "an array as dtype of an array": (lambda x: np.array([1.0], x) + x[0], TypeError),
    "an array as dtype of a joined array": (lambda x: np.concatenate([x], dtype=x), TypeError),
    "clip of None": (lambda x: np.clip(None, 0.0, x), TypeError),
    "no copy of a list": (lambda x: np.asarray([x[0], 1.0], copy=False), ValueError),
}


@pytest.mark.parametrize(("f", "error"), REFUSED.values(), ids=REFUSED)
def test_arguments_are_refused_as_by_numpy(f, error):
    with pytest.raises(error):
        f(X)
    with pytest.raises(error):
        lt.trace(f, X)
    with pytest.raises(error):
        lt.jit(f)(X)


@pytest.mark.parametrize("make", [np.zeros, np.ones, np.empty, lambda n, m: np.full(n, 1.0, m)])
def test_the_second_of_two_sizes_is_no_dtype(make):
    for call in (make, functools.partial(lt.trace, make), lt.jit(make)):
        with pytest.raises(TypeError, match=r"dtype|data type"):
            call(3, 4)


TAKEN = {
    "a step of None": (lambda x: np.arange(1, x.astype(int).sum(), None), X),
    "a step of None from floats": (lambda x: np.arange(x[0], x[3], step=None), X),
    "a range by its end alone": (lambda x: np.arange(stop=x[3]), X),
    "insert at no place": (lambda x: np.insert(x, [], 1.0), X),
    "bincount of uint64": (np.bincount, np.array([1, 2, 1], np.uint64)),
    "weights of uint64": (lambda x: np.bincount(np.array([0, 2], np.uint64), x[:2]), X),
    "no copy of itself": (lambda x: np.array(x, copy=False) * 2, X),
    "powers to fit": (
        lambda x: np.polynomial.polynomial.polyfit(np.arange(4.0), x, [2, 0]),
        X,
    ),
    "powers and weights": (
        lambda a: np.polynomial.polynomial.polyfit(a[0], a.T, [1, 2], w=[1.0, 2.0, 1.0, 0.5]),
        A,
    ),
}


@pytest.mark.parametrize(("f", "x"), TAKEN.values(), ids=TAKEN)
def test_unusual_arguments_give_the_result_of_numpy(f, x):
    program, jitted = lt.trace(f, x), lt.jit(f)

    np.testing.assert_allclose(program(x), f(x), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(jitted(x), f(x), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn", "fft2"])
def test_a_length_of_none_is_the_full_axis(name):
    transform = getattr(np.fft, name)

    def f(a):
        return transform(a, s=(6, None), axes=(0, 1))

    with pytest.warns(DeprecationWarning, match="None"):
        expected = f(A)
    with pytest.warns(DeprecationWarning, match="None"):
        program = lt.trace(f, A)

    assert_same(expected, program(A))


@pytest.mark.parametrize("f", [np.var, np.std, np.median, np.nanvar])
def test_jit_runs_python_where_numpy_computes_in_the_dtype_of_out(f):
    def into(x):
        return f(x, axis=0, out=np.zeros(4, np.float32))

    with pytest.raises(lt.DTypeError):
        lt.trace(into, A)
    with pytest.warns(RuntimeWarning, match="as Python"):
        assert_same(into(A), lt.jit(into)(A))

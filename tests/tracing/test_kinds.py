"""Programs agree with NumPy in kind, dtype, shape and bits of results [A1, C4].

Every function is traced at one argument and replayed at another of each kind: Python numbers,
NumPy scalars, 0-d arrays and arrays of every dtype. Where NumPy raises, so does the trace.
"""

import warnings

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from tests.each_sample import in_one_test

DTYPES = tuple("?bhilBHILefdFD")
OF_ANY = {
    "x + 1": lambda x: x + 1,
    "1 + x": lambda x: 1 + x,
    "x * 2.5": lambda x: x * 2.5,
    "x / 3": lambda x: x / 3,
    "x // 2": lambda x: x // 2,
    "x % 3": lambda x: x % 3,
    "x ** 3": lambda x: x**3,
    "2 ** x": lambda x: 2**x,
    "x * 1j": lambda x: x * 1j,
    "-x": lambda x: -x,
    "+x": lambda x: +x,
    "~x": lambda x: ~x,
    "x & 1": lambda x: x & 1,
    "x ^ x": lambda x: x ^ x,
    "abs": abs,
    "divmod": lambda x: divmod(x, 2),
    "(x * 1.5) * 2": lambda x: (x * 1.5) * 2,
    "x + float32": lambda x: x + np.float32(1),
    "x + int8": lambda x: x + np.int8(1),
    "x + array of float32": lambda x: x + np.ones(3, np.float32),
    "array of int8 * x": lambda x: np.ones(3, np.int8) * x,
    "x + 0-d array": lambda x: x + np.array(1.0, np.float32),
    "sin": np.sin,
    "sqrt": np.sqrt,
    "sign": np.sign,
    "floor": np.floor,
    "square": np.square,
    "reciprocal": np.reciprocal,
    "isnan": np.isnan,
    "logical_not": np.logical_not,
    "add": lambda x: np.add(x, 1),
    "maximum": lambda x: np.maximum(x, 1),
    "add as float32": lambda x: np.add(x, 1, dtype=np.float32),
    "where": lambda x: np.where(True, x, 0),
    "clip": lambda x: np.clip(x, 0, 1),
    "sum": np.sum,
    "sum, axes kept": lambda x: np.sum(x, keepdims=True),
    "mean": np.mean,
    "prod": np.prod,
    "max": np.max,
    "any": np.any,
    "argmax": np.argmax,
    "cumsum": np.cumsum,
    "reshape": lambda x: np.reshape(x, (-1,)),
    "ravel": np.ravel,
    "transpose": np.transpose,
    "expand_dims": lambda x: np.expand_dims(x, 0),
    "squeeze": np.squeeze,
    "broadcast_to": lambda x: np.broadcast_to(x, np.shape(x)),
    "flip": np.flip,
    "stack": lambda x: np.stack([x, x]),
    "real": np.real,
    "imag": np.imag,
    "conj": np.conj,
    "dot": lambda x: np.dot(x, x),
    "einsum": lambda x: np.einsum("...->", x),
    "zeros_like": np.zeros_like,
    "ones_like": np.ones_like,
    "full_like": lambda x: np.full_like(x, 1),
    "itself": lambda x: x,
    "a number": lambda x: 1.0,
    "a NumPy scalar": lambda x: np.float64(1.0),
    "a 0-d array": lambda x: np.array(1.0),
}
OF_NUMPY = {
    "x > 1": lambda x: x > 1,
    "x == x": lambda x: x == x,
    "x * float64": lambda x: x * np.float64(2.0),
    "copy": lambda x: x.copy(),
    "astype": lambda x: x.astype(np.float32),
    "astype, not copied": lambda x: x.astype(x.dtype, copy=False),
    "x.real": lambda x: x.real,
    "x.T": lambda x: x.T,
    "x.sum()": lambda x: x.sum(),
    "x.max()": lambda x: x.max(),
    "x.mean()": lambda x: x.mean(),
    "x.reshape": lambda x: x.reshape(-1, 1),
    "x.ravel": lambda x: x.ravel(),
    "x.flatten": lambda x: x.flatten(),
    "x.clip": lambda x: x.clip(0, 1),
    "x.conj": lambda x: x.conj(),
    "x.squeeze": lambda x: x.squeeze(),
    "x[...]": lambda x: x[...],
    "x[None]": lambda x: x[None],
}
OF_ARRAYS = {
    "x[0]": lambda x: x[0],
    "x[1:]": lambda x: x[1:],
    "x[0, ...]": lambda x: x[0, ...],
    "x[[0, 1]]": lambda x: x[[0, 1]],
    "x[mask]": lambda x: x[np.array([True, False, True])],
    "x[0] + 1": lambda x: x[0] + 1,
    "x[0] * x": lambda x: x[0] * x,
    "x[0] == x[1]": lambda x: x[0] == x[1],
    "rows": list,
    "sum of rows": sum,
    "x.sum(0)": lambda x: x.sum(0),
    "x.dot(x)": lambda x: x.dot(x),
    "x @ x": lambda x: x @ x,
    "add.reduce": np.add.reduce,
    "add.accumulate": np.add.accumulate,
    "split": lambda x: np.split(x, 3),
    "concatenate": lambda x: np.concatenate([x, x]),
    "pad": lambda x: np.pad(x, 1),
    "x.swapaxes": lambda x: x.swapaxes(0, 0),
    "len(x) * x": lambda x: len(x) * x,
    "x.size * x": lambda x: x.size * x,
}
NUMBERS = {"float": (2.5, 3.5), "int": (3, 5), "complex": (1 + 2j, 2 - 1j)}
SCALARS = {f"{np.dtype(d)}": (np.dtype(d).type(1), np.dtype(d).type(2)) for d in DTYPES}
ZERO_D = {f"{d}[]": (np.array(a), np.array(b)) for d, (a, b) in SCALARS.items()}
ARRAYS = {
    f"{np.dtype(d)}[3]": (np.array([1, 0, 2]).astype(d), np.array([0, 1, 1]).astype(d))
    for d in DTYPES
}


def agrees(function, recorded_at, replayed_at) -> None:
    """Raise AssertionError unless the program of ``function`` agrees with it, errors included."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # such as 1 / 0, as in NumPy
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        try:
            expected = function(replayed_at)
        except (TypeError, ValueError) as error:
            with pytest.raises(TypeError if isinstance(error, TypeError) else ValueError):
                lt.trace(function, recorded_at)(replayed_at)
            return
        assert_same(expected, lt.trace(function, recorded_at)(replayed_at))


@in_one_test
@pytest.mark.parametrize("name", OF_ANY)
def test_a_function_of_python_numbers(name):
    for pair in NUMBERS.values():
        agrees(OF_ANY[name], *pair)


@in_one_test
@pytest.mark.parametrize("name", OF_ANY | OF_NUMPY)
def test_a_function_of_numpy_scalars(name):
    for pair in SCALARS.values():
        agrees((OF_ANY | OF_NUMPY)[name], *pair)


@in_one_test
@pytest.mark.parametrize("name", OF_ANY | OF_NUMPY)
def test_a_function_of_0d_arrays(name):
    for pair in ZERO_D.values():
        agrees((OF_ANY | OF_NUMPY)[name], *pair)


@in_one_test
@pytest.mark.parametrize("name", OF_ANY | OF_NUMPY | OF_ARRAYS)
def test_a_function_of_arrays(name):
    for pair in ARRAYS.values():
        agrees((OF_ANY | OF_NUMPY | OF_ARRAYS)[name], *pair)


@in_one_test
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, 2.0, -1.0, True, np.int64(2)])
@pytest.mark.parametrize("dtype", ["?", "b", "f", "d", "F", "D"])
@pytest.mark.parametrize("is_array", [True, False])
def test_powers_agree_with_the_operator_to_the_last_bit(exponent, dtype, is_array):
    x = (np.linspace(0.3, 7, 99) * (1 + 0.7j)).real.astype(dtype)
    x = (x + 0.7j * x[::-1]).astype(dtype) if dtype in "FD" else x
    x = x if is_array else x[3]
    if dtype in "?b" and exponent < 0:
        pytest.skip("NumPy refuses the power, or divides by zero")

    assert_same(x**exponent, lt.trace(lambda x: x**exponent, x)(x))


@pytest.mark.parametrize("n", [3, np.int8(3), np.uint8(3), np.uint64(3), np.int32(3), np.True_])
def test_a_range_has_the_dtype_of_numpys(n):
    def f(n):
        return np.arange(n), np.arange(0, n), np.arange(n, 5)

    assert_same(f(n), lt.trace(f, n)(n))
    assert_same(f(n), lt.jit(f)(n))


def test_full_drops_leading_axes_of_one():
    def f(x):
        return np.full(3, x[:1][None]), np.full((2, 3), x[None, None]), np.full(2, x[:, None][:1])

    x = np.arange(3.0)
    assert_same(f(x), lt.trace(f, x)(x))


WEIGHTS = np.random.default_rng(0).normal(size=(14, 5))


@pytest.mark.parametrize(
    "product",
    [
        lambda x: np.dot(WEIGHTS.T, x),
        lambda x: np.asfortranarray(WEIGHTS).T @ x,
        lambda x: (np.array(WEIGHTS.T)[None] * x[0]).sum(axis=1),
    ],
)
def test_constants_keep_their_memory_order(product):
    """It decides on the order of sums."""
    x = np.random.default_rng(1).normal(size=(14, 1))
    f = lt.trace(product, np.ones((14, 1)))

    for g in (f, lt.jit(product, exact=True)):
        found = g(x)
        assert_same(product(x), found)
        assert product(x).strides == found.strides

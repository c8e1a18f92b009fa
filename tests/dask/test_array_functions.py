"""The functions that operations call on Dask arrays, with NumPy's parameters and results."""

import dask
import dask.array as da
import numpy as np
import pytest

import letir.dask
from letir.dask.array_functions import DASK_FUNCTIONS
from tests.each_sample import in_one_test

X = np.random.default_rng(0).normal(size=(12, 5))
PLACES = np.array([3, 0, 4])
CALLS = {
    "reshape": lambda xp, x: xp.reshape(x, (4, 3, 5)),
    "concatenate": lambda xp, x: xp.concatenate([x, x[:2]], axis=None, dtype="f4"),
    "stack": lambda xp, x: xp.stack([x, x], axis=1, dtype="f4"),
    "split in parts": lambda xp, x: xp.split(x, 3, axis=0)[1],
    "split at places": lambda xp, x: xp.split(x, [1, 4], axis=-1)[1],
    "count_nonzero": lambda xp, x: xp.count_nonzero(x > 0, axis=1, keepdims=True),
    "full": lambda xp, x: xp.full((2, 3), x[0, 0], dtype="f4"),
    "take": lambda xp, x: xp.take(x, PLACES, axis=1),
    "take of all": lambda xp, x: xp.take(x, PLACES),
    "searchsorted": lambda xp, x: xp.searchsorted(xp.cumsum(abs(x[:, 0])), xp.asarray(PLACES)),
    "searchsorted of one": lambda xp, x: xp.searchsorted(xp.cumsum(abs(x[:, 0])), 1.5, "right"),
    "maximum": lambda xp, x: xp.maximum(x, 0.25),
    "minimum of pairs": lambda xp, x: xp.minimum.outer(x[:, 0], x[:, 1]),
    "accumulate": lambda xp, x: xp.fmax.accumulate(x, axis=1),
    "singular values": lambda xp, x: xp.linalg.svd(x, compute_uv=False),
    "a dtype": lambda xp, x: x.astype(xp.float32),
}


@in_one_test
@pytest.mark.parametrize("name", CALLS)
def test_a_function_gives_numpys_result(name):
    expected = CALLS[name](np, X)

    with dask.config.set(scheduler="sync"):
        chunks = (12, 5) if "singular" in name else (5, 5) if "searchsorted" in name else (5, 2)
        found = CALLS[name](DASK_FUNCTIONS, da.from_array(X, chunks=chunks)).compute()

    assert (np.asarray(found).dtype, np.shape(found)) == (expected.dtype, np.shape(expected))
    np.testing.assert_allclose(found, expected, 1e-12)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda xp, x: xp.reshape(x, (5, 12), order="F"), "another order than C"),
        (lambda xp, x: xp.take(x, [7], mode="clip"), "take with mode='clip'"),
        (lambda xp, x: xp.empty(3), "by writing into an array"),
        (lambda xp, x: xp.maximum.nothing, "dask.array.maximum has no nothing"),
        (lambda xp, x: xp.partition(x, 3), "dask.array has no partition"),
        (lambda xp, x: xp.linalg.svd(x), "signs of its vectors"),
        (lambda xp, x: xp.linalg.qr(x), "signs of its factors"),
    ],
)
def test_a_function_that_dask_lacks_raises_an_error_with_the_reason(call, words):
    with pytest.raises(NotImplementedError, match=words):
        call(DASK_FUNCTIONS, da.from_array(X, chunks=5))


def test_names_by_which_python_asks_an_object_are_absent():
    assert not hasattr(DASK_FUNCTIONS, "__wrapped__")
    assert repr(DASK_FUNCTIONS) == "dask.array"
    assert {"grad", "value_and_grad"} <= {*dir(letir.dask)}

"""The functions that stand in for a device's on NumPy's own arrays: they give NumPy's results."""

from itertools import product

import numpy as np
import pytest

from letir.eval.device_functions import DeviceFunctions, MissingFunction
from letir.testing import assert_close, assert_same

RNG = np.random.default_rng(2)
X, Y = RNG.normal(size=(3, 4, 5)), RNG.normal(size=(3, 4, 5))
MASK = (X > 0.2) | (np.arange(3)[:, None, None] == 1)
BITS = RNG.integers(0, 3, (3, 5, 11)).astype(np.uint8)
AXES = [None, 0, -1, (0, 2)]
ON_DEVICE = DeviceFunctions(np)


def assert_like_numpy(name: str, *args, **kwargs) -> None:
    expected, found = [getattr(xp, name)(*args, **kwargs) for xp in (np, ON_DEVICE)]
    assert_close(expected, found, rtol=4 * np.finfo(getattr(args[0], "dtype", "f8")).eps)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(axis, keepdims):
    options = {"axis": axis, "keepdims": keepdims}
    for name in ("sum", "prod", "mean", "any", "all", "max", "min", "count_nonzero"):
        assert_like_numpy(name, X, **options)
    for name in ("sum", "mean", "any", "all"):
        assert_like_numpy(name, X, where=MASK, **options)
    for name in ("sum", "max", "min"):  # prod takes arrays of the host for sizes
        assert_like_numpy(name, X, initial=0.75, where=MASK, **options)
        assert_like_numpy(name, X.astype("f4"), initial=2, **options)
        assert_like_numpy(name, X[:0], initial=0.5, **options)
    assert_like_numpy("mean", X.astype("f2"), where=MASK, **options)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_averages_with_weights(axis):
    for weights in (np.abs(Y), np.arange(1.0, 1 + X.shape[axis])):
        for keepdims in (False, True):
            assert_like_numpy("average", X, axis, weights, keepdims=keepdims)


def test_averages_with_weights_of_several_axes():
    assert_like_numpy("average", X, (2, 0), np.abs(Y[:, 0, :]).T)


@pytest.mark.parametrize("order", ["big", "little"])
def test_bits_of_bytes(order):
    for axis in (None, 0, 1, -1):
        packed = np.packbits(BITS, axis, order)
        assert_same(packed, ON_DEVICE.packbits(BITS, axis, order))
        for count in (None, 0, 5, 16, 200):
            expected = np.unpackbits(packed, axis, count, order)
            assert_same(expected, ON_DEVICE.unpackbits(packed, axis, count, order))


def test_the_last_of_several_writes_to_an_element_counts():
    items = [
        np.array([1, 0, 1, 1]),
        (np.array([2, 2, 0]), slice(None), 1),
        (slice(None), np.array([3, -1, 3])),
        MASK,
    ]
    for item in items:
        expected, found = X.copy(), X.copy()
        new = RNG.normal(size=X[item].shape)
        expected[item] = new
        ON_DEVICE.write_in_order(found, item, new)
        assert_same(expected, found)


def test_sorting_by_several_keys():
    keys = RNG.integers(0, 3, (4, 3, 20))
    for axis in (0, -1):
        assert_same(np.lexsort(tuple(keys), axis), ON_DEVICE.lexsort(tuple(keys), axis))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_distances_to_the_next_number(dtype):
    limits = np.finfo(dtype)
    values = [0.0, -0.0, 1, -1, 1.5, limits.max, -limits.max, limits.tiny, np.inf, -np.inf, np.nan]
    x = np.array([*values, *RNG.normal(size=50)], dtype)
    with np.errstate(all="ignore"):
        assert_same(np.spacing(x), ON_DEVICE.spacing(x))


def test_values_between_ends():
    for num, endpoint, dtype in product((0, 1, 2, 7), (True, False), (None, "f4")):
        options = {"num": num, "endpoint": endpoint, "dtype": dtype}
        assert_like_numpy("geomspace", 2.0, 300.0, **options)
        assert_like_numpy("geomspace", np.array([1.0, -2.0]), np.array([9.0, -7.0]), **options)


def test_nearness_of_special_numbers():
    special = np.array([0.0, 1.0, 1.0 + 1e-9, np.inf, -np.inf, np.nan])
    x, y = np.meshgrid(special, special)
    with np.errstate(all="ignore"):
        for equal_nan in (False, True):
            assert_same(
                np.isclose(x, y, 1e-8, 1e-9, equal_nan),
                ON_DEVICE.isclose(x, y, 1e-8, 1e-9, equal_nan),
            )


def test_products_sums_and_joins_of_mixed_dtypes_and_numbers():
    x, y = X[0, 0], np.arange(3)
    assert_like_numpy("convolve", x, y)
    assert_like_numpy("correlate", x.astype("f4"), y, "same")
    assert_like_numpy("dot", X[0], 2.0)
    assert_like_numpy("dot", X[0], Y[0].T)
    assert_like_numpy("broadcast_to", 3.0, (2, 3))
    assert_same(np.concatenate([x, [1.5]], None), ON_DEVICE.concatenate([x, 1.5], None))
    assert_same(np.clip(x, 0, np.float64(1)), ON_DEVICE.clip(x, 0, np.float64(1)))


def test_a_function_that_the_module_lacks_is_named():
    with pytest.raises(MissingFunction, match=r"CuPy has no numpy\.no_such_function"):
        ON_DEVICE.no_such_function  # noqa: B018

"""conv, conv_weight, conv_transpose and max_pool at many spacings, beside plain sums."""

import itertools
import math

import numpy as np
import pytest

from letir.ops.nn.convolution import conv, conv_transpose, conv_weight
from letir.ops.nn.pooling import max_pool
from tests.each_sample import in_one_test

RNG = np.random.default_rng(0)
SPACINGS = [  # kernel, stride, padding, dilation of each axis
    [(3, 1, (1, 1), 1), (3, 1, (1, 1), 1)],
    [(1, 1, (0, 0), 1), (1, 2, (0, 0), 1)],
    [(2, 3, (0, 4), 2), (3, 2, (5, 0), 1)],
    [(4, 1, (2, 1), 3), (1, 1, (1, 0), 1)],
    [(2, 2, (0, 0), 1)],
    [(2, 1, (1, 0), 2), (1, 2, (0, 0), 1), (3, 1, (0, 3), 1)],
]


def options_of(spacing) -> dict:
    """The attributes of an operation on windows."""
    _, stride, padding, dilation = zip(*spacing, strict=True)
    return {"stride": stride, "padding": padding, "dilation": dilation}


def windows_of(x, spacing, value=0.0) -> np.ndarray:
    """The elements under a kernel at each of its places, of shape (places, N, C, kernel)."""
    padding = [(0, 0), (0, 0), *[p for _, _, p, _ in spacing]]
    x = np.pad(x, padding, constant_values=value)
    starts = [
        range(0, n - d * (k - 1), s) for n, (k, s, _, d) in zip(x.shape[2:], spacing, strict=True)
    ]
    rows = []
    for at in itertools.product(*starts):
        pairs = zip(at, spacing, strict=True)
        rows.append(x[(..., *[slice(a, a + d * (k - 1) + 1, d) for a, (k, _, _, d) in pairs])])
    return np.reshape(rows, (*map(len, starts), *rows[0].shape))


@pytest.mark.parametrize("spacing", SPACINGS)
def test_convolutions_are_sums_over_windows(spacing):
    kernel, rank = tuple(k for k, _, _, _ in spacing), len(spacing)
    x, w = RNG.normal(size=(2, 3, *[7] * rank)), RNG.normal(size=(4, 3, *kernel))
    seen, options = windows_of(x, spacing), options_of(spacing)
    flat = seen.reshape(*seen.shape[: rank + 2], -1)
    y = np.einsum("...ncp,ocp->no...", flat, w.reshape(4, 3, -1))
    ct = RNG.normal(size=y.shape)

    np.testing.assert_allclose(conv.impl(np, x, w, **options), y, rtol=1e-12, atol=1e-12)
    by_w = conv_weight.impl(np, x, ct, kernel=kernel, **options)
    by_x = conv_transpose.impl(np, ct, w, sizes=x.shape[2:], **options)
    inner = (y * ct).sum()  # the derivatives of a sum that is linear in x and in w
    assert math.isclose((by_w * w).sum(), inner, rel_tol=1e-11)
    assert math.isclose((by_x * x).sum(), inner, rel_tol=1e-11)


@in_one_test
@pytest.mark.parametrize("spacing", [*SPACINGS, [(1, 1, (0, 0), 1)]])
@pytest.mark.parametrize("dtype", [float, np.int8, np.uint16, bool])
def test_maxima_of_windows_agree_with_numpy(spacing, dtype):
    window, rank = tuple(k for k, _, _, _ in spacing), len(spacing)
    x = RNG.integers(0, 100, (2, 3, *[7] * rank)).astype(dtype)
    x.flat[0] = np.nan if dtype is float else x.flat[0]
    least = {"f": -np.inf, "i": -128}.get(x.dtype.kind, 0)
    expected = windows_of(x, spacing, least).max(axis=tuple(range(-rank, 0)))

    found = max_pool.impl(np, x, call=None, window=window, **options_of(spacing))
    np.testing.assert_array_equal(np.moveaxis(found, (0, 1), (-2, -1)), expected)
    assert found.dtype == x.dtype
    assert not np.shares_memory(found, x)

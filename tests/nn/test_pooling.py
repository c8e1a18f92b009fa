"""Maxima of windows, also of a last one that is cut off, and convolutions without padding."""

import numpy as np
import pytest

import letir as lt
from letir import nn
from tests.each_sample import in_one_test

X = np.random.default_rng(0).normal(size=(2, 3, 7, 8))


def maxima(x, window, stride, pad):
    """The maximum of each window that begins within ``x`` or before it, along the last axis."""
    n = x.shape[-1]
    starts = [s for s in range(-pad, n + pad, stride) if s < n]
    if len(starts) > 1 and starts[-2] + window >= n + pad:
        starts.pop()  # the last window but one reaches the end
    return np.stack([x[..., max(s, 0) : s + window].max(-1) for s in starts], -1)


@in_one_test
@pytest.mark.parametrize("window", [2, 3])
@pytest.mark.parametrize("stride", [2, 3])
@pytest.mark.parametrize("n", [5, 6, 7, 8])
def test_a_last_window_that_is_cut_off_counts_in_ceil_mode(n, window, stride):
    x = X[..., 0, :n]

    def f(x):
        return nn.max_pool1d(x, window, stride, 1, ceil_mode=True)

    np.testing.assert_array_equal(lt.trace(f, x)(x), maxima(x, window, stride, 1))


def test_a_convolution_without_padding():
    weight = np.random.default_rng(1).normal(size=(2, 3, 2, 3))
    windows = np.lib.stride_tricks.sliding_window_view(X, (2, 3), (2, 3))

    found = nn.conv2d(X, weight, padding="valid")

    np.testing.assert_allclose(found, np.einsum("nchwij,ocij->nohw", windows, weight), 1e-12)

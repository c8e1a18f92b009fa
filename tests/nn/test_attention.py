"""letir.nn.attention: dtypes."""

import numpy as np
import pytest

import letir as lt
from tests.each_sample import in_one_test

X = np.random.default_rng(0).normal(size=(2, 3, 4, 8))
MASKS = [None, np.tril(np.ones((4, 4), bool)), np.ones((4, 4))]


@in_one_test
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("causal", [False, True])
def test_attention_keeps_the_dtype(dtype, mask, causal):
    x = X.astype(dtype)
    mask = mask if mask is None or mask.dtype == bool else mask.astype(dtype)

    def f(q, k, v):
        return lt.nn.attention(q, k, v, mask, causal=causal)

    assert dtype == f(x, x, x).dtype == lt.trace(f, x, x, x).ret.args[0].type.dtype
    assert dtype == lt.jit(f)(x, x, x).dtype

"""Remainders of floats have NumPy's bits, for quotients of any size."""

import numpy as np
import pytest

pytest.importorskip("llvmlite")
import letir as lt
from letir.kernels.elementwise_groups import kernel_of
from letir.kernels.interpreter import run_kernel
from letir.kernels.llvm.machine_code import ufunc_of
from letir.passes import fuse

N = 200_000
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3.5, -2.0, 1e-3, 5e10]


def kernel_for(f: np.ufunc, dtype: str):
    one = np.ones(3, dtype)
    (group,) = fuse(lt.trace(lambda x, y: f(x, y) * 1, one, one)).binds
    return kernel_of(group.attrs["body"])


def pairs(dtype: str):
    """Operands: ordinary, near multiples of each other, of any bits, and special."""
    rng, limits = np.random.default_rng(8), np.finfo(dtype)
    integer = np.dtype(f"u{limits.dtype.itemsize}")
    x, y = [rng.normal(size=N).astype(dtype) * scale for scale in (100, 1)]
    yield x, y
    near = np.round(x) * y
    yield near * (1 + rng.integers(-2, 3, N) * limits.eps).astype(dtype), y
    # few of any bits: their remainders take a thousand steps each
    bits = [rng.integers(0, np.iinfo(integer).max, 2000, integer).view(dtype) for _ in range(2)]
    yield bits[0], bits[1]
    yield bits[0][:500] * 0 + 1, bits[1][:500]
    special = np.array([*SPECIAL, limits.tiny, limits.smallest_subnormal, limits.max], dtype)
    yield tuple(a.ravel() for a in np.meshgrid(special, special))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("f", [np.remainder, np.fmod, np.floor_divide])
def test_remainders_have_the_bits_of_numpy(f, dtype):
    kernel = kernel_for(f, dtype)
    integer = f"u{np.dtype(dtype).itemsize}"
    with np.errstate(all="ignore"):
        for x, y in pairs(dtype):
            expected = f(x, y) * 1
            run_kernel(kernel, x, y, interpreted := np.empty_like(x), n=len(x))
            for found in (ufunc_of(kernel)(x, y), interpreted):
                is_same = expected.view(integer) == found.view(integer)
                np.testing.assert_array_equal(
                    True, is_same | (np.isnan(expected) & np.isnan(found))
                )

"""Loops that compute neighbouring steps in vectors, with the loops inside them."""

import numpy as np
import pytest

pytest.importorskip("llvmlite")
from letir.kernels.interpreter import run_kernel
from letir.kernels.llvm.machine_code import ufunc_of
from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Array, Kernel

INDEX = np.dtype("int64")
SIGNATURE = "(%d),(%d)->(%d)"


def kernel_of(
    dtype: np.dtype, length: int, terms: int, lanes: int, *, is_total: bool = False
) -> Kernel:
    """y[i] = sum of w[k] * x[i + k] over k; ``is_total``: the sum of these over i."""
    sizes = {"x": length + terms, "w": terms, "y": 1 if is_total else length}
    x, w, y = [Array(k, dtype, ("n", str(n)), is_written=k == "y") for k, n in sizes.items()]
    b = Builder()
    n, zero = b.extent("n"), b.number(0, dtype)
    carried = [zero] * is_total
    with b.loop(n, is_parallel=False) as example:
        with b.loop(b.number(length, INDEX), *carried, lanes=lanes) as outer:
            place = outer.index if is_total else outer
            with b.loop(b.number(terms, INDEX), zero, is_parallel=False) as inner:
                value = b.load(x, (example, b.add(inner.index, place)))
                weight = b.load(w, (example, inner.index))
                inner.next(b.fma(value, weight, inner.carried[0]))
            if is_total:
                total = b.let("add", outer.carried[0], inner.results[0], reassociates=True)
                outer.next(total)
            else:
                b.store(y, (example, place), inner.results[0])
        if is_total:
            b.store(y, (example, b.number(0, INDEX)), outer.results[0])
    name = "letir kernel of sums"
    return Kernel(name, (x, w, y), (n,), b.statements(), takes_contiguous=True, is_flat=True)


def operands(kernel: Kernel, examples: int) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    sizes = [int(array.extents[1]) for array in kernel.arrays]
    return [rng.normal(size=(examples, n)).astype(kernel.arrays[0].dtype) for n in sizes]


def expected(x: np.ndarray, w: np.ndarray, length: int) -> np.ndarray:
    terms = w.shape[1]
    return np.stack([(x[:, i : i + terms] * w).sum(axis=1) for i in range(length)], axis=1)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("is_total", [False, True])
def test_steps_in_vectors_compute_what_single_steps_compute(dtype, is_total):
    for length, terms, lanes in [(1, 3, 4), (4, 1, 4), (7, 5, 4), (24, 3, 8), (37, 2, 16)]:
        kernel = kernel_of(np.dtype(dtype), length, terms, lanes, is_total=is_total)
        x, w, y = operands(kernel, 3)
        run_kernel(kernel, x, w, interpreted := y.copy(), n=3)
        compiled = ufunc_of(kernel, SIGNATURE % tuple(a.shape[1] for a in (x, w, y)))(x, w)

        tolerance = 50 * np.finfo(dtype).eps
        direct = expected(x.astype("f8"), w.astype("f8"), length)
        direct = direct.sum(axis=1, keepdims=True) if is_total else direct
        np.testing.assert_allclose(direct, interpreted, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(direct, compiled, rtol=tolerance, atol=tolerance)


def test_steps_after_the_last_one_neither_read_nor_write():
    kernel = kernel_of(np.dtype("f8"), 5, 3, 8)
    x, w, _ = operands(kernel, 2)
    wide = np.full((2, 16), np.nan)
    ufunc_of(kernel, SIGNATURE % (8, 3, 5))(x, w, out=wide[:, :5])

    assert np.isfinite(wide[:, :5]).all()
    assert np.isnan(wide[:, 5:]).all()


def test_the_text_says_how_many_steps_are_together():
    assert "for %1 < 37 in vectors of 16 {" in str(kernel_of(np.dtype("f4"), 37, 2, 16))


def test_llvm_is_given_vectors_with_a_mask_for_the_last_ones():
    from letir.kernels.llvm.llvm_text import llvm_text

    text = llvm_text(kernel_of(np.dtype("f4"), 37, 2, 16), "kernel").text

    assert "@llvm.fma.v16f32" in text
    assert "@llvm.masked.load.v16f32.p0" in text

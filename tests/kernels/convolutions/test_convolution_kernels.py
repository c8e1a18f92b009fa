"""Kernels of convolutions, in the interpreter and as machine code, for vectors of all widths."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("llvmlite")
from letir.kernels.convolutions.convolution_kernels import (
    choose_block,
    convolution_kernel,
    signature,
    weight_kernel,
)
from letir.kernels.convolutions.window_layout import Convolution, WindowLayout
from letir.kernels.interpreter import run_kernel
from letir.kernels.llvm.interleaving import Vectors
from letir.kernels.llvm.machine_code import ufunc_of
from letir.kernels.loop_language import Kernel
from tests.kernels.convolutions.test_window_layout import layouts

PROCESSORS = [Vectors(16, 2), Vectors(16, 4), Vectors(32, 2), Vectors(32, 8)]
RNG = np.random.default_rng(4)


def windows_of(planes: np.ndarray, layout: WindowLayout) -> np.ndarray:
    """The elements of all windows: of shape (..., elements, rows, columns)."""
    (rows, columns), width = layout.output_sizes, layout.plane_sizes[1]
    first = np.arange(rows)[:, None] * width + np.arange(columns)
    return planes[..., np.array(layout.offsets)[:, None, None] + first]


def results_of(kernel: Kernel, x: np.ndarray, w: np.ndarray) -> list[np.ndarray]:
    """The results of the interpreter and of machine code; ``x`` has the axis of the outer loop."""
    shape = len(x), int(kernel.arrays[2].extents[1])
    interpreted = np.full(shape, np.nan, x.dtype)
    whole = np.broadcast_to(w, (len(x), w.size))
    run_kernel(kernel, x, whole, interpreted, n=len(x))
    return [interpreted, ufunc_of(kernel, signature(kernel))(x, w)]


@pytest.mark.parametrize("vectors", PROCESSORS)
@given(st.data(), layouts(max_size=6))
@settings(max_examples=4, deadline=None)
def test_results_are_sums_over_windows(vectors, data, drawn):
    layout, _ = drawn
    dtype = np.dtype(data.draw(st.sampled_from(["f4", "f8"])))
    examples, channels, outputs = [data.draw(st.integers(1, n)) for n in (2, 3, 9)]
    x = RNG.normal(size=(examples, channels, layout.channel_size)).astype(dtype)
    w = RNG.normal(size=(outputs, channels, layout.window_size)).astype(dtype)
    convolution = Convolution(layout, dtype, examples, 1, channels, outputs)
    kernel = convolution_kernel(convolution, vectors)

    expected = np.einsum("ock,nckyx->noyx", w.astype("f8"), windows_of(x.astype("f8"), layout))
    for found in results_of(kernel, x.reshape(examples, -1), w.reshape(-1)):
        np.testing.assert_allclose(
            expected, found.reshape(expected.shape), rtol=0, atol=200 * np.finfo(dtype).eps
        )


@pytest.mark.parametrize("vectors", PROCESSORS)
@given(st.data(), layouts(max_size=6))
@settings(max_examples=4, deadline=None)
def test_cotangents_of_weights_are_sums_over_places(vectors, data, drawn):
    layout, _ = drawn
    dtype = np.dtype(data.draw(st.sampled_from(["f4", "f8"])))
    examples, channels, parts, outputs = [data.draw(st.integers(1, n)) for n in (2, 2, 2, 9)]
    channels *= parts
    x = RNG.normal(size=(channels, examples, layout.channel_size)).astype(dtype)
    ct = RNG.normal(size=(examples, outputs, *layout.output_sizes)).astype(dtype)
    convolution = Convolution(layout, dtype, examples, 1, channels, outputs)
    kernel = weight_kernel(convolution, parts, vectors)

    windows = windows_of(x.astype("f8"), layout)
    expected = np.einsum("cnkyx,noyx->cok", windows, ct.astype("f8"))
    for found in results_of(kernel, x.reshape(parts, -1), ct.reshape(-1)):
        np.testing.assert_allclose(
            expected, found.reshape(expected.shape), rtol=0, atol=500 * np.finfo(dtype).eps
        )


def test_blocks_fit_into_the_registers():
    for vectors in PROCESSORS:
        for outputs in range(1, 40):
            for rows in range(1, 12):
                block = choose_block(vectors, np.dtype("f4"), outputs, rows)
                assert 1 <= block.channels <= outputs
                assert 1 <= block.rows <= rows
                assert block.channels * block.rows + block.rows < vectors.registers


def test_blocks_divide_the_channels_where_they_can():
    assert choose_block(Vectors(32, 8), np.dtype("f4"), 64, 16).channels == 4
    assert choose_block(Vectors(32, 8), np.dtype("f4"), 10, 16).channels == 5

"""Convolutions in plans: which become kernels, and what these compute."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import letir as lt
from letir import nn
from letir.executor.compiled import kernels_setting

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)
from letir.executor.kernels import convolution_calls
from letir.executor.kernels.convolution_calls import ConvolutionCall, InterleavedCall
from letir.kernels.llvm.interleaving import Vectors

RNG = np.random.default_rng(6)
IMAGES = RNG.normal(size=(4, 8, 20, 20))
WEIGHTS = RNG.normal(size=(16, 8, 3, 3))


def calls(f, *args, **options) -> list:
    """The calls of convolutions in the plan of a function."""
    binds = lt.compile(lt.trace(f, *args), **options).plan.binds
    found = [bind.op.impl.call for bind in binds if bind.op.role == "kernel"]
    return [call for call in found if isinstance(call, ConvolutionCall | InterleavedCall)]


def convolved(x, w):
    return nn.conv2d(x, w, padding=1)


def energy(x, w):
    return (convolved(x, w) ** 2).sum()


@pytest.fixture
def small_ones_pay(monkeypatch):
    """Kernels for all convolutions that can have one, however small they are."""
    monkeypatch.setattr(convolution_calls, "_MIN_WORK", 0)
    monkeypatch.setattr(convolution_calls, "_MIN_USE", 0)


def test_a_large_convolution_and_its_derivatives_are_kernels():
    assert 1 == len(calls(convolved, IMAGES, WEIGHTS))
    assert 3 == len(calls(lt.value_and_grad(energy, (0, 1)), IMAGES, WEIGHTS))


def test_captured_weights_are_operands_too():
    assert 1 == len(calls(lambda x: convolved(x, WEIGHTS), IMAGES))


def test_blas_computes_small_and_narrow_convolutions_and_other_numbers():
    narrow = RNG.normal(size=(64, 64, 2, 2))

    assert [] == calls(convolved, IMAGES[:1, :, :6, :6].copy(), WEIGHTS)
    assert [] == calls(convolved, narrow, RNG.normal(size=(64, 64, 3, 3)))
    assert [] == calls(convolved, IMAGES.astype("c16"), WEIGHTS.astype("c16"))
    assert [] == calls(convolved, IMAGES.astype("f2"), WEIGHTS.astype("f2"))


def test_blas_computes_all_on_a_processor_without_fused_products(monkeypatch):
    monkeypatch.setattr(convolution_calls, "host_vectors", lambda: Vectors(16, 4, False))
    assert [] == calls(convolved, IMAGES, WEIGHTS)


def test_exact_results_and_results_without_kernels_are_those_of_blas():
    assert [] == calls(convolved, IMAGES, WEIGHTS, exact=True)
    exact = lt.jit(convolved, exact=True)(IMAGES, WEIGHTS)
    np.testing.assert_array_equal(convolved(IMAGES, WEIGHTS), exact)


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_kernels_compute_what_blas_computes(data):
    n_axes = data.draw(st.integers(1, 2))
    numbers = st.lists(st.integers(1, 2), min_size=n_axes, max_size=n_axes).map(tuple)
    stride, dilation = data.draw(numbers), data.draw(numbers)
    padding = tuple(data.draw(st.tuples(st.integers(0, 3), st.integers(0, 3))) for _ in stride)
    groups, dtype = data.draw(st.integers(1, 2)), data.draw(st.sampled_from(["f4", "f8"]))
    window = tuple(data.draw(st.integers(1, 3)) for _ in stride)
    sizes = tuple(data.draw(st.integers(5, 9)) for _ in stride)
    examples, channels, outputs = [data.draw(st.integers(1, 3)) for _ in range(3)]
    x = RNG.normal(size=(examples, groups * channels, *sizes)).astype(dtype)
    w = RNG.normal(size=(groups * outputs, channels, *window)).astype(dtype)
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    function = nn.conv1d if n_axes == 1 else nn.conv2d

    def loss(x, w):
        y = function(x, w, **options)
        return (y * y).sum(), y

    both = lt.value_and_grad(loss, (0, 1), has_aux=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolution_calls, "_MIN_WORK", 0)
        patch.setattr(convolution_calls, "_MIN_USE", 0)
        # each part of a transposed convolution with a stride needs an element of the window
        is_transposed = all(
            s == 1 or (k >= s and dilation == (1,) * n_axes)
            for s, k in zip(stride, window, strict=True)
        )
        assert len(calls(both, x, w)) == (3 if is_transposed else 2)
        (_, found), gradients = lt.jit(both)(x, w)
    (_, expected), others = lt.jit(both, kernels="off")(x, w)

    tolerance = 2000 * np.finfo(dtype).eps
    for a, b in zip((expected, *others), (found, *gradients), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
        assert a.dtype == b.dtype
        assert a.flags.c_contiguous == b.flags.c_contiguous


def test_transposed_convolutions_are_kernels_too(small_ones_pay):
    y, w = RNG.normal(size=(2, 6, 9, 9)), RNG.normal(size=(6, 4, 3, 3))

    for stride, padding in [(1, 1), (2, 0), (2, 1), ((3, 1), (0, 1))]:

        def f(y, w, stride=stride, padding=padding):
            return nn.conv_transpose2d(y, w, stride=stride, padding=padding)

        assert 1 == len(calls(f, y, w))
        np.testing.assert_allclose(f(y, w), lt.jit(f)(y, w), rtol=1e-12, atol=1e-13)


def test_blas_computes_transposed_convolutions_that_leave_elements_out(small_ones_pay):
    y, w = RNG.normal(size=(2, 6, 9, 9)), RNG.normal(size=(6, 4, 2, 2))

    assert [] == calls(lambda y, w: nn.conv_transpose2d(y, w, stride=3), y, w)


def test_operands_in_any_memory_order(small_ones_pay):
    x, w = RNG.normal(size=(20, 20, 8, 4)).T, RNG.normal(size=(3, 3, 8, 16)).T[:, :, ::-1]

    np.testing.assert_allclose(convolved(x, w), lt.jit(convolved)(x, w), rtol=1e-12, atol=1e-12)


def test_the_number_of_threads_does_not_change_bits():
    x, w = RNG.normal(size=(6, 32, 40, 40)), RNG.normal(size=(32, 32, 3, 3))
    both = lt.jit(lt.value_and_grad(energy, (0, 1)))
    results = []
    for n in (1, 3):
        lt.set_num_threads(n)
        results.append(both(x, w))
    lt.set_num_threads(None)
    for a, b in zip(*map(lt.tree.leaves, results), strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_overflow_is_reported_at_the_line_of_the_convolution():
    large = np.full((4, 8, 20, 20), 1e300)
    run = lt.jit(convolved)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = run(large, WEIGHTS * 1e10)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(convolved(large, WEIGHTS * 1e10), found)
    assert "overflow encountered in matmul" in {str(w.message) for w in caught}
    assert {w.filename for w in caught} == {__file__}


def test_special_values_spread_as_far_as_in_numpy():
    x = IMAGES.copy()
    x[0, 0, 3, 4], x[1, 2, 0, 0] = np.inf, np.nan
    with np.errstate(all="ignore"):
        expected, found = convolved(x, WEIGHTS), lt.jit(convolved)(x, WEIGHTS)
    np.testing.assert_array_equal(np.isfinite(expected), np.isfinite(found))
    np.testing.assert_array_equal(np.isnan(expected), np.isnan(found))


def test_every_index_is_tested_by_the_interpreter(small_ones_pay, monkeypatch):
    monkeypatch.setenv("LETIR_CHECK_KERNELS", "1")
    x, w = IMAGES[:1, :2, :6, :7].copy(), WEIGHTS[:3, :2].copy()
    both = lt.value_and_grad(energy, (0, 1))

    found = lt.jit(both)(x, w)
    for a, b in zip(*map(lt.tree.leaves, (both(x, w), found)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_a_loop_over_images_has_the_kernel_in_its_body():
    def f(images, w):
        return lt.map(lambda x: convolved(x, w), images)

    images = RNG.normal(size=(3, *IMAGES.shape))
    names = [kernel.name for kernel in lt.compile(lt.trace(f, images, WEIGHTS)).kernels]
    assert "letir kernel of a convolution by 3 x 3" in names
    np.testing.assert_allclose(f(images, WEIGHTS), lt.jit(f)(images, WEIGHTS), rtol=1e-11)

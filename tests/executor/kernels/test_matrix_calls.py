"""Elementwise groups whose operands are broadcast along short axes."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import letir as lt
from letir.executor.compiled import kernels_setting
from letir.testing import assert_same

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)
from letir.executor.kernels.matrix_calls import MatrixCall

RNG = np.random.default_rng(3)
POINTS, CENTRES = RNG.normal(size=(900, 10)), RNG.normal(size=(20, 10))
SCALES = RNG.normal(size=(900, 20))


def calls(f, *args) -> list[MatrixCall]:
    """The calls on matrices in the plan of a function."""
    binds = lt.compile(lt.trace(f, *args)).plan.binds
    found = [bind.op.impl.call for bind in binds if bind.op.role == "kernel"]
    return [call for call in found if type(call) is MatrixCall]


def differences(x, centres):
    d = x[:, None, :] - centres
    return np.einsum("nki,nki->nk", d, d).sum(axis=1)


def spread(x, scales):
    return (scales[:, :, None] * x[:, None, :] + 1.0) / 2.0


def scaled(a, scales):
    return np.sqrt(a * a) * scales[:, :, None]


def test_runs_of_ten_elements_are_a_matrix_kernel():
    assert 1 == len(calls(differences, POINTS, CENTRES))
    assert 1 == len(calls(spread, POINTS, SCALES))


def test_long_runs_and_equal_shapes_are_left_to_the_ufunc():
    wide, row = RNG.normal(size=(200, 500)), RNG.normal(size=500)

    assert [] == calls(lambda x, y: (x - y) * 2, wide, row)
    assert [] == calls(lambda x, y: (x - y) * 2, SCALES, SCALES)
    assert [] == calls(lambda x, y: (x - y) * 2, SCALES, 3.0)


def test_small_programs_are_left_to_numpy():
    assert [] == calls(spread, POINTS[:20].copy(), SCALES[:20].copy())


def test_results_are_those_of_numpy():
    assert_same(spread(POINTS, SCALES), lt.jit(spread)(POINTS, SCALES))
    expected = differences(POINTS, CENTRES)
    assert np.allclose(expected, lt.jit(differences)(POINTS, CENTRES), rtol=1e-13)


@pytest.mark.parametrize("order", ["C", "F", (1, 0, 2), (0, 2, 1)], ids=str)
def test_operands_in_other_memory_orders(order):
    a = RNG.normal(size=(900, 20, 10))
    if type(order) is tuple:
        a = np.ascontiguousarray(a.transpose(order)).transpose(np.argsort(order))
    else:
        a = np.asarray(a, order=order)
    expected, found = scaled(a, SCALES), lt.jit(scaled)(a, SCALES)

    assert 1 == len(calls(scaled, a, SCALES))
    assert_same(expected, found)
    assert expected.strides == found.strides


def test_errors_name_the_operation():
    def f(x, scales):
        return (x[:, None, :] / scales[:, :, None]) * 2.0

    scales = SCALES.copy()
    scales[3, 4] = 0.0
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="in divide"):
        lt.jit(f)(POINTS, scales)


_OPERATIONS = (np.add, np.subtract, np.multiply, np.maximum, lambda x, y: np.where(x > 0, x, y))


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.sampled_from(_OPERATIONS), min_size=2, max_size=4),
    st.tuples(*[st.booleans()] * 3),
    st.tuples(*[st.booleans()] * 3),
    st.sampled_from(["f8", "f4"]),
)
def test_generated_groups_agree_with_numpy(operations, first, second, dtype):
    shape = (70, 31, 9)
    rng = np.random.default_rng(1)

    def operand(axes):
        kept = [n if keep else 1 for keep, n in zip(axes, shape, strict=True)]
        return rng.normal(size=kept).astype(dtype)

    x, y, z = operand((True, True, True)), operand(first), operand(second)

    def f(x, y, z):
        for n, operation in enumerate(operations):
            x = operation(x, (y, z)[n % 2])
        return x, x * y

    assert_same(f(x, y, z), lt.jit(f)(x, y, z))

"""Kernels on data with nan: comparisons raise no floating-point error, as in NumPy."""

import operator

import numpy as np
import pytest

import letir as lt
from letir.executor.compiled import kernels_setting
from letir.executor.kernels.kernel_binds import QuietCall
from letir.kernels.elementwise_groups import kernel_of
from letir.testing import assert_same

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)

SPECIAL = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.0, 5e-324])
X, Y = (x.ravel() for x in np.meshgrid(np.tile(SPECIAL, 50), np.tile(SPECIAL, 5)))

FUNCTIONS = [
    *[
        (lambda x, y, compare=compare: np.where(compare(x, y), 1.0, 2.0) + compare(x, 1.5))
        for compare in (operator.lt, operator.le, operator.gt, operator.ge)
    ],
    *[
        (lambda x, y, compare=compare: np.where(compare(x, -np.inf), compare(0.0, y), x) * 2)
        for compare in (operator.lt, operator.le, operator.gt, operator.ge)
    ],
    lambda x, y: np.maximum(np.maximum(x, y), np.minimum(x, 0.0)),
    lambda x, y: np.fmax(np.fmax(x, y), np.fmin(y, 1.0)),
    lambda x, y: np.clip(x, -1, 1) + np.sign(y),
    lambda x, y: np.abs(np.where(y > x, y, x)),
]


def group_of(f, *args) -> lt.Lambda:
    """The body of the only group of a function."""
    program = lt.compile(lt.trace(f, *args), kernels="off").optimized
    (group,) = [bind for bind in program.binds if bind.op.role == "fused"]
    return group.attrs["body"]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_the_second_form_computes_the_bits_of_numpy_without_flags(f, dtype):
    x, y = X.astype(dtype), Y.astype(dtype)
    with np.errstate(all="ignore"):
        body = group_of(f, x, y)
        given = [{"x": x, "y": y}[param.name] for param in body.params]
        expected = body(*given)
    with np.errstate(divide="raise", invalid="raise"):
        found = QuietCall(body)(*given)

    assert_same(expected, found)


def test_a_plan_computes_data_with_nan_by_the_second_form(monkeypatch):
    used = []
    call = QuietCall.__call__
    monkeypatch.setattr(QuietCall, "__call__", lambda *args: used.append(call(*args)) or used[-1])
    x = np.linspace(-1, 1, 30_001)
    f = lt.jit(lambda x: np.maximum(x, 0) * 2 + (x < 0.5))
    f(x)
    assert not used

    x[::7] = np.nan
    with np.errstate(all="raise"):
        for _ in range(3):
            assert_same(np.maximum(x, 0) * 2 + (x < 0.5), f(x))

    assert len(used) == 3


def test_an_error_of_numpy_stays_an_error():
    x = np.linspace(-1, 1, 30_001)
    x[5], x[6] = np.nan, 0.0
    f = lt.jit(lambda x: np.where(x > 0, 1.0, 2.0) / x)

    with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide"):
        assert np.isinf(f(x)[6])


def test_a_kernel_without_comparisons_has_no_second_form():
    body = group_of(lambda x, y: x * y + 1.0, np.ones(30), np.ones(30))
    quiet = QuietCall(body)
    quiet.make()

    assert kernel_of(body) is not None
    assert quiet.call is None

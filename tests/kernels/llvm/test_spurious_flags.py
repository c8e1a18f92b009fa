"""Kernels raise the floating-point flags of NumPy: for others NumPy would run the group again."""

import numpy as np
import pytest

import letir as lt
from letir.kernels.elementwise_groups import kernel_of
from letir.kernels.llvm.machine_code import ufunc_of
from letir.testing import assert_close

pytest.importorskip("llvmlite")

X = np.linspace(-3.0, 3.0, 1_001)  # with a 0
POSITIVE = np.linspace(0.1, 0.9, 1_001)


def safe(f, other: float):
    """``f`` of positive numbers, and ``other`` elsewhere, as it is written to avoid warnings."""
    return lambda x: np.where(x > 0, f(np.where(x > 0, x, 1.0)), other)


FUNCTIONS = [
    *[
        (safe(f, 0.0), X)
        for f in (np.sqrt, np.log, lambda x: 1 / x, lambda x: x**-1.5, lambda x: 2 % x)
    ],
    (lambda x: np.where(x == 0, 1.0, np.sin(x) / np.where(x == 0, 1.0, x)), X),
    (lambda x: np.where(x != 0, 1 / (np.where(x != 0, x, 2.0) * 3 + 0.0), x), X),
    (lambda x: np.where(x > 0, 1 / np.where(x <= 0, 1.0, x), 0.0), X),
    (lambda x: np.sqrt(np.maximum(x, 0.0)) + np.log(np.clip(x, 1e-3, None)), X),
    (lt.grad(lambda x: safe(np.sqrt, 0.0)(x).sum()), X),
    *[(lambda x, y=y: x**y, POSITIVE) for y in (0.4545, 1 / 3, 2.5, -1.5, 5.0, -7.0, 1e30)],
    *[(lambda x, y=y: y**x, X) for y in (2.0, 10.0, 0.3)],
    *[(lambda x, y=y: np.arctan2(x, y) + np.hypot(x, y), X) for y in (0.0, 1.0, np.inf)],
    *[(lambda x, y=y: np.logaddexp(x, y), X) for y in (0.0, -np.inf)],
]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("f", "x"), FUNCTIONS)
def test_kernels_raise_the_flags_of_numpy(f, x, dtype):
    x = x.astype(dtype)
    program = lt.compile(lt.trace(lambda x: f(x) * 2 + 1, x), kernels="off").optimized
    (group,) = [bind for bind in program.binds if bind.op.role == "fused"]
    given = [x if arg is program.params[0] else 1.0 for arg in group.args]  # the gradient's seed
    kernel = ufunc_of(kernel_of(group.attrs["body"]))

    with np.errstate(all="raise", under="ignore"):
        expected, found = program(x), kernel(*given)

    assert_close(expected, found, rtol=8 * np.finfo(dtype).eps, atol=8 * np.finfo(dtype).eps)

"""Kernels that loop over a stack of matrices on a simulated device."""

import numpy as np
import pytest

import letir as lt
from letir.executor.compiled import kernels_setting
from letir.kernels.few_columns import row_kernel
from letir.kernels.row_passes import Space

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)
from letir.kernels.device import stack_calls
from letir.kernels.device.stack_calls import StackCall
from tests.eval.stand_in import moved
from tests.kernels.device.simulated_device import simulated_device

RNG = np.random.default_rng(7)


def several(x, y, z):
    u = x * y * z
    return u.sum(axis=0), u.mean(axis=0), u.mean(axis=(0, 1)), u.sum(axis=2), u.max(axis=1)


@pytest.mark.parametrize("columns", [40, 3])
def test_parts_of_the_stack_are_reduced_again(monkeypatch, columns):
    monkeypatch.setattr(stack_calls, "_ENOUGH_PARTS", 8)
    args = [RNG.normal(size=size) for size in [(60, 5, 1), (60, 1, columns), (5, columns)]]
    made = row_kernel(lt.trace(several, *args), Space((60, 5, columns), 1, 2, True))
    expected = several(*args)
    call = StackCall(made, [one.shape for one in expected])
    with simulated_device() as cupy:
        found = call(cupy, *map(moved, args))

    assert 6 == call.part  # the largest divisor that leaves 8 parts
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_allclose(a, b.get(), rtol=1e-12)

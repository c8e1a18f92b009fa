"""Calls of kernels with reductions with the arrays of a device: rows and parts of these."""

import numpy as np
import pytest

import letir as lt
from letir.eval.float_warnings import KernelError
from letir.executor.compiled import kernels_setting
from letir.kernels.few_columns import row_kernel
from letir.kernels.row_passes import Space

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)
from letir.kernels import row_groups
from letir.kernels.device import row_calls
from letir.kernels.device.row_calls import RowsCall
from tests.eval.stand_in import moved
from tests.kernels.device.simulated_device import SimulatedModule, simulated_device

RNG = np.random.default_rng(6)


def test_columns_are_reduced_in_parts_of_the_rows(monkeypatch):
    monkeypatch.setattr(row_calls, "_ENOUGH_PARTS", 8)
    x = RNG.normal(size=(60, 3))
    made = row_kernel(
        lt.trace(lambda x: ((y := x * x).sum(axis=0), y.mean()), x), Space(x.shape, 0, 1)
    )
    call = RowsCall(made, [(3,), ()])
    with simulated_device() as cupy:
        columns, mean = call(cupy, moved(x))

    assert 6 == call.part  # the largest divisor that leaves 8 parts
    np.testing.assert_allclose((x * x).sum(axis=0), columns.get(), rtol=1e-12)
    np.testing.assert_allclose((x * x).mean(), mean.get(), rtol=1e-12)


@pytest.mark.parametrize("columns, threads", [(3, 64), (12, 64), (20, 64 * 32)])
def test_a_thread_takes_a_short_row_alone(columns, threads):
    """The lanes of a warp would wait for those that have a column."""
    x = RNG.normal(size=(64, columns))

    def f(x):
        return np.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1)

    made = row_kernel(lt.trace(f, x), Space(x.shape, 0, 1))
    with simulated_device() as cupy:
        found = RowsCall(made, [(64,)])(cupy, moved(x))

    assert [threads] == [grid * block for (grid,), (block,) in SimulatedModule.launches]
    np.testing.assert_allclose(f(x), found.get(), rtol=1e-12)


def test_a_reduction_of_nothing_is_left_to_cupy():
    x = np.ones((0, 3))
    made = row_kernel(lt.trace(lambda x: (x * x).sum(axis=0), x), Space(x.shape, 0, 1))
    with simulated_device() as cupy, pytest.raises(KernelError):
        RowsCall(made, [(3,)])(cupy, moved(x))


def of_only_row(f, x: np.ndarray, row, shapes: list) -> tuple:
    """The results on the device of a function whose operands are one row."""
    made = row_kernel(lt.trace(f, x, row), Space(x.shape, 0, 0))
    with simulated_device() as cupy:
        found = RowsCall(made, shapes)(cupy, moved(x), moved(row))
    return found if type(found) is tuple else (found,)


def several(x, s):
    y = x * s
    return y.sum(), y.mean(), (y > 1).any(), y.max(), y + 1


@pytest.mark.parametrize("n, warps", [(40, [5]), (43, [5, 1]), (15, [1])])
def test_the_only_row_is_cut_into_parts(monkeypatch, n, warps):
    for name, value in (("_PART", 8), ("_LONG", 16), ("_FEW_PARTS", 2)):
        monkeypatch.setattr(row_calls, name, value)
    monkeypatch.setattr(row_groups, "MAX_SHORT_ROW", 0)  # a row to be cut is longer
    x, s = RNG.normal(size=(n,)), np.array(0.5)
    found = of_only_row(several, x, s, [(), (), (), (), (n,)])

    launches = SimulatedModule.launches
    assert warps == [grid * block // 32 for (grid,), (block,) in launches]
    for a, b in zip(several(x, s), found, strict=True):
        np.testing.assert_allclose(a, b.get(), rtol=1e-12)


def test_few_long_rows_are_left_to_cupy(monkeypatch):
    monkeypatch.setattr(row_calls, "_LONG", 16)
    x = np.ones((2, 40))
    made = row_kernel(lt.trace(lambda x: (x * x).sum(axis=1), x), Space(x.shape, 0, 1))
    with simulated_device() as cupy, pytest.raises(KernelError, match="too few rows"):
        RowsCall(made, [(2,)])(cupy, moved(x))

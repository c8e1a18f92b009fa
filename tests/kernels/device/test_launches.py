"""Launches of kernels on a device: axes, grids, arguments."""

import logging
import types

import numpy as np
import pytest

from letir.eval.float_warnings import KernelError
from letir.kernels.loop_language import Array

pytest.importorskip("llvmlite")
from letir.kernels.device import launches
from letir.kernels.device.launches import Argument, Launcher, device_values, merge_axes
from tests.eval.stand_in import DeviceArray, DeviceModule
from tests.kernels.device.simulated_device import SimulatedModule, simulated_device
from tests.kernels.llvm.test_machine_code import scaled_and_shifted

F8 = np.dtype("f8")


@pytest.mark.parametrize(
    "axes, strides, expected",
    [
        ((), [(), ()], ((1,), [(0,), (0,)])),
        ((5,), [(8,), (0,)], ((5,), [(8,), (0,)])),
        ((4, 1, 6), [(48, 0, 8), (48, 48, 8)], ((24,), [(8,), (8,)])),
        ((4, 6), [(0, 8), (48, 8)], ((4, 6), [(0, 8), (48, 8)])),
        ((4, 6), [(8, 32), (8, 32)], ((24,), [(8,), (8,)])),
        ((2, 3, 4), [(0, 32, 8), (96, 32, 8)], ((2, 12), [(0, 8), (96, 8)])),
        ((4, 6), [(-48, -8), (48, 8)], ((24,), [(-8,), (8,)])),
    ],
)
def test_axes_that_are_as_one_are_collapsed(axes, strides, expected):
    assert expected == merge_axes(axes, strides)


@pytest.mark.parametrize("x, kind", [(2, np.float64), (True, np.float64), (np.float64(1), F8.type)])
def test_numbers_are_passed_by_value(x, kind):
    (found,) = device_values(DeviceModule(), [x], [Array("x", F8, ("n",))])

    assert (kind, x) == (type(found), found)


def on_another_device() -> DeviceArray:
    x = DeviceArray(np.ones(2))
    x.device = types.SimpleNamespace(id=1)
    return x


OTHERS = [np.float32(1), np.ones(2), DeviceArray(np.ones(2, "f4")), on_another_device(), 1j, None]


@pytest.mark.parametrize("x", OTHERS)
def test_other_operands_are_left_to_cupy(x):
    with simulated_device() as cupy, pytest.raises(KernelError):
        device_values(cupy, [x], [Array("x", F8, ("n",))])


def test_an_integer_beyond_the_dtype_is_left_to_cupy():
    with pytest.raises(KernelError, match="large Python integer"):
        device_values(DeviceModule(), [300], [Array("x", np.dtype("u1"), ("n",))])


def launch(x, z, y) -> None:
    """``y = x * z + 1`` on the device that is imported as cupy."""
    given = [Argument(one, one.strides) for one in (DeviceArray(x), np.float64(z), DeviceArray(y))]
    with simulated_device() as cupy:
        Launcher(scaled_and_shifted()).launch(cupy, x.shape, given)


@pytest.mark.parametrize(
    "n, expected", [(0, []), (1, [((1,), (1,))]), (33, [((1,), (64,))]), (1000, [((4,), (256,))])]
)
def test_the_grid_has_a_thread_for_each_step(n, expected):
    x, y = np.arange(float(n)), np.zeros(n)
    launch(x, 3.0, y)

    assert expected == SimulatedModule.launches
    assert np.array_equal(x * 3 + 1, y)


def test_few_threads_take_several_steps(monkeypatch):
    monkeypatch.setattr(launches, "_MOST_BLOCKS", 2)
    x, y = np.arange(1500.0).reshape(30, 50)[:, ::-1], np.zeros((30, 50))
    launch(x, 3.0, y)

    assert [((2,), (256,))] == SimulatedModule.launches
    assert np.array_equal(x * 3 + 1, y)


@pytest.mark.parametrize("order", [(2, 1, 0), (1, 2, 0), (2, 0, 1)])
def test_axes_in_any_order_are_computed(order):
    x = np.arange(60.0).reshape(3, 4, 5).transpose(order)
    y = np.zeros(x.shape)
    launch(x, 3.0, y)

    assert np.array_equal(x * 3 + 1, y)


def test_more_steps_than_a_thread_numbers_are_left_to_cupy():
    shape = (1 << 16, 1 << 16)
    given = [Argument(None, (8, 0)), Argument(np.float64(1)), Argument(None, (1 << 19, 8))]
    with simulated_device() as cupy, pytest.raises(KernelError, match="too many steps"):
        Launcher(scaled_and_shifted()).launch(cupy, shape, given)


def test_a_text_that_the_driver_refuses_is_left_to_cupy(monkeypatch, caplog):
    def refused(self, text):
        raise OSError("no kernel image is available")

    launcher, x = Launcher(scaled_and_shifted()), DeviceArray(np.ones(3))
    given = [Argument(x, (8,)), Argument(np.float64(1)), Argument(x, (8,))]
    with simulated_device() as cupy, caplog.at_level(logging.WARNING):
        monkeypatch.setattr(SimulatedModule, "load", refused)
        for _ in range(2):
            with pytest.raises(KernelError):
                launcher.launch(cupy, (3,), given)

    (record,) = caplog.records  # once
    assert "CuPy computes scaled_and_shifted" in record.getMessage()
    assert "no kernel image" in record.getMessage()

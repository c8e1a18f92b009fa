"""How many launches and calls of CuPy a call of a program takes on a device.

The host takes several microseconds for each of them, more than a device for most of the work.
"""

from collections import Counter

import numpy as np
import pytest

import letir as lt
from benchmarks.kernel_workloads import WORKLOADS
from letir.executor.compiled import kernels_setting

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)
from tests.eval.stand_in import DeviceArray
from tests.kernels.device.simulated_device import SimulatedFunction, simulated_device

# part of the name of a workload -> calls for the value, and for value and gradient
MOST_CALLS = {
    "GELU": (1, 3),
    "layer norm": (1, 4),
    "cross entropy": (3, 7),
    "mixture, d=10": (9, 20),
    "bundle": (3, 26),
    "MLP": (6, 17),
    "logistic": (3, 6),
}


def calls_of(f, args, monkeypatch) -> Counter:
    """The calls of CuPy, and the launches, of the second call of a jitted function."""
    counts, launch = Counter(), "launch"
    # kernels compute nothing here
    monkeypatch.setattr(SimulatedFunction, "__call__", lambda *_: counts.update([launch]))
    jitted = lt.jit(f)
    with np.errstate(all="ignore"), simulated_device() as cupy:
        jitted(*args)
        cupy.calls.clear()
        counts.clear()
        jitted(*args)
        counts.update(cupy.calls)
    return counts


@pytest.mark.parametrize("name", MOST_CALLS)
def test_a_workload_takes_few_launches(name, monkeypatch):
    (workload,) = [w for w in WORKLOADS if name in w.name]
    f, args = workload.bound(np, lt), [DeviceArray(x) for x in workload.make()]
    gradient = lt.value_and_grad(lambda *args: f(*args).sum(), tuple(range(workload.parameters)))
    counts = [calls_of(each, args, monkeypatch) for each in (f, gradient)]

    assert counts[0].total() <= MOST_CALLS[name][0], counts[0]
    assert counts[1].total() <= MOST_CALLS[name][1], counts[1]

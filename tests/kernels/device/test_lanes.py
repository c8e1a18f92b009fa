"""Loops that the lanes of a warp share: which, and what they compute."""

import numpy as np
import pytest

import letir as lt
from letir.executor.compiled import kernels_setting
from letir.executor.default_pipeline import optimize_program
from letir.kernels.few_columns import row_kernel
from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Array, Kernel
from letir.kernels.row_passes import Space
from letir.kernels.scalar_instructions import INSTRUCTIONS
from letir.plan.plan import plan_of

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)
from letir.executor.kernels.group_kernels import with_kernels
from letir.kernels.device.lanes import neutral_element, shared_loops
from letir.kernels.device.launches import Argument, Launcher
from tests.each_sample import in_one_test
from tests.eval.stand_in import DeviceArray, moved
from tests.kernels.device.simulated_device import SimulatedModule, simulated_device
from tests.kernels.llvm.test_machine_code import scaled_and_shifted
from tests.kernels.test_interpreter import weighted_totals

F8 = np.dtype("f8")
RNG = np.random.default_rng(4)


def carried_by(step, dtype=F8, start=0.0) -> Kernel:
    """``y[r] = total`` after ``total = step(b, total, x[r, i])`` for each i."""
    x, y = Array("x", dtype, ("r", "n")), Array("y", dtype, ("r",), True)
    b = Builder()
    rows, n = b.extent("r"), b.extent("n")
    with b.loop(rows) as r:
        loop = b.loop(n, b.number(start, dtype))
        with loop:
            loop.next(step(b, loop.carried[0], b.load(x, (r, loop.index))))
        b.store(y, (r,), loop.results[0])
    return Kernel("carried", (x, y), (rows, n), b.statements())


@in_one_test
@pytest.mark.parametrize("name", ["add", "mul", "max", "min", "or", "and"])
@pytest.mark.parametrize("dtype", "?bHiLfd")
def test_lanes_combine_what_they_carry(name, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind not in INSTRUCTIONS[name].kinds:
        return
    kernel = carried_by(lambda b, total, x: b.let(name, total, x), dtype, start=1)
    x = (RNG.normal(size=(3, 70)) * 50).astype("i8").astype(dtype)
    y = np.zeros(3, dtype)
    with simulated_device() as cupy:
        given = [Argument(DeviceArray(x), x.strides[:1], x.strides[1:])]
        given.append(Argument(DeviceArray(y), y.strides))
        Launcher(kernel).launch(cupy, (3,), given, {"n": 70})

    with np.errstate(all="ignore"):
        expected = INSTRUCTIONS[name].compute.reduce(x, axis=1, initial=dtype.type(1))
    assert len(shared_loops(kernel)) == 1
    np.testing.assert_allclose(expected.astype(dtype), y, rtol=1e-5 if dtype == "f" else 1e-12)


@in_one_test
@pytest.mark.parametrize("dtype", "?bHiLfd")
@pytest.mark.parametrize("name", ["add", "mul", "max", "min", "or", "and"])
def test_a_neutral_number_changes_nothing(name, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind not in INSTRUCTIONS[name].kinds:
        return
    x = np.array([-3, -1, 0, 1, 7]).astype(dtype)
    x = np.append(x, np.array([-0.0, np.inf, -np.inf], dtype)) if dtype.kind == "f" else x

    found = INSTRUCTIONS[name].compute(x, neutral_element(name, dtype).value)
    assert (found == x).all() and np.array_equal(np.signbit(found), np.signbit(x), equal_nan=False)


ALONE = {
    "no loop inside": scaled_and_shifted,
    "not spread": weighted_totals,
    "another instruction": lambda: carried_by(lambda b, total, x: b.sub(total, x)),
    "not the carried scalar": lambda: carried_by(lambda b, total, x: b.add(x, x)),
    "used twice": lambda: carried_by(lambda b, total, x: b.add(total, b.mul(total, x))),
}


@pytest.mark.parametrize("name", ALONE)
def test_other_kernels_are_computed_by_threads_alone(name):
    assert {} == shared_loops(ALONE[name]())


def test_a_running_total_is_not_shared():
    x, y = Array("x", F8, ("r", "n")), Array("y", F8, ("r", "n"), True)
    b = Builder()
    rows, n = b.extent("r"), b.extent("n")
    with b.loop(rows) as r:
        loop = b.loop(n, b.number(0.0, F8))
        with loop:
            total = b.add(loop.carried[0], b.load(x, (r, loop.index)))
            b.store(y, (r, loop.index), total)
            loop.next(total)

    assert {} == shared_loops(Kernel("cumsum", (x, y), (rows, n), b.statements()))


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def reductions(x):
    y = x * x - 1
    totals = y.sum(), (y > 3).any(), y.max(), y.mean(axis=0), y.min(axis=0)
    return *totals, y.prod(axis=1), (y > 0).all(axis=1), y.mean(axis=1)


@pytest.mark.parametrize("f", [softmax, reductions])
def test_kernels_of_groups_with_reductions_are_shared(f):
    x = np.ones((4, 15))

    assert shared_loops(row_kernel(lt.trace(f, x), Space(x.shape, 0, 1)).kernel)


@in_one_test
@pytest.mark.parametrize("f", [softmax, reductions])
@pytest.mark.parametrize("shape", [(3, 1), (1, 31), (2, 33), (5, 255), (3, 257), (2, 600)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rows_of_any_length_are_computed(f, shape, dtype):
    x = RNG.normal(size=shape).astype(dtype)
    made = with_kernels(optimize_program(lt.trace(f, x)), min_elements=1)
    expected = f(x) if f is reductions else (f(x),)
    with simulated_device() as cupy:
        found = plan_of(made).run([moved(x)], cupy)

        assert SimulatedModule.launches
    for a, b in zip(expected, found, strict=True):
        rtol = 1e-4 if dtype == "f4" else 1e-10
        np.testing.assert_allclose(a, b.get(), rtol=rtol, atol=1e-7 if dtype == "f4" else 1e-14)


def test_a_nan_in_any_lane_is_found():
    x = RNG.normal(size=(4, 100))
    x[0, 0] = x[1, 37] = x[2, 99] = np.nan
    made = with_kernels(
        optimize_program(lt.trace(lambda x: (x * 2).max(axis=1), x)), min_elements=1
    )
    with simulated_device() as cupy:
        (found,) = plan_of(made).run([moved(x)], cupy)

    np.testing.assert_array_equal((x * 2).max(axis=1), found.get())

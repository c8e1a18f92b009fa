"""Calls of kernels with the arrays of a device, each kind by itself."""

import numpy as np
import optree
import pytest

import letir as lt
from letir.ast.bodies import all_bodies
from letir.eval.float_warnings import KernelError
from letir.executor.compiled import kernels_setting
from letir.kernels.flat_arrays.array_loops import array_loop
from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Array, Kernel

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)
from letir.kernels.device.device_calls import ArrayLoopCall, ChainCall, ElementwiseCall
from letir.kernels.device.lanes import has_waiting_lanes
from tests.eval.stand_in import DeviceArray, moved
from tests.kernels.device.simulated_device import SimulatedModule, simulated_device
from tests.kernels.flat_arrays.test_array_loops import products, reductions
from tests.kernels.llvm.test_machine_code import scaled_and_shifted

F8 = np.dtype("f8")
RNG = np.random.default_rng(6)


def of_lengths() -> Kernel:
    """``y = x + z`` for arrays of one unknown length."""
    x, z = Array("x", F8, ("", "n")), Array("z", F8, ("", "n"))
    y, count = Array("y", F8, ("", "n"), True), Array("count", np.dtype("i8"), ("",), True)
    b = Builder()
    n, zero = b.extent("n"), b.number(0, "i8")
    with b.loop(n, is_parallel=False) as i:
        b.store(y, (zero, i), b.add(b.load(x, (zero, i)), b.load(z, (zero, i))))
    b.store(count, (zero,), n)
    return Kernel("of_lengths", (x, z, y, count), (b.extent("calls"), n), b.statements())


def test_lengths_are_taken_from_the_operands():
    x = np.arange(10.0)[::-2]
    with simulated_device() as cupy:
        y, count = ChainCall(of_lengths())(cupy, DeviceArray(x), DeviceArray(x))

    assert (np.array_equal(2 * x, y.get()), 5) == (True, int(count.get()))
    assert [((1,), (1,))] == SimulatedModule.launches


def test_one_call_takes_operands_of_many_layouts_in_turn():
    """Launches are prepared for each layout; values do not belong to it."""
    x, empty = RNG.normal(size=(6, 8)), np.zeros((0, 8))
    row, fortran = x[:1], np.asfortranarray(x)
    call = ElementwiseCall(scaled_and_shifted())
    with simulated_device() as cupy:
        for _ in range(2):
            for a in (x, x.T, x[::-1], fortran, row, empty, x[0, 0]):
                for b in (2.0, np.float64(3.0), DeviceArray(x[0, :1])):
                    found = call(cupy, DeviceArray(a), b)
                    factor = b.host if isinstance(b, DeviceArray) else b

                    assert np.array_equal(a * factor + 1, found.get())
        found = call(cupy, DeviceArray(fortran), 2.0)

    assert found.flags.f_contiguous


def test_results_are_written_into_given_arrays():
    x, given = np.arange(4.0), DeviceArray(np.zeros(4))
    with simulated_device() as cupy:
        y, _ = ChainCall(of_lengths())(cupy, moved(x), moved(x), out=[given, None])

    assert y is given and np.array_equal(2 * x, y.get())


def test_arrays_of_other_lengths_are_left_to_cupy():
    with simulated_device() as cupy, pytest.raises(KernelError, match="other sizes"):
        ChainCall(of_lengths())(cupy, moved(np.zeros(3)), moved(np.zeros(4)))


N = 18
W, V = RNG.normal(size=(2, N, N)) / N
XS = RNG.normal(size=(2, N))
LOOPS = {"products": (products, (W, V, V[0], XS)), "reductions": (reductions, (W, V[0], XS))}


@pytest.mark.parametrize("name", LOOPS)
def test_the_lanes_of_a_warp_share_a_loop_on_arrays(name):
    f, args = LOOPS[name]
    program = lt.trace(f, *args)
    (bind,) = [b for body in all_bodies(program) for b in body.binds if b.op.name == "scan"]
    made = array_loop(bind)
    avals = [x.type for x in made.operands]
    results = [(x.type.shape, x.type.dtype) for x in bind.binders]
    places = [program.params.index(x) for x in made.operands]
    with simulated_device() as cupy:
        call = ArrayLoopCall(made.kernel, made.scratch, results, avals)
        found = call(cupy, *[moved(args[n]) for n in places])

    assert has_waiting_lanes(made.kernel)
    assert [((1,), (32,))] == SimulatedModule.launches
    for a, b in zip(optree.tree_leaves(f(*args)), found, strict=True):
        np.testing.assert_allclose(a, b.get(), rtol=1e-9, atol=1e-12)

"""The interpreter of the loop language, compared with machine code."""

import numpy as np
import pytest

from letir.kernels.interpreter import run_kernel, run_lets
from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Array, Kernel, Loop

pytest.importorskip("llvmlite")
from letir.kernels.llvm.machine_code import ufunc_of

F8 = np.dtype("f8")


def weighted_totals() -> Kernel:
    """``y[r] = sum(x[r, i] * z[r] for i)``, and ``last[r]``, the last index that was added."""
    x, z = Array("x", F8, ("", "n")), Array("z", F8, ("",))
    y, last = Array("y", F8, ("",), True), Array("last", np.dtype("i8"), ("",), True)
    b = Builder()
    n = b.extent("n")
    loop = b.loop(n, b.number(0.0, F8), b.number(-1, "i8"))
    with loop:
        value = b.mul(b.load(x, (b.number(0, "i8"), loop.index)), b.load(z, (b.number(0, "i8"),)))
        loop.next(b.add(loop.carried[0], value), loop.index)
    for array, result in zip((y, last), loop.results, strict=True):
        b.store(array, (b.number(0, "i8"),), result)
    return Kernel("weighted_totals", (x, z, y, last), (n,), b.statements())


@pytest.mark.parametrize("n", [0, 1, 5])
def test_carried_scalars_go_from_step_to_step(n):
    x, z = np.arange(5.0)[None, :n], np.array([2.0])
    y, last = np.empty(1), np.empty(1, int)

    run_kernel(weighted_totals(), x, z, y, last, n=n)

    assert (2 * np.arange(n).sum(), n - 1) == (y[0], last[0])


def test_loops_in_loops_and_broadcast_axes():
    x, row = Array("x", F8, ("m", "n")), Array("row", F8, ("", "n"))
    out = Array("out", F8, ("m", "n"), True)
    b = Builder()
    m, n = b.extent("m"), b.extent("n")
    with b.loop(m) as i, b.loop(n) as j:
        b.store(out, (i, j), b.sub(b.load(x, (i, j)), b.load(row, (i, j))))
    given, found = np.arange(6.0).reshape(2, 3), np.empty((2, 3))

    run_kernel(
        Kernel("shifted", (x, row, out), (m, n), b.statements()), given, given[:1], found, m=2, n=3
    )

    assert np.array_equal(given - given[:1], found)


def test_instructions_alone_run_on_arrays():
    b = Builder()
    x = b.scalar(F8)
    result = b.select(b.let("lt", x, b.number(0.0, F8)), b.let("neg", x), x)

    values = run_lets(b.statements(), {x: np.array([-1.0, 2.0])})

    assert [1.0, 2.0] == values[result].tolist()


def test_an_elementwise_kernel_computes_as_machine_code():
    x, y = Array("x", F8, ("n",)), Array("y", F8, ("n",), True)
    b = Builder()
    n = b.extent("n")
    with b.loop(n) as i:
        value = b.load(x, (i,))
        b.store(y, (i,), b.fma(value, value, b.let("rint", value)))
    kernel = Kernel("squares", (x, y), (n,), b.statements())
    assert type(kernel.body[0]) is Loop
    given, found = np.linspace(-3, 3, 100), np.empty(100)

    run_kernel(kernel, given, found, n=100)

    assert np.array_equal(ufunc_of(kernel)(given), found)


def halvings() -> Kernel:
    """``y``: how often ``x`` is halved until it is below one."""
    x, y = Array("x", F8, ("",)), Array("y", np.dtype("i8"), ("",), True)
    b = Builder()
    zero = b.number(0, "i8")
    with b.repeat(b.load(x, (zero,)), zero) as step:
        value, count = step.carried
        step.holds(b.let("ge", value, b.number(1.0, F8)))
        step.next(b.mul(value, b.number(0.5, F8)), b.add(count, b.number(1, "i8")))
    b.store(y, (zero,), step.results[1])
    return Kernel("halvings", (x, y), (b.extent("calls"),), b.statements())


@pytest.mark.parametrize("x, expected", [(0.5, 0), (1.0, 1), (1000.0, 10), (np.nan, 0)])
def test_a_loop_with_a_test_continues_as_long_as_it_holds(x, expected):
    y = np.empty(1, int)

    run_kernel(halvings(), np.array([x]), y, calls=1)

    assert (expected, expected) == (y[0], ufunc_of(halvings(), "()->()")(x))


def test_a_loop_with_a_test_is_printed():
    expected = """kernel halvings(x: float64[1], out y: int64[1]) {
  %0: float64 = x[0]
  while carry %2 = %0 carry %3 = 0 {
    %6: bool = ge %2, 1.0
  } holds %6 {
    %7: float64 = mul %2, 0.5
    %8: int64 = add %3, 1
  } next %2 = %7, %4 after next %3 = %8, %5 after
  y[0] = %5
}"""

    assert expected == str(halvings())


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int8"])
def test_quotients_of_large_integers_are_those_of_machine_code(dtype):
    x, y = Array("x", np.dtype(dtype), ("n",)), Array("y", np.dtype(dtype), ("n",), True)
    b = Builder()
    n = b.extent("n")
    with b.loop(n) as i:
        b.store(y, (i,), b.let("quotient", b.load(x, (i,)), b.number(7, dtype)))
    kernel = Kernel("sevenths", (x, y), (n,), b.statements())
    limits = np.iinfo(dtype)
    given = np.array([limits.max, limits.max - 3, 20, 0, limits.min, limits.min // 3], dtype)
    found = np.empty_like(given)

    run_kernel(kernel, given, found, n=len(given))

    assert ufunc_of(kernel)(given).tolist() == found.tolist()

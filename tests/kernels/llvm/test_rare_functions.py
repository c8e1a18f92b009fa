"""Functions of kernels whose results are rarely needed."""

import numpy as np
import pytest

from letir.kernels.interpreter import run_kernel
from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Array, Kernel

pytest.importorskip("llvmlite")
from letir.kernels.llvm.machine_code import MachineCode, ufunc_of
from tests.kernels.elementary.functions import kernel_of

F8 = np.dtype("f8")
GIVEN = np.random.default_rng(0).uniform(-1, 1, size=103)


def inverse_of_large() -> Kernel:
    """``y = 1 / x`` for x > 1, else ``x + 1``."""
    x, y = Array("x", F8, ("n",)), Array("y", F8, ("n",), True)
    b = Builder()
    n = b.extent("n")
    one = b.number(1.0, F8)
    with b.loop(n) as i:
        loaded = b.load(x, (i,))
        usual = b.add(loaded, one)
        found = b.call_rarely(
            "inverse",
            lambda b, z: b.let("gt", z, one),
            lambda b, z: b.div(one, z),
            usual,
            loaded,
        )
        b.store(y, (i,), found)
    return Kernel("inverse_of_large", (x, y), (n,), b.statements())


def expected(x):
    return np.where(x > 1, 1 / np.where(x > 1, x, 1.0), x + 1)


@pytest.mark.parametrize("place", [None, *range(0, 103, 7), 102])
def test_a_rare_result_replaces_the_usual_one_at_its_element_alone(place):
    x = GIVEN.copy()
    if place is not None:
        x[place] = 4.0
    strided = np.repeat(x, 2)[::2]
    kernel = inverse_of_large()
    run, interpreted = ufunc_of(kernel), np.empty_like(x)

    run_kernel(kernel, x, interpreted, n=len(x))

    assert np.array_equal(expected(x), run(x))
    assert np.array_equal(expected(x), run(strided))
    assert np.array_equal(expected(x), interpreted)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_a_large_angle_among_small_ones_raises_no_flags(name):
    small = [0.0, -0.0, 5e-324, 1e-300, -1.5, 1e9, -(2.0**39), 0.5]
    x = np.array([*small, 1e300, *small, -(2.0**40), *small])
    reference = getattr(np, name)

    with np.errstate(all="raise", under="ignore"):
        found = ufunc_of(kernel_of(name, F8))(x)

    assert np.allclose(reference(x), found, rtol=4e-16, atol=0)


def test_a_vectorised_loop_tests_all_elements_of_a_vector_at_once():
    code = MachineCode(inverse_of_large())

    assert "vector-function-abi-variant" in code.llvm
    assert "llvm.vector.reduce.or" in code.llvm


def test_the_text_of_a_kernel_shows_when_a_function_returns_early():
    assert "return %0 unless %2" in str(inverse_of_large())

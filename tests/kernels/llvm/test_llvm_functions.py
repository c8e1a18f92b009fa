"""Functions of kernels: rarely needed results, and calls for several elements at a time."""

import re

import numpy as np
import pytest

from letir.kernels.interpreter import run_kernel
from letir.kernels.llvm.wide_loops import WideLoops
from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Array, Kernel

pytest.importorskip("llvmlite")
from letir.kernels.elementary import ELEMENTARY
from letir.kernels.llvm.interleaving import Vectors
from letir.kernels.llvm.llvm_text import llvm_text
from letir.kernels.llvm.machine_code import MachineCode, ufunc_of
from tests.each_sample import in_one_test
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


@in_one_test
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

    assert "vector-function-abi-variant" not in code.llvm
    assert "llvm.vector.reduce.or" in code.llvm


def test_loops_that_llvm_vectorises_have_functions_for_vectors(monkeypatch):
    monkeypatch.setattr(WideLoops, "plan_of", lambda self, loop: None)
    code = MachineCode(kernel_of("sin", F8))

    assert "vector-function-abi-variant" in code.llvm
    assert "llvm.vector.reduce.or" in code.llvm
    own = code.assembly().split("loops0:", 1)[1].split(".size", 1)[0]
    assert re.search(r"usual_or_\w+_x\d", own)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_loops_over_angles_call_functions_of_several_lanes(name):
    assembly = MachineCode(kernel_of(name, F8)).assembly()

    own = assembly.split("loops0:", 1)[1].split(".size", 1)[0]
    assert re.search(r"usual_or_\w+_x\d", own)


def test_the_text_of_a_kernel_shows_when_a_function_returns_early():
    assert "return %0 unless %2" in str(inverse_of_large())


def sines_of(count: int, dtype: np.dtype) -> Kernel:
    """The sines of ``count`` elements, and a sine of the first one of these."""
    x, y = Array("x", dtype, ("", "n")), Array("y", dtype, ("", "m"), True)
    b = Builder()
    place = [b.number(k, "int64") for k in range(count + 1)]
    given = [b.load(x, (place[0], place[k])) for k in range(count)]
    found = [b.call("sin", ELEMENTARY["sin"], one) for one in given]
    found.append(b.call("sin", ELEMENTARY["sin"], found[0]))
    for k, one in enumerate(found):
        b.store(y, (place[0], place[k]), one)
    extents = tuple([b.extent(name) for name in ("calls", "n", "m")])
    return Kernel("sines", (x, y), extents, b.statements())


@in_one_test
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 9])
def test_calls_for_neighbouring_elements_have_the_bits_of_single_calls(count, dtype):
    x = np.array([0.5, -2.0, 1e30, 0.0, 3.0, np.pi, -1e-9, 7.0, 1e10], dtype)[:count]
    kernel = sines_of(count, np.dtype(dtype))
    interpreted = np.empty((1, count + 1), dtype)

    run_kernel(kernel, x[None], interpreted, calls=1, n=count, m=count + 1)
    found = ufunc_of(kernel, f"(n)->({count + 1})")(x)

    assert np.array_equal(interpreted[0], found)


def test_independent_calls_are_one_call_of_a_function_of_several_lanes():
    text = llvm_text(sines_of(5, F8), "kernel", Vectors(16, 4)).text

    assert 2 == text.count("call fastcc <4 x double> @sin_float64_x4(")
    assert 1 == text.count("call fastcc double @sin_float64(")  # it needs a result of the others

"""The programs of the table on CuPy, where a device is present, and on the stand-in for it."""

from operator import attrgetter

import numpy as np
import optree
import pytest

import letir as lt
from benchmarks.kernel_workloads import WORKLOADS
from letir.testing import assert_close
from tests.eval.stand_in import DeviceArray, moved
from tests.eval.test_array_modules import imported_device
from tests.eval.test_device import REASON, on_device
from tests.programs.table import PROGRAMS
from tests.programs.test_programs import arguments, each, weighted_sum

needs_device = pytest.mark.skipif(REASON is not None, reason=str(REASON))
# NumPy raises a floating-point error, or takes a number for an array without axes; a device not
OF_THE_HOST = ("errstate_divide", "careful_logarithms", "spectrum_peaks")


def is_of_arrays(program) -> bool:
    """Whether a program takes arrays and numbers only, and may be recorded."""
    leaves = optree.tree_leaves(arguments(program, 0))
    kinds = (np.ndarray, np.generic, int, float, complex)
    is_refused = program.refused or program.function.__name__ in OF_THE_HOST
    return not is_refused and all(isinstance(leaf, kinds) for leaf in leaves)


def device_for_kernels():
    """The stand-in with launches of kernels."""
    pytest.importorskip("llvmlite")
    from tests.kernels.device.simulated_device import simulated_device

    return simulated_device()


def has_arrays(program) -> bool:
    """Whether an argument is an array, so that jit compiles for the device."""
    leaves = optree.tree_leaves(arguments(program, 0))
    return is_of_arrays(program) and any(isinstance(leaf, np.ndarray) for leaf in leaves)


def moved_arrays(x):
    """A device array of the stand-in for an array; another leaf itself."""
    return moved(x) if isinstance(x, np.ndarray) else x


def assert_same_on_device(program, move, is_jitted=False) -> None:
    """A program gives on the arrays that ``move`` makes what NumPy does: recorded on the host, or
    under jit, whose second call replays the plan.

    Skipped where CuPy has no counterpart of a function of SciPy, as the error says.
    """
    expected = program.function(*arguments(program, 0))
    jitted = lt.jit(program.function)
    f = jitted if is_jitted else lt.trace(program.function, *arguments(program, 0))
    for _ in range(2):
        found = result_on_device(f, program, move)
    assert_leaves_close(expected, found)


def result_on_device(f, program, move):
    """The result of ``f`` on the arguments of a program. Skips what CuPy lacks."""
    try:
        return f(*optree.tree_map(move, arguments(program, 0)))
    except lt.LetirError as error:
        if not str(error).startswith("CuPy has no "):
            raise
        pytest.skip(str(error).splitlines()[0])


def assert_leaves_close(expected, found) -> None:
    """Assert that texts are equal and numbers nearly equal."""
    pairs = zip(optree.tree_leaves(expected), optree.tree_leaves(found), strict=True)
    for a, b in pairs:
        if isinstance(a, str):
            assert a == b
        else:
            assert_close(a, b.host if isinstance(b, DeviceArray) else b, rtol=1e-6, atol=1e-8)


@needs_device
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@each([p for p in PROGRAMS if REASON is None and is_of_arrays(p)])
def test_a_program_computes_on_the_device_what_numpy_does(program):
    assert_same_on_device(program, on_device)


@needs_device
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@each([p for p in PROGRAMS if REASON is None and has_arrays(p)])
def test_a_program_under_jit_computes_on_the_device_what_numpy_does(program):
    assert_same_on_device(
        program, lambda x: on_device(x) if isinstance(x, np.ndarray) else x, is_jitted=True
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@each([p for p in PROGRAMS if is_of_arrays(p)])
def test_a_program_computes_on_the_stand_in_what_numpy_does(program):
    with imported_device():
        assert_same_on_device(program, moved_arrays)


# Python decides on elements, writes into arrays that the function makes, or draws with np.random
DECIDING = ("perceptron", "upper_confidence", "value_iteration", "flood_fill", "mlp_training")


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@each([p for p in PROGRAMS if p.function.__name__ in DECIDING])
def test_a_program_that_decides_runs_under_jit_on_the_stand_in(program):
    """Values of a recording are on the host, where Python and NumPy read them."""
    with device_for_kernels():
        assert_same_on_device(program, moved_arrays, is_jitted=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@each([p for p in PROGRAMS if has_arrays(p)])
def test_a_program_under_jit_computes_on_the_stand_in_what_numpy_does(program):
    with device_for_kernels():
        assert_same_on_device(program, moved_arrays, is_jitted=True)


@needs_device
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize(
    "workload", [w for w in WORKLOADS if not w.is_unrolled], ids=attrgetter("name")
)
def test_a_workload_of_the_benchmarks_computes_on_the_device_what_numpy_does(workload):
    """The value under jit, and the gradient of its sum."""
    f, args = workload.bound(np, lt), workload.make()
    wanted = tuple(range(workload.parameters))
    functions = [f]
    if workload.targets[1] is not None:
        functions.append(lt.grad(lambda *args: np.sum(f(*args)), wanted))
    for function in functions:
        found = lt.jit(function)(*map(on_device, args))
        expected = lt.trace(function, *args)(*args)
        pairs = zip(optree.tree_leaves(expected), optree.tree_leaves(found), strict=True)
        for a, b in pairs:
            assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@each([p for p in PROGRAMS if p.smooth is not None and has_arrays(p)])
@pytest.mark.parametrize("transform", [lambda f: f, lt.jit], ids=["eager", "jit"])
def test_a_gradient_computes_on_the_stand_in_what_it_does_on_the_host(program, transform):
    def loss(*args):
        return weighted_sum(program.function(*args))

    gradient = lt.grad(loss, argnums=program.smooth)
    expected = gradient(*arguments(program, 0))
    with device_for_kernels():
        assert_leaves_close(expected, result_on_device(transform(gradient), program, moved_arrays))

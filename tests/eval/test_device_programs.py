"""The programs of the table on CuPy, where a device is present."""

from operator import attrgetter

import numpy as np
import optree
import pytest

import letir as lt
from benchmarks.kernel_workloads import WORKLOADS
from letir.testing import assert_close
from tests.eval.test_device import REASON, on_device
from tests.programs.table import PROGRAMS
from tests.programs.test_programs import arguments, each

pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))


def is_of_arrays(program) -> bool:
    """Whether a program takes arrays and numbers only, and may be recorded."""
    leaves = optree.tree_leaves(arguments(program, 0))
    kinds = (np.ndarray, np.generic, int, float, complex)
    return not program.refused and all(isinstance(leaf, kinds) for leaf in leaves)


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@each([p for p in PROGRAMS if REASON is None and is_of_arrays(p)])
def test_a_program_computes_on_the_device_what_numpy_does(program):
    expected = program.function(*arguments(program, 0))
    args = optree.tree_map(on_device, arguments(program, 0))
    found = lt.trace(program.function, *arguments(program, 0))(*args)
    pairs = zip(optree.tree_leaves(expected), optree.tree_leaves(found), strict=True)
    for a, b in pairs:
        assert_close(a, b, rtol=1e-6, atol=1e-8)


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

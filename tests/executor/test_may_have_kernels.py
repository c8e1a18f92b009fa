"""``may_have_kernels``: a quick test that no kernel can pay; kernels themselves are tested in
tests/executor/kernels.
"""

import numpy as np
import pytest
from hypothesis import given, settings

import letir as lt
from letir.executor.default_pipeline import may_have_kernels, optimize_program
from letir.testing import programs


def chain(length: int):
    def f(x):
        for _ in range(length):
            x = np.sin(x)
        return x

    return lt.trace(f, np.ones(1))


def test_a_long_chain_of_small_arrays_may_have_a_kernel():
    assert not may_have_kernels(chain(20))
    assert may_have_kernels(chain(32))  # LONG_CHAIN


@pytest.mark.parametrize("n, expected", [(3, False), (128, True)])
def test_a_reduction_with_its_neighbours_may_have_a_kernel_from_128_elements_on(n, expected):
    assert may_have_kernels(lt.trace(np.sum, np.ones(n))) is expected


def test_the_operations_of_a_group_count_each():
    (group,) = optimize_program(chain(40)).binds

    assert group.op.role == "fused"
    assert may_have_kernels(optimize_program(chain(40)))


def test_a_symbolic_size_may_have_a_kernel():
    assert may_have_kernels(lt.trace(np.tanh, lt.ShapeDtype(("n",))))


def test_a_loop_may_have_a_kernel():
    loop = lt.trace(lambda x: lt.fori_loop(0, 1000, lambda i, x: x * 0.5, x), 1.0)

    assert may_have_kernels(loop)


def test_a_convolution_may_have_a_kernel():
    small = lt.trace(lt.nn.conv1d, np.ones((1, 1, 3)), np.ones((1, 1, 2)))

    assert may_have_kernels(small)


@given(programs())
@settings(max_examples=100, deadline=None)
def test_programs_that_fail_the_quick_test_have_no_kernels(drawn):
    pytest.importorskip("llvmlite")
    from letir.executor.kernels.kernel_kinds import with_all_kernels

    fn = optimize_program(drawn[0])
    if not may_have_kernels(fn):
        assert with_all_kernels(fn, False, False) is fn

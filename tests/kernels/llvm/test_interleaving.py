"""How many vectors a step of a loop computes side by side."""

import numpy as np
import pytest

from letir.kernels.llvm.interleaving import Vectors, interleave_count
from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Array, Kernel

F8 = np.dtype("f8")


def kernel_of_chains(n_chains: int, length: int) -> Kernel:
    """An elementwise kernel of independent chains of instructions, whose results are added up."""
    x, y = Array("x", F8, ("n",)), Array("y", F8, ("n",), True)
    b = Builder()
    n = b.extent("n")
    with b.loop(n) as i:
        first = b.load(x, (i,))
        chains = [b.mul(first, b.number(k + 2, F8)) for k in range(n_chains)]
        for _ in range(length):
            chains = [b.mul(b.sub(b.number(1, F8), z), z) for z in chains]
        total = chains[0]
        for z in chains[1:]:
            total = b.add(total, z)
        b.store(y, (i,), total)
    return Kernel("chains", (x, y), (n,), b.statements())


def count_for(n_chains: int, length: int, registers: int = 16) -> int:
    (loop,) = kernel_of_chains(n_chains, length).body
    return interleave_count(loop, Vectors(registers))


def test_a_chain_whose_instructions_wait_for_each_other_has_company():
    assert count_for(1, 50) == 8


def test_independent_instructions_keep_the_processor_busy():
    assert count_for(12, 10) == 1


def test_four_vectors_wait_less_than_two_but_eight_need_long_waits():
    found = [count_for(n_chains, 20, 32) for n_chains in (1, 2, 4, 6, 12)]

    assert [8, 4, 4, 2, 1] == found


def test_a_short_loop_has_one_vector_for_each_step():
    assert count_for(1, 5) == 1


def test_values_that_live_at_the_same_time_leave_room_for_fewer_vectors():
    found = [count_for(3, 40, registers) for registers in (2, 4, 8, 16)]

    assert [1, 2, 4, 4] == found


@pytest.mark.parametrize("length", [50, 2000])
def test_the_step_of_a_long_loop_stays_short_enough_to_compile(length):
    assert count_for(1, length) == (8 if length == 50 else 1)


def test_vectors_side_by_side_have_the_bits_of_one_alone():
    pytest.importorskip("llvmlite")
    from letir.kernels.llvm.machine_code import MachineCode, host_vectors, ufunc_of

    kernel = kernel_of_chains(1, 20)
    x = np.random.default_rng(0).uniform(0, 0.3, size=1003)
    run = ufunc_of(kernel)

    assert np.array_equal([run(one) for one in x], run(x))
    load = f"load <{host_vectors().lanes} x double>"
    assert MachineCode(kernel).llvm.count(load) == 8

"""``with_varying_numbers``: numbers that differ between the steps of a loop become arrays."""

import numpy as np
import pytest
from hypothesis import given, settings

import letir as lt
from letir.passes import fuse
from letir.passes.fusion.varying_numbers import with_varying_numbers
from letir.testing import assert_same, programs

X = np.linspace(-1.0, 2.0, 50)


def steps(x, count=20, number=lambda k: 0.1 / (k + 1)):
    for k in range(count):
        x = np.sin(x) * number(k) + 0.5
        x = np.cumsum(x)
    return x


def recorded(f, *args):
    """(the fused program, with arrays in place of numbers)."""
    fn = fuse(lt.trace(f, *args))
    return fn, with_varying_numbers(fn)


def numbers_in(fn) -> set:
    """The numbers among the operands, also in groups."""
    binds = [
        inner
        for bind in fn.binds
        for inner in (bind.attrs["body"].binds if bind.op.name == "fused" else (bind,))
    ]
    return {arg.value for bind in binds for arg in bind.args if type(arg) is lt.Const}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_different_numbers_of_one_line_become_arrays_of_the_same_bits(dtype):
    x = X.astype(dtype)
    fn, found = recorded(steps, x)

    assert numbers_in(found) == {0.5}
    assert len(numbers_in(fn)) == 21
    assert_same(fn(x), found(x))
    assert_same(steps(x), found(x))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: steps(x, count=5),  # few numbers
        lambda x: steps(x, number=lambda k: 2.0),  # the same number
        lambda x: np.stack([x ** (k + 2) for k in range(20)]),  # whose form depends on the number
        lambda x: np.stack([x.astype(int) + k for k in range(20)]),  # of integers
        lambda x: np.stack([np.where(x > 0, x, np.inf * (k + 1)) for k in range(20)]),
        np.sin,
    ],
)
def test_other_programs_stay(f):
    fn, found = recorded(f, X)

    assert fn is found


@pytest.mark.parametrize(("count", "varies"), [(8, False), (9, True)])
def test_kernels_for_eight_numbers_are_compiled_at_most(count, varies):
    fn, found = recorded(lambda x: steps(x, count=count), X)

    assert varies == (found is not fn)


def test_equal_numbers_share_an_array():
    def f(x):
        return np.stack([x * k + x[0] * k for k in np.linspace(0.0, 1.0, 20).tolist()])

    _, found = recorded(f, X)

    assert sum(bind.op.name == "constant" for bind in found.binds) == 20


def test_a_loop_with_a_step_size_for_each_step_compiles_few_kernels():
    pytest.importorskip("llvmlite")

    def descend(x, y):
        momentum = 0.0 * x
        for k in range(1, 25):
            momentum = 0.9 * momentum + (x - y)
            x = np.cumsum(x - 0.01 * momentum / (1 - 0.9**k))[::-1]
        return x

    x, y = np.linspace(0.0, 1.0, 20_000), np.linspace(1.0, 2.0, 20_000)
    fast = lt.jit(descend, kernels="on")

    np.testing.assert_allclose(fast(x, y), descend(x, y), rtol=1e-12)
    (entry,) = fast.debug_state().plans
    assert 0 < len({kernel.source for kernel in entry.plan.kernels}) <= 4


@given(programs())
@settings(max_examples=50, deadline=None)
def test_programs_keep_their_results(drawn):
    fn, args = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("letir.passes.fusion.varying_numbers._MAX_NUMBERS", 0)
        changed = with_varying_numbers(fuse(fn))

    with np.errstate(all="ignore"):
        assert_same(lt.run_forward(fn, *args), lt.run_forward(lt.check(changed), *args))


def test_means_of_rows_of_different_lengths_share_a_kernel():
    pytest.importorskip("llvmlite")

    def spread(a):
        total = 0.0
        for k in range(12):
            part = a[k:, k:]
            total = total + ((part - part.mean(1, keepdims=True)) ** 2).sum()
        return total

    a = np.linspace(-1.0, 1.0, 200 * 200).reshape(200, 200) ** 3
    fast, slow = [lt.jit(lt.grad(spread), kernels=kernels) for kernels in ("on", "off")]

    np.testing.assert_allclose(fast(a), slow(a), rtol=1e-10, atol=1e-12)
    (entry,) = fast.debug_state().plans
    assert 0 < len({kernel.source for kernel in entry.plan.kernels}) <= 6

"""How kernels with reductions are cut into chunks and blocks: at which axis, and how many."""

import numpy as np
import pytest

import letir as lt
from letir.executor.compiled import kernels_setting
from letir.testing import assert_close, assert_same

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)
from letir.executor.kernels.row_cuts import RowCut
from letir.executor.kernels.row_kernels import RowCall
from letir.executor.kernels.threaded_calls import work_of_element
from tests.executor.kernels.conftest import changed_costs
from tests.executor.kernels.test_threaded_calls import (  # noqa: F401  # fixtures
    _fresh_pool,
    assert_same_for_all_numbers,
    chunks,
)

RNG = np.random.default_rng(2)


def kernel_of(f, *args) -> tuple[RowCall, lt.Lambda]:
    """The only kernel with reductions of a function: its call, and the program of its group."""
    binds = lt.compile(lt.trace(f, *args)).plan.binds
    impls = [bind.op.impl for bind in binds if bind.op.role == "kernel"]
    (impl,) = [impl for impl in impls if isinstance(impl.call, RowCall)]
    return impl.call, impl.body


def cut_of(f, *args) -> RowCut | None:
    """The cut of the only kernel with reductions of a function."""
    return kernel_of(f, *args)[0].cut


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def column_totals(x):
    y = x * x - 0.5
    return y.sum(axis=0), y.max(axis=0)


def all_totals(x):
    y = x * x - 0.5
    return y.sum(), y.max()


# ---- where kernels are cut ----


def scaled(x, s, t):
    e = np.exp(x * s + t)
    return e / e.sum(axis=-1, keepdims=True)


def test_matrices_are_cut_along_their_longest_axis(chunks):  # noqa: F811
    x = RNG.normal(size=(8, 50, 6, 900))
    s, t = RNG.normal(size=(8, 1, 6, 1)), RNG.normal(size=(1, 50, 1, 900))
    cut = cut_of(scaled, x, s, t)
    f = lt.jit(scaled)

    assert (50, 0) == (cut.length, cut.blocks)
    assert (-3, None, -2, -3) == cut.axes  # of x, s, t and the result
    assert_same_for_all_numbers(lambda: (f(x, s, t),))
    assert_close(scaled(x, s, t), f(x, s, t), rtol=1e-13)
    assert min(chunks) > 1


def test_small_operands_do_not_decide_the_number_of_chunks(chunks):  # noqa: F811
    def f(x, w):
        e = np.exp(x * w)
        return e.sum(axis=-1), e.max(axis=-1)

    x, w = RNG.normal(size=(60, 40, 500)), RNG.normal(size=(60, 1, 1))
    fast = lt.jit(f)

    assert_same_for_all_numbers(lambda: fast(x, w))
    assert min(chunks) > 1


def test_two_long_rows_are_cut():
    assert (2, 0) == ((cut := cut_of(softmax, np.ones((2, 300_000)))).length, cut.blocks)
    assert cut_of(softmax, np.ones((1, 300_000))) is None  # it would need its totals first


@pytest.mark.parametrize(
    ("shape", "blocks"),
    [
        ((128, 1024), 2),
        ((256, 1024), 4),
        ((256, 1023), 3),  # blocks of 65,536 elements at least
        ((64 * 40, 4096), 32),  # at most 32
        ((128, 4096), 2),  # blocks of 64 rows at least
    ],
)
def test_totals_of_columns_are_cut_into_blocks_of_rows(shape, blocks):
    cut = cut_of(column_totals, np.ones(shape))

    assert (shape[0], blocks) == (cut.length, cut.blocks)
    assert ("sum", "max") == cut.combines


def test_totals_of_few_rows_or_elements_are_not_cut():
    assert cut_of(column_totals, np.ones((127, 4096))) is None
    assert cut_of(column_totals, np.ones((128, 1023))) is None
    assert cut_of(all_totals, np.ones(131_071)) is None
    assert 2 == cut_of(all_totals, np.ones(131_072)).blocks


def weighted(x, y, z):
    u = x[:, :, None] * y[:, None, :] * z
    return u.sum(axis=0), u.sum(axis=2)


@pytest.mark.parametrize(
    ("stack", "rows", "length", "blocks"), [(128, 60, 128, 2), (127, 60, 60, 0), (127, 1, 0, 0)]
)
def test_a_short_stack_is_cut_along_the_rows_of_its_matrices(stack, rows, length, blocks):
    x, y, z = (RNG.normal(size=n) for n in [(stack, rows), (stack, 2000), (rows, 2000)])
    call, _ = kernel_of(weighted, x, y, z)

    assert call.lowered.space.is_stacked or rows == 1
    found = (0, 0) if call.cut is None else (call.cut.length, call.cut.blocks)
    assert (length, blocks) == found
    assert_close(lt.jit(weighted)(x, y, z)[0], weighted(x, y, z)[0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("f", "is_in_blocks"), [(column_totals, True), (softmax, False)])
def test_a_kernel_with_little_work_runs_in_one_thread_but_in_the_same_blocks(f, is_in_blocks):
    x = np.ones((256, 1024))
    _, body = kernel_of(f, x)
    found = []
    for more in (0, 1):  # work than the kernel has
        with changed_costs(least_thread_work=work_of_element(body) * x.size + more):
            found.append(cut_of(f, x))
    large, small = found

    assert large.max_threads is None
    assert (1 if is_in_blocks else None) == getattr(small, "max_threads", None)
    assert is_in_blocks == (small is not None)
    assert not is_in_blocks or small.blocks == large.blocks


# ---- how blocks are combined ----


@pytest.mark.parametrize("place", [0, 300_000, -1])
def test_extrema_and_tests_of_blocks_are_those_of_all_elements(place):
    def f(x):
        y = x * 2.0
        return y.max(), y.min(), (y > 3.0).any(), (y < 3.0).all()

    fast, x = lt.jit(f), np.ones(1_000_000)
    assert cut_of(f, x).blocks > 1
    for value in (1.0, np.nan, 9.0, -9.0):
        x[place] = value
        assert_same(f(x), fast(x))
        with np.errstate(all="ignore"):  # the kernel itself computes comparisons with nan
            assert_same(f(x), fast(x))


def test_sums_of_blocks_are_added_pairwise_in_64_bits():
    x = np.zeros((256, 1024))
    assert 4 == cut_of(lambda x: (x * 1.0).sum(axis=0), x).blocks
    for large, dtype, expected in ((1e16, "f8", 1e16 + 2), (2.0**24, "f4", 2.0**24 + 3)):
        x[::64] = 1.0
        x[0] = large
        found = lt.jit(lambda x: (x * 1.0).sum(axis=0))(x.astype(dtype))
        # (large + 1) + (1 + 1), of which only the second sum is exact in 64 bits for 1e16
        assert_same(np.full(1024, expected, dtype), found)

"""Kernels that loop over a stack of matrices, and reduce along it."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import letir as lt
from letir.executor.compiled import kernels_setting
from letir.executor.default_pipeline import optimize_program
from letir.plan.plan import plan_of
from letir.testing import assert_close, assert_same
from tests.rounding_noise import assert_within_rounding

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)
from letir.executor.kernels.group_kernels import with_kernels
from letir.executor.kernels.row_kernels import RowCall

RNG = np.random.default_rng(8)
X, Y, Z = (RNG.normal(size=size) for size in [(400, 20), (400, 30), (20, 30)])


def calls(f, *args) -> list[RowCall]:
    """The calls on stacks of matrices in the plan of a function."""
    binds = lt.compile(lt.trace(f, *args)).plan.binds
    found = [bind.op.impl.call for bind in binds if bind.op.role == "kernel"]
    return [one for one in found if isinstance(one, RowCall) and one.lowered.space.is_stacked]


def several(x, y, z):
    """Reductions along each axis of products that no array holds."""
    u = x[:, :, None] * y[:, None, :] * z
    along_stack = u.sum(axis=0), u.mean(axis=0), u.max(axis=0), (u > 1).any(axis=0)
    return *along_stack, u.mean(axis=(0, 1)), u.sum(axis=2), u.min(axis=1)


def distances(centres, x):
    d = (x[:, None, :] - centres) * 2.0
    return np.exp(-0.5 * (d * d).sum(axis=-1)).sum()


def test_sums_along_the_first_axis_join_the_kernel_of_their_operand():
    (call,) = calls(several, X, Y, Z)

    assert "(l,m),(l,n),(m,n)->(m,n),(m,n),(m,n),(m,n),(n),(l,m),(l,n)" == call.lowered.signature
    for a, b in zip(several(X, Y, Z), lt.jit(several)(X, Y, Z), strict=True):
        assert_close(a, b, rtol=1e-12)
        assert a.dtype == b.dtype


def test_the_gradient_of_distances_to_centres_stores_no_differences():
    x, centres = RNG.normal(size=(3_000, 10)), RNG.normal(size=(6, 10))
    gradient = lt.grad(distances)

    program = lt.compile(lt.trace(gradient, centres, x)).plan
    large = [b for bind in program.binds for b in bind.binders if b.type.shape == (3_000, 6, 10)]

    assert 1 == len(calls(gradient, centres, x))
    assert [] == [b for b in large if b.type.size > 0][1:]
    expected = lt.run_forward(lt.trace(gradient, centres, x), centres, x)
    assert_close(expected, lt.jit(gradient)(centres, x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", [(70_000, 3, 7), (1_500, 40, 8), (4, 400, 500), (2, 3, 200_000)])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_the_bits_do_not_depend_on_the_number_of_threads(shape, dtype):
    stack, m, n = shape
    sizes = [(stack, m), (stack, n), (m, n)]
    x, y, z = (RNG.normal(size=size).astype(dtype) for size in sizes)

    found = []
    for threads in (1, 2, 3):
        lt.set_num_threads(threads)
        try:
            found.append(lt.jit(several)(x, y, z))
        finally:
            lt.set_num_threads(None)

    assert calls(several, x, y, z)
    assert_same(found[0], found[1])
    assert_same(found[0], found[2])
    for a, b in zip(several(x, y, z), found[0], strict=True):
        assert_close(a, b, rtol=1e-3 if dtype == "f4" else 1e-10, atol=1e-3)


@pytest.mark.parametrize("f", [several, lambda x, y, z: (x[:, :, None] * z).sum(axis=0)])
@pytest.mark.parametrize("order", ["C", "F", "every second", "reversed", "broadcast"])
def test_operands_in_other_memory_orders(f, order):
    args = []
    for x in (X, Y, Z):
        args.append(
            {
                "C": x,
                "F": np.asfortranarray(x),
                "every second": np.repeat(x, 2, axis=1)[:, ::2],
                "reversed": x[::-1],
                "broadcast": np.broadcast_to(x[:1], x.shape),
            }[order]
        )
    expected, found = f(*args), lt.jit(f)(*args)
    pairs = zip(expected, found, strict=True) if type(found) is tuple else [(expected, found)]
    for a, b in pairs:
        assert_close(a, b, rtol=1e-12)
        assert a.strides == b.strides


DTYPES = ["?", "i1", "u2", "i4", "i8", "f4", "f8"]


@given(
    st.tuples(*[st.integers(0, 4)] * 3).map(lambda s: (s[0] * 3, s[1], s[2])),
    st.tuples(*[st.sampled_from(DTYPES)] * 3),
    st.tuples(*[st.booleans()] * 6),
    st.booleans(),
)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_sizes_dtypes_and_broadcast_axes(shape, dtypes, broadcast, exact):
    stack, m, n = shape
    args = []
    for size, dtype in zip([(stack, m, 1), (stack, 1, n), (m, n)], dtypes, strict=True):
        cut = [1 if is_one else k for k, is_one in zip(size, broadcast, strict=False)]
        args.append((RNG.normal(size=cut) * 9).astype("i4").astype(dtype))

    def f(x, y, z):
        u = np.where(x > y, x, z) + y
        return u.sum(axis=0), u.sum(axis=(0, 1)), u.any(axis=0), u.sum(axis=2), u.sum(axis=1)

    program = lt.trace(f, *args)
    expected = lt.run_forward(program, *args)
    made = with_kernels(optimize_program(program, exact=exact), exact, min_elements=1)
    found = plan_of(made).run(list(args))

    if exact:
        assert_same(expected, found)
    else:
        assert_within_rounding(program, args, expected, found)


def test_blocks_depend_on_sizes_alone():
    x, y, z = (RNG.normal(size=size) for size in [(7_000, 3), (7_000, 7), (3, 7)])

    def cheap(x, y, z):
        return (x[:, :, None] * y[:, None, :] * z).sum(axis=0)

    def dear(x, y, z):
        return np.tanh(x[:, :, None] * y[:, None, :] * z).sum(axis=0)

    cuts = [calls(f, x, y, z)[0].cut for f in (cheap, dear)]

    assert [2, 2] == [cut.blocks for cut in cuts]
    assert [1, None] == [cut.max_threads for cut in cuts]


def test_a_warning_is_numpys_and_errors_name_the_operation():
    def f(x, y, z):
        return (np.divide(x[:, :, None], y[:, None, :]) * z).sum(axis=0)

    y = Y.copy()
    y[3, 4] = 0.0
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        lt.jit(f)(X, y, Z)
    with np.errstate(divide="ignore", invalid="ignore"):
        assert_close(f(X, y, Z), lt.jit(f)(X, y, Z), rtol=1e-12)

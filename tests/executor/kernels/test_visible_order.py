"""Products whose results may have any memory order, because no result of the program shows it."""

import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import letir as lt
from letir.executor.compiled import kernels_setting
from letir.testing import assert_close
from tests.each_sample import in_one_test

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)

RNG = np.random.default_rng(9)
# in memory the axes of the matrices are i, k, j: NumPy lays out products with them in that order
MATRICES = np.ascontiguousarray(RNG.normal(size=(16, 8, 16))).transpose(1, 0, 2)
POINTS, WEIGHTS = RNG.normal(size=(150, 8, 16)), RNG.normal(size=(150, 8))


def free_products(f, *args) -> list[bool]:
    """For each product in the plan of a function whether its order is free."""
    binds = lt.compile(lt.trace(f, *args)).plan.binds
    return [bind.op.impl.call.is_free for bind in binds if bind.op.name == "einsum"]


def apart(matrices, points):
    return np.einsum("kij,nkj->nki", matrices, points)


def squares(matrices, points):
    made = apart(matrices, points)
    return np.sum(made * made, axis=2)


def shifted(matrices, points):
    return apart(matrices, points) * 2.0 + 1.0


def total(matrices, points):
    return squares(matrices, points).sum(axis=1)


def twice(matrices, points):
    made = np.tanh(apart(matrices, points)) * 0.5
    return np.einsum("nki,nkj->kij", made, points), np.einsum("nki,kij->nkj", made, matrices)


@pytest.mark.parametrize(
    ("f", "expected"),
    [(total, [True]), (shifted, [False]), (squares, [False]), (twice, [True, False, False])],
)
def test_an_order_is_free_if_no_result_shows_it(f, expected):
    assert expected == free_products(f, MATRICES, POINTS)


@pytest.mark.parametrize("f", [total, shifted, squares, twice])
def test_results_have_numpys_order(f):
    found, expected = lt.jit(f)(MATRICES, POINTS), f(MATRICES, POINTS)
    for x, y in zip(lt.tree.leaves(found), lt.tree.leaves(expected), strict=True):
        assert x.strides == y.strides
        assert np.allclose(x, y, rtol=1e-12, atol=1e-12)


def test_the_order_follows_the_operands_of_each_call():
    f = lt.jit(twice)
    for matrices in (MATRICES, MATRICES.copy(), np.asfortranarray(MATRICES)):
        for points in (POINTS, np.asfortranarray(POINTS), POINTS[::-1]):
            for x, y in zip(f(matrices, points), twice(matrices, points), strict=True):
                assert x.strides == y.strides
                assert np.allclose(x, y, rtol=1e-12, atol=1e-12)


def test_an_order_that_follows_from_many_operations_is_not_free():
    """It would take a recursion, or as many calls as there are paths through the program."""

    def shift_often(a, b, offset):
        made = np.einsum("ij,jk->ik", a, b)
        for _ in range(1500):
            made = made + offset
        return np.einsum("ij,jk->ik", made, b)

    def mix_often(a, b, offset):
        made = np.einsum("ij,jk->ik", a, b) + offset
        for _ in range(60):
            made = (made + made.T) * 0.5 + np.sin(made.T)
        return np.einsum("ij,jk->ik", made, b)

    a, b = RNG.normal(size=(2, 40, 40))
    offset = np.asfortranarray(np.eye(40))
    for f in (shift_often, mix_often):
        found, expected = lt.jit(f)(a, b, offset), f(a, b, offset)
        assert found.strides == expected.strides
        assert np.allclose(found, expected, rtol=1e-11)
        assert free_products(f, a, b, offset) == [False, False]


def weighted(matrices, points, weights):
    a = apart(matrices, points)
    return np.einsum("nki,nkj->kij", a, weights[:, :, None] * a)


def weighted_by_itself(matrices, points, weights):
    a = apart(matrices, points)
    sums = np.exp(-np.sum(a * a, axis=2) / 50.0) + weights[0]
    shares = sums / sums.sum(axis=1)[:, None]
    return np.einsum("nki,kij->nkj", shares[:, :, None] * a, matrices), shares.sum()


@pytest.mark.parametrize("f", [weighted, weighted_by_itself])
def test_an_order_is_free_though_a_value_depends_on_other_orders_too(f):
    assert [True, False] == free_products(f, MATRICES, POINTS, WEIGHTS)


def in_all_orders(x):
    """Copies of an array in all memory orders."""
    for axes in itertools.permutations(range(x.ndim)):
        yield np.ascontiguousarray(x.transpose(axes)).transpose(np.argsort(axes))


@pytest.mark.parametrize("f", [weighted, weighted_by_itself])
def test_orders_follow_from_all_operands(f):
    fast = lt.jit(f)
    each = itertools.product(*map(in_all_orders, (MATRICES, POINTS, WEIGHTS)))
    for matrices, points, weights in each:
        expected = lt.tree.leaves(f(matrices, points, weights))
        for x, y in zip(lt.tree.leaves(fast(matrices, points, weights)), expected, strict=True):
            assert getattr(y, "strides", ()) == getattr(x, "strides", ())
            np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10)


_STEPS = (
    *(lambda a, w: a * 2.0, lambda a, w: np.tanh(a), lambda a, w: w[:, :, None] * a),
    *(lambda a, w: a - a.max(axis=2, keepdims=True), lambda a, w: a[:, ::-1], lambda a, w: a + a),
    lambda a, w: a[::-1],
    *(
        lambda a, w: np.tanh((a * a).sum(axis=2) * w)[:, :, None] * a,
        lambda a, w: w[0][:, None] * a,
    ),
    lambda a, w: a.mean(axis=0) + np.expand_dims(np.max(a, axis=2) + w, 2),
)
_ENDS = (
    lambda a, m, p: np.einsum("nki,nkj->kij", a, p),
    lambda a, m, p: np.einsum("nki,kij->nkj", a, m),
    lambda a, m, p: a.sum(axis=0),
    lambda a, m, p: a.sum(axis=(0, 1)),
    lambda a, m, p: a.mean(),
    lambda a, m, p: a.transpose(0, 2, 1),
    lambda a, m, p: (a * p).reshape(len(a), -1) @ np.ones((128, 3)),
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.sampled_from(_STEPS), max_size=3),
    st.lists(st.sampled_from(_ENDS), min_size=1, max_size=2),
    st.tuples(*[st.sampled_from([*in_all_orders(x)]) for x in (MATRICES, POINTS, WEIGHTS)]),
)
def test_generated_programs_have_numpys_values_and_order(steps, ends, args):
    def f(matrices, points, weights):
        a = apart(matrices, points)
        for step in steps:
            a = step(a, weights)
        return [end(a, matrices, points) for end in ends]

    expected, found = lt.jit(f, kernels="off")(*args), lt.jit(f)(*args)
    for x, y in zip(expected, found, strict=True):
        assert np.allclose(x, y, rtol=1e-10, atol=1e-10)
        assert np.shape(x) == np.shape(y)
        assert getattr(x, "strides", ()) == getattr(y, "strides", ())


def scaled_twice(x, y):
    made = x * 2.0
    return made, made * y


def scaled_and_summed(x, y):
    made = x * 2.0
    return (made * y).sum(), np.sin(y) + 1.0, made.T


@pytest.mark.parametrize("f", [scaled_twice, scaled_and_summed])
@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_each_result_of_a_kernel_has_the_order_of_its_own_operands(f, axes):
    shape, inverse = (24, 40, 30), np.argsort(axes)
    x = np.ascontiguousarray(RNG.normal(size=shape).transpose(axes)).transpose(inverse)
    y = RNG.normal(size=shape)
    fast = lt.jit(f)

    for args in ((x, y), (y, x), (x, x * 3.0)):
        for expected, found in zip(f(*args), fast(*args), strict=True):
            assert getattr(expected, "strides", ()) == getattr(found, "strides", ())
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert lt.compile(lt.trace(f, x, y)).kernels


def test_a_part_of_a_product_may_be_taken_with_one_index():
    def parts(x, y):
        product = np.einsum("ij,kj->ik", x, y)
        return [product[3:].T, product, product @ y]

    x, y = RNG.normal(size=(2, 64, 64))
    for found, expected in zip(lt.jit(parts)(x, y), parts(x, y), strict=True):
        np.testing.assert_allclose(found, expected)
        assert found.strides == expected.strides


def added_to_an_outer_product(x, y):
    return x + y[:, None, None] * x[0] * 2.0


def scaled_by_differences(x, y):
    return np.exp(-x) * (y[:, None] - y)[:, :30, None]


@pytest.mark.parametrize("f", [added_to_an_outer_product, scaled_by_differences])
def test_values_of_broadcast_operands_are_in_c_order(f):
    x, y = RNG.normal(size=(40, 30, 16)), RNG.normal(size=40)  # small: NumPy reuses no temporaries
    fast = lt.jit(f)

    for each in in_all_orders(x):
        assert f(each, y).strides == fast(each, y).strides
        np.testing.assert_allclose(fast(each, y), f(each, y), rtol=1e-12)
    assert lt.compile(lt.trace(f, x, y)).kernels


def test_reversed_operands_have_the_order_of_their_distances():
    def f(x, y):
        made = np.tanh(x * y) + x
        return np.tanh(made * y) + made, y * 2.0

    x, y = RNG.normal(size=(40, 60)), np.asfortranarray(RNG.normal(size=(40, 60)))
    expected, found = f(x[::-1], y), lt.jit(f)(x[::-1], y)

    assert [a.strides for a in expected] == [a.strides for a in found]


def mean_of_rows(x):
    return np.tanh(x).mean(axis=1), (x * x).sum(axis=(0, 1)), (np.exp(x).sum(axis=0, keepdims=True))


def products(x):
    return np.einsum("nki,nkj->kij", x, x), np.einsum("nki,kij->nkj", x, x[:16])


@pytest.mark.parametrize("f", [mean_of_rows, products])
def test_results_own_their_memory(f):
    for x in in_all_orders(RNG.normal(size=(40, 16, 16))):
        for part in lt.jit(f)(x):
            assert part.flags.owndata and part.flags.writeable and part.base is None


def relaxation(steps, view, end):
    """A function of a small matrix and a number, which computes on a view of the matrix."""

    def run(p, a):
        y = view(p)
        for i in range(steps):
            slope = np.sin(y) * a
            y = y + 0.01 * (slope + 2 * np.cos(y + slope * 0.1) * a + i)
            a = a + y[0, 0] * 0.1
        return end(y), a, np.sort(y, axis=0)

    return run


@in_one_test
@pytest.mark.parametrize("steps", [2, 8, 40])
@pytest.mark.parametrize("view", [lambda p: p, lambda p: p.T, lambda p: np.linalg.inv(p @ p.T).T])
@pytest.mark.parametrize("end", [lambda y: y, lambda y: y.T])
def test_results_of_chains_have_numpys_order_for_operands_in_any_order(steps, view, end):
    f = relaxation(steps, view, end)
    p = np.random.default_rng(3).uniform(1.0, 2.0, size=(3, 4))
    compiled, fast = lt.compile(lt.trace(f, p, np.float64(0.3))), lt.jit(f)
    layouts = (p, np.asfortranarray(p), np.repeat(p, 2, axis=1)[:, ::2], p[::-1, ::-1])

    assert compiled.kernels
    for layout in (*layouts, *layouts):
        expected = f(layout, np.float64(0.3))
        for actual in (compiled(layout, np.float64(0.3)), fast(layout, np.float64(0.3))):
            assert_close(actual, expected)
            assert [x.flags.c_contiguous for x in actual] == [
                x.flags.c_contiguous for x in expected
            ]
            assert [x.flags.f_contiguous for x in actual] == [
                x.flags.f_contiguous for x in expected
            ]

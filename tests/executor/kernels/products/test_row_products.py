"""Products of a large matrix with vectors from both sides, which one kernel computes."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import letir as lt
from letir.executor.compiled import kernels_setting
from letir.testing import assert_same

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)

RNG = np.random.default_rng(5)
X = RNG.normal(size=(4100, 64))
W, Y = 0.1 * RNG.normal(size=64), RNG.normal(size=4100)


def least_squares(w, x, y):
    return np.mean((x @ w - y) ** 2)


def likelihood(w, x, y):
    z = np.dot(x, w)
    return np.mean(np.log1p(np.exp(-np.abs(z))) + np.maximum(z, 0.0) - z * y)


def huber(w, x, y):
    r = x @ w - y
    return np.sum(np.where(np.abs(r) < 1, 0.5 * r * r, np.abs(r) - 0.5)) + 0.1 * w @ w


def weighted(w, x, y):
    return np.sum(np.exp(-y * y) * np.tanh(x @ w - y) ** 2) / len(y)


LOSSES = (least_squares, likelihood, huber, weighted)


def product_kernels(f, *args) -> list[tuple]:
    """For each kernel of the value and gradient the operations, where it has products."""
    lt.jit(f)(*args)
    kernels = lt.compile(lt.trace(f, *args)).kernels
    found = [tuple([bind.op.name for bind in kernel.binds]) for kernel in kernels]
    return [names for names in found if {"matmul", "dot"} & {*names}]


def both(f, *args) -> tuple:
    """(the results with kernels, the results of NumPy's calls)."""
    return lt.jit(f)(*args), lt.jit(f, kernels="off")(*args)


def assert_near(found, expected, scale: float) -> None:
    for x, y in zip(lt.tree.leaves(found), lt.tree.leaves(expected), strict=True):
        assert type(x) is type(y)
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        assert np.allclose(x, y, rtol=scale, atol=scale)


@pytest.mark.parametrize("f", LOSSES)
def test_value_and_gradient_read_the_matrix_once(f):
    g = lt.value_and_grad(f)
    (names,) = product_kernels(g, W, X, Y)

    assert 2 == sum([name in ("matmul", "dot") for name in names])
    assert_near(*both(g, W, X, Y), 1e-12)


def test_values_of_rows_from_operands_are_computed_in_the_same_kernel():
    """The products of the targets with the derivative of the mean need no arrays."""
    g, x, y = lt.value_and_grad(likelihood), np.tile(X, (3, 1)), np.tile(Y, 3)
    plan = lt.compile(lt.trace(g, W, x, y)).plan
    made = [binder.type.shape for bind in plan.binds for binder in bind.binders]

    assert [] == [shape for shape in made if shape == y.shape]
    assert_near(*both(g, W, x, y), 1e-12)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_vector_for_the_columns_of_a_square_matrix_is_no_value_of_rows(axis):
    x, y = RNG.normal(size=(520, 520)), RNG.normal(size=520)

    def f(x, y):
        scale = np.expand_dims(y * 3.0, axis)
        total = np.exp(x).sum()
        return (x * scale * total).sum(axis=1)

    assert_near(*both(f, x, y), 1e-11)
    assert np.allclose(f(x, y), lt.jit(f)(x, y), rtol=1e-9)


def test_a_single_product_stays_with_blas():
    assert [] == product_kernels(least_squares, W, X, Y)


def test_two_products_that_need_all_rows_stay_with_blas():
    def centred(w, x):  # each element of the vector depends on all rows
        z = x @ w
        return (z - z.max()) @ x

    assert [] == product_kernels(centred, W, X)
    assert_near(*both(centred, W, X), 1e-12)


def test_small_matrices_and_short_rows_stay_with_blas():
    g = lt.value_and_grad(least_squares)

    assert [] == product_kernels(g, W, X[:100].copy(), Y[:100].copy())
    assert [] == product_kernels(g, W[:20].copy(), np.ones((40_000, 20)), np.ones(40_000))


def test_exact_programs_keep_the_products_of_blas():
    g = lt.value_and_grad(least_squares)
    kernels = lt.compile(lt.trace(g, W, X, Y), exact=True).kernels

    assert not any("matmul" in [b.op.name for b in kernel.binds] for kernel in kernels)


@pytest.mark.parametrize(
    "x", [np.asfortranarray(X), X[::-1], np.repeat(X, 2, axis=1)[:, ::2]], ids=["F", "rev", "gaps"]
)
def test_matrices_in_other_memory_orders(x):
    assert_near(*both(lt.value_and_grad(likelihood), W, x, Y), 1e-12)


def test_products_in_single_precision_agree_with_numpy():
    args = [a.astype("f4") for a in (W, X, Y)]

    assert_near(*both(lt.value_and_grad(huber), *args), 2e-5)


@pytest.mark.parametrize("bad", [np.inf, np.nan, 1e308])
def test_warnings_are_those_of_numpy(bad):
    x = X.copy()
    x[7, 3] = bad
    g = lt.value_and_grad(least_squares)
    told = []
    for kernels in ("on", "off"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            lt.jit(g, kernels=kernels)(W, x, Y)
        told.append([(str(w.message), w.lineno) for w in caught])

    assert told[0] == told[1]


def test_the_number_of_threads_changes_no_bits():
    x, y = RNG.normal(size=(60_000, 64)), RNG.normal(size=60_000)
    f = lt.jit(lt.value_and_grad(likelihood))
    found = []
    for threads in (1, 2, 3):
        lt.set_num_threads(threads)
        try:
            found.append(f(W, x, y))
        finally:
            lt.set_num_threads(None)

    assert_same(found[0], found[1])
    assert_same(found[0], found[2])


_STEPS = (
    *(np.tanh, np.abs, lambda z: z * z, lambda z: np.exp(-z * z), lambda z: np.maximum(z, 0.1)),
    *(lambda z: np.where(z > 0, z, 0.2 * z), np.sin, lambda z: z / (1 + z * z)),
)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(_STEPS), max_size=4), st.booleans(), st.integers(0, 3))
def test_generated_models_agree_with_numpy(steps, is_mean, seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2_100, 4_200)), int(rng.integers(126, 140))
    x, w, y = rng.normal(size=(n, m)), rng.normal(size=m) / m, rng.normal(size=n)

    def f(w, x, y):
        z = x @ w
        for step in steps:
            z = step(z) - 0.5 * y
        return (np.mean if is_mean else np.sum)(z * z) + np.sum(w)

    assert_near(*both(lt.value_and_grad(f), w, x, y), 1e-9)

"""``vmap`` and the batching rules: what is computed for a batch is what a loop computes."""

import numpy as np
import pytest

import letir as lt
from letir.ad.batching import batched
from letir.ast.parser import parse
from letir.testing import assert_close, assert_same

X = np.linspace(-1.0, 1.2, 12).reshape(4, 3)
W = np.linspace(-0.7, 0.9, 6).reshape(2, 3)


# ---- the transform of programs ----


def test_what_no_mapped_value_reaches_stays_as_it_is():
    f3 = "float64[3]"
    fn = parse(
        f"lambda %0: {f3}, %1: {f3} {{ %2: {f3} = exp(%0); %3: {f3} = mul(%2, %1); return %3 }}"
    )

    program, axes = batched(fn, (None, 0), 4)

    assert fn.binds[0] is program.binds[0]
    assert (0,) == axes


def test_a_result_that_no_mapped_value_reaches_has_no_batch():
    fn = parse("lambda %0: float64[3], %1: float64[3] { %2 = exp(%0); return %2, %1 }")

    assert (None, 0) == batched(fn, (None, 0), 4)[1]


# ---- vmap of functions ----


def test_vmap_is_a_loop():
    def f(x, w):
        return np.tanh(w @ x).sum(), x[::-1]

    found = lt.vmap(f, in_axes=(0, None))(X, W)

    assert_close(tuple(map(np.stack, zip(*[f(x, W) for x in X], strict=True))), found)


def test_vmap_of_grad_is_the_gradient_of_each_example():
    def loss(x, w):
        return np.tanh(w @ x).sum()

    found = lt.vmap(lt.grad(loss, 1), in_axes=(0, None))(X, W)

    assert_close(np.stack([lt.grad(loss, 1)(x, W) for x in X]), found)


def test_a_matrix_times_mapped_vectors_is_one_product():
    fn = lt.trace(lambda w, x: w @ x, W, X[0])

    program = lt.vmap(fn, in_axes=(None, 0), axis_size=4)

    assert "%2 = transpose %0, None\n%3 = matmul %1, %2\nreturn %3\n" == program.listing()


def test_sizes_that_differ_are_named():
    with pytest.raises(lt.ShapeError, match=r"x has 4 along axis 0\n  y has 3 along axis 1"):
        lt.vmap(lambda x, y: x, in_axes=(0, 1))(X, X)


def test_results_that_depend_on_nothing_mapped_are_broadcast():
    assert_same((X, np.full(4, 2.0)), lt.vmap(lambda x: (x, 2.0))(X))

"""flatten_products: stacks of small matrices times one matrix, as products of two matrices."""

import numpy as np
import pytest

import letir as lt
from letir.passes import batch_matmuls
from letir.passes.peephole_rules.stacked_products import flatten_products
from letir.testing import assert_close


def random(*shape: int) -> np.ndarray:
    """Random numbers of single precision."""
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def shapes_of_products(fn: lt.Lambda) -> list[tuple]:
    """The shapes of the results of matrix products."""
    return [bind.binders[0].type.shape for bind in fn.binds if bind.op.name == "matmul"]


@pytest.mark.parametrize("shape", [(50, 8, 128), (50, 1, 128), (2, 3, 9, 128)])
def test_the_rows_of_a_stack_are_multiplied_at_once(shape):
    x, w = random(*shape), random(128, 130)
    fn = lt.trace(lambda x, w: x @ w, x, w)

    found = lt.check(batch_matmuls(fn))

    assert [(x.size // 128, 130)] == shapes_of_products(found)
    assert_close(found(x, w), x @ w, rtol=1e-4, atol=1e-4)
    assert fn is batch_matmuls(fn, exact=True)


@pytest.mark.parametrize(
    "f",
    [
        np.matmul,
        np.dot,
        lambda x, y: np.dot(x, y.T),
        lambda x, y: np.tensordot(x, y, 1),
        lambda x, y: np.tensordot(x, y, axes=([2], [1])),
        lambda x, y: np.tensordot(x, y, axes=([-1], [-1])),
    ],
)
def test_a_small_matrix_multiplies_all_pixels_at_once(f):
    x, y = random(30, 20, 3), random(3, 3)
    fn = lt.trace(f, x, y)

    found = lt.check(batch_matmuls(fn))

    assert [(600, 3)] == shapes_of_products(found)
    assert_close(found(x, y), f(x, y), rtol=1e-4, atol=1e-4)
    assert fn is batch_matmuls(fn, exact=True)


@pytest.mark.parametrize("shape", [(0, 5, 3), (5, 0, 3), (700, 2, 0)])
@pytest.mark.parametrize("f", [np.matmul, np.dot, lambda x, y: np.tensordot(x, y, 1)])
def test_products_of_empty_stacks_agree_with_numpy(f, shape):
    x, y = random(*shape), random(shape[-1], 3)
    fn = lt.trace(f, x, y)

    assert_close(f(x, y), batch_matmuls(fn)(x, y))
    assert_close(f(x, y), lt.jit(f)(x, y))


def test_dot_of_a_stack_calls_blas():
    x, y = random(5, 8, 40), random(40, 3)
    fn = lt.trace(np.dot, x, y)

    assert [(40, 3)] == shapes_of_products(flatten_products(fn))
    assert_close(flatten_products(fn)(x, y), np.dot(x, y), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("axes", [([1], [0]), ([1, 2], [0, 1]), 0])
def test_sums_of_other_axes_stay(axes):
    x, y = random(30, 3, 20) if axes else random(600, 1, 3), random(3, 20)
    fn = lt.trace(lambda x, y: np.tensordot(x, y, axes), x, y[:, :3] if axes == ([1], [0]) else y)

    assert fn is flatten_products(fn)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        *[((50, 65, 128), (128, 128)), ((50, 8, 32), (32, 32)), ((3, 2, 128), (128, 128))],
        *[((1, 40, 128), (128, 128)), ((8, 128), (128, 128)), ((5, 8, 128), (5, 128, 128))],
    ],
)
def test_large_matrices_small_factors_and_short_stacks_stay(left, right):
    fn = lt.trace(np.matmul, random(*left), random(*right))

    assert fn is flatten_products(fn)


def test_products_in_the_body_of_a_loop():
    x, w = random(50, 8, 128), random(128, 128)
    fn = lt.trace(lambda x, w: lt.fori_loop(0, 70, lambda i, y: np.tanh(y @ w), x), x, w)

    (loop,) = [bind for bind in batch_matmuls(fn).binds if bind.op.name == "fori_loop"]

    assert [(400, 128)] == shapes_of_products(loop.attrs["body"])

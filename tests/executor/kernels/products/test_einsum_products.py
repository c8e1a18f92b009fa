"""Einsums of two arrays by matrix products: NumPy's results in NumPy's memory order."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close

RNG = np.random.default_rng(0)
FACTORS, POINTS = RNG.normal(size=(25, 10, 10)), RNG.normal(size=(400, 25, 10))
SELECTED = FACTORS.reshape(25, 100)[:, np.arange(100).reshape(10, 10)]
X, Y = RNG.normal(size=(60, 70)), RNG.normal(size=(80, 70))
MANY = RNG.normal(size=(6, 30, 30))

PRODUCTS = {
    "points of a mixture": ("kij,nkj->nki", FACTORS, POINTS),
    "its first gradient": ("nki,nkj->kij", POINTS, POINTS),
    "its second gradient": ("nki,kij->nkj", POINTS, FACTORS),
    "matrices": ("ij,jk->ik", X, Y.T),
    "transposed result": ("ij,kj->ki", X, Y),
    "implicit result": ("bij,bjk", MANY, MANY),
    "ellipsis": ("...ij,...jk->...ik", MANY, MANY),
    "several inner labels": ("xabi,yabi->xy", MANY.reshape(9, 4, 5, 30), MANY.reshape(9, 4, 5, 30)),
    "other orders of memory": (
        "kij,nkj->nki",
        np.asfortranarray(FACTORS),
        POINTS[:, :, ::2].repeat(2, 2),
    ),
    # the rows and columns of the result have gaps in memory
    "factors selected by an index": ("kij,nkj->nki", SELECTED, POINTS),
    "single precision": ("ij,kj->ki", X.astype("f4"), Y.astype("f4")),
}
OTHERS = {
    "diagonal": ("ii,ij->ij", MANY[0], MANY[1]),
    "elementwise": ("ij,ij->ij", MANY[0], MANY[1]),
    "small": ("ij,jk->ik", MANY[0, :3, :3], MANY[0, :3, :3]),
    "broadcast": ("ij,jk->ik", X[:, :1], Y.T),
    "integers": ("ij,kj->ki", X.astype(int), Y.astype(int)),
    "a sum of one operand": ("ij,kl->ik", X, Y),
}


def compiled(subscripts, x, y):
    found = lt.compile(lt.trace(lambda x, y: np.einsum(subscripts, x, y), x, y))
    (bind,) = found.plan.binds
    return found, bind.op.scalar is None  # the record says "einsum"


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_large_sum_of_products_is_computed_by_blas(name):
    subscripts, x, y = PRODUCTS[name]
    found, is_product = compiled(subscripts, x, y)
    expected, result = np.einsum(subscripts, x, y), found(x, y)

    assert is_product
    assert expected.strides == result.strides
    assert_close(expected, result, rtol=1e-4 if x.dtype == "f4" else 1e-9)


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_left_to_numpy(name):
    subscripts, x, y = OTHERS[name]
    found, is_product = compiled(subscripts, x, y)

    assert not is_product
    assert_close(np.einsum(subscripts, x, y), found(x, y))


def test_reversed_and_broadcast_operands_are_left_to_numpy():
    found, _ = compiled("ij,kj->ki", X, Y)
    flipped, same = X[::-1], np.broadcast_to(X[0], X.shape)

    assert_close(np.einsum("ij,kj->ki", flipped, Y), found(flipped, Y))
    assert_close(np.einsum("ij,kj->ki", same, Y), found(same, Y))


def test_einsum_products_raise_no_floating_point_errors_as_in_numpy():
    found, _ = compiled("ij,kj->ki", X, Y)

    with np.errstate(all="raise"):
        assert np.isinf(found(X * 1e200, Y * 1e200)).any()


def test_exact_programs_and_programs_without_kernels_keep_their_bits():
    program = lt.trace(lambda x, y: np.einsum("ij,kj->ki", x, y), X, Y)
    expected = np.einsum("ij,kj->ki", X, Y)

    assert np.array_equal(expected, lt.compile(program, exact=True)(X, Y))
    assert np.array_equal(expected, lt.compile(program, kernels="off")(X, Y))

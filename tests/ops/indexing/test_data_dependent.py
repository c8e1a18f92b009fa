"""Results of data-dependent length: the length is guarded, and derivatives flow [B2]."""

import numpy as np
import pytest

import letir as lt
import letir.numpy as lnp
from letir.errors import DTypeError, GuardError, ShapeError, TraceError
from letir.testing import assert_same, check_grads
from tests.each_sample import in_one_test

X = np.array([[0.0, 1.5, -2.0], [3.0, 0.0, 1.25]])
V = np.array([0.0, 0.0, 2.0, 1.0, 2.0, 0.0])
W = np.array([2.0, 5.0, 1.0])
N = np.array([3, 0, 3, 1])
A = np.arange(6.0).reshape(2, 3)
SPECIAL = np.array([np.nan, -0.0, 1.0, 0.0, np.nan, -np.inf])

CALLS = {
    "nonzero": (np.nonzero, X),
    "method": (lambda x: x.nonzero(), X),
    "of integers": (np.nonzero, N),
    "where": (np.where, X > 1),
    "at places": (lambda x: x[np.where(x > 0)], X),
    "mask": (lambda x: x[x > 0], X),
    "mask of columns": (lambda x: x[:, x[0] > 0], X),
    "flatnonzero": (np.flatnonzero, X),
    "argwhere": (np.argwhere, X),
    "argwhere of a number": (np.argwhere, np.array(2.0)),
    "extract": (lambda x: np.extract(x > 0, x), X),
    "extract, known places": (lambda x: np.extract([True, False, True], x), X),
    "extract of an array": (lambda x: np.extract(x > 0, A), X),
    "compress": (lambda x: np.compress([True, False, True], x, axis=1), X),
    "compress, traced": (lambda x: np.compress(x[0] > 0, x, axis=-1), X),
    "compress of an array": (lambda x: np.compress(x[0] > 0, A, axis=-1), X),
    "compress, flat": (lambda x: np.compress([False, True], x), X),
    "compress, a method": (lambda x: x.compress(x[0] > 0, axis=1), X),
    "trim_zeros": (np.trim_zeros, V),
    "trim_zeros at the front": (lambda v: np.trim_zeros(v, "f"), V),
    "trim_zeros of zeros": (np.trim_zeros, 0 * V),
    "trim_zeros of a matrix": (np.trim_zeros, np.pad(X, 2)),
    "trim_zeros along an axis": (lambda x: np.trim_zeros(x, axis=1), np.pad(X, 2)),
    "unique": (np.unique, V),
    "unique, all parts": (lambda v: np.unique(v, True, True, True), X),
    "unique, special values": (np.unique, SPECIAL),
    "unique, each nan": (lambda v: np.unique(v, equal_nan=False), SPECIAL),
    "unique rows": (lambda v: np.unique(v, axis=0, return_counts=True), np.stack([W, W, -W])),
    "unique of nothing": (np.unique, V[:0]),
    "unique of booleans": (np.unique, V > 0),
    "unique of complex numbers": (np.unique, V + 1j),
    "unique of float32": (np.unique, V.astype(np.float32)),
    "unique, not sorted": (lambda n: np.unique(n, sorted=False), N),
    "unique_values": (np.unique_values, V),
    "unique_counts": (np.unique_counts, V),
    "unique_inverse": (np.unique_inverse, X),
    "unique_all": (np.unique_all, V),
    "union1d": (np.union1d, V, W),
    "intersect1d": (np.intersect1d, V, W),
    "intersect1d, places": (lambda v, w: np.intersect1d(v, w, return_indices=True), V, W),
    "intersect1d with a list": (lambda v: np.intersect1d([1, 2.0, 7], v), V),
    "setdiff1d": (np.setdiff1d, V, W),
    "setdiff1d, unique": (lambda v, w: np.setdiff1d(v, w, assume_unique=True), V, W),
    "setdiff1d of an array": (lambda w: np.setdiff1d(V, w), W),
    "setxor1d": (np.setxor1d, V, W),
    "setxor1d with a list": (lambda w: np.setxor1d([1.0, 3], w), W),
    "isin": (np.isin, V, W),
    "isin, inverted": (lambda w: np.isin(V, w, invert=True), W),
    "isin of a number": (lambda w: np.isin(3.0, w), W),
    "bincount": (np.bincount, N),
    "bincount, longer": (lambda n: np.bincount(n, minlength=8), N),
    "bincount of weights": (np.bincount, N, V[:4]),
    "bincount of nothing": (np.bincount, N[:0]),
}
if "sorted" not in np.unique.__wrapped__.__kwdefaults__:  # before NumPy 2.3
    del CALLS["unique, not sorted"]


@in_one_test
@pytest.mark.parametrize("name", CALLS)
def test_a_call_agrees_with_numpy(name):
    f, *args = CALLS[name]
    program = lt.trace(f, *args)

    assert_same(f(*args), program(*args))
    assert program == lt.parse(lt.dumps(program))


LENGTHS = {
    "nonzero": (np.nonzero, V, 1 + V),
    "mask": (lambda v: v[v > 1], V, 1 + V),
    "unique": (np.unique, V, np.arange(6.0)),
    "setdiff1d": (lambda v: np.setdiff1d(v, W), V, 7 + V),
    "bincount": (np.bincount, N, N + 1),
    "trim_zeros": (np.trim_zeros, V, V[::-1].copy()),
    "a length only": (lambda v: len(np.unique(v)) * v, V, np.arange(6.0)),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_a_replay_of_another_length_fails_a_guard(name):
    """[B2] Also where only the length is used."""
    f, recorded_at, replayed_at = LENGTHS[name]

    with pytest.raises(GuardError, match=r"at .*test_data_dependent\.py:\d+|now it is"):
        lt.trace(f, recorded_at)(replayed_at)


def test_other_values_with_a_result_of_the_same_length_are_replayed():
    for f in (np.nonzero, np.unique, np.trim_zeros):
        assert_same(f(V[[1, 0, 3, 2, 4, 5]] * 3), lt.trace(f, V)(V[[1, 0, 3, 2, 4, 5]] * 3))


def test_a_bincount_with_minlength_serves_all_smaller_numbers():
    f = lt.trace(lambda n: np.bincount(n, minlength=8), N)

    assert_same(np.bincount([7, 7, 0, 0], minlength=8), f(np.array([7, 7, 0, 0])))


def test_a_trace_without_values_is_refused(told):
    message = """\
the length of numpy.unique of a traced value of type float64[6] is needed, but it has no value
  at test_data_dependent.py:NN
  trace with concrete arguments, so that a guard is recorded,
  choose with numpy.where or letir.cond, or make it a static argument"""

    assert (TraceError, message) == told(lambda v: np.unique(v), V, abstract=True)  # noqa: PLW0108


DERIVATIVES = {
    "mask": lambda x: np.sin(x[x > 0]),
    "nonzero": lambda x: x[np.nonzero(x > 0)] ** 2,
    "extract": lambda x: np.extract(x > 0, x) ** 2,
    "compress": lambda x: np.compress(x[0] > 0, x, axis=1) ** 2,
    "unique": lambda x: np.unique(x) ** 2 * np.arange(6.0),
    "unique, with places": lambda x: np.unique(x, return_index=True)[0] ** 3 * np.arange(6.0),
    "unique columns": lambda x: np.unique(x, axis=1) ** 2 * np.arange(3.0),
    "unique_values": lambda x: np.sin(np.unique_values(x)),
    "union1d": lambda x: np.union1d(x, W) ** 2,
    "setdiff1d": lambda x: np.setdiff1d(x, W) ** 2,
    "setxor1d": lambda x: np.setxor1d(x, W) ** 2,
    "trim_zeros": lambda x: np.trim_zeros(x.ravel()) ** 2,
    "bincount": lambda x: np.bincount([0, 1, 0, 2, 1, 1], x.ravel()) ** 2,
}


@in_one_test
@pytest.mark.parametrize("name", DERIVATIVES)
def test_selected_elements_have_derivatives(name):
    """To second order, in both modes."""
    check_grads(DERIVATIVES[name], (np.array([[0.5, 1.25, -2.0], [3.0, 0.125, 2.25]]),), order=2)


def test_the_first_of_equal_values_gets_the_cotangent_of_unique():
    v = np.array([2.0, 1.0, 2.0])

    assert_same(np.array([10.0, 1.0, 0.0]), lt.grad(lambda x: (np.unique(x) * [1, 10]).sum())(v))


def test_results_of_different_lengths_cannot_be_batched():
    with pytest.raises(TraceError, match="use the mask itself, not a selection"):
        lt.vmap(lt.trace(lambda x: np.unique(x).sum(), X[0]))(X)
    with pytest.raises(TraceError, match="vmap records one example"):
        lt.vmap(lambda x: np.unique(x).sum())(X)


def test_letir_numpy_accepts_lists_of_traced_values():
    def program(s):
        return lnp.unique([s, 2.0, s]), lnp.flatnonzero([s, 0.0])

    assert_same(program(3.0), lt.trace(program, 3.0)(3.0))


WRONG = {
    "nonzero of a number": (np.nonzero, np.array(1.0), ValueError),
    "a condition of two axes": (lambda x: np.compress(x > 0, x), X, ShapeError),
    "numbers of two axes": (np.bincount, np.ones((2, 2), int), ShapeError),
    "numbers that are floats": (np.bincount, V, DTypeError),
    "an unknown end": (lambda v: np.trim_zeros(v, "x"), V, ValueError),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_call_that_numpy_refuses_is_refused(name):
    f, argument, error = WRONG[name]

    with pytest.raises((ValueError, TypeError)):
        f(argument)
    with pytest.raises(error):
        lt.trace(f, argument)


def test_a_length_is_checked_even_without_its_guard():
    f = lt.trace(lambda v: np.unique(v) * 2, V)
    bare = f.with_binds([bind for bind in f.binds if bind.op.name != "guard"])

    with pytest.raises(GuardError, match="where this length was 3, now it is 6"):
        bare(np.arange(6.0))

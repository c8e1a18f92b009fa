"""Assertions of numpy.testing, bytes of arrays, JSON and seeds in recorded functions: guards."""

import hashlib
import json
import pickle

import numpy as np
import pytest
from numpy.random import PCG64, SeedSequence
from numpy.testing import assert_array_less

import letir as lt
from letir.testing import assert_same

X = np.array([1.0, 2.0, 4.0])


def checked(assertion):
    """A function with this assertion, whose failure it notices."""

    def f(x):
        try:
            assertion(x)
        except AssertionError:
            return 2 * x
        return x + 1

    return f


ASSERTIONS = [
    lambda x: np.testing.assert_allclose(x, X),
    lambda x: np.testing.assert_allclose(x, 1.0, atol=5),
    lambda x: np.testing.assert_allclose(desired=X, actual=x, rtol=0.1),
    lambda x: np.testing.assert_array_equal(x, [1.0, 2.0, 4.0]),
    lambda x: np.testing.assert_array_equal(x, np.zeros(2)),
    lambda x: np.testing.assert_equal({"x": [x[0], x.shape]}, {"x": [1.0, (3,)]}),
    lambda x: np.testing.assert_equal(x[0], 1.0),
    lambda x: np.testing.assert_almost_equal(x.sum(), 7.0, 5),
    lambda x: np.testing.assert_array_almost_equal(x, X, decimal=3),
    lambda x: assert_array_less(0, x),
    lambda x: np.testing.assert_approx_equal(x[0], 1.0),
    lambda x: np.testing.assert_array_max_ulp(x, X),
]


@pytest.mark.parametrize("assertion", ASSERTIONS)
def test_the_outcome_of_an_assertion_is_guarded(assertion):
    f = checked(assertion)
    program, jitted = lt.trace(f, X), lt.jit(f)

    for x in (X, X + 1e-12, -X, X * np.nan, X + 1, X):
        assert_same(f(x), jitted(x))
        try:
            found = program(x)
        except lt.GuardError:
            continue
        assert_same(f(x), found)


def test_an_assertion_that_passes_at_other_values_needs_no_new_recording():
    def f(x):
        q, r = np.linalg.qr(x)
        np.testing.assert_allclose(q @ r, x, atol=1e-8)
        return r

    program = lt.trace(f, np.eye(2))

    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert_same(f(x), program(x))


def test_an_assertion_that_fails_raises_numpys_error():
    def f(x):
        np.testing.assert_allclose(x, 2 * x)
        return x

    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        lt.trace(f, X)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        lt.jit(f)(X)


def cached_by_bytes(x):
    cache = {}
    for v in (x, x.copy(), 2 * x):
        cache.setdefault(v.tobytes(), v.sum())
    return len(cache), sum(cache.values())


def digest(x):
    return hashlib.sha256(x.tobytes()).hexdigest(), x * 2


def report(x):
    values = {"mean": float(x.mean()), "values": x.tolist(), "n": len(x)}
    return json.dumps(values), values["mean"]


def spawned(x):
    seeds = np.random.SeedSequence(int(x[0])).spawn(2)
    return x * [np.random.Generator(np.random.PCG64(seed)).normal() for seed in (*seeds, 1)]


@pytest.mark.parametrize("f", [cached_by_bytes, digest, report, spawned])
def test_values_that_python_needs_are_guarded(f):
    program, jitted = lt.trace(f, X), lt.jit(f)

    for x in (X, X + 1, X):
        assert_same(f(x), jitted(x))
    assert_same(f(X), program(X))
    with pytest.raises(lt.GuardError):
        program(X + 1)


def test_seeds_of_any_kind_may_be_traced():
    def f(seed, x):
        bits = (np.random.MT19937(seed), np.random.Philox(seed), np.random.SFC64(seed=seed))
        draws = [np.random.Generator(each).normal() for each in bits]
        return sum(draws) * x + np.random.default_rng(np.random.SeedSequence([seed, 3])).random()

    jitted = lt.jit(f)

    for seed in (3, 4, 3):
        assert_same(f(seed, 2.0), jitted(seed, 2.0))


def test_classes_that_take_seeds_may_be_imported_by_name():
    def f(seed, x):
        from numpy.random import SFC64

        bits = [PCG64(seed), SFC64(seed), PCG64(SeedSequence(seed).spawn(2)[1])]
        assert type(bits[0]) is PCG64 and isinstance(bits[2], PCG64)
        assert type(pickle.loads(pickle.dumps([PCG64, bits[1]]))[1]) is SFC64
        return x * [np.random.Generator(each).normal() for each in bits]

    program, jitted = lt.trace(f, 3, X), lt.jit(f)

    assert_same(f(3, X + 1), program(3, X + 1))
    for seed in (3, 4, 3):
        assert_same(f(seed, X), jitted(seed, X))


def test_an_array_made_of_the_bytes_of_a_traced_value_is_refused():
    with pytest.raises(lt.TraceError, match="frombuffer of the bytes of a traced value"):
        lt.grad(lambda x: np.frombuffer(x.tobytes()).sum())(X)

"""Tangents that are given for arguments, in calls that record the function and in others."""

import numpy as np
import pytest

import letir as lt
from letir.transforms import repeated_programs as programs
from tests.each_sample import in_one_test

X, V = np.array([0.5, 1.5, 2.5]), np.array([1.0, -1.0, 2.0])
CALLS = 9


def weighted(x, w):
    return (x**3 * w).sum()


def square(y):
    return y * y


def jvp(f, primals, tangents):
    return lt.jvp(f, primals, tangents)[1]


def hvp_of_function(f, primals, tangents):
    return lt.hvp(f)(*primals, *tangents)


def ggnvp(f, primals, tangents):
    return lt.ggnvp(f, square, primals, tangents)


def lin(f, primals, tangents):
    return lt.linearize(f, *primals)[1](*tangents)


ALL = {"jvp": jvp, "hvp": lt.hvp, "hvp(f)": hvp_of_function, "ggnvp": ggnvp, "linearize": lin}


def outcome(derivative, f, primals, tangents):
    """The bits of the result, or the error."""
    try:
        result = derivative(f, primals, tangents)
    except Exception as error:
        return type(error), str(error)
    parts = result if isinstance(result, tuple) else (result,)
    return [None if part is None else (type(part), np.asarray(part).tobytes()) for part in parts]


GIVEN = {
    "arrays": ((X, 2.0), (V, 1.0)),
    "numbers of NumPy": ((X, 2.0), (V, np.float64(1.0))),
    "an integer": ((X, 2.0), (V, 1)),
    "a bool": ((X, 2.0), (V, True)),
    "none": ((X, 2.0), (V, None)),
    "none for the array": ((X, 2.0), (None, 1.0)),
    "all none": ((X, 2.0), (None, None)),
    "the primal": ((X, 2.0), (X, 1.0)),
    "an integer primal": ((X, np.int64(2)), (V, None)),
    "a zero for an integer": ((X, np.int64(2)), (V, 0)),
    "not a zero for an integer": ((X, np.int64(2)), (V, 1)),
    "another shape": ((X, 2.0), (V[:2], 1.0)),
    "another type": ((X, 2.0), (V.astype("float32"), 1.0)),
    "a complex number": ((X, 2.0), (V, 1j)),
    "a long integer": ((X, 2.0), (V, 10**400)),
    "a list": ((X, 2.0), ([1.0, 2.0, 3.0], 1.0)),
    "too few": ((X, 2.0), (V,)),
    "too many": ((X, 2.0), (V, 1.0, 1.0)),
    "a text": ((X, 2.0), (V, "1")),
}


def fresh_outcome(*given):
    """The outcome of a call when nothing is known of earlier ones."""
    for known in (programs._plans, programs._seen, programs._functions):
        known.clear()
    return outcome(*given)


@in_one_test
@pytest.mark.parametrize("name", ALL)
def test_each_call_treats_tangents_alike(name):
    first = {kind: fresh_outcome(ALL[name], weighted, *given) for kind, given in GIVEN.items()}
    for _ in range(CALLS):
        for kind, given in GIVEN.items():
            assert (kind, outcome(ALL[name], weighted, *given)) == (kind, first[kind])
    for known in GIVEN.values():  # a call of one kind is known, and the next is of another kind
        fresh_outcome(ALL[name], weighted, *known)
        for _ in range(CALLS):
            outcome(ALL[name], weighted, *known)
        for kind, given in GIVEN.items():
            assert (kind, outcome(ALL[name], weighted, *given)) == (kind, first[kind])


def test_primals_and_tangents_are_told_apart():
    """(x,) and (v,) are not the primals (x, v) without tangents."""

    def f(x, *others):
        return (x * x).sum()

    for _ in range(CALLS):
        lt.jvp(f, (X,), (V,))

    with pytest.raises(lt.ShapeError, match="the number of primals is 2, of tangents 0"):
        lt.jvp(f, (X, V), ())


def test_none_is_the_tangent_of_an_argument_without_a_derivative():
    def f(x, name, options, function):
        return function(x) * len(name) * options["by"]

    statics = "ab", {"by": 3, "more": "text"}, np.sin
    for _ in range(CALLS):
        tangent = lt.jvp(f, (X, *statics), (V, None, None, None))[1]
        np.testing.assert_allclose(np.cos(X) * V * 6, tangent, rtol=1e-15)
        _, lin = lt.linearize(f, X, *statics)
        np.testing.assert_allclose(np.cos(X) * V * 6, lin(V, None, None, None), rtol=1e-15)


def test_none_is_a_zero_tangent_of_linearize():
    _, lin = lt.linearize(lambda x, y: x * y, 2.0, 3.0)

    assert (lin(None, 1.0), lin(1.0, None), lin(None, None)) == (2.0, 3.0, 0.0)


def test_a_static_tangent_is_that_of_the_primal():
    def f(x, scale):
        return x * 2.0 if scale else x

    for _ in range(CALLS):
        lt.jvp(f, (X, True), (V, True))
    with pytest.raises(lt.DTypeError, match="static argument True"):
        lt.jvp(f, (X, True), (V, False))


def test_functions_among_the_tangents_are_those_of_the_primals():
    make = lambda: lambda x: x * 3.0  # noqa: E731
    for _ in range(CALLS):
        g = make()
        np.testing.assert_array_equal(3.0 * V, lt.jvp(lambda x, g: g(x), (X, g), (V, g))[1])
    f, g = lambda x, g: g(x), make()
    for _ in range(CALLS):
        lt.jvp(f, (X, g), (V, g))
        _, lin = lt.linearize(f, X, other := make())
        np.testing.assert_array_equal(3.0 * V, lin(V, other))
        for run in (lambda: lt.jvp(f, (X, g), (V, make())), lambda: lin(V, g)):  # noqa: B023
            with pytest.raises(lt.DTypeError, match="static argument"):
                run()


def test_tangents_may_share_memory_with_each_other_and_with_arguments():
    def f(x, y):
        x[0] = 5.0
        return (x * y).sum()

    x, y = X.copy(), V.copy()
    for tangents in [(V, X)] * CALLS + [(x, x), (y, x), (V, V), (x[:], y[::1])]:
        expected = tangents[0][1:] @ y[1:] + np.array([5.0, *x[1:]]) @ tangents[1]
        assert jvp(f, (x, y), tangents) == pytest.approx(expected)

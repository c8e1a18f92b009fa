"""Objects that NumPy converts to arrays: users' classes with ``__array__``, and ``np.poly1d``."""

import array
from collections import deque

import numpy as np
import pytest
from numpy.polynomial import Chebyshev, Polynomial

import letir as lt
from letir.testing import assert_same, check_grads
from tests.each_sample import in_one_test

C = np.array([1.0, -3.0, 2.0, 0.5])


class Vector:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __array__(self, dtype=None, copy=None):
        return np.array([self.x, self.y], dtype)


def converted(c):
    v = Vector(c[0], c[1] * c[2])
    return np.asarray(v), np.array(v) + c[:2], np.add(c[:2], v), np.linalg.norm(v), np.sum(v)


def products(c):
    p, q = np.poly1d(c[:3]), np.poly1d([1.0, c[3]])
    return (p * q - 2 * p + q**2).coeffs, p(0.5), q(c), (p * p).deriv()(c[0])


def polynomial_call(c):
    p, q = np.poly1d(c[:3]), np.poly1d([c[2], 3.0])
    quotient, rest = np.polydiv(p, q)
    parts = (np.polyadd(p, q), np.polymul(p, q), np.polyder(p), np.polyint(p, 2), quotient, rest)
    composed = np.polyval(p, q)
    assert isinstance(composed, np.poly1d)
    return [part.coeffs for part in parts], np.polyval(p, c), np.roots(p), composed(c)


def from_roots(c):
    p = np.poly1d([c[0], c[3]], True)
    assert p.order == 2
    return p.coeffs, p.roots.sum(), p[1]


def fitted(c):
    p = Polynomial.fit(np.arange(4.0), c, 2).convert()
    return p.coef, p(Polynomial([1.0, 2.0])).coef, Chebyshev(c).convert(kind=Polynomial).coef


OBJECTS = [converted, products, polynomial_call, from_roots, fitted]


@pytest.mark.parametrize("f", OBJECTS)
def test_objects_that_hold_traced_values_are_arrays(f):
    program, jitted = lt.trace(f, C), lt.jit(f)

    for x in (C, C * 1.25):
        np.testing.assert_allclose(_flat(program(x)), _flat(f(x)), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(_flat(jitted(x)), _flat(f(x)), rtol=1e-12, atol=1e-14)
    assert_same(f(C)[0], program(C)[0])


@pytest.mark.parametrize("f", OBJECTS)
def test_objects_that_hold_traced_values_have_derivatives(f):
    def loss(x):
        return sum((part**2).sum() for part in lt.tree.leaves(f(x)))

    steps = np.eye(4) * 1e-6
    numeric = [(np.sum(_flat(f(C + h)) ** 2) - np.sum(_flat(f(C - h)) ** 2)) / 2e-6 for h in steps]

    np.testing.assert_allclose(lt.grad(loss)(C), numeric, rtol=1e-5)


def _flat(tree):
    return np.concatenate([np.ravel(leaf) for leaf in lt.tree.leaves(tree)])


# ---- sequences, and objects with reflected operators ----


SEQUENCES = {
    "range": range(3),
    "deque": deque([1.0, 2.0, 3.0]),
    "array": array.array("f", [1.0, 2.0, 3.0]),
    "bytearray": bytearray(b"abc"),
}


@pytest.mark.parametrize("items", SEQUENCES.values(), ids=SEQUENCES)
def test_sequences_are_operands(items):
    def program(x):
        y = x + items
        y += items
        return (
            y,
            items - x,
            np.maximum(x, items),
            np.where(x > 0, items, x),
            x[0] * np.dot(x, items),
        )

    check(program, np.array([-1.0, 2.0, 0.5]))


AXES = np.arange(2)
WITH_AXES_IN_ARRAYS = [
    lambda x: np.fft.irfftn(np.fft.rfftn(x, axes=AXES), s=np.array([2, 3]), axes=AXES),
    lambda x: np.roll(x, np.array([1, 2]), axis=AXES),
    lambda x: np.moveaxis(x, AXES, AXES[::-1]),
    lambda x: np.gradient(x, axis=AXES),
]


@pytest.mark.parametrize("program", WITH_AXES_IN_ARRAYS)
def test_axes_may_be_given_as_an_array(program):
    check(program, np.array([[0.5, 2.0, 1.0], [-1.0, 0.25, 3.0]]))


def test_a_python_number_does_not_add_a_range():
    with pytest.raises(TypeError, match="unsupported operand"):
        lt.trace(lambda x: x + range(3), 1.0)


class Length:
    """A quantity whose operators take numbers on both sides."""

    def __init__(self, metres):
        self.metres = metres

    def __mul__(self, factor):
        return Length(self.metres * factor)

    def __rmul__(self, factor):
        assert type(factor) in (float, int)  # not NumPy's, which NumPy converts
        return self * factor

    def __rpow__(self, base):
        return base**self.metres

    def __gt__(self, other):
        return self.metres > other

    def __float__(self):
        return float(self.metres)

    def __complex__(self):
        return complex(self.metres, 1)


def test_numbers_leave_operators_to_other_objects():
    def program(x):
        twice = x[0] * Length(x)
        power = x[1] ** Length(2.0)
        return twice.metres, (x.sum() * twice).metres, (3 * twice).metres, power, x[1] < Length(5.0)

    check(program, np.array([0.5, 2.0]))
    check(program, np.array([0.5, 2.0], "float32"))


class Pair(Length):
    """A quantity with parts, which for NumPy are not elements: it has no length."""

    def __getitem__(self, place):
        return (self.metres, 2 * self.metres)[place]


def test_numbers_leave_operators_to_objects_with_parts_but_no_length():
    check(
        lambda x: ((x[0] * Pair(x)).metres[1], (x.sum() * Pair(x[0])).metres), np.array([0.5, 2.0])
    )


def test_jit_runs_arrays_of_objects_as_python():
    def program(x):
        lengths = x * Length(2.0)
        return [length.metres for length in lengths]

    fast, x = lt.jit(program), np.array([0.5, 2.0])

    with pytest.warns(RuntimeWarning, match="Length is not an array of numbers"):
        assert fast(x) == program(x)
    assert fast(2 * x) == program(2 * x)


def test_an_object_converts_itself_to_a_traced_number():
    check(lambda x: (float(Length(x[0])) * x, complex(Length(x[1])) * x), np.array([0.5, 2.0]))


def test_the_method_that_numpy_asks_for_an_array_may_be_called():
    def program(x):
        return x.__array__() * 2, np.asarray(x).__array__(float), x.__array__().dot(x)

    check(program, np.array([0.5, 2.0]))


def test_other_libraries_are_refused_the_memory_of_a_traced_array():
    """letir itself asks for an array where C code asks for memory."""
    with pytest.raises(lt.errors.TraceError, match="cannot become an ordinary array"):
        lt.trace(np.from_dlpack, np.ones(2))


def test_arrays_do_not_combine_with_objects():
    with pytest.raises(lt.errors.DTypeError, match="is not an array of numbers"):
        lt.trace(lambda x: x * Length(2.0), np.ones(2))


def check(program, x):
    assert_same(program(x), lt.trace(program, x)(x))
    assert_same(program(2 * x), lt.jit(program)(2 * x))
    assert_same(program(x), lt.trace(program, 2 * x)(x))


class Point:
    """An object that converts itself to an array."""

    def __init__(self, *parts):
        self.parts = parts

    def __array__(self, dtype=None, copy=None):
        return np.array(self.parts, dtype=dtype)


class Row(Point):
    """An object that is a sequence as well."""

    def __len__(self):
        return len(self.parts)

    def __getitem__(self, i):
        return self.parts[i]


def assigned(a):
    result = np.zeros((2, 2))
    result[0] = a
    return result


@in_one_test
@pytest.mark.parametrize("kind", [Point, Row])
@pytest.mark.parametrize(
    "f",
    [
        lambda a, b: np.array([a, b]) @ np.array([1.0, 2.0]),
        lambda a, b: np.ones(2) * a,
        lambda a, b: np.ones((2, 2)) @ b,
        lambda a, b: (np.stack([a, b]), np.vstack([a, [1.0, 2.0]])),
        lambda a, b: (np.mean([a, b], axis=0), np.concatenate([a, b]), np.dot(a, b)),
        lambda a, b: assigned(a),
    ],
)
def test_objects_in_lists_and_beside_known_arrays_convert_themselves(f, kind):
    def program(x):
        return f(kind(x[0], x[1]), kind(x[1], 3.0))

    check(program, np.array([0.5, 2.0]))
    check_grads(program, (np.array([0.5, 2.0]),), order=1)

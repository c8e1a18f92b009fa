"""``math``'s functions, ``float``, ``complex`` and ``type`` of traced values [B2]."""

import cmath
import enum
import functools
import math
import operator
import pickle
import statistics
import sys
import types
from math import exp, tau

import numpy as np
import pytest
import scipy.special

import letir as lt
from letir.errors import GuardError
from letir.testing import assert_close, assert_same, check_grads
from tests.each_sample import in_one_test

X = np.array([1.0, 2.0, 3.0])

SMOOTH = {
    "trigonometry": lambda s: math.sin(s) + math.cos(s) * math.tan(s),
    "inverse functions": lambda s: math.asin(s / 9) + math.acos(s / 9) + math.atan2(s, 2.0),
    "hyperbolic functions": lambda s: math.sinh(s) + math.acosh(s + 2) + math.atanh(s / 9),
    "exponentials": lambda s: exp(-s) + math.expm1(s) + math.exp2(s) if s else 0.0,
    "logarithms": lambda s: math.log(s) + math.log(s, 3) + math.log2(s) + math.log1p(s),
    "roots and powers": lambda s: math.sqrt(s) + math.cbrt(s) + math.pow(s, 2.5),
    "distances": lambda s: math.hypot(s, 1.0, 2 * s) + math.dist([s, 1.0], (0.0, s)),
    "sums": lambda s: math.fsum([s, 1.0, s]) * math.prod([s, 2.0]) + math.fsum(s * i for i in [1]),
    "special functions": lambda s: math.erf(s) + math.erfc(s) + math.gamma(s) + math.lgamma(s),
    "remainder": lambda s: math.remainder(s, 1.5) + math.remainder(s, -0.75),
    "angles": lambda s: math.degrees(s) + math.radians(s) + s % tau,
    "float": lambda s: float(s) * float("2.5") + float(1),
    "cmath": lambda s: abs(cmath.exp(1j * s)) + cmath.phase(s + 1j) + complex(s).real,
    "other parts": lambda s: math.copysign(s, -1.0) + math.fabs(-s) + math.modf(s)[0],
}


@in_one_test
@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_functions_of_math_are_recorded_and_differentiated(name):
    f = SMOOTH[name]

    for new in (2.5, 3.25):
        replayed = lt.trace(f, 2.5)(new)
        assert type(replayed) is type(f(new))
        np.testing.assert_allclose(replayed, f(new), rtol=1e-14)
    expected = (f(2.5 + 1e-6) - f(2.5 - 1e-6)) / 2e-6
    np.testing.assert_allclose(lt.grad(f)(2.5), expected, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(lt.jit(f)(3.25), f(3.25), rtol=1e-14)


EDGES = {
    "modf": math.modf,
    "ulp": math.ulp,
    "ldexp": lambda s: (math.ldexp(s, -1100), math.ldexp(s, 3)),
    "log": lambda s: math.log(2.0, s),
    "log to the base 1": lambda s: math.log(s, 1.0),
    "isclose": lambda s: [math.isclose(s, y) for y in (0.0, 1.0, 2.5, math.inf, -math.inf)],
    "isclose with tolerances": lambda s: math.isclose(s, 1.0, rel_tol=0.0, abs_tol=1.5),
}


def _outcome(f, x):
    """The text of a result, or the class of an exception."""
    try:
        return repr(f(x))
    except (ArithmeticError, ValueError) as error:
        return next(c.__name__ for c in type(error).mro() if c.__module__ == "builtins")


@in_one_test
@pytest.mark.parametrize("name", EDGES)
def test_functions_of_math_at_the_ends_of_the_numbers(name):
    """Python gives no warnings for these numbers, and neither do programs."""
    f = EDGES[name]

    def replayed(x):
        return lt.trace(f, x)(x)

    for x in (-0.0, 1.0, -2.5, 5e-324, 1e308, math.inf, -math.inf, math.nan):
        expected = _outcome(f, x)
        assert _outcome(replayed, x) == expected
        assert _outcome(lt.jit(f), x) == expected


_OF_ONE = """acos acosh asin asinh atan atanh cos cosh exp log log10 sin sinh sqrt tan tanh
phase polar isnan isinf isfinite"""
COMPLEX = {
    **{name: lambda z, name=name: getattr(cmath, name)(z) for name in _OF_ONE.split()},
    "log to a base": lambda z: cmath.log(z, 2) + cmath.log(2, z),
    "rect": lambda z: cmath.rect(z.real, z.imag),
    "isclose": lambda z: cmath.isclose(z, 1 + 1j) or cmath.isclose(z, complex(math.inf, 1.0)),
}


@in_one_test
@pytest.mark.parametrize("name", COMPLEX)
def test_functions_of_cmath_at_the_ends_of_the_numbers(name):
    """Values, errors, and the absence of warnings are those of Python, not of NumPy."""
    f, jitted = COMPLEX[name], lt.jit(COMPLEX[name])
    parts = (0.0, -0.0, 1.5, -1e308, math.inf, -math.inf, math.nan)

    for z in (1 + 1j, *[complex(re, im) for re in parts for im in parts]):
        expected = _outcome(f, z)
        assert _outcome(lambda z: lt.trace(f, z)(z), z) == expected
        assert _outcome(jitted, z) == expected


@in_one_test
@pytest.mark.parametrize("name", sorted(COMPLEX.keys() - {"isnan", "isinf", "isfinite", "isclose"}))
def test_derivatives_of_functions_of_cmath(name):
    f, z = COMPLEX[name], 0.6 + 0.3j

    check_grads(f, (z,))
    assert_close(lt.vmap(f)(np.full(2, z)), _twice(f(z)))


def _twice(result):
    """Two equal examples of a number, or of each number of a tuple."""
    return tuple(map(_twice, result)) if type(result) is tuple else np.full(2, result)


def test_ldexp_needs_an_integer():
    for call in (lt.jit(math.ldexp), functools.partial(lt.trace, math.ldexp)):
        with pytest.raises(TypeError, match="Expected an int as second argument"):
            call(1.0, 2.0)
    assert lt.grad(math.ldexp)(1.5, 3) == 8.0


def test_negative_tolerances_raise_the_error_of_python():
    with pytest.raises(ValueError, match="tolerances must be non-negative"):
        lt.trace(lambda s: math.isclose(s, 1.0, rel_tol=-1.0), 1.0)


ROUNDED_ONCE = {
    "fsum": math.fsum,
    "hypot": lambda x: math.hypot(*x),
    "dist": lambda x: math.dist(x, x[::-1]),
    "mean": statistics.mean,
    "fmean": statistics.fmean,
    "mean of a comparison": lambda x: statistics.mean([float(x[2]) ** 2 > 0.0, 1.0, float(x[1])]),
    "fmean of numbers": lambda x: statistics.fmean(x.tolist()),
    "fmean with weights": lambda x: statistics.fmean(x, [2, 1, 2]),
}
FAR_APART = [np.array([1e16, 1.0, -1e16]), np.array([1e200, 3e200, 2.0]), np.float32([0.1, 3, 7])]


@pytest.mark.parametrize("name", ROUNDED_ONCE)
def test_sums_are_rounded_once(name):
    f = ROUNDED_ONCE[name]

    for x in FAR_APART:
        y = x[[1, 0, 2]]
        assert_same(f(y), lt.trace(f, x)(y))
        assert_same(f(y), lt.jit(f)(y))


def test_derivatives_of_functions_of_many_numbers():
    def f(x):
        return math.fsum(x * x) * math.hypot(*x) + math.dist(x, [0.5, 0.5, 2.0])

    x, step = np.array([0.5, -1.5, 2.0]), 1e-6 * np.eye(3)

    slopes = [(f(x + h) - f(x - h)) / 2e-6 for h in step]
    np.testing.assert_allclose(lt.grad(f)(x), slopes, rtol=1e-8)
    np.testing.assert_allclose([lt.jvp(f, (x,), (e,))[1] for e in np.eye(3)], slopes, rtol=1e-8)
    differences = [(lt.grad(f)(x + h) - lt.grad(f)(x - h)) / 2e-6 for h in step]
    np.testing.assert_allclose(lt.hessian(f)(x), differences, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(lt.vmap(f)(np.stack([x, 2 * x])), [f(x), f(2 * x)], rtol=1e-14)
    np.testing.assert_array_equal(lt.grad(lambda x: math.hypot(*x))(0 * x), 0 * x)


DECISIONS = {
    "floor": lambda s: X[: math.floor(s)].sum() * s,
    "ceil": lambda s: math.ceil(s) * s,
    "trunc": lambda s: math.trunc(s) * s,
    "isnan": lambda s: s if math.isfinite(s) and not math.isnan(s) else 0.0,
}


@pytest.mark.parametrize("name", DECISIONS)
def test_functions_of_math_with_a_discrete_result_are_guarded(name):
    f = DECISIONS[name]
    program = lt.trace(f, 1.5)

    assert_same(f(1.75), program(1.75))
    with pytest.raises(GuardError):
        program(math.nan if name == "isnan" else 2.5)


def test_elements_and_integers_are_computed_in_double_precision():
    f = lt.trace(lambda x, n: (math.sin(x[0]), float(n)), X.astype(np.float32), 3)

    assert_same((math.sin(np.float32(2.0)), 5.0), f(np.float32([2, 0, 0]), 5))


def test_errors_of_python_stay():
    for f in (math.sqrt, math.log, math.acosh):
        with pytest.raises(ValueError, match=r"math domain|positive|expected"):
            lt.trace(lambda s, f=f: f(s), -1.0)
    with pytest.raises(OverflowError):
        lt.trace(lambda s: 2 * math.exp(s), 1000.0)
    with pytest.raises(TypeError, match="0-dimensional"):
        lt.trace(lambda x: 2 * float(x), X)


@pytest.mark.parametrize("x", [np.float64(-1.5), np.float32(1.5), np.int64(3), np.array(1.5), 1.5])
def test_numbers_without_trunc_are_pythons_error(x):
    def f(x):
        try:
            return math.trunc(x)
        except TypeError as error:
            return str(error)

    assert_same(f(x), lt.trace(f, x)(x))
    assert_same(f(x), lt.jit(f)(x))


def kinds(s, x, n):
    found = {float: 1, int: 2}
    return (
        type(s) is float,
        type(s) == float,  # noqa: E721
        isinstance(s, float),
        isinstance(float(s), int | float),
        type(x) is np.ndarray,
        type(x[0]) is np.float64,
        type(n) is int,
        float is float,
        type(math.sin(s)) is float,
        found[type(s)] + found[float],
        np.zeros(2, float).dtype == float,
        x.astype(float).dtype == np.dtype(float),
        issubclass(bool, int) and issubclass(np.float64, float),
        float.__name__ + repr(float) + str(pickle.loads(pickle.dumps(float))),
        isinstance(Number(1.0), float) and type(Number(1.0)).__name__,
        s * 2,
    )


class Number(float):
    """A class that a user derives."""


def test_kinds_are_those_that_the_user_sees():
    plain, found = kinds(2.5, X, 3), []
    lt.trace(lambda s, x, n: found.append(kinds(s, x, n)) or s, 2.5, X, 3)

    assert plain[:-1] == found[0][:-1]


def test_classes_that_are_made_while_recording_stay():
    kept = []

    def program(s):
        class Unit(float):
            pass

        kept.append(Unit)
        return s * Unit(2.0)

    lt.trace(program, 1.5)

    assert 3.0 == kept[0](1.5) * 2
    assert isinstance(kept[0](1.5), float)


IN_A_DICT = {"a": (lambda s: float(s) * 2 if type(s) is float else 0.0, 1), "b": [lambda s: s]}


def test_functions_in_containers_and_modules_without_numpy_convert_too():
    space = {"__name__": "plain_module"}
    exec("def half(s):\n    return float(s) / 2 if type(s) is float else -1.0", space)

    for f in (IN_A_DICT["a"][0], space["half"]):
        assert_same(f(3.0), lt.trace(f, 1.5)(3.0))


def by_name(name, x):
    return getattr(math, name)(x)


def test_a_function_is_read_by_getattr():
    for name in ("sin", "exp", "sqrt"):
        assert_same(getattr(math, name)(2.5), lt.trace(lambda x: by_name(name, x), 1.5)(2.5))  # noqa: B023


def test_a_product_of_numpys_numbers_is_one_of_numpys():
    for f in (math.prod, lambda x: math.prod(x.tolist()), lambda x: math.prod([2, 3]) * x[0]):
        assert_same(f(X), lt.trace(f, X)(X))


def test_classes_that_a_user_derives_are_ordinary_classes():
    def f(x):
        class Unit(float):
            pass

        class Meta(type):
            pass

        unit, made = Unit(2.0), Meta("Made", (), {})
        pairs = operator.eq(Unit, float), operator.eq(Meta, type), {Unit: True}.get(float)
        kinds = isinstance(1.0, Unit), isinstance(unit, float), issubclass(float, Unit)
        metas = isinstance(int, Meta), type(made) is Meta, isinstance(made, Meta)
        return x * unit, [p is True for p in (*pairs, *kinds, *metas)]

    assert_same(f(1.5), lt.trace(f, 2.5)(1.5))


class Axis(enum.IntEnum):
    ROWS = 0
    COLUMNS = 1


class Metres(float):
    pass


def test_numbers_of_derived_classes_are_operands():
    def f(x, s):
        return x[0] * Axis.COLUMNS + x.sum(axis=Axis.ROWS), Metres(2.0) * s + s / Axis.COLUMNS

    x = np.ones((2, 3))
    assert_same(f(2 * x, 3.0), lt.trace(f, x, 1.5)(2 * x, 3.0))


def test_code_without_a_module_converts_traced_numbers():
    space = {}
    exec("def first(x):\n    return [float(v) for v in x][0]", space)

    assert "__name__" not in space
    assert_same(2.0, lt.trace(space["first"], X)(2 * X))
    assert_same(np.array([2.0, 0.0, 0.0]), lt.grad(lambda x: space["first"](x) * 2)(X))


PROGRAMS = {}  # functions that exec has made, which only this module's globals refer to


def test_programs_of_one_name_without_a_module_convert_traced_numbers(monkeypatch):
    text = "class Part:\n    def of(self, x):\n        return float(x[0]) * complex(x[1], 1).real"
    for name in ("first", "second"):
        space = {"__name__": "program_of_no_module"}
        exec(text, space)
        PROGRAMS[name] = space["Part"]()
        # letir searches the modules again
        monkeypatch.setitem(sys.modules, f"loaded_before_{name}", types.ModuleType(name))

        def f(x, name=name):
            return PROGRAMS[name].of(x)

        assert_same(1.0, lt.trace(f, X)(np.ones(3)))
        assert_same(np.array([1.0, 1.0, 0.0]), lt.grad(f)(np.ones(3)))


JITTED = {"a number": lt.jit(math.sin), "an array": lt.jit(scipy.special.logsumexp)}


@pytest.mark.parametrize("name", JITTED)
def test_jitted_functions_of_libraries_record_inside_of_a_recording(name):
    fast = [JITTED[name]]
    x = {"a number": 0.5, "an array": np.array([0.5, 1.5])}[name]

    def f(x):
        return 2.0 * fast[0](x)

    assert_close(f(x), lt.trace(f, x)(x))
    check_grads(f, (x,))


def test_functions_of_libraries_are_mapped():
    x = np.array([[0.5, 1.5], [-0.5, 2.0]])

    assert_close(scipy.special.logsumexp(x, axis=1), lt.map(scipy.special.logsumexp, x))
    assert_close(np.sin(x[0]), lt.map(math.sin, x[0]))

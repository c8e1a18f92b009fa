"""Arguments that are not arrays but part of the program: functions, classes, slices ... [B1]."""

import decimal
import enum
import fractions
import math

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from tests.each_sample import in_one_test

X = np.array([0.5, 1.5, 2.5])


class Side(enum.Enum):
    LEFT = 1
    RIGHT = 2


def iterate(f, x):
    for _ in range(3):
        x = x - f(x) / 2
    return x


def square(x):
    return x * x


def take(x, what):
    return x[what] * 2


def as_type(x, kind):
    return (x * 3).astype(kind)


def one_sided(x, side):
    return x - 1 if side is Side.LEFT else x + 1


def scaled(x, number):
    return x * float(number)


def filled(make, x):
    out = make(3)
    out[1] = x.sum()
    return out


def each(f, x):
    return [f(v) for v in x]


def with_options(options, x):
    return options["combine"]([options["map"](x), x])


CALLS = {
    "a ufunc": (iterate, (np.tanh, X)),
    "a function": (iterate, (square, X)),
    "a lambda": (iterate, (lambda x: np.cos(x) - x, X)),
    "a method": (iterate, (np.poly1d([1.0, 2.0]).__call__, X)),
    "a slice": (take, (X, slice(1, None))),
    "nested slices": (take, (np.eye(3), (slice(0, 2), Ellipsis))),
    "a range": (take, (X, range(2))),
    "a class of NumPy": (as_type, (X, np.float32)),
    "a class of Python": (as_type, (X, int)),
    "a dtype": (as_type, (X, np.dtype("f4"))),
    "a member of an enumeration": (one_sided, (X, Side.RIGHT)),
    "a fraction": (scaled, (X, fractions.Fraction(1, 3))),
    "a decimal number": (scaled, (X, decimal.Decimal("0.1"))),
    "a function that makes arrays": (filled, (np.zeros, X)),
    "a function of math": (each, (math.sin, X)),
    "functions in a dict": (with_options, ({"combine": np.stack, "map": np.exp}, X)),
}


@in_one_test
@pytest.mark.parametrize(("f", "args"), CALLS.values(), ids=CALLS)
@pytest.mark.filterwarnings("ignore:jit calls")
def test_values_that_are_no_arrays_are_part_of_the_program(f, args):
    others = [np.copy(arg) * 2 if isinstance(arg, np.ndarray) else arg for arg in args]
    program, fast = lt.trace(f, *args), lt.jit(f)

    for given in (args, others, args):
        assert_same(f(*given), program(*given))
        assert_same(f(*given), fast(*given))


def test_a_program_refuses_another_function():
    program = lt.trace(iterate, np.sin, X)

    with pytest.raises(lt.DTypeError, match=r"the static argument ufunc <ufunc 'sin'> is part of"):
        program(np.cos, X)


def test_a_program_keeps_its_functions_so_that_no_other_gets_their_address():
    program = lt.trace(iterate, lambda x: x, X)

    for factor in range(20):
        with pytest.raises(lt.DTypeError, match="is part of the program"):
            program(lambda x, factor=factor: x * factor, X)


def test_derivatives_of_functions_with_function_arguments():
    plain = lt.grad(lambda x: iterate(np.sin, x))(1.0)

    assert_same(plain, lt.grad(iterate, argnums=1)(np.sin, 1.0))
    assert_same(plain, lt.grad(lt.jit(iterate), argnums=1)(np.sin, 1.0))
    assert_same(plain, lt.jit(lt.grad(iterate, argnums=1))(np.sin, 1.0))
    assert_same(iterate(np.sin, X), lt.vmap(iterate)(np.sin, X))
    assert_same(plain, lt.vjp(iterate, np.sin, 1.0)[1](1.0)[1])


def test_imported_functions_record_in_functions_that_are_arguments():
    from math import exp

    program = lt.trace(each, lambda v: exp(v) * 2, X)

    assert_same(each(lambda v: math.exp(v) * 2, 2 * X), lt.jit(each)(lambda v: exp(v) * 2, 2 * X))
    assert [bind.op.name for bind in program.binds].count("math_function") == 3


def test_functions_that_draw_are_not_frozen():
    def noisy(draw, x):
        return x + draw(size=3)

    rng, again = np.random.default_rng(0), np.random.default_rng(0)
    with pytest.raises(lt.DTypeError, match="is not an array of numbers"):
        lt.trace(noisy, rng.normal, X)
    fast = lt.jit(noisy)
    with pytest.warns(RuntimeWarning, match="as Python"):
        assert_same(X + again.normal(size=3), fast(rng.normal, X))
    assert_same(X + again.normal(size=3), fast(rng.normal, X))


def test_a_function_with_a_name_is_shown_by_it_and_known_to_a_loaded_program(tmp_path):
    program = lt.trace(iterate, square, X)
    assert f"static('function {__name__}.square')" in str(program)

    lt.save(program, tmp_path / "program.letir")
    loaded = lt.load(tmp_path / "program.letir")
    assert_same(iterate(square, X), loaded(square, X))
    with pytest.raises(lt.DTypeError, match="static argument"):
        loaded(np.sin, X)


def test_another_function_of_the_same_name_is_another_argument(monkeypatch):
    program = lt.trace(iterate, square, X)

    def other(x):
        return x + x

    other.__qualname__ = "square"
    monkeypatch.setitem(globals(), "square", other)
    with pytest.raises(lt.DTypeError, match="trace again with the new value"):
        program(other, X)


@pytest.mark.parametrize("argument", [np.sin, square, "mean", True, int])
def test_a_gradient_with_respect_to_a_static_argument_is_refused(argument):
    def f(what, x):
        return (x * x).sum()

    for transform in (lt.grad, lt.value_and_grad, lt.jacobian):
        with pytest.raises(lt.DTypeError, match=r"argument 0 is .*, which has no derivative"):
            transform(f)(argument, X)
    assert_same(2 * X, lt.grad(f, argnums=1)(argument, X))

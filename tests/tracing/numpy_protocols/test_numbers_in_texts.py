"""Numbers that a recorded function reads from texts of traced values [B2]."""

import ast
import csv
import io
import json
import re
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from tests.each_sample import in_one_test

X = np.array([1.5, 2.5, 1.5])
LONG = np.array([1 / 3, 2 / 7])


@in_one_test
@pytest.mark.parametrize(
    "f",
    [
        lambda x: float(str(x[0])) ** 2,
        lambda x: float(repr(float(x[0]))) ** 2,
        lambda x: float(f"{x[0]}") ** 2,
        lambda x: float(f"{x[0]:.17g}") ** 2,
        lambda x: np.float64(str(x[0])) ** 2,
        lambda x: float.fromhex(float(x[0]).hex()) ** 2,
    ],
)
def test_a_number_read_from_its_string_has_its_derivative(f):
    assert_same(np.array([3.0, 0, 0]), lt.grad(f)(X))
    assert_same(f(X), lt.trace(f, X)(X))
    with pytest.raises(lt.GuardError):
        lt.trace(f, X)(X + 1)


def test_a_rounded_string_and_equal_strings_from_elsewhere_are_constants():
    def f(x):
        text = str(x[1])
        return float(f"{x[0]:.0f}") * x[2] + float("".join(["2", ".5"])) * (len(text) + x[2])

    assert_same(np.array([0, 0, 4.5]), lt.grad(f)(X))


@in_one_test
@pytest.mark.parametrize(
    "f",
    [
        lambda x: float(str(x[0]).encode()) ** 2,
        lambda x: float(bytearray(str(x[0]), "ascii")) ** 2,
        lambda x: float(",".join(str(v) for v in x).split(",")[0]) ** 2,
        lambda x: float(re.findall(r"\d\.\d+", f"a={x[0]!r}")[0]) ** 2,
    ],
)
def test_a_text_of_many_digits_is_a_numbers_wherever_it_stands(f):
    assert_same(2 * LONG * [1, 0], lt.grad(f)(LONG))
    assert_same(f(LONG), lt.jit(f)(LONG))


@in_one_test
@pytest.mark.parametrize(
    "f",
    [
        lambda x: float("-" + str(x[0])),
        lambda x: float(f"{x[0]};{x[1]}".split(";")[1]),  # the text of two numbers
        lambda x: float(Decimal(str(x[0])) * 2),
        lambda x: float(Fraction(str(x[0])) * 2),
        lambda x: float(Fraction(float(x[0])) * 2),
        lambda x: np.array([str(x[0]), "1"]).astype(float).sum(),
        lambda x: np.array([[str(x[0]).encode(), b"1"]], dtype=float).sum(),
    ],
)
def test_parts_of_texts_fractions_and_arrays_of_texts_are_not_read(f):
    x = np.array([1 / 3, 1 / 3])
    for record in (lt.grad(f), lambda x: lt.trace(f, x)):
        with pytest.raises(lt.TraceError, match=r"lose its derivative\n.*test_numbers_in_texts"):
            record(x)
    with pytest.warns(RuntimeWarning, match="as Python"):
        assert_same(f(x), lt.jit(f)(x))


def test_decimal_numbers_and_fractions_of_other_values_are_exact():
    def f(x, n):
        price = Decimal("1.10") * Decimal(n) + Decimal.from_float(0.5)
        part = Fraction(n, 3) + Fraction("1/4")
        assert isinstance(price, Decimal) and type(part) is Fraction
        return x * float(price) * float(part), str(price)

    assert_same(f(2.0, 3), lt.trace(f, 2.0, 3)(2.0, 3))
    assert_same(f(2.0, 3), lt.jit(f)(2.0, 3))
    assert f(1.0, 3)[0] == lt.grad(lambda x: f(x, 3)[0])(2.0)


def assert_not_read(f, lost):
    """Check that ``trace`` and ``grad`` refuse what ``f`` reads, and that ``jit`` runs Python."""
    for record in (lt.grad(f), lambda x: lt.trace(f, x)):
        with pytest.raises(lt.TraceError, match=rf"{lost}\n.*test_numbers_in_texts"):
            record(X)
    with pytest.warns(RuntimeWarning, match="as Python"):
        assert_same(f(X), lt.jit(f)(X))


@in_one_test
@pytest.mark.parametrize(
    "f",
    [
        lambda x: sum(json.loads(json.dumps(x.tolist()))),
        lambda x: json.loads(json.dumps({"a": [float(x[0])]}))["a"][0],
        lambda x: json.loads(json.JSONEncoder().encode([x[0]]))[0],
        lambda x: np.array(json.loads(json.dumps(x, default=lambda a: a.tolist()))).sum(),
    ],
)
def test_json_of_traced_floats_is_not_read_back(f):
    assert_not_read(f, "lose their derivatives")


@in_one_test
@pytest.mark.parametrize(
    "f",
    [
        lambda x: eval(str(x[0])) * 2,
        lambda x: eval(f"{x[0]} * x[1]"),
        lambda x: ast.literal_eval(str(x.tolist()))[1] * 2,
        lambda x: float(next(csv.reader([f"{x[0]},{x[1]}"]))[1]),
        lambda x: np.fromstring(f"{x[0]} {x[1]}", sep=" ").sum(),
        lambda x: np.loadtxt(io.StringIO(" ".join(map(str, x)))).sum(),
        lambda x: np.genfromtxt([f"{x[0]} 2"]).sum(),
    ],
)
def test_numbers_are_not_read_from_longer_texts_of_traced_floats(f):
    assert_not_read(f, "lose its derivative")


def test_an_encoder_of_json_writes_traced_values():
    def f(x):
        text = json.JSONEncoder(indent=1).encode({"a": x.tolist(), "b": [float(x[0]), 2]})
        return x * 2, text, json.JSONEncoder().encode([1.5])

    program = lt.trace(f, X)
    assert f(X)[1:] == program(X)[1:] == lt.jit(f)(X)[1:]
    with pytest.raises(lt.GuardError):
        program(X + 1)


def test_other_texts_are_read():
    def f(x, n):
        known = 3.5  # noqa: F841  read by eval
        text = f"{x[0]:.1f}{n}"  # 1.52, not the number 1.5
        parts = eval("known * 2"), eval("a + 1", {"a": 4}), ast.literal_eval("[21.5, 1.55]")
        table = np.loadtxt(io.StringIO("1.25 3.75")).sum(), next(csv.reader(["7.5,8"]))[0]
        return x * (sum(parts[:2]) + sum(parts[2]) + table[0] + float(table[1])), eval(text + "1")

    assert_same(f(X, 2), lt.trace(f, X, 2)(X, 2))
    assert_same(f(X, 2), lt.jit(f)(X, 2))


def test_json_of_other_values_is_read():
    def f(x, n):
        settings = json.loads(json.dumps({"n": n, "rate": 0.5, "many": n > 2}))
        assert settings["many"] is True
        return x * settings["n"] * settings["rate"] * len(ast.literal_eval("[1, 2]"))

    assert_same(X * 3, lt.trace(f, X, 3)(X, 3))


def test_warnings_of_casts_of_outside_arrays_name_the_users_line():
    floats, numbers = np.array([1.0, np.nan]), np.array([1 + 2j])

    def f(x):
        a = floats.astype(int)
        return x * a[0] + numbers.astype(float)[0]

    first = f.__code__.co_firstlineno
    for call in (f, lambda x: lt.trace(f, x), lt.jit(f), lt.grad(f)):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            call(2.0)

        assert [(__file__, first + 1), (__file__, first + 2)] == [
            (each.filename, each.lineno) for each in told
        ]

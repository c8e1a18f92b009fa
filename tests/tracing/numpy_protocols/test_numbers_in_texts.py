"""Numbers that a recorded function reads from texts of traced values [B2]."""

import ast
import json
import warnings

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from tests.each_sample import in_one_test

X = np.array([1.5, 2.5, 1.5])


@in_one_test
@pytest.mark.parametrize(
    "f",
    [
        lambda x: float(str(x[0])) ** 2,
        lambda x: float(repr(float(x[0]))) ** 2,
        lambda x: float(f"{x[0]}") ** 2,
        lambda x: float(f"{x[0]:.17g}") ** 2,
        lambda x: np.float64(str(x[0])) ** 2,
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
        lambda x: sum(json.loads(json.dumps(x.tolist()))),
        lambda x: json.loads(json.dumps({"a": [float(x[0])]}))["a"][0],
        lambda x: np.array(json.loads(json.dumps(x, default=lambda a: a.tolist()))).sum(),
    ],
)
def test_json_of_traced_floats_is_not_read_back(f):
    for record in (lt.grad(f), lambda x: lt.trace(f, x)):
        with pytest.raises(lt.TraceError, match=r"lose their derivatives\n.*test_numbers_in_texts"):
            record(X)
    with pytest.warns(RuntimeWarning, match="as Python"):
        assert_same(f(X), lt.jit(f)(X))


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

"""Errors for uses of a traced value that cannot be recorded.

Word by word, because users meet these errors every day [B2]; NN stands for the line at fault.
"""

import cmath
import json
import math
import operator
import pickle
import statistics

import numpy as np
import pytest

import letir as lt
from letir.errors import TraceError

S = np.float64(2.0)
X = np.array([1.0, 2.0, 3.0])
M = np.arange(6.0).reshape(2, 3)


def each(programs: dict):
    """Parametrize a test over programs, with their names as ids."""
    rows = [row if type(row) is tuple else (row,) for row in programs.values()]
    names = ("program", "argument", "found")[: len(rows[0])]
    return pytest.mark.parametrize(names, rows, ids=list(programs))


# ---- conversion to a Python number ----

FLOATS = {
    "math": (lambda x: 2 * math.sin(x), 2.0, "float() of a traced value of type float64*[]"),
    "math of an element": (
        lambda x: math.exp(x[0]),
        X,
        "float() of a traced value of type float64[]",
    ),
    "math of an array": (
        lambda x: 2 * math.sin(x),
        X,
        "float() of a traced value of type float64[3]",
    ),
    "float": (lambda x: 2 * float(x), S, "float() of a traced value of type float64[]"),
    "percent": (
        lambda x: operator.mod("%.3f", x),
        S,
        "float() of a traced value of type float64[]",
    ),
    "statistics": (
        lambda x: x * statistics.fmean(x),
        X,
        "float() of a traced value of type float64[]",
    ),
    "complex": (lambda x: 2 * complex(x), S, "complex() of a traced value of type float64[]"),
    "cmath": (lambda x: 2 * cmath.exp(x), 1j, "complex() of a traced value of type complex128*[]"),
}


@each(FLOATS)
def test_converting_a_traced_value_to_float_or_complex_is_refused(told, program, argument, found):
    message = f"""\
{found} cannot be recorded
  at test_wrong_programs.py:NN
  use numpy's functions in place of math's, and letir.numpy.zeros for a buffer to write into
  (or letir.trace(..., intercept=True), where numpy.zeros is that);
  letir.concrete(x) gives the value, with a guard and without a derivative"""

    assert (TraceError, message) == told(program, argument)


VALUES = {
    "item": (lambda x: x.sum().item(), X, "item() of a traced value of type float64[]"),
    "item at a place": (lambda x: x.item(0), X, "item() of a traced value of type float64[3]"),
    "tolist": (lambda x: x.tolist(), X, "tolist() of a traced value of type float64[3]"),
    "tolist of integers": (
        lambda n: n.tolist(),
        np.arange(2),
        "tolist() of a traced value of type int64[2]",
    ),
}


@each(VALUES)
def test_converting_a_traced_value_by_item_or_tolist_is_refused(told, program, argument, found):
    message = f"""\
{found} cannot be recorded
  at test_wrong_programs.py:NN
  keep it an array; letir.concrete(x) gives the value, with a guard and without a derivative"""

    assert (TraceError, message) == told(program, argument)


def test_a_format_with_a_precision_is_refused(told):
    message = """\
the format '.3f' of a traced value of type float64[] cannot be recorded
  at test_wrong_programs.py:NN
  print it without a format, or letir.concrete(x), which records a guard"""

    assert (TraceError, message) == told(lambda x: print(f"loss {x.sum():.3f}"), X)


def test_rounding_a_python_number_to_digits_is_refused(told):
    """Python rounds decimal digits, NumPy scales and rounds: the results differ."""
    message = """\
round(x, ndigits) of a traced value of type float64*[] cannot be recorded
  at test_wrong_programs.py:NN
  write numpy.round(x, ndigits)"""

    assert (TraceError, message) == told(lambda x: round(x, 2), 2.5)


PYTHON = {
    "json": (lambda x: json.dumps([x]), X, "Object of type ndarray is not JSON serializable"),
    "round of an array": (lambda x: 2 * round(x), X, "float64[3] has no __round__; see numpy.rint"),
    "a float as a size": (
        lambda x: range(0, x),
        3.0,
        "only integer scalar arrays can be converted to a scalar index",
    ),
    "the length of a scalar": (lambda x: range(len(x)), S, "len() of unsized object"),
    "unpacking a scalar": (lambda x: [*x], S, "iteration over a 0-d array"),
    "a string": (lambda x: x + "1", X, "unsupported operand type(s) for +: 'Tracer' and 'str'"),
    "a set": (lambda x: x + {1.0}, X, "unsupported operand type(s) for +: 'Tracer' and 'set'"),
    "None": (lambda x: x + None, X, "unsupported operand type(s) for +: 'Tracer' and 'NoneType'"),
}


@each(PYTHON)
def test_errors_of_python_and_numpy_are_raised_in_their_words(told, program, argument, found):
    assert (TypeError, found) == told(program, argument)


# ---- conversion to a truth value or an integer ----


def condition(x):
    if x.sum() > 0:  # here
        return x
    return -x


ABSTRACT = {
    "if": (condition, X, "the truth value of a traced value of type bool[]"),
    "range": (lambda n: sum(range(n)), 3, "an index or a size of a traced value of type int64*[]"),
    "a slice": (lambda n: X[:n], np.int8(3), "an index or a size of a traced value of type int8[]"),
    "int": (lambda x: x * int(x[0]), X, "int() of a traced value of type float64[]"),
    "concrete": (lambda x: x * lt.concrete(x), X, "the value of a traced value of type float64[3]"),
    "a mask": (lambda x: x[x > 1], X, "an index or a size of a traced value of type int64[]"),
}


@each(ABSTRACT)
def test_an_abstract_value_has_no_truth_value_or_integer(told, program, argument, found):
    message = f"""\
{found} is needed, but it has no value
  at test_wrong_programs.py:NN
  trace with concrete arguments, so that a guard is recorded,
  choose with numpy.where or letir.cond, or make it a static argument"""

    assert (TraceError, message) == told(program, argument, abstract=True)


AMBIGUOUS = {
    "if": lambda x: 1.0 if x > 2 else 0.0,
    "and": lambda x: x and 1.0,
    "a chain of comparisons": lambda x: 0 < x < 3,
    "max of Python": lambda x: max(x, 2 * x),
    "in": lambda x: x in [X + 1, X],
}


@each(AMBIGUOUS)
def test_an_array_has_no_truth_value(told, program):
    message = (
        "The truth value of an array with more than one element is ambiguous. "
        "Use a.any() or a.all()"
    )

    assert (ValueError, message) == told(program, X)


def test_an_empty_array_has_no_truth_value(told):
    message = "The truth value of an empty array is ambiguous. Use x.size > 0"

    assert (ValueError, message) == told(lambda x: 1.0 if x else 0.0, np.zeros(0))


# ---- conversion to an ordinary array, or use as its index ----


def slice_of_buffer(x):
    buffer = np.zeros(5)
    buffer[1:4] = x  # here
    return buffer


ARRAYS = {
    "array": (lambda x: np.array([x[0], 1.0]), X, "float64[]"),
    "asarray": (lambda x: 2 * np.asarray(x), X, "float64[3]"),
    "float64": (lambda x: 2 * np.float64(x), 2.0, "float64*[]"),
    "full": (lambda x: np.full(3, x), S, "float64[]"),
    "arange": (lambda x: 2 * np.arange(x), S, "float64[]"),
    "r_": (lambda x: np.r_[x, 1.0], X, "float64[3]"),
    "c_": (lambda x: np.c_[x, x], X, "float64[3]"),
    "sum of a list": (lambda x: np.sum([x, 2 * x]), X, "float64[3]"),
    "mean of a list": (lambda x: np.mean([x[0], x[1]]), X, "float64[]"),
    "a table at places": (lambda i: X[i], np.array([0, 2]), "int64[2]"),
    "a table by a mask": (lambda x: X[x > 1], X, "bool[3]"),
    "random numbers": (lambda x: np.random.default_rng(0).normal(x), S, "float64[]"),
    "vectorize": (lambda x: np.vectorize(math.sin)(x * 1), X, "float64[3]"),
    "a slice of a buffer": (slice_of_buffer, X, "float64[3]"),
}


@each(ARRAYS)
def test_converting_a_traced_value_to_an_ordinary_array_is_refused(told, program, argument, found):
    message = f"""\
a traced value of type {found} cannot become an ordinary array: its record would be lost
  at test_wrong_programs.py:NN
  numpy.array, numpy.full and C functions take values, not recordings; these record:
    letir.numpy.array([x, 1.0]), letir.numpy.full(3, x), letir.numpy.sum([x, y])
    letir.numpy.asarray(table)[x]
    buffer = letir.numpy.zeros(3), then buffer[i] = x
  or trace with letir.trace(..., intercept=True), where np is letir.numpy"""

    assert (TraceError, message) == told(program, argument)


# ---- writes into an ordinary array ----


def test_an_ordinary_buffer_cannot_be_filled_element_by_element(told):
    """NumPy converts the value to a float, and turns any error into a ValueError."""

    def program(x):
        buffer = np.zeros(3)
        buffer[0] = x  # here
        return buffer

    message = """\
float() of a traced value of type float64[] cannot be recorded
  at test_wrong_programs.py:NN
  use numpy's functions in place of math's, and letir.numpy.zeros for a buffer to write into
  (or letir.trace(..., intercept=True), where numpy.zeros is that);
  letir.concrete(x) gives the value, with a guard and without a derivative"""
    assert (TraceError, message) == told(program, S)


def added_to(x):
    total = np.zeros(3)
    total += x  # here
    return total


WRITES = {
    "+=": added_to,
    "out=": lambda x: np.add(x, 1.0, out=np.zeros(3)),
    "out by position": lambda x: np.add(x, 1.0, np.zeros(3)),
    "out of a function": lambda x: np.sum(x, out=np.zeros(())),
    "out of a function by position": lambda x: np.sum(x, 0, None, np.zeros(())),
    "out of a method": lambda x: x.sum(out=np.zeros(())),
    "out of a method by position": lambda x: x.dot(x, np.zeros(())),
    "add.at": lambda x: np.add.at(np.zeros(3), [0, 0, 1], x),
    "copyto": lambda x: np.copyto(np.zeros(3), x),
    "put": lambda x: np.put(np.zeros(3), [0, 1, 2], x),
    "putmask": lambda x: np.putmask(np.zeros(3), [True, False, True], x),
    "full_like": lambda x: np.full_like(X, x),
}


@each(WRITES)
def test_a_traced_value_is_not_written_into_an_ordinary_array(told, program):
    message = """\
a traced value cannot be written into an ordinary array: its record would be lost
  at test_wrong_programs.py:NN
  make the array with letir.numpy (zeros, full_like, asarray ...): into that it can be written,
  or trace with letir.trace(..., intercept=True), where np is letir.numpy"""

    assert (TraceError, message) == told(program, X)


# ---- keys, pickles and lists ----


def test_a_traced_value_is_not_hashable(told):
    message = """\
unhashable type: a traced value cannot be in a set or the key of a dict
  at test_wrong_programs.py:NN
  use its name or place as the key; cache by letir.concrete(x)"""

    assert (TypeError, message) == told(lambda x: {x: 1.0}, S)


def test_a_traced_value_cannot_be_pickled(told):
    message = """\
a pickle of a traced value of type float64[3] cannot be recorded
  at test_wrong_programs.py:NN
  return it from the traced function first"""

    assert (TraceError, message) == told(lambda x: pickle.dumps([x]), X)


def test_a_list_that_holds_traced_values_is_not_an_operand(told):
    message = """\
a list that holds traced values is not an operand
  at test_wrong_programs.py:NN
  stack it first: numpy.stack([...]), or letir.numpy.array([...])"""

    assert (TraceError, message) == told(lambda x: x[:2] * [x[0], 1.0], X)

"""Errors for uses of a traced value that cannot be recorded.

Word by word, because users meet these errors every day [B2]; NN stands for the line at fault.
"""

import json
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
_c_float = operator.methodcaller("__float__")


def each(programs: dict):
    """Parametrize a test over programs, with their names as ids."""
    rows = [row if type(row) is tuple else (row,) for row in programs.values()]
    names = ("program", "argument", "found")[: len(rows[0])]
    return pytest.mark.parametrize(names, rows, ids=list(programs))


# ---- conversion to a Python number ----

FLOATS = {
    "percent": (
        lambda x: operator.mod("%.3f", x),
        S,
        "float() of a traced value of type float64[]",
    ),
    "statistics": (
        lambda x: x * statistics.NormalDist(x[0]).mean,
        X,
        "float() of a traced value of type float64[]",
    ),
    "a function in C": (
        lambda x: list(map(_c_float, [x])),
        S,
        "float() of a traced value of type float64[]",
    ),
}


@each(FLOATS)
def test_converting_a_traced_value_to_float_or_complex_is_refused(told, program, argument, found):
    message = f"""\
{found} cannot be recorded
  at test_wrong_programs.py:NN
  compute with numpy's functions;
  letir.concrete(x) gives the value, with a guard and without a derivative"""

    assert (TraceError, message) == told(program, argument)


def test_a_format_without_a_value_is_refused(told):
    message = """\
the format '.3f' of a traced value of type float64[] cannot be recorded
  at test_wrong_programs.py:NN
  print it with letir.debug.print, which formats the number each time that the program runs"""

    assert (TraceError, message) == told(lambda x: f"loss {x.sum():.3f}", X, abstract=True)


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
    "a string": (lambda x: x + "1", X, "and '1' of type str do not combine"),
    "a set": (lambda x: x + {1.0}, X, "and {1.0} of type set do not combine"),
    "None": (lambda x: x + None, X, "and None do not combine"),
}


@each(PYTHON)
def test_errors_of_python_and_numpy_are_raised_in_their_words(told, program, argument, found):
    error, message = told(program, argument)

    assert issubclass(error, TypeError)
    assert found in message


# ---- conversion to a truth value or an integer ----


def condition(x):
    if x.sum() > 0:  # here
        return x
    return -x


ABSTRACT = {
    "if": (condition, X, "the truth value of a traced value of type bool[]"),
    "range": (
        lambda n: sum(range(n)),
        3,
        "the integer (an index or a size) of a traced value of type int64*[]",
    ),
    "a slice": (
        lambda n: X[:n],
        np.int8(3),
        "the integer (an index or a size) of a traced value of type int8[]",
    ),
    "int": (lambda x: x * int(x[0]), X, "int() of a traced value of type float64[]"),
    "concrete": (lambda x: x * lt.concrete(x), X, "the value of a traced value of type float64[3]"),
    "a mask": (
        lambda x: x[x > 1],
        X,
        "the integer (the number of elements that a mask selects) "
        "of a traced value of type int64[]",
    ),
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

    error, found = told(program, X)

    assert issubclass(error, ValueError)
    assert message in found and "test_wrong_programs.py:NN" in found and "numpy.where" in found


def test_an_empty_array_has_no_truth_value(told):
    message = "The truth value of an empty array is ambiguous. Use x.size > 0"

    error, found = told(lambda x: 1.0 if x else 0.0, np.zeros(0))

    assert issubclass(error, ValueError)
    assert found.startswith(message)


# ---- conversion to an ordinary array, or use as its index ----


OWN = {"arcsinh": np.arcsinh}
ARRAYS = {
    "a ufunc of a list": (lambda x: OWN["arcsinh"](x.tolist()), X, "float64*[]"),
}


@each(ARRAYS)
def test_converting_a_traced_value_to_an_ordinary_array_is_refused(told, program, argument, found):
    message = f"""\
a traced value of type {found} cannot become an ordinary array: it would not be recorded
  at test_wrong_programs.py:NN
  arrays made elsewhere and functions written in C take numbers, not recordings
  make an array of a list first: numpy.exp(numpy.array([x, 1.0]));
  index a copy that the traced function makes: numpy.array(table)[x];
  or call the function without a derivative: letir.opaque(function, aval)(x)"""

    assert (TraceError, message) == told(program, argument)


# ---- writes into an ordinary array ----


BUFFER, SCALAR = np.zeros(3), np.zeros(())


def element_of_buffer(x):
    BUFFER[0] = x[0]  # here


def slice_of_buffer(x):
    BUFFER[:] = x  # here


def added_to(x):
    total = BUFFER
    total += x  # here
    return total


WRITES = {
    "an element": element_of_buffer,
    "a slice": slice_of_buffer,
    "+=": added_to,
    "out=": lambda x: np.add(x, 1.0, out=BUFFER),
    "out by position": lambda x: np.add(x, 1.0, BUFFER),
    "out of a function": lambda x: np.sum(x, out=SCALAR),
    "out of a function by position": lambda x: np.sum(x, 0, None, SCALAR),
    "out of a method": lambda x: x.sum(out=SCALAR),
    "out of a method by position": lambda x: x.dot(x, SCALAR),
    "add.at": lambda x: np.add.at(BUFFER, [0, 0, 1], x),
    "copyto": lambda x: np.copyto(BUFFER, x),
    "put": lambda x: np.put(BUFFER, [0, 1, 2], x),
    "putmask": lambda x: np.putmask(BUFFER, [True, False, True], x),
}


@each(WRITES)
def test_a_traced_value_is_not_written_into_an_ordinary_array(told, program):
    message = """\
a traced value cannot be written into an ordinary array: it would not be recorded
  at test_wrong_programs.py:NN
  write into an array that the traced function makes: numpy.zeros, numpy.array(a) for a copy of a,
  or make the array an argument"""

    assert (TraceError, message) == told(program, X)


# ---- keys, pickles and lists ----


def test_a_traced_value_is_not_hashable(told):
    message = """\
unhashable type: 'numpy.ndarray'
letir: at test_wrong_programs.py:NN
  a traced value cannot be in a set or the key of a dict
  use its name or place as the key; cache by letir.concrete(x)"""

    assert (TypeError, message) == told(lambda x: {x: 1.0}, X)


def test_a_traced_value_cannot_be_pickled(told):
    message = """\
a pickle of a traced value of type float64[3] cannot be recorded
  at test_wrong_programs.py:NN
  return it from the traced function first, and pass Dask arrays as arguments"""

    assert (TraceError, message) == told(lambda x: pickle.dumps([x]), X)

"""Errors for calls of NumPy functions and methods that letir does not record.

Word by word; NN stands for the line at fault.
"""

import functools

import numpy as np
import pytest
from numpy.lib import recfunctions

import letir as lt
import letir.numpy as lnp
from letir.errors import MissingRule, ShapeError

X = np.array([1.0, 2.0, 3.0])
M = np.arange(6.0).reshape(2, 3)

UNSUPPORTED = {  # functions of dates, files and records: all functions of numbers are recorded
    "a function": (lambda x: 2 * np.busday_count(x[0], 3), "busday_count", "numpy.busday_count"),
    "a function of a submodule": (
        lambda x: recfunctions.drop_fields(x, "a"),
        "drop_fields",
        "numpy.lib.recfunctions.drop_fields",
    ),
    "a list in letir.numpy": (
        lambda x: lnp.is_busday([x[0, 0], x[1, 0]]),
        "is_busday",
        "numpy.is_busday",
    ),
}


@pytest.mark.parametrize(("program", "short", "name"), UNSUPPORTED.values(), ids=list(UNSUPPORTED))
def test_an_unsupported_function_says_how_to_add_it(told, program, short, name):
    message = f"""\
{name} of traced values is not recorded
  at test_wrong_functions.py:NN
  write it with recorded functions: docs/operations.md lists them
  or add it: letir.primitive('package.{short}', impl, aval, vjp=..., numpy=({name},))
  or call it without a derivative: letir.opaque({name}, aval)(...)"""

    assert (MissingRule, message) == told(program, M)


def test_an_unsupported_method_of_arrays_is_named(told):
    message = """\
ndarray.dumps of a traced value is not recorded
  at test_wrong_functions.py:NN
  its bytes would be baked into the program; return the array, and take the bytes of the result"""

    assert (AttributeError, message) == told(lambda x: x.dumps(), X)


def test_an_attribute_that_arrays_do_not_have_is_named(told):
    message = """\
'numpy.ndarray' object has no attribute 'lenght'
letir: at test_wrong_functions.py:NN"""

    assert (AttributeError, message) == told(lambda x: x.lenght, X)


def test_an_unsupported_argument_is_named(told):
    message = """\
numpy.clip of traced values is not recorded with these arguments
  at test_wrong_functions.py:NN
  got an unexpected keyword argument 'casting': leave it out, or write it with other functions"""

    assert (MissingRule, message) == told(lambda x: np.clip(x, 0, 1, casting="no"), X)


def test_where_with_one_choice_is_refused(told):
    message = """\
where: either both or neither of x and y should be given
  at test_wrong_functions.py:NN
  write where(condition, x, y), or nonzero(condition)"""

    assert (ShapeError, message) == told(lambda x: np.where(x > 1, x), X)


ASKED = {
    "a masked array": (lambda x: np.ma.masked_less(x, 0), r"numpy\.ma\..*: masked arrays are not"),
    "a file": (lambda x: np.savetxt("x", x), "a file is written while the function is recorded"),
}


@pytest.mark.parametrize(("f", "match"), ASKED.values(), ids=list(ASKED))
def test_a_remedy_names_what_the_user_wrote(f, match):
    with pytest.raises(lt.LetirError, match=match):
        lt.trace(f, X)


def test_without_stand_ins_the_remedy_for_a_scalar_class_is_a_cast():
    with pytest.raises(lt.TraceError, match=r"np\.float64: write x\.astype\(dtype\)"):
        lt.trace(lambda x: np.float64(x[0]), X, intercept=False)


LOOPS = {
    "fori_loop: body": lambda x: lt.fori_loop(0, 3, lambda i: i, x),
    "while_loop: body": lambda x: lt.while_loop(lambda a: a > 9, lambda a, b: a, x),
    "while_loop: condition": lambda x: lt.while_loop(lambda a, b: a > 9, lambda a: a, x),
    "cond: true_fun": lambda x: lt.cond(x > 0, lambda a, b: a, lambda a: a, x),
    "cond: false_fun": lambda x: lt.cond(x > 0, lambda a: a, lambda: 0.0, x),
    "switch: branch 1": lambda x: lt.switch(0, [lambda a: a, lambda: 0.0], x),
}


@pytest.mark.parametrize(("asked", "f"), LOOPS.items(), ids=list(LOOPS))
def test_a_body_with_other_parameters_names_the_loop(asked, f):
    with pytest.raises(lt.DTypeError, match=rf"{asked}: the function .*\(.*float64"):
        lt.trace(f, 1.5)


@pytest.mark.parametrize("argument", [[1.0, 2.0], None, "text"], ids=str)
def test_an_attribute_that_another_argument_does_not_have_is_an_error_as_in_python(argument):
    def total(x):
        return x.total()

    for transform in (lambda f: functools.partial(lt.trace, f), lt.jit, lt.grad):
        with pytest.raises(AttributeError, match="has no attribute 'total', where x is"):
            transform(total)(argument)

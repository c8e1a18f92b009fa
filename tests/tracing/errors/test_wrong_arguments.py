"""Errors for arguments, operands, results and options that letir does not accept [B11].

Word by word; NN stands for the line at fault.
"""

import numpy as np
import pytest

import letir as lt
from letir.errors import DTypeError, ShapeError, TraceError
from letir.testing import assert_same
from tests.each_sample import in_one_test

X = np.array([1.0, 2.0, 3.0])
ROW = np.array([(1, 2.0)], dtype=[("a", int), ("b", float)])
NO_NUMBERS = "letir computes with bool, int, uint, float and complex arrays, not with dtype"


def pandas(name: str):
    """An object that looks like the pandas class ``name``."""
    return type(name, (), {"__module__": "pandas"})()


FOREIGN = {
    "masked": (
        np.ma.array(X, mask=[False, True, False]),
        "numpy.ma.MaskedArray is not an array of numbers",
        "fill it first: x.filled(value)",
    ),
    "matrix": (
        np.ones((1, 1)).view(np.matrix),
        "numpy.matrix is not an array of numbers",
        "convert it first: np.asarray(x)",
    ),
    "frame": (
        pandas("DataFrame"),
        "pandas.DataFrame is not an array of numbers",
        "convert it first: df.to_numpy()",
    ),
    "series": (
        pandas("Series"),
        "pandas.Series is not an array of numbers",
        "convert it first: series.to_numpy()",
    ),
    "index": (
        pandas("Index"),
        "pandas.Index is not an array of numbers",
        "convert it first: index.to_numpy()",
    ),
    "objects": (
        np.array([1, None]),
        f"{NO_NUMBERS} object",
        "an object array: convert it with .astype(float), or make its rows equally long",
    ),
    "strings": (
        np.array(["a", "b"]),
        f"{NO_NUMBERS} <U1",
        "strings: encode them as integers first, with np.unique(x, return_inverse=True)",
    ),
    "bytes": (
        np.array([b"a"]),
        f"{NO_NUMBERS} |S1",
        "bytes: convert them with np.frombuffer(x, dtype=np.uint8)",
    ),
    "a structured array": (
        ROW,
        f"{NO_NUMBERS} [('a', '<i8'), ('b', '<f8')]",
        "a structured array: pass its fields as separate arrays, x['field']",
    ),
    "dates": (
        np.array(["2020-01-01"], dtype="M8[D]"),
        f"{NO_NUMBERS} datetime64[D]",
        "dates: convert them with .astype('int64')",
    ),
    "durations": (
        np.array([1], dtype="m8[s]"),
        f"{NO_NUMBERS} timedelta64[s]",
        "durations: convert them with .astype('int64')",
    ),
    "extended precision": (
        np.array([1.0], dtype=np.longdouble),
        f"{NO_NUMBERS} {np.dtype(np.longdouble)}",
        "extended precision: convert it with .astype('float64')",
    ),
    "complex extended precision": (
        np.array([1.0], dtype=np.clongdouble),
        f"{NO_NUMBERS} {np.dtype(np.clongdouble)}",
        "extended precision: convert it with .astype('complex128')",
    ),
    "a set of objects": (
        {1.0, Ellipsis},
        "{1.0, Ellipsis} of type set is not an array of numbers",
        "pass NumPy arrays and numbers; other values as static arguments",
    ),
    "an object": (
        object(),
        "an object of type object is not an array of numbers",
        "pass NumPy arrays and numbers; other values as static arguments",
    ),
}
each_foreign = pytest.mark.parametrize(
    ("value", "found", "remedy"), FOREIGN.values(), ids=list(FOREIGN)
)


@each_foreign
def test_a_foreign_argument_is_named_with_its_conversion(told, value, found, remedy):
    assert (DTypeError, f"argument x: {found}\n  {remedy}") == told(lambda x: x, value)


@each_foreign
def test_a_foreign_argument_within_others_is_named_by_its_path(told, value, found, remedy):
    message = f"argument model.weights.1: {found}\n  {remedy}"

    assert (DTypeError, message) == told(lambda model: model, {"weights": [X, value]})


@pytest.mark.parametrize("name", ["masked", "objects", "dates", "extended precision", "an object"])
def test_a_foreign_operand_is_named_with_its_conversion(told, name):
    value, found, remedy = FOREIGN[name]
    message = f"{found}\n  at test_wrong_arguments.py:NN\n  {remedy}"

    assert (DTypeError, message) == told(lambda x: x + value, X)


def test_an_integer_beyond_64_bits_is_refused_as_operand(told):
    message = """\
the integer 1180591620717411303424 does not fit into 64 bits
  at test_wrong_arguments.py:NN
  pass a float: float(n)"""

    assert (DTypeError, message) == told(lambda x: x + 2**70, X)


# ---- results ----

RESULTS = {
    "a function": (np.sin, "the function sin"),
    "a class among others": ({"loss": 1.0, "model": dict}, "the class dict"),
    "a range": (range(3), "range(0, 3) of type range"),
    "bytes": (b"x", "b'x' of type bytes"),
}


@pytest.mark.parametrize(("result", "found"), RESULTS.values(), ids=list(RESULTS))
def test_a_result_that_is_not_an_array_is_reported(told_by, result, found):
    message = f"""\
the traced function returned {found}
  at test_wrong_arguments.py:NN
  return arrays and numbers, nested in tuples, lists and dicts"""

    assert (TraceError, message) == told_by(lambda: lt.trace(lambda x: result, X))


def test_a_result_of_objects_is_named_with_its_conversion(told_by):
    message = f"""\
result of the traced function: {NO_NUMBERS} object
  at test_wrong_arguments.py:NN
  an object array: convert it with .astype(float), or make its rows equally long"""

    assert (TraceError, message) == told_by(lambda: lt.trace(lambda x: np.array([None]), X))


# ---- options ----


def test_a_static_argument_that_is_a_list_is_refused(told):
    message = """\
static argument axes: a static argument must be hashable, found list
  pass a tuple for a list"""

    assert (DTypeError, message) == told(lambda x, axes: x, X, [0, 1], static_argnums=1)


def test_a_static_argument_that_is_an_array_is_refused(told):
    message = """\
static argument table: a static argument must be hashable, found ndarray
  pass an array as an ordinary argument"""

    assert (DTypeError, message) == told(lambda x, table: x, X, X, static_argnames="table")


def test_a_static_position_beyond_the_arguments_is_reported(told):
    message = """\
static_argnums: there is no argument 1 among 1
  count positional arguments from 0"""

    assert (TraceError, message) == told(lambda x: x, X, static_argnums=1)


def test_a_static_name_that_is_not_a_parameter_is_reported(told):
    message = """\
static_argnames: the function has no parameter 'trian'
  name a parameter of the function"""

    assert (TraceError, message) == told(lambda x, train: x, X, True, static_argnames="trian")


def test_an_option_that_the_function_has_too_is_ambiguous(told):
    def program(x, *, abstract=False):
        return -x if abstract else x

    message = """\
'abstract' is an option of trace and a parameter of the function: a keyword would go to trace
  bind it first: functools.partial(f, abstract=...)"""
    assert (TraceError, message) == told(program, X, abstract=True)


def test_an_option_that_is_not_given_is_no_ambiguity():
    def program(x, check=True):
        return -x if check else x

    assert_same(lt.trace(program, X)(X), -X)
    assert_same(lt.trace(program, X, False)(X, False), X)


# ---- the arguments of a replay ----


def product(x, y):
    return x * y


def scaled(params, *, rate):
    return params["w"] * rate


REPLAYS = {
    "too few": (
        lambda f, g: f(X),
        ShapeError,
        "the program takes 2 arrays, found 1\n"
        "  pass one for each of its parameters: (x: float64[3], y: float64[3])",
    ),
    "all that differ are listed": (
        lambda f, g: f(np.ones(4), np.ones(3, np.float32)),
        DTypeError,
        """\
arguments do not fit the program
  argument 0 (x): expected float64[3], found float64[4]
  argument 1 (y): expected float64[3], found float32[3]: pass x.astype('float64')
  trace again for other types""",
    ),
    "only shapes differ": (
        lambda f, g: f(np.ones(4), np.ones((3, 1))),
        ShapeError,
        """\
arguments do not fit the program
  argument 0 (x): expected float64[3], found float64[4]
  argument 1 (y): expected float64[3], found float64[3, 1]
  trace again for other types""",
    ),
    "a keyword that is none": (
        lambda f, g: f(X, y=X),
        DTypeError,
        "the program has no keyword arguments, found y\n"
        "  pass arrays by position, in the order of its parameters",
    ),
    "another nesting": (
        lambda f, g: g({"w": X, "b": X}, rate=0.1),
        DTypeError,
        "calling the program: expected arguments nested as ({'w': *}, rate=*), "
        "found ({'b': *, 'w': *}, rate=*)\n"
        "  nest them with the same keys and lengths",
    ),
    "another keyword": (
        lambda f, g: g({"w": X}, speed=0.1),
        DTypeError,
        "calling the program: expected arguments nested as ({'w': *}, rate=*), "
        "found ({'w': *}, speed=*)\n"
        "  nest them with the same keys and lengths",
    ),
}


@pytest.mark.parametrize(("call", "error", "message"), REPLAYS.values(), ids=list(REPLAYS))
def test_a_replay_with_other_arguments_says_how_they_differ(told_by, call, error, message):
    """[B7]"""
    f, g = lt.trace(product, X, X), lt.trace(scaled, {"w": X}, rate=0.1)

    message = f"{message}\n  at test_wrong_arguments.py:NN"
    assert (error, message) == told_by(lambda: call(f, g), call)


def test_a_replay_with_another_static_argument_is_refused(told_by):
    f = lt.trace(lambda x, mode: 2 * x if mode == "fast" else x, X, "fast")

    message = """\
calling the program: the static argument 'fast' is part of the program, found 'slow'
  trace again with the new value
  at test_wrong_arguments.py:NN"""
    assert (DTypeError, message) == told_by(lambda: f(X, "slow"))


# ---- gradients ----

GRADIENTS = {
    "an integer": (
        lambda: lt.grad(lambda x: x * x)(3),
        DTypeError,
        """\
grad: x is int64*[], which has no derivative
  pass a float, 3.0 instead of 3, or leave it out of argnums""",
    ),
    "an array of integers": (
        lambda: lt.grad(lambda x: (x * x).sum())(np.arange(3)),
        DTypeError,
        """\
grad: x is int64[3], which has no derivative
  convert it with .astype(float), or leave it out of argnums""",
    ),
    "no scalar": (
        lambda: lt.grad(lambda x: x * x)(X),
        ShapeError,
        """\
grad needs a scalar, but the function returns float64[3]
  sum it, or use letir.jacobian or letir.vjp""",
    ),
    "a forgotten return": (
        lambda: lt.grad(lambda x: None)(X),
        ShapeError,
        """\
grad needs a function that returns one scalar, but the function returned None
  end it with return""",
    ),
    "a truth value": (
        lambda: lt.grad(lambda x: x.sum() > 0)(X),
        DTypeError,
        """\
grad: the function returns bool[], which has no derivative
  return a floating number""",
    ),
}


@pytest.mark.parametrize(("action", "error", "message"), GRADIENTS.values(), ids=list(GRADIENTS))
def test_a_gradient_that_does_not_exist_is_refused(told_by, action, error, message):
    assert (error, f"{message}\n  at test_wrong_arguments.py:NN") == told_by(action)


@in_one_test
@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.clip(x, 2),
        lambda x: np.clip(x, a_max=2),
        lambda x: np.clip(x, 1, 2, max=3),
        lambda x: np.sort(x, kind="quicksort", stable=True),
        lambda x: x.argsort(kind="stable", stable=False),
        lambda x: np.sort(x, kind="bubble"),
        lambda x: np.sum(x, keepdims=None),
        lambda x: x.mean(keepdims=None),
        lambda x: np.any(x, keepdims=None),
        lambda x: np.nanmax(x, keepdims=None),
        lambda x: np.polynomial.polynomial.polyfit(x, x, -1),
        lambda x: np.polynomial.polynomial.polyfit(x, x, 1, w=x[:1]),
    ],
)
def test_arguments_that_numpy_refuses_raise_its_kind_of_error(f):
    with pytest.raises((TypeError, ValueError)) as wanted:
        f(X)

    for record in (lambda: lt.trace(f, X), lambda: lt.jit(f)(X), lambda: lt.grad(f)(X)):
        with pytest.raises(wanted.type):
            record()


def test_arguments_that_numpy_accepts_are_accepted():
    def f(x):
        clipped = x.clip(2), x.clip(max=2), x.clip(), np.clip(x), np.clip(x, min=2)
        return *clipped, np.clip(x, None, 2), np.sort(x, kind="q"), np.argsort(x, kind="STABLE")

    assert_same(f(X), lt.trace(f, X)(X))


def test_errors_about_the_number_of_arguments_name_the_method():
    for f, name in ((lambda x: x.ravel(1, 2), "ravel"), (lambda x: x.transpose(a=1), "transpose")):
        with pytest.raises(TypeError, match=rf"^(ndarray\.)?{name}\(\)"):
            lt.trace(f, X)


def test_an_integer_has_no_tangent_but_zero():
    f = lambda x, n: x * n  # noqa: E731

    assert lt.jvp(f, (2.0, 3), (1.0, None)) == lt.jvp(f, (2.0, 3), (1.0, 0)) == (6.0, 3.0)
    for transform in (lt.jvp, lambda *a: lt.linearize(f, *a[1])[1](*a[2])):
        with pytest.raises(DTypeError, match=r"tangent of a primal of type int64.*is not 0\n"):
            transform(f, (2.0, 3), (1.0, 1.0))


def test_classes_of_dtypes_are_dtypes():
    def f(x):
        whole = x.astype(np.dtypes.Int32DType), np.zeros(3, np.dtypes.Float32DType) + x
        return *whole, np.sum(x, dtype=np.dtypes.Float32DType), np.asarray(x, np.dtypes.BoolDType)

    assert_same(f(X), lt.trace(f, X)(X))

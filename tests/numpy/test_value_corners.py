"""Values on which recorded programs differed from NumPy, one example of each cause."""

import contextlib
import math
import operator
import sys

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from tests.each_sample import in_one_test

RUNS = {
    "trace": lambda f, *args: lt.run_forward(lt.trace(f, *args), *args),
    "compile": lambda f, *args: lt.compile(lt.trace(f, *args), exact=True)(*args),
    "jit": lambda f, *args: lt.jit(f)(*args),
}
OTHER = ">f8" if sys.byteorder == "little" else "<f8"
HALF = np.array([-0.0, np.nan, np.inf, 4.0], np.float16)


class Plain(np.ndarray):
    """A subclass without functions of its own."""


class WithoutArrays(np.ndarray):
    """A subclass whose ufuncs give text."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return "text"


def into(function, dtype):
    """(the result of a function with ``out=`` of this dtype, that array)."""

    def call(x):
        out = np.zeros((), dtype)
        return function(x, out=out), out

    return call


def set_item(item, value):
    def call(x):
        x[item] = value
        return x

    return call


def in_place(x):
    x += 1
    return x


SAME = {
    "a mean into another dtype": (into(np.mean, float), np.ones(3, np.float32)),
    "ldexp of a Python integer": (lambda x: np.ldexp(x, 15), 3),
    "ldexp of two Python integers": (np.ldexp, 3, 15),
    "ldexp of a traced exponent": (lambda n: np.ldexp(3, n), 15),
    "the root of float16 by an operator": (lambda x: x**0.5, HALF),
    "the root of float16 by np.power": (lambda x: np.power(x, 0.5), HALF),
    "a comparison of Python numbers": (operator.lt, 3, 4.0),
    "equality of Python numbers": (operator.eq, 3, 3.0),
    "a negated comparison of Python numbers": (lambda x, y: not x < y, 3, 4.0),
    "a chain of comparisons": (lambda x: 0 < x < 2, 1),
    "a scalar class of a 0-d array": (lambda x: np.int8(x), np.array(3)),  # noqa: PLW0108
    "True added to an integer": (lambda x: np.add(x, True), 2**40),
    "a view of a NumPy scalar": (lambda x: x.view(), np.float32(2.0)),
    "real_if_close of a scalar": (np.real_if_close, np.complex128(1 + 2j)),
    "real_if_close of a real scalar": (np.real_if_close, np.complex128(1)),
    "an index into int32": (into(np.argmax, np.int32), np.array([1.0, 3.0])),
    "a nansum in the dtype of out": (into(np.nansum, float), np.float32([0.1, 0.2, 0.3])),
    "a nanprod in the dtype of out": (into(np.nanprod, float), np.float32([0.1, 0.2, 0.3])),
    "an array compared with None": (lambda x: x == None, np.ones(2)),  # noqa: E711
    "an array and None differ": (lambda x: x != None, np.ones(2)),  # noqa: E711
    "a 0-d array compared with None": (lambda x: x == None, np.array(1.0)),  # noqa: E711
    "a scalar compared with None": (lambda x: x == None, np.float64(1.0)),  # noqa: E711
    "an element of a 0-d array": (lambda x: 0 in x, np.array(0.0)),
    "a sum into an array, of a scalar": (into(np.sum, float), np.int32(3)),
    "a sum into an array, of a Python number": (into(np.sum, float), 3),
    "a roll by long integers": (lambda x: np.roll(x, [2**63 - 1, 2**63 - 1]), np.arange(5)),
    "take at booleans": (lambda x: np.take([1.5, 2.5], x), np.array([True, False])),
    "a row made contiguous": (np.ascontiguousarray, np.arange(5)[::-1]),
    "iscomplex of a Python number": (np.iscomplex, 3),
    "an array in place": (in_place, np.asfortranarray(np.ones((2, 3)))),
    "an outer product with a Python number": (lambda x: np.power.outer(x, 2), np.ones(2, "f2")),
}
ERRORS = {
    "a ufunc of a subclass that gives no arrays": (np.exp, np.ones(2).view(WithoutArrays)),
    "two results of such a ufunc": (np.modf, np.ones(2).view(WithoutArrays)),
    "a list with None": (lambda x: np.stack([x, None]), 3),
    "an integer beyond 64 bits": (lambda x: x * 2, 2**70),
    "a constant integer beyond 64 bits": (lambda x: x * 2**70, 2),
    "an integer of uint64": (lambda x: x + 1, 2**64 - 1),
    "an integer that Python does not print": (lambda x: x + 1, 10**5000),
    "a median into another dtype": (into(np.median, np.float32), np.ones(3)),
    "an index into floats": (into(np.argmin, float), np.ones(3)),
    "derivatives of rows of coefficients": (np.polyder, np.ones((2, 3))),
    "zeros that are a number": (np.poly, np.float64(3.0)),
    "a subclass": (np.exp, np.ones(2).view(Plain)),
    "a cast to the other byte order": (lambda x: x.astype(np.dtype(float).newbyteorder()), HALF),
    "zeros in the other byte order": (lambda x: np.zeros_like(x, OTHER), HALF),
    "a full array in the other byte order": (lambda x: np.full(3, x, OTHER), 1.0),
    "a range in the other byte order": (lambda x: np.arange(3, dtype=OTHER, like=x), 1.0),
    "a range to a traced end in the other byte order": (lambda x: np.arange(x, dtype=OTHER), 3.0),
    "an identity in the other byte order": (lambda x: np.eye(3, dtype=OTHER, like=x), 1.0),
    "a number split": (lambda x: np.array_split(x, 2), 3),
}
REFUSED_OF_NUMBERS = {"zeros that are a number", "a number split"}  # by NumPy, too
RUN_AS_PYTHON = {  # by jit, beside arguments of other classes
    *("a median into another dtype", "a list with None"),
    *("an integer beyond 64 bits", "a constant integer beyond 64 bits", "an integer of uint64"),
    *("an integer that Python does not print", "a cast to the other byte order"),
    *("zeros in the other byte order", "a full array in the other byte order"),
    "a range to a traced end in the other byte order",
}
ORDERED = {
    "an array of a list": lambda x: np.array([x, x]),
    "a selection": lambda x: np.select([x > 1, x < 0], [x, 2 * x], 1),
    "zeros like an array": np.zeros_like,
    "a scalar class": lambda x: np.float64(x),  # noqa: PLW0108
    "iscomplex of real numbers": np.iscomplex,
    "a row": lambda x: np.ascontiguousarray(x[:, 0]),
}
REFUSED_BY_NUMPY = {
    "an item of a scalar": (set_item(..., math.nan), np.complex64(1.0), TypeError),
    "an item of a Python integer": (set_item(None, 2.5), 15, TypeError),
    "an element of a Python number": (lambda x: 0 in x, 0.0, TypeError),
    "an element of a scalar": (lambda x: 0 in x, np.float64(0.0), TypeError),
    "copyto of a number": (lambda x: np.copyto(x, 1), 3, TypeError),
    "put into a number": (lambda x: np.put(x, [0], [5]), 3.0, TypeError),
    "a ufunc's result into a scalar": (lambda x: np.add(x, 1, out=x), np.float64(3), TypeError),
    "a complex number as real": (lambda x: np.asarray(x, "f4"), 1 + 2j, TypeError),
    "a determinant of no matrix": (np.linalg.det, np.ones(3), np.linalg.LinAlgError),
    "an inverse of no square": (np.linalg.inv, np.ones((2, 3)), np.linalg.LinAlgError),
    "int of a complex number": (int, 1j, TypeError),
}


@in_one_test
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", SAME)
def test_values_and_kinds_are_numpys(name, run):
    f, *args = SAME[name]
    with np.errstate(all="ignore"):
        assert_same(f(*args), RUNS[run](f, *args))
        assert type(f(*args)) is type(RUNS[run](f, *args))


@in_one_test
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", ERRORS)
def test_a_function_that_cannot_be_recorded_raises_an_error_with_a_remedy(name, run):
    f, *args = ERRORS[name]
    refusal = pytest.raises(lt.LetirError, match="\n  ")
    if run == "jit" and name in REFUSED_OF_NUMBERS:
        refusal = pytest.raises(TypeError)  # NumPy's own
    runs_python = name in RUN_AS_PYTHON or {Plain, WithoutArrays} & {*map(type, args)}
    if run == "jit" and runs_python:
        refusal = pytest.warns(RuntimeWarning, match="as Python, without a plan: .*\n  ")
    with refusal:
        RUNS[run](f, *args)


@in_one_test
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", REFUSED_BY_NUMPY)
def test_what_numpy_refuses_is_refused(name, run):
    f, arg, kind = REFUSED_BY_NUMPY[name]
    with pytest.raises(kind):
        RUNS[run](f, arg)


LAYOUTS = (np.ones((2, 3)), np.ones((3, 2)).T, np.ones((2, 6))[:, ::2])


@in_one_test
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", ORDERED)
def test_the_memory_order_is_numpys(name, run):
    f = ORDERED[name]
    for x in LAYOUTS:
        assert f(x).strides == RUNS[run](f, x).strides


@pytest.mark.parametrize("name", [name for name in ORDERED if name != "a row"])
def test_a_program_of_a_transposed_array_refuses_another_memory_order(name):
    f, (rows, columns, _) = ORDERED[name], LAYOUTS
    program = lt.trace(f, columns)

    with contextlib.suppress(lt.GuardError):
        assert f(rows).strides == program(rows).strides


@pytest.mark.parametrize("run", RUNS)
def test_an_argument_changed_in_place_is_the_result(run):
    for x in LAYOUTS:
        assert RUNS[run](in_place, x) is x


@pytest.mark.parametrize("p", [np.inf, -np.inf])
def test_infinity_is_a_setting_with_a_guard(p):
    f, x = lt.trace(np.linalg.norm, np.ones(3), p), np.array([1.0, -3.0, 2.0])

    assert_same(f(x, p), np.linalg.norm(x, p))
    with pytest.raises(lt.GuardError):
        f(x, 2.0)


@pytest.mark.parametrize("axis", [None, 0, -1, (), (0, 1), (-1,)])
def test_size_takes_several_axes(axis):
    x = np.ones((2, 3))

    def f(x):
        return np.size(x, axis) * x.sum()

    assert_same(lt.trace(f, x)(x), f(x))


@pytest.mark.parametrize("x", [np.arange(3), np.array([complex(np.nan, np.inf), 1, 2])])
def test_traced_numbers_replace_what_is_not_finite(x):
    def f(x, n):
        return np.nan_to_num(x, nan=n, posinf=2 * n)

    assert_same(lt.trace(f, x, 1.0)(x, 2.5), f(x, 2.5))


def test_nan_to_num_of_a_scalar_in_place_is_numpys_error():
    for run in (lambda f: f(np.ones(3)), lambda f: lt.trace(f, np.ones(3))):
        with pytest.raises(ValueError, match="Unable to avoid copy"):
            run(lambda x: np.nan_to_num(x.sum(), copy=False))


def test_nan_to_num_of_a_number_is_a_number():
    assert_same(lt.trace(lambda x, n: np.nan_to_num(x, nan=n), 1.0, 2)(np.nan, 3), np.float64(3.0))


def test_byteswap_is_refused_by_name_and_run_as_python_by_jit():
    x = np.arange(3)
    with pytest.raises(AttributeError, match="byteswap"):
        lt.trace(lambda x: x.byteswap(), x)
    with pytest.warns(RuntimeWarning, match="as Python, without a plan: .*byteswap"):
        assert_same(x.byteswap(), lt.jit(lambda x: x.byteswap())(x))

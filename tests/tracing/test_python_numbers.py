"""Traced Python numbers compute as in Python, or raise an error."""

import cmath
import contextlib
import functools
import io
import logging
import math
import numbers
import operator
import types
import warnings
from collections.abc import Iterable, Sequence, Sized
from typing import Protocol, runtime_checkable

import numpy as np
import pytest

import letir as lt
from letir.extend import PRIMITIVES
from letir.testing import assert_same, check_grads
from tests.each_sample import in_one_test

COUNTED = {
    "a sum of comparisons": lambda a, b: (a > 1) + (b > 1),
    "a sum with a boolean": lambda a, b: (a > 1) + True,
    "a multiple of a comparison": lambda a, b: (a > 1) * 3,
    "a number times a comparison": lambda a, b: b * (a > 1),
    "a difference": lambda a, b: (a > 1) - (b > 9),
    "a quotient": lambda a, b: (a > 1) / 2,
    "a power": lambda a, b: (a > 1) ** 2,
    "a negated comparison": lambda a, b: -(a > 1),
    "a count": lambda a, b: sum([a > 1, b > 1, a > b]),
}


@in_one_test
@pytest.mark.parametrize("function", COUNTED.values(), ids=COUNTED)
@pytest.mark.parametrize("args", [(5, 2), (5.0, 2.0), (0, 3.0)])
def test_comparisons_of_python_numbers_count_as_0_and_1(function, args):
    assert_same(function(*args), lt.trace(function, *args)(*args))


def test_a_comparison_of_python_numbers_takes_part_in_promotion_weakly():
    f = lt.trace(lambda a, x: (a > 1) * 3 * x, 5.0, np.ones(2, np.float32))

    assert "float32" == f.ret.args[0].type.dtype


@pytest.mark.parametrize("compare", [operator.lt, operator.ge, lambda z, x: x < z])
def test_complex_numbers_have_no_order(compare):
    with pytest.raises(
        TypeError, match=r"not supported between instances of '\w+' and '\w+'\n  at "
    ):
        lt.trace(lambda z: compare(z, 1.0), 1 + 2j)

    numpy = lt.trace(lambda z: np.less(z, 1.0), 1 + 2j)  # as NumPy orders them
    assert not numpy(1 + 2j)


def test_comparisons_of_arrays_stay_booleans():
    assert_same(np.True_, lt.trace(lambda x: (x > 1) + (x > 2), np.float64(5.0))(np.float64(5.0)))


@pytest.mark.parametrize(
    "name, args",
    [("mul", (2**40, 2**40)), ("add", (2**63 - 1, 1)), ("sub", (-(2**63), 1)), ("pow", (5, 100))],
)
def test_integers_that_leave_64_bits_are_an_error_and_never_wrap(name, args):
    function = getattr(operator, name)
    small = lt.trace(function, 3, 2)

    assert function(3, 2) == small(3, 2)
    with pytest.raises(OverflowError, match="does not fit the 64 bits"):
        lt.trace(function, *args)
    with pytest.raises(OverflowError, match="does not fit the 64 bits"):
        small(*args)


def test_integers_up_to_64_bits_are_exact():
    args = 2**62 - 1, -(2**62)

    assert_same(-1, lt.trace(operator.add, *args)(*args))


def test_a_division_of_integers_by_zero_runs_python_error():
    f = lt.trace(operator.floordiv, 3, 2)

    with pytest.raises(ZeroDivisionError):
        f(3, 0)


# ---- where Python and NumPy differ ----

UNLIKE_NUMPY = {
    "a quotient": (operator.truediv, [(1.0, 2.0), (1.0, 0.0), (0.0, 0.0), (1, 0), (7, 2)]),
    "a whole quotient": (operator.floordiv, [(7.0, 2.0), (7.0, 0.0), (-7, 2), (7, 0)]),
    "a remainder": (operator.mod, [(7.0, 2.0), (7.0, 0.0), (-7, 2), (7, 0)]),
    "divmod": (divmod, [(7.0, 2.0), (7.0, 0.0), (-7, 2), (7, 0)]),
    "a power": (operator.pow, [(4.0, 0.5), (-4.0, 0.5), (0.0, -1.0), (1e200, 2.5), (-0.0, 0.5)]),
    "a power of integers": (operator.pow, [(2, 3), (2, -1), (0, -1), (-2, 0)]),
    "a complex quotient": (operator.truediv, [(-3 + 0j, 1 + 2j), (1j, 0j), (1j, 2.0)]),
    "a left shift": (operator.lshift, [(3, 2), (3, -1)]),
    "a right shift": (operator.rshift, [(9, 2), (9, -1), (9, 70)]),
    "a reciprocal": (lambda x: x**-1, [(2,), (4.0,), (0,), (0.0,)]),
    "a square": (lambda x: (2.0 * x) ** 2, [(3.0,), (1e200,), (-1e200,)]),
    "a cube": (lambda x: x**3.0, [(3,), (3.0,), (-1e200,), (np.inf,), (np.nan,)]),
    "a root": (lambda x: x**0.5, [(4.0,), (-4.0,), (9,), (-9,)]),
    "a ratio": (lambda x: 1 / x, [(4.0,), (0.0,), (-0.0,), (0,)]),
}


@in_one_test
@pytest.mark.parametrize("function, points", UNLIKE_NUMPY.values(), ids=UNLIKE_NUMPY)
def test_an_operator_of_python_numbers_runs_python(function, points):
    for args in points:
        for call in (lambda *a: lt.trace(function, *a)(*a), lt.jit(function)):
            try:
                expected = function(*args)
            except (ArithmeticError, ValueError) as error:
                with pytest.raises(type(error)):
                    call(*args)
            else:
                assert_same(expected, call(*args))


POWERS = {
    "pow": pow,
    "pow of a product": lambda x, y: pow(1 * x, y),
    "operator.pow": operator.pow,
    "a reduction": lambda x, y: functools.reduce(pow, [x, y]),
}


@in_one_test
@pytest.mark.parametrize("name", POWERS)
def test_the_function_pow_computes_as_the_operator(name):
    f = POWERS[name]

    for x, y in [(2, -1), (0, 3), (-2.5, 0.5), (1.5, 2), (3, 2.5)]:
        for result in (lt.trace(f, x, y)(x, y), lt.jit(f)(x, y)):
            assert (type(result), result) == (type(x**y), x**y)
    with pytest.raises(ZeroDivisionError):
        lt.jit(f)(0.0, -2.5)


def test_products_of_complex_numbers_have_the_bits_of_python_and_no_warnings():
    def f(z, w):
        return z * w, 2j * z, cmath.polar(z), cmath.phase(w), cmath.rect(z.real, w.imag)

    rng = np.random.default_rng(0)
    program, fast = lt.trace(f, 1 + 2j, 3 - 1j), lt.jit(f)
    for _ in range(40):
        z, w = [complex(*rng.normal(size=2)) for _ in range(2)]
        assert repr(program(z, w)) == repr(fast(z, w)) == repr(f(z, w))
    assert repr(lt.jit(lambda x: 1j * x * 2)(math.inf)) == repr(1j * math.inf * 2)
    check_grads(lambda x: abs(x * (1 + 2j) * (x * 1j)), (1.5,))


def test_a_replay_whose_result_has_another_type_in_python_is_a_guard_error():
    root, power = lt.trace(lambda x: x**0.5, 4.0), lt.trace(lambda n: 2**n, 3)

    with pytest.raises(lt.GuardError, match=r"was a float, now it is complex: \(-4.0\) \*\* 0.5"):
        root(-4.0)
    with pytest.raises(lt.GuardError, match=r"was an int, now it is a float: 2 \*\* -1"):
        power(-1)
    with pytest.raises(ZeroDivisionError):
        lt.trace(lambda x: 1 / x, 4.0)(0.0)


def test_derivatives_of_pythons_operators():
    check_grads(lambda x, y: x / y + x**y + x // y + x % y + y**-2, (2.5, 0.7))
    assert_same((-4.0) ** 0.5, lt.vjp(lambda x: x**0.5, -4.0)[0])
    np.testing.assert_allclose(lt.grad(lambda x: abs(x**0.5))(-4.0), -0.25)


def test_functions_that_letir_records_for_numpys_compute_as_numpy():
    f = lt.trace(lambda x, w: np.divide(x, w) + np.power(x, 0.5), 1.0, 2.0)

    with np.errstate(all="ignore"):
        assert_same(np.divide(1.0, 0.0) + np.power(1.0, 0.5), f(1.0, 0.0))


def test_a_comparison_of_python_numbers_is_returned_as_a_bool():
    f = lt.trace(lambda x, y: (x > y, (x > y) | (y > 2)), 1.0, 2.0)

    assert_same((True, True), f(3.0, 2.0))


@pytest.mark.parametrize("item", [..., (), None, (..., None)])
def test_item_of_a_python_number_equals_item_of_a_0d_array(item):
    index = PRIMITIVES["index"]
    fn = lt.trace(lambda x: np.sin(index(x, item)), lt.ShapeDtype((), float, weak=True))

    assert_same(np.sin(np.asarray(2.0)[item]), fn(2.0))
    assert_same(np.sin(np.asarray(2.0)[item]), lt.compile(fn)(2.0))
    assert "np.asarray(x)[" in lt.to_source(fn)


# ---- protocols of Python's numbers ----

X = np.array([0.5, 1.5, -2.25])
N = np.array([2, 1, 2])


def counts(keys):
    found = {}
    for key in keys:
        found[key] = found.get(key, 0) + 1
    return [found[1], found[2], len(found)]


PROTOCOLS = {
    "a key": (lambda n, x: {1: x, 2: 2 * x}[n], (1, X), (2, X)),
    "a key of NumPy's": (lambda n, x: {1: x, 2: 2 * x}[n], (np.int64(1), X), (np.int64(2), X)),
    "a set": (lambda n, x: len({n, 1, 2}) * x, (1, X), (3, X)),
    "counts": (counts, (N,), (np.array([1, 1, 2]),)),
    "pow": (lambda n: pow(n, 2, 5), (7,), (8,)),
    "digits of floats": (lambda x: round(x, 2), (2.675,), (1.005,)),
    "digits of integers": (lambda n: round(n, -1), (25,), (35,)),
    "bit_length": (lambda n: n.bit_length() + n.bit_count(), (37,), (5,)),
    "to_bytes": (lambda n: list(n.to_bytes(2, "big")), (300,), (301,)),
    "ratio": (lambda n: n.as_integer_ratio()[0] + n.numerator + n.denominator, (3,), (4,)),
    "is_integer": (lambda x: x if x.is_integer() else -x, (2.0,), (2.5,)),
    "is_integer of NumPy's": (lambda x: x[0].is_integer(), (X,), (X * 2,)),
    "item": (lambda x: (x[0].item() * 2, x.item(1), x.reshape(3, 1).item(2, 0)), (X,), (X * 2,)),
    "item of integers": (lambda x: (x.sum().item(), x.item(1)), (N,), (N * 2,)),
    "item of the only integer": (lambda x: x[:1, None].item(), (N,), (N,)),
    "item of complex": (lambda x: (x * 1j).sum().item(), (X,), (X * 2,)),
    "tolist": (lambda x: x.reshape(3, 1).tolist(), (X,), (X * 2,)),
    "a text of truth values": (lambda x: f"{(x > 1).tolist()} {x[0] > 1}", (X,), (X * 2,)),
    "the class of truth values": (lambda x: type((x > 1).tolist()[0]) is bool and x, (X,), (X,)),
    "tolist of integers": (lambda x: (x.tolist(), (x > 1).tolist()), (N,), (N - 1,)),
    "a list": (lambda x: sum(v * v for v in x.tolist() if v > 0), (X,), (X * 2,)),
    "a format": (lambda n: f"{n:03d}" == "007" and n, (7,), (8,)),
    "a text": (lambda n, x: {"w1": x, "w2": 2 * x}[f"w{n}"] * len(str(n)), (1, X), (2, X)),
    "a format of a float": (lambda x: f"{x:.1f}" == "2.5" and x, (2.5,), (2.75,)),
    "a text by %": (lambda x: ("%.1f" % x[0]) == "0.5" and x, (X,), (X * 2,)),  # noqa: UP031
    "a text by format": (lambda x: "{:.1f}".format(x[0]), (X,), (X * 2,)),  # noqa: UP032
    "pow of a modulus": (lambda n: pow(3, n, 5) + pow(n, 3, 7), (2,), (3,)),
}


@in_one_test
@pytest.mark.parametrize("function, first, second", PROTOCOLS.values(), ids=PROTOCOLS)
def test_protocols_of_python_numbers_are_recorded_or_guarded(function, first, second):
    program, jitted = lt.trace(function, *first), lt.jit(function)

    assert_same(function(*first), program(*first))
    for args in (first, second, first):
        assert_same(function(*args), jitted(*args))
    with contextlib.suppress(lt.GuardError):
        assert_same(function(*second), program(*second))


WINDOWS: dict = {}


def windowed(x, n):
    if n not in WINDOWS:
        WINDOWS[n] = np.hanning(n)
    return x * WINDOWS[n].sum()


@pytest.mark.parametrize("record", [lt.trace, lambda f, x, n: lt.grad(f)(x, n)])
def test_keys_that_a_recording_leaves_in_a_dict_are_numbers(record):
    WINDOWS.clear()
    expected = [windowed(2.0, n) for n in (5, 6)]
    WINDOWS.clear()

    record(windowed, 2.0, 5)
    record(windowed, 2.0, 5)
    record(windowed, 2.0, np.int64(6))

    assert [windowed(2.0, n) for n in (5, 6)] == expected
    assert lt.trace(windowed, 2.0, 5)(3.0, 5) == expected[0] * 1.5
    assert repr(list(WINDOWS)) == "[5, np.int64(6)]"
    assert WINDOWS == {5: WINDOWS[5], 6: WINDOWS[6]}
    with pytest.raises(lt.EscapedTracerError):
        next(iter(WINDOWS)) + 1


def test_an_item_has_a_derivative_and_is_promoted_weakly():
    x = X.astype(np.float32)

    assert_same(2 * X, lt.grad(lambda x: sum(v * v for v in x.tolist()))(X))
    assert np.float32 == lt.trace(lambda x: x[0].item() * x, x).ret.args[0].type.dtype
    with pytest.raises(ValueError, match="size 1"):
        lt.trace(lambda x: x.item(), X)


KEYS = {
    "a set": lambda x: len({x, 1.5, 2.0}),
    "a dict": lambda x: {x: 2 * x, 3.0: x}[1.5 if x == 1.5 else x],
    "a dict as a result": lambda x: {x: 2 * x},
    "a complex key": lambda x: {complex(x, 1.0): x}[complex(x, 1.0)],
    "unique elements": lambda x: sorted({x * y for y in (1.0, 2.0, 1.0)}),
    "a ratio": lambda x: x * x.as_integer_ratio()[1],
    "digits": lambda x: (x.hex(), x),
}


@pytest.mark.parametrize("function", KEYS.values(), ids=KEYS)
def test_floats_are_keys_with_a_guard(function):
    program, jitted = lt.trace(function, 1.5), lt.jit(function)

    assert_same(function(1.5), program(1.5))
    with pytest.raises(lt.GuardError):
        program(2.5)
    for x in (1.5, 2.5, -0.0, 1.5):
        assert_same(function(x), jitted(x))


def test_an_array_is_no_key():
    with pytest.raises(TypeError, match="unhashable type"):
        lt.trace(lambda x: {x: 1}, X)


# ---- attributes ----

KNOWN = [
    *("shape", "ndim", "size", "dtype", "T", "sum", "mean", "astype", "item", "tolist", "copy"),
    *("flat", "real", "imag", "conjugate", "hex", "value", "is_integer", "bit_length", "at"),
    *("type", "replace", "numerator", "__len__", "__iter__", "__getitem__", "__index__"),
]
DUCKS = {
    "hasattr": lambda x: [name for name in KNOWN if hasattr(x, name)],
    "of classes": lambda x: [n for n in ("__call__", "__name__", "__mro__") if hasattr(x, n)],
    "getattr": lambda x: (getattr(x, "shape", None), getattr(x, "ndim", -1)),
    "a shape": lambda x: x.shape[0] if hasattr(x, "shape") and x.shape else 1,
    "iterables": lambda x: [isinstance(x, k) for k in (Iterable, Sized, (list, Sequence))],
    "numbers": lambda x: [isinstance(x, k) for k in (numbers.Number, numbers.Integral, float)],
    "a list": lambda x: [*x] if hasattr(x, "__iter__") and np.ndim(x) else [x],
}
TRIED = {
    "sum": lambda x: x.sum(),
    "std": lambda x: x.std(),
    "astype": lambda x: x.astype(int),
    "shape": lambda x: x.shape,
    "dtype": lambda x: x.dtype.name,
    "an item": lambda x: x[0],
    "a length": len,
    "iteration": list,
    "list minus x": lambda x: [1.0, 2.0] - x,
    "list times x": lambda x: [1.0, 2.0] * x,
    "x minus tuple": lambda x: x - (1.0,),
    "tuple of x": lambda x: (x, 1.0) / x,
    "value": lambda x: x.value,
    "bit_length": lambda x: x.bit_length(),
    "hex": lambda x: x.hex(),
    "as_integer_ratio": lambda x: x.as_integer_ratio(),
    "numerator": lambda x: x.numerator,
}


@in_one_test
@pytest.mark.parametrize("function", DUCKS.values(), ids=DUCKS)
@pytest.mark.parametrize("x", [1.5, 3, 1j, np.float64(2.0), np.int32(3), np.ones(2), np.array(3.0)])
def test_attributes_are_those_of_the_value(function, x):
    assert_same(function(x), lt.trace(function, x)(x))
    assert_same(function(x), lt.jit(function)(x))


@in_one_test
@pytest.mark.parametrize("function", TRIED.values(), ids=TRIED)
@pytest.mark.parametrize("x", [1.5, 3, 1j, np.float64(2.0), np.int32(3)])
def test_an_attribute_that_the_value_lacks_raises_as_without_a_trace(function, x):
    def tried(x):
        try:
            return function(x)
        except (AttributeError, TypeError, IndexError) as error:
            return next(k.__name__ for k in KINDS if isinstance(error, k))

    assert_same(tried(x), lt.trace(tried, x)(x))
    assert_same(tried(x), lt.jit(tried)(x))


KINDS = (AttributeError, TypeError, IndexError)


@pytest.mark.parametrize(
    "convert",
    [lambda x: float(x), lambda x: complex(x), lambda x: math.sqrt(x), lambda x: int(x)],  # noqa: PLW0108
)
def test_arrays_of_one_element_are_converted_as_numpy_converts_them(convert):
    """NumPy 2.4 raises an error where earlier versions warn."""

    def tried(x):
        try:
            return convert(x)
        except TypeError:
            return -1.0

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in (np.ones(1), np.ones((1, 1)), np.array(1.0)):
            assert_same(tried(x), lt.trace(tried, x)(x))


def test_lists_with_traced_elements_are_operands():
    def f(x):
        parts = [x[0], 2.0, x[1]]
        return parts - np.max(x), x * parts, [parts, parts] / x, (x[0], 1.0, 1.0) - x[1:2]

    assert_same(f(X), lt.trace(f, X)(X))
    assert_same(np.array([1.0, 0.0, 0.0]), lt.grad(lambda x: ([x[0], 2.0] - np.ones(2)).sum())(X))


@functools.lru_cache
def factorial(n):
    """n!"""
    return n * factorial(n - 1) if n > 1 else 1


@functools.lru_cache
def half(x):
    """x / 2"""
    return x / 2


def test_a_function_with_a_cache_is_called_again_in_each_recording():
    factorial.cache_clear()
    f = lt.jit(lambda x, n: half(x) * factorial(n))

    assert [3.0 * 6, 3.0 * 24, 3.0 * 6, 4.0 * 2] == [f(6.0, 3), f(6.0, 4), f(6.0, 3), f(8.0, 2)]
    assert 0 == factorial.cache_info().currsize
    assert 3.0 == lt.grad(lambda x: half(x) * factorial(3))(4.0)
    assert 3 == factorial.cache_info().currsize


class Log:
    """What is written, as a file or a logger keeps it."""

    def __init__(self):
        self.lines = []

    def info(self, text):
        self.lines.append(text)


def report(x, log, n):
    loss = (x * x).sum()
    for i in range(2):
        log.info(f"{n:d} {loss:.2f}")
        log.info("%d %.2f" % (i, loss))  # noqa: UP031
        print("{:.2f}".format(loss), f"loss {loss:.3f}")  # noqa: UP032
    return loss * 2


def test_texts_that_are_printed_have_no_guard(capsys):
    log = Log()

    program = lt.trace(lambda x, n: report(x, log, n), X, 3)

    assert "guard" not in lt.dumps(program)
    assert log.lines == ["3 7.56", "0 7.56", "3 7.56", "1 7.56"]
    assert capsys.readouterr().out == "7.56 loss 7.562\n" * 2
    assert program(2 * X, 4) == report(2 * X, log, 4)


def test_a_format_without_a_value_is_refused():
    for text in (lambda x: f"{x:.2f}", lambda x: "%f" % x, lambda n: f"{n:d}"):  # noqa: UP031
        with pytest.raises(lt.TraceError, match=r"letir\.debug\.print"):
            lt.trace(text, 2.0, abstract=True)


def test_the_format_of_an_array_is_numpys_error():
    with pytest.raises(TypeError, match="unsupported format string"):
        lt.trace(lambda x: f"{x:.2f}", X)


@in_one_test
@pytest.mark.parametrize(
    "text",
    [str, repr, "{}".format, lambda x: f"{x}", lambda x: ",".join(map(str, [x, x]))],
)
@pytest.mark.parametrize("x", [2.5, np.float64(2.5), np.array([1.0, -0.0]), np.array([1j, np.nan])])
def test_a_string_that_is_not_printed_is_guarded(text, x):
    def f(x):
        return 0 * x + len(text(x))

    program, jitted, other = lt.trace(f, x), lt.jit(f), -x / 3

    for value in (x, other, x):
        assert_same(f(value), jitted(value))
    assert_same(f(x), program(x))
    with pytest.raises(lt.GuardError):
        program(other)


def test_a_printed_string_that_is_also_a_result_is_guarded():
    def f(x):
        out = io.StringIO()
        print(f"{x[0]:.2f}", file=out)
        return x * 2, out.getvalue()

    jitted = lt.jit(f)

    for x in (X, 2 * X, X):
        assert_same(f(x)[0], jitted(x)[0])
        assert f(x)[1] == jitted(x)[1]
    with pytest.raises(lt.GuardError):
        lt.trace(f, X)(2 * X)


def test_arguments_are_unchanged_when_a_printed_number_that_is_a_result_differs():
    def f(x, y):
        print(f"{x[0]:.2f}", file=io.StringIO())
        y *= 2
        return x, "text"

    program, jitted = lt.trace(f, X, np.ones(2)), lt.jit(f)
    y = np.ones(2)
    with pytest.raises(lt.GuardError):
        program(2 * X, y)
    np.testing.assert_array_equal([1.0, 1.0], y)
    for value in (X, 2 * X, 3 * X):
        y = np.ones(2)
        jitted(value, y)
        np.testing.assert_array_equal([2.0, 2.0], y)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, z: 1j * x[0],
        lambda x, z: (2 + 1j) - x.sum(),
        lambda x, z: 1j ** x[1],
        lambda x, z: z * x[0],
        lambda x, z: z / np.float64(3) + z,
        lambda x, z: (1j * x[0]) * x.astype(np.float32),
        lambda x, z: x[0] * 1j,
        lambda x, z: 1j * np.array(x[0]),
        lambda x, z: 1j * x.astype(np.float32)[0],
        lambda x, z: z * np.multiply(x[0], 1j),
    ],
)
def test_a_python_complex_number_takes_a_double_precision_scalar_as_a_float(f):
    x, z = np.array([2.0, -1.0]), 1 + 2j

    assert_same(f(x, z), lt.trace(f, x, z)(x, z))
    assert_same(f(x, z), lt.jit(f)(x, z))


@pytest.mark.parametrize(
    "number",
    [
        lambda x, y: complex(x, y),  # noqa: PLW0108
        lambda x, y: np.array([x + 1j * y])[0],
        lambda x, y: np.complex64(complex(x, y)),
    ],
)
def test_the_absolute_value_of_a_complex_number_is_that_of_the_scalar(number):
    def f(x, y):
        return abs(number(x, y))

    for x, y in np.random.default_rng(0).normal(size=(40, 2)).tolist():
        assert_same(f(x, y), lt.trace(f, 1.0, 2.0)(x, y))
        assert_same(f(x, y), lt.jit(f, exact=True)(x, y))
    assert lt.grad(f, argnums=(0, 1))(0.0, 0.0) == (0.0, 0.0)


@pytest.mark.parametrize("n", [2, -1, 0, 3])
def test_an_integer_power_of_a_complex_array_is_that_of_the_operator(n):
    def f(z, n):
        return z**n

    z = X * (1.3 - 0.7j)
    program, compiled = lt.trace(f, z, n), lt.jit(f, exact=True)

    assert_same(f(z, 5), compiled(z, 5))
    assert_same(f(z, n), compiled(z, n))
    assert_same(f(z * 1.7, n), program(z * 1.7, n))
    with pytest.raises(lt.GuardError):
        program(z, 7)


def test_a_string_that_numpy_makes_of_an_array_is_guarded():
    def f(x):
        return 0 * x + len(np.array2string(x, precision=2))

    program = lt.trace(f, X)

    assert_same(f(X), program(X))
    with pytest.raises(lt.GuardError):
        program(X / 3)


BOOLEANS = {
    "item of a list": lambda b: [10.0, 20.0][b],
    "item of a tuple": lambda b: ("low", "high")[b],
    "repeats": lambda b: "x" * b + "y",
    "real": lambda b: b.real,
    "imag": lambda b: b.imag,
    "conjugate": lambda b: b.conjugate(),
    "numerator": lambda b: b.numerator,
    "round": lambda b: (round(b), round(b, 1)),
    "range": lambda b: list(range(b)),
    "index": operator.index,
}


@pytest.mark.parametrize("f", BOOLEANS.values(), ids=BOOLEANS)
def test_booleans_of_python_are_integers(f):
    def of_comparison(s):
        return f(s > 1.0)

    program, jitted = lt.trace(of_comparison, 1.5), lt.jit(of_comparison)

    for s in (1.5, 2.0, 0.5):
        expected = of_comparison(s)
        results = [jitted(s)]
        if s > 1.0:
            results.append(program(s))
        for result in results:
            assert expected == result
            assert type(expected) is type(result)


def test_booleans_of_numpy_are_no_integers():
    with pytest.raises(TypeError):
        lt.trace(lambda x: [10.0, 20.0][x[0] > 1], np.ones(2))
    with pytest.raises(TypeError):
        lt.trace(lambda x: round(x[0] > 1), np.ones(2))


OF_CLASSES = {
    "bool_ of a comparison": lambda a: np.bool_(a > 1) + np.bool_(a > 0),
    "not of bool_": lambda a: ~np.bool_(a > 1),
    "one without bool_": lambda a: 1 - np.bool_(a > 1),
    "an imaginary part, rounded": lambda a: round(a.imag, 1),
    "a remainder of an array": lambda a: math.remainder(np.array(2.5), 1) + a,
    "math of an array alone": lambda a: (math.remainder(np.array(2.5), 1), a),
}


def added_to_an_imaginary_part(a):
    part = a.imag
    part += 1
    return part, a


@in_one_test
@pytest.mark.parametrize("a", [2.0, np.float32(0.5), np.float64(2.0)])
@pytest.mark.parametrize("f", [*OF_CLASSES.values(), added_to_an_imaginary_part])
def test_numbers_have_the_class_and_value_that_numpy_gives(f, a):
    assert_same(f(a), lt.trace(f, a)(a))
    assert_same(f(a), lt.jit(f)(a))


@pytest.mark.parametrize("convert", [lambda z: np.float32(z) + 1, lambda z: +np.int8(z)])
def test_a_complex_number_of_python_is_no_operand_of_a_real_class(convert):
    def converted(z):
        try:
            return convert(z)
        except TypeError:
            return z * 2

    assert_same(2 + 4j, lt.jit(converted)(1 + 2j))
    assert_same(2 + 4j, lt.trace(converted, 1 + 2j)(1 + 2j))


@in_one_test
@pytest.mark.parametrize("real", [1.5, -0.0, True, 1 - 0j, complex(-0.0, -1), np.float64(1), 1j])
@pytest.mark.parametrize("imag", [-0.0, 1, 1j, complex(-0.0, -0.0), np.float64(-0.0), np.True_])
def test_a_complex_number_of_two_parts_is_pythons(real, imag):
    def made(a, b):
        return complex(a, b)

    assert repr(made(real, imag)) == repr(lt.trace(made, real, imag)(real, imag))


@in_one_test
@pytest.mark.parametrize("imag", [np.float32(0.5), np.complex64(2j), np.array(0.5), np.array(2j)])
@pytest.mark.parametrize("real", [1.5, np.float16(2), np.complex64(1 + 1j), np.array(-1 - 2j)])
def test_only_pythons_complex_numbers_have_a_part_in_the_real_part_of_another(real, imag):
    def with_real(a):
        return complex(a, 2j), complex(a, np.float32(-0.0))

    def with_imaginary(b):
        return complex(1.5, b)

    assert repr(with_real(real)) == repr(lt.trace(with_real, real)(real))
    if imag.dtype.kind == "c":
        with pytest.raises(lt.DTypeError, match="a complex number is not real"):
            lt.trace(with_imaginary, imag)
    else:
        assert repr(with_imaginary(imag)) == repr(lt.trace(with_imaginary, imag)(imag))


@pytest.mark.parametrize("number", [np.uint8(3), np.int16(3), np.uint64(3), 3])
def test_a_list_of_integers_has_the_dtype_of_its_elements(number):
    def functions(n):
        return np.sqrt((n, n)), np.add([n, n], [1, n]), np.negative([n, n])

    program = lt.trace(functions, number)

    assert_same(functions(number), program(number))
    assert_same(functions(number), lt.jit(functions)(number))
    assert_same(functions(number + number), program(number + number))


class Kernel:
    """Its matrices are kept by points, as Gaussian processes do."""

    def __init__(self, scale):
        self.scale = scale

    @functools.lru_cache(maxsize=8)  # noqa: B019  as users write it
    def matrix(self, points):
        x = np.array(points)
        return np.exp(-((x[:, None] - x[None]) ** 2) / self.scale)


def test_a_method_with_a_cache_takes_traced_values():
    kernel, original = Kernel(2.0), vars(Kernel)["matrix"]

    def f(x):
        return kernel.matrix(tuple(x)).sum() + kernel.matrix(tuple(x.tolist()))[0, 1]

    x = np.array([0.3, 0.6, -0.2])
    fn, jitted = lt.trace(f, x), lt.jit(f)

    for y in (x, 2 * x, x):
        assert_same(f(y), fn(y))
        assert_same(f(y), jitted(y))
    check_grads(f, (x,))
    assert vars(Kernel)["matrix"] is original
    assert np.ndarray is type(kernel.matrix(tuple(x.tolist())))


def test_a_cached_method_without_traced_values_keeps_its_results():
    kernel = Kernel(2.0)
    Kernel.matrix.cache_clear()
    jitted = lt.jit(lambda x: x @ kernel.matrix((1.0, 2.0)))

    jitted(np.ones(2)), jitted(np.ones((3, 2)))

    assert 1 == Kernel.matrix.cache_info().misses
    assert np.ndarray is type(kernel.matrix((1.0, 2.0)))


@runtime_checkable
class Summable(Protocol):
    """It has a method that arrays and NumPy's scalars have, and Python's numbers do not."""

    def sum(self): ...


@runtime_checkable
class Shaped(Protocol):
    """It has an attribute of arrays."""

    shape: tuple


def test_protocols_see_the_classes_of_the_values():
    def f(x, s):
        kinds = [isinstance(v, k) for v in (x, x[0], s, [s]) for k in (Summable, Shaped)]
        return sum(2**i * s for i, is_kind in enumerate(kinds) if is_kind)

    assert 15 * 0.5 == f(X, 0.5) == lt.trace(f, X, 0.5)(X, 0.5) == lt.jit(f)(X, 0.5)
    assert 15.0 == lt.grad(f, argnums=1)(X, 0.5)


def test_a_logger_formats_the_number_at_the_time_of_recording(caplog):
    def f(x):
        y = x * 2
        logging.getLogger("user").warning("y = %.3f, %s", y, "text")
        return y * y

    fn = lt.trace(f, 0.5)

    assert 36.0 == fn(3.0)
    assert 8.0 == lt.grad(f)(1.0)
    assert ["y = 1.000, text", "y = 2.000, text"] == [r.getMessage() for r in caplog.records]


def printed_and_read(x):
    buffer = io.StringIO()
    print(x, f"{x:.1f}", file=buffer)
    return float(buffer.getvalue().split()[-1]) * x


def written_and_read(x):
    with io.StringIO() as buffer:
        buffer.write("%.2f" % x)  # noqa: UP031
        return len(buffer.getvalue()) * x


def show(x):
    print("value", x)


def caught_output(x):
    buffer = io.StringIO()
    with contextlib.redirect_stdout(buffer):
        show(x)
    return len(buffer.getvalue()) * x


@pytest.mark.parametrize("f", [printed_and_read, written_and_read, caught_output])
def test_texts_in_buffers_that_the_function_reads_are_guarded(f):
    fn, jitted = lt.trace(f, 0.5), lt.jit(f)

    assert f(0.5) == fn(0.5)
    with pytest.raises(lt.GuardError):
        fn(-10.25)
    for x in (0.5, -10.25, 0.5):
        assert f(x) == jitted(x)


class Scales:
    """Class and static methods and a property with caches."""

    @staticmethod
    @functools.cache
    def tripled(s):
        return s * 3.0

    @classmethod
    @functools.cache
    def halved(cls, s):
        return s * 0.5

    @property
    @functools.lru_cache(maxsize=1)  # noqa: B019  as users write it
    def steps(self):
        return np.arange(3) * 1.0


def cached_functions():
    """Functions that call others with caches, and the calls whose results the caches keep."""

    @functools.cache
    def doubled(s):
        return s * 2.0

    @functools.cache
    def powers(n):
        return np.arange(n) ** 2.0

    class Table:
        @functools.lru_cache(maxsize=8)  # noqa: B019  as users write it
        def item(self, s):
            return s * 3.0

        @staticmethod
        @functools.cache
        def shared(s):
            return s * 4.0

    scales, space = Scales(), types.SimpleNamespace(f=functools.cache(lambda s: s * 7.0))
    product = functools.partial(functools.cache(lambda a, b: a * b), 2.0)
    table, held = Table(), {"shifted": functools.lru_cache(lambda s: s + 1.0)}
    return {
        "a number": (lambda s: doubled(s) + 1.0, doubled),
        "an array": (lambda s: powers(3) * s, lambda s: powers(3)),
        "a method": (lambda s: table.item(s) * s, table.item),
        "a static method": (lambda s: table.shared(s) * s, table.shared),
        "a static method of a module's class": (lambda s: Scales.tripled(s) * s, Scales.tripled),
        "a class method": (lambda s: scales.halved(s) * s, Scales.halved),
        "a property": (lambda s: (scales.steps * s).sum(), lambda s: scales.steps),
        "a partial": (lambda s: product(s) + s, product),
        "in a namespace": (lambda s: space.f(s) * s, space.f),
        "in a dict": (lambda s: held["shifted"](s) * s, held["shifted"]),
    }


@pytest.mark.parametrize("name", cached_functions())
@pytest.mark.parametrize("record", [lt.jit, lt.grad, lambda f: lt.trace(f, 2.5), lt.value_and_grad])
def test_caches_of_functions_in_functions_keep_no_traced_values(name, record):
    f, kept = cached_functions()[name]
    if name != "an array" or record is lt.jit:
        for s in (2.5, 3.0, 2.5):
            with contextlib.suppress(lt.GuardError):
                record(f)(s)

    for s in (2.5, 3.0):
        assert type(kept(s)) in (float, np.ndarray)
        assert_same(cached_functions()[name][1](s), kept(s))
        assert_same(cached_functions()[name][0](s), f(s))


class Grid:
    """A table that is made when it is first read, and one that depends on an attribute."""

    def __init__(self, step):
        self.step, self.parts = step, [{"offset": step}]

    @functools.cached_property
    def points(self):
        result = np.zeros(3)
        result[1:] = np.arange(2.0) + 1
        return result

    @functools.cached_property
    def scaled(self):
        return np.array([self.step, 2.0]) * self.parts[0]["offset"]


@pytest.mark.parametrize("transform", [lambda f: lt.trace(f, 1.5), lt.jit, lt.grad])
def test_cached_properties_of_objects_from_outside_keep_ordinary_arrays(transform):
    grid = Grid(0.5)

    def f(x):
        return (grid.points * x).sum() + grid.scaled[0]

    value = transform(f)(1.5)

    assert type(grid.points) is np.ndarray and type(grid.scaled) is np.ndarray
    assert bytes(memoryview(grid.points)) == np.array([0.0, 1.0, 2.0]).tobytes()
    assert value == (3.0 if transform is lt.grad else f(1.5))


class Reading(tuple):
    """A tuple whose iteration reads a cached property, as that of ``platform.uname()`` does."""

    @functools.cached_property
    def scale(self):
        return 2.0

    def __iter__(self):
        return (item * self.scale for item in super().__iter__())


@pytest.mark.parametrize("transform", [lambda f: lt.trace(f, 1.5), lt.jit, lt.grad])
def test_iterations_may_read_cached_properties(transform):
    def f(x):
        return x * sum(Reading((1.0, 3.0)))

    assert transform(f)(1.5) == (8.0 if transform is lt.grad else 12.0)


def test_cached_properties_of_objects_that_hold_traced_values_are_recorded():
    def f(grid, x):
        inner = Grid(x)
        return (grid.scaled * x).sum() + (inner.scaled * grid.points[:2]).sum()

    program = lt.trace(f, Grid(2.0), 1.5)

    assert_same(f(Grid(3.0), 2.5), program(Grid(3.0), 2.5))

"""Recorded functions compute what NumPy does, or raise a named error, for values of every kind.

Results have NumPy's bits, class, dtype and memory order and share memory with the argument where
NumPy's do; errors are of NumPy's class, or letir's own; warnings are of the same kind.
"""

import re
import warnings

import numpy as np
import pytest

import letir as lt
from letir.ast.pytrees import flatten
from letir.testing import assert_same
from tests.each_sample import in_one_test
from tests.numpy.value_cases import EXPRESSIONS, INPUTS

SAMPLE = 151  # one of so many inputs without the marker "slow"


def traced(f, make):
    """``f`` as a function that records a program and runs it by the evaluator."""

    def run(x):
        return lt.run_forward(lt.trace(f, make()), x)

    return run


def compiled(f, make):
    """``f`` as a function that records a program and compiles it."""

    def run(x):
        plan = lt.compile(lt.trace(f, make()), exact=True)
        return plan(x)

    return run


def outcome(f, x):
    """(result, error, warnings) of a call."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", ".* was compiled")  # of inputs of many kinds
        warnings.filterwarnings("ignore", "numpy.fix is deprecated")  # since NumPy 2.5
        warnings.filterwarnings("ignore", "jit calls .* as Python")  # of functions such as float
        try:
            result, error = f(x), None
        except Exception as raised:
            result, error = None, raised
    return result, error, {warning_kind(w) for w in seen}


def warning_kind(warning):
    """The class and text of a warning, without the operation in which it was found: passes write
    x ** -1 as 1 / x.
    """
    return warning.category, re.sub(r" encountered in .*", "", str(warning.message), flags=re.S)


def memory_order(array):
    """The axes with more than one element, from the largest stride to the smallest."""
    steps = [-abs(step) for step, n in zip(array.strides, array.shape, strict=True) if n > 1]
    return tuple(np.argsort(steps, kind="stable"))


def native(tree):
    """The leaves of a result; arrays in native byte order, which is the order of results [B11]."""
    leaves = flatten(tree)[0]
    return [
        leaf.astype(leaf.dtype.newbyteorder("="), order="K")
        if isinstance(leaf, np.ndarray) and not leaf.dtype.isnative
        else leaf
        for leaf in leaves
    ]


def is_named(error, expected):
    """Whether an error is letir's, or of the public class that NumPy raises."""
    if isinstance(error, lt.LetirError) or "64 bits in which Python integers" in str(error):
        return True
    names = ("_", "UFunc")  # NumPy's private classes
    kinds = type(expected).__mro__
    return isinstance(error, next(k for k in kinds if not k.__name__.startswith(names)))


def difference(expected, found, x, y):
    """How an outcome for the argument ``y`` differs from the expected one for ``x``, or None."""
    (result, error, told), (other, other_error, other_told) = expected, found
    if error is not None or other_error is not None:
        is_same = other_error is not None and is_named(other_error, error)
        return None if is_same else f"raised {other_error!r}, expected {error!r}"
    try:
        assert_same(native(result), native(other))
        assert_same(native(x), native(y))
    except AssertionError as differ:
        return str(differ)
    for a, b in zip(flatten(result)[0], flatten(other)[0], strict=True):
        if type(a) is not type(b):
            return f"{type(b)}, expected {type(a)}"
        if isinstance(a, np.ndarray):
            if memory_order(a) != memory_order(b):
                return f"strides {b.strides}, expected {a.strides}"
            if isinstance(x, np.ndarray) and np.shares_memory(a, x) != np.shares_memory(b, y):
                return f"shares the argument's memory: {np.shares_memory(b, y)}"
    if are_told_alike(x, told, other_told):
        return None
    return f"warnings {other_told}, expected {told}"


def are_told_alike(x, told, other_told):
    """Whether warnings are NumPy's.

    Programs compute scalars as arrays: NumPy's operators on integer scalars warn of overflow, and
    comparisons of its complex scalars do not warn of nan. Python's operators never warn.
    """
    if isinstance(x, np.ndarray):
        return told == other_told
    overflow = {(RuntimeWarning, "overflow")} if np.asarray(x).dtype.kind in "biu" else set()
    is_inexact = np.asarray(x).dtype.kind in "fc"
    return told - overflow <= other_told and (is_inexact or other_told - overflow <= told)


def differences(name, inputs):
    """The differences of a function for some inputs, one a line."""
    f = EXPRESSIONS[name]
    jitted, found = lt.jit(f), []
    for text in inputs:
        make = INPUTS[text]
        x = make()
        expected = outcome(f, x)
        runs = {
            "trace": traced(f, make),
            "compile": compiled(f, make),
            "jit": jitted,
        }
        for how, run in runs.items():
            y = make()
            told = difference(expected, outcome(run, y), x, y)
            is_known = (name, text.partition(", ")[2]) in KNOWN or is_complex_product(name, x)
            if told and not is_known:
                found.append(f"{name} of {text}, by {how}: {told}")
    return found


def is_complex_product(name, x):
    """Whether a function multiplies a complex scalar, see ``_PRODUCTS``."""
    return "*" in name and isinstance(x, np.complexfloating)


# (expression, layout): what differs, and why
_NATIVE = "no copy is made: in a trace the dtype is native already"
_ORDER = "guards of memory order, and keys of jit, do not tell broadcast arrays from spaced ones"
_PRODUCTS = "products of complex scalars are computed, and warn, as those of arrays"
_POWERS = "powers of floating-point scalars are rounded as those of arrays"
KNOWN = {
    ("np.select", "largest scalar"): _PRODUCTS,
    **{("2 ** (x % 7)", layout): _POWERS for layout in ("0-d", "scalar")},
    **{(f"np.{name}_like", "broadcast"): _ORDER for name in ("zeros", "ones", "full")},
    ("np.array of a list", "broadcast"): _ORDER,
    ("np.polyval", "broadcast"): _ORDER,
    ("np.asarray('f2')", "the other byte order"): _NATIVE,
    ("np.float32(x)", "the other byte order"): _NATIVE,
    ("np.int64(x)", "the other byte order"): _NATIVE,
}


@in_one_test
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_a_sample_of_values_is_computed_as_by_numpy(name):
    first = list(EXPRESSIONS).index(name) * 5 % SAMPLE  # other inputs for the next function
    found = differences(name, list(INPUTS)[first::SAMPLE])

    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_all_values_are_computed_as_by_numpy(name):
    found = differences(name, INPUTS)

    assert not found, "\n".join(found)

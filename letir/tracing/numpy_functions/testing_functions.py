"""The assertions of ``numpy.testing``, each recorded as a guard on its outcome.

The assertion itself sees the values of the recording. The guard is the condition that it tests,
written in operations; where there is no such condition, or it has another outcome, each value is
guarded.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.tracing.manual import concrete
from letir.tracing.operands import traced_or_array
from letir.tracing.stand_ins import is_recording
from letir.tracing.trace_state import ABSENT


def _both_nan(x: Any, y: Any) -> Any:
    is_inexact = x.dtype.kind in "fc" and y.dtype.kind in "fc"
    return np.isnan(x) & np.isnan(y) if is_inexact else False


def _are_close(x: Any, y: Any, rtol: float = 1e-7, atol: float = 0, equal_nan=True, **_) -> Any:
    return np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan)


def _are_equal(x: Any, y: Any, *_, **__) -> Any:
    return (x == y) | _both_nan(x, y)


def _are_almost_equal(x: Any, y: Any, decimal: int, *_, **__) -> Any:
    return (abs(x - y) < 1.5 * 10.0 ** (-decimal)) | _are_equal(x, y)


def _scalars_are_equal(x: Any, y: Any, *_, **__) -> Any:
    if x.shape or y.shape or {x.dtype.kind, y.dtype.kind} != {"f"}:
        return _are_equal(x, y)
    return _are_equal(x, y) & ((x != 0) | (np.signbit(x) == np.signbit(y)))


_CONDITIONS: dict[str, Callable] = {
    "assert_allclose": _are_close,
    "assert_array_equal": _are_equal,
    "assert_equal": _scalars_are_equal,
    "assert_almost_equal": lambda x, y, decimal=7, *_, **__: _are_almost_equal(x, y, decimal),
    "assert_array_almost_equal": lambda x, y, decimal=6, *_, **__: _are_almost_equal(x, y, decimal),
    "assert_array_less": lambda x, y, *_, **__: (x < y) | _both_nan(x, y),
}


def assertion_stand_in(original: Callable) -> Callable:
    """The stand-in for an assertion of ``numpy.testing``."""
    condition = _CONDITIONS.get(original.__name__)

    @functools.wraps(original)
    def stand_in(*args, **kwargs):
        leaves: list[Any] = []
        concrete_call = _each_traced(
            (args, kwargs), lambda x: leaves.append(x) or x.concrete_value()
        )
        if not is_recording() or not leaves:
            return original(*args, **kwargs)
        if any(x.concrete_value() is ABSENT for x in leaves):
            concrete_call = _each_traced((args, kwargs), concrete)  # raises: there is no value
        failure = None
        try:
            original(*concrete_call[0], **concrete_call[1])
        except AssertionError as error:
            failure = error
        if condition is None or not _is_guarded(condition, args, kwargs, failure is None):
            _each_traced((args, kwargs), concrete)
        if failure is not None:
            raise failure
        return None

    return stand_in


def _each_traced(tree: Any, convert: Callable[[Value], Any]) -> Any:
    """Nested lists, tuples and dicts with ``convert(x)`` in place of each traced value."""
    if isinstance(tree, Value):
        return convert(tree)
    if type(tree) is dict:
        return {key: _each_traced(item, convert) for key, item in tree.items()}
    if type(tree) in (list, tuple):
        return type(tree)([_each_traced(item, convert) for item in tree])
    return tree


def _is_guarded(condition: Callable, args: tuple, kwargs: dict, passes: bool) -> bool:
    """Guard the condition on the first two arguments; False if the assertion tests another."""
    if len(args) < 2 or any(not isinstance(x, int | float | bool) for x in args[2:]):
        return False
    x, y = args[:2]
    if dict in (type(x), type(y)) or _is_nested(x) or _is_nested(y):
        return False
    x, y = traced_or_array(x), traced_or_array(y)
    if x.shape != y.shape and x.shape and y.shape:
        return True  # it fails whatever the values are
    if not {x.dtype.kind, y.dtype.kind} <= set("biuf"):
        return False
    options = {name: value for name, value in kwargs.items() if name in _OPTIONS}
    holds = condition(x, y, *args[2:], **options)
    return bool(np.all(holds)) == passes


_OPTIONS = ("rtol", "atol", "equal_nan", "decimal")


def _is_nested(x: Any) -> bool:
    """Whether a list has items that are not numbers, which need not be of one shape."""
    return isinstance(x, list | tuple) and any(isinstance(item, list | tuple) for item in x)


LATE_BOUND["assertion_stand_in"] = assertion_stand_in

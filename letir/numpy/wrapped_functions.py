"""``Recorded``: a NumPy function that also takes lists with traced values."""

import functools
import operator
from collections import deque
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, cast

import numpy as np
from attrs import frozen

from letir.ast.builder import Value
from letir.numpy.array_creation import as_traced_constant
from letir.tracing.numpy_functions.registry import CALLING_BACK, PLAIN
from letir.tracing.numpy_protocols.dispatch import recorder_of
from letir.tracing.operands import array_of_object, first_traced, stack_traced

# functions of lists of arrays, which may be lists themselves and differ in shape
_OF_LISTS = frozenset(
    [
        *(np.concatenate, np.stack, np.block, np.hstack, np.vstack, np.dstack, np.column_stack),
        *(np.select, np.ravel_multi_index, np.lexsort, np.linalg.multi_dot, np.histogramdd),
        *(np.trim_zeros, np.histogram2d, np.choose),
    ]
)
_OF_ARRAYS = frozenset([np.split])  # NumPy's takes no lists
_ARRAYS_OF_METHODS = {"reduce": 1, "accumulate": 1, "reduceat": 2}
METHODS = frozenset(["reduce", "accumulate", "reduceat", "outer", "at"])  # of ufuncs
_UFUNC = np.ufunc  # attributes of the module np are slow while a function is recorded
FUNCTIONS = (np.ufunc, type(np.concatenate), FunctionType, BuiltinFunctionType)


@frozen(eq=False)
class Recorded:
    """A NumPy function that also takes lists of traced values where it takes arrays."""

    function: Callable

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function: Any = self.function
        # the usual calls, without a search for lists
        if args and isinstance(args[0], Value):
            if isinstance(function, _UFUNC):
                if len(args) == 1:
                    return function(*args, **kwargs)
            elif recorder_of(function) is not None:
                return cast(Any, args[0]).numpy_call(function, args, kwargs)
        traced: Any = first_traced((*args, *kwargs.values()))
        if traced is None:
            if self.function in CALLING_BACK:
                return PLAIN[self.function](*args, **kwargs)
            arrays = tuple(map(array_of_object, args))
            if any(map(operator.is_not, arrays, args)):
                return self(*arrays, **kwargs)
            result = self.function(*args, **kwargs)
            return result if isinstance(self.function, np.ufunc) else _new_arrays(result, args)
        if isinstance(self.function, np.ufunc):
            return self.function(*map(stack_traced, args), **kwargs)
        if self.function in _OF_ARRAYS and type(args[0]) is list:
            return self.function(*args, **kwargs)  # raises NumPy's AttributeError
        is_recorded = recorder_of(self.function) is not None or self.function in PLAIN
        # other lists are shapes, axes or sections, unless they hold floating numbers
        if args and self.function not in _OF_LISTS and (is_recorded or type(args[0]) is list):
            rest = [stack_traced(x) if _holds_floats(x) else x for x in args[1:]]
            args = (stack_traced(args[0]), *rest)
        if is_recorded:
            return traced.numpy_call(self.function, args, kwargs)
        return self.function(*args, **kwargs)  # NumPy's protocol raises for the traced value

    # so that it is found in tables whose keys are NumPy's functions, and vice versa
    def __eq__(self, other: object) -> bool:
        return self.function is getattr(other, "function", other)

    def __hash__(self) -> int:
        return hash(self.function)

    def __getattr__(self, name: str) -> Any:
        # copy and pickle ask before `function` is set: looking it up would recurse
        if name == "function":
            raise AttributeError(name)
        result = getattr(self.function, name)
        return _wrap_ufunc_method(result) if name in METHODS else result


def _holds_floats(x: Any) -> bool:
    """Whether a list, tuple or deque holds traced numbers that are not integers."""
    if type(x) not in (list, tuple, deque):
        return False
    traced: Any = first_traced(x)
    return traced is not None and traced.dtype.kind in "fc"


def _new_arrays(result: Any, arguments: Any) -> Any:
    """A result, or the items of a tuple or list: new arrays as buffers of the active trace.

    Views of ``arguments`` arrays are returned unchanged.
    """
    if type(result) in (tuple, list):
        return type(result)([_new_arrays(item, arguments) for item in result])
    if isinstance(result, tuple) and hasattr(result, "_make"):  # the results of numpy.linalg
        return result._make([_new_arrays(item, arguments) for item in result])
    is_new = type(result) is np.ndarray and not _shares_memory(result, arguments)
    return as_traced_constant(result) if is_new else result


def _shares_memory(result: np.ndarray, arguments: Any) -> bool:
    """Whether an array shares memory with one in nested lists and tuples."""
    if isinstance(arguments, np.ndarray):
        return np.may_share_memory(result, arguments)
    return isinstance(arguments, tuple | list) and any(_shares_memory(result, x) for x in arguments)


def _wrap_ufunc_method(method: Callable) -> Callable:
    """A method of a ufunc that also takes lists of traced values."""

    count = _ARRAYS_OF_METHODS.get(method.__name__)  # further arguments are axes and dtypes

    @functools.wraps(method)
    def call(*args, **kwargs):
        arrays = [stack_traced(array_of_object(x)) for x in args[:count]]
        return method(*arrays, *args[len(arrays) :], **kwargs)

    return call


_wrapper_of = functools.cache(Recorded)  # one object a function: lnp.sin is lnp.sin


def wrap_function(value: Any) -> Any:
    """The object of letir.numpy for an object of NumPy: functions are wrapped in ``Recorded``."""
    return _wrapper_of(value) if isinstance(value, FUNCTIONS) else value


def forward_names(module: ModuleType) -> tuple[Callable, Callable]:
    """(``__getattr__``, ``__dir__``) of the module of letir.numpy that mirrors ``module``."""
    name = module.__name__.replace("numpy.lib.scimath", "numpy.emath")

    def getter(attribute: str):
        if not attribute.startswith("__"):  # doctest and copy ask modules for such names
            try:
                return wrap_function(getattr(module, attribute))
            except AttributeError:
                pass
        raise AttributeError(f"{name} has no {attribute!r}, and neither has letir.{name}")

    return getter, lambda: dir(module)

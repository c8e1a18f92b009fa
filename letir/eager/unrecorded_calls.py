"""NumPy calls on Variables that are not recorded: they compute with the arrays."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.eager.grad_mode import is_grad_enabled
from letir.eager.recorder import Recorder
from letir.errors import TraceError
from letir.tracing.source_locations import at_user

_REMEDY = (
    "compute with the Variable; x.detach() or x.numpy() is the value without its history,\n"
    "  letir.numpy.array([...]) makes an array of Variables; Variable(buffer) can be written to"
)

# functions whose results are not floating: no derivative is lost
DISCRETE = frozenset(
    [
        *(np.allclose, np.array_equal, np.array_equiv, np.isclose, np.iscomplex, np.isreal),
        *(np.argsort, np.argpartition, np.argwhere, np.nonzero, np.flatnonzero, np.count_nonzero),
        *(np.searchsorted, np.digitize, np.bincount, np.lexsort),
    ]
)


def must_be_recorded(value: Any) -> bool:
    """Whether a call with this argument (or a list that contains one) must be recorded."""
    if isinstance(value, list | tuple):
        return any(map(must_be_recorded, value))
    if not isinstance(value, Value):
        return False
    is_variable = isinstance(value, Recorder.variable)
    # tracers record everything
    return not is_variable or (value.requires_grad and is_grad_enabled())


def is_tracer(value: Any) -> bool:
    """Whether a value is traced (but not a Variable), or a list that contains such a value."""
    if isinstance(value, list | tuple):
        return any(map(is_tracer, value))
    return isinstance(value, Value) and not isinstance(value, Recorder.variable)


def unwrap_arrays(value: Any) -> Any:
    """The array of a Variable, also inside lists; other values unchanged."""
    if isinstance(value, list | tuple):
        return _with_items(value, map(unwrap_arrays, value))
    return value.array if isinstance(value, Recorder.variable) else value


def call_on_arrays(function: Callable, args: tuple, kwargs: dict) -> Any:
    """The results of NumPy's ``function`` on the arrays, as Variables; ``out`` unchanged."""
    out = function(
        *map(unwrap_arrays, args), **{name: unwrap_arrays(v) for name, v in kwargs.items()}
    )
    if writes_into_array(kwargs):
        return out
    if isinstance(out, tuple | list):
        return _with_items(out, map(_numbers_as_variable, out))
    return _numbers_as_variable(out)


def _with_items(value: list | tuple, items: Iterable) -> list | tuple:
    """A list or tuple like ``value`` with other items; named tuples stay named tuples."""
    return value._make(items) if hasattr(value, "_make") else type(value)(items)


def _numbers_as_variable(value):
    """An array of numbers as a Variable; other values unchanged."""
    is_array = isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufc"
    return Recorder.variable(value) if is_array else value


def writes_into_array(kwargs: dict) -> bool:
    """Whether ``out=`` of a call is an ordinary array."""
    out = kwargs.get("out")
    out = out if isinstance(out, tuple) else (out,)
    return any(isinstance(array, np.ndarray) for array in out)


def lost_history_error(use: str = "become", remedy: str = _REMEDY) -> TraceError:
    """The error for a Variable that requires grad and would become an ordinary array."""
    return TraceError(
        f"a Variable that requires grad cannot {use} an ordinary array: its history would be lost"
        f"{at_user()}\n  {remedy}"
    )


def exported_array(array: Any) -> Any:
    """The array itself if it can be exported by DLPack; a NumPy array for a NumPy scalar."""
    return array if hasattr(array, "__dlpack__") else np.asarray(array)

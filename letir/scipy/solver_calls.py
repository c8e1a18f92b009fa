"""Calls of SciPy's solvers, ``brentq(f, 0, 3)`` or ``minimize(f, x)``, recorded as one operation.

The function is recorded without values as a body, at the first arguments that the solver passes.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define, field

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Lambda
from letir.ast.types import ShapeDtype
from letir.errors import DTypeError, GuardError
from letir.eval.evaluator import run_flat
from letir.eval.float_warnings import QUIET, in_state
from letir.ops.special.scipy_functions import describe_result, fill_form
from letir.ops.special.scipy_solve import body_function
from letir.scipy.library_calls import (
    Callback,
    concrete_values,
    form_of_argument,
    rebuilt,
    record_failure,
)
from letir.tracing.entry import record
from letir.tracing.operands import first_traced, traced_or_array
from letir.tracing.trace_state import ABSTRACT

_NOT_BODIES = frozenset(["callback", "method"])  # functions that SciPy calls for their effects


class _NotRecorded(Exception):
    """Raised inside of a solver whose function cannot be recorded as a body."""


@define
class _RecordedCallback(Callback):
    """A function that a solver calls: recorded at its first arguments, then run as a program."""

    f: Callable
    body: Lambda | None = None
    lifted: tuple[Value, ...] = ()
    returns: str = "value"
    run: Any = field(default=None)

    def as_function(self) -> Callable:
        """The function that SciPy gets; SciPy may inspect its signature."""

        @functools.wraps(self.f)
        def function(*args):
            if self.body is None:
                self.record(args)
            return self.run(*args)

        return function

    def record(self, args: tuple) -> None:
        """Record the body for arguments like these."""

        def function(*positional):
            out = self.f(*positional)
            if isinstance(out, tuple) and all(np.ndim(x) <= 2 for x in out) and len(out) == 2:
                self.returns = "tuple" if np.ndim(out[1]) else "value"
            if self.returns == "tuple":
                return tuple(map(traced_or_array, out))
            return traced_or_array(out)

        kinds = tuple([ShapeDtype(np.shape(x), _floating_dtype(x)) for x in args])
        record_again = functools.partial(record, function, kinds, {}, ABSTRACT)
        try:
            recording = LATE_BOUND["require_same_state"](
                self.f, record_again, "it changes state outside of it"
            )
        except Exception as error:  # of letir, or of the function, which SciPy then calls itself
            raise _NotRecorded(str(error)) from None
        self.body, self.lifted = recording.fn, recording.lifted
        name = getattr(self.f, "__name__", type(self.f).__name__)  # a partial has none
        captured = tuple(concrete_values(self.lifted, name))

        def call(body, values):
            return run_flat(body, list(values))

        self.run = body_function(call, recording.fn, captured, self.returns)


def _floating_dtype(x: Any) -> np.dtype:
    """The dtype of an argument; float64 for integers, which may be a start such as [1, 1]."""
    dtype = np.asarray(x).dtype
    return np.dtype(float) if dtype.kind in "iu" else dtype


def _recorded_solver(
    part: str, original: Callable, args: tuple, kwargs: dict, refused: Exception | None = None
) -> Any:
    """The results of a solver of SciPy, recorded as one operation.

    If an argument or a result is an object, or if a function cannot be recorded without values,
    raises ``refused``, or calls ``original`` itself.
    """
    operands: list = []
    callbacks: list[_RecordedCallback] = []
    name = f"{part}.{original.__name__}"
    try:
        form = form_of_argument(_with_bodies(original, args, kwargs, callbacks), operands)
        copies = [np.copy(x)[()] for x in concrete_values(operands, name)]
        functions = [callback.as_function() for callback in callbacks]
        positional, named = fill_form(form, iter(copies), functions)
        result = in_state(QUIET, functools.partial(original, **named), *positional)
        results, _ = describe_result(result)
    except (DTypeError, GuardError, _NotRecorded):
        results = None
    except Exception as error:  # whatever SciPy, or the function, raises
        lifted = [value for callback in callbacks for value in callback.lifted]
        if first_traced([*operands, *lifted]) is not None:
            attrs = _attrs_of_callbacks(callbacks)
            record_failure(
                "scipy_solve", [*operands, *lifted], error, function=name, arguments=form, **attrs
            )
        raise
    if results is None or any(callback.body is None for callback in callbacks):
        if refused is not None:
            raise refused
        return original(*args, **kwargs)
    captured = [value for callback in callbacks for value in callback.lifted]
    if first_traced([*operands, *captured]) is None:
        return result
    leaves = PRIMITIVES["scipy_solve"](
        *operands,
        *captured,
        function=name,
        arguments=form,
        results=results,
        **_attrs_of_callbacks(callbacks),
    )
    return rebuilt(results, result, leaves)


def _attrs_of_callbacks(callbacks: list["_RecordedCallback"]) -> dict[str, tuple]:
    """The attributes of a solver's bind that describe the functions it calls."""
    return {
        "bodies": tuple([callback.body for callback in callbacks]),
        "captures": tuple([len(callback.lifted) for callback in callbacks]),
        "returns": tuple([callback.returns for callback in callbacks]),
    }


def _with_bodies(original: Callable, args: tuple, kwargs: dict, callbacks: list) -> tuple:
    """(positional, keyword) arguments with a ``_RecordedCallback`` in place of each function.

    The values in ``args``, which SciPy would pass to the functions, are bound to them instead.
    """
    bound = inspect.signature(original).bind(*args, **kwargs)
    arguments = bound.arguments
    more = arguments.get("args") or ()
    more = more if isinstance(more, tuple) else (more,)
    if not callable(arguments.get("args")):
        arguments.pop("args", None)
    for key, value in arguments.items():
        if callable(value) and key in _NOT_BODIES:
            raise DTypeError(f"the argument {key} is not recorded\n  leave it out")
        arguments[key] = _with_callbacks(value, more, callbacks)
    return bound.args, bound.kwargs


def _with_callbacks(value: Any, more: tuple, callbacks: list) -> Any:
    """An argument with a ``_RecordedCallback`` in place of each function, also in lists and dicts.

    ``more``: arguments that are passed to a function as well.
    """
    if isinstance(value, dict):  # such as constraints, which have arguments of their own
        return {key: _with_callbacks(item, (), callbacks) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)([_with_callbacks(item, (), callbacks) for item in value])
    if not callable(value) or isinstance(value, Value) or hasattr(value, "letir_recorded"):
        return value
    attributes = {*getattr(value, "__dict__", ())} - {"__wrapped__"}
    if attributes and type(value) is not np.ufunc:  # such as ``terminal`` of an event
        raise DTypeError("a function with attributes is not recorded\n  pass a plain function")
    f = value
    if more:

        def f(*args):
            return value(*args, *more)

    callbacks.append(_RecordedCallback(len(callbacks), f))
    return callbacks[-1]


LATE_BOUND["scipy_solver"] = _recorded_solver

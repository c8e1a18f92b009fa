"""Dispatch of NumPy's calls on traced values: tables from NumPy's functions to letir's operations.

The tables are derived from the field ``numpy`` of the operations' records.
"""

import functools
import inspect
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.process_state import new_lock
from letir.ast.record_fields import SeveralBinds
from letir.ast.symbolic_sizes import has_sizes
from letir.errors import DTypeError, LetirError, MissingRule, mark_unrecorded_code
from letir.ops import load_records_of
from letir.tracing.mutation.views import mark_as_array
from letir.tracing.numpy_functions.in_place import WRITES
from letir.tracing.numpy_functions.registry import PLAIN, write_into_ordinary_array_error
from letir.tracing.operands import stack_traced, traced_or_array
from letir.tracing.refusals import note_refusal
from letir.tracing.source_locations import at_user, error_at_user_line
from letir.tracing.trace_state import NOT_COMPUTED

# functions that return 0-d arrays where others return scalars
_WHERE, _MEAN = np.where, np.mean  # bound once: attributes of modules are slow in recordings
_METHODS = frozenset(
    [np.sum, np.prod, np.max, np.min, np.any, np.all, np.mean, np.var, np.std, np.argmax, np.argmin]
)
_NO_SCALARS = frozenset([np.where, np.roll, np.cov, np.i0, np.tensordot])
_table: dict = {}  # {callable: (record, prepare)}, derived from the records
ufunc_records: dict = {}  # {ufunc: record}, derived likewise, for plain calls of ufuncs
_derived: list[Primitive] = []  # the records from which these were derived, in the table's order
_users: list[Primitive] = []  # user-defined records among them
_filling = new_lock(threading.RLock)


def recorder_of(function: Any) -> tuple | None:
    """(record, prepare) of a NumPy callable; None if no record has it."""
    result = _table.get(function)
    # searched only if the table lacks it, because each recorded call looks up its function
    return _searched_recorder(function) if result is None else result


def _searched_recorder(function) -> tuple | None:
    """What records calls of ``function``, from tables that are filled first if necessary."""
    load_records_of(getattr(function, "__name__", ""))
    with _filling:  # the table may lack it because another thread is filling the tables
        if len(_derived) != len(PRIMITIVES):
            _derive_tables()
        result = _table.get(function)
        name = None
        if result is None and "scipy.special" in sys.modules:
            name = LATE_BOUND["op_of_scipy"](function)
        if name is not None:  # SciPy's functions are not in the table: SciPy may be loaded later
            result = _table[function] = (PRIMITIVES[name], None)
            ufunc_records[function] = PRIMITIVES[name]
        return result


def _derive_tables() -> None:
    """Fill the tables from records added since the last time, or from all if one was removed."""
    with _filling:
        records = list(PRIMITIVES.values())
        count = len(_derived)
        if count and (len(records) < count or records[count - 1] is not _derived[-1]):
            count = 0
            _table.clear()
            ufunc_records.clear()
        for op in records[count:]:
            table: Any = op.numpy  # the record has converted the field to a dict
            for function, prepare in table.items():
                # users' operations replace letir's, also letir's operations that are loaded later
                if (
                    function in _table
                    and _table[function][0].is_user_defined
                    and not op.is_user_defined
                ):
                    continue
                _table[function] = (op, prepare)
                if isinstance(function, np.ufunc):
                    ufunc_records[function] = op
        _derived[:] = records
        _users[:] = [op for op in records if op.is_user_defined]


def refresh_tables() -> None:
    """Derive the tables again if a user has defined or redefined an operation."""
    if _users and any(PRIMITIVES.get(op.name) is not op for op in _users):
        with _filling:
            _derived.clear()
            _table.clear()
            ufunc_records.clear()
    if len(_derived) != len(PRIMITIVES):
        _derive_tables()


def is_keyword_given(value: Any) -> bool:
    """Whether a keyword of a reduction was given: NumPy has a marker for "not given"."""
    return value is not np._NoValue and value is not None


# ---- functions ----


def _choice_or_error(error: TypeError, func: Callable, args: tuple, kwargs: dict) -> Any:
    """NumPy's choice among texts if ``error`` is due to them; else raises the clearest error."""
    if isinstance(error, DTypeError):
        if (chosen := LATE_BOUND["choose_texts"](func, args, kwargs)) is not NOT_COMPUTED:
            return chosen
        raise error
    # the type rule lacks an operand
    wrong = LATE_BOUND["wrong_call_error"](_callable_name(func), func, args, kwargs)
    if wrong is None:
        raise error
    raise wrong from None


def call_function(tracer: Value, func: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
    """The recorded result of a NumPy function on traced values."""
    recorder = recorder_of(func)
    # of a condition alone np.where is np.nonzero
    if recorder is None or (func is _WHERE and len(args) + len(kwargs) == 1):
        return _call_without_record(func, args, kwargs)
    op, prepare = recorder
    out = kwargs.pop("out") if "out" in kwargs else _positional_out(prepare, args)
    if func is _MEAN and isinstance(out, Value):
        recorder = LATE_BOUND["mean_into_out"](*args[:3], *args[4:], out=out, **kwargs)
        return recorder[()] if _is_strong_scalar(args[0] if args else kwargs["a"]) else recorder
    try:
        operands, attrs = prepare_call(func, prepare, args, kwargs) if prepare else (args, kwargs)
    except SeveralBinds as call:
        return call.results() if out is None else write_into_out(func, args[0], call.results(), out)
    # values first: ``isinstance`` of a traced number asks it for its class, in eight calls
    operands = tuple([x if hasattr(x, "emitter") else _operand(x) for x in operands])
    if op.sizes_in and has_sizes(attrs, op.sizes_in):
        return LATE_BOUND["sized_call"](op, operands, op.complete(attrs))
    if isinstance(out, Value) and op.out_takes_part:
        attrs |= _sum_dtype(operands[0], out, **attrs)
    emitter = tracer.emitter
    for operand in operands:
        if isinstance(operand, Value):
            emitter = operand.emitter
            break
    try:
        result = emitter.apply(op, operands, op.complete(attrs))
    except TypeError as error:
        return _choice_or_error(error, func, args, kwargs)
    if op.returned is not None:
        return op.returned(result, **attrs)
    if func in _NO_SCALARS:
        return mark_as_array(result)
    if out is None:
        return result
    # of a NumPy scalar these are its methods, which return scalars
    written = write_into_out(func, operands[0], result, out)
    return written[()] if func in _METHODS and _is_strong_scalar(operands[0]) else written


def _operand(x: Any) -> Any:
    """An operand that is not traced; a list as an array."""
    return traced_or_array(x) if isinstance(x, list | tuple | range) else stack_traced(x)


def _call_without_record(func: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
    """The result of a NumPy function that several operations compute."""
    if func in WRITES and not isinstance(args[0], Value):
        raise write_into_ordinary_array_error()
    plain = PLAIN.get(func)
    if plain is None:
        raise unsupported_error(func)
    try:
        return plain(*args, **kwargs)
    except TypeError:
        if (chosen := LATE_BOUND["choose_texts"](func, args, kwargs)) is not NOT_COMPUTED:
            return chosen
        raise


def _is_strong_scalar(x: Any) -> bool:
    """Whether ``x`` is a traced NumPy scalar, not a Python number."""
    return isinstance(x, Value) and x.is_scalar() and not x.type.weak


def _positional_out(prepare, args: tuple):
    """The argument ``out``, None if it was not given."""
    place = _out_place(prepare)
    return args[place] if place is not None and len(args) > place else None


def out_position(func: Any) -> int | None:
    """The position of the argument ``out`` of a NumPy function, None if it is a keyword only."""
    result = recorder_of(func)
    return _out_place(PLAIN.get(func) if result is None else result[1])


@functools.cache
def _out_place(prepare) -> int | None:
    """The position of the parameter ``out`` of ``prepare``, None if it has none."""
    if prepare is None:
        return None
    names = inspect.getfullargspec(prepare).args
    return names.index("out") if "out" in names else None


def prepare_call(
    func: Any, prepare: Callable[..., Any] | None, args: tuple, kwargs: dict
) -> tuple[tuple, dict]:
    """(operands, attrs) of a call of NumPy. Errors name the user's line.

    A list becomes an array if ``prepare`` reads an attribute that only arrays have.
    """
    try:
        return prepare(*args, **kwargs)
    except AttributeError as error:
        sequence, arguments = error.obj, (*args, *kwargs.values())
        if not isinstance(sequence, list | tuple | range) or all(
            x is not sequence for x in arguments
        ):
            raise
    except LetirError as error:
        raise error_at_user_line(error) from None
    except TypeError:
        try:
            # if the arguments fit the signature, the error comes from prepare's own code
            inspect.signature(prepare).bind(*args, **kwargs)
        except TypeError as reason:
            wrong = LATE_BOUND["wrong_call_error"](_callable_name(func), func, args, kwargs)
            raise wrong or unsupported_arguments_error(func, str(reason)) from None
        raise
    arrays = [traced_or_array(x) if x is sequence else x for x in arguments]
    named = dict(zip(kwargs, arrays[len(args) :], strict=True))
    return prepare_call(func, prepare, tuple(arrays[: len(args)]), named)


# ---- writing ----


def _sum_dtype(x, out: Value, *, dtype=None, **_) -> dict:
    """The ``dtype`` attribute of a sum into ``out``, whose dtype takes part in promotion."""
    dtype = np.result_type(x.dtype, out.dtype) if dtype is None else dtype
    return {"dtype": dtype}


def write_into_out(func: Any, x: Any, result: Any, out: Any) -> Any:
    """The ``result`` of ``func`` of ``x`` written into ``out``, which must be a traced value."""
    if not isinstance(out, Value):
        raise write_into_ordinary_array_error()
    if not isinstance(result, Value):
        return out.assign(result)
    casting = LATE_BOUND["casting_into_out"](func, _callable_name(func), x, result, out)
    return out.assign(result, casting)


# ---- errors ----


def _callable_name(function) -> str:
    """The name of a NumPy callable as users write it."""
    name = function.__name__
    if getattr(np, name, None) is function:
        return f"numpy.{name}"
    if getattr(sys.modules.get("scipy.special"), name, None) is function:
        return f"scipy.special.{name}"
    module = getattr(function, "__module__", None) or type(function).__module__
    return f"{module.replace('numpy._core', 'numpy')}.{name}"


def unsupported_error(function: Any, method: str | None = None) -> MissingRule:
    """The error for a NumPy callable without a record: the reason, or how to add one."""
    name = _callable_name(function)
    called = name if method is None else f"{name}.{method}"
    reason = LATE_BOUND["refusal_reason"](function)
    if reason is not None:
        message = f"{called} of traced values cannot be recorded{at_user()}\n  {reason}"
        return note_refusal(mark_unrecorded_code(MissingRule(message)))
    new = f"letir.primitive('package.{function.__name__}', impl, aval, vjp=..., numpy=({name},))"
    add = "" if method else f"\n  or add it: {new}"
    error = MissingRule(
        f"{called} of traced values is not recorded{at_user()}\n"
        f"  write it with recorded functions: docs/operations.md lists them{add}\n"
        f"  or call it without a derivative: letir.opaque({called}, aval)(...)"
    )
    return note_refusal(mark_unrecorded_code(error))


def unsupported_arguments_error(function: Any, reason: str) -> MissingRule:
    """The error for a call with arguments that the record does not support."""
    return mark_unrecorded_code(
        MissingRule(
            f"{_callable_name(function)} of traced values is not recorded with these arguments"
            f"{at_user()}\n"
            f"  {reason}: leave it out, or write it with other functions"
        )
    )

"""Calls of SciPy's functions for which letir has no operations: ``scipy_call``, which calls SciPy.

While a call is recorded, SciPy computes its values, which determine the types of the results.
"""

import functools
import inspect
import re
from collections import deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from attrs import define

from letir.ast import LATE_BOUND
from letir.ast.attrs import Here
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.types import PYTHON_NUMBERS, ArrayType
from letir.errors import DTypeError, LetirError, TraceError, mark_unrecorded_code
from letir.eval.float_warnings import QUIET, in_state
from letir.ops.special.scipy_call import called_by_name
from letir.ops.special.scipy_functions import (
    ATTRIBUTES,
    MAKERS,
    METHODS,
    describe_result,
    fill_form,
    named_fields,
)
from letir.tracing.mutation.views import mark_as_array
from letir.tracing.refusals import note_refusal
from letir.tracing.source_locations import at_user
from letir.tracing.stand_ins import is_recording
from letir.tracing.trace_state import ABSENT


@define
class Callback:
    """A function among the arguments; ``place``: its number among the functions of the call."""

    place: int


_OF_FORTRAN = "function "  # the beginning of the names of LAPACK's functions in SciPy
_A_NUMBER = describe_result(np.float64(0.0))[0]  # instead of results that do not exist
# arguments with which functions draw random numbers, or write into arrays
_DRAWING = frozenset(["n_resamples", "permutations", "random_state", "rng", "seed"])
_WRITING = frozenset(["distances", "indices", "out", "output"])


def _recorded_call(
    part: str,
    original: Callable,
    args: tuple,
    kwargs: dict,
    refused: Exception | None = None,
) -> Any:
    """The results of ``scipy.part``'s function ``original``, recorded as one operation.

    If an argument or a result is an object, raises ``refused``, or calls ``original`` itself.
    """
    operands: list = []
    result: Any = None
    written = _written_argument(original, args, kwargs)
    if written is not None:
        return _write_result(part, original, written, args, kwargs)
    try:
        _refuse_arguments(original, args, kwargs)
        form = form_of_argument((args, kwargs), operands)
        name = f"{part}.{original.__name__.removeprefix(_OF_FORTRAN)}"
        values = concrete_values(operands, name)
        result = _call_scipy(name, original, form, operands, values)
        results, leaves = describe_result(result)
        results = results if leaves else None
    except DTypeError:
        results = None
    if results is None and result is not None and _recorded_class(result) is not None:
        return RecordedObject(name, form, operands, result)
    if results is None and refused is not None:
        raise refused
    if results is None and _first_object((*args, *kwargs.values())) is not None:
        raise _not_recorded(f"scipy.{name} of these arguments")
    if results is None:
        return original(*args, **kwargs)
    op = PRIMITIVES["scipy_call"]
    leaves = op(*operands, function=name, arguments=form, results=results)
    return rebuilt(results, result, leaves)


def _bound_arguments(original: Callable, args: tuple, kwargs: dict) -> dict[str, Any]:
    """The arguments of a call by name; only the keywords of a function in C."""
    if original.__name__.startswith(_OF_FORTRAN):  # its signature is a line of text
        names = re.findall(r"\w+", str(original.__doc__).partition("(")[2].partition(")")[0])
        return dict(zip(names, args, strict=False)) | kwargs
    try:
        return inspect.signature(original).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):  # also wrong arguments
        return kwargs


def _written_argument(original: Callable, args: tuple, kwargs: dict) -> str | None:
    """The name of the argument that is an array into which the call writes its result."""
    bound = _bound_arguments(original, args, kwargs)
    return next((n for n in _WRITING if isinstance(bound.get(n), Value | np.ndarray)), None)


def _write_result(part: str, original: Callable, name: str, args: tuple, kwargs: dict) -> Any:
    """The array for results, into which the result of the call without it is written.

    Raises TraceError for functions that do not return this array.
    """
    bound = inspect.signature(original).bind(*args, **kwargs)
    output = bound.arguments[name]
    if part == "ndimage" and name == "output":
        is_fourier = original.__name__.startswith("fourier_")  # they take no name of a dtype
        bound.arguments[name] = None if is_fourier else output.dtype.name
        result = _recorded_call(part, original, bound.args, bound.kwargs)
        if isinstance(result, Value) and result.shape == output.shape:
            output[...] = result
            return output
    raise _not_recorded(f"scipy.{part}.{original.__name__} with an array {name}=")


def _refuse_arguments(original: Callable, args: tuple, kwargs: dict) -> None:
    """Raise DTypeError for arguments with which a call does more than compute its results."""
    for name, value in _bound_arguments(original, args, kwargs).items():
        if value is None or (type(value) in (bool, int) and not value):
            continue
        if name.startswith("overwrite_") or name in _DRAWING:
            raise DTypeError(f"the argument {name} is not recorded\n  leave it out")


def form_of_argument(x: Any, operands: list) -> Any:
    """The form of an argument, see ``fill_form``; its arrays are appended to ``operands``."""
    if isinstance(x, Value | np.generic) or type(x) is np.ndarray:
        operands.append(x)
        return Here()
    if type(x) is RecordedObject:
        operands += x.operands
        return ("call", x.function, x.form)
    if isinstance(x, Callback):
        return ("function", x.place)
    if getattr(x, "format", None) in ("csr", "csc") and _recorded_class(x) is not None:
        parts = ((x.data, x.indices, x.indptr),), {"shape": x.shape}  # a known sparse matrix
        return ("call", _recorded_class(x), form_of_argument(parts, operands))
    if x is None or type(x) in (str, *PYTHON_NUMBERS):
        return x
    if isinstance(x, dict) and all(type(key) is str for key in x):
        return ("dict", *[(key, form_of_argument(item, operands)) for key, item in x.items()])
    if type(x) in (list, tuple, range, deque):
        kind = "tuple" if type(x) is tuple else "list"
        return (kind, *[form_of_argument(item, operands) for item in x])
    raise DTypeError(f"an object of type {type(x).__name__} is not recorded\n  pass arrays")


def concrete_values(operands: Iterable, name: str) -> list:
    """The values of operands of SciPy's function ``name``; TraceError for abstract ones."""
    values = [x.concrete_value() if isinstance(x, Value) else x for x in operands]
    if any(value is ABSENT for value in values):
        raise TraceError(
            f"scipy.{name} of an abstract traced value: SciPy computes it, and the types of its "
            f"results may depend on the values{at_user()}\n  trace with concrete arguments"
        )
    return values


def _call_scipy(name: str, original: Callable, form: tuple, operands: list, values: list) -> Any:
    """The result of SciPy's function ``original`` for these values of operands."""
    copies = [x.copy() if type(x) is np.ndarray else x for x in values]
    call = functools.partial(called_by_name, np)
    positional, keywords = fill_form(form, iter(copies), call=call)
    try:
        return in_state(QUIET, functools.partial(original, **keywords), *positional)
    except Exception as error:  # whatever SciPy raises
        record_failure("scipy_call", operands, error, function=name, arguments=form)
        raise


def record_failure(op_name: str, operands: list, error: Exception, **attrs: Any) -> None:
    """Record that a call of SciPy raised ``error``, which the recorded function may catch."""
    if isinstance(error, LetirError):
        return
    try:
        PRIMITIVES[op_name](*operands, results=_A_NUMBER, **attrs)  # raises it again
    except type(error):
        pass


# ---- objects ----


def _recorded_class(result: Any) -> str | None:
    """The class of an object of SciPy whose methods are recorded; None for other objects."""
    kind = type(result)
    return next((f"{p}.{kind.__name__}" for p in MAKERS if f"{p}.{kind.__name__}" in METHODS), None)


def _first_object(items: Any) -> "RecordedObject | None":
    """The first recorded object among arguments, None if there is none."""
    for item in items:
        result = _first_object(item) if isinstance(item, list | tuple) else item
        if type(result) is RecordedObject:
            return result
    return None


def _not_recorded(subject: str) -> TraceError:
    """The error for a use of SciPy that is not recorded; ``jit`` runs the function as Python."""
    error = TraceError(
        f"{subject} is not recorded{at_user()}\n"
        "  docs/scipy.md lists what is recorded, and what to write for other functions"
    )
    return note_refusal(mark_unrecorded_code(error))


class RecordedObject:
    """An object of SciPy that depends on traced values, such as a ``cKDTree``.

    The program makes a new object for each call of a method. ``function`` and ``form``:
    the call that makes it, for the ``operands``.
    ``letir_example``: the object with concrete values.
    """

    letir_recorded = True
    __array_ufunc__ = None  # NumPy's and traced values' operators leave the call to this class

    def __init__(self, function: str, form: tuple, operands: list, example: Any):
        self.function, self.form, self.operands = function, form, operands
        self.letir_example = example
        self.path = _recorded_class(example)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in METHODS[self.path]:
            raise AttributeError(name)
        if name in METHODS[self.path]:
            return functools.partial(self.call, name)
        if name in ATTRIBUTES[self.path]:
            return self.call(name)
        raise _not_recorded(f"scipy.{self.path}.{name}")

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """The recorded result of a method, or an attribute."""

        def of_object(*positional, **named):
            return called_by_name(np, f"{self.path}.{name}", positional, named)

        of_object.__name__ = name
        return _recorded_call(self.path, of_object, (self, *args), kwargs)

    def __array__(self, dtype=None, copy=None):
        raise _not_recorded(f"an array of an object of class scipy.{self.path}")

    def __iter__(self):
        raise _not_recorded(f"a loop over an object of class scipy.{self.path}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call("__call__", *args, **kwargs)


def _operator(name: str) -> Callable:
    """A method that calls the object's operator ``name``."""

    def operate(self, *others):
        return self.call(name, *others)

    return operate


for _name in ("add", "matmul", "mul", "neg", "rmatmul", "rmul", "sub", "truediv"):
    setattr(RecordedObject, f"__{_name}__", _operator(f"__{_name}__"))


# ---- results for the recorded function ----


def rebuilt(form: Any, example: Any, leaves: tuple) -> Any:
    """An object like ``example``, see ``_rebuilt``; the call is kept if its values are not used.

    Its lengths and strings may be used, such as ``len(peaks)``: they are those of the recording.
    """
    if not all(type(part) is ArrayType and not part.shape for part in _parts_of(form)):
        PRIMITIVES["guard_computed"](leaves[0], caught=False)
    return _rebuilt(form, example, iter(leaves))


def _parts_of(form: Any) -> list:
    """The innermost parts of a form of results."""
    if type(form) is not tuple:
        return [form]
    if form[0] == "array":
        return [form[1]]
    parts = [part[1] if form[0] in ("dict", "fields") else part for part in form[1:]]
    return [part_found for part in parts for part_found in _parts_of(part)]


def _rebuilt(form: Any, example: Any, leaves: Iterator) -> Any:
    """An object like ``example``, with traced values in place of its arrays and numbers."""
    if form is None or type(form) is str:
        return form
    if type(form) is not tuple:
        return next(leaves)
    kind, *parts = form
    if kind == "array":
        return mark_as_array(next(leaves))
    if kind == "dict":
        items = {key: _rebuilt(part, example[key], leaves) for key, part in parts}
        class_: Any = type(example)
        result = class_.__new__(class_)  # __init__ may take the items one by one
        result.update(items)
        return result
    if kind == "fields":
        fields = named_fields(example)
        assert fields is not None, "the form was made from these fields"
        return _named_tuple(
            example, {name: _rebuilt(part, fields[name], leaves) for name, part in parts}
        )
    return type(example)(
        [_rebuilt(part, item, leaves) for part, item in zip(parts, example, strict=True)]
    )


def _named_tuple(example: Any, values: dict) -> Any:
    """A named tuple with the fields and the further numbers of SciPy's object ``example``."""
    kind = type(example)
    count = len(example)
    if kind.__mro__ == (kind, tuple, object) and not hasattr(kind, "_extra_fields"):
        return kind._make(values.values())
    result = _class_like(kind.__name__, tuple(values)[:count])._make(list(values.values())[:count])
    vars(result).update(list(values.items())[count:])
    return result


@functools.cache
def _class_like(name: str, fields: tuple[str, ...]) -> Any:
    """A class of named tuples that replaces a class of SciPy with methods of its own."""

    def __getattr__(self, attribute):
        if attribute.startswith("_") or not is_recording():
            raise AttributeError(f"{name} has no attribute {attribute!r} in a plan")
        error = TraceError(
            f"{name}.{attribute} is not recorded{at_user()}\n"
            f"  letir records the fields {', '.join(fields)} and further numbers of the result"
        )
        raise note_refusal(mark_unrecorded_code(error))

    return type(name, (namedtuple(name, fields),), {"__getattr__": __getattr__})


LATE_BOUND["scipy_call"] = _recorded_call

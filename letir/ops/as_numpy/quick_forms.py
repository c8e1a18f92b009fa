"""Quick forms: the fastest Python expressions for operations on NumPy arrays, used by plans.

A form gets the writer of ``letir.plan.step_writer`` and returns an expression with the bits, kind
and memory order of ``impl``, or None where it does not apply. A value whose type has axes is an
array of class ``np.ndarray``; a value without axes is a NumPy scalar or a 0-d array, unless its
type is weak.
"""

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast.attrs import Here
from letir.ast.sizes.size_comparisons import compare_with_zero
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Bind, Const
from letir.ops.as_numpy.quick_functions import (
    cross_form,
    draw_form,
    norm_form,
    seed_form,
    std_form,
    var_form,
)
from letir.ops.as_numpy.quick_linalg import lapack_form
from letir.ops.as_numpy.quick_methods import METHOD_FORMS
from letir.ops.as_numpy.quick_numbers import (
    ARITHMETIC,
    COMPARISONS,
    COMPLEX,
    NUMBERS,
    OWNED,
    complex_math_function_form,
    is_of_fact,
    math_function_form,
    math_reduction_form,
    python_operator_form,
)
from letir.ops.as_numpy.quick_scalars import (
    abs_form,
    neg_form,
    scalar_extremum,
    scalar_operator,
    sqrt_form,
)

_FLOAT, _INT = np.dtype(np.float64), np.dtype(np.int64)
_OPERATORS = {**ARITHMETIC, "div": "/", **COMPARISONS}
_PYTHON_NUMBERS = {"b": "bool", "i": "int", "u": "int", "f": "float", "c": "complex"}
_AVERAGED = (_FLOAT, _INT, np.dtype(np.float32), np.dtype(np.bool_))
_MAX_COUNTED = 1 << 24  # float32 holds such counts


def quick_form(write: Any, bind: Bind) -> str | None:
    """The expression for the result of a bind; None if there is no form cheaper than the call."""
    name = bind.op.name
    if name in _OPERATORS:
        return scalar_operator(write, bind, _OPERATORS[name])
    form = _FORMS.get(name)
    return None if form is None else form(write, **bind.attrs)


def write_form(write: Any, bind: Bind) -> tuple[str, str] | None:
    """(test, statement) for a bind that may write into its first operand, else None. The statement
    computes the bind where the test holds; the operand is the result.
    """
    form = _WRITES.get(bind.op.name)
    return None if form is None else form(write, **bind.attrs)


def part_write_form(write: Any, bind: Bind) -> tuple[str, str] | None:
    """(array, write) for a write into part of an array, else None: the expression for the array to
    write into, and the text after it. No test is needed: nothing else refers to the array.
    """
    if bind.op.name != "index_set" or not _is_array(write, 0):
        return None
    text = _item_text(write, bind.attrs["item"], 2)
    if text is None or write.slots[0] in write.slots[1:]:
        return None
    # NumPy reads a view of the array before it writes
    if write.is_sole(0, (1,) if len(bind.args) == 2 else ()):
        array = write.slot(0)
    elif write.is_argument(0):
        array = f"{write.constant(np.array)}({write.slot(0)})"
    else:
        return None
    return array, f"[{text}] = {write.operand(1)}"


def _weaken(write) -> str | None:
    """Python's class of numbers, which converts a scalar faster than the scalar's ``item``."""
    if not _is_numpys(write, 0):
        return None
    aval = write.type(0)
    name = None if aval.shape else _PYTHON_NUMBERS.get(aval.dtype.kind)
    return f"{name}({write.slot(0)})" if name else f"{write.slot(0)}.item()"


def _is_numpys(write, i: int) -> bool:
    """Whether an operand is an array or a NumPy scalar, not a Python number."""
    aval = write.type(i)
    return aval is not None and not aval.weak and type(write.bind.args[i]) is not Const


def _is_array(write, i: int) -> bool:
    """Whether an operand is an array with axes."""
    return _is_numpys(write, i) and bool(write.type(i).shape)


# ---- reductions ----


def _reduction(ufunc: np.ufunc) -> Callable:
    """The form of a reduction that calls the method of its ufunc directly."""

    def form(write, *, axis, keepdims, dtype=None, initial=None) -> str | None:
        if not _is_array(write, 0) or len(write.bind.args) > 1 or initial is not None:
            return None
        if ufunc is np.add and write.type(0).dtype == np.bool_ and dtype in (None, _FLOAT):
            count = METHOD_FORMS["count_nonzero"](write, axis=axis, keepdims=keepdims)
            if count is not None:  # exact as a float too
                return count if dtype is None else f"{write.constant(np.float64)}({count})"
        call = f"{write.constant(ufunc.reduce)}({write.slot(0)}, {axis!r}"
        if dtype is not None or keepdims:
            call += f", {None if dtype is None else write.constant(dtype)}"
        return call + (f", None, {keepdims!r})" if keepdims else ")")

    return form


_sum = _reduction(np.add)


def _mean(write, *, axis, dtype, keepdims) -> str | None:
    """The sum over the number of elements, as ``np.mean`` computes it."""
    aval, result = write.type(0), write.result
    if dtype is not None or not _is_array(write, 0) or result is None:
        return None
    if aval.dtype not in _AVERAGED or not all(
        compare_with_zero(operator.gt, n) for n in aval.shape
    ):
        return None
    if is_static_shape((*aval.shape, *result.shape)):
        count = math.prod(aval.shape) // math.prod(result.shape)
        if count > _MAX_COUNTED:
            return None
        divisor = repr(float(count))
    elif axis is None and aval.dtype in (_FLOAT, _INT):
        divisor = f"{write.slot(0)}.size"
    else:
        return None
    total = _sum(
        write, axis=axis, keepdims=keepdims, dtype=None if aval.dtype.kind == "f" else _FLOAT
    )
    return None if total is None else f"{total} / {divisor}"


def _arg_extremum(method: str) -> Callable:
    def form(write, *, axis, keepdims=False) -> str | None:
        if keepdims or not _is_array(write, 0):
            return None
        return f"{write.slot(0)}.{method}({axis!r})"

    return form


# ---- shapes and parts ----


def _item_text(write, item: Any, first: int) -> str | None:
    """The text of an index whose array entries are the operands from number ``first`` on."""
    entries = item if type(item) is tuple else (item,)
    texts, place = [], first
    for entry in entries:
        if type(entry) is Here:
            texts.append(write.slot(place))
            place += 1
        elif type(entry) is int:
            texts.append(repr(entry))
        elif entry is None or entry is ... or type(entry) is slice:
            texts.append(write.constant(entry))
        else:
            return None
    if place == first and type(item) is tuple:
        return write.constant(item)
    return ", ".join(texts) + ("," if type(item) is tuple and len(texts) == 1 else "")


def _index(write, *, item) -> str | None:
    if not _is_array(write, 0):
        return None
    text = _item_text(write, item, 1)
    return None if text is None else f"{write.slot(0)}[{text}]"


def _index_set(write, *, item) -> tuple[str, str] | None:
    """A store into an array that nothing else refers to."""
    text = _item_text(write, item, 2)
    if text is None or not _is_array(write, 0) or write.fact(0) != OWNED:
        return None
    if not write.is_dying(0) or write.slots[0] in write.slots[1:]:
        return None
    x = write.slot(0)
    return f"getrefcount({x}) == ALONE and {x}.base is None", f"{x}[{text}] = {write.operand(1)}"


def _guard(write, *, value) -> tuple[str, str] | None:
    x, aval = write.slot(0), write.type(0)
    if type(value) is bool:
        return (x if value else f"not {x}"), ""
    if type(value) is not int or aval is None or aval.dtype.kind not in "biuf":
        return None
    return (f"int({x}) == {value!r}" if aval.dtype.kind == "f" else f"{x} == {value!r}"), ""


def _write_back(write) -> tuple[str, str] | None:
    if not _is_array(write, 0) or not _is_array(write, 1):
        return None
    x = write.slot(0)
    return f"{x}.flags.writeable", f"{x}[...] = {write.slot(1)}"


def _transpose(write, *, axes) -> str | None:
    if not _is_array(write, 0):
        return None
    return f"{write.slot(0)}.transpose({'' if axes is None else repr(tuple(axes))})"


def _reshape(write, *, shape, order) -> str | None:
    if not _is_array(write, 0) or len(write.bind.args) > 1 or not is_static_shape(shape):
        return None
    return f"{write.slot(0)}.reshape({tuple(shape)!r})" if order == "C" else None


def _zeros(write, *, shape, dtype) -> str | None:
    if write.bind.args or shape is None or not is_static_shape(shape):
        return None
    return f"{write.constant(np.zeros)}({tuple(shape)!r}, {write.constant(dtype)})"


def _copy(write, *, order) -> str | None:
    if not _is_array(write, 0):
        return None
    special = getattr(write.bind.op.impl, "for_arrays", None)  # copies into memory that plans keep
    x = write.slot(0)
    return f"{x}.copy({order!r})" if special is None else f"{write.constant(special)}({x})"


def _cast(write, *, dtype) -> str | None:
    is_exact = is_of_fact(dtype, write.fact(0))
    if is_exact or (write.fact(0) in NUMBERS and dtype == _FLOAT):
        if write.is_stacked and is_exact:
            return write.operand(0)  # NumPy converts Python's number faster than its own
        return f"{write.constant(dtype.type)}({write.operand(0)})"
    return f"{write.slot(0)}.astype({write.constant(dtype)})" if _is_numpys(write, 0) else None


def _stack(write, *, axis) -> str | None:
    """``np.array`` of scalars, or a concatenation of arrays with a new axis."""
    result, count = write.result, len(write.bind.args)
    if result is None or axis < 0:
        return None
    if result.ndim == 1 and all(
        _is_numpys(write, i) or write.fact(i) in (*NUMBERS, COMPLEX) for i in range(count)
    ):
        items = ", ".join(map(write.operand, range(count)))
        return f"{write.constant(np.array)}([{items}], {write.constant(result.dtype)})"
    if not all(_is_array(write, i) for i in range(count)):
        return None
    place = write.constant((slice(None),) * axis + (None,))
    if (
        axis == 0
        and result.ndim == 2
        and all(write.type(i).dtype == result.dtype for i in range(count))
    ):
        items = ", ".join(map(write.slot, range(count)))
        return f"{write.constant(np.array)}(({items},), {write.constant(result.dtype)})"
    items = ", ".join([f"{write.slot(i)}[{place}]" for i in range(count)])
    return f"{write.constant(np.concatenate)}(({items},), {axis})"


def _concatenate(write, *, axis, dtype) -> str | None:
    count = len(write.bind.args)
    if (
        axis is None
        or dtype is not None
        or not count
        or not all(_is_array(write, i) for i in range(count))
    ):
        return None
    items = ", ".join(map(write.slot, range(count)))
    return f"{write.constant(np.concatenate)}(({items},), {axis!r})"


def _call_directly(function: Callable) -> Callable:
    """The form of an operation that is a function of arrays alone."""

    def form(write) -> str:
        items = ", ".join(map(write.slot, range(len(write.bind.args))))
        return f"{write.constant(function)}({items})"

    return form


def _dot(write) -> str | None:
    if not _is_array(write, 0) or not _is_array(write, 1):
        return None
    return f"{write.slot(0)}.dot({write.slot(1)})"


_FORMS: dict[str, Callable] = {
    **METHOD_FORMS,
    "complex_math_function": complex_math_function_form,
    "math_function": math_function_form,
    "math_reduction": math_reduction_form,
    "python_operator": python_operator_form,
    "weaken": _weaken,
    "cross": cross_form,
    "neg": neg_form,
    "sqrt": sqrt_form,
    "abs": abs_form,
    "minimum": scalar_extremum(np.minimum, "<"),
    "maximum": scalar_extremum(np.maximum, ">"),
    "sum": _sum,
    "prod": _reduction(np.multiply),
    "max": _reduction(np.maximum),
    "min": _reduction(np.minimum),
    "mean": _mean,
    "var": var_form,
    "std": std_form,
    "norm": norm_form,
    "argmax": _arg_extremum("argmax"),
    "argmin": _arg_extremum("argmin"),
    "index": _index,
    "transpose": _transpose,
    "reshape": _reshape,
    "zeros": _zeros,
    "copy": _copy,
    "cast": _cast,
    "stack": _stack,
    "concatenate": _concatenate,
    "where": _call_directly(np.where),
    "matmul": _call_directly(np.matmul),
    "dot": _dot,
    "own_draw": draw_form,
    "own_seed": seed_form,
    **dict.fromkeys(("solve", "inv", "det", "cholesky", "eigvalsh", "svdvals"), lapack_form),
}
_WRITES: dict[str, Callable] = {
    "guard": _guard,
    "index_set": _index_set,
    "write_back": _write_back,
}

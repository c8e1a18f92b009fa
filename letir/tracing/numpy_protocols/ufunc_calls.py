"""Calls of NumPy's ufuncs with keywords, ``out`` or ``where``, and the ufuncs' methods.

Plain calls do not come here: ``array_value`` and eager Variables look up the record themselves.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.types import broadcast_shapes, number_dtype
from letir.errors import DTypeError, ShapeError, TraceError
from letir.ops.define.records import DISCRETE, promotion_type
from letir.ops.reductions.reductions import reduced_axis
from letir.ops.shape.shape_and_creation import as_mask
from letir.tracing.mutation.memory_order import ensure_memory_order
from letir.tracing.numpy_functions.registry import promote_operand, write_into_ordinary_array_error
from letir.tracing.numpy_protocols.dispatch import (
    is_keyword_given,
    recorder_of,
    unsupported_arguments_error,
    unsupported_error,
)
from letir.tracing.operands import Casting, stack_traced, strong_element
from letir.tracing.source_locations import at_user


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple, kwargs: dict) -> Any:
    """The recorded result of ``ufunc`` (or one of its methods) on traced values."""
    recorder = recorder_of(ufunc)
    if recorder is None:
        raise unsupported_error(ufunc, None if method == "__call__" else method)
    if method == "at":
        target, item, *new = inputs
        # a tuple of indices is one index for each axis, not one array of indices
        item = tuple(map(stack_traced, item)) if isinstance(item, tuple) else stack_traced(item)
        return _update_in_place(ufunc, recorder[0], target, item, *map(stack_traced, new))
    outs = kwargs.pop("out", ())  # NumPy always passes `out` as a tuple
    if len(outs) == 1 and type(outs[0]) is np.ndarray:
        adopted = LATE_BOUND["adopt_result_array"](inputs, outs[0])
        if adopted is not None:
            inputs, outs = adopted[0], (adopted[1],)
    inputs = tuple(map(stack_traced, inputs))
    if method == "outer":
        method, inputs = "__call__", _cross_operands(*inputs)
    if method == "__call__":
        return _call_with_keywords(ufunc, recorder[0], inputs, outs, **kwargs)
    if ufunc.signature or ufunc.nin != 2 or ufunc.nout != 1:
        raise ValueError(f"{method} only supported for binary functions")  # as NumPy says it
    return _call_fold(ufunc, recorder[0], method, inputs, outs, kwargs)


# ---- calls ----


def _call_with_keywords(
    ufunc, op: Primitive, inputs: tuple, outs: tuple, *, where=True, **keywords
):
    """A call of a ufunc with keywords; its results are written into ``outs``, if given."""
    order: Any = keywords.get("order") or "K"
    np.empty(0).copy(order)  # or NumPy's errors
    if "casting" in keywords:
        np.can_cast(bool, bool, keywords["casting"])
    casting: Casting = keywords.get("casting") or "same_kind"
    outs = outs or (None,) * ufunc.nout
    emitter = _emitter_of(*inputs, *outs, where)
    if ufunc.signature:
        return _called_on_stacks(ufunc, op, emitter, inputs, outs[0], casting, where, keywords)
    if where is not True:
        where = where if isinstance(where, Value | np.ndarray) else as_mask(where)
        inputs = _operands_in_domain(ufunc, op, inputs, where)
    results = emitter.apply(op, _convert_operands(ufunc, inputs, **keywords))
    several = results if ufunc.nout > 1 else (results,)
    written = tuple(
        _copy_to_order(_zero_elsewhere(result, where), order)
        if out is None
        else _write_where(ufunc, result, out, where, casting)
        for result, out in zip(several, outs, strict=True)
    )
    return written if ufunc.nout > 1 else written[0]


def _copy_to_order(result: Value, order: str) -> Value:
    """A result in C or Fortran order, if that is asked for."""
    is_requested = order in "CF" and result.ndim > 1
    return ensure_memory_order(result, order) if is_requested else result


def _called_on_stacks(
    ufunc, op: Primitive, emitter, inputs, out, casting: Casting, where, keywords
):
    """A call of a generalised ufunc, which has one result, with its ``axes`` if given."""
    if where is not True:  # NumPy's message
        raise TypeError(f"{ufunc.__name__}() got an unexpected keyword argument 'where'")
    placing = {k: keywords.pop(k) for k in ("axes", "axis", "keepdims") if k in keywords}
    inputs, placed = LATE_BOUND["move_core_axes"](ufunc, inputs, **placing)
    result = placed(emitter.apply(op, _convert_operands(ufunc, inputs, **keywords)))
    return result if out is None else _write_where(ufunc, result, out, True, casting)


def _emitter_of(*values):
    """The emitter that records a call: that of its first traced value, which may be ``out``."""
    return next(value.emitter for value in values if isinstance(value, Value))


def _convert_operands(
    ufunc,
    inputs: tuple,
    *,
    dtype=None,
    casting=None,
    signature=None,
    order="K",
    subok=True,
    **others,
) -> tuple:
    """The operands cast to the dtypes of the loop selected by ``dtype`` or ``signature``.

    Raises NumPy's TypeError if there is no such loop, or if ``casting`` forbids the cast.
    """
    if not others.keys() <= {"order", "subok"}:
        raise unsupported_arguments_error(ufunc, f"{', '.join(others)} given")
    if dtype is None and casting is None and signature is None:
        return inputs
    avals = [promotion_type(x.type) if isinstance(x, Value) else promote_operand(x) for x in inputs]
    if casting == "equiv" and any(kind in (int, float, complex) for kind in avals):
        # raises for a number that may not be cast, where resolve_dtypes of NumPy 2.4 crashes
        values = [np.empty(0, k) if isinstance(k, np.dtype) else k(1) for k in avals]
        asked = {"dtype": dtype, "signature": signature}
        asked = {name: value for name, value in asked.items() if value is not None}
        ufunc(*values, casting=casting, **asked)
    # NumPy selects the loop, because separate rules could deviate
    dtypes = ufunc.resolve_dtypes(
        (*avals, *[None] * ufunc.nout),
        signature=_requested_dtypes(ufunc, dtype, signature),
        casting=casting or "same_kind",
    )
    # a Python integer may not fit the dtype: comparisons accept it, other ufuncs raise
    stays = "iu" if dtype is None and signature is None else ""
    return tuple(
        x if kind is int and target.kind in stays else _cast_to(x, target)
        for x, kind, target in zip(inputs, avals, dtypes, strict=False)
    )


def _requested_dtypes(ufunc, dtype, signature) -> tuple:
    """The requested dtypes of operands and results, None for those left open."""
    if signature is None:
        result_dtype = None if dtype is None else number_dtype(dtype)
        return (*[None] * ufunc.nin, *[result_dtype] * ufunc.nout)
    if isinstance(signature, str):
        signature = tuple(signature.replace("->", ""))
    if not isinstance(signature, tuple):
        signature = (signature,)
    if len(signature) == 1:
        signature = (*[None] * ufunc.nin, *signature * ufunc.nout)
    return tuple(None if d is None else np.dtype(d) for d in signature)


def _cast_to(x, dtype: np.dtype):
    """An operand in ``dtype``."""
    if isinstance(x, Value):
        if x.type.weak and x.dtype.kind == "c" and dtype.kind not in "cb":
            x = PRIMITIVES["real"](x)  # Python does not convert complex to real numbers
        return x if x.dtype == dtype and not x.type.weak else x.astype(dtype)
    return np.asarray(x).astype(dtype)


def _cross_operands(a, b) -> tuple:
    """The operands of ``outer``, reshaped so that all pairs of elements meet by broadcasting."""
    a, b = strong_element(a), strong_element(b)  # outer makes arrays of Python numbers
    return a[(..., *[None] * b.ndim)] if b.ndim else a, b


# ---- out and where ----


def _write_where(ufunc, result: Value, out, mask, casting: Casting):
    """A result written into ``out`` where the mask is true."""
    if isinstance(out, Value) and out.is_scalar():
        concrete = out.concrete_value()  # none in an abstract trace, where it may be an array
        if isinstance(concrete, np.generic | int | float | complex):
            raise TypeError(f"return arrays must be of ArrayType{at_user()}")  # as NumPy says it
    if not isinstance(out, Value):
        raise write_into_ordinary_array_error()
    if not np.can_cast(result.dtype, out.dtype, casting):
        raise DTypeError(
            f"numpy.{ufunc.__name__}: a result of dtype {result.dtype} cannot be written into "
            f"{out.type}: casting is {casting!r}{at_user()}\n  convert it first, with .astype"
        )
    result = result if result.dtype == out.dtype else result.astype(out.dtype)
    if mask is not True:
        result = PRIMITIVES["where"](mask, result, out)
    return out.assign(_broadcast_to_out(result, out.shape))


def _zero_elsewhere(result: Value, mask) -> Value:
    """A result that is 0 where the mask is false: NumPy leaves these elements without a value."""
    if mask is True:
        return result
    return PRIMITIVES["where"](mask, result, result.dtype.type(0))


def _broadcast_to_out(result: Value, shape: tuple) -> Value:
    """A result broadcast to the shape of ``out``."""
    try:
        fits = result.shape != shape and broadcast_shapes(result.shape, shape) == shape
    except ShapeError:
        fits = False  # ``assign`` raises an error with both shapes
    return PRIMITIVES["broadcast_to"](result, shape) if fits else result


def _operands_in_domain(ufunc, op: Primitive, inputs: tuple, mask) -> tuple:
    """The operands, with a number inside the domain of the ufunc where the mask is false.

    NumPy does not compute there, so there must be no warning, and no nan in a derivative.
    """
    name = f"numpy.{ufunc.__name__}"
    if (mask if isinstance(mask, Value) else np.asarray(mask)).dtype.kind != "b":
        raise DTypeError(
            f"{name}: where= must be a boolean array{at_user()}\n  compare first: where=x > 0"
        )
    if op.vjp is DISCRETE:  # comparisons and bit operations have no restricted domain
        return inputs
    return tuple([_inside_domain(x, mask, op.in_domain) for x in inputs])


def _inside_domain(x, mask, number: float):
    """An operand, with a number of its kind where the mask is false."""
    if not isinstance(x, Value | np.ndarray):
        return x
    number = {"b": True, "i": 1, "u": 1}.get(x.dtype.kind, number)
    return PRIMITIVES["where"](mask, x, number)


# ---- reduce, accumulate, reduceat ----


def _call_fold(ufunc, op: Primitive, method: str, inputs: tuple, outs: tuple, kwargs: dict):
    """A method along axes; its result is written into ``out``, if given."""
    x, *indices = inputs
    if not isinstance(x, Value):
        emitter = _emitter_of(*inputs, *outs, *kwargs.values())
        x = emitter.apply(PRIMITIVES["copy"], (np.asarray(x),), PRIMITIVES["copy"].complete({}))
    options = {name: value for name, value in kwargs.items() if is_keyword_given(value)}
    # np.add.reduce reduces axis 0, np.sum all axes; None means all axes, not "not given":
    # https://numpy.org/doc/stable/reference/generated/numpy.ufunc.reduce.html
    options["axis"] = kwargs.get("axis", 0)
    (out,) = outs or (None,)
    if out is not None and not _is_test(op):
        options.setdefault("dtype", _dtype_into_out(ufunc, op, x, out))
    if kwargs.get("initial", 0) is None and "where" in options:
        raise ValueError(f"reduction operation {ufunc.__name__!r}: where= needs an initial value")
    if isinstance(options.get("initial"), Value):
        raise unsupported_arguments_error(ufunc, "a traced initial value given")
    result = _FOLDS[method](ufunc, op, x, *indices, **options)
    if out is None:
        return result
    casting: Casting = "same_kind"
    if ufunc in (np.add, np.multiply) and isinstance(out, Value):
        is_fold = method != "accumulate"
        casting = LATE_BOUND["casting_of_fold"](x, result, out) if is_fold else "unsafe"
    return _write_where(ufunc, result, out, True, casting)


def _reduction_of(op: Primitive) -> Primitive | None:
    """The operation that records ``reduce`` of the ufunc of ``op`` and nothing else."""
    return PRIMITIVES[op.methods["reduce"]] if "reduce" in op.methods else None


def _is_test(op: Primitive) -> bool:
    """Whether ``reduce`` is np.any or np.all, which take neither a dtype nor an initial value."""
    reduction = _reduction_of(op)
    return reduction is not None and not reduction.attrs.keys() & {"dtype", "initial"}


def _dtype_into_out(ufunc, op: Primitive, x: Value, out) -> np.dtype:
    """The dtype of a reduction into ``out``: the promotion of both dtypes."""
    result = ufunc.resolve_dtypes((out.dtype, x.dtype, None), reduction=True, casting="unsafe")[-1]
    # NumPy stores the first element in `out`, cast to its dtype
    if result != out.dtype and "reduce" not in op.methods:
        raise unsupported_arguments_error(
            ufunc, f"out= of dtype {out.dtype} given, for a reduction in {result}"
        )
    return result


def _reduce(
    ufunc: np.ufunc,
    op: Primitive,
    x: Value,
    *,
    dtype: Any = None,
    where: Any = True,
    **options: Any,
) -> Value:
    """``ufunc.reduce``."""
    reduction = _reduction_of(op)
    if reduction is not None and "dtype" in reduction.attrs:
        return reduction(x, dtype=dtype, where=where, **options)
    if reduction is not None and not _is_test(op):
        x = x if dtype is None else x.astype(dtype)
        return reduction(x, where=where, **options)
    if reduction is not None and dtype is None and "initial" not in options:
        return reduction(x, where=where, **options)
    axis, operands = reduced_axis(x, options.pop("axis")), (x,) if where is True else (x, where)
    dtype = None if dtype is None else np.dtype(dtype)
    attrs = {"ufunc": op.name, "axis": axis, "dtype": dtype, **options}
    return _emitter_of(*operands).apply(
        PRIMITIVES["ufunc_reduce"], operands, PRIMITIVES["ufunc_reduce"].complete(attrs)
    )


def _accumulate(ufunc, op: Primitive, x: Value, *, axis=0, dtype=None):
    """``ufunc.accumulate``."""
    if "accumulate" in op.methods and x.shape:
        return PRIMITIVES[op.methods["accumulate"]](x, axis=axis, dtype=dtype)
    dtype = None if dtype is None else np.dtype(dtype)
    return PRIMITIVES["ufunc_accumulate"](x, ufunc=op.name, axis=axis, dtype=dtype)


def _reduceat(ufunc, op: Primitive, x: Value, indices, *, axis=0, dtype=None):
    """``ufunc.reduceat``, with indices that are part of the program: traced ones are guarded."""
    if isinstance(indices, Value) and hasattr(indices, "guarded"):
        indices = indices.guarded(np.array, "the index array of reduceat")
    elif isinstance(indices, Value):
        raise TraceError(
            f"numpy.{ufunc.__name__}.reduceat at traced indices is not recorded{at_user()}\n"
            "  pass an array, or letir.concrete(indices), which records a guard"
        )
    places: Any = np.asarray(indices)
    casting = "safe" if isinstance(indices, np.ndarray) else "unsafe"  # as NumPy takes lists
    indices = tuple(places.astype(int, casting=casting).tolist())
    dtype = None if dtype is None else np.dtype(dtype)
    return PRIMITIVES["ufunc_reduceat"](x, ufunc=op.name, indices=indices, axis=axis, dtype=dtype)


_FOLDS: dict[str, Callable[..., Any]] = {
    "reduce": _reduce,
    "accumulate": _accumulate,
    "reduceat": _reduceat,
}

# ---- at ----


def _update_in_place(ufunc, op: Primitive, target, item, *new) -> None:
    """``ufunc.at``: the ufunc applied in place at indices that may repeat."""
    if not isinstance(target, Value):
        raise write_into_ordinary_array_error()
    if target.is_scalar():
        raise TypeError("first operand must be array")  # as NumPy says it
    # else NumPy computes in another dtype than the target's, or raises
    if "at" in op.methods and all(_has_dtype_or_promotes(x, target.dtype) for x in new):
        target.assign(PRIMITIVES[op.methods["at"]](target, item, *new))
    else:
        target.assign(PRIMITIVES["ufunc_at"](target, item, *new, ufunc=op.name))


def _has_dtype_or_promotes(x, dtype: np.dtype) -> bool:
    """Whether an operand has this dtype, or is a Python number that is promoted to it."""
    aval: Any = promotion_type(x.type) if isinstance(x, Value) else promote_operand(x)
    return aval == dtype or dtype.kind in {int: "iufc", float: "fc", complex: "c"}.get(aval, "")

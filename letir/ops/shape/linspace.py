"""Evenly spaced numbers between two traced ends: linspace, logspace, geomspace.

The number of samples is an attribute. With ``w`` from 0 at the start to 1 at the stop, linspace is
``start + w * (stop - start)``, logspace is ``base`` to that power, and geomspace is
``start * (stop / start) ** w``. The derivatives follow from these formulas.
"""

from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ast.record_fields import SeveralBinds
from letir.ast.sizes.size import Size
from letir.ast.types import ArrayType, broadcast_shapes, number_dtype
from letir.errors import ShapeError
from letir.ops.define.batch_rules import align_ranks, batch_first, emit_op, rank_of, shift_axes
from letir.ops.define.records import (
    PYTHON_TYPES,
    add_terms,
    broadcast_tangent,
    cast_cotangent,
    define,
    takes_gradient,
    unbroadcast,
)
from letir.ops.elementwise.ufuncs import log, maximum
from letir.ops.reductions.cumulative import cumsum
from letir.ops.shape.shape_and_creation import as_size, ones_like
from letir.ops.shape.size_numbers import number_from
from letir.ops.shape.transpose import move_axes, normalize_axes


def _spaced_dtype(function, types: tuple, dtype) -> np.dtype:
    """The dtype of the samples between ends of these types, found by calling ``function``."""
    ends = [
        PYTHON_TYPES[aval.dtype.kind](1) if aval.weak else np.ones((), aval.dtype)[()]
        for aval in types
    ]
    named = dict(zip(("start", "stop", "base"), ends, strict=False))
    return function(**named, num=1, dtype=dtype).dtype


def _spaced_aval(name: str, function):
    """The type rule: the broadcast shape of the ends with a new axis of ``num`` samples."""

    def aval(*types, num, endpoint, dtype, axis):
        if num < 0:
            raise ShapeError(
                f"{name}: the number of samples must not be negative, found {num}\n"
                "  pass how many samples to make"
            )
        shape = broadcast_shapes(*[kind.shape for kind in types])
        (axis,) = normalize_axes(axis, len(shape) + 1)
        return ArrayType(_spaced_dtype(function, types, dtype), (*shape[:axis], num, *shape[axis:]))

    return aval


def _spaced_impl(name: str):
    """The array module's function. The ends are keywords, since ``base`` comes after ``num``."""

    def impl(xp, *ends, num, endpoint=True, dtype=None, axis=0):
        named = dict(zip(("start", "stop", "base"), ends, strict=False))
        return getattr(xp, name)(**named, num=num, endpoint=endpoint, dtype=dtype, axis=axis)

    return impl


def _spaced_prepare(start, stop, num=50, endpoint=True, *further, dtype=None, axis=0, **others):
    """The operands and the attributes that the three functions share."""
    return (start, stop, *further), {
        "num": as_size(num),
        "endpoint": bool(endpoint),
        "dtype": None if dtype is None else number_dtype(dtype),
        "axis": as_size(axis),
    }


def _linspace_prepare(
    start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None
):
    """np.linspace."""
    if retstep:
        raise SeveralBinds(lambda: _samples_and_step(start, stop, num, endpoint, dtype, axis))
    return _spaced_prepare(start, stop, num, endpoint, dtype=dtype, axis=axis)


def _samples_and_step(start, stop, num, endpoint, dtype, axis) -> tuple:
    """(samples, step), the results of np.linspace with ``retstep``; the step of one is nan."""
    samples = linspace(start, stop, num, endpoint, dtype=dtype, axis=axis)
    first, last = [
        x * 1.0 if isinstance(x, Value) and not x.type.weak else _strong_float(x)
        for x in (start, stop)
    ]
    steps = as_size(num) - 1 if endpoint else as_size(num)
    return samples, (last - first) / steps if steps > 0 else (last - first) * np.nan


def _strong_float(x):
    """A number or list as an array, or traced value, whose dtype is not weak."""
    if isinstance(x, Value):
        return x.astype(complex if x.dtype.kind == "c" else float)
    return np.asarray(x) * 1.0


def _logspace_prepare(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """np.logspace."""
    return _spaced_prepare(start, stop, num, endpoint, base, dtype=dtype, axis=axis)


def _geomspace_prepare(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """np.geomspace."""
    return _spaced_prepare(start, stop, num, endpoint, dtype=dtype, axis=axis)


# ---- derivatives, with the new axis in front ----


def _stop_weights(y: Value, num: Any, endpoint: bool) -> Any:
    """The weight ``w`` of the stop in each sample of ``y``, whose samples are along axis 0."""
    if type(num) is Size:
        places = cumsum(ones_like(y).astype(float), axis=0) - 1
        return (places / maximum(number_from(num - endpoint, (y,)), 1)).astype(y.dtype)
    steps = num - 1 if endpoint else num
    w = np.arange(num) / max(steps, 1)
    return w.reshape(-1, *(1,) * (y.ndim - 1)).astype(y.dtype)


def _linear_terms(g, y, start, stop, *, num, endpoint):
    """``g`` times the derivatives of linspace with respect to the ends."""
    w = _stop_weights(y, num, endpoint)
    return g * (1 - w), g * w


def _geometric_terms(g, y, start, stop, *, num, endpoint):
    """``g`` times the derivatives of geomspace with respect to the ends."""
    w = _stop_weights(y, num, endpoint)
    return g * (y * (1 - w) / start), g * (y * w / stop)


def _power_terms(g, y, start, stop, base, *, num, endpoint):
    """``g`` times the derivatives of logspace with respect to the ends and the base."""
    w = _stop_weights(y, num, endpoint)
    # in the dtype of y: np.log of a Python number is in double precision
    slope = y * (log(base).astype(y.dtype) if isinstance(base, Value) else np.log(base).item())
    exponent = start * (1 - w) + w * stop
    return g * (slope * (1 - w)), g * (slope * w), g * (y * exponent / base)


def _define_spaced(name: str, function, terms, prepare):
    """Register one of the three functions. ``terms`` serve the VJP and the JVP, since each sample
    depends only on its own elements of the ends.
    """

    def vjp(ct, y, *ends, num, endpoint, dtype, axis):
        front = [cast_cotangent(move_axes(v, (axis,), (0,)), y.dtype) for v in (ct, y)]
        result = terms(*front, *ends, num=num, endpoint=endpoint)
        return tuple(
            [
                unbroadcast(term, end) if takes_gradient(end) else None
                for term, end in zip(result, ends, strict=True)
            ]
        )

    def jvp(tangents, y, *ends, num, endpoint, dtype, axis):
        front = move_axes(y, (axis,), (0,))
        result = [
            terms(t, front, *ends, num=num, endpoint=endpoint)[i]
            for i, t in enumerate(tangents)
            if t is not None
        ]
        return move_axes(broadcast_tangent(add_terms(result), front), (0,), (axis,))

    @batch_first
    def batch(args, mapped, *, axis, **attrs):
        ends = align_ranks(args, mapped)
        ndim = max(rank_of(arg, is_mapped) for arg, is_mapped in zip(args, mapped, strict=True))
        return emit_op(name, ends, axis=shift_axes(axis, ndim + 1), **attrs)

    return define(
        name,
        _spaced_impl(name),
        _spaced_aval(name, function),
        sizes_in=("num",),
        vjp=vjp,
        jvp=jvp,
        prepare=prepare,
        numpy=(function,),
        batch=batch,
        source=_spaced_source,
    )


def _spaced_source(write, start, stop, *base, **attrs):
    """A call of NumPy's function, with the base as a keyword."""
    return write.numpy_call(start, stop, *[f"base={b}" for b in base], **attrs)


linspace = _define_spaced("linspace", np.linspace, _linear_terms, _linspace_prepare)
geomspace = _define_spaced("geomspace", np.geomspace, _geometric_terms, _geomspace_prepare)
logspace = _define_spaced("logspace", np.logspace, _power_terms, _logspace_prepare)

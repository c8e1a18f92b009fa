"""Discrete Fourier transforms: fftn, ifftn, rfftn, irfftn; all others are recorded as these.

``s``: the lengths along ``axes`` to which the operand is cut or padded with zeros; None for its own
lengths. All transforms are linear: a tangent is transformed like its primal. Cotangents are defined
without a conjugate, so the transform is its own transpose: its vjp is the same transform of the
cotangent, cut or padded back. ``rfftn`` keeps half of a spectrum. ``irfftn`` reads half of one, in
which most elements stand for two and count twice; it ignores the imaginary part of the first and,
if the length is even, of the last.
"""

from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.record_fields import SeveralBinds
from letir.ast.types import ArrayType
from letir.errors import DTypeError, MissingRule, ShapeError
from letir.ops.define.batch_rules import batch_first, emit_op, rank_of, shift_axes
from letir.ops.define.records import define, unbroadcast
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.rounding_sign_parts import conj, real
from letir.ops.indexing.basic import assemble
from letir.ops.reductions.cumulative import number_along
from letir.ops.shape.shape_and_creation import as_size
from letir.ops.shape.transpose import array_as_tuple, int_or_tuple, normalize_axes

_OTHER_NORM = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}

# ---- calls ----


def _prepare_one_axis(a, n=None, axis=-1, norm=None, out=None):
    """The call of np.fft.fft and other transforms along one axis."""
    s = None if n is None else (as_size(n),)
    if s is not None and type(s[0]) is int and s[0] < 1:  # -1 is the full axis of fftn only
        raise ShapeError(
            f"fft: invalid number of data points: n is {n}\n  pass a length from 1, or leave n out"
        )
    return (a,), {"s": s, "axes": (as_size(axis),), "norm": norm}


def _prepare_several_axes(name: str):
    """The ``prepare`` of np.fft.fftn and other transforms along several axes."""

    def prepare(a, s=None, axes=None, norm=None, out=None):
        return _several_axes(name, a, s, axes, norm)

    return prepare


def _several_axes(name: str, a, s, axes, norm) -> tuple:
    """(operands, attrs) of a transform along several axes; an axis may be given twice."""
    s, axes = array_as_tuple(s), array_as_tuple(axes)
    if s is not None and None in s:
        s = _without_none(name, a, tuple(s), axes)
    s, axes = int_or_tuple(s), int_or_tuple(axes)
    if s is not None and axes is None:
        axes = tuple(range(-len(s), 0))
    is_known = axes is not None and a.type is not None
    if is_known and all(-a.ndim <= i < a.ndim for i in axes):
        repeats = len({i % a.ndim for i in axes}) < len(axes)
    else:  # the type rule raises for axes out of bounds
        repeats = False
    if repeats:
        raise SeveralBinds(lambda: _one_after_the_other(name, a, s, axes, norm))
    return (a,), {"s": s, "axes": axes, "norm": norm}


def _without_none(name: str, a, s: tuple, axes) -> tuple:
    """``s`` with -1, which stands for the full axis, in place of None."""
    text = "Passing an array containing `None` values to `s` is deprecated in NumPy 2.0"
    LATE_BOUND["warn_at_user"](text, DeprecationWarning)
    full = [-1 if n is None else n for n in s]
    if name == "irfftn" and s[-1] is None:  # the full length of the result
        full[-1] = 2 * (a.shape[-1 if axes is None else axes[-1]] - 1)
    return tuple(full)


def _prepare_two_axes(name: str):
    """The ``prepare`` of np.fft.fft2 and other transforms along two axes."""

    def prepare(a, s=None, axes=(-2, -1), norm=None, out=None):
        return _several_axes(name, a, s, axes, norm)

    return prepare


def _one_after_the_other(name: str, a, s, axes: tuple, norm) -> Value:
    """A transform along axes that repeat, one axis after the other as NumPy computes it."""
    lengths = _lengths_of(a, s, axes, halved=name == "irfftn")
    steps = list(zip(lengths, axes, strict=True))
    if name in ("fftn", "ifftn"):
        order = [(name, *step) for step in reversed(steps)]
    elif name == "rfftn":
        order = [(name, *steps[-1]), *[("fftn", *step) for step in reversed(steps[:-1])]]
    else:
        order = [*[("ifftn", *step) for step in steps[:-1]], (name, *steps[-1])]
    for transform, n, axis in order:
        a = PRIMITIVES[transform](a, (n,), (axis,), norm)
    return a


# ---- types ----


def _axes_of(x, axes) -> tuple[int, ...]:
    """The transformed axes, counted from the front. Raises ShapeError if there are none."""
    every = range(x.ndim) if axes is None else axes
    result = tuple([i for a in every for i in normalize_axes(a, x.ndim)])
    if len(set(result)) < len(result):
        raise ShapeError(
            f"fft: axes {axes} name an axis twice\n"
            "  name each axis once; call fft again to transform along an axis twice"
        )
    if not result:
        raise ShapeError(
            f"fft: there are no axes to transform in an array of shape {x.shape}\n"
            "  pass an array with at least one axis"
        )
    return result


def _lengths_of(x, s, axes: tuple, *, halved: bool = False) -> list:
    """The lengths of the transforms along ``axes``; ``halved``: ``x`` is half of a spectrum."""
    result = [x.shape[a] for a in axes]
    if s is None:
        if halved:
            result[-1] = 2 * (result[-1] - 1)
        return result
    if len(s) != len(axes):
        raise ShapeError(
            f"fft: s has {len(s)} lengths, {s}, for {len(axes)} axes, {axes}\n"
            "  pass one length for each axis"
        )
    return [own if n == -1 else n for own, n in zip(result, s, strict=True)]


def _transformed_shape(x, s, axes, norm, *, to_half=False, halved=False) -> tuple:
    """The shape of a result. Raises an error for lengths and norms that NumPy refuses."""
    if norm not in _OTHER_NORM:
        raise ShapeError(
            f"fft: norm must be 'backward', 'ortho' or 'forward', found {norm!r}\n"
            "  leave norm out for 'backward'"
        )
    axes = _axes_of(x, axes)
    lengths, shape = _lengths_of(x, s, axes, halved=halved), list(x.shape)
    if any(type(n) is int and n < 1 for n in lengths):
        raise ShapeError(
            f"fft: invalid number of data points {lengths} for shape {x.shape}\n"
            "  pass a length from 1, and arrays that are not empty"
        )
    for a, n in zip(axes, lengths, strict=True):
        shape[a] = n
    if to_half:
        shape[axes[-1]] = _half_length(lengths[-1])
    return tuple(shape)


def _half_length(n: Any) -> Any:
    """The length of half a spectrum of length ``n``."""
    return n // 2 + 1


def _complex_of(dtype: np.dtype) -> np.dtype:
    """The dtype of a spectrum."""
    return np.result_type(dtype, 1j)


def _real_of(dtype: np.dtype) -> np.dtype:
    """The dtype of a signal whose spectrum has ``dtype``."""
    return np.result_type(np.empty(0, dtype).real.dtype, 1.0)


# ---- derivatives ----


def _fit_to_operand(ct: Value, x: Value, axes: tuple) -> Value:
    """``ct`` padded or cut to the shape of ``x``: the transpose of cutting or padding ``x``."""
    if ct.shape == x.shape:
        return ct
    item = [slice(None)] * x.ndim
    for a in normalize_axes(axes, x.ndim):
        item[a] = slice(min(ct.shape[a], x.shape[a]))
    part = ct[tuple(item)]
    return part if part.shape == x.shape else assemble(x, ((tuple(item), part, ()),))


def _known_axes(x: Value, axes, name: str) -> tuple[int, ...]:
    """The transformed axes. Raises MissingRule unless their lengths are known."""
    if x.type is not None:
        return _axes_of(x, axes)
    raise MissingRule(f"{name}: its derivative needs the lengths of the axes")


def _transform_vjp(name: str):
    """The same transform of the cotangent."""

    def vjp(ct, y, x, *, s, axes, norm):
        cotangent = emit_op(name, (ct,), s=None, axes=axes, norm=norm)
        if s is not None:
            cotangent = _fit_to_operand(cotangent, x, _known_axes(x, axes, name))
        return (unbroadcast(cotangent, x),)

    return vjp


def _rfftn_vjp(ct, y, x, *, s, axes, norm):
    """The transform of the cotangent, padded with zeros for the half that was dropped."""
    axes = _known_axes(x, axes, "rfftn")
    whole = tuple(_lengths_of(x, s, axes))
    return (unbroadcast(_fit_to_operand(real(fftn(ct, whole, axes, norm)), x, axes), x),)


def _irfftn_vjp(ct, y, x, *, s, axes, norm):
    """Half of the transform of the cotangent; elements that stand for two count twice."""
    axes = _known_axes(x, axes, "irfftn")
    n = y.shape[axes[-1]]
    cotangent = conj(rfftn(ct, None, axes, _OTHER_NORM[norm]))
    if type(n) is not int:
        return (
            unbroadcast(
                _fit_to_operand(cotangent * _mirror_counts(cotangent, ct, axes[-1]), x, axes), x
            ),
        )
    counts = np.full(_half_length(n), 2, _real_of(y.dtype))
    counts[0] = 1
    if n % 2 == 0:
        counts[-1] = 1  # the highest frequency of an even length is its own mirror image
    place = [1] * x.ndim
    place[axes[-1]] = _half_length(n)
    return (unbroadcast(_fit_to_operand(cotangent * counts.reshape(place), x, axes), x),)


def _mirror_counts(half: Value, whole: Value, axis: int) -> Value:
    """The number of elements of the full spectrum for each element of its half."""
    place = number_along(half, axis) - 1
    is_single = (place == 0) | (2 * place == emit_op("length", (whole,), axis=axis))
    return where(is_single, 1, 2).astype(real(half).dtype)


# ---- records ----


def _define_transform(name: str, vjp, aval, calls: tuple) -> Primitive:
    """Register a transform. ``calls``: NumPy's functions along several, one and two axes."""

    @batch_first
    def batch(args, mapped, *, s, axes, norm):
        axes = shift_axes(axes, rank_of(args[0], True))
        return emit_op(name, args, s=s, axes=axes, norm=norm)

    return define(
        name,
        lambda xp, x, *, s=None, axes=None, norm=None: getattr(xp.fft, name)(
            x, s=s, axes=axes, norm=norm
        ),
        aval,
        sizes_in=("s",),
        vjp=vjp,
        jvp=lambda t, y, x, **attrs: emit_op(name, t, **attrs),
        prepare=_prepare_several_axes(name),
        numpy=dict(
            zip(
                calls,
                (_prepare_several_axes(name), _prepare_one_axis, _prepare_two_axes(name)),
                strict=True,
            )
        ),
        batch=batch,
    )


def _whole_aval(x, *, s, axes, norm):
    """A spectrum of the given lengths."""
    return ArrayType(_complex_of(x.dtype), _transformed_shape(x, s, axes, norm))


def _rfftn_aval(x, *, s, axes, norm):
    """Half of a spectrum of the given lengths."""
    if x.dtype.kind == "c":
        raise DTypeError(
            f"rfft takes real arrays, found {x}: transform with fft, or take .real\n"
            "  a complex signal has no half spectrum"
        )
    return ArrayType(_complex_of(x.dtype), _transformed_shape(x, s, axes, norm, to_half=True))


def _irfftn_aval(x, *, s, axes, norm):
    """A signal of the given lengths."""
    return ArrayType(_real_of(x.dtype), _transformed_shape(x, s, axes, norm, halved=True))


fftn = _define_transform(
    "fftn",
    _transform_vjp("fftn"),
    _whole_aval,
    (np.fft.fftn, np.fft.fft, np.fft.fft2),
)
ifftn = _define_transform(
    "ifftn",
    _transform_vjp("ifftn"),
    _whole_aval,
    (np.fft.ifftn, np.fft.ifft, np.fft.ifft2),
)
rfftn = _define_transform(
    "rfftn",
    _rfftn_vjp,
    _rfftn_aval,
    (np.fft.rfftn, np.fft.rfft, np.fft.rfft2),
)
irfftn = _define_transform(
    "irfftn",
    _irfftn_vjp,
    _irfftn_aval,
    (np.fft.irfftn, np.fft.irfft, np.fft.irfft2),
)

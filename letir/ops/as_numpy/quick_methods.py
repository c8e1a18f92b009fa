"""Short forms of NumPy's functions by methods of arrays and ufuncs, which NumPy's functions call.

Each form gets the writer of ``letir.plan.step_writer`` and the attributes of the bind. It returns
an expression, or None where it does not apply; see ``quick_forms``, which includes these forms.
"""

from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np

from letir.ast.primitive import record_of
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Const

# absent from the public names: without them the plan calls np.clip and np.convolve
_CORE = getattr(np, "_core", None)
_CLIP = getattr(getattr(_CORE, "umath", None), "clip", None)
_CORRELATE = getattr(getattr(_CORE, "multiarray", None), "correlate", None)
_COUNT = getattr(getattr(_CORE, "multiarray", None), "count_nonzero", np.count_nonzero)
_MAX_BOUND = 1e4  # float16 holds such bounds
Form = Callable[..., str | None]


def _is_plain_array(write: Any, i: int) -> bool:
    """Whether an operand is an array with axes, of booleans or real numbers."""
    aval = write.type(i)
    is_known = aval is not None and not aval.weak and bool(aval.shape)
    return is_known and aval.dtype.kind in "biuf"


def _is_array(write: Any, i: int) -> bool:
    aval = write.type(i)
    return aval is not None and not aval.weak and bool(aval.shape)


def _logical(ufunc: np.ufunc) -> Form:
    """The reduction that ``np.any`` and ``np.all`` call."""

    def form(write: Any, *, axis: Any, keepdims: bool) -> str | None:
        if len(write.bind.args) > 1 or not _is_plain_array(write, 0):
            return None
        rest = f", None, None, {keepdims!r}" if keepdims else ""
        return f"{write.constant(ufunc.reduce)}({write.slot(0)}, {axis!r}{rest})"

    return form


def _cumulative(method: str) -> Form:
    def form(write: Any, *, axis: int | None, dtype: Any) -> str | None:
        if dtype is not None or not _is_plain_array(write, 0):
            return None
        return f"{write.slot(0)}.{method}({axis!r})"

    return form


def _accumulate(write: Any, *, ufunc: str, axis: int, dtype: Any = None) -> str | None:
    """The method of the ufunc, without a search for the ufunc."""
    numpys: Any = next((f for f in record_of(ufunc).numpy if isinstance(f, np.ufunc)), None)
    if numpys is None or dtype is not None or not _is_plain_array(write, 0):
        return None
    return f"{write.constant(numpys.accumulate)}({write.slot(0)}, {axis!r})"


def _argsort(write: Any, *, axis: int | None, kind: Any) -> str | None:
    if kind is not None or not _is_plain_array(write, 0):
        return None
    return f"{write.slot(0)}.argsort({axis!r})"


def _round(write: Any, *, decimals: int) -> str | None:
    return f"{write.slot(0)}.round({decimals!r})" if _is_plain_array(write, 0) else None


def _take(write: Any, *, axis: int | None, mode: str) -> str | None:
    if mode != "raise" or not _is_plain_array(write, 0) or not _is_plain_array(write, 1):
        return None
    return f"{write.slot(0)}.take({write.slot(1)}, {axis!r})"


def _repeat(write: Any, *, repeats: Any, axis: int | None) -> str | None:
    if type(repeats) is not int or not _is_plain_array(write, 0):
        return None
    return f"{write.slot(0)}.repeat({repeats!r}, {axis!r})"


def _searchsorted(write: Any, *, side: str) -> str | None:
    if len(write.bind.args) > 2 or not all(_is_plain_array(write, i) for i in range(2)):
        return None
    return f"{write.slot(0)}.searchsorted({write.slot(1)}, {side!r})"


def _flip(write: Any, *, axis: Any) -> str | None:
    if axis is not None or not _is_plain_array(write, 0):
        return None
    reverse = (slice(None, None, -1),) * len(write.type(0).shape)
    return f"{write.slot(0)}[{write.constant(reverse)}]"


def _outer(write: Any) -> str | None:
    if not all(_is_plain_array(write, i) and len(write.type(i).shape) == 1 for i in range(2)):
        return None
    column = f"{write.slot(0)}[{write.constant((slice(None), None))}]"
    return f"{write.constant(np.multiply)}({column}, {write.slot(1)})"


def _diff(write: Any, *, n: int, axis: int) -> str | None:
    """The differences of neighbours along the last axis."""
    aval = write.type(0)
    if n != 1 or len(write.bind.args) > 1 or not _is_plain_array(write, 0):
        return None
    if axis not in (-1, len(aval.shape) - 1) or aval.dtype.kind == "b":
        return None
    later = write.constant((..., slice(1, None)))
    earlier = write.constant((..., slice(None, -1)))
    return f"{write.constant(np.subtract)}({write.slot(0)}[{later}], {write.slot(0)}[{earlier}])"


def _sort(write: Any, *, axis: int | None, kind: Any) -> str | None:
    if kind is not None or not _is_plain_array(write, 0):
        return None
    return f"{write.constant(np.sort)}({write.slot(0)}, {axis!r})"


def _roll(write: Any, *, shift: Any, axis: Any) -> str | None:
    """The two parts of an array in C order, in exchanged places."""
    aval = write.type(0)
    if type(shift) is not int or not _is_array(write, 0) or not is_static_shape(aval.shape):
        return None
    ndim = len(aval.shape)
    if type(axis) is not int and not (axis is None and ndim == 1):
        return None
    axis = 0 if axis is None else axis % ndim
    if aval.shape[axis] == 0 or shift % aval.shape[axis] == 0:
        return None
    at = aval.shape[axis] - shift % aval.shape[axis]
    whole = (slice(None),) * axis
    later = write.constant((*whole, slice(at, None)))
    earlier = write.constant((*whole, slice(None, at)))
    x, join, roll = write.slot(0), write.constant(np.concatenate), write.constant(np.roll)
    parts = f"{join}(({x}[{later}], {x}[{earlier}]), {axis})"
    return f"{parts} if {x}.flags.c_contiguous else {roll}({x}, {shift}, {axis})"


def _clip(write: Any) -> str | None:
    """The ufunc that ``np.clip`` calls, for floats between finite numbers."""
    aval, bounds = write.type(0), write.bind.args[1:]
    if _CLIP is None or aval is None or aval.weak or aval.dtype.kind != "f":
        return None
    if not all(type(b) is Const and type(b.value) in (int, float) for b in bounds):
        return None
    if not all(isfinite(b.value) and abs(b.value) < _MAX_BOUND for b in bounds):
        return None
    items = ", ".join(map(write.slot, range(3)))
    return f"{write.constant(_CLIP)}({items})"


def _count_nonzero(write: Any, *, axis: Any, keepdims: bool) -> str | None:
    """The function that ``np.count_nonzero`` calls, whose result may be a Python int."""
    if axis is not None or keepdims or not _is_plain_array(write, 0):
        return None
    return f"{write.constant(np.intp)}({write.constant(_COUNT)}({write.slot(0)}))"


def _convolve(write: Any, *, mode: str) -> str | None:
    """The correlation that ``np.convolve`` calls."""
    if _CORRELATE is None or not all(_is_plain_array(write, i) for i in range(2)):
        return None
    a, v = write.type(0).shape, write.type(1).shape
    if not is_static_shape((*a, *v)) or len(a) != 1 or len(v) != 1 or not a[0] >= v[0] > 0:
        return None
    reverse = write.constant(slice(None, None, -1))
    return f"{write.constant(_CORRELATE)}({write.slot(0)}, {write.slot(1)}[{reverse}], {mode!r})"


def _bincount(write: Any, *, length: int) -> str | None:
    """NumPy's function without keywords."""
    if type(length) is not int or not all(
        _is_plain_array(write, i) for i in range(len(write.bind.args))
    ):
        return None
    weights = write.slot(1) if len(write.bind.args) > 1 else None
    return f"{write.constant(np.bincount)}({write.slot(0)}, {weights}, {length})"


def _full(write: Any, *, shape: Any, dtype: Any) -> str | None:
    if len(write.bind.args) > 1 or shape is None or not is_static_shape(shape):
        return None
    return f"{write.constant(np.full)}({tuple(shape)!r}, {write.slot(0)}, {write.constant(dtype)})"


def _one_axis_transform(name: str) -> Form:
    """The Fourier transform along one axis, which the one along several axes calls."""
    function = getattr(np.fft, name)

    def form(write: Any, *, s: Any = None, axes: Any = None, norm: Any = None) -> str | None:
        if axes is None or len(axes) != 1 or not _is_array(write, 0):
            return None
        if s is not None and (len(s) != 1 or not is_static_shape(s)):
            return None
        write.is_loud = True
        size = None if s is None else s[0]
        return f"{write.constant(function)}({write.slot(0)}, {size!r}, {axes[0]!r}, {norm!r})"

    return form


METHOD_FORMS: dict[str, Form] = {
    "any": _logical(np.logical_or),
    "all": _logical(np.logical_and),
    "cumsum": _cumulative("cumsum"),
    "cumprod": _cumulative("cumprod"),
    "ufunc_accumulate": _accumulate,
    "argsort": _argsort,
    "round": _round,
    "take": _take,
    "repeat": _repeat,
    "searchsorted": _searchsorted,
    "flip": _flip,
    "outer": _outer,
    "diff": _diff,
    "roll": _roll,
    "sort": _sort,
    "clip": _clip,
    "count_nonzero": _count_nonzero,
    "convolve": _convolve,
    "bincount": _bincount,
    "full": _full,
    **{f"{name}n": _one_axis_transform(name) for name in ("fft", "ifft", "rfft", "irfft")},
}

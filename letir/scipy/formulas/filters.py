"""Formulas of ``scipy.signal``: filters whose coefficients may be traced, convolutions, spectra."""

from typing import Any

import numpy as np

from letir.ast.primitive import PRIMITIVES
from letir.ops.shape.transpose import normalize_axes
from letir.scipy.formulas.formula_table import formula, no_derivative
from letir.scipy.image_windows import extend_borders
from letir.scipy.signal import fftconvolve
from letir.tracing.operands import traced_or_array

# ---- linear filters ----


def _filtered(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """The output of a linear filter: x is convolved with b, ``zi`` is added, 1 / a is applied."""
    rows = np.moveaxis(x, axis, -1)
    n = rows.shape[-1]
    driven = fftconvolve(rows, b.reshape((1,) * (rows.ndim - 1) + (-1,)), "full", axes=-1)[..., :n]
    if zi is not None:
        state = np.moveaxis(zi, axis, -1)
        widths = [(0, 0)] * (state.ndim - 1) + [(0, max(n - state.shape[-1], 0))]
        driven = driven + a[0] * np.pad(state, widths)[..., :n]
    return np.moveaxis(PRIMITIVES["all_pole_filter"](a, driven), -1, axis)


def _as_vector(v: Any) -> Any:
    """Coefficients; a number is one coefficient."""
    v = np.atleast_1d(traced_or_array(v))
    if v.ndim != 1:
        no_derivative("the coefficients are not vectors")
    return v


@formula("signal.lfilter")
def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None, *, results: tuple) -> Any:
    """The output of a linear filter, and its final state if the first one is given."""
    b, a, x = [_as_vector(v).astype(results[0].dtype) for v in (b, a)] + [traced_or_array(x)]
    if 0 in x.shape:
        return results
    (axis,) = normalize_axes(axis, x.ndim)
    if zi is None:
        return _filtered(b, a, x, axis)
    zi = np.broadcast_to(zi, results[1].shape)
    y = _filtered(b, a, x, axis, zi)
    return y, _final_state(b, a, x, y, zi, axis)


def _final_state(b: Any, a: Any, x: Any, y: Any, zi: Any, axis: int) -> Any:
    """The state after the last sample: what samples so far contribute to later results."""
    n, k = x.shape[axis], zi.shape[axis]
    b, a = [np.pad(v, (0, k + 1 - v.shape[0])) / a[0] for v in (b, a)]
    parts: list = []
    for i in range(k):
        part: Any = _part(zi, i + n, i + n + 1, axis) if i + n < k else 0.0
        for j in range(min(n, k - i)):
            at = n - 1 - j
            part = part + b[i + 1 + j] * _part(x, at, at + 1, axis)
            part = part - a[i + 1 + j] * _part(y, at, at + 1, axis)
        parts.append(part)
    return np.concatenate(parts, axis=axis)


def _part(x: Any, start: int, stop: int, axis: int) -> Any:
    """The samples from ``start`` to ``stop`` along an axis."""
    item: list = [slice(None)] * x.ndim
    item[axis] = slice(start, stop)
    return x[tuple(item)]


@formula("signal.lfilter_zi")
def lfilter_zi(b: Any, a: Any) -> Any:
    """The state of a filter whose output is constant."""
    n = max(b.shape[0], a.shape[0])
    b, a = [np.pad(v, (0, n - v.shape[0])) / a[0] for v in (b, a)]
    first = np.concatenate([-a[1:, None], np.eye(n - 1, n - 2, dtype=a.dtype)], axis=1)
    return np.linalg.solve(np.eye(n - 1) - first, b[1:] - a[1:] * b[0])


@formula("signal.sosfilt")
def sosfilt(sos: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """The output of a filter in sections of the second order, one after the other, and their final
    states if the first ones are given.
    """
    sos, x = traced_or_array(sos), traced_or_array(x)
    (axis,) = normalize_axes(axis, x.ndim)
    states = []
    for i in range(sos.shape[0]):
        b, a, before = sos[i, :3], sos[i, 3:], x
        x = _filtered(b, a, before, axis, None if zi is None else zi[i])
        if zi is not None:
            states.append(_final_state(b, a, before, x, zi[i], axis))
    return x if zi is None else (x, np.stack(states))


def _odd_extension(x: Any, count: int, axis: int) -> Any:
    """``x`` continued at both ends by its rotation about the first and the last sample."""
    n = x.shape[axis]
    before = 2 * _part(x, 0, 1, axis) - np.flip(_part(x, 1, count + 1, axis), axis)
    after = 2 * _part(x, n - 1, n, axis) - np.flip(_part(x, n - 1 - count, n - 1, axis), axis)
    return np.concatenate([before, x, after], axis=axis)


@formula("signal.filtfilt")
def filtfilt(
    b: Any,
    a: Any,
    x: Any,
    axis: int = -1,
    padtype: Any = "odd",
    padlen: Any = None,
    method: str = "pad",
    irlen: Any = None,
) -> Any:
    """A filter applied forwards, then backwards."""
    b, a, x = _as_vector(b), _as_vector(a), traced_or_array(x)
    if method != "pad" or padtype not in ("odd", None) or max(b.shape[0], a.shape[0]) < 2:
        no_derivative("only method='pad' with padtype='odd' or None has one")
    (axis,) = normalize_axes(axis, x.ndim)
    edge = 3 * max(b.shape[0], a.shape[0]) if padlen is None else padlen
    edge = 0 if padtype is None else edge
    wide = _odd_extension(x, edge, axis) if edge else x
    zi = lfilter_zi(b, a)
    zi = zi.reshape(tuple([-1 if i == axis else 1 for i in range(x.ndim)]))
    for _ in range(2):
        state = zi * _part(wide, 0, 1, axis)
        wide = np.flip(_filtered(b, a, wide, axis, state), axis)
    return _part(wide, edge, wide.shape[axis] - edge, axis) if edge else wide


# ---- convolutions of images ----

_BORDERS = {"fill": "constant", "wrap": "wrap", "symm": "reflect"}


def _convolved(
    x: Any, y: Any, mode: str, boundary: str, fillvalue: Any, correlates: bool = False
) -> Any:
    """``convolve2d``; ``correlates``: results of mode "same" have the offset of a correlation."""
    x, y = traced_or_array(x), traced_or_array(y)
    if mode == "valid" and any(n < m for n, m in zip(x.shape, y.shape, strict=True)):
        x, y = y, x  # SciPy swaps them
    if 0 in x.shape or 0 in y.shape or mode == "valid":
        return fftconvolve(x, y, mode)
    is_zero = type(fillvalue) in (int, float) and fillvalue == 0
    if boundary == "fill" and is_zero and not correlates:
        return fftconvolve(x, y, mode)
    border = tuple([n - 1 for n in y.shape])
    wide = extend_borders(x, border, border, _BORDERS[boundary], fillvalue)
    full = fftconvolve(wide, y, "valid")
    if mode == "full":
        return full
    starts = [n // 2 if correlates else (n - 1) // 2 for n in y.shape]
    return full[tuple([slice(s, s + n) for s, n in zip(starts, x.shape, strict=True)])]


@formula("signal.convolve2d")
def convolve2d(
    in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0
) -> Any:
    """The convolution of two images."""
    return _convolved(in1, in2, mode, boundary, fillvalue)


@formula("signal.correlate2d")
def correlate2d(
    in1: Any,
    in2: Any,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: Any = 0,
    *,
    results: tuple,
) -> Any:
    """The correlation of two images; in mode "valid" the larger one may be the second."""
    x, y = traced_or_array(in1), traced_or_array(in2)
    if mode == "valid" and any(n < m for n, m in zip(x.shape, y.shape, strict=True)):
        return np.conj(_convolved(y, np.conj(x)[::-1, ::-1], mode, boundary, fillvalue))[::-1, ::-1]
    return _convolved(x, np.conj(y)[::-1, ::-1], mode, boundary, fillvalue, correlates=True)


@formula("signal.correlate")
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The correlation in mode "valid" where the second array is the larger one."""
    x, y = traced_or_array(in1), traced_or_array(in2)
    turn = (slice(None, None, -1),) * x.ndim
    return np.conj(fftconvolve(y, np.conj(x)[turn], mode))[turn]


@formula("signal.upfirdn")
def upfirdn(
    h: Any,
    x: Any,
    up: int = 1,
    down: int = 1,
    axis: int = -1,
    mode: str = "constant",
    cval: Any = 0,
) -> Any:
    """Every ``down``th result of a filter, for a signal with zeros between its samples."""
    if mode != "constant" or cval != 0:
        no_derivative("only mode='constant' with cval=0 has one")
    h, x = traced_or_array(h), traced_or_array(x)
    (axis,) = normalize_axes(axis, x.ndim)
    rows = np.moveaxis(x, axis, -1)
    n = rows.shape[-1]
    spread = np.zeros((n, (n - 1) * up + 1))
    spread[np.arange(n), np.arange(n) * up] = 1.0
    wide = rows @ spread
    shape = (1,) * (wide.ndim - 1) + (-1,)
    full = fftconvolve(wide, h.reshape(shape), "full", axes=-1)[..., ::down]
    return np.moveaxis(full, -1, axis)


# ---- responses ----


@formula("signal.freqz")
def freqz(
    b: Any,
    a: Any = 1,
    worN: Any = 512,
    whole: bool = False,
    plot: Any = None,
    fs: float = 6.283185307179586,
    include_nyquist: bool = False,
    *,
    results: tuple,
) -> tuple:
    """(frequencies, the response of a digital filter to them)."""
    if traced_or_array(worN).dtype.kind not in "iu" or np.ndim(worN):
        no_derivative("pass the number of frequencies as worN")
    b, a = _as_vector(b), _as_vector(a)
    if b.ndim != 1 or a.ndim != 1:
        no_derivative("the coefficients are not vectors")
    angles = results[0] * (2 * np.pi / fs)
    powers = [
        np.exp(-1j * angles[:, None] * np.arange(v.shape[0])) @ v.astype(complex) for v in (b, a)
    ]
    return results[0], powers[0] / powers[1]


@formula("signal.freqs")
def freqs(b: Any, a: Any, worN: Any = 200, plot: Any = None, *, results: tuple) -> tuple:
    """(angular frequencies, the response of an analog filter to them)."""
    if not np.ndim(worN):
        no_derivative("pass the frequencies as worN")
    b, a = _as_vector(b), _as_vector(a)
    s = 1j * traced_or_array(worN)[:, None]
    parts = [(s ** np.arange(v.shape[0] - 1, -1, -1)) @ v.astype(complex) for v in (b, a)]
    return traced_or_array(worN), parts[0] / parts[1]

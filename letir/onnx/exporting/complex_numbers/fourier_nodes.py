"""Fourier transforms as nodes DFT, on arrays with a last axis of real and imaginary parts."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from letir.ast.terms import Bind
from letir.onnx.exporting.complex_numbers.complex_values import join_parts, split_parts
from letir.onnx.exporting.node_graph import (
    Graph,
    Unexportable,
    exports_op,
    is_complex,
    real_dtype,
    result_types,
)


def _axes_and_lengths(bind: Bind) -> list[tuple[int, Any]]:
    """The transformed axes, and the lengths to which they are cut or padded, or None."""
    rank, axes, s = bind.args[0].type.ndim, bind.attrs["axes"], bind.attrs["s"]
    every = range(rank) if axes is None else [axis % rank for axis in axes]
    lengths = [None] * len(every) if s is None else [None if n == -1 else n for n in s]
    return list(zip(every, lengths, strict=True))


def _dft(g: Graph, signal: str, axis: int, length: Any, **attrs: Any) -> str:
    """One forward transform; runtimes divide inverse ones by the length in single precision."""
    size = "" if length is None else g.number(length)
    return g("DFT", signal, size, g.array(axis, np.int64), **attrs)


def _scale_spectrum(g: Graph, bind: Bind, name: str, sizes: Sequence[Any], is_inverse: bool) -> str:
    """A spectrum divided by the number of its points or its square root, as ``norm`` says."""
    norm, dtype = bind.attrs["norm"] or "backward", real_dtype(result_types(bind)[0].dtype)
    if norm == ("forward" if is_inverse else "backward"):
        return name
    count = g.array(1, dtype)
    for n in sizes:
        count = g("Mul", count, g.cast(g.number(n), np.dtype(np.int64), dtype))
    count = g("Sqrt", count) if norm == "ortho" else count
    if not is_complex(result_types(bind)[0]):
        return g("Div", name, count)
    return g.paired(*[g("Div", part, count) for part in g.parts(name)])


def _fftn(g: Graph, bind: Bind, *, is_inverse: bool = False) -> str:
    aval, steps = result_types(bind)[0], _axes_and_lengths(bind)
    name = g.operand(bind.args[0], aval.dtype)
    spectrum = _unscaled_transform(g, name, steps, is_inverse)
    return _scale_spectrum(g, bind, spectrum, [aval.shape[axis] for axis, _ in steps], is_inverse)


def _unscaled_transform(g: Graph, name: str, steps: Sequence[tuple], is_inverse: bool) -> str:
    """The unscaled transforms; the inverse conjugates, transforms and conjugates again."""
    if not steps:
        return name
    signal = join_parts(g, _conjugate_pairs(g, name) if is_inverse else name)
    for axis, length in steps:
        signal = _dft(g, signal, axis, length)
    result = split_parts(g, signal)
    return _conjugate_pairs(g, result) if is_inverse else result


def _conjugate_pairs(g: Graph, name: str) -> str:
    re, im = g.parts(name)
    return g.paired(re, g("Neg", im))


def _rfftn(g: Graph, bind: Bind) -> str:
    x, steps, aval = bind.args[0].type, _axes_and_lengths(bind), result_types(bind)[0]
    *others, (axis, length) = steps
    signal = g.unsqueeze(g.operand(bind.args[0], real_dtype(aval.dtype)), [-1])
    half = split_parts(g, _dft(g, signal, axis, length, onesided=1))
    sizes = [aval.shape[a] for a, _ in others]
    sizes.append(x.shape[axis] if length is None else length)
    return _scale_spectrum(g, bind, _unscaled_transform(g, half, others, False), sizes, False)


def _irfftn(g: Graph, bind: Bind) -> str:
    x, aval = bind.args[0].type, result_types(bind)[0]
    *others, (axis, _) = _axes_and_lengths(bind)
    n = aval.shape[axis]
    if type(n) is not int or type(x.shape[axis]) is not int:
        raise Unexportable("irfft along an axis of symbolic size")
    wide = np.result_type(aval.dtype, np.complex64)
    half = _unscaled_transform(g, g.operand(bind.args[0], wide), others, True)
    re, im = [
        _fit_length(g, part, x.ndim, axis, x.shape[axis], n // 2 + 1) for part in g.parts(half)
    ]
    mirrored = [_mirror_elements(g, part, axis, (n + 1) // 2) for part in (re, im)]
    re = g("Concat", re, mirrored[0], axis=axis)
    im = g("Concat", im, g("Neg", mirrored[1]), axis=axis)
    signal = g.parts(_unscaled_transform(g, g.paired(re, im), [(axis, None)], True))[0]
    return _scale_spectrum(g, bind, signal, [*[aval.shape[a] for a, _ in others], n], True)


def _fit_length(g: Graph, name: str, rank: int, axis: int, have: int, want: int) -> str:
    """An array cut or padded with zeros along an axis."""
    axes = g.array([axis], np.int64)
    if have > want:
        return g("Slice", name, g.array([0], np.int64), g.array([want], np.int64), axes)
    return g("Pad", name, g.array([0, want - have], np.int64), "", axes) if have < want else name


def _mirror_elements(g: Graph, name: str, axis: int, stop: int) -> str:
    """The elements 1 to ``stop`` along an axis, the last first."""
    bounds = [g.array([i], np.int64) for i in (stop - 1, 0, axis, -1)]
    return g("Slice", name, *bounds)


exports_op("fftn")(_fftn)
exports_op("ifftn")(partial(_fftn, is_inverse=True))
exports_op("rfftn")(_rfftn)
exports_op("irfftn")(_irfftn)

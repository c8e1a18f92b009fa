"""Layers of neural networks: one node where ONNX has the layer, else its decomposition."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from letir.ast.sizes.size import Size
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import NO_TYPE, Bind
from letir.onnx.exporting.node_graph import (
    Graph,
    computes_op,
    exports_op,
    result_types,
)
from letir.onnx.exporting.reduction_nodes import wide_dtype
from letir.ops.indexing.basic import index_add


def _export_parts(g: Graph, bind: Bind) -> Any:
    """The nodes of the operation's decomposition."""
    return g.emitter.parts(g, bind)


def _is_floating(bind: Bind) -> bool:
    """Whether all arrays are floating and of one dtype, as layers of ONNX are."""
    dtypes = {x.type.dtype for x in (*bind.args, *bind.binders) if x.type is not NO_TYPE}
    return len(dtypes) == 1 and next(iter(dtypes)).kind == "f"


def _present(bind: Bind) -> list:
    return [arg for arg in bind.args if arg.type is not NO_TYPE]


def _rule(kind: str, attributes: Callable = lambda bind: {}, *, double=True) -> Callable:
    """The rule of an operation that is one node of this kind, or else its decomposition.

    ``attributes(bind)``: the attributes of the node, or None if the bind needs the decomposition.
    ``double``: whether runtimes compute the node in double precision; attributes that are not exact
    in single precision need the decomposition too.
    """

    def rule(g: Graph, bind: Bind) -> Any:
        attrs = attributes(bind) if _is_floating(bind) else None
        if attrs is not None and bind.binders[0].type.dtype == np.float64:
            is_exact = all(float(np.float32(a)) == a for a in attrs.values() if type(a) is float)
            attrs = attrs if double and is_exact else None
        if attrs is None and bind.op.decompose is not None:
            return _export_parts(g, bind)
        # without a decomposition it is a ufunc, which casts its operands
        dtype = bind.binders[0].type.dtype
        return g(kind, *g.operands(bind, dtype), **(attrs or {}))

    return rule


def _only_axis(bind: Bind) -> dict | None:
    """The axis of a softmax, if it is one axis."""
    axis = bind.attrs["axis"]
    return {"axis": axis % bind.args[0].type.ndim} if type(axis) is int else None


exports_op("softmax")(_rule("Softmax", _only_axis))
exports_op("log_softmax")(_rule("LogSoftmax", _only_axis))
exports_op("relu")(_rule("Relu"))
exports_op("sigmoid", "expit")(_rule("Sigmoid"))
exports_op("selu")(_rule("Selu", double=False))
exports_op("hardswish")(_rule("HardSwish", double=False))
exports_op("mish")(_rule("Mish"))
exports_op("softsign")(_rule("Softsign", double=False))
exports_op("elu")(_rule("Elu", lambda bind: {"alpha": float(bind.attrs["alpha"])}))
exports_op("celu")(_rule("Celu", lambda bind: {"alpha": float(bind.attrs["alpha"])}, double=False))
exports_op("softplus")(_rule("Softplus", lambda bind: {} if bind.attrs["beta"] == 1 else None))
exports_op("leaky_relu")(
    _rule("LeakyRelu", lambda bind: {"alpha": float(bind.attrs["negative_slope"])})
)
exports_op("one_hot", "logsumexp")(_export_parts)  # nodes of these names cover fewer cases
exports_op("hardsigmoid")(_rule("HardSigmoid", lambda bind: {"alpha": 1 / 6, "beta": 0.5}))


@exports_op("gelu")
def _gelu(g: Graph, bind: Bind) -> Any:
    is_double = bind.binders[0].type.dtype == np.float64  # runtimes compute it in single precision
    if g.opset < 20 or not _is_floating(bind) or is_double:
        return _export_parts(g, bind)
    return g("Gelu", *g.operands(bind), approximate=bind.attrs["approximate"])


@exports_op("prelu")
def _prelu(g: Graph, bind: Bind) -> Any:
    x, weight = (arg.type for arg in bind.args)
    if not _is_floating(bind):
        return _export_parts(g, bind)
    name, slope = g.operands(bind)
    if weight.ndim == 1 and x.ndim > 1:
        slope = g.unsqueeze(slope, list(range(1, x.ndim - 1)))
    return g("PRelu", name, slope)


# ---- layers with weights ----


@exports_op("linear")
def _linear(g: Graph, bind: Bind) -> Any:
    if not _is_floating(bind) or [arg.type.ndim for arg in bind.args[:2]] != [2, 2]:
        return _export_parts(g, bind)
    return g("Gemm", *g.operands(bind), transB=1)


@exports_op("layer_norm")
def _layer_norm(g: Graph, bind: Bind) -> Any:
    return _last_axes_node(g, bind, "LayerNormalization")


@exports_op("rms_norm")
def _rms_norm(g: Graph, bind: Bind) -> Any:
    return _export_parts(g, bind) if g.opset < 23 else _last_axes_node(g, bind, "RMSNormalization")


def _last_axes_node(g: Graph, bind: Bind, kind: str) -> Any:
    """A normalisation over the last axes as a node of this kind, or else its decomposition."""
    x, axes = bind.args[0], _last_axes(bind)
    has_weight = len(bind.args) > 1 and bind.args[1].type is not NO_TYPE
    if not _is_floating(bind) or axes is None or not has_weight or x.type.dtype == np.float16:
        return _export_parts(g, bind)
    first = x.type.ndim - axes
    shape = x.type.shape[first:]
    if any(arg.type.shape != shape for arg in _present(bind)[1:]):
        return _export_parts(g, bind)
    attrs: dict[str, Any] = {"axis": first, "epsilon": float(bind.attrs["eps"])}
    if x.type.dtype == np.float64 and float(np.float32(attrs["epsilon"])) != attrs["epsilon"]:
        return _export_parts(g, bind)  # the attribute has single precision
    return g(kind, *[g.operand(arg) for arg in _present(bind)], **attrs)


def _last_axes(bind: Bind) -> int | None:
    """The number of axes that are normalised together, if they are the last ones; else None."""
    axis, rank = bind.attrs["axis"], bind.args[0].type.ndim
    axes = sorted(i % rank for i in (axis if type(axis) is tuple else (axis,)))
    return len(axes) if axes == list(range(rank - len(axes), rank)) else None


@exports_op("group_norm")
def _group_norm(g: Graph, bind: Bind) -> Any:
    x, epsilon = bind.args[0].type, float(bind.attrs["eps"])
    is_whole = len(_present(bind)) == 3 and _is_floating(bind) and x.dtype == np.float32
    if not is_whole or g.opset < 21 or x.ndim < 3 or type(x.shape[1]) is Size:
        return _export_parts(g, bind)
    attrs = {"num_groups": bind.attrs["groups"], "epsilon": epsilon}
    return g("GroupNormalization", *g.operands(bind), **attrs)


@exports_op("batch_norm")
def _batch_norm(g: Graph, bind: Bind) -> Any:
    x = bind.args[0].type
    is_whole = len(_present(bind)) == 5 and _is_floating(bind) and x.dtype == np.float32
    if bind.attrs["train"] or not is_whole or len(bind.binders) != 3:
        return _export_parts(g, bind)
    name, mean, variance, weight, bias = g.operands(bind)
    epsilon = float(bind.attrs["eps"])
    result = g("BatchNormalization", name, weight, bias, mean, variance, epsilon=epsilon)
    return result, mean, variance


@exports_op("attention")
def _attention(g: Graph, bind: Bind) -> Any:
    if g.opset < 23 or not _is_attention_node(bind):
        return _export_parts(g, bind)
    names = [g.operand(arg) for arg in _present(bind)]
    has_heads = bind.args[0].type.ndim == 4
    if not has_heads:  # the node has an axis of heads
        names[:3] = [g.unsqueeze(name, [1]) for name in names[:3]]
    scale, is_causal = bind.attrs["scale"], int(bind.attrs["causal"])
    scale = None if scale is None else float(scale)
    result = g("Attention", *names, is_causal=is_causal, scale=scale)
    return result if has_heads else g.squeeze(result, [1])


def _is_attention_node(bind: Bind) -> bool:
    """Whether an attention is one that the node computes, in single precision."""
    query, key, value, *masks = [arg.type for arg in _present(bind)]
    # a mask of booleans may leave a query without keys, for which the node gives nan
    if not _is_floating(bind) or query.dtype != np.float32 or query.ndim not in (3, 4):
        return False
    places = (query.shape[-2], key.shape[-2])
    fits = [
        len({aval.shape[:-2] for aval in (query, key, value)}) == 1,
        not bind.attrs["causal"] or places[0] == places[1],
        all(m.shape[-2:] == places and m.ndim in (2, 4) for m in masks),
        query.ndim == 4 or all(m.ndim == 2 for m in masks),
    ]
    return all(fits)


@exports_op("embedding")
def _embedding(g: Graph, bind: Bind) -> Any:
    if bind.attrs["max_norm"] is not None or bind.args[1].type.dtype.kind not in "iu":
        return _export_parts(g, bind)
    weight, indices = bind.args
    return g("Gather", g.operand(weight), g.operand(indices, np.dtype(np.int64)), axis=0)


# ---- convolutions ----


def _window_attributes(attrs: dict) -> dict:
    """The attributes of a convolution or a pool."""
    pads = [pair[0] for pair in attrs["padding"]] + [pair[1] for pair in attrs["padding"]]
    result = {"strides": list(attrs["stride"]), "pads": pads}
    if "dilation" in attrs:
        result["dilations"] = list(attrs["dilation"])
    return result


def _is_static(bind: Bind, *names: str) -> bool:
    """Whether these attributes hold no symbolic sizes and padding is not negative."""
    pads = itertools.chain.from_iterable(bind.attrs["padding"])
    return all(type(n) is not Size and n >= 0 for n in pads)


@exports_op("conv")
def _conv(g: Graph, bind: Bind) -> Any:
    x, w = (arg.type for arg in bind.args)
    if not _is_floating(bind) or not _is_static(bind) or x.ndim < 3:
        return g.emitter.written(g, bind, _conv_by_windows)
    attrs = {**_window_attributes(bind.attrs), "group": bind.attrs["groups"]}
    return g("Conv", *g.operands(bind), kernel_shape=list(w.shape[2:]), **attrs)


@exports_op("conv_transpose")
def _conv_transpose(g: Graph, bind: Bind) -> Any:
    y, w = (arg.type for arg in bind.args)
    attrs = bind.attrs
    if not _is_floating(bind) or not _is_static(bind) or y.ndim < 3:
        return g.emitter.written(g, bind, _conv_transpose_by_windows)
    if y.dtype == np.float64 and attrs["groups"] > 1:  # no runtime computes the node
        return g.emitter.written(g, bind, _conv_transpose_by_windows)
    rows = zip(
        *(attrs["sizes"], y.shape[2:], w.shape[2:], attrs["stride"]),
        *(attrs["padding"], attrs["dilation"]),
        strict=True,
    )
    # what the stride of the convolution left over at the end
    rest = [n - ((m - 1) * s + d * (k - 1) + 1 - low - high) for n, m, k, s, (low, high), d in rows]
    fits = zip(rest, attrs["stride"], attrs["dilation"], strict=True)
    if any(type(n) is Size or not 0 <= n < max(s, d) for n, s, d in fits):
        return g.emitter.written(g, bind, _conv_transpose_by_windows)
    spacing = {**_window_attributes(attrs), "group": attrs["groups"], "output_padding": rest}
    return g("ConvTranspose", *g.operands(bind), kernel_shape=list(w.shape[2:]), **spacing)


def _window_slices(
    at: Sequence[int], places: Sequence, stride: Sequence, dilation: Sequence
) -> tuple:
    """The slices that read the element at position ``at`` of all windows."""
    rows = zip(at, places, stride, dilation, strict=True)
    return tuple(slice(i * d, i * d + (m - 1) * s + 1, s) for i, m, s, d in rows)


def _counts(sizes: Sequence, window: Sequence, stride: Sequence, dilation: Sequence) -> tuple:
    """The number of positions of a window along each axis."""
    rows = zip(sizes, window, stride, dilation, strict=True)
    return tuple((n - d * (k - 1) - 1) // s + 1 for n, k, s, d in rows)


@computes_op("unfold")
def _unfold(x, *, window, stride, padding, dilation, value=0.0):
    lead = x.ndim - len(window)
    if any(low or high for low, high in padding):
        x = np.pad(x, ((0, 0),) * lead + tuple(padding), constant_values=value)
    places = _counts(x.shape[lead:], window, stride, dilation)
    rows = [x[(..., *_window_slices(at, places, stride, dilation))] for at in np.ndindex(*window)]
    return np.stack(rows).reshape(*window, *rows[0].shape)


@computes_op("fold")
def _fold(y, *, sizes, stride, padding, dilation):
    n = len(sizes)
    padded = [low + size + high for size, (low, high) in zip(sizes, padding, strict=True)]
    corner = y[(0,) * n][(..., *[slice(0, 1)] * n)]  # its leading axes may have symbolic sizes
    out = np.zeros_like(corner) + np.zeros(padded, y.dtype)
    for at in np.ndindex(*y.shape[:n]):
        out = index_add(out, (..., *_window_slices(at, y.shape[-n:], stride, dilation)), y[at])
    inner = (slice(low, low + size) for size, (low, _) in zip(sizes, padding, strict=True))
    return out[(..., *inner)] * 1


def _split_channels(x, groups: int):
    """(N, channels, ...) as (N, groups, channels of a group, ...)."""
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])


@computes_op("conv_weight")
def _conv_weight(x, y, *, kernel, stride, padding, dilation, groups=1):
    if any(low or high for low, high in padding):
        x = np.pad(x, ((0, 0), (0, 0), *padding))
    y = _split_channels(y, groups)
    y = y.reshape(*y.shape[:3], math.prod(y.shape[3:]))
    columns = []
    for at in np.ndindex(*kernel):
        part = _split_channels(
            x[(..., *_window_slices(at, _spatial(x, kernel, stride, dilation), stride, dilation))],
            groups,
        )
        columns.append(
            np.einsum("ngop,ngip->goi", y, part.reshape(*part.shape[:3], math.prod(part.shape[3:])))
        )
    result = np.stack(columns, axis=-1)
    return result.reshape(result.shape[0] * result.shape[1], result.shape[2], *kernel)


def _spatial(x, kernel, stride, dilation) -> tuple:
    return _counts(x.shape[2:], kernel, stride, dilation)


def _conv_by_windows(
    x: Any, w: Any, *, stride: tuple, padding: tuple, dilation: tuple, groups: int = 1
) -> Any:
    """A convolution as the sum over the elements of its kernel."""
    if any(low or high for low, high in padding):
        x = np.pad(x, ((0, 0), (0, 0), *padding))
    places = _counts(x.shape[2:], w.shape[2:], stride, dilation)
    kernel = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    total: Any = 0
    for at in np.ndindex(*w.shape[2:]):
        window = _split_channels(x[(..., *_window_slices(at, places, stride, dilation))], groups)
        total = total + np.einsum("ngi...,goi->ngo...", window, kernel[(..., *at)])
    return total.reshape(total.shape[0], w.shape[0], *places)


def _conv_transpose_by_windows(
    y: Any,
    w: Any,
    *,
    sizes: tuple,
    stride: tuple,
    padding: tuple,
    dilation: tuple,
    groups: int = 1,
) -> Any:
    """A transposed convolution as the sum over the elements of its kernel."""
    padded = [low + n + high for n, (low, high) in zip(sizes, padding, strict=True)]
    kernel = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    dtype = np.result_type(y.dtype, w.dtype)
    corner = np.zeros_like(y[(slice(None), *[slice(0, 1)] * (y.ndim - 1))])
    out: Any = corner + np.zeros((groups * w.shape[1], *padded), dtype)
    for at in np.ndindex(*w.shape[2:]):
        part = np.einsum("ngo...,goi->ngi...", _split_channels(y, groups), kernel[(..., *at)])
        part = part.reshape(y.shape[0], -1, *y.shape[2:])
        out = index_add(out, (..., *_window_slices(at, y.shape[2:], stride, dilation)), part)
    inner = (slice(low, low + n) for n, (low, _) in zip(sizes, padding, strict=True))
    return out[(..., *inner)] * 1


# ---- pools ----


@exports_op("max_pool", "avg_pool")
def _pool(g: Graph, bind: Bind) -> Any:
    x, window = bind.args[0].type, bind.attrs["window"]
    is_max = "dilation" in bind.attrs
    lead = x.ndim - len(window)
    pads = zip(bind.attrs["padding"], window, strict=True)
    if not _is_floating(bind) or not _is_static(bind) or any(max(p) >= k for p, k in pads):
        return _export_parts(g, bind)
    name = g.operand(bind.args[0])
    if lead > 2 or x.dtype == np.float16 or (is_max and lead > 2):
        return _export_parts(g, bind)
    name = g.unsqueeze(name, list(range(2 - lead)))
    attrs = {"kernel_shape": list(window), **_window_attributes(bind.attrs)}
    if not is_max:
        attrs["count_include_pad"] = int(bind.attrs["count_padding"])
    result = g("MaxPool" if is_max else "AveragePool", name, **attrs)
    return g.squeeze(result, list(range(2 - lead)))


@exports_op("pad")
def _pad(g: Graph, bind: Bind) -> Any:
    aval, width, value = result_types(bind)[0], bind.attrs["width"], bind.attrs["value"]
    if not width:
        return g.operand(bind.args[0])
    pads = g.ints([*[pair[0] for pair in width], *[pair[1] for pair in width]])
    mode, wide = bind.attrs["mode"], wide_dtype(aval.dtype)
    if _copies_edges(bind) and g.opset >= 19 and not is_static_shape(aval.shape):
        return g.cast(g("Pad", g.operand(bind.args[0], wide), pads, mode=mode), wide, aval.dtype)
    is_plain = mode == "constant" and type(value) in (int, float)
    if not is_plain or aval.dtype.kind not in "fi" or aval.dtype.itemsize < 4:
        return _export_parts(g, bind)
    return g("Pad", g.operand(bind.args[0]), pads, g.array(value, aval.dtype))


def _copies_edges(bind: Bind) -> bool:
    """Whether the node Pad copies the same elements as ``pad``; otherwise the node would fail."""
    return bind.attrs["mode"] in ("edge", "reflect", "wrap") and bind.attrs["of"] in (None, "even")

"""Convolutions over any number of axes: conv, conv_transpose, and conv_weight.

The three come from one trilinear form in the input x of shape (N, groups * I, *sizes), the weight w
of shape (groups * O, I, *kernel) and the result y of shape (N, groups * O, *places): each maps two
of them to the third. So the derivatives of each are the other two, to any order. They are computed
by one matrix product with the patches of x (Chellapilla, Puri and Simard, High performance
convolutional neural networks for document processing, 2006).
"""

from collections.abc import Callable, Sequence

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.types import ArrayType
from letir.errors import MissingRule, ShapeError
from letir.ops.as_numpy import copied_function
from letir.ops.control_flow.loop_over_examples import LoopOverExamples
from letir.ops.define.batch_rules import (
    emit_op,
    emit_with_shape,
    known_size,
    move_to_front,
    type_without_batch,
)
from letir.ops.define.records import (
    add_terms,
    array_dtype,
    cast_cotangent,
    define,
    takes_gradient,
    unbroadcast,
)

# ---- numerics ----


def _product(xp, sizes):
    """The product of integers."""
    result = 1
    for n in sizes:
        result *= n
    return result


def _taps(places, n, k, s, low, d):
    """For each element of a kernel along an axis: the places whose element is not padding, and the
    elements that they read, of ``n``.
    """
    result = []
    for j in range(k):
        offset = j * d - low  # place p reads element p * s + offset
        first, last = max(0, -(offset // s)), min(places, (n - 1 - offset) // s + 1)
        if first < last:
            read = slice(first * s + offset, (last - 1) * s + offset + 1, s)
            result.append((j, slice(first, last), read))
    return result


def _patches(xp, x, lead, kernel, stride, padding, dilation):
    """The patches of ``x`` under a kernel, whose axes are inserted after ``lead`` axes.

    One axis after another, the last first: the copies for the other axes then move whole rows.
    """
    before, after = (slice(None),) * lead, ()
    for i in reversed(range(len(kernel))):
        k, s, d, (low, high) = kernel[i], stride[i], dilation[i], padding[i]
        axis = x.ndim - 1 - len(after)
        n = x.shape[axis]
        places = (n + low + high - d * (k - 1) - 1) // s + 1
        if k == 1 and not low and not high:
            window = x[(..., slice(0, (places - 1) * s + 1, s), *after)]
            x = xp.expand_dims(window, lead)
        else:
            shape = (*x.shape[:lead], k, *x.shape[lead:axis], places, *x.shape[axis + 1 :])
            out = (xp.zeros if low or high else xp.empty)(shape, x.dtype)
            for j, here, read in _taps(places, n, k, s, low, d):
                out[(*before, j, ..., here, *after)] = x[(..., read, *after)]
            x = out
        after = (slice(None), *after)
    return x


def _conv_impl(xp, x, w, *, stride, padding, dilation, groups=1):
    """The sums of products of ``w`` with the patches of ``x``, one matrix product an example."""
    examples, channels, kernel = x.shape[0], x.shape[1], w.shape[2:]
    patches = _patches(xp, x, 2, kernel, stride, padding, dilation)
    places = patches.shape[2 + len(kernel) :]
    rows = channels // groups * _product(xp, kernel)
    columns = patches.reshape(examples, groups, rows, _product(xp, places))
    result = xp.matmul(w.reshape(groups, w.shape[0] // groups, rows), columns)
    return result.reshape(examples, w.shape[0], *places)


def _conv_weight_impl(xp, x, y, *, kernel, stride, padding, dilation, groups=1):
    """The sums of products of ``y`` with the patches of ``x``."""
    rows, columns = x.shape[1] // groups * _product(xp, kernel), _product(xp, y.shape[2:])
    patches = _patches(xp, xp.moveaxis(x, 1, 0), 1, kernel, stride, padding, dilation)
    patches = patches.reshape(groups, rows, x.shape[0] * columns)
    each = y.shape[1] // groups
    values = xp.moveaxis(y, 1, 0).reshape(groups, each, x.shape[0] * columns)
    out = xp.matmul(values, xp.swapaxes(patches, 1, 2))
    return out.reshape(y.shape[1], x.shape[1] // groups, *kernel)


def _conv_transpose_impl(xp, y, w, *, sizes, stride, padding, dilation, groups=1):
    """Each element of ``y`` times ``w``, added where conv reads its input of these ``sizes``."""
    kernel, places, after = w.shape[2:], y.shape[2:], (slice(None),) * (len(sizes) - 1)
    each, channels = w.shape[0] // groups, groups * w.shape[1]
    rows = w.reshape(groups, each, w.shape[1] * _product(xp, kernel))
    values = xp.moveaxis(y, 1, 0).reshape(groups, each, y.shape[0] * _product(xp, places))
    columns = xp.matmul(xp.swapaxes(rows, 1, 2), values)
    x = columns.reshape(channels, *kernel, y.shape[0], *places)
    for n, m, k, s, (low, _), d in zip(
        sizes, places, kernel, stride, padding, dilation, strict=True
    ):
        axis = x.ndim - 1 - len(after)
        out = xp.zeros((channels, *x.shape[2:axis], n, *x.shape[axis + 1 :]), x.dtype)
        for j, here, read in _taps(m, n, k, s, low, d):
            out[(..., read, *after)] += x[(slice(None), j, ..., here, *after)]
        x, after = out, after[1:]
    return xp.ascontiguousarray(xp.moveaxis(x, 0, 1))


# ---- types ----


def output_sizes(
    sizes: Sequence, kernel: Sequence, stride: Sequence, padding: Sequence, dilation: Sequence
) -> tuple:
    """The number of places of a kernel along each axis. Raises ShapeError if it does not fit."""
    result = []
    for n, k, s, (low, high), d in zip(sizes, kernel, stride, padding, dilation, strict=True):
        if s < 1 or d < 1:
            raise ShapeError(
                f"conv: stride {stride} and dilation {dilation} must be positive\n"
                "  pass whole numbers from 1"
            )
        room = n + (low + high - d * (k - 1) - 1)
        if type(room) is int and (room < 0 or low < 0 or high < 0):
            raise ShapeError(
                f"conv: a kernel of {tuple(kernel)}, dilated by {dilation}, does not fit into "
                f"{tuple(sizes)}, padded by {padding}\n"
                "  pad more, or take a smaller kernel"
            )
        result.append(room // s + 1)
    return tuple(result)


def _check_shapes(x_shape, w_shape, y_shape, *, stride, padding, dilation, groups) -> None:
    """Raise ShapeError unless the shapes of input, weight and result (or None) fit together."""
    ndim = len(next(shape for shape in (x_shape, w_shape) if shape)) - 2
    if any(len(each) != ndim for each in (stride, padding, dilation)) or groups < 1:
        raise ShapeError(
            f"conv: {ndim} axes, but stride {stride}, padding {padding}, dilation {dilation}, "
            f"groups {groups}\n"
            "  give one number for all axes, or one for each; groups from 1"
        )
    (_, channels, *sizes), (outputs, inputs, *kernel) = x_shape, w_shape
    each = outputs // groups  # raises for a symbolic size that groups may not divide
    if len(x_shape) != len(w_shape) or (channels, outputs) != (groups * inputs, groups * each):
        raise ShapeError(
            f"conv: an input of shape {x_shape} and a weight of shape {w_shape} do not fit, with "
            f"groups={groups}\n  shapes are (N, groups * I, *sizes) and (groups * O, I, *kernel)"
        )
    expected = (x_shape[0], outputs, *output_sizes(sizes, kernel, stride, padding, dilation))
    if y_shape is not None and y_shape != expected:
        raise ShapeError(
            f"conv: its result has the shape {expected}, not {y_shape}\n"
            "  the weight of a transposed convolution has shape (inputs, outputs, *kernel)"
        )


def _conv_aval(x, w, *, stride, padding, dilation, groups):
    """The type of the result: one element for each output channel and place of the kernel."""
    where = {"stride": stride, "padding": padding, "dilation": dilation}
    _check_shapes(x.shape, w.shape, None, groups=groups, **where)
    places = output_sizes(x.shape[2:], w.shape[2:], **where)
    return ArrayType(array_dtype(x, w), (x.shape[0], w.shape[0], *places))


def _conv_transpose_aval(y, w, *, sizes, groups, **where):
    """The type of the input of a convolution whose result is ``y``."""
    shape = (y.shape[0], groups * w.shape[1], *sizes) if w.ndim > 1 else ()
    _check_shapes(shape, w.shape, y.shape, groups=groups, **where)
    return ArrayType(array_dtype(y, w), shape)


def _conv_weight_aval(x, y, *, kernel, groups, **where):
    """The type of the weight of a convolution of ``x`` whose result is ``y``."""
    shape = (y.shape[1], x.shape[1] // groups, *kernel)
    _check_shapes(x.shape, shape, y.shape, groups=groups, **where)
    return ArrayType(array_dtype(x, y), shape)


# ---- derivatives: each by the other two operations ----


def _known_sizes(x, name: str) -> tuple:
    """The sizes of the spatial axes of ``x``. Raises MissingRule if they are not static."""
    if x.type is None or not is_static_shape(x.shape[2:]):
        raise MissingRule(
            f"{name}: its derivative needs known sizes\n"
            "  give the program types with known sizes: letir.retype"
        )
    return x.shape[2:]


def _conv_vjp(ct, y, x, w, **where):
    """The cotangents: conv_transpose of ``ct`` for x, conv_weight for w."""
    by_x = by_w = None
    if takes_gradient(x):
        by_x = unbroadcast(conv_transpose(ct, w, sizes=_known_sizes(x, "conv"), **where), x)
    if takes_gradient(w):
        by_w = unbroadcast(conv_weight(x, ct, kernel=_known_sizes(w, "conv"), **where), w)
    return by_x, by_w


def _conv_transpose_vjp(ct, x, y, w, *, sizes, **where):
    """The cotangents: conv of ``ct`` for y, conv_weight for w."""
    by_y = unbroadcast(conv(ct, w, **where), y) if takes_gradient(y) else None
    by_w = None
    if takes_gradient(w):
        by_w = unbroadcast(conv_weight(ct, y, kernel=_known_sizes(w, "conv_transpose"), **where), w)
    return by_y, by_w


def _conv_weight_vjp(ct, w, x, y, *, kernel, **where):
    """conv_transpose and conv, with the cotangent as the weight."""
    by_x = None
    if takes_gradient(x):
        by_x = unbroadcast(conv_transpose(y, ct, sizes=_known_sizes(x, "conv_weight"), **where), x)
    return by_x, unbroadcast(conv(x, ct, **where), y) if takes_gradient(y) else None


def _bilinear_jvp(record: Callable) -> Callable:
    """The product rule; ``record()`` returns the operation."""

    def jvp(tangents, out, a, b, **attrs):
        by_a, by_b = tangents
        terms = (
            None if by_a is None else record()(by_a, b, **attrs),
            None if by_b is None else record()(a, by_b, **attrs),
        )
        return cast_cotangent(add_terms(terms), out.dtype)

    return jvp


# ---- batching ----

# the labels of axes 0 and 1 of each array; an axis with two labels is their product, groups first
_AXES = {
    "x": (("n",), ("groups", "i")),
    "w": (("groups", "o"), ("i",)),
    "y": (("n",), ("groups", "o")),
}


def _label_axis(role: str, label: str) -> tuple[int, bool]:
    """(the axis with this label, whether it is the second of two labels)."""
    axis = next(i for i, labels in enumerate(_AXES[role]) if label in labels)
    return axis, _AXES[role][axis].index(label) == 1


def _size_product(*sizes):
    """The product of sizes for a reshape: -1 if one of them is symbolic."""
    return -1 if not is_static_shape(sizes) else _product(None, sizes)


def _join_batch(v: Value, role: str, label: str, groups: int) -> Value:
    """``v`` with its batch, axis 0, merged into the axis with this label, as the outer factor."""
    axis, inner = _label_axis(role, label)
    batch, *shape = v.shape
    before, n, after = shape[:axis], shape[axis], shape[axis + 1 :]
    if inner:
        parts = (_size_product(batch), *before, groups, n // groups, *after)
        v = emit_with_shape("reshape", v, parts, v)
    v = _move_axis(v, 0, axis + inner)
    return emit_with_shape("reshape", v, (*before, _size_product(batch, n), *after), v)


def _split_batch(v: Value, role: str, label: str, groups: int, shape: tuple, batch) -> Value:
    """The inverse of ``_join_batch``: the batch as axis 0, then the axes of ``shape``."""
    axis, inner = _label_axis(role, label)
    before, n, after = shape[:axis], shape[axis], shape[axis + 1 :]
    parts = (groups, _size_product(batch), n // groups) if inner else (_size_product(batch), n)
    v = _move_axis(emit_with_shape("reshape", v, (*before, *parts, *after), v), axis + inner, 0)
    return emit_with_shape("reshape", v, (_size_product(batch), *shape), v) if inner else v


def _move_axis(v: Value, source: int, destination: int) -> Value:
    """``v`` with one axis moved."""
    order = [i for i in range(v.ndim) if i != source]
    order.insert(destination, source)
    return emit_op("transpose", (v,), axes=tuple(order)) if source != destination else v


def _batched_conv(record: Callable, roles: str) -> Callable:
    """The batching rule of one of the three; ``roles``: its operands and result, such as "xwy".

    The batch is merged into an axis that the mapped operand shares with the result, but not with
    the other operand. If both operands are mapped, each example becomes a group of its own.
    """
    *operands, result = tuple(roles)

    def batch(args, axes, *, groups, **attrs):
        n = next(arg.shape[axis] for arg, axis in zip(args, axes, strict=True) if axis is not None)
        both = None not in axes
        shape = record().aval(*map(type_without_batch, args, axes), groups=groups, **attrs).shape
        if n == 0 or (type(n) is not int and (both or 0 in shape)):
            known_size(n, record().name)
            return LoopOverExamples(record)(args, axes, groups=groups, **attrs)
        label = "groups" if both else _shared_label(operands[axes[0] is None], result)
        merged = [
            arg if axis is None else _join_batch(move_to_front(arg, axis), role, label, groups)
            for arg, axis, role in zip(args, axes, operands, strict=True)
        ]
        out = record()(*merged, groups=groups * n if both else groups, **attrs)
        return _split_batch(out, result, label, groups, shape, n), 0

    return batch


def _shared_label(role: str, result: str) -> str:
    """The label, other than groups, that an operand shares with the result."""
    own, others = ({label for labels in _AXES[r] for label in labels} for r in (role, result))
    return next(label for label in ("n", "i", "o") if label in own & others)


# ---- records ----

_NUMERICS: dict[str, Callable] = {
    "conv": _conv_impl,
    "conv_transpose": _conv_transpose_impl,
    "conv_weight": _conv_weight_impl,
}


def _define_convolution(
    name: str, aval: Callable, vjp: Callable, roles: str, *functions: Callable, **fields
):
    """Register one of the three operations; ``functions`` are called by its ``impl``."""
    return define(
        name,
        _NUMERICS[name],
        aval,
        vjp=vjp,
        jvp=_bilinear_jvp(lambda: PRIMITIVES[name]),
        batch=_batched_conv(lambda: PRIMITIVES[name], roles),
        source=copied_function(_NUMERICS[name], *functions),
        **fields,
    )


def _work(y, w) -> int:
    """A multiplication and an addition for each output and each weight of its channel."""
    return 2 * y.size * w.size // w.shape[0]


conv = _define_convolution(
    "conv",
    _conv_aval,
    _conv_vjp,
    "xwy",
    *(_taps, _patches, _product),
    product="windows",
    onnx="Conv",
    work=lambda y, x, w, **_: _work(y, w),
)
conv_transpose = _define_convolution(
    "conv_transpose",
    _conv_transpose_aval,
    _conv_transpose_vjp,
    "ywx",
    *(_taps, _product),
    product="transposed windows",
    onnx="ConvTranspose",
    work=lambda x, y, w, **_: _work(y, w),
)
conv_weight = _define_convolution(
    "conv_weight",
    _conv_weight_aval,
    _conv_weight_vjp,
    "xyw",
    *(_taps, _patches, _product),
    product="weights of windows",
    work=lambda w, x, y, **_: _work(y, w),
)

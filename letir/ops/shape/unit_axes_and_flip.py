"""Axes of length 1, and the order along axes: expand_dims, squeeze, flip."""

import numpy as np

from letir.ast.primitive import Primitive
from letir.errors import ShapeError
from letir.ops.define.batch_rules import axes_rule, squeeze_batch
from letir.ops.define.records import define, unbroadcast
from letir.ops.shape.reshape_and_ravel import reshape, write_reshape
from letir.ops.shape.transpose import int_or_tuple, normalize_axes


def _expand_dims_aval(x, *, axis):
    """The shape with axes of length 1 at these positions of the result."""
    places = axis if type(axis) is tuple else (axis,)
    ndim = x.ndim + len(places)
    places, sizes = normalize_axes(places, ndim), iter(x.shape)
    return x.with_shape(tuple(1 if i in places else next(sizes) for i in range(ndim)))


expand_dims: Primitive = define(
    "expand_dims",
    lambda xp, x, *, axis: xp.expand_dims(x, axis),
    _expand_dims_aval,
    vjp=lambda ct, y, x, *, axis: (unbroadcast(squeeze(ct, axis), x),),
    jvp=lambda t, y, x, *, axis: expand_dims(t[0], axis),
    prepare=lambda a, axis: ((a,), {"axis": int_or_tuple(axis)}),
    numpy=(np.expand_dims,),
    batch=axes_rule("expand_dims"),
    onnx="Unsqueeze",
    never_fails="biuf",
    odd_in=(0,),
    only_float_warnings=True,
    memory="view",
    order="first",
    cost="free",
    write_through=write_reshape,
    moves_elements=1,
)


def _squeeze_aval(x, *, axis):
    """The shape without these axes of length 1."""
    axes = (
        [i for i, n in enumerate(x.shape) if n == 1]
        if axis is None
        else normalize_axes(axis, x.ndim)
    )
    if any(x.shape[i] != 1 for i in axes):
        raise ShapeError(
            f"squeeze: axis {axis} of {x.shape} is not of length 1\n"
            "  leave axis out to squeeze those of length 1, or index it: x[0]"
        )
    return x.with_shape(tuple(n for i, n in enumerate(x.shape) if i not in axes))


squeeze: Primitive = define(
    "squeeze",
    lambda xp, x, *, axis=None: xp.squeeze(x, axis),
    _squeeze_aval,
    vjp=lambda ct, y, x, *, axis: (
        unbroadcast(reshape(ct, x) if axis is None else expand_dims(ct, axis), x),
    ),
    jvp=lambda t, y, x, *, axis: squeeze(t[0], axis),
    prepare=lambda a, axis=None: ((a,), {"axis": int_or_tuple(axis)}),
    numpy=(np.squeeze,),
    batch=squeeze_batch,
    onnx="Squeeze",
    never_fails="biuf",
    odd_in=(0,),
    only_float_warnings=True,
    memory="view",
    may_return_operand=True,
    order="first",
    cost="free",
    write_through=write_reshape,
    moves_elements=1,
)


def _flip_aval(x, *, axis):
    """The operand's type."""
    normalize_axes(axis if axis is not None else (), x.ndim)
    return x


flip: Primitive = define(
    "flip",
    lambda xp, x, *, axis=None: xp.flip(x, axis),
    _flip_aval,
    vjp=lambda ct, y, x, *, axis: (flip(ct, axis),),
    jvp=lambda t, y, x, *, axis: flip(t[0], axis),
    prepare=lambda m, axis=None: ((m,), {"axis": int_or_tuple(axis)}),
    numpy=(np.flip,),
    batch=axes_rule("flip"),
    never_fails="biuf",
    odd_in=(0,),
    only_float_warnings=True,
    memory="view",
    cost="moderate",
    write_through=lambda parent, new, *, axis: flip(new, axis),
    moves_elements=1,
)

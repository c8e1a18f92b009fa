"""Losses of classes given as integers or as probabilities: nll_loss, cross_entropy; one_hot.

Classes of probability 0 in the target contribute nothing, even where their logarithm is infinite.
"""

import numpy as np

from letir.ast.primitive import Primitive
from letir.errors import BoundsError, DTypeError, ShapeError
from letir.ops.as_numpy import arrays
from letir.ops.define.batch_rules import batch_first, pointwise_rule
from letir.ops.define.records import DISCRETE, composite, define
from letir.ops.elementwise.casting import cast
from letir.ops.elementwise.comparisons_and_where import equal, not_equal, where
from letir.ops.nn.losses import check_same_shape, define_loss, reduce_losses, safe_product
from letir.ops.nn.softmax import log_softmax
from letir.ops.reductions.reductions import sum_
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import arange_beside, as_size
from letir.ops.shape.unit_axes_and_flip import expand_dims

_FLOAT64 = np.dtype("float64")


def _checked_classes_impl(xp, x, *, classes, ignored=None):
    """``x`` itself. Raises BoundsError unless it consists of classes, or of ``ignored``."""
    x = x if hasattr(x, "dtype") else xp.asarray(x)
    # negative numbers are the greatest as unsigned ones: one reduction finds all wrong classes
    if x.size and x.view(f"u{x.itemsize}").max() >= classes:
        wrong = (x < 0) | (x >= classes)
        wrong = wrong if ignored is None else wrong & (x != ignored)
        if wrong.any():
            raise BoundsError(
                f"there are {classes} classes, found the class {xp.asarray(x)[wrong].flat[0]}\n"
                "  classes count from 0"
                + ("" if ignored is None else f"; ignore_index={ignored} leaves examples out")
            )
    return x


checked_classes: Primitive = define(
    "checked_classes",
    _checked_classes_impl,
    lambda x, *, classes, ignored=None: x.with_shape(x.shape),
    vjp=DISCRETE,
    jvp=DISCRETE,
    batch=pointwise_rule("checked_classes"),
    onnx="Identity",
    source=arrays.operand_itself,
    memory="may_alias",
    cost="cheap",
    raises=True,
    write_through=lambda parent, new: new,
)


def _one_hot_decompose(x, *, classes, dtype=_FLOAT64):
    """A new last axis of length ``classes`` with 1 at the place given by ``x``, else 0.

    >>> one_hot(np.array([2, 0]), classes=3)
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    classes = as_size(classes)
    if classes < 1:
        raise ShapeError(
            f"one_hot: the number of classes must be positive, found {classes}\n"
            "  pass how many classes there are"
        )
    if x.dtype.kind not in "iu":
        raise DTypeError(
            f"one_hot: x must have integers, found {x.type}\n  convert it with .astype(int)"
        )
    x = checked_classes(x, classes=classes)
    return cast(equal(expand_dims(x, -1), arange_beside(x, classes, x.dtype)), dtype)


one_hot: Primitive = composite(
    "one_hot",
    _one_hot_decompose,
    vjp=DISCRETE,
    jvp=DISCRETE,
    batch=batch_first(lambda args, mapped, *, transform, **attrs: one_hot(*args, **attrs)),
    onnx="OneHot",
    raises=True,
)


def _class_axis(x) -> int:
    """The axis of the classes: the only axis, or axis 1. Raises ShapeError unless it is static."""
    if not x.ndim or type(x.shape[min(x.ndim - 1, 1)]) is not int:
        raise ShapeError(
            f"the axis of the classes must have a known size, found {x.type}\n"
            "  trace with concrete arrays"
        )
    return min(x.ndim - 1, 1)


def _reshape_along_classes(weight, x):
    """``weight``, one number for each class, reshaped to broadcast against x."""
    return reshape(weight, (-1, *[1] * (x.ndim - 1 - _class_axis(x))))


def _class_losses(x, target, weight, ignore_index: int):
    """(minus the log probability of each example's class, the weight of the example)."""
    if target.dtype.kind not in "iu":
        raise DTypeError(
            f"a target of classes must have integers, found {target.type}\n"
            "  convert the classes with .astype(int), or pass probabilities of the "
            "shape of the logits"
        )
    axis = _class_axis(x)
    if target.shape != x.shape[:axis] + x.shape[axis + 1 :]:
        raise ShapeError(
            f"a target of shape {target.shape} does not fit log probabilities of shape {x.shape}\n"
            "  pass one class for each example: shape (N,) for logits of shape (N, classes)"
        )
    target = checked_classes(target, classes=x.shape[axis], ignored=ignore_index)
    classes = _reshape_along_classes(arange_beside(x, x.shape[axis], target.dtype), x)
    # where, not an index: works for symbolic batch sizes, and its gradient adds in a fixed order
    here = equal(expand_dims(target, axis), classes)
    losses = -sum_(where(here, x, 0), axis=axis)
    if weight is None:
        weights = cast(not_equal(target, ignore_index), x.dtype)
        return where(equal(target, ignore_index), 0, losses), weights
    weights = sum_(where(here, _reshape_along_classes(weight, x), 0), axis=axis)
    weights = where(equal(target, ignore_index), 0, weights)
    return where(equal(weights, 0), 0, losses * weights), weights


def _reduce_weighted(losses, weights, reduction: str):
    """The reduced losses; the mean divides by the sum of the weights, and is 0 if that is 0."""
    if reduction != "mean":
        return reduce_losses(losses, reduction)
    total = sum_(weights)
    return sum_(losses) / where(equal(total, 0), 1, total)


def _nll_loss_decompose(x, target, weight=None, *, ignore_index=-100, reduction="mean"):
    """Minus the log probability of each example's class.

    ``x``: log probabilities of shape (N, classes, *sizes) or (classes,); ``target``: integers of
    shape (N, *sizes) or (). Examples whose target is ``ignore_index`` are left out; the mean is
    weighted by the ``weight`` of the classes.

    >>> x = np.log(np.array([[0.5, 0.5], [0.1, 0.9]]))
    >>> nll_loss(x, np.array([0, 1]), reduction="none").round(3)
    array([0.693, 0.105])
    """
    losses, weights = _class_losses(x, target, weight, ignore_index)
    return _reduce_weighted(losses, weights, reduction)


def _cross_entropy_decompose(
    x, target, weight=None, *, ignore_index=-100, label_smoothing=0.0, reduction="mean"
):
    """nll_loss of ``log_softmax(x)``; ``x``: logits of shape (N, classes, *sizes) or (classes,).

    ``target``: classes as integers, or probabilities of the shape of x. ``label_smoothing``: the
    share of the target's probability that is distributed evenly over all classes.

    >>> x = np.array([[2.0, 0.0], [0.0, 2.0]])
    >>> float(cross_entropy(x, np.array([0, 0])).round(3))
    1.127
    """
    axis = _class_axis(x)
    logs, share = log_softmax(x, axis=axis), label_smoothing / x.shape[axis]
    if target.dtype.kind == "f":
        remedy = "pass probabilities of the shape of x, or classes as integers: target.astype(int)"
        check_same_shape("cross_entropy", x, target, remedy=remedy)
        expected = target * (1 - label_smoothing) + share if label_smoothing else target
        terms = safe_product(expected, logs)
        terms = terms if weight is None else terms * _reshape_along_classes(weight, x)
        return reduce_losses(-sum_(terms, axis=axis), reduction)
    losses, weights = _class_losses(logs, target, weight, ignore_index)
    if label_smoothing:
        each = logs if weight is None else logs * _reshape_along_classes(weight, x)
        spread = where(equal(target, ignore_index), 0, -sum_(each, axis=axis))
        losses = losses * (1 - label_smoothing) + spread * share
    return _reduce_weighted(losses, weights, reduction)


nll_loss = define_loss("nll_loss", _nll_loss_decompose, raises=True)


cross_entropy = define_loss("cross_entropy", _cross_entropy_decompose, raises=True)

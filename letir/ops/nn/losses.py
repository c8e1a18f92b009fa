"""Losses: of classification (cross_entropy, one_hot ...), regression, margins, and distances.

``reduction`` is ``"mean"`` or ``"sum"`` over the losses of the examples, or ``"none"``. No loss
overflows, however large the logits are. Classes of probability 0 in the target contribute nothing,
even where their logarithm is infinite. Norms of 0 have a derivative of 0.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast.primitive import Primitive
from letir.errors import BoundsError, DTypeError, ShapeError
from letir.ops.as_numpy import arrays
from letir.ops.define.batch_rules import batch_first, pointwise_rule
from letir.ops.define.records import DISCRETE, composite, define
from letir.ops.elementwise.casting import cast
from letir.ops.elementwise.comparisons_and_where import equal, isinf, not_equal, where
from letir.ops.elementwise.logaddexp import logaddexp
from letir.ops.elementwise.rounding_sign_parts import abs_
from letir.ops.elementwise.ufuncs import exp, log, log1p, maximum, sqrt, square
from letir.ops.nn.activations import real_type_rule, relu
from letir.ops.nn.embedding_linear_dropout import log_softmax
from letir.ops.reductions.reductions import max_, mean, sum_
from letir.ops.shape.eye_and_arange import arange
from letir.ops.shape.shape_and_creation import as_size, reshape
from letir.ops.shape.unit_axes_and_flip import expand_dims

_FLOAT64 = np.dtype("float64")


def _define_loss(name: str, decompose: Callable, **fields) -> Primitive:
    """Register a composite that takes real arrays."""
    return composite(name, decompose, aval=real_type_rule(name, decompose), **fields)


def _reduce_losses(losses, reduction: str):
    """The mean or the sum of the losses; unchanged for ``"none"``."""
    if reduction not in ("mean", "sum", "none"):
        raise ShapeError(
            f"reduction must be 'mean', 'sum' or 'none', found {reduction!r}\n"
            "  write reduction='none' for one loss for each example"
        )
    if reduction == "none":
        return losses
    return mean(losses) if reduction == "mean" else sum_(losses)


def _check_same_shape(name: str, *operands) -> None:
    """Raise ShapeError unless all operands have one shape: losses do not broadcast."""
    shapes = [x.shape for x in operands if x is not None and x.type is not None]
    if len(set(shapes)) > 1:
        raise ShapeError(
            f"{name}: its operands must have the same shape, found {shapes}\n"
            "  reshape the target: target.reshape(x.shape)"
        )


def _safe_log_product(p, q):
    """p * log(q), which is 0 where p is 0."""
    return where(equal(p, 0), 0, p * log(where(equal(p, 0), 1, q)))


def _safe_product(p, q):
    """p * q, which is 0 where p is 0, even if q is infinite."""
    return p * where(equal(p, 0) & isinf(q), 0, q)


# ---- classes as integers ----


def _emit_arange(n: int, like, dtype):
    """``arange(n)``, recorded where ``like`` is."""
    operands, attrs = arange.prepare(n, dtype=dtype)
    return like.emitter.apply(arange, operands, arange.complete(attrs))


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
    return cast(equal(expand_dims(x, -1), _emit_arange(classes, x, x.dtype)), dtype)


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


def _along_classes(weight, x):
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
    classes = _along_classes(_emit_arange(x.shape[axis], x, target.dtype), x)
    # where, not an index: works for symbolic batch sizes, and its gradient adds in a fixed order
    here = equal(expand_dims(target, axis), classes)
    losses = -sum_(where(here, x, 0), axis=axis)
    if weight is None:
        weights = cast(not_equal(target, ignore_index), x.dtype)
        return where(equal(target, ignore_index), 0, losses), weights
    weights = sum_(where(here, _along_classes(weight, x), 0), axis=axis)
    weights = where(equal(target, ignore_index), 0, weights)
    return where(equal(weights, 0), 0, losses * weights), weights


def _reduce_weighted(losses, weights, reduction: str):
    """The reduced losses; the mean divides by the sum of the weights, and is 0 if that is 0."""
    if reduction != "mean":
        return _reduce_losses(losses, reduction)
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
        _check_same_shape("cross_entropy", x, target)
        expected = target * (1 - label_smoothing) + share if label_smoothing else target
        terms = _safe_product(expected, logs)
        terms = terms if weight is None else terms * _along_classes(weight, x)
        return _reduce_losses(-sum_(terms, axis=axis), reduction)
    losses, weights = _class_losses(logs, target, weight, ignore_index)
    if label_smoothing:
        each = logs if weight is None else logs * _along_classes(weight, x)
        spread = where(equal(target, ignore_index), 0, -sum_(each, axis=axis))
        losses = losses * (1 - label_smoothing) + spread * share
    return _reduce_weighted(losses, weights, reduction)


nll_loss = _define_loss("nll_loss", _nll_loss_decompose, raises=True)
cross_entropy = _define_loss("cross_entropy", _cross_entropy_decompose, raises=True)

# ---- probabilities ----


def _binary_cross_entropy_decompose(x, target, weight=None, *, reduction="mean"):
    """-(target * log(x) + (1 - target) * log(1 - x)) for probabilities x.

    >>> x = np.array([0.5, 0.9])
    >>> binary_cross_entropy(x, np.array([1.0, 1.0]), reduction="none").round(3)
    array([0.693, 0.105])
    """
    _check_same_shape("binary_cross_entropy", x, target)
    rest = 1 - target
    no = where(equal(rest, 0), 0, rest * log1p(-where(equal(rest, 0), 0, x)))
    losses = -(_safe_log_product(target, x) + no)
    return _reduce_losses(losses if weight is None else losses * weight, reduction)


def _binary_cross_entropy_with_logits_decompose(
    x, target, weight=None, pos_weight=None, *, reduction="mean"
):
    """binary_cross_entropy of ``sigmoid(x)``; positive targets count ``pos_weight`` times.

    >>> x, target = np.array([0.0, 800.0]), np.array([1.0, 0.0])
    >>> binary_cross_entropy_with_logits(x, target, reduction="none").round(3)
    array([6.93e-01, 8.00e+02])
    """
    _check_same_shape("binary_cross_entropy_with_logits", x, target)
    positive = 1 if pos_weight is None else 1 + (pos_weight - 1) * target
    losses = (1 - target) * x + positive * logaddexp(-x, 0)
    return _reduce_losses(losses if weight is None else losses * weight, reduction)


def _kl_div_decompose(x, target, *, log_target=False, reduction="mean"):
    """The Kullback-Leibler divergence of ``target`` from the distribution of log probabilities x.

    ``log_target``: the target is given as log probabilities too. A further reduction is
    ``"batchmean"``, the sum divided by the number of examples.

    >>> x, target = np.log(np.array([0.5, 0.5])), np.array([0.9, 0.1])
    >>> float(kl_div(x, target, reduction="sum").round(3))
    0.368
    """
    _check_same_shape("kl_div", x, target)
    losses = exp(target) * (target - x)
    if not log_target:
        losses = _safe_log_product(target, target) - _safe_product(target, x)
    if reduction == "batchmean":
        return mean(sum_(losses, axis=tuple(range(1, x.ndim))))
    return _reduce_losses(losses, reduction)


binary_cross_entropy = _define_loss("binary_cross_entropy", _binary_cross_entropy_decompose)
binary_cross_entropy_with_logits = _define_loss(
    "binary_cross_entropy_with_logits", _binary_cross_entropy_with_logits_decompose
)
kl_div = _define_loss("kl_div", _kl_div_decompose)


# ---- regression ----


def _mse_loss_decompose(x, target, *, reduction="mean"):
    """(x - target)**2.

    >>> float(mse_loss(np.array([1.0, 2.0]), np.array([1.0, 4.0])))
    2.0
    """
    _check_same_shape("mse_loss", x, target)
    return _reduce_losses(square(x - target), reduction)


def _l1_loss_decompose(x, target, *, reduction="mean"):
    """abs(x - target), with a derivative of 0 at 0.

    >>> l1_loss(np.array([1.0, 2.0]), np.array([1.0, 4.0]), reduction="none")
    array([0., 2.])
    """
    _check_same_shape("l1_loss", x, target)
    return _reduce_losses(abs_(x - target), reduction)


def _huber_loss_decompose(x, target, *, delta=1.0, reduction="mean"):
    """Half the squared difference up to ``delta``, beyond it a line that continues smoothly.

    Huber, Robust estimation of a location parameter, Ann. Math. Statist., 1964.

    >>> huber_loss(np.array([0.5, 3.0]), np.zeros(2), reduction="none")
    array([0.125, 2.5  ])
    """
    _check_same_shape("huber_loss", x, target)
    far = abs_(x - target)
    losses = where(far <= delta, 0.5 * square(x - target), delta * (far - 0.5 * delta))
    return _reduce_losses(losses, reduction)


def _smooth_l1_loss_decompose(x, target, *, beta=1.0, reduction="mean"):
    """huber_loss divided by ``beta``; abs(x - target) for a beta of 0.

    >>> smooth_l1_loss(np.array([0.5, 3.0]), np.zeros(2), beta=2.0, reduction="none")
    array([0.0625, 2.    ])
    """
    if beta == 0:
        return _l1_loss_decompose(x, target, reduction=reduction)
    return _huber_loss_decompose(x, target, delta=beta, reduction=reduction) / beta


def _poisson_nll_loss_decompose(x, target, *, log_input=True, reduction="mean"):
    """Minus the log likelihood of Poisson counts, up to a constant; ``x``: logs of the rates.

    >>> x, counts = np.log(np.array([2.0, 3.0])), np.array([2.0, 5.0])
    >>> poisson_nll_loss(x, counts, reduction="none").round(3)
    array([ 0.614, -2.493])
    """
    _check_same_shape("poisson_nll_loss", x, target)
    return _reduce_losses(exp(x) - target * x if log_input else x - target * log(x), reduction)


def _gaussian_nll_loss_decompose(x, target, var, *, eps=1e-6, reduction="mean"):
    """Minus the normal log likelihood, up to a constant; ``var`` is taken as at least ``eps``.

    >>> x, target, var = np.array([0.0, 0.0]), np.array([0.0, 2.0]), np.ones(2)
    >>> gaussian_nll_loss(x, target, var, reduction="none")
    array([0., 2.])
    """
    _check_same_shape("gaussian_nll_loss", x, target)
    var = where(var < eps, eps, var)
    return _reduce_losses(0.5 * (log(var) + square(x - target) / var), reduction)


mse_loss = _define_loss("mse_loss", _mse_loss_decompose)
l1_loss = _define_loss("l1_loss", _l1_loss_decompose)
huber_loss = _define_loss("huber_loss", _huber_loss_decompose)
smooth_l1_loss = _define_loss("smooth_l1_loss", _smooth_l1_loss_decompose)
poisson_nll_loss = _define_loss("poisson_nll_loss", _poisson_nll_loss_decompose)
gaussian_nll_loss = _define_loss("gaussian_nll_loss", _gaussian_nll_loss_decompose)

# ---- margins ----


def _soft_margin_loss_decompose(x, target, *, reduction="mean"):
    """log(1 + exp(-target * x)) for targets of 1 and -1.

    >>> soft_margin_loss(np.array([0.0, 3.0]), np.array([1, -1]), reduction="none").round(3)
    array([0.693, 3.049])
    """
    _check_same_shape("soft_margin_loss", x, target)
    return _reduce_losses(logaddexp(-target * x, 0), reduction)


def _hinge_embedding_loss_decompose(x, target, *, margin=1.0, reduction="mean"):
    """x where the target is 1; max(0, margin - x) where the target is -1.

    >>> hinge_embedding_loss(np.array([0.5, 0.25]), np.array([1, -1]), reduction="none")
    array([0.5 , 0.75])
    """
    _check_same_shape("hinge_embedding_loss", x, target)
    return _reduce_losses(where(equal(target, 1), x, relu(margin - x)), reduction)


def _margin_ranking_loss_decompose(x, y, target, *, margin=0.0, reduction="mean"):
    """max(0, margin - target * (x - y)): x should exceed y by ``margin`` for a target of 1.

    >>> x, y = np.array([2.0, 1.0]), np.array([1.0, 2.0])
    >>> margin_ranking_loss(x, y, np.ones(2), margin=0.5, reduction="none")
    array([0. , 1.5])
    """
    _check_same_shape("margin_ranking_loss", x, y, target)
    return _reduce_losses(relu(margin - target * (x - y)), reduction)


soft_margin_loss = _define_loss("soft_margin_loss", _soft_margin_loss_decompose)
hinge_embedding_loss = _define_loss("hinge_embedding_loss", _hinge_embedding_loss_decompose)
margin_ranking_loss = _define_loss("margin_ranking_loss", _margin_ranking_loss_decompose)

# ---- distances ----


def safe_sqrt(total: Any) -> Any:
    """The square root, with a derivative of 0 at 0."""
    return where(equal(total, 0), 0, sqrt(where(equal(total, 0), 1, total)))


def _pairwise_distance_decompose(x, y, *, p=2.0, eps=1e-6):
    """The p-norm of x - y + eps along the last axis.

    >>> pairwise_distance(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])).round(3)
    array([5.])
    """
    _check_same_shape("pairwise_distance", x, y)
    far = x - y + eps
    if p == 2:
        return safe_sqrt(sum_(square(far), axis=-1))
    if p == math.inf:
        return max_(abs_(far), axis=-1)
    if p == 1:
        return sum_(abs_(far), axis=-1)
    total = sum_(abs_(far) ** p, axis=-1)
    return where(equal(total, 0), 0, where(equal(total, 0), 1, total) ** (1 / p))


def _cosine_similarity_decompose(x, y, *, axis=1, eps=1e-8):
    """The cosine of the angle between x and y along ``axis``; norms are taken as >= ``eps``.

    >>> cosine_similarity(np.array([[1.0, 0.0]]), np.array([[3.0, 4.0]])).round(3)
    array([0.6])
    """
    lengths = [maximum(safe_sqrt(sum_(square(v), axis=axis)), eps) for v in (x, y)]
    return sum_(x * y, axis=axis) / (lengths[0] * lengths[1])


def _cosine_embedding_loss_decompose(x, y, target, *, margin=0.0, reduction="mean"):
    """1 - cosine where the target is 1; max(0, cosine - margin) where the target is -1.

    >>> x, y = np.array([[1.0, 0.0]] * 2), np.array([[3.0, 4.0]] * 2)
    >>> cosine_embedding_loss(x, y, np.array([1, -1]), reduction="none").round(3)
    array([0.4, 0.6])
    """
    _check_same_shape("cosine_embedding_loss", x, y)
    cosine = cosine_similarity(x, y, axis=-1)
    return _reduce_losses(where(equal(target, 1), 1 - cosine, relu(cosine - margin)), reduction)


def _triplet_margin_loss_decompose(
    anchor, positive, negative, *, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean"
):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), for the p-norm distance d.

    ``swap``: the distance of the negative is the smaller of its distances from anchor and positive.
    Schroff, Kalenichenko and Philbin, FaceNet, CVPR 2015.

    >>> anchor, near, far = np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]), np.array([[3.0, 3.0]])
    >>> float(triplet_margin_loss(anchor, near, far).round(3))
    1.757
    """
    near = pairwise_distance(anchor, positive, p=p, eps=eps)
    far = pairwise_distance(anchor, negative, p=p, eps=eps)
    if swap:
        other = pairwise_distance(positive, negative, p=p, eps=eps)
        far = where(other < far, other, far)
    return _reduce_losses(relu(near - far + margin), reduction)


pairwise_distance = _define_loss("pairwise_distance", _pairwise_distance_decompose)
cosine_similarity = _define_loss("cosine_similarity", _cosine_similarity_decompose)
cosine_embedding_loss = _define_loss("cosine_embedding_loss", _cosine_embedding_loss_decompose)
triplet_margin_loss = _define_loss("triplet_margin_loss", _triplet_margin_loss_decompose)

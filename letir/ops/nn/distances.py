"""Distances of vectors, and the losses that compare them. Norms of 0 have a derivative of 0."""

import math
from typing import Any

from letir.ops.elementwise.comparisons_and_where import equal, where
from letir.ops.elementwise.rounding_sign_parts import abs_
from letir.ops.elementwise.ufuncs import maximum, sqrt, square
from letir.ops.nn.activations import relu
from letir.ops.nn.losses import check_same_shape, define_loss, reduce_losses
from letir.ops.reductions.reductions import max_, sum_


def safe_sqrt(total: Any) -> Any:
    """The square root, with a derivative of 0 at 0."""
    return where(equal(total, 0), 0, sqrt(where(equal(total, 0), 1, total)))


def _pairwise_distance_decompose(x, y, *, p=2.0, eps=1e-6):
    """The p-norm of x - y + eps along the last axis.

    >>> import numpy as np
    >>> pairwise_distance(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])).round(3)
    array([5.])
    """
    check_same_shape("pairwise_distance", x, y)
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

    >>> import numpy as np
    >>> cosine_similarity(np.array([[1.0, 0.0]]), np.array([[3.0, 4.0]])).round(3)
    array([0.6])
    """
    lengths = [maximum(safe_sqrt(sum_(square(v), axis=axis)), eps) for v in (x, y)]
    return sum_(x * y, axis=axis) / (lengths[0] * lengths[1])


def _cosine_embedding_loss_decompose(x, y, target, *, margin=0.0, reduction="mean"):
    """1 - cosine where the target is 1; max(0, cosine - margin) where the target is -1.

    >>> import numpy as np
    >>> x, y = np.array([[1.0, 0.0]] * 2), np.array([[3.0, 4.0]] * 2)
    >>> cosine_embedding_loss(x, y, np.array([1, -1]), reduction="none").round(3)
    array([0.4, 0.6])
    """
    check_same_shape("cosine_embedding_loss", x, y)
    cosine = cosine_similarity(x, y, axis=-1)
    return reduce_losses(where(equal(target, 1), 1 - cosine, relu(cosine - margin)), reduction)


def _triplet_margin_loss_decompose(
    anchor, positive, negative, *, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean"
):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), for the p-norm distance d.

    ``swap``: the distance of the negative is the smaller of its distances from anchor and positive.
    Schroff, Kalenichenko and Philbin, FaceNet, CVPR 2015.

    >>> import numpy as np
    >>> anchor, near, far = np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]), np.array([[3.0, 3.0]])
    >>> float(triplet_margin_loss(anchor, near, far).round(3))
    1.757
    """
    near = pairwise_distance(anchor, positive, p=p, eps=eps)
    far = pairwise_distance(anchor, negative, p=p, eps=eps)
    if swap:
        other = pairwise_distance(positive, negative, p=p, eps=eps)
        far = where(other < far, other, far)
    return reduce_losses(relu(near - far + margin), reduction)


pairwise_distance = define_loss("pairwise_distance", _pairwise_distance_decompose)


cosine_similarity = define_loss("cosine_similarity", _cosine_similarity_decompose)


cosine_embedding_loss = define_loss("cosine_embedding_loss", _cosine_embedding_loss_decompose)


triplet_margin_loss = define_loss("triplet_margin_loss", _triplet_margin_loss_decompose)

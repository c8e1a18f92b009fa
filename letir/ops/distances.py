"""Losses of regression, margins and distances: mse_loss, huber_loss, cosine_similarity.

``reduction`` as in ``letir.ops.losses``. Norms of 0 have a derivative of 0.
"""

import math

from letir.ops.activations import relu
from letir.ops.elementwise import abs_, equal, exp, log, logaddexp, maximum, sqrt, square, where
from letir.ops.losses import alike, loss, reduced
from letir.ops.reductions import max_, sum_

# ---- regression ----


def mse_loss_decompose(x, target, *, reduction="mean"):
    """(x - target)**2."""
    alike("mse_loss", x, target)
    return reduced(square(x - target), reduction)


def l1_loss_decompose(x, target, *, reduction="mean"):
    """abs(x - target), with a derivative of 0 at 0."""
    alike("l1_loss", x, target)
    return reduced(abs_(x - target), reduction)


def huber_loss_decompose(x, target, *, delta=1.0, reduction="mean"):
    """Half the square of what is at most ``delta``, else a line that goes on smoothly.

    Huber, Robust estimation of a location parameter, Ann. Math. Statist., 1964.
    """
    alike("huber_loss", x, target)
    far = abs_(x - target)
    losses = where(far <= delta, 0.5 * square(x - target), delta * (far - 0.5 * delta))
    return reduced(losses, reduction)


def smooth_l1_loss_decompose(x, target, *, beta=1.0, reduction="mean"):
    """huber_loss divided by ``beta``; abs(x - target) for a beta of 0."""
    if beta == 0:
        return l1_loss_decompose(x, target, reduction=reduction)
    return huber_loss_decompose(x, target, delta=beta, reduction=reduction) / beta


def poisson_nll_loss_decompose(x, target, *, log_input=True, reduction="mean"):
    """Minus the log likelihood of Poisson counts without its constant; ``x``: logs of the rates."""
    alike("poisson_nll_loss", x, target)
    return reduced(exp(x) - target * x if log_input else x - target * log(x), reduction)


def gaussian_nll_loss_decompose(x, target, var, *, eps=1e-6, reduction="mean"):
    """Minus the log likelihood of normal numbers without its constant; ``var`` at least ``eps``."""
    alike("gaussian_nll_loss", x, target)
    var = where(var < eps, eps, var)
    return reduced(0.5 * (log(var) + square(x - target) / var), reduction)


mse_loss = loss("mse_loss", mse_loss_decompose)
l1_loss = loss("l1_loss", l1_loss_decompose)
huber_loss = loss("huber_loss", huber_loss_decompose)
smooth_l1_loss = loss("smooth_l1_loss", smooth_l1_loss_decompose)
poisson_nll_loss = loss("poisson_nll_loss", poisson_nll_loss_decompose)
gaussian_nll_loss = loss("gaussian_nll_loss", gaussian_nll_loss_decompose)

# ---- margins ----


def soft_margin_loss_decompose(x, target, *, reduction="mean"):
    """log(1 + exp(-target * x)) for targets of 1 and -1."""
    alike("soft_margin_loss", x, target)
    return reduced(logaddexp(-target * x, 0), reduction)


def hinge_embedding_loss_decompose(x, target, *, margin=1.0, reduction="mean"):
    """x where the target is 1; what it lacks to ``margin`` where that is -1."""
    alike("hinge_embedding_loss", x, target)
    return reduced(where(equal(target, 1), x, relu(margin - x)), reduction)


def margin_ranking_loss_decompose(x, y, target, *, margin=0.0, reduction="mean"):
    """What x, for a target of 1, lacks to be ``margin`` greater than y; or y than x for -1."""
    alike("margin_ranking_loss", x, y, target)
    return reduced(relu(margin - target * (x - y)), reduction)


soft_margin_loss = loss("soft_margin_loss", soft_margin_loss_decompose)
hinge_embedding_loss = loss("hinge_embedding_loss", hinge_embedding_loss_decompose)
margin_ranking_loss = loss("margin_ranking_loss", margin_ranking_loss_decompose)

# ---- distances ----


def root(total):
    """The square root, with a derivative of 0 at 0."""
    return where(equal(total, 0), 0, sqrt(where(equal(total, 0), 1, total)))


def pairwise_distance_decompose(x, y, *, p=2.0, eps=1e-6):
    """The p-norm of x - y + eps along the last axis."""
    alike("pairwise_distance", x, y)
    far = x - y + eps
    if p == 2:
        return root(sum_(square(far), axis=-1))
    if p == math.inf:
        return max_(abs_(far), axis=-1)
    if p == 1:
        return sum_(abs_(far), axis=-1)
    total = sum_(abs_(far) ** p, axis=-1)
    return where(equal(total, 0), 0, where(equal(total, 0), 1, total) ** (1 / p))


def cosine_similarity_decompose(x, y, *, axis=1, eps=1e-8):
    """The cosine of the angle between x and y along ``axis``; norms count as ``eps`` at least."""
    lengths = [maximum(root(sum_(square(v), axis=axis)), eps) for v in (x, y)]
    return sum_(x * y, axis=axis) / (lengths[0] * lengths[1])


def cosine_embedding_loss_decompose(x, y, target, *, margin=0.0, reduction="mean"):
    """1 minus the cosine where the target is 1; its excess over ``margin`` where that is -1."""
    alike("cosine_embedding_loss", x, y)
    cosine = cosine_similarity(x, y, axis=-1)
    return reduced(where(equal(target, 1), 1 - cosine, relu(cosine - margin)), reduction)


def triplet_margin_loss_decompose(
    anchor, positive, negative, *, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction="mean"
):
    """How much farther the positive is than the negative, less ``margin``, from the anchor.

    ``swap``: the negative is as far as it is from the nearer of the anchor and the positive.
    Schroff, Kalenichenko and Philbin, FaceNet, CVPR 2015.
    """
    near = pairwise_distance(anchor, positive, p=p, eps=eps)
    far = pairwise_distance(anchor, negative, p=p, eps=eps)
    if swap:
        other = pairwise_distance(positive, negative, p=p, eps=eps)
        far = where(other < far, other, far)
    return reduced(relu(near - far + margin), reduction)


pairwise_distance = loss("pairwise_distance", pairwise_distance_decompose)
cosine_similarity = loss("cosine_similarity", cosine_similarity_decompose)
cosine_embedding_loss = loss("cosine_embedding_loss", cosine_embedding_loss_decompose)
triplet_margin_loss = loss("triplet_margin_loss", triplet_margin_loss_decompose)

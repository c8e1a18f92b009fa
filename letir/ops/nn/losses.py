"""Losses of probabilities, of regression and of margins; helpers for the other losses.

``reduction`` is ``"mean"`` or ``"sum"`` over the losses of the examples, or ``"none"``. No loss
overflows, however large the logits are. Classes of probability 0 in the target contribute nothing,
even where their logarithm is infinite.
"""

from collections.abc import Callable
from typing import Any

from letir.ast.primitive import Primitive
from letir.errors import ShapeError
from letir.ops.define.records import composite
from letir.ops.elementwise.comparisons_and_where import equal, isinf, where
from letir.ops.elementwise.logaddexp import logaddexp
from letir.ops.elementwise.rounding_sign_parts import abs_
from letir.ops.elementwise.ufuncs import exp, log, log1p, square
from letir.ops.nn.activations import real_type_rule, relu
from letir.ops.reductions.reductions import mean, sum_


def define_loss(name: str, decompose: Callable, **fields: Any) -> Primitive:
    """Register a composite that takes real arrays."""
    return composite(name, decompose, aval=real_type_rule(name, decompose), **fields)


def reduce_losses(losses: Any, reduction: str) -> Any:
    """The mean or the sum of the losses; unchanged for ``"none"``."""
    if reduction not in ("mean", "sum", "none"):
        raise ShapeError(
            f"reduction must be 'mean', 'sum' or 'none', found {reduction!r}\n"
            "  write reduction='none' for one loss for each example"
        )
    if reduction == "none":
        return losses
    return mean(losses) if reduction == "mean" else sum_(losses)


def check_same_shape(
    name: str, *operands: Any, remedy: str = "reshape the target: target.reshape(x.shape)"
) -> None:
    """Raise ShapeError unless all operands have one shape: losses do not broadcast."""
    shapes = [x.shape for x in operands if x is not None and x.type is not None]
    if len(set(shapes)) > 1:
        raise ShapeError(
            f"{name}: its operands must have the same shape, found {', '.join(map(str, shapes))}\n"
            f"  {remedy}"
        )


def _safe_log_product(p, q):
    """p * log(q), which is 0 where p is 0."""
    return where(equal(p, 0), 0, p * log(where(equal(p, 0), 1, q)))


def safe_product(p: Any, q: Any) -> Any:
    """p * q, which is 0 where p is 0, even if q is infinite."""
    return p * where(equal(p, 0) & isinf(q), 0, q)


# ---- probabilities ----


def _binary_cross_entropy_decompose(x, target, weight=None, *, reduction="mean"):
    """-(target * log(x) + (1 - target) * log(1 - x)) for probabilities x.

    >>> import numpy as np
    >>> x = np.array([0.5, 0.9])
    >>> binary_cross_entropy(x, np.array([1.0, 1.0]), reduction="none").round(3)
    array([0.693, 0.105])
    """
    check_same_shape("binary_cross_entropy", x, target)
    rest = 1 - target
    log_of_rest = where(equal(rest, 0), 0, rest * log1p(-where(equal(rest, 0), 0, x)))
    losses = -(_safe_log_product(target, x) + log_of_rest)
    return reduce_losses(losses if weight is None else losses * weight, reduction)


def _binary_cross_entropy_with_logits_decompose(
    x, target, weight=None, pos_weight=None, *, reduction="mean"
):
    """binary_cross_entropy of ``sigmoid(x)``; positive targets count ``pos_weight`` times.

    >>> import numpy as np
    >>> x, target = np.array([0.0, 800.0]), np.array([1.0, 0.0])
    >>> binary_cross_entropy_with_logits(x, target, reduction="none").round(3)
    array([6.93e-01, 8.00e+02])
    """
    check_same_shape("binary_cross_entropy_with_logits", x, target)
    positive = 1 if pos_weight is None else 1 + (pos_weight - 1) * target
    losses = (1 - target) * x + positive * logaddexp(-x, 0)
    return reduce_losses(losses if weight is None else losses * weight, reduction)


def _kl_div_decompose(x, target, *, log_target=False, reduction="mean"):
    """The Kullback-Leibler divergence of ``target`` from the distribution of log probabilities x.

    ``log_target``: the target is given as log probabilities too. A further reduction is
    ``"batchmean"``, the sum divided by the number of examples.

    >>> import numpy as np
    >>> x, target = np.log(np.array([0.5, 0.5])), np.array([0.9, 0.1])
    >>> float(kl_div(x, target, reduction="sum").round(3))
    0.368
    """
    check_same_shape("kl_div", x, target)
    losses = exp(target) * (target - x)
    if not log_target:
        losses = _safe_log_product(target, target) - safe_product(target, x)
    if reduction == "batchmean":
        return mean(sum_(losses, axis=tuple(range(1, x.ndim))))
    return reduce_losses(losses, reduction)


binary_cross_entropy = define_loss("binary_cross_entropy", _binary_cross_entropy_decompose)
binary_cross_entropy_with_logits = define_loss(
    "binary_cross_entropy_with_logits", _binary_cross_entropy_with_logits_decompose
)
kl_div = define_loss("kl_div", _kl_div_decompose)


# ---- regression ----


def _mse_loss_decompose(x, target, *, reduction="mean"):
    """(x - target)**2.

    >>> import numpy as np
    >>> float(mse_loss(np.array([1.0, 2.0]), np.array([1.0, 4.0])))
    2.0
    """
    check_same_shape("mse_loss", x, target)
    return reduce_losses(square(x - target), reduction)


def _l1_loss_decompose(x, target, *, reduction="mean"):
    """abs(x - target), with a derivative of 0 at 0.

    >>> import numpy as np
    >>> l1_loss(np.array([1.0, 2.0]), np.array([1.0, 4.0]), reduction="none")
    array([0., 2.])
    """
    check_same_shape("l1_loss", x, target)
    return reduce_losses(abs_(x - target), reduction)


def _huber_loss_decompose(x, target, *, delta=1.0, reduction="mean"):
    """Half the squared difference up to ``delta``, beyond it a line that continues smoothly.

    Huber, Robust estimation of a location parameter, Ann. Math. Statist., 1964.

    >>> import numpy as np
    >>> huber_loss(np.array([0.5, 3.0]), np.zeros(2), reduction="none")
    array([0.125, 2.5  ])
    """
    check_same_shape("huber_loss", x, target)
    far = abs_(x - target)
    losses = where(far <= delta, 0.5 * square(x - target), delta * (far - 0.5 * delta))
    return reduce_losses(losses, reduction)


def _smooth_l1_loss_decompose(x, target, *, beta=1.0, reduction="mean"):
    """huber_loss divided by ``beta``; abs(x - target) for a beta of 0.

    >>> import numpy as np
    >>> smooth_l1_loss(np.array([0.5, 3.0]), np.zeros(2), beta=2.0, reduction="none")
    array([0.0625, 2.    ])
    """
    if beta == 0:
        return _l1_loss_decompose(x, target, reduction=reduction)
    return _huber_loss_decompose(x, target, delta=beta, reduction=reduction) / beta


def _poisson_nll_loss_decompose(x, target, *, log_input=True, reduction="mean"):
    """Minus the log likelihood of Poisson counts, up to a constant; ``x``: logs of the rates.

    >>> import numpy as np
    >>> x, counts = np.log(np.array([2.0, 3.0])), np.array([2.0, 5.0])
    >>> poisson_nll_loss(x, counts, reduction="none").round(3)
    array([ 0.614, -2.493])
    """
    check_same_shape("poisson_nll_loss", x, target)
    return reduce_losses(exp(x) - target * x if log_input else x - target * log(x), reduction)


def _gaussian_nll_loss_decompose(x, target, var, *, eps=1e-6, reduction="mean"):
    """Minus the normal log likelihood, up to a constant; ``var`` is taken as at least ``eps``.

    >>> import numpy as np
    >>> x, target, var = np.array([0.0, 0.0]), np.array([0.0, 2.0]), np.ones(2)
    >>> gaussian_nll_loss(x, target, var, reduction="none")
    array([0., 2.])
    """
    check_same_shape("gaussian_nll_loss", x, target)
    var = where(var < eps, eps, var)
    return reduce_losses(0.5 * (log(var) + square(x - target) / var), reduction)


mse_loss = define_loss("mse_loss", _mse_loss_decompose)
l1_loss = define_loss("l1_loss", _l1_loss_decompose)
huber_loss = define_loss("huber_loss", _huber_loss_decompose)
smooth_l1_loss = define_loss("smooth_l1_loss", _smooth_l1_loss_decompose)
poisson_nll_loss = define_loss("poisson_nll_loss", _poisson_nll_loss_decompose)
gaussian_nll_loss = define_loss("gaussian_nll_loss", _gaussian_nll_loss_decompose)

# ---- margins ----


def _soft_margin_loss_decompose(x, target, *, reduction="mean"):
    """log(1 + exp(-target * x)) for targets of 1 and -1.

    >>> import numpy as np
    >>> soft_margin_loss(np.array([0.0, 3.0]), np.array([1, -1]), reduction="none").round(3)
    array([0.693, 3.049])
    """
    check_same_shape("soft_margin_loss", x, target)
    return reduce_losses(logaddexp(-target * x, 0), reduction)


def _hinge_embedding_loss_decompose(x, target, *, margin=1.0, reduction="mean"):
    """x where the target is 1; max(0, margin - x) where the target is -1.

    >>> import numpy as np
    >>> hinge_embedding_loss(np.array([0.5, 0.25]), np.array([1, -1]), reduction="none")
    array([0.5 , 0.75])
    """
    check_same_shape("hinge_embedding_loss", x, target)
    return reduce_losses(where(equal(target, 1), x, relu(margin - x)), reduction)


def _margin_ranking_loss_decompose(x, y, target, *, margin=0.0, reduction="mean"):
    """max(0, margin - target * (x - y)): x should exceed y by ``margin`` for a target of 1.

    >>> import numpy as np
    >>> x, y = np.array([2.0, 1.0]), np.array([1.0, 2.0])
    >>> margin_ranking_loss(x, y, np.ones(2), margin=0.5, reduction="none")
    array([0. , 1.5])
    """
    check_same_shape("margin_ranking_loss", x, y, target)
    return reduce_losses(relu(margin - target * (x - y)), reduction)


soft_margin_loss = define_loss("soft_margin_loss", _soft_margin_loss_decompose)
hinge_embedding_loss = define_loss("hinge_embedding_loss", _hinge_embedding_loss_decompose)
margin_ranking_loss = define_loss("margin_ranking_loss", _margin_ranking_loss_decompose)

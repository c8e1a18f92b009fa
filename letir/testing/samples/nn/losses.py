"""Samples of the operations in ``letir.ops.nn.losses``."""

from typing import Any

import numpy as np

from letir.testing.samples.sample import (
    POSITIVE,
    Sample,
    X,
    Y,
    narrowed,
    nonsmooth,
    sample_of,
)

SIGNS = np.array([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]])
CERTAIN = np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]])
SHARES = np.array([[0.5, 0.3, 0.2], [0.1, 0.7, 0.2]])
RATES = np.array([[0.2, 0.7, 0.9], [0.4, 0.1, 0.5]])
FAR_LOGITS = np.array([[900.0, -900.0, 0.0], [5.0, 1000.0, -700.0]])


def both(*args: Any, **attrs: Any) -> list[Sample]:
    """Samples of a loss of two arrays: the mean, each element, and the sum in single precision."""
    return [
        sample_of(*args, **attrs),
        sample_of(*args, reduction="none", **attrs),
        *narrowed(sample_of(*args, reduction="sum", **attrs))[:1],
    ]


SAMPLES = {
    "binary_cross_entropy": [
        *both(RATES, SHARES),
        sample_of(RATES, SHARES, POSITIVE),
        nonsmooth(RATES, CERTAIN),
        nonsmooth(np.array([0.0, 1.0]), np.array([0.0, 1.0])),
    ],
    "binary_cross_entropy_with_logits": [
        *both(X, SHARES),
        sample_of(X * 300, SHARES, POSITIVE, POSITIVE[0]),
    ],
    "kl_div": [
        *both(X, SHARES),
        sample_of(X, Y, log_target=True, reduction="batchmean"),
        nonsmooth(FAR_LOGITS, CERTAIN),
        nonsmooth(np.array([-np.inf, 0.5]), np.array([0.0, 1.0])),
    ],
    "mse_loss": both(X, Y),
    "l1_loss": [*both(X, Y), nonsmooth(X, X)],
    "huber_loss": [*both(X, Y), sample_of(X, Y, delta=0.4)],
    "smooth_l1_loss": [*both(X, Y), sample_of(X, Y, beta=0.4), sample_of(X, Y, beta=0.0)],
    "poisson_nll_loss": [*both(X, POSITIVE), sample_of(POSITIVE, X, log_input=False)],
    "gaussian_nll_loss": both(X, Y, POSITIVE),
    "soft_margin_loss": [*both(X, SIGNS), sample_of(X * 300, SIGNS)],
    "hinge_embedding_loss": both(X, SIGNS),
    "margin_ranking_loss": both(X, Y, SIGNS, margin=0.3),
}

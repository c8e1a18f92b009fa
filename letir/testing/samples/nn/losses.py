"""Samples of the operations in ``letir.ops.nn.losses``."""

from typing import Any

import numpy as np

from letir.testing.samples.sample import (
    BLOCK,
    FLOAT32,
    POSITIVE,
    Sample,
    X,
    Y,
    exempt,
    narrow,
    of,
    rough,
)

CLASSES = np.array([2, 0])
SIGNS = np.array([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]])
CERTAIN = np.array([[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]])
SHARES = np.array([[0.5, 0.3, 0.2], [0.1, 0.7, 0.2]])
RATES = np.array([[0.2, 0.7, 0.9], [0.4, 0.1, 0.5]])
SPACED = np.array([[0, 1, 2, 2], [1, -100, 0, 1]])
FAR_LOGITS = np.array([[900.0, -900.0, 0.0], [5.0, 1000.0, -700.0]])


def both(*args: Any, **attrs: Any) -> list[Sample]:
    """Samples of a loss of two arrays: the mean, each element, and the sum in single precision."""
    return [
        of(*args, **attrs),
        of(*args, reduction="none", **attrs),
        *narrow(of(*args, reduction="sum", **attrs))[:1],
    ]


SAMPLES = {
    "checked_classes": [
        of(CLASSES, classes=3),
        of(np.int64(1), classes=2),
        of(np.array([[0, -100]]), classes=1, ignored=-100),
    ],
    "one_hot": [of(CLASSES, classes=3), of(np.int64(1), classes=2, dtype=FLOAT32)],
    "nll_loss": exempt(
        [
            of(X, CLASSES),
            of(BLOCK, SPACED, POSITIVE[0], reduction="none"),
            of(BLOCK, SPACED, POSITIVE[0]),
            of(X[0], np.int64(1), reduction="sum"),
            of(X, np.array([-100, -100])),
            *narrow(of(X, CLASSES)),
        ],
        named_rows="its target, of fewer axes, has the batch too",
    ),
    "cross_entropy": [
        of(X, CLASSES),
        of(BLOCK, SPACED, POSITIVE[0], label_smoothing=0.1),
        of(X, SHARES, POSITIVE[0], reduction="sum"),
        of(X, SHARES, label_smoothing=0.2),
        of(X[0], np.int64(1), reduction="none"),
        rough(FAR_LOGITS, CLASSES),
        rough(np.array([0.5, -np.inf, 1.0]), np.array([0.5, 0.0, 0.5])),
        *narrow(of(X, CLASSES)),
    ],
    "binary_cross_entropy": [
        *both(RATES, SHARES),
        of(RATES, SHARES, POSITIVE),
        rough(RATES, CERTAIN),
        rough(np.array([0.0, 1.0]), np.array([0.0, 1.0])),
    ],
    "binary_cross_entropy_with_logits": [
        *both(X, SHARES),
        of(X * 300, SHARES, POSITIVE, POSITIVE[0]),
    ],
    "kl_div": [
        *both(X, SHARES),
        of(X, Y, log_target=True, reduction="batchmean"),
        rough(FAR_LOGITS, CERTAIN),
        rough(np.array([-np.inf, 0.5]), np.array([0.0, 1.0])),
    ],
    "mse_loss": both(X, Y),
    "l1_loss": [*both(X, Y), rough(X, X)],
    "huber_loss": [*both(X, Y), of(X, Y, delta=0.4)],
    "smooth_l1_loss": [*both(X, Y), of(X, Y, beta=0.4), of(X, Y, beta=0.0)],
    "poisson_nll_loss": [*both(X, POSITIVE), of(POSITIVE, X, log_input=False)],
    "gaussian_nll_loss": both(X, Y, POSITIVE),
    "soft_margin_loss": [*both(X, SIGNS), of(X * 300, SIGNS)],
    "hinge_embedding_loss": both(X, SIGNS),
    "margin_ranking_loss": both(X, Y, SIGNS, margin=0.3),
    "pairwise_distance": [
        of(X, Y),
        *[of(X, Y, p=p) for p in (1.0, 3.0, np.inf)],
        rough(X, X, eps=0.0),
        *narrow(of(X, Y)),
    ],
    "cosine_similarity": [
        of(X, Y),
        of(BLOCK, BLOCK[::-1], axis=-1),
        rough(X * 0, Y),
        *narrow(of(X, Y)),
    ],
    "cosine_embedding_loss": [*both(X, Y, SIGNS[:, 0]), of(X[0], Y[0], np.float64(-1.0))],
    "triplet_margin_loss": [
        *both(X, Y, X[::-1].copy()),
        of(X, Y, X[::-1].copy(), swap=True, p=1.0, margin=3.0),
    ],
}

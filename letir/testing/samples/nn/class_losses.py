"""Samples of the operations in ``letir.ops.nn.class_losses``."""

import numpy as np

from letir.testing.samples.sample import (
    BLOCK,
    FLOAT32,
    POSITIVE,
    X,
    exempt,
    narrowed,
    nonsmooth,
    sample_of,
)

CLASSES = np.array([2, 0])
SHARES = np.array([[0.5, 0.3, 0.2], [0.1, 0.7, 0.2]])
SPACED = np.array([[0, 1, 2, 2], [1, -100, 0, 1]])
FAR_LOGITS = np.array([[900.0, -900.0, 0.0], [5.0, 1000.0, -700.0]])


SAMPLES = {
    "checked_classes": [
        sample_of(CLASSES, classes=3),
        sample_of(np.int64(1), classes=2),
        sample_of(np.array([[0, -100]]), classes=1, ignored=-100),
    ],
    "one_hot": [sample_of(CLASSES, classes=3), sample_of(np.int64(1), classes=2, dtype=FLOAT32)],
    "nll_loss": exempt(
        [
            sample_of(X, CLASSES),
            sample_of(BLOCK, SPACED, POSITIVE[0], reduction="none"),
            sample_of(BLOCK, SPACED, POSITIVE[0]),
            sample_of(X[0], np.int64(1), reduction="sum"),
            sample_of(X, np.array([-100, -100])),
            *narrowed(sample_of(X, CLASSES)),
        ],
        named_rows="its target, which has fewer axes, is batched too",
    ),
    "cross_entropy": [
        sample_of(X, CLASSES),
        sample_of(BLOCK, SPACED, POSITIVE[0], label_smoothing=0.1),
        sample_of(X, SHARES, POSITIVE[0], reduction="sum"),
        sample_of(X, SHARES, label_smoothing=0.2),
        sample_of(X[0], np.int64(1), reduction="none"),
        nonsmooth(FAR_LOGITS, CLASSES),
        nonsmooth(np.array([0.5, -np.inf, 1.0]), np.array([0.5, 0.0, 0.5])),
        *narrowed(sample_of(X, CLASSES)),
    ],
}

"""Samples of the operations in ``letir.ops.nn.convolution``."""

import numpy as np

from letir.testing.samples.sample import exempt, narrowed, sample_of

LINE = np.sin(np.arange(2 * 4 * 7.0)).reshape(2, 4, 7)
LINE_WEIGHT = np.cos(np.arange(6 * 2 * 3.0)).reshape(6, 2, 3)
IMAGE = np.sin(np.arange(2 * 2 * 5 * 4.0) * 0.7).reshape(2, 2, 5, 4)
WEIGHT = np.cos(np.arange(3 * 2 * 2 * 3.0)).reshape(3, 2, 2, 3)
LINE_RESULT = np.cos(np.arange(2 * 6 * 3.0)).reshape(2, 6, 3)
RESULT = np.cos(np.arange(2 * 3 * 3 * 3.0)).reshape(2, 3, 3, 3)
PLAIN = {"stride": (1,), "padding": ((0, 0),), "dilation": (1,)}
GROUPED = {"stride": (2,), "padding": ((2, 1),), "dilation": (2,), "groups": 2}
ON_IMAGE = {"stride": (2, 1), "padding": ((0, 1), (1, 2)), "dilation": (1, 2)}

SAMPLES = {
    "conv": exempt(
        [
            sample_of(LINE, LINE_WEIGHT, **GROUPED),
            sample_of(IMAGE, WEIGHT, **ON_IMAGE),
            sample_of(LINE[:, :2] * 1j, LINE_WEIGHT, **PLAIN),
            sample_of(LINE[:0, :2], LINE_WEIGHT, **PLAIN),
            *narrowed(sample_of(LINE[:, :2], LINE_WEIGHT, **PLAIN))[:1],
        ],
        batch_of_named_size="groups need the number of examples",
    ),
    "conv_transpose": exempt(
        [
            sample_of(LINE_RESULT, LINE_WEIGHT, sizes=(7,), **GROUPED),
            sample_of(RESULT, WEIGHT, sizes=(5, 4), **ON_IMAGE),
            *narrowed(sample_of(np.ones((1, 6, 3)), LINE_WEIGHT, sizes=(5,), **PLAIN))[:1],
        ],
        batch_of_named_size="groups need the number of examples",
    ),
    "conv_weight": exempt(
        [
            sample_of(LINE, LINE_RESULT, kernel=(3,), **GROUPED),
            sample_of(IMAGE, RESULT, kernel=(2, 3), **ON_IMAGE),
            *narrowed(sample_of(LINE, np.ones((2, 6, 5)), kernel=(3,), **PLAIN))[:1],
        ],
        batch_of_named_size="groups need the number of examples",
    ),
}

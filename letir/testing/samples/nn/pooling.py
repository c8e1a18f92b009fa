"""Samples of the operations in ``letir.ops.nn.pooling``."""

import numpy as np

from letir.testing.samples.nn.convolution import IMAGE, LINE
from letir.testing.samples.reductions.reductions import TIES
from letir.testing.samples.sample import INTEGERS, exempt, narrowed, nonsmooth, sample_of

ONE = {"stride": (1,), "padding": ((0, 0),), "dilation": (1,)}
WIDE = {"stride": (2, 1), "padding": ((0, 1), (1, 0)), "dilation": (1, 2)}
WINDOW = {"window": (2, 2), **WIDE}

SAMPLES = {
    "unfold": [
        sample_of(LINE, window=(3,), **ONE),
        sample_of(IMAGE, **WINDOW, value=0.5),
        sample_of(LINE[:0], window=(3,), **ONE),
        sample_of(INTEGERS, window=(2,), **ONE),
        *narrowed(sample_of(LINE[0, 0], window=(2,), **ONE)),
    ],
    "fold": exempt(
        [
            sample_of(LINE[:, :, :3], sizes=(4,), **ONE),
            sample_of(
                np.sin(np.arange(2 * 2 * 3 * 3 * 3.0)).reshape(2, 2, 3, 3, 3), sizes=(5, 4), **WIDE
            ),
            *narrowed(sample_of(LINE[:, :, :3], sizes=(4,), **ONE)),
        ],
        named_rows="its first axis belongs to a window, not to a batch",
    ),
    "max_pool": [
        sample_of(LINE, window=(3,), **ONE),
        sample_of(IMAGE, **WINDOW),
        sample_of(INTEGERS, window=(2,), stride=(1,), padding=((1, 0),), dilation=(1,)),
        nonsmooth(TIES, window=(2,), **ONE),
        *narrowed(sample_of(LINE, window=(2,), **ONE)),
    ],
    "avg_pool": [
        sample_of(LINE, window=(3,), stride=(2,), padding=((0, 0),)),
        sample_of(IMAGE, window=(2, 2), stride=(2, 1), padding=((0, 1), (1, 0))),
        sample_of(
            IMAGE, window=(2, 2), stride=(2, 1), padding=((0, 1), (1, 0)), count_padding=False
        ),
        *narrowed(sample_of(LINE, window=(2,), stride=(2,), padding=((0, 0),))),
    ],
}

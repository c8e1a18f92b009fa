"""Samples of the operation in ``letir.ops.signal.all_pole_filter``."""

import numpy as np

from letir.testing.samples.sample import FLOAT32, sample_of

POLES, WAVE = np.array([1.2, -0.4, 0.3]), np.array([[0.5, -1.0, 0.25, 2.0], [1.5, 0.1, -0.7, 0.3]])
SAMPLES = {
    "all_pole_filter": [
        sample_of(POLES, WAVE),
        sample_of(POLES[:1], WAVE[0]),
        sample_of(POLES, WAVE[0, :2]),
        sample_of(POLES * (1 + 0.5j), WAVE),
        sample_of(POLES.astype(FLOAT32), WAVE.astype(FLOAT32)),
    ],
}

"""Samples of the operation in ``letir.ops.linalg.schur_form``."""

import numpy as np

from letir.testing.samples.sample import FLOAT32, exempt, nonsmooth

FORM = np.array([[2.0, 0.3, -0.5], [0.0, 1.5, 0.7], [0.0, 0.0, -1.8]])
REFUSES = "it refuses matrices that are not triangular"
SAMPLES = {
    "triangular_schur_form": exempt(
        [nonsmooth(FORM), nonsmooth(FORM.astype(FLOAT32)), nonsmooth(np.stack([FORM, 2 * FORM]))],
        program=REFUSES,
        program_difference=REFUSES,
        complex_step=REFUSES,
    ),
}

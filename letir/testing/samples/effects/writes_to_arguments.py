"""Samples of the operations in ``letir.ops.effects.writes_to_arguments``."""

import numpy as np

from letir.testing.samples.sample import EMPTY, FLOAT32, X, Y, Z, exempt, nonsmooth, sample_of

SAMPLES = {
    # scalars, which it cannot change; tests/tracing/mutation/test_mutated_arguments.py has arrays
    "write_back": exempt(
        [nonsmooth(X[0, 0], Y[0, 0]), nonsmooth(Z[0, 0], Z[0, 1])],
        program_derivative="it changes its arguments",
        program="it changes its arguments",
        eager="it changes its arguments",
        named_rows="its operands are single elements",
    ),
    "guard_order": [sample_of(X, order="C"), sample_of(X[0], order="C")],
    "complex_of": [
        sample_of(X, Y),
        sample_of(X, Y[0]),
        sample_of(X[0, 0], Y[0, 0]),
        sample_of(np.array(0.5), np.array(-0.0)),
        sample_of(EMPTY, EMPTY),
        sample_of(X.astype(FLOAT32), Y.astype(FLOAT32)),
    ],
}

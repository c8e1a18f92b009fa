"""Samples of the operations in ``letir.ops.effects.writes_to_arguments``."""

import numpy as np

from letir.testing.samples.sample import EMPTY, FLOAT32, X, Y, Z, exempt, of, rough

SAMPLES = {
    # scalars, which it cannot change; tests/tracing/mutation/test_mutated_arguments.py has arrays
    "write_back": exempt(
        [rough(X[0, 0], Y[0, 0]), rough(Z[0, 0], Z[0, 1])],
        program_derivative="it changes its arguments",
        program="it changes its arguments",
        eager="it changes its arguments",
        named_rows="its operands are single elements",
    ),
    "guard_order": [of(X, order="C"), of(X[0], order="C")],
    "complex_of": [
        of(X, Y),
        of(X, Y[0]),
        of(X[0, 0], Y[0, 0]),
        of(np.array(0.5), np.array(-0.0)),
        of(EMPTY, EMPTY),
        of(X.astype(FLOAT32), Y.astype(FLOAT32)),
    ],
}

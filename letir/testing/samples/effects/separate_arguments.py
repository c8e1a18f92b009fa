"""Samples of the operations in ``letir.ops.effects.separate_arguments``."""

from letir.testing.samples.sample import X, Y, exempt, sample_of

SAMPLES = {
    "guard_separate": exempt(
        [
            sample_of(X, Y, written=1, names=("x", "y")),
            sample_of(X[0], 2.0, Y, written=2, names=("x", "n", "y")),
        ],
        program="operands of generated programs may be one array",
    ),
}

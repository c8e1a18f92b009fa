"""Samples of the operations in ``letir.ops.effects.printing``."""

from letir.testing.samples.sample import INTEGERS, X, sample_of

SAMPLES = {
    "print": [
        sample_of(X[0], text="x is {}\n"),
        sample_of(X[0, 0], 2.5, INTEGERS, text="{0} {1:.2f} 'n' {n!r}", names=("n",)),
    ],
}

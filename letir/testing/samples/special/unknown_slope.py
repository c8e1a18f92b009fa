"""Samples of the operation in ``letir.ops.special.unknown_slope``."""

from letir.testing.samples.sample import X, sample_of

SAMPLES = {"unknown_slope": [sample_of(X), sample_of(0.5)]}

"""Samples of the operation in ``letir.ops.special.unknown_slope``."""

from letir.testing.samples.sample import X, of

SAMPLES = {"unknown_slope": [of(X), of(0.5)]}

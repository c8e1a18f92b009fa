"""Samples of the operation in ``letir.ops.special.unknown_slope``."""

from letir.testing.samples.sample import X, exempt, sample_of

SAMPLES = {
    "unknown_slope": exempt(
        [sample_of(X), sample_of(0.5)],
        **dict.fromkeys(
            ("eager", "program", "program_derivative", "program_difference"),
            "its gradient raises an error",
        ),
    )
}

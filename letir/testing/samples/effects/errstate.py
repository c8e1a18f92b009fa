"""Samples of the operation in ``letir.ops.effects.errstate``."""

from letir.ast.types import ArrayType
from letir.testing.samples.autodiff.checkpoint_and_custom_jvp import GROWTH, VECTOR, WAVE, body
from letir.testing.samples.sample import INTEGERS, X, Y, exempt, narrowed, sample_of

QUIET = dict.fromkeys(("divide", "over", "under", "invalid"), "ignore")
WARNING = {**QUIET, "divide": "warn"}
QUOTIENT = body(lambda n, x: (n / x,), ArrayType(int, (3,)), VECTOR)
SAMPLES = {
    "errstate": exempt(
        [
            sample_of(X[0], Y[0], body=WAVE, **QUIET),
            sample_of(X[0], body=GROWTH, **WARNING),
            sample_of(X[0], body=GROWTH, **WARNING, hidden=("Mean of empty slice", "")),
            sample_of(INTEGERS[0], X[0], body=QUOTIENT, **QUIET),
            *narrowed(sample_of(X[0], body=GROWTH, **QUIET)),
        ],
        transposition="its forward mode calls the operation itself",
    )
}

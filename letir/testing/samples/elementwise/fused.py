"""Samples of the operation in ``letir.ops.elementwise.fused``."""

import numpy as np

from letir.ast.primitive import PRIMITIVES
from letir.ast.types import ArrayType
from letir.testing.samples.autodiff.checkpoint_and_custom_jvp import GROWTH, VECTOR, WAVE, body
from letir.testing.samples.sample import X, Y, Z, narrowed, sample_of

PAIR = body(lambda x, y: (x * y,), VECTOR, VECTOR)
MIXED = body(lambda n, x: (n * x, x > n), ArrayType(int), VECTOR)
COMPLEX = body(lambda z: (PRIMITIVES["exp"](z) * z,), ArrayType(complex, (3,)))
MATRIX = body(
    lambda x, y: (PRIMITIVES["tanh"](x) + y, x * y),
    ArrayType(float, (2, 3)),
    ArrayType(float, (3,)),
)
SAMPLES = {
    "fused": [
        sample_of(X[0], Y[0], body=WAVE),
        sample_of(X[0], body=GROWTH),
        sample_of(np.int64(2), X[0], body=MIXED),
        sample_of(Z[0], body=COMPLEX),
        sample_of(X, Y[0], body=MATRIX),
        *narrowed(sample_of(X[0], body=GROWTH), sample_of(X[0], Y[0], body=PAIR)),
    ]
}

"""Samples of the operations in ``letir.ops.autodiff.checkpoint_and_custom_jvp``: checkpoint and
custom_jvp.
"""

from collections.abc import Callable

import numpy as np

from letir.ast.builder import LetBuilder, Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.testing.samples.sample import X, Y, exempt, sample_of

VECTOR, SCALAR = ArrayType(float, (3,)), ArrayType(float)


def body(formula: Callable, *types: ArrayType) -> Lambda:
    """A closed program of arrays of these types, vectors unless others are given."""
    builder = LetBuilder()
    return builder.build(formula(*[builder.param(aval) for aval in types]))


def wave(x: Value, y: Value) -> tuple[Value, Value]:
    """Two results, the second a value on the way to the first."""
    s = PRIMITIVES["sin"](x) * y
    return (PRIMITIVES["exp"](s), s)


WAVE = body(wave, VECTOR, VECTOR)
SCALED = body(lambda x, y: (x * x * y, x.sum()), VECTOR, VECTOR)
SCALED_RULE = body(
    lambda x, y, out, total, s, t: (2 * x * y * s + x * x * t, s.sum()),
    *(VECTOR, VECTOR, VECTOR, SCALAR, VECTOR, VECTOR),
)
GROWTH = body(lambda x: (PRIMITIVES["exp"](x),), VECTOR)
GROWTH_RULE = body(lambda x, c, out, t: (out * t * c,), VECTOR, VECTOR, VECTOR, VECTOR)

SAMPLES = {
    "checkpoint": [
        sample_of(X[0], Y[0], body=WAVE, saved=0),
        sample_of(X[0], Y[0], body=WAVE, saved=1),
    ],
    "custom_jvp": exempt(
        [
            sample_of(X[0], Y[0], name="scaled", primal=SCALED, rule=SCALED_RULE, closed_over=0),
            sample_of(
                X[0], np.ones(3), name="growth", primal=GROWTH, rule=GROWTH_RULE, closed_over=0
            ),
        ],
        program_derivative="by design, it is not the derivative of the values",
        batch_difference="its rule holds for one operand",
    ),
}

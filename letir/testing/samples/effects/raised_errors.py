"""Samples of the operations in ``letir.ops.effects.raised_errors``."""

import numpy as np

from letir.ast.builder import LetBuilder
from letir.ast.primitive import PRIMITIVES
from letir.ast.types import ArrayType
from letir.testing.samples.sample import INTEGERS, X, exempt, sample_of

_BUILDER = LetBuilder()
INVERSE = _BUILDER.build([PRIMITIVES["inv"](_BUILDER.param(ArrayType(float, (2, 2))))])
SAMPLES = {
    "guard_raised": exempt(
        [sample_of(np.zeros((2, 2)), body=INVERSE, error="numpy.linalg.LinAlgError")],
        batch="an exception of one example is not an exception of all",
        program="it raises if its operand does not raise what was recorded",
    ),
    "guard_computed": [sample_of(X[0], caught=True), sample_of(INTEGERS, caught=False)],
}

"""Samples of the operations in ``letir.ops.control_flow.loop_over_examples``."""

from letir.ast.builder import LetBuilder
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.testing.samples.sample import EMPTY, INTEGERS, X, Y, Z, exempt, sample_of


def body(*types: ArrayType) -> Lambda:
    """The product of two operands, and the sum of squares of the first."""
    builder = LetBuilder()
    x, y = (builder.param(aval) for aval in types)
    return builder.build((x * y, (x * x).sum()))


ROW, NUMBER = ArrayType(float, (3,)), ArrayType(float)
PRODUCT = {"body": body(ROW, ROW), "mapped": (True, False)}
SAMPLES = {
    "looped": exempt(
        [
            sample_of(X, Y[0], **PRODUCT),
            sample_of(X, Y, body=body(ROW, ROW), mapped=(True, True)),
            sample_of(X[0], Y[1], body=body(NUMBER, NUMBER), mapped=(True, True)),
            sample_of(X[0], Y[1], body=body(NUMBER, ROW), mapped=(True, False)),
            sample_of(X[0], Y, body=body(ROW, ROW), mapped=(False, True)),
            sample_of(EMPTY, Y[0], **PRODUCT),
            sample_of(Z, Y[0], body=body(ArrayType(complex, (3,)), ROW), mapped=(True, False)),
            sample_of(X, INTEGERS, body=body(ROW, ArrayType(int, (3,))), mapped=(True, True)),
        ],
        batch_of_named_size="zeros in place of a missing value need the number of examples",
    ),
}

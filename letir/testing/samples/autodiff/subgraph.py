"""Samples of the operation in ``letir.ops.autodiff.subgraph``: differentiable_graph."""

from collections.abc import Sequence

import numpy as np

from letir.ad.differentiation import differentiate
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.ops.autodiff.subgraph import VECTORS
from letir.testing.samples.autodiff.checkpoint_and_custom_jvp import VECTOR, WAVE, body
from letir.testing.samples.sample import X, Y, sample_of

SHORT = ArrayType(float, (1,))
# a result that is returned twice, one that is an operand, and integers
MIXED = body(
    lambda x, y: (x * y, x, (x * y).argmax(), PRIMITIVES["tanh"](x * y).sum()), VECTOR, SHORT
)


def graph(program: Lambda, requires_grad: Sequence[bool] | None = None) -> dict:
    """The attributes of the graph of a program."""
    gradient = differentiate(program, requires_grad)
    vectors = {name: getattr(gradient, name) for name in VECTORS}
    return {"f": gradient.f, "df": gradient.df, **vectors}


SAMPLES = {
    "differentiable_graph": [
        sample_of(X[0], Y[0], **graph(WAVE)),
        sample_of(X[0], np.full(1, 0.75), **graph(MIXED)),
    ],
}

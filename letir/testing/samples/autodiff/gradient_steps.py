"""Samples of the operations in ``letir.ops.autodiff.gradient_steps``: guards, custom rules,
gradient programs.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast.builder import LetBuilder, Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType, Undef
from letir.testing.samples.sample import (
    EMPTY,
    FLOAT32,
    FLOAT64,
    Sample,
    W,
    X,
    Y,
    Z,
    exempt,
    narrowed,
    nonsmooth,
    sample_of,
)

VECTOR = {"shape": (3,), "dtype": FLOAT64}


def body(count: int, formula: Callable) -> Lambda:
    """A closed program of ``count`` arrays of shape (3,)."""
    builder = LetBuilder()
    return builder.build(formula(*[builder.param(ArrayType(float, (3,))) for _ in range(count)]))


def pair_step(a: Any, b: Any, x: Any) -> tuple[Value]:
    """A linear function of two cotangents, either of which may be ``Undef``."""
    instantiate = PRIMITIVES["instantiate"]
    return (instantiate(a, **VECTOR) * x + instantiate(b, **VECTOR),)


PRODUCT = {"n_cts": 1, "body": body(3, lambda ct, x, y: (ct * y, ct * x))}
PAIR = {"n_cts": 2, "body": body(3, pair_step)}
BACKWARD = body(2, lambda residual, ct: (ct * residual,))


def steps(**attrs: Any) -> list[Sample]:
    """Steps of a gradient program with all cotangents, one of two, and none."""
    return [
        sample_of(Y[0], X[0], X[1], **PRODUCT, **attrs),
        sample_of(Y[0], Y[1], X[0], **PAIR, **attrs),
        sample_of(Y[0], Undef, X[0], **PAIR, **attrs),
        nonsmooth(Undef, X[0], X[1], **PRODUCT, **attrs),
        nonsmooth(Undef, Undef, X[0], **PAIR, **attrs),
    ]


SAMPLES = {
    "guard": exempt(
        [
            sample_of(np.int64(3), value=3),
            sample_of(np.bool_(True), value=True),
            sample_of(2, value=2),
            sample_of(np.array(4), value=4),
        ],
        batch="one choice is made for all examples",
    ),
    "custom_vjp": exempt(
        [
            nonsmooth(X[0] ** 2, 2 * X[0], X[0], n_outs=1, n_residuals=1, backward=BACKWARD),
        ],
        program_derivative="by design, it is not the derivative of the values",
        linearity="its body has no forward mode",
    ),
    "autograd_add": [
        sample_of(X, Y),
        sample_of(Undef, X),
        sample_of(X, Undef),
        sample_of(X[0, 0], Y[0, 0]),
        sample_of(Z, W),
        sample_of(EMPTY, EMPTY),
        *narrowed(sample_of(X, Y)),
    ],
    "instantiate": exempt(
        [
            sample_of(X[0], **VECTOR),
            sample_of(Undef, **VECTOR),
            sample_of(Undef, np.array([3]), shape=None, dtype=FLOAT32),
        ],
        batch_of_last="its last operand is a shape",
        batch_of_named_size="zeros in place of a missing value need the number of examples",
        named_rows="its shape is an operand of its own",
    ),
    "grad_of": exempt(
        steps(op=PRIMITIVES["mul"]),
        batch_of_named_size="zeros in place of a missing value need the number of examples",
        named_rows="its body is typed",
    ),
    "when_defined": exempt(
        steps(),
        batch_of_named_size="zeros in place of a missing value need the number of examples",
        named_rows="its body is typed",
    ),
}

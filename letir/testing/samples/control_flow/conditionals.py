"""Samples of the operations in ``letir.ops.control_flow.conditionals``."""

from collections.abc import Callable

import numpy as np

from letir.ast.builder import LetBuilder, Value
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.ops.elementwise.ufuncs import cos, exp, sin, sqrt
from letir.testing.samples.sample import EMPTY, X, Y, Z, sample_of

ROW, NUMBER, SINGLE = ArrayType(float, (3,)), ArrayType(float), ArrayType("float32", (3,))
WAVE, NOTHING, TABLE = ArrayType(complex, (3,)), ArrayType(float, EMPTY.shape), ArrayType(int, (3,))


def body(function: Callable, *avals: ArrayType) -> Lambda:
    """The program of ``function`` on parameters of these types."""
    builder = LetBuilder()
    out = function(*[builder.param(aval) for aval in avals])
    return builder.build(out if type(out) is tuple else (out,))


def waves(x: Value, y: Value) -> tuple[Value, Value]:
    """A branch whose backward pass reads a value computed in the branch."""
    return sin(x) * exp(x) * y, x.sum()


def powers(x: Value, y: Value) -> tuple[Value, Value]:
    """A second branch of the same types."""
    return x * x * y.sum(), y[0]


PAIR = {"on_true": body(waves, ROW, ROW), "on_false": body(powers, ROW, ROW)}
ROOT = {"on_true": body(sqrt, NUMBER), "on_false": body(lambda x: x * 0.5, NUMBER)}
THREE = tuple(body(function, ROW) for function in (sin, cos, lambda x: x * x * x))
SAMPLES = {
    "cond": [
        sample_of(np.bool_(True), X[0], Y[0], **PAIR),
        sample_of(np.bool_(False), X[0], Y[0], **PAIR),
        sample_of(0.5, X[0], Y[0], **PAIR),
        sample_of(np.bool_(False), np.float64(-2.0), **ROOT),
        sample_of(
            np.int64(0),
            Z[0],
            on_true=body(lambda z: z * z, WAVE),
            on_false=body(lambda z: z * 2, WAVE),
        ),
        sample_of(
            np.bool_(True),
            X[0].astype("float32"),
            on_true=body(sin, SINGLE),
            on_false=body(cos, SINGLE),
        ),
        sample_of(np.bool_(True), EMPTY, on_true=body(sin, NOTHING), on_false=body(cos, NOTHING)),
        sample_of(
            np.bool_(True),
            np.arange(3),
            on_true=body(lambda i: i + 1, TABLE),
            on_false=body(lambda i: i, TABLE),
        ),
    ],
    "switch": [
        sample_of(np.int64(0), X[0], branches=THREE),
        sample_of(np.int64(-7), X[0], branches=THREE),
        sample_of(np.int8(9), X[0], branches=THREE),
        sample_of(np.int64(3), X[0], branches=THREE[:1]),
    ],
}

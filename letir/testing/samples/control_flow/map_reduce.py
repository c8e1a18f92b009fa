"""Samples of the operations in ``letir.ops.control_flow.map_reduce``."""

from collections.abc import Callable

import numpy as np

from letir.ast.builder import LetBuilder, Value
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.ufuncs import maximum, sin
from letir.testing.samples.sample import BLOCK, BOOLEANS, EMPTY, INTEGERS, X, Y, Z, sample_of

NUMBER, ROW, SQUARE = ArrayType(float), ArrayType(float, (3,)), ArrayType(float, (2, 2))
COUNTS, FLAGS, WAVE = ArrayType(int, (3,)), ArrayType(bool, (3,)), ArrayType(complex, (3,))
SQUARES = BLOCK[0, :, :2].repeat(2, axis=0).reshape(3, 2, 2) + np.eye(2)
MANY = np.linspace(-1.1, 1.3, 7)
FACTORS = np.array([1.5, 0.0, -2.0, 0.5])


def body(f: Callable, *avals: ArrayType) -> Lambda:
    """The program of ``f`` for parameters of these types."""
    builder = LetBuilder()
    result = f(*[builder.param(aval) for aval in avals])
    return builder.build(result if type(result) is tuple else (result,))


def binary(f: Callable, *avals: ArrayType, more: tuple = ()) -> Lambda:
    """A binary operation on elements of these types."""
    return body(f, *avals, *avals, *more)


def affine(a: Value, b: Value, c: Value, d: Value) -> tuple[Value, Value]:
    """The composition of two affine maps, x -> a * x + b and then x -> c * x + d."""
    return a * c, b * c + d


def twice_and_sum(x: Value, w: Value) -> tuple[Value, Value]:
    """Two results, one of which is a number."""
    return sin(x) * w, (x * x).sum()


ADD = {"body": binary(lambda a, b: a + b, ROW), "n_xs": 1, "batched": True}
MAX = {**ADD, "body": binary(maximum, ROW)}
TIMES = {"body": binary(lambda a, b: a * b, NUMBER), "n_xs": 1, "batched": True}
MATMUL = {"body": binary(lambda a, b: a @ b, SQUARE), "n_xs": 1, "batched": True}
SCALED = binary(lambda a, b, w: a * b * w, NUMBER, more=(NUMBER,))
AFFINE = {"body": binary(affine, NUMBER, NUMBER), "n_xs": 2, "batched": True}
START = np.array([0.3, -0.2, 0.9])
SAMPLES = {
    "map": [
        sample_of(X, np.float64(0.7), body=body(twice_and_sum, ROW, NUMBER), n_xs=1, batched=True),
        sample_of(X, np.float64(0.7), body=body(twice_and_sum, ROW, NUMBER), n_xs=1, batched=False),
        sample_of(X[0], Y[0], body=body(lambda x, y: x * y, NUMBER, NUMBER), n_xs=2, batched=True),
        sample_of(
            X, body=body(lambda x: (x, x * 1.0, where(x > 0, x, 0)), ROW), n_xs=1, batched=True
        ),
        sample_of(
            EMPTY, np.float64(0.7), body=body(twice_and_sum, ROW, NUMBER), n_xs=1, batched=True
        ),
        sample_of(Z, body=body(lambda z: z * z, WAVE), n_xs=1, batched=True),
        sample_of(INTEGERS, body=body(lambda i: i * 2, COUNTS), n_xs=1, batched=True),
        sample_of(X, 0.5, body=body(lambda x, w: w, ROW, NUMBER), n_xs=1, batched=True),
    ],
    "reduce": [
        sample_of(START, X, **ADD),
        sample_of(START, X, **MAX),
        sample_of(START, EMPTY, **MAX),
        sample_of(np.float64(0.5), FACTORS, **TIMES),
        sample_of(SQUARES[0], SQUARES, **MATMUL),
        sample_of(SQUARES[0], SQUARES, **{**MATMUL, "batched": False}),
        sample_of(np.float64(0.5), MANY, np.float64(1.2), body=SCALED, n_xs=1, batched=True),
        sample_of(np.float64(0.5), np.float64(0.1), MANY, MANY + 0.3, **AFFINE),
        sample_of(Z[0], Z, **{**ADD, "body": binary(lambda a, b: a * b, WAVE)}),
        sample_of(INTEGERS[0], INTEGERS, **{**ADD, "body": binary(lambda a, b: a + b, COUNTS)}),
    ],
    "associative_scan": [
        sample_of(X, reverse=False, **ADD),
        sample_of(X, reverse=True, **MAX),
        sample_of(EMPTY, reverse=True, **MAX),
        sample_of(FACTORS, reverse=False, **TIMES),
        sample_of(SQUARES, reverse=False, **MATMUL),
        sample_of(SQUARES, reverse=True, **{**MATMUL, "batched": False}),
        sample_of(MANY, np.float64(1.2), body=SCALED, n_xs=1, reverse=True, batched=True),
        sample_of(MANY[:6], MANY[:6] + 0.3, reverse=False, **AFFINE),
        sample_of(BOOLEANS, reverse=False, **{**ADD, "body": binary(lambda a, b: a | b, FLAGS)}),
    ],
}

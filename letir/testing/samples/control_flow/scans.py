"""Samples of the operation in ``letir.ops.control_flow.scans``."""

from collections.abc import Callable

import numpy as np

from letir.ast.builder import LetBuilder, Value
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.ops.elementwise.ufuncs import sin, tanh
from letir.testing.samples.sample import EMPTY, INTEGERS, X, Y, Z, sample_of

ROW, NUMBER, COUNT = ArrayType(float, (3,)), ArrayType(float), ArrayType(int)
WAVE = ArrayType(complex, (3,))
SINGLE = ArrayType("float32", (3,))


def body(step: Callable, *avals: ArrayType) -> Lambda:
    """The program of a step for parameters of these types."""
    builder = LetBuilder()
    return builder.build(step(*[builder.param(aval) for aval in avals]))


def network(h: Value, x: Value, w: Value) -> tuple[Value, ...]:
    """A step that reads carried, scanned and captured values."""
    new = tanh(h * w + x)
    return new, new * x, h.sum()


def pair(h: Value, i: Value, x: Value) -> tuple[Value, ...]:
    """A step with two carried values, one of them a counter."""
    return h + sin(x) * i, i + 1, h


def fill(h: Value, x: Value) -> tuple[Value, Value]:
    """A step that updates a carried array in place; its initial value is kept."""
    return h.at[0].add(x.sum() * h[1]), h[0]


NETWORK = {"body": body(network, ROW, ROW, NUMBER), "n_carry": 1, "n_xs": 1}
HERE = {"length": 2, "reverse": False}
SAMPLES = {
    "scan": [
        sample_of(Y[0], X, np.float64(0.7), **NETWORK, **HERE),
        sample_of(Y[0], X, np.float64(0.7), **NETWORK, length=None, reverse=True),
        sample_of(Y[0], EMPTY, np.float64(0.7), **NETWORK, length=None, reverse=False),
        sample_of(
            X[0], np.int64(2), Y, body=body(pair, ROW, COUNT, ROW), n_carry=2, n_xs=1, **HERE
        ),
        sample_of(X[0], Y, body=body(fill, ROW, ROW), n_carry=1, n_xs=1, **HERE),
        sample_of(
            X[0], body=body(lambda h: (h * h,), ROW), n_carry=1, n_xs=0, length=3, reverse=False
        ),
        sample_of(
            0.5, X, body=body(lambda s, x: (s * x.sum(), s), NUMBER, ROW), n_carry=1, n_xs=1, **HERE
        ),
        sample_of(X, Y, body=body(lambda x, y: (x * y,), ROW, ROW), n_carry=0, n_xs=2, **HERE),
        sample_of(
            Z[0], X, body=body(lambda z, x: (z * z + x, z), WAVE, ROW), n_carry=1, n_xs=1, **HERE
        ),
        sample_of(
            *(Y[0].astype("float32"), X.astype("float32"), np.float32(0.7)),
            **{**NETWORK, "body": body(network, SINGLE, SINGLE, ArrayType("float32"))},
            **HERE,
        ),
        sample_of(
            X[0],
            INTEGERS,
            body=body(lambda h, i: (h * i, i), ROW, ArrayType(int, (3,))),
            n_carry=1,
            n_xs=1,
            length=None,
            reverse=False,
        ),
    ],
}

"""Samples of the operations in ``letir.ops.control_flow.while_and_fori``."""

import numpy as np

from letir.ast.builder import Value
from letir.ast.types import WEAK, ArrayType
from letir.ops.elementwise.casting import weaken
from letir.ops.elementwise.ufuncs import sin, tanh
from letir.testing.samples.control_flow.conditionals import NOTHING, NUMBER, ROW, SINGLE, WAVE, body
from letir.testing.samples.sample import EMPTY, X, Y, Z, exempt, sample_of

COUNT, INDEX = ArrayType(int), WEAK[int]


def layer(i: Value, h: Value, w: Value) -> Value:
    """An iteration that reads the step number, carried values and captured values."""
    return tanh(h * w) + h * i


def growing(h: Value, n: Value, w: Value) -> tuple[Value, Value]:
    """Carries a number beside an array."""
    return sin(h) * w, n + 1


def few(h: Value, n: Value, w: Value) -> Value:
    """A test that holds for three iterations."""
    return n < 3


def falling(x: Value, y: Value) -> tuple[Value, Value]:
    """An iteration after which one of the carried values is smaller."""
    return x * 0.5, y * x + x


COUNTED = {"test": body(few, ROW, COUNT, NUMBER), "body": body(growing, ROW, COUNT, NUMBER)}
HALVED = {
    "test": body(lambda x, y: x > 0.3, NUMBER, NUMBER),
    "body": body(falling, NUMBER, NUMBER),
}
STACKED = {
    "test": body(few, ROW, COUNT, NUMBER),
    "body": body(lambda h, n, w: (*growing(h, n, w), h * w, n), ROW, COUNT, NUMBER),
}
NUMBERED = {
    "test": body(few, ROW, COUNT, NUMBER),
    "body": body(lambda h, n, w: (*growing(h, n, w), n * 2, h), ROW, COUNT, NUMBER),
}
LAYERS = body(layer, INDEX, ROW, NUMBER)
W, ONE, ZERO = np.float64(1.3), np.int64(1), np.int64(0)
SAMPLES = {
    "while_loop": [
        sample_of(X[0], ZERO, W, **COUNTED),
        sample_of(X[0], np.int64(5), W, **COUNTED),
        sample_of(np.float64(5.0), np.float64(0.2), **HALVED),
        sample_of(
            Z[0],
            ZERO,
            test=body(lambda z, n: n < 2, WAVE, COUNT),
            body=body(lambda z, n: (z * z, n + 1), WAVE, COUNT),
        ),
    ],
    "while_scan": exempt(
        [
            sample_of(X[0], ZERO, W, **STACKED, n_carry=2, numbered=False),
            sample_of(X[0], np.int64(5), W, **STACKED, n_carry=2, numbered=False),
            sample_of(X[0], ZERO, W, **COUNTED, n_carry=2, numbered=False),
            sample_of(X[0], ZERO, W, **NUMBERED, n_carry=2, numbered=True),
        ],
        second_derivative="its first derivative has a symbolic size of its own",
        batch="it may stack more residuals for one example than for another",
        named_rows="the stacked residuals have a symbolic size of their own",
    ),
    "fori_loop": [
        sample_of(0, 3, X[0], W, body=LAYERS),
        sample_of(ZERO, np.int64(3), X[0], W, body=LAYERS),
        sample_of(ONE, ZERO, X[0], W, body=LAYERS),
        sample_of(0, 2, X[0], W, body=body(layer, COUNT, ROW, NUMBER)),
        sample_of(0, 2, X[0].astype("float32"), body=body(lambda i, h: sin(h) * i, INDEX, SINGLE)),
        sample_of(0, 2, EMPTY, body=body(lambda i, h: sin(h), INDEX, NOTHING)),
        sample_of(0, 2, Z[0], body=body(lambda i, z: z * z + i, INDEX, WAVE)),
        sample_of(
            *(0, 3, X[0], Y[0]),
            body=body(lambda i, x, y: (x * y, weaken(i + 1) * y), INDEX, ROW, ROW),
        ),
    ],
}

"""Samples of ``scripted``: with one result, and with two results and another captured value."""

from collections.abc import Callable

from letir.ast.builder import LetBuilder, Value
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.ops.elementwise.ufuncs import exp, sin
from letir.testing.samples.sample import X, Y, sample_of


def program(count: int, formula: Callable) -> Lambda:
    """A closed program of ``count`` arrays of shape (3,)."""
    builder = LetBuilder()
    return builder.build(formula(*[builder.param(ArrayType(float, (3,))) for _ in range(count)]))


def two_results(x: Value, y: Value) -> tuple[Value, ...]:
    """x * y and exp(x * y), and the captured sin(y), which the backward reads."""
    product = x * y
    return product, exp(product), sin(y)


def two_gradients(
    x: Value, y: Value, late: Value, sine: Value, ct: Value, late_ct: Value
) -> tuple[Value, Value]:
    """The cotangents of x and y; the term sin(y) * 0 reads the captured value."""
    total = ct + late_ct * late
    return total * y, total * x + 0 * sine


PRODUCT = {
    "script": "mul",
    "forward": program(2, lambda x, y: (x * y,)),
    "backward": program(3, lambda y, x, ct: (ct * y, ct * x)),
    "context": (1, 0),
    "gradients": (0, 1),
    "n_outs": 1,
}
PAIR = {
    "script": "pair",
    "forward": program(2, two_results),
    "backward": program(6, two_gradients),
    "context": (0, 1, 3, 4),
    "gradients": (0, 1),
    "n_outs": 2,
}
SAMPLES = {"scripted": [sample_of(X[0], Y[0], **PRODUCT), sample_of(X[0], Y[1], **PAIR)]}

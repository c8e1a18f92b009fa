"""How far rounding errors can move the results of a program, estimated by runs with noise.

A kernel adds in another order than NumPy, and its elementary functions round differently. Where a
program subtracts nearly equal values or compares equal ones, that changes results by more than any
fixed tolerance. In the runs here each value has a relative error of some units of rounding, as have
the operands of each reduction: what differs more than these runs do is a wrong kernel.
"""

import numpy as np

from letir.ast.terms import Lambda, Let, Local
from letir.errors import GuardError
from letir.eval.arguments import flat_arguments
from letir.eval.evaluator import Environment, Evaluator
from letir.visitors.visitor import TailCall

_RUNS = 12
_UNITS = 16  # of the last place that the noise is large
_SLACK = 32


class _NoisyEvaluator(Evaluator):
    """Evaluates programs with a random error in each value."""

    def __init__(self, rng: np.random.Generator):
        super().__init__(np)
        self.rng = rng

    def visit_let(self, let: Let, env: Environment) -> TailCall:
        bind, kept = let.bind, {}
        if bind.op.reduction is not None:
            for arg in bind.args:
                if type(arg) is Local:
                    kept[arg] = env.values[arg]
                    env.values[arg] = self.with_noise(kept[arg])
        following = super().visit_let(let, env)
        env.values.update({arg: value for arg, value in kept.items() if arg in env.values})
        if bind.op.memory != "view" and bind.op.update is None:
            for binder in bind.binders:
                if binder in env.values:
                    env.values[binder] = self.with_noise(env.values[binder])
        return following

    def with_noise(self, value):
        """``value`` with errors if it is a floating array or scalar of NumPy."""
        dtype = getattr(value, "dtype", None)
        if dtype is None or dtype.kind not in "fc":
            return value
        errors = _UNITS * np.finfo(dtype).eps * self.rng.uniform(-1, 1, np.shape(value))
        moved = value + value * errors.astype(dtype)
        return np.where(np.isfinite(value), moved, value).astype(dtype)[()]


def rounding_tolerance(fn: Lambda, args, expected: tuple) -> list[np.ndarray]:
    """For each of the ``expected`` results the allowed difference of each element."""
    rng, leaves = np.random.default_rng(0), flat_arguments(fn, tuple(args), {})
    allowed = [np.zeros(np.shape(x)) for x in expected]
    for _ in range(_RUNS):
        evaluator = _NoisyEvaluator(rng)
        try:
            found = evaluator.call(fn, [evaluator.with_noise(x) for x in leaves])
        # rounding decides whether there is a result, or how many bins a histogram has
        except (GuardError, ValueError, IndexError, MemoryError):
            return [np.full(np.shape(x), np.inf) for x in expected]
        allowed = [
            np.maximum(a, _SLACK * distance(x, y))
            for a, x, y in zip(allowed, expected, found, strict=True)
        ]
    return [a + _least(x) for a, x in zip(allowed, expected, strict=True)]


def _least(x) -> np.ndarray:
    """The allowed difference to a result that depends on no other rounding error."""
    x = np.asarray(x)
    if x.dtype.kind not in "fc":
        return np.zeros(x.shape)
    limits = np.finfo(x.dtype)
    size = np.where(np.isfinite(x), np.abs(x), 0)
    return _UNITS * limits.eps * size.astype("f8") + float(limits.tiny)


def distance(x, y) -> np.ndarray:
    """|x - y| for each element; 0 for equal infinities and two nans, inf for other such pairs."""
    wide = np.result_type(x, y, "f8")
    a, b = np.asarray(x).astype(wide), np.asarray(y).astype(wide)
    same = np.equal(x, y) | (np.isnan(a) & np.isnan(b))  # not of ``a``: int64 has more digits
    with np.errstate(all="ignore"):
        found = np.abs(a - b)
    return np.where(same, 0.0, np.where(np.isfinite(found), found, np.inf))


def assert_within_rounding(fn: Lambda, args, expected: tuple, found: tuple) -> None:
    """Raise AssertionError unless ``found`` differs by rounding errors from ``expected``.

    These are results of ``fn``. They have the same types and shapes.
    """
    for x, y in zip(expected, found, strict=True):
        # not the types: np.longlong and np.int64 may be two scalar types of one dtype
        assert isinstance(x, np.generic) == isinstance(y, np.generic)
        assert isinstance(x, np.ndarray) == isinstance(y, np.ndarray)
        assert np.shape(x) == np.shape(y)
        assert np.asarray(x).dtype == np.asarray(y).dtype
    with np.errstate(all="ignore"):
        allowed = rounding_tolerance(fn, args, expected)
    for n, (x, y, most) in enumerate(zip(expected, found, allowed, strict=True)):
        wrong = distance(x, y) > most
        assert not wrong.any(), (
            f"result {n}: {np.asarray(y)[wrong][:4]} instead of {np.asarray(x)[wrong][:4]}, "
            f"allowed {most[wrong][:4]}"
        )

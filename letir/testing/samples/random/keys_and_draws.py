"""Samples of the operations on keys, in ``letir.ops.random``."""

from typing import Any

import numpy as np
from attrs import evolve

from letir.ops.random.generator_states import state_of
from letir.testing.samples.sample import (
    EMPTY,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    ROWS,
    Sample,
    X,
    Y,
    exempt,
    sample_of,
)

KEY = np.array([7, 11], np.uint64)
KEYS = np.array([[7, 11], [5, 3]], np.uint64)
P = np.array([0.2, 0.5, 0.3])


def drawn(*args: Any, shape: Any, dtype: Any = FLOAT64) -> Sample:
    """A sample with a shape and a dtype."""
    return sample_of(*args, shape=shape, dtype=dtype)


STATE = state_of(np.random.default_rng(3))
PHILOX = state_of(np.random.Generator(np.random.Philox(3)))


def generator_sample(
    state: Any,
    *operands: Any,
    method: str,
    shape: Any,
    dtype: Any = FLOAT64,
    nonsmooth: bool = False,
    **options: Any,
) -> Sample:
    """A sample of a draw from a generator."""
    attrs = {"method": method, "shape": shape, "dtype": dtype, "options": tuple(options.items())}
    return evolve(sample_of(state, *operands, **attrs), nonsmooth=nonsmooth)


SAMPLES = {
    "generator_draw": exempt(
        [
            generator_sample(STATE, method="random", shape=(2, 3)),
            generator_sample(PHILOX, method="standard_normal", shape=(), dtype=FLOAT32),
            generator_sample(
                STATE, 2, ROWS + 5, method="integers", shape=(3,), dtype=np.dtype(np.int64)
            ),
            generator_sample(
                STATE, method="permutation", shape=(4,), dtype=np.dtype(np.int64), n=4
            ),
            generator_sample(STATE, P, method="choice", shape=(2,), dtype=np.dtype(np.int64), a=3),
            generator_sample(
                STATE, np.array([0.5, 2.0]), method="standard_gamma", shape=(2,), nonsmooth=True
            ),
        ],
        program_difference="its draws by rejection jump",
        batch="one choice is made for all examples",
        batch_rule="its only operand is a shape",
        named_rows="its shape is an attribute",
    ),
    "random_key": [
        sample_of(np.int64(3)),
        sample_of(-3),
        sample_of(ROWS - 1),
        sample_of(np.uint64(2**63)),
    ],
    "random_split": [
        sample_of(KEY, num=(2,)),
        sample_of(KEYS, num=(3,)),
        sample_of(KEY, num=(2, 1)),
        sample_of(KEY, num=(0,)),
    ],
    "random_fold_in": [
        sample_of(KEY, 3),
        sample_of(KEYS, ROWS[:2]),
        sample_of(KEY, ROWS),
        sample_of(KEYS, np.int8(-1)),
    ],
    "random_draw": exempt(
        [
            sample_of(KEY, distribution="uniform", shape=(2, 3), dtype=FLOAT64),
            sample_of(KEYS, distribution="normal", shape=(3,), dtype=FLOAT32),
            sample_of(KEY, distribution="exponential", shape=(), dtype=FLOAT16),
            sample_of(KEY.astype(int), distribution="bits", shape=(2,), dtype=np.dtype(np.uint64)),
            sample_of(KEYS, distribution="permutation", shape=(4,), dtype=np.dtype(np.int64)),
            sample_of(KEY, np.array([2]), distribution="uniform", shape=None, dtype=FLOAT64),
            sample_of(KEY, distribution="normal", shape=(0, 3), dtype=FLOAT64),
        ],
        batch_of_last="its last operand is a shape",
    ),
    "random_normal": exempt(
        [
            drawn(KEY, X, 0.5, shape=(2, 3)),
            drawn(KEY, X[0], Y[:, :1], shape=(2, 3)),
            drawn(KEYS, 0.0, 1.0, shape=(3,)),
            drawn(KEY, np.float32(0.5), 2.0, shape=(2,), dtype=FLOAT32),
            drawn(KEY, EMPTY, 1.0, shape=(0, 3)),
        ],
        named_rows="its shape is an attribute",
    ),
    "random_uniform": exempt(
        [
            drawn(KEY, X, X + 1, shape=(2, 3)),
            drawn(KEY, 0.0, 1.0, shape=()),
            drawn(KEYS, X[:, :1], 3, shape=(2, 3)),
            drawn(KEY, 0.0, np.float32(2), shape=(3,), dtype=FLOAT32),
        ],
        named_rows="its shape is an attribute",
    ),
    "random_exponential": exempt(
        [
            drawn(KEY, np.abs(X), shape=(2, 3)),
            drawn(KEYS, 2.0, shape=(2,), dtype=FLOAT32),
        ],
        named_rows="its shape is an attribute",
    ),
    "random_gamma": exempt(
        [
            evolve(drawn(KEY, np.array([0.5, 2.0, 30.0]), shape=(2, 3)), nonsmooth=True),
            evolve(drawn(KEYS, np.float32(1.5), shape=(2,), dtype=FLOAT32), nonsmooth=True),
            evolve(drawn(KEY, 2.0, shape=()), nonsmooth=True),
            drawn(KEY, ROWS + 1, shape=(3,)),
        ],
        program_difference="its draws by rejection jump",
        named_rows="its shape is an attribute",
    ),
    "random_truncated_normal": exempt(
        [
            drawn(KEY, X, X + 1, shape=(2, 3)),
            drawn(KEYS, -1.0, 2.0, shape=(2,)),
            drawn(KEY, np.float32(1), np.float32(2), shape=(2,), dtype=FLOAT32),
        ],
        named_rows="its shape is an attribute",
    ),
    "random_bernoulli": exempt(
        [drawn(KEY, P, shape=(3,)), drawn(KEYS, 0.5, shape=(2, 2))],
        named_rows="its shape is an attribute",
    ),
    "random_randint": exempt(
        [
            drawn(KEY, 0, 5, shape=(2, 3), dtype=np.dtype(np.int64)),
            drawn(KEYS, ROWS, np.array([5, 6, 300]), shape=(3,), dtype=np.dtype(np.int16)),
        ],
        named_rows="its shape is an attribute",
    ),
    "random_categorical": [
        sample_of(KEY, X, axis=-1, shape=None),
        sample_of(KEYS, X.T, axis=0, shape=(3, 2)),
        sample_of(KEY, X[0].astype(FLOAT32), axis=0, shape=(4, 2)),
    ],
    "random_permutation": [
        sample_of(KEY, X, axis=1),
        sample_of(KEY, ROWS, axis=0),
        sample_of(KEY, EMPTY, axis=0),
    ],
    "random_places": [
        sample_of(KEY, n=5, shape=(2, 3), replace=True),
        sample_of(KEYS, P, n=3, shape=(4,), replace=True),
        sample_of(KEY, n=5, shape=(), replace=False),
        sample_of(KEY, P, n=3, shape=(2,), replace=False),
    ],
    "random_choice": [
        sample_of(KEY, X, axis=1, shape=(2, 2), replace=True),
        sample_of(KEY, X, P[:2], axis=0, shape=(), replace=True),
        sample_of(KEY, ROWS, P, axis=0, shape=(2,), replace=False),
    ],
}

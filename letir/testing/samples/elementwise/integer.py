"""Samples of the operations in ``letir.ops.elementwise.integer``."""

import numpy as np

from letir.testing.samples.sample import BOOLEANS, INTEGERS, sample_of

DIVISORS = [
    sample_of(INTEGERS, 6 * INTEGERS[:1]),
    sample_of(INTEGERS * -4, 6),
    sample_of(np.int8(12), np.array([8, 0], np.int16)),
    sample_of(INTEGERS[:0], 1),
    sample_of(12, 18),
]
SHIFTS = [
    sample_of(INTEGERS, INTEGERS[:1]),
    sample_of(-INTEGERS, 3),
    sample_of(BOOLEANS, np.uint8(2)),
    sample_of(np.int8(100), np.array([1, 4], np.int16)),
    sample_of(INTEGERS[:0], 1),
    sample_of(12, 2),
]
SAMPLES = {
    **dict.fromkeys(("gcd", "lcm"), DIVISORS),
    **dict.fromkeys(("left_shift", "right_shift"), SHIFTS),
    "bitwise_count": [
        sample_of(-INTEGERS),
        sample_of(np.uint8(255)),
        sample_of(BOOLEANS),
        sample_of(7),
        sample_of(INTEGERS[:0]),
    ],
}

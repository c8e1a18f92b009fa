"""Samples of the operations in ``letir.ops.elementwise.integer``."""

import numpy as np

from letir.testing.samples.sample import BOOLEANS, INTEGERS, of

DIVISORS = [
    of(INTEGERS, 6 * INTEGERS[:1]),
    of(INTEGERS * -4, 6),
    of(np.int8(12), np.array([8, 0], np.int16)),
    of(INTEGERS[:0], 1),
    of(12, 18),
]
SHIFTS = [
    of(INTEGERS, INTEGERS[:1]),
    of(-INTEGERS, 3),
    of(BOOLEANS, np.uint8(2)),
    of(np.int8(100), np.array([1, 4], np.int16)),
    of(INTEGERS[:0], 1),
    of(12, 2),
]
SAMPLES = {
    **dict.fromkeys(("gcd", "lcm"), DIVISORS),
    **dict.fromkeys(("left_shift", "right_shift"), SHIFTS),
    "bitwise_count": [of(-INTEGERS), of(np.uint8(255)), of(BOOLEANS), of(7), of(INTEGERS[:0])],
}

"""Elementwise operations on integers, without derivatives: gcd, lcm, shifts and bit counts."""

import numpy as np

from letir.ast import operators as python
from letir.ops.define.records import discrete

gcd = discrete("gcd", np.gcd)
lcm = discrete("lcm", np.lcm)
left_shift = discrete("left_shift", np.left_shift, python=python.LEFT_SHIFT)
right_shift = discrete("right_shift", np.right_shift, python=python.RIGHT_SHIFT)
bitwise_count = discrete("bitwise_count", np.bitwise_count)

"""``logaddexp``, and ``log_share`` for the derivatives of similar functions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ops.define.records import (
    binary,
)
from letir.ops.elementwise.clip import clip
from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.ufuncs import exp, minimum


def log_share(g: Any, out: Value, x: Any, exponential: Callable) -> Value:
    """``g`` times exp(x - out), the share of the summand ``x`` in logaddexp: 0 for -inf, and never
    nan from inf - inf.
    """
    if out.type is None or x.type is None:
        return g * exponential(where(x == out, 0, x - out))
    most = float(min(np.finfo(x.dtype).max, np.finfo(out.dtype).max))
    x = x if x.type.weak else minimum(x, most)
    return g * exponential(x - clip(out, -most, most))


logaddexp = binary(
    "logaddexp",
    lambda g, out, x, y: log_share(g, out, x, exp),
    lambda g, out, x, y: log_share(g, out, y, exp),
    numpy=np.logaddexp,
    commutative=True,
    by_element="fd",
)

"""Powers in densities, x**c as exp(c log(x)), with their derivatives at x = 0 too."""

from typing import Any

from letir.ops.elementwise.comparisons_and_where import where
from letir.ops.elementwise.ufuncs import log, power


def log_of_power(x: Any, c: Any) -> Any:
    """c * log(x), and 0 where x is 0; in the precision of x, unlike xlogy."""
    return c * log(where(x == 0, 1, x))


def power_at_zero(x: Any, c: Any) -> Any:
    """x**c where x is 0, and 1 elsewhere: the factor that ``exp(log_of_power(x, c))`` lacks."""
    return power(where(x == 0, x, 1), c)

"""Comparisons of a symbolic size with 0, for all values of its names.

Loaded when sizes are compared first.
"""

import math
from collections.abc import Callable
from operator import ge
from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.sizes.size import Quotient, Size, terms_of

_MAX_RESIDUES = 64


def compare_with_zero(compare: Callable, size: Size | int) -> bool | None:
    """``compare(size, 0)``; None if it depends on the values of the names."""
    if type(size) is not Size:
        return compare(size, 0)
    if any(type(name) is Quotient for names, _ in size.terms for name in names):
        return _compared_by_bounds(compare, size)
    factors = [c for names, c in size.terms if names]
    if min(factors) < 0 < max(factors):
        return None
    end = size.evaluate(dict.fromkeys(size.names, 0))  # no size is negative
    beyond = end + (1 if factors[0] > 0 else -1)
    # monotone from ``end`` on: compare there, one step further, and at infinity
    answers = {compare(end, 0), compare(beyond, 0), compare(factors[0], 0)}
    return answers.pop() if len(answers) == 1 else None


def _compared_by_bounds(compare: Callable, size: Size) -> bool | None:
    """``compare(size, 0)`` for a size with quotients, from bounds that are polynomials."""
    for is_rough in (False, True):
        low, high = (_polynomial_bound(size, is_low, is_rough) for is_low in (True, False))
        if low is not None and high is not None:
            answers = {compare_with_zero(compare, low), compare_with_zero(compare, high)}
            if len(answers) == 1 and None not in answers:
                return answers.pop()
    return _compared_by_residues(compare, size)


def _compared_by_residues(compare: Callable, size: Size) -> bool | None:
    """``compare(size, 0)`` for a size with one name, decided for each residue of the name.

    For one residue, the quotients in the size are polynomials.
    """
    period, names = _period_of(size), size.names
    if len(names) > 1 or period > _MAX_RESIDUES:
        return None
    answers: set = set()
    for name in names:
        for rest in range(period):
            substituted = size.substitute({name: period * Size.named(name) + rest})
            answers.add(compare_with_zero(compare, substituted))
    return answers.pop() if len(answers) == 1 else None


def _period_of(size: Size) -> int:
    """A common multiple of the divisors of all quotients in ``size``, nested ones included."""
    quotients = {name for names, _ in size.terms for name in names if type(name) is Quotient}
    return math.lcm(*[name.by * _period_of(name.of) for name in quotients])


def _polynomial_bound(size: Any, is_low: bool, is_rough: bool) -> Any:
    """A polynomial below (``is_low``) or above a positive multiple of ``size``; None if unknown.

    ``of // by`` lies between ``of / by - (by - 1) / by`` and ``of / by``. With ``is_rough``, the
    lower bound of a quotient is 0 where ``of`` is not negative.
    """
    for names, c in terms_of(size):
        quotient = next((name for name in names if type(name) is Quotient), None)
        if quotient is None:
            continue
        of, by = quotient.of, quotient.by
        if len(names) > 1:
            return None
        rest = size - c * Size.named(quotient)
        if (c > 0) != is_low:
            result = by * rest + c * of
        elif is_rough and compare_with_zero(ge, of):
            result = rest
        else:
            result = by * rest + c * (of - (by - 1))
        return _polynomial_bound(result, is_low, is_rough)
    return size


LATE_BOUND["compare_with_zero"] = compare_with_zero

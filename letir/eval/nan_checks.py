"""Observers of ``run_forward``; ``debug_nans`` finds the first bind that computes a nan."""

from collections.abc import Callable
from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.terms import Bind


def nan_observer(observe: Callable | None, debug_nans: bool) -> Callable | None:
    """``observe``; with ``debug_nans`` after a check that raises FloatingPointError for a nan."""
    if observe is not None:
        LATE_BOUND["refuse_unless_function"]("run_forward: observe", observe)
    return _nan_finder(observe) if debug_nans else observe


def _nan_finder(observe: Callable | None) -> Callable:
    """An observer that raises FloatingPointError at the first nan, then calls ``observe``."""

    def look(bind: Bind, results: tuple) -> None:
        for result in results:
            if has_nan(result):
                raise FloatingPointError(f"{bind.op.name} made a nan")
        if observe is not None:
            observe(bind, results)

    return look


def has_nan(value: Any) -> bool:
    """Whether ``value`` is a nan or contains one."""
    differs = value != value  # not isnan: works for integers, Python numbers and CuPy arrays too
    return bool(differs.any() if hasattr(differs, "any") else differs)


LATE_BOUND["nan_observer"] = nan_observer

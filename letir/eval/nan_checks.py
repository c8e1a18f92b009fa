"""``debug_nans``: finds the first bind that computes a nan."""

from collections.abc import Callable
from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.terms import Bind


def nan_finder(observe: Callable | None) -> Callable:
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


LATE_BOUND["nan_finder"] = nan_finder

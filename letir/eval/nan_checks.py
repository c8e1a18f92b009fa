"""``debug_nans``: the first bind that makes a nan."""

from collections.abc import Callable
from typing import Any

from letir.ast.terms import Bind


def nan_finder(observe: Callable | None) -> Callable:
    """An observer that raises FloatingPointError at the first nan, else asks ``observe``."""

    def look(bind: Bind, results: tuple) -> None:
        for result in results:
            if has_nan(result):
                raise FloatingPointError(f"{bind.op.name} made a nan")
        if observe is not None:
            observe(bind, results)

    return look


def has_nan(value: Any) -> bool:
    """Whether a result is a nan or has one."""
    differs = value != value  # not isnan: also of integers, Python numbers and CuPy's arrays
    return bool(differs.any() if hasattr(differs, "any") else differs)

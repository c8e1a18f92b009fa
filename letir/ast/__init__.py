"""Programs: their types, terms and texts, and what is known of every operation.

``LATE_BOUND`` is here because ``import letir`` needs nothing else: the rest, attrs among it, loads
when a name of letir is first used.
"""

from collections.abc import Callable
from typing import Any


class LoadingTable(dict):
    """A dict that calls ``load(name)`` on a missing name, which enters it, and looks again."""

    def __init__(self, load: Callable[[str], None]) -> None:
        super().__init__()
        self._load = load

    def __missing__(self, name: str) -> Any:
        self._load(name)
        if name not in self:
            raise KeyError(name)
        return self[name]


def _load_late_bound(name: str) -> None:
    if name != "load":  # entered by letir/__init__.py, which knows where the others are defined
        LATE_BOUND["load"](name)


# Functions of packages that ``ast`` must not import.
LATE_BOUND: dict[str, Callable] = LoadingTable(_load_late_bound)

"""The operations: one ``Primitive`` record each, in one file per family.

Importing this loads no record. ``record_index``, which is generated from the records, says which
file has an operation, and which files have the operations that a NumPy function records: the first
use of an operation loads only the file of its record.
"""

import functools
from collections.abc import Callable
from types import ModuleType

from letir.ast import LATE_BOUND, load_module
from letir.ops.record_index import FUNCTIONS, OPERATIONS


@functools.cache
def _modules_by_word(index_name: str) -> dict[str, list[str]]:
    """{word: the modules under which an index has it}."""
    result: dict[str, list[str]] = {}
    for module, words in {"OPERATIONS": OPERATIONS, "FUNCTIONS": FUNCTIONS}[index_name].items():
        for word in words.split():
            result.setdefault(word, []).append(module)
    return result


def _load(module: str) -> ModuleType:
    return load_module(f"letir.ops.{module}")


def load_operation(name: str) -> None:
    """Load the record of an operation; nothing happens if letir has none of this name."""
    for module in _modules_by_word("OPERATIONS").get(name, ()):
        _load(module)


@functools.cache  # called at every failed look-up of a record
def load_records_of(function_name: str) -> None:
    """Load the records of NumPy's and SciPy's functions that have this ``__name__``."""
    for module in _modules_by_word("FUNCTIONS").get(function_name, ()):
        _load(module)


@functools.cache
def load_all() -> tuple[ModuleType, ...]:
    """Load the files of all records, for code that iterates over the whole table."""
    return tuple([_load(module) for module in OPERATIONS])


class LateModule:
    """The functions of a module of letir, which the first call of one of them loads.

    >>> rules = LateModule("letir.ops.shape.shape_batching")
    >>> rules.rank_of_shape((), (2, 3))
    2
    """

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Callable:
        return functools.partial(_call, self._name, name)


def _call(module: str, name: str, /, *args, **kwargs):
    return getattr(load_module(module), name)(*args, **kwargs)


def __getattr__(name: str):
    modules = [module for module in OPERATIONS if module.partition(".")[0] == name]
    if not modules:
        raise AttributeError(f"module 'letir.ops' has no attribute {name!r}")
    for module in modules:
        _load(module)
    return load_module(f"letir.ops.{name}")


LATE_BOUND.update(load_operation=load_operation, load_records_of=load_records_of)

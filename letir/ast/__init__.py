"""Programs: their types, terms and texts, and the records of operations.

``LATE_BOUND`` and ``entry_point`` are here because ``import letir`` needs nothing else: the rest,
attrs among it, loads when a name of letir is first used.
"""

import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, cast

from letir.ast.signatures import F, plain_parameters

_loading: list[int] = []  # the threads that are loading modules
_PATIENCE = 10.0  # seconds


def load_module(name: str) -> ModuleType:
    """The module with this name, which no other thread forks while it is being loaded."""
    result = sys.modules.get(name)
    if result is not None and not getattr(result.__spec__, "_initializing", False):
        return result
    thread = threading.get_ident()
    _loading.append(thread)
    try:
        __import__(name)
    finally:
        _loading.remove(thread)
    return sys.modules[name]


def loaded_module(name: str) -> ModuleType | None:
    """The module with this name, None if it is not loaded. Waits for a thread that imports it."""
    return load_module(name) if name in sys.modules else None


def load_name(package: str, modules: Mapping[str, str], name: str) -> Any:
    """``__getattr__`` of a package; ``modules`` has the module in it that defines each name."""
    if name not in modules:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(load_module(f"{package}.{modules[name]}"), name)


def object_by_name(module: str | None, name: str) -> Any:
    """The object with a qualified name in a loaded module, None if there is none."""
    result: Any = sys.modules.get(module or "")
    for part in name.split("."):
        result = getattr(result, part, None)
    return result


def _wait_for_loads() -> None:
    """Wait before a fork: the child could never load a module that another thread was loading."""
    thread, end = threading.get_ident(), time.monotonic() + _PATIENCE
    while any(loading != thread for loading in list(_loading)) and time.monotonic() < end:
        time.sleep(0.001)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_loads, after_in_child=_loading.clear)


class LoadingTable(dict):
    """A dict that calls ``load(name)`` on a missing name, which enters it, and looks again."""

    def __init__(self, load: Callable[[str], None]) -> None:
        super().__init__()
        self.load = load

    def __missing__(self, name: str) -> Any:
        self.load(name)
        if name not in self:
            raise KeyError(name)
        return self[name]


class _LateBound(LoadingTable):
    """The class of ``LATE_BOUND``, which is pickled by name: functions of letir refer to it."""

    def __reduce__(self):
        return "LATE_BOUND"


# Functions of packages that ``ast`` must not import.
# Its ``load`` is replaced by letir/__init__.py, which knows where they are defined.
LATE_BOUND: LoadingTable = _LateBound(lambda name: None)


def is_watched() -> bool:
    """Whether stderr is a terminal or is shown in a notebook, so that progress bars make sense.

    False with ``LETIR_PROGRESS=0`` in the environment.
    """
    stream = getattr(sys.stderr, "original", sys.stderr)  # of a stand-in during a recording
    if os.environ.get("LETIR_PROGRESS") == "0" or stream is None:
        return False
    try:
        return is_notebook() or stream.isatty()
    except ValueError:  # closed
        return False


def is_notebook() -> bool:
    """Whether stderr is shown in a notebook."""
    stream = getattr(sys.stderr, "original", sys.stderr)
    return type(stream).__module__.startswith("ipykernel")


WATCHED = is_watched()


def with_progress_bar(title: str) -> Callable[[F], F]:
    """A decorator: long calls show a progress bar with ``title``, see ``letir.progress``.

    If no terminal or notebook shows stderr, the function is returned unchanged.
    """
    if not WATCHED:
        return functools.partial(cast, object)
    return functools.partial(LATE_BOUND["with_progress"], title)


def _refuse_other_kinds(function: Callable, plain: dict, arguments: tuple) -> None:
    """Raise DTypeError for one of the (name, argument) pairs that is not of its annotated kind.

    ``plain``: the ``plain_parameters`` of the function.
    """
    for name, value in arguments:
        if name in plain and type(value) not in plain[name]:
            LATE_BOUND["refuse_misfit"](function, dict(arguments), name)


def entry_point(function: F) -> F:
    """``function`` as users call it: errors carry the user's line, tracebacks omit letir's frames.

    Raises DTypeError for an argument that is annotated as a flag, a number or a string and is of
    another kind. Functions that run often repeat the ``except`` clause below in their own bodies,
    which costs nothing.
    """
    names: tuple[str, ...] = ()
    plain: dict | None = None  # found at the first call

    @functools.wraps(function)
    def call(*args, **kwargs):
        nonlocal names, plain
        try:
            if plain is None:
                names, plain = plain_parameters(function)
            if plain:
                named = zip(names, args, strict=False)  # the function raises for a wrong number
                _refuse_other_kinds(function, plain, (*named, *kwargs.items()))
            return function(*args, **kwargs)
        except BaseException as error:
            shortened = LATE_BOUND["shorten_traceback"](error, function, args, kwargs)
            del args, kwargs  # a stored exception would keep arrays alive
            if shortened is error:
                del shortened
                raise
        try:
            raise shortened
        finally:
            del shortened  # no cycle of the error and this frame

    return cast(F, call)

"""Modules that are imported during a recording, by the function or a thread."""

import sys
from types import ModuleType
from typing import Any

from letir.ast import LATE_BOUND
from letir.tracing.callers import LibraryModule
from letir.tracing.stand_ins import LOADING, add_loaded_modules
from letir.tracing.trace_state import ACTIVE


def whole_module(name: str) -> ModuleType | None:
    """The module with this name, None if it is not loaded or does not have all of its names yet.

    Another thread may have begun to import it before the recording.
    """
    module = sys.modules.get(name)
    is_importing = getattr(getattr(module, "__spec__", None), "_initializing", False)
    return module if LOADING.get(name, not is_importing) else None


class _Loader:  # importlib.abc, which has a base class for it, takes long to load
    """A loader that loads a module outside of the recording that is under way.

    ``has_stand_ins``: whether the module gets stand-ins once it is loaded.
    """

    def __init__(self, loader: Any, has_stand_ins: bool) -> None:
        self.loader, self.has_stand_ins = loader, has_stand_ins

    def create_module(self, spec: Any) -> ModuleType | None:
        """The module that the loader makes."""
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Load the module, whose own code is no part of the program: its arrays stay NumPy's."""
        spec: Any = module.__spec__
        spec.loader = module.__loader__ = self.loader  # for code that reads resources through it
        LOADING[module.__name__] = False
        outer = ACTIVE.get()
        try:
            ACTIVE.set(None)
            self.loader.exec_module(module)
            LOADING[module.__name__] = True
            if self.has_stand_ins:
                add_loaded_modules()
        finally:
            ACTIVE.set(outer)
            LOADING.pop(module.__name__, None)


def restore_new_modules(libraries: list[LibraryModule], names_before: set[str]) -> None:
    """Restore originals in modules imported during a recording, which imported stand-ins."""
    originals: dict[int, Any] = {}
    for library in libraries:
        space = vars(library.module)
        for name, stand_in in library.stand_ins.items():
            originals[id(stand_in)] = space[name]
    for name, module in list(sys.modules.items()):
        space = getattr(module, "__dict__", None)
        if name not in names_before and type(space) is dict:
            for key, value in list(space.items()):
                if id(value) in originals:
                    space[key] = originals[id(value)]


def watched_spec(fullname: str, path: Any, target: Any, has_stand_ins: bool) -> Any:
    """The specification that other finders give for a module, with another loader."""
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        is_other = find is not None and type(finder).__module__ != "letir.tracing.library_stand_ins"
        spec = find(fullname, path, target) if is_other else None
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, has_stand_ins)
            return spec
    return None


LATE_BOUND["watched_spec"] = watched_spec
LATE_BOUND["restore_new_modules"] = restore_new_modules

"""Stand-ins: functions that replace NumPy's array makers and math's functions during a recording.

NumPy's protocols do not see calls such as ``np.zeros(3)``. During a recording the modules
``numpy``, ``numpy.linalg``, ``math`` and ``cmath`` therefore get classes whose attribute lookup
gives stand-ins to the user's code in threads that record, and the originals to all other code.
Names that users' modules have imported (``from numpy import zeros``) are bound to stand-ins too,
which call the originals unless their thread records. The last recording that ends restores
everything.
"""

import functools
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.bounded_cache import BoundedCache
from letir.ast.process_state import ModuleSites, NamesSite, PlaceSite, new_lock
from letir.tracing.callers import (
    LIBRARIES,
    STANDARD,
    LibraryModule,
    are_of_exec,
    attributes_of,
    is_user_module,
    name_of_globals,
)
from letir.tracing.trace_state import ACTIVE

_lock = new_lock(threading.RLock)
_under_way: dict[int, list] = {}  # id -> the list ``started`` of each recording, in all threads
SEARCHED: set[str] = set()  # the names of the modules that have been searched for sites
# id of a dict of globals -> (the dict, its possible lengths, sites in it, those for sizes)
_spaces: dict[int, tuple[dict, tuple, list, list]] = {}
LOADED_LATE = {"csv", "decimal", "fractions", "json", "scipy", "statistics"}
LOADED_LATE |= {"numpy.fft", "numpy.random", "numpy.testing"}
# modules that are being imported during a recording -> whether all of their names are there
LOADING: dict[str, bool] = {}
GIVEN_NUMBERS: set[str] = set()  # modules without NumPy, or with C extensions, that got some
_MAX_KEPT_DICTS = 1024  # dicts that are kept alive in addition to the dicts of modules
# id of code -> (code, stand-ins for builtins that it names)
_named_by: dict[int, tuple] = BoundedCache(_MAX_KEPT_DICTS)
_libraries: list["LibraryModule"] = []
WITH_EFFECTS: dict[int, tuple] = {}  # id of a function -> (what has ``stand_in(key)``, the key)
_methods: list[tuple] = []  # (class, name, original, stand-in)
_in_place = ModuleSites()
_for_sizes: list = []  # sites of ``len``, which matters only for symbolic sizes


# ---- start and end of a recording ----


def start_stand_ins(f: Callable, started: list, has_sizes: bool, functions: Sequence = ()) -> None:
    """Install the stand-ins for a recording of ``f``, among whose arguments are ``functions``.

    ``started``: an empty list to which each step is appended, so that ``end_stand_ins`` can undo
    them after an interrupt. ``has_sizes``: some arguments have symbolic sizes.
    """
    with _lock:
        _under_way[id(started)] = started
        if len(_under_way) == 1:
            if not _libraries:
                _load_libraries()
            if len(sys.modules) != len(SEARCHED) or _has_grown(sys.modules["__main__"].__dict__):
                if not LOADED_LATE.isdisjoint(sys.modules):
                    add_loaded_modules()
                _search_modules()
            LATE_BOUND["watch_process"](True)
            for library in _libraries:
                library.module.__class__ = library.recording
            for owner, name, _, stand_in in _methods:
                setattr(owner, name, stand_in)
            if _in_place.sites:
                _in_place.exchange(True)
        if has_sizes:
            own = _spaces.get(id(getattr(f, "__globals__", None)), ((), (), (), []))[3]
            for site in [*_for_sizes, *own]:
                if "len" not in site.space:
                    started.append(site)
                    site.exchange(True)
        is_plain = (
            type(f) is FunctionType
            and not (f.__closure__ or f.__defaults__ or f.__kwdefaults__ or f.__dict__)
            and not _names_in(f.__code__)
        )
        is_known = is_plain and not _has_grown(f.__globals__) and not functions
        roots = () if is_known and not _spaces[id(f.__globals__)][2] else (f, *functions)
        sites = [site for each in roots for site in _sites_of(each, has_sizes)]
        space: Any = getattr(f, "__globals__", None)
        originals = _names_by_original().keys()
        if id(space) in _spaces and not originals.isdisjoint(map(id, space.values())):
            sites += _sites_in_dict(space, [])  # of names that were rebound since the search
        for site in sites:
            if site not in _in_place.sites and site not in started:
                started.append(site)
                site.exchange(True)


def _load_libraries() -> list["LibraryModule"]:
    """The modules whose functions have stand-ins, made once."""
    _methods[:] = LATE_BOUND["library_methods"]()
    _libraries[:] = LATE_BOUND["library_modules"]()
    return _libraries


def end_stand_ins(started: list) -> None:
    """Restore the originals; those of modules only if no other recording is under way."""
    with _lock:
        if id(started) not in _under_way:
            return
        for site in started:
            site.exchange(False)
        if len(_under_way) == 1 and _libraries:
            LATE_BOUND["watch_process"](False)
            for library in _libraries:
                library.module.__class__ = library.plain
            for owner, name, original, _ in _methods:
                setattr(owner, name, original)
            if _in_place.sites:
                _in_place.exchange(False)
            if len(sys.modules) != len(SEARCHED):
                LATE_BOUND["restore_new_modules"](_libraries, SEARCHED)
        del _under_way[id(started)]


def watch_functions(names: Collection[str], maker: Callable) -> None:
    """Make stand-ins for NumPy's functions of these names in calls such as ``np.name(x)``."""
    for library in _libraries:
        own = library.originals
        if library.module.__name__ in ("numpy", "numpy.fft"):
            functions = {name for name in names if not isinstance(own.get(name, sys), ModuleType)}
            library.watch_calls(functions, maker)


def wrap_functions(names: Collection[str], wrapper: Callable) -> None:
    """Replace NumPy's functions of these names, where they are called, by what ``wrapper`` makes
    of them or of their stand-ins.
    """
    for library in _libraries:
        if library.module.__name__ == "numpy":
            library.wrapped.clear()
            library.wrappers.update(dict.fromkeys(names, wrapper))
            library.watched.update(names)


def unwrap_functions() -> None:
    """Undo ``wrap_functions``."""
    for library in _libraries:
        own = library.wrappers.keys() - library.makers.keys() - library.classes.keys()
        library.watched.difference_update(own)
        library.wrappers.clear()
        library.wrapped.clear()


def names_without_stand_in(names: Collection[str]) -> set[str]:
    """The names among these of NumPy's functions that have no stand-in yet."""
    libraries = [lib for lib in _libraries if lib.module.__name__ in ("numpy", "numpy.fft")]
    return set(names).difference(*[library.watched for library in libraries])


def add_list_stand_in(function: Any) -> None:
    """Give a function of NumPy's a stand-in that takes lists, now and in later recordings."""
    is_ufunc = type(function).__name__ == "ufunc"
    maker = LATE_BOUND["list_taking_function" if is_ufunc else "function_stand_in"]
    with _lock:
        for library in _libraries:
            for name in _names_of(function, library.originals):  # absolute is abs, too
                library.stand_ins.pop(name, None)
                library.makers[name] = maker
                library.watched.add(name)
        _names_by_original.cache_clear()
        _spaces.clear()
        stand_in = stand_in_of(function)
        for module in list(sys.modules.values()):
            space = getattr(module, "__dict__", None)
            if type(space) is dict and is_user_module(space):
                names = _names_of(function, space)
                if names:
                    new = dict.fromkeys(names, stand_in)
                    site = NamesSite(space, dict.fromkeys(names, function), new)
                    site.exchange(True)
                    _in_place.add(site)


def add_number_stand_ins(space: dict) -> None:
    """Give stand-ins to an installed module without NumPy, or beside C extensions, from now on."""
    with _lock:
        GIVEN_NUMBERS.add(name_of_globals(space))
        _spaces.pop(id(space), None)
        for site in _sites_in(space):
            site.exchange(True)
            _in_place.add(site)


def search_again() -> None:
    """Search all modules for sites again, at the next recording."""
    _names_by_original.cache_clear()
    _spaces.clear()
    SEARCHED.clear()


def _names_of(value: Any, space: dict) -> list[str]:
    return [name for name, other in list(space.items()) if other is value]


def add_loaded_modules() -> None:
    """Add stand-ins for ``numpy.random`` and SciPy's modules loaded since the last recording."""
    for library in LATE_BOUND["loaded_modules"](_libraries):
        _libraries.append(library)
        library.module.__class__ = library.recording
        _names_by_original.cache_clear()
        if library.module.__name__ == "scipy.stats":
            add_methods(LATE_BOUND["distribution_methods"](frozenset(library.makers)))


def add_methods(methods: list[tuple]) -> None:
    """Put methods in place now, and for each later recording."""
    _methods.extend(methods)
    for owner, name, _, stand_in in methods:
        setattr(owner, name, stand_in)


def _has_grown(space: dict) -> bool:
    """Whether a dict of globals is new, or has another length than when it was searched."""
    entry = _spaces.get(id(space))
    return entry is None or len(space) not in entry[1]


# ---- libraries, and sites: places where their functions are bound ----


@functools.cache
def _names_by_original() -> dict[int, tuple[LibraryModule, str]]:
    """{id of an original: its module and name}."""
    result: dict[int, tuple[LibraryModule, str]] = {}
    for library in _libraries or _load_libraries():
        own = library.originals
        for name in library.makers:  # loops, not comprehensions, which are calls on Python 3.11
            result[id(own[name])] = library, name
    result.update(WITH_EFFECTS)
    return result


def stand_in_of(original: Any) -> Any:
    """The stand-in for an original, None for other objects."""
    result = _names_by_original().get(id(original))
    return None if result is None else result[0].stand_in(result[1])


def _stand_in_or_class(value: Any) -> Any:
    """The stand-in for an original or for one of NumPy's classes, None for other objects."""
    of_class = isinstance(value, type) and value.__module__ == "numpy"
    return LATE_BOUND["scalar_stand_ins"]({"": value}).get("") if of_class else stand_in_of(value)


def _stand_in_for_traced(original: Any) -> Any:
    """The stand-in for an original in code of packages with C extensions."""
    library, name = _names_by_original()[id(original)]
    return library.stand_in_for_traced(name)


def _search_modules() -> None:
    """Search all modules of users for sites."""
    sites: list = []
    for_sizes: list = []
    visited: set[int] = set()  # a module may have two names: multiprocessing calls __main__ so
    for name, module in list(sys.modules.items()):
        # their tests are users' modules: `is_user_module` tells them from others, such as testing
        if name.partition(".")[0] in LIBRARIES and ".test" not in name:
            continue
        space = getattr(module, "__dict__", None)
        if type(space) is not dict or id(space) in visited:
            continue
        visited.add(id(space))
        file = space.get("__file__")
        is_standard = type(file) is str and (file.startswith(STANDARD) and "-packages" not in file)
        is_given = name in GIVEN_NUMBERS
        if name == "__main__" or (not is_standard and (is_given or is_user_module(space))):
            sites += _sites_in(space)
            for_sizes += _spaces[id(space)][3]
    SEARCHED.clear()  # an interrupted search is made again
    _in_place.assign(sites)
    GIVEN_NUMBERS.difference_update([*filter(are_of_exec, GIVEN_NUMBERS)])  # they have no site now
    _for_sizes[:] = for_sizes
    SEARCHED.update(sys.modules)


def _sites_in(space: dict) -> list:
    """The sites in the globals of a module; searched again when the module has new names."""
    if not _has_grown(space):
        return _spaces[id(space)][2]
    if len(_spaces) >= _MAX_KEPT_DICTS + len(sys.modules):
        _spaces.clear()
    originals = _names_by_original()
    of_user = not GIVEN_NUMBERS or is_user_module(space)
    find = stand_in_of if of_user else _stand_in_for_traced
    new = {n: find(v) for n, v in list(space.items()) if id(v) in originals}
    functions, methods = LATE_BOUND["cached_stand_ins"](space) if of_user else ({}, [])
    new |= functions
    builtin = LATE_BOUND["python_stand_ins"](space)
    if "type" not in builtin:  # else the code may test ``type(x) is float64``
        new |= LATE_BOUND["scalar_stand_ins"](space)
    added = {name: stand_in for name, stand_in in builtin.items() if name not in space}
    old = {name: space[name] for name in new}
    length = {"len": added.pop("len")} if "len" in added else {}
    sites: list = [NamesSite(space, old, new, added)] if new or added else []
    sites += methods
    for_sizes = [NamesSite(space, {}, {}, length)] if length else []
    # the stand-ins add names to it
    count, more = len(space), len(added)
    lengths = (count, count + more, count + len(length), count + more + len(length))
    _spaces[id(space)] = space, lengths, sites, for_sizes
    return sites


def _sites_of(f: Callable, has_sizes: bool) -> Iterator:
    """Sites in globals, closures, defaults, attributes of ``f``; of ``len`` if ``has_sizes``."""
    todo: list[Any] = [f]
    visited: set[int] = set()
    while todo:
        function = todo.pop()
        if id(function) in visited:
            continue
        visited.add(id(function))
        kind = type(function)
        if kind is FunctionType:
            yield from _sites_of_function(function, todo, has_sizes)
        elif kind is MethodType:
            todo += [function.__func__, function.__self__]
        elif isinstance(function, functools.partial):
            todo.append(function.func)
            yield from _sites_in_dict(function.keywords, todo)
        elif kind.__module__ not in ("builtins", "numpy") and callable(function):
            calls = [vars(parent).get("__call__") for parent in kind.__mro__]
            todo += [call for call in calls if type(call) is FunctionType]
            yield from _sites_in_dict(attributes_of(function), todo)


def _sites_of_function(function: FunctionType, todo: list, has_sizes: bool) -> Iterator:
    """The sites of a Python function; functions that it refers to are appended to ``todo``."""
    if not is_user_module(function.__globals__):  # such as a stand-in, which refers to its original
        return
    space = function.__globals__
    yield from _sites_in(space)
    # a lambda that no name of the module refers to
    names = _names_in(function.__code__)
    more = {n: v for n, v in names.items() if n not in space and (has_sizes or n != "len")}
    find = stand_in_of if "type" in names else _stand_in_or_class
    if more:
        yield NamesSite(space, {}, {}, more)
    if function.__closure__ is not None:
        for cell in function.__closure__:
            try:
                content = cell.cell_contents
            except ValueError:  # the variable is not assigned yet
                continue
            kind, stand_in = type(content), find(content)
            if stand_in is not None:
                yield PlaceSite(cell, "cell_contents", content, stand_in)
            elif kind in (FunctionType, MethodType, functools.partial):
                todo.append(content)
            elif kind is type or kind.__module__ not in ("builtins", "numpy"):
                yield from LATE_BOUND["cached_sites"](cell, content, todo)
    if defaults := function.__defaults__:
        new = tuple([find(value) or value for value in defaults])
        if any(a is not b for a, b in zip(new, defaults, strict=True)):
            yield PlaceSite(function, "__defaults__", defaults, new)
    if function.__kwdefaults__:
        yield from _sites_in_dict(function.__kwdefaults__, todo, find)
    if (wrapped := function.__dict__.get("__wrapped__")) is not None:
        todo.append(wrapped)


def _names_in(code: CodeType) -> dict[str, Any]:
    """The stand-ins for the builtins whose names occur in code."""
    entry = _named_by.get(id(code))
    if entry is None:
        entry = _named_by[id(code)] = code, LATE_BOUND["named_stand_ins"]([code])
    return entry[1]


def _sites_in_dict(space: Any, todo: list, find: Callable = stand_in_of) -> Iterator:
    """The site in a dict of attributes or keywords; functions in it are appended to ``todo``."""
    if type(space) is not dict:
        return
    new = {n: stand_in for n, v in space.items() if (stand_in := find(v)) is not None}
    if new:
        yield NamesSite(space, {name: space[name] for name in new}, new)
    todo += [v for v in space.values() if type(v) in (FunctionType, MethodType, functools.partial)]


def is_recording() -> bool:
    """Whether stand-ins called in this thread have to record."""
    active = ACTIVE.get()
    return active is not None and active.intercepts

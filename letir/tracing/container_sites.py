"""Stand-ins in containers and attributes, such as ``OPERATORS = {"sin": math.sin}``.

Before each recording, names of modules, closures and defaults get stand-ins, see ``stand_ins``. A
search of containers and objects takes longer, so it is made only for functions that need it: if
their recording was refused, or asked for the class of a traced number, and they can reach such a
container. These functions are then recorded again.
"""

import functools
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import CellType, CodeType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.bounded_cache import BoundedCache
from letir.ast.builder import Value
from letir.ast.process_state import MemberSite, PlaceSite, Site
from letir.tracing.callers import REACHING, attributes_of, is_user_module
from letir.tracing.stand_ins import stand_in_of
from letir.tracing.trace_state import ACTIVE, Trace

_MAX_CODES = 1 << 12
_MAX_OBJECTS = 10_000  # objects that a search visits
_SEQUENCES = (list, deque)
# code of functions that reach no stand-ins in containers
_not_reaching: dict[int, CodeType] = BoundedCache(_MAX_CODES)


class ItemSite(Site):
    """An item of a dict, list or deque."""

    def current(self) -> Any:
        try:
            return self.owner[self.name]
        except (IndexError, KeyError):  # removed in the meantime
            return None

    def put(self, value: Any) -> None:
        with suppress(IndexError):  # another thread may remove it now
            self.owner[self.name] = value


def start_held_stand_ins(f: Callable, started: list) -> None:
    """Install the stand-ins in containers for a recording of ``f`` that is known to reach them.

    ``started``: the list to which each step is appended, see ``start_stand_ins``.
    """
    code = entry_code_of(f)
    if code is not None and REACHING.get(id(code)) is code:
        for site in list(container_sites(f)):
            started.append(site)
            site.exchange(True)


def note_held_function() -> None:
    """Note that the active recording may have called an original that a container holds."""
    trace = ACTIVE.get()
    if type(trace) is Trace and trace.intercepts:
        vars(trace).setdefault("takes_lists", None)


def learn_held_functions(f: Callable) -> bool:
    """Whether the next recording of ``f`` finds stand-ins in containers, unlike the last one."""
    code = entry_code_of(f)
    if code is None or REACHING.get(id(code)) is code or _not_reaching.get(id(code)) is code:
        return False
    sites = list(container_sites(f))
    is_reaching = bool(sites)
    for site in sites:
        function = _function_in(site.old)
        while type(function) is functools.partial:
            function = function.func
        if type(function) is _CACHED:  # it may have kept a traced value
            function.cache_clear()
    (REACHING if is_reaching else _not_reaching)[id(code)] = code
    return is_reaching


def entry_code_of(f: Any) -> CodeType | None:
    """The code that a call of ``f`` runs first, None for functions in C."""
    f = _search_roots(f)[0]
    while type(f) in (MethodType, functools.partial):
        f = f.__func__ if type(f) is MethodType else f.func
    if type(f) is not FunctionType:
        calls = [vars(kind).get("__call__") for kind in type(f).__mro__]
        f = next((call for call in calls if call is not None), None)
    return f.__code__ if type(f) is FunctionType else None


# ---- functions that keep their results ----

_CACHED = type(functools.lru_cache(len))


def cached_sites(cell: CellType, content: Any, todo: list) -> Iterator[Site]:
    """The sites of functions with ``functools.lru_cache`` in a variable of an enclosing function.

    ``content`` of the ``cell`` is such a function, or a class that has such methods, or an object
    of the class. The functions with caches are searched, too: they are appended to ``todo``.
    """
    if type(content) is _CACHED:
        yield PlaceSite(cell, "cell_contents", content, LATE_BOUND["cached_function"](content))
        todo.append(content.__wrapped__)
        return
    for kind in (content if isinstance(content, type) else type(content)).__mro__:
        if _is_users_class(kind):
            for site in cached_members(kind):
                yield site
                todo.append(_function_in(site.old).__wrapped__)


def cached_members(owner: type) -> list[MemberSite]:
    """The sites of functions with a cache among the members of a class: methods, static methods,
    class methods and properties.
    """
    members = [(n, m, _function_in(m)) for n, m in list(vars(owner).items())]
    return [
        MemberSite(
            owner, name, member, _wrap_like_member(member, LATE_BOUND["cached_function"](function))
        )
        for name, member, function in members
        if type(function) is _CACHED
    ]


_COLLECTIONS: tuple[Any, ...] = (list, tuple, deque, set)


def holds_traced(instance: Any) -> bool:
    """Whether a traced value is in an object, or in the objects and containers that it holds; True
    if these are too many to tell.
    """
    todo, visited = [instance], set[int]()
    for value in todo:
        if isinstance(value, Value) or len(visited) > _MAX_OBJECTS:
            return True
        if id(value) in visited:
            continue
        visited.add(id(value))
        # by the methods of the base class: those of a subclass may read the property in question
        if isinstance(value, dict):
            todo += dict.values(value)
        elif base := next((base for base in _COLLECTIONS if isinstance(value, base)), None):
            todo += base.__iter__(value)
        if _is_users_class(type(value)) or type(value) is SimpleNamespace:
            attributes = attributes_of(value)
            if attributes is None:  # its slots are not searched
                return True
            todo += attributes.values()
    return False


_FUNCTIONS = {staticmethod: "__func__", classmethod: "__func__", property: "fget"}


def _function_in(member: Any) -> Any:
    """The function of a static method, a class method or a property; other members unchanged."""
    name = _FUNCTIONS.get(type(member))
    return getattr(member, name) if name else member


def _wrap_like_member(member: Any, new: Any) -> Any:
    """``new`` as the member of a class that ``member`` is."""
    kind = type(member)
    if kind is property:
        return property(new, member.fset, member.fdel)
    if kind is classmethod or kind is _CACHED:
        return classmethod(new) if kind is classmethod else new
    return staticmethod(new)  # functions in C and classes are not methods, nor are their stand-ins


# ---- the search ----


def _search_roots(f: Any) -> tuple:
    """The objects from which the search for ``f`` starts: ``f``, unless it names others itself."""
    reaches = getattr(f, "__dict__", {}).get("letir_reaches")
    return (f,) if reaches is None else reaches()


def container_sites(f: Callable) -> Iterator:
    """The sites in containers, objects and classes that ``f`` reaches."""
    todo: deque = deque(_search_roots(f))
    visited: dict[int, Any] = {}  # with the objects, so that no id is given again
    while todo and len(visited) < _MAX_OBJECTS:
        value = todo.popleft()
        if id(value) not in visited and type(value) not in _PLAIN:
            visited[id(value)] = value
            for site, item in _places_in(value):
                new = _replacement(item)
                if new is not None:
                    yield site(item, new)
                if new is None or type(item) in (tuple, functools.partial):
                    todo.append(item)


def _places_in(value: Any) -> Iterable[tuple[Callable, Any]]:
    """(maker of a site, object in it) for each place in a value that may hold a stand-in."""
    kind = type(value)
    if isinstance(value, dict):
        return _items(value, list(value.items()))
    if isinstance(value, _SEQUENCES):
        return _items(value, enumerate(list(value)))
    if isinstance(value, tuple | frozenset | set):
        return _searched_values(value)
    if kind is FunctionType:
        return _places_in_function(value) if is_user_module(value.__globals__) else ()
    if kind is MethodType:
        return _searched_values((value.__func__, value.__self__))
    if kind is functools.partial:
        return _searched_values((value.func, value.args, value.keywords))
    if kind is ModuleType:
        return _globals_of(vars(value)) if is_user_module(vars(value)) else ()
    if kind is SimpleNamespace:
        return _searched_values((vars(value),))
    if isinstance(value, type):
        return _members(value) if _is_users_class(value) else ()
    return _places_in_object(value) if _is_users_class(kind) else ()


def _items(owner: Any, items: Iterable[tuple]) -> Iterator[tuple[Callable, Any]]:
    """The items of a list or dict, and the sites where they are exchanged."""
    for key, item in items:
        yield functools.partial(ItemSite, owner, key), item


def _searched_values(values: Iterable) -> Iterator[tuple[Callable, Any]]:
    """Values that are searched, in places that are not exchanged."""
    for item in values:
        if _replacement(item) is None:
            yield ItemSite, item


def _places_in_function(f: FunctionType) -> Iterator[tuple[Callable, Any]]:
    """The variables and defaults that a function holds, and the sites where they are exchanged."""
    for cell in f.__closure__ or ():
        try:
            yield functools.partial(PlaceSite, cell, "cell_contents"), cell.cell_contents
        except ValueError:  # the variable is not assigned yet
            continue
    if f.__defaults__:
        yield functools.partial(PlaceSite, f, "__defaults__"), f.__defaults__
    yield from _searched_values((f.__kwdefaults__, f.__dict__))
    yield from _globals_of(f.__globals__)


def _globals_of(space: dict) -> Iterator[tuple[Callable, Any]]:
    """Places in the globals of a module, without ``__builtins__`` and the like."""
    return _items(space, [item for item in list(space.items()) if not item[0].startswith("__")])


def _members(owner: type) -> Iterator[tuple[Callable, Any]]:
    """The base classes and members of a class, which are searched."""
    yield from _searched_values(owner.__bases__)
    for name, member in list(vars(owner).items()):
        if name.startswith("__") and name != "__call__":
            continue
        function = _function_in(member)
        if _replacement(function) is None:
            yield ItemSite, function
        else:
            yield (
                (
                    lambda h, new, n=name, m=member: MemberSite(
                        owner, n, m, _wrap_like_member(m, new)
                    )
                ),
                function,
            )


def _places_in_object(value: Any) -> Iterator[tuple[Callable, Any]]:
    """The class and attributes of an object, and the sites of those in slots."""
    yield from _searched_values((type(value), attributes_of(value)))
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            if not name.startswith("__") and hasattr(value, name):
                yield functools.partial(PlaceSite, value, name), getattr(value, name)


_PLAIN = frozenset([str, bytes, bool, int, float, complex, type(None)])


def _is_users_class(kind: type) -> bool:
    """Whether a class is defined in a user's module that is loaded."""
    space = getattr(sys.modules.get(kind.__module__), "__dict__", None)
    return type(space) is dict and is_user_module(space)


_CLASSES = {id(float): "float", id(complex): "complex"}


def _replacement(value: Any) -> Any:
    """The stand-in for an original, or for a tuple or partial of one; None for other values."""
    if id(value) in _CLASSES:
        return LATE_BOUND["class_stand_in"](_CLASSES[id(value)])
    if type(value) is tuple and len(value) < _MAX_CODES:
        items = [_replacement(item) for item in value]
        if any(item is not None for item in items):
            pairs = zip(items, value, strict=True)
            return tuple([old if item is None else item for item, old in pairs])
    if type(value) is functools.partial and (new := _replacement(value.func)) is not None:
        return functools.partial(new, *value.args, **value.keywords)
    if type(value) is _CACHED:
        return LATE_BOUND["cached_function"](value)
    return stand_in_of(value)


LATE_BOUND.update(
    cached_members=cached_members,
    cached_sites=cached_sites,
    holds_traced=holds_traced,
    learn_held_functions=learn_held_functions,
    note_held_function=note_held_function,
    start_held_stand_ins=start_held_stand_ins,
)

"""``exchange_numpy``: a copy of a function whose ``np`` is ``letir.numpy``, for ``intercept=True``.

No user object is changed, so other threads notice nothing: the function, and the functions of its
module that it reaches, are rebuilt around the same code, with globals, closures and defaults in
which NumPy is replaced. NumPy functions imported by name are replaced as well.
"""

import builtins
import dis
import functools
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from letir.tracing.numpy_protocols.array_value import numpy_namespace

# globals that the interpreter reads directly, bypassing ``__getitem__``
_OWN = ("__name__", "__package__", "__spec__", "__file__", "__loader__", "__path__", "__builtins__")


def _innermost_function(f) -> FunctionType | None:
    """The innermost Python function of a user's callable; None if there is none."""
    while type(f) is not FunctionType or hasattr(f, "__wrapped__"):
        if isinstance(f, functools.partial):
            f = f.func
        elif type(f) is MethodType:
            f = f.__func__
        elif hasattr(f, "__wrapped__"):  # what functools.wraps leaves
            f = f.__wrapped__
        elif type(type(f).__dict__.get("__call__")) is FunctionType:
            f = type(f).__call__
        else:
            return None
    return f


@functools.cache
def _exchanged_names() -> dict[int, object]:
    """{id of a NumPy function or module: its replacement from ``letir.numpy``}."""
    new = numpy_namespace()
    pairs = [(np, new), (np.linalg, new.linalg), (np.fft, new.fft)]
    found: dict[int, object] = {}
    for old, other in pairs:
        names = [name for name, value in vars(old).items() if callable(value)]
        found |= {id(getattr(old, n)): getattr(other, n) for n in names if not n.startswith("_")}
    found |= {id(getattr(np, name)): getattr(new, name) for name in ("r_", "c_")}
    modules = {id(old): other for old, other in pairs}
    return {i: other for i, other in found.items() if id(other) != i} | modules


class _Interception:
    """The replacements for one trace: the functions of one module, each rebuilt once."""

    def __init__(self, f: FunctionType):
        self.module = f.__globals__
        self.globals = _Globals(self)
        self.made: dict[FunctionType, FunctionType] = {}
        self.originals: dict[int, FunctionType] = {}  # id of a rebuilt function -> the original

    def __call__(self, value):
        """``value`` with NumPy replaced in it; itself if there is nothing to replace."""
        kind = type(value)
        if kind is FunctionType:
            if self.is_ours(value):
                return self.remade(value)
        elif kind is MethodType:
            made = self(value.__func__)
            own = value.__self__
            return value if made is value.__func__ else MethodType(made, self.stand_in(own))
        elif kind is functools.partial:
            return functools.partial(
                self(value.func),
                *map(self, value.args),
                **{name: self(v) for name, v in value.keywords.items()},
            )
        return _exchanged_names().get(id(value), value)

    def is_ours(self, function: FunctionType) -> bool:
        """Whether a function belongs to the module, or wraps a function that does."""
        return getattr(_innermost_function(function), "__globals__", None) is self.module

    def changes(self, value) -> bool:
        """Whether there is something to replace, tested without building anything."""
        kind = type(value)
        if kind is FunctionType and self.is_ours(value):
            return True
        return kind in (MethodType, functools.partial) or id(value) in _exchanged_names()

    def remade(self, function: FunctionType) -> FunctionType:
        """The function rebuilt with replaced globals, closure and defaults."""
        made = self.made.get(function)
        if made is not None or "DELETE_GLOBAL" in _stored_names(function.__code__):
            return made or function  # del of a global bypasses the replaced globals
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        new = {name: self.new_cell(name, cell, function.__code__) for name, cell in cells.items()}
        # a wrapper from another module keeps the globals of that module
        own = self.globals if function.__globals__ is self.module else function.__globals__
        made = FunctionType(function.__code__, own, function.__name__, None, tuple(new.values()))
        self.made[function], self.originals[id(made)] = made, function  # before: it may call itself
        for name, cell in new.items():
            if cell is not cells[name]:
                cell.cell_contents = self(cells[name].cell_contents)
        made.__defaults__ = function.__defaults__ and tuple(map(self, function.__defaults__))
        named = function.__kwdefaults__
        made.__kwdefaults__ = named and {name: self(value) for name, value in named.items()}
        for name in functools.WRAPPER_ASSIGNMENTS:
            setattr(made, name, getattr(function, name))
        made.__dict__.update(function.__dict__)
        return made

    def stand_in(self, own):
        """``own`` with rebuilt methods: it shares the attributes, and is an instance of its class.

        ``own`` itself if it is a class, or stores attributes elsewhere.
        """
        kind = type(own)
        parents = [vars(parent) for parent in reversed(kind.__mro__[:-1])]
        # no subclass for a class that customises subclasses or the layout of instances
        special = any("__init_subclass__" in p or p.get("__slots__") for p in parents)
        plain = type(kind) is type and kind.__new__ is object.__new__ and hasattr(own, "__dict__")
        if special or not plain:  # builtin containers hold more than attributes
            return own
        members = {name: self.method(member) for p in parents for name, member in p.items()}
        made = {name: new for name, new in members.items() if new is not None}
        new = object.__new__(type(kind.__name__, (kind,), made | {"__module__": kind.__module__}))
        object.__setattr__(new, "__dict__", vars(own))
        return new

    def method(self, member):
        """A rebuilt member of a class; None if there is nothing to replace."""
        match member:
            case FunctionType() if self.is_ours(member):
                return self.remade(member)
            case staticmethod() | classmethod() if self.changes(member.__func__):
                return type(member)(self(member.__func__))
            case property():
                parts = [part and self(part) for part in (member.fget, member.fset, member.fdel)]
                return property(*parts, member.__doc__)
        return None

    def new_cell(self, name: str, cell: CellType, code: CodeType) -> CellType:
        """A cell with the replaced content; the same cell if its content is the user's."""
        try:
            content = cell.cell_contents
        except ValueError:  # not yet assigned
            return cell
        return CellType() if self.changes(content) and name not in _stored_names(code) else cell

    def restored(self, value):
        """The original of a replaced object, for values written into a global of the module."""
        return self.originals.get(id(value), np if value is numpy_namespace() else value)


def _stored_names(code: CodeType) -> set[str]:
    """The closure variables that code assigns, and the globals that it deletes."""
    found = set()
    for part in _nested_code(code):
        for instruction in dis.get_instructions(part):
            if instruction.opname in ("STORE_DEREF", "DELETE_DEREF"):
                found.add(instruction.argval)
            elif instruction.opname == "DELETE_GLOBAL":
                found.add("DELETE_GLOBAL")
    return found


def _nested_code(code: CodeType) -> Iterator[CodeType]:
    """A code object and all code objects nested in it."""
    yield code
    for constant in code.co_consts:
        if type(constant) is CodeType:
            yield from _nested_code(constant)


class _Globals(dict):
    """A module's globals as seen by its intercepted functions.

    Python reads them by ``__getitem__``, because this is not a plain dict, but writes bypass
    ``__setitem__``: written values are moved to the module at the next read, and at the end.
    """

    __slots__ = ("exchange", "kept", "module")

    def __init__(self, exchange: _Interception):
        self.exchange, self.module = exchange, exchange.module
        own = {name: self.module[name] for name in _OWN if name in self.module}
        super().__init__(own | {"__builtins__": _importing_builtins(exchange)})
        self.kept = dict.__len__(self)

    def __getitem__(self, name):
        self.flush()
        return self.exchange(self.module[name])

    def flush(self) -> None:
        """Move written values to the module."""
        if dict.__len__(self) > self.kept:
            for name in [name for name in dict.keys(self) if name not in _OWN]:
                self.module[name] = self.exchange.restored(dict.pop(self, name))

    # ---- for code that calls globals() ----

    def __setitem__(self, name, value):
        self.module[name] = self.exchange.restored(value)

    def __delitem__(self, name):
        del self.module[name]

    def __contains__(self, name):
        return name in self.module

    def __iter__(self):
        return iter(self.module)

    def __len__(self):
        return len(self.module)

    def get(self, name, default=None):
        """As of a dict."""
        return self[name] if name in self.module else default

    def keys(self):
        """As of a dict."""
        return self.module.keys()

    def values(self):
        """As of a dict."""
        return [self[name] for name in self.module]

    def items(self):
        """As of a dict."""
        return [(name, self[name]) for name in self.module]


def _importing_builtins(exchange: Callable) -> dict:
    """Python's builtins, in which ``import numpy`` gives ``letir.numpy``."""

    def imported(name, *args, **kwargs):
        return exchange(builtins.__import__(name, *args, **kwargs))

    return {**vars(builtins), "__import__": imported}


def exchange_numpy(f: Callable) -> Callable:
    """``f`` with NumPy replaced; itself if it is not Python code."""
    function = _innermost_function(f)
    if function is None:
        return f
    exchange = _Interception(function)
    called: Any = f
    if type(f) not in (FunctionType, MethodType, functools.partial):
        called = called.__call__
    made = exchange(called)

    @functools.wraps(f)
    def run(*args, **kwargs):
        try:
            # also NumPy functions among static arguments, so that `act is np.tanh` still holds
            return made(*map(exchange, args), **{k: exchange(v) for k, v in kwargs.items()})
        finally:
            exchange.globals.flush()

    return run

"""``Options`` of ``jit``, and ``StaticArguments``: which arguments of a function are static.

Calls with a wrong number of arguments are refused here, before anything runs.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.pytrees import flatten
from letir.ast.terms import Lambda
from letir.errors import DTypeError
from letir.eval.arguments import (
    is_static,
    leaf_names,
    mark_static,
    positional_names,
    wrong_count_error,
)
from letir.eval.array_modules import type_of
from letir.tracing.callers import is_users_class


@frozen
class Options:
    """The options that were passed to ``jit``."""

    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()
    donate_argnums: tuple[int, ...] = ()
    static_shapes: bool | None = None
    optimize: bool = True
    exact: bool = False
    kernels: str | None = None
    max_plans: int = 64
    profile: int = 0


class StaticArguments:
    """Marks the static arguments of calls of ``f``."""

    def __init__(self, f: Callable, argnums: tuple[int, ...], argnames: tuple[str, ...]):
        self.f, self.argnums, self.argnames = f, argnums, frozenset(argnames)
        self.names = positional_names(f) if argnames else []
        self.is_needed = bool(argnums or argnames)
        self.signature: inspect.Signature | None = None
        self.places: dict[int, tuple] = {}  # number of positional arguments -> (static, others)

    def mark(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments with the static ones wrapped."""
        if not self.is_needed:
            return args, kwargs
        return mark_static(self.f, args, kwargs, self.argnums, tuple(self.argnames))

    def split_static(self, args: tuple, kwargs: dict) -> tuple[tuple, dict, list]:
        """(other arguments, other keywords, values of the static ones)."""
        if not self.is_needed:
            return args, kwargs, []
        places = self.places.get(len(args)) or self.split_positions(len(args))
        static, others = places
        values = [args[i] for i in static]
        if not kwargs:
            return tuple([args[i] for i in others]), kwargs, values
        names = sorted(self.argnames & kwargs.keys())
        named = {name: value for name, value in kwargs.items() if name not in self.argnames}
        values += [(name, kwargs[name]) for name in names]
        return tuple([args[i] for i in others]), named, values

    def static_places(self, args: tuple, kwargs: dict) -> frozenset[int | str]:
        """The positions and names of the static arguments of a call."""
        if not self.is_needed:
            return frozenset()
        static, _ = self.places.get(len(args)) or self.split_positions(len(args))
        return frozenset([*static, *self.argnames & kwargs.keys()])

    def split_positions(self, count: int) -> tuple[list[int], list[int]]:
        """(positions of static arguments, other positions) for this number of arguments."""
        static = {n % count for n in self.argnums if -count <= n < count}
        static |= {i for i, name in enumerate(self.names[:count]) if name in self.argnames}
        others = [i for i in range(count) if i not in static]
        result = self.places[count] = (sorted(static), others)
        return result

    def check_count(self, args: tuple, kwargs: dict) -> None:
        """Raise unless the function accepts these arguments, before anything runs."""
        count = len(args) + len(kwargs)
        if isinstance(self.f, Lambda):
            if self.f.in_tree is None and count != len(self.f.params):
                raise wrong_count_error(self.f, count)
            return
        try:
            self.signature = self.signature or inspect.signature(self.f)
        except (TypeError, ValueError):  # a builtin without a signature: the call itself will raise
            return
        wrong = None
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError as error:
            wrong = error.with_traceback(None)
        if wrong is not None:  # outside of the clause, or it would be the context of the new error
            LATE_BOUND["refuse_call"](wrong, self.f, args, kwargs)


def name_refused(f: Callable, marked: tuple, error: DTypeError) -> tuple[DTypeError, Any]:
    """The first argument that is not an array of numbers, after ``error`` with its name."""
    leaves, _ = flatten(marked)
    for leaf, name in zip(leaves, leaf_names(f, *marked), strict=True):
        if not is_static(leaf):
            try:
                type_of(leaf)
            except DTypeError:
                error.args = (f"argument {name}: {error}",) if name else error.args
                return error, leaf
    return error, None


def is_users_object(args: tuple) -> bool:
    """Whether the first argument is an object of a user's class, all of whose state is visible."""
    classes = type(args[0]).__mro__[:-1] if args else ()
    if not classes or not hasattr(args[0], "__dict__") or is_tensor(args[0]):
        return False
    return all(map(is_users_class, classes))


def is_tensor(value: Any) -> bool:
    """Whether ``value`` is an array of another package, which NumPy can view."""
    try:
        return hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray)
    except Exception:  # of a user's __getattr__
        return False


def is_method_of(executor: Any, args: tuple) -> bool:
    """Whether the first argument is an instance of a class with this executor as a method, or a
    class with it as a class method.
    """
    first, function = args[0] if args else None, executor.function()
    # from Python 3.13 on @classmethod does not call __get__ of the executor
    if isinstance(first, type):
        attributes = (value for cls in first.__mro__ for value in vars(cls).values())
        return any(type(v) is classmethod and v.__func__ is function for v in attributes)
    classes = type(first).__mro__
    return any(value is function for cls in classes for value in vars(cls).values())

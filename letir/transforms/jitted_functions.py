"""Transforms of executors, such as ``jit(f)``, which cache their transformed versions.

``grad(jit(f))`` is an executor too, and the same one each time, so that a loop over
``grad(jit(f))(x)`` compiles once.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, cast

from attrs import field, frozen

from letir.ast import LATE_BOUND, entry_point
from letir.ast.attrs import token
from letir.ast.signatures import F
from letir.errors import DTypeError


@frozen
class Transform:
    """A transform of functions with its options.

    ``key``: the key under which an executor caches the result, equal only for options of equal
    types and values; None if an option is not hashable.
    """

    function: Callable
    options: dict = field(eq=False)
    key: tuple | None

    def __call__(self, f: Callable) -> Callable:
        """The transformed function."""
        return self.function(f, **self.options)


_signature_of = functools.cache(inspect.signature)  # called on first use, not at import


def shared_with_executors(transform: F) -> F:
    """``transform``, but an executor ``f`` transforms itself, by ``__letir_transformed__``.

    The method is looked up on the class of ``f``; an ``f`` without it is passed to ``transform``.
    """

    @functools.wraps(transform)
    def asking(*args, **kwargs):
        f = args[0] if args else kwargs.get("f")
        answer = getattr(type(f), "__letir_transformed__", None)
        if answer is None:
            if args and not callable(f) and not hasattr(f, "joined"):  # a Gradient has it
                LATE_BOUND["refuse_unless_function"](transform.__name__, f)
            return transform(*args, **kwargs)
        bound = _signature_of(transform).bind(*args, **kwargs)
        bound.apply_defaults()  # grad(f) and grad(f, argnums=0) share a key
        _, *options = bound.arguments.items()
        key = _transform_key(transform, options)
        return answer(f, Transform(transform, dict(options), key))

    return cast(F, entry_point(asking))


def _transform_key(transform: Callable, options: list) -> tuple | None:
    """A cache key for a transform with options, None if an option is not hashable."""
    try:
        return (transform, *[(name, option_token(value)) for name, value in options])
    except DTypeError:
        return None


def option_token(option: Any) -> Any:
    """A hashable token of an option; options such as in_axes may be lists and dicts."""
    if isinstance(option, dict):
        return dict, *[(token(name), option_token(value)) for name, value in option.items()]
    if type(option) in (list, tuple):
        return type(option), *map(option_token, option)
    return token(option)

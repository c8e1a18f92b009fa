"""Transforms of functions that are executors: these keep what a transform makes of them.

So ``grad(jit(f))`` is an executor too, and the same one each time it is asked for: a loop that says
``grad(jit(f))(x)`` compiles once.
"""

import functools
import inspect
from collections.abc import Callable
from typing import cast

from attrs import field, frozen

from letir.ast.attrs import token
from letir.ast.signatures import F
from letir.errors import DTypeError


@frozen
class Transform:
    """A transform of functions with its options: what an executor keeps its result by.

    ``key`` is equal to another's only if the options are, to their types; None where an option has
    no hash, as a function that is called anew each time.
    """

    of: Callable
    options: dict = field(eq=False)
    key: tuple | None

    def __call__(self, f: Callable) -> Callable:
        """The transformed function."""
        return self.of(f, **self.options)


_signature_of = functools.cache(inspect.signature)  # when it is asked for, not at import


def shared_with_executors(transform: F) -> F:
    """``transform(f, ...)`` that asks the class of ``f`` for ``__letir_transformed__(transform)``.

    As Python does for its protocols; a function that is none is transformed itself.
    """

    @functools.wraps(transform)
    def asking(f, *args, **kwargs):
        answer = getattr(type(f), "__letir_transformed__", None)
        if answer is None:
            return transform(f, *args, **kwargs)
        bound = _signature_of(transform).bind(f, *args, **kwargs)
        bound.apply_defaults()  # grad(f) and grad(f, argnums=0) are one
        _, *options = bound.arguments.items()
        return answer(f, Transform(transform, dict(options), _transform_key(transform, options)))

    return cast(F, asking)


def _transform_key(transform: Callable, options: list) -> tuple | None:
    """A hashable stand-in for a transform with options, None if there is none."""
    try:
        return (transform, *[(name, _option_token(value)) for name, value in options])
    except DTypeError:
        return None


def _option_token(option):
    """A token of an option; lists and dicts too, as they are trees of axes."""
    if isinstance(option, dict):
        return dict, *[(token(name), _option_token(value)) for name, value in option.items()]
    if type(option) in (list, tuple):
        return type(option), *map(_option_token, option)
    return token(option)

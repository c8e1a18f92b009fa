"""``jit``: an executor for a function, a method, an object that can be called, or a partial."""

import functools
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, overload

from attrs import evolve

from letir.ast.signatures import P, R
from letir.errors import TraceError
from letir.executor.executor import Executor
from letir.executor.methods import bound_arrays, is_callable_object, with_bound
from letir.executor.static_arguments import Options


class PartialExecutor(Executor[..., Any]):
    """An executor of a partial, whose bound arrays are arguments."""

    def __init__(self, partial: functools.partial, options: Options):
        super().__init__(with_bound(partial), _shifted(options, 1))
        self.bound = bound_arrays(partial)

    def __call__(self, /, *args, **kwargs):
        return super().__call__(self.bound, *args, **kwargs)


@overload
def jit(
    f: Callable[P, R],
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    static_shapes: bool | None = None,
    optimize: bool = True,
    exact: bool = False,
    max_plans: int = 64,
    profile: int = 0,
) -> Executor[P, R]: ...
@overload
def jit(
    f: None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    static_shapes: bool | None = None,
    optimize: bool = True,
    exact: bool = False,
    max_plans: int = 64,
    profile: int = 0,
) -> Callable[[Callable[P, R]], Executor[P, R]]: ...
def jit(
    f: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    static_shapes: bool | None = None,
    optimize: bool = True,
    exact: bool = False,
    max_plans: int = 64,
    profile: int = 0,
) -> Any:
    """``f`` recorded and compiled for each kind of arguments that it is called with.

    Arguments and results are pytrees, as in ``trace``: of arrays a plan knows dtype, shape and
    whether they are contiguous, of Python numbers the type; bools, strings, None and the arguments
    named by ``static_argnums`` and ``static_argnames`` are part of it. Where ``f`` asks for a truth
    value or an integer, there is a plan for each answer. A second size of the same rank gets a plan
    for all sizes, if ``f`` does not depend on them in Python (``static_shapes``: True for a plan
    for each size, False for one with names for them from the start). At most ``max_plans`` kinds
    are kept.

    ``donate_argnums``: arrays whose memory the call may take for its own values. ``optimize`` and
    ``exact`` as in ``compile``. ``profile``: so many calls of each kind run the program as it was
    recorded; then it is compiled for the Python numbers that were the same in all of them, and once
    more for others. Also a decorator, with or without options, of functions and
    methods; what an object or a partial holds are arguments too. Other Python state that ``f``
    reads is read when it is recorded, and not again: pass it as an argument. Inside a trace, or a
    transform, the call is recorded as that of ``f``. See docs/executor.md.

    >>> import numpy as np
    >>> @jit
    ... def step(x, rate):
    ...     return x - rate * np.sin(x)
    >>> step(np.zeros(2), 0.1)
    array([0., 0.])
    >>> step(np.ones(2), 0.2).shape, step.counters["compiles"]
    ((2,), 1)
    """
    options = Options(
        *(_as_tuple(static_argnums), _as_tuple(static_argnames), _as_tuple(donate_argnums)),
        *(static_shapes, optimize, exact, max_plans, profile),
    )
    return (
        functools.partial(_executor_of, options=options) if f is None else _executor_of(f, options)
    )


def _executor_of(f: Callable, options: Options) -> Callable:
    """The executor of a function, a method, an object that can be called, or a partial."""
    if not callable(f):
        raise TraceError(f"jit: a function is compiled, found {type(f).__name__}")
    if isinstance(f, MethodType):
        return Executor(f.__func__, _shifted(options, 1)).__get__(f.__self__)
    if isinstance(f, functools.partial) and bound_arrays(f):
        return PartialExecutor(f, options)
    if is_callable_object(f):
        return Executor(type(f).__call__, _shifted(options, 1)).__get__(f)
    return Executor(f, options)


def _shifted(options: Options, by: int) -> Options:
    """The options with places of arguments for a function that takes ``by`` more before them."""
    return evolve(
        options,
        **{
            name: tuple([n + by if n >= 0 else n for n in getattr(options, name)])
            for name in ("static_argnums", "donate_argnums")
        },
    )


def _as_tuple(value) -> tuple:
    """One number or name, or several, as a tuple."""
    return (value,) if isinstance(value, int | str) else tuple(value)

"""``jit``: functions, methods, callable objects and partials that are compiled at their calls."""

import functools
import weakref
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, overload

from attrs import evolve

from letir.ast import LATE_BOUND, entry_point
from letir.ast.pytrees import flatten
from letir.ast.signatures import P, Q, R, dir_of
from letir.errors import DTypeError
from letir.eval.array_modules import is_array
from letir.executor.calls import executor_name
from letir.executor.compiled import expect_kernels
from letir.executor.executor import Executor
from letir.executor.static_arguments import Options
from letir.transforms.jitted_functions import Transform

if TYPE_CHECKING:
    from letir.executor.methods import JittedMethod
    from letir.executor.reports import ExecutorState


class Jitted(Generic[P, R]):
    """A jitted function or method: ``clear()`` drops its plans, ``counters`` counts calls and
    compiles, ``debug_state()`` shows the plans.

    All other attributes belong to the user, as those of a Python function do; letir keeps its own
    state in ``__letir_executor__``.
    """

    __dir__ = dir_of("clear", "counters", "debug_state")
    if TYPE_CHECKING:
        __wrapped__: Callable[..., R]
        __letir_executor__: Executor

        def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R: ...

    else:  # each one has a call of its own, see ``Executor.try_first``
        __slots__ = ("__call__", "__dict__", "__letir_executor__", "__weakref__")

    def clear(self) -> None:
        """Drop all plans."""
        self.__letir_executor__.clear()

    @property
    def counters(self) -> dict[str, int]:
        """Exact counts of calls, hits, misses, compiles, failures and evictions.

        ``executors`` counts this function and its transforms.
        """
        return self.__letir_executor__.counters

    def debug_state(self) -> "ExecutorState":
        """The plans with their programs, and the counters.

        >>> import numpy as np
        >>> f = jit(lambda x: x * 2.0)
        >>> f(np.ones(2))
        array([2., 2.])
        >>> len(f.debug_state().plans), f.debug_state().counters["compiles"]
        (1, 1)
        """
        executor = self.__letir_executor__
        return LATE_BOUND["executor_state"](executor, executor_name(executor.f))

    def _repr_html_(self):
        return LATE_BOUND["executor_html"](self)


class JittedFunction(Jitted[P, R]):
    """The result of ``jit``: a function that is recorded and compiled for each combination of
    argument types.
    """

    __slots__ = ()

    def __init__(self, executor: Executor):
        functools.update_wrapper(self, executor.f, updated=())
        for name, value in getattr(executor.f, "__dict__", {}).items():
            if not name.startswith(("letir_", "__")):
                self.__dict__[name] = value  # as functools.wraps does
        self.__letir_executor__ = executor
        executor.function = weakref.ref(self)
        self.__call__ = executor.__call__  # type: ignore[method-assign]

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> "JittedFunction[P, R]": ...
    @overload
    def __get__(
        self: "JittedFunction[Concatenate[Any, Q], R]", instance: object, owner: type | None = None
    ) -> "JittedMethod[Q, R]": ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        if 0 in self.__letir_executor__.options.static_argnums:  # the object is declared as static
            return functools.partial(self, instance)
        return LATE_BOUND["jitted_method"](self, instance)

    def __letir_transformed__(self, transform: Transform) -> "JittedFunction":
        """The transformed function, jitted with the same options; the same one each time."""
        return LATE_BOUND["transformed_function"](self, transform)

    @property
    def __letir_attributes__(self) -> dict[str, Any]:
        """The attributes that a user has set."""
        return {name: x for name, x in self.__dict__.items() if not name.startswith("__")}

    @property
    def __letir_held__(self) -> functools.partial | None:
        """The partial whose arrays are arguments."""
        return self.__letir_executor__.held

    def __letir_with_held__(self, partial: functools.partial) -> "JittedFunction":
        """The jitted function of another partial of the same function, with the same options."""
        executor: Any = self.__letir_executor__
        return jitted_partial(partial, executor.given_options)

    def __reduce__(self):
        return LATE_BOUND["pickled_function"](self)

    def __copy__(self) -> "JittedFunction[P, R]":
        return self  # as for functions

    def __deepcopy__(self, memo: dict) -> "JittedFunction[P, R]":
        return self

    def __setstate__(self, state: tuple[Callable, Options, dict]) -> None:
        f, options, attributes = state
        JittedFunction.__init__(self, Executor(f, options))
        self.__dict__.update(attributes)

    def __repr__(self):
        return f"<jit of {executor_name(self.__letir_executor__.f)}>"


class PartialExecutor(Executor):
    """An executor for a partial, whose bound arrays are arguments of the plans."""

    def __init__(self, partial: functools.partial, options: Options):
        self.bound, self.held, self.given_options = _bound_arrays(partial), partial, options
        super().__init__(_with_bound(partial), shift_positions(options, 1))


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
    kernels: str | None = None,
    max_plans: int = 64,
    profile: int = 0,
) -> JittedFunction[P, R]: ...
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
    kernels: str | None = None,
    max_plans: int = 64,
    profile: int = 0,
) -> Callable[[Callable[P, R]], JittedFunction[P, R]]: ...
@entry_point
def jit(
    f: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    static_shapes: bool | None = None,
    optimize: bool = True,
    exact: bool = False,
    kernels: str | None = None,
    max_plans: int = 64,
    profile: int = 0,
) -> Any:
    """``f``, recorded and compiled for each combination of argument types at its first call.

    Arguments and results are pytrees, as in ``trace``. A plan is specialised to the dtype, shape
    and contiguity of arrays and to the type of Python numbers; bools, strings, None and the
    arguments in ``static_argnums`` and ``static_argnames`` are specialised by value. Where ``f``
    asks for a truth value or an integer, each answer has its own plan. The second size of the same
    rank gets a plan for all sizes, if ``f`` does not depend on sizes in Python (``static_shapes``:
    True for one plan per size, False for symbolic sizes from the start). The cache holds plans for
    at most ``max_plans`` combinations of argument types.

    ``donate_argnums``: arrays that the call may overwrite. ``optimize``, ``exact`` and ``kernels``
    as in ``compile``. ``profile``: the number of calls with the same argument types that run the
    recorded program without passes; after them a plan is compiled in which Python numbers that
    were the same in all of these calls are constants.

    Also a decorator, with or without options, for functions and methods; arrays that an object or
    a partial holds are arguments too. Other Python state is read only when ``f`` is recorded: pass
    it as an argument. Inside a trace or a transform the call records ``f``. See docs/executor.md.

    >>> import numpy as np
    >>> @jit
    ... def step(x, rate):
    ...     return x - rate * np.sin(x)
    >>> step(np.zeros(2), 0.1)
    array([0., 0.])
    >>> step(np.ones(2), 0.2).shape, step.counters["compiles"]
    ((2,), 1)
    """
    for name, value in (("static_argnums", static_argnums), ("donate_argnums", donate_argnums)):
        if type(value) is not tuple or value:
            LATE_BOUND["refuse_argnums"]("jit", value, name)
    if not isinstance(max_plans, int) or max_plans < 1:
        raise DTypeError(
            f"jit: max_plans must be an int from 1, found {max_plans!r}\n"
            "  pass the number of argument types whose plans are kept"
        )
    if profile < 0:
        raise DTypeError(
            f"jit: profile must be an int from 0, found {profile}\n"
            "  pass how many calls with arguments of the same types run the unoptimised program"
        )
    expect_kernels("jit", kernels)
    options = Options(
        static_argnums=_names_as_tuple(static_argnums),
        static_argnames=_names_as_tuple(static_argnames),
        donate_argnums=_names_as_tuple(donate_argnums),
        static_shapes=static_shapes,
        optimize=optimize,
        exact=exact,
        kernels=kernels,
        max_plans=max_plans,
        profile=profile,
    )
    return _jit_with_options(options) if f is None else _jitted(f, options)


def _jit_with_options(options: Options) -> Callable:
    """``jit`` with options, to be applied to a function."""

    @entry_point
    def jit(f: Callable) -> Callable:
        return _jitted(f, options)

    return jit


def _jitted(f: Callable, options: Options) -> Callable:
    """The jitted function of a function, a method, a callable object, or a partial."""
    if not callable(f):
        LATE_BOUND["refuse_unless_function"]("jit", f)
    if isinstance(f, MethodType):
        return _jitted_method(f.__func__, f.__self__, options)
    if isinstance(f, functools.partial) and _bound_arrays(f):
        return jitted_partial(f, options)
    if type(f) is not FunctionType and _is_callable_object(f):
        return _jitted_method(type(f).__call__, f, options)
    return JittedFunction(Executor(f, options))


def jitted_partial(partial: functools.partial, options: Options) -> JittedFunction:
    """The jitted function of a partial, whose bound arrays are arguments of the plans."""
    return JittedFunction(PartialExecutor(partial, options))


def _jitted_method(function: Callable, instance: Any, options: Options) -> Any:
    """The jitted method of an object, for the function that takes the object first."""
    return JittedFunction(Executor(function, shift_positions(options, 1))).__get__(instance)


def shift_positions(options: Options, by: int) -> Options:
    """The options with argument positions shifted by ``by``."""
    shifted: dict[str, Any] = {
        name: tuple([n + by if n >= 0 else n for n in getattr(options, name)])
        for name in ("static_argnums", "donate_argnums")
    }
    return evolve(options, **shifted)


def _names_as_tuple(value) -> tuple:
    """An option as a tuple, also if it is a single number or name."""
    return (value,) if isinstance(value, int | str) else tuple(value)


def _is_callable_object(f: object) -> bool:
    """Whether ``f`` is a user's object whose class defines ``__call__``."""
    if type(f).__module__.partition(".")[0] == "letir":
        return False
    method = next((vars(c)["__call__"] for c in type(f).__mro__ if "__call__" in vars(c)), None)
    return type(method) is FunctionType


def _bound_arrays(partial: functools.partial) -> list:
    """The arrays among the bound arguments of a partial."""
    return [leaf for leaf in flatten((partial.args, partial.keywords))[0] if is_array(leaf)]


def _with_bound(partial: functools.partial) -> Callable:
    """A partial as a function of a list of its bound arrays, and of the remaining arguments."""
    leaves, tree = flatten((partial.args, partial.keywords))
    # None in place of the arrays: the executor must not keep them alive
    others = [None if is_array(leaf) else leaf for leaf in leaves]
    where = [i for i, leaf in enumerate(leaves) if is_array(leaf)]
    del leaves

    @functools.wraps(partial.func)
    def function(arrays, /, *args, **kwargs):
        filled = list(others)
        for i, array in zip(where, arrays, strict=True):
            filled[i] = array
        first, named = tree.unflatten(filled)
        return partial.func(*first, *args, **{**named, **kwargs})

    del function.__wrapped__  # signatures of the wrapped callable would be wrong
    return function

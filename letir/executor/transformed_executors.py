"""Transforms and pickles of jitted functions.

``grad(jit(f))`` is the same jitted function each time, cached on the executor of ``f``, so that all
callers share its plans. A decorated function is pickled by name, as functions are.
"""

import copyreg
import functools
import sys
from collections.abc import Callable
from typing import Any

from attrs import evolve

from letir.ast import LATE_BOUND, load_module, object_by_name
from letir.ast.terms import Lambda
from letir.eval.arguments import mark_static
from letir.executor.calls import executor_name
from letir.executor.executor import Executor
from letir.executor.jit_api import JittedFunction, PartialExecutor, jitted_partial, shift_positions
from letir.transforms.jitted_functions import Transform

_MAX_TRANSFORMS = 64  # transforms per executor: new functions among their options would accumulate


def transformed_function(function: JittedFunction, transform: Transform) -> Any:
    """The transformed function, jitted with the same options; cached by transform."""
    executor = function.__letir_executor__
    result = _cached_function(
        executor, transform.key, lambda: _transformed_python(executor, transform)
    )
    result.__letir_executor__.origin = function, transform
    return result


def transformed_method(executor: Any, transform: Transform) -> Any:
    """The jitted function of the transformed method, which takes the object first."""
    f, options = executor.f, shift_positions(executor.options, -1)

    def make() -> Callable:
        @functools.wraps(f)
        def method(instance, *args, **kwargs):
            bound = functools.partial(f, instance)
            return _with_static(bound, options, transform)(*args, **kwargs)

        return method

    return _cached_function(executor, transform.key and ("method", *transform.key), make)


def _cached_function(executor: Executor, key: tuple | None, make: Callable) -> Any:
    """The jitted function cached under this key, made if there is none."""
    cached = executor.transformed
    result = cached.get(key) if key is not None else None
    if result is None:
        # no donation: the backward pass reads the arguments again
        options = evolve(executor.options, donate_argnums=())
        result = JittedFunction(_executor_like(executor, make(), options))
        if key is not None:
            while len(cached) >= _MAX_TRANSFORMS:
                cached.pop(next(iter(cached)), None)
            # setdefault: concurrent threads get the same function
            result = cached.setdefault(key, result)
    return result


def _executor_like(executor: Executor, f: Callable, options: Any) -> Executor:
    """An executor of another function, with the class and the bound arrays of this one."""
    result: Any = object.__new__(type(executor))
    if isinstance(executor, PartialExecutor):
        result.bound, result.held = executor.bound, executor.held
        result.given_options = executor.given_options
    Executor.__init__(result, f, options)
    return result


def _transformed_python(executor: Any, transform: Transform) -> Callable:
    """The transformed Python function, with the static arguments of the executor."""
    f, options = executor.f, executor.options
    if hasattr(executor, "bound"):  # a partial: the first argument is the list of bound arrays
        return lambda bound, *args, **kwargs: _with_static(
            functools.partial(f, bound), shift_positions(options, -1), transform
        )(*args, **kwargs)
    return _with_static(f, options, transform)


def _with_static(f: Callable, options, transform: Transform) -> Callable:
    """``transform(f)`` with static arguments marked."""
    numbers, names = options.static_argnums, options.static_argnames
    new = transform(f)
    if isinstance(f, Lambda) or not (numbers or names):
        return new

    @functools.wraps(f)
    def with_marked(*args, **kwargs):
        args, kwargs = mark_static(f, args, kwargs, numbers, names)
        return new(*args, **kwargs)

    return with_marked


# ---- pickles ----


def pickled_function(function: JittedFunction) -> Any:
    """The result of ``__reduce__``, by which a jitted function is restored.

    A decorated function is pickled by its name, and unpickled as the same object. cloudpickle
    pickles functions of ``__main__`` as code, as other processes may lack them: it gets the
    Python function. So does pickle if no name refers to the jitted function.
    """
    executor = function.__letir_executor__
    f = executor.f
    if executor.origin is not None:
        transformed, transform = executor.origin
        original = transform.function
        return _transformed_by_name, (
            original.__module__,
            original.__name__,
            transformed,
            transform.options,
        )
    name = executor_name(f)
    is_named = object_by_name(getattr(f, "__module__", None), name) is function
    if is_named and not (f.__module__ == "__main__" and _is_for_cloudpickle()):
        return name
    if isinstance(executor, PartialExecutor):
        return jitted_partial, (executor.held, executor.given_options)
    state = f, executor.options, function.__letir_attributes__
    return copyreg.__newobj__, (JittedFunction,), state  # type: ignore[attr-defined]


def _transformed_by_name(module: str, name: str, executor: Any, options: dict) -> Any:
    return getattr(load_module(module), name)(executor, **options)


def _is_for_cloudpickle() -> bool:
    """Whether cloudpickle, or a copy of it as in joblib, is pickling an object."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("letir."):
        frame = frame.f_back
    return frame is not None and "cloudpickle" in frame.f_globals.get("__name__", "")


LATE_BOUND.update(transformed_function=transformed_function, pickled_function=pickled_function)

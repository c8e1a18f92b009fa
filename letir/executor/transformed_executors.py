"""What transforms make of executors: an executor, kept with the one that it was made of.

``grad(jit(f))`` is the same executor each time, so that its plans are shared by all who ask.
"""

import functools
from collections.abc import Callable

from attrs import evolve

from letir.ast.terms import Lambda
from letir.tracing.entry import mark_static
from letir.transforms.jitted_functions import Transform

_MOST = 64  # transforms of one executor; functions among their options would add up


def transformed(executor, transform: Transform):
    """The executor of the transformed function, with the options of the first; the same one for
    the same transform.
    """
    return _kept(executor, transform.key, lambda: _function_of(executor, transform))


def transformed_method(executor, transform: Transform):
    """The executor of the method that calls the transformed method of its object."""
    f, options = executor.f, _shifted(executor.options, -1)

    def make() -> Callable:
        @functools.wraps(f)
        def method(instance, *args, **kwargs):
            bound = functools.partial(f, instance)
            return _with_static(bound, options, transform)(*args, **kwargs)

        return method

    return _kept(executor, transform.key and ("method", *transform.key), make)


def _kept(executor, key: tuple | None, make: Callable):
    """The executor that is kept by this key, made where there is none."""
    known = executor.transformed
    found = known.get(key) if key is not None else None
    if found is None:
        # donated arguments are read once more on the way back
        found = executor.like(make(), evolve(executor.options, donate_argnums=()))
        if key is not None:
            while len(known) >= _MOST:
                known.pop(next(iter(known)), None)
            # setdefault: threads that ask at once get one
            found = known.setdefault(key, found)
    return found


def _function_of(executor, transform: Transform) -> Callable:
    """The transformed function; what is static for the executor is so for the function in it."""
    f, options = executor.f, executor.options
    if hasattr(executor, "bound"):  # of a partial: the first argument is what that holds
        return lambda bound, *args, **kwargs: _with_static(
            functools.partial(f, bound), _shifted(options, -1), transform
        )(*args, **kwargs)
    return _with_static(f, options, transform)


def _with_static(f: Callable, options, transform: Transform) -> Callable:
    """``transform(f)``, in which static arguments are marked."""
    numbers, names = options.static_argnums, options.static_argnames
    new = transform(f)
    if isinstance(f, Lambda) or not (numbers or names):
        return new

    @functools.wraps(f)
    def with_marked(*args, **kwargs):
        args, kwargs = mark_static(f, args, kwargs, numbers, names)
        return new(*args, **kwargs)

    return with_marked


def _shifted(options, by: int):
    """The options with places of static arguments moved."""
    numbers = tuple([n + by if n >= 0 else n for n in options.static_argnums])
    return evolve(options, static_argnums=numbers)

"""What transforms make of executors: an executor, kept with the one that it was made of.

``grad(jit(f))`` is the same executor each time, so that its plans are shared by all who ask.
"""

import functools
from collections.abc import Callable

from attrs import evolve

from letir.ad.sharing import Transform
from letir.ast.terms import Lambda
from letir.tracing.recording import mark_static

MOST = 64  # transforms of one executor; functions among their options would add up


def transformed(executor, transform: Transform):
    """The executor of the transformed function, with the options of the first; the same one for
    the same transform.
    """
    kept = executor.transformed
    found = kept.get(transform.key) if transform.key is not None else None
    if found is None:
        # donated arguments are read once more on the way back
        options = evolve(executor.options, donate_argnums=())
        found = type(executor)(with_static(executor.f, executor.options, transform), options)
        if transform.key is not None:
            while len(kept) >= MOST:
                kept.pop(next(iter(kept)), None)
            # setdefault: threads that ask at once get one
            found = kept.setdefault(transform.key, found)
    return found


def with_static(f: Callable, options, transform: Transform) -> Callable:
    """The transformed function; what is static for the executor is so for the function in it."""
    numbers, names = options.static_argnums, options.static_argnames
    new = transform(f)
    if isinstance(f, Lambda) or not (numbers or names):
        return new

    @functools.wraps(f)
    def with_marked(*args, **kwargs):
        args, kwargs = mark_static(f, args, kwargs, numbers, names)
        return new(*args, **kwargs)

    return with_marked

"""``jit``: a Python function that is recorded once for each kind of arguments, and then run by
plans.
"""

import functools
import logging
from collections.abc import Callable
from itertools import count

from letir.ast.terms import Lambda
from letir.errors import GuardError
from letir.eval.arguments import nested_results
from letir.plan.cache import PlanCache
from letir.plan.compiling import Compiled
from letir.plan.optimizing import optimized
from letir.plan.spec import ArgumentSpec
from letir.tracing.recorder import ACTIVE, LAZY
from letir.tracing.recording import KEEP, mark_static, record

LOG = logging.getLogger("letir.plan")


class Executor:
    """A function that is recorded and compiled for each kind of arguments, see ``jit``."""

    def __init__(
        self,
        f: Callable,
        *,
        static_argnums=(),
        static_argnames=(),
        donate_argnums=(),
        static_shapes=None,
        optimize=True,
        exact=False,
        max_plans=64,
    ):
        functools.update_wrapper(self, f)
        self.f = f
        self.static_argnums, self.static_argnames = static_argnums, static_argnames
        self.optimize, self.exact = optimize, exact
        self.front: dict = {}
        self.cache = PlanCache(max_plans, on_drop=self.front.clear)
        self.calls = count(1)

    def __call__(self, *args, **kwargs):
        if ACTIVE.get() is not None:
            return self.f(*args, **kwargs)
        return self.general(args, kwargs)

    def general(self, args: tuple, kwargs: dict):
        marked = mark_static(self.f, args, kwargs, self.static_argnums, self.static_argnames)
        spec, leaves = ArgumentSpec.of(*marked)
        fresh, tried = None, set()
        while True:
            entry = self.cache.entry(spec)
            plans = entry.plans
            for plan in plans:
                if plan in tried:
                    continue
                try:
                    return self.result(plan, list(leaves))
                except GuardError:
                    if plan is fresh:
                        raise
                    tried.add(plan)

            def make():
                nonlocal fresh
                fresh = self.compiled(marked)
                return fresh

            if not self.cache.grow(entry, plans, make):
                return self.f(*args, **kwargs)

    def result(self, plan: Compiled, leaves: list):
        return nested_results(plan.program, plan.run_flat(leaves))

    def compiled(self, marked: tuple) -> Compiled:
        fn = self.f if isinstance(self.f, Lambda) else record(self.f, *marked, LAZY, KEEP).fn
        return Compiled(fn, optimized(fn, optimize=self.optimize, exact=self.exact))


def jit(f: Callable | None = None, **options):
    """``f`` compiled for each kind of arguments that it is called with.

    >>> import numpy as np
    >>> fast = jit(lambda x: np.sin(x) * 2.0)
    >>> fast(np.zeros(2))
    array([0., 0.])
    """
    if f is None:
        return functools.partial(jit, **options)
    return Executor(f, **options)

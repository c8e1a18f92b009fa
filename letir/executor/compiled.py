"""``compile``: a program as a callable with an optimised plan."""

import functools
import importlib.util
import os
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from letir.ad.symbolic_zeros import depends_on_defined
from letir.ast import LATE_BOUND, entry_point
from letir.ast.bodies import all_bodies
from letir.ast.terms import Lambda
from letir.ast.types import Undef
from letir.errors import DTypeError, TraceError
from letir.eval.arguments import checked_arguments, flat_arguments, nested_results
from letir.eval.array_modules import array_module
from letir.eval.memory_checks import check_writable
from letir.executor.default_pipeline import optimize_program
from letir.ops.effects.writes_to_arguments import changed_params
from letir.passes.fusion.clustering import pays_as_kernel, reduces_much
from letir.plan.effect_log import EffectLog, is_guard
from letir.plan.plan import Plan, plan_of

_LONG = 32  # operations


class Compiled:
    """A program with its plan; calls take the same arguments and give the same results.

    ``program`` is the original, ``optimized`` the program after the passes, ``plan`` its steps;
    ``reason`` says why it was compiled. ``kernels``: see ``kernel_mode``.
    """

    def __init__(
        self,
        program: Lambda,
        made: Lambda,
        reason: str = "it was asked for",
        donated: tuple = (),
        kernels: str = "off",
    ):
        self.program, self.optimized, self.reason = program, made, reason
        # after a failed guard other plans are tried on the same arguments
        donated = () if any(map(is_guard, made.binds)) else donated
        run = made
        if kernels != "off":
            if _has_loops(run) and _has_compiler():
                run = LATE_BOUND["with_loop_kernels"](run, kernels == "exact")
            if _is_long_chain(run) and _has_compiler():
                run = LATE_BOUND["with_unrolled_kernels"](run, kernels == "exact")
            if _may_have_kernels(run) and _has_compiler():
                run = LATE_BOUND["with_kernels"](run, kernels == "exact")
        self.plan: Plan = Plan(run, donated) if donated else plan_of(run)
        self.changed = changed_params(program)
        self.takes_undef = program.memo(depends_on_defined)
        self.executed = weakref.ref(made)
        self.generators: tuple = ()  # whose states are the last parameters

    @property
    def fallback(self) -> Plan:
        """The plan of the recorded program, without optimisation."""
        return plan_of(self.program)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            leaves = flat_arguments(self.program, args, kwargs)
            del args, kwargs  # else this frame holds the arguments until the end
            return nested_results(self.program, self.run_flat(leaves))
        except BaseException as error:
            LATE_BOUND["fold"](error)
            raise

    def run_flat(self, leaves: list) -> tuple:
        """Flat results for flat arguments; ``leaves`` is emptied."""
        runner = next((leaf for leaf in leaves if hasattr(type(leaf), "__letir_run__")), None)
        if runner is not None:  # inline or record the original program [B5]
            return runner.__letir_run__(self.program, leaves)
        checked_arguments(self.program, leaves)
        # the optimised program of a gradient takes its cotangents as defined
        if self.takes_undef and any(leaf is Undef for leaf in leaves):
            return self.run_fallback(leaves)
        return self.run(leaves)

    @property
    def needs_log(self) -> bool:
        """Whether effects may precede a failing guard."""
        return self.plan.tables[np].log is not None

    def run(self, leaves: list, *, tries: bool = False, log: EffectLog | None = None) -> tuple:
        """``run_flat`` without checks of the arguments; ``tries`` and ``log`` as in ``Plan``."""
        if self.changed:
            if self.generators:
                leaves += LATE_BOUND["generator_states"](self.generators)
            check_writable(self.program, leaves, self.changed)
        return self.plan.run(leaves, array_module(leaves), tries, log)

    def run_fallback(self, leaves: list, log: EffectLog | None = None) -> tuple:
        """``run`` of the recorded program, whose sums are not reassociated."""
        if self.changed:
            if self.generators:
                leaves += LATE_BOUND["generator_states"](self.generators)
            check_writable(self.program, leaves, self.changed)
        return self.fallback.run(leaves, array_module(leaves), log=log)

    def __repr__(self):
        return f"<compiled program of {len(self.optimized)} binds>"


def expect_kernels(where: str, asked: str | None) -> None:
    """Raise DTypeError for an option ``kernels`` that does not exist."""
    if asked not in (None, "on", "off"):
        raise DTypeError(
            f'{where}: kernels must be "on", "off" or None, found {asked!r}\n'
            "  leave it out for kernels where they pay"
        )


def kernels_setting() -> str:
    """The variable ``LETIR_KERNELS``: "on", the default, or "off"."""
    asked = os.environ.get("LETIR_KERNELS", "on")
    expect_kernels("the environment variable LETIR_KERNELS", asked)
    return asked


@functools.cache
def _has_compiler() -> bool:
    """Whether llvmlite, which the extra ``fast`` installs, is there."""
    return importlib.util.find_spec("llvmlite") is not None


def kernel_mode(asked: str | None, *, optimize: bool, exact: bool) -> str:
    """Which groups may run as kernels: "on", all; "exact", those with the bits of NumPy; "off"."""
    if not optimize or (asked or kernels_setting()) == "off":
        return "off"
    return "exact" if exact else "on"


def _is_long_chain(fn: Lambda) -> bool:
    """Whether a program has so many operations that a kernel for many of them may pay."""
    bodies = [bind.attrs["body"].binds for bind in fn.binds if bind.op.role == "fused"]
    return len(fn.binds) + sum(map(len, bodies)) >= _LONG


def _has_loops(fn: Lambda) -> bool:
    """Whether a program has a loop of its own."""
    return any(bind.op.bodies is not None and bind.op.bodies.loop for bind in fn.binds)


def _may_have_kernels(fn: Lambda) -> bool:
    """Whether a group of ``fn``, at any depth, may become a kernel."""
    bodies = [fn]
    for bind in fn.binds:
        if bind.op.holds_lambdas:
            bodies = all_bodies(fn)
            break
    for body in bodies:
        for bind in body.binds:
            if bind.op.role == "fused" and pays_as_kernel(bind.attrs["body"]):
                return True
            if bind.op.reduction is not None and reduces_much(bind):
                return True
    return False


@entry_point
def compile(
    fn: Lambda,
    *,
    optimize: bool = True,
    exact: bool = False,
    donate: Sequence[int] = (),
    kernels: str | None = None,
) -> Compiled:
    """A plan for ``fn``: a callable with the same arguments and results, which runs faster.

    ``optimize`` runs all passes; without it only those that a plan requires run. ``exact``: results
    have NumPy's bits; no sum is reassociated. ``donate``: positions of (flat) parameters whose
    memory a call may overwrite. ``kernels``: "on" or "off", groups of operations as machine code;
    by default as the variable ``LETIR_KERNELS`` says. See docs/executor.md and docs/kernels.md.

    >>> import numpy as np
    >>> from letir import trace
    >>> f = compile(trace(lambda x: np.sin(x) * 2.0, np.zeros(2)))
    >>> f(np.zeros(2))
    array([0., 0.])
    """
    if not isinstance(fn, Lambda):
        raise TraceError(
            f"compile: expected a program, found {type(fn).__name__}\n"
            "  trace the function first, or take letir.jit(f), which does so for each new type"
        )
    expect_kernels("compile", kernels)
    made = optimize_program(fn, optimize=optimize, exact=exact)
    if donate:
        LATE_BOUND["refuse_positions"]("compile: donate", donate, len(fn.params))
    donated = tuple([n % len(fn.params) for n in donate])
    mode = kernel_mode(kernels, optimize=optimize, exact=exact)
    return Compiled(fn, made, donated=donated, kernels=mode)

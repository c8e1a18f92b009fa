"""``compile``: a program as a callable with an optimised plan."""

import logging
import os
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from letir.ad.symbolic_zeros import depends_on_defined
from letir.ast import LATE_BOUND, entry_point
from letir.ast.process_state import paused_gc
from letir.ast.signatures import dir_of
from letir.ast.terms import Lambda
from letir.ast.types import Undef
from letir.errors import DTypeError, TraceError
from letir.eval.arguments import checked_arguments, flat_arguments, nesting_of
from letir.eval.array_modules import array_module, cupy_module, dask_module, evaluator_of
from letir.eval.float_warnings import restore_abandoned_state
from letir.eval.memory_checks import check_writable
from letir.executor.default_pipeline import has_compiler, may_have_kernels, optimize_program
from letir.ops.effects.writes_to_arguments import changed_params
from letir.plan.effect_log import EffectLog, is_guard
from letir.plan.plan import Plan, plan_of

_LOG = logging.getLogger("letir.plan")
_CALLS_UNTIL_QUICK = 8
_MANY_BINDS = 1000  # for which it is worth while to pause the garbage collector


def compile_reason(executor: Any, request: Any, key: Any) -> str:
    """A readable reason why a plan is made."""
    if executor.latest is None:
        return "it is the first call"
    if key.has_names:
        return "the sizes differ from the call before, and become symbols"
    return LATE_BOUND["spec_difference"](executor.f, request.marked, key, executor.latest)


class Compiled:
    """A program with its plan; calls take the same arguments and give the same results.

    ``program`` is the original, ``optimized`` the program after the passes, ``plan`` its steps;
    ``reason`` says why it was compiled. ``kernels``: see ``kernel_mode``; ``later``: whether
    kernels are compiled in the background, and ``is_waiting`` is True until the plan has them.
    ``on_device``: whether the plan is for arrays on a device; else a second one is made for these
    when they come.
    """

    __dir__ = dir_of("kernels", "memory", "optimized", "plan", "profile", "program")
    generators: tuple = ()  # captured ones, whose states are the last parameters
    runs_python_next = False  # whether later calls with such arguments run the Python function
    makes_generator = False  # recorded while it made a generator that its next call uses
    calls = 0  # the number of calls that check their arguments
    quick: tuple | None = None  # (match, run, nest) for calls like one before
    on_swap: Callable = staticmethod(lambda: None)  # called when the plan is replaced

    def __init__(
        self,
        program: Lambda,
        optimized: Lambda,
        reason: str = "it was asked for",
        donated: tuple = (),
        kernels: str = "off",
        later: bool = False,
        on_device: bool = False,
    ):
        self.program, self.optimized, self.reason = program, optimized, reason
        self.options = reason, donated, kernels
        self.on_device = on_device
        # after a failed guard other plans are tried on the same arguments
        donated, run = () if any(map(is_guard, optimized.binds)) else donated, optimized
        self.changed = changed_params(program)
        self.drawing: tuple[int, ...] = ()  # positions of generators that draw without state copies
        if self.changed and any(bind.op.random for bind in optimized.binds):
            run, self.drawing = LATE_BOUND["with_generator_arguments"](optimized)
        if kernels == "on" and any(bind.op.product == "subscripts" for bind in run.binds):
            run = LATE_BOUND["with_einsum_products"](run)
        self.before_kernels = run
        later = later and kernels != "off" and has_compiler()
        self.is_waiting = later
        if not later and kernels != "off":
            run = _with_kernels(run, kernels, on_device)
        self.plan: Plan = _make_plan(run, donated)
        self.device_plan: Plan | None = self.plan if on_device or kernels == "off" else None
        if later:
            make = partial(_plan_with_kernels, run, kernels, donated, on_device)
            LATE_BOUND["compile_later"](self, make)
        self.arrays = tuple([n for n in self.changed if n not in self.drawing])  # changed ones
        self.takes_undef = program.memo(depends_on_defined)
        self.executed = weakref.ref(optimized)  # for ``last_executed_graph``; identifies the plan

    def swap_plan(self, plan: Plan | None) -> None:
        """Run ``plan`` from now on; None keeps the present plan, which is then final."""
        self.plan = plan or self.plan
        self.device_plan = self.plan if self.on_device else self.device_plan
        self.is_waiting = False  # callers may store the plan from now on
        self.calls, self.quick = 0, None
        self.on_swap()

    def plan_on(self, xp: Any) -> Plan:
        """The plan for the arrays of a device, where other groups are worth a kernel."""
        if self.device_plan is None:
            made = _plan_with_kernels(self.before_kernels, self.options[-1], (), on_device=True)
            self.device_plan = made or plan_of(self.before_kernels)
        return self.device_plan

    @property
    def fallback(self) -> Plan:
        """The plan of the recorded program, without optimisation."""
        return plan_of(self.program)

    @property
    def kernels(self) -> tuple:
        """The kernels of the plan, see ``Plan.kernels``."""
        return self.plan.kernels

    def memory(self, **sizes: int) -> Any:
        """The most bytes that the next call holds at once, see ``Plan.memory``."""
        return self.plan.memory(**sizes)

    def profile(self, *args: Any, **kwargs: Any) -> Any:
        """Time and bytes by group of a call with these arguments, a ``PlanProfile``.

        The program runs three times, or once if it has effects.
        """
        leaves = flat_arguments(self.program, args, kwargs)
        checked_arguments(self.program, leaves)
        return self.plan.profile(leaves)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        restore_abandoned_state()
        try:
            if self.quick is not None:
                match, run, nest = self.quick
                leaves = match(args, kwargs)
                if leaves is not None:
                    del args, kwargs
                    return nest(run(leaves))
            calls = self.calls = self.calls + 1  # read once: another thread may count, too
            if calls == _CALLS_UNTIL_QUICK and not self.is_waiting:
                self.quick = LATE_BOUND["quick_plan"](self, args, kwargs)
            leaves = flat_arguments(self.program, args, kwargs)
            nest = nesting_of(self.program, args, kwargs)
            del args, kwargs  # else this frame holds the arguments until the end
            return nest(self.run_flat(leaves))
        except BaseException as error:
            LATE_BOUND["shorten_traceback"](error)
            raise

    def run_flat(self, leaves: list) -> tuple:
        """Flat results for flat arguments; ``leaves`` is emptied."""
        runner = next((leaf for leaf in leaves if hasattr(type(leaf), "__letir_run__")), None)
        if runner is not None:  # inline or record the original program [semantics.md B5]
            return runner.__letir_run__(self.program, leaves)
        checked_arguments(self.program, leaves)
        # the optimised program of a gradient assumes that its cotangents are defined
        if self.takes_undef and any(leaf is Undef for leaf in leaves):
            return self.run_fallback(leaves)
        return self.run(leaves)

    @property
    def needs_log(self) -> bool:
        """Whether effects may precede a failing guard."""
        return self.plan.tables[np].log is not None

    def run(self, leaves: list, *, tries: bool = False, log: EffectLog | None = None) -> tuple:
        """``run_flat`` without checks of the arguments; ``tries`` and ``log`` as in ``Plan``."""
        if self.drawing:
            return LATE_BOUND["run_with_generators"](self, leaves, tries, log)
        if self.changed:
            self._prepare_changes(leaves)
        xp = array_module(leaves, self.program.params)
        if xp is not np and xp is dask_module():
            return evaluator_of(leaves).call(self.optimized, leaves)
        plan = self.plan if xp is np else self.plan_on(xp)
        return plan.run(leaves, xp, tries, log)

    def runner(self, leaves: Sequence[Any]) -> Callable[..., tuple]:
        """``run`` for leaves of the same classes and devices, which are not Dask arrays."""
        if self.changed or self.is_waiting:
            return self.run
        xp = np if cupy_module() is None else array_module(leaves)
        return self.plan.run if xp is np else partial(self.plan_on(xp).run, xp=xp)

    def _prepare_changes(self, leaves: list) -> None:
        """Add the states of the generators that the program advances; check that it may write."""
        if self.generators:
            leaves += LATE_BOUND["generator_states"](self.generators)
        check_writable(self.program, leaves, self.changed)

    def run_fallback(self, leaves: list, log: EffectLog | None = None) -> tuple:
        """``run`` of the recorded program, whose sums are not reassociated."""
        if self.changed:
            self._prepare_changes(leaves)
        xp = array_module(leaves, self.program.params)
        if xp is not np and xp is dask_module():
            return evaluator_of(leaves).call(self.program, leaves)
        return self.fallback.run(leaves, xp, log=log)

    def __reduce__(self):
        return Compiled, (self.program, self.optimized, *self.options)  # the plan is made again

    def _repr_html_(self):
        return LATE_BOUND["compiled_html"](self)

    def __repr__(self):
        return f"<compiled program of {len(self.optimized)} binds>"


def expect_kernels(where: str, option: str | None) -> None:
    """Raise DTypeError for an option ``kernels`` that does not exist."""
    if option not in (None, "on", "off", "background"):
        raise DTypeError(
            f'{where}: kernels must be "on", "off", "background" or None, found {option!r}\n'
            "  leave it out for kernels where they pay"
        )


def kernels_setting() -> str:
    """The variable ``LETIR_KERNELS``: "on", the default, "off" or "background"."""
    option = os.environ.get("LETIR_KERNELS", "on")
    expect_kernels("the environment variable LETIR_KERNELS", option)
    return option


def kernel_mode(option: str | None, *, optimize: bool, exact: bool) -> str:
    """Which groups may become kernels: "on" (all), "exact" (with NumPy's bits), or "off" (none)."""
    if not optimize or (option or kernels_setting()) == "off":
        return "off"
    return "exact" if exact else "on"


def are_in_background(option: str | None) -> bool:
    """Whether kernels are compiled in the background."""
    return (option or kernels_setting()) == "background"


def _make_plan(fn: Lambda, donated: tuple) -> Plan:
    if len(fn.binds) < _MANY_BINDS:
        return Plan(fn, donated) if donated else plan_of(fn)
    with paused_gc():
        return Plan(fn, donated) if donated else plan_of(fn)


def _plan_with_kernels(
    fn: Lambda, kernels: str, donated: tuple, on_device: bool = False
) -> Plan | None:
    """The plan of ``fn`` with kernels; None if no group becomes a kernel."""
    result = _with_kernels(fn, kernels, on_device)
    return None if result is fn else _make_plan(result, donated)


def _with_kernels(fn: Lambda, kernels: str, on_device: bool = False) -> Lambda:
    """``fn`` with kernels of all kinds in this mode; ``fn`` itself if no group becomes a kernel.

    ``on_device``: kernels that can be launched on a device.
    """
    if kernels == "off" or not (on_device or may_have_kernels(fn)):
        return fn
    result: Lambda = LATE_BOUND["with_all_kernels"](fn, kernels == "exact", on_device)
    return result


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
    memory a call may overwrite. ``kernels``: "on" or "off", whether groups of operations become
    machine code, or "background", while NumPy computes the first calls; the default is the
    environment variable ``LETIR_KERNELS``, or else "on". See docs/executor.md and docs/kernels.md.

    >>> import numpy as np
    >>> from letir import trace
    >>> f = compile(trace(lambda x: np.sin(x) * 2.0, np.zeros(2)))
    >>> f(np.zeros(2))
    array([0., 0.])
    """
    if not isinstance(fn, Lambda):
        raise TraceError(
            f"compile: expected a program, found {LATE_BOUND['describe_value'](fn)}\n"
            "  pass letir.trace(f, *args); or use letir.jit(f), which traces f by itself"
        )
    expect_kernels("compile", kernels)
    mode = kernel_mode(kernels, optimize=optimize, exact=exact)
    optimized = optimize_program(fn, optimize=optimize, exact=exact, kernels=mode)
    if donate:
        LATE_BOUND["refuse_positions"]("compile: donate", donate, len(fn.params))
    donated = tuple([n % len(fn.params) for n in donate])
    return Compiled(fn, optimized, donated=donated, kernels=mode, later=are_in_background(kernels))

"""``Request``: one call that looks for its plan, with the helpers that prepare its arguments.

Also ``debug_state()``: the plans and counters of an executor, for people and for tests.
"""

from collections.abc import Callable
from itertools import count
from typing import Any

from attrs import define, field, frozen

from letir.ast import LATE_BOUND
from letir.ast.pytrees import flatten
from letir.ast.terms import Lambda
from letir.errors import GuardError, LetirError
from letir.executor.argument_spec import ArgumentSpec
from letir.executor.compiled import Compiled
from letir.executor.plan_cache import Entry
from letir.plan.effect_log import EffectLog, is_guard
from letir.plan.plan import Plan, plan_of
from letir.tracing.entry import StaticLeaf, TypedLeaf

_MOST_LINES = 3  # lines of guards that are told


@define(eq=False)
class Request:
    """One call that looks for its plan: number, spec, arrays, and arguments with static marks."""

    number: int
    spec: ArgumentSpec
    leaves: list
    marked: tuple[tuple, dict]
    reason: str = ""
    wants_fixed: bool = False  # no plan for symbolic sizes
    log: EffectLog = field(factory=EffectLog)  # effects of plans whose guards failed

    def forget(self) -> None:
        """Drop the arguments, which a stored exception would otherwise keep alive."""
        self.leaves, self.marked, self.log = [], ((), {}), EffectLog()


def dynamic_leaves(leaves: Any, places: list[int] | None) -> list:
    """A new list of the leaves that are not static."""
    return list(leaves) if places is None else [leaves[i] for i in places]


def attempt_plan(version: Any, leaves: list, log: EffectLog) -> tuple:
    """The results of a plan; raises GuardError if its guards fail."""
    if type(version) is not Compiled:
        return version.run(leaves)
    return version.run(leaves, tries=True, log=log)


def failed_guard(error: GuardError, version: Any) -> str:
    """The reason for a compile after this error of a plan, with the lines of its guards."""
    told = str(error).partition("\n")[0]
    guards = [bind for bind in version.program.binds if is_guard(bind) and bind.source]
    lines = dict.fromkeys([bind.source.short for bind in guards])
    places = " or ".join(lines) if 0 < len(lines) <= _MOST_LINES else ""
    return f"a guard failed{' at ' + places if places else ''}: {told}"


def needs_log(version: Any) -> bool:
    """Whether effects may precede a failing guard of this plan."""
    return type(version) is Compiled and version.needs_log


def fall_back(version: Any, request: Request) -> tuple | None:
    """The results of a plan's recorded program, without optimisation; None if a guard fails."""
    leaves = list(request.leaves)
    try:
        if type(version) is not Compiled:
            return version.run_fallback(leaves)
        return version.run_fallback(leaves, request.log)
    except GuardError:
        return None


def may_run_again(error: Exception, entry: Entry, executed: Any) -> bool:
    """Whether the call can be completed in another way, after a plan raised ``error``.

    ``executed``: the reference by which the plan is known.
    """
    if isinstance(error, GuardError):
        return True
    if isinstance(error, LetirError | MemoryError | RecursionError):
        return False
    versions = [version for version in entry.plans if version.executed is executed]
    # donated arrays may be overwritten by now
    return not any(type(v) is Compiled and v.plan.donated for v in versions)


def promote_plan(entry: Entry, version: Any) -> None:
    """Move the plan that ran to the front of its entry: it is tried first next time."""
    if entry.plans[0] is not version:
        with entry.lock:
            others = [plan for plan in entry.plans if plan is not version]
            if len(others) < len(entry.plans):
                entry.plans = (version, *others)


def donated_positions(args: tuple, argnums: tuple[int, ...]) -> tuple[int, ...]:
    """The parameter positions of these positional arguments, among marked arguments."""
    if not argnums:
        return ()
    LATE_BOUND["refuse_positions"]("jit: donate_argnums", argnums, len(args))
    chosen, place = {n % len(args) for n in argnums}, 0
    found: list[int] = []
    for i, arg in enumerate(args):
        count = sum(type(leaf) not in (StaticLeaf, bool, str) for leaf in flatten(arg)[0])
        if i in chosen:
            found += range(place, place + count)
        place += count
    return tuple(found)


def with_types(marked: tuple[tuple, dict], kinds: list) -> tuple[tuple, dict]:
    """Marked arguments in which arrays have these types, whose sizes may be symbolic."""
    leaves, tree = flatten(marked)
    new = iter(kinds)
    typed: Any = tree.unflatten(
        [
            leaf if type(leaf) in (StaticLeaf, bool, str) else _typed_argument(leaf, next(new))
            for leaf in leaves
        ]
    )
    return typed


def _typed_argument(leaf, kind):
    """An argument of this type."""
    # 0-d: also whether it is an array, which += changes in place, or a scalar
    return TypedLeaf(kind, leaf) if kind.shape else leaf


def counter_value(counter: count) -> int:
    """The next value of a counter, without advancing it."""
    return int(repr(counter)[len("count(") : -1])


def executor_name(f: Callable) -> str:
    """The readable name of a function."""
    return getattr(f, "__qualname__", None) or type(f).__name__


@frozen(eq=False)
class GradientState:
    """The executor of one gradient program of a differentiable graph.

    ``forward`` and ``graph``: the programs of the graph and of its gradient, for the results with a
    gradient in ``has_gradient`` and the operands in ``wanted``. ``plans``: the plans made so far,
    for arrays, or under ``create_graph`` for Variables.
    """

    forward: Lambda
    graph: Lambda
    has_gradient: tuple[bool, ...]
    wanted: tuple[bool, ...]
    plans: tuple

    def __str__(self):
        reached = ", ".join(str(i) for i, is_there in enumerate(self.has_gradient) if is_there)
        return (
            f"executor of a gradient: {len(self.graph)} binds for the gradient of result "
            f"{reached}, {len(self.plans)} plans"
        )


def gradient_states(version: Any) -> tuple[GradientState, ...]:
    """The gradient executors of a plan for Variables that have run; () for other plans."""
    return tuple(
        GradientState(graph.f, backward.program, mask, requires, tuple(backward.made.values()))
        for graph in getattr(version, "graphs", ())
        for (mask, requires), backward in list(graph.backwards.items())
    )


@frozen(eq=False)
class PlanState:
    """The state of one plan: its spec, and the reason why it was made.

    ``graph`` is the recorded program and ``fallback`` its plan; ``optimized`` is the program after
    the passes and ``plan`` the plan that runs; ``gradients`` are the executors of its gradients.
    """

    spec: object
    reason: str
    used: int  # the number of the last call with these arguments
    graph: Lambda
    optimized: Lambda
    plan: object
    gradients: tuple[GradientState, ...] = ()

    @property
    def fallback(self) -> Plan:
        """The plan of the recorded graph, which runs where the optimised plan must not."""
        return plan_of(self.graph)

    def __str__(self):
        return (
            f"({self.spec}): {len(self.optimized)} binds of {len(self.graph)}, "
            f"last used by call {self.used}, made because {self.reason}"
            + "".join([f"\n    {gradient}" for gradient in self.gradients])
        )


@frozen(eq=False, repr=False)
class ExecutorState:
    """The plans of an executor, most recently used first, and its counters."""

    function: str
    counters: dict[str, int]
    plans: tuple[PlanState, ...]

    @property
    def graph(self) -> Lambda | None:
        """The recorded program of the most recently used plan; None before the first call."""
        return self.plans[0].graph if self.plans else None

    @property
    def fallback(self) -> Plan:
        """The plan of that recorded program, without optimisation."""
        return self.plans[0].fallback if self.plans else None

    def __repr__(self):
        counted = ", ".join(f"{n} {name}" for name, n in self.counters.items())
        return "\n".join([f"{self.function}: {counted}", *[f"  {plan}" for plan in self.plans]])


def executor_state(executor: Any, name: str) -> ExecutorState:
    """The state of the executor of this name."""
    entries = sorted(executor.cache.entries.values(), key=lambda e: e.used, reverse=True)
    plans = [
        PlanState(
            *(entry.key, getattr(version, "reason", ""), entry.used),
            *(version.program, version.optimized, getattr(version, "plan", version)),
            gradient_states(version),
        )
        for entry in entries
        for version in entry.plans
    ]
    return ExecutorState(name, executor.counters, tuple(plans))

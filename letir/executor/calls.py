"""``Request``: one call on its way to a plan, and what is done with plans and arguments on it.

What an executor says of itself: ``debug_state()``, for people and for tests.
"""

from collections.abc import Callable
from itertools import count

from attrs import define, field, frozen

from letir.ast.pytrees import flatten
from letir.ast.terms import Lambda
from letir.ast.types import ShapeDtype
from letir.executor.argument_spec import ArgumentSpec
from letir.executor.compiled import Compiled
from letir.executor.plan_cache import Entry
from letir.plan.effect_log import EffectLog
from letir.plan.plan import plan_of
from letir.tracing.entry import StaticLeaf


@define(eq=False)
class Request:
    """One call that looks for its plan: its number, spec, arrays, and marked arguments."""

    number: int
    spec: ArgumentSpec
    leaves: list
    marked: tuple
    reason: str = ""
    wants_fixed: bool = False  # no plan for named sizes
    log: EffectLog = field(factory=EffectLog)  # of what plans did whose guards failed

    def forget(self) -> None:
        """Let go of the arguments: an exception that is kept would keep them."""
        self.leaves, self.marked, self.log = [], ((), {}), EffectLog()


def taken(leaves, places: list[int] | None) -> list:
    """A new list of those leaves that are no static values."""
    return list(leaves) if places is None else [leaves[i] for i in places]


def attempt(version, leaves: list, log: EffectLog) -> tuple:
    """The results of a plan whose guards may fail."""
    if type(version) is not Compiled:
        return version.run(leaves)
    return version.run(leaves, tries=True, log=log)


def needs_log(version) -> bool:
    """Whether effects may have happened when a guard of this plan fails."""
    return type(version) is Compiled and version.needs_log


def fall_back(version, request: Request) -> tuple:
    """The results of a plan's program as it was recorded."""
    leaves = list(request.leaves)
    if type(version) is not Compiled:
        return version.run_fallback(leaves)
    return version.run_fallback(leaves, request.log)


def promote(entry: Entry, version) -> None:
    """Let the plan that ran be the first that is tried next time."""
    if entry.plans[0] is not version:
        with entry.lock:
            others = [plan for plan in entry.plans if plan is not version]
            if len(others) < len(entry.plans):
                entry.plans = (version, *others)


def donated(args: tuple, argnums: tuple[int, ...]) -> tuple[int, ...]:
    """The parameters that positional arguments are, of marked arguments."""
    if not argnums:
        return ()
    chosen, found, place = {n % len(args) for n in argnums}, [], 0
    for i, arg in enumerate(args):
        count = sum(type(leaf) not in (StaticLeaf, bool, str) for leaf in flatten(arg)[0])
        if i in chosen:
            found += range(place, place + count)
        place += count
    return tuple(found)


def with_types(marked: tuple, kinds: list) -> tuple:
    """Marked arguments with types in the place of arrays."""
    leaves, tree = flatten(marked)
    new = iter(kinds)
    return tree.unflatten(
        [
            leaf if type(leaf) in (StaticLeaf, bool, str) else _typed(leaf, next(new))
            for leaf in leaves
        ]
    )


def _typed(leaf, kind):
    """The argument of which only this type is known."""
    # of one without axes also whether it is an array, which += changes, or a scalar
    return ShapeDtype(kind.shape, kind.dtype, kind.weak) if kind.shape else leaf


def reached(counter: count) -> int:
    """What ``next`` would give, without taking it."""
    return int(repr(counter)[len("count(") : -1])


def name_of(f: Callable) -> str:
    """What people call a function."""
    return getattr(f, "__qualname__", None) or type(f).__name__


@frozen(eq=False)
class PlanState:
    """One plan: what it is for, why it was made, and what of.

    ``graph`` is the program as it was recorded, ``fallback`` the plan of that, ``optimized`` what
    the passes made of it, ``plan`` what runs.
    """

    spec: object
    reason: str
    used: int  # the number of the call that used its kind of arguments last
    graph: Lambda
    optimized: Lambda
    plan: object

    @property
    def fallback(self):
        """The plan of the graph as it was recorded: what runs where the optimised one must not."""
        return plan_of(self.graph)

    def __str__(self):
        return (
            f"({self.spec}): {len(self.optimized)} binds of {len(self.graph)}, "
            f"last used by call {self.used}, made because {self.reason}"
        )


@frozen(eq=False, repr=False)
class ExecutorState:
    """The plans of an executor, that which was used last first, and its counters."""

    function: str
    counters: dict[str, int]
    plans: tuple[PlanState, ...]

    @property
    def graph(self) -> Lambda | None:
        """The program of the plan that was used last; None before the first call."""
        return self.plans[0].graph if self.plans else None

    @property
    def fallback(self):
        """The plan of that program as it was recorded."""
        return self.plans[0].fallback if self.plans else None

    def __repr__(self):
        counted = ", ".join(f"{n} {name}" for name, n in self.counters.items())
        return "\n".join([f"{self.function}: {counted}", *[f"  {plan}" for plan in self.plans]])


def state_of(executor, name: str) -> ExecutorState:
    """The state of an executor called ``name``."""
    entries = sorted(executor.cache.entries.values(), key=lambda e: e.used, reverse=True)
    plans = [
        PlanState(
            *(entry.key, getattr(version, "reason", ""), entry.used),
            *(version.program, version.optimized, getattr(version, "plan", version)),
        )
        for entry in entries
        for version in entry.plans
    ]
    return ExecutorState(name, executor.counters, tuple(plans))

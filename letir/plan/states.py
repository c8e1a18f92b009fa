"""What an executor says of itself: ``debug_state()``, for people and for tests."""

from attrs import frozen

from letir.ast.terms import Lambda
from letir.plan.slots import plan_of


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

"""``memory_timeline``: the memory of a call of a plan, step by step, and when each array exists."""

from attrs import define, field, frozen

from letir.ast.terms import Bind
from letir.executor.measurements.plan_memory import PlanBuffer, SimulatedRun, memory_text
from letir.plan.plan import RUNS_BY_STEPS, Plan


@frozen(eq=False)
class LiveArray:
    """An array of a plan. It exists from step ``first`` to step ``last``, both included."""

    bind: Bind
    bytes: int
    first: int
    last: int

    @property
    def text(self) -> str:
        """The operation that makes the array, and its type."""
        return memory_text(self.bind)


@frozen(eq=False)
class MemoryTimeline:
    """The memory of a call of a plan.

    ``steps``: the bind of each step; ``live``: the bytes that exist at each step, including
    temporary arrays of the step; ``arrays``: in the order in which they are made. Arguments and
    constants are not counted. ``is_exact``: as in ``PlanMemory``.
    """

    steps: tuple[Bind, ...]
    live: tuple[int, ...]
    arrays: tuple[LiveArray, ...]
    is_exact: bool

    @property
    def peak_at(self) -> int:
        """The first step with the most bytes; -1 without steps."""
        return self.live.index(max(self.live)) if self.live else -1

    @property
    def peak(self) -> int:
        """The most bytes at once."""
        return max(self.live, default=0)

    def at_peak(self) -> list[LiveArray]:
        """The arrays that exist at the peak, the largest first."""
        n = self.peak_at
        result = [array for array in self.arrays if array.first <= n <= array.last]
        return sorted(result, key=lambda array: array.bytes, reverse=True)


def memory_timeline(plan: Plan, sizes: dict[str, int]) -> MemoryTimeline:
    """The memory of the next call of a plan; ``sizes``: the values of symbolic sizes.

    Linear in the number of steps.
    """
    is_often = plan.straight is not None or plan.runs + 1 >= RUNS_BY_STEPS
    run, count = _NotingRun(plan, sizes, is_often), len(plan.table.steps)
    run.run(count)
    remaining = [(buffer, first, count) for buffer, first in run.buffers_at.items()]  # results
    spans = sorted([*run.spans, *remaining], key=lambda span: span[1])
    arrays = [
        LiveArray(buffer.bind, buffer.bytes, first, last)
        for buffer, first, last in spans
        if buffer.bind is not None
    ]
    steps = tuple([plan.table.bind_at(n) for n in range(count)])
    return MemoryTimeline(steps, tuple(run.noted), tuple(arrays), run.is_exact)


@define(eq=False)
class _NotingRun(SimulatedRun):
    """A simulated run that notes the bytes of each step, and when each array is made and freed."""

    at: int = 0
    noted: list[int] = field(factory=list)
    spans: list[tuple[PlanBuffer, int, int]] = field(factory=list)
    buffers_at: dict[PlanBuffer, int] = field(factory=dict)  # array -> its first step

    def step(self, n: int, step: tuple) -> None:
        """One step."""
        self.at = n
        SimulatedRun.step(self, n, step)

    def note_bytes(self, n: int, live: int) -> None:
        """Note the bytes that exist at step ``n``."""
        SimulatedRun.note_bytes(self, n, live)
        self.noted.append(live)

    def allocate(self, buffer: PlanBuffer) -> None:
        """Count the memory of a new array."""
        SimulatedRun.allocate(self, buffer)
        if buffer in self.buffers:
            self.buffers_at.setdefault(buffer, self.at)

    def free(self, buffer: PlanBuffer) -> None:
        """Remove the memory of an array from the count."""
        SimulatedRun.free(self, buffer)
        self.spans.append((buffer, self.buffers_at.pop(buffer), self.at))

"""Backward with worker threads: steps that do not wait for each other run side by side [E3].

A step is ready when all its users are done. What they contributed to its gradient is summed in
their order, not in that of arrival, so that results are bitwise those of one thread.
"""

import threading
from collections import defaultdict
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context

from letir.ast.attrs import NO_ATTRS
from letir.eager.backward.engine import Backward
from letir.eager.tape import Constant, GradEdge, Part, TapeNode, owner
from letir.errors import TraceError
from letir.ops.elementwise.ufuncs import add
from letir.tracing.source_locations import error_at_user_line

_FIRST = (float("-inf"), 0)  # the place of a seed: before the contributions of all steps


class _ParallelBackward(Backward):
    """``Backward`` whose steps run in ``workers`` threads; NumPy computes large arrays in parallel.

    Hooks run in these threads, each with the context (``no_grad`` and others) of the caller.
    """

    def __init__(self, workers: int, *args):
        super().__init__(*args)
        self.workers = workers
        self.made = threading.local()  # .by_step: the contributions of the step of this thread
        self.contributions: dict[GradEdge, list] = defaultdict(list)  # (place, gradient) of each

    def run(self, seeds) -> dict[GradEdge, object]:
        """Carry the gradients ``seeds`` to the leaves. The first exception, in the order of the
        steps, is raised when the steps that run have ended.
        """
        for origin, ct in seeds:
            self.add(origin, _FIRST, ct)
        waits_for = self.users([owner(origin) for origin, _ in seeds])
        ready = [step for step, count in waits_for.items() if count == 0]
        running: dict[Future, TapeNode] = {}
        with ThreadPoolExecutor(self.workers, "letir-backward") as pool:
            try:
                while ready or running:
                    for step in ready:
                        # a context a step: one context cannot be entered by two threads at once
                        running[pool.submit(copy_context().run, self.work, step)] = step
                    ready = self.ended(running, waits_for)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return self.finish()

    def ended(
        self, running: dict[Future, TapeNode], waits_for: dict[TapeNode, int]
    ) -> list[TapeNode]:
        """Wait until some steps have ended, note what they contribute, and return those that are
        ready now.
        """
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        ready = []
        # so that errors have an order
        for future in sorted(done, key=lambda future: -running[future].order):
            step = running.pop(future)
            for place, (origin, ct) in enumerate(future.result()):
                self.add(origin, (-step.order, place), ct)
            ready += self.freed_by(step, waits_for)
        return ready

    def users(self, starts: list[GradEdge]) -> dict[TapeNode, int]:
        """How many steps contribute to each step that ``starts`` lead to."""
        count: dict[TapeNode, int] = {}
        todo = [start for start in starts if isinstance(start, TapeNode)]
        while todo:
            step = todo.pop()
            if step not in count:  # each once; the second loop counts its uses
                count[step] = 0
                todo += self.made_by(step)
        for step in tuple(count):
            for user_of in self.made_by(step):
                count[user_of] += 1
        return count

    def made_by(self, step: TapeNode) -> list[TapeNode]:
        """The steps, once for each use, whose results ``step`` gives a gradient to."""
        args = [a for a in step.args if a is not None and type(a) is not Constant]
        found = [owner(arg) for arg in args if arg in self.needed]
        return [made for made in found if isinstance(made, TapeNode)]

    def freed_by(self, step: TapeNode, waits_for: dict[TapeNode, int]) -> list[TapeNode]:
        """The steps that waited for ``step`` only."""
        found = []
        for made in self.made_by(step):
            waits_for[made] -= 1
            if waits_for[made] == 0:
                found.append(made)
        return found

    def add(self, origin: GradEdge, place: tuple, ct) -> None:
        """Note a contribution to the gradient of a value."""
        self.contributions[origin].append((place, ct))
        if type(origin) is Part:
            parts = self.parts.setdefault(origin.step, [None] * len(origin.step.form.types))
            parts[origin.index] = origin

    def work(self, step: TapeNode) -> list[tuple[GradEdge, object]]:
        """Run one step, in a worker, and return what it contributes."""
        self.made.by_step = found = []
        results = [part for part in self.parts.get(step, [step]) if part is not None]
        # no lock: all users are done, so that only this thread has these origins now
        if any(result in self.contributions for result in results):
            for result in results:
                self.total(result)
            self.step(step)
        return found

    def contribute(self, origin: GradEdge, ct) -> None:
        """Collect what the step of this thread contributes."""
        if ct is not None:
            self.made.by_step.append((origin, ct))

    def total(self, origin: GradEdge) -> None:
        """Sum the contributions to a value, in the order in which one thread would make them."""
        (_, ct), *others = sorted(self.contributions.pop(origin), key=lambda pair: pair[0])
        for _, other in others:
            ct = self.emitter.apply(add, (ct, other), NO_ATTRS)
        self.cotangents[origin] = ct

    def first_place(self, origin: GradEdge) -> tuple:
        """That of the first contribution to a value."""
        return min(place for place, _ in self.contributions[origin])

    def finish(self) -> dict[GradEdge, object]:
        """The gradients of the leaves, and of what else is wanted."""
        for origin in sorted(self.contributions, key=self.first_place):
            self.total(origin)
        for origin in tuple(self.cotangents):
            self.taken(origin)
        return self.found


def engine(workers: int, *args) -> Backward:
    """``Backward(*args)`` with this number of threads.

    Gradients with a history are recorded in one thread: their history has an order too.
    """
    if type(workers) is not int or workers < 1:
        raise error_at_user_line(
            TraceError(f"backward: workers is a number of threads, found {workers!r}")
        )
    records = args[0]
    return Backward(*args) if workers == 1 or records else _ParallelBackward(workers, *args)

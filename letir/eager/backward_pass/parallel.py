"""The backward pass with worker threads: independent nodes run side by side [semantics.md E3].

A node is ready when all users of its results are done. Their contributions to its gradient are
summed in tape order, not in order of arrival: results are bitwise those of a single thread.
"""

import threading
from collections import defaultdict
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Any

from letir.ast.attrs import NO_ATTRS
from letir.eager.backward_pass.engine import Backward
from letir.eager.tape import Constant, GradEdge, ResultEdge, TapeNode, owning_node
from letir.errors import TraceError
from letir.ops.elementwise.ufuncs import add
from letir.tracing.source_locations import error_at_user_line

_FIRST = (float("-inf"), 0)  # the position of a seed: before the contributions of all nodes


class _ParallelBackward(Backward):
    """``Backward`` whose nodes run in ``workers`` threads: NumPy releases the lock on large arrays.

    Hooks run in these threads, each with the context (``no_grad`` and others) of the caller.
    """

    def __init__(self, workers: int, *args):
        super().__init__(*args)
        self.workers = workers
        self.of_thread = threading.local()  # .of_node: contributions of the node that it runs
        self.contributions: dict[GradEdge, list] = defaultdict(list)  # (position, gradient) pairs

    def run(self, seeds) -> dict[GradEdge, object]:
        """Propagate the gradients ``seeds`` to the leaves.

        The first exception in tape order is raised once the running nodes have ended.
        """
        for edge, ct in seeds:
            self.add_contribution(edge, _FIRST, ct)
        waits_for = self.count_contributors([owning_node(edge) for edge, _ in seeds])
        ready = [node for node, count in waits_for.items() if count == 0]
        running: dict[Future, TapeNode] = {}
        with ThreadPoolExecutor(self.workers, "letir-backward") as pool:
            try:
                while ready or running:
                    for node in ready:
                        # a context for each node: two threads cannot enter one context at once
                        running[pool.submit(copy_context().run, self.run_node, node)] = node
                    ready = self.collect_ended(running, waits_for)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return self.finish_leaves()

    def collect_ended(
        self, running: dict[Future, TapeNode], waits_for: dict[TapeNode, int]
    ) -> list[TapeNode]:
        """Wait until some nodes have ended, collect their contributions, and return the nodes that
        have become ready.
        """
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        ready = []
        # in tape order, so that the same error is raised in every run
        for future in sorted(done, key=lambda future: -running[future].order):
            node = running.pop(future)
            for place, (edge, ct) in enumerate(future.result()):
                self.add_contribution(edge, (-node.order, place), ct)
            ready += self.nodes_made_ready(node, waits_for)
        return ready

    def count_contributors(self, starts: list[GradEdge]) -> dict[TapeNode, int]:
        """The number of contributing nodes for each node reachable from ``starts``."""
        count: dict[TapeNode, int] = {}
        todo = [start for start in starts if isinstance(start, TapeNode)]
        while todo:
            node = todo.pop()
            if node not in count:  # visit each node once; the second loop counts its uses
                count[node] = 0
                todo += self.operand_nodes(node)
        for node in tuple(count):
            for user_of in self.operand_nodes(node):
                count[user_of] += 1
        return count

    def operand_nodes(self, node: TapeNode) -> list[TapeNode]:
        """The nodes to whose results ``node`` contributes a gradient, once for each use."""
        args = [a for a in node.args if a is not None and type(a) is not Constant]
        owners = [owning_node(arg) for arg in args if arg in self.needed]
        return [owner for owner in owners if isinstance(owner, TapeNode)]

    def nodes_made_ready(self, node: TapeNode, waits_for: dict[TapeNode, int]) -> list[TapeNode]:
        """The nodes that become ready after ``node``: they were waiting for nothing else."""
        result = []
        for operand in self.operand_nodes(node):
            waits_for[operand] -= 1
            if waits_for[operand] == 0:
                result.append(operand)
        return result

    def add_contribution(self, edge: GradEdge, place: tuple, ct) -> None:
        """Collect a contribution to the gradient of a value."""
        self.contributions[edge].append((place, ct))
        if type(edge) is ResultEdge:
            parts = self.parts.setdefault(edge.node, [None] * len(edge.node.spec.types))
            parts[edge.index] = edge

    def run_node(self, node: TapeNode) -> list[tuple[GradEdge, object]]:
        """Run one node in a worker thread, and return its contributions."""
        contributions: list[tuple[GradEdge, object]] = []
        self.of_thread.of_node = contributions
        results = [part for part in self.parts.get(node, [node]) if part is not None]
        # no lock: all users are done, so only this thread touches these edges now
        if any(result in self.contributions for result in results):
            for result in results:
                self.sum_contributions(result)
            self.propagate(node)
        return contributions

    def contribute(self, edge: Any, ct: Any) -> None:
        """Collect a contribution of this thread's current node."""
        if ct is not None:
            self.of_thread.of_node.append((edge, ct))

    def sum_contributions(self, edge: GradEdge) -> None:
        """Sum the contributions to a value in the order of a single-threaded pass."""
        (_, ct), *others = sorted(self.contributions.pop(edge), key=lambda pair: pair[0])
        for _, other in others:
            ct = self.emitter.apply(add, (ct, other), NO_ATTRS)
        self.cotangents[edge] = ct

    def first_place(self, edge: GradEdge) -> tuple:
        """The position of the first contribution to a value."""
        return min(place for place, _ in self.contributions[edge])

    def finish_leaves(self) -> dict[GradEdge, object]:
        """The gradients of the leaves and of the wanted edges."""
        for edge in sorted(self.contributions, key=self.first_place):
            self.sum_contributions(edge)
        for edge in tuple(self.cotangents):
            self.finish_cotangent(edge)
        return self.gradients


def make_engine(workers: int, *args: Any) -> Backward:
    """``Backward(*args)`` with this number of threads.

    With ``create_graph`` the pass runs in one thread, because its own tape needs an order.
    """
    if type(workers) is not int or workers < 1:
        raise error_at_user_line(
            TraceError(
                f"backward: workers must be a number of threads, found {workers!r}\n"
                "  pass a whole number from 1"
            )
        )
    records = args[0]
    return Backward(*args) if workers == 1 or records else _ParallelBackward(workers, *args)

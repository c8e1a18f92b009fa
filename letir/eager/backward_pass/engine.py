"""``Backward``: the reverse transform over a recorded tape, emitting into an executor that computes
immediately or, under ``create_graph``, into a recorder [semantics.md D15].

Nodes run from the last to the first: ``order`` grows with time, so every user of a value has run
before the node that made it, and its gradient is complete. Contributions are summed in the order in
which they are made, starting with the last user.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Any

from letir.ad.reverse import Direct
from letir.ast.attrs import NO_ATTRS
from letir.eager.compiled_rules import compiled_kernel_of
from letir.eager.grad_mode import ANOMALY
from letir.eager.hooks import call_hooks, hooked_gradient
from letir.eager.recorder import Recorder
from letir.eager.tape import (
    FREED,
    Constant,
    GradEdge,
    Leaf,
    ResultEdge,
    TapeNode,
    check_unchanged,
    freed_error,
    node_line,
)
from letir.eval.computing_emitter import ComputingEmitter
from letir.eval.nan_checks import has_nan
from letir.ops.elementwise.ufuncs import add

# nodes and edges of the tape, where ``Direct`` has binds and locals
_TapeNode = Any
_TapeEdge = Any
_SUM = compiled_kernel_of(add, NO_ATTRS)  # called for every further use of a value


class _Everything:
    """The set that contains everything: the default of ``needed``."""

    def __contains__(self, item) -> bool:
        return True


class Backward(Direct):
    """One backward pass: ``run(seeds)`` puts the gradients of leaves and of the edges in ``wanted``
    into ``gradients``.

    ``records``: whether the gradients get a history; ``keeps``: whether nodes keep their saved
    values for another pass; ``needed``: the edges that lead to ``wanted``, None for all edges.
    """

    needed: Any
    cotangents: dict[Any, Any]

    def __init__(self, records: bool, keeps: bool, wanted=(), needed=None):
        self.records, self.keeps = records, keeps
        self.emitter = Recorder() if records else ComputingEmitter()
        self.needs_all = needed is None
        self.needed = _Everything() if needed is None else needed
        self.wanted = frozenset(wanted)
        self.gradients: dict[GradEdge, object] = {}
        self.cotangents = {}
        # node with several results -> the edges of its results, None where there is no gradient
        self.parts: dict[TapeNode, list] = {}
        self.queue: list[tuple[int, TapeNode]] = []
        self.finds_nan = ANOMALY.get()
        self.is_short = not (records or self.finds_nan)

    def run(self, seeds: Iterable[tuple[GradEdge, Any]]) -> dict[GradEdge, object]:
        """Propagate the gradients ``seeds``, pairs (edge, gradient), to the leaves."""
        for edge, ct in seeds:
            self.contribute(edge, ct)
        queue = self.queue
        while queue:
            self.propagate(heappop(queue)[1])
        # only leaves have cotangents left: nodes have consumed the others
        for leaf in tuple(self.cotangents):
            self.finish_cotangent(leaf)
        return self.gradients

    def propagate(self, node: _TapeNode) -> None:
        """Run one node; an exception gets a note that names it.

        Most nodes take the short path, which has no calls for hooks, several results or a recorded
        history: see benchmarks, row "eager".
        """
        try:
            spec, saved = node.spec, node.kept
            # notes: hooks, changes, .grad
            if not (spec.is_short and self.is_short) or node.notes is not None:
                super().propagate(node)
                return
            ct = self.cotangents.pop(node)
            if node in self.wanted:
                self.gradients[node] = ct
            for position in spec.watched:
                if node[position] is not None and node[position].notes is not None:
                    check_unchanged(node[position], node)
            if saved is FREED and spec.rule.captured:
                raise freed_error(node)
            # the rule, compiled to straight-line code
            cotangents = spec.backward(ct, *(spec.unpack(saved) if saved else ()))
            if not self.keeps:
                node.kept = FREED
            for place, ct in zip(spec.rule.results, cotangents):  # noqa: B905  ``strict`` is slower
                if self.needs_all or node[place] in self.needed:
                    self.contribute(node[place], ct)
        except Exception as error:
            error.add_note(f"letir: in the backward of {node.spec.op.name}{node_line(node)}")
            raise

    def contribute(self, edge: _TapeEdge, ct: Any) -> None:
        """Add ``ct`` to the gradient of a value, and queue the node that made it."""
        if ct is None:
            return
        cts = self.cotangents
        if edge in cts:
            cts[edge] = self.sum_gradients(cts[edge], ct)
            return
        cts[edge] = ct
        if isinstance(edge, TapeNode):
            # orders are unique, so the heap never compares nodes
            heappush(self.queue, (-edge.order, edge))
        elif type(edge) is ResultEdge:
            self.contribute_part(edge)

    def sum_gradients(self, x: Any, y: Any) -> Any:
        """The sum of two gradients."""
        return self.emitter.apply(add, (x, y), NO_ATTRS) if self.records else _SUM(x, y)

    def contribute_part(self, edge: ResultEdge) -> None:
        """Note that one of several results has a gradient."""
        node = edge.node
        if node not in self.parts:
            self.parts[node] = [None] * len(node.spec.types)
            heappush(self.queue, (-node.order, node))
        self.parts[node][edge.index] = edge

    def has_cotangent(self, node: _TapeNode) -> bool:
        """Always true: a queued node has a cotangent."""
        return True

    def rule(self, node: _TapeNode) -> Any:
        """The rule for the set of results that have a gradient."""
        parts = self.parts.get(node)
        mask = None if parts is None else tuple([part is not None for part in parts])
        return node.spec.rule_for(mask)

    def captured(self, rule: Any, node: _TapeNode) -> Any:
        """The saved values that the rule reads, as Variables if the backward pass is recorded."""
        if not rule.captured:
            return ()
        values = node.spec.read(rule, node)
        if not self.records:
            return values
        edges = node.spec.edges(rule, node)
        return [self.variable(*pair) for pair in zip(values, edges, strict=True)]

    def variable(self, value: Any, edge: GradEdge | None) -> Any:
        """A saved value as a Variable with its grad edge."""
        constant = edge is None or type(edge) is Constant
        return value if constant else self.emitter.new_variable(value, edge)

    def emit(self, rule: Any, node: _TapeNode, captured: Any) -> tuple:
        """The results of the rule, with hooks run before and after; then saved values are freed."""
        parts = self.parts.pop(node, None)  # None: one result, whose edge is the node itself
        if parts is None:
            cts = [self.finish_cotangent(node)]
        else:
            cts = [None if part is None else self.finish_cotangent(part) for part in parts]
        notes = node.notes
        if notes is not None and notes.before:
            cts = self.run_node_hooks(notes.before, cts)
        # pre-hooks see the results' gradients, post-hooks also the operands' gradients
        result = node.spec.pull(rule, self.emitter, cts, captured)
        if notes is not None and notes.after:
            result = self.run_post_hooks(notes.after, rule, node, result, cts)
        if not self.keeps:
            node.kept = FREED
        if self.finds_nan:
            _check_nan(node, result)
        return result

    def finish_cotangent(self, edge: GradEdge) -> Any:
        """The complete gradient of a value, after its hooks."""
        ct = self.cotangents.pop(edge)
        notes = edge.notes
        if notes is not None:
            if notes.hooks:
                ct = self.from_hook_argument(
                    hooked_gradient(notes.hooks, self.as_hook_argument(ct), self)
                )
            if notes.keeps_grad:  # after the hooks: .grad is the gradient that is passed on
                notes.grad = add_gradient(notes.grad, ct)
        if type(edge) is Leaf or edge in self.wanted:
            self.gradients[edge] = ct
        return ct

    # ---- hooks ----

    def as_hook_argument(self, ct: Any) -> Any:
        """A gradient in the form for hooks: a Variable, or None."""
        return ct if ct is None or self.records else Recorder.variable(ct)

    def from_hook_argument(self, ct: Any) -> Any:
        """A gradient in the form for rules."""
        return ct if ct is None or self.records else ct.array

    def run_node_hooks(self, hooks: dict, cts: Any, *others: Any) -> list:
        """The gradients ``cts`` after the node's ``hooks`` have run on them."""
        replaced = call_hooks(hooks, tuple(map(self.as_hook_argument, cts)), *others)
        return list(map(self.from_hook_argument, replaced))

    def run_post_hooks(
        self, hooks: dict, rule: Any, node: TapeNode, operand_cts: tuple, cts: Any
    ) -> tuple:
        """The gradients of the operands after the post-hooks, which see ``cts`` as well."""
        inputs: list = [None] * len(node.args)
        for position, ct in zip(rule.results, operand_cts, strict=True):
            inputs[position] = ct
        inputs = self.run_node_hooks(hooks, inputs, tuple(map(self.as_hook_argument, cts)))
        return tuple([inputs[position] for position in rule.results])


def add_gradient(previous: Any, ct: Any) -> Any:
    """The sum of an accumulated gradient and a new one."""
    ct = ct if isinstance(ct, Recorder.variable) else Recorder.variable(ct)
    return ct if previous is None else previous + ct


def _check_nan(node: TapeNode, cotangents: tuple) -> None:
    """Raise FloatingPointError that names the operation if its derivative made a nan."""
    for ct in cotangents:
        if ct is not None and has_nan(getattr(ct, "array", ct)):
            name = node.spec.op.name
            raise FloatingPointError(f"backward of {name} produced the first nan{node_line(node)}")

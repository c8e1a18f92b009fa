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
_Node = Any
_Edge = Any
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
        for origin, ct in seeds:
            self.contribute(origin, ct)
        queue = self.queue
        while queue:
            self.step(heappop(queue)[1])
        # only leaves have cotangents left: nodes have consumed the others
        for leaf in tuple(self.cotangents):
            self.finish_cotangent(leaf)
        return self.gradients

    def step(self, step: _Node) -> None:
        """Run one node; an exception gets a note that names it.

        Most nodes take the short path, which has no calls for hooks, several results or a recorded
        history: see benchmarks, row "eager".
        """
        try:
            form, saved = step.form, step.kept
            # notes: hooks, changes, .grad
            if not (form.is_short and self.is_short) or step.notes is not None:
                super().step(step)
                return
            ct = self.cotangents.pop(step)
            if step in self.wanted:
                self.gradients[step] = ct
            for position in form.watched:
                if step[position] is not None and step[position].notes is not None:
                    check_unchanged(step[position], step)
            if saved is FREED and form.rule.captured:
                raise freed_error(step)
            # the rule, compiled to straight-line code
            cotangents = form.backward(ct, *(form.unpack(saved) if saved else ()))
            if not self.keeps:
                step.kept = FREED
            for place, ct in zip(form.rule.results, cotangents):  # noqa: B905  ``strict`` is slower
                if self.needs_all or step[place] in self.needed:
                    self.contribute(step[place], ct)
        except Exception as error:
            error.add_note(f"letir: in the backward of {step.form.op.name}{node_line(step)}")
            raise

    def contribute(self, origin: _Edge, ct: Any) -> None:
        """Add ``ct`` to the gradient of a value, and queue the node that made it."""
        if ct is None:
            return
        cts = self.cotangents
        if origin in cts:
            cts[origin] = self.sum_gradients(cts[origin], ct)
            return
        cts[origin] = ct
        if isinstance(origin, TapeNode):
            # orders are unique, so the heap never compares nodes
            heappush(self.queue, (-origin.order, origin))
        elif type(origin) is ResultEdge:
            self.contribute_part(origin)

    def sum_gradients(self, x: Any, y: Any) -> Any:
        """The sum of two gradients."""
        return self.emitter.apply(add, (x, y), NO_ATTRS) if self.records else _SUM(x, y)

    def contribute_part(self, origin: ResultEdge) -> None:
        """Note that one of several results has a gradient."""
        step = origin.step
        if step not in self.parts:
            self.parts[step] = [None] * len(step.form.types)
            heappush(self.queue, (-step.order, step))
        self.parts[step][origin.index] = origin

    def has_cotangent(self, step: _Node) -> bool:
        """Always true: a queued node has a cotangent."""
        return True

    def rule(self, step: _Node) -> Any:
        """The rule for the set of results that have a gradient."""
        parts = self.parts.get(step)
        mask = None if parts is None else tuple([part is not None for part in parts])
        return step.form.rule_for(mask)

    def captured(self, rule: Any, step: _Node) -> Any:
        """The saved values that the rule reads, as Variables if the backward pass is recorded."""
        if not rule.captured:
            return ()
        values = step.form.read(rule, step)
        if not self.records:
            return values
        origins = step.form.origins(rule, step)
        return [self.variable(*pair) for pair in zip(values, origins, strict=True)]

    def variable(self, value: Any, origin: GradEdge | None) -> Any:
        """A saved value as a Variable with its grad edge."""
        constant = origin is None or type(origin) is Constant
        return value if constant else self.emitter.new_variable(value, origin)

    def emit(self, rule: Any, step: _Node, captured: Any) -> tuple:
        """The results of the rule, with hooks run before and after; then saved values are freed."""
        parts = self.parts.pop(step, None)  # None: one result, whose edge is the node itself
        if parts is None:
            cts = [self.finish_cotangent(step)]
        else:
            cts = [None if part is None else self.finish_cotangent(part) for part in parts]
        notes = step.notes
        if notes is not None and notes.before:
            cts = self.run_node_hooks(notes.before, cts)
        # pre-hooks see the results' gradients, post-hooks also the operands' gradients
        result = step.form.pull(rule, self.emitter, cts, captured)
        if notes is not None and notes.after:
            result = self.run_post_hooks(notes.after, rule, step, result, cts)
        if not self.keeps:
            step.kept = FREED
        if self.finds_nan:
            _check_nan(step, result)
        return result

    def finish_cotangent(self, origin: GradEdge) -> Any:
        """The complete gradient of a value, after its hooks."""
        ct = self.cotangents.pop(origin)
        notes = origin.notes
        if notes is not None:
            if notes.hooks:
                ct = self.from_hook_argument(
                    hooked_gradient(notes.hooks, self.as_hook_argument(ct), self)
                )
            if notes.keeps_grad:  # after the hooks: .grad is the gradient that is passed on
                notes.grad = add_gradient(notes.grad, ct)
        if type(origin) is Leaf or origin in self.wanted:
            self.gradients[origin] = ct
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
        self, hooks: dict, rule: Any, step: TapeNode, operand_cts: tuple, cts: Any
    ) -> tuple:
        """The gradients of the operands after the post-hooks, which see ``cts`` as well."""
        inputs: list = [None] * len(step.args)
        for position, ct in zip(rule.results, operand_cts, strict=True):
            inputs[position] = ct
        inputs = self.run_node_hooks(hooks, inputs, tuple(map(self.as_hook_argument, cts)))
        return tuple([inputs[position] for position in rule.results])


def add_gradient(previous: Any, ct: Any) -> Any:
    """The sum of an accumulated gradient and a new one."""
    ct = ct if isinstance(ct, Recorder.variable) else Recorder.variable(ct)
    return ct if previous is None else previous + ct


def _check_nan(step: TapeNode, cotangents: tuple) -> None:
    """Raise FloatingPointError that names the operation if its derivative made a nan."""
    for ct in cotangents:
        if ct is not None and has_nan(getattr(ct, "array", ct)):
            name = step.form.op.name
            raise FloatingPointError(f"backward of {name} produced the first nan{node_line(step)}")

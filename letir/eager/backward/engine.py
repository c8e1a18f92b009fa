"""``Backward``: the reverse transform over recorded steps, into an executor that computes at once
or, under ``create_graph``, into a recorder [D15].

Steps run from the last to the first: ``order`` grows with time, so that every user of a value has
run before the step that made it, and its gradient is the full sum. Contributions are summed in the
order in which they are made, that of the last user first.
"""

from collections.abc import Sequence
from heapq import heappop, heappush

from letir.ad.reverse import Direct
from letir.ast.attrs import NO_ATTRS
from letir.eager.compiled_rules import kernel
from letir.eager.grad_mode import ANOMALY
from letir.eager.hooks import changed, changed_one
from letir.eager.recorder import Recorder
from letir.eager.tape import (
    FREED,
    Constant,
    GradEdge,
    Leaf,
    Part,
    TapeNode,
    at,
    check_unchanged,
    freed,
)
from letir.eval.evaluator import Executor, has_nan
from letir.ops.elementwise.ufuncs import add

_SUM = kernel(add, NO_ATTRS)  # NumPy's own where it can be: called for every second use of a value


class _Everything:
    """Contains all: what is needed where nothing says otherwise."""

    def __contains__(self, item) -> bool:
        return True


class Backward(Direct):
    """One run of backward: ``run(seeds)`` puts the full gradients of leaves, and of the origins
    that are ``wanted``, into ``found``.

    ``records``: whether the gradients get a history; ``keeps``: whether steps keep their values for
    another run; ``needed``: the origins on the way to those that are wanted, None for all.
    """

    def __init__(self, records: bool, keeps: bool, wanted=(), needed=None):
        self.records, self.keeps = records, keeps
        self.emitter = Recorder() if records else Executor()
        self.needs_all = needed is None
        self.needed = _Everything() if needed is None else needed
        self.wanted = frozenset(wanted)
        self.found: dict[GradEdge, object] = {}
        self.cotangents: dict[GradEdge, object] = {}
        self.parts: dict[
            TapeNode, list
        ] = {}  # of steps with several results: those with a gradient
        self.queue: list[tuple[int, TapeNode]] = []
        self.finds_nan = ANOMALY.get()
        self.is_short = not (records or self.finds_nan)

    def run(self, seeds) -> dict[GradEdge, object]:
        """Carry the gradients ``seeds``, of (origin, gradient), to the leaves."""
        for origin, ct in seeds:
            self.contribute(origin, ct)
        queue = self.queue
        while queue:
            self.step(heappop(queue)[1])
        for leaf in tuple(self.cotangents):  # what no step has taken: leaves
            self.taken(leaf)
        return self.found

    def step(self, step: TapeNode) -> None:
        """Run one step; an exception says which.

        Nearly all steps go the short way, without the calls that hooks, several results and a
        history need: see benchmarks, row "eager".
        """
        try:
            form, kept = step.form, step.kept
            # notes: hooks, changes, .grad
            if not (form.is_short and self.is_short) or step.notes is not None:
                super().step(step)
                return
            ct = self.cotangents.pop(step)
            if step in self.wanted:
                self.found[step] = ct
            for position in form.watched:
                if step[position] is not None and step[position].notes is not None:
                    check_unchanged(step[position], step)
            if kept is FREED and form.rule.captured:
                raise freed(step)
            # the rule as straight-line code
            found = form.backward(ct, *(form.unpack(kept) if kept else ()))
            if not self.keeps:
                step.kept = FREED
            for place, ct in zip(form.rule.results, found):  # noqa: B905  strict takes its time
                if self.needs_all or step[place] in self.needed:
                    self.contribute(step[place], ct)
        except Exception as error:
            error.add_note(f"letir: in the backward of {step.form.op.name}{at(step)}")
            raise

    def contribute(self, origin: GradEdge, ct) -> None:
        """Add ``ct`` to the gradient of a value, and let its step be run."""
        if ct is None:
            return
        cts = self.cotangents
        if origin in cts:
            cts[origin] = self.plus(cts[origin], ct)
            return
        cts[origin] = ct
        if isinstance(origin, TapeNode):
            # no two orders are equal: steps never compare
            heappush(self.queue, (-origin.order, origin))
        elif type(origin) is Part:
            self.contribute_part(origin)

    def plus(self, x, y):
        """The sum of two gradients."""
        return self.emitter.apply(add, (x, y), NO_ATTRS) if self.records else _SUM(x, y)

    def contribute_part(self, origin: Part) -> None:
        """Note that one of several results has a gradient."""
        step = origin.step
        if step not in self.parts:
            self.parts[step] = [None] * len(step.form.types)
            heappush(self.queue, (-step.order, step))
        self.parts[step][origin.index] = origin

    def has_cotangent(self, step: TapeNode) -> bool:
        """It has: only such steps are in the queue."""
        return True

    def rule(self, step: TapeNode):
        """The rule for the gradients that there are."""
        parts = self.parts.get(step)
        mask = None if parts is None else tuple([part is not None for part in parts])
        return step.form.rule_for(mask)

    def captured(self, rule, step: TapeNode) -> Sequence:
        """The kept values that the rule reads, with their history where this is recorded."""
        if not rule.captured:
            return ()
        values = step.form.read(rule, step)
        if not self.records:
            return values
        origins = step.form.origins(rule, step)
        return [self.variable(*pair) for pair in zip(values, origins, strict=True)]

    def variable(self, value, origin: GradEdge | None):
        """A kept value as the Variable that it was."""
        constant = origin is None or type(origin) is Constant
        return value if constant else self.emitter.wrapped(value, origin)

    def emit(self, rule, step: TapeNode, captured) -> tuple:
        """What the rule computes, between the hooks; then the step's values go free."""
        parts = self.parts.pop(step, None)  # None: one result, which is the step itself
        if parts is None:
            cts = [self.taken(step)]
        else:
            cts = [None if part is None else self.taken(part) for part in parts]
        notes = step.notes
        if notes is not None and notes.before:
            cts = self.hooked(notes.before, cts)
        # what hooks see before and after: [E2]
        found = step.form.pull(rule, self.emitter, cts, captured)
        if notes is not None and notes.after:
            found = self.after(notes.after, rule, step, found, cts)
        if not self.keeps:
            step.kept = FREED
        if self.finds_nan:
            _check_nan(step, found)
        return found

    def taken(self, origin: GradEdge):
        """The full gradient of a value, as its hooks leave it."""
        ct = self.cotangents.pop(origin)
        notes = origin.notes
        if notes is not None:
            if notes.hooks:
                ct = self.hidden(changed_one(notes.hooks, self.shown(ct)))
            if notes.keeps_grad:  # after the hooks: .grad is what goes on [E2]
                notes.grad = accumulated(notes.grad, ct)
        if type(origin) is Leaf or origin in self.wanted:
            self.found[origin] = ct
        return ct

    # ---- hooks ----

    def shown(self, ct):
        """A gradient as hooks see it: a Variable, or None."""
        return ct if ct is None or self.records else Recorder.variable(ct)

    def hidden(self, ct):
        """A gradient as rules take it."""
        return ct if ct is None or self.records else ct.array

    def hooked(self, hooks: dict, cts, *others) -> list:
        """Gradients after hooks have seen them."""
        found = changed(hooks, tuple(map(self.shown, cts)), *others)
        return list(map(self.hidden, found))

    def after(self, hooks: dict, rule, step: TapeNode, found: tuple, cts) -> tuple:
        """The gradients of the operands after the post-hooks, which see those of the results."""
        inputs: list = [None] * len(step.args)
        for position, ct in zip(rule.results, found, strict=True):
            inputs[position] = ct
        inputs = self.hooked(hooks, inputs, tuple(map(self.shown, cts)))
        return tuple([inputs[position] for position in rule.results])


def accumulated(previous, ct):
    """The gradient of a Variable after another ``backward``."""
    ct = ct if isinstance(ct, Recorder.variable) else Recorder.variable(ct)
    return ct if previous is None else previous + ct


def _check_nan(step: TapeNode, found: tuple) -> None:
    """Raise FloatingPointError that names the step if it made a nan."""
    for ct in found:
        if ct is not None and has_nan(getattr(ct, "array", ct)):
            name = step.form.op.name
            raise FloatingPointError(f"backward of {name} made the first nan{at(step)}")

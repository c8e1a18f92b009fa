"""``Graph``: a differentiable graph as eager mode runs it, one step of a history with a backward
that is a program of its own.

Its forward is a plan on arrays. Its backward is made at the first backward, for those results that
have a gradient then, and is run by ``Backward``: a plan again, or where the gradients get a history
of their own (``create_graph``) a differentiable program, with graphs inside.
"""

import threading
from collections.abc import Callable, Sequence

from attrs import define, field, frozen

from letir.ad.zeros import UNDEFINED, specialize_undef
from letir.ast.terms import Bind, Lambda, Local, Ret
from letir.ast.types import ArrayType, Undef
from letir.eager.forms import Form, array_type, picker
from letir.eager.recorder import RECORDER, Recorder
from letir.eager.steps import (
    FREED,
    ORDER,
    Constant,
    Origin,
    Part,
    Step,
    check_unchanged,
    freed,
    step_at,
)
from letir.eval.arrays import array_module, is_array
from letir.passes.cleanup import dead_code
from letir.passes.merging import merged_sums
from letir.passes.signs import carried_signs
from letir.plan.slots import plan_of
from letir.tracing.orders import IN_C_ORDER, NEW
from letir.visitors.usedef import use_counts

# Operations whose results are new arrays, beside the elementwise ones.
FRESH = NEW | IN_C_ORDER | {"fused", "matmul", "dot", "index_set", "index_add", "copy"}


@define(eq=False)
class Backward:
    """The gradient program for the results that have a gradient.

    ``captured``: the positions, among operands then results, of what it reads; ``results``: the
    operands whose gradients it gives. An executor of its own: what it runs is made when it is
    needed, on arrays, or on Variables of which some require grad.
    """

    program: Lambda
    captured: tuple[int, ...]
    results: tuple[int, ...]
    making: "Making"
    missing: tuple = ()  # as a rule has it: operands of which nothing is known
    made: dict = field(factory=dict)  # by which arguments require grad, None for arrays
    lock: threading.RLock = field(factory=threading.RLock, repr=False)

    def run(self, values: list, records: bool) -> tuple:
        """The gradients, None for those that are zero; ``values`` is emptied."""
        if not records:
            found = self.plan(None).run(values, array_module(values))
            return tuple([None if ct is Undef else ct for ct in found])
        requires = tuple([getattr(value, "requires_grad", False) for value in values])
        return self.plan(requires).run_flat(values)

    def plan(self, requires: tuple | None):
        """What runs it, made once."""
        found = self.made.get(requires)
        if found is None:
            with self.lock:
                found = self.made.get(requires)
                if found is None:
                    found = self.made[requires] = self.making.plan(self.program, requires)
        return found


@frozen(eq=False)
class Making:
    """How programs of graphs become what runs them: ``optimize(program, requires_grad=)``, and
    ``record(program, optimized, requires_grad, making)``, for Variables.
    """

    optimize: Callable
    record: Callable

    def plan(self, program: Lambda, requires: tuple | None):
        """What runs a program on arrays, or on Variables that require grad where it is said."""
        if requires is None:
            return plan_of(self.optimize(program))
        made = self.optimize(program, requires_grad=requires)
        return self.record(program, made, requires, self)


@frozen(eq=False)
class GraphForm(Form):
    """Answers for one graph what a ``Form`` answers for one operation."""

    graph: "Graph"
    requires: tuple[bool, ...]  # by operand, as in this call
    places: dict[int, int]  # where in what a step keeps an operand or result is

    def rule_for(self, mask: tuple | None) -> Backward:
        """The gradient program where these results have a gradient."""
        return self.graph.backward((True,) * len(self.types) if mask is None else mask, self)

    def read(self, rule: Backward, step: Step) -> Sequence:
        """The values that the gradient program reads.

        Raises TraceError if one went free, or was changed in place.
        """
        kept, count, places = step.kept, len(step), self.places
        if kept is FREED:
            raise freed(step)
        exposed = step.notes is not None and not self.graph.exposed.isdisjoint(rule.captured)
        if exposed:  # a result was changed that lies in the memory of something which is read
            check_unchanged(step, step)
        for place in rule.captured:
            origin = step[place] if place < count else None
            if origin is not None and origin.notes is not None:
                check_unchanged(origin, step)
        return [kept[places[place]] for place in rule.captured]

    def origins(self, rule: Backward, step: Step) -> list[Origin | None]:
        """The origins of these values; None for constants, also among the results of the graph."""
        count, flows = len(step), self.graph.flows
        found: list = []
        for place in rule.captured:
            n = place - count
            if n < 0:
                found.append(step[place])
            else:
                found.append(Part.of(self.types[n], step, n) if n in flows else None)
        return found

    def pull(self, rule: Backward, emitter, cts: list, captured: Sequence) -> tuple:
        """The gradients of the operands, as ``rule.results`` says."""
        given = [ct for ct in cts if ct is not None]
        return rule.run([*given, *captured], isinstance(emitter, Recorder))


@define(eq=False)
class Graph:
    """One ``differentiable_graph`` of a program, and what was made of its two programs so far."""

    bind: Bind
    making: Making
    forms: dict = field(factory=dict)
    backwards: dict = field(factory=dict)  # by (which results have a gradient, which is wanted)
    flows: frozenset = field(init=False)  # the results to which a gradient flows
    exposed: frozenset = field(init=False)

    def __attrs_post_init__(self):
        self.flows = frozenset(self.bind.attrs["df_input_vjps"])
        self.exposed = exposed(self.bind)

    @property
    def f(self) -> Lambda:
        """The forward program, with its temporaries as further results."""
        return self.bind.attrs["f"]

    @property
    def plain(self) -> Lambda:
        """The forward program without temporaries, for where nothing is recorded."""
        if self.forms.get("plain") is None:
            f = self.f
            found = Lambda(f.params, f.binds, Ret(f.ret.args[: self.count]))
            self.forms["plain"] = dead_code(found)
        return self.forms["plain"]

    def run(self, operands: list, records: bool) -> tuple:
        """The real results for Variables, arrays and numbers, recorded as one step if that is
        asked for; ``operands`` is emptied.
        """
        variable = RECORDER.variable
        arrays = [x.array if isinstance(x, variable) else x for x in operands]
        requires = tuple([isinstance(x, variable) and x.requires_grad for x in operands])
        wanted, xp = self.bind.attrs["df_output_vjps"], array_module(arrays)
        if not records or not any(requires[i] for i in wanted):
            operands.clear()
            return plan_of(self.plain).run(arrays, xp)
        values = arrays[:]
        outs = plan_of(self.f).run(arrays, xp)
        form = self.form(requires, outs)
        order = ORDER()
        step = step_at(order, [getattr(x, "arg", None) for x in operands])
        step.filled(form, form.keep([*values, *outs]), order, self.bind.source)
        del values
        made = self.wrapped(step, form, outs[: self.count], operands)
        operands.clear()
        return made

    @property
    def count(self) -> int:
        """How many of the results of ``f`` are no temporaries."""
        return self.bind.attrs["f_real_outputs"]

    def wrapped(self, step: Step, form: GraphForm, outs: tuple, operands: list) -> tuple:
        """The real results as Variables."""
        made: list = []
        for i, out in enumerate(outs):
            if not is_array(out):
                made.append(out)
                continue
            kind = form.types[i]
            arg = Part.of(kind, step, i) if i in self.flows else Constant(kind)
            made.append(RECORDER.wrapped(out, arg))
            if getattr(out, "base", None) is not None:  # a view of an operand, or of another result
                made[-1].share_memory([*operands, *made[:-1]], form)
        return tuple(made)

    def form(self, requires: tuple, outs: tuple) -> GraphForm:
        """The form for operands of which these require grad."""
        types = tuple([arg.type for arg in self.f.ret.args])
        if not all(is_known(kind) for kind in types):  # named sizes: as they are in this call
            types = tuple([array_type(out) for out in outs])
        found = self.forms.get((requires, types))
        if found is None:
            found = self.forms[requires, types] = self.new_form(requires, types)
        return found

    def new_form(self, requires: tuple, types: tuple) -> GraphForm:
        """``form``, made."""
        attrs, args = self.bind.attrs, self.bind.args
        count = len(args)
        constants = [i for i in range(count) if not requires[i]]  # for ``history``
        captured = [count + i for i in attrs["df_input_captured_outputs"]]
        kept = tuple(sorted({*constants, *attrs["df_input_captured_inputs"], *captured}))
        return GraphForm(
            op=self.bind.op,
            attrs=attrs,
            bind=self.bind,
            types=types,
            type=None,
            compute=None,
            is_plain=False,
            is_unknown=True,
            requires_grad=True,
            needed=frozenset([a for a, is_needed in zip(args, requires, strict=True) if is_needed]),
            rule=None,
            missing=None,
            is_short=False,
            backward=None,
            kept=kept,
            keep=picker(kept * 2 if len(kept) == 1 else kept),
            unpack=None,
            watched=(),
            graph=self,
            requires=requires,
            places={place: n for n, place in enumerate(kept)},
        )

    def backward(self, mask: tuple, form: GraphForm) -> Backward:
        """The gradient program where these results have a gradient, made once."""
        key = mask, form.requires
        found = self.backwards.get(key)
        if found is None:
            # setdefault: of two threads that make it one is taken, and compiles it
            found = self.backwards.setdefault(key, self.new_backward(mask, form.requires))
        return found

    def new_backward(self, mask: tuple, requires: tuple) -> Backward:
        """``backward``, made."""
        attrs = self.bind.attrs
        df, defined = attrs["df"], [mask[i] for i in attrs["df_input_vjps"]]
        count = len(defined)
        captures = [*attrs["df_input_captured_inputs"]]
        captures += [len(self.bind.args) + i for i in attrs["df_input_captured_outputs"]]
        found = specialize_undef(df, [*defined, *[True] * len(captures)])
        pairs = zip(attrs["df_output_vjps"], found.ret.args, strict=True)
        wanted = [(i, ct) for i, ct in pairs if requires[i] and ct is not UNDEFINED]
        program = Lambda(found.params, found.binds, Ret(tuple([ct for _, ct in wanted])))
        program = carried_signs(merged_sums(dead_code(program)))
        used = use_counts(program)
        cts = [p for p, there in zip(found.params[:count], defined, strict=True) if there]
        read = [(p, at) for p, at in zip(found.params[count:], captures, strict=True) if p in used]
        program = Lambda([*cts, *[p for p, _ in read]], program.binds, program.ret)
        places = tuple([at for _, at in read])
        return Backward(program, places, tuple([i for i, _ in wanted]), self.making)


def is_known(kind: ArrayType | None) -> bool:
    """Whether a type and all its sizes are known."""
    return kind is not None and all(type(n) is int for n in kind.shape)


def exposed(bind: Bind) -> frozenset:
    """The positions, among operands then results, of captured results that a change in place of
    what the user gets may change.
    """
    attrs, f = bind.attrs, bind.attrs["f"]
    owner: dict[Local, Local] = {}
    for one in f.binds:
        if one.op.elementwise or one.op.name in FRESH:
            continue
        of = next((owner.get(arg, arg) for arg in one.locals()), None)
        if of is not None:  # it may be a view of any operand; nearly always there is one
            owner.update(dict.fromkeys(one.binders, of))
    args, count = f.ret.args, attrs["f_real_outputs"]
    real = {owner.get(arg, arg) for arg in args[:count]}
    captured = attrs["df_input_captured_outputs"]
    return frozenset([len(bind.args) + i for i in captured if owner.get(args[i], args[i]) in real])

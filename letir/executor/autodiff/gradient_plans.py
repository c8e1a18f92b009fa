"""``DifferentiableGraph``: a differentiable graph with its cached gradient programs.

``BackwardPrograms`` is the gradient program for one set of results with a gradient. It runs as a
plan on arrays or, under ``create_graph``, as a differentiable program with graphs inside.
Everything is made on first use.
"""

import threading
from collections.abc import Callable
from typing import Any

from attrs import define, field, frozen

from letir.ad.symbolic_zeros import UNDEFINED, specialize_undef
from letir.ast.process_state import new_lock
from letir.ast.terms import Bind, Lambda, Local, Ret
from letir.ast.types import Undef
from letir.eval.array_modules import array_module
from letir.passes.dead_code_elimination import dead_code
from letir.passes.memory.aliases import may_share
from letir.passes.peephole_rules.negation_sinking import sink_negations
from letir.passes.peephole_rules.sum_merging import combine_sums
from letir.passes.pipeline import run_pipeline
from letir.plan.plan import plan_of
from letir.visitors.usedef import use_counts


@define(eq=False)
class BackwardPrograms:
    """The gradient program for one set of results with a gradient.

    ``captured``: the positions (operands, then results) of the primal values that it reads;
    ``results``: the operands whose gradients it computes. Its plans, on arrays or on Variables of
    which some require grad, are made on first use.
    """

    program: Lambda
    captured: tuple[int, ...]
    results: tuple[int, ...]
    compiler: "GraphCompiler"
    missing: tuple = ()  # required of rules: the operands without a rule, here none
    plans: dict = field(factory=dict)  # plans by requires_grad flags; the key None is for arrays
    # by key: threads make plans of other keys in parallel
    locks: dict = field(factory=dict, repr=False)

    def run(self, values: list, records: bool) -> tuple:
        """The gradients, None for zero; ``values`` is emptied."""
        if not records:
            cotangents = self.plan(None).run(values, array_module(values))
            return tuple([None if ct is Undef else ct for ct in cotangents])
        requires = tuple([getattr(value, "requires_grad", False) for value in values])
        return self.plan(requires).run_flat(values)

    def plan(self, requires: tuple | None) -> Any:
        """The callable that runs the gradient program, made once."""
        result = self.plans.get(requires)
        if result is None:
            with self.locks.setdefault(requires, new_lock(threading.RLock)):
                result = self.plans.get(requires)
                if result is None:
                    result = self.plans[requires] = self.compiler.plan(self.program, requires)
        return result


@frozen(eq=False)
class GraphCompiler:
    """The functions that compile graphs: ``optimize(program, requires_grad=)``, and for Variables
    ``record(program, optimized, requires_grad, compiler)``.
    """

    optimize: Callable
    record: Callable

    def plan(self, program: Lambda, requires: tuple | None) -> Any:
        """The callable for a program on arrays, or on Variables with these flags."""
        if requires is None:
            return plan_of(self.optimize(program))
        optimized = self.optimize(program, requires_grad=requires)
        return self.record(program, optimized, requires, self)


@define(eq=False)
class DifferentiableGraph:
    """One ``differentiable_graph`` of a program, and its gradient programs."""

    bind: Bind
    compiler: GraphCompiler
    backwards: dict = field(factory=dict)  # by (results with a gradient, wanted operands)
    flows: frozenset = field(init=False)  # the results that may have a gradient
    exposed: frozenset = field(init=False)

    def __attrs_post_init__(self):
        self.flows = frozenset(self.bind.attrs["df_input_vjps"])
        self.exposed = _exposed_captures(self.bind)

    @property
    def f(self) -> Lambda:
        """The forward program, with its temporaries as further results."""
        return self.bind.attrs["f"]

    @property
    def df(self) -> Lambda:
        """The gradient program for any set of results with a gradient."""
        return self.bind.attrs["df"]

    @property
    def count(self) -> int:
        """The number of results of ``f`` without its temporaries."""
        return self.bind.attrs["f_real_outputs"]

    def __str__(self):
        count = sum(len(backward.plans) for backward in self.backwards.values())
        return (
            f"differentiable graph of {len(self.f)} binds, "
            f"gradient program of {len(self.df)} steps, {count} of its plans made"
        )

    def backward(self, mask: tuple, requires: tuple) -> BackwardPrograms:
        """The gradient program for these results with a gradient, made once."""
        key = mask, requires
        result = self.backwards.get(key)
        if result is None:
            # setdefault: concurrent threads use the same object, which compiles once
            result = self.backwards.setdefault(key, self.new_backward(mask, requires))
        return result

    def new_backward(self, mask: tuple, requires: tuple) -> BackwardPrograms:
        """Make the gradient program that ``backward`` caches."""
        attrs = self.bind.attrs
        df, defined = attrs["df"], [mask[i] for i in attrs["df_input_vjps"]]
        count = len(defined)
        captures = [*attrs["df_input_captured_inputs"]]
        captures += [len(self.bind.args) + i for i in attrs["df_input_captured_outputs"]]
        specialized = specialize_undef(df, [*defined, *[True] * len(captures)])
        pairs = zip(attrs["df_output_vjps"], specialized.ret.args, strict=True)
        needed = [(i, ct) for i, ct in pairs if requires[i] and ct is not UNDEFINED]
        program = Lambda(
            specialized.params, specialized.binds, Ret(tuple([ct for _, ct in needed]))
        )
        program = run_pipeline((dead_code, combine_sums, sink_negations), program)
        used = use_counts(program)
        cts = [
            p
            for p, is_defined in zip(specialized.params[:count], defined, strict=True)
            if is_defined
        ]
        read = [
            (p, at) for p, at in zip(specialized.params[count:], captures, strict=True) if p in used
        ]
        program = Lambda([*cts, *[p for p, _ in read]], program.binds, program.ret)
        places = tuple([at for _, at in read])
        return BackwardPrograms(program, places, tuple([i for i, _ in needed]), self.compiler)


def _may_be_view(bind: Bind) -> bool:
    """Whether a result may share memory with an operand."""
    # the results of a fused bind are results of the binds in its body
    inside = bind.attrs["body"].binds if bind.op.role == "fused" else (bind,)
    return any(may_share(member.op) for member in inside)


def _exposed_captures(bind: Bind) -> frozenset:
    """The positions (operands, then results) of captured values that share memory with a result: an
    in-place change of the result by the user may change them.
    """
    attrs, f = bind.attrs, bind.attrs["f"]
    owner: dict[Local, Local] = {}
    for member in f.binds:
        if not _may_be_view(member):
            continue
        viewed = next((owner.get(arg, arg) for arg in member.locals()), None)
        if viewed is not None:  # the result may be a view of any of its operands
            owner.update(dict.fromkeys(member.binders, viewed))
    args, count = f.ret.args, attrs["f_real_outputs"]
    real = {owner.get(arg, arg) for arg in args[:count]}
    captured = attrs["df_input_captured_outputs"]
    return frozenset([len(bind.args) + i for i in captured if owner.get(args[i], args[i]) in real])

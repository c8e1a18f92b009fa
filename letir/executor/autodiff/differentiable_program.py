"""``Differentiable``: an optimised program that is called on Variables.

Each differentiable graph is one node of the tape, as is every other recorded operation; binds that
do not require grad run as plans on arrays. Results, gradients, hooks and ``create_graph`` behave as
in eager mode.
"""

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.primitive import results_tuple
from letir.ast.terms import Arg, Bind, Lambda, Local, Ret
from letir.eager.functions.operation import call_function_at, function_behind
from letir.eager.grad_mode import RECORDS, is_grad_enabled
from letir.eager.replay import replay_program, result_as_variable, run_bind
from letir.eval.arguments import checked_arguments, flat_arguments, nesting_of
from letir.eval.array_modules import array_module, type_of
from letir.eval.evaluator import Environment
from letir.eval.memory_checks import check_writable
from letir.executor.autodiff.gradient_plans import DifferentiableGraph, GraphCompiler
from letir.executor.autodiff.subgraphs import requiring_grad
from letir.executor.autodiff.tape_node import GraphRunner
from letir.executor.default_pipeline import optimize_program
from letir.ops.effects.writes_to_arguments import changed_params, write_back
from letir.plan.plan import Plan, plan_of
from letir.tracing.tracer import Tracer
from letir.visitors.substitution import lambda_lift


class Differentiable:
    """A program with differentiable graphs, a callable on Variables.

    ``program`` is the recorded program, ``optimized`` its optimised form for these
    ``requires_grad`` flags, ``graphs`` its subgraphs with gradient programs.
    """

    def __init__(
        self,
        program: Lambda,
        optimized: Lambda,
        requires_grad: Sequence[bool],
        compiler: GraphCompiler,
    ):
        self.program, self.optimized, self.compiler = program, optimized, compiler
        self.requires_grad, self.reason = tuple(requires_grad), "it was asked for"
        self.changed, self.executed = changed_params(program), weakref.ref(optimized)
        self.parts = _program_parts(optimized, requires_grad, compiler)
        self.graphs = [part.graph for part in self.parts if part.graph is not None]
        # for the use counts: each part reads its operands immediately
        binds = [Bind(part.binders, write_back, part.args) for part in self.parts]
        self.outer = Lambda(optimized.params, binds, optimized.ret)

    def __repr__(self):
        return "\n".join([f"<program of {len(self.parts)} parts>", *map(str, self.graphs)])

    def __call__(self, *args, **kwargs):
        leaves = flat_arguments(self.program, args, kwargs)
        nest = nesting_of(self.program, args, kwargs)
        del args, kwargs  # else this frame holds the arguments until the end
        return nest(self.run_flat(leaves))

    def run_flat(self, leaves: list) -> tuple:
        """Flat results for flat arguments; ``leaves`` is emptied."""
        tracer = next((leaf for leaf in leaves if isinstance(leaf, Tracer)), None)
        if tracer is not None:  # inline the recorded program [semantics.md B5]
            return tracer.__letir_run__(self.program, leaves)
        checked_arguments(self.program, leaves, _leaf_type)
        return self.run(leaves)

    def run_fallback(self, leaves: list) -> tuple:
        """The results of the recorded program, without optimisation."""
        return replay_program(self.program, leaves)

    def run(self, leaves: list, *, tries: bool = False) -> tuple:
        """``run_flat`` without checks of the arguments."""
        if self.changed:
            check_writable(self.program, list(map(_leaf_array, leaves)), self.changed)
        env, records = Environment(self.outer, leaves), RECORDS.get() or is_grad_enabled()
        wraps = any(isinstance(leaf, Value) for leaf in leaves)
        leaves.clear()
        try:
            for part in self.parts:
                env.bind(part.binders, part.run(env.operands(part.args), records))
            results = env.operands(self.outer.ret.args)
        except BaseException:
            env.values.clear()
            raise
        if not wraps:  # only arrays as arguments: a Variable comes from an opaque function
            return tuple(results)
        return tuple([r if isinstance(r, Value) else result_as_variable(r) for r in results])


@frozen(eq=False)
class _Part:
    """A part of a program: ``run(operands, records)`` returns a result for each binder."""

    args: tuple[Arg, ...]
    binders: tuple[Local, ...]
    run: Callable
    graph: DifferentiableGraph | None = None


def _program_parts(
    fn: Lambda, requires_grad: Sequence[bool], compiler: GraphCompiler
) -> list[_Part]:
    """The parts of a program: graphs, stretches that do not require grad, single operations."""
    needs, parts, stretch = requiring_grad(fn, requires_grad), [], []
    terms: list[Any] = [*fn.binds, fn.ret]
    last = {arg: i for i, term in enumerate(terms) for arg in term.locals()}
    for i, bind in enumerate(fn.binds):
        touches = bind.op.role == "write_back" or not needs.isdisjoint((*bind.args, *bind.binders))
        if not touches:
            stretch.append(bind)
            continue
        parts += _stretch_part(stretch, last, i)
        stretch = []
        parts.append(_single_part(bind, compiler))
    return parts + _stretch_part(stretch, last, len(fn.binds))


def _single_part(bind: Bind, compiler: GraphCompiler) -> _Part:
    """The part for one bind with an operand that requires grad."""
    if bind.op.role == "subgraph":
        graph = DifferentiableGraph(bind, compiler)
        return _Part(bind.args, bind.binders[: graph.count], GraphRunner(graph).run, graph)
    if function_behind(bind.op) is not None:
        return _Part(bind.args, bind.binders, partial(_apply_function, bind))
    return _Part(bind.args, bind.binders, partial(_record_bind, bind))


def _apply_function(bind: Bind, operands: list, records: bool) -> tuple:
    """Run a Function and record its own backward on the tape."""
    result, _ = call_function_at(function_behind(bind.op), bind.attrs["arguments"], operands)
    operands.clear()
    return result


def _record_bind(bind: Bind, operands: list, records: bool) -> tuple:
    """Run one bind and record it as one node of the tape."""
    out = run_bind(bind, operands)
    return results_tuple(bind.op, out)


def _stretch_part(binds: list[Bind], last: dict[Local, int], end: int) -> list[_Part]:
    """The part for consecutive binds that do not require grad; ``last``: last uses of locals."""
    if not binds:
        return []
    results = tuple([b for bind in binds for b in bind.binders if last.get(b, -1) >= end])
    body, operands = lambda_lift((), binds, Ret(results))
    return [_Part(tuple(operands), results, partial(_compute_stretch, plan_of(body)))]


def _compute_stretch(plan: Plan, operands: list, records: bool) -> tuple:
    """Run a stretch of binds; the results are arrays, not Variables."""
    arrays = list(map(_leaf_array, operands))
    operands.clear()
    return plan.run(arrays, array_module(arrays))


def _leaf_array(leaf):
    """The array of a Variable; any other value unchanged."""
    return leaf.array if isinstance(leaf, Value) else leaf


def _leaf_type(leaf):
    """The type of an argument."""
    return leaf.type if isinstance(leaf, Value) else type_of(leaf)


def compile_differentiable(
    fn: Lambda,
    requires_grad: Sequence[bool],
    reason: str = "it was asked for",
    *,
    optimize: bool = True,
    exact: bool = False,
) -> Differentiable:
    """``fn`` compiled for Variables with these ``requires_grad`` flags.

    >>> from letir import Variable, trace
    >>> x = Variable(2.0, requires_grad=True)
    >>> f = compile_differentiable(trace(lambda x: x * x * x * x * x * x, x), [True])
    >>> f(x).backward()
    >>> x.grad, len(f.graphs)
    (Variable(192.), 1)
    """
    compiler = GraphCompiler(
        partial(optimize_program, optimize=optimize, exact=exact), Differentiable
    )
    optimized = compiler.optimize(fn, requires_grad=requires_grad)
    result = Differentiable(fn, optimized, requires_grad, compiler)
    result.reason = reason
    return result


LATE_BOUND["compile_differentiable"] = compile_differentiable

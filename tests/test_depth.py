"""Depth uses no stack [A3]: long programs under the default recursion limit and on small stacks.

Every function on Lambdas is tested with a chain of 2,500 binds, which would overflow a stack of
256 KiB at 105 bytes a bind, and with 10^6 in the slow run.
"""

import copy
import gc
import pickle
import sys
import time
from functools import partial

import numpy as np
import pytest

import letir as lt
from letir import passes
from letir.ast.builder import LetBuilder
from letir.ast.primitive import PRIMITIVES
from letir.ast.process_state import paused_gc
from letir.ast.terms import Const, Lambda
from letir.ast.text.parser import parse
from letir.ast.text.printer import line_of
from letir.ast.types import ArrayType
from letir.executor.autodiff.differentiable_program import compile_differentiable
from letir.executor.autodiff.subgraphs import create_autodiff_subgraphs, inline_autodiff_subgraphs
from letir.executor.default_pipeline import optimize_program
from letir.ops.define.batch_rules import emit_op
from letir.passes import combine_sums, dead_code, sink_negations
from letir.passes.lowering import without_combinators
from letir.passes.pipeline import run_pipeline
from letir.plan.plan import Plan
from letir.visitors.substitution import (
    free_locals,
    from_dag,
    inline,
    lambda_lift,
    rename,
    substitute,
    to_dag,
)
from letir.visitors.usedef import use_counts
from tests.hazards.small_stack import on_a_small_stack

SCALAR = ArrayType(float)
ONE = np.float64(1.0)


def chain(length: int) -> Lambda:
    """%1 = x * x, %2 = %1 - x, %3 = %2 * x and so on: maps 1 to ``1 - length / 2``."""
    builder = LetBuilder()
    y = x = builder.param(SCALAR, "x")
    with paused_gc():
        for i in range(length):
            y = y - x if i % 2 else y * x
        return builder.build([y])


@pytest.fixture(scope="module", params=[2_500, pytest.param(1_000_000, marks=pytest.mark.slow)])
def deep(request) -> Lambda:
    """A chain of binds."""
    return chain(request.param)


@pytest.fixture(scope="module")
def deep_gradient(deep) -> lt.Gradient:
    """A gradient of about as many binds, counting the bodies of its ``grad_of``."""
    return lt.differentiate(chain(len(deep) // 4))


def kept(f: Lambda, policy) -> int:
    """How many residuals the gradient of ``f`` has under a policy."""
    return len(lt.differentiate(f, defined=[True], policy=policy).df_input_captured_outputs)


def inlined(f: Lambda) -> Lambda:
    """``f`` inlined twice, applied to its own result."""
    builder = LetBuilder()
    x = builder.param(SCALAR)
    return builder.build(inline(f, inline(f, [x.arg], builder), builder))


def is_closed_again(f: Lambda) -> bool:
    """Whether lambda lifting makes the value that both halves of ``f`` share a parameter."""
    half = len(f) // 2
    lifted, free = lambda_lift(f.params, f.binds[half:], f.ret)
    return lt.check(lifted) is lifted and free == list(f.binds[half - 1].binders)


def loop(x, length: int):
    """The function that records ``chain``."""
    y = x
    for i in range(length):
        y = y - x if i % 2 else y * x
    return y


def is_written(f: Lambda) -> bool:
    """Whether the source of a chain has all lines and computes the same result; beyond 10^5 lines
    Python would take gigabytes to compile it.
    """
    source, namespace = lt.to_source(f), {}
    if len(f) <= 100_000:
        exec(source, namespace)
        assert namespace["f"](ONE) == 1 - len(f) / 2
    return source.count("\n") > len(f)


def twice(f: Lambda) -> Lambda:
    """The sum of two calls of ``f``."""
    builder = LetBuilder()
    x = builder.param(SCALAR)
    first, second = (builder.call(f, [x])[0] for _ in range(2))
    return builder.build([first + second])


def roundabout(length: int) -> Lambda:
    """A chain in which most binds can be simplified away."""
    builder = LetBuilder()
    y = x = builder.param(SCALAR)
    with paused_gc():
        for _ in range(length // 8):
            z = -(y * x)
            y = (-z - 0) * 1
        return builder.build([y])


def chosen(f: Lambda) -> Lambda:
    """A conditional whose branches are both ``f``."""
    builder = LetBuilder()
    x = builder.param(SCALAR)
    cond = PRIMITIVES["cond"]
    attrs = cond.complete({"on_true": f, "on_false": f})
    return builder.build(builder.apply(cond, (x > 0, x), attrs))


def scanned(f: Lambda) -> Lambda:
    """A scan of one step whose body is ``f``."""
    builder = LetBuilder()
    x = builder.param(SCALAR)
    attrs = {"body": f, "n_carry": 1, "n_xs": 0, "length": 1, "reverse": False}
    scan = PRIMITIVES["scan"]
    return builder.build(builder.apply(scan, (x,), scan.complete(attrs)))


def in_regions(length: int) -> Lambda:
    """A chain of which each bind stands in an error region of its own."""
    body = parse("lambda %0: float64[] { %1: float64[] = mul(%0, 0.5); return %1 }")
    modes = dict.fromkeys(("divide", "over", "under", "invalid"), "ignore")
    builder = LetBuilder()
    y = builder.param(SCALAR)
    with paused_gc():
        for _ in range(length):
            y = emit_op("errstate", [y], body=body, **modes)[0]
    return builder.build([y])


def dead_twice(f: Lambda) -> Lambda:
    """A checkpoint of two calls of ``f`` of which only the first result is used."""
    builder = LetBuilder()
    x = builder.param(SCALAR)
    found = lt.checkpoint(builder.build([builder.call(f, [x])[0] for _ in range(2)]))
    return Lambda(found.params, found.binds, type(found.ret)(found.ret.args[:1]))


def guarded_loop(x, length: int):
    """``loop`` with a guard in each step."""
    y = x
    for _ in range(length // 3):
        y = y * x - x if y > 0 else y * x + x
    return y


def custom(length: int) -> lt.custom_jvp:
    """``loop`` with a custom rule that is a loop on the tangent."""
    function = lt.custom_jvp(partial(loop, length=length))
    function.defjvp(lambda primals, t: (function(*primals), loop(0.5, length // 2) * t[0]))
    return function


def cut_out(f: Lambda) -> Lambda:
    """``f`` as a single differentiable graph."""
    found = create_autodiff_subgraphs(f, [True])
    assert len(found) == 1
    return found


def slope_of_plan(f: Lambda):
    """The gradient of ``f`` by backward through its compiled plan."""
    x = lt.Variable(ONE, True)
    compile_differentiable(f, [True])(x).backward()
    return x.grad.numpy()


# name -> predicate of a chain
LAWS = {
    "dumps and parse": lambda f: parse(lt.dumps(f)) == f,
    "str": lambda f: len(str(f).splitlines()) < 300,
    "listing": lambda f: len(f.listing().splitlines()) == len(f) + 1,
    "html": lambda f: len(f._repr_html_()) < 100_000,
    "graph": lambda f: len(lt.viz.graph(f)._repr_html_()) < 200_000,
    "memory": lambda f: len(lt.viz.memory(lt.compile(f, optimize=False))._repr_html_()) < 200_000,
    "explorer": lambda f: len(lt.viz.explorer(f).html) < 500_000 + 300 * len(f),  # has all binds
    "html of a gradient": lambda f: len(lt.differentiate(f)._repr_html_()) < 300_000,
    "html of a comparison": lambda f: len(lt.diff(f, lt.grad(f))._repr_html_()) < 200_000,
    "line_of": lambda f: line_of(f, f.binds[-1]).startswith(f"%{len(f)}: float64[] = sub("),
    "hash": lambda f: hash(rename(f)) == hash(f),
    "copy": lambda f: copy.copy(f) == f,
    "deepcopy": lambda f: copy.deepcopy(f) == f,
    "pickle": lambda f: pickle.loads(pickle.dumps(f)) == f,
    "canonicalize": lambda f: lt.canonicalize(f) == f,
    "check": lambda f: lt.check(f) is f,
    "retype": lambda f: lt.retype(f, ArrayType("float32")).ret.args[0].type.dtype == "float32",
    "with_binds": lambda f: f.with_binds(f.binds) == f,
    "constants": lambda f: f.constants == (),
    "rename": lambda f: rename(f) == f,
    "to_source": is_written,
    "substitute": lambda f: substitute(f, {f.params[0]: Const(2.0)}).params == (),
    "inline": lambda f: len(inlined(f)) == 2 * len(f),
    "lambda_lift": is_closed_again,
    "free_locals": lambda f: free_locals((), f.binds, f.ret) == [f.params[0]],
    "to_dag and from_dag": pytest.param(
        lambda f: from_dag(to_dag(f)[1]) == f,
        marks=pytest.mark.skipif(
            sys.version_info[:2] == (3, 13),
            reason="CPython 3.13 frees a chain of nested objects, which a DAG is, by recursion",
        ),
    ),
    "uses": lambda f: lt.uses(f).uses_left(f.params[0], len(f) - 1) == 1,
    "live_at": lambda f: len(lt.uses(f).live_at(len(f) - 1)) == 2,
    "use_counts": lambda f: use_counts(f)[f.params[0]] == len(f) + 1,
    "dead_code": lambda f: dead_code(f) == f,
    "slice": lambda f: lt.slice(f, 0) == f,
    "diff": lambda f: not lt.diff(f, rename(f)) and bool(lt.diff(f, lt.grad(f))),
    "rewrite": lambda f: lt.rewrite(f, np.subtract, lambda x, y: x + (-y))(ONE) == f(ONE),
    "combine_sums": lambda f: combine_sums(f) is f,
    "sink_negations": lambda f: sink_negations(f) is f,
    "dead_code of a body": lambda f: len(dead_code(dead_twice(f)).binds[0].attrs["body"]) == len(f),
    "common_subexpressions": lambda f: len(passes.common_subexpressions(twice(f))) == len(f) + 1,
    "constant_pooling": lambda f: passes.constant_pooling(f) is f,
    "constant_propagation": lambda f: passes.constant_propagation(f) is f,
    "propagate_shapes": lambda f: passes.propagate_shapes(f) is f,
    "requires_grad": lambda f: len(passes.propagate_requires_grad(f, [True])) == len(f) + 1,
    "inline_bodies": lambda f: passes.inline_bodies(lt.checkpoint(f), keep_rules=False) == f,
    "normalize_order": lambda f: passes.normalize_order(f) is f,
    "pipeline": lambda f: run_pipeline((dead_code, passes.constant_pooling), f) is f,
    "peephole": lambda f: len(dead_code(passes.peephole(roundabout(len(f))))) < len(f) // 4,
    "canonicalize_ops": lambda f: passes.canonicalize_ops(f) is f,
    "remove_implicit_expands": lambda f: passes.remove_implicit_expands(f) is f,
    "decompose": lambda f: passes.decompose(f) is f is passes.decompose_addmm(f),
    "lower_tuples": lambda f: passes.lower_tuples(f) is f,
    "erase_number_types": lambda f: passes.erase_number_types(f) is f,
    "in_place_check": lambda f: passes.in_place_check(f) is f,
    "fuse": lambda f: len(lt.check(passes.fuse(f))) == 1 and passes.fuse(f)(ONE) == f(ONE),
    "unroll": lambda f: passes.unroll(f) is f,
    "batch_matmuls": lambda f: passes.batch_matmuls(f) is f,
    "multiply_powers": lambda f: passes.multiply_powers(f) is f,
    "join_error_regions": lambda f: len(passes.join_error_regions(in_regions(len(f)))) == 1,
    "loop_invariants": lambda f: passes.loop_invariants(f) is f,
    "without_combinators": lambda f: without_combinators(f) is f,
    "grad of a choice": lambda f: lt.check(lt.grad(chosen(chain(len(f) // 4))))(ONE) < 0,
    "vmap of a choice": lambda f: len(lt.check(lt.vmap(chosen(f), axis_size=2))) > 1,
    "grad of a scan": lambda f: lt.check(lt.grad(scanned(chain(len(f) // 4))))(ONE) < 0,
    "jvp of a scan": lambda f: lt.jvp(scanned(chain(len(f) // 4)), (ONE,), (ONE,))[1] < 0,
    "vmap of a scan": lambda f: len(lt.check(lt.vmap(scanned(f), axis_size=2))) == 1,
    "run_forward": lambda f: f(ONE) == 1 - len(f) / 2,
    "differentiate": lambda f: len(lt.differentiate(f, defined=[True]).df) > len(f),
    "grad": lambda f: lt.check(lt.grad(f))(ONE) < 0,
    "value_and_grad": lambda f: lt.value_and_grad(f)(ONE)[0] == f(ONE),
    "second grad": lambda f: len(lt.grad(lt.grad(f))) > len(f),
    "recompute_cheap": lambda f: kept(f, "recompute_cheap") < len(f) ** 0.5,
    "min_bytes": lambda f: kept(f, "min_bytes") < len(f) ** 0.5,
    "explain_residuals": lambda f: len(lt.explain_residuals(f)) >= len(f) // 2,
    "policy of a user": lambda f: kept(f, lambda bind: bind.op.name == "mul") >= len(f) // 2 - 1,
    "vjp": lambda f: lt.vjp(f, ONE)[1](ONE)[0] < 0,
    "jvp": lambda f: lt.jvp(f, (ONE,), (ONE,))[1] < 0,
    "linearize": lambda f: lt.linearize(f, ONE)[1](ONE) < 0,
    "linear_transpose": lambda f: lt.linear_transpose(lt.linearize(f, ONE)[1], ONE)(ONE)[0] < 0,
    "checkpoint": lambda f: lt.grad(lt.check(lt.checkpoint(f)))(ONE) < 0,
    "jacfwd and jacrev": lambda f: lt.jacfwd(f)(ONE) == lt.jacrev(f)(ONE) < 0,
    "hessian": pytest.param(
        lambda f: len(lt.check(lt.hessian(f))) > len(f), marks=pytest.mark.slow
    ),
    "hvp": lambda f: len(lt.check(lt.hvp(f))) > len(f),
    "ggnvp": lambda f: lt.ggnvp(f, lambda y: y * y, ONE, ONE) > 0,
    "vmap": lambda f: lt.vmap(f, axis_size=2)(np.ones(2))[1] == f(ONE),
    "replay on a Variable": lambda f: lt.eager.history(f(lt.Variable(ONE, True))) == f,
    "optimized": lambda f: lt.check(optimize_program(f))(ONE) == f(ONE),
    "plan": lambda f: Plan(f).run([ONE])[0] == f(ONE),
    "jit": lambda f: lt.jit(f)(ONE) == f(ONE),
    "subgraphs": lambda f: inline_autodiff_subgraphs(cut_out(f), fewest=1 << 30) == f,
    "differentiable": lambda f: np.isfinite(slope_of_plan(chain(len(f) // 4))),
    "explain": lambda f: str(lt.explain(chain(len(f) // 4), ONE)).count("\n") < 100,
}

# name -> predicate of the Gradient of a chain
GRADIENT_LAWS = {
    "check": lambda g: lt.check(g.df) is g.df and lt.check(g.f) is g.f,
    "forward and backward": lambda g: np.isfinite(g.backward(g.forward(ONE)[1], ONE)[0]),
    "dumps and parse": lambda g: parse(lt.dumps(g.df)) == g.df,
    "pickle": lambda g: pickle.loads(pickle.dumps(g.df)) == g.df,
    "canonicalize": lambda g: lt.canonicalize(g.df) == g.df,
    "specialize_undef": lambda g: len(lt.specialize_undef(g.df, [True] * len(g.df.params))) > 0,
    "lower_grad_of": lambda g: len(lt.lower_grad_of(g.df)) == len(g.df),
    "dead_code": lambda g: len(dead_code(g.df)) == len(g.df),
    "to_source": lambda g: lt.to_source(g).count("\n") > len(g.f),
}

# name -> predicate of recording a chain of this length
TRACING_LAWS = {
    "trace": lambda n: lt.trace(partial(loop, length=n), ONE) == chain(n),
    "abstract trace": lambda n: lt.trace(partial(loop, length=n), ONE, abstract=True) == chain(n),
    "guards": lambda n: len(lt.trace(partial(guarded_loop, length=n), ONE)) > n,
    "trace of a program": lambda n: lt.trace(chain(n), ONE) == chain(n),
    "abstract trace of a program": lambda n: lt.trace(chain(n), ONE, abstract=True) == chain(n),
    "grad of a function": lambda n: np.isfinite(lt.grad(partial(loop, length=n))(ONE)),
    "vmap of a function": lambda n: lt.vmap(partial(loop, length=n))(np.ones(2))[1] == 1 - n / 2,
    "checkpoint of a function": lambda n: np.isfinite(
        lt.grad(lt.checkpoint(partial(loop, length=n)))(ONE)
    ),
    "custom_jvp": lambda n: np.isfinite(lt.grad(custom(n))(ONE)),
    "grad of guards": lambda n: np.isfinite(lt.grad(partial(guarded_loop, length=n))(ONE)),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_a_function_of_a_long_program_uses_no_stack(deep, law):
    """[A3]"""
    assert on_a_small_stack(lambda: law(deep))


@pytest.mark.parametrize("law", GRADIENT_LAWS.values(), ids=GRADIENT_LAWS.keys())
def test_a_function_of_a_long_gradient_uses_no_stack(deep_gradient, law):
    """[A3]"""
    assert on_a_small_stack(lambda: law(deep_gradient))


@pytest.mark.parametrize("law", TRACING_LAWS.values(), ids=TRACING_LAWS.keys())
@pytest.mark.parametrize("length", [5_000, pytest.param(300_000, marks=pytest.mark.slow)])
def test_a_long_recording_uses_no_stack(law, length):
    """[A3, B3]"""
    assert on_a_small_stack(lambda: law(length))


def test_a_long_program_survives_a_file(deep, tmp_path):
    """[A3, A8]"""

    def through_a_file():
        lt.save(deep, tmp_path / "deep.letir")
        return lt.load(tmp_path / "deep.letir")

    assert deep == on_a_small_stack(through_a_file)


def test_the_cursor_walks_a_long_program_without_stack(deep):
    """[A1, A3]"""

    def walked():
        count, term = 0, deep.body
        while type(term) is lt.Let:
            count, term = count + 1, term.body
        return count

    assert len(deep) == on_a_small_stack(walked)


@pytest.mark.parametrize("length", [50_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_long_program_is_built_written_parsed_checked_run_differentiated_and_freed(length):
    """[A3] A gradient of about as many binds as well; test_linear_time counts lines."""

    def life():
        f = chain(length)
        same = parse(lt.dumps(lt.check(f))) == f
        gradient = lt.grad(chain(length // 4))
        found = f(ONE), gradient(ONE)
        del f, gradient
        gc.collect()
        return same, *found

    same, value, slope = on_a_small_stack(life)

    assert (True, 1 - length / 2) == (same, value)
    assert slope < 0


def seconds_per_bind(f: Lambda, repeats: int) -> float:
    """The least CPU time of a gradient and its replay, per bind."""
    taken = []
    for _ in range(repeats):
        gc.collect()
        start = time.process_time()
        lt.grad(f)(ONE)
        taken.append(time.process_time() - start)
    return min(taken) / len(f)


@pytest.mark.slow
def test_the_cost_of_a_gradient_per_bind_does_not_grow_with_length():
    """[A3] In time, from 10^4 to 10^6 binds; test_linear_time counts lines."""
    first, *others = (seconds_per_bind(chain(10**n), 8 - n) for n in (4, 5, 6))

    assert max(others) <= 1.5 * first

"""Every function on Lambdas is linear in the number of binds [A3], measured by counting lines.

The count is of lines of Python that run, where each iteration of a loop is a line: ten times the
binds may take ten times the lines. test_depth has the other laws of long programs.
"""

import copy
import pickle
import sys
from contextlib import contextmanager

import numpy as np
import pytest

import letir as lt
from letir import passes
from letir.ast.attrs import Attrs
from letir.ast.builder import LetBuilder
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Const, Lambda, Local
from letir.ast.text.parser import parse
from letir.ast.types import ArrayType
from letir.executor.autodiff.differentiable_program import compile_differentiable
from letir.executor.autodiff.subgraphs import create_autodiff_subgraphs, inline_autodiff_subgraphs
from letir.executor.default_pipeline import optimize_program
from letir.ops.elementwise.ufuncs import add
from letir.passes import combine_sums, dead_code, sink_negations
from letir.passes.lowering import without_combinators
from letir.plan.plan import Plan, plan_of
from letir.transforms.hessians import reverse_product
from letir.visitors.substitution import from_dag, inline, lambda_lift, rename, substitute, to_dag
from letir.visitors.usedef import use_counts
from tests.test_depth import in_regions

SHORT, LONG = 80, 320
MAX_GROWTH = 1.1  # of the lines per bind; a quadratic part of 1 in 4,000 is found
SCALAR = ArrayType(float)
ONE = np.float64(1.0)


@contextmanager
def counted_lines():
    """A list whose single element is the number of lines run so far in this thread."""
    count, before = [0], sys.gettrace()

    def count_line(frame, event, arg):
        count[0] += 1
        return count_line

    sys.settrace(count_line)
    try:
        yield count
    finally:
        sys.settrace(before)


# ---- programs of a given length ----


def chain(length: int) -> Lambda:
    """Each bind uses the previous one, and all use the single parameter."""
    builder = LetBuilder()
    y = x = builder.param(SCALAR, "x")
    for i in range(length):
        y = y - x if i % 2 else y * x
    return builder.build([y])


def wide(length: int) -> Lambda:
    """Many parameters and results; each result is captured by the gradient."""
    builder = LetBuilder()
    one, *others = [builder.param(SCALAR) for _ in range(length // 3)]
    products = [one * other for other in others]
    total = one
    for product in products:
        total = total + product * product
    return builder.build([total, *products])


def constant(length: int) -> Lambda:
    """Every other bind is an array constant, and all constants are live in the middle."""
    builder = LetBuilder()
    total = builder.param(SCALAR).arg
    for value in [builder.constant(np.array(float(i))) for i in range(length // 2)]:
        (total,) = builder.emit(add, (total, value))
    return builder.build([total])


SHAPES = {"chain": chain, "wide": wide, "constant": constant}


def arguments(f: Lambda) -> list:
    """A one for each parameter."""
    return [ONE] * len(f.params)


def inlined(f: Lambda) -> Lambda:
    """``f`` rebuilt by inlining it into a builder."""
    builder = LetBuilder()
    return builder.build(inline(f, [builder.param(SCALAR).arg for _ in f.params], builder))


def pulled(f: Lambda):
    """The cotangents of all arguments for a cotangent of the first result."""
    out, pull = lt.vjp(f, *arguments(f))
    return pull((ONE,) * len(out) if isinstance(out, tuple) else ONE)


def gradient(f: Lambda) -> Lambda:
    """The gradient of the first result with respect to all arguments."""
    return lt.grad(scalar(f), tuple(range(len(f.params))))


def scalar(f: Lambda) -> Lambda:
    """``f`` with only its first result."""
    return Lambda(f.params, f.binds, type(f.ret)(f.ret.args[:1]))


def f_linear(f: Lambda) -> Lambda:
    """A program of as many sums, linear in all arguments, with constants replaced by zeros."""
    zeros = {"value": np.array(0.0)}

    def linear(bind):
        if bind.op.name == "constant":
            return type(bind)(bind.binders, bind.op, (), bind.op.complete(zeros), bind.source)
        return type(bind)(bind.binders, add, bind.args, bind.attrs, bind.source)

    return f.with_binds(tuple(map(linear, f.binds)))


def undefined_first(f: Lambda) -> Lambda:
    """The gradient program for a defined first cotangent and undefined others."""
    g = lt.differentiate(f)
    vjps = len(g.df_input_vjps)
    return lt.specialize_undef(g.df, [i == 0 or i >= vjps for i in range(len(g.df.params))])


def first(results):
    """The first of several results."""
    return results[0] if isinstance(results, tuple) else results


def recorded(f: Lambda):
    """The first result of ``f`` on Variables that require grad."""
    return first(f(*[lt.Variable(x, requires_grad=True) for x in arguments(f)]))


def gradients_of_gradients(f: Lambda):
    """Second derivatives through the history of the first."""
    xs = [lt.Variable(x, requires_grad=True) for x in arguments(f)]
    found = lt.eager.gradients(first(f(*xs)), xs, create_graph=True, allow_unused=True)
    dxs = [dx for dx in found if dx is not None and dx.requires_grad]
    return lt.eager.gradients(dxs, xs, allow_unused=True) if dxs else dxs


def in_a_loop(f: Lambda) -> Lambda:
    """A loop with body ``f`` that carries the first parameter and captures the others."""
    builder = LetBuilder()
    body = Lambda((Local(ArrayType("int64")), *f.params), f.binds, scalar(f).ret)
    operands = [builder.param(param.type).arg for param in f.params]
    args = (Const(0), Const(3), *operands)
    return builder.build(builder.emit(PRIMITIVES["fori_loop"], args, Attrs(body=body)))


def until(f: Lambda) -> Lambda:
    """A while loop with body ``f`` that runs while its carry is huge."""
    builder = LetBuilder()
    operands = tuple([builder.param(param.type).arg for param in f.params])
    body = Lambda(f.params, f.binds, scalar(f).ret)
    asks = LetBuilder()
    first, *_ = [asks.param(param.type) for param in f.params]
    attrs = Attrs(test=asks.build([first > 1e300]), body=body)
    return builder.build(builder.emit(PRIMITIVES["while_loop"], operands, attrs))


def scanned(f: Lambda) -> Lambda:
    """A scan with body ``f`` that carries the first parameter and captures the others."""
    builder = LetBuilder()
    operands = tuple([builder.param(param.type).arg for param in f.params])
    body = Lambda(f.params, f.binds, scalar(f).ret)
    attrs = Attrs(body=body, n_carry=1, n_xs=0, length=1, reverse=False)
    return builder.build(builder.emit(PRIMITIVES["scan"], operands, attrs))


def maps(length: int) -> Lambda:
    """A chain of maps."""
    builder = LetBuilder()
    x = builder.param(ArrayType(float, (2,)))
    attrs = PRIMITIVES["map"].complete({"body": chain(3), "n_xs": 1, "batched": True})
    for _ in range(length // 10):
        (x,) = builder.apply(PRIMITIVES["map"], (x,), attrs)
    return builder.build([x])


def carrying(length: int) -> Lambda:
    """A loop with many carries of which one result is used: half of the carries depend on the next
    one, and the first depends on one of these.
    """
    builder, count = LetBuilder(), 2 * (length // 4)
    _, *xs = [builder.param(kind) for kind in (ArrayType("int64"), *[SCALAR] * count)]
    sums = [a + b for a, b in zip(xs, [*xs[2:], xs[0], xs[1]], strict=True)]
    body, outer = builder.build(sums), LetBuilder()
    args = (Const(0), Const(3), *[outer.param(SCALAR).arg for _ in xs])
    return outer.build(outer.emit(PRIMITIVES["fori_loop"], args, Attrs(body=body))[:1])


def twice(f: Lambda) -> Lambda:
    """Two calls of ``f``, inlined."""
    builder = LetBuilder()
    params = [builder.param(SCALAR) for _ in f.params]
    first, second = (builder.call(f, params)[0] for _ in range(2))
    return builder.build([first + second])


def of_constants(f: Lambda) -> Lambda:
    """``f`` applied to constants."""
    builder = LetBuilder()
    return builder.build(builder.call(f, [np.float64(i % 3) for i in range(len(f.params))]))


def untyped(f: Lambda) -> Lambda:
    """``f`` with the types of its parameters only."""
    fresh = dict(zip(f.params, f.params, strict=True))
    binds = []
    for bind in f.binds:
        args = tuple([fresh.get(arg, arg) for arg in bind.args])
        fresh[bind.binders[0]] = made = Local()
        binds.append(type(bind)((made,), bind.op, args, bind.attrs))
    return Lambda(f.params, binds, type(f.ret)(tuple([fresh[arg] for arg in f.ret.args])))


def unrolled(length: int) -> Lambda:
    """A recurrent network: products of inputs, which can be batched, and of states."""
    builder, kind = LetBuilder(), ArrayType(float, (2, 2))
    h, w, u, *xs = [builder.param(kind) for _ in range(3 + length // 5)]
    for x in xs:
        h = x.T @ w + h @ u
    return builder.build([h])


def roundabout(length: int) -> Lambda:
    """``length`` binds that can be simplified away, without numbers and lists."""
    builder, kind = LetBuilder(), ArrayType(float, (2, 2))
    y = x = builder.param(kind)
    for _ in range(length // 12):
        z = -y
        y = ((-z).T.T - 0) * 1 + PRIMITIVES["square"](2 * x)
        y = PRIMITIVES["stack"]((y, y))[0] + PRIMITIVES["linear"](x, y, x[0])
        y = y + PRIMITIVES["broadcast_to"](y[0], (2, 2)) * y.at[0].set(1.0)
    return builder.build([y])


def loops(length: int) -> Lambda:
    """A chain of short loops that unroll to ``length`` binds."""
    builder = LetBuilder()
    x = builder.param(SCALAR).arg
    body = chain(2)
    body = Lambda((Local(ArrayType("int64")), *body.params), body.binds, body.ret)
    for _ in range(length // 10):
        args = (Const(0), Const(5), x)
        (x,) = builder.emit(PRIMITIVES["fori_loop"], args, Attrs(body=body))
    return builder.build([x])


def cut_out(f: Lambda) -> Lambda:
    """``f`` with its differentiable graphs cut out."""
    return create_autodiff_subgraphs(f, [True] * len(f.params))


def levelled(length: int) -> Lambda:
    """Many fusible groups, separated by operations without a derivative rule."""
    builder = LetBuilder()
    y = x = builder.param(SCALAR)
    for i in range(length // 5):
        y = opaque_step((y * x + x) * y - (x if i % 2 else y))
    return builder.build([y])


opaque_step = lt.opaque(lambda x: x, lambda x: x, name="test_linear_time.step")


def pulled_by_plan(f: Lambda) -> None:
    """Backward through the plan of ``f`` on Variables."""
    inputs = [lt.Variable(x, True) for x in arguments(f)]
    lt.eager.backward(first(compile_differentiable(f, [True] * len(f.params))(*inputs)))


def explored(f: Lambda) -> None:
    """The explorer page. Without kernels: some kinds of them are tried on long programs only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LETIR_KERNELS", "off")
        lt.viz.explorer(f, gradient=False)


FUNCTIONS = {
    "dumps": lt.dumps,
    "parse": lambda f: parse(lt.dumps(f)),
    "str": str,
    "listing": Lambda.listing,
    "html": Lambda._repr_html_,
    "graph": lambda f: lt.viz.graph(f)._repr_html_(),
    "memory timeline": lambda f: lt.viz.memory(lt.compile(f, optimize=False)),
    "explorer": explored,
    "html of a gradient": lambda f: lt.differentiate(f)._repr_html_(),
    "hash": hash,
    "equal": lambda f: f == rename(f),
    "deepcopy": copy.deepcopy,
    "pickle": lambda f: pickle.loads(pickle.dumps(f)),
    "canonicalize": lt.canonicalize,
    "check": lt.check,
    "retype": lambda f: lt.retype(f, *[ArrayType("float32")] * len(f.params)),
    "constants": lambda f: f.constants,
    "rename": rename,
    "to_source": lt.to_source,
    "source of a gradient": lambda f: lt.to_source(lt.differentiate(f)),
    "substitute": lambda f: substitute(f, dict.fromkeys(f.params, Const(2.0))),
    "inline": inlined,
    "lambda_lift": lambda f: lambda_lift((), f.binds[len(f) // 2 :], f.ret),
    "to_dag": lambda f: from_dag(to_dag(f)[1]),
    "uses": lambda f: [lt.uses(f).uses_left(p, len(f) // 2) for p in f.params],
    "use_counts": use_counts,
    "live_at": lambda f: lt.uses(f).live_at(len(f) // 2),
    "dead_code": dead_code,
    "diff": lambda f: str(lt.diff(f, rename(f))),
    "diff of other programs": lambda f: str(lt.diff(f, gradient(f))),
    "slice": lambda f: lt.slice(f, [0, "%1", *(bind.binders[0] for bind in f.binds)]),
    "rewrite": lambda f: lt.rewrite(f, lambda x, y: x + y, lambda x, y: y + x),
    "rewrite of pairs": lambda f: lt.rewrite(f, lambda x, y: x * y - y, lambda x, y: (x - 1) * y),
    "combine_sums": combine_sums,
    "sink_negations": sink_negations,
    "dead_code of a loop": lambda f: dead_code(carrying(len(f))),
    "common_subexpressions": lambda f: passes.common_subexpressions(twice(f)),
    "constant_pooling": passes.constant_pooling,
    "constant_propagation": lambda f: passes.constant_propagation(of_constants(f)),
    "propagate_shapes": lambda f: passes.propagate_shapes(untyped(f)),
    "propagate_requires_grad": lambda f: passes.propagate_requires_grad(
        in_a_loop(f), [True, *[False] * (len(f.params) - 1)]
    ),
    "inline_bodies": lambda f: passes.inline_bodies(lt.checkpoint(f), keep_rules=False),
    "normalize_order": lambda f: passes.normalize_order(lt.differentiate(f).df),
    "peephole": lambda f: passes.peephole(roundabout(len(f))),
    "canonicalize_ops": lambda f: passes.canonicalize_ops(roundabout(len(f))),
    "remove_implicit_expands": lambda f: passes.remove_implicit_expands(roundabout(len(f))),
    "decompose": lambda f: passes.decompose(roundabout(len(f))),
    "lower_tuples": lambda f: passes.lower_tuples(roundabout(len(f))),
    "erase_number_types": lambda f: passes.erase_number_types(roundabout(len(f))),
    "in_place_check": lambda f: passes.in_place_check(roundabout(len(f))),
    "fuse": passes.fuse,
    "unroll": lambda f: passes.unroll(loops(len(f))),
    "batch_matmuls": lambda f: passes.batch_matmuls(unrolled(len(f))),
    "multiply_powers": passes.multiply_powers,
    "join_error_regions": lambda f: passes.join_error_regions(in_regions(len(f))),
    "loop_invariants": lambda f: passes.loop_invariants(in_a_loop(f)),
    "without_combinators": lambda f: without_combinators(maps(len(f))),
    "grad of a while_loop": lambda f: gradient(until(f)),
    "vmap of a while_loop": lambda f: lt.vmap(until(f), axis_size=2),
    "grad of a scan": lambda f: gradient(scanned(f)),
    "jvp of a scan": lambda f: lt.jvp(scanned(f), *[tuple(arguments(f))] * 2),
    "linearize of a scan": lambda f: lt.linearize(scanned(f), *arguments(f)),
    "vmap of a scan": lambda f: lt.vmap(scanned(f), axis_size=2),
    "run_forward": lambda f: f(*arguments(f)),
    "differentiate": lt.differentiate,
    "forward": lambda f: lt.differentiate(f).forward(*arguments(f)),
    "grad": gradient,
    "running a grad": lambda f: gradient(f)(*arguments(f)),
    "second grad": lambda f: gradient(gradient(f)),
    "recompute_cheap": lambda f: lt.differentiate(f, policy="recompute_cheap"),
    "min_bytes": lambda f: lt.differentiate(f, policy="min_bytes"),
    "explain_residuals": lambda f: str(lt.explain_residuals(f)),
    "policy of a user": lambda f: lt.differentiate(f, policy=lambda bind: bind.op.name == "mul"),
    "vjp": pulled,
    "jvp": lambda f: lt.jvp(f, tuple(arguments(f)), tuple(arguments(f))),
    "linearize": lambda f: lt.linearize(f, *arguments(f))[1](*arguments(f)),
    "vmap": lambda f: lt.vmap(f, axis_size=2),
    "vmap of a function": lambda f: lt.vmap(f.__call__)(*[np.ones(2)] * len(f.params)),
    "linear_transpose": lambda f: lt.linear_transpose(f_linear(f)),
    "checkpoint": lambda f: lt.jvp(
        lt.checkpoint(f, policy=lambda bind: True), tuple(arguments(f)), tuple(arguments(f))
    ),
    "grad of a checkpoint": lambda f: gradient(lt.checkpoint(f)),
    "jacfwd": lt.jacfwd,
    "jacrev": lt.jacrev,
    "hvp": lambda f: lt.hvp(scalar(f)),
    "hvp in reverse mode": lambda f: reverse_product(
        gradient(f), list(range(len(f.params))), list(range(len(f.params)))
    ),
    "specialize_undef": undefined_first,
    "lower_grad_of": lambda f: lt.lower_grad_of(lt.differentiate(f).df),
    "text of a gradient": lambda f: str(lt.differentiate(f)),
    "trace": lambda f: lt.trace(f, *arguments(f)),
    "abstract trace": lambda f: lt.trace(f, *arguments(f), abstract=True),
    "replay on Variables": recorded,
    "backward": lambda f: recorded(f).backward(),
    "history": lambda f: lt.eager.history(recorded(f)),
    "gradients of gradients": gradients_of_gradients,
    "grad of a function": lambda f: lt.grad(lambda *xs: first(f(*xs)))(*arguments(f)),
    "optimized": optimize_program,
    "making a plan": Plan,
    "running a plan": lambda f: plan_of(f).run(list(arguments(f))),
    "subgraphs": lambda f: inline_autodiff_subgraphs(cut_out(f), fewest=1 << 30),
    "subgraphs of levels": lambda f: cut_out(levelled(len(f))),
    "backward of a plan": pulled_by_plan,
    "explain": lambda f: str(lt.explain(f, *arguments(f))),
}


def guarded(length: int):
    """A function that reads the truth value of an array element in every step."""

    def loop(x):
        y = x
        for _ in range(length):
            y = y * x - x if y > 0 else y * x + x
        return y

    return loop


RECORDINGS = {
    "trace of guards": lambda f: lt.trace(f, ONE),
    "grad of guards": lambda f: lt.grad(f)(ONE),
}


def lines_per_bind(function, program, length: int) -> float:
    """The lines of Python that ``function`` runs per bind of a new program."""
    with counted_lines() as count:
        function(program)
    return count[0] / length


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize(
    "function",
    [pytest.param(function, id=name) for name, function in FUNCTIONS.items()],
)
def test_a_function_is_linear_in_the_number_of_binds(function, shape):
    """[A3] The first call fills the caches of rules and types, except for bodies this long."""
    function(shape(SHORT // 2))
    short, long = (lines_per_bind(function, shape(n), n) for n in (SHORT, LONG))

    assert long <= MAX_GROWTH * short


@pytest.mark.parametrize("function", RECORDINGS.values(), ids=RECORDINGS)
def test_a_recording_is_linear_in_the_number_of_guards(function):
    """[A3, B2]"""
    function(guarded(SHORT))
    short, long = (lines_per_bind(function, guarded(n), n) for n in (SHORT, LONG))

    assert long <= MAX_GROWTH * short


def test_the_gradient_of_reading_every_element_is_linear():
    """[A3] The cotangents of elements read one by one are assembled once; each index has a rule."""

    def pulled_back(length: int):
        f = lt.trace(lambda x: sum(x[i] * x[i] for i in range(length)), np.ones(length))
        with counted_lines() as count:
            lt.grad(f)(np.ones(length))
        return count[0] / length

    pulled_back(LONG)
    assert pulled_back(LONG) <= MAX_GROWTH * pulled_back(SHORT)


def test_a_quadratic_function_is_detected():
    """The count includes the iterations of a loop within one line of Python."""

    def quadratic(f):
        return [next(i for i, b in enumerate(f.binds) if b is bind) for bind in f.binds]

    short, long = (lines_per_bind(quadratic, chain(n), n) for n in (SHORT, LONG))

    assert long > 3 * short

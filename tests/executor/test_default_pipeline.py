"""The default pipeline of passes from a recorded program to the one of plans [F3]."""

import numpy as np
import pytest
from hypothesis import given, settings

import letir as lt
from letir.executor.autodiff.subgraphs import smallest_subgraphs
from letir.executor.default_pipeline import optimize_program
from letir.passes.pipeline import register, unregister
from letir.testing import assert_same, programs

ONES = np.ones(3)


def names(fn) -> list[str]:
    """The operations of a program, in order."""
    return [bind.op.name for bind in fn.binds]


def steps_of(fn, **options) -> list[tuple]:
    """(name, before, after) of each pass."""
    found = []
    optimize_program(fn, observe=lambda *step: found.append(step[:3]), **options)
    return found


def scaled(x, y):
    """Work for most passes: common subexpressions, constants, a fusible chain, dead code."""
    np.exp(y)
    return np.sin(x * y) + np.sin(x * y) * np.log(np.full(3, 2.0))


LOOSE = ("batch_matmuls", "multiply_powers")
PIPELINE = [
    *("specialize_zeros", "lower_grad_of", "remove_implicit_expands", "canonicalize_ops"),
    "dead_code",
    *("constant_propagation", "inline_bodies", "propagate_shapes"),
    *("dead_code", "common_subexpressions", "constant_pooling", "peephole"),
    *("constant_propagation", "loop_invariants", "unroll", "common_subexpressions"),
    *("flatten_stacks", "in_place_check"),
    *("inline_bodies(keep_rules=False)", "decompose(keep_rules=False)", "batch_matmuls"),
    *("multiply_powers", "join_error_regions", "fuse"),
    *("without_barriers", "dead_code"),
]


def test_the_passes_run_in_the_order_of_the_pipeline():
    """[F3]"""
    fn = lt.trace(scaled, ONES, ONES)

    assert PIPELINE == [name for name, _, _ in steps_of(fn)]
    exact = [name for name, _, _ in steps_of(fn, exact=True)]
    assert exact == ["keep_raising", *[name for name in PIPELINE if name not in LOOSE]]


def test_only_the_required_passes_run_without_optimisation():
    fn = lt.trace(scaled, ONES, ONES)

    ran = [name for name, _, _ in steps_of(fn, optimize=False)]

    assert "fuse" not in ran and "common_subexpressions" not in ran
    assert 2 == names(optimize_program(fn, optimize=False)).count("sin")
    assert "exp" not in names(optimize_program(fn, optimize=False))


def test_gradient_programs_lose_steps_for_cotangents_known_to_be_defined():
    gradient = lt.differentiate(lt.trace(scaled, ONES, ONES))

    assert "grad_of" in names(gradient.df)
    assert not {"grad_of", "autograd_add"} & set(
        names(optimize_program(gradient.df, optimize=False))
    )


def test_the_caller_says_which_cotangents_are_defined():
    fn = lt.trace(lambda x: (np.sin(x), np.exp(x)), ONES)
    df = lt.differentiate(fn).df

    one = optimize_program(
        df, defined=[True, False, *[True] * (len(df.params) - 2)], optimize=False
    )

    assert len(one) < len(optimize_program(df, optimize=False))


def test_a_differentiable_graph_is_cut_out_only_if_an_argument_requires_grad():
    fn = lt.trace(lambda x, y: np.exp(np.sin(np.exp(x) * y) * 2) + x, ONES, ONES)

    assert "differentiable_graph" not in names(optimize_program(fn))
    assert "differentiable_graph" not in names(optimize_program(fn, requires_grad=[False, False]))
    assert ["differentiable_graph"] == names(optimize_program(fn, requires_grad=[True, False]))


def test_small_graphs_are_inlined():
    fn = lt.trace(lambda x: np.exp(np.sin(x)), ONES)

    assert ["sin", "exp"] == names(optimize_program(fn, requires_grad=[True]))
    with smallest_subgraphs():
        assert ["differentiable_graph"] == names(optimize_program(fn, requires_grad=[True]))


def test_the_forward_programs_of_graphs_are_fused():
    fn = lt.trace(lambda x, y: (np.exp(np.sin(np.exp(x) * y) * 2) + x).sum(), ONES, ONES)

    (graph,) = optimize_program(fn, requires_grad=[True, True]).binds

    assert "fused" in names(graph.attrs["f"])


def test_user_passes_run_at_their_registered_points():
    fn = lt.trace(lambda x: np.exp(np.sin(np.exp(x) * 2) * 2) + x, ONES)
    seen = []

    def first(fn):
        seen.append(("before", names(fn)[0]))
        return fn

    def each(fn):
        seen.append(("gradient", names(fn)[0]))
        return fn

    def last(fn):
        seen.append(("after", names(fn)[0]))
        return fn

    for point, pass_ in (("before", first), ("gradient", each), ("after", last)):
        register(point, pass_)
    try:
        optimize_program(fn)
        assert [("before", "exp"), ("after", "exp")] == seen
        seen.clear()
        optimize_program(fn, requires_grad=[True])
        assert [("before", "exp"), ("gradient", "exp"), ("after", "exp")] == seen
        seen.clear()
        optimize_program(fn, optimize=False)
        assert not seen
    finally:
        for point, pass_ in (("before", first), ("gradient", each), ("after", last)):
            unregister(point, pass_)


def test_a_user_pass_sees_what_is_between_graphs_once():
    def returned_and_read(x):
        y = np.tanh(np.tanh(np.tanh(np.tanh(np.tanh(x)))))
        return y, y * 2

    fn, seen = lt.trace(returned_and_read, ONES), []

    def last(fn):
        seen.append(names(fn)[-1])
        return fn

    register("after", last)
    try:
        optimize_program(fn, requires_grad=[True])
    finally:
        unregister("after", last)

    assert ["tanh", "mul"] == seen


def test_inlined_graphs_are_optimised_again_with_what_is_around_them():
    fn = lt.trace(lambda x: np.sin(np.exp(x)) * 2 + x, ONES)

    ran = [name for name, *_ in steps_of(fn, requires_grad=[True])]

    inlined = ran.index("inline_autodiff_subgraphs")
    assert ["dead_code", "common_subexpressions"] == ran[inlined + 1 : inlined + 3]
    ran = [name for name, *_ in steps_of(lt.trace(scaled, ONES, ONES), requires_grad=[True] * 2)]
    assert "common_subexpressions" not in ran[ran.index("inline_autodiff_subgraphs") :]


def test_every_pass_is_dumped(tmp_path, monkeypatch):
    monkeypatch.setenv("LETIR_DUMP", str(tmp_path))
    fn = lt.trace(scaled, ONES, ONES)

    ran = steps_of(fn)

    texts = sorted(tmp_path.iterdir())
    assert 2 * len(ran) == len(texts)
    lt.parse(texts[-1].read_text())


@pytest.mark.parametrize("exact", [True, False])
def test_optimised_programs_are_themselves_differentiable(exact):
    fn = lt.trace(lambda x, y: (np.tanh(x * y) @ y) * np.sin(x).sum(), ONES, 2 * ONES)

    for made in (
        optimize_program(fn, exact=exact),
        optimize_program(fn, exact=exact, requires_grad=[True] * 2),
    ):
        np.testing.assert_allclose(
            lt.grad(made, 1)(ONES, 2 * ONES), lt.grad(fn, 1)(ONES, 2 * ONES), rtol=1e-13
        )


def checked_prefixes(fn, args, **options):
    """Check that the program after every pass has the results of the one before."""
    expected, current = lt.run_forward(fn, *args), fn
    for name, before, after in steps_of(fn, exact=True, **options):
        if before is not current:  # not the forward program of a differentiable graph
            lt.check(after)
            continue
        if after is not before:
            lt.check(after)
            try:
                assert_same(expected, lt.run_forward(after, *args))
            except BaseException as error:
                error.add_note(f"after {name}: {after}")
                raise
        current = after


@settings(max_examples=60)
@given(programs())
def test_every_prefix_of_the_pipeline_keeps_results(program):
    checked_prefixes(*program)


@settings(max_examples=40)
@given(programs())
def test_every_prefix_keeps_results_when_gradients_are_required(program):
    fn, args = program
    requires = [p.type.inexact and not p.type.weak for p in fn.params]
    with smallest_subgraphs():
        checked_prefixes(fn, args, requires_grad=requires)


@settings(max_examples=40)
@given(programs(dtypes=("float64", "int64", "bool")))
def test_every_prefix_keeps_gradients(program):
    fn, args = program
    try:
        gradient = lt.differentiate(fn)
    except lt.LetirError:
        return
    cts = [i for i in gradient.df_input_vjps if i < gradient.f_real_outputs]
    program = gradient.joined()
    given = [np.ones_like(lt.run_forward(gradient.f, *args)[i]) for i in cts] if cts else []
    checked_prefixes(program, [*args, *given])

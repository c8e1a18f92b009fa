"""decompose and decompose_addmm: composites replaced by their definitions."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import letir as lt
from letir import nn, run_forward
from letir.ast.primitive import PRIMITIVES
from letir.ast.types import Undef
from letir.ops import load_all
from letir.passes import decompose, decompose_addmm
from letir.testing import assert_close, assert_same, programs
from letir.testing.samples import SAMPLES
from letir.testing.samples.sample import applied_program
from tests.each_sample import each_of
from tests.passes.exactness import assert_unchanged, gradient_of, ops, row_of

load_all()
COMPOSITES = sorted(name for name in SAMPLES if PRIMITIVES[name].decompose is not None)
SMOOTH = [name for name in COMPOSITES if PRIMITIVES[name].is_differentiable]
SOME = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
X, W, B = np.ones((2, 3)), np.arange(12.0).reshape(4, 3), np.ones(4)


def deeply(fn):
    """Every decomposition that keeps the bits."""
    return decompose(fn, keep_rules=False)


@each_of(COMPOSITES)
def test_a_decomposed_composite_gives_the_same_bits(name):
    """[B4]."""
    for sample in SAMPLES[name]:
        fn, args = applied_program(PRIMITIVES[name], sample)

        assert_unchanged(decompose, fn, *args)
        assert_unchanged(deeply, fn, *args)


@each_of(COMPOSITES)
def test_every_composite_is_decomposed_when_all_are_requested(name):
    for sample in SAMPLES[name]:
        fn, _ = applied_program(PRIMITIVES[name], sample)
        found = lt.check(decompose(fn, keep_rules=False, exact=False))

        left = [bind.op.name for bind in found.binds if bind.op.decompose is not None]
        assert left == [] or None in [a.type for a in (*fn.params, *fn.ret.args)], name


def test_composites_with_their_own_derivative_are_kept_unless_asked_otherwise():
    fn = lt.trace(lambda x: nn.softmax(x, axis=-1), X)

    assert fn is decompose(fn)
    assert "exp" in ops(deeply(fn))


def test_a_composite_that_numpy_computes_is_kept_unless_rounding_may_differ():
    fn = lt.trace(np.var, X)

    assert fn is decompose(fn, keep_rules=False)
    found = decompose(fn, keep_rules=False, exact=False)
    assert "var" not in ops(found)
    assert_close(fn(W[:2]), found(W[:2]))


def test_composites_are_selected_by_name():
    fn = lt.trace(lambda x: (np.var(x), np.std(x)), X)

    assert ["std"] == [name for name in ops(decompose(fn, ops=("var",))) if name in ("var", "std")]


def test_binders_keep_names_and_lines():
    fn = lt.trace(lambda x: nn.linear(x, W, B) + 1, X)
    (linear,) = [bind for bind in fn.binds if bind.op.name == "linear"]
    found = decompose(fn)
    made = next(bind for bind in found.binds if bind.binders == linear.binders)

    assert ("add", linear.source) == (made.op.name, made.source)


def test_bodies_are_decomposed_too():
    inner = lt.checkpoint(lambda x: nn.linear(x, W, B))
    found = decompose(lt.trace(lambda x: inner(inner(x)[:, :3]), X))

    assert all("linear" not in ops(b.attrs["body"]) for b in found.binds if "body" in b.attrs)


def test_a_program_without_composites_is_returned():
    fn = lt.trace(lambda x: np.exp(x) @ x.T, X)

    assert fn is decompose(fn) is decompose_addmm(fn)


def test_a_linear_layer_with_a_bias_becomes_a_product_and_a_sum():
    fn = lt.trace(nn.linear, X, W, B)

    assert ["transpose", "matmul", "add"] == ops(decompose_addmm(fn))
    assert_same(fn(X, W, B), decompose_addmm(fn)(X, W, B))


def test_a_linear_layer_without_a_bias_stays():
    fn = lt.trace(nn.linear, X, W)

    assert fn is decompose_addmm(fn)


@SOME
@given(programs(ops=COMPOSITES))
def test_generated_programs_of_composites_give_the_same_bits(program):
    fn, args = program

    assert_unchanged(deeply, fn, *args)


def run(fn: lt.Lambda, args: list) -> tuple:
    """The results as a flat tuple."""
    return row_of(run_forward(fn, *args))


@SOME
@given(programs(ops=SMOOTH))
def test_gradients_of_decomposed_programs_are_unchanged(program):
    fn, args = program
    try:
        df, given = gradient_of(fn, args)
        dg, also = gradient_of(decompose(fn), args)
    except lt.LetirError:
        return

    assert_unchanged(deeply, df, *given)
    with np.errstate(all="ignore"):  # a derivative may meet log(0) in the branch not taken
        found = [[x for x in run(f, a) if x is not Undef] for f, a in ((df, given), (dg, also))]
    assert_close(*found)


def test_a_reduction_of_symbolic_size_stays():
    """Three elements are added as a tree, any number by a loop, which rounds differently."""
    f = lt.trace(
        lambda x: lt.reduce(lambda p, q: p + q + p * q, np.float64(0.0), x),
        lt.ShapeDtype(("n",), float),
    )

    assert f is decompose(f)


def test_a_large_outer_product_is_fused_with_the_operations_around_it():
    def rank_one_update(a, u, v):
        return a - np.outer(u, v) / (u @ v)

    def arguments(n, m):
        return np.ones((n, m)), np.linspace(0.5, 2.0, n), np.linspace(-1.0, 3.0, m)

    for n, m, is_fused in ((200, 200, True), (20, 20, False)):
        program = lt.trace(rank_one_update, *arguments(n, m))
        result = deeply(program)
        assert is_fused == all(bind.op.product != "outer" for bind in result.binds)
        assert_same(program(*arguments(n, m)), result(*arguments(n, m)))
        assert any(bind.op.product == "outer" for bind in decompose(program).binds)

    fast = lt.compile(lt.trace(rank_one_update, *arguments(200, 200)))
    assert_same(rank_one_update(*arguments(200, 200)), fast(*arguments(200, 200)))
    assert sum(bind.op.elementwise or bind.op.role == "fused" for bind in fast.optimized.binds) == 1


def test_a_large_outer_product_of_matrices_has_numpys_bits():
    for kind in ("float32", "complex128", "int64", "bool"):
        x = (np.arange(600).reshape(30, 20) % 7 - 3).astype(kind)
        program = lt.trace(lambda x: np.outer(x, x.T[:3]), x)
        assert_same(np.outer(x, x.T[:3]), deeply(program)(x))


def test_decomposing_an_operation_that_does_not_exist_is_an_error():
    with pytest.raises(lt.LetirError, match="there is no operation 'no_such_operation'"):
        decompose(lt.trace(np.exp, np.ones(2)), ops=("no_such_operation",))

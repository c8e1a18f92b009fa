"""Terms: the cursor, equality of locals and constants, and depth."""

import copy
import gc
import pickle

import numpy as np
import pytest

import letir as lt
from letir.ast.alpha_equality import canonicalize
from letir.ast.checker import check
from letir.ast.terms import Const, Lambda, Let, Local, Ret, Source
from letir.ast.text.parser import parse
from letir.ast.text.printer import dumps
from letir.ast.types import ArrayType, Undef
from tests.hazards.small_stack import on_a_small_stack


@pytest.fixture(scope="module")
def deep() -> Lambda:
    """A chain of 30,000 binds: the small stack has 8 bytes for each."""
    lines = [f"  %{i}: float64[3] = mul(%{i - 1}, %0)  # deep.py:{i}\n" for i in range(1, 30_001)]
    return parse(f"lambda %0: float64[3] {{\n{''.join(lines)}  return %30000\n}}")


def test_the_body_of_a_lambda_is_a_let_of_its_first_bind():
    """[A1]"""
    f = parse("lambda %0 { %1 = exp(%0); %2 = neg(%1); return %2 }")

    match f.body:
        case Let(bind=first, body=Let(bind=second, body=Ret(args=results))):
            assert (first, second, results) == (*f.binds, f.ret.args)


def test_the_body_of_a_lambda_without_binds_is_its_return():
    f = parse("lambda %0 { return %0 }")

    assert f.body is f.ret


def test_an_empty_lambda_is_truthy():
    assert bool(parse("lambda %0 { return %0 }")) and len(parse("lambda { return () }")) == 0


def test_locals_are_equal_only_to_themselves():
    assert Local(name="x") != Local(name="x")


def test_constants_compare_by_type_and_bits():
    """[A6]"""
    assert Const(1) == Const(1) != Const(True)
    assert Const(0.0) != Const(-0.0)


def test_the_type_of_a_constant_is_weak():
    """[A1]"""
    assert Const(2.0).type is ArrayType(float, (), weak=True)


def test_a_bind_lists_its_locals_in_order():
    f = parse("lambda %0, %1 { %2 = where(%1, 1.0, %0); return %2 }")

    assert list(f.binds[0].locals()) == [f.params[1], f.params[0]]


def test_the_constants_of_a_lambda_are_the_arrays_it_binds():
    """[B1]"""
    f = parse("lambda { %0 = constant(value=int8[1]{7})  # a/b.py:3\n %1 = neg(%0); return %1 }")

    assert [str(bind.source) for bind in f.constants] == ["a/b.py:3"]


def test_with_binds_keeps_parameters_and_results():
    f = parse("lambda %0 { %1 = exp(%0); return %0 }")

    assert parse("lambda %0 { return %0 }") == f.with_binds([])


def test_an_analysis_is_computed_once():
    """[A7]"""
    f, calls = parse("lambda %0 { return %0 }"), []

    def analysis(fn):
        calls.append(fn)
        return "found"

    assert [f.memo(analysis), f.memo(analysis), len(calls)] == ["found", "found", 1]


def test_a_source_is_short_without_its_folder():
    assert [Source("/a/b.py", 3).short, Source("c:\\a\\b.py", 3).short] == ["b.py:3", "b.py:3"]


def test_a_lambda_does_not_equal_other_objects():
    assert parse("lambda { return () }") != "lambda { return () }"


def test_a_copy_of_a_lambda_shares_no_locals_with_it():
    f = parse("lambda %0: int8[] { %1 = neg(%0); return (%1, Undef) }")
    g = copy.deepcopy(f)

    assert g == f and g.params[0] is not f.params[0]
    assert g.ret.args[1].value is Undef


def test_the_operation_of_an_unpickled_bind_is_the_registered_record():
    f = parse("lambda %0 { %1 = neg(%0); return %1 }")

    assert pickle.loads(pickle.dumps(f)).binds[0].op is f.binds[0].op


@pytest.mark.parametrize(
    "act",
    [
        lambda f: parse(dumps(f)) == f,
        lambda f: hash(f) == hash(pickle.loads(pickle.dumps(f))),
        lambda f: copy.deepcopy(f) == f,
        lambda f: canonicalize(f) == f,
        lambda f: check(f) is f,
        lambda f: len(str(f).splitlines()) < 300 < len(f.listing().splitlines()),
        lambda f: f.with_binds(f.binds) == f,
    ],
)
def test_operations_on_deep_terms_use_no_stack(deep, act):
    """[A3] Text, parse, hash, pickle, equality, copy, canonical form, check."""
    assert on_a_small_stack(lambda: act(deep))


def test_the_cursor_walks_a_deep_term_without_stack(deep):
    """[A3]"""

    def walk():
        count, term = 0, deep.body
        while type(term) is Let:
            count, term = count + 1, term.body
        return count

    assert on_a_small_stack(walk) == len(deep)


def test_a_deep_program_is_freed_without_stack(deep):
    """[A3]"""
    text = dumps(deep)

    def destroy():
        f = parse(text)
        del f
        return gc.collect() >= 0

    assert on_a_small_stack(destroy)


def test_substituting_a_binds_own_operands_returns_the_bind():
    bind = parse("lambda %0, %1 { %2 = add(%0, 1.0); return %2 }").binds[0]

    assert bind.with_args((bind.args[0], Const(1.0))) is bind
    assert bind.substitute({}) is bind


def test_substitution_replaces_operands_and_keeps_the_rest():
    fn = parse("lambda %0, %1 { %2 = mul(%0, 2.0); return (%2, %0) }")
    x, y = fn.params

    bind, ret = fn.binds[0].substitute({x: y}), fn.ret.substitute({x: y})

    assert (y, Const(2.0)) == bind.args and bind.binders is fn.binds[0].binders
    assert (fn.ret.args[0], y) == ret.args


def test_a_bind_with_other_binders_keeps_the_rest():
    bind = parse("lambda %0, %1 { %2 = add(%0, 1.0); return %2 }").binds[0]
    others = (Local(None),)

    found = bind.replace(binders=others)

    assert found.binders is others
    assert (found.op, found.args, found.attrs) == (bind.op, bind.args, bind.attrs)


def test_a_substituted_bind_keeps_its_source_line():
    bind = lt.trace(np.exp, np.ones(2)).binds[0]

    assert bind.source is not None and bind.replace(args=(Const(1.0),)).source is bind.source


def test_a_substituted_program_keeps_its_tree_while_the_leaf_count_is_the_same():
    fn = lt.trace(lambda d: (d["a"], d["b"]), {"a": np.ones(2), "b": np.ones(3)})

    swapped = fn.replace(ret=Ret(fn.ret.args[::-1]))
    first = fn.replace(params=fn.params[:1], ret=Ret(fn.ret.args[:1]))

    assert fn.in_tree is swapped.in_tree and fn.out_tree is swapped.out_tree
    assert first.in_tree is None and first.out_tree is None

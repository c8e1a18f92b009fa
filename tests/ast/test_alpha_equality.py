"""Alpha equality: equality, hash and the canonical form of programs."""

import numpy as np
import pytest

import letir.ops  # noqa: F401  registers all operations
from letir.ast.alpha_equality import canonicalize
from letir.ast.attrs import Attrs
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Bind, Lambda, Local, Ret
from letir.ast.text.parser import parse
from letir.ast.text.printer import dumps

NAMED = "lambda %5:x: int8[] { %9:y: int8[] = neg(%5)  # a.py:3\n return %9 }"
BARE = "lambda %0: int8[] { %1: int8[] = neg(%0); return %1 }"


def constant(array) -> Lambda:
    x = Local()
    return Lambda((), [Bind((x,), PRIMITIVES["constant"], (), Attrs(value=array))], Ret((x,)))


def test_names_numbering_and_lines_do_not_affect_equality():
    """[A6]"""
    assert parse(NAMED) == parse(BARE) and hash(parse(NAMED)) == hash(parse(BARE))


def test_the_canonical_form_prints_without_names_and_lines():
    """[A6] Programs that differ only in names print the same."""
    assert dumps(canonicalize(parse(NAMED))) == dumps(parse(BARE))


def test_the_canonical_form_keeps_the_order_of_binds():
    """[A2]"""
    text = "lambda %0 {\n  %1 = exp(%0)\n  %2 = neg(%0)\n  return (%2, %1)\n}"

    assert dumps(canonicalize(parse(text))) == text


def test_the_canonical_form_of_nested_lambdas_has_no_names():
    f, g = (
        parse(
            f"lambda {{ %0 = when_defined(n_cts=0, body=lambda {name} {{ return 1 }}); return %0 }}"
        )
        for name in ("%1:x", "%1")
    )

    assert dumps(canonicalize(f)) == dumps(g)


def test_the_canonical_form_is_a_copy():
    f = parse(NAMED)

    assert canonicalize(f) == f and canonicalize(f).params[0] is not f.params[0]


@pytest.mark.parametrize(
    "other",
    [
        "lambda %0: int8[], %2 { %1: int8[] = neg(%0); return %1 }",
        "lambda %0: int16[] { %1: int8[] = neg(%0); return %1 }",
        "lambda %0: int8[] { %1: int8*[] = neg(%0); return %1 }",
        "lambda %0 { %1: int8[] = neg(%0); return %1 }",
        "lambda %0: int8[] { %1: int8[] = exp(%0); return %1 }",
        "lambda %0: int8[] { %1: int8[] = neg(1); return %1 }",
        "lambda %0: int8[] { %1: int8[] = neg(%0); return %0 }",
        "lambda %0: int8[] { %1: int8[] = neg(%0); return (%1, %1) }",
        "lambda %0: int8[] { %1: int8[], %2 = neg(%0); return %1 }",
        "lambda %0: int8[] { return %0 }",
        "lambda %0: int8[] in ((*,), {}) { %1: int8[] = neg(%0); return %1 }",
        "lambda %0: int8[] out [*] { %1: int8[] = neg(%0); return %1 }",
    ],
)
def test_programs_that_differ_in_anything_else_are_not_equal(other):
    assert parse(other) != parse(BARE)


@pytest.mark.parametrize(
    ("a", "b"),
    [("axis=1", "axis=True"), ("initial=0.0", "initial=-0.0"), ("axis=1", "axis=(1,)")],
)
def test_attributes_compare_by_type_and_bits(a, b):
    """[A6]"""
    f, g = (parse(f"lambda %0 {{ %1 = sum(%0, {attr}); return %1 }}") for attr in (a, b))

    assert f != g


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.zeros(2), np.zeros(2, np.float32)),
        (np.zeros(2), np.zeros((1, 2))),
        (np.zeros(2), -np.zeros(2)),
        (np.arange(3), np.arange(1, 4)),
    ],
)
def test_constants_compare_by_dtype_shape_and_bits(a, b):
    """[A6]"""
    assert constant(a) != constant(b)


def test_nan_constants_are_equal():
    """[A6]"""
    f, g = constant(np.full(3, np.nan)), constant(np.full(3, np.nan))

    assert f == g and hash(f) == hash(g)


def test_using_one_local_twice_differs_from_using_two_locals():
    shared = parse("lambda %0, %1 { %2 = add(%0, %0); return %2 }")
    repeated = parse("lambda %0, %1 { %2 = add(%0, %1); return %2 }")

    assert shared != repeated and repeated != shared


def test_equality_distinguishes_locals_that_both_programs_use():
    f = parse("lambda %0, %1 { return (%0, %1) }")
    swapped = Lambda(f.params[::-1], (), f.ret)

    assert f != swapped and f == Lambda(f.params, (), f.ret)


def test_programs_are_hashable():
    assert {parse(NAMED): "found"}[parse(BARE)] == "found"

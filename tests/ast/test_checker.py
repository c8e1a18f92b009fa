"""``check``, which refuses ill-formed programs, and ``retype``."""

import numpy as np
import pytest
from attrs import evolve

import letir.ops  # noqa: F401  registers all operations
from letir.ast.attrs import NO_ATTRS, Attrs
from letir.ast.builder import LetBuilder
from letir.ast.checker import check, retype
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Bind, Const, Lambda, Local, Ret, Source
from letir.ast.text.parser import parse
from letir.ast.text.printer import dumps
from letir.ast.types import ArrayType, ShapeDtype
from letir.errors import DTypeError, LetirError, ScopeError, ShapeError

X, Y = Local(ArrayType(float), "x"), Local(ArrayType(float), "y")


def neg(out: Local, x, source=None) -> Bind:
    return Bind((out,), PRIMITIVES["neg"], (x,), NO_ATTRS, source)


def test_a_well_formed_program_is_returned():
    f = parse("lambda %0: float64[3] { %1: float64[3] = exp(%0); return %1 }")

    assert check(f) is f


@pytest.mark.parametrize("kind", [RecursionError, MemoryError])
def test_a_lack_of_stack_or_memory_is_not_an_error_of_the_operands(kind, monkeypatch):
    def aval(x):
        raise kind("not enough")

    op = evolve(PRIMITIVES["neg"], aval=aval)
    monkeypatch.setitem(PRIMITIVES, "neg", op)
    f = Lambda((X,), [Bind((Y,), op, (X,), NO_ATTRS, None)], Ret((Y,)))

    with pytest.raises(kind, match="not enough"):
        check(f)
    with pytest.raises(kind, match="not enough"):
        retype(f, ArrayType("float32"))
    builder = LetBuilder()
    with pytest.raises(kind, match="not enough"):  # inlined with operands of other types
        builder.inline(f, [builder.param(ArrayType("float32")).arg])


def test_unknown_types_are_accepted():
    """[A1]"""
    f = parse("lambda %0, %1: float64[3] { %2 = mul(%0, %1); %3: int8[7] = exp(%2); return %3 }")

    assert check(f) is f


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (Lambda((), [neg(Y, X)], Ret((Y,))), "x.*is free"),
        (Lambda((X,), (), Ret((Y,))), "y.*not bound"),
        (Lambda((), [neg(Local(X.type), X), neg(X, Const(1.0))], Ret(())), "x.*before it is bound"),
        (Lambda((X, X), (), Ret(())), "x.*bound twice"),
        (Lambda((X,), [neg(X, X)], Ret(())), "x.*bound twice"),
        (Lambda((X,), [Bind((Y, Y), PRIMITIVES["neg"], (X,))], Ret(())), ""),
    ],
)
def test_scope_errors_name_the_local(fn, message):
    """[A1]"""
    with pytest.raises(LetirError, match=f"(?s){message}"):
        check(fn)


def test_a_scope_error_names_the_users_line():
    """[A1]"""
    with pytest.raises(ScopeError, match=r"model\.py:7"):
        check(Lambda((), [neg(Y, X, Source("model.py", 7))], Ret(())))


@pytest.mark.parametrize("value", ["text", (1,), np.zeros(2), np.float32(1), [1]])
def test_a_constant_operand_must_be_a_number_none_or_undef(value):
    """[A1]"""
    with pytest.raises(LetirError):
        check(Lambda((), [neg(Y, Const(value))], Ret(())))


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("%2: float64[4] = mul(%0, %1)", ShapeError),
        ("%2: float32[3] = mul(%0, %1)", DTypeError),
        ("%2: float64[3], %3 = mul(%0, %1)", ShapeError),
        ("%2: float64[3] = matmul(%1, %1)", ShapeError),
    ],
)
def test_declared_types_must_agree_with_the_type_rules(line, error):
    """[A8] The message names the let line and the user's line."""
    f = parse(f"lambda %0: float64[3], %1: float64[] {{ {line}  # model.py:7\n return %0 }}")

    with pytest.raises(error, match=r"(?s)%2: float.*model\.py:7"):
        check(f)


def test_nested_lambdas_are_checked_too():
    f = parse(
        "lambda %0: float64[] { %1 = when_defined(%0, n_cts=1, body=lambda %2: float64[] {\n"
        "  %3: float64[7] = neg(%2); return %3 })\n return %1 }"
    )

    with pytest.raises(ShapeError, match="declared as"):
        check(f)


def test_attributes_must_equal_the_records_in_the_same_order():
    bind = Bind((Y,), PRIMITIVES["sum"], (X,), Attrs(keepdims=False, axis=None))

    with pytest.raises(LetirError):
        check(Lambda((X,), [bind], Ret(())))


def test_a_type_rule_that_fails_on_malformed_attributes_raises_a_letir_error():
    f = parse("lambda %0: float64[3] { %1 = sum(%0, axis='x'); return %1 }")

    with pytest.raises(LetirError, match="sum"):
        check(f)


@pytest.mark.parametrize("count", ["nan", "@6", "float64", "-1", "True", "None", "1.0"])
def test_an_attribute_that_counts_operands_is_an_int(count):
    """No type rule reads it if the type of an operand is unknown."""
    f = parse(
        "lambda %0 { %1 = constant(value=float64(1.0)); %2, %3 = scan(%1, %0, body="
        f"lambda %4, %5 {{ %6 = mul(%4, %5); return (%6, %4) }}, n_carry={count}, n_xs=1, "
        "length=3, reverse=False); return %3 }"
    )

    with pytest.raises(DTypeError, match=r"scan: a number of .* found n_carry="):
        check(f)


def test_the_number_of_saved_results_is_an_int():
    f = parse(
        "lambda %0: float64[3] { %1: float64[3] = checkpoint(%0, body=lambda %2: float64[3] {"
        " %3: float64[3] = sin(%2); return %3 }, saved=complex128); return %1 }"
    )

    with pytest.raises(DTypeError, match=r"checkpoint: a number of .* found saved="):
        check(f)


def test_retype_infers_types():
    """[A1]"""
    f = parse("lambda %0:x, %1 { %2:h = mul(%0, %1)  # a.py:3\n return %2 }")
    typed = retype(f, ShapeDtype(("n",), "float32"), np.zeros(1, np.float32))

    assert dumps(typed) == (
        "lambda %0:x: float32[n], %1: float32[1] {\n"
        "  %2:h: float32[n] = mul(%0, %1)  # a.py:3\n"
        "  return %2\n"
        "}"
    )


def test_retype_requires_a_type_for_each_parameter():
    with pytest.raises(ShapeError, match="1 parameters, found 0"):
        retype(parse("lambda %0 { return %0 }"))


def test_retype_names_the_line_where_types_do_not_fit():
    f = parse("lambda %0, %1 { %2 = mul(%0, %1)  # model.py:7\n return %2 }")

    with pytest.raises(ShapeError, match=r"(?s)%2 = mul\(%0, %1\).*model\.py:7"):
        retype(f, ArrayType(float, (2,)), ArrayType(float, (3,)))

"""Printing programs: the lossless text, the abbreviated one, and the bare listing."""

import numpy as np
import pytest

import letir as lt
import letir.ops
from letir.ast.attrs import NO_ATTRS, Attrs
from letir.ast.builder import LetBuilder
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Bind, Lambda, Local, Ret, Source
from letir.ast.text.parser import parse
from letir.ast.text.printer import bind_text, dumps, line_of, listing, untyped_text
from letir.ast.types import ArrayType
from letir.errors import ParseError
from tests.each_sample import in_one_test

LANGUAGE_MODEL = """\
%14 = embedding %11, %0, -1, None, 2, False, False
%15 = dropout %14, 0.2, True, False
%16 = index %12, 0
%17 = index %12, 1
%18 = index %13, 0
%19 = index %13, 1
%20 = index %15, 0
%21 = linear %20, %1, %3
%22 = linear %16, %2, %4
return (%21, %22, %17, %18, %19)
"""

GRADIENT = """\
df(%0 vjp of c, %1 vjp of a*b, %2 a, %3 b, %4 a*b):
  %5, %6 = grad_of[add](%0) { -> (%0, %0) }
  %7, %8 = grad_of[mul](%5) { %9 = mul(%5, %2); %10 = mul(%5, %4) -> (%9, %10) }
  %11 = autograd_add(%1, %7)
  %12, %13 = grad_of[mul](%11) { %14 = mul(%11, %3); %15 = mul(%11, %2) -> (%14, %15) }
  %16 = autograd_add(%8, %12)
  %17 = autograd_add(%6, %13)
  return (%16, %17)
"""


def long_program(binds: int) -> Lambda:
    builder = LetBuilder()
    x = builder.param(ArrayType(float))
    for _ in range(binds):
        x = -x
    return builder.build([x])


def with_attribute(value) -> str:
    """The printed form of an attribute."""
    bind = Bind((Local(),), PRIMITIVES["index"], (), Attrs(item=value))
    return dumps(Lambda((), [bind], Ret(()))).splitlines()[1]


def test_the_text_shows_params_types_names_attributes_and_lines():
    """[A1]"""
    text = """\
lambda %0: float64[3], %1:rate: float64*[] {
  %2:h: float64[3] = mul(%0, %1)  # model.py:12
  %3: float64[] = sum(%2, axis=0)
  return %3
}"""

    assert dumps(parse(text)) == text


def test_the_listing_shows_only_operations():
    """[A2] The first layers of a word-level language model."""
    builder = LetBuilder()
    p = [builder.param() for _ in range(14)]
    rows = PRIMITIVES["embedding"](p[11], p[0])
    dropped = PRIMITIVES["dropout"](rows, rate=0.2)
    h, _, c, _ = state = [p[12][0], p[12][1], p[13][0], p[13][1]]
    gates = PRIMITIVES["linear"](dropped[0], p[1], p[3]), PRIMITIVES["linear"](h, p[2], p[4])

    assert builder.build([*gates, state[1], c, state[3]]).listing() == LANGUAGE_MODEL


def test_binds_are_listed_in_the_order_in_which_they_were_recorded():
    """[A2]"""
    f = parse("lambda %0 { %1 = exp(%0); %2 = neg(%0); return (%2, %1) }")

    assert listing(f) == "%1 = exp %0\n%2 = neg %0\nreturn (%2, %1)\n"


def test_plain_text_has_the_form_of_the_golden_gradients():
    """[D5]"""
    _, *lines = GRADIENT.splitlines()
    text = "lambda %0, %1, %2, %3, %4 {\n" + "\n".join(lines) + "\n}"
    roles = ["vjp of c", "vjp of a*b", "a", "b", "a*b"]

    assert untyped_text(parse(text), "df", roles) == GRADIENT


def test_untyped_text_has_names_in_its_header_only():
    f = parse("lambda %0:x { %1:y = exp(%0); return (%1, %0) }")

    text = "lambda(%0 x):\n  %1 = exp(%0)\n  return (%1, %0)\n"
    assert untyped_text(f) == text


def test_locals_are_numbered_in_order_of_appearance_through_nested_bodies():
    f = parse(
        "lambda %7 { %3 = when_defined(%7, n_cts=0, body=lambda %8 { %9 = exp(%8); return %9 })\n"
        "%1 = neg(%3); return %1 }"
    )

    assert [word for word in dumps(f).split() if word.startswith("%")] == [
        *("%0", "%1", "%2", "%3", "%3", "%4", "%4")
    ]


def test_names_that_are_not_identifiers_are_omitted():
    param = Local(ArrayType(float), "x[0] = y")

    assert dumps(Lambda((param,), (), Ret(()))).startswith("lambda %0: float64[] {")


def test_a_source_whose_path_has_a_line_break_is_omitted():
    x = Local()
    bind = Bind((Local(),), PRIMITIVES["neg"], (x,), NO_ATTRS, Source("a\nb.py", 3))

    assert "#" not in dumps(Lambda((x,), [bind], Ret(())))


def test_attributes_equal_to_their_defaults_are_omitted():
    f = parse("lambda %0 { %1 = sum(%0, axis=None, keepdims=True); return %1 }")

    assert "sum(%0, keepdims=True)" in dumps(f)


def test_a_value_equal_to_the_default_but_of_another_type_is_printed():
    f = parse("lambda %0 { %1 = sum(%0, keepdims=0); return %1 }")

    assert "sum(%0, keepdims=0)" in dumps(f)


@in_one_test
@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((), "()"),
        ((1,), "(1,)"),
        (-0.0, "-0.0"),
        (float("-inf"), "-inf"),
        (complex(0, -0.0), "complex(0.0, -0.0)"),
        ('it\'s\n"so"', repr('it\'s\n"so"')),
        ((slice(1, None), slice(None, None, -1), ..., None), "(1:, ::-1, ..., None)"),
        (np.dtype("float16"), "float16"),
        (ArrayType("int8", (2,)), "int8[2]"),
        (np.float32(0.1), "float32(1.e-01)"),
        (np.array([[True], [False]]), "bool[2, 1]{True, False}"),
        (np.zeros((0, 2), "complex64"), "complex64[0, 2]{}"),
        (np.array(-0.0, "float16"), "float16[]{-0.e+00}"),
        (np.array([1e22]), "float64[1]{1e+22}"),
    ],
)
def test_attributes_print_as_python_literals(value, text):
    """[A5]"""
    assert with_attribute(value) == f"  %0 = index(item={text})"


def test_a_float32_has_enough_digits_for_readers_that_round_twice():
    value = np.array([0x15AE43FD], np.uint32).view(np.float32)

    assert np.float32(float(with_attribute(value).split("{")[1].rstrip("})"))) == value[0]


def test_str_shows_the_head_and_tail_of_a_long_program():
    """[A5]"""
    lines = str(long_program(1000)).splitlines()

    assert lines[101:103] == [
        "  ... 800 binds left out: dumps(f) has them all ...",
        "  %901: float64[] = neg(%900)",
    ]


def test_str_of_a_program_of_200_binds_is_complete():
    assert str(long_program(200)) == dumps(long_program(200))


def test_str_abbreviates_long_arrays():
    f = parse(f"lambda {{ %0 = constant(value=int8[9]{{{', '.join('123456789')}}}); return %0 }}")

    assert "int8[9]{1, 2, 3, 4, ..., 6, 7, 8, 9}" in str(f) and repr(f) == str(f)


@pytest.mark.parametrize("binds", [0, 300])
def test_abbreviated_text_does_not_parse(binds):
    """[A5]"""
    builder = LetBuilder()
    x = builder.param(ArrayType(int, (20,))) + np.arange(20)
    for _ in range(binds):
        x = -x

    with pytest.raises(ParseError, match="dumps"):
        parse(str(builder.build([x])))


def test_str_shows_file_names_without_folders():
    f = parse("lambda %0 { %1 = neg(%0)  # /home/me/model.py:3\n return %1 }")

    assert "  # model.py:3\n" in str(f) and "  # /home/me/model.py:3\n" in dumps(f)


def test_a_line_of_an_abbreviated_program_keeps_its_number():
    f = parse(
        "lambda %0 { %1 = when_defined(%0, n_cts=1, body=lambda %2 { return %2 })\n"
        "%3 = neg(%1); return %3 }"
    )

    assert line_of(f, f.binds[1]) == "%3 = neg(%1)"


def test_a_single_bind_prints_without_numbers():
    f = parse("lambda %0 { %1 = mul(%0, 2.0)  # a.py:3\n return %1 }")

    assert [bind_text(f.binds[0]), repr(f.binds[0])] == ["%_ = mul(%_, 2.0)  # a.py:3"] * 2


@pytest.mark.parametrize("file", ["a\nb.py", "a\u2028b.py"])
def test_the_code_at_a_place_is_left_out_where_the_name_of_its_file_has_lines(file):
    """A comment ends with its line; the code in the next one would be read as a bind."""
    f = parse("lambda %0 {\n  %1 = exp(%0)\n  return %1\n}")
    (bind,), source = f.binds, Source(file, 3, None, "exp(x)")
    named = f.with_binds([Bind(bind.binders, bind.op, bind.args, bind.attrs, source)])

    assert "exp(x)" not in dumps(named)
    assert parse(dumps(named)) == f


def test_only_the_places_of_guards_are_shown_with_their_code():
    def positive(x):
        if x.sum() > 0:
            return np.exp(x)
        return x

    text = dumps(lt.trace(positive, np.ones(2)))
    comments = {
        line.split(" = ")[-1].split("(")[0].strip(): line.partition("#")[2]
        for line in text.splitlines()
        if "#" in line
    }

    assert "x.sum() > 0" in comments["guard"]
    assert comments["exp"].endswith(f"test_printer.py:{positive.__code__.co_firstlineno + 2}")

"""Parsing programs: what the grammar allows, and every error; see also test_round_trip."""

import math

import pytest

import letir.ops  # noqa: F401  registers all operations
from letir.ast.attrs import Attrs
from letir.ast.terms import Const, Source
from letir.ast.text.lexer import MAX_DEPTH
from letir.ast.text.parser import parse
from letir.ast.text.printer import dumps
from letir.ast.types import ArrayType, Size
from letir.errors import ParseError
from tests.each_sample import in_one_test


def parsed_value(text: str):
    """The attribute value that ``text`` denotes."""
    return parse(f"lambda {{ %0 = index(item={text}); return %0 }}").binds[0].attrs["item"]


def test_parsed_arrays_are_frozen_and_own_their_memory():
    """[A1]"""
    array = parsed_value("float64[2, 2]{1, 2, 3, 4}")

    assert array.flags.owndata and array.flags.c_contiguous and not array.flags.writeable


def test_symbolic_sizes_are_parsed_in_types():
    """[B10]"""
    f = parse("lambda %0: float32[n, 2*n+1, n*m-3] { return %0 }")

    n, m = Size.named("n"), Size.named("m")
    assert f.params[0].type is ArrayType("float32", (n, 2 * n + 1, n * m - 3))


CANONICAL = """\
lambda %0:x: float64[3], %1: float64*[] {
  %2:h.0: float64[3] = mul(%0, %1)  # model.py:12
  %3: float64[] = sum(%2, axis=0)
  return %3
}"""


@pytest.mark.parametrize(
    "text",
    [
        "lambda %0:x: float64[3], %1: float64*[] { %2:h.0: float64[3] = mul(%0, %1)"
        "  # model.py:12; %3: float64[] = sum(%2, axis=0); return %3 }",
        CANONICAL.replace("\n", "\r\n"),
        CANONICAL.replace("\n", "\n\n   # a comment: with = ( signs\n"),
        CANONICAL.replace(" ", "\t  "),
        CANONICAL.replace("(%2, axis=0)", "( # why not\n %2 , \n axis = 0 )"),
        "# first\n" + CANONICAL + "\n# last",
        CANONICAL.replace("%3", "%1000").replace("%0", "%77"),
        CANONICAL.replace("return %3", "return (%3)"),
        CANONICAL.replace("return %3", "return (%3,);"),
        CANONICAL.replace("axis=0)", "axis=0);;"),
        CANONICAL.replace(": float64", ":float64"),
    ],
)
def test_white_space_comments_and_numbering_are_free(text):
    """[A1]"""
    assert dumps(parse(text)) == CANONICAL


def test_untyped_text_parses_to_unknown_types():
    """[A1]"""
    f = parse("lambda %0 { %1 = exp(%0); return %1 }")

    assert [f.params[0].type, f.binds[0].binders[0].type] == [None, None]


@pytest.mark.parametrize("ret", ["return %0, 1", "return (%0, 1)", "return (%0,\n1,)"])
def test_parentheses_around_results_are_optional(ret):
    assert parse(f"lambda %0 {{ {ret} }}").ret.args[1] == Const(1)


@pytest.mark.parametrize(
    ("comment", "place"),
    [
        ("# model.py:12", ("model.py", 12)),
        ("#model.py:12", ("model.py", 12)),
        ("# C:\\a b\\m.py:7  ", ("C:\\a b\\m.py", 7)),
        ("# a:3:4", ("a:3", 4)),
        ("# see model.py", None),
        ("# model.py:", None),
        ("", None),
        ("# 12", None),
    ],
)
def test_a_comment_with_a_line_number_is_the_source_line_of_its_bind(comment, place):
    """[A1]"""
    f = parse(f"lambda %0 {{ %1 = exp(%0) {comment}\n return %1 }}")

    assert f.binds[0].source == (None if place is None else Source(*place))


def test_a_bind_may_have_no_results():
    f = parse("lambda %0 { guard(%0, value=True); return () }")

    assert (f.binds[0].binders, f.ret.args) == ((), ())


def test_omitted_attributes_take_their_defaults():
    """[A2]"""
    (bind,) = parse("lambda %0 { %1 = sum(%0, keepdims=True); return %1 }").binds

    assert bind.attrs == Attrs(axis=None, dtype=None, keepdims=True, initial=None)


def test_attributes_may_be_written_in_any_order():
    f, g = (
        parse(f"lambda %0 {{ %1 = sum(%0, {attrs}); return %1 }}")
        for attrs in ("axis=1, keepdims=True", "keepdims=True, axis=1")
    )

    assert f == g


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("( 1,\n2 # two\n, )", (1, 2)),
        ("1 : -2 : 3", slice(1, -2, 3)),
        ("complex(1, -0.0)", complex(1, -0.0)),
        (".5", 0.5),
        ("-1.e-3", -0.001),
        ("1E5", 1e5),
        ("n*2-m+1", 2 * Size.named("n") - Size.named("m") + 1),
        ("n-n", 0),
        ("int64*[]", ArrayType(int, (), weak=True)),
        ("float32 [ 2,3 ]", ArrayType("float32", (2, 3))),
        (r"'\x41\u00e9\U0001f600\n\\'", "Aé😀\n\\"),
    ],
)
def test_values_may_be_spelled_in_several_ways(text, expected):
    found = parsed_value(text)

    assert (type(found), found) == (type(expected), expected)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_floating_elements_may_be_written_without_a_point(kind):
    assert parsed_value(f"{kind}[2]{{1, 1e999}}").tolist() == [1.0, math.inf]


def test_free_locals_of_a_grad_of_are_lifted_in_order_of_first_use():
    """[D3]"""
    short = parse("""lambda %0: int8[], %1: int16[], %2: int32[] {
      %3, %4 = grad_of[mul](%0) { %5 = mul(%0, %2); %6 = mul(%1, %2) -> (%5, %6) }
      return (%3, %4) }""")
    long = parse("""lambda %0: int8[], %1: int16[], %2: int32[] {
      %3, %4 = grad_of(%0, %2, %1, op=mul, n_cts=1,
        body=lambda %5: int8[], %6: int32[], %7: int16[] {
          %8 = mul(%5, %6); %9 = mul(%7, %6); return %8, %9 })
      return (%3, %4) }""")

    assert short == long


def test_free_locals_of_nested_grad_ofs_are_lifted_through_both():
    """[D3]"""
    text = """\
lambda %0, %1, %2 {
  %3 = grad_of[mul](%0) {
    %4 = grad_of[exp](%0) { %5 = mul(%0, %2) -> (%5) }
    %6 = mul(%4, %1) -> (%6)
  }
  return %3
}"""
    f = parse(text)
    (outer,) = f.binds
    (inner, _) = outer.attrs["body"].binds

    assert outer.args == (f.params[0], f.params[2], f.params[1])
    assert inner.args == outer.attrs["body"].params[:2]
    assert parse(dumps(f)) == f


@pytest.mark.parametrize(
    "bind",
    [
        "grad_of(%0, %0, op=mul, n_cts=1, body=lambda %4, %5 { return %5 })",
        "grad_of(%0, %1, op=mul, n_cts=1, body=lambda %4, %5 { return %4 })",
        "grad_of(%0, %1, %2, op=mul, n_cts=1, body=lambda %4, %5, %6 { return %6, %5 })",
        "grad_of(%0, 2.0, op=mul, n_cts=1, body=lambda %4, %5 { return %5 })",
        "grad_of(Undef, %1, op=mul, n_cts=1, body=lambda %4, %5 { return %4, %5 })",
        "grad_of(%0, op=mul, n_cts=1, body=lambda %4:ct { return %4 })",
        "grad_of(%0, op=mul, n_cts=1, body=lambda %4: int8[] { return %4 })",
        "grad_of(%0, op=mul, n_cts=1, body=lambda %4 out (*,) { return %4 })",
    ],
)
def test_a_grad_of_that_lifting_cannot_reproduce_is_written_as_a_call(bind):
    """[D3]"""
    f = parse(f"lambda %0, %1, %2 {{ %3 = {bind}; return %3 }}")

    assert "grad_of(" in dumps(f) and parse(dumps(f)) == f


def error(text: str) -> str:
    with pytest.raises(ParseError) as raised:
        parse(text)
    return str(raised.value)


@in_one_test
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: expected 'lambda', found the end"),
        ("def f(): pass", "expected 'lambda', found 'def'"),
        ("lambda", "expected '{', found the end"),
        ("lambda %0 { return %0", "expected '}', found the end"),
        ("lambda %0 { return %0 } }", "column 25: expected the end of the text"),
        ("lambda %0 { %1 = exp(%0) }", "expected a bind or 'return', found '}'"),
        (
            "lambda %0 {\n %1 = exp(%0)\n %2 = exp(%3)\n return %1 }",
            "line 3, column 11: %3 is not bo",
        ),
        ("lambda %0 { %1 = exp(%1); return %1 }", "%1 is not bound here"),
        ("lambda %0 { return %1 }", "%1 is not bound here"),
        ("lambda %0, %0 { return %0 }", "%0 is bound twice"),
        (
            "lambda %0 {\n%1 = exp(%0)\n%1 = exp(%0)\nreturn %1\n}",
            "line 3, column 1: %1 is bound tw",
        ),
        ("lambda %0 { %0 = exp(1); return %0 }", "%0 is bound twice"),
        ("lambda %00 { return () }", "expected '{', found '0'"),
        ("lambda %0 { %1, %1 = split(%0, sections=2); return () }", "%1 is bound twice"),
        (
            "lambda %0 { %1 = when_defined(n_cts=0, body=lambda { return %0 })",
            "%0 is not bound here",
        ),
        (
            "lambda %0 { %1 = grad_of[exp](%0) { %2 = neg(%0) -> (%2) }; return %2 }",
            "%2 is not bou",
        ),
        (
            "lambda %0 { %1 = grad_of[exp](%0) { %0 = neg(1) -> (%0) }; return %1 }",
            "%0 is bound tw",
        ),
        ("lambda %0 { %1 = grad_of[exp](%0, %0) { -> (%0) }; return %1 }", "%0 appears twice"),
        ("lambda %0 { %1 = grad_of[exp](%0) { return %0 }; return %1 }", "expected a bind or '->'"),
        (
            "lambda %0 { %1 = mul[exp](%0) { -> (%0) }; return %1 }",
            "only grad_of takes brackets",
        ),
        ("lambda %0 { %1 = grad_of[nope](%0) { -> (%0) }; return %1 }", "no operation 'nope'"),
        ("lambda %0 { %1 = my.pkg.op(%0); return %1 }", "import my.pkg first"),
        ("lambda %0 { %1 = exq(%0); return %1 }", "line 1, column 18: there is no operation 'exq'"),
        (
            "lambda %0 { %1 = sum(%0, axes=1); return %1 }",
            "26: sum has no attribute 'axes', its attrib",
        ),
        ("lambda %0 { %1 = exp(%0, axis=1); return %1 }", "its attributes: none"),
        ("lambda %0 { %1 = sum(%0, axis=1, axis=1); return %1 }", "axis appears twice"),
        ("lambda %0 { %1 = cast(%0); return %1 }", "cast: dtype must be given by name"),
        ("lambda %0 { %1 = sum(axis=1, %0); return %1 }", "operands come first"),
        ("lambda %0 { %1 = add(%0 %0); return %1 }", "expected ',' or ')', found '%'"),
        ("lambda %0 { %1 = add(mul(%0, %0), 1); return %1 }", "bind its result to a local first"),
        (
            "lambda %0 { %1 = add(%0, 'x'); return %1 }",
            "an operand is a local, a number, None or U",
        ),
        ("lambda %0 { %1 = add(%0, n); return %1 }", "an operand is a local"),
        ("lambda %0 { %1 exp(%0); return %1 }", "expected '=', found 'exp'"),
        ("lambda %0 { %1 = exp; return %1 }", "expected an operation such as mul(%0, %1)"),
        ("lambda %0 { %1 = exp(%0) %2 = exp(%0); return %1 }", "expected a new line or ';'"),
        ("lambda %0: float65[3] { return %0 }", "column 8: expected a dtype (bool, int8"),
        ("lambda %0: float64[3 { return %0 }", "expected a name or a type"),
        (
            "lambda %0: float64[x y] { return %0 }",
            "expected a size such as 3, n or 2*n+1, found 'x y'",
        ),
        ("lambda %0: float64[-1] { return %0 }", "a size is negative"),
        ("lambda %0: float64[9999999999999999999] { return %0 }", "beyond 64 bits"),
        ("lambda %0 { %1 = cast(%0, dtype=float65); return %1 }", "expected a dtype"),
        ("lambda %0 { %1 = index(%0, item='a); return %1 }", "column 33: unterminated string"),
        ("lambda %0 { %1 = index(%0, item='\\d'); return %1 }", "an escape that repr never writes"),
        ("lambda %0 { %1 = index(%0, item='\\Uffffffff'); return %1 }", "this is not a string"),
        ("lambda %0 { %1 = index(%0, item=(1)); return %1 }", "a tuple of one is (x,)"),
        ("lambda %0 { %1 = index(%0, item=); return %1 }", "expected a value, found ')'"),
        ("lambda %0 { %1 = index(%0, item=int8[2]{1, 2", "column 33: unterminated array"),
        ("lambda %0 in (*) { return %0 }", "a tuple of one is (x,)"),
        ("lambda %0 in x { return %0 }", "expected a tree: *, None"),
        ("lambda %0 in {'a': *, 'a': *} { return %0 }", "a key appears twice"),
        ("lambda %0 in {int8[1]{1}: *} { return %0 }", "a key is a number, a string"),
        (
            "lambda %0 { ... 7 binds left out: dumps(f) has them all ...\n return %0 }",
            "abbreviated",
        ),
    ],
)
def test_an_error_names_what_was_expected_what_was_found_and_where(text, message):
    assert message in error(text)


@in_one_test
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("int8[2]{1}", "expected 2 elements, found 1"),
        ("int8[2]{1, 2, 3}", "expected 2 elements, found 3"),
        ("int8[]{}", "expected 1 elements, found 0"),
        ("int8[2]{1, }", "expected an integer, found ''"),
        ("int8[1]{1.0}", "expected an integer, found '1.0'"),
        ("int8[1]{128}", "out of bounds"),
        ("uint8[1]{-1}", "out of bounds"),
        ("bool[1]{1}", "expected True or False, found '1'"),
        ("float64[1]{1_0}", "expected a number, found '1_0'"),
        ("float64[1]{infinity}", "expected a number"),
        ("float32[1]{nan@7ff8000000000000}", "expected nan@ and 8 digits"),
        ("float32[1]{nan@00000000}", "are not the bits of a nan"),
        ("complex64[1]{1.0}", "expected elements of the form complex(real, imag)"),
        ("complex64[1]{1.0, 2.0}", "expected elements of the form complex(real, imag)"),
        ("complex64[1]{complex(1.0)}", "expected elements of the form"),
        ("int8[n]{1}", "the shape of an array is made of numbers"),
        ("int8[9]{1, ..., 9}", "parse the text that dumps(f) gives"),
        ("int8[9]@0", "is an array of a file: load the file"),
        ("int9[1]{1}", "expected a dtype"),
        ("float64[0, 4611686018427387904]{}", ""),
        ("int8(1, 2)", "expected 1 elements, found 2"),
        ("complex(1)", "complex(real, imag)"),
        ("nan@7ff8", "expected nan@ and 16 digits"),
        ("9" * 5000, "4300"),
    ],
)
def test_values_without_a_meaning_are_errors(value, message):
    assert message in error(f"lambda {{ %0 = index(item={value}); return %0 }}")


NESTS = {
    "tuples": ("lambda { %0 = index(item=", "(", "1", ",)", "); return () }"),
    "keys": ("lambda in {", "(", "1", ",)", ": *} { return () }"),
    "trees": ("lambda in ", "[", "*", "]", " { return () }"),
    "lambdas": (
        "lambda { ",
        "%0 = when_defined(n_cts=0, body=lambda { ",
        "",
        "return () }); ",
        "return () }",
    ),
    "gradients": ("lambda { ", "grad_of[exp]() { ", "", "-> () }; ", "return () }"),
}


def nest(kind: str, levels: int) -> str:
    """Text of this kind nested ``levels`` deep."""
    before, opening, inside, closing, after = NESTS[kind]
    return before + opening * levels + inside + closing * levels + after


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 100_000])
@pytest.mark.parametrize("kind", NESTS)
def test_nesting_beyond_the_limit_is_a_parse_error(kind, levels):
    """[A3] RecursionError never escapes."""
    assert f"nested more than {MAX_DEPTH} levels deep" in error(nest(kind, levels))


@pytest.mark.parametrize("kind", NESTS)
def test_nesting_below_the_limit_parses_and_prints(kind):
    """[A5]"""
    f = parse(nest(kind, MAX_DEPTH // 2))

    assert parse(dumps(f)) == f


def test_parsing_on_a_nearly_exhausted_stack_is_a_parse_error():
    """RecursionError never escapes."""

    def deepest(act):
        try:
            return deepest(act)
        except RecursionError:
            return act()

    with pytest.raises(ParseError, match="stack"):
        deepest(lambda: parse(nest("tuples", 90)))


@pytest.mark.parametrize("kind", ["float64", "float65", "float", "int", "complex", "bool_"])
def test_a_type_without_sizes_is_not_read_as_a_name(kind):
    with pytest.raises(ParseError, match=f"{kind} is not a type: a type has sizes") as error:
        parse(f"lambda %0: {kind} {{ return %0 }}")

    assert (1, 12) == (error.value.line, error.value.column)
    assert kind == parse(f"lambda %0:{kind} {{ return %0 }}").params[0].name

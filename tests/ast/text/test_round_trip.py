"""``parse`` inverts ``dumps``: on generated programs and values, and on damaged text."""

import math
import struct

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import letir.ops  # noqa: F401  registers all operations
from letir.ast.attrs import Attrs, Here
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Bind, Const, Lambda, Local, Ret, Source
from letir.ast.text.literals import DTYPES
from letir.ast.text.parser import parse
from letir.ast.text.printer import dumps
from letir.ast.types import ArrayType, Size, Undef
from letir.errors import ParseError
from tests.each_sample import in_one_test

INDEX = PRIMITIVES["index"]  # its attribute ``item`` takes any value
MANY = settings(max_examples=100, deadline=None)
SOME = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def bits_of(kind: str) -> st.SearchStrategy[bytes]:
    """The bytes of an element: any bits, special values often."""
    dtype = DTYPES[kind]
    if dtype.kind == "b":
        return st.sampled_from([b"\0", b"\1"])
    special = [0, -0.0, 1, -1, 0.1, math.inf, -math.inf, math.nan] if dtype.kind in "fc" else [0, 1]
    known = st.sampled_from([np.array(v, dtype).tobytes() for v in special])
    return known | st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize)


SHAPES = st.sampled_from([(), (1,), (3,), (0,), (2, 2), (0, 3), (1, 2, 1)])


@st.composite
def arrays(draw, shapes=SHAPES):
    """Read-only arrays of any dtype, shape and bits."""
    kind, shape = draw(st.sampled_from(sorted(DTYPES))), draw(shapes)
    count = math.prod(shape)
    content = b"".join(draw(st.lists(bits_of(kind), min_size=count, max_size=count)))
    array = np.frombuffer(content, DTYPES[kind]).reshape(shape).copy()
    array.flags.writeable = False
    return array


def floats() -> st.SearchStrategy[float]:
    """Floats of any bits."""
    return bits_of("float64").map(lambda b: struct.unpack("=d", b)[0])


def numbers():
    """Python numbers, None and Undef: the constants that may be operands."""
    return st.one_of(
        st.integers(),
        floats(),
        st.builds(complex, floats(), floats()),
        st.sampled_from([True, False, None, Undef, 10**40, -(2**63)]),
    )


def words():
    """Identifiers for sizes, locals and programs."""
    return st.sampled_from(["n", "m", "batch_size", "N2", "größe", "_", "return", "op", "e5"])


def sizes():
    """Symbolic sizes."""
    powers = st.lists(words(), max_size=3).map(lambda names: tuple(sorted(names)))
    return st.dictionaries(powers, st.integers(-99, 99), min_size=1, max_size=3).map(
        Size.from_coefficients
    )


def types():
    """Array types, also of symbolic sizes."""
    sized = sizes().filter(lambda n: type(n) is Size)
    shapes = st.lists(st.integers(0, 1 << 40) | sized, max_size=3)
    return st.builds(ArrayType, st.sampled_from(sorted(DTYPES)), shapes, st.booleans())


def values():
    """Attribute values of every kind except Lambdas."""
    parts = st.none() | st.integers(-9, 9)
    leaves = st.one_of(
        numbers(),
        sizes(),
        types(),
        arrays(),
        arrays(st.just(())).map(lambda array: array[()]),
        st.text(),
        st.sampled_from(["'", '"', "\\", "a'b\"c", "#%}", "\ud800", "...", "\n"]),
        st.builds(slice, parts, parts, parts),
        st.sampled_from(list(DTYPES.values())),
        st.sampled_from([..., Here(), Here(0), Here(5)]),
    )
    return st.recursive(leaves, lambda items: st.lists(items, max_size=3).map(tuple), max_leaves=4)


def sources():
    """Source lines in files with unusual names."""
    files = st.sampled_from(
        ["model.py", "/a b/c.py", "C:\\x.py", "<stdin>", "a#b:3", "x;y.py", "é"]
    )
    return st.none() | st.builds(Source, files, st.integers(0, 10**6))


@st.composite
def programs(draw, depth=2):
    """Closed programs of any operations and attributes: well scoped, rarely well typed."""
    kinds, names = st.none() | types(), st.none() | words()
    bound = [Local(draw(kinds), draw(names)) for _ in range(draw(st.integers(0, 3)))]
    params, binds = tuple(bound), []

    def operands():
        choices = [numbers().map(Const), *([st.sampled_from(bound)] * 3 if bound else [])]
        return tuple(draw(st.lists(st.one_of(choices), max_size=4)))

    for _ in range(draw(st.integers(0, 4))):
        form = draw(st.integers(0, 4 if depth else 3))
        args = operands()
        if form < 3:
            op, attrs = INDEX, Attrs(item=draw(values()))
        elif form == 3:
            op, attrs = PRIMITIVES["mul"], Attrs()
        else:
            op = PRIMITIVES["grad_of"]
            body = draw(bodies(args, depth))
            attrs = Attrs(op=INDEX, n_cts=draw(st.integers(0, len(args))), body=body)
        binders = [Local(draw(kinds), draw(names)) for _ in range(draw(st.integers(0, 2)))]
        bound += binders
        binds.append(Bind(tuple(binders), op, args, attrs, draw(sources())))
    return Lambda(params, binds, Ret(operands()))


@st.composite
def bodies(draw, args, depth):
    """Bodies of a ``grad_of`` on these operands; many of them print in the short form."""
    body = draw(programs(depth - 1))
    if draw(st.booleans()) or len(body.params) != len(args):
        params = [Local(arg.type if type(arg) is Local else None) for arg in args]
        binds = [Bind((Local(),), INDEX, (p, 1.0), Attrs(item=0)) for p in params]
        binds = [Bind(b.binders, b.op, (b.args[0], Const(2.0)), b.attrs) for b in binds]
        body = Lambda(params, binds, Ret(tuple(b.binders[0] for b in binds)))
    return body


def attribute(value) -> Lambda:
    """A program with this value as an attribute."""
    out = Local()
    return Lambda((), [Bind((out,), INDEX, (), Attrs(item=value))], Ret((out,)))


@SOME
@given(programs())
def test_parse_inverts_dumps(f):
    """[A5]"""
    assert parse(dumps(f)) == f


@SOME
@given(programs())
def test_names_types_and_lines_survive_the_round_trip(f):
    """[A1]"""
    assert dumps(parse(dumps(f))) == dumps(f)


@MANY
@given(values())
def test_an_attribute_survives_the_round_trip(value):
    """[A5] All constants and all dtypes."""
    f = attribute(value)

    assert parse(dumps(f)) == f


@MANY
@given(numbers())
def test_a_constant_operand_survives_the_round_trip(number):
    """[A5]"""
    f = Lambda((), (), Ret((Const(number),)))

    assert parse(dumps(f)) == f


@in_one_test
@pytest.mark.parametrize("kind", sorted(DTYPES))
def test_arrays_of_every_dtype_survive_the_round_trip(kind):
    """[A5] Thousands of random bit patterns each."""
    count = 2000 * DTYPES[kind].itemsize
    content = np.random.Philox(7).random_raw(count // 8 + 1).tobytes()[:count]
    if kind == "bool":
        content = bytes(byte & 1 for byte in content)
    f = attribute(np.frombuffer(content, DTYPES[kind]))

    assert parse(dumps(f)) == f


def test_nested_lambdas_survive_the_round_trip():
    """[A5]"""
    text = """\
lambda %0: float64[] {
  %1: float64[] = when_defined(%0, n_cts=1, body=lambda %2:ct: float64[] out (*,) {
    %3: float64[] = when_defined(%2, n_cts=1, body=lambda %4: float64[] {
      %5: float64[] = neg(%4)  # inner.py:3
      return %5
    })  # middle.py:2
    return %3
  })  # outer.py:1
  return %1
}"""

    assert dumps(parse(text)) == text


def mutations(text: str):
    """Texts with one small change."""
    places = st.integers(0, len(text))
    signs = "%:=(){}[],;@.*#'\"\\-+01ean \n"
    pieces = st.sampled_from([*signs, "%0", "lambda", "...", "nan", "return", "->"])
    cut = st.tuples(places, places, pieces | st.just("")).map(
        lambda c: text[: min(c[:2])] + c[2] + text[max(c[:2]) :]
    )
    insert = st.tuples(places, pieces).map(lambda c: text[: c[0]] + c[1] + text[c[0] :])
    delete = st.tuples(places, st.integers(1, 4)).map(lambda c: text[: c[0]] + text[c[0] + c[1] :])
    return cut | insert | delete | places.map(lambda i: text[:i])


@SOME
@given(programs().map(dumps).flatmap(mutations))
def test_a_damaged_text_parses_or_is_a_parse_error(text):
    try:
        f = parse(text)
    except ParseError as found:
        assert found.line >= 1 and found.column >= 1
    else:
        assert parse(dumps(f)) == f


@MANY
@given(st.text() | st.text("lambda %0{}()=:,;[]@.*#'\\n-1e"))
def test_any_text_parses_or_is_a_parse_error(text):
    for prefix in ("", "lambda %0 { ", "lambda %0 { %1 = index(%0, item="):
        try:
            parse(prefix + text)
        except ParseError:
            continue

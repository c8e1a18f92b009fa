"""Parsing single words of the text form: numbers, dtypes, elements."""

import numpy as np
import pytest

from letir.ast.attrs import Here
from letir.ast.text.literals import (
    DTYPES,
    parse_array,
    parse_complex,
    parse_dtype,
    parse_float,
    parse_int,
    parse_placeholder,
    parse_scalar,
    parse_size,
    parse_slice,
    parse_string,
    parse_type,
)
from letir.ast.types import ArrayType, Size
from tests.each_sample import in_one_test

N, M = Size.named("n"), Size.named("m")


@in_one_test
@pytest.mark.parametrize(
    ("meaning", "text", "expected"),
    [
        (parse_int, "-12", -12),
        (parse_float, "1e3", 1000.0),
        (parse_float, "-inf", -np.inf),
        (parse_complex, "complex(1.0, -2)", 1 - 2j),
        (parse_string, r'"it\'s\n"', "it's\n"),
        (parse_slice, ":-1:", slice(None, -1)),
        (parse_placeholder, "@", Here()),
        (parse_placeholder, "@12", Here(12)),
        (parse_scalar, "int8( -3 )", np.int8(-3)),
        (parse_dtype, "float16", np.dtype("float16")),
        (parse_size, "-n + 2*n*m - 3", 2 * N * M - N - 3),
        (parse_size, "7", 7),
        (parse_type, "uint8[]", ArrayType("uint8")),
        (parse_type, "float64*[n, 2]", ArrayType(float, (N, 2), weak=True)),
    ],
)
def test_a_word_parses_to_its_value(meaning, text, expected):
    found = meaning(text)

    assert (type(found), found) == (type(expected), expected)


@in_one_test
@pytest.mark.parametrize("kind", sorted(DTYPES))
def test_every_dtype_has_empty_arrays(kind):
    """[A5]"""
    array = parse_array(DTYPES[kind], (2, 0, 3), " ")

    assert (array.shape, array.dtype.name) == ((2, 0, 3), kind)


def test_a_float32_literal_is_the_nearest_float32():
    texts = ["0.1", "16777217", "1e-46", "3.4028235e38"]

    assert parse_array(DTYPES["float32"], (4,), ",".join(texts)).tolist() == [
        float(np.float32(text)) for text in texts
    ]


@pytest.mark.parametrize(
    ("meaning", "text"),
    [
        (parse_int, "1.0"),
        (parse_int, "٣"),
        (parse_float, "1__0"),
        (parse_float, "nan@0"),
        (parse_string, "'\0'"),
        (parse_size, "n**2"),
        (parse_size, "n.m"),
        (parse_size, "*".join(["9999999999"] * 9)),
        (parse_type, "float64[3,]"),
        (parse_dtype, "float128"),
        (parse_scalar, "object(1)"),
    ],
)
def test_a_word_without_a_meaning_is_a_value_error(meaning, text):
    with pytest.raises(ValueError):
        meaning(text)

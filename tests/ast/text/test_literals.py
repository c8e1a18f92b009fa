"""What single words mean."""

import numpy as np
import pytest

from letir.ast.attrs import Here
from letir.ast.text.literals import (
    DTYPES,
    array_of,
    complex_of,
    dtype_of,
    float_of,
    here_of,
    int_of,
    scalar_of,
    size_of,
    slice_of,
    string_of,
    type_of,
)
from letir.ast.types import ArrayType, Size

N, M = Size.named("n"), Size.named("m")


@pytest.mark.parametrize(
    ("meaning", "text", "expected"),
    [
        (int_of, "-12", -12),
        (float_of, "1e3", 1000.0),
        (float_of, "-inf", -np.inf),
        (complex_of, "complex(1.0, -2)", 1 - 2j),
        (string_of, r'"it\'s\n"', "it's\n"),
        (slice_of, ":-1:", slice(None, -1)),
        (here_of, "@", Here()),
        (here_of, "@12", Here(12)),
        (scalar_of, "int8( -3 )", np.int8(-3)),
        (dtype_of, "float16", np.dtype("float16")),
        (size_of, "-n + 2*n*m - 3", 2 * N * M - N - 3),
        (size_of, "7", 7),
        (type_of, "uint8[]", ArrayType("uint8")),
        (type_of, "float64*[n, 2]", ArrayType(float, (N, 2), weak=True)),
    ],
)
def test_a_word_means_a_value(meaning, text, expected):
    found = meaning(text)

    assert (type(found), found) == (type(expected), expected)


@pytest.mark.parametrize("kind", sorted(DTYPES))
def test_every_dtype_has_arrays_without_elements(kind):
    """[A5]"""
    array = array_of(DTYPES[kind], (2, 0, 3), " ")

    assert (array.shape, array.dtype.name) == ((2, 0, 3), kind)


def test_a_float32_is_the_one_nearest_to_its_digits():
    texts = ["0.1", "16777217", "1e-46", "3.4028235e38"]

    assert array_of(DTYPES["float32"], (4,), ",".join(texts)).tolist() == [
        float(np.float32(text)) for text in texts
    ]


@pytest.mark.parametrize(
    ("meaning", "text"),
    [
        (int_of, "1.0"),
        (int_of, "٣"),
        (float_of, "1__0"),
        (float_of, "nan@0"),
        (string_of, "'\0'"),
        (size_of, "n**2"),
        (size_of, "n.m"),
        (size_of, "*".join(["9999999999"] * 9)),
        (type_of, "float64[3,]"),
        (dtype_of, "float128"),
        (scalar_of, "object(1)"),
    ],
)
def test_a_word_that_means_nothing_is_a_value_error(meaning, text):
    with pytest.raises(ValueError):
        meaning(text)

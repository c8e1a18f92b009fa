"""Parsing values in their context; test_literals has what each single word means."""

import numpy as np
import pytest

import letir.ops  # noqa: F401  registers all operations
from letir.ast.attrs import Here
from letir.ast.text.value_parser import TreeReader, ValueReader
from letir.ast.types import ArrayType, Size
from letir.errors import ParseError

N = Size.named("n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(1, 1:2, :, n+1, 2*n, @3, ..., None, True)", None),
        ("float64", np.dtype(float)),
        ("float64[n]", ArrayType(float, (N,))),
        ("n", N),
        ("nano", Size.named("nano")),
        ("infinite", Size.named("infinite")),
        ("complex64", np.dtype("complex64")),
        ("( )", ()),
    ],
)
def test_a_value_ends_where_the_next_token_begins(text, expected):
    expected = (
        expected
        if expected is not None
        else (*(1, slice(1, 2), slice(None), N + 1, 2 * N, Here(3), ..., None, True),)
    )
    reader = ValueReader(f"{text} , next")

    assert (reader.value(), reader.take(","), reader.take("next")) == (expected, True, True)


def test_an_array_stored_in_a_file_is_referred_to_by_its_number():
    arrays = [np.zeros(2), np.ones((1, 3), "int8")]

    assert ValueReader("int8[1, 3]@1", arrays).value() is arrays[1]


@pytest.mark.parametrize("text", ["int8[1, 3]@2", "int8[3]@1", "int16[1, 3]@1", "int8[1, 3]@0"])
def test_a_referred_array_must_exist_and_have_the_declared_type(text):
    with pytest.raises(ParseError, match=r"line 1, column 1: .*array"):
        ValueReader(text, [np.zeros(2), np.ones((1, 3), "int8")]).value()


def test_comments_may_stand_among_the_elements_of_an_array():
    found = ValueReader("int8[2]{1, # one }\n 2}").value()

    assert found.tolist() == [1, 2]


def test_error_positions_count_from_one():
    reader = ValueReader("(1,\n  ]")

    with pytest.raises(ParseError) as raised:
        reader.value()
    assert (raised.value.line, raised.value.column) == (2, 3)


def test_a_tree_ends_where_the_next_token_begins():
    reader = TreeReader("(*, {1: *}) {")

    assert (len(reader.tree()), reader.take("{")) == (2, True)

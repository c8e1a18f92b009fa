"""Attributes and their tokens: equality by type and bits."""

import copy
import math
import pickle
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from letir.ast.attrs import Attrs, Here, same_bits, token
from letir.errors import DTypeError
from tests.each_sample import in_one_test

OTHER_NAN = struct.unpack("<d", bytes.fromhex("010000000000f87f"))[0]


@in_one_test
@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        (complex(0.0, 0.0), complex(0.0, -0.0)),
        (math.nan, OTHER_NAN),
        ((1, 2), (1, 2.0)),
        (slice(0, 1), slice(False, 1)),
        (np.float32(1), np.float64(1)),
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(2), np.zeros(2, np.float32)),
        (np.zeros(2), -np.zeros(2)),
        ("1", 1),
        (None, "None"),
        (Here(), Here(1)),
    ],
)
def test_values_of_different_type_or_bits_have_different_tokens(a, b):
    """[A6]"""
    assert token(a) != token(b)


@pytest.mark.parametrize(
    "make",
    [
        lambda: float("nan"),
        lambda: complex(math.nan, -0.0),
        lambda: (1, (2.0, "x")),
        lambda: slice(1, None, -1),
        lambda: np.full(3, np.nan),
        lambda: np.array([[1, 2], [3, 4]]).T,
        lambda: np.float32("nan"),
    ],
)
def test_equal_values_have_equal_tokens_and_hashes(make):
    a, b = token(make()), token(make())

    assert a == b and hash(a) == hash(b)


def test_the_token_of_an_array_does_not_depend_on_its_memory_order():
    array = np.arange(6.0).reshape(2, 3)
    a, b = token(array), token(np.asfortranarray(array))

    assert a == b and hash(a) == hash(b)


def test_an_unhashable_value_is_refused_as_an_attribute():
    with pytest.raises(DTypeError, match="cannot be an attribute"):
        token([1, 2])


@given(st.floats(width=32), st.floats(width=32))
def test_arrays_have_the_same_bits_exactly_if_their_bytes_are_equal(x, y):
    a, b = np.array([x], np.float32), np.array([y], np.float32)

    assert same_bits(a, b) == (a.tobytes() == b.tobytes())


def test_attrs_are_equal_only_if_the_types_of_their_values_are():
    """[A6]"""
    one, true = Attrs(axis=1), Attrs(axis=True)

    assert (one == Attrs(axis=1), one == true) == (True, False)


def test_inequality_of_attrs_negates_equality():
    a, b = Attrs(value=np.arange(3)), Attrs(value=np.arange(3))

    assert (a != b, Attrs(axis=1) != Attrs(axis=True)) == (False, True)


def test_equal_attrs_have_equal_hashes():
    assert hash(Attrs(x=math.nan, y=(1, 2))) == hash(Attrs(x=math.nan, y=(1, 2)))


def test_attrs_do_not_equal_a_plain_dict():
    assert Attrs(axis=1) != {"axis": 1}


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.update(x=2),
        lambda a: a.pop("x"),
        lambda a: a.setdefault("y", 1),
        lambda a: a.clear(),
        lambda a: a.__setitem__("x", 2),
        lambda a: a.__delitem__("x"),
        lambda a: a.__ior__({"x": 2}),
    ],
)
def test_attrs_cannot_be_changed(change):
    attrs = Attrs(x=1)
    with pytest.raises(TypeError, match="immutable"):
        change(attrs)

    assert attrs == Attrs(x=1)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))])
def test_copies_of_attrs_are_equal(copied):
    attrs = Attrs(value=np.arange(3.0), item=(slice(1, 2), ..., Here(3)))

    assert copied(attrs) == attrs


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))])
def test_constants_stay_frozen_in_copies(copied):
    array = np.arange(3.0)
    array.flags.writeable = False

    assert not copied(Attrs(value=array))["value"].flags.writeable

"""``assert_same`` compares bits, ``assert_close`` compares values within a tolerance."""

import numpy as np
import pytest

from letir.testing import assert_close, assert_same
from tests.each_sample import in_one_test

SAME = [
    (np.nan, float("nan")),
    (np.array([1.0, np.nan]), np.array([1.0, -np.nan])),
    (np.array([1 + 1j * np.nan]), np.array([1 + 1j * np.nan])),
    ({"a": [np.float32(1)], "b": None}, {"b": None, "a": [np.float32(1)]}),
    (np.arange(6).reshape(2, 3).T, np.arange(6).reshape(2, 3).T.copy()),
    (np.zeros((0, 2)), np.ones((0, 2))),
    (True, True),
    ("text", "text"),
]
DIFFERENT = [
    (1.0, np.float64(1.0), "expected the Python scalar 1.0, found the NumPy scalar"),
    (np.float64(1.0), np.array(1.0), "expected the NumPy scalar .*, found an array float64"),
    (1, True, "expected the Python scalar 1, found the Python scalar True"),
    (np.float32(1), np.float64(1), "expected the NumPy scalar"),
    (np.ones(2, np.float32), np.ones(2), "expected dtype float32, found float64"),
    (np.ones(2), np.ones((2, 1)), r"expected shape \(2,\), found \(2, 1\)"),
    (0.0, -0.0, "expected 0.0, found -0.0"),
    (
        np.array([0.0, 1.0, 2.0]),
        np.array([0.0, 1.5, 3.0]),
        r"2 of 3 elements differ, first at \(1,\)",
    ),
    (np.array([1 + 0j]), np.array([complex(1, -0.0)]), "1 of 1 elements differ"),
    (np.array([np.nan]), np.array([1.0]), "expected nan, found 1.0"),
    ((1.0, 2.0), [1.0, 2.0], "nested"),
    ({"a": (1.0, 2.0)}, {"a": (1.0, 3.0)}, r"^found\['a'\]\[1\]: expected 2.0, found 3.0"),
    ("text", "other", "expected 'text', found 'other'"),
]


@pytest.mark.parametrize(("expected", "found"), SAME)
def test_values_with_equal_bits_are_the_same(expected, found):
    assert_same(expected, found)


@in_one_test
@pytest.mark.parametrize(("expected", "found", "message"), DIFFERENT)
def test_a_difference_is_reported_with_its_place(expected, found, message):
    with pytest.raises(AssertionError, match=message):
        assert_same(expected, found)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64])
def test_the_default_tolerance_is_for_the_coarser_dtype(dtype):
    eps = float(np.finfo(dtype).eps)
    x = np.array([1.0, 100.0, -3.0]).astype(dtype)

    assert_close(x.astype(np.complex128), x * dtype(1 + 2 * eps))
    with pytest.raises(AssertionError, match="rtol="):
        assert_close(x.astype(np.complex128), x * dtype(1.05))


def test_nan_is_close_to_nan_and_infinity_to_infinity():
    assert_close(np.array([np.nan, np.inf]), np.array([np.nan, np.inf], np.float32))
    with pytest.raises(AssertionError, match="expected inf, found nan"):
        assert_close(np.inf, np.nan)


def test_integers_are_close_only_if_they_are_equal():
    assert_close(np.arange(3), np.arange(3, dtype=np.int8))
    with pytest.raises(AssertionError, match="expected 10000000000, found 10000000001"):
        assert_close(10_000_000_000, 10_000_000_001)


def test_close_checks_nesting_and_shapes():
    with pytest.raises(AssertionError, match="shape"):
        assert_close(np.ones(2), np.ones((2, 1)))
    with pytest.raises(AssertionError, match="nested"):
        assert_close((1.0,), [1.0])


def test_tolerances_can_be_given():
    assert_close(1.0, 1.1, rtol=0.2)
    with pytest.raises(AssertionError):
        assert_close(1.0, 1.1, rtol=0.01, atol=0.01)


def test_the_two_c_types_of_64_bits_are_one_kind():
    assert_same(np.array(3, "Q")[()], np.uint64(3))
    with pytest.raises(AssertionError, match="expected the NumPy scalar"):
        assert_same(np.uint64(3), np.uint32(3))

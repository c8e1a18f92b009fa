"""Types: interned array types, symbolic sizes, and dtypes that are refused."""

import copy
import operator
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from letir.ast.types import WEAK, ArrayType, ShapeDtype, Size, Undef, broadcast_shapes, number_dtype
from letir.errors import DTypeError, ShapeError, TraceError

N, M = Size.named("n"), Size.named("m")


def polynomials():
    """Polynomial sizes in n and m, and plain ints."""
    leaves = st.integers(-5, 5) | st.sampled_from([N, M])
    operations = st.sampled_from([lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b])
    return st.recursive(leaves, lambda s: st.builds(lambda f, a, b: f(a, b), operations, s, s))


def value(size, n, m):
    return size if type(size) is int else size.evaluate({"n": n, "m": m})


def test_equal_types_are_one_object():
    made = ArrayType(np.float32, [2, N])

    assert ArrayType("float32", (2, Size.named("n"))) is made


def test_a_weak_type_differs_from_the_strong_one():
    assert ArrayType(float, (), weak=True) is not ArrayType(float)


def test_copies_and_pickles_of_a_type_are_the_same_object():
    kind = ArrayType("complex64", (N + 1, 3))

    assert copy.deepcopy(kind) is pickle.loads(pickle.dumps(kind)) is kind


def test_a_type_cannot_be_changed():
    with pytest.raises(AttributeError, match="immutable"):
        ArrayType(float).shape = (3,)


def test_a_type_prints_as_dtype_and_shape():
    assert [repr(ArrayType(bool, (2, 2 * N + 1))), repr(WEAK[int])] == [
        "bool[2, 2*n+1]",
        "int64*[]",
    ]


def test_with_shape_and_with_dtype_return_strong_types():
    kind = ArrayType(float, (), weak=True)

    assert (kind.with_shape((2,)), kind.with_dtype(int)) == (
        ArrayType(float, (2,)),
        ArrayType(int),
    )


def test_the_size_of_a_type_counts_its_elements():
    assert (ArrayType(float, (2, N)).size, ArrayType(float).size) == (2 * N, 1)


@pytest.mark.parametrize(
    "dtype", ["O", "U3", "S3", "M8[s]", "m8[s]", [("x", float)], np.longdouble]
)
def test_unsupported_dtypes_are_refused_with_a_remedy(dtype):
    """[B11]"""
    with pytest.raises(DTypeError, match=r"\n  .*\w"):
        number_dtype(dtype)


def test_foreign_byte_order_becomes_native():
    assert number_dtype(">f4").isnative and number_dtype("<i2").isnative


def test_a_size_prints_as_a_polynomial():
    """[B10]"""
    sizes = [N + 1, 1 + N, 2 * N, N - 3, -N, N * M - 3, N - N, (N + 1) * (N - 1), 0 - N * 2]

    assert list(map(str, sizes)) == [
        *("n+1", "n+1", "2*n", "n-3", "-n", "m*n-3", "0", "n*n-1", "-2*n"),
    ]


def test_a_size_without_names_is_an_int():
    assert type(N - N + 3) is int


@given(polynomials(), polynomials(), st.integers(0, 9), st.integers(0, 9))
def test_arithmetic_of_sizes_agrees_with_their_values(a, b, n, m):
    found = [value(size, n, m) for size in (a + b, a - b, a * b)]

    a, b = value(a, n, m), value(b, n, m)
    assert found == [a + b, a - b, a * b]


@given(polynomials(), polynomials())
def test_a_size_has_one_normal_form_whatever_the_order_of_operations(a, b):
    assert repr((a + b) * a) == repr(a * a + a * b)


def test_a_size_is_divisible_by_the_divisors_of_its_coefficients():
    assert (4 * N + 2) // 2 == 2 * N + 1


@given(polynomials(), st.sampled_from([-3, -2, -1, 1, 2, 3, 4]), st.integers(0, 9))
def test_quotients_and_remainders_agree_with_the_values(size, divisor, n):
    found = value(size // divisor, n, 3), value(size % divisor, n, 3)

    assert found == divmod(value(size, n, 3), divisor)


def test_quotients_have_one_form_and_an_order():
    half = N // 2

    assert list(map(str, [half, (N + 1) // 2, (half + 1) // 2, -N // 2])) == [
        *("(n//2)", "-(n//2)+n", "((n+2)//4)", "(n//2)-n"),
    ]
    assert 0 <= half <= N and N - half >= 0 and not half > N
    with pytest.raises(ShapeError):
        half > 3  # noqa: B015
    with pytest.raises(ZeroDivisionError):
        N // 0


@pytest.mark.parametrize("ask", [int, bool, float, range])
def test_converting_a_symbolic_size_to_a_python_number_is_refused(ask):
    """[B10] It is never baked silently."""
    with pytest.raises(TraceError, match="has a name but no value"):
        ask(N)


def test_two_names_cannot_be_compared():
    with pytest.raises(ShapeError, match="less or greater"):
        sorted([N, M])


@pytest.mark.parametrize("other", [0.5, np.int64(1), float("nan")])
def test_a_comparison_of_a_size_with_a_number_may_have_no_answer(other):
    assert N >= np.int64(0) and N > -0.5
    with pytest.raises(ShapeError, match="less or greater"):
        N < other  # noqa: B015
    with pytest.raises(TypeError):
        N < "n"  # noqa: B015


@given(polynomials(), polynomials(), st.lists(st.integers(0, 4), min_size=2, max_size=2))
def test_a_comparison_of_sizes_holds_for_every_value_of_their_names(a, b, values):
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        try:
            answer = compare(a, b)
        except ShapeError:
            continue
        assert answer == compare(value(a, *values), value(b, *values))


def test_no_size_is_negative():
    assert N >= 0
    assert N + 1 > 0
    assert not -N - 1 >= 0
    assert 2 * N + M >= N
    with pytest.raises(ShapeError):
        N > 0  # noqa: B015


def test_shape_dtype_accepts_names_for_sizes():
    """[B10]"""
    assert ShapeDtype(("n", 64), "float32").type is ArrayType("float32", (N, 64))


def test_shape_dtype_accepts_a_single_size_as_a_shape():
    assert [ShapeDtype(3).shape, ShapeDtype("n").shape, ShapeDtype(()).shape] == [(3,), (N,), ()]


@given(st.lists(st.lists(st.integers(0, 3), max_size=3).map(tuple), min_size=1, max_size=3))
def test_shapes_broadcast_as_in_numpy(shapes):
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ShapeError, match="do not broadcast"):
            broadcast_shapes(*shapes)
        return

    assert broadcast_shapes(*shapes) == expected


def test_a_name_broadcasts_with_itself_and_with_one():
    assert broadcast_shapes((N, 1), (1, N), (N,)) == (N, N)


@pytest.mark.parametrize("other", [2, M, N + 1])
def test_a_name_does_not_broadcast_with_another_size(other):
    with pytest.raises(ShapeError, match="do not broadcast"):
        broadcast_shapes((N,), (other,))


TRIPS = Size.named("_trips")


def test_a_size_that_a_loop_finds_is_the_number_that_it_broadcasts_to():
    assert broadcast_shapes((TRIPS, 2), (3, 2)) == broadcast_shapes((3, 2), (TRIPS, 1)) == (3, 2)


@pytest.mark.parametrize("other", [N, Size.named("_rows")])
def test_a_size_that_a_loop_finds_does_not_broadcast_with_a_name(other):
    with pytest.raises(ShapeError, match="do not broadcast"):  # either may be 1
        broadcast_shapes((TRIPS,), (other,))


def test_undef_is_one_object():
    assert copy.deepcopy(Undef) is pickle.loads(pickle.dumps(Undef)) is Undef

"""Argument checks of programs [B7], also with symbolic sizes [B10]."""

import numpy as np
import numpy.ma
import pytest

import letir as lt
from letir.ast.terms import Lambda, Local, Ret
from letir.ast.text.parser import parse
from letir.ast.types import ArrayType, ShapeDtype, Size
from letir.eval.arguments import leaf_names
from letir.testing import assert_same

X = np.array([1.0, 2.0, 3.0])
N = Size.named("n")


def taking(*types: ArrayType | None) -> Lambda:
    """A program with parameters of these types, which it returns."""
    params = tuple([Local(kind) for kind in types])
    return Lambda(params, (), Ret(params))


def sized(*shapes) -> Lambda:
    """A program with float64 parameters of these shapes."""
    return taking(*[ArrayType(float, shape) for shape in shapes])


# ---- number, dtype, shape ----


def test_the_number_of_arguments_is_checked():
    """[B7]"""
    with pytest.raises(lt.ShapeError, match="the program takes 2 arrays, found 3"):
        sized((), ())(X, X, X)


def test_all_mismatched_arguments_are_listed_with_expected_and_found_types():
    """[B7]"""
    f = lt.trace(lambda x, y, z: x * y * z, X, X, 2.0)

    with pytest.raises(lt.DTypeError) as caught:
        f(X[:2], X, np.ones(3, "float32"))
    assert """\
arguments do not fit the program
  argument 0 (x): expected float64[3], found float64[2]
  argument 2 (z): expected float64*[], found float32[3]
  trace again for other types""" == str(caught.value).partition("\n  at ")[0]


def test_a_mismatch_of_shapes_alone_is_a_shape_error():
    with pytest.raises(
        lt.ShapeError, match=r"argument 1: expected float64\[2\], found float64\[3\]"
    ):
        sized((3,), (2,))(X, X)


@pytest.mark.parametrize("other", [X.astype("float32"), X > 1, X + 0j, X.astype(int)])
def test_another_dtype_is_a_dtype_error(other):
    with pytest.raises(lt.DTypeError, match=r"argument 0: expected float64\[3\], found"):
        sized((3,))(other)


def test_a_different_rank_is_a_shape_error():
    with pytest.raises(lt.ShapeError, match=r"expected float64\[3\], found float64\[3, 1\]"):
        sized((3,))(X[:, None])


def test_a_numpy_scalar_is_accepted_for_a_0d_array():
    x = np.array(1.0)

    assert_same((np.float64(1.0), x), sized((), ())(x[()], x))


def test_an_array_of_the_other_byte_order_has_the_same_type():
    x = X.astype(">f8")

    assert sized((3,))(x) is x


# ---- Python numbers ----


@pytest.mark.parametrize(
    "number, dtype, expected",
    [(2, float, 2.0), (2, complex, 2 + 0j), (2.5, complex, 2.5 + 0j), (True + 0, int, 1)],
)
def test_a_python_number_widens_as_in_python(number, dtype, expected):
    """[A1] An int is accepted where a float was recorded."""
    assert_same(expected, taking(ArrayType(dtype, (), weak=True))(number))


@pytest.mark.parametrize("number", [True, 1j, "1", None, [1.0]])
def test_other_python_values_are_refused_for_a_float(number):
    with pytest.raises(lt.DTypeError, match="argument 0: "):
        taking(ArrayType(float, (), weak=True))(number)


def test_a_float_is_refused_for_an_int():
    with pytest.raises(lt.DTypeError, match=r"expected int64\*\[\], found float64\*\[\], a Python"):
        taking(ArrayType(int, (), weak=True))(1.0)


def test_a_numpy_scalar_is_refused_for_a_python_number_with_the_remedy():
    """[A1] Unlike a Python number, it would promote float32 arrays to float64."""
    with pytest.raises(
        lt.DTypeError, match=r"expected float64\*\[\], found float64\[\]: pass x.item\(\)"
    ):
        taking(ArrayType(float, (), weak=True))(np.float64(1.0))


def test_a_python_number_is_refused_for_an_array_with_the_remedy():
    with pytest.raises(
        lt.DTypeError, match=r"found float64\*\[\], a Python number: pass numpy.float32\(x\)"
    ):
        taking(ArrayType("float32"))(1.0)


def test_another_python_number_needs_no_new_program():
    """[A1] A float32 array stays float32."""
    f = lt.trace(lambda x, rate: x * rate, X.astype("float32"), 0.5)

    assert_same(X.astype("float32") * 0.25, f(X.astype("float32"), 0.25))


# ---- symbolic sizes ----


def test_a_name_takes_the_size_of_the_argument():
    """[B10]"""
    f = lt.trace(lambda x: x.sum(axis=1), ShapeDtype(("n", 2)))

    assert [(3,), (0,)] == [f(np.ones((n, 2))).shape for n in (3, 0)]


def test_sizes_of_the_same_name_must_be_equal():
    """[B10]"""
    f = sized((N, 2), (N,))
    f(np.ones((3, 2)), X)

    with pytest.raises(lt.ShapeError) as caught:
        f(np.ones((4, 2)), X)
    assert """\
arguments do not fit the program with n = 4
  argument 1: expected float64[n], found float64[3]
  trace again for other types""" == str(caught.value).partition("\n  at ")[0]


def test_a_name_may_occur_twice_in_one_shape():
    """[B10]"""
    f = sized((N, N))
    f(np.ones((3, 3)))

    with pytest.raises(lt.ShapeError, match=r"with n = 3\n  argument 0: expected float64\[n, n\]"):
        f(np.ones((3, 2)))


def test_the_other_axes_of_a_symbolic_shape_are_checked():
    with pytest.raises(lt.ShapeError, match=r"expected float64\[n, 2\], found float64\[3, 3\]"):
        sized((N, 2))(np.ones((3, 3)))


@pytest.mark.parametrize("swapped", [False, True])
def test_a_size_computed_from_a_name_is_checked(swapped):
    """[B10] Also where the computed size comes first."""
    shapes = [(N,), (2 * N + 1,)]
    good, bad = [np.ones(3), np.ones(7)], [np.ones(3), np.ones(6)]
    order = slice(None, None, -1 if swapped else 1)
    f = sized(*shapes[order])
    f(*good[order])

    with pytest.raises(lt.ShapeError, match=r"with n = 3\n.*expected float64\[2\*n\+1\]"):
        f(*bad[order])


@pytest.mark.parametrize(
    "shape, good, bad",
    [
        ((2 * N,), (6,), (5,)),
        ((2 * N + 1, N), (7, 3), (7, 2)),
        ((2 * N, N + 1), (6, 4), (6, 3)),
        ((N + 1,), (1,), (0,)),
        ((N * N, N), (9, 3), (8, 3)),
    ],
)
def test_a_name_that_occurs_only_in_sums_and_products_is_solved(shape, good, bad):
    """[B10]"""
    f = sized(shape)
    f(np.ones(good))

    with pytest.raises(lt.ShapeError, match="expected"):
        f(np.ones(bad))


def test_several_names_stand_for_different_sizes():
    m = Size.named("m")
    f = sized((N, m), (m, N), (N + m,), (N * m,))
    f(np.ones((2, 3)), np.ones((3, 2)), np.ones(5), np.ones(6))

    with pytest.raises(lt.ShapeError, match=r"with n = 2, m = 3\n  argument 3: .*\[m\*n\]"):
        f(np.ones((2, 3)), np.ones((3, 2)), np.ones(5), np.ones(5))


def test_an_undetermined_sum_of_names_accepts_any_size():
    f = sized((N + Size.named("m"),))

    assert f(X) is X


def test_a_program_of_symbolic_sizes_may_be_called_in_a_trace_of_symbolic_sizes():
    """[B10]"""
    f = lt.trace(lambda x: x * 2, ShapeDtype("n"))
    g = lt.trace(lambda x: f(x) + 1, ShapeDtype("k"))

    assert_same(X * 2 + 1, g(X))


# ---- unknown types and foreign values ----


@pytest.mark.parametrize("value", [X, X > 1, 1.0, np.float32(2), np.zeros((0, 3)), 1j])
def test_a_parameter_of_unknown_type_accepts_any_array_or_number(value):
    """[A1]"""
    assert_same(value, taking(None)(value))


@pytest.mark.parametrize("kind", [None, ArrayType(float, (2,))])
def test_a_masked_array_is_refused_with_its_conversion(kind):
    """[B11]"""
    masked = numpy.ma.masked_array([1.0, 2.0], [True, False])

    with pytest.raises(
        lt.DTypeError, match=r"argument 0: numpy.ma.MaskedArray is not an array .*: fill it first"
    ):
        taking(kind)(masked)


def test_foreign_values_are_listed_with_the_other_mismatches():
    """[B7, B11]"""
    with pytest.raises(lt.DTypeError) as caught:
        sized((3,), (2,), (3,))(np.array(["a", "b", "c"]), X, X)
    _, strings, shapes, *_ = str(caught.value).splitlines()
    assert strings.startswith("  argument 0: ") and "encode them as integers first" in strings
    assert "  argument 1: expected float64[2], found float64[3]" == shapes


def test_an_undefined_cotangent_is_accepted_for_an_unknown_type():
    """[D7]"""
    g = lt.differentiate(parse("lambda %0, %1 { %2 = mul(%0, %1); return %2 }"))

    assert (lt.Undef, lt.Undef) == g.df(lt.Undef, X, X)


def test_leaves_are_named_by_their_parameter_and_path():
    assert leaf_names(lambda x, y: x, (1.0, {"a": 2.0}), {"z": 3.0}) == ["x", "y.a", "z"]

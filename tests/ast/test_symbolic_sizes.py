"""Symbolic sizes: programs instantiated for other types."""

import numpy as np
import pytest
from hypothesis.vendor.pretty import pretty

import letir as lt
from letir.ast.attrs import Attrs
from letir.ast.symbolic_sizes import given_sizes, has_static_shape, is_static_shape, resize_attrs
from letir.ast.types import ArrayType, Size

N = Size.named("n")
M = Size.named("m")


def centred(x, w):
    """A function whose gradient has attributes with shapes, as it sums and broadcasts."""
    h = x @ w
    return ((h - h.mean(0)) ** 2).sum()


def test_names_are_solved_from_the_given_types():
    declared = [ArrayType(float, (N, 3)), ArrayType(float, (N + 1,)), ArrayType(float, (M,))]
    given = [ArrayType(float, (4, 3)), ArrayType(float, (5,)), ArrayType(float, (2 * N,))]

    assert {"n": 4, "m": 2 * N} == given_sizes(declared, given)
    assert {"n": 4} == given_sizes(declared[:1], [np.ones((4, 3))])
    assert {} == given_sizes(declared, declared)


def test_attributes_get_the_numbers():
    attrs = Attrs(shape=(N + 1, 3, M), axis=0)

    assert Attrs(shape=(5, 3, M), axis=0) == resize_attrs(attrs, {"n": 4})
    assert Attrs(shape=(M + 1, 3, M), axis=0) == resize_attrs(attrs, {"n": M})
    plain = Attrs(shape=(2, 3), axis=0)
    assert plain is resize_attrs(plain, {"n": 4})


def test_a_batched_gradient_can_be_traced_jitted_and_retyped():
    gradient = lt.trace(lt.grad(centred, (0, 1)), np.ones((2, 3)), np.ones((3, 4)))
    mapped = lt.vmap(gradient, in_axes=(0, None))
    x, w = np.arange(36.0).reshape(6, 2, 3), np.ones((3, 4))
    expected = mapped(x, w)

    for fn in (lt.trace(mapped, x, w), lt.jit(mapped), lt.trace(mapped, x, w, abstract=True)):
        for a, b in zip(expected, fn(x, w), strict=True):
            np.testing.assert_array_equal(a, b)
    types = [ArrayType(float, x.shape), ArrayType(float, w.shape)]
    assert (6, 2, 3) == lt.retype(mapped, *types).ret.args[0].type.shape


def test_a_shape_is_static_if_all_its_sizes_are_numbers():
    assert is_static_shape(()) and is_static_shape((0, 3))
    assert not is_static_shape((2, N)) and not is_static_shape((N + 1,))
    assert not is_static_shape(None)


def test_a_type_has_a_static_shape_if_it_is_known_and_all_sizes_are():
    assert has_static_shape(ArrayType(float, (2, 3)))
    assert not has_static_shape(ArrayType(float, (2, N)))
    assert not has_static_shape(None)


def test_a_size_is_made_by_its_name():
    assert lt.Size("n") == lt.Size.named("n")
    assert "2*n+1" == str(2 * lt.Size("n") + 1)
    with pytest.raises(lt.ShapeError, match="cannot name a size"):
        lt.Size("a b")
    with pytest.raises(lt.DTypeError, match=r"a size has a name, Size\('n'\)"):
        lt.Size(3)


def test_a_size_may_be_written_as_a_polynomial_that_bounds_it():
    assert lt.ShapeDtype(("n + 2", "2*n+1")).type == ArrayType(float, (N + 2, 2 * N + 1))
    assert lt.ShapeDtype("2+1").shape == (3,)
    for wrong in ("n+", "n**2", "_n+1", "n/2"):
        with pytest.raises(lt.ShapeError, match=r"is not a size|cannot name a size"):
            lt.ShapeDtype((wrong,))


def test_an_undecided_comparison_says_how_large_the_size_would_have_to_be():
    def first_two(x):
        return x[:2]

    with pytest.raises(lt.ShapeError, match=r"at least 2: ShapeDtype\(\('n\+2',\)\)"):
        lt.trace(first_two, lt.ShapeDtype("n"))
    first = lt.trace(first_two, lt.ShapeDtype("n+2"))
    np.testing.assert_array_equal(first(np.arange(5.0)), [0, 1])
    with pytest.raises(lt.ShapeError):
        first(np.arange(1.0))


def test_a_size_is_printed_by_pretty_printers_that_take_it_for_an_int():
    assert pretty([2 * Size("n"), 3]) == "[2*n, 3]"


def test_whether_a_size_is_zero_may_follow_from_its_form():
    n = Size.named("n")

    assert bool(n + 1) is True
    with pytest.raises(lt.errors.TraceError, match="no value"):
        bool(n)


@pytest.mark.parametrize("divisor", [-3, -2, -1, 1, 2, 3])
def test_quotients_of_sizes_are_rounded_down_as_pythons(divisor):
    n = Size.named("n")
    program = lt.trace(lambda x: x.sum() + 0.0 * (x.shape[0] // divisor), lt.ShapeDtype((n,)))

    quotient = n // divisor
    assert quotient == -n // -divisor
    for count in range(7):
        assert resize_attrs({"value": quotient}, {"n": count})["value"] == count // divisor
    assert program(np.ones(3)) == 3.0

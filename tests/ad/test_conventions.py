"""Gradients of broadcast operands [D10], and at points without a derivative [D13]."""

import itertools
from pathlib import Path

import numpy as np
import pytest

import letir as lt
from letir.ast.attrs import Attrs
from letir.ast.primitive import PRIMITIVES
from letir.eval.evaluator import compute
from letir.ops import load_all
from letir.testing import assert_close


def sum_to_size(x, shape):
    return compute(PRIMITIVES["sum_to_size"], (x,), Attrs(shape=shape))


@pytest.mark.parametrize(
    ("found", "wanted"),
    [((2, 3), (3,)), ((2, 3), (1, 3)), ((2, 3), (2, 1)), ((4, 2, 3), (1, 1)), ((0, 3), (3,))],
)
def test_broadcast_axes_are_summed_and_axes_of_length_1_kept(found, wanted):
    """[D10]; an empty axis sums to 0."""
    x = np.arange(np.prod(found), dtype=float).reshape(found)

    total = sum_to_size(x, wanted)

    assert (wanted, x.sum()) == (total.shape, total.sum())


def test_an_array_of_the_target_shape_is_returned_itself_and_0d_gets_the_full_sum():
    """[D10]."""
    x = np.ones((2, 3))

    assert x is sum_to_size(x, (2, 3))
    assert 6.0 == sum_to_size(x, ())


@pytest.mark.parametrize("shape", [(), (3,), (1, 3), (2, 1), (2, 3)])
def test_a_broadcast_operand_has_a_gradient_of_its_own_shape(shape):
    """[D10]."""
    by_x = lt.grad(lambda x, y: (x * y).sum())(np.ones(shape), np.full((2, 3), 2.0))

    assert (shape, 12.0) == (np.shape(by_x), np.sum(by_x))


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (np.max, [1.0, 1.0, 0.0], [0.5, 0.5, 0.0]),
        (np.min, [1.0, 0.0, 0.0], [0.0, 0.5, 0.5]),
        (lambda x: np.maximum(x, x[::-1]).sum(), [1.0, 1.0], [1.0, 1.0]),
        (lambda x: np.maximum(x, 0).sum(), [-1.0, 0.0, 1.0], [0.0, 0.5, 1.0]),
        (lambda x: abs(x).sum(), [-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]),
        (lambda x: np.sign(x).sum(), [-1.0, 0.0], [0.0, 0.0]),
        (lambda x: np.clip(x, 0.0, 1.0).sum(), [-1.0, 0.0, 1.0, 2.0], [0.0, 1.0, 1.0, 0.0]),
        (np.prod, [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]),
        (np.prod, [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]),
        (lambda x: (x**0).sum() + (x**2).sum(), [0.0, 1.0], [0.0, 2.0]),
    ],
)
def test_a_point_without_a_derivative_has_the_value_of_the_table(f, x, expected):
    """[D13]."""
    np.testing.assert_array_equal(expected, lt.grad(f)(np.array(x)))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_nan_in_the_untaken_branch_of_where_does_not_reach_the_gradient():
    """[D13]: the untaken logarithm of a negative number is nan."""
    x = np.array([-1.0, 2.0])

    found = lt.grad(lambda x: np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), 0.0).sum())(x)

    np.testing.assert_array_equal([0.0, 0.5], found)


def test_of_two_writes_to_one_element_the_last_gets_the_cotangent():
    """[D13]."""
    places = np.array([0, 0, 1])

    found = lt.grad(lambda v: (np.zeros_like(v).at[places].set(v) * np.arange(1.0, 4.0)).sum())

    np.testing.assert_array_equal([0.0, 1.0, 2.0], found(np.array([5.0, 6.0, 7.0])))


KINKS = {"floor_divide": "//", "remainder": "%"}  # names in the table that differ from ours
STEP = 1e-7


def kinks(function: np.ufunc):
    """(operands, position) where a function is finite and its one-sided derivatives differ."""
    for point in itertools.product([-1.0, 0.0, 1.0], repeat=function.nin):
        for i in range(function.nin):
            behind, here, ahead = (
                function(*[x + (h if j == i else 0) for j, x in enumerate(point)])
                for h in (-STEP, 0.0, STEP)
            )
            slopes = np.array([here - behind, ahead - here]) / STEP
            if np.isfinite(slopes).all() and np.ptp(slopes) > 1e-3 * (1 + np.abs(slopes).max()):
                yield point, i


def real_functions() -> dict[str, np.ufunc]:
    """The ufuncs from real numbers to real numbers that operations record, by name."""
    load_all()
    functions = {
        name: next((f for f in op.numpy if isinstance(f, np.ufunc)), None)
        for name, op in PRIMITIVES.items()
        if op.elementwise
    }
    return {n: f for n, f in functions.items() if f and {"d->d", "dd->d"} & set(f.types)}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_elementwise_function_with_a_kink_is_in_the_table():
    """[D13], and the derivative at a kink is finite, except for arctan2."""
    page = (Path(__file__).parents[2] / "docs" / "semantics.md").read_text(encoding="utf-8")
    rows = [line for line in page.split("### D13")[1].splitlines() if line.startswith("| `")]
    table = " ".join(line.split("|")[1] for line in rows)
    functions = real_functions()
    found = {name: points for name, f in functions.items() if (points := list(kinks(f)))}

    assert {"abs", "maximum", "hypot", "floor", "remainder"} <= found.keys()
    for name, points in found.items():
        assert f"`{KINKS.get(name, name)}`" in table, name
        for point, i in points:
            slope = lt.grad(functions[name], i)(*point)
            assert np.isfinite(slope) or name == "arctan2", (name, point)


@pytest.mark.parametrize("f", [np.sqrt, np.cbrt])
def test_a_root_of_0_has_a_tangent_of_0_along_a_tangent_of_0(f):
    """[D13]: JAX gives nan."""
    (value, tangent) = lt.jvp(lambda x: f((x * x).sum()), (np.zeros(3),), (np.ones(3),))

    assert (0.0, 0.0) == (value, tangent)


@pytest.mark.parametrize("f", [np.sqrt, np.cbrt])
def test_a_root_of_0_in_the_untaken_branch_has_a_zero_gradient(f):
    """[D13]: 0, not 0 / 0, to second order; in the taken branch the derivative is infinite."""

    def chosen(x):
        return np.where(x > 0, f(x), 0 * x).sum()

    x = np.array([0.0, 4.0])
    slope = lt.grad(lambda v: f(v).sum())(x[1:])[0]

    with np.errstate(divide="ignore", invalid="ignore"):
        assert_close(np.array([0.0, slope]), lt.grad(chosen)(x))
        assert np.isfinite(lt.hessian(chosen)(x)).all()
        assert lt.grad(f)(0.0) == np.inf

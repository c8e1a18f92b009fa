"""SciPy's splines and ``interp1d`` in recorded functions."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close, check_grads
from tests.each_sample import in_one_test

interpolate = pytest.importorskip("scipy.interpolate")
KNOTS = np.array([0.0, 1.0, 2.5, 3.0, 4.0])
VALUES = np.array([1.0, -1.0, 2.0, 0.5, 3.0])
X, OUTSIDE = np.array([0.2, 1.1, 2.7, 3.9]), np.array([-1.0, 0.3, 2.6, 5.0])

AT_POINTS = {
    "spline": interpolate.CubicSpline(KNOTS, VALUES),
    "without extrapolation": interpolate.CubicSpline(KNOTS, VALUES, extrapolate=False),
    "periodic": interpolate.CubicSpline(
        KNOTS, np.append(VALUES[:-1], VALUES[0]), bc_type="periodic"
    ),
    "along an axis": interpolate.CubicSpline(KNOTS, np.stack([VALUES, VALUES**2]), axis=1),
    "pchip": interpolate.PchipInterpolator(KNOTS, VALUES),
    "akima": interpolate.Akima1DInterpolator(KNOTS, VALUES),
    "b-spline": interpolate.make_interp_spline(KNOTS, np.stack([VALUES, VALUES], 1)),
    "smooth": interpolate.UnivariateSpline(KNOTS, VALUES, s=0),
    "the derivative": lambda x: AT_POINTS["spline"](x, 1),
    **{
        kind: interpolate.interp1d(
            KNOTS, np.stack([VALUES, VALUES**2]), kind=kind, bounds_error=False, fill_value=9.0
        )
        for kind in ("linear", "nearest", "previous", "next", "cubic")
    },
}


@in_one_test
@pytest.mark.parametrize("name", AT_POINTS)
def test_values_at_traced_points(name):
    def f(x):
        return AT_POINTS[name](x), AT_POINTS[name](x[1]) * 2.0

    program = lt.trace(f, X)

    for x in (X, OUTSIDE):
        assert_close(f(x), program(x))
    check_grads(AT_POINTS[name], (X,), order=1)


@in_one_test
@pytest.mark.parametrize("name", AT_POINTS)
def test_the_value_at_a_number_is_an_array_without_axes(name):
    def f(x):
        return AT_POINTS[name](x)

    for x in (1.1, np.float64(1.1), np.array(1.1)):
        for result in (lt.trace(f, x)(x), lt.jit(f)(x)):
            assert type(f(x)) is type(result) is np.ndarray
            assert f(x).shape == result.shape


EDGES = np.array([0.0, 0.0, 0.0, 1.0, 2.5, 4.0, 4.0, 4.0])
OF_VALUES = {
    "linear": lambda y: interpolate.interp1d(KNOTS, y)(X),
    "nearest": lambda y: interpolate.interp1d(KNOTS, y, kind="nearest")(X),
    "cubic": lambda y: interpolate.CubicSpline(KNOTS, y)(X),
    "natural": lambda y: interpolate.CubicSpline(KNOTS, np.stack([y, -y], 1), bc_type="natural")(X),
    "the derivative": lambda y: interpolate.CubicSpline(KNOTS, y)(X, 2),
    "conditions": lambda y: interpolate.CubicSpline(KNOTS, y, bc_type=((1, 0.5), (2, -1.0)))(X),
    "pchip": lambda y: interpolate.PchipInterpolator(KNOTS, y)(X),
    "pchip along an axis": lambda y: interpolate.PchipInterpolator(
        KNOTS, np.stack([y, y**3]), axis=1, extrapolate=False
    )(OUTSIDE[1:3], 1),
    "pchip, two points": lambda y: interpolate.PchipInterpolator([0.0, 2.0], y[:2])(X),
    "akima": lambda y: interpolate.Akima1DInterpolator(KNOTS, y)(X),
    "makima": lambda y: interpolate.Akima1DInterpolator(KNOTS, y + 0.1 * KNOTS**2, method="makima")(
        X
    ),
    "hermite": lambda y: interpolate.CubicHermiteSpline(KNOTS, y, y[::-1])(X),
    "b-spline": lambda y: interpolate.make_interp_spline(KNOTS, y)(X),
    "quadratic": lambda y: interpolate.make_interp_spline(KNOTS, np.stack([y, -y]), 2, axis=1)(X),
    "ends of a b-spline": lambda y: interpolate.make_interp_spline(
        KNOTS, y, bc_type=([(1, 0.5)], [(2, -1.0)])
    )(X, 1),
    "coefficients": lambda y: interpolate.BSpline(EDGES, y, 2)(X),
    "pieces": lambda y: interpolate.PPoly(np.stack([y[:4], y[1:]]), KNOTS)(X),
    "splev": lambda y: interpolate.splev(X, (EDGES, y, 2)),
    "splev outside": lambda y: (
        interpolate.splev(OUTSIDE, (EDGES, y, 2), ext=1)
        + interpolate.splev(OUTSIDE, (EDGES, y, 2), ext=3)
    ),
    "knots of its own": lambda y: interpolate.CubicSpline(np.arange(5.0), y, axis=0)(0.5),
    "a grid of its own": lambda y: interpolate.interp1d(x=np.linspace(0, 9, y.size), y=y)(2.25),
}


@pytest.mark.parametrize("name", OF_VALUES)
def test_interpolation_of_traced_values(name):
    f = OF_VALUES[name]
    program = lt.trace(f, VALUES)

    for y in (VALUES, np.cos(VALUES)):
        assert_close(f(y), program(y))
    check_grads(f, (VALUES,), order=2)


def test_values_and_derivatives_of_splev_by_points_and_knots():
    def both(x, t):
        at_points = interpolate.splev(x, (EDGES, VALUES, 2))
        return at_points + interpolate.splev(X, (t, VALUES, 2), der=1)

    assert_close(both(X, EDGES), lt.trace(both, X, EDGES)(X, EDGES))
    check_grads(lambda x: interpolate.splev(x, (EDGES, VALUES, 2), der=1), (OUTSIDE,), order=1)
    inner = np.array([1.0, 2.5])
    check_grads(
        lambda t: both(X, np.concatenate([EDGES[:3], t, EDGES[5:]])), (inner,), order=1, rtol=1e-5
    )


def test_slopes_that_keep_the_shape_are_flat_beside_an_extremum():
    flat = np.array([0.0, 1.0, 1.0, 0.5, 2.0])
    slope = lt.jacobian(lambda y: interpolate.PchipInterpolator(KNOTS, y)(KNOTS, 1))(flat)

    assert np.isfinite(slope).all()
    assert_close(np.zeros((3, 5)), slope[1:4])


def test_points_outside_are_an_error_that_is_guarded():
    f = interpolate.interp1d(KNOTS, VALUES)
    program = lt.trace(lambda x: f(x), X)  # noqa: PLW0108  the class is no function

    with pytest.raises(lt.GuardError):
        program(OUTSIDE)
    with pytest.raises(ValueError, match="below the interpolation range"):
        lt.trace(lambda x: f(x) + 0.0, OUTSIDE)


@pytest.mark.parametrize(
    "f",
    [
        lambda y: interpolate.interp1d(KNOTS, y, kind="cubic")(X),
        lambda y: interpolate.CubicSpline(KNOTS, y, bc_type="periodic")(X),
        lambda y: interpolate.CubicSpline(KNOTS, y).derivative()(X),
        lambda y: interpolate.PchipInterpolator(np.cumsum(y**2), VALUES)(X),
        lambda y: interpolate.make_interp_spline(KNOTS, y, bc_type="periodic")(X),
        lambda y: interpolate.BSpline(np.cumsum(y**2), VALUES[:2], 2)(X),
        lambda y: interpolate.CubicSpline(KNOTS, VALUES, bc_type=((1, y[0]), (1, 0.0)))(X),
    ],
)
def test_interpolation_that_is_not_recorded_is_refused(f):
    with pytest.raises(lt.LetirError):
        lt.trace(f, VALUES)

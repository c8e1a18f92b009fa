"""The formulas of integrals, grids and transforms of samples."""

# ruff: noqa: PLW0108  a function must read its name while it is recorded

import numpy as np
import pytest
from scipy import fft, integrate, interpolate

from letir.testing import check_grads
from tests.scipy.formulas.test_formulas import compare_formulas

RNG = np.random.default_rng(8)
Y, X, ROWS = RNG.normal(size=9), np.cumsum(RNG.uniform(0.5, 1.5, 9)), RNG.normal(size=(3, 8))
GRID = (np.array([0.0, 1.0, 2.5, 3.0]), np.array([0.0, 0.5, 2.0, 3.0, 4.0]))
TABLE, POINTS = RNG.normal(size=(4, 5)), np.array([[0.3, 0.7], [2.2, 3.3], [1.1, 2.5]])
CALLS = {
    "romb": (lambda y, h: integrate.romb(y, h), (Y, 0.3)),
    "cumulative_simpson": (lambda y, x: integrate.cumulative_simpson(y, x=x), (Y, X)),
    "cumulative_simpson, even": (
        lambda y, x: integrate.cumulative_simpson(y, x=x, initial=0),
        (ROWS, X[:8]),
    ),
    "cumulative_simpson, dx": (
        lambda y, h: integrate.cumulative_simpson(y, dx=h, axis=0),
        (ROWS, 0.3),
    ),
    "grid": (
        lambda v, p: interpolate.RegularGridInterpolator(GRID, v)(p),
        (TABLE, POINTS),
    ),
    "grid, extrapolated": (
        lambda v, p: interpolate.RegularGridInterpolator(
            GRID, v, bounds_error=False, fill_value=None
        )(p),
        (TABLE, 2.0 * POINTS),
    ),
    "grid, filled": (
        lambda v, p: interpolate.RegularGridInterpolator(
            GRID, v, bounds_error=False, fill_value=0.5
        )(p),
        (TABLE, 2.0 * POINTS),
    ),
    "interpn": (lambda v, p: interpolate.interpn(GRID, v, p), (TABLE, POINTS)),
    "interpn on one axis": (
        lambda v, p: interpolate.interpn((GRID[0],), v, p),
        (TABLE[:, 0], POINTS[:, 0]),
    ),
    "interpn at one point": (lambda v, p: interpolate.interpn(GRID, v, p), (TABLE, POINTS[0])),
    "interpn, nearest": (
        lambda v: interpolate.interpn(GRID, v, POINTS, method="nearest"),
        (RNG.normal(size=(4, 5, 2)),),
    ),
    "dctn": (lambda x: fft.dctn(x, norm="ortho"), (ROWS,)),
    "idctn": (lambda x: fft.idctn(x, axes=(0,)), (ROWS,)),
    "dstn": (lambda x: fft.dstn(x, type=3), (ROWS,)),
    "idstn": (lambda x: fft.idstn(x), (ROWS,)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_formula_of_samples_is_what_scipy_computes(name):
    function, args = CALLS[name]

    assert compare_formulas(function, args) >= 1
    check_grads(function, args, order=2, rtol=1e-4)

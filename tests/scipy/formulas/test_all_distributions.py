"""Derivatives of every continuous distribution of SciPy, on generated arrays, by differences."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

import letir as lt
from tests.scipy.formulas.test_distribution_formulas import method_of

params = pytest.importorskip("scipy.stats._distr_params", reason="SciPy's list has moved")

SHAPES = dict(params.distcont)
# SciPy computes their densities outside of NumPy
REFUSED = {"dpareto_lognorm", "gausshyper", "genhyperbolic", "geninvgauss", "irwinhall", "ksone"}
REFUSED |= {"kstwo", "kstwobign", "landau", "levy_stable", "ncf", "nct", "ncx2"}
REFUSED |= {"studentized_range", "tukeylambda"}
METHODS = ("logpdf", "pdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")


def slope_by_differences(function, numbers, place):
    """(derivative with respect to the number at ``place``, its uncertainty)."""

    def moved(step):
        changed = [*numbers[:place], numbers[place] + step, *numbers[place + 1 :]]
        return float(function(*changed))

    size = 2e-3 * max(abs(numbers[place]), 0.1)
    slopes = [
        (8 * (moved(h) - moved(-h)) - moved(2 * h) + moved(-2 * h)) / (12 * h)
        for h in (size, size / 4, size / 16)
    ]
    changes = np.abs(np.diff(slopes))
    best = int(np.argmin(np.where(np.isfinite(changes), changes, np.inf)))
    return slopes[best + 1], changes[best]


def drawn_arguments(name, rng):
    """(probabilities, shape parameters and location for three columns, scale for two rows)."""
    shapes = [
        shape if isinstance(shape, int) else shape * rng.uniform(0.5, 2.0, 3)
        for shape in SHAPES[name]
    ]
    return (
        rng.uniform(0.01, 0.99, (2, 1)),
        *shapes,
        rng.uniform(-1, 1, 3),
        rng.uniform(0.5, 2, (2, 1)),
    )


def check_method(name, method, args, weights) -> int:
    """Compare the gradient of a weighted sum with differences; the number of compared slopes."""
    function, plain = method_of(name, method), getattr(getattr(stats, name), method)
    places = [n for n, arg in enumerate(args) if isinstance(arg, np.ndarray)]
    found = lt.grad(lambda *args: (function(*args) * weights).sum(), tuple(places))(*args)
    compared = 0
    for place, slopes in zip(places, found, strict=True):
        expected, doubt = np.zeros_like(slopes), np.zeros_like(slopes)
        for at in np.ndindex(weights.shape):
            numbers = [
                float(np.broadcast_to(arg, weights.shape)[at]) if n in places else arg
                for n, arg in enumerate(args)
            ]
            slope, change = slope_by_differences(plain, numbers, place)
            # the element of the argument that this element of the result depends on
            source = tuple(
                [0 if n == 1 else i for i, n in zip(at[-slopes.ndim :], slopes.shape, strict=True)]
            )
            expected[source] += slope * weights[at]
            doubt[source] += 20 * change + 1e-5 * max(abs(slope), 1e-3)
        known = np.isfinite(expected + doubt)
        wrong = known & ~(np.abs(slopes - expected) <= doubt)
        assert not wrong.any(), (method, place, args, slopes[wrong], expected[wrong], doubt[wrong])
        compared += known.sum()
    return compared


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SHAPES.keys() - REFUSED))
@settings(max_examples=3)
@given(seed=st.integers(0, 2**16))
def test_gradients_of_broadcast_arrays_are_those_of_every_distribution(name, seed):
    rng = np.random.default_rng(seed)
    q, *others = drawn_arguments(name, rng)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = getattr(stats, name).ppf(q, *others)
        assume(np.isfinite(x).all())  # the drawn shape parameters are allowed
        counts = [
            check_method(
                name,
                method,
                (q if method in ("ppf", "isf") else x, *others),
                1 + rng.random((2, 3)),
            )
            for method in METHODS
        ]

    assert min(counts) > 0


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_distributions_without_a_formula_are_refused_by_name(name):
    with pytest.raises(lt.MissingRule, match=name):
        lt.grad(method_of(name, "cdf"))(0.3, *SHAPES[name])

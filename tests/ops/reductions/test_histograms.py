"""Histograms as users call them; a number of bins that depends on data is guarded [B2]."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close, assert_same, check_grads

X = np.array([[0.5, -1.25, 2.0, 0.3, 1.1], [1.5, 0.75, -0.625, 0.9, -0.2]])
W = np.array([0.5, 1.25, 2.0, 0.25, 1.0])

CALLS = {
    "histogram": lambda x, w: np.histogram(x),
    "weights": lambda x, w: np.histogram(x[0], bins=3, weights=w, range=(-1, 2.6)),
    "listed edges": lambda x, w: np.histogram(x, [-1.0, 0.2, 1.3], density=True),
    "traced edges": lambda x, w: np.histogram(X, w.cumsum()),
    "edges": lambda x, w: np.histogram_bin_edges(x, 4, range=(0, 3)),
    "histogram2d": lambda x, w: np.histogram2d(x[0], x[1], (2, 3), weights=w),
    "histogram2d, edges": lambda x, w: np.histogram2d(x[0], x[1], [-1.0, 0.1, 0.7, 1.4]),
    "histogram2d, some": lambda x, w: np.histogram2d(x[0], x[1], [3, [-1.0, 2.0]], density=True),
    "histogramdd": lambda x, w: np.histogramdd(x.T, bins=2, range=((-1, 1), None)),
    "histogramdd of rows": lambda x, w: np.histogramdd([x[0], w, w], bins=(2, [0.0, 3.0], 1)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_recorded_and_replayed_bitwise(name):
    f = CALLS[name]
    x, w = X[::-1] * 1.25, W * 1.1

    assert_same(f(x, w), lt.run_forward(lt.trace(f, X, W), x, w))


@pytest.mark.parametrize("name", CALLS)
def test_derivatives_of_a_call_agree_with_differences(name):
    check_grads(CALLS[name], (X, W), order=1)


def test_a_batch_of_histograms_agrees_with_a_loop():
    def f(x, w):
        return np.histogram(x, bins=3, weights=w, density=True)

    expected = tuple(np.stack(r) for r in zip(*(f(x, W) for x in X), strict=True))

    assert_close(expected, lt.vmap(f, in_axes=(0, None))(X, W))


@pytest.mark.parametrize("rule", ["auto", "fd", "sturges", "sqrt"])
def test_a_number_of_bins_chosen_by_a_rule_is_guarded(rule):
    """[B2]"""

    def f(x):
        return np.histogram(x, bins=rule)

    program = lt.trace(f, X)

    assert_same(f(X * 3), lt.run_forward(program, X * 3))
    if rule in ("auto", "fd"):  # the other rules read the size only
        with pytest.raises(lt.GuardError):
            lt.run_forward(program, np.where(X > 1.9, 1e3, X))
    with pytest.raises(lt.TraceError, match="trace with concrete arguments"):
        lt.trace(f, X, abstract=True)


def test_calls_that_numpy_refuses_are_refused():
    with pytest.raises(lt.ShapeError, match="must be positive"):
        lt.trace(lambda x: np.histogram(x, 0), X)
    with pytest.raises(lt.ShapeError, match="weights of shape"):
        lt.trace(lambda x: np.histogram(x, weights=W), X)
    with pytest.raises(lt.ShapeError, match="same length"):
        lt.trace(lambda x: np.histogram2d(x[0], W[1:]), X)
    with pytest.raises(lt.ShapeError, match="an entry for each"):
        lt.trace(lambda x: np.histogramdd(x, bins=(2, 2)), X)


@pytest.mark.parametrize("sample", [[0.2, 0.9, 0.4], np.array([0.2, 0.9, 0.4])])
def test_histogramdd_takes_points_on_a_line(sample):
    def f(x):
        return np.histogramdd(x, bins=[[0.0, 0.5, 1.0]])

    lt.testing.assert_same(lt.trace(f, sample)(sample), f(sample))

"""Calls of reductions, statistics, searches and numerical functions."""

import numpy as np

from letir.testing.calls.call import (
    BLOCK,
    COUNTS,
    NAN,
    NumpyCall,
    V,
    W,
    X,
    Y,
    call_of,
    calls_of_names,
    jumping_call,
    real_call,
)

_LONG = np.array([0.1, 0.45, 0.9, 1.6, 2.0])


def _reduction(name: str, x=X, **attrs) -> NumpyCall:
    """A call of the function of this name along an axis."""
    return call_of(lambda np, x: getattr(np, name)(x, axis=-1, **attrs), x)


_ALONG = """
    sum prod mean all any max min amax amin argmax argmin cumsum cumprod cumulative_sum
    cumulative_prod count_nonzero ptp var std median"""
_WITHOUT_NAN = """
    nansum nanprod nanmean nanmax nanmin nanargmax nanargmin nancumsum nancumprod nanvar nanstd
    nanmedian"""

CALLS = {
    **calls_of_names(_ALONG, _reduction),
    **calls_of_names(_WITHOUT_NAN, lambda name: _reduction(name, NAN)),
    "average": call_of(lambda np, x, w: np.average(x, axis=1, weights=w), X, abs(V)),
    "quantile": real_call(lambda np, x: np.quantile(x, [0.25, 0.8], axis=0), X),
    "percentile": real_call(lambda np, x: np.percentile(x, 30, axis=1, keepdims=True), X),
    "nanquantile": real_call(lambda np, x: np.nanquantile(x, 0.3, axis=1), NAN),
    "nanpercentile": real_call(lambda np, x: np.nanpercentile(x, [30, 60], axis=1), NAN),
    "cov": call_of(lambda np, x, y: np.cov(x, y, ddof=0), X, Y),
    "corrcoef": call_of(lambda np, x: np.corrcoef(x), X),
    "histogram": real_call(lambda np, x: np.histogram(x, bins=4, range=(-2, 2))[0], V),
    "histogram2d": real_call(lambda np, x, y: np.histogram2d(x, y, bins=3)[0], V, W),
    "histogramdd": real_call(lambda np, x: np.histogramdd(x, bins=2)[0], X.T),
    "histogram_bin_edges": real_call(lambda np, x: np.histogram_bin_edges(x, bins=4), V),
    "bincount": call_of(lambda np, x, w: np.bincount(x, weights=w, minlength=7), COUNTS, _LONG[:4]),
    "digitize": real_call(lambda np, x: np.digitize(x, _LONG), V),
    "searchsorted": real_call(lambda np, x, v: np.searchsorted(x, v, side="right"), _LONG, V),
    "interp": real_call(lambda np, x, xp, fp: np.interp(x, xp, fp), V + 0.3, _LONG, _LONG**2),
    "trapezoid": call_of(lambda np, y, x: np.trapezoid(y, x, axis=1), X, np.sort(V)),
    "gradient": call_of(lambda np, x: np.gradient(x, 0.5, axis=1), X),
    "diff": call_of(lambda np, x: np.diff(x, n=2, axis=-1), X),
    "ediff1d": call_of(lambda np, x: np.ediff1d(x, to_end=3.0), V),
    "cross": call_of(lambda np, x, y: np.cross(x, y), X, Y),
    "kron": call_of(lambda np, x, y: np.kron(x, y), X, Y[:1]),
    "vander": call_of(lambda np, x: np.vander(x, 4), V),
    "convolve": call_of(lambda np, x, y: np.convolve(x, y, mode="same"), _LONG, V),
    "correlate": call_of(lambda np, x, y: np.correlate(x, y, mode="full"), _LONG, V),
    "poly": call_of(lambda np, x: np.poly(x), V),
    "polyval": call_of(lambda np, p, x: np.polyval(p, x), V, X),
    "polyder": call_of(lambda np, p: np.polyder(p), V),
    "polyint": call_of(lambda np, p: np.polyint(p), V),
    "polyadd": call_of(lambda np, p, q: np.polyadd(p, q), V, _LONG),
    "polysub": call_of(lambda np, p, q: np.polysub(p, q), V, _LONG),
    "polymul": call_of(lambda np, p, q: np.polymul(p, q), V, _LONG),
    "polydiv": call_of(lambda np, p, q: np.polydiv(p, q)[0], _LONG, V),
    "polyfit": real_call(lambda np, x, y: np.polyfit(x, y, 2), _LONG, _LONG**3),
    # not a multiple of V: differences would exchange its conjugate roots
    "roots": NumpyCall(lambda np, p: np.roots(p), (V,), complexes=(V + 0.25j,)),
    "sort": real_call(lambda np, x: np.sort(x, axis=0), X),
    "argsort": real_call(lambda np, x: np.argsort(x, axis=None), X),
    "sort_complex": call_of(lambda np, x: np.sort_complex(x), V),
    "lexsort": real_call(lambda np, x, y: np.lexsort((x, y)), V, W),
    "partition": real_call(lambda np, x: np.partition(x, 1, axis=1)[:, 1], X),
    "argpartition": real_call(lambda np, x: np.argpartition(x, 1, axis=1)[:, 1], X),
    "nonzero": call_of(lambda np, x: np.nonzero(x), X),
    "flatnonzero": call_of(lambda np, x: np.flatnonzero(x), X),
    "argwhere": call_of(lambda np, x: np.argwhere(x), X),
    "unique": jumping_call(lambda np, x: np.unique(x), X),
    "unique_all": jumping_call(lambda np, x: tuple(np.unique_all(x)), X),
    "unique_counts": jumping_call(lambda np, x: tuple(np.unique_counts(x)), X),
    "unique_inverse": jumping_call(lambda np, x: tuple(np.unique_inverse(x)), X),
    "unique_values": jumping_call(lambda np, x: np.unique_values(x), X),
    "union1d": jumping_call(lambda np, x, y: np.union1d(x, y), V, W),
    "intersect1d": jumping_call(lambda np, x, y: np.intersect1d(x, y), V, V[1:]),
    "setdiff1d": jumping_call(lambda np, x, y: np.setdiff1d(x, y), V, V[1:]),
    "setxor1d": jumping_call(lambda np, x, y: np.setxor1d(x, y), V, W),
    "isin": call_of(lambda np, x, y: np.isin(x, y), V, V[1:]),
    "apply_along_axis": call_of(lambda np, x: np.apply_along_axis(lambda r: r[0] * r, 1, x), X),
    "apply_over_axes": call_of(lambda np, x: np.apply_over_axes(np.sum, x, [0, 2]), BLOCK),
}

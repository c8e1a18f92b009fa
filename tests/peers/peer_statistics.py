"""Statistics, calculus, signals and polynomials, for test_peers: ``STATISTICS``."""

import numpy

X = numpy.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]])
Y = numpy.array([[1.1, 0.43, -0.7], [-0.93, 1.3, 0.8]])
V, W = numpy.array([0.3, -0.7, 1.9]), numpy.array([0.5, 1.25, 2.0])
A = numpy.linspace(-1.0, 1.3, 24).reshape(2, 3, 4)
NAN = numpy.where(X == 2.0, numpy.nan, X)
ZERO = numpy.array([[0.5, 0.0, 2.0, -1.5], [0.0, 0.75, 0.0, 1.2]])
MASK = numpy.array([[True, False, True], [True, True, True]])
LONG = numpy.array([0.12, 0.55, 1.15, 1.45, 2.3])
PLACES = numpy.array([0.25, 0.9, 1.3])
Z = X + 1j * Y


def along(name: str, x=X, **attrs):
    """The function of this name along the last axis."""
    return lambda np, x: getattr(np, name)(x, axis=-1, **attrs), (x,)


NAMES = ("var", "std", "median", "ptp", "cumprod")
SKIPPING = ("nansum", "nanprod", "nanmean", "nanmax", "nanmin", "nanvar", "nanstd", "nanmedian")
METHODS = ("linear", "lower", "higher", "midpoint", "nearest")
REDUCED = {
    **{f"{name} along -1": along(name) for name in NAMES},
    **{f"{name} of an array": along(name, A) for name in NAMES},
    **{name: along(name, NAN) for name in (*SKIPPING, "nancumsum", "nancumprod")},
    "var, ddof": along("var", ddof=1, keepdims=True),
    "var of z": along("var", Z),
    "std of z": (lambda np, x: np.std(x, axis=(0, 1), ddof=1), (Z,)),
    "var with a mask": (lambda np, x: np.var(x, axis=1, where=MASK), (X,)),
    "average": (lambda np, x, w: np.average(x, axis=1, weights=w), (X, W)),
    "average of all": (lambda np, x, w: np.average(x, weights=w, returned=True)[0], (X, Y**2)),
    "cumprod of zeros": along("cumprod", ZERO),
    "cumprod of all": (lambda np, x: np.cumprod(x), (ZERO,)),
    "cumulative_sum": (lambda np, x: np.cumulative_sum(x, axis=1, include_initial=True) ** 2, (X,)),
    "cov": (lambda np, x, y: np.cov(x, y, ddof=0), (X, Y)),
    "cov of weights": (lambda np, x, w: np.cov(x, aweights=w), (X, W)),
    "corrcoef": (lambda np, x: np.corrcoef(x), (A[0] ** 2,)),
    **{
        f"quantile, {method}": (
            lambda np, x, m=method: np.quantile(x, PLACES / 1.7, axis=1, method=m),
            (X,),
        )
        for method in METHODS
    },
    "quantile by q": (lambda np, x, q: np.quantile(x, q, axis=0), (X, PLACES / 1.7)),
    "percentile": (lambda np, x: np.percentile(x, 30, axis=(0, 1), keepdims=True), (X,)),
    "nanquantile": (lambda np, x: np.nanquantile(x, 0.3, axis=1), (NAN,)),
}
CALCULUS = {
    "diff": (lambda np, x: np.diff(x, n=2, axis=1) ** 2, (A,)),
    "diff with ends": (lambda np, x: np.diff(x, prepend=0.5, append=x[:, :1]) ** 2, (X,)),
    "ediff1d": (lambda np, x: np.ediff1d(x, to_end=3.0) ** 2, (X,)),
    "gradient": (lambda np, x: np.gradient(x, 0.5, axis=1) ** 2, (X,)),
    "gradient of all": (lambda np, x: np.gradient(x)[0] * np.gradient(x)[1], (X,)),
    "trapezoid": (lambda np, y, x: np.trapezoid(y**2, x, axis=1), (X, W)),
    "interp": (lambda np, x, xp, fp: np.interp(x, xp, fp), (X, LONG, LONG**3)),
    "interp with ends": (
        lambda np, x, fp: np.interp(x, LONG, fp, left=-1.0, right=2.0),
        (X, LONG**2),
    ),
    "interp, period": (lambda np, x, fp: np.interp(x, LONG, fp, period=1.9), (X, LONG**2)),
    "histogram of weights": (
        lambda np, w: np.histogram(LONG, bins=numpy.array([0.0, 1.0, 2.5]), weights=w)[0] ** 2,
        (LONG,),
    ),
    "bincount of weights": (
        lambda np, w: (
            np.bincount(numpy.array([2, 0, 2]), weights=w, length=4) ** 2
            if np is not numpy
            else np.bincount(numpy.array([2, 0, 2]), weights=w, minlength=4) ** 2
        ),
        (W,),
    ),
}
SIGNALS = {
    **{
        f"{name}, {mode}": (
            lambda np, x, y, name=name, mode=mode: getattr(np, name)(x, y, mode=mode),
            (LONG, V),
        )
        for name in ("convolve", "correlate")
        for mode in ("full", "same", "valid")
    },
    "convolve of z": (lambda np, x, y: np.convolve(x, y), (Z[0], Y[1])),
    "cross": (lambda np, x, y: np.cross(x, y), (X, Y)),
    "cross along 1": (lambda np, x, y: np.cross(x, y, axisa=1, axisb=0, axisc=0), (A, V)),
    "kron": (lambda np, x, y: np.kron(x, y), (X, Y)),
    "vander": (lambda np, x: np.vander(x, 4) ** 2, (V,)),
}
POLYNOMIALS = {
    "polyval": (lambda np, p, x: np.polyval(p, x), (V, X)),
    "polyadd": (lambda np, p, q: np.polyadd(p, q) ** 2, (V, LONG)),
    "polysub": (lambda np, p, q: np.polysub(p, q) ** 2, (V, LONG)),
    "polymul": (lambda np, p, q: np.polymul(p, q), (V, LONG)),
    "polyder": (lambda np, p: np.polyder(p, 2) ** 2, (LONG,)),
    "polyint": (lambda np, p: np.polyint(p, 2, k=V[:2]) ** 2, (LONG,)),
    "poly": (lambda np, x: np.poly(x), (V,)),
    "polyfit": (lambda np, x, y: np.polyfit(x, y, 2), (LONG, LONG**3)),
    "polyfit of weights": (lambda np, x, y, w: np.polyfit(x, y, 1, w=w), (LONG, LONG**3, LONG)),
}
TIES = numpy.array([[1.0, 2.0, 2.0, 1.0], [3.0, 3.0, 3.0, 3.0]])
STATISTICS_CORNERS = {
    "std of equals": (lambda np, x: np.std(x), (TIES[1],)),
    "var of equals": (lambda np, x: np.var(x), (TIES[1],)),
    "ptp of ties": along("ptp", TIES),
    "nanmax of ties": along("nanmax", TIES),
    "median of ties": along("median", TIES),
    "median of nan": along("median", NAN),
    "quantile at an element, by q": (lambda np, x, q: np.quantile(x, q), (X[0], V * 0 + 0.5)),
    "interp at its points": (lambda np, x, fp: np.interp(x, LONG, fp), (LONG, LONG**2)),
    "interp beyond its points": (lambda np, x, fp: np.interp(x, W, fp), (V * 9, W**2)),
    "nanprod of zeros": along("nanprod", ZERO * ZERO[::-1]),
    "nanmean of nothing": along("nanmean", X * numpy.nan),
    "vander of zeros": (lambda np, x: np.vander(x, 3), (ZERO[0],)),
    "polyval at zero": (lambda np, p, x: np.polyval(p, x), (V, ZERO)),
}
STATISTICS = REDUCED | CALCULUS | SIGNALS | POLYNOMIALS

"""``scipy.spatial.distance`` for traced values: distances between vectors and rows of matrices."""

from typing import Any

import numpy as np

from letir.scipy.linear_systems import norm
from letir.scipy.namespace import drop_in, fallback_getattr, refusal_error
from letir.tracing.operands import traced_or_array

_PART = "spatial.distance"
__getattr__ = fallback_getattr(_PART)


def _cosine(u, v):
    return 1.0 - (u * v).sum(-1) / np.sqrt((u * u).sum(-1) * (v * v).sum(-1))


def _correlation(u, v):
    return _cosine(u - u.mean(-1, keepdims=True), v - v.mean(-1, keepdims=True))


_METRICS: dict[str, Any] = {
    "euclidean": lambda u, v: np.linalg.norm(u - v, axis=-1),
    "sqeuclidean": lambda u, v: ((u - v) ** 2).sum(-1),
    "cityblock": lambda u, v: np.abs(u - v).sum(-1),
    "chebyshev": lambda u, v: np.abs(u - v).max(-1),
    "cosine": _cosine,
    "correlation": _correlation,
    "minkowski": lambda u, v, p=2.0: (np.abs(u - v) ** p).sum(-1) ** (1.0 / p),
}


def _metric_function(name: str, metric: Any) -> Any:
    """The function of a metric, given by its name or by itself."""
    if callable(metric):
        metric = getattr(metric, "__name__", "")
    result = _METRICS.get(metric)
    if result is None:
        raise refusal_error(
            name, f"the metric must be one of {', '.join(_METRICS)}, found {metric!r}"
        )
    return result


def _as_rows(x: Any) -> Any:
    """Points in float64, as SciPy takes them; SciPy itself refuses complex ones."""
    x = traced_or_array(x)
    if x.dtype.kind == "c":
        raise refusal_error(_PART, "complex numbers are not supported")
    return x if x.dtype == np.float64 else x.astype(np.float64)


def _as_vector(x: Any) -> Any:
    """A vector of real numbers, in its own dtype."""
    x = traced_or_array(x)
    if x.ndim != 1:
        raise ValueError("Input vector should be 1-D.")
    return _as_rows(x) if x.dtype.kind not in "fiu" else x


@drop_in(_PART)
def cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **options: Any) -> Any:
    """The distances between each row of one matrix and each row of another."""
    first, second = _as_rows(XA), _as_rows(XB)
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1]:
        raise ValueError(
            "XA and XB must be 2-dimensional arrays with the same number of columns, "
            f"found {first.shape} and {second.shape}"
        )
    if out is not None:
        raise refusal_error("cdist", "leave out `out`")
    return _metric_function("cdist", metric)(first[:, None], second[None], **options)


@drop_in(_PART)
def pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **options: Any) -> Any:
    """The distances between the rows of a matrix, each pair once, as a vector."""
    x = _as_rows(X)
    if x.ndim != 2:
        raise ValueError("A 2-dimensional array must be passed.")
    if out is not None:
        raise refusal_error("pdist", "leave out `out`")
    rows, columns = np.triu_indices(x.shape[0], 1)
    return _metric_function("pdist", metric)(x[rows], x[columns], **options)


@drop_in(_PART)
def squareform(X: Any, force: str = "no", checks: bool = True) -> Any:
    """The symmetric matrix of a vector of distances, or the vector of such a matrix."""
    x = traced_or_array(X)
    if x.ndim == 2 and force != "tovector" and checks:
        if not np.allclose(x, x.T, atol=1e-8):
            raise ValueError("Distance matrix 'X' must be symmetric.")
        if not np.allclose(np.diagonal(x), 0, atol=1e-8):
            raise ValueError("Distance matrix 'X' diagonal must be zero.")
    if x.ndim == 2:
        return x[np.triu_indices(x.shape[0], 1)]
    if not x.shape[0]:
        return np.zeros((1, 1), x.dtype)  # as SciPy does
    n = int(np.ceil(np.sqrt(x.shape[0] * 2)))
    if n * (n - 1) != x.shape[0] * 2:
        raise ValueError(
            "Incompatible vector size. It must be a binomial coefficient n choose 2 for some "
            "integer n >= 2."
        )
    places = np.zeros((n, n), int)
    places[np.triu_indices(n, 1)] = np.arange(x.shape[0])
    return x[places + places.T] * (1 - np.eye(n, dtype=x.dtype))


def _vector_distance(name: str) -> Any:
    """The function of this name, a distance between two vectors."""

    def distance(u: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) > 1 or kwargs.get("w") is not None or (args and name != "minkowski"):
            raise refusal_error(name, "leave out the weights")
        first, second = _as_vector(u), _as_vector(v)
        p = args[0] if args else kwargs.get("p", 2)
        if name == "euclidean" or (name == "minkowski" and type(p) in (int, float) and p == 2):
            return norm(first - second)
        if name not in ("cityblock", "chebyshev"):
            first, second = [x if x.dtype.kind == "f" else _as_rows(x) for x in (first, second)]
        if issubclass(type(p), int | float | np.number) and p <= 0:
            raise ValueError("p must be greater than 0")
        result = _METRICS[name](first, second, *args, **kwargs)
        return result.astype(float) if name == "minkowski" else result

    distance.__name__ = distance.__qualname__ = name
    distance.__doc__ = f"The {name} distance between two vectors."
    return drop_in(_PART)(distance)


euclidean, sqeuclidean = _vector_distance("euclidean"), _vector_distance("sqeuclidean")
cityblock, chebyshev = _vector_distance("cityblock"), _vector_distance("chebyshev")
cosine, correlation = _vector_distance("cosine"), _vector_distance("correlation")
minkowski = _vector_distance("minkowski")


@drop_in(_PART)
def mahalanobis(u: Any, v: Any, VI: Any) -> Any:
    """The distance between two vectors for the inverse of a covariance."""
    delta, inverse = _as_vector(u) - _as_vector(v), _as_rows(VI)
    return np.sqrt(delta @ inverse @ delta)

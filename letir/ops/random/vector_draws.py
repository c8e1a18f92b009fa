"""Draws of vectors from a traced generator: normal and Dirichlet numbers, multinomial counts, and
orders in which ``permuted`` puts rows.

Normal and Dirichlet vectors are computed from independent numbers as NumPy computes them, so that
their parameters have derivatives.
"""

from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.errors import MissingRule, ShapeError
from letir.ops.random.draws_from_lists import array_of_list
from letir.ops.shape.shape_and_creation import as_size
from letir.ops.shape.transpose import normalize_axes

_MIN_SUM = 0.1  # NumPy draws Dirichlet numbers below it by another method


def _as_parameter(x: Any) -> Any:
    """A parameter as a traced value or an array, also of an array that the trace has made."""
    x = array_of_list(x)
    x = x.as_constant() if isinstance(x, Value) else x
    return x if isinstance(x, Value) else np.asarray(x, float)


def _shape_of(size: Any) -> tuple:
    """A ``size`` argument as a tuple."""
    if size is None:
        return ()
    return tuple(map(as_size, size if isinstance(size, tuple | list) else (size,)))


def _multivariate_normal(
    generator: Any,
    mean: Any,
    cov: Any,
    size: Any = None,
    check_valid: str = "warn",
    tol: float = 1e-8,
    *,
    method: str = "svd",
) -> Any:
    """Normal vectors with this mean and covariance.

    Traced covariances are taken to be positive semidefinite: NumPy only warns of others.
    """
    mean, cov = _as_parameter(mean), _as_parameter(cov)
    if mean.ndim != 1 or cov.shape != (mean.shape[0], mean.shape[0]):
        raise ShapeError(
            "multivariate_normal: the mean has to be a vector, and the covariance a square matrix "
            f"of its length, found {mean.shape} and {cov.shape}\n  pass a vector and a matrix"
        )
    is_known = not isinstance(cov, Value) and not isinstance(mean, Value)
    if is_known:  # NumPy checks the covariance: it raises or warns
        own = generator.__class__(np.random.MT19937(0))
        options = {} if method == "svd" else {"method": method}
        own.multivariate_normal(mean, cov, check_valid=check_valid, tol=tol, **options)
    shape = (*_shape_of(size), mean.shape[0])
    normal = generator.standard_normal(shape).reshape(-1, mean.shape[0])
    if method == "cholesky":
        factor = np.linalg.cholesky(cov)
    elif method == "eigh":
        values, vectors = np.linalg.eigh(cov)
        factor = vectors * np.sqrt(abs(values))
    elif generator.__class__ is np.random.Generator:
        left, values, _ = np.linalg.svd(cov)
        factor = left * np.sqrt(values)
    else:
        _, values, right = np.linalg.svd(cov)
        factor = (np.sqrt(values)[:, None] * right).T
    return (mean + normal @ factor.T).reshape(shape)


def _dirichlet(generator: Any, alpha: Any, size: Any = None) -> Any:
    """Vectors of positive numbers with the sum 1."""
    alpha = _as_parameter(alpha)
    generator.check_parameters("dirichlet", lambda a: (a > 0).all(), alpha)
    if generator.__class__ is np.random.Generator and not alpha.max() >= _MIN_SUM:
        raise MissingRule(
            f"Generator.dirichlet is not recorded if all of alpha is below {_MIN_SUM}\n"
            "  draw before the trace and pass the array"
        )
    shape = (*_shape_of(size), alpha.shape[0])
    numbers = generator.standard_gamma(np.broadcast_to(alpha, shape))
    return numbers * (1.0 / numbers.sum(-1, keepdims=True))


def _multinomial(generator: Any, n: Any, pvals: Any, size: Any = None) -> Any:
    """Counts of ``n`` trials with outcomes of these probabilities."""
    pvals = _as_parameter(pvals)
    if np.ndim(n) or pvals.ndim != 1:
        raise MissingRule(
            "multinomial is recorded for one number of trials and one vector of probabilities\n"
            "  draw in a loop over the others"
        )
    shape = (*_shape_of(size), pvals.shape[0])
    return generator.draw("multinomial", (n, pvals), shape, np.int64)


def _permute_rows(generator: Any, x: Any, axis: Any = None, out: Any = None) -> Any:
    """``x`` with each row along ``axis``, or all elements, in a random order of its own."""
    x = x if isinstance(x, Value) else array_of_list(x) if isinstance(x, list) else np.asarray(x)
    if not x.ndim:
        raise TypeError("len() of unsized object")
    if axis is None:
        result = _permuted_in_memory_order(generator, x)
    else:
        axis = normalize_axes(as_size(axis), x.ndim)[0]
        order = generator.draw("permuted", (), x.shape, np.int64, axis=axis)
        result = np.take_along_axis(x, order, axis)
    if out is None:
        return result
    if out.shape != x.shape:
        raise ValueError("out must have the same shape as x")
    out[...] = result
    return out


def _permuted_in_memory_order(generator: Any, x: Any) -> Any:
    """``x`` with all elements permuted, in the order in which they lie in memory, as NumPy does."""
    flat = x.ravel("K")  # a guard fixes the layout of a traced array
    order = generator.draw("permuted", (), flat.shape, np.int64, axis=0)
    concrete = x.concrete_value() if isinstance(x, Value) else x
    result = PRIMITIVES["index"](flat, (order,))
    if isinstance(concrete, np.ndarray) and not concrete.flags.c_contiguous:
        places = np.arange(concrete.size).reshape(concrete.shape)
        laid_out = np.empty_like(concrete, dtype=np.int64)
        laid_out[...] = places
        result = result[np.argsort(laid_out.ravel("K"))]
    return result.reshape(x.shape)


_DRAWS = {
    "multivariate_normal": _multivariate_normal,
    "dirichlet": _dirichlet,
    "multinomial": _multinomial,
    "permuted": _permute_rows,
}


def vector_draw(generator: Any, name: str) -> Any:
    """The method of a traced generator that draws vectors, or None."""
    draw = _DRAWS.get(name)
    return None if draw is None else draw.__get__(generator)


LATE_BOUND["vector_draw"] = vector_draw

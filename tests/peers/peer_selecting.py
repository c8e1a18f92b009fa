"""Functions for test_peers whose result shapes depend on values: ``SELECTING``.

JAX needs the length as ``size``; autograd has none of these functions.
"""

import numpy

X = numpy.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]])
V = numpy.array([0.3, -0.7, 1.9, 0.8])
W = numpy.array([1.3, 0.2, -0.4])
KNOWN = numpy.array([True, False, True])


def long(np, size: int) -> dict:
    """The ``size`` keyword for JAX."""
    return {} if np is numpy else {"size": size}


SELECTING = {
    "extract": (lambda np, x: np.extract(x > 0, x, **long(np, 4)) ** 2, (X,)),
    "compress": (lambda np, x: np.compress(KNOWN, x, axis=1) ** 2, (X,)),
    "nonzero": (lambda np, x: x[np.nonzero(x > 0, **long(np, 4))] ** 3, (X,)),
    "flatnonzero": (lambda np, v: v[np.flatnonzero(v > 0, **long(np, 3))] ** 2, (V,)),
    "argwhere": (lambda np, v: v[np.argwhere(v > 0, **long(np, 3))[:, 0]] ** 2, (V,)),
    "where of a condition": (lambda np, v: v[np.where(v > 0, **long(np, 3))] ** 2, (V,)),
    "unique": (lambda np, x: np.unique(x, **long(np, 6)) ** 2 * numpy.arange(6.0), (X,)),
    "unique, with counts": (
        lambda np, v: np.unique(v, return_counts=True, **long(np, 4))[0] ** 3,
        (V,),
    ),
    "unique columns": (lambda np, x: np.unique(x, axis=1, **long(np, 3)) ** 2, (X,)),
    "union1d": (lambda np, v, w: np.sin(np.union1d(v, w, **long(np, 7))), (V, W)),
    "setdiff1d": (lambda np, v: np.setdiff1d(v, numpy.array([1.0]), **long(np, 4)) ** 2, (V,)),
}

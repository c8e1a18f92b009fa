"""``scipy.optimize`` for traced values: the test functions of its documentation.

Its solvers are recorded by ``letir.scipy.solver_calls``, while SciPy's own names are called.
"""

from typing import Any

import numpy as np

from letir.scipy.namespace import drop_in, fallback_getattr
from letir.tracing.operands import traced_or_array

__getattr__ = fallback_getattr("optimize")


def _as_floats(x: Any) -> Any:
    """An argument as an array of floats."""
    x = traced_or_array(x)
    return x if x.dtype.kind in "fc" else x.astype(np.float64)


@drop_in("optimize")
def rosen(x: Any) -> Any:
    """The Rosenbrock function, of the elements along the first axis."""
    x = _as_floats(x)
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0, axis=0)


@drop_in("optimize")
def rosen_der(x: Any) -> Any:
    """The gradient of the Rosenbrock function."""
    x = _as_floats(x)
    inner = 200 * (x[1:-1] - x[:-2] ** 2) - 400 * (x[2:] - x[1:-1] ** 2) * x[1:-1]
    first = -400 * x[:1] * (x[1:2] - x[:1] ** 2) - 2 * (1 - x[:1])
    last = 200 * (x[-1:] - x[-2:-1] ** 2)
    return np.concatenate([first, inner - 2 * (1 - x[1:-1]), last])


@drop_in("optimize")
def rosen_hess(x: Any) -> Any:
    """The Hessian matrix of the Rosenbrock function of a vector."""
    x = _as_floats(x)
    beside = -400 * x[:-1]
    first = 1200 * x[:1] ** 2 - 400 * x[1:2] + 2
    inner = 202 + 1200 * x[1:-1] ** 2 - 400 * x[2:]
    middle = np.concatenate([first, inner, 200.0 + 0.0 * x[-1:]])
    return np.diag(beside, 1) + np.diag(beside, -1) + np.diag(middle)


@drop_in("optimize")
def rosen_hess_prod(x: Any, p: Any) -> Any:
    """The product of the Hessian matrix of the Rosenbrock function with a vector."""
    return rosen_hess(x) @ traced_or_array(p)

"""The stand-ins for SciPy's functions that do not hand traced values to letir: those of
``letir.scipy``, for the modules of SciPy that a program has loaded.
"""

import functools
import sys
from collections.abc import Callable, Collection
from typing import Any

from letir.ast import LATE_BOUND
from letir.tracing.stand_ins import LibraryModule, is_recording

_FUNCTIONS = {
    "integrate": "cumulative_trapezoid odeint simpson trapezoid",
    "linalg": """block_diag cho_factor cho_solve cholesky circulant cosm det eigvalsh expm hankel
        inv logm norm polar sinm solve solve_banded solve_continuous_lyapunov
        solve_discrete_lyapunov solve_lyapunov solve_sylvester solve_toeplitz solve_triangular
        solveh_banded sqrtm svd
        svdvals toeplitz""",
    "ndimage": """convolve convolve1d correlate correlate1d gaussian_filter gaussian_filter1d
        gaussian_gradient_magnitude gaussian_laplace laplace map_coordinates maximum_filter
        median_filter minimum_filter prewitt shift sobel uniform_filter uniform_filter1d""",
    "optimize": "rosen rosen_der rosen_hess rosen_hess_prod",
    "signal": "convolve correlate fftconvolve oaconvolve",
    "special": "log_softmax logsumexp multigammaln polygamma softmax softplus",
    "stats": """beta cauchy chi2 dirichlet expon gamma laplace logistic multivariate_normal norm
        poisson t uniform""",
}


def loaded_scipy_modules(known: Collection[LibraryModule]) -> list[LibraryModule]:
    """The modules of SciPy that have been loaded, but for the ``known`` ones."""
    there = {library.module.__name__ for library in known}
    found = []
    for part, names in _FUNCTIONS.items():
        name = f"scipy.{part}"
        if name in sys.modules and name not in there:
            maker = _distribution if part == "stats" else functools.partial(_function, part)
            found.append(LibraryModule(sys.modules[name], dict.fromkeys(names.split(), maker)))
    return found


def _function(part: str, original: Callable) -> Callable:
    """The function in the place of ``original``, which ``letir.scipy`` has too."""

    @functools.wraps(original, updated=())
    def stand_in(*args, **kwargs):
        if not is_recording():
            return original(*args, **kwargs)
        return LATE_BOUND["scipy_recorded"](part, original.__name__)(*args, **kwargs)

    return stand_in


def _distribution(original: Any) -> Any:
    """The distribution in the place of SciPy's object; its other methods are SciPy's."""
    name = {"multivariate_normal_gen": "multivariate_normal", "dirichlet_gen": "dirichlet"}
    kind = name.get(type(original).__name__) or original.name
    return LATE_BOUND["scipy_recorded"]("stats", kind)


LATE_BOUND["loaded_scipy_modules"] = loaded_scipy_modules

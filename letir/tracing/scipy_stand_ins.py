"""Stand-ins for SciPy's functions that cannot be recorded through NumPy's protocols.

In the modules of SciPy that a program has loaded, functions of ``letir.scipy`` replace them.
"""

import functools
import sys
from collections.abc import Callable, Collection
from types import FunctionType
from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.errors import MissingRule
from letir.ops.special.scipy_functions import FUNCTIONS, MAKERS, SOLVERS
from letir.tracing.callers import LibraryModule
from letir.tracing.late_imports import whole_module
from letir.tracing.operands import first_traced
from letir.tracing.stand_ins import add_methods, is_recording

_FUNCTIONS = {
    "fft": """dct dst fft fft2 fftn fftshift idct idst ifft ifft2 ifftn ifftshift irfft irfft2
        irfftn rfft rfft2 rfftn""",
    "fftpack": "dct dst fft fft2 fftn idct idst ifft ifft2 ifftn irfft rfft",
    "integrate": "cumulative_trapezoid odeint simpson solve_ivp trapezoid",
    "interpolate": "make_interp_spline",
    "linalg": """block_diag cho_factor cho_solve cholesky circulant cosm det eigh eigvalsh expm
        hankel inv logm lu_solve norm polar sinm solve solve_banded solve_continuous_lyapunov
        solve_discrete_lyapunov solve_lyapunov solve_sylvester solve_toeplitz solve_triangular
        solveh_banded sqrtm svd
        svdvals toeplitz""",
    "ndimage": """convolve convolve1d correlate correlate1d gaussian_filter gaussian_filter1d
        gaussian_gradient_magnitude gaussian_laplace laplace map_coordinates maximum_filter
        median_filter minimum_filter prewitt shift sobel uniform_filter uniform_filter1d""",
    "optimize": "rosen rosen_der rosen_hess rosen_hess_prod",
    "signal": """convolve correlate detrend fftconvolve filtfilt hilbert lfilter oaconvolve resample
        savgol_filter sosfilt sosfiltfilt""",
    "spatial.distance": """cdist chebyshev cityblock correlation cosine euclidean mahalanobis
        minkowski pdist sqeuclidean squareform""",
    "special": "log_softmax logsumexp multigammaln polygamma softmax softplus",
    "stats": """beta cauchy chi2 dirichlet expon gamma gmean hmean kurtosis laplace logistic
        multivariate_normal norm poisson sem skew t uniform zscore""",
}

# decomposed functions that take less time in SciPy, for arrays of all sizes
_FASTER_IN_SCIPY = {
    "linalg": "cho_factor cho_solve",
    "ndimage": _FUNCTIONS["ndimage"],
    "signal": "detrend fftconvolve filtfilt hilbert lfilter oaconvolve resample savgol_filter",
}
# those that take less time in SciPy for small arrays
_FASTER_IF_SMALL = {
    **_FASTER_IN_SCIPY,
    "linalg": f"{_FASTER_IN_SCIPY['linalg']} expm",
    "spatial.distance": "cdist pdist",
}


def loaded_scipy_modules(libraries: Collection[LibraryModule]) -> list[LibraryModule]:
    """The loaded modules of SciPy, except the ``libraries`` ones."""
    known_names = {library.module.__name__ for library in libraries}
    result = []
    for part in {**_FUNCTIONS, **FUNCTIONS, **SOLVERS, **MAKERS}:
        name = f"scipy.{part}"
        module = None if name in known_names else whole_module(name)
        if module is not None:
            result.append(LibraryModule(module, _stand_in_makers(part)))
    for name, methods in _METHODS.items():
        if whole_module(name) is not None:
            _watch_methods(methods)
    return result


def functions_faster_in_scipy(is_small: bool) -> frozenset[int]:
    """The ids of SciPy's functions that take less time than the operations recorded for them.

    ``is_small``: whether the arrays are small.
    """
    return _ids_of_functions(_FASTER_IF_SMALL if is_small else _FASTER_IN_SCIPY)


def functions_decomposed() -> frozenset[int]:
    """The ids of SciPy's functions that are recorded as other operations, not as calls."""
    return _ids_of_functions(_FUNCTIONS)


def _ids_of_functions(names: dict[str, str]) -> frozenset[int]:
    """The ids of the functions with these names in the loaded modules of SciPy."""
    loaded = {part: sys.modules.get(f"scipy.{part}") for part in names}
    return frozenset(
        id(vars(module)[name])
        for part, module in loaded.items()
        for name in (names[part].split() if module else ())
        if name in vars(module)
    )


def _stand_in_makers(part: str) -> dict[str, Callable]:
    """{name in a part of SciPy: the maker of its stand-in}."""
    makers: dict[str, Callable] = {}
    for names, maker in (
        (FUNCTIONS.get(part, ()), _call_stand_in),
        (SOLVERS.get(part, ()), _solver_stand_in),
        (MAKERS.get(part, ()), _object_stand_in),
        (_FUNCTIONS.get(part, "").split(), _scipy_stand_in),
    ):
        makers |= dict.fromkeys(names, functools.partial(maker, part))
    return makers


_METHODS = {"scipy.sparse": "sparse_methods", "scipy.interpolate": "interpolation_methods"}


@functools.cache
def _watch_methods(name: str) -> None:
    """Record the methods of some of SciPy's classes from now on."""
    add_methods(LATE_BOUND[name]())


def _scipy_stand_in(part: str, original: Any) -> Any:
    """The stand-in for a function or a distribution of a part of SciPy."""
    is_distribution = part == "stats" and not isinstance(original, FunctionType)
    return (
        _distribution_stand_in(original) if is_distribution else _function_stand_in(part, original)
    )


def _function_stand_in(part: str, original: Callable) -> Callable:
    """The stand-in for ``original``: the function of ``letir.scipy`` with the same name."""

    @functools.wraps(original, updated=())
    def stand_in(*args, **kwargs):
        if not is_recording():
            return original(*args, **kwargs)
        try:
            return LATE_BOUND["scipy_recorded"](part, original.__name__)(*args, **kwargs)
        except MissingRule as error:
            if not _is_of_arguments(error):
                raise
            refused = error
        if original.__name__ in SOLVERS.get(part, ()):
            return LATE_BOUND["scipy_solver"](part, original, args, kwargs, refused)
        if original.__name__ in FUNCTIONS.get(part, ()):
            return LATE_BOUND["scipy_call"](part, original, args, kwargs, refused)
        raise refused

    return stand_in


def _is_of_arguments(error: MissingRule) -> bool:
    """Whether an error says that letir's version of a function does not support the arguments."""
    return hasattr(error, "letir_unrecorded")


def _call_stand_in(part: str, original: Callable) -> Callable:
    """The stand-in for ``original``, which records its calls as calls of SciPy's function."""

    @functools.wraps(original, updated=())
    def stand_in(*args, **kwargs):
        if not is_recording() or not _has_recorded((*args, *kwargs.values())):
            return original(*args, **kwargs)
        return LATE_BOUND["scipy_call"](part, original, args, kwargs)

    return stand_in


def _has_recorded(items: tuple) -> bool:
    """Whether a traced value, or an object that depends on one, is among arguments."""
    if first_traced(items) is not None:
        return True
    for item in items:
        inner = item if isinstance(item, list | tuple) else (item,)
        if any(hasattr(type(x), "letir_recorded") for x in inner):
            return True
    return False


def _are_known(items: Any) -> bool:
    """Whether no argument of SciPy's depends on an argument of the recorded function."""
    if isinstance(items, list | tuple):
        return all(map(_are_known, items))
    is_traced = isinstance(items, Value) and items.as_constant() is items
    return not is_traced and not hasattr(type(items), "letir_recorded")


def _as_known(item: Any) -> Any:
    """An argument of SciPy's with concrete copies of its arrays, which SciPy's objects may keep."""
    if type(item) in (list, tuple):
        return type(item)(map(_as_known, item))
    return item.as_constant().copy() if isinstance(item, Value) else item


def _object_stand_in(part: str, original: Any) -> Any:
    """The stand-in for a class, or for a function that returns an object of one.

    Objects of arrays that depend on no argument are SciPy's own.
    """
    recorded = _call_stand_in(part, original)

    @functools.wraps(original, updated=())
    def called(*args, **kwargs):
        if is_recording() and _are_known((*args, *kwargs.values())):
            args = tuple(map(_as_known, args))
            kwargs = {name: _as_known(value) for name, value in kwargs.items()}
        return recorded(*args, **kwargs)

    return _ClassStandIn(original, called) if isinstance(original, type) else called


class _ClassStandIn:
    """A class of SciPy whose objects are recorded if they depend on traced values."""

    def __init__(self, original: type, called: Callable):
        self.original, self.called = original, called

    def __call__(self, *args, **kwargs):
        return self.called(*args, **kwargs)

    def __mro_entries__(self, bases: tuple) -> tuple:
        return (self.original,)

    def __instancecheck__(self, instance) -> bool:
        return isinstance(getattr(instance, "letir_example", instance), self.original)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.original, name)
        if not callable(value) or name.startswith("__"):
            return value

        @functools.wraps(value, updated=())
        def method(*args, **kwargs):
            if args and hasattr(type(args[0]), "letir_recorded"):  # a method in C would crash
                return getattr(args[0], name)(*args[1:], **kwargs)
            return value(*args, **kwargs)

        return method


def _solver_stand_in(part: str, original: Callable) -> Callable:
    """The stand-in for ``original``, which takes functions and records them as bodies."""

    @functools.wraps(original, updated=())
    def stand_in(*args, **kwargs):
        if not is_recording():
            return original(*args, **kwargs)
        return LATE_BOUND["scipy_solver"](part, original, args, kwargs)

    return stand_in


def _distribution_stand_in(original: Any) -> Any:
    """The stand-in for SciPy's distribution; methods that letir does not have are SciPy's."""
    name = {"multivariate_normal_gen": "multivariate_normal", "dirichlet_gen": "dirichlet"}
    kind = name.get(type(original).__name__) or original.name
    return LATE_BOUND["scipy_recorded"]("stats", kind)


LATE_BOUND.update(
    loaded_scipy_modules=loaded_scipy_modules,
    functions_decomposed=functions_decomposed,
    functions_faster_in_scipy=functions_faster_in_scipy,
)

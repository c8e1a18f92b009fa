"""The stand-ins for NumPy's functions: array makers, and functions that take lists of numbers."""

import functools
import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.sizes.size import Size
from letir.tracing.math_stand_ins import math_modules
from letir.tracing.numpy_protocols.array_value import numpy_namespace
from letir.tracing.operands import first_traced, traced_or_array
from letir.tracing.stand_ins import LibraryModule, is_recording

# functions that letir.numpy has under the same name
_MAKERS = """arange array asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray
broadcast empty empty_like eye fromiter full full_like identity ndenumerate nditer ones ones_like
require zeros zeros_like"""
# functions whose results are new arrays, into which traced values may be written
_NEW_ARRAYS = """append array_split average block column_stack concatenate copy cov cross cumprod
cumsum delete diag diagflat diff dot dstack einsum fromfunction geomspace hstack inner
insert interp kron linspace logspace matmul meshgrid outer pad repeat resize roll select sort stack
tensordot tile tril triu trapezoid vander vdot vstack where"""
# functions of a list of numbers
_OF_LISTS = """all amax amin any argmax argmin argsort count_nonzero max mean median min nanmax
nanmean nanmin nansum percentile polyfit polyval prod ptp quantile std sum trace transpose var"""
# functions of counts and sizes, which a guard fixes
_OF_COUNTS = "diag_indices indices mask_indices tril_indices triu_indices"
# functions of one count, which may be a symbolic size
_OF_SIZES = "bartlett blackman hamming hanning tri"
_SCALARS = """bool bool_ complex128 complex64 double float16 float32 float64 int16 int32 int64 int8
int_ intp single uint16 uint32 uint64 uint8"""
_LINALG = """cholesky cond det eig eigh eigvals eigvalsh inv lstsq matrix_power matrix_rank norm
pinv qr slogdet solve svd"""


def library_modules() -> list[LibraryModule]:
    """NumPy's and math's modules, with the makers of their stand-ins."""
    makers: dict[str, Callable] = dict.fromkeys(_MAKERS.split(), _maker_stand_in)
    makers |= dict.fromkeys((_NEW_ARRAYS + " " + _OF_LISTS).split(), _recorded_stand_in)
    makers |= dict.fromkeys(_OF_COUNTS.split(), _counted_stand_in)
    makers |= dict.fromkeys(_OF_SIZES.split(), _sized_stand_in)
    makers |= dict.fromkeys(("r_", "c_", "mgrid", "ogrid"), _IndexTrick)
    linalg = dict.fromkeys(_LINALG.split(), _recorded_stand_in)
    polynomials = LibraryModule(
        np.polynomial.polynomial,
        dict.fromkeys(("polyval", "polyvander", "polyfit"), _polynomial_stand_in),
    )
    strides = LibraryModule(np.lib.stride_tricks, {"as_strided": _as_strided_stand_in})
    scalars = dict.fromkeys(_SCALARS.split(), _scalar_stand_in)
    of_numpy = [
        LibraryModule(np, makers, scalars),
        LibraryModule(np.linalg, linalg),
        strides,
        polynomials,
    ]
    return [*of_numpy, *math_modules()]


def library_methods() -> list[tuple]:
    """(class, name, method, stand-in) of the methods of NumPy's objects that have one.

    All objects made by np.vectorize call the first, also those made by a decorator.
    """
    return [
        (np.vectorize, "_call_as_normal", _plain_call, _vectorized),
        (_POLYNOMIAL, "__call__", _plain_value, _value_of_polynomial),
    ]


def _scalar_stand_in(original: Any) -> Callable:
    """The function in the place of ``np.float64`` and the like in calls."""

    @functools.wraps(original, updated=())
    def stand_in(*args, **kwargs):
        x = args[0] if len(args) == 1 else None
        if not isinstance(x, Value) or not is_recording():
            return original(*args, **kwargs)
        constant = x.as_constant()
        return x.astype(original) if constant is x else original(constant)

    return stand_in


def loaded_modules(known: list[LibraryModule]) -> list[LibraryModule]:
    """The libraries' modules that are loaded late, but for the ``known`` ones."""
    found = list(LATE_BOUND["loaded_scipy_modules"](known)) if "scipy" in sys.modules else []
    random = sys.modules.get("numpy.random")
    if random is not None and all(library.module is not random for library in known):
        found.append(LibraryModule(random, {"default_rng": _seeded_stand_in}))
    fourier = sys.modules.get("numpy.fft")
    if fourier is not None and all(library.module is not fourier for library in known):
        names = dict.fromkeys(("fftfreq", "rfftfreq"), _sized_stand_in)
        found.append(LibraryModule(fourier, names))
    statistics = sys.modules.get("statistics")
    if statistics is not None and all(library.module is not statistics for library in known):
        found.append(LATE_BOUND["statistics_module"](statistics))
    return found


def _seeded_stand_in(original: Any) -> Callable:
    """The function in the place of ``numpy.random.default_rng``: traced seeds are guarded."""

    @functools.wraps(original, updated=())
    def stand_in(*args, **kwargs):
        seeds = (*args, *kwargs.values())
        if not is_recording() or first_traced(seeds) is None:
            return original(*args, **kwargs)
        return original(_guarded_integers(seeds[0]))

    return stand_in


def _guarded_integers(seed: Any) -> Any:
    """Traced integers, also in a list, as Python's."""
    if isinstance(seed, list | tuple):
        return [_guarded_integers(number) for number in seed]
    if issubclass(type(seed), Value):
        return [operator.index(n) for n in seed] if seed.ndim else operator.index(seed)
    return seed


def _maker_stand_in(original: Any) -> Callable:
    return _stand_in(original, _maker)


def _recorded_stand_in(original: Any) -> Callable:
    return _stand_in(original, _recorded)


def _stand_in(original: Any, function_for: Callable[[Any], Callable]) -> Callable:
    """The function in the place of ``original``: while user's code is recorded, another one."""
    found: list[Callable] = []  # that one, once it is needed

    @functools.wraps(original, updated=())
    def stand_in(*args, **kwargs):
        if not is_recording():
            return original(*args, **kwargs)
        if not found:
            found.append(function_for(original))
        return found[0](*args, **kwargs)

    return stand_in


def _counted_stand_in(original: Any) -> Callable:
    def recorded(*args, **kwargs):
        known = {name: _known_counts(value) for name, value in kwargs.items()}
        return _recorded(original)(*map(_known_counts, args), **known)

    return _stand_in(original, lambda _: recorded)


def _sized_stand_in(original: Any) -> Callable:
    def recorded(*args, **kwargs):
        if any(type(value) is Size for value in (*args, *kwargs.values())):
            return LATE_BOUND["sized_function"](original.__name__)(*args, **kwargs)
        known = {name: _known_counts(value) for name, value in kwargs.items()}
        return _recorded(original)(*map(_known_counts, args), **known)

    return _stand_in(original, lambda _: recorded)


def _known_counts(value: Any) -> Any:
    """``value`` with its traced integers as ints, each with a guard."""
    if isinstance(value, tuple | list):
        return type(value)(map(_known_counts, value))
    is_count = isinstance(value, Value) and not value.shape and value.dtype.kind in "iu"
    return int(value) if is_count else value


def _polynomial_stand_in(original: Any) -> Callable:
    def recorded(*args, **kwargs):
        is_any = first_traced((*args, *kwargs.values())) is not None
        called = LATE_BOUND["polynomial_function"](original.__name__) if is_any else original
        return called(*args, **kwargs)

    return _stand_in(original, lambda _: recorded)


def _as_strided_stand_in(original: Any) -> Callable:
    def recorded(x, *args, **kwargs):
        strided = LATE_BOUND["as_strided"] if isinstance(x, Value) else original
        return strided(x, *args, **kwargs)

    return _stand_in(original, lambda _: recorded)


def _maker(original) -> Callable:
    """The function of letir.numpy with the name of NumPy's ``original``."""
    return _unless_ordinary(original, getattr(numpy_namespace(), original.__name__))


def _unless_ordinary(original, maker: Callable) -> Callable:
    """``maker``, but NumPy's function for an ordinary array that it does not copy."""

    def make(*args, **kwargs):
        if original in _CONVERSIONS and args and type(args[0]) is np.ndarray:
            found = original(*args, **kwargs)
            if np.may_share_memory(found, args[0]):
                return found
        return maker(*args, **kwargs)

    return make


_CONVERSIONS = frozenset(
    [np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.require]
)


def _recorded(original) -> Callable:
    """NumPy's function, which also takes lists of traced values; a new array is a buffer."""
    return numpy_namespace().wrap_function(original)


class _IndexTrick:
    """``np.r_``, ``np.c_``, ``np.mgrid`` or ``np.ogrid``, recorded in the user's code."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def __getitem__(self, key: Any) -> Any:
        if not is_recording():
            return self.original[key]
        for name in ("r_", "c_"):
            if getattr(np, name) is self.original:
                return getattr(numpy_namespace(), name)[key]
        return numpy_namespace().as_traced_constant(self.original[key])

    def __len__(self) -> int:
        return len(self.original)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


_POLYNOMIAL: Any = np.polynomial.Polynomial.__mro__[1]  # the base of Chebyshev and others too
_plain_value: Any = _POLYNOMIAL.__call__


def _value_of_polynomial(self, arg):
    """The value of a polynomial with known coefficients, at traced places too."""
    if not is_recording() or first_traced(arg) is None:
        return _plain_value(self, arg)
    offset, scale = np.polynomial.polyutils.mapparms(self.domain, self.window)
    return self._val(offset + scale * traced_or_array(arg), self.coef)


_plain_call: Any = vars(np.vectorize)["_call_as_normal"]


def _vectorized(self, *args, **kwargs):
    """``np.vectorize.__call__``, which also takes traced values."""
    if not is_recording():
        return _plain_call(self, *args, **kwargs)
    return numpy_namespace().call_vectorized(self, _plain_call, args, kwargs)


LATE_BOUND["function_stand_in"] = _recorded_stand_in
LATE_BOUND["library_modules"] = library_modules
LATE_BOUND["library_methods"] = library_methods
LATE_BOUND["loaded_modules"] = loaded_modules

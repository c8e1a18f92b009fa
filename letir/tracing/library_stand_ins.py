"""The stand-ins for NumPy's functions: array makers, and functions that take lists of numbers."""

import functools
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.symbolic_sizes import has_size
from letir.errors import TraceError
from letir.tracing.callers import LibraryModule
from letir.tracing.math_stand_ins import as_numpy_scalar, call_unrecorded, math_modules
from letir.tracing.numpy_protocols.array_methods import (
    METHODS,
    ORIGINALS,
    STAND_INS,
    STAY_IN_PLACE,
    forget_lookups,
)
from letir.tracing.numpy_protocols.array_value import numpy_namespace
from letir.tracing.operands import first_traced, traced_or_array
from letir.tracing.refusals import note_refusal
from letir.tracing.source_locations import at_user
from letir.tracing.stand_ins import (
    LOADED_LATE,
    add_methods,
    is_recording,
    stand_in_of,
)
from letir.tracing.trace_state import ACTIVE

# functions that letir.numpy has under the same name
_MAKERS = """arange array asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray
broadcast empty empty_like eye fromiter full full_like identity ndenumerate nditer ones ones_like
require zeros zeros_like"""
# functions whose results are new arrays, into which traced values may be written
_NEW_ARRAYS = """append array_split average block column_stack concatenate copy cov cross cumprod
cumsum delete diag diagflat diff dot dstack einsum geomspace hstack inner
insert interp kron linspace logspace matmul meshgrid outer pad repeat resize roll select
sort stack tensordot tile tril triu trapezoid vander vdot vstack where"""
# functions of a list of numbers
_OF_LISTS = """all amax amin any argmax argmin argsort count_nonzero max mean median min nanmax
nanmean nanmin nansum percentile polyfit prod ptp quantile std sum trace transpose var"""
_OF_POLYNOMIALS = "polyadd polyder polydiv polyint polymul polysub polyval roots"
# functions of counts that may be symbolic sizes
_OF_SIZES = """bartlett blackman diag_indices fromfunction hamming hanning indices kaiser tri
tril_indices triu_indices"""
_SCALARS = """bool bool_ complex128 complex64 double float16 float32 float64 int16 int32 int64 int8
int_ intp single uint16 uint32 uint64 uint8"""
_LINALG = """cholesky cond det eig eigh eigvals eigvalsh inv lstsq matrix_power matrix_rank norm
pinv qr slogdet solve svd"""


def library_modules() -> list[LibraryModule]:
    """NumPy's and math's modules, with the makers of their stand-ins."""
    of_letir = partial(_library_stand_in, function_for=_letirs_maker)
    makers: dict[str, Callable] = dict.fromkeys(_MAKERS.split(), of_letir)
    makers |= dict.fromkeys((_NEW_ARRAYS + " " + _OF_LISTS).split(), _recorded_stand_in)
    makers |= dict.fromkeys(_OF_POLYNOMIALS.split(), _stand_in_for_polynomials)
    makers |= dict.fromkeys(_OF_SIZES.split(), partial(_stand_in_by, _call_for_sizes))
    makers |= dict.fromkeys(("r_", "c_", "mgrid", "ogrid"), _IndexTrick)
    makers |= {"frombuffer": partial(_stand_in_by, _call_frombuffer)}
    makers |= {"mask_indices": partial(_stand_in_by, _call_with_known_counts)}
    piecewise = lambda _: LATE_BOUND["piecewise"]  # noqa: E731
    makers |= {"piecewise": partial(_library_stand_in, function_for=piecewise)}
    read = lambda original: LATE_BOUND["reading_stand_in"](original)  # noqa: E731, PLW0108  late
    makers |= dict.fromkeys(("fromstring", "genfromtxt", "loadtxt"), read)
    polynomial = partial(_stand_in_by, _call_for_polynomials)
    polynomials = LibraryModule(
        np.polynomial.polynomial,
        dict.fromkeys(("polyval", "polyvander", "polyfit"), polynomial),
    )
    as_strided = partial(_stand_in_by, _call_as_strided)
    strides = LibraryModule(np.lib.stride_tricks, {"as_strided": as_strided})
    linalg = LibraryModule(np.linalg, dict.fromkeys(_LINALG.split(), _recorded_stand_in))
    scalars = dict.fromkeys(_SCALARS.split(), _scalar_stand_in)
    return [LibraryModule(np, makers, scalars), linalg, strides, polynomials, *math_modules()]


def library_methods() -> list[tuple]:
    """(class, name, method, stand-in) of the methods of NumPy's classes that have a stand-in.

    Among them is ``np.vectorize.__call__``, for functions that were decorated before the recording.
    """
    return [
        (np.vectorize, "_call_as_normal", _plain_call, _vectorized),
        (functools.cached_property, "__get__", _plain_property, _property),
        (np.poly1d, "__init__", _plain_poly1d, _poly1d),
        (_POLYNOMIAL, "__call__", _plain_value, _value_of_polynomial),
        (_POLYNOMIAL, "__init__", _plain_polynomial, _polynomial),
    ]


def _scalar_stand_in(original: Any) -> Callable:
    """The stand-in for calls of ``np.float64`` and NumPy's other scalar classes."""

    @functools.wraps(original, updated=())
    def stand_in(*args, **kwargs):
        x = args[0] if len(args) == 1 else None
        x = LATE_BOUND["number_of_text"](x) if type(x) is str and is_recording() else x
        if not isinstance(x, Value) or not is_recording():
            return original(*args, **kwargs)
        constant = x.as_constant()
        return as_numpy_scalar(x, original) if constant is x else original(constant)

    return stand_in


class _ImportWatch:
    """A finder that finds no module, but notices imports of libraries and by recorded functions."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        """The specification that another finder gives, or None for other imports."""
        package = fullname.partition(".")[0]
        is_late = fullname in LOADED_LATE or (package == "scipy" and "._" not in fullname)
        if package == "letir" or not (is_late or ACTIVE.get()):
            return None
        return LATE_BOUND["watched_spec"](fullname, path, target, is_late)


_IMPORT_WATCH: Any = _ImportWatch()


def watch_process(is_start: bool) -> None:
    """Start or stop giving stand-ins to newly imported libraries, and to methods of arrays.

    The list of finders is replaced, not changed: a thread that imports a module goes through it.
    """
    if is_start or not STAY_IN_PLACE:
        METHODS.update(STAND_INS if is_start else ORIGINALS)
        forget_lookups()
    if is_start:
        if _IMPORT_WATCH not in sys.meta_path:
            sys.meta_path = [_IMPORT_WATCH, *sys.meta_path]
    elif _IMPORT_WATCH in sys.meta_path:
        place = sys.meta_path.index(_IMPORT_WATCH)
        sys.meta_path = sys.meta_path[:place] + sys.meta_path[place + 1 :]


def _recorded_stand_in(original: Any) -> Callable:
    """The stand-in for a function that is recorded, and that also takes lists of traced values."""
    return _library_stand_in(original, _accepting_lists)


def _library_stand_in(original: Any, function_for: Callable[[Any], Callable]) -> Callable:
    """The stand-in for ``original``: calls another function while the user's code is recorded."""
    function: list[Callable] = []  # the other function, once it has been needed

    @functools.wraps(original, updated=())
    def stand_in(*args, **kwargs):
        if not is_recording():
            return original(*args, **kwargs)
        if not function:
            function.append(function_for(original))
        return function[0](*args, **kwargs)

    return stand_in


def _stand_in_by(call: Callable, original: Any) -> Callable:
    """The stand-in that becomes ``call(original, *args, **kwargs)`` while code is recorded."""
    return _library_stand_in(original, lambda f: partial(call, f))


def _call_with_known_counts(original: Any, *args, **kwargs):
    """The traced integers become known, each with a guard."""
    keywords = {name: _known_counts(value) for name, value in kwargs.items()}
    return _accepting_lists(original)(*map(_known_counts, args), **keywords)


def _call_for_sizes(original: Any, *args, **kwargs):
    """letir's function of sizes is called if one is symbolic or traced."""
    counts = tuple(map(_known_counts, args))
    keywords = {name: _known_counts(value) for name, value in kwargs.items()}
    arguments = (*counts, *keywords.values())
    if has_size(arguments) or first_traced(arguments) is not None:
        return LATE_BOUND["sized_function"](original.__name__)(*counts, **keywords)
    return _accepting_lists(original)(*counts, **keywords)


def _known_counts(value: Any) -> Any:
    """``value`` with its traced integers as ints, each with a guard."""
    if isinstance(value, tuple | list):
        return type(value)(map(_known_counts, value))
    is_count = isinstance(value, Value) and not value.shape and value.dtype.kind in "iu"
    return int(value) if is_count else value


def _known_ranges(key: Any) -> Any:
    """``key`` with known numbers in its slices, as ``np.ogrid`` takes them."""
    if isinstance(key, tuple):
        return tuple(map(_known_ranges, key))
    if not isinstance(key, slice):
        return key
    return slice(*map(_known_counts, (key.start, key.stop, key.step)))


def _call_for_polynomials(original: Any, *args, **kwargs):
    """letir's function of polynomials is called for traced values."""
    is_any = first_traced((*args, *kwargs.values())) is not None
    called = LATE_BOUND["polynomial_function"](original.__name__) if is_any else original
    return called(*args, **kwargs)


def _stand_in_for_polynomials(original: Any) -> Callable:
    """The stand-in for a function that also takes ``poly1d`` objects with traced coefficients."""
    call = lambda f: LATE_BOUND["polynomial_call"](f, _accepting_lists(f))  # noqa: E731
    return _library_stand_in(original, call)


def _call_as_strided(original: Any, x, *args, **kwargs):
    """letir's ``as_strided`` is called for a traced array."""
    strided = LATE_BOUND["as_strided"] if isinstance(x, Value) else original
    return strided(x, *args, **kwargs)


def _call_frombuffer(original: Any, buffer, *args, **kwargs):
    """The bytes of a traced value are refused."""
    read = vars(ACTIVE.get()).get("bytes_read", ())
    if any(buffer is buffer_read for buffer_read in read):
        raise note_refusal(
            TraceError(
                "numpy.frombuffer of the bytes of a traced value would lose its derivative"
                f"{at_user()}\n  copy the array: x.copy(), or convert it: x.astype(dtype)"
            )
        )
    return original(buffer, *args, **kwargs)


def _letirs_maker(original) -> Callable:
    """The function of letir.numpy with the name of NumPy's ``original``."""
    return _maker_for_traced(original, getattr(numpy_namespace(), original.__name__))


def _maker_for_traced(original, maker: Callable) -> Callable:
    """``maker``, except that NumPy's function handles ordinary arrays that it does not copy."""

    def make(*args, **kwargs):
        if original in _CONVERSIONS and args and type(args[0]) is np.ndarray:
            result = original(*args, **kwargs)
            if np.may_share_memory(result, args[0]):
                return result
        return maker(*args, **kwargs)

    return make


_CONVERSIONS = frozenset(
    [np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.require]
)


def _accepting_lists(original) -> Callable:
    """NumPy's function, extended to lists of traced values; new arrays become buffers."""
    return numpy_namespace().wrap_function(original)


def recorded_function(f: Callable) -> Callable:
    """The stand-in for ``f`` if it is a function of NumPy, else ``f``.

    For a function that is passed to ``trace`` directly, and that no code of the user calls.
    """
    if isinstance(f, functools.partial):
        inner = recorded_function(f.func)
        return f if inner is f.func else partial(inner, *f.args, **f.keywords)
    stand_in = stand_in_of(f)
    if stand_in is None and type(f) in (np.ufunc, type(np.sum)):
        return _recorded_stand_in(f)
    return stand_in or f


def list_taking_function(ufunc: Any) -> Any:
    """The function of letir.numpy for a ufunc, which is the ufunc's stand-in during recordings."""
    return numpy_namespace().wrap_function(ufunc)


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
        return numpy_namespace().as_traced_constant(self.original[_known_ranges(key)])

    def __len__(self) -> int:
        return len(self.original)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.original, name)


_POLYNOMIAL: Any = np.polynomial.Polynomial.__mro__[1]  # the base of Chebyshev and others too
_plain_poly1d: Any = vars(np.poly1d)["__init__"]
_plain_value: Any = _POLYNOMIAL.__call__
_plain_polynomial: Any = _POLYNOMIAL.__init__
_ON_COEFFICIENTS: dict[str, Callable] = {  # lowest power first; np.poly1d begins with the highest
    "_add": lambda a, b: np.polyadd(a[::-1], b[::-1])[::-1],
    "_sub": lambda a, b: np.polysub(a[::-1], b[::-1])[::-1],
    "_mul": np.convolve,
    "_der": lambda c, m=1, scl=1: (np.polyder(c[::-1], m) * scl**m)[::-1],
}


def _as_coefficients(x: Any) -> Any:
    """Coefficients as a vector; a number is a polynomial of degree 0."""
    return np.atleast_1d(traced_or_array(x))


def _series_function(name: str, plain: Any) -> Callable:
    """The function of coefficients with this name, which also takes traced ones."""

    def function(*args, **kwargs):
        if not is_recording() or first_traced(args) is None:
            return plain.__func__(*args, **kwargs)
        count = 1 if name == "_der" else 2  # the further arguments are not coefficients
        polynomials = map(_as_coefficients, args[:count])
        result = _ON_COEFFICIENTS[name](*polynomials, *args[count:], **kwargs)
        while result.shape[0] > 1 and bool(result[-1] == 0):  # with a guard
            result = result[:-1]
        return result

    return function


@functools.cache
def _watch_polynomials() -> None:
    """Put the functions of coefficients in place, once there are traced ones."""
    kind = np.polynomial.Polynomial
    methods = [(name, plain) for name, plain in vars(kind).items() if name in _ON_COEFFICIENTS]
    add_methods([(kind, name, f, staticmethod(_series_function(name, f))) for name, f in methods])


def _polynomial(self, coef, *args, **kwargs):
    """Make a polynomial, or another series, whose coefficients may be traced."""
    if not is_recording() or first_traced(coef) is None:
        _plain_polynomial(self, coef, *args, **kwargs)
        return
    _watch_polynomials()
    # a copy, of floats
    [coefficients] = np.polynomial.polyutils.as_series([traced_or_array(coef)], trim=False)
    _plain_polynomial(self, np.zeros(coefficients.shape), *args, **kwargs)
    self.coef = coefficients


def _poly1d(self, c_or_r, *args, **kwargs):
    """``poly1d.__init__``, which also takes traced coefficients."""
    coefficients = LATE_BOUND["coefficients_of"](c_or_r) if is_recording() else c_or_r
    _plain_poly1d(self, coefficients, *args, **kwargs)


def _value_of_polynomial(self, arg):
    """``Polynomial.__call__``: the value of a polynomial with known coefficients at ``arg``."""
    if not is_recording() or first_traced((arg, self.coef)) is None:
        return _plain_value(self, arg)
    offset, scale = np.polynomial.polyutils.mapparms(self.domain, self.window)
    is_array = not isinstance(arg, _POLYNOMIAL)
    x = offset + scale * (traced_or_array(arg) if is_array else arg)
    if type(self) is np.polynomial.Polynomial and first_traced(self.coef) is not None:
        polyval = LATE_BOUND["polynomial_function"]("polyval") if is_array else LATE_BOUND["horner"]
        return polyval(x, self.coef)
    return self._val(x, self.coef)


_plain_property: Any = vars(functools.cached_property)["__get__"]


def _property(member: Any, instance: Any, owner: Any = None) -> Any:
    """The value of a ``cached_property``; what its object keeps is not part of a recording."""
    if instance is None or not is_recording() or LATE_BOUND["holds_traced"](instance):
        return _plain_property(member, instance, owner)
    return call_unrecorded(_plain_property, (member, instance, owner), {})


_plain_call: Any = vars(np.vectorize)["_call_as_normal"]


def _vectorized(self, *args, **kwargs):
    """``np.vectorize.__call__``, which also takes traced values."""
    if not is_recording():
        return _plain_call(self, *args, **kwargs)
    return numpy_namespace().call_vectorized(self, _plain_call, args, kwargs)


LATE_BOUND["function_stand_in"] = _recorded_stand_in
LATE_BOUND["sized_stand_in"] = partial(_stand_in_by, _call_for_sizes)
LATE_BOUND["list_taking_function"] = list_taking_function
LATE_BOUND["recorded_function"] = recorded_function
LATE_BOUND["library_modules"] = library_modules
LATE_BOUND["library_methods"] = library_methods
LATE_BOUND["watch_process"] = watch_process

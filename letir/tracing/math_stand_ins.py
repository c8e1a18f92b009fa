"""The stand-ins for the functions of ``math`` and ``cmath``, and for builtins that code names.

Called on traced values they return traced Python numbers; on other values they call the originals.
"""

import cmath
import collections.abc
import functools
import math
import operator
import typing
from collections.abc import Callable, Collection, Iterable
from types import CodeType
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.process_state import MemberSite
from letir.ast.pytrees import flatten
from letir.ast.sizes.size import Size
from letir.tracing.callers import (
    LibraryModule,
    attributes_called_on_lists,
    codes_in,
    name_of_globals,
)
from letir.tracing.numpy_protocols.array_value import ArrayValue
from letir.tracing.numpy_protocols.python_protocols import has_attribute, is_instance, python_number
from letir.tracing.operands import first_traced
from letir.tracing.stand_ins import (
    GIVEN_NUMBERS,
    is_recording,
    names_without_stand_in,
    watch_functions,
)
from letir.tracing.trace_state import ACTIVE

# recorded as operations that math and cmath compute
_SMOOTH = """acos acosh asin asinh atan atan2 atanh cbrt copysign cos cosh degrees erf erfc exp exp2
expm1 fabs fmod gamma lgamma log10 log1p log2 nextafter pow radians sin sinh sqrt tan tanh"""
_SMOOTH_COMPLEX = "acos acosh asin asinh atan atanh cos cosh exp log10 sin sinh sqrt tan tanh"


def _math_function(*numbers: Any, name: str) -> Any:
    return PRIMITIVES["math_function"](*numbers, name=name)


def _math_reduction(numbers: Iterable, name: str) -> Any:
    """``math.fsum`` or ``math.hypot`` of any number of numbers."""
    return PRIMITIVES["math_reduction"](*numbers, name=name)


def _recording_function(name: str) -> Callable:
    """The function that records a function of math."""
    return functools.partial(_math_function, name=name)


def _log(x, base=None):
    """math.log, also with a base."""
    result = _recording_function("log")(x)
    if base is None:
        return result
    log_of_base = _recording_function("log")(base) if isinstance(base, Value) else math.log(base)
    # Python's quotient, which raises for the base 1
    return PRIMITIVES["python_operator"](result, log_of_base, operator="div", kind="float")


def _hypot(*coordinates):
    """math.hypot of any number of coordinates."""
    if len(coordinates) == 2:
        return _recording_function("hypot")(*coordinates)
    return _math_reduction(coordinates, "hypot")


def _remainder(x, y):
    """math.remainder: exact, as fmod and the last subtraction are; ties go to an even quotient."""
    rest, whole = _recording_function("fmod")(x, y), np.abs(y)
    is_odd = _recording_function("fmod")(np.rint((x - rest) / y), 2.0) != 0
    is_beyond = (2 * np.abs(rest) > whole) | ((2 * np.abs(rest) == whole) & is_odd)
    return np.where(is_beyond, rest - np.copysign(whole, rest), rest)


def _ulp(x):
    """math.ulp, which is infinite for infinite numbers."""
    is_infinite = np.isinf(x)
    return np.where(is_infinite, np.inf, np.spacing(np.abs(np.where(is_infinite, 0.0, x))))


def _ldexp(x, n):
    """math.ldexp, which raises TypeError unless ``n`` is an integer."""
    kind = n.dtype.kind if isinstance(n, Value) else np.dtype(type(n)).kind
    if kind not in "iub":
        return math.ldexp(0.0, 0.5)  # type: ignore[arg-type]  # raises Python's error
    return _recording_function("ldexp")(python_number(x, float), python_number(n, int))


def _isclose(a, b, *, rel_tol=1e-9, abs_tol=0.0):
    """math.isclose: infinite numbers are close to equal numbers only."""
    if not all(isinstance(tol, Value) or tol >= 0 for tol in (rel_tol, abs_tol)):
        math.isclose(0.0, 1.0, rel_tol=-1.0)  # raises Python's error
    is_finite = np.isfinite(a) & np.isfinite(b)
    # no difference of infinite numbers is computed: it would warn
    x, y = np.where(is_finite, a, 0.0), np.where(is_finite, b, 0.0)
    most = np.maximum(rel_tol * np.maximum(np.abs(x), np.abs(y)), abs_tol)
    return np.equal(a, b) | (is_finite & (np.abs(x - y) <= most))


def _frexp(x):
    """math.frexp."""
    mantissa, exponent = np.frexp(x)
    return mantissa, exponent.astype(np.int64)


def _product(items, *, start=1):
    """math.prod."""
    return functools.reduce(lambda x, y: x * y, items, start)


# name in math -> the function that records it for traced Python floats
_REAL: dict[str, Callable] = {
    "remainder": _remainder,
    **{name: functools.partial(_math_function, name=name) for name in _SMOOTH.split()},
    **{name: getattr(np, name) for name in ("isnan", "isinf", "isfinite", "floor", "ceil")},
    **{"trunc": np.trunc, "log": _log, "hypot": _hypot},
    "ldexp": _ldexp,
    "frexp": _frexp,
    "ulp": _ulp,
    "modf": np.modf,
    "dist": lambda p, q: _math_reduction([a - b for a, b in zip(p, q, strict=True)], "hypot"),
    "fsum": lambda items: _math_reduction(items, "fsum"),
    "sumprod": lambda p, q: sum(a * b for a, b in zip(p, q, strict=True)),
    "prod": _product,
    "isclose": _isclose,
}


def _complex_function(*numbers: Any, name: str) -> Any:
    return PRIMITIVES["complex_math_function"](*numbers, name=name)


def _complex_log(z, *base):
    """cmath.log, also with a base."""
    return _complex_function(*_python_numbers((z, *base), complex), name="log")


def _phase(z):
    """cmath.phase, with the bits of math.atan2."""
    return _recording_function("atan2")(z.imag, z.real)


def _rect(r, phi):
    """cmath.rect."""
    return _complex_function(python_number(r, float), python_number(phi, float), name="rect")


_COMPLEX: dict[str, Callable] = {
    **{name: functools.partial(_complex_function, name=name) for name in _SMOOTH_COMPLEX.split()},
    **{"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite},
    **{"log": _complex_log, "phase": _phase, "polar": lambda z: (abs(z), _phase(z)), "rect": _rect},
    "isclose": _isclose,
}
_OF_ANY_NUMBER = ("prod", "sumprod")  # integers stay integers
_OF_OTHER_NUMBERS = ("ldexp", "rect")  # convert their arguments, not all to the module's kind
_OF_SEQUENCES = ("dist", "fsum", "prod", "sumprod")
_CONVERTED: dict[str, type] = {"isnan": bool, "isinf": bool, "isfinite": bool, "isclose": bool}
_CONVERTED |= {"floor": int, "ceil": int, "trunc": int}


def math_modules() -> list[LibraryModule]:
    """The modules ``math`` and ``cmath``, with the makers of their stand-ins."""
    return [
        LibraryModule(
            module, dict.fromkeys(functions, functools.partial(_math_stand_in, functions, kind))
        )
        for module, functions, kind in ((math, _REAL, float), (cmath, _COMPLEX, complex))
    ]


def _math_stand_in(functions: dict[str, Callable], kind: type, original: Callable) -> Callable:
    """The stand-in for ``original``, which records calls with traced values.

    ``functions``: name -> function that records the call. ``kind``: float or complex, the numbers
    that ``original`` takes.
    """
    name = original.__name__
    recorded = functions[name]

    @functools.wraps(original)
    def stand_in(*args, **kwargs):
        if not is_recording():
            return original(*args, **kwargs)
        if name in _OF_SEQUENCES:
            args = tuple([list(items) for items in args])
        args = tuple([x.number() if type(x) is Size else x for x in args])
        if first_traced((*args, *kwargs.values())) is None:
            return original(*args, **kwargs)
        if name == "trunc" and not hasattr(args[0].__class__, "__trunc__"):
            return original(_without_trunc(args[0].__class__))  # raises Python's TypeError
        if name not in (*_OF_ANY_NUMBER, *_OF_OTHER_NUMBERS):
            args = _python_numbers(args, kind)
            if first_traced(args) is None:  # known numbers
                return original(*args, **kwargs)
        result = recorded(*args, **kwargs)
        if name in _CONVERTED:
            return _CONVERTED[name](result)
        if name in _OF_ANY_NUMBER:  # of NumPy's numbers the result is a NumPy number
            return result
        return tuple(map(python_number, result)) if type(result) is tuple else python_number(result)

    return stand_in


def _without_trunc(kind: type) -> Any:
    """An object of NumPy's class ``kind``, for the error that ``math.trunc`` raises for most
    classes.
    """
    return np.zeros(()) if kind is np.ndarray else kind(0)


def _python_numbers(value: Any, kind: type) -> Any:
    """Nested arguments, with traced values converted to traced Python numbers of ``kind``."""
    if isinstance(value, tuple | list):
        return [_python_numbers(item, kind) for item in value]
    return python_number(value, kind) if isinstance(value, Value) else value


def as_numpy_scalar(x: Value, kind: type) -> Any:
    """``kind(x)`` of a class of NumPy's scalars: of a 0-d array a scalar, of others an array."""
    if x.type.weak and x.dtype.kind == "c":
        kind(0j)  # raises NumPy's TypeError for a class of real numbers
    result = x.astype(kind, copy=x.arg in getattr(x.emitter, "python_bools", ()))  # not x itself
    is_array = isinstance(x, ArrayValue) and not x.shape and not x.is_scalar()
    return result[()] if is_array else result


def _power(base: Any, exp: Any, mod: Any = None) -> Any:
    """The stand-in for ``pow``: a modulus makes traced Python integers known, with guards."""
    numbers: list = [base, exp, mod]
    are_weak = mod is not None and any(isinstance(n, Value) and n.type.weak for n in numbers)
    if are_weak and is_recording():
        numbers = [operator.index(n) if isinstance(n, int) else n for n in numbers]
    return pow(*numbers)


# NumPy's classes of numbers but bool_, of which Python allows no derived class
_NUMBER_CLASSES = {id(kind): kind for kind in (np.dtype(c).type for c in "bhilBHILefdFD")}


def call_unrecorded(function: Any, args: tuple, kwargs: dict) -> Any:
    """The result of a function whose array makers are NumPy's own."""
    trace: Any = ACTIVE.get()
    trace.intercepts = False
    try:
        return function(*args, **kwargs)
    finally:
        trace.intercepts = True


def _cached_function(original: Any) -> Any:
    """The stand-in for a function with ``functools.lru_cache``.

    Results for traced arguments are kept by the trace, because they end with it. Results for other
    arguments outlive the recording: their arrays are ordinary ones.
    """

    @functools.wraps(original)
    def stand_in(*args, **kwargs):
        arguments = (*args, *kwargs.values())
        if not is_recording():
            return original(*args, **kwargs)
        if first_traced(arguments) is None:
            return call_unrecorded(original, args, kwargs)
        traced = [x for x in flatten(arguments)[0] if isinstance(x, Value)]
        for array in traced:
            if array.shape or not array.is_scalar():
                hash(array)  # raises TypeError
        if any(x.dtype.kind in "fc" for x in traced):
            return original.__wrapped__(*args, **kwargs)  # a key would need a guard
        results = vars(ACTIVE.get()).setdefault("cached_results", {}).setdefault(original, {})
        key = (args, tuple(kwargs.items()))
        if key not in results:
            results[key] = original.__wrapped__(*args, **kwargs)
        return results[key]

    for name in ("cache_clear", "cache_info", "cache_parameters"):
        setattr(stand_in, name, getattr(original, name))
    return stand_in


_CACHED = type(functools.lru_cache(len))


def scalar_stand_ins(space: dict) -> dict[str, type]:
    """The stand-ins for NumPy's classes of numbers that a module has imported by name."""
    classes = [(name, _NUMBER_CLASSES.get(id(value))) for name, value in list(space.items())]
    return {name: LATE_BOUND["class_stand_in"](kind) for name, kind in classes if kind is not None}


def cached_stand_ins(space: dict) -> tuple[dict[str, Any], list[MemberSite]]:
    """(stand-ins for functions of a module that keep their results, by ``lru_cache``; the sites of
    such methods of its classes).
    """
    functions, methods, module = {}, list[MemberSite](), space.get("__name__")
    for name, value in list(space.items()):
        kind = type(value)
        if kind is _CACHED:
            functions[name] = _cached_function(value)
        elif (kind is type or issubclass(kind, type)) and value.__module__ == module:
            has_some = _CACHED in map(type, list(vars(value).values()))
            methods += LATE_BOUND["cached_members"](value) if has_some else ()
    return functions, methods


def _length(x: Any, /) -> Any:
    """The stand-in for ``len``, whose result may be a symbolic size."""
    shape = x.shape if issubclass(type(x), Value) and x.type is not None else ()
    return shape[0] if shape and type(shape[0]) is Size else len(x)


_FUNCTIONS: dict[str, Any] = {"len": _length, "pow": _power}
_FUNCTIONS |= {"hasattr": has_attribute, "isinstance": is_instance}
_NAMES = frozenset([*_FUNCTIONS, "float", "complex", "type", "eval", "literal_eval"])
_OF_METHODS = frozenset(["Iterable", "Sized", "Container", "Collection", "Sequence", "Reversible"])
_CLASSES_OF_METHODS = frozenset(
    [id(getattr(module, name)) for module in (collections.abc, typing) for name in _OF_METHODS]
)
_FOURIER = "fft fft2 fftn fftshift hfft ifft ifft2 ifftn ifftshift ihfft irfft rfft rfft2 rfftn"
_OF_ARRAYS = frozenset(  # NumPy's functions
    [
        *[name for name, value in vars(np).items() if type(value) in (np.ufunc, type(np.sum))],
        *_FOURIER.split(),
    ]
)
_FUNCTION_TYPES = (type(math.sin), type(np.sum))
_USED = frozenset(  # by id: some objects in modules compare elementwise
    [id(module) for module in (np, math, cmath)]
    + [id(v) for m in (np, math) for v in vars(m).values() if type(v) in _FUNCTION_TYPES]
)


def python_stand_ins(space: dict) -> dict[str, Any]:
    """The stand-ins for the builtins, such as ``float``, that the code in these globals uses.

    Code that uses ``type`` also gets ``float`` and ``complex``, for ``type(x) is float``. In
    installed packages only modules that use NumPy or ``math`` get stand-ins, and others once they
    have been given a traced number.
    """
    values = list(space.values())
    is_installed = "-packages" in (space.get("__file__") or "")
    uses = _USED.intersection(map(id, values)) or np.ufunc in map(type, values)
    if is_installed and not uses and name_of_globals(space) not in GIVEN_NUMBERS:
        return {}
    of_methods = not _CLASSES_OF_METHODS.isdisjoint(map(id, values))
    of_methods |= type(typing.Protocol) in map(type, values)
    return named_stand_ins(codes_in(values, space), of_methods)


def named_stand_ins(todo: list[CodeType], of_methods: bool = False) -> dict[str, Any]:
    """The stand-ins for the builtins whose names occur in code, or in code nested in it.

    ``of_methods``: the code may use a class such as ``Iterable`` under another name.
    """
    named: set[str] = set()
    while todo:
        code = todo.pop()
        named |= _NAMES.intersection(code.co_names)
        of_methods |= not _OF_METHODS.isdisjoint(code.co_names)
        functions = functions_of_arrays(code.co_names)
        if functions and names_without_stand_in(functions):
            called = functions_of_arrays(attributes_called_on_lists(code))
            if called:
                watch_functions(called, LATE_BOUND["function_stand_in"])
        todo += [constant for constant in code.co_consts if type(constant) is CodeType]
    if not of_methods:
        named.discard("isinstance")  # called often, and right without a stand-in
    if "type" in named:  # its stand-in returns the stand-ins for float and complex
        named |= {"float", "complex"}
    class_stand_in = LATE_BOUND["class_stand_in"] if named - _FUNCTIONS.keys() else None
    return {name: _FUNCTIONS.get(name) or class_stand_in(name) for name in named}


def functions_of_arrays(names: Collection[str]) -> frozenset[str]:
    """The names among these of functions of NumPy that take arrays."""
    return _OF_ARRAYS.intersection(names)


LATE_BOUND.update(
    named_stand_ins=named_stand_ins,
    python_stand_ins=python_stand_ins,
    cached_function=_cached_function,
    cached_stand_ins=cached_stand_ins,
    scalar_stand_ins=scalar_stand_ins,
)

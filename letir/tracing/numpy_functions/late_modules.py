"""The stand-ins for modules that a program need not have loaded: ``numpy.random``, ``numpy.fft``,
``numpy.testing``, ``statistics``, ``json``, ``csv``, ``decimal``, ``fractions`` and SciPy's.
"""

import copyreg
import functools
import operator
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.builder import Value
from letir.tracing.callers import LibraryModule
from letir.tracing.class_stand_ins import CLASSES_REPLACED, ClassStandIn
from letir.tracing.late_imports import whole_module
from letir.tracing.numpy_protocols.text_readers import reading_class, reading_stand_in
from letir.tracing.operands import first_traced
from letir.tracing.stand_ins import add_methods, is_recording

_ASSERTIONS = """assert_allclose assert_almost_equal assert_approx_equal assert_array_almost_equal
assert_array_almost_equal_nulp assert_array_equal assert_array_less assert_array_max_ulp
assert_equal"""
_SEEDED = "SeedSequence MT19937 PCG64 PCG64DXSM Philox SFC64"


def loaded_modules(libraries: list[LibraryModule]) -> list[LibraryModule]:
    """The modules of libraries that are loaded, except the ``libraries`` ones."""
    result = list(LATE_BOUND["loaded_scipy_modules"](libraries)) if "scipy" in sys.modules else []
    for name, library_of in _MODULES.items():
        module = whole_module(name)
        if module is not None and all(library.module is not module for library in libraries):
            result.append(library_of(module))
    return result


def _random_module(module: ModuleType) -> LibraryModule:
    """``numpy.random``, with stand-ins for what takes a seed."""
    makers: dict[str, Callable] = dict.fromkeys(_SEEDED.split(), _seeded_class)
    return LibraryModule(module, makers | {"default_rng": _seeded_stand_in})


def _fourier_module(module: ModuleType) -> LibraryModule:
    """``numpy.fft``, with stand-ins for its functions of sizes."""
    maker = LATE_BOUND["sized_stand_in"]
    return LibraryModule(module, dict.fromkeys(("fftfreq", "rfftfreq"), maker))


def _testing_module(module: ModuleType) -> LibraryModule:
    """``numpy.testing``, with stand-ins for its assertions."""
    return LibraryModule(module, dict.fromkeys(_ASSERTIONS.split(), _assertion_stand_in))


def _json_module(module: ModuleType) -> LibraryModule:
    """``json``, with stand-ins for what writes and reads values."""
    encode = module.JSONEncoder.encode
    add_methods([(module.JSONEncoder, "encode", encode, _encoding_stand_in(encode))])
    return LibraryModule(module, dict.fromkeys(("dump", "dumps", "load", "loads"), _json_stand_in))


def _fractions_module(module: ModuleType) -> LibraryModule:
    make = vars(module.Fraction)["__new__"]
    add_methods([(module.Fraction, "__new__", make, reading_stand_in(make.__func__, 1))])
    return LibraryModule(module, {})


_MODULES: dict[str, Callable[[ModuleType], LibraryModule]] = {
    "numpy.random": _random_module,
    "numpy.fft": _fourier_module,
    "numpy.testing": _testing_module,
    "statistics": lambda module: LATE_BOUND["statistics_module"](module),  # noqa: PLW0108  late
    "json": _json_module,
    "csv": lambda module: LibraryModule(module, {"reader": reading_stand_in}),
    "decimal": lambda module: LibraryModule(module, {"Decimal": reading_class}),
    "fractions": _fractions_module,
}


def _assertion_stand_in(original: Any) -> Callable:
    """The stand-in for an assertion of numpy.testing; its module loads on first use."""
    return LATE_BOUND["assertion_stand_in"](original)


def _encoding_stand_in(encode: Callable) -> Callable:
    """The stand-in for ``JSONEncoder.encode``, which writes values as ``json.dumps`` does."""

    @functools.wraps(encode)
    def stand_in(encoder, value):
        def dumps(value):
            return encode(encoder, value)

        return _json_stand_in(dumps)(value) if is_recording() else encode(encoder, value)

    return stand_in


def _json_stand_in(original: Any) -> Callable:
    """The stand-in for a function of json; its module loads on first use."""
    return LATE_BOUND["json_stand_in"](original)


def _seeded_stand_in(original: Any) -> Callable:
    """The stand-in for ``numpy.random.default_rng``: traced seeds are guarded."""

    @functools.wraps(original, updated=())
    def stand_in(*args, **kwargs):
        return _call_seeded(original, args, kwargs)

    return stand_in


def _seeded_class(original: type) -> type:
    """The stand-in for a class that takes a seed: traced seeds are guarded."""
    names = {"original": original, "__module__": original.__module__}
    names |= {"__qualname__": original.__qualname__, "__doc__": original.__doc__}
    result = CLASSES_REPLACED[original] = _SeededClass(original.__name__, (original,), names)
    return result


class _SeededClass(ClassStandIn):
    """The metaclass of the stand-ins for classes that take a seed."""

    def __call__(cls, *args, **kwargs):
        if "original" not in vars(cls):
            return super().__call__(*args, **kwargs)  # a user's subclass
        return _call_seeded(cls.original, args, kwargs)


# a pickle names the original class
_pickled: Any = lambda cls: (type, (cls.original(0),))  # noqa: E731
copyreg.pickle(_SeededClass, _pickled)


def _call_seeded(original: Callable, args: tuple, kwargs: dict) -> Any:
    """Call ``original``; while it is recorded, traced integers become known, with guards."""
    if not is_recording() or first_traced((*args, *kwargs.values())) is None:
        return original(*args, **kwargs)
    keywords = {name: _guarded_integers(value) for name, value in kwargs.items()}
    return original(*map(_guarded_integers, args), **keywords)


def _guarded_integers(seed: Any) -> Any:
    """Traced integers, also in a list, as Python integers with guards."""
    if isinstance(seed, list | tuple):
        return [_guarded_integers(number) for number in seed]
    if issubclass(type(seed), Value):
        return [operator.index(n) for n in seed] if seed.ndim else operator.index(seed)
    return seed


LATE_BOUND["loaded_modules"] = loaded_modules

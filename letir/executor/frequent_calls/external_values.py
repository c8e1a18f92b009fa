"""``values_read``: the values that a function reads from outside, if it has no effects there.

Such a function may be called in place of its plan, as long as these values are the same.
"""

import dis
import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from inspect import CO_OPTIMIZED
from opcode import opmap, opname
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    NoneType,
)
from typing import Any

import numpy as np
from attrs import define, field, frozen

from letir.ast import LATE_BOUND
from letir.eval.arguments import is_static
from letir.executor.argument_spec import (
    PLAIN_SCALARS,
    Place,
    named_places,
    names_in_code,
    nested_codes,
    search_places,
)
from letir.tracing.callers import is_class_of_user, is_user_module
from letir.tracing.checks.reachable_draws import transformed_function

_LIBRARY = ("builtins", "cmath", "functools", "itertools", "math", "numpy", "operator", "scipy")
# modules of Python whose functions, also those in Python, only return values or change arguments
_PURE = (
    *("_bisect", "_heapq", "_warnings", "bisect", "collections", "contextlib", "copy", "heapq"),
    *("statistics", "string", "warnings"),
)
# names of functions of Python, NumPy and SciPy that do more than return a value
EFFECTS = frozenset(
    [
        *("__import__", "breakpoint", "delattr", "eval", "exec", "globals", "input", "open"),
        *("print", "setattr", "vars"),
        *("fromfile", "load", "loadtxt", "memmap", "save", "savetxt", "savez"),
        *("savez_compressed", "set_printoptions", "setbufsize", "seterr", "seterrcall", "tofile"),
        *("io", "loadmat", "rvs", "savemat"),
        *("redirect_stderr", "redirect_stdout", "warn", "warn_explicit"),
    ]
)
# effects if Python runs the function in each call: NumPy's own setting is then as it is there
EFFECTS_IN_PYTHON = EFFECTS - {"seterr"}
# changes of the filters of warnings, which ``catch_warnings`` takes back
_FILTERS = frozenset(["filterwarnings", "resetwarnings", "simplefilter"])
# instructions of Python's bytecode that change state outside of a function
_CHANGES = frozenset(
    opmap[name]
    for name in ("DELETE_ATTR", "DELETE_GLOBAL", "IMPORT_NAME", "STORE_ATTR", "STORE_GLOBAL")
)
_MEMBERS = frozenset([FunctionType, MemberDescriptorType, classmethod, property, staticmethod])
_OF_CLASS: dict = {}  # the namespace of functions of classes
_LOAD_GLOBAL, _EXTENDED_ARG = opmap["LOAD_GLOBAL"], opmap["EXTENDED_ARG"]
_MAX_FUNCTIONS = 1_000  # that are searched for a use of letir
_MAX_IF_SMALL = 256  # elements of arguments
CONSTANTS: frozenset[type] = frozenset([bool, bytes, complex, float, int, str, NoneType])
_TESTED = CONSTANTS | {np.random.Generator, np.random.RandomState}  # a plan advances these, too


@frozen(eq=False)
class ExternalValues:
    """The values that a function without effects reads from outside.

    ``places``: (namespace, name, value) of each global number or text, and (cell, None, value) of
    each captured one; also (tuple, position, value) of an argument of ``functools.partial``.
    ``others``: the same for functions, classes and modules. ``read``: the ids of the functions that
    it reads from modules, if it uses SciPy. ``is_complete``: whether ``read`` has all of them; it
    may not, if the function assigns a module to a variable or passes it on.
    """

    places: tuple[Place, ...]
    others: tuple[Place, ...]
    read: frozenset[int]
    is_complete: bool
    uses_scipy: bool


def values_read(
    f: Any,
    executor: Any = None,
    *,
    effects: Collection[str] = EFFECTS,
    for_recording: bool = False,
) -> ExternalValues | None:
    """The values that ``f`` reads from outside; None if ``f`` might read or change other state.

    ``executor``: an executor of ``f``. ``f`` may call it and others that give the same bits.
    ``effects``: the names of the functions that do more than return a value. ``for_recording``:
    for a function that a transform records; arrays are among the places, and a gradient counts as
    the function that it is the gradient of.

    All of them have to be numbers, strings, generators, or functions and modules of Python, NumPy
    and SciPy. Functions of the user that ``f`` calls count as parts of ``f``. Functions of letir
    are refused, because they would record in every call.
    """
    found = _ReadParts(executor, effects, for_recording)
    if not search_places(f, found.places_in):
        return None
    functions = found.functions if found.uses_scipy else ()
    read = [value for function in functions for value in _values_in_function(function)]
    is_complete = not any(isinstance(value, ModuleType) for value in read)
    places, others = tuple(found.constants), tuple(found.others)
    return ExternalValues(places, others, frozenset(map(id, read)), is_complete, found.uses_scipy)


@define
class _ReadParts:
    """What ``values_read`` has found.

    ``constants``: the places of numbers, strings, generators, and ``for_recording`` of arrays;
    ``others``: all other places that are read.
    """

    executor: Any
    effects: Collection[str]
    for_recording: bool
    constants: list[Place] = field(factory=list)
    others: list[Place] = field(factory=list)
    functions: list[FunctionType] = field(factory=list)
    uses_scipy: bool = False

    def places_in(self, place: Place) -> Sequence[Place] | None:
        """The places that a function or a class reads; None if it might read or change others."""
        value = _function_of(place[-1], self.executor)
        if self.is_constant(value):
            self.constants.append(place)
            return ()
        self.uses_scipy |= _is_of_module(value, "scipy")
        if is_of_library(value):
            return None if getattr(value, "__name__", "") in self.effects else ()
        found = self.places_of_function(value, place[0])
        self.others += [place for place in found or () if not self.is_constant(place[-1])]
        return found

    def is_constant(self, value: Any) -> bool:
        """Whether a value is compared itself, not searched for what it reads."""
        return is_constant(value) or (self.for_recording and type(value) is np.ndarray)

    def places_of_function(self, value: Any, namespace: Any) -> list[Place] | None:
        """The places in a function in this namespace, in a partial function or in a class."""
        transformed = transformed_function(value) if self.for_recording else None
        if transformed is not None:
            return [((transformed,), 0, transformed)]
        if type(value) is functools.partial:
            keywords = [(value.keywords, name, part) for name, part in value.keywords.items()]
            positional = [(value.args, i, part) for i, part in enumerate(value.args)]
            return [((value.func,), 0, value.func), *positional, *keywords]
        if _is_plain_class(value):
            return [(_OF_CLASS, None, function) for function in _functions_of_class(value)]
        if type(value) is not FunctionType or _is_of_module(value, "letir"):
            return None
        has_empty_cell = CellType() in (value.__closure__ or ())
        codes = nested_codes(value.__code__)
        if has_empty_cell or any(self.may_have_effects(code, namespace) for code in codes):
            return None
        self.functions.append(value)
        return named_places(value, [name for code in codes for name in names_of_globals(code)])

    def may_have_effects(self, code: CodeType, namespace: Any) -> bool:
        """Whether the code of a function in this namespace may change state outside of it."""
        if _calls_with_effects(code.co_names, self.effects):
            return True
        if _CHANGES.isdisjoint(code.co_code[::2]):
            return False
        is_init = namespace is _OF_CLASS and code.co_name == "__init__"
        return not (is_init and _fills_own_object(code))


def _calls_with_effects(names: Sequence[str], effects: Collection[str]) -> bool:
    """Whether a function that names these names may change state outside of it."""
    is_temporary = "catch_warnings" in names
    return not (set(names).isdisjoint(effects) and (is_temporary or _FILTERS.isdisjoint(names)))


def _function_of(part: Any, executor: Any) -> Any:
    """The Python function of a jitted function that gives the same bits as ``executor``; any other
    ``part`` as it is.
    """
    is_jitted = hasattr(type(part), "__letir_transformed__")
    if executor is None or not is_jitted or part.__letir_held__ is not None:
        return part
    other = part.__letir_executor__
    names = ("optimize", "exact", "kernels", "profile")
    pairs = [(getattr(other.options, name), getattr(executor.options, name)) for name in names]
    is_plain = other.is_plain and not part.__letir_attributes__
    is_same = is_plain and all(a == b for a, b in pairs)
    return other.f if is_same else part


def _values_in_function(function: FunctionType) -> list:
    """The values that a function reads from globals, captured variables and modules.

    A module itself is among them if the function does more with it than read an attribute.
    """
    captured = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    codes = nested_codes(function.__code__)
    return [x for code in codes for x in _values_in_code(code, function.__globals__, captured)]


def _values_in_code(code: CodeType, space: dict, captured: dict[str, CellType]) -> list:
    """The part of ``_values_in_function`` that one of its code objects reads."""
    result: list[Any] = []
    value = None
    for step in dis.get_instructions(code):
        is_attribute = step.opname in ("LOAD_ATTR", "LOAD_METHOD")
        if value is not None and not (is_attribute and isinstance(value, ModuleType)):
            result.append(value)
            value = None
        if step.opname == "LOAD_GLOBAL":
            value = space.get(step.argval)
        elif step.opname == "LOAD_DEREF" and step.argval in captured:
            value = captured[step.argval].cell_contents
        elif is_attribute and value is not None:
            # not getattr, which gives the stand-in while another thread records
            value = vars(value).get(step.argval) or getattr(value, step.argval, None)
    return result


def names_of_globals(code: CodeType) -> list[str]:
    """The names in a code object that may be names of globals, not of attributes."""
    if not code.co_flags & CO_OPTIMIZED:  # the body of a class
        return list(code.co_names)
    names, extended = [], 0
    for instruction, argument in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        extended = (extended << 8) | argument
        if instruction == _LOAD_GLOBAL:
            names.append(code.co_names[extended >> 1])
        if instruction != _EXTENDED_ARG:
            extended = 0
    return names


def _is_plain_class(value: Any) -> bool:
    """Whether a value is a class of the user's without attributes other than functions.

    Making an object of it changes nothing else, unless its own functions do.
    """
    if type(value) is not type or not all(map(is_class_of_user, _own_classes(value))):
        return False
    fields = getattr(value, "_fields", None) if tuple in value.__bases__ else None
    members = [pair for kind in _own_classes(value) for pair in vars(kind).items()]
    return all(
        name.startswith("_") or name in (fields or ()) or type(member) in _MEMBERS
        for name, member in members
    )


def _fills_own_object(code: CodeType) -> bool:
    """Whether the code of an ``__init__`` changes only attributes of the new object."""
    before, argument = "", 0
    for instruction, value in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        name = opname[instruction]
        if name == "STORE_ATTR":
            is_pair = before.count("LOAD_FAST") == 2  # since CPython 3.13
            local = argument & 15 if is_pair else argument
            if not before.startswith("LOAD_FAST") or local != 0:
                return False
        elif instruction in _CHANGES or 0 in _stored_locals(name, value):
            return False
        if name != "CACHE":
            before, argument = name, value
    return True


def _stored_locals(name: str, argument: int) -> tuple[int, ...]:
    """The numbers of the locals that an instruction assigns; those with two names are pairs."""
    pair = argument >> 4, argument & 15
    first = {"STORE_FAST_STORE_FAST": pair, "STORE_FAST_LOAD_FAST": pair[:1]}
    return first.get(name, (argument,) if name == "STORE_FAST" else ())


def _own_classes(kind: type) -> list[type]:
    """A class and those of its bases that are not Python's."""
    return [base for base in kind.__mro__ if base.__module__ != "builtins"]


def has_own_code(kind: type) -> bool:
    """Whether a class of the user's has functions, other than those of named tuples."""
    return is_class_of_user(kind) and bool(_functions_of_class(kind))


def _functions_of_class(kind: type) -> list[FunctionType]:
    """The functions of a class, without those that ``namedtuple`` makes."""
    members = [member for base in _own_classes(kind) for member in vars(base).values()]
    members += [member.fget for member in members if type(member) is property]
    functions = [getattr(member, "__func__", member) for member in members]
    functions = [function for function in functions if type(function) is FunctionType]
    return [f for f in functions if not f.__module__.startswith(("collections", "namedtuple_"))]


def is_constant(value: Any, kinds: Collection[type] = _TESTED) -> bool:
    """Whether a value is of one of these classes, or a tuple of such values.

    By default: a number, a string or a generator of NumPy.
    """
    if type(value) is tuple:
        return all(is_constant(item, kinds) for item in value)
    return type(value) in kinds


def is_of_library(value: Any) -> bool:
    """Whether a value is a module, a function or a class of Python, NumPy or SciPy."""
    if type(value) is FunctionType and is_user_module(value.__globals__):
        return False  # its __module__ may be that of a function that it wraps
    if isinstance(value, np.ufunc):  # not one of a Python function, by np.frompyfunc
        return not {*"".join(value.types)} <= {"O", "-", ">"}
    is_function = isinstance(value, ModuleType | BuiltinFunctionType | type) or (
        callable(value) and _is_of_any(value, ("numpy", "scipy"))
    )
    if is_function and _is_of_any(value, _LIBRARY):
        return True
    return isinstance(value, ModuleType | FunctionType | BuiltinFunctionType | type) and (
        _is_of_any(value, _PURE)
    )


def _is_of_any(value: Any, modules: Iterable[str]) -> bool:
    return any(_is_of_module(value, name) for name in modules)


def _is_of_module(value: Any, name: str) -> bool:
    """Whether a value is a module, or part of a module, of the package with this name."""
    if isinstance(value, np.ufunc):
        return name == "numpy"
    try:
        module = value.__name__ if type(value) is ModuleType else getattr(value, "__module__", "")
    except Exception:  # raised by an object that replaces a module which failed to import
        return False
    return str(module).partition(".")[0] == name


def is_faster_in_scipy(f: Callable, leaves: Sequence, has_names: bool) -> bool:
    """Whether SciPy computes a call of ``f`` faster than letir's operations would.

    ``f`` must be without effects, call functions of SciPy such as image filters, and get NumPy's
    arrays or numbers. The answer depends on the function and on the classes and sizes of its
    arguments alone, so that each run of a script gives the same bits. ``has_names``: whether the
    answer must hold for other sizes too.
    """
    if not all(type(x) is np.ndarray or type(x) in PLAIN_SCALARS or is_static(x) for x in leaves):
        return False
    outside = values_read(f)
    if outside is None or not outside.uses_scipy:
        return False
    is_small = not has_names and sum(getattr(x, "size", 1) for x in leaves) <= _MAX_IF_SMALL
    return not LATE_BOUND["functions_faster_in_scipy"](is_small).isdisjoint(outside.read)


def calls_letir(f: Any) -> bool:
    """Whether a function, or another one that it reads from outside, names something of letir.

    Such a function may take a derivative, which a plan does not take again in each call.
    """
    return not search_places(f, _places_outside_letir, _MAX_FUNCTIONS)


def _places_outside_letir(place: Place) -> Sequence[Place] | None:
    """The places in a function or an object; None if it is part of letir or imports it."""
    value = place[-1]
    if _is_of_module(value, "letir"):
        return None
    if is_of_library(value):
        return ()
    if type(value) is FunctionType:
        names = names_in_code(value.__code__)
        return None if "letir" in names else named_places(value, names)
    if type(value) is MethodType:
        return [({}, None, value.__func__)]
    kind = type(value)
    if type(kind) is not type or kind.__module__ == "builtins":
        return ()
    space = vars(value if isinstance(value, type) else kind)
    return [(space, name, part) for name, part in space.items()]


LATE_BOUND.update(
    calls_letir=calls_letir, is_faster_in_scipy=is_faster_in_scipy, values_read=values_read
)

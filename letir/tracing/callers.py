"""Tests of calling frames, and searches of code objects, which decide who gets a stand-in.

A module attribute such as ``numpy.zeros`` is a stand-in for users' code only. The frame that reads
it shows whether the reader is a user's code, a library or C code.
"""

import dis
import itertools
import os
import re
import sys
from abc import ABC
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Generic, Protocol

from letir.ast import LATE_BOUND
from letir.ast.bounded_cache import BoundedCache
from letir.tracing.operands import call_by_operands
from letir.tracing.source_locations import instruction_at
from letir.tracing.trace_state import ACTIVE, active_trace

_OPCODES = ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM", "CALL_INTRINSIC_1", "IMPORT_STAR")
_READS = frozenset([dis.opmap[name] for name in _OPCODES if name in dis.opmap])
_NAMELESS = frozenset([dis.opmap[name] for name in _OPCODES[-2:] if name in dis.opmap])
_LOAD_ATTR, _HAS_FLAG = dis.opmap["LOAD_ATTR"], sys.version_info >= (3, 12)  # for a method

# libraries whose own calls of NumPy are not recorded, and the standard library
LIBRARIES = frozenset(
    [
        *("letir", "numpy", "scipy", "optree", "attr", "attrs", "autograd", "jax", "jaxlib"),
        *("torch", "dask", "distributed", "matplotlib", "hypothesis", "pytest", "_pytest"),
        *("IPython", "ipykernel"),
    ]
)
_SERIES = frozenset(
    [f"numpy.polynomial.{part}" for part in ("chebyshev", "hermite", "hermite_e", "laguerre")]
    + ["numpy.polynomial.legendre", "numpy.polynomial.polynomial", "numpy.polynomial.polyutils"]
)
# names of modules that belong to the tests of a package, which use it as users do
_IN_TESTS = re.compile(r"\.(tests|test_\w*)(\.|$)").search
STANDARD = os.path.dirname(os.__file__) + os.sep
_BUILD_LIST = dis.opmap["BUILD_LIST"]
_MAX_CODES = 1 << 12
_MAX_OBJECTS = 10_000  # objects of a module that are searched
_called: dict[int, tuple[CodeType, frozenset[int]]] = BoundedCache(_MAX_CODES)  # by id of the code
_on_lists: dict[int, tuple[CodeType, frozenset[str]]] = BoundedCache(_MAX_CODES)
REACHING: dict[int, CodeType] = BoundedCache(_MAX_CODES)  # reaches stand-ins in containers
OWNING: dict[int, CodeType] = BoundedCache(_MAX_CODES)  # writes into results of operators
_users: dict[str | None, bool] = {}  # by the name of the module
_extensions: list = [0, set()]  # the number of modules when they were searched, packages found


def is_read_by_user(frame: FrameType, name: str) -> bool:
    """Whether a frame belongs to a user's code, and is reading or importing this attribute.

    Otherwise C code that the frame called reads the attribute, and needs ordinary arrays: NumPy's
    generators call ``numpy.empty`` and write into its memory, also to answer
    ``rng.bit_generator.state``.
    """
    return is_user_module(frame.f_globals) and _is_reading(frame, name)


def _is_read_beside_extensions(frame: FrameType, name: str) -> bool:
    """Whether a frame belongs to a package with C extensions, and is reading this attribute."""
    return is_beside_extensions(frame.f_globals) and _is_reading(frame, name)


def is_beside_extensions(space: dict) -> bool:
    """Whether these are the globals of a Python module in a package with C extensions.

    Such code may pass arrays that it makes to its extensions, as memory; traced values have none.
    """
    package = str(space.get("__name__")).partition(".")[0]
    is_package = package not in LIBRARIES and package in _packages_with_extensions()
    return is_package and not is_user_module(space)


def _is_reading(frame: FrameType, name: str) -> bool:
    """Whether a frame is reading or importing this attribute, not C code that it called."""
    code, at = frame.f_code, instruction_at(frame)
    opcode = code.co_code[at]
    if opcode in _READS:
        return opcode in _NAMELESS or _name_read(code, at) == name
    return "getattr" in code.co_names and _is_getattr(code, at)


def _name_read(code: CodeType, at: int) -> str:
    """The name of the attribute that an instruction reads."""
    number, digit, opcode = code.co_code[at + 1], 8, code.co_code[at]
    while at and code.co_code[at - 2] == dis.EXTENDED_ARG:
        at, number, digit = at - 2, number | code.co_code[at - 1] << digit, digit + 8
    return code.co_names[number >> 1 if opcode == _LOAD_ATTR and _HAS_FLAG else number]


def _is_getattr(code: CodeType, at: int) -> bool:
    """Whether an instruction calls ``getattr``."""
    instructions = [x for x in dis.get_instructions(code) if x.positions is not None]
    call = next(x for x in instructions if x.offset == at)
    if not (_is_call(call.opname) or call.opname == "PRECALL"):  # PRECALL: on Python 3.11
        return False
    start = (call.positions.lineno, call.positions.col_offset)
    return any(
        x.opname in ("LOAD_GLOBAL", "LOAD_NAME")
        and x.argval == "getattr"
        and (x.positions.lineno, x.positions.col_offset) == start
        for x in instructions
    )


def calls_method(frame: FrameType, name: str) -> bool:
    """Whether a frame of recorded code itself calls the method of this name: ``x.__array__()``.

    Otherwise C code that the frame called, such as ``np.sin(x)``, calls the method.
    """
    if name not in frame.f_code.co_names:
        return False
    if not (is_user_module(frame.f_globals) or is_beside_extensions(frame.f_globals)):
        return False
    spans = {x.offset: (*_span_of(x), x) for x in dis.get_instructions(frame.f_code)}
    start, end, _ = spans[instruction_at(frame)]
    # the method is the last attribute that is read in the expression that is called
    read = [s for s in spans.values() if s[0] == start and s[1] < end and s[2].opcode in _READS]
    return bool(read) and max(read, key=lambda span: span[1])[2].argval == name


def is_called_at_once(frame: FrameType) -> bool:
    """Whether a frame reads an attribute in order to call it, as in ``np.float64(x)``."""
    code = frame.f_code
    entry = _called.get(id(code))
    if entry is None:
        entry = _called[id(code)] = code, _called_attributes(code)
    return instruction_at(frame) in entry[1]


def _called_attributes(code: CodeType) -> frozenset[int]:
    """The instructions that read an attribute in order to call it."""
    instructions = [x for x in dis.get_instructions(code) if x.opname != "CACHE"]
    # an expression that is called starts where the call does
    calls = {x.positions[:1] + x.positions[2:3] for x in instructions if _is_call(x.opname)}
    result = set()
    for read, after in itertools.pairwise(instructions):
        starts_a_call = read.positions[:1] + read.positions[2:3] in calls
        if read.opcode in _READS and after.opcode not in _READS and starts_a_call:
            result.add(read.offset)
    return frozenset(result)


def _is_call(opname: str) -> bool:
    return opname in ("CALL", "CALL_FUNCTION_EX", "CALL_KW")


def is_user_module(space: dict) -> bool:
    """Whether the module with these globals is a user's: its calls of NumPy are recorded."""
    name = space.get("__name__")
    result = _users.get(name)
    if result is None:
        result = _users[name] = _is_users(name, space.get("__file__"))
    return result


def is_class_of_user(kind: type) -> bool:
    """Whether a class is defined in a user's module, or by code that ``exec`` runs."""
    module: Any = sys.modules.get(kind.__module__)
    methods = () if module else [m for m in vars(kind).values() if type(m) is FunctionType]
    return any(map(is_user_module, [vars(module)] if module else [m.__globals__ for m in methods]))


def is_users_class(kind: type) -> bool:
    """Whether a class is defined in a user's module, or only names methods."""
    return kind in (ABC, Generic, Protocol) or is_class_of_user(kind)


def _is_users(name: str | None, file: str | None) -> bool:
    """Whether a module of this name and file is a user's."""
    if type(name) is not str:  # code that exec runs
        return True
    package = name.partition(".")[0]
    is_library = package in LIBRARIES and not _IN_TESTS(name)
    if is_library or name.startswith("importlib._"):
        # numpy.polynomial computes series in ordinary Python code, which is recorded like a user's
        return name.startswith("letir.demo") or name in _SERIES
    if file is None:  # a notebook, or a module that a program has made
        return package not in sys.builtin_module_names
    if "-packages" not in file:
        return not file.startswith(STANDARD)
    # the Python code of a package with C extensions passes ordinary arrays to them
    return bool(_IN_TESTS(name)) or package not in _packages_with_extensions()


def _packages_with_extensions() -> set[str]:
    """The packages of which an extension module, written in C, is loaded."""
    count = len(sys.modules)
    if _extensions[0] != count:
        packages = set()
        for name, module in list(sys.modules.items()):
            space = getattr(module, "__dict__", None)  # getattr may import more modules
            file = space.get("__file__") if type(space) is dict else None
            if type(file) is str and file.endswith((".so", ".pyd")):
                packages.add(name.partition(".")[0])
        _extensions[:] = count, packages
    return _extensions[1]


def attributes_called_on_lists(code: CodeType) -> frozenset[str]:
    """The names of attributes that code calls with a list, as in ``np.exp([s, t])``."""
    names = [getattr(constant, "co_name", None) for constant in code.co_consts]
    if _BUILD_LIST not in code.co_code[::2] and "<listcomp>" not in names:
        return frozenset()
    result = _on_lists.get(id(code))
    if result is None:
        result = _on_lists[id(code)] = code, _attributes_called_on_lists(code)
    return result[1]


def _attributes_called_on_lists(code: CodeType) -> frozenset[str]:
    """The names of the methods that ``code`` calls on lists that it makes itself."""
    instructions = [x for x in dis.get_instructions(code) if x.opname != "CACHE"]
    pairs = itertools.pairwise(instructions)
    list_names = {y.argval for x, y in pairs if _makes_list(x) and y.opname == "STORE_FAST"}
    lists = [_span_of(x) for x in instructions if _makes_list(x) or _reads_one_of(list_names, x)]
    calls = [_span_of(x) for x in instructions if _is_call(x.opname)]
    result = set()
    for read in instructions if lists else ():
        if read.opcode not in _READS or type(read.argval) is not str:
            continue
        start, end = _span_of(read)
        whole = [call for call in calls if call[0] == start and end < call[1]]
        innermost = min(whole, key=lambda call: call[1], default=None)
        if innermost and any(end < first and last <= innermost[1] for first, last in lists):
            result.add(read.argval)
    return frozenset(result)


def _reads_one_of(names: set[str], x: dis.Instruction) -> bool:
    """Whether an instruction reads one of the local variables ``names``."""
    return x.opname.startswith("LOAD_FAST") and x.argval in names


def _makes_list(x: dis.Instruction) -> bool:
    """Whether an instruction begins a list, or a comprehension of one on Python 3.11."""
    return x.opname == "BUILD_LIST" or getattr(x.argval, "co_name", None) == "<listcomp>"


def _span_of(x: dis.Instruction) -> tuple:
    """The span of an instruction's expression: (line, column) of its start and of its end."""
    at = x.positions
    line, last, start, end = (0, 0, 0, 0) if at is None else [-1 if n is None else n for n in at]
    return (line, start), (last, end)


def codes_in(values: list, space: dict) -> list[CodeType]:
    """The code of functions and classes with these globals, also in containers and decorators."""
    result: list[CodeType] = []
    todo = list(values)
    for value in todo:  # containers append their items, decorators the decorated function
        kind = type(value)
        if kind is FunctionType:
            if value.__globals__ is space:
                result.append(value.__code__)
            elif "__wrapped__" in value.__dict__ and len(todo) < _MAX_OBJECTS:
                todo.append(value.__wrapped__)
        elif isinstance(value, type) and value.__module__ == space.get("__name__"):
            result += [part for member in vars(value).values() for part in _codes_of(member)]
        elif kind in (list, tuple, dict, set) and len(todo) < _MAX_OBJECTS:
            todo += value.values() if kind is dict else value
    return result


def _codes_of(member: Any) -> list[CodeType]:
    """The code of a method, of a class method, static method or property, without decorators."""
    functions = [member, *[getattr(member, n, None) for n in ("__func__", "fget", "fset")]]
    for f in functions:  # grows
        if type(f) is FunctionType and "__wrapped__" in f.__dict__:
            functions.append(f.__dict__["__wrapped__"])
    return [f.__code__ for f in functions if type(f) is FunctionType]


def attributes_of(value: Any) -> Any:
    """The dict of an object's attributes, None without one; runs no method of the object.

    ``__getattribute__`` of a module that is missing may raise the error of its import.
    """
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None


def name_of_globals(space: dict) -> str:
    """The name of the module with these globals, another text for globals of ``exec``."""
    name = space.get("__name__")
    module = sys.modules.get(name) if type(name) is str else None
    return name if getattr(module, "__dict__", None) is space else f"{_OF_EXEC} {id(space)}"


_OF_EXEC = "globals at"


def are_of_exec(name: str) -> bool:
    """Whether ``name_of_globals`` gives this name to globals of ``exec``."""
    return name.startswith(_OF_EXEC)


# ---- modules whose attributes are stand-ins for some callers ----


class LibraryModule:
    """A module of a library, and for each of its functions the maker of the function's stand-in.

    ``classes``: makers for classes that have a stand-in only where they are called, as in
    ``np.float64(x)``. ``wrappers``: makers of functions that call the function, or its stand-in,
    during some recordings, where it is called. ``originals``: the functions that the module had
    before the first recording. ``plain`` and ``recording``: the class of the module object outside
    of recordings and during recordings.
    """

    def __init__(
        self,
        module: ModuleType,
        makers: dict[str, Callable],
        classes: dict[str, Callable] | None = None,
    ) -> None:
        self.module, self.plain = module, type(module)
        self.originals = dict(vars(module))
        self.makers = {name: makers[name] for name in makers if name in self.originals}
        self.classes = classes or {}
        self.wrappers: dict[str, Callable] = {}
        self.wrapped: dict[str, Callable] = {}
        self.stand_ins: dict[str, Any] = {}
        self.stand_ins_for_traced: dict[str, Callable] = {}
        self.watched = {*self.makers, *self.classes, "random"}
        self.recording = self._recording_class()

    def stand_in(self, name: str) -> Any:
        """The stand-in for the function with this name."""
        result = self.stand_ins.get(name)
        if result is None:
            maker = self.makers.get(name) or self.classes[name]
            result = self.stand_ins[name] = maker(self.originals[name])
        return result

    def wrapped_function(self, name: str) -> Any:
        """What ``wrappers`` make of the function with this name, or of its stand-in."""
        if name not in self.wrapped:
            has_stand_in = name in self.makers or name in self.classes
            function = self.stand_in(name) if has_stand_in else self.originals[name]
            self.wrapped[name] = self.wrappers[name](function)
        return self.wrapped[name]

    def stand_in_for_traced(self, name: str) -> Any:
        """The stand-in that calls the original unless one of its arguments is traced.

        For code of packages with C extensions, to which arrays that it makes may go as memory.
        """
        result = self.stand_ins_for_traced.get(name)
        if result is None:
            original = self.originals[name]
            result = call_by_operands(original, self.stand_in(name))
            self.stand_ins_for_traced[name] = result
        return result

    def watch_calls(self, names: set[str], maker: Callable) -> None:
        """Also make stand-ins for functions of these names, in calls such as ``np.name(x)``."""
        self.classes.update(dict.fromkeys(names.difference(self.watched), maker))
        self.watched |= names

    def _recording_class(self) -> type:
        get, makers, classes = self.plain.__getattribute__, self.makers, self.classes
        watched, wrappers = self.watched, self.wrappers
        space, originals = vars(self.module), self.originals

        def __getattribute__(module, name):
            if name in watched:
                current = space.get(name)
                if current is not originals.get(name, current):
                    return get(module, name)  # a test has replaced the function
                active = ACTIVE.get()
                if active is not None and active.intercepts:
                    frame = sys._getframe(1)
                    if is_read_by_user(frame, name) and active_trace() is not None:
                        if name in wrappers and is_called_at_once(frame):
                            return self.wrapped_function(name)
                        if name in makers or (name in classes and is_called_at_once(frame)):
                            return self.stand_in(name)
                        if name == "random":
                            LATE_BOUND["watch_numpy_random"](active)
                    elif name in makers and _is_read_beside_extensions(frame, name):
                        return self.stand_in_for_traced(name)
            return get(module, name)

        return type(self.plain.__name__, (self.plain,), {"__getattribute__": __getattribute__})

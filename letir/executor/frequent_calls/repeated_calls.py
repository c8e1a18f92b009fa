"""``RepeatedCall``: calls of ``grad(f)``, ``vjp(f, x)`` ... that need no new recording of ``f``.

Each call records ``f``, because the path of ``f`` may depend on values. If its program has no
guard, it is the program for all arguments of the same kinds, as long as everything that ``f`` reads
from outside is the same. Such calls test just this, and run the plan.
"""

import functools
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from opcode import opmap
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any
from weakref import ref

import numpy as np
from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.attrs import same_bits
from letir.ast.pytrees import flatten
from letir.ast.terms import Bind, Lambda
from letir.ast.types import PYTHON_NUMBERS, ArrayType
from letir.eval.arguments import is_static
from letir.executor.argument_spec import Place, nested_codes
from letir.executor.frequent_calls.argument_tests import (
    NotPlain,
    TestWriter,
    is_known_by_code,
    tests_of_call,
)
from letir.executor.frequent_calls.external_values import (
    CONSTANTS,
    has_own_code,
    is_constant,
    is_of_library,
    names_of_globals,
    values_read,
)
from letir.executor.frequent_calls.unseen_reads import (
    UNSEEN,
    all_apart,
    are_apart,
    has_print_options,
    may_format_arrays,
)
from letir.ops.elementwise.python_operators import may_change_kind
from letir.tracing.callers import is_user_module
from letir.transforms.directions import Directions, as_direction
from letir.transforms.program_call import ProgramCall
from letir.transforms.repeated_programs import RepeatedProgram

_MAX_ELEMENTS = 1 << 14  # of the arrays that a function reads, which each call compares
_MAX_CODES = 32
_STORE_DEREF = opmap["STORE_DEREF"]


@frozen(eq=False)
class RepeatedCall:
    """A transformed program of ``f``, and the test of the calls for which it is right.

    ``match(args, kwargs)``: the leaves, or None if a test fails; ``constants``: further arguments
    of the program; ``numbers``: (position, type) of the leaves that are tangents given as numbers
    of Python, which are converted.
    """

    match: Callable[[tuple, dict], list | None]
    program: RepeatedProgram
    constants: list
    numbers: list[tuple[int, ArrayType]]

    def results(self, args: tuple, kwargs: dict) -> Any:
        """The value of a call, or None if the arguments or what ``f`` reads are others."""
        try:
            leaves = self.match(args, kwargs)
        except (LookupError, ValueError):  # a variable that f reads has been deleted
            return None
        if leaves is None:
            return None
        for place, aval in self.numbers:
            leaves[place] = as_direction(leaves[place], aval, "tangent")
        return self.program.run(leaves, self.constants)


@frozen(eq=False)
class OutsideState:
    """What a function reads from outside: the same values give the same program.

    ``same``: places that must hold the same object; ``arrays``: (place, a copy of its array);
    ``functions``: the user's functions, whose code must stay; ``partials``: partial functions,
    whose parts must stay; ``absent``: (namespace, name) of builtins, which the module must not
    define; ``formats``: whether the function may make texts of arrays.
    """

    same: list[Place]
    arrays: list[tuple[Place, np.ndarray]]
    functions: list[FunctionType]
    partials: list[functools.partial]
    absent: list[tuple[dict, str]]
    formats: bool

    def is_unchanged(self) -> bool:
        """Whether the arrays still have their bits."""
        return all(same_bits(copy, place[2]) for place, copy in self.arrays)

    def add_tests(self, tests: TestWriter) -> None:
        """Add the tests that all this is the same as now."""
        for holder, name, value in self.same:
            tests.add_outside_value(holder, name, value)
        for (holder, name, value), copy in self.arrays:
            text = tests.outside_text(holder, name)
            test = functools.partial(_is_same_array, copy, value.strides)
            tests.tests.append(f"{tests.name(test)}({text})")
        for function in self.functions:
            # weakly: the transformed function must not be kept alive by what is known of it
            _add_tests_of_code(tests, function, f"{tests.name(ref(function))}()")
        for part in self.partials:
            text, keywords = f"{tests.name(ref(part))}()", tests.name(part.keywords)
            tests.tests.append(
                f"{text}.args is {tests.name(part.args)} and {text}.keywords is {keywords} and "
                f"len({keywords}) == {len(part.keywords)} and not {text}.__dict__"
            )
        for space, name in self.absent:
            tests.tests.append(f"{name!r} not in {tests.name(space)}")
        if self.formats:
            same = functools.partial(has_print_options, dict(np.get_printoptions()))
            tests.tests.append(f"{tests.name(same)}()")


def _add_tests_of_code(tests: TestWriter, function: FunctionType, text: str) -> None:
    """Add the tests that a function, whose expression is ``text``, has its code and defaults."""
    code, defaults = tests.name(function.__code__), tests.name(function.__defaults__)
    tests.tests.append(f"{text}.__code__ is {code} and {text}.__defaults__ is {defaults}")


def outside_state(f: Any, args: tuple, kwargs: dict) -> OutsideState | None:
    """What ``f``, and the functions among its arguments, read from outside.

    None if they may read other things, or have an effect.
    """
    given = [leaf for leaf in flatten((args, kwargs))[0] if is_static(leaf) and callable(leaf)]
    places: list[Place] = []
    for function in (f, *given):
        may_draw = LATE_BOUND["reaches_draws"](function)
        outside = None if may_draw else values_read(function, effects=UNSEEN, for_recording=True)
        if outside is None or not _is_harmless(function):
            return None
        places += [*outside.places, *outside.others]
    values = [value for *_, value in places]
    arrays = [place for place in places if type(place[2]) is np.ndarray]
    is_small = sum(place[2].size for place in arrays) <= _MAX_ELEMENTS
    if not is_small or not all(map(_is_harmless, values)):
        return None
    # ``repeated_function`` and the tests of arguments test functions without parts
    searched = [*[g for g in (f, *given) if not is_known_by_code(g)], *values]
    functions = _without_repetition(filter(_is_users, searched))
    recorded = _without_repetition(filter(_is_users, [f, *given, *functions]))
    codes = [(code, g) for g in recorded for code in nested_codes(g.__code__)]
    if not all(map(_is_determined_by_reads, recorded)) or len(codes) > _MAX_CODES:
        return None
    builtin, absent = _builtins_read(codes)
    same = [place for place in places if type(place[2]) is not np.ndarray]
    modules = [value for value in values if type(value) is ModuleType]
    named = [*builtin, *[place for code, _ in codes for place in _attributes_read(code, modules)]]
    if not all(_is_of_library_itself(value) for *_, value in named):
        return None
    partials = _without_repetition(v for v in searched if type(v) is functools.partial)
    copies = [(place, place[2].copy(order="K")) for place in arrays]
    formats = any(may_format_arrays(code) for code, _ in codes)
    return OutsideState([*same, *named], copies, functions, partials, absent, formats)


def _without_repetition(values: Iterable) -> list:
    """The values, each object once."""
    return list({id(value): value for value in values}.values())


def _builtins_read(codes: list[tuple[CodeType, Any]]) -> tuple[list[Place], list]:
    """(the places of Python's builtins that codes of functions name, (namespace, name) of each
    name that the module does not define).
    """
    names = [
        (function, name)
        for code, function in codes
        for name in names_of_globals(code)
        if name not in function.__globals__
    ]
    absent = [(function.__globals__, name) for function, name in names]
    places: list[Place] = [
        (function.__builtins__, name, function.__builtins__[name])
        for function, name in names
        if name in function.__builtins__
    ]
    return places, absent


def _is_users(value: Any) -> bool:
    """Whether a value is a function whose code counts as a part of the recorded function."""
    return type(value) is FunctionType and is_user_module(value.__globals__)


def _is_harmless(value: Any) -> bool:
    """Whether a test of the value notices all changes: it has no state besides its elements."""
    if isinstance(value, type):
        return value.__module__ in ("builtins", "numpy")
    if type(value) is np.ndarray:
        return value.dtype.kind in "biufc"
    if type(value) is BuiltinFunctionType:
        return value.__self__ is None or type(value.__self__) is ModuleType
    if type(value) is functools.partial:
        return not vars(value)
    return type(value) in _WITHOUT_STATE or is_constant(value, CONSTANTS)


_WITHOUT_STATE = (FunctionType, ModuleType, np.ufunc, type(np.sum))


def _is_of_library_itself(value: Any) -> bool:
    """Whether the value of an attribute of a module is the library's own, not a replacement."""
    is_object = type(value).__module__.startswith("numpy.")  # such as np.r_
    return is_object or is_of_library(value) or is_constant(value, CONSTANTS)


def _is_determined_by_reads(function: FunctionType) -> bool:
    """Whether a function takes a path that follows from what it reads, and stores nothing outside.

    A handler of exceptions may take another path where a value raises.
    """
    code = function.__code__
    defaults = function.__defaults__ or ()
    if function.__kwdefaults__ or not all(is_constant(value, CONSTANTS) for value in defaults):
        return False
    if not vars(function).keys() <= {"__wrapped__"}:  # it may read its own attributes
        return False
    inner = nested_codes(code)
    stores = bool(code.co_freevars) and any(_STORE_DEREF in c.co_code[::2] for c in inner)
    return not stores and not any(c.co_exceptiontable for c in inner)


def _attributes_read(code: CodeType, modules: list[ModuleType]) -> Iterator[Place]:
    """The attributes of modules that code may read, with those of modules among them."""
    todo = list(modules)
    for module in todo:
        space = vars(module)
        for name in code.co_names:
            if name in space:
                yield space, name, space[name]
                if type(space[name]) is ModuleType and space[name] not in todo:
                    todo.append(space[name])


def _is_same_array(copy: np.ndarray, strides: tuple, value: Any) -> bool:
    """Whether a value is an array like ``copy``, with these strides."""
    return type(value) is np.ndarray and value.strides == strides and same_bits(copy, value)


def _is_repeatable(bind: Bind) -> bool:
    """Whether a bind computes the same from the same operands, and tests no value of them.

    Programs with bodies have no ``RepeatedProgram``.
    """
    op = bind.op
    is_test = op.role is not None and op.role.startswith("guard")
    return not (is_test or may_change_kind(bind) or op.effect or op.random or op.is_user_defined)


class _TestsOfRecording(TestWriter):
    """Writes the tests of arguments for which a function is recorded in the same way.

    ``OutsideState`` has the tests of what the functions among them read.
    """

    def add(self, value: Any, text: str, first: str = "") -> None:
        """Add the tests of a value; an object's own functions may read anything."""
        if has_own_code(type(value)):
            raise NotPlain
        super().add(value, text, first)

    def add_items(self, value: Any, text: str) -> None:
        """Add the tests of the items of a tuple, list or dict, also of the order of keywords."""
        super().add_items(value, text)
        if text == "kwargs" and len(value) > 1:
            self.tests.append(f"(*{text},) == {self.name(tuple(value))}")

    def add_function(self, value: Any, text: str, first: str) -> None:
        """Add the tests of a function."""
        if is_known_by_code(value):
            self.add_tests_of_code(value, text, first)
        else:
            self.tests.append(f"{first} is {self.name(value)}")


def _add_tests_of_memory(tests: TestWriter, state: OutsideState, count: int) -> None:
    """Add the tests that the arrays among the ``count`` arguments of the function share memory
    neither with each other nor with the arrays that it reads: what it does may depend on whether
    it writes to them.

    An argument that is now one of the arrays that the function reads must be so in other calls.
    """
    arrays = [
        (text, leaf)
        for text, leaf in zip(tests.leaf_texts[:count], tests.leaves, strict=False)
        if type(leaf) is np.ndarray  # the function does not see the tangents
    ]
    if len(arrays) > 1:
        own_memory = " and ".join([f"{text}.base is None" for text, _ in arrays])
        ids = ", ".join([f"id({text})" for text, _ in arrays])
        texts = ", ".join([text for text, _ in arrays])
        tests.tests.append(
            f"{own_memory} and len({{{ids}}}) == {len(arrays)} or {tests.name(all_apart)}({texts})"
        )
    if arrays and state.arrays:
        others = [
            (tests.outside_text(holder, name), value) for (holder, name, value), _ in state.arrays
        ]
        pairs = [(a, b) for a, x in arrays for b, y in others if x is not y]
        tests.tests += [f"{a} is {b}" for a, x in arrays for b, y in others if x is y]
        if pairs:
            owners = [f"{text}.base is None" for text in sorted({*chain(*pairs)})]
            differ = " and ".join([*owners, *[f"{a} is not {b}" for a, b in pairs]])
            in_pairs = ", ".join([f"({a}, {b})" for a, b in pairs])
            tests.tests.append(f"({differ}) or {tests.name(are_apart)}({in_pairs})")


def _computes_exceptional(record: Callable[[], Any]) -> bool:
    """Whether a recording divides by zero, overflows ... itself, with arrays that ``f`` reads.

    NumPy warns or raises then, or stays silent: ``np.errstate`` may change between calls.
    """
    found = []
    with np.errstate(all="call", call=lambda *error: found.append(error)):
        record()
    return bool(found)


def repeated_call(
    state: OutsideState,
    record: Callable[[], Any],
    args: tuple,
    kwargs: dict,
    call: ProgramCall,
    directions: Directions | None,
    program: RepeatedProgram,
    constants: list,
) -> RepeatedCall | None:
    """The calls of the kind of this one, which gave ``program`` with these ``constants``.

    ``state``: what the function read before this call; ``record``: records it again; ``args``:
    (primals, tangents) if there are ``directions``. None if another recording might differ.
    """
    fn: Lambda = call.fn
    if call.tree.refers or not all(map(_is_repeatable, fn.binds)) or not state.is_unchanged():
        return None
    leaves = [*call.leaves, *([] if directions is None else directions.given)]
    tests = tests_of_call(args, kwargs, leaves, writer=_TestsOfRecording)
    if tests is None or _computes_exceptional(record):
        return None
    state.add_tests(tests)
    _add_tests_of_memory(tests, state, len(call.leaves))
    numbers = [] if directions is None else _numbers_among(directions, call)
    return RepeatedCall(tests.make_function(), program, constants, numbers)


def _numbers_among(directions: Directions, call: ProgramCall) -> list[tuple[int, ArrayType]]:
    """(position among the leaves, type) of the tangents that are numbers of Python."""
    count = len(call.leaves)
    pairs = enumerate(zip(directions.inputs, directions.given, strict=True), count)
    return [(k, call.fn.params[i].type) for k, (i, x) in pairs if type(x) in PYTHON_NUMBERS]


LATE_BOUND.update(outside_state=outside_state, repeated_call=repeated_call)

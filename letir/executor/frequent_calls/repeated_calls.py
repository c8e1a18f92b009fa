"""``RepeatedCall``: calls of ``grad(f)`` that need no new recording of ``f``.

``grad(f)(x)`` records ``f`` in each call, because the path of ``f`` may depend on values. If its
program has no guard, it is the program for all arguments of the same kinds, as long as everything
that ``f`` reads from outside is the same. Such calls test just this, and run the plan.
"""

import functools
from collections.abc import Callable, Iterator
from opcode import opmap
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any
from weakref import ref

import numpy as np
from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.attrs import same_bits
from letir.ast.pytrees import Tree
from letir.ast.terms import Bind, Lambda
from letir.executor.argument_spec import Place, nested_codes
from letir.executor.frequent_calls.argument_tests import TestWriter, tests_of_call
from letir.executor.frequent_calls.external_values import (
    CONSTANTS,
    EFFECTS,
    is_constant,
    names_of_globals,
    values_read,
)
from letir.ops.elementwise.python_operators import may_change_kind
from letir.plan.plan import Plan
from letir.tracing.callers import is_user_module
from letir.transforms.program_call import ProgramCall, copy_shared_results
from letir.transforms.repeated_programs import RepeatedProgram

_MAX_ELEMENTS = 1 << 14  # of the arrays that a function reads, which each call compares
_MAX_CODES = 32
# names of functions that read files or settings of NumPy
_READERS = frozenset(
    [
        "DataSource",
        "errstate",
        "fromregex",
        "genfromtxt",
        "getbufsize",
        "geterr",
        "geterrcall",
        "get_printoptions",
    ]
)
_STORE_DEREF = opmap["STORE_DEREF"]


@frozen(eq=False)
class RepeatedCall:
    """A plan of the gradient of ``f``, and the test of the calls for which it is right.

    ``match(args, kwargs)``: the leaves, or None if a test fails; ``constants``: further arguments
    of the plan; ``tree``: the nesting of its results.
    """

    match: Callable[[tuple, dict], list | None]
    plan: Plan
    constants: list
    tree: Tree

    def results(self, args: tuple, kwargs: dict) -> Any:
        """The nested results, or None if the arguments or what ``f`` reads are others."""
        leaves = self.match(args, kwargs)
        if leaves is None:
            return None
        return self.tree.unflatten(copy_shared_results(self.plan.run([*leaves, *self.constants])))


@frozen(eq=False)
class OutsideState:
    """What a function reads from outside: the same values give the same program.

    ``same``: places that must hold the same object; ``arrays``: (place, a copy of its array);
    ``functions``: the user's functions, whose code must stay; ``absent``: (namespace, name) of
    builtins, which the module must not define.
    """

    same: list[Place]
    arrays: list[tuple[Place, np.ndarray]]
    functions: list[FunctionType]
    absent: list[tuple[dict, str]]

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
            text = f"{tests.name(ref(function))}()"
            code, defaults = tests.name(function.__code__), tests.name(function.__defaults__)
            tests.tests.append(f"{text}.__code__ is {code} and {text}.__defaults__ is {defaults}")
        for space, name in self.absent:
            tests.tests.append(f"{name!r} not in {tests.name(space)}")


def outside_state(f: Any) -> OutsideState | None:
    """What ``f`` reads from outside; None if it may read other things, or have an effect."""
    if LATE_BOUND["reaches_draws"](f):
        return None
    outside = values_read(f, effects=EFFECTS | _READERS, for_recording=True)
    if outside is None:
        return None
    functions = [value for value in (f, *[v for *_, v in outside.others]) if _is_users(value)]
    functions = list({id(function): function for function in functions}.values())
    places = [*outside.places, *outside.others]
    arrays = [place for place in places if type(place[2]) is np.ndarray]
    is_known = all(map(_is_harmless, places)) and all(map(_is_determined_by_reads, functions))
    if not is_known or sum(place[2].size for place in arrays) > _MAX_ELEMENTS:
        return None
    codes = [(c, function) for function in functions for c in nested_codes(function.__code__)]
    if len(codes) > _MAX_CODES:
        return None
    absent = [
        (function.__globals__, name)
        for code, function in codes
        for name in names_of_globals(code)
        if name not in function.__globals__
    ]
    same = [place for place in places if type(place[2]) is not np.ndarray]
    modules = [place[2] for place in same if type(place[2]) is ModuleType]
    same += [place for code, _ in codes for place in _attributes_read(code, modules)]
    copies = [(place, place[2].copy(order="K")) for place in arrays]
    return OutsideState(same, copies, functions, absent)


def _is_users(value: Any) -> bool:
    """Whether a value is a function whose code counts as a part of the recorded function."""
    return type(value) is FunctionType and is_user_module(value.__globals__)


def _is_harmless(place: Place) -> bool:
    """Whether a test of the value notices all changes: it has no state besides its elements."""
    value = place[2]
    if isinstance(value, type):
        return value.__module__ in ("builtins", "numpy")
    if type(value) is np.ndarray:
        return value.dtype.kind in "biufc"
    if type(value) is BuiltinFunctionType:
        return value.__self__ is None or type(value.__self__) is ModuleType
    return type(value) in _WITHOUT_STATE or is_constant(value, CONSTANTS)


_WITHOUT_STATE = (FunctionType, ModuleType, functools.partial, np.ufunc, type(np.sum))


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


def repeated_call(
    state: OutsideState,
    args: tuple,
    kwargs: dict,
    call: ProgramCall,
    program: RepeatedProgram,
    constants: list,
) -> RepeatedCall | None:
    """The calls of the kind of this one, which gave ``program`` with these ``constants``.

    ``state``: what the function read before this call. None if another recording might differ.
    """
    fn: Lambda = call.fn
    if call.tree.refers or not all(map(_is_repeatable, fn.binds)) or not state.is_unchanged():
        return None
    tests = tests_of_call(args, kwargs, call.leaves)
    if tests is None:
        return None
    # what a function does with arrays that share memory may depend on whether it writes to them
    arrays = [
        text
        for text, leaf in zip(tests.leaf_texts, call.leaves, strict=True)
        if type(leaf) is np.ndarray
    ]
    if len(arrays) > 1:
        tests.tests += [f"{text}.base is None" for text in arrays]
        ids = ", ".join([f"id({text})" for text in arrays])
        tests.tests.append(f"len({{{ids}}}) == {len(arrays)}")
    state.add_tests(tests)
    return RepeatedCall(tests.make_function(), program.plan, constants, program.tree)


LATE_BOUND.update(outside_state=outside_state, repeated_call=repeated_call)

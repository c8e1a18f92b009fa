"""``object_call``: one generated function for calls with an object whose arrays are arguments.

Such calls come from ``methods``: the state of the object is a static argument, its arrays are a
list. The function made here tests the attributes, takes the arrays from these, runs the plan, and
stores the arrays that the method assigns.
"""

from collections.abc import Callable, Set
from types import FunctionType
from typing import Any

from letir.ast import LATE_BOUND
from letir.eager.models.attributes import (
    AttributeValue,
    has_no_parts,
    holds_numbers,
    places_by_path,
)
from letir.executor.argument_spec import ArgumentSpec
from letir.executor.calls import LATEST
from letir.executor.compiled import Compiled
from letir.executor.frequent_calls.argument_tests import NotPlain, TestWriter, tests_of_kind
from letir.executor.frequent_calls.quick_calls import QuickCall, call_of_plan, nested_text
from letir.plan.generated_calls import GeneratedCall, call_of_function

_ROOT = "self"
_TIME_OF_SEARCH = 100_000  # nanoseconds in which the parts of an object are found and compared


class _ObjectTests(TestWriter):
    """Writes the tests of a call whose first argument is ``instance``; its arrays are leaves.

    ``example``: (result, changed arrays) as positions of flat results.
    """

    def __init__(self, instance: Any, static: Set[int | str], example: tuple[Any, Any]) -> None:
        super().__init__(())
        self.instance, self.static = instance, static
        self.result, self.changed = example
        self.arrays: dict[int, str] = {}  # the expression for each array of the object, by id
        self.parts: dict[str, list] = {}  # the keys of each container's parts, by path
        self.texts: dict[str, str] = {}  # the expression for each container, by path

    def add(self, value: Any, text: str, first: str = "") -> None:
        """Add the tests of an argument, and of the parts of the object."""
        if value is not self.instance:
            super().add(value, text, first)
            return
        places = places_by_path(value, _ROOT).values()
        for place in places:
            self.parts.setdefault(place.owner, []).append(place.key)
        self.add_container(value, _ROOT, text, text)
        for place in places:
            self.add_part(place)
        for owner in dict.fromkeys([owner for owner, _ in self.changed.places]):
            changed = self.texts.get(owner)
            self.tests += [f"{changed} is not {x}" for x in self.texts.values() if x != changed]

    def add_part(self, place: AttributeValue) -> None:
        """Add the tests of an attribute or item, whose container has been added."""
        value, text = place.value, f"{self.texts[place.owner]}[{self.name(place.key)}]"
        variable = f"v{len(self.tests)}"  # as in ``bind``
        if id(value) in self.arrays:
            self.tests.append(f"{text} is {self.arrays[id(value)]}")
        elif holds_numbers(value):
            self.arrays[id(value)] = variable
            self.bind(text, value)
        elif has_no_parts(value):
            self.add_constant(value, text)
        else:
            self.add_container(value, place.path, variable, f"({variable} := {text})")

    def add_constant(self, value: Any, text: str) -> None:
        """Add the tests of a part that is neither an array nor a container with arrays."""
        if type(value) in (list, dict):
            self.tests.append(f"type({text}) is {type(value).__name__} and not {text}")
        elif type(value) is float and value == 0.0:  # 0.0 == -0.0
            self.tests.append(f"{self.name(repr)}({text}) == {repr(value)!r}")
        elif type(value) is FunctionType:
            raise NotPlain  # what the function reads may change
        else:
            self.add_static(value, text)

    def add_container(self, value: Any, path: str, text: str, first: str) -> None:
        """Add the tests of the keys, attributes or length of a container or object."""
        kind, keys = type(value), self.parts.get(path, [])
        test, size = f"type({first}) is {self.name(kind)} and ", len(keys)
        if kind in (tuple, list):
            size = len(value)
            test += f"len({text}) == {size}"
        elif kind is dict:
            size = len(value)
            test += f"(*{text},) == {self.name(tuple(keys))}"
        elif LATE_BOUND["holds_attributes_only"](kind):
            if any(hasattr(getattr(kind, key, None), "__set__") for key in keys):
                raise NotPlain
            size = len(value.__dict__)
            text, space = f"d{len(self.tests)}", f"{text}.__dict__"
            test += f"(*({text} := {space}),) == {self.name(tuple(keys))}"
        else:
            raise NotPlain
        if size != len(keys):
            raise NotPlain  # one of the parts is in two places
        self.texts[path] = text
        self.tests.append(test)

    def lines_of_results(self, texts: list[str], names: dict) -> list[str]:
        """The lines that set ``found`` and store the arrays that the method assigns.

        ``texts``: of the flat results.
        """
        lines = [f" found = {nested_text(self.result, texts, names)}"]
        for (owner, key), value in zip(self.changed.places, self.changed.values, strict=True):
            if key not in self.parts.get(owner, ()) or owner not in self.texts:
                raise NotPlain  # a new attribute
            name = f"n{len(names)}"
            names[name] = key
            stored = nested_text(value, texts, names)
            lines.append(f" {self.texts[owner]}[{name}] = {stored}")
        return lines


def object_call(
    executor: Any, quick: QuickCall, method: tuple[Callable, Any], args: tuple, kwargs: dict
) -> Callable | bool:
    """The function ``call(object, *arguments)`` for calls like this one; False if it has none.

    It returns ``Miss`` for other arguments, and raises if the call has to be made in another way.
    If there can be no such function for the plan, and the plan saves less time than the search of
    the object takes, it calls the Python function. ``executor``: the executor of the method, which
    takes ``args``, (state, arrays, *arguments); ``quick``: its call that runs the plan; ``method``:
    the Python function and the object.
    """
    compiled = next((v for v in quick.entry.plans if v.executed is quick.executed), None)
    if type(compiled) is not Compiled or compiled.is_waiting:
        return False
    if ArgumentSpec.from_arguments(*executor.marker.mark(args, kwargs))[0] != quick.entry.key:
        return False
    static = executor.marker.static_places(args, kwargs)
    static = frozenset([n - 1 if type(n) is int else n for n in static if n])
    f, instance = method
    call = (instance, *args[2:]), kwargs, static
    others = [other for other in executor.quick if other.of_object]
    whole = None if quick.is_python else _call_of_plan_on_object(compiled, *call)
    if whole is not None:
        for other in others:  # calls of Python test only the class of the object
            other.of_object = other.of_object if not other.object_is_python else False
        noted = {"ENTRY": quick.entry, "PROGRAM": quick.executed, "LATEST": LATEST}
        return whole.function(EXECUTOR=None, CALLS=executor.calls, **noted)
    whole = None if others else _call_of_python(compiled, f, *call)
    if whole is None:
        return False
    quick.object_is_python = True
    return whole.function(EXECUTOR=None, CALLS=executor.missed_calls)


def _call_of_plan_on_object(
    compiled: Compiled, args: tuple, kwargs: dict, static: Set[int | str]
) -> GeneratedCall | None:
    """The call of a plan on an object, ``args[0]``; None if it cannot be made."""
    if not compiled.plan.may_be_straight or compiled.drawing:
        return None
    example = compiled.program.out_tree.unflatten(range(len(compiled.program.ret.args)))
    tests = _ObjectTests(args[0], static, example)
    try:
        tests.add_call(args, kwargs)
    except NotPlain:
        return None
    return call_of_plan(compiled, tests, tests.lines_of_results)


def _call_of_python(
    compiled: Compiled, f: Callable, args: tuple, kwargs: dict, static: Set[int | str]
) -> GeneratedCall | None:
    """The call of the Python function; None if its plan may save more than the search takes.

    The decision depends on the recorded program and its sizes alone.
    """
    binds = compiled.program.binds
    is_long = any(bind.op.holds_lambdas and bind.op.role != "fused" for bind in binds)
    if is_long or LATE_BOUND["cost_of_units"](binds) > _TIME_OF_SEARCH:
        return None
    try:
        tests = tests_of_kind(args, kwargs, is_brief=False, static=static, takes_objects=True)
    except NotPlain:
        return None
    return call_of_function(f, tests.tests, tests.names, tests.count, bool(kwargs))


LATE_BOUND["object_call"] = object_call

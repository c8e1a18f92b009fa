"""``quick_call``: a generated test for one kind of arguments, for executors that are called often.

A call of an executor computes a key of its arguments and looks up the plan. After some calls with
arguments of one kind, the executor first tries a generated function that tests for exactly this
kind and returns the leaves for the plan, also of nested arguments, without flattening and without a
key.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import define

from letir.ast import LATE_BOUND
from letir.ast.pytrees import Tree
from letir.ast.sizes.size import Size
from letir.ast.symbolic_sizes import is_static_shape
from letir.errors import GuardError
from letir.eval.arguments import flat_arguments
from letir.eval.array_modules import type_of
from letir.executor.argument_spec import PLAIN_SCALARS
from letir.executor.calls import may_run_again
from letir.executor.compiled import Compiled
from letir.executor.plan_cache import Entry
from letir.plan.plan import RUNS_BY_STEPS, Miss
from letir.plan.whole_calls import tests_of_writes, whole_call

_MOST_FAILURES = 8
_MOST_LEAVES = 200
_MOST_AS_PYTHON = 4
_GENERATORS = (np.random.Generator, np.random.RandomState)
_PLAIN = frozenset([np.ndarray, *PLAIN_SCALARS])


class _NotPlain(Exception):
    """Raised for arguments for which no test can be generated."""


class _TestWriter:
    """Writes the text of the test, a function of nested arguments, and the names that it uses."""

    def __init__(
        self, generators: Sequence, draws_in_python: bool = False, shapes: Sequence[tuple] = ()
    ):
        self.names: dict[str, Any] = {"ndarray": np.ndarray}
        self.draws_in_python = draws_in_python  # whether any generator has a test
        self.generators = [*map(id, generators)]  # that draw without copies of their states
        self.shapes = shapes  # of the leaves, if some sizes are symbolic
        self.symbols: dict[Size, str] = {}  # a variable for each symbolic size
        self.tests: list[str] = []
        self.leaves: list = []
        self.found: list[str] = []

    def name(self, value: Any) -> str:
        """A name for a value."""
        name = f"k{len(self.names)}"  # does not occur in the functions of plans
        self.names[name] = value
        return name

    def add(self, value: Any, text: str, first: str = "") -> None:
        """Add the tests of a value, whose expression is ``text``, and of its items.

        ``first``: the expression for the first use, which assigns the value to ``text``.
        """
        kind, first = type(value), first or text
        if value is None:
            self.tests.append(f"{text} is None")
        elif kind is np.ndarray:
            flag = "" if value.flags.c_contiguous else "not "
            self.tests.append(
                f"type({first}) is ndarray and {text}.dtype is {self.name(value.dtype)} and "
                f"{self.shape_test(value, text)} and {flag}{text}.flags.c_contiguous"
            )
            self.add_leaf(value, text)
        elif kind in PLAIN_SCALARS:
            self.tests.append(f"type({first}) is {self.name(kind)}")
            self.add_leaf(value, text)
        elif kind is bool:
            self.tests.append(f"{first} is {value}")
        elif kind is str:
            self.tests.append(f"type({first}) is {self.name(str)} and {text} == {self.name(value)}")
        elif id(value) in self.generators or (self.draws_in_python and kind in _GENERATORS):
            bits = self.name(type(value._bit_generator))
            self.tests.append(
                f"type({first}) is {self.name(kind)} and type({text}._bit_generator) is {bits}"
            )
            self.add_leaf(value, text)
        elif kind in (tuple, list, dict):
            self.tests.append(f"type({first}) is {kind.__name__} and len({text}) == {len(value)}")
            self.add_items(value, text)
        else:
            raise _NotPlain

    def shape_test(self, value: np.ndarray, text: str) -> str:
        """The test of an array's shape, in which sizes may be symbolic."""
        shape = self.shapes[len(self.leaves)] if self.shapes else value.shape
        if is_static_shape(shape):
            return f"{text}.shape == {shape}"
        tests = [f"{text}.ndim == {len(shape)}"]
        for axis, size in enumerate(shape):
            extent = f"{text}.shape[{axis}]"
            if type(size) is not Size or size in self.symbols:
                tests.append(f"{extent} == {self.symbols.get(size, size)}")
                continue
            least = size.substitute(dict.fromkeys(size.names, 0))
            if size - least not in map(Size.named, size.names):
                raise _NotPlain  # other sizes determine this one
            self.symbols[size] = f"z{len(self.symbols)}"
            tests.append(f"({self.symbols[size]} := {extent}) >= {least}")
        return " and ".join(tests)

    def add_call(self, args: tuple, kwargs: dict) -> None:
        """Add the tests of the arguments of a call."""
        names = f"len(kwargs) == {len(kwargs)}" if kwargs else "not kwargs"
        self.tests.append(f"len(args) == {len(args)} and {names}")
        self.add_items(args, "args")
        self.add_items(kwargs, "kwargs")

    def add_items(self, value: Any, text: str) -> None:
        """Add the tests of the items of a tuple, list or dict."""
        if type(value) is not dict:
            for i, item in enumerate(value):
                self.bind(f"{text}[{i}]", item)
            return
        if not all(type(key) is str for key in value):
            raise _NotPlain
        for key in sorted(value):  # in the order of pytree leaves
            named = self.name(key)
            self.tests.append(f"{named} in {text}")
            self.bind(f"{text}[{named}]", value[key])

    def bind(self, text: str, value: Any) -> None:
        """Assign a value to a new variable, and add the tests of the value."""
        if value is None:
            self.tests.append(f"{text} is None")
            return
        variable = f"v{len(self.tests)}"
        self.add(value, variable, f"({variable} := {text})")

    def add_leaf(self, value: Any, text: str) -> None:
        """Add a leaf of the plan."""
        self.leaves.append(value)
        self.found.append(text)
        if len(self.leaves) > _MOST_LEAVES:
            raise _NotPlain

    def make_function(self) -> Callable:
        """The function ``match(args, kwargs)``: returns the leaves, or None if a test fails."""
        lines = ["def match(args, kwargs):"]
        lines += [f" if not ({test}): return None" for test in self.tests]
        lines += [f" return [{', '.join(self.found)}]"]
        return _define_function("match", "\n".join(lines), self.names)


def _define_function(name: str, text: str, names: dict) -> Callable:
    """The function ``name`` of a text."""
    exec(compile(text, __file__, "exec"), names)
    made: Callable = names.pop(name)  # else the function's globals would contain the function
    return made


def _tests_of(
    args: tuple,
    kwargs: dict,
    leaves: Sequence,
    generators: Sequence = (),
    shapes: Sequence[tuple] = (),
) -> Any:
    """The text of the tests for arguments like these; None for kinds without tests.

    ``leaves``: the leaves of ``args`` and ``kwargs`` that the plan takes; ``generators``: the
    random generators among them; ``shapes``: the shapes of the leaves if some are symbolic.
    """
    text = _TestWriter(generators, shapes=shapes)
    try:
        text.add_call(args, kwargs)
    except _NotPlain:
        return None
    # in the order in which the executor found them
    return text if [*map(id, text.leaves)] == [*map(id, leaves)] else None


def add_kind_test(tests: tuple, args: tuple, kwargs: dict) -> tuple:
    """The tests of kinds of arguments, and one for arguments like these, if that can be made."""
    text = _TestWriter((), draws_in_python=True)
    try:
        text.add_call(args, kwargs)
    except _NotPlain:
        return tests
    text.found.append("True")  # so that the test gives a true value without arrays too
    return (text.make_function(), *tests)[:_MOST_AS_PYTHON]


def _nest_of(tree: Tree | None, count: int) -> Callable:
    """A function from ``count`` flat results to the nested result of the recorded function."""
    if tree is None:
        return _only_result if count == 1 else _all_results
    names: dict[str, Any] = {}
    try:
        text = _nested_text(tree.unflatten(range(count)), [f"r[{i}]" for i in range(count)], names)
    except _NotPlain:
        return tree.unflatten
    return _define_function("nest", f"def nest(r):\n return {text}", names)


def _nested_text(example: Any, texts: list[str], names: dict[str, Any]) -> str:
    """The expression for a nested result, given as a structure of positions of ``texts``."""
    kind = type(example)
    if kind is int:
        return texts[example]
    if example is None:
        return "None"
    if kind is dict:
        keys = []
        for key in example:
            keys.append(f"n{len(names)}")
            names[keys[-1]] = key
        values = [_nested_text(value, texts, names) for value in example.values()]
        return f"{{{', '.join(f'{k}: {v}' for k, v in zip(keys, values, strict=True))}}}"
    is_named = issubclass(kind, tuple) and hasattr(kind, "_fields")
    if kind not in (tuple, list) and not is_named:
        raise _NotPlain
    items = "".join([f"{_nested_text(item, texts, names)}, " for item in example])
    if is_named:
        name = f"n{len(names)}"
        names[name] = kind
        return f"{name}({items})"
    return f"({items})" if kind is tuple else f"[{items}]"


def _only_result(results: tuple) -> Any:
    """The only result."""
    return results[0]


def _all_results(results: tuple) -> tuple:
    """Flat results."""
    return results


@define(eq=False)
class QuickCall:
    """A plan that is tried first.

    ``run(args, kwargs)``: the results, or ``Miss`` for other arguments. ``in_parts``: a function
    that does the same step by step, so that the step of an error is known; None if ``run`` does so.
    ``tests``: the conditions on the arguments.
    """

    run: Callable[[tuple, dict], Any]
    entry: Entry
    executed: Callable
    tests: tuple[str, ...]
    in_parts: Callable[[tuple, dict], Any] | None = None
    failures: int = 0

    def is_open(self, error: BaseException) -> bool:
        """Whether the call can be made in another way after this error."""
        if not isinstance(error, Exception):  # KeyboardInterrupt is not an Exception
            return False
        return self.in_parts is not None or may_run_again(error, self.entry, self.executed)

    def tried_after(self, error: BaseException) -> Callable | None:
        """The reference to the plan if it must not be tried again after this error, else None."""
        if self.in_parts is None or isinstance(error, GuardError):
            return self.executed
        self.failures += 1
        if self.failures == _MOST_FAILURES:
            self.run, self.in_parts = self.in_parts, None
        return None


def quick_call(
    known: tuple, args: tuple, kwargs: dict, leaves: Sequence, others: tuple[QuickCall, ...]
) -> QuickCall | None:
    """The quick call for arguments like these.

    ``known``: the executor's record of the plan that ran; ``leaves``: the leaves of the arguments.
    None if the plan has run too rarely, has no quick call, or has one among the ``others``.
    """
    entry, run, tree, executed, _ = known
    version = next((v for v in entry.plans if v.executed is executed), None)
    if type(version) is not Compiled or version.is_waiting:
        return None
    if version.plan.straight is None and version.plan.runs < RUNS_BY_STEPS:
        return None
    arrays: list[Any] = [leaf for leaf in leaves if type(leaf) not in (bool, str)]
    drawing = [n for n in version.drawing if n < len(arrays)]
    for n in drawing:
        arrays[n] = getattr(arrays[n], "generator", None)
    shapes = [spec.kind.shape for spec in entry.key.arrays] if entry.key.has_names else []
    tests = _tests_of(args, kwargs, arrays, [arrays[n] for n in drawing], shapes)
    if tests is None:
        return None
    texts = (*tests.tests, *[str(id(value)) for value in tests.names.values()])
    for other in others:  # calls of a plan with symbolic sizes may have different tests
        if other.executed is executed and (other.tests == texts or entry.key.has_names):
            return None
    is_straight = version.plan.straight is not None
    if not is_straight or version.arrays:
        run = functools.partial(run, tries=True)
    elif version.drawing:
        run = LATE_BOUND["unchecked_runner"](version)
    else:
        run = version.plan.run_straight_line
    in_parts = _run_step_by_step(
        tests.make_function(), run, _nest_of(tree, len(version.plan.ret.args))
    )
    whole = _single_function(version, tests, tree) if is_straight else None
    if whole is None:
        return QuickCall(in_parts, entry, executed, texts)
    return QuickCall(whole, entry, executed, texts, in_parts)


def _run_step_by_step(match: Callable, run: Callable, nest: Callable) -> Callable:
    """The function of arguments that makes the leaves, runs the plan and nests the results."""

    def call(args: tuple, kwargs: dict) -> Any:
        leaves = match(args, kwargs)
        return Miss if leaves is None else nest(run(leaves))

    return call


def _single_function(version: Compiled, tests: _TestWriter, tree: Tree | None) -> Callable | None:
    """The function of arguments that tests, runs and nests at once; None if it cannot be made."""
    names = dict(tests.names)

    def nest(texts: list[str]) -> str:
        if tree is None:
            return f"({', '.join(texts)})"  # one result alone in parentheses is itself
        return _nested_text(tree.unflatten(range(len(texts))), texts, names)

    leaves = [
        (text, type(x) is np.ndarray) for text, x in zip(tests.found, tests.leaves, strict=True)
    ]
    conditions = [*tests.tests, *tests_of_writes(version.arrays, leaves)]
    found, values = list(tests.found), list(tests.leaves)
    for generator in version.generators:  # which the function captures
        if len(found) not in version.drawing:
            return None
        found.append(f"k{len(names)}")
        bits = f"b{len(names)}"
        names[found[-1]], names[bits] = generator, type(generator._bit_generator)
        values.append(generator)
        conditions.append(f"type({found[-1]}._bit_generator) is {bits}")
    drawing = [(n, found[n], values[n]) for n in version.drawing]
    try:
        return whole_call(version.plan, conditions, found, names, nest, drawing)
    except _NotPlain:
        return None


def quick_plan(compiled: Compiled, args: tuple, kwargs: dict) -> tuple | None:
    """(match, run, nest) for calls of a compiled program like this one.

    None if such calls need more preparation than a test of their arguments.
    """
    program = compiled.program
    leaves = flat_arguments(program, args, kwargs)
    kinds = [type_of(leaf) if type(leaf) in _PLAIN else None for leaf in leaves]
    if compiled.changed or any(
        kind is not param.type for kind, param in zip(kinds, program.params, strict=False)
    ):
        return None
    tests = _tests_of(args, kwargs, leaves)
    if tests is None:
        return None
    return (
        tests.make_function(),
        compiled.plan.run,
        _nest_of(program.out_tree, len(program.ret.args)),
    )


LATE_BOUND.update(quick_call=quick_call, quick_plan=quick_plan, add_kind_test=add_kind_test)

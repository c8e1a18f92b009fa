"""``quick_call``: a generated test for certain argument types, for executors that are called often.

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
from letir.errors import GuardError
from letir.eval.arguments import flat_arguments, is_static
from letir.eval.array_modules import type_of
from letir.executor.argument_spec import PLAIN_SCALARS
from letir.executor.calls import LATEST, executor_by_reference, may_run_again
from letir.executor.compiled import Compiled
from letir.executor.frequent_calls.argument_tests import (
    NotPlain,
    TestWriter,
    define_function,
    tests_of_call,
)
from letir.executor.frequent_calls.python_calls import call_of_python
from letir.executor.plan_cache import Entry
from letir.plan.generated_calls import GeneratedCall, generated_call, tests_of_writes
from letir.plan.plan import Miss
from letir.tracing.trace_state import ACTIVE

_MAX_FAILURES = 8
_RUNS_BEFORE = 4  # of a plan: one that ran less often has been recorded anew in most calls
_PLAIN = frozenset([np.ndarray, *PLAIN_SCALARS])


def _nest_of(tree: Tree | None, count: int) -> Callable:
    """A function from ``count`` flat results to the nested result of the recorded function."""
    if tree is None:
        return _only_result if count == 1 else _all_results
    names: dict[str, Any] = {}
    try:
        text = nested_text(tree.unflatten(range(count)), [f"r[{i}]" for i in range(count)], names)
    except NotPlain:
        return tree.unflatten
    return define_function("nest", f"def nest(r):\n return {text}", names)


def nested_text(example: Any, texts: list[str], names: dict[str, Any]) -> str:
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
        values = [nested_text(value, texts, names) for value in example.values()]
        return f"{{{', '.join(f'{k}: {v}' for k, v in zip(keys, values, strict=True))}}}"
    parts = getattr(kind, "__letir_constant__", None)
    if parts:  # an object of a constant and of a list of results
        name = f"n{len(names)}"
        names[name], names[f"{name}_constant"] = kind, getattr(example, parts[0])
        return f"{name}({name}_constant, {nested_text(getattr(example, parts[1]), texts, names)})"
    is_named = issubclass(kind, tuple) and hasattr(kind, "_fields")
    if kind not in (tuple, list) and not is_named:
        raise NotPlain
    items = "".join([f"{nested_text(item, texts, names)}, " for item in example])
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
    that does the same step by step, to find the step of an error; None if ``run`` itself does.
    ``tests``: the conditions on the arguments. ``own_call``: the function that its executor becomes
    when this is its first quick call; None for its general call. ``is_python``: whether the Python
    function is called instead of the plan.
    """

    run: Callable[[tuple, dict], Any]
    entry: Entry
    executed: Callable
    tests: tuple[str, ...]
    in_parts: Callable[[tuple, dict], Any] | None = None
    own_call: Callable | None = None
    is_python: bool = False
    failures: int = 0
    of_object: Callable | bool | None = None  # see ``object_calls``; False if there is none
    object_is_python: bool = False  # whether that calls the Python function

    def is_open(self, error: BaseException) -> bool:
        """Whether the call can still be made in another way after this error."""
        # KeyboardInterrupt is not an Exception; the errors of the Python function are the user's
        if self.is_python or not isinstance(error, Exception):
            return False
        return self.in_parts is not None or may_run_again(error, self.entry, self.executed)

    def tried_after(self, error: BaseException) -> Callable | None:
        """The reference to the plan if it must not be tried again after this error, else None."""
        in_parts = self.in_parts  # another thread may drop it meanwhile
        if in_parts is None or isinstance(error, GuardError):
            return self.executed
        failures = self.failures = self.failures + 1
        if failures == _MAX_FAILURES:
            self.run, self.in_parts, self.own_call = in_parts, None, None
        return None

    def note_failure_on_object(self) -> None:
        """Drop the call of an object's method if it keeps raising."""
        self.failures += 1
        if self.failures >= _MAX_FAILURES:
            self.of_object = False


def quick_call(
    executor: Any, record: tuple, args: tuple, kwargs: dict, leaves: Sequence
) -> QuickCall | None:
    """The quick call for arguments like these.

    ``record``: the executor's record of the plan that ran; ``leaves``: the leaves of the arguments.
    None if the plan has run too rarely, has no quick call, or the executor has it.
    """
    entry, run, tree, executed, _ = record
    compiled = next((v for v in entry.plans if v.executed is executed), None)
    if type(compiled) is not Compiled or compiled.is_waiting:
        return None
    if compiled.plan.straight is None and compiled.plan.runs < _RUNS_BEFORE:
        return None
    arrays: list[Any] = [leaf for leaf in leaves if not is_static(leaf)]
    drawing = [n for n in compiled.drawing if n < len(arrays)]
    for n in drawing:
        arrays[n] = getattr(arrays[n], "generator", None)
    shapes = [spec.aval.shape for spec in entry.key.arrays] if entry.key.has_names else []
    static = executor.marker.static_places(args, kwargs)
    tests = tests_of_call(args, kwargs, arrays, [arrays[n] for n in drawing], shapes, static)
    if tests is None:
        return None
    texts = (*tests.tests, *[str(id(value)) for value in tests.names.values()])
    branches = False  # whether the function decides on the values of its arguments
    for other in executor.quick:  # calls of a plan with symbolic sizes may have different tests
        if other.executed is executed and (other.tests == texts or entry.key.has_names):
            return None
        branches |= other.executed is not executed and other.tests == texts
    run = _runner_in_parts(compiled, run)
    in_parts = _run_step_by_step(tests, run, tree, len(compiled.plan.ret.args))
    of_results = functools.partial(_line_of_results, tree)
    whole = call_of_plan(compiled, tests, of_results) if compiled.plan.may_be_straight else None
    by_python = call_of_python(executor, compiled, whole or in_parts, (args, kwargs), branches)
    if by_python is not None:
        whole, in_parts = by_python, None
    if whole is None:
        return QuickCall(in_parts, entry, executed, texts)
    own_call = _call_with_counts(whole, executor, entry, executed)
    is_python = by_python is not None
    return QuickCall(whole.run, entry, executed, texts, in_parts, own_call, is_python)


def _call_with_counts(whole: GeneratedCall, executor: Any, entry: Any, executed: Any) -> Callable:
    """The function of a whole call that also counts the call and notes its program."""
    return whole.function(
        EXECUTOR=executor_by_reference(executor),
        ENTRY=entry,
        CALLS=executor.calls,
        LATEST=LATEST,
        PROGRAM=executed,
    )


def _runner_in_parts(compiled: Compiled, run: Callable) -> Callable[[list], tuple]:
    """The function that runs a plan on its leaves, step by step; ``run`` also tests these."""
    if not compiled.plan.may_be_straight or compiled.arrays:
        return functools.partial(run, tries=True)
    if compiled.drawing:
        return LATE_BOUND["unchecked_runner"](compiled)
    return compiled.plan.run_straight_line


def _run_step_by_step(tests: TestWriter, run: Callable, tree: Tree | None, count: int) -> Callable:
    """The function of arguments that makes the leaves, runs the plan and nests the ``count``
    results. Its parts are compiled when it is first called, which may never be necessary.
    """
    make_match, match, nest = tests.function_maker(), None, None

    def call(args: tuple, kwargs: dict) -> Any:
        nonlocal match, nest
        if nest is None:
            match, nest = make_match(), _nest_of(tree, count)
        leaves = match(args, kwargs)
        return Miss if leaves is None else nest(run(leaves))

    return call


def _line_of_results(tree: Tree | None, texts: list[str], names: dict[str, Any]) -> list[str]:
    """The line that sets ``found`` to the nested results."""
    if tree is None:
        return [f" found = ({', '.join(texts)})"]  # one result alone in parentheses is itself
    return [f" found = {nested_text(tree.unflatten(range(len(texts))), texts, names)}"]


def call_of_plan(
    compiled: Compiled, tests: TestWriter, results: Callable[..., list[str]]
) -> GeneratedCall | None:
    """The function of arguments that tests, runs and nests at once; None if it cannot be made.

    ``results(texts, names)``: the lines that set ``found``, from the texts of flat results.
    """
    names = {**tests.names, "is_tracing": ACTIVE.get}
    nest = functools.partial(results, names=names)

    leaves = [
        (text, type(x) is np.ndarray)
        for text, x in zip(tests.leaf_texts, tests.leaves, strict=True)
    ]
    if any(n >= len(leaves) for n in compiled.arrays):  # the state of a generator that is captured
        return None
    conditions = [*tests.tests, *tests_of_writes(compiled.arrays, leaves)]
    expressions, values = list(tests.leaf_texts), list(tests.leaves)
    for generator in compiled.generators:  # which the function captures
        if len(expressions) not in compiled.drawing:
            return None
        expressions.append(f"k{len(names)}")
        bits = f"b{len(names)}"
        names[expressions[-1]], names[bits] = generator, type(generator._bit_generator)
        values.append(generator)
        conditions.append(f"type({expressions[-1]}._bit_generator) is {bits}")
    drawing = [(n, expressions[n], values[n]) for n in compiled.drawing]
    try:
        return generated_call(
            compiled.plan, conditions, expressions, names, nest, drawing, tests.count
        )
    except NotPlain:
        return None


def quick_plan(compiled: Compiled, args: tuple, kwargs: dict) -> tuple | None:
    """(match, run, nest) for calls of a compiled program like this one.

    None if such calls need more preparation than a test of their arguments.
    """
    program = compiled.program
    stores = program.out_tree is not None and program.out_tree.stores
    leaves = flat_arguments(program, args, kwargs)
    avals = [type_of(leaf) if type(leaf) in _PLAIN else None for leaf in leaves]
    if (
        compiled.changed
        or stores
        or any(aval is not param.type for aval, param in zip(avals, program.params, strict=False))
    ):
        return None
    tests = tests_of_call(args, kwargs, leaves)
    if tests is None:
        return None
    return (
        tests.make_function(),
        compiled.plan.run,
        _nest_of(program.out_tree, len(program.ret.args)),
    )


LATE_BOUND.update(quick_call=quick_call, quick_plan=quick_plan)

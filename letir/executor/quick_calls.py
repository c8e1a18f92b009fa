"""``quick_call``: a test written for one kind of arguments, for executors that are called often.

A call of an executor makes a key of its arguments and looks up their plan. After some calls with
arguments of one kind, a function that tests for exactly this kind is tried first: it gives the
leaves of the plan at once, also of nested arguments, without pytrees and without a key.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.pytrees import Tree
from letir.executor.argument_spec import PLAIN_SCALARS
from letir.executor.compiled import Compiled

_MOST_LEAVES = 200


class _NotPlain(Exception):
    """Raised for arguments of which no test can be written."""


class _Text:
    """The text of a function of nested values, and the names in it."""

    def __init__(self):
        self.names: dict[str, Any] = {"ndarray": np.ndarray}
        self.tests: list[str] = []
        self.leaves: list = []
        self.found: list[str] = []

    def name(self, value: Any) -> str:
        """A name for a value."""
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    def add(self, value: Any, text: str) -> None:
        """Add the tests of a value, which ``text`` names, and of what it holds."""
        kind = type(value)
        if value is None:
            self.tests.append(f"{text} is None")
        elif kind is np.ndarray:
            flag = "" if value.flags.c_contiguous else "not "
            self.tests.append(
                f"type({text}) is ndarray and {text}.dtype is {self.name(value.dtype)} and "
                f"{text}.shape == {value.shape} and {flag}{text}.flags.c_contiguous"
            )
            self.add_leaf(value, text)
        elif kind in PLAIN_SCALARS:
            self.tests.append(f"type({text}) is {self.name(kind)}")
            self.add_leaf(value, text)
        elif kind is bool:
            self.tests.append(f"{text} is {value}")
        elif kind is str:
            self.tests.append(f"type({text}) is {self.name(str)} and {text} == {self.name(value)}")
        elif kind in (tuple, list, dict):
            self.tests.append(f"type({text}) is {kind.__name__} and len({text}) == {len(value)}")
            self.add_items(value, text)
        else:
            raise _NotPlain

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
        """Add the tests of a value under a variable of its own."""
        if value is None:
            self.tests.append(f"{text} is None")
            return
        variable = f"v{len(self.tests)}"
        # "is not None" lets ``and`` go on: a missing part fails the test
        self.tests.append(f"({variable} := {text}) is not None")
        self.add(value, variable)

    def add_leaf(self, value: Any, text: str) -> None:
        """Add a leaf of the plan."""
        self.leaves.append(value)
        self.found.append(text)
        if len(self.leaves) > _MOST_LEAVES:
            raise _NotPlain

    def made(self) -> Callable:
        """The function ``match(args, kwargs)``: the leaves if all tests hold, else None."""
        lines = ["def match(args, kwargs):"]
        lines += [f" if not ({test}): return None" for test in self.tests]
        lines += [f" return [{', '.join(self.found)}]"]
        return _defined("match", "\n".join(lines), self.names)


def _defined(name: str, text: str, names: dict) -> Callable:
    """The function ``name`` of a text."""
    exec(compile(text, __file__, "exec"), names)
    made: Callable = names.pop(name)  # else the function would hold itself
    return made


def match_of(args: tuple, kwargs: dict, leaves: Sequence) -> Callable | None:
    """The function that tests for arguments like these, of which ``leaves`` are the plan's."""
    text = _Text()
    try:
        text.add(args, "args")
        text.add(kwargs, "kwargs")
    except _NotPlain:
        return None
    # in the order in which the executor found them
    if [*map(id, text.leaves)] != [*map(id, leaves)]:
        return None
    return text.made()


def nest_of(tree: Tree | None, count: int) -> Callable:
    """The function from ``count`` flat results to what the recorded function returned."""
    if tree is None:
        return _alone if count == 1 else _as_they_are
    names: dict[str, Any] = {}
    try:
        text = _nested_text(tree.unflatten(range(count)), names)
    except _NotPlain:
        return tree.unflatten
    return _defined("nest", f"def nest(r):\n return {text}", names)


def _nested_text(example: Any, names: dict[str, Any]) -> str:
    """The expression for a structure whose leaves are numbers of results."""
    kind = type(example)
    if kind is int:
        return f"r[{example}]"
    if example is None:
        return "None"
    if kind is dict:
        keys = []
        for key in example:
            keys.append(f"k{len(names)}")
            names[keys[-1]] = key
        values = [_nested_text(value, names) for value in example.values()]
        return f"{{{', '.join(f'{k}: {v}' for k, v in zip(keys, values, strict=True))}}}"
    if kind not in (tuple, list):
        raise _NotPlain
    items = "".join([f"{_nested_text(item, names)}, " for item in example])
    return f"({items})" if kind is tuple else f"[{items}]"


def _alone(results: tuple) -> Any:
    """The only result."""
    return results[0]


def _as_they_are(results: tuple) -> tuple:
    """Flat results."""
    return results


def quick_call(known: tuple, args: tuple, kwargs: dict, leaves: Sequence) -> tuple | None:
    """(match, run, nest, entry, executed) for calls like this one.

    ``known``: what the executor knows of the plan that ran; ``leaves``: those of the arguments.
    """
    entry, run, tree, executed, _ = known
    version = next((v for v in entry.plans if v.executed is executed), None)
    if type(version) is not Compiled:
        return None
    arrays = [leaf for leaf in leaves if type(leaf) not in (bool, str)]
    match = match_of(args, kwargs, arrays)
    if match is None:
        return None
    if version.plan.straight is not None and not version.changed:
        run = version.plan.run_straight
    else:
        run = functools.partial(run, tries=True)
    return match, run, nest_of(tree, len(version.plan.ret.args)), entry, executed


LATE_BOUND["quick_call"] = quick_call

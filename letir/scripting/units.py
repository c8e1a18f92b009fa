"""``script`` and ``CompilationUnit``: scripts from source code or functions [semantics.md G1]."""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from letir.ast import entry_point
from letir.errors import ParseError
from letir.scripting.frontend.printed_pairs import joined_pairs
from letir.scripting.frontend.source_text import ScriptText, script_text_of
from letir.scripting.frontend.statements import FunctionReader
from letir.scripting.script_terms import Apply, ScriptFunction, parts_of, terms_in
from letir.scripting.scripts import Script, check_distinct, read_function


@entry_point
def script(source: str | Callable[..., Any]) -> Script:
    """The script of source code or a Python function, whose inner function is its backward.

    The text or function is read, never executed. Several functions of one name are overloads. The
    text after lifting, a forward followed by its backward, is the script that it was printed from.
    Raises ParseError with line and column for syntax that scripts do not support.

    >>> import numpy as np
    >>> from letir import grad
    >>> @script
    ... def clipped(x):
    ...     def backward(g):
    ...         return clip(g, -1.0, 1.0)
    ...     return x, backward
    >>> grad(lambda x: 5 * clipped(x))(2.0)
    np.float64(1.0)
    """
    text = script_text_of(source)
    if isinstance(source, str):
        unit = CompilationUnit()
        unit.enter(text, joined_pairs(text.definitions()))
        names = list(unit)
        if len(names) > 1:
            listed = ", ".join(names)
            raise text.error(
                unit[names[1]].overloads[0].at,
                f"a script is one function, found {listed}: use CompilationUnit for several",
            )
        return unit[names[0]]
    function, visible_scripts = read_function(text)
    return Script(function.name, [function], visible_scripts)


class CompilationUnit(Mapping):
    """Scripts that may call each other, by name: ``unit.mul(x, y)``, ``unit["mul"]``.

    ``code`` is the text of all of them, ``define(text)`` adds more. Inside a function that has the
    name of an operation, that name means the operation.

    >>> unit = CompilationUnit('''
    ... def double(x):
    ...     return x + x
    ... def quadruple(x):
    ...     return double(double(x))
    ... ''')
    >>> unit.quadruple(1.0)
    4.0
    """

    @entry_point
    def __init__(self, text: str = ""):
        self._scripts: dict[str, Script] = {}
        if text.strip():
            self.define(text)

    @entry_point
    def define(self, text: str) -> None:
        """Add the functions of a text: all of them or, if it has an error, none.

        A function whose name exists already is an overload. Raises ParseError with line and column.
        """
        read = script_text_of(text)
        self.enter(read, read.definitions())

    def enter(self, read: ScriptText, nodes: Sequence[ast.FunctionDef]) -> None:
        """Add these functions of a text: all of them or, if one has an error, none."""
        # all names are entered first, so that the order of functions does not matter
        names = {*self._scripts, *(node.name for node in nodes)}
        functions = [FunctionReader(read, names, node.name).function(node) for node in nodes]
        overloads = {name: list(script.overloads) for name, script in self._scripts.items()}
        for function in functions:
            others = overloads.setdefault(function.name, [])
            check_distinct(read, function, others)
            others.append(function)
        _check_cycles(read, overloads)  # before anything is entered: all functions or none
        for function in functions:
            own = self._scripts.setdefault(function.name, Script(function.name, [], self._scripts))
            # scripts refer to self._scripts, which grows: calls look up names [semantics.md G3]
            own.overloads.append(function)

    @property
    def code(self) -> str:
        """The text of all functions; reading it again gives the same unit."""
        return "\n".join(script.code for script in self._scripts.values())

    @property
    def lifted(self) -> str:
        """The text of all functions after lambda lifting."""
        return "\n".join(script.lifted for script in self._scripts.values())

    def __str__(self):
        return self.code

    def __repr__(self):
        return f"CompilationUnit({', '.join(map(repr, self._scripts.values()))})"

    def __getattr__(self, name: str) -> Script:
        if name.startswith("_") or name not in self._scripts:
            # the attribute is missing while a copy is being made
            names = ", ".join(self.__dict__.get("_scripts", ())) or "none"
            raise AttributeError(f"the unit has no function {name!r}, it has {names}")
        return self._scripts[name]

    def __getitem__(self, name: str) -> Script:
        return self._scripts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._scripts)

    def __len__(self):
        return len(self._scripts)

    def __dir__(self):
        return [*super().__dir__(), *self._scripts]


# ---- calls ----


def _script_calls(function: ScriptFunction) -> Iterator[Apply]:
    """The other scripts called in a function and its backward."""
    for part in (function, function.inner):
        if part is not None:
            todo: list = [part.results, *terms_in(part.body)]
            while todo:
                term = todo.pop()
                todo += parts_of(term)
                if type(term) is Apply and term.is_script:
                    yield term


def _check_cycles(text: ScriptText, overloads: Mapping[str, list[ScriptFunction]]) -> None:
    """Raise ParseError that names a cycle of calls, if there is one."""
    called = {name: [c for f in fs for c in _script_calls(f)] for name, fs in overloads.items()}
    done: set[str] = set()
    for start in called:
        path, waiting = [start], [iter(called[start])]  # depth first, with an explicit stack
        while path:
            call = next(waiting[-1], None)
            if call is None:
                done.add(path.pop())
                waiting.pop()
            elif call.function in path:
                cycle = [*path[path.index(call.function) :], call.function]
                raise _recursion_error(text, call, cycle)
            elif call.function not in done:
                path.append(call.function)
                waiting.append(iter(called[call.function]))


def _recursion_error(text: ScriptText, call: Apply, cycle: list[str]) -> ParseError:
    """The error for functions that call each other recursively."""
    message = f"recursion: {' -> '.join(cycle)}\n  a script must end: write a loop"
    return text.error(call.at, message)

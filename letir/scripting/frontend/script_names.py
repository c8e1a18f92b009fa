"""Names in expressions: values, constants of modules, and operations by their paths."""

import ast
import difflib
from typing import Any

import numpy as np

from letir.ast.primitive import PRIMITIVES
from letir.ast.types import PYTHON_NUMBERS
from letir.errors import ParseError
from letir.scripting.frontend.source_text import ScriptText, is_module
from letir.scripting.frontend.vocabulary import (
    CONSTANTS,
    MODULES,
    PYTHON_DTYPES,
)
from letir.scripting.script_terms import (
    Group,
    Literal,
    Name,
    Term,
    TextPosition,
)

LITERALS = (*PYTHON_NUMBERS, str, type(None), type(...), np.dtype)


class NameReader:
    """Looks up the names in one function.

    ``scripts``: the functions that may be called by name. ``own``: the function's own name, if an
    operation has this name too: inside the function it means the operation. In a lifted function
    (with its context in a tuple) every name of an operation means the operation.
    """

    is_lifted = False

    def __init__(self, text: ScriptText, scripts, own: str):
        self.text, self.scripts, self.own = text, scripts, own

    def local(self, node: ast.Name) -> Name | None:
        """The function's value of this name, None if there is none."""
        raise NotImplementedError("functions know their names")

    def error(self, at: TextPosition | ast.AST, message: str) -> ParseError:
        """A ParseError at this place."""
        return self.text.error(at, message)

    def place(self, node: ast.AST) -> TextPosition:
        """The position where a node begins."""
        return self.text.place(node)

    def name(self, node: ast.Name) -> Term:
        """A value, or a constant of scripts or of the enclosing Python scope."""
        result = self.local(node)
        if result is not None:
            return result
        # scripts can be called, but are not values
        if node.id in self.text.names and node.id not in self.scripts:
            return self.literal(node, self.text.names[node.id], node.id)
        for table in (CONSTANTS, PYTHON_DTYPES):
            if node.id in table:
                return Literal(table[node.id], self.place(node))
        raise self.unknown(node, node.id, [*CONSTANTS])

    def literal(self, node: ast.expr, value: Any, name: str) -> Term:
        """A value of the enclosing Python scope, which becomes part of the script."""
        at = self.place(node)
        if type(value) is tuple:
            return Group(tuple(self.literal(node, item, name) for item in value), at)
        if type(value) in (float, int, complex, bool) and value in PYTHON_DTYPES.values():
            return Literal(value, at)
        if type(value) in LITERALS or isinstance(value, np.dtype):
            return Literal(value, at)
        if isinstance(value, type) and (
            value.__name__ in PYTHON_DTYPES or issubclass(value, np.generic)
        ):
            return Literal(np.dtype(value), at)
        raise self.error(
            node,
            f"{name!r} is {type(value).__name__} outside of the script: a script may use numbers, "
            "strings and modules from there\n  make it a parameter",
        )

    def unknown(
        self, node: ast.AST, name: str, others: list[str], remedy: str = "make it a parameter"
    ) -> ParseError:
        """The error for an unknown name, with a similar known one."""
        words = [*self.names(), *self.scripts, *others]
        # exp.reduce is a method of a ufunc, not a misspelt exprel
        alike = [word for word in words if word.count(".") == name.count(".")]
        near = difflib.get_close_matches(name, alike, 1)
        remedy = f"did you mean {near[0]!r}?" if near else remedy
        return self.error(node, f"unknown name {name!r}\n  {remedy}")

    def names(self) -> list[str]:
        """The values of the function by the user's names."""
        return []

    def module_constant(self, node: ast.Attribute, path: str) -> Literal:
        """``np.pi`` or ``np.float32``."""
        if path.endswith("_") and path[:-1] in PYTHON_DTYPES:  # np.bool_
            path = path[:-1]
        for table in (CONSTANTS, PYTHON_DTYPES):
            if path in table:
                return Literal(table[path], self.place(node))
        raise self.unknown(node, path, [*CONSTANTS])

    def module_path(self, node: ast.expr) -> str | None:
        """``linalg.norm`` for ``np.linalg.norm``, ``package.name`` for a user's operation; None if
        the expression begins with a value.
        """
        path = []
        while isinstance(node, ast.Attribute):
            path.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or not path or self.local(node) is not None:
            return None
        value = self.text.names.get(node.id)
        if is_module(value) or (value is None and node.id in MODULES):
            return ".".join(reversed(path))
        whole = ".".join([node.id, *reversed(path)])  # package.name of a user's operation
        return whole if whole in PRIMITIVES else None

"""What a gradient script is made of: expressions, statements, functions.

    Term     = Name | Literal | Apply | Group | Part | Slice
    Assign   = targets, value
    Function = name, params, body, results, inner

``reading`` makes these of Python's syntax, ``printing`` writes them down again, ``emission`` turns
them into programs. In a function every name is bound once: the reader calls a second ``x`` ``x_1``.
"""

import ast
from typing import Any

from attrs import field, frozen

from letir.ast.terms import Source


@frozen
class Place:
    """A position in a text; both count from 1."""

    line: int
    column: int


@frozen
class Name:
    """A parameter, a local, or a captured value."""

    id: str
    at: Place = field(eq=False)  # equal wherever it stands: texts read again give equal scripts


@frozen
class Literal:
    """A number, a string, None, a dtype, or ``...``."""

    value: Any
    at: Place = field(eq=False)


@frozen
class Apply:
    """An operation of letir, a function of NumPy, a question for a shape, or another script."""

    function: str
    args: tuple
    keywords: tuple[tuple[str, Any], ...]
    is_script: bool
    at: Place = field(eq=False)


@frozen
class Group:
    """A tuple."""

    items: tuple
    at: Place = field(eq=False)


@frozen
class Part:
    """``value[item]``."""

    value: Any
    item: Any
    at: Place = field(eq=False)


@frozen
class Slice:
    """``start:stop:step``; an end that is not there is None."""

    ends: tuple
    at: Place = field(eq=False)


Term = Name | Literal | Apply | Group | Part | Slice


@frozen
class Assign:
    """``name = value``, or ``name, name = value`` where ``value`` has several parts."""

    targets: tuple[str, ...]
    unpacks: bool
    value: Term
    at: Place = field(eq=False)


TENSOR, SCALAR, STATIC, GROUP = "array", "scalar", "static", "group"  # kinds of parameters
SHAPE = "shape"  # a part of a group: a shape that is a value


@frozen
class Param:
    """A parameter: ``annotation`` as the user wrote it, ``default`` a term or None.

    ``kind``: an array; a scalar, which is a number without a gradient; static, which is part of
    the program; or a group of arrays. ``parts``: the kinds in a group, None if it has any number.
    """

    name: str
    annotation: str | None
    default: Term | None
    kind: str
    parts: tuple[str, ...] | None
    at: Place = field(eq=False)


@frozen(eq=False)
class Function:
    """A function of straight-line code; ``inner`` is its backward, if it has one.

    ``captured``: of a backward, the names of the outer function that it uses, in order of first
    use. ``tree`` is Python's syntax of it, ``file`` where it was read.
    """

    name: str
    params: tuple[Param, ...]
    body: tuple[Assign, ...]
    results: Term
    inner: "Function | None"
    captured: tuple[str, ...]
    tree: ast.FunctionDef = field(eq=False, repr=False)
    at: Place = field(eq=False)
    file: str = field(eq=False)

    def source(self, at: Place) -> Source:
        """A place in this function as programs know it."""
        return Source(self.file, at.line)

    @property
    def signature(self) -> str:
        """``name(kind, kind)``: what overloads differ in."""
        kinds = [p.annotation or "Tensor" for p in self.params]
        return f"{self.name}({', '.join(kinds)})"

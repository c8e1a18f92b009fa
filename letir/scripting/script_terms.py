"""The terms of gradient scripts: expressions, statements, functions.

    Term      = Name | Literal | Apply | Group | Subscript | Slice | Choice | Logic
    Statement = Assign | Branch | ScriptWhile | ScriptFor
    Block     = body, results
    ScriptFunction = name, params, body, results, inner

``frontend`` makes them from Python syntax, ``script_printer`` writes them as text, ``lowering``
turns them into programs. Every name is bound once in a function: a second ``x`` becomes ``x_1``.
"""

import ast
from collections.abc import Iterable, Iterator
from typing import Any, final

from attrs import field, frozen

from letir.ast.terms import Source


@frozen
class TextPosition:
    """A position in a text; line and column count from 1."""

    line: int
    column: int


@final
@frozen
class Name:
    """A parameter, a local, or a captured value."""

    id: str
    # ignored by equality, so that a text read again gives equal terms
    at: TextPosition = field(eq=False)


@final
@frozen
class Literal:
    """A number, a string, None, a dtype, or ``...``."""

    value: Any
    at: TextPosition = field(eq=False)


@final
@frozen
class Apply:
    """A call of an operation, a NumPy function, a query such as ``shape``, or another script."""

    function: str
    args: tuple
    keywords: tuple[tuple[str, Any], ...]
    is_script: bool
    at: TextPosition = field(eq=False)


@final
@frozen
class Group:
    """A tuple."""

    items: tuple
    at: TextPosition = field(eq=False)


@final
@frozen
class Subscript:
    """``value[item]``."""

    value: Any
    item: Any
    at: TextPosition = field(eq=False)


@final
@frozen
class Slice:
    """``start:stop:step``; missing parts are None."""

    ends: tuple
    at: TextPosition = field(eq=False)


@final
@frozen
class Choice:
    """``on_true if test else on_false``: only one of them is computed."""

    test: Any
    on_true: Any
    on_false: Any
    at: TextPosition = field(eq=False)


@final
@frozen
class Logic:
    """``a and b``, ``a or b``, ``not a`` on truth values, with short-circuit evaluation."""

    word: str
    operands: tuple
    at: TextPosition = field(eq=False)


Term = Name | Literal | Apply | Group | Subscript | Slice | Choice | Logic


@final
@frozen
class Assign:
    """``name = value``, or ``name, name = value`` for a value with several parts."""

    targets: tuple[str, ...]
    unpacks: bool
    value: Term
    at: TextPosition = field(eq=False)


@frozen
class Block:
    """Statements, and their results for the surrounding statement."""

    body: tuple
    results: tuple[Term, ...]


@final
@frozen
class Branch:
    """``if``: ``targets`` (``names`` in the user's code) are the results of the selected block."""

    targets: tuple[str, ...]
    test: Term
    on_true: Block
    on_false: Block
    at: TextPosition = field(eq=False)
    names: tuple[str, ...] = field(eq=False)


@final
@frozen
class ScriptWhile:
    """``while``: ``params`` are the carried values inside, ``initial`` their initial values, the
    block's results their values after a step, and ``targets`` their values after the last step.
    """

    targets: tuple[str, ...]
    params: tuple[str, ...]
    initial: tuple[Term, ...]
    test: Term
    block: Block
    at: TextPosition = field(eq=False)
    names: tuple[str, ...] = field(eq=False)


@final
@frozen
class ScriptFor:
    """``for index in range(start, stop, step)``, with carried values as in ``ScriptWhile``."""

    targets: tuple[str, ...]
    params: tuple[str, ...]
    initial: tuple[Term, ...]
    index: str
    bounds: tuple[Term, Term, Term]
    block: Block
    at: TextPosition = field(eq=False)
    names: tuple[str, ...] = field(eq=False)


Statement = Assign | Branch | ScriptWhile | ScriptFor


TENSOR, SCALAR, STATIC, GROUP = "array", "scalar", "static", "group"  # kinds of parameters
SHAPE = "shape"  # a part of a group: a shape as a value


@frozen
class Param:
    """A parameter: ``annotation`` as the user wrote it, ``default`` a term or None.

    ``kind``: an array; a scalar (a number without a gradient); static (part of the program); or a
    group of arrays. ``parts``: the kinds in a group, None for any number of parts.
    """

    name: str
    annotation: str | None
    default: Term | None
    kind: str
    parts: tuple[str, ...] | None
    at: TextPosition = field(eq=False)


@frozen(eq=False)
class ScriptFunction:
    """A function; ``inner`` is its backward, if it has one.

    ``captured``: for a backward, the names of the outer function that it uses, in order of first
    use. ``tree`` is its Python syntax tree, ``file`` the file from which it was read.
    """

    name: str
    params: tuple[Param, ...]
    body: tuple[Statement, ...]
    results: Term
    inner: "ScriptFunction | None"
    captured: tuple[str, ...]
    tree: ast.FunctionDef = field(eq=False, repr=False)
    at: TextPosition = field(eq=False)
    file: str = field(eq=False)

    def source(self, at: TextPosition) -> Source:
        """The source location of a place in this function, for binds."""
        return Source(self.file, at.line)

    @property
    def signature(self) -> str:
        """``name(kind, kind)``: the signature that distinguishes overloads."""
        kinds = [p.annotation or "Tensor" for p in self.params]
        return f"{self.name}({', '.join(kinds)})"


# ---- traversals ----


def parts_of(term: Term) -> tuple:
    """The terms inside a term."""
    match term:
        case Apply(args=args, keywords=keywords):
            return (*args, *(value for _, value in keywords))
        case Group(items=items):
            return items
        case Subscript(value=value, item=item):
            return value, item
        case Slice(ends=ends):
            return tuple(end for end in ends if end is not None)
        case Choice(test=test, on_true=on_true, on_false=on_false):
            return test, on_true, on_false
        case Logic(operands=operands):
            return operands
    return ()


def terms_in(statements: Iterable[Statement]) -> Iterator[Term]:
    """The terms of statements and of their blocks, in the order of the text."""
    for statement in statements:
        match statement:
            case Assign(value=value):
                yield value
            case Branch(test=test, on_true=on_true, on_false=on_false):
                yield test
                yield from script_terms_in(on_true)
                yield from script_terms_in(on_false)
            case ScriptWhile(initial=initial, test=test, block=block):
                yield from (*initial, test, *script_terms_in(block))
            case ScriptFor(initial=initial, bounds=bounds, block=block):
                yield from (*initial, *bounds, *script_terms_in(block))


def script_terms_in(block: Block) -> Iterator[Term]:
    """The terms of a block."""
    yield from terms_in(block.body)
    yield from block.results


def names_in(*terms: Term) -> list[str]:
    """The names that terms use, in order of first use."""
    result: dict[str, None] = {}
    todo = list(reversed(terms))
    while todo:
        term = todo.pop()
        todo += reversed(parts_of(term))
        if type(term) is Name:
            result[term.id] = None
    return list(result)


def names_bound(statements: Iterable[Statement]) -> Iterator[str]:
    """The names that statements and their blocks bind."""
    for statement in statements:
        yield from statement.targets
        match statement:
            case Branch(on_true=on_true, on_false=on_false):
                yield from names_bound((*on_true.body, *on_false.body))
            case ScriptWhile(params=params, block=block):
                yield from (*params, *names_bound(block.body))
            case ScriptFor(params=params, index=index, block=block):
                yield from (*params, index, *names_bound(block.body))

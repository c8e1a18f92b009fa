"""Reads the text of a script after lambda lifting as the original script.

``Script.lifted`` prints a script as two functions: the forward, whose last result is the context,
and the backward, whose first parameter is the context. Joined, they are one function with an inner
one again.
"""

import ast
from collections.abc import Sequence


def joined_pairs(nodes: Sequence[ast.FunctionDef]) -> list[ast.FunctionDef]:
    """The functions of a text, with each forward joined with the backward that follows it.

    Functions that are not such a pair are not changed.
    """
    result, waiting = [], list(nodes)
    while waiting:
        node = waiting.pop(0)
        joined = _join_pair(node, waiting[0]) if waiting else None
        if joined is not None:
            waiting.pop(0)
        result.append(joined or node)
    return result


def _join_pair(forward: ast.FunctionDef, backward: ast.FunctionDef) -> ast.FunctionDef | None:
    """The function that lambda lifting splits into these two; None if they are not such a pair."""
    *body, end = forward.body
    context = _context_of(end)
    if context is None or not _takes_context(backward, len(context)):
        return None
    inner = backward.body
    if context:
        if _unpacked_names(inner[0], backward.args.args[0].arg) != context or len(inner) == 1:
            return None
        inner = inner[1:]
    assert isinstance(end, ast.Return)
    assert isinstance(end.value, ast.Tuple)
    results = [*end.value.elts[:-1], ast.copy_location(ast.Name(backward.name, ast.Load()), end)]
    value = ast.copy_location(ast.Tuple(results, ast.Load()), end.value)
    parameters = ast.arguments([], backward.args.args[1:], None, [], [], None, [])
    own = _function_like(backward, parameters, inner)
    return _function_like(
        forward, forward.args, [*body, own, ast.copy_location(ast.Return(value), end)]
    )


def _function_like(
    node: ast.FunctionDef, args: ast.arguments, body: list[ast.stmt]
) -> ast.FunctionDef:
    """A function with the name and place of ``node``, without the annotation of its results."""
    result = ast.parse("def f(): pass").body[0]  # with the fields of this Python version
    assert isinstance(result, ast.FunctionDef)
    result.name, result.args, result.body = node.name, args, body
    return ast.copy_location(result, node)


def _context_of(end: ast.stmt) -> list[str] | None:
    """The names in the last result of a forward, a tuple of names; None if it is not one."""
    if not isinstance(end, ast.Return) or not isinstance(end.value, ast.Tuple):
        return None
    context = end.value.elts[-1] if len(end.value.elts) > 1 else None
    return _names_in(context)


def _takes_context(backward: ast.FunctionDef, count: int) -> bool:
    """Whether the first parameter is annotated as a tuple of ``count`` arrays."""
    args = backward.args
    if not args.args or args.vararg or args.kwarg or args.kwonlyargs or args.defaults:
        return False
    match args.args[0].annotation:
        case ast.Subscript(value=ast.Name(id="Tuple"), slice=ast.Tuple(elts=kinds)):
            return len(kinds) == count
        case ast.Subscript(value=ast.Name(id="Tuple")):
            return count == 1
    return False


def _unpacked_names(first: ast.stmt, context: str) -> list[str] | None:
    """The names to which a statement unpacks the context."""
    match first:
        case ast.Assign(targets=[ast.Tuple() as names], value=ast.Name(id=read)) if read == context:
            return _names_in(names)
    return None


def _names_in(node: ast.expr | None) -> list[str] | None:
    """The names in a tuple that consists of names; None for anything else."""
    if not isinstance(node, ast.Tuple):
        return None
    names = [element.id for element in node.elts if isinstance(element, ast.Name)]
    return names if len(names) == len(node.elts) else None

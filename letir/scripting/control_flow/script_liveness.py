"""Liveness of names in a script: which names are read after an ``if``, or in later loop steps.

Computed from the last statement to the first, before a script is read. Dead names are neither
carried by loops nor results of branches, so they may have any type, or no value at all.
"""

import ast
from collections.abc import Collection, Iterable, Iterator

Loop = ast.While | ast.For


class Liveness:
    """``needed[node]``: the names read after an ``if``, or read after a loop or in a later step."""

    def __init__(self, function: ast.FunctionDef):
        self.needed: dict[ast.stmt, frozenset[str]] = {}
        self._exposed: dict[ast.stmt, set[str]] = {}
        # an inner function reads the values that its names have at the end
        backwards = [node for node in function.body if isinstance(node, ast.FunctionDef)]
        self.record(function.body, {name for node in backwards for name in _read_in(node)})

    def record(self, statements: list[ast.stmt], live: set[str]) -> set[str]:
        """Fill ``needed``, and return the names live before the statements, given those after."""
        for node in reversed(statements):
            if isinstance(node, ast.If):
                self.needed[node] = frozenset(live)
                branches = [self.record(block, set(live)) for block in (node.body, node.orelse)]
                live = {*branches[0], *branches[1], *_read_in(node.test)}
            elif isinstance(node, Loop):
                live |= self.exposed(node)
                self.needed[node] = frozenset(live)
                self.record(node.body, set(live))
            else:
                live = _live_before_statement(node, live)
        return live

    def exposed(self, node: Loop) -> set[str]:
        """The names that a loop may read before it binds them."""
        result = self._exposed.get(node)
        if result is None:
            inside = self.live_before(node.body, set()).difference(_bound_in(node))
            result = {*inside, *_read_in(node.test if isinstance(node, ast.While) else node.iter)}
            self._exposed[node] = result
        return result

    def live_before(self, statements: list[ast.stmt], live: set[str]) -> set[str]:
        """The result of ``record``, without recording it."""
        for node in reversed(statements):
            if isinstance(node, ast.If):
                branches = [self.live_before(b, set(live)) for b in (node.body, node.orelse)]
                live = {*branches[0], *branches[1], *_read_in(node.test)}
            elif isinstance(node, Loop):
                live |= self.exposed(node)  # cached, so that every loop is analysed once
            else:
                live = _live_before_statement(node, live)
        return live


def _live_before_statement(node: ast.stmt, live: set[str]) -> set[str]:
    """The live names before a statement without blocks."""
    if not isinstance(node, ast.FunctionDef):
        live.difference_update(_bound_in(node))
        live.update(_read_in(node))
    return live


def _read_in(node: ast.AST) -> Iterator[str]:
    """The names read in a piece of syntax."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            yield part.id


def _bound_in(node: ast.stmt) -> Collection[str]:
    """The names bound by a statement itself."""
    match node:
        case ast.Assign(targets=targets):
            nodes = targets
        case ast.AnnAssign(target=target) | ast.For(target=target):
            nodes = [target]
        case _:
            nodes = []
    return [n.id for part in nodes for n in ast.walk(part) if isinstance(n, ast.Name)]


def assigned_names(statements: Iterable[ast.stmt]) -> list[str]:
    """The names bound by statements and their blocks, in order."""
    result: dict[str, None] = {}
    todo = list(reversed(list(statements)))
    while todo:
        node = todo.pop()
        result.update(dict.fromkeys(_bound_in(node)))
        if isinstance(node, ast.If | Loop):
            todo += reversed([*node.body, *node.orelse])
    return list(result)

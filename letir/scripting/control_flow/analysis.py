"""Reading statements: assignments, and ``if``, ``while`` and counted ``for`` [semantics.md G3].

After a branch, a name that is bound in it means a result of the branch; a name bound in a loop is a
carried value; ``script_liveness`` finds the names that are needed. A name without a value on some
path is ``_Unbound``: reading it is an error.
"""

import ast
from typing import final

from attrs import frozen

from letir.scripting.control_flow.script_liveness import Liveness, Loop, assigned_names
from letir.scripting.frontend.expressions import ExpressionReader
from letir.scripting.script_terms import (
    Assign,
    Block,
    Branch,
    Choice,
    Group,
    Literal,
    Logic,
    Name,
    ScriptFor,
    ScriptWhile,
    Statement,
    Term,
    TextPosition,
)

_MAX_BLOCKS = 40  # levels of nested blocks: they use Python's stack
_COUNTED = "a script counts: for i in range(n): a step may read x[i]"
_ENDLESS = "a loop ends by its condition: write while i < n and not done, and set done"
_LATE = "return is the last statement: give the result a name in every branch, and return it there"
FLOW = {
    ast.Break: f"break: {_ENDLESS}",
    ast.Continue: "continue: put what follows under an if",
    ast.Return: f"early return: {_LATE}",
    ast.Match: "match: write if and elif",
}


@final
@frozen
class _Unbound:
    """The entry in a scope for a name without a value, with the reason."""

    reason: str


class FlowReader(ExpressionReader):
    """Reads statements. ``scope``: the meaning of user names; ``body``: the statements read."""

    def __init__(self, text, scripts, own: str):
        super().__init__(text, scripts, own)
        self.scope: dict[str, str | _Unbound] = {}
        self.body: list[Statement] = []
        self.blocks = 0  # the number of blocks around the current statement
        self.liveness: Liveness | None = None

    def bind(self, node: ast.AST, name: str) -> str:
        """A fresh name for a value that the user's code binds to ``name`` here."""
        raise NotImplementedError("functions know which names are taken")

    def statement(self, node: ast.stmt, is_first: bool = False) -> None:
        """Read one statement."""
        raise NotImplementedError("functions know which statements they have")

    def meaning(self, node: ast.AST, name: str) -> Name:
        """The value of a name in the scope. Raises ParseError if it has none."""
        result = self.scope[name]
        if type(result) is _Unbound:
            raise self.error(node, result.reason)
        return Name(result, self.place(node))

    # ---- assignments ----

    def assign(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> None:
        """``name = value`` or ``name, name = value``."""
        term = self.term(value)  # read before the names are bound: x = x + 1 reads the old x
        targets: list[ast.Name] = []
        for element in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
            if not isinstance(element, ast.Name):
                raise self.error(element, "assign to names: nothing is changed in place")
            targets.append(element)
        names = tuple(self.bind(element, element.id) for element in targets)
        unpacks = not isinstance(target, ast.Name)
        if isinstance(value, ast.List) or (type(term) is Name and term.id in self.lists):
            self.lists.update(names)
        if type(term) is Group and unpacks and len(term.items) != len(names):
            raise self.error(node, f"{len(names)} names for {len(term.items)} values")
        self.body.append(Assign(names, unpacks, term, self.place(node)))

    # ---- blocks ----

    def nested(self, node: ast.AST) -> None:
        """Enter a nested block. Raises ParseError if the nesting is too deep."""
        self.blocks += 1
        if self.blocks > _MAX_BLOCKS:
            raise self.error(node, "nested too deeply: make a function of the inner part")

    def inside(self, statements: list[ast.stmt]) -> tuple[Statement, ...]:
        """The statements of a block; afterwards ``scope`` is the scope at the end of the block."""
        outer, self.body = self.body, []
        for node in statements:
            self.nested(node)
            self.statement(node)
            self.blocks -= 1
        result, self.body = self.body, outer
        return tuple(result)

    def branch(self, node: ast.If) -> None:
        """``if`` with ``elif`` and ``else``."""
        test, scope, at = self.truth(node.test), self.scope, self.place(node)
        ends = []
        for block in (node.body, node.orelse):
            self.scope = dict(scope)
            ends.append((self.inside(block), self.scope))
        self.scope = scope
        names, needed = assigned_names([node]), self.liveness.needed[node]
        joined = [n for n in names if n in needed and all(_is_bound(s, n) for _, s in ends)]
        for name in names:
            scope[name] = _unbound_after_branch(name, at, [end for _, end in ends])
        on_true, on_false = [
            Block(block, tuple(_bound_name(end, n, at) for n in joined)) for block, end in ends
        ]
        targets = tuple(self.bind(node, name) for name in joined)
        if targets:
            self.body.append(Branch(targets, test, on_true, on_false, at, tuple(joined)))

    def loop(self, node: Loop) -> None:
        """``while`` and counted ``for``."""
        if node.orelse:
            raise self.error(node.orelse[0], "a loop has no else: without break it always runs")
        at = self.place(node)
        bounds = self.bounds(node) if isinstance(node, ast.For) else None
        names, needed, scope = assigned_names([node]), self.liveness.needed[node], self.scope
        carried = [n for n in names if n in needed and _is_bound(scope, n)]
        initial = tuple(_bound_name(scope, name, at) for name in carried)
        self.scope = scope | {
            n: _Unbound(_unbound_before_loop(n, at)) for n in names if n not in carried
        }
        params = tuple(self.bind(node, name) for name in carried)
        index, test = "", None
        if isinstance(node, ast.For):
            counter = self.counter(node)
            index = self.bind(counter, counter.id)
        else:
            test = self.truth(node.test)
            if type(test) is Literal and test.value:
                raise self.error(node.test, f"the loop would never end\n  {_ENDLESS}")
        body = self.inside(node.body)
        block = Block(body, tuple(self.meaning(node, name) for name in carried))
        self.scope = scope
        for name in names:
            scope[name] = _Unbound(_unbound_after_loop(name, at))
        targets = tuple(self.bind(node, name) for name in carried)
        if not targets:  # the loop has no visible result
            return
        if isinstance(node, ast.For):
            self.body.append(
                ScriptFor(targets, params, initial, index, bounds, block, at, tuple(carried))
            )
        else:
            self.body.append(ScriptWhile(targets, params, initial, test, block, at, tuple(carried)))

    def bounds(self, node: ast.For) -> tuple[Term, Term, Term]:
        """(start, stop, step) of ``range(...)``."""
        call = node.iter
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise self.error(call, _COUNTED)
        if call.func.id != "range" or self.local(call.func) is not None:
            raise self.error(call, _COUNTED)
        if call.keywords or not 1 <= len(call.args) <= 3:
            raise self.error(call, "range takes one to three integers: range(start, stop, step)")
        self.counter(node)
        terms, at = [self.term(arg) for arg in call.args], self.place(call)
        if len(terms) == 1:
            return Literal(0, at), terms[0], Literal(1, at)
        return terms[0], terms[1], terms[2] if len(terms) == 3 else Literal(1, at)

    def counter(self, node: ast.For) -> ast.Name:
        """The name by which a loop counts."""
        if not isinstance(node.target, ast.Name):
            raise self.error(node.target, "a loop counts by one name: for i in range(n)")
        return node.target

    # ---- truth values ----

    def truth(self, node: ast.expr) -> Term:
        """A term whose truth value is tested."""
        match node:
            case ast.BoolOp(op=op, values=values):
                word, operands = "and" if isinstance(op, ast.And) else "or", values
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                word, operands = "not", [operand]
            case _:
                return self.term(node)
        at, depth = self.place(node), self.blocks
        for operand in operands:  # each is evaluated only if the previous one requires it
            self.nested(operand)
        result = Logic(word, tuple(map(self.truth, operands)), at)
        self.blocks = depth
        return result

    def choice(self, node: ast.IfExp) -> Choice:
        """``a if test else b``."""
        self.nested(node)
        parts = self.truth(node.test), self.term(node.body), self.term(node.orelse)
        self.blocks -= 1
        return Choice(*parts, self.place(node))


def _bound_name(scope: dict[str, str | _Unbound], name: str, at: TextPosition) -> Name:
    """The value of a name that is bound in this scope."""
    result = scope[name]
    assert type(result) is str
    return Name(result, at)


def _is_bound(scope: dict[str, str | _Unbound], name: str) -> bool:
    """Whether a name has a value in this scope."""
    return type(scope.get(name)) is str


def _unbound_after_branch(name: str, at: TextPosition, ends: list[dict]) -> _Unbound:
    """The reason why a name has no value after a branch, or after an inner branch."""
    inner = next((end[name] for end in ends if type(end.get(name)) is _Unbound), None)
    return inner or _Unbound(
        f"{name!r} is assigned in only one branch of the if at line {at.line}\n"
        "  give it a value before, or in both"
    )


def _unbound_before_loop(name: str, at: TextPosition) -> str:
    """The reason why a name has no value in the first step of a loop."""
    return f"{name!r} has no value before the loop at line {at.line}: give it one there"


def _unbound_after_loop(name: str, at: TextPosition) -> str:
    """The reason why a name has no value after a loop."""
    return (
        f"{name!r} is assigned only inside of the loop at line {at.line}, which may run no times\n"
        "  give it a value before the loop"
    )

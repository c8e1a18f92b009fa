"""Scripts as text: as the user wrote them, and after lambda lifting [semantics.md G1].

``source_of_function`` writes a function from its syntax tree, without comments and layout.
``lifted_text`` writes its two closed functions, with every operation by name; the captured values
are a tuple, the last result of the first function and the first parameter of the second.
"""

import ast
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from letir.ast.primitive import PRIMITIVES
from letir.scripting.frontend.vocabulary import meaning_of_word
from letir.scripting.script_terms import (
    GROUP,
    SCALAR,
    STATIC,
    Apply,
    Assign,
    Block,
    Branch,
    Choice,
    Group,
    Literal,
    Logic,
    Name,
    Param,
    ScriptFor,
    ScriptFunction,
    ScriptWhile,
    Slice,
    Statement,
    Subscript,
    Term,
    names_bound,
    names_in,
    parts_of,
)

_NUMBER_QUESTIONS = frozenset(["ndim", "count", "len"])


# ---- before lifting ----


def source_of_function(function: ScriptFunction) -> str:
    """The function in Python syntax.

    >>> from letir.scripting.units import script
    >>> print(script("def twice(x): return x+x").code, end="")
    def twice(x):
        return x + x
    """
    return "".join(f"{line}\n" for line in _definition(function.tree))


def _definition(node: ast.FunctionDef) -> list[str]:
    arrow = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    lines = [f"def {node.name}({ast.unparse(node.args)}){arrow}:"]
    for statement in node.body:
        lines += [f"    {line}" for line in _statement(statement)]
    return lines


def _statement(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef):
        return _definition(node)
    if isinstance(node, ast.Return):
        return [f"return {_expression_text(node.value)}"]
    if isinstance(node, ast.Assign):
        return [f"{_expression_text(node.targets[0])} = {_expression_text(node.value)}"]
    return ast.unparse(node).splitlines()


def _expression_text(node: ast.expr) -> str:
    """An expression; a tuple of several parts without parentheses."""
    if isinstance(node, ast.Tuple) and len(node.elts) > 1:
        return ", ".join(map(ast.unparse, node.elts))
    return ast.unparse(node)


# ---- constants ----


def _constant_names(function: ScriptFunction) -> set[str]:
    """The names computed from constants alone: they are not part of the context."""
    constants: set[str] = set()
    for statement in function.body:
        if type(statement) is Assign and _is_constant(statement.value, constants):
            constants.update(statement.targets)
    return constants


def _is_constant(term: Term, constants: set[str]) -> bool:
    """Whether a term is computed from numbers alone; ``constants``: the names of such values."""
    match term:
        case Name(id=name):
            return name in constants
        case Literal():
            return True
        # only elementwise operations turn numbers into numbers; others make arrays
        case Apply(is_script=False, function=function, args=args) if args:
            record = PRIMITIVES.get(function)
            if record is None or not record.elementwise:
                return False
    return type(term) is not Slice and all(_is_constant(part, constants) for part in parts_of(term))


# ---- after lifting ----


class LiftedPrinter:
    """Writes a function after lifting.

    ``others``: words that are names of values or scripts in the text, not of operations.
    """

    def __init__(self, function: ScriptFunction, others: Collection[str] = ()):
        self.function, self.others = function, others
        self.types: dict[str, str] = {}
        self.constants = _constant_names(function)
        # in order of first use [semantics.md G1]
        captured = () if function.inner is None else function.inner.captured
        self.context = tuple(name for name in captured if name not in self.constants)

    def text(self) -> str:
        """The function, and its backward if it has one."""
        forward = self.definition(self.function, None)
        inner = self.function.inner
        return forward if inner is None else forward + self.definition(inner, self.context)

    def definition(self, function: ScriptFunction, context: tuple[str, ...] | None) -> str:
        """One closed function; ``context``: the captured values that it gets as a tuple."""
        params = [self.param(param) for param in function.params]
        lines = []
        if context is not None:
            name = self.context_name(function)
            params.insert(0, f"{name}: {_tuple_type([self.types[n] for n in context])}")
            if context:
                lines.append(f"{''.join(f'{n}, ' for n in context)}= {name}")
            # the backward computes constants again: they are not in the context [semantics.md G1]
            lines += map(self.assign, self.constants_of(function))
        lines += self.statements(function.body)
        result, kind = self.results(function)
        lines.append(f"return {result}")
        head = f"def {function.name}({', '.join(params)}) -> {kind}:\n"
        return head + "".join(f"  {line}\n" for line in lines)

    def constants_of(self, inner: ScriptFunction) -> list[Assign]:
        """The assignments of the constants that a backward uses."""
        needed = set(inner.captured)
        result: list[Assign] = []
        # from the last to the first: uses are seen before assignments, so that one pass is enough
        for statement in reversed(self.function.body):
            is_needed = needed.intersection(statement.targets)
            if type(statement) is Assign and is_needed and statement.targets[0] in self.constants:
                result.append(statement)
                needed.update(names_in(statement.value))
        return result[::-1]

    def context_name(self, function: ScriptFunction) -> str:
        """The name ``context``, unless the user's code has that name."""
        name = "context"
        used = {*self.types, *(param.name for param in function.params)}
        while name in used:
            name += "_"
        return name

    def param(self, param: Param) -> str:
        """``name: type``, with its default."""
        kind = self.types[param.name] = _type_of_param(param)
        default = "" if param.default is None else f" = {self.term(param.default)}"
        return f"{param.name}: {kind}{default}"

    def assign(self, statement: Assign) -> str:
        """An assignment."""
        value, targets = statement.value, statement.targets
        if not statement.unpacks:
            self.types[targets[0]] = self.type(value)
        elif type(value) is Group:
            self.types |= zip(targets, map(self.type, value.items), strict=True)
        else:
            self.types |= dict.fromkeys(targets, "Tensor")
        left = "".join(f"{name}, " for name in targets) if statement.unpacks else f"{targets[0]} "
        return f"{left}= {self.term(value)}"

    def statements(self, statements: Iterable[Statement]) -> list[str]:
        """The lines of statements."""
        lines = []
        for statement in statements:
            match statement:
                case Assign():
                    lines.append(self.assign(statement))
                case Branch():
                    lines += self.branch(statement)
                case _:
                    lines += self.loop(statement)
        return lines

    def branch(self, statement: Branch) -> list[str]:
        """``if``, whose blocks assign the targets."""
        targets = statement.targets
        return [
            f"if {self.term(statement.test)}:",
            *self.block(targets, statement.on_true),
            "else:",
            *self.block(targets, statement.on_false),
        ]

    def block(self, targets: Iterable[str], block: Block) -> list[str]:
        """The lines of a block and of its results."""
        lines = [*self.statements(block.body), *self.aliases(targets, block.results)]
        return [f"  {line}" for line in lines]

    def aliases(self, names: Iterable[str], terms: Iterable[Term]) -> list[str]:
        """Lines that assign values to further names."""
        lines = []
        for name, term in zip(names, terms, strict=True):
            self.types.setdefault(name, self.type(term))
            lines.append(f"{name} = {self.term(term)}")
        return lines

    def loop(self, statement: ScriptWhile | ScriptFor) -> list[str]:
        """A loop, with the carried values under their names before, inside and after it."""
        params, targets = statement.params, statement.targets
        lines = self.aliases(params, statement.initial)
        self.types |= {target: self.types[p] for target, p in zip(targets, params, strict=True)}
        if type(statement) is ScriptFor:
            bounds = ", ".join(map(self.term, statement.bounds))
            lines.append(f"for {statement.index} in range({bounds}):")
        else:
            lines.append(f"while {self.term(statement.test)}:")
        lines += self.block(params, statement.block)
        return lines + [f"{t} = {p}" for t, p in zip(targets, params, strict=True)]

    def results(self, function: ScriptFunction) -> tuple[str, str]:
        """(returned expression, its type)."""
        inner, results = function.inner, function.results
        if inner is None:
            return self.term(results), self.type(results)
        items: Sequence[Term] = [results]
        if type(results) is Group and len(inner.params) > 1:
            items = results.items
        texts = [*map(self.term, items), _tuple_text(self.context)]
        types = [*map(self.type, items), _tuple_type([self.types[n] for n in self.context])]
        return _tuple_text(texts), _tuple_type(types)

    # ---- terms ----

    def term(self, term: Term | None) -> str:
        """The text of a term."""
        return "" if term is None else _WRITERS[type(term)](self, term)

    def apply(self, term: Apply) -> str:
        """``operation(argument, name=argument)``."""
        word = term.function
        if not term.is_script and word not in PRIMITIVES and "." in word:
            word = f"np.{word}"  # linalg.norm: dotted words are NumPy's, unless a user defined them
        elif not term.is_script and word in self.others:
            word = f"lt.{word}"
        args = [self.term(arg) for arg in term.args]
        args += [f"{name}={self.term(value)}" for name, value in term.keywords]
        return f"{word}({', '.join(args)})"

    def logic(self, term: Logic) -> str:
        """``(a and b)``."""
        operands = list(map(self.term, term.operands))
        if term.word == "not":
            return f"(not {operands[0]})"
        return f"({f' {term.word} '.join(operands)})"

    def part(self, term: Subscript) -> str:
        """``value[item]``."""
        item = self.term(term.item)
        if type(term.item) is Group and len(term.item.items) > 0:
            item = item[1:-1]
        return f"{self.term(term.value)}[{item}]"

    def type(self, term: Term) -> str:
        """The type of a term, as an annotation."""
        match term:
            case Literal(value=value):
                return _literal_type(value)
            case Group(items=items):
                return _tuple_type([self.type(item) for item in items])
            case Name(id=name):
                return self.types.get(name, "Tensor")
            case Apply(function="size", args=args, keywords=keywords):
                return "int" if len(args) + len(keywords) > 1 else "List[int]"
            case Apply(function=function) if function in _NUMBER_QUESTIONS:
                return "int"
            case Apply(function="dtype"):
                return "dtype"
            case Subscript(value=value):
                return "int" if self.type(value) == "List[int]" else "Tensor"
            case Apply(args=args) if args and not term.is_script:
                avals = {self.type(arg) for arg in args}
                # the longer word: float if both occur
                return "Tensor" if avals - {"int", "float"} else max(avals, key=len)
        return "Tensor"


def _literal_text(value) -> str:
    """A constant in the syntax of scripts."""
    if isinstance(value, np.dtype):
        return value.name
    return "..." if value is ... else repr(value)


def _literal_type(value) -> str:
    """The annotation of a constant."""
    return {type(None): "None", type(...): "Tensor"}.get(
        type(value), "dtype" if isinstance(value, np.dtype) else type(value).__name__
    )


def _type_of_param(param: Param) -> str:
    """The annotation of a parameter: the user's own if there is one."""
    if param.annotation is not None:
        return param.annotation
    if param.kind in (SCALAR, STATIC):
        default = param.default
        if type(default) is Literal and default.value is not None:
            return _literal_type(default.value)
        return "Optional[List[int]]"
    return "Tuple[Tensor, ...]" if param.kind == GROUP else "Tensor"


def _tuple_text(items: Collection[str]) -> str:
    """``(a, b)``, ``(a,)``, ``()``."""
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _tuple_type(items: Collection[str]) -> str:
    """``Tuple[...]`` of these types."""
    return f"Tuple[{', '.join(items) or '()'}]"


_WRITERS = {
    Name: lambda self, term: term.id,
    Literal: lambda self, term: _literal_text(term.value),
    Apply: LiftedPrinter.apply,
    Group: lambda self, term: _tuple_text([self.term(item) for item in term.items]),
    Subscript: LiftedPrinter.part,
    Slice: lambda self, term: ":".join(map(self.term, term.ends)).removesuffix(":"),
    Choice: lambda self, term: (
        f"({self.term(term.on_true)} if {self.term(term.test)} else {self.term(term.on_false)})"
    ),
    Logic: LiftedPrinter.logic,
}


def lifted_text(function: ScriptFunction, scripts: Collection[str] = ()) -> str:
    """The text of a function after lambda lifting, which is again a script."""
    is_lifted = any(param.kind == GROUP for param in function.params)
    locals_ = {name for name in _names_of(function) if meaning_of_word(name)}
    others = {
        word
        for word in scripts
        if word != function.name and meaning_of_word(word) and not is_lifted
    }
    return LiftedPrinter(function, others | locals_).text()


def _names_of(function: ScriptFunction) -> set[str]:
    """The names that a function and its backward bind."""
    result = {param.name for param in function.params}
    result.update(names_bound(function.body))
    return result if function.inner is None else result | _names_of(function.inner)

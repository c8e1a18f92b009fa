"""Python expressions as terms: operators, methods and functions all become ``Apply``.

``ExpressionReader`` is the base of ``FunctionReader``. Unsupported syntax is an error with line,
column and a remedy.
"""

import ast
from collections.abc import Callable, Iterable

from letir.ast.primitive import Primitive
from letir.scripting.frontend.script_names import LITERALS, NameReader
from letir.scripting.frontend.source_text import ScriptText
from letir.scripting.frontend.vocabulary import (
    KEYWORDS,
    OPERATORS,
    PYTHON_FUNCTIONS,
    Meaning,
    known_words,
    meaning_of_word,
)
from letir.scripting.script_terms import (
    Apply,
    Group,
    Literal,
    Logic,
    Name,
    Slice,
    Subscript,
    Term,
    TextPosition,
)
from letir.tracing.numpy_protocols.dispatch import recorder_of

_MAX_NESTED = 150  # levels of nested expressions, which use Python's stack
_ATTRIBUTES = frozenset(["T", "shape", "real", "imag", "ndim", "dtype"])
_REMEDIES: dict[type, str] = {
    ast.Lambda: "a function is written with def",
    ast.NamedExpr: "an assignment is a separate statement",
    ast.Await: "a script cannot wait",
    ast.JoinedStr: "text is a plain string",
}
_SEQUENCES = "a loop is a statement: for i in range(n)"
_REMEDIES |= dict.fromkeys((ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), _SEQUENCES)


class ExpressionReader(NameReader):
    """Reads expressions of one function, with the names and scripts of ``NameReader``."""

    def __init__(self, text: ScriptText, scripts, own: str):
        super().__init__(text, scripts, own)
        self.depth = 0
        self.lists: set[str] = set()  # names of lists of integers, other than tuples as indices

    def term(self, node: ast.expr) -> Term:
        """An expression as a term."""
        read = _EXPRESSIONS.get(type(node))
        if read is None:
            kind = type(node).__name__
            remedy = _REMEDIES.get(type(node))
            raise self.error(
                node, remedy or f"a script cannot contain an expression of kind {kind}"
            )
        self.depth += 1
        if self.depth > _MAX_NESTED:
            raise self.error(node, "nested too deeply: give parts of it names")
        result = read(self, node)  # an error ends reading, so ``blocks`` need not be restored
        self.depth -= 1
        return result

    def constant(self, node: ast.Constant) -> Literal:
        """A number, a string, None or ``...``."""
        value = node.value
        if type(value) not in LITERALS:
            raise self.error(node, f"{value!r} is not a number, a string or None")
        if type(value) is int and value >= 1 << 64:
            raise self.error(node, "the integer does not fit into 64 bits")
        return Literal(value, self.place(node))

    # ---- operators ----

    def apply(self, node: ast.expr, word: str, *args: ast.expr) -> Apply:
        """``word`` applied to operands."""
        return Apply(word, tuple(map(self.term, args)), (), False, self.place(node))

    def binary(self, node: ast.BinOp) -> Term:
        """A binary operator such as ``x + y``."""
        word = OPERATORS.get(type(node.op).__name__)
        if word is None:
            raise self.error(
                node, "<< and >> are not supported in scripts: multiply by powers of 2"
            )
        return self.apply(node, word, node.left, node.right)

    def unary(self, node: ast.UnaryOp) -> Term:
        """A unary operator such as ``-x``; on a number it gives a number."""
        word = OPERATORS.get(type(node.op).__name__)
        if word is None:  # not
            return self.truth(node)
        result = self.apply(node, word, node.operand)
        (operand,) = result.args
        if type(node.op) is ast.USub and _is_number(operand):  # -1 is an operator in Python
            return Literal(-operand.value, result.at)
        return result

    def truth(self, node: ast.expr) -> Term:
        """A term whose truth value is tested."""
        raise NotImplementedError("FlowReader, a subclass, implements this")

    def choice(self, node: ast.IfExp) -> Term:
        """``a if test else b``."""
        raise NotImplementedError("FlowReader, a subclass, implements this")

    def logic(self, node: ast.BoolOp) -> Term:
        """``a and b`` of comparisons; on other values the result would be one of the operands."""
        if not _is_truth(node):
            raise self.error(
                node, "'and' and 'or' ask for a truth value: write x & y, x | y, or compare"
            )
        return self.truth(node)

    def comparison(self, node: ast.Compare) -> Term:
        """One comparison."""
        if isinstance(node.ops[0], ast.Is | ast.IsNot) and len(node.ops) == 1:
            return self.identity(node)
        word = OPERATORS.get(type(node.ops[0]).__name__)
        if word is None or len(node.ops) > 1:
            raise self.error(node, "compare two values with one of == != < <= > >=")
        return self.apply(node, word, node.left, node.comparators[0])

    def identity(self, node: ast.Compare) -> Term:
        """``x is None``, ``x is not None``."""
        (other,) = node.comparators
        if not (isinstance(other, ast.Constant) and other.value is None):
            raise self.error(node, "'is' compares with None: write x is None, or x == y")
        result, at = self.apply(node, "is_none", node.left), self.place(node)
        return Logic("not", (result,), at) if isinstance(node.ops[0], ast.IsNot) else result

    # ---- parts and tuples ----

    def group(self, node: ast.Tuple | ast.List) -> Group:
        """A tuple or a list."""
        return Group(tuple(map(self.term, node.elts)), self.place(node))

    def part(self, node: ast.Subscript) -> Subscript:
        """``x[item]``."""
        item = self.term(node.slice)
        if isinstance(node.slice, ast.List) or (type(item) is Name and item.id in self.lists):
            item = Group((item,), item.at)  # x[[0, 1]] selects rows, x[0, 1] is an element
        return Subscript(self.term(node.value), item, self.place(node))

    def slice(self, node: ast.Slice) -> Slice:
        """``start:stop:step``."""
        ends = (node.lower, node.upper, node.step)
        return Slice(tuple(None if n is None else self.term(n) for n in ends), self.place(node))

    def attribute(self, node: ast.Attribute) -> Term:
        """``x.T``, ``np.pi``."""
        path = self.module_path(node)
        if path is not None:
            return self.module_constant(node, path)
        if node.attr not in _ATTRIBUTES:
            suggestion = (
                f"x.{node.attr}()" if meaning_of_word(node.attr) else ", ".join(sorted(_ATTRIBUTES))
            )
            remedy = (
                "x.size() is the shape, x.numel() counts" if node.attr == "size" else suggestion
            )
            raise self.error(node, f"a value has no attribute {node.attr!r}: {remedy}")
        meaning = meaning_of_word(node.attr)
        return self.apply(node, meaning.name, node.value)

    # ---- calls ----

    def call(self, node: ast.Call) -> Term:
        """A method, a function of a module, an operation, or another script."""
        at, function = self.place(node), node.func
        for word in node.keywords:
            if word.arg is None:
                raise self.error(word.value, "** is not supported in scripts: name each argument")
        if isinstance(function, ast.Name):
            return self.named_call(node, function)
        if not isinstance(function, ast.Attribute):
            raise self.error(function, "only functions with a name can be called")
        path = self.module_path(function)
        if path is not None:
            return self.operation(node, path, node.args, at)
        return self.operation(node, function.attr, [function.value, *node.args], at, True)

    def named_call(self, node: ast.Call, function: ast.Name) -> Term:
        """A call of a plain name."""
        at, word = self.place(node), function.id
        if self.local(function) is not None:
            raise self.error(function, f"{word!r} is a value, not a function")
        if word in self.scripts and not (self.means_operations(word) and meaning_of_word(word)):
            args = tuple(map(self.term, node.args))
            return Apply(word, args, self.keywords(node, None), True, at)
        # the object of this name in the user's file, also under an alias
        value = self.text.names.get(word)
        # without names the script was given as text
        if word in PYTHON_FUNCTIONS and value is None and self.text.names:
            self.refuse_pythons(node, word)
        if isinstance(value, Primitive):
            word = value.name
        elif value is not None and not _is_recorded(value):
            raise self.error(function, f"{word!r} is neither a script nor an operation of letir")
        elif value is not None:
            word = value.__name__
        return self.operation(node, word, node.args, at)

    def refuse_pythons(self, node: ast.Call, word: str) -> None:
        """Raise for a call of Python's own ``sum``, ``max``, ``min`` or ``round`` in a Python
        function that the operation of this name would compute differently.
        """
        is_list = bool(node.args) and isinstance(node.args[0], ast.List | ast.Tuple)
        is_same = len(node.args) == (2 if word == "round" else 1) and word != "sum"
        if not node.keywords and (is_list or not is_same):  # keywords are those of the operation
            raise self.error(node, f"this is Python's {word}\n  {PYTHON_FUNCTIONS[word]}")

    def means_operations(self, word: str) -> bool:
        """Whether a word means an operation here, although there is a script of that name."""
        return self.is_lifted or word == self.own

    def operation(
        self,
        node: ast.Call,
        word: str,
        args: Iterable[ast.expr],
        at: TextPosition,
        is_method: bool = False,
    ) -> Apply:
        """An operation on these arguments, after checking that it accepts them."""
        result = meaning_of_word(word)
        if result is None:
            raise self.unknown(
                node.func, word, known_words(), "docs/operations.md lists the operations"
            )
        terms = tuple(map(self.term, args))
        if is_method and result.spreads and len(terms) > 2:
            # x.reshape(2, 3) is x.reshape((2, 3))
            terms = (terms[0], Group(terms[1:], terms[1].at))
        keywords = self.keywords(node, result)
        self.check_call(node, result, terms, keywords)
        return Apply(result.name, terms, keywords, False, at)

    def keywords(self, node: ast.Call, meaning: Meaning | None) -> tuple:
        """The keyword arguments under the operation's own names."""
        parameters = (
            () if meaning is None or meaning.signature is None else meaning.signature.parameters
        )
        named = []
        for word in node.keywords:
            other = KEYWORDS.get(word.arg)
            # ``dim`` for ``axis``
            name = other if other in parameters and word.arg not in parameters else word.arg
            named.append((name, self.term(word.value)))
        return tuple(named)

    def check_call(self, node: ast.Call, meaning: Meaning, terms: tuple, keywords: tuple) -> None:
        """Raise ParseError if the operation does not accept this number of arguments or names."""
        if meaning.signature is None:
            return
        try:
            # only the number and the names are checked; values are known later
            meaning.signature.bind(*terms, **dict(keywords))
        except TypeError as reason:
            raise self.error(node, f"{meaning.name}: {reason}") from None


def _is_truth(node: ast.expr) -> bool:
    """Whether an expression is a truth value by its form."""
    match node:
        case ast.BoolOp(values=values):
            return all(map(_is_truth, values))
        case ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Constant(value=value):
            return type(value) is bool
    return isinstance(node, ast.Compare)


def _is_number(term: Term) -> bool:
    return type(term) is Literal and type(term.value) in (int, float, complex)


def _is_recorded(value) -> bool:
    """Whether an object is a NumPy function that letir records."""
    try:
        return callable(value) and recorder_of(value) is not None
    except TypeError:
        return False


_EXPRESSIONS: dict[type, Callable] = {
    ast.Constant: ExpressionReader.constant,
    ast.Name: ExpressionReader.name,
    ast.BinOp: ExpressionReader.binary,
    ast.UnaryOp: ExpressionReader.unary,
    ast.Compare: ExpressionReader.comparison,
    ast.Tuple: ExpressionReader.group,
    ast.List: ExpressionReader.group,
    ast.Subscript: ExpressionReader.part,
    ast.Slice: ExpressionReader.slice,
    ast.Attribute: ExpressionReader.attribute,
    ast.Call: ExpressionReader.call,
    # methods of classes further on
    ast.IfExp: lambda reader, node: reader.choice(node),
    ast.BoolOp: lambda reader, node: reader.logic(node),
}

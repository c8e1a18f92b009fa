"""Python syntax trees as ``ScriptFunction`` terms: statements with at most one inner function.

Every name is bound once in the result. The names that an inner function captures are collected in
the order of their first use [semantics.md G1].
"""

import ast
from collections.abc import Collection

from letir.scripting.control_flow.analysis import FLOW, FlowReader
from letir.scripting.control_flow.script_liveness import Liveness, Loop
from letir.scripting.control_flow.unread_targets import without_unread_targets
from letir.scripting.frontend.source_text import ScriptText
from letir.scripting.script_terms import (
    GROUP,
    SCALAR,
    SHAPE,
    STATIC,
    TENSOR,
    Apply,
    Assign,
    Choice,
    Group,
    Literal,
    Name,
    Param,
    ScriptFunction,
    Statement,
    Term,
    names_in,
)

_TENSORS = frozenset(["Tensor", "Array", "ndarray", "NDArray", "ArrayLike", "Value", "Variable"])
_SCALARS = frozenset(["float", "complex", "number", "Number", "Scalar"])
_STATICS = frozenset(["int", "bool", "str", "dtype", "List", "list", "Sequence", "Shape"])
_TUPLES = frozenset(["Tuple", "tuple"])
_SEVERAL = frozenset(["split", "array_split"])  # operations with several results
_STATEMENTS: dict[type, str] = {
    **FLOW,
    ast.AugAssign: "a script changes nothing in place: write x = x + y",
    ast.Expr: "the value of this expression is not used: give it a name",
    ast.ClassDef: "a script has functions only",
    ast.Delete: "names need not be deleted: a value is freed at its last use",
    ast.Assert: "a script cannot assert: check before it is called",
    ast.Raise: "a script cannot raise: check before it is called",
    ast.Global: "a script has no globals: make it a parameter",
    ast.Nonlocal: "a captured name cannot be assigned to: return the value instead",
    ast.Import: "a script imports nothing: it knows letir's operations and np",
    ast.ImportFrom: "a script imports nothing: it knows letir's operations and np",
}


class FunctionReader(FlowReader):
    """Reads one function. ``outer`` reads the function around it, if there is one."""

    def __init__(self, text: ScriptText, scripts: Collection[str], own: str, outer=None):
        super().__init__(text, scripts, own)
        self.outer: FunctionReader | None = outer
        self.taken: dict[str, int] = outer.taken if outer else {}  # names, last number given
        self.captured: dict[
            str, None
        ] = {}  # an ordered set, in the order of the context [semantics.md G1]
        self.inner: ast.FunctionDef | None = None

    def function(
        self, node: ast.FunctionDef, gradients: "Gradients | None" = None
    ) -> ScriptFunction:
        """The function of this syntax tree. ``gradients``: the required results of a backward."""
        if node.decorator_list and not self.text.names and self.outer is None:
            raise self.error(
                node.decorator_list[0], "a script that is a string cannot have decorators"
            )
        params = self.params(node.args)
        self.is_lifted = any(param.kind == GROUP for param in params)
        returned = self.statements(node)
        # before the inner function, which may see all names
        results, inner = self.results(node, returned), None
        if gradients is not None:
            gradients.check(self, results)
        if self.inner is not None:
            assert type(results) is Group  # ``results`` returns a literal tuple
            inner = self.backward(params, results)
            results = results.items[0] if len(results.items) == 1 else results
        read = [*names_in(results), *(inner.captured if inner else ())]
        return ScriptFunction(
            node.name,
            params,
            without_unread_targets(self.body, read),
            results,
            inner,
            tuple(self.captured),
            node,
            self.place(node),
            self.text.file,
        )

    def backward(self, params: tuple[Param, ...], results: Group) -> ScriptFunction:
        """The inner function, read once all names of this function are known."""
        node = self.inner
        reader = FunctionReader(self.text, self.scripts, node.name, self)
        reader.lists |= self.lists
        count = len(node.args.posonlyargs) + len(node.args.args)
        if count != len(results.items):
            raise self.error(
                node,
                f"{node.name!r} takes one gradient for each of {len(results.items)} results, "
                f"found {count} parameters",
            )
        return reader.function(node, Gradients(params))

    # ---- names ----

    def local(self, node: ast.Name) -> Name | None:
        name, outer = node.id, self.outer
        for reader in (self, outer):
            inner = None if reader is None else reader.inner
            if inner is not None and inner.name == name and name not in reader.scope:
                message = f"the inner function {name!r} is returned, and used nowhere else"
                raise self.error(node, message)
        if name in self.scope:
            return self.meaning(node, name)
        if outer is None or name not in outer.scope:
            return None
        result = outer.meaning(node, name)
        self.captured[result.id] = None  # the name in terms, not the user's name
        return result

    def means_operations(self, word: str) -> bool:
        # a backward stands inside of its function, whose name is an operation there too
        is_outer = self.outer is not None and word == self.outer.own
        return is_outer or super().means_operations(word)

    def names(self) -> list[str]:
        return [*self.scope, *(self.outer.scope if self.outer else ())]

    def bind(self, node: ast.AST, name: str) -> str:
        """A fresh name for a value that the user's code binds to ``name`` here."""
        if self.outer is not None and name in self.outer.scope:
            raise self.error(
                node, f"assigning to the captured name {name!r}\n  take another name inside"
            )
        return self.fresh(name)

    def fresh(self, name: str) -> str:
        """``name``, with a number appended if it is taken."""
        result = name
        while result in self.taken:  # counts on from the last number
            self.taken[name] += 1
            result = f"{name}_{self.taken[name]}"
        self.taken[result] = 0  # a later x_1 of the user's code becomes x_1_1
        self.scope[name] = result
        return result

    # ---- parameters ----

    def params(self, args: ast.arguments) -> tuple[Param, ...]:
        """The parameters, with kinds from annotations and defaults."""
        for star in (args.vararg, args.kwarg):
            if star is not None:
                raise self.error(star, "a script has a fixed number of parameters, no * and **")
        positional = [*args.posonlyargs, *args.args]
        missing = [None] * (len(positional) - len(args.defaults))
        # defaults belong to the last parameters
        defaults = [*missing, *args.defaults, *args.kw_defaults]
        pairs = []
        for node, default in zip([*positional, *args.kwonlyargs], defaults, strict=True):
            value = None if default is None else self.term(default)
            if value is not None and not _is_constant(value):
                raise self.error(default, "a default is a number, a string, None, or a tuple")
            pairs.append((node, value))
        return tuple(self.param(node, value) for node, value in pairs)

    def param(self, node: ast.arg, default: Term | None) -> Param:
        """One parameter."""
        if node.arg in self.scope:
            raise self.error(node, f"the parameter {node.arg!r} appears twice")
        kind, text, parts = _kind_of_default(default), None, None
        if node.annotation is not None:
            text = ast.unparse(node.annotation)
            kind = self.annotated(node.annotation)
            parts = self.parts(_unwrapped_annotation(node.annotation)) if kind == GROUP else None
        name = self.fresh(node.arg)
        if node.annotation is not None and _is_list(node.annotation):
            self.lists.add(name)
        return Param(name, text, default, kind, parts, self.place(node))

    def annotated(self, node: ast.expr) -> str:
        """The parameter kind of an annotation."""
        if isinstance(node, ast.Constant) and type(node.value) is str:
            return self.annotated_text(node)
        base = node.value if isinstance(node, ast.Subscript) else node
        word = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
        if word in _TUPLES and isinstance(node, ast.Subscript):
            return GROUP if self.holds_arrays(node) else STATIC
        if word == "Optional" and isinstance(node, ast.Subscript):
            return self.annotated(node.slice)
        for kind, words in ((TENSOR, _TENSORS), (SCALAR, _SCALARS), (STATIC, _STATICS | _TUPLES)):
            if word in words:
                return kind
        raise self.error(
            node,
            f"unknown annotation {ast.unparse(node)!r}\n"
            "  Tensor is an array, float a number, int, bool, str and List[int] are part of the "
            "script",
        )

    def annotated_text(self, node: ast.Constant) -> str:
        """The parameter kind of an annotation written as a string."""
        try:
            return self.annotated(ast.parse(str(node.value), mode="eval").body)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self.error(node, f"unknown annotation {node.value!r}") from None

    def parts(self, node: ast.Subscript) -> tuple[str, ...] | None:
        """The kinds of the parts of a tuple; None for any number of parts."""
        inside = node.slice
        parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
        if any(isinstance(part, ast.Constant) and part.value is ... for part in parts):
            return None
        return tuple(SHAPE if _is_list(part) else self.annotated(part) for part in parts)

    def holds_arrays(self, node: ast.Subscript) -> bool:
        """Whether the parts of a tuple are arrays, shapes that are values, or groups of those."""
        parts = self.parts(node)
        if parts is None:
            inside = node.slice
            first = inside.elts[0] if isinstance(inside, ast.Tuple) else inside
            return self.annotated(first) != STATIC
        return not parts or any(kind != STATIC for kind in parts)

    # ---- statements ----

    def statements(self, node: ast.FunctionDef) -> ast.Return:
        """Read the body up to the return at its end."""
        self.liveness = Liveness(node)
        for at, statement in enumerate(node.body):
            if isinstance(statement, ast.Return):
                if at + 1 < len(node.body):
                    raise self.error(node.body[at + 1], "nothing can follow return")
                return statement
            self.statement(statement, is_first=at == 0)
        raise self.error(node, f"{node.name!r} returns nothing: it ends with return")

    def statement(self, node: ast.stmt, is_first: bool = False) -> None:
        """Read one statement; skip a docstring."""
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            self.assign(node, node.targets[0], node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self.assign(node, node.target, node.value)
        elif isinstance(node, ast.If):
            self.branch(node)
        elif isinstance(node, Loop):
            self.loop(node)
        elif isinstance(node, ast.FunctionDef):
            self.define(node)
        elif not isinstance(node, ast.Pass) and not (is_first and _is_text(node)):
            kind = type(node).__name__
            remedy = _STATEMENTS.get(
                type(node), f"a script cannot contain a statement of kind {kind}"
            )
            raise self.error(node, remedy)

    def define(self, node: ast.FunctionDef) -> None:
        """Remember the inner function."""
        if self.blocks:
            raise self.error(node, "define the backward outside of branches and loops")
        if self.outer is not None or self.inner is not None:
            raise self.error(node, "a script can have only one inner function, its backward")
        if node.decorator_list:
            raise self.error(node.decorator_list[0], "an inner function has no decorators")
        arguments = node.args
        if arguments.defaults or arguments.kwonlyargs or arguments.vararg or arguments.kwarg:
            raise self.error(
                node, "a backward takes plain parameters, one for each gradient, without defaults"
            )
        self.inner = node

    # ---- results ----

    def results(self, node: ast.FunctionDef, returned: ast.Return) -> Term:
        """The returned terms; with an inner function, from a literal tuple."""
        value, inner = returned.value, self.inner
        if value is None:
            raise self.error(returned, f"{node.name!r} returns nothing: return its results")
        if inner is None:
            return self.term(value)
        items = value.elts if isinstance(value, ast.Tuple) else []
        # a literal tuple shows the results without running the script
        if not items or not (isinstance(items[-1], ast.Name) and items[-1].id == inner.name):
            raise self.error(
                returned,
                f"{node.name!r} must return a literal tuple that ends in its inner function: "
                f"return result, {inner.name}",
            )
        if len(items) == 1:
            raise self.error(returned, f"there is no result: return result, {inner.name}")
        return Group(tuple(map(self.term, items[:-1])), self.place(value))


def _unwrapped_annotation(node: ast.expr) -> ast.Subscript:
    """The annotation of a tuple, which may be written as a string or be optional."""
    while True:
        match node:
            case ast.Constant():
                node = ast.parse(str(node.value), mode="eval").body
            case ast.Subscript(value=ast.Name(id="Optional") | ast.Attribute(attr="Optional")):
                node = node.slice
            case _:
                assert isinstance(node, ast.Subscript)
                return node


class Gradients:
    """The numbers of gradients that a backward may return: for all parameters, or for arrays."""

    def __init__(self, params: tuple[Param, ...]):
        self.params = params

    @property
    def counts(self) -> tuple[int, ...]:
        """The accepted numbers: of all parameters, of non-static ones, of arrays."""
        return tuple(len(group) for group in self.choices)

    @property
    def choices(self) -> tuple[tuple[int, ...], ...]:
        """The positions of parameters that may have a gradient."""
        kinds = [param.kind for param in self.params]
        return (
            tuple(range(len(kinds))),
            tuple(i for i, kind in enumerate(kinds) if kind != STATIC),
            tuple(i for i, kind in enumerate(kinds) if kind in (TENSOR, GROUP)),
        )

    def positions(self, count: int) -> tuple[int, ...] | None:
        """The parameters for ``count`` gradients; None if the number is wrong."""
        return next((group for group in self.choices if len(group) == count), None)

    def check(self, reader: FunctionReader, results: Term) -> None:
        """Raise ParseError if a backward visibly returns a wrong number of gradients."""
        count = len(results.items) if type(results) is Group else 1
        if count in self.counts or _may_be_several(results, reader.body):
            return
        raise reader.error(results.at, self.message(reader.own, count))

    def message(self, name: str, count: int) -> str:
        """The message for a wrong number of gradients."""
        names = ", ".join(param.name for param in self.params)
        return (
            f"{name!r} returns {count} gradients, expected {self.counts[0]}: one for each of "
            f"({names}), None for zero"
        )


def _may_be_several(term: Term, body: list[Statement]) -> bool:
    """Whether a term may be a tuple, as far as its form shows."""
    if type(term) is Choice:
        return True
    if type(term) is Name:
        assignments = [s for s in body if term.id in s.targets]
        plain = [s.value for s in assignments if type(s) is Assign and not s.unpacks]
        return any(type(s) is not Assign for s in assignments) or any(
            type(value) is Group or _may_be_several(value, []) for value in plain
        )
    return type(term) is Apply and (term.is_script or term.function in _SEVERAL)


def _kind_of_default(default: Term | None) -> str:
    """The kind of a parameter without an annotation."""
    if type(default) is Group:
        return STATIC
    if type(default) is not Literal:
        return TENSOR
    return SCALAR if type(default.value) in (float, complex) else STATIC


def _is_constant(term: Term) -> bool:
    """Whether a term is made of constants."""
    return type(term) is Literal or (type(term) is Group and all(map(_is_constant, term.items)))


def _is_text(node: ast.stmt) -> bool:
    """Whether a statement is a docstring."""
    return isinstance(node, ast.Expr) and type(getattr(node.value, "value", None)) is str


def _is_list(node: ast.expr) -> bool:
    """Whether an annotation is List[...]."""
    base = node.value if isinstance(node, ast.Subscript) else node
    return getattr(base, "id", None) in ("List", "list")

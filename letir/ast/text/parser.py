"""``parse``: from text to a program, the inverse of ``dumps``. The grammar is in docs/language.md.

A recursive descent with regular expressions, a method for each rule of terms; read
``letir.ast.text.lexer`` first, and ``letir.ast.text.value_parser`` for the rules of values. It
recurses once for each level of nesting, never for a bind. Nothing is imported or executed: any text
gives a Lambda or a ParseError.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from attrs import define, field

from letir.ast import entry_point
from letir.ast.attrs import Attrs
from letir.ast.primitive import PRIMITIVES, Primitive, primitive_named
from letir.ast.process_state import paused_gc
from letir.ast.terms import Arg, Bind, Const, Lambda, Local, Ret, Source
from letir.ast.text.literals import TYPE, parse_dtype
from letir.ast.text.named_nodes import classes_by_name
from letir.ast.text.value_parser import ATTRIBUTE, TreeReader
from letir.ast.types import PYTHON_NUMBERS, WEAK, Size, UndefType
from letir.errors import LetirError

_MAX_KEPT = 1 << 14  # characters of a text that is kept for lines and columns in errors
_LIKENESS = 0.75  # of a name to an operation that is suggested instead
_LOCAL_TEXT = r"%(?:0|[1-9][0-9]*+)"
_DOTTED = r"[^\W\d][\w.]*+"
_LOCAL = re.compile(_LOCAL_TEXT)
# A word before a bracket is a type, not a name: `%0: float64[3]` and `%0:x: float64[3]`.
_BINDER = re.compile(
    rf"({_LOCAL_TEXT})(?:\s*+:\s*+({_DOTTED})(?!\s*+\*?\s*+\[))?(?:\s*+:\s*+({TYPE}))?"
)
# `%0: float` with a space, where a name has none: sizes were left out, the dtype is misspelt
_TYPE_LIKE = re.compile(r"\s*+:\s++(?:u?int|float|complex|bool)\w*+")
_OPERATION = re.compile(rf"({_DOTTED})\s*+([(\[])")
_WORD = re.compile(_DOTTED)
_LAMBDA = re.compile(r"lambda(?!\w)")
_RETURN = re.compile(r"return(?!\w)")
_ARROW = re.compile(r"->")
_BETWEEN = re.compile(r"(?:[\s;]++|#[^\n]*+)*+")

# A source line ends at a semicolon only where a term follows, as in an example on one line.
_TAIL = re.compile(
    r"[^\S\n]*+(?P<semicolon>;)?[^\S\n]*+"
    r"(?:#(?:(?P<source>[^\n]*?:[0-9]++)(?=[^\S\n]*;\s*(?:%|return\b|->))|(?P<comment>[^\n]*)))?"
)
_AFTER_BIND = re.compile(r"[\n;}]|->|\Z")
_SOURCE = re.compile(r"(.*?):([0-9]{1,9})(?:: (.*)|\s*+)")  # last, the condition of a guard

# The exact form in which the printer writes most binds; the general rules read all others.
_SIMPLE = re.compile(
    rf"[\s;]*+({_LOCAL_TEXT})(?::({_DOTTED}))?(?:: ({TYPE}))? = ({_DOTTED})"
    rf"\(({_LOCAL_TEXT}(?:, {_LOCAL_TEXT})*)?\)(?:  # ([^\n;]*:[0-9]{{1,9}}))?\n"
)


@entry_point
def parse(
    text: str, *, arrays: Sequence[np.ndarray] | None = None, classes: Iterable[type] = ()
) -> Lambda:
    """The program with this text: ``parse(dumps(f)) == f``.

    Omitted types are unknown. ``arrays``: the arrays for references such as ``float64[3]@0``, given
    by ``load``. ``classes``: trusted dataclasses, attrs classes and named tuples, of which the
    program makes its results; results of other classes that the text names are plain named
    tuples. Raises ParseError with line and column for other texts.

    >>> parse("lambda %0, %1 { %2 = mul(%0, %1); return %2 }")
    lambda %0, %1 {
      %2 = mul(%0, %1)
      return %2
    }
    """
    parser = Parser(text, arrays, classes_by_name(classes))
    try:
        with paused_gc():  # no term becomes garbage before the program does
            fn = parser.program()
    except RecursionError:
        raise parser.error("this is nested too deeply for the rest of Python's stack") from None
    if arrays is None and len(text) <= _MAX_KEPT:
        fn._memo[parsed_text] = text  # the result of ``fn.memo(parsed_text)``
    return fn


def parsed_text(fn: Lambda) -> str:
    """The text that ``fn`` was parsed from; empty if there is none, or it is long."""
    return ""


@define(eq=False)
class _Scope:
    """The locals visible in a body, by their text.

    The body of a ``grad_of`` has an ``outer`` scope; locals used from there are lifted into
    parameters in order of first use.
    """

    bound: dict[str, Local] = field(factory=dict)
    outer: "_Scope | None" = None
    lifted: dict[Local, Local] = field(factory=dict)

    def find(self, key: str) -> Local | None:
        """The local with this text, None if there is none."""
        result = self.bound.get(key)
        if result is None and self.outer is not None:
            captured = self.outer.find(key)
            if captured is not None:
                # at each level on the way: a grad_of captures only from its immediate outer scope
                result = self.bound[key] = self.lifted[captured] = Local(captured.type)
        return result

    def binds(self, key: str) -> bool:
        """Whether a local of this text is bound here or in an outer scope."""
        return key in self.bound or (self.outer is not None and self.outer.binds(key))


class Parser(TreeReader):
    """Reads terms."""

    def __init__(
        self,
        text: str,
        arrays: Sequence[np.ndarray] | None = None,
        trusted: Mapping[str, type] | None = None,
    ):
        super().__init__(text, arrays, trusted)
        self.scope = _Scope()
        self.sources: dict[str | None, Source | None] = {None: None}  # by text
        self.plain: dict[str, tuple[Primitive, Attrs]] = {}  # calls without attributes, by name

    def program(self) -> Lambda:
        """The whole text."""
        if self.text.startswith("%", self.skip()):
            raise self.error(
                "a listing leaves out the types: write the text by letir.dumps(program)"
            )
        self.need(_LAMBDA, "'lambda'")
        fn = self.function()
        if self.skip() < len(self.text):
            self.fail("the end of the text after the program")
        return fn

    def function(self) -> Lambda:
        """``params in TREE out TREE { body }``, in a scope of its own."""
        self.descend()
        # without an outer scope: a lambda is closed, only grad_of captures
        outer_scope, self.scope = self.scope, _Scope()
        params = self.binders() if self.text.startswith("%", self.skip()) else []
        self.enter(params)
        trees = [self.tree_after("in"), self.tree_after("out")]
        self.expect("{")
        binds, ret = self.body(_RETURN, "a bind or 'return'")
        self.scope = outer_scope
        self.depth -= 1
        return Lambda([param for _, param, _ in params], binds, ret, *trees)

    def binders(self) -> list[tuple[str, Local, int]]:
        """Binders, each as (text, local, position)."""
        result = []
        while True:
            at = self.skip()
            match = self.need(_BINDER, "a local such as %0")
            key, name, kind = match.groups()
            if name and not kind and _TYPE_LIKE.fullmatch(self.text[match.end(1) : match.end()]):
                raise self.error(
                    f"{name} is not a type: a type has sizes, float64[3], for a scalar float64[]",
                    match.start(2),
                )
            if self.text.startswith(":", self.skip()):
                self.pos += 1
                self.fail("a name or a type such as float64[3]")
            result.append((key, Local(self.type_at(kind, at), name), at))
            if not self.take(","):
                return result

    def enter(self, binders: list[tuple[str, Local, int]]) -> None:
        """Bind locals in the scope."""
        for key, local, at in binders:
            if self.scope.binds(key):
                raise self.error(f"{key} is bound twice: every local is bound once", at)
            self.scope.bound[key] = local

    def body(self, end: re.Pattern, expected: str) -> tuple[list[Bind], Ret]:
        """Binds up to ``end``, the results after it, and the closing brace."""
        binds: list[Bind] = []
        while True:
            # tried again after every other bind: long programs consist mostly of such lines
            self.simple_binds(binds)
            self.skip(_BETWEEN)
            if self.accept(end):
                break
            binds.append(self.bind(expected))
        ret = Ret(tuple(self.results()))
        self.skip(_BETWEEN)
        self.expect("}")
        return binds, ret

    def simple_binds(self, binds: list[Bind]) -> None:
        """Read consecutive lines such as ``%2: float64[3] = mul(%0, %1)  # model.py:12``.

        The fast path for long programs. It stops at a line of another form, or with a type, source
        or operation that was not seen before: ``bind`` reads that line.
        """
        if self.scope.outer is not None:  # a grad_of: find() has to lift its free locals
            return
        text, bound, match = self.text, self.scope.bound, _SIMPLE.match
        types, plain, sources = self.types, self.plain, self.sources
        while line := match(text, self.pos):
            key, name, kind, op, operands, place = line.groups()
            try:
                args = tuple([bound[arg] for arg in operands.split(", ")]) if operands else ()
                op, attrs = plain[op]
                local = Local(types[kind], name)
            # pos is still before the line: bind reads it, or reports the error
            except KeyError:
                return
            if key in bound:
                return
            bound[key] = local
            # one object per text: lines repeat, and the printer caches by object
            source = sources.get(place) or self.source(place)
            binds.append(Bind((local,), op, args, attrs, source))
            self.pos = line.end()

    def bind(self, expected: str) -> Bind:
        """``binders = op(operands, attributes)`` and the end of its line."""
        binders = self.binders() if self.text.startswith("%", self.pos) else []
        if binders:
            self.expect("=")
            expected = "an operation such as mul(%0, %1)"
        at = self.skip()
        name, bracket = self.need(_OPERATION, expected).groups()
        if bracket == "[":
            op, args, attrs = self.grad_of(name, at)
        else:
            op = self.primitive(name, at)
            args, attributes = self.arguments(op)
            attrs = self.complete(op, attributes, at)
            if not attributes:
                self.plain[name] = op, attrs
        self.enter(binders)
        return Bind(tuple([local for _, local, _ in binders]), op, args, attrs, self.line_end())

    def line_end(self) -> Source | None:
        """The end of a bind, and the source line in its comment."""
        tail = _TAIL.match(self.text, self.pos)
        self.pos = tail.end()
        if tail["semicolon"] is None and not _AFTER_BIND.match(self.text, self.pos):
            self.fail("a new line or ';' after the bind")
        return self.source(tail["source"] or tail["comment"])

    def source(self, comment: str | None) -> Source | None:
        """The source line in a comment, None if there is none."""
        # stripped here: a pattern that tries each end of a run of spaces takes quadratic time
        place = _SOURCE.fullmatch(comment.lstrip()) if comment else None
        if place is None:
            return None
        # text from the comment: a file of this name on this machine may be a different one
        result = self.sources[comment] = Source(
            place[1], int(place[2]), text=(place[3] or "").rstrip()
        )
        return result

    def primitive(self, name: str, at: int) -> Primitive:
        """The registered operation of this name; nothing is imported."""
        try:
            return primitive_named(name)
        except LetirError as error:
            close = difflib.get_close_matches(name, PRIMITIVES.keys(), 1, _LIKENESS)
            meant = f"\n  did you mean {close[0]!r}?" if close else ""
            raise self.error(f"{error}{meant}", at) from None

    def complete(self, op: Primitive, attributes: dict, at: int) -> Attrs:
        """The attributes with the record's defaults."""
        try:
            return op.complete(attributes)
        except LetirError as error:
            raise self.error(str(error), at) from None

    def arguments(self, op: Primitive) -> tuple[tuple[Arg, ...], dict]:
        """Operands, then attributes, up to the closing parenthesis."""
        args: list[Arg] = []
        attrs: dict[str, Any] = {}
        while not self.take(")"):
            if (args or attrs) and not self.take(","):
                self.fail("',' or ')'")
            at = self.skip()
            name = self.accept(ATTRIBUTE)
            if name is not None:
                self.check_attribute(op, name[1], attrs, at)
                attrs[name[1]] = _ATTRIBUTES.get(name[1], Parser.value)(self)
            elif attrs:
                self.fail("an attribute name=value: operands come first")
            else:
                args.append(self.arg())
        return tuple(args), attrs

    def check_attribute(self, op: Primitive, name: str, attrs: dict, at: int) -> None:
        """Raise ParseError if ``op`` has no attribute of this name, or has its value already."""
        if name in attrs:
            raise self.error(f"{op.name}: the attribute {name} appears twice", at)
        if name not in op.attrs:
            names = ", ".join(op.attrs) or "none"
            raise self.error(f"{op.name} has no attribute {name!r}, its attributes: {names}", at)

    def operation(self) -> Primitive:
        """The name of an operation as an attribute."""
        at = self.skip()
        return self.primitive(self.need(_WORD, "the name of an operation")[0], at)

    def dtype(self) -> Any:
        """The value of an attribute ``dtype``, where an unknown word is not a symbolic size."""
        at = self.skip()
        value = self.value()
        return self.convert(parse_dtype, str(value), at=at) if type(value) is Size else value

    def arg(self) -> Arg:
        """An operand: a bound local, a number, None or ``Undef``."""
        at = self.skip()
        local = self.accept(_LOCAL)
        if local is None:
            return self.const(at)
        return self.scope.find(local[0]) or self.unbound(local[0], at)

    def const(self, at: int) -> Const:
        """A constant operand."""
        value = self.value("a local, a number, None or Undef")
        if type(value) not in PYTHON_NUMBERS and value is not None and type(value) is not UndefType:
            raise self.error("an operand is a local, a number, None or Undef", at)
        return Const(value)

    def unbound(self, key: str, at: int) -> NoReturn:
        """Raise the error for an unbound local."""
        rule = "a lambda is closed, and a local is bound before it is used"
        raise self.error(f"{key} is not bound here: {rule}", at)

    def results(self) -> list[Arg]:
        """The results after ``return`` or ``->``, in parentheses or not."""
        if self.take("("):
            return self.items(")", self.arg)[0]
        result = [self.arg()]
        while self.take(","):
            result.append(self.arg())
        return result

    def grad_of(self, name: str, at: int) -> tuple[Primitive, tuple[Arg, ...], Attrs]:
        """``grad_of[op](cts) { binds -> (results) }``: free locals become the captured operands."""
        if name != "grad_of":
            raise self.error(f"expected {name}(...): only grad_of takes brackets", at)
        self.descend()
        op = self.operation()
        self.expect("]")
        self.expect("(")
        # set below, after the parentheses: cotangents are operands in the surrounding scope
        inner = _Scope(outer=self.scope)
        cts = self.items(")", lambda: self.cotangent(inner))[0]
        self.expect("{")
        self.scope = inner
        binds, ret = self.body(_ARROW, "a bind or '->'")
        self.scope = inner.outer
        self.depth -= 1
        # is_printed_in_place (printer) relies on this order of parameters
        fn = Lambda([*(param for _, param in cts), *inner.lifted.values()], binds, ret)
        args = (*(ct for ct, _ in cts), *inner.lifted)
        record = self.primitive(name, at)
        return record, args, self.complete(record, {"op": op, "n_cts": len(cts), "body": fn}, at)

    def cotangent(self, inner: _Scope) -> tuple[Arg, Local]:
        """An operand in the parentheses of a ``grad_of``, and the body's parameter for it."""
        at = self.skip()
        key = _LOCAL.match(self.text, at)
        arg = self.arg()
        if type(arg) is Const:
            return arg, Local(WEAK.get(type(arg.value)))
        if key[0] in inner.bound:
            raise self.error(f"{key[0]} appears twice there: write grad_of(...) with its body", at)
        param = inner.bound[key[0]] = Local(arg.type)
        return arg, param


_ATTRIBUTES = {"op": Parser.operation, "dtype": Parser.dtype}  # attributes with special rules

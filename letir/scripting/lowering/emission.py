"""Lowering of scripts to programs: ``ScriptLowering`` evaluates a function on a builder's Values.

Known values (numbers, known shapes, dtypes) are computed immediately; everything else becomes a
bind with the script's line. Types may be unknown: then shapes are values too.
"""

from collections.abc import Callable, Mapping
from typing import Any

from letir.ast.builder import LetBuilder, Value
from letir.ast.operators import weaken_result
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.source import append_location
from letir.ast.types import PYTHON_NUMBERS
from letir.errors import LetirError
from letir.ops.shape.shape_and_creation import Sizes
from letir.scripting.control_flow import branches_and_loops
from letir.scripting.frontend.vocabulary import Meaning, meaning_of_word
from letir.scripting.script_printer import LiftedPrinter
from letir.scripting.script_terms import (
    Apply,
    Assign,
    Block,
    Branch,
    Choice,
    Group,
    Literal,
    Logic,
    Name,
    ScriptFor,
    ScriptFunction,
    ScriptWhile,
    Slice,
    Statement,
    Subscript,
    Term,
)
from letir.scripting.value_leaves import with_local_name

_MAX_BITS = 1 << 10  # the bits of the largest integer that a script may compute


class ScriptLowering:
    """Lowers one function. ``scripts``: callable scripts by name; ``env``: values by name."""

    def __init__(self, builder: LetBuilder, function: ScriptFunction, scripts: Mapping, env: dict):
        self.builder, self.function, self.scripts = builder, function, scripts
        self.env: dict[str, Any] = env
        self.hints: dict = {}  # the types that loops carried when they were last emitted

    def run(self) -> Any:
        """The results: a value, or a tuple of them."""
        for statement in self.function.body:
            self.statement(statement)
        return self.value(self.function.results)

    def statement(self, statement: Statement) -> None:
        """Lower a statement."""
        _STATEMENTS[type(statement)](self, statement)

    def block(self, block: Block) -> list:
        """The results of a block."""
        for statement in block.body:
            self.statement(statement)
        return [self.value(term) for term in block.results]

    def inside(self, builder: LetBuilder, env: dict) -> "ScriptLowering":
        """An emitter for the same function that continues in a nested body."""
        result = ScriptLowering(builder, self.function, self.scripts, env)
        result.hints = self.hints
        return result

    def assign(self, statement: Assign) -> None:
        """Assign values to names."""
        value, targets = self.value(statement.value), statement.targets
        if not statement.unpacks:
            self.env[targets[0]] = with_local_name(value, targets[0])
            return
        parts = self.parts(value, len(targets))
        if parts is None or len(parts) != len(targets):
            count_text = "one value" if parts is None else f"{len(parts)} values"
            raise self.error(statement.value, f"{len(targets)} names for {count_text}")
        for name, part in zip(targets, parts, strict=True):
            self.env[name] = with_local_name(part, name)

    def parts(self, value: Any, count: int) -> tuple | None:
        """The parts of a value for unpacking, None if it has none."""
        if isinstance(value, tuple):
            return value
        if type(value) is Sizes:
            return tuple(value[i] for i in range(count))
        return None

    def value(self, term: Term) -> Any:
        """The value of a term."""
        return _VALUES[type(term)](self, term)

    # ---- terms ----

    def part(self, term: Subscript) -> Any:
        """``value[item]``."""
        value, item = self.value(term.value), self.value(term.item)
        self.builder.source = self.function.source(term.at)
        entries = item if isinstance(item, tuple) else (item,)
        if any(isinstance(e, Value) and e.type is not None and e.dtype == bool for e in entries):
            raise self.error(
                term, "the shape would depend on what a mask selects: write where(mask, x, 0)"
            )
        return self.guarded(term, lambda: value[item])

    def apply(self, term: Apply) -> Any:
        """An operation, a query, or a call of another script."""
        self.builder.source = self.function.source(term.at)
        args = [self.value(arg) for arg in term.args]
        keywords = {name: self.value(value) for name, value in term.keywords}
        self.builder.source = self.function.source(term.at)  # arguments may stand on other lines
        if term.is_script:
            script = self.scripts[term.function]
            return self.guarded(term, lambda: script.emit(self.builder, args, keywords))
        meaning = meaning_of_word(term.function)
        if meaning is None:
            raise self.error(term, f"{term.function} is no longer an operation")
        return self.guarded(term, lambda: self.operation(meaning, args, keywords))

    def operation(self, meaning: Meaning, args: list, keywords: dict) -> Any:
        """An operation on values of the script."""
        if meaning.is_question:
            return meaning.run(*args, **keywords)
        if meaning.takes_shape:
            args = [self.shape(arg) for arg in args]
        else:
            args = [arg.array if type(arg) is Sizes else arg for arg in args]
        # numbers alone need no bind
        if not any(_has_value(arg) for arg in (*args, *keywords.values())):
            return self.known(meaning, args, keywords)
        out = meaning.run(*args, **keywords)
        is_elementwise = type(meaning.run) is Primitive and meaning.run.elementwise
        # a number stays a number as in Python, even if known only at run time [semantics.md G2]
        return weaken_result(out) if is_elementwise and all(map(_is_number, args)) else out

    def shape(self, arg: Any) -> Any:
        """A shape with some unknown sizes, as one array."""
        if isinstance(arg, tuple) and _has_value(arg):
            return Sizes(PRIMITIVES["stack"](arg))
        return arg

    def known(self, meaning: Meaning, args: list, keywords: dict) -> Any:
        """An operation on numbers alone: a number, unless the operation makes an array."""
        if meaning.python.of_numbers is not None:
            return _apply_python_operator(meaning, args)
        record = meaning.run
        if type(record) is not Primitive:
            return record(*args, **keywords)
        if record.elementwise:
            return record(*args, **keywords).item()
        if record.prepare is not None:
            args, keywords = record.prepare(*args, **keywords)
        return self.builder.apply(record, args, record.complete(keywords))

    # ---- errors ----

    def error(self, term: Term, message: str) -> LetirError:
        """An error at a term."""
        return LetirError(f"{self.function.name}: {message}{self.at(term)}")

    def at(self, term: Term) -> str:
        """The location lines of a message."""
        text = LiftedPrinter(self.function).term(term)
        return f"\n  in {text}\n  at {self.function.source(term.at)}"

    def guarded(self, term: Term, run: Callable[[], Any]) -> Any:
        """The result of ``run()``, with locations added to its errors."""
        try:
            return run()
        except LetirError as error:
            append_location(error, self.at(term))
            raise
        except RecursionError:  # scripts that call each other; the depth of terms is bounded
            raise self.error(term, "calls are nested too deeply: write some out") from None
        except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
            raise self.error(term, f"{error}{_UNKNOWN * self.lacks_types()}") from None

    def lacks_types(self) -> bool:
        """Whether a parameter has an unknown type."""
        return any(param.type is None for param in self.builder.params)


_UNKNOWN = "\n  its types are unknown here: see .at(*args) for programs at the types of arguments"


def _has_value(arg) -> bool:
    """Whether an argument is a Value, or a tuple that contains one."""
    if isinstance(arg, tuple):
        return any(map(_has_value, arg))
    return isinstance(arg, Value) or type(arg) is Sizes


def _is_number(arg) -> bool:
    """Whether a value is a Python number, or a Value computed from numbers alone."""
    if isinstance(arg, Value):
        return arg.type is not None and arg.type.weak
    return type(arg) in PYTHON_NUMBERS


def _apply_python_operator(meaning: Meaning, args: list) -> Any:
    """Python's operator on numbers, with a bound on the size of integers."""
    python = meaning.python
    if not python.takes_all and not all(type(arg) in (bool, int, float, complex) for arg in args):
        listed = ", ".join(map(repr, args))
        raise TypeError(f"{meaning.name} takes arrays and numbers, found {listed}")
    # tested before it is computed: a script may come from an untrusted source
    max_bits, function = python.max_bits, python.of_numbers
    assert function is not None, "the caller has tested it"
    if max_bits and all(type(arg) is int for arg in args) and max_bits(*args) > _MAX_BITS:
        raise TypeError(f"{f' {python.symbol} '.join(map(str, args))} is too large")
    result = function(*args)
    if type(result) is int and result.bit_length() > _MAX_BITS:
        raise TypeError(f"the result of {meaning.name} is too large")
    return result


_VALUES: dict[type, Callable[[ScriptLowering, Any], Any]] = {
    Name: lambda self, term: self.env[term.id],
    Literal: lambda self, term: term.value,
    Apply: ScriptLowering.apply,
    Group: lambda self, term: tuple([self.value(item) for item in term.items]),
    Subscript: ScriptLowering.part,
    Slice: lambda self, term: slice(*[None if n is None else self.value(n) for n in term.ends]),
    Choice: branches_and_loops.lower_choice,
    Logic: branches_and_loops.lower_logic,
}
_STATEMENTS: dict[type, Callable[[ScriptLowering, Any], None]] = {
    Assign: ScriptLowering.assign,
    Branch: branches_and_loops.lower_branch,
    ScriptWhile: branches_and_loops.loop_while,
    ScriptFor: branches_and_loops.loop_for,
}

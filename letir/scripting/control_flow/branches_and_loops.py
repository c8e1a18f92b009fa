"""Lowering of ``if``, ``while`` and counted ``for`` to binds with closed bodies [semantics.md G3].

If a condition is known, only the selected branch is emitted. Otherwise each block becomes a
separate body, whose last parameters are the outer arrays that it reads. A loop is emitted until the
types of its carried values agree, which takes a second round if a number becomes an array.
"""

import contextlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import frozen

from letir.ast.builder import LetBuilder, Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Lambda
from letir.ast.types import WEAK
from letir.errors import DTypeError, LetirError, ShapeError
from letir.ops.shape.shape_and_creation import Sizes
from letir.scripting.frontend.vocabulary import OPERATORS
from letir.scripting.lowering.branch_types import (
    BranchLeaf,
    Fixed,
    NoCommonPatternError,
    Pattern,
    all_rebuilt,
    common_pattern,
    description_of,
    flatten_values,
    leaf_of,
    leaves_of_pattern,
    pattern_of,
)
from letir.scripting.script_terms import (
    Apply,
    Block,
    Branch,
    Choice,
    Literal,
    Logic,
    Name,
    ScriptFor,
    ScriptWhile,
    Term,
    names_in,
    script_terms_in,
)
from letir.scripting.value_leaves import is_static, leaves_of, plain_result, with_local_name

if TYPE_CHECKING:
    from letir.scripting.lowering.emission import ScriptLowering

_COMPARISONS = frozenset(OPERATORS[kind] for kind in ("Eq", "NotEq", "Lt", "LtE", "Gt", "GtE"))
_MAX_COUNTED = 1 << 63
_START = ".start"  # the start of a range among the values of its loop: user names have no dot


# ---- bodies ----


class _Lifting:
    """The outer values that bodies read; each array is one operand, however many names it has."""

    def __init__(self, env: dict, names: Iterable[str]):
        self.values = {name: env[name] for name in names if name in env}
        leaves = [leaf for value in self.values.values() for leaf in leaves_of(plain_result(value))]
        arrays = {leaf.arg: leaf for leaf in leaves if isinstance(leaf, Value)}
        self.operands = list(arrays.values())

    def env(self, builder: LetBuilder) -> dict:
        """The values inside a body, with a parameter for each array."""
        params = {value.arg: builder.param(value.type, value.arg.name) for value in self.operands}
        return {name: _replace_arrays(value, params) for name, value in self.values.items()}


def _replace_arrays(value, params: dict):
    """``value`` with its arrays replaced."""
    if isinstance(value, tuple):
        return tuple([_replace_arrays(part, params) for part in value])
    if type(value) is Sizes:
        return Sizes(params[value.array.arg], value.static_shape)
    return params[value.arg] if isinstance(value, Value) else value


def _emit_with_bodies(emitter, name: str, operands: Sequence, at, **attrs) -> tuple:
    """The results of a bind that holds bodies."""
    emitter.builder.source = emitter.function.source(at)
    record = PRIMITIVES[name]
    return emitter.builder.apply(record, operands, record.complete(attrs))


def _bind_targets(emitter, targets: Sequence[str], values: Sequence) -> None:
    """Give values their names."""
    for name, value in zip(targets, values, strict=True):
        emitter.env[name] = with_local_name(value, name)


# ---- truth values ----


def _truth_value(emitter, term: Term) -> bool | Value:
    """The truth value of a term: a boolean if it is known, else a 0-d array."""
    value = emitter.value(term)
    if type(value) is Sizes:
        raise emitter.error(term, "a shape has no truth value: compare its sizes, x.size(0) > 0")
    if not isinstance(value, Value):
        return bool(value)
    if value.type is None:
        return value
    if value.size != 1:
        raise emitter.error(
            term,
            f"a condition is one truth value, found {value.type}\n"
            "  reduce it with .any() or .all(), or choose element by element: "
            "where(condition, x, y)",
        )
    if value.shape:
        value = PRIMITIVES["reshape"](value, ())
    return value if value.dtype.kind == "b" else PRIMITIVES["not_equal"](value, 0)


def lower_logic(emitter: "ScriptLowering", term: Logic) -> bool | Value:
    """``and``, ``or`` and ``not`` with short-circuit evaluation."""
    first, *rest = term.operands
    test = _truth_value(emitter, first)
    if term.word == "not":
        return not test if type(test) is bool else PRIMITIVES["logical_not"](test)
    if not rest:
        return test
    further, decided = Logic(term.word, tuple(rest), rest[0].at), term.word == "or"
    if type(test) is bool:
        return test if test is decided else emitter.value(further)
    if all(map(_is_cheap, rest)):
        other = emitter.value(further)
        if type(other) is bool:
            return other if other is decided else test
        return PRIMITIVES[f"logical_{term.word}"](test, other)
    blocks = [Block((), (further,)), Block((), (Literal(decided, term.at),))]
    (value,) = _branch_results(emitter, test, blocks[::-1] if decided else blocks, ("it",), term.at)
    return value


def _is_cheap(term: Term) -> bool:
    """Whether a term only compares names and numbers: it never fails, and a branch costs more."""
    if type(term) is Apply and term.function in _COMPARISONS:
        return all(type(arg) in (Name, Literal) for arg in term.args)
    return type(term) is Name


# ---- if ----


def lower_branch(emitter: "ScriptLowering", statement: Branch) -> None:
    """Lower an ``if`` statement."""
    blocks = statement.on_true, statement.on_false
    _bind_targets(
        emitter, statement.targets, _selected_values(emitter, statement, blocks, statement.names)
    )


def lower_choice(emitter: "ScriptLowering", term: Choice) -> Any:
    """Lower ``a if test else b``; returns its value."""
    blocks = [Block((), (part,)) for part in (term.on_true, term.on_false)]
    (value,) = _selected_values(emitter, term, blocks, ("it",))
    return value


def _selected_values(emitter, term: Branch | Choice, blocks: Sequence[Block], names) -> list:
    """The values of the branch that the test selects."""
    test = _truth_value(emitter, term.test)
    if type(test) is bool:
        return emitter.block(blocks[not test])
    return _branch_results(emitter, test, blocks, names, term.at)


def _branch_results(emitter, test: Value, blocks: Sequence[Block], names, at) -> list:
    """The results of two blocks, of which one runs, chosen by ``test``."""
    used = [name for block in blocks for name in names_in(*script_terms_in(block))]
    lifting = _Lifting(emitter.env, used)
    inside = []
    for block in blocks:
        builder = LetBuilder()
        child = emitter.inside(builder, lifting.env(builder))
        inside.append((builder, child.block(block)))
    ends = [values for _, values in inside]
    patterns = []
    for name, first_end, other in zip(names, *ends, strict=True):
        try:
            patterns.append(
                common_pattern(
                    Fixed(first_end) if is_static(first_end) else pattern_of(first_end), other
                )
            )
        except NoCommonPatternError:
            first, second = description_of(first_end), description_of(other)
            kinds = f"{first} where the condition holds, {second} where not"
            raise _types_differ_error(
                emitter, first_end, other, f"{name!r} is {kinds}", at
            ) from None
    bodies = [builder.build(flatten_values(patterns, values)) for builder, values in inside]
    if not bodies[0].ret.args:  # all results are known, and equal in both branches
        return all_rebuilt(patterns, ())
    on_true, on_false = bodies
    operands = (test, *lifting.operands)
    results = _emit_with_bodies(emitter, "cond", operands, at, on_true=on_true, on_false=on_false)
    return all_rebuilt(patterns, results)


def _types_differ_error(emitter, first_value, other, message: str, at) -> LetirError:
    """The error for a name whose values have no common type."""
    shapes = [_shape_of(value) for value in (first_value, other)]
    error = DTypeError if shapes[0] == shapes[1] else ShapeError
    return error(
        f"{emitter.function.name}: {message}\n"
        "  give it one shape and dtype: zeros(shape, dtype), .astype(dtype)\n"
        f"  at {emitter.function.source(at)}, column {at.column}"
    )


def _shape_of(value) -> tuple | None:
    """The shape of a value or of its pattern; None if it is not an array."""
    leaf = value if type(value) is BranchLeaf else None if type(value) is Fixed else leaf_of(value)
    return leaf.kind.shape if leaf and leaf.kind else None


# ---- loops ----


@frozen(eq=False)
class _Step:
    """The body (and test) of a loop for carried values of these patterns."""

    patterns: tuple[Pattern, ...]
    body: Lambda
    test: Lambda | bool | None


def loop_while(emitter: "ScriptLowering", statement: ScriptWhile) -> None:
    """Lower a ``while`` loop."""
    lifting = _Lifting(emitter.env, names_in(statement.test, *script_terms_in(statement.block)))
    initial = [emitter.value(term) for term in statement.initial]
    step = _step_with_stable_types(emitter, statement, lifting, initial)
    if step.test is True:
        raise emitter.error(statement.test, "the loop would never end: this is always true")
    if step.test is False or not step.body.ret.args:
        _bind_targets(emitter, statement.targets, initial)
        return
    operands = (*flatten_values(step.patterns, initial), *lifting.operands)
    attrs = {"test": step.test, "body": step.body}
    results = _emit_with_bodies(emitter, "while_loop", operands, statement.at, **attrs)
    _bind_targets(emitter, statement.targets, all_rebuilt(step.patterns, results))


def loop_for(emitter: "ScriptLowering", statement: ScriptFor) -> None:
    """Lower a counted ``for`` loop."""
    start, stop, stride = [_range_bound(emitter, term) for term in statement.bounds]
    if type(stride) is not int or stride == 0:
        raise emitter.error(
            statement.bounds[2], "the step of a range must be a number other than 0"
        )
    if stride != 1:
        # the trip count, which is 0 or negative for an empty range
        start, stop, origin = 0, -((start - stop) // stride), start
    else:
        origin = None
    initial = [emitter.value(term) for term in statement.initial]
    is_empty = type(start) is int and type(stop) is int and start >= stop
    names = [_START, *names_in(*script_terms_in(statement.block))]
    lifting = _Lifting({**emitter.env, _START: origin}, names)
    step = (
        None if is_empty else _step_with_stable_types(emitter, statement, lifting, initial, stride)
    )
    if step is None or not step.body.ret.args:
        _bind_targets(emitter, statement.targets, initial)
        return
    operands = (start, stop, *flatten_values(step.patterns, initial), *lifting.operands)
    results = _emit_with_bodies(emitter, "fori_loop", operands, statement.at, body=step.body)
    _bind_targets(emitter, statement.targets, all_rebuilt(step.patterns, results))


def _range_bound(emitter, term: Term) -> int | Value:
    """A bound of a range."""
    value = emitter.value(term)
    if type(value) in (int, bool):
        if not -_MAX_COUNTED < value < _MAX_COUNTED:
            raise emitter.error(term, f"a range counts in 64 bits, {value} does not fit")
        return int(value)
    if isinstance(value, Value):
        aval = value.type
        if aval is None or (aval.shape == () and aval.dtype.kind in "iu"):
            return value
    raise emitter.error(
        term, f"the bounds of a range must be integers, found {description_of(value)}"
    )


def _step_with_stable_types(
    emitter, statement, lifting: _Lifting, initial: Sequence, stride: int = 1
) -> _Step:
    """The body for types that cover the carried values before and after every step."""
    patterns = _initial_patterns(emitter.hints.get(id(statement)), initial)
    while True:  # terminates, because patterns only grow, a bounded number of times
        builder, env = _open_loop_body(statement, lifting, patterns, stride)
        values = emitter.inside(builder, env).block(statement.block)
        wider = _grow_patterns(emitter, statement, patterns, values)
        if wider == patterns:
            emitter.hints[id(statement)] = patterns
            body = builder.build(flatten_values(patterns, values))
            return _Step(patterns, body, _loop_test(emitter, statement, lifting, patterns))
        patterns = wider


def _initial_patterns(hint: tuple[Pattern, ...] | None, initial: Sequence) -> tuple[Pattern, ...]:
    """The initial patterns of the carried values.

    ``hint``: the patterns from an earlier round of an outer loop; without it each level of nesting
    would double the number of rounds.
    """
    if hint is not None:
        with contextlib.suppress(NoCommonPatternError):
            return tuple(map(common_pattern, hint, initial))
    return tuple(map(pattern_of, initial))


def _grow_patterns(
    emitter, statement, patterns: Sequence[Pattern], values: Sequence
) -> tuple[Pattern, ...]:
    """The patterns that cover the carried values before and after a step."""
    result = []
    for name, pattern, value in zip(statement.names, patterns, values, strict=True):
        try:
            result.append(common_pattern(pattern, value))
        except NoCommonPatternError:
            before, after = description_of(pattern), description_of(value)
            message = f"{name!r} is {before} before the loop, {after} after a step of it"
            raise _types_differ_error(emitter, pattern, value, message, statement.at) from None
    return tuple(result)


def _open_loop_body(statement, lifting: _Lifting, patterns: Sequence[Pattern], stride: int = 1):
    """(builder of a loop's body, values of the names inside)."""
    builder = LetBuilder()
    is_counted = type(statement) is ScriptFor
    index = builder.param(WEAK[int], statement.index) if is_counted else None
    carried = []
    for name, pattern in zip(statement.params, patterns, strict=True):
        carried.append([builder.param(leaf.kind, name) for leaf in leaves_of_pattern(pattern)])
    values = all_rebuilt(patterns, [value for group in carried for value in group])
    env = {**lifting.env(builder), **dict(zip(statement.params, values, strict=True))}
    if is_counted:
        env[statement.index] = (
            index if stride == 1 else _index_as_number(env[_START] + index * stride)
        )
    return builder, env


def _index_as_number(index: Value) -> Value:
    """An integer of a program as a Python number, as in a range."""
    return index if index.type is not None and index.type.weak else PRIMITIVES["weaken"](index)


def _loop_test(emitter, statement, lifting: _Lifting, patterns) -> Lambda | bool | None:
    """The test of a loop as a program, or its value if known; None for a counted loop."""
    if type(statement) is ScriptFor:
        return None
    builder, env = _open_loop_body(statement, lifting, patterns)
    value = _truth_value(emitter.inside(builder, env), statement.test)
    return value if type(value) is bool else builder.build([value])

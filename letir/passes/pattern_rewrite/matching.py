"""``Pattern`` and ``Match``: occurrences of a small program in a large one.

A pattern is recorded from a Python function on values of unknown type. Its positional parameters
match any operand, its keyword-only parameters any value of the attribute of that name.
"""

import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from letir.ast.attrs import token
from letir.ast.liveness import has_effect, live_binds
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Arg, Bind, Const, Lambda, Local
from letir.ast.types import ArrayType
from letir.errors import LetirError, TraceError
from letir.ops import load_all
from letir.tracing.entry import finish_trace, trace_for
from letir.tracing.trace_state import ABSTRACT
from letir.visitors.usedef import UseDef, use_counts

_MAX_SWAPS, _MAX_ATTRIBUTES = 6, 1000  # at most 2**6 orders of operands, and 1000 choices


@frozen(eq=False)
class Match:
    """An occurrence of a pattern: its ``binds`` in program order, and the values of its parameters.

    ``match["x"]`` is a local, a Python number or None if the operand is a constant, or the value of
    an attribute.
    """

    values: dict[str, Any]
    binds: tuple[Bind, ...]
    results: tuple[Local, ...]
    uses: UseDef = field(repr=False)

    def __getitem__(self, name: str):
        return self.values[name]

    def type(self, name: str) -> ArrayType | None:
        """The type of an operand; None if it is unknown."""
        aval = self._arg(name).type
        return aval if isinstance(aval, ArrayType) else None

    def definition(self, name: str) -> Bind | None:
        """The bind that computes an operand; None for parameters of the program and constants."""
        arg = self._arg(name)
        return self.uses.definition(arg) if type(arg) is Local else None

    def _arg(self, name: str) -> Arg:
        value = self.values[name]
        return value if type(value) is Local else Const(value)


@frozen(eq=False)
class Pattern:
    """A program to search for, and the attributes for which it was recorded."""

    fn: Lambda
    attributes: dict[str, Any]
    definitions: dict[Local, Bind] = field(init=False)
    root: Bind = field(init=False)

    def __attrs_post_init__(self):
        definitions = {binder: bind for bind in self.fn.binds for binder in bind.binders}
        object.__setattr__(self, "definitions", definitions)
        object.__setattr__(self, "root", _root_of(self.fn, definitions))
        _check_used(self.fn)

    def match(self, bind: Bind, ud: UseDef) -> dict[Local, Any] | None:
        """The substitution of the pattern's locals if its root matches ``bind``; else None."""
        values: dict[Local, Arg] = {}
        # upwards from the last bind: each operand has one definition, nothing is searched
        pending = [(self.root, bind)]
        while pending:
            expected, bind = pending.pop()
            if not (
                _is_same_operation(expected, bind)
                and _enter_match(values, expected.binders, bind.binders)
            ):
                return None
            for expected_arg, arg in zip(expected.args, bind.args, strict=True):
                inner = self.definitions.get(expected_arg) if type(expected_arg) is Local else None
                # the local has a value already, which must be the same
                if inner is None or expected_arg in values:
                    if not _enter_match(values, (expected_arg,), (arg,)):
                        return None
                    continue
                definition = ud.definition(arg) if type(arg) is Local else None
                if definition is None or not _is_result(inner, expected_arg, definition, arg):
                    return None
                pending.append((inner, definition))
        return values


def _is_same_operation(expected: Bind, bind: Bind) -> bool:
    """Whether two binds agree in everything but their operands."""
    return (
        bind.op is expected.op
        and len(bind.args) == len(expected.args)
        and bind.attrs == expected.attrs
        and len(bind.binders) == len(expected.binders)
    )


def _is_result(expected: Bind, expected_arg: Arg, bind: Bind, arg: Arg) -> bool:
    """Whether both locals are the same result of their binds."""
    return bind.op is expected.op and bind.binders.index(arg) == expected.binders.index(
        expected_arg
    )


def _enter_match(values: dict[Local, Arg], expected: Sequence[Arg], args: Sequence[Arg]) -> bool:
    """Extend the substitution by these operands; False on a conflict of locals or constants."""
    return all(
        want == arg if type(want) is Const else values.setdefault(want, arg) == arg
        for want, arg in zip(expected, args, strict=True)
    )


def _root_of(fn: Lambda, definitions: dict[Local, Bind]) -> Bind:
    """The last bind of a pattern, from which all its other binds are reachable."""
    computed = fn.ret.args and all(arg in definitions for arg in fn.ret.args)
    if not computed or any(map(has_effect, fn.binds)):
        raise LetirError(
            "rewrite: a pattern must return results of operations without effects, found "
            f"{len(fn.binds)} operations\n"
            "  compute something in the pattern: lambda x: x * x"
        )
    # patterns are small
    root = max((definitions[arg] for arg in fn.ret.locals()), key=fn.binds.index)
    reached, pending = set(), [root]
    while pending:
        bind = pending.pop()
        if bind not in reached:
            reached.add(bind)
            pending += [definitions[arg] for arg in bind.locals() if arg in definitions]
    if len(reached) < len(fn.binds):
        raise LetirError(
            "rewrite: one result of a pattern must need all the others, found\n" + fn.listing()
        )
    return root


def _check_used(fn: Lambda) -> None:
    """Raise LetirError for a parameter that the pattern does not use."""
    used = use_counts(fn)
    unused = [param.name or f"%{i}" for i, param in enumerate(fn.params) if param not in used]
    if unused:
        raise LetirError(
            f"rewrite: the pattern does not use its parameter {unused[0]}, so its value is "
            f"not known:\n{fn.listing()}  use it in the pattern, or leave it out"
        )


# ---- recording ----


def record_pattern(
    function: Callable, operands: dict[str, Any], attributes: dict[str, Any]
) -> Lambda:
    """``function`` recorded on operands given as types; operands given as values stay values."""
    with trace_for([], [], ABSTRACT) as (new, _):
        new.root = record_pattern.__code__  # a try around the call catches nothing in the pattern
        values = [
            # numbers stay numbers, because NumPy's promotion and letir's rules depend on them
            new.make_tracer(new, new.param(kind, name).arg) if _is_type(kind) else kind.value
            for name, kind in operands.items()
        ]
        fn, lifted = finish_trace(new, function(*values, **attributes), None)
    if lifted:
        raise LetirError(
            "rewrite: a pattern or replacement uses a traced value from outside\n"
            "  make it a parameter of the pattern"
        )
    # the closure would be the closure of the caller of rewrite
    if not hasattr(function, "__code__"):
        for binder in [binder for bind in fn.binds for binder in bind.binders]:
            binder.name = None
    return fn


def _is_type(kind) -> bool:
    """Whether an operand is given as a type (known or unknown), not as a constant."""
    return type(kind) is not Const


def pattern_parameters(function: Callable) -> tuple[list[str], list[str]]:
    """(operands, attributes): the positional and the keyword-only parameters of a function.

    The parameters of a ufunc are called x, y, z.
    """
    if isinstance(function, np.ufunc):
        return list("xyz"[: function.nin]), []
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        raise LetirError(
            "rewrite: a pattern takes parameters with names, not * or **\n  write lambda x, y: ..."
        )
    attributes = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    return [p.name for p in parameters if p.name not in attributes], attributes


def patterns_of(pattern: Callable | Lambda, f: Lambda, commutative: bool) -> list[Pattern]:
    """The patterns to search for in ``f``: all attribute values, operands in all orders."""
    if isinstance(pattern, Lambda):
        programs: list[tuple[Lambda, dict[str, Any]]] = [(_without_dead_binds(pattern), {})]
    else:
        names, attributes = pattern_parameters(pattern)
        programs = list(
            _record_with_attributes(
                pattern, dict.fromkeys(names), _attribute_choices(f, attributes)
            )
        )
    return [
        Pattern(variant, values)
        for fn, values in programs
        for variant in (_operand_orders(fn) if commutative else [fn])
    ]


def _without_dead_binds(fn: Lambda) -> Lambda:
    """``fn`` without dead binds; the others keep all their results, as in the searched program."""
    return fn.with_binds(live_binds(fn))


def _record_with_attributes(
    pattern: Callable, operands: dict, choices: list[dict]
) -> Iterator[tuple]:
    """(program, attributes) for each choice with which the pattern can be recorded."""
    failed, count = None, 0
    for values in choices:
        try:
            fn = _without_dead_binds(record_pattern(pattern, operands, values))
        except AttributeError as error:
            raise TraceError(
                "rewrite: the pattern asks a parameter for its shape, dtype or truth value, but "
                f"parameters stand for operands of any type\n  found: {error}\n"
                "  test the types in the condition: where=lambda match: match.type('x') ..."
            ) from error
        except (LetirError, ValueError, TypeError) as error:
            # an attribute may not fit, such as an axis that is too large: an error only if no
            # choice fits
            failed = failed or error
            continue
        count += 1
        yield fn, values
    if failed is not None and not count:
        raise failed


def _attribute_choices(f: Lambda, names: list[str]) -> list[dict]:
    """All assignments of values that occur in ``f`` to the attributes of these names."""
    load_all()
    attribute_names = {name for op in PRIMITIVES.values() for name in op.attrs}
    domains = []
    for name in names:
        # axis_2: another axis
        base = name if name in attribute_names else name.rstrip("_0123456789")
        if base not in attribute_names:
            raise LetirError(
                f"rewrite: no operation has an attribute {name!r}\n"
                "  keyword-only parameters of a pattern have the names of attributes: axis, axis_2"
            )
        used_values = [bind.attrs[base] for bind in f.binds if base in bind.attrs]
        # 1 is not True or 1.0
        domains.append(list({token(value): value for value in used_values}.values()))
    choices = list(itertools.islice(itertools.product(*domains), _MAX_ATTRIBUTES + 1))
    if len(choices) > _MAX_ATTRIBUTES:
        raise LetirError(
            f"rewrite: the attributes {', '.join(names)} have too many values\n"
            "  write separate patterns for some of the values"
        )
    return [dict(zip(names, values, strict=True)) for values in choices]


def _operand_orders(fn: Lambda) -> list[Lambda]:
    """``fn`` with the operands of commutative operations in all orders."""
    places = [i for i, b in enumerate(fn.binds) if b.op.commutative and b.args[0] is not b.args[1]]
    if len(places) > _MAX_SWAPS:
        raise LetirError(
            f"rewrite: a pattern of more than {_MAX_SWAPS} commutative operations\n"
            "  write a shorter pattern, or two"
        )
    result = []
    for chosen in itertools.product([False, True], repeat=len(places)):
        turned = {i for i, turn in zip(places, chosen, strict=True) if turn}
        binds = [b.with_args(b.args[::-1]) if i in turned else b for i, b in enumerate(fn.binds)]
        result.append(fn.with_binds(binds))
    return result

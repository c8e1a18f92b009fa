"""Derivative rules recorded as closed Lambdas: the ``vjp`` or ``jvp`` of a record for one bind.

Recorded rules are cached by operation, types and attributes, because a program of a million binds
has few different binds; the transforms then only rename locals.
"""

import operator
from collections.abc import Callable, Set
from typing import Any

from attrs import frozen

from letir.ast import LATE_BOUND
from letir.ast.attrs import NO_ATTRS, Attrs, token
from letir.ast.bodies import holds_arrays
from letir.ast.bounded_cache import BoundedCache
from letir.ast.builder import LetBuilder, Value
from letir.ast.derivative_types import strong_type
from letir.ast.primitive import Primitive
from letir.ast.record_fields import Absent
from letir.ast.source import error_of_rule
from letir.ast.terms import Bind, Const, Lambda, Local, Ret
from letir.ast.types import PYTHON_NUMBERS
from letir.errors import DTypeError, LetirError, ShapeError
from letir.ops.autodiff.gradient_steps import instantiate_like
from letir.ops.define.records import cotangents_of_rule
from letir.passes.cse import merge_equal_binds
from letir.passes.dead_code_elimination import dead_code

_bodies = BoundedCache(1 << 12)

_type_of = operator.attrgetter("type")


@frozen(eq=False)
class Steps:
    """A program compiled for repeated emission: operands are list positions instead of locals."""

    _constants: tuple[Const, ...]
    _steps: tuple[tuple, ...]  # (op, positions -> operands, attrs, result types)
    _returned: Callable

    def emit(self, builder: LetBuilder, operands: list) -> tuple:
        """Add the binds for these operands to ``builder`` and return the results.

        Faster than ``builder.inline(body, operands)``, which looks up every local in a dict.
        """
        values, source, add = [*operands, *self._constants], builder.source, builder.binds.append
        for op, select, attrs, types in self._steps:
            # the usual case without a comprehension, which is a Python frame before 3.12
            if len(types) == 1:
                binders: tuple[Local, ...] = (Local(types[0]),)
            else:
                binders = tuple([Local(aval) for aval in types])
            add(Bind(binders, op, select(values), attrs, source))
            values += binders
        return self._returned(values)

    def run(self, apply: Callable, operands: list) -> tuple:
        """The results for these operands, with each step done by ``apply(op, operands, attrs)``.

        They are arrays if ``apply`` computes, and Variables if it records [semantics.md D15].
        """
        values = [*operands, *[constant.value for constant in self._constants]]
        for op, select, attrs, _ in self._steps:
            out = apply(op, select(values), attrs)
            if op.results is None:  # not ``results_tuple``: runs once a step of .backward()
                values.append(out)
            else:
                values += out
        return self._returned(values)


@frozen(eq=False)
class RuleBody(Steps):
    """The recorded rule of binds with the same operation, types and attributes.

    ``body``: its parameters are the directions (cotangents or tangents), then the captured primals
    in order of first use. ``captured``: their positions among the bind's operands, then results.
    ``results``: for each result of ``body`` the position of its operand (vjp) or result (jvp).
    ``attrs``, ``types``: attributes and result types of the ``grad_of`` that holds a vjp.
    ``missing``: (operand position, reason) for operands for which the rule has no cotangent.
    """

    body: Lambda
    captured: tuple[int, ...]
    results: tuple[int, ...]
    attrs: Attrs
    types: tuple
    missing: tuple[tuple[int, str], ...] = ()


def _tuple_selector(positions: list[int]) -> Callable:
    """A function from a list to the tuple of its elements at these positions."""
    if not positions:
        return lambda values: ()
    if len(positions) == 1:
        (i,) = positions
        return lambda values: (values[i],)
    return operator.itemgetter(*positions)


def compile_steps(body: Lambda) -> tuple[tuple, tuple, Callable]:
    """(constants, steps, selector of the results) of ``body``, for the fields of ``Steps``."""
    terms: tuple[Bind | Ret, ...] = (*body.binds, body.ret)
    constants = list({id(a): a for b in terms for a in b.args if type(a) is Const}.values())
    place: dict = {local: i for i, local in enumerate(body.params)}
    constant_at = {id(c): len(place) + i for i, c in enumerate(constants)}
    count = len(place) + len(constants)
    steps = []

    def select(args) -> Callable:
        return _tuple_selector([place[a] if type(a) is Local else constant_at[id(a)] for a in args])

    for bind in body.binds:
        steps.append(
            (bind.op, select(bind.args), bind.attrs, tuple([b.type for b in bind.binders]))
        )
        for binder in bind.binders:
            place[binder] = count
            count += 1
    return tuple(constants), tuple(steps), select(body.ret.args)


def rule_body(kind: str, bind: Bind, mask: tuple | None, needed: Set | None) -> RuleBody:
    """The recorded rule ``kind`` ("vjp" or "jvp") for ``bind``.

    ``mask``: which results have a cotangent (vjp) or which operands a tangent (jvp); None for a vjp
    whose cotangents may be ``Undef`` when the program runs. ``needed``: the operands for which a
    vjp computes cotangents; None for all.
    """
    args, binders = bind.args, bind.binders
    key = [
        kind,
        bind.op,
        mask,
        needed is None,
        None if bind.attrs is NO_ATTRS else bind.attrs.token,
    ]
    for arg in args:
        if type(arg) is Local:
            # the key has no local, because locals differ in every bind
            key += (arg.type, needed is not None and arg in needed)
        else:
            value = arg.value  # zeros by their repr, because 0.0 == -0.0
            key.append(
                token(value) if type(value) is complex else (type(value), value or repr(value))
            )
    if len(args) == 2:  # x * x captures one value, x * y two
        key.append(args[0] is args[1])
    elif len(args) > 2:
        first: dict[int, int] = {}
        key += [first.setdefault(id(arg), i) for i, arg in enumerate(args)]
    key += map(_type_of, binders)
    known_as = tuple(key)
    result = _bodies.get(known_as)
    if result is None:
        needed_args = [needed is None or (type(arg) is Local and arg in needed) for arg in args]
        result = _record_rule(kind, bind, mask, needed_args)
        if not holds_arrays(bind.attrs):  # the cache would keep the arrays alive
            _bodies[known_as] = result
    return result


def _record_rule(kind: str, bind: Bind, mask: tuple | None, needed: list) -> RuleBody:
    """The derivative rule ``kind``, "vjp" or "jvp", of ``bind``, recorded as a program.

    ``mask``: which directions are defined, None if that is not known yet. ``needed``: which
    operands need a cotangent.
    """
    builder = LetBuilder()
    along = bind.binders if kind == "vjp" else bind.args
    mask_unknown = mask is None
    mask = mask or (True,) * len(along)
    directions = [
        builder.param(strong_type(a.type)) if is_defined else None
        for a, is_defined in zip(along, mask, strict=True)
    ]
    count = len(builder.params)
    values: dict[Local, Value] = {}
    sources = (*bind.args, *bind.binders)
    for local in sources:
        if type(local) is Local and local not in values:
            values[local] = builder.param(local.type)
    args = [values[a] if type(a) is Local else a.value for a in bind.args]
    outs = [values[b] for b in bind.binders]
    if mask_unknown and bind.op.results is not None:
        directions = [instantiate_like(ct, out) for ct, out in zip(directions, outs, strict=True)]
    keywords = _rule_keywords(bind.op, kind, needed)
    rule_results = _run_rule(bind.op, kind, bind.attrs, (directions, outs, args), keywords)
    results = {
        i: v
        for i, v in enumerate(rule_results)
        if isinstance(v, Value) and (kind == "jvp" or needed[i])
    }
    fn = dead_code(builder.build(results.values()))
    # where Undef is possible, the text of a grad_of shows the rule as it was written
    fn = fn if mask_unknown else merge_equal_binds(fn, _is_repeatable)
    # only what the rule reads is captured, so that other values can be freed
    directions_set = set(fn.params[:count])
    used = [p for p in _first_uses(fn) if p not in directions_set]
    positions = dict(zip(reversed(sources), range(len(sources) - 1, -1, -1), strict=True))
    origin = {value.arg: positions[local] for local, value in values.items()}  # the first ones
    body = Lambda([*fn.params[:count], *used], fn.binds, fn.ret)
    attrs = Attrs(op=bind.op, n_cts=count, body=body)
    types = tuple([arg.type for arg in body.ret.args])
    captured = tuple(origin[p] for p in used)
    missing = tuple((i, v.reason) for i, v in enumerate(rule_results) if type(v) is Absent)
    return RuleBody(*compile_steps(body), body, captured, tuple(results), attrs, types, missing)


def _is_repeatable(op: Primitive) -> bool:
    """Whether equal binds of ``op`` may be merged, as both terms of the vjp of ``x * x`` are."""
    return not (op.random or op.effect)


def _rule_keywords(op: Primitive, kind: str, needed: list[bool]) -> dict:
    """Extra keyword arguments for a rule.

    ``transform``: ``pull`` or ``push``, to differentiate the bodies of an operation that has them.
    ``wanted``: which operands require grad, ``needed``; for vjp rules that have this keyword.
    """
    takes_wanted = "wanted" in (
        getattr(getattr(op, kind), "__kwdefaults__", None) or ()
    )  # keyword-only
    keywords: dict = {"wanted": needed} if takes_wanted else {}
    if op.holds_lambdas:
        keywords["transform"] = LATE_BOUND["pull" if kind == "vjp" else "push"]
    return keywords


def _run_rule(op: Primitive, kind: str, attrs, operands: tuple, keywords: dict) -> tuple:
    """Run a rule; returns its cotangents by operand (vjp) or its tangents by result (jvp)."""
    directions, outs, args = operands
    single = op.results is None
    if kind == "vjp" and single:
        directions = directions[0]
    elif kind == "vjp":
        directions = tuple(directions)
    try:
        out_or_outs = outs[0] if single else tuple(outs)
        result = op.rule(kind)(directions, out_or_outs, *args, **attrs, **keywords)
    except (LetirError, RecursionError, MemoryError):
        raise
    except Exception as error:
        if op.is_user_defined or not _is_any_unknown((*args, *outs)):
            raise
        raise error_of_rule(op, error, kind) from error
    if kind == "jvp":
        tangents = (result,) if single else tuple(result)
        if op.is_user_defined:
            for tangent, out in zip(tangents, outs, strict=False):
                _check_direction(op, "jvp rule gave a tangent", tangent, out)
        return tangents
    if type(result) is not tuple or len(result) != len(args):
        result = cotangents_of_rule(op.name, result, len(args))
    for i, (ct, arg) in enumerate(zip(result, args, strict=True)):
        _check_direction(op, f"vjp rule gave operand {i} a cotangent", ct, arg)
    return result


def _is_any_unknown(values: tuple) -> bool:
    """Whether a type is unknown, so that the type rule has not compared attributes with it."""
    return any(isinstance(value, Value) and value.type is None for value in values)


def _check_direction(op: Primitive, role: str, direction: Any, value: Any) -> None:
    """Raise unless a cotangent or tangent has the type of the value that it belongs to."""
    if not isinstance(direction, Value):
        is_array = hasattr(direction, "dtype") or type(direction) in PYTHON_NUMBERS
        if direction is not None and type(direction) is not Absent and not is_array:
            raise DTypeError(
                f"{op.name}: its {role} of {direction!r}\n  return arrays, or None for a zero"
            )
        return
    if not isinstance(value, Value) or direction.type is None or value.type is None:
        return
    expected = strong_type(value.type)
    if value.type.inexact and strong_type(direction.type) is not expected:  # is: types are interned
        raise ShapeError(
            f"{op.name}: its {role} of {direction.type}, not {expected}\n"
            "  it has the type of its value: sum over axes that were broadcast, cast with astype"
        )


def _first_uses(fn: Lambda) -> list[Local]:
    """The parameters that are used, in order of first use."""
    params = set(fn.params)
    result = dict.fromkeys(local for bind in fn.binds for local in bind.locals() if local in params)
    result.update(dict.fromkeys(local for local in fn.ret.locals() if local in params))
    return list(result)

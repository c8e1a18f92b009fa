"""``OpSpecialization``: everything that one operation needs for operands of given types.

How to compute and differentiate it, its result types and the values to save are worked out once for
each (operation, attributes, types of the operands, which of them require grad), and cached.
"""

from collections.abc import Callable, Hashable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from attrs import frozen

from letir.ad.reverse import DEFINED
from letir.ad.rule_cache import RuleBody, rule_body
from letir.ast.attrs import Attrs
from letir.ast.bodies import holds_arrays
from letir.ast.bounded_cache import BoundedCache
from letir.ast.builder import result_types
from letir.ast.derivative_types import type_carries_derivative
from letir.ast.primitive import Primitive
from letir.ast.terms import Bind, Const, Local
from letir.ast.types import WEAK, ArrayType
from letir.eager.compiled_rules import compiled_kernel_of, straight_line_rule
from letir.eager.tape import FREED, GradEdge, ResultEdge, TapeNode, check_unchanged, freed_error
from letir.errors import LetirError, MissingRule
from letir.eval.array_modules import type_of
from letir.tracing.source_locations import error_at_user_line

specs = BoundedCache(1 << 14)
known_spec = specs.get  # bound once, like the others below: as fast as a dict's look-up
_array_types = BoundedCache(1 << 14)  # (dtype, shape) -> ArrayType
_known_type = _array_types.get
_DEVICE = "device"  # a key of ``specs`` once none of them computes with NumPy's own ufunc


@frozen(eq=False)
class OpSpecialization:
    """How an operation on these types is computed, and the values that its tape node saves.

    ``compute(*values)`` gives the result, or a tuple. ``bind`` is the operation on stand-ins:
    locals, and known numbers. ``rule`` is the derivative rule for a full set of cotangents (None if
    the result does not require grad, or ``missing`` says why there is none) and ``backward`` its
    body. ``kept`` holds the positions, among operands and results, of the values that a node saves;
    ``keep`` selects these, and ``unpack`` selects from them the values that the rule reads.
    """

    op: Primitive
    attrs: Attrs
    bind: Bind
    types: tuple
    type: ArrayType | None  # the type of the only result
    compute: Callable
    is_plain: bool  # one result, which shares no memory with an operand
    is_unknown: bool  # several results, results of unknown types, or results that are not arrays
    requires_grad: bool
    needed: frozenset
    rule: RuleBody | None
    missing: MissingRule | None
    is_short: bool  # one result, and a rule for every operand
    backward: Callable | None
    kept: tuple[int, ...]
    keep: Callable
    unpack: Callable
    watched: tuple[int, ...]  # operands that the rule reads: they must not be changed in place

    def rule_for(self, mask: tuple | None) -> RuleBody:
        """The rule for a mask of results that have a cotangent; None means all of them."""
        if self.missing is not None:
            raise MissingRule(*self.missing.args)
        if mask is None or all(mask):
            return self.rule
        return rule_body("vjp", self.bind, mask, self.needed)

    def read(self, rule: RuleBody, node: TapeNode) -> Sequence:
        """The values that ``rule`` reads, from those that ``node`` saved.

        Raises TraceError if one was freed, or changed in place.
        """
        values, args = node.kept, node.args
        if values is FREED:
            raise freed_error(node)
        count = len(args)
        for place in rule.captured:
            edge = args[place] if place < count else node
            if edge is not None and edge.notes is not None:
                check_unchanged(edge, node)
        if rule is self.rule:
            return self.unpack(values)
        # a rule for a subset of the cotangents
        return [values[self.kept.index(place)] for place in rule.captured]

    def edges(self, rule: RuleBody, node: TapeNode) -> list[GradEdge | None]:
        """The grad edges of the values that ``rule`` reads, None for constants."""
        args, count = node.args, len(node.args)
        result: list = []
        for place in rule.captured:
            if place < count:
                result.append(args[place])
            elif self.type is not None:
                result.append(node)
            else:
                result.append(ResultEdge.for_result(self.types[place - count], node, place - count))
        return result

    def pull(self, rule: RuleBody, emitter: Any, cts: list, captured: Sequence) -> tuple:
        """The cotangents of the operands in ``rule.results``; None in ``cts`` means zero."""
        if len(cts) > 1:  # a single result has a cotangent, or the node would not run
            cts = [ct for ct in cts if ct is not None]
        return rule.run(emitter.apply, [*cts, *captured])


def forget_kernels() -> None:
    """Drop the specializations that call NumPy's ufuncs, when the first device array appears.

    Specializations made from then on take the array module from their operands.
    """
    if _DEVICE not in specs:
        specs.clear()
        # only once: from now on ``compiled_kernel_of`` uses the operands' array module
        specs[_DEVICE] = None


def array_type(array: Any) -> ArrayType:
    """``type_of(array)``, cached by dtype and shape."""
    if type(array) is not np.ndarray:
        return type_of(array)
    key = array.dtype, array.shape
    result = _known_type(key)
    if result is None:
        result = _array_types[key] = type_of(array)
    return result


def looks_at_numbers(op: Primitive) -> bool:
    """Whether the derivative rule may depend on the value of a number among the operands.

    The rule of ``power`` is simpler for a known exponent, and rules of users may read numbers.
    """
    return op.rule_reads_numbers or op.is_user_defined


def operand_key(operand: Any, by_value: bool = False) -> Hashable:
    """The part of a cache key for an operand that does not require grad: its type, or its value."""
    weak = WEAK.get(type(operand))
    if weak is not None:
        # one specialization for all numbers, unless the rule reads them
        return Const(operand) if by_value else weak
    return array_type(operand) if hasattr(operand, "dtype") else Const(operand)


def cached_spec(key: tuple, attrs: Attrs, operands: list[tuple]) -> OpSpecialization:
    """The specialization of an operation for operands given as (kind, whether it requires grad).

    It is cached by ``key``, whose first item is the operation.
    """
    op = key[0]
    args = tuple([aval if type(aval) is Const else Local(aval) for aval, _ in operands])
    needed = frozenset([a for a, (_, requires) in zip(args, operands, strict=True) if requires])
    try:
        types = result_types(op, args, attrs)
    except LetirError as error:
        raise error_at_user_line(error) from None
    bind = Bind(tuple([Local(aval) for aval in types]), op, args, attrs)
    result = _make_spec(bind, needed)
    if not holds_arrays(bind.attrs):  # else the arrays would stay in the table
        specs[key] = result
    return result


def _make_spec(bind: Bind, needed: frozenset) -> OpSpecialization:
    """The specialization of a bind, of whose operands ``needed`` carry derivatives."""
    op, args = bind.op, bind.args
    types = tuple([binder.type for binder in bind.binders])
    inexact = any(map(type_carries_derivative, types))
    requires_grad = bool(needed) and op.is_differentiable and inexact
    rule, missing = _reverse_rule(bind, needed) if requires_grad else (None, None)
    captured = () if rule is None else rule.captured
    constants = [i for i, arg in enumerate(args) if arg not in needed]  # for ``history``
    places = tuple(sorted({*constants, *captured})) if requires_grad else ()
    if requires_grad and op.holds_lambdas and len(types) > 1:
        # a loop's rule reads its results, rather than computing the loop again
        places = tuple(range(len(args) + len(types)))
    run, is_single = compiled_kernel_of(op, bind.attrs), op.results is None
    is_builtin = not op.is_user_defined and not op.holds_lambdas
    return OpSpecialization(
        op=op,
        attrs=bind.attrs,
        bind=bind,
        types=types,
        type=types[0] if is_single else None,
        compute=run,
        # the result of a ufunc is new memory
        is_plain=is_single and isinstance(run, np.ufunc) and types[0] is not None,
        is_unknown=not is_single or types[0] is None or types[0].weak or not is_builtin,
        requires_grad=requires_grad,
        needed=needed,
        rule=rule,
        missing=missing,
        is_short=is_single and rule is not None and not rule.missing,
        backward=None if rule is None else straight_line_rule(rule.body),
        kept=places,
        keep=tuple_picker(
            places * 2 if len(places) == 1 else places
        ),  # a tuple: see Note [Collections]
        unpack=tuple_picker([places.index(place) for place in captured]),
        watched=tuple([place for place in captured if place < len(args)]),
    )


def tuple_picker(places: Sequence[int]) -> Callable:
    """A function that selects the items of a sequence at these positions, as a tuple."""
    if len(places) == 1:  # faster than a Python function that makes a tuple
        return itemgetter(slice(places[0], places[0] + 1))
    return itemgetter(*places) if places else _no_items


def _no_items(values) -> tuple:
    """No items."""
    return ()


def _reverse_rule(bind: Bind, needed: frozenset) -> tuple[RuleBody | None, MissingRule | None]:
    """(the recorded vjp of ``bind``, None), or (None, the error) where there is no rule."""
    mask = DEFINED if len(bind.binders) == 1 else (True,) * len(bind.binders)
    try:
        return rule_body("vjp", bind, mask, needed), None
    except MissingRule as error:
        return None, error


# Note [Collections]: every full garbage collection traverses a long history, but not tuples that
# cannot be part of a cycle, such as tuples of arrays. ``itemgetter`` returns a bare item for one
# position, and a tuple if the position is given twice.

"""``Form``: what is known of an operation on operands of given types before it is computed.

Computing, typing, keeping and differentiating it are all looked up once: a form is found by (op,
attributes, types of the operands, which of them require grad).
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from attrs import frozen

from letir.ad.reverse import DEFINED, pull
from letir.ad.rules import RuleBody, rule_body, selector
from letir.ast.attrs import Attrs
from letir.ast.builder import located, result_types
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.terms import Bind, Const, Local
from letir.ast.types import WEAK, ArrayType
from letir.eager.steps import FREED, Origin, Part, Step, check_unchanged, freed
from letir.errors import LetirError, MissingRule
from letir.eval.arrays import cupy_module, type_of
from letir.eval.evaluator import Evaluator, compute
from letir.tracing.places import placed

forms: dict = {}  # may be emptied at any time
_MOST = 1 << 14
_array_types: dict = {}  # (dtype, shape) -> ArrayType; may be emptied at any time
# their rules are simpler for a number that is known; users' rules may look at numbers as well
BY_VALUE = frozenset([PRIMITIVES["power"]])


@frozen(eq=False)
class Form:
    """How an operation on such operands is computed, and what a step of it keeps.

    ``compute(*values)`` gives the result, or a tuple. ``bind`` is the operation on stand-ins:
    locals, and numbers that are known. ``rule``: that for all cotangents, None if the result
    requires no grad or ``missing`` says why there is none. ``kept``: the
    positions among operands and results of what a step keeps.
    """

    op: Primitive
    attrs: Attrs
    bind: Bind
    types: tuple
    type: ArrayType | None  # of the only result
    compute: Callable
    is_plain: bool  # one result, which shares no memory with an operand
    requires_grad: bool
    needed: frozenset
    rule: RuleBody | None
    missing: MissingRule | None
    kept: tuple[int, ...]
    keep: Callable
    unpack: Callable

    def rule_for(self, mask: tuple | None) -> RuleBody:
        """The rule where only some results have a cotangent; None: all of them."""
        if self.missing is not None:
            raise MissingRule(*self.missing.args)
        if mask is None or all(mask):
            return self.rule
        return rule_body("vjp", self.bind, mask, self.needed, pull)

    def read(self, rule: RuleBody, step: Step) -> Sequence:
        """The values that ``rule`` reads, of those that ``step`` kept.

        Raises TraceError if one went free, or was changed in place.
        """
        kept, args = step.kept, step.args
        if kept is FREED:
            raise freed(step)
        count = len(args)
        for place in rule.captured:
            origin = args[place] if place < count else step
            if origin is not None and origin.notes is not None:
                check_unchanged(origin, step)
        if rule is self.rule:
            return self.unpack(kept)
        return [kept[self.kept.index(place)] for place in rule.captured]

    def origins(self, rule: RuleBody, step: Step) -> list[Origin | None]:
        """The origins of these values, None for constants."""
        args, count = step.args, len(step.args)
        found: list = []
        for place in rule.captured:
            if place < count:
                found.append(args[place])
            elif self.type is not None:
                found.append(step)
            else:
                found.append(Part(self.types[place - count], step, place - count))
        return found

    def pull(self, rule: RuleBody, emitter, cts: list, captured: Sequence) -> tuple:
        """The cotangents of the operands, as ``rule.results`` says; ``cts`` has None for those that
        are missing.
        """
        if len(cts) > 1:
            cts = [ct for ct in cts if ct is not None]
        return rule.run(emitter.apply, [*cts, *captured])


def array_type(array) -> ArrayType:
    """``type_of``, remembered by dtype and shape."""
    if type(array) is not np.ndarray:
        return type_of(array)
    key = array.dtype, array.shape
    found = _array_types.get(key)
    if found is None:
        if len(_array_types) >= _MOST:
            _array_types.clear()
        found = _array_types[key] = type_of(array)
    return found


def kind_of(op: Primitive, operand):
    """What the form of ``op`` depends on in an operand that is no Variable: a type, or a value."""
    weak = WEAK.get(type(operand))
    if weak is None:
        if operand is None or not hasattr(operand, "dtype"):
            return Const(operand)
        return array_type(operand)
    if op in BY_VALUE or "." in op.name:
        return Const(operand)
    return weak


def form_of(key: tuple, op: Primitive, attrs: Attrs, operands: list[tuple]) -> Form:
    """The form of ``op`` on operands given as (kind, whether it requires grad), kept by ``key``."""
    if len(forms) >= _MOST:
        forms.clear()
    args = tuple([kind if type(kind) is Const else Local(kind) for kind, _ in operands])
    needed = frozenset([a for a, (_, requires) in zip(args, operands, strict=True) if requires])
    try:
        types = result_types(op, args, attrs)
    except LetirError as error:
        raise placed(located(error, str(Bind((), op, args, attrs)), None)) from None
    bind = Bind(tuple([Local(kind) for kind in types]), op, args, attrs)
    found = forms[key] = _made(bind, types, needed)
    return found


def _made(bind: Bind, types: tuple, needed: frozenset) -> Form:
    op, args = bind.op, bind.args
    inexact = any(kind is None or kind.inexact for kind in types)
    requires_grad = bool(needed) and op.is_differentiable and inexact
    rule, missing = _rule(bind, needed) if requires_grad else (None, None)
    captured = () if rule is None else rule.captured
    constants = [i for i, arg in enumerate(args) if arg not in needed]
    kept = tuple(sorted({*constants, *captured})) if requires_grad else ()
    run = kernel(op, bind.attrs)
    single = op.results is None
    return Form(
        op,
        bind.attrs,
        bind,
        types,
        types[0] if single else None,
        run,
        single and isinstance(run, np.ufunc) and types[0] is not None,
        requires_grad,
        needed,
        rule,
        missing,
        kept,
        selector(list(kept)),
        selector([kept.index(place) for place in captured]),
    )


def _rule(bind: Bind, needed: frozenset) -> tuple[RuleBody | None, MissingRule | None]:
    mask = DEFINED if len(bind.binders) == 1 else (True,) * len(bind.binders)
    try:
        return rule_body("vjp", bind, mask, needed, pull), None
    except MissingRule as error:
        return None, error


def kernel(op: Primitive, attrs: Attrs) -> Callable:
    """What computes ``op`` with these attributes: NumPy's ufunc itself where it is one."""
    if cupy_module() is not None:
        return lambda *values: compute(op, values, attrs)
    (ufunc, *others) = [f for f in op.numpy if isinstance(f, np.ufunc)] or [None]
    if op.elementwise and ufunc is not None and not (others or attrs or "." in op.name):
        return ufunc
    if op.holds_lambdas:
        return partial(op.impl, np, call=Evaluator(np).call, **attrs)
    return partial(op.impl, np, **attrs)

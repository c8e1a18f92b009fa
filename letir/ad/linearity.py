"""Linearity analysis: whether a program is linear in some of its parameters.

A bind is linear in some operands if its vjp reads neither these operands nor the results, and if no
other term is added. Another operand adds a term if its cotangent does not read the linear operands
either: c adds a term in x + c, but not in x * c, where the result is zero for x = 0.
"""

from collections.abc import Collection, Iterator

import numpy as np

from letir.ad.linearity_of_bodies import dependent_results, is_decided_by_bodies, obstacle_in_bodies
from letir.ad.rule_cache import RuleBody, rule_body
from letir.ast.derivative_types import carries_derivative
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.source import source_line
from letir.ast.terms import Arg, Bind, Lambda, Local, Ret
from letir.ast.text.printer import line_of
from letir.ast.types import PYTHON_NUMBERS, WEAK, ArrayType
from letir.errors import LetirError
from letir.ops.define.records import decomposition
from letir.passes.dead_code_elimination import dead_code


class Linearity:
    """Finds the locals of ``fn`` that are ``linear`` in ``params``, and those that are ``zero``.

    Takes linear time. Raises LetirError that names the first bind that is not linear; ``caller`` is
    the transform that asks, ``remedy`` the advice in the error.
    """

    def __init__(self, fn: Lambda, params: Collection[Local], caller: str, remedy: str):
        # without dead binds, which need not be linear
        self.fn, self.caller, self.remedy = dead_code(fn), caller, remedy
        self.linear: set[Local] = set(params)
        self.zero: set[Local] = set()
        for bind in self.fn.binds:
            self.classify(bind)
        for arg in self.fn.ret.args:
            if not self.vanishes(arg):
                same = "is the same for all arguments, but not zero"
                raise LetirError(f"{caller}: the result {arg!r} {same}\n  {remedy}")

    def vanishes(self, arg: Arg) -> bool:
        """Whether ``arg`` is zero if the linear parameters are zero."""
        if type(arg) is Local:
            return arg in self.linear or arg in self.zero
        return type(arg.value) in PYTHON_NUMBERS and arg.value == 0

    def classify(self, bind: Bind) -> None:
        """Classify the results of ``bind`` as linear, zero or neither."""
        if _always_zero(bind):
            self.zero.update(bind.binders)
            return
        # one test for both sets: an operation that is linear in operands of zero has zero results
        for locals_ in (self.linear, self.zero):
            chosen = {arg for arg in bind.locals() if arg in locals_}
            if chosen and not bind.op.reads_sizes_only:
                why = self.obstacle(bind, chosen)
                if why is None:
                    locals_.update(_dependent_results(bind, chosen))
                elif locals_ is self.linear:
                    raise self.nonlinear_error(bind, why)
                return
        if any(type(arg) is not Local and self.vanishes(arg) for arg in bind.args):
            self.classify_zero_product(bind)

    def classify_zero_product(self, bind: Bind) -> None:
        """Classify the results as zero if ``bind`` multiplies by a constant zero."""
        for probe, local in _probe_operands(
            bind, [arg for arg in bind.args if type(arg) is not Local]
        ):
            is_zero = self.vanishes(bind.args[probe.args.index(local)])
            if is_zero and self.obstacle(probe, {local}) is None:
                self.zero.update(bind.binders)

    def obstacle(self, bind: Bind, chosen: set[Local]) -> str | None:
        """Why ``bind`` is not linear in these operands; None if it is."""
        if not all(map(_has_linear_rule, _operations_of(bind))):
            return "has no linear rule"
        if is_decided_by_bodies(bind):
            return self.obstacle_in_bodies(bind, chosen)
        if not all(map(carries_derivative, bind.binders)):
            return "does not give floating numbers"
        rule = _reverse_rule(bind, chosen)
        places = {i for i, arg in enumerate(bind.args) if arg in chosen}
        if bind.op.linear_in is not None and not places.issubset(bind.op.linear_in):
            return "adds a term that does not depend on the arguments"
        if not places.issubset(rule.results) or _reads_values(bind, rule, {*chosen, *bind.binders}):
            return "is not linear"
        if bind.attrs.get(bind.op.added):
            return "adds a number"
        # the vjp of x + c reads nothing; the cotangent of c, which does not read x, shows the sum
        others = [a for a in bind.args if a not in chosen and not self.vanishes(a)]
        for probe, local in _probe_operands(bind, others):
            rule = _rule_if_any(probe, {local})
            if (
                rule is not None
                and rule.results
                and not _reads_values(probe, rule, {*chosen, *bind.binders})
            ):
                return "adds a term that does not depend on the arguments"
        return self.obstacle_inside(bind, chosen)

    def obstacle_inside(self, bind: Bind, chosen: set[Local]) -> str | None:
        """``obstacle`` in the decomposition of a composite, because its vjp hides added terms."""
        avals = [arg.type for arg in bind.args]
        if bind.op.decompose is None or None in avals:
            return None
        types = tuple([aval if isinstance(aval, ArrayType) else None for aval in avals])
        inside = decomposition(bind.op.decompose, types, dict(bind.attrs))
        given_args = [arg for arg, aval in zip(bind.args, types, strict=True) if aval is not None]
        params = [p for p, arg in zip(inside.params, given_args, strict=True) if arg in chosen]
        try:
            Linearity(inside, params, self.caller, self.remedy)
        except LetirError:
            return "is not linear"
        return None

    def obstacle_in_bodies(self, bind: Bind, chosen: set[Local]) -> str | None:
        """``obstacle`` for an operation with bodies, such as a loop."""
        depend = _dependent_results(bind, chosen)
        return obstacle_in_bodies(
            bind,
            chosen,
            depend,
            lambda arg: arg in chosen or self.vanishes(arg),
            lambda fn, params: Linearity(fn, params, self.caller, self.remedy),
        )

    def nonlinear_error(self, bind: Bind, why: str) -> LetirError:
        """The error for ``bind`` with its let line and the user's line."""
        at = source_line(bind.source)
        name = bind.attrs.get("operator", bind.op.name)
        return LetirError(
            f"{self.caller}: {name} {why}\n  in {line_of(self.fn, bind)}{at}\n  {self.remedy}"
        )


def _operations_of(bind: Bind) -> list[Primitive]:
    """The operation of ``bind``, and the operation that it applies, such as the ufunc of ``at``."""
    inner = bind.attrs.get("ufunc") or bind.attrs.get("operator")
    return [bind.op, PRIMITIVES[inner]] if inner in PRIMITIVES else [bind.op]


def _has_linear_rule(op: Primitive) -> bool:
    """Whether the vjp of an operation shows in which operands it is linear."""
    return op.is_differentiable and op.linear_in != ()


def _always_zero(bind: Bind) -> bool:
    """Whether the results of ``bind`` are zero for all operands, or are empty arrays."""
    if all(type(b.type) is ArrayType and b.type.size == 0 for b in bind.binders):
        return bool(bind.binders)
    is_zero = bind.op.is_zero
    return is_zero is not None and is_zero(*[arg.type for arg in bind.args], **bind.attrs)


def _reverse_rule(bind: Bind, needed: set[Local], mask: tuple | None = None) -> RuleBody:
    """The vjp rule of ``bind`` for the operands in ``needed`` and the cotangents in ``mask``."""
    mask = mask or tuple(map(carries_derivative, bind.binders))
    return rule_body("vjp", bind, mask, needed)


def _dependent_results(bind: Bind, chosen: set[Local]) -> list[Local]:
    """The results of ``bind`` that depend on the operands ``chosen``, in which it is linear."""
    # a single result depends on them: ``obstacle`` has found a cotangent for each operand
    if len(bind.binders) == 1:
        return list(bind.binders)
    if is_decided_by_bodies(bind):
        return dependent_results(bind, chosen)
    masks = [tuple(other is binder for other in bind.binders) for binder in bind.binders]
    pairs = zip(bind.binders, masks, strict=True)
    return [binder for binder, mask in pairs if _reverse_rule(bind, chosen, mask).results]


def _rule_if_any(bind: Bind, needed: set[Local]) -> RuleBody | None:
    """``_reverse_rule``; None if an operand, such as an index or condition, cannot be floating."""
    try:
        return _reverse_rule(bind, needed)
    except LetirError:
        return None


def _reads_values(bind: Bind, rule: RuleBody, locals_: Collection[Local]) -> bool:
    """Whether the rule reads elements of any of these locals, and not only their sizes."""
    places = bind.args + bind.binders
    captured = rule.body.params[rule.attrs["n_cts"] :]
    chosen = {p for p, i in zip(captured, rule.captured, strict=True) if places[i] in locals_}
    terms: tuple[Bind | Ret, ...] = (*rule.body.binds, rule.body.ret)
    return any(arg in chosen for term in terms if not _is_size(term) for arg in term.locals())


def _is_size(term) -> bool:
    """Whether a term reads only the sizes of its operands."""
    return type(term) is Bind and term.op.reads_sizes_only


def _probe_operands(bind: Bind, others: list) -> Iterator[tuple[Bind, Local]]:
    """(bind, operand) for each of the operands ``others``.

    An integer operand, or a Python number, is replaced by a floating local in the bind.
    """
    for other in others:
        if type(other) is Local and carries_derivative(other):
            yield bind, other
        elif type(other) is Local or type(other.value) in PYTHON_NUMBERS:
            local = Local(_floating_type(other.type, bind))
            args = tuple([local if arg is other else arg for arg in bind.args])
            yield bind.replace(args=args), local


def _floating_type(aval: ArrayType, bind: Bind) -> ArrayType:
    """The type ``aval`` with a floating dtype that fits the results of ``bind``."""
    if aval.inexact:
        return aval
    avals = [binder.type for binder in bind.binders if binder.type is not None]
    dtype = avals[0].dtype if avals else np.dtype(float)
    return WEAK[complex if dtype.kind == "c" else float] if aval.weak else aval.with_dtype(dtype)

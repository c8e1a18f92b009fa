"""Maxima that a program subtracts only to avoid overflow, as in softmax and logsumexp.

No result changes if such a maximum ``m`` changes by any ``t``: ``exp(x - m)`` is multiplied by
``exp(-t)``, and so is its sum, by which it is divided. So the derivative with respect to the
maximum is zero, and gradients leave it out; computed, it would be rounding errors.
"""

from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from attrs import evolve, frozen

from letir.ast import LATE_BOUND
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Arg, Bind, Const, Lambda, Local

Labels = tuple[int | None, ...]


class _UnknownChange(Exception):
    """Raised for an operation whose result changes in a way that has no description here."""


@frozen
class _Change:
    """How a value changes if the maximum ``root`` changes by t.

    ``form``: "shift", by ``weight * t``; or "scale", by the factor ``exp(weight * t)``. ``labels``:
    for each axis the axis of ``t``, or None if t is the same along it.
    """

    root: Local
    form: str
    weight: float
    labels: Labels


def without_canceling_maxima(fn: Lambda, tape: list[Bind], needed: set[Local]) -> list[Bind]:
    """The binds of ``tape`` through which a derivative flows if none flows through such maxima.

    ``tape``: the binds of ``fn`` that depend on the differentiated parameters; ``needed``: these
    parameters and the results of these binds. Removes the locals that need no derivative.
    """
    canceled = canceling_maxima(tape, fn.ret.args, fn.binds)
    if not canceled:
        return tape
    result = []
    for bind in tape:
        is_needed = any(type(arg) is Local and arg in needed for arg in bind.args)
        if is_needed and canceled.isdisjoint(bind.binders):
            result.append(bind)
        else:
            needed.difference_update(bind.binders)
    return result


def canceling_maxima(
    tape: Iterable[Bind], results: Iterable[Arg], binds: Sequence[Bind]
) -> set[Local]:
    """The maxima among the binds of ``tape`` on which no result depends.

    ``tape``: the binds through which derivatives flow; ``binds``: all binds of the program. Takes
    linear time.
    """
    changes: dict[Arg, _Change] = {}
    roots: set[Local] = set()
    failed: set[Local] = set()
    constants = _Constants(binds)
    for bind in tape:
        new_roots = {changes[a].root for a in bind.args if type(a) is Local and a in changes}
        if new_roots:
            try:
                change = _change_of(bind, changes, constants)
            except _UnknownChange:
                failed |= new_roots
            else:
                if change.weight != 0:
                    changes[bind.binders[0]] = change
        elif bind.op.name in _EXTREMA and (change := _root_change(bind)) is not None:
            roots.add(change.root)
            changes[change.root] = change
    failed |= {changes[arg].root for arg in results if type(arg) is Local and arg in changes}
    return roots - failed


class _Constants:
    """The values of a program's constants, looked up at the first question."""

    def __init__(self, binds: Sequence[Bind]):
        self.binds = binds
        self.values: dict[Arg, Any] | None = None

    def value(self, arg: Arg) -> Any:
        """The value of an argument; None if it is not a constant."""
        if type(arg) is Const:
            return arg.value
        if self.values is None:
            constants = [bind for bind in self.binds if bind.op.role == "constant"]
            self.values = {bind.binders[0]: bind.attrs.get("value") for bind in constants}
        return self.values.get(arg)


def _root_change(bind: Bind) -> _Change | None:
    """The change of an extremum of one array of known shape; None for others."""
    (binder,), aval = bind.binders, bind.binders[0].type
    is_plain = len(bind.args) == 1 and bind.attrs["initial"] is None
    if not is_plain or aval is None or not is_static_shape(aval.shape):
        return None
    labels = [None if length == 1 else n for n, length in enumerate(aval.shape)]
    return _Change(binder, "shift", 1, tuple(labels))


def _change_of(bind: Bind, changes: dict[Arg, _Change], constants: _Constants) -> _Change:
    """The change of a bind's result. Raises _UnknownChange."""
    rule = _RULES.get(bind.op.name)
    avals = [getattr(arg, "type", None) for arg in (*bind.args, *bind.binders)]
    if rule is None or len(bind.binders) != 1 or bind.binders[0].type is None:
        raise _UnknownChange
    if any(aval is not None and not is_static_shape(aval.shape) for aval in avals):
        raise _UnknownChange
    operands = [changes.get(arg) if type(arg) is Local else None for arg in bind.args]
    if len({change.root for change in operands if change is not None}) != 1:
        raise _UnknownChange
    return rule(bind, operands, constants)


# ---- elementwise operations ----


def _broadcast_labels(bind: Bind, operands: Sequence[_Change | None]) -> Labels:
    """The labels of the result of operands that are broadcast; they have to agree."""
    shape = bind.binders[0].type.shape
    result = set()
    for change in operands:
        if change is not None:
            result.add((None,) * (len(shape) - len(change.labels)) + change.labels)
    if len(result) != 1:
        raise _UnknownChange
    return result.pop()


def _joint_weight(sign: int, operands: Sequence) -> float:
    """The weight of the maximum in a sum or product of two operands; the second one has a sign."""
    factors = zip((1, sign), operands, strict=True)
    return sum([factor * x.weight for factor, x in factors if x is not None])


def _sum_rule(sign: int) -> Callable:
    """The rule of an addition, or of a subtraction."""

    def rule(bind: Bind, operands: Sequence, constants: _Constants) -> _Change:
        labels, changed = _broadcast_labels(bind, operands), [x for x in operands if x is not None]
        if {x.form for x in changed} == {"shift"}:
            return evolve(changed[0], weight=_joint_weight(sign, operands), labels=labels)
        if len(changed) == 1 or len({(x.form, x.weight) for x in changed}) != 1:
            raise _UnknownChange
        return evolve(changed[0], labels=labels)

    return rule


def _product_rule(sign: int) -> Callable:
    """The rule of a multiplication, or of a division."""

    def rule(bind: Bind, operands: Sequence, constants: _Constants) -> _Change:
        labels, changed = _broadcast_labels(bind, operands), [x for x in operands if x is not None]
        if {x.form for x in changed} == {"scale"}:
            return evolve(changed[0], weight=_joint_weight(sign, operands), labels=labels)
        if len(changed) == 2:
            raise _UnknownChange
        n = operands.index(changed[0])
        number = constants.value(bind.args[1 - n])
        if isinstance(number, bool) or not isinstance(number, Real) or (sign < 0 and n == 1):
            raise _UnknownChange
        weight = (
            changed[0].weight * number if sign > 0 else changed[0].weight / float(number or np.nan)
        )
        return evolve(changed[0], weight=weight, labels=labels)

    return rule


def _form_change_rule(before: str, after: str) -> Callable:
    """The rule of an operation that turns one form into another."""

    def rule(bind: Bind, operands: Sequence, constants: _Constants) -> _Change:
        if operands[0].form != before:
            raise _UnknownChange
        return evolve(operands[0], form=after)

    return rule


def _negation_change(bind: Bind, operands: Sequence, constants: _Constants) -> _Change:
    """The rule of a negation."""
    x = operands[0]
    return evolve(x, weight=-x.weight) if x.form == "shift" else x


def _same_change(bind: Bind, operands: Sequence, constants: _Constants) -> _Change:
    """The rule of a cast or copy, whose result, a float, changes as the operand does."""
    if bind.binders[0].type.dtype.kind != "f":
        raise _UnknownChange
    return operands[0]


# ---- axes ----


def _reduction_rule(form: str) -> Callable:
    """The rule of a reduction along axes on which t does not depend."""

    def rule(bind: Bind, operands: Sequence, constants: _Constants) -> _Change:
        x, attrs = operands[0], bind.attrs
        if len(bind.args) != 1 or attrs.get("initial") is not None or x.form != form:
            raise _UnknownChange
        axis, rank = attrs["axis"], len(x.labels)
        axes = range(rank) if axis is None else axis if type(axis) is tuple else (axis,)
        reduced = {n % rank for n in axes} if rank else set()
        if any(x.labels[n] is not None for n in reduced):
            raise _UnknownChange
        labels = [None if n in reduced else label for n, label in enumerate(x.labels)]
        if not attrs.get("keepdims"):
            labels = [label for n, label in enumerate(x.labels) if n not in reduced]
        return evolve(x, labels=tuple(labels))

    return rule


def _reshape_change(bind: Bind, operands: Sequence, constants: _Constants) -> _Change:
    """The rule of operations that only insert or remove axes of length 1."""
    before, after = bind.args[0].type.shape, bind.binders[0].type.shape
    if [n for n in before if n != 1] != [n for n in after if n != 1]:
        raise _UnknownChange
    labels = iter([x for x, n in zip(operands[0].labels, before, strict=True) if n != 1])
    return evolve(operands[0], labels=tuple([None if n == 1 else next(labels) for n in after]))


def _index_change(bind: Bind, operands: Sequence, constants: _Constants) -> _Change:
    """The rule of basic indices, and of ``x[np.arange(n), places]`` for t along one axis."""
    item, x = bind.attrs["item"], operands[0]
    item = item if type(item) is tuple else (item,)
    if len(bind.args) == 1:
        return evolve(x, labels=_basic_index(item, x.labels))
    arrays = bind.args[1:]
    if len(arrays) != len(item) or len(item) != len(x.labels) or any(operands[1:]):
        raise _UnknownChange
    axis_label = None
    for label, array, length in zip(x.labels, arrays, bind.args[0].type.shape, strict=True):
        if array.type.shape != bind.binders[0].type.shape or len(array.type.shape) != 1:
            raise _UnknownChange
        if label is not None:
            places = constants.value(array)
            is_each = isinstance(places, np.ndarray) and np.array_equal(places, np.arange(length))
            if axis_label is not None or not is_each:
                raise _UnknownChange
            axis_label = label
    return evolve(x, labels=(axis_label,))


def _basic_index(item: tuple, labels: Labels) -> Labels:
    """The labels of ``x[item]``, an index of slices, integers, None and an ellipsis."""
    remaining, kept_labels = list(labels), []
    if ... in item:  # it stands for the axes without a part
        place, named = item.index(...), [part for part in item if part not in (None, ...)]
        whole = (slice(None),) * (len(labels) - len(named))
        item = (*item[:place], *whole, *item[place + 1 :])
    for part in item:
        label = remaining.pop(0) if part is not None else None
        is_whole = part is None or part == slice(None)
        if not is_whole and (label is not None or type(part) not in (int, slice)):
            raise _UnknownChange
        if type(part) is not int:
            kept_labels.append(label)
    return (*kept_labels, *remaining)


_EXTREMA = frozenset(["max", "min"])
_RULES: dict[str, Callable] = {
    "add": _sum_rule(1),
    "sub": _sum_rule(-1),
    "mul": _product_rule(1),
    "div": _product_rule(-1),
    "neg": _negation_change,
    "exp": _form_change_rule("shift", "scale"),
    "log": _form_change_rule("scale", "shift"),
    "cast": _same_change,
    "copy": _same_change,
    "sum": _reduction_rule("scale"),
    "mean": _reduction_rule("shift"),
    "index": _index_change,
    "expand_dims": _reshape_change,
    "reshape": _reshape_change,
    "squeeze": _reshape_change,
    "broadcast_to": lambda bind, given, constants: evolve(
        given[0], labels=_broadcast_labels(bind, given)
    ),
}

LATE_BOUND["without_canceling_maxima"] = without_canceling_maxima

"""Peephole rules for ``where``, logical operations and sizes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast.attrs import Attrs, freeze
from letir.ast.primitive import Primitive
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import NO_TYPE, Arg, Bind, Const, Local
from letir.ops.elementwise.comparisons_and_where import (
    bitwise_and,
    bitwise_or,
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
    where,
)
from letir.ops.elementwise.ufuncs import maximum, minimum
from letir.ops.shape.shape_and_creation import constant, full, size, sum_to_size
from letir.passes.peephole_rules.algebra import drop_neutral, replace_operation
from letir.passes.peephole_rules.movement import MANTISSA, has_private_names
from letir.passes.peephole_rules.value_facts import ValueFacts


def array_instead(bind: Bind, value: Any) -> Bind:
    """A constant that replaces the result of ``bind``."""
    return bind.replace(op=constant, args=(), attrs=Attrs(value=freeze(value)))


# ---- where ----


def _merge_choices(bind: Bind, facts: ValueFacts) -> Arg | Bind | None:
    """``where`` with equal branches, or nested with the same condition."""
    (y,), (condition, a, b) = bind.binders, bind.args
    if not y.type.shape or any(arg.type is None for arg in bind.args):
        return None
    if a is b:
        return a if facts.may_be_replaced(y, a, condition) else None
    decided = facts.number(condition)
    if type(decided) is bool:
        chosen, refused = (a, b) if decided else (b, a)
        return chosen if facts.may_be_replaced(y, chosen, refused) else None
    return _nested_choice(bind, facts)


def _nested_choice(bind: Bind, facts: ValueFacts) -> Bind | None:
    """where(c, where(c, a, _), b) = where(c, a, b), and likewise in the other branch."""
    condition, *branches = bind.args
    if type(condition) is not Local:
        return None
    inner = [_inner_choice(condition, branch, i, facts) for i, branch in enumerate(branches)]
    if inner == [None, None]:
        return None
    chosen = [new or old for new, old in zip(inner, branches, strict=True)]
    return replace_operation(bind, where, condition, *chosen)


def _inner_choice(condition: Local, branch: Arg, i: int, facts: ValueFacts) -> Arg | None:
    """The selected value of a branch that is a ``where`` with the same condition."""
    inner = facts.producers.get(branch) if facts.op_of(branch) is where else None
    if inner is None or inner.args[0] is not condition:
        return None
    chosen = inner.args[1 + i]
    # equal types, or ``where`` would cast; C order, or the result's memory order may change
    is_same = type(chosen) is Local and chosen.type is branch.type
    in_rows = len(branch.type.shape) < 2 or facts.is_c_contiguous(chosen)
    return chosen if is_same and in_rows else None


# ---- logic ----


def _double_not(bind: Bind, facts: ValueFacts) -> Arg | Bind | None:
    """not not x is x for booleans, otherwise x != 0."""
    (y,), (inner,) = bind.binders, bind.args
    if facts.op_of(inner) is not logical_not:
        return None
    (x,) = facts.producers[inner].args
    if x.type is y.type:
        return x if facts.may_be_replaced(y, x) else None
    return (
        None if x.type is None or x.type.weak else replace_operation(bind, not_equal, x, Const(0))
    )


def _idempotent_logic(bind: Bind, facts: ValueFacts) -> Arg | None:
    """x and x, x or x, and the larger of x and x."""
    x, y = bind.args
    return x if x is y and facts.may_be_replaced(bind.binders[0], x) else None


def _is_false(n, kind: str) -> bool:
    """Whether x or n is x."""
    return n is False


def _is_true(n, kind: str) -> bool:
    """Whether x and n is x."""
    return n is True


def _compare_with_itself(bind: Bind, facts: ValueFacts) -> Bind | None:
    """An integer, such as a size, compared with itself."""
    (y,), (a, b) = bind.binders, bind.args
    if a is not b or y.type.shape or type(a) is not Local or a.type.dtype.kind not in "biu":
        return None
    return array_instead(bind, np.bool_(bind.op in (equal, less_equal, greater_equal)))


def _single_bound(bind: Bind, facts: ValueFacts) -> Bind | None:
    """``clip`` with one bound as ``maximum`` or ``minimum``, which ``np.clip`` calls itself."""
    x, low, high = bind.args
    # Python integers may be out of an integer's range; for None NumPy raises an error
    if x.type in (None, NO_TYPE) or x.type.dtype.kind != "f":
        return None
    absent = [type(arg) is Const and arg.value is None for arg in (low, high)]
    if absent == [False, True]:
        return replace_operation(bind, maximum, x, low)
    if absent == [True, False]:
        return replace_operation(bind, minimum, x, high)
    return None


# ---- sizes ----


def _known_size(bind: Bind, facts: ValueFacts) -> Arg | Bind | None:
    """A known size as a constant; else the size of the first value that has the same shape."""
    (y,), (x,) = bind.binders, bind.args
    if x.type is None or type(x) is Const:
        return None
    shape = x.type.shape
    if is_static_shape(shape):
        return array_instead(bind, np.array(shape, np.int64))
    if has_private_names(shape):
        return None
    first = facts.sizes.setdefault(shape, y)
    return first if first is not y and facts.new_memory_may_be_replaced(y, first) else None


def _single_size(bind: Bind, facts: ValueFacts) -> Bind | None:
    """One element of a known size."""
    x, axis = bind.args[0], bind.attrs["item"]
    if facts.op_of(x) is not size or type(axis) is not int or len(bind.args) > 1:
        return None
    aval = facts.producers[x].args[0].type
    n = None if aval is None else aval.shape[axis]
    return array_instead(bind, np.int64(n)) if type(n) is int else None


# ---- sums ----


def _sum_of_equal_integers(bind: Bind, facts: ValueFacts) -> Bind | None:
    """A sum of floats that are one known whole number, as in the gradient of a sum: all orders of
    summation give the same number.
    """
    (y,), (x, *others) = bind.binders, bind.args
    if others or type(x) is not Local or x.type is None or bind.attrs.get("initial") is not None:
        return None
    dtype, shape = y.type.dtype, y.type.shape
    if x.type.dtype != dtype or dtype.kind != "f" or dtype.itemsize not in MANTISSA:
        return None
    n = facts.number(x) if is_static_shape((*x.type.shape, *shape)) else None
    if not n or n != n // 1 or not x.type.size:
        return None
    total = n * (x.type.size // y.type.size)
    if abs(total) > 1 << MANTISSA[dtype.itemsize]:
        return None
    if not shape:
        return array_instead(bind, dtype.type(total))
    attrs = full.complete({"shape": shape, "dtype": dtype})
    return bind.replace(op=full, args=(Const(total),), attrs=attrs)


_SAME = (_idempotent_logic,)
RULES: dict[Primitive | str, tuple[Callable, ...]] = {
    where: (_merge_choices,),
    logical_not: (_double_not,),
    logical_and: (_idempotent_logic, drop_neutral(_is_true, first=True)),
    logical_or: (_idempotent_logic, drop_neutral(_is_false, first=True)),
    logical_xor: (drop_neutral(_is_false, first=True),),
    bitwise_and: _SAME,
    bitwise_or: _SAME,
    maximum: _SAME,
    minimum: _SAME,
    **dict.fromkeys(
        (equal, not_equal, less, less_equal, greater, greater_equal), (_compare_with_itself,)
    ),
    "clip": (_single_bound,),
    size: (_known_size,),
    sum_to_size: (_sum_of_equal_integers,),
    "sum": (_sum_of_equal_integers,),
    "index": (_single_size,),  # by name, which does not load its record
}

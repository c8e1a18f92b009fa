"""Peephole rules for arithmetic: neutral elements, double signs, powers.

Tempting but wrong: x + 0 turns -0.0 into 0.0 (x - 0 does not); x * 1 and x / 1 turn a complex inf
into nan; x - x and x * 0 are nan for inf (``fast_math`` has these rules).
"""

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from letir.ast.attrs import NO_ATTRS
from letir.ast.primitive import Primitive
from letir.ast.process_state import float_errors
from letir.ast.terms import Arg, Bind, Const, Local
from letir.ops.elementwise.comparisons_and_where import bitwise_and, bitwise_or, bitwise_xor, invert
from letir.ops.elementwise.rounding_sign_parts import abs_, ceil, conj, floor, rint, sign, trunc
from letir.ops.elementwise.ufuncs import (
    add,
    div,
    floor_divide,
    mul,
    neg,
    positive,
    power,
    sqrt,
    square,
    sub,
)
from letir.passes.peephole_rules.value_facts import ValueFacts

_MAX_EXPONENT = 14  # 2.0**-14 is the least normal float16: scaling by such powers is exact


def replace_operation(bind: Bind, op: Primitive, *args: Arg) -> Bind:
    """``op(*args)`` in the place of ``bind``."""
    return bind.replace(op=op, args=args, attrs=NO_ATTRS)


# ---- neutral elements ----


def _is_plus_zero(n, kind: str) -> bool:
    """Whether x - n is x."""
    parts = (n.real, n.imag) if type(n) is complex else (n,)
    return n == 0 and (kind in "iu" or all(math.copysign(1, part) > 0 for part in parts))


def _is_minus_zero(n, kind: str) -> bool:
    """Whether x + n is x: only for n = -0.0, as 0.0 turns -0.0 into 0.0."""
    if kind in "iu":
        return n == 0
    parts = (n.real, n.imag) if type(n) is complex else (n,)
    # a real -0.0 added to a complex number has the imaginary part 0.0
    return n == 0 and len(parts) == 1 + (kind == "c") and _all_negative(parts)


def _all_negative(parts: tuple) -> bool:
    """Whether all elements have the sign bit set."""
    return all(math.copysign(1, part) < 0 for part in parts)


def _is_neutral_factor(n, kind: str) -> bool:
    """Whether x * n and x / n are x; not for complex numbers, where inf * 0 is nan."""
    return n == 1 and kind != "c"


def _is_neutral_divisor(n, kind: str) -> bool:
    """Whether x // n is x."""
    return n == 1 and kind in "iu"


def _has_no_bits(n, kind: str) -> bool:
    """Whether x | n is x."""
    return n == 0


def _has_all_bits(n, kind: str) -> bool:
    """Whether x & n is x."""
    return n is True if kind == "b" else kind == "i" and n == -1


def drop_neutral(is_neutral: Callable, *, first: bool) -> Callable:
    """The rule for an operation that returns one operand if the other is neutral."""

    def rule(bind: Bind, facts: ValueFacts) -> Arg | None:
        (y,), (a, b) = bind.binders, bind.args
        kind = y.type.dtype.kind
        for x, n in ((a, b), (b, a)) if first else ((a, b),):
            value = facts.number(n)
            if value is not None and is_neutral(value, kind) and facts.may_be_replaced(y, x, n):
                return x
        return None

    return rule


# ---- involutions and idempotent operations ----


def _drop_inverse_pair(bind: Bind, facts: ValueFacts) -> Arg | Bind | None:
    """The rule for an involution applied twice."""
    (y,), (inner,) = bind.binders, bind.args
    if facts.op_of(inner) is not bind.op:
        return None
    x = facts.producers[inner].args[0]
    if facts.may_be_replaced(y, x):
        return x
    # the result must be a new array: one operation makes it
    return None if y.type.dtype.kind == "b" else replace_operation(bind, positive, x)


def _drop_repeated(*ops: Primitive) -> Callable:
    """The rule for an operation that does nothing on results of these operations."""

    def rule(bind: Bind, facts: ValueFacts) -> Arg | None:
        (y,), (x,) = bind.binders, bind.args
        is_done = facts.op_of(x) in ops and y.type.dtype.kind != "c"
        return x if is_done and facts.may_be_replaced(y, x) else None

    return rule


def _rounded_already(bind: Bind, facts: ValueFacts) -> Arg | None:
    """Rounding of integers, and conjugation of real numbers, do nothing."""
    (y,), (x,) = bind.binders, bind.args
    kinds = "iuf" if bind.op is conj else "iu"
    return x if y.type.dtype.kind in kinds and facts.may_be_replaced(y, x) else None


def _copied_already(bind: Bind, facts: ValueFacts) -> Arg | None:
    """``positive`` of a new array."""
    return bind.args[0] if facts.may_be_replaced(bind.binders[0], bind.args[0]) else None


# ---- signs ----


def _negated_operand(arg: Arg, bind: Bind, facts: ValueFacts) -> Arg | None:
    """The value whose negative is an operand of ``bind``."""
    if facts.op_of(arg) is not neg:
        return None
    (x,) = facts.producers[arg].args
    # the negative of an integer may change when its width changes
    is_same = arg.type.inexact or arg.type.dtype == bind.binders[0].type.dtype
    return x if is_same and facts.has_order_of_copy(x) else None


def _signed_sum(bind: Bind, facts: ValueFacts) -> Bind | None:
    """x + -y = x - y, and similar rules."""
    x, y = bind.args
    negative = _negated_operand(y, bind, facts)
    if negative is not None:
        return replace_operation(bind, sub if bind.op is add else add, x, negative)
    negative = _negated_operand(x, bind, facts) if bind.op is add else None
    return None if negative is None else replace_operation(bind, sub, y, negative)


def _signed_product(bind: Bind, facts: ValueFacts) -> Bind | None:
    """-x * -y = x * y; not for quotients of integers: the least integer is its own negative."""
    x, y = [_negated_operand(arg, bind, facts) for arg in bind.args]
    kinds = "f" if bind.op is div else "iuf"
    if x is None or y is None or bind.binders[0].type.dtype.kind not in kinds:
        return None
    if bind.op is div and x.type.dtype.kind + y.type.dtype.kind != "ff":
        return None
    return replace_operation(bind, bind.op, x, y)


def _without_sign(bind: Bind, facts: ValueFacts) -> Bind | None:
    """abs(-x) = abs(x), abs(conj(z)) = abs(z), square(-x) = square(x)."""
    (arg,) = bind.args
    if facts.op_of(arg) is conj and bind.op is abs_:
        return replace_operation(bind, abs_, *facts.producers[arg].args)
    if facts.op_of(arg) is not neg:
        return None
    (x,) = facts.producers[arg].args
    kinds = "if" if bind.op is square else "ifc"  # unsigned integers wrap around in -x
    return replace_operation(bind, bind.op, x) if x.type.dtype.kind in kinds else None


# ---- powers and quotients ----


def power_of(bind: Bind, facts: ValueFacts) -> Bind | Arg | None:
    """x**2 = x * x, x**0.5 = sqrt(x), x**-1 = 1 / x, if NumPy computes them in this way."""
    (y,), (x, n) = bind.binders, bind.args
    if type(n) is not Const or type(x) is not Local or type(n.value) not in (int, float):
        return None
    dtype, exponent = y.type.dtype, n.value
    if x.type.weak or x.type.dtype != dtype:
        return None
    is_whole = dtype.kind in "iu" and type(exponent) is int and exponent in (1, 2)
    if not is_whole and not is_power(dtype, float(exponent)):
        return None
    if exponent == 1:
        return x if facts.may_be_replaced(y, x) else None
    if exponent == 2:
        return replace_operation(bind, mul, x, x)
    return (
        replace_operation(bind, sqrt, x)
        if exponent == 0.5
        else replace_operation(bind, div, Const(1), x)
    )


_SIMPLE = {1.0: np.positive, 2.0: np.square, 0.5: np.sqrt, -1.0: np.reciprocal}


@cache
def is_power(dtype: np.dtype, exponent: float) -> bool:
    """Whether NumPy's ``power`` gives the same bits as the simple operation for this exponent."""
    # measured, because NumPy's releases and machines differ in when they use the simple operation
    simple = _SIMPLE.get(exponent)
    if simple is None or dtype.kind != "f":
        return False
    info = np.finfo(dtype)
    some = [0.0, 1.0, 3.0, 1.1, np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal]
    samples = np.random.default_rng(0).standard_normal(300).astype(dtype)
    x = np.concatenate([np.array([*some, *[-v for v in some]], dtype), samples])
    arrays = [x, x[::3], x[:1], x[:6].reshape(2, 3).T, *x[:40], *[np.asarray(v) for v in x[:40]]]
    with float_errors(all="ignore"):
        powers = [(np.asarray(np.power(a, exponent)), np.asarray(simple(a))) for a in arrays]
    bits = np.dtype(f"u{dtype.itemsize}")
    return all(
        np.array_equal(a[~np.isnan(a)].view(bits), b[~np.isnan(a)].view(bits))
        and np.array_equal(np.isnan(a), np.isnan(b))
        for a, b in powers
    )


def _division_by_power_of_two(bind: Bind, facts: ValueFacts) -> Bind | None:
    """x / 8 = x * 0.125: both round the same exact result once."""
    x, n = bind.args
    if type(n) is not Const or type(n.value) not in (int, float) or not n.value:
        return None
    mantissa, exponent = math.frexp(n.value)
    if abs(mantissa) != 0.5 or abs(exponent - 1) > _MAX_EXPONENT or n.value == 1:
        return None
    if type(x) is not Local or bind.binders[0].type.dtype.kind != "f":
        return None
    return replace_operation(bind, mul, x, Const(1 / n.value))


_SUM, _PRODUCT = (
    drop_neutral(_is_minus_zero, first=True),
    drop_neutral(_is_neutral_factor, first=True),
)
_BITS = drop_neutral(_has_no_bits, first=True)
_ROUND = (_rounded_already, _drop_repeated(ceil, floor, rint, trunc))
RULES: dict[Primitive, tuple[Callable, ...]] = {
    add: (_SUM, _signed_sum),
    sub: (drop_neutral(_is_plus_zero, first=False), _signed_sum),
    mul: (_PRODUCT, _signed_product),
    div: (
        drop_neutral(_is_neutral_factor, first=False),
        _signed_product,
        _division_by_power_of_two,
    ),
    floor_divide: (drop_neutral(_is_neutral_divisor, first=False),),
    power: (power_of,),
    bitwise_or: (_BITS,),
    bitwise_xor: (_BITS,),
    bitwise_and: (drop_neutral(_has_all_bits, first=True),),
    neg: (_drop_inverse_pair,),
    conj: (_rounded_already, _drop_inverse_pair),
    invert: (_drop_inverse_pair,),
    positive: (_copied_already,),
    abs_: (_drop_repeated(abs_), _without_sign),
    square: (_without_sign,),
    sign: (_drop_repeated(sign),),
    **dict.fromkeys((ceil, floor, rint, trunc), _ROUND),
}

"""Peephole rules under ``fast_math``: they assume finite numbers, and ignore signs of zeros and the
order of sums.
"""

from collections.abc import Callable

from letir.ast.primitive import Primitive
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Bind, Lambda, Local
from letir.ops.elementwise.ufuncs import add, div, mul, sub
from letir.ops.shape.shape_and_creation import sum_to_size, zeros
from letir.passes.peephole_rules.algebra import drop_neutral
from letir.passes.peephole_rules.driver import EXACT, apply_rules, merge_rules
from letir.passes.peephole_rules.movement import merge_sums_to_size
from letir.passes.peephole_rules.selection import array_instead
from letir.passes.peephole_rules.value_facts import ValueFacts


def _zeros_instead(bind: Bind) -> Bind | None:
    """Zeros that replace the result of ``bind``."""
    aval = bind.binders[0].type
    if not is_static_shape(aval.shape):
        return None
    if not aval.shape:
        return array_instead(bind, aval.dtype.type(0))  # a NumPy scalar, like the results of ufuncs
    attrs = zeros.complete({"shape": aval.shape, "dtype": aval.dtype})
    return bind.replace(op=zeros, args=(), attrs=attrs)


def _is_zero(n, kind: str) -> bool:
    """Whether an operand is a zero of either sign."""
    return n == 0


def _is_any_one(n, kind: str) -> bool:
    """Whether an operand is 1, also as a complex number."""
    return n == 1


def _times_zero(bind: Bind, facts: ValueFacts) -> Bind | None:
    """x * 0 = 0."""
    numbers = [facts.number(arg) for arg in bind.args]
    return _zeros_instead(bind) if any(n is not None and n == 0 for n in numbers) else None


def _zero_divided(bind: Bind, facts: ValueFacts) -> Bind | None:
    """0 / x = 0."""
    n = facts.number(bind.args[0])
    return _zeros_instead(bind) if n is not None and n == 0 else None


def _minus_itself(bind: Bind, facts: ValueFacts) -> Bind | None:
    """x - x = 0."""
    x, y = bind.args
    return _zeros_instead(bind) if x is y and type(x) is Local else None


RULES: dict[Primitive, tuple[Callable, ...]] = {
    add: (drop_neutral(_is_zero, first=True),),
    sub: (drop_neutral(_is_zero, first=False), _minus_itself),
    mul: (drop_neutral(_is_any_one, first=True), _times_zero),
    div: (drop_neutral(_is_any_one, first=False), _zero_divided),
    sum_to_size: (merge_sums_to_size,),
}


def rewrite_fast(fn: Lambda) -> Lambda:
    """``fn`` with the rules of ``peephole(fast_math=True)`` applied to its own binds."""
    return apply_rules(fn, _FAST)


_FAST = merge_rules(RULES, EXACT)

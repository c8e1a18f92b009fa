"""``reuse_test``: whether the result of a ufunc may be written into an operand."""

from typing import Any

from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Local
from letir.ops.as_numpy.quick_numbers import OWNED
from letir.plan.instructions import direct_ufunc

_MIN_REUSED = 1 << 14  # bytes: smaller arrays take less time to allocate than to test


def reuse_test(write: Any) -> tuple[int, str] | None:
    """(operand, test): where the test holds, a ufunc may write its result into the operand.

    The test says that nothing else refers to the operand, and that NumPy would give the result the
    operand's memory order.
    """
    bind, result = write.bind, write.result
    if direct_ufunc(bind) is None or result is None or not result.shape:
        return None
    if is_static_shape(result.shape) and result.size * result.dtype.itemsize < _MIN_REUSED:
        return None
    if None in map(write.type, range(len(bind.args))):
        return None
    for i in range(len(bind.args)):
        is_ours = type(bind.args[i]) is Local and write.is_dying(i) and write.fact(i) == OWNED
        aval = write.type(i) if is_ours else None
        if aval is not None and (aval.dtype, aval.shape) == (result.dtype, result.shape):
            x = write.slot(i)
            # beside an operand in C order with all axes, other orders do not count for NumPy
            is_enough = is_static_shape(result.shape) and min(result.shape) > 1
            ordered = [x] if is_enough else _array_operands(write)
            tests = [f"{y}.flags.c_contiguous" for y in ordered]
            return i, " and ".join([f"getrefcount({x}) == ALONE and {x}.base is None", *tests])
    return None


def _array_operands(write: Any) -> dict[str, None]:
    """The variables of operands with axes."""
    args = enumerate(write.bind.args)
    places = [n for n, arg in args if type(arg) is Local and write.type(n).shape]
    return {write.slot(n): None for n in places}

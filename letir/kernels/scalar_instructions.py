"""The scalar instructions of the loop language.

Each instruction computes one number from numbers of known dtypes: booleans, integers and floats.
Elementary functions, integer division and other operations are composed of instructions.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from attrs import frozen

BOOL = np.dtype("bool")
HIDDEN = 3  # instructions that hide a number
_KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float"}


@frozen
class Instruction:
    """A scalar instruction.

    ``arity``: the number of operands, which have the same dtype (except the condition, the first
    operand of ``select``). ``kinds``: the allowed values of ``dtype.kind``. ``result``: the dtype
    of the result, "same" as the operands, "bool", or "given" with the instruction. ``compute``: the
    instruction on NumPy arrays, for the interpreter.
    """

    name: str
    arity: int
    kinds: str
    result: str
    compute: Callable


def _truncate(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return np.asarray(x).astype(dtype)


def _bits(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return np.ascontiguousarray(x).view(dtype).reshape(np.shape(x))


def _quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    below, rest = np.divmod(x, y)  # rounded down
    return below + ((rest != 0) & ((x < 0) != (y < 0)))


def _shift_right_unsigned(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    return (x.astype(unsigned) >> n.astype(unsigned)).astype(x.dtype)


def _fma(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """``x * y + z`` rounded once, except for rare ties, by the splitting of Dekker (1971)."""
    if x.dtype == np.float32:
        return (x.astype(float) * y.astype(float) + z.astype(float)).astype(np.float32)
    product = x * y
    (xh, xl), (yh, yl) = _bit_halves(x), _bit_halves(y)
    low = ((xh * yh - product) + xh * yl + xl * yh) + xl * yl
    total = product + z
    part = total - product
    lost = (product - (total - part)) + (z - part)
    result = total + (lost + low)
    return np.where(np.isfinite(result), result, product + z)


def _bit_halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The upper and the lower half of the bits of float64 numbers."""
    high = _bits(_bits(np.asarray(x), np.dtype("i8")) & ~((1 << 27) - 1), np.dtype("f8"))
    return high, x - high


def _instruction_table(*rows: tuple) -> dict[str, Instruction]:
    return {row[0]: Instruction(*row) for row in rows}


INSTRUCTIONS = _instruction_table(
    ("add", 2, "iuf", "same", np.add),
    ("sub", 2, "iuf", "same", np.subtract),
    ("mul", 2, "iuf", "same", np.multiply),
    ("div", 2, "f", "same", np.divide),
    # the integer quotient, rounded towards zero; undefined for a zero divisor, and for the least
    # integer divided by -1
    ("quotient", 2, "iu", "same", _quotient),
    ("fmod", 2, "f", "same", np.fmod),
    ("neg", 1, "if", "same", np.negative),
    ("abs", 1, "f", "same", np.fabs),
    ("sqrt", 1, "f", "same", np.sqrt),
    ("fma", 3, "f", "same", _fma),
    ("floor", 1, "f", "same", np.floor),
    ("ceil", 1, "f", "same", np.ceil),
    ("trunc", 1, "f", "same", np.trunc),
    ("rint", 1, "f", "same", np.rint),
    ("copysign", 2, "f", "same", np.copysign),
    # if an operand is nan, the result is undefined; of -0 and 0 the result is either
    ("max", 2, "iuf", "same", np.maximum),
    ("min", 2, "iuf", "same", np.minimum),
    # comparisons with nan are False, "ne" is True
    ("eq", 2, "biuf", "bool", np.equal),
    ("ne", 2, "biuf", "bool", np.not_equal),
    ("lt", 2, "biuf", "bool", np.less),
    ("le", 2, "biuf", "bool", np.less_equal),
    ("gt", 2, "biuf", "bool", np.greater),
    ("ge", 2, "biuf", "bool", np.greater_equal),
    ("and", 2, "biu", "same", np.bitwise_and),
    ("or", 2, "biu", "same", np.bitwise_or),
    ("xor", 2, "biu", "same", np.bitwise_xor),
    # shifts by less than the number of bits
    ("shl", 2, "iu", "same", np.left_shift),
    ("shr", 2, "iu", "same", np.right_shift),  # with copies of the sign bit if signed
    ("lshr", 2, "iu", "same", _shift_right_unsigned),  # with zeros
    ("select", 3, "biuf", "same", np.where),
    # the operand itself, which compilers cannot know; see ``Builder.hidden``
    *[(f"hide{n}", 1, "biuf", "same", np.copy) for n in range(HIDDEN)],
    # floats to integers towards zero, undefined beyond their range; integers wrap around
    ("convert", 1, "biuf", "given", _truncate),
    ("bits", 1, "iuf", "given", _bits),  # the same bits as another dtype of this size
)


@lru_cache(1 << 10)
def instruction_dtype(
    name: str, operands: tuple[np.dtype, ...], requested_dtype: np.dtype | None
) -> np.dtype:
    """The dtype of the result. Raises TypeError for operands that the instruction does not take."""
    instruction = INSTRUCTIONS[name]
    same = operands[1:] if name == "select" else operands
    fits = (
        len(operands) == instruction.arity
        and len(set(same)) == 1
        and same[0].kind in instruction.kinds
        and not any(map(_is_other_float, operands))
    )
    if not fits or (name == "select" and operands[0] != BOOL):
        raise TypeError(f"{name} does not take operands of dtypes {', '.join(map(str, operands))}")
    if instruction.result == "given":
        if requested_dtype is None or _is_other_float(requested_dtype):
            raise TypeError(f"{name} has no result of dtype {requested_dtype}")
        return requested_dtype
    return BOOL if instruction.result == "bool" else same[0]


def _is_other_float(dtype: np.dtype) -> bool:
    """Whether a dtype is of floats of another size than the loop language has."""
    return dtype.kind == "f" and dtype.itemsize not in (4, 8)

"""``erase_number_types``: replaces Python numbers among the operands by array constants."""

from functools import cache, lru_cache

import numpy as np

from letir.ast import entry_point
from letir.ast.attrs import Attrs, freeze, token
from letir.ast.primitive import Primitive
from letir.ast.process_state import float_errors, paused_gc
from letir.ast.terms import NO_TYPE, Arg, Bind, Const, Lambda, Local
from letir.ast.types import PYTHON_NUMBERS, ArrayType
from letir.errors import DTypeError
from letir.ops.define.records import promotion_type
from letir.ops.shape.shape_and_creation import constant
from letir.passes.peephole_rules.driver import has_types_of
from letir.passes.type_propagation import map_fitting_bodies

_MAX_EXACT_INTEGER = 1 << 24  # integers up to it are exact in float32 and wider


@entry_point
@paused_gc()
def erase_number_types(fn: Lambda) -> Lambda:
    """Replace Python numbers among the operands of elementwise operations and updates by 0-d
    constants of the dtype that NumPy's promotion gives them there; also in bodies.

    For backends without Python numbers, and for speed: a 0-d array is converted once. A float64
    constant would widen float32, so each dtype has its own constant; equal constants are one bind.
    Numbers in operations on Python numbers alone stay, as do numbers that NumPy refuses. Derivative
    rules read numbers, so run this after differentiation.

    >>> from letir.ast.text.parser import parse
    >>> f = parse('''lambda %0: float32[3] {
    ...   %1: float32[3] = mul(%0, 2);
    ...   %2: float32[3] = add(%1, 0.5);
    ...   return %2 }''')
    >>> print(erase_number_types(f), end="")
    lambda %0: float32[3] {
      %1: float32[] = constant(value=float32[]{2.e+00})
      %2: float32[3] = mul(%0, %1)
      %3: float32[] = constant(value=float32[]{5.e-01})
      %4: float32[3] = add(%2, %3)
      return %4
    }
    """
    return map_fitting_bodies(fn, _erase_numbers)


def _erase_numbers(fn: Lambda) -> Lambda:
    """``fn`` with Python numbers among its own operands as NumPy scalars of the dtype used."""
    numbers: dict[tuple, Local] = {}
    binds: list[Bind] = []
    changed = False
    for bind in fn.binds:
        typed = bind
        may_hold = bind.op.elementwise or bind.op.operand_dtypes is not None
        if may_hold and any(type(arg) is Const for arg in bind.args):
            typed, constants = _without_numbers(bind, numbers)
            binds += constants
            changed = changed or typed is not bind
        binds.append(typed)
    return fn.with_binds(binds) if changed else fn


def _without_numbers(bind: Bind, earlier: dict[tuple, Local]) -> tuple[Bind, list[Bind]]:
    """(``bind`` with constants as operands, new constant binds); ``bind`` itself if unchanged."""
    dtypes = _operand_dtypes(bind)
    if dtypes is None:
        return bind, []
    args: list[Arg] = list(bind.args)
    new: dict[tuple, Bind] = {}
    for i, (arg, dtype) in enumerate(zip(bind.args, dtypes, strict=True)):
        if type(arg) is not Const or arg.type is NO_TYPE:
            continue
        key = token(arg.value), dtype
        if key not in earlier and key not in new:
            value = _number_as_array(arg.value, dtype)
            if value is None:
                return bind, []
            binder = Local(ArrayType(dtype))
            new[key] = Bind((binder,), constant, (), Attrs(value=value), bind.source)
        args[i] = earlier[key] if key in earlier else new[key].binders[0]
    result = bind.with_args(tuple(args))
    if not has_types_of(result, bind):
        return bind, []
    earlier.update({key: new_constant.binders[0] for key, new_constant in new.items()})
    return result, list(new.values())


def _operand_dtypes(bind: Bind) -> list[np.dtype] | None:
    """The dtypes to which NumPy converts the operands; None if numbers must stay."""
    avals = tuple([arg.type for arg in bind.args])
    if None in avals or len(bind.binders) != 1 or bind.binders[0].type is None:
        return None
    if bind.op.operand_dtypes is not None:
        return bind.op.operand_dtypes(bind.binders[0].type.dtype, len(avals))
    dtypes = _loop_dtypes(bind.op, avals)
    if dtypes is None:
        return None
    # Python's truth values have a dtype
    return [d if t is NO_TYPE or t.weak else t.dtype for d, t in zip(dtypes, avals, strict=True)]


@lru_cache(1 << 12)
def _loop_dtypes(op: Primitive, kinds: tuple) -> tuple[np.dtype, ...] | None:
    """The operand dtypes of the ufunc loop that NumPy selects for these types."""
    ufunc = _single_ufunc(op)
    # on Python numbers alone an operation may be exact, while arrays wrap around
    if ufunc is None or all(aval is NO_TYPE or aval.weak for aval in kinds):
        return None
    try:
        result = ufunc.resolve_dtypes((*map(promotion_type, kinds), *[None] * ufunc.nout))
    except (TypeError, DTypeError, AttributeError):  # None is not an operand
        return None
    return result[: ufunc.nin]


@cache
def _single_ufunc(op: Primitive) -> np.ufunc | None:
    """The NumPy ufunc that computes an operation with one result."""
    return next((f for f in op.numpy if isinstance(f, np.ufunc) and f.nout == 1), None)


def _number_as_array(number, dtype: np.dtype) -> np.ndarray | None:
    """The 0-d array to which NumPy converts a Python number in an operation.

    None if NumPy refuses the number, or may round it differently.
    """
    if type(number) not in PYTHON_NUMBERS:
        return None
    if dtype.kind in "fc" and type(number) is int and abs(number) > _MAX_EXACT_INTEGER:
        return None
    try:
        with float_errors(all="ignore"):
            return freeze(np.asarray(number, dtype))
    except (OverflowError, TypeError, ValueError):
        return None

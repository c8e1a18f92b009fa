"""The instructions of a plan: the callable of each step, and the arrays that stand for numbers.

A step calls NumPy's ufunc itself where it can, else the ``impl`` of the operation with its
attributes bound. The binds in the body of a ``fused`` bind become steps of the surrounding plan.
Python numbers among the operands become the 0-d arrays that NumPy would convert them to.
"""

import inspect
import sys
from collections.abc import Callable, Hashable
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from letir.ast.attrs import token
from letir.ast.bounded_cache import BoundedCache
from letir.ast.builder import fresh_binders
from letir.ast.process_state import float_errors, paused_gc
from letir.ast.terms import NO_TYPE, Arg, Bind, Const, Lambda, Local, substitute_args
from letir.errors import DTypeError
from letir.eval.memory_checks import update_in_place
from letir.ops.define.records import promotion_type
from letir.plan.effect_log import log_effect


@paused_gc()
def splice_groups(fn: Lambda) -> tuple[Lambda, dict]:
    """``fn`` with the bodies of its ``fused`` binds inlined, and the origins of the inlined binds.

    Origins: {index: ((body, bind of the body), (fn, the group's bind))}, innermost first; for a
    bind that takes results of a group, the bind itself.
    """
    if not any(bind.op.role == "fused" for bind in fn.binds):
        return fn, {}
    binds: list[Bind] = []
    names: dict[Local, Arg] = {}  # the results of groups, by their binders
    origins: dict[int, Any] = {}
    for bind in fn.binds:
        args = substitute_args(bind.args, names)
        if bind.op.role != "fused":
            if names:
                origins[len(binds)] = bind
            binds.append(bind.with_args(args))
            continue
        body, origin = bind.attrs["body"], (fn, bind)
        inner: dict[Local, Arg] = dict(zip(body.params, args, strict=True))
        for member in body.binds:
            origins[len(binds)] = ((body, member), origin)
            args = tuple([inner[arg] if type(arg) is Local else arg for arg in member.args])
            binds.append(
                Bind(
                    fresh_binders(member.binders, inner),
                    member.op,
                    args,
                    member.attrs,
                    member.source,
                )
            )
        for binder, result in zip(bind.binders, body.ret.args, strict=True):
            names[binder] = inner[result] if type(result) is Local else result
    return Lambda(fn.params, binds, fn.ret.substitute(names)), origins


_PLAIN = (int, float, complex)
_loop_dtypes = BoundedCache(1 << 12)  # (ufunc, types) -> dtypes that its loop takes
_number_arrays = BoundedCache(1 << 12)  # (token of a number, dtype) -> the array that stands for it


def direct_ufunc(bind: Bind) -> np.ufunc | None:
    """The NumPy ufunc that computes this bind by itself, None if there is none."""
    impl: Any = bind.op.impl
    ufunc = getattr(impl, "ufunc", None)
    if ufunc is None or not impl.exact_integers:
        return ufunc
    # on Python integers alone ``impl`` computes exactly; only these have a weak type
    for arg in bind.args:
        aval = arg.type
        if aval is not None and aval is not NO_TYPE and (not aval.weak or aval.dtype.kind != "i"):
            return ufunc
    return None


def kernel_ufunc(bind: Bind) -> np.ufunc | None:
    """The ufunc of a kernel, None for other binds.

    After a floating-point error in the ufunc, the step has to be executed.
    """
    return getattr(bind.op.impl, "kernel_ufunc", None)


def is_kernel(bind: Bind) -> bool:
    """Whether a bind calls a kernel that plans may call directly; its results are new arrays."""
    facts: Any = bind.op.impl
    return kernel_ufunc(bind) is not None or getattr(facts, "stencil", None) is not None


def is_simple(bind: Bind, xp: Any) -> bool:
    """Whether a bind has one result and its step is a plain function of the operands."""
    return bind.op.results is None and is_pure(bind, xp)


def is_pure(bind: Bind, xp: Any) -> bool:
    """Whether a bind has no effects: its results depend on nothing but the operands."""
    op = bind.op
    is_plain = op.update is None and (not op.holds_lambdas or _impl_for(bind, xp) is not op.impl)
    return is_plain and not op.is_user_defined  # functions of users may issue warnings


def numeric_callable(bind: Bind, xp: Any) -> Callable:
    """The callable that computes a bind from its operands alone."""
    return _with_attributes(_impl_for(bind, xp), xp, bind.attrs)


def _impl_for(bind: Bind, xp: Any) -> Callable:
    """The ``impl`` of a bind, also of a composite that is not decomposed for NumPy."""
    impl: Callable = bind.op.impl
    result: Callable = getattr(impl, "for_numpy", impl) if xp is np else impl
    return result


def special_step(bind: Bind, xp: Any, call: Callable, log: int | None = None) -> Callable:
    """The step ``f(slots, operands, results, cleared)`` of a bind that is not simple.

    The last three are tuples of positions of slots: of the operands, of the results (None for a
    result without a use), and of the operands that have their last use here and are cleared.
    ``log``: for an effect that must happen once, the slot of the effect log.
    """
    op = bind.op
    if op.holds_lambdas:
        attributes = {**bind.attrs, "call": call}
        if op.consume is not None:
            f = _with_attributes(op.consume, xp, attributes)
        else:
            f = _as_list_function(_with_attributes(op.impl, xp, attributes))
    elif op.update is not None:
        f = partial(update_in_place, op, xp, attrs=bind.attrs)
    else:
        f = _as_list_function(numeric_callable(bind, xp))
    if log is not None:
        return _storing_logged(log_effect(f, log), op.results is None)
    return _storing_one(f) if op.results is None else _storing_step(f)


def _storing_logged(f: Callable, is_one: bool) -> Callable:
    """The step for a function of the slots and a list of operands."""

    def step(slots, operands, results, cleared):
        out = f(slots, _take_operands(slots, operands, cleared))
        for slot, result in zip(results, (out,) if is_one else out, strict=True):
            if slot is not None:
                slots[slot] = result

    return step


def donated_step(bind: Bind, xp: Any, counts: int) -> Callable:
    """The step that updates a donated array, in place if it has no new references.

    ``counts``: the slot with the reference count of each donated array at the start of the run.
    """
    op, attrs = bind.op, bind.attrs

    def step(slots, operands, results, cleared):
        references, values = slots[counts], _take_operands(slots, operands, cleared)
        # only the caller refers to the array: there is no view and no second name
        if sys.getrefcount(values[0]) <= references.get(id(values[0]), 0):
            result = op.update(xp, *values, **attrs)
        else:
            result = update_in_place(op, xp, values, attrs)
        if results[0] is not None:
            slots[results[0]] = result

    return step


def reference_counts(v: list, donated: tuple) -> dict[int, int]:
    """The reference counts of the arrays that may be written to, by id."""
    result = {}
    for n in donated:
        x = v[n]
        owns_memory = (
            type(x) is np.ndarray and x.base is None and x.flags.writeable and x.flags.owndata
        )
        if owns_memory and not any(_may_share_memory(x, y) for m, y in enumerate(v) if m != n):
            del x  # which would count as one more reference
            result[id(v[n])] = sys.getrefcount(v[n])
    return result


def _may_share_memory(x, y) -> bool:
    """Whether two values may share memory."""
    return isinstance(y, np.ndarray) and np.may_share_memory(x, y)


def _as_list_function(f: Callable) -> Callable:
    """``f`` as a function of a list of operands."""
    return lambda operands: f(*operands)


def _storing_one(f: Callable) -> Callable:
    """The step for a function of a list of operands with one result."""

    def step(slots, operands, results, cleared):
        value = f(_take_operands(slots, operands, cleared))
        if results[0] is not None:
            slots[results[0]] = value

    return step


def _storing_step(f: Callable) -> Callable:
    """The step for a function of a list of operands with several results, or none."""

    def step(slots, operands, results, cleared):
        for slot, result in zip(results, f(_take_operands(slots, operands, cleared)), strict=True):
            if slot is not None:
                slots[slot] = result

    storing: Any = step
    storing.results_of = f  # for plans that are Python functions
    return storing


def _take_operands(slots: list, operands: tuple, cleared: tuple) -> list:
    """The values in these slots, some of which are cleared: then only the list refers to them."""
    values = [slots[n] for n in operands]
    for n in cleared:
        slots[n] = None
    return values


def _with_attributes(impl: Callable, xp, attrs: dict) -> Callable:
    """``impl`` with the array module and these keyword arguments bound."""
    if type(impl) is not FunctionType:
        return partial(impl, xp, **attrs)
    if attrs:
        if impl.__code__.co_flags & inspect.CO_VARKEYWORDS:
            return partial(impl, xp, **attrs)
        # as defaults of a copy: merging dicts at each call would take longer than a small sum
        copy = FunctionType(
            impl.__code__, impl.__globals__, impl.__name__, impl.__defaults__, impl.__closure__
        )
        copy.__kwdefaults__ = dict(attrs)
        impl = copy
    return MethodType(impl, xp)  # a method is called as fast as its function


# ---- numbers ----


def operand_values(args: tuple[Arg, ...], ufunc: np.ufunc | None) -> list:
    """The value of each constant operand of a bind, None for locals."""
    types = tuple([arg.type for arg in args])
    dtypes = _resolved_dtypes(ufunc, types) if ufunc is not None else None
    if dtypes is None or not _selects_same_loop(ufunc, args, dtypes):
        return [arg.value if type(arg) is Const else None for arg in args]
    return [
        _ready_number(arg.value, dtype) if type(arg) is Const else None
        for arg, dtype in zip(args, dtypes, strict=True)
    ]


def _selects_same_loop(ufunc: Any, args: tuple[Arg, ...], dtypes: tuple) -> bool:
    """Whether the loop stays the same if arrays of these dtypes replace the constant numbers.

    It may not beside a Python number, which has no dtype: np.ldexp(3, np.array(15)) is a float16.
    """
    if not any(type(arg) is Local and arg.type is not None and arg.type.weak for arg in args):
        return True
    operand_dtypes = [
        dtype if type(arg) is Const else promotion_type(arg.type)
        for arg, dtype in zip(args, dtypes, strict=True)
    ]
    return ufunc.resolve_dtypes((*operand_dtypes, *(None,) * ufunc.nout))[: ufunc.nin] == dtypes


def number_key(value: Any) -> Hashable:
    """The key by which equal numbers among the operands share a slot."""
    return id(value) if type(value) is np.ndarray else token(value)


def _resolved_dtypes(ufunc: np.ufunc, types: tuple) -> tuple | None:
    """The operand dtypes of the ufunc loop that NumPy selects.

    None if arrays of these dtypes would select another loop, or if a type is unknown.
    """
    key = (ufunc, types)
    result = _loop_dtypes.get(key, ...)
    if result is ...:
        result = _loop_dtypes[key] = _resolve_dtypes(ufunc, types)
    return result


def _resolve_dtypes(ufunc: np.ufunc, types: tuple) -> tuple | None:
    """The dtypes in which ``ufunc`` computes operands of ``types``; None if unknown."""
    if None in types or NO_TYPE in types:
        return None
    results = (None,) * ufunc.nout
    try:
        result = ufunc.resolve_dtypes((*map(promotion_type, types), *results))
        resolved_again = ufunc.resolve_dtypes((*result[: ufunc.nin], *results))
    except (TypeError, DTypeError):
        return None
    return result[: ufunc.nin] if result == resolved_again else None


def _ready_number(number: Any, dtype: np.dtype) -> np.ndarray:
    """The 0-d array to which NumPy converts a Python number for a loop of this dtype.

    The number itself where the conversion raises or warns.
    """
    if type(number) not in _PLAIN:
        return number
    key = (token(number), dtype)
    result = _number_arrays.get(key)
    if result is None:
        result = _number_arrays[key] = _number_array(number, dtype)
    return result


def _number_array(number, dtype: np.dtype):
    """A Python number as an array; the number itself if NumPy would raise or warn at the call."""
    with float_errors(all="raise"):
        try:
            result = np.array(number, dtype)
        except (OverflowError, FloatingPointError, TypeError):
            return number
    if dtype.kind in "fc" and number and not np.isnan(result):
        # rounding to inf sets a floating-point flag, which errstate governs; to zero sets none
        size = max(abs(result.real), abs(result.imag))
        if size > np.finfo(dtype).max and np.isfinite(number):
            return number
    result.flags.writeable = False
    return result

"""A cache from NumPy calls on Variables to the operation and attributes that they record.

``np.sum(x, axis=0)`` is ``sum`` with the same attributes for every x of one type. Parsing the call
and completing its attributes each time would cost more than a small sum.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from letir.ast.attrs import Attrs, Here
from letir.ast.bounded_cache import BoundedCache
from letir.ast.primitive import Primitive
from letir.ast.record_fields import SeveralBinds
from letir.eager.recorder import RECORDER
from letir.tracing.numpy_protocols.dispatch import call_function, prepare_call, recorder_of

if TYPE_CHECKING:
    from letir.eager.variable import Variable

_calls = BoundedCache(1 << 12)  # key -> (op, attrs), None for a call that is not remembered
_known_call = _calls.get  # bound once, which makes the look-up as fast as a dict's
_PLAIN = frozenset([int, bool, str, type(None)])


def numpy_call(variable: "Variable", func: Callable, args: tuple, kwargs: dict) -> Any:
    """The recorded result of a NumPy function or operation; ``variable`` is one argument."""
    key, operands = _call_key(type(variable), func, args, kwargs)
    # the key itself: a new call; None: a call that is not cached
    result = _known_call(key, key) if operands else None
    if result is key:
        result = _calls[key] = _record_call(func, args, kwargs, operands)
    if result is not None:
        return RECORDER.apply(result[0], operands, result[1])
    if isinstance(func, Primitive):
        return func(*args, **kwargs)
    return call_function(variable, func, args, kwargs)


def _call_key(kind: Any, func: Callable, args: tuple, kwargs: dict) -> tuple[tuple, list]:
    """(cache key, operands) of a call.

    The operands are empty if an argument is neither a Variable, a number nor a plain static value.
    """
    key: list[Any] = [func]
    operands: list[Any] = []
    for arg in args:
        if type(arg) is kind:
            operands.append(arg)
            # the type is enough: attributes depend on shapes, not on values
            key.append(arg.arg.type)
        elif type(arg) is float:  # an operand as well, as in where(mask, x, 0.0)
            operands.append(arg)
            key.append(float)
        elif (plain := _plain_key(arg)) is not None:
            key.append(plain)
        else:
            return (), []
    for name, arg in kwargs.items():
        plain = _plain_key(arg)
        if plain is None:
            return (), []
        key += (name, plain)
    return tuple(key), operands


def _plain_key(value) -> tuple | None:
    """A hashable stand-in for a static argument in a cache key, None if the call has no key."""
    parts: tuple
    kind = type(value)
    if kind in _PLAIN:
        return kind, value  # the type distinguishes 1, True and 1.0
    if kind is slice:
        parts = _plain_key(value.start), _plain_key(value.stop), _plain_key(value.step)
    elif kind is tuple:
        parts = tuple(map(_plain_key, value))
    else:
        return None
    return None if None in parts else (kind, parts)


def _record_call(
    func: Callable, args: tuple, kwargs: dict, operands: list
) -> tuple[Primitive, Attrs] | None:
    """(operation, attributes) of a call; None if its operands are not exactly ``operands``."""
    if isinstance(func, Primitive):
        op, prepare = func, func.prepare
    else:
        op, prepare = recorder_of(func) or (None, None)
    if op is None or "out" in kwargs or op.returned is not None or op.is_user_defined:
        return None
    if func is np.where and len(args) == 1:  # np.where(condition) is np.nonzero
        return None
    try:
        prepared, attrs = prepare_call(func, prepare, args, kwargs) if prepare else (args, kwargs)
    except SeveralBinds:
        return None
    if _has_count(attrs.get("item")):
        return None
    # else the key would not determine the operands
    same = len(prepared) == len(operands) and all(map(lambda x, y: x is y, prepared, operands))
    return (op, op.complete(attrs)) if same else None


def _has_count(item) -> bool:
    """Whether an index contains a mask: then an attribute counts the selected elements."""
    entries = item if type(item) is tuple else (item,)
    return any(type(entry) is Here and entry.count is not None for entry in entries)

"""Hooks: user functions that see, and may replace, gradients during the backward pass.

The order at one node: the gradients of its results are summed; the hooks of the Variables that hold
the results run, then the node's pre-hooks, its derivative rule, and its post-hooks, which get the
gradients of operands and results. A hook that returns None keeps the gradients.
"""

from collections.abc import Callable
from itertools import count
from typing import Any

from attrs import frozen

from letir.errors import DTypeError, ShapeError, TraceError

_NUMBERS = count().__next__


class Handle:
    """Removes a hook: ``handle.remove()``, or the end of a ``with`` block."""

    def __init__(self, hooks: dict, key: int):
        self.hooks, self.key = hooks, key

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        self.hooks.pop(self.key, None)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.remove()


def add_hook(hooks: dict, hook: Callable) -> Handle:
    """Register ``hook`` after the existing ones."""
    if not callable(hook):
        raise TraceError(
            f"a hook must be a function of gradients, found {hook!r}\n"
            "  pass a function: variable.register_hook(lambda grad: 2 * grad)"
        )
    key = _NUMBERS()
    hooks[key] = hook
    return Handle(hooks, key)


@frozen(eq=False)
class PassHook:
    """A hook that is also told which backward pass calls it: ``hook(gradient, engine)``."""

    hook: Callable[[Any, Any], Any]

    def __call__(self, value: Any, engine: Any) -> Any:
        return self.hook(value, engine)


def hooked_gradient(hooks: dict, value: Any, engine: Any) -> Any:
    """The gradient of a Variable after calling each hook as ``hook(value)``."""
    for hook in tuple(hooks.values()):  # a tuple: a hook may remove itself
        new = hook(value, engine) if type(hook) is PassHook else hook(value)
        value = value if new is None else _check_replacement(hook, 0, new, value)
    return value


def call_hooks(hooks: dict, values: tuple, *others: Any) -> tuple:
    """``values``, Variables and None, after calling each hook as ``hook(values, *others)``."""
    for hook in tuple(hooks.values()):
        new = hook(values, *others)
        if new is None:
            continue
        new = new if isinstance(new, tuple | list) else (new,)
        if len(new) != len(values):
            raise ShapeError(
                f"hook {_hook_name(hook)} returned {len(new)} gradients, expected {len(values)}\n"
                "  return a tuple with one for each gradient, or None to keep them"
            )
        values = tuple(
            [
                _check_replacement(hook, i, *pair)
                for i, pair in enumerate(zip(new, values, strict=True))
            ]
        )
    return values


def _check_replacement(hook: Callable, position: int, new, old):
    """The gradient that a hook returned. Raises unless it has the type of the old gradient."""
    if new is old:
        return old
    variable = type(old) if old is not None else None
    if new is None or old is None:
        problem = "removed a gradient" if new is None else "returned a gradient where there is none"
        raise DTypeError(
            f"hook {_hook_name(hook)} {problem}, at position {position}\n"
            "  return a gradient of the same type, or None to keep it"
        )
    if not isinstance(new, variable):
        try:
            new = variable(new)
        except DTypeError as error:
            raise DTypeError(
                f"hook {_hook_name(hook)} returned no gradient: {error}\n"
                "  return an array or a Variable, or None to keep the gradient"
            ) from None
    if new.type is not old.type:  # is: types are interned
        wrong = ShapeError if new.dtype == old.dtype else DTypeError
        raise wrong(
            f"hook {_hook_name(hook)} returned a gradient of type {new.type} "
            f"at position {position}, expected {old.type}\n"
            "  return a gradient of the same type, or None to keep it"
        )
    # NumPy's arrays and scalars count as one device
    if type(new.array).__module__.split(".")[0] != type(old.array).__module__.split(".")[0]:
        raise DTypeError(
            f"hook {_hook_name(hook)} returned a gradient on another device\n"
            "  return it on the device of the gradient that the hook got"
        )
    return new


def _hook_name(hook: Callable) -> str:
    """The name of a hook for error messages."""
    return getattr(hook, "__qualname__", None) or repr(hook)

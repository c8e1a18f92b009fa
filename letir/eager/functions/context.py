"""``Context``: the object through which a Function's forward passes values to its backward."""

from collections.abc import Sequence
from typing import Any

from letir.errors import TraceError
from letir.tracing.source_locations import at_user


class Context:
    """The ``ctx`` of a Function: saved values, marks, and attributes set by the user.

    ``needs_input_grad``: for each argument of forward, whether it needs a gradient.
    """

    def __init__(self, function: str, needs_input_grad: tuple[bool, ...]):
        self._function, self.needs_input_grad = function, needs_input_grad
        self._saved: tuple | None = None
        self._dirty: tuple = ()
        self._without_gradient: tuple = ()

    def save_for_backward(self, *values: Any) -> None:
        """Save Variables, arrays and None for backward, which reads them as ``saved_tensors``.

        To be called at most once. The values are freed after backward, which raises if one was
        changed in place in the meantime.
        """
        if self._saved is not None:
            raise TraceError(
                f"{self._function}: call save_for_backward only once, with all values{at_user()}\n"
                "  pass all values in one call: ctx.save_for_backward(x, y)"
            )
        self._saved = values

    @property
    def saved_tensors(self) -> tuple:
        """The saved values (the name is PyTorch's)."""
        return self._saved or ()

    def mark_dirty(self, *variables: Any) -> None:
        """Declare the arguments that forward changes in place; it must return them."""
        self._dirty = variables

    def mark_non_differentiable(self, *variables: Any) -> None:
        """Declare results without a gradient; backward gets zeros for them."""
        self._without_gradient = variables

    def with_saved(self, values: Sequence[Any]) -> "Context":
        """A copy for one run of backward, with these saved values."""
        result = object.__new__(Context)  # a copy: two threads may run the backward of one call
        result.__dict__.update(self.__dict__)
        result._saved = tuple(values)
        return result

    def __getattr__(self, name: str) -> Any:
        # __dict__: a missing plain attribute, as in a new copy, would end up here again
        raise AttributeError(f"{self.__dict__.get('_function', 'ctx')}: forward set no ctx.{name}")


def is_among(value: Any, values: tuple) -> bool:
    """Whether ``value`` is one of these objects, by identity."""
    return any(value is other for other in values)


def place_among(value: Any, values: Sequence[Any]) -> int | None:
    """The position of this object among ``values`` by identity, None if it is not there."""
    return next((i for i, other in enumerate(values) if value is other), None)

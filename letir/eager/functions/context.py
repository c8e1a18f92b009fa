"""``Context``: what the forward of a ``Function`` leaves for its backward."""

from typing import Any

from letir.errors import TraceError
from letir.tracing.source_locations import at_user


class Context:
    """The ``ctx`` of a Function: values that are saved, marks, and attributes of the user's.

    ``needs_input_grad``: for each argument of forward, whether a gradient flows to it.
    """

    def __init__(self, function: str, needs_input_grad: tuple[bool, ...]):
        self._function, self.needs_input_grad = function, needs_input_grad
        self._saved: tuple | None = None
        self._dirty: tuple = ()
        self._without_gradient: tuple = ()

    def save_for_backward(self, *values) -> None:
        """Keep Variables, arrays and None for backward, where ``saved_tensors`` has them; once.

        They go free after backward, and backward refuses those that were changed in place since.
        """
        if self._saved is not None:
            raise TraceError(
                f"{self._function}: save_for_backward is called once, with all values{at_user()}"
            )
        self._saved = values

    @property
    def saved_tensors(self) -> tuple:
        """What was saved (the name is PyTorch's)."""
        return self._saved or ()

    def mark_dirty(self, *variables) -> None:
        """Say which arguments forward changes in place; it returns them."""
        self._dirty = variables

    def mark_non_differentiable(self, *variables) -> None:
        """Say through which results no gradient flows; backward gets zeros for them."""
        self._without_gradient = variables

    def with_saved(self, values) -> "Context":
        """A copy for one run of backward, with these as the saved values."""
        found = object.__new__(Context)  # apart: two threads may run the backward of one call
        found.__dict__.update(self.__dict__)
        found._saved = tuple(values)
        return found

    def __getattr__(self, name: str) -> Any:
        # __dict__: a plain attribute that is not there yet, as in a copy, would ask here again
        raise AttributeError(f"{self.__dict__.get('_function', 'ctx')}: forward set no ctx.{name}")


def is_among(value, values: tuple) -> bool:
    """Whether it is one of these very objects."""
    return any(value is other for other in values)


def place_among(value, values) -> int | None:
    """At which position this very object is, None if at none."""
    return next((i for i, other in enumerate(values) if value is other), None)

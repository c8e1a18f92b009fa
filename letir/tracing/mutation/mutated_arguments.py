"""``ChangesArguments``: the arguments of a trace, their memory order, and in-place changes."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Local
from letir.tracing.mutation.memory_order import given_order

if TYPE_CHECKING:
    from letir.tracing.tracer import Tracer


class ChangesArguments:
    """The part of ``Trace`` that tracks arguments and writes into them.

    ``writes``: whether arguments may be changed; ``arguments``: the memory order of each argument;
    ``changed``: the traced values of changed arguments; ``orders``, ``fixed``, ``makers``,
    ``known_in_c_order``, ``without_other_order`` and ``with_other_order``: see ``memory_order``.
    """

    make_tracer: Callable[..., Any]
    emit: Callable[..., tuple[Local, ...]]  # the builder's method
    params: list[Local]
    python_bools: set
    _frozen: dict[int, tuple]

    def __init__(self):
        super().__init__()
        self.writes = False
        self.arguments: dict[Local, object] = {}
        self.changed: dict[Local, Tracer] = {}
        self.orders: tuple[dict, int] = ({}, 0)
        self.fixed: set[Local] = set()
        self.makers: tuple[dict, int, Any] = ({}, 0, None)
        self.known_in_c_order: set[Local] = set()
        self.without_other_order: set[Local] = set()
        self.with_other_order: set[Local] = set()
        self.in_c_order = True  # whether all arguments have C order
        self.has_gaps = False  # whether an argument is in neither C nor Fortran order
        self.as_another: dict[Local, Local] = {}  # value -> value with the same memory layout

    def note_argument(self, local: Local, argument: Any) -> None:
        """Remember the memory order of the argument ``argument``."""
        is_plain = type(argument) is np.ndarray and argument.flags.c_contiguous
        order = "C" if is_plain else given_order(argument)
        self.arguments[local], self.orders[0][local] = order, frozenset([local])
        self.in_c_order = self.in_c_order and order == "C"
        self.has_gaps = self.has_gaps or type(order) is tuple

    def note_change(self, value: "Tracer") -> None:
        """Remember an in-place change of this value if it is an argument."""
        if value.arg in self.arguments:
            self.changed[value.arg] = value

    def write_back(self, inputs: Sequence = ()) -> None:
        """Record that the caller's arrays, ``inputs``, get their final values.

        Raises TraceError if an argument that the function changes shares memory with an array from
        outside that it reads.
        """
        if self.changed:
            LATE_BOUND["refuse_captured"](self, inputs, self.written_places(inputs))
        for param, value in tuple(self.changed.items()):
            # not by apply: only runs of the program write into arrays
            binders = self.emit(PRIMITIVES["write_back"], (param, value.arg))
            value.become(self.make_tracer(self, binders[0], value.held_value))

    def discard_writes(self, inputs: Sequence) -> None:
        """End a recording whose program does not change the arguments ``inputs``.

        Raises TraceError if an argument that the function changes shares memory with another value
        that it reads, which would have changed too.
        """
        if self.changed:
            written = self.written_places(inputs)
            LATE_BOUND["refuse_captured"](self, inputs, written)
            LATE_BOUND["require_separate"](self, inputs, written)
        self.python_bools.clear()  # loops carry NumPy's booleans

    def written_places(self, inputs: Sequence) -> list[int]:
        """The positions of the ``inputs`` that the function changes.

        States of random generators that it captures are further parameters.
        """
        return [i for i, param in enumerate(self.params[: len(inputs)]) if param in self.changed]

    def captured_arrays(self) -> Iterable[tuple]:
        """(weak reference, copy, local) of each array from outside that the function has read."""
        return self._frozen.values()

    def forget_changes(self) -> None:
        """Drop all traced values at the end of the trace."""
        self.arguments, self.changed, self.orders = {}, {}, ({}, 0)
        self.makers, self.known_in_c_order = ({}, 0, None), set()
        self.without_other_order, self.with_other_order = set(), set()

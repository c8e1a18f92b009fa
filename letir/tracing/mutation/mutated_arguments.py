"""``ChangesArguments``: the arguments of a trace, their memory order, and in-place changes."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Local
from letir.eval.memory_checks import check_apart
from letir.tracing.mutation.memory_order import given_order

if TYPE_CHECKING:
    from letir.tracing.tracer import Tracer


class ChangesArguments:
    """The part of ``Trace`` that tracks arguments and writes into them.

    ``writes``: whether arguments may be changed; ``arguments``: the memory order of each argument;
    ``changed``: the traced values of changed arguments; ``orders`` and ``fixed``: see
    ``memory_order``.
    """

    make_tracer: Callable[..., Any]
    emit: Callable[..., tuple[Local, ...]]  # the builder's method
    params: list[Local]
    python_bools: set

    def __init__(self):
        super().__init__()
        self.writes = False
        self.arguments: dict[Local, object] = {}
        self.changed: dict[Local, Tracer] = {}
        self.orders: tuple[dict, int] = ({}, 0)
        self.fixed: set[Local] = set()
        self.in_c_order = True  # whether all arguments have C order
        self.as_another: dict[Local, Local] = {}  # value -> value with the same memory layout

    def note_argument(self, local: Local, argument: Any) -> None:
        """Remember the memory order of the argument ``argument``."""
        is_plain = type(argument) is np.ndarray and argument.flags.c_contiguous
        order = "C" if is_plain else given_order(argument)
        self.arguments[local], self.orders[0][local] = order, frozenset([local])
        self.in_c_order = self.in_c_order and order == "C"

    def note_change(self, value: "Tracer") -> None:
        """Remember an in-place change of this value if it is an argument."""
        if value.arg in self.arguments:
            self.changed[value.arg] = value

    def write_back(self) -> None:
        """Record that the caller's arrays get their final values."""
        for param, value in tuple(self.changed.items()):
            # not by apply: only runs of the program write into arrays
            binders = self.emit(PRIMITIVES["write_back"], (param, value.arg))
            value.become(self.make_tracer(self, binders[0], value.held_value))

    def discard_writes(self, inputs: Sequence) -> None:
        """End a recording whose program does not change the arguments ``inputs``.

        Raises TraceError if an argument that the function changes shares memory with another one,
        which would have changed too.
        """
        for param in self.changed:
            i = self.params.index(param)
            is_there_twice = sum(other is inputs[i] for other in inputs) > 1
            if type(inputs[i]) is np.ndarray or is_there_twice:
                check_apart(self.params, inputs, i)
        self.python_bools.clear()  # loops carry NumPy's booleans

    def forget_changes(self) -> None:
        """Drop all traced values at the end of the trace."""
        self.arguments, self.changed, self.orders = {}, {}, ({}, 0)

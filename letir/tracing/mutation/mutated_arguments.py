"""``ChangesArguments``: what a trace knows of its arguments, which in-place code may change."""

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Local
from letir.tracing.mutation.memory_order import given_order


class ChangesArguments:
    """The part of ``Trace`` that is about arguments: their memory, and what becomes of it.

    ``writes``: whether they may be changed; ``arguments``: in which order each lies in memory;
    ``changed``: the traced values of those that were; ``orders`` and ``fixed``: see ``orders``.
    """

    def __init__(self):
        super().__init__()
        self.writes = False
        self.arguments: dict[Local, object] = {}
        self.changed: dict[Local, Value] = {}
        self.orders: tuple[dict, int] = ({}, 0)
        self.fixed: set[Local] = set()
        self.in_c_order = True  # all arguments
        self.as_another: dict[Local, Local] = {}  # what lies in memory as another one does

    def note_argument(self, local: Local, given) -> None:
        """Remember how the argument ``given`` lies in memory."""
        # nearly all arguments are such arrays
        is_plain = type(given) is np.ndarray and given.flags.c_contiguous
        order = "C" if is_plain else given_order(given)
        self.arguments[local], self.orders[0][local] = order, frozenset([local])
        self.in_c_order = self.in_c_order and order == "C"

    def note_change(self, value: Value) -> None:
        """Remember that this value was changed in place if it is an argument."""
        if value.arg in self.arguments:
            self.changed[value.arg] = value

    def write_back(self) -> None:
        """Record that the caller's arrays get what their values have become."""
        for param, value in tuple(self.changed.items()):
            # not by apply: nothing is written here, only by whoever runs the program
            binders = self.emit(PRIMITIVES["write_back"], (param, value.arg))
            value.replace(self.make_tracer(self, binders[0], value.value))

    def forget_changes(self) -> None:
        """Keep no traced value when the trace is over."""
        self.arguments, self.changed, self.orders = {}, {}, ({}, 0)

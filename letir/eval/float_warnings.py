"""Floating-point warnings of computed operations, at the line of the user's code.

NumPy warns at the line that calls it, which would be a line of letir, and Python shows a warning
once a line: those of other programs would be lost. Where the user has NumPy warn, operations are
computed in a state that tells ``_Handler`` instead, which warns at the user's line
(``letir.tracing.checks.warning_places`` finds it).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND

try:
    from numpy._core.umath import _extobj_contextvar as ERROR_STATE
    from numpy._core.umath import _make_extobj as make_error_state
except ImportError:  # another NumPy: the state at run time applies, and warns at letir's lines
    ERROR_STATE = make_error_state = None  # type: ignore[misc]  # NumPy declares the names as final

# Compared for every bind, without a Python frame: the object that holds the current state.
current_state: Callable = partial(int) if ERROR_STATE is None else ERROR_STATE.get
# Code of an evaluator -> function(frame) that returns the Source of the bind it computes, or None.
PLACES: dict[Any, Callable] = {}
_MOST = 256


KERNEL = "letir kernel"  # how the names of kernels' ufuncs begin


class KernelError(Exception):
    """Raised where a kernel meets a floating-point error, which NumPy's calls then report."""


class _Handler:
    """What NumPy writes its messages to, in place of a warning."""

    def write(self, message: str) -> None:
        """Warn with the text of ``message``, "Warning: overflow encountered in exp"."""
        if KERNEL in message:
            raise KernelError(message)
        # "scalar": NumPy's name for the operators of its scalars, which plans may use
        text = message.removeprefix("Warning: ").rstrip("\n").replace(" in scalar ", " in ")
        LATE_BOUND["warn_at_user"](text)


HANDLER = _Handler()


class _States(dict):
    """The state to compute in, by the current state: with ``mode`` where that one warns.

    None for the current one itself.
    """

    mode = "log"  # to the handler

    def __missing__(self, current: Any) -> Any:
        if len(self) >= _MOST:  # each errstate has an object of its own
            self.clear()
        found = self[current] = None if ERROR_STATE is None else _state_with(self.mode)
        return found


class _QuietStates(_States):
    """The same without warnings."""

    mode = "ignore"


LOUD, QUIET = _States(), _QuietStates()


def _state_with(mode: str) -> Any:
    """The current state with ``mode`` where it warns; None if it never does."""
    modes: dict[str, Any] = {**np.geterr()}
    is_handled = np.geterrcall() is HANDLER
    if not is_handled and not {"log", "call"}.isdisjoint(modes.values()):
        return None  # the user's own handler
    warns = {"warn", "log"} if is_handled else {"warn"}
    found: dict[str, Any] = {n: mode if old in warns else old for n, old in modes.items()}
    return None if found == modes else make_error_state(**found, call=HANDLER)


def in_state(states: _States, f: Callable, *args: Any) -> Any:
    """``f(*args)`` in the state of ``states`` for the current one."""
    state = states[current_state()]
    if state is None:
        return f(*args)
    token = ERROR_STATE.set(state)
    try:
        return f(*args)
    finally:
        ERROR_STATE.reset(token)


LATE_BOUND["in_warning_state"] = partial(in_state, LOUD)

"""Floating-point warnings of computed operations, at the line of the user's code.

NumPy warns at the line that calls it, which would be a line of letir, and Python shows a warning
once for each line, so that the warnings of other programs would be lost. If NumPy's error state
says "warn", operations are computed in a state that calls ``_Handler`` instead, which warns at the
user's line (``letir.tracing.checks.warning_places`` finds it).
"""

import os
import sys
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from types import CodeType
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.primitive import Primitive
from letir.ast.process_state import (
    ERROR_STATE,  # without it, warnings name letir's lines
    float_errors,
    make_error_state,
    restore_abandoned,
)

# The object of the current error state: looked up for every bind, without a Python frame.
current_state: Callable = partial(int) if ERROR_STATE is None else ERROR_STATE.get
# Code of an evaluator -> function(frame) that returns the Source of the bind it computes, or None.
PLACES: dict[Any, Callable] = {}
# The files whose functions set a state for the operations that they compute.
SETTING_FILES: set[str] = {__file__}
_MAX_STATES = 256


KERNEL = "letir kernel"  # how the names of kernels' ufuncs begin
# LAPACK's gufuncs whose invalid operations NumPy's functions raise as LinAlgError
_INTERRUPTING = frozenset(
    [
        *("solve", "solve1", "inv", "cholesky_lo", "cholesky_up", "svd", "svd_f", "svd_s"),
        *("eigh_lo", "eigh_up", "eigvalsh_lo", "eigvalsh_up"),
    ]
)


class KernelError(Exception):
    """Raised for a floating-point error in a kernel or a gufunc of LAPACK.

    NumPy's function then computes again and reports the error.
    """


def warnings_shown_by() -> Any:
    """The function that shows warnings, which ``catch_warnings(record=True)`` replaces."""
    return getattr(warnings, "_showwarnmsg_impl", None)


def is_silent(op: Primitive) -> bool:
    """Whether an operation never warns of floating-point errors."""
    return op.effect or op.random or op.no_float_errors or op.memory == "view"


class _Handler:
    """The object to which NumPy writes floating-point messages instead of warning."""

    def write(self, message: str) -> None:
        """Warn with the text of ``message``, "Warning: overflow encountered in exp"."""
        if KERNEL in message or message.rpartition(" ")[2].strip() in _INTERRUPTING:
            raise KernelError(message)
        # "scalar": NumPy's name for the operators of its scalars, which plans may use
        text = message.removeprefix("Warning: ").rstrip("\n").replace(" in scalar ", " in ")
        LATE_BOUND["warn_at_user"](text)


HANDLER = _Handler()


class _States(dict):
    """{current error state: the state in which operations are computed}.

    That state is the current one with ``mode`` in place of "warn"; None if they are the same.
    """

    mode = "log"  # calls the handler

    def __missing__(self, current: Any) -> Any:
        if len(self) >= _MAX_STATES:  # each errstate has its own object
            self.clear()
        result = self[current] = None if ERROR_STATE is None else self.make_state()
        if result is not None:
            if len(_REPLACED) >= 3 * _MAX_STATES:
                for table in (_REPLACED, LOUD, QUIET, STRICT, RAISING, *_REGIONS.values()):
                    table.clear()  # together: each state that they give is in _REPLACED
            _REPLACED[result] = current
        return result

    def make_state(self) -> Any:
        """The current state with ``mode`` in place of "warn"; None if it does not warn."""
        modes: dict[str, Any] = {**np.geterr()}
        is_handled = np.geterrcall() is HANDLER
        if not is_handled and not {"log", "call"}.isdisjoint(modes.values()):
            return None  # the user's own handler
        warns = {"warn", "log"} if is_handled else {"warn"}
        handling: dict[str, Any] = {
            n: self.mode if old in warns else old for n, old in modes.items()
        }
        return None if handling == modes else make_error_state(**handling, call=HANDLER)


class _QuietStates(_States):
    """{current error state: the state without warnings}, as in ``_States``."""

    mode = "ignore"


class _KernelStates(dict):
    """{error state: which kernels may be called in it, without another state around them}.

    0: none, because a function of the user handles floating-point errors; 1: kernels that do not
    compute with Python numbers, which raise although the state ignores errors; 2: all.
    """

    def __missing__(self, state: Any) -> int:
        if len(self) >= _MAX_STATES:
            self.clear()
        modes = np.geterr()
        handles = not {"call", "log", "print"}.isdisjoint(modes.values())
        is_handled = handles and np.geterrcall() is not HANDLER
        ignores = "ignore" in (modes["divide"], modes["over"], modes["invalid"])
        result = self[state] = 0 if is_handled else 1 if ignores else 2
        return result


class _StrictStates(_States):
    """{current error state: one that raises where this one warns; False if it has a handler}."""

    mode = "raise"

    def __missing__(self, current: Any) -> Any:
        if ERROR_STATE is None or not {"call", "log", "print"}.isdisjoint(np.geterr().values()):
            return False
        return super().__missing__(current)


class _RaisingStates(_States):
    """{current error state: a state that raises all errors but underflow}."""

    def make_state(self) -> Any:
        return make_error_state(divide="raise", over="raise", invalid="raise", under="ignore")


class _RegionStates(_States):
    """{current error state: the state that ``np.errstate`` with these modes sets in it}."""

    def __init__(self, modes: tuple[Any, ...]) -> None:
        super().__init__()
        self.modes = dict(zip(_MODES, modes, strict=True))

    def make_state(self) -> Any:
        return make_error_state(**self.modes)


LOUD, QUIET, STRICT, RAISING = _States(), _QuietStates(), _StrictStates(), _RaisingStates()
_MODES = ("divide", "over", "under", "invalid")
_REGIONS: dict[tuple, _RegionStates] = {}  # modes -> the states
_REPLACED: dict[Any, Any] = {}  # a state made here -> the one that it replaces
KERNEL_STATES = _KernelStates()


def in_state(states: _States, f: Callable, *args: Any) -> Any:
    """``f(*args)``, computed in the error state that ``states`` gives for the current one."""
    state = states[current_state()]
    if state is None:
        return f(*args)
    token = ERROR_STATE.set(state)
    try:
        return f(*args)
    finally:
        ERROR_STATE.reset(token)


def run_raising(f: Callable, *args: Any) -> Any:
    """``f(*args)``, with floating-point errors raised, whatever the user's state is."""
    if ERROR_STATE is None:
        with float_errors(divide="raise", over="raise", invalid="raise", under="ignore"):
            return f(*args)
    return in_state(RAISING, f, *args)


def _run_region(modes: tuple[Any, ...], f: Callable, *args: Any) -> Any:
    """``f(*args)`` in the error state with these modes for divide, over, under and invalid.

    The state is made once for each state around it, so that the tables of states recognise it.
    """
    if ERROR_STATE is None:
        with float_errors(**dict(zip(_MODES, modes, strict=True))):
            return f(*args)
    states = _REGIONS.get(modes)
    if states is None:
        states = _REGIONS.setdefault(modes, _RegionStates(modes))
    return in_state(states, f, *args)


# patterns of the texts of warnings of NumPy's that a program hides, see ``errstate``
HIDDEN_TEXTS: ContextVar[tuple[str, ...]] = ContextVar("letir_hidden_texts", default=())


def _run_hiding(patterns: tuple[str, ...], f: Callable, *args: Any) -> Any:
    """``f(*args)``, in which RuntimeWarnings with these texts are not shown."""
    token = HIDDEN_TEXTS.set((*HIDDEN_TEXTS.get(), *patterns))
    try:
        return f(*args)
    finally:
        HIDDEN_TEXTS.reset(token)


def restore_abandoned_state() -> None:
    """Restore NumPy's error state and other state that interrupted calls have left changed."""
    restore_abandoned()
    before = _REPLACED.get(current_state())
    if before is None or ERROR_STATE is None:
        return
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename in SETTING_FILES:
            return  # called while an operation is being computed
        frame = frame.f_back
    ERROR_STATE.set(before)


# a folder in the paths of files of which Python leaves out the frames
LEFT_OUT = f"{os.sep}importlib._bootstrap{os.sep}..{os.sep}"


def file_left_out(file: str) -> str:
    """A path of ``file`` under which frames do not count in the ``stacklevel`` of a warning.

    Python leaves out the frames of its import system, which it knows by two words in their paths.
    """
    return LEFT_OUT.join(file.rsplit(os.sep, 1))


def leave_out_of_warnings(*functions: Any) -> None:
    """Make ``stacklevel`` of warnings skip the frames of these functions, and of those in them.

    They call functions of the user, whose warnings name the line of the user that called letir.
    """
    for function in functions:  # one Python call for all of them, at import
        code = function.__code__
        file, parts = LEFT_OUT.join(code.co_filename.rsplit(os.sep, 1)), list(code.co_consts)
        for i, part in enumerate(parts):
            if type(part) is CodeType:
                parts[i] = part.replace(co_filename=file)
        function.__code__ = code.replace(co_filename=file, co_consts=tuple(parts))


# of the TypeError of ``warnings.warn`` in a module whose ``__warningregistry__`` is not a dict
NO_REGISTRY = ("'registry' must be a dict or None",)


def is_float_error(error: Exception) -> bool:
    """Whether an exception of a kernel is due to a floating-point error, under any errstate.

    Under ``errstate(all="warn")`` NumPy would warn in the module that calls the kernel, whose
    ``__warningregistry__`` is not a dict: ``warnings.warn`` raises this TypeError instead.
    """
    if isinstance(error, TypeError):
        return error.args == NO_REGISTRY
    return True


LATE_BOUND.update(in_warning_state=partial(in_state, LOUD), run_error_region=_run_region)
LATE_BOUND.update(run_hiding_warnings=_run_hiding)

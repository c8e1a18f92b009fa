"""Draws from the operating system while a function is recorded: ``random.SystemRandom``,
``secrets`` and ``os.urandom``, whose numbers would be constants of the program.
"""

import functools
import os
import sys
from collections.abc import Callable
from typing import Any

from letir.tracing import entry
from letir.tracing.checks.draw_errors import hidden_draw_error
from letir.tracing.refusals import note_refusal
from letir.tracing.source_locations import is_user_file
from letir.tracing.trace_state import ACTIVE, DRAW_AT_ONCE, Trace

RANDOM_FILE = os.path.join(os.path.dirname(os.__file__), "random.py")
_SECRETS = os.path.join(os.path.dirname(os.__file__), "secrets.py")


def system_bytes(original: Callable) -> Callable:
    """The stand-in for ``os.urandom``: it refuses calls of users' code, whose bytes would become
    constants of the program.
    """

    @functools.wraps(original)
    def stand_in(*args):
        trace: Any = ACTIVE.get()
        while type(trace) is Trace and trace.draws == DRAW_AT_ONCE:
            trace = trace.parent
        if type(trace) is Trace and _is_called_by_user(sys._getframe(1)):
            raise note_refusal(hidden_draw_error("the operating system", ["urandom"]))
        return original(*args)

    return stand_in


def _is_called_by_user(frame: Any) -> bool:
    """Whether a user's code draws, directly or through ``random`` or ``secrets``.

    Other modules draw for names of temporary files and similar purposes.
    """
    if is_importing(frame):
        return False
    while frame.f_code.co_filename in (RANDOM_FILE, _SECRETS) and frame.f_back is not None:
        frame = frame.f_back
    return is_user_file(frame.f_code.co_filename)


def is_importing(frame: Any) -> bool:
    """Whether the recorded function has begun an import that is still running."""
    while frame is not None and frame.f_code.co_filename != entry.__file__:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False

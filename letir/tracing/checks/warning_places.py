"""``warn_at_user``, ``call_at_user``: warnings that name the user's innermost line, as NumPy's do.

During recording this line is the line of a frame on the stack; in a replay it is the source line of
the running bind. Python shows each warning once for each line, and records that in the module.
``refuse_warnings_as_errors`` refuses functions that turn warnings into errors.
"""

import contextlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.ast.bounded_cache import BoundedCache
from letir.ast.source import Source, source_line
from letir.errors import TraceError
from letir.eval.evaluator import Evaluator
from letir.eval.float_warnings import HIDDEN_TEXTS, NO_REGISTRY, PLACES, warnings_shown_by
from letir.tracing.refusals import mark_outside_state, note_refusal
from letir.tracing.source_locations import is_user_file
from letir.tracing.trace_state import ACTIVE, Trace

PLACES[Evaluator.call.__code__] = lambda frame: getattr(frame.f_locals["env"].at, "source", None)
_MAX_FILES = 1 << 10
_names: dict[str, dict] = BoundedCache(_MAX_FILES)  # globals by file


def warn_at_user(text: str, kind: type[Warning] = RuntimeWarning) -> None:
    """Issue a warning with this text, which NumPy issues for the user's call."""
    patterns = HIDDEN_TEXTS.get() if issubclass(kind, RuntimeWarning) else ()
    if any(re.match(pattern, text, re.IGNORECASE) for pattern in patterns):
        return
    place = _user_place(sys._getframe(1))
    if place is None:
        warnings.warn(text, kind, stacklevel=2)
        return
    file, line, names = place
    registry = names.setdefault("__warningregistry__", {})
    module = names.get("__name__")
    warnings.warn_explicit(text, kind, file, line, module, registry)


def call_at_user(f: Callable, *args: Any, **kwargs: Any) -> Any:
    """``f(*args, **kwargs)``; warnings name the user's line, as if it had made the call.

    For functions of NumPy that call ``warnings.warn``, such as ``np.nanmean``. They must have no
    effects: one that warns is called again from the user's line, which takes long to find.
    """
    if HIDDEN_TEXTS.get():
        with _hidden_texts():
            return _call_or_warn(f, args, kwargs)
    return _call_or_warn(f, args, kwargs)


def _call_or_warn(f: Callable, args: tuple, kwargs: dict) -> Any:
    """``call_at_user`` without regard to hidden warnings."""
    try:
        return f(*args, **kwargs)
    except TypeError as error:
        if error.args != NO_REGISTRY:
            raise
    return _call_from_user(f, args, kwargs)  # outside ``except``: errors would have a context


def reduce_at_user(xp: Any, name: str, x: Any, *args: Any, **kwargs: Any) -> Any:
    """``xp.name(x, ...)`` of a reduction that may warn, such as the mean of no elements.

    It calls the method of NumPy's arrays: a warning of the function names a line of NumPy's.
    """
    if xp is np and hasattr(x, name):
        return call_at_user(getattr(x, name), *args, **kwargs)
    return getattr(xp, name)(x, *args, **kwargs)


def _call_from_user(f: Callable, args: tuple, kwargs: dict) -> Any:
    """``f(*args, **kwargs)``, called from the user's line."""
    file, line, names = _user_place(sys._getframe(2)) or ("<unknown>", 1, {})
    code = _calls.get((file, line))
    if code is None:
        code = _calls[file, line] = _CALL.replace(co_filename=file, co_firstlineno=line)
    try:
        return eval(code, names, {"f": f, "args": args, "kwargs": kwargs})
    except Exception as error:  # without the frame, which is not the user's
        frames = error.__traceback__
        raise error.with_traceback(frames and frames.tb_next and frames.tb_next.tb_next) from None


@contextlib.contextmanager
def _hidden_texts() -> Iterator[None]:
    """A context in which the warnings that the program hides are ignored."""
    with warnings.catch_warnings():
        for pattern in HIDDEN_TEXTS.get():
            warnings.filterwarnings("ignore", pattern, RuntimeWarning)
        yield


# not a dict: ``warnings.warn`` raises this TypeError for the line that calls ``f``
__warningregistry__ = "see call_at_user"
_CALL = compile("f(*args, **kwargs)", "call", "eval")
_calls: Any = BoundedCache(_MAX_FILES)  # (file, line) -> ``_CALL`` at this line
_is_users = lru_cache(_MAX_FILES)(is_user_file)  # asked for each frame of each such call


def _user_place(frame: FrameType | None) -> tuple[str, int, dict] | None:
    """(file, line, globals) of the innermost line of the user's code, from ``frame`` on."""
    while frame is not None:
        code = frame.f_code
        if code in PLACES:
            source = PLACES[code](frame)
            if source is not None:
                return source.file, source.line, _names_of_file(source.file)
        elif _is_users(code.co_filename):
            return code.co_filename, frame.f_lineno, frame.f_globals
        frame = frame.f_back
    return None


def refuse_warnings_as_errors(code: CodeType, line: int) -> None:
    """Raise TraceError if recorded ``code`` has turned warnings into errors, or keeps them in a
    list, unlike replays.
    """
    active = ACTIVE.get()
    if not isinstance(active, Trace) or not is_user_file(code.co_filename):
        return
    traces = (active, *active.enclosing())
    shown = warnings_shown_by()
    if isinstance(getattr(shown, "__self__", None), list) and all(
        trace.shows_warnings is not shown for trace in traces
    ):
        raise note_refusal(
            mark_outside_state(
                TraceError(
                    "an operation is recorded where warnings are kept in a list, which a replay "
                    f"does not fill{source_line(Source(code.co_filename, line))}\n"
                    "  test the values, for example with numpy.isnan, or let the warnings out"
                )
            )
        )
    # catch_warnings replaces the list of filters
    if all(trace.filters is warnings.filters for trace in traces):
        return
    for action, text, category, module, _ in warnings.filters:
        if text is None and module is None and issubclass(RuntimeWarning, category):
            if action == "error":  # the first filter decides
                raise note_refusal(
                    mark_outside_state(
                        TraceError(
                            "an operation is recorded where warnings are errors, which they would "
                            f"not be in a replay{source_line(Source(code.co_filename, line))}\n"
                            "  write `with numpy.errstate(all='raise')`, and catch "
                            "FloatingPointError"
                        )
                    )
                )
            return


def _names_of_file(file: str) -> dict:
    """The globals of a file, if it is a module, else a dict with the name of the file."""
    result = _names.get(file)
    if result is None:
        spaces = [getattr(module, "__dict__", {}) for module in list(sys.modules.values())]
        other = {"__name__": file.removesuffix(".py") or "<unknown>"}
        result = next((names for names in spaces if names.get("__file__") == file), other)
        _names[file] = result
    return result


LATE_BOUND.update(
    call_at_user=call_at_user, reduce_at_user=reduce_at_user, warn_at_user=warn_at_user
)
LATE_BOUND.update(refuse_warnings_as_errors=refuse_warnings_as_errors)

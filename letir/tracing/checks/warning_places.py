"""``warn_at_user``: warnings that name the innermost line of the user's code, as NumPy's do.

During recording this line is the line of a frame on the stack; in a replay it is the source line of
the running bind. Python shows each warning once for each line, and records that in the module.
``refuse_warnings_as_errors`` refuses functions that turn warnings into errors.
"""

import sys
import warnings
from types import CodeType

from letir.ast import LATE_BOUND
from letir.ast.error_locations import source_line
from letir.ast.source import Source
from letir.errors import TraceError
from letir.eval.evaluator import Evaluator
from letir.eval.float_warnings import PLACES
from letir.tracing.refusals import note_refusal, of_outside_state
from letir.tracing.source_locations import is_users
from letir.tracing.trace_state import ACTIVE, Trace, warnings_shown_by

PLACES[Evaluator.call.__code__] = lambda frame: getattr(frame.f_locals["env"].at, "source", None)
_registries: dict[str, dict] = {}  # for files that are not modules, by name


def warn_at_user(text: str) -> None:
    """Issue a RuntimeWarning with this text, which NumPy issued while it computed an operation."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code in PLACES:
            source = PLACES[code](frame)
            if source is not None:
                registry = _registry_of(source.file)
                warnings.warn_explicit(
                    text, RuntimeWarning, source.file, source.line, registry=registry
                )
                return
        elif is_users(code.co_filename):
            names = frame.f_globals
            warnings.warn_explicit(
                *(text, RuntimeWarning, code.co_filename, frame.f_lineno),
                module=names.get("__name__"),
                registry=names.setdefault("__warningregistry__", {}),
            )
            return
        frame = frame.f_back
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def refuse_warnings_as_errors(code: CodeType, line: int) -> None:
    """Raise TraceError if recorded ``code`` has turned warnings into errors, or keeps them in a
    list, unlike replays.
    """
    active = ACTIVE.get()
    if not isinstance(active, Trace) or not is_users(code.co_filename):
        return
    traces = (active, *active.enclosing())
    shown = warnings_shown_by()
    if isinstance(getattr(shown, "__self__", None), list) and all(
        trace.shows_warnings is not shown for trace in traces
    ):
        raise note_refusal(
            of_outside_state(
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
                    of_outside_state(
                        TraceError(
                            "an operation is recorded where warnings are errors, which they would "
                            f"not be in a replay{source_line(Source(code.co_filename, line))}\n"
                            "  write `with numpy.errstate(all='raise')`, and catch "
                            "FloatingPointError"
                        )
                    )
                )
            return


def _registry_of(file: str) -> dict:
    """The warning registry of a file: the registry of its module, if it is a module."""
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        if names.get("__file__") == file:
            return names.setdefault("__warningregistry__", {})
    return _registries.setdefault(file, {})


LATE_BOUND.update(warn_at_user=warn_at_user, refuse_warnings_as_errors=refuse_warnings_as_errors)

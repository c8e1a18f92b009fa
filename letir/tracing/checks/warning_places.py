"""``warn_at_user``: a warning at the innermost line of the user's code, as NumPy's own are; and the
refusal of functions that make errors of warnings.

While a function is recorded, that is a frame on the stack; in a replay it is the source line of the
bind that is computed. Python shows each warning once for a line, and remembers that in the module.
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
from letir.tracing.refusals import note_refusal
from letir.tracing.source_locations import is_users
from letir.tracing.trace_state import ACTIVE, Trace

PLACES[Evaluator.call.__code__] = lambda frame: getattr(frame.f_locals["env"].at, "source", None)
_registries: dict[str, dict] = {}  # for files that are not modules, by name


def warn_at_user(text: str) -> None:
    """Give a RuntimeWarning with this text, which NumPy found while it computed an operation."""
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
    """Raise TraceError if recorded ``code`` has made errors of warnings, unlike replays."""
    active = ACTIVE.get()
    if not isinstance(active, Trace) or not is_users(code.co_filename):
        return
    # catch_warnings puts another list there
    if all(trace.filters is warnings.filters for trace in (active, *active.enclosing())):
        return
    for action, text, category, module, _ in warnings.filters:
        if text is None and module is None and issubclass(RuntimeWarning, category):
            if action == "error":  # the first filter decides
                raise note_refusal(
                    TraceError(
                        "an operation is recorded where warnings are errors, which they would not "
                        f"be in a replay{source_line(Source(code.co_filename, line))}\n"
                        "  write `with numpy.errstate(all='raise')`, and catch FloatingPointError"
                    )
                )
            return


def _registry_of(file: str) -> dict:
    """What Python remembers of the warnings of a file: that of its module, if it is one."""
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", {})
        if names.get("__file__") == file:
            return names.setdefault("__warningregistry__", {})
    return _registries.setdefault(file, {})


LATE_BOUND.update(warn_at_user=warn_at_user, refuse_warnings_as_errors=refuse_warnings_as_errors)

"""Whether operations on Variables are recorded: ``no_grad``, ``enable_grad``, ``detect_anomaly``.

The modes belong to the thread (or task) that sets them, and end with their ``with`` block or with
the function that they decorate.
"""

from contextlib import ContextDecorator
from contextvars import ContextVar

from letir.ast import LATE_BOUND

RECORDS: ContextVar[bool] = ContextVar("letir_records", default=True)
ANOMALY: ContextVar[bool] = ContextVar("letir_anomaly", default=False)


class Mode(ContextDecorator):
    """Sets a ContextVar inside a ``with`` block or a decorated function."""

    def __init__(self, variable: ContextVar[bool], value: bool):
        self.variable, self.value = variable, value
        self.tokens: list = []  # a stack: blocks of one mode may be nested

    def _recreate_cm(self):
        return Mode(self.variable, self.value)  # each call of a decorated function has its own

    def __enter__(self):
        self.tokens.append(self.variable.set(self.value))

    def __exit__(self, *error):
        self.variable.reset(self.tokens.pop())


def no_grad() -> Mode:
    """A context, and a decorator, in which operations on Variables are not recorded.

    >>> from letir import Variable
    >>> x = Variable(3.0, requires_grad=True)
    >>> with no_grad():
    ...     y = x * x
    >>> y.requires_grad
    False
    """
    return Mode(RECORDS, False)


def enable_grad() -> Mode:
    """A context, and a decorator, in which operations are recorded, also inside ``no_grad``."""
    return Mode(RECORDS, True)


def set_grad_enabled(enabled: bool) -> Mode:
    """``enable_grad()`` or ``no_grad()``."""
    return Mode(RECORDS, enabled)


def is_grad_enabled() -> bool:
    """Whether operations on Variables are recorded here.

    >>> is_grad_enabled()
    True
    """
    return RECORDS.get()


def detect_anomaly() -> Mode:
    """A context in which backward raises FloatingPointError where the first nan is made.

    The message says which operation of the forward computation it belongs to, and its line.
    """
    return Mode(ANOMALY, True)


LATE_BOUND["is_grad_enabled"] = is_grad_enabled

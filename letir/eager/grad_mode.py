"""Whether operations on Variables are recorded: ``no_grad``, ``enable_grad``, ``detect_anomaly``.

The modes belong to the thread (or task) that sets them, and end with their ``with`` block or with
the function that they decorate.
"""

import functools
import inspect
import weakref
from collections.abc import Callable
from contextlib import ContextDecorator
from contextvars import ContextVar, Token
from typing import Any

from letir.ast import LATE_BOUND, entry_point
from letir.ast.process_state import TemporaryChange, latest_change, restore_abandoned
from letir.tracing.trace_state import ACTIVE, Trace

RECORDS: ContextVar[bool] = ContextVar("letir_records", default=True)
ANOMALY: ContextVar[bool] = ContextVar("letir_anomaly", default=False)


class _Switch(TemporaryChange):
    """A ContextVar that is set until its ``Mode`` leaves a block, or is not referred to any more:
    an interrupt may keep ``Mode.__exit__`` from beginning.
    """

    __slots__ = (
        "after_error",
        "before",
        "is_ending",
        "mode",
        "outer",
        "token",
        "trace",
        "value",
        "variable",
        "was_off",
    )
    is_of_a_call = False

    def __init__(self, mode: "Mode"):
        self.mode, self.variable, self.value = weakref.ref(mode), mode.variable, mode.value
        self.outer = mode.block  # of the enclosing block of the same mode
        self.before = self.variable.get()
        self.token: Token[bool] | None = None
        self.trace, self.was_off = ACTIVE.get(), False
        self.is_ending, self.after_error = False, True

    def make(self) -> None:
        self.frame = None  # it refers to the mode
        self.token = self.variable.set(self.value)
        if self.trace is not None:
            self.was_off = _note_switch(self.variable, self.value)

    def is_under_way(self) -> bool:
        return not self.is_ending and self.mode() is not None

    def encloses(self, later: TemporaryChange) -> bool:
        return isinstance(later, _Switch) and later.variable is self.variable

    def undo(self) -> None:
        self.is_ending = True
        if self.token is None:  # ``make`` did not come to its end
            self.variable.set(self.before)
            return
        try:
            self.variable.reset(self.token)
        except RuntimeError:  # reset already
            pass
        except ValueError:  # set in another thread or task
            if not self.after_error:
                raise
        if self.trace is not None and ACTIVE.get() is self.trace:
            _note_switch(self.variable, not self.was_off, after_error=self.after_error)


class _Off(weakref.ref):
    """The false value of RECORDS in a ``no_grad`` block outside of recordings: a reference to the
    block's mode. An interrupt may keep ``Mode.__exit__`` from beginning or from its end; then the
    mode has gone or does not list the value, and ``is_grad_enabled`` restores ``before``.
    """

    __slots__ = ("before", "outer", "token")
    before: "bool | _Off"
    outer: "_Switch | _Off | None"  # of the enclosing block of the same mode
    token: "Token[bool] | bool | None"  # None after the end of the block

    def __bool__(self):
        return False

    def is_under_way(self) -> bool:
        """Whether the block is running; also true in tasks that it started, after its end."""
        mode = self()
        switch = None if mode is None else mode.block
        while switch is not None and switch is not self:
            switch = switch.outer
        return switch is self or self.token is None


class Mode(ContextDecorator):
    """Sets a ContextVar inside a ``with`` block or a decorated function."""

    variable: ContextVar[bool]
    value: bool
    block: _Switch | _Off | None = None  # of the innermost block

    def _recreate_cm(self):
        return type(self)()  # a new one for each call of a decorated function

    def __call__(self, f: Any) -> Any:
        # a generator or a coroutine runs after the call that made it, so the mode is set while it
        # runs
        if inspect.isgeneratorfunction(f):
            return _generator_in(self._recreate_cm, f)
        if inspect.iscoroutinefunction(f):
            return _coroutine_in(self._recreate_cm, f)
        return super().__call__(f)

    def __enter__(self):
        switch = self.block = _Switch(self)
        switch.__enter__()

    def __exit__(self, *error):
        switch: Any = self.block
        self.block = switch.outer
        switch.is_ending, switch.after_error = True, error[:1] != (None,)
        switch.__exit__()


class _NoGrad(Mode):
    """``no_grad``, quicker than other modes outside of recordings."""

    variable, value = RECORDS, False

    def __enter__(self):
        if ACTIVE.get() is not None:
            super().__enter__()
            return
        off = _Off(self)
        off.before, off.outer, off.token = RECORDS.get(), self.block, False
        try:
            self.block = off
            off.token = RECORDS.set(off)
        except BaseException:  # an interrupt
            self.block = off.outer
            raise

    def __exit__(self, *error):
        off = self.block
        if type(off) is not _Off:
            super().__exit__(*error)
            return
        self.block = off.outer
        try:
            RECORDS.reset(off.token)
        except ValueError:  # set in another thread or task
            if error[:1] == (None,):
                raise
        off.token = None


class _EnableGrad(Mode):
    """``enable_grad``."""

    variable, value = RECORDS, True


class _DetectAnomaly(Mode):
    """``detect_anomaly``."""

    variable, value = ANOMALY, True


class recording_set(TemporaryChange):
    """A context in which a function of letir records operations on Variables, or does not."""

    __slots__ = ("before", "value")

    def __init__(self, value: bool):
        self.value, self.before = value, RECORDS.get()

    def make(self) -> None:
        RECORDS.set(self.value)
        _note_switch(RECORDS, self.value)

    def undo(self) -> None:
        RECORDS.set(self.before)
        _note_switch(RECORDS, self.before, after_error=True)


def _note_switch(variable: ContextVar[bool], value: bool, *, after_error: bool = False) -> bool:
    """Tell the trace that is recording, if any, that gradients are recorded or not from here on.
    Returns whether an earlier switch in the same trace had turned them off.
    """
    trace = ACTIVE.get()
    if trace is None or variable is not RECORDS or not isinstance(trace, Trace):
        return False
    was_off = LATE_BOUND["end_region"](trace, after_error=after_error)
    if not value:
        LATE_BOUND["begin_region"](trace)
    return was_off


class _Setting(Mode):
    """A mode that is set immediately; as a context manager it ends with its block."""

    variable = RECORDS

    def __init__(self, value: bool):
        self.value, self.before = value, RECORDS.get()
        self.switch(value)

    def _recreate_cm(self):
        return _EnableGrad() if self.value else _NoGrad()

    def switch(self, value: bool) -> None:
        """Set the mode from here on."""
        RECORDS.set(value)
        _note_switch(RECORDS, value)

    def __call__(self, f: Any) -> Any:
        self.switch(self.before)  # a decorator sets the mode when its function is called
        return self._recreate_cm()(f)

    def __enter__(self):
        self.switch(self.before)
        super().__enter__()


def _generator_in(mode: Callable[[], Mode], f: Callable) -> Callable:
    """The generator function ``f``, whose steps run in the mode; the caller's code between steps
    does not.
    """

    @functools.wraps(f)
    def generate(*args, **kwargs):
        steps = f(*args, **kwargs)
        resume: Callable = functools.partial(steps.send, None)
        while True:
            try:
                with mode():
                    value = resume()
            except StopIteration as end:
                return end.value
            try:
                resume = functools.partial(steps.send, (yield value))
            except GeneratorExit:
                with mode():
                    steps.close()
                raise
            except BaseException as error:
                resume = functools.partial(steps.throw, error)

    return generate


def _coroutine_in(mode: Callable[[], Mode], f: Callable) -> Callable:
    """The coroutine function ``f``, which runs in the mode. Setting the mode in the coroutine is
    enough: a task has its own context variables.
    """

    @functools.wraps(f)
    async def run(*args, **kwargs):
        with mode():
            return await f(*args, **kwargs)

    return run


@entry_point
def no_grad() -> Mode:
    """A context, and a decorator, in which operations on Variables are not recorded.

    >>> from letir import Variable
    >>> x = Variable(3.0, requires_grad=True)
    >>> with no_grad():
    ...     y = x * x
    >>> y.requires_grad
    False
    """
    return _NoGrad()


@entry_point
def enable_grad() -> Mode:
    """A context, and a decorator, in which operations are recorded, also inside ``no_grad``.

    >>> import letir as lt
    >>> x = lt.Variable(2.0, requires_grad=True)
    >>> with lt.eager.no_grad(), lt.eager.enable_grad():
    ...     y = x * x
    >>> y.requires_grad
    True
    """
    return _EnableGrad()


@entry_point
def set_grad_enabled(enabled: bool) -> Mode:
    """``enable_grad()`` or ``no_grad()``, as a context or a decorator; as a plain call, for the
    rest of the thread or task.

    >>> before = set_grad_enabled(False)
    >>> is_grad_enabled()
    False
    >>> with set_grad_enabled(True):
    ...     is_grad_enabled()
    True
    >>> _ = set_grad_enabled(True)
    """
    return _Setting(bool(enabled))


def is_grad_enabled() -> bool:
    """Whether operations on Variables are recorded here.

    >>> is_grad_enabled()
    True
    """
    value = RECORDS.get()
    while type(value) is _Off:
        if value.is_under_way():
            return False
        RECORDS.set(value.before)
        value = RECORDS.get()
    if value:
        return True
    change = latest_change()  # the usual case, which takes a third of the time
    if type(change) is _Switch and change.variable is RECORDS and change.is_under_way():
        return False
    restore_abandoned()
    return RECORDS.get()


@entry_point
def detect_anomaly() -> Mode:
    """A context in which backward raises FloatingPointError where the first nan is made.

    The message names the operation of the forward computation, and its line.

    >>> import letir as lt
    >>> x = lt.Variable(0.0, requires_grad=True)
    >>> with lt.eager.detect_anomaly():
    ...     (x * x).backward()
    >>> x.grad
    Variable(0.)
    """
    return _DetectAnomaly()


LATE_BOUND["is_grad_enabled"] = is_grad_enabled

"""Kernels that are compiled in a separate thread, while NumPy computes the first calls."""

import atexit
import logging
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from letir.ast import LATE_BOUND
from letir.kernels.llvm import compile_threads  # noqa: F401  it is to stop after the thread here

_LOG = logging.getLogger("letir.plan")


class _Worker:
    """Runs tasks one after the other in a thread."""

    def __init__(self):
        self.lock = threading.Lock()  # held for a few lines only
        self.tasks: deque[Callable] = deque()
        self.thread: threading.Thread | None = None
        self.is_stopped = False

    def add(self, task: Callable) -> None:
        """Run a task later."""
        with self.lock:
            self.tasks.append(task)
            self.start()

    def start(self) -> None:
        """Start the thread if there is something to do; the caller holds the lock.

        If no thread can be started, the tasks wait for the next one.
        """
        if self.tasks and self.thread is None and not self.is_stopped:
            thread = threading.Thread(target=self.run, name="letir kernels", daemon=True)
            with suppress(RuntimeError):  # too many threads, or Python is about to end
                thread.start()
                self.thread = thread  # not before: ``wait`` joins threads that have been started

    def run(self) -> None:
        """Run all tasks, until there are none left or the worker is stopped."""
        while True:
            with self.lock:
                if not self.tasks or self.is_stopped:
                    self.thread = None
                    return
                task = self.tasks.popleft()
            task()
            del task  # it refers to a program

    def wait(self) -> None:
        """Return when the thread has ended."""
        thread = self.thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def stop(self) -> None:
        """End the thread after the current task: LLVM must not be left in the middle of one."""
        self.is_stopped = True
        self.wait()

    def resume(self) -> None:
        """Go on after ``stop``."""
        with self.lock:
            self.is_stopped = False
            self.start()

    def renew(self) -> None:
        """Start again in the child of a fork, which has only the caller's thread."""
        self.lock, self.thread = threading.Lock(), None
        self.resume()


_worker = _Worker()
atexit.register(_worker.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_worker.stop, after_in_parent=_worker.resume, after_in_child=_worker.renew
    )


def compile_later(compiled: Any, make: Callable[[], Any]) -> None:
    """Give a compiled program the plan ``make()``, which has kernels, once it is made.

    Nothing happens if ``make`` gives None, or if the program is gone by then. An exception is
    logged, and the program goes on without kernels.
    """
    reference = weakref.ref(compiled)

    def task() -> None:
        if reference() is None:
            return
        plan = None
        try:
            plan = make()
        except Exception as error:  # in this thread no caller could catch it
            if threading.main_thread().is_alive() and not _worker.is_stopped:
                _LOG.warning("no kernels, NumPy computes all calls: %s", repr(error))
        owner = reference()
        if owner is not None:
            owner.swap_plan(plan)

    _worker.add(task)


def forget_keys_after_swap(executor: Any, compiled: Any) -> None:
    """Let an executor look for its plan ``compiled`` again once that has kernels."""
    reference = weakref.ref(executor)

    def forget() -> None:
        owner = reference()
        if owner is not None:
            owner.quick_made = 0
            owner.forget_keys()

    compiled.on_swap = forget
    if not compiled.is_waiting:  # the thread has finished already
        forget()


def wait_for_kernels() -> None:
    """Return when no kernel is being compiled in the background."""
    _worker.wait()


LATE_BOUND.update(compile_later=compile_later, forget_keys_after_swap=forget_keys_after_swap)

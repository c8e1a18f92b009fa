"""Threads in which LLVM compiles kernels: several side by side, with large stacks.

LLVM needs no lock if each module has its own context, and ctypes releases the GIL while LLVM
works. The threads end when there is nothing to compile.
"""

import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from letir.errors import DTypeError
from letir.kernels.threads import get_num_threads

_STACK = 64 << 20  # bytes; LLVM recurses, and the caller's thread may have a small stack
llvm_lock = threading.Lock()  # for the parts of LLVM that all modules share


class Compilation:
    """A task for LLVM that runs in another thread. It is dropped once nothing refers to it."""

    def __init__(self, task: Callable[[], Any]):
        self.task: Callable[[], Any] | None = task
        self.ended = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Run the task, in one of the threads."""
        assert self.task is not None, "a task runs once"
        try:
            self.value = self.task()
        except BaseException as error:
            self.error = error
        self.task = None
        self.ended.set()

    def result(self) -> Any:
        """The result of the task: waits until it has run, and raises its exception if it failed."""
        self.ended.wait()
        if self.error is not None:
            raise self.error
        return self.value


class _CompileThreads:
    """The threads, and the compilations that wait for one of them."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Begin without threads and tasks, as in a child process, where nobody waits for them."""
        self.lock = threading.Lock()  # held for a few lines only
        self.waiting: deque[weakref.ref[Compilation]] = deque()
        self.threads: set[threading.Thread] = set()
        self.is_held = False
        self.locks: list[Any] = []  # held during a fork

    def begin(self, task: Callable[[], Any]) -> Compilation:
        """The compilation of ``task``, which starts as soon as a thread is free."""
        result = Compilation(task)
        with self.lock:
            self.waiting.append(weakref.ref(result))
            self.start()
        return result

    def start(self) -> None:
        """Start a thread if one is missing; the caller holds the lock."""
        self.threads = {thread for thread in self.threads if thread.is_alive()}
        if not self.waiting or self.is_held or len(self.threads) >= _most_threads():
            return
        thread = threading.Thread(target=self.run, name="letir LLVM")
        self.threads.add(thread)  # first: an interrupt may come as soon as it runs
        before = threading.stack_size(_STACK)
        try:
            thread.start()
        except RuntimeError:  # too many threads, or Python is about to end
            self.threads.discard(thread)
            if not self.threads:
                self.waiting.clear()
                raise
        finally:
            threading.stack_size(before)

    def run(self) -> None:
        """Compile until nothing waits; the main function of a thread."""
        while True:
            with self.lock:
                if self.is_held or not self.waiting:
                    self.threads.discard(threading.current_thread())
                    return
                compilation = self.waiting.popleft()()
                self.start()
            if compilation is not None:
                compilation.run()
            del compilation  # it refers to a program

    def hold(self) -> None:
        """Before a fork: let the threads end after their present tasks, and no other begin.

        A child would wait forever for a lock that a thread of its parent has taken.
        """
        with self.lock:
            self.is_held, threads = True, [helper for helper in self.threads if helper.is_alive()]
        for thread in threads:
            thread.join()
        self.locks = [llvm_lock, *_locks_of_llvmlite()]
        for lock in self.locks:
            lock.__enter__()

    def resume(self) -> None:
        """Resume after ``hold``, in the parent."""
        self.release()
        with self.lock:
            self.is_held = False
            self.start()

    def resume_in_child(self) -> None:
        """Start again in the child of a fork, after ``hold``."""
        self.release()
        self.renew()

    def release(self) -> None:
        """Release the locks of ``hold``."""
        while self.locks:
            self.locks.pop().__exit__(None, None, None)


def _most_threads() -> int:
    """The most threads that compile at a time, see ``set_num_threads``."""
    try:
        return get_num_threads()
    except DTypeError:  # of the environment variable: the first large call raises it
        return 1


def _locks_of_llvmlite() -> list[Any]:
    """The lock that llvmlite holds while it frees code, which happens in any thread."""
    ffi = sys.modules.get("llvmlite.binding.ffi")
    lock = getattr(getattr(ffi, "lib", None), "_lock", None)
    return [] if lock is None else [lock]


_threads = _CompileThreads()
begin_compilation = _threads.begin
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_threads.hold,
        after_in_parent=_threads.resume,
        after_in_child=_threads.resume_in_child,
    )

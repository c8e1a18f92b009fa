"""Threads for large kernels: how many, and the pool that computes the chunks of a call.

NumPy releases the GIL inside the loops of a kernel, so Python threads run them in parallel. A
caller computes chunks itself, and the threads of the pool take chunks that are
left. Calls from many threads, and calls inside a chunk, therefore never wait for each other in a
cycle.
"""

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from functools import cache
from queue import Empty, SimpleQueue

from letir.ast import entry_point
from letir.errors import DTypeError

_VARIABLE = "LETIR_NUM_THREADS"
_PATIENCE = 0.05  # seconds until a caller looks again, if it missed that the helpers have ended
_MAX_RESTING = 63  # the most calls in a row without helpers
_set_by_user: list[int] = []  # the argument of ``set_num_threads``, or empty


# ---- how many ----


@entry_point
def set_num_threads(n: int | None) -> None:
    """Let kernels on large arrays run in at most ``n`` threads; 1 for the caller's own only.

    Kernels of a program are also compiled in at most ``n`` threads side by side. None restores the
    default: the environment variable ``LETIR_NUM_THREADS``, else the number of cores that the
    process may use. Results have the same bits for every number of threads. The setting holds for
    the whole process, but not for the threads of BLAS. See docs/kernels.md.

    >>> set_num_threads(2)
    >>> get_num_threads()
    2
    >>> set_num_threads(None)
    """
    if n is None:
        _set_by_user.clear()
        return
    if isinstance(n, bool) or not hasattr(type(n), "__index__") or n < 1:
        raise DTypeError(
            f"set_num_threads: expected a number of threads, 1 or more, or None, found {n!r}\n"
            "  1 turns threads off, None restores the default"
        )
    _set_by_user[:] = [int(n)]


@entry_point
def get_num_threads() -> int:
    """The most threads in which a kernel may run now, see ``set_num_threads``.

    >>> set_num_threads(3)
    >>> get_num_threads()
    3
    >>> set_num_threads(None)
    """
    for n in _set_by_user:  # not [0]: another thread may clear it
        return n
    number = _threads_of_environment(os.environ.get(_VARIABLE, ""))
    return number or (1 if _here.is_alone else _usable_cores())


class _ThreadSettings(threading.local):
    """The settings for kernels that this thread calls."""

    is_alone = False


_here = _ThreadSettings()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let kernels that this thread calls run in it alone, unless the user has set a number.

    For tasks of which a scheduler computes as many at once as there are cores.
    """
    before, _here.is_alone = _here.is_alone, True
    try:
        yield
    finally:
        _here.is_alone = before


@cache
def _threads_of_environment(text: str) -> int:
    """The number in the environment variable; 0 if it is not set."""
    if not text:
        return 0
    if not text.strip().isdecimal() or int(text) < 1:
        raise DTypeError(
            f"the environment variable {_VARIABLE}: expected a number of threads, 1 or more, "
            f"found {text!r}\n  leave it out for all cores that the process may use"
        )
    return int(text)


def _usable_cores() -> int:
    """The number of cores that this process may use, which may change while it runs."""
    counted = getattr(os, "process_cpu_count", None)  # from Python 3.13 on
    if counted is not None:
        return counted() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_of_call() -> int:
    """The threads for the next call: one after calls that helpers have held up."""
    n = get_num_threads()
    return 1 if n == 1 or _pool.is_resting() else n


# ---- chunks ----


def run_chunks(compute: Callable[[int], None], count: int, threads: int) -> None:
    """``compute(n)`` for each n below ``count``, in any order, in at most ``threads`` threads.

    The caller is one of the threads; the others run in copies of its context, which holds NumPy's
    error state. Raises one of the errors of ``compute``, after which no chunk is begun. Returns or
    raises when no chunk is running any more.
    """
    threads = min(threads, count)
    if threads < 2:
        for place in range(count):
            compute(place)
        return
    job = _Job(compute, count)
    before = time.perf_counter(), time.thread_time()
    _pool.call_helpers(job, threads - 1)
    try:
        job.own = job.work()
    except BaseException as error:
        job.errors.append(error)  # no helper begins another chunk
        raise
    finally:
        job.finish()
    if job.errors:
        raise job.errors.pop().with_traceback(None)  # frames would keep arrays alive
    own = time.thread_time() - before[1]
    _pool.note_time(time.perf_counter() - before[0], own * count / max(1, job.own))


class _Job:
    """The chunks of one call.

    ``begun`` and ``ended`` count the helpers. Both are lists, because an append is atomic: no lock
    can be left closed by an interrupt. A helper enters ``begun`` before it looks at ``count``,
    once, and the caller sets ``count`` to 0 before it looks at ``begun``: a helper that comes late
    computes nothing, and the caller waits for all other helpers.
    """

    def __init__(self, compute: Callable[[int], None], count: int):
        self.compute, self.count, self.places = compute, count, itertools.count()
        self.begun: list[None] = []
        self.ended: list[None] = []
        self.errors: list[BaseException] = []
        self.woken: SimpleQueue = SimpleQueue()
        self.own = 0  # chunks that the caller has computed

    def work(self) -> int:
        """Compute chunks until none is left or one has failed; returns their number."""
        done, count = 0, self.count
        # next() is atomic; looking at ``self.count`` after it would leave out a chunk that this
        # thread has taken before the caller ends its own work
        while (place := next(self.places)) < count and not self.errors:
            self.compute(place)
            done += 1
        return done

    def help(self, context: Context) -> None:
        """``work`` in a thread of the pool."""
        self.begun.append(None)
        try:
            context.run(self.work)
        except BaseException as error:
            self.errors.append(error)
        self.ended.append(None)
        self.woken.put(None)

    def finish(self) -> None:
        """Keep helpers from beginning a chunk, and wait for helpers that have begun one.

        A KeyboardInterrupt is raised after waiting. Even if it comes where this method does not
        catch it, no array is freed too early: a helper keeps the arrays that it reads and writes.
        """
        self.count, interrupt = 0, None
        while len(self.ended) < len(self.begun):
            try:
                self.woken.get(timeout=_PATIENCE)
            except Empty:
                pass
            except BaseException as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt


# ---- the pool ----


class _Pool:
    """Threads that wait for jobs, made when they are first needed.

    Where other processes keep all cores busy, a helper may hold a chunk, or the GIL,
    while it waits for a core. After a call that took longer than its caller alone would have taken,
    the next ``resting`` calls have no helpers; their number, ``pause``, doubles if that happens
    again.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Begin without helpers, as in a child process, which has no threads of its parent."""
        self.lock = threading.Lock()
        self.jobs: SimpleQueue = SimpleQueue()
        self.helpers: list[threading.Thread] = []
        self.resting = self.pause = 0

    def is_resting(self) -> bool:
        """Whether the next call runs without helpers."""
        if self.resting > 0:
            self.resting -= 1
            return True
        return False

    def note_time(self, seconds: float, alone: float) -> None:
        """Take note of the time of a call, and of the time that its caller alone would take."""
        if seconds > alone:
            self.resting = self.pause = min(2 * self.pause + 1, _MAX_RESTING)
        else:
            self.pause //= 2

    def call_helpers(self, job: _Job, n: int) -> None:
        """Let up to ``n`` helpers take part in a job."""
        if len(self.helpers) < n:
            self.start_helpers(n)
        for _ in range(min(n, len(self.helpers))):
            self.jobs.put((job, copy_context()))

    def start_helpers(self, n: int) -> None:
        """Start threads until there are ``n`` helpers, or as many as the system allows."""
        with self.lock:
            while len(self.helpers) < n:
                thread = threading.Thread(
                    target=_run_helper, args=(self.jobs,), name="letir kernels", daemon=True
                )
                try:
                    thread.start()
                except (RuntimeError, MemoryError):  # too many threads, or Python is about to end
                    return
                self.helpers.append(thread)

    def stop(self) -> None:
        """End all helpers, before the process forks: Python warns of forks beside threads."""
        with self.lock:
            for _ in self.helpers:
                self.jobs.put(None)
            for thread in self.helpers:
                thread.join()
            self.helpers.clear()


def _run_helper(jobs: SimpleQueue) -> None:
    """The main loop of a helper thread."""
    while (entry := jobs.get()) is not None:
        job, context = entry
        job.help(context)
        del entry, job, context  # the arrays of a call are freed while the helper waits


_pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_pool.stop, after_in_child=_pool.renew)

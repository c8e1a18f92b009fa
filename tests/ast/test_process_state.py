"""Pausing the cyclic garbage collector."""

import gc
import importlib
import sys
import threading
import time
import weakref

import pytest

from letir.ast import loaded_module
from letir.ast.process_state import paused_gc


@pytest.fixture(autouse=True)
def thawed():
    """Unfreeze all objects, and collect as often as in a user's program."""
    before = gc.get_threshold()
    gc.unfreeze()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)
    gc.freeze()


class Cycle:
    def __init__(self):
        self.me = self


def test_the_collector_is_paused_inside_and_restored_after():
    with paused_gc():
        assert not gc.isenabled()
        with paused_gc():
            pass
        assert not gc.isenabled()

    assert gc.isenabled()


def test_an_exception_restores_the_collector():
    with pytest.raises(KeyError), paused_gc():
        raise KeyError

    assert gc.isenabled()


def test_a_disabled_collector_stays_disabled():
    gc.disable()
    try:
        with paused_gc():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_overlapping_pauses_in_threads_restore_the_collector_once_at_the_end():
    inside, go_on = threading.Event(), threading.Event()

    def hold():
        with paused_gc():
            inside.set()
            go_on.wait(10)

    thread = threading.Thread(target=hold)
    with paused_gc():
        thread.start()
        inside.wait(10)
    assert not gc.isenabled()
    go_on.set()
    thread.join()

    assert gc.isenabled()


def test_short_pauses_do_not_keep_garbage_from_being_collected():
    cycle = weakref.ref(Cycle())

    for _ in range(3000):
        with paused_gc():
            kept = [[] for _ in range(10)]
    lists = [[] for _ in range(2000)]

    assert cycle() is None, (len(kept), len(lists))


def test_pauses_with_many_allocations_collect_now_and_then():
    cycles = []
    for _ in range(20):
        cycles.append(weakref.ref(Cycle()))
        with paused_gc():
            made = [[] for _ in range(60_000)]
        del made
    gc.collect(1)

    assert any(cycle() is None for cycle in cycles)


def test_a_module_that_another_thread_imports_is_complete(tmp_path, monkeypatch):
    (tmp_path / "slow_module.py").write_text("import time\ntime.sleep(0.2)\nvalue = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert loaded_module("slow_module") is None
    thread = threading.Thread(target=importlib.import_module, args=("slow_module",))
    thread.start()
    while "slow_module" not in sys.modules:
        time.sleep(0.001)
    try:
        assert loaded_module("slow_module").value == 3
    finally:
        thread.join()
        del sys.modules["slow_module"]

"""The pause of the cyclic garbage collector."""

import gc
import threading
import weakref

import pytest

from letir.ast.gc_pause import paused_gc


@pytest.fixture(autouse=True)
def thawed():
    """Nothing is frozen, as in a program of a user's."""
    gc.unfreeze()
    yield
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


def test_an_exception_restores_it():
    with pytest.raises(KeyError), paused_gc():
        raise KeyError

    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        with paused_gc():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_threads_that_overlap_restore_it_once_at_the_end():
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


def test_small_pauses_do_not_keep_garbage_from_being_collected():
    cycle = weakref.ref(Cycle())

    for _ in range(3000):
        with paused_gc():
            kept = [[] for _ in range(10)]
    lists = [[] for _ in range(2000)]

    assert cycle() is None, (len(kept), len(lists))


def test_large_pauses_collect_now_and_then():
    cycles = []
    for _ in range(20):
        cycles.append(weakref.ref(Cycle()))
        with paused_gc():
            made = [[] for _ in range(60_000)]
        del made
    gc.collect(1)

    assert any(cycle() is None for cycle in cycles)

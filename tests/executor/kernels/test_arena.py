"""Memory of temporaries that later calls use again: nobody else sees it."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import letir as lt
from letir.executor.compiled import kernels_setting
from letir.testing import assert_same

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)
from letir.eval.memory_checks import PooledMemory, is_owned
from letir.executor.kernels import arena

RNG = np.random.default_rng(8)
X, Y = RNG.normal(size=(2, 400, 400))  # 1.28 MB an array
TEMPORARY = X.nbytes


@pytest.fixture(autouse=True)
def without_blocks():
    arena.give_back()
    yield
    arena.give_back()


def layer(x, y):
    """Two products with a group between them, whose result is a temporary."""
    return (x @ y * 0.1 + 0.5) @ y


def returned(x, y):
    return np.exp(x) * y + 1.0


def viewed(x, y):
    return (np.exp(x) * y + 1.0).T[1:]


def test_temporaries_of_one_call_are_used_by_the_next():
    f = lt.jit(layer)
    for _ in range(5):
        found = f(X, Y)

    assert np.allclose(layer(X, Y), found, rtol=1e-12)
    assert TEMPORARY == arena.bytes_in_arena()


@pytest.mark.parametrize("f", [returned, viewed])
def test_results_own_their_memory(f):
    call, expected = lt.jit(f), f(X, Y)
    kept = [call(X, Y) for _ in range(4)]
    call(Y, X)

    assert 0 == arena.bytes_in_arena()
    assert np.allclose(expected, kept[0], rtol=1e-13)
    assert all(np.array_equal(kept[0], other) for other in kept)


def test_kernels_on_items_of_a_batch_use_the_arena():
    points, places = RNG.normal(size=(50_000, 3)), RNG.integers(0, 50_000, 50_000)

    def f(points, places):
        turned = np.cross(points[places], points) + 1.0
        return np.sort(turned, axis=0), turned.max(axis=0)

    call = lt.jit(f)
    found = [call(points, places) for _ in range(3)][-1]

    # one block for ``turned``, and another if a second step of it ran before the first was free
    assert arena.bytes_in_arena() in (50_000 * 3 * 8, 2 * 50_000 * 3 * 8)
    for x, y in zip(f(points, places), found, strict=True):
        assert np.allclose(x, y, rtol=1e-13, atol=1e-13)


def test_a_small_result_next_to_a_large_temporary_owns_its_memory():
    def f(x, y):
        z = np.maximum(x + y, 0.5) * 2.0
        return z @ y, z.sum(axis=0)

    call, expected = lt.jit(f), f(X, Y)
    found = [call(X, Y), call(Y, X)][0]

    assert TEMPORARY == arena.bytes_in_arena()
    for x, y in zip(expected, found, strict=True):
        assert np.allclose(x, y, rtol=1e-11)
        assert y.base is None


def test_a_temporary_that_is_updated_in_place_owns_its_memory():
    """In a block of the arena it would be copied before the update."""
    places = np.arange(400)

    def f(x, y):
        z = np.exp(x) * y + 1.0
        np.add.at(z, (places, places), 1.0)
        return z

    call = lt.jit(f)
    kept = [call(X, Y) for _ in range(3)]
    call(Y, X)

    assert [b.op.name for b in call.debug_state().plans[0].plan.binds].count("index_add") == 1
    assert 0 == arena.bytes_in_arena()
    for found in kept:
        assert np.allclose(f(X, Y), found, rtol=1e-12)


def test_small_temporaries_are_not_kept():
    lt.jit(layer)(X[:300, :300].copy(), Y[:300, :300].copy())

    assert 0 == arena.bytes_in_arena()


def test_idle_memory_is_given_back(monkeypatch):
    monkeypatch.setattr(arena, "IDLE", 0.05)
    lt.jit(layer)(X, Y)
    assert TEMPORARY == arena.bytes_in_arena()

    end = time.monotonic() + 30
    while arena.bytes_in_arena() and time.monotonic() < end:
        time.sleep(0.01)

    assert 0 == arena.bytes_in_arena()
    assert np.allclose(layer(X, Y), lt.jit(layer)(X, Y), rtol=1e-12)


def test_no_more_than_the_bound_is_kept(monkeypatch):
    monkeypatch.setattr(arena, "MAX_BYTES", TEMPORARY // 2)

    assert np.allclose(layer(X, Y), lt.jit(layer)(X, Y), rtol=1e-12)
    assert 0 == arena.bytes_in_arena()


def test_memory_is_given_back_where_an_allocation_fails(monkeypatch):
    f, sizes = lt.jit(layer), []
    f(X, Y)

    def allocate(size, dtype):
        sizes.append(arena.bytes_in_arena())
        if len(sizes) == 1:
            raise MemoryError
        return PooledMemory(size, dtype)

    monkeypatch.setattr(arena, "PooledMemory", allocate)
    with arena._arena.lock:
        arena._arena.new_block(2 * TEMPORARY)

    assert [TEMPORARY, 0] == sizes


def own_copy(x, y):
    """An update of a copy of the argument, of which only a sum is a result."""
    x = x.copy()
    x[1:] = x[:-1] * 2.0 + y[1:]
    x[0] = 1.0
    return x.sum(axis=0)


def changed_argument(x, y):
    x[1:] = x[:-1] * 2.0 + y[1:]
    x[0] = 1.0
    return y.sum()


def returned_update(x, y):
    z = np.exp(x) * y
    z[0] = 1.0
    return z


@pytest.mark.parametrize("f", [own_copy, changed_argument, returned_update])
def test_copies_that_are_updated_may_be_temporaries_and_results_are_not(f):
    call, ours, theirs = lt.jit(f), X.copy(), X.copy()
    for _ in range(10):
        expected, found = f(theirs, Y), call(ours, Y)
        assert np.allclose(expected, found, rtol=1e-12)
        assert np.allclose(theirs, ours, rtol=1e-12)
        assert type(getattr(found, "base", None)) is not PooledMemory

    assert (f is not returned_update) == bool(arena.bytes_in_arena())


def test_an_array_in_a_block_is_owned_by_its_only_reference():
    operands = [arena.new_array((400, 400), np.dtype("f8"))]
    assert is_owned(np, operands)

    kept = operands[0][1:]
    assert not is_owned(np, operands)
    del kept
    assert is_owned(np, operands)


def test_threads_do_not_share_memory():
    f = lt.jit(layer)
    pairs = [RNG.normal(size=(2, 400, 400)) for _ in range(4)]
    expected = [f(*pair) for pair in pairs]

    def run(n):
        for _ in range(10):
            assert_same(expected[n], f(*pairs[n]))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(run, range(4)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_begins_without_blocks():
    f = lt.jit(layer)
    expected = f(X, Y)
    child = os.fork()
    if not child:
        is_fine = arena.bytes_in_arena() == 0 and np.array_equal(expected, f(X, Y))
        os._exit(0 if is_fine else 1)

    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert_same(expected, f(X, Y))


_STEPS = (
    *(lambda a, b: a @ b * 0.01, lambda a, b: np.tanh(a) + b, lambda a, b: a.T * 2 - b),
    *(lambda a, b: a * b + a, lambda a, b: np.einsum("ij,kj->ik", a, b) * 0.01),
    lambda a, b: a / (1 + b * b) + b[:, :1],
)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.sampled_from(_STEPS), min_size=2, max_size=6),
    st.sets(st.integers(0, 5), min_size=1, max_size=3),
    st.booleans(),
)
def test_results_of_generated_programs_stay_as_they_are(steps, places, is_gradient):
    def f(a, b):
        made = []
        for step in steps:
            a = step(a, b)
            made.append(a)
        kept = [made[n % len(made)] for n in places]
        return [kept[0][3:].T, *kept]

    def total(a, b):
        return sum(x.sum() for x in f(a, b))

    program = lt.value_and_grad(total, (0, 1)) if is_gradient else f
    calls = [lt.jit(program, kernels="off"), lt.jit(program)]
    rounds = []
    for x, y in ((X, Y), (Y, X), (X, Y)):
        expected, found = [lt.tree.leaves(call(x, y)) for call in calls]
        rounds.append((expected, found, [np.array(leaf) for leaf in found]))
    for expected, found, copies in rounds:
        for x, y, z in zip(expected, found, copies, strict=True):
            assert np.allclose(x, y, rtol=1e-9, atol=1e-9 * np.max(np.abs(x)))
            assert np.array_equal(y, z)
    assert all(np.array_equal(x, y) for x, y in zip(rounds[0][1], rounds[2][1], strict=True))

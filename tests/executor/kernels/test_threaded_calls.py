"""Kernels in several threads: the bits, memory orders, warnings and errors of one thread [F8]."""

import os
import signal
import sys
import threading
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import letir as lt
from letir.ast.terms import Lambda
from letir.executor.compiled import kernels_setting
from letir.executor.default_pipeline import optimize_program
from letir.plan.plan import plan_of
from letir.testing import assert_close, assert_same

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)
from letir.executor.kernels import row_cuts, threaded_calls
from letir.executor.kernels.group_kernels import with_kernels
from letir.kernels import threads
from tests.executor.kernels.conftest import changed_costs
from tests.executor.kernels.test_row_kernels import reducing_functions

NUMBERS = (1, 2, 3, 7)
X = np.random.default_rng(3).normal(size=(512, 512))


@pytest.fixture(autouse=True)
def _fresh_pool():
    """Helpers take part in all calls, also where other processes keep the cores busy."""
    before, threads._MAX_RESTING = threads._MAX_RESTING, 0
    threads._pool.resting = threads._pool.pause = 0
    yield
    threads._MAX_RESTING = before
    lt.set_num_threads(None)


@pytest.fixture
def _small_chunks(monkeypatch):
    """Every kernel is cut, into chunks of single places."""
    monkeypatch.setattr(threaded_calls, "_MIN_CHUNK", 1)
    monkeypatch.setattr(row_cuts, "_BLOCK", 1)
    monkeypatch.setattr(row_cuts, "_BLOCK_ROWS", 1)
    with changed_costs(least_thread_work=1):
        yield


@pytest.fixture
def chunks(monkeypatch):
    """The numbers of chunks of the calls that were cut."""
    found, run = [], threads.run_chunks

    def counted(compute, count, n):
        found.append(count)
        run(compute, count, n)

    monkeypatch.setattr(threaded_calls, "run_chunks", counted)
    return found


def assert_same_for_all_numbers(run) -> None:
    """Whether ``run()`` has the same bits and memory order in each number of threads."""
    results = []
    for n in NUMBERS:
        lt.set_num_threads(n)
        results.append(run())
    for found in results[1:]:
        assert_same(results[0], found)
        for a, b in zip(results[0], found, strict=True):
            assert (type(a), np.asarray(a).strides) == (type(b), np.asarray(b).strides)


def run_kernels(program: Lambda, *args) -> tuple:
    """The results of a program, with a kernel for each group that can have one."""
    return plan_of(with_kernels(optimize_program(program), min_elements=1)).run(list(args))


def elementwise(x, y):
    z = np.where(x > y, x * np.tanh(y), y - 1)
    return z, z > 0.5, (z * x).astype("f4")


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True), np.log(e.sum(axis=-1))


def inverse(x):
    return (x * 2 + 1) / x


@pytest.mark.parametrize(
    "y",
    [X + 1, X[:1], X[:, :1], 0.5, X.T, X[::-1, ::-1], np.ones((1024, 1024))[::2, ::2], X[0]],
    ids=["full", "row", "column", "number", "transposed", "reversed", "strided", "vector"],
)
def test_elementwise_kernels_have_the_same_bits_and_order(y, chunks):
    f = lt.jit(elementwise)

    assert_same_for_all_numbers(lambda: f(X, y))
    assert len(NUMBERS) - 1 == len(chunks)
    assert min(chunks) > 1
    for a, b in zip(elementwise(X, y), f(X, y), strict=True):
        assert a.strides == b.strides


def test_kernels_of_rows_have_the_same_bits(chunks):
    f = lt.jit(softmax)

    assert_same_for_all_numbers(lambda: f(X))
    assert len(NUMBERS) - 1 == len(chunks)
    assert_same_for_all_numbers(lambda: f(X.reshape(2, 256, 512)))
    assert_same_for_all_numbers(lambda: lt.jit(lambda x: x - (x * x).mean(axis=1))(X[:, :, None]))


def totals(x):
    """Reductions of all rows, along columns and of all elements."""
    y = x * x - 0.5
    return (*[getattr(y, name)(axis=0) for name in ("sum", "mean", "max", "min")], y.sum(), y + 1)


def losses(x):
    """Reductions of all elements, and values for each."""
    y = x * x - 0.5
    return y.sum(), y.mean(), y.max(), y.min(), (y > 3).any(), (y > -1).all(), np.tanh(y)


@pytest.mark.parametrize("f", [totals, losses])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_totals_have_the_same_bits(f, dtype, chunks):
    x = X[:, :500].astype(dtype)
    g = lt.jit(f)

    assert 1 == [bind.op.name for bind in lt.compile(lt.trace(f, x)).plan.binds].count("kernel")
    assert_same_for_all_numbers(lambda: g(x))
    assert len(NUMBERS) == len(chunks)  # blocks are taken in one thread, too
    assert {3} == set(chunks)
    for a, b in zip(f(x.astype("f8")), g(x), strict=True):
        assert_close(a, b, rtol=1e-13 if dtype == "f8" else 1e-6, atol=1e-3 * (dtype == "f4"))


def test_totals_of_integers_are_exact():
    def f(x):
        y = x * 3 - 1
        return (y.sum(axis=0), y.prod(axis=0), y.max(), y.sum(), (y % 7).mean(axis=0), y + 1)

    n = (X * 100).astype("i8")

    for exact in (False, True):
        g = lt.jit(f, exact=exact)
        assert_same_for_all_numbers(partial(g, n))
        assert_same(f(n), g(n))


@pytest.mark.parametrize("values", [(1e308, 1e308), (np.inf, -np.inf), (np.nan, 1.0)])
def test_totals_of_blocks_that_overflow_are_reported_by_numpy(values):
    """No block overflows, only the sum of two blocks."""
    f, x = lt.jit(lambda x: (x * 1.0).sum()), np.zeros(1_000_000)
    f(x)
    x[0], x[-1] = values
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = f(x)
        n_warnings = len(caught)
        expected = (x * 1.0).sum()

    assert_same(expected, found)
    assert [str(w.message) for w in caught[n_warnings:]] == [
        str(w.message) for w in caught[:n_warnings]
    ]
    assert all(w.filename == __file__ for w in caught[:n_warnings])


@pytest.mark.usefixtures("_small_chunks")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(reducing_functions())
def test_generated_programs_have_the_same_bits_in_all_numbers_of_threads(drawn):
    f, args = drawn
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = lt.trace(f, *args)
        assert_same_for_all_numbers(lambda: run_kernels(program, *args))
        expected = lt.run_forward(program, *args)
        found = run_kernels(program, *args)
    for a, b in zip(expected, found, strict=True):
        assert (type(a), a.dtype, a.shape, a.strides) == (type(b), b.dtype, b.shape, b.strides)
        scale = np.max(np.abs(a), initial=1, where=np.isfinite(a)) if a.dtype.kind == "f" else 0
        assert_close(a, b, rtol=1e-4 if a.dtype == "f4" else 1e-10, atol=scale * 1e-5)


@st.composite
def operands(draw):
    """Arrays that broadcast with each other, in any memory order."""
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    found = [np.arange(np.prod(shape)).reshape(shape) / 3]
    for _ in range(draw(st.integers(0, 2))):
        own = [n if draw(st.booleans()) else 1 for n in shape][draw(st.integers(0, 1)) :]
        order = draw(st.permutations(range(len(own))))
        x = np.arange(np.prod(own), dtype=float).reshape([own[n] for n in order])
        x = x.transpose(np.argsort(order))
        found.append(x[tuple([slice(None, None, draw(st.sampled_from([1, -1]))) for _ in own])])
    return draw(st.permutations(found))


@pytest.mark.usefixtures("_small_chunks")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operands())
def test_operands_in_any_memory_order_give_the_order_of_numpy(args):
    def f(*args):
        total = args[0] * 2
        for x in args:
            total = total + x
        return total * 3, total > 1

    program = lt.trace(f, *args)

    assert_same_for_all_numbers(lambda: run_kernels(program, *args))
    for a, b in zip(lt.run_forward(program, *args), run_kernels(program, *args), strict=True):
        assert_same(a, b)
        assert a.strides == b.strides


def test_one_plan_for_all_sizes_cuts_large_arrays_only(chunks):
    f = lt.jit(inverse)
    lt.set_num_threads(2)
    for sizes, is_cut in (((700_000, 800_000, 900_000), True), ((1000, 2000), False)):
        chunks.clear()
        for n in sizes:
            x = np.linspace(1, 2, n)
            assert_same(inverse(x), f(x))
        assert is_cut == bool(chunks)

    assert 2 == f.counters["compiles"]


def test_a_warning_in_a_thread_is_at_the_line_of_the_user():
    x = np.ones(1_000_000)
    lt.set_num_threads(3)
    f = lt.jit(inverse)
    f(x)
    for place in (3, -3):
        x[:] = 1
        x[place] = 0
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            f(x)
        (warning,) = caught
        assert "divide by zero encountered in divide" == str(warning.message)
        assert __file__ == warning.filename


def test_errstate_holds_in_threads():
    x = np.ones(1_000_000)
    lt.set_num_threads(3)
    f = lt.jit(inverse)
    f(x)
    x[-3] = 0
    calls = []
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="in divide"):
        f(x)
    with np.errstate(divide="call", call=lambda *given: calls.append(given)):
        f(x)
    with np.errstate(divide="ignore"):
        assert np.isinf(f(x)[-3])

    assert [("divide by zero", 1)] == calls


def test_an_interrupt_leaves_a_plan_usable(monkeypatch):
    lt.set_num_threads(3)
    f, x, done = lt.jit(inverse), np.linspace(1, 2, 1_000_000), []
    f(x)
    run = threads.run_chunks

    def interrupted(compute, count, n):
        def chunk(place):
            compute(place)
            if threading.current_thread() is threading.main_thread() and not done:
                done.append(place)
                os.kill(os.getpid(), signal.SIGINT)

        run(chunk, count, n)

    monkeypatch.setattr(threaded_calls, "run_chunks", interrupted)
    with pytest.raises(KeyboardInterrupt):
        f(x)

    assert_same(inverse(x), f(x))


def test_a_lack_of_memory_leaves_a_plan_usable(monkeypatch):
    lt.set_num_threads(3)
    f, x, run = lt.jit(inverse), np.linspace(1, 2, 1_000_000), threads.run_chunks
    f(x)

    def failing(compute, count, n):
        def chunk(place):
            if place == 1:
                raise MemoryError("no room")
            compute(place)

        run(chunk, count, n)

    monkeypatch.setattr(threaded_calls, "run_chunks", failing)
    with pytest.raises(MemoryError, match="no room"):
        f(x)
    monkeypatch.undo()

    assert_same(inverse(x), f(x))


@pytest.fixture
def _work_for_threads():
    """Calls of 65,536 elements are cut."""
    with changed_costs(least_thread_work=1 << 18):
        yield


@pytest.mark.usefixtures("_work_for_threads")
def test_sixteen_threads_call_functions_while_kernels_compile(chunks):
    """1,000 calls in each thread; every one of 50 functions has its own kernels."""
    lt.set_num_threads(2)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    small, large = np.linspace(1, 2, 9_000), np.linspace(1, 2, 80_000)
    functions = [lt.jit(lambda x, n=n: (x * (n + 2) + 1) / (x + n)) for n in range(50)]
    expected = [[(x * (n + 2) + 1) / (x + n) for x in (small, large)] for n in range(50)]
    wrong, barrier = [], threading.Barrier(16)

    def work(number):
        barrier.wait()
        for k in range(1000):
            n, is_large = (k // 20 + number) % 50, k % 20 == number
            found = functions[n](large if is_large else small)
            if not np.array_equal(found, expected[n][is_large]):
                wrong.append((number, k))

    try:
        everyone = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(16)]
        for thread in everyone:
            thread.start()
        for thread in everyone:
            thread.join(200)
    finally:
        sys.setswitchinterval(before)

    assert not any(thread.is_alive() for thread in everyone)
    assert [] == wrong
    assert len(chunks) == 16 * 50


def test_explain_shows_the_number_of_threads():
    lt.set_num_threads(3)
    f = lt.jit(inverse)

    assert "bytes; up to 3 threads" in str(lt.explain(f, np.ones(1_000_000)))
    assert "threads" not in str(lt.explain(f, X[:100]))
    assert 3 == lt.compile(lt.trace(softmax, X)).kernels[0].threads

"""The predicted memory of a call, compared with tracemalloc's: NumPy reports its arrays."""

import gc
import tracemalloc

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import letir as lt
from letir.errors import ShapeError

N = 200  # 320,000 bytes an array
X, Y, ROW = np.random.default_rng(4).normal(size=(3, N, N))
ROW = ROW[0]
# small objects of Python, and the buffers of 8,192 elements in which NumPy casts and broadcasts
SLACK = 6_000 + 3 * 8 * 8192


def measured(plan, args) -> int:
    """The most bytes that exist at once during a call."""
    gc.disable()  # what it frees would count
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        kept = plan(*args)
        peak = tracemalloc.get_traced_memory()[1] - before
        del kept
        return peak
    finally:
        tracemalloc.stop()
        gc.enable()


def expect_predicted(plan, *args, calls=(1, 2, 5)) -> None:
    """Each of these calls of a plan needs the memory that was predicted before it."""
    for n in range(max(calls) + 1):
        predicted = plan.memory()
        found = measured(plan, args)
        if n in calls:
            assert found - predicted.peak <= SLACK, (n, predicted)
            assert 0 <= found - predicted.peak or not predicted.is_exact, (n, predicted)


def softmax(x, y, row):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def views(x, y, row):
    a = np.sin(x) * y + row
    c = (a @ a.T).reshape(N // 2, 2 * N)
    return np.concatenate([c, c]).sum(axis=0), a[3:50], np.sort(a, axis=0) * 2


def layers(x, y, row):
    for _ in range(6):
        x = np.tanh(x @ y) + row
    return x


def writes(x, y, row):
    z = x.copy()
    z[3] = row
    z[:, 2] += 1
    return z, z.T.reshape(-1) * 2


def gradient(x, y, row):
    return lt.grad(lambda x: (np.tanh(x @ y) * x).sum())(x)


@pytest.mark.parametrize("f", [softmax, views, layers, writes, gradient])
def test_the_memory_of_a_call_is_predicted(f):
    expect_predicted(lt.compile(lt.trace(f, X, Y, ROW)), X, Y, ROW)


UNARY = [np.sin, np.negative, lambda x: x * x, lambda x: x.T, lambda x: np.sort(x, axis=0)]
UNARY += [lambda x: x.reshape(-1).reshape(N, N), lambda x: x[::-1], lambda x: np.cumsum(x, axis=1)]
UNARY += [lambda x: x - x.mean(axis=1, keepdims=True), lambda x: np.where(x > 0, x, -x)]
UNARY += [lambda x: np.concatenate([x[5:], x[:5]]), lambda x: x.copy(), lambda x: x * ROW]
BINARY = [np.add, np.multiply, np.maximum, np.matmul, lambda x, y: np.vstack([x, y])[::2]]


@st.composite
def functions(draw):
    """A function of two matrices: several steps on what it has computed so far."""
    steps = draw(st.lists(st.tuples(*[st.integers(0, 40)] * 3), min_size=2, max_size=12))
    kept = draw(st.lists(st.integers(0, 40), min_size=1, max_size=3))

    def f(x, y):
        values = [x, y]
        for number, i, j in steps:
            x, y = values[-1 - i % len(values)], values[-1 - j % len(values)]
            which = number % (len(UNARY) + len(BINARY))
            made = UNARY[which](x) if which < len(UNARY) else BINARY[which - len(UNARY)](x, y)
            values.append(made)
        return tuple([values[-1 - n % len(values)] + 0 for n in kept])

    return f


@settings(max_examples=20, phases=[Phase.generate])
@given(functions())
def test_the_memory_of_generated_functions_is_predicted(f):
    with np.errstate(all="ignore"):
        expect_predicted(lt.compile(lt.trace(f, X, Y)), X, Y, calls=(1, 5))


def test_the_table_names_the_arrays_of_the_peak():
    plan = lt.compile(lt.trace(lambda x: np.sort(np.sin(x), axis=0), X))
    found = plan.memory()

    assert (640_000, 320_000, True) == (found.peak, found.results, found.is_exact)
    assert ["sin: float64[200, 200]", "sort: float64[200, 200]"] == [one.text for one in found.held]
    assert "peak: 640,000 bytes, of these 320,000 for results" in str(found)
    assert "320,000  sort: float64[200, 200]  test_plan_memory.py:" in str(found)


def test_symbolic_sizes_are_given_by_name():
    f = lt.jit(lambda x: np.sort(np.sin(x)), static_shapes=False)
    f(np.ones(100))
    (plan,) = f.debug_state().plans
    (name,) = plan.plan.params[0].type.shape[0].names

    assert 2 * 8 * 1000 == plan.memory(**{name: 1000 - int(str(plan.spec).count("+2")) * 2}).peak
    with pytest.raises(ShapeError, match=f"no number was given for {name}"):
        plan.memory()


def test_bodies_are_counted_once():
    plan = lt.compile(lt.trace(lambda x: lt.fori_loop(0, 900, lambda i, x: np.sort(x), x), X))

    assert not plan.memory().is_exact
    assert "peak: about" in str(plan.memory())

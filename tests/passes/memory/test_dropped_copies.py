"""Copies that a function makes of arrays which it writes step by step: dropped where no other value
needs the memory [F6].
"""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same

N = 8
U, V, D = np.random.default_rng(0).normal(size=(3, N, N)) * 0.1
LINE = np.linspace(-1.0, 1.0, N)


def set_boundary(x, sign):
    x[0, :], x[-1, :] = sign * x[1, :], sign * x[-2, :]
    x[:, 0], x[:, -1] = x[:, 1], x[:, -2]
    x[0, 0] = 0.5 * (x[1, 0] + x[0, 1])


def diffuse(start, rate):
    before = start.copy()
    x = np.zeros_like(before)
    for _ in range(3):
        around = x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2]
        x[1:-1, 1:-1] = (before[1:-1, 1:-1] + rate * around) / (1 + 4 * rate)
        set_boundary(x, 1)
    return x


def advect(d, u, v, dt=0.1):
    n = d.shape[0] - 2
    i, j = np.meshgrid(np.arange(1, n + 1), np.arange(1, n + 1), indexing="ij")
    x = np.clip(i - dt * n * u[1:-1, 1:-1], 0.5, n + 0.5)
    y = np.clip(j - dt * n * v[1:-1, 1:-1], 0.5, n + 0.5)
    i, j = x.astype(int), y.astype(int)
    s, t = x - i, y - j
    out = np.zeros_like(d)
    out[1:-1, 1:-1] = (1 - s) * ((1 - t) * d[i, j] + t * d[i, j + 1])
    out[1:-1, 1:-1] += s * ((1 - t) * d[i + 1, j] + t * d[i + 1, j + 1])
    set_boundary(out, 1)
    return out


def project(u, v):
    divergence, p = np.zeros_like(u), np.zeros_like(u)
    divergence[1:-1, 1:-1] = u[2:, 1:-1] - u[:-2, 1:-1] + v[1:-1, 2:] - v[1:-1, :-2]
    for _ in range(3):
        around = p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2]
        p[1:-1, 1:-1] = (around - divergence[1:-1, 1:-1]) / 4
        set_boundary(p, 1)
    u, v = u.copy(), v.copy()
    u[1:-1, 1:-1] -= p[2:, 1:-1] - p[:-2, 1:-1]
    v[1:-1, 1:-1] -= p[1:-1, 2:] - p[1:-1, :-2]
    set_boundary(u, -1)
    set_boundary(v, -1)
    return u, v


def fluid(u, v, d):
    for _ in range(3):
        u, v = project(diffuse(u, 0.1), diffuse(v, 0.1))
        u, v = project(advect(u, u, v), advect(v, u, v))
        d = advect(diffuse(d, 0.05), u, v)
    return u, v, d


def heat(u):
    u = u.copy()
    for _ in range(6):
        before = u.copy()
        u[1:-1] = before[1:-1] + 0.1 * (before[2:] - 2 * before[1:-1] + before[:-2])
    return u


def rows_of_steps(x):
    out = np.zeros((6, N))
    out[0] = x
    for k in range(1, 6):
        out[k] = out[k - 1].copy()
        out[k, 1:-1] += 0.1 * (out[k - 1, 2:] - out[k - 1, :-2])
    return out


def two_buffers(u):
    a, b = u.copy(), np.empty_like(u)
    for _ in range(4):
        b[1:-1], b[0], b[-1] = 0.5 * (a[2:] + a[:-2]), a[0], a[-1]
        a, b = b, a
    return a


def read_only(u):
    before = u.copy()
    return np.outer(before, before[::-1]) + before


def kept(u):
    w = np.zeros(N)
    w[1:] = u[1:]
    start = w.copy()
    w[0] = 3.0
    return w, start, start.copy()


def both_written(u):
    w = np.zeros(N)
    w[1:] = u[1:]
    other = w.copy()
    for k in range(3):
        w[k], other[k] = k, -k
    return w * other


def swapped_rows(m):
    m = m * 1.0
    first = m[0].copy()
    m[0] = m[-1]
    m[-1] = first
    return m


# the function, its arguments, the copies that are needed: arguments that are written or of which
# the memory order is not known, and values that are needed before and after a write
FUNCTIONS = {
    "fluid": (fluid, (U, V, D), 3),
    "heat": (heat, (LINE,), 1),
    "rows of steps": (rows_of_steps, (LINE,), 5),  # of rows
    "two buffers": (two_buffers, (LINE,), 1),
    "read only": (read_only, (LINE,), 0),
    "kept": (kept, (LINE,), 2),
    "both written": (both_written, (LINE,), 1),
    "swapped rows": (swapped_rows, (U,), 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_only_copies_that_are_needed_stay(name):
    function, args, most = FUNCTIONS[name]
    given = [arg.copy() for arg in args]
    fast = lt.jit(function, kernels="off", exact=True)

    for _ in range(6):  # as instructions, then as a Python function
        found = fast(*args)
        assert_same(function(*args), found)
        results = found if type(found) is tuple else (found,)
        for i, a in enumerate(results):
            assert not any(np.shares_memory(a, b) for b in (*results[:i], *args))
    assert_same(given, list(args))
    (plan,) = fast.debug_state().plans
    assert most >= sum(bind.op.name == "copy" for bind in plan.optimized.binds)


def test_a_copy_stays_where_an_argument_is_written():
    def f(x):
        before = x.copy()
        x[0] = 7.0
        return before * 2

    fast, x = lt.jit(f), LINE.copy()

    assert_same(LINE * 2, fast(x))
    assert 7.0 == x[0]


def test_a_copy_for_a_function_that_letir_does_not_know_stays():
    def change(x):
        x[0] = 100.0
        return x

    opaque = lt.opaque(change, aval=lambda x: x, name="tests.change")

    def f(x):
        w = np.zeros(N)
        w[1:] = x[1:]
        return opaque(w.copy()), w * 2

    x = LINE.copy()
    assert_same(f(x), lt.jit(f)(x))
    assert_same(LINE, x)


@pytest.mark.parametrize("order", ["C", "F"])
def test_results_have_the_memory_order_of_numpy(order):
    def f(x):
        w = np.zeros((3, 4), order=order)
        w[1:] = x
        return w.copy() * 2, w.copy("K") * 2

    for expected, found in zip(f(1.0), lt.jit(f)(1.0), strict=True):
        assert expected.flags == found.flags

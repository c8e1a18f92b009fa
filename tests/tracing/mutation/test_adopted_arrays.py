"""Writes of traced values into arrays that operators make in C [B6]."""

import functools

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same

W = np.arange(9.0).reshape(3, 3)
INTEGERS, COMPLEX = np.arange(4), np.arange(3) + 1j
X = np.array([1.0, 2.0, 3.0])


class Model:
    weights = np.arange(9.0).reshape(3, 3)

    def run(self, x):
        w = self.weights.copy()
        for i in range(3):
            w[i] *= x
        w[0, 0] += x.sum()
        return w


def fill(a, x):
    a[0] = x


def items(x):
    a = W.copy()
    a[0] = x
    a[1, 1] = x[0]
    a[:, 2] = x
    a[[0, 2]] = np.stack([x, x])
    a[a > 4] = 0.0
    a[-1] *= 2
    return a


def results_of_operators(x):
    a, b, c = W * 2, W[1:] + 0.0, -W
    a[0] = x
    b[0, 0] = x[0]
    c += x
    return a @ x, b, c


def two_names(x):
    a = b = W.copy()
    a[0] = x
    b[1] = a[0]
    return a, b


def in_a_callee(x):
    a = W.copy()
    fill(a, x)
    return a


def read_before(x):
    a = W.copy()
    y = a @ x
    a[0] = y
    return a @ y


def broadcast(x):
    a = W.copy()
    a[:] = x * 2
    a[1] = x[0]
    a[2] = np.sin(x[1])
    a[1:] *= x[2]
    return a


def traced_places(x):
    a = W.copy()
    i = np.argmax(x)
    a[i] = x
    a[len(x) - 1] = 2 * x
    return a


def listed_places(x):
    """The first element of W that changes places is in another row for other arguments."""
    a, b = W.copy(), W[0].copy()
    i = np.argmax(x)
    b[[0, i]] = b[[i, 0]]
    b[i] = x[0]
    a[[i, i - 1]] = x
    a[[0, i], [i, 1]] = i
    return a, b


def other_dtypes(x):
    z, single = COMPLEX.copy(), W.astype(np.float32)
    z[0] = x[0]
    z[1:] = x[1:]
    single[0] = x
    return np.abs(z), single


RECORDED = {
    f.__name__: f
    for f in (
        *(items, results_of_operators, two_names, in_a_callee, read_before, broadcast),
        *(traced_places, listed_places, other_dtypes, Model().run),
    )
}


@pytest.mark.parametrize("f", RECORDED.values(), ids=RECORDED)
def test_copies_that_only_variables_refer_to_are_recorded(f):
    other = X[[0, 1, 2]] * 2 + 0.5

    program, jitted = lt.trace(f, X), lt.jit(f)

    for x in (X, other):
        assert_same(f(x), program(x))
        assert_same(f(x), jitted(x))
    assert W.tolist() == np.arange(9.0).reshape(3, 3).tolist()
    assert Model.weights.tolist() == W.tolist()


def masked(x):
    a = W + 0.4
    a[a > x[1] + 1] = x[0]
    a[a < x[1] / 2] *= x[2]
    mask = a > 2 * x[2]
    a[mask] -= x[1]
    a[~mask] = 0.5 * x[0]
    return a


def all_true(x):
    a = X.copy()
    a[a > -x] = x[0]
    return a


def at_indices(x):
    a, b, places = W.copy(), X.copy(), (x * 0.3).astype(int)
    a[[0, 2]] *= x
    b[places] = x[::-1]
    b[np.argsort(-x)[:2]] += x[0]
    return a, b


def of_bools(x):
    a, b = X.copy(), X.copy()
    a[x > 0] = x > 1.5
    b[:] = x > 1.5
    return a, b


def in_pieces(x):
    return np.piecewise(X, [x[1] + 0.5 > X, x[1] + 0.5 <= X], [lambda a: a * x[0], np.sqrt])


@pytest.mark.parametrize("f", [masked, all_true, at_indices, of_bools, in_pieces])
def test_traced_masks_and_indices_are_guarded(f):
    program, jitted = lt.trace(f, X), lt.jit(f)

    assert_same(f(X * 1.01), program(X * 1.01))
    for x in (X, X * 1.01, X * 3, X[::-1]):
        assert_same(f(x), jitted(x))


def test_the_gradient_flows_through_masked_writes():
    x, steps = X * 1.01, 1e-6 * np.eye(3)

    slopes = [(masked(x + h).sum() - masked(x - h).sum()) / 2e-6 for h in steps]
    np.testing.assert_allclose(lt.grad(lambda x: masked(x).sum())(x), slopes, rtol=1e-7, atol=1e-8)


def test_the_gradient_flows_to_the_written_value():
    def f(x):
        a = W.copy()
        a[0] = x**2
        return (a * a).sum()

    assert_same(4 * X**3, lt.grad(f)(X))


def in_a_list(x):
    a = W + 0.0
    kept = [a]
    a[0] = x
    return kept[0]


def with_a_view(x):
    a = W + 0.0
    view = a[1:]
    a[1] = x
    return view


def of_a_view(x):
    a = W + 0.0
    view = a[1:]
    view += x
    return a


def in_a_closure(x):
    a = W + 0.0

    def read():
        return a * 1

    a[0] = x
    return read()


def while_iterated(x):
    a = W + 0.0
    for i, row in enumerate(a):
        a[i] = row * x
    return a


def seen_as_memory(x):
    a = W + 0.0
    memory = memoryview(a)
    a[0] = x
    return np.asarray(memory) * 1


def of_a_default(x, a=W + 0.0):
    a[0] = x
    return a


@functools.cache
def table():
    return W.copy()


def of_a_cache(x):
    a = table()
    a[0] = x
    return a


def by_a_list(x):
    a = W + 0.0
    a[0] = [x[0], 1.0, 2.0]
    return a


def by_a_kept_list(x):
    a, row = W + 0.0, [x[0]]
    a[0] = row * 3
    return a


def read_only(x):
    a = W + 0.0
    a.flags.writeable = False
    a += x
    return a


@pytest.mark.parametrize(
    "f",
    [
        *(in_a_list, with_a_view, of_a_view, in_a_closure, while_iterated),
        *(by_a_list, by_a_kept_list),
    ],
)
def test_arrays_to_which_more_refers_are_recorded_at_the_second_attempt(f):
    program, jitted = lt.trace(f, X), lt.jit(f)

    for x in (X, X[::-1] * 2):
        assert_same(f(x), program(x))
        assert_same(f(x), jitted(x))
    assert W.tolist() == np.arange(9.0).reshape(3, 3).tolist()


REFUSED = {f.__name__: f for f in (seen_as_memory, of_a_default, of_a_cache, lambda x: fill(W, x))}


@pytest.mark.parametrize("f", REFUSED.values(), ids=REFUSED)
def test_arrays_from_outside_and_memory_seen_by_c_code_are_refused(f):
    with pytest.raises(lt.TraceError, match=r"cannot be written into|cannot become"):
        lt.trace(f, X)

    assert W.tolist() == np.arange(9.0).reshape(3, 3).tolist()


def test_a_read_only_result_of_an_operator_raises_numpys_error():
    with pytest.raises(ValueError, match="read-only"):
        lt.trace(read_only, X)

"""Writes of traced values into copies of arrays that the function has not made [B6]."""

import copy
import functools

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from letir.tracing.numpy_protocols.array_methods import METHODS, ORIGINALS, STAY_IN_PLACE

VECTOR, MATRIX = np.arange(6.0) + 1, np.arange(12.0).reshape(3, 4)


class Model:
    def __init__(self, weights):
        self.weights = weights.copy()

    def step(self, s):
        self.weights[1] = s * self.weights[0]
        self.weights *= s
        return self


def views(s):
    v, m = VECTOR.copy(), MATRIX.copy()
    part, first, second = v[1:], m[0], m[1]
    v[1] = s
    m.T[2] = s
    m[2][1] = s
    first[...] = s
    second -= first
    return part, v, m


def results(s):
    v, w, m = VECTOR.copy(), VECTOR.copy(), MATRIX.astype(np.float32)
    np.add(v, s, out=v)
    np.clip(w, 0.0, s, out=w)
    np.fill_diagonal(m, s)
    np.add.at(v, [0, 1, 0], s)
    np.put(w, [0, 2], [s, 2 * s])
    np.copyto(v, s, where=VECTOR > 3)
    return v, w, m


def containers(s):
    kept, table = [VECTOR.copy(), VECTOR.copy()], {"a": VECTOR.copy(), "b": MATRIX.copy()}
    kept[0][1] = s
    for name in table:
        table[name] -= s * table[name]
    return kept[0] + kept[1], table["a"], table["b"]


def objects(s):
    return Model(VECTOR).step(s).weights


def closures(s):
    v = VECTOR.copy()

    def put(i, x):
        v[i] = x

    put(1, s)
    return v


def iterated(s):
    m = MATRIX.copy()
    for i, row in enumerate(m):
        row[i] = s * i
        m[i] += s
    return m


def masked(s):
    v, w, m = VECTOR[::-1].copy(), VECTOR.copy(), MATRIX.copy()
    v[v > s] = 0.0
    w[np.arange(6) % 2 == 0] *= s
    np.place(m, m > s, s)
    return v, w, m


def other_copies(s):
    a, b, c = copy.deepcopy(VECTOR), copy.copy(VECTOR), MATRIX.flatten()
    d, e, f = VECTOR.repeat(2), VECTOR.take([2, 0]), copy.deepcopy({"w": [VECTOR]})["w"][0]
    for x in (a, b, c, d, e, f):
        x[:2] = s
    return a, b, c, d, e, f


def in_a_list_comprehension(s):
    rows = [VECTOR.copy() for _ in range(3)]
    rows[0][:], rows[1][0] = s, 2 * s
    return np.array(rows)


FUNCTIONS = {
    f.__name__: f
    for f in (
        *(views, results, containers, objects, closures, iterated, masked, other_copies),
        in_a_list_comprehension,
    )
}


def assert_recorded(f) -> None:
    """Check a function of one number: its program, at other numbers too, and its plan."""
    program, jitted = lt.trace(f, 3.5), lt.jit(f)
    for s in (3.5, 3.5, 2.25):
        assert_same(f(s), program(s))
        assert_same(f(s), jitted(s))


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
def test_copies_of_outside_arrays_are_written_into(f):
    assert_recorded(f)
    assert VECTOR.tolist() == [1, 2, 3, 4, 5, 6]
    assert MATRIX.tolist() == np.arange(12.0).reshape(3, 4).tolist()


def test_gradients_flow_through_writes_into_copies():
    def f(s):
        first, second = containers(s)[:2]
        return (first**2).sum() + second[1]

    assert_same(2 * (3.5 + VECTOR[1]) - VECTOR[1], lt.grad(f)(3.5))


def test_arrays_have_their_own_methods_after_a_recording():
    own = ORIGINALS["copy"], ORIGINALS["astype"]

    def f(x):
        assert METHODS["copy"] is not own[0]
        assert np.ndarray.copy is own[0]
        raise KeyError(0)

    with pytest.raises(KeyError):
        lt.trace(f, 1.0)

    if not STAY_IN_PLACE:
        assert (np.ndarray.copy, np.ndarray.astype) == own
    assert type(VECTOR.copy()) is np.ndarray


def test_c_code_and_subclasses_get_ordinary_copies():
    class Named(np.ndarray):
        pass

    kinds = []

    def f(x):
        kinds.append(type(VECTOR.view(Named).copy()))
        kinds.extend(map(type, map(np.ndarray.copy, [VECTOR])))
        return x

    lt.trace(f, 1.0)

    assert [Named, np.ndarray] == kinds


@functools.cache
def table():
    return np.zeros(3)


def test_arrays_of_cached_functions_are_ordinary():
    def f(x):
        a = table()
        a[0] = a[0] + x
        return a * 1

    with pytest.raises(lt.TraceError, match="ordinary array"):
        lt.trace(f, 1.0)
    assert type(table()) is np.ndarray

    jitted = lt.jit(f)  # runs it as Python

    assert [1.0, 2.0, 3.0] == [jitted(1.0)[0] for _ in range(3)]

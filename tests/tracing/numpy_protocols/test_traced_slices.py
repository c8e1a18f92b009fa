"""Slices, shifts and places given by traced integers: one program for all of them, with NumPy's
values, views and writes.
"""

import random

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from tests.each_sample import in_one_test

X = np.arange(10.0) ** 2
M = np.arange(30.0).reshape(5, 6)


def shifted_differences(x, i):
    return x[i : i + 3] - x[i - 1 : i + 2]


def every_other(x, i):
    return x[i : i + 4 : 2]


def backwards(x, i):
    return x[i + 2 : i : -1]


def to_the_first(x, i):
    return x[i : i - 1 : -1]


def a_slice_object(x, i):
    return x[slice(i, i + 2)]


def with_other_entries(x, i):
    m = np.outer(x, x[:5])
    return m[None, ..., i - 1 : i + 1, :3], m[i : i + 1, [0, 2]], m[1, i - 1 : i]


def with_traced_places(x, i):
    m = np.outer(x, x)
    return m[i, i : i + 2], m[i - 1 : i + 1, i], m[i - 1 : i, None, 2:], m[i : i + 1, [i, 0]]


def two_slices(x, i):
    return np.outer(x, x)[i - 1 : i + 1, i : i + 2]


def a_write(x, i):
    y = np.zeros(10)
    y[i : i + 3] = 2 * x[i : i + 3]
    return y


def an_augmented_write(x, i):
    y = x.copy()
    y[i : i + 3] += 1
    y[i : i + 3] *= x[i]
    return y


def a_write_through_views(x, i):
    m = np.outer(x, x)
    v = m[i : i + 3][:, 1]
    v[:] = 0
    w = m.T[i : i + 2]
    w += 1
    return m, v


def a_write_of_a_part(x, i):
    m = np.zeros((5, 6))
    m[1:3, i : i + 2] = x[:2]
    m[i - 1 : i, ::2] = x[i]
    return m


def an_argument_that_is_written(x, i):
    x[i : i + 2] = -1
    return x.sum()


FUNCTIONS = [
    shifted_differences,
    every_other,
    backwards,
    a_slice_object,
    with_other_entries,
    with_traced_places,
    two_slices,
    a_write,
    an_augmented_write,
    a_write_through_views,
    a_write_of_a_part,
    an_argument_that_is_written,
]

RAISING = [  # in NumPy, beyond the ends
    shifted_differences,
    with_other_entries,
    with_traced_places,
    a_write,
    an_augmented_write,
    a_write_of_a_part,
]


@in_one_test
@pytest.mark.parametrize("kind", [int, np.int64, np.array, np.int8])
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_one_plan_serves_all_places(f, kind):
    jitted = lt.jit(f)
    for i in (1, 2, 3, 4):
        mine, numpys = X + i, X + i
        assert_same(f(numpys, kind(i)), jitted(mine, kind(i)))
        assert_same(numpys, mine)

    assert jitted.counters["compiles"] == 1


@in_one_test
@pytest.mark.parametrize("f", [*FUNCTIONS, to_the_first], ids=lambda f: f.__name__)
def test_slices_beyond_the_ends_have_numpys_values(f):
    jitted = lt.jit(f)
    for i in (3,) if f in RAISING else (3, 8, 9, 0, -2, 12, 3, 1):
        assert_same(f(X.copy(), i), jitted(X.copy(), i))


def test_another_length_is_another_plan():
    jitted = lt.jit(lambda x, i, j: x[i:j])
    for i, j in ((1, 3), (4, 6), (2, 7), (5, 7), (0, 5)):
        assert_same(X[i:j], jitted(X, i, j))

    assert jitted.counters["compiles"] == 2


def test_a_replay_beyond_the_end_is_a_guard_error():
    program = lt.trace(lambda x, i: x[i : i + 2], X, 3)

    assert_same(X[5:7], program(X, 5))
    with pytest.raises(lt.GuardError, match=r"x\[i : i \+ 2\]"):
        program(X, 9)


def test_the_result_is_a_view_as_with_numpy():
    x = X.copy()
    part = lt.trace(lambda x, i: x[i : i + 2], x, 3)(x, 5)

    assert np.shares_memory(part, x)


def test_slices_between_traced_integers_have_derivatives():
    def f(x, i):
        return (x[i : i + 3] ** 3).sum()

    expected = np.zeros(10)
    expected[4:7] = 3 * X[4:7] ** 2

    assert_same(expected, lt.grad(f)(X, 4))
    assert_same(expected, lt.jit(lt.grad(f))(X, 4))
    assert_same(np.diag(6 * np.where(expected, X, 0)), lt.hessian(f)(X, 4))
    assert_same(expected[4:7].sum(), lt.jvp(lambda x: f(x, 4), (X,), (np.ones(10),))[1])


def test_the_source_is_numpy_code():
    def f(x, i):
        return x[i : i + 2], x[i + 2 : i : -1], np.outer(x, x)[:, i : i + 4 : 2]

    names: dict = {}
    exec(lt.to_source(lt.trace(f, X, 3)), names)

    assert_same(f(X, 5), names["f"](X, 5))


# ---- shifts and places ----

SHIFTED = [
    np.roll,
    lambda x, i: np.roll(np.outer(x, x), i),
    lambda x, i: np.roll(np.outer(x, x), i, axis=1),
    lambda x, i: np.roll(np.outer(x, x), (i, -i), axis=(0, -1)),
    lambda x, i: np.roll(np.outer(x, x), (i, 2), axis=(0, 1)),
    lambda x, i: np.roll(np.outer(x, x), i, axis=(0, 1)),
    lambda x, i: np.roll(x[:0], i),
    lambda x, i: np.roll(np.arange(3), i) * x[:3],
]
PLACED = [
    np.delete,
    lambda x, i: np.delete(np.outer(x, x), i, axis=1),
    lambda x, i: np.insert(x, i, -1.5),
    lambda x, i: np.insert(x, i, x[:2]),
    lambda x, i: np.insert(np.outer(x, x), i, x, axis=-1),
]


@in_one_test
@pytest.mark.parametrize("kind", [int, np.int64, np.array, np.int8])
@pytest.mark.parametrize("f", SHIFTED)
def test_one_plan_serves_all_shifts(f, kind):
    jitted = lt.jit(f)
    for i in (1, 0, -3, 10, 25, -11):
        assert_same(f(X, kind(i)), jitted(X, kind(i)))

    assert jitted.counters["compiles"] == 1


@in_one_test
@pytest.mark.parametrize("kind", [int, np.int64, np.array, np.int8])
@pytest.mark.parametrize("f", PLACED)
def test_one_plan_serves_all_places_of_delete_and_insert(f, kind):
    jitted = lt.jit(f)
    for i in (1, 0, -3, 9, -10, 4):
        assert_same(f(X, kind(i)), jitted(X, kind(i)))

    assert jitted.counters["compiles"] == 1
    for i in (11, -11):
        with pytest.raises(IndexError, match="out of bounds"):
            jitted(X, kind(i))


def test_shifts_need_no_value():
    shifts = np.array([0, 3, -2])

    found = lt.vmap(np.roll, in_axes=(None, 0))(X, shifts)

    assert_same(np.stack([np.roll(X, i) for i in shifts]), found)
    assert_same(np.roll(X, -3), lt.grad(lambda y, i: np.roll(y, i) @ X)(X, 3))


# ---- slices, views and writes together ----

STATEMENTS = """
v = a[i:i+2]; v += 1.5
v *= a[i]
a[i:i+2] = b[i+1:i+3]
a[i+1:i+3] += a[i:i+2]
m[:, i:i+2] = m[:, i+1:i+3]
w = m[i:i+2]; w[0] = b[:6]
w += w[::-1]
u = m.T[i:i+3]; u[:, 0] = b[i:i+3]
a = np.roll(a, i)
a[i+2:i:-1] = a[i:i+2]
v = a[i+3:i:-2]
b[i] += a[i:i+3].sum()
m[i:i+2, i:i+2] = a[i:i+2, None]
b = a
a = np.insert(a, i, 3.0)[:8]
r = a[i:i+4].reshape(2, 2); r[0] = 7
q = a[1:6][i:i+2]; q += 2
a[i:i+2], b[i:i+2] = b[i:i+2], a[i:i+2]
a = a.copy(); m = m.copy()
""".strip().splitlines()


def program_of(seed):
    """A function of random statements that read and write slices between integers."""
    draw = random.Random(seed)
    body = [draw.choice(STATEMENTS) for _ in range(draw.randint(3, 9))]
    lines = ["v = a[i:i+2]; w = m[i:i+2]; u = m.T[i:i+3]", *body, "return a, b, m, v, w, u"]
    names = {"np": np}
    exec("def f(a, b, m, i):\n" + "".join(f"    {line}\n" for line in lines), names)
    return names["f"]


@in_one_test
@pytest.mark.parametrize("seed", range(20))
def test_programs_of_slices_agree_with_numpy(seed):
    def called(run, i):
        arrays = [np.arange(8.0) / 3, np.arange(8.0)[::-1].copy(), np.arange(24.0).reshape(4, 6)]
        try:
            return [np.array(part) for part in (*run(*arrays, i), *arrays)]
        except ValueError:  # the slices have different lengths at the end of an axis
            return None

    f = program_of(seed)
    fast = lt.jit(f)
    for i in (1, 2, 0, 1, 2, 2, 3, 1):
        for expected, actual in zip(called(f, i) or (), called(fast, i) or (), strict=True):
            assert_same(expected, actual)

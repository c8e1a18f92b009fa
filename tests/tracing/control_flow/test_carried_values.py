"""Carried values of loops: types, nesting, memory, and errors that name what differs."""

import gc
import sys
import tracemalloc
import weakref

import numpy as np
import pytest

import letir as lt
from letir.errors import DTypeError, LetirError, ShapeError
from letir.eval.evaluator import run_flat
from letir.testing import assert_close, assert_same

X = np.linspace(0.2, 0.9, 3)


# ---- carried values ----


@pytest.mark.parametrize(
    ("init", "body", "expected"),
    [
        (0, lambda i, x: x + np.float32(1), np.float32),
        (0.0, lambda i, x: x + np.float32(1), np.float32),
        (0, lambda i, x: x * 0.5, float),
        (0, lambda i, x: x + i, int),
        (1.0, lambda i, x: x * 1j, complex),
        (np.float32(2), lambda i, x: x * i + 1, np.float32),
        (np.float32(2), lambda i, x: 0, np.float32),
        (False, lambda i, x: i > 1, np.bool_),
        (1, lambda i, x: x + np.int8(1), np.int8),
    ],
)
def test_carried_python_numbers_take_the_dtype_that_the_body_returns(init, body, expected):
    found = lt.fori_loop(0, 3, body, init)

    assert type(found) is expected
    assert found == lt.trace(lambda: lt.fori_loop(0, 3, body, init))()


def test_loops_carry_any_nesting():
    init = [np.ones(2), {"k": np.zeros(1), "none": None}]

    a, b = lt.fori_loop(0, 3, lambda i, c: [c[0] + 1, {"k": c[1]["k"] + i, "none": None}], init)

    assert_same(np.full(2, 4.0), a)
    assert_same(np.full(1, 3.0), b["k"])
    assert lt.fori_loop(0, 3, lambda i, c: (), ()) == ()


def test_a_body_may_write_into_carried_arrays():
    def fill(i, x):
        x[i] = x[i - 1] * 2 + i
        return x

    x, expected = np.ones(5), np.ones(5)
    for i in range(5):
        expected = fill(i, expected)

    assert_same(expected, lt.fori_loop(0, 5, fill, x))
    assert_same(np.ones(5), x)
    gradient = lt.grad(lambda x: lt.fori_loop(0, 5, fill, x).sum())(x)
    assert_close(lt.grad(lambda x: np.array([2, 4, 8, 16, 32]) @ x[-1:].repeat(5))(x), gradient)


def test_a_loop_of_updates_copies_the_array_once():
    def fill(i, x):
        x[i] = i
        return x

    f = lt.trace(lambda x: lt.fori_loop(0, 100, fill, x), np.zeros(10_000))
    x = np.zeros(10_000)
    tracemalloc.start()
    try:
        f(x)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 1.5 * x.nbytes


def test_loops_carry_arrays_of_symbolic_sizes():
    f = lt.trace(
        lt.grad(lambda x: lt.while_loop(lambda c: c.sum() < 100, lambda c: c * x * 2, x).sum()),
        lt.ShapeDtype(("n",)),
    )
    for n in (2, 4):
        x = np.full(n, 1.5)
        expected = lt.grad(lambda x: plain_growing(x).sum())(x)
        assert_close(expected, f(x))


def plain_growing(x):
    c = x
    while float(lt.concrete(c.sum())) < 100:
        c = c * x * 2
    return c


def test_a_size_is_not_named_with_a_leading_underscore():
    with pytest.raises(ShapeError, match="underscore"):
        lt.ShapeDtype(("_trips",))


# ---- memory ----


def test_carried_values_are_freed_at_their_last_use_c1():
    seen, x = [], np.ones(3)
    alive = weakref.ref(x)

    def noted(y):
        seen.append(alive() is not None)
        return y * 1.0

    look = lt.opaque(noted, aval=lambda y: y)
    loops = [
        lambda x: lt.fori_loop(0, 2, lambda i, c: look(np.sin(c)), x),
        lambda x: lt.while_loop(
            lambda s: s[0] < 2, lambda s: (s[0] + 1, look(np.sin(s[1]))), (0, x)
        ),
    ]
    programs = [lt.trace(f, np.ones(3)) for f in loops]
    seen.clear()
    gc.disable()
    try:
        for program in programs:
            x = np.ones(3)
            alive, leaves = weakref.ref(x), [x]
            del x
            run_flat(program, leaves)
    finally:
        gc.enable()

    assert seen == [False] * 4


def test_an_error_in_a_body_keeps_no_value_c1():
    x = np.ones(3)
    alive = weakref.ref(x)
    f = lt.trace(lambda x, i: lt.fori_loop(0, 2, lambda k, c: c + x[i], x), X, np.int64(0))
    leaves = [x, np.int64(9)]
    del x
    gc.disable()
    try:
        with pytest.raises(IndexError) as caught:
            run_flat(f, leaves)
        assert alive() is None, caught
    finally:
        gc.enable()


def peak(every, n=1024):
    def f(x):
        loop = lt.fori_loop(0, n, lambda i, c: np.sin(c) * 1.1, x, checkpoint_every=every)
        return loop.sum()

    x = np.full(500, 0.1)
    gradient = lt.trace(lt.grad(f), x)
    tracemalloc.start()
    try:
        gradient(x)
        return tracemalloc.get_traced_memory()[1] / x.nbytes
    finally:
        tracemalloc.stop()


def test_checkpoints_bound_the_memory_of_the_backward_pass():
    assert peak(None) > 1000
    assert peak(32) < 4 * 32


# ---- eager mode, effects ----


def test_loops_of_variables_are_differentiated():
    w, x = lt.Variable(np.full(3, 0.5), requires_grad=True), lt.Variable(X, requires_grad=True)

    lt.fori_loop(0, 3, lambda i, c: c * w, x).sum().backward()
    by_x = lt.Variable(X, requires_grad=True)
    lt.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * s[1]), (0, by_x))[
        1
    ].sum().backward()

    assert_close(3 * 0.25 * X, w.grad.array)
    assert_close(np.full(3, 0.125), x.grad.array)
    assert_close(8 * X**7, by_x.grad.array)


@pytest.mark.parametrize("every", [None, 2])
def test_effects_happen_once_in_their_order_c5(every, capsys):
    def body(s):
        lt.debug.print("{}", s[0])
        return s[0] + 1, s[1] * 1.1

    def f(x):
        return lt.while_loop(lambda s: s[0] < 3, body, (0, x), checkpoint_every=every)[1]

    lt.trace(lt.grad(f), 2.0)(3.0)

    assert capsys.readouterr().out == "0\n1\n2\n"


# ---- errors ----


@pytest.mark.parametrize(
    ("call", "error", "lines"),
    [
        (
            lambda: lt.fori_loop(0, 3, lambda i, c: {"a": c["a"].astype("f4")}, {"a": X}),
            DTypeError,
            ["carry['a']: float64[3] comes in, float32[3] goes out", "x.astype"],
        ),
        (
            lambda: lt.while_loop(lambda c: c[0] > 0, lambda c: (c[0], c[1] + X), (1, 0.0)),
            ShapeError,
            ["carry[1]: float64[] comes in, float64[3] goes out"],
        ),
        (lambda: lt.fori_loop(0, 3, lambda i, c: (c,), X), DTypeError, ["carried: *", "(*,)"]),
        (lambda: lt.fori_loop(0, 3, lambda i, c: None, X), DTypeError, ["returned: None"]),
        (lambda: lt.fori_loop(0.5, 3, lambda i, c: c, X), DTypeError, ["bounds", "float64*[]"]),
        (lambda: lt.fori_loop(0, X, lambda i, c: c, X), ShapeError, ["bounds", "float64[3]"]),
        (lambda: lt.while_loop(lambda c: c > 0, lambda c: c, X), ShapeError, ["x.any()"]),
        (lambda: lt.while_loop(lambda c: (c, c), lambda c: c, 1.0), ShapeError, ["one truth"]),
        (lambda: lt.fori_loop(0, 3, lambda i, c: c, "x"), DTypeError, ["'x' of type str"]),
        (
            lambda: lt.fori_loop(0, 3, lambda i, c: c, X, checkpoint_every=0),
            ShapeError,
            ["fori_loop: checkpoint_every must be 1 or more, found 0"],
        ),
        (
            lambda: lt.fori_loop(0, 3, lambda i, c: c, X, checkpoint_every=2.5),
            DTypeError,
            ["fori_loop: checkpoint_every must be an int, found 2.5"],
        ),
        (
            lambda: lt.while_loop(lambda c: c < 3, lambda c: c, 1.0, checkpoint_every="2"),
            DTypeError,
            ["while_loop: checkpoint_every must be an int, found '2'"],
        ),
    ],
)
def test_an_error_says_what_differs_and_where(call, error, lines):
    with pytest.raises(error) as caught:
        call()

    for line in [*lines, "test_carried_values.py"]:
        assert line in str(caught.value)


def test_a_body_cannot_ask_for_values():
    with pytest.raises(LetirError, match=r"letir\.cond"):
        lt.fori_loop(0, 3, lambda i, c: c if c > 0 else -c, 1.0)


def test_a_value_of_a_body_cannot_escape():
    kept = []
    lt.fori_loop(0, 2, lambda i, c: (kept.append(c), c)[1], 1.0)

    with pytest.raises(LetirError, match="a trace that is over"):
        kept[0] + 1


def test_an_exception_in_a_body_leaves_no_trace_behind():
    def body(i, c):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lt.fori_loop(0, 2, body, 1.0)
    assert not lt.is_tracing()
    assert sys.exc_info() == (None, None, None)


@pytest.mark.parametrize("size", [10_000])
def test_no_cache_keeps_the_constants_of_a_program_that_is_gone(size):
    w, x = np.full(size, 1.5), np.ones(size)

    def f(x):
        return lt.fori_loop(0, 2, lambda i, c: c * w, x * w).sum()

    program = lt.trace(f, x)
    inside = next(b for b in program.binds if b.op.name == "fori_loop").attrs["body"].constants
    kept = [weakref.ref(b.attrs["value"]) for b in (*inside, *program.constants)]
    lt.vmap(lt.grad(program))(x[None])
    del program, inside
    gc.collect()

    assert len(kept) == 2
    assert [ref() is None for ref in kept] == [True, True]

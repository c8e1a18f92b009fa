"""[C2, F6] An update writes into its operand's memory exactly where nothing else can see it."""

import numpy as np
import pytest

import letir as lt
import letir.numpy as lnp
from letir.eval.memory_checks import is_owned, is_unfolded, update_in_place
from letir.testing import assert_same
from tests.each_sample import in_one_test

N, UPDATES = 50_000, 100


def addresses(f, *args) -> set:
    """The addresses of the large arrays of a run."""
    found, kept = set(), []

    def look(bind, results):
        kept[:] = [r.ctypes.data for r in results if getattr(r, "nbytes", 0) >= 8 * N]
        found.update(kept)

    lt.run_forward(f, *args, observe=look)
    return found


def filled(x, v):
    y = x.copy()
    for i in range(UPDATES):
        y[i * 7] = v[i]
    return y


def read_and_filled(x, v):
    y = x * 1.0
    for i in range(1, UPDATES):
        y[i] = y[i - 1] * v[i]
        y[i + 5 :: 1000] += v[i]
    return y


def filled_in_columns(x, v):
    y = x.reshape(-1, 2) * 1.0
    for i in range(UPDATES):
        y.T[1, i] = v[i]
        y.reshape(-1)[i] *= 2
    return y


@pytest.mark.parametrize("program", [filled, read_and_filled, filled_in_columns])
def test_a_loop_of_updates_copies_the_array_at_most_once(program):
    x, v = np.zeros(N), np.arange(1.0, UPDATES + 1) / UPDATES
    f = lt.trace(program, x, v)

    assert_same(program(x, v), f(x, v))
    assert len(addresses(f, x, v)) <= 2


def test_the_gradient_of_a_loop_of_updates_copies_few():
    x, v = np.ones(N), np.ones(UPDATES)
    f = lt.trace(lt.grad(lambda x, v: (filled(x, v) ** 2).sum(), argnums=(0, 1)), x, v)

    assert len(addresses(f, x, v)) <= 8


def test_a_row_saved_for_the_gradient_does_not_keep_its_buffer_alive():
    def program(v):
        buffer = lnp.zeros((UPDATES, N // 10))
        for i in range(1, UPDATES):
            buffer[i] = np.sin(buffer[i - 1]) + v[i]
        return buffer[-1].sum()

    f = lt.trace(lt.value_and_grad(program), np.ones(UPDATES))

    assert len(addresses(f, np.ones(UPDATES))) <= 6


ALIASES = {
    "a view": lambda y: (y[1:], y.at[0].set(9.0)),
    "a view of a view": lambda y: (y.reshape(2, -1)[:, 1:], y.at[0].set(9.0)),
    "a second use": lambda y: (y, y.at[0].set(9.0)),
    "a later use": lambda y: (y.at[0].set(9.0), y + 1),
    "itself": lambda y: y.at[::-1].set(y),
    "a part of itself": lambda y: y.at[1:].set(y[:-1]),
    "added to itself": lambda y: y.at[1:].add(y[:-1]),
    "two updates": lambda y: (y.at[0].set(1.0), y.at[0].set(2.0)),
    "of a broadcast": lambda y: np.broadcast_to(y, (2, 4)).at[0, 0].set(9.0),
}


@in_one_test
@pytest.mark.parametrize("use", ALIASES.values(), ids=ALIASES)
@pytest.mark.parametrize("made", [lambda x: x * 1.0, lambda x: x], ids=["own", "argument"])
def test_a_shared_array_is_not_updated_in_place(use, made):
    x = np.arange(4.0)
    f = lt.trace(lambda x: use(made(x)), x)
    expected = []
    # the meaning of the program: bind by bind, each update on a copy
    values = dict(zip(f.params, [x.copy()], strict=True))
    for bind in f.binds:
        args = [np.copy(values[a]) if a in values else a.value for a in bind.args]
        values[bind.binders[0]] = bind.op.impl(np, *args, **bind.attrs)
    expected = [values[a] for a in f.ret.args]

    found = f(x)

    assert_same(expected, list(found) if type(found) is tuple else [found])
    assert_same(np.arange(4.0), x)


def test_a_constant_is_not_updated_in_place():
    def first_set(v):
        made = lnp.array([1.0, 2.0])
        made[0] = v
        return made

    f = lt.trace(first_set, 3.0)

    assert_same(np.array([3.0, 2.0]), f(3.0))
    assert_same(np.array([4.0, 2.0]), f(4.0))


def test_is_owned_says_whether_an_array_has_one_owner():
    whole = np.zeros((2, 3))
    alone = [np.zeros((2, 3))]
    turned = [np.zeros((2, 3)).T]

    assert is_owned(np, alone)
    assert is_owned(np, turned)
    assert not is_owned(np, [whole])
    assert not is_owned(np, [whole.T])
    assert not is_owned(np, [np.broadcast_to(np.zeros(3), (2, 3))])
    assert not is_owned(np, [np.frombuffer(bytearray(8))])
    assert not is_owned(np, [np.float64(1.0)])


def test_is_unfolded_finds_elements_that_share_memory():
    x = np.zeros(6)
    strided = np.lib.stride_tricks.as_strided

    assert is_unfolded(x.reshape(2, 3).T[:, ::-1])
    assert not is_unfolded(strided(x, (2, 3), (8, 8)))
    assert not is_unfolded(strided(x, (2, 3), (0, 8)))


def shifted(x):
    y = x * 2.0
    for i in range(1, 9):
        y[i:] = y[:-i]
        y[::-1] += y
        y[i] = y[i - 1]
    return y


def moved_and_read(x):
    y = x * 2.0
    view = y[1:]
    y[:-1] = view
    return y, view * 1.0


@pytest.mark.parametrize("f", [shifted, moved_and_read])
def test_parts_are_moved_within_one_array(f):
    x = np.arange(N * 1.0)
    program = lt.trace(f, x)

    for run in (program, lt.compile(program), lt.compile(program, optimize=False), lt.jit(f)):
        assert_same(f(x), run(x))
    assert f is not shifted or len(addresses(program, x)) <= 3


def test_a_view_that_somebody_else_has_is_not_written_to():
    op = lt.extend.PRIMITIVES["index_set"]
    x = np.arange(4.0)
    held = x[1:]

    made = update_in_place(op, np, [x, held], op.complete({"item": slice(None, -1)}))

    assert made is not x and held.tolist() == [1.0, 2.0, 3.0]


def test_a_constant_that_is_returned_twice_is_one_array():
    """[C4]"""

    def table(x):
        squares, others = np.arange(3.0), np.arange(3.0)
        squares[1] = others[1] = 7.0
        return squares, {"again": squares}, others, x * 2.0

    x = np.ones(3)
    f = lt.trace(table, x)
    fast = lt.jit(table)
    calls = [lambda: table(x), lambda: f(x), lambda: lt.compile(f)(x)]
    for call in [*calls, *[lambda: fast(x)] * 3]:
        squares, again, others, _ = call()
        squares[0] = 5.0
        assert again["again"] is squares
        assert others.tolist() == [0.0, 7.0, 2.0]

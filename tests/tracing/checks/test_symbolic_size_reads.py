"""[B10] Conditions on symbolic sizes: answered if they hold for all sizes, otherwise an
error with its line, never an answer that holds for some sizes only.
"""

import pickle

import numpy as np
import pytest

import letir as lt
import letir.numpy as lnp
from letir.ast.pytrees import flatten
from letir.ast.sizes.size_reads import SIZE_READS
from letir.passes.lowering import without_combinators
from letir.testing import assert_close, assert_same
from tests.each_sample import in_one_test

N, M = lt.ShapeDtype(("n", 3)), lt.ShapeDtype(("m", 3))

OPEN = {
    "equal": lambda x, y: x.shape[0] == 3,
    "reflected": lambda x, y: 3 == x.shape[0],
    "numpy": lambda x, y: np.int64(3) == x.shape[0],
    "numpy_reflected": lambda x, y: x.shape[0] == np.int64(3),
    "float": lambda x, y: x.shape[0] == 3.0,
    "different": lambda x, y: x.shape[0] != 3,
    "shape": lambda x, y: x.shape == (4, 3),
    "names": lambda x, y: x.shape == y.shape,
    "size": lambda x, y: x.size == 6,
    "less": lambda x, y: x.shape[0] < 3,
    "least": lambda x, y: min(x.shape) == 3,
    "truth": lambda x, y: bool(x.shape[0]),
    "number": lambda x, y: int(x.shape[0]) == 3,
    "index": lambda x, y: len(range(x.shape[0])),
    "length": lambda x, y: len(x),
    "quotient": lambda x, y: 1 / x.shape[0] > 0.5,
    "remainder": lambda x, y: x.shape[0] % 2 == 0,
    "power": lambda x, y: x.shape[0] ** 2,
    "in_tuple": lambda x, y: x.shape[0] in (1, 3),
    "in_set": lambda x, y: x.shape[0] in {1, 3},
}
DECIDED = {
    "same": (lambda x, y: x.shape == x.shape, True),
    "known_axis": (lambda x, y: x.shape[1] == y.shape[1], True),
    "longer": (lambda x, y: x.shape[0] + 1 == x.shape[0], False),
    "less": (lambda x, y: x.shape[0] < x.shape[0] + 1, True),
    "at_least": (lambda x, y: x.shape[0] >= 0, True),
    "negative": (lambda x, y: x.shape[0] == -1, False),
    "none": (lambda x, y: x.shape[0] is None or x.shape[0] == None, False),  # noqa: E711
    "rank": (lambda x, y: x.shape == (), False),
}


@in_one_test
@pytest.mark.parametrize("name", OPEN)
def test_a_condition_on_a_symbolic_size_is_an_error_with_its_line(name):
    def f(x, y):
        return x if OPEN[name](x, y) else np.tanh(x)

    with pytest.raises(
        lt.TraceError, match=r"(?s)has (a name but )?no value.*test_symbolic_size_reads"
    ):
        lt.trace(f, N, M)
    assert SIZE_READS.get() is None


COMPUTED = {
    "mean": lambda x: x.sum(0) / x.shape[0],
    "half more": lambda x: x.sum(0) * (x.shape[0] + 0.5),
    "reflected": lambda x: (2.0 - x.shape[0]) * x + 2 ** x.shape[0] + x.shape[0] ** 2,
    "quotients": lambda x: x.shape[0] // 2 * x + x.shape[0] % 2 - 7 // x.shape[0],
    "numbers": lambda x: lnp.arange(x.shape[0])[:, None] * x,
    "counted down": lambda x: lnp.arange(x.shape[0] * 2, 0, -2)[:, None] * x,
    "ufunc": lambda x: x * np.sqrt(x.shape[0]) + np.maximum(x.shape[0], x),
    "array": lambda x: np.arange(3.0) * x.shape[0] + x,
    "shape": lambda x: lnp.zeros(x.shape) + lnp.ones((x.shape[0], 1)) * x,
    "diagonal": lambda x: lnp.eye(x.shape[0]) @ x,
    "flat": lambda x: x.reshape(x.shape[0] * 3)[: x.shape[0]],
    "reversed": lambda x: x[::-1] * x + x[x.shape[0] - 1],
    "halves": lambda x: x[: x.shape[0] // 2].sum(0) - x[x.shape[0] // 2 :].sum(0) + x[::2].sum(0),
    "copies": lambda x: np.tile(x, (2, 2)).sum() + np.repeat(x, 2, axis=0).sum(0),
    "prod of the shape": lambda x: x / np.prod(x.shape),
    "of a row": lambda x: lt.vmap(lambda row: row * x.shape[0])(x),
    "in a loop": lambda x: lt.scan(lambda c, row: (c + row / x.shape[0], c), x[0], x),
}


@in_one_test
@pytest.mark.parametrize("f", COMPUTED.values(), ids=COMPUTED)
def test_symbolic_sizes_take_part_in_arithmetic(f):
    program = lt.trace(f, N)
    source: dict = {}
    exec(lt.to_source(program), source)

    for n in (1, 2, 5):
        x = np.linspace(0.5, 2.0, 3 * n).reshape(n, 3)
        expected = f(x)
        assert_same(expected, program(x))
        assert_close(expected, lt.compile(program)(x))
        assert_same(expected, source["f"](x))
    assert lt.parse(lt.dumps(program)) == program


@in_one_test
@pytest.mark.parametrize("f", COMPUTED.values(), ids=COMPUTED)
def test_functions_that_compute_with_sizes_have_one_plan_and_gradients(f):
    def loss(x):
        return sum((np.sin(leaf) ** 2).sum() for leaf in flatten(f(x))[0])

    value, gradient, at_once = lt.jit(f), lt.jit(lt.grad(loss)), lt.trace(lt.grad(loss), N)

    for n in (3, 4, 2, 7):
        x = np.linspace(0.5, 2.0, 3 * n).reshape(n, 3)
        assert_close(f(x), value(x))
        assert_close(lt.grad(loss)(x), gradient(x))
        assert_close(lt.grad(loss)(x), at_once(x))
    assert (2, 2) == (value.counters["compiles"], gradient.counters["compiles"])


@pytest.mark.parametrize("name", DECIDED)
def test_a_condition_that_holds_for_all_sizes_is_answered(name):
    question, answer = DECIDED[name]

    f = lt.trace(lambda x, y: np.sin(x) if question(x, y) else np.tanh(x), N, M)

    assert ["sin" if answer else "tanh"] == [bind.op.name for bind in f.binds]


def test_a_function_that_continues_after_the_error_is_refused():
    def f(x):
        try:
            return x if x.shape[0] == 3 else x * 2
        except lt.TraceError:
            return x

    with pytest.raises(lt.TraceError, match="then took another path than with NumPy"):
        lt.trace(f, N)


def test_symbolic_sizes_of_an_outer_trace_are_checked_in_an_inner_trace():
    def body(carry, row):
        return carry + row, row

    def f(x):
        inner = lt.vmap(lambda row: row if x.shape[0] == 3 else -row)
        return lt.scan(body, np.zeros(3), x)[0], inner(x)

    with pytest.raises(lt.TraceError, match="whether n is 3"):
        lt.trace(f, N)


def test_symbolic_sizes_are_checked_in_manual_traces_and_compared_after_them():
    x = lt.tracer_enter(N)
    try:
        with pytest.raises(lt.TraceError, match="whether n is 3"):
            x.shape[0] == 3  # noqa: B015
    finally:
        with pytest.raises(lt.TraceError):
            lt.tracer_exit(x)

    f = lt.trace(np.tanh, N)
    assert f.params[0].type.shape != (4, 3)  # the size of a program, not of a traced value


JOINED = {
    "first": lambda x, y: np.concatenate([np.sin(x), y * y]),
    "last": lambda x, y: np.concatenate([y * y, np.sin(x)]),
    "between": lambda x, y: np.concatenate([y * y, np.sin(x), y]),
    "several": lambda x, y: np.concatenate([np.sin(x), np.cos(x), x * x]),
}


@pytest.mark.parametrize("f", JOINED.values(), ids=JOINED)
def test_concatenated_arrays_of_symbolic_sizes_have_gradients(f):
    loss = lambda x, y: (f(x, y) ** 3).sum()  # noqa: E731
    first = lambda x, y: (lt.grad(loss)(x, y) ** 2).sum()  # noqa: E731
    one, two = (lt.trace(lt.grad(g), N, lt.ShapeDtype((2, 3))) for g in (loss, first))

    for n in (0, 1, 4):
        args = np.linspace(-1, 1, 3 * n).reshape(n, 3), np.linspace(0.1, 1, 6).reshape(2, 3)
        assert_close(lt.grad(loss)(*args), one(*args))
        assert_close(lt.grad(first)(*args), two(*args))


def test_joined_arrays_of_several_symbolic_sizes_have_gradients():
    f = lambda x, y: (np.concatenate([x, y, x]) ** 3).cumsum().sum()  # noqa: E731
    program = lt.trace(lt.grad(f, (0, 1)), N, M)

    for n, m in ((0, 2), (1, 1), (4, 3)):
        args = np.linspace(-1, 1, 3 * n).reshape(n, 3), np.linspace(0.1, 1, 3 * m).reshape(m, 3)
        assert_close(lt.grad(f, (0, 1))(*args), program(*args))


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u1"])
@pytest.mark.parametrize("op", [np.add, np.maximum, np.minimum])
def test_a_reduction_of_symbolic_size_is_not_a_loop(op, dtype):
    f = lambda start, x: lt.reduce(op, start, x)  # noqa: E731
    start = np.array([1, 200, 8]).astype(dtype)
    fn = lt.trace(f, start, lt.ShapeDtype(("n", 3), dtype))

    for n in (0, 1, 5):
        x = (np.arange(3 * n).reshape(n, 3) * 37 % 11).astype(dtype)
        assert_same(f(start, x), fn(start, x))
    assert "scan" not in {bind.op.name for bind in without_combinators(fn).binds}


COMBINED = {
    "add": np.add,
    "max": np.maximum,
    "other": lambda a, b: a + b + a * b,
}


@pytest.mark.parametrize("op", [None, *COMBINED.values()], ids=["scatter", *COMBINED])
def test_values_are_scattered_into_any_number_of_places(op):
    def f(dest, i, v):
        found = lt.scatter(dest, i, v) if op is None else lt.reduce_by_index(dest, op, 0.0, i, v)
        return (found**3).sum()

    at, values = np.array([1, 7, -1, 1]), np.array([0.3, -0.7, 1.1, 0.9])
    fn = lt.trace(lt.grad(f, (0, 2)), lt.ShapeDtype("n"), at, values)

    for n in (0, 1, 2, 9):
        dest = np.linspace(-1, 1, n)
        assert_close(lt.grad(f, (0, 2))(dest, at, values), fn(dest, at, values))


def test_whether_arrays_of_other_sizes_are_equal_is_asked_at_each_call():
    for compare in (np.array_equal, np.array_equiv):
        f = lt.jit(compare)
        for n, m in ((3, 4), (5, 6), (7, 7), (6, 5), (2, 2), (1, 4), (9, 9)):
            x, y = np.ones(n), np.ones(m)
            assert f(x, y) is compare(x, y)
        with pytest.raises(lt.ShapeError, match="cannot tell"):
            lt.trace(compare, N, M)


def test_a_size_counts_as_an_integer():
    def f(x):
        n = x.shape[0]
        found = isinstance(n, int), type(n) is int, not isinstance(n, float)
        return x.astype("f4") * (n if all(found) else np.nan) ** -1 + np.prod(x.shape)

    program = lt.trace(f, N)

    for n in (1, 4):
        assert_same(f(np.ones((n, 3))), program(np.ones((n, 3))))
    assert pickle.loads(pickle.dumps(program)) == program


def test_sizes_compute_with_traced_numbers_as_python_integers():
    def f(x, k, s):
        n, y = x.shape[0], x.astype("f4")
        return y * (n * k), y * (k * n), y * (n * s) + n / s, y * (k - n), n % k, n // k, n < k

    program, fast = lt.trace(f, N, 2, 1.5), lt.jit(f)

    for n, k in ((3, 2), (4, 2), (5, 7), (2, 2)):
        args = np.ones((n, 3)), k, 1.5
        assert_same(f(*args), program(*args))
        assert_same(f(*args), fast(*args))
    assert 2 == fast.counters["compiles"]


@pytest.mark.parametrize(
    "f",
    [
        lambda n: np.clip(n, 0, 5),
        lambda n: np.sum(a=n),
        lambda n: np.round(n, decimals=1),
    ],
)
def test_a_function_of_numpy_takes_a_size(f):
    program = lt.trace(lambda x: f(x.shape[0]) + 0 * x.sum(), N)

    for n in (2, 7):
        assert_same(program(np.ones((n, 3))), f(n) + 0 * np.ones((n, 3)).sum())


def test_a_size_of_another_program_is_an_error():
    kept = []
    lt.trace(lambda x: kept.append(x.shape[0]) or x, N)

    with pytest.raises(lt.TraceError, match="the number n is not known: no argument here has this"):
        lt.trace(lambda y: y * kept[0], 1.0)
    with pytest.raises(lt.ShapeError, match="cannot tell whether n"):
        lt.trace(lambda y: y if kept[0] > 5 else -y, 1.0)

"""Loops whose bodies work on few numbers run as kernels with the loop inside."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import letir as lt
from letir.ast.text.parser import parse
from letir.executor.compiled import kernels_setting
from letir.executor.kernels import loop_kernels
from letir.kernels import loop_groups
from letir.ops import load_all
from letir.testing import assert_same
from tests.executor.kernels.conftest import changed_costs

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)

load_all()
X = np.random.default_rng(3).normal(size=600)


def lorenz(s):
    x, y, z = s
    return np.array([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])


def runge_kutta(s):
    def step(i, s):
        a = lorenz(s)
        b = lorenz(s + 0.005 * a)
        c = lorenz(s + 0.005 * b)
        return s + 0.01 / 6 * (a + 2 * b + 2 * c + lorenz(s + 0.01 * c))

    return lt.fori_loop(0, 100, step, s)


def recurrent(w, h, xs):
    def step(h, x):
        h = np.tanh(w @ h + x)
        return h, (h, (h * h).sum())

    return lt.scan(step, h, xs)


def reverse_sums(xs):
    return lt.scan(lambda total, x: (total + x, total * x), np.float64(0), xs, reverse=True)


def root(a):
    return lt.while_loop(lambda x: np.abs(x * x - a) > 1e-9, lambda x: x - (x * x - a) / (2 * x), a)


def springs(x):
    def step(x, _):
        length = np.sqrt((x * x).sum(axis=1, keepdims=True))
        return x - 0.01 * (length - 1) * x / length * np.array([1.0, 0.5]), length.sum()

    return lt.scan(step, x, length=300)


def escape(c):
    def go_on(state):
        return (state[0] < 200) & (state[1] ** 2 + state[2] ** 2 < 4)

    def step(state):
        n, x, y = state
        return n + 1, x * x - y * y + c[0], 2 * x * y + c[1]

    return lt.while_loop(go_on, step, (0, np.float64(0), np.float64(0)))


def fibonacci(x):
    return lt.fori_loop(0, 800, lambda i, c: (c[1], c[0] + c[1]), (x[0] * 1e-160, x[1] * 1e-160))


def collatz(n):
    def step(state):
        n, steps = state
        odd = n & 1
        return odd * (3 * n + 1) + (1 - odd) * (n >> 1), steps + 1

    return lt.while_loop(lambda state: state[0] != 1, step, (n, np.int64(0)))


def nested(x):
    def inner(i, total):
        return lt.fori_loop(0, 90, lambda j, t: np.sin(t) + 0.1 * j - i, total)

    return lt.fori_loop(0, 70, inner, x)


def rows_inside(x, rows):
    """A nested scan and its reverse, whose stacked results the outer loop reads."""

    def step(c, row):
        c = c * 0.5 + row[0]
        return c, (c - row[1], row * c)

    def outer(i, c):
        c, (ys, tables) = lt.scan(step, c, rows)
        c, zs = lt.scan(lambda c, row: (np.sin(c + row), c), c, ys + i, reverse=True)
        return np.cos(c + ys[0] * zs[2] - tables[1, 1])

    return lt.fori_loop(0, 300, outer, x)


def sums_inside(x, rows):
    """A nested scan in reverse with stacked results, over more rows than ``unroll`` takes."""

    def outer(i, c):
        c, ys = lt.scan(lambda c, row: (c * 0.5 + row, c), c, rows, reverse=True)
        return c - ys[0] * ys[9]

    return lt.fori_loop(0, 50, outer, x)


PROGRAMS = {
    "rows inside": (rows_inside, (np.float64(0.3), X[:140].reshape(70, 2))),
    "more rows inside": (sums_inside, (np.float64(0.3), X[:66])),
    "runge kutta": (runge_kutta, (X[:3],)),
    "a recurrent network": (recurrent, (X[:9].reshape(3, 3), X[:3], X.reshape(200, 3))),
    "in reverse": (reverse_sums, (X,)),
    "broadcasting": (springs, (X[:8].reshape(4, 2),)),
    "newton": (root, (np.float64(7),)),
    "escape": (escape, (np.array([-0.1, 0.65]),)),
    "rotation": (fibonacci, (X[:2],)),
    "integers": (collatz, (np.int64(27),)),
    "nested": (nested, (np.float64(0.5),)),
}


def kernels_of(compiled) -> int:
    """The number of loops that are kernels in the plan of a compiled program."""
    return sum(bind.op.role == "kernel" for bind in compiled.plan.binds)


def loops_left(compiled) -> int:
    """The number of loops in the plan of a compiled program that NumPy runs."""
    bodies = [bind.op.bodies for bind in compiled.plan.binds]
    return sum(one is not None and one.loop is not None for one in bodies)


def flat(results) -> tuple:
    if type(results) is not tuple:
        return (results,)
    return sum([flat(one) for one in results], ())


def assert_close(expected, found, rtol=1e-10):
    for x, y in zip(flat(expected), flat(found), strict=True):
        assert type(x) is type(y)
        assert np.asarray(x).dtype == np.asarray(y).dtype
        np.testing.assert_allclose(y, x, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loop_is_one_kernel(name):
    f, args = PROGRAMS[name]
    fn = lt.trace(f, *args)
    compiled = lt.compile(fn)

    assert loops_left(compiled) == 0
    assert kernels_of(compiled) >= 1
    assert_close(lt.run_forward(fn, *args), compiled(*args))


@pytest.mark.parametrize(
    "name", ["runge kutta", "a recurrent network", "broadcasting", "in reverse", "newton"]
)
def test_the_gradient_of_a_loop_runs_in_kernels(name):
    f, args = PROGRAMS[name]

    def loss(*args):
        return sum((x * x).sum() for x in flat(f(*args)))

    grad = lt.trace(lt.grad(loss), *args)
    compiled = lt.compile(grad)

    assert loops_left(compiled) == 0
    assert_close(lt.run_forward(grad, *args), compiled(*args), rtol=1e-7)


def test_exact_kernels_compute_the_bits_of_numpy():
    for name in ("runge kutta", "in reverse", "newton", "escape", "rotation", "integers"):
        f, args = PROGRAMS[name]
        fn = lt.trace(f, *args)
        assert_same(lt.run_forward(fn, *args), lt.compile(fn, exact=True)(*args))


def test_exact_results_have_the_memory_order_of_numpy():
    """Later sums add in this order."""

    def f(x):
        def step(i, c):
            return c[0].T * 0.9 + i, c[1] * 0.5 + c[0]

        return lt.fori_loop(0, 201, step, (x, x))

    x = X[:35].reshape(5, 7)[:, :5]
    for one in (x, x.copy().T):
        fn = lt.trace(f, one)
        expected, found = lt.run_forward(fn, one), lt.compile(fn, exact=True)(one)
        assert_same(expected, found)
        assert [y.strides for y in expected] == [y.strides for y in found]


def test_a_loop_with_a_test_inside_a_loop_is_part_of_its_kernel():
    def until_small(i, total):
        return lt.while_loop(lambda c: c > 0.1, lambda c: c * 0.5, total + 1.0)

    f = lt.trace(lambda x: lt.fori_loop(0, 2000, until_small, x), 0.3)
    compiled = lt.compile(f, kernels="on")

    assert len(compiled.kernels) == 1
    assert_same(f(0.3), compiled(0.3))


def test_numbers_of_steps_that_depend_on_operands():
    f = lt.jit(lambda x, n: lt.fori_loop(0, n, lambda i, x: np.cos(x) * i, x))

    for n in (0, 1, 7, 500, -3):
        x = 0.5 * X[:3]
        assert_close(lt.fori_loop(0, n, lambda i, x: np.cos(x) * i, x), f(x, n))


def test_symbolic_numbers_of_elements():
    fn = parse(
        """lambda %0: float64[n] {
        %1: float64[], %2: float64[n] = scan(0.5, %0, body=lambda %3: float64[], %4: float64[] {
          %5: float64[] = mul(%3, %4); %6: float64[] = add(%5, 0.1);
          %7: float64[] = sin(%6); %8: float64[] = exp(%4); %9: float64[] = mul(%8, %7);
          %10: float64[] = add(%9, %4); %11: float64[] = mul(%10, 0.3); %12: float64[] = neg(%11);
          return (%12, %9)
        }, n_carry=1, n_xs=1, length=None, reverse=True);
        return (%1, %2) }"""
    )
    run = lt.compile(fn)

    assert [bind.op.role for bind in run.plan.binds] == ["kernel"]
    for n in (1, 2, 100):
        assert_close(lt.run_forward(fn, X[:n]), run(X[:n]))


def test_python_integers_beyond_64_bits_are_refused_as_without_kernels():
    def count(n):
        return lt.while_loop(lambda c: c[1] < 300, lambda c: (c[0] + 1, c[1] + 1), (n, 0))

    f = lt.jit(count)

    with pytest.raises(OverflowError, match="64 bits"):
        f(2**63 - 2)
    assert f(2) == (302, 300)


def test_a_loop_without_steps_returns_its_operands():
    f = lt.jit(lambda x: lt.while_loop(lambda x: x[0] > 0, lambda x: x - 1, x))

    assert_close(np.array([-1.0, 2.0]), f(np.array([-1.0, 2.0])))
    assert_close(np.array([-0.5, -0.5]), f(np.array([1.5, 1.5])) + 0)


def test_a_long_loop_with_a_test_continues_where_the_kernel_stopped(monkeypatch):
    monkeypatch.setattr(loop_kernels, "MAX_STEPS", 1000)
    monkeypatch.setattr(loop_groups, "MAX_STEPS", 1000)

    def count(n):
        return lt.while_loop(lambda i: i < n, lambda i: i + 1, n * 0)

    with changed_costs(least_loop_calls=0):
        f = lt.compile(lt.trace(count, np.int64(3)))

    assert "while_loop" not in [bind.op.name for bind in f.plan.binds]
    assert f(np.int64(10_500)) == 10_500


def test_loops_on_empty_arrays_stay_with_numpy():
    x = np.zeros((0, 2))
    counted = lt.trace(lambda x: lt.fori_loop(0, 900, lambda i, y: np.sin(y) * i, x), x)
    tested = lt.trace(
        lambda x: lt.while_loop(lambda c: c[1].sum() + c[0] < 9, lambda c: (c[0] + 1, c[1] * 2), x),
        (np.float64(0), x),
    )

    assert_same(x, lt.compile(counted)(x))
    assert_same((np.float64(9), x), lt.compile(tested)((np.float64(0), x)))


def test_residuals_of_many_steps():
    grad = lt.jit(lt.grad(lambda x: lt.while_loop(lambda x: x < 3.0, lambda x: x * 1.0005, x)))
    steps = int(np.ceil(np.log(3.0) / np.log(1.0005)))

    assert grad(1.0) == pytest.approx(1.0005**steps, rel=1e-9)


def test_floating_point_errors_are_numpys():
    f = lt.jit(lambda x: lt.fori_loop(0, 100, lambda i, x: x / (x - 1), x))

    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        f(np.float64(1))
    with np.errstate(divide="ignore", invalid="ignore"):
        assert np.isnan(f(np.float64(1)))


def test_python_numbers_stay_python_numbers():
    found = lt.jit(lambda c: escape(c)[0])(np.array([-0.1, 0.65]))

    assert type(found) is int


def test_a_carried_value_that_no_step_changes_stays_with_numpy():
    x = X[:3].copy()
    f = lt.compile(
        lt.trace(lambda x: lt.fori_loop(0, 99, lambda i, c: (c[0], c[1] + c[0]), (x, x)), x)
    )

    assert np.shares_memory(f(x)[0], x)


# ---- generated loops ----

UNARY = (np.sin, np.tanh, np.negative, np.abs, lambda x: x * 0.5, lambda x: x[::-1])
BINARY = (np.add, np.subtract, np.multiply, np.maximum, lambda x, y: np.where(x < y, x, y))


@st.composite
def loops(draw):
    """A loop of one of four kinds with a random body on two vectors and a number."""
    ops = draw(
        st.lists(st.tuples(st.integers(0, 10), st.integers(0, 9), st.integers(0, 9)), max_size=8)
    )
    kind = draw(st.sampled_from(["fori", "scan", "while", "nested"]))
    width, steps = draw(st.integers(1, 4)), draw(st.integers(1, 12))
    dtype = draw(st.sampled_from([np.float64, np.float64, np.float32]))

    def body(number, a, b, s, x):
        values = [a, b, x, a * dtype(0.9)]
        for op, i, j in ops:
            x, y = values[i % len(values)], values[j % len(values)]
            values.append(UNARY[op](x) if op < len(UNARY) else BINARY[op % 5](x, y))
        last = values[-1] / (1 + np.abs(values[-1]))
        return b * dtype(0.5) + dtype(0.1), last, s + (last * last).sum() + number * dtype(0.5)

    def f(a, b, s, xs):
        if kind == "scan":
            return lt.scan(lambda c, x: (body(1, *c, x), (c[0] * x, c[2])), (a, b, s), xs)
        if kind == "while":
            go_on = lambda c: c[0] < steps  # noqa: E731
            step = lambda c: (c[0] + 1, *body(2, *c[1:], xs[0]))  # noqa: E731
            return lt.while_loop(go_on, step, (np.int64(0), a, b, s))
        step = lambda i, c: body(i, *c, xs[0])  # noqa: E731
        if kind == "nested":
            return lt.fori_loop(0, steps, lambda i, c: lt.fori_loop(0, i + 1, step, c), (a, b, s))
        return lt.fori_loop(0, steps, step, (a, b, s))

    a, b = X[:width].astype(dtype), X[9 : 9 + width].astype(dtype)
    return f, (a, b, dtype(0.25), X[: steps * width].reshape(steps, width).astype(dtype))


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(loops())
def test_generated_loops_compute_the_same_with_kernels(everything_pays, case):
    f, args = case
    fn = lt.trace(f, *args)
    with np.errstate(all="ignore"):
        assert_close(lt.run_forward(fn, *args), lt.compile(fn)(*args), rtol=1e-4)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(loops())
def test_generated_loops_compute_the_same_bits_with_exact_kernels(everything_pays, case):
    f, args = case
    fn = lt.trace(f, *args)
    with np.errstate(all="ignore"):
        assert_same(lt.run_forward(fn, *args), lt.compile(fn, exact=True)(*args))


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(loops())
def test_gradients_of_generated_loops_are_the_same_with_kernels(everything_pays, case):
    f, args = case

    def loss(a, b):
        return sum((x * x).sum() for x in flat(f(a, b, *args[2:])) if x.dtype.kind == "f")

    fn = lt.trace(lt.grad(loss, (0, 1)), *args[:2])
    with np.errstate(all="ignore"):
        assert_close(lt.run_forward(fn, *args[:2]), lt.compile(fn)(*args[:2]), rtol=1e-3)


def test_a_loop_on_values_of_unknown_types_is_left_to_numpy():
    fn = parse("""
    lambda %0: float64[] {
      %1: float64[] = fori_loop(0, 1000, %0, body=lambda %2: int64*[], %3: float64[] {
        %4 = add(%3, 1.0)
        %5 = mul(%4, 0.5)
        return %5
      })
      return %1
    }""")

    assert loop_kernels.with_loop_kernels(fn, False) is fn


def test_a_loop_over_an_array_of_unknown_type_is_compiled():
    f = lt.parse(
        "lambda %0 { %1 = constant(value=float64(1.0)); %2, %3 = scan(%1, %0, body="
        "lambda %4: float64[], %5 { %6: float64[] = mul(%4, 0.5); %7: float64[] = tanh(%6);"
        " %8: float64[] = mul(%7, %4); return (%8, %4) }, n_carry=1, n_xs=1, length=None,"
        " reverse=False); return %3 }"
    )

    assert_same(f(np.ones(50)), lt.compile(f)(np.ones(50)))

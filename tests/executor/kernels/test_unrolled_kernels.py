"""Chains of operations on few numbers that run as one kernel."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import letir as lt
from letir.ast import LATE_BOUND
from letir.executor.compiled import kernels_setting
from letir.executor.kernels.table_kernels import TableCall
from letir.kernels.unrolled_groups import unrolled_kernel
from letir.ops import load_all
from letir.testing import assert_close, assert_same, programs
from tests.each_sample import in_one_test

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)

load_all()
X = np.random.default_rng(2).normal(size=50)


def autocorrelation(x):
    a = np.zeros(8)
    for i in range(8):
        for n in range(30):
            a[i] += x[n] * x[n + i]
    return a


def pendulum(state, force):
    x, v, angle, speed = state
    for _ in range(10):
        push = (force + 0.05 * speed**2 * np.sin(angle)) / 1.1
        turn = (9.8 * np.sin(angle) - np.cos(angle) * push) / (0.7 - np.cos(angle) ** 2 / 11)
        x, v = x + 0.02 * v, v + 0.02 * push
        angle, speed = angle + 0.02 * speed, speed + 0.02 * turn
    return np.array([x, v, angle, speed]), angle


def trajectory(s):
    out = []
    for _ in range(30):
        x, y, z = s
        s = s + 0.01 * np.array([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])
        out.append(s)
    return np.array(out), s


def recurrent(w, x):
    h = np.zeros(4)
    for t in range(12):
        h = np.tanh(w @ h + x[t])
    return h, (h * h).sum()


def diffused(u):
    for _ in range(6):
        new = u.copy()
        for i in range(1, len(u) - 1):
            new[i] = u[i] + 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1])
        u = new
    return u[1:-1], u


PROGRAMS = {
    "a buffer": (autocorrelation, (X,)),
    "numbers": (pendulum, (np.array([0.0, 0.1, 0.2, 0.0]), 1.5)),
    "rows": (trajectory, (np.array([1.0, 2.0, 3.0]),)),
    "small matrices": (recurrent, (X[:16].reshape(4, 4), X[:48].reshape(12, 4))),
    "writes": (diffused, (X[:20],)),
}


def kernels_of(f, *args) -> int:
    """The number of kernels in the plan of a function."""
    return sum(bind.op.role == "kernel" for bind in lt.compile(lt.trace(f, *args)).plan.binds)


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_unrolled_loop_is_one_kernel(name):
    f, args = PROGRAMS[name]
    expected, found = f(*args), lt.jit(f)(*args)
    flat, flat_found = (r if type(r) is tuple else (r,) for r in (expected, found))

    assert kernels_of(f, *args) == 1
    for x, y in zip(flat, flat_found, strict=True):
        assert type(x) is type(y)
        np.testing.assert_allclose(y, x, rtol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_agree_with_those_without_kernels(name):
    f, args = PROGRAMS[name]

    def loss(*args):
        result = f(*args)
        return (result[0] if type(result) is tuple else result).sum()

    grad = lt.trace(lt.grad(loss), *args)

    np.testing.assert_allclose(lt.compile(grad)(*args), lt.run_forward(grad, *args), rtol=1e-9)


def test_exact_kernels_compute_the_bits_of_numpy():
    assert_same(autocorrelation(X), lt.jit(autocorrelation, exact=True)(X))
    assert_same(diffused(X[:20]), lt.jit(diffused, exact=True)(X[:20]))


@pytest.mark.parametrize("turn", [np.transpose, np.positive])
def test_exact_results_have_the_memory_order_of_numpy(turn):
    """Later sums add in this order."""

    def f(x):
        y = turn(x)
        for n in range(40):
            y = np.where(y > n, y * 0.5, y + n)
        return y, y.sum()

    x = X[:12].reshape(3, 4)
    for one in (x, x.copy(order="F")):
        expected, found = f(one), lt.jit(f, exact=True)(one)
        assert_same(expected, found)
        assert expected[0].strides == found[0].strides
    assert kernels_of(f, x)


def test_views_of_arguments_stay_views():
    x = X.copy()
    first, _ = lt.jit(lambda x: (x[:3], autocorrelation(x)))(x)

    assert np.shares_memory(first, x)


def test_a_result_does_not_share_memory_with_the_next_call():
    f = lt.jit(diffused)
    first = f(X[:20])[1]
    kept = first.copy()
    f(2 * X[:20])

    assert np.array_equal(kept, first)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_generated_programs_compute_the_same_with_kernels(everything_pays, case):
    fn, args = case
    with np.errstate(all="ignore"):
        expected, found = lt.run_forward(fn, *args), lt.compile(fn)(*args)

    expected, found = (r if type(r) is tuple else (r,) for r in (expected, found))
    for x, y in zip(expected, found, strict=True):
        assert type(x) is type(y)
        assert np.asarray(x).dtype == np.asarray(y).dtype
        np.testing.assert_allclose(y, x, rtol=1e-4, atol=1e-9)  # some are float32 inside


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_generated_programs_compute_the_same_bits_with_exact_kernels(everything_pays, case):
    fn, args = case
    with np.errstate(all="ignore"):
        assert_same(lt.run_forward(fn, *args), lt.compile(fn, exact=True)(*args))


def python_numbers(x, y):
    total = 0.0
    for i in range(12):
        total = total + math.exp(x) * math.sin(y + i) / (x - 2.0) + math.log(y)
    return total


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize(
    "args", [(2.0, 1.0), (1.0, 0.0), (1.0, -1.0), (800.0, 1.0), (1.0, math.inf), (1.0, 3.0)]
)
def test_errors_of_python_are_raised_under_any_errstate(args, silent):
    f = lt.jit(python_numbers)
    f(1.0, 2.0)

    with np.errstate(all="ignore" if silent else "warn"):
        expected, found = outcome(python_numbers, *args), outcome(f, *args)
    assert expected is found or math.isclose(expected, found, rel_tol=1e-13)
    assert kernels_of(python_numbers, 1.0, 2.0) == 1


def outcome(f, *args):
    """The result, or the type of the error."""
    try:
        return f(*args)
    except ArithmeticError as error:
        return type(error)
    except ValueError:
        return ValueError


def test_python_integers_do_not_wrap_around():
    def f(n):
        for _ in range(20):
            n = n * 3 + 1
        return n

    g = lt.jit(f)

    assert [f(1), f(10**15)] == [g(1), g(10**15)]


def test_running_sums_of_a_number_are_an_array_of_one():
    def f(x):
        for n in range(20):
            x = np.sin(x) * x + n
        return np.cumsum(x, axis=0) * 2

    expected, found = f(np.array(0.5)), lt.jit(f)(np.array(0.5))

    assert kernels_of(f, np.array(0.5))
    assert (1,) == expected.shape == found.shape
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_an_array_of_one_boolean_is_written_as_an_element():
    def f(x, y):
        for n in range(40):
            y = y * 0.5 + n
        signs = y > 7
        signs[0] = x[:1]  # NumPy refuses it for arrays of numbers
        return signs

    args = np.array([0.5]), np.arange(4.0)
    assert_same(f(*args), lt.jit(f)(*args))


def test_reductions_and_places_of_small_arrays():
    def f(x, n):
        rows = []
        for i in range(6):
            y = x * i - n
            rows.append([y.max(), y.argmin(), y.mean(), y.sum(), n.sum() + i, np.outer(y, y)[1, 2]])
            x = np.cumsum(y) / 7
        return np.array(rows), x.argmax(), np.full(3, x[0])

    args = np.array([0.5, -1.5, 2.0]), np.arange(3)
    found, expected = lt.jit(f)(*args), f(*args)

    assert kernels_of(f, *args)
    for x, y in zip(expected, found, strict=True):
        assert type(x) is type(y)
        np.testing.assert_allclose(y, x, rtol=1e-12)


def is_table(bind) -> bool:
    return type(bind.op.impl.call) is TableCall


def steps_of_a_pendulum(state, forces):
    for force in forces:
        a, v = state[0], state[1]
        push = force - np.sin(a) - 0.1 * v + np.cos(v) * 0.01
        state = np.stack([a + 0.01 * v, v + 0.01 * push])
    return state


def test_the_steps_of_a_long_loop_share_a_kernel():
    """They differ in the row that they read; their number does not limit them."""
    state, forces = np.array([1.0, 0.0]), np.linspace(0, 1, 1000)
    found = lt.compile(lt.trace(steps_of_a_pendulum, state, forces))
    kernels = [bind for bind in found.plan.binds if bind.op.name == "kernel"]

    assert len(kernels) > 10
    assert len({id(bind.op) for bind in kernels}) <= 3
    assert len(found.plan.binds) == sum(b.op.name in ("kernel", "index") for b in found.plan.binds)
    assert_close(steps_of_a_pendulum(state, forces), found(state, forces), rtol=1e-9)


def test_the_gradient_of_a_long_loop_is_a_table():
    """Its steps have too many residuals for few kernels that they share."""
    gradient = lt.value_and_grad(lambda s, f: np.sum(steps_of_a_pendulum(s, f)), argnums=(0, 1))
    args = np.array([1.0, 0.0]), np.linspace(0, 1, 300)
    program = lt.trace(gradient, *args)
    found = lt.compile(program)

    assert [True] == [is_table(bind) for bind in found.plan.binds]
    assert_close(lt.run_forward(program, *args), found(*args), rtol=1e-9)


def test_a_long_group_of_small_arrays_is_several_kernels():
    def f(x, y):
        for _ in range(2000):
            x = np.sin(x) * y + 0.5
        return x

    args = X[:4], X[4:8]
    found = lt.compile(lt.trace(f, *args))

    assert {"kernel"} == {bind.op.name for bind in found.plan.binds}
    assert_close(f(*args), found(*args), rtol=1e-9)


def test_many_results_are_left_to_a_table():
    """LLVM takes seconds for thousands of stores without a loop."""

    def f(x):
        rows = []
        for _ in range(60):
            x = np.roll(x, 1) * 0.5 + 1
            rows.append(x)
        return np.stack(rows)

    found = lt.compile(lt.trace(f, X[:32]))

    large = [b for b in found.plan.binds if sum(y.type.size for y in b.binders) > 1000]
    assert all(bind.op.name != "kernel" or is_table(bind) for bind in large)
    assert_same(f(X[:32]), found(X[:32]))


def cholesky(a):
    for i in range(len(a)):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] = np.sqrt(a[i, i] - np.dot(a[i, :i], a[i, :i]))
    return a


def test_elements_that_do_not_change_are_copied_by_a_loop():
    a = X[:12] * np.eye(12) ** 0 + 40 * np.eye(12)
    a = a + a.T
    changed, expected = a.copy(), cholesky(a.copy())
    found = lt.jit(cholesky)(changed)

    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(changed, expected, rtol=1e-12)
    kernels = lt.compile(lt.trace(cholesky, a)).kernels
    assert kernels
    for kernel in kernels:
        lines = [line for line in kernel.source.splitlines() if line.startswith("  y")]
        assert len(lines) < a.size
        assert "for " in kernel.source


def test_code_with_many_loads_and_stores_is_left_to_numpy():
    assert unrolled_kernel(lt.trace(lambda x: x * 2.0, np.ones(200))) is not None
    assert unrolled_kernel(lt.trace(lambda x: x * 2.0, np.ones(400))) is None


def test_much_code_that_is_not_repeated_is_a_table():
    """LLVM would take seconds."""

    def rotated(s):
        for p in range(5):
            for q in range(p + 1, 6):
                angle = 0.5 * np.arctan2(2 * s[p, q], s[q, q] - s[p, p])
                turn = np.eye(6)
                turn[p, p] = turn[q, q] = np.cos(angle)
                turn[p, q], turn[q, p] = np.sin(angle), -np.sin(angle)
                s = turn.T @ s @ turn
        return s

    s = np.outer(X[:6], X[6:12]) + np.outer(X[6:12], X[:6])
    found = lt.compile(lt.trace(rotated, s))

    assert [True] == [is_table(bind) for bind in found.plan.binds]
    assert_close(rotated(s), found(s), rtol=1e-11, atol=1e-12)


def layers(w, v, x, y):
    hidden = np.tanh(x @ w)
    error = 2 * (hidden @ v - y)
    return w - x.T @ (error @ v.T * (1 - hidden**2)), v - hidden.T @ error


def descent(x, y, n):
    w = np.zeros(3)
    for _ in range(n):
        w = w - 0.1 * x.T @ (x @ w - y)
    return w


def test_a_kernel_of_many_scalars_that_saves_few_calls_is_not_compiled():
    args = [np.random.default_rng(3).normal(size=n) for n in [(4, 8), (8, 1), (16, 4), (16, 1)]]
    fast = lt.compile(lt.trace(layers, *args))

    assert fast.kernels == ()
    assert_same(layers(*args), fast(*args))


def test_such_a_kernel_is_compiled_if_the_steps_of_a_loop_share_it():
    x, y = np.ones((20, 3)), np.ones(20)
    short, long = (lt.compile(lt.trace(lambda x, y, n=n: descent(x, y, n), x, y)) for n in (2, 40))

    assert short.kernels == ()
    assert len(set(map(str, long.kernels))) == 1


def test_results_keep_the_memory_order_of_numpys():
    def table(x, rng):
        for _ in range(4):  # draws, so that the program is long enough for kernels
            if rng.normal() > 100:
                x = x + 1.0
        mean = np.stack([x * 1.0, x * 1.0]).mean(axis=0)
        return np.asarray(np.outer(mean, np.zeros(3)), order="F")

    def args():
        return np.arange(3.0), np.random.default_rng(6)

    program = lt.trace(table, *args())
    assert lt.compile(program)(*args()).strides == table(*args()).strides == (8, 24)


def test_a_value_in_fortran_order_that_no_result_shows_may_be_the_result_of_a_kernel():
    turned = lt.trace(lambda x: np.stack([x, 2 * x, x + 1]).T * 2.0 + 1.0, np.ones(3))

    assert unrolled_kernel(turned) is not None
    assert unrolled_kernel(turned, keeps_order=True) is None


def test_an_einsum_of_a_transpose_whose_order_shows_is_left_to_numpy():
    def f(x, y):
        table = np.outer(x, y)
        return np.einsum("ij,kj->ik", table.T, table) * 2.0

    fn = lt.trace(f, np.ones(3), np.ones(3))

    assert unrolled_kernel(fn) is not None
    assert unrolled_kernel(fn, keeps_order=True) is None
    assert f(np.ones(3), np.ones(3)).flags.f_contiguous


SUMS = {
    "matmul": lambda a, b: a @ b,
    "dot": lambda a, b: np.dot(a[0], b[0]),
    "sum": lambda a, b: (a * b).sum(axis=0),
    "mean": lambda a, b: a.mean() * b[0, 0],
    "einsum": lambda a, b: np.einsum("i,i->i", a[0], b[0]),
}


@in_one_test
@pytest.mark.parametrize("name", SUMS)
def test_a_sum_of_negative_zeros_is_zero_as_in_numpy(name):
    args = np.full((3, 3), -0.0), np.ones((3, 3))
    kernel = unrolled_kernel(lt.trace(SUMS[name], *args))

    (ufunc,) = LATE_BOUND["ufuncs_of"]([kernel])

    expected = SUMS[name](*args)
    assert np.array_equal(np.signbit(ufunc(*args)), np.signbit(expected))
    assert not np.signbit(expected).any()


def test_integers_join_numbers_of_other_dtypes_in_one_kernel():
    """The rows of the matrix of a rotation."""

    def place(angles):
        pose = np.eye(4)
        for angle in angles:
            c, s = np.cos(angle), np.sin(angle)
            pose = pose @ np.array([[c, -s, 0, 1], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])
        return pose[:3, 3]

    angles = np.linspace(-1.0, 2.0, 24)
    compiled = lt.compile(lt.trace(place, angles))

    assert {"matmul", "stack"}.isdisjoint([bind.op.name for bind in compiled.plan.binds])
    np.testing.assert_allclose(compiled(angles), place(angles), rtol=1e-12)

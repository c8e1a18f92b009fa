"""Kernels on the arrays of a device: simulated by the host, and on CuPy where there is a device."""

from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

import letir as lt
from letir.ast.bodies import all_bodies
from letir.eval.device_functions import device_functions
from letir.executor.compiled import kernels_setting
from letir.executor.default_pipeline import optimize_program
from letir.ops import load_all
from letir.plan.plan import plan_of
from letir.testing import assert_close, programs

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)
from letir.executor.kernels.group_kernels import with_device_kernels
from tests.eval.stand_in import LACKING, ON_HOST, REAL_ONLY, DeviceArray, moved
from tests.eval.test_device import REASON, on_device
from tests.kernels.device.simulated_device import SimulatedModule, simulated_device

load_all()
RNG = np.random.default_rng(5)
X = RNG.normal(size=(150, 200))
ROW = np.linspace(-1, 1, 200)


def several(x, row, s):
    """Several operations, dtypes and broadcast operands, with three results of one shape."""
    shifted = np.where(x > row, x * s + row, -row / 2)
    return np.maximum(shifted, x), (np.abs(shifted) < 1) & (x != 0), shifted.astype("f4") + 1


def broadcast(x, row, s):
    """Operands of one column, of one row and of one element."""
    return (x - x[:, :1]) * (x[:1] + s) / (2 + x[:1, :1] ** 2)


def integers(n, row, s):
    return n // 7 % 5 + (n << 3), np.sign(n) ^ n, n * n


def softmax(x, row, s):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) + row * s


def reductions(x, row, s):
    """Reductions along rows, along columns and of all."""
    y = x * row
    totals = y.sum(axis=1), y.mean(axis=0), y.max(axis=0), y.sum(), (y > s).any()
    return *totals, (y > 0).sum(axis=1), np.sqrt((y * y).mean())


def normalised(x, row, s):
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + s) * row


def functions_of_rows(x, row, s):
    """Functions of rows, which a processor computes for eight rows together."""
    t = np.log1p((x * x).sum(axis=1))
    return x * np.exp(-t)[:, None], t * s, np.sqrt(t).sum()


def chain(x, row, s):
    y = row[:2]
    for _ in range(30):
        y = y + 0.1 * s * np.array([np.sin(y[1]), -y[0]])
    return y


def loss(x, row, s):
    return (np.tanh(x * row) ** 2).mean() * s


def gradient(x, row, s):
    return lt.grad(lambda row: (np.tanh(x * row) ** 2).sum() * s)(row)


POINTS = np.linspace(0.1, 2, 128).reshape(32, 4)
INTEGERS = (X * 100).astype("i4")
FUNCTIONS = [several, broadcast, integers, softmax, reductions, normalised, chain, loss, gradient]
FUNCTIONS.append(functions_of_rows)
LAYOUTS = {
    "rows": X,
    "columns": np.asfortranarray(X),
    "reversed": X[::-1, ::-1],
    "every other": np.repeat(X, 2, axis=1)[:, ::2],
    "one row": X[:1],
    "broadcast": np.broadcast_to(X[0], X.shape),
    "no rows": X[:0],
}


def results_of(found) -> list[np.ndarray]:
    """The results on the host; each is an array of the device."""
    found = found if isinstance(found, tuple) else (found,)
    return [x.get() for x in found]


def assert_as_numpy(f, args, move) -> None:
    """jit computes on the device what NumPy does; sums in another order."""
    expected = f(*args)
    found = results_of(lt.jit(f)(*map(move, args)))
    for a, b in zip(expected if type(expected) is tuple else (expected,), found, strict=True):
        assert np.asarray(a).dtype == b.dtype and np.shape(a) == b.shape
        rtol = 1e-4 if b.dtype == "f4" else 1e-10
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("f", FUNCTIONS)
def test_kernels_run_on_the_device(f):
    with simulated_device():
        assert_as_numpy(f, (INTEGERS if f is integers else X, ROW, 0.5), moved)

        assert SimulatedModule.launches


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("f", [several, normalised])
def test_arrays_of_any_strides_run_on_the_device(f, layout):
    with simulated_device():
        assert_as_numpy(f, (LAYOUTS[layout], ROW, 0.5), moved_as_it_is)


def moved_as_it_is(value):
    """A device array over the same memory, with its strides."""
    return DeviceArray(value) if isinstance(value, np.ndarray) else moved(value)


def test_kernels_that_run_in_threads_on_the_host_are_launched():
    x = np.linspace(1, 2, 1 << 20)
    with simulated_device():
        found = lt.jit(lambda x: (x + 1) / x)(DeviceArray(x))

        assert SimulatedModule.launches
    assert np.array_equal((x + 1) / x, found.get())


@pytest.mark.parametrize("f", [lambda x, row, s: x * 2 + row * s, softmax])
def test_results_have_the_order_of_the_operands(f):
    with simulated_device():
        found = lt.jit(f)(DeviceArray(np.asfortranarray(X)), DeviceArray(ROW), 0.5)

        assert found.flags.f_contiguous


def turned(x, row, s):
    """Points turned by angles: gathers and rows of three numbers, which the host computes item by
    item in one kernel.
    """
    point, angle = x[:, :3], x[:, 3:4] * s
    axis = point / np.sqrt((point * point).sum(axis=1, keepdims=True))
    along = (axis * row[:3]).sum(axis=1, keepdims=True) * (1 - np.cos(angle))
    return row[:3] * np.cos(angle) + np.cross(axis, row[:3]) * np.sin(angle) + axis * along


@pytest.mark.parametrize("make", [lt.jit, lambda f: lt.compile(lt.trace(f, POINTS, ROW, 0.5))])
def test_groups_are_made_for_launches(make):
    """Of few elements too, and with the same program on the host as on the device."""
    f = make(turned)
    with simulated_device() as cupy:
        for _ in range(2):
            cupy.calls.clear()
            SimulatedModule.launches.clear()
            found = f(DeviceArray(POINTS), DeviceArray(ROW), 0.5)

    np.testing.assert_allclose(turned(POINTS, ROW, 0.5), found.get(), rtol=1e-12)
    np.testing.assert_allclose(turned(POINTS, ROW, 0.5), f(POINTS, ROW, 0.5), rtol=1e-12)
    assert len(SimulatedModule.launches) <= 3
    assert {*cupy.calls} <= {"cross", "sin"}


def test_a_compiled_program_draws_from_its_generator_for_the_device():
    """The same numbers as on the host, each call new ones."""

    def noisy(x, rng):
        return x * 2.0 + rng.normal(size=4)

    program = lt.trace(noisy, POINTS, np.random.default_rng(3))
    f, rng, own = lt.compile(program), np.random.default_rng(3), np.random.default_rng(3)
    with simulated_device():
        for _ in range(2):
            found = f(DeviceArray(POINTS), own)

            np.testing.assert_allclose(noisy(POINTS, rng), found.get(), rtol=1e-12)


def test_a_number_on_the_host_is_passed_by_value():
    with simulated_device():
        for s in (0.5, np.float64(0.5), np.array(0.5)):
            assert_as_numpy(several, (X, ROW, s), moved_unless_a_number)


def moved_unless_a_number(value):
    return moved(value) if np.ndim(value) else value


def runge_kutta(x, row, s):
    def step(i, y):
        half = y + 0.05 * np.array([y[1], -np.sin(y[0])])
        return y + 0.1 * s * np.array([half[1], -np.sin(half[0])])

    return lt.fori_loop(0, 100, step, row[:2])


def recurrent(x, row, s):
    def step(h, e):
        h = np.tanh(x[:4, :4] @ h + e * s)
        return h, (h * h).sum()

    return lt.scan(step, row[:4], x[:, :4])


def root(x, row, s):
    a = row[-1] + s
    return lt.while_loop(lambda y: np.abs(y * y - a) > 1e-9, lambda y: y - (y * y - a) / (2 * y), a)


def escape(x, row, s):
    """The steps until a number leaves a disk, counted by a Python integer."""

    def go_on(state):
        return (state[0] < 200) & (state[1] ** 2 + state[2] ** 2 < 4)

    def step(state):
        n, u, v = state
        return n + 1, u * u - v * v + row[110] * s, 2 * u * v + row[150] * s

    n, u, v = lt.while_loop(go_on, step, (0, row[100], row[100]))
    return u + v * n, np.asarray(n) + row[:1]


LOOPS = [runge_kutta, recurrent, root, escape]


@pytest.mark.parametrize("f", LOOPS)
def test_loops_run_on_the_device(f):
    with simulated_device():
        assert_as_numpy(f, (X, ROW, 0.5), moved)

        assert ((1,), (1,)) in SimulatedModule.launches  # one thread


def diffusion(x, row, s):
    """A loop on an array, whose elements the lanes of a warp share: too many for one lane."""

    def step(y, e):
        left, right = np.roll(y, 1), np.roll(y, -1)
        flow = s * (left - 2 * y + right) * np.tanh(e) - 0.1 * np.sin(y * e)
        return y + 0.1 * flow * np.exp(-flow * flow) / (1 + y * y), flow[0]

    return lt.scan(step, row, x)


def largest_product(x, row, s):
    """A loop on an array and on rows of another, with a maximum."""

    def step(c, e):
        d = np.sin(c * e) + np.cos(c - e) * np.exp(-c * c) - np.sqrt(np.abs(c)) / (1 + e * e)
        return np.tanh(d + e * s) * 0.5 + np.sin(d), c.max() * e[0]

    return lt.scan(step, row, x)


@pytest.mark.parametrize("f", [diffusion, largest_product])
def test_loops_on_arrays_run_on_the_device(f):
    with simulated_device():
        assert_as_numpy(f, (X, ROW, 0.5), moved)


def test_complex_products_and_python_numbers_are_left_to_cupy():
    z = X[:64] + 1j * X[64:128]
    with simulated_device():
        assert_as_numpy(lambda z: (z * z + z, abs(z) * 2), (z,), moved)
        found = lt.jit(lambda x, n: (x * n, n * 2 + n // 3))(moved(X), 7)

    np.testing.assert_array_equal(X * 7, found[0].get())
    assert found[1] == 16


def test_errstate_has_no_meaning_on_a_device():
    with simulated_device(), np.errstate(all="raise"):
        found = lt.jit(lambda x: (x + 1) / x)(DeviceArray(np.zeros(20_000)))

        assert np.isinf(found.get()).all()


def run_on_both_sides(program, device, move):
    """(results on the host, results on a device) of a generated program with its kernels."""
    fn, args = program
    binds = [bind for body in all_bodies(fn) for bind in body.binds]
    ops, binders = [b.op for b in binds], [binder for b in binds for binder in b.binders]
    assume(all(bind.attrs.get("sorted", True) for bind in binds))  # in any order otherwise
    avals = [value.type for value in (*fn.params, *binders)]
    is_real = not any(getattr(aval, "dtype", X.dtype).kind == "c" for aval in avals)
    lacking = {*LACKING, *ON_HOST, *([] if is_real else REAL_ONLY)}
    assume(not any(op.random or op.name in lacking for op in ops))
    made = with_device_kernels(optimize_program(fn))
    with np.errstate(all="ignore"):
        expected = plan_of(made).run(list(args))
        with device as cupy:
            found = plan_of(made).run(list(map(move, args)), device_functions(cupy))
    return expected, found


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_programs_compute_on_the_device_what_they_do_on_the_host(program):
    for a, b in zip(*run_on_both_sides(program, simulated_device(), moved), strict=True):
        assert_close(a, b.get() if isinstance(b, DeviceArray) else b)


# ---- with a device ----

needs_device = pytest.mark.skipif(REASON is not None, reason=str(REASON))


@needs_device
@pytest.mark.parametrize("f", [*FUNCTIONS, *LOOPS])
def test_kernels_run_on_cupy(f):
    assert_as_numpy(f, (INTEGERS if f is integers else X, ROW, 0.5), on_device)


@needs_device
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("f", [several, normalised])
def test_arrays_of_any_strides_run_on_cupy(f, layout):
    import cupy

    def move(value):  # with the strides of the operand
        if not isinstance(value, np.ndarray):
            return value
        if layout == "broadcast" and value.ndim == 2:
            return cupy.broadcast_to(cupy.asarray(value[0]), value.shape)
        if layout == "reversed" and value.ndim == 2:
            return cupy.asarray(value[::-1, ::-1].copy())[::-1, ::-1]
        return cupy.asarray(value, order="A")

    assert_as_numpy(f, (LAYOUTS[layout], ROW, 0.5), move)


@needs_device
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_programs_compute_on_cupy_what_they_do_on_the_host(program):
    import cupy

    for a, b in zip(*run_on_both_sides(program, nullcontext(cupy), on_device), strict=True):
        assert_close(a, b)

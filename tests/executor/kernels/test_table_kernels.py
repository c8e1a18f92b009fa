"""Long chains of different operations on small arrays run as tables of instructions."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import letir as lt
from letir.executor.compiled import kernels_setting
from letir.executor.kernels import table_kernels
from letir.executor.kernels.table_kernels import TableCall
from letir.testing import assert_close, assert_same
from tests.executor.kernels import test_generated_programs as generated

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)

RNG = np.random.default_rng(3)
N = 12
SQUARE = RNG.normal(size=(N, N)) + 4 * N * np.eye(N)
FEW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


def lu(a):
    for i in range(len(a)):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, len(a)):
            a[i, j] -= a[i, :i] @ a[:i, j]
    return a


def gram_schmidt(a):
    q, r = np.zeros_like(a), np.zeros((a.shape[1], a.shape[1]))
    for k in range(a.shape[1]):
        r[k, k] = np.sqrt(a[:, k] @ a[:, k])
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, a.shape[1]):
            r[k, j] = q[:, k] @ a[:, j]
            a[:, j] -= q[:, k] * r[k, j]
    return q, r


def durbin(a):
    """The recursion of Levinson and Durbin, with reversed parts and numbers."""
    r, y = a[0] / 100.0, np.empty(len(a))
    alpha, beta, y[0] = -r[0], 1.0, -r[0]
    for k in range(1, len(a)):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.flip(r[:k]) @ y[:k]) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y


def overlapping(a):
    """Reads and writes of overlapping parts, of which NumPy reads all before it writes."""
    for i in range(1, len(a)):
        a[i, 1:] = a[i - 1, :-1] * 0.5 + a[i, 1:]
        a[1:, i] = a[:-1, i]
        a[i] = a[i, ::-1]
        row = a[i, 2:5] / 3.0
        a[i - 1, 1:4] = row[:3]
        a[i - 1, 0] = row[1]
        a[:, i] = np.maximum(a[:, i], a[i].sum() / 9.0) + np.sqrt(np.abs(a @ a[i]))
    return a, a[1:3], a[0, 0]


def tables(fast) -> list[TableCall]:
    """The tables of an executor's plans."""
    plans = fast.debug_state().plans
    calls = [getattr(b.op.impl, "call", None) for plan in plans for b in plan.plan.binds]
    return [call for call in calls if type(call) is TableCall]


@pytest.mark.parametrize("f", [lu, gram_schmidt, durbin, overlapping])
@pytest.mark.parametrize("order", ["C", "F"])
def test_results_and_written_arguments_are_those_of_numpy(f, order):
    fast, ours, own = lt.jit(f), SQUARE.copy(order), SQUARE.copy(order)

    lt.testing.assert_close(f(own), fast(ours))

    lt.testing.assert_close(own, ours)
    assert tables(fast) or order == "F"


def test_results_have_the_memory_order_of_numpy():
    def scaled(a):
        b = a * 2.0
        for i in range(1, len(a)):
            for j in range(1, len(a)):
                b[i, j] += b[i - 1, j] * a[i, j - 1]
        return b, b + a, b @ a

    for order in "CF":
        x, fast = SQUARE.copy(order), lt.jit(scaled)
        assert [y.strides for y in scaled(x)] == [y.strides for y in fast(x)]
        assert tables(fast)


def test_a_factorisation_is_one_kernel():
    fast = lt.jit(lu)
    fast(SQUARE.copy())

    (plan,) = fast.debug_state().plans
    assert [bind.op.name for bind in plan.plan.binds] == ["kernel", "write_back"]
    assert plan.kernels[0].source.startswith("kernel letir kernel of a table of copy, add, sub")


def test_programs_of_the_same_operations_share_the_code():
    small, large = lt.jit(lu), lt.jit(lu)
    small(SQUARE[1:, 1:].copy()), large(SQUARE.copy())

    assert tables(small)[0].ufunc is tables(large)[0].ufunc


@pytest.mark.parametrize("steps", [60, 200])
def test_the_gradient_of_a_long_loop_is_one_table(steps):
    def pendulum(state, forces):
        for force in forces[:steps]:
            angle, speed, place = state[0], state[1], state[2]
            pull = (force - np.sin(angle) * speed**2) / (1.1 + np.cos(angle) ** 2)
            state = np.stack([angle + 0.1 * speed, speed + 0.1 * pull, place * 0.9 + angle])
        return (state * state).sum()

    fast, args = (
        lt.jit(lt.value_and_grad(pendulum, (0, 1))),
        (RNG.normal(size=3), RNG.normal(size=200)),
    )
    program = lt.trace(lt.value_and_grad(pendulum, (0, 1)), *args)

    lt.testing.assert_close(lt.run_forward(program, *args), fast(*args), rtol=1e-10)
    assert len(tables(fast)) == (steps > 100)


def test_the_gradient_of_a_recurrent_network_joins_its_steps_in_one_table():
    """Products that are added over the steps become products of stacks of up to 67 vectors."""

    def network(w, u, b, xs):
        state = total = b * 0
        for x in xs:
            state = np.tanh(np.dot(w, x) + np.dot(u, state) + b)
            total = total + state
        return total.sum()

    shapes = (33, 33), (33, 33), 33, (70, 33)
    args = [RNG.normal(scale=0.1, size=shape) for shape in shapes]
    gradient = lt.value_and_grad(network, (0, 1, 2, 3))
    fast, program = lt.jit(gradient), lt.trace(gradient, *args)

    lt.testing.assert_close(lt.run_forward(program, *args), fast(*args), rtol=1e-10)
    assert [bind.op.name for bind in fast.debug_state().plans[0].plan.binds] == ["kernel"]


def test_a_table_with_more_than_a_megabyte_of_memory(tables_pay):
    def products_of_all(x):
        values = [x]
        for _ in range(200):
            values.append(values[-1] * 1.001 + 0.5)
        return sum(a * b for a, b in zip(values, values[::-1], strict=True))

    x = RNG.normal(size=1_000)
    fast = lt.jit(products_of_all)

    lt.testing.assert_close(products_of_all(x), fast(x), rtol=1e-12)
    (table,) = tables(fast)
    assert table.columns * 8 > 1 << 20


def test_a_chain_longer_than_a_table_may_be_is_computed_by_numpy(tables_pay, monkeypatch):
    monkeypatch.setattr(table_kernels, "MAX_ROWS", 100)
    fast = lt.jit(gram_schmidt)

    for found, expected in zip(fast(SQUARE.copy()), gram_schmidt(SQUARE.copy()), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert not tables(fast)


def test_exact_tables_have_the_bits_of_numpy():
    def sweep(a):
        for i in range(1, len(a) - 1):
            a[i, 1:-1] += a[i - 1, :-2] + a[i + 1, 2:]
            for j in range(1, len(a) - 1):
                a[i, j] = (a[i, j] + a[i, j - 1]) / 9.0
        return a

    fast = lt.jit(sweep, exact=True)

    assert_same(sweep(SQUARE.copy()), fast(SQUARE.copy()))
    assert tables(fast)


def test_a_floating_point_error_warns_at_the_line_of_the_user():
    singular, fast = np.ones((N, N)), lt.jit(lu)
    fast(SQUARE.copy())

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fast(singular.copy())
    with np.errstate(all="ignore"):
        assert_same(lu(singular.copy()), found)

    assert {w.filename for w in caught} == {__file__}
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        fast(singular.copy())


@FEW
@given(data=st.data(), exact=st.booleans(), law=st.sampled_from(generated.LAWS))
def test_generated_programs_compute_the_same_with_tables(tables_pay, data, exact, law):
    generated.holds(law, data, exact)


def test_a_loop_that_collects_its_steps_in_a_list_is_one_table():
    def smoothed(y):
        x, result = 0.0, []
        for value in y:
            x = 0.9 * x + 0.1 * value
            result.append(x)
        return np.array(result)

    y = np.random.default_rng(0).normal(size=400)
    compiled = lt.compile(lt.trace(smoothed, y))

    (bind,) = compiled.plan.binds
    assert type(bind.op.impl.call) is TableCall
    assert_close(smoothed(y), compiled(y), rtol=1e-12)

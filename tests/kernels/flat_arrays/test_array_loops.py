"""Loops on small arrays run as kernels that have the loop and the arrays inside."""

import numpy as np
import optree
import pytest

import letir as lt
from letir.ast.terms import Lambda, Ret
from letir.executor.compiled import kernels_setting
from letir.kernels.flat_arrays.array_loops import array_loop
from letir.kernels.interpreter import run_kernel
from letir.testing import assert_close

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)

RNG = np.random.default_rng(5)
N, STEPS = 12, 150
W, V, H = RNG.normal(size=(3, N, N)) / N
XS = RNG.normal(size=(STEPS, N))


def recurrent(w, h, xs):
    def step(h, x):
        h = np.tanh(w @ h + x)
        return h, (h, np.sum(h * h))

    return lt.scan(step, h, xs)


def products(w, v, h, xs):
    """Products of matrices and vectors in all orders of memory."""

    def step(carry, x):
        h, g = carry
        y = np.dot(x, w) + w.T @ x + np.dot(v, x) @ h
        g = w @ g @ v.T * 0.5 + np.outer(x, y) * 0.1
        return (np.tanh(y) + h * 0.5, np.tanh(g)), np.dot(x, y)

    (h, g), rows = lt.scan(step, (h, w), xs)
    return h, g, rows


def reductions(w, h, xs):
    def step(carry, x):
        h, w = carry
        y = w * x + h[:, None]
        z = y.max(axis=1) + y.mean(axis=0) - y.min() + np.sum(y > 0)
        z = z - z.mean()
        return (np.sin(0.1 * z), np.where(y > z, 0.5 * y, -0.5 * y)), (z[2], y[1:3])

    (h, w), rows = lt.scan(step, (h, w), xs)
    return h, w, rows


def moved(h, xs):
    """Views, joins and exchanged carried values, from the last element to the first."""

    def step(carry, x):
        a, b = carry
        both = np.stack([a, b * 0.5, x])
        ends = np.concatenate([x[8:], a[:8]])
        turned = both.T.reshape(3, N)
        return (b + turned[1], a), (np.roll(ends, 3), both[::-1], x[1::2])

    return lt.scan(step, (h, h * 2), xs, reverse=True)


def counted(w, h):
    return lt.fori_loop(3, 200, lambda i, h: np.cos(w @ h) + 0.01 * i, h)


def whole_numbers(xs):
    def step(total, x):
        total = total + x * x
        return total, (np.bitwise_and(total, 7), total > x)

    return lt.scan(step, np.zeros(N, np.int32), xs)


GATES = RNG.normal(size=(N, 2 * N)) / N


def gated(h, xs):
    """A layer with constant weights, a composite, and slices of a product as operands."""

    def step(h, x):
        gates = h @ GATES + x
        keep = np.tanh(gates[:, :N])
        h = keep * h + np.where(keep > 0, 1 - keep, lt.nn.sigmoid(gates[:, N:]))
        return h, h[0]

    return lt.scan(step, h, xs)


CASES = {
    "gated": (gated, (np.zeros((4, N)), RNG.normal(size=(50, 4, 2 * N)))),
    "recurrent": (recurrent, (W, np.zeros(N), XS)),
    "float32": (recurrent, tuple([a.astype("f4") for a in (W, np.zeros(N), XS)])),
    "products": (products, (W, V, np.ones(N), XS)),
    "reductions": (reductions, (W, np.ones(N), XS)),
    "moved": (moved, (np.ones(N), XS)),
    "counted": (counted, (W, np.ones(N))),
    "integers": (whole_numbers, ((100 * XS).astype("i4"),)),
}


def plan_of_kernels(program: Lambda) -> list[str]:
    return [bind.op.name for bind in lt.compile(program).plan.binds]


@pytest.mark.parametrize("name", CASES)
def test_a_loop_on_arrays_is_a_kernel_with_the_results_of_numpy(name):
    f, args = CASES[name]
    program = lt.trace(f, *args)

    assert "kernel" in plan_of_kernels(program)
    assert "scan" not in plan_of_kernels(program)
    assert "fori_loop" not in plan_of_kernels(program)
    assert_close(lt.run_forward(program, *args), lt.compile(program)(*args))


@pytest.mark.parametrize("name", ["recurrent", "products", "moved", "gated"])
def test_the_gradient_of_a_loop_is_a_kernel_too(name):
    f, args = CASES[name]

    def loss(*args):
        return sum(np.sum(x * x) for x in optree.tree_leaves(f(*args)))

    program = lt.trace(lt.value_and_grad(loss, argnums=tuple(range(len(args)))), *args)

    assert_close(lt.run_forward(program, *args), lt.compile(program)(*args))
    if name == "recurrent":
        assert "scan" not in plan_of_kernels(program)


def until(program: Lambda, n: int, results: tuple) -> Lambda:
    """The first ``n`` binds of a program, with other results."""
    return Lambda(program.params, program.binds[:n], Ret(results))


@pytest.mark.parametrize("name", ["recurrent", "products", "moved"])
def test_the_kernel_means_what_the_interpreter_computes(name):
    f, args = CASES[name]
    args = [x[:20] if len(x) == STEPS else x for x in args]
    program = lt.trace(f, *args)
    (loop,) = [bind for bind in program.binds if bind.op.bodies is not None]
    made = array_loop(loop)
    assert made is not None
    values = lt.run_forward(until(program, program.binds.index(loop), made.operands), *args)
    given = [np.ascontiguousarray(x).reshape(-1) for x in values]
    given += [np.empty(n, dtype) for n, dtype in made.scratch]
    outputs = [np.empty(b.type.shape, b.type.dtype) for b in loop.binders]
    arrays = [x.reshape(1, -1) for x in (*given, *outputs)]
    run_kernel(
        made.kernel,
        *arrays,
        calls=1,
        **{a.extents[1]: x.shape[1] for a, x in zip(made.kernel.arrays, arrays, strict=True)},
    )

    whole = until(program, program.binds.index(loop) + 1, loop.binders)
    expected = lt.run_forward(whole, *args)
    assert_close(tuple(expected), tuple(outputs))


def test_floating_point_errors_equal_numpys():
    def f(w, h):
        return lt.scan(lambda h, x: (w @ h / x, h), h, XS)

    fast = lt.jit(f)
    with np.errstate(all="ignore"):
        fast(W, np.ones(N))
    with np.errstate(over="raise"), pytest.raises(FloatingPointError, match="overflow"):
        fast(W * 1e300, np.ones(N))


def test_a_value_that_no_step_changes_is_not_carried():
    def f(w, h, c, xs):
        def step(s, x):
            return (np.tanh(w @ s[0] + s[1]), s[1]), s[0] * x

        (h, c), rows = lt.scan(step, (h, c), xs)
        return h, c, rows

    args = W, np.ones(N), np.full(N, 0.1), XS
    program = lt.trace(f, *args)

    assert "scan" not in plan_of_kernels(program)
    assert_close(lt.run_forward(program, *args), lt.compile(program)(*args))


def test_large_products_are_left_to_numpy():
    w, xs = np.eye(200), np.ones((100, 200, 200))

    def f(w, h, xs):
        return lt.scan(lambda h, x: (np.tanh(w @ h), x[0]), h, xs)

    program = lt.trace(f, w, w, xs)

    assert "scan" in plan_of_kernels(program)


@pytest.mark.parametrize("zeros", [[0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0]])
def test_constant_arrays_keep_the_signs_of_their_zeros(zeros):
    constant = np.array(zeros * (N // 2))

    def f(h, large):
        def step(i, carry):
            h, large = carry
            return h * 0.5 + constant, large * 0.5 + h.sum()

        return lt.fori_loop(0, 2000, step, (h, large))

    args = np.full(N, -0.0), np.ones(3000)  # too many elements for a kernel of numbers alone
    for x, y in zip(f(*args), lt.jit(f)(*args), strict=True):
        assert np.array_equal(np.signbit(x), np.signbit(y))

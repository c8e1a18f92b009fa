"""while_loop and fori_loop, compared with Python's loops."""

import warnings

import numpy as np
import pytest

import letir as lt
from letir.errors import LetirError
from letir.eval.evaluator import run_flat
from letir.testing import assert_close, check_grads
from tests.each_sample import in_one_test

X, W = np.linspace(0.2, 0.9, 3), np.arange(9.0).reshape(3, 3) / 10
COUNTS = [0, 1, 2, 5]


def layer(i, x, w):
    return np.tanh(w @ x) + 0.1 * i * x


def plain(x, w, n):
    for i in range(n):
        x = layer(i, x, w)
    return x


def counted(x, w, n):
    return lt.fori_loop(0, n, lambda i, x: layer(i, x, w), x)


def asked(x, w, n):
    return lt.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, layer(s[0], s[1], w)), (0, x))[1]


def checkpointed(x, w, n):
    return lt.fori_loop(0, n, lambda i, x: layer(i, x, w), x, checkpoint_every=2)


def checkpointed_asked(x, w, n):
    step = lambda s: (s[0] + 1, layer(s[0], s[1], w))  # noqa: E731
    return lt.while_loop(lambda s: s[0] < n, step, (0, x), checkpoint_every=2)[1]


LOOPS = {
    "counted": counted,
    "asked": asked,
    "checkpointed": checkpointed,
    "checkpointed, asked": checkpointed_asked,
}
every_loop = pytest.mark.parametrize("f", LOOPS.values(), ids=LOOPS)


def squared(f, n):
    return lambda x, w: (f(x, w, n) ** 2).sum()


@in_one_test
@every_loop
@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("as_number", [int, np.int64], ids=["constant", "dynamic"])
def test_values_and_gradients_agree_with_a_python_loop(f, n, as_number):
    assert_close(plain(X, W, n), f(X, W, as_number(n)))
    expected = lt.grad(squared(plain, n), argnums=(0, 1))(X, W)
    assert_close(expected, lt.grad(squared(f, as_number(n)), argnums=(0, 1))(X, W))
    along = ((X, W), (X + 1, W - 1))
    assert_close(lt.jvp(squared(plain, n), *along), lt.jvp(squared(f, as_number(n)), *along))


@every_loop
@pytest.mark.parametrize("as_number", [int, np.int64], ids=["constant", "dynamic"])
def test_second_derivatives_agree_with_a_python_loop(f, as_number):
    n = as_number(3)
    expected = lt.hessian(squared(plain, 3))(X, W)

    assert_close(expected, lt.hessian(squared(f, n))(X, W))
    assert_close(expected, lt.jacfwd(lt.grad(squared(f, n)))(X, W))
    assert_close(expected, lt.jacrev(lt.grad(squared(f, n)))(X, W))
    check_grads(lambda x, w: f(x, w, n), (X, W), order=2)


@every_loop
def test_one_program_runs_any_number_of_iterations(f):
    gradient = lt.trace(lambda x, w, n: lt.grad(squared(f, n))(x, w), X, W, np.int64(3))

    for n in COUNTS:
        assert_close(lt.grad(squared(plain, n))(X, W), gradient(X, W, np.int64(n)))
    assert lt.parse(lt.dumps(gradient)) == lt.check(gradient)


def test_the_size_of_the_program_does_not_depend_on_the_trip_count():
    def lines(n):
        return lt.dumps(lt.trace(lt.grad(squared(counted, n)), X, W, abstract=True)).count("\n")

    assert lines(100_000) == lines(10)


@pytest.mark.parametrize("n", [10_000, 100_000])
def test_a_loop_with_a_large_trip_count_is_traced_once_and_runs(n):
    f = lt.trace(lambda x: lt.fori_loop(0, n, lambda i, x: x + 1.0, x), 0.5, abstract=True)

    assert len(f) == 1
    assert run_flat(f, [0.5]) == (n + 0.5,)


@pytest.mark.parametrize("bounds", [(3, 3), (5, 3), (-2, 1)])
def test_bounds_of_a_fori_loop_mean_the_same_as_in_range(bounds):
    def numbers(lower, upper):
        return lt.fori_loop(lower, upper, lambda i, s: (s[0] * 10 + i, s[1] + 1), (0, 0))

    total = (0, 0)
    for i in range(*bounds):
        total = (total[0] * 10 + i, total[1] + 1)
    assert total == numbers(*bounds) == numbers(*map(np.int64, bounds))
    assert total == numbers(*map(np.int8, bounds))


def until(x):
    return lt.while_loop(
        lambda s: s[0] > 1.0, lambda s: (s[0] * 0.5, s[1] * s[0] + np.log(s[0])), (x, x * x)
    )[1]


def plain_until(x):
    y = x * x
    while x > 1.0:
        x, y = x * 0.5, y * x + np.log(x)
    return y


@pytest.mark.parametrize("x", [0.5, 1.5, 9.0, 70.0])
def test_a_loop_until_a_test_fails_is_differentiated(x):
    assert_close(plain_until(x), until(x))
    assert_close(lt.grad(plain_until)(x), lt.grad(until)(x))
    assert_close(lt.grad(lt.grad(plain_until))(x), lt.grad(lt.grad(until))(x))


def test_each_example_of_a_batch_has_its_own_trip_count():
    xs = np.array([0.5, 1.5, 3.0, 9.0, 70.0])
    first = np.array([lt.grad(plain_until)(x) for x in xs])
    second = np.array([lt.grad(lt.grad(plain_until))(x) for x in xs])

    with warnings.catch_warnings(action="error"):
        assert_close(np.array(list(map(plain_until, xs))), lt.vmap(until)(xs))
        assert_close(first, lt.vmap(lt.grad(until))(xs))
        assert_close(first, lt.grad(lambda xs: lt.vmap(until)(xs).sum())(xs))
        assert_close(second, lt.vmap(lt.grad(lt.grad(until)))(xs))
        assert_close(second, lt.grad(lambda xs: lt.vmap(lt.grad(until))(xs).sum())(xs))
        table = np.stack([xs, xs * 2])
        expected = np.array([[lt.grad(plain_until)(x) for x in row] for row in table])
        assert_close(expected, lt.vmap(lt.vmap(lt.grad(until)))(table))


@every_loop
@pytest.mark.parametrize("axes", [(0, None, 0), (None, 0, 0), (0, 0, None)])
def test_a_batched_loop_agrees_with_a_loop_over_examples(f, axes):
    given = (np.stack([X, X * 2, X - 1]), np.stack([W, W.T, W - 0.3]), np.array([0, 2, 3]))
    args = tuple([x if axis == 0 else x[1] for x, axis in zip(given, axes, strict=True)])
    picked = [[x[k] if a == 0 else x for x, a in zip(args, axes, strict=True)] for k in range(3)]

    assert_close(np.stack([plain(*one) for one in picked]), lt.vmap(f, axes)(*args))
    gradient = lt.vmap(lambda x, w, n: lt.grad(squared(f, n))(x, w), axes)
    expected = [lt.grad(squared(plain, int(n)))(x, w) for x, w, n in picked]
    assert_close(np.stack(expected), gradient(*args))


# ---- nesting ----


def inner(x, n):
    return lt.fori_loop(0, n, lambda j, y: np.sin(y) * 1.3 + j * 0.1, x)


def nested(x, n):
    def body(s):
        i, y = s
        return i + 1, lt.cond(i % 2 == 0, lambda y: inner(y, i), lambda y: y * y * 0.5, y)

    return lt.while_loop(lambda s: s[0] < n, body, (0, x))[1]


def plain_nested(x, n):
    for i in range(n):
        if i % 2 == 0:
            for j in range(i):
                x = np.sin(x) * 1.3 + j * 0.1
        else:
            x = x * x * 0.5
    return x


@pytest.mark.parametrize("n", [0, 1, 5])
def test_loops_and_choices_nest(n):
    x, count = np.float64(0.7), np.int64(n)
    assert_close(plain_nested(x, n), nested(x, count))
    assert_close(lt.grad(lambda x: plain_nested(x, n))(x), lt.grad(nested)(x, count))
    second = lt.grad(lt.grad(lambda x: plain_nested(x, n)))(x)
    assert_close(second, lt.grad(lt.grad(nested))(x, count))


def test_a_batch_of_nested_loops():
    xs, counts = np.array([0.3, 0.5, 0.9]), np.array([1, 4, 5])
    pairs = zip(xs, counts.tolist(), strict=True)
    expected = [lt.grad(lambda x, n=n: plain_nested(x, n))(x) for x, n in pairs]

    assert_close(np.array(expected), lt.vmap(lt.grad(nested))(xs, counts))


def test_a_loop_inside_a_scan_may_have_a_different_trip_count_in_each_step():
    def f(x):
        return lt.scan(lambda c, n: (inner(c, n), c), x, np.array([2, 0, 3]))[1].sum()

    def expected(x):
        total = 0.0
        for n in (2, 0, 3):
            total, x = total + x, plain_inner(x, n)
        return total

    def plain_inner(x, n):
        for j in range(n):
            x = np.sin(x) * 1.3 + j * 0.1
        return x

    assert_close(lt.grad(expected)(0.4), lt.grad(f)(0.4))
    assert_close(lt.grad(lt.grad(expected))(0.4), lt.grad(lt.grad(f))(0.4))


def test_loops_nest_fifty_deep():
    def deep(x, depth):
        return x * 0.9 if depth == 0 else lt.fori_loop(0, 1, lambda i, x: deep(x, depth - 1), x)

    assert_close(0.9, lt.grad(lambda x: deep(x, 50))(0.5))


def test_gradients_are_taken_inside_a_body():
    def descend(x):
        return lt.fori_loop(0, 20, lambda i, x: x - 0.1 * lt.grad(lambda x: (x**2).sum())(x), x)

    assert_close(X * 0.8**20, descend(X))
    assert_close(np.full(3, 0.8**20), lt.grad(lambda x: descend(x).sum())(X))


# ---- D1: what requires grad ----


def test_integers_and_values_independent_of_the_arguments_get_no_cotangents_d1():
    def f(x, y):
        def body(i, s):
            return {"n": s["n"] + 1, "x": np.sin(s["x"]), "y": np.cos(s["y"]) * s["n"]}

        return lt.fori_loop(0, 3, body, {"n": 0, "x": x, "y": y})["x"].sum()

    backward = [b for b in lt.trace(lt.grad(f), X, X).binds if b.op.name == "scan"][-1]

    assert backward.attrs["n_carry"] == 1


def test_a_carry_that_depends_on_an_argument_in_a_later_iteration_has_a_gradient_d1():
    def f(x):  # x reaches c in the third iteration
        body = lambda i, s: (x, s[0] * s[0], s[1] * s[1])  # noqa: E731
        return lt.fori_loop(0, 3, body, (0.0, 0.0, 0.0))[2]

    assert_close(4 * 0.5**3, lt.grad(f)(0.5))


def test_gradients_with_respect_to_captured_values_are_summed_over_iterations():
    w = np.float64(1.5)

    assert_close(4 * w**3, lt.grad(lambda w: lt.fori_loop(0, 4, lambda i, x: x * w, 1.0))(w))


# ---- peers ----


@pytest.mark.slow
@pytest.mark.parametrize("n", [0, 1, 4])
def test_gradients_agree_with_jax(n):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy

    def f(x, w):
        def body(i, x):
            y = jnp.tanh(w @ x) + 0.1 * i * x
            return jax.lax.cond(i % 2 == 0, lambda y: y * y, jnp.sin, y)

        return (jax.lax.fori_loop(0, n, body, x) ** 2).sum()

    def g(x, w):
        def body(i, x):
            y = np.tanh(w @ x) + 0.1 * i * x
            return lt.cond(i % 2 == 0, lambda y: y * y, np.sin, y)

        return (lt.fori_loop(0, n, body, x) ** 2).sum()

    assert_close(np.asarray(f(X, W)), g(X, W))
    expected = jax.grad(f, argnums=(0, 1))(X, W)
    for one, other in zip(expected, lt.grad(g, argnums=(0, 1))(X, W), strict=True):
        assert_close(np.asarray(one), other)
    assert_close(np.asarray(jax.hessian(f)(X, W)), lt.hessian(g)(X, W))


# ---- linear maps ----

LINEAR = {
    "counted": lambda x: lt.fori_loop(0, 3, lambda i, c: W @ c * (i + 1), x),
    "dynamic": lambda x: lt.fori_loop(0, np.int64(3), lambda i, c: W @ c * (i + 1), x),
    "tested": lambda x: lt.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, W @ s[1]), (0, x))[
        1
    ],
    "a choice": lambda x: lt.cond(W[0, 1] > 0, lambda x: W @ x, lambda x: x, x),
}


@pytest.mark.parametrize("f", LINEAR.values(), ids=LINEAR)
def test_linear_loops_are_transposed(f):
    (found,) = lt.linear_transpose(f, np.ones(3))(X)

    assert_close(lt.jacfwd(f)(np.ones(3)).T @ X, found)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: lt.fori_loop(0, 3, lambda i, c: np.sin(c), x),
        lambda x: lt.fori_loop(0, 3, lambda i, c: c + x, np.ones(3)),
        lambda x: lt.while_loop(lambda c: c.sum() < 10, lambda c: c * 2, x),
        lambda x: lt.cond(W[0, 1] > 0, lambda x: x, lambda x: x * 0 + 1, x),
    ],
)
def test_the_operation_that_is_not_linear_is_named(f):
    with pytest.raises(LetirError, match=r"linear_transpose: (fori_loop|while_loop|cond)"):
        lt.linear_transpose(f, np.ones(3))


def test_a_loop_is_linearized():
    out, along = lt.linearize(lambda x: counted(x, W, 3), X)

    assert_close(plain(X, W, 3), out)
    assert_close(lt.jvp(lambda x: plain(x, W, 3), (X,), (X + 1,))[1], along(X + 1))


@pytest.mark.parametrize("loop", ["fori", "scan"])
def test_a_loop_that_prints_has_a_gradient(loop, capsys):
    """[C5] Binds of the backward pass that read captured values only do not depend on the print."""

    def step(i, y, w):
        lt.debug.print("step {}", i)
        return y * np.exp(w)

    def f(x, w):
        if loop == "fori":
            return lt.fori_loop(0, 3, lambda i, y: step(i, y, w), x).sum()
        return lt.scan(lambda y, i: (step(i, y, w), None), x, np.arange(3))[0].sum()

    df = lt.grad(f, 1)(np.ones(2), np.zeros(2))

    np.testing.assert_allclose(df, [3.0, 3.0])
    assert "step 0\nstep 1\nstep 2\n" in capsys.readouterr().out

"""Loops that carry integers, booleans and floats: derivatives, also with checkpoints."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close, check_grads
from tests.each_sample import in_one_test

X = np.linspace(0.31, 1.17, 5)


def stacked(x, **keywords):
    def step(carry, x):
        number, flag, total = carry
        carry = number + 1, flag ^ (total > 0.5), np.where(flag, total * x, np.sin(total) + number)
        return carry, (total, number, flag)

    first = 0, np.bool_(False), x.sum()
    (n, flag, total), (ys, ns, flags) = lt.scan(step, first, x, **keywords)
    return total * n + (ys * ns + np.where(flags, x, 2 * x)).sum() + np.where(flag, total, 1.0)


def counted(x, n=5, **keywords):
    def body(i, carry):
        number, flag, total = carry
        row = lt.numpy.asarray(x)[i]
        return number + i, flag ^ (total > 0.5), np.where(flag, total * row, total + number)

    number, flag, total = lt.fori_loop(0, n, body, (0, np.bool_(False), x.sum()), **keywords)
    return total * number + np.where(flag, total, 1.0)


def counted_at_run_time(x, **keywords):
    return counted(x, (x > 0.4).sum(), **keywords)


def repeated(x, **keywords):
    def body(carry):
        _, number, total = carry
        return number < 4, number + 1, np.sin(total) * x.mean() + number

    _, number, total = lt.while_loop(lambda c: c[0], body, (np.bool_(True), 0, x[0]), **keywords)
    return total * number


def integers_only(x, **keywords):
    n, ys = lt.scan(lambda n, _: (n + 1, n * 1.5), 0, length=5, **keywords)
    n += lt.fori_loop(0, 5, lambda i, n: n + i, 0, **keywords)
    n += lt.while_loop(lambda n: n < 5, lambda n: n + 2, 0, **keywords)
    return (x * x * ys).sum() * n


def no_steps(x, **keywords):
    step = lambda c, x: ((c[0] + 1, c[1] * x), c)  # noqa: E731
    (n, total), (ns, _) = lt.scan(step, (0, x.sum()), x[:0], **keywords)
    body = lambda i, c: (c[0] + i, c[1] * 2)  # noqa: E731
    more, total = lt.fori_loop(0, 0, body, (n, total), **keywords)
    body = lambda c: (c[0] + 1, c[1] * 2)  # noqa: E731
    more, total = lt.while_loop(lambda c: c[0] < 0, body, (more, total), **keywords)
    return total * total + more + ns.sum()


LOOPS = [stacked, counted, counted_at_run_time, repeated, integers_only, no_steps]


@in_one_test
@pytest.mark.parametrize("every", [None, 2, 7])
@pytest.mark.parametrize("loop", LOOPS)
def test_values_without_derivatives_may_be_carried_together_with_floats(loop, every):
    f = lambda x: loop(x, checkpoint_every=every)  # noqa: E731
    gradient = lt.grad(f)

    check_grads(f, (X,), order=2 if every == 2 else 1)
    assert_close(lt.grad(loop)(X), gradient(X))
    if every in (None, 2):
        second = lt.jacfwd(gradient)(X)
        assert_close(second, lt.jacrev(gradient)(X))
        assert_close(second, lt.jacfwd(lt.jacfwd(f))(X))
        both = np.stack([X, X[::-1]])
        assert_close(np.stack([gradient(x) for x in both]), lt.vmap(gradient)(both))


@pytest.mark.parametrize("every", [None, 2])
def test_carried_python_numbers_do_not_widen_the_gradient(every):
    x = X.astype(np.float32)

    def f(x):
        body = lambda i, c: (c[0] + i, c[1] * 0.5)  # noqa: E731
        n, scale = lt.fori_loop(0, 5, body, (0, 1.0), checkpoint_every=every)
        return (np.sin(x) * n * scale).sum()

    value, gradient = lt.value_and_grad(f)(x)

    assert np.float32 == f(x).dtype == value.dtype == gradient.dtype
    check_grads(f, (x,))


def test_a_loop_without_carries_may_ask_for_checkpoints():
    def f(x):
        lt.fori_loop(0, 5, lambda i, nothing: nothing, (), checkpoint_every=2)
        return (x * x).sum()

    assert_close(2 * X, lt.grad(f)(X))

"""Derivatives of ``lt.scan``: their programs and their values."""

import numpy as np
import pytest

import letir as lt
from letir.ast.text.parser import parse
from tests.tracing.control_flow.scan_programs import (
    RNG,
    W,
    network,
    operations,
    plain_network,
    scans,
)


def test_the_gradient_program_has_the_same_size_for_any_trip_count():
    args = W, np.zeros(3)
    sizes = {len(lt.grad(lt.trace(network, *args, RNG.normal(size=(n, 3))))) for n in (2, 1000)}

    assert 1 == len(sizes)


def test_the_forward_scan_stacks_only_residuals_that_vary_between_steps():
    def loss(w, h, xs):
        h, _ = lt.scan(lambda h, x: (np.sin(h @ (w.T * 2)) + x, None), h, xs)
        return h.sum()

    forward, backward = scans(lt.grad(lt.trace(loss, W, np.ones(3), np.ones((5, 3))), (0, 1)))

    # h, and h @ w.T * 2 for the sine
    assert [(5, 3), (5, 3)] == [binder.type.shape for binder in forward.binders[1:]]
    assert "transpose" not in operations(backward) or "mul" in operations(backward)
    assert backward.attrs["reverse"] is True


def test_the_cotangent_of_a_loop_invariant_matrix_is_one_product_after_the_loop():
    def loss(w, h, xs):
        return lt.scan(lambda h, x: (np.tanh(h @ w + x), h), h, xs)[1].sum()

    _, backward = scans(lt.grad(lt.trace(loss, W, np.ones(3), np.ones((5, 3)))))

    assert 1 == operations(backward).count("matmul")  # for the cotangent of the carry
    assert 1 == backward.attrs["n_carry"]


def test_the_backward_scan_carries_no_cotangent_of_an_integer_carry():
    def loss(x):
        (_, total), _ = lt.scan(lambda c, x: ((c[0] + 1, c[1] + x * c[0]), None), (0, 0.0), x)
        return total

    _, backward = scans(lt.grad(lt.trace(loss, np.ones(4))))
    assert ["float64[]"] == [str(b.type) for b in backward.binders[:1]]
    np.testing.assert_array_equal(lt.grad(loss)(np.ones(4)), np.arange(4))


def test_a_carry_requires_grad_if_it_does_in_any_step():
    """[D1] y depends on x from the second step on, z from the third."""

    def loss(x):
        def step(carry, _):
            x, y, _ = carry
            return (x, x * 2, y * 3), None

        (_, _, z), _ = lt.scan(step, (x, 1.0, 1.0), length=3)
        return z

    assert 6.0 == lt.grad(loss)(5.0)
    assert (30.0, 6.0) == lt.jvp(loss, (5.0,), (1.0,))


@pytest.mark.parametrize("every", [None, 2])
def test_second_derivatives_agree_with_a_python_loop(every):
    xs, h = RNG.normal(size=(5, 3)), np.full(3, 0.2)

    def loop(w):
        return network(w, h, xs, every=every)

    expected = lt.hessian(lambda w: plain_network(w, h, xs))(W)
    np.testing.assert_allclose(lt.hessian(loop)(W), expected, rtol=1e-11, atol=1e-13)
    _, by_hvp = lt.jvp(lt.grad(loop), (W,), (np.ones((3, 3)),))
    np.testing.assert_allclose(by_hvp, expected.sum((2, 3)), rtol=1e-11, atol=1e-13)
    reverse_over_forward = lt.grad(lambda w: lt.jvp(loop, (w,), (np.ones((3, 3)),))[1])(W)
    np.testing.assert_allclose(reverse_over_forward, by_hvp, rtol=1e-11, atol=1e-13)


def test_a_scan_inside_a_scan_has_gradients():
    xs = RNG.normal(size=(3, 4))

    def loss(w, xs):
        def outer(h, row):
            h, ys = lt.scan(lambda h, x: (np.sin(h * w + x), h * x), h, row, reverse=True)
            return h, ys.sum()

        h, ys = lt.scan(outer, 0.3, xs)
        return h * ys.sum()

    def plain(w, xs):
        h, total = 0.3, 0.0
        for row in xs:
            for x in row[::-1]:
                total = total + h * x
                h = np.sin(h * w + x)
        return h * total

    for found, expected in zip(
        lt.grad(loss, (0, 1))(0.7, xs), lt.grad(plain, (0, 1))(0.7, xs), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(lt.hessian(loss)(0.7, xs), lt.hessian(plain)(0.7, xs), rtol=1e-11)


def test_gradients_of_nested_loops_have_size_linear_in_the_depth():
    def nested(depth):
        def loop(x):
            if not depth:
                return np.sin(x)
            return lt.scan(lambda c, _: (nested(depth - 1)(c), None), x, length=1)[0]

        return loop

    expected = lt.grad(nested(0))(0.5)
    assert expected == pytest.approx(lt.grad(nested(12))(0.5), rel=1e-12)
    assert lt.jvp(nested(12), (0.5,), (1.0,))[1] == pytest.approx(expected, rel=1e-12)


# ---- forward mode ----


def test_values_and_tangents_are_computed_in_one_loop():
    args = W, np.full(3, 0.2), RNG.normal(size=(5, 3))
    fn = lt.trace(lambda *args: lt.jvp(network, args, args), *args)

    (bind,) = scans(fn)
    assert 4 == bind.attrs["n_carry"]


def test_linearize_computes_values_once():
    """The loop of the tangents reads the values that the first loop stacked."""
    args = W, np.full(3, 0.2), RNG.normal(size=(5, 3))

    _, lin = lt.linearize(network, *args)

    (bind,) = scans(lin.program)
    assert "tanh" not in operations(bind)
    _, expected = lt.jvp(network, args, args)
    np.testing.assert_allclose(lin(*args), expected, rtol=1e-12)


def test_forward_mode_of_nested_loops_agrees_with_reverse_mode():
    def outer(c, row):
        c, ys = lt.scan(lambda c, x: (np.sin(c) * x, c * c), c, row)
        return c, ys.sum()

    def f(c, xs):
        c, ys = lt.scan(outer, c, xs)
        return c + (ys * ys).sum()

    xs = RNG.normal(size=(3, 4))
    expected = lt.jacrev(f, (0, 1))(0.4, xs)
    for found, row in zip(lt.jacfwd(f, (0, 1))(0.4, xs), expected, strict=True):
        np.testing.assert_allclose(found, row, rtol=1e-12)
    _, tangent = lt.jvp(f, (0.4, xs), (1.0, xs * 0))
    np.testing.assert_allclose(tangent, expected[0], rtol=1e-12)


@pytest.mark.parametrize("n, is_stacked", [(8, True), (1000, False)])
def test_cotangent_products_are_stacked_only_where_that_saves_memory(n, is_stacked):
    def loss(w, v, xs):
        def step(c, x):
            return np.tanh(c * 0.5 + (x @ w) @ v), None

        return lt.scan(step, 0.1, xs)[0]

    args = np.ones((2, n)) / n, np.ones(n) / n, RNG.normal(size=(4, 2))
    _, backward = scans(lt.grad(lt.trace(loss, *args)))
    assert is_stacked == all(binder.type.shape != (2, n) for binder in backward.binders)

    def plain(w, v, xs):
        c = 0.1
        for x in xs:
            c = np.tanh(c * 0.5 + (x @ w) @ v)
        return c

    np.testing.assert_allclose(lt.grad(loss)(*args), lt.grad(plain)(*args), rtol=1e-11)


def test_a_scan_whose_carries_are_integers_has_zero_gradients():
    def f(xs, start):
        def step(n, x):
            return (n + 1).astype("int64"), np.tanh(n.astype("float64"))

        return lt.scan(step, start.astype("int64"), xs, checkpoint_every=2)[1].sum()

    gradients = lt.grad(f, (0, 1))(np.ones(3), np.float64(2))

    np.testing.assert_array_equal(gradients[0], np.zeros(3))
    assert gradients[1] == 0


def test_a_cotangent_with_a_row_for_each_trip_of_a_while_loop_has_derivatives():
    """The recorded loop stacks an unknown number of rows, and the cotangent has three."""
    stacking = parse(
        """lambda %0: float64[2], %1: int64[] {
  %2: float64[2], %3: int64[], %4: int64[_trips], %5: float64[_trips, 2] = while_scan(
    %0, %1,
    test=lambda %6: float64[2], %7: int64[] { %8: bool[] = less(%7, 3); return %8 },
    body=lambda %9: float64[2], %10: int64[] {
      %11: float64[2] = sin(%9)
      %12: int64[] = add(%10, 1)
      return (%11, %12, %11)
    }, n_carry=2, numbered=False)
  return %5
}"""
    )
    x, ct, v = np.array([0.5, 0.7]), np.arange(6.0).reshape(3, 2), np.array([0.3, -1.1])

    f = lambda x: stacking(x, np.int64(0))  # noqa: E731

    def rows(x):
        return np.stack([np.sin(x), np.sin(np.sin(x)), np.sin(np.sin(np.sin(x)))])

    def pulled(f):
        return lambda x: lt.vjp(f, x)[1](ct)[0]

    def total(f):
        return lambda x: (f(x) * ct).sum()

    np.testing.assert_allclose(lt.vjp(pulled(f), x)[1](v)[0], lt.vjp(pulled(rows), x)[1](v)[0])
    np.testing.assert_allclose(lt.grad(total(f))(x), lt.grad(total(rows))(x))


def test_a_program_for_any_size_is_differentiated_at_one_size():
    def distances(points):
        def step(points, row):
            apart = points * points - row
            return points + 0.1 * apart, (apart * apart).sum(axis=1)

        return lt.scan(step, points, np.ones((5, 4)))[1]

    points = RNG.normal(size=(7, 4))
    f = lt.trace(distances, lt.ShapeDtype(("n", 4), np.float64))

    slope, expected = [lt.grad(lambda x, g=g: (g(x) * 1.0).sum())(points) for g in (f, distances)]
    assert np.array_equal(slope, expected)
    found, expected = [
        lt.jvp(lambda x, g=g: g(x) * 1.0, (points,), (points,))[1] for g in (f, distances)
    ]
    assert np.array_equal(found, expected)

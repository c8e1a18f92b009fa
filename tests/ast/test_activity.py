"""Activity analysis of loop bodies; tests/passes/test_differentiability.py tests whole programs."""

import numpy as np

import letir as lt
from letir.ast.activity import carry_requiring_grad, results_requiring_grad
from letir.ast.bodies import bodies_of

ROW = np.ones(3)


def loop_body(f, init):
    """The body of the first loop that ``f(init)`` records."""
    program = lt.trace(f, init)
    return next(bodies_of(bind)[-1] for bind in program.binds if bind.op.bodies is not None)


def nested(pair):
    """A loop that sends a pair through an inner loop, which keeps its parts apart."""

    def outer(carry, row):
        inner, _ = lt.scan(lambda c, r: ((np.sin(c[0]) * r, c[1] + r), c[1]), carry, row * ROW)
        return inner, inner[0]

    return lt.scan(outer, pair, ROW)


def test_a_carried_value_requires_grad_only_if_its_own_path_does():
    body = loop_body(nested, (1.0, 2.0))

    assert carry_requiring_grad(body, [True, False, False], 2) == [True, False, False]
    assert carry_requiring_grad(body, [False, True, False], 2) == [False, True, False]
    assert carry_requiring_grad(body, [False, False, True], 2) == [True, True, True]
    assert results_requiring_grad(body, [True, False, False]) == [True, False, True]


def test_a_carried_value_that_is_reached_in_a_later_iteration_requires_grad():
    body = loop_body(
        lambda c: lt.fori_loop(0, 4, lambda i, t: (t[0], t[0] * 2.0, t[1] + t[2]), c),
        (1.0, 2.0, 3.0),
    )
    # the iteration number behind the carry
    first = next(i for i, param in enumerate(body.params) if param.type.inexact)
    body = lt.Lambda([*body.params[first:], *body.params[:first]], body.binds, body.ret)

    assert carry_requiring_grad(body, [True, *[False] * 3], 3) == [True, True, True, False]
    assert carry_requiring_grad(body, [False, True, *[False] * 2], 3) == [False, True, True, False]


def test_the_gradient_of_nested_loops_equals_the_gradient_of_unrolled_loops():
    def f(x):
        (a, b), ys = nested((x, 2.0))
        return a + b + ys.sum()

    def unrolled(x):
        a, b, total = x, 2.0, 0.0
        for row in ROW:
            for r in row * ROW:
                a, b = np.sin(a) * r, b + r
            total = total + a
        return a + b + total

    np.testing.assert_allclose(lt.grad(f)(0.7), lt.grad(unrolled)(0.7))

"""custom_jvp: a forward rule of the user, and its transpose."""

import functools

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close, assert_same, check_grads

X = np.array([0.5, -1.5])


@lt.custom_jvp
def scaled(x, y):
    return np.sin(x) * y


@scaled.defjvp
def scaled_rule(primals, tangents):
    (x, y), (s, t) = primals, tangents
    return scaled(x, y), np.cos(x) * s * y + np.sin(x) * t


@lt.custom_jvp
def tenfold(x):
    return np.exp(x)


tenfold.defjvps(lambda t, out, x: 10 * t * out)


def test_both_modes_use_the_users_rule():
    assert_same(np.exp(X), tenfold(X))
    assert_close(10 * np.exp(X), lt.jvp(tenfold, (X,), (np.ones(2),))[1])
    assert_close(10 * np.exp(X), lt.grad(lambda x: tenfold(x).sum())(X))
    assert_close(10 * np.exp(X), lt.linearize(tenfold, X)[1](np.ones(2)))


def test_derivatives_of_every_order_agree_with_differences():
    check_grads(scaled, (X, np.float64(2.0)), order=3)


def test_second_derivatives_use_the_rule():
    """The result that the rule reads is differentiated by the same rule."""
    second = lt.grad(lambda x: lt.grad(lambda x: tenfold(x).sum())(x).sum())(X)

    assert_close(100 * np.exp(X), second)


def test_the_program_contains_the_rule_and_is_differentiated_without_python():
    program = lt.trace(lambda x: scaled(x, 2.0).sum(), X)

    again = lt.parse(lt.dumps(program))

    assert program == again
    assert ["custom_jvp", "sum"] == [bind.op.name for bind in program.binds]
    assert_close(2 * np.cos(X), lt.grad(again)(X))


def test_None_is_a_zero_tangent_in_every_position():
    """[D9]"""

    @lt.custom_jvp
    def f(x, n, y):
        return {"a": x * y, "b": y * 2, "n": n + 1}

    seen = []

    @f.defjvp
    def rule(primals, tangents):
        x, n, y = primals
        seen.append(tangents[1])
        return f(x, n, y), {"a": 5 * tangents[0], "b": None, "n": None}

    by_x, by_y = lt.grad(lambda x, n, y: f(x, n, y)["a"].sum() + f(x, n, y)["b"].sum(), (0, 2))(
        X, np.array([1, 2]), X
    )
    only = lt.jvp(lambda y: f(X, np.array([1, 2]), y), (X,), (X,))[1]

    assert all(tangent is None for tangent in seen)
    assert_same((np.full(2, 5.0), np.zeros(2)), (by_x, by_y))
    assert_same(np.zeros(2), only["a"])


def test_tangents_nest_as_the_arguments():
    @lt.custom_jvp
    def f(p):
        return p["x"] * p["y"][0]

    @f.defjvp
    def rule(primals, tangents):
        (p,), (t,) = primals, tangents
        return f(p), t["x"] * p["y"][0] + p["x"] * t["y"][0]

    check_grads(f, ({"x": X, "y": [X + 1]},))


def test_arguments_that_are_not_differentiated_come_first():
    @functools.partial(lt.custom_jvp, nondiff_argnums=(0, 2))
    def apply(function, x, mode="twice"):
        return 2 * function(x) if mode == "twice" else function(x)

    @apply.defjvp
    def rule(function, mode, primals, tangents):
        assert mode == "twice"
        return apply(function, *primals, mode), 7 * tangents[0]

    assert_close(np.full(2, 7.0), lt.grad(lambda x: apply(np.exp, x).sum())(X))
    assert_close(np.full(2, 7.0), lt.grad(lambda x: apply(np.exp, x=x).sum())(X))


def test_rules_that_call_each_other_are_recorded_for_a_few_orders():
    @lt.custom_jvp
    def sine(x):
        return np.sin(x)

    @lt.custom_jvp
    def cosine(x):
        return np.cos(x)

    sine.defjvp(lambda p, t: (sine(*p), cosine(*p) * t[0]))
    cosine.defjvp(lambda p, t: (cosine(*p), -sine(*p) * t[0]))
    f, expected = sine, [np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin]
    for order in range(4):
        f = lt.grad(f)
        assert_close(expected[order](0.7), f(0.7))


def test_a_rule_that_calls_its_function_on_other_arguments_ends_with_an_error():
    @lt.custom_jvp
    def f(x):
        return np.exp(x)

    f.defjvp(lambda p, t: (f(*p), f(p[0] + 1.0) * t[0] / np.e))
    derivative = f
    for _ in range(4):
        derivative = lt.grad(derivative)
        assert_close(np.exp(0.5), derivative(0.5))

    with pytest.raises(lt.MissingRule, match="for a few orders of derivatives only"):
        lt.grad(derivative)(0.5)


def test_a_rule_may_branch_on_its_primals():
    """[B2]"""

    @lt.custom_jvp
    def f(x):
        return abs(x)

    f.defjvp(lambda p, t: (f(*p), 2 * t[0] if p[0] > 0 else -3 * t[0]))

    assert (2.0, -3.0) == (lt.grad(f)(1.5), lt.grad(f)(-1.5))


def test_a_rule_may_close_over_traced_values_and_the_function_over_constants():
    """[B3]"""

    def f(x, w):
        @lt.custom_jvp
        def g(x):
            return np.exp(x)

        g.defjvp(lambda p, t: (g(*p), g(*p) * t[0] * w))
        return g(x).sum()

    assert_close(3 * np.exp(X), lt.grad(f)(X, 3.0))
    assert_close(np.exp(X).sum(), lt.grad(lambda w: lt.grad(f)(X, w).sum())(3.0))


def test_the_derivative_with_respect_to_a_captured_traced_value_is_an_error():
    def f(x, w):
        @lt.custom_jvp
        def g(x):
            return x * w

        g.defjvp(lambda p, t: (g(*p), t[0] * w))
        return g(x).sum()

    assert_close(np.full(2, 2.0), lt.grad(f)(X, 2.0))
    for by_w in (lambda: lt.grad(f, 1)(X, 2.0), lambda: lt.jvp(f, (X, 2.0), (None, 1.0))):
        with pytest.raises(lt.MissingRule, match=r"over\n  pass the value .*\n.*\n  at .*test_"):
            by_w()


RULES = {
    "not a pair": (lambda p, t: t[0], lt.ShapeError, r"its rule must return \(result, tangent\)"),
    "another shape": (
        lambda p, t: (p[0] * 2, t[0][:1]),
        lt.ShapeError,
        r"gives a tangent of .*\[1\]",
    ),
    "another result": (lambda p, t: (p[0][:1], t[0]), lt.ShapeError, r"gives a result of .*\[1\]"),
    "a complex tangent": (lambda p, t: (p[0], 1j * t[0]), lt.DTypeError, "tangent of complex128"),
    "another nesting": (lambda p, t: (p[0], (t[0],)), lt.LetirError, "must nest like the result"),
    "a square": (lambda p, t: (p[0], t[0] * t[0]), lt.LetirError, "mul is not linear.*\n.*\n  at "),
    "a sum": (lambda p, t: (p[0], t[0] + p[0]), lt.LetirError, "adds a term that does not depend"),
    "a value": (lambda p, t: (p[0], p[0]), lt.LetirError, "the same for all arguments"),
}


@pytest.mark.parametrize(("rule", "error", "message"), RULES.values(), ids=RULES)
def test_a_wrong_rule_is_an_error_that_names_the_function(rule, error, message):
    """[D9]"""

    @lt.custom_jvp
    def named(x):
        return x * 2

    named.defjvp(rule)

    with pytest.raises(error, match=f"custom_jvp named.*{message}"):
        lt.grad(lambda x: named(x).sum())(X)


def test_a_function_without_a_rule_runs_but_is_not_differentiated():
    f = lt.custom_jvp(np.exp)

    assert_same(np.exp(X), f(X))
    with pytest.raises(lt.LetirError, match="custom_jvp exp: it has no rule"):
        lt.grad(lambda x: f(x).sum())(X)


def test_custom_rules_nest_in_each_other():
    @lt.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))

    @lt.custom_vjp
    def outer(x):
        return tenfold(x)

    outer.defvjp(lambda x: (tenfold(x), x), lambda x, ct: (ct * tenfold(x),))

    assert_close(np.clip(10 * np.exp(X), -1, 1), lt.grad(lambda x: tenfold(clipped(x)).sum())(X))
    assert_close(10 * np.ones(2) * np.exp(X), lt.grad(lambda x: clipped(tenfold(x)).sum())(X))
    assert_close(10 * np.exp(X), lt.grad(lambda x: lt.grad(lambda x: outer(x).sum())(x).sum())(X))


def test_vmap_agrees_with_a_loop_over_examples():
    batch = np.stack([X, 2 * X, 3 * X])

    found = lt.vmap(lt.grad(lambda x, y: scaled(x, y).sum()), (0, None))(batch, 2.0)

    assert_close(2 * np.cos(batch), found)


def test_low_precision_is_kept():
    found = lt.grad(lambda x: scaled(x, 2.0).sum())(X.astype(np.float16))

    assert np.float16 == found.dtype


def test_python_numbers_do_not_widen_narrow_arrays():
    x = X.astype(np.float32)
    t = np.ones(2, np.float32)
    derivatives = [
        lt.trace(lambda x: lt.jvp(lambda x: scaled(x, 2.0), (x,), (t,))[1], x),
        lt.trace(lambda x, k: lt.jvp(lambda x: scaled(x, k), (x,), (t,))[1], x, 2.0),
        lt.grad(lt.trace(lambda x, k: scaled(x, k).sum(), x, 2.0)),
        lt.grad(lt.trace(lambda x, k: scaled(x, k).sum(), x, 2.0), (0, 1)),
    ]

    for program in derivatives:
        kinds = [binder.type for bind in program.binds for binder in bind.binders]
        assert {np.dtype("float32")} == {kind.dtype for kind in kinds if kind.shape}
        assert np.float32 == program.ret.args[0].type.dtype
    assert_same((np.cos(x) * 2, np.float64(np.sin(x).sum())), derivatives[-1](x, 2.0))


def test_retyped_programs_hold_retyped_rules():
    program = lt.trace(lambda x: scaled(x, 2.0), X)

    narrow = lt.retype(program, lt.ShapeDtype(2, "float32"))

    assert np.float32 == narrow.ret.args[0].type.dtype
    assert np.float32 == lt.vjp(narrow, X.astype("f4"))[1](X.astype("f4"))[0].dtype
    check_grads(lt.retype(program, lt.ShapeDtype(2, complex)), (X + 1j,))


@pytest.mark.parametrize("function", [np.exp, np.sum, functools.partial(np.sum, axis=0)])
def test_numpy_functions_can_have_custom_rules(function):
    f = lt.custom_jvp(function)
    f.defjvps(lambda t, out, x: 7 * t if out.shape else 7 * t.sum())

    assert_close(np.full(2, 7.0), lt.grad(lambda x: f(x).sum())(X))


def test_defaults_are_primals_too():
    @lt.custom_jvp
    def f(x, n=3.0):
        return x * n

    @f.defjvp
    def rule(primals, tangents):
        x, n = primals
        return f(x, n), 10 * n * tangents[0]

    assert_close(np.full(2, 30.0), lt.grad(lambda x: f(x).sum())(X))

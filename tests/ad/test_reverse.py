"""The reverse transform, in addition to golden programs and the conventions of semantics, section
D.
"""

import numpy as np
import pytest

import letir as lt
from letir.ad.reverse import Reverse
from letir.ast.text.parser import parse
from letir.ast.types import Undef
from letir.eval.computing_emitter import ComputingEmitter
from letir.eval.evaluator import Evaluator

A, B = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])


def first_golden(a, b):
    return (a * b) * a + b


def second_golden(a, b):
    d = b * b + b
    e = (d + a) * a + b
    return d, e


def test_the_first_golden_program_is_reproduced_exactly():
    """[D5]."""
    g = lt.differentiate(lt.trace(first_golden, A, B))

    assert """\
df(%0 vjp of %4, %1 vjp of a*b, %2 a, %3 b, %4 a*b):
  %5, %6 = grad_of[add](%0) { -> (%0, %0) }
  %7, %8 = grad_of[mul](%5) { %9 = mul(%5, %2); %10 = mul(%5, %4) -> (%9, %10) }
  %11 = autograd_add(%1, %7)
  %12, %13 = grad_of[mul](%11) { %14 = mul(%11, %3); %15 = mul(%11, %2) -> (%14, %15) }
  %16 = autograd_add(%8, %12)
  %17 = autograd_add(%6, %13)
  return (%16, %17)
""" == g.df_text()
    assert 2 == len(g.f.ret.args)
    assert (1, (0, 1), (1,), (0, 1), (0, 1)) == (
        g.f_real_outputs,
        g.df_input_captured_inputs,
        g.df_input_captured_outputs,
        g.df_input_vjps,
        g.df_output_vjps,
    )


def test_the_second_golden_program_is_reproduced_exactly():
    """[D5]."""
    g = lt.differentiate(lt.trace(second_golden, A, B), [True, False])

    assert """\
df(%0 vjp of e, %1 vjp of d+a, %2 a, %3 d+a):
  %4, %5 = grad_of[add](%0) { -> (%0, %0) }
  %6, %7 = grad_of[mul](%4) { %8 = mul(%4, %2); %9 = mul(%4, %3) -> (%8, %9) }
  %10 = autograd_add(%1, %6)
  %11, %12 = grad_of[add](%10) { -> (%10, %10) }
  %13 = autograd_add(%7, %12)
  return (%13)
""" == g.df_text()
    assert (2, (0,), (2,), (1, 2), (0,)) == (
        g.f_real_outputs,
        g.df_input_captured_inputs,
        g.df_input_captured_outputs,
        g.df_input_vjps,
        g.df_output_vjps,
    )


def test_the_golden_programs_compute_the_gradients():
    """[D2], [D4]."""
    g = lt.differentiate(lt.trace(first_golden, A, B))
    out, residuals = g.forward(A, B)

    by_a, by_b = g.backward(residuals, np.ones(3))

    np.testing.assert_array_equal(first_golden(A, B), out)
    np.testing.assert_array_equal(2 * A * B, by_a)
    np.testing.assert_array_equal(A * A + 1, by_b)


def test_second_derivatives_flow_through_the_vjps_of_temporaries():
    """[D4], [D11]: differentiating both programs of the pair gives the second derivative."""
    program = lt.trace(lambda a: (np.tanh(a) * a * a).sum(), A)

    def by_pair(a):
        g = lt.differentiate(program)
        _, residuals = g.forward(a)
        return g.backward(residuals, 1.0)[0]

    second = lt.grad(lambda a: lt.grad(program)(a).sum())(A)
    h = 1e-6

    np.testing.assert_allclose((by_pair(A + h) - by_pair(A - h)) / (2 * h), second, rtol=1e-7)


def test_values_that_require_no_grad_are_skipped():
    """[D1]: comparisons, integers and the result of stop_gradient."""
    fn = lt.trace(lambda x: ((x > 0) * x + lt.stop_gradient(x) * x + np.floor(x)).sum(), A)

    df = lt.differentiate(fn).df

    assert not {"greater", "stop_gradient", "floor"} & {
        b.attrs["op"].name for b in df.binds if b.op.name == "grad_of"
    }
    np.testing.assert_array_equal(1 + A, lt.grad(fn)(A))


def test_the_two_vjps_of_a_value_returned_twice_are_added():
    """[D2]."""
    g = lt.differentiate(parse("lambda %0 { %1 = exp(%0); return (%1, %1) }"))

    assert (0, 1) == g.df_input_vjps
    assert "autograd_add" == g.df.binds[0].op.name


def test_an_input_that_is_also_a_result_is_captured_as_the_result():
    """[D4]."""
    g = lt.differentiate(lt.trace(lambda a, b: (a, a * b), A, B))

    assert ((1,), (0,)) == (g.df_input_captured_inputs, g.df_input_captured_outputs)


def test_an_input_that_nothing_uses_has_an_undefined_vjp():
    g = lt.differentiate(lt.trace(lambda a, b: a * a, A, B))
    _, residuals = g.forward(A, B)

    assert Undef is g.df.ret.args[1].value
    np.testing.assert_array_equal(np.zeros(3), g.backward(residuals, np.ones(3))[1])


def test_cotangents_of_an_operand_used_twice_are_added():
    """[D3], [D12]."""
    stacked = lt.trace(lambda a: (np.stack([a, a]) * np.array([[1.0], [10.0]])).sum(), A)

    np.testing.assert_array_equal(2 * A, lt.grad(lambda a: (a * a).sum())(A))
    np.testing.assert_array_equal(np.full(3, 11.0), lt.grad(stacked)(A))


def test_a_constant_function_has_zero_gradient():
    np.testing.assert_array_equal(np.zeros(3), lt.grad(lambda a: 3.0)(A))


def test_the_transform_emits_into_an_executor_as_into_a_builder():
    """[D15]: one transform, which records into a builder or computes at once."""
    fn = lt.trace(first_golden, A, B)
    values = dict(zip(fn.params, (A, B), strict=True))
    Evaluator(
        np, lambda bind, results: values.update(zip(bind.binders, results, strict=True))
    ).call(fn, [A, B])

    reverse = Reverse(ComputingEmitter(), values.__getitem__, {}.get)
    found = reverse.visit(fn.body, set(fn.params), [], lambda ret: [(ret.args[0], np.ones(3))])

    np.testing.assert_array_equal(2 * A * B, found[fn.params[0]])
    np.testing.assert_array_equal(A * A + 1, found[fn.params[1]])


def test_untyped_programs_sum_cotangents_to_the_size_of_the_operand():
    """[D14]."""
    df = lt.grad(
        parse("lambda %0, %1 { %2 = mul(%0, %1); %3 = sum(%2); return %3 }"), argnums=(0, 1)
    )

    for shape in [(3,), (2, 3), (4, 1, 3)]:
        x, y = np.full(shape, 2.0), np.full((3,), 5.0)
        by_x, by_y = df(x, y)
        np.testing.assert_array_equal(np.full(shape, 5.0), by_x)
        np.testing.assert_array_equal(np.full(3, 2.0 * x.size / 3), by_y)


@pytest.mark.parametrize("policy", ["keep_all", "min_bytes"])
def test_rules_that_ask_for_dtypes_take_untyped_programs(policy):
    """The rule of arcsin has another form for complex numbers, the policy keeps what is small."""
    fn = parse("lambda %0 { %1 = arcsin(%0); %2 = mul(%1, %0); return %2 }")
    g, x = lt.differentiate(fn, policy=policy), np.array([0.25, -0.5])

    (found,) = g.backward(g.forward(x)[1], np.ones(2))
    np.testing.assert_allclose(np.arcsin(x) + x / np.sqrt(1 - x * x), found, rtol=1e-14)


def test_a_gradient_of_symbolic_sizes_replays_at_other_sizes():
    """[D14], [B10]."""

    def f(x, w):
        return (np.tanh(x @ w) - x.mean(axis=0, keepdims=True)).sum()

    df = lt.grad(lt.trace(f, lt.ShapeDtype(("n", 3)), lt.ShapeDtype((3, 3))), argnums=(0, 1))

    lt.check(df)
    for n in (1, 2, 7):
        x, w = np.linspace(0, 1, 3 * n).reshape(n, 3), np.eye(3)
        for expected, found in zip(lt.grad(f, (0, 1))(x, w), df(x, w), strict=True):
            np.testing.assert_allclose(expected, found, rtol=1e-13)


def test_a_missing_rule_names_the_operation_and_the_users_line():
    half = lt.opaque(lambda x: x / 2, lambda x: x, name="tests.half")

    with pytest.raises(
        lt.MissingRule, match=r"tests\.half has no vjp rule.*\n.*\n  at .*test_reverse\.py:\d+"
    ):
        lt.grad(lambda x: half(x).sum())(A)


def test_a_missing_rule_of_an_operand_that_requires_no_grad_is_no_error():
    """The rule of another operand of the same bind, in the raw form, which holds all rules."""
    unknown = lt.extend.todo("no rule for the second operand")
    scaled = lt.primitive(
        "test_reverse.scaled",
        impl=lambda xp, x, y: x * y,
        aval=lambda x, y: x,
        vjp=lambda ct, out, x, y: (ct * y, unknown),
    )
    f = lt.trace(scaled, A, B)

    assert "scaled" in str(lt.differentiate(f, [True, False]))
    with pytest.raises(lt.MissingRule, match="no rule for the second operand"):
        lt.differentiate(f, [True, True])


def test_the_direct_form_is_the_specialised_raw_form():
    """[D8]: for known cotangents, differentiate emits what specialize_undef makes of the raw df."""
    fn = lt.trace(lambda a, b: (np.tanh(a * b) @ b, a.sum()), A, B)
    raw, direct = lt.differentiate(fn), lt.differentiate(fn, defined=[True, False])
    mask = [i == 0 for i in raw.df_input_vjps] + [True] * (
        len(raw.df.params) - len(raw.df_input_vjps)
    )
    special = lt.specialize_undef(raw.df, mask)

    assert not {"grad_of", "autograd_add"} & {bind.op.name for bind in special.binds}
    _, residuals = direct.forward(A, B)
    _, all_residuals = raw.forward(A, B)
    unused = [np.zeros(()) for _ in raw.df_input_vjps[1:]]
    for expected, found in zip(
        direct.backward(residuals, 2.0),
        Evaluator(np).call(special, [2.0, *unused, *all_residuals]),
        strict=True,
    ):
        np.testing.assert_array_equal(expected, found)


def test_wrong_flags_are_refused():
    fn = lt.trace(first_golden, A, B)

    with pytest.raises(lt.ShapeError, match="2 parameters, 1 flags"):
        lt.differentiate(fn, [True])
    with pytest.raises(lt.ShapeError, match="1 results, 2 flags"):
        lt.differentiate(fn, defined=[True, True])


def test_rules_in_raw_programs_stay_as_they_are_written():
    """Equal operations in a rule are merged only where it is known which cotangents are needed."""
    fn = lt.trace(lambda x: x * x, np.ones(3))
    (raw,) = [bind for bind in lt.differentiate(fn).df.binds if bind.op.name == "grad_of"]

    assert ["mul", "mul"] == [bind.op.name for bind in raw.attrs["body"].binds]


def test_residuals_of_loops_have_cotangents_in_second_derivatives():
    """[D4] They are temporaries of the raw form, like values that rules read."""
    f = lt.trace(lambda x: lt.fori_loop(0, 3, lambda i, y: np.sin(y) * x, x).sum(), A)
    g = lt.differentiate(f)
    found = lt.grad(lambda x: g.joined()(x, np.float64(1.0))[1][0].sum())(A)

    np.testing.assert_allclose(lt.hessian(f)(A).sum(0), found, rtol=1e-12)
    assert len(g.df_input_vjps) > 1

"""Undefined cotangents: autograd_add, grad_of, instantiate, and the passes that remove them."""

import itertools

import numpy as np
import pytest

import letir as lt
from letir.ast.attrs import Attrs
from letir.ast.bodies import all_bodies
from letir.ast.builder import LetBuilder
from letir.ast.primitive import PRIMITIVES
from letir.ast.types import ArrayType, Undef
from letir.eval.evaluator import Evaluator, compute

X = np.linspace(1.0, 2.0, 12).reshape(6, 2)


def run(fn, *args):
    return Evaluator(np).call(fn, list(args))


def test_autograd_add_returns_the_sum_of_its_defined_operands():
    """[D6]: a single defined operand is returned itself, without a copy."""
    add = PRIMITIVES["autograd_add"]
    x, y = np.ones(2), np.full(2, 3.0)

    np.testing.assert_array_equal(np.full(2, 4.0), compute(add, (x, y), Attrs()))
    assert y is compute(add, (Undef, y), Attrs())
    assert x is compute(add, (x, Undef), Attrs())
    assert Undef is compute(add, (Undef, Undef), Attrs())


def test_a_sum_of_unknown_type_gets_the_type_of_its_operands():
    f = lt.parse("lambda %0: float64[2], %1: float64[2] { %2 = autograd_add(%0, %1); return %2 }")

    assert lt.specialize_undef(f, [True, True]).ret.args[0].type is ArrayType(float, (2,))


def test_autograd_add_does_not_broadcast_and_its_gradient_is_twice_the_cotangent():
    """[D6]."""
    builder = LetBuilder()
    kind = ArrayType(float, (2,))
    x, y = builder.param(kind), builder.param(kind)
    fn = builder.build([PRIMITIVES["autograd_add"](x, y)])

    df = lt.differentiate(fn).df

    assert "{ -> (%0, %0) }" in lt.dumps(df).replace("%0: float64[2]", "%0")
    np.testing.assert_array_equal(np.ones(2), run(df, np.ones(2))[1])


def test_autograd_add_of_two_shapes_or_dtypes_is_an_error():
    """[D6]: when it is built, specialised, and run."""
    add, x = PRIMITIVES["autograd_add"], np.ones(3)
    text = "lambda %0: float64[3], %1: float64[1] { %2 = autograd_add(%0, %1); return %2 }"

    with pytest.raises(lt.ShapeError, match="does not broadcast"):
        compute(add, (x, np.ones(1)), Attrs())
    with pytest.raises(lt.ShapeError, match=r"two shapes, \(3,\) and \(1,\)"):
        lt.check(lt.parse(text))
    with pytest.raises(lt.ShapeError, match="does not broadcast"):
        lt.specialize_undef(lt.parse(text), [True, True])
    with pytest.raises(lt.DTypeError, match="two dtypes"):
        lt.check(lt.parse(text.replace("float64[1]", "float32[3]")))


@pytest.mark.parametrize("run_program", [lt.run_forward, lambda df, *a: lt.compile(df)(*a)])
def test_undefined_cotangents_are_arguments_of_a_typed_gradient_program(run_program):
    """[D6]"""
    df = lt.differentiate(lt.trace(lambda a, b: (a * b, a + b), X, X)).df
    two = np.full(X.shape, 2.0)

    for first, second in itertools.product([np.ones(X.shape), Undef], repeat=2):
        found = run_program(df, first, second, two, 3 * two)
        expected = [6.0 * (first is not Undef) + (second is not Undef)]
        if first is second is Undef:
            assert (Undef, Undef) == found
        else:
            np.testing.assert_array_equal(np.full(X.shape, expected), found[0])


@pytest.mark.parametrize("kind", ["", ": float64[2]"])
def test_undef_for_a_value_that_is_computed_with_is_an_error(kind):
    fn = lt.parse(f"lambda %0{kind} {{ %1 = exp(%0); return %1 }}")

    with pytest.raises(lt.DTypeError, match="the program computes with this value"):
        fn(Undef)


def test_grad_of_is_undefined_when_all_cotangents_are_undefined():
    """[D7]."""
    df = lt.differentiate(lt.trace(np.exp, X)).df

    assert (Undef,) == run(df, Undef, X)


MASKS = [m for m in itertools.product([True, False], repeat=3) if any(m)]


@pytest.mark.parametrize("mask", MASKS)
def test_every_mask_of_a_split_gives_the_right_gradient(mask):
    """[D7]: in the raw, the specialised, the lowered and the direct form."""
    fn = lt.trace(lambda x: tuple(np.split(np.sin(x), 3)), X)
    raw = lt.differentiate(fn)
    cts = [np.full((2, 2), 1.0 + i) if there else Undef for i, there in enumerate(mask)]
    expected = np.cos(X) * np.concatenate([np.zeros((2, 2)) if ct is Undef else ct for ct in cts])
    _, residuals = raw.forward(X)
    operands = [*cts, *[Undef] * (len(raw.df_input_vjps) - 3), *residuals]
    known = [arg is not Undef for arg in operands]

    for program in (
        raw.df,
        lt.lower_grad_of(raw.df),
        lt.specialize_undef(raw.df, known),
        lt.specialize_undef(raw.df, [None] * len(known)),
        lt.lower_grad_of(lt.specialize_undef(raw.df, [k or None for k in known])),
    ):
        lt.check(program)
        np.testing.assert_array_equal(expected, run(program, *operands)[0])
    given = [None if ct is Undef else ct for ct in cts]
    np.testing.assert_array_equal(expected, raw.backward(residuals, *given)[0])
    direct = lt.differentiate(fn, defined=mask)
    _, residuals = direct.forward(X)
    np.testing.assert_array_equal(
        expected, direct.backward(residuals, *[ct for ct in given if ct is not None])[0]
    )


def test_specialize_undef_removes_every_grad_of_whose_flags_are_known():
    """[D8]."""
    df = lt.differentiate(lt.trace(lambda x: tuple(np.split(np.tanh(x), 3)), X)).df

    full = lt.specialize_undef(df, [True] * len(df.params))
    none = lt.specialize_undef(df, [False] * len(df.params))

    assert not {"grad_of", "autograd_add", "instantiate"} & {bind.op.name for bind in full.binds}
    assert 0 == len(none)
    assert Undef is none.ret.args[0].value


def test_an_undefined_gradient_is_zeros_for_the_user():
    """[D8]: the user never sees Undef."""
    g = lt.differentiate(lt.trace(np.exp, X))
    _, residuals = g.forward(X)

    np.testing.assert_array_equal(np.zeros_like(X), g.backward(residuals, None)[0])


def test_a_raw_gradient_program_is_differentiable_and_accepts_missing_cotangents():
    """[D11]: df of df, with the vjp of a temporary undefined."""
    g = lt.differentiate(lt.trace(lambda x: np.tanh(x) * x, X))
    second = lt.differentiate(g.df)
    lt.check(second.df)
    ct = np.ones_like(X)
    _, residuals = g.forward(X)
    operands = [ct, *[Undef] * (len(g.df_input_vjps) - 1), *residuals]

    results = run(second.f, *operands)
    captured = [operands[i] for i in second.df_input_captured_inputs]
    captured += [results[i] for i in second.df_input_captured_outputs]
    vjps = [np.ones_like(X), *[Undef] * (len(second.df_input_vjps) - 1)]
    found = run(second.df, *vjps, *captured)

    by_ct = dict(zip(second.df_output_vjps, found, strict=True))[0]
    np.testing.assert_allclose((1 - np.tanh(X) ** 2) * X + np.tanh(X), by_ct, rtol=1e-14)


def test_the_wrong_number_of_flags_is_refused():
    df = lt.differentiate(lt.trace(np.exp, X)).df

    with pytest.raises(lt.ShapeError, match="2 parameters, 1 flags"):
        lt.specialize_undef(df, [True])


def test_a_program_with_nothing_to_specialize_is_returned_unchanged():
    """[D8]: also a program whose undefined parameters are not among its results."""
    fn = lt.trace(lambda x, y: (np.exp(x), y), X, X)
    plain = lt.Lambda(fn.params, fn.binds, type(fn.ret)(fn.ret.args[:1]))

    assert plain is lt.specialize_undef(plain, [True, False])
    assert fn is lt.specialize_undef(fn, [None, True])
    assert fn is not lt.specialize_undef(fn, [True, False])
    assert fn is lt.lower_grad_of(fn)


def test_specialize_undef_enters_bodies():
    """[D8]."""
    kind = ArrayType(float, (2,))
    inner = LetBuilder()
    x = inner.param(kind)
    body = inner.build([PRIMITIVES["autograd_add"](PRIMITIVES["autograd_add"](x, Undef), Undef)])
    outer = LetBuilder()
    checkpoint = PRIMITIVES["checkpoint"]
    attrs = checkpoint.complete({"body": body, "saved": 0})
    fn = outer.build(outer.apply(checkpoint, (outer.param(kind),), attrs))

    found = lt.specialize_undef(fn, [True])

    assert 0 == len(found.binds[0].attrs["body"])
    np.testing.assert_array_equal(np.ones(2), run(found, np.ones(2))[0])


def test_lower_grad_of_enters_bodies_of_second_derivatives():
    """[D8, D11]."""
    df = lt.differentiate(lt.trace(lambda x: np.tanh(x) * x, X)).df
    ddf = lt.differentiate(df).df
    wrapped = lt.lower_grad_of(ddf)

    left = {bind.op.name for body in all_bodies(wrapped) for bind in body.binds}
    assert "grad_of" not in left
    assert "when_defined" in left

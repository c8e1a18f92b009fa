"""Opaque operations: any callable becomes one bind [B12]."""

import numpy as np
import pytest

import letir as lt
from letir.errors import DTypeError, MissingRule, ShapeError
from letir.testing import assert_same

X = np.array([3.0, 1.0, 2.0])


def sort(x):
    """A callable that is unknown to letir."""
    assert isinstance(x, np.ndarray)
    return np.sort(x)


def order_of(ct, out, x):
    """The cotangent of ``sort``, in NumPy."""
    assert isinstance(ct, np.ndarray)
    back = np.empty_like(ct)
    back[np.argsort(x)] = ct
    return (back,)


def test_a_callable_is_one_bind_that_prints_by_its_name():
    op = lt.opaque(sort, lt.ShapeDtype(3), name="test_opaque.sort")
    f = lt.trace(lambda x: op(x) * 2.0, X)

    assert """\
%1 = test_opaque.sort %0
%2 = mul %1, 2.0
return %2
""" == f.listing()
    assert_same(np.array([2.0, 4.0, 6.0]), f(X))


def test_an_opaque_operation_takes_the_name_of_its_callable():
    op = lt.opaque(sort, lt.ShapeDtype(3))

    assert f"{__name__}.sort" == op.name


def test_outside_a_trace_an_opaque_operation_computes():
    op = lt.opaque(sort, lt.ShapeDtype(3), name="test_opaque.plain")

    assert_same(np.sort(X), op(X))


def test_result_types_may_depend_on_the_argument_types():
    op = lt.opaque(sort, lambda x: x, name="test_opaque.any")
    f = lt.trace(lambda x: op(op(x)[1:]), X)

    assert_same(np.array([2.0, 3.0]), f(X))


def test_an_opaque_operation_may_have_several_results():
    kinds = (lt.ShapeDtype(3), lt.ShapeDtype((), np.int64))
    op = lt.opaque(lambda x: (np.sort(x), x.argmax()), kinds, name="test_opaque.pair")

    def program(x):
        ordered, place = op(x)
        return ordered * place

    assert_same(np.array([2.0, 4.0, 6.0]), lt.trace(program, np.roll(X, -1))(np.roll(X, -1)))


def test_an_opaque_operation_is_recorded_abstractly():
    op = lt.opaque(sort, lt.ShapeDtype(3), name="test_opaque.abstract")

    assert 1 == len(lt.trace(lambda x: op(x), X, abstract=True))  # noqa: PLW0108


@pytest.mark.parametrize(
    ("result", "error"), [(np.zeros(2), ShapeError), (np.zeros(3, np.float32), DTypeError)]
)
def test_a_result_that_is_not_what_was_declared_is_an_error(result, error):
    op = lt.opaque(lambda x: result, lt.ShapeDtype(3), name="test_opaque.wrong")

    with pytest.raises(error, match="declared a result of float64\\[3\\], returned"):
        lt.trace(lambda x: op(x) + 1, X)


def test_the_gradient_of_an_opaque_operation_is_a_missing_rule_with_the_line(told_by):
    """[B12]"""
    op = lt.opaque(sort, lt.ShapeDtype(3), name="test_opaque.ruleless")

    def program(x):
        y = op(x)  # here
        return y.sum()

    kind, message = told_by(lambda: lt.grad(program)(X), program)

    assert MissingRule is kind
    assert (
        """\
test_opaque.ruleless has no vjp rule: no rule was given; pass one to letir.primitive or letir.opaque
  in test_opaque.ruleless
  at test_opaque.py:NN"""
        == message
    )


def test_a_backward_in_numpy_is_one_opaque_bind():
    """[B12]"""
    op = lt.opaque(sort, lt.ShapeDtype(3), vjp=order_of, name="test_opaque.sorted")
    f = lt.trace(lambda x: (op(x) * np.array([1.0, 10.0, 100.0])).sum(), X)
    df = lt.grad(f)

    assert ["test_opaque.sorted.vjp"] == [b.op.name for b in df.binds if "vjp" in b.op.name]
    assert_same(np.array([100.0, 1.0, 10.0]), df(X))


def test_the_gradient_of_an_opaque_backward_is_missing():
    """[B12]"""
    op = lt.opaque(lambda x: x * x, lambda x: x, vjp=lambda ct, out, x: (2 * ct * x,), name="t.sq")

    with pytest.raises(MissingRule, match=r"t\.sq\.vjp has no vjp rule"):
        lt.grad(lt.grad(lambda x: op(x)))(3.0)  # noqa: PLW0108


def test_a_traceable_backward_is_recorded_and_differentiated_again():
    """[B12]"""

    def cube_vjp(ct, out, x):
        return (3 * ct * x * x,)

    op = lt.opaque(lambda x: x**3, lambda x: x, vjp=cube_vjp, traceable=True, name="t.cube")
    df = lt.grad(lambda x: op(x))  # noqa: PLW0108

    assert_same(np.float64(12.0), df(np.float64(2.0)))
    assert_same(np.float64(12.0), lt.grad(df)(np.float64(2.0)))


def test_an_opaque_operation_of_an_argument_without_gradient_needs_no_rule():
    op = lt.opaque(np.argsort, lambda x: lt.ArrayType(np.int64, x.shape), name="test_opaque.places")

    assert_same(np.ones(3), lt.grad(lambda x: x[op(x)].sum())(X))


FALSE_TYPES = {
    "another shape": (lambda xp, x: x.sum(), "returned float64\\[\\]"),
    "another dtype": (lambda xp, x: x.astype(np.float32), "returned float32"),
    "a tuple": (lambda xp, x: (x, x), "returned a tuple"),
    "a list": (lambda xp, x: [1.0, 2.0], "returned a list"),
}


@pytest.mark.parametrize("impl, message", FALSE_TYPES.values(), ids=FALSE_TYPES)
def test_a_primitive_whose_result_is_not_of_its_declared_type_is_an_error(impl, message):
    op = lt.primitive("tests.false_type", impl, lambda x: x)
    match = f"tests.false_type: declared a result of float64\\[3\\], {message}"

    with pytest.raises(lt.LetirError, match=f"(?s){match}.*at .*test_opaque.py"):
        lt.trace(lambda x: op(x) * 2, np.ones(3))
    with pytest.raises(lt.LetirError, match=match):
        lt.jit(lambda x: op(x) * 2)(np.ones(3))
    with pytest.raises(lt.LetirError, match=match):
        op(np.ones(3))


def test_a_type_rule_that_returns_no_types_is_an_error():
    op = lt.primitive("tests.false_rule", lambda xp, x: x, lambda x: "float64")

    with pytest.raises(lt.DTypeError, match=r"aval returned 'float64'.*\n.*ArrayType"):
        lt.trace(op, np.ones(3))


# ---- decompositions ----


def test_an_operation_has_the_derivatives_of_its_decomposition():
    power = lt.extend.primitive(
        "tests.power",
        lambda xp, x, *, k=2: x**k,
        lambda x, *, k: x,
        decompose=lambda x, *, k: x**k,
    )
    x = np.array([1.0, 2.0])

    assert_same(3 * x**2, lt.grad(lambda x: power(x, k=3).sum())(x))
    assert_same((x**2, 2 * x), lt.jvp(power, (x,), (np.ones(2),)))
    assert_same(x**2, lt.vmap(power)(x))
    assert_same(2 * np.eye(2), lt.hessian(lambda x: power(x).sum())(x))


def test_a_rule_that_is_given_comes_before_the_decomposition():
    op = lt.extend.primitive(
        "tests.tenfold",
        lambda xp, x: x * x,
        lambda x: x,
        vjp=lambda ct, y, x: (10 * ct,),
        decompose=lambda x: x * x,
    )
    x = np.array([1.0, 2.0])

    assert_same(np.array([10.0, 10.0]), lt.grad(lambda x: op(x).sum())(x))
    assert_same((x * x, 2 * x), lt.jvp(op, (x,), (np.ones(2),)))


def test_a_rule_that_is_given_stays_in_a_batch_of_the_decomposition():
    op = lt.extend.primitive(
        "tests.batched_tenfold",
        lambda xp, x, y: x * y,
        lambda x, y: x,
        vjp=lambda ct, out, x, y: (10 * ct * y, ct * x),
        decompose=lambda x, y: x * y,
    )
    x = np.array([1.0, 2.0, 3.0])

    assert_same(x * (x + 1), lt.vmap(op)(x, x + 1))
    assert_same(x * 2.0, lt.vmap(op, in_axes=(0, None))(x, 2.0))
    assert_same(10 * (x + 1), lt.vmap(lt.grad(op))(x, x + 1))
    assert_same(10 * (x + 1) + x, lt.grad(lambda x: lt.vmap(op)(x, x + 1).sum())(x))


def test_the_reason_why_an_opaque_function_has_no_derivative_is_named():
    reason = lt.extend.todo("it has jumps")
    op = lt.opaque(sort, lambda x: x, name="tests.without_derivative", vjp=reason)

    with pytest.raises(MissingRule, match="it has jumps"):
        lt.grad(lambda x: op(x).sum())(X)


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (None, DTypeError, "must return a tuple of cotangents, found None"),
        ((), ShapeError, "gave 0 cotangents for 1 operands"),
    ],
)
def test_a_rule_of_an_opaque_function_returns_a_cotangent_for_each_operand(
    returned, error, message
):
    op = lt.opaque(sort, lambda x: x, name="tests.short", vjp=lambda ct, out, x: returned)

    with pytest.raises(error, match=message):
        lt.grad(lambda x: op(x).sum())(X)


def test_a_rule_that_finds_no_cotangent_says_why():
    rule = lambda ct, out, x: (lt.extend.todo("it has jumps"),)  # noqa: E731
    op = lt.opaque(sort, lambda x: x, name="tests.jumps", vjp=rule)

    with pytest.raises(MissingRule, match="no cotangent for operand 0: it has jumps"):
        lt.grad(lambda x: op(x).sum())(X)


@pytest.mark.parametrize("make", [lt.extend.never, lt.extend.todo])
def test_the_reason_of_a_missing_rule_is_a_string(make):
    with pytest.raises(DTypeError, match=f"{make.__name__}: the reason .* a string, found 3"):
        make(3)

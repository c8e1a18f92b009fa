"""Operations defined by a script behave like operations of letir."""

import itertools

import numpy as np
import pytest

import letir as lt
from letir.ast.primitive import PRIMITIVES
from letir.scripting.operations import script_op
from letir.testing import check_grads
from letir.testing.samples.sample import applied_program, sample_of

X = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]])
ROW = np.array([0.3, -0.4, 0.9])


@script_op("scripts.scale_norm")
def scale_norm(x, weight, axis: int = -1, eps: float = 1e-5):
    total = (x * x).mean(axis, keepdims=True)
    rstd = 1.0 / np.sqrt(total + eps)

    def backward(g):
        gw = g * weight
        slope = (gw * x).mean(axis, keepdims=True) * rstd * rstd
        grad_x = rstd * (gw - x * slope)
        return grad_x, (g * x * rstd).sum_to_size(weight.size()), None, None

    return x * rstd * weight, backward


swish = script_op(
    "scripts.swish",
    """
def swish(x):
    gate = 1 / (1 + np.exp(-x))
    result = x * gate
    def backward(g):
        return g * (gate + result * (1 - gate))
    return result, backward
""",
)
moments = script_op(
    "scripts.moments",
    """
def moments(x, axis: int):
    mean = x.mean(axis, keepdims=True)
    centered = x - mean
    def backward(by_mean, by_variance):
        n = x.shape[axis]
        return (by_mean + 2 * by_variance * centered) / n, None
    return mean, (centered * centered).mean(axis, keepdims=True), backward
""",
)
scaled = script_op(
    "scripts.scaled",
    """
def scaled(x, y: Tensor):
    def backward(g):
        return (g * y).sum_to_size(x.size()), (g * x).sum_to_size(y.size())
    return x * y, backward
def scaled(x, y: float):
    def backward(g):
        return g * y, None
    return x * y, backward
""",
)
plain = script_op("scripts.plain", "def plain(x, y): return np.tanh(x) * y")

CASES = {
    "scripts.scale_norm": [(X, ROW), (X, 1.5), (X, ROW.astype("f"))],
    "scripts.swish": [(X,), (0.5,)],
    "scripts.scaled": [(X, ROW), (ROW, X)],
    "scripts.plain": [(X, ROW), (ROW, 2.0)],
}


@pytest.mark.parametrize(("name", "case"), [(n, i) for n in CASES for i in range(len(CASES[n]))])
def test_derivatives_are_right_to_the_second_order(name, case):
    check_grads(PRIMITIVES[name], CASES[name][case], order=2)


@pytest.mark.parametrize("axis", [0, 1])
def test_derivatives_of_several_results_are_right(axis):
    check_grads(lambda x: moments(x, axis), (X,), order=2)


@pytest.mark.parametrize("name", CASES)
def test_an_operation_is_recorded_printed_and_parsed_by_its_name(name):
    f = lt.trace(PRIMITIVES[name], *CASES[name][0])

    assert [bind.op.name for bind in f.binds] == [name]
    assert lt.parse(lt.dumps(f)) == f
    assert lt.check(f) is f
    np.testing.assert_array_equal(f(*CASES[name][0]), PRIMITIVES[name](*CASES[name][0]))


def test_attributes_have_names_and_defaults():
    f = lt.trace(lambda x: scale_norm(x, ROW[:2, None], axis=0), X)

    assert scale_norm.attrs.keys() == {"axis"}
    assert dict(f.binds[-1].attrs) == {"axis": 0}
    assert len(f.binds[-1].args) == 3  # eps is a number, which may be traced


def test_arguments_that_do_not_match_the_parameters_are_an_error():
    with pytest.raises(lt.DTypeError, match="scale_norm: no overload takes"):
        scale_norm(X, ROW, "a")
    with pytest.raises(lt.LetirError, match="axis must be a constant int"):
        scale_norm(X, ROW, 1.5)


def test_an_operation_works_in_the_builder():
    program, args = applied_program(swish, sample_of(X))

    np.testing.assert_array_equal(program(*args), swish(X))


@pytest.mark.parametrize("name", ["scripts.scale_norm", "scripts.swish", "scripts.scaled"])
def test_an_operation_is_batched(name):
    args = CASES[name][0]
    many = [np.stack([arg, 2 * arg, arg + 1]) for arg in args]
    found = lt.vmap(PRIMITIVES[name])(*many)

    for i, out in enumerate(found):
        np.testing.assert_allclose(out, PRIMITIVES[name](*(arg[i] for arg in many)))


def test_an_own_backward_survives_vmap():
    clipped = script_op(
        "scripts.clipped",
        """
def clipped(x, w):
    def backward(g):
        return clip(g * w, -1.0, 1.0), (g * x).sum_to_size(w.size())
    return x * w, backward
""",
    )
    many = np.stack([X, 2 * X])

    def loss(x, w):
        return lt.vmap(clipped, in_axes=(0, None))(x, w).sum()

    by_x, by_w = lt.grad(loss, (0, 1))(many, 3 * ROW)
    np.testing.assert_allclose(by_x, np.clip(np.broadcast_to(3 * ROW, many.shape), -1, 1))
    np.testing.assert_allclose(by_w, many.sum((0, 1)))
    np.testing.assert_allclose(lt.vmap(lambda x: moments(x, 0)[1])(many)[1], 4 * X.var(0)[None])


def test_the_backward_reads_results_instead_of_recomputing_them():
    exponential = script_op(
        "scripts.exponential",
        """
def exponential(x):
    result = np.exp(x)
    def backward(g):
        return g * result
    return result, backward
""",
    )
    gradient = lt.grad(lambda x: exponential(x).sum())
    names = [bind.op.name for bind in lt.trace(gradient, X).binds]

    assert names.count("exp") == 0
    assert names.count("scripts.exponential") == 1


def test_one_gradient_program_works_for_all_sizes():
    """[D14]"""
    f = lt.trace(lambda x: swish(x).sum() + scale_norm(x, ROW).sum(), lt.ShapeDtype(("n", 3)))
    gradient = lt.grad(f)

    for rows in (1, 2, 4):
        x = np.linspace(-1, 2, 3 * rows).reshape(rows, 3)
        expected = lt.grad(lambda x: swish(x).sum() + scale_norm(x, ROW).sum())(x)
        np.testing.assert_allclose(gradient(x), expected)


@pytest.mark.parametrize("missing", [*itertools.product([True, False], repeat=2)])
def test_every_mask_of_missing_cotangents_is_right(missing):
    """[D7]"""

    def f(x):
        return [out for out, gone in zip(moments(x, 0), missing, strict=True) if not gone]

    if not all(missing):
        check_grads(f, (X,), order=2)


def test_a_wrong_backward_is_found():
    wrong = script_op(
        "scripts.wrong",
        """
def wrong(x):
    def backward(g):
        return g * 3 * x
    return x * x, backward
""",
    )

    with pytest.raises(AssertionError, match="expected"):
        check_grads(wrong, (X,), order=1)


def test_an_operation_can_be_defined_again():
    text = "def again(x): return x * {}"
    first = script_op("scripts.again", text.format(2))
    f = lt.trace(first, X)
    second = script_op("scripts.again", text.format(3))

    assert PRIMITIVES["scripts.again"] is second
    np.testing.assert_array_equal(f(X), 2 * X)
    np.testing.assert_array_equal(second(X), 3 * X)


def test_scripts_may_use_operations_of_scripts():
    def f(x):
        return swish(x) * 2

    by_name = lt.script("def f(x): return scripts.swish(x) * 2")

    np.testing.assert_array_equal(lt.script(f)(X), swish(X) * 2)
    assert by_name.forward == lt.script(f).forward
    assert "mul(scripts.swish(x), 2)" in by_name.lifted


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("alone", "def f(x): return x", "name your operation package.name"),
        ("a.b c", "def f(x): return x", "name your operation package.name"),
        ("scripts.f", "def f(n: int): return n", "an operation needs an array"),
        ("scripts.f", "def f(p: Tuple[Tensor, Tensor]): return p[0]", "an operand is one array"),
        (
            "scripts.f",
            "def f(x): return x\ndef f(x, y): return x",
            "its overloads differ in parameters",
        ),
    ],
)
def test_an_invalid_operation_is_an_error(name, text, message):
    with pytest.raises(lt.LetirError, match=message):
        script_op(name, text)


def test_a_gradient_of_a_wrong_shape_names_operation_position_expected_and_found():
    """[D9]"""
    bad = script_op(
        "scripts.bad",
        """
def bad(x, y):
    def backward(g):
        return g, g.sum()
    return x * y, backward
""",
    )

    with pytest.raises(
        lt.ShapeError, match=r"argument 1 \(y\) a gradient of float64\[\], expected"
    ):
        lt.grad(lambda x, y: bad(x, y).sum())(X, X)

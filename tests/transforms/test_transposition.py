"""linear_transpose: of linear programs, with an error that names what is not linear."""

import numpy as np
import pytest

import letir as lt
from letir.ad.forward import linear_program
from letir.ad.linearity import Linearity
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.eval.evaluator import run_flat
from letir.testing import SAMPLES, Sample, applied_program, assert_close, assert_same
from letir.testing.gradient_checks import coarsest_eps, is_inexact
from letir.transforms.transposition import transposed_program
from tests.each_sample import each_sample

X = np.linspace(0.1, 1.0, 5)
W = np.cos(np.arange(15.0)).reshape(3, 5)


def test_the_transpose_of_a_function_is_a_function_of_cotangents():
    turned = lt.linear_transpose(lambda x: W @ x, X)

    assert_close((np.ones(3) @ W,), turned(np.ones(3)))


def test_examples_may_be_types():
    turned = lt.linear_transpose(lambda x: W @ x, lt.ShapeDtype(5))

    assert_close((np.ones(3) @ W,), turned(np.ones(3)))


def test_the_transpose_of_a_program_is_a_program():
    turned = lt.linear_transpose(lt.trace(lambda x: W @ x, X))

    assert isinstance(lt.check(turned), lt.Lambda)
    assert_close((np.ones(3) @ W,), turned(np.ones(3)))
    assert_close(W @ X, lt.linear_transpose(turned)((X,))[0])  # and back


def test_the_other_arguments_follow_the_cotangent():
    f = lambda p, w, *, scale: {"y": scale * (w @ p["x"]), "z": p["x"][::2]}  # noqa: E731
    ct = {"y": np.ones(3), "z": np.zeros(3)}
    program = lt.trace(f, {"x": X}, W, scale=2.0)

    assert_close(
        ({"x": 2 * np.ones(3) @ W},), lt.linear_transpose(program, argnums=0)(ct, W, scale=2.0)
    )
    by_w = lt.linear_transpose(lambda w, x: w @ x, W, X, argnums=0)
    assert_close((np.outer(np.ones(3), X),), by_w(np.ones(3), X))


def test_several_arguments_are_linear_together():
    turned = lt.linear_transpose(lambda x, y: 2 * x - y, X, X)

    assert_close((2 * X, -X), turned(X))


def test_the_program_of_a_linearization_is_transposed():
    f = lambda x: np.tanh(x) * x.sum()  # noqa: E731
    _, linear = lt.linearize(f, X)
    expected = lt.vjp(f, X)[1](X)

    program = lt.linear_transpose(linear.program, argnums=0)

    assert_close(expected, program(X, *linear.captured))
    assert_close(expected, lt.linear_transpose(linear, X)(X))


def test_traced_values_that_the_function_uses_are_parameters():
    """[B3]"""
    found = lt.grad(lambda w: lt.linear_transpose(lambda x: w * x, X)(X)[0].sum())(3.0)

    assert_close(X.sum(), found)


def test_results_that_are_zero_are_linear():
    turned = lt.linear_transpose(lambda x: (x, np.zeros(2), 0 * X[:2]), X)

    assert_close((X,), turned((X, np.ones(2), np.ones(2))))


def test_zeros_together_with_linear_values_are_linear():
    turned = lt.linear_transpose(lambda x: np.concatenate([np.zeros(2), x, X[:1] * 0]), X)

    assert_close((np.arange(2.0, 7.0),), turned(np.arange(8.0)))


def test_a_real_function_of_complex_numbers_is_transposed_as_gradients_are():
    z = X + 1j
    turned = lt.linear_transpose(lambda z: (2j * z).real, z)

    assert_close(lt.vjp(lambda z: (2j * z).real, z)[1](X), turned(X))


NOT_LINEAR = {
    "a square": (lambda x: x * x, "mul is not linear"),
    "a sum": (lambda x: x + 1, "add adds a term that does not depend on the arguments"),
    "integers added": (lambda x: x + np.arange(5), "add adds"),
    "joined with numbers": (lambda x: np.concatenate([x, np.arange(3)]), "concatenate adds"),
    "padded": (lambda x: np.pad(x, 1, constant_values=2), "pad adds a number"),
    "rounded": (lambda x: x - np.floor(x), "floor has no linear rule"),
    "a remainder": (lambda x: x % 2, "remainder has no linear rule"),
    "a choice": (lambda x: np.where(x > 0, x, 0), "greater has no linear rule"),
    "a decision": (lambda x: x if x.sum() > 0 else -x, "greater has no linear rule"),
    "stopped": (lt.stop_gradient, "stop_gradient has no linear rule"),
    "cast to integers": (lambda x: x.astype(int) * 1.0, "cast does not give floating numbers"),
    "checkpointed": (lt.checkpoint(np.sin), "checkpoint is not linear"),
}


@pytest.mark.parametrize(("f", "message"), NOT_LINEAR.values(), ids=NOT_LINEAR)
def test_the_first_operation_that_is_not_linear_is_named_with_its_line(f, message):
    with pytest.raises(
        lt.LetirError, match=rf"(?s)linear_transpose: {message}.*\n  in %.*\n  at "
    ) as e:
        lt.linear_transpose(f, X)

    assert "test_transposition.py" in str(e.value)


def test_composites_that_their_own_rule_shows_as_linear_are_looked_into():
    """The quantiles of a uniform distribution are nan outside of [0, 1]."""
    with pytest.raises(lt.LetirError, match="uniform_ppf is not linear"):
        lt.linear_transpose(lt.scipy.stats.uniform.ppf, X)


def test_a_constant_result_is_not_linear():
    with pytest.raises(lt.LetirError, match="is the same for all arguments, but not zero"):
        lt.linear_transpose(lambda x: (x, np.ones(3)), X)


def test_integer_arguments_and_wrong_cotangents_are_refused():
    with pytest.raises(lt.DTypeError, match=r"linear_transpose: n is int64\[3\].*\n.*leave it out"):
        lt.linear_transpose(lambda n: n * 2.0, np.arange(3))
    turned = lt.linear_transpose(lambda x: 2 * x, X)
    with pytest.raises(lt.ShapeError, match=r"cotangent of type float64\[5\] is expected"):
        turned(np.ones(2))
    with pytest.raises(lt.ShapeError, match="the cotangent of the result first"):
        turned()


def test_unknown_sizes_are_an_error_with_the_remedy():
    program = lt.parse("lambda %0 { %1 = sum(%0, axis=0); return %1 }")

    with pytest.raises(lt.LetirError, match="retype"):
        lt.linear_transpose(program)


def test_a_bind_that_holds_one_function_is_linear_if_the_function_is():
    turned = lt.linear_transpose(lt.checkpoint(lambda x: 3 * x[1:]), X)

    assert_close((np.array([0.0, 3, 3, 3, 3]),), turned(np.ones(4)))


def test_each_result_of_a_body_is_checked_for_linearity():
    f = lt.checkpoint(lambda x, c: (x + c, x * c))

    with pytest.raises(lt.LetirError, match="checkpoint is not linear"):
        lt.linear_transpose(f, X, X, argnums=0)
    turned = lt.linear_transpose(lt.checkpoint(lambda x, c: (3 * x, x * c)), X, X, argnums=0)
    assert_close((3 * X + X * X,), turned((X, X), X))


def test_a_scan_is_linear_if_its_steps_are():
    def f(x, w):
        step = lambda c, x: ((c[0] + 1, c[1] * w + x), c[1] * c[0])  # noqa: E731
        (_, total), ys = lt.scan(step, (0, x[0] * 0), x)
        return total, ys

    cts = 1.0, np.cos(X)
    expected = lt.vjp(f, X, 0.7)[1](cts)[0]

    assert_close((expected,), lt.linear_transpose(f, X, 0.7, argnums=0)(cts, 0.7))
    with pytest.raises(lt.LetirError, match="scan is not linear"):
        lt.linear_transpose(f, X, 0.7)


def check_linearity(program, args, i: int) -> None:
    """Assert that the program is linear in argument i, or is not declared linear."""
    try:
        Linearity(program, [program.params[i]], "", "")
    except lt.LetirError:
        return

    def at(factor):
        arg = args[i] * factor
        arg = arg.astype(args[i].dtype) if hasattr(arg, "dtype") else arg
        with np.errstate(all="ignore"):
            return [r for r in run_flat(program, [*args[:i], arg, *args[i + 1 :]]) if is_inexact(r)]

    try:
        zeros = at(0.0)
    except lt.GuardError:  # the remainder of 0 is shorter
        zeros = None
    ones, threes = at(1.0), at(-3.0)
    for zero, once, thrice in zip(zeros or ones, ones, threes, strict=True):
        assert np.all(zero == 0) or zeros is None
        size = np.abs(once).max(initial=0.0)  # where terms cancel, only rounding remains
        atol = max(1e-2 * size, 100 * coarsest_eps(once))
        np.testing.assert_allclose(-3.0 * once, thrice, rtol=1e-2, atol=atol)


def may_be_linear(op: Primitive, sample: Sample) -> bool:
    """Whether the sample has a floating operand, in which it may be declared linear."""
    return any(map(is_inexact, sample.args)) and "linearity" not in sample.exempt


@each_sample(may_be_linear, in_one_test=True, quick=2)
def test_operations_declared_linear_are_linear(op, sample):
    for constants in (False, True):
        program, args = applied_program(op, sample, constants=constants)
        for i in range(len(args)):
            if is_inexact(args[i]):
                check_linearity(program, args, i)


def is_turned(op: Primitive) -> bool:
    """Whether the operation has a rule in both modes."""
    return callable(op.vjp) and callable(op.jvp)


def has_tangents(op: Primitive, sample: Sample) -> bool:
    """Whether the sample has a floating operand, all of its operands, and a linear forward mode."""
    is_whole = not any(arg is lt.Undef for arg in sample.args)
    if "transposition" in sample.exempt:
        return False
    return is_whole and any(map(is_inexact, sample.args))


@each_sample(has_tangents, among=is_turned, in_one_test=True, quick=2)
def test_reverse_mode_is_the_transpose_of_forward_mode(op, sample):
    program, args = applied_program(op, sample)
    inputs = [i for i, arg in enumerate(args) if is_inexact(arg)]
    with np.errstate(all="ignore"):
        pair = linear_program(program, inputs)
        results = run_flat(pair.f, list(args))
        captured = pair.captured(args, results)
        cts = {i: np.ones_like(results[i]) for i in pair.outputs}
        count = len(program.ret.args)
        full = tuple(cts.get(i, np.zeros_like(results[i])) for i in range(count))

        turned = transposed_program(pair.linear, list(range(len(inputs))))
        kinds = [arg.type for arg in pair.linear.ret.args]  # for Python numbers: as precise as x
        given = [
            ct if kind is None else ct.astype(kind.dtype)
            for ct, kind in zip(cts.values(), kinds, strict=True)
        ]
        found = run_flat(turned, [*given, *captured])
        pulled = lt.vjp(program, *args)[1](full if count > 1 else full[0])

    rtol = 1000 * coarsest_eps(*[args[i] for i in inputs], *cts.values())
    assert_close([pulled[i] for i in inputs], list(found), rtol=rtol, atol=rtol)


def test_many_operations_are_declared_linear():
    def is_linear(name):
        for sample in SAMPLES[name]:
            program, args = applied_program(PRIMITIVES[name], sample)
            for param, arg in zip(program.params, args, strict=True):
                try:
                    if is_inexact(arg):
                        return bool(Linearity(program, [param], "", ""))
                except lt.LetirError:
                    pass
        return False

    expected = (
        "sum matmul mul div neg reshape transpose concatenate stack split index einsum cumsum"
        " cast real imag conj mean pad flip broadcast_to dot linear dropout grad_of"
    )
    assert [] == [name for name in expected.split() if not is_linear(name)]


def test_gradients_are_taken_as_joined_programs():
    gradient = lt.differentiate(lt.trace(lambda x: 2 * x, X))

    turned = lt.linear_transpose(gradient)

    assert_same((2 * X, 2 * X), turned((X, (X,))))

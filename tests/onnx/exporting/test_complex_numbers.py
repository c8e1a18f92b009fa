"""Complex numbers as pairs of real ones."""

import cmath
import warnings

import numpy as np
import pytest

import letir as lt
from letir.ast.primitive import PRIMITIVES
from letir.testing.samples import SAMPLES
from letir.testing.samples.sample import applied_program
from tests.each_sample import in_one_test
from tests.onnx.running import assert_agrees, exported, gradient_of, kinds_of, results_of

RNG = np.random.default_rng(0)
OPERATIONS = (
    *("add", "mul", "div", "quotient", "power", "square", "reciprocal", "abs", "sign", "conj"),
    *("exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "expm1", "log1p"),
    *("equal", "isfinite", "where", "cast", "real", "imag", "logical_and", "any"),
    *("sum", "mean", "cumsum", "reshape", "concatenate", "index", "index_set", "index_add"),
    *("matmul", "einsum", "dot", "solve", "inv", "conv", "angle", "vdot", "tensordot", "pad"),
    *("cond", "fori_loop", "while_loop", "scan", "looped", "fftn", "ifftn", "rfftn", "irfftn"),
)


def complex_array(*shape, dtype=complex):
    """Random complex numbers."""
    return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(dtype)


def has_complex(program) -> bool:
    """Whether a parameter or a result is complex."""
    kinds = [arg.type for arg in (*program.params, *program.ret.args)]
    return any(kind is not None and kind.dtype.kind == "c" for kind in kinds)


@in_one_test
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_on_complex_numbers_and_its_gradient_agree(name):
    op, count = PRIMITIVES[name], 0
    for sample in SAMPLES[name]:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            program, args = applied_program(op, sample)
            if not has_complex(program):
                continue
            count += 1
            assert_agrees(exported(program), program, args)
            gradient = gradient_of(program, args) if op.is_differentiable else None
            if gradient is not None:
                assert_agrees(exported(gradient), gradient, args)
    assert count


def test_functions_of_cmath_and_their_gradients_agree():
    def f(x, phi):
        z = cmath.exp(1j * x) * cmath.rect(x, phi) + cmath.sqrt(x + 2j)
        return cmath.log(z).real + cmath.tanh(z).imag

    program = lt.trace(f, 0.7, 0.3)
    for p in (program, lt.grad(program, argnums=(0, 1))):
        assert_agrees(exported(p), p, [1.7, 0.4])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_inputs_and_outputs_have_a_last_axis_of_parts(dtype):
    program = lt.trace(lambda x: (x * 2j, x.sum()), lt.ShapeDtype(("n", 3), dtype))
    model = exported(program)

    shapes = [
        [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in (*model.graph.input, *model.graph.output)
    ]
    assert [["n", 3, 2], ["n", 3, 2], [2]] == shapes
    for rows in (1, 4):
        assert_agrees(model, program, [complex_array(rows, 3, dtype=dtype)])


@pytest.mark.parametrize("n", [1, 6, 7, 100])
def test_a_filtered_signal_and_its_gradient(n):
    def f(x, w):
        spectrum = np.fft.rfft(x) * w
        return (np.abs(spectrum) ** 2).sum() + (np.fft.irfft(spectrum, n) * x).sum()

    kinds = lt.ShapeDtype(("rows", n), float), lt.ShapeDtype((n // 2 + 1,), complex)
    program = lt.trace(f, *kinds)
    slope = lt.grad(program, argnums=(0, 1))

    assert {"DFT"} <= set(kinds_of(exported(program)))
    for rows in (1, 3):
        args = [RNG.normal(size=(rows, n)), complex_array(n // 2 + 1)]
        for p in (program, slope):
            assert_agrees(exported(p), p, args)


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_a_loop_carries_complex_numbers(steps):
    """A quantum state that is rotated as often as an input says, and a choice of its phase."""

    def f(state, h, n):
        state = lt.fori_loop(0, n, lambda i, s: s - 1j * (0.1 * i) * (h @ s), state)
        return lt.cond(state[0].real > 0, lambda s: s, lambda s: s * 1j, state)

    kinds = [lt.ShapeDtype(shape, complex) for shape in ((3,), (3, 3))]
    program = lt.trace(f, *kinds, lt.ShapeDtype((), np.int64))
    model = exported(program)

    assert_agrees(model, program, [complex_array(3), complex_array(3, 3), np.int64(steps)])


def test_operations_without_a_form_for_complex_numbers_are_listed():
    def f(x):
        return np.sort(x) + np.cumprod(x)

    with pytest.raises(lt.ExportError) as caught:
        exported(f, args=(complex_array(3),))

    message = str(caught.value)
    assert "2 operations" in message
    assert "sort of complex numbers" in message and "cumprod of complex numbers" in message


def test_an_integer_added_to_a_complex_number_is_real():
    program = lt.trace(lambda x, n: x + n, np.zeros(2, complex), np.zeros(2, int))

    found = results_of(exported(program), [np.array([[1.0, 2.0], [3.0, 4.0]]), [5, 6]])

    assert [[6, 2], [9, 4]] == found[0].tolist()

"""Generated programs as models: their numbers, or they fail where the programs fail."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import letir as lt
from tests.onnx.exporting.test_effect_nodes import outcome
from tests.onnx.running import exported, results_of
from tests.programs.generated import arguments, program, source_of

pytestmark = pytest.mark.filterwarnings("ignore")  # divisions by zero
SEEDS = st.integers(0, 10**6)


def recorded(f, args):
    """The program of a function, and its model; (None, None) if there is none."""
    try:
        found = lt.trace(f, *args)
    except (lt.LetirError, ArithmeticError, ValueError, LookupError, TypeError):
        return None, None
    try:
        return found, exported(found)
    except lt.ExportError:
        return None, None


def assert_agree(seed, program, model, rows) -> None:
    """Assert that the model gives the numbers of the program, or fails where it fails."""
    for args in rows:
        try:
            expected = outcome(lambda args=args: program(*args))
        except ValueError as error:
            if "math domain error" not in str(error):
                raise
            continue  # math.sin(inf), of which a model computes nan
        found = outcome(lambda args=args: results_of(model, args))
        assert (expected is None) == (found is None), source_of(seed)
        if expected is None:
            continue
        expected = expected if isinstance(expected, tuple) else (expected,)
        for x, y in zip(found, expected, strict=True):
            assert (x.dtype, x.shape) == (np.asarray(y).dtype, np.shape(y)), source_of(seed)
            np.testing.assert_allclose(x, y, 1e-9, 1e-9, err_msg=source_of(seed))


@given(SEEDS)
@settings(max_examples=30)
def test_a_model_agrees_with_the_program_at_other_numbers(seed):
    found, model = recorded(program(seed), arguments(seed))

    if found is not None:
        assert_agree(seed, found, model, [arguments(seed), arguments(seed + 1)])


@given(SEEDS)
@settings(max_examples=20)
def test_the_model_of_a_gradient_agrees_with_it_at_other_numbers(seed):
    f, args = program(seed), arguments(seed)

    def loss(x):
        vector, number, *_ = f(x, *args[1:])
        return np.tanh(vector).sum() + np.tanh(number) * 0.5

    found, model = recorded(lt.grad(loss), args[:1])

    if found is not None:
        assert_agree(seed, found, model, [args[:1], arguments(seed + 1)[:1]])

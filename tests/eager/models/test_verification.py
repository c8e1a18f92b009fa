"""``verify``: compares recorded programs with their functions."""

import itertools

import numpy as np
import pytest

import letir as lt
from letir.eager import Variable, jit_model, verify

X = np.array([1.0, -2.0, 3.0])


class Layer:
    """A layer with a running mean; ``wrapped`` makes arrays of its parameters."""

    def __init__(self, wrapped=np.array):
        self.w, self.mean = wrapped(np.eye(3) * 0.1), np.zeros(3)

    def parameters(self):
        return [self.w]

    def forward(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x
        return np.tanh((x - self.mean) @ self.w)


def test_verify_returns_the_program_of_a_function():
    program = verify(lambda p, n: {"out": np.exp(p["x"]) * n}, {"x": X}, 2.0)

    np.testing.assert_array_equal(np.exp(X) * 2, program({"x": X}, 2.0)["out"])


def test_verify_accepts_a_nan_where_the_function_has_one():
    with np.errstate(invalid="ignore"):
        assert 1 == len(verify(np.sqrt, X).binds)


def test_verify_shows_the_difference_between_two_recordings():
    count = itertools.count(1)

    with pytest.raises(lt.TraceError, match="two recordings of the function differ") as error:
        verify(lambda x: x * next(count), X)
    assert "mul(%0, 1)" in str(error.value)
    assert "mul(%0, 2)" in str(error.value)


def test_verify_finds_a_function_that_computes_differently_under_a_trace():
    def sly(x):
        return x * 2 if lt.is_tracing() else x * 2 + 1e-3

    with pytest.raises(lt.TraceError, match=r"0, float64\[3\]: the largest difference is 0\.001"):
        verify(sly, X)


def test_verify_leaves_arguments_and_random_state_alone():
    def drawing(x):
        return x * 2 + np.random.normal(size=3)

    x = X.copy()
    np.random.seed(0)
    expected = np.random.normal()
    np.random.seed(0)

    with pytest.raises(lt.TraceError, match=r"drawn from numpy\.random"):
        verify(drawing, x)

    np.testing.assert_array_equal(X, x)
    assert expected == np.random.normal()


def test_verify_accepts_variables():
    assert 1 == len(verify(np.sin, Variable(X, requires_grad=True)).binds)


@pytest.mark.parametrize("wrapped", [np.array, lambda w: Variable(w, requires_grad=True)])
def test_verify_accepts_a_recorded_model_and_leaves_it_alone(wrapped):
    fast = jit_model(Layer(wrapped))

    verify(fast, X)

    assert [] == fast.programs
    np.testing.assert_array_equal(np.zeros(3), fast.model.mean)


def test_verify_finds_a_model_that_is_not_a_function_of_its_arrays():
    count = itertools.count(1)

    class Drifting(Layer):
        def forward(self, x):
            return x * next(count)

    with pytest.raises(lt.TraceError, match=r"result 0, .*: the largest difference is 6"):
        verify(jit_model(Drifting()), X)


def test_verify_replays_at_other_inputs():
    """The program that was recorded at the first arguments holds at these, or it is an error."""
    x = np.ones(2)

    program = verify(lambda x: np.sin(x) * 2, x, check_inputs=[(-x,), [x + 1], np.zeros(2)])

    assert 2 == len(program)
    with pytest.raises(
        lt.TraceError, match=r"(?s)at check_inputs\[1\].*GuardError: the program was"
    ):
        verify(lambda x: x if x.sum() > 0 else -x, x, check_inputs=[(x,), (-x,)])
    with pytest.raises(lt.TraceError, match=r"(?s)at check_inputs\[0\].*ShapeError"):
        verify(np.sin, x, check_inputs=[(np.ones(3),)])


def test_verify_finds_a_value_that_was_recorded_as_a_constant():
    x = np.ones(2)

    def baked(x):
        with lt.pause_tracing():
            scale = np.asarray(x * 3)
        return x * scale

    verify(baked, x)
    with pytest.raises(lt.TraceError, match=r"(?s)at check_inputs\[0\].*largest difference is 6"):
        verify(baked, x, check_inputs=[(2 * x,)])


def test_verify_replays_a_recorded_model_at_other_inputs():
    program = verify(jit_model(Layer()), X, check_inputs=[(2 * X,), X - 1])

    assert "tanh" in [bind.op.name for bind in program.binds]


def test_verify_takes_each_complex_nan_for_the_other():
    x = np.array([complex(np.nan, 1), complex(0, np.nan), 2j])

    assert ["add"] == [bind.op.name for bind in verify(lambda x: x + 1, x).binds]


@pytest.mark.parametrize(
    "other, words",
    [
        (lambda x: x.astype(np.float32), r"gives float32\[3\], the program float64\[3\]"),
        (lambda x: (x, x), "the function gives 2 results, the program 1"),
    ],
)
def test_verify_finds_results_of_other_types_and_numbers(other, words):
    def sly(x):
        return x * 2 if lt.is_tracing() else other(x * 2)

    with pytest.raises(lt.TraceError, match=words):
        verify(sly, X)

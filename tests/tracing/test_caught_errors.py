"""Tracing errors that a traced function catches are raised at the end of the trace [B2]."""

import statistics
import subprocess
import sys

import numpy as np
import pytest

import letir as lt
from letir.errors import TraceError
from letir.testing import assert_same
from tests.each_sample import in_one_test

X = np.array([1.0, 2.0, 3.0])
BUFFER = np.zeros(3)


def swallowing(x):
    try:
        return x * statistics.NormalDist(x[0]).mean  # here
    except Exception:
        return x * 0.0


def test_an_error_that_the_function_catches_is_raised_in_the_end(told):
    """[B2] With NumPy there would be no error, and the function would return another result."""
    message = """\
the function caught an error of its recording, and then took another path than with NumPy:
  float() of a traced value of type float64[] cannot be recorded
  at test_caught_errors.py:NN
  compute with numpy's functions;
  letir.concrete(x) gives the value, with a guard and without a derivative
  or do not catch this error"""

    assert (TraceError, message) == told(swallowing, X)


CAUGHT = {
    "a truth value": lambda x: bool(x[0]),
    "an array": lambda x: X[x.astype(int)],
    "a write": lambda x: np.copyto(BUFFER, x),
    "a ratio": lambda x: x[0].as_integer_ratio(),
    "no such function": lambda x: np.save("x", x),
    "a key": lambda x: {x[0]: 1},
    "a missing rule": lambda x: np.linalg.qr(x.reshape(1, 3), mode="raw"),
    "another dtype": lambda x: x.astype(np.longdouble),
    "bits": lambda x: x.view(np.int64),
    "an attribute": lambda x: hasattr(x, "ctypes") or x.name,
}


@pytest.mark.parametrize("name", CAUGHT)
def test_a_tracing_error_that_the_function_catches_is_raised_at_the_end(name):
    def program(x):
        try:
            CAUGHT[name](x)
        except Exception:
            return -x
        return x

    with pytest.raises(TraceError, match="the function caught an error of its recording"):
        lt.trace(program, X, abstract=True)


def test_an_inner_trace_that_refuses_and_is_caught_refuses_the_outer_one():
    def program(x):
        try:
            return lt.grad(lambda y: np.linalg.qr(y, mode="raw")[1].sum())(x)
        except Exception:
            return x

    with pytest.raises(TraceError, match="qr: mode 'raw' is not recorded"):
        lt.trace(program, np.eye(2))


def test_an_error_that_numpy_raises_too_may_be_caught():
    def program(x):
        try:
            return x.reshape(2, 2)
        except ValueError:
            return -x

    assert_same(-X, lt.trace(program, X)(X))


def test_an_error_of_an_inner_trace_may_be_caught():
    """The inner trace raises it without the outer trace too."""

    def program(x):
        try:
            return lt.grad(lambda y: y * float(y))(2.0) * x
        except TraceError:
            return -x

    assert_same(program(X), lt.trace(program, X)(X))


def test_the_error_of_hashing_an_array_may_be_caught():
    def program(x):
        try:
            return {x: x}[x]
        except TypeError:
            return -x

    assert_same(program(X), lt.trace(program, X)(X))


@in_one_test
@pytest.mark.parametrize(
    "action",
    [
        lambda x: x + np.zeros(2),
        lambda x: x @ np.zeros((2, 2)),
        lambda x: x.reshape(2, 2),
        lambda x: np.concatenate([x, np.eye(2)]),
        lambda x: x[7],
        lambda x: x[0, 0],
        lambda x: np.linalg.solve(np.eye(2), x),
        lambda x: np.einsum("ij->i", x),
        lambda x: x.sum(axis=2),
        lambda x: x[1.5],
        lambda x: x["a"],
        lambda x: x[x],
        lambda x: x[x[0]],
        lambda x: x[[0.5]],
        bool,
        lambda x: bool(x[:0]),
        float,
        int,
        lambda x: [1, 2][x],
        lambda x: range(x[0]),
        lambda x: range(float(x[0])),
        lambda x: len(x[0]),
        lambda x: len(float(x[0])),
        lambda x: len(x[0, ...]),
        lambda x: list(x[0]),
        lambda x: list(float(x[0])),
        lambda x: list(x[0, ...]),
        lambda x: 3 in float(x[0]),
        hash,
        lambda x: float(x[0])[0],
        lambda x: float(x[0]).shape,
        lambda x: x.no_such_name,
        lambda x: [1, 2] * x[0],
    ],
)
def test_the_text_of_an_error_that_the_function_catches_is_numpys(action):
    def f(x):
        try:
            return action(x)
        except (ValueError, IndexError, TypeError, AttributeError) as error:
            return str(error), repr(error), error.args, type(error).__name__, f"{error}"

    x = np.array([1.0, 2.0, 3.0])

    assert f(x) == lt.trace(f, x)(x)
    assert f(x) == lt.jit(f)(x)


@pytest.mark.parametrize("name", ["inv", "cholesky", "det", "eigh", "matrix_power"])
@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_the_error_of_an_array_that_is_no_square_matrix_is_numpys(name, shape):
    def f(a):
        try:
            return getattr(np.linalg, name)(a, *([2] if name == "matrix_power" else ()))
        except np.linalg.LinAlgError as error:
            return np.linalg.norm(a), str(error)

    a = np.arange(np.prod(shape), dtype=float).reshape(shape)

    assert f(a) == lt.trace(f, a)(a)
    assert f(a) == lt.jit(f)(a)


def test_an_error_that_nothing_catches_is_shown_with_its_text():
    code = "import numpy as np, letir as lt\nlt.trace(lambda x: x @ np.ones((2, 2)), np.ones(3))"

    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )

    assert "ShapeError: matmul: inner sizes differ, (3,) @ (2, 2)" in found.stderr


def test_only_an_error_that_nothing_catches_gets_its_line():
    def f(x, a):
        with np.errstate(divide="raise"):
            try:
                x = 1 / x
            except FloatingPointError:
                x = x + 1
        return np.linalg.inv(a) * x

    program = lt.trace(f, np.zeros(2), np.eye(2))

    assert_same(f(np.zeros(2), np.eye(2)), program(np.zeros(2), np.eye(2)))
    with pytest.raises(np.linalg.LinAlgError) as raised:
        program(np.zeros(2), np.zeros((2, 2)))
    assert ["inv(%1)" in note for note in raised.value.__notes__] == [True]
    with pytest.raises(lt.GuardError, match="raised FloatingPointError, now it raises nothing"):
        program(np.ones(2), np.eye(2))

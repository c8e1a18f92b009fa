"""Models fail at inputs for which the recorded program holds no longer."""

import math

import numpy as np
import onnxruntime
import pytest

import letir as lt
from tests.onnx.running import exported, results_of

NAN, INF = float("nan"), float("inf")


def attempt(f):
    """The result of a function, or -1 if it raises an error that is caught."""
    try:
        return f()
    except (ArithmeticError, ValueError, LookupError):
        return -1.0


def outcome(run):
    """The result of a call, or None if it fails."""
    try:
        return run()
    except (
        lt.LetirError,
        ArithmeticError,
        IndexError,  # of onnx's reference evaluator
        onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument,
    ):
        return None


def assert_same_outcomes(program, rows) -> None:
    """Assert that the model of a program gives its numbers, or fails where it fails."""
    model = exported(program)
    for args in rows:
        expected = outcome(lambda args=args: program(*args))
        found = outcome(lambda args=args: results_of(model, args)[0])
        assert (expected is None) == (found is None), args
        if expected is not None:
            np.testing.assert_allclose(found, expected, 1e-12)


ARITHMETIC = [
    lambda a, b, i, j: attempt(lambda: a / b),
    lambda a, b, i, j: attempt(lambda: 1 / a),
    lambda a, b, i, j: attempt(lambda: a // b),
    lambda a, b, i, j: attempt(lambda: i % j),
    lambda a, b, i, j: attempt(lambda: a**b),
    lambda a, b, i, j: attempt(lambda: i**j),
    lambda a, b, i, j: attempt(lambda: i << j),
    lambda a, b, i, j: attempt(lambda: math.exp(a)),
    lambda a, b, i, j: attempt(lambda: math.log(a)),
    lambda a, b, i, j: attempt(lambda: math.sqrt(i)),
    lambda a, b, i, j: attempt(lambda: math.fmod(a, b)),
    lambda a, b, i, j: attempt(lambda: a + b * 2),
]


@pytest.mark.parametrize("f", ARITHMETIC)
def test_a_model_fails_where_arithmetic_inside_try_raises(f):
    rows = [(1.5, 2.5, 3, 2), (0.0, 0.0, 0, 0), (-1.0, 2.5, -3, -2), (800.0, 800.0, 3, 1)]
    rows += [(NAN, 1.0, 1, 1), (INF, 2.0, 1, 1), (1.0, INF, 1, 1), (-2.0, 0.5, 2, 3)]

    assert_same_outcomes(lt.trace(f, *rows[0]), rows)


def added_twice(x, i):
    """A loop that reads elements."""
    return lt.fori_loop(0, 2, lambda _, total: total + x[i], x)


def in_a_region(x, i):
    """A read for which NumPy has another error state."""
    with np.errstate(all="ignore"):
        return np.log(x[i])


READS = [
    lambda x, i: attempt(lambda: x[i]),
    lambda x, i: attempt(lambda: np.take(x, i)),
    lambda x, i: attempt(lambda: np.take_along_axis(x, i, 0)),
    lambda x, i: (attempt(lambda: x[i]), x * 2)[1],  # the element is not used
    lambda x, i: (attempt(lambda: i[i]), x * 2)[1],
    # what is computed from the element is not used
    lambda x, i: (attempt(lambda: np.sin(x[i]).sum()), x * 2)[1],
    lambda x, i: (attempt(lambda: x[i] > 0), x * 2)[1],
    lambda x, i: (print(attempt(lambda: x[i])), x * 2)[1],
    lambda x, i: (attempt(lambda: added_twice(x, i)), x * 2)[1],
    lambda x, i: attempt(lambda: added_twice(x, i)),
    lambda x, i: (attempt(lambda: in_a_region(x, i)), x * 2)[1],
]


@pytest.mark.parametrize("f", READS)
def test_a_model_fails_where_an_index_inside_try_is_out_of_bounds(f):
    x = np.array([1.0, 2.0, 3.0])
    rows = [(x, np.array(i)) for i in ([0, 2, 1], [-3, 0, 1], [0, 3, 1], [0, 1, -4])]

    assert_same_outcomes(lt.trace(f, *rows[0]), rows)


def test_errors_that_no_value_shows_are_refused():
    def f(x, q):
        return attempt(lambda: np.quantile(x, q))

    with pytest.raises(lt.ExportError, match="depends on an error"):
        exported(f, args=(np.ones(3), 0.5))


def test_reads_without_elements_are_refused_because_models_do_not_run_them():
    def f(x, i):
        attempt(lambda: np.zeros((3, 0))[i])
        return x

    with pytest.raises(lt.ExportError, match="depends on an error"):
        exported(f, args=(np.ones(3), np.array([0, 2])))


def test_python_arithmetic_in_a_loop_inside_try_is_refused():
    def f(x, n):
        attempt(lambda: lt.fori_loop(0, 2, lambda k, total: total + x * (7 % (n + k)), x))
        return x

    with pytest.raises(lt.ExportError, match="depends on an error"):
        exported(f, args=(np.ones(3), 2))


def test_a_read_inside_try_in_the_body_of_an_unused_loop_is_refused():
    def f(x, i):
        lt.fori_loop(0, 2, lambda _, total: total + attempt(lambda: x[i]), x)
        return x * 2

    with pytest.raises(lt.ExportError, match="an error that Python catches inside a loop"):
        exported(f, args=(np.ones(3), np.array([0, 2, 1])))


CHOICES = [
    lambda x: x * int(x[0]),
    lambda x: x * int(x[1]),
    lambda x: x * round(x[0]),
    lambda x: sum([x * i for i in range(int(x[2]))]),
    lambda x: [x, x * 2, x * 3][int(x[0])],
    lambda x: x if np.allclose(x, np.round(x, 1)) else -x,
    lambda x: x if math.isnan(x[0]) else -x,
    lambda x: x * float(x[0]) if x[0] > x[1] else -x,
]


@pytest.mark.parametrize("f", CHOICES)
def test_a_model_fails_where_python_would_choose_otherwise(f):
    rows = [[1.5, -2.5, 3.0], [1.7, -2.9, 3.9], [2.5, -1.0, 0.0], [0.0, 0.0, 0.0]]
    rows += [[NAN, 1.0, 2.0], [-1.5, 2.5, 1.0], [1.55, -2.5, INF]]

    assert_same_outcomes(lt.trace(f, np.array(rows[0])), [(np.array(row),) for row in rows])


def test_a_number_that_is_no_number_is_a_condition():
    program = lt.trace(lambda x, s: -x if s != s else x, np.ones(2), NAN)

    assert_same_outcomes(program, [(np.ones(2), NAN)])
    assert outcome(lambda: results_of(exported(program), (np.ones(2), 1.0))) is None


def test_a_model_neither_prints_nor_changes_its_inputs(capsys):
    def f(x):
        x[0] = 5.0
        print(x.sum())
        return x * 2

    program, x = lt.trace(f, np.ones(2)), np.ones(2)
    capsys.readouterr()
    found = results_of(exported(program), (x,))[0]

    np.testing.assert_array_equal((found, x), ([10.0, 2.0], [1.0, 1.0]))
    assert capsys.readouterr().out == ""


def test_a_condition_inside_of_a_loop_is_refused():
    program = lt.parse(
        "lambda %0: float64[2] { %1: float64[2] = fori_loop(0, 3, %0, body=lambda %2: int64*[], "
        "%3: float64[2] { %4: float64[] = sum(%3); guard(%4, value=1.0); return %3 }); return %1 }"
    )

    with pytest.raises(lt.ExportError, match="a guard inside a loop or a branch"):
        exported(program)

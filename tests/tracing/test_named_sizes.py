"""[B10] A question to a size that has a name only: answered where it holds for all sizes, else an
error with its line, never an answer that holds for one of them."""

import numpy as np
import pytest

import letir as lt
from letir.ast.types import SIZE_READS

N, M = lt.ShapeDtype(("n", 3)), lt.ShapeDtype(("m", 3))

OPEN = {
    "equal": lambda x, y: x.shape[0] == 3,
    "reflected": lambda x, y: 3 == x.shape[0],
    "numpy": lambda x, y: np.int64(3) == x.shape[0],
    "numpy_reflected": lambda x, y: x.shape[0] == np.int64(3),
    "float": lambda x, y: x.shape[0] == 3.0,
    "different": lambda x, y: x.shape[0] != 3,
    "shape": lambda x, y: x.shape == (4, 3),
    "names": lambda x, y: x.shape == y.shape,
    "size": lambda x, y: x.size == 6,
    "less": lambda x, y: x.shape[0] < 3,
    "least": lambda x, y: min(x.shape) == 3,
    "truth": lambda x, y: bool(x.shape[0]),
    "number": lambda x, y: int(x.shape[0]) == 3,
    "index": lambda x, y: len(range(x.shape[0])),
    "length": lambda x, y: len(x),
    "in_tuple": lambda x, y: x.shape[0] in (1, 3),
    "in_set": lambda x, y: x.shape[0] in {1, 3},
}
DECIDED = {
    "same": (lambda x, y: x.shape == x.shape, True),
    "known_axis": (lambda x, y: x.shape[1] == y.shape[1], True),
    "longer": (lambda x, y: x.shape[0] + 1 == x.shape[0], False),
    "less": (lambda x, y: x.shape[0] < x.shape[0] + 1, True),
    "negative": (lambda x, y: x.shape[0] == -1, False),
    "none": (lambda x, y: x.shape[0] is None or x.shape[0] == None, False),  # noqa: E711
    "rank": (lambda x, y: x.shape == (), False),
}


@pytest.mark.parametrize("name", OPEN)
def test_a_question_that_sizes_decide_is_an_error_with_its_line(name):
    def f(x, y):
        return x if OPEN[name](x, y) else np.tanh(x)

    with pytest.raises(lt.TraceError, match=r"(?s)has a name but no value.*test_named_sizes[.]py:"):
        lt.trace(f, N, M)
    assert SIZE_READS.get() is None


@pytest.mark.parametrize("name", DECIDED)
def test_what_holds_for_all_sizes_is_answered(name):
    question, answer = DECIDED[name]

    f = lt.trace(lambda x, y: np.sin(x) if question(x, y) else np.tanh(x), N, M)

    assert ["sin" if answer else "tanh"] == [bind.op.name for bind in f.binds]


def test_a_function_that_goes_on_after_the_error_is_refused():
    def f(x):
        try:
            return x if x.shape[0] == 3 else x * 2
        except lt.TraceError:
            return x

    with pytest.raises(lt.TraceError, match="went on"):
        lt.trace(f, N)


def test_names_of_an_outer_trace_are_asked_in_an_inner_one_too():
    def body(carry, row):
        return carry + row, row

    def f(x):
        inner = lt.vmap(lambda row: row if x.shape[0] == 3 else -row)
        return lt.scan(body, np.zeros(3), x)[0], inner(x)

    with pytest.raises(lt.TraceError, match="whether n is 3"):
        lt.trace(f, N)


def test_a_trace_by_hand_and_comparisons_after_it():
    x = lt.tracer_enter(N)
    try:
        with pytest.raises(lt.TraceError, match="whether n is 3"):
            x.shape[0] == 3  # noqa: B015
    finally:
        with pytest.raises(lt.TraceError):
            lt.tracer_exit(x)

    f = lt.trace(np.tanh, N)
    assert f.params[0].type.shape != (4, 3)  # of a program, not of what is traced

"""Sources of programs that store results in lists, dicts and dataclasses among their arguments."""

import copy
import dataclasses

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from tests.each_sample import in_one_test

X = np.array([1.0, 2.0])


def loaded(source: str):
    """The function of a source."""
    namespace: dict = {}
    exec(compile(source, "<source>", "exec"), namespace)
    return namespace["f"]


@dataclasses.dataclass
class State:
    """The state of an optimizer."""

    w: np.ndarray
    steps: int = 0


def step(state, x):
    state.w = state.w - x
    state.steps += 1
    return x.sum()


def of_dict(state, x):
    state["a"], state["b"] = state["b"], state["a"]
    state["new"] = [state["a"], {"x": x}]
    del state["old"]
    state["a"].append(x)
    state["b"].pop()
    return state, state["a"]


def of_list(values, x, *, scale):
    values[0] = values[0] * scale
    values[2:] = [x, x * 2]


CHANGES = {
    "a dataclass": (step, lambda: (State(X), X)),
    "a dict": (of_dict, lambda: ({"a": [1.0], "b": [2.0, 3.0], "old": 1.0}, X)),
    "a list": (lambda v, x: of_list(v, x, scale=2.0), lambda: ([1.0, 2.0, 3.0, 4.0, 5.0], X)),
}


@in_one_test
@pytest.mark.parametrize("case", CHANGES)
def test_a_generated_function_changes_its_arguments(case):
    function, make = CHANGES[case]
    source = lt.to_source(lt.trace(function, *make()))
    numpys, ours = make(), make()
    expected, result = function(*numpys), loaded(source)(*ours)
    assert "leaves of" not in source
    assert_same(expected, result)
    assert_same(numpys, ours)
    if case == "a dict":
        assert result[0] is ours[0]
        assert result[1] is ours[0]["a"] is ours[0]["new"][0]


def test_a_keyword_argument_is_changed():
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    program = lt.trace(of_list, values=copy.copy(values), x=X, scale=2.0)
    loaded(lt.to_source(program))(values=values, x=X, scale=3.0)
    assert_same([3.0, 2.0, X, 2 * X], values)


class Model:
    """An object, which a generated function does not take apart."""

    def __init__(self):
        self.w, self.steps = X, 0


def test_of_other_programs_the_stored_values_are_results():
    source = lt.to_source(lt.trace(step, Model(), X))
    assert (
        "# the results are the leaves of stores(*, {'args[0].w': *, 'args[0].steps': *})" in source
    )
    assert_same((X.sum(), X - X, 1), loaded(source)(X, 0, X))

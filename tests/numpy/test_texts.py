"""Choices among texts and objects, which NumPy makes by guarded conditions."""

import numpy as np
import pytest

import letir as lt

FUNCTIONS = [
    lambda x: x * (np.where(x[0] > 0, "pos", "neg").item() == "pos"),
    lambda x: x * np.where(x > 0, "a", "b").tolist().count("a"),
    lambda x: x * len(np.select([x[0] > 1, x[0] > 0], ["high", "mid"], "low").item()),
    lambda x: x * (np.where(x[0] > 0, None, 1).item() is None),
    lambda x: x * ord(np.choose(np.argmax(x), ["x", "y"]).item()),
]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_choices_among_texts_are_guarded(f):
    x, other = np.array([2.0, -1.0]), np.array([-2.0, 3.0])
    program, jitted = lt.trace(f, x), lt.jit(f)

    np.testing.assert_array_equal(program(x * 1.5), f(x * 1.5))
    with pytest.raises(lt.GuardError):
        program(other)
    for each in (x, x, other):
        np.testing.assert_array_equal(jitted(each), f(each))
    np.testing.assert_allclose(lt.grad(lambda x: f(x).sum())(x), f(np.ones(2) * x) / x)


def test_a_choice_of_traced_numbers_and_texts_is_refused():
    with pytest.raises(lt.DTypeError, match="is not an array of numbers"):
        lt.trace(lambda x: np.where(x > 0, x, "a"), np.ones(2))

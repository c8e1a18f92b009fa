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
def test_choices_among_strings_are_guarded(f):
    x, other = np.array([2.0, -1.0]), np.array([-2.0, 3.0])
    program, jitted = lt.trace(f, x), lt.jit(f)

    np.testing.assert_array_equal(program(x * 1.5), f(x * 1.5))
    with pytest.raises(lt.GuardError):
        program(other)
    for each in (x, x, other):
        np.testing.assert_array_equal(jitted(each), f(each))
    np.testing.assert_allclose(lt.grad(lambda x: f(x).sum())(x), f(np.ones(2) * x) / x)


def test_a_choice_of_traced_numbers_and_strings_is_refused():
    with pytest.raises(lt.DTypeError, match="is not an array of numbers"):
        lt.trace(lambda x: np.where(x > 0, x, "a"), np.ones(2))


NUMBERS = [np.array(1.5), np.float64(1.5), np.array(3, "i1"), np.array(1.5, "f"), np.array(True)]


@pytest.mark.parametrize("x", NUMBERS, ids=repr)
def test_the_text_of_a_number_tells_it_from_an_array(x):
    def texts(x):
        arrays = x.reshape(()), np.asarray(x), x[()]
        return [repr(x), str(x), f"{x} {x!r}", "%r" % x, *map(repr, arrays)]  # noqa: UP031

    assert texts(x) == lt.trace(texts, x)(x) == lt.jit(texts)(x)

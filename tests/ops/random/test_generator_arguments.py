"""Programs with generators that draw themselves: where states are needed, they stay."""

import numpy as np
import pytest

import letir as lt
from letir.ops.random.generator_arguments import with_generator_arguments

DRAW = "generator_draw({}, method='random', shape=(2,), dtype=float64)"


def parsed(*lines: str, result: str = "%1") -> lt.Lambda:
    text = "lambda %0: uint64[7], %9: float64[2] { " + "; ".join(lines) + f"; return {result} }}"
    return lt.parse(text)


def test_states_disappear_from_a_chain_of_draws():
    fn = parsed(
        f"%1: float64[2], %2: uint64[7] = {DRAW.format('%0')}",
        "%3: uint64[7] = index_set(%0, %2, item=...)",
        f"%4: float64[2], %5: uint64[7] = {DRAW.format('%3')}",
        "%6: float64[2] = add(%1, %4)",
        "%7: uint64[7] = write_back(%0, %5)",
        result="%6",
    )

    found, places = with_generator_arguments(fn)

    assert places == (0,)
    assert [bind.op.name for bind in found.binds] == ["own_draw", "own_draw", "add"]


def test_a_seed_sets_the_state_of_the_generator():
    fn = parsed(
        "%8: uint64[7] = constant(value=uint64[7]{0, 1, 2, 3, 4, 5, 6})",
        "%3: uint64[7] = index_set(%0, %8, item=...)",
        f"%4: float64[2], %5: uint64[7] = {DRAW.format('%3')}",
        "%7: uint64[7] = write_back(%0, %5)",
        result="%4",
    )

    found, places = with_generator_arguments(fn)

    assert places == (0,)
    assert [bind.op.name for bind in found.binds] == ["constant", "own_seed", "own_draw"]


def test_an_array_that_gets_other_words_is_not_a_generator():
    fn = parsed(
        "%8: uint64[7] = constant(value=uint64[7]{0, 1, 2, 3, 4, 5, 6})",
        "%3: uint64[7] = index_set(%0, %8, item=...)",
        "%7: uint64[7] = write_back(%0, %3)",
        result="%9",
    )

    assert with_generator_arguments(fn) == (fn, ())


@pytest.mark.parametrize(
    ("second", "last", "result"),
    [
        ("%0", "write_back(%0, %5)", "%1, %4"),  # the first state again
        ("%2", "write_back(%0, %2)", "%1, %4"),  # not the last state
        ("%2", "write_back(%0, %5)", "%1, %4, %2"),  # a state as a result
        ("%2", "copy(%5)", "%1, %4"),  # the generator does not advance
        ("%2", "write_back(%0, %5); %8: uint64[7] = invert(%2)", "%1, %8"),
    ],
)
def test_states_stay_where_they_are_needed(second, last, result):
    fn = parsed(
        f"%1: float64[2], %2: uint64[7] = {DRAW.format('%0')}",
        f"%4: float64[2], %5: uint64[7] = {DRAW.format(second)}",
        f"%7: uint64[7] = {last}",
        result=result,
    )

    assert with_generator_arguments(fn) == (fn, ())


def test_arrays_that_are_written_to_are_not_generators():
    def f(x):
        x[0] = 2
        return x * 3

    fn = lt.trace(f, np.ones(3, np.uint64))

    assert with_generator_arguments(fn) == (fn, ())

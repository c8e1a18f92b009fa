"""Which of some arrays share memory: all pairs, or the ranges of many."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from letir.ops.effects.writes_to_arguments import overlapping_pair, share_memory

SLICES = st.builds(
    lambda start, length, step: slice(start, start + length * step, step),
    *(st.integers(0, 200), st.integers(0, 6), st.integers(1, 4)),
)


@given(st.lists(SLICES, min_size=1, max_size=40), st.sets(st.integers(0, 39)))
def test_a_pair_is_found_if_and_only_if_there_is_one(slices, written):
    memory = np.zeros(300)
    arrays = [memory[part] for part in slices]
    first = [i for i in written if i < len(arrays)]
    pairs = {
        (i, j)
        for i, j in itertools.product(first, range(len(arrays)))
        if i != j and np.shares_memory(arrays[i], arrays[j])
    }

    found = overlapping_pair(arrays, first)

    assert (found in pairs) if pairs else found is None


def test_the_same_object_twice_among_many_is_found():
    arrays = [np.zeros(2) for _ in range(40)]

    assert overlapping_pair(arrays, range(20)) is None
    assert overlapping_pair([*arrays, arrays[3]], range(20)) == (3, 40)
    assert overlapping_pair([arrays[3], *arrays], range(1, 20)) == (4, 0)


def test_scalars_and_empty_arrays_share_no_memory():
    number, empty = np.float64(2.0), np.zeros(0)

    assert overlapping_pair([number, number, 3, 3, empty, empty], range(6)) is None


@pytest.mark.parametrize("step", [1, 2, 3])
def test_arrays_whose_test_would_take_too_long_count_as_overlapping(step):
    memory = np.zeros((40, 40, 40, 40), np.int8)
    a = np.lib.stride_tricks.as_strided(memory, (9, 9, 9, 9), (7, 91, 1183, 15379))
    b = np.lib.stride_tricks.as_strided(memory.ravel()[step:], (9, 9, 9, 9), (11, 143, 1859, 24167))

    assert share_memory(a, b) >= np.shares_memory(a, b)

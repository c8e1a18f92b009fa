"""aligned: which elements of two sequences correspond."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from letir.source.side_by_side import alignment
from letir.source.side_by_side.alignment import aligned_positions, longest_increasing, pairs_between

WORDS = st.text("abcd", max_size=12)


def longest_common(a: str, b: str) -> int:
    """The length of a longest common subsequence, by dynamic programming."""
    row = [0] * (len(b) + 1)
    for x in a:
        before = row
        row = [0]
        for j, y in enumerate(b):
            row.append(before[j] + 1 if x == y else max(before[j + 1], row[j]))
    return row[-1]


@settings(deadline=None)
@given(WORDS, WORDS)
def test_pairs_are_equal_and_increase(a, b):
    pairs = aligned_positions(a, b)

    assert all(a[i] == b[j] for i, j in pairs)
    assert all(i < k and j < m for (i, j), (k, m) in itertools.pairwise(pairs))


@settings(deadline=None)
@given(WORDS, WORDS)
def test_without_anchors_the_alignment_is_a_longest_common_subsequence(a, b):
    assert len(pairs_between(a, b, 0, 0, len(a), len(b))) == longest_common(a, b)


@pytest.mark.parametrize("most", [1, 2, 5])
@settings(deadline=None)
@given(WORDS, WORDS)
def test_aligning_with_a_small_edit_limit_reaches_the_end(most, a, b):
    before, alignment.MAX_EDITS = alignment.MAX_EDITS, most
    try:
        pairs = pairs_between(a, b, 0, 0, len(a), len(b))
    finally:
        alignment.MAX_EDITS = before

    assert all(a[i] == b[j] for i, j in pairs)


@settings(deadline=None)
@given(st.permutations(range(8)))
def test_the_subsequence_increases_and_none_is_longer(values):
    found = [values[i] for i in longest_increasing(values)]
    lengths = []
    for i, value in enumerate(values):
        lengths.append(1 + max((lengths[j] for j in range(i) if values[j] < value), default=0))

    assert found == sorted(found)
    assert len(found) == max(lengths)


def test_sequences_without_common_elements_take_linear_time():
    assert aligned_positions(range(5000), range(5000, 10_000)) == []
    assert (
        len(aligned_positions([i % 2 for i in range(5000)], [i % 3 == 0 for i in range(5000)]))
        > 2000
    )

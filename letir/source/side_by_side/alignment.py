"""``aligned_positions``: an alignment of the equal elements of two sequences, in linear time.

Common prefixes and suffixes first, then elements that occur once in both (Cohen's patience diff);
the rest by the greedy algorithm of Myers (An O(ND) difference algorithm, Algorithmica, 1986), which
restarts from the furthest point reached with ``MAX_EDITS`` edits.
"""

import bisect
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

MAX_EDITS = 100  # the trace takes time and memory proportional to its square
_Pairs = list[tuple[int, int]]


def aligned_positions(a: Sequence, b: Sequence) -> _Pairs:
    """Increasing pairs of positions of equal elements.

    >>> aligned_positions("abcd", "axcd")
    [(0, 0), (2, 2), (3, 3)]
    """
    result: _Pairs = []
    for start, end in pairwise([(-1, -1), *unique_pairs(a, b), (len(a), len(b))]):
        if start[0] >= 0:
            result.append(start)
        result += pairs_between(a, b, start[0] + 1, start[1] + 1, *end)
    return result


def unique_pairs(a: Sequence, b: Sequence) -> _Pairs:
    """The longest increasing sequence of pairs of elements that occur once in both."""
    in_a, in_b = Counter(a), Counter(b)
    place = {x: j for j, x in enumerate(b) if in_a[x] == in_b[x] == 1}  # where it is in b
    pairs = [(i, place[x]) for i, x in enumerate(a) if x in place]
    return [pairs[i] for i in longest_increasing([j for _, j in pairs])]


def longest_increasing(values: Sequence[int]) -> list[int]:
    """The positions of a longest increasing subsequence of different numbers."""
    ends: list[int] = []  # the least last value of an increasing sequence, by length
    at: list[int] = []  # the position of that value
    before: list[int] = []  # for each position the previous one in its sequence
    for i, value in enumerate(values):
        length = bisect.bisect_left(ends, value)  # ``ends`` increases: n log n (Fredman, 1975)
        before.append(at[length - 1] if length else -1)
        ends[length : length + 1] = [value]
        at[length : length + 1] = [i]
    result, i = [], at[-1] if at else -1
    while i >= 0:
        result.append(i)
        i = before[i]
    return result[::-1]


def pairs_between(a: Sequence, b: Sequence, i: int, j: int, k: int, m: int) -> _Pairs:
    """The aligned pairs between ``a[i:k]`` and ``b[j:m]``."""
    head: _Pairs = []
    while i < k and j < m and a[i] == b[j]:
        head.append((i, j))
        i, j = i + 1, j + 1
    tail: _Pairs = []
    while i < k and j < m and a[k - 1] == b[m - 1]:
        k, m = k - 1, m - 1
        tail.append((k, m))
    while i < k and j < m:
        pairs, i, j = _shortest_edit_path(a, b, i, j, k, m)
        head += pairs
    return head + tail[::-1]


def _shortest_edit_path(
    a: Sequence, b: Sequence, i: int, j: int, k: int, m: int
) -> tuple[_Pairs, int, int]:
    """(pairs, end position) on the shortest edit path through these parts, or on the furthest path
    of ``MAX_EDITS`` edits.

    A diagonal is x - y, relative to the starts of the parts; ``furthest`` has its largest x.
    """
    furthest, trace = {1: 0}, []  # Myers' sentinel: the empty path comes down from diagonal 1
    for edits in range(MAX_EDITS + 1):
        trace.append(furthest.copy())
        for diagonal in range(-edits, edits + 1, 2):
            before = diagonal + _step_to_diagonal(furthest, diagonal, edits)
            # from below: an element of the first sequence is deleted
            x = furthest[before] + (before < diagonal)
            while i + x < k and j + x - diagonal < m and a[i + x] == b[j + x - diagonal]:
                x += 1
            furthest[diagonal] = x
            if i + x >= k and j + x - diagonal >= m:
                return _pairs_on_path(trace, i, j, k - i, m - j), k, m
    ends = [(furthest[d], furthest[d] - d) for d in range(-MAX_EDITS, MAX_EDITS + 1, 2)]
    # paths may have left the parts
    x, y = max((end for end in ends if end[0] <= k - i and end[1] <= m - j), key=sum)
    return _pairs_on_path(trace, i, j, x, y), i + x, j + y


def _step_to_diagonal(furthest: dict[int, int], diagonal: int, edits: int) -> int:
    """1 if the path to a diagonal comes from the diagonal above it, -1 if from the one below."""
    if diagonal == -edits:
        return 1
    return 1 if diagonal != edits and furthest[diagonal - 1] < furthest[diagonal + 1] else -1


def _pairs_on_path(trace: list[dict[int, int]], i: int, j: int, x: int, y: int) -> _Pairs:
    """The pairs on the path from (i, j) to (x, y)."""
    result: _Pairs = []
    for edits in range(len(trace) - 1, -1, -1):
        furthest, diagonal = trace[edits], x - y
        before = diagonal + _step_to_diagonal(furthest, diagonal, edits)
        # the diagonal of equal elements is walked first, then the one edit before it
        from_x, from_y = (furthest[before], furthest[before] - before) if edits else (0, 0)
        while x > from_x and y > from_y:
            x, y = x - 1, y - 1
            result.append((i + x, j + y))
        x, y = from_x, from_y
    return result[::-1]

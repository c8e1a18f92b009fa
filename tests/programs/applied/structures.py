"""Sorting networks, heaps, trees of sums, forests, labels and sequences."""

import bisect
import collections
import heapq
import itertools

import numpy as np

from tests.programs.table import program


@program(lambda rng: (rng.permutation(8).astype(float),), branches=True)
def bitonic_sort(a):
    """A bitonic sorting network."""
    a = a.copy()
    n = len(a)
    k = 2
    while k <= n:
        j = k // 2
        while j > 0:
            for i in range(n):
                l = i ^ j
                if l > i and ((i & k == 0 and a[i] > a[l]) or (i & k != 0 and a[i] < a[l])):
                    a[i], a[l] = a[l], a[i]
            j //= 2
        k *= 2
    return a


@program(lambda rng: (rng.normal(size=7),), branches=True)
def heap_and_bisect(x):
    """Heaps and sorted lists of numbers."""
    h = list(x)
    heapq.heapify(h)
    small = heapq.nsmallest(3, x)
    s = []
    for v in x:
        bisect.insort(s, v)
    pos = bisect.bisect_left(s, 0.0)
    return [heapq.heappop(h) for _ in range(3)], small, s, pos


@program(lambda rng: (rng.normal(size=6), rng.integers(0, 6, size=(4, 2))), branches=True)
def fenwick(x, queries):
    """Prefix sums in a Fenwick tree."""
    n = len(x)
    tree = np.zeros(n + 1)

    def update(i, v):
        i += 1
        while i <= n:
            tree[i] += v
            i += i & -i

    def query(i):
        s = 0.0
        while i > 0:
            s += tree[i]
            i -= i & -i
        return s

    for i, v in enumerate(x):
        update(i, v)
    return np.array([query(b + 1) - query(a) if a <= b else np.nan for a, b in queries])


class UnionFind:
    def __init__(self, n):
        self.parent, self.size = np.arange(n), np.ones(n, dtype=int)

    def find(self, a):
        while self.parent[a] != a:
            self.parent[a] = self.parent[self.parent[a]]
            a = self.parent[a]
        return a

    def union(self, a, b):
        a, b = self.find(a), self.find(b)
        if a == b:
            return False
        if self.size[a] < self.size[b]:
            a, b = b, a
        self.parent[b] = a
        self.size[a] += self.size[b]
        return True


@program(lambda rng: (rng.uniform(0, 1, size=(5, 2)),), smooth=0, branches=True)
def kruskal(points):
    """A minimum spanning tree with union-find."""
    n = len(points)
    d = np.linalg.norm(points[:, None] - points[None, :], axis=-1)
    iu = np.triu_indices(n, 1)
    order = np.argsort(d[iu], kind="stable")
    uf, total, edges = UnionFind(n), 0.0, []
    for k in order:
        i, j = iu[0][k], iu[1][k]
        if uf.union(i, j):
            total += d[i, j]
            edges.append((int(i), int(j)))
    return total, edges


@program(lambda rng: (rng.integers(0, 2, size=(5, 5)),), branches=True)
def flood_fill(grid):
    """Connected labels of a grid."""
    labels = np.zeros_like(grid)
    current = 0
    for start in zip(*np.nonzero(grid)):
        if labels[start]:
            continue
        current += 1
        stack = [start]
        while stack:
            i, j = stack.pop()
            if i < 0 or j < 0 or i >= 5 or j >= 5 or not grid[i, j] or labels[i, j]:
                continue
            labels[i, j] = current
            stack.extend([(i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)])
    return labels, current, np.bincount(labels.ravel())


@program(lambda rng: (rng.integers(0, 4, size=8), rng.integers(0, 4, size=7)), branches=True)
def needleman_wunsch(a, b):
    """A global alignment with its text."""
    match, mismatch, gap = 1, -1, -2
    F = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
    F[:, 0] = gap * np.arange(len(a) + 1)
    F[0] = gap * np.arange(len(b) + 1)
    for i, j in itertools.product(range(1, len(a) + 1), range(1, len(b) + 1)):
        F[i, j] = max(
            F[i - 1, j - 1] + (match if a[i - 1] == b[j - 1] else mismatch),
            F[i - 1, j] + gap,
            F[i, j - 1] + gap,
        )
    i, j, top, bot = len(a), len(b), "", ""
    while i or j:
        if i and j and F[i, j] == F[i - 1, j - 1] + (match if a[i - 1] == b[j - 1] else mismatch):
            i, j, top, bot = i - 1, j - 1, "ACGT"[a[i - 1]] + top, "ACGT"[b[j - 1]] + bot
        elif i and F[i, j] == F[i - 1, j] + gap:
            i, top, bot = i - 1, "ACGT"[a[i - 1]] + top, "-" + bot
        else:
            j, top, bot = j - 1, "-" + top, "ACGT"[b[j - 1]] + bot
    return F[-1, -1], top, bot


@program(lambda rng: ("ACGTTGCAACGTGA", rng.uniform(0.1, 1)), smooth=1)
def kmer_profile(seq, pseudo):
    """Transitions of letters in a text."""
    counts = collections.Counter(seq[i : i + 2] for i in range(len(seq) - 1))
    M = np.full((4, 4), pseudo)
    for k, c in counts.items():
        M["ACGT".index(k[0]), "ACGT".index(k[1])] += c
    M /= M.sum(axis=1, keepdims=True)
    return -(M * np.log2(M)).sum(axis=1), counts.most_common(2)

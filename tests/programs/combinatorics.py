"""Integers, graphs, tables and codes."""

import heapq
import math
from functools import lru_cache
from itertools import combinations, permutations

import numpy as np

from tests.programs.table import program


@program(lambda rng: (rng.uniform(1, 9, size=(5, 5)),))
def floyd_warshall(weights):
    """All shortest paths."""
    d = weights.copy()
    n = d.shape[0]
    np.fill_diagonal(d, 0)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                d[i, j] = np.minimum(d[i, j], d[i, k] + d[k, j])
    return d


@program(lambda rng: (rng.uniform(1, 9, size=(5, 5)), 0), branches=True)
def dijkstra(weights, source):
    """Distances from a node, with a list of what was visited."""
    n = len(weights)
    distance = np.full(n, np.inf)
    distance[source] = 0
    visited = [False] * n
    for _ in range(n):
        u = min((i for i in range(n) if not visited[i]), key=lambda i: distance[i])
        visited[u] = True
        for v in range(n):
            if not visited[v] and distance[u] + weights[u, v] < distance[v]:
                distance[v] = distance[u] + weights[u, v]
    return distance


@program(lambda rng: (rng.uniform(size=(5, 5)),), smooth=0)
def page_rank(links, damping=0.85):
    """Ranks by powers of a stochastic matrix."""
    n = links.shape[0]
    M = links / links.sum(axis=0)
    rank = np.ones(n) / n
    for _ in range(10):
        rank = (1 - damping) / n + damping * M.dot(rank)
    return rank


@program(lambda rng: (rng.integers(1, 6, 4), rng.integers(5, 30, 4)), branches=True)
def knapsack(weights, values, capacity=8):
    """The best value of items within a capacity."""
    best = np.zeros(capacity + 1, dtype=int)
    for w, v in zip(weights, values):
        for c in range(capacity, int(w) - 1, -1):
            best[c] = max(best[c], best[c - w] + v)
    return best


@program(lambda rng: (rng.uniform(size=(5, 2)),), branches=True)
def travelling_salesman(cities):
    """The shortest tour among all orders."""
    best, tour = math.inf, None
    for order in permutations(range(1, 4)):
        route = (0, *order, 4)
        length = sum(np.linalg.norm(cities[a] - cities[b]) for a, b in zip(route, route[1:]))
        if length < best:
            best, tour = length, route
    return best, tour


@program(lambda rng: (rng.integers(0, 2, size=8),))
def hamming_code(bits):
    """Parity bits by a generator matrix and the syndrome after one flip."""
    columns = [c for c in range(1, 8)]
    H = np.array([[(c >> k) & 1 for c in columns] for k in range(3)])
    word = bits[:7].copy()
    word[bits[7]] ^= 1
    syndrome = H @ word % 2
    position = syndrome @ (1 << np.arange(3))
    return word, position


@program(lambda rng: (rng.permutation(8).astype(float),))
def bubble_sort(values):
    """Exchanges by minimum and maximum."""
    out = values.copy()
    for end in range(len(out) - 1, 0, -1):
        for i in range(end):
            low, high = np.minimum(out[i], out[i + 1]), np.maximum(out[i], out[i + 1])
            out[i], out[i + 1] = low, high
    return out


@program(lambda rng: (int(rng.integers(20, 40)),), branches=True)
def prime_sieve(limit):
    """Primes below a limit and their count."""
    sieve = np.ones(limit, dtype=bool)
    sieve[:2] = False
    for p in range(2, int(limit**0.5) + 1):
        if sieve[p]:
            sieve[p * p :: p] = False
    return np.flatnonzero(sieve), sieve.sum()


@program(lambda rng: (rng.uniform(0, 1, size=4),), smooth=0)
def inclusion_exclusion(probabilities):
    """The probability of any of several independent events."""
    total = 0.0
    for k in range(1, len(probabilities) + 1):
        for chosen in combinations(probabilities, k):
            total += (-1) ** (k + 1) * np.prod(chosen)
    return total


@program(lambda rng: (rng.uniform(0.2, 0.8),), smooth=0)
def coin_runs(p, n=8):
    """The chance of a run of three heads, by a memoised recursion."""

    @lru_cache(maxsize=None)
    def chance(left, run):
        if run == 3:
            return 1.0
        if left == 0:
            return 0.0
        return p * chance(left - 1, run + 1) + (1 - p) * chance(left - 1, 0)

    return chance(n, 0)


@program(lambda rng: (rng.uniform(1, 3, size=7),), smooth=0)
def matrix_chain(sizes):
    """The soft cost of the best order of a product of matrices."""
    n = len(sizes) - 1
    cost = [[0.0] * n for _ in range(n)]
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            options = [
                cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                for k in range(i, j)
            ]
            cost[i][j] = -np.log(np.sum(np.exp(-np.array(options))))
    return cost[0][-1]


@program(lambda rng: (rng.integers(1, 50, size=6),), branches=True)
def huffman_lengths(counts):
    """The lengths of the codes of letters, by merging the two rarest groups."""
    heap = [[count, [letter, ""]] for letter, count in enumerate(counts)]
    heapq.heapify(heap)
    while len(heap) > 1:
        low, high = heapq.heappop(heap), heapq.heappop(heap)
        for pair in low[1:]:
            pair[1] = "0" + pair[1]
        for pair in high[1:]:
            pair[1] = "1" + pair[1]
        heapq.heappush(heap, [low[0] + high[0], *low[1:], *high[1:]])
    return [len(code) for _, code in sorted(heap[0][1:])]


@program(lambda rng: (rng.normal(size=(4, 5)), 2), branches=True)
def beam_search(scores, width):
    """The best sequences, of which each step keeps a few."""
    beams = [((), 0.0)]
    for row in scores:
        longer = [((*s, i), total + row[i]) for s, total in beams for i in range(len(row))]
        beams = sorted(longer, key=lambda beam: -beam[1])[:width]
    return [list(s) for s, _ in beams], [total for _, total in beams]


def orders(items, start=0):
    """All orders of an array, which is changed in place and restored."""
    if start == len(items):
        yield items.copy()
    for i in range(start, len(items)):
        items[[start, i]] = items[[i, start]]
        yield from orders(items, start + 1)
        items[[start, i]] = items[[i, start]]


@program(lambda rng: (rng.uniform(1, 9, size=(4, 4)),), smooth=0, branches=True)
def shortest_order(distances):
    """The shortest path through four places."""
    ways = (sum(distances[p[i], p[i + 1]] for i in range(3)) for p in orders(np.arange(4)))
    return min(ways)


@program(lambda rng: (rng.integers(0, 3, size=9),), branches=True)
def run_lengths(values):
    """Runs of equal values, and their text."""
    runs = []
    for value in values:
        match runs:
            case [*_, [last, count]] if last == value:
                runs[-1][1] = count + 1
            case _:
                runs.append([int(value), 1])
    return runs, "".join(f"{count}x{value};" for value, count in runs)

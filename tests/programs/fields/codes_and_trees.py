"""Machines, codes, alignments and trees: programs of decisions on integers, dicts and tuples."""

import collections
import functools
import heapq
import itertools
import math
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from tests.programs.table import program


class Op(IntEnum):
    PUSH = 0
    ADD = 1
    MUL = 2
    DUP = 3
    SWAP = 4
    JNZ = 5
    DEC = 6
    STORE = 7
    LOAD = 8
    HALT = 9


@dataclass
class Machine:
    memory: np.ndarray
    stack: list = field(default_factory=list)
    counter: int = 0
    steps: int = 0

    def run(self, code, limit=200):
        while self.steps < limit:
            op, arg = code[self.counter]
            self.counter += 1
            self.steps += 1
            match Op(op):
                case Op.PUSH:
                    self.stack.append(arg)
                case Op.ADD:
                    self.stack.append(self.stack.pop() + self.stack.pop())
                case Op.MUL:
                    b, a = self.stack.pop(), self.stack.pop()
                    self.stack.append(a * b)
                case Op.DUP:
                    self.stack.append(self.stack[-1])
                case Op.SWAP:
                    self.stack[-1], self.stack[-2] = self.stack[-2], self.stack[-1]
                case Op.STORE:
                    self.memory[int(arg)] = self.stack.pop()
                case Op.LOAD:
                    self.stack.append(self.memory[int(arg)])
                case Op.DEC:
                    self.stack[-1] -= 1
                case Op.JNZ:
                    if self.stack[-1] != 0:
                        self.counter = int(arg)
                case Op.HALT:
                    break
        return self.stack


@program(
    lambda rng: (rng.normal(size=4), float(rng.uniform(0.5, 2.0)), int(rng.integers(2, 6))),
    smooth=0,
    branches=True,
)
def stack_machine(memory, factor, n):
    """A stack machine that multiplies in a loop; its memory is an argument."""
    code = [
        (Op.PUSH, n),
        (Op.LOAD, 1),
        (Op.PUSH, factor),
        (Op.MUL, 0),
        (Op.STORE, 1),
        (Op.DEC, 0),
        (Op.JNZ, 1),
        (Op.LOAD, 1),
        (Op.LOAD, 0),
        (Op.ADD, 0),
        (Op.HALT, 0),
    ]
    machine = Machine(memory.copy())
    stack = machine.run(code)
    return {"stack": stack, "memory": machine.memory, "steps": machine.steps}


ZIGZAG = sorted(
    itertools.product(range(8), repeat=2), key=lambda p: (sum(p), p[0] if sum(p) % 2 else p[1])
)


def _cosines():
    n, k = np.arange(8), np.arange(8)[:, None]
    table = np.cos(np.pi * (2 * n + 1) * k / 16) * 0.5
    table[0] /= np.sqrt(2)
    return table


@program(lambda rng: (rng.integers(0, 256, size=(16, 16)).astype(np.uint8), 20.0), branches=True)
def picture_codec(image, step):
    """Blocks of cosines, quantised, run lengths of their zeros, and the picture again."""
    basis = _cosines()
    out = np.zeros_like(image)
    runs = []
    for y in range(0, image.shape[0], 8):
        for x in range(0, image.shape[1], 8):
            block = image[y : y + 8, x : x + 8].astype(np.float64) - 128
            levels = np.rint(basis @ block @ basis.T / step).astype(int)
            line = [levels[p] for p in ZIGZAG]
            for zero, group in itertools.groupby(line, key=lambda v: v == 0):
                runs.append(len(list(group)) if zero else -1)
            restored = np.zeros((8, 8))
            for place, level in zip(ZIGZAG, line):
                restored[place] = level * step
            out[y : y + 8, x : x + 8] = np.clip(basis.T @ restored @ basis + 128, 0, 255).round()
    error = out.astype(float) - image
    psnr = 10 * np.log10(255**2 / np.mean(error**2)) if error.any() else math.inf
    return out, len(runs), float(psnr)


@program(lambda rng: (rng.integers(0, 6, size=40),), branches=True)
def huffman(symbols):
    """A prefix code from a heap of counts, and the mean length of a word."""
    counts = collections.Counter(symbols.tolist())
    heap = [(count, symbol, (symbol,)) for symbol, count in counts.items()]
    heapq.heapify(heap)
    lengths = dict.fromkeys(counts, 0)
    while len(heap) > 1:
        (m, a, left), (n, b, right) = heapq.heappop(heap), heapq.heappop(heap)
        for symbol in left + right:
            lengths[symbol] += 1
        heapq.heappush(heap, (m + n, min(a, b), left + right))
    codes, code, last = {}, 0, 0
    for symbol, length in sorted(lengths.items(), key=lambda item: (item[1], item[0])):
        code <<= length - last
        codes[symbol] = format(code, f"0{length}b")
        code, last = code + 1, length
    text = "".join(codes[s] for s in symbols.tolist())
    return codes, len(text) / len(symbols), sum(2.0**-n for n in lengths.values())


@program(
    lambda rng: (rng.integers(0, 256, size=11).astype(np.uint8), int(rng.integers(0, 17))),
    branches=True,
)
def reed_solomon(message, place):
    """Parity bytes over a field of 256 elements, and the syndromes of a damaged word."""
    exps, logs = np.zeros(512, dtype=np.int64), np.zeros(256, dtype=np.int64)
    value = 1
    for i in range(255):
        exps[i], logs[value] = value, i
        value <<= 1
        if value & 0x100:
            value ^= 0x11D
    exps[255:510] = exps[:255]

    def times(a, b):
        return 0 if a == 0 or b == 0 else int(exps[logs[a] + logs[b]])

    generator = [1]
    for i in range(6):
        longer = [0] * (len(generator) + 1)
        for j, c in enumerate(generator):
            longer[j] ^= c
            longer[j + 1] ^= times(c, int(exps[i]))
        generator = longer
    rest = np.concatenate([message, np.zeros(6, dtype=np.uint8)]).astype(np.int64)
    for i in range(message.size):
        lead = int(rest[i])
        if lead:
            for j, c in enumerate(generator):
                rest[i + j] ^= times(c, lead)
    word = np.concatenate([message.astype(np.int64), rest[message.size :]])
    word[place] ^= 0x55
    syndromes = [
        functools.reduce(lambda s, c: times(s, int(exps[i])) ^ int(c), word, 0) for i in range(6)
    ]
    return word, syndromes


@program(
    lambda rng: (rng.integers(0, 4, size=9), rng.integers(0, 4, size=11), -2.0, -0.5), branches=True
)
def local_alignment(first, second, opening, extending):
    """Smith and Waterman's alignment with affine gaps, by three tables and a way back."""
    m, n = len(first), len(second)
    best = np.zeros((m + 1, n + 1))
    up = np.full((m + 1, n + 1), -np.inf)
    left = np.full((m + 1, n + 1), -np.inf)
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            up[i, j] = max(best[i - 1, j] + opening, up[i - 1, j] + extending)
            left[i, j] = max(best[i, j - 1] + opening, left[i, j - 1] + extending)
            match = best[i - 1, j - 1] + (2.0 if first[i - 1] == second[j - 1] else -1.0)
            best[i, j] = max(0.0, match, up[i, j], left[i, j])
    i, j = np.unravel_index(best.argmax(), best.shape)
    pairs = []
    while i > 0 and j > 0 and best[i, j] > 0:
        if best[i, j] == up[i, j]:
            i -= 1
        elif best[i, j] == left[i, j]:
            j -= 1
        else:
            pairs.append((int(i) - 1, int(j) - 1))
            i, j = i - 1, j - 1
    return best.max(), pairs[::-1]


@program(lambda rng: (np.abs(rng.normal(size=(5, 5))) + 1.0,), smooth=None, branches=True)
def neighbour_joining(noise):
    """A tree from distances: the closest pair is joined until two nodes are left."""
    distances = (noise + noise.T) / 2
    np.fill_diagonal(distances, 0.0)
    names = [chr(97 + i) for i in range(len(distances))]
    lengths = {}
    while len(names) > 2:
        n = len(names)
        total = distances.sum(axis=0)
        scores = (n - 2) * distances - total[:, None] - total[None, :]
        np.fill_diagonal(scores, np.inf)
        i, j = np.unravel_index(np.argmin(scores), scores.shape)
        i, j = min(i, j), max(i, j)
        half = 0.5 * distances[i, j] + (total[i] - total[j]) / (2 * (n - 2))
        lengths[names[i]], lengths[names[j]] = half, distances[i, j] - half
        joined = 0.5 * (distances[i] + distances[j] - distances[i, j])
        keep = [k for k in range(n) if k not in (i, j)]
        smaller = np.zeros((n - 1, n - 1))
        smaller[:-1, :-1] = distances[np.ix_(keep, keep)]
        smaller[-1, :-1] = smaller[:-1, -1] = joined[keep]
        names = [names[k] for k in keep] + [f"({names[i]},{names[j]})"]
        distances = smaller
    return names, lengths, distances[0, 1]


@program(lambda rng: (rng.integers(0, 10, size=(6, 6)).astype(float),), branches=True)
def largest_flow(capacities):
    """A flow along breadth-first ways, and the cut that proves it."""
    rest = capacities.copy()
    np.fill_diagonal(rest, 0)
    source, sink, total = 0, len(rest) - 1, 0.0
    for _ in range(30):
        parent = {source: None}
        queue = collections.deque([source])
        while queue and sink not in parent:
            u = queue.popleft()
            for v in np.flatnonzero(rest[u] > 1e-9):
                if int(v) not in parent:
                    parent[int(v)] = u
                    queue.append(int(v))
        if sink not in parent:
            break
        way, v = [], sink
        while parent[v] is not None:
            way.append((parent[v], v))
            v = parent[v]
        amount = min(rest[e] for e in way)
        for u, v in way:
            rest[u, v] -= amount
            rest[v, u] += amount
        total += amount
    return total, sorted(parent)


class KdNode(NamedTuple):
    point: np.ndarray
    axis: int
    left: "KdNode | None"
    right: "KdNode | None"


def _kd_tree(points, depth=0):
    if len(points) == 0:
        return None
    axis = depth % points.shape[1]
    points = points[points[:, axis].argsort(kind="stable")]
    mid = len(points) // 2
    return KdNode(
        points[mid], axis, _kd_tree(points[:mid], depth + 1), _kd_tree(points[mid + 1 :], depth + 1)
    )


def _nearest(node, target, best=(math.inf, None)):
    if node is None:
        return best
    gap = float(((node.point - target) ** 2).sum())
    if gap < best[0]:
        best = (gap, node.point)
    side = target[node.axis] - node.point[node.axis]
    near, far = (node.left, node.right) if side < 0 else (node.right, node.left)
    best = _nearest(near, target, best)
    if side * side < best[0]:
        best = _nearest(far, target, best)
    return best


@program(lambda rng: (rng.normal(size=(9, 2)), rng.normal(size=(3, 2))), smooth=1, branches=True)
def nearest_in_a_tree(points, targets):
    """Nearest neighbours by a tree of named tuples."""
    tree = _kd_tree(points)
    found = [_nearest(tree, target) for target in targets]
    return [gap for gap, _ in found], np.array([point for _, point in found])

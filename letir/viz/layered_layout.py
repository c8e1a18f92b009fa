"""Layers of boxes: a layout of acyclic graphs, after Sugiyama, Tagawa and Toda (1981).

Boxes are put into layers by longest paths, so that edges lead downwards. An edge over several
layers passes through a gap in each of them. The order within layers is improved by barycentres;
then the boxes of a layer move as near to their neighbours as possible, without overlapping and
without changing their order.
"""

from collections.abc import Sequence

from attrs import define, field, frozen

_GAP = 18.0  # between boxes of a layer
_PASSING = 10.0  # the width of the gap through which edges pass
_SWEEPS = 4


@frozen
class Layout:
    """The centre of each box, the points through which each edge passes, and the whole size."""

    centers: tuple[tuple[float, float], ...]
    ways: dict[tuple[int, int], tuple[tuple[float, float], ...]]
    width: float
    height: float


def layered_layout(
    sizes: Sequence[tuple[float, float]],
    edges: Sequence[tuple[int, int]],
    *,
    between: float = 34.0,
    sunk: Sequence[int] = (),
) -> Layout:
    """The layout of boxes of these sizes (width, height).

    Edges lead from a box to one with a larger number. ``between``: the space between layers.
    ``sunk``: boxes without edges to them, which stand directly above their first user.
    """
    graph = _Graph.from_edges(sizes, sorted(set(edges)), sunk)
    for _ in range(_SWEEPS):
        graph.order(graph.above, downwards=True)
        graph.order(graph.below, downwards=False)
    for neighbours, downwards in ((graph.above, True), (graph.below, False), (graph.above, True)):
        graph.place(neighbours, downwards)
    return graph.layout(sizes, between)


@define(eq=False)
class _Graph:
    """Boxes and gaps in layers; gaps have numbers after those of the boxes."""

    widths: list[float]
    layer_of: list[int]
    above: list[list[int]]
    below: list[list[int]]
    chains: dict[tuple[int, int], list[int]]  # the gaps of each edge
    layers: list[list[int]] = field(factory=list)
    x: list[float] = field(factory=list)

    @classmethod
    def from_edges(
        cls, sizes: Sequence[tuple[float, float]], edges: list[tuple[int, int]], sunk: Sequence[int]
    ) -> "_Graph":
        """The graph with each box in its layer, and gaps for long edges."""
        layer_of = [0] * len(sizes)
        for a, b in edges:  # sorted, so that all edges to a box come before those from it
            layer_of[b] = max(layer_of[b], layer_of[a] + 1)
        for a in sunk:
            users = [layer_of[b] for start, b in edges if start == a]
            layer_of[a] = max(min(users, default=1) - 1, 0)
        n = len(sizes)
        graph = cls(
            [w for w, _ in sizes], layer_of, [[] for _ in range(n)], [[] for _ in range(n)], {}
        )
        passing: dict[tuple[int, int], int] = {}  # (box, layer) -> the gap of its edges there
        for a, b in edges:
            chain = []
            for layer in range(layer_of[a] + 1, layer_of[b]):
                if (a, layer) not in passing:
                    passing[a, layer] = graph.add_gap(layer)
                chain.append(passing[a, layer])
            graph.chains[a, b] = chain
            for upper, lower in zip([a, *chain], [*chain, b], strict=True):
                if lower not in graph.below[upper]:
                    graph.below[upper].append(lower)
                    graph.above[lower].append(upper)
        for node, layer in enumerate(graph.layer_of):
            while len(graph.layers) <= layer:
                graph.layers.append([])
            graph.layers[layer].append(node)
        graph.x = [0.0] * len(graph.widths)
        graph.place(graph.above, True)
        return graph

    def add_gap(self, layer: int) -> int:
        """A gap in a layer, through which edges pass."""
        self.widths.append(_PASSING)
        self.layer_of.append(layer)
        self.above.append([])
        self.below.append([])
        return len(self.widths) - 1

    def order(self, neighbours: list[list[int]], downwards: bool) -> None:
        """Sort each layer by the mean position of the neighbours in the previous layer."""
        rank = {node: i for layer in self.layers for i, node in enumerate(layer)}
        for layer in self.layers if downwards else reversed(self.layers):
            means = {
                node: sum([rank[other] for other in neighbours[node]]) / len(neighbours[node])
                if neighbours[node]
                else float(rank[node])
                for node in layer
            }
            layer.sort(key=means.__getitem__)
            rank.update({node: i for i, node in enumerate(layer)})

    def place(self, neighbours: list[list[int]], downwards: bool) -> None:
        """Move the boxes of each layer towards their neighbours, without changing the order."""
        for layer in self.layers if downwards else reversed(self.layers):
            targets = []
            for node in layer:
                centers = [self.x[other] for other in neighbours[node]]
                targets.append(sum(centers) / len(centers) if centers else self.x[node])
            offsets, at = [], 0.0
            for i, node in enumerate(layer):
                if i:
                    at += (self.widths[layer[i - 1]] + self.widths[node]) / 2 + _GAP
                offsets.append(at)
            shifts = _isotonic([w - o for w, o in zip(targets, offsets, strict=True)])
            for node, shift, offset in zip(layer, shifts, offsets, strict=True):
                self.x[node] = shift + offset

    def layout(self, sizes: Sequence[tuple[float, float]], between: float) -> Layout:
        """The layout, with the left edge at 0."""
        left = min([x - w / 2 for x, w in zip(self.x, self.widths, strict=True)], default=0.0)
        right = max([x + w / 2 for x, w in zip(self.x, self.widths, strict=True)], default=0.0)
        n, tops, heights, y = len(sizes), [], [], 0.0
        for layer in self.layers:
            heights.append(max([sizes[node][1] for node in layer if node < n], default=0.0))
            tops.append(y)
            y += heights[-1] + between
        middles = [top + height / 2 for top, height in zip(tops, heights, strict=True)]
        centers = tuple([(self.x[i] - left, middles[self.layer_of[i]]) for i in range(n)])
        ways = {}
        for edge, chain in self.chains.items():
            points: list[tuple[float, float]] = []
            for gap in chain:
                at = self.layer_of[gap]
                points.append((self.x[gap] - left, tops[at]))
                points.append((self.x[gap] - left, tops[at] + heights[at]))
            ways[edge] = tuple(points)
        return Layout(centers, ways, right - left, max(y - between, 0.0))


def _isotonic(values: list[float]) -> list[float]:
    """The nondecreasing sequence nearest to ``values``, by pooling adjacent violators."""
    blocks: list[tuple[float, int]] = []  # (mean, length)
    for value in values:
        mean, length = value, 1
        while blocks and blocks[-1][0] > mean:
            other, n = blocks.pop()
            mean, length = (other * n + mean * length) / (n + length), n + length
        blocks.append((mean, length))
    return [mean for mean, length in blocks for _ in range(length)]

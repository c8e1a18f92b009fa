"""The residuals of fewest bytes, as a minimum cut of the forward pass.

A value is a vertex whose capacity is its bytes. The source leads to values that must not be
recomputed, and values that the backward pass reads lead to the sink; the values on a cut are the
residuals. Of all minimum cuts, the one nearest to the sink recomputes the least.
"""

from typing import TYPE_CHECKING

from letir.ast.terms import Bind, Local
from letir.errors import LetirError

if TYPE_CHECKING:
    from letir.ad.remat.policies import ResidualChoice

# segments, because networkx takes more than linear time for a cut
SEGMENT = 2000  # binds in the graph of one cut


def minimum_cut(choice: "ResidualChoice", kept: set[Local]) -> set[Local]:
    """The residuals ``kept``, minimised segment by segment while the other segments stay fixed.

    ``choice`` (a ``ResidualChoice`` of ``policies``) says what may be recomputed and how many bytes
    values have. No segment gets more bytes than it had. Needs networkx.
    """
    kept = set(kept)
    available = kept.difference(choice.parts.producers)  # the inputs
    reads = _reads_by_segment(choice, kept)
    # in order: what a segment can recompute depends on the residuals of the segments before it
    for number, start in enumerate(range(0, len(choice.graded), SEGMENT)):
        segment = choice.graded[start : start + SEGMENT]
        inside = {b for bind, _ in segment for b in bind.binders}
        graph = _segment_graph(choice, segment, available, reads.get(number, {}))
        cut = _nearest_cut(graph)
        kept.difference_update(inside)
        kept |= cut
        available |= cut - inside
        for bind, grade in segment:
            if choice.allows(grade) and available.issuperset(bind.locals()):
                available.update(bind.binders)
            else:
                available.update(b for b in bind.binders if b in kept)
    return kept


def _reads_by_segment(choice, kept: set[Local]) -> dict[int, dict[Local, None]]:
    """For each segment, its values that the backward pass or a later segment reads."""
    parts = choice.parts
    _, recomputed = parts.needed(kept)
    place = {b: i // SEGMENT for i, bind in enumerate(parts.primal_binds) for b in bind.binders}
    result: dict[int, dict[Local, None]] = {}
    for local in parts.read:
        if local in place:
            result.setdefault(place[local], {})[local] = None
    for bind in recomputed.values():
        own = place[bind.binders[0]]
        for local in bind.locals():
            if place.get(local, own) < own:  # uses in the same segment are edges of its graph
                result.setdefault(place[local], {})[local] = None
    return result


def _networkx_module():
    """networkx, or an error that says how to get it."""
    try:
        import networkx
    except ImportError:
        raise LetirError(
            "exact=True finds a minimum cut with networkx, which is not installed\n"
            "  pip install 'letir[residuals]', or leave exact out"
        ) from None
    return networkx


def _segment_graph(
    choice, segment: list[tuple[Bind, int | None]], available: set[Local], targets: dict
):
    """The graph of a segment: a value is an edge from "in" to "out" with its bytes as capacity."""
    graph = _networkx_module().DiGraph()
    graph.add_nodes_from(("source", "sink"))
    producers = {b: (bind, choice.allows(grade)) for bind, grade in segment for b in bind.binders}
    stack, visited = list(targets), set(targets)
    graph.add_edges_from(((local, "out"), "sink") for local in stack)
    while stack:
        local = stack.pop()
        # a vertex with a capacity is split by an edge with it (Ford and Fulkerson, 1962); for
        # networkx, an edge without ``capacity`` has infinite capacity
        into, out = (local, "in"), (local, "out")
        if choice.may_keep(local):
            graph.add_edge(into, out, capacity=choice.weight(local))
        else:
            graph.add_edge(into, out)
        bind, allowed = producers.get(local, (None, False))
        if not allowed:
            graph.add_edge("source", into)
            continue
        for operand in bind.locals():
            if operand not in available:  # available values need no residual
                graph.add_edge((operand, "out"), into)
                if operand not in visited:
                    visited.add(operand)
                    stack.append(operand)
    return graph


def _nearest_cut(graph) -> set[Local]:
    """The values on the minimum cut nearest to the sink.

    networkx returns this cut: its side of the sink is as small as possible.
    """
    _, (_, near) = _networkx_module().minimum_cut(graph, "source", "sink")
    ends = [node for node in near if node != "sink" and node[1] == "out"]
    return {local for local, _ in ends if (local, "in") not in near}

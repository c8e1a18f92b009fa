"""The fewest bytes that a gradient can keep, as a minimum cut of its forward part.

A value is a vertex that costs its bytes to cut. What must not be computed again and is not kept
before flows in from the source, what the linear part reads flows out into the sink; every path is
cut at a value that is kept. The nearest cut to the sink computes the least again.
"""

from letir.ast.terms import Bind, Local
from letir.errors import LetirError

# networkx takes more than linear time for a cut: segments keep the whole about linear
SEGMENT = 2000  # binds that one cut looks at


def minimum_cut(choice, kept: set[Local]) -> set[Local]:
    """``kept`` with the fewest bytes, segment by segment while the rest stays as it is.

    ``choice`` (``letir.ad.remat.policies.Choice``) says what may be computed again and what values
    weigh.
    Every segment is left with no more bytes than it had. Needs networkx.
    """
    kept = set(kept)
    available = kept.difference(choice.parts.producers)  # inputs: kept without a choice
    wanted = _wanted_by_segment(choice, kept)
    # from front to back: what a segment can compute again depends on what those before it keep
    for number, start in enumerate(range(0, len(choice.graded), SEGMENT)):
        segment = choice.graded[start : start + SEGMENT]
        inside = {b for bind, _ in segment for b in bind.binders}
        graph = _segment_graph(choice, segment, available, wanted.get(number, {}))
        found = _nearest_cut(graph)
        kept.difference_update(inside)
        kept |= found
        available |= found - inside
        for bind, grade in segment:
            if choice.allows(grade) and available.issuperset(bind.locals()):
                available.update(bind.binders)
            else:
                available.update(b for b in bind.binders if b in kept)
    return kept


def _wanted_by_segment(choice, kept: set[Local]) -> dict[int, dict[Local, None]]:
    """For each segment the values that the linear part or a later segment reads of it."""
    parts = choice.parts
    _, again = parts.needed(kept)
    place = {b: i // SEGMENT for i, bind in enumerate(parts.known) for b in bind.binders}
    found: dict[int, dict[Local, None]] = {}
    for local in parts.read:
        if local in place:
            found.setdefault(place[local], {})[local] = None
    for bind in again.values():
        own = place[bind.binders[0]]
        for local in bind.locals():
            if place.get(local, own) < own:  # in its own segment the graph sees the use
                found.setdefault(place[local], {})[local] = None
    return found


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
    choice, segment: list[tuple[Bind, int | None]], available: set[Local], wanted: dict
):
    """The graph of a segment: values are edges from "in" to "out", which cost their bytes."""
    graph = _networkx_module().DiGraph()
    graph.add_nodes_from(("source", "sink"))
    made = {b: (bind, choice.allows(grade)) for bind, grade in segment for b in bind.binders}
    stack, seen = list(wanted), set(wanted)
    graph.add_edges_from(((local, "out"), "sink") for local in stack)
    while stack:
        local = stack.pop()
        # a vertex with a capacity is an edge with one (Ford and Fulkerson, 1962); networkx takes
        # an edge without ``capacity`` for one that no cut can afford
        into, out = (local, "in"), (local, "out")
        if choice.may_keep(local):
            graph.add_edge(into, out, capacity=choice.weight(local))
        else:
            graph.add_edge(into, out)
        bind, allowed = made.get(local, (None, False))
        if not allowed:
            graph.add_edge("source", into)
            continue
        for operand in bind.locals():
            if operand not in available:  # what is there already costs nothing
                graph.add_edge((operand, "out"), into)
                if operand not in seen:
                    seen.add(operand)
                    stack.append(operand)
    return graph


def _nearest_cut(graph) -> set[Local]:
    """The values at which the minimum cut cuts that is nearest to the sink.

    networkx puts on the side of the sink only what must be there.
    """
    _, (_, near) = _networkx_module().minimum_cut(graph, "source", "sink")
    ends = [node for node in near if node != "sink" and node[1] == "out"]
    return {local for local, _ in ends if (local, "in") not in near}

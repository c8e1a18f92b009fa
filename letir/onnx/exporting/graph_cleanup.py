"""The end of an export: names of results, and nodes that no result needs."""

from collections.abc import Iterator, Sequence
from typing import Any

from letir.onnx.exporting.node_graph import Graph


def name_results(g: Graph, results: Sequence[str], outputs: Sequence[str]) -> None:
    """Give the results their names, and drop the nodes and arrays that they do not need.

    A result that is an input, a constant array, or another result gets an Identity node.
    """
    inner = {name for node in g.nodes for name in _names_read_in_subgraphs(node)}
    node_outputs = {name for node in g.nodes for name in node.output}
    new: dict[str, str] = {}
    g.bind = None
    for result, output in zip(results, outputs, strict=True):
        if result in node_outputs and result not in new and result not in inner:
            new[result] = output
        else:
            g.append("Identity", [result], [output], "", {})
    for node in g.nodes:
        _rename_values(node.input, new)
        _rename_values(node.output, new)
    _keep_needed(g, outputs)


def _rename_values(names: Any, new: dict[str, str]) -> None:
    """Replace names in a field of a node."""
    if any(name in new for name in names):
        names[:] = [new.get(name, name) for name in names]


def _keep_needed(g: Graph, outputs: Sequence[str]) -> None:
    """Drop the nodes and initializers on which no output depends."""
    live, needed = set(outputs), []
    for node in reversed(g.nodes):
        if not live.isdisjoint(node.output):
            live.update(node.input, _names_read_in_subgraphs(node))
            needed.append(node)
    g.nodes[:] = reversed(needed)
    g.initializers[:] = [array for array in g.initializers if array.name in live]


def _names_read_in_subgraphs(node: Any) -> Iterator[str]:
    """The names that the subgraphs of a node read, including names of their own values."""
    pending = [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    while pending:
        graph = pending.pop()
        for inner in graph.node:
            yield from inner.input
            pending += [a.g for a in inner.attribute if a.HasField("g")]

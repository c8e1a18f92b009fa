"""Scans over the cells of ``letir.nn`` as one node: LSTM, GRU and RNN.

A scan is such a node if its body is, bind by bind, what the cell records. Runtimes have these nodes
in single precision only.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast.attrs import Attrs
from letir.ast.sizes.size import Size
from letir.ast.terms import Arg, Bind, Const, Lambda, Local
from letir.ast.types import ShapeDtype
from letir.nn.recurrent import gru_cell, lstm_cell, rnn_cell
from letir.onnx.exporting.node_graph import Graph
from letir.tracing.entry import trace


@frozen
class Cell:
    """A cell of ``letir.nn``, and the node that repeats it."""

    kind: str
    states: int
    order: tuple[int, ...]  # for each gate of the node, its place among the gates of the cell
    step: Callable
    attrs: tuple[tuple[str, Any], ...] = ()


_CELLS = (
    Cell("LSTM", 2, (0, 3, 1, 2), lstm_cell),
    Cell("GRU", 1, (1, 0, 2), gru_cell, (("linear_before_reset", 1),)),
    Cell("RNN", 1, (0,), rnn_cell, (("activations", ["Tanh"]),)),
    Cell("RNN", 1, (0,), partial(rnn_cell, nonlinearity="relu"), (("activations", ["Relu"]),)),
)
_templates: list[tuple[Cell, tuple[bool, ...], Lambda]] = []  # recorded once


def recurrent_layer(bind: Bind) -> Callable[[Graph], list[str]] | None:
    """A function that appends a scan over a cell as one node; None for another scan."""
    bind, constants = _with_constants_outside(bind)
    body, n_carry, n_xs = (bind.attrs[name] for name in ("body", "n_carry", "n_xs"))
    rows = bind.args[n_carry : n_carry + n_xs]
    avals = [arg.type for arg in bind.args]
    if any(aval is None or aval.dtype != np.float32 for aval in avals):
        return None
    if n_xs != 1 or rows[0].type.ndim != 3 or not _may_have_rows(rows[0].type.shape[0]):
        return None
    for cell, biased, template in _all_templates():
        pairs = _match_template(template, body) if cell.states == n_carry else None
        if pairs is not None and _is_layer(cell, biased, pairs, template, body):
            params = [pairs[param] for param in template.params]
            return partial(_layer_node, bind, constants, cell, biased, params)
    return None


def _with_constants_outside(bind: Bind) -> tuple[Bind, dict[Local, np.ndarray]]:
    """(the scan with the constants of its body as further operands, these constants)."""
    body = bind.attrs["body"]
    constant_binds = [inner for inner in body.binds if inner.op.role == "constant"]
    if not constant_binds:
        return bind, {}
    constants = {inner.binders[0]: inner.attrs["value"] for inner in constant_binds}
    binds = [inner for inner in body.binds if inner.op.role != "constant"]
    outer = Lambda((*body.params, *constants), tuple(binds), body.ret)
    attrs = Attrs({**bind.attrs, "body": outer})
    return bind.replace(args=(*bind.args, *constants), attrs=attrs), constants


def _all_templates() -> Sequence[tuple[Cell, tuple[bool, ...], Lambda]]:
    """The records of each cell, with and without biases."""
    if not _templates:
        for cell, biased in product(_CELLS, product((True, False), repeat=2)):
            gates = 3 * len(cell.order)
            shapes: list[tuple[int, ...]] = [
                (2, 5),
                *[(2, 3)] * cell.states,
                (gates, 5),
                (gates, 3),
            ]
            shapes += [(gates,)] * sum(biased)
            kinds = [ShapeDtype(shape, np.float32) for shape in shapes]
            _templates.append((cell, biased, trace(partial(_cell_step, cell, biased), *kinds)))
    return _templates


def _cell_step(cell: Cell, biased: tuple[bool, ...], x: Any, *arrays: Any) -> Any:
    """One step of a cell, whose given biases come last."""
    count = cell.states + 2
    remaining = iter(arrays[count:])
    biases = [next(remaining) if has_bias else None for has_bias in biased]
    return cell.step(x, *arrays[:count], *biases)


def _match_template(template: Lambda, body: Lambda) -> dict[Local, Local] | None:
    """The local of ``body`` for each local of ``template``; None if their binds differ."""
    if len(template.binds) != len(body.binds):
        return None
    result: dict[Local, Local] = {}
    for expected, actual in zip(template.binds, body.binds, strict=True):
        same = expected.op is actual.op and expected.attrs == actual.attrs
        if not same or len(expected.args) != len(actual.args):
            return None
        for x, y in zip(expected.args, actual.args, strict=True):
            if not _is_same_operand(x, y, result):
                return None
        result.update(zip(expected.binders, actual.binders, strict=True))
    is_one_to_one = len(set(result.values())) == len(result)
    return result if is_one_to_one and all(p in result for p in template.params) else None


def _is_same_operand(x: Arg, y: Arg, pairs: dict[Local, Local]) -> bool:
    if type(x) is Const:
        return type(y) is Const and x.value == y.value
    return type(y) is Local and pairs.setdefault(x, y) is y


def _is_layer(cell: Cell, biased: tuple, pairs: dict, template: Lambda, body: Lambda) -> bool:
    """Whether a body reads rows, states and weights as the node does, and stacks states h."""
    x, *rest = [pairs[param] for param in template.params]
    states, weights = rest[: cell.states], rest[cell.states :]
    new_states = [pairs[arg] for arg in template.ret.args]
    places = [body.params.index(state) for state in states]
    carried, stacked = body.ret.args[: cell.states], body.ret.args[cell.states :]
    return (
        x is body.params[cell.states]
        and sorted(places) == list(range(cell.states))
        and all(carried[place] is new for place, new in zip(places, new_states, strict=True))
        and all(arg is new_states[0] for arg in stacked)
        and all(body.params.index(weight) > cell.states for weight in weights)
    )


def _layer_node(
    bind: Bind,
    constants: dict[Local, np.ndarray],
    cell: Cell,
    biased: tuple[bool, ...],
    params: Sequence[Local],
    g: Graph,
) -> list[str]:
    """The node, whose arrays have an axis of directions."""
    g.values.update({local: g.array(value) for local, value in constants.items()})
    body = bind.attrs["body"]
    args = [bind.args[body.params.index(param)] for param in params]
    x, *rest = [g.operand(arg) for arg in args]
    count = cell.states
    states, weights, biases = rest[:count], rest[count : count + 2], rest[count + 2 :]
    w, r = (_with_direction(g, _reorder_gates(g, weight, cell.order)) for weight in weights)
    bias = _joint_biases(g, cell, biased, biases, args[cell.states + 1].type.shape[0])
    first = [g.unsqueeze(state, [0]) for state in states]
    hidden = args[1].type.shape[-1]
    way = "reverse" if bind.attrs["reverse"] else "forward"
    rows, *last = g(
        *(cell.kind, x, w, r, bias, "", *first),
        results=1 + cell.states,
        hidden_size=hidden,
        direction=way,
        **dict(cell.attrs),
    )
    places = [body.params.index(param) for param in params[1 : 1 + cell.states]]
    initial = [""] * cell.states
    for place, name in zip(places, last, strict=True):
        initial[place] = g.squeeze(name, [0])
    count = len(bind.binders) - cell.states
    return [*initial, *[g.squeeze(rows, [1])] * count]


def _may_have_rows(count: int | Size) -> bool:
    return type(count) is Size or count > 0


def _reorder_gates(g: Graph, weight: str, order: Sequence[int]) -> str:
    """Weights with their gates in the order of the node."""
    if len(order) == 1:
        return weight
    parts = g("Split", weight, results=len(order), axis=0, num_outputs=len(order))
    return g("Concat", *[parts[i] for i in order], axis=0)


def _with_direction(g: Graph, name: str) -> str:
    return g.unsqueeze(name, [0])


def _joint_biases(g: Graph, cell: Cell, biased: tuple, names: Sequence[str], size: Any) -> str:
    """Both biases of the node in one array; an empty name without any."""
    if not any(biased):
        return ""
    remaining = iter(names)
    zeros = g("ConstantOfShape", g.ints([size]))  # of float32
    parts = [
        _reorder_gates(g, next(remaining), cell.order) if has_bias else zeros for has_bias in biased
    ]
    return _with_direction(g, g("Concat", *parts, axis=0))

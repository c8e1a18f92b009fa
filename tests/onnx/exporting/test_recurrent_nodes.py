"""Scans over the cells of letir.nn as nodes LSTM, GRU and RNN."""

import numpy as np
import pytest

import letir as lt
from letir import nn
from tests.onnx.running import assert_agrees, exported, kinds_of

CELLS = {
    "LSTM": (nn.lstm_cell, 2, 4),
    "GRU": (lambda *args: (nn.gru_cell(*args),), 1, 3),
    "RNN": (lambda *args: (nn.rnn_cell(*args),), 1, 1),
}


def layer(kind, *, biases=(True, True), reverse=False, relu=False):
    """A scan over a cell, as a function of (rows, states, weights, biases)."""
    cell, count, _ = CELLS[kind]

    def f(xs, *rest):
        states, (w, u), left = rest[:count], rest[count : count + 2], iter(rest[count + 2 :])
        given = [next(left) if there else None for there in biases]

        def step(states, x):
            if relu:
                new = (nn.rnn_cell(x, *states, w, u, *given, nonlinearity="relu"),)
            else:
                new = cell(x, *states, w, u, *given)
            return new, new[0]

        return lt.scan(step, states, xs, reverse=reverse)

    return f


def shapes_of(kind, rows, batch, biases=(True, True)):
    """The shapes of the operands of a layer with 3 inputs and 2 hidden units."""
    _, count, gates = CELLS[kind]
    weights = [(2 * gates, 3), (2 * gates, 2), *[(2 * gates,)] * sum(biases)]
    return [(rows, batch, 3), *[(batch, 2)] * count, *weights]


def check(kind, f, biases=(True, True), dtype=np.float32):
    """The kinds of the model's nodes, after its numbers were compared at several sizes."""
    program = lt.trace(f, *[lt.ShapeDtype(s, dtype) for s in shapes_of(kind, "t", "n", biases)])
    model = exported(program)
    rng = np.random.default_rng(0)
    for rows, batch in ((0, 2), (1, 1), (5, 3)):
        shapes = shapes_of(kind, rows, batch, biases)
        assert_agrees(model, program, [rng.normal(size=s).astype(dtype) for s in shapes])
    (chosen,) = [node for node in model.graph.node if node.op_type == "If"] or [None]
    return kinds_of(model) if chosen is None else kinds_of_branches(chosen)


def kinds_of_branches(node):
    """The operators in the branches of an If, which has one branch for no rows."""
    return [inner.op_type for attribute in node.attribute for inner in attribute.g.node]


def test_a_layer_of_known_length_is_not_inside_of_a_choice():
    program = lt.trace(
        layer("LSTM"), *[lt.ShapeDtype(s, np.float32) for s in shapes_of("LSTM", 4, "n")]
    )

    assert "LSTM" in kinds_of(exported(program))


@pytest.mark.parametrize("kind", CELLS)
@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_over_a_cell_is_one_node(kind, reverse):
    kinds = check(kind, layer(kind, reverse=reverse))

    assert kind in kinds
    assert not {"Scan", "Loop", "Tanh", "Sigmoid"} & set(kinds)


@pytest.mark.parametrize("biases", [(True, False), (False, True), (False, False)])
def test_biases_may_be_missing(biases):
    assert "GRU" in check("GRU", layer("GRU", biases=biases), biases)


def test_an_rnn_with_relu_and_states_in_another_order():
    def f(xs, h, c, w, u, b, v):
        def step(states, x):
            c, h = states
            h, c = nn.lstm_cell(x, h, c, w, u, b, v)
            return (c, h), (h, h)

        return lt.scan(step, (c, h), xs)

    assert "RNN" in check("RNN", layer("RNN", relu=True))
    assert "LSTM" in check("LSTM", f)


def test_another_body_and_double_precision_stay_loops():
    def f(xs, h, w, u, b, v):
        def step(h, x):
            new = nn.rnn_cell(x, h, w, u, b, v)
            return new * 0.5, new

        return lt.scan(step, h, xs)

    def swapped(xs, h, c, w, u, b, v):
        def step(states, x):
            h, c = nn.lstm_cell(x, *states, w, u, b, v)
            return (c, h), h  # the states change places

        return lt.scan(step, (h, c), xs)

    assert "Loop" in check("RNN", f)
    assert "Loop" in check("LSTM", swapped)
    assert "Loop" in check("LSTM", layer("LSTM"), dtype=np.float64)


@pytest.mark.parametrize("kind", CELLS)
def test_sequences_of_layers_with_constant_weights_are_one_node_each(kind):
    _, count, gates = CELLS[kind]
    rng = np.random.default_rng(0)
    weights = [
        [rng.normal(size=s).astype(np.float32) for s in ((2 * gates, n), (2 * gates, 2))]
        for n in (3, 2)
    ]
    states = [rng.normal(size=(2, 2, 2)).astype(np.float32) for _ in range(count)]
    sequence = {"LSTM": nn.lstm, "GRU": nn.gru, "RNN": nn.rnn}[kind]
    program = lt.trace(
        lambda x, *states: sequence(x, *states, weights),
        *[lt.ShapeDtype(("t", 2, 3), np.float32), *states],
    )
    model = exported(program)

    choices = [node for node in model.graph.node if node.op_type == "If"]
    assert 2 == sum(kind in kinds_of_branches(node) for node in choices) == len(choices)
    for rows in (1, 4):
        x = rng.normal(size=(rows, 2, 3)).astype(np.float32)
        assert_agrees(model, program, [x, *states])

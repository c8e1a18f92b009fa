"""Sequences of recurrent layers."""

import numpy as np
import optree
import pytest

import letir as lt
from letir import nn

SEQUENCES = {"rnn": (nn.rnn, 1, 1), "gru": (nn.gru, 3, 1), "lstm": (nn.lstm, 4, 2)}


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_symbolic_number_of_steps_is_a_loop_with_the_same_numbers_and_gradients(name):
    sequence, gates, count = SEQUENCES[name]
    rng = np.random.default_rng(0)
    layers = [[rng.normal(size=s) for s in ((2 * gates, n), (2 * gates, 2))] for n in (3, 2)]
    states = [rng.normal(size=(2, 4, 2)) for _ in range(count)]

    def total(x):
        leaves = optree.tree_leaves(sequence(x, *states, layers, dropout_rate=0.5, key=3))
        return sum((leaf**2).sum() for leaf in leaves)

    program = lt.trace(total, lt.ShapeDtype(("steps", 4, 3), float))

    assert 2 == [bind.op.name for bind in program.binds].count("scan")
    for steps in (1, 5):
        x = rng.normal(size=(steps, 4, 3))
        np.testing.assert_allclose(program(x), total(x), 1e-12)
        np.testing.assert_allclose(lt.grad(program)(x), lt.grad(total)(x), 1e-9, 1e-12)


def test_weights_without_a_row_for_each_gate_are_an_error():
    x, h, w = np.ones((1, 3)), np.zeros((1, 2)), np.ones((6, 3))

    with pytest.raises(lt.ShapeError, match=r"lstm_cell: for h of shape .* must have 8 rows"):
        nn.lstm_cell(x, h, h, w, w[:, :2])


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_refuse_states_of_other_layers(name):
    sequence, gates, count = SEQUENCES[name]
    x, layers = np.ones((5, 1, 3)), [(np.ones((2 * gates, 3)), np.ones((2 * gates, 2)))]

    def run(x, layers, n_states=1):
        return sequence(x, *[np.zeros((n_states, 1, 2))] * count, layers)

    assert run(x, layers)[0].shape == (5, 1, 2)
    with pytest.raises(lt.ShapeError, match=rf"{name}: the first axis of each state .* layers, 1,"):
        run(x, layers, n_states=2)
    for some in ((x[:0], layers), (x, [])):
        with pytest.raises(lt.ShapeError, match=f"{name}: there must be at least one step and one"):
            run(*some)

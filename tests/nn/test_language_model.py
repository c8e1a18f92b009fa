"""A word-level language model: embedding, dropout, LSTM and linear [A2]."""

import re

import numpy as np

import letir as lt
from letir import nn
from letir.datasets import load_alice
from letir.nn import initializers, optim
from letir.random import fold_in, key, split
from letir.testing import assert_close, assert_same

LISTING = """\
%14 = embedding %11, %0, -1, None, 2, False, False
%15 = dropout %14, 0.2, True, False
%16 = index %12, 0
%17 = index %12, 1
%18 = index %13, 0
%19 = index %13, 1
%20 = index %15, 0
%21 = linear %20, %1, %3
%22 = linear %16, %2, %4
"""
INPUTS, HIDDEN, STEPS, BATCH = 6, 8, 5, 3


def network(tokens, layers, decoder, encoder, state, key=None, train=True):
    """(the logits of each next word, the state after the last word)."""
    rows = nn.dropout(nn.embedding(tokens, encoder), key, rate=0.2, train=train)
    outs, state = nn.lstm(rows, *state, layers)
    return nn.linear(outs, *decoder), state


def shapes(words: int) -> tuple:
    """The shapes of the weights of two layers, the decoder and the encoder."""
    gates = 4 * HIDDEN
    layers = [((gates, n), (gates, HIDDEN), (gates,), (gates,)) for n in (INPUTS, HIDDEN)]
    return tuple(layers), ((words, HIDDEN), (words,)), (words, INPUTS)


def parameters(words: int) -> tuple:
    """Initial weights."""
    layers, decoder, encoder = shapes(words)
    keys = iter(split(key(0), 11))
    layers = tuple(tuple(initializers.uniform(next(keys), s, -0.3, 0.3) for s in w) for w in layers)
    decoder = tuple(initializers.uniform(next(keys), s, -0.3, 0.3) for s in decoder)
    return layers, decoder, initializers.normal(next(keys), encoder)


def text() -> tuple[np.ndarray, int]:
    """(the indices of the first words of a book, the number of distinct words)."""
    words = re.findall(r"[a-z]+|[.,;:!?]", load_alice().lower())[100:400]
    return np.unique(words, return_inverse=True)[1], len(set(words))


def batches(numbers: np.ndarray) -> list[tuple]:
    """(words, following words) for STEPS steps at BATCH positions of the text."""
    rows = (len(numbers) - 1) // BATCH
    words, following = (numbers[i : i + rows * BATCH].reshape(BATCH, rows).T for i in (0, 1))
    starts = range(0, rows - STEPS + 1, STEPS)
    return [(words[i : i + STEPS], following[i : i + STEPS]) for i in starts]


STATE = (np.zeros((2, BATCH, HIDDEN)),) * 2
NUMBERS, WORDS = text()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def in_numpy(tokens, layers, decoder, encoder, state):
    """The logits, computed step by step in NumPy."""
    h, c, logits = list(state[0]), list(state[1]), []
    for row in tokens:
        x = encoder[row]
        for i, (w_ih, w_hh, b_ih, b_hh) in enumerate(layers):
            gates = x @ w_ih.T + b_ih + h[i] @ w_hh.T + b_hh
            enter, keep, new, leave = np.split(gates, 4, -1)
            c[i] = sigmoid(keep) * c[i] + sigmoid(enter) * np.tanh(new)
            x = h[i] = sigmoid(leave) * np.tanh(c[i])
        logits.append(x @ decoder[0].T + decoder[1])
    return np.stack(logits), (np.stack(h), np.stack(c))


def test_the_first_layers_have_the_expected_listing():
    """[A2], recorded from types."""
    of = lt.ShapeDtype
    layers, decoder, encoder = shapes(WORDS)
    layers = tuple(tuple(map(of, layer)) for layer in layers)
    state = (of((2, BATCH, HIDDEN)),) * 2
    tokens = of((STEPS, BATCH), np.int64)

    f = lt.trace(network, tokens, layers, tuple(map(of, decoder)), of(encoder), state)

    assert f.listing().startswith(LISTING)


def test_with_a_key_only_the_dropout_differs_in_the_listing():
    """[A2, B9]"""
    tokens, _ = batches(NUMBERS)[0]

    f = lt.trace(network, tokens, *parameters(WORDS), STATE, key(1))

    lines = f.listing().splitlines()
    assert "%16 = dropout %15, %14, 0.2, True, False" == lines[1]
    assert [line.split()[2] for line in lines[:9]] == [x.split()[2] for x in LISTING.splitlines()]


def test_a_replay_agrees_with_the_function():
    params, ((tokens, _), (others, _), *_) = parameters(WORDS), batches(NUMBERS)
    f = lt.trace(network, tokens, *params, STATE, key(1))

    assert_same(network(others, *params, STATE, key(2)), f(others, *params, STATE, key(2)))


def test_a_replay_agrees_with_plain_numpy():
    params, ((tokens, _), (others, _), *_) = parameters(WORDS), batches(NUMBERS)

    f = lt.trace(lambda *args: network(*args, train=False), tokens, *params, STATE)

    assert_close(in_numpy(others, *params, STATE), f(others, *params, STATE))


def loss(params, tokens, following, state, key):
    logits, state = network(tokens, *params, state, key)
    return nn.cross_entropy(logits.reshape(-1, WORDS), following.reshape(-1)), state


OPTIMIZER = optim.adam(0.02)


def step(params, memory, tokens, following, state, key):
    """One step of training: the gradient and the optimiser in one function."""
    gradient = lt.value_and_grad(loss, has_aux=True)
    (value, state), grads = gradient(params, tokens, following, state, key)
    grads = optim.clip_by_global_norm(grads, 1.0)
    params, memory = OPTIMIZER.update(grads, memory, params)
    return params, memory, state, value


def test_training_by_replays_lowers_the_loss():
    params, parts = parameters(WORDS), batches(NUMBERS)
    memory = OPTIMIZER.init(params)
    program = lt.trace(step, params, memory, *parts[0], STATE, key(0))
    losses = []

    for epoch in range(3):
        state, values = STATE, []
        for i, part in enumerate(parts):
            drawn = fold_in(key(1), 100 * epoch + i)
            params, memory, state, value = program(params, memory, *part, state, drawn)
            values.append(value)
        losses.append(np.mean(values))

    assert losses[0] > losses[1] > losses[2]
    assert losses[2] < 0.95 * np.log(WORDS)
    assert int(memory["step"]) == 3 * len(parts)


def test_a_replayed_training_step_is_bitwise_equal_to_the_eager_one():
    params, parts = parameters(WORDS), batches(NUMBERS)
    memory = OPTIMIZER.init(params)
    program = lt.trace(step, params, memory, *parts[0], STATE, key(0))

    expected = step(params, memory, *parts[1], STATE, key(5))

    assert_same(expected, program(params, memory, *parts[1], STATE, key(5)))

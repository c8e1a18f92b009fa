"""Recurrent networks: single steps of rnn, gru and lstm, and sequences through several layers.

A step is recorded as two ``linear`` binds and the gates; a sequence is unrolled, layer by layer, or
one ``scan`` for each layer if the number of its steps is symbolic.
Weights are laid out as in PyTorch: ``w_ih`` of shape (gates * hidden, inputs), ``w_hh`` of shape
(gates * hidden, hidden), and two biases, either of which may be None.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from letir.ast import entry_point
from letir.ast.sizes.size import Size
from letir.errors import DTypeError, ShapeError
from letir.ops.elementwise.ufuncs import tanh
from letir.ops.nn.activations import relu, sigmoid
from letir.ops.nn.embedding_linear_dropout import dropout, linear
from letir.ops.random.keys_and_draws import random_fold_in, random_key
from letir.ops.shape.concatenate_stack_split import split, stack
from letir.tracing.control_flow.scans import scan

_NONLINEARITIES = {"tanh": tanh, "relu": relu}

# ---- one step ----


@entry_point
def rnn_cell(
    x: Any,
    h: Any,
    w_ih: Any,
    w_hh: Any,
    b_ih: Any = None,
    b_hh: Any = None,
    nonlinearity: str = "tanh",
) -> Any:
    """The next state, tanh(w_ih x + w_hh h + biases). Elman, Finding structure in time, 1990.

    ``x``: shape (..., inputs); ``h``: (..., hidden).

    >>> import numpy as np
    >>> from letir import nn
    >>> x, h = np.ones((1, 3)), np.zeros((1, 2))
    >>> nn.rnn_cell(x, h, np.ones((2, 3)), np.ones((2, 2))).round(2)
    array([[1., 1.]])
    """
    if nonlinearity not in _NONLINEARITIES:
        known = " or ".join(map(repr, _NONLINEARITIES))
        message = f"rnn_cell: nonlinearity must be {known}, found {nonlinearity!r}"
        raise DTypeError(f"{message}\n  for others, compute the cell from nn.linear")
    return _NONLINEARITIES[nonlinearity](linear(x, w_ih, b_ih) + linear(h, w_hh, b_hh))


@entry_point
def lstm_cell(
    x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None
) -> tuple:
    """The next state (h, c) of a long short-term memory.

    The order of the gates is input, forget, new, output. Hochreiter and Schmidhuber, Long
    short-term memory, 1997; Gers, Schmidhuber and Cummins, Learning to forget, 2000.

    >>> import numpy as np
    >>> from letir import nn
    >>> x, h = np.ones((1, 3)), np.zeros((1, 2))
    >>> h, c = nn.lstm_cell(x, h, h, np.ones((8, 3)), np.ones((8, 2)))
    >>> h.round(2)
    array([[0.7, 0.7]])
    """
    _check_gates("lstm_cell", 4, h, w_ih, w_hh)
    gates = linear(x, w_ih, b_ih) + linear(h, w_hh, b_hh)
    enter, keep, new, leave = split(gates, 4, -1)
    c = sigmoid(keep) * c + sigmoid(enter) * tanh(new)
    return sigmoid(leave) * tanh(c), c


@entry_point
def gru_cell(x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """The next state of a gated recurrent unit; the order of the gates is reset, update, new.

    Cho et al., Learning phrase representations using RNN encoder-decoder, EMNLP 2014.

    >>> import numpy as np
    >>> from letir import nn
    >>> x, h = np.ones((1, 3)), np.zeros((1, 2))
    >>> nn.gru_cell(x, h, np.ones((6, 3)), np.ones((6, 2))).round(2)
    array([[0.05, 0.05]])
    """
    _check_gates("gru_cell", 3, h, w_ih, w_hh)
    x_reset, x_update, x_new = split(linear(x, w_ih, b_ih), 3, -1)
    h_reset, h_update, h_new = split(linear(h, w_hh, b_hh), 3, -1)
    update = sigmoid(x_update + h_update)
    new = tanh(x_new + sigmoid(x_reset + h_reset) * h_new)
    return new + update * (h - new)


def _check_gates(name: str, gates: int, h: Any, w_ih: Any, w_hh: Any) -> None:
    """Raise ShapeError unless both weights have a row for each gate and each element of a state."""
    rows = gates * np.shape(h)[-1]
    if np.shape(w_ih)[0] != rows or np.shape(w_hh)[0] != rows:
        raise ShapeError(
            f"{name}: for h of shape {np.shape(h)} the weights must have {rows} rows, "
            f"found shapes {np.shape(w_ih)} and {np.shape(w_hh)}\n"
            f"  stack the weights of the {gates} gates"
        )


# ---- sequences ----


@entry_point
def rnn(
    x: Any,
    h0: Any,
    layers: Sequence,
    nonlinearity: str = "tanh",
    dropout_rate: float = 0.0,
    key: Any = None,
) -> tuple:
    """(the states of the last layer at all steps, the last states of all layers).

    ``x``: shape (steps, ..., inputs); ``h0``: (layers, ..., hidden); ``layers``: the weights
    (w_ih, w_hh, b_ih, b_hh) of each layer. With a ``key``, dropout with ``dropout_rate`` is applied
    between layers.

    >>> import numpy as np
    >>> from letir import nn
    >>> x, h0 = np.ones((5, 1, 3)), np.zeros((1, 1, 2))  # 5 steps, 1 sequence, 1 layer
    >>> out, h = nn.rnn(x, h0, [(np.ones((2, 3)), np.ones((2, 2)))])
    >>> out.shape
    (5, 1, 2)
    """

    def cell(x, state, *weights):
        return (rnn_cell(x, *state, *weights, nonlinearity=nonlinearity),)

    outs, (h,) = _run_layers("rnn", cell, x, (h0,), layers, dropout_rate, key)
    return outs, h


@entry_point
def gru(x: Any, h0: Any, layers: Sequence, dropout_rate: float = 0.0, key: Any = None) -> tuple:
    """``rnn`` of gated recurrent units.

    >>> import numpy as np
    >>> from letir import nn
    >>> x, h0 = np.ones((5, 1, 3)), np.zeros((1, 1, 2))  # 5 steps, 1 sequence, 1 layer
    >>> out, h = nn.gru(x, h0, [(np.ones((6, 3)), np.ones((6, 2)))])
    >>> out.shape
    (5, 1, 2)
    """

    def cell(x, state, *weights):
        return (gru_cell(x, *state, *weights),)

    outs, (h,) = _run_layers("gru", cell, x, (h0,), layers, dropout_rate, key)
    return outs, h


@entry_point
def lstm(
    x: Any, h0: Any, c0: Any, layers: Sequence, dropout_rate: float = 0.0, key: Any = None
) -> tuple:
    """(the states h of the last layer at all steps, (h, c) of all layers after the last step).

    As ``rnn``, with a second state ``c0``.

    >>> import numpy as np
    >>> layers = [(np.ones((8, 3)), np.ones((8, 2)), None, None)]
    >>> outs, (h, c) = lstm(np.zeros((5, 1, 3)), np.zeros((1, 1, 2)), np.zeros((1, 1, 2)), layers)
    >>> outs.shape, h.shape
    ((5, 1, 2), (1, 1, 2))
    """

    def cell(x, state, *weights):
        return lstm_cell(x, *state, *weights)

    return _run_layers("lstm", cell, x, (h0, c0), layers, dropout_rate, key)


def _run_layers(
    name: str, cell: Callable, x: Any, states: tuple, layers: Sequence, rate: float, key: Any
) -> tuple:
    """(first states of the last layer at all steps, last states of all layers).

    ``cell(x, state, *weights)`` returns the next state, a tuple. ``name`` is the called function.
    """
    if len(layers) == 0 or not np.shape(x) or np.shape(x)[0] == 0:
        raise ShapeError(
            f"{name}: there must be at least one step and one layer, found x of shape "
            f"{np.shape(x)} and layers of length {len(layers)}\n"
            "  pass x as (steps, ..., inputs), and layers=[(w_ih, w_hh)] for one layer"
        )
    lengths = [np.shape(state)[0] if hasattr(state, "shape") else len(state) for state in states]
    if any(type(length) is not Size and length != len(layers) for length in lengths):
        raise ShapeError(
            f"{name}: the first axis of each state must have the number of layers, {len(layers)}, "
            f"found {' and '.join(map(str, lengths))}\n"
            "  pass a state of shape (layers, ..., hidden): state[None] for one layer"
        )
    is_symbolic = type(np.shape(x)[0]) is Size
    run = _scan_layers if is_symbolic else _unroll_layers
    return run(cell, x, states, layers, rate, key)


def _scan_layers(
    cell: Callable, x: Any, states: tuple, layers: Sequence, rate: float, key: Any
) -> tuple:
    """The results of ``_run_layers``, with a loop for each layer."""
    last: list[tuple] = []
    for i, weights in enumerate(layers):

        def step(state: tuple, row: Any, weights: Sequence = weights) -> tuple:
            new = tuple(cell(row, state, *weights))
            return new, new[0]

        end, x = scan(step, tuple([each[i] for each in states]), x)
        if rate and key is not None and i + 1 < len(layers):
            x = _drop_outputs(x, rate, key, i)
        last.append(end)
    return x, tuple([stack(parts) for parts in zip(*last, strict=True)])


def _unroll_layers(
    cell: Callable, x: Any, states: tuple, layers: Sequence, rate: float, key: Any
) -> tuple:
    """The results of ``_run_layers``, step by step."""
    # all initial states are indexed first: a published listing has this order [semantics.md A2]
    first = [[state[i] for i in range(len(layers))] for state in states]
    steps: list | None = None
    last: list[tuple] = []
    for i, weights in enumerate(layers):
        state, source = tuple([each[i] for each in first]), steps
        outputs: list = []
        for t in range(x.shape[0]):
            state = tuple(cell(x[t] if source is None else source[t], state, *weights))
            outputs.append(state[0])
        steps = outputs
        if rate and key is not None and i + 1 < len(layers):
            dropped = _drop_outputs(stack(steps), rate, key, i)
            steps = [dropped[t] for t in range(len(steps))]
        last.append(state)
    return stack(steps), tuple([stack(parts) for parts in zip(*last, strict=True)])


def _drop_outputs(outs: Any, rate: float, key: Any, layer: int) -> Any:
    """Dropout of the outputs of a layer, with a key derived for the layer."""
    key = key if getattr(key, "shape", ()) else random_key(key)  # key may be a seed
    return dropout(outs, random_fold_in(key, layer), rate=rate)

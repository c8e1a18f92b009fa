"""RNN, GRU and LSTM in all directions, with all activations, as one loop for each direction."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import letir.numpy as lnp
from letir.errors import MissingRule, ShapeError
from letir.onnx.importing.families import activations as families
from letir.onnx.importing.values import (
    MAX_COMPUTED,
    as_traced,
    is_known,
    number_like,
    transpose_matrix,
)
from letir.tracing.control_flow.scans import scan

_ACTIVATIONS: dict[str, tuple[Callable, tuple[float, ...]]] = {  # (function, its defaults)
    "tanh": (np.tanh, ()),
    "sigmoid": (families.OPERATORS["Sigmoid"], ()),
    "relu": (families.OPERATORS["Relu"], ()),
    "softsign": (families.OPERATORS["Softsign"], ()),
    "softplus": (families.OPERATORS["Softplus"], ()),
    "affine": (lambda x, a, b: x * number_like(a, x) + number_like(b, x), (1.0, 0.0)),
    "leakyrelu": (families.OPERATORS["LeakyRelu"], (0.01,)),
    "elu": (families.OPERATORS["Elu"], (1.0,)),
    "thresholdedrelu": (families.OPERATORS["ThresholdedRelu"], (1.0,)),
    "hardsigmoid": (families.OPERATORS["HardSigmoid"], (0.2, 0.5)),
    "scaledtanh": (lambda x, a, b: number_like(a, x) * np.tanh(x * number_like(b, x)), (1.0, 1.0)),
}
_TAKES_BETA = ("affine", "hardsigmoid", "scaledtanh")


def _activation_functions(names: Sequence[str], alphas: Any, betas: Any) -> list[Callable]:
    """The activation functions; ``alphas`` and ``betas`` are the parameters of all, in order."""
    result, alphas, betas = [], list(alphas or ()), list(betas or ())
    for name in names:
        if name.lower() not in _ACTIVATIONS:
            raise MissingRule(
                f"ONNX has no activation {name!r} for recurrent networks\n"
                f"  use one of {', '.join(sorted(_ACTIVATIONS))}"
            )
        f, defaults = _ACTIVATIONS[name.lower()]
        numbers = list(defaults)
        if numbers and alphas:
            numbers[0] = alphas.pop(0)
        if name.lower() in _TAKES_BETA and betas:
            numbers[1] = betas.pop(0)
        result.append(lambda x, f=f, numbers=tuple(numbers): f(x, *numbers))
    return result


# ---- one step ----


def _clip_operand(x: Any, clip: float | None) -> Any:
    """The operand of an activation, between ``-clip`` and ``clip``."""
    return x if clip is None else np.clip(x, number_like(-clip, x), number_like(clip, x))


def _rnn_step(state: tuple, x: Any, weights: dict, f: list, clip: Any) -> tuple:
    """The next state of a simple recurrent network."""
    return (f[0](_clip_operand(x + state[0] @ transpose_matrix(weights["R"]), clip)),)


def _gru_step(state: tuple, x: Any, weights: dict, f: list, clip: Any) -> tuple:
    """The next state of a gated recurrent unit; the order of the gates is update, reset, hidden."""
    (h,), n, recurrent = state, weights["R"].shape[1], weights["R"]
    gates = x[:, : 2 * n] + h @ transpose_matrix(recurrent[: 2 * n])
    update, reset = [f[0](_clip_operand(g, clip)) for g in (gates[:, :n], gates[:, n:])]
    if weights["linear_before_reset"]:
        inner = reset * (h @ transpose_matrix(recurrent[2 * n :]) + weights["Rb"][2 * n :])
    else:
        inner = (reset * h) @ transpose_matrix(recurrent[2 * n :]) + weights["Rb"][2 * n :]
    new = f[1](_clip_operand(x[:, 2 * n :] + inner, clip))
    return ((number_like(1, h) - update) * new + update * h,)


def _lstm_step(state: tuple, x: Any, weights: dict, f: list, clip: Any) -> tuple:
    """The next state of a long short-term memory; the order is input, output, forget, cell."""
    (h, c), peephole = state, weights["P"]
    n = h.shape[1]
    gates = x + h @ transpose_matrix(weights["R"])
    if peephole is None and not weights["input_forget"]:
        sharp = f[0](_clip_operand(gates[:, : 3 * n], clip))  # three gates in one call
        enter, leave, keep = [sharp[:, i * n : (i + 1) * n] for i in range(3)]
        c = keep * c + enter * f[1](_clip_operand(gates[:, 3 * n :], clip))
        return leave * f[2](c), c
    enter, leave, keep, new = [gates[:, i * n : (i + 1) * n] for i in range(4)]
    if peephole is not None:
        enter, keep = enter + peephole[:n] * c, keep + peephole[2 * n :] * c
    enter = f[0](_clip_operand(enter, clip))
    keep = number_like(1, h) - enter if weights["input_forget"] else f[0](_clip_operand(keep, clip))
    c = keep * c + enter * f[1](_clip_operand(new, clip))
    leave = leave if peephole is None else leave + peephole[n : 2 * n] * c
    return f[0](_clip_operand(leave, clip)) * f[2](c), c


# ---- sequences ----


def _reversed_in_time(x: Any, lengths: Any) -> Any:
    """Each example in reversed order, up to its own length."""
    if lengths is None:
        return np.flip(x, 0)
    time = lnp.arange(x.shape[0])[:, None]
    order = np.where(time < lengths[None, :], lengths[None, :] - 1 - time, time)
    return np.take_along_axis(x, np.broadcast_to(order[:, :, None], x.shape), 0)


def _run_direction(
    step: Callable, x: Any, state: tuple, weights: dict, f: list, clip: Any, lengths: Any
) -> tuple[Any, tuple]:
    """(the states h of all times, the last state) of one direction."""
    x = as_traced(x) if is_known(x) and len(x) > MAX_COMPUTED else x
    drive = x @ transpose_matrix(weights["W"]) + weights["b"]  # of all times at once
    time = lnp.arange(x.shape[0]).astype(np.int64)

    def body(carry: tuple, row: tuple) -> tuple:
        new = step(carry, row[0], weights, f, clip)
        if lengths is None:
            return new, new[0]
        runs = (row[1] < lengths)[:, None]
        states = tuple(np.where(runs, a, b) for a, b in zip(new, carry, strict=True))
        return states, np.where(runs, new[0], number_like(0, new[0]))

    last, outputs = scan(body, state, (drive, time))
    return outputs, last


def _recurrent(step: Callable, gates: int, states: int, defaults: Sequence[str]) -> Callable:
    """The operator of a recurrent network with this step."""

    def run(
        x: Any,
        w: Any,
        r: Any,
        b: Any = None,
        sequence_lens: Any = None,
        initial_h: Any = None,
        initial_c: Any = None,
        p: Any = None,
        *,
        activation_alpha: Any = None,
        activation_beta: Any = None,
        activations: Any = None,
        clip: float | None = None,
        direction: str = "forward",
        hidden_size: int | None = None,
        input_forget: int = 0,
        layout: int = 0,
        linear_before_reset: int = 0,
        output_sequence: int = 0,
    ) -> tuple:
        count = _direction_count(direction, w, r, gates, hidden_size)
        x = np.swapaxes(x, 0, 1) if layout else x
        names = activations or list(defaults) * count
        f, parts = _activation_functions(names, activation_alpha, activation_beta), []
        for i in range(count):
            weights = _weights_of(i, gates, w, r, b, p)
            weights |= {"input_forget": input_forget, "linear_before_reset": linear_before_reset}
            state = _first_state(i, states, x, r.shape[-1], (initial_h, initial_c), layout)
            is_reversed = direction == "reverse" or i == 1
            in_order = _reversed_in_time if is_reversed else _sequences_unchanged
            sequence = in_order(x, sequence_lens)
            own = f[i * len(defaults) : (i + 1) * len(defaults)]
            hidden, last = _run_direction(step, sequence, state, weights, own, clip, sequence_lens)
            parts.append((in_order(hidden, sequence_lens), last))
        return _both_directions(parts, layout)

    return run


def _sequences_unchanged(x: Any, sequence_lens: Any) -> Any:
    """The sequences ``x`` unchanged, in place of ``_reversed_in_time``."""
    return x


def _direction_count(direction: str, w: Any, r: Any, gates: int, hidden_size: int | None) -> int:
    """The number of directions. Raises ShapeError unless the weights have it, and the gates."""
    count, n = 2 if direction == "bidirectional" else 1, r.shape[-1]
    if w.shape[0] != count or w.shape[1] != gates * n or hidden_size not in (None, n):
        raise ShapeError(
            f"weights of shape {w.shape} and {r.shape} for {count} directions of hidden size "
            f"{hidden_size}"
        )
    return count


def _both_directions(parts: list, layout: int) -> tuple:
    """(outputs, last states) of each direction as arrays with an axis of directions."""
    outputs, lasts = zip(*parts, strict=True)
    y = np.stack(outputs, axis=1)  # (time, directions, examples, hidden)
    ends = [np.stack(states, axis=0) for states in zip(*lasts, strict=True)]
    if layout:
        y, ends = np.transpose(y, (2, 0, 1, 3)), [np.swapaxes(e, 0, 1) for e in ends]
    return y, *ends


def _weights_of(i: int, gates: int, w: Any, r: Any, b: Any, p: Any) -> dict[str, Any]:
    """The weights of one direction by name.

    "b" is the sum of both biases, except for the recurrent bias of a GRU's last gate: it is
    multiplied by another gate, and has an entry of its own.
    """
    n = r.shape[-1]
    weights = {"W": w[i], "R": r[i], "P": None if p is None else p[i]}
    if b is None:
        zero = np.zeros(gates * n, w.dtype)
        return {**weights, "b": zero, "Rb": zero}
    of_x, of_h = b[i][: gates * n], b[i][gates * n :]
    if gates == 3:
        parts = [of_x[: 2 * n] + of_h[: 2 * n], of_x[2 * n :]]
        return {**weights, "b": np.concatenate(parts), "Rb": of_h}
    return {**weights, "b": of_x + of_h, "Rb": of_h}


def _first_state(i: int, states: int, x: Any, n: int, initial: tuple, layout: int) -> tuple:
    """The initial state of one direction, by default zeros."""
    zeros = lnp.zeros((x.shape[1], n), x.dtype)
    result = []
    for value in initial[:states]:
        if value is None:
            result.append(zeros)
        else:
            result.append((np.swapaxes(value, 0, 1) if layout else value)[i])
    return tuple(result)


OPERATORS: dict[str, Any] = {
    "RNN": _recurrent(_rnn_step, 1, 1, ("Tanh",)),
    "GRU": _recurrent(_gru_step, 3, 1, ("Sigmoid", "Tanh")),
    "LSTM": _recurrent(_lstm_step, 4, 2, ("Sigmoid", "Tanh", "Tanh")),
}

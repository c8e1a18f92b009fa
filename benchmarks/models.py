"""The ratio of gradient to forward time, both replayed by ``run_forward``, on published models.

The models are in plain NumPy, once for letir and its peers (``np`` is their module). ADBench:
Srajer, Kukelova and Fitzgibbon, A benchmark of selected algorithmic differentiation tools, 2018.
Published ratios for its Gaussian mixture and its LSTM: Schenck et al., AD for an array language
with nested parallelism, SC 2022, table 1.
"""

import math
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy
from attrs import frozen

from benchmarks.harness import DemoSettings
from benchmarks.peers import installed
from letir import run_forward, trace, value_and_grad

DIMENSION, COMPONENTS, POINTS = 10, 25, 1000
LAYERS, WIDTH, STEPS = 2, 128, 20


@frozen
class Model:
    """A loss ``f(np, *args)`` and the number ``parameters`` of its differentiated arguments."""

    f: Callable
    args: tuple
    parameters: int


# ---- the Gaussian mixture of ADBench ----

DIAGONAL = numpy.eye(DIMENSION)
LOWER = numpy.tri(DIMENSION, k=-1, dtype=bool)
PLACES = numpy.zeros((DIMENSION, DIMENSION), int)  # numbers of entries below the diagonal
PLACES.T[LOWER.T] = numpy.arange(DIMENSION * (DIMENSION - 1) // 2)


def logsumexp(np, x):
    """log(sum(exp(x))) along the first axis."""
    top = np.max(x, axis=0, keepdims=True)
    return np.log(np.sum(np.exp(x - top), axis=0)) + np.squeeze(top, 0)


def gmm(np, alphas, means, factors, x):
    """The negative log posterior: weights, means, inverse Cholesky factors with a log diagonal."""
    n, d = x.shape
    log_diagonal, below = factors[:, :d], factors[:, d:]
    inner = np.where(LOWER, below[:, PLACES], 0.0)
    inner = inner + np.exp(log_diagonal)[:, None, :] * DIAGONAL
    apart = (x - means[:, None, :]) @ np.swapaxes(inner, 1, 2)
    total = np.sum(log_diagonal, axis=1)
    terms = (alphas + total)[:, None] - 0.5 * np.sum(apart * apart, axis=2)
    likelihood = np.sum(logsumexp(np, terms)) - n * logsumexp(np, alphas)
    return likelihood - n * d * 0.5 * math.log(2 * math.pi) + prior(np, log_diagonal, below, total)


def prior(np, log_diagonal, below, total, gamma=1.0, m=0):
    """The logarithm of the Wishart prior."""
    k, d = log_diagonal.shape
    n = d + m + 1
    constant = n * d * (math.log(gamma) - 0.5 * math.log(2)) - log_gamma(0.5 * n, d)
    squares = np.sum(np.exp(log_diagonal) ** 2) + np.sum(below * below)
    return 0.5 * gamma * gamma * squares - m * np.sum(total) - k * constant


def log_gamma(a: float, d: int) -> float:
    """The logarithm of the ``d``-dimensional gamma function."""
    return 0.25 * d * (d - 1) * math.log(math.pi) + sum(
        math.lgamma(a + 0.5 * (1 - j)) for j in range(1, d + 1)
    )


def gmm_model() -> Model:
    """ADBench's mixture with d=10, k=25, n=1000."""
    normal = numpy.random.default_rng(0).normal
    d, k = DIMENSION, COMPONENTS
    shapes = [(k,), (k, d), (k, d * (d + 1) // 2), (POINTS, d)]
    return Model(gmm, tuple(normal(size=shape) for shape in shapes), 3)


# ---- LSTMs of two layers ----


def sigmoid(np, x):
    """1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def lstm(np, weights, xs, ys):
    """The mean squared prediction of an LSTM whose gates are slices of one product."""
    states = [(xs[0] * 0, xs[0] * 0)] * LAYERS
    loss = 0.0
    for t in range(STEPS):
        x = xs[t]
        for i, (w, u, b) in enumerate(weights):
            hidden, before = states[i]
            gates = x @ w + hidden @ u + b
            keep, write, read = (
                sigmoid(np, gates[..., k * WIDTH : (k + 1) * WIDTH]) for k in range(3)
            )
            cell = keep * before + write * np.tanh(gates[..., 3 * WIDTH :])
            x = read * np.tanh(cell)
            states[i] = x, cell
        loss = loss + np.sum((x - ys[t]) ** 2)
    return loss / math.prod(ys.shape)


def lstm_model(batch: int) -> Model:
    """Two layers of width 128, 20 steps; a batch of 0 is one sequence of vectors."""
    normal, n = numpy.random.default_rng(0).normal, WIDTH
    shape = (STEPS, batch, n) if batch else (STEPS, n)
    weights = [
        (0.05 * normal(size=(n, 4 * n)), 0.05 * normal(size=(n, 4 * n)), normal(size=4 * n))
        for _ in range(LAYERS)
    ]
    return Model(lstm, (weights, normal(size=shape), normal(size=shape)), 1)


def diagonal_lstm(np, main, extra, state, sequence):
    """ADBench's LSTM, whose weights are vectors."""
    states = [(state[0], state[1]), (state[2], state[3])]
    total = 0.0
    for t in range(len(sequence) - 1):
        x = sequence[t] * extra[0]
        for i, (hidden, before) in enumerate(states):
            w, b = main[2 * i], main[2 * i + 1]
            keep = sigmoid(np, x * w[0] + b[0])
            write = sigmoid(np, hidden * w[1] + b[1])
            read = sigmoid(np, x * w[2] + b[2])
            cell = before * keep + write * np.tanh(hidden * w[3] + b[3])
            x = read * np.tanh(cell)
            states[i] = x, cell
        y = x * extra[1] + extra[2]
        total = total + np.sum(sequence[t + 1] * (y - np.log(np.sum(np.exp(y)) + 2)))
    return -total / ((len(sequence) - 1) * WIDTH)


def diagonal_lstm_model() -> Model:
    """Two layers of width 128, a sequence of 100."""
    rng = numpy.random.default_rng(0)
    shapes = [(2 * LAYERS, 4, WIDTH), (3, WIDTH), (2 * LAYERS, WIDTH)]
    sequence = rng.integers(0, 2, size=(100, WIDTH)).astype(float)
    return Model(diagonal_lstm, (*[rng.normal(size=shape) for shape in shapes], sequence), 2)


# ---- ratios ----


def seconds(run: Callable) -> float:
    """The median CPU time in seconds of three consecutive calls, with warm caches."""
    taken = []
    for _ in range(3):
        start = time.process_time()
        run()
        taken.append(time.process_time() - start)
    return median(taken)


def ratio(forward: Callable, gradient: Callable, rounds: int) -> float:
    """The time of ``gradient`` over the time of ``forward``: the median of alternating rounds."""
    forward(), gradient()
    return median([seconds(gradient) / seconds(forward) for _ in range(rounds)])


def letir_ratio(model: Model, rounds: int) -> float:
    forward = trace(partial(model.f, numpy), *model.args)
    gradient = value_and_grad(forward, tuple(range(model.parameters)))
    return ratio(
        lambda: run_forward(forward, *model.args),
        lambda: run_forward(gradient, *model.args),
        rounds,
    )


def autograd_ratio(model: Model, rounds: int) -> float:
    autograd, np = installed("autograd"), installed("autograd.numpy")
    gradient = autograd.value_and_grad(partial(model.f, np), tuple(range(model.parameters)))
    return ratio(lambda: model.f(np, *model.args), lambda: gradient(*model.args), rounds)


def jax_ratio(model: Model, rounds: int) -> float:
    jax, np = installed("jax"), installed("jax.numpy")
    argnums = tuple(range(model.parameters))
    with jax.enable_x64(True):
        args = jax.tree.map(np.asarray, model.args)
        forward = jax.jit(partial(model.f, np))
        gradient = jax.jit(jax.value_and_grad(partial(model.f, np), argnums))
        return ratio(
            lambda: jax.block_until_ready(forward(*args)),
            lambda: jax.block_until_ready(gradient(*args)),
            rounds,
        )


def torch_ratio(model: Model, rounds: int) -> float:
    torch, trees = installed("torch"), installed("optree")
    torch.set_num_threads(1)
    args = trees.tree_map(torch.from_numpy, model.args)
    parameters = trees.tree_leaves(args[: model.parameters])

    def forward():
        with torch.no_grad():
            return model.f(torch, *args)

    def gradient():
        for parameter in parameters:
            parameter.requires_grad_()
        return torch.autograd.grad(model.f(torch, *args), parameters)

    return ratio(forward, gradient, rounds)


def figure(of: Callable, models: dict[str, Callable]) -> Callable[[DemoSettings], str]:
    """A figure: the ratio of each model, labelled by its key."""

    def measure(effort: DemoSettings) -> str:
        rounds = effort.sizes[0][1]
        found = {name: of(model(), rounds) for name, model in models.items()}
        return ", ".join(f"{value:.1f}{name}" for name, value in found.items())

    return measure


MIXTURE = {"": gmm_model}
FEW = {  # JAX takes minutes to compile the others, autograd 14 GB
    " (one sequence)": partial(lstm_model, 0),
    " (32 sequences)": partial(lstm_model, 32),
}
LSTMS = FEW | {
    " (256)": partial(lstm_model, 256),
    " (ADBench's, diagonal)": diagonal_lstm_model,
}

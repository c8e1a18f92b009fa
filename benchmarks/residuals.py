"""The bytes of residuals that a gradient stores, on the same models in three packages.

Values are float32. Arguments (weights and inputs) are counted separately, as the caller holds them
anyway. JAX: what ``jax.ad_checkpoint.print_saved_residuals`` lists. torch: what autograd passes to
the hooks of saved tensors, each storage once. Operations of a package for activations and
normalisations are used where they exist.
"""

import itertools
from collections.abc import Callable
from functools import partial

import numpy
from attrs import frozen

from benchmarks.harness import DemoSettings
from benchmarks.peers import installed
from letir import differentiate, explain_residuals, trace

BATCH, WIDTHS = 128, (784, 512, 512, 10)
STEPS, INPUT, HIDDEN = 20, 32, 64
ROWS, FEATURES, DEPTH = 256, 128, 6


@frozen
class Words:
    """The functions that the models need beyond operators, from one package."""

    tanh: Callable
    sigmoid: Callable
    relu: Callable
    normalized: Callable  # to mean 0 and standard deviation 1 along the last axis


def normalized(sqrt: Callable, x):
    """The rows of ``x`` scaled to mean 0 and standard deviation 1."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


NUMPY = Words(
    numpy.tanh,
    lambda x: 1 / (1 + numpy.exp(-x)),
    lambda x: numpy.maximum(x, 0),
    partial(normalized, numpy.sqrt),
)


# ---- the models: the loss of (words, weights, *data) ----


def perceptron(words: Words, weights, x, y):
    """Three layers with tanh and relu, and the mean squared error."""
    for i, (w, b) in enumerate(weights):
        x = x @ w + b
        x = words.tanh(x) if i == 0 else words.relu(x) if i == 1 else x
    return ((x - y) ** 2).mean()


def lstm(words: Words, weights, xs, y):
    """An LSTM over 20 steps and the mean squared error of its last state."""
    w, u, b = weights
    h = cell = y * 0
    for x in xs:
        gates = x @ w + h @ u + b
        keep, write, read = (
            words.sigmoid(gates[:, i * HIDDEN : (i + 1) * HIDDEN]) for i in range(3)
        )
        cell = keep * cell + write * words.tanh(gates[:, 3 * HIDDEN :])
        h = read * words.tanh(cell)
    return ((h - y) ** 2).mean()


def normalisations(words: Words, weights, x):
    """Six normalisations with scale and shift, each followed by relu."""
    for scale, shift in weights:
        x = words.relu(words.normalized(x) * scale + shift)
    return (x * x).mean()


def array(*shape: int) -> numpy.ndarray:
    """An array of arbitrary numbers."""
    return numpy.random.default_rng(len(shape)).normal(size=shape).astype("float32")


def layer(inputs: int, outputs: int) -> tuple:
    """A weight matrix and a bias."""
    return array(inputs, outputs), array(outputs)


MODELS = {
    "MLP": (
        perceptron,
        [layer(*pair) for pair in itertools.pairwise(WIDTHS)],
        *(array(BATCH, WIDTHS[0]), array(BATCH, WIDTHS[-1])),
    ),
    "LSTM": (
        lstm,
        (array(INPUT, 4 * HIDDEN), array(HIDDEN, 4 * HIDDEN), array(4 * HIDDEN)),
        *([array(BATCH, INPUT) for _ in range(STEPS)], array(BATCH, HIDDEN)),
    ),
    "normalisations": (
        normalisations,
        [(array(FEATURES), array(FEATURES)) for _ in range(DEPTH)],
        array(ROWS, FEATURES),
    ),
}

# ---- (bytes without the arguments, total bytes) of a model ----


def letir_bytes(name: str, policy: str = "min_bytes", exact: bool = False) -> tuple[int, int]:
    """The residuals in ``explain_residuals`` of the gradient with respect to the weights."""
    model, weights, *inputs = MODELS[name]
    f = trace(partial(model, NUMPY), weights, *inputs)
    count = len(trace(lambda weights: weights, weights).params)
    wanted = [i < count for i in range(len(f.params))]
    g = differentiate(f, wanted, defined=[True], policy=policy, exact=exact)
    found = explain_residuals(g)
    return found.temporaries, found.total


def jax_bytes(name: str) -> tuple[int, int]:
    """The residuals that JAX saves for the loss as a function of the weights."""
    jax, saved = installed("jax"), installed("jax._src.ad_checkpoint").saved_residuals
    words = Words(
        jax.numpy.tanh,
        jax.nn.sigmoid,
        jax.nn.relu,
        partial(normalized, jax.numpy.sqrt),
    )
    model, weights, *inputs = MODELS[name]
    inputs = jax.tree.map(jax.numpy.asarray, inputs)
    own, total = 0, 0
    for kind, place in saved(lambda weights: model(words, weights, *inputs), weights):
        size = kind.size * kind.dtype.itemsize
        total += size
        own += 0 if place.startswith(("from the argument", "from a constant")) else size
    return own, total


def torch_bytes(name: str) -> tuple[int, int]:
    """The storages of the tensors that torch saves."""
    torch = installed("torch")
    functional = torch.nn.functional
    words = Words(
        torch.tanh,
        torch.sigmoid,
        torch.relu,
        lambda x: functional.layer_norm(x, x.shape[-1:]),
    )
    model, weights, *inputs = MODELS[name]
    flatten, unflatten = torch.utils._pytree.tree_flatten, torch.utils._pytree.tree_unflatten
    leaves, nested = flatten(weights)
    leaves = [torch.tensor(leaf).requires_grad_() for leaf in leaves]
    others, spec = flatten(inputs)
    others = [torch.tensor(leaf) for leaf in others]
    given = {tensor.untyped_storage().data_ptr() for tensor in (*leaves, *others)}
    kept: dict[int, object] = {}  # keeps the tensors alive, so that no storage is reused

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = model(words, unflatten(leaves, nested), *unflatten(others, spec))
    sizes = {place: tensor.untyped_storage().nbytes() for place, tensor in kept.items()}
    del loss
    return sum(n for place, n in sizes.items() if place not in given), sum(sizes.values())


def figure(measure: Callable[..., tuple[int, int]], *args):
    """A figure: the results of ``measure`` on every model, in KiB."""

    def taken(effort: DemoSettings) -> str:
        return ", ".join(f"{name} {kib(*measure(name, *args))}" for name in MODELS)

    return taken


def kib(own: int, total: int) -> str:
    """Two numbers of bytes as text, in KiB."""
    return f"{own / 1024:.1f} ({total / 1024:.0f})"

"""A classifier of images and its loss, in plain NumPy without letir.

With one layer it is softmax regression, with two a network. The last function is the gradient
derived by hand, with which the recorded gradient is compared.
"""

import itertools

import numpy as np


def new_layers(sizes: tuple[int, ...], rng: np.random.Generator) -> list[dict]:
    """Random layers from ``sizes[0]`` inputs to ``sizes[-1]`` classes."""
    return [
        {"weights": rng.normal(size=(n, m)) / np.sqrt(n), "bias": np.zeros(m)}
        for n, m in itertools.pairwise(sizes)
    ]


def scores(layers: list[dict], images: np.ndarray) -> np.ndarray:
    """The scores of each image for each class: (images, pixels) gives (images, classes)."""
    *hidden, last = layers
    for layer in hidden:
        images = np.tanh(images @ layer["weights"] + layer["bias"])
    return images @ last["weights"] + last["bias"]


def loss(layers: list[dict], images: np.ndarray, targets: np.ndarray) -> np.floating:
    """Mean cross entropy of softmax(scores); ``targets``: for each image a row of 0s and one 1."""
    z = scores(layers, images)
    z = z - z.max(axis=1, keepdims=True)  # exp cannot overflow; the loss is the same
    log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    return -(targets * log_p).sum(axis=1).mean()


def descent_step(layers: list[dict], slopes: list[dict], rate: float) -> list[dict]:
    """The layers after a step of gradient descent; ``slopes``: the gradient."""
    return [
        {name: layer[name] - rate * slope[name] for name in layer}
        for layer, slope in zip(layers, slopes, strict=True)
    ]


def loss_and_slopes(
    layers: list[dict], images: np.ndarray, targets: np.ndarray
) -> tuple[float, list[dict]]:
    """``loss`` and its gradient with respect to the layers, derived by hand."""
    inputs = [images]
    for layer in layers[:-1]:
        inputs.append(np.tanh(inputs[-1] @ layer["weights"] + layer["bias"]))
    z = inputs[-1] @ layers[-1]["weights"] + layers[-1]["bias"]
    z -= z.max(axis=1, keepdims=True)
    odds = np.exp(z)
    total = odds.sum(axis=1, keepdims=True)
    value = (targets * (np.log(total) - z)).sum(axis=1).mean()

    # the gradient of softmax and cross entropy together
    ct = (odds / total - targets) / len(images)
    slopes = [_slope(inputs[-1], ct)]
    for layer, x, below in zip(layers[:0:-1], inputs[:0:-1], inputs[-2::-1], strict=True):
        ct = ct @ layer["weights"].T * (1 - x * x)  # tanh' in terms of x, its result
        slopes.append(_slope(below, ct))
    return value, slopes[::-1]


def _slope(x, ct) -> dict:
    """The gradient of one layer, from its input and the cotangent of its output."""
    return {"weights": x.T @ ct, "bias": ct.sum(axis=0)}

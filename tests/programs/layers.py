"""Layers of neural networks with forward and backward written by hand."""

import numpy as np

from tests.programs.table import program


def affine_forward(x, w, b):
    """The output of a dense layer and what its backward needs."""
    out = x.reshape(x.shape[0], -1).dot(w) + b
    return out, (x, w, b)


def affine_backward(dout, cache):
    """Gradients of a dense layer."""
    x, w, b = cache
    dx = dout.dot(w.T).reshape(x.shape)
    dw = x.reshape(x.shape[0], -1).T.dot(dout)
    return dx, dw, np.sum(dout, axis=0)


def relu_forward(x):
    """max(0, x) and x."""
    return np.maximum(0, x), x


def relu_backward(dout, cache):
    """The gradient of ``relu_forward``."""
    dx = np.array(dout, copy=True)
    dx[cache <= 0] = 0
    return dx


def softmax_loss(scores, y):
    """The mean cross entropy and its gradient."""
    shifted = scores - np.max(scores, axis=1, keepdims=True)
    probabilities = np.exp(shifted)
    probabilities /= np.sum(probabilities, axis=1, keepdims=True)
    N = scores.shape[0]
    loss = -np.sum(np.log(probabilities[np.arange(N), y])) / N
    dx = probabilities.copy()
    dx[np.arange(N), y] -= 1
    dx /= N
    return loss, dx


class TwoLayerNet:
    """A dense network with one hidden layer and its parameters in a dictionary."""

    def __init__(self, params, reg=0.1):
        self.params = params
        self.reg = reg

    def loss(self, X, y=None):
        """Scores without labels, otherwise the loss and the gradients."""
        W1, b1, W2, b2 = (self.params[k] for k in ("W1", "b1", "W2", "b2"))
        hidden, fc_cache = affine_forward(X, W1, b1)
        hidden, relu_cache = relu_forward(hidden)
        scores, out_cache = affine_forward(hidden, W2, b2)
        if y is None:
            return scores
        loss, dscores = softmax_loss(scores, y)
        loss += 0.5 * self.reg * (np.sum(W1 * W1) + np.sum(W2 * W2))
        grads = {}
        dhidden, grads["W2"], grads["b2"] = affine_backward(dscores, out_cache)
        dhidden = relu_backward(dhidden, relu_cache)
        _, grads["W1"], grads["b1"] = affine_backward(dhidden, fc_cache)
        for name in ("W1", "W2"):
            grads[name] += self.reg * self.params[name]
        return loss, grads


def two_layer_params(rng):
    """Random parameters of ``TwoLayerNet``."""
    return {
        "W1": rng.normal(size=(6, 5)),
        "b1": rng.normal(size=5),
        "W2": rng.normal(size=(5, 3)),
        "b2": np.zeros(3),
    }


@program(
    lambda rng: (two_layer_params(rng), rng.normal(size=(4, 2, 3)), rng.integers(0, 3, 4)), smooth=1
)
def two_layer_net(params, X, y):
    """Loss and gradients of a two-layer network."""
    return TwoLayerNet(params).loss(X, y)


@program(
    lambda rng: (two_layer_params(rng), rng.normal(size=(4, 6)), rng.integers(0, 3, 4)), smooth=1
)
def train_with_momentum(params, X, y):
    """Four steps of momentum on a two-layer network; the losses."""
    net = TwoLayerNet({k: v.copy() for k, v in params.items()})
    velocity = {k: np.zeros_like(v) for k, v in net.params.items()}
    losses = []
    for _ in range(4):
        loss, grads = net.loss(X, y)
        losses.append(loss)
        for name, grad in grads.items():
            velocity[name] = 0.9 * velocity[name] - 0.1 * grad
            net.params[name] += velocity[name]
    return losses


@program(
    lambda rng: (rng.normal(size=(2, 2, 5, 5)), rng.normal(size=(3, 2, 3, 3)), rng.normal(size=3)),
    smooth=1,
)
def naive_convolution(x, w, b, stride=2, pad=1):
    """A convolution layer with four loops."""
    N, C, H, W = x.shape
    F, _, HH, WW = w.shape
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)), mode="constant")
    H_out, W_out = 1 + (H + 2 * pad - HH) // stride, 1 + (W + 2 * pad - WW) // stride
    out = np.zeros((N, F, H_out, W_out))
    for n in range(N):
        for f in range(F):
            for i in range(H_out):
                for j in range(W_out):
                    window = padded[
                        n, :, i * stride : i * stride + HH, j * stride : j * stride + WW
                    ]
                    out[n, f, i, j] = np.sum(window * w[f]) + b[f]
    return out


@program(lambda rng: (rng.normal(size=(2, 2, 4, 4)), rng.normal(size=(2, 2, 2, 2))), smooth=0)
def max_pool(x, dout):
    """Max pooling and its backward with an argmax per window."""
    N, C, H, W = x.shape
    out, dx = np.zeros((N, C, H // 2, W // 2)), np.zeros(x.shape)
    for n in range(N):
        for c in range(C):
            for i in range(H // 2):
                for j in range(W // 2):
                    window = x[n, c, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
                    out[n, c, i, j] = np.max(window)
                    r, s = np.unravel_index(np.argmax(window), window.shape)
                    dx[n, c, 2 * i + r, 2 * j + s] += dout[n, c, i, j]
    return out, dx


@program(
    lambda rng: (
        rng.normal(size=(6, 4)),
        rng.normal(size=4),
        rng.normal(size=4),
        {"mode": "train"},
    ),
    smooth=0,
)
def batch_norm(x, gamma, beta, bn_param):
    """Batch normalisation whose running averages live in the options."""
    mode, eps = bn_param["mode"], bn_param.get("eps", 1e-5)
    momentum = bn_param.get("momentum", 0.9)
    running_mean = bn_param.get("running_mean", np.zeros(x.shape[1], dtype=x.dtype))
    running_var = bn_param.get("running_var", np.zeros(x.shape[1], dtype=x.dtype))
    if mode == "train":
        mean, var = x.mean(axis=0), x.var(axis=0)
        running_mean = momentum * running_mean + (1 - momentum) * mean
        running_var = momentum * running_var + (1 - momentum) * var
    elif mode == "test":
        mean, var = running_mean, running_var
    else:
        raise ValueError(f"Invalid mode {mode!r}")
    out = gamma * (x - mean) / np.sqrt(var + eps) + beta
    return out, running_mean, running_var


@program(
    lambda rng: (rng.normal(size=(5, 8)), 0.7, int(rng.integers(50))),
    smooth=0,
    branches=True,
)
def dropout(x, keep, seed):
    """Inverted dropout with a seeded global generator."""
    np.random.seed(seed)
    mask = (np.random.rand(*x.shape) < keep) / keep
    return x * mask


def im2col(x, k):
    """All windows of ``k`` by ``k`` as columns, by fancy indexing."""
    C, H, W = x.shape
    i0 = np.tile(np.repeat(np.arange(k), k), C)
    j0 = np.tile(np.arange(k), k * C)
    i1, j1 = np.repeat(np.arange(H - k + 1), W - k + 1), np.tile(np.arange(W - k + 1), H - k + 1)
    channel = np.repeat(np.arange(C), k * k).reshape(-1, 1)
    rows, columns = i0.reshape(-1, 1) + i1.reshape(1, -1), j0.reshape(-1, 1) + j1.reshape(1, -1)
    return x[channel, rows, columns], (channel, rows, columns)


@program(lambda rng: (rng.normal(size=(2, 4, 5)), rng.normal(size=(3, 18))), smooth=0)
def column_convolution(x, kernel):
    """A convolution through columns and its input gradient by ``np.add.at``."""
    columns, index = im2col(x, 3)
    out = kernel @ columns
    dx = np.zeros_like(x)
    np.add.at(dx, index, kernel.T @ np.tanh(out))
    return out.reshape(3, 2, 3), dx

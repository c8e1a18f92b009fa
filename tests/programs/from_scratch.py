"""Methods of machine learning written from scratch, as in notebooks and small repositories."""

import math
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
from numpy.linalg import norm

from tests.programs.table import program


class CharRNN:
    """A recurrent network over characters, with its gradients by hand."""

    def __init__(self, vocabulary, hidden, seed=0):
        rs = np.random.RandomState(seed)
        self.vocabulary = vocabulary
        self.params = {
            "Wxh": rs.randn(hidden, vocabulary) * 0.1,
            "Whh": rs.randn(hidden, hidden) * 0.1,
            "Why": rs.randn(vocabulary, hidden) * 0.1,
            "bh": np.zeros((hidden, 1)),
            "by": np.zeros((vocabulary, 1)),
        }

    def forward(self, inputs, targets, hprev):
        """The states by time step, the probabilities by time step, and the loss."""
        p = self.params
        xs, hs, ps, loss = {}, {-1: np.copy(hprev)}, {}, 0
        for t in range(len(inputs)):
            xs[t] = np.zeros((self.vocabulary, 1))
            xs[t][inputs[t]] = 1
            hs[t] = np.tanh(p["Wxh"] @ xs[t] + p["Whh"] @ hs[t - 1] + p["bh"])
            y = np.dot(p["Why"], hs[t]) + p["by"]
            ps[t] = np.exp(y) / np.sum(np.exp(y))
            loss += -np.log(ps[t][targets[t], 0])
        return xs, hs, ps, loss

    def backward(self, targets, xs, hs, ps):
        """The clipped gradients."""
        p = self.params
        grads = {k: np.zeros_like(v) for k, v in p.items()}
        dhnext = np.zeros_like(hs[0])
        for t in reversed(range(len(targets))):
            dy = np.copy(ps[t])
            dy[targets[t]] -= 1
            grads["Why"] += np.dot(dy, hs[t].T)
            grads["by"] += dy
            dhraw = (1 - hs[t] * hs[t]) * (np.dot(p["Why"].T, dy) + dhnext)
            grads["bh"] += dhraw
            grads["Wxh"] += np.dot(dhraw, xs[t].T)
            grads["Whh"] += np.dot(dhraw, hs[t - 1].T)
            dhnext = np.dot(p["Whh"].T, dhraw)
        for g in grads.values():
            np.clip(g, -5, 5, out=g)
        return grads


@program(
    lambda rng: (rng.integers(0, 5, 4), rng.integers(0, 5, 4), rng.normal(size=(3, 1))), smooth=2
)
def character_model_with_adagrad(inputs, targets, h):
    """Two steps of Adagrad on a character model."""
    model = CharRNN(5, 3)
    memory = {k: np.zeros_like(v) for k, v in model.params.items()}
    losses = []
    for _ in range(2):
        xs, hs, ps, loss = model.forward(inputs, targets, h)
        grads = model.backward(targets, xs, hs, ps)
        for param, g, mem in zip(model.params.values(), grads.values(), memory.values()):
            mem += g * g  # noqa: PLW2901  in place
            param += -0.1 * g / np.sqrt(mem + 1e-8)  # noqa: PLW2901
        losses.append(loss)
    return losses, model.params["Wxh"], hs[len(inputs) - 1]


@program(
    lambda rng: (rng.normal(size=(20, 2)) + np.repeat(np.eye(2) * 6, 10, axis=0),), branches=True
)
def k_means_until_it_stays(X):
    """Centres chosen by a seeded RandomState, moved until they no longer move."""
    rng = np.random.RandomState(42)
    centres = X[rng.choice(X.shape[0], 2, replace=False)]
    for _ in range(20):
        D = np.sqrt(((X - centres[:, np.newaxis]) ** 2).sum(axis=2))
        labels = np.argmin(D, axis=0)
        new = np.array([X[labels == i].mean(axis=0) for i in range(2)])
        if np.all(np.abs(new - centres) < 1e-8):
            break
        centres = new
    return centres, labels


@program(lambda rng: (rng.normal(size=20) * 0.5 + np.repeat([0, 5.0], 10),), smooth=0)
def mixture_of_gaussians(x):
    """Expectation maximisation with lists of parameters."""
    mu, sigma, weight = [x.min(), x.max()], [1.0, 1.0], [0.5, 0.5]
    previous, history = -np.inf, []
    for _ in range(5):
        r = np.zeros((len(x), 2))
        for k in range(2):
            density = np.exp(-((x - mu[k]) ** 2) / (2 * sigma[k] ** 2))
            r[:, k] = weight[k] * density / (np.sqrt(2 * np.pi) * sigma[k])
        likelihood = np.log(r.sum(axis=1)).sum()
        r /= r.sum(axis=1, keepdims=True)
        for k in range(2):
            nk = r[:, k].sum()
            mu[k] = (r[:, k] * x).sum() / nk
            sigma[k] = math.sqrt((r[:, k] * (x - mu[k]) ** 2).sum() / nk)
            weight[k] = nk / len(x)
        history.append(likelihood)
        if abs(likelihood - previous) < 1e-9:
            break
        previous = likelihood
    return np.array(mu), np.array(sigma), history


class Node:
    """A node of a decision tree."""

    def __init__(self, feature=None, threshold=None, left=None, right=None, *, value=None):
        self.feature, self.threshold = feature, threshold
        self.left, self.right, self.value = left, right, value

    def is_leaf(self):
        """Whether the node decides."""
        return self.value is not None


def entropy(y):
    """The entropy of labels, in bits."""
    shares = np.bincount(y) / len(y)
    return -np.sum([p * np.log2(p) for p in shares if p > 0])


def grow(X, y, depth=0):
    """A decision tree of depth two."""
    n, features = X.shape
    if depth >= 2 or len(np.unique(y)) == 1:
        return Node(value=Counter(y).most_common(1)[0][0])
    best = -1
    for f in range(features):
        for t in np.unique(X[:, f])[::5]:
            left, right = (np.argwhere(m).flatten() for m in (X[:, f] <= t, X[:, f] > t))
            if len(left) == 0 or len(right) == 0:
                continue
            inside = len(left) / n * entropy(y[left]) + len(right) / n * entropy(y[right])
            if entropy(y) - inside > best:
                best, split, found = entropy(y) - inside, (f, t), (left, right)
    return Node(*split, *[grow(X[part, :], y[part], depth + 1) for part in found])


@program(lambda rng: (rng.normal(size=(15, 2)), rng.integers(0, 3, 15)), branches=True)
def decision_tree(X, y):
    """The predictions of a tree of nodes, grown recursively."""

    def decide(x, node):
        if node.is_leaf():
            return node.value
        return decide(x, node.left if x[node.feature] <= node.threshold else node.right)

    root = grow(X, y)
    return np.array([decide(x, root) for x in X])


@dataclass
class Scalar:
    """A number that knows its derivative, in the manner of tiny autograd engines."""

    data: float
    children: tuple = ()
    grad: float = 0.0
    push: object = field(default=lambda: None, repr=False)

    __hash__ = object.__hash__

    def __add__(self, other):
        other = other if isinstance(other, Scalar) else Scalar(other)
        out = Scalar(self.data + other.data, (self, other))

        def push():
            self.grad += out.grad
            other.grad += out.grad

        out.push = push
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Scalar) else Scalar(other)
        out = Scalar(self.data * other.data, (self, other))

        def push():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out.push = push
        return out

    def tanh(self):
        """The hyperbolic tangent."""
        t = (math.exp(2 * self.data) - 1) / (math.exp(2 * self.data) + 1)
        out = Scalar(t, (self,))

        def push():
            self.grad += (1 - t * t) * out.grad

        out.push = push
        return out

    def backward(self):
        """Fill in the derivatives of everything below."""
        order, seen = [], set()

        def visit(v):
            if v not in seen:
                seen.add(v)
                for child in v.children:
                    visit(child)
                order.append(v)

        visit(self)
        self.grad = 1.0
        for v in reversed(order):
            v.push()


@program(lambda rng: (rng.normal(size=3), rng.normal(size=3)), smooth=0)
def tiny_autograd(x, w):
    """A neuron of Scalar objects and its derivatives."""
    weights = [Scalar(v) for v in w]
    total = reduce(lambda a, b: a + b, [a * Scalar(b) for a, b in zip(weights, x)])
    out = total.tanh()
    out.backward()
    return out.data, [v.grad for v in weights]


@program(lambda rng: (rng.normal(size=(8, 3)),), smooth=0, branches=True)
def perplexity_search(X):
    """The affinities of t-SNE, with a bisection for each point."""
    n, log_u = len(X), np.log(3.0)
    D = np.square(X[:, None] - X[None]).sum(-1)
    P, beta = np.zeros((n, n)), np.ones((n, 1))
    for i in range(n):
        low, high = -np.inf, np.inf
        others = np.concatenate((np.r_[0:i], np.r_[i + 1 : n]))
        for _ in range(6):
            p = np.exp(-D[i, others] * beta[i])
            total = sum(p)
            gap = np.log(total) + beta[i] * np.sum(D[i, others] * p) / total - log_u
            if np.abs(gap) < 1e-3:
                break
            if gap > 0:
                low = beta[i].copy()
                beta[i] = beta[i] * 2.0 if np.isinf(high) else (beta[i] + high) / 2.0
            else:
                high = beta[i].copy()
                beta[i] = beta[i] / 2.0 if np.isinf(low) else (beta[i] + low) / 2.0
        P[i, others] = p / total
    P = P + P.T
    return P / np.sum(P)


@program(lambda rng: (rng.normal(size=(5, 3)), rng.normal(size=5)), smooth=1, branches=True)
def lasso_by_coordinates(X, y):
    """Coordinate descent with soft thresholds."""
    w = np.zeros(3)
    for _ in range(10):
        for j in range(3):
            rest = y - X @ w + X[:, j] * w[j]
            rho, z = X[:, j] @ rest, (X[:, j] ** 2).sum()
            w[j] = (rho + 0.1) / z if rho < -0.1 else (rho - 0.1) / z if rho > 0.1 else 0.0
    return w


@program(lambda rng: (rng.normal(size=(10, 2)), rng.choice([-1, 1], 10)), branches=True)
def perceptron_rule(X, y):
    """Rosenblatt's rule, with the errors of each epoch."""
    w, b, errors = np.zeros(2), 0, []
    for _ in range(5):
        wrong = 0
        for x, t in zip(X, y):
            if t * (x @ w + b) <= 0:
                w += t * x
                b += t
                wrong += 1
        errors.append(wrong)
        if wrong == 0:
            break
    return w, b, errors


@program(
    lambda rng: (rng.normal(size=(6, 2)), rng.normal(size=(3, 2)), rng.normal(size=6)), smooth=2
)
def gaussian_process(X, new, y):
    """The posterior of a Gaussian process through a Cholesky factor."""

    def kernel(a, b, length=1.0):
        sq = np.sum(a**2, 1).reshape(-1, 1) + np.sum(b**2, 1) - 2 * np.dot(a, b.T)
        return np.exp(-0.5 / length**2 * sq)

    L = np.linalg.cholesky(kernel(X, X) + 1e-2 * np.eye(len(X)))
    Lk = np.linalg.solve(L, kernel(X, new))
    mean = np.dot(Lk.T, np.linalg.solve(L, y)).reshape((3,))
    deviation = np.sqrt(np.diag(kernel(new, new)) - np.sum(Lk**2, axis=0))
    return mean, deviation, np.log(np.diagonal(L)).sum()


@program(lambda rng: (rng.normal(size=(30, 2)),), branches=True)
def independent_components(X):
    """FastICA by deflation, after whitening."""
    X = X - X.mean(0)
    values, vectors = np.linalg.eigh(np.cov(X, rowvar=False))
    order = values.argsort()[::-1]
    white = X @ vectors[:, order] / np.sqrt(values[order])
    W = np.array([[1.0, 0.3], [0.2, 1.0]])
    for c in range(2):
        for _ in range(20):
            old = W[c].copy()
            g = np.tanh(white @ old)
            new = (white * g[:, None]).mean(0) - (1 - g**2).mean() * old
            if c > 0:
                new -= np.sum([(new @ W[j]) * W[j] for j in range(c)], axis=0)
            new /= norm(new)
            W[c] = new
            if abs(abs((new * old).sum()) - 1) < 1e-6:
                break
    return np.abs(W), values


@program(lambda rng: (rng.normal(size=(6, 3)), rng.integers(0, 2, 6), 0.1), smooth=0)
def network_of_layer_objects(X, y, rate):
    """Three steps of a network with dropout by a seeded generator and a history."""
    rng, history = np.random.default_rng(3), defaultdict(list)
    layers = [
        {"W": rng.normal(0, np.sqrt(2 / i), (i, o)), "b": np.zeros((1, o))}
        for i, o in ((3, 4), (4, 2))
    ]
    for _ in range(3):
        mask = (rng.random((len(X), 4)) < 0.8) / 0.8
        hidden = np.maximum(X @ layers[0]["W"] + layers[0]["b"], 0) * mask
        out = hidden @ layers[1]["W"] + layers[1]["b"]
        e = np.exp(out - out.max(1, keepdims=True))
        probability = e / e.sum(1, keepdims=True)
        history["loss"].append(-np.log(probability[np.arange(len(y)), y]).mean())
        g = probability.copy()
        g[range(len(y)), y] -= 1
        g /= len(y)
        back = g @ layers[1]["W"].T * (hidden > 0) * mask
        for layer, inputs, slope in zip(layers, (X, hidden), (back, g)):
            layer["W"] -= rate * inputs.T @ slope
            layer["b"] -= rate * slope.sum(0, keepdims=True)
    return np.array(history["loss"]), layers[0]["W"]

"""Language models and sequence alignment."""

import math
from functools import reduce

import numpy as np

from tests.programs.table import program


def gelu(x):
    """The tanh form of the Gaussian error linear unit."""
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def softmax(x):
    """exp(x) over its sum along the last axis."""
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x, g, b, eps=1e-5):
    """Rows with mean zero and variance one, scaled and shifted."""
    mean, variance = np.mean(x, axis=-1, keepdims=True), np.var(x, axis=-1, keepdims=True)
    return g * (x - mean) / np.sqrt(variance + eps) + b


def linear(x, w, b):
    """A dense layer."""
    return x @ w + b


def attention(q, k, v, mask):
    """Scaled dot-product attention."""
    return softmax(q @ k.T / np.sqrt(q.shape[-1]) + mask) @ v


def multi_head(x, c_attn, c_proj, n_head):
    """Causal self-attention with several heads."""
    x = linear(x, **c_attn)
    heads = list(map(lambda part: np.split(part, n_head, axis=-1), np.split(x, 3, axis=-1)))
    mask = (1 - np.tri(x.shape[0], dtype=x.dtype)) * -1e10
    return linear(np.hstack([attention(q, k, v, mask) for q, k, v in zip(*heads)]), **c_proj)


def block(x, mlp, attn, ln_1, ln_2, n_head):
    """A transformer block."""
    x = x + multi_head(layer_norm(x, **ln_1), **attn, n_head=n_head)
    hidden = gelu(linear(layer_norm(x, **ln_2), **mlp["c_fc"]))
    return x + linear(hidden, **mlp["c_proj"])


def transformer_params(rng, d=4, vocabulary=7, context=5):
    """Random parameters of a transformer with one block."""

    def dense(m, n):
        return {"w": rng.normal(size=(m, n)) * 0.3, "b": rng.normal(size=n) * 0.1}

    def norm():
        return {"g": np.ones(d), "b": np.zeros(d)}

    attn = {"c_attn": dense(d, 3 * d), "c_proj": dense(d, d)}
    mlp = {"c_fc": dense(d, 4 * d), "c_proj": dense(4 * d, d)}
    return {
        "wte": rng.normal(size=(vocabulary, d)),
        "wpe": rng.normal(size=(context, d)),
        "blocks": [{"mlp": mlp, "attn": attn, "ln_1": norm(), "ln_2": norm()}],
        "ln_f": norm(),
    }


def transformer(inputs, wte, wpe, blocks, ln_f, n_head):
    """Logits of the next token at each place."""
    x = wte[inputs] + wpe[range(len(inputs))]
    for parameters in blocks:
        x = block(x, **parameters, n_head=n_head)
    return layer_norm(x, **ln_f) @ wte.T


@program(lambda rng: (transformer_params(rng), [int(i) for i in rng.integers(0, 7, 5)]), smooth=0)
def transformer_loss(params, tokens):
    """The mean cross entropy of the next token."""
    x, y = tokens[:-1], tokens[1:]
    probabilities = softmax(transformer(x, **params, n_head=2))
    return np.mean(-np.log(probabilities[range(len(y)), y]))


@program(
    lambda rng: (transformer_params(rng), [int(i) for i in rng.integers(0, 7, 2)]), branches=True
)
def generate(params, tokens):
    """Three tokens that are appended greedily."""
    tokens = list(tokens)
    for _ in range(3):
        logits = transformer(tokens, **params, n_head=2)
        tokens.append(int(np.argmax(logits[-1])))
    return tokens[2:]


def rnn_params(rng):
    """Random parameters of a character model with five characters and four hidden units."""
    return (rng.normal(size=(4, 5)), rng.normal(size=(4, 4)), rng.normal(size=(5, 4)))


@program(
    lambda rng: (*rnn_params(rng), rng.integers(0, 5, 6).tolist(), np.zeros((4, 1))),
    smooth=1,
)
def character_rnn(Wxh, Whh, Why, text, hprev):
    """Loss and clipped gradients of a recurrent character model, with states in dictionaries."""
    inputs, targets = text[:-1], text[1:]
    xs, hs, ps = {}, {-1: np.copy(hprev)}, {}
    loss = 0
    for t in range(len(inputs)):
        xs[t] = np.zeros((5, 1))
        xs[t][inputs[t]] = 1
        hs[t] = np.tanh(np.dot(Wxh, xs[t]) + np.dot(Whh, hs[t - 1]))
        scores = np.dot(Why, hs[t])
        ps[t] = np.exp(scores) / np.sum(np.exp(scores))
        loss += -np.log(ps[t][targets[t], 0])
    dWxh, dWhh, dWhy = np.zeros_like(Wxh), np.zeros_like(Whh), np.zeros_like(Why)
    dhnext = np.zeros_like(hs[0])
    for t in reversed(range(len(inputs))):
        dy = np.copy(ps[t])
        dy[targets[t]] -= 1
        dWhy += np.dot(dy, hs[t].T)
        dhraw = (1 - hs[t] * hs[t]) * (np.dot(Why.T, dy) + dhnext)
        dWxh += np.dot(dhraw, xs[t].T)
        dWhh += np.dot(dhraw, hs[t - 1].T)
        dhnext = np.dot(Whh.T, dhraw)
    for dparam in [dWxh, dWhh, dWhy]:
        np.clip(dparam, -5, 5, out=dparam)
    return loss, dWxh, dWhh, dWhy


@program(
    lambda rng: (rng.normal(size=(5, 3)), rng.normal(size=(7, 16)), rng.normal(size=16)), smooth=0
)
def lstm(sequence, W, b):
    """Hidden states of a recurrent layer with gates cut from one product."""

    def sigmoid(z):
        return 1 / (1 + np.exp(-z))

    H = b.size // 4
    h, c = np.zeros(H), np.zeros(H)
    states = []
    for x in sequence:
        gates = np.concatenate([x, h]) @ W + b
        i, f, o = (sigmoid(gates[k * H : (k + 1) * H]) for k in range(3))
        g = np.tanh(gates[3 * H :])
        c = f * c + i * g
        h = o * np.tanh(c)
        states.append(h)
    return np.stack(states), c


@program(
    lambda rng: (rng.normal(size=(6, 4)), int(rng.integers(6)), rng.integers(0, 6, 3)), smooth=0
)
def skip_gram(embeddings, centre, negatives):
    """One step of word vectors with negative samples."""
    vectors = embeddings.copy()
    v = vectors[centre]
    update = np.zeros(4)
    loss = 0.0
    for k, word in enumerate([(centre + 1) % 6, *negatives]):
        label = 1.0 if k == 0 else 0.0
        p = 1 / (1 + np.exp(-np.dot(v, vectors[word])))
        loss -= np.log(p if label else 1 - p)
        update += (label - p) * vectors[word]
    vectors[centre] += 0.1 * update
    return vectors, loss


@program(
    lambda rng: (
        rng.dirichlet(np.ones(3), size=3),
        rng.dirichlet(np.ones(4), size=3),
        rng.integers(0, 4, 6),
    ),
    smooth=0,
)
def hidden_markov(transition, emission, observations):
    """The log likelihood by the scaled forward pass and the best path by Viterbi's."""
    n = transition.shape[0]
    T = len(observations)
    alpha = np.ones(n) / n * emission[:, observations[0]]
    log_likelihood = 0.0
    delta, back = np.log(alpha), np.zeros((T, n), dtype=int)
    for t in range(1, T):
        scale = alpha.sum()
        log_likelihood += np.log(scale)
        alpha = (alpha / scale) @ transition * emission[:, observations[t]]
        scores = delta[:, None] + np.log(transition)
        back[t] = np.argmax(scores, axis=0)
        delta = np.max(scores, axis=0) + np.log(emission[:, observations[t]])
    path = [np.argmax(delta)]
    for t in range(T - 1, 0, -1):
        path.append(back[t][path[-1]])
    return log_likelihood + np.log(alpha.sum()), np.array(path[::-1])


@program(lambda rng: (rng.integers(0, 4, 6), rng.integers(0, 4, 5)), branches=True)
def edit_distance(a, b):
    """The table of Wagner and Fischer over sequences of token numbers."""
    table = np.zeros((len(a) + 1, len(b) + 1), dtype=np.int64)
    table[:, 0] = np.arange(len(a) + 1)
    table[0] = np.arange(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            cost = np.where(a[i - 1] == b[j - 1], 0, 1)
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + cost)
    return table[-1, -1]


@program(lambda rng: (rng.normal(size=(6, 3)), rng.normal(size=(3, 3))), smooth=0)
def chain_crf(emissions, transitions):
    """The log partition function of a chain by a fold."""

    def logsumexp(a, axis):
        m = a.max(axis=axis)
        return m + np.log(np.exp(a - np.expand_dims(m, axis)).sum(axis=axis))

    def step(alpha, emission):
        return logsumexp(alpha[:, None] + transitions, 0) + emission

    return logsumexp(reduce(step, emissions[1:], emissions[0]), 0) / math.sqrt(len(emissions))

"""Populations, neurons, sequences and trees of species."""

import math
from collections import namedtuple

import numpy as np

from tests.programs.table import program

State = namedtuple("State", "s e i r")


@program(lambda rng: (rng.uniform(0.3, 0.6), 0.2, 0.1), smooth=0)
def epidemic(beta, sigma, gamma):
    """An epidemic in four compartments, a named tuple a day; the peak and its day."""
    state = State(0.99, 0.0, 0.01, 0.0)
    history = [state]
    for _ in range(15):
        s, e, i, r = state
        infected, ill, cured = beta * s * i, sigma * e, gamma * i
        state = state._replace(s=s - infected, e=e + infected - ill, i=i + ill - cured, r=r + cured)
        history.append(state)
    curve = np.array([day.i for day in history])
    return curve.max(), curve.argmax(), np.array(history)[-1]


@program(lambda rng: (rng.uniform(5, 15, size=10),), smooth=0)
def hodgkin_huxley(current):
    """The voltage of a neuron with gates as small functions."""
    V, m, h, n = -65.0, 0.05, 0.6, 0.32
    trace = np.zeros(len(current))

    def vtrap(x, y):
        return x / (np.exp(x / y) - 1.0)

    for k, I in enumerate(current):
        am, bm = 0.1 * vtrap(-(V + 40), 10), 4 * math.exp(-(V + 65) / 18)
        ah, bh = 0.07 * math.exp(-(V + 65) / 20), 1 / (math.exp(-(V + 35) / 10) + 1)
        an, bn = 0.01 * vtrap(-(V + 55), 10), 0.125 * math.exp(-(V + 65) / 80)
        m += 0.01 * (am * (1 - m) - bm * m)
        h += 0.01 * (ah * (1 - h) - bh * h)
        n += 0.01 * (an * (1 - n) - bn * n)
        ionic = 120 * m**3 * h * (V - 50) + 36 * n**4 * (V + 77) + 0.3 * (V + 54.4)
        V += 0.01 * (I - ionic)
        trace[k] = V
    return trace


@program(lambda rng: (rng.uniform(0.5, 3, size=8),), branches=True)
def integrate_and_fire(current):
    """Spike times of a leaky neuron that is reset."""
    v, spikes = 0.0, []
    for t, i in enumerate(current):
        v += 0.5 * (i - 0.2 * v)
        if v > 1.5:
            spikes.append(t)
            v = 0.0
    return spikes, v


@program(lambda rng: (rng.integers(0, 4, 8), rng.integers(0, 4, 6)), branches=True)
def smith_waterman(a, b):
    """The score of the best local alignment."""
    H = np.zeros((len(a) + 1, len(b) + 1))
    for i in range(1, H.shape[0]):
        for j in range(1, H.shape[1]):
            match = H[i - 1, j - 1] + (2 if a[i - 1] == b[j - 1] else -1)
            H[i, j] = max(0, match, H[i - 1, j] - 1, H[i, j - 1] - 1)
    return H.max(), np.unravel_index(np.argmax(H), H.shape)


@program(lambda rng: (rng.dirichlet(np.ones(3)), rng.uniform(0.5, 2, size=(3, 3))), smooth=0)
def replicator(frequencies, payoff):
    """Frequencies of strategies in an evolving population."""
    p = np.array(frequencies)
    history = np.zeros((5, len(p)))
    for t in range(5):
        fitness = payoff @ p
        mean = np.dot(p, fitness)
        p = p * fitness / mean
        history[t, :] = p
    return history, -np.sum(p * np.log(p))


@program(lambda rng: (rng.uniform(0.1, 0.9), np.random.default_rng(int(rng.integers(99)))))
def wright_fisher(frequency, generator):
    """Genetic drift with binomial draws."""
    N = 30
    trajectory = [frequency]
    for _ in range(6):
        frequency = generator.binomial(N, frequency) / N
        trajectory.append(frequency)
    return np.array(trajectory)


@program(lambda rng: (rng.uniform(0.1, 0.5, size=4), rng.integers(0, 4, size=(3, 5))), smooth=0)
def tree_likelihood(lengths, leaves):
    """Felsenstein's pruning on a tree of three species."""

    def substitution(t):
        same = 0.25 + 0.75 * math.exp(-4 / 3 * t)
        P = np.full((4, 4), (1 - same) / 3)
        np.fill_diagonal(P, same)
        return P

    one_hot = np.eye(4)[leaves]
    log_likelihood = 0.0
    for site in range(leaves.shape[1]):
        inner = np.ones(4)
        for k in (0, 1):
            inner *= substitution(lengths[k]) @ one_hot[k, site]
        root = (substitution(lengths[2]) @ inner) * (substitution(lengths[3]) @ one_hot[2, site])
        log_likelihood += math.log(np.dot(np.full(4, 0.25), root))
    return log_likelihood


@program(lambda rng: (rng.uniform(0.5, 2, size=5), rng.uniform(1, 3)), smooth=1)
def michaelis_menten(substrate, vmax, km=0.7):
    """Rates, their double reciprocals and the fitted line."""
    rates = [vmax * s / (km + s) for s in substrate]
    x, y = 1 / np.asarray(substrate), 1 / np.asarray(rates)
    slope, intercept = np.polyfit(x, y, 1)
    return 1 / intercept, slope / intercept

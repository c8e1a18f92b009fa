"""A program that uses every feature of ``lt.scan``, for its tests."""

import numpy as np

import letir as lt

RNG = np.random.default_rng(0)
W = RNG.normal(size=(3, 3)) * 0.5


def network(w, h, xs, *, reverse=False, every=None, unroll=1):
    """A scan with nested carry and ys, a Python number in the carry, and a closed-over w."""

    def step(carry, x):
        h = np.tanh(carry["h"] @ w + x)
        return {"h": h, "s": carry["s"] + 2 * h.sum()}, (h**2, [h.sum()])

    start = {"h": h, "s": 0}
    carry, (rows, [sums]) = lt.scan(
        step, start, xs, reverse=reverse, unroll=unroll, checkpoint_every=every
    )
    weights = np.arange(1, len(xs) + 1)
    return (rows * weights[:, None]).sum() + carry["s"] + (sums * weights).sum()


def plain_network(w, h, xs, *, reverse=False):
    """The same as a Python loop."""
    total = 0.0 * (w.sum() + h.sum())
    order = range(len(xs) - 1, -1, -1) if reverse else range(len(xs))
    for i in order:
        h = np.tanh(h @ w + xs[i])
        total = total + 2 * h.sum() + (i + 1) * ((h**2).sum() + h.sum())
    return total


def scans(fn):
    """The loops of a program."""
    return [bind for bind in fn.binds if bind.op.name == "scan"]


def operations(bind):
    """The operations of a step."""
    return [inner.op.name for inner in bind.attrs["body"].binds]

"""Figures of eager mode: many small operations, and a long history."""

import gc
import itertools
import time
from statistics import median

import numpy as np

from benchmarks.harness import DemoSettings, across_sizes, unit
from benchmarks.peers import installed
from benchmarks.workloads import arrays, chain_sum
from letir import Variable

OPERATIONS, ROUNDS, REPEATS = 1000, 15, 10


def value_and_gradient(n: int, x: np.ndarray, y: np.ndarray) -> tuple:
    """The value and the gradient of ``n`` operations, recorded each time."""
    x = Variable(x, requires_grad=True)
    out = chain_sum(np, n, x, y)
    out.backward()
    return out.data, x.grad.data


def tiny(effort: DemoSettings) -> str:
    """The cost of value and gradient for each of 1,000 operations."""
    return f"{alternating([letir_tiny])[0]:.0f} u"


def letir_tiny() -> tuple:
    """Value and gradient of 1,000 operations on 4 elements."""
    return value_and_gradient(OPERATIONS, *arrays(4))


def tiny_compared_with(peer: str):
    """A figure: the cost of a peer, and the ratio of letir's cost to it."""

    def figure(effort: DemoSettings) -> str:
        ours, cost = alternating([letir_tiny, PEERS[peer]()])
        return f"{cost:.0f} u, letir / {peer} = {ours / cost:.2f}"

    return figure


def alternating(functions: list) -> list[float]:
    """The cost of each function per operation, in u: medians of alternating rounds."""
    costs: list[list[float]] = [[] for _ in functions]
    for function in functions:
        function()
    for _ in itertools.repeat(None, ROUNDS):
        for found, function in zip(costs, functions, strict=True):
            before = unit()
            gc.collect()
            start = time.process_time()
            for _ in itertools.repeat(None, REPEATS):
                function()
            seconds = (time.process_time() - start) / REPEATS
            found.append(seconds / OPERATIONS / ((before + unit()) / 2))
    return [median(found) for found in costs]


def autograd_tiny():
    """Value and gradient in autograd, which records at every call."""
    autograd, anp = installed("autograd"), installed("autograd.numpy")
    gradient = autograd.value_and_grad(lambda x, y: chain_sum(anp, OPERATIONS, x, y))
    args = arrays(4)
    return lambda: gradient(*args)


def torch_tiny():
    """Value and gradient in torch's eager mode."""
    torch = installed("torch")
    x, y = map(torch.from_numpy, arrays(4))

    def run():
        leaf = x.clone().requires_grad_()
        chain_sum(torch, OPERATIONS, leaf, y).backward()
        return leaf.grad

    return run


PEERS = {"autograd": autograd_tiny, "torch": torch_tiny}


def long_history(effort: DemoSettings) -> str:
    """The cost of backward per node of a history, at each length."""

    def prepare(n, size):
        x, y = arrays(size)
        return (chain_sum(np, n, Variable(x, requires_grad=True), y),)

    return across_sizes(effort, Variable.backward, prepare)


def long_record(effort: DemoSettings) -> str:
    """The cost of recording per node of a history, at each length, beyond NumPy's."""

    def prepare(n, size):
        x, y = arrays(size)
        return n, Variable(x, requires_grad=True), y

    return across_sizes(effort, lambda *args: chain_sum(np, *args), prepare, floor=plain_sum)


def plain_sum(n: int, size: int):
    """``chain_sum`` in NumPy."""
    return chain_sum(np, n, *arrays(size))

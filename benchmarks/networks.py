"""A convolution and its gradient in letir and PyTorch; each package chooses its threads."""

import time
from collections.abc import Callable

import numpy as np

from benchmarks.harness import DemoSettings
from benchmarks.peers import installed
from letir import nn, trace, value_and_grad

IMAGES, CHANNELS, SIDE, OUTPUTS, KERNEL = 16, 64, 16, 64, 3


def operands() -> tuple[np.ndarray, np.ndarray]:
    """Images and a weight, in single precision."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(IMAGES, CHANNELS, SIDE, SIDE))
    w = rng.normal(size=(OUTPUTS, CHANNELS, KERNEL, KERNEL))
    return x.astype(np.float32), w.astype(np.float32)


def milliseconds(run: Callable, rounds: int) -> float:
    """The least time of ``run``: other load on the machine only adds to it."""
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        found.append(1000 * (time.perf_counter() - start))
    return min(found)


def both(forward: Callable, gradient: Callable, effort: DemoSettings) -> str:
    rounds = 8 * effort.sizes[0][1] + 1
    return f"{milliseconds(forward, rounds):.1f}, {milliseconds(gradient, rounds):.1f} ms"


def convolution(effort: DemoSettings) -> str:
    x, w = operands()
    forward = trace(lambda x, w: nn.conv2d(x, w, padding=1), x, w)
    gradient = value_and_grad(
        trace(lambda x, w: (nn.conv2d(x, w, padding=1) ** 2).sum(), x, w), (0, 1)
    )
    return both(lambda: forward(x, w), lambda: gradient(x, w), effort)


def torch_convolution(effort: DemoSettings) -> str:
    torch = installed("torch")
    conv2d = torch.nn.functional.conv2d
    x, w = (torch.from_numpy(a).requires_grad_() for a in operands())

    def forward():
        with torch.no_grad():
            return conv2d(x, w, padding=1)

    def gradient():
        return torch.autograd.grad((conv2d(x, w, padding=1) ** 2).sum(), (x, w))

    return both(forward, gradient, effort)

"""A convolution and its gradient in letir and PyTorch, on one core."""

from collections.abc import Callable
from statistics import median

import numpy as np

from benchmarks.harness import DemoSettings, timed
from benchmarks.peers import installed
from letir import jit, nn, value_and_grad

IMAGES, CHANNELS, SIDE, OUTPUTS, KERNEL = 16, 64, 16, 64, 3


def operands() -> tuple[np.ndarray, np.ndarray]:
    """Images and a weight, in single precision."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(IMAGES, CHANNELS, SIDE, SIDE))
    w = rng.normal(size=(OUTPUTS, CHANNELS, KERNEL, KERNEL))
    return x.astype(np.float32), w.astype(np.float32)


def convolution(effort: DemoSettings) -> str:
    """CPU time of value, and of value and gradient, of a compiled convolution."""
    return figures(compiled(), effort)


def torch_convolution(effort: DemoSettings) -> str:
    """The same in PyTorch, and letir's times divided by PyTorch's, measured in turns."""
    return figures(compiled(), effort, torch_calls())


def figures(own: list[Callable], effort: DemoSettings, others: list[Callable] | None = None) -> str:
    """The milliseconds of ``own``, or of ``others`` with the ratios of ``own`` to them."""
    rounds = 8 * effort.sizes[0][1] + 1
    calls = [*own, *(others or [])]
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, found in zip(calls, seconds, strict=True):
            found.append(timed(call))
    medians = [1000 * median(found) for found in seconds]
    text = ", ".join([f"{each:.1f}" for each in medians[-2:]]) + " ms"
    if others is None:
        return text
    ratios = [f"{a / b:.2f}" for a, b in zip(medians, medians[2:], strict=False)]
    return f"{text}, letir / PyTorch = {', '.join(ratios)}"


def compiled() -> list[Callable]:
    """Calls of jitted functions: the convolution, and the value and gradient of a loss."""
    x, w = operands()
    forward = jit(lambda x, w: nn.conv2d(x, w, padding=1))
    gradient = jit(value_and_grad(lambda x, w: (nn.conv2d(x, w, padding=1) ** 2).sum(), (0, 1)))
    return [lambda: forward(x, w), lambda: gradient(x, w)]


def torch_calls() -> list[Callable]:
    """The same calls of PyTorch."""
    torch = installed("torch")
    torch.set_num_threads(1)
    conv2d = torch.nn.functional.conv2d
    x, w = (torch.from_numpy(a).requires_grad_() for a in operands())

    def forward():
        with torch.no_grad():
            return conv2d(x, w, padding=1)

    def gradient():
        return torch.autograd.grad((conv2d(x, w, padding=1) ** 2).sum(), (x, w))

    return [forward, gradient]

"""The Jacobian of a function from R^1000 to R^1000 in letir and in JAX without jit, interleaved."""

import time
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np

from benchmarks.harness import DemoSettings, Skipped
from benchmarks.peers import installed
from letir import jacrev

SIZE = 1000


def layers(xp, first, second, x):
    """Two layers with a gate between them and a residual connection."""
    return xp.tanh(second @ (xp.sin(first @ x) * x)) + x


def operands(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two matrices and a vector."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, size, size)) / np.sqrt(size)
    return first, second, rng.normal(size=size)


def letir_call(size: int) -> Callable[[], np.ndarray]:
    """A call that records and evaluates each time, as a user's would; the plan is made once."""
    first, second, x = operands(size)
    return lambda: jacrev(partial(layers, np, first, second))(x)


def jax_call(size: int) -> Callable:
    """The same in JAX, in double precision."""
    jax, jnp = installed("jax"), installed("jax.numpy")
    jax.config.update("jax_enable_x64", True)
    first, second, x = map(jnp.asarray, operands(size))
    return lambda: jax.jacrev(partial(layers, jnp, first, second))(x).block_until_ready()


def seconds(call: Callable) -> float:
    """The wall-clock time of one call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def letir_jacobian(effort: DemoSettings, size: int = SIZE) -> str:
    """letir's median time as a multiple of JAX's, in alternating calls, and in milliseconds."""
    own, rounds = letir_call(size), effort.sizes[0][1]
    own()
    try:
        other = jax_call(size)
        other()
        pairs = [(seconds(own), seconds(other)) for _ in range(rounds)]
    except Skipped:
        return f"{median([seconds(own) for _ in range(rounds)]) * 1e3:.0f} ms"
    ratio = median([a / b for a, b in pairs])
    return f"{ratio:.2f} x JAX; {median([a for a, _ in pairs]) * 1e3:.0f} ms"


def jax_jacobian(effort: DemoSettings, size: int = SIZE) -> str:
    """The median of JAX's time in milliseconds."""
    call = jax_call(size)
    call()
    return f"{median([seconds(call) for _ in range(effort.sizes[0][1])]) * 1e3:.0f} ms"

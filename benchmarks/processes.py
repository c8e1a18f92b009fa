"""Figures that need a fresh process: imports, first calls, memory, runs that may take forever."""

from statistics import median

from benchmarks.harness import ROOT, DemoSettings, fresh_process

REPEATS = 7
TIMER = """
import time
{before}
start = time.process_time()
{code}
print(time.process_time() - start)
"""
MEMORY = """
import gc
import numpy as np
from benchmarks.workloads import long_chain

def resident(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))

def settled():
    gc.collect()
    open("/proc/self/clear_refs", "w").write("5")  # the peak begins anew
    return resident("VmRSS")
"""


def seconds(code: str, before: str = "import numpy", repeats: int = REPEATS) -> float:
    """The median CPU time of ``code`` in seconds, each run in its own process."""
    text = TIMER.format(before=before, code=code)
    return median(fresh_process(text) for _ in range(repeats))


# ---- imports and first calls ----


def importing(package: str):
    return lambda effort: f"{seconds(f'import {package}') * 1e3:.0f} ms"


def readme_example() -> str:
    """The first Python block of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text.split("```python\n")[1].split("```")[0]


def first_gradient(effort: DemoSettings) -> str:
    example = readme_example()
    code = f"with contextlib.redirect_stdout(io.StringIO()):\n    exec({example!r}, {{}})"
    return f"{seconds(code, 'import contextlib, io, numpy') * 1e3:.0f} ms"


JAX_EXAMPLE = """
import jax
import jax.numpy as jnp

def loss(w, x, y):
    return ((jnp.tanh(x @ w) - y) ** 2).mean()

w, x, y = numpy.zeros(2), numpy.eye(2), numpy.ones(2)
str(jax.make_jaxpr(loss)(w, x, y))
jax.grad(loss)(w, x, y).block_until_ready()
"""


def jax_first_gradient(effort: DemoSettings) -> str:
    return f"{seconds(JAX_EXAMPLE, repeats=3) * 1e3:.0f} ms"


# ---- memory ----

PROGRAM_MEMORY = """
from benchmarks.programs import program
program(1000, 4)
before = settled()
kept = program(1_000_000, 4)
gc.collect()
print((resident("VmRSS") - before) / len(kept))
"""
PEAK = """
{prepare}
before = settled()
out = {run}
print((resident("VmHWM") - before) / x.nbytes)
"""
LETIR = """
from letir import ShapeDtype, run_forward, trace
x = np.full(1 << 23, 0.5)
f = trace(lambda x: long_chain(np, x), ShapeDtype(x.shape))
"""
TORCH = """
import torch
x = torch.full((1 << 23,), 0.5, dtype=torch.float64)
torch.exp(torch.tanh(x[:9]))
"""


def program_memory(effort: DemoSettings) -> str:
    return f"{fresh_process(MEMORY + PROGRAM_MEMORY):.0f} bytes"


def peak(prepare: str, run: str):
    code = MEMORY + PEAK.format(prepare=prepare, run=run)
    return lambda effort: f"{fresh_process(code):.2f} arrays"


letir_peak = peak(LETIR, "run_forward(f, x)")
numpy_peak = peak("x = np.full(1 << 23, 0.5)", "long_chain(np, x)")
torch_peak = peak(TORCH, "long_chain(torch, x)")

# ---- 10^5 operations, from the function to its gradient ----

LONG = """
from functools import partial
import numpy
from benchmarks.workloads import arrays, chain_sum
import {package}
"""
LETIR_LONG = """
f = letir.trace(partial(chain_sum, numpy, 100_000), *arrays(4))
letir.grad(f)(*arrays(4))
"""
AUTOGRAD_LONG = """
autograd.grad(partial(chain_sum, autograd.numpy, 100_000))(*arrays(4))
"""
JAX_LONG = """
jax.jit(jax.grad(partial(chain_sum, jax.numpy, 100_000)))(*arrays(4)).block_until_ready()
"""


def long_gradient(package: str, code: str):
    def figure(effort: DemoSettings) -> str:
        return f"{seconds(code, LONG.format(package=package), repeats=1):.1f} s"

    return figure


letir_long = long_gradient("letir", LETIR_LONG)
autograd_long = long_gradient("autograd, autograd.numpy", AUTOGRAD_LONG)
jax_long = long_gradient("jax", JAX_LONG)

"""The figures of other packages, if they are installed and have the same function."""

import importlib
from functools import partial

from benchmarks.harness import DemoSettings, Skipped, per_op
from benchmarks.workloads import arrays, chain, chain_sum

OPERATIONS, ROUNDS = 1000, 5  # fewer than for letir: peers are slow and not linear


def installed(name: str):
    """The module ``name``. Raises Skipped if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Skipped("not installed") from None


def cost(run, prepare, floor=None) -> str:
    return f"{per_op(run, prepare, OPERATIONS, ROUNDS, floor):.0f} u"


# ---- JAX ----


def jaxpr(n: int, size: int, function=chain):
    """A jaxpr for the types of two arrays."""
    jax, jnp = installed("jax"), installed("jax.numpy")
    return jax.make_jaxpr(partial(function, jnp, n))(*arrays(size))


def jax_tracing(effort: DemoSettings) -> str:
    jax, jnp = installed("jax"), installed("jax.numpy")

    def run(f, *args):
        return jax.make_jaxpr(f)(*args)

    return cost(run, lambda n, size: (partial(chain, jnp, n), *arrays(size)))


def jax_differentiating(effort: DemoSettings) -> str:
    jax, core = installed("jax"), installed("jax.extend.core")

    def run(program, *args):
        return jax.make_jaxpr(jax.grad(lambda *xs: core.jaxpr_as_fun(program)(*xs)[0]))(*args)

    return cost(run, lambda n, size: (jaxpr(n, size, chain_sum), *arrays(size)))


def jax_printing(effort: DemoSettings) -> str:
    return cost(str, lambda n, size: (jaxpr(n, size),))


# ---- torch.fx ----


def fx_module(n: int, size: int):
    """A torch.fx program, and tensors for it."""
    torch, fx = installed("torch"), installed("torch.fx")
    program = fx.symbolic_trace(fixed(torch, n))
    return program, *map(torch.from_numpy, arrays(size))


def fixed(torch, n: int):
    """``chain`` with a signature that torch.fx can trace."""
    return lambda x, y: chain(torch, n, x, y)


def fx_tracing(effort: DemoSettings) -> str:
    torch, fx = installed("torch"), installed("torch.fx")
    return cost(fx.symbolic_trace, lambda n, size: (fixed(torch, n),))


def fx_replaying(effort: DemoSettings) -> str:
    torch, fx = installed("torch"), installed("torch.fx")

    def floor(n, size):
        return chain(torch, n, *map(torch.from_numpy, arrays(size)))

    def run(program, *args):
        return fx.Interpreter(program).run(*args)

    return cost(run, fx_module, floor)


def fx_printing(effort: DemoSettings) -> str:
    return cost(lambda program, *_: str(program.graph), fx_module)


def fx_checking(effort: DemoSettings) -> str:
    return cost(lambda program, *_: program.graph.lint(), fx_module)

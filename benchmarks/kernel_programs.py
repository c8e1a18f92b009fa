"""The programs of ``kernel_workloads`` compared with NumPy: letir, with and without kernels, and
peers.

``python -m benchmarks.kernel_programs [PART OF A NAME ...]`` prints the table. Each figure is two
ratios, for the value / for value and gradient, both to plain NumPy's time for the value. They are
medians of CPU times, in rounds in which all sides take turns.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from statistics import median
from typing import Any

import numpy
from attrs import frozen

import letir
from benchmarks.harness import DemoSettings, Skipped, pin_to_one_core
from benchmarks.kernel_workloads import WORKLOADS, Workload
from benchmarks.peers import installed

SECONDS = 0.02  # of one turn of one side
_SLOW = 20.0  # seconds: a side with a longer first call is left out

Sides = tuple[Callable[[], Any] | None, Callable[[], Any] | None]  # the value; value and gradient


@frozen
class Figures:
    """Times divided by NumPy's time for the value; None if a side does not compute it."""

    value: float | None
    gradient: float | None

    def __str__(self):
        return " / ".join("-" if x is None else f"{x:.2f}" for x in (self.value, self.gradient))


# ---- the sides ----


def letir_sides(workload: Workload, kernels: str = "on") -> Sides:
    """letir under ``jit``."""
    args, f = workload.make(), workload.bound(numpy, letir)
    value = letir.jit(f, kernels=kernels)
    gradient = letir.jit(
        letir.value_and_grad(partial(_sum_of, f), tuple(range(workload.parameters))),
        kernels=kernels,
    )
    return partial(value, *args), _if_wanted(workload, partial(gradient, *args))


def jax_sides(workload: Workload) -> Sides:
    """JAX under ``jit``, in float64."""
    jax, jnp = installed("jax"), installed("jax.numpy")
    if workload.is_unrolled:
        raise Skipped("it compiles for minutes")
    jax.config.update("jax_enable_x64", True)
    args, f = [jnp.asarray(x) for x in workload.make()], workload.bound(jnp, jax.lax)
    value = jax.jit(f)
    gradient = jax.jit(jax.value_and_grad(partial(_sum_of, f), tuple(range(workload.parameters))))

    def ready(call):
        return lambda: jax.block_until_ready(call(*args))

    return ready(value), _if_wanted(workload, ready(gradient))


def autograd_sides(workload: Workload) -> Sides:
    """autograd, whose value is NumPy's."""
    autograd, anp = installed("autograd"), installed("autograd.numpy")
    args, f = workload.make(), partial(workload.in_numpy or workload.function, anp)
    wanted = tuple(range(workload.parameters))
    gradient = autograd.value_and_grad(partial(_sum_of, f), wanted)
    return None, _if_wanted(workload, partial(gradient, *args))


def torch_sides(workload: Workload) -> Sides:
    """PyTorch under ``torch.compile``."""
    torch = installed("torch")
    if workload.is_unrolled or workload.in_numpy is not None:
        raise Skipped("it compiles for minutes, or has no such loop")
    torch.set_num_threads(1)
    args = [torch.from_numpy(x) for x in workload.make()]
    f = torch.compile(partial(workload.function, torch))
    parameters = args[: workload.parameters]

    def value():
        with torch.no_grad():
            return f(*args)

    def gradient():
        for parameter in parameters:
            parameter.requires_grad_()
        return torch.autograd.grad(f(*args).sum(), parameters)

    return value, _if_wanted(workload, gradient)


def _sum_of(f: Callable, *args):
    return f(*args).sum()


def _if_wanted(workload: Workload, gradient: Callable) -> Callable | None:
    return None if workload.targets[1] is None else gradient


SIDES: dict[str, Callable[[Workload], Sides]] = {
    "letir": letir_sides,
    "without kernels": partial(letir_sides, kernels="off"),
    "JAX": jax_sides,
    "torch.compile": torch_sides,
    "autograd": autograd_sides,
}


# ---- measuring ----

# These compute in threads of their own, whose time counts. The threads of one side that wait for
# work in a loop must not count for another: the other sides compute in the caller's thread.
CLOCKS = dict.fromkeys(("JAX", "torch.compile"), time.process_time)


@cache
def measured(workload: Workload, rounds: int, names: tuple[str, ...]) -> dict[str, Figures]:
    """The figures of each side that can compute the program."""
    plain = partial(workload.plain(), *workload.make())
    calls: dict[tuple[str, int], Callable] = {("", 0): plain}
    for name in names:
        for n, call in enumerate(_sides(name, workload)):
            if call is not None and _runs(call):
                calls[name, n] = call
    clocks = {key: CLOCKS.get(key[0], time.thread_time) for key in calls}
    repeats = {
        key: max(1, int(SECONDS / _seconds(call, 1, clocks[key]))) for key, call in calls.items()
    }
    turns: dict = {key: [] for key in calls}
    for _ in range(rounds):
        for key, call in calls.items():
            turns[key].append(_seconds(call, repeats[key], clocks[key]))
    base = turns["", 0]
    found = {
        key: median([a / b for a, b in zip(times, base, strict=True)])
        for key, times in turns.items()
    }
    return {name: Figures(found.get((name, 0)), found.get((name, 1))) for name in names}


def _sides(name: str, workload: Workload) -> Sides:
    try:
        return SIDES[name](workload)
    except Skipped:
        return None, None


def _runs(call: Callable) -> bool:
    """Whether a side can compute a program, in reasonable time; it compiles here."""
    start = time.process_time()
    try:
        call()
    except Exception as error:
        print(f"skipped: {type(error).__name__}: {str(error).splitlines()[:1]}", flush=True)
        return False
    if time.process_time() - start > _SLOW:
        return False
    call(), call()  # plans that run often become faster
    return True


def _seconds(call: Callable, repeats: int, clock: Callable[[], float]) -> float:
    """The CPU time of a call, the mean over ``repeats`` calls."""
    start = clock()
    for _ in range(repeats):
        call()
    return (clock() - start) / repeats


# ---- rows of the table ----


def targets(workload: Workload) -> str:
    """The targets of a program, in the form of its figures."""
    return str(Figures(*workload.targets))


def figure(workload: Workload, name: str) -> Callable[[DemoSettings], str]:
    """The figures of one side, measured with all others."""

    def measure(effort: DemoSettings) -> str:
        return str(measured(workload, effort.sizes[0][1], tuple(SIDES))[name])

    return measure


def main() -> None:
    """Print the table of the requested programs, by default all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="*", help="a part of a program's name")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sides", nargs="+", default=list(SIDES), choices=list(SIDES))
    options = parser.parse_args()
    pin_to_one_core()

    def cells(workload: Workload) -> Sequence[str]:
        found = measured(workload, options.rounds, tuple(options.sides))
        return targets(workload), *map(str, found.values())

    print_table(options.name, ("target", *options.sides), cells)


def print_table(
    parts: Sequence[str], titles: Sequence[str], cells: Callable[[Workload], Sequence[str]]
) -> None:
    """Print a row for each program whose name has one of these parts, by default for all."""
    rows = [("program", *titles), ["---"] * (1 + len(titles))]
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)
    for workload in WORKLOADS:
        if not parts or any(part.lower() in workload.name.lower() for part in parts):
            print(f"| {' | '.join((workload.name, *cells(workload)))} |", flush=True)


if __name__ == "__main__":
    main()

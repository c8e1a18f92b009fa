"""Figures of code that writes or reads arrays element by element: updates in a loop, an RNN."""

import time
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy

from benchmarks.harness import DemoSettings
from benchmarks.peers import installed
from letir import run_forward, to_source, trace, value_and_grad

SIZE, UPDATES = 1_000_000, 1000
STEPS, WIDTH = 1000, 32


def seconds(run: Callable, rounds: int) -> float:
    """The median CPU time of a call."""
    found = []
    for _ in range(rounds):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return median(found)


# ---- updates ----


def updates(x, v):
    """``x`` after ``UPDATES`` of its elements were written one by one."""
    x = x.copy()
    for i in range(UPDATES):
        x[7 * i] = v
    return x


def functional_updates(x, v):
    """The same updates, each with a new array."""
    for i in range(UPDATES):
        x = x.copy()
        x[7 * i] = v
    return x


def letir_updates(effort: DemoSettings) -> str:
    x, v = numpy.zeros(SIZE), numpy.float64(3.0)
    program = trace(updates, x, v, abstract=True)
    copying = seconds(partial(functional_updates, x, v), 1)
    replayed = seconds(partial(run_forward, program, x, v), 7)
    return f"{replayed / copying:.3f} x"


def numpy_updates(effort: DemoSettings) -> str:
    x, v = numpy.zeros(SIZE), numpy.float64(3.0)
    copying = seconds(partial(functional_updates, x, v), 1)
    return f"{seconds(partial(updates, x, v), 7) / copying:.3f} x"


# ---- an RNN ----


def rnn(np, w, u, b, x):
    """The sum of the states of a recurrent network that reads its inputs ``x[t]`` one by one."""
    state, total = np.zeros(WIDTH), 0.0
    for t in range(len(x)):
        state = np.tanh(np.dot(w, x[t]) + np.dot(u, state) + b)
        total = total + np.sum(state)
    return total


def rnn_arguments() -> list:
    normal = numpy.random.default_rng(0).normal
    shapes = [(WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH,), (STEPS, WIDTH)]
    return [normal(scale=0.1, size=shape) for shape in shapes]


def rnn_program():
    return trace(value_and_grad(partial(rnn, numpy), (0, 1, 2, 3)), *rnn_arguments())


def letir_rnn(effort: DemoSettings) -> str:
    program, args = rnn_program(), rnn_arguments()
    return f"{seconds(partial(run_forward, program, *args), 7) * 1e3:.0f} ms"


def generated_rnn(effort: DemoSettings) -> str:
    made: dict = {}
    exec(compile(to_source(rnn_program()), "rnn", "exec"), made)
    return f"{seconds(partial(made['f'], *rnn_arguments()), 7) * 1e3:.0f} ms"


def autograd_rnn(effort: DemoSettings) -> str:
    autograd, np = installed("autograd"), installed("autograd.numpy")
    gradient = autograd.value_and_grad(partial(rnn, np), (0, 1, 2, 3))
    return f"{seconds(partial(gradient, *rnn_arguments()), 3) * 1e3:.0f} ms"

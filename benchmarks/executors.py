"""Figures of passes, plans and jit: the cost of compiling and of compiled calls."""

import time
from collections.abc import Callable
from functools import partial
from itertools import repeat
from statistics import median

import numpy
from attrs import define, field

from benchmarks import processes
from benchmarks.harness import DemoSettings, Skipped, across_sizes, unit
from benchmarks.peers import installed
from benchmarks.programs import program
from benchmarks.workloads import arrays, chain_sum, plain
from letir import Lambda, jit, trace, value_and_grad
from letir.executor.default_pipeline import optimize_program
from letir.plan.plan import plan_of

CALLS = 2000  # calls of a function of one operation
STEPS, WIDTH = 1000, 32  # of the recurrent network
RK4_STEPS = 1000
TRIPS = (10, 1000)


def cpu_seconds(run: Callable) -> float:
    """The CPU time of one call."""
    start = time.process_time()
    run()
    return time.process_time() - start


# ---- passes ----


def differentiated(n: int, size: int) -> tuple[Lambda]:
    """The value and gradient of about ``n`` operations."""
    return (value_and_grad(program(n, size, chain_sum)),)


def pipeline(effort: DemoSettings) -> str:
    """The cost of all passes, per bind of the input program."""
    return across_sizes(effort, optimize_program, lambda n, size: (program(n, size, chain_sum),))


def slowest_pass(effort: DemoSettings) -> str:
    """The cost of the slowest pass, per bind of its input, for a program of value and gradient."""
    (n, rounds), costs = effort.sizes[0], {}
    for size in range(5, 5 + rounds):
        (fn,), before, passes = differentiated(n, size), unit(), Passes()
        optimize_program(fn, observe=passes)
        u = (before + unit()) / 2
        for name, cost in passes.costs.items():
            costs.setdefault(name, []).append(cost / u)
    cost, name = max((median(found), name) for name, found in costs.items())
    return f"{cost:.1f} u, {name.partition('(')[0]}"


@define
class Passes:
    """Observer of passes; records the largest CPU time of each per bind, including bodies."""

    costs: dict[str, float] = field(factory=dict)
    last: float = field(factory=time.process_time)

    def __call__(self, name: str, before: Lambda, after: Lambda, seconds: float) -> None:
        cost = (time.process_time() - self.last) / binds_in(before)
        self.costs[name] = max(self.costs.get(name, 0.0), cost)
        self.last = time.process_time()


# ---- plans ----


def slots(effort: DemoSettings) -> str:
    """The cost of running a plan, per bind, beyond the NumPy call."""

    def prepare(n, size):
        plan = plan_of(program(n, size))
        plan.run(list(arrays(size)))
        return plan, list(arrays(size))

    return across_sizes(effort, lambda plan, leaves: plan.run(leaves), prepare, floor=plain)


def warm_call(effort: DemoSettings) -> str:
    """The cost of calling a compiled function of one operation, beyond the operation itself."""
    fast, x = jit(numpy.sin), numpy.ones(4)
    return f"{call_cost(fast, x, numpy.sin, x):.1f} u"


def jax_warm_call(effort: DemoSettings) -> str:
    jax, jnp = installed("jax"), installed("jax.numpy")
    x = jnp.ones(4)
    # nothing is subtracted: an operation of JAX is itself such a call
    return f"{call_cost(jax.jit(jnp.sin), x, None, None):.1f} u"


def call_cost(call: Callable, x, floor: Callable | None, y) -> float:
    """The median cost of a call in u, less the cost of ``floor(y)``."""
    call(x)
    found = []
    for _ in range(15):
        before, seconds = unit(), cpu_seconds(partial(many, call, x))
        if floor is not None:
            seconds -= cpu_seconds(partial(many, floor, y))
        found.append(seconds / CALLS / ((before + unit()) / 2))
    return median(found)


def many(call: Callable, x) -> None:
    """Call ``call(x)`` ``CALLS`` times."""
    for _ in repeat(None, CALLS):
        call(x)


# ---- loops ----


def slope(np, y, w, a, b):
    """The right-hand side of a small recurrent network in continuous time."""
    return a * np.tanh(w @ y) - b * y


def rk4(np, steps: int, y, w, a, b):
    """A Python loop of Runge-Kutta steps, 33 operations each: |final state|^2."""
    h = 0.01
    for _ in range(steps):
        k1 = slope(np, y, w, a, b)
        k2 = slope(np, y + h / 2 * k1, w, a, b)
        k3 = slope(np, y + h / 2 * k2, w, a, b)
        k4 = slope(np, y + h * k3, w, a, b)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return (y * y).sum()


def start() -> tuple:
    """The initial state, the weights, and two numbers."""
    return numpy.linspace(-1.0, 1.0, 4), numpy.linspace(-0.5, 1.0, 16).reshape(4, 4), 1.5, 0.25


def first_call(effort: DemoSettings) -> str:
    """The first call of value and gradient of a long Python loop: record, compile, run."""
    fast = jit(value_and_grad(partial(rk4, numpy, RK4_STEPS), argnums=(0, 1, 2, 3)))
    return f"{cpu_seconds(lambda: fast(*start())):.1f} s"


JAX_FIRST_CALL = """
import jax
import jax.numpy as jnp
from functools import partial
from benchmarks.executors import RK4_STEPS, rk4, start
fast = jax.jit(jax.value_and_grad(partial(rk4, jnp, RK4_STEPS), argnums=(0, 1, 2, 3)))
jax.block_until_ready(fast(*start()))
"""


def jax_first_call(effort: DemoSettings) -> str:
    return f"{processes.seconds(JAX_FIRST_CALL, 'import numpy', 1):.0f} s"


def rnn_arguments() -> list:
    """The weights and one input per step."""
    normal = numpy.random.default_rng(0).normal
    shapes = [(WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH,), (STEPS, WIDTH)]
    return [normal(scale=0.1, size=shape) for shape in shapes]


def scanned_rnn(np, scan: Callable, w, u, b, xs):
    """The sum of the states of a recurrent network, as a scan."""

    def step(state, x):
        state = np.tanh(np.dot(w, x) + np.dot(u, state) + b)
        return state, np.sum(state)

    _, sums = scan(step, np.zeros(WIDTH), xs)
    return np.sum(sums)


def hand_written_rnn(w, u, b, xs) -> tuple:
    """Value and gradient in NumPy, the least work of any evaluator."""
    np, state, states, total = numpy, numpy.zeros(WIDTH), [], 0.0
    for x in xs:
        states.append(state)
        state = np.tanh(np.dot(w, x) + np.dot(u, state) + b)
        total = total + np.add.reduce(state)
    ct, dw, du, db = np.zeros(WIDTH), np.zeros_like(w), np.zeros_like(u), np.zeros_like(b)
    last, dxs = state, np.empty_like(xs)
    for i in range(len(xs) - 1, -1, -1):
        ct = (ct + 1.0) * (1.0 - last * last)
        db += ct
        dw += np.outer(ct, xs[i])
        du += np.outer(ct, states[i])
        dxs[i] = np.dot(ct, w)
        ct, last = np.dot(ct, u), states[i]
    return total, (dw, du, db, dxs)


def scan_per_step(effort: DemoSettings) -> str:
    """Value and gradient of a scan under jit, per step; and by hand-written NumPy calls."""
    from_letir = installed("letir")
    rnn = partial(scanned_rnn, numpy, from_letir.scan)
    fast, args = jit(value_and_grad(rnn, argnums=(0, 1, 2, 3))), rnn_arguments()
    fast(*args)
    found = []
    for _ in range(effort.sizes[0][1]):
        before = unit()
        seconds = cpu_seconds(lambda: fast(*args)), cpu_seconds(lambda: hand_written_rnn(*args))
        found.append([x / STEPS / ((before + unit()) / 2) for x in seconds])
    own, by_hand = map(median, zip(*found, strict=True))
    return f"{own:.1f} u, the NumPy calls by hand {by_hand:.1f} u"


def jax_scan_per_step(effort: DemoSettings) -> str:
    """The same in JAX."""
    jax, jnp = installed("jax"), installed("jax.numpy")
    jax.config.update("jax_enable_x64", True)
    rnn = partial(scanned_rnn, jnp, jax.lax.scan)
    fast = jax.jit(jax.value_and_grad(rnn, argnums=(0, 1, 2, 3)))
    args = [jnp.asarray(arg) for arg in rnn_arguments()]

    def call():
        jax.block_until_ready(fast(*args))

    call()
    found = []
    for _ in range(effort.sizes[0][1]):
        before = unit()
        found.append(cpu_seconds(call) / STEPS / ((before + unit()) / 2))
    return f"{median(found):.1f} u"


def loop_sizes(effort: DemoSettings) -> str:
    """The binds of value and gradient of a scan and of a fori_loop, for any trip count."""
    lt, found = installed("letir"), []
    for trips in TRIPS:

        def scanned(x, trips=trips):
            return lt.scan(lambda c, _: (numpy.sin(c) * 2.0, c), x, None, length=trips)[0].sum()

        def repeated(x, trips=trips):
            return lt.fori_loop(0, trips, lambda i, c: numpy.sin(c) * 2.0, x).sum()

        pair = [value_and_grad(trace(f, numpy.ones(3))) for f in (scanned, repeated)]
        found.append(tuple(map(binds_in, pair)))
    if len(set(found)) != 1:
        raise Skipped(f"it depends on the trip count: {found}")
    return " and ".join(map(str, found[0]))


def binds_in(fn: Lambda) -> int:
    """The binds of a program and of all bodies in it."""
    from_bodies = installed("letir.ast.bodies").all_bodies(fn)
    return sum(len(body) for body in from_bodies)

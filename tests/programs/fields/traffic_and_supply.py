"""Programs of operations research: traffic, queues, stocks, schedules, pipes and power."""

import heapq
from collections import deque, namedtuple
from dataclasses import dataclass, field

import numpy as np

from tests.programs.table import program


@dataclass
class Car:
    """A car of the intelligent driver model."""

    x: float
    v: float
    history: list = field(default_factory=list)

    def follow(self, leader, dt, v0=30.0, headway=1.5, a=1.0, b=2.0):
        """One step behind a leader; without one the road is free."""
        free = 1 - (self.v / v0) ** 4
        if leader is None:
            acceleration = a * free
        else:
            gap = max(leader.x - self.x - 5.0, 1.0)
            wish = 2.0 + self.v * headway + self.v * (self.v - leader.v) / (2 * np.sqrt(a * b))
            acceleration = a * (free - (wish / gap) ** 2)
        self.v = max(self.v + dt * acceleration, 0.0)
        self.x += dt * self.v
        self.history.append(self.v)


@program(lambda rng: (rng.uniform(10, 20, 4),), smooth=0, branches=True)
def intelligent_drivers(speeds):
    """Four cars on a lane, each behind the one before."""
    cars = [Car(100.0 - 25.0 * i, v) for i, v in enumerate(speeds)]
    for _ in range(5):
        leader = None
        for car in cars:
            car.follow(leader, 0.5)
            leader = car
    return np.array([car.x for car in cars]), np.array([car.history for car in cars])


@program(lambda rng: (rng.integers(0, 2, 12), 3), branches=True)
def cars_in_cells(road, vmax):
    """The cellular automaton of Nagel and Schreckenberg, without chance."""
    n = len(road)
    speeds = {int(i): 1 for i in np.flatnonzero(road)}
    flow = 0
    for _ in range(4):
        moved = {}
        for i in sorted(speeds):
            v = min(speeds[i] + 1, vmax)
            gap = next((d for d in range(1, n) if (i + d) % n in speeds), n) - 1
            v = min(v, gap)
            flow += v
            moved[(i + v) % n] = v
        speeds = moved
    return flow / n, np.array(sorted(speeds))


Event = namedtuple("Event", "time kind number")


@program(lambda rng: (rng.exponential(1.0, 8), rng.exponential(1.5, 8)), smooth=1, branches=True)
def queue_with_servers(gaps, services):
    """Two servers, one queue, and a heap of events; mean time in the system."""
    events = [Event(t, "arrive", i) for i, t in enumerate(np.cumsum(gaps))]
    heapq.heapify(events)
    waiting, free, arrived, total = deque(), 2, {}, 0.0
    while events:
        now, kind, number = heapq.heappop(events)
        if kind == "arrive":
            arrived[number] = now
            waiting.append(number)
        else:
            free += 1
            total += now - arrived.pop(number)
        while free and waiting:
            first = waiting.popleft()
            free -= 1
            heapq.heappush(events, Event(now + services[first], "leave", first))
    return total / len(gaps)


class OutOfStock(Exception):
    """Carries the missing amount."""

    def __init__(self, missing):
        super().__init__(missing)
        self.missing = missing


class Shelf:
    """Layers of stock with their prices, sold first in, first out."""

    def __init__(self):
        self.layers = deque()

    def buy(self, amount, price):
        """Put a layer on the shelf."""
        self.layers.append([amount, price])

    def sell(self, amount):
        """The cost of what is sold; raises OutOfStock if the shelf is empty."""
        cost = 0.0
        while amount > 1e-12:
            if not self.layers:
                raise OutOfStock(amount)
            layer = self.layers[0]
            taken = min(amount, layer[0])
            cost += taken * layer[1]
            layer[0] -= taken
            amount -= taken
            if layer[0] <= 1e-12:
                self.layers.popleft()
        return cost


@program(lambda rng: (rng.uniform(1, 5, 6), rng.uniform(1, 2, 6)), smooth=1, branches=True)
def first_in_first_out(amounts, prices):
    """Purchases and sales in turns, and the penalty for what was missing."""
    shelf, costs, penalty = Shelf(), [], 0.0
    for i, (amount, price) in enumerate(zip(amounts, prices)):
        if i % 2 == 0:
            shelf.buy(amount, price)
            continue
        try:
            costs.append(shelf.sell(amount))
        except OutOfStock as error:
            penalty += 3.0 * error.missing
    return sum(costs) + penalty, len(shelf.layers)


@program(lambda rng: (rng.uniform(5, 15, 10), 12.0), smooth=0, branches=True)
def base_stock(demand, level):
    """Orders arrive after two periods; holding and backlog cost."""
    pipeline, stock, cost = deque([0.0, 0.0]), level, 0.0
    for d in demand:
        stock += pipeline.popleft()
        stock -= d
        order = max(level - stock - sum(pipeline), 0.0)
        pipeline.append(order)
        cost += 1.0 * max(stock, 0.0) + 4.0 * max(-stock, 0.0)
    return cost / len(demand), stock


@program(lambda rng: (rng.uniform(1, 9, (5, 2)),), smooth=0, branches=True)
def johnson_rule(times):
    """The order of jobs on two machines, and the time until the last one is done."""
    first = sorted(
        (j for j in range(len(times)) if times[j, 0] < times[j, 1]), key=lambda j: times[j, 0]
    )
    last = sorted(
        (j for j in range(len(times)) if times[j, 0] >= times[j, 1]), key=lambda j: -times[j, 1]
    )
    a = b = 0.0
    for job in first + last:
        a += times[job, 0]
        b = max(a, b) + times[job, 1]
    return b, np.array(first + last)


TASKS = {
    "dig": [],
    "pour": ["dig"],
    "walls": ["pour"],
    "pipes": ["dig"],
    "roof": ["walls", "pipes"],
}


@program(lambda rng: (rng.uniform(1, 5, 5),), smooth=0, branches=True)
def critical_path(durations):
    """Earliest and latest times of tasks, and those without slack."""
    time = dict(zip(TASKS, durations))
    early: dict = {}

    def finish(task):
        if task not in early:
            early[task] = time[task] + max((finish(t) for t in TASKS[task]), default=0.0)
        return early[task]

    end = max(finish(task) for task in TASKS)
    late = dict.fromkeys(TASKS, end)
    for task in reversed(list(TASKS)):
        for before in TASKS[task]:
            late[before] = min(late[before], late[task] - time[task])
    critical = [task for task in TASKS if abs(late[task] - early[task]) < 1e-9]
    return end, ">".join(critical)


LINES = [(0, 1, 10.0), (1, 2, 8.0), (0, 2, 5.0), (2, 3, 12.0)]


@program(lambda rng: (rng.normal(size=3),), smooth=0)
def power_flow(injections):
    """Angles and flows of a direct-current model; bus 0 takes the rest."""
    matrix = np.zeros((4, 4))
    for a, b, susceptance in LINES:
        matrix[a, a] += susceptance
        matrix[b, b] += susceptance
        matrix[a, b] -= susceptance
        matrix[b, a] -= susceptance
    angles = np.zeros(4)
    angles[1:] = np.linalg.solve(matrix[1:, 1:], injections)
    flows = np.array([s * (angles[a] - angles[b]) for a, b, s in LINES])
    return angles, flows, np.abs(flows).max()


@program(lambda rng: (rng.uniform(180, 260),), smooth=0, branches=True)
def economic_dispatch(load):
    """Generators with limits, by bisection for the price."""
    units = [(0.02, 2.0, 10.0, 125.0), (0.0175, 1.75, 10.0, 150.0), (0.0625, 1.0, 10.0, 90.0)]

    def output(price):
        return [min(max((price - b) / (2 * a), low), high) for a, b, low, high in units]

    low, high = 0.0, 20.0
    while high - low > 1e-3:
        price = 0.5 * (low + high)
        if sum(output(price)) < load:
            low = price
        else:
            high = price
    powers = output(price)
    powers[0] += load - sum(powers)
    return np.array(powers), sum(a * p * p + b * p for (a, b, *_), p in zip(units, powers))


@program(lambda rng: (rng.uniform(0.5, 2, 3), 1.5), smooth=0, branches=True)
def loop_of_pipes(resistances, inflow):
    """The method of Hardy Cross for one loop of pipes."""
    flows = np.array([0.6, 0.3, -0.4]) * inflow
    for iteration in range(30):
        heads = resistances * flows * np.abs(flows)
        correction = -heads.sum() / (2 * (resistances * np.abs(flows)).sum())
        flows = flows + correction
        if abs(correction) < 1e-4:
            break
    else:
        raise RuntimeError("no convergence")
    return flows, iteration


@program(lambda rng: (rng.uniform(20, 90, 8), 0.2), smooth=0, branches=True)
def flood_routing(inflow, x):
    """The method of Muskingum for a flood in a river."""
    k, dt = 2.0, 1.0
    scale = 2 * k * (1 - x) + dt
    c0, c1, c2 = (dt - 2 * k * x) / scale, (dt + 2 * k * x) / scale, (2 * k * (1 - x) - dt) / scale
    outflow = [inflow[0]]
    for before, now in zip(inflow, inflow[1:]):
        outflow.append(c0 * now + c1 * before + c2 * outflow[-1])
    return np.array(outflow), max(outflow)

"""Queues, agents, bandits and plans."""

import collections
import heapq
import math
from dataclasses import dataclass, field

import numpy as np

from tests.programs.table import program


@dataclass(order=True)
class Event:
    time: float
    kind: str = field(compare=False)


class Simulation:
    def __init__(self, rng, lam, mu):
        self.rng, self.lam, self.mu = rng, lam, mu
        self.events, self.queue, self.waits = [], collections.deque(), []
        self.busy = False

    def push(self, dt, kind):
        heapq.heappush(self.events, Event(self.now + dt, kind))

    def run(self, n):
        self.now = 0.0
        self.push(self.rng.exponential(1 / self.lam), "arrive")
        served = 0
        while self.events and served < n:
            ev = heapq.heappop(self.events)
            self.now = ev.time
            if ev.kind == "arrive":
                self.push(self.rng.exponential(1 / self.lam), "arrive")
                self.queue.append(self.now)
            else:
                self.busy = False
                served += 1
            if self.queue and not self.busy:
                self.busy = True
                self.waits.append(self.now - self.queue.popleft())
                self.push(self.rng.exponential(1 / self.mu), "leave")
        return np.mean(self.waits), self.now


@program(
    lambda rng: (int(rng.integers(50)), float(rng.uniform(0.5, 1)), 1.2), smooth=1, branches=True
)
def mm1_queue(seed, lam, mu):
    """A queue of events, simulated with a heap."""
    return Simulation(np.random.default_rng(seed), lam, mu).run(6)


@program(
    lambda rng: (rng.uniform(0.2, 0.8, size=2), int(rng.integers(2, 5))), smooth=0, branches=True
)
def erlang(load, servers):
    """Blocking probabilities by Erlang's formula."""
    out = {}
    for name, a in zip(("morning", "evening"), load * servers):
        terms = [a**k / math.factorial(k) for k in range(servers + 1)]
        blocking = terms[-1] / sum(terms)
        out[name] = {"B": blocking, "carried": a * (1 - blocking)}
    return out


class GridWorld:
    moves = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}

    def __init__(self, rewards):
        self.rewards = np.asarray(rewards)
        self.shape = self.rewards.shape

    def step(self, s, a):
        r, c = s[0] + self.moves[a][0], s[1] + self.moves[a][1]
        if not (0 <= r < self.shape[0] and 0 <= c < self.shape[1]):
            return s
        return r, c


@program(lambda rng: (rng.normal(size=(3, 3)),), smooth=0, branches=True)
def value_iteration(rewards):
    """Values and actions of a grid world."""
    env, gamma = GridWorld(rewards), 0.9
    V = np.zeros(env.shape)
    for sweep in range(100):
        delta, new = 0, V.copy()
        for s in np.ndindex(*env.shape):
            new[s] = max(env.rewards[s] + gamma * V[env.step(s, a)] for a in env.moves)
            delta = max(delta, abs(new[s] - V[s]))
        V = new
        if delta < 0.2:
            break
    policy = [
        [max(env.moves, key=lambda a: V[env.step((i, j), a)]) for j in range(3)] for i in range(3)
    ]
    return V, policy, sweep


class EpsilonGreedy:
    def __init__(self, n, eps, rng):
        self.q, self.n, self.eps, self.rng = np.zeros(n), np.zeros(n, int), eps, rng

    def select(self):
        if self.rng.random() < self.eps:
            return self.rng.integers(len(self.q))
        return np.argmax(self.q)

    def update(self, a, r):
        self.n[a] += 1
        self.q[a] += (r - self.q[a]) / self.n[a]


@program(
    lambda rng: (rng.normal(size=3), np.random.default_rng(int(rng.integers(9)))), branches=True
)
def bandit(means, rng):
    """An epsilon-greedy agent with a generator as argument."""
    agent = EpsilonGreedy(3, 0.3, rng)
    total, chosen = 0.0, []
    for t in range(8):
        a = agent.select()
        r = rng.normal(means[a], 1.0)
        agent.update(a, r)
        total += r
        chosen.append(int(a))
    return total, chosen, agent.q, agent.n


class TabularQ(collections.defaultdict):
    def __init__(self, n_actions):
        super().__init__(lambda: np.zeros(n_actions))


@program(lambda rng: (int(rng.integers(20)), float(rng.uniform(0.1, 0.9))), smooth=1, branches=True)
def q_learning(seed, alpha):
    """A table of actions in a defaultdict."""
    rng = np.random.RandomState(seed)
    Q = TabularQ(2)
    for episode in range(3):
        s = 0
        for _ in range(6):
            a = rng.randint(2) if rng.uniform() < 0.2 else int(Q[s].argmax())
            s2 = min(s + 1, 3) if a else max(s - 1, 0)
            r = 1.0 if s2 == 3 else -0.1
            Q[s][a] += alpha * (r + 0.9 * Q[s2].max() - Q[s][a])
            s = s2
            if s == 3:
                break
    return np.array([Q[k] for k in sorted(Q)])


@program(lambda rng: (rng.normal(size=(4, 2)), int(rng.integers(30))), smooth=0, branches=True)
def policy_gradient(theta, seed):
    """Returns and log probabilities of an episode."""
    rng = np.random.default_rng(seed)
    logps, rewards = [], []
    s = 0
    for t in range(5):
        logits = theta[s]
        p = np.exp(logits - logits.max())
        p /= p.sum()
        a = int(rng.random() > p[0])
        logps.append(np.log(p[a]))
        rewards.append(float(a == s % 2))
        s = (s + a + 1) % 4
    G, returns = 0, []
    for r in rewards[::-1]:
        G = r + 0.9 * G
        returns.insert(0, G)
    returns = np.array(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-9)
    return -sum(lp * g for lp, g in zip(logps, returns))


@program(lambda rng: (rng.uniform(1, 9, size=(4, 4)),), smooth=0, branches=True)
def astar(cost):
    """A cheapest path with a heap of places."""
    start, goal = (0, 0), (3, 3)
    frontier = [(0.0, start)]
    best, came = {start: 0.0}, {start: None}
    while frontier:
        _, cur = heapq.heappop(frontier)
        if cur == goal:
            break
        for dx, dy in ((1, 0), (0, 1), (-1, 0), (0, -1)):
            nxt = (cur[0] + dx, cur[1] + dy)
            if not (0 <= nxt[0] < 4 and 0 <= nxt[1] < 4):
                continue
            new = best[cur] + cost[nxt]
            if nxt not in best or new < best[nxt]:
                best[nxt] = new
                came[nxt] = cur
                heapq.heappush(frontier, (new + abs(goal[0] - nxt[0]) + abs(goal[1] - nxt[1]), nxt))
    path, node = [], goal
    while node:
        path.append(node)
        node = came[node]
    return best[goal], path[::-1]

"""Programs about people: votes, auctions, ratings, tests, learning, medicine, insurance."""

import functools
import itertools
from collections import Counter, OrderedDict, defaultdict
from enum import Enum, auto

import numpy as np

from tests.programs.table import program


@program(lambda rng: (rng.uniform(size=(7, 4)),), branches=True)
def voting_rules(scores):
    """Borda's count, the winner of all duels, and instant runoff."""
    ballots = [tuple(np.argsort(-row)) for row in scores]
    borda = Counter()
    for ballot in ballots:
        for points, candidate in enumerate(reversed(ballot)):
            borda[int(candidate)] += points
    wins = defaultdict(int)
    for a, b in itertools.combinations(range(4), 2):
        ahead = sum(ballot.index(a) < ballot.index(b) for ballot in ballots)
        wins[a if 2 * ahead > len(ballots) else b] += 1
    condorcet = next((c for c in wins if wins[c] == 3), -1)
    remaining = set(range(4))
    while len(remaining) > 1:
        tops = Counter(next(c for c in ballot if c in remaining) for ballot in ballots)
        loser = min(sorted(remaining), key=lambda c: tops[c])
        remaining.discard(loser)
    return np.array([borda[c] for c in range(4)]), condorcet, remaining.pop()


@program(lambda rng: (rng.uniform(1, 9, (3, 3)),), smooth=0, branches=True)
def vickrey_payments(values):
    """The best assignment of things to people, and what each costs the others."""

    def best(people):
        chosen = max(
            itertools.permutations(range(3), len(people)),
            key=lambda things: sum(values[p, t] for p, t in zip(people, things)),
        )
        return chosen, sum(values[p, t] for p, t in zip(people, chosen))

    things, total = best((0, 1, 2))
    payments = []
    for person in range(3):
        others = tuple(p for p in range(3) if p != person)
        payments.append(best(others)[1] - (total - values[person, things[person]]))
    return np.array(payments), total


class Player:
    """A player with a rating, which a game moves."""

    pool = 0

    def __init__(self, rating):
        self.rating, self.games = rating, 0

    def expected(self, other):
        """The expected score against another player."""
        return 1 / (1 + 10 ** ((other.rating - self.rating) / 400))

    @property
    def pace(self):
        """How far a game moves the rating."""
        return 40.0 if self.games < 2 else 20.0

    @classmethod
    def play(cls, white, black, score):
        """Move both ratings."""
        surprise = score - white.expected(black)
        paces = white.pace, black.pace
        white.rating += paces[0] * surprise
        black.rating -= paces[1] * surprise
        white.games += 1
        black.games += 1


@program(lambda rng: (rng.normal(1500, 100, 4), rng.integers(0, 3, 6) / 2), smooth=0)
def elo_tournament(ratings, scores):
    """Everybody against everybody."""
    players = [Player(rating) for rating in ratings]
    for (a, b), score in zip(itertools.combinations(players, 2), scores):
        Player.play(a, b, score)
    return np.array([p.rating for p in players])


@program(lambda rng: (rng.uniform(1, 10, (4, 4)),), smooth=0, branches=True)
def bradley_terry(wins):
    """Strengths of players by minorisation, until they stay."""
    wins = wins - np.diag(np.diag(wins))
    strength, games = np.ones(4), wins + wins.T
    for _ in range(40):
        shares = games / (strength[:, None] + strength[None])
        np.fill_diagonal(shares, 0.0)
        new = wins.sum(axis=1) / shares.sum(axis=1)
        new /= new.sum()
        if np.abs(new - strength).max() < 1e-3:
            break
        strength = new
    return new


@program(lambda rng: (rng.normal(size=5), rng.uniform(0.5, 2, 5), rng.integers(0, 2, 5)), smooth=0)
def ability_of_a_pupil(difficulty, slope, answers):
    """Newton's method for the ability in a model of two parameters, with a prior."""
    ability = 0.0
    for _ in range(6):
        p = 1 / (1 + np.exp(-slope * (ability - difficulty)))
        score = (slope * (answers - p)).sum() - ability
        information = (slope**2 * p * (1 - p)).sum() + 1
        ability = ability + score / information
    return ability, 1 / np.sqrt(information)


@program(lambda rng: (0.2, rng.integers(0, 2, (6, 2)).astype(float)), smooth=0, branches=True)
def rescorla_wagner(rate, trials):
    """Associations of two signals with a reward."""
    strengths = {"light": 0.0, "tone": 0.0}
    history = []
    for light, reward in trials:
        present = ["tone"] + (["light"] if light else [])
        surprise = reward - sum(strengths[signal] for signal in present)
        for signal in present:
            strengths[signal] += rate * surprise
        history.append(list(strengths.values()))
    return np.array(history)


def leslie(births, survival):
    """The matrix of a population in age classes."""
    matrix = np.zeros((len(births), len(births)))
    matrix[0] = births
    matrix[np.arange(1, len(births)), np.arange(len(births) - 1)] = survival
    return matrix


@program(lambda rng: (rng.uniform(0.5, 1.5, 3), rng.uniform(0.4, 0.8, 2)), smooth=0, branches=True)
def population_growth(births, survival):
    """The growth of a population by powers of its matrix."""
    matrix, people, rate = leslie(births, survival), np.ones(3), 0.0
    for year in range(1, 60):
        new = matrix @ people
        last, rate = rate, new.sum() / people.sum()
        people = new / new.sum()
        if abs(rate - last) < 1e-6:
            break
    return rate, people, year


@program(lambda rng: (rng.uniform(0.01, 0.2, 6),), smooth=0)
def life_table(deaths):
    """Survivors, years lived and the expectation of life by age."""
    survivors = np.concatenate(([1.0], np.cumprod(1 - deaths)))
    lived = (survivors[1:] + survivors[:-1]) / 2
    remaining = np.cumsum(lived[::-1])[::-1]
    return remaining / survivors[:-1], survivors[-1]


@program(lambda rng: (np.cumsum(rng.uniform(1, 5, (4, 4)), axis=1),), smooth=0)
def chain_ladder(paid):
    """Claims of four years, developed by factors; the lower right triangle is not known."""
    triangle = [list(row[: 4 - i]) for i, row in enumerate(paid)]
    factors = []
    for j in range(3):
        rows = [row for row in triangle if len(row) > j + 1]
        factors.append(sum(row[j + 1] for row in rows) / sum(row[j] for row in rows))
    ultimate = [
        functools.reduce(lambda a, b: a * b, factors[len(r) - 1 :], r[-1]) for r in triangle
    ]
    return np.array(ultimate), sum(u - row[-1] for u, row in zip(ultimate, triangle))


class Route(Enum):
    """How a drug is given."""

    ORAL = auto()
    VEIN = auto()


@program(lambda rng: (rng.uniform(0.5, 2), rng.uniform(0.1, 0.4)), smooth=1)
def drug_in_blood(absorption, elimination):
    """Concentrations after doses of two kinds, added up."""
    schedule = [(0.0, 100.0, Route.VEIN), (4.0, 50.0, Route.ORAL), (8.0, 50.0, Route.ORAL)]
    times = np.linspace(0.5, 12.0, 6)
    level = np.zeros_like(times)
    for start, dose, route in schedule:
        since = np.maximum(times - start, 0.0)
        given = times >= start
        match route:
            case Route.VEIN:
                curve = np.exp(-elimination * since)
            case Route.ORAL:
                scale = absorption / (absorption - elimination)
                curve = scale * (np.exp(-elimination * since) - np.exp(-absorption * since))
        level[given] += dose / 20.0 * curve[given]
    return level, np.trapezoid(level, times)


@program(lambda rng: (rng.uniform(80, 200, 8),), smooth=0, branches=True)
def insulin_controller(readings):
    """A controller with a windup limit and a stop at low sugar."""
    integral, previous, doses = 0.0, None, []
    for glucose in readings:
        error = glucose - 110.0
        integral = min(max(integral + error, -100.0), 100.0)
        slope = 0.0 if previous is None else error - previous
        previous = error
        dose = 0.02 * error + 0.002 * integral + 0.01 * slope
        doses.append(0.0 if glucose < 90.0 else max(dose, 0.0))
    return np.array(doses), integral


class Cache(OrderedDict):
    """Pages in the order of their last use."""

    def __init__(self, size):
        super().__init__()
        self.size, self.misses = size, 0

    def __missing__(self, page):
        self.misses += 1
        if len(self) >= self.size:
            self.popitem(last=False)
        self[page] = True
        return True

    def touch(self, page):
        """Use a page."""
        hit = self[page]
        self.move_to_end(page)
        return hit


@program(lambda rng: (rng.integers(0, 5, 20), 0.3), smooth=1, branches=True)
def cache_misses(pages, penalty):
    """The mean time of requests with a cache of three pages."""
    cache = Cache(3)
    for page in pages.tolist():
        cache.touch(page)
    return 1.0 + penalty * cache.misses / len(pages)

"""Programs about games and crafts: bells, tennis, cards, darts, knitting, gears, rooms, clocks."""

import functools
import itertools
import math
import operator
from collections import Counter, defaultdict
from enum import Flag, IntEnum, auto
from fractions import Fraction

import numpy as np

from tests.programs.table import program


class Row:
    """An order of bells, which changes act on."""

    def __init__(self, bells):
        self.bells = tuple(bells)

    def __matmul__(self, pairs):
        bells = list(self.bells)
        for i in pairs:
            bells[i], bells[i + 1] = bells[i + 1], bells[i]
        return Row(bells)

    def __eq__(self, other):
        return isinstance(other, Row) and self.bells == other.bells

    def __hash__(self):
        return hash(self.bells)


@program(lambda rng: (rng.uniform(200, 800, 4),), smooth=0)
def plain_hunt(pitches):
    """The changes of plain hunt on four bells, and the melody of their pitches."""
    rows, row = [], Row(range(4))
    changes = itertools.cycle([(0, 2), (1,)])
    while row not in rows:
        rows.append(row)
        row = row @ next(changes)
    melody = np.array([[pitches[bell] for bell in row.bells] for row in rows])
    return melody, np.abs(np.diff(np.log2(melody), axis=1)).sum(), len({*rows})


class Score(IntEnum):
    """The points of a game of tennis."""

    LOVE, FIFTEEN, THIRTY, FORTY, ADVANTAGE = range(5)


class Stroke(Flag):
    """What a rally was."""

    SERVE = auto()
    ACE = auto()
    LONG = auto()


@program(lambda rng: (rng.uniform(size=20), rng.uniform(0.3, 0.7)), smooth=1, branches=True)
def game_of_tennis(chances, strength):
    """A game point by point, and the chance to win a game by a formula."""
    mine, theirs, strokes = Score.LOVE, Score.LOVE, Counter()
    for chance in chances:
        kind = Stroke.SERVE | (Stroke.ACE if chance < 0.1 else Stroke(0))
        strokes[(kind | Stroke.LONG if chance > 0.9 else kind).value] += 1
        if chance < strength:
            mine = mine + 1
        else:
            theirs = theirs + 1
        match (max(mine, theirs), abs(mine - theirs)):
            case (top, lead) if top >= 4 and lead >= 2:
                break
            case (4, 0):
                mine = theirs = Score.FORTY
    lost = 1 - strength
    games = sum(math.comb(3 + k, k) * strength**4 * lost**k for k in range(3))
    games += 20 * strength**5 * lost**3 / (1 - 2 * strength * lost)
    return int(mine), int(theirs), sorted(strokes.items()), games


class Shuffle:
    """A permutation of cards."""

    __array_ufunc__ = None  # arrays leave the operators to it

    def __init__(self, places):
        self.places = np.asarray(places)

    def __mul__(self, other):
        return Shuffle(self.places[other.places])

    def __rmul__(self, deck):
        return deck[self.places]

    def __pow__(self, count):
        if count < 0:
            inverse = np.empty_like(self.places)
            inverse[self.places] = np.arange(len(self.places))
            return Shuffle(inverse) ** -count
        whole = Shuffle(np.arange(len(self.places)))
        return functools.reduce(operator.mul, itertools.repeat(self, count), whole)


@program(lambda rng: (rng.normal(size=8), int(rng.integers(-3, 4))), smooth=0, branches=True)
def faro_shuffles(deck, count):
    """A deck after some perfect shuffles, and back."""
    faro = Shuffle(np.arange(8).reshape(2, 4).ravel("F"))
    mixed = deck * faro**count
    return mixed, mixed * faro**-count, deck * faro**3


@program(lambda rng: (rng.normal(0, 3, (9, 2)), 40), branches=True)
def darts(throws, left):
    """A leg of darts: a throw that would leave less than nothing does not count."""
    sectors = [20, 1, 18, 4, 13, 6, 10, 15, 2, 17, 3, 19, 7, 16, 8, 11, 14, 9, 12, 5]

    def points(x, y):
        away = math.hypot(x, y)
        if away < 0.6:
            return 50
        sector = sectors[int((math.atan2(x, y) / math.tau * 20 + 0.5) % 20)]
        return sector * (2 if 8 < away < 9 else 3 if 5 < away < 6 else 1 if away < 9 else 0)

    history = []
    for first in range(0, len(throws), 3):
        before = left
        try:
            for x, y in throws[first : first + 3]:
                left -= points(x, y)
                if left < 0:
                    raise ValueError("bust")
                if left == 0:
                    return history, "finished", len(history)
        except ValueError as error:
            left = before
            history.append(str(error))
        else:
            history.append(left)
    return history, "open", left


@program(lambda rng: (rng.uniform(0.3, 0.6), rng.uniform(20, 40)), smooth=0, branches=True)
def sleeve_of_a_pullover(gauge, length):
    """The rows of a sleeve in which stitches are added, spread as evenly as possible."""
    stitches, target = round(20 / gauge), round(30 / gauge)
    rows = round(length / 0.4)
    pairs = max((target - stitches) // 2, 1)
    every, rest = divmod(rows, pairs)
    gaps = [every + (i * rest // pairs != (i + 1) * rest // pairs) for i in range(pairs)]
    places = list(itertools.accumulate(gaps))
    return places[-1] == rows, len(set(gaps)) <= 2, gauge * (stitches + 2 * pairs), pairs % 2


@program(lambda rng: (rng.uniform(0.5, 1.5), rng.uniform(1.9, 2.3)), smooth=0, branches=True)
def gears_of_a_bicycle(cadence, circumference):
    """The gears without nearly equal ones, and the speeds at a cadence."""
    ratios = {Fraction(front, back) for front in (30, 39, 53) for back in (12, 15, 18, 23)}
    chosen = []
    for ratio in sorted(ratios):
        if not chosen or ratio / chosen[-1] > Fraction(11, 10):
            chosen.append(ratio)
    speeds = [cadence * circumference * float(ratio) for ratio in chosen]
    steps = [b / a for a, b in itertools.pairwise(speeds)]
    return np.array(speeds), max(steps) / min(steps), sum(s > 3.0 for s in speeds)


class Absorption(defaultdict):
    """What surfaces absorb; unknown materials count as plaster."""

    def __missing__(self, material):
        self[material] = value = 0.05
        return value


@program(lambda rng: (rng.uniform(3, 8, 3), rng.uniform(0.2, 0.6)), smooth=0, branches=True)
def echo_of_a_room(size, curtain):
    """The time in which sound fades by Sabine's formula, and the lowest modes of the room."""
    coefficients = Absorption(None, {"curtain": curtain, "floor": 0.1})
    x, y, z = size
    surfaces = {"curtain": x * z, "floor": x * y, "ceiling": x * y, "walls": x * z + 2 * y * z}
    absorbed = sum(area * coefficients[material] for material, area in surfaces.items())
    modes = sorted(
        (343 / 2 * np.linalg.norm(np.array(n) / size), n)
        for n in itertools.product(range(2), repeat=3)
        if any(n)
    )
    return 0.161 * x * y * z / absorbed, modes[0][0], sorted(coefficients)


@program(lambda rng: (rng.uniform(-0.3, 0.3, 12), rng.uniform(0.01, 0.1)), smooth=0)
def clock_that_is_set(drifts, gain):
    """A clock that is compared with a signal each day; a coroutine learns its rate."""

    def regulator():
        rate = error = 0.0
        while True:
            seen = yield rate
            error = 0.7 * error + 0.3 * seen
            rate -= gain * error
            if abs(rate) > 0.2:
                rate = math.copysign(0.2, rate)

    setting = regulator()
    next(setting)
    offset, offsets = 0.0, []
    for drift in drifts:
        offset += drift + setting.send(offset)
        offsets.append(offset)
    setting.close()
    return np.array(offsets), np.std(offsets)

"""Programs about nature: tides, forests, sundials, earthquakes, rivers, genes, animals, stars."""

import contextlib
import functools
import itertools
import math
import warnings
from collections import deque
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from tests.programs.table import program


class Constituent:
    """A number of a port in the unit of the tables, stored in the unit of the formulas."""

    def __init__(self, scale):
        self.scale = scale

    def __set_name__(self, owner, name):
        self.place = "_" + name

    def __get__(self, port, owner=None):
        return self if port is None else getattr(port, self.place) * self.scale

    def __set__(self, port, value):
        setattr(port, self.place, value / self.scale)


class Port:
    """Heights of the tide from harmonic constants."""

    speeds = np.array([28.984, 30.0, 15.041])
    datum = Constituent(0.01)

    def __init__(self, amplitudes, phases, datum):
        self.amplitudes, self.phases, self.datum = amplitudes, phases, datum

    def __call__(self, hours):
        angles = np.deg2rad(np.outer(hours, self.speeds)) - self.phases
        return self.datum + np.cos(angles) @ self.amplitudes

    def turns(self, hours):
        """The hours of high and low water, and the heights there."""
        heights = self(hours)
        signs = np.sign(np.diff(heights))
        places = 1 + np.flatnonzero(signs[1:] != signs[:-1])
        return hours[places], heights[places]


@program(lambda rng: (rng.uniform(0.5, 2, 3), rng.uniform(0, 3, 3)), smooth=0, branches=True)
def tide_of_a_day(amplitudes, phases):
    port = Port(amplitudes, phases, 250.0)
    hours = np.arange(0.0, 25.0)
    _, heights = port.turns(hours)
    port.datum = 0.0
    return port(hours).max(), heights.mean(), float(Port.datum.scale)


@dataclass(order=True)
class Tree:
    """A tree of a stand, ordered by its width."""

    width: float
    height: float = field(compare=False)
    species: str = field(default="pine", compare=False)
    volume: float = field(init=False, compare=False)

    def __post_init__(self):
        self.volume = 0.5 * math.pi * (self.width / 200) ** 2 * self.height


@program(lambda rng: (rng.uniform(10, 40, 6), rng.uniform(5, 25, 6)), smooth=0, branches=True)
def thinned_stand(widths, heights):
    """The two thinnest trees of each species are cut; the largest grows by a metre."""
    trees = sorted(
        Tree(w, h, "oak" if i % 2 else "pine") for i, (w, h) in enumerate(zip(widths, heights))
    )
    kept = []
    for _, group in itertools.groupby(
        sorted(trees, key=lambda tree: tree.species), key=lambda tree: tree.species
    ):
        kept += list(group)[2:]
    largest = max(kept, key=lambda tree: tree.volume)
    grown = replace(largest, height=largest.height + 1)
    return np.array([tree.volume for tree in kept]), grown.volume, grown.species


@program(lambda rng: (rng.uniform(0.3, 1.2), int(rng.integers(1, 360))), smooth=0, branches=True)
def hours_of_a_sundial(latitude, day):
    """The angles of the hour lines, and the hours between sunrise and sunset."""
    tilt = -0.409 * math.cos(2 * math.pi * (day + 10) / 365)
    lines = {}
    for hour in range(7, 18):
        angle = math.radians(15 * (hour - 12))
        lines[hour] = math.degrees(
            math.atan2(math.sin(latitude) * math.sin(angle), math.cos(angle))
        )
    try:
        half = math.acos(-math.tan(latitude) * math.tan(tilt))
    except ValueError:
        half = math.pi if tilt * latitude > 0 else 0.0
    return lines[9], list(lines.values()), 24 * half / math.pi


class Quake(NamedTuple):
    """Where and when an earthquake began."""

    x: float
    y: float
    time: float

    def arrivals(self, stations, speed):
        """The times at which stations feel it."""
        return self.time + np.hypot(stations[:, 0] - self.x, stations[:, 1] - self.y) / speed


@program(lambda rng: (rng.uniform(2, 4, 2), rng.uniform(-5, 5, (6, 2))), smooth=0)
def located_earthquake(centre, stations):
    """Geiger's method: the hypocentre from arrival times, by Gauss and Newton."""
    picked = Quake(*centre, 0.5).arrivals(stations, 3.0)
    guess = Quake(0.1, 0.2, 0.0)
    for _ in range(8):
        residuals = picked - guess.arrivals(stations, 3.0)
        away = np.array([guess.x, guess.y]) - stations
        slopes = away / (3.0 * np.linalg.norm(away, axis=1, keepdims=True))
        design = np.column_stack([slopes, np.ones(len(stations))])
        step, *_ = np.linalg.lstsq(design, residuals, rcond=None)
        guess = guess._replace(
            **{name: old + s for name, old, s in zip(guess._fields, guess, step)}
        )
    return guess


@program(lambda rng: (rng.uniform(0, 5, 8), rng.uniform(0.2, 0.8)), smooth=0, branches=True)
def river_below_a_catchment(rain, share):
    """Rain through a chain of reservoirs; a deque holds what is under way."""
    under_way, levels, out = deque([0.0, 0.0], maxlen=2), [0.0, 0.0], []
    for fallen in itertools.chain(rain, itertools.repeat(0.0, 4)):
        late = under_way[0]
        under_way.append(fallen * share)
        flow = late
        for n in range(len(levels)):
            levels[n] += flow
            flow = 0.3 * levels[n] if levels[n] < 6 else 0.3 * 6 + 0.6 * (levels[n] - 6)
            levels[n] -= flow
        out.append(flow + fallen * (1 - share))
    return np.array(out), sum(levels) + sum(under_way)


@program(lambda rng: (rng.integers(0, 2, (10, 3)),), branches=True)
def order_of_genes(gametes):
    """The order of three genes by recombinations, with the log odds of linkage."""

    @functools.lru_cache(maxsize=None)
    def odds(exchanged, total):
        if exchanged in (0, total):
            return total * math.log10(2)
        share = exchanged / total
        return sum(
            n * math.log10(2 * part)
            for n, part in ((exchanged, share), (total - exchanged, 1 - share))
        )

    exchanged = {
        (a, b): int((gametes[:, a] != gametes[:, b]).sum())
        for a, b in itertools.combinations(range(3), 2)
    }
    ends = max(exchanged, key=exchanged.get)
    (middle,) = set(range(3)) - set(ends)
    scores = [odds(min(n, 10 - n), 10) for n in exchanged.values()]
    return (ends[0], middle, ends[1]), max(scores), len(set(exchanged.values()))


@program(lambda rng: (rng.uniform(0.05, 1.2, 5),), branches=True)
def ages_by_carbon(fractions):
    """Ages of samples; a sample with more carbon than today's gives a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a sample younger than 1950 has no age
        ages = np.sqrt(-8033 * np.log(fractions)) ** 2
    known = ages[~np.isnan(ages)]
    weights = 1 / (40 + known / 100) ** 2
    return np.average(known, weights=weights), len(known), np.sort(known)[::-1]


@contextlib.contextmanager
def tagged(herd, share):
    """Some animals of a herd carry a mark while the block runs."""
    marked = herd[: int(share * len(herd))]
    marked += 100.0
    try:
        yield herd
    finally:
        marked -= 100.0


@program(lambda rng: (rng.normal(30, 4, 10), rng.permutation(10)[:6]), branches=True)
def size_of_a_herd(weights, caught):
    """Lincoln's estimate by marked animals that are caught again."""
    herd = weights.copy()
    with tagged(herd, 0.5) as marked:
        again = np.count_nonzero(marked[caught] > 80)
        with contextlib.suppress(ZeroDivisionError):
            estimate = 5 * len(caught) / int(again)
        if not again:
            estimate = math.inf
    return estimate, herd - weights, herd[caught].mean()


class Light:
    """Magnitudes, which add as lights do."""

    __slots__ = ("flux",)

    def __init__(self, magnitude):
        self.flux = 10 ** (-0.4 * np.asarray(magnitude))

    @classmethod
    def of_flux(cls, flux):
        light = cls.__new__(cls)
        light.flux = flux
        return light

    @property
    def magnitude(self):
        return -2.5 * np.log10(self.flux)

    def __add__(self, other):
        return Light.of_flux(self.flux + other.flux)

    __radd__ = lambda self, other: self if other == 0 else NotImplemented  # noqa: E731

    def __mul__(self, factor):
        return Light.of_flux(self.flux * factor)

    __rmul__ = __mul__


@program(lambda rng: (rng.uniform(8, 12, 3), rng.uniform(0, 1, 20)), smooth=0)
def eclipses_of_a_triple_star(magnitudes, times):
    """The light curve of three stars, of which the second is covered for a part of the time."""
    stars = [Light(m) for m in magnitudes]
    phase = times * 2.7 % 1
    covered = np.where(np.abs(phase - 0.5) < 0.1, 1 - np.cos((phase - 0.5) * 5 * np.pi) ** 2, 1.0)
    curve = sum([stars[0], stars[1] * covered, 0.5 * stars[2]])
    order = np.argsort(phase, kind="stable")
    return curve.magnitude[order], np.ptp(curve.magnitude)

"""Programs of engineers and map makers: ground, trusses, light, air, decay, lines, pictures."""

import contextlib
import math
import operator
import warnings
from functools import cached_property, reduce, singledispatch, total_ordering

import numpy as np

from tests.programs.table import program

NODES = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 1.5]])
BARS = [(0, 1), (1, 2), (0, 2)]


@program(lambda rng: (rng.uniform(1, 2, 3), rng.normal(size=2)), smooth=0)
def truss(areas, load):
    """Displacements and forces of three bars on two supports."""
    stiffness, directions = np.zeros((6, 6)), []
    for area, (a, b) in zip(areas, BARS):
        along = NODES[b] - NODES[a]
        length = np.linalg.norm(along)
        c = along / length
        block = area / length * np.outer(c, c)
        places = np.r_[2 * a, 2 * a + 1], np.r_[2 * b, 2 * b + 1]
        for i, rows in enumerate(places):
            for j, columns in enumerate(places):
                stiffness[np.ix_(rows, columns)] += block if i == j else -block
        directions.append((c, length))
    free = np.array([2, 4, 5])
    moved = np.zeros(6)
    moved[free] = np.linalg.solve(stiffness[np.ix_(free, free)], np.append(0.0, load))
    forces = [
        area / length * (c @ (moved[2 * b : 2 * b + 2] - moved[2 * a : 2 * a + 2]))
        for area, (a, b), (c, length) in zip(areas, BARS, directions)
    ]
    return moved, np.array(forces)


@program(lambda rng: (rng.uniform(10, 30, 5), rng.uniform(20, 35)), smooth=0, branches=True)
def slope_of_ground(weights, friction):
    """The safety of a slope by the method of Bishop, which needs iteration."""
    slices = list(zip(weights, np.radians([-5.0, 5.0, 15.0, 28.0, 40.0])))
    tangent, safety = math.tan(math.radians(friction)), 1.0
    for _ in range(50):
        top = sum(
            (8.0 + w * tangent) / (np.cos(a) + np.sin(a) * tangent / safety) for w, a in slices
        )
        new = top / sum(w * np.sin(a) for w, a in slices)
        if abs(new - safety) < 1e-4:
            return new
        safety = new
    raise ArithmeticError("no convergence")


@program(lambda rng: (rng.uniform(80, 160, 2), np.linspace(0.4, 0.7, 5)), smooth=0)
def thin_films(thicknesses, wavelengths):
    """The reflection of layers on glass by products of complex matrices."""
    indices, result = (1.38, 2.1), []
    for wavelength in wavelengths:
        matrix = np.eye(2, dtype=complex)
        for n, d in zip(indices, thicknesses):
            phase = 2 * np.pi * n * d * 1e-3 / wavelength
            cosine, sine = np.cos(phase), np.sin(phase)
            matrix = matrix @ np.array([[cosine, 1j * sine / n], [1j * n * sine, cosine]])
        b, c = matrix @ np.array([1.0, 1.52])
        result.append(np.abs((b - c) / (b + c)) ** 2)
    return np.array(result)


class Element:
    """A part of a beam of light, as a matrix."""

    def __init__(self, matrix):
        self.matrix = np.array(matrix)

    def __rshift__(self, other):
        return Element(other.matrix @ self.matrix)

    @classmethod
    def lens(cls, f):
        """A thin lens."""
        return cls([[1.0, 0.0], [-1 / f, 1.0]])

    @classmethod
    def space(cls, d):
        """A distance."""
        return cls([[1.0, d], [0.0, 1.0]])


@program(lambda rng: (rng.uniform(0.5, 2, 4),), smooth=0, branches=True)
def optical_bench(x):
    """Two lenses, and whether the image is real."""
    bench = reduce(
        operator.rshift,
        [Element.space(x[0]), Element.lens(x[1]), Element.space(x[2]), Element.lens(x[3])],
    )
    (a, b), (c, d) = bench.matrix
    distance = -b / d
    return distance if distance > 0 else -distance, a * d - b * c


@program(lambda rng: (rng.uniform(0.1, 2, 4), np.array([0.5, 1.0, 4.0])), smooth=0)
def decay_chain(rates, times):
    """Bateman's solution for a chain of nuclides."""
    rows = []
    for k in range(1, len(rates) + 1):
        chain = rates[:k]
        coefficients = [
            np.prod(chain[:-1]) / math.prod(chain[j] - chain[i] for j in range(k) if j != i)
            for i in range(k)
        ]
        rows.append(sum(c * np.exp(-r * times) for c, r in zip(coefficients, chain)))
    return np.stack(rows)


@program(lambda rng: (rng.uniform(10, 40), rng.uniform(0.2, 0.9)), smooth=0, branches=True)
def moist_air(temperature, humidity):
    """Dew point, wet bulb by bisection, and the heat index with its two formulas."""

    def saturation(t):
        return 6.112 * math.exp(17.62 * t / (243.12 + t))

    vapour = humidity * saturation(temperature)
    ratio = math.log(vapour / 6.112)
    dew = 243.12 * ratio / (17.62 - ratio)
    low, high = dew, temperature
    for _ in range(12):
        wet = 0.5 * (low + high)
        if saturation(wet) - 0.66 * (temperature - wet) > vapour:
            high = wet
        else:
            low = wet
    f, rh = temperature * 1.8 + 32, humidity * 100
    index = 0.5 * (f + 61 + 1.2 * (f - 68) + 0.094 * rh)
    if index >= 80:
        index = -42.379 + 2.04901523 * f + 10.14333127 * rh - 0.22475541 * f * rh
    return dew, wet, (index - 32) / 1.8


@program(lambda rng: (np.cumsum(rng.normal(size=(12, 2)), axis=0), 0.8), smooth=0, branches=True)
def simplified_line(points, tolerance):
    """The line of Douglas and Peucker, by recursion on views."""

    def simplify(part):
        if len(part) < 3:
            return [part[0], part[-1]]
        start, along = part[0], part[-1] - part[0]
        apart = part[1:-1] - start
        distances = np.abs(along[0] * apart[:, 1] - along[1] * apart[:, 0]) / np.hypot(*along)
        worst = int(np.argmax(distances)) + 1
        if distances[worst - 1] <= tolerance:
            return [part[0], part[-1]]
        return simplify(part[: worst + 1])[:-1] + simplify(part[worst:])

    kept = np.array(simplify(points))
    return kept, np.hypot(*np.diff(kept, axis=0).T).sum()


@total_ordering
class Place:
    """A place on the globe, ordered from north to south."""

    def __init__(self, latitude, longitude):
        self.latitude, self.longitude = latitude, longitude

    def __eq__(self, other):
        return self.latitude == other.latitude

    def __lt__(self, other):
        return self.latitude > other.latitude

    __hash__ = None

    @cached_property
    def vector(self):
        """The place as a unit vector."""
        a, b = math.radians(self.latitude), math.radians(self.longitude)
        return np.array([math.cos(a) * math.cos(b), math.cos(a) * math.sin(b), math.sin(a)])

    def __sub__(self, other):
        return 6371.0 * math.acos(min(1.0, max(-1.0, float(self.vector @ other.vector))))


@program(lambda rng: (rng.uniform(-80, 80, 4), rng.uniform(-170, 170, 4)), smooth=0, branches=True)
def journey(latitudes, longitudes):
    """From north to south by great circles, and the middle of the places."""
    places = sorted(Place(a, b) for a, b in zip(latitudes, longitudes))
    length = sum(b - a for a, b in zip(places, places[1:]))
    middle = sum(place.vector for place in places)
    return length, middle / np.linalg.norm(middle)


@singledispatch
def area(shape):
    """The area of a shape."""
    raise TypeError(type(shape).__name__)


class Circle:
    """A circle by its radius."""

    def __init__(self, r):
        self.r = r


class Polygon:
    """A polygon by its corners."""

    def __init__(self, corners):
        self.corners = corners


@area.register
def _(shape: Circle):
    return math.pi * shape.r**2


@area.register
def _(shape: Polygon):
    x, y = shape.corners.T
    return abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2


@program(lambda rng: (rng.uniform(1, 2), rng.normal(size=(5, 2))), smooth=1)
def areas_of_shapes(radius, corners):
    """Shapes of several classes, one of which has no area."""
    total = 0.0
    for shape in (Circle(radius), Polygon(corners), "square"):
        with contextlib.suppress(TypeError):
            total += area(shape)
    return total


@program(lambda rng: (rng.uniform(0.05, 1, (6, 6)),), smooth=0)
def raw_picture(sensor):
    """Colours from a mosaic of sensors, and tone mapping."""
    masks = np.zeros((3, 6, 6))
    masks[0, ::2, ::2] = masks[2, 1::2, 1::2] = 1
    masks[1, ::2, 1::2] = masks[1, 1::2, ::2] = 1
    kernel = np.array([[0.25, 0.5, 0.25], [0.5, 1.0, 0.5], [0.25, 0.5, 0.25]])
    planes = []
    for mask in masks:
        padded, weight = np.pad(sensor * mask, 1), np.pad(mask, 1)
        top = sum(kernel[i, j] * padded[i : i + 6, j : j + 6] for i in range(3) for j in range(3))
        bottom = sum(
            kernel[i, j] * weight[i : i + 6, j : j + 6] for i in range(3) for j in range(3)
        )
        planes.append(top / bottom)
    picture = np.stack(planes, axis=-1)
    light = picture @ np.array([0.2126, 0.7152, 0.0722])
    scaled = 0.18 * light / np.exp(np.log(light + 1e-6).mean())
    return (picture * (scaled / (1 + scaled) / light)[..., None]) ** (1 / 2.2)


@program(lambda rng: (rng.uniform(2, 8, 9), 14.0), smooth=0, branches=True)
def line_breaks(widths, measure):
    """Words in lines with the least sum of cubes of the spaces that are left."""
    n = len(widths)
    best, breaks = [0.0] + [math.inf] * n, [0] * (n + 1)
    for end in range(1, n + 1):
        length = -1.0
        for start in range(end - 1, -1, -1):
            length += widths[start] + 1.0
            if length > measure:
                break
            cost = best[start] + (0.0 if end == n else (measure - length) ** 3)
            if cost < best[end]:
                best[end], breaks[end] = cost, start
    lines, end = [], n
    while end > 0:
        lines.append(end)
        end = breaks[end]
    return best[n], np.array(lines[::-1])


@program(lambda rng: (rng.uniform(0.2, 1.5, 6),), smooth=0, branches=True)
def careful_logarithms(x):
    """Warnings as errors decide on the formula."""
    total = 0.0
    for value in x:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            total += np.log(np.maximum(value - 1.0, 0.0) + 1.0)
    try:
        with np.errstate(invalid="raise"):
            roots = np.sqrt(x - 0.5)
    except FloatingPointError:
        roots = np.sqrt(np.abs(x - 0.5))
    return total + roots.sum()

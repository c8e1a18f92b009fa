"""Points, rotations and curves."""

from math import acos, cos, sin, sqrt

import numpy as np

from tests.programs.table import program


@program(lambda rng: (rng.normal(size=(7, 2)),), smooth=0)
def polygon(vertices):
    """Area and centroid by the shoelace formula."""
    n = len(vertices)
    area, cx, cy = 0.0, 0.0, 0.0
    for i in range(n):
        x0, y0 = vertices[i]
        x1, y1 = vertices[(i + 1) % n]
        cross = x0 * y1 - x1 * y0
        area += cross / 2
        cx += (x0 + x1) * cross
        cy += (y0 + y1) * cross
    return area, np.array([cx, cy]) / 6


class Quaternion:
    """A rotation with operators."""

    def __init__(self, w, x, y, z):
        self.q = np.array([w, x, y, z], dtype=float)

    @classmethod
    def from_axis(cls, axis, angle):
        """The rotation about an axis."""
        axis = np.asarray(axis, dtype=float)
        axis = axis / sqrt(np.dot(axis, axis))
        s = sin(angle / 2)
        return cls(cos(angle / 2), *(s * axis))

    def __mul__(self, other):
        w0, x0, y0, z0 = self.q
        w1, x1, y1, z1 = other.q
        return Quaternion(
            w0 * w1 - x0 * x1 - y0 * y1 - z0 * z1,
            w0 * x1 + x0 * w1 + y0 * z1 - z0 * y1,
            w0 * y1 - x0 * z1 + y0 * w1 + z0 * x1,
            w0 * z1 + x0 * y1 - y0 * x1 + z0 * w1,
        )

    def conjugate(self):
        """The inverse rotation."""
        return Quaternion(self.q[0], *-self.q[1:])

    def rotate(self, v):
        """A vector after the rotation."""
        return (self * Quaternion(0, *v) * self.conjugate()).q[1:]


@program(lambda rng: (rng.normal(size=3), rng.uniform(0, 3), rng.normal(size=3)), smooth=1)
def rotate_vector(axis, angle, v):
    """A vector turned twice by quaternions."""
    q = Quaternion.from_axis(axis, angle)
    return (q * q).rotate(v)


@program(lambda rng: (rng.normal(size=3), rng.normal(size=(5, 3))), smooth=0)
def camera(rotation, points):
    """Projected points of a camera turned by Rodrigues' formula."""
    theta = np.linalg.norm(rotation)
    k = rotation / theta
    K = np.array([[0, -k[2], k[1]], [k[2], 0, -k[0]], [-k[1], k[0], 0]])
    R = np.eye(3) + np.sin(theta) * K + (1 - np.cos(theta)) * K @ K
    moved = points @ R.T + np.array([0.0, 0.0, 6.0])
    return moved[:, :2] / moved[:, 2:]


@program(lambda rng: (rng.normal(size=(4, 2)), 6), smooth=0)
def bezier(control, count):
    """Points of a curve by de Casteljau's construction."""

    def point(t):
        points = [p for p in control]
        while len(points) > 1:
            points = [(1 - t) * a + t * b for a, b in zip(points[:-1], points[1:])]
        return points[0]

    return np.array([point(t) for t in np.linspace(0, 1, count)])


@program(lambda rng: (rng.normal(size=(8, 2)),), branches=True)
def convex_hull(points):
    """Andrew's monotone chain."""

    def cross(o, a, b):
        return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])

    ordered = sorted(points, key=lambda p: (p[0], p[1]))
    hull = []
    for sequence in (ordered, ordered[-2::-1]):
        start = len(hull)
        for p in sequence:
            while len(hull) - start >= 2 and cross(hull[-2], hull[-1], p) <= 0:
                hull.pop()
            hull.append(p)
        hull.pop()
    return np.array(hull)


@program(lambda rng: (rng.normal(size=(5, 3)), rng.normal(size=(5, 3))), smooth=0)
def kabsch(P, Q):
    """The best rotation between two sets of points, and the distance left."""
    p, q = P - P.mean(axis=0), Q - Q.mean(axis=0)
    U, S, Vt = np.linalg.svd(p.T @ q)
    D = np.eye(3)
    D[2, 2] = np.sign(np.linalg.det(Vt.T @ U.T))
    R = Vt.T @ D @ U.T
    return np.sqrt(np.mean(np.sum((p @ R.T - q) ** 2, axis=1)))


@program(lambda rng: (rng.uniform(-1, 1, size=(2,)), rng.uniform(-3, 3, size=(2,))), smooth=0)
def great_circle(a, b, radius=6371.0):
    """The distance on a sphere, by the cosine rule and by haversines."""
    lat1, lon1 = a
    lat2, lon2 = b[0] / 3, b[1]
    direct = acos(sin(lat1) * sin(lat2) + cos(lat1) * cos(lat2) * cos(lon2 - lon1))
    h = sin((lat2 - lat1) / 2) ** 2 + cos(lat1) * cos(lat2) * sin((lon2 - lon1) / 2) ** 2
    return radius * direct, 2 * radius * np.arcsin(np.sqrt(h))


@program(lambda rng: (rng.normal(size=(4, 3)) + [0, 0, 4], rng.normal(size=3)), smooth=0)
def shade_spheres(centres, light):
    """A ray through each pixel: the brightness of the nearest sphere."""
    light = light / np.linalg.norm(light)
    image = np.zeros((3, 3))
    for i, y in enumerate(np.linspace(-0.5, 0.5, 3)):
        for j, x in enumerate(np.linspace(-0.5, 0.5, 3)):
            ray = np.array([x, y, 1.0])
            ray /= np.linalg.norm(ray)
            along = centres @ ray
            distance = np.sum(centres**2, axis=1) - along**2
            weight = np.exp(-distance)
            normal = (along[:, None] * ray - centres) * weight[:, None]
            image[i, j] = np.tanh(np.sum(normal @ light))
    return image

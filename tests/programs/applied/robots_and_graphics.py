"""Kinematics, quaternions, rays, noise and lines on a canvas."""

import logging
import math

import numpy as np

from tests.programs.table import program

log = logging.getLogger("x")


def dh(theta, d, a, alpha):
    ct, st, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    return np.array(
        [
            [ct, -st * ca, st * sa, a * ct],
            [st, ct * ca, -ct * sa, a * st],
            [0, sa, ca, d],
            [0, 0, 0, 1],
        ]
    )


class Arm:
    links = ((0.3, 0.0, np.pi / 2), (0.0, 0.5, 0.0), (0.0, 0.4, 0.0))

    def forward(self, q):
        T = np.eye(4)
        frames = [T]
        for qi, (d, a, al) in zip(q, self.links):
            T = T @ dh(qi, d, a, al)
            frames.append(T)
        return frames

    def jacobian(self, q):
        frames = self.forward(q)
        pe = frames[-1][:3, 3]
        J = np.zeros((6, len(q)))
        for i in range(len(q)):
            z, p = frames[i][:3, 2], frames[i][:3, 3]
            J[:3, i] = np.cross(z, pe - p)
            J[3:, i] = z
        return J


@program(lambda rng: (rng.uniform(-1, 1, size=3), rng.uniform(0.2, 0.5, size=3)), smooth=0)
def inverse_kinematics(q, target):
    """Damped least squares steps of an arm."""
    arm = Arm()
    lam = 0.1
    errors = []
    for it in range(5):
        p = arm.forward(q)[-1][:3, 3]
        err = target - p
        errors.append(np.linalg.norm(err))
        if errors[-1] < 1e-6:
            break
        J = arm.jacobian(q)[:3]
        q = q + J.T @ np.linalg.solve(J @ J.T + lam**2 * np.eye(3), err)
    return q, np.array(errors)


class Quaternion:
    __slots__ = ("w", "x", "y", "z")

    def __init__(self, w, x, y, z):
        self.w, self.x, self.y, self.z = w, x, y, z

    @classmethod
    def from_axis(cls, axis, angle):
        axis = np.asarray(axis, dtype=float)
        axis = axis / np.linalg.norm(axis)
        s = math.sin(angle / 2)
        return cls(math.cos(angle / 2), *(axis * s))

    def __mul__(self, o):
        return Quaternion(
            self.w * o.w - self.x * o.x - self.y * o.y - self.z * o.z,
            self.w * o.x + self.x * o.w + self.y * o.z - self.z * o.y,
            self.w * o.y - self.x * o.z + self.y * o.w + self.z * o.x,
            self.w * o.z + self.x * o.y - self.y * o.x + self.z * o.w,
        )

    def __abs__(self):
        return math.sqrt(sum(c * c for c in self))

    def __iter__(self):
        return iter((self.w, self.x, self.y, self.z))

    def conj(self):
        return Quaternion(self.w, -self.x, -self.y, -self.z)

    def rotate(self, v):
        return np.array(list(self * Quaternion(0.0, *v) * self.conj())[1:])

    def __repr__(self):
        return "Q({:.3f}, {:.3f}, {:.3f}, {:.3f})".format(*self)


@program(
    lambda rng: (rng.normal(size=3), float(rng.uniform(0, 3)), rng.normal(size=(4, 3))),
    smooth=1,
    branches=True,
)
def quaternion_slerp(axis, angle, pts):
    """Points rotated by interpolated quaternions."""
    q0, q1 = Quaternion(1.0, 0.0, 0.0, 0.0), Quaternion.from_axis(axis, angle)
    log.debug("from %s to %s", q0, q1)
    dot = sum(a * b for a, b in zip(q0, q1))
    if dot < 0:
        q1, dot = Quaternion(*(-c for c in q1)), -dot
    out = []
    for t in np.linspace(0, 1, 3):
        if dot > 0.9995:
            q = Quaternion(*[(1 - t) * a + t * b for a, b in zip(q0, q1)])
        else:
            th = math.acos(dot)
            q = Quaternion(
                *[
                    (math.sin((1 - t) * th) * a + math.sin(t * th) * b) / math.sin(th)
                    for a, b in zip(q0, q1)
                ]
            )
        n = abs(q)
        out.append([Quaternion(*[c / n for c in q]).rotate(p) for p in pts])
    return np.array(out)


@program(lambda rng: (rng.uniform(-0.5, 0.5, size=2),), smooth=0, branches=True)
def ray_tracer(camera_xy):
    """Spheres seen from a camera."""
    spheres = [
        dict(c=np.array([0, 0, 5.0]), r=1.0, col=np.array([1, 0, 0.2])),
        dict(c=np.array([1.5, 0.5, 6]), r=1.2, col=np.array([0.1, 0.8, 0.3])),
    ]
    light = np.array([5, 5, -10.0])
    light /= np.linalg.norm(light)
    w = h = 4
    img = np.zeros((h, w, 3))
    origin = np.append(camera_xy, 0.0)
    for j, y in enumerate(np.linspace(1, -1, h)):
        for i, x in enumerate(np.linspace(-1, 1, w)):
            d = np.array([x * 0.5, y * 0.5, 1.0])
            d /= np.linalg.norm(d)
            best, hit = np.inf, None
            for s in spheres:
                oc = origin - s["c"]
                b = 2 * np.dot(d, oc)
                c = np.dot(oc, oc) - s["r"] ** 2
                disc = b * b - 4 * c
                if disc < 0:
                    continue
                t = (-b - np.sqrt(disc)) / 2
                if 1e-4 < t < best:
                    best, hit = t, s
            if hit is None:
                continue
            n = (origin + best * d - hit["c"]) / hit["r"]
            img[j, i] = np.clip(hit["col"] * max(np.dot(n, light), 0.1), 0, 1)
    return img


@program(
    lambda rng: (rng.uniform(0, 4, size=(5, 2)), int(rng.integers(1000))), smooth=0, branches=True
)
def perlin_noise(points, seed):
    """Perlin noise, a point at a time."""
    rng = np.random.RandomState(seed)
    perm = rng.permutation(16)
    grads = np.array(
        [[math.cos(a), math.sin(a)] for a in np.linspace(0, 2 * np.pi, 8, endpoint=False)]
    )

    def fade(t):
        return t * t * t * (t * (t * 6 - 15) + 10)

    def grad(ix, iy, dx, dy):
        g = grads[perm[(perm[ix % 16] + iy) % 16] % 8]
        return g[0] * dx + g[1] * dy

    out = np.empty(len(points))
    for k, (x, y) in enumerate(points):
        xi, yi = int(np.floor(x)), int(np.floor(y))
        xf, yf = x - xi, y - yi
        u, v = fade(xf), fade(yf)
        a = (1 - u) * grad(xi, yi, xf, yf) + u * grad(xi + 1, yi, xf - 1, yf)
        b = (1 - u) * grad(xi, yi + 1, xf, yf - 1) + u * grad(xi + 1, yi + 1, xf - 1, yf - 1)
        out[k] = (1 - v) * a + v * b
    return out


@program(lambda rng: (rng.uniform(0, 4, size=(5, 2)),), smooth=0)
def perlin_noise_vectorised(p):
    """Perlin noise of all points at once."""
    rng = np.random.default_rng(7)
    perm = np.concatenate([rng.permutation(16)] * 2)
    x, y = p[:, 0], p[:, 1]
    xi, yi = x.astype(int), y.astype(int)
    xf, yf = x - xi, y - yi

    def fade(t):
        return 6 * t**5 - 15 * t**4 + 10 * t**3

    vectors = np.array([[0, 1], [0, -1], [1, 0], [-1, 0]])

    def gradient(h, x, y):
        g = vectors[h % 4]
        return g[:, 0] * x + g[:, 1] * y

    n00 = gradient(perm[perm[xi] + yi], xf, yf)
    n01 = gradient(perm[perm[xi] + yi + 1], xf, yf - 1)
    n11 = gradient(perm[perm[xi + 1] + yi + 1], xf - 1, yf - 1)
    n10 = gradient(perm[perm[xi + 1] + yi], xf - 1, yf)
    u, v = fade(xf), fade(yf)
    x1 = n00 + u * (n10 - n00)
    x2 = n01 + u * (n11 - n01)
    return x1 + v * (x2 - x1)


@program(lambda rng: (list(map(tuple, rng.integers(0, 8, size=(2, 2)))),), branches=True)
def bresenham(ends):
    """A line of pixels."""
    (x0, y0), (x1, y1) = ends
    canvas = np.zeros((8, 8), dtype=np.uint8)
    dx, dy = abs(x1 - x0), -abs(y1 - y0)
    sx, sy = (1 if x0 < x1 else -1), (1 if y0 < y1 else -1)
    err = dx + dy
    while True:
        canvas[y0, x0] = 255
        if x0 == x1 and y0 == y1:
            break
        e2 = 2 * err
        if e2 >= dy:
            err += dy
            x0 += sx
        if e2 <= dx:
            err += dx
            y0 += sy
    return canvas


@program(lambda rng: (rng.uniform(0, 1, size=(6, 2)), rng.uniform(0, 1, size=2)), smooth=0)
def verlet_cloth(p, wind):
    """A rope of points with fixed distances."""
    pos, prev = p.copy(), p.copy()
    links = [(i, i + 1) for i in range(5)]
    rest = [0.2] * 5
    for step in range(3):
        nxt = 2 * pos - prev + (np.array([0, -9.8]) + wind) * 0.01**2
        prev, pos = pos, nxt
        for _ in range(2):
            for (i, j), L in zip(links, rest):
                d = pos[j] - pos[i]
                dist = np.linalg.norm(d)
                corr = 0.5 * (dist - L) / dist * d
                if i != 0:
                    pos[i] += corr
                pos[j] -= corr
        pos[0] = p[0]
    return pos

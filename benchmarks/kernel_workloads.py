"""Programs that spend their time in large arrays or long loops, with letir's targets for each.

They are plain NumPy; ``np`` is the module of a package like NumPy, so that peers run the same code.
Programs with loops also take the package's own loops, and have a second form in plain NumPy.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy
from attrs import frozen

from benchmarks import models

_rng = numpy.random.default_rng


@frozen
class Workload:
    """A program and its ``targets``: the times for the value, and for value and gradient, as
    multiples of plain NumPy's time for the value; None if the program is not differentiated.

    ``make()`` gives the arguments. Derivatives are with respect to the first ``parameters``, of the
    sum of the result. ``in_numpy`` is the form of a program that takes the ``loops`` of a package.
    ``is_unrolled``: thousands of operations, for which some peers compile for minutes.
    """

    name: str
    function: Callable
    make: Callable[[], tuple]
    targets: tuple[float, float | None]
    parameters: int = 1
    in_numpy: Callable | None = None
    is_unrolled: bool = False

    def bound(self, np: Any, loops: Any) -> Callable:
        """The program on arrays of a package, with its loops."""
        if self.in_numpy is None:
            return partial(self.function, np)
        return partial(self.function, np, loops)

    def plain(self) -> Callable:
        """The program in plain NumPy."""
        return partial(self.in_numpy or self.function, numpy)


def normals(*shapes: tuple[int, ...], scale: float = 1.0) -> tuple:
    """Normally distributed arrays of these shapes."""
    rng = _rng(0)
    return tuple([scale * rng.normal(size=shape) for shape in shapes])


# ---- formulas and rows ----


def gelu(np, x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def pricing(np, spot, strike, years, volatility):
    """A price with the normal distribution approximated by a polynomial: 30 operations."""
    root = volatility * np.sqrt(years)
    first = (np.log(spot / strike) + (0.02 + volatility * volatility / 2) * years) / root
    discount = strike * np.exp(-0.02 * years)
    return spot * below(np, first) - discount * below(np, first - root)


def below(np, x):
    t = 1 / (1 + 0.2316419 * np.abs(x))
    tail = t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * -1.821255978)))
    part = 0.39894228 * np.exp(-0.5 * x * x) * tail
    return np.where(x > 0, 1 - part, part)


def layer_norm(np, x, scale, shift):
    mean = np.mean(x, axis=-1, keepdims=True)
    variance = np.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5) * scale + shift


def cross_entropy(np, x, labels):
    z = x - np.max(x, axis=-1, keepdims=True)
    chosen = z[np.arange(len(labels)), labels]
    return np.mean(np.log(np.sum(np.exp(z), axis=-1)) - chosen)


def rbf(np, x, y):
    return np.exp(-0.5 * np.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=-1))


def fractal(np, re, im):
    """The number of steps, at most 30, in which a point stays near 0."""
    x, y, steps = re * 0, im * 0, re * 0
    for _ in range(30):
        inside = x * x + y * y < 4.0
        x, y = np.where(inside, x * x - y * y + re, x), np.where(inside, 2 * x * y + im, y)
        steps = steps + inside
    return steps


def long_chain(np, x):
    """200 operations on one large array."""
    for _ in range(100):
        x = x * 1.0001 + 0.5
    return x


# ---- models ----


def mixture(d: int) -> tuple:
    """Arguments for a Gaussian mixture of 25 components on 1,000 points."""
    return normals((25,), (25, d), (25, d * (d + 1) // 2), (1000, d), scale=0.5)


def gmm(np, alphas, means, factors, x):
    """The log likelihood of a mixture with inverse Cholesky factors, without the prior."""
    n, d = x.shape
    lower = numpy.tri(d, k=-1, dtype=bool)
    places = numpy.zeros((d, d), int)
    places.T[lower.T] = numpy.arange(d * (d - 1) // 2)
    log_diagonal, entries = factors[:, :d], factors[:, d:]
    inner = np.where(lower, entries[:, places], 0.0)
    inner = inner + np.exp(log_diagonal)[:, None, :] * numpy.eye(d)
    apart = np.einsum("kij,nkj->nki", inner, x[:, None, :] - means)
    terms = alphas + np.sum(log_diagonal, axis=1) - 0.5 * np.sum(apart * apart, axis=2)
    top = np.max(terms, axis=1, keepdims=True)
    likelihood = np.sum(np.log(np.sum(np.exp(terms - top), axis=1)) + top[:, 0])
    return likelihood - n * np.log(np.sum(np.exp(alphas)))


def bundle(np, cameras, points, weights, camera_of, point_of, features):
    """Reprojection errors: Rodrigues' rotation, radial distortion, projection."""
    camera, point = cameras[camera_of], points[point_of]
    turn = camera[:, :3]
    square = np.sum(turn * turn, axis=1, keepdims=True)
    angle = np.sqrt(square)
    cosine, sine, axis = np.cos(angle), np.sin(angle), turn / angle
    moved = point - camera[:, 3:6]
    along = np.sum(axis * moved, axis=1, keepdims=True) * (1 - cosine)
    seen = moved * cosine + np.cross(axis, moved) * sine + axis * along
    plane = seen[:, :2] / seen[:, 2:]
    r = np.sum(plane * plane, axis=1, keepdims=True)
    bent = plane * (1 + camera[:, 9:10] * r + camera[:, 10:11] * r * r)
    shown = bent * camera[:, 6:7] + camera[:, 7:9]
    return weights[:, None] * (shown - features)


def bundle_arguments() -> tuple:
    n, m, p = 49, 7776, 31843
    cameras, points, weights, features = normals((n, 11), (m, 3), (p,), (p, 2))
    points[:, 2] += 10
    rng = _rng(1)
    return cameras, points, weights, rng.integers(0, n, p), rng.integers(0, m, p), features


def mlp(np, w1, b1, w2, b2, w3, b3, x):
    x = np.maximum(x @ w1 + b1, 0.0)
    x = np.maximum(x @ w2 + b2, 0.0)
    return x @ w3 + b3


def mlp_arguments() -> tuple:
    shapes = [(784, 512), (512,), (512, 512), (512,), (512, 10), (10,), (256, 784)]
    return normals(*shapes, scale=0.05)


def logistic(np, w, x, y):
    z = x @ w
    return np.mean(np.log(1 + np.exp(-np.abs(z))) + np.maximum(z, 0.0) - z * y)


def logistic_arguments() -> tuple:
    w, x, y = normals((100,), (100_000, 100), (100_000,), scale=0.1)
    return w, x, (y > 0).astype(float)


# ---- loops ----


def runge_kutta(np, state, steps=1000):
    """A pendulum with damping, by the classical method of fourth order."""
    for _ in range(steps):
        state = runge_kutta_step(np, state)
    return state


def runge_kutta_step(np, state, h=0.01):
    def slope(s):
        return np.stack([s[1], -np.sin(s[0]) - 0.1 * s[1]])

    a = slope(state)
    b = slope(state + 0.5 * h * a)
    c = slope(state + 0.5 * h * b)
    return state + h / 6 * (a + 2 * b + 2 * c + slope(state + h * c))


def runge_kutta_loop(np, loops, state, steps=1000):
    return loops.fori_loop(0, steps, lambda _, s: runge_kutta_step(np, s), state)


def rnn(np, w, u, b, xs):
    """The states of a recurrent network, added up."""
    state, total = b * 0, b * 0
    for t in range(len(xs)):
        state = np.tanh(np.dot(w, xs[t]) + np.dot(u, state) + b)
        total = total + state
    return total


def rnn_scan(np, loops, w, u, b, xs):
    def step(carry, x):
        state, total = carry
        state = np.tanh(np.dot(w, x) + np.dot(u, state) + b)
        return (state, total + state), state[0]

    (_, total), _ = loops.scan(step, (b * 0, b * 0), xs)
    return total


def rnn_arguments() -> tuple:
    return normals((32, 32), (32, 32), (32,), (1000, 32), scale=0.1)


def lstm(np, w1, u1, b1, w2, u2, b2, xs, ys):
    return models.lstm(np, [(w1, u1, b1), (w2, u2, b2)], xs, ys)


def lstm_arguments() -> tuple:
    weights, xs, ys = models.lstm_model(0).args
    return (*[array for layer in weights for array in layer], xs, ys)


def tiny(np, x, y):
    """1,000 operations on four numbers."""
    for _ in range(250):
        x = np.tanh(x) * y
        x = np.sin(x) + 0.5
    return x


def correlation(np, x, steps=200):
    """A sum over a buffer, element by element, in a buffer of results."""
    out = np.zeros(8)
    for i in range(8):
        for n in range(steps):
            out[i] += x[n] * x[n + i]
    return out


def cart_pole(np, state, forces):
    """A cart with a pole, 500 steps of Euler's method with given forces."""
    for force in forces:
        state = cart_pole_step(np, state, force)
    return state


def cart_pole_step(np, state, force):
    place, speed, angle, turn = state[0], state[1], state[2], state[3]
    sine, cosine = np.sin(angle), np.cos(angle)
    pushed = (force + 0.05 * turn**2 * sine) / 1.1
    tilt = (9.8 * sine - cosine * pushed) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
    pull = pushed - 0.05 * tilt * cosine / 1.1
    return np.stack(
        [place + 0.02 * speed, speed + 0.02 * pull, angle + 0.02 * turn, turn + 0.02 * tilt]
    )


def cart_pole_scan(np, loops, state, forces):
    end, _ = loops.scan(lambda s, f: (cart_pole_step(np, s, f), s[0]), state, forces)
    return end


def fluid(np, u, v, density):
    """Ten steps of a fluid on a 128 x 128 torus: diffusion, transport, projection."""
    for _ in range(10):
        u, v = [a + 0.1 * spread(np, a) for a in (u, v)]
        rate = np.roll(u, -1, 0) - np.roll(u, 1, 0) + np.roll(v, -1, 1) - np.roll(v, 1, 1)
        p = rate * 0
        for _ in range(10):
            p = (spread(np, p) + 4 * p - 0.5 * rate) / 4
        u = u - 0.5 * (np.roll(p, -1, 0) - np.roll(p, 1, 0))
        v = v - 0.5 * (np.roll(p, -1, 1) - np.roll(p, 1, 1))
        along = u * (np.roll(density, -1, 0) - np.roll(density, 1, 0))
        across = v * (np.roll(density, -1, 1) - np.roll(density, 1, 1))
        density = density - 0.05 * (along + across)
    return density


def spread(np, a):
    near = np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1)
    return near - 4 * a


def turned(np, turn, shift, points):
    """Points after a rotation and a translation."""
    return points @ turn.T + shift


def covariances(np, step, noise, before):
    """The predicted covariances of many Kalman filters of one model."""
    return step @ before @ step.T + noise


def colours(np, matrix, image):
    """The pixels of an image in another colour space."""
    return np.dot(image, matrix.T)


def plane() -> tuple:
    return tuple(numpy.meshgrid(numpy.linspace(-2, 1, 512), numpy.linspace(-1.5, 1.5, 512)))


def prices() -> tuple:
    return tuple(_rng(0).uniform(0.5, 2, size=(4, 1_000_000)))


def labelled() -> tuple:
    return (*normals((4096, 1000)), _rng(1).integers(0, 1000, 4096))


_CART = (numpy.array([0.0, 0.0, 0.1, 0.0]), *normals((500,)))
_RK4 = (numpy.array([1.0, 0.0]),)
WORKLOADS = (
    Workload("GELU, 10^6", gelu, partial(normals, (1_000_000,)), (0.25, 0.35)),
    Workload("pricing formula, 10^6, 30 operations", pricing, prices, (0.16, 0.5), 4),
    Workload(
        "layer norm, 4096 x 1000",
        layer_norm,
        partial(normals, (4096, 1000), (1000,), (1000,)),
        (0.25, 0.4),
        3,
    ),
    Workload("cross entropy, 4096 x 1000", cross_entropy, labelled, (0.4, 0.55)),
    Workload("RBF kernel, 2000 x 2000", rbf, partial(normals, (2000, 3), (2000, 3)), (0.3, 0.7), 2),
    Workload("Gaussian mixture, d=10", gmm, partial(mixture, 10), (0.17, 0.5), 3),
    Workload("Gaussian mixture, d=64", gmm, partial(mixture, 64), (0.3, 0.9), 3),
    Workload("bundle adjustment", bundle, bundle_arguments, (0.3, 1.2), 3),
    Workload("MLP 784-512-512-10, batch 256", mlp, mlp_arguments, (0.9, 2.1), 6),
    Workload("logistic regression, 10^5 x 100", logistic, logistic_arguments, (0.78, 1.6)),
    Workload("fractal, 512 x 512, 30 steps", fractal, plane, (0.06, None)),
    Workload("RK4, 1,000 steps unrolled", runge_kutta, lambda: _RK4, (0.3, 1.0), is_unrolled=True),
    Workload(
        "RK4 as `fori_loop`", runge_kutta_loop, lambda: _RK4, (0.028, 0.12), in_numpy=runge_kutta
    ),
    Workload(
        "RNN, width 32, 1,000 steps unrolled", rnn, rnn_arguments, (0.6, 1.5), 4, is_unrolled=True
    ),
    Workload("RNN as `scan`", rnn_scan, rnn_arguments, (0.15, 0.4), 4, in_numpy=rnn),
    Workload(
        "LSTM, 2 layers, width 128, unrolled", lstm, lstm_arguments, (0.7, 2.0), 6, is_unrolled=True
    ),
    Workload(
        "1,000 operations on 4 elements",
        tiny,
        partial(normals, (4,), (4,)),
        (0.08, 0.15),
        2,
        is_unrolled=True,
    ),
    Workload("200 operations on 64 MiB", long_chain, partial(normals, (8 << 20,)), (0.1, None)),
    Workload(
        "scalar loop over a buffer",
        correlation,
        partial(normals, (256,)),
        (0.05, None),
        is_unrolled=True,
    ),
    Workload(
        "points turned, 10^5 x 3",
        turned,
        partial(normals, (3, 3), (3,), (100_000, 3)),
        (0.25, 1.0),
        2,
    ),
    Workload(
        "Kalman filters, 10^4 of 4 states",
        covariances,
        partial(normals, (4, 4), (4, 4), (10_000, 4, 4)),
        (0.1, 0.5),
        2,
    ),
    Workload(
        "colours of 300 x 300 pixels",
        colours,
        partial(normals, (3, 3), (300, 300, 3)),
        (0.1, 0.7),
    ),
    Workload("fluid solver, 128 x 128", fluid, partial(normals, *[(128, 128)] * 3), (0.5, None)),
    Workload("cart pole, unrolled", cart_pole, lambda: _CART, (0.1, 0.3), is_unrolled=True),
    Workload("cart pole as `scan`", cart_pole_scan, lambda: _CART, (0.1, 0.3), in_numpy=cart_pole),
)

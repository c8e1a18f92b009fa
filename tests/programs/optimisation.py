"""Test functions of optimisation and the methods that minimise them."""

import math

import numpy as np

from tests.programs.table import program


@program(lambda rng: (rng.normal(size=6),), smooth=0)
def extended_powell(x):
    """Residuals of Powell's singular function in blocks of four, cut at six."""
    n = len(x) // 2 * 2
    fvec = np.zeros(n)
    for i in range(0, n - 3, 4):
        fvec[i] = x[i] + 10 * x[i + 1]
        fvec[i + 1] = math.sqrt(5) * (x[i + 2] - x[i + 3])
        fvec[i + 2] = (x[i + 1] - 2 * x[i + 2]) ** 2
        fvec[i + 3] = math.sqrt(10) * (x[i] - x[i + 3]) ** 2
    return np.sum(fvec**2)


@program(lambda rng: (rng.normal(size=3),), smooth=0)
def helical_valley(x):
    """The helical valley with its angle by cases."""
    theta = math.atan2(x[1], x[0]) / (2 * math.pi)
    r = math.sqrt(x[0] ** 2 + x[1] ** 2)
    f = np.array([10 * (x[2] - 10 * theta), 10 * (r - 1), x[2]])
    return f @ f


@program(lambda rng: (rng.uniform(0.5, 1.5, size=3),), smooth=0)
def bard(x):
    """Bard's fifteen residuals from a table of measurements."""
    y = [0.14, 0.18, 0.22, 0.25, 0.29, 0.32, 0.35, 0.39, 0.37, 0.58, 0.73, 0.96, 1.34, 2.1, 4.39]
    fvec = np.empty(15)
    for i in range(15):
        u = i + 1
        v = 15 - i
        w = min(u, v)
        fvec[i] = y[i] - (x[0] + u / (v * x[1] + w * x[2]))
    return fvec


@program(lambda rng: (rng.normal(size=5),), smooth=0)
def trigonometric(x):
    """The trigonometric function with its Jacobian filled in."""
    n = x.size
    total = np.sum(np.cos(x))
    f = np.zeros(n)
    J = np.zeros((n, n))
    for i in range(n):
        f[i] = n - total + (i + 1) * (1 - math.cos(x[i])) - math.sin(x[i])
        for j in range(n):
            J[i, j] = math.sin(x[j])
        J[i, i] += (i + 1) * np.sin(x[i]) - np.cos(x[i])
    return 2 * J.T @ f


@program(lambda rng: (rng.normal(size=6),), smooth=0)
def rosenbrock_newton(x):
    """One damped Newton step on Rosenbrock's function with its derivatives by hand."""
    n = len(x)
    g = np.zeros_like(x)
    H = np.zeros((n, n))
    for i in range(n - 1):
        t = x[i + 1] - x[i] ** 2
        g[i] += -400 * x[i] * t - 2 * (1 - x[i])
        g[i + 1] += 200 * t
        H[i, i] += -400 * (x[i + 1] - 3 * x[i] ** 2) + 2
        H[i + 1, i + 1] += 200
        H[i, i + 1] = H[i + 1, i] = -400 * x[i]
    return x - np.linalg.solve(H + 1000 * np.eye(n), g)


class Adam:
    """Adam's moments for a dictionary of parameters."""

    def __init__(self, rate=0.05, b1=0.9, b2=0.999):
        self.rate, self.b1, self.b2 = rate, b1, b2
        self.m, self.v, self.t = {}, {}, 0

    def step(self, params, grads):
        """Update the parameters in place."""
        self.t += 1
        for key in params:
            if key not in self.m:
                self.m[key] = np.zeros_like(params[key])
                self.v[key] = np.zeros_like(params[key])
            self.m[key] = self.b1 * self.m[key] + (1 - self.b1) * grads[key]
            self.v[key] = self.b2 * self.v[key] + (1 - self.b2) * grads[key] ** 2
            m = self.m[key] / (1 - self.b1**self.t)
            v = self.v[key] / (1 - self.b2**self.t)
            params[key] -= self.rate * m / (np.sqrt(v) + 1e-8)


@program(lambda rng: (rng.normal(size=(8, 2)), rng.normal(size=8)), smooth=0)
def adam_fit(X, y):
    """Ten steps of Adam on least squares; the parameters and the losses."""
    params = {"w": np.zeros(2), "b": np.array(0.0)}
    optimiser = Adam()
    losses = []
    for _ in range(10):
        error = X @ params["w"] + params["b"] - y
        losses.append(float(np.mean(error**2)))
        optimiser.step(params, {"w": 2 * X.T @ error / len(y), "b": 2 * error.mean()})
    return params, losses


@program(lambda rng: (rng.normal(size=2) + 1, rng.uniform(1, 2)), branches=True)
def nelder_mead(start, scale):
    """Five moves of a simplex on a quadratic."""

    def f(p):
        return scale * (p[0] - 1) ** 2 + (p[1] + 0.5) ** 2

    simplex = [start] + [start + 0.5 * e for e in np.eye(2)]
    for _ in range(5):
        simplex.sort(key=f)
        centre = (simplex[0] + simplex[1]) / 2
        reflected = 2 * centre - simplex[-1]
        if f(reflected) < f(simplex[0]):
            expanded = 3 * centre - 2 * simplex[-1]
            simplex[-1] = expanded if f(expanded) < f(reflected) else reflected
        elif f(reflected) < f(simplex[1]):
            simplex[-1] = reflected
        else:
            simplex[-1] = (centre + simplex[-1]) / 2
    return np.array(simplex)


@program(lambda rng: (rng.normal(size=(6, 6)), rng.normal(size=6)), smooth=1)
def conjugate_gradients(A, b):
    """Conjugate gradients with a fixed number of steps and a log of residuals."""
    A = A @ A.T + 6 * np.eye(6)
    x = np.zeros(b.shape)
    r = b - A @ x
    p = r.copy()
    norms = []
    for _ in range(4):
        Ap = A.dot(p)
        alpha = r.dot(r) / p.dot(Ap)
        x += alpha * p
        new = r - alpha * Ap
        p = new + (new @ new) / (r @ r) * p
        r = new
        norms.append(np.linalg.norm(r))
    return x, norms


@program(lambda rng: (rng.normal(size=5) + 2, rng.uniform(0.1, 0.5)), branches=True)
def bfgs(x0, tolerance):
    """A quasi-Newton method with backtracking on a convex function."""

    def objective(x):
        return np.sum(np.log(np.cosh(x))) + 0.1 * x @ x

    def gradient(x):
        return np.tanh(x) + 0.2 * x

    x, B = x0.copy(), np.eye(len(x0))
    g = gradient(x)
    for _ in range(3):
        d = -B @ g
        t = 1.0
        while objective(x + t * d) > objective(x) + 1e-4 * t * g @ d:
            t *= 0.5
        s = t * d
        x = x + s
        new = gradient(x)
        yv = new - g
        rho = 1.0 / yv.dot(s)
        V = np.eye(len(x)) - rho * np.outer(s, yv)
        B = V @ B @ V.T + rho * np.outer(s, s)
        g = new
        if np.linalg.norm(g) < tolerance:
            break
    return x, B


@program(lambda rng: (rng.uniform(1.5, 2.5),), smooth=0, branches=True)
def bisection(target):
    """A root of t^3 - t - target by halving."""
    low, high = 0.0, 3.0
    for _ in range(12):
        middle = (low + high) / 2
        if middle**3 - middle - target > 0:
            high = middle
        else:
            low = middle
    return middle - (middle**3 - middle - target) / (3 * middle**2 - 1)


@program(lambda rng: (rng.normal(size=(8, 3)), rng.normal(size=8), 0.3), branches=True)
def lasso(X, y, penalty):
    """Coordinate descent with soft thresholds."""

    def soft(z, t):
        return np.sign(z) * max(abs(z) - t, 0.0)

    beta = np.zeros(X.shape[1])
    for _ in range(3):
        for j in range(X.shape[1]):
            partial = y - X @ beta + X[:, j] * beta[j]
            beta[j] = soft(X[:, j] @ partial / len(y), penalty) / (X[:, j] @ X[:, j] / len(y))
    return beta

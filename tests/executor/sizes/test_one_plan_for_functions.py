"""[F1] Functions of several statements, with sizes in arithmetic: one plan serves all sizes.

A function runs at two sizes, which gives it a plan for fixed and one for symbolic sizes; further
sizes compile nothing, except 0 and 1, which have plans of their own.
"""

import numpy as np
import pytest

import letir as lt
from tests.each_sample import in_one_test
from tests.executor.sizes.sized_arguments import check_sizes

FUNCTIONS = {}


def takes(kinds):
    """Add a function to the table, with the kinds of its arguments."""

    def add(function):
        FUNCTIONS[function.__name__] = kinds, function
        return function

    return add


@takes("fours")
def reshape_m1(x):
    n = x.shape[0]
    return x.reshape(n * 2, -1) if n else x


@takes("vector")
def diff_buffer(x):
    out = np.zeros_like(x)
    out[1:] = x[1:] - x[:-1]
    return out


@takes("vector")
def gradient_central(u):
    g = np.zeros(len(u))
    g[1:-1] = (u[2:] - u[:-2]) / 2
    return g


@takes("rows")
def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@takes("rows")
def attention(x):
    n, d = x.shape
    s = x @ x.T / np.sqrt(d)
    s = s + np.triu(np.full((n, n), -1000000000.0), 1)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ x


@takes("vector")
def autocov(x):
    n = len(x)
    m = x - x.mean()
    return np.correlate(m, m, "full")[n - 1 :] / n


@takes("vector")
def meshgrid(x):
    X, Y = np.meshgrid(x, np.arange(len(x)))
    return X * Y


@takes("vector")
def laplacian(x):
    n = len(x)
    L = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    return L @ x


@takes("rows labels")
def xent_onehot(p, y):
    t = np.zeros((len(y), 3))
    t[np.arange(len(y)), y] = 1
    return (t * p).sum() / len(y)


@takes("vector square")
def gausslik(x, S):
    S = S @ S.T
    n = len(x)
    return -0.5 * (x @ np.linalg.solve(S, x) + np.linalg.slogdet(S)[1] + n * np.log(2 * np.pi))


@takes("square")
def power_iter(a):
    v = np.ones(a.shape[0]) / np.sqrt(a.shape[0])
    for _ in range(5):
        v = a @ v
        v = v / np.linalg.norm(v)
    return v


@takes("vector")
def ewma(x):
    w = 0.9 ** np.arange(len(x))[::-1]
    return (w * x).sum() / w.sum()


@takes("vector")
def poisson_kernel(x):
    n = len(x)
    i, j = np.indices((n, n))
    return np.exp(-np.abs(i - j) / n) @ x


@takes("vector")
def heat(u):
    u = u.copy()
    for _ in range(5):
        u[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return u


@takes("vector")
def pairs(x):
    i, j = np.triu_indices(len(x), k=1)
    return np.abs(x[i] - x[j]).sum()


@takes("rows")
def gaussian_kernel(x):
    K = np.exp(-((x[:, None] - x) ** 2).sum(-1) / 2)
    n = len(x)
    H = np.eye(n) - np.ones((n, n)) / n
    return H @ K @ H


@takes("labels vector")
def add_at(i, v):
    out = np.zeros(3)
    np.add.at(out, i, v)
    return out


@takes("square")
def fill_diag(a):
    b = a.copy()
    np.fill_diagonal(b, 0)
    return b


@takes("square")
def img2col(a):
    h, w = a.shape
    return np.stack([a[i : h - 2 + i, j : w - 2 + j] for i in range(3) for j in range(3)]).sum(0)


@takes("vector")
def circulant(x):
    n = len(x)
    i = np.arange(n)
    return x[(i[:, None] - i) % n]


@takes("rows")
def embed_pos(x):
    n, d = x.shape
    pos = np.arange(n)[:, None]
    i = np.arange(d)[None]
    return x + np.sin(pos / 10000 ** (i / d))


@takes("rows")
def causal(x):
    n = x.shape[0]
    s = x @ x.T
    m = np.tril(np.ones((n, n)))
    s = np.where(m == 0, -10000000000.0, s)
    e = np.exp(s - s.max(1)[:, None])
    return e / e.sum(1)[:, None] @ x


@takes("fours")
def mha(x):
    n, d = x.shape
    q = x.reshape(n, 2, d // 2).transpose(1, 0, 2)
    s = q @ q.transpose(0, 2, 1) / np.sqrt(d // 2)
    e = np.exp(s - s.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)
    return (p @ q).transpose(1, 0, 2).reshape(n, d)


@takes("rows vector")
def mlp_grad(X, y):
    w = np.ones((3, 4)) * 0.1

    def loss(w):
        h = np.tanh(X @ w)
        return ((h.sum(1) - y) ** 2).mean()

    return lt.grad(loss)(w)


@takes("rows targets")
def newton_logreg(X, y):
    w = np.zeros(3)
    for _ in range(3):
        p = 1 / (1 + np.exp(-X @ w))
        H = X.T @ (X * (p * (1 - p))[:, None]) + 0.01 * np.eye(3)
        w = w - np.linalg.solve(H, X.T @ (p - y))
    return w


@takes("rows")
def pca_svd(X):
    Xc = X - X.mean(axis=0)
    _, _, Vt = np.linalg.svd(Xc, full_matrices=False)
    return np.abs(Xc @ Vt.T[:, :1])


@takes("vector vector")
def gp_nll(x, y):
    K = np.exp(-0.5 * (x[:, None] - x[None, :]) ** 2) + 0.1 * np.eye(x.shape[0])
    L = np.linalg.cholesky(K)
    a = np.linalg.solve(L, y)
    return 0.5 * a @ a + np.log(np.diag(L)).sum() + 0.5 * len(x) * np.log(2 * np.pi)


@takes("vector vector")
def gp_grad(x, y):

    def nll(length):
        K = np.exp(-0.5 * (x[:, None] - x[None, :]) ** 2 / length**2) + 0.1 * np.eye(x.shape[0])
        return y @ np.linalg.solve(K, y) + np.linalg.slogdet(K)[1]

    return lt.grad(nll)(1.5)


@takes("vector")
def tridiag(x):
    n = len(x)
    A = (
        np.diag(np.full(n, 2.0))
        + np.diag(np.full(n - 1, -1.0), 1)
        + np.diag(np.full(n - 1, -1.0), -1)
        if n > 1
        else np.array([[2.0]]) * np.ones((n, n))
    )
    return np.linalg.solve(A, x)


@takes("square")
def poisson2d(u):
    u = u.copy()
    for _ in range(3):
        u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
    return u


@takes("rows")
def random_walk_msd(x):
    n = len(x)
    return ((x[n // 2 :] - x[: n - n // 2]) ** 2).sum(1).mean()


@takes("vector")
def periodogram(x):
    n = len(x)
    w = np.hanning(n)
    f = np.fft.rfft(x * w)
    return np.abs(f) ** 2 / (w**2).sum() if n > 2 else f.real


@takes("vector")
def xcorr_fft(x):
    n = len(x)
    f = np.fft.fft(x, n=2 * n)
    return np.fft.ifft(f * np.conj(f))[:n].real / n


@takes("vector")
def lowpass(x):
    F = np.fft.fft(x)
    f = np.fft.fftfreq(x.size)
    F[np.abs(f) > 0.25] = 0
    return np.fft.ifft(F).real


@takes("vector other")
def spearman(x, y):
    n = len(x)
    rx = np.argsort(np.argsort(x))
    ry = np.argsort(np.argsort(y))
    return 1 - 6 * ((rx - ry) ** 2).sum() / (n * (n**2 - 1)) if n > 1 else 1.0


@takes("labels labels2")
def confusion(t, p):
    c = np.zeros((3, 3))
    np.add.at(c, (t, p), 1)
    return c / len(t)


@takes("pairs")
def polygon_area(p):
    x, y = (p[:, 0], p[:, 1])
    return 0.5 * np.abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))


@takes("rows vector")
def nbody(x, m):
    d = x[None] - x[:, None]
    r = np.sqrt((d**2).sum(-1) + 0.1)
    return (d * (m / r**3)[:, :, None] if False else d * (m[None] / r**3)[..., None]).sum(1)


@takes("rows")
def lj(x):
    n = len(x)
    i, j = np.triu_indices(n, 1)
    r2 = ((x[i] - x[j]) ** 2).sum(1) + 0.1
    return (4 * (r2 ** (-6) - r2 ** (-3))).sum()


@takes("rows")
def lj_grad(x):

    def e(x):
        i, j = np.triu_indices(len(x), 1)
        r2 = ((x[i] - x[j]) ** 2).sum(1) + 0.1
        return (4 * (r2 ** (-2) - r2 ** (-1))).sum()

    return lt.grad(e)(x)


@takes("vector")
def finite_diff_mat(x):
    n = len(x)
    D = np.zeros((n, n))
    i = np.arange(n - 1) if n else np.arange(0)
    D[i, i] = -1
    D[i, i + 1] = 1
    return D @ x


@takes("rows")
def portfolio(R):
    m = R.mean(0)
    C = np.cov(R, rowvar=False)
    w = np.linalg.solve(C + np.eye(3), m)
    return w / w.sum()


@takes("square")
def sobel(a):
    p = np.pad(a, 1, mode="edge")
    gx = p[1:-1, 2:] - p[1:-1, :-2]
    gy = p[2:, 1:-1] - p[:-2, 1:-1]
    return np.hypot(gx, gy)


@takes("vector")
def conv1d_stride(x):
    w = np.lib.stride_tricks.sliding_window_view(x, 3)[::2]
    return w @ np.array([1.0, 2, 1])


@takes("vector")
def em_gmm(x):
    mu = np.array([0.5, 1.2])
    r = np.exp(-((x[:, None] - mu) ** 2))
    r /= r.sum(1, keepdims=True)
    N = r.sum(0)
    return ((r * x[:, None]).sum(0) / N, N / len(x))


@in_one_test
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_plan_serves_all_sizes(name):
    kinds, function = FUNCTIONS[name]

    check_sizes(function, kinds)

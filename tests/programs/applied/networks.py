"""Networks written as classes, their optimisers, and embeddings."""

import math
from collections import OrderedDict

import numpy as np

from tests.programs.table import program


class Module:
    def __init__(self):
        self._params = OrderedDict()

    def __setattr__(self, k, v):
        if isinstance(v, np.ndarray):
            self._params[k] = v
        object.__setattr__(self, k, v)

    def parameters(self):
        return list(self._params.values())


class GRU(Module):
    def __init__(self, W, U, b):
        super().__init__()
        self.W, self.U, self.b = W, U, b

    def __call__(self, xs):
        n = self.U.shape[0]
        h = np.zeros(n)

        def sig(v):
            return 1 / (1 + np.exp(-v))

        hs = []
        for x in xs:
            g = x @ self.W + self.b
            u = h @ self.U
            z, r = sig(g[:n] + u[:n]), sig(g[n : 2 * n] + u[n : 2 * n])
            c = np.tanh(g[2 * n :] + r * u[2 * n :])
            h = (1 - z) * h + z * c
            hs.append(h)
        return np.stack(hs), h


@program(
    lambda rng: (
        rng.normal(size=(4, 3)),
        rng.normal(size=(3, 6)),
        rng.normal(size=(2, 6)),
        np.zeros(6),
    ),
    smooth=1,
)
def gru(xs, W, U, b):
    """A recurrent network as a module."""
    m = GRU(W, U, b)
    hs, h = m(xs)
    return hs, h, sum(p.size for p in m.parameters())


@program(
    lambda rng: (
        rng.normal(size=(2, 4)),
        rng.normal(size=(4, 6)),
        rng.normal(size=(3, 4)),
        rng.normal(size=(2, 3)),
    ),
    smooth=1,
)
def vae_loss(x, We, Wd, eps):
    """The loss of a variational autoencoder."""
    h = np.tanh(x @ We)
    mu, logvar = np.split(h, 2, axis=1)
    z = mu + np.exp(0.5 * logvar) * eps
    xhat = 1 / (1 + np.exp(-(z @ Wd)))
    target = (x > 0).astype(float)
    bce = -np.sum(target * np.log(xhat + 1e-9) + (1 - target) * np.log(1 - xhat + 1e-9), axis=1)
    kl = -0.5 * np.sum(1 + logvar - mu**2 - np.exp(logvar), axis=1)
    return (bce + kl).mean(), {"bce": bce.mean().item(), "kl": float(kl.mean())}


class Layer:
    def forward(self, x):
        raise NotImplementedError


class Dense(Layer):
    def __init__(self, rng, nin, nout):
        self.W, self.b = rng.standard_normal((nin, nout)) * np.sqrt(2.0 / nin), np.zeros(nout)

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, g):
        self.dW, self.db = self.x.T @ g, g.sum(axis=0)
        return g @ self.W.T


class ReLU(Layer):
    def forward(self, x):
        self.mask = x > 0
        return np.where(self.mask, x, 0)

    def backward(self, g):
        return g * self.mask


class Adam:
    def __init__(self, params, lr=1e-2, betas=(0.9, 0.999)):
        self.params, self.lr, self.betas, self.t = params, lr, betas, 0
        self.m = [np.zeros_like(p) for p in params]
        self.v = [np.zeros_like(p) for p in params]

    def step(self, grads):
        self.t += 1
        b1, b2 = self.betas
        for i, (p, g) in enumerate(zip(self.params, grads)):
            self.m[i] = b1 * self.m[i] + (1 - b1) * g
            self.v[i] = b2 * self.v[i] + (1 - b2) * g**2
            mh, vh = self.m[i] / (1 - b1**self.t), self.v[i] / (1 - b2**self.t)
            p -= self.lr * mh / (np.sqrt(vh) + 1e-8)  # noqa: PLW2901  in place


@program(
    lambda rng: (rng.normal(size=(6, 3)), rng.integers(0, 2, 6), int(rng.integers(9)), 0.05),
    smooth=0,
    branches=True,
)
def mlp_training(X, y, seed, lr):
    """Layers, Adam and three epochs."""
    rng = np.random.default_rng(seed)
    net = [Dense(rng, 3, 4), ReLU(), Dense(rng, 4, 2)]
    dense = [l for l in net if hasattr(l, "W")]
    opt = Adam([p for l in dense for p in (l.W, l.b)], lr=lr)
    losses = []
    for epoch in range(3):
        out = X
        for l in net:
            out = l.forward(out)
        e = np.exp(out - out.max(axis=1, keepdims=True))
        p = e / e.sum(axis=1, keepdims=True)
        losses.append(-np.log(p[np.arange(len(y)), y]).mean())
        g = p.copy()
        g[range(len(y)), y] -= 1
        g /= len(y)
        for l in reversed(net):
            g = l.backward(g)
        opt.step([q for l in dense for q in (l.dW, l.db)])
        if epoch % 2 == 0:
            print("epoch %d loss %.4f" % (epoch, losses[-1]))  # noqa: UP031
    return losses, net[0].W, opt.t


class Value:
    def __init__(self, data, children=(), op=""):
        self.data, self.grad, self._prev, self._op, self._backward = (
            data,
            0.0,
            set(children),
            op,
            lambda: None,
        )

    def __add__(s, o):
        o = o if isinstance(o, Value) else Value(o)
        out = Value(s.data + o.data, (s, o), "+")

        def _b():
            s.grad += out.grad
            o.grad += out.grad

        out._backward = _b
        return out

    def __mul__(s, o):
        o = o if isinstance(o, Value) else Value(o)
        out = Value(s.data * o.data, (s, o), "*")

        def _b():
            s.grad += o.data * out.grad
            o.grad += s.data * out.grad

        out._backward = _b
        return out

    def relu(s):
        out = Value(0 if s.data < 0 else s.data, (s,), "relu")

        def _b():
            s.grad += (out.data > 0) * out.grad

        out._backward = _b
        return out

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(s):
        return s * -1

    def __sub__(s, o):
        return s + (-o)

    def backward(self):
        topo, seen = [], set()

        def build(v):
            if v not in seen:
                seen.add(v)
                for c in v._prev:
                    build(c)
                topo.append(v)

        build(self)
        self.grad = 1.0
        for v in reversed(topo):
            v._backward()

    def __repr__(self):
        return f"Value(data={self.data}, grad={self.grad})"


@program(lambda rng: (rng.normal(size=3).tolist(), [1.0, -2.0, 0.5]), smooth=0, branches=True)
def micrograd(ws, xs):
    """A scalar engine of gradients."""
    w = [Value(v) for v in ws]
    act = sum((wi * xi for wi, xi in zip(w, xs)), Value(0.1)).relu()
    loss = (act - 1.0) * (act - 1.0)
    loss.backward()
    return loss.data, [v.grad for v in w]


@program(lambda rng: (rng.normal(size=(5, 4)), rng.normal(size=(3, 4, 4)) * 0.5), smooth=1)
def causal_attention(x, W):
    """Masked attention of two heads."""
    q, k, v = (x @ w for w in W)
    q, k, v = (t.reshape(5, 2, 2).transpose(1, 0, 2) for t in (q, k, v))
    s = np.einsum("htd,hsd->hts", q, k) / math.sqrt(2)
    s[:, np.triu(np.ones((5, 5), bool), 1)] = -np.inf
    s -= s.max(-1, keepdims=True)
    p = np.exp(s)
    p /= p.sum(-1, keepdims=True)
    return (p @ v).transpose(1, 0, 2).reshape(5, 4)


def rotary(x, base=10000.0):
    T, d = x.shape
    inv = 1.0 / base ** (np.arange(0, d, 2) / d)
    ang = np.outer(np.arange(T), inv)
    out = np.empty_like(x)
    out[:, ::2] = x[:, ::2] * np.cos(ang) - x[:, 1::2] * np.sin(ang)
    out[:, 1::2] = x[:, ::2] * np.sin(ang) + x[:, 1::2] * np.cos(ang)
    return out


@program(lambda rng: (rng.normal(size=(4, 4)).astype(np.float32),))
def rotary32(x):
    """Rotary positions in single precision."""
    return rotary(x), x.dtype == np.float32, rotary(x).dtype.name


@program(
    lambda rng: (
        rng.normal(size=(20, 2)),
        np.where(rng.normal(size=20) > 0, 1, -1),
        int(rng.integers(9)),
    ),
    smooth=0,
    branches=True,
)
def svm_pegasos(X, y, seed):
    """A support vector machine by stochastic descent."""
    rng = np.random.default_rng(seed)
    w, lam = np.zeros(2), 0.1
    for t in range(1, 15):
        i = rng.integers(len(X))
        eta = 1 / (lam * t)
        if y[i] * (w @ X[i]) < 1:
            w = (1 - eta * lam) * w + eta * y[i] * X[i]
        else:
            w = (1 - eta * lam) * w
        n = np.linalg.norm(w)
        if n > 1 / np.sqrt(lam):
            w *= 1 / np.sqrt(lam) / n
    return w, np.sign(X @ w).astype(int), (np.sign(X @ w) == y).mean()


class Stump:
    __slots__ = ["feature", "threshold", "polarity", "alpha"]

    def predict(self, X):
        out = np.ones(len(X))
        col = X[:, self.feature]
        out[col < self.threshold if self.polarity == 1 else col > self.threshold] = -1
        return out


@program(lambda rng: (rng.normal(size=(8, 2)), rng.choice([-1.0, 1.0], size=8)), branches=True)
def adaboost(X, y):
    """Boosted stumps with slots."""
    n, m = X.shape
    w = np.full(n, 1 / n)
    clfs = []
    for _ in range(2):
        clf, min_err = Stump(), float("inf")
        for f in range(m):
            for th in np.unique(X[:, f]):
                p, pred = 1, np.ones(n)
                pred[X[:, f] < th] = -1
                err = w[pred != y].sum()
                if err > 0.5:
                    err, p = 1 - err, -1
                if err < min_err:
                    clf.polarity, clf.threshold, clf.feature, min_err = p, th, f, err
        clf.alpha = 0.5 * np.log((1 - min_err + 1e-10) / (min_err + 1e-10))
        w *= np.exp(-clf.alpha * y * clf.predict(X))
        w /= w.sum()
        clfs.append(clf)
    return np.sign(sum(c.alpha * c.predict(X) for c in clfs)), [c.alpha for c in clfs], w


class Tree:
    def __init__(self, depth=2):
        self.depth = depth

    def fit(self, X, y):
        self.root = self._grow(X, y, 0)
        return self

    def _grow(self, X, y, d):
        if d == self.depth or len(y) < 2 or np.ptp(y) == 0:
            return {"leaf": y.mean()}
        best = (np.inf,)
        for j in range(X.shape[1]):
            xs = np.sort(X[:, j])
            for t in (xs[:-1] + xs[1:]) / 2:
                m = X[:, j] <= t
                if m.all() or not m.any():
                    continue
                sse = y[m].var() * m.sum() + y[~m].var() * (~m).sum()
                if sse < best[0]:
                    best = (sse, j, t, m)
        if len(best) == 1:
            return {"leaf": y.mean()}
        _, j, t, m = best
        return {
            "j": j,
            "t": t,
            "l": self._grow(X[m], y[m], d + 1),
            "r": self._grow(X[~m], y[~m], d + 1),
        }

    def predict(self, X):
        def walk(n, x):
            while "leaf" not in n:
                n = n["l"] if x[n["j"]] <= n["t"] else n["r"]
            return n["leaf"]

        return np.array([walk(self.root, x) for x in X])


@program(lambda rng: (rng.normal(size=(6, 2)), rng.normal(size=6)), smooth=1, branches=True)
def gradient_boosting(X, y):
    """Boosted trees of dicts."""
    pred = np.full(len(y), y.mean())
    for _ in range(2):
        pred = pred + 0.5 * Tree(1).fit(X, y - pred).predict(X)
    return pred, ((y - pred) ** 2).mean()


@program(lambda rng: (rng.normal(size=(5, 5)), int(rng.integers(9))), smooth=0, branches=True)
def tsne_step(D, seed):
    """Steps of t-SNE."""
    D = np.square(D[:, None] - D[None]).sum(-1)
    P = np.exp(-D / 2)
    np.fill_diagonal(P, 0)
    P /= P.sum(axis=1)[:, None]
    P = (P + P.T) / (2 * len(P))
    P = np.maximum(P, 1e-12)
    Y = np.random.RandomState(seed).randn(5, 2) * 1e-1
    V = np.zeros_like(Y)
    for it in range(3):
        num = 1 / (1 + np.sum((Y[:, None] - Y[None]) ** 2, axis=-1))
        num[range(5), range(5)] = 0
        Q = np.maximum(num / num.sum(), 1e-12)
        PQ = (P - Q) * num
        grad = 4 * (np.diag(PQ.sum(1)) - PQ) @ Y
        V = 0.5 * V - 10 * grad
        Y += V
        Y -= Y.mean(0)
    return Y, np.sum(P * np.log(P / Q))


@program(lambda rng: (rng.uniform(0.1, 1, size=(4, 5)),), smooth=0)
def nmf(V):
    """A factorisation until it hardly improves."""
    rng = np.random.RandomState(1)
    W, H = rng.rand(4, 2), rng.rand(2, 5)
    errs = []
    for i in range(4):
        H *= (W.T @ V) / (W.T @ W @ H + 1e-9)
        W *= (V @ H.T) / (W @ H @ H.T + 1e-9)
        errs.append(np.linalg.norm(V - W @ H, "fro"))
        if i and errs[-2] - errs[-1] < 1e-4 * errs[0]:
            break
    return W, H, errs


@program(
    lambda rng: (
        rng.dirichlet(np.ones(2), size=2),
        rng.dirichlet(np.ones(3), size=2),
        rng.integers(0, 3, size=6),
    ),
    smooth=1,
    branches=True,
)
def baum_welch(A, B, obs):
    """Two steps of Baum and Welch."""
    pi = np.array([0.6, 0.4])
    A, B = A.copy(), B.copy()
    for _ in range(2):
        T = len(obs)
        alpha, beta, c = np.zeros((T, 2)), np.zeros((T, 2)), np.zeros(T)
        for t, o in enumerate(obs):
            alpha[t] = (pi if t == 0 else alpha[t - 1] @ A) * B[:, o]
            c[t] = alpha[t].sum()
            alpha[t] /= c[t]
        beta[-1] = 1
        for t in range(T - 2, -1, -1):
            beta[t] = A @ (B[:, obs[t + 1]] * beta[t + 1]) / c[t + 1]
        gamma = alpha * beta
        xi = np.zeros((2, 2))
        for t in range(T - 1):
            xi += np.outer(alpha[t], B[:, obs[t + 1]] * beta[t + 1]) * A / c[t + 1]
        A = xi / gamma[:-1].sum(axis=0)[:, None]
        for k in range(3):
            B[:, k] = gamma[obs == k].sum(axis=0) / gamma.sum(axis=0)
        pi = gamma[0]
    return A, B, np.log(c).sum()

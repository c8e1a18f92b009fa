"""Models of machine learning as classes with ``fit`` and ``predict``."""

import numpy as np

from tests.programs.table import program


class LinearRegression:
    """Ridge regression by the normal equations."""

    def __init__(self, alpha=1.0, fit_intercept=True):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.beta = None
        self._is_fit = False

    def fit(self, X, y):
        """Solve for the coefficients."""
        if self.fit_intercept:
            X = np.c_[np.ones(X.shape[0]), X]
        A = self.alpha * np.eye(X.shape[1])
        self.beta = np.linalg.inv(X.T @ X + A) @ X.T @ y
        self._is_fit = True
        return self

    def predict(self, X):
        """The fitted plane at the rows of ``X``."""
        assert self._is_fit, "call fit first"
        if self.fit_intercept:
            X = np.c_[np.ones(X.shape[0]), X]
        return np.dot(X, self.beta)


@program(
    lambda rng: (rng.normal(size=(8, 2)), rng.normal(size=8), rng.normal(size=(3, 2))), smooth=0
)
def ridge(X, y, new):
    """A model that is fitted and asked."""
    return LinearRegression(alpha=0.5).fit(X, y).predict(new)


class LogisticRegression:
    """A linear classifier trained by gradient descent."""

    def __init__(self, rate=0.1, steps=8, tolerance=1e-9):
        self.rate, self.steps, self.tolerance = rate, steps, tolerance

    def fit(self, X, y):
        """Descend until the loss no longer changes."""
        self.beta = np.zeros(X.shape[1])
        previous = np.inf
        for _ in range(self.steps):
            prediction = self._sigmoid(X @ self.beta)
            loss = -np.mean(y * np.log(prediction) + (1 - y) * np.log(1 - prediction))
            if previous - loss < self.tolerance:
                break
            previous = loss
            self.beta -= self.rate * X.T @ (prediction - y) / len(y)
        return self

    @staticmethod
    def _sigmoid(z):
        return 1.0 / (1.0 + np.exp(-z))


@program(
    lambda rng: (rng.normal(size=(10, 3)), rng.integers(0, 2, 10).astype(float)),
    smooth=0,
    branches=True,
)
def logistic(X, y):
    """The coefficients after some steps, with a test of convergence."""
    return LogisticRegression().fit(X, y).beta


@program(lambda rng: (rng.normal(size=(12, 2)), 3))
def k_means(points, k):
    """Lloyd's algorithm with empty clusters kept."""
    centres = points[:k].copy()
    for _ in range(4):
        distances = np.linalg.norm(points[:, None] - centres[None], axis=2)
        labels = np.argmin(distances, axis=1)
        for j in range(k):
            members = labels == j
            count = np.sum(members)
            total = np.sum(points * members[:, None], axis=0)
            centres[j] = np.where(count > 0, total / np.maximum(count, 1), centres[j])
    return centres, labels


@program(lambda rng: (rng.normal(size=(9, 2)), rng.integers(0, 3, 9), rng.normal(size=(4, 2))))
def nearest_neighbours(X, y, queries):
    """The vote of the three nearest points for each query."""
    predictions = np.zeros(len(queries), dtype=int)
    for i, q in enumerate(queries):
        distances = np.sum((X - q) ** 2, axis=1)
        nearest = np.argsort(distances)[:3]
        predictions[i] = np.bincount(y[nearest], minlength=3).argmax()
    return predictions


@program(
    lambda rng: (rng.normal(size=(10, 4)), np.arange(10) % 3, rng.normal(size=(3, 4))), smooth=0
)
def naive_bayes(X, y, queries):
    """Posterior class probabilities of a Gaussian model."""
    classes = np.arange(3)
    log_joint = np.zeros((len(queries), len(classes)))
    for c in classes:
        rows = X[[i for i in range(len(X)) if i % 3 == c]]
        mean, var = rows.mean(axis=0), rows.var(axis=0) + 1e-2
        log_prior = np.log(len(rows) / len(X))
        likelihood = -0.5 * np.sum(np.log(2 * np.pi * var) + (queries - mean) ** 2 / var, axis=1)
        log_joint[:, c] = log_prior + likelihood
    top = log_joint.max(axis=1, keepdims=True)
    return np.exp(log_joint - top) / np.exp(log_joint - top).sum(axis=1, keepdims=True)


class RBFKernel:
    """A Gaussian kernel that is called with two sets of points."""

    def __init__(self, sigma):
        self.sigma = sigma

    def __call__(self, X, Y=None):
        Y = X if Y is None else Y
        K = np.empty((len(X), len(Y)))
        for i in range(len(X)):
            for j in range(len(Y)):
                K[i, j] = np.exp(-0.5 * np.sum((X[i] - Y[j]) ** 2) / self.sigma**2)
        return K


@program(
    lambda rng: (rng.normal(size=(5, 2)), rng.normal(size=5), rng.normal(size=(3, 2)), 0.9),
    smooth=3,
)
def gaussian_process(X, y, new, sigma):
    """Posterior mean, deviation and the log marginal likelihood."""
    kernel = RBFKernel(sigma)
    K = kernel(X) + 0.1 * np.eye(len(X))
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
    cross = kernel(new, X)
    v = np.linalg.solve(L, cross.T)
    variance = np.diag(kernel(new)) - np.sum(v**2, axis=0)
    log_marginal = -0.5 * y @ alpha - np.log(np.diag(L)).sum() - len(X) / 2 * np.log(2 * np.pi)
    return cross @ alpha, np.sqrt(variance), log_marginal


@program(lambda rng: (rng.normal(size=(10, 3)), np.sign(rng.normal(size=10))), branches=True)
def perceptron(X, y):
    """Rosenblatt's updates with early stopping."""
    w, b = np.zeros(X.shape[1]), 0.0
    for epoch in range(5):
        mistakes = 0
        for xi, yi in zip(X, y):
            if yi * (np.dot(w, xi) + b) <= 0:
                w += yi * xi
                b += yi
                mistakes += 1
        if mistakes == 0:
            break
    return w, b, mistakes


@program(lambda rng: (rng.normal(size=(8, 4)), 2), smooth=0)
def principal_components(X, k):
    """Explained variance and the reconstruction from the leading components."""
    centred = X - X.mean(axis=0)
    U, S, Vt = np.linalg.svd(centred, full_matrices=False)
    scores = U[:, :k] * S[:k]
    explained = S**2 / np.sum(S**2)
    return explained[:k], scores @ Vt[:k] + X.mean(axis=0)


@program(lambda rng: (rng.normal(size=(8, 2)), rng.normal(size=8)), branches=True)
def regression_stump(X, y):
    """The best split of one feature, a dictionary as a tree."""
    best = {"score": np.inf}
    for feature in range(X.shape[1]):
        for threshold in np.unique(X[:, feature])[:-1]:
            left = X[:, feature] <= threshold
            score = np.var(y[left]) * left.sum() + np.var(y[~left]) * (~left).sum()
            if score < best["score"]:
                best = dict(
                    score=score,
                    feature=feature,
                    threshold=threshold,
                    left=y[left].mean(),
                    right=y[~left].mean(),
                )
    return best

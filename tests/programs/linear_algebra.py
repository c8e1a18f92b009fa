"""Factorisations and solvers with explicit loops."""

import numpy as np
from numpy.linalg import norm

from tests.programs.table import program


def dominant(rng):
    """A matrix that needs no pivots."""
    return rng.normal(size=(4, 4)) + 6 * np.eye(4)


@program(lambda rng: (dominant(rng),), smooth=0)
def lu(A):
    """Doolittle's factors."""
    n = A.shape[0]
    L, U = np.eye(n), np.zeros_like(A)
    for i in range(n):
        for k in range(i, n):
            U[i, k] = A[i, k] - sum(L[i, j] * U[j, k] for j in range(i))
        for k in range(i + 1, n):
            L[k, i] = (A[k, i] - sum(L[k, j] * U[j, i] for j in range(i))) / U[i, i]
    return L, U


@program(lambda rng: (dominant(rng), rng.normal(size=4)), smooth=0)
def gauss_elimination(A, b):
    """Elimination with partial pivots on an augmented matrix."""
    n = len(b)
    M = np.hstack([A, b.reshape(-1, 1)]).astype(float)
    for k in range(n):
        pivot = k + np.argmax(np.abs(M[k:, k]))
        M[[k, pivot]] = M[[pivot, k]]
        for i in range(k + 1, n):
            M[i, k:] -= M[i, k] / M[k, k] * M[k, k:]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        x[i] = (M[i, -1] - np.dot(M[i, i + 1 : n], x[i + 1 :])) / M[i, i]
    return x


@program(lambda rng: (rng.normal(size=(4, 3)),), smooth=0)
def gram_schmidt(A):
    """Q and R by the modified Gram and Schmidt process."""
    m, n = A.shape
    Q = np.empty((m, n))
    R = np.zeros((n, n))
    V = A.copy()
    for i in range(n):
        R[i, i] = norm(V[:, i])
        Q[:, i] = V[:, i] / R[i, i]
        for j in range(i + 1, n):
            R[i, j] = Q[:, i] @ V[:, j]
            V[:, j] -= R[i, j] * Q[:, i]
    return Q, R


@program(lambda rng: (rng.normal(size=(4, 3)),), smooth=0)
def householder(A):
    """Reflections that make a matrix triangular."""
    R = A.copy()
    m, n = R.shape
    Q = np.identity(m)
    for k in range(n):
        x = R[k:, k]
        e = np.zeros_like(x)
        e[0] = np.copysign(norm(x), x[0])
        v = x + e
        v = v / norm(v)
        R[k:] -= 2 * np.outer(v, v @ R[k:])
        Q[:, k:] -= 2 * np.outer(Q[:, k:] @ v, v)
    return Q, np.triu(R)


@program(lambda rng: (rng.normal(size=(3, 3)),), smooth=0)
def jacobi_eigenvalues(A):
    """Two sweeps of Jacobi's rotations on a symmetric matrix."""
    S = A + A.T
    for _ in range(2):
        for p in range(2):
            for q in range(p + 1, 3):
                theta = 0.5 * np.arctan2(2 * S[p, q], S[q, q] - S[p, p])
                J = np.eye(3)
                J[p, p] = J[q, q] = np.cos(theta)
                J[p, q], J[q, p] = np.sin(theta), -np.sin(theta)
                S = J.T @ S @ J
    return np.sum(np.diag(S) ** 2), np.prod(np.diag(S))


@program(lambda rng: (dominant(rng), rng.normal(size=4)), smooth=0)
def power_iteration(A, start):
    """The dominant eigenvalue with Rayleigh's quotient."""
    v = start / np.linalg.norm(start)
    for _ in range(10):
        w = A @ v
        v = w / np.linalg.norm(w)
    return v @ A @ v


@program(
    lambda rng: (
        rng.normal(size=5),
        3 + rng.normal(size=6) ** 2,
        rng.normal(size=5),
        rng.normal(size=6),
    ),
    smooth=1,
)
def thomas(lower, diagonal, upper, rhs):
    """A tridiagonal system, whose coefficients are overwritten on copies."""
    lower, diagonal, upper, rhs = map(np.array, (lower, diagonal, upper, rhs))
    n = len(diagonal)
    for i in range(1, n):
        w = lower[i - 1] / diagonal[i - 1]
        diagonal[i] = diagonal[i] - w * upper[i - 1]
        rhs[i] = rhs[i] - w * rhs[i - 1]
    x = diagonal
    x[-1] = rhs[-1] / diagonal[-1]
    for i in range(n - 2, -1, -1):
        x[i] = (rhs[i] - upper[i] * x[i + 1]) / diagonal[i]
    return x


@program(lambda rng: (rng.normal(size=(3, 3)), rng.normal()), branches=True)
def safe_cholesky(A, shift):
    """A Cholesky factor with growing jitter where the matrix is not positive definite."""
    S = (A + A.T) / 2 + shift * np.eye(3)
    jitter = 0.0
    for _ in range(8):
        try:
            return np.linalg.cholesky(S + jitter * np.eye(3)), jitter
        except np.linalg.LinAlgError:
            jitter = max(jitter * 10, 0.1)
    raise ValueError("no factor")


@program(lambda rng: (rng.normal(size=(3, 3)) / 4,), smooth=0)
def matrix_exponential(A):
    """A Taylor series with scaling and squaring."""
    result = np.identity(A.shape[0])
    term = np.identity(A.shape[0])
    scaled = A / 2**2
    for k in range(1, 9):
        term = term @ scaled / k
        result += term
    for _ in range(2):
        result = result @ result
    return result


@program(lambda rng: (rng.normal(size=(4, 4)),), smooth=0)
def determinant(matrix):
    """Laplace's expansion by recursion over minors."""

    def det(m):
        if m.shape == (1, 1):
            return m[0, 0]
        total = 0
        for j in range(m.shape[1]):
            minor = np.delete(m[1:], j, axis=1)
            total += (-1) ** j * m[0, j] * det(minor)
        return total

    return det(matrix)


@program(
    lambda rng: (rng.uniform(1, 4, size=2), rng.uniform(1, 3, size=(2, 2)), np.array([4.0, 6])),
    branches=True,
)
def linear_program(cost, table, limits):
    """The simplex method on a tableau, for a bounded problem."""
    rows, n = table.shape
    tableau = np.zeros((rows + 1, n + rows + 1))
    tableau[:rows, :n], tableau[:rows, n : n + rows] = table, np.eye(rows)
    tableau[:rows, -1], tableau[-1, :n] = limits, -cost
    basis = list(range(n, n + rows))
    while tableau[-1, :-1].min() < -1e-12:
        j = int(np.argmin(tableau[-1, :-1]))
        positive = tableau[:rows, j] > 1e-12
        ratios = np.where(
            positive, tableau[:rows, -1] / np.where(positive, tableau[:rows, j], 1), 9e9
        )
        i = int(np.argmin(ratios))
        tableau[i] /= tableau[i, j]
        for k in range(rows + 1):
            if k != i:
                tableau[k] -= tableau[k, j] * tableau[i]
        basis[i] = j
    solution = np.zeros(n + rows)
    solution[basis] = tableau[:rows, -1]
    return solution[:n], tableau[-1, -1]

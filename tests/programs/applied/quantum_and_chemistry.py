"""Quantum circuits and spin chains, reaction networks, gases and solutions."""

import functools
import math
from dataclasses import dataclass

import numpy as np

from tests.programs.table import program

H = np.array([[1, 1], [1, -1]], dtype=complex) / np.sqrt(2)


class Register:
    def __init__(self, n):
        self.n = n
        self.state = np.zeros(2**n, dtype=complex)
        self.state[0] = 1.0
        self.history = []

    def apply(self, gate, target):
        psi = self.state.reshape([2] * self.n)
        psi = np.tensordot(gate, psi, axes=([1], [target]))
        self.state = np.moveaxis(psi, 0, target).reshape(-1)
        self.history.append(("gate", target))
        return self

    def cnot(self, control, target):
        for i in range(2**self.n):
            if (i >> (self.n - 1 - control)) & 1 and not (i >> (self.n - 1 - target)) & 1:
                j = i | (1 << (self.n - 1 - target))
                self.state[[i, j]] = self.state[[j, i]]
        return self

    def probabilities(self):
        p = np.abs(self.state) ** 2
        assert np.isclose(p.sum(), 1.0), f"norm lost: {p.sum()}"
        return p


def rx(t):
    return np.array([[np.cos(t / 2), -1j * np.sin(t / 2)], [-1j * np.sin(t / 2), np.cos(t / 2)]])


@program(lambda rng: (rng.uniform(0, 3, size=3),), smooth=0)
def quantum_circuit(thetas):
    """Gates on a register of qubits, with its history."""
    reg = Register(3)
    for q, t in enumerate(thetas):
        reg.apply(H, q).apply(rx(t), q)
    reg.cnot(0, 1).cnot(1, 2)
    p = reg.probabilities()
    z = sum(p[i] * (1 - 2 * (bin(i).count("1") % 2)) for i in range(len(p)))
    return p, z, len(reg.history)


@program(lambda rng: (float(rng.uniform(0, 2)),), smooth=0)
def ising_chain_energy(g):
    """The ground state of a chain of spins, from Kronecker products."""
    n = 3
    sx = np.array([[0, 1], [1, 0]])
    sz = np.diag([1.0, -1.0])
    I = np.eye(2)

    def op(k, s):
        mats = [I] * n
        mats[k] = s
        return functools.reduce(np.kron, mats)

    Hm = np.zeros((2**n, 2**n))
    for i in range(n - 1):
        Hm -= op(i, sz) @ op(i + 1, sz)
    for i in range(n):
        Hm -= g * op(i, sx)
    w, v = np.linalg.eigh(Hm)
    return w[0], np.abs(v[:, 0]) ** 2


@program(lambda rng: (int(rng.integers(1, 8)), int(rng.integers(2, 5))), branches=True)
def grover(marked, iterations):
    """Grover's search with a marked item."""
    N = 8
    psi = np.ones(N) / np.sqrt(N)
    for _ in range(iterations):
        psi[marked] *= -1
        psi = 2 * psi.mean() - psi
    return psi, int(np.argmax(psi**2))


@dataclass
class Reaction:
    reactants: dict
    products: dict
    k: float


@program(lambda rng: (rng.uniform(0.1, 1.0, size=2), float(rng.uniform(0.5, 2))), smooth=0)
def chemical_network(rates, a0):
    """A network of reactions as objects, stepped by Euler's method."""
    species = {"A": 0, "B": 1, "C": 2}
    rxns = [Reaction({"A": 1}, {"B": 1}, rates[0]), Reaction({"A": 1, "B": 1}, {"C": 2}, rates[1])]
    y = np.zeros(len(species))
    y[species["A"]] = a0
    dt, out = 0.05, [y.copy()]
    for step in range(20):
        dy = np.zeros_like(y)
        for rx_ in rxns:
            v = rx_.k
            for s, order in rx_.reactants.items():
                v *= y[species[s]] ** order
            for s, n in rx_.reactants.items():
                dy[species[s]] -= n * v
            for s, n in rx_.products.items():
                dy[species[s]] += n * v
        y += dt * dy
        out.append(y.copy())
    return np.vstack(out)[::5], y.sum()


@program(lambda rng: (np.random.RandomState(int(rng.integers(100))), 1.0), branches=True)
def gillespie(rng, rate):
    """A stochastic simulation of reactions with legacy random numbers."""
    x, t = 20, 0.0
    ts, xs = [t], [x]
    while x > 0 and t < 1.0:
        a = np.array([rate * x, 0.5 * x])
        a0 = a.sum()
        t += rng.exponential(1 / a0)
        x += -1 if rng.rand() * a0 < a[0] else 1
        ts.append(t)
        xs.append(x)
    return np.array(ts), np.array(xs)


@program(lambda rng: (float(rng.uniform(300, 500)), float(rng.uniform(1, 5))), smooth=1)
def van_der_waals(T, P):
    """The largest volume of a real gas, a root of a cubic."""
    R, a, b = 0.08206, 1.39, 0.03913
    coeffs = [P, -(P * b + R * T), a, -a * b]
    roots = np.roots(coeffs)
    real = roots[np.isreal(roots)].real
    return real.max()


@program(lambda rng: (float(rng.uniform(1, 13)), float(rng.uniform(0.01, 0.3))), branches=True)
def buffer_ph(pka, conc, tol=1e-10):
    """The acidity of a buffer by Newton's method, until it stays."""
    Ka = 10**-pka
    h, it = 1e-7, 0
    while True:
        f = h**3 + Ka * h**2 - (Ka * conc + 1e-14) * h - Ka * 1e-14
        df = 3 * h**2 + 2 * Ka * h - (Ka * conc + 1e-14)
        new = h - f / df
        it += 1
        if abs(new - h) < tol * abs(h) or it > 100:
            break
        h = new
    return -math.log10(abs(h)), it

"""Simulations of physics, in two dimensions at most."""

import math

import numpy as np

from tests.programs.table import program

VELOCITIES = np.array([(x, y) for x in (0, -1, 1) for y in (0, -1, 1)])
WEIGHTS = np.array([4 / 9 if not any(v) else 1 / 9 if 0 in v else 1 / 36 for v in VELOCITIES])


@program(lambda rng: (rng.uniform(0.9, 1.1, size=(6, 5)), 0.6), smooth=0)
def lattice_boltzmann(density, omega):
    """Three steps of streaming and collision on a periodic lattice of nine velocities."""

    def equilibrium(rho, u):
        cu = 3.0 * np.einsum("qd,dxy->qxy", VELOCITIES, u)
        usqr = 1.5 * (u[0] ** 2 + u[1] ** 2)
        feq = np.zeros((9,) + rho.shape)
        for i in range(9):
            feq[i, :, :] = rho * WEIGHTS[i] * (1.0 + cu[i] + 0.5 * cu[i] ** 2 - usqr)
        return feq

    u = np.zeros((2,) + density.shape)
    u[0] = 0.04 * (1 + 0.1 * np.sin(np.arange(density.shape[1])))
    fin = equilibrium(density, u)
    for _ in range(3):
        rho = np.sum(fin, axis=0)
        u = np.dot(VELOCITIES.T, fin.transpose((1, 0, 2))) / rho
        fout = fin - omega * (fin - equilibrium(rho, u))
        for i, (cx, cy) in enumerate(VELOCITIES):
            fin[i] = np.roll(np.roll(fout[i], cx, axis=0), cy, axis=1)
    return rho, np.sqrt(u[0] ** 2 + u[1] ** 2)


class Body:
    """A point mass."""

    def __init__(self, mass, position, velocity):
        self.mass = mass
        self.position = np.array(position)
        self.velocity = np.array(velocity)

    def acceleration(self, others):
        """The pull of the other bodies."""
        total = np.zeros(2)
        for other in others:
            if other is self:
                continue
            r = other.position - self.position
            total += other.mass * r / (np.linalg.norm(r) ** 3 + 0.01)
        return total


@program(lambda rng: (rng.normal(size=(3, 2)), rng.uniform(0.5, 1, size=3)), smooth=0)
def planets(positions, masses):
    """Bodies under gravity with the leapfrog method; the last state and the energies."""
    bodies = [Body(m, p, [-p[1], p[0]]) for m, p in zip(masses, positions)]
    energies = []
    dt = 0.01
    for _ in range(4):
        for body in bodies:
            body.velocity += 0.5 * dt * body.acceleration(bodies)
        for body in bodies:
            body.position += dt * body.velocity
        for body in bodies:
            body.velocity += 0.5 * dt * body.acceleration(bodies)
        energies.append(sum(0.5 * b.mass * np.sum(b.velocity**2) for b in bodies))
    return np.array([b.position for b in bodies]), energies


@program(lambda rng: (rng.uniform(0, 1, size=(8, 8)), 0.2), smooth=0)
def heat(temperature, diffusivity):
    """Explicit diffusion with fixed edges, updated in place on a copy."""
    u = temperature.copy()
    for _ in range(5):
        new = u.copy()
        new[1:-1, 1:-1] += diffusivity * (
            u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        )
        u, new = new, u
    return u


@program(lambda rng: (rng.normal(size=20),), smooth=0)
def wave(initial, c=0.5):
    """The wave equation on a string with three rotating levels in one array."""
    u = np.zeros((3, len(initial)))
    u[0] = initial
    u[1] = initial
    for _ in range(6):
        u[2, 1:-1] = 2 * u[1, 1:-1] - u[0, 1:-1] + c**2 * np.diff(u[1], 2)
        u[0], u[1] = u[1].copy(), u[2].copy()
    return u[1]


@program(
    lambda rng: (
        rng.choice([-1, 1], size=(5, 5)),
        np.random.default_rng(int(rng.integers(99))),
        0.4,
    ),
    branches=True,
)
def ising(spins, generator, beta):
    """Checkerboard sweeps of the Ising model with masks."""
    s = spins.copy()
    rows, columns = np.indices(s.shape)
    magnetisation = []
    for _ in range(3):
        for parity in (0, 1):
            around = sum(np.roll(s, k, axis) for k in (-1, 1) for axis in (0, 1))
            flip = generator.random(s.shape) < np.exp(-2 * beta * s * around)
            s[flip & ((rows + columns) % 2 == parity)] *= -1
        magnetisation.append(s.mean())
    return s, magnetisation


@program(lambda rng: (rng.uniform(0, 3, size=(6, 2)),), smooth=0)
def lennard_jones(positions):
    """Potential energy and forces of a small cluster, pair by pair."""
    n = positions.shape[0]
    energy = 0.0
    forces = np.zeros_like(positions)
    for i in range(n):
        for j in range(i + 1, n):
            r = positions[i] - positions[j]
            d2 = np.dot(r, r) + 0.5
            inv6 = (1.0 / d2) ** 3
            energy += 4 * (inv6**2 - inv6)
            f = 24 * (2 * inv6**2 - inv6) / d2 * r
            forces[i] += f
            forces[j] -= f
    return energy, forces


@program(lambda rng: (rng.uniform(0.3, 0.8), rng.uniform(8, 12)), smooth=0)
def projectile(angle, speed, drag=0.02):
    """The range of a throw with air resistance, with fixed steps of Euler's method."""
    x, y = 0.0, 0.0
    vx, vy = speed * math.cos(angle), speed * math.sin(angle)
    path = []
    for _ in range(25):
        v = math.hypot(vx, vy)
        vx -= drag * v * vx * 0.05
        vy -= (9.81 + drag * v * vy) * 0.05
        x += vx * 0.05
        y += vy * 0.05
        path.append((x, y))
    return np.array(path)


@program(lambda rng: (rng.normal(size=(6, 6)),), smooth=0)
def poisson_solver(source):
    """Gauss and Seidel's sweeps, cell by cell."""
    n = source.shape[0]
    phi = np.zeros((n + 2, n + 2))
    for _ in range(2):
        for i in range(1, n + 1):
            for j in range(1, n + 1):
                phi[i, j] = 0.25 * (
                    phi[i - 1, j]
                    + phi[i + 1, j]
                    + phi[i, j - 1]
                    + phi[i, j + 1]
                    - source[i - 1, j - 1]
                )
    return phi[1:-1, 1:-1]


@program(lambda rng: (rng.normal(size=8) + 2,), smooth=0)
def schroedinger(potential):
    """The lowest energies of a particle in a potential, and one density."""
    n = len(potential)
    hamiltonian = (
        np.diag(potential + 2.0) + np.diag(-np.ones(n - 1), 1) + np.diag(-np.ones(n - 1), -1)
    )
    energies, states = np.linalg.eigh(hamiltonian)
    return energies[:3], states[:, 0] ** 2


@program(lambda rng: (rng.normal(size=(2, 8, 8)),), smooth=0)
def project_flow(velocity):
    """The divergence-free part of a periodic flow by a spectral projection."""
    n = velocity.shape[-1]
    k = np.fft.fftfreq(n) * n
    kx, ky = np.meshgrid(k, k, indexing="ij")
    k2 = kx**2 + ky**2
    k2[0, 0] = 1.0
    u, v = np.fft.fft2(velocity[0]), np.fft.fft2(velocity[1])
    divergence = (kx * u + ky * v) / k2
    out = np.empty_like(velocity)
    out[0] = np.fft.ifft2(u - kx * divergence).real
    out[1] = np.fft.ifft2(v - ky * divergence).real
    return out

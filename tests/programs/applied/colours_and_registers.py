"""Colours as people see them, registers of bits, attitudes, curves of lists, recursive products."""

import numpy as np

from tests.programs.table import program

TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
WHITE = TO_XYZ.sum(axis=1)


def xyz_of_srgb(rgb):
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return np.einsum("ij,...j->...i", TO_XYZ, linear)


def lab_of_srgb(rgb):
    """Colours in L*, a*, b*; the cube root is a line near black."""
    ratio = xyz_of_srgb(np.asarray(rgb, float)) / WHITE
    delta = 6 / 29
    f = np.where(ratio > delta**3, np.cbrt(ratio), ratio / (3 * delta**2) + 4 / 29)
    fx, fy, fz = (f[..., i] for i in range(3))
    return np.stack([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)], axis=-1)


@program(lambda rng: (rng.uniform(0.1, 0.9, (4, 3)), rng.uniform(0.1, 0.9, (4, 3))), smooth=0)
def ciede2000(first, second):
    """The difference of colours that people see, with its rotation term in the blue region."""
    (L1, a1, b1), (L2, a2, b2) = (np.moveaxis(lab_of_srgb(x), -1, 0) for x in (first, second))
    mean_chroma = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    g = 0.5 * (1 - np.sqrt(mean_chroma**7 / (mean_chroma**7 + 25.0**7)))
    a1, a2 = (1 + g) * a1, (1 + g) * a2
    C1, C2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = (np.degrees(np.arctan2(b, a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    dh = h2 - h1
    dh = dh - 360 * (dh > 180) + 360 * (dh < -180)
    dH = 2 * np.sqrt(C1 * C2) * np.sin(np.radians(dh) / 2)
    L, C = (L1 + L2) / 2, (C1 + C2) / 2
    h = np.where(np.abs(h1 - h2) > 180, (h1 + h2 + 360) / 2, (h1 + h2) / 2)
    T = 1 - 0.17 * np.cos(np.radians(h - 30)) + 0.24 * np.cos(np.radians(2 * h))
    T += 0.32 * np.cos(np.radians(3 * h + 6)) - 0.20 * np.cos(np.radians(4 * h - 63))
    S_L = 1 + 0.015 * (L - 50) ** 2 / np.sqrt(20 + (L - 50) ** 2)
    S_C, S_H = 1 + 0.045 * C, 1 + 0.015 * C * T
    turn = (
        -2
        * np.sqrt(C**7 / (C**7 + 25.0**7))
        * np.sin(np.radians(60 * np.exp(-(((h - 275) / 25) ** 2))))
    )
    dL, dC = (L2 - L1) / S_L, (C2 - C1) / S_C
    return np.sqrt(dL**2 + dC**2 + (dH / S_H) ** 2 + turn * dC * dH / S_H)


@program(lambda rng: (rng.uniform(0.0, 1.0, (2, 3, 3)),))
def quantised(image):
    """An image in bytes, packed into one integer a pixel, and its histogram of hues."""
    channels = np.clip(np.round(image * 255), 0, 255).astype(np.uint8)
    packed = (channels.astype(np.uint32) * np.array([1 << 16, 1 << 8, 1], np.uint32)).sum(axis=-1)
    back = np.stack([(packed >> shift) & 0xFF for shift in (16, 8, 0)], axis=-1)
    high, low = back.max(-1), back.min(-1)
    spread = np.where(high == low, 1, high - low)
    hue = np.select(
        [back[..., 0] == high, back[..., 1] == high],
        [
            (back[..., 1] - 1.0 * back[..., 2]) / spread % 6,
            (back[..., 2] - 1.0 * back[..., 0]) / spread + 2,
        ],
        (back[..., 0] - 1.0 * back[..., 1]) / spread + 4,
    )
    return packed, hue, np.array_equal(back, channels)


@program(lambda rng: (int(rng.integers(1, 2**16)), 40), branches=True)
def shift_register(state, steps):
    """The bits of a linear-feedback register, and the state that they leave."""
    bits = []
    for _ in range(steps):
        bit = (state ^ (state >> 2) ^ (state >> 3) ^ (state >> 5)) & 1
        state = (state >> 1) | (bit << 15)
        bits.append(bit)
    return np.array(bits), state, f"{state:016b}".count("1")


@program(lambda rng: ([int(b) for b in rng.integers(0, 256, 6)],), branches=True)
def checksum(message):
    """A cyclic redundancy check, bit by bit, and Gray codes of the bytes."""
    crc = 0xFFFFFFFF
    for byte in message:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ 0xEDB88320 if crc & 1 else crc >> 1
    return crc ^ 0xFFFFFFFF, [b ^ (b >> 1) for b in message]


@program(lambda rng: (rng.normal(size=(3, 2)), rng.normal(size=(3, 2))), smooth=0, branches=True)
def attitude_of_two_vectors(seen, known):
    """The rotation between two frames in which two directions are known, as a quaternion."""

    def frame(v):
        x = v[:, 0] / np.linalg.norm(v[:, 0])
        y = np.cross(v[:, 0], v[:, 1])
        y /= np.linalg.norm(y)
        return np.c_[x, y, np.cross(x, y)]

    R = frame(seen) @ frame(known).T
    trace = R.trace()
    candidates = np.array([trace, *np.diag(R)])
    i = int(np.argmax(candidates))
    q = np.zeros(4)
    if i == 0:
        q[0] = 1 + trace
        q[1:] = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    else:
        j, k = i % 3, (i + 1) % 3
        i -= 1
        q[i + 1] = 1 + R[i, i] - R[j, j] - R[k, k]
        q[j + 1], q[k + 1] = R[j, i] + R[i, j], R[k, i] + R[i, k]
        q[0] = R[k, j] - R[j, k]
    q /= np.linalg.norm(q)
    return (q if q[0] >= 0 else -q), R


@program(lambda rng: (rng.normal(size=4) + 1j * rng.normal(size=4),), branches=True)
def all_roots_at_once(coefficients):
    """The Durand-Kerner iteration; a diagonal of ones leaves out the distance to itself."""
    monic = coefficients / coefficients[0]
    roots = (0.4 + 0.9j) ** np.arange(len(coefficients) - 1)
    for _ in range(60):
        gaps = np.array([root - roots for root in roots])
        np.fill_diagonal(gaps, 1.0)
        step = np.polyval(monic, roots) / gaps.prod(axis=1)
        roots = roots - step
        if np.abs(step).max() < 1e-13:
            break
    return roots[np.lexsort((roots.imag, roots.real))]


@program(lambda rng: ([rng.normal(size=2) for _ in range(3)], 2), smooth=0)
def snowflake(corners, steps):
    """Koch's curve as a list of points, and the area that it encloses."""
    turn = np.array(
        [[np.cos(np.pi / 3), -np.sin(np.pi / 3)], [np.sin(np.pi / 3), np.cos(np.pi / 3)]]
    )
    points = [*corners, corners[0]]
    for _ in range(steps):
        refined = []
        for here, there in zip(points[:-1], points[1:], strict=True):
            third = (there - here) / 3
            refined += [here, here + third, here + third + turn @ third, here + 2 * third]
        points = [*refined, points[-1]]
    x, y = np.array(points).T
    return points, 0.5 * np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])


def strassen_product(a, b):
    n = len(a)
    if n == 1:
        return a * b
    k = n // 2
    a11, a12, a21, a22 = a[:k, :k], a[:k, k:], a[k:, :k], a[k:, k:]
    b11, b12, b21, b22 = b[:k, :k], b[:k, k:], b[k:, :k], b[k:, k:]
    p1 = strassen_product(a11, b12 - b22)
    p2 = strassen_product(a11 + a12, b22)
    p3 = strassen_product(a21 + a22, b11)
    p4 = strassen_product(a22, b21 - b11)
    p5 = strassen_product(a11 + a22, b11 + b22)
    p6 = strassen_product(a12 - a22, b21 + b22)
    p7 = strassen_product(a11 - a21, b11 + b12)
    return np.vstack(
        (np.hstack((p5 + p4 - p2 + p6, p1 + p2)), np.hstack((p3 + p4, p1 + p5 - p3 - p7)))
    )


@program(lambda rng: (rng.normal(size=(3, 3)), rng.normal(size=(3, 3))), smooth=0)
def strassen(a, b):
    """A product of matrices by seven products of halves, padded to a power of two."""
    n = len(a)
    size = 1 << (n - 1).bit_length()
    padded = [np.pad(m, (0, size - n)) for m in (a, b)]
    return strassen_product(*padded)[:n, :n]


@program(
    lambda rng: (lambda m: (m @ m.T + np.eye(4), rng.normal(size=4)))(rng.normal(size=(4, 4))),
    smooth=0,
)
def lanczos(matrix, start):
    """The tridiagonal form of a symmetric matrix in lists, and its largest eigenvalue."""
    n = matrix.shape[0]
    v = np.zeros((n, n))
    v[:, 0] = start / np.linalg.norm(start)
    alpha, beta = [], []
    for j in range(n):
        w = matrix @ v[:, j]
        alpha.append(w @ v[:, j])
        if j == n - 1:
            break
        w -= alpha[j] * v[:, j]
        if j > 0:
            w -= beta[j - 1] * v[:, j - 1]
        beta.append(np.linalg.norm(w))
        v[:, j + 1] = w / beta[j]
    T = np.diag(alpha) + np.diag(beta, 1) + np.diag(beta, -1)
    return alpha, beta, np.linalg.eigvalsh(T)[-1]

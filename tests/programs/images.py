"""Operations on small images."""

import numpy as np

from tests.programs.table import program


@program(lambda rng: (rng.uniform(size=(6, 7)),), smooth=0)
def sobel(image):
    """The strength of edges with a padded border and explicit windows."""
    kernel = np.array([[1, 0, -1], [2, 0, -2], [1, 0, -1]])
    padded = np.pad(image, 1, mode="edge")
    gx, gy = np.zeros(image.shape), np.zeros(image.shape)
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            patch = padded[i : i + 3, j : j + 3]
            gx[i, j] = (patch * kernel).sum()
            gy[i, j] = (patch * kernel.T).sum()
    return np.sqrt(gx**2 + gy**2 + 1e-3)


@program(lambda rng: (rng.uniform(size=(5, 6)), rng.uniform(0.5, 1.5)), smooth=1)
def gaussian_blur(image, sigma):
    """A separable blur, rows and then columns."""
    x = np.arange(-2, 3)
    kernel = np.exp(-(x**2) / (2 * sigma**2))
    kernel /= kernel.sum()
    rows = np.array([np.convolve(row, kernel, mode="same") for row in image])
    return np.apply_along_axis(lambda c: np.convolve(c, kernel, mode="same"), 0, rows)


@program(lambda rng: (rng.integers(0, 256, size=(6, 6), dtype=np.uint8),), branches=True)
def equalise(image):
    """Histogram equalisation of bytes through a lookup table."""
    histogram = np.bincount(image.ravel(), minlength=256)
    cumulative = np.cumsum(histogram)
    first = cumulative[cumulative > 0][0]
    table = np.round((cumulative - first) / (image.size - first) * 255)
    return table.clip(0, 255).astype(np.uint8)[image]


@program(lambda rng: (rng.uniform(size=(4, 4)), rng.uniform(0.1, 0.4)), smooth=0, branches=True)
def rotate_image(image, angle):
    """A rotation by bilinear interpolation, pixel by pixel."""
    h, w = image.shape
    out = np.zeros((h, w))
    c, s = np.cos(angle), np.sin(angle)
    for i in range(h):
        for j in range(w):
            y = c * (i - h / 2) - s * (j - w / 2) + h / 2
            x = s * (i - h / 2) + c * (j - w / 2) + w / 2
            y0, x0 = int(np.floor(y)), int(np.floor(x))
            if 0 <= y0 < h - 1 and 0 <= x0 < w - 1:
                fy, fx = y - y0, x - x0
                out[i, j] = (
                    (1 - fy) * (1 - fx) * image[y0, x0]
                    + (1 - fy) * fx * image[y0, x0 + 1]
                    + fy * (1 - fx) * image[y0 + 1, x0]
                    + fy * fx * image[y0 + 1, x0 + 1]
                )
    return out


@program(lambda rng: (rng.integers(0, 2, size=(6, 6)),))
def game_of_life(grid):
    """Three generations, edges dead."""
    Z = np.pad(grid, 1)
    for _ in range(3):
        N = (
            Z[:-2, :-2] + Z[:-2, 1:-1] + Z[:-2, 2:] + Z[1:-1, :-2]
            + Z[1:-1, 2:] + Z[2:, :-2] + Z[2:, 1:-1] + Z[2:, 2:]
        )  # fmt: skip
        birth = (N == 3) & (Z[1:-1, 1:-1] == 0)
        survive = ((N == 2) | (N == 3)) & (Z[1:-1, 1:-1] == 1)
        Z[...] = 0
        Z[1:-1, 1:-1][birth | survive] = 1
    return Z[1:-1, 1:-1]


@program(lambda rng: (rng.uniform(-1.5, 0.5, size=(4, 5)),), branches=True)
def mandelbrot(real):
    """Escape times with a mask of points that are still inside."""
    C = real + 1j * np.linspace(-1, 1, 4)[:, None]
    Z = np.zeros(C.shape, np.complex64)
    N = np.zeros(C.shape, dtype=int)
    for n in range(12):
        inside = np.abs(Z) < 2.0
        N[inside] = n
        Z[inside] = Z[inside] ** 2 + C[inside]
    N[N == 11] = 0
    return N


@program(lambda rng: (rng.uniform(0.2, 0.8, size=(6, 6)),), smooth=0)
def gray_scott(u0):
    """A reaction of two substances in one structured array."""
    Z = np.zeros((8, 8), [("U", np.double), ("V", np.double)])
    U, V = Z["U"], Z["V"]
    u, v = U[1:-1, 1:-1], V[1:-1, 1:-1]
    u[...] = u0
    v[...] = 0.25
    for _ in range(2):
        Lu = U[0:-2, 1:-1] + U[1:-1, 0:-2] - 4 * u + U[1:-1, 2:] + U[2:, 1:-1]
        uvv = u * v * v
        u += 0.16 * Lu - uvv + 0.06 * (1 - u)
        v += uvv - 0.12 * v
    return u + 0.0, v + 0.0


@program(lambda rng: (rng.uniform(size=(4, 4)),))
def dither(gray):
    """Floyd and Steinberg's error diffusion."""
    image = gray.copy()
    h, w = image.shape
    for y in range(h):
        for x in range(w):
            old = image[y, x]
            new = np.round(old)
            image[y, x] = new
            error = old - new
            for dy, dx, weight in ((0, 1, 7), (1, -1, 3), (1, 0, 5), (1, 1, 1)):
                if y + dy < h and 0 <= x + dx < w:
                    image[y + dy, x + dx] += error * weight / 16
    return image


@program(lambda rng: (rng.integers(0, 256, size=(4, 6, 3)).astype(np.uint8), 1.3))
def adjust_colours(image, gamma):
    """Gamma, grey levels and inverted bytes of a colour image."""
    scaled = image.astype(np.float32) / 255.0
    corrected = np.clip(scaled ** (1 / gamma), 0, 1)
    grey = corrected @ np.array([0.299, 0.587, 0.114], dtype=np.float32)
    return (corrected * 255).astype(np.uint8), 255 - image, grey[::-1].mean()


@program(lambda rng: (rng.uniform(size=(8, 8)),), smooth=0)
def cosine_blocks(image):
    """The discrete cosine transform of blocks, quantised softly."""
    n = 4
    basis = np.zeros((n, n))
    for k in range(n):
        for i in range(n):
            basis[k, i] = np.cos(np.pi * (2 * i + 1) * k / (2 * n))
    basis *= np.sqrt(2 / n)
    basis[0] /= np.sqrt(2)
    out = np.empty(image.shape)
    for i in range(0, image.shape[0], n):
        for j in range(0, image.shape[1], n):
            coefficients = basis @ image[i : i + n, j : j + n] @ basis.T
            coefficients[2:, 2:] = 0
            out[i : i + n, j : j + n] = basis.T @ coefficients @ basis
    return out

"""Kernels of grid codes that write into their arguments: sweeps, staggered fields, limiters, rows.

Suites of such kernels compare compilers of NumPy code: https://github.com/spcl/npbench and
https://github.com/dionhaefner/pyhpc-benchmarks.
"""

import numpy as np

from tests.programs.table import program

OFF_CENTRE = 0.5


@program(lambda rng: (3, rng.uniform(0.0, 1.0, size=(6, 6)), 0.3), smooth=1)
def heat_by_alternating_sweeps(steps, field, strength):
    """Implicit diffusion by rows, then by columns; the factors fill arrays without values."""
    n = field.shape[0]
    half = np.empty_like(field)
    half[:] = field[:]
    factor, right = np.empty(field.shape), np.empty(field.shape, dtype=field.dtype)
    outer, centre = -strength / 2.0, 1.0 + strength
    for _ in range(1, steps + 1):
        for new, old in ((half, field.T), (field, half.T)):
            new[0, 1 : n - 1] = new[n - 1, 1 : n - 1] = 1.0
            factor[1 : n - 1, 0] = 0.0
            right[1 : n - 1, 0] = new[0, 1 : n - 1]
            for j in range(1, n - 1):
                below = outer * factor[1 : n - 1, j - 1] + centre
                source = old[1 : n - 1, j] + 0.1 * (old[: n - 2, j] + old[2:n, j])
                factor[1 : n - 1, j] = -outer / below
                right[1 : n - 1, j] = (source - outer * right[1 : n - 1, j - 1]) / below
            for j in range(n - 2, 0, -1):
                new[j, 1 : n - 1] = (
                    factor[1 : n - 1, j] * new[j + 1, 1 : n - 1] + right[1 : n - 1, j]
                )
    return field


@program(lambda rng: (4, *rng.normal(size=(3, 6, 7)), rng.normal(size=4)), smooth=3)
def staggered_fields(steps, across, along, height, driven):
    """Electric and magnetic fields on staggered points, all three changed in place."""
    for t in range(steps):
        along[0, :] = driven[t]
        along[1:, :] -= 0.5 * (height[1:, :] - height[:-1, :])
        across[:, 1:] -= 0.5 * (height[:, 1:] - height[:, :-1])
        curl = across[:-1, 1:] - across[:-1, :-1] + along[1:, :-1] - along[:-1, :-1]
        height[:-1, :-1] -= 0.7 * curl
    return across, along, height


@program(lambda rng: (rng.normal(size=(5, 8)), 0.25), smooth=0)
def recursive_blur(image, alpha):
    """A recursive filter along the columns in both directions, added up."""
    gain = (1.0 - np.exp(-alpha)) ** 2 / (1.0 + alpha * np.exp(-alpha) - np.exp(-2.0 * alpha))
    early, late = gain * np.exp(-alpha) * (alpha - 1.0), -gain * np.exp(-2.0 * alpha)
    first, second = 2.0**-alpha, -np.exp(-2.0 * alpha)
    causal, anticausal = np.empty_like(image), np.empty_like(image)
    causal[:, 0] = gain * image[:, 0]
    causal[:, 1] = gain * image[:, 1] + early * image[:, 0] + first * causal[:, 0]
    for j in range(2, image.shape[1]):
        fed = gain * image[:, j] + early * image[:, j - 1]
        causal[:, j] = fed + first * causal[:, j - 1] + second * causal[:, j - 2]
    anticausal[:, -1] = 0.0
    anticausal[:, -2] = early * image[:, -1]
    for j in range(image.shape[1] - 3, -1, -1):
        fed = early * image[:, j + 1] + late * image[:, j + 2]
        anticausal[:, j] = fed + first * anticausal[:, j + 1] + second * anticausal[:, j + 2]
    blurred = 1 * (causal + anticausal)
    blurred[:] = np.where(blurred > 5.0, 5.0, blurred)
    return blurred


@program(lambda rng: (*rng.uniform(0.1, 1.0, size=(2, 3, 4, 5)), rng.normal(size=(4, 4, 5)), 0.15))
def vertical_advection(tendency, speed, flow, step):
    """An implicit solver along the last axis, whose arrays come from ``np.ndarray``."""
    rows, columns, levels = tendency.shape[0], tendency.shape[1], tendency.shape[2]
    upper = np.ndarray((rows, columns, levels), dtype=tendency.dtype)
    right = np.ndarray((rows, columns, levels), dtype=tendency.dtype)
    above = np.ndarray((rows, columns), dtype=tendency.dtype)
    for k in range(levels):
        down = -0.25 * (flow[1:, :, k] + flow[:-1, :, k]) * OFF_CENTRE if k else 0.0
        centre = 1.0 / step - down
        right[:, :, k] = speed[:, :, k] / step + tendency[:, :, k]
        if k < levels - 1:
            up = 0.25 * (flow[1:, :, k + 1] + flow[:-1, :, k + 1])
            upper[:, :, k] = up * OFF_CENTRE
            centre = centre - upper[:, :, k]
            right[:, :, k] -= up * OFF_CENTRE * (speed[:, :, k + 1] - speed[:, :, k])
        if k:
            centre = centre - upper[:, :, k - 1] * down
            right[:, :, k] -= right[:, :, k - 1] * down
        right[:, :, k] /= centre
        if k < levels - 1:
            upper[:, :, k] = upper[:, :, k] / centre
    for k in range(levels - 1, -1, -1):
        level = right[:, :, k] - (upper[:, :, k] * above[:, :] if k < levels - 1 else 0.0)
        above[:] = level
        tendency[:, :, k] = (level - speed[:, :, k]) / step
    return tendency


@program(
    lambda rng: (*rng.normal(size=(2, 7, 8)), rng.integers(0, 2, size=(7, 8)) * 1.0, 0.2),
    smooth=1,
)
def limited_fluxes(speed, tracer, mask, step):
    """Fluxes along both axes with a limiter; generators of slices select the neighbours."""

    def fluxes(axis):
        def part(n):
            along, all_others = slice(1 + n, -2 + n or None), slice(2, -2)
            return (along, all_others) if axis == 0 else (all_others, along)

        behind, here, ahead, beyond = (part(n) for n in range(-1, 3))
        courant = np.abs(speed[here] * step)
        jump = (tracer[ahead] - tracer[here]) * mask[here]
        upwind = np.where(
            speed[here] > 0.0,
            (tracer[here] - tracer[behind]) * mask[behind],
            (tracer[beyond] - tracer[ahead]) * mask[ahead],
        )
        ratio = upwind / np.where(np.abs(jump) < 1e-20, 1e-20, jump)
        limit = np.maximum(0.0, np.maximum(np.minimum(1.0, 2 * ratio), np.minimum(2.0, ratio)))
        mean = speed[here] * (tracer[ahead] + tracer[here]) * 0.5
        return mean - np.abs(speed[here]) * ((1.0 - limit) + courant * limit) * jump * 0.5

    east, north = np.zeros_like(tracer), np.zeros_like(tracer)
    east[1:-2, 2:-2], north[2:-2, 1:-2] = fluxes(0), fluxes(1)
    change = np.zeros_like(tracer)
    change[1:, :] -= east[1:, :] - east[:-1, :]
    change[:, 1:] -= north[:, 1:] - north[:, :-1]
    return tracer + step * change


@program(lambda rng: (rng.uniform(0.5, 2.0, size=7), rng.normal(size=5)), smooth=0)
def sparse_rows(values, x):
    """A matrix in rows of indices and values, multiplied by a vector row by row."""
    starts = np.array([0, 2, 2, 5, 7], dtype=np.uint32)
    columns = np.array([0, 3, 1, 2, 4, 0, 4], dtype=np.uint32)
    y = np.empty(starts.size - 1, values.dtype)
    for i in range(starts.size - 1):
        row = slice(starts[i], starts[i + 1])
        y[i] = values[row] @ x[columns[row]]
    return y


@program(lambda rng: (rng.normal(size=60), rng.uniform(size=60), 4), branches=True)
def means_of_rings(values, radii, n):
    """The mean of the values in each ring, which a mask selects."""
    outside = radii.max()
    result = np.zeros(n, dtype=np.float64)
    for i in range(n):
        is_inside = np.logical_and(outside * i / n <= radii, radii < outside * (i + 1) / n)
        result[i] = values[is_inside].mean()
    return result


@program(lambda rng: (rng.normal(size=16) + 1j * rng.normal(size=16), np.zeros(16, complex), 4))
def fourier_by_stages(x, y, stages):
    """A fast Fourier transform whose stages reshape, transpose and multiply a whole array."""
    n = 2**stages
    row, column = np.mgrid[0:2, 0:n]
    butterfly = np.exp(-2.0j * np.pi * row[:, :2] * column[:, :2] / 2)
    y[:] = x[:]
    for i in range(stages):
        left, right = 2**i, 2 ** (stages - i - 1)
        parts = np.transpose(np.reshape(y, (left, 2, right)), axes=(1, 0, 2))
        angles = -2.0j * np.pi * row[:, :left] * column[:, :left] / 2 ** (i + 1)
        turns = np.repeat(np.reshape(np.exp(angles), (2, left, 1)), right, axis=2)
        turned = np.reshape(parts, (n,)) * np.reshape(turns, (n,))
        y[:] = np.reshape(butterfly @ np.reshape(turned, (2, n // 2)), (n,))
    return y


@program(
    lambda rng: (rng.uniform(-2.0, 0.5, size=(5, 4)), rng.uniform(-1.2, 1.2, (5, 4))),
    branches=True,
)
def steps_to_escape(real, imaginary):
    """Escape times of a fractal; each step keeps the points that are still inside."""
    rows, columns = np.mgrid[0:5, 0:4]
    times = np.zeros(real.shape, dtype=np.int64)
    c = real + imaginary * 1j
    rows.shape = columns.shape = c.shape = c.size
    z = np.zeros(c.shape, np.complex128)
    for i in range(6):
        if not len(z):
            break
        np.multiply(z, z, z)
        np.add(z, c, z)
        has_left = abs(z) > 2.0
        times[rows[has_left], columns[has_left]] = i + 1
        np.logical_not(has_left, has_left)
        z, c = z[has_left], c[has_left]
        rows, columns = rows[has_left], columns[has_left]
    return times


@program(
    lambda rng: (rng.normal(size=(3, 4, 4)) + 0j, np.exp(1j * rng.uniform(0, 3, 5)) * 0.9, 2),
)
def moments_on_a_contour(blocks, points, width):
    """Solutions of a polynomial of matrices at points in the plane, added up with weights."""
    first = np.zeros((4, width), dtype=np.complex128)
    second = np.zeros((4, width), dtype=np.complex128)
    right = np.eye(4)[:, :width] * (1 + 1j)
    for z in points:
        matrix = np.zeros((4, 4), dtype=np.complex128)
        for n in range(3):
            matrix += np.power(z, 1 - n) * blocks[n]
        x = np.linalg.solve(matrix, right)
        if abs(z) < 1.0:
            x = -x
        first += x
        second += z * x
    return first, second


@program(lambda rng: (rng.normal(size=(6, 4)), 6.0), smooth=0)
def correlations_in_place(data, count):
    """Correlations by columns of a table that is centred and scaled in place."""
    deviations = np.std(data, axis=0)
    deviations[deviations <= 0.1] = 1.0
    data -= np.mean(data, axis=0)
    data /= np.sqrt(count) * deviations
    result = np.eye(data.shape[1], dtype=data.dtype)
    for i in range(data.shape[1] - 1):
        result[i + 1 :, i] = result[i, i + 1 :] = data[:, i] @ data[:, i + 1 :]
    return result


@program(lambda rng: (1.5, 1.2, *rng.normal(size=(2, 5, 5)), rng.normal(size=(6, 5))), smooth=2)
def products_with_two_outer_terms(alpha, beta, matrix, table, vectors):
    """Updates of rank two, products with vectors, and a triangle updated row by row."""
    u, v, w, x, y, z = vectors
    matrix += np.outer(u, v) + np.outer(w, x)
    y += beta * z @ matrix
    for i in range(table.shape[0]):
        table[i, : i + 1] *= beta
        for k in range(3):
            table[i, : i + 1] += alpha * matrix[i, k] * matrix[: i + 1, k]
    return y, table

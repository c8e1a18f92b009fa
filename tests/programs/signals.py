"""Filters and transforms of signals."""

import cmath
import math
from collections import deque

import numpy as np
from numpy import pi, zeros, zeros_like

from tests.programs.table import program


@program(lambda rng: (rng.normal(size=16),), smooth=0)
def power_spectrum(signal):
    """A windowed periodogram in decibels."""
    n = len(signal)
    window = np.array([0.5 - 0.5 * math.cos(2 * math.pi * i / (n - 1)) for i in range(n)])
    spectrum = np.fft.rfft(signal * window)
    power = np.abs(spectrum) ** 2 / np.sum(window**2)
    power[1:-1] *= 2
    return 10 * np.log10(power + 1e-9)


@program(lambda rng: (rng.normal(size=8),), smooth=0)
def recursive_fft(signal):
    """Cooley and Tukey's transform by recursion, and its real energy."""

    def fft(x):
        n = len(x)
        if n == 1:
            return x
        even, odd = fft(x[::2]), fft(x[1::2])
        out = np.zeros(n, dtype=complex)
        for k in range(n // 2):
            t = cmath.exp(-2j * cmath.pi * k / n) * odd[k]
            out[k] = even[k] + t
            out[k + n // 2] = even[k] - t
        return out

    transformed = fft(signal)
    return transformed.real, np.abs(transformed) ** 2


@program(
    lambda rng: (rng.normal(size=20), np.array([0.2, 0.4, 0.2]), np.array([1.0, -0.5])), smooth=0
)
def direct_form_filter(x, b, a):
    """A recursive filter by its difference equation."""
    y = zeros_like(x)
    for n in range(len(x)):
        acc = 0.0
        for i in range(len(b)):
            if n - i >= 0:
                acc += b[i] * x[n - i]
        for j in range(1, len(a)):
            if n - j >= 0:
                acc -= a[j] * y[n - j]
        y[n] = acc / a[0]
    return y


@program(lambda rng: (rng.normal(size=15), 4), smooth=0)
def moving_average(signal, width):
    """The mean of a sliding window kept in a deque."""
    window, total, out = deque(), 0.0, []
    for value in signal:
        window.append(value)
        total += value
        if len(window) > width:
            total -= window.popleft()
        out.append(total / len(window))
    return np.array(out)


class BiquadFilter:
    """A second-order low-pass section with its state."""

    def __init__(self, cutoff, rate, q=0.707):
        w = 2 * pi * cutoff / rate
        alpha = math.sin(w) / (2 * q)
        a0 = 1 + alpha
        self.b = [(1 - math.cos(w)) / 2 / a0, (1 - math.cos(w)) / a0, (1 - math.cos(w)) / 2 / a0]
        self.a = [-2 * math.cos(w) / a0, (1 - alpha) / a0]
        self.reset()

    def reset(self):
        """Forget the past."""
        self.state = zeros(2)

    def process(self, sample):
        """The next output sample."""
        out = self.b[0] * sample + self.state[0]
        self.state[0] = self.b[1] * sample - self.a[0] * out + self.state[1]
        self.state[1] = self.b[2] * sample - self.a[1] * out
        return out


@program(lambda rng: (rng.normal(size=12), rng.uniform(800, 1200)), smooth=1)
def low_pass(signal, cutoff):
    """A signal through a filter object, sample by sample."""
    section = BiquadFilter(cutoff, rate=8000.0)
    return np.array([section.process(s) for s in signal])


@program(lambda rng: (rng.normal(size=16),), smooth=0)
def haar_wavelet(signal):
    """The multi-level Haar transform, in place."""
    out = signal.copy()
    n = len(out)
    while n > 1:
        half = n // 2
        average = (out[0:n:2] + out[1:n:2]) / np.sqrt(2)
        detail = (out[0:n:2] - out[1:n:2]) / np.sqrt(2)
        out[:half] = average
        out[half:n] = detail
        n = half
    return out


@program(lambda rng: (rng.normal(size=40), rng.normal(size=4) * 0.1), smooth=0)
def least_mean_squares(signal, weights):
    """An adaptive filter that predicts the next sample."""
    order = len(weights)
    w = weights.copy()
    errors = np.zeros(len(signal) - order)
    for n in range(order, len(signal)):
        window = signal[n - order : n][::-1]
        errors[n - order] = signal[n] - np.dot(w, window)
        w += 0.05 * errors[n - order] * window
    return w, np.mean(errors**2)


@program(lambda rng: (rng.normal(size=24),), smooth=0)
def spectrogram(signal, size=8, hop=4):
    """Short-time Fourier magnitudes of overlapping frames."""
    frames = [
        signal[i : i + size] * np.hanning(size) for i in range(0, len(signal) - size + 1, hop)
    ]
    return np.abs(np.fft.rfft(np.stack(frames), axis=1)).T ** 2


@program(lambda rng: (rng.normal(size=18),), branches=True)
def peaks(signal):
    """Positions and heights of the local maxima above the mean."""
    found = []
    threshold = signal.mean()
    for i in range(1, len(signal) - 1):
        if signal[i] > signal[i - 1] and signal[i] > signal[i + 1] and signal[i] > threshold:
            found.append(i)
    return np.array(found, dtype=int), signal[found]


@program(lambda rng: (rng.normal(size=10),), smooth=0)
def linear_prediction(signal, order=3):
    """Coefficients of linear prediction by Levinson's and Durbin's recursion."""
    r = [np.sum(signal[: len(signal) - k] * signal[k:]) for k in range(order + 1)]
    a = np.zeros(order + 1)
    a[0] = 1.0
    error = r[0]
    for i in range(1, order + 1):
        k = -sum(a[j] * r[i - j] for j in range(i)) / error
        previous = a.copy()
        for j in range(1, i + 1):
            a[j] = previous[j] + k * previous[i - j]
        error *= 1 - k**2
    return a, error


@program(lambda rng: (rng.uniform(0, 7, size=(10,)),), smooth=0)
def unwrapped_phase(phase):
    """The phase of an analytic signal, continued over jumps, and its slope."""
    signal = np.cos(phase) + 1j * np.sin(phase)
    angles = np.unwrap(np.angle(signal))
    return np.gradient(angles), np.diff(angles) / (2 * np.pi)


@program(lambda rng: (rng.normal(size=6),), smooth=0)
def chebyshev_smoothing(samples):
    """A fit of three Chebyshev polynomials, its slope and its integral."""
    nodes = np.cos(pi * (np.arange(6) + 0.5) / 6)
    fit = np.polynomial.Chebyshev(np.polynomial.chebyshev.chebfit(nodes, samples, 3))
    total = fit.integ()
    return fit(nodes), fit.deriv()(0.3), total(1.0) - total(-1.0)


@program(lambda rng: (rng.normal(size=(2, 7)), 4), branches=True)
def sparkline(samples, levels):
    """Rows of text, one letter for each sample."""
    rows = []
    for row in samples:
        low, high = row.min(), row.max()
        places = ((row - low) / (high - low) * (levels - 1)).astype(int)
        rows.append("".join("_.-^"[place] for place in places) + f" {row.mean():.2f}")
    return "\n".join(rows)

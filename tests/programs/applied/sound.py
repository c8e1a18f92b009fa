"""Synthesis, strings, filters and features of sounds."""

import collections
import typing

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tests.programs.table import program


def midi_to_hz(n):
    return 440.0 * 2 ** ((n - 69) / 12)


class Envelope(typing.NamedTuple):
    attack: float
    decay: float
    sustain: float

    def __call__(self, t):
        return np.piecewise(
            t,
            [t < self.attack, (t >= self.attack) & (t < self.attack + self.decay)],
            [
                lambda t: t / self.attack,
                lambda t: 1 - (1 - self.sustain) * (t - self.attack) / self.decay,
                self.sustain,
            ],
        )


@program(lambda rng: (rng.integers(60, 72, size=3), float(rng.uniform(0.1, 0.9))), smooth=1)
def synth(notes, sustain):
    """Notes with an envelope, and their samples as integers."""
    sr, dur = 64, 0.5
    t = np.arange(int(sr * dur)) / sr
    env = Envelope(0.1, 0.1, sustain)
    track = np.concatenate([env(t) * np.sin(2 * np.pi * midi_to_hz(n) / 20 * t) for n in notes])
    track /= np.max(np.abs(track))
    pcm = (track * 32767).astype(np.int16)
    return track[::7], pcm[:5]


@program(lambda rng: (rng.uniform(-1, 1, size=8), 0.99), smooth=0)
def karplus_strong(noise, decay):
    """A plucked string in a deque."""
    buf = collections.deque(noise)
    out = []
    for _ in range(20):
        out.append(buf[0])
        buf.append(decay * 0.5 * (buf[0] + buf[1]))
        buf.popleft()
    return np.array(out)


@program(lambda rng: (rng.normal(size=32), float(rng.uniform(0.1, 0.4))), smooth=0)
def biquad(x, f0):
    """A low-pass filter of second order."""
    w0 = 2 * np.pi * f0
    alpha = np.sin(w0) / (2 * 0.707)
    b = np.array([(1 - np.cos(w0)) / 2, 1 - np.cos(w0), (1 - np.cos(w0)) / 2])
    a = np.array([1 + alpha, -2 * np.cos(w0), 1 - alpha])
    b, a = b / a[0], a / a[0]
    z1 = z2 = 0.0
    y = np.zeros_like(x)
    for n, xn in enumerate(x):
        y[n] = b[0] * xn + z1
        z1 = b[1] * xn - a[1] * y[n] + z2
        z2 = b[2] * xn - a[2] * y[n]
    return y


@program(lambda rng: (rng.normal(size=64),), smooth=0)
def mel_features(signal):
    """Energies of mel bands."""
    frames = sliding_window_view(signal, 16)[::8] * np.hanning(16)
    power = np.abs(np.fft.rfft(frames, 16)) ** 2 / 16

    def mel(f):
        return 2595 * np.log10(1 + f / 700)

    def hz(m):
        return 700 * (10 ** (m / 2595) - 1)

    points = hz(np.linspace(mel(0), mel(4000), 6))
    bins = np.floor(17 * points / 8000).astype(int)
    fbank = np.zeros((4, power.shape[1]))
    for m in range(1, 5):
        for k in range(bins[m - 1], bins[m]):
            fbank[m - 1, k] = (k - bins[m - 1]) / (bins[m] - bins[m - 1])
        for k in range(bins[m], bins[m + 1]):
            fbank[m - 1, k] = (bins[m + 1] - k) / (bins[m + 1] - bins[m])
    feat = power @ fbank.T
    feat = np.where(feat == 0, np.finfo(float).eps, feat)
    return 20 * np.log10(feat)

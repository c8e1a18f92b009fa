"""Less frequent ufuncs, methods of ufuncs, Fourier transforms, for test_peers: ``LESS_FREQUENT``.

Compared with JAX only: autograd has no rule for most of them.
"""

import numpy

X = numpy.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]])
Y = numpy.array([[1.1, 0.43, -0.7], [-0.93, 1.3, 0.8]])
P = numpy.array([[0.5, 1.25, 2.0], [1.5, 0.75, 0.625]])
A = numpy.linspace(-1.0, 1.3, 24).reshape(2, 3, 4)
Z = X + 1j * Y
C = A + 0.3j * A[::-1]
COUNTS = numpy.array([[1, -2, 3], [0, 2, -1]])


def called(name: str):
    """The function of this name in each module."""
    return lambda np, *args: getattr(np, name)(*args)


def fft(name: str, *args, **kwargs):
    """A transform of this name in each module, squared so that its derivative has a derivative."""
    return lambda np, x: getattr(np.fft, name)(x, *args, **kwargs) ** 2


UNARY = "deg2rad rad2deg degrees radians fabs sinc i0 nan_to_num real imag"
BINARY = "copysign fmax fmin fmod float_power heaviside logaddexp2"
UFUNCS = {
    **{name: (called(name), (X * 1.01,)) for name in UNARY.split()},
    **{name: (called(name), (P, Y)) for name in BINARY.split()},
    **{f"{name} of a row": (called(name), (P, Y[:1])) for name in BINARY.split()},
    "sinc of z": (called("sinc"), (Z,)),
    "angle": (called("angle"), (Z,)),
    "angle in degrees": (lambda np, z: np.angle(z, deg=True), (Z,)),
    "float_power of z": (lambda np, z: np.float_power(z, 1.5), (Z,)),
    "complex power of negative": (lambda np, x, z: np.power(x + 0j, z), (X, Z)),
    "modf": (lambda np, x: np.modf(x)[0] * x, (X * 1.01,)),
    "frexp": (lambda np, x: np.frexp(x)[0] ** 2, (X * 1.01,)),
    "ldexp": (lambda np, x: np.ldexp(x, COUNTS) ** 2, (X,)),
    "divmod": (lambda np, x, y: np.divmod(x, y)[1] * x, (X, P)),
    "round": (lambda np, x: np.round(x, 1) * x, (X * 1.01,)),
    "unwrap": (lambda np, x: np.unwrap(x * 5, axis=1) ** 2, (X,)),
    "nan_to_num of nan": (
        lambda np, x: np.nan_to_num(np.where(x > 0, x, numpy.nan), nan=2.0) * x,
        (X,),
    ),
}


def quotients(np, x):
    """np.divide.reduce, written out for JAX."""
    return np.divide.reduce(x, axis=1) if np is numpy else x[:, 0] / x[:, 1] / x[:, 2]


def lengths(np, x):
    """np.hypot.reduce, written out for JAX."""
    return np.hypot.reduce(x, axis=1) if np is numpy else np.sqrt(np.sum(x * x, axis=1))


METHODS = {
    "logaddexp.reduce": (lambda np, x: np.logaddexp.reduce(x, axis=1), (X,)),
    "subtract.reduce": (lambda np, x: np.subtract.reduce(x, axis=0) ** 2, (X,)),
    "divide.reduce": (quotients, (P,)),
    "hypot.reduce": (lengths, (X,)),
    "multiply.accumulate": (lambda np, x: np.multiply.accumulate(x, axis=1) ** 2, (X,)),
    "logaddexp.accumulate": (lambda np, x: np.logaddexp.accumulate(x, axis=1), (X,)),
    "add.accumulate": (lambda np, x: np.add.accumulate(x, axis=0) ** 2, (X,)),
    "add.outer": (lambda np, x, y: np.add.outer(x, y) ** 2, (X, Y[0])),
}
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
SEVERAL = ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
REAL = ("rfft", "ihfft", "rfft2", "rfftn")


def signal(name: str):
    """The argument of a transform."""
    return A if name in REAL else C


TRANSFORMS = {
    **{name: (fft(name), (signal(name),)) for name in (*ONE, *SEVERAL)},
    **{f"{name} cut": (fft(name, 3, 1), (signal(name),)) for name in ONE},
    **{f"{name} padded": (fft(name, 6, norm="ortho"), (signal(name),)) for name in ONE},
    **{
        f"{name} along two": (fft(name, (3, 5), (0, 2), "forward"), (signal(name),))
        for name in SEVERAL[4:]
    },
    "fft of reals": (fft("fft"), (A,)),
    "fftshift": (lambda np, x: np.fft.fftshift(x) ** 2, (A,)),
    "ifftshift": (lambda np, x: np.fft.ifftshift(x, axes=1) ** 2, (A,)),
}
LESS_FREQUENT = UFUNCS | METHODS | TRANSFORMS

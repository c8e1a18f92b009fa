"""Functions of linear algebra whose derivatives test_peers compares: ``LINALG``.

In the form of ``peer_functions``, which includes them; only JAX has them all. Vectors with free
phases appear in products that do not depend on the phases.
"""

import numpy

A = numpy.array([[2.0, 0.3, -0.5], [0.1, 1.5, 0.7], [-0.2, 0.4, -1.8]])
TURN = numpy.array([[0.4, -1.2, 0.3], [0.9, 0.2, -0.1], [0.2, 0.5, 1.1]])
C = A + 1j * TURN
STACK = numpy.stack([A, TURN])
B = numpy.array([[1.0, -0.4], [0.3, 2.0], [-0.7, 0.6]])
TALL = numpy.array([[1.0, -0.4, 0.2], [0.3, 2.0, -0.8], [-0.7, 0.6, 1.4], [0.5, 0.1, -0.3]])
THIN = TALL + 0.3j * TALL[::-1]
POSITIVE, HERMITIAN = A @ A.T + numpy.eye(3), C @ C.conj().T + numpy.eye(3)
LINE, X = numpy.array([0.5, -1.25, 2.0]), B.T + 0.1
BLOCK = numpy.linspace(-1.0, 1.3, 24).reshape(2, 3, 4)
TENSOR = (2 * numpy.eye(6) + 0.3 * numpy.sin(numpy.arange(36.0)).reshape(6, 6)).reshape(2, 3, 6)
LOW = numpy.outer(LINE, LINE)


def of(name: str, *args, **attrs):
    """A call of a function of numpy.linalg on these arguments."""
    return (lambda np, *args: getattr(np.linalg, name)(*args, **attrs)), args


def product(np, u, s, vh):
    """U f(diag(s)) Vh, which no choice of phases changes."""
    return (u * s**0.5) @ vh


SYSTEMS = {
    "solve": of("solve", A, B),
    "solve of stacks": of("solve", STACK, B),
    "solve of a vector": of("solve", A, LINE),
    "solve of z": of("solve", C, B),
    "inv": of("inv", STACK),
    "inv of z": of("inv", C),
    "det": of("det", STACK),
    "det of z": of("det", C),
    "sign of slogdet of z": (lambda np, x: np.linalg.slogdet(x)[0], (C,)),
    "slogdet": (lambda np, x: np.linalg.slogdet(x)[1], (STACK,)),
    "slogdet of z": (lambda np, x: np.linalg.slogdet(x)[1], (C,)),
    "matrix_power": of("matrix_power", A, n=3),
    "negative matrix_power": of("matrix_power", C, n=-2),
    "tensorsolve": of("tensorsolve", TENSOR, X),
    "tensorinv": of("tensorinv", TENSOR, ind=2),
    "lstsq": (lambda np, a, b: np.linalg.lstsq(a, b)[0], (TALL, TALL[:, :2] ** 2)),
    "lstsq of a wide z": (lambda np, a, b: np.linalg.lstsq(a, b)[0], (THIN.T, LINE)),
    "multi_dot": (lambda np, *xs: np.linalg.multi_dot(xs), (LINE, A, B, X)),
}
DECOMPOSED = {
    "cholesky": of("cholesky", POSITIVE),
    "cholesky of z": of("cholesky", HERMITIAN),
    "upper cholesky": of("cholesky", HERMITIAN, upper=True),
    "q of qr": (lambda np, x: np.linalg.qr(x)[0], (TALL,)),
    "r of qr": (lambda np, x: np.linalg.qr(x)[1], (TALL,)),
    "q of qr of z": (lambda np, x: np.linalg.qr(x)[0], (THIN,)),
    "r of qr of z": (lambda np, x: np.linalg.qr(x)[1], (THIN,)),
    "svd": (lambda np, x: product(np, *np.linalg.svd(x, full_matrices=False)), (TALL,)),
    "svd of a wide one": (
        lambda np, x: product(np, *np.linalg.svd(x, full_matrices=False)),
        (TALL.T,),
    ),
    "svd of z": (lambda np, x: product(np, *np.linalg.svd(x, full_matrices=False)), (THIN,)),
    "u of svd": (lambda np, x: np.abs(np.linalg.svd(x, full_matrices=False)[0]), (TALL,)),
    "vh of svd of z": (lambda np, x: np.abs(np.linalg.svd(x, full_matrices=False)[2]), (THIN,)),
    "svdvals": of("svdvals", THIN),
    "pinv": of("pinv", TALL),
    "pinv of z": of("pinv", THIN.T),
    "pinv of low rank": (lambda np, a, b: np.linalg.pinv(np.outer(a, b), 1e-9), (LINE, TALL[0])),
    "eigvalsh": of("eigvalsh", HERMITIAN),
    "values of eigh": (lambda np, x: np.linalg.eigh(x)[0], (POSITIVE,)),
    "vectors of eigh": (lambda np, x: np.abs(np.linalg.eigh(x)[1]), (POSITIVE,)),
    "vectors of eigh of z": (
        lambda np, x: (lambda w, v: (v * w) @ np.conj(v.T[:, ::-1]))(*np.linalg.eigh(x)),
        (HERMITIAN,),
    ),
    "eigvals": (lambda np, x: np.linalg.eigvals(x + 0j) ** 2, (C,)),
}
ORDERS = {"fro": A, "nuc": THIN, 2: THIN, -2: TALL, 1: C, -1: A, numpy.inf: A, -numpy.inf: C}
NORMS = {
    **{f"norm {o} of a matrix": of("norm", x, ord=o) for o, x in ORDERS.items()},
    **{f"norm {o} of a vector": of("norm", LINE, ord=o) for o in (1, 3, 2.5, numpy.inf, -2)},
    "norm of z": of("norm", C),
    "norm along an axis": of("norm", BLOCK, axis=1, keepdims=True),
    "norm along two axes": of("norm", BLOCK, ord=1, axis=(2, 0)),
    "vector_norm": of("vector_norm", BLOCK, axis=(0, 2), ord=3),
    "matrix_norm": of("matrix_norm", BLOCK, ord="nuc"),
    "cond": of("cond", STACK),
    "cond by sums": of("cond", A, p=1),
    "cond by squares": of("cond", A, p="fro"),
}
CONTRACTIONS = {
    "tensordot of axes": (lambda np, x, y: np.tensordot(x, y, ((2, 0), (0, 2))), (BLOCK, BLOCK.T)),
    "tensordot of a count": (lambda np, x, y: np.tensordot(x, y, 1), (X, A)),
    "inner": (lambda np, x, y: np.inner(x, y), (X, A)),
    "outer": (lambda np, x, y: np.outer(x, y), (X, C[0])),
    "vdot": (lambda np, x, y: np.vdot(x, y), (C, A)),
    "vecdot": (lambda np, x, y: np.vecdot(x, y), (C, X[0])),
    "vecdot along an axis": (lambda np, x, y: np.linalg.vecdot(x, y, axis=0), (C, A)),
    "matvec": (lambda np, x, y: np.matvec(x, y), (STACK, LINE)),
    "vecmat": (lambda np, x, y: np.vecmat(x, y), (C[0], STACK)),
    "linalg.cross": (lambda np, x, y: np.linalg.cross(x, y), (X, A[:2])),
    "linalg.outer": (lambda np, x, y: np.linalg.outer(x, y), (LINE, C[0])),
    "linalg.trace": (lambda np, x: np.linalg.trace(x, offset=1) ** 2, (STACK,)),
    "linalg.diagonal": (lambda np, x: np.linalg.diagonal(x) ** 2, (STACK,)),
    "interleaved einsum": (lambda np, x, y: np.einsum(x, [0, 1], y, [1, 2], [2, 0]), (X, A)),
    "einsum of a batch": (lambda np, x, y: np.einsum("...ij,...j->...i", x, y), (STACK, X)),
    "einsum of diagonals": (lambda np, x: np.einsum("...ii->...i", x) ** 2, (STACK,)),
    "einsum of three in order": (
        lambda np, x, y, z: np.einsum("ij,jk,kl->il", x, y, z, optimize="optimal"),
        (X, A, C),
    ),
}
SINGULAR = {
    "det of zeros": of("det", numpy.zeros((2, 2))),
    "det of low rank": of("det", numpy.diag([2.0, 0.0, 1.0])),
}
FIRST_ORDER = {"eigvals"}  # JAX has no derivative of the eigenvectors that the second one needs
LINALG = SYSTEMS | DECOMPOSED | NORMS | CONTRACTIONS | SINGULAR

"""The functions whose derivatives test_peers compares: ``FUNCTIONS``, name -> (f, arguments).

``f(np, *args)`` takes the module that it calls: NumPy, ``jax.numpy`` or ``autograd.numpy``.
"""

import numpy

from tests.peers.peer_arranging import ARRANGING
from tests.peers.peer_elementwise import LESS_FREQUENT
from tests.peers.peer_linalg import LINALG
from tests.peers.peer_selecting import SELECTING
from tests.peers.peer_statistics import STATISTICS, STATISTICS_CORNERS

X = numpy.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]])
Y = numpy.array([[1.1, 0.43, -0.7], [-0.93, 1.3, 0.8]])
P = numpy.array([[0.5, 1.25, 2.0], [1.5, 0.75, 0.625]])  # positive
U = X / 3  # between -1 and 1
V, W3 = numpy.array([0.3, -0.7, 1.9]), numpy.array([1.3, 0.2, -0.4])
ROW, COLUMN, S = Y[:1], Y[:, :1], numpy.array(1.7)
A, B = (
    numpy.linspace(-1.0, 1.3, 24).reshape(2, 3, 4),
    numpy.linspace(-0.8, 1.1, 24).reshape(2, 4, 3),
)
M = numpy.array([[2.0, 0.3, -0.5], [0.1, 1.5, 0.7], [-0.2, 0.4, 1.8]])
T = numpy.linspace(-0.8, 1.1, 12).reshape(3, 4)
Z, Q = X + 1j * Y, Y - 0.5j * X
TIES = numpy.array([[1.0, 2.0, 2.0], [3.0, 3.0, 3.0]])
ROWS, COLUMNS = numpy.array([1, 0, 1]), numpy.array([2, 1, 0])
MASK = numpy.array([[True, False, True], [False, False, True]])


def called(name: str):
    """The function of this name in each module."""
    return lambda np, *args: getattr(np, name)(*args)


# ---- the functions: name -> (function, arguments) ----

UNARY = {
    "exp exp2 expm1 sin cos tan sinh cosh tanh arctan arcsinh square negative positive": X,
    "reciprocal absolute sign floor ceil trunc rint": X,
    "log log2 log10 log1p sqrt cbrt": P,
    "arcsin arccos arctanh": U,
    "arccosh": P + 1,
}
COMPLEX_UNARY = {
    "exp sin cos tan sinh cosh tanh arctan arcsinh square negative log sqrt reciprocal": Z,
    "conjugate real imag absolute arcsin arccos arctanh": Z,
}
BINARY = "add subtract multiply divide arctan2 hypot logaddexp maximum minimum"
ELEMENTWISE = {
    **{n: (called(n), (x,)) for names, x in UNARY.items() for n in names.split()},
    **{f"{n} of z": (called(n), (z,)) for names, z in COMPLEX_UNARY.items() for n in names.split()},
    **{n: (called(n), (X, Y)) for n in BINARY.split()},
    **{f"{n} of rows": (called(n), (P, ROW)) for n in BINARY.split()},
    **{f"{n} of a column and a row": (called(n), (COLUMN, V)) for n in BINARY.split()},
    **{f"{n} of z": (called(n), (Z, Q)) for n in ["add", "subtract", "multiply", "divide"]},
    "power": (called("power"), (P, Y)),
    "power of a row": (called("power"), (P, V)),
    "power of an integer": (lambda np, x: x**3, (X,)),
    "square root as a power": (lambda np, x: x**0.5, (P,)),
    "power of 0": (lambda np, x: x**2, (X * 0,)),
    "exponent of a number": (lambda np, x: 2.0**x, (X,)),
    "remainder": (called("remainder"), (X, Y)),
    "0-d with an array": (lambda np, s, x: s * x + x / s, (S, X)),
    "mixed real and complex": (lambda np, x, z: x * z + z / (x + 3), (X, Q)),
    "abs squared of z": (lambda np, z: np.abs(z) ** 2, (Z,)),
    "real part of a product": (lambda np, z, w: np.real(z * np.conj(w)), (Z, Q)),
    "phase": (lambda np, z: np.arctan2(np.imag(z), np.real(z)), (Z,)),
}
CHOICES = {
    "where": (lambda np, x, y: np.where(MASK, x, y), (X, Y)),
    "where of a comparison": (lambda np, x: np.where(x > 0.6, x * x, np.sin(x)), (X,)),
    "where of a row": (lambda np, x, v: np.where(x > 0, v, x), (X, V)),
    "where keeps nan apart": (
        lambda np, x: np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), 0.0),
        (X,),
    ),
    "clip": (lambda np, x: np.clip(x, -0.7, 1.6), (X,)),
    "relu": (lambda np, x: np.maximum(x, 0.0), (X,)),
    "leaky relu": (lambda np, x: np.where(x > 0, x, 0.1 * x), (X,)),
    "hard choice of two": (lambda np, x, y: np.minimum(np.maximum(x, y), 1.0), (X, Y)),
}
REDUCTIONS = {
    **{n: (called(n), (P,)) for n in ["sum", "mean", "prod", "max", "min"]},
    **{
        f"{n} along {axis}{' kept' * kept}": (
            lambda np, x, n=n, axis=axis, kept=kept: getattr(np, n)(x, axis=axis, keepdims=kept),
            (A + 2,),
        )
        for n in ["sum", "mean", "prod", "max", "min"]
        for axis, kept in ((1, False), (-1, True))
    },
    "sum along (0, 2)": (lambda np, x: np.sum(x, axis=(0, 2)), (A,)),
    "mean along (0, 2)": (lambda np, x: np.mean(x, axis=(0, 2)), (A,)),
    "sum of z": (lambda np, z: np.sum(z, axis=0), (Z,)),
    "mean of z": (lambda np, z: np.mean(z, axis=1), (Z,)),
    "prod with a zero": (lambda np, x: np.prod(x, axis=1), (X * (X > 0.6),)),
    "max with ties": (lambda np, x: np.max(x, axis=1), (TIES,)),
    "min with ties": (lambda np, x: np.min(x), (TIES,)),
    "cumsum": (lambda np, x: np.cumsum(x), (X,)),
    "cumsum along 0": (lambda np, x: np.cumsum(x, axis=0), (X,)),
    "cumsum of a product": (lambda np, x, y: np.cumsum(x * y, axis=1), (X, Y)),
    "var": (lambda np, x: np.mean((x - np.mean(x, axis=0)) ** 2, axis=0), (X,)),
    "std": (lambda np, x: np.sqrt(np.mean((x - np.mean(x)) ** 2)), (X,)),
    "norm": (lambda np, x: np.sqrt(np.sum(x * x)), (X,)),
    "norm of z": (lambda np, z: np.sqrt(np.sum(np.abs(z) ** 2)), (Z,)),
}
INDEXING = {
    "row": (lambda np, x: x[1], (X,)),
    "last element": (lambda np, x: x[-1, -1] * x, (X,)),
    "slices": (lambda np, x: x[:, 1:] * x[:, :-1], (X,)),
    "steps back": (lambda np, x: x[::-1, ::2], (X,)),
    "new axis": (lambda np, x: x[:, None] - x[None], (V,)),
    "ellipsis": (lambda np, x: x[..., 1:3] ** 2, (A,)),
    "repeated rows": (lambda np, x: x[ROWS] ** 2, (X,)),
    "pairs of places": (lambda np, x: np.sin(x[ROWS, COLUMNS]), (X,)),
    "repeated columns": (lambda np, x: x[:, COLUMNS] * x[:, ROWS], (X,)),
    "places apart": (lambda np, x: x[ROWS, :, COLUMNS], (A,)),
    "table of places": (lambda np, x: x[numpy.array([[0, 1], [1, 1]])], (X,)),
    "mask": (lambda np, x: x[MASK] ** 2, (X,)),
    "mask of rows": (lambda np, x: x[numpy.array([True, False])], (X,)),
    "windows": (lambda np, x: sum(x[i : i + 2] * (i + 1) for i in range(2)) * x[:2], (V,)),
    "one by one": (lambda np, x: sum(x[i] * x[(i + 1) % 3] for i in range(3)), (V,)),
    "gates": (lambda np, x: np.tanh(x[:, :2]) * np.sin(x[:, 2:]), (T,)),
}
SHAPES = {
    "reshape": (lambda np, x: np.reshape(x, (3, 2)) ** 2, (X,)),
    "ravel": (lambda np, x: np.ravel(x) ** 2, (X,)),
    "transpose": (lambda np, x: np.transpose(x) ** 2, (X,)),
    "permuted axes": (lambda np, x: np.transpose(x, (2, 0, 1)) ** 2, (A,)),
    "moveaxis": (lambda np, x: np.moveaxis(x, 0, -1) ** 2, (A,)),
    "swapaxes": (lambda np, x: np.swapaxes(x, 0, 2) ** 2, (A,)),
    "expand_dims": (lambda np, x: np.expand_dims(x, 1) * x, (X,)),
    "squeeze": (lambda np, x: np.squeeze(x[:1], 0) ** 2, (X,)),
    "broadcast_to": (lambda np, x: np.broadcast_to(x, (4, 3)) * T.T[:, :3], (V,)),
    "concatenate": (lambda np, x, y: np.concatenate([x, y * y, x], axis=0), (X, Y)),
    "concatenate along 1": (lambda np, x, y: np.concatenate([x, y[:, :1]], axis=1) ** 2, (X, Y)),
    "stack": (lambda np, x, y: np.stack([x, x * y], axis=1), (X, Y)),
    "split": (lambda np, x: np.multiply(*np.split(x, 2, axis=2)), (A,)),
    "split at": (lambda np, x: np.split(x, [1, 3], axis=2)[1] ** 2, (A,)),
    "array_split": (lambda np, x: np.array_split(x, 2, axis=0)[0] * 3.0, (T,)),
    "flip": (lambda np, x: np.flip(x, 1) * x, (X,)),
    "pad": (lambda np, x: np.pad(x, ((1, 0), (0, 2)), "constant") ** 2, (X,)),
    "copy": (lambda np, x: np.copy(x) * x, (X,)),
    "cast to single and back": (lambda np, x: x.astype("float32").astype("float64") * x, (X,)),
}
PRODUCTS = {
    "matmul": (lambda np, x, y: x @ y, (X, T)),
    "vector by matrix": (lambda np, x, y: x @ y, (V, T)),
    "matrix by vector": (lambda np, x, y: x @ y, (X, V)),
    "inner product": (lambda np, x, y: x @ y, (V, W3)),
    "stacks of matrices": (lambda np, x, y: x @ y, (A, B)),
    "stack by one matrix": (lambda np, x, y: x @ y, (A, B[0])),
    "one matrix by stack": (lambda np, x, y: x @ y, (T, B)),
    "stack by vector": (lambda np, x, y: x @ y, (B, V)),
    "vector by stack": (lambda np, x, y: x @ y, (V, A)),
    "matmul of z": (lambda np, x, y: x @ y, (Z, Q.T)),
    "matmul of real and z": (lambda np, x, y: x @ y, (X, Q.T)),
    "matmul with itself": (lambda np, x: x @ x @ x, (M,)),
    "dot": (lambda np, x, y: np.dot(x, y), (X, T)),
    "dot of vectors": (lambda np, x, y: np.dot(x, y), (V, W3)),
    "dot of ranks 3 and 2": (lambda np, x, y: np.dot(x, y), (B, T)),
    "dot with a number": (lambda np, x, s: np.dot(x, s), (X, S)),
    "outer product": (lambda np, x, y: np.einsum("i,j->ij", x, y), (V, W3)),
    "einsum of matrices": (lambda np, x, y: np.einsum("ij,jk->ik", x, y), (X, T)),
    "einsum of stacks": (lambda np, x, y: np.einsum("bij,bjk->bik", x, y), (A, B)),
    "einsum with a transpose": (lambda np, x, y: np.einsum("ij,kj->ki", x, y), (X, Y)),
    "einsum to a number": (lambda np, x, y: np.einsum("ij,ij->", x, y), (X, Y)),
    "einsum of three": (lambda np, x, y, m: np.einsum("ai,ij,bj->ab", x, m, y), (X, Y, M)),
    "trace": (lambda np, x: np.einsum("ii->", x) * x, (M,)),
    "diagonal": (lambda np, x: np.einsum("ii->i", x) ** 2, (M,)),
    "sums of an einsum": (lambda np, x: np.einsum("abc->b", x) ** 2, (A,)),
    "einsum with dots": (lambda np, x, y: np.einsum("...ij,jk->...ik", x, y), (A, B[0])),
    "bilinear form": (lambda np, x, m, y: x @ m @ y, (V, M, W3)),
    "tensordot": (lambda np, x, y: np.einsum("aij,ijb->ab", x, y), (A, T[:, :, None] * V)),
}


# ---- composites and small models ----


def logsumexp(np, x, axis=-1):
    """log(sum(exp(x))), with the maximum subtracted first."""
    top = np.max(x, axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.sum(np.exp(x - top), axis=axis))


def softmax(np, x, axis=-1):
    """exp(x) with sum 1."""
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def sigmoid(np, x):
    """1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def layer_norm(np, x, scale, shift):
    """Rows of mean 0 and variance 1, scaled and shifted."""
    centered = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centered**2, axis=-1, keepdims=True)
    return centered / np.sqrt(variance + 1e-5) * scale + shift


def batch_norm(np, x, scale):
    """Columns of mean 0 and variance 1, scaled."""
    centered = x - np.mean(x, axis=0)
    return centered * (np.mean(centered * centered, axis=0) + 1e-3) ** -0.5 * scale


def mlp(np, x, w1, b1, w2):
    """Two layers with tanh, and the mean of squares."""
    return np.mean((np.tanh(x @ w1 + b1) @ w2) ** 2)


def rnn(np, w, u, xs):
    """A recurrent network along the rows."""
    h = xs[0] * 0
    for x in xs:
        h = np.tanh(w @ x + u @ h)
    return h


def lstm(np, w, u, xs):
    """A small LSTM, whose gates are cut from one product."""
    h = c = xs[0][:2] * 0
    for x in xs:
        gates = x @ w + h @ u
        i, f, o = (sigmoid(np, gates[2 * k : 2 * k + 2]) for k in range(3))
        c = f * c + i * np.tanh(gates[6:])
        h = o * np.tanh(c)
    return h


def attention(np, q, k, v):
    """Scaled dot-product attention."""
    return softmax(np, q @ np.swapaxes(k, -1, -2) / 2.0) @ v


def gmm(np, weights, means, x):
    """The log likelihood of a mixture of round Gaussians."""
    apart = np.sum((x[:, None] - means[None]) ** 2, axis=2)
    return np.sum(logsumexp(np, weights - 0.5 * apart)) - 2 * logsumexp(np, weights)


def convolution(np, x, kernel):
    """A sum of shifted rows."""
    return sum(x[i : i + 8] * kernel[i] for i in range(3))


def newton(np, x):
    """Square roots by iteration."""
    y = x * 0 + 1.0
    for _ in range(5):
        y = 0.5 * (y + x / y)
    return y


def cross_entropy(np, x):
    """Cross entropy of rows of logits at fixed labels."""
    return -np.mean((x - logsumexp(np, x)[:, None])[numpy.arange(2), numpy.array([2, 0])])


SERIES, KERNEL = numpy.linspace(-1.0, 1.0, 10) ** 3, numpy.array([0.2, -0.5, 0.9])
W8 = numpy.linspace(-0.6, 0.7, 24).reshape(3, 8)
MODELS = {
    "logsumexp": (logsumexp, (X,)),
    "softmax": (softmax, (X,)),
    "sigmoid": (sigmoid, (X,)),
    "softplus": (lambda np, x: np.logaddexp(x, 0.0), (X,)),
    "gelu": (lambda np, x: 0.5 * x * (1 + np.tanh(0.8 * (x + 0.044715 * x**3))), (X,)),
    "swish": (lambda np, x: x * sigmoid(np, x), (X,)),
    "layer norm": (layer_norm, (X, V, W3)),
    "batch norm": (batch_norm, (T, T[0])),
    "mlp": (mlp, (X, T, T[0], B[0])),
    "rnn": (rnn, (M / 3, M.T / 4, X)),
    "lstm": (lstm, (W8, W8[:2] * 0.7, X)),
    "attention": (attention, (A, A * 0.5, A**2)),
    "gmm": (gmm, (V, M, X)),
    "convolution": (convolution, (SERIES, KERNEL)),
    "newton": (newton, (P,)),
    "cross entropy": (cross_entropy, (X,)),
    "rosenbrock": (
        lambda np, x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2),
        (SERIES,),
    ),
    "quadratic form": (lambda np, x, m: 0.5 * (x @ (m @ x)), (V, M)),
    "cosine similarity": (
        lambda np, x, y: x @ y / (np.sqrt(x @ x) * np.sqrt(y @ y)),
        (V, W3),
    ),
    "pairwise distances": (
        lambda np, x: np.sqrt(np.sum((x[:, None] - x[None]) ** 2, axis=2) + 1e-3),
        (X,),
    ),
    "huber loss": (
        lambda np, x: np.sum(np.where(np.abs(x) < 1, 0.5 * x * x, np.abs(x) - 0.5)),
        (X,),
    ),
    "kl divergence": (lambda np, p, q: np.sum(p * (np.log(p) - np.log(q))), (P, P[::-1])),
    "power spectrum": (
        lambda np, z: np.abs(np.exp(1j * numpy.arange(3)[:, None] * V) @ z.T) ** 2,
        (Z,),
    ),
    "horner": (lambda np, x, c: ((c[0] * x + c[1]) * x + c[2]) * x, (X, V)),
}
ZEROS = numpy.array([0.0, -0.0, 1.0])
CORNERS = {
    **STATISTICS_CORNERS,
    "abs at 0": (lambda np, x: np.abs(x), (ZEROS,)),
    "abs of z at 0": (lambda np, z: np.abs(z), (ZEROS + 0j,)),
    "sign at 0": (lambda np, x: np.sign(x), (ZEROS,)),
    "relu at 0": (lambda np, x: np.maximum(x, 0.0), (ZEROS,)),
    "relu of where at 0": (lambda np, x: np.where(x > 0, x, 0.0), (ZEROS,)),
    "maximum of equals": (lambda np, x, y: np.maximum(x, y), (ZEROS, ZEROS)),
    "minimum of equals": (lambda np, x, y: np.minimum(x, y), (ZEROS, ZEROS)),
    "clip at its bounds": (lambda np, x: np.clip(x, 0.0, 1.0), (ZEROS,)),
    "hypot at 0": (lambda np, x, y: np.hypot(x, y), (ZEROS, ZEROS)),
    "norm at 0": (lambda np, x: np.sqrt(np.sum(x * x)), (ZEROS * 0,)),
    "root of 0": (lambda np, x: np.sqrt(x), (ZEROS,)),
    "0 to the power of 0": (lambda np, x, y: x**y, (ZEROS, ZEROS * 0)),
    "0 to positive powers": (lambda np, x, y: x**y, (ZEROS, V**2 + 1)),
    "negative bases": (lambda np, x: x**3.0, (V,)),
    "negative bases and exponents": (lambda np, x: x**-2, (V,)),
    "logaddexp of equals": (lambda np, x, y: np.logaddexp(x, y), (ZEROS, ZEROS)),
    "logaddexp of infinities": (lambda np, x, y: np.logaddexp(x, y), (ZEROS - numpy.inf, ZEROS)),
    "logsumexp of infinities": (logsumexp, (numpy.array([-numpy.inf, 0.0, 1.0]),)),
    "max of equals": (lambda np, x: np.max(x), (ZEROS * 0,)),
    "prod of two zeros": (lambda np, x: np.prod(x), (ZEROS,)),
    "arctan2 on the negative axis": (lambda np, y, x: np.arctan2(y, x), (ZEROS, ZEROS - 2)),
    "remainder of multiples": (lambda np, x: np.remainder(x * 2, 1.0), (ZEROS,)),
}
FUNCTIONS = (
    ARRANGING
    | LINALG
    | STATISTICS
    | SELECTING
    | LESS_FREQUENT
    | ELEMENTWISE
    | CHOICES
    | REDUCTIONS
    | INDEXING
    | SHAPES
    | PRODUCTS
    | MODELS
    | CORNERS
)

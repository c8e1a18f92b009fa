"""Functions that arrange, take, sort and pad, for test_peers: ``ARRANGING``."""

import numpy

X = numpy.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]])
Y = numpy.array([[1.1, 0.43, -0.7], [-0.93, 1.3, 0.8]])
V, W = X[0], Y[1]
P = numpy.array([0.5, 1.25, 2.0])
A = numpy.linspace(-1.0, 1.3, 24).reshape(2, 3, 4)
M = numpy.array([[2.0, 0.3, -0.5], [0.1, 1.5, 0.7], [-0.2, 0.4, 1.8]])
Z = X + 1j * Y
PLACES = numpy.array([2, 0, 0, 1])
TABLE = numpy.array([[2, 0, 1], [0, 0, 2]])
MODES = ("edge", "reflect", "symmetric", "wrap", "linear_ramp", "maximum", "mean", "minimum")

ARRANGING = {
    "roll": (lambda np, x: np.roll(x, (1, 2), (0, 1)) * x, (X,)),
    "roll of all": (lambda np, x: np.roll(x, -2) * x, (X,)),
    "tile": (lambda np, x: np.tile(x, (2, 2)) ** 2, (X,)),
    "repeat": (lambda np, x: np.repeat(x, 2, axis=1) ** 2, (X,)),
    "repeat with counts": (lambda np, x: np.repeat(x, numpy.array([2, 0, 1]), axis=1) ** 2, (X,)),
    "tril": (lambda np, x: np.tril(x, -1) @ x, (M,)),
    "triu": (lambda np, x: np.triu(x, 1) ** 2, (A,)),
    "diagonal of an array": (lambda np, x: np.diagonal(x, 1, 0, 2) ** 2, (A,)),
    "trace of an array": (lambda np, x: np.trace(x, -1, 1, 2) ** 2, (A,)),
    "diag": (lambda np, v: np.diag(v, 1) ** 2, (V,)),
    "diag of a matrix": (lambda np, x: np.diag(x) ** 2, (M,)),
    "diagflat": (lambda np, x: np.diagflat(x) ** 2, (X,)),
    "take": (lambda np, x: np.take(x, PLACES, axis=1) ** 2, (X,)),
    "take that wraps": (lambda np, x: np.take(x, PLACES - 4, axis=1, mode="wrap") ** 2, (X,)),
    "take_along_axis": (lambda np, x: np.take_along_axis(x, TABLE, axis=1) ** 2, (X,)),
    "choose": (lambda np, x, y: np.choose(PLACES[:3] % 2, [x, y]) ** 2, (V, W)),
    "sort": (lambda np, x: np.sort(x, axis=1) * x, (X,)),
    "sort of all": (lambda np, x: np.sort(x, axis=None) ** 2, (X,)),
    "partition": (lambda np, x: np.partition(x, 1, axis=1) * x, (X,)),
    "order by argsort": (lambda np, x, y: np.take_along_axis(y, np.argsort(x), 1) ** 2, (X, Y)),
    "top two": (lambda np, x: np.sort(x)[:, -2:] ** 2, (X,)),
    **{
        f"pad {mode}": (lambda np, x, m=mode: np.pad(x, ((2, 1), (0, 4)), mode=m) ** 2, (X,))
        for mode in MODES
    },
    "pad reflect odd": (
        lambda np, x: np.pad(x, ((0, 0), (2, 3)), mode="reflect", reflect_type="odd") ** 2,
        (X,),
    ),
    "linspace": (lambda np, x, y: np.linspace(x, y, 4) ** 2, (X, Y)),
    "linspace without its end": (
        lambda np, x, y: np.linspace(x, y, 3, endpoint=False, axis=-1) ** 2,
        (X, Y),
    ),
    "logspace": (lambda np, x, y: np.logspace(x / 3, y, 3), (V, W)),
    "geomspace": (lambda np, x, y: np.geomspace(x, y, 4), (P, P + 1)),
    "rot90": (lambda np, x: np.rot90(x, 3) ** 2, (X,)),
    "rollaxis": (lambda np, x: np.rollaxis(x, 2) ** 2, (A,)),
    "vstack": (lambda np, x, v: np.vstack([x, v]) ** 2, (X, V)),
    "hstack": (lambda np, x, y: np.hstack([x, y]) ** 2, (X, Y)),
    "dstack": (lambda np, x, y: np.dstack([x, y]) ** 2, (X, Y)),
    "column_stack": (lambda np, v, w: np.column_stack([v, w]) ** 2, (V, W)),
    "block": (lambda np, x, y: np.block([[x, y], [y, x]]) ** 2, (X, Y)),
    "append": (lambda np, x, y: np.append(x, y, axis=1) ** 2, (X, Y)),
    "insert": (lambda np, x, v: np.insert(x, 1, v, axis=0) ** 2, (X, V)),
    "delete": (lambda np, x: np.delete(x, 1, axis=1) ** 2, (X,)),
    "resize": (lambda np, x: np.resize(x, (2, 4)) ** 2, (X,)),
    "hsplit": (lambda np, x: np.hsplit(x, 3)[1] ** 2, (X,)),
    "meshgrid": (lambda np, v, w: np.multiply(*np.meshgrid(v, w, indexing="ij")), (V, W)),
    "select": (lambda np, x, y: np.select([x > 1, y > 0], [x * y, y**2], 0.0), (X, Y)),
    "piecewise": (lambda np, x: np.piecewise(x, [x < 0, x >= 0], [np.sin, np.exp]), (V,)),
    "apply_along_axis": (lambda np, x: np.apply_along_axis(lambda r: r * r.sum(), 1, x), (X,)),
    "sort of z by hand": (lambda np, z: z[:, numpy.array([2, 0, 1])] ** 2, (Z,)),
    "roll of z": (lambda np, z: np.roll(z, 1, axis=1) * z, (Z,)),
}

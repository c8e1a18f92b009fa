"""``SAMPLES``: inputs on which every operation is tested. Adding an operation is its record and its samples here.

A ``Sample`` holds the operands and the attributes of one bind, small and concrete. Together the samples of a record
cover 0-d, empty and broadcast operands, negative axes and tuples of them, ``keepdims``, masks, ties, Python numbers,
single and half precision, integers, and complex numbers where the operation takes them. Where derivatives exist they
exist at the sample, and agree with differences, unless it is ``rough``.
"""

import itertools
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from letir.ast.attrs import NO_ATTRS, Attrs, Here
from letir.ast.builder import LetBuilder
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.terms import Const, Lambda
from letir.ast.types import PYTHON_NUMBERS, ArrayType, Undef
from letir.eval.arrays import type_of


@frozen(eq=False)
class Sample:
    """Operands (arrays, NumPy scalars, Python numbers, None, ``Undef``) and attributes of one operation.

    ``rough``: the derivative rule need not agree with differences here, at a tie or by the operation's purpose.
    """

    args: tuple
    attrs: Attrs = field(default=NO_ATTRS, converter=Attrs)
    rough: bool = False


def of(*args, **attrs) -> Sample:
    """A sample with these operands and attributes."""
    return Sample(args, attrs)


def rough(*args, **attrs) -> Sample:
    """A sample whose derivative is a convention."""
    return Sample(args, attrs, rough=True)


def applied(op: Primitive, sample: Sample, *, constants: bool = False) -> tuple[Lambda, list]:
    """(program, arguments): the program of the one bind that applies ``op`` to the sample.

    Python numbers are weak parameters, or, with ``constants``, constants in the bind.
    """
    builder, operands, given = LetBuilder(), [], []
    for arg in sample.args:
        if arg is None or arg is Undef or (constants and type(arg) in PYTHON_NUMBERS):
            operands.append(Const(arg))
        else:
            operands.append(builder.param(type_of(arg)).arg)
            given.append(arg)
    return builder.build(builder.emit(op, tuple(operands), op.complete(sample.attrs))), given


# ---- arrays of which samples are made ----

X = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]])
Y = np.array([[1.1, 0.4, -0.7], [-0.9, 1.3, 0.8]])
POSITIVE = np.array([[0.5, 1.25, 2.0], [1.5, 0.75, 0.625]])
BLOCK = np.linspace(-1.0, 1.3, 24).reshape(2, 3, 4)
Z = X + 1j * Y
W = Y - 0.5j * X
INTEGERS = np.array([[3, 1, 2], [5, 4, 7]])
BOOLEANS = np.array([[True, False, True], [False, False, True]])
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5])
EMPTY = np.zeros((0, 3))
F16, F32, C64 = np.float16, np.float32, np.complex64


def narrow(samples: list[Sample]) -> list[Sample]:
    """The same with operands of single and half precision."""
    made = []
    for sample, dtype in itertools.product(samples, (F32, F16)):
        args = tuple([a.astype(dtype) if hasattr(a, "dtype") and a.dtype == float else a for a in sample.args])
        made.append(evolve(sample, args=args))
    return made


def points(a: float, b: float, *, integer: int = 1, has_complex: bool = True) -> list[Sample]:
    """Samples of a function of one array that is smooth around ``a`` and ``b`` and takes ``integer``."""
    row = np.array([a, b, 0.5 * (a + b)])
    found = [of(row), of(row[0]), of(np.array(b)), of(a), of(EMPTY), *narrow([of(row)])]
    found += [of(np.full(2, integer)), of(np.full((2, 1), integer, np.int8)), of(integer)]
    if has_complex:
        found += [of(np.array([[a + 0.25j], [b - 0.125j]])), of(C64(a + 0.5j)), of(complex(b, 0.5))]
    return found


def couples(x, y, *, has_complex: bool = True, integers=((INTEGERS, np.array([2, 3, 4])),)) -> list[Sample]:
    """Samples of a function of two arrays of shape (2, 3) that is smooth around ``x`` and ``y``."""
    found = [of(x, y), of(x[:, :1], y[0]), of(x[0, 0], y), of(x[0, 1], y[1, 0]), of(x[:, :0], y[:1, :0])]
    found += [of(x, float(y[0, 0])), of(float(x[0, 0]), y[1]), of(2, y[0]), of(x[1], 3), of(float(x[1, 0]), 2)]
    found += [*narrow([of(x, y[0]), of(x[0], float(y[0, 1]))]), of(x.astype(F32), y), of(x[0].astype(F16), y.astype(F32))]
    found += [sample for pair in integers for sample in (of(*pair), of(pair[0], y), of(pair[0].astype(np.int8), 2))]
    if has_complex:
        found += [of(x + 0.25j, y - 0.5j), of(x + 0.25j, y[:1]), of(x[0], 0.5 + 1j), of((x + 1j).astype(C64), y[0])]
    return found


COMPARED = [
    *couples(X, Y),
    *(of(X, X), of(SPECIAL, SPECIAL[::-1].copy()), of(BOOLEANS, BOOLEANS[:1]), of(INTEGERS.astype(np.uint8), 3), of(2, 3)),
]
TESTED = [of(X), of(SPECIAL), of(INTEGERS), of(BOOLEANS[0, 0]), of(Z), of(0.5), of(EMPTY), *narrow([of(SPECIAL)])]
BITS = [
    *(of(INTEGERS, INTEGERS[:1]), of(INTEGERS, 3), of(np.int8(3), np.array([1, -2], np.int16)), of(BOOLEANS, BOOLEANS[0])),
    *(of(BOOLEANS, INTEGERS), of(np.uint8(7), np.array(3)), of(INTEGERS[:0], 1), of(BOOLEANS, True), of(2, 3)),
]
ROUNDED = [of(np.array([0.4, -1.6, 2.7])), of(np.float64(-0.3)), of(1.2), of(EMPTY), of(INTEGERS), *narrow([of(X * 1.1)])]

ELEMENTWISE = {
    "add": [*couples(X, Y), of(BOOLEANS, BOOLEANS), of(2, 3)],
    "sub": couples(X, Y),
    "mul": [*couples(X, Y), of(BOOLEANS, X)],
    "div": couples(X, Y),
    "neg": points(0.5, -1.5),
    "positive": points(0.5, -1.5),
    "floor_divide": couples(X, Y, has_complex=False),
    "remainder": couples(X + 3.05, Y, has_complex=False),
    "power": [*couples(POSITIVE, Y), of(X, 2), of(X, 3.0), of(X, np.array(2)), rough(np.zeros(2), 0), rough(np.zeros(2), Y[:1, :2])],
    "maximum": [*couples(X, Y), rough(X, X), rough(X, 0.5), of(INTEGERS, INTEGERS)],
    "minimum": [*couples(X, Y), rough(X, X), rough(X, 0.5), of(INTEGERS, INTEGERS)],
    "exp": points(0.5, -1.5),
    "exp2": points(0.5, -1.5),
    "expm1": points(0.5, -1.5),
    "log": points(0.5, 2.5),
    "log2": points(0.5, 2.5),
    "log10": points(0.5, 2.5),
    "log1p": points(0.5, -0.5),
    "logaddexp": [*couples(X, Y, has_complex=False), of(np.array([-np.inf, 900.0]), np.array([1.0, 800.0]))],
    "sqrt": points(0.5, 2.5),
    "cbrt": points(0.5, -2.5, has_complex=False),
    "square": points(0.5, -1.5),
    "reciprocal": points(0.5, -1.5),
    "sin": points(0.5, -1.5),
    "cos": points(0.5, -1.5),
    "tan": points(0.5, -1.25),
    "arcsin": points(0.5, -0.75),
    "arccos": points(0.5, -0.75),
    "arctan": points(0.5, -1.5),
    "arctan2": couples(X, Y, has_complex=False),
    "hypot": [*couples(X, Y, has_complex=False), rough(np.zeros(2), np.array([0.0, 1.0]))],
    "sinh": points(0.5, -1.5),
    "cosh": points(0.5, -1.5),
    "tanh": points(0.5, -1.5),
    "arcsinh": points(0.5, -1.5),
    "arccosh": points(1.5, 2.5, integer=2),
    "arctanh": points(0.5, -0.75, integer=0),
    **{name: ROUNDED for name in ("floor", "ceil", "trunc", "rint")},
    "sign": [*points(0.5, -1.5), rough(np.zeros(2)), rough(np.zeros(2, complex))],
    "abs": [*points(0.5, -1.5), rough(np.zeros(2)), rough(np.zeros(2, complex))],
    "conj": points(0.5, -1.5),
    "real": points(0.5, -1.5),
    "imag": points(0.5, -1.5),
    **{name: COMPARED for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")},
    **{name: COMPARED for name in ("logical_and", "logical_or", "logical_xor")},
    "logical_not": TESTED,
    **{name: BITS for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    "invert": [of(INTEGERS), of(BOOLEANS), of(np.uint8(3)), of(2), of(INTEGERS[:0])],
    **{name: TESTED for name in ("isnan", "isinf", "isfinite")},
    "where": [
        *(of(BOOLEANS, *sample.args) for sample in couples(X, Y)[:1]),
        *(of(X > 0, X, 0.0), of(X[0] > 0, 1.0, Y), of(np.bool_(True), X, Y[0]), of(BOOLEANS[:, :1], X[0], Y[0, 0])),
        *(of(BOOLEANS[0], SPECIAL[:3], X), of(BOOLEANS, Z, Y), of(BOOLEANS, INTEGERS, X), of(BOOLEANS, INTEGERS, 0)),
        *(of(INTEGERS - 3, X, Y), of(BOOLEANS[:, :0], X[:, :0], 1.0), *narrow([of(BOOLEANS, X, 2.0), of(BOOLEANS, X, Y)])),
        of(BOOLEANS, 1.0, 2.0),
    ],
    "clip": [
        *(of(X, -1.0, 1.0), of(X, None, 1.0), of(X, -1.0, None), of(X, Y - 1, Y + 1), of(X, Y[0] - 1, None), of(X[0, 0], -1, 1)),
        *(of(EMPTY, 0.0, 1.0), of(INTEGERS, 2, 4), of(INTEGERS, 1.5, 4.5), *narrow([of(X, -1.0, 1.0), of(X, Y - 1, None)])),
        *(of(0.5, 0.0, 1.0), rough(X, 0.5, 1.5), rough(X, 1.0, -1.0), of(X[:, :1], Y[0] - 1, 2.0)),
    ],
    "cast": [
        *(of(X, dtype=np.dtype(name)) for name in ("float64", "float32", "float16", "complex128", "int64", "bool")),
        *(of(INTEGERS, dtype=np.dtype(float)), of(BOOLEANS, dtype=np.dtype(float)), of(Z, dtype=np.dtype(C64))),
        *(of(2.5, dtype=np.dtype(F32)), of(2, dtype=np.dtype(float)), of(X[0, 0], dtype=np.dtype(F32))),
        *(of(np.array(0.5), dtype=np.dtype(complex)), of(EMPTY, dtype=np.dtype(F32)), of(X.astype(F32), dtype=np.dtype(float))),
    ],
    "weaken": [of(np.float64(0.5)), of(F32(0.5)), of(np.int64(3)), of(np.bool_(True)), of(np.complex128(1 + 2j)), of(0.5), of(2)],
    "copy": [of(X), of(X[0, 0]), of(np.array(0.5)), of(0.5), of(EMPTY), of(Z), of(INTEGERS), *narrow([of(X)])],
    "stop_gradient": [rough(X), rough(X[0, 0]), rough(0.5), of(INTEGERS), rough(Z), rough(EMPTY), *narrow([rough(X)])],
}

# ---- shapes ----

SIZES = {
    "size": [of(X), of(X[0, 0]), of(0.5), of(EMPTY), of(INTEGERS), of(Z)],
    "sum_to_size": [
        *(of(X, shape=shape) for shape in ((2, 3), (3,), (2, 1), (1, 3), (1, 1), (1,), ())),
        *(of(EMPTY, shape=(3,)), of(EMPTY, shape=(1, 3)), of(BLOCK, shape=(3, 1)), of(Z, shape=(3,)), of(INTEGERS, shape=())),
        *(of(X, np.array([3]), shape=None), of(X, np.array([2, 1]), shape=(2, 1)), *narrow([of(X, shape=(3,))])),
    ],
    "broadcast_to": [
        *(of(X[0], shape=(2, 3)), of(X[:, :1], shape=(2, 2, 3)), of(X[0, 0], shape=(2,)), of(0.5, shape=(3,)), of(X, shape=(2, 3))),
        *(of(X[:1], shape=(0, 3)), of(X[0, 0], shape=()), of(Z[0], shape=(2, 3)), of(INTEGERS[0], shape=(1, 3))),
        *(of(X[0], np.array([2, 3]), shape=None), *narrow([of(X[0], shape=(2, 3))])),
    ],
    "reshape": [
        *(of(X, shape=shape) for shape in ((3, 2), (-1,), (6,), (2, -1, 1), (2, 3))),
        *(of(X[0, 0], shape=(1, 1)), of(X[:1, :1], shape=()), of(EMPTY, shape=(3, 0)), of(0.5, shape=(1,)), of(X, shape=(3, 2), order="F")),
        *(of(Z, shape=(3, -1)), of(INTEGERS, shape=(-1,)), of(X, np.array([6]), shape=None), *narrow([of(X, shape=(6,))])),
    ],
    "zeros": [of(shape=(2, 3), dtype=np.dtype(float)), of(shape=(), dtype=np.dtype(F32)), of(np.array([2]), shape=None, dtype=np.dtype(int))],
    "ones": [of(shape=(2, 0), dtype=np.dtype(complex)), of(shape=(), dtype=np.dtype(bool)), of(np.array([2]), shape=(2,), dtype=np.dtype(F16))],
    "full": [
        *(of(0.5, shape=(2, 3), dtype=np.dtype(float)), of(X[0], shape=(2, 3), dtype=np.dtype(float)), of(2, shape=(), dtype=np.dtype(F32))),
        *(of(X[0, 0], shape=(3,), dtype=np.dtype(F32)), of(np.int64(2), shape=(0,), dtype=np.dtype(int)), of(0.5, shape=(2,), dtype=np.dtype(complex))),
        of(X[0, 0], np.array([2, 2]), shape=None, dtype=np.dtype(float)),
    ],
    "eye": [of(n=2, m=3, k=k, dtype=np.dtype(dtype)) for k, dtype in ((0, float), (1, F32), (-1, bool))],
    "arange": [
        *(of(start=0, stop=5, step=1, dtype=np.dtype(int)), of(start=0.5, stop=2.0, step=0.5, dtype=np.dtype(float))),
        *(of(start=5, stop=0, step=-2, dtype=np.dtype(F32)), of(start=3, stop=3, step=1, dtype=np.dtype(int))),
    ],
}


def constants() -> list[Sample]:
    """Frozen arrays and scalars as attributes."""
    arrays = [array.copy() for array in (X, EMPTY, Z, BOOLEANS, SPECIAL, INTEGERS.astype(np.uint8), np.array(0.5))]
    for array in arrays:
        array.flags.writeable = False
    return [of(value=value) for value in (*arrays, np.float64(0.5), F32(-0.0), np.int64(3))]


MOVES = {
    "transpose": [
        *(of(BLOCK), of(BLOCK, axes=(1, 2, 0)), of(BLOCK, axes=(-1, 0, -2)), of(X), of(X[0]), of(X[0, 0]), of(EMPTY)),
        *(of(Z), of(INTEGERS, axes=(1, 0)), of(0.5), *narrow([of(BLOCK, axes=(0, 2, 1))])),
    ],
    "expand_dims": [
        *(of(X, axis=axis) for axis in (0, -1, 1, (0, 2), (-1, 0))),
        *(of(X[0, 0], axis=0), of(EMPTY, axis=-2), of(0.5, axis=(0, 1)), of(Z, axis=1), of(INTEGERS, axis=0), *narrow([of(X, axis=1)])),
    ],
    "squeeze": [
        *(of(X[:1, :, None], axis=axis) for axis in (None, 0, -1, (0, 2))),
        *(of(X[0, 0]), of(X[:1, :1]), of(EMPTY[:, :1], axis=1), of(Z[:1]), of(INTEGERS[:1], axis=0), *narrow([of(X[:1])])),
    ],
    "flip": [
        *(of(X, axis=axis) for axis in (None, 0, -1, (0, 1))),
        *(of(X[0, 0]), of(EMPTY, axis=0), of(Z), of(INTEGERS, axis=1), *narrow([of(X, axis=0)])),
    ],
    "concatenate": [
        *(of(X, Y), of(X, Y[:1], X), of(X, Y, axis=1), of(X, Y[:, :1], axis=-1), of(X, Y[0], axis=None), of(X), of(EMPTY, X)),
        *(of(X, INTEGERS), of(X, Z), of(X, Y, dtype=np.dtype(F32)), of(INTEGERS, INTEGERS[:1]), of(X, 2.0, axis=None)),
        *(*narrow([of(X, Y), of(X, 2.0, axis=None)]), of(X.astype(F32), Y), of(X[0, 0], np.array(0.5), axis=None)),
    ],
    "stack": [
        *(of(X, Y), of(X, Y, axis=-1), of(X, Y, X, axis=1), of(X[0, 0], Y[0, 0]), of(X), of(EMPTY, EMPTY), of(X, INTEGERS), of(X, Z)),
        *(of(X[0, 0], 2.0), of(F32(0.5), 2.0), of(0.5, 2), of(INTEGERS, INTEGERS), *narrow([of(X, Y)])),
    ],
    "split": [
        *(of(X, sections=2), of(X, sections=3, axis=-1), of(X, sections=(1,), axis=1), of(X, sections=(1, 1, 2), axis=1)),
        *(of(X, sections=(-1,)), of(X, sections=(2, 1), axis=1), of(X, sections=(5,)), of(EMPTY, sections=3, axis=1), of(X, sections=1)),
        *(of(Z, sections=2), of(INTEGERS, sections=(1,)), *narrow([of(X, sections=2)])),
    ],
    "pad": [
        *(of(X, width=((1, 0), (0, 2))), of(X, width=((0, 0), (1, 1)), value=2.5), of(X[0], width=((0, 0),)), of(X[0, 0], width=())),
        *(of(EMPTY, width=((1, 1), (0, 0))), of(Z, width=((1, 0), (0, 0))), of(INTEGERS, width=((0, 1), (1, 0)), value=3)),
        *narrow([of(X, width=((1, 1), (1, 1)))]),
    ],
}

# ---- reductions ----

MASK = BOOLEANS


def reduced(x, **attrs) -> list[Sample]:
    """Samples of a reduction: every way to say the axes, masks, and every kind of array."""
    found = [of(x, axis=axis, **attrs) for axis in (None, 0, -1, (0, 1), (-1, 0), ())]
    found += [of(x, axis=1, keepdims=True, **attrs), of(x, keepdims=True, **attrs), of(BLOCK, axis=(0, 2), **attrs)]
    found += [of(x, MASK, axis=0, **attrs), of(x, MASK[:, :1], keepdims=True, **attrs), of(x[0, 0], **attrs), of(0.5, **attrs)]
    return [*found, of(INTEGERS, axis=1, **attrs), of(BOOLEANS, **attrs), of(x[:, :0], axis=0, **attrs), *narrow([of(x, axis=1, **attrs)])]


def extrema(initial: float) -> list[Sample]:
    """Samples of max and min; masked ones need an initial value."""
    found = [s for s in reduced(X) if len(s.args) == 1 and s.attrs.get("axis") != ()]
    found += [of(X, MASK, axis=axis, initial=initial, keepdims=keeps) for axis, keeps in ((None, False), (1, True))]
    found += [of(X, initial=0.25, axis=0), of(EMPTY, initial=0.5, axis=0), of(INTEGERS, initial=4), of(Z, axis=1)]
    return [*found, rough(np.array([[1.0, 2.0, 2.0], [1.0, 1.0, 1.0]]), axis=1), rough(np.ones((2, 2)), keepdims=True)]


PLACES = [
    *(of(X, axis=axis) for axis in (None, 0, -1)),
    *(of(X, axis=1, keepdims=True), of(X, keepdims=True), of(INTEGERS), of(BOOLEANS, axis=0), of(np.ones(3)), of(X[0, 0]), of(EMPTY, axis=1)),
    *(of(np.array([1.0, np.nan, 2.0])), of(Z, axis=0), *narrow([of(X, axis=1)])),
]
SUMMED = [of(X, axis=0, dtype=np.dtype(F32)), of(INTEGERS, dtype=np.dtype(F32)), of(INTEGERS.astype(np.uint8)), of(EMPTY)]
LOGICAL = [*reduced(X), of(Z, axis=0), of(EMPTY), of(SPECIAL)]
ZERO_FACTORS = np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 4.0]])
FOLDED = [*SUMMED, of(X, axis=1, initial=0.5), of(X, MASK, initial=2, keepdims=True), of(Z, axis=0), of(Z.astype(C64))]

REDUCTIONS = {
    "sum": [*reduced(X), *FOLDED],
    "mean": [*(s for s in reduced(X) if s.args[0].__class__ is not bool), *SUMMED[:3], of(Z, axis=0), of(X, axis=(0, 1), dtype=np.dtype(F32))],
    "prod": [*reduced(X), *FOLDED, of(ZERO_FACTORS, axis=1), of(ZERO_FACTORS, axis=0, keepdims=True), of(ZERO_FACTORS[:, :1])],
    "max": extrema(-9.0),
    "min": extrema(9.0),
    "any": LOGICAL,
    "all": LOGICAL,
    "argmax": PLACES,
    "argmin": PLACES,
    "cumsum": [
        *(of(X), of(X, axis=0), of(X, axis=-1), of(X[0, 0]), of(0.5), of(EMPTY, axis=0), of(Z, axis=1), of(INTEGERS, axis=0)),
        *(of(BOOLEANS, axis=1), of(X, axis=1, dtype=np.dtype(F32)), of(INTEGERS.astype(np.int8)), *narrow([of(X, axis=0)])),
    ],
}

# ---- indices ----

ROWS = np.array([1, 0, 1])
COLUMNS = np.array([2, -1, 0])
PLACED: list[tuple] = [  # (shape read or written in an array of shape (2, 3), item, index arrays)
    ((3,), 0, ()),
    ((), (1, -1), ()),
    ((1, 2), (slice(0, 1), slice(None, None, 2)), ()),
    ((2, 3), (slice(None, None, -1),), ()),
    ((0, 3), slice(2, None), ()),
    ((2, 1), (..., None, 1), ()),
    ((3, 3), Here(), (ROWS,)),
    ((3,), (Here(), Here()), (ROWS, COLUMNS)),
    ((2, 3), (slice(None), Here()), (COLUMNS.astype(np.int32),)),
    ((3, 1), (Here(), None, 1), (ROWS,)),
    ((2, 2, 3), Here(), (np.array([[0, 1], [1, 1]]),)),
    ((3,), Here(), (np.int64(1),)),
    ((3,), Here(3), (BOOLEANS,)),
    ((1, 3), Here(1), (np.array([False, True]),)),
    ((2, 2), (slice(None), Here(2)), (np.array([True, False, True]),)),
    ((0, 3), Here(), (np.zeros(0, int),)),
]
SINGLE = (Here(), Here()), (np.array([1, 0]), np.array([2, 2]))  # no place twice


def written() -> list[Sample]:
    """Samples of the operations that write into a part."""
    new = np.linspace(0.3, 1.7, 12)
    found = [of(X, new[: int(np.prod(shape))].reshape(shape), *arrays, item=item) for shape, item, arrays in PLACED]
    item, arrays = SINGLE
    found += [of(X, 0.5, item=(0, slice(None))), of(X, 2, *arrays, item=item), of(X, new[:1], item=1), of(X, new[:3].reshape(1, 3), item=0)]
    found += [of(INTEGERS, np.array([8, 9, 10]), item=0), of(Z, W[0], item=0), of(Z, X[0], item=1), of(X, INTEGERS, item=...)]
    found += [of(np.array(0.5), 1.5, item=()), of(EMPTY, X[0], item=slice(None)), of(X.astype(F32), Y[0], item=0)]
    return [*found, *narrow([of(X, Y[0], item=1), of(X, 0.5, *arrays, item=item)]), of(BOOLEANS, True, item=0)]


INDEXING = {
    "index": [
        *(of(X, *arrays, item=item) for _, item, arrays in PLACED),
        *(of(X[0, 0], item=()), of(X[0], item=None), of(np.array(0.5), item=...), of(Z, item=0), of(INTEGERS, ROWS, item=Here())),
        *(of(BLOCK, ROWS, COLUMNS, item=(Here(), slice(None), Here())), of(BLOCK, COLUMNS, item=(0, slice(None), Here()))),
        *(of(BLOCK, ROWS, COLUMNS, item=(slice(1), Here(), Here())), *narrow([of(X, item=(0, 1)), of(X, ROWS, item=Here())])),
    ],
    "index_set": written(),
    "index_add": written()[:-1],
}

# ---- products ----

TALL = np.linspace(-0.8, 1.1, 12).reshape(3, 4)
PRODUCTS = {
    "matmul": [
        *(of(X, TALL), of(X, Y[0]), of(X[:, 0], Y), of(X[0], Y[0]), of(BLOCK, TALL.T), of(BLOCK[:, None, :, :2], BLOCK[:, :2])),
        *(of(BLOCK, TALL[0]), of(X[0], BLOCK), of(EMPTY, TALL), of(X[:, :0], Y[:0]), of(INTEGERS, INTEGERS.T), of(BOOLEANS, BOOLEANS.T)),
        *(of(Z, W.T), of(X, W.T), of(Z[0], Y[0]), of(X.astype(F32), TALL), of(INTEGERS, TALL), *narrow([of(X, TALL), of(X, Y[0])])),
    ],
    "dot": [
        *(of(X, TALL), of(X, Y[0]), of(X[0], Y[0]), of(X[0, 0], Y), of(X, 2.0), of(0.5, Y[0]), of(X[:, 0], Y), of(BLOCK, TALL.T), of(X, BLOCK)),
        *(of(BLOCK, X[0, :1].repeat(4)), of(EMPTY, TALL), of(INTEGERS, INTEGERS[0]), of(Z, W[0]), of(X[0, 0], W), *narrow([of(X, TALL), of(X, 2.0)])),
    ],
    "einsum": [
        *(of(X, TALL, subscripts="ij,jk->ik"), of(X, TALL, subscripts="ij,jk"), of(X[:, :2], subscripts="ii->i"), of(X[:, :2], subscripts="ii")),
        *(of(X, subscripts="ij->"), of(X, subscripts="ij->ji"), of(X, subscripts="ij->j"), of(X[0], Y[:, 0], subscripts="i,j->ij")),
        *(of(BLOCK, TALL[0], subscripts="...i,i->..."), of(X, Y, X, subscripts="ij,ij,ij->i"), of(X, Y, TALL, subscripts="ij,kj,jl->ikl", optimize=True)),
        *(of(X[0, 0], Y, subscripts=",ij->ij"), of(X, Y[:, :1], subscripts="ij,ij->ij"), of(BLOCK, X, subscripts="ijk,ij->k"), of(EMPTY, subscripts="ij->j")),
        *(of(Z, W, subscripts="ij,ij->"), of(INTEGERS, INTEGERS, subscripts="ij,ij"), of(2.0, Y, subscripts=",ij"), of(X, Z, subscripts="ij,kj->ik")),
        *narrow([of(X, TALL, subscripts="ij,jk->ik"), of(2.0, Y, subscripts=",ij")]),
    ],
}

# ---- composites of network code ----

KEY = np.array([7, 11], np.uint64)
NEURAL = {
    "log_softmax": [of(X), of(X, axis=0), of(BLOCK, axis=1), of(X * 400), of(EMPTY), *narrow([of(X)])],
    "linear": [
        *(of(X, TALL[:, :3]), of(X, TALL[:, :3], Y[0]), of(X[0], TALL[:, :3], Y[0]), of(BLOCK, TALL), of(Z, W), of(EMPTY, X, Y[0, :2])),
        *(of(X, TALL[:, :3], None), *narrow([of(X, TALL[:, :3], Y[0])])),
    ],
    "embedding": [
        *(of(X, ROWS), of(X, ROWS.reshape(3, 1)), of(X, np.int64(1)), of(X, np.zeros(0, int)), rough(X, ROWS, padding_idx=1)),
        *(of(X, np.array([1, 1]), padding_idx=0), of(Z, ROWS), *narrow([of(X, ROWS)])),
    ],
    "random_mask": [of(KEY, shape=(2, 3), rate=0.5), of(np.int64(3), shape=(), rate=0.25), of(KEY, np.array([2]), shape=None, rate=0.0)],
    "dropout": [
        *(of(X, KEY), of(X, KEY, rate=0.25), of(X, train=False), of(X, None, rate=0.0), of(X, KEY, rate=1.0), of(EMPTY, KEY)),
        *(of(X[0, 0], KEY), of(Z, KEY), *narrow([of(X, KEY)])),
    ],
}

# ---- control and gradient programs ----


def body(count: int, formula) -> Lambda:
    """A closed program of ``count`` arrays of shape (3,)."""
    builder = LetBuilder()
    return builder.build(formula(*[builder.param(ArrayType(float, (3,))) for _ in range(count)]))


def control() -> dict[str, list[Sample]]:
    """Samples of guards, custom rules and the operations of gradient programs."""
    product: dict[str, Any] = {"n_cts": 1, "body": body(3, lambda ct, x, y: (ct * y, ct * x))}
    pair: dict[str, Any] = {"n_cts": 2, "body": body(3, lambda a, b, x: (a * x + b,))}
    steps = [(product, (Y[0], X[0], X[1])), (pair, (Y[0], Y[1], X[0]))]
    undefined = [(product, (Undef, X[0], X[1])), (pair, (Undef, Undef, X[0]))]
    backward = body(2, lambda residual, ct: (ct * residual,))
    filled: dict[str, Any] = {"shape": (3,), "dtype": np.dtype(float)}
    return {
        "guard": [of(np.int64(3), value=3), of(np.bool_(True), value=True), of(2, value=2), of(np.array(4), value=4)],
        "custom_vjp": [rough(X[0] ** 2, 2 * X[0], X[0], n_outs=1, n_residuals=1, backward=backward)],
        "autograd_add": [of(X, Y), of(Undef, X), of(X, Undef), of(X[0, 0], Y[0, 0]), of(Z, W), of(EMPTY, EMPTY), *narrow([of(X, Y)])],
        "instantiate": [of(X[0], **filled), of(Undef, **filled), of(Undef, np.array([3]), shape=None, dtype=np.dtype(F32))],
        "grad_of": [of(*args, op=PRIMITIVES["mul"], **attrs) for attrs, args in steps + undefined],
        "when_defined": [of(*args, **attrs) for attrs, args in steps + undefined],
    }


SAMPLES: dict[str, list[Sample]] = {
    **ELEMENTWISE,
    **SIZES,
    "constant": constants(),
    **MOVES,
    **REDUCTIONS,
    **INDEXING,
    **PRODUCTS,
    **NEURAL,
    **control(),
}

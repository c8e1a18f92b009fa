"""``Sample``, the operands and attributes of one bind, and functions that make lists of samples.

``sample_of`` makes a sample, ``unary_samples`` and ``binary_samples`` make those of elementwise
functions. The arrays hold distinct numbers of both signs, away from integers and ties.
"""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from letir.ast.attrs import NO_ATTRS, Attrs
from letir.ast.builder import LetBuilder
from letir.ast.primitive import Primitive
from letir.ast.terms import Const, Lambda
from letir.ast.types import PYTHON_NUMBERS, Undef
from letir.eval.array_modules import type_of

# The laws from which ``exempt`` excludes samples, by its keyword.
LAWS = {
    "complex_step": "a complex step gives the first derivative",
    "second_derivative": "the derivative has a derivative",
    "linearity": "an operation whose record says that it is linear is linear",
    "transposition": "reverse mode is forward mode transposed",
    "program": "generated programs have the operation as a step",
    "program_derivative": "derivatives of generated programs are those of their values",
    "program_difference": "derivatives of generated programs agree with differences",
    "program_second_derivative": "derivatives of generated programs have derivatives",
    "eager": "operations on Variables that require grad give the same values as on arrays",
    "batch_rule": "the operation has a batching rule",
    "batch": "a batch gives the results of a loop over its examples",
    "batch_of_last": "the last of several operands may differ between examples",
    "batch_of_named_size": "the number of examples may be a symbolic size",
    "batch_difference": "derivatives of a batch agree with differences",
    "named_rows": "the gradient program replays at other numbers of rows",
    "source": "to_source writes the operation in NumPy",
}


def _known_laws(sample, attribute, reasons) -> None:
    """Raise ValueError for an exemption from a law that does not exist."""
    unknown = reasons.keys() - LAWS.keys()
    if unknown:
        raise ValueError(f"no law is called {sorted(unknown)}, known are {list(LAWS)}")


@frozen(eq=False)
class Sample:
    """Operands (arrays, scalars, Python numbers, None, ``Undef``) and attributes of one operation.

    ``nonsmooth``: the derivative need not agree with differences, at a tie or by design.
    ``exempt``: the reason for each of the ``LAWS`` that is not checked on the sample.

    >>> from letir.extend import PRIMITIVES
    >>> sample = Sample((np.ones((2, 3)),), {"axis": 0})
    >>> program, args = applied_program(PRIMITIVES["sum"], sample)
    >>> program(*args)
    array([2., 2., 2.])
    """

    args: tuple
    attrs: Attrs = field(default=NO_ATTRS, converter=Attrs)
    nonsmooth: bool = False
    exempt: Mapping[str, str] = field(factory=dict, validator=_known_laws)


def sample_of(*args: Any, **attrs: Any) -> Sample:
    """A sample with these operands and attributes."""
    return Sample(args, attrs)


def nonsmooth(*args: Any, **attrs: Any) -> Sample:
    """A sample whose derivative is a convention."""
    return Sample(args, attrs, nonsmooth=True)


def exempt(samples: Iterable[Sample], **reasons: str) -> list[Sample]:
    """The samples exempt from these laws (keys of ``LAWS``), each with the reason."""
    return [evolve(sample, exempt={**sample.exempt, **reasons}) for sample in samples]


def applied_program(
    op: Primitive, sample: Sample, *, constants: bool = False
) -> tuple[Lambda, list]:
    """(program, arguments): the program of the one bind that applies ``op`` to the sample.

    Python numbers are weak parameters, or, with ``constants``, constants in the bind.

    >>> from letir.ast.primitive import PRIMITIVES
    >>> program, args = applied_program(PRIMITIVES["mul"], sample_of(np.ones(2), 3.0))
    >>> print(program)
    lambda %0: float64[2], %1: float64*[] {
      %2: float64[2] = mul(%0, %1)
      return %2
    }
    """
    builder, operands, arrays = LetBuilder(), [], []
    for arg in sample.args:
        if arg is None or arg is Undef or (constants and type(arg) in PYTHON_NUMBERS):
            operands.append(Const(arg))
        else:
            operands.append(builder.param(type_of(arg)).arg)
            arrays.append(arg)
    results = builder.emit(op, tuple(operands), op.complete(sample.attrs))
    return builder.build(results), arrays


X = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]])
Y = np.array([[1.1, 0.43, -0.7], [-0.93, 1.3, 0.8]])
POSITIVE = np.array([[0.5, 1.25, 2.0], [1.5, 0.75, 0.625]])
BLOCK = np.linspace(-1.0, 1.3, 24).reshape(2, 3, 4)
TALL = np.linspace(-0.8, 1.1, 12).reshape(3, 4)
Z = X + 1j * Y
W = Y - 0.5j * X
INTEGERS = np.array([[3, 1, 2], [5, 4, 7]])
BOOLEANS = np.array([[True, False, True], [False, False, True]])
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5])
EMPTY = np.zeros((0, 3))
ROWS = np.array([1, 0, 1])
COLUMNS = np.array([2, -1, 0])

BOOL, INT64, FLOAT16, FLOAT32, FLOAT64, COMPLEX64, COMPLEX128 = map(
    np.dtype, ("bool", "int64", "float16", "float32", "float64", "complex64", "complex128")
)


def narrowed(*samples: Sample) -> list[Sample]:
    """The samples with float64 arrays converted to single and half precision."""
    result = []
    for sample, dtype in itertools.product(samples, (FLOAT32, FLOAT16)):
        args = [
            a.astype(dtype) if hasattr(a, "dtype") and a.dtype == FLOAT64 else a
            for a in sample.args
        ]
        result.append(evolve(sample, args=tuple(args)))
    return result


def unary_samples(
    a: float, b: float, *, integer: int = 1, has_complex: bool = True
) -> list[Sample]:
    """Samples of a function of one array, smooth around ``a`` and ``b``, that takes ``integer``."""
    row = np.array([a, b, 0.5 * (a + b)])
    real = [
        sample_of(row),
        sample_of(row[0]),
        sample_of(np.array(b)),
        sample_of(a),
        sample_of(EMPTY),
        *narrowed(sample_of(row)),
    ]
    real += [
        sample_of(np.full(2, integer)),
        sample_of(np.full((2, 1), integer, np.int8)),
        sample_of(integer),
    ]
    if not has_complex:
        return real
    column = np.array([[a + 0.25j], [b - 0.125j]])
    return [*real, sample_of(column), sample_of(np.complex64(a + 0.5j)), sample_of(complex(b, 0.5))]


def binary_samples(x: Any, y: Any, *, has_complex: bool = True) -> list[Sample]:
    """Samples of a function of two arrays of shape (2, 3) that is smooth around ``x`` and ``y``."""
    shapes = [(x, y), (x[:, :1], y[0]), (x[0, 0], y), (x[0, 1], y[1, 0]), (x[:, :0], y[:1, :0])]
    numbers = [
        (x, float(y[0, 0])),
        (float(x[0, 0]), y[1]),
        (float(x[1, 0]), 2),
        (2, y[0]),
        (x[1], 3),
    ]
    mixed = [(x.astype(FLOAT32), y), (x[0].astype(FLOAT16), y.astype(FLOAT32)), (INTEGERS, y)]
    integers = [(INTEGERS, ROWS + 2), (INTEGERS.astype(np.int8), 2)]
    complexes = [(x + 0.25j, y - 0.5j), (x + 0.25j, y[:1]), (x[0], 0.6 + 1j)]
    complexes += [((x + 1j).astype(COMPLEX64), y[0])]
    pairs = shapes + numbers + mixed + integers + (complexes if has_complex else [])
    return [
        *itertools.starmap(sample_of, pairs),
        *narrowed(sample_of(x, y[0]), sample_of(x[0], float(y[0, 1]))),
    ]

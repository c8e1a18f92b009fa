"""Samples of the operations in ``letir.ops.special.densities`` and
``letir.ops.linalg.matrix_functions``.
"""

import numpy as np

from letir.ast.attrs import Here
from letir.ast.builder import LetBuilder
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.ops.special.densities import RECORDS
from letir.testing.samples.sample import COMPLEX128, FLOAT32, Sample, exempt, nonsmooth, sample_of

NUMBERS = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, 3.625]])
WITHIN = np.array([[0.5, 0.25, 0.8], [0.15, 0.75, 0.625]])
COUNTS = np.array([[0.0, 1.0, 2.0], [3.0, 5.0, 1.5]])
A = np.array([[2.0, 0.5, 0.25], [-0.125, 1.5, 0.375], [0.25, -0.5, 3.0]])
B = np.array([[1.0, -0.5], [0.25, 2.0], [0.75, -1.5]])
SHAPES = {
    "t": (2,),
    "beta": (2, 3),
    "gamma": (3,),
    "chi2": (4,),
}
# integers where there is no derivative with respect to the shape parameters
EXACT = {
    "t": ("cdf", "sf", "logcdf", "logsf", "ppf", "isf"),
    "beta": ("cdf", "sf", "logcdf", "logsf", "ppf"),
}


def samples_of(name: str, method: str) -> list[Sample]:
    """Samples of an array with loc and scale, of points outside the support, and of a number."""
    if name == "poisson":
        whole = sample_of(COUNTS.astype(int), np.array([0.5, 1.25, 2.0]), 0)
        return [whole, nonsmooth(COUNTS, 1.5, np.float64(-1.0)), sample_of(2, 0.5, 0)]
    shape: tuple[float, ...] = SHAPES.get(name, ())
    if method not in EXACT.get(name, ()):
        shape = tuple(n + 0.5 for n in shape)
    # not at 0.5, where the second derivative of laplace_ppf jumps
    x, number = (WITHIN * 0.9, 0.3) if method in ("ppf", "isf") else (NUMBERS * 0.7, 0.3)
    result = [
        sample_of(x, *shape, 0.125, np.array([1.5, 2.0, 0.5])),
        sample_of(number, *shape, 0.0, 1.0),
    ]
    result = result if method in ("logpdf", "cdf", "logcdf", "logsf") else result[:1]
    if name in ("laplace", "logistic"):
        return exempt(result, complex_step="they take an absolute value")
    return result


def slope() -> Lambda:
    """A right-hand side: a * y + b * t."""
    builder = LetBuilder()
    y, t, a, b = (builder.param(ArrayType(float, shape)) for shape in ((2,), (), (2,), ()))
    return builder.build((a * y + b * t,))


def waves() -> Lambda:
    """The integrand a * b * t."""
    builder = LetBuilder()
    t, a, b = (builder.param(ArrayType(float, shape)) for shape in ((), (2,), ()))
    return builder.build((a * t * b,))


def cubes() -> Lambda:
    """The function t * t * t - a."""
    builder = LetBuilder()
    t, a = builder.param(ArrayType(float, ())), builder.param(ArrayType(float, ()))
    return builder.build((t * t * t - a,))


ODE = {"body": slope(), "rtol": 1e-12, "atol": 1e-12}
TIMES = np.array([0.0, 0.5, 0.75])
MATRICES = exempt(
    [
        sample_of(A),
        sample_of(np.stack([A, A.T + 1])),
        sample_of(A.astype(FLOAT32)),
        sample_of(A.astype(COMPLEX128)),
    ],
    complex_step="SciPy's complex form rounds a tiny imaginary part",
    transposition="its forward mode calls the operation itself",
)
SAMPLES = {
    **{record.name: samples_of(*key) for key, record in RECORDS.items()},
    "stdtr": [sample_of(np.int64(3), NUMBERS), sample_of(2, 0.5)],
    "stdtrit": [sample_of(np.int64(3), WITHIN), sample_of(2, 0.25)],
    "expm": MATRICES,
    "logm": exempt(
        MATRICES,
        program_derivative="matrices of repeated numbers have none",
        source="SciPy's logm, which the source calls, rounds in another way",
        program="its source rounds in another way",
    ),
    "sqrtm": exempt(MATRICES, program_derivative="matrices of repeated numbers have none"),
    "solve_sylvester": exempt(
        [
            sample_of(A, B[:2, :2], B[:, :2]),
            sample_of(A.astype(FLOAT32), A.astype(FLOAT32), A.astype(FLOAT32)),
            sample_of(A + 0.5j, B[:2, :2], B[:, :2]),
            sample_of(np.stack([A, A.T]), np.stack([A, A + 1]), np.stack([A, A])),
            sample_of(A, A[:0, :0], A[:, :0]),
        ],
        program_derivative="equations of repeated numbers have many solutions",
    ),
    "checked_finite": [
        sample_of(A),
        sample_of(np.float64(1.5)),
        sample_of(A[:0]),
        sample_of(B.astype(FLOAT32)),
        sample_of(A + 0.5j),
    ],
    "solve_triangular": [
        sample_of(A, B),
        sample_of(A, B[:, 0], transposed=True, lower=True),
        sample_of(A.astype(FLOAT32), B.astype(FLOAT32), unit_diagonal=True),
        sample_of(A + 0.5j, B, transposed=True),
        sample_of(A, B, check_finite=False),
        sample_of(np.stack([A, A.T]), np.stack([B, B + 1]), lower=True, unit_diagonal=True),
    ],
    # rough: accurate to the tolerance of the solver only
    "odeint": exempt(
        [nonsmooth(WITHIN[0, :2], TIMES, WITHIN[1, :2], np.float64(0.5), **ODE)],
        transposition="its forward mode calls the operation itself",
        named_rows="its body is typed",
    ),
    "vector_integral": exempt(
        [
            sample_of(
                np.float64(0.25), np.float64(1.5), WITHIN[1, :2], np.float64(0.5), body=waves()
            )
        ],
        complex_step="SciPy integrates real functions",
        transposition="its forward mode calls the operation itself",
        named_rows="its body is typed",
    ),
    # rough: accurate to the tolerance of the solver only
    "scipy_solve": exempt(
        [
            nonsmooth(
                np.float64(2.0),
                function="optimize.brentq",
                arguments=("tuple", ("tuple", ("function", 0), 0, 3), ("dict",)),
                results=ArrayType(float, (), weak=True),
                bodies=(cubes(),),
                captures=(1,),
                returns=("value",),
            )
        ],
        complex_step="SciPy searches for real roots",
        named_rows="its bodies are typed",
        source="a recorded body has no form that SciPy could call",
    ),
    # integer results: a derivative is an error by name
    "scipy_call": exempt(
        [
            sample_of(
                np.array([0.5, 2.0, 0.25, 1.5, 1.0]),
                function="signal.argrelmax",
                arguments=("tuple", ("tuple", Here()), ("dict", ("order", 1))),
                results=("tuple", ArrayType(np.int64, (2,))),
            )
        ],
        named_rows="the types of its results are those of its recording",
    ),
    "multivariate_normal_logpdf": exempt(
        [
            nonsmooth(
                NUMBERS, np.array([0.5, 0.25, -1.0]), A @ A.T
            ),  # differences are not symmetric
            nonsmooth(NUMBERS[0], np.zeros(3), np.eye(3)),
        ],
        program_difference="its derivative is along Hermitian matrices",
    ),
}

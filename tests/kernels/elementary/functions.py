"""Elementary functions as ufuncs, with NumPy's functions, and ranges in which they are tested."""

from functools import cache

import numpy as np

from letir.kernels.elementary import ELEMENTARY
from letir.kernels.interpreter import run_kernel
from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Array, Kernel

DTYPES = [np.dtype("f8"), np.dtype("f4")]
ANY = "log -1074 1024"  # random numbers 2**u with both signs; "+log": positive ones
POSITIVE = "+log -1074 1024"
SMALL = "log -60 10"
# name: ranges for each operand
RANGES: dict[str, list[tuple]] = {
    "exp": [((-746, 710),), ((-104, 89),), (SMALL,)],
    "exp2": [((-1076, 1025),), ((-150, 129),), (SMALL,)],
    "expm1": [((-40, 710),), ((-1, 1),), ((-20, 89),), (SMALL,)],
    "log": [(POSITIVE,), ((0.5, 2),), ((0.99, 1.01),)],
    "log2": [(POSITIVE,), ((0.5, 2),), ((0.99, 1.01),)],
    "log10": [(POSITIVE,), ((0.5, 2),), ((0.99, 1.01),)],
    "log1p": [(POSITIVE,), ((-1, 2),), (SMALL,)],
    "sinh": [((-711, 711),), ((-90, 90),), (SMALL,)],
    "cosh": [((-711, 711),), ((-90, 90),), (SMALL,)],
    "tanh": [((-23, 23),), ((-1, 1),), (SMALL,)],
    "sin": [((-10, 10),), ((-1e6, 1e6),), (ANY,)],
    "cos": [((-10, 10),), ((-1e6, 1e6),), (ANY,)],
    "tan": [((-10, 10),), ((-1e6, 1e6),), (ANY,)],
    "power": [
        ((0, 10), (-300, 300)),
        ((0.9, 1.1), (-7000, 7000)),
        (POSITIVE, "log -8 2"),
        ((0, 4), (-3, 3)),
    ],
    "logaddexp": [((0, 10), (-5, 10)), ((0, 100), (0, 100))],
    "logaddexp2": [((0, 10), (-5, 10)), ((0, 100), (0, 100))],
    "cbrt": [(ANY,), ((-8, 8),)],
    "hypot": [(ANY, ANY), ((-10, 10), (-10, 10))],
    "arcsin": [("log -1074 0",), ((-1, 1),)],
    "arccos": [("log -1074 0",), ((-1, 1),)],
    "arctan": [(ANY,), ((-3, 3),)],
    "arctan2": [(ANY, ANY), ((-10, 10), (-10, 10))],
    "arcsinh": [(ANY,), ((-3, 3),), (SMALL,)],
    "arccosh": [("+log 0 1024",), ((1, 3),), ((1, 1.01),)],
    "arctanh": [("log -1074 0",), ((-1, 1),)],
    "erf": [("log -1074 4",), ((-6, 6),)],
    "erfc": [("log -1074 4",), ((-6, 27),), ((-6, 10),)],
    "ndtr": [("log -1074 4",), ((-37, 6),), ((-14, 6),)],
    "expit": [((-745, 50),), ((-100, 100),), (SMALL,)],
    "gammaln": [("+log -1074 -1",), ((3, 8),), ((8, 200),), ("+log 3 1014",)],
    "log_expit": [((-745, 50),), ((-100, 100),), (SMALL,)],
}
# others: 1.5; logaddexp and gammaln cancel near their zeros
LARGEST_ERRORS = {"logaddexp": 3.0, "logaddexp2": 3.0, "gammaln": 2.5, "tanh": 1.8}
LARGEST_ERRORS |= {"erfc": 1.8, "ndtr": 1.8}


def drawn(range_: tuple | str, dtype: np.dtype, count: int, rng: np.random.Generator) -> np.ndarray:
    """Random numbers of a range."""
    if isinstance(range_, tuple):
        return rng.uniform(*range_, count).astype(dtype)
    kind, low, high = range_.split()
    known = np.finfo(dtype)
    low, high = max(int(low), known.minexp - known.nmant), min(int(high), known.maxexp)
    sizes = np.exp2(rng.uniform(low, high, count)).astype(dtype)
    return sizes if kind == "+log" else sizes * rng.choice([-1, 1], count).astype(dtype)


def kernel_of(name: str, dtype: np.dtype) -> Kernel:
    """The elementwise kernel of one function."""
    b = Builder()
    n = b.extent("n")
    inputs = [Array(f"x{k}", dtype, ("n",)) for k in range(len(RANGES[name][0]))]
    out = Array("y", dtype, ("n",), True)
    with b.loop(n) as i:
        b.store(out, (i,), ELEMENTARY[name](b, *[b.load(x, (i,)) for x in inputs]))
    return Kernel(name, (*inputs, out), (n,), b.statements())


@cache
def compiled(name: str, dtype: np.dtype) -> np.ufunc:
    """A function as machine code."""
    from letir.kernels.llvm.machine_code import ufunc_of

    return ufunc_of(kernel_of(name, dtype))


def interpreted(name: str, *operands: np.ndarray) -> np.ndarray:
    """The result of a function by the interpreter."""
    found = np.empty_like(operands[0])
    run_kernel(kernel_of(name, operands[0].dtype), *operands, found, n=len(found))
    return found


def errors_in_ulps(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Distances from true values in units in their last place; 0 where both are beyond the range.

    ``true``: in a wider dtype. An infinite result for a value that rounds to it has no error.
    """
    known = np.finfo(found.dtype)
    wide = true.astype(np.longdouble)
    _, exponents = np.frexp(wide)
    unit = np.ldexp(np.longdouble(1), np.maximum(exponents - 1, known.minexp) - known.nmant)
    with np.errstate(all="ignore"):
        same = (found == wide.astype(found.dtype)) | (np.isnan(found) & np.isnan(wide))
        return np.where(same, 0, np.abs(found - wide) / unit).astype(float)


def true_values(name: str, *operands: np.ndarray) -> np.ndarray:
    """A function on operands of float64 or, where that is the wider type, of longdouble."""
    if hasattr(np, name):
        return getattr(np, name)(*operands)
    (x,) = (x.astype(np.longdouble) for x in operands)
    if name.endswith("expit"):
        small = np.exp(-np.abs(x))
        if name == "expit":
            return np.where(x < 0, small, 1) / (1 + small)
        return np.where(x > 0, -np.longdouble(0), x) - np.log1p(small)
    if name == "ndtr":
        return true_erfc(-x * np.sqrt(np.asarray(0.5, np.longdouble))) / 2
    if name == "gammaln":
        return true_log_gamma(x)
    return true_erfc(x) if name == "erfc" else true_erf(x)


def true_erf(x: np.ndarray) -> np.ndarray:
    """erf by its series up to 3, and by erfc."""
    x = x.astype(np.longdouble)
    return np.piecewise(x, [np.abs(x) < 3], [_series, lambda x: np.sign(x) * (1 - _tail(x))])


def true_erfc(x: np.ndarray) -> np.ndarray:
    """erfc by the series of erf near 0, else by the continued fraction."""
    x = x.astype(np.longdouble)
    places = [x < -1.5, np.abs(x) < 1.5]
    return np.piecewise(x, places, [lambda x: 2 - _tail(x), lambda x: 1 - _series(x), _tail])


def _series(x: np.ndarray) -> np.ndarray:
    """erf by its series of positive terms (Abramowitz and Stegun, 7.1.6), up to 3."""
    term = total = 2 * x / _root_of_pi()
    for n in range(1, 90):
        term = term * (2 * x * x / (2 * n + 1))
        total = total + term
    return total * np.exp(-x * x)


def _tail(x: np.ndarray) -> np.ndarray:
    """erfc of the absolute value, from 1.5 on (Abramowitz and Stegun, 7.1.14)."""
    x = np.clip(np.abs(x), 1.5, 110)
    found = x
    for n in range(160, 0, -1):
        found = x + (n / np.longdouble(2)) / found
    # exp(-x**2) with the part of the square that is lost: upper bits and the rest of x
    upper = np.rint(x * 2**20) / 2**20
    scale = np.exp(-upper * upper) * np.exp(-(x - upper) * (x + upper))
    return scale / found / _root_of_pi()


def _root_of_pi() -> np.longdouble:
    return np.sqrt(4 * np.arctan(np.longdouble(1)))


def true_log_gamma(x: np.ndarray) -> np.ndarray:
    """log(gamma(x)) for positive x, precise where it is not near its zeros 1 and 2.

    Stirling's formula (Abramowitz and Stegun, 6.1.40) 40 further on, less a product.
    """
    is_large = x > 40
    y = np.where(is_large, x, x + 40)
    small, product = np.where(is_large, 1, x), np.longdouble(1)
    for n in range(40):
        product = product * (small + n)
    product = np.where(is_large, 0, np.log(product))
    bernoulli = [(1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6)]
    rest = sum(
        np.longdouble(a) / b / (2 * k * (2 * k - 1)) / y ** (2 * k - 1)
        for k, (a, b) in enumerate(bernoulli, 1)
    )
    root = np.log(2 * _root_of_pi() ** 2) / 2
    return (y - np.longdouble(0.5)) * np.log(y) - y + root + rest - product

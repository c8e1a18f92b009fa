"""Elementary functions as ufuncs, with NumPy's functions, and ranges in which they are tested."""

from functools import cache

import numpy as np

from letir.kernels.elementary import ELEMENTARY
from letir.kernels.interpreter import run_kernel
from letir.kernels.loop_language import Array, Builder, Kernel

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
}


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
    return Kernel(name, (*inputs, out), (n,), b.taken())


@cache
def compiled(name: str, dtype: np.dtype) -> np.ufunc:
    """A function as machine code."""
    from letir.kernels.machine_code import ufunc_of

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

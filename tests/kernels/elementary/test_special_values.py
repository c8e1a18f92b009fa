"""Elementary functions at infinities, nan, zeros, subnormal and huge numbers, as NumPy has them."""

import itertools
import math
from functools import partial

import numpy as np
import pytest

from letir.kernels.elementary import ELEMENTARY
from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Array, Kernel
from tests.kernels.elementary.functions import (
    DTYPES,
    RANGES,
    compiled,
    drawn,
    true_values,
)

pytest.importorskip("llvmlite")
from letir.kernels.llvm.machine_code import ufunc_of
from tests.each_sample import in_one_test

COMMON = [0.0, 1.0, 2.0, 0.5, np.inf, np.nan, 1e-20, 3.0, 10.0, 1000.0, 0.1, 1e5, 1e22]
OWN = {
    "d": [5e-324, 1e-310, 2.3e-308, 1e300, 1.7976931348623157e308, 709.7, 709.8, 710.5, 745.2],
    "f": [1e-45, 1e-40, 1.2e-38, 1e30, 3.4028235e38, 88.7, 88.8, 89.5, 104.0],
}
FLAGS = ("divide", "over", "invalid")


def values(dtype: np.dtype) -> np.ndarray:
    """Special numbers, with both signs."""
    beside = [np.nextafter(dtype.type(1), dtype.type(to)) for to in (0, 2)]
    found = np.array([*COMMON, *OWN[dtype.char], *beside], dtype)
    return np.concatenate([found, -found])


def numpys_function(name: str) -> np.ufunc:
    """The function of NumPy or SciPy."""
    return getattr(np, name, None) or getattr(pytest.importorskip("scipy.special"), name)


def raised(ufunc, operands: tuple) -> set[str]:
    """The floating-point errors, underflow aside."""
    found = set()
    for flag in FLAGS:
        try:
            with np.errstate(**({"all": "ignore"} | {flag: "raise"})):
                ufunc(*operands)
        except FloatingPointError:
            found.add(flag)
    return found


@in_one_test
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", RANGES)
def test_special_values_equal_numpys(name, dtype):
    given = list(itertools.product(values(dtype), repeat=len(RANGES[name][0])))
    operands = np.array(given, dtype).T
    with np.errstate(all="ignore"):
        # SciPy's functions have larger errors than these
        if name == "gammaln":
            pytest.skip("has a test of its own")
        known = getattr(np, name) if hasattr(np, name) else partial(true_values, name)
        expected, found = known(*operands).astype(dtype), compiled(name, dtype)(*operands)

    error = 8 * np.finfo(dtype).eps
    least = error if name.startswith("logaddexp") else 0
    near = np.isclose(expected, found, rtol=error, atol=least, equal_nan=True)
    at_zero = (np.signbit(expected) == np.signbit(found)) | np.isnan(expected) | (least > 0)
    assert [] == [x for x, fits in zip(given, near & at_zero, strict=True) if not fits]


@in_one_test
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", RANGES)
def test_errors_are_raised_where_the_function_has_them(name, dtype):
    """As C has them, by the function of the C library for Python's floats and by NumPy."""
    ufunc, true = compiled(name, dtype), numpys_function(name)
    for operands in itertools.product(values(dtype), repeat=len(RANGES[name][0])):
        # a vector and its rest
        arrays = [np.full(19, x, dtype) for x in operands]
        wrong = raised(true, arrays)
        if name == "power" and not np.isfinite(operands).all():
            wrong &= {"divide", "invalid"}  # NumPy on AVX-512 says overflow for an infinite power

        assert wrong <= raised(ufunc, arrays), operands


@in_one_test
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", RANGES)
def test_infinities_and_nan_raise_no_errors_where_numpy_raises_none(name, dtype):
    special = np.array([np.inf, -np.inf, np.nan, -np.nan, 0.0, -0.0, 1.0, -1.0], dtype)
    for operands in itertools.product(special, repeat=len(RANGES[name][0])):
        arrays = [np.full(19, x, dtype) for x in operands]
        allowed = raised(numpys_function(name), arrays)
        if name == "power" and operands[0] == 0 and operands[1] == -np.inf:
            allowed.add("divide")  # C11, F.10.4.4: a library may raise it or not

        assert raised(compiled(name, dtype), arrays) <= allowed, operands


@pytest.mark.parametrize("exponent", [-2.0, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0])
def test_powers_with_constant_exponents_equal_numpys(exponent):
    x = np.append(values(DTYPES[0]), np.linspace(-3, 3, 1000))
    b = Builder()
    n = b.extent("n")
    inputs, out = Array("x", x.dtype, ("n",)), Array("y", x.dtype, ("n",), True)
    with b.loop(n) as i:
        number = b.number(exponent, x.dtype)
        b.store(out, (i,), ELEMENTARY["power"](b, b.load(inputs, (i,)), number))
    ufunc = ufunc_of(Kernel("power", (inputs, out), (n,), b.statements()))
    with np.errstate(all="ignore"):
        expected, found = np.power(x, exponent), ufunc(x)

    assert np.allclose(expected, found, rtol=2 * np.finfo(x.dtype).eps, atol=0, equal_nan=True)
    assert np.array_equal(np.signbit(expected[x == 0]), np.signbit(found[x == 0]))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_log_gamma_agrees_with_the_c_library(dtype):
    beside = np.linspace(-6, 6, 1001)
    x = np.concatenate([values(dtype), beside, [-170.5, -1e6 - 0.5, 1e30, 3e5]]).astype(dtype)
    poles = (x <= 0) & (x == np.rint(x))
    with np.errstate(all="ignore"):
        found = compiled("gammaln", dtype)(x)
    expected = np.array([_log_gamma(float(v)) for v in x])

    assert np.isinf(found[poles]).all()
    # near zeros of negative arguments the terms are larger than the result
    error = 4 * np.finfo(dtype).eps
    with np.errstate(over="ignore"):
        expected = expected.astype(dtype)
    most = np.isfinite(x)
    assert np.allclose(found[most], expected[most], rtol=error, atol=4 * error)
    assert np.array_equal(found[~most], x[~most], equal_nan=True)


def _log_gamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


RANGED = [
    pytest.param(name, ranges, dtype, id=f"{name}-{k}-{dtype}")
    for name, all_ranges in RANGES.items()
    for k, ranges in enumerate(all_ranges)
    for dtype in DTYPES
]


@in_one_test
@pytest.mark.parametrize(("name", "ranges", "dtype"), RANGED)
def test_ordinary_numbers_raise_errors_only_where_results_are_beyond_the_range(name, ranges, dtype):
    operands = [drawn(one, dtype, 5000, np.random.default_rng(2)) for one in ranges]
    with np.errstate(all="ignore"):
        is_usual = np.isfinite(compiled(name, dtype)(*operands))
    operands = [x[is_usual] for x in operands]

    assert set() == raised(compiled(name, dtype), operands)


@in_one_test
@pytest.mark.parametrize(("name", "ranges", "dtype"), RANGED)
def test_an_element_has_the_same_bits_in_any_place(name, ranges, dtype):
    """In vectors, in the rest of an array, alone and in strided arrays."""
    operands = [drawn(one, dtype, 203, np.random.default_rng(3)) for one in ranges]
    operands = [np.concatenate([x, values(dtype)]) for x in operands]
    ufunc, size = compiled(name, dtype), len(operands[0])
    with np.errstate(all="ignore"):
        found = ufunc(*operands)
        alone = [ufunc(*[x[i : i + 1] for x in operands])[0] for i in range(size)]
        strided = ufunc(*[x[::-1] for x in operands])[::-1]

    assert np.array_equal(found, alone, equal_nan=True)
    assert np.array_equal(found, strided, equal_nan=True)

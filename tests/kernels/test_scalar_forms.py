"""Scalar forms of operations against NumPy's functions: samples of every record, special values."""

import itertools

import numpy as np
import pytest

import letir as lt
from letir.ast.primitive import PRIMITIVES
from letir.kernels.elementwise_groups import elementwise_kernel
from letir.kernels.scalar_forms import form_of
from letir.ops import load_all
from letir.testing import applied_program
from tests.each_sample import each_sample

pytest.importorskip("llvmlite")
from letir.kernels.llvm.machine_code import ufunc_of

load_all()
SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, -3.5, 0.3, 7.0, np.inf, -np.inf, np.nan, 1e300, 5e-324]
PAIRS = np.array(list(itertools.product(SPECIAL, SPECIAL))).T.copy()


def has_form(op) -> bool:
    """Whether an elementwise operation has a scalar form."""
    return op.elementwise and form_of(op.scalar)


def test_most_elementwise_operations_have_a_form():
    assert sum(map(bool, map(has_form, PRIMITIVES.values()))) >= 55


def has_kernel(op, sample) -> bool:
    """Whether the sample becomes a kernel."""
    return elementwise_kernel(applied_program(op, sample)[0]) is not None


@each_sample(has_kernel, among=has_form, quick=3)
def test_a_form_computes_what_numpy_computes(op, sample):
    program, args = applied_program(op, sample)
    with np.errstate(all="ignore"):
        expected, found = (
            lt.run_forward(program, *args),
            ufunc_of(elementwise_kernel(program))(*args),
        )
    is_float = np.asarray(found).dtype.kind == "f"
    # SciPy's functions have larger errors than kernels
    units = 4 if hasattr(op.impl, "ufunc") else 16
    # of complex numbers, NumPy's own absolute values are not rounded correctly
    is_rounded = op.exact and not (is_float and any(np.iscomplexobj(x) for x in args))
    bound = 0 if is_rounded or not is_float else units * np.finfo(np.asarray(found).dtype).eps
    np.testing.assert_allclose(found, expected, rtol=bound, atol=0)
    assert np.asarray(found).dtype == np.asarray(expected).dtype


DIVISIONS = {
    "remainder": lambda x, y: x % y,
    "floor_divide": lambda x, y: x // y,
    "where": lambda x, y: np.where(x, x, y),
    "sign": lambda x, y: np.sign(x) * np.heaviside(x, y),
    "tests": lambda x, y: np.isnan(x) | np.isinf(y) | np.signbit(x) & np.isfinite(y),
    "maximum": np.maximum,
    "minimum": np.minimum,
    "extremes": lambda x, y: np.fmax(x, y) + np.fmin(x, y),
}


@pytest.mark.parametrize("name", DIVISIONS)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_special_values_give_the_bits_of_numpy(name, dtype):
    f = DIVISIONS[name]
    with np.errstate(all="ignore"):
        x, y = PAIRS.astype(dtype)
        kernel = elementwise_kernel(lt.trace(f, x, y))
        expected, found = f(x, y), ufunc_of(kernel)(x, y)

    same = np.isnan(expected) & np.isnan(found) if expected.dtype.kind == "f" else False
    assert expected.dtype == found.dtype
    bits = np.dtype(f"u{expected.itemsize}")
    assert np.all(same | (expected.view(bits) == found.view(bits)))


@pytest.mark.parametrize("dtype", ["i1", "i4", "i8", "u1", "u8"])
@pytest.mark.parametrize("divisor", [3, 7, -2, -5])
def test_integers_are_divided_by_known_divisors(dtype, divisor):
    x = np.arange(-128, 128).astype(dtype)
    divisor = abs(divisor) if x.dtype.kind == "u" else divisor
    kernel = elementwise_kernel(lt.trace(lambda x: (x // divisor, x % divisor), x))

    assert all(map(np.array_equal, (x // divisor, x % divisor), ufunc_of(kernel)(x)))


def test_a_division_of_integers_that_may_warn_is_left_to_numpy():
    x = np.arange(5)

    assert elementwise_kernel(lt.trace(lambda x, y: x // y, x, x + 1)) is None

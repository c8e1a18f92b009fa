"""Elementwise kernels of arrays of any strides, in chunks of elements."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same

pytest.importorskip("llvmlite")
from letir.kernels.llvm.machine_code import ufunc_of
from tests.kernels.elementary.functions import kernel_of

LENGTHS = [0, 1, 2, 7, 511, 512, 513, 1500]
LAYOUTS = {
    "every third": lambda n, dtype: np.zeros(3 * n, dtype)[::3],
    "reversed": lambda n, dtype: np.zeros(n, dtype)[::-1],
    "columns": lambda n, dtype: np.zeros((n, 5), dtype)[:, 2],
    "contiguous": np.zeros,
}


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_bits_do_not_depend_on_strides(layout, dtype):
    ufunc = ufunc_of(kernel_of("sin", np.dtype(dtype)))

    for n in LENGTHS:
        given = np.linspace(-9.0, 1e3, n).astype(dtype)
        x, y = LAYOUTS[layout](n, dtype), LAYOUTS[layout](n, dtype)
        x[...] = given
        assert ufunc(x, out=y) is y
        assert np.array_equal(ufunc(given), y)
        assert np.array_equal(x, given)


def test_results_may_take_the_place_of_a_strided_operand():
    ufunc, x = ufunc_of(kernel_of("sin", np.dtype("f8"))), np.linspace(-9.0, 9.0, 3000)[::2]
    expected = ufunc(x.copy())

    ufunc(x, out=x)

    assert np.array_equal(expected, x)


@pytest.mark.parametrize("dtype", ["f8", "c16", "c8", "f4"])
def test_columns_rows_and_numbers_together(dtype):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 3)).astype(dtype)
    row, number = x[:1, :2] * 2, x.dtype.type(1.5)

    def f(x, row, number):
        y = x[:, ::2] * number + row
        return y * y * y / (y * y + 3) - y / number, y

    jitted = lt.jit(f)
    for given in (x, x.copy(order="F"), x[::-1]):
        expected, found = f(given, row, number), jitted(given, row, number)
        for a, b in zip(expected, found, strict=True):
            np.testing.assert_allclose(b, a, rtol=3e-7 if dtype in ("f4", "c8") else 1e-14)
            assert a.strides == b.strides


def test_errors_of_strided_elements_are_reported_once():
    x = np.ones((2000, 2))
    x[1700, 1] = -1.0
    f = lt.jit(lambda x: np.sin(np.log(x[:, 1])) + np.exp(x[:, 0]))

    with pytest.warns(RuntimeWarning, match="invalid value encountered in log") as caught:
        found = f(x)

    assert len(caught) == 1
    with np.errstate(invalid="ignore"):
        assert_same(np.isnan(np.log(x[:, 1])), np.isnan(found))


def test_only_long_loops_copy_elements():
    x = np.ones(100_000)

    def copies(f) -> bool:
        (kernel,) = lt.compile(lt.trace(f, x)).kernels
        return "@loaded8" in kernel.llvm

    assert copies(lambda x: np.sin(x) * x)
    assert not copies(lambda x: x * x + x)

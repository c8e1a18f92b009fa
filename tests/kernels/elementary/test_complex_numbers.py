"""Complex numbers in kernels beside NumPy's loops: bits, special values, layouts, warnings."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import letir as lt
from letir.executor.compiled import kernels_setting
from letir.executor.kernels.group_kernels import with_kernels
from letir.kernels.elementary import complex_numbers
from letir.kernels.elementwise_groups import elementwise_kernel
from letir.kernels.interpreted_calls import InterpretedCall
from letir.testing import assert_same

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)
from letir.kernels.llvm.machine_code import ufunc_of

SPECIAL = [0.0, -0.0, 1.0, -2.5, 0.3, np.inf, -np.inf, np.nan, 1e300, 1e38, 5e-324]
NUMBERS = np.array([complex(x, y) for x, y in itertools.product(SPECIAL, SPECIAL)])
RNG = np.random.default_rng(3)
Z, W = RNG.normal(size=(2, 150, 200)) + 1j * RNG.normal(size=(2, 150, 200))
FORMS = {
    "sum": lambda x, y: x + y,
    "difference": lambda x, y: x - y,
    "product": lambda x, y: x * y,
    "square": lambda x, y: np.square(x),
    "quotient": lambda x, y: x / y,
    "negative": lambda x, y: -x,
    "conjugate": lambda x, y: np.conj(x),
    "selection": lambda x, y: np.where(x == y, x, y * 2),
    "unequal": lambda x, y: x != y,
    "tests": lambda x, y: np.isnan(x) | np.isinf(y) & np.isfinite(x),
    "constants": lambda x, y: (2.5 * x - 1j) / (3 + y),
}


PRODUCTS = ["product", "square", "selection", "constants"]


def bits(x) -> np.ndarray:
    """The bits of the parts, with one kind of nan."""
    x = np.ascontiguousarray(x)
    parts = x.view(x.real.dtype)
    return np.where(np.isnan(parts), np.nan, parts).view(f"u{parts.itemsize}")


def mandelbrot(c):
    z, steps = np.zeros_like(c), np.zeros(c.shape)
    for _ in range(5):
        inside = np.abs(z) < 2
        z = np.where(inside, z * z + c, z)
        steps = steps + inside
    return steps


def quotients(x, y):
    """Several results, dtypes and broadcast operands."""
    return (x + 1) / y * x.conj() - 2j, (x == y) | np.isnan(x), (x * 2).astype("c8")


@pytest.mark.parametrize("dtype", ["c16", "c8"])
@pytest.mark.parametrize("name", FORMS)
def test_an_operation_gives_the_bits_of_numpy(name, dtype):
    f = FORMS[name]
    if dtype == "c8" and name in PRODUCTS:
        return
    with np.errstate(all="ignore"):
        numbers = NUMBERS.astype(dtype)
        x = np.concatenate([np.repeat(numbers, len(numbers)), Z.ravel()[:999].astype(dtype)])
        y = np.concatenate([np.tile(numbers, len(numbers)), W.ravel()[:999].astype(dtype)])
        kernel = elementwise_kernel(lt.trace(f, x, y), is_exact=name != "conjugate")
        expected, found = f(x, y), ufunc_of(kernel)(x, y)

    assert expected.dtype == found.dtype
    np.testing.assert_array_equal(bits(expected), bits(found))


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_whose_rounding_varies_are_left_to_numpy(name):
    x, y = Z.astype("c8"), W.astype("c8")

    assert elementwise_kernel(lt.trace(FORMS[name], x, y)) is None  # reversed arrays
    assert elementwise_kernel(lt.trace(FORMS[name], Z[0, 0], W[0, 0])) is None  # numbers


@pytest.mark.parametrize("dtype", ["c16", "c8"])
def test_an_absolute_value_is_within_two_units(dtype):
    with np.errstate(all="ignore"):
        x = np.concatenate([NUMBERS, Z.ravel()]).astype(dtype)
        program = lt.trace(np.abs, x)
        found = ufunc_of(elementwise_kernel(program))(x)
        true = np.hypot(x.real.astype("g"), x.imag.astype("g")).astype(found.dtype)

    np.testing.assert_array_max_ulp(found[np.isfinite(true)], true[np.isfinite(true)], 2)
    np.testing.assert_array_equal(found[~np.isfinite(true)], true[~np.isfinite(true)])
    assert elementwise_kernel(program, is_exact=True) is None  # NumPy's has other bits


def test_a_group_of_complex_numbers_is_one_kernel():
    program = lt.trace(quotients, Z, W[0])

    assert any(b.op.role == "kernel" for b in lt.compile(program).plan.binds)
    for x in (Z, Z.T.copy().T, Z[::-1], np.repeat(Z, 2, 1)[:, ::2]):
        assert_same(quotients(x, W[0]), lt.jit(quotients)(x, W[0]))


def test_an_escape_time_fractal_is_one_kernel():
    x, y = np.meshgrid(np.linspace(-2, 1, 60), np.linspace(-1.5, 1.5, 60))
    compiled = lt.compile(lt.trace(mandelbrot, x + 1j * y))

    np.testing.assert_array_equal(mandelbrot(x + 1j * y), compiled(x + 1j * y))
    assert any(bind.op.role == "kernel" for bind in compiled.plan.binds)


def test_a_division_by_zero_is_reported_as_by_numpy():
    x = np.ones(20_000, complex)
    f = lt.jit(lambda x: (x + 1) / (x - 1j) * 2)
    f(x)
    x[7] = 1j

    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="in divide"):
        f(x)


@pytest.mark.filterwarnings("ignore:Casting complex")
def test_imaginary_parts_are_not_dropped_in_a_kernel():
    program = lt.trace(lambda x: (x * 2).astype(float), Z)

    assert elementwise_kernel(program) is None


def test_the_interpreter_reads_and_writes_parts():
    kernel = elementwise_kernel(lt.trace(FORMS["constants"], Z[0], W[0]))

    assert ".imag = " in str(kernel)
    found = InterpretedCall(kernel)(Z[0], W[0])
    np.testing.assert_allclose(found, FORMS["constants"](Z[0], W[0]), rtol=1e-15)


def test_products_of_a_numpy_that_rounds_otherwise_are_left_to_it(monkeypatch):
    def unknown(dtype):
        raise TypeError("complex products that are rounded otherwise")

    monkeypatch.setattr(complex_numbers, "fuses_products", unknown)
    assert elementwise_kernel(lt.trace(lambda x, y: x * y + 1, Z, W)) is None
    assert elementwise_kernel(lt.trace(lambda x, y: x + y, Z, W)) is not None


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(sorted(FORMS)), min_size=1, max_size=4), st.integers(0, 12))
def test_chains_of_operations_compute_what_numpy_computes(names, size):
    def f(x, y):
        for name in names:
            x, y = y, x + FORMS[name](x, y)
        return x, y

    x, y = Z.ravel()[:size], W.ravel()[:size]
    with np.errstate(all="ignore"):
        fn = lt.trace(f, x, y)
        found = lt.run_forward(with_kernels(lt.passes.fuse(fn), min_elements=0), x, y)
        for one, other in zip(lt.run_forward(fn, x, y), found, strict=True):
            np.testing.assert_array_equal(bits(one), bits(other))

"""NumPy's elementwise functions that are not ufuncs, as NumPy has them."""

from fractions import Fraction

import numpy as np
import pytest

import letir as lt
import letir.numpy as lnp
from letir.testing import assert_same, check_grads

X = np.array([[0.5, -1.25, 0.0], [1.5, 0.75, -0.625]])
Z = X + 1j * X[::-1]
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5])


def agrees(f, *args) -> lt.Lambda:
    """The program of ``f``. Raises unless its results equal those of ``f`` to the bit."""
    program = lt.trace(f, *args)
    assert_same(f(*args), program(*args))
    return program


QUESTIONS = [np.iscomplex, np.isreal, np.fix, np.real, np.imag, np.angle, np.nan_to_num, np.sinc]
REAL_ONLY = [np.isposinf, np.isneginf, np.fix, np.i0, np.unwrap]
# deprecated by NumPy 2.5, still recorded
FIX = pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")


@FIX
@pytest.mark.parametrize("f", [*QUESTIONS, *REAL_ONLY], ids=lambda f: f.__name__)
def test_functions_of_one_array_agree_with_numpy(f):
    agrees(f, X)
    agrees(f, X.astype(np.float32))
    if f is not np.unwrap:
        agrees(f, np.float64(0.5))
    with np.errstate(all="ignore"):
        agrees(f, SPECIAL)
    if f not in REAL_ONLY:
        agrees(f, Z)
    elif f is not np.unwrap:
        with pytest.raises(TypeError):
            lt.trace(f, Z)


def test_isposinf_and_isneginf_accept_out():
    agrees(lambda x: np.isposinf(x, np.isnan(x)), SPECIAL)


@FIX
def test_rounding_accepts_digits_and_out():
    agrees(lambda x: (np.round(x, 1), np.around(x, decimals=-1), x.round(1), np.fix(x, x * 1)), X)
    agrees(lambda x: np.round(x, 1, x * 1), X)


def test_comparisons_accept_tolerances():
    agrees(lambda x: (np.isclose(x, X + 1e-9), np.isclose(x, x[0], atol=1.0, equal_nan=True)), X)
    agrees(lambda x: lnp.isclose([x[0, 0], 1.0], 0.5, rtol=x[0, 0]), X)


def test_comparisons_of_whole_arrays_return_a_guarded_boolean():
    def f(x):
        if np.allclose(x, x + 1e-12) and np.array_equal(x, x) and not np.array_equiv(x, x[0]):
            return x * 2 if np.array_equal(x, [1, 2]) is False else x
        return x

    program = agrees(f, X)
    with pytest.raises(lt.GuardError):
        program(X * np.nan)


def test_comparisons_of_whole_arrays_return_python_booleans():
    agrees(lambda x: np.allclose(x, x) + np.array_equal(x, x) + np.array_equiv(x, X[:1]), X)
    agrees(lambda x: 1.0 * lnp.array_equal([x[0, 0], np.nan], [0.5, np.nan], equal_nan=True), X)
    agrees(lambda x: np.array_equiv(x, np.ones(7)), X)


# ---- dtypes and shapes that depend on values ----


def test_real_if_close_is_guarded():
    program = agrees(np.real_if_close, X + 1e-15j)
    agrees(np.real_if_close, Z)
    agrees(lambda z: np.real_if_close(z, tol=0.5), X + 0.25j)
    agrees(np.real_if_close, X)

    with pytest.raises(lt.GuardError):
        program(Z)


@pytest.mark.parametrize("trim", ["fb", "f", "b"])
def test_trim_zeros_is_guarded(trim):
    x = np.array([0.0, 0.0, 1.5, 0.0, 2.0, 0.0])

    program = agrees(lambda x: np.trim_zeros(x, trim), x)
    agrees(lambda x: np.trim_zeros(x * 0, trim), x)
    with pytest.raises(lt.GuardError):
        program(x[::-1] if trim != "b" else np.roll(x, 1))


def test_zeros_are_trimmed_along_axes():
    x = np.zeros((4, 5))
    x[1:3, 2:4] = X[:, :2]

    agrees(lambda x: (np.trim_zeros(x), np.trim_zeros(x, axis=1), np.trim_zeros(x, "f", 0)), x)


EMATH = [np.emath.sqrt, np.emath.log, np.emath.log2, np.emath.log10]
EMATH += [np.emath.arccos, np.emath.arcsin, np.emath.arctanh]


@pytest.mark.parametrize("f", EMATH, ids=lambda f: f.__name__)
def test_emath_is_complex_where_the_real_function_is_undefined(f):
    inside = np.array([0.25, 0.5])
    outside = np.array([-2.5, 0.5])
    for dtype in (np.float64, np.float32, np.float16):
        program = agrees(f, inside.astype(dtype))
        agrees(f, outside.astype(dtype))

    agrees(f, inside + 1j)
    agrees(f, -3.0)
    agrees(f, np.array([-2, 3], np.int8))
    check_grads(f, (inside,))
    check_grads(lambda x: f(x * (1 + 0j)), (np.array([0.5, 0.25]),))
    with pytest.raises(lt.GuardError):
        program(outside.astype(np.float16))


def test_emath_powers_and_logarithms_agree_with_numpy():
    agrees(lambda x: (np.emath.power(x, 2), np.emath.power(x, 0.5)), np.array([2.0, -3.0], "f4"))
    agrees(lambda n: (np.emath.power(n, -1), np.emath.power(n, [-1, 2])), np.array([2, 3]))
    agrees(lambda x: (np.emath.logn(2, x), np.emath.logn(x, -3.0)), np.array([2.0, 3.0]))
    check_grads(np.emath.power, (np.array([2.0, -3.0]), np.array([0.5, 1.5])))


def test_letir_numpy_accepts_lists_of_traced_values():
    agrees(lambda x: lnp.emath.sqrt([x[0, 1], 2.0]), X)
    agrees(lambda x: (lnp.add.reduce([x[0, 0], 1.0]), lnp.hypot.accumulate([x[0], x[1]])), X)
    agrees(lambda x: lnp.multiply.outer([x[0, 0], 1.0], [1, x[0, 1]]), X)


def test_clip_accepts_out():
    agrees(lambda x: (np.clip(x, 0, 1, x * 1), x.clip(0, 1, x * 1), np.clip(x, max=1)), X)


def test_pythons_round_is_recorded():
    agrees(lambda x: round(x, -1), np.int64(1234))


# ---- derivatives ----


@pytest.mark.parametrize("f", [np.sinc, np.i0])
def test_sinc_and_i0_have_exact_derivatives_to_third_order(f):
    x = np.array([0.0, 1e-9, 0.05, 0.1591, 0.1592, 0.3, 2.5, 9.0])

    check_grads(f, (x,), order=2)
    check_grads(lt.grad(lambda x: f(x).sum()), (x[:-1],), order=2)


def test_the_derivative_of_i0_is_exact():
    """Values of I1 from mpmath, at 30 digits."""
    x = np.array([1e-3, 0.5, 3.0, 7.75, 8.5, 20.0])
    expected = [0.000500000062500002604, 0.257894305390896313, 3.95337021740260939]
    expected += [315.852480924003402, 641.619902540066761, 42454973.3851277702]

    found = lt.grad(lambda x: np.i0(x).sum())(x)

    np.testing.assert_allclose(expected, found, rtol=2e-15)


def test_derivatives_of_nan_to_num_flow_through_the_finite_parts_of_complex_numbers():
    x = np.array([1 + 2j, complex(np.inf, 1), complex(0.5, np.nan)])
    step = np.array([1 + 2j, 3 + 4j, 5 - 6j])

    assert_same((np.array([1 + 2j, 4j, 5]),), lt.vjp(np.nan_to_num, x)[1](step))
    assert_same(np.array([1 + 2j, 4j, 5]), lt.jvp(np.nan_to_num, (x,), (step,))[1])


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_derivatives_of_logaddexp_without_known_types(name):
    """Also where both operands are -inf, and the difference is nan."""
    program = lt.parse(f"lambda %0, %1 {{ %2 = {name}(%0, %1); return %2 }}")
    x, y = np.array([0.5, -np.inf, 2.0]), np.array([1.0, -np.inf, -3.0])

    with np.errstate(invalid="ignore"):
        slope = lt.run_forward(lt.parse(lt.dumps(lt.grad(program))), 0.5, 1.0)
        typed = lt.vjp(getattr(np, name), x, y)[1](np.ones(3))
        untyped = lt.vjp(program, x, y)[1](np.ones(3))

    np.testing.assert_allclose(slope, typed[0][0], 1e-15)
    for a, b in zip(typed, untyped, strict=True):
        np.testing.assert_array_equal(a[[0, 2]], b[[0, 2]])


@pytest.mark.parametrize("kinds", [(float, float), (np.float64, float), (np.float32, np.float32)])
def test_both_parts_of_a_complex_number_keep_their_bits(kinds):
    def of_parts(re, im):
        return complex(re, im)

    program = lt.trace(of_parts, kinds[0](1.0), kinds[1](2.0))
    values = [0.0, -0.0, np.inf, -np.inf, np.nan, 0.1]

    for re in values:
        for im in values:
            parts = kinds[0](re), kinds[1](im)
            assert_same(complex(*parts), complex(program(*parts)))


def test_derivatives_keep_their_digits_where_results_are_rounded():
    near_one = 1.0 - 1e-12
    angles = lt.grad(np.arctan2, (0, 1))

    assert np.allclose(np.exp(-40.0), lt.grad(np.expm1)(-40.0), rtol=1e-12, atol=0)
    assert np.allclose((1.6e199, -1.2e199), angles(3e-200, 4e-200), rtol=1e-12, atol=0)
    assert np.allclose((1.6e-201, -1.2e-201), angles(3e200, 4e200), rtol=1e-12, atol=0)
    assert np.allclose(
        1 / ((1 - near_one) * (1 + near_one)), lt.grad(np.arctanh)(near_one), rtol=1e-12, atol=0
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_derivatives_of_angles_keep_their_digits_for_operands_of_all_sizes(dtype):
    most = {np.float16: 1, np.float32: 35, np.float64: 300}[dtype]
    rng = np.random.default_rng(0)
    sizes = 10.0 ** (rng.uniform(-most, most, 2000) + rng.uniform(-3, 3, (2, 2000)))
    y, x = (rng.normal(size=(2, 2000)) * sizes).astype(dtype)
    found = lt.grad(lambda y, x: np.arctan2(y, x).sum(), (0, 1))(y, x)

    squares = [Fraction(float(a)) ** 2 + Fraction(float(b)) ** 2 for a, b in zip(x, y, strict=True)]
    for slopes, numbers in zip(found, (x, -y), strict=True):
        for slope, number, square in zip(slopes, numbers, squares, strict=True):
            true = float(Fraction(float(number)) / square)
            if np.finfo(dtype).tiny < abs(true) < np.finfo(dtype).max:
                assert abs(float(slope) - true) <= 4 * np.spacing(dtype(abs(true)))


@pytest.mark.parametrize(
    "norm", [np.linalg.norm, np.linalg.vector_norm, lambda x: np.hypot(x[0], x[1])]
)
def test_derivatives_of_norms_at_0_are_0_at_first_and_second_order(norm):
    zero = np.zeros(2)

    assert_same(zero, lt.grad(norm)(zero))
    assert_same(np.zeros((2, 2)), lt.hessian(norm)(zero))
    assert_same(np.zeros((2, 2)), lt.jacfwd(lt.jacfwd(norm))(zero))

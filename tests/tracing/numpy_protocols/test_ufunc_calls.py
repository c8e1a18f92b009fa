"""Calls of ufuncs with keywords, and their methods: recorded, replayed, compared with NumPy."""

import warnings

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same, check_grads
from letir.tracing.checks.unsupported import REFUSED
from letir.tracing.numpy_protocols.dispatch import recorder_of
from tests.each_sample import in_one_test

X = np.array([[0.25, -1.5, 0.75], [2.0, 0.125, -0.5]])
N = np.array([[6, 4, 3], [5, 12, 2]])
MASK = X > 0


def agrees(f, *args) -> lt.Lambda:
    """The program of ``f``. Raises AssertionError unless results and warnings are the same."""
    program = lt.trace(f, *args)
    assert_same(f(*args), program(*args))
    return program


EVERY = {f for f in vars(np).values() if isinstance(f, np.ufunc)}


@in_one_test
@pytest.mark.parametrize("ufunc", sorted(EVERY, key=str), ids=lambda f: f.__name__)
def test_every_ufunc_is_recorded_or_refused_with_a_reason(ufunc):
    assert recorder_of(ufunc) is not None or ufunc in REFUSED


# ---- arithmetic as in NumPy ----

BYTES = np.array([100, -128, 7], np.int8)


def test_integers_overflow_as_in_numpy():
    agrees(lambda n: (n + n, n * n, -n, abs(n), n - 100, n**3, n << 3, np.square(n)), BYTES)
    agrees(lambda n: (n - np.uint8(200), n * n, np.left_shift(n, 5)), BYTES.astype(np.uint8))
    agrees(lambda n: (n.sum(), n.sum(dtype=np.int8), np.add.accumulate(n, dtype=np.int8)), BYTES)
    agrees(lambda n: (n * 2, n + n, np.lcm(n, n - 1), abs(n)), np.full(2, -(2**63)))


def test_division_by_zero_of_integers_is_as_in_numpy():
    with np.errstate(all="ignore"):
        agrees(lambda n: (n // 0, n % 0, n / 0, np.divmod(n, 0), np.gcd(n, 0)), BYTES)


def test_an_imaginary_number_is_true():
    """The real part of 1j, 0.0, would be false."""
    flags = np.array([False, True])
    agrees(lambda z: (np.logical_and(z, flags, dtype=bool), np.logical_or(flags, z)), 1j)


def test_roots_of_half_precision_are_as_in_numpy():
    """NumPy takes the square root of an array and the power of a scalar."""
    x = np.array([-0.0, np.inf, -np.inf, 4], np.float16)
    with np.errstate(all="ignore"):
        agrees(lambda n: (n**0.5, n[0] ** 0.5, n[2] ** 0.5, np.power(n, 0.5)), x)


def test_the_error_state_is_respected_when_a_program_runs():
    program = lt.trace(lambda x: np.log(x) + 1 / x, np.ones(2))

    with np.errstate(all="ignore"):
        assert np.isnan(program(-np.ones(2))).all()
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="divide by zero"):
        program(np.zeros(2))
    with pytest.warns(RuntimeWarning, match="invalid value"):
        program(-np.ones(2))


def test_derivatives_of_sums_in_logarithms_are_silent_at_infinities():
    x, y = np.array([-np.inf, np.inf, -np.inf, 900.0]), np.array([-np.inf, 0.0, 2.0, 800.0])

    with np.errstate(all="raise", under="ignore"):
        by_x, by_y = lt.grad(lambda x, y: np.logaddexp(x, y).sum(), argnums=(0, 1))(x, y)
        reduced = lt.grad(np.logaddexp.reduce)(np.full(2, -np.inf))

    np.testing.assert_allclose([0.0, 1.0, 0.0, 1.0], by_x)
    np.testing.assert_allclose([0.0, 0.0, 1.0, np.exp(-100)], by_y)
    assert_same(np.zeros(2), reduced)


def test_shift_operators_agree_with_numpy():
    def f(n, i):
        n = n.copy()
        n <<= 2
        n >>= np.int8(1)
        return n << 1, 3 << n, n >> i, i << 3, 1 << i

    agrees(f, BYTES, 2)
    with pytest.raises(OverflowError, match="does not fit the 64 bits"):
        lt.trace(lambda i: i << 62, 2)


# ---- out ----


def test_out_gets_the_result_and_is_returned():
    def f(x):
        out = x * 0
        return np.sqrt(np.abs(x), out) is out, out, np.add(x, 1, out=out)

    assert agrees(f, X)(X)[0]


def test_out_may_be_wider_in_shape_and_in_dtype():
    def f(x):
        wide = np.multiply.outer(x[0], x[0]) * 0
        wide += np.add(x[0], 1, out=wide.copy())
        single = x.astype(np.float32)
        return wide, np.multiply(x, 0.1, out=single)

    agrees(f, X)


def test_out_is_cast_to_as_casting_allows():
    def f(x):
        whole = x.astype(int)
        np.add(x, 0.75, out=whole, casting="unsafe")
        return whole

    agrees(f, X)
    with pytest.raises(lt.DTypeError, match="casting is 'same_kind'"):
        lt.trace(lambda x: np.add(x, 0.75, out=x.astype(int)), X)


def test_several_results_have_several_outs():
    def f(x):
        fraction, whole = x.copy(), x.copy()
        np.modf(x, fraction, whole)
        quotient, _ = np.divmod(x, 0.3, out=(x.copy(), None))
        return fraction, whole, quotient, np.frexp(x)

    agrees(f, X)


def test_a_traced_out_of_arrays_is_written():
    def f(x):
        out = x * 1
        np.add(X, 1, out=out)
        np.add.reduce(X, axis=1, out=out[:, 0].copy())
        return out

    agrees(f, X)


# ---- where ----


def masked_log(x):
    """Logarithms of the positive elements."""
    out = x * 0 - 1
    return np.log(x, out=out, where=x > 0)


def test_where_updates_out_where_the_mask_holds():
    agrees(masked_log, X)
    agrees(lambda x: np.divide(x, N - 4, out=x.copy(), where=N != 4), X)
    agrees(lambda x: np.add(x[0], x[1], out=x.copy(), where=np.array([True, False, True])), X)
    agrees(lambda x: np.floor_divide(N, x, out=x.copy(), where=np.isfinite(x)), X)
    agrees(lambda x: np.arccosh(x, out=x.copy(), where=x > 1), X)


def test_elements_outside_the_mask_are_not_computed():
    program = lt.trace(masked_log, X)

    with np.errstate(all="raise"):
        program(X)
        found = lt.grad(lambda x: masked_log(x).sum())(X * [1, 0, 1])

    assert_same(np.where(X * [1, 0, 1] > 0, 1 / X, 0.0), found)


def test_ufuncs_with_where_have_derivatives():
    check_grads(masked_log, (X,))
    check_grads(lambda x, y: np.multiply(x, y, out=x**2, where=MASK), (X, X[::-1].copy()))


def test_where_takes_boolean_masks_only():
    with pytest.raises(lt.DTypeError, match="where= must be a boolean array"):
        lt.trace(lambda x: np.log(x, out=x.copy(), where=N), X)


def test_a_signature_chooses_the_loop():
    agrees(lambda x: np.add(x.astype(np.float32), 1, signature="dd->d"), X)
    agrees(lambda x: np.add(x, 1, sig=(None, None, np.float32)), X)
    agrees(lambda x: np.divmod(x, 0.3, dtype=np.float32), X)


# ---- reduce, accumulate, reduceat ----

REAL = [np.subtract, np.divide, np.power, np.logaddexp, np.logaddexp2, np.hypot, np.fmax, np.fmin]
REAL += [np.arctan2, np.remainder, np.fmod, np.floor_divide, np.copysign, np.nextafter]
REAL += [np.float_power, np.heaviside, np.maximum, np.add, np.multiply]
BITS = [np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.gcd, np.lcm, np.left_shift]
BITS += [np.right_shift, np.add, np.maximum, np.subtract, np.logical_xor]


@in_one_test
@pytest.mark.parametrize("ufunc", REAL, ids=lambda f: f.__name__)
def test_reductions_of_real_numbers_by_ufuncs_agree_with_numpy(ufunc):
    x = np.abs(X) + 0.5

    with warnings.catch_warnings(action="ignore"):
        agrees(lambda x: (ufunc.reduce(x), ufunc.reduce(x, axis=1, keepdims=True)), x)
        agrees(lambda x: (ufunc.reduce(x[0]), ufunc.reduce(x, 0, np.float64)), x)
        agrees(lambda x: (ufunc.accumulate(x), ufunc.accumulate(x.astype("f4"), axis=-1)), x)
        agrees(lambda x: ufunc.reduceat(x, [0, 2, 1], axis=1), x)


@pytest.mark.parametrize("ufunc", BITS, ids=lambda f: f.__name__)
def test_reductions_of_integers_by_ufuncs_agree_with_numpy(ufunc):
    for x in (N, N.astype(np.int8)):
        agrees(lambda x: (ufunc.reduce(x), ufunc.accumulate(x, 1), ufunc.reduceat(x, [0])), x)


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.logaddexp, np.hypot, np.subtract])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_dtype_of_out_takes_part_in_the_promotion_of_a_reduction(ufunc, dtype):
    x = (np.arange(12).reshape(4, 3) / 7).astype(np.float32)

    def f(x):
        out = x.astype(dtype)
        return ufunc.reduce(x, out=out[0].copy()), ufunc.accumulate(x, out=out)

    agrees(f, x)


@pytest.mark.parametrize("function", [np.sum, np.prod, np.cumsum, np.cumprod])
def test_the_dtype_of_out_takes_part_in_a_sum(function):
    x = (np.arange(12).reshape(4, 3) / 7).astype(np.float32)

    for kind in (np.float64, np.float32):
        agrees(lambda x, kind=kind: function(x, axis=0, out=function(x, 0).astype(kind)), x)
    agrees(lambda n: function(n, axis=0, out=function(n, 0).astype(np.int8)), N.astype("i1") * 9)


def test_out_of_a_narrower_dtype_is_refused():
    agrees(lambda x: np.add.reduce(x, out=x[0].astype("f4")), X)
    with pytest.raises(lt.MissingRule, match="for a reduction in float64"):
        lt.trace(lambda x: np.subtract.reduce(x, out=x[0].astype("f4")), X)
    with pytest.raises(lt.DTypeError, match="casting is 'same_kind'"):
        lt.trace(lambda x: np.max(x, axis=0, out=x[0].astype(int)), X)


FUNCTIONS_INTO_INTEGERS = {
    "sum": lambda x, out: np.sum(x, 0, out=out[0]),
    "sum with a mask": lambda x, out: np.sum(x, 0, None, out[0], where=MASK),
    "prod": lambda x, out: np.prod(x, axis=1, out=out[:, 0]),
    "add.reduce": lambda x, out: np.add.reduce(x, 0, None, out[0]),
    "nansum": lambda x, out: np.nansum(x, axis=0, out=out[0]),
    "mean": lambda x, out: np.mean(x, 0, None, out[0]),
    "mean of all": lambda x, out: x.mean(out=out[0, 0, ...]),
    "mean with a mask": lambda x, out: np.mean(x, 0, out=out[0], where=[[True], [False]]),
    "mean in a dtype": lambda x, out: np.mean(x, axis=0, dtype="f4", out=out[0]),
    "cumsum": lambda x, out: np.cumsum(x, 1, out=out),
    "cumprod": lambda x, out: np.cumprod(x, axis=0, out=out),
    "multiply.accumulate": lambda x, out: np.multiply.accumulate(x, out=out),
    "take": lambda x, out: np.take(x, [1, 0], 0, out),
    "choose": lambda x, out: np.choose([[0, 1, 0], [1, 0, 1]], [x, x + 1], out),
    "compress": lambda x, out: np.compress([True, True], x, 0, out),
}


# by NumPy since 2.5, for take and compress
@in_one_test
@pytest.mark.filterwarnings("ignore:Implicit casting of output to a different kind is deprecated")
@pytest.mark.parametrize("name", FUNCTIONS_INTO_INTEGERS)
@pytest.mark.parametrize("dtype", ["i8", "i1", "f4", "f8", "?"])
def test_results_are_cast_into_out_as_numpy_does(name, dtype):
    """Into an array that the function makes, and into one that it computes."""
    function = FUNCTIONS_INTO_INTEGERS[name]
    x = np.array([[0.6, 1.7, -2.6], [3.9, 0.7, 2.8]])

    def into_new(x):
        out = np.zeros((2, 3), dtype)
        return function(x, out), out

    def into_computed(x):
        out = (x * 0).astype(dtype)
        return function(x, out), out

    agrees(into_new, x)
    agrees(into_computed, x)
    assert_same(into_new(x), lt.jit(into_new)(x))


IN_THE_DTYPE_OF_OUT = {
    "mean": (lambda x, out: np.mean(x, axis=0, out=out), True),
    "cumulative_sum": (lambda x, out: np.cumulative_sum(x[:, 0], out=out), True),
    "einsum": (lambda x, out: np.einsum("ij->j", x, out=out), False),
    "ptp": (lambda x, out: np.ptp(x, axis=0, out=out), False),
    "round": (lambda x, out: np.round(x[0], 1, out=out), False),
    "fft": (lambda x, out: np.fft.fft(x[:, 0], out=out), False),
}


@pytest.mark.filterwarnings("ignore:jit calls")
@pytest.mark.parametrize("name", IN_THE_DTYPE_OF_OUT)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.uint8, np.int32])
def test_what_numpy_computes_in_the_dtype_of_out_is_computed_so_or_refused(name, dtype):
    """200 + 200 is 144 in uint8, which einsum gives without ``out``."""
    function, is_recorded = IN_THE_DTYPE_OF_OUT[name]
    x = (np.arange(9).reshape(3, 3) * 30.37).astype(dtype)

    def into_wider(x):
        out = np.zeros(3, complex if name == "fft" else np.float64)
        return function(x, out), out

    assert_same(into_wider(x), lt.jit(into_wider)(x))
    if is_recorded:
        agrees(into_wider, x)
    else:
        try:
            assert_same(into_wider(x), lt.trace(into_wider, x)(x))
        except lt.DTypeError as error:
            assert "pass out= of dtype" in str(error)


def test_a_long_sum_into_integers_is_refused():
    """NumPy casts it whenever its buffer is full: 5333, not 5334."""
    x = np.full(9000, 0.6)

    with pytest.raises(lt.DTypeError, match="casting is 'same_kind'"):
        lt.trace(lambda x: np.sum(x, out=np.array(0)), x)


@pytest.mark.parametrize(
    "function", [np.take, lambda n, i, axis, out: np.compress([1, 0], n, axis, out)]
)
def test_elements_are_not_selected_into_a_wider_dtype(function):
    """NumPy selects them since 2.5; letir refuses it."""
    n = np.arange(6).reshape(2, 3)

    if np.lib.NumpyVersion(np.__version__) < "2.5.0":
        with pytest.raises(TypeError):
            function(n, [0], 0, np.zeros((1, 3)))
    with pytest.raises(TypeError, match="the result is int64, the array for it float64"):
        lt.trace(lambda n: function(n, [0], 0, np.zeros((1, 3))), n)


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.zeros((2, 2), np.float32),
        lambda: np.zeros((2, 2), int),
        lambda: np.zeros((2, 2), order="F"),
        lambda: np.zeros((2, 4))[:, ::2],
    ],
)
def test_dot_refuses_what_numpy_refuses(make):
    def f(x):
        return np.dot(x, x.T, out=make())

    with pytest.raises(ValueError, match="not acceptable"):
        f(X)
    with pytest.raises(ValueError, match="not acceptable"):
        lt.trace(f, X)
    agrees(lambda x: np.dot(x, x.T, out=np.zeros((2, 2))), X)


def test_reductions_take_masks_and_initial_values():
    agrees(lambda x: np.subtract.reduce(x, axis=1, initial=2.0, where=x > 0), X)
    agrees(lambda x: np.logaddexp.reduce(x, axis=(0, 1), where=MASK), X)
    agrees(lambda x: np.maximum.reduce(x, axis=None, initial=-1.0, where=MASK, dtype="f4"), X)
    with pytest.raises(lt.ShapeError, match="where= needs initial="):
        lt.trace(lambda x: np.subtract.reduce(x, where=x > 0), X)


def test_reductions_that_numpy_refuses_are_refused():
    with pytest.raises(ValueError, match="only supported for binary functions"):
        lt.trace(np.sin.reduce, X)
    with pytest.raises(ValueError, match="not reorderable"):
        lt.trace(lambda x: np.subtract.reduce(x, axis=(0, 1)), X)
    with pytest.raises(lt.DTypeError, match="less does not fold"):
        lt.trace(np.less.reduce, X)


def test_the_indices_of_reduceat_may_be_recorded_ones():
    def runs(x):
        starts = np.flatnonzero(np.r_[True, x[1:] != x[:-1]])
        return np.add.reduceat(x, starts), np.add.reduceat(x, np.arange(0, x.shape[0], 2))

    program = agrees(runs, np.array([1, 1, 2, 2, 3]))

    with pytest.raises(lt.GuardError):
        program(np.array([1, 2, 2, 3, 3]))
    assert "guard" not in lt.trace(lambda x: np.add.reduceat(x, np.arange(2)), X).listing()


FOLDS = [np.subtract, np.divide, np.power, np.logaddexp, np.hypot, np.fmax, np.arctan2, np.multiply]


@pytest.mark.parametrize("ufunc", FOLDS, ids=lambda f: f.__name__)
def test_reductions_have_derivatives_to_second_order(ufunc):
    """Along the first axis: for contiguous rows NumPy 2.4 rounds arctan2 and power differently."""
    x = (np.abs(X) + 0.25 * np.arange(3) + 0.5).T.copy()

    check_grads(ufunc.reduce, (x,))
    check_grads(ufunc.accumulate, (x,))
    if ufunc not in (np.power, np.arctan2):
        check_grads(lambda x: ufunc.reduceat(x, [0, 2], axis=0), (x,))


# ---- outer ----


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.arctan2, np.divmod])
def test_an_outer_call_meets_every_element_with_every_other(ufunc):
    agrees(lambda x: (ufunc.outer(x, x[0]), ufunc.outer([1.0, 2.0], x[1]), ufunc.outer(x, 2.0)), X)
    agrees(lambda x: ufunc.outer(x[0], N, dtype=np.float32), X)


# ---- at ----

PLACES = [np.array([0, 1, 0]), ([0, 1, 0], [2, 2, 2]), slice(1), X > 0, (0, slice(None))]


@in_one_test
@pytest.mark.parametrize("place", PLACES, ids=["rows", "pairs", "slice", "mask", "row"])
@pytest.mark.parametrize(
    "ufunc", [np.add, np.subtract, np.multiply, np.divide, np.maximum, np.fmin, np.logaddexp]
)
def test_a_ufunc_works_in_place_at_places_that_repeat(ufunc, place):
    def f(x, y):
        out = x.copy()
        ufunc.at(out, place, 0.375)
        ufunc.at(out, place, y)
        return out

    y = np.float32(1.7)
    agrees(f, X, y)
    agrees(f, X.astype(np.float32), np.float64(1.7))
    if ufunc is not np.logaddexp:
        check_grads(f, (X, np.float64(y)), order=1)


@in_one_test
@pytest.mark.parametrize(
    "item",
    [
        lambda i, j: (i, j),
        lambda i, j: (i, slice(1, None)),
        lambda i, j: (slice(0, 2), j),
        lambda i, j: (i, 1),
        lambda i, j: (i, j[0]),
        lambda i, j: (..., i),
        lambda i, j: (i, None, j),
        np.ix_,
        lambda i, j: ([i[0], j[0]], [0, 1]),
        lambda i, j: [i[0], j[0]],
    ],
    ids=["pair", "row", "column", "number", "traced", "dots", "None", "ix_", "lists", "list"],
)
@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum])
def test_a_tuple_of_traced_indices_is_an_index_for_each_axis(ufunc, item):
    def f(x, y, i, j):
        out = x.copy()
        ufunc.at(out, item(i, j), y)
        return out

    i, j = np.array([1, 1, 0]), np.array([0, 1, 1])
    agrees(f, X, 1.5, i, j)
    assert_same(f(X, 1.5, j, i), lt.trace(f, X, 1.5, i, j)(X, 1.5, j, i))
    check_grads(lambda x, y: f(x, y, i, j), (X, 1.5), order=1)


def test_a_ufunc_of_one_operand_works_in_place():
    def f(x):
        out = x.copy()
        np.negative.at(out, [0, 0, 1])
        np.exp.at(out, (slice(None), 1))
        return out

    agrees(f, X)
    with pytest.raises(lt.MissingRule, match=r"exp.at has no derivative"):
        lt.grad(lambda x: f(x).sum())(X)


def test_an_update_is_cast_to_what_it_updates_as_in_numpy():
    def f(n):
        n = n.copy()
        np.add.at(n, [0, 0], 0.75)
        np.sqrt.at(n, 1)
        return n

    agrees(f, N)
    with pytest.raises(lt.DTypeError, match="the imaginary part would be lost"):
        lt.trace(lambda x: np.add.at(x.copy(), [0], 1j), X)


def test_arrays_without_axes_are_folded_along_axis_0_and_scalars_are_not_updated():
    agrees(lambda x: (np.fmax.reduce(x), np.subtract.reduce(x, axis=-1)), np.array(2.5))
    agrees(lambda x: np.logical_and.reduce(x, axis=1, initial=False), X)
    with pytest.raises(TypeError, match="first operand must be array"):
        lt.trace(lambda x: np.add.at(x[0, 0], (), 1.0), X)


def test_where_without_out_gives_zeros_elsewhere():
    def f(x):
        positive = x > 0
        return np.log(x, where=positive), np.divmod(x, 2.0, where=positive)

    x = np.array([1.0, -2.0, 3.0])
    program = lt.trace(f, x)

    with np.errstate(all="raise"):
        logs, (whole, rest) = program(x)

    assert_same(np.array([0.0, 0.0, np.log(3.0)]), logs)
    assert_same((np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 1.0])), (whole, rest))
    assert_same(np.array([1.0, 0.0, 1 / 3]), lt.grad(lambda x: np.log(x, where=x > 0).sum())(x))


@in_one_test
@pytest.mark.parametrize("ufunc", [np.equal, np.add, np.less])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("number", [3.0, 3, 1j])
def test_numbers_that_casting_equiv_forbids_raise_numpys_error(ufunc, dtype, number):
    f = lambda x: ufunc(x, number, casting="equiv")  # noqa: E731
    x = np.array([3, 4], dtype)
    try:
        expected = f(x)
    except TypeError:
        with pytest.raises(TypeError, match="cast"):  # resolve_dtypes of NumPy 2.4 crashes
            lt.trace(f, x)
    else:
        assert_same(expected, lt.trace(f, x)(x))


@pytest.mark.parametrize("x", [np.array([1, 2]), np.array([1.0, -2.0]), np.float64(1.0)])
def test_divmod_is_one_ufunc_of_arrays_and_scalars(x):
    def both(x):
        return divmod(x, 0 * x), divmod(7, x)

    def warned(function):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            result = function(x)
        return result, {str(w.message).replace("scalar ", "") for w in found}

    expected, texts = warned(both)
    program, _ = warned(lambda x: lt.trace(both, x))
    for function in (lt.jit(both), program):
        result, found = warned(function)
        assert_same(expected, result)
        assert found == texts

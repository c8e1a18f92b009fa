"""NumPy's calls on traced values: every ufunc, function, method and operator that is recorded."""

import operator

import numpy as np
import pytest

import letir as lt
from letir.ast.primitive import PRIMITIVES
from letir.ops import load_all
from letir.testing import assert_same
from letir.tracing.numpy_protocols.dispatch import recorder_of, refresh_tables
from letir.tracing.numpy_protocols.ufunc_calls import call_ufunc
from tests.each_sample import in_one_test

X = np.array([[0.25, 0.5], [0.75, 0.125]])
N = np.array([[1, 2], [3, 4]])
RARE = {id(op) for family in load_all() for op in vars(family).values()}


@pytest.fixture(autouse=True)
def _no_operation_outlives_its_test():
    before = set(PRIMITIVES)
    yield
    for name in [name for name in PRIMITIVES if name not in before and "." in name]:
        del PRIMITIVES[name]
    refresh_tables()


RECORDED = {f: op for op in PRIMITIVES.values() for f in op.numpy if "." not in op.name}
UFUNCS = [f for f in RECORDED if isinstance(f, np.ufunc)]
REDUCED = [f for f in UFUNCS if "reduce" in RECORDED[f].methods]
ABOVE_ONE = (np.arccosh,)
INTEGERS = (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.bitwise_count)
INTEGERS += (np.left_shift, np.right_shift, np.gcd, np.lcm)

CALLS = {
    np.broadcast_to: lambda x: np.broadcast_to(x, (3, 2, 2)),
    np.reshape: lambda x: np.reshape(x, (4, 1), order="F"),
    np.real: lambda x: np.real(x * 1j + x),
    np.imag: lambda x: np.imag(x * 1j + x),
    np.where: lambda x: np.where(x > 0.3, x, -x),
    np.clip: lambda x: np.clip(x, 0.2, 0.6),
    np.copy: lambda x: np.copy(x, order="F"),
    np.transpose: lambda x: np.transpose(x, (1, 0)),
    np.moveaxis: lambda x: np.moveaxis(x, 0, -1),
    np.swapaxes: lambda x: np.swapaxes(x, 0, 1),
    np.expand_dims: lambda x: np.expand_dims(x, (0, 2)),
    np.squeeze: lambda x: np.squeeze(x[None], axis=0),
    np.flip: lambda x: np.flip(x, axis=(0, 1)),
    np.concatenate: lambda x: np.concatenate((x, np.ones((1, 2)), x), axis=0),
    np.stack: lambda x: np.stack([x, x], axis=-1),
    np.split: lambda x: np.split(x, [1], axis=1),
    np.array_split: lambda x: np.array_split(x, 3),
    np.pad: lambda x: np.pad(x, ((1, 0), (2, 1)), constant_values=2.0),
    np.sum: lambda x: np.sum(x, axis=(0, 1), keepdims=True, where=x > 0.2, initial=1.0),
    np.mean: lambda x: np.mean(x, axis=-1, dtype=np.float32),
    np.prod: lambda x: np.prod(x, axis=0),
    np.max: lambda x: np.max(x, axis=1, initial=0.6),
    np.min: lambda x: np.min(x, axis=0),
    np.amax: lambda x: np.amax(x, axis=0),
    np.amin: lambda x: np.amin(x, keepdims=True),
    np.any: lambda x: np.any(x > 0.6, axis=0),
    np.all: lambda x: np.all(x > 0.2, axis=1, keepdims=True),
    np.argmax: lambda x: np.argmax(x, axis=0),
    np.argmin: lambda x: np.argmin(x, axis=1, keepdims=True),
    np.cumsum: lambda x: np.cumsum(x, axis=1),
    np.dot: lambda x: np.dot(x, np.ones(2)),
    np.einsum: lambda x: np.einsum("ij,kj->ik", x, x, optimize=True),
}


def agrees(function, *args) -> lt.Lambda:
    """The program of ``function``. Raises AssertionError unless its results are the same."""
    program = lt.trace(function, *args)
    assert_same(function(*args), program(*args))
    return program


def arguments(ufunc: np.ufunc) -> list:
    """Arrays for which a ufunc has a value."""
    x = N if ufunc in INTEGERS else X + 1.0 if ufunc in ABOVE_ONE else X
    return [x, N if ufunc is np.ldexp else x[::-1].copy()][: ufunc.nin]


@in_one_test
@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda f: f.__name__)
def test_a_ufunc_is_recorded_as_its_operation(ufunc):
    program = agrees(ufunc, *arguments(ufunc))

    assert [RECORDED[ufunc]] == [bind.op for bind in program.binds]


@in_one_test
@pytest.mark.parametrize("function", CALLS, ids=lambda f: f.__name__)
def test_a_function_is_recorded_as_its_operation(function):
    program = agrees(CALLS[function], X)

    assert RECORDED[function] in [bind.op for bind in program.binds]


def test_no_recorded_function_is_without_a_test():
    """Functions of rare families are in ``letir.testing.calls``."""
    frequent = {f for f, op in RECORDED.items() if id(op) not in RARE}

    assert frequent <= set(CALLS) | set(UFUNCS)


@in_one_test
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize(
    "name", ["sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "cumsum"]
)
def test_a_0d_array_is_reduced_along_axis_0_as_numpy_does(name, axis):
    agrees(lambda x: getattr(np, name)(x, axis=axis), np.float64(0.5))
    agrees(lambda x: getattr(np, name)(x, axis=axis), np.array(0.5))


@pytest.mark.parametrize("call", [lambda x: np.sum(x, axis=1), lambda x: np.mean(x, axis=0)])
def test_a_0d_array_has_no_other_axis(call):
    with pytest.raises(lt.BoundsError, match="out of bounds"):
        lt.trace(call, np.float64(0.5))


def test_einsum_computes_in_the_dtype_that_is_asked_for():
    x = X.astype(np.float32)

    agrees(lambda x: np.einsum("ij,kj->ik", x, x, dtype=np.float64), x)
    with pytest.raises(TypeError, match="casting='safe'"):
        lt.trace(lambda x: np.einsum("ij->", x, dtype=np.float32), X)


METHODS = {
    "sum": lambda x: x.sum(axis=0, keepdims=True),
    "prod": lambda x: x.prod(1),
    "mean": lambda x: x.mean(axis=(0, 1)),
    "max": lambda x: x.max(),
    "min": lambda x: x.min(axis=-1),
    "argmax": lambda x: x.argmax(0),
    "argmin": lambda x: x.argmin(),
    "any": lambda x: (x > 0.3).any(axis=0),
    "all": lambda x: (x > 0.3).all(),
    "cumsum": lambda x: x.cumsum(),
    "clip": lambda x: x.clip(0.2, 0.6),
    "clip above": lambda x: x.clip(max=0.6),
    "squeeze": lambda x: x[None].squeeze(),
    "dot": lambda x: x.dot(x),
    "astype": lambda x: x.astype("float32"),
    "conj": lambda x: (x + 1j).conj(),
    "conjugate": lambda x: (x + 1j).conjugate(),
    "reshape": lambda x: x.reshape(4, 1),
    "reshape to a tuple": lambda x: x.reshape((1, 4)),
    "reshape in columns": lambda x: x.reshape(4, order="F"),
    "ravel in columns": lambda x: x.ravel("F"),
    "flatten in columns": lambda x: x.flatten("F"),
    "tuples in an index": lambda x: x[(0, 1, 0), (1, 1, 0)] + x[((0, 0, 1),)].sum(),
    "transpose": lambda x: x.transpose(1, 0),
    "T": lambda x: x.T,
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "ravel": lambda x: x.ravel(),
    "flatten": lambda x: x.flatten(),
    "copy": lambda x: x.copy(),
    "real": lambda x: (x + 1j).real,
    "imag": lambda x: (x + 1j).imag,
}


@in_one_test
@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_recorded(name):
    agrees(METHODS[name], X)


OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.matmul,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
]


@in_one_test
@pytest.mark.parametrize("function", OPERATORS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("other", [X, [[1.0, 2.0], [3.0, 4.0]]], ids=["array", "list"])
def test_an_operator_is_recorded_on_either_side(function, other):
    agrees(lambda x: function(x, other), X)
    agrees(lambda x: function(other, x), X)


@in_one_test
@pytest.mark.parametrize("other", [2, 2.5, np.float32(2.0), np.int8(2)], ids=repr)
@pytest.mark.parametrize(
    "function", [f for f in OPERATORS if f is not operator.matmul], ids=lambda f: f.__name__
)
def test_an_operator_with_a_number_is_recorded(function, other):
    agrees(lambda x: function(x, other), X)
    agrees(lambda x: function(other, x), X)


@pytest.mark.parametrize("function", [operator.and_, operator.or_, operator.xor])
def test_an_operator_on_bits_is_recorded_on_either_side(function):
    agrees(lambda x: function(x, 1), N)
    agrees(lambda x: function(N, x), N)
    agrees(lambda x: function(x > 2, x < 4), N)


def test_scalars_are_rounded_to_digits_as_in_numpy():
    agrees(lambda x: (round(x, 2), round(x, -1), round(x, 0)), np.float64(123.456))


def test_pairs_of_quotient_and_remainder_are_recorded():
    agrees(lambda x: (divmod(x, 0.2), divmod(2, x)), X)


def test_a_list_times_an_integer_is_repeated_as_in_python():
    """[B2] Recorded as an array product it would be silently wrong."""
    program = lt.trace(lambda n, x: np.stack([x] * n), 3, X)

    assert_same(np.stack([X] * 3), program(3, X))
    assert "guard %0, 3" in program.listing()


# ---- further arguments of ufuncs and functions ----


@pytest.mark.parametrize("ufunc", REDUCED, ids=lambda f: f.__name__)
def test_a_reduction_of_a_ufunc_is_along_the_first_axis(ufunc):
    agrees(lambda x: (ufunc.reduce(x), ufunc.reduce(x, axis=None), ufunc.reduce(x, 1)), X)


def test_a_reduction_of_a_ufunc_takes_keywords():
    agrees(lambda x: np.add.reduce(x, axis=1, keepdims=True, where=x > 0.2, initial=1.0), X)


def test_an_accumulation_of_sums_is_recorded():
    agrees(lambda x: (np.add.accumulate(x), np.add.accumulate(x, 1)), X)


def test_a_dtype_chooses_the_loop_of_a_ufunc():
    agrees(lambda x: np.add(x, 1, dtype=np.float32), X)
    agrees(lambda x: np.sqrt(x, dtype=np.float32), N)
    agrees(lambda x: np.multiply(x, 2.0, dtype=complex), X)


def test_dtype_of_a_comparison_is_the_dtype_of_its_result():
    """Operands cast to bool would be silently wrong."""
    agrees(lambda x: np.less(x, 0.6, dtype=bool), X)
    agrees(lambda x: np.isnan(x, dtype=bool), np.array([np.nan, 1.0]))
    agrees(lambda x: np.absolute(x, dtype=float), np.array([3 + 4j]))


def test_a_dtype_that_needs_an_unsafe_cast_is_refused():
    with pytest.raises(TypeError, match="same_kind"):
        lt.trace(lambda x: np.add(x, 1, dtype=int), X)


def test_an_argument_of_a_ufunc_that_is_not_recorded_is_named():
    (x,) = lt.tracer_enter([X])
    try:
        with pytest.raises(lt.MissingRule, match="extra given: leave it out"):
            call_ufunc(np.add, "__call__", (x, 1), {"extra": 2})
    finally:
        lt.tracer_exit(x)  # otherwise the following tests would be traced


def test_order_and_subok_are_accepted():
    agrees(lambda x: np.add(x, x, order="F", subok=False), X)


def test_functions_that_ask_about_an_array_answer():
    def program(x):
        assert (2, 2) == np.shape(x)
        assert 2 == np.ndim(x) == np.size(x, 0)
        assert 4 == np.size(x)
        assert not np.iscomplexobj(x)
        assert np.isrealobj(x)
        assert np.can_cast(x, complex)
        assert (8, 32) == (x.itemsize, x.nbytes)
        return x

    assert 0 == len(lt.trace(program, X))


def test_promotion_is_asked_for_with_python_numbers_as_such():
    """[A1]"""
    seen = []
    lt.trace(lambda x, rate: seen.append(np.result_type(x, rate)), np.ones(2, np.float32), 0.1)

    assert [np.dtype(np.float32)] == seen


def test_promotion_is_asked_for_with_arrays_and_dtypes():
    f = lambda x: x * np.result_type(x, np.float32, "i8", 2.0).itemsize  # noqa: E731

    assert_same(f(X), lt.trace(f, X)(X))


LIKE = {
    "zeros_like": np.zeros_like,
    "ones_like": np.ones_like,
    "full_like": lambda x: np.full_like(x, 2),
    "full_like of a traced value": lambda x: np.full_like(x, x[0, 0]),
    "full_like of a list": lambda x: np.full_like(x, [x[0, 0], 2.0]),
    "another dtype": lambda x: np.zeros_like(x, dtype=int),
    "another shape": lambda x: np.ones_like(x, shape=(3,)),
    "both": lambda x: np.full_like(x, 2.5, np.float32, shape=3),
}


@pytest.mark.parametrize("name", LIKE)
def test_arrays_like_a_traced_one_are_recorded(name):
    agrees(LIKE[name], X)


def test_an_empty_array_like_a_traced_one_is_zeros():
    assert_same(np.zeros((2, 2)), lt.trace(np.empty_like, X)(X))


def test_a_list_with_traced_values_among_the_operands_of_a_function_is_stacked():
    agrees(lambda x: np.concatenate([[x[0, 0], 1.0], x[1]]), X)
    agrees(lambda x: np.where(x > 0.3, [x[0, 0], 1.0], 0.0), X)


# ---- operations of users ----


def test_an_operation_of_the_user_records_numpy_functions():
    def double(x):
        return lt.trace(np.fft.fftshift, x)

    op = lt.primitive(
        "test_dispatch.shift",
        lambda xp, x: xp.fft.fftshift(x),
        lambda x: x,
        numpy=(np.fft.fftshift,),
    )

    assert [op] == [bind.op for bind in double(X).binds]


def test_an_operation_that_is_redefined_replaces_the_old_one():
    """As when a cell of a notebook is run again."""
    for n in (1, 2):
        op = lt.primitive(
            "test_dispatch.rounded",
            lambda xp, x: xp.trunc(x),
            lambda x: x,
            numpy=(np.fix,),
            version=n,
        )
        program = lt.trace(np.fix, X)

        assert [op] == [bind.op for bind in program.binds]


def test_a_function_that_is_not_recorded_has_no_recorder():
    assert recorder_of(np.savez) is None


NUMBERS, ROWS = [3, 1, 2, 0], [[1.0, 2.0], [3.0, 4.0]]
LISTS_BESIDE_TRACED_VALUES = {
    "roll": lambda k, s: np.roll(NUMBERS, k),
    "roll of rows": lambda k, s: np.roll(ROWS, k, axis=0),
    "roll of a range": lambda k, s: np.roll(range(4), k),
    "diag": lambda k, s: np.diag(NUMBERS, k),
    "diag of an array": lambda k, s: np.diag(np.array(NUMBERS), k),
    "array_split": lambda k, s: np.array_split(NUMBERS, k + 1),
    "nan_to_num": lambda k, s: np.nan_to_num([np.nan, 1.0], nan=s),
    "lstsq": lambda k, s: np.linalg.lstsq(ROWS, [s, 1.0], rcond=None)[0],
    "trim_zeros": lambda k, s: np.trim_zeros([0.0, s, 0.0]),
    "apply_along_axis": lambda k, s: np.apply_along_axis(lambda row: row * s, 0, ROWS),
    "apply_along_axis of a buffer": lambda k, s: np.apply_along_axis(
        lambda row: [row[0] * s, k], 1, np.array(ROWS)
    ),
    "apply_over_axes": lambda k, s: np.apply_over_axes(
        lambda a, axis: a.sum(axis) * s, np.array(ROWS), 0
    ),
}


@pytest.mark.parametrize("name", LISTS_BESIDE_TRACED_VALUES)
def test_lists_next_to_traced_values_are_arrays(name):
    """No traced value is among the operands, but among the other arguments or in a function."""
    f = LISTS_BESIDE_TRACED_VALUES[name]
    program = lt.trace(f, 1, 2.5)

    assert_same(f(1, 2.5), program(1, 2.5))
    assert_same(f(1, -0.5), program(1, -0.5))

"""Functions that arrange, join, split and index arrays, as users call them in NumPy.

The laws test operations with samples; here are other spellings, and what they record.
"""

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import letir as lt
import letir.numpy as lnp
from letir.errors import DTypeError, MissingRule, ShapeError, TraceError
from letir.testing import assert_close, assert_same, check_grads
from tests.each_sample import in_one_test

X = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]])
Y = np.array([[1.1, 0.43, -0.7], [-0.93, 1.3, 0.8]])
V, N = X[0], np.float64(0.75)
B = np.linspace(-1.0, 1.3, 24).reshape(2, 3, 4)
PLACES, MASK = np.array([2, 0, 1]), np.array([[True, False, True], [False, True, True]])
F32 = V.astype(np.float32)


def replayed(f, *args) -> lt.Lambda:
    """The program of ``f``. Raises unless the two agree, at other arguments too."""
    program = lt.trace(f, *args)
    assert_same(f(*args), program(*args))
    others = [a * 2 if np.asarray(a).dtype.kind == "f" else a for a in args]
    assert_same(f(*others), program(*others))
    return program


# ---- calls ----

SPELLINGS = {
    "atleast_1d": (lambda x, n: np.atleast_1d(x, n, 2.0), (X, N)),
    "atleast_2d": (np.atleast_2d, (X, V, N)),
    "atleast_3d": (np.atleast_3d, (B, X, V, N)),
    "atleast_2d of a number": (np.atleast_2d, (2.0,)),
    "vstack": (lambda x, v: np.vstack([x, v, v]), (X, V)),
    "vstack of an array": (np.vstack, (B,)),
    "vstack of a dtype": (lambda x: np.vstack([x, x], dtype="f4", casting="unsafe"), (X,)),
    "hstack": (lambda x, y: np.hstack((x, y)), (X, Y)),
    "hstack of rows and numbers": (lambda v, n: np.hstack([v, n, 3]), (V, N)),
    "dstack": (lambda v: np.dstack([v, v]), (V,)),
    "column_stack": (lambda v, x: np.column_stack([v[:2], x]), (V, X)),
    "concat": (lambda x, y: np.concat([x, y], axis=None), (X, Y)),
    "append": (np.append, (X, N)),
    "append along an axis": (lambda x, y: np.append(x, y, axis=-1), (X, Y)),
    "block": (lambda x, y: np.block([[x, y], [y[:, :1], np.ones((2, 5))]]), (X, Y)),
    "block of numbers": (lambda n, v: np.block([[n, v], [v, 2.0]]), (N, V)),
    "block of one": (np.block, (X,)),
    "block of float32": (lambda v: np.block([v, 1]), (F32,)),
    "hsplit": (lambda x, v: [*np.hsplit(x, [1]), *np.hsplit(v, 3)], (X, V)),
    "vsplit": (lambda x: np.vsplit(x, 2), (X,)),
    "dsplit": (lambda b: np.dsplit(b, (1, 3)), (B,)),
    "array_split": (lambda b: np.array_split(b, 3, axis=-1), (B,)),
    "unstack": (lambda b: np.unstack(b, axis=-2), (B,)),
    "rollaxis": (lambda b: (np.rollaxis(b, 2), np.rollaxis(b, 0, 3), np.rollaxis(b, -1, -2)), (B,)),
    "rot90": (lambda b: [np.rot90(b, k, (0, 2)) for k in range(-1, 4)], (B,)),
    "flips": (lambda b, v: (np.flipud(b), np.fliplr(b), np.flipud(v)), (B, V)),
    "matrix_transpose": (lambda b: (np.matrix_transpose(b), b.mT), (B,)),
    "resize": (lambda x: (np.resize(x, (2, 5)), np.resize(x, 3), np.resize(x, (0, 2))), (X,)),
    "resize of nothing": (lambda x: np.resize(x, (2, 2)), (X[:0],)),
    "delete": (lambda x: (np.delete(x, 1), np.delete(x, [0, -1], 1), np.delete(x, [], 0)), (X,)),
    "delete slices and masks": (
        lambda x: (np.delete(x, slice(0, 3, 2), 1), np.delete(x, np.array([True, False]), 0)),
        (X,),
    ),
    "delete a traced place": (np.delete, (X, 2)),
    "insert": (lambda x, n: (np.insert(x, 1, n), np.insert(x, -1, n, axis=1)), (X, N)),
    "insert rows": (lambda x, v: np.insert(x, 1, v, axis=0), (X, V)),
    "insert columns": (lambda x, y: np.insert(x, [1], y, axis=1), (X, Y)),
    "insert several": (lambda x, v: np.insert(x, [2, 0, 2], v), (X, V)),
    "insert at a slice": (lambda x, v: np.insert(x, slice(0, 3), v[:2, None], axis=1), (X, V)),
    "insert casts": (lambda i, n: np.insert(i, 1, n), (PLACES, N)),
    "broadcast_arrays": (lambda x, v: np.broadcast_arrays(x, v, 2.0), (X, V)),
    "meshgrid": (lambda v, y: np.meshgrid(v, y[0, :2]), (V, Y)),
    "meshgrid ij sparse": (
        lambda v: np.meshgrid(v, [1, 2], v, indexing="ij", sparse=True, copy=False),
        (V,),
    ),
    "ix_": (lambda x, i: x[np.ix_([1, 0], i)], (X, PLACES)),
    "ix_ of masks": (lambda x: x[np.ix_([True, False], [0, 2])], (X,)),
    "diag": (lambda x, v: (np.diag(x, 1), np.diag(v, -1)), (X, V)),
    "indices": (lambda b: b[np.diag_indices(2, 3)] + b[:, :2, :2][np.diag_indices(2, 3)], (B,)),
    "indices of a triangle": (lambda b: b[0][np.tril_indices_from(b[0], 1)], (B,)),
    "indices of the other": (lambda b: b[0][np.triu_indices_from(b[0])], (B,)),
    "diag_indices_from": (lambda x: x[:, :2][np.diag_indices_from(x[:, :2])], (X,)),
    "mask_indices": (lambda x: x[:, :2][np.mask_indices(2, np.tril)], (X,)),
    "select": (lambda x, y: np.select([x > 0, y > 0], [x, y * 2], -1), (X, Y)),
    "select of numbers": (lambda x: np.select([x > 1, x > 0], [1, 2.5]), (X,)),
    "select of float32": (lambda v: np.select([v > 0], [v], 0.5), (F32,)),
    "select of rows": (lambda x, v: np.select([x > 0, MASK], [v, 2 * x], v), (X, V)),
    "piecewise": (lambda x: np.piecewise(x, [x < 0, x > 1], [np.sin, lambda t: t * t, 7]), (X,)),
    "piecewise of one": (lambda x: np.piecewise(x, x > 0, [lambda t: -t, np.abs]), (V,)),
    "piecewise casts": (lambda i: np.piecewise(i, [i > 1], [lambda t: t / 2, -1.5]), (PLACES,)),
    "piecewise of a number": (lambda n: np.piecewise(n, [n < 0, n >= 0], [-1.0, np.sqrt]), (N,)),
    "piecewise with arguments": (
        lambda x: np.piecewise(x, [x > 0], [lambda t, k, m: k * t + m], 3, m=1),
        (X,),
    ),
    "piecewise of an array from outside": (
        lambda s: np.piecewise(X, [X > 0], [lambda t: t * s, s]),
        (2.5,),
    ),
    "apply_along_axis": (lambda b: np.apply_along_axis(np.sort, 1, b), (B,)),
    "apply_along_axis to numbers": (lambda b: np.apply_along_axis(lambda r: r @ r, -1, b), (B,)),
    "apply_along_axis to matrices": (
        lambda b, k: np.apply_along_axis(lambda r, c: np.outer(r, r) * c, 1, b, k),
        (B, N),
    ),
    "apply_over_axes": (lambda b: np.apply_over_axes(np.sum, b, [0, -1]), (B,)),
    "as types": (lambda x: (np.astype(x, np.float32), np.astype(x, float, copy=False)), (X,)),
    "common_type": (lambda v: v * np.common_type(v, np.ones(1, np.int8))(2), (F32,)),
    "argsort": (lambda x: np.argsort(x, axis=None, stable=True), (X,)),
    "sort": (lambda x: np.sort(x, 0, kind="mergesort"), (X,)),
    "lexsort": (lambda x: np.lexsort((x[0], x[1] > 0)), (X,)),
    "lexsort of an array": (np.lexsort, (X,)),
    "take": (lambda x, i: (np.take(x, i), x.take([0, -1], 1, mode="wrap")), (X, PLACES)),
    "repeat with counts": (np.repeat, (X, 2)),
    "tile": (np.tile, (X, 2)),
    "roll": (lambda x: (np.roll(x, [1, 2]), np.roll(x, 1, (0, 1)), np.roll(x, (1, 1), 1)), (X,)),
    "tril of a row": (lambda v: (np.tril(v), np.triu(v, 1)), (V,)),
    "choose of rows": (lambda x, i: np.choose(i, x, mode="clip"), (X, PLACES)),
    "pad by axis": (lambda x: np.pad(x, {1: (1, 2)}, "edge"), (X,)),
    "pad with values": (lambda x: np.pad(x, 1, constant_values=(1, 2)), (X,)),
    "pad of an array from outside": (
        lambda s: (np.pad(X, 1, constant_values=(s, 2)), np.pad([1, 2], 1, constant_values=s)),
        (2.5,),
    ),
    "windows": (lambda x: sliding_window_view(x, (2, 2)), (X,)),
    "unravel_index": (lambda i: np.unravel_index(i, (2, 3)), (PLACES,)),
    "ravel_multi_index": (lambda i: np.ravel_multi_index((i, [0, 1, 2]), (3, 3)), (PLACES,)),
    "linspace": (lambda n: np.linspace(n, 2, 3, dtype=np.float32), (N,)),
    "fromfunction": (lambda n: np.fromfunction(lambda i, j: i * n + j, (2, 3)), (N,)),
    "vander by hand": (lambda v: v[:, None] ** np.arange(3), (V,)),
    "in": (lambda x: x if 2.0 in x else -x, (X * 0,)),
    "reversed": (lambda x: [*reversed(x)], (X,)),
    "zip and enumerate": (
        lambda x, y: [a * i + b for i, (a, b) in enumerate(zip(x, y, strict=True))],
        (X, Y),
    ),
    "unpacking": (lambda x: [*x[0], x.sum()], (X,)),
    "sum of Python": (lambda x: sum(x), (X,)),  # noqa: PLW0108
    "list index": (lambda x: x[[1, 0]] + x[:, [0, 1, 2]], (X,)),
}


@in_one_test
@pytest.mark.parametrize("name", SPELLINGS)
def test_a_call_is_recorded_and_agrees_with_numpy(name):
    f, args = SPELLINGS[name]

    replayed(f, *args)


@in_one_test
@pytest.mark.parametrize("name", [n for n in SPELLINGS if "casts" not in n and "as types" != n])
def test_derivatives_of_a_call_agree_with_differences(name):
    f, args = SPELLINGS[name]
    program = lt.trace(f, *args)
    floating = [np.asarray(a).dtype == np.float64 for a in args]
    if not any(floating) or not lt.differentiate(program, floating).df_output_vjps:
        return
    if "float32" not in name and name not in ("linspace", "common_type"):
        check_grads(f, args, order=2)


ONE_BIND = {
    "rollaxis": (lambda b: np.rollaxis(b, 2), "transpose"),
    "flipud": (np.flipud, "index"),
    "delete": (lambda b: np.delete(b, 1, axis=2), "index"),
    "resize": (lambda b: np.resize(b.ravel(), 5)[...], "index"),
    "unstack": (lambda b: np.unstack(b, axis=1)[0], "index"),
    "var": (np.trace, "trace"),
    "pad": (lambda b: np.pad(b, 2, "reflect"), "pad"),
    "windows": (lambda b: sliding_window_view(b, 2, axis=-1), "sliding_window_view"),
}


@pytest.mark.parametrize("name", ONE_BIND)
def test_a_composite_is_recorded_as_one_bind(name):
    """[B4]"""
    f, op = ONE_BIND[name]

    assert op in [bind.op.name for bind in lt.trace(f, B).binds]


# ---- data-dependent results ----


def test_the_index_of_a_delete_is_an_operand():
    program = lt.trace(np.delete, V, 1)

    for i in (2, 0, -1):
        assert_same(np.delete(V, i), program(V, i))
    with pytest.raises(lt.GuardError):  # out of bounds
        program(V, len(V))


def test_piecewise_of_elementwise_functions_needs_no_guard():
    def f(x):
        return np.piecewise(x, [x > 0], [np.log, 0.0])

    program = lt.trace(f, X)

    assert "guard" not in [bind.op.name for bind in program.binds]
    assert_same(f(-X), program(-X))
    assert_same(np.where(X > 0, 1 / X, 0), lt.grad(lambda x: f(x).sum())(X))


def test_piecewise_of_other_functions_guards_the_number_of_elements():
    def f(x):
        return np.piecewise(x, [x > 0], [lambda t: t - t.mean(), 0.0])

    program = replayed(f, X)

    with pytest.raises(lt.GuardError):
        program(np.abs(X))


def test_each_function_of_piecewise_gets_the_elements_of_its_condition():
    def f(x):
        return np.piecewise(x, [x > 2], [lambda t: t - t[1], 0.0])

    x = np.arange(6.0)

    assert_same(f(x), lt.trace(f, x)(x))


# ---- errors ----

WRONG = {
    "hsplit of a number": lambda x: np.hsplit(x[0, 0], 1),
    "rollaxis": lambda x: np.rollaxis(x, 2),
    "rot90": lambda x: np.rot90(x, 1, (0, 0)),
    "fliplr of a row": lambda x: np.fliplr(x[0]),
    "empty block": lambda x: np.block([[x], []]),
    "block of several depths": lambda x: np.block([[x], x]),
    "diag of three axes": lambda x: np.diag(x[None]),
    "select of too many": lambda x: np.select([x > 0], [x, x]),
    "piecewise of too many": lambda x: np.piecewise(x, [x > 0], [1, 2, 3]),
    "indexing": lambda x: np.meshgrid(x[0], indexing="yx"),
    "ix_ of matrices": np.ix_,
    "pad of an unknown mode": lambda x: np.pad(x, 1, "mirror"),
    "pad with a foreign option": lambda x: np.pad(x, 1, "edge", stat_length=2),
    "pad of nothing": lambda x: np.pad(x[:0], 1, "edge"),
    "a mode": lambda x: np.take(x, 1, mode="around"),
    "too large a window": lambda x: sliding_window_view(x, (3, 3)),
    "repeat": lambda x: np.repeat(x, [1, 2], axis=1),
    "lexsort": lambda x: np.lexsort((x, x[0])),
    "tril of a number": lambda x: np.tril(x[0, 0]),
    "an order": lambda x: np.sort(x, order="field"),
}


@in_one_test
@pytest.mark.parametrize("name", WRONG)
def test_an_invalid_call_is_an_error_when_it_is_recorded(name):
    with pytest.raises((ShapeError, np.exceptions.AxisError)):
        lt.trace(WRONG[name], X)


def test_conditions_of_select_must_be_boolean():
    with pytest.raises(DTypeError, match="conditions must be boolean"):
        lt.trace(lambda x: np.select([x], [x]), X)


def test_an_index_out_of_bounds_is_an_error_in_the_replay():
    program = lt.trace(lambda x, i: (np.take(x, i), np.unravel_index(i, (2, 3))), X, PLACES)

    with pytest.raises(IndexError):
        program(X, PLACES + 5)


def test_whether_two_views_share_memory_is_known_or_refused():
    def f(x):
        y = x * 2
        assert np.may_share_memory(y, y[1:]) and not np.shares_memory(y, x)
        assert np.shares_memory(y, y)
        return y

    replayed(f, X)
    with pytest.raises(TraceError, match="two parts"):
        lt.trace(lambda x: np.shares_memory(x[:1], x[1:]), X)


# ---- lists ----


@pytest.mark.parametrize("f", [np.mean, np.array, np.sort, np.asarray, np.median])
def test_numpy_functions_accept_lists_of_traced_values(f):
    replayed(lambda x: f([x[0], x[1]]), X)


LISTS = {
    "mean": lambda np, x: np.mean([x[0, 0], x[1, 1]]),
    "rows": lambda np, x: np.sort([x[0], x[1]], axis=None),
    "nested": lambda np, x: np.sum([[x[0, 0], 1.0], [x[0, 1], x[0, 2]]], axis=0),
    "vstack of lists": lambda np, x: np.vstack([[x[0, 0], 1.0], x[:, :2]]),
    "block of numbers": lambda np, x: np.block([[x[0, 0], 1.0], [2.0, x[0, 1]]]),
    "append": lambda np, x: np.append([1.0, 2.0], [x[0, 0], x[0, 1]]),
    "take of a table": lambda np, x: np.take(V, (x[0] > 0).astype(int)) * x,
    "take": lambda np, x: np.take([x[0, 0], x[1, 0]], [1, 0, 0]),
    "where": lambda np, x: np.where([True, False], [x[0, 0], x[0, 1]], x[0, 2]),
    "select": lambda np, x: np.select([[True, False]], [[x[0, 0], x[0, 1]]], 3.0),
    "dot": lambda np, x: np.dot([x[0, 0], x[0, 1]], [1.0, 2.0]),
    "r_": lambda np, x: np.r_[x[0, 0], 1:3, x[1], [4.0], 0:1:3j],
    "r_ along an axis": lambda np, x: np.r_["-1", x, x],
    "r_ of columns": lambda np, x: np.r_["0,2,0", x[0], [1.0, 2, 3]],
    "c_": lambda np, x: np.c_[x[0], [1, 2, 3], np.ones((3, 2))],
    "r_ between traced ends": lambda np, x: np.r_[x[0, 0] : x[0, 2] : 4j],
    "fromiter": lambda np, x: np.fromiter((v * 2 for v in x[0]), float),
    "ndenumerate": lambda np, x: sum(v * (i + 2 * j) for (i, j), v in np.ndenumerate(x)),
    "ascontiguousarray": lambda np, x: np.ascontiguousarray([x[0, 0], 2.0]),
    "asarray_chkfinite": lambda np, x: np.asarray_chkfinite(x),
    "require": lambda np, x: np.require([x[0, 0], 1], np.float32, ["C"]),
}


@in_one_test
@pytest.mark.parametrize("name", LISTS)
def test_letir_numpy_accepts_lists_of_traced_values(name):
    f = LISTS[name]

    program = lt.trace(lambda x: f(lnp, x), X)

    assert_same(f(np, X), program(X))
    assert_same(f(np, X * 2), program(X * 2))
    check_grads(lambda x: f(lnp, x), (X,), order=1)


def test_asarray_chkfinite_is_guarded():
    program = lt.trace(lambda x: lnp.asarray_chkfinite(x), X)  # noqa: PLW0108

    with pytest.raises(lt.GuardError):
        program(X * np.inf)


# ---- functions on elements ----


def test_vectorize_calls_the_function_for_each_element():
    def ramp(x, slope):
        return slope * x if x > 0 else 0.0

    each = lnp.vectorize(ramp)
    program = lt.trace(lambda x: each(x, 2.0), X)

    assert_same(np.vectorize(ramp)(X, 2.0), program(X))
    assert_same(np.vectorize(ramp)(X, 2.0), each(X, 2.0))
    assert_same(2.0 * (X > 0), lt.grad(lambda x: each(x, 2.0).sum())(X))
    with pytest.raises(lt.GuardError):
        program(-X)


def test_frompyfunc_is_refused_as_it_makes_object_arrays():
    square = np.frompyfunc(lambda t: t * t, 1, 1)

    with pytest.raises(MissingRule, match=r"(?s)objects; .*letir\.numpy\.vectorize"):
        lt.trace(square, X)


def test_vectorize_accepts_numpys_options():
    @lnp.vectorize
    def pair(x, *, k=1.0):
        return x + k, x * k

    several = lnp.vectorize(lambda x, ks: x * ks[0], excluded=[1], otypes=[np.float32])

    assert_same(pair(X, k=3.0), lt.trace(lambda x: pair(x, k=3.0), X)(X))
    assert_same(several(V, [2.0]), lt.trace(lambda v: several(v, [2.0]), V)(V))


@pytest.mark.parametrize("vectorize", [lnp.vectorize, np.vectorize])
def test_vectorize_records_with_and_without_a_signature(vectorize):
    sums = vectorize(lambda row: (row * row).sum(), signature="(n)->()")
    squares = vectorize(lambda t: t * t)

    replayed(sums, X)
    replayed(squares, X)
    check_grads(sums, (X,), order=1)
    check_grads(squares, (X,), order=1)


@pytest.mark.parametrize("shape", [(2, -6), (-2, 3), -7])
def test_each_negative_size_of_a_reshape_stands_for_the_rest(shape):
    program = replayed(lambda x: (np.reshape(x, shape), x.reshape(shape)), X)

    assert lt.parse(lt.dumps(program)) == program


@pytest.mark.parametrize("bounds", [(1.0, 1), (0.0, 0, 2.0), (-3, 0, 1.0)], ids=str)
def test_a_range_up_to_a_symbolic_size_takes_whole_floats(bounds):
    """With the shift of the end: np.arange(1.0, n + 1)."""
    start, shift, *step = bounds

    def f(x):
        return np.arange(start, x.shape[0] + shift, *step)

    program = lt.trace(f, lt.ShapeDtype((lt.Size("n"),)))

    for n in range(1, 8):
        assert_same(f(np.zeros(n)), program(np.zeros(n)))


def test_a_range_up_to_a_symbolic_size_refuses_fractions():
    with pytest.raises(lt.ShapeError, match="a step is an integer"):
        lt.trace(lambda x: np.arange(0.5, x.shape[0]), lt.ShapeDtype((lt.Size("n"),)))


def test_parts_of_a_symbolic_size_are_those_of_array_split():
    program = lt.trace(lambda x: np.array_split(x, 4), lt.ShapeDtype((lt.Size("n"),)))

    for n in range(10):
        x = np.arange(float(n))
        assert_same(np.array_split(x, 4), program(x))


WITH_SETTINGS = {
    "joined with loss": lambda x, i: np.hstack([x, i], dtype=int, casting="unsafe"),
    "transposed by an array": lambda x, i: np.ones((2, 3, 4)).transpose(i[::-1]) * x[0],
    "stacked with a dtype": lambda x, i: np.stack([x, i], 1, dtype=np.float32),
    "stacked numbers": lambda x, i: np.stack([[x[0]], [2]], dtype=np.complex128),
    "stacked with loss": lambda x, i: np.stack([x, i], dtype=int, casting="unsafe"),
    "rows with loss": lambda x, i: np.vstack([x, i], dtype=np.int8, casting="unsafe"),
    "a list of numbers": lambda x, i: np.concatenate([[x[0]], [2, x[1]]], dtype=np.float32),
    "a block of a number": lambda x, i: np.block(x[0]),
    "a row of a number": lambda x, i: np.asfortranarray(x[0]),
    "places without elements": lambda x, i: np.ix_(x[:0], i),
    "a list without elements": lambda x, i: np.ix_([], i),
    "a number without zeros": lambda x, i: np.trim_zeros(np.array(x[1])),
    "inserted at a list of numbers": lambda x, i: np.insert(list(x), [i[1], i[0]], list(x[:2])),
    "required": lambda x, i: np.require(i, float, ["C", "W"]),
    "a text": lambda x, i: (x == "auto", x[0] != "auto", b"no" != i, i[0] == "auto"),
}


@in_one_test
@pytest.mark.parametrize("f", WITH_SETTINGS.values(), ids=list(WITH_SETTINGS))
def test_settings_are_those_of_numpy(f):
    x, i = np.array([0.5, -1.75, 2.0]), np.arange(3)

    replayed(f, x, i)
    assert_same(f(x, i), lt.jit(f)(x, i))


WRONG_SETTINGS = {
    "casts": (lambda x: np.concatenate([x, x], dtype=int), TypeError),
    "casts to less": (lambda x: np.hstack([x], dtype="f4", casting="no"), TypeError),
    "requirements": (lambda x: np.require(x, None, "Q"), KeyError),
    "both orders": (lambda x: np.require(x, None, ["C", "F"]), ValueError),
    "sections": (lambda x: np.array_split(x, 0), ValueError),
    "places": (lambda x: np.take_along_axis(x, x, 0), IndexError),
    "axes": (lambda x: np.rollaxis(x, 3), np.exceptions.AxisError),
    "axes of a difference": (lambda x: np.diff(x, prepend=0, axis=2), np.exceptions.AxisError),
}


@pytest.mark.parametrize(("f", "error"), WRONG_SETTINGS.values(), ids=list(WRONG_SETTINGS))
def test_wrong_settings_are_numpys_errors(f, error):
    for run in (f, lambda x: lt.trace(f, x), lt.jit(f)):
        with pytest.raises(error):
            run(V)


@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_a_python_complex_number_in_a_list_of_reals_is_numpys_error():
    def f(z):
        return np.array([z, 1.0], float)

    for run in (f, lambda z: lt.trace(f, z), lt.jit(f)):
        with pytest.raises(TypeError, match="real number"):
            run(1j)
    z = np.complex128(2 + 1j)
    assert_same(f(z), lt.trace(f, z)(z))


@in_one_test
@pytest.mark.parametrize("number", [2.75, np.float64(-1.5), 7, 300, -1, np.nan, np.inf, 1e30])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_numbers_in_a_list_fit_the_dtype_or_are_numpys_error(number, dtype):
    def f(x):
        return np.array([[x, 1.5], [x, 2]], dtype)

    try:
        expected = f(number)
    except (ValueError, OverflowError) as error:
        with pytest.raises(type(error)):
            lt.trace(f, number)
        with pytest.raises(type(error)):
            lt.jit(f)(number)
    else:
        assert_same(expected, lt.trace(f, number)(number))
        assert_same(expected, lt.jit(f)(number))


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
def test_the_gradient_of_borders_of_symbolic_size_is_that_of_known_size(mode):
    def weighted(x):
        padded = np.pad(x, (3, 2), mode)
        return (padded * np.arange(1, padded.shape[0] + 1)).sum()

    f = lt.grad(lt.trace(weighted, lt.ShapeDtype(("n+4",))))
    for n in (4, 7):
        assert_close(lt.grad(weighted)(np.ones(n)), f(np.ones(n)))


@pytest.mark.parametrize("axis", ["1.5", "nan", "(0.5,)", "float64"])
def test_an_axis_in_a_text_is_an_integer(axis):
    """Of an operand of unknown type, the axis is first looked at when the program is traced."""
    f = lt.parse(f"lambda %0 {{ %1 = expand_dims(%0, axis={axis}); return %1 }}")

    with pytest.raises(DTypeError, match="is not an integer"):
        lt.trace(f, np.ones(3))


@pytest.mark.parametrize("shift", [1.7, True, np.float64(-1.7), (1.5, 1)])
def test_shifts_of_roll_are_truncated_like_numpys(shift):
    x = np.arange(6.0).reshape(2, 3)
    axis = (0, 1) if type(shift) is tuple else 1

    program = lt.trace(lambda x: np.roll(x, shift, axis), x)

    assert_same(np.roll(x, shift, axis), program(x))


def test_traced_floats_and_booleans_count():
    def f(x, s):
        return np.roll(x, x[2]), np.roll(x, x[0] > 1), np.repeat(x, x[2]), np.repeat(x, s)

    x = np.array([1.5, 0.5, 2.25])
    program, jitted = lt.trace(f, x, 2.5), lt.jit(f)

    for result in (program(x, 2.5), jitted(x, 2.5)):
        for expected, actual in zip(f(x, 2.5), result, strict=True):
            assert_same(expected, actual)
    with pytest.raises(lt.GuardError):
        program(x * 2, 2.5)


def test_a_number_padded_with_a_traced_value_is_a_new_array():
    def f(x, value):
        padded = np.pad(x, (2, 1), constant_values=value)
        padded[...] = 7.0
        return padded, x

    for x in (1.5, np.float64(1.5), np.array(1.5)):
        for g in (lt.trace(f, x, 0), lt.jit(f)):
            assert_same(f(x, 0), g(x, 0))


@pytest.mark.filterwarnings("ignore:jit calls")
def test_a_function_that_pads_runs_as_python():
    def border(vector, widths, axis, options):
        vector[: widths[0]], vector[vector.size - widths[1] :] = 7.0, 7.0

    assert_same(np.array([7.0, 1.0, 7.0]), lt.jit(lambda x: np.pad(x, 1, border))(np.ones(1)))
    with pytest.raises(MissingRule, match="a function as mode is not recorded"):
        lt.trace(lambda x: np.pad(x, 1, border), np.ones(1))

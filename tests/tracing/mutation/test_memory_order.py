"""[B6, F6] Memory order of arrays: a guard where it matters, an error where it is unknown."""

import copy
import itertools
import warnings

import numpy as np
import pytest

import letir as lt
from letir.ast.primitive import PRIMITIVES
from letir.errors import TraceError
from letir.eval.evaluator import run_flat
from letir.testing import SAMPLES, applied_program, assert_same
from tests.each_sample import each_of, in_one_test

X = np.arange(16.0).reshape(4, 4) + 0.5
ORDERS = {"C": X, "F": np.asfortranarray(X), "strided": np.repeat(X, 2, axis=1)[:, ::2]}


def ravel_of_a_stack(x):
    y = np.stack([x, x])
    z = y.reshape(-1)
    z[0] = 5
    return y, z


def ravel_of_a_column(x):
    y = (x * 2)[:, 0]
    y += 1
    z = y.ravel()
    z[0] = 5
    return y, z


def reshape_of_a_column(x):
    y = (x * 2)[:, 0]
    y += 1
    z = y.reshape(2, 2)
    w = z.ravel()
    w[0] = 5
    return y, z, w


def ravel_of_flipped_rows(x):
    y = x[:, ::-1] * 2
    z = y.ravel()
    z[0] = 5
    return y, z


def ravel_of_a_broadcast(x):
    y = np.broadcast_to(x[0], (3, 4)) * 1
    z = y.ravel()
    z[0] = 5
    return y, z


def ravel_of_columns_in_a_sum(x):
    y = x[:, :1] + x[:, 1:2].T
    z = y.ravel()
    z[0] = 5
    return y, z


def ravel_of_joined_rows(x):
    y = np.concatenate([x[1:], x[None, 0]])
    z = y.ravel()
    z[0] = 5
    return y, z


UNSURE = [ravel_of_a_column, reshape_of_a_column, ravel_of_flipped_rows, ravel_of_a_broadcast]
UNSURE += [ravel_of_columns_in_a_sum]
SURE = [ravel_of_a_stack, ravel_of_joined_rows]


@in_one_test
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("program", UNSURE + SURE)
def test_a_replay_in_another_order_is_right_or_a_guard_fails(program, order):
    fn = lt.trace(program, ORDERS[order])
    for given in ORDERS.values():
        try:
            found = fn(given)
        except lt.GuardError:
            assert given is not ORDERS[order]
            continue

        assert_same(program(given), found)


@pytest.mark.parametrize("program", UNSURE)
def test_an_unknown_memory_order_is_an_error(program):
    with pytest.raises(TraceError, match="memory order"):
        lt.trace(program, X, abstract=True)


@pytest.mark.parametrize("program", SURE)
def test_a_known_memory_order_is_used(program):
    assert_same(program(X), lt.trace(program, X, abstract=True)(X))


def is_new(name: str) -> bool:
    """Whether letir assumes that the result is a new array in C order if all operands are."""
    op = PRIMITIVES[name]
    return op.memory == "new" and op.order is not None


@each_of([name for name in SAMPLES if is_new(name)])
def test_new_arrays_lie_in_c_order(name):
    for sample in SAMPLES[name]:
        fn, values = applied_program(PRIMITIVES[name], sample)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = run_flat(fn, values)
        for out in results:
            assert not isinstance(out, np.ndarray) or out.flags.c_contiguous
            assert not any(np.may_share_memory(out, v) for v in values if hasattr(v, "flags"))


@each_of([name for name in SAMPLES if PRIMITIVES[name].order == "C"])
def test_an_order_that_does_not_depend_on_operands_is_c(name):
    for sample in SAMPLES[name]:
        fn, values = applied_program(PRIMITIVES[name], sample)
        columns = [v.copy(order="F") if isinstance(v, np.ndarray) else v for v in values]
        for out in run_flat(fn, columns):
            assert not isinstance(out, np.ndarray) or out.flags.c_contiguous


@in_one_test
@pytest.mark.parametrize("given", [np.float64(0.5), np.array(0.5)], ids=["scalar", "0-d"])
@pytest.mark.parametrize("abstract", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda x: np.where(x, x, 1),
        lambda x: x.astype("f4"),
        lambda x: np.roll(x, 1),
        np.i0,
        lambda x: np.tensordot(x, x, 0),
    ],
)
def test_a_0d_array_is_changed_where_numpy_has_one(make, given, abstract):
    def program(x):
        y = z = make(x)
        y += 1
        return y, z

    assert_same(program(given), lt.trace(program, given, abstract=abstract)(given))


@pytest.mark.parametrize("order", "CFA")
def test_a_cast_has_the_requested_memory_order(order):
    def program(x):
        y = x.astype("f4", order=order)
        z = y.ravel()
        z[0] = 5
        return y, z

    for given in ORDERS.values():
        assert_same(program(given), lt.trace(program, given)(given))


@pytest.mark.parametrize("view", [np.squeeze, np.real, np.transpose])
def test_a_0d_argument_is_changed_through_its_views(view):
    def program(x):
        y = view(x)
        y += 1
        return x * 1

    plain, replayed = np.array(0.5), np.array(0.5)
    fn = lt.trace(program, np.array(0.5))

    assert_same(program(plain), fn(replayed))
    assert_same(plain, replayed)


@pytest.mark.parametrize("order", ["A", "K"])
@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)])
def test_ravel_in_memory_order_is_recorded_for_that_order(order, axes):
    x = np.arange(24.0).reshape(2, 3, 4)[:, ::-1].transpose(axes)

    program = lt.trace(lambda x: x.ravel(order=order), x)

    assert_same(x.ravel(order=order), program(x))
    with pytest.raises(lt.GuardError):
        program(np.asfortranarray(np.ones(x.shape))[..., ::-1])


def test_ravel_in_an_unknown_memory_order_is_refused():
    with pytest.raises(TraceError, match="pass C or F"):
        lt.trace(lambda x: x.T.ravel(order="K"), lt.ShapeDtype((2, 3)))


def test_reshape_in_memory_order_is_refused():
    with pytest.raises(lt.DTypeError, match="'C' or 'F'"):
        lt.trace(lambda x: x.reshape(-1, order="A"), X)


@pytest.mark.parametrize(
    "places", [1, slice(None, None, 2), [0], [0, 1], [], np.arange(4) == 0], ids=repr
)
@pytest.mark.parametrize("function", [np.delete, lambda x, i, axis: np.insert(x, i, 7.0, axis)])
def test_delete_and_insert_lie_in_memory_as_numpys(function, places):
    cube = np.arange(64.0).reshape(4, 4, 4)
    for order in itertools.permutations(range(3)):
        for axis in range(3):
            x = cube.transpose(order)
            expected = function(x, places, axis)

            program = lt.trace(lambda x, axis=axis: function(x, places, axis), x)

            found = lt.run_forward(program, x)
            assert np.array_equal(expected, found)
            assert expected.strides == found.strides


def test_copies_of_the_copy_module_keep_the_memory_order():
    def copies(x):
        turned = (x * 2.0).T
        return copy.copy(turned), copy.deepcopy(turned), copy.deepcopy([turned])[0]

    x = np.ones((6, 2))
    for results in (lt.trace(copies, x)(x), lt.jit(copies)(x)):
        assert [r.strides for r in results] == [r.strides for r in copies(x)] == [(8, 16)] * 3


LAYOUTS = {
    "C": X.copy,
    "F": lambda: np.asfortranarray(X),
    "strided": lambda: np.repeat(X, 2, axis=1)[:, ::2],
    "flipped": lambda: X[::-1].copy()[::-1],
}


def like_a_transpose(x):
    return np.zeros_like(x.T), np.full_like(x.T, 2.0) * 2, np.piecewise(x.T, [x.T > 3], [1.0, 2.0])


def sums_of_lists(x):
    return np.prod([x, x], 0), np.exp([x, x]), np.concatenate([[x], [x]]), np.array([x, x])


def written_and_read_as_a_row(x):
    x *= 2
    return x.ravel("K"), x.ravel("A"), np.ascontiguousarray(x), x[:, :].ravel("K")


@in_one_test
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize(
    "program",
    [like_a_transpose, sums_of_lists, written_and_read_as_a_row],
    ids=lambda f: f.__name__,
)
def test_results_lie_in_memory_as_numpys(program, layout):
    numpys = layout()
    expected = program(numpys)
    for how in (lt.jit(program), lt.trace(program, layout())):
        argument = layout()
        found = how(argument)

        assert_same(expected, found)
        assert [r.strides for r in found] == [r.strides for r in expected]
        shared = [np.shares_memory(r, numpys) for r in expected]
        assert [np.shares_memory(r, argument) for r in found] == shared


def product_into_columns(x):
    y = np.empty(x.shape, order="F")
    np.multiply(x, 2, out=y)
    return y


def sum_into_columns(x):
    y = np.zeros(x.shape, order="F")
    y += x
    y *= x
    return y


def product_into_a_copy_in_columns(x):
    y = x.copy("F")
    y *= x
    return y


def columns_into_rows(x):
    y = np.zeros(x.shape)
    np.add(np.asfortranarray(x), 1, out=y)
    return y


def a_transpose_added_to_rows(x):
    y = x * 2
    y += x.T
    return y


def part_of_rows_added_to_columns(x):
    y = np.zeros((2, 4), order="F")
    y += x[1:3] * x[::2, ::-1]
    return y


@in_one_test
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "f",
    [
        product_into_columns,
        sum_into_columns,
        product_into_a_copy_in_columns,
        columns_into_rows,
        a_transpose_added_to_rows,
        part_of_rows_added_to_columns,
    ],
)
def test_a_write_keeps_the_memory_order_without_known_values(f, order):
    """``jit`` records without values: what is computed may have another order than its place."""
    x = ORDERS[order]

    assert f(x).strides == lt.jit(f)(x).strides == lt.trace(f, x)(x).strides


def test_a_write_in_c_order_is_no_further_operation():
    def f(x):
        y = np.zeros(x.shape)
        y += np.roll(x, 1, axis=0) * x[:, ::-1]
        y *= 2
        return y

    fast = lt.jit(f, optimize=False)
    fast(X)

    assert "index_set" not in str(lt.explain(fast, X).program)


IN_COLUMNS = {
    "zeros": lambda x: np.zeros(x.shape, order="F"),
    "copy": lambda x: x.copy("F"),
    "asfortranarray": np.asfortranarray,
    "transpose": lambda x: x.T.copy().T,
    "ones_like": lambda x: np.ones_like(x, order="F"),
    "root": lambda x: np.sqrt(np.asfortranarray(x) ** 2),
    "cumsum": lambda x: np.cumsum(np.asfortranarray(x), 0),
    "delete": lambda x: np.delete(np.asfortranarray(np.vstack([x, x[:1]])), 1, 0),
    "gradient": lambda x: np.gradient(np.asfortranarray(x))[0],
    "broadcast": lambda x: x[0] * np.asfortranarray(x),
}


def _times_row(a, y):
    a *= y[0]


def _plus(a, y):
    a += y


WRITES = {
    "times a row": _times_row,
    "plus": _plus,
    "product": lambda a, y: np.multiply(y, 2, out=a),
    "cumsum": lambda a, y: np.cumsum(y, 0, out=a),
    "sort": lambda a, y: a.sort(axis=0),
    "copyto": np.copyto,
    "clip": lambda a, y: np.clip(y, 0, 1, out=a),
    "product into a view": lambda a, y: np.dot(y, y, out=np.ascontiguousarray(a)),
}


@in_one_test
@pytest.mark.parametrize("make", IN_COLUMNS)
@pytest.mark.parametrize("write", WRITES)
def test_jit_writes_into_columns_as_numpy(make, write):
    def f(x, y):
        a = IN_COLUMNS[make](x) * 1
        WRITES[write](a, y)
        return a

    x, y = X - 7, X[::-1] - 5
    expected, found = f(x.copy(), y), lt.jit(f)(x.copy(), y)

    assert_same(expected, found)
    assert expected.strides == found.strides

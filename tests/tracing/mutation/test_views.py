"""Operations that return views, and the cost of the views that a trace tracks."""

import functools
import itertools
import warnings

import numpy as np
import pytest

import letir as lt
import letir.numpy as lnp
from letir.ast.primitive import PRIMITIVES
from letir.eval.evaluator import compute
from letir.testing import SAMPLES, assert_same
from tests.each_sample import each_of, in_one_test
from tests.test_linear_time import counted_lines

# Operations that correspond to no view of NumPy: steps of gradients, calls of
# users' rules, and some that only letir has.
OWN = {"sum_to_size", "autograd_add", "instantiate", "custom_vjp", "grad_of", "when_defined"}
OWN |= {"custom_jvp", "checkpoint", "barrier", "differentiable_graph", "fused"}
# carried values: a new value in each iteration
OWN |= {"cond", "switch", "while_loop", "while_scan", "fori_loop", "scan", "map", "reduce"}
OWN |= {"associative_scan", "reduce_by_index", "scatter"}
# the given edges of bins, which have no derivative
OWN |= {"histogram", "histogramdd"}


@each_of(sorted(SAMPLES.keys() - OWN))
def test_every_operation_that_may_return_a_view_is_declared(name):
    """[B6] Otherwise a write to one would not be seen through the other."""
    op = PRIMITIVES[name]
    for sample in SAMPLES[name]:
        args = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in sample.args]
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            try:
                out = compute(op, args, op.complete(sample.attrs))
            except ArithmeticError:
                continue
        results = [r for r in (out if type(out) is tuple else (out,)) if isinstance(r, np.ndarray)]
        for i, result in itertools.product(range(len(args)), results):
            if isinstance(args[i], np.ndarray) and args[i].ndim:
                known = op.write_through is not None and i == 0
                assert known or not np.shares_memory(result, args[i])


SHARED = {
    "real of a real array": np.real,
    "a transpose by einsum": lambda y: np.einsum("ij->ji", y),
    "a diagonal by einsum": lambda y: np.einsum("ii->i", y),
    "a difference of order 0": lambda y: np.diff(y, n=0),
    "a first power": lambda y: np.linalg.matrix_power(y, 1),
    "an atleast": np.atleast_2d,
    "rotated": np.rot90,
    "flipped": np.flipud,
    "rolled axis": lambda y: np.rollaxis(y, 1),
    "split": lambda y: np.vsplit(y, [1, 2])[1],
    "split into equal parts": lambda y: np.split(y, 3)[1],
    "an ellipsis": lambda y: y[...],
    "a 0-d view": lambda y: y[1, 1, ...],
}


@in_one_test
@pytest.mark.parametrize("view", SHARED.values(), ids=SHARED)
@pytest.mark.parametrize("abstract", [False, True])
def test_writes_go_through_views_where_numpy_shares_memory(view, abstract):
    def program(x):
        y = x * 2
        v = view(y)
        v[...] = 5.0
        y[1, 1] = 7.0
        return y, v

    x = np.arange(9.0).reshape(3, 3)
    assert_same(program(x), lt.trace(program, x, abstract=abstract)(x))


def test_a_complex_array_is_written_by_its_parts_to_the_bit():
    def program(x):
        y = x * np.array([1.0, -0.0])
        y.real = y.imag
        y.imag[0] = -0.0
        y.imag *= 2
        return y

    x = np.array([complex(np.inf, -0.0), complex(1.0, np.nan)])
    with np.errstate(invalid="ignore"):
        assert_same(program(x), lt.trace(program, x)(x))


def test_a_view_without_further_uses_is_not_read_again():
    def program(x):
        y = x * 2
        rows = list(y)
        for i in range(len(y)):
            y[i] = 0.0
        return y, rows[0]

    f = lt.trace(program, np.ones((50, 2)))

    assert len(f) <= 1 + 50 + 50 + 1


def test_a_write_through_nested_indices_is_one_update():
    def program(x):
        y = x * 2
        y[1][2] = 5.0
        y[::2][1:][0, ::-1] = x[0]
        return y

    x = np.arange(12.0).reshape(4, 3)
    f = lt.trace(program, x)

    assert_same(program(x), f(x))
    assert ["index_set"] * 2 == [b.op.name for b in f.binds if "set" in b.op.name]
    assert (1, 2) == next(b.attrs["item"] for b in f.binds if b.op.name == "index_set")


def test_an_array_that_only_its_view_refers_to_is_not_written():
    """Nothing is written into ``x * 2``, and its memory order does not matter."""

    def program(x):
        y = (x * 2).reshape(-1)
        y[0] = 1.0
        return y

    f = lt.trace(program, np.ones((2, 3)))

    assert ["mul", "reshape", "index_set"] == [bind.op.name for bind in f.binds]


def test_a_chain_of_views_of_any_length_is_recorded_and_freed():
    def program(x):
        y = x * 2
        for _ in range(20_000):
            y = y.T
        return y

    assert 20_001 == len(lt.trace(program, np.ones((2, 3))))


def test_a_view_of_very_many_views_cannot_be_written():
    def program(x):
        base = y = x * 2
        for _ in range(200):
            y = y.T
        y[0] = 1.0
        return base

    with pytest.raises(lt.TraceError, match="a view of a view of a view"):
        lt.trace(program, np.ones((2, 3)))


def test_slices_of_slices_stay_one_index():
    def program(x):
        buffer = lnp.zeros(1000)
        rest = buffer
        for i in range(300):
            rest = rest[1:]
            rest[0] = x[i % 3]
        return buffer, rest

    x = np.arange(3.0)
    assert_same(program(x)[1], lt.trace(program, x)(x)[1])


def test_writes_with_many_views_cost_linear_time():
    def lines(n):
        with counted_lines() as count:
            lt.trace(program, lt.ShapeDtype((n, 2)))
        return count[0]

    def program(x):
        y = x * 2
        rows = list(y)
        for row in rows:
            row[0] = 1.0
        return y

    assert lines(1600) < 2 * 8 * lines(200)


def test_an_element_that_is_read_is_a_number_and_not_a_view():
    def f(x, m):
        first, corner, array = x[0], m[0, 1], x[0, ...]
        x[:], m[:] = 7.0, 7.0
        return first, corner, array

    for mode in (False, True):
        program = lt.trace(f, np.arange(3.0), np.ones((2, 2)), abstract=mode)
        assert program(np.arange(3.0), np.ones((2, 2))) == (0.0, 1.0, 7.0)


@pytest.mark.parametrize("number", [1.5, np.float64(1.5)])
def test_a_number_that_was_broadcast_is_a_read_only_array(number):
    """[B6] NumPy repeats the element by a stride of 0."""

    def write(x):
        y = np.broadcast_to(np.sin(x), (2, 3))
        y[:, -1] = 1.0
        return y

    for f in (lt.jit(write), lambda x: lt.trace(write, x)):
        with pytest.raises(ValueError, match="read-only"):
            f(number)
    copied = lt.trace(lambda x: np.add(np.broadcast_to(x, 2).copy(), 1.0, out=np.zeros(2)), number)
    assert copied(number).tolist() == [2.5, 2.5]


def test_the_imaginary_part_of_a_real_array_is_read_only():
    """[B6]"""

    def write(x):
        y = np.imag(x)
        y[0] = 1.0
        return y

    for f in (lt.jit(write), lambda x: lt.trace(write, x)):
        with pytest.raises(ValueError, match="read-only"):
            f(np.ones(2))
    assert lt.jit(write)(np.ones(2) + 1j).tolist() == [1.0, 1.0]


VIEWS_OF_0D = {
    "reshape": lambda z: z.reshape(-1),
    "an index": lambda z: z[None],
    "an ellipsis": lambda z: z[...],
    "ravel": lambda z: z.ravel(),
    "atleast_1d": np.atleast_1d,
    "expand_dims": lambda z: np.expand_dims(z, 0),
}


@in_one_test
@pytest.mark.parametrize("name", VIEWS_OF_0D)
def test_a_0d_array_made_of_a_scalar_has_views_in_lazy_recordings_too(name):
    x, number = np.arange(1.0, 5.0), np.float64(2.0)
    for make in (np.copy, np.array, lambda s: np.full((), s)):

        def f(x, make=make):
            z = make(x[3])
            view = VIEWS_OF_0D[name](z)
            z[()] = number
            return view.sum() * x[0]

        for record in (lt.trace, functools.partial(lt.trace, abstract=True)):
            np.testing.assert_array_equal(record(f, x)(x), f(x))
        np.testing.assert_array_equal(lt.grad(f)(x), [2.0, 0.0, 0.0, 0.0])

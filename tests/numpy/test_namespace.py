"""``letir.numpy``: the functions that NumPy's protocols cannot hand to a trace [B2]."""

import operator
import subprocess
import sys

import numpy as np
import pytest

import letir as lt
import letir.numpy as lnp
from letir.ast.primitive import PRIMITIVES
from letir.errors import TraceError
from letir.ops import load_all
from letir.testing import assert_same
from letir.tracing.numpy_functions.registry import PLAIN
from tests.each_sample import in_one_test

S, X = np.float64(2.0), np.array([1.0, 2.0, 3.0])
M = np.arange(6.0).reshape(2, 3)


def agrees(function, *args) -> lt.Lambda:
    """The program of ``function``. Raises unless the two agree."""
    program = lt.trace(function, *args)
    assert_same(function(*args), program(*args))
    return program


# ---- array creation ----

MADE = {
    "zeros": lambda: lnp.zeros((2, 3)),
    "zeros of a dtype": lambda: lnp.zeros(3, dtype=np.int8),
    "ones": lambda: lnp.ones(3, np.float32),
    "full": lambda: lnp.full((2, 2), 7),
    "full of a list": lambda: lnp.full((2, 3), [1, 2, 3]),
    "full of a dtype": lambda: lnp.full(3, 7, dtype=np.float32),
    "eye": lambda: lnp.eye(2, 3, 1),
    "identity": lambda: lnp.identity(3, dtype=int),
    "arange": lambda: lnp.arange(3),
    "arange from to": lambda: lnp.arange(1, 7, 2, dtype=np.int32),
    "arange of floats": lambda: lnp.arange(0.0, 1.0, 0.25),
    "array": lambda: lnp.array([[1, 2], [3, 4]]),
    "array of a dtype": lambda: lnp.array([1, 2], dtype=np.float32),
    "array of axes": lambda: lnp.array([1.0, 2.0], ndmin=3),
    "array of a number": lambda: lnp.array(2.5),
    "asarray": lambda: lnp.asarray(X),
    "asarray of a scalar": lambda: lnp.asarray(S),
    "zeros_like": lambda: lnp.zeros_like(M),
    "zeros_like a list": lambda: lnp.zeros_like([[1, 2]], dtype=float),
    "ones_like": lambda: lnp.ones_like(X, shape=(2, 2)),
    "full_like": lambda: lnp.full_like(X, 7, dtype=int),
}


@in_one_test
@pytest.mark.parametrize("name", MADE)
def test_outside_a_trace_arrays_are_numpy_arrays(name):
    numpy_name, make = name.split(" ")[0], MADE[name]

    assert type(make()) is np.ndarray
    assert hasattr(np, numpy_name)


@in_one_test
@pytest.mark.parametrize("name", MADE)
def test_in_a_trace_created_arrays_are_traced(name):
    seen = []
    program = lt.trace(lambda: seen.append(MADE[name]()) or seen[-1])

    assert isinstance(seen[0], lt.Tracer)
    assert_same(MADE[name](), program())


@in_one_test
@pytest.mark.parametrize("name", MADE)
def test_in_a_pause_created_arrays_are_numpy_arrays(name):
    def program(x):
        with lt.pause_tracing():
            assert type(MADE[name]()) is np.ndarray
        return x

    lt.trace(program, X)


def test_empty_arrays_are_zeros_in_a_trace():
    assert_same(
        (np.zeros(3), np.zeros(2)), lt.trace(lambda: (lnp.empty(3), lnp.empty_like(X[:2])))()
    )
    assert (3,) == lnp.empty(3).shape


def test_zeros_like_does_not_keep_its_argument_as_a_constant():
    assert () == lt.trace(lambda: lnp.zeros_like(X)).constants


def test_traced_sizes_are_accepted_and_guarded():
    program = agrees(lambda n: (lnp.zeros((n, 2)), lnp.arange(n), lnp.eye(n)), 3)

    with pytest.raises(lt.GuardError):
        program(4)


# ---- arrays that contain traced values ----


def filled(x):
    buffer = lnp.zeros(3)
    buffer[0] = x
    buffer[1:] = lnp.array([x, 2 * x])
    return buffer


def updated(x):
    return lnp.asarray(X).at[0].set(x) if lt.is_tracing() else np.array([x, 2.0, 3.0])


PUT = {
    "a buffer": (filled, S),
    "an update": (updated, S),
    "array": (lambda x: lnp.array([x, 1.0]), S),
    "array of ints": (lambda n: lnp.array([n, 1]), 2),
    "array of a float among ints": (lambda x: lnp.array([x, 1]), 2.5),
    "array of float32 and a number": (lambda x: lnp.array([x, 1.0]), np.float32(2)),
    "array of nested lists": (lambda x: lnp.array([[x, 1.0], [2, x * x]]), S),
    "array of rows": (lambda x: lnp.array([x, (1, 2, 3), X]), X),
    "array of itself": (lambda x: lnp.array(x), X),  # noqa: PLW0108
    "array of a scalar": (lambda x: lnp.array(x), S),  # noqa: PLW0108
    "array of a Python number": (lambda x: lnp.array(x), 2),  # noqa: PLW0108
    "array of another dtype": (lambda x: lnp.array([x, 1], dtype=np.float32), S),
    "asarray of a Python number": (lambda x: lnp.asarray(x), 2.5),  # noqa: PLW0108
    "asarray of a list": (lambda x: lnp.asarray([x, x]), X),
    "full": (lambda x: lnp.full((2, 2), x), S),
    "full of a list": (lambda x: lnp.full((2, 2), [x, 1.0]), S),
    "full_like": (lambda x: lnp.full_like(X, x), S),
    "full_like of a traced array": (lambda x: lnp.full_like(x, 2.0), X),
    "ones_like of a list": (lambda x: lnp.ones_like([x, x]), X),
    "a table": (lambda i: lnp.asarray(X)[i], np.array([0, 2])),
    "a table by a mask": (lambda x: lnp.asarray(X)[x > 1], X),
}


@in_one_test
@pytest.mark.parametrize("name", PUT)
def test_arrays_can_be_built_from_traced_values(name):
    agrees(*PUT[name])


def test_array_copies_an_array_and_asarray_does_not():
    def program(x):
        y = x * 2
        lnp.array(y)[0] = 9.0
        lnp.asarray(y)[1] = 9.0
        return y

    assert_same(np.array([2.0, 9.0, 6.0]), lt.trace(program, X)(X))


def test_asarray_of_a_table_is_read_only_and_array_of_it_is_writable():
    """The table is the caller's, who would see the write."""

    def program(x, make):
        table = make(X)
        table[0] = x
        return table

    assert_same(np.array([5.0, 2.0, 3.0]), lt.trace(lambda x: program(x, lnp.array), 5.0)(5.0))
    with pytest.raises(TraceError, match="cannot be changed in place"):
        lt.trace(lambda x: program(x, lnp.asarray), 5.0)


def test_a_table_in_a_loop_is_bound_once():
    program = lt.trace(lambda i: sum(lnp.asarray(X)[i + n] for n in range(2)), np.int64(1))

    assert 1 == len(program.constants)


def test_a_traced_buffer_has_a_gradient():
    assert_same(np.float64(5.0), lt.grad(lambda x: filled(x).sum() + x)(S))


def test_arrays_are_created_in_the_innermost_trace():
    program = lt.trace(lambda x: lt.grad(lambda y: (lnp.full(3, y) * x).sum())(2.0), X)

    assert_same(np.float64(6.0), program(X))


# ---- lists of traced values ----

LISTS = {
    "sum": lambda x: lnp.sum([x, 2 * x], axis=0),
    "mean": lambda x: lnp.mean([x[0], x[1], 1.0]),
    "max of a tuple": lambda x: lnp.max((x[0], x[1])),
    "cumsum": lambda x: lnp.cumsum([x[0], 1.0, x[2]]),
    "stack": lambda x: lnp.stack([x, [x[0], 1.0, 2.0]]),
    "concatenate": lambda x: lnp.concatenate([[x[0], 1.0], x]),
    "where": lambda x: lnp.where([True, False, True], [x[0], 1.0, 2.0], 0.0),
    "clip": lambda x: lnp.clip(x, [x[0], 1.0, 1.0], 2.0),
    "a ufunc": lambda x: lnp.maximum([x[0], 1.5], 1.0),
    "a ufunc of two": lambda x: lnp.add([x[0], 1.5], [1.0, x[1]]),
    "dot": lambda x: lnp.dot([x[0], 1.0, 2.0], x),
    "einsum": lambda x: lnp.einsum("i,i", x, [x[0], 1.0, 2.0]),
    "reshape": lambda x: lnp.reshape([x, x], (3, 2)),
    "moveaxis": lambda x: lnp.moveaxis([[x, x]], 0, 1),
    "transpose": lambda x: lnp.transpose([x, x]),
    "shape": lambda x: lnp.ones(lnp.shape([x, x])) * x,
    "zeros_like": lambda x: lnp.zeros_like([x, x]) + x,
}


@in_one_test
@pytest.mark.parametrize("name", LISTS)
def test_a_function_accepts_lists_of_traced_values(name):
    agrees(LISTS[name], X)


def test_every_recorded_function_is_in_the_namespace():
    load_all()
    recorded = {f for op in PRIMITIVES.values() for f in op.numpy if f.__module__ == "numpy"}

    for function in recorded | set(PLAIN):
        inner = function.__module__.partition("numpy.")[2]  # linalg or fft
        path = f"{inner}.{function.__name__}" if inner else function.__name__
        assert callable(operator.attrgetter(path)(lnp))


RANGES = [(0.0, 1.0, 0.1), (0.3, 2.0, 0.7), (1.0, -1.0, -0.3), (0.0, -1.0, 1.0), (1.0, 1.5, 1.0)]


@pytest.mark.parametrize("bounds", RANGES)
@pytest.mark.parametrize("dtype", [None, np.float32])
def test_a_range_between_traced_floats_has_a_guarded_length(bounds, dtype):
    bounds = [np.float64(b) for b in bounds]

    program = agrees(lambda *b: lnp.arange(*b, dtype=dtype), *bounds)

    assert_same(np.arange(*bounds, dtype=dtype), program(*bounds))
    with pytest.raises(lt.GuardError):
        program(bounds[0], bounds[1] + 30 * bounds[2], bounds[2])


def test_a_range_between_traced_floats_has_derivatives():
    lt.testing.check_grads(lnp.arange, (0.3, 2.0, 0.7), order=2)
    for stop in (2.5, np.float32(2.5), np.float16(3.5)):
        assert_same(np.arange(1, stop), lt.trace(lambda t: lnp.arange(1, t), stop)(stop))


def test_a_tuple_of_traced_sizes_is_a_shape():
    """Its sizes are guarded; it is not converted to an array."""
    agrees(lambda n: lnp.reshape(np.ones(6), (n, 2)), 3)
    agrees(lambda n: lnp.broadcast_to(1.0, (n, 2)) * n, 3)


def test_calls_without_traced_values_are_computed_by_numpy_in_a_trace():
    program = lt.trace(lambda x: x * lnp.sum([1.0, 2.0]) * lnp.sqrt(4.0), X)

    assert ["constant", "mul", "constant", "mul"] == [bind.op.name for bind in program.binds]


# ---- the rest of NumPy's namespace ----


@pytest.mark.parametrize("name", ["pi", "inf", "newaxis", "float32", "ndarray", "random", "s_"])
def test_names_that_are_not_functions_are_numpys_own(name):
    assert getattr(np, name) is getattr(lnp, name)


@pytest.mark.parametrize(
    "name", ["sum", "linspace", "add", "loadtxt", "median", "broadcast_shapes"]
)
def test_a_function_is_numpys_where_nothing_is_traced(name):
    assert getattr(np, name) == getattr(lnp, name).function
    assert name == getattr(lnp, name).__name__


def test_a_ufunc_has_attributes_and_methods():
    assert 2 == lnp.add.nin
    assert_same(np.add.outer(X, X), lnp.add.outer(X, X))
    agrees(lambda x: lnp.add.reduce(x), X)  # noqa: PLW0108


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="numpy has no 'foo', and neither has letir"):
        lnp.foo  # noqa: B018
    assert not hasattr(lnp, "foo")


def test_dir_lists_the_names_of_numpy_and_letir():
    assert {"zeros", "sin", "linalg", "asarray"} <= set(dir(lnp))


def test_a_traced_value_returns_the_namespace():
    seen = []
    lt.trace(lambda x: seen.append(x.__array_namespace__()) or x, X)

    assert [lnp] == seen


def test_the_namespace_is_loaded_on_first_use():
    """Not when letir is imported, and without an import by the user."""
    text = """
import sys, numpy as np, letir
assert "letir.numpy" not in sys.modules
f = letir.trace(lambda x: x.__array_namespace__().sin(x), np.ones(2))
assert "letir.numpy" in sys.modules
assert letir.numpy.pi == np.pi
"""
    subprocess.run([sys.executable, "-W", "error", "-c", text], check=True)


def test_reduce_of_a_ufunc_accepts_a_list():
    assert_same(X + X, lt.trace(lambda x: lnp.add.reduce([x, x]), X)(X))

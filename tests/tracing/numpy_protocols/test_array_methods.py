"""Methods of traced arrays, and functions that change an array: as in NumPy, or an error with the
reason.
"""

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import letir as lt
from letir.errors import DTypeError, GuardError, ShapeError, TraceError
from letir.testing import assert_same, check_grads
from letir.tracing.checks.unsupported import METHODS
from tests.each_sample import in_one_test

X = np.array([[0.5, -1.25, 2.0], [1.5, 0.75, -0.625]])
PLACES, MASK = np.array([0, 1, 1]), np.array([[True, False, True], [False, True, True]])

METHOD_CALLS = {
    "mT": lambda x: x.mT,
    "take": lambda x: x.take([1, 0], axis=0),
    "repeat": lambda x: x.repeat(2),
    "diagonal": lambda x: x.diagonal(1),
    "trace": lambda x: x.trace(1),
    "argsort": lambda x: x.argsort(axis=0),
    "argpartition": lambda x: x.argpartition(1),
    "choose": lambda x: PLACES.choose([1, 2]) + (x[0] > 0).astype(int).choose([x[0], x[1]]),
    "compress": lambda x: x.compress([True, False], axis=0),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "searchsorted": lambda x: np.sort(x, None).searchsorted([0.6, 1.0], side="right"),
    "nonzero": lambda x: x.nonzero(),
    "cumsum": lambda x: x.cumsum(),
    "cumprod": lambda x: x.cumprod(axis=1),
    "clip": lambda x: x.clip(0, 1),
    "std and var": lambda x: (x.std(axis=0, ddof=1), x.var()),
    "conj": lambda x: (x.conj(), x.conjugate()),
    "view": lambda x: x.view() * x.view(float),
    "flatten": lambda x: (x.flatten("F"), x.ravel()),
    "to_device": lambda x: x.to_device(x.device) * 2,
    "all and any": lambda x: (x.all(), (x > 0).any(axis=1)),
    "an element of flat": lambda x: x.flat[2] * x.flat[-1],
    "a slice of flat": lambda x: x.flat[1:5:2],
    "a list of places of flat": lambda x: x.flat[[0, 3]],
    "flat in a loop": lambda x: [2 * v for v in x.flat] + [len(x.flat)],
    "a copy of flat": lambda x: x.flat.copy(),
    "sizes": lambda x: x * x.itemsize * x.nbytes * len(x),
}


@in_one_test
@pytest.mark.parametrize("name", METHOD_CALLS)
def test_a_recorded_method_gives_numpys_result(name):
    f = METHOD_CALLS[name]

    program = lt.trace(f, X)

    assert_same(f(X), program(X))


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.__name__)
def test_a_method_that_cannot_be_recorded_is_an_error_with_the_reason(method):
    name = method.__name__

    with pytest.raises(AttributeError, match=f"ndarray.{name} of a traced value") as e:
        lt.trace(lambda x: getattr(x, name), X)

    assert METHODS[method] in str(e.value)


def test_every_method_of_arrays_works_or_is_an_error_with_the_reason():
    """Except methods that return a Python number, which other tests cover."""
    others = {"tolist", "item", *(method.__name__ for method in METHODS)}

    for name in set(dir(np.ndarray)) - others:
        if not name.startswith("_"):
            lt.trace(lambda x, name=name: [getattr(x, name), x][1], X)


def test_the_bits_of_an_array_as_another_type_are_refused():
    with pytest.raises(DTypeError, match=r"view: .*\n.*\n.*astype"):
        lt.trace(lambda x: x.view(np.int64), X)


def test_equal_elements_keep_their_order_when_they_are_sorted():
    """[D13]"""
    ties, weights = np.array([2.0, 1.0, 2.0, 1.0]), np.array([1.0, 10.0, 100.0, 1000.0])

    for sort in (np.sort, lambda x: np.partition(x, 1)):
        slope = lt.grad(lambda x, sort=sort: (sort(x) * weights).sum())(ties)
        assert_same(np.array([100.0, 1.0, 1000.0, 10.0]), slope)


# ---- in place ----


def set_flat(x):
    x.flat = [1.0, 2.0]


def set_slice(x):
    x.flat[1:4] = x[1, :2]


WRITES = {
    "sort": lambda x: x.sort(),
    "sort along 0": lambda x: x.sort(axis=0, kind="stable"),
    "partition": lambda x: x.partition(1),
    "put method": lambda x: x.put([0, -1, 2], [9, 8]),
    "fill": lambda x: x.fill(x[0, 0]),
    "all of flat": set_flat,
    "a slice of flat": set_slice,
    "places of flat": lambda x: x.flat.__setitem__([1, -1], 9),
    "an element of flat": lambda x: x.flat.__setitem__(2, x[0, 0]),
    "a mask of flat": lambda x: x.flat.__setitem__(MASK.ravel(), [1.0, 2, 3, 4]),
    "put": lambda x: np.put(x, [[0, 1], [5, 0]], x[0] * 2),
    "put that wraps": lambda x: np.put(x, [7, -8], x[0, :2], mode="wrap"),
    "put that clips": lambda x: np.put(x, [7, -8], [1.5, 2.5], mode="clip"),
    "put nothing": lambda x: np.put(x, [0], []),
    "place": lambda x: np.place(x, MASK, x[1, :2] + 1),
    "place where": lambda x: np.place(x, x > 0.6, [1.0, 2.0]),
    "putmask": lambda x: np.putmask(x, MASK, -x),
    "putmask of few": lambda x: np.putmask(x, x < 1, x[0, :2]),
    "put_along_axis": lambda x: np.put_along_axis(x, x.argmax(1)[:, None], 0, axis=1),
    "put_along_axis of all": lambda x: np.put_along_axis(x, PLACES, x[0], axis=None),
    "fill_diagonal": lambda x: np.fill_diagonal(x, x[0, 1]),
    "fill_diagonal again": lambda x: np.fill_diagonal(x.T, [7.0, 8.0], wrap=True),
    "copyto": lambda x: np.copyto(x, x[:, :1] * 2, where=MASK),
}


def changed(name: str):
    """A function that performs the write on a copy of its argument."""

    def f(x):
        y = x * 1
        WRITES[name](y)
        return y

    return f


@in_one_test
@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_recorded_as_an_update(name):
    """[B6]"""
    f = changed(name)

    program = lt.trace(f, X)

    assert_same(f(X), program(X))
    check_grads(f, (X,), order=2)


def test_a_write_through_a_method_is_seen_in_the_base():
    def f(x):
        y = x * 1
        y[0].sort()
        y[1].put([0], x[0, 0])
        y.T[2].fill(5.0)
        return y

    assert_same(f(X), lt.trace(f, X)(X))


def test_masks_and_values_must_fit():
    for write in (np.place, np.putmask):
        with pytest.raises(ShapeError, match="a mask of 2 elements for an array of 6"):
            lt.trace(lambda x, w=write: w(x * 1, [True, False], 1.0), X)
    with pytest.raises(ShapeError, match="no values"):
        lt.trace(lambda x: np.place(x * 1, MASK, []), X)
    with pytest.raises(ShapeError, match="equally long"):
        lt.trace(lambda x: np.fill_diagonal(x[0] * 1, 1), X)


def test_ordinary_arrays_are_not_written_into():
    buffer = np.zeros(2)
    for write in (np.put, np.putmask, np.place):
        with pytest.raises(TraceError, match=r"numpy\.array\(a\) for a copy"):
            lt.trace(lambda x, w=write: w(buffer, [0, 1], x[0]), X)


# ---- conditions in Python ----


def test_python_conditions_record_guards():
    programs = [lt.trace(f, X[0]) for f in (max, sorted, lambda x: x if 0.5 <= x[0] < 1 else -x)]

    for program in programs:
        program(X[0] + 0.1)
        with pytest.raises(GuardError):
            program(-X[0])


# ---- Variables ----


@in_one_test
@pytest.mark.parametrize("name", [n for n in WRITES if "fill_diagonal again" != n])
def test_writes_of_variables_have_a_history(name):
    x = lt.Variable(X, requires_grad=True)

    y = changed(name)(x)
    (y * y).sum().backward()

    assert_same(changed(name)(X), y.numpy())
    expected = lt.grad(lambda x: (changed(name)(x) ** 2).sum())(X)
    assert np.allclose(expected, x.grad.numpy(), rtol=1e-14, atol=0)


# ---- views ----


def read_after(view):
    """A view that is read after its base has changed."""

    def f(x):
        y = x * 1
        part = view(y)
        y[0, 0] = 7.0
        return part * 1

    return f


def written_through(view):
    """A base whose view has changed."""

    def f(x):
        y = x * 1
        view(y)[0] = 7.0
        return y

    return f


VIEWS = {
    "rot90": np.rot90,
    "rollaxis": lambda x: np.rollaxis(x, 1),
    "flipud": np.flipud,
    "fliplr": np.fliplr,
    "atleast_3d": np.atleast_3d,
    "unstack": lambda x: np.unstack(x, axis=1)[0],
    "vsplit": lambda x: np.vsplit(x, 2)[0],
    "matrix_transpose": np.matrix_transpose,
}
READ_ONLY = {
    "diagonal": np.diagonal,
    "diag": np.diag,
    "broadcast_arrays": lambda x: np.broadcast_arrays(x, x[None])[0],
    "sliding_window_view": lambda x: sliding_window_view(x, 2, axis=1),
}


@pytest.mark.parametrize("name", [*VIEWS, *READ_ONLY])
def test_a_view_shows_what_is_written_to_its_base(name):
    """[B6]"""
    f = read_after({**VIEWS, **READ_ONLY}[name])

    assert_same(f(X), lt.trace(f, X)(X))


@pytest.mark.parametrize("name", VIEWS)
def test_a_base_shows_what_is_written_through_its_view(name):
    """[B6]"""
    f = written_through(VIEWS[name])

    assert_same(f(X), lt.trace(f, X)(X))


@pytest.mark.parametrize("name", ["diagonal", "diag", "sliding_window_view"])
def test_a_view_that_numpy_protects_is_not_written_through(name):
    with pytest.raises(ValueError, match="read-only"):
        lt.trace(written_through(READ_ONLY[name]), X)


def test_a_view_as_an_array_is_a_view():
    def f(x):
        y = x.copy()
        y.view(np.ndarray)[0] = x[1]
        return y, x.view(type=np.ndarray)

    x = np.array([1.0, 2.0])

    for expected, actual in zip(f(x), lt.trace(f, x)(x), strict=True):
        assert_same(expected, actual)

"""Arrays that the traced function makes: known until a traced value is written into them [B2]."""

import collections
import copy
import pickle
from dataclasses import dataclass

import numpy as np
import pytest

import letir as lt
from letir.errors import TraceError
from letir.testing import assert_same
from tests.each_sample import in_one_test

X, Y = np.array([1.0, 2.0, 3.0]), np.array([2.0, 0.5, 4.0])
TABLE = np.arange(12.0).reshape(3, 4)
DIAGONAL = np.diag([1.0, 2.0])


def element_by_element(x):
    out = np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            out[i, j] = x[i] * x[j]
    return out


def like_another(x):
    out = np.zeros_like(TABLE)
    out[0] = x.sum()
    out[:, 1] += x
    return out


def known_first(x):
    out = np.zeros(3)
    out[0] = 5
    view = out[1:]
    view[0] = 7
    out[2] = x[0]
    view[:] = view * 2
    return out, view


def view_of_known(x):
    a = np.array([1.0, 2.0, 3.0])
    b = a[::2]
    b += 10
    a[0] = x[0]
    return a, b


def views_of_views(x):
    a = np.zeros((3, 4))
    b = a.T[1:].reshape(3, 3) if False else a[1:, 1:].T
    a[2, 3] = x[0]
    b[0] *= 2
    b[1] = x[:2]
    return a, b, a.ravel(), np.transpose(b)[::-1]


def matrix_solve(x):
    a = np.eye(3)
    a[0, 1] = x[0]
    a[1] *= x[1]
    return np.linalg.solve(a + 3 * np.eye(3), x)


def copies(x):
    a = np.ones((3, 3))
    b = a.copy()
    b[0, 0] = x[0]
    a[1, 1] = 2.0
    return a @ x, b @ x


def known_masks(x):
    a = np.arange(9.0).reshape(3, 3)
    a[a > 4] = 0
    a[0] = x
    return a, a.sum(0), x[np.array([True, False, True])]


def in_place_functions(x):
    a, b = np.zeros(3), np.zeros((3, 3))
    np.add.at(a, [0, 0, 2], x)
    np.fill_diagonal(b, x)
    b[np.triu_indices(3, 1)] = x
    c = np.zeros(3)
    np.multiply(a, 2, out=c)
    np.copyto(a, c * x)
    return a, b, c


def known_in_place_functions(x):
    a = np.zeros((3, 3))
    a[np.diag_indices(3)] = 1.0
    np.fill_diagonal(a[:2], 2.0)
    np.add.at(a, (0, [1, 1]), 3.0)
    np.add(a, 1, out=a)
    a.flat[1] = x[0]
    return a


def stencil(x):
    u = np.zeros(5)
    u[1:4] = x
    for _ in range(2):
        old = u.copy()
        u[1:-1] = old[1:-1] + 0.1 * (old[2:] - 2 * old[1:-1] + old[:-2])
    return u


def swapped_rows(x):
    a = np.zeros((2, 3))
    a[0], a[1] = x, 2 * x
    a[[0, 1]] = a[[1, 0]]
    return a


def aliases(x):
    a = np.zeros(3)
    b = a
    b[0] = x[0]
    return a, a is b


def written_by_a_callee(x):
    def fill(buffer):
        buffer[1] = x[1]
        return buffer.sum()

    buffer = np.zeros(3)
    buffer[0] = x[0]
    return fill(buffer), buffer


@dataclass
class Filter:
    """An object with a buffer."""

    state: np.ndarray

    def step(self, x):
        self.state[0] += x
        return self.state


def in_objects(x):
    found = Filter(np.zeros(2))
    found.step(x[0])
    found.step(x[1])
    kept = {"a": np.zeros(2)}
    kept["a"][0] = x[0]
    return found.state, kept["a"]


def of_a_deque(x):
    recent = collections.deque(maxlen=2)
    for v in x:
        recent.append(float(v))
    return np.array(recent)


def complex_parts(x):
    z = np.zeros(3, dtype=complex)
    z[0] = x[0] + 1j * x[1]
    z.real[1] = x[2]
    z.imag = x
    return np.abs(z)


def zero_d(x):
    total = np.zeros(())
    total += x.sum()
    total[...] = total * 2
    return total


def read_in_loops(x):
    total, weights = 0, np.array([1, 2, 3])
    for v, w in zip(x, weights, strict=True):
        total = total + v * w
    for i, w in enumerate(weights):
        total = total + w * i
    return total, max(weights), int(weights[0]), weights.tolist(), list(range(weights[2]))


def mixed_with_traced(x):
    where = np.where(np.arange(3) > 0, x, 0.0)
    return where, np.take(x, np.argsort(np.array([3, 1, 2]))), np.interp(0.3, np.arange(3.0), X) * x


def looked_up(x):
    return np.array([10.0, 20.0, 30.0])[x.argmax()] * x


def sorted_in_place(x):
    a = np.zeros(4)
    a[:3] = x
    a = np.roll(a, 1)
    a.sort()
    return a[::-1]


def reshaped(x):
    a = np.zeros((2, 2))
    a.shape = (4,)
    a[0] = x[0]
    return a, a.reshape(2, 2)


def grids(x):
    rows, columns = np.meshgrid(np.arange(3), np.arange(2))
    grid = np.mgrid[0:3, 0:2]
    return rows * x, (columns.T * x[:, None]).sum(), grid[0].T * x


def drawn(x):
    weights = np.random.default_rng(0).normal(size=3)
    weights[0] = x[0]
    shuffled = np.random.RandomState(1).permutation(3)
    shuffled[shuffled > 1] = 0
    return weights * x, x[shuffled], np.random.default_rng(2).choice(3, size=2) * x[:2]


PROGRAMS = [
    *(element_by_element, like_another, known_first, view_of_known, views_of_views, matrix_solve),
    *(copies, known_masks, in_place_functions, known_in_place_functions, stencil, swapped_rows),
    *(
        aliases,
        drawn,
        written_by_a_callee,
        in_objects,
        of_a_deque,
        complex_parts,
        zero_d,
        read_in_loops,
    ),
    *(mixed_with_traced, looked_up, reshaped, sorted_in_place, grids),
]


# NumPy 2.5 advises against a.shape = (4,)
@in_one_test
@pytest.mark.filterwarnings("ignore:Setting the shape")
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_a_program_that_makes_arrays_replays_at_other_values(f):
    assert_same(f(Y), lt.trace(f, X)(Y))
    compiled = lt.jit(f)
    compiled(X)
    assert_same(f(Y), compiled(Y))


@in_one_test
@pytest.mark.filterwarnings("ignore:Setting the shape")
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients_of_programs_with_buffers_agree_with_differences(f):
    def loss(x):
        total, todo = 0.0, [f(x)]
        while todo:
            found = todo.pop()
            if isinstance(found, tuple):
                todo += found
            elif isinstance(found, np.ndarray | np.float64):
                total = total + (found**2).sum()
        return total

    step = 1e-6 * np.eye(3)
    expected = [(loss(Y + h) - loss(Y - h)) / 2e-6 for h in step]

    np.testing.assert_allclose(lt.grad(loss)(Y), expected, rtol=1e-6, atol=1e-7)


def test_arrays_that_meet_no_traced_value_leave_nothing():
    def program(x):
        table = np.linspace(0, 1, 5)
        table[2:] *= 2
        weights = np.outer(table, table).sum(0)
        return x * weights[1]

    assert ["constant", "mul"] == [bind.op.name for bind in lt.trace(program, X).binds]


def test_a_buffer_that_is_an_operand_becomes_the_operation_that_makes_it():
    f = lt.trace(lambda x: np.zeros(3) + x, X)

    assert ["zeros", "add"] == [bind.op.name for bind in f.binds]


def test_decisions_on_known_values_need_no_guard():
    def program(x):
        error, steps = np.ones(1), np.zeros(1, int)
        while error[0] > 0.1:
            error /= 2
            steps[0] += 1
        return x * steps[0] if error.any() else x

    f = lt.trace(program, X)

    assert_same(program(Y), f(Y))
    assert "guard" not in [bind.op.name for bind in f.binds]


def test_a_known_array_may_be_given_to_code_in_c_which_cannot_write_it():
    """A write that the recording cannot see would be lost in a replay."""

    def program(x):
        known = np.arange(3.0)
        assert known.tobytes() == np.arange(3.0).tobytes()
        assert memoryview(known.__array__()).readonly
        assert type(pickle.loads(pickle.dumps(known))).__name__ == "ndarray"
        with pytest.raises(ValueError, match="read-only"):
            np.random.default_rng(0).shuffle(known.__array__())
        return x + known

    assert_same(Y + np.arange(3.0), lt.trace(program, X)(Y))


def test_an_array_that_outlives_the_recording_is_an_array():
    kept = []

    def program(x):
        kept.append(np.arange(3.0))
        return x

    lt.trace(program, X)
    (known,) = kept

    assert_same(np.arange(3.0) + X, known + X)
    assert_same(np.arange(1.0, 4.0), np.add(known, 1))
    known[0] = 7.0
    assert_same(7.0, float(known[0]))
    assert_same(X * known.__array__(), lt.trace(lambda x: x * known, X)(X))
    assert_same(copy.deepcopy(known).__array__(), np.asarray(known))


def test_a_traced_value_in_a_buffer_does_not_outlive_the_recording():
    kept = []

    def program(x):
        kept.append(np.zeros(3))
        kept[0][0] = x[0]
        return x

    lt.trace(program, X)

    with pytest.raises(lt.EscapedTracerError):
        kept[0] + 1


def test_an_inner_function_does_not_write_into_an_array_of_the_outer_one():
    """A branch may not be taken, and a loop's body is recorded once."""

    def program(x):
        outer = np.zeros(3)

        def branch(v):
            outer[0] = 1.0
            return v

        return lt.cond(x[0] > 0, branch, lambda v: v, x), outer

    with pytest.raises(TraceError, match="outer function"):
        lt.trace(program, X)


def test_an_inner_function_reads_the_contents_at_that_time():
    def program(x):
        outer = np.ones(3)
        slope = lt.grad(lambda v: (v * outer).sum())(x)
        outer[0] = 5.0
        return slope, outer

    assert_same((np.ones(3), np.array([5.0, 1.0, 1.0])), lt.trace(program, X)(Y))


def test_arrays_of_objects_and_long_double_stay_numpys():
    def program(x):
        names = np.array(["a", None], dtype=object)
        names[1] = x
        return names[1] * 2

    assert_same(2 * Y, lt.trace(program, X)(Y))


Cell = collections.namedtuple("Cell", "row column")


def test_named_tuples_are_tuples():
    """They are rows of an array, values to write, and indices, traced fields included."""

    def f(s):
        z = np.zeros((2, 2))
        z[Cell(0, 1)] = s
        z[1] = Cell(s, 1.0)
        return np.array([Cell(1.0, 2.0), Cell(s, 3.0)]), z, z[Cell(slice(None), 1)]

    fn = lt.trace(f, 2.0)

    for expected, actual in zip(f(3.0), fn(3.0), strict=True):
        np.testing.assert_array_equal(expected, actual)


def test_the_named_results_of_linalg_take_traced_values():
    def f(s):
        values, vectors = np.linalg.eigh(DIAGONAL)
        values[0] = s
        _, singular, _ = np.linalg.svd(np.zeros((2, 2)))
        singular[1] = s
        vectors[1] *= s
        return values, vectors, singular

    fn = lt.trace(f, 2.0)

    for expected, actual in zip(f(3.0), fn(3.0), strict=True):
        np.testing.assert_array_equal(expected, actual)


def test_piecewise_of_an_array_that_the_function_makes_takes_traced_values():
    def f(s):
        t = np.linspace(0, 1, 5)
        by_value = np.piecewise(t, [t < 0.3], [lambda v: v * 2, s])
        return by_value, np.piecewise(t, [t < s, t > 0.8], [lambda v: v * s, 1.0])

    for recorded in (lt.trace(f, 0.7), lt.jit(f)):
        assert_same(f(0.6), recorded(0.6))


class Convertible:
    """An object that NumPy converts to its array."""

    def __init__(self, array):
        self.array = np.asarray(array, dtype=float)

    def __array__(self, dtype=None, copy=False):
        return np.array(self.array, dtype=dtype, copy=copy)


def test_an_object_with_a_known_array_is_written_into_a_known_array():
    def f(s):
        box, other = np.zeros((2, 3)), Convertible(np.ones((2, 3)))
        box[:] = other
        box[1] += Convertible(np.arange(3.0))
        return box * s, np.add(other, box), np.stack([other, box])[1]

    for actual, expected in zip(lt.trace(f, 2.0)(3.0), f(3.0), strict=True):
        assert_same(actual, expected)


def test_an_object_with_an_array_from_outside_is_written_into_a_known_array():
    table = np.arange(3.0)

    def f(s):
        row = np.zeros(3)
        row[:] = Convertible(table)
        row += Convertible(table)
        return row * s

    assert_same(lt.trace(f, 2.0)(3.0), f(3.0))

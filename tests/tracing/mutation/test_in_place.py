"""In-place changes of arrays that the function made are recorded as functional updates [B6]."""

import copy

import numpy as np
import pytest

import letir as lt
import letir.numpy as lnp
from letir.errors import DTypeError
from letir.testing import assert_close, assert_same
from tests.each_sample import in_one_test

X = np.array([1.0, 2.0, 3.0])
M = np.arange(6.0).reshape(2, 3)


def slopes(program, x):
    """The gradient by central differences."""
    return np.array([program(x + 1e-6 * e) - program(x - 1e-6 * e) for e in np.eye(3)]) / 2e-6


def set_item(y, x):
    y[0] = x[1]


def set_slice(y, x):
    y[1:] = x[:2]


def set_reversed(y, x):
    y[::-1] = x


def set_mask(y, x):
    y[y > 3] = 0.0


def set_places(y, x):
    y[[0, 2]] = [x[1], 5.0]


def set_last_of_repeated_places(y, x):
    y[np.array([0, 0, 1])] = x


def set_everything(y, x):
    y[...] = x[0]


def add_in_place(y, x):
    y += x
    y -= 1
    y *= x
    y /= 2
    y //= 0.5
    y %= 3.0
    y **= 2


def add_to_part(y, x):
    y[1:] += x[1:]


def add_with_out(y, x):
    np.add(x, 1.0, out=y)
    np.multiply(y, x, out=(y,))


def sum_with_out(y, x):
    np.cumsum(x, out=y)
    y.clip(1.5, 2.5, out=y)


def add_at(y, x):
    np.add.at(y, [0, 0, 2], x)


def copy_to(y, x):
    np.copyto(y, x, where=x > 1.5)


def fill(y, x):
    y.fill(x[0])


def swap(y, x):
    y[[0, 1]] = y[[1, 0]]


CHANGES = [
    set_item,
    set_slice,
    set_reversed,
    set_mask,
    set_places,
    set_last_of_repeated_places,
    set_everything,
    add_in_place,
    add_to_part,
    add_with_out,
    sum_with_out,
    add_at,
    copy_to,
    fill,
    swap,
]


@in_one_test
@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_an_in_place_change_of_a_new_array_is_recorded(change):
    def program(x):
        y = x * 2
        change(y, x)
        return y

    assert_same(program(X), lt.trace(program, X)(X))
    assert_same(program(X), lt.trace(program, X, abstract=change is not set_mask)(X))


@in_one_test
@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
def test_an_in_place_change_is_differentiated(change):
    def program(x):
        y = x * 2
        change(y, x)
        return (y * np.array([1.0, 10.0, 100.0])).sum()

    assert_close(slopes(program, X + 0.3), lt.grad(program)(X + 0.3), rtol=1e-6)


def test_matrices_are_multiplied_in_place():
    def program(m):
        y = m @ m.T
        y @= y
        return y

    assert_same(program(M), lt.trace(program, M)(M))


def test_bits_are_changed_in_place():
    def program(n):
        y = n + 1
        y &= 6
        y |= n
        y ^= 1
        return y

    n = np.arange(5)
    assert_same(program(n), lt.trace(program, n)(n))


def test_a_change_keeps_the_dtype_as_numpy_casts():
    def program(x):
        y = x * 2
        y += 0.5
        y[0] = 7.9
        return y

    x = np.ones(3, np.float32)
    assert_same(program(x), lt.trace(program, x)(x))


def test_a_write_of_floats_into_integers_truncates_as_in_numpy():
    def program(n):
        y = n * 2
        y[1] = 7.9
        return y

    assert_same(program(np.arange(3)), lt.trace(program, np.arange(3))(np.arange(3)))


def test_augmented_assignment_to_a_scalar_makes_a_new_scalar():
    def program(x):
        total = x[0]
        before = total
        total += x[1]
        total *= 2
        return total, before

    assert_same(program(X), lt.trace(program, X)(X))


def test_augmented_assignment_to_a_python_number_makes_a_new_number():
    def program(rate):
        before = rate
        rate *= 0.5
        return rate, before

    assert_same((1.0, 2.0), lt.trace(program, 4.0)(2.0))


def test_a_0d_array_stays_one_array():
    def program(x):
        total = lnp.zeros(())
        same = total
        total += x[0]
        total += x[1]
        return total, same

    assert_same((np.array(3.0), np.array(3.0)), lt.trace(program, X)(X))


def test_a_change_is_seen_through_every_name_of_an_array():
    def program(x):
        y = x * 2
        z = y
        y += 1
        z[0] = 0.0
        return y, z

    assert_same(program(X), lt.trace(program, X)(X))


def test_a_write_through_a_view_is_seen_by_its_base():
    """[B6]"""

    def program(x):
        y = x * np.ones((2, 1))
        part = y[0, 1:]
        part[0] = x[0]
        part *= 10
        return y, part

    assert_same(program(X), lt.trace(program, X)(X))


def test_rows_of_a_loop_are_written_through():
    """[B6]"""

    def program(x):
        y = x * np.ones((2, 1))
        for row in y:
            np.subtract(row, row.mean(), out=row)
            row[0] = 7.0
        return y

    assert_same(program(X), lt.trace(program, X)(X))


def test_augmented_assignment_to_a_part_writes_it_back():
    """[B6] ``y[i] += v`` reads a view, changes the view, and writes it back."""

    def program(x):
        y = x * np.ones((3, 1))
        for i in range(3):
            y[i] += i
            y[i, i] *= 2
            y[:, i] -= x
            y[[0, 2]] += 1
            y[y > 3] /= 2
        np.add(x, 1.0, out=y[1])
        return y

    assert_same(program(X), lt.trace(program, X)(X))


def test_an_array_without_living_views_can_be_changed():
    def program(x):
        y = x * 2
        total = y[1:].sum()
        y[0] = total
        return y

    assert_same(program(X), lt.trace(program, X)(X))


def test_an_index_with_arrays_copies_and_can_be_changed():
    def program(x):
        y = x[np.array([2, 0])]
        y += 1
        z = x[x > 1.5]
        z[0] = 0.0
        return y, z, x

    assert_same(program(X), lt.trace(program, X)(X))


@pytest.mark.parametrize("copied", [lambda x: x.copy(), np.copy, copy.copy, copy.deepcopy])
def test_a_copy_of_an_argument_can_be_changed(copied):
    def program(x):
        y = copied(x)
        y[0] = 9.0
        return x, y

    assert_same(program(X.copy()), lt.trace(program, X)(X))


def test_the_caller_never_sees_a_change():
    x = X.copy()
    f = lt.trace(lambda x: x.copy().__iadd__(1.0), x)

    f(x)

    assert_same(X, x)


def test_buffers_of_letir_are_filled_in_loops():
    def program(x):
        buffer = lnp.zeros((3, 3))
        for i, row in enumerate(x):
            buffer[i] = row * x
            buffer[:, i] += 1
        return buffer

    assert_same(program(X), lt.trace(program, X)(X))


def test_many_rows_of_one_array_are_taken_in_linear_time():
    """Registering a view does not visit all earlier views of the array."""
    f = lt.trace(lambda x: [x[i] for i in range(20_000)][-1], np.zeros((20_000, 1)), abstract=True)

    assert 20_000 == len(f)


def test_copyto_casts_as_numpy_does():
    def program(n, source):
        y = n * 2
        np.copyto(y, source)
        return y

    n = np.arange(3)
    assert_same(program(n, 2), lt.trace(lambda n: program(n, 2), n)(n))
    with pytest.raises(TypeError):
        program(n, 2.5)
    with pytest.raises(DTypeError, match="cannot cast float64 to int64 with casting='same_kind'"):
        lt.trace(lambda n: program(n, 2.5), n)


def test_copyto_replaces_infinities():
    def program(x):
        y = x / 0.0
        np.copyto(y, 1.0)
        return y

    with np.errstate(divide="ignore"):
        assert_same(np.ones(3), lt.trace(program, X)(X))


def test_an_array_of_one_element_is_written_into_one_place():
    def f(x):
        table = np.outer(x, x)
        row = table[0]
        row[..., 0] = table * 3
        return table

    x = np.array(2.0)

    assert_same(f(x), lt.trace(f, x)(x))


def test_an_array_made_from_a_scalar_is_a_new_array():
    def f(x):
        array = x[3][...]
        row = array.reshape(-1)
        array[...] = 0.0
        return x, array, row

    x = np.arange(4.0) + 1

    for abstract in (True, False):
        assert_same(f(x.copy()), lt.trace(f, x, abstract=abstract)(x.copy()))


@pytest.mark.parametrize("shape", [(5, 0, 3), (0, 0, 1), (1, 0, 3)])
def test_writing_to_an_empty_selection_accepts_any_leading_axes(shape):
    """NumPy accepts any leading axes of the value if the index selects no element."""

    def f(x, new):
        y = x.copy()
        y[np.zeros(0, int)] = new
        return y.sum()

    x, new = np.ones((4, 3)), np.ones(shape)

    assert 12 == lt.trace(f, x, new)(x, new)
    assert [x.shape, new.shape] == [ct.shape for ct in lt.grad(f, (0, 1))(x, new)]
    assert [12, 12] == list(lt.vmap(f)(np.stack([x, x]), np.stack([new, new])))

"""Memory layouts as programs see them: shapes that are assigned, strides, flags, as_strided."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same, check_grads
from letir.tracing.mutation.array_layout import as_strided

A = np.linspace(-1.0, 1.2, 12).reshape(3, 4)


def assigned(x):
    """A result that gets another shape, and its old view."""
    y = x * 2
    row = y[1]
    y.shape = (2, 6)
    y[1] += 10
    row[0] = 5
    y.shape = -1
    y[0] = 1
    return y, row


def assigned_view(x):
    """A view that gets another shape; a write reaches the array."""
    y = x * 2
    view = y[1:]
    view.shape = (2, 2, 2)
    view[0, 1] = 7
    return y, view


def assigned_with_stale_views(x):
    """A view that was not used since the array changed, before its shape did."""
    y = x * 2
    row = y[0]
    y[...] = x
    y.shape = -1
    y[0] = 5
    return row, y


def assigned_list(x):
    """A shape of one number, and a list."""
    y = np.cos(x)
    y.shape = 12
    z = np.sin(y)
    z.shape = [x.shape[1], 3]
    return y, z


def resized(x):
    """A shape that resize gives; the number of elements stays the same."""
    y = np.cos(x)
    y.resize(2, 6)
    y[0] = x[0, 0]
    z = np.zeros(12)
    z[0] = y.sum()
    z.resize(12)
    z.resize((3, 4), refcheck=False)
    return y, z


def grown(x):
    """Arrays of one axis that get other numbers of elements, as NumPy's own arrays do."""
    y, known = np.zeros(0), np.ones(2)
    for i in range(4):
        y.resize(i + 1, refcheck=False)
        y[i] = x[0, i]
        y[:i] += y[i]
    z = x[1] * 2
    z.resize((2, 3), refcheck=False)
    z[1] = y[:3]
    known.resize(4, refcheck=False)
    short = x[2] + known
    short.resize(2, refcheck=False)
    return y, z, short, known


# NumPy 2.5 warns of assigned shapes
on_any_numpy = pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
SHAPES = [assigned, assigned_view, assigned_with_stale_views, assigned_list, resized, grown]


@on_any_numpy
@pytest.mark.parametrize("f", SHAPES)
def test_an_assigned_shape_is_the_shape_of_the_array_itself(f):
    program, compiled = lt.trace(f, A), lt.jit(f)

    assert_same(f(A + 1), program(A + 1))
    assert_same(f(A), compiled(A))
    assert_same(f(A + 1), compiled(A + 1))
    check_grads(program, (A,))


@on_any_numpy
def test_a_shape_that_needs_a_copy_is_numpys_error():
    def f(x):
        y = (x * 2).T
        y.shape = 12
        return y

    for run in (f, lambda x: lt.trace(f, x)):
        with pytest.raises(AttributeError, match="Incompatible shape for in-place modification"):
            run(A)


@pytest.mark.parametrize(
    "reshaped",
    [
        lambda x: np.reshape(x, (2, 6), copy=True),
        lambda x: x.reshape(2, 6, copy=True),
        lambda x: x.reshape((2, 6), order="F", copy=True),
        lambda x: np.reshape(x, (2, 6), copy=False),
        lambda x: np.reshape(x.T, (6, 2), order="F", copy=False),
    ],
)
def test_a_reshape_is_a_copy_if_asked_and_a_view_if_it_must_be(reshaped):
    def f(x):
        y = reshaped(x)
        y[0] = 7.0
        return y, x * 2

    expected = f(A.copy())
    assert_same(expected, lt.trace(f, A.copy())(A.copy()))
    assert_same(expected, lt.jit(f)(A.copy()))


def test_a_reshape_that_must_be_a_view_and_needs_a_copy_is_numpys_error():
    def f(x):
        return np.reshape(x.T, (2, 6), copy=False)

    for run in (f, lambda x: lt.trace(f, x)):
        with pytest.raises(ValueError, match="Unable to avoid creating a copy"):
            run(A)


def test_the_shape_of_an_argument_cannot_be_assigned():
    def f(x):
        x.shape = 12
        return x

    with pytest.raises(lt.TraceError, match=r"the caller would see.*\n.*\n.*x = x.reshape"):
        lt.trace(f, A.copy())


def test_strides_of_arrays_that_the_function_makes_equal_numpys():
    def f(x):
        made = np.zeros((2, 4)), np.zeros((2, 4), order="F"), np.zeros((2, 4))[:, ::-2]
        return [x * step for y in made for step in y.strides], [y.flags.c_contiguous for y in made]

    assert_same(f(A), lt.trace(f, A)(A))


def test_strides_and_flags_equal_the_arrays():
    def f(x):
        y, z = x.T, x[:, 1:]
        assert y.flags.f_contiguous and not y.flags["C_CONTIGUOUS"] and not y.flags.owndata
        assert x.flags.c_contiguous and not z.flags.contiguous and z.flags.writeable
        return x * x.strides[0] + y.strides[0] + sum(z.strides)

    program = lt.trace(f, A)

    assert_same(f(A), program(A))
    assert_same(f(A), lt.jit(f)(A))
    with pytest.raises(lt.GuardError, match="memory order"):
        program(np.asfortranarray(A))
    assert_same(f(A * 2), lt.jit(f)(A * 2))


def test_an_array_that_was_made_read_only_is_not_changed():
    def f(x):
        y = x * 2
        y.flags.writeable = False
        assert not y.flags["WRITEABLE"]
        y[0] = 1
        return y

    with pytest.raises(ValueError, match="assignment destination is read-only"):  # NumPy's
        lt.trace(f, A)


def windows(x):
    """Overlapping windows of a row."""
    (step,) = x.strides
    return as_strided(x, (3, 2), (step, step)).sum(axis=1)


def blocks(x):
    """Overlapping blocks of a matrix, which was transposed."""
    x = x.T
    return as_strided(x, (2, 2, 3, 2), x.strides + x.strides).sum(axis=(2, 3))


def backwards(x):
    """A Toeplitz matrix: the view steps back, before its first element."""
    row = np.concatenate([x, x[::-1]])
    (step,) = row.strides
    return as_strided(row[3:], (4, 4), (-step, step))


def written_diagonal(x):
    """A view of the diagonal, which is written, and sees a later write."""
    y = x[:, :3] * 1.0
    diagonal = as_strided(y, (3,), (sum(y.strides),))
    diagonal[:2] = 0
    y[2, 2] = 9
    return y, diagonal


@pytest.mark.parametrize(("f", "x"), [(windows, A[0]), (blocks, A), (backwards, A[0])])
def test_a_strided_view_reads_the_elements_that_numpy_reads(f, x):
    plain = dict(f.__globals__, as_strided=np.lib.stride_tricks.as_strided)
    expected = type(f)(f.__code__, plain)

    program = lt.trace(f, x)

    assert_same(expected(x * 2), program(x * 2))
    assert_same(expected(x * 2), lt.jit(f)(x * 2))
    check_grads(program, (x,))


@pytest.mark.parametrize("x", [A[0, ::-1], np.repeat(A[0], 2)[::2], A[::-1, 1]])
def test_a_strided_view_of_elements_that_are_not_contiguous_reads_no_others(x):
    """A recorded program has a guard of the memory order; one that is written by hand has none."""
    program = lt.parse(
        f"lambda %0: float64[{len(x)}] {{ %1: float64[2, 2] = as_strided(%0, shape=(2, 2), "
        "steps=(1, 1)); return %1 }"
    )
    expected = x[[[0, 1], [1, 2]]]

    assert_same(expected, program(x))
    assert_same(expected, lt.compile(program)(x))


def test_a_write_into_a_strided_view_reaches_the_array():
    y = A[:, :3] * 1.0
    y[[0, 1], [0, 1]] = 0
    y[2, 2] = 9

    assert_same((y, np.array([0.0, 0.0, 9.0])), lt.trace(written_diagonal, A)(A))
    check_grads(lt.trace(written_diagonal, A), (A,))


def test_a_strided_view_beyond_the_array_is_an_error():
    with pytest.raises(lt.BoundsError, match="reads outside"):
        lt.trace(lambda x: as_strided(x, (5,), x.strides), A[0])


def test_windows_of_a_real_part_are_numpys():
    """Its elements lie among the imaginary parts: the windows were those of the complex numbers."""

    def windows(x):
        parts = np.fft.fft(x).real
        return np.lib.stride_tricks.as_strided(parts, (3, 2), parts.strides * 2).sum(axis=1)

    with pytest.raises(lt.TraceError, match="are not contiguous"):
        lt.trace(windows, A[0])
    with pytest.warns(RuntimeWarning, match="as Python"):
        assert_same(windows(A[0]), lt.jit(windows)(A[0]))


def written(x):
    x.setflags(write=False)
    x[0] = 1.0
    return x


def added(x):
    x.flags.writeable = False
    x += 1.0
    return x


def sorted_in_place(x):
    y = np.array([x[0], x[1]])
    y.setflags(write=False)
    y.sort()
    return y


@pytest.mark.parametrize("f", [written, added, sorted_in_place])
def test_writes_into_arrays_that_the_function_made_read_only_raise_a_value_error(f):
    def guarded(x):
        try:
            return f(x.copy())
        except ValueError:
            return x * 2

    for run in (f, lambda x: lt.trace(f, x), lt.jit(f)):
        with pytest.raises(ValueError, match="read-only"):
            run(A[0].copy())
    assert_same(2 * A[1], lt.trace(guarded, A[0])(A[1]))
    assert_same(2 * A[1], lt.jit(guarded)(A[1]))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[0].resize(2, refcheck=False),  # a view
        lambda x: (x * 2).resize(3, refcheck=False),  # of two axes
        lambda x: np.cos(x[0]).resize(9),  # NumPy counts the references to it
    ],
    ids=["view", "two axes", "counted"],
)
def test_another_number_of_elements_is_an_error_where_numpy_may_refuse_it(f):
    with pytest.raises(AttributeError, match=r"write y = numpy\.resize\(x, shape\)"):
        lt.trace(f, A)


def test_an_array_with_a_view_keeps_its_number_of_elements():
    def f(x):
        y = x[0] * 2
        part = y[:2]
        y.resize(9, refcheck=False)
        return y, part

    with pytest.raises(AttributeError, match="is not recorded"):
        lt.trace(f, A)

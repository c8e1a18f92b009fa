"""Corner cases of NumPy's functions, mostly calls in NumPy's own tests."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from tests.each_sample import in_one_test

RNG = np.random.default_rng(0)
POINT = np.array(3.0)
CUBE, SLAB = RNG.normal(size=(3, 3, 3)), RNG.normal(size=(3, 1, 3))
RIGHT = {
    "repeat of a number along axis 0": (lambda x: np.repeat(x, 2, axis=0), POINT),
    "take of a number along axis -1": (lambda x: np.take(x, [0, 0], axis=-1), POINT),
    "axes as ranges": (lambda x: np.moveaxis(x, range(3), range(3)), CUBE),
    "kept axes go last": (lambda x, y: np.vecdot(x, y, axes=[0, 2], keepdims=True), CUBE, SLAB),
    "the kept axis stays": (lambda x, y: np.vecdot(x, y, axis=0, keepdims=True), CUBE, SLAB),
    "axes of two operands": (lambda x, y: np.vecdot(x, y, axes=[0, 2]), CUBE, SLAB),
    "conditions of two shapes": (
        lambda x: np.select([x.sum() > 0, x[0] > 0], [x, 2 * x]),
        CUBE,
    ),
    "complex numbers are sorted as such": (lambda x: np.sort_complex(x.astype("f")), CUBE[0, 0]),
    "numbers broadcast to arrays": (np.broadcast_arrays, 1.5, 2),
    "one number broadcast": (np.broadcast_arrays, np.float64(1.5)),
    "common elements that repeat": (
        lambda x, y: np.intersect1d(x, y, assume_unique=True),
        *(np.array([1, 2, 3, 1, 2]), np.array([[2, 3], [4, 2]])),
    ),
    "places of common elements": (
        lambda x, y: np.intersect1d(x, y, True, return_indices=True),
        *(np.array([3, 1, 2]), np.array([[2, 3], [4, 5]])),
    ),
    "a condition on rows": (lambda x, c: np.piecewise(x, [c], [2.0, np.exp]), CUBE, CUBE[0, 0] > 0),
    "a fit in single precision": (
        lambda x, y: np.polynomial.polynomial.polyfit(x, y, 1),
        *(np.arange(4, dtype="f"), np.array([1.0, 2.5, 4.0, 6.0], "f")),
    ),
    "axes in a tuple": (lambda x, *axes: np.add.reduce(x, axes), CUBE, 0, 2),
    "places in a list": (lambda x: np.add.reduceat(x, [0, 1.5]), CUBE),
    "Fortran's order of another shape": (lambda x: np.ones_like(x, shape=(2, 3), order="F"), CUBE),
    "a count for a flag": (lambda x: np.argmin(x, axis=1, keepdims=1), CUBE),
    "a count for average": (lambda x: np.average(x, axis=1, keepdims=1), CUBE),
    "Fortran's order of a ufunc": (lambda x: np.exp(x, order="F"), CUBE[0]),
    "counts of truth values": (np.bincount, CUBE[0, 0] > 0),
    "the dtype complex64": (lambda x: np.full((2, 3), x, "F"), np.float64(1.5)),
    "Fortran's order of zeros": (lambda x: np.zeros((2, 3), order="f") + x, np.float64(1.5)),
    "a mask in a list": (lambda x: np.add(x, x, out=x + 0, where=[0, 1, 2]), CUBE),
    "a mask in a list of a maximum": (lambda x: np.max(x, where=[0, 1, 2], initial=0), CUBE),
    "edges for two axes": (
        lambda x, y, edges: np.histogram2d(x, y, [edges, edges[:3]]),
        *(CUBE.ravel(), CUBE.ravel()[::-1], np.linspace(-1.0, 1.0, 5)),
    ),
    "edges in a list": (lambda x, *edges: np.histogram(x, edges), CUBE, -1.0, 0, np.inf),
    "edges of edges": (lambda x, *edges: np.histogram_bin_edges(x, edges), CUBE, -1.0, 0.5),
    "a traced cut-off": (np.linalg.lstsq, CUBE[0], CUBE[1, 0], -1),
}
WRONG = {
    "axes of one operand": (lambda x, y: np.vecdot(x, y, axes=[-1]), CUBE, SLAB),
    "triangles of a stack": (np.tril_indices_from, CUBE),
    "triangles of a vector": (np.triu_indices_from, CUBE[0, 0]),
    "a negative length": (lambda x: np.bincount(x, minlength=-1), np.array([0, 1, 1])),
}


@pytest.mark.parametrize("call", RIGHT.values(), ids=RIGHT.keys())
def test_a_replay_agrees_with_numpy(call):
    f, *args = call
    wanted, result = f(*args), lt.trace(f, *args)(*args)

    assert_same(wanted, result)
    if isinstance(wanted, np.ndarray):
        assert wanted.flags.f_contiguous == result.flags.f_contiguous


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG.keys())
def test_a_call_that_numpy_refuses_is_refused_when_traced(call):
    f, *args = call

    with pytest.raises(ValueError):  # any message, as in NumPy
        f(*args)
    with pytest.raises(lt.ShapeError):
        lt.trace(f, *args)


RAISE = {
    "too few conditions": (lambda x, c: np.piecewise(x, c, [1]), np.ones(2), np.array([True])),
    "a negative degree": (lambda x: np.polynomial.polynomial.polyvander(x, -1), CUBE),
    "half a degree": (lambda x: np.polynomial.polynomial.polyvander(x, 1.5), CUBE),
    "widths for more axes": (lambda x: np.pad(x, [(0, 0)] * 3), 1.5),
    "a wider matrix for a product": (
        lambda x, out: np.linalg.multi_dot([x, x, x], out=out),
        *(np.ones((2, 2), "f"), np.ones((2, 2))),
    ),
    "floating places": (np.add.reduceat, CUBE, np.array([0.0, 1.5])),
    "an unknown order": (lambda x: np.exp(x, order="x"), CUBE),
    "no casting rule": (lambda x: np.exp(x, casting=None), CUBE),
    "a floating mask": (lambda x, m: np.copyto(x + 0, 1.0, where=m), CUBE, CUBE),
    "edges that decrease": (lambda x, *edges: np.histogram_bin_edges(x, edges), CUBE, 0.5, -1.0),
}


@pytest.mark.parametrize("call", RAISE.values(), ids=RAISE.keys())
def test_errors_of_numpy_are_raised_with_their_class(call):
    f, *args = call

    with pytest.raises(Exception) as wanted:
        f(*args)
    with pytest.raises(wanted.type):
        lt.trace(f, *args)
    with pytest.raises(wanted.type):
        lt.jit(f)(*args)


@pytest.mark.filterwarnings("ignore:The fit may be poorly conditioned")
def test_a_fit_at_one_point_is_the_mean():
    def fit(x, y):
        return np.polynomial.polynomial.polyfit(x, y, 1)

    x, y = np.zeros(3), np.array([1.0, 2.5, 4.0])

    assert_same(fit(x, y), lt.trace(fit, x, y)(x, y))


@pytest.mark.parametrize("x", [np.array(2.0), np.array([2.0, 3.0])], ids=str)
@pytest.mark.parametrize("axes", [1, 2])
def test_an_array_with_more_axes_is_a_copy(x, axes):
    def fill(x):
        copied = np.array(x, ndmin=axes)
        copied[...] = 0.0
        return copied, x + 1.0

    before = x.copy()

    assert_same(fill(before), lt.trace(fill, x)(x))
    assert_same(fill(before), lt.jit(fill)(x))
    assert_same(before, x)


@pytest.mark.parametrize(
    "bounds", [(4.0,), (0, 4.0), (0, 4, 1.0), (4,), (np.int8(4),), (0, np.float32(4)), (1, 4, 2)]
)
def test_each_bound_of_a_range_has_a_say_in_its_dtype(bounds):
    def f(i):
        return np.arange(*bounds)[i], lt.numpy.arange(*bounds)[i]

    i = np.array([1, 0])

    assert_same(f(i), lt.trace(f, i)(i))


@in_one_test
@pytest.mark.parametrize("x", [CUBE[0], np.asfortranarray(CUBE[0]), CUBE[0, :1]])
@pytest.mark.parametrize(
    "ordered",
    [
        np.ascontiguousarray,
        lambda x: np.ascontiguousarray(x.T),
        np.asfortranarray,
        lambda x: np.require(x.T, requirements=["C"]),
    ],
)
@pytest.mark.parametrize("record", [lt.trace, lambda f, *_: lt.jit(f)], ids=["trace", "jit"])
def test_an_array_in_another_memory_order_is_a_copy(record, ordered, x):
    def f(x):
        made = ordered(x)
        row = made.reshape(-1)
        row[0] = 9.0
        made[-1, -1] = 8.0
        return made, row

    ours, numpys = x.copy("K"), x.copy("K")
    program = record(f, x.copy("K"))

    assert_same(f(numpys), program(ours))
    assert_same(numpys, ours)


def test_roots_are_real_or_complex_as_numpys():
    program = lt.jit(lambda k: np.roots(np.array([1.0, k, 1.0])))

    for k in (1.0, 3.0, 1.0):
        assert_same(np.roots([1.0, k, 1.0]).dtype, program(k).dtype)


def test_copy_may_be_one_of_numpys_modes():
    modes = np._CopyMode

    def program(x):
        shared, copied = np.array(x, copy=modes.IF_NEEDED), np.array(x, copy=modes.ALWAYS)
        shared[0], copied[1] = 5.0, 7.0
        return (
            x * 2,
            copied,
            np.asarray(x, copy=modes.IF_NEEDED),
            np.array([x[0]], copy=modes.ALWAYS),
        )

    for run in (lt.trace(program, np.ones(2)), lt.jit(program)):
        assert_same(program(np.array([1.0, 2.0])), run(np.array([1.0, 2.0])))


@pytest.mark.parametrize("name", ["zeros", "ones", "empty"])
def test_new_arrays_have_the_memory_order_that_is_asked_for(name):
    def program(x):
        new = getattr(np, name)((2, 3), order="F")
        new[0] = x
        known = getattr(np, name)((2, 3), order="F") * 0 + 1
        return new, known, np.eye(2, 3, order="F"), np.full((2, 3), x, order="F")

    x = np.arange(3.0)
    for run in (lt.trace(program, x), lt.jit(program)):
        for expected, found in zip(program(x), run(x), strict=True):
            assert_same(expected[0], found[0])
            assert expected.strides == found.strides


def test_the_rank_of_a_vector_is_a_number_of_python():
    f = np.linalg.matrix_rank

    for x in (np.zeros(3), np.arange(3.0), np.zeros((0,)), np.eye(2)):
        for call in (lt.trace(lambda a: f(a), x), lt.jit(lambda a: f(a))):  # noqa: PLW0108
            assert_same(f(x), call(x))
    assert_same(np.array([0, 1]), lt.vmap(lambda a: f(a))(np.array([[0.0, 0.0], [0.0, 2.0]])))  # noqa: PLW0108

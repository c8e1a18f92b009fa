"""Reads and writes of parts of arrays, at other sizes and indices than the recorded ones."""

import numpy as np
import pytest

import letir as lt
from letir.ast.types import Size
from tests.onnx.running import assert_agrees, exported, kinds_of, results_of

N, M = lt.ShapeDtype(("n", 3), float), lt.ShapeDtype(("k",), np.int64)
ITEMS = [
    lambda i: i,
    lambda i: (i, 1),
    lambda i: (slice(None), i % 3),
    lambda i: (i[:, None], slice(1, None)),
    lambda i: (i, i % 3),
    lambda i: (None, i, ..., slice(None, None, -1)),
]


@pytest.mark.parametrize("item", ITEMS)
def test_index_arrays_read_add_and_overwrite(item):
    def f(x, i):
        y = x.copy()
        y[item(i)] = np.sin(x[item(i)])
        np.add.at(y, item(i), 0.5)
        return x[item(i)], y

    program = lt.trace(f, N, M)
    model = exported(program)

    rng = np.random.default_rng(0)
    for n, k in ((4, 3), (7, 5)):  # indices repeat: the last write wins
        assert_agrees(model, program, [rng.normal(size=(n, 3)), rng.integers(-n, n, k)])


def test_slices_with_steps_and_integers_are_one_slice():
    def f(x):
        return x[::-2, 1], x[-1], x[1:-1, None, :2]

    program = lt.trace(f, N)
    model = exported(program)

    assert kinds_of(model).count("Slice") <= 3
    for n in (3, 8):
        assert_agrees(model, program, [np.arange(3.0 * n).reshape(n, 3)])


def test_writes_into_slices_are_scattered():
    def f(x):
        y = x * 1
        y[1:, :2] = 0.5
        y[0] += 1
        return y

    program = lt.trace(f, N)
    model = exported(program)

    for n in (2, 5):
        assert_agrees(model, program, [np.arange(3.0 * n).reshape(n, 3)])


def test_chunks_are_one_split_whose_sizes_may_be_computed():
    def f(x, y):
        a, b, c = np.split(x, 3)
        d, e = np.split(y, 2, axis=1)
        return a - c, b, d * e

    kinds = lt.ShapeDtype((3 * Size.named("n"), 2), float), lt.ShapeDtype(("k", 4), float)
    program = lt.trace(f, *kinds)
    model = exported(program)

    assert 2 == kinds_of(model).count("Split")
    for n, k in ((1, 5), (4, 2)):
        xs = [np.arange(m * w * 1.0).reshape(m, w) for m, w in ((3 * n, 2), (k, 4))]
        assert_agrees(model, program, xs)


@pytest.mark.parametrize(
    ("kinds", "f"),
    [
        ({"Split"}, lambda x: np.array_split(x, 2, axis=1)),
        ({"Split"}, lambda x: np.split(x, [0, 1, 3], axis=1)),
        ({"Slice"}, lambda x: np.split(x, [2, 1], axis=1)),
        ({"Slice"}, lambda x: np.split(x, [1, 5], axis=1)),
    ],
)
def test_parts_between_places_are_one_split_unless_they_overlap_or_end_beyond(kinds, f):
    program = lt.trace(f, N)
    model = exported(program)

    assert kinds == set(kinds_of(model))
    for n in (1, 4):
        assert_agrees(model, program, [np.arange(3.0 * n).reshape(n, 3)])


def test_an_integer_reads_by_gather_or_by_slice_and_squeeze():
    program = lt.trace(lambda x, i: (x[2], x[1:, -1], x[i]), N, lt.ShapeDtype((), np.int64))
    model = exported(program)

    assert set(kinds_of(model)) <= {"Gather", "Slice", "Squeeze", "Reshape"}
    for n in (3, 6):
        assert_agrees(model, program, [np.arange(3.0 * n).reshape(n, 3), np.int64(n - 1)])


def test_unsigned_integers_are_sorted():
    program = lt.trace(lambda x: (np.sort(x), np.argsort(x)), lt.ShapeDtype(("n",), np.uint64))

    x = np.array([3, 1 << 63, 0, (1 << 64) - 1, (1 << 63) - 1], np.uint64)
    assert_agrees(exported(program), program, [x])


def test_a_model_finds_unique_values_and_fails_for_another_number_of_them():
    def f(x):
        values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
        return values * 2, inverse, counts

    x = np.array([3.0, 1.0, 3.0, 2.0])
    program = lt.trace(f, x)
    model = exported(program)

    assert_agrees(model, program, [x])
    assert_agrees(model, program, [np.array([-1.0, 5.0, 7.0, 5.0])])
    with pytest.raises(Exception, match="recorded where this was 3"):
        results_of(model, [np.arange(4.0)])
    with pytest.raises(Exception, match="recorded where this was without nan"):
        results_of(model, [np.array([1.0, np.nan, np.nan, 2.0])])


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int8])
def test_borders_of_copies_around_any_number_of_rows(mode, dtype):
    program = lt.trace(
        lambda x: np.pad(x, ((2, 1), (1, 0)), mode=mode), lt.ShapeDtype(("n", 3), dtype)
    )
    model = exported(program)

    for n in (3, 6):
        assert_agrees(model, program, [np.arange(3.0 * n).reshape(n, 3).astype(dtype)])


@pytest.mark.parametrize("options", [{}, {"endpoint": False}, {"dtype": int}])
def test_as_many_samples_as_an_input_has_rows(options):
    def f(x, stop):
        return np.linspace(0, 1, x.shape[0], **options), np.linspace(x[0], stop, x.shape[0])

    program = lt.trace(f, lt.ShapeDtype(("n", 3), float), lt.ShapeDtype((), float))
    model = exported(program)

    for n in (1, 2, 7):
        assert_agrees(model, program, [np.arange(3.0 * n).reshape(n, 3), np.float64(5.5)])

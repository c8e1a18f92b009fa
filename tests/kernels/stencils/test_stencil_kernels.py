"""Kernels of stencils: their text, and their values by the interpreter."""

import numpy as np
import pytest

import letir as lt
from letir.kernels.interpreter import run_kernel
from letir.kernels.stencils.stencil_kernels import StencilRead, StencilTarget, stencil_kernel
from letir.kernels.stencils.stencil_places import View

X = np.random.default_rng(0).normal(size=(6, 24))
WHOLE = View.whole(X.shape)
INNER = np.s_[1:-1, 1:-1]


def cross(middle, up, down, left, right):
    return up + down + left + right - 4 * middle


SLICES = [INNER, np.s_[:-2, 1:-1], np.s_[2:, 1:-1], np.s_[1:-1, :-2], np.s_[1:-1, 2:]]
ROLLS = [(0, 0), (1, 0), (-1, 0), (1, 1), (-1, 1)]


def kernel_of(f, views: list[View], base=X, target=None, **options):
    """The kernel of a function of these views of one array."""
    body = lt.trace(f, *[np.ones(view.shape) for view in views])
    reads = {param: StencilRead(0, view) for param, view in zip(body.params, views, strict=True)}
    (aval,) = [param.type for param in lt.trace(lambda x: x, base).params]
    written = None if target is None else StencilTarget(aval, target, **options)
    return stencil_kernel(body, reads, [aval], written)


def run(lowered, result, base=X):
    """The result of the interpreter, which tests every index."""
    extents = {"o": 1} | {f"x0_{n}": size for n, size in enumerate(base.shape)}
    extents |= {f"y0_{n}": size for n, size in enumerate(result.shape)}
    run_kernel(lowered.kernel, base[None], result[None], **extents)
    return result


def test_slices_of_one_array_are_one_operand():
    lowered = kernel_of(cross, [WHOLE.item(item) for item in SLICES])

    assert "(x0_0,x0_1)->(y0_0,y0_1)" == lowered.signature
    expected = cross(*[X[item] for item in SLICES])
    np.testing.assert_array_equal(run(lowered, np.zeros((4, 22))), expected)


def test_a_kernel_writes_into_a_part_of_an_array_and_nowhere_else():
    lowered = kernel_of(cross, [WHOLE.item(i) for i in SLICES], target=WHOLE.item(INNER))
    expected = np.full(X.shape, 7.0)
    expected[INNER] = cross(*[X[item] for item in SLICES])

    np.testing.assert_array_equal(run(lowered, np.full(X.shape, 7.0)), expected)


@pytest.mark.parametrize("base", [X, X[0], X.reshape(3, 2, 24), X > 0])
@pytest.mark.parametrize("copies_rows", [True, False])
def test_a_kernel_may_copy_the_elements_around_the_part_that_it_writes(base, copies_rows):
    items = [(..., slice(3, -2)), (..., slice(0, -5))]
    items = [(slice(1, None), *item) if base.ndim > 1 else item for item in items]
    whole = View.whole(base.shape)
    views = [whole.item(item) for item in items]
    function = np.logical_xor if base.dtype == bool else np.add
    body = lt.trace(function, *[np.ones(view.shape, base.dtype) for view in views])
    reads = {param: StencilRead(0, view) for param, view in zip(body.params, views, strict=True)}
    (aval,) = [param.type for param in lt.trace(lambda x: x, base).params]
    target = StencilTarget(aval, views[0], around=0, copies_rows=copies_rows)
    result = np.full(base.shape, 7).astype(base.dtype)
    expected = base.copy()
    expected[items[0]] = function(*[base[item] for item in items])
    if not copies_rows:
        first = slice(0, 1) if base.ndim > 1 else slice(0, 3)
        expected[first] = result[first]
        if base.ndim == 1:
            expected[-2:] = result[-2:]

    np.testing.assert_array_equal(
        run(stencil_kernel(body, reads, [aval], target), result, base), expected
    )


def test_rolled_arrays_are_read_where_they_wrap_around():
    lowered = kernel_of(cross, [WHOLE.rolled(*roll, X.shape) for roll in ROLLS])

    expected = cross(*[np.roll(X, *roll) for roll in ROLLS])
    np.testing.assert_array_equal(run(lowered, np.zeros(X.shape)), expected)
    assert 4 == str(lowered.kernel).count("for ")  # arrays, rows, the ends of a row, its middle


def test_whole_rows_that_are_short_are_left_to_numpy():
    base = np.ones((6, 5, 3))
    views = [View.whole(base.shape).item(item) for item in (np.s_[2:], np.s_[:-2])]

    assert kernel_of(np.add, views, base) is None
    parts = [view.item(np.s_[:, :, 1:]) for view in views]
    assert kernel_of(np.add, parts, base) is not None


@pytest.mark.parametrize("base", [X, X[2], -0.0 * X, X > 0, (4 * X).astype(int)])
def test_parts_in_zeros_are_read_where_they_are(base):
    shape = tuple([n + 3 for n in base.shape])
    items = [tuple([slice(start, start + n) for n in base.shape]) for start in (0, 1, 3)]
    views = [View.whole(base.shape).placed(item, shape) for item in items]
    views.append(views[1].item((..., slice(None))))
    body = lt.trace(lambda *xs: xs[0] * xs[1] + xs[2] * xs[3], *[np.ones(shape, base.dtype)] * 4)
    reads = {param: StencilRead(0, view) for param, view in zip(body.params, views, strict=True)}
    (aval,) = [param.type for param in lt.trace(lambda x: x, base).params]
    placed = [np.zeros(shape, base.dtype) for _ in items]
    for whole, item in zip(placed, items, strict=True):
        whole[item] += base
    expected = placed[0] * placed[1] + placed[2] * placed[1]

    found = run(stencil_kernel(body, reads, [aval]), np.ones(shape, base.dtype), base)
    np.testing.assert_array_equal(found, expected)
    if base.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("shift", [-8, -5, -1, 2, 8, 24, 25, -31])
def test_far_shifts_along_rows_are_read_too(shift):
    lowered = kernel_of(np.add, [WHOLE, WHOLE.rolled(shift, 1, X.shape)])

    np.testing.assert_array_equal(run(lowered, np.zeros(X.shape)), X + np.roll(X, shift, 1))


def test_the_code_does_not_depend_on_sizes():
    def text(base):
        views = [View.whole(base.shape).item(item) for item in SLICES]
        return str(kernel_of(cross, views, base, View.whole(base.shape).item(INNER)).kernel)

    assert text(np.ones((6, 24))) == text(np.ones((90, 70)))


def test_steps_between_rows_and_fixed_rows_are_read():
    views = [WHOLE.item(np.s_[::2, 2:]), WHOLE.item(np.s_[1::2, :-2]), WHOLE.item(np.s_[4, 1:-1])]
    lowered = kernel_of(lambda x, y, z: x * y - z, views)

    expected = X[::2, 2:] * X[1::2, :-2] - X[4, 1:-1]
    np.testing.assert_array_equal(run(lowered, np.zeros((3, 22))), expected)


def test_a_column_is_read_once_for_each_row():
    lowered = kernel_of(np.subtract, [WHOLE.item(np.s_[:, 2:]), WHOLE.item(np.s_[:, :1])])

    np.testing.assert_array_equal(run(lowered, np.zeros((6, 22))), X[:, 2:] - X[:, :1])


@pytest.mark.parametrize(
    "views",
    [
        [WHOLE.item(np.s_[:, ::2]), WHOLE.item(np.s_[:, 1::2])],  # steps along rows
        [WHOLE.item(np.s_[:, 3:4]), WHOLE.item(np.s_[:, 2:3])],  # single elements
        [WHOLE, WHOLE.rolled(12, 1, X.shape)],  # half of each row wraps around
        [WHOLE.item(np.s_[:, 0]), WHOLE.item(np.s_[:, 1])],  # columns
    ],
)
def test_other_parts_are_left_to_numpy(views):
    assert kernel_of(np.add, views) is None

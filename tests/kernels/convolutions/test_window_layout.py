"""Planes of a convolution's input, in which each element of a window lies at a fixed distance."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from letir.kernels.convolutions.window_layout import WindowLayout
from letir.ops.nn.convolution import output_sizes

PAIRS = st.tuples(st.integers(0, 3), st.integers(0, 3))


@st.composite
def layouts(draw, *, max_size: int = 9) -> tuple[WindowLayout, tuple]:
    """(a layout, the padding on both sides of both axes)."""
    stride, dilation = [tuple(draw(st.integers(1, 3)) for _ in range(2)) for _ in range(2)]
    window = tuple(draw(st.integers(1, 3)) for _ in range(2))
    padding = draw(PAIRS), draw(PAIRS)
    sizes = []
    for k, d, pair in zip(window, dilation, padding, strict=True):
        least = max(1, (k - 1) * d + 1 - sum(pair))
        sizes.append(draw(st.integers(least, max(least, max_size))))
    places = output_sizes(sizes, window, stride, padding, dilation)
    low = tuple(pair[0] for pair in padding)
    return WindowLayout(tuple(sizes), window, places, low, stride, dilation), padding


@given(layouts(), st.integers(0, 2**32))
@settings(max_examples=150)
def test_windows_are_found_at_their_offsets(drawn, seed):
    layout, padding = drawn
    x = np.random.default_rng(seed).normal(size=(2, *layout.input_sizes))
    planes = np.full((2, layout.channel_size), np.nan)
    layout.copy_planes(x, planes)

    padded = np.pad(x, ((0, 0), *padding))
    (rows, columns), width = layout.output_sizes, layout.plane_sizes[1]
    for n, offset in enumerate(layout.offsets):
        i, j = np.multiply(divmod(n, layout.window[1]), layout.dilation)
        s, t = layout.stride
        direct = padded[:, i : i + s * rows : s, j : j + t * columns : t][:, :rows, :columns]
        places = offset + np.arange(rows)[:, None] * width + np.arange(columns)
        np.testing.assert_array_equal(direct, planes[:, places])


def test_an_input_without_padding_and_stride_is_its_own_plane():
    assert WindowLayout((8, 9), (3, 2), (6, 8), (0, 0)).is_plain
    assert not WindowLayout((8, 9), (3, 2), (6, 7), (0, 0)).is_plain  # a column is not read
    assert not WindowLayout((8, 9), (3, 2), (8, 9), (1, 0)).is_plain


def test_rows_before_the_input_may_be_left_out():
    layout = WindowLayout((6, 6), (2, 2), (3, 5), (-2, 0))
    x = np.arange(36.0).reshape(1, 6, 6)
    planes = np.full((1, layout.channel_size), np.nan)
    layout.copy_planes(x, planes)

    np.testing.assert_array_equal(x[0, 2:6], planes.reshape(4, 6))

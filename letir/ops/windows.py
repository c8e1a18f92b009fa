"""sliding_window_view: windows that overlap, as further axes; in NumPy it is a view."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from letir.errors import ShapeError
from letir.ops.arranging import one_or_more
from letir.ops.makers import composite
from letir.ops.shaping import moved, normalized


def windows_decompose(x, *, window, axis=None):
    """Read along each axis: windows next to where they begin, then moved to the end."""
    axes = range(x.ndim) if axis is None else [normalized(a, x.ndim)[0] for a in axis]
    if len(axes) != len(window):
        raise ShapeError(f"sliding_window_view: {len(window)} window sizes for {len(axes)} axes")
    for a, width in zip(axes, window, strict=True):
        count = x.shape[a] - width + 1
        if width < 0 or count < 1:
            raise ShapeError(f"sliding_window_view: a window of {width} along {x.shape[a]}")
        places = np.arange(count)[:, None] + np.arange(width)
        x = moved(x[(*(slice(None),) * a, places)], (a + 1,), (-1,))
    return x


def windows_prepare(x, window_shape, axis=None, *, subok=False, writeable=False):
    """NumPy's call. Raises ShapeError for a view that is to be written into."""
    if writeable:
        raise ShapeError(
            "sliding_window_view: one write would change several windows, and is not recorded\n"
            "  write into the array itself"
        )
    axis = None if axis is None else one_or_more(axis)
    return (x,), {"window": one_or_more(window_shape), "axis": axis}


windows = composite(
    "sliding_window_view",
    windows_decompose,
    impl=lambda xp, x, *, window, axis=None: xp.lib.stride_tricks.sliding_window_view(
        x, window, axis
    ),
    prepare=windows_prepare,
    numpy=(sliding_window_view,),
    source="np.lib.stride_tricks.sliding_window_view({0}, {window}, {axis})",
)

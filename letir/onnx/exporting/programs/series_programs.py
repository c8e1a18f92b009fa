"""Cumulative products, recurrences and accumulations along an axis, as loops."""

import numpy as np

from letir.onnx.exporting.node_graph import computes_op
from letir.ops.reductions.ufunc_methods import ufunc_of
from letir.tracing.control_flow.scans import scan


def _accumulate_rows(step, rows):
    """The results of ``step(result so far, row)`` for each row, beginning with the first row."""
    if type(rows.shape[0]) is int and rows.shape[0] < 2:
        return rows * 1

    def body(so_far, row):
        result = step(so_far, row).astype(rows.dtype)
        return result, result

    _, rest = scan(body, rows[0], rows[1:])
    return np.concatenate([rows[:1], rest])


@computes_op("cumprod")
def _cumprod(x, *, axis=None, dtype=None):
    x = x.reshape(-1) if axis is None or not x.ndim else x
    if dtype is None and x.dtype.kind in "bi":
        dtype = np.int64
    axis = 0 if axis is None else axis
    rows = np.moveaxis(x if dtype is None else x.astype(dtype), axis, 0)
    return np.moveaxis(_accumulate_rows(lambda y, row: y * row, rows), 0, axis)


@computes_op("linear_recurrence")
def _linear_recurrence(a, b):
    b = b.astype(np.result_type(a.dtype, b.dtype))
    if type(b.shape[0]) is int and b.shape[0] < 2:
        return b * 1

    def step(last, pair):
        factor, row = pair
        result = row + factor * last
        return result, result

    _, rest = scan(step, b[0], (a, b[1:]))
    return np.concatenate([b[:1], rest])


@computes_op("ufunc_accumulate")
def _ufunc_accumulate(x, *, ufunc, axis=0, dtype=None):
    called = ufunc_of(ufunc)
    if dtype is None:
        dtype = called.resolve_dtypes((None, x.dtype, None), reduction=True)[-1]
    rows = np.moveaxis(x.astype(dtype), axis, 0)
    return np.moveaxis(_accumulate_rows(called, rows), 0, axis)

"""Calls of functions that arrange, index, join, write and make arrays."""

import numpy as np

from letir.testing.calls.call import (
    BITS,
    BLOCK,
    COUNTS,
    MASK,
    SQUARE,
    NumpyCall,
    V,
    W,
    X,
    Y,
    call_of,
    calls_of_names,
    jumping_call,
    real_call,
)

_INDICES = np.array([[2, 0, 1], [0, 0, 2]])


def _call_on_copy(name: str, *others) -> NumpyCall:
    """A call of a function that changes its first argument in place."""

    def f(np, x):
        x = x.copy()
        getattr(np, name)(x, *others)
        return x

    return call_of(f, X)


def _call_copyto(np, x, y):
    """np.copyto with a mask."""
    x = x.copy()
    np.copyto(x, y, where=MASK)
    return x


def _call_by_name(name: str, *args) -> NumpyCall:
    """The call of the function of this name with the arguments."""
    return call_of(lambda np, *args: getattr(np, name)(*args), *args)


def _call_on_list(name: str, *args) -> NumpyCall:
    """The call of the function of this name with a list of the arguments."""
    return call_of(lambda np, *args: getattr(np, name)(args), *args)


def _fill_array(np, x):
    """An array made in the trace, into which a traced value is written."""
    result = np.empty((2, 3), x.dtype)
    result[:] = x
    return result


CALLS = {
    **calls_of_names("diag diagonal trace tril triu", lambda name: _call_by_name(name, SQUARE)),
    **calls_of_names(
        "transpose ravel flip flipud fliplr rot90", lambda name: _call_by_name(name, X)
    ),
    **calls_of_names(
        "shape size ndim copy zeros_like ones_like", lambda name: _call_by_name(name, X)
    ),
    **calls_of_names(
        "matrix_transpose iscomplexobj isrealobj", lambda name: _call_by_name(name, X)
    ),
    **calls_of_names(
        "atleast_1d atleast_2d atleast_3d diagflat", lambda name: _call_by_name(name, V)
    ),
    **calls_of_names(
        "concatenate concat stack hstack vstack", lambda name: _call_on_list(name, X, Y)
    ),
    **calls_of_names("dstack column_stack", lambda name: _call_on_list(name, X, Y)),
    "reshape": call_of(lambda np, x: np.reshape(x, (3, -1), order="F"), X),
    "resize": call_of(lambda np, x: np.resize(x, (3, 4)), X),
    "squeeze": call_of(lambda np, x: np.squeeze(x[None], axis=0), X),
    "expand_dims": call_of(lambda np, x: np.expand_dims(x, (0, 2)), X),
    "swapaxes": call_of(lambda np, x: np.swapaxes(x, 0, -1), BLOCK),
    "moveaxis": call_of(lambda np, x: np.moveaxis(x, [0, 1], [-1, 0]), BLOCK),
    "rollaxis": call_of(lambda np, x: np.rollaxis(x, 2), BLOCK),
    "permute_dims": call_of(lambda np, x: np.permute_dims(x, (1, 0)), X),
    "roll": call_of(lambda np, x: np.roll(x, (1, -2), axis=(0, 1)), X),
    "tile": call_of(lambda np, x: np.tile(x, (2, 2)), X),
    "repeat": call_of(lambda np, x: np.repeat(x, [2, 0, 1], axis=1), X),
    "broadcast_to": call_of(lambda np, x: np.broadcast_to(x, (2, 3)), V),
    "broadcast_arrays": call_of(lambda np, x, y: tuple(np.broadcast_arrays(x, y)), X, V),
    "broadcast_shapes": call_of(lambda np, x: x.reshape(np.broadcast_shapes((1, 3), (2, 1))), X),
    "split": call_of(lambda np, x: tuple(np.split(x, [1], axis=1)), X),
    "array_split": call_of(lambda np, x: tuple(np.array_split(x, 2, axis=1)), X),
    "hsplit": call_of(lambda np, x: tuple(np.hsplit(x, 3)), X),
    "vsplit": call_of(lambda np, x: tuple(np.vsplit(x, 2)), X),
    "dsplit": call_of(lambda np, x: tuple(np.dsplit(x, 2)), BLOCK),
    "unstack": call_of(lambda np, x: tuple(np.unstack(x, axis=1)), X),
    "block": call_of(lambda np, x, y: np.block([[x, y], [y, x]]), X, Y),
    "append": call_of(lambda np, x, y: np.append(x, y, axis=0), X, Y),
    "insert": call_of(lambda np, x, v: np.insert(x, 1, v, axis=1), X, Y[:, 0]),
    "delete": call_of(lambda np, x: np.delete(x, [0, 2], axis=1), X),
    "pad": call_of(lambda np, x: np.pad(x, ((1, 0), (2, 1)), mode="reflect"), X),
    "take": call_of(lambda np, x: np.take(x, [2, -1, 0], axis=1), X),
    "take_along_axis": call_of(lambda np, x: np.take_along_axis(x, _INDICES, axis=1), X),
    "choose": call_of(lambda np, x, y: np.choose(_INDICES[0] % 2, [x, y]), V, W),
    "select": call_of(lambda np, x, y: np.select([x > 1, y > 1], [x, y * x], 0.5), X, Y),
    "piecewise": real_call(
        lambda np, x: np.piecewise(x, [x < 0, x >= 0], [lambda t: -t, np.exp]), V
    ),
    "compress": call_of(lambda np, x: np.compress([True, False, True], x, axis=1), X),
    "extract": call_of(lambda np, x: np.extract(MASK, x), X),
    "place": _call_on_copy("place", MASK, [1.5, 2.5]),
    "put": _call_on_copy("put", [0, 4], [1.5, 2.5]),
    "putmask": _call_on_copy("putmask", MASK, 3.0),
    "put_along_axis": _call_on_copy("put_along_axis", _INDICES, 0.5, 1),
    "fill_diagonal": _call_on_copy("fill_diagonal", 0.25),
    "copyto": call_of(_call_copyto, X, Y),
    "trim_zeros": jumping_call(lambda np, x: np.trim_zeros(x), np.array([0.0, 1.5, 2.5, 0.0])),
    "meshgrid": call_of(lambda np, x, y: tuple(np.meshgrid(x, y, indexing="ij")), V, W[:2]),
    "ix_": real_call(lambda np, x, i: x[np.ix_(i, [1, 0])], SQUARE, _INDICES[0]),
    "indices": call_of(lambda np, x: x * np.indices((2, 3))[0], X),
    "diag_indices": call_of(lambda np, x: x[np.diag_indices(3)], SQUARE),
    "diag_indices_from": call_of(lambda np, x: x[np.diag_indices_from(x)], SQUARE),
    "tril_indices": call_of(lambda np, x: x[np.tril_indices(3)], SQUARE),
    "triu_indices": call_of(lambda np, x: x[np.triu_indices(3, 1)], SQUARE),
    "tril_indices_from": call_of(lambda np, x: x[np.tril_indices_from(x)], SQUARE),
    "triu_indices_from": call_of(lambda np, x: x[np.triu_indices_from(x)], SQUARE),
    "mask_indices": call_of(lambda np, x: x[np.mask_indices(3, np.triu)], SQUARE),
    "unravel_index": real_call(lambda np, i: np.unravel_index(i, (3, 5)), BITS),
    "ravel_multi_index": real_call(
        lambda np, i, j: np.ravel_multi_index((i, j), (6, 6)), COUNTS, COUNTS[::-1]
    ),
    "packbits": real_call(lambda np, x: np.packbits(x), MASK),
    "unpackbits": real_call(lambda np, x: np.unpackbits(x), BITS.astype(np.uint8)),
    "astype": call_of(lambda np, x: np.astype(x, np.complex128), X),
    "full_like": call_of(lambda np, x, v: np.full_like(x, v), X, 2.5),
    "empty_like": call_of(lambda np, x: np.empty_like(x).shape, X),
    "asarray": call_of(lambda np, x, y: np.asarray([x, y]), 0.5, 1.5),
    "array": call_of(lambda np, x, y: np.array([[x, y], [2.0, x * y]]), 0.5, 1.5),
    "asanyarray": call_of(lambda np, x, y: np.asanyarray([x, y]), 0.5, 1.5),
    "ascontiguousarray": call_of(lambda np, x: np.ascontiguousarray(x), X),
    "asfortranarray": call_of(lambda np, x: np.asfortranarray(x), X),
    "asarray_chkfinite": call_of(lambda np, x: np.asarray_chkfinite(x), X),
    "require": call_of(lambda np, x: np.require(x), X),
    "full": call_of(lambda np, x: np.full((2, 2), x), 0.5),
    "empty": call_of(_fill_array, X),
    "zeros": call_of(lambda np, x: np.zeros(3) + x, X),
    "ones": call_of(lambda np, x: np.ones((2, 1)) * x, X),
    "eye": call_of(lambda np, x: np.eye(3, k=1) @ x, SQUARE),
    "identity": call_of(lambda np, x: np.identity(3) * x, SQUARE),
    "tri": call_of(lambda np, x: np.tri(3) * x, SQUARE),
    "arange": call_of(lambda np, x: np.arange(3.0) * x, X),
    "linspace": call_of(lambda np, x, y: np.linspace(x, y, 5), 0.5, 2.0),
    "logspace": call_of(lambda np, x, y: np.logspace(x, y, 4), 0.5, 1.0),
    "geomspace": call_of(lambda np, x, y: np.geomspace(x, y, 4), 0.5, 2.0),
    "fromfunction": call_of(lambda np, x: np.fromfunction(lambda i, j: x * i + j, (2, 3)), X),
    "fromiter": call_of(lambda np, x: np.fromiter([x[0], x[1]], x.dtype), V),
    "hanning": call_of(lambda np, x: np.hanning(3) * x, X),
    "hamming": call_of(lambda np, x: np.hamming(3) * x, X),
    "bartlett": call_of(lambda np, x: np.bartlett(3) * x, X),
    "blackman": call_of(lambda np, x: np.blackman(3) * x, X),
    "kaiser": call_of(lambda np, x: np.kaiser(3, 2.0) * x, X),
    "result_type": call_of(lambda np, x: x.astype(np.result_type(x, np.float32)), X),
    "can_cast": call_of(lambda np, x: x * np.can_cast(np.int8, np.int64), X),
    "promote_types": call_of(lambda np, x: x.astype(np.promote_types("f4", "f8")), X),
    "common_type": call_of(lambda np, x: x.astype(np.common_type(x)), X),
    "min_scalar_type": call_of(lambda np, x: x.astype(np.min_scalar_type(1.0)), V),
    "array_repr": call_of(lambda np, x: x * len(np.array_repr(x)[:1]), X),
    "array_str": call_of(lambda np, x: x * len(np.array_str(x)[:1]), X),
    "array2string": call_of(lambda np, x: x * len(np.array2string(x)[:1]), X),
    "may_share_memory": call_of(lambda np, x: x * np.may_share_memory(x, x), X),
    "shares_memory": call_of(lambda np, x: x * np.shares_memory(x, x), X),
}

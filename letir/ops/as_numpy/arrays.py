"""NumPy source of operations on arrays: the ``source`` of their records.

Each function takes a ``letir.source.bind_writer.BindWriter`` and the operands as texts. It returns
an expression, a tuple of texts for the results, or None if it wrote statements. The source computes
exactly what ``impl`` computes. Guards, loops and gradient programs are in the modules beside this.
"""

from typing import Any

import numpy as np

from letir.ast.attrs import Here, token
from letir.ast.symbolic_sizes import is_static_shape

# ---- elementwise operations and casts ----


def neg(write: Any, x: str) -> str:
    """``-x``."""
    return _prefix_call("-", write, x)


def invert(write: Any, x: str) -> str:
    """``~x``."""
    return _prefix_call("~", write, x)


def _prefix_call(symbol: str, write: Any, x: str) -> str:
    """A prefix operator; a call of the ufunc where NumPy scalars might warn."""
    aval = write.type(0)
    exact = write.is_array(0) and (aval.shape or aval.dtype.kind == "f")
    return f"{symbol}{x}" if exact else write.numpy_call(x)


def cast(write: Any, x: str, *, dtype: np.dtype) -> str:
    """``x.astype``; a Python number is converted to a NumPy scalar."""
    if write.is_array(0):
        return f"{x}.astype({write.literal(dtype)})"
    aval, to = write.type(0), write.literal(dtype)
    result = f"np.asarray({x}, dtype={to})[()]"
    if aval is not None and aval.weak:
        return result
    # the type is unknown: the written source tests it at run time, as impl does
    return f"{x}.astype({to}) if hasattr({x}, 'astype') else {result}"


def weaken(write: Any, x: str) -> str | tuple[str]:
    """``x.item()``; a Python number is unchanged."""
    aval = write.type(0)
    if aval is not None and aval.weak:
        return (x,)
    return f"{x}.item()" if write.is_array(0) else f"{x}.item() if hasattr({x}, 'item') else {x}"


def operand_itself(write: Any, x: str, **_: Any) -> tuple[str]:
    """The operand itself."""
    return (x,)


# ---- reductions ----


def masked_reduction(write: Any, x: str, *mask: str, **attrs: Any) -> str:
    """A call of NumPy's reduction, with the mask as ``where``."""
    return write.numpy_call(x, *[f"where={m}" for m in mask], **attrs)


# ---- shapes ----

_SUM_TO_SIZE = '''
def sum_to_size(x, shape):
    """x summed over the axes that broadcasting from this shape would add."""
    if np.shape(x) == shape:
        return x
    lead = np.ndim(x) - len(shape)
    kept = tuple(lead + i for i, n in enumerate(shape) if n == 1 != x.shape[lead + i])
    total = np.sum(x, axis=(*range(lead), *kept), keepdims=True, dtype=x.dtype)
    return total.reshape(shape)[()]
'''


def shape_text(write: Any, sizes: tuple, shape: tuple | None) -> str:
    """The text of a shape argument: the operand ``sizes`` if there is one, else the attribute."""
    return f"tuple({sizes[0]})" if sizes else write.literal(shape)


def size(write: Any, x: str) -> str:
    """The shape as an array."""
    return f"np.array(np.shape({x}), dtype=np.int64)"


def length(write: Any, x: str, *, axis: int) -> str:
    """One size of the shape."""
    return f"{x}.shape[{axis}]"


def sum_to_size(write: Any, x: str, *sizes: str, shape: tuple) -> str | tuple[str]:
    """``np.sum`` over the axes, if the shapes are static; else a helper that finds the axes."""
    aval = write.type(0)
    if sizes or aval is None or not write.is_array(0) or not is_static_shape((*aval.shape, *shape)):
        return f"{write.helper(_SUM_TO_SIZE)}({x}, {shape_text(write, sizes, shape)})"
    if aval.shape == shape:
        return (x,)
    lead = aval.ndim - len(shape)
    # the same axes as in _SUM_TO_SIZE, so that this text, the helper and impl round alike
    stretched = tuple(lead + i for i, n in enumerate(shape) if n == 1 != aval.shape[lead + i])
    axes = (*range(lead), *stretched)
    axis = {} if len(axes) == aval.ndim else {"axis": axes[0] if len(axes) == 1 else axes}
    dtype = {} if aval.inexact else {"dtype": aval.dtype}  # else sums of integers widen
    if not stretched or not shape:
        return write.call("np.sum", x, **axis, **dtype)
    total = write.call("np.sum", x, **axis, keepdims=True, **dtype)
    return f"{total}.reshape({write.literal(shape)})" if lead else total


def broadcast_to(write: Any, x: str, *sizes: str, shape: tuple) -> str:
    """np.broadcast_to."""
    return f"np.broadcast_to({x}, {shape_text(write, sizes, shape)})"


def ravel(write: Any, x: str, *, order: Any) -> str:
    """np.ravel."""
    return write.call("np.ravel", x, **({} if order == "C" else {"order": order}))


def reshape(write: Any, x: str, *sizes: str, shape: tuple, order: Any) -> str:
    """The method ``x.reshape(n, m, ...)`` if ``x`` is an array, else ``np.reshape``."""
    more = {} if order == "C" else {"order": order}
    if sizes or not write.is_array(0) or not write.type(0).shape or not shape:
        return write.call("np.reshape", x, shape_text(write, sizes, shape), **more)
    return write.call(f"{x}.reshape", *map(write.literal, shape), **more)


def transpose(write: Any, x: str, *, axes: tuple[int, ...] | None) -> str:
    """``x.T``, or the method ``x.transpose(i, j, ...)``."""
    if not write.is_array(0):
        return write.numpy_call(x, axes=axes)
    return f"{x}.T" if axes is None else write.call(f"{x}.transpose", *map(write.literal, axes))


def zeros(write: Any, *sizes: str, shape: tuple, dtype: np.dtype) -> str:
    """np.zeros."""
    return _filled_call("np.zeros", write, sizes, shape, dtype)


def ones(write: Any, *sizes: str, shape: tuple, dtype: np.dtype) -> str:
    """np.ones."""
    return _filled_call("np.ones", write, sizes, shape, dtype)


def _filled_call(function: str, write: Any, sizes: tuple, shape: tuple, dtype: np.dtype) -> str:
    """A call of a function that fills a new array."""
    keywords = {} if dtype.char == "d" else {"dtype": dtype}  # float64 is NumPy's default
    return write.call(function, shape_text(write, sizes, shape), **keywords)


def full(write: Any, fill: str, *sizes: str, shape: tuple, dtype: np.dtype) -> str:
    """np.full."""
    return f"np.full({shape_text(write, sizes, shape)}, {fill}, {write.literal(dtype)})"


def eye(write: Any, *, n: int, m: int, k: int, dtype: np.dtype) -> str:
    """np.eye."""
    return f"np.eye({n}, {m}, {k}, {write.literal(dtype)})"


def arange(write: Any, *, start: Any, stop: Any, step: Any, dtype: np.dtype) -> str:
    """np.arange."""
    bounds = ", ".join(map(write.literal, (start, stop, step)))
    return f"np.arange({bounds}, dtype={write.literal(dtype)})"


def constant(write: Any, *, value: Any) -> Any:
    """The name of an array constant; a NumPy scalar is written where it is used."""
    return write.constant(value) if isinstance(value, np.ndarray) else (write.literal(value),)


# ---- several arrays ----


def list_call(write: Any, *parts: str, **attrs: Any) -> str:
    """A call of NumPy's function with the operands as a list."""
    return write.numpy_call(f"[{', '.join(parts)}]", **attrs)


def split(write: Any, x: str, *, sections: Any, axis: int) -> str:
    """np.split, with the places to split at as a list."""
    parts = sections if type(sections) is int else list(sections)
    return write.call("np.split", x, write.literal(parts), axis=axis)


_PAD_VALUES = {"constant": "constant_values", "linear_ramp": "end_values"}


def pad(write: Any, x: str, *, width: tuple, value: Any, mode: str, of: Any) -> str:
    """np.pad; a copy for a 0-d array, which np.pad refuses."""
    if not width:
        return f"np.array({x})"
    # token, not ==: 0.0 and 0 are equal, but 0.0 must be written
    more = {} if token(value) == token(0) else {_PAD_VALUES[mode]: value}
    modes = {} if mode == "constant" else {"mode": mode}
    name = "reflect_type" if type(of) is str else "stat_length"
    return write.call(
        "np.pad", x, write.literal(width), **modes, **more, **({} if of is None else {name: of})
    )


def einsum(write: Any, *arrays: str, subscripts: str, optimize: Any) -> str:
    """np.einsum, with the subscripts before the arrays."""
    return write.numpy_call(repr(subscripts), *arrays, optimize=optimize)


# ---- indices ----


def item_text(write: Any, item: Any, arrays: tuple[str, ...]) -> str:
    """The text of an index, without its brackets; ``arrays`` are its index arrays."""
    rest = iter(arrays)
    if type(item) is not tuple:
        return _entry_text(write, item, rest)
    return ", ".join([_entry_text(write, entry, rest) for entry in item]) or "()"


def _entry_text(write, entry, rest) -> str:
    """The text of one entry of an index."""
    if type(entry) is Here:
        return next(rest)
    if type(entry) is not slice:
        return write.literal(entry)
    start, stop, step = ("" if n is None else str(n) for n in (entry.start, entry.stop, entry.step))
    return f"{start}:{stop}:{step}" if step else f"{start}:{stop}"


def index(write: Any, x: str, *arrays: str, item: Any) -> str:
    """``x[item]``."""
    aval = write.type(0)
    if aval is not None and aval.weak:
        x = f"np.asarray({x})"
    return f"{x}[{item_text(write, item, arrays)}]"


def index_set(write: Any, x: str, new: str, *arrays: str, item: Any) -> None:
    """A copy, then an assignment to a part of it."""
    out = write.result()
    write.line(f"{out} = np.array({x})")
    write.line(f"{out}[{item_text(write, item, arrays)}] = {new}")


def index_add(write: Any, x: str, new: str, *arrays: str, item: Any) -> None:
    """A copy, then an addition to a part of it; repeated indices accumulate."""
    out = write.result()
    write.line(f"{out} = np.array({x})")
    _add_at(write, out, item, 1, arrays, write.type(0))


def _add_at(write, out: str, item, position: int, arrays: tuple[str, ...], aval) -> None:
    """Write the addition of the operand at ``position`` to a part of ``out``, of type ``aval``."""
    new, place = write.operands[position], item_text(write, item, arrays)
    entries = item if type(item) is tuple else (item,)
    if any(type(entry) is Here and entry.count is None for entry in entries):
        if any(type(entry) is slice for entry in entries):
            place = f"np.s_[{place}]"
        elif len(entries) > 1:
            place = f"({place})"
        write.line(f"np.add.at({out}, {place}, {new})")
        return
    added = write.type(position)
    # impl casts the operand; += alone raises for floats into integers
    alike = aval is not None and added is not None and aval.dtype == added.dtype
    new = new if alike and write.is_array(position) else f"np.asarray({new}).astype({out}.dtype)"
    write.line(f"{out}[{place}] += {new}")


def assemble(write: Any, *operands: str, items: tuple, shape: tuple | None) -> None:
    """Zeros, to which each part is added in place."""
    at = sizes = 0 if is_static_shape(shape) else 1
    parts = []
    for item in items:
        count = sum(type(e) is Here for e in (item if type(item) is tuple else (item,)))
        parts.append((item, at, operands[at + 1 : at + 1 + count]))
        at += 1 + count
    out, aval = write.result(), write.bind.binders[0].type
    dtype_text = aval and write.literal(aval.dtype)
    dtype = dtype_text or f"np.result_type({', '.join([operands[at] for _, at, _ in parts])})"
    write.line(f"{out} = np.zeros({shape_text(write, operands[:sizes], shape)}, {dtype})")
    for item, position, arrays in parts:
        _add_at(write, out, item, position, arrays, aval)

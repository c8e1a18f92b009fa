"""From NumPy's calls to records: the tables are derived from the ``numpy`` field of every ``Primitive``."""

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.errors import LetirError, MissingRule, TraceError
from letir.ops.sizes import ones_like, zeros_like
from letir.tracing.places import user_place

REDUCTIONS = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_and: "all",
    np.logical_or: "any",
}
_table: dict = {}  # {callable: (record, prepare)}, derived from the records
_derived_from = [0]  # how many records the table was derived from


def recorder_of(function) -> tuple | None:
    """(record, prepare) of a NumPy callable; None if none records it."""
    found = _table.get(function)
    if found is None and _derived_from[0] != len(PRIMITIVES):
        _table.update((f, (op, prepare)) for op in PRIMITIVES.values() for f, prepare in op.numpy.items())
        _derived_from[0] = len(PRIMITIVES)
        return _table.get(function)
    return found


def call_ufunc(tracer, ufunc: np.ufunc, method: str, inputs: tuple, kwargs: dict):
    """What ``ufunc`` (or one of its methods) on traced values records."""
    found = recorder_of(ufunc)
    if method == "__call__" and not kwargs and found is not None:
        return tracer.emitter.apply(found[0], inputs)
    if found is None:
        raise unsupported(ufunc)
    out = kwargs.pop("out", None)
    if method == "reduce" and ufunc in REDUCTIONS:
        result = np_reduce(ufunc, *inputs, **kwargs)
    elif method == "accumulate" and ufunc is np.add:
        result = PRIMITIVES["cumsum"](inputs[0], *inputs[1:2] or (0,), **kwargs)
    elif method == "at" and ufunc is np.add and isinstance(inputs[0], Value):
        return inputs[0].replace(inputs[0].at[inputs[1]].add(inputs[2]))
    elif method == "__call__":
        result = converted(ufunc, found[0], inputs, **kwargs)
    else:
        raise unsupported(ufunc, f"numpy.{ufunc.__name__}.{method}")
    return result if out is None else written(result, out[0] if isinstance(out, tuple) else out)


def np_reduce(ufunc, array, axis=0, dtype=None, **kwargs):
    """``ufunc.reduce``, whose axis is 0 by default."""
    given = {name: value for name, value in kwargs.items() if value is not np._NoValue}
    return PRIMITIVES[REDUCTIONS[ufunc]](array, axis=axis, **given, **({} if dtype is None else {"dtype": dtype}))


def converted(ufunc, op: Primitive, inputs: tuple, dtype=None, where=True, casting="same_kind", order="K", subok=True):
    """A ufunc's call with keywords: ``dtype`` converts the operands first."""
    if where is not True:
        raise TraceError(
            f"numpy.{ufunc.__name__}(..., where=mask) leaves elements without a value and is not recorded\n"
            f"  at {user_place(3)[0]}\n  write numpy.where(mask, numpy.{ufunc.__name__}(...), other)"
        )
    if dtype is not None:
        inputs = tuple([x.astype(dtype) if hasattr(x, "astype") else np.dtype(dtype).type(x) for x in inputs])
    emitter = next(x.emitter for x in inputs if isinstance(x, Value))
    return emitter.apply(op, inputs)


def written(result, out):
    """``result`` in the place of ``out``, which must be a traced value itself."""
    if not hasattr(out, "replace"):
        raise into_ordinary_array()
    return out.replace(result)


def into_ordinary_array() -> TraceError:
    """The error for writing a traced value into an ordinary array."""
    return TraceError(
        f"a traced value cannot be written into an ordinary array: its record would be lost\n  at {user_place(3)[0]}\n"
        "  make the array with letir.numpy.zeros / empty_like and write with buffer = buffer.at[i].set(x)"
    )


def unsupported(function, name: str | None = None) -> MissingRule:
    """The error for a NumPy callable that no record takes; it says how to add one."""
    module = (getattr(function, "__module__", None) or "numpy").replace("numpy._core", "numpy")
    name = name or f"{module if module.startswith('numpy') else 'numpy'}.{function.__name__}"
    return MissingRule(
        f"{name} on traced values is not recorded\n  at {user_place(3)[0]}\n"
        "  write it with functions that are (docs/operations.md lists them), or add it:\n"
        f"  letir.primitive('package.{function.__name__}', impl, aval, vjp=..., numpy=({name},)), or call it as it is\n"
        "  without a derivative: letir.opaque(function, aval)"
    )


def call_function(tracer, func, args: tuple, kwargs: dict):
    """What a NumPy function on traced values records."""
    found = recorder_of(func)
    if found is None:
        plain = PLAIN.get(func)
        if plain is None:
            raise unsupported(func)
        return plain(*args, **kwargs)
    op, prepare = found
    out = kwargs.pop("out", None) if "out" in kwargs else None
    try:
        operands, attrs = prepare(*args, **kwargs) if prepare else (args, kwargs)
    except TypeError as error:
        if isinstance(error, LetirError):
            raise
        raise TypeError(f"numpy.{func.__name__} is recorded without some of its arguments: {error}") from None
    emitter = next((x.emitter for x in operands if isinstance(x, Value)), tracer.emitter)
    result = emitter.apply(op, operands, op.complete(attrs))
    if op.name == "split":  # the one family of NumPy's that returns a list
        return list(result)
    return result if out is None else written(result, out)


# ---- functions that say something of a traced value, or make arrays like it ----


def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """np.full_like: NumPy's own would copy into an ordinary array."""
    if not isinstance(a, Value):
        raise into_ordinary_array()
    dtype, shape = np.dtype(dtype or a.dtype), a.shape if shape is None else shape
    operands, attrs = PRIMITIVES["full"].prepare(shape, fill_value, dtype)
    return a.emitter.apply(PRIMITIVES["full"], operands, PRIMITIVES["full"].complete(attrs))


def like(make):
    """np.zeros_like and np.ones_like."""

    def made(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
        if shape is not None:
            return full_like(a, 0 if make is zeros_like else 1, dtype, shape=shape)
        return make(a) if dtype is None else make(a).astype(dtype)

    return made


def copyto(dst, src, casting="same_kind", where=True):
    """np.copyto onto a traced value changes it in place; onto an ordinary array it is refused."""
    if not isinstance(dst, Value):
        raise into_ordinary_array()
    new = PRIMITIVES["broadcast_to"](src, dst.shape) if isinstance(src, Value) else dst * 0 + src
    dst.replace(new if where is True else PRIMITIVES["where"](where, new, dst))


PLAIN = {
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
    np.ravel: lambda a, order="C": PRIMITIVES["reshape"](a, -1, order),
    np.zeros_like: like(zeros_like),
    np.ones_like: like(ones_like),
    np.empty_like: like(zeros_like),
    np.full_like: full_like,
    np.copyto: copyto,
    np.iscomplexobj: lambda x: x.dtype.kind == "c",
    np.isrealobj: lambda x: x.dtype.kind != "c",
    np.result_type: lambda *xs: np.result_type(*[x.dtype if isinstance(x, Value) else x for x in xs]),
    np.can_cast: lambda x, to, casting="safe": np.can_cast(x.dtype, to, casting),
    np.array_repr: lambda x, *args, **kwargs: repr(x),
    np.array_str: lambda x, *args, **kwargs: repr(x),
}

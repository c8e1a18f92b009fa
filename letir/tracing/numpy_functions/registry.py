"""``PLAIN``: NumPy functions without a record of their own, and their implementations.

They query a traced value, make arrays like it, or combine other operations. The modules in
``LOADED_ON_USE`` are loaded when one of their functions is called.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from letir.ast import LATE_BOUND, load_module
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.errors import DTypeError, TraceError
from letir.ops.define.records import promotion_type
from letir.ops.shape.shape_and_creation import as_mask, shape_from_call
from letir.tracing.mutation.memory_order import ordered_like, ravel_in_memory_order
from letir.tracing.numpy_functions.function_index import FUNCTIONS
from letir.tracing.numpy_functions.in_place import WRITES, refuse_scalar
from letir.tracing.operands import Casting, stack_traced
from letir.tracing.refusals import mark_outside_state, note_refusal
from letir.tracing.source_locations import at_user

# functions that call a user's function, which may compute with traced values
CALLING_BACK = frozenset([np.apply_along_axis, np.apply_over_axes])


def _filled_like(name: str):
    """np.zeros_like and np.ones_like, by the record ``name``."""
    op = PRIMITIVES[name]

    def made(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
        # `a` itself as the shape: symbolic sizes stay symbolic
        like_this = a if shape is None else shape_from_call(shape)
        operands, attrs = op.prepare(like_this, dtype or a.dtype)
        return ordered_like(a.emitter.apply(op, operands, op.complete(attrs)), a, order)

    return made


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """np.full_like of a traced value."""
    op = PRIMITIVES["full"]
    operands, attrs = op.prepare(
        a if shape is None else shape_from_call(shape), stack_traced(fill_value), dtype or a.dtype
    )
    return ordered_like(a.emitter.apply(op, operands, op.complete(attrs)), a, order)


def result_type(*operands: Any) -> np.dtype:
    """np.result_type, in which traced Python numbers are weak."""
    avals: list[Any] = [promotion_type(x.type) if isinstance(x, Value) else x for x in operands]
    # type(...): the dtype float64 equals the class float
    weak = [type(kind) is type and kind in (int, float, complex) for kind in avals]
    return np.result_type(*[k(0) if w else k for k, w in zip(avals, weak, strict=True)])


def copyto(dst: Any, src: Any, casting: Casting = "same_kind", where: Any = True) -> None:
    """np.copyto: changes a traced value in place; refused for an ordinary array."""
    if not isinstance(dst, Value):
        raise write_into_ordinary_array_error()
    refuse_scalar("copyto", dst)
    kind: Any = promotion_type(src.type) if isinstance(src, Value) else promote_operand(src)
    # np.can_cast takes no Python numbers since NumPy 2:
    # https://numpy.org/neps/nep-0050-scalar-promotion.html
    dtype = kind if isinstance(kind, np.dtype) else np.result_type(dst.dtype, kind(0))
    if not np.can_cast(dtype, dst.dtype, casting):
        raise DTypeError(
            f"numpy.copyto: cannot cast {dtype} to {dst.dtype} with "
            f"casting={casting!r}{at_user()}\n"
            "  write casting='unsafe' if the loss is intended"
        )
    new = dst.at[...].set(stack_traced(src))
    dst.replace(new if where is True else PRIMITIVES["where"](as_mask(where), new, dst))


def promote_operand(x: Any) -> Any:
    """An operand that is not traced, in the form for NumPy's promotion."""
    return type(x) if type(x) in (int, float, complex) else np.asarray(x).dtype


def write_into_ordinary_array_error() -> TraceError:
    """The error for writing a traced value into an ordinary array."""
    error = TraceError(
        "a traced value cannot be written into an ordinary array: it would not be recorded"
        f"{at_user()}\n  write into an array that the traced function makes: "
        "numpy.zeros, numpy.array(a) for a copy of a,\n"
        "  or make the array an argument"
    )
    LATE_BOUND["note_refused_write"](str(error))
    return note_refusal(mark_outside_state(error))


# Loaded on use, because most traces need none of these modules. Each has a table FUNCTIONS.
LOADED_ON_USE = (
    *("elementwise_functions", "join_split_rotate", "linalg_fft", "polynomial_functions"),
    *("select_and_grid", "statistics", "value_dependent_shapes"),
)


def _as_text(function: Callable[..., str]) -> Callable[..., str]:
    """The implementation of a function that formats an array as a string."""
    return lambda *args, **options: LATE_BOUND["text_by_function"](function, *args, **options)


class _Implementations(dict):
    """A dict that loads a module of ``LOADED_ON_USE`` when one of its functions is looked up."""

    def __contains__(self, function):
        if not super().__contains__(function):
            _load_module_of(getattr(function, "__name__", ""))
        return super().__contains__(function)

    def get(self, function, default=None):
        """The implementation of a NumPy function, or the default."""
        return super().get(function, default) if function in self else default

    def __iter__(self):
        for module in LOADED_ON_USE:
            _load_module(module)
        return super().__iter__()


@functools.cache  # called at every failed look-up
def _load_module_of(function_name: str) -> None:
    for module, names in FUNCTIONS.items():
        if function_name in names.split():
            _load_module(module)


def _load_module(name: str) -> None:
    module = load_module(f"letir.tracing.numpy_functions.{name}")
    for function, spelling in module.FUNCTIONS.items():
        PLAIN.setdefault(function, spelling)


def _size_along(a: Any, axis: Any = None) -> Any:
    """np.size: the number of elements along an axis, or along several."""
    if axis is None:
        return a.size
    axes = normalize_axis_tuple(axis, a.ndim) if isinstance(axis, tuple) else (axis,)
    return functools.reduce(operator.mul, [a.shape[each] for each in axes], 1)


# Computed from types where possible: nothing is recorded, and no guard is needed.
PLAIN = _Implementations(
    {
        **WRITES,
        np.shape: lambda a: a.shape,
        np.ndim: lambda a: a.ndim,
        np.size: _size_along,
        np.ravel: ravel_in_memory_order,
        np.zeros_like: _filled_like("zeros"),
        np.ones_like: _filled_like("ones"),
        np.empty_like: _filled_like("zeros"),
        np.full_like: full_like,
        np.copyto: copyto,
        np.iscomplexobj: lambda x: x.dtype.kind == "c",
        np.isrealobj: lambda x: x.dtype.kind != "c",
        np.result_type: result_type,
        np.can_cast: lambda x, to, casting="safe": np.can_cast(x.dtype, to, casting),
        np.array_repr: _as_text(np.array_repr),
        np.array_str: _as_text(np.array_str),
        np.array2string: _as_text(np.array2string),
    }
)

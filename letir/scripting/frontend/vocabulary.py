"""The vocabulary of scripts: letir's operations, NumPy's functions, queries such as ``shape``.

``meaning_of_word`` looks up a word. It is the only way from a text to executable code, so a text
can call nothing else.
"""

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES, Primitive, record_of
from letir.ast.record_fields import NO_OPERATOR, PythonOperator
from letir.ast.sizes.size import DTYPE_NAMES
from letir.ast.symbolic_sizes import is_static_shape
from letir.ops import load_all
from letir.ops.shape.shape_and_creation import Sizes, ones_like, size, zeros_like
from letir.tracing.numpy_protocols.dispatch import recorder_of
from letir.tracing.numpy_protocols.rule_calls import call_prepared

# replacements for functions of Python that compute something else than the operations
PYTHON_FUNCTIONS = {
    "sum": "write x + y, or np.sum(x, axis=...)",
    "max": "write np.maximum(x, y), or np.max(x, axis=...)",
    "min": "write np.minimum(x, y), or np.min(x, axis=...)",
    "round": "write np.round(x), which gives a floating number",
}
OPERATORS = {
    "Add": "add",
    "Sub": "sub",
    "Mult": "mul",
    "Div": "div",
    "FloorDiv": "floor_divide",
    "Mod": "remainder",
    "Pow": "power",
    "MatMult": "matmul",
    "BitAnd": "bitwise_and",
    "BitOr": "bitwise_or",
    "BitXor": "bitwise_xor",
    "USub": "neg",
    "UAdd": "positive",
    "Invert": "invert",
    "Eq": "equal",
    "NotEq": "not_equal",
    "Lt": "less",
    "LtE": "less_equal",
    "Gt": "greater",
    "GtE": "greater_equal",
}
# names of letir's operations in other libraries
_ALIASES = {
    "expand": "broadcast_to",
    "_grad_sum_to_size": "sum_to_size",
    "permute": "transpose",
    "view": "reshape",
    "pow": "power",
    "mm": "matmul",
    "bmm": "matmul",
    "unsqueeze": "expand_dims",
    "astype": "cast",
    "to": "cast",
    "cat": "concatenate",
    "t": "transpose",
    "T": "transpose",
    "dim": "ndim",
    "numel": "count",
    "shape": "size",
    "detach": "stop_gradient",
}
# PyTorch's names for keyword arguments such as axis
KEYWORDS = {"dim": "axis", "keepdim": "keepdims", "dims": "axis"}
MODULES = frozenset(["np", "numpy", "torch", "lt", "letir", "lnp"])
CONSTANTS = {
    "inf": float("inf"),
    "nan": float("nan"),
    "pi": np.pi,
    "e": np.e,
    "newaxis": None,
    **{name: np.dtype(name) for name in sorted(DTYPE_NAMES)},
}
PYTHON_DTYPES = {"float": np.dtype(float), "int": np.dtype(int), "complex": np.dtype(complex)}
PYTHON_DTYPES["bool"] = np.dtype(bool)


@frozen
class Meaning:
    """The meaning of a word: ``run(*args, **keywords)`` on Values and static values.

    ``name``: the printed name. ``python``: as in `Primitive`, for static values alone.
    """

    name: str
    run: Callable
    signature: inspect.Signature | None
    python: PythonOperator = NO_OPERATOR
    is_question: bool = False  # answered while the script is read
    takes_shape: bool = False  # both as in `Primitive`
    spreads: bool = False


# ---- questions: facts about a value that are known while the script is read ----


def _shape_of(x, axis=None):
    """The shape: a tuple if it is known, else an array; or one size of it."""
    if not isinstance(x, Value):
        shape = ()
    else:
        shape = x.shape if x.type is not None and is_static_shape(x.shape) else Sizes.from_value(x)
    return shape if axis is None else shape[axis]


def _rank_of(x) -> int:
    """The number of axes."""
    return x.ndim if isinstance(x, Value) else 0


def _count_of(x):
    """The number of elements: an int if it is known, else an integer array."""
    shape = _shape_of(x)
    return PRIMITIVES["prod"](size(x)) if type(shape) is Sizes else math.prod(shape)


def _dtype_of(x) -> np.dtype:
    """The dtype."""
    return x.dtype if isinstance(x, Value) else np.dtype(type(x))


def _length_of(x) -> int:
    """The size of the first axis, or the number of parts of a tuple."""
    return len(x) if isinstance(x, tuple) else _shape_of(x, 0)


def _is_none(x) -> bool:
    """Whether an optional argument is missing."""
    return x is None


def _filled_like(make: Callable, number: float) -> Callable:
    """zeros_like or ones_like, of a Value or a number."""
    return lambda x: make(x) if isinstance(x, Value) else type(x)(number)


QUESTIONS: dict[str, Callable[..., Any]] = {
    "size": _shape_of,
    "ndim": _rank_of,
    "count": _count_of,
    "dtype": _dtype_of,
    "len": _length_of,
    "is_none": _is_none,
    "zeros_like": _filled_like(zeros_like, 0),
    "ones_like": _filled_like(ones_like, 1),
    "expand_as": lambda x, other: PRIMITIVES["broadcast_to"](x, _shape_of(other)),
    "reshape_as": lambda x, other: PRIMITIVES["reshape"](x, _shape_of(other)),
    "type_as": lambda x, other: PRIMITIVES["cast"](x, _dtype_of(other)),
}


# ---- words ----


@functools.lru_cache(maxsize=1 << 12)
def _look_up_word(word: str, records: int) -> Meaning | None:  # records: a key for the cache
    name = _ALIASES.get(word, word)
    if name in QUESTIONS:
        signature = inspect.signature(QUESTIONS[name])
        return Meaning(name, QUESTIONS[name], signature, is_question=True)
    record = record_of(name)
    if record is not None:
        if not record.for_scripts:
            return None
        return _meaning_of(name, record)
    return _numpy_function(name)


def meaning_of_word(word: str) -> Meaning | None:
    """The meaning of a word, None if it has none.

    >>> [meaning_of_word(word) is None for word in ("permute", "load")]
    [False, True]
    """
    result = _look_up_word(word, len(PRIMITIVES))
    if result is not None and type(result.run) is Primitive and result.run.is_user_defined:
        record = PRIMITIVES.get(result.name)  # users may redefine their operations
        return Meaning(result.name, record, _signature_of(record))
    return result


def _meaning_of(name: str, record: Primitive) -> Meaning:
    """The meaning of the name of an operation."""
    return Meaning(
        name,
        record,
        _signature_of(record),
        record.python,
        takes_shape=record.takes_shape,
        spreads=record.spreads,
    )


def _numpy_function(name: str) -> Meaning | None:
    """The NumPy function of this dotted name, if letir records it."""
    entry = _numpy_record(name)
    if entry is None:
        return None
    record, prepare = entry
    if prepare == record.prepare:
        return _meaning_of(record.name, record)

    def run(*args, **keywords):
        return call_prepared(record, prepare, args, keywords)

    return Meaning(name, run, inspect.signature(prepare))


def _numpy_record(name: str) -> tuple | None:
    """(record, prepare) of the NumPy function of this dotted name; None if nothing records it."""
    function = np
    for word in name.split("."):
        # classes and private names cannot be reached
        if not inspect.ismodule(function) or word.startswith("_"):
            return None
        # not getattr: a module's __getattr__ may import and run
        function = vars(function).get(word)
    try:
        return recorder_of(function)
    except TypeError:  # not hashable
        return None


def _signature_of(record: Primitive) -> inspect.Signature | None:
    """The call signature of an operation, None if it is unknown."""
    if record.prepare is not None:
        return inspect.signature(record.prepare)
    if record.decompose is not None:
        return inspect.signature(record.decompose)
    if record.elementwise and record.numpy:
        ufunc = next(iter(record.numpy))
        names = [f"x{i}" for i in range(ufunc.nin)] if isinstance(ufunc, np.ufunc) else ["x"]
        kind = inspect.Parameter.POSITIONAL_ONLY
        return inspect.Signature([inspect.Parameter(name, kind) for name in names])
    return None


def known_words() -> list[str]:
    """All known words, for messages."""
    load_all()
    own = [name for name, record in PRIMITIVES.items() if record.for_scripts]
    return sorted({*own, *_ALIASES, *QUESTIONS})

"""Operations whose results depend on the values found: nonzero, unique, first_places, isin,
bincount. The length of the results of nonzero and unique depends on the values of the operand. The
length at recording time is the attribute ``count``; the length at run time is the last result, and
a guard after the bind compares the two. So such a program holds for one length.
"""

from functools import partial
from typing import Any, NoReturn

import numpy as np

from letir.ast.builder import Value
from letir.ast.types import ArrayType
from letir.errors import GuardError, TraceError
from letir.ops.define.batch_rules import composite_batch
from letir.ops.define.records import DISCRETE, composite, decomposition, define, unbroadcast
from letir.ops.elementwise.comparisons_and_where import logical_not
from letir.ops.indexing.basic import assemble, index, index_add
from letir.ops.indexing.index_expressions import item_with_places
from letir.ops.reductions.reductions import any_
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.shape_and_creation import zeros
from letir.ops.shape.transpose import normalize_axes

_INTEGER = np.dtype(np.int64)
_NONZERO = """
def nonzero(x):
    \"\"\"np.nonzero, and how many there are.\"\"\"
    found = np.nonzero(x)
    return *found, np.int64(found[0].size)
"""
_UNIQUE = """
def unique(x, axis=None, **wanted):
    \"\"\"The results of np.unique, and how many values there are.\"\"\"
    found = np.unique(x, axis=axis, **wanted)
    found = found if type(found) is tuple else (found,)
    return *found, np.int64(found[0].shape[axis or 0])
"""
_FIRST_PLACES = """
def first_places(x, values):
    \"\"\"Where the values stand first in x.\"\"\"
    known, places = np.unique(x, return_index=True)
    return places[np.searchsorted(known, values)]
"""


def _refuse_batch(args, axes, **attrs) -> NoReturn:
    """Raise TraceError: the results of the examples would differ in length."""
    raise TraceError(
        "vmap: the length of a result depends on a mapped value, so that no batch can hold it\n"
        "  use the mask itself, not a selection: numpy.where(mask, x, 0), (x * mask).sum()"
    )


def _checked_length(xp, length: int, count: int | None) -> Any:
    """The length as a 0-d array. Raises GuardError if it differs from ``count``, so that results
    have the shapes of their types even in a program without the guard that was recorded.
    """
    if count not in (None, length):
        raise GuardError(
            f"the program was recorded where this length was {count}, now it is {length}\n"
            "  trace again with these arguments, or use a mask: numpy.where(mask, x, 0)"
        )
    return xp.asarray(length, _INTEGER)[()]


# ---- nonzero ----


def _nonzero_impl(xp, x, *, count, rank):
    """The index arrays of np.nonzero, and their length."""
    places = xp.nonzero(x)
    return *places, _checked_length(xp, places[0].size, count)


nonzero = define(
    "nonzero",
    _nonzero_impl,
    lambda x, *, count, rank: (*[ArrayType(_INTEGER, (count,))] * rank, ArrayType(_INTEGER)),
    vjp=DISCRETE,
    jvp=DISCRETE,
    batch=_refuse_batch,
    results=lambda *, count, rank: rank + 1,
    source=lambda write, x, *, count, rank: f"{write.helper(_NONZERO)}({x})",
    memory="may_alias",
    no_float_errors=True,
)

# ---- unique ----


def _optional_results(return_index, return_inverse, return_counts, **_) -> list[str]:
    """The names of the results between the unique values and the length."""
    flags = {"index": return_index, "inverse": return_inverse, "counts": return_counts}
    return [name for name, is_wanted in flags.items() if is_wanted]


def _unique_attributes(
    *,
    count,
    return_index=False,
    return_inverse=False,
    return_counts=False,
    axis=None,
    equal_nan=True,
    sorted=True,
):
    """The attributes of unique: NumPy's keywords, and the number of unique values."""


def _unique_keywords(count, sorted, **attrs) -> dict:
    """The keywords of np.unique; ``sorted`` only if it is not the default, since old NumPy lacks
    it.
    """
    return attrs if sorted else attrs | {"sorted": False}


def _takes_sorted(xp) -> bool:
    """Whether the module's ``unique`` has the keyword ``sorted``, as NumPy since 2.3. Others always
    sort.
    """
    function = getattr(xp.unique, "__wrapped__", xp.unique)
    return "sorted" in (getattr(function, "__kwdefaults__", None) or {})


def _unique_impl(xp, x, **attrs):
    """The results of np.unique, and the number of unique values."""
    is_sorted = attrs["sorted"] or not _takes_sorted(xp)
    results = xp.unique(x, **_unique_keywords(**{**attrs, "sorted": is_sorted}))
    results = results if type(results) is tuple else (results,)
    return *results, _checked_length(xp, results[0].shape[attrs["axis"] or 0], attrs["count"])


def _unique_aval(x, *, count, axis, **attrs):
    """``count`` values along the axis. The inverse has the shape of ``x``, or the length of the
    axis.
    """
    shape, inverse = (count,), x.shape
    if axis is not None:
        (at,) = normalize_axes(axis, x.ndim)
        shape, inverse = (*x.shape[:at], count, *x.shape[at + 1 :]), (x.shape[at],)
    sizes = {"index": (count,), "inverse": inverse, "counts": (count,)}
    others = [ArrayType(_INTEGER, sizes[name]) for name in _optional_results(**attrs)]
    return ArrayType(x.dtype, shape), *others, ArrayType(_INTEGER)


def _first_occurrences(x: Value, y: Value, *, count, axis, **attrs) -> tuple[Value, tuple]:
    """(``x``, flattened if there is no axis; the index of the first occurrence of each value of
    ``y`` in it).
    """
    if axis is None:
        x = reshape(x, -1)
        return x, (first_places(x, y),)
    options = {"count": count, "axis": axis, "equal_nan": attrs["equal_nan"], "return_index": True}
    first = x.emitter.apply(unique, (x,), unique.complete(options))[1]
    return x, (*[slice(None)] * normalize_axes(axis, x.ndim)[0], first)


def _unique_vjp(cts, outs, x, **attrs):
    """The cotangent of each unique value, at its first occurrence."""
    if cts[0] is None:
        return (None,)
    flat, places = _first_occurrences(x, outs[0], **attrs)
    arrays, item = item_with_places(places)
    return (unbroadcast(reshape(assemble(flat, ((item, cts[0], arrays),)), x), x),)


def _unique_jvp(tangents, outs, x, **attrs):
    """The tangents at the first occurrences of the unique values."""
    _, places = _first_occurrences(x, outs[0], **attrs)
    t = tangents[0] if attrs["axis"] is not None else reshape(tangents[0], -1)
    return index(t, places), *[None] * (len(outs) - 1)


unique = define(
    "unique",
    _unique_impl,
    _unique_aval,
    vjp=_unique_vjp,
    jvp=_unique_jvp,
    batch=_refuse_batch,
    attributes=_unique_attributes,
    results=lambda **attrs: 2 + len(_optional_results(**attrs)),
    source=lambda write, x, **attrs: write.call(
        write.helper(_UNIQUE), x, **_unique_keywords(**attrs)
    ),
    no_float_errors=True,
)


def _first_places_impl(xp, x, values):
    """The index in ``x`` of the first occurrence of each of ``values``."""
    sorted_values, places = xp.unique(x, return_index=True)
    return places[xp.searchsorted(sorted_values, values)]


first_places = define(
    "first_places",
    _first_places_impl,
    lambda x, values: ArrayType(_INTEGER, values.shape),
    vjp=DISCRETE,
    jvp=DISCRETE,
    batch=_refuse_batch,
    source=lambda write, x, values: f"{write.helper(_FIRST_PLACES)}({x}, {values})",
)

# ---- isin and bincount ----


def _isin_decompose(element, test_elements, *, invert=False):
    """Every element compared with every test element. NumPy, which computes it, sorts instead."""
    element = reshape(element, (*element.shape, 1))
    result = any_(element == reshape(test_elements, -1), -1)
    return logical_not(result) if invert else result


isin = composite(
    "isin",
    _isin_decompose,
    impl=lambda xp, element, test_elements, *, invert=False: xp.isin(
        element, test_elements, invert=invert
    ),
    vjp=DISCRETE,
    jvp=DISCRETE,
    batch=composite_batch(partial(decomposition, _isin_decompose), False),
    prepare=lambda element, test_elements, assume_unique=False, invert=False, *, kind=None: (
        (element, test_elements),
        {"invert": bool(invert)},
    ),
    numpy=(np.isin,),
)


def _bincount_decompose(x, *weights, length):
    """Zeros with 1, or the weight, added at the index that each element gives."""
    dtype = np.dtype(np.float64) if weights else _INTEGER
    attrs = zeros.complete({"shape": (length,), "dtype": dtype})
    return index_add(x.emitter.apply(zeros, (), attrs), x, *(weights or (1,)))


bincount = composite(
    "bincount",
    _bincount_decompose,
    impl=lambda xp, x, *weights, length: xp.bincount(x, *weights, minlength=length),
    raises=True,
    no_float_errors=True,
    role="read_only_copied",
)

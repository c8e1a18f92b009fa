"""Random picks from arrays: ``random_permutation`` and ``random_choice``.

Both draw indices and take the elements there, so that derivatives flow to the picked elements.
"""

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import Primitive
from letir.ast.types import ArrayType
from letir.errors import DTypeError, ShapeError
from letir.ops.as_numpy import random
from letir.ops.control_flow.loop_over_examples import LoopOverExamples
from letir.ops.define.batch_rules import known_size
from letir.ops.define.records import DISCRETE, composite, define
from letir.ops.elementwise.casting import copy
from letir.ops.indexing.basic import index
from letir.ops.random.keys_and_draws import (
    NO_ONNX,
    as_key,
    check_key,
    key_generators,
    random_draw,
    stack_results,
)
from letir.ops.shape.shape_and_creation import as_size, shape_operands
from letir.ops.shape.transpose import normalize_axes


def _take_copy(x: Value, places: Value, axis: int) -> Value:
    """A copy of ``x`` at ``places`` along ``axis``; indexing with one place would give a view."""
    result = index(x, (*[slice(None)] * axis, places))
    return copy(result) if result.ndim == x.ndim - 1 > 0 else result


# ---- permutations ----


def _permutation_decompose(key, x, *, axis):
    """``x`` in the order of a random permutation."""
    n = known_size(x.shape[axis], "permutation")
    return _take_copy(x, random_draw(as_key(key), "permutation", (n,), np.int64), axis)


def _permutation_aval(key, x, *, axis):
    """The type of the array."""
    check_key(key)
    if key.ndim > 1:
        raise ShapeError(
            "permutation takes one key; use letir.vmap for a batch of them\n"
            "  letir.vmap(letir.random.permutation, (0, None))(keys, x)"
        )
    normalize_axes(as_size(axis), x.ndim)
    return x.with_shape(x.shape)


def _permutation_prepare(key, x, axis=0):
    """(operands, attributes): the key and the array; the axis, counted from the front."""
    x = x if hasattr(x, "dtype") else np.asarray(x)
    return (key, x), {"axis": normalize_axes(as_size(axis), len(x.shape))[0]}


random_permutation = composite(
    "random_permutation",
    _permutation_decompose,
    aval=_permutation_aval,
    prepare=_permutation_prepare,
    random=True,
    onnx=NO_ONNX,
)

# ---- choices ----


def _places_impl(xp, key, *p, n, shape, replace):
    """Indices below ``n``, drawn with the probabilities ``p``, if given."""
    results = []
    for generator in key_generators(key, xp):
        if replace and not p:
            places = generator.integers(0, n, shape)
        elif replace:
            total = xp.cumsum(p[0])
            places = xp.searchsorted(total, generator.random(shape) * total[-1], side="right")
        else:  # the order of exponential times with rates p is a weighted permutation
            times = generator.standard_exponential(n)
            order = xp.argsort(times / p[0] if p else times)
            count = 1
            for size in shape:
                count *= size
            places = order[:count].reshape(shape)
        results.append(xp.asarray(places).astype("int64", copy=False))
    out = stack_results(key, results, shape, "int64", xp)
    return out if out.shape else out[()]


def _places_aval(key, *p, n, shape, replace):
    """Integers in the shape asked for, for each key of a batch."""
    check_key(key)
    if p and p[0].shape != (n,):
        raise ShapeError(
            f"choice: p must have {n} probabilities, found {p[0]}\n"
            "  pass one probability for each element to choose from"
        )
    count = ArrayType(bool, shape).size
    if n < 1 and count:
        raise ShapeError(
            "choice: there are no elements to choose from\n"
            "  pass an array that is not empty, or an int from 1"
        )
    if not replace and count > n:
        raise ShapeError(
            f"choice: cannot choose {count} of {n} without replacement; pass replace=True\n"
            "  or choose fewer elements"
        )
    return ArrayType(np.int64, (*key.shape[:-1], *shape))


random_places: Primitive = define(
    "random_places",
    _places_impl,
    _places_aval,
    vjp=DISCRETE,
    jvp=DISCRETE,
    batch=LoopOverExamples(lambda: random_places),
    prepare=lambda key, n, shape=(), replace=True, p=None: (
        (key,) if p is None else (key, p),
        {"n": as_size(n), "shape": shape_operands(shape)[1], "replace": bool(replace)},
    ),
    random=True,
    onnx=NO_ONNX,
    source=random.random_places,
)


def _choice_decompose(key, x, *p, axis, shape, replace):
    """``x`` at random indices along ``axis``."""
    n = known_size(x.shape[axis], "choice")
    return _take_copy(x, random_places(as_key(key), n, shape, replace, *p), axis)


def _choice_aval(key, x, *p, axis, shape, replace):
    """The type of ``x`` with ``shape`` in the place of the axis."""
    _places_aval(key, *p, n=x.shape[axis], shape=shape, replace=replace)
    if key.ndim > 1:
        raise ShapeError(
            "choice takes one key; use letir.vmap for a batch of them\n"
            "  letir.vmap(letir.random.choice, (0, None))(keys, x)"
        )
    return x.with_shape((*x.shape[:axis], *shape, *x.shape[axis + 1 :]))


def _choice_prepare(key, a, shape=(), replace=True, p=None, axis=0):
    """(operands, attributes): key, array and probabilities; the axis, counted from the front."""
    a = a if hasattr(a, "dtype") else np.asarray(a)
    if not len(a.shape):
        raise DTypeError(
            "choice: pass an array, or an int for numbers below it\n"
            "  for example choice(key, 10, (3,))"
        )
    attrs = {
        "axis": normalize_axes(as_size(axis), len(a.shape))[0],
        "shape": shape_operands(shape)[1],
    }
    return (key, a) if p is None else (key, a, p), {**attrs, "replace": bool(replace)}


random_choice = composite(
    "random_choice",
    _choice_decompose,
    aval=_choice_aval,
    prepare=_choice_prepare,
    random=True,
    onnx=NO_ONNX,
)

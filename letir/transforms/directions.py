"""Tangents and cotangents that users give: of the types of the values that they belong to.

``call_along`` is the call of a transform that takes tangents.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast.builder import Value
from letir.ast.derivative_types import type_carries_derivative
from letir.ast.primitive import PRIMITIVES
from letir.ast.process_state import paused_gc
from letir.ast.pytrees import Static, Tree, flatten
from letir.ast.terms import Lambda
from letir.ast.types import ArrayType
from letir.errors import DTypeError, ShapeError
from letir.eval.arguments import fits_type, is_static
from letir.eval.array_modules import ARRAY_CLASSES, is_array, type_of
from letir.tracing.source_locations import at_user
from letir.transforms.program_call import (
    ProgramCall,
    arguments_of,
    is_row_of_arrays,
    kept_transform,
    record_call,
)
from letir.transforms.repeated_programs import Transformed, prepared_run, repeated_function


@frozen(eq=False)
class Directions:
    """The tangents of the parameters at the positions ``inputs``, which are all that have one.

    ``given``: the tangents as they were given; ``values``: converted to the parameters' types.
    """

    inputs: list[int]
    given: list
    values: list


def as_direction(value: Any, aval: ArrayType | None, role: str) -> Any:
    """A cotangent or tangent of type ``aval``. Raises ShapeError or DTypeError if it differs."""
    if not hasattr(value, "dtype"):  # a Python number takes the expected dtype
        try:
            value = np.asarray(value, None if aval is None else aval.dtype)[()]
        except (TypeError, ValueError, OverflowError):
            raise DTypeError(
                f"a {role} of type {aval} is expected, found {value!r}\n"
                "  pass an array of that type"
            ) from None
    found_type = value.type if hasattr(value, "emitter") else type_of(value)
    if aval is None or found_type is None:  # unknown types are checked by the operations
        return value
    if found_type is aval and not aval.weak:  # types are interned
        return value
    if (
        found_type.weak
        and aval.shape == ()
        and np.can_cast(found_type.dtype, aval.dtype, "same_kind")
    ):
        return PRIMITIVES["cast"](value, aval.dtype)  # traced, or of a variable
    # a symbolic size fits any number
    if fits_type(found_type, ArrayType(aval.dtype, aval.shape), {}):
        return value
    error = ShapeError if found_type.shape != aval.shape else DTypeError
    remedy = "give it the shape" if error is ShapeError else "convert it with .astype to the dtype"
    raise error(
        f"a {role} of type {ArrayType(aval.dtype, aval.shape)} is expected, found {found_type}\n"
        f"  {remedy} of the value that it belongs to"
    )


def entries_of(values: Any, function: str, name: str) -> tuple:
    """The tuple or list with one entry for each argument, as a tuple.

    Raises DTypeError for an array, which would be taken apart.
    """
    if type(values) is list or issubclass(type(values), tuple):
        return tuple(values)
    types_text = _found_type(values)
    raise DTypeError(
        f"{function}: the {name} are a tuple with an entry for each argument, found {types_text}"
        f"{at_user()}\n  write {function}(f, (x,), (v,)) for a function of one argument"
    )


def _found_type(values: Any) -> str:
    """An array or a traced value by its type, another object by the name of its class."""
    aval = getattr(values, "type", None) or (type_of(values) if is_array(values) else None)
    return str(aval) if isinstance(aval, ArrayType) else type(values).__name__


def tangent_of(result: Any, tangent: Any, xp: Any) -> Any:
    """``tangent``, or zeros like ``result`` if it is None; float zeros for integers."""
    if tangent is not None:
        return tangent
    if hasattr(result, "emitter"):
        return result * 0  # the shape of a traced value may be unknown
    dtype = result.dtype if hasattr(result, "dtype") and result.dtype.kind in "fc" else float
    return xp.zeros(np.shape(result), dtype)[()]


def directions_of(call: ProgramCall, primals: tuple, tangents: tuple, caller: str) -> Directions:
    """The directions of the floating primals. Raises if tangents do not fit.

    ``caller`` names the function that takes the tangents, in errors.
    """
    if len(primals) != len(tangents):
        raise ShapeError(
            f"{caller}: the number of primals is {len(primals)}, of tangents {len(tangents)}\n"
            "  pass one tangent for each primal"
        )
    tree = call.tree
    if ARRAY_CLASSES.issuperset(map(type, tangents)) and is_row_of_arrays(tree):
        positions, leaves = [*range(len(primals))], [*tangents]
    else:
        positions, _ = arguments_of(tree, tuple(range(len(primals))))
        leaves = tree.leaves_of((_fill_missing_tangents(tangents, primals), {}), caller)
    inputs, given, values = [], [], []
    for i, leaf in zip(positions, leaves, strict=True):
        aval = call.fn.params[i].type
        if leaf is _MISSING:
            continue
        if type_carries_derivative(aval):
            inputs.append(i)
            given.append(leaf)
            values.append(as_direction(leaf, aval, "tangent"))
        elif not isinstance(leaf, Value) and np.result_type(leaf).kind in "fc" and np.any(leaf):
            raise DTypeError(
                f"the tangent of a primal of type {aval}, which has no derivative, is not 0"
                f"{at_user()}\n  pass floats, 3.0 instead of 3, or None as its tangent"
            )
    return Directions(inputs, given, values)


class _Missing:
    """The type of ``_MISSING``, a tangent that was not given."""


_MISSING = _Missing()


def _fill_missing_tangents(tangents: tuple, primals: tuple) -> tuple:
    """The tangents with a tree of ``_MISSING`` for a primal whose tangent is None."""
    filled = []
    for tangent, primal in zip(tangents, primals, strict=True):
        if tangent is None:
            leaves, spec = flatten(primal)
            # None is not a leaf of a pytree, so it cannot stand for the tangent of an array
            leaves = [
                leaf if type(leaf) is Static or is_static(leaf) else _MISSING for leaf in leaves
            ]
            tangent = spec.unflatten(leaves)  # noqa: PLW2901
        filled.append(tangent)
    return tuple(filled)


def holds_functions(tree: Tree) -> bool:
    """Whether there are functions, or other objects without a text, among the arguments.

    Those among the tangents must then be the same objects.
    """
    return any(static.kept is not None for _, static in tree.statics)


def call_along(
    f: Callable,
    options: tuple | None,
    transform: Callable[..., Transformed],
    primals: tuple,
    tangents: tuple,
    caller: str,
) -> Any:
    """``call_transformed`` for a transform that takes tangents of the arguments as well.

    It is called as ``transform(call, inputs)``; ``caller``: the function that an error names.
    """
    if type(f) is Lambda:
        options, transform = None, kept_transform(f, options, transform)
    known = repeated_function(f, options)
    given = primals, tangents
    if known.calls and (results := known.results(given, {})) is not None:
        return results
    with paused_gc():
        record = partial(record_call, f, primals, {})
        keep = known.keeper(given, primals, {}, record)
        call = record()
        directions = directions_of(call, primals, tangents, caller)
        run = prepared_run(call, directions, options, transform, keep)
    return run()

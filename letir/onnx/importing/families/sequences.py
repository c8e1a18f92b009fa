"""Sequences and optionals: lists and None while a model is loaded; its program has neither."""

from typing import Any

import numpy as np

from letir.errors import ParseError, ShapeError
from letir.onnx.importing.values import as_array, axis_of, known_int, known_sizes, take_elements
from letir.tracing.tracer import Tracer

_MAX_PARTS = 10_000  # into which an array may be split


def _position(position: Any, count: int, most: int) -> int:
    """A position in a sequence, counted from the front."""
    result = known_int(position, "the position in a sequence")
    if not -count <= result <= most:
        raise ParseError(
            f"the position {result} is outside of a sequence of {count} elements\n"
            "  correct the position in the model"
        )
    return result + count if result < 0 else result


def _sequence(*values: Any) -> list:
    """SequenceConstruct: a sequence of these arrays."""
    return list(values)


def _empty_sequence(dtype: int = 1) -> list:
    """SequenceEmpty: a sequence without elements."""
    return []


def _insert_element(values: list, value: Any, position: Any = None) -> list:
    """SequenceInsert: a sequence with one more element, by default at the end."""
    at = len(values) if position is None else _position(position, len(values), len(values))
    return [*values[:at], value, *values[at:]]


def _erase_element(values: list, position: Any = None) -> list:
    """SequenceErase: a sequence without one element, by default the last."""
    at = _position(np.array(-1) if position is None else position, len(values), len(values) - 1)
    return [*values[:at], *values[at + 1 :]]


def _element(values: list, position: Any) -> Any:
    """SequenceAt: the element at a position.

    Arrays of one type are stacked if the position is computed when the program runs.
    """
    kinds = {(as_array(value).dtype, tuple(as_array(value).shape)) for value in values}
    if type(position) is Tracer and len(kinds) == 1:
        return take_elements(np.stack(list(map(as_array, values))), position.reshape(()), 0)
    return values[_position(position, len(values), len(values) - 1)]


def _sequence_length(values: list) -> np.ndarray:
    """SequenceLength: the number of elements."""
    return np.array(len(values), np.int64)


def _concatenate_sequence(values: list, axis: int, new_axis: int = 0) -> Any:
    """ConcatFromSequence: the elements joined, or stacked along a new axis."""
    arrays = list(map(as_array, values))
    return np.stack(arrays, axis=axis) if new_axis else np.concatenate(arrays, axis=axis)


def _split_to_sequence(x: Any, lengths: Any = None, axis: int = 0, keepdims: int = 1) -> list:
    """SplitToSequence: parts of an array, of given lengths or of one length."""
    axis = axis_of(axis, x.ndim)
    n = known_int([x.shape[axis]], "SplitToSequence: the size of the axis")
    if type(n) is int and n > _MAX_PARTS:
        raise ShapeError(
            f"SplitToSequence: an axis of {n} elements gives more than {_MAX_PARTS} parts\n"
            "  give the parts a length"
        )
    if lengths is None:
        parts = [1] * n
    elif lengths.ndim == 0:
        each = known_int(lengths, "SplitToSequence: the length")
        if each < 1:
            raise ShapeError(
                f"SplitToSequence: the length of the parts must be positive, found {each}\n"
                "  correct the input split"
            )
        parts = [min(each, n - start) for start in range(0, n, each)]
    else:
        parts = known_sizes(lengths, "SplitToSequence: the vector of lengths")
    result, start = [], 0
    for length in parts:
        part = x[(*[slice(None)] * axis, slice(start, start + length))]
        is_flat = lengths is None and not keepdims
        result.append(np.squeeze(part, axis) if is_flat else part)
        start += length
    return result


def _optional(value: Any = None, type: Any = None) -> Any:
    """Optional: a value, or none."""
    return value


def _has_element(value: Any = None) -> np.ndarray:
    """OptionalHasElement: whether an optional has a value."""
    return np.array(value is not None)


def _get_element(value: Any) -> Any:
    """OptionalGetElement: the value of an optional."""
    if value is None:
        raise ParseError(
            "OptionalGetElement: the optional has no value\n"
            "  test it with OptionalHasElement, or pass an input"
        )
    return value


OPERATORS: dict[str, Any] = {
    **{"SequenceConstruct": _sequence, "SequenceEmpty": _empty_sequence},
    **{"SequenceInsert": _insert_element, "SequenceErase": _erase_element, "SequenceAt": _element},
    **{"SequenceLength": _sequence_length, "ConcatFromSequence": _concatenate_sequence},
    **{"SplitToSequence": _split_to_sequence, "Optional": _optional},
    **{"OptionalHasElement": _has_element, "OptionalGetElement": _get_element},
}

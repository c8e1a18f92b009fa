"""The inputs of a model: their declared types, and example inputs checked against them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from letir.ast.types import ShapeDtype
from letir.errors import DTypeError, ParseError
from letir.eval.array_modules import is_array, type_of
from letir.onnx.importing.graphs import readable_name, refuse_huge
from letir.onnx.importing.tensors import dtype_of
from letir.onnx.package import onnx_package

_MAX_ELEMENTS_OF_A_SEQUENCE = 10_000


@frozen
class InputType:
    """The declared type of an input: an array, or a sequence of arrays; either may be optional."""

    name: str
    tensor: Any  # the TypeProto.Tensor of the array, or of each element of the sequence
    is_sequence: bool
    is_optional: bool

    @classmethod
    def from_proto(cls, declared: Any) -> "InputType":
        """The type in a ValueInfoProto. Raises DTypeError for other types, such as maps."""
        kind, kinds = declared.type, []
        while kind.WhichOneof("value") in ("optional_type", "sequence_type"):
            kinds.append(kind.WhichOneof("value"))
            kind = getattr(kind, kinds[-1]).elem_type
        if kind.WhichOneof("value") != "tensor_type" or kinds.count("sequence_type") > 1:
            name = declared.type.WhichOneof("value") or "value without a type"
            raise DTypeError(
                f"the input {declared.name!r} is a {name}, which holds other things than arrays\n"
                "  pass the model the arrays, and build the rest inside of it"
            )
        is_sequence, is_optional = ("sequence_type" in kinds), ("optional_type" in kinds)
        return cls(declared.name, kind.tensor_type, is_sequence, is_optional)

    def size_names(self, element: int | None, place: int, dim: Any) -> tuple[str, str]:
        """(the model's name for a symbolic size, the program's).

        One name is one size, also in the elements of a sequence; other sizes may all differ.
        """
        label = self.name if element is None else f"{self.name}_{element}"
        name = dim.dim_param or f"{label}_{place}"
        return name, readable_name(name) or "n"


def declared_arguments(
    inputs: Sequence, sizes: Mapping[str, int], lengths: Mapping[str, int]
) -> list:
    """The declared types of the inputs, a list of them for a sequence.

    Sizes without a number in the model or in ``sizes`` are symbolic.
    """
    kinds = [InputType.from_proto(declared) for declared in inputs]
    _check_names("sequence", lengths, {aval.name for aval in kinds if aval.is_sequence})
    result: list = []
    names: set[str] = set()
    for aval in kinds:
        length = _length_of(aval, lengths)
        elements = [None] if length is None else range(length)
        types = [_array_type(aval, element, sizes, names) for element in elements]
        result.append(types[0] if length is None else types)
    _check_names("size", sizes, names)
    return result


def _length_of(kind: InputType, lengths: Mapping[str, int]) -> int | None:
    """The number of elements of a sequence; None for an array."""
    if not kind.is_sequence:
        return None
    result = lengths.get(kind.name)
    if result is None:
        raise ParseError(
            f"the input {kind.name!r} is a sequence, and a program has a fixed number of arrays\n"
            f"  pass it: letir.onnx.load(model, sequence_lengths={{{kind.name!r}: 3}}), or example "
            "inputs"
        )
    if type(result) is not int or not 0 <= result <= _MAX_ELEMENTS_OF_A_SEQUENCE:
        raise ParseError(
            f"letir.onnx.load: the length of the sequence {kind.name!r} is {result!r}, not a "
            f"number from 0 to {_MAX_ELEMENTS_OF_A_SEQUENCE}"
        )
    return result


def _check_names(noun: str, options: Mapping[str, int], names: set[str]) -> None:
    """Raise ParseError for the name of a size or sequence that no input has."""
    unknown = sorted(options.keys() - names)
    if unknown:
        none = "numbers" if noun == "size" else "none"
        raise ParseError(
            f"letir.onnx.load: no input of the model has the {noun} {', '.join(unknown)}\n"
            f"  its {noun}s are {', '.join(sorted(names)) or none}"
        )


def _array_type(
    kind: InputType, element: int | None, sizes: Mapping[str, int], names: set[str]
) -> ShapeDtype:
    """The type of an array, or of an element of a sequence; adds the names of its sizes to
    ``names``.
    """
    tensor = kind.tensor
    if not tensor.HasField("shape"):
        raise ParseError(
            f"the model does not declare the shape of its input {kind.name!r}\n"
            "  pass example inputs: letir.onnx.load(model, args=(...))"
        )
    shape: list = []
    for place, dim in enumerate(tensor.shape.dim):
        if dim.HasField("dim_value"):
            if dim.dim_value < 0:
                raise ParseError(f"the input {kind.name!r} has the size {dim.dim_value}")
            shape.append(dim.dim_value)
        else:
            name, shown = kind.size_names(element, place, dim)
            names.update((name, shown))
            number = sizes.get(name, sizes.get(shown))
            shape.append(shown if number is None else int(number))
    refuse_huge(kind.name, shape)
    dtype = dtype_of(tensor.elem_type)
    if dtype.kind not in "biufc":
        name = onnx_package().TensorProto.DataType.Name(tensor.elem_type).lower()
        raise DTypeError(
            f"the input {kind.name!r} has elements of type {name}, letir computes with numbers of "
            "8 to 128 bits\n  convert the model to float32 or float16"
        )
    return ShapeDtype(tuple(shape), dtype)


def checked_examples(inputs: Sequence, args: Sequence) -> list:
    """Examples of the declared types. Raises DTypeError or ParseError for other ones."""
    if len(args) != len(inputs):
        names = ", ".join(declared.name for declared in inputs)
        raise ParseError(
            f"letir.onnx.load: the model has {len(inputs)} inputs ({names}), and args {len(args)}"
        )
    pairs = zip(map(InputType.from_proto, inputs), args, strict=True)
    return [_checked_example(kind, value) for kind, value in pairs]


def _checked_example(kind: InputType, value: Any) -> Any:
    """An example of this type."""
    if value is None and kind.is_optional:
        return None
    if not kind.is_sequence:
        return _checked_array(kind, value)
    if not isinstance(value, list | tuple):
        raise DTypeError(
            f"the input {kind.name!r} is a sequence, and the example a {type(value).__name__}\n"
            "  pass a list of arrays"
        )
    return [_checked_array(kind, element) for element in value]


def _checked_array(kind: InputType, value: Any) -> Any:
    """An array of the declared dtype and shape."""
    value, tensor = np.asarray(value) if not is_array(value) else value, kind.tensor
    aval = type_of(value)
    if aval.dtype != dtype_of(tensor.elem_type):
        raise DTypeError(
            f"the input {kind.name!r} has dtype {dtype_of(tensor.elem_type)}, and the example "
            f"{aval.dtype}\n  convert it with .astype"
        )
    dims = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
    fits = len(dims) == len(aval.shape) and all(
        a in (None, b) for a, b in zip(dims, aval.shape, strict=True)
    )
    if tensor.HasField("shape") and not fits:
        raise ParseError(
            f"the input {kind.name!r} has the shape {tuple(dims)}, and the example {aval.shape}"
        )
    return value

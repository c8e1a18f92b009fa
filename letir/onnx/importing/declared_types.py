"""The declared types of operators: the schemas of ONNX, and values checked against them."""

from functools import lru_cache
from typing import Any

from letir.ast.types import Size
from letir.errors import DTypeError, ParseError
from letir.onnx.importing.node_attributes import check_attributes
from letir.onnx.importing.values import is_shape
from letir.onnx.package import onnx_package

_NAMES = {
    "bool": "bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{"float16": "float16", "float32": "float", "float64": "double", "bfloat16": "bfloat16"},
    **{"complex64": "complex64", "complex128": "complex128"},
}


@lru_cache(maxsize=4096)
def schema_of(domain: str, name: str, version: int) -> Any:
    """The schema of an operator in a version of its domain, or None."""
    onnx = onnx_package()
    try:
        return onnx.defs.get_schema(name, version, domain)
    except Exception:
        return None


def _type_name(value: Any) -> str:
    """ONNX's name of the type of a value, such as ``tensor(float)``."""
    if isinstance(value, list):
        return f"seq({_type_name(value[0]) if value else 'tensor(float)'})"
    if is_shape(value):
        return "tensor(int64)"
    if value.dtype.kind in "US":
        return "tensor(string)"
    return f"tensor({_NAMES.get(value.dtype.name, value.dtype.name)})"


def type_proto(value: Any) -> Any:
    """The TypeProto of a value; empty for a missing optional input."""
    onnx = onnx_package()
    if value is None:
        return onnx.TypeProto()
    if isinstance(value, list):
        element = type_proto(value[0]) if value else onnx.TypeProto()
        return onnx.helper.make_sequence_type_proto(element)
    number = onnx.TensorProto.INT64
    if not is_shape(value):
        is_text = value.dtype.kind == "U"
        number = (
            onnx.TensorProto.STRING
            if is_text
            else onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
        )
    shape = [str(n) if type(n) is Size else int(n) for n in value.shape]
    return onnx.helper.make_tensor_type_proto(number, shape)


@lru_cache(maxsize=4096)
def _declared_inputs(schema: Any) -> tuple:
    """(least, most inputs, for each: (type parameter, allowed types, is optional, name))."""
    onnx = onnx_package()
    options = onnx.defs.OpSchema.FormalParameterOption
    variadic = options.Variadic
    rows = []
    for declared in schema.inputs:
        is_variadic = declared.option == variadic
        # a variadic input without a common type: each value may have its own type
        shared = declared.type_str if declared.is_homogeneous or not is_variadic else None
        is_optional = declared.option == options.Optional
        rows.append((shared, frozenset(declared.types), is_optional, declared.name))
    return schema.min_input, schema.max_input, tuple(rows)


def check_call(schema: Any, inputs: list, attrs: dict) -> None:
    """Raise ParseError or DTypeError unless inputs and attributes fit the schema."""
    least, most, rows = _declared_inputs(schema)
    is_missing = any(
        value is None and not row[2] for value, row in zip(inputs[:least], rows, strict=False)
    )
    if is_missing or not least <= len(inputs) <= most:
        raise ParseError(f"{schema.name} takes {least} to {most} inputs, found {len(inputs)}")
    common: dict[str, str] = {}
    for place, value in enumerate(inputs):
        shared, allowed, _, name = rows[min(place, len(rows) - 1)]
        if value is None or isinstance(value, list) or not hasattr(value, "dtype"):
            continue
        type_name = _type_name(value)
        if allowed and type_name not in allowed and f"optional({type_name})" not in allowed:
            raise DTypeError(
                f"{schema.name}: the input {name} has type {type_name}, which is not allowed\n"
                "  insert a Cast before it"
            )
        if shared is not None and common.setdefault(shared, type_name) != type_name:
            raise DTypeError(
                f"{schema.name}: the input {name} has type {type_name}, and another one of the "
                f"same type parameter {common[shared]}\n  insert a Cast before it"
            )
    check_attributes(schema, attrs)

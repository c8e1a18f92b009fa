"""Operands that a call of an operation passes by name, and errors for wrong names."""

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs, Required
from letir.ast.primitive import Primitive
from letir.errors import DTypeError
from letir.ops.define.documentation import record_signature


def operands_by_name(record: Primitive, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """(operands, attributes) of ``record(*args, **kwargs)``, such as linear(x, w, bias=b).

    Operands between those given have their defaults. Unknown names stay among the attributes, for
    the error of `Primitive.complete`. Raises DTypeError if the call does not fit the signature.
    """
    signature = record_signature(record)
    if not signature.parameters.keys() >= kwargs.keys():
        return args, kwargs
    try:
        given = signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        message = f"{record.name}: {error}\n  write {record.name}{signature}"
        raise DTypeError(message) from None
    by_position = (p for p in signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD)
    positional = {p.name: p.default for p in by_position}
    last = max((i for i, name in enumerate(positional) if name in given), default=-1)
    if len(args) > last + 1:  # further operands, of *args
        return args, kwargs
    operands = [given.get(name, default) for name, default in positional.items()][: last + 1]
    return tuple(operands), {k: v for k, v in kwargs.items() if k not in positional}


def attributes_error(record: Primitive, attrs: dict, full: Attrs | dict) -> DTypeError:
    """The error for a call with unknown attributes, or without all required ones."""
    unknown = [name for name in attrs if name not in full]
    if unknown:
        known = ", ".join(full) or "none"
        message = f"there is no attribute {unknown[0]!r}, its attributes are ({known})"
        return DTypeError(f"{record.name}: {message}\n  leave it out")
    required = [name for name, value in full.items() if value is Required]
    remedy = f"write {record.name}(..., {', '.join(f'{name}=...' for name in required)})"
    message = f"{', '.join(required)} must be given by name"
    return DTypeError(f"{record.name}: {message}\n  {remedy}")


LATE_BOUND.update(operands_by_name=operands_by_name, attributes_error=attributes_error)

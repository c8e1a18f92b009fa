"""``count_operations``: how many arithmetic operations a bind computes, from types and forms
alone.
"""

from collections.abc import Sequence
from typing import Any

from letir.ast.terms import Arg, Bind, Lambda, Local, Ret
from letir.ast.types import ArrayType
from letir.kernels.elementwise_groups import kernel_of
from letir.kernels.loop_language import FunctionCall, Let, Loop
from letir.kernels.loop_parts import LoopParts

# computed without an arithmetic unit
_NO_ARITHMETIC = frozenset(["select", "convert", "bits"])


def count_operations(bind: Bind) -> int | None:
    """The number of arithmetic operations on floats that a bind computes; None if it is unknown.

    An elementwise operation counts the instructions of its form for each element, so that an
    exponential counts about twenty; ``fma`` counts two, an operation without a form one. A
    reduction counts one for each element of its operand. Linear in the size of the bind.
    """
    op = bind.op
    if op.role == "kernel":
        impl: Any = op.impl
        return _operations_in(impl.body)
    if op.role == "fused" or op.elementwise:
        return _elementwise_operations(bind)
    if op.bodies is not None and op.bodies.loop is not None:
        steps, inside = (
            LoopParts.from_bind(bind).steps,
            _operations_in(LoopParts.from_bind(bind).body),
        )
        return None if steps is None or inside is None else steps * inside
    if op.cost == "free" or op.moves_elements or not bind.args:
        return 0
    if op.work is not None and len(bind.binders) == 1:
        avals = [_counted_type(x) for x in (*bind.binders, *bind.args)]
        return None if None in avals else op.work(*avals, **bind.attrs)
    return _size_of(bind.args[0]) if op.reduction is not None else None


def _operations_in(body: Lambda) -> int | None:
    """The number of all binds of a body."""
    total = 0
    for bind in body.binds:
        operations = count_operations(bind)
        if operations is None:
            return None
        total += operations
    return total


def _elementwise_operations(bind: Bind) -> int | None:
    """The number of an elementwise operation, or of a group of such operations."""
    is_group = bind.op.role == "fused"
    params = tuple(dict.fromkeys([x for x in bind.args if type(x) is Local]))
    body = bind.attrs["body"] if is_group else Lambda(params, (bind,), Ret(bind.binders))
    kernel, size = kernel_of(body), _size_of(bind.binders[0])
    if kernel is not None and size is not None:
        return size * _instruction_count(kernel.body)
    return _operations_in(body) if is_group else size


def _instruction_count(statements: Sequence) -> int:
    """The number of arithmetic instructions on floats; a loop counts as one of its steps."""
    total = 0
    for statement in statements:
        if isinstance(statement, Loop):
            total += _instruction_count(statement.body)
        elif isinstance(statement, FunctionCall):
            is_rare = statement.function.condition is not None
            total += _instruction_count(
                statement.function.test if is_rare else statement.function.body
            )
        elif isinstance(statement, Let) and statement.result.dtype.kind == "f":
            total += 2 if statement.name == "fma" else statement.name not in _NO_ARITHMETIC
    return total


def _counted_type(x: Arg) -> ArrayType | None:
    """The type of a value if its sizes are known, else None."""
    aval = x.type
    return aval if isinstance(aval, ArrayType) and type(aval.size) is int else None


def _size_of(x: Arg) -> int | None:
    """The number of elements of a value; None if it is unknown."""
    aval = _counted_type(x)
    return None if aval is None else int(aval.size)

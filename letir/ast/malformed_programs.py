"""Errors for malformed programs, such as programs that were built by hand.

``check`` and the printer read programs without testing each field; where one of them fails, this
module finds the part of the program that has the wrong class.
"""

from typing import Any

from letir.ast import LATE_BOUND
from letir.ast.attrs import Attrs
from letir.ast.bodies import bodies_of
from letir.ast.primitive import Primitive
from letir.ast.source import Source, source_line
from letir.ast.terms import Bind, Const, Lambda, Local, Ret
from letir.ast.types import PYTHON_NUMBERS, ArrayType, UndefType
from letir.errors import DTypeError, LetirError, ScopeError


def malformed_error(fn: Lambda, error: Exception) -> LetirError:
    """The error that says what is wrong with a malformed ``fn``, whose reading ended in ``error``.

    DTypeError for a part of the wrong class, ScopeError for a local that is not bound where
    it is used. Linear time.

    >>> from letir import Local, Ret
    >>> print(malformed_error(Lambda([Local(None)], ["exp"], Ret(())), TypeError()))
    bind 0 is 'exp' of class str, expected Bind
      Bind(binders, op, args, attrs, source) makes one
    """
    try:
        _refuse_program(fn)
    except LetirError as found:
        return found.with_traceback(None)
    return DTypeError(f"a part of the program cannot be read: {type(error).__name__}, {error}")


def _refuse_program(fn: Lambda) -> None:
    """Raise for the first wrong part of a program and its bodies."""
    todo, visited = [fn], set()
    while todo:
        level = todo.pop()
        if id(level) in visited:
            continue
        visited.add(id(level))
        _refuse_level(level)
        for bind in level.binds:
            todo += bodies_of(bind)


def _refuse_level(fn: Lambda) -> None:
    """Raise for the first wrong part of a program without its bodies."""
    bound: set[Local] = set()
    for i, param in enumerate(fn.params):
        _expect_local(param, f"parameter {i}", "")
        bound.add(param)
    for i, bind in enumerate(fn.binds):
        if type(bind) is not Bind:
            message = f"bind {i} is {_describe_value(bind)}, expected Bind"
            raise DTypeError(f"{message}\n  Bind(binders, op, args, attrs, source) makes one")
        _refuse_fields(bind, f"bind {i}")
        at = f"\n  in bind {i}, {bind.op.name}{source_line(bind.source)}"
        for j, arg in enumerate(bind.args):
            _expect_arg(arg, f"operand {j}", at, bound)
        for binder in bind.binders:
            _expect_local(binder, "a binder", at)
            bound.add(binder)
    if type(fn.ret) is not Ret:
        raise DTypeError(
            f"the end of the program is {_describe_value(fn.ret)}, expected Ret((local, ...))\n"
            "  Ret(args) makes one"
        )
    _expect_sequence(fn.ret.args, "the results", "")
    for j, arg in enumerate(fn.ret.args):
        _expect_arg(arg, f"result {j}", "", bound)


def _refuse_fields(bind: Bind, name: str) -> None:
    """Raise DTypeError unless the fields of a bind are of their classes."""
    if not isinstance(bind.op, Primitive):
        raise DTypeError(
            f"{name}: the operation is {_describe_value(bind.op)}, expected Primitive\n"
            "  take it from letir.extend.PRIMITIVES by its name"
        )
    if bind.source is not None and type(bind.source) is not Source:
        raise DTypeError(
            f"{name}: the source is {_describe_value(bind.source)}, expected Source or None"
        )
    at = f"\n  in {name}, {bind.op.name}{source_line(bind.source)}"
    if type(bind.attrs) is not Attrs:
        raise DTypeError(f"the attributes are {_describe_value(bind.attrs)}, expected Attrs{at}")
    _expect_sequence(bind.binders, "the binders", at)
    _expect_sequence(bind.args, "the operands", at)


def _expect_sequence(value: Any, part: str, at: str) -> None:
    """Raise DTypeError unless this is a tuple or a list."""
    if type(value) not in (tuple, list):
        raise DTypeError(
            f"{part} are {_describe_value(value)}, expected a tuple{at}\n  write (local,) for one"
        )


def _expect_local(value: Any, part: str, at: str) -> None:
    """Raise DTypeError unless this is a Local with a type and a name, or without."""
    if type(value) is not Local:
        raise DTypeError(
            f"{part} is {_describe_value(value)}, expected Local{at}\n  Local(type, name) makes one"
        )
    if value.type is not None and type(value.type) is not ArrayType:
        aval = _describe_value(value.type)
        raise DTypeError(
            f"the type of {part} is {aval}, expected ArrayType or None{at}\n"
            "  ArrayType(dtype, shape) makes one"
        )
    if value.name is not None and type(value.name) is not str:
        raise DTypeError(
            f"the name of {part} is {_describe_value(value.name)}, expected a string{at}\n"
            "  leave it out for a local without one"
        )


def _expect_arg(arg: Any, part: str, at: str, bound: set[Local]) -> None:
    """Raise unless this is a bound local, or a constant that a program may hold."""
    if type(arg) is Local:
        if arg not in bound:
            name = f" {arg.name}" if arg.name else ""
            raise ScopeError(
                f"{part} is a local{name} of type {arg.type} that is not bound before{at}\n"
                "  a program is closed: make it a parameter"
            )
        return
    value = arg.value if type(arg) is Const else None
    if type(arg) is not Const or not (
        value is None or type(value) in PYTHON_NUMBERS or type(value) is UndefType
    ):
        part = f"{part} is {_describe_value(arg)}"
        raise DTypeError(
            f"{part}, expected a Local, or a Const that holds a Python number or None{at}\n"
            "  an array is bound by the operation constant"
        )


def _describe_value(value: Any) -> str:
    """A value and its class, for messages."""
    text = repr(value) if type(value) in (int, float, str, type(None), tuple) else "an object"
    return f"{text if len(text) <= 40 else 'an object'} of class {type(value).__name__}"


def wrong_bind_error(op: Any, args: Any) -> DTypeError | None:
    """The error for an operation or operands of the wrong class, from which a builder is to make a
    bind; None if their classes are right.
    """
    if type(op) is not Primitive:
        return DTypeError(
            f"the operation is {_describe_value(op)}, expected Primitive\n"
            "  letir.extend.PRIMITIVES[name] is the operation with this name"
        )
    for i, arg in enumerate(args):
        if type(arg) not in (Local, Const):
            return DTypeError(
                f"{op.name}: operand {i} is {_describe_value(arg)}, expected Local or Const\n"
                "  LetBuilder.apply takes Values, arrays and numbers"
            )
    return None


LATE_BOUND.update(malformed_error=malformed_error, wrong_bind_error=wrong_bind_error)

"""User-defined operations: ``primitive`` for an operation with rules, ``opaque`` for any Python
callable.
"""

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

import attrs

from letir.ast import LATE_BOUND, entry_point
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.record_fields import Absent, todo
from letir.ast.types import WEAK, ArrayType
from letir.errors import DTypeError, LetirError, MissingRule, ShapeError
from letir.ops.as_numpy.control import imported_call
from letir.ops.define.records import composite_record, cotangents_of_rule

_NO_RULE = todo("no rule was given; pass one to letir.primitive or letir.opaque")


@entry_point
def primitive(
    name: str,
    impl: Callable,
    aval: Callable,
    *,
    vjp: Callable | Absent = _NO_RULE,
    jvp: Callable | Absent = _NO_RULE,
    **fields: Any,
) -> Primitive:
    """A new operation, called ``package.name``: a callable on arrays and traced values.

    ``impl(xp, *arrays, **attrs)``, ``aval(*types, **attrs)``, ``vjp(ct, out, *args, **attrs)`` and
    ``jvp(tangents, out, *args, **attrs)`` are as in ``letir.Primitive``; rules compute with NumPy's
    functions and letir's operations. ``decompose(*args, **attrs)`` writes the operation with
    others: the rules that are not given are those of its decomposition. Defining a name again
    replaces the operation; programs recorded before keep the old one.

    >>> import numpy as np
    >>> rule = lambda ct, y, x: (2 * ct,)
    >>> double = primitive("doc.double", lambda xp, x: 2 * x, lambda x: x, vjp=rule)
    >>> double(np.ones(2))
    array([2., 2.])
    """
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", name):
        raise LetirError(
            f"name your own operation package.name, found {name!r}\n"
            "  names without a package belong to letir: write 'mine.add', not 'add'"
        )
    parts = {k: (0, fields[k]) for k in ("decompose",) if fields.get(k) is not None}
    rules = {"impl": (1, impl), "aval": (0, aval), "vjp": (2, vjp), "jvp": (2, jvp), **parts}
    _refuse_rules(name, rules)
    unknown = fields.keys() - {field.name for field in attrs.fields(Primitive) if field.init}
    if unknown:
        raise DTypeError(
            f"{name}: an operation has no field {sorted(unknown)[0]!r}\n"
            "  its fields are those of letir.Primitive"
        )
    fields.setdefault("attributes", impl)
    rule = _type_rule(name, aval, bool(fields.get("results")))
    numerics = _checked_impl(name, impl, rule, bool(fields.get("results")))
    define = _composite_of_user if "decompose" in fields else Primitive
    record = define(name, numerics, rule, vjp=vjp, jvp=jvp, **fields)
    PRIMITIVES[name] = record  # not register(), which refuses a name that is in use
    return record


def _refuse_rules(name: str, rules: dict[str, tuple[int, Any]]) -> None:
    """Raise DTypeError unless the rules are functions that take as many operands as the first.

    ``rules``: {name of the rule: (number of arguments before the operands, rule)}.
    """
    first, count = next(iter(rules)), None
    for rule, (before, function) in rules.items():
        if isinstance(function, Absent):
            continue
        LATE_BOUND["refuse_unless_function"](f"{name}: {rule}", function)
        code = getattr(function, "__code__", None)
        if code is None or code.co_flags & inspect.CO_VARARGS or inspect.ismethod(function):
            continue
        most = code.co_argcount - before
        least = most - len(function.__defaults__ or ())
        if rule == first and most == least:
            count = most
        if most < 0 or (count is not None and not least <= count <= most):
            raise DTypeError(
                f"{name}: {first} takes {max(count or 0, 0)} operands, found {rule} with "
                f"{code.co_argcount} arguments\n"
                "  write impl(xp, *operands), aval(*types), vjp(ct, out, *operands) and "
                "jvp(tangents, out, *operands)"
            )


def _composite_of_user(
    name: str, impl: Callable, aval: Callable, *, decompose: Callable, vjp, jvp, **fields: Any
) -> Primitive:
    """The record of an operation with a decomposition, whose derivatives it has unless given."""
    return composite_record(
        name,
        decompose,
        impl=impl,
        aval=aval,
        vjp=_without_transform(vjp),
        jvp=_without_transform(jvp),
        **fields,
    )


def _without_transform(rule: Callable | Absent) -> Any:
    """A user's rule as the rule of a composite, which gets the transform; None if not given."""
    if isinstance(rule, Absent):
        return None if rule is _NO_RULE else rule

    def call(directions, out, *args, transform, **attrs):
        return rule(directions, out, *args, **attrs)

    return call


@entry_point
def opaque(
    function: Callable,
    aval: Any,
    *,
    name: str | None = None,
    vjp: Callable | Absent | None = None,
    traceable: bool = False,
) -> Primitive:
    """``function`` as one operation, which is not traced. Programs print and save it by its name.

    ``aval``: the type of the result (ArrayType or ShapeDtype, a tuple of them for several results),
    or a function of the argument types. ``vjp(ct, out, *args)`` returns one cotangent per argument;
    unless ``traceable``, it becomes an opaque operation itself. ``vjp=letir.extend.todo(reason)``
    gives the reason why there is none. To load a saved program, call ``opaque`` with the same name
    first.

    >>> import numpy as np
    >>> from letir import trace
    >>> table = opaque(lambda x: np.interp(x, [0, 1], [0, 2]), lambda x: x, name="docs.lookup")
    >>> print(trace(table, np.zeros(2)).listing(), end="")
    %1 = docs.lookup %0
    return %1
    """
    LATE_BOUND["refuse_unless_function"]("opaque", function)
    if name is None and getattr(function, "__name__", "") == "<lambda>":
        raise LetirError(
            "opaque: the function is a lambda, which has no name for the operation\n"
            "  write opaque(function, aval, name='mine.double')"
        )
    name = name or f"{function.__module__}.{function.__qualname__}".replace("<locals>.", "")
    if vjp is not None:
        _refuse_rules(name, {"function": (0, function), "vjp": (2, vjp)})
    fixed = aval if callable(aval) else _declared_rule(name, aval)
    # a function of types has one result: the number of results must be known before the types
    several = None if callable(aval) or not isinstance(aval, tuple) else len(aval)

    def impl(xp, *args):
        return function(*args)

    rule: Callable | Absent = _NO_RULE
    if vjp is not None:
        rule = vjp if traceable or isinstance(vjp, Absent) else _opaque_vjp(name, vjp)
    results = None if several is None else lambda: several
    source = imported_call(function, name)
    return primitive(name, impl, fixed, vjp=rule, results=results, source=source)


def _type_rule(name: str, aval: Callable, several: bool) -> Callable:
    """The type rule ``aval``. Raises DTypeError where it returns something other than types."""

    @functools.wraps(aval)
    def rule(*types, **attrs):
        try:
            types_returned = aval(*types, **attrs)
        except (TypeError, AttributeError) as error:
            if "ArrayType" not in str(error):
                raise
            raise DTypeError(
                f"{name}: aval: {error}, found the types {types}\n"
                "  aval computes with types, not with arrays: return a type made from them"
            ) from error
        if isinstance(types_returned, tuple) and not several:
            raise DTypeError(
                f"{name}: aval returned {len(types_returned)} types, found no field results\n"
                "  return one type, or pass the number of results: results=lambda: 2"
            )
        kinds = types_returned if isinstance(types_returned, tuple) else (types_returned,)
        kinds = tuple([getattr(kind, "type", kind) for kind in kinds])  # of a ShapeDtype
        wrong = next((kind for kind in kinds if not isinstance(kind, ArrayType | None)), None)
        if wrong is not None:
            raise DTypeError(
                f"{name}: aval returned {wrong!r}, of type {type(wrong).__name__}\n"
                "  return letir.ArrayType(dtype, shape), or a tuple of them for several results"
            )
        return kinds if isinstance(types_returned, tuple) else kinds[0]

    return rule


def _checked_impl(name: str, impl: Callable, rule: Callable, several: bool) -> Callable:
    """``impl``, whose results are compared with the types that ``rule`` declares."""

    @functools.wraps(impl)
    def numerics(xp, *args, **attrs):
        out = impl(xp, *args, **attrs)
        attrs.pop("call", None)
        kinds = [None if arg is None else _type_of_array(arg) for arg in args]
        declared = rule(*kinds, **attrs)
        _compare_results(name, out if several else (out,), declared if several else (declared,))
        return out

    return numerics


def _declared_rule(name: str, aval: Any) -> Callable:
    """The type rule that always gives the declared types."""
    kinds = tuple(
        getattr(kind, "type", kind) for kind in (aval if isinstance(aval, tuple) else (aval,))
    )
    wrong = next((kind for kind in kinds if not isinstance(kind, ArrayType | None)), None)
    if wrong is not None:
        raise DTypeError(
            f"{name}: aval must be a type or a function of types, found {wrong!r}\n"
            "  write letir.ShapeDtype(shape, dtype), or lambda x: x for the type of the operand"
        )
    return lambda *types: kinds if isinstance(aval, tuple) else kinds[0]


def _type_of_array(array) -> ArrayType:
    """The type of an array or a number. Raises DTypeError for another object."""
    if hasattr(array, "dtype"):
        return ArrayType(array.dtype, array.shape)
    if type(array) not in WEAK:
        raise DTypeError(
            f"{type(array).__name__} is not an array or a number\n  pass NumPy arrays and numbers"
        )
    return WEAK[type(array)]


def _compare_results(name: str, results: Any, declared: tuple) -> None:
    """Raise ShapeError or DTypeError unless the results have their declared types."""
    if not isinstance(results, tuple | list) or len(results) != len(declared):
        count = len(results) if isinstance(results, tuple | list) else 1
        word = "shorter" if count < len(declared) else "longer"
        raise ShapeError(
            f"{name}: declared {len(declared)} results, returned {count}: the tuple is {word}\n"
            "  return a tuple with one array for each declared result"
        )
    for aval, result in zip(declared, results, strict=True):
        try:
            actual = _type_of_array(result)
        except DTypeError:
            raise DTypeError(
                f"{name}: declared a result of {aval}, returned a {type(result).__name__}\n"
                "  return an array or a number; for several results declare a tuple of types"
            ) from None
        if aval is not None and (aval.dtype, aval.shape) != (actual.dtype, actual.shape):
            error = ShapeError if aval.dtype == actual.dtype else DTypeError
            raise error(
                f"{name}: declared a result of {aval}, returned {actual}\n"
                "  aval and the function must agree: correct one of them"
            )


def _opaque_vjp(name: str, vjp: Callable) -> Callable:
    """The rule that calls ``vjp`` on arrays when the gradient program runs."""

    def rule(ct, out, *args):
        places = [
            i
            for i, arg in enumerate(args)
            # a declared result needs a type and cannot be None: other arguments get no cotangent
            if hasattr(arg, "emitter") and arg.type is not None and arg.type.inexact
        ]
        avals = tuple(ArrayType(args[i].dtype, args[i].shape) for i in places)

        def backward(ct, out, *args):
            pulled = cotangents_of_rule(name, vjp(ct, out, *args), len(args))
            for i in places:
                if isinstance(pulled[i], Absent):
                    raise MissingRule(
                        f"{name}: its vjp rule has no cotangent for operand {i}: "
                        f"{pulled[i].reason}\n"
                        "  pass letir.opaque(..., vjp=letir.extend.todo(reason)) for such a one"
                    )
            return tuple(pulled[i] for i in places)

        # the rule becomes an operation too: it runs on arrays when the gradient program runs
        record = opaque(backward, avals, name=f"{name}.vjp")
        record.source = imported_call(vjp, name, tuple(places))
        pulled = iter(record(ct, out, *args))
        return tuple(next(pulled) if i in places else None for i in range(len(args)))

    return rule

"""How records are made: ``define`` in general, ``unary``, ``binary`` and ``elementwise`` for
NumPy's ufuncs.

Also what every rule needs: ``unbroadcast`` (sum a cotangent to its operand's shape) and
``broadcast_tangent`` (broadcast a tangent to the result's shape). Read this before the other files
of ``ops``.
"""

import operator
from collections.abc import Callable
from functools import partial

import numpy as np

from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES, Absent, Primitive, never, register
from letir.ast.types import WEAK, ArrayType, broadcast_shapes
from letir.errors import DTypeError, MissingRule
from letir.ops.define.batch_rules import composite_batch, pointwise_rule
from letir.ops.define.composite_programs import decomposition

DISCRETE = never("the result is not floating, so there is nothing to differentiate")
FLAT = never("the derivative is zero wherever it exists")
PYTHON_TYPES = {"i": int, "f": float, "c": complex}
_PYTHON_INTEGERS = {  # ufuncs that may leave 64 bits, as Python computes them
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "power": operator.pow,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "negative": operator.neg,
    "absolute": operator.abs,
    "square": lambda x: x * x,
    "left_shift": operator.lshift,
}


def define(name: str, impl: Callable, aval: Callable, *, vjp, jvp, **fields) -> Primitive:
    """Register the record of an operation; ``fields`` as in ``Primitive``."""
    return register(Primitive(name, impl, aval, vjp, jvp, **fields))


# ---- ufuncs: types and numerics ----


def promotion_type(kind: ArrayType):
    """``kind`` as NumPy's promotion takes it: a dtype, or a Python type if it is weak."""
    if kind is None:
        raise DTypeError("None is no operand of an arithmetic operation")
    # a Python number promotes by its kind only:
    # https://numpy.org/neps/nep-0050-scalar-promotion.html
    return PYTHON_TYPES[kind.dtype.kind] if kind.weak else kind.dtype


def result_dtype(*types: ArrayType) -> np.dtype:
    """The dtype that NumPy promotes operands of these types to."""
    # result_type takes values where resolve_dtypes takes Python's types
    return np.result_type(*[promotion_type(kind)(0) if kind.weak else kind.dtype for kind in types])


def array_dtype(*types: ArrayType) -> np.dtype:
    """The dtype that NumPy promotes arrays to, in functions where Python numbers are arrays too."""
    return np.result_type(*[kind.dtype for kind in types])


def ufunc_aval(ufunc: np.ufunc) -> Callable:
    """The type rule of a ufunc: NumPy's own dtype resolution, shapes broadcast."""

    def aval(*types, **_):
        try:
            # NumPy is asked, not imitated: what it records is what it would compute
            dtypes = ufunc.resolve_dtypes((*map(promotion_type, types), *[None] * ufunc.nout))
        except TypeError as error:
            listed = ", ".join(map(str, types))
            raise DTypeError(
                f"{ufunc.__name__} takes no operands of types {listed}: {error}"
            ) from None
        shape = broadcast_shapes(*[kind.shape for kind in types])
        if ufunc.nout == 1:
            return ArrayType(dtypes[-1], shape)
        return tuple([ArrayType(dtype, shape) for dtype in dtypes[ufunc.nin :]])

    return aval


def ufunc_impl(ufunc: np.ufunc) -> Callable:
    """``impl`` that calls the ufunc of this name in the array module; Python integers are computed
    exactly.
    """
    name = ufunc.__name__  # by name: CuPy has its own ufunc of it
    exact = name in _PYTHON_INTEGERS

    def impl(xp, *arrays):
        return getattr(xp, name)(*arrays)

    def unary_impl(xp, x):
        return getattr(xp, name)(x) if type(x) is not int else _whole(xp, name, x)

    def binary_impl(xp, x, y):
        if type(x) is int and type(y) is int:
            return _whole(xp, name, x, y)
        return getattr(xp, name)(x, y)

    made = impl if not exact else unary_impl if ufunc.nin == 1 else binary_impl
    if getattr(np, name, None) is ufunc:
        # what a plan calls for NumPy's arrays, unless all operands may be Python integers
        made.ufunc, made.exact_integers = ufunc, exact
    return made


def _whole(xp, name: str, *numbers: int):
    """A ufunc of Python integers, as Python computes it.

    Raises OverflowError where NumPy's 64 bits would wrap around, ZeroDivisionError as Python does.
    """
    if name == "power" and numbers[1] < 0:
        return xp.power(*numbers)  # NumPy's error
    # else 9**9**9 would be computed
    grows = {"power": abs(numbers[0]) > 1, "left_shift": numbers[0] != 0}.get(name, False)
    is_huge = grows and numbers[1] > 64
    found = None if is_huge else _PYTHON_INTEGERS[name](*numbers)
    if found is None or not -(2**63) <= found < 2**63:
        listed = ", ".join(map(str, numbers))
        raise OverflowError(
            f"{name}({listed}): the result does not fit 64 bits, in which Python integers are "
            "recorded\n  pass a float, 3.0 instead of 3, or a static argument"
        )
    return xp.asarray(found, "int64")[()]  # [()]: a scalar, as the ufunc gives


# ---- what rules need ----


def takes_gradient(arg) -> bool:
    """Whether an operand can have a cotangent: a value that is floating, complex or of unknown
    type.
    """
    return isinstance(arg, Value) and (arg.type is None or arg.type.inexact)


def unbroadcast(ct: Value | None, arg) -> Value | None:
    """``ct`` summed and cast to the type of the operand ``arg``; None if that takes no
    cotangent.
    """
    if ct is None or not takes_gradient(arg):
        return None
    kind = arg.type
    # summed before it is cast: fewer elements, and in the wider dtype
    if kind is None or ct.type is None or ct.shape != kind.shape:
        ct = PRIMITIVES["sum_to_size"](ct, arg)
    return ct if kind is None or ct.type is None else recast(ct, kind.dtype)


def recast(ct: Value, dtype: np.dtype) -> Value:
    """``ct`` in ``dtype``; the real part of a complex one for a real dtype."""
    if ct.type is None:
        return PRIMITIVES["cast"](ct, dtype)
    if ct.dtype == dtype:
        return ct
    # a real operand moves along the real axis only; astype would warn as well
    if ct.dtype.kind == "c" and dtype.kind != "c":
        ct = PRIMITIVES["real"](ct)
    return ct if ct.dtype == dtype else PRIMITIVES["cast"](ct, dtype)


def broadcast_tangent(tangent: Value | None, out: Value) -> Value | None:
    """``tangent`` broadcast and cast to the type of the result ``out``; None stays None."""
    if tangent is None:
        return None
    kind = out.type
    if kind is None or tangent.type is None or tangent.shape != kind.shape:
        tangent = PRIMITIVES["broadcast_to"](tangent, out)
    return tangent if kind is None or tangent.type is None else recast(tangent, kind.dtype)


# ---- records of ufuncs ----


def diagonal_rules(terms: tuple[Callable | Absent | None, ...]) -> tuple[Callable, Callable]:
    """(vjp, jvp) of an elementwise operation, whose Jacobian is diagonal: a term serves both modes.

    ``terms[i](g, out, *args)`` is ``g`` times the derivative by operand i, None for zero, an
    ``Absent`` where there is none.
    """

    def terms_vjp(ct, out, *args):
        return tuple(
            # asked before the term is made: what it records would be dead otherwise
            along(term, ct, out, args, arg) if term and takes_gradient(arg) else None
            for term, arg in zip(terms, args, strict=True)
        )

    def along(term, ct, out, args, arg):
        return term if type(term) is Absent else unbroadcast(term(ct, out, *args), arg)

    def terms_jvp(tangents, out, *args):
        there = [(t, g) for t, g in zip(terms, tangents, strict=True) if t and g is not None]
        absent = next((t for t, _ in there if type(t) is Absent), None)
        if absent is not None:
            raise MissingRule(absent.reason)
        return broadcast_tangent(add_terms(t(g, out, *args) for t, g in there), out)

    return terms_vjp, terms_jvp


def elementwise(
    name: str, *terms: Callable | None, numpy: np.ufunc, also=(), vjp=None, jvp=None, **fields
) -> Primitive:
    """Register an elementwise operation that a ufunc computes, and others ``also``; ``terms`` as in
    ``diagonal_rules``.
    """
    by_vjp, by_jvp = diagonal_rules(terms)
    return define(
        name,
        ufunc_impl(numpy),
        ufunc_aval(numpy),
        vjp=vjp or by_vjp,
        jvp=jvp or by_jvp,
        numpy=(numpy, *also),
        elementwise=True,
        reusable=True,
        **{"batch": pointwise_rule(name), **fields},
    )


def unary(name: str, derivative: Callable, **fields) -> Primitive:
    """Register an elementwise function of one array, by its ``derivative(y, x)`` with ``y`` the
    result.
    """
    return elementwise(name, lambda g, y, x: g * derivative(y, x), **fields)


def binary(name: str, by_first: Callable, by_second: Callable, **fields) -> Primitive:
    """Register an elementwise function of two arrays, by ``g`` times its derivative by each."""
    return elementwise(name, by_first, by_second, **fields)


def piecewise_constant(name: str, numpy: np.ufunc, **fields) -> Primitive:
    """Register an elementwise function whose derivative is zero wherever it exists."""
    return elementwise(name, numpy=numpy, vjp=FLAT, jvp=FLAT, **fields)


def discrete(name: str, numpy: np.ufunc, **fields) -> Primitive:
    """Register an elementwise function whose result is no floating number."""
    return elementwise(name, numpy=numpy, vjp=DISCRETE, jvp=DISCRETE, **fields)


def add_terms(terms) -> Value | None:
    """The sum of the terms that are there; None if none is."""
    total = None
    for term in terms:
        if term is not None:
            total = term if total is None else total + term
    return total


# ---- composites ----


def composite(name: str, decompose: Callable, **fields) -> Primitive:
    """Register an operation that stands for others and is traced as itself [B4].

    ``decompose(*args, **attrs)`` says of which operations it is made, on Values; its type rule, its
    numerics and the rules that are not given follow from that. With ``impl(xp, *args, **attrs)``
    the numerics are NumPy's own function, bit for bit, where the array module has it.
    """
    return register(composite_record(name, decompose, **fields))


def composite_record(
    name: str, decompose: Callable, *, impl=None, aval=None, vjp=None, jvp=None, **fields
) -> Primitive:
    """The record of a composite, not registered."""
    several = bool(fields.get("results"))
    made_impl, made_aval = composite_numerics(decompose, several)
    by_vjp, by_jvp = composite_rules(decompose, several)
    if vjp is None:  # else the batching transform has to keep the derivative
        fields.setdefault("batch", composite_batch(partial(decomposition, decompose), several))
    return Primitive(
        name,
        _own_or_made(impl, made_impl, fields.get("numpy", ())) if impl else made_impl,
        aval or made_aval,
        vjp=vjp or by_vjp,
        jvp=jvp or by_jvp,
        decompose=decompose,
        attributes=decompose,
        holds_lambdas=True,
        **fields,
    )


def _own_or_made(impl: Callable, made: Callable, functions) -> Callable:
    """``impl``, which calls the first of NumPy's functions; ``made`` where the array module has no
    such function.
    """
    function = next(iter(functions), None)
    *_, where = (getattr(function, "__module__", None) or "numpy").partition("numpy")
    path = [*where.strip(".").split("."), getattr(function, "__name__", "")]

    def numerics(xp, *args, call, **attrs):
        # CuPy has not all of numpy.linalg, nor the youngest ufuncs
        if xp is np or _found(xp, path) is not None or _found(np, path) is not function:
            return impl(xp, *args, **attrs)
        return made(xp, *args, call=call, **attrs)

    return numerics


def _found(xp, path: list[str]):
    """What an array module has under these names, from outside in; None if nothing."""
    for name in filter(None, path):
        xp = getattr(xp, name, None)
    return xp


def composite_numerics(decompose: Callable, several: bool) -> tuple[Callable, Callable]:
    """(impl, aval) of a composite."""

    def impl(xp, *args, call, **attrs):
        # of the operands that are there: recorded types may have sizes that are names
        types = tuple(
            ArrayType(a.dtype, a.shape) if hasattr(a, "dtype") else WEAK.get(type(a)) for a in args
        )
        out = call(decomposition(decompose, types, attrs), [a for a in args if a is not None])
        return out if several else out[0]

    def aval(*types, **attrs):
        found = tuple(out.type for out in decomposition(decompose, types, attrs).ret.args)
        return found if several else found[0]

    return impl, aval


def composite_rules(decompose: Callable, several: bool) -> tuple[Callable, Callable]:
    """(vjp, jvp) of a composite: those of what it stands for, which the transforms hand in."""

    def stands_for(args, attrs):
        return decomposition(
            decompose, tuple(None if arg is None else type_of_operand(arg) for arg in args), attrs
        )

    def decomposed_vjp(ct, out, *args, transform, wanted=None, **attrs):
        given = [i for i, arg in enumerate(args) if arg is not None]
        # numbers are parameters of the decomposition, for which no rule need have an answer
        needed = [isinstance(args[i], Value) and (wanted is None or wanted[i]) for i in given]
        program = stands_for(args, attrs)
        found = iter(transform(program, [args[i] for i in given], ct, wanted=needed))
        return tuple(None if arg is None else next(found) for arg in args)

    def decomposed_jvp(tangents, out, *args, transform, **attrs):
        directions = [t for t, arg in zip(tangents, args, strict=True) if arg is not None]
        found = transform(stands_for(args, attrs), [a for a in args if a is not None], directions)
        return found if several else found[0]

    return decomposed_vjp, decomposed_jvp


def type_of_operand(arg) -> ArrayType | None:
    """The type of an operand of a rule: a Value, or a Python number."""
    return arg.type if isinstance(arg, Value) else WEAK[type(arg)]


_MADE_IMPL, _ = composite_numerics(None, False)
_MADE_VJP, _ = composite_rules(None, False)


def is_computed_by_parts(record: Primitive) -> bool:
    """Whether a composite is computed as what it stands for, and not by a function of NumPy's."""
    return getattr(record.impl, "__code__", None) is _MADE_IMPL.__code__


def is_derived_by_parts(record: Primitive) -> bool:
    """Whether a composite has no derivative rule but that of what it stands for."""
    return getattr(record.vjp, "__code__", None) is _MADE_VJP.__code__

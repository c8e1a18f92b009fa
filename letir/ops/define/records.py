"""Functions that make the records of operations. Read this before the other files of ``ops``.

``define`` registers any record; ``unary``, ``binary`` and ``elementwise`` register NumPy's ufuncs;
``composite`` registers an operation that stands for a program of others. Derivative rules use
``unbroadcast`` (sum a cotangent to its operand's shape) and ``broadcast_tangent`` (broadcast a
tangent to the result's shape).
"""

import operator
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ast.derivative_types import carries_derivative
from letir.ast.primitive import PRIMITIVES, Primitive, register
from letir.ast.record_fields import Absent, never
from letir.ast.types import ArrayType, broadcast_shapes
from letir.errors import DTypeError, MissingRule, ShapeError
from letir.ops.define.batch_rules import composite_batch, pointwise_rule
from letir.ops.define.composite_programs import composite_numerics, composite_rules, decomposition

DISCRETE = never("the result is not floating, so there is nothing to differentiate")
FLAT = never("the derivative is zero wherever it exists")
# facts of operations that round correctly, and neither raise nor warn with real operands
SAFE: dict[str, Any] = {"exact": True, "never_fails": "biuf", "cost": "cheap"}
PYTHON_TYPES: dict[str, type] = {"i": int, "f": float, "c": complex}
Rule = Callable | Absent
_INTEGERS = frozenset([bool, int])
_PYTHON_INTEGERS: dict[str, Callable] = {  # ufuncs whose results may not fit 64 bits, in Python
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


def define(
    name: str, impl: Callable, aval: Callable, *, vjp: Rule, jvp: Rule, **fields: Any
) -> Primitive:
    """Register the record of an operation; ``fields`` are the other fields of ``Primitive``."""
    return register(Primitive(name, impl, aval, vjp, jvp, **fields))


# ---- ufuncs: types and numerics ----


def promotion_type(aval: ArrayType) -> np.dtype | type:
    """``aval`` as an operand of NumPy's promotion: a dtype, or a Python type if it is weak."""
    if aval is None:
        raise DTypeError(
            "None is not an operand of an arithmetic operation\n"
            "  pass an array or a number; test for None in Python first"
        )
    # a Python number promotes by its kind only:
    # https://numpy.org/neps/nep-0050-scalar-promotion.html
    return PYTHON_TYPES[aval.dtype.kind] if aval.weak else aval.dtype


def result_dtype(*types: ArrayType) -> np.dtype:
    """The dtype that NumPy promotes operands of these types to."""
    # result_type takes Python numbers where resolve_dtypes takes Python types
    numbers = [PYTHON_TYPES[aval.dtype.kind](0) if aval.weak else aval.dtype for aval in types]
    return np.result_type(*numbers)


def array_dtype(*types: ArrayType) -> np.dtype:
    """The dtype that NumPy promotes arrays to, in functions that make arrays of numbers."""
    return np.result_type(*[aval.dtype for aval in types])


def ufunc_aval(ufunc: np.ufunc) -> Callable:
    """The type rule of a ufunc: NumPy's own dtype resolution, and the broadcast shape."""

    def aval(*types, **_):
        try:
            # NumPy itself resolves the dtypes, so that the recorded dtype is always NumPy's
            dtypes = ufunc.resolve_dtypes((*map(promotion_type, types), *[None] * ufunc.nout))
        except TypeError as error:
            if len(types) != ufunc.nin:
                raise DTypeError(
                    f"{ufunc.__name__}: {ufunc.nin} operands are expected, found {len(types)}\n"
                    "  pass arrays as operands, the rest by keyword"
                ) from None
            listed = ", ".join(map(str, types))
            raise DTypeError(
                f"{ufunc.__name__} does not take operands of types {listed}: {error}\n"
                "  convert an operand with .astype"
            ) from None
        shape = broadcast_shapes(*[kind.shape for kind in types])
        if ufunc.nout == 1:
            return ArrayType(dtypes[-1], shape)
        return tuple([ArrayType(dtype, shape) for dtype in dtypes[ufunc.nin :]])

    return aval


def ufunc_impl(ufunc: np.ufunc) -> Callable:
    """The ``impl`` that calls the array module's ufunc of the same name; Python integers are
    computed exactly.
    """
    name = ufunc.__name__
    exact = name in _PYTHON_INTEGERS

    # other array modules have ufuncs of their own, found by name; while a function is recorded,
    # names of the module numpy may be bound to stand-ins, and in tests to mocks

    def impl(xp, *arrays):
        return (ufunc if xp is np else getattr(xp, name))(*arrays)

    def unary_impl(xp, x):
        if type(x) is int:
            return _python_integer_result(xp, name, x)
        return (ufunc if xp is np else getattr(xp, name))(x)

    def binary_impl(xp, x, y):
        if {type(x), type(y)} <= _INTEGERS and not type(x) is type(y) is bool:
            return _python_integer_result(xp, name, int(x), int(y))
        return (ufunc if xp is np else getattr(xp, name))(x, y)

    result: Any = impl if not exact else unary_impl if ufunc.nin == 1 else binary_impl
    if getattr(np, name, None) is ufunc:
        # a plan calls the ufunc itself on NumPy arrays, unless all operands may be Python integers
        result.ufunc, result.exact_integers = ufunc, exact
    return result


def _python_integer_result(xp, name: str, *numbers: int) -> Any:
    """A ufunc of Python integers, computed exactly by Python.

    Raises OverflowError where NumPy's 64 bits would wrap around, ZeroDivisionError as Python does.
    """
    if name == "power" and numbers[1] < 0:
        return xp.power(*numbers)  # raises NumPy's error
    # refused before it is computed: 9**9**9 would take forever
    grows = {"power": abs(numbers[0]) > 1, "left_shift": numbers[0] != 0}.get(name, False)
    is_huge = grows and numbers[1] > 64
    result = None if is_huge else _PYTHON_INTEGERS[name](*numbers)
    if result is None or not -(2**63) <= result < 2**63:
        listed = ", ".join(map(str, numbers))
        error = OverflowError(
            f"{name}({listed}): the result does not fit the 64 bits in which Python integers are "
            "recorded\n  pass a float, 3.0 instead of 3, or a static argument"
        )
        error.letir_is_refusal = True  # type: ignore[attr-defined]  # Python would not raise it
        raise error
    return xp.asarray(result, "int64")[()]  # [()]: a scalar, as the ufunc gives


# ---- cotangents and tangents ----


def takes_gradient(arg: Any) -> bool:
    """Whether an operand can have a cotangent: a Value of floating, complex or unknown type."""
    return isinstance(arg, Value) and carries_derivative(arg)


def unbroadcast(ct: Value | None, arg: Any) -> Value | None:
    """``ct`` summed and cast to the type of ``arg``; None if ``arg`` takes no cotangent."""
    if ct is None or not takes_gradient(arg):
        return None
    aval = arg.type
    # summed before it is cast: fewer elements to cast, and the sum is in the wider dtype
    if aval is None or ct.type is None or ct.shape != aval.shape:
        ct = PRIMITIVES["sum_to_size"](ct, arg)
    return ct if aval is None or ct.type is None else cast_cotangent(ct, aval.dtype)


def cast_cotangent(ct: Value, dtype: np.dtype) -> Value:
    """``ct`` cast to ``dtype``; its real part if it is complex and ``dtype`` is real."""
    if ct.type is None:
        return PRIMITIVES["cast"](ct, dtype)
    if ct.dtype == dtype:
        return ct
    # a real operand varies along the real axis only; astype would also warn
    if ct.dtype.kind == "c" and dtype.kind != "c":
        ct = PRIMITIVES["real"](ct)
    return ct if ct.dtype == dtype else PRIMITIVES["cast"](ct, dtype)


def broadcast_tangent(tangent: Value | None, out: Value) -> Value | None:
    """``tangent`` broadcast and cast to the type of the result ``out``; None stays None."""
    if tangent is None:
        return None
    aval = out.type
    if aval is None or tangent.type is None or tangent.shape != aval.shape:
        tangent = PRIMITIVES["broadcast_to"](tangent, out)
    return tangent if aval is None or tangent.type is None else cast_cotangent(tangent, aval.dtype)


# ---- records of ufuncs ----


def diagonal_rules(terms: tuple[Rule | None, ...]) -> tuple[Callable, Callable]:
    """(vjp, jvp) of an elementwise operation. Its Jacobian is diagonal, so a term serves both
    modes.

    ``terms[i](g, out, *args)`` is ``g`` times the derivative with respect to operand i. The term is
    None where that derivative is zero and an ``Absent`` where there is none.
    """

    def terms_vjp(ct, out, *args):
        return tuple(
            # tested before the term is evaluated, which would record dead binds
            along(term, ct, out, args, arg) if term and takes_gradient(arg) else None
            for term, arg in zip(terms, args, strict=True)
        )

    def along(term, ct, out, args, arg):
        return term if type(term) is Absent else unbroadcast(term(ct, out, *args), arg)

    def terms_jvp(tangents, out, *args):
        used_terms = [(t, g) for t, g in zip(terms, tangents, strict=True) if t and g is not None]
        absent = next((t for t, _ in used_terms if type(t) is Absent), None)
        if absent is not None:
            raise MissingRule(absent.reason)
        return broadcast_tangent(add_terms(t(g, out, *args) for t, g in used_terms), out)

    return terms_vjp, terms_jvp


def elementwise(
    name: str,
    *terms: Rule | None,
    numpy: np.ufunc,
    also: tuple[Callable, ...] = (),
    vjp: Rule | None = None,
    jvp: Rule | None = None,
    **fields: Any,
) -> Primitive:
    """Register an elementwise operation that the ufunc ``numpy`` computes.

    ``terms`` as in ``diagonal_rules``; ``also`` are other NumPy functions that record it.
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
        **{"batch": pointwise_rule(name), "scalar": name, **fields},
    )


def unary(name: str, derivative: Callable, **fields: Any) -> Primitive:
    """Register an elementwise function of one array; ``derivative(y, x)`` has the result ``y``."""
    return elementwise(name, lambda g, y, x: g * derivative(y, x), **fields)


def binary(name: str, by_first: Rule | None, by_second: Rule | None, **fields: Any) -> Primitive:
    """Register an elementwise function of two arrays by its terms, one for each operand."""
    return elementwise(name, by_first, by_second, **fields)


def piecewise_constant(name: str, numpy: np.ufunc, **fields: Any) -> Primitive:
    """Register an elementwise function whose derivative is zero wherever it exists."""
    return elementwise(name, numpy=numpy, vjp=FLAT, jvp=FLAT, **fields)


def discrete(name: str, numpy: np.ufunc, **fields: Any) -> Primitive:
    """Register an elementwise function whose result is boolean or an integer."""
    return elementwise(name, numpy=numpy, vjp=DISCRETE, jvp=DISCRETE, **fields)


def add_terms(terms: Iterable[Value | None]) -> Value | None:
    """The sum of the terms that are not None; None if all are."""
    total = None
    for term in terms:
        if term is not None:
            total = term if total is None else total + term
    return total


# ---- composites ----


def composite(name: str, decompose: Callable, **fields: Any) -> Primitive:
    """Register an operation that is a program of other operations, traced as one bind.

    ``decompose(*args, **attrs)`` writes that program, on Values. The type rule, the numerics and
    every rule that is not given follow from it. With ``impl(xp, *args, **attrs)`` the numerics are
    NumPy's own function, bit for bit, where the array module has it.
    """
    return register(composite_record(name, decompose, **fields))


def dtypes_for_result(dtype: np.dtype, count: int) -> list[np.dtype]:
    """The dtypes of ``count`` operands that are all cast to the dtype of the result."""
    return [dtype] * count


def composite_record(
    name: str,
    decompose: Callable,
    *,
    impl: Callable | None = None,
    aval: Callable | None = None,
    vjp: Rule | None = None,
    jvp: Rule | None = None,
    **fields: Any,
) -> Primitive:
    """The record of a composite, which is not registered."""
    several = bool(fields.get("results"))
    made_impl, made_aval = composite_numerics(decompose, several, name)
    by_vjp, by_jvp = composite_rules(decompose, several)
    if vjp is None:  # batching the decomposition would lose a derivative rule of the composite
        fields.setdefault("batch", composite_batch(partial(decomposition, decompose), several))
    return Primitive(
        name,
        _impl_with_fallback(impl, made_impl, fields.get("numpy", ())) if impl else made_impl,
        aval or made_aval,
        vjp=vjp or by_vjp,
        jvp=jvp or by_jvp,
        decompose=decompose,
        holds_lambdas=True,
        **{"attributes": decompose, **fields},
    )


def _impl_with_fallback(
    impl: Callable, fallback: Callable, functions: Iterable[Callable]
) -> Callable:
    """``impl``, which calls the first of NumPy's ``functions``; ``fallback`` where the array module
    lacks that function.
    """
    function = next(iter(functions), None)
    *_, where = (getattr(function, "__module__", None) or "numpy").partition("numpy")
    path = [*where.strip(".").split("."), getattr(function, "__name__", "")]

    def numerics(xp, *args, call, **attrs):
        if xp is np or _has_function(xp, path) or _module_attribute(np, path) is not function:
            return impl(xp, *args, **attrs)
        return fallback(xp, *args, call=call, **attrs)

    facts: Any = numerics
    facts.for_numpy = impl  # without ``call``, for plans
    return numerics


def _has_function(xp, path: list[str]) -> bool:
    """Whether an array module has NumPy's function at a path such as linalg.norm, with all its
    parameters.
    """
    by_parts = getattr(xp, "by_parts", None)
    is_other = by_parts is not None and by_parts(".".join(filter(None, path)))
    return not is_other and _module_attribute(xp, path) is not None


def _module_attribute(xp, path: list[str]) -> Any:
    """The attribute of an array module at a path such as linalg.norm; None if it is missing."""
    for name in filter(None, path):
        xp = getattr(xp, name, None)
    return xp


def cotangents_of_rule(name: str, result: Any, count: int) -> tuple:
    """What the vjp rule of an operation returned for ``count`` operands, as a tuple.

    Raises DTypeError or ShapeError unless it is a tuple or a list with one cotangent for each.
    """
    if not isinstance(result, tuple | list):
        raise DTypeError(
            f"{name}: its vjp rule must return a tuple of cotangents, found {result!r}\n"
            "  write (ct,) for one operand"
        )
    if len(result) != count:
        raise ShapeError(
            f"{name}: its vjp rule gave {len(result)} cotangents for {count} operands\n"
            "  return a tuple with one for each operand, None for a zero"
        )
    return tuple(result)

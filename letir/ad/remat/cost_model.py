"""The cost model of rematerialisation: the costs of keeping and of recomputing a value.

``recomputation_cost(bind)`` is one of four grades. ``nbytes(local)`` is the memory of a value,
maybe symbolic; ``nominal_bytes(local)`` is always a number, an estimate if sizes are unknown.
"""

from letir.ast.bodies import bodies_of
from letir.ast.primitive import Primitive
from letir.ast.terms import Bind, Lambda, Local
from letir.ast.types import ArrayType, Size
from letir.ops.define.records import decomposition
from letir.passes.memory import aliases

FREE, CHEAP, MODERATE, EXPENSIVE = range(4)  # cost grades; None: must not be recomputed
_NOMINAL = 1024  # assumed for a symbolic size, and for the sides of arrays of unknown shape
# by ``Primitive.cost``
GRADES = {"free": FREE, "cheap": CHEAP, "moderate": MODERATE, "expensive": EXPENSIVE}


def recomputation_cost(bind: Bind) -> int | None:
    """The cost of recomputing ``bind``: FREE, CHEAP, MODERATE or EXPENSIVE.

    None if it must not be recomputed: effects, random numbers, and users' operations that are not
    declared elementwise.
    """
    op = bind.op
    if op.effect or op.random or not bind.binders:
        return None
    if op.cost in GRADES:
        return GRADES[op.cost]
    if op.elementwise:
        return MODERATE
    if op.is_user_defined:  # it may be impure
        return None
    return _cost_of_bodies(bind) if op.holds_lambdas else EXPENSIVE


def _cost_of_bodies(bind: Bind) -> int | None:
    """The grade of the most expensive bind in the bodies or the decomposition of an operation.

    Loops and branches are at least EXPENSIVE; composites and ``cost="bodies"`` at least CHEAP.
    """
    op, types = bind.op, [arg.type for arg in bind.args]
    least = CHEAP if op.cost == "bodies" else EXPENSIVE
    bodies = bodies_of(bind)
    if op.decompose is not None:
        if None in types:
            return EXPENSIVE
        kinds = tuple([aval if isinstance(aval, ArrayType) else None for aval in types])
        least, bodies = CHEAP, (decomposition(op.decompose, kinds, dict(bind.attrs)),)
    # memo: many binds share one body, which is traversed once
    grades = [body.memo(_most_expensive_grade) for body in bodies]
    return None if None in grades else max([least, *grades])


def _most_expensive_grade(body: Lambda) -> int | None:
    grades = [recomputation_cost(bind) for bind in body.binds]
    return None if None in grades else max(grades, default=FREE)


def nbytes(local: Local) -> int | Size | None:
    """The bytes of a value: an int, a polynomial in symbolic sizes, or None if unknown."""
    aval = local.type
    return None if aval is None else aval.size * aval.dtype.itemsize


def nominal_bytes(local: Local, op: Primitive | None = None) -> int:
    """``nbytes`` with ``_NOMINAL`` for each symbolic size; ``op``: the operation of the value."""
    if op is not None and op.reads_sizes_only:  # a few integers, even if the rank is unknown
        return 8
    result = nbytes(local)
    if type(result) is Size:
        return result.evaluate(dict.fromkeys(result.names, _NOMINAL))
    return 8 * _NOMINAL**2 if result is None else result  # a float64 matrix of nominal sides


def is_view_or_identity(bind: Bind) -> bool:
    """Whether the results of ``bind`` share the memory of its first operand.

    A reshape counts as a view, though it copies an operand that is not contiguous.
    """
    op = bind.op
    # an identity such as stop_gradient is free and may alias its operand
    is_same = op.memory == "may_alias" and op.cost == "free" and type(bind.args[0]) is Local
    return is_same or aliases.is_view(bind)

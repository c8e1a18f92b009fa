"""What it costs to keep a value and what to compute it again: what policies weigh.

``recomputation_cost(bind)`` is one of four grades, ``nbytes(local)`` the bytes as far as they are
known, ``nominal_bytes(local)`` a number in their place where they are not.
"""

from letir.ast.bodies import bodies_of
from letir.ast.primitive import Primitive
from letir.ast.terms import Bind, Lambda, Local
from letir.ast.types import ArrayType, Size
from letir.ops.define.records import decomposition
from letir.passes.memory import aliases

FREE, CHEAP, MODERATE, DEAR = range(4)  # the grades; None: it is never computed again
_NOMINAL = 1024  # stands for a size that is known by name only, and for the sides of unknown arrays
GRADES = {"free": FREE, "cheap": CHEAP, "moderate": MODERATE, "dear": DEAR}  # of records


def recomputation_cost(bind: Bind) -> int | None:
    """What it costs to compute ``bind`` again: FREE, CHEAP, MODERATE or DEAR.

    None where that must not be done: effects, random numbers, operations of the user's own that do
    not say that they are elementwise.
    """
    op = bind.op
    if op.effect or op.random or not bind.binders:
        return None
    if op.cost in GRADES:
        return GRADES[op.cost]
    if op.elementwise:
        return MODERATE
    if op.is_users:  # about which nothing else is known
        return None
    return _of_bodies(bind) if op.holds_lambdas else DEAR


def _of_bodies(bind: Bind) -> int | None:
    """The grade of an operation that holds Lambdas or stands for one: that of its dearest bind.

    Other than composites and steps of gradients these are loops and branches, which are dear.
    """
    op, types = bind.op, [arg.type for arg in bind.args]
    least = CHEAP if op.cost == "bodies" else DEAR
    bodies = bodies_of(bind)
    if op.decompose is not None:
        if None in types:
            return DEAR
        kinds = tuple([kind if isinstance(kind, ArrayType) else None for kind in types])
        least, bodies = CHEAP, (decomposition(op.decompose, kinds, dict(bind.attrs)),)
    # memo: many binds hold one body, which would be walked through for each of them
    grades = [body.memo(_dearest_grade) for body in bodies]
    return None if None in grades else max([least, *grades])


def _dearest_grade(body: Lambda) -> int | None:
    grades = [recomputation_cost(bind) for bind in body.binds]
    return None if None in grades else max(grades, default=FREE)


def nbytes(local: Local) -> int | Size | None:
    """The bytes of a value: a number, a polynomial in named sizes, or None if it is unknown."""
    kind = local.type
    return None if kind is None else kind.size * kind.dtype.itemsize


def nominal_bytes(local: Local, op: Primitive | None = None) -> int:
    """``nbytes`` as a number: with ``_NOMINAL`` for each name; ``op`` is what makes the value."""
    if op is not None and op.reads_sizes_only:  # a few integers, also where the rank is unknown
        return 8
    found = nbytes(local)
    if type(found) is Size:
        return found.evaluate(dict.fromkeys(found.names, _NOMINAL))
    return 8 * _NOMINAL**2 if found is None else found  # a float64 matrix of nominal sides


def is_view(bind: Bind) -> bool:
    """Whether the results of ``bind`` share the memory of its first operand.

    A reshape is taken for a view, though it copies where the elements are in another order.
    """
    op = bind.op
    # what hands its operand on, such as stop_gradient, costs nothing and may alias
    is_same = op.memory == "may_alias" and op.cost == "free" and type(bind.args[0]) is Local
    return is_same or aliases.is_view(bind)

"""What it costs to keep a value and what to compute it again: what policies weigh.

``recomputation(bind)`` is one of four grades, ``nbytes(local)`` the bytes as far as they are known,
``weight(local)`` a number in their place where they are not.
"""

from letir.ast.bodies import bodies_of
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.terms import Bind, Lambda, Local
from letir.ast.types import ArrayType, Size
from letir.ops.autodiff.gradient_steps import grad_of, when_defined
from letir.ops.define.records import decomposition

FREE, CHEAP, MODERATE, DEAR = range(4)  # the grades; None: it is never computed again
_NOMINAL = 1024  # stands for a size that is known by name only, and for the sides of unknown arrays

# Views of an operand, and arrays that are made of nothing.
_VIEWS = "transpose expand_dims squeeze reshape broadcast_to split stop_gradient barrier real imag"
_MADE = "constant zeros ones full eye arange size weaken"
# One pass over the operands, of a few instructions an element.
_SIMPLE = """
    add sub mul div neg positive conj maximum minimum square reciprocal sqrt abs sign
    floor ceil trunc rint
    equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor
    logical_not bitwise_and bitwise_or bitwise_xor invert isnan isinf isfinite where clip cast copy
    instantiate autograd_add
"""
# One pass or a few: sums of elements, elements in other places.
_PASSES = """
    sum_to_size sum mean prod max min any all argmax argmin cumsum flip concatenate stack pad
    index index_set index_add assemble
"""
GRADES = dict.fromkeys((_VIEWS + " " + _MADE).split(), FREE)
GRADES |= dict.fromkeys(_SIMPLE.split(), CHEAP) | dict.fromkeys(_PASSES.split(), MODERATE)
_VIEW_OPS = frozenset(_VIEWS.split())


def recomputation(bind: Bind) -> int | None:
    """What it costs to compute ``bind`` again: FREE, CHEAP, MODERATE or DEAR.

    None where that must not be done: effects, random numbers, operations of the user's own that do
    not say that they are elementwise.
    """
    op = bind.op
    if op.effect or op.random or not bind.binders:
        return None
    found = GRADES.get(op.name)
    if found is not None:
        return found
    if op.elementwise:
        return MODERATE
    if "." in op.name:  # module.name: the user's own, about which nothing else is known
        return None
    return _of_bodies(bind) if op.holds_lambdas else DEAR


def _of_bodies(bind: Bind) -> int | None:
    """The grade of an operation that holds Lambdas or stands for one: that of its dearest bind.

    Other than composites and steps of gradients these are loops and branches, which are dear.
    """
    op, types = bind.op, [arg.type for arg in bind.args]
    # these only hold a rule, or elementwise operations
    least = CHEAP if op in (grad_of, when_defined) or op.name == "fused" else DEAR
    bodies = bodies_of(bind)
    if op.decompose is not None:
        if None in types:
            return DEAR
        kinds = tuple([kind if isinstance(kind, ArrayType) else None for kind in types])
        least, bodies = CHEAP, (decomposition(op.decompose, kinds, dict(bind.attrs)),)
    # memo: many binds hold one body, which would be walked through for each of them
    grades = [body.memo(_dearest) for body in bodies]
    return None if None in grades else max([least, *grades])


def _dearest(body: Lambda) -> int | None:
    grades = [recomputation(bind) for bind in body.binds]
    return None if None in grades else max(grades, default=FREE)


def nbytes(local: Local) -> int | Size | None:
    """The bytes of a value: a number, a polynomial in named sizes, or None if it is unknown."""
    kind = local.type
    return None if kind is None else kind.size * kind.dtype.itemsize


def weight(local: Local, op: Primitive | None = None) -> int:
    """``nbytes`` as a number: with ``_NOMINAL`` for each name; ``op`` is what makes the value."""
    if op is PRIMITIVES["size"]:  # a few integers, also where the rank is unknown
        return 8
    found = nbytes(local)
    if type(found) is Size:
        return found.evaluate(dict.fromkeys(found.names, _NOMINAL))
    return 8 * _NOMINAL**2 if found is None else found  # a float64 matrix of nominal sides


def is_view(bind: Bind) -> bool:
    """Whether the results of ``bind`` share the memory of its first operand.

    That of ``reshape`` does unless the elements are in another order.
    """
    name, args = bind.op.name, bind.args
    if name == "index":
        return len(args) == 1  # slices and integers only; index arrays, further operands, copy
    if name in ("real", "imag"):
        return args[0].type is not None
    return name in _VIEW_OPS and bool(args) and type(args[0]) is Local

"""``canonicalize_ops``: a canonical form of each operation, the only one that later passes handle.

Operands are swapped only if that changes no bit. A sum of two nans has the bits of the first, so
floating sums and products keep the order of operands unless one is a number; complex products, and
the maximum of 0.0 and -0.0, always keep it.
"""

from collections.abc import Callable

from letir.ast import entry_point
from letir.ast.attrs import Attrs
from letir.ast.primitive import Primitive
from letir.ast.process_state import paused_gc
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Bind, Const, Lambda, Local
from letir.ops.elementwise.comparisons_and_where import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    equal,
    greater,
    greater_equal,
    invert,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
    where,
)
from letir.ops.elementwise.ufuncs import (
    add,
    div,
    maximum,
    minimum,
    mul,
    neg,
    power,
    reciprocal,
    square,
    sub,
)
from letir.ops.reductions.reductions import all_, any_, argmax, argmin, max_, mean, min_, sum_
from letir.ops.shape.reshape_and_ravel import reshape
from letir.ops.shape.transpose import normalize_axes, transpose
from letir.ops.shape.unit_axes_and_flip import expand_dims, flip, squeeze
from letir.passes.peephole_rules.algebra import power_of, replace_operation
from letir.passes.peephole_rules.driver import apply_rules, merge_rules
from letir.passes.peephole_rules.movement import replace_attrs, transpose_order
from letir.passes.peephole_rules.value_facts import ValueFacts
from letir.passes.type_propagation import map_fitting_bodies

_MIRRORED = {less: greater, less_equal: greater_equal, greater: less, greater_equal: less_equal}
_LOGICAL = {
    bitwise_and: logical_and,
    bitwise_or: logical_or,
    bitwise_xor: logical_xor,
    invert: logical_not,
}


@entry_point
@paused_gc()
def canonicalize_ops(fn: Lambda) -> Lambda:
    """Bring each operation into its canonical form, also in bodies; results keep their bits.

    Numbers become the second operand, ``x > y`` becomes ``y < x``, ``x**2`` and ``square(x)``
    become ``x * x``, axes are non-negative, shapes have no -1, equal parts of ``split`` are given
    by their number, and booleans are combined by logical operations. Linear; a canonical program is
    returned unchanged.

    >>> from letir.ast.text.parser import parse
    >>> f = parse('''lambda %0: float64[2, 3], %1: float64[2, 3] {
    ...   %2: float64[2, 3] = mul(2, %0);
    ...   %3: float64[2, 3] = square(%2);
    ...   %4: bool[2, 3] = greater(%3, %1);
    ...   %5: float64[2] = sum(%3, axis=-1);
    ...   return (%4, %5) }''')
    >>> print(canonicalize_ops(f).listing(), end="")
    %2 = mul %0, 2
    %3 = mul %2, %2
    %4 = less %1, %3
    %5 = sum %3, 1, None, False, None
    return (%4, %5)
    """
    return map_fitting_bodies(fn, _canonical_level)


def _canonical_level(fn: Lambda) -> Lambda:
    return apply_rules(fn, _BY_NAME)


# ---- operands ----


def _number_second(*kinds: str) -> Callable:
    """The rule for a commutative operation: a number becomes the second operand, and so does the
    later operand for dtypes of these kinds.
    """
    may_swap = frozenset("".join(kinds))

    def rule(bind: Bind, facts: ValueFacts) -> Bind | None:
        x, y = bind.args
        if type(y) is Const or x.type is None or y.type is None:
            return None
        if type(x) is Const:
            return None if x.value != x.value else replace_operation(bind, bind.op, y, x)  # no nan
        if x.type.dtype.kind in may_swap and y.type.dtype.kind in may_swap:
            return replace_operation(bind, bind.op, y, x) if facts.is_before(y, x) else None
        return None

    return rule


def _real_number_second(bind: Bind, facts: ValueFacts) -> Bind | None:
    """A number becomes the second operand, except in complex products: order affects bits."""
    return None if bind.binders[0].type.dtype.kind == "c" else _number_second("biu")(bind, facts)


def _extremum_number_second(bind: Bind, facts: ValueFacts) -> Bind | None:
    """A number becomes the second operand, except of floats: order affects signs of zeros."""
    return _number_second("biu")(bind, facts) if bind.binders[0].type.dtype.kind in "biu" else None


def _number_on_the_right(bind: Bind, facts: ValueFacts) -> Bind | None:
    """A number becomes the second operand, and ``greater`` of two arrays becomes ``less``."""
    x, y = bind.args
    if any(arg.type is None or arg.type.dtype.kind == "c" for arg in bind.args):
        return None
    is_number_first = type(x) is Const and type(y) is Local
    is_greater = bind.op in (greater, greater_equal) and type(x) is type(y) is Local
    return (
        replace_operation(bind, _MIRRORED[bind.op], y, x) if is_number_first or is_greater else None
    )


# ---- synonyms ----


def _negation_of_product(bind: Bind, facts: ValueFacts) -> Bind | None:
    """x * -1, x / -1, -0.0 - x and, for integers, 0 - x become -x."""
    (y,), (x, n) = bind.binders, bind.args
    kind = y.type.dtype.kind
    if bind.op is sub:
        x, n = n, x
    number = n.value if type(n) is Const and type(n.value) in (int, float) else None
    if bind.op is sub:
        is_negative = number == 0 and (kind in "iu" or str(float(number)) == "-0.0")
    else:  # NumPy refuses -1 as an unsigned number
        is_negative = number == -1 and kind != "u"
    if not is_negative or kind not in "iuf" or type(x) is not Local or x.type.weak:
        return None
    return replace_operation(bind, neg, x) if kind == "f" or x.type.dtype == y.type.dtype else None


def _square_as_product(bind: Bind, facts: ValueFacts) -> Bind | None:
    """square(x) becomes x * x."""
    (x,) = bind.args
    is_real = type(x) is Local and bind.binders[0].type.dtype.kind != "c" and not x.type.weak
    return replace_operation(bind, mul, x, x) if is_real else None


def _reciprocal_as_quotient(bind: Bind, facts: ValueFacts) -> Bind | None:
    """reciprocal(x) becomes 1 / x, except for integers."""
    is_float = bind.binders[0].type.dtype.kind == "f"
    return replace_operation(bind, div, Const(1), *bind.args) if is_float else None


def _logical_for_bitwise(bind: Bind, facts: ValueFacts) -> Bind | None:
    """Bitwise operations on booleans become logical operations."""
    is_bool = all(arg.type is not None and arg.type.dtype.kind == "b" for arg in bind.args)
    return replace_operation(bind, _LOGICAL[bind.op], *bind.args) if is_bool else None


def _negated_condition(bind: Bind, facts: ValueFacts) -> Bind | None:
    """where(not c, x, y) becomes where(c, y, x)."""
    condition, x, y = bind.args
    if facts.op_of(condition) is not logical_not:
        return None
    (c,) = facts.producers[condition].args
    is_same = c.type is condition.type and facts.has_order_of_copy(c)
    return replace_operation(bind, where, c, y, x) if is_same else None


# ---- axes, shapes, parts ----


def _nonnegative_axes(added: Callable[[Bind], int], several: bool = False) -> Callable:
    """The rule that makes axes non-negative; ``added``: the number of axes that the result adds.

    With ``several``, a tuple of all axes becomes None.
    """

    def rule(bind: Bind, facts: ValueFacts) -> Bind | None:
        axis, x = bind.attrs["axis"], bind.args[0]
        if axis is None or x.type is None:
            return None
        ndim = x.type.ndim + added(bind)
        axes = normalize_axes(axis, ndim)
        axes = tuple(sorted(axes))
        normalized = axes[0] if len(axes) == 1 else axes
        if several and len(axes) == ndim:
            normalized = None
        return (
            None
            if normalized == axis and type(normalized) is type(axis)
            else replace_attrs(bind, bind.args, axis=normalized)
        )

    return rule


def _operand_axes(bind: Bind) -> int:
    """The number of axes of the operand."""
    return 0


def _added_axes(bind: Bind) -> int:
    """The new axes of ``expand_dims`` or ``stack``, as non-negative numbers."""
    axis = bind.attrs["axis"]
    return len(axis) if type(axis) is tuple else 1


def _squeezed_axes(bind: Bind, facts: ValueFacts) -> Bind | None:
    """The axes of length 1 that ``squeeze`` removes, as numbers."""
    x = bind.args[0]
    if bind.attrs["axis"] is not None or x.type is None or not is_static_shape(x.type.shape):
        return _nonnegative_axes(_operand_axes)(bind, facts)
    axes = tuple([i for i, n in enumerate(x.type.shape) if n == 1])
    return replace_attrs(bind, bind.args, axis=axes) if axes and len(axes) > 1 else None


def _transposed_axes(bind: Bind, facts: ValueFacts) -> Bind | None:
    """The axes of ``transpose`` as non-negative numbers; None for the reverse order."""
    if bind.attrs["axes"] is None:
        return None
    order = transpose_order(bind)
    axes = None if order == tuple(range(len(order)))[::-1] else order
    return replace_attrs(bind, bind.args, axes=axes) if axes != bind.attrs["axes"] else None


def _known_shape(bind: Bind, facts: ValueFacts) -> Bind | None:
    """The shape of ``reshape`` with -1 replaced by its size."""
    shape = bind.binders[0].type.shape
    is_open = bind.attrs["shape"] is not None and -1 in bind.attrs["shape"]
    return (
        replace_attrs(bind, bind.args, shape=shape) if is_open and is_static_shape(shape) else None
    )


def _counted_parts(bind: Bind, facts: ValueFacts) -> Bind | None:
    """``split`` into equal parts given by their number, along a non-negative axis."""
    x, attrs = bind.args[0], bind.attrs
    if x.type is None or not bind.binders:
        return None
    (axis,) = normalize_axes(attrs["axis"], x.type.ndim)
    sections, sizes = attrs["sections"], {b.type.shape[axis] for b in bind.binders}
    n = x.type.shape[axis]
    is_equal = type(sections) is tuple and len(sizes) == 1 and type(n) is int and n > 0
    if is_equal:  # parts of one positive length have no gaps, and do not overlap
        sections = len(bind.binders)
    if (sections, axis) == (attrs["sections"], attrs["axis"]):
        return None
    return bind.replace(attrs=Attrs(sections=sections, axis=axis))


_SWAPS, _WHOLE = (_number_second("biu"),), (_extremum_number_second,)
_SETS, _ONE = (_nonnegative_axes(_operand_axes, several=True),), (_nonnegative_axes(_operand_axes),)
_RULES: dict[Primitive | str, tuple[Callable, ...]] = {
    add: _SWAPS,
    mul: (_negation_of_product, _real_number_second),
    div: (_negation_of_product,),
    sub: (_negation_of_product,),
    maximum: _WHOLE,
    minimum: _WHOLE,
    **dict.fromkeys(
        (equal, not_equal, logical_and, logical_or, logical_xor), (_number_second("biufc"),)
    ),
    **dict.fromkeys((bitwise_and, bitwise_or, bitwise_xor), (_logical_for_bitwise, *_SWAPS)),
    **dict.fromkeys(_MIRRORED, (_number_on_the_right,)),
    invert: (_logical_for_bitwise,),
    square: (_square_as_product,),
    power: (power_of,),
    reciprocal: (_reciprocal_as_quotient,),
    where: (_negated_condition,),
    **dict.fromkeys((sum_, mean, "prod", max_, min_, any_, all_), _SETS),
    **dict.fromkeys((argmax, argmin, "concatenate", flip), _ONE),
    **dict.fromkeys((expand_dims, "stack"), (_nonnegative_axes(_added_axes),)),
    squeeze: (_squeezed_axes,),
    transpose: (_transposed_axes,),
    reshape: (_known_shape,),
    "split": (_counted_parts,),
}
_BY_NAME = merge_rules(_RULES)

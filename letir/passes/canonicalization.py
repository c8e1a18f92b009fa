"""``canonicalize_ops``: one spelling for each operation, so that later passes know only that one.

Operands change places only where that changes no bit. A sum of two nans has the bits of the first,
so that floating sums and products keep the order of their operands unless one is a number; products
of complex numbers and the larger of 0.0 and -0.0 keep it in any case.
"""

from collections.abc import Callable

from letir.ast.attrs import Attrs
from letir.ast.gc_pause import paused_gc
from letir.ast.primitive import Primitive
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
from letir.ops.reductions.product import prod
from letir.ops.reductions.reductions import all_, any_, argmax, argmin, max_, mean, min_, sum_
from letir.ops.shape.shape_and_creation import reshape
from letir.ops.shape.transpose_join_split import (
    concatenate,
    normalize_axes,
    split,
    stack,
    transpose,
)
from letir.ops.shape.unit_axes_and_flip import expand_dims, flip, squeeze
from letir.passes.peephole_rules.algebra import power_of, replace_operation
from letir.passes.peephole_rules.driver import apply_rules
from letir.passes.peephole_rules.movement import replace_attrs, transpose_order
from letir.passes.peephole_rules.value_facts import ValueFacts
from letir.passes.type_propagation import throughout_fitting

_MIRRORED = {less: greater, less_equal: greater_equal, greater: less, greater_equal: less_equal}
_LOGICAL = {
    bitwise_and: logical_and,
    bitwise_or: logical_or,
    bitwise_xor: logical_xor,
    invert: logical_not,
}


@paused_gc()
def canonicalize_ops(fn: Lambda) -> Lambda:
    """Spell each operation in one way, in bodies too; results are the same to the bit.

    Numbers stand second, ``x > y`` is ``y < x``, ``x**2`` and ``square(x)`` are ``x * x``, axes
    count from 0, shapes have no -1, equal parts of ``split`` are counted, truth values are combined
    by logic and not by bits. Linear; a program that is spelled so is returned as it is.

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
    return throughout_fitting(fn, _spelled)


def _spelled(fn: Lambda) -> Lambda:
    return apply_rules(fn, _RULES)


# ---- operands ----


def _number_last(*kinds: str) -> Callable:
    """The rule for an operation whose operands may change places: a number is the second; so is
    what is made later, for dtypes of these kinds.
    """
    may_swap = frozenset("".join(kinds))

    def rule(bind: Bind, known: ValueFacts) -> Bind | None:
        x, y = bind.args
        if type(y) is Const or x.type is None or y.type is None:
            return None
        if type(x) is Const:
            return None if x.value != x.value else replace_operation(bind, bind.op, y, x)  # no nan
        if x.type.dtype.kind in may_swap and y.type.dtype.kind in may_swap:
            return replace_operation(bind, bind.op, y, x) if known.is_before(y, x) else None
        return None

    return rule


def _real_product(bind: Bind, known: ValueFacts) -> Bind | None:
    """A number last, unless the product is complex: its terms may be rounded by pairs."""
    return None if bind.binders[0].type.dtype.kind == "c" else _number_last("biu")(bind, known)


def _whole_extremum(bind: Bind, known: ValueFacts) -> Bind | None:
    """A number last, unless zeros have signs: either may be the result."""
    return _number_last("biu")(bind, known) if bind.binders[0].type.dtype.kind in "biu" else None


def number_on_the_right(bind: Bind, known: ValueFacts) -> Bind | None:
    """A number is the second operand, and of two arrays the first is less."""
    x, y = bind.args
    if any(arg.type is None or arg.type.dtype.kind == "c" for arg in bind.args):
        return None
    is_number_first = type(x) is Const and type(y) is Local
    is_greater = bind.op in (greater, greater_equal) and type(x) is type(y) is Local
    return (
        replace_operation(bind, _MIRRORED[bind.op], y, x) if is_number_first or is_greater else None
    )


# ---- other words for the same ----


def negation_of_product(bind: Bind, known: ValueFacts) -> Bind | None:
    """x * -1, x / -1, -0.0 - x and, of integers, 0 - x are -x."""
    (y,), (x, n) = bind.binders, bind.args
    kind = y.type.dtype.kind
    if bind.op is sub:
        x, n = n, x
        is_zero = type(n) is Const and type(n.value) in (int, float) and n.value == 0
        is_negative = is_zero and (kind in "iu" or str(float(n.value)) == "-0.0")
    else:  # NumPy refuses -1 as an unsigned number
        is_number = type(n) is Const and type(n.value) in (int, float)
        is_negative = is_number and n.value == -1 and kind != "u"
    if not is_negative or kind not in "iuf" or type(x) is not Local or x.type.weak:
        return None
    return replace_operation(bind, neg, x) if kind == "f" or x.type.dtype == y.type.dtype else None


def _own_product(bind: Bind, known: ValueFacts) -> Bind | None:
    """square(x) is x * x."""
    (x,) = bind.args
    is_real = type(x) is Local and bind.binders[0].type.dtype.kind != "c" and not x.type.weak
    return replace_operation(bind, mul, x, x) if is_real else None


def _own_quotient(bind: Bind, known: ValueFacts) -> Bind | None:
    """reciprocal(x) is 1 / x; that of an integer is one."""
    is_float = bind.binders[0].type.dtype.kind == "f"
    return replace_operation(bind, div, Const(1), *bind.args) if is_float else None


def logical_for_bitwise(bind: Bind, known: ValueFacts) -> Bind | None:
    """Bits of truth values are truth values."""
    is_bool = all(arg.type is not None and arg.type.dtype.kind == "b" for arg in bind.args)
    return replace_operation(bind, _LOGICAL[bind.op], *bind.args) if is_bool else None


def _on_condition(bind: Bind, known: ValueFacts) -> Bind | None:
    """where(not c, x, y) is where(c, y, x)."""
    condition, x, y = bind.args
    if known.op_of(condition) is not logical_not:
        return None
    (c,) = known.made[condition].args
    is_same = c.type is condition.type and known.is_plain(c)
    return replace_operation(bind, where, c, y, x) if is_same else None


# ---- axes, shapes, parts ----


def _on_axes(added: Callable[[Bind], int], several: bool = False) -> Callable:
    """The rule that counts axes from 0; ``added``: how many more of them the result has. With
    ``several``, those of all are None.
    """

    def rule(bind: Bind, known: ValueFacts) -> Bind | None:
        axis, x = bind.attrs["axis"], bind.args[0]
        if axis is None or x.type is None:
            return None
        ndim = x.type.ndim + added(bind)
        axes = normalize_axes(axis, ndim)
        axes = tuple(sorted(axes))
        found = axes[0] if len(axes) == 1 else axes
        if several and len(axes) == ndim:
            found = None
        return (
            None
            if found == axis and type(found) is type(axis)
            else replace_attrs(bind, bind.args, axis=found)
        )

    return rule


def _no_more(bind: Bind) -> int:
    """As many axes as the operand has."""
    return 0


def _made_axes(bind: Bind) -> int:
    """The axes of length 1 that ``expand_dims`` makes, or the one of ``stack``."""
    axis = bind.attrs["axis"]
    return len(axis) if type(axis) is tuple else 1


def _squeezed_axes(bind: Bind, known: ValueFacts) -> Bind | None:
    """The axes of length 1 by number."""
    x = bind.args[0]
    if bind.attrs["axis"] is not None or x.type is None or not is_static_shape(x.type.shape):
        return _on_axes(_no_more)(bind, known)
    axes = tuple([i for i, n in enumerate(x.type.shape) if n == 1])
    return replace_attrs(bind, bind.args, axis=axes) if axes and len(axes) > 1 else None


def _transposed_axes(bind: Bind, known: ValueFacts) -> Bind | None:
    """The axes from 0; None for the reverse order."""
    if bind.attrs["axes"] is None:
        return None
    order = transpose_order(bind)
    found = None if order == tuple(range(len(order)))[::-1] else order
    return replace_attrs(bind, bind.args, axes=found) if found != bind.attrs["axes"] else None


def _whole_shape(bind: Bind, known: ValueFacts) -> Bind | None:
    """The size that -1 stands for."""
    shape = bind.binders[0].type.shape
    is_open = bind.attrs["shape"] is not None and -1 in bind.attrs["shape"]
    return (
        replace_attrs(bind, bind.args, shape=shape) if is_open and is_static_shape(shape) else None
    )


def _counted_parts(bind: Bind, known: ValueFacts) -> Bind | None:
    """Equal parts by their number, along an axis from 0."""
    x, attrs = bind.args[0], bind.attrs
    if x.type is None or not bind.binders:
        return None
    (axis,) = normalize_axes(attrs["axis"], x.type.ndim)
    sections, sizes = attrs["sections"], {b.type.shape[axis] for b in bind.binders}
    n = x.type.shape[axis]
    is_equal = type(sections) is tuple and len(sizes) == 1 and type(n) is int and n > 0
    # parts that overlap, or leave something out, may be equally long too
    if is_equal and sections == tuple(range(n // len(bind.binders), n, n // len(bind.binders))):
        sections = len(bind.binders)
    if (sections, axis) == (attrs["sections"], attrs["axis"]):
        return None
    return bind.replace(attrs=Attrs(sections=sections, axis=axis))


_SWAPS, _WHOLE = (_number_last("biu"),), (_whole_extremum,)
_SETS, _ONE = (_on_axes(_no_more, several=True),), (_on_axes(_no_more),)
_RULES: dict[Primitive, tuple[Callable, ...]] = {
    add: _SWAPS,
    mul: (negation_of_product, _real_product),
    div: (negation_of_product,),
    sub: (negation_of_product,),
    maximum: _WHOLE,
    minimum: _WHOLE,
    **dict.fromkeys(
        (equal, not_equal, logical_and, logical_or, logical_xor), (_number_last("biufc"),)
    ),
    **dict.fromkeys((bitwise_and, bitwise_or, bitwise_xor), (logical_for_bitwise, *_SWAPS)),
    **dict.fromkeys(_MIRRORED, (number_on_the_right,)),
    invert: (logical_for_bitwise,),
    square: (_own_product,),
    power: (power_of,),
    reciprocal: (_own_quotient,),
    where: (_on_condition,),
    **dict.fromkeys((sum_, mean, prod, max_, min_, any_, all_), _SETS),
    **dict.fromkeys((argmax, argmin, concatenate, flip), _ONE),
    **dict.fromkeys((expand_dims, stack), (_on_axes(_made_axes),)),
    squeeze: (_squeezed_axes,),
    transpose: (_transposed_axes,),
    reshape: (_whole_shape,),
    split: (_counted_parts,),
}

"""Rewrites before clustering, so that more reductions fit into kernels.

``with_parts`` decomposes composite reductions, such as variances, into sums and elementwise binds;
``with_products`` turns sums of equal numbers into products; ``with_numbers`` computes with numbers
before they are copied.
"""

from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import NO_TYPE, Arg, Bind, Const, Lambda, Local
from letir.ast.types import ArrayType
from letir.kernels.reduction_forms import PARTS, is_sum
from letir.kernels.row_passes import reduction_form
from letir.ops.define.records import decomposition
from letir.ops.elementwise.ufuncs import mul
from letir.ops.shape.shape_and_creation import broadcast_to, full
from letir.passes.cse import common_subexpressions
from letir.passes.dead_code_elimination import dead_code
from letir.passes.decomposition import CompositeParts
from letir.passes.fusion.clustering import reduces_much
from letir.passes.peephole_rules.driver import peephole


def with_parts(fn: Lambda) -> Lambda:
    """``fn`` with large composite reductions decomposed; equal parts are computed once.

    Sums may be added in another order than in NumPy's function.
    """
    result = CompositeParts(lambda op: op.reduction == PARTS, _has_simple_parts).decompose_level(fn)
    return fn if result is fn else dead_code(common_subexpressions(peephole(result)))


def _has_simple_parts(bind: Bind) -> bool:
    """Whether a bind reduces many elements by sums and extrema, and neither warns nor raises."""
    aval = bind.binders[0].type
    if not reduces_much(bind) or aval is None or aval.dtype.kind != "f":
        return False
    count = bind.args[0].type.size // aval.size  # of the elements of which each result is made
    if len(bind.args) != 1 or bind.attrs.get("ddof", 0) >= count:
        return False  # NumPy warns of too few degrees of freedom
    parts = decomposition(bind.op.decompose, (bind.args[0].type,), bind.attrs)
    if any(not _is_simple(part) for part in parts.binds):
        return False
    # for a result without axes a ufunc gives a scalar, as reductions do, other functions an array
    last = [part for part in parts.binds if parts.ret.args[0] in part.binders]
    has_ufunc = bool(last) and getattr(last[0].op.impl, "ufunc", None) is not None
    return bool(aval.shape) or has_ufunc


def _is_simple(part: Bind) -> bool:
    op = part.op
    return (
        op.elementwise or op.memory == "view" or op.reduction == PARTS or bool(reduction_form(part))
    )


def with_products(fn: Lambda) -> Lambda:
    """``fn`` in which a sum of copies of one number becomes a product with their count.

    Such sums occur in gradients: the gradient of a sum has the same number at each element, and the
    gradient of a broadcast operand adds these numbers.
    """
    copied: dict[Arg, Local] = {}
    binds: list[Bind] = []
    for bind in fn.binds:
        if _is_copy_of_number(bind):
            copied[bind.binders[0]] = bind.args[0]  # type: ignore[assignment]
        number = copied.get(bind.args[0]) if is_sum(bind.op) else None
        binds += [bind] if number is None else _product_binds(bind, number)
    return fn if not copied else fn.with_binds(binds)


def with_numbers(fn: Lambda) -> Lambda:
    """``fn`` in which cheap operations on copies of numbers compute the number before it is copied.

    Such operations occur in gradients of means, whose derivative is the same at each element. Only
    results that elementwise operations and reductions read: the copies are a view.
    """
    copied: dict[Arg, Arg] = {}
    others = [bind for bind in fn.binds if not (bind.op.elementwise or bind.op.reduction)]
    kept = {*fn.ret.locals()}.union(*[bind.locals() for bind in others])
    binds: list[Bind] = []
    for bind in fn.binds:
        numbers = tuple([copied.get(arg) if type(arg) is Local else arg for arg in bind.args])
        is_moved = copied and None not in numbers and kept.isdisjoint(bind.binders)
        if _is_copy_of_number(bind):
            copied[bind.binders[0]] = bind.args[0]
        elif is_moved and _is_cheap_array(bind):
            (binder,) = bind.binders
            copied[binder] = number = Local(binder.type.with_shape(()))
            binds.append(bind.replace(binders=(number,), args=numbers))
            attrs = broadcast_to.complete({"shape": binder.type.shape})
            binds.append(Bind((binder,), broadcast_to, (number,), attrs, bind.source))
            continue
        binds.append(bind)
    return fn if len(binds) == len(fn.binds) else fn.with_binds(binds)


def _is_cheap_array(bind: Bind) -> bool:
    """Whether a bind is elementwise, cheap and correctly rounded, and its result is an array with
    elements: with none, NumPy computes nothing that it could warn of.
    """
    op, avals = bind.op, [binder.type for binder in bind.binders]
    if not (op.elementwise and op.exact and op.cost == "cheap") or op.effect or op.random:
        return False
    aval = avals[0] if len(avals) == 1 else None
    is_known = aval is not None and aval is not NO_TYPE and has_static_shape(aval)
    return is_known and bool(aval.shape) and aval.size > 0 and not aval.weak


def _is_copy_of_number(bind: Bind) -> bool:
    """Whether the result of a bind is a view that repeats one floating-point number."""
    is_view = bind.op.memory == "view" and len(bind.args) == 1
    return is_view and type(bind.args[0]) is Local and _is_number(bind.args[0].type)


def _is_number(aval: ArrayType | None) -> bool:
    return aval is not None and aval.shape == () and not aval.weak and aval.dtype.char in "fd"


def _product_binds(bind: Bind, number: Local) -> list[Bind]:
    """The binds for a sum of copies of ``number``."""
    result = bind.binders[0].type
    sizes = getattr(bind.args[0].type, "size", None), getattr(result, "size", None)
    is_known = reduction_form(bind) is not None and all(type(n) is int and n > 0 for n in sizes)
    if not is_known or result.dtype != number.type.dtype:
        return [bind]
    count = Const(float(sizes[0] // sizes[1]))  # type: ignore[operator]
    if not result.shape:
        return [Bind(bind.binders, mul, (number, count), mul.default_attrs, bind.source)]
    product = Local(number.type)
    attrs = full.complete({"shape": result.shape, "dtype": result.dtype})
    return [
        Bind((product,), mul, (number, count), mul.default_attrs, bind.source),
        Bind(bind.binders, full, (product,), attrs, bind.source),
    ]

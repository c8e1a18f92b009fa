"""``with_early_gathers``: select elements before an elementwise operation instead of after it.

A cross entropy selects one logarithm for each label from an array of logarithms. This selection
alone would force the array into memory; if the selected elements are recomputed from selected
operands, the array can be an intermediate value of a kernel.
"""

import math
from collections import Counter

from letir.ast.terms import Arg, Bind, Lambda, Local
from letir.ops.shape.shape_and_creation import broadcast_to

_MIN_RATIO = 8  # the array has at least 8 times as many elements as are selected
_MAX_DEPTH = 4  # the longest chain of binds that is recomputed on selected elements


def with_early_gathers(fn: Lambda) -> Lambda:
    """``fn`` in which elements of cheap elementwise results are computed from selected operands.

    Applies to results with other uses, of which few elements are selected, to an array of one
    dimension, unless such a use needs the whole array in memory. Results are the same to the bit.
    Linear time.
    """
    if not any(bind.op.role == "index" for bind in fn.binds):
        return fn
    makers = _elementwise_makers(fn)
    binds: list[Bind] = []
    for bind in fn.binds:
        if _is_early(bind, makers):
            _select_operands(bind, makers, binds, _MAX_DEPTH)
        else:
            binds.append(bind)
    return fn if len(binds) == len(fn.binds) else fn.with_binds(binds)


def early_gathers(fn: Lambda) -> frozenset[Local]:
    """The results of the selections that ``with_early_gathers`` makes early. Linear time."""
    if not any(bind.op.role == "index" for bind in fn.binds):
        return frozenset()
    makers = _elementwise_makers(fn)
    return frozenset([bind.binders[0] for bind in fn.binds if _is_early(bind, makers)])


def _elementwise_makers(fn: Lambda) -> dict[Local, Bind]:
    """The binds whose results may be computed on selected operands, by result."""
    uses = Counter([arg for bind in fn.binds for arg in set(bind.locals())])
    # the array must have other uses, so that it is still computed, with its floating-point errors
    stored = _stored_values(fn)
    return {
        b.binders[0]: b
        for b in fn.binds
        if len(b.binders) == 1 and uses[b.binders[0]] > 1 and b.binders[0] not in stored
    }


def _stored_values(fn: Lambda) -> set[Arg]:
    """The values that are in memory in any case, because they are results or because an operation
    outside kernels needs them.
    """
    result = set(fn.ret.args)
    for bind in fn.binds:
        is_part = bind.op.elementwise or bind.op.reduction is not None or _selects_vector(bind)
        if not is_part:
            result.update(bind.args)
    return result


def _selects_vector(bind: Bind) -> bool:
    """Whether a bind selects elements of one array as an array of one dimension."""
    return bind.op.role == "index" and len(getattr(bind.binders[0].type, "shape", ())) == 1


def _is_early(bind: Bind, makers: dict[Local, Bind]) -> bool:
    """Whether a bind selects few elements of a result of a cheap elementwise operation."""
    maker = makers.get(bind.args[0]) if bind.op.role == "index" else None  # type: ignore[arg-type]
    if maker is None or not maker.op.elementwise or maker.op.cost != "cheap":
        return False
    shapes = [getattr(arg.type, "shape", None) for arg in (*maker.args, *maker.binders)]
    result = getattr(bind.binders[0].type, "shape", ())
    if any(s is None or type(math.prod(s)) is not int for s in shapes) or len(result) != 1:
        return False
    if any(arg.type.weak for arg in (*maker.args, *maker.binders) if type(arg) is Local):
        return False
    size = math.prod(result)
    return type(size) is int and size * _MIN_RATIO <= math.prod(shapes[-1])


def _select_operands(bind: Bind, makers: dict[Local, Bind], binds: list[Bind], depth: int) -> None:
    """Append binds that select elements of the operands of the operation, and then compute it."""
    maker, (result,) = makers[bind.args[0]], bind.binders  # type: ignore[index]
    shape = maker.binders[0].type.shape
    args: list[Arg] = []
    for arg in maker.args:
        if type(arg) is not Local or not arg.type.shape:
            args.append(arg)
            continue
        full: Local = arg
        if arg.type.shape != shape:
            full = Local(arg.type.with_shape(shape))
            attrs = broadcast_to.complete({"shape": shape})
            binds.append(Bind((full,), broadcast_to, (arg,), attrs, bind.source))
        part = Local(arg.type.with_shape(result.type.shape))
        inner = Bind((part,), bind.op, (full, *bind.args[1:]), bind.attrs, bind.source)
        if depth and _is_early(inner, makers):
            _select_operands(inner, makers, binds, depth - 1)
        else:
            binds.append(inner)
        args.append(part)
    binds.append(Bind((result,), maker.op, tuple(args), maker.attrs, maker.source))

"""Alias analysis: which values of a program may share memory; and ``copy_outliving_views``.

A pass uses this before it replaces one value by another. Laws over all samples check the records.
"""

from collections import Counter
from operator import attrgetter

from letir.ast import entry_point
from letir.ast.builder import LetBuilder
from letir.ast.primitive import Primitive
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Arg, Bind, Lambda, Local, Ret
from letir.ops.elementwise.casting import copy


def may_share(op: Primitive) -> bool:
    """Whether a result of ``op`` may share memory with an operand, or with another result."""
    return op.memory != "new"


def is_view(bind: Bind) -> bool:
    """Whether the results share memory with the first operand, according to the record."""
    op, args = bind.op, bind.args
    if op.memory != "view" or type(args[0]) is not Local:
        return False
    return op.views is None or op.views(*[arg.type for arg in args], **bind.attrs)


def shared_operands(bind: Bind) -> list[Local]:
    """The operands with which a result may share memory, if the record says that it may.

    Of views that is the first one: the others are places, such as ``i`` in ``x[i]``.
    """
    operands = bind.args[:1] if bind.op.memory in ("view", "if_same_shape") else bind.args
    return [arg for arg in operands if type(arg) is Local]


def reads_number(bind: Bind) -> bool:
    """Whether a bind reads one element, which NumPy gives as a scalar and not as a view."""
    if bind.op.role != "index" or bind.binders[0].type is None or bind.binders[0].type.shape:
        return False
    item = bind.attrs["item"]
    return not any(entry is ... for entry in (item if type(item) is tuple else (item,)))


def result_sharing_locals(fn: Lambda) -> set[Local]:
    """The locals with which a result may share memory."""
    result = set(fn.ret.locals())
    for bind in reversed(fn.binds):
        if not result.isdisjoint(bind.binders) and may_share(bind.op):
            result.update(shared_operands(bind))
    return result


def locals_viewed_by_results(fn: Lambda) -> set[Local]:
    """The locals of which a result is a view, or that are returned twice.

    A constant must not replace them: the evaluator copies a constant for each result, so it would
    be neither shared nor read-only.
    """
    results = [arg for arg in fn.ret.args if type(arg) is Local]
    shown, tied = set(results), set()
    if len(shown) < len(results):
        tied = {local for local, count in Counter(results).items() if count > 1}
    for bind in reversed(fn.binds):
        if not shown.isdisjoint(bind.binders) and may_share(bind.op):
            operands = shared_operands(bind)
            shown.update(operands)
            tied.update(operands, bind.binders)
    return tied


def updated_locals(fn: Lambda) -> set[Local]:
    """The locals whose memory an update may reuse."""
    result: set[Local] = set()
    for bind in reversed(fn.binds):
        op = bind.op
        if op.update is not None:
            result.update([arg for arg in bind.args[:1] if type(arg) is Local])
        elif result and not result.isdisjoint(bind.binders) and may_share(op):
            result.update(shared_operands(bind))
    return result


_SMALL = 2  # a view of at most half of the array is copied, instead of the whole array


@entry_point
def copy_outliving_views(fn: Lambda) -> Lambda:
    """Copy views ``x[i]`` that outlive their array, if the last use of the array is an update.

    A live view would prevent the update from happening in place: the gradient of a loop that fills
    a buffer keeps a row of each step, and would copy the whole buffer each time. Linear in the
    number of binds; keeps binders and results.

    >>> from letir.ast.text.parser import parse
    >>> f = parse('''lambda %0: float64[4, 2] {
    ...   %1: float64[4, 2] = exp(%0);
    ...   %2: float64[2] = index(%1, item=0);
    ...   %3: float64[4, 2] = index_set(%1, 1.0, item=1);
    ...   return (%2, %3) }''')
    >>> print(copy_outliving_views(f).listing(), end="")
    %1 = exp %0
    %2 = index %1, 0
    %3 = copy %2, 'K'
    %4 = index_set %1, 1.0, 1
    return (%3, %4)
    """
    if not any(map(attrgetter("op.update"), fn.binds)):
        return fn
    marked = _outliving_parts(fn)
    if not marked:
        return fn
    builder = LetBuilder()
    for bind in fn.binds:
        if bind.binders and bind.binders[0] in marked:
            # the binder is reused for the copy, so that its uses do not change
            part = Local(bind.binders[0].type)
            builder.binds.append(bind.replace(binders=(part,)))
            attrs = copy.complete({})
            builder.binds.append(bind.replace(op=copy, args=(part,), attrs=attrs))
        else:
            builder.binds.append(bind)
    return fn.with_binds(builder.binds)


def _outliving_parts(fn: Lambda) -> set[Local]:
    """The views of an array that are used after the update that is its last use."""
    terms: tuple[Bind | Ret, ...] = (*fn.binds, fn.ret)
    last: dict[Arg, int] = {arg: i for i, term in enumerate(terms) for arg in term.locals()}
    views: dict[Arg, list[Local]] = {}  # by the array whose memory they share
    roots: dict[Arg, Arg] = {}
    own: set[Local] = set()  # arrays that the program allocates
    marked: set[Local] = set()
    for i, bind in enumerate(fn.binds):
        first = bind.args[0] if bind.args else None
        if bind.op.update is not None and last.get(first) == i and first in own:
            later = [view for view in views.pop(first, ()) if last.get(view, 0) > i]
            marked.update([view for view in later if _is_copy_cheaper(view, first)])
        if bind.op.results is None and is_view(bind) and not reads_number(bind):
            root = roots[bind.binders[0]] = roots.get(first, first)
            views.setdefault(root, []).append(bind.binders[0])
        elif bind.op.role != "constant":
            own.update(bind.binders)
    return marked


def _is_copy_cheaper(part: Local, whole: Arg) -> bool:
    """Whether copying a view is cheaper than copying the whole array."""
    if None in (part.type, whole.type):
        return False
    sizes = part.type.size, whole.type.size
    return is_static_shape(sizes) and sizes[0] * _SMALL <= sizes[1]

"""``lower_tuples``: removes packing of values that are unpacked again.

letir has no lists: NumPy code packs values with ``stack`` and ``concatenate``, and unpacks them
with ``split`` and indices.
"""

import operator

from letir.ast import entry_point
from letir.ast.attrs import Attrs
from letir.ast.process_state import paused_gc
from letir.ast.symbolic_sizes import is_static_shape
from letir.ast.terms import Arg, Bind, Lambda, Local
from letir.ops.indexing.basic import index
from letir.ops.shape.concatenate_stack_split import concatenate, split, split_parts, stack
from letir.ops.shape.transpose import normalize_axes
from letir.passes.peephole_rules.value_facts import ValueFacts
from letir.passes.type_propagation import map_fitting_bodies
from letir.visitors.usedef import use_counts

_MIN_RATIO = 2  # if at most one of two parts is used, the used parts become indices


@entry_point
@paused_gc()
def lower_tuples(fn: Lambda) -> Lambda:
    """Replace unpacked parts by the packed values, also in bodies.

    A part of a ``stack`` or ``concatenate`` becomes the packed value, all parts of an array packed
    again become the array, and a ``split`` with few used parts becomes indices. This is done only
    if results keep their bits, kind, memory order and sharing. Linear; dead binds are left to
    ``dead_code``.

    >>> from letir.ast.text.parser import parse
    >>> from letir.passes import dead_code
    >>> f = parse('''lambda %0: float64[3] {
    ...   %1: float64[3] = exp(%0);
    ...   %2: float64[2, 3] = stack(%1, %0, axis=0);
    ...   %3: float64[3] = index(%2, item=0);
    ...   %4: float64[3] = neg(%3);
    ...   %5: float64[1], %6: float64[1], %7: float64[1] = split(%4, sections=3, axis=0);
    ...   return %6 }''')
    >>> print(dead_code(lower_tuples(f)).listing(), end="")
    %1 = exp %0
    %2 = neg %1
    %3 = index %2, 1:2
    return %3
    """
    return map_fitting_bodies(fn, _lower_lists)


def _lower_lists(fn: Lambda) -> Lambda:
    """``fn`` with own binds that read values directly instead of packing and unpacking them."""
    if not any(bind.op in _LOWERED for bind in fn.binds):
        return fn
    facts, counts = ValueFacts(fn), use_counts(fn)
    names: dict[Local, Arg] = {}
    binds: list[Bind] = []
    for bind in fn.binds:
        renamed = bind.substitute(names) if names else bind
        for each in _replacement_binds(renamed, facts, names, counts):
            binds.append(each)
            facts.note(each)
    if len(binds) == len(fn.binds) and all(map(operator.is_, binds, fn.binds)):
        return fn
    return fn.replace(binds=binds, ret=fn.ret.substitute(names))


def _replacement_binds(
    bind: Bind, facts: ValueFacts, names: dict[Local, Arg], counts: dict
) -> list[Bind]:
    """The binds that replace one; replacements of its results are entered into ``names``."""
    if bind.op not in _LOWERED or any(binder.type is None for binder in bind.binders):
        return [bind]
    if bind.op is split:
        return _unpacked_split(bind, facts, names, counts)
    x = _LOWERED[bind.op](bind, facts)
    if x is None:
        return [bind]
    names[bind.binders[0]] = x
    return []


# ---- a part of a packed array ----


def _may_stand_for(y: Local, x: Arg, facts: ValueFacts) -> bool:
    """Whether ``x`` may replace ``y``, a view of its copy in a packed array."""
    if type(x) is not Local or (facts.may_be_result(y) and y.type.shape):
        return False  # a result shares memory with the packed value
    return (not y.type.shape or facts.is_c_contiguous(x)) and facts.may_be_replaced(y, x)


def _stacked_part(bind: Bind, facts: ValueFacts) -> Arg | None:
    """x of stack(..., x, ...)[i]."""
    (y,), item = bind.binders, bind.attrs["item"]
    packed = facts.producers.get(bind.args[0]) if facts.op_of(bind.args[0]) is stack else None
    if packed is None or type(item) is not int or packed.attrs["axis"] != 0:
        return None
    if not -len(packed.args) <= item < len(packed.args):
        return None
    x = packed.args[item]
    in_rows = not y.type.shape or facts.is_c_contiguous(bind.args[0])
    return x if in_rows and _may_stand_for(y, x, facts) else None


def _unpacked_split(
    bind: Bind, facts: ValueFacts, names: dict[Local, Arg], counts: dict[Local, int]
) -> list[Bind]:
    """The binds that replace a ``split``: none for packed parts, indices for few used parts."""
    whole = bind.args[0]
    if type(whole) is not Local or whole.type is None:
        return [bind]
    (axis,) = normalize_axes(bind.attrs["axis"], whole.type.ndim)
    packed = facts.producers.get(whole) if facts.op_of(whole) is concatenate else None
    # parts along another axis are not contiguous
    if (
        packed is not None
        and axis == 0
        and facts.is_c_contiguous(whole)
        and _fits_parts(packed, bind)
    ):
        pairs = list(zip(bind.binders, packed.args, strict=True))
        if all(y not in counts or _may_stand_for(y, x, facts) for y, x in pairs):
            names.update(pairs)
            return []
    used = [i for i, binder in enumerate(bind.binders) if binder in counts]
    if len(used) * _MIN_RATIO > len(bind.binders) or not is_static_shape((whole.type.shape[axis],)):
        return [bind]
    ends = _part_ends(bind, whole.type.shape[axis])
    return [_part_as_index(bind, i, axis, *ends[i]) for i in used]


def _fits_parts(packed: Bind, bind: Bind) -> bool:
    """Whether a ``split`` along the first axis returns the concatenated values."""
    axis = packed.attrs["axis"]
    if len(packed.args) != len(bind.binders) or axis is None:
        return False
    if normalize_axes(axis, bind.args[0].type.ndim) != (0,):
        return False
    pairs = zip(packed.args, bind.binders, strict=True)
    sections = bind.attrs["sections"]
    in_order = type(sections) is int or list(sections) == sorted(sections)
    return in_order and all(x.type is y.type for x, y in pairs)


def _part_ends(bind: Bind, n: int) -> list[tuple[int, int]]:
    """The boundaries of the parts of a ``split``."""
    sections = bind.attrs["sections"]
    sizes = split_parts(n, sections)
    if type(sections) is int:
        return [(i * size, (i + 1) * size) for i, size in enumerate(sizes)]
    starts = [0, *[min(max(i + n if i < 0 else i, 0), n) for i in sections]]
    return [(start, start + size) for start, size in zip(starts, sizes, strict=True)]


def _part_as_index(bind: Bind, i: int, axis: int, start: int, stop: int) -> Bind:
    """One part of a ``split`` as an index."""
    part = slice(start, stop, None)
    item = (*[slice(None)] * axis, part) if axis else part
    return Bind((bind.binders[i],), index, bind.args, Attrs(item=item), bind.source)


# ---- all parts packed again ----


def _packed_again(bind: Bind, facts: ValueFacts) -> Arg | None:
    """x of concatenate(split(x)), and of stack(x[0], x[1], ...)."""
    (y,) = bind.binders
    first = facts.producers.get(bind.args[0]) if bind.args and type(bind.args[0]) is Local else None
    if first is None or first.op is not (split if bind.op is concatenate else index):
        return None
    x = first.args[0]
    if type(x) is not Local or x.type is not y.type or not facts.is_c_contiguous(x):
        return None
    whole = _is_split_of if bind.op is concatenate else _is_stack_of
    return x if whole(bind, first, facts) and facts.may_be_replaced(y, x) else None


def _is_split_of(bind: Bind, parts: Bind, facts: ValueFacts) -> bool:
    """Whether the operands are all parts of one ``split``, in order, along its axis."""
    axis, sections, ndim = bind.attrs["axis"], parts.attrs["sections"], bind.binders[0].type.ndim
    if axis is None or normalize_axes(axis, ndim) != normalize_axes(parts.attrs["axis"], ndim):
        return False
    in_order = type(sections) is int or list(sections) == sorted(sections)
    return in_order and bind.args == parts.binders


def _is_stack_of(bind: Bind, first: Bind, facts: ValueFacts) -> bool:
    """Whether the operands are x[0], x[1] and so on, all of one x."""
    x = first.args[0]
    if bind.attrs["axis"] != 0 or len(bind.args) != x.type.shape[0]:
        return False
    for i, arg in enumerate(bind.args):
        row = facts.producers.get(arg) if type(arg) is Local else None
        if row is None or row.op is not index or row.args != first.args[:1]:
            return False
        if type(row.attrs["item"]) is not int or row.attrs["item"] != i:
            return False
    return True


_LOWERED = {index: _stacked_part, split: None, concatenate: _packed_again, stack: _packed_again}

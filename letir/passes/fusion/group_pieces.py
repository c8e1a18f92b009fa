"""``with_group_pieces``: groups that are too long for one kernel, in pieces.

A loop of many steps becomes one group when it is unrolled. If it keeps the result of each step, as
the points of a trajectory, the group has more results than a kernel may have. A kernel of many
functions one after the other is slow: in each, instructions wait for those before, and the loop is
too long for LLVM to interleave several elements.
"""

from collections.abc import Callable, Container

from attrs import define, field

from letir.ast.attrs import Attrs
from letir.ast.terms import Bind, Lambda, Local
from letir.ops.elementwise.fused import fused
from letir.passes.fusion.clustering import MAX_COMPILED, work_of
from letir.passes.fusion.regrouping import (
    has_operand_types,
    regroup_clusters,
    without_groups,
)

_LENGTH_OF_FUNCTION = 40  # instructions of an elementary function
_MAX_LENGTH = 320  # of a piece: eight functions


@define(eq=False)
class _Piece:
    """The positions of the binds of one piece of the group with this number."""

    group: int
    members: list[int]
    copies: dict[Local, Bind] = field(factory=dict)


def with_group_pieces(
    fn: Lambda,
    fits: Callable[[Lambda], bool],
    max_arrays: int,
    min_elements: int,
    whole: Container[Local] = (),
) -> Lambda:
    """``fn`` with long groups in pieces, whose binds are in the same order.

    A group stays whole if ``fits`` is False for the body of a piece. ``max_arrays``: the most
    operands and results of a kernel; ``min_elements``: the fewest elements for which a kernel saves
    time. ``whole``: the first results of groups that stay whole. Linear in the number of binds.
    """
    groups = [(n, bind) for n, bind in enumerate(fn.binds) if bind.op.role == "fused"]
    groups = [(n, bind) for n, bind in groups if bind.binders[0] not in whole]
    long = {n for n, bind in groups if _is_long(bind, max_arrays, min_elements)}
    while long:
        unfit: set[int] = set()

        def make(
            piece: _Piece, body: Lambda, operands: tuple, results: tuple, unfit=unfit
        ) -> Bind | None:
            if len(body.binds) == 1:
                return None
            if not fits(body):
                unfit.add(piece.group)
            return Bind(results, fused, operands, Attrs(body=body), body.binds[-1].source)

        kept = {b.binders[0] for n, b in enumerate(fn.binds) if n not in long and b.binders}
        pieces, start = [], 0
        for n, bind in enumerate(fn.binds):
            length = len(bind.attrs["body"].binds) if n in long else 1
            if n in long:
                pieces += [
                    _Piece(n, [start + position for position in members])
                    for members in _pieces_of(bind.attrs["body"], max_arrays)
                ]
            start += length
        result = regroup_clusters(without_groups(fn, kept), pieces, make)
        if not unfit:
            return result
        long -= unfit
    return fn


def _is_long(group: Bind, max_arrays: int, min_elements: int) -> bool:
    """Whether a group has much work, and too many operations or arrays for one kernel."""
    body, arrays = group.attrs["body"], len(group.args) + len(group.binders)
    is_long = arrays > max_arrays or max(_longest_path(body), len(body.binds)) > MAX_COMPILED
    return is_long and has_operand_types(group) and work_of(body) >= min_elements


def _longest_path(body: Lambda) -> int:
    """The length of the longest chain of operations of which each reads the one before."""
    ends: dict[Local, int] = {}  # the lengths of the longest paths to values
    for bind in body.binds:
        before = max([ends.get(x, 0) for x in bind.locals()], default=0)
        ends.update(dict.fromkeys(bind.binders, before + _length_of(bind)))
    return max(ends.values(), default=0)


def _length_of(bind: Bind) -> int:
    """The length of an operation's code, in cheap operations."""
    return 1 if bind.op.cost in ("free", "cheap") else _LENGTH_OF_FUNCTION


def _pieces_of(body: Lambda, max_arrays: int) -> list[list[int]]:
    """The positions of a body's binds, in pieces of limited length, operands and results."""
    last = {x: n for n, bind in enumerate(body.binds) for x in bind.locals()}
    last |= dict.fromkeys(body.ret.locals(), len(body.binds))
    pieces: list[list[int]] = [[]]
    read: set[Local] = set()
    stored: set[Local] = set()  # by the present piece, which later binds read
    length = 0  # of the present piece
    for n, bind in enumerate(body.binds):
        operands = {x for x in bind.locals() if x not in stored}
        results = {x for x in bind.binders if last.get(x, n) > n}
        after = {x for x in stored if last[x] > n} if stored & set(bind.locals()) else stored
        count = len(read | operands) + len(after) + len(results)
        length += _length_of(bind)
        if pieces[-1] and (length > _MAX_LENGTH or count > max_arrays):
            pieces.append([])
            length = _length_of(bind)
            read, after, operands = set(), set(), set(bind.locals())
        pieces[-1].append(n)
        read |= operands
        stored = after | results
    return pieces

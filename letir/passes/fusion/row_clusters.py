"""``row_clusters``: groups of elementwise binds and reductions, each to become one kernel.

The full values of a cluster have one shape, which is split into row axes and column axes; see
``letir.kernels.row_passes``. A cluster keeps all splits that its binds so far allow. Note [Levels
of clusters] at the end says how cycles are avoided.
"""

import math
from collections.abc import Callable, Iterable

from attrs import define, field

from letir.ast.liveness import has_effect
from letir.ast.terms import NO_TYPE, Arg, Bind, Const, Lambda, Local
from letir.ast.types import Size
from letir.kernels.row_passes import reduced_axes, reduction_form
from letir.kernels.row_products import (
    has_pairs,
    is_product,
    operands_of_product,
    paired_products,
)
from letir.passes.fusion.cluster_fits import Split, all_splits, fit_into_cluster, least_split
from letir.passes.fusion.clustering import enclosing_cluster

_MAX_OPERANDS = 20
_MAX_MEMBERS = 100  # binds: LLVM takes about a millisecond for each
_LARGE = 1 << 18  # elements of a value that takes longer to write and read than to compute
_MAX_OF_LARGE = 250  # binds on large values
_SHORT, _TALL = 16, 64  # columns of short rows, and the least ratio of rows to columns
_LEVEL_OF_PRODUCTS = 4
_MAX_LATE = 1  # large operands that a cluster may keep alive from after its first bind on


@define(eq=False)
class RowCluster:
    """Positions of binds with full values of one ``shape``.

    ``operands``: the values that the cluster reads, with the positions of their binds. ``copies``:
    result -> bind, for binds that broadcast one number to the shape. ``is_read``: whether a bind
    outside of the cluster reads one of its values. ``segment``: the number of effects before it.
    ``has_product``: whether a bind multiplies a matrix and a vector.
    """

    shape: tuple[int, ...]
    splits: int
    level: int
    segment: int
    members: list[int] = field(factory=list)
    operands: dict[Local, int] = field(factory=dict)
    copies: dict[Local, Bind] = field(factory=dict)
    is_read: bool = False
    has_product: bool = False
    merged_into: "RowCluster | None" = None

    @property
    def split(self) -> Split:
        """The best split that all binds allow."""
        return least_split(self.shape, self.splits)

    def pays(self, fn: Lambda, min_elements: int) -> bool:
        """Whether a kernel saves time, and computes at least ``min_elements`` elements: it saves
        the memory of a full value, or adds short rows, for each of which NumPy calls a loop.
        """
        binds = [fn.binds[position] for position in self.members]
        if not has_pairs(binds):
            return False
        reduces = [b for b in binds if _is_reduction_of(b, self.shape)]
        computes = [b for b in binds if b.op.elementwise and b.binders[0].type.shape == self.shape]
        count = len(reduces) + len(computes)
        is_worth = bool(reduces) and count * math.prod(self.shape) >= min_elements
        return is_worth and (count > 1 or self.adds_short_rows(reduces[0]))

    def adds_short_rows(self, bind: Bind) -> bool:
        """Whether a bind reduces a tall array along its first axes."""
        rows, columns = [math.prod(part) for part in self.parts]
        is_tall = columns <= _SHORT and rows >= _TALL * columns
        return is_tall and not is_product(bind) and max(reduced_axes(bind)) < self.split.rows

    @property
    def parts(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The axes before the columns, and the columns."""
        return self.shape[: self.split.rows], self.shape[self.split.rows :]


def row_clusters(
    fn: Lambda,
    may_join: Callable[[Bind], bool],
    min_elements: int,
    *,
    with_products: bool = False,
) -> list[RowCluster]:
    """The clusters of binds with ``may_join(bind)`` that are worth a kernel. Linear time.

    ``min_elements``: the least number of elements that a cluster has to compute. ``with_products``:
    also of products of one matrix with vectors from both sides, if these are in one cluster.
    """
    if not any(_is_large(x, min_elements) for bind in fn.binds for x in bind.locals()):
        return []
    products = paired_products(fn.binds) if with_products else frozenset()
    clusters = _Search(fn, may_join, min_elements, products).run()
    if products and any(
        not has_pairs([fn.binds[n] for n in candidate.members]) for candidate in clusters
    ):
        return row_clusters(fn, may_join, min_elements)
    return [cluster for cluster in clusters if cluster.pays(fn, min_elements)]


@define(eq=False)
class _Search:
    """The search for clusters, one bind after the other.

    For each value ``owners`` has the cluster that computes it, and ``kinds`` its kind there:
    "full", "row", "column", "total" (of all elements), or "spread" (a row's value, broadcast).
    ``levels`` are the levels of values outside of clusters. ``readers``: the last cluster that
    reads a value, with the ``clock`` at that time, which counts binds outside of clusters that
    compute arrays.
    ``copies``: result -> bind, for binds outside of clusters that broadcast one number.
    """

    fn: Lambda
    may_join: Callable[[Bind], bool]
    min_elements: int
    products: frozenset[Local] = frozenset()
    owners: dict[Local, RowCluster] = field(factory=dict)
    kinds: dict[Arg, str] = field(factory=dict)
    levels: dict[Local, int] = field(factory=dict)
    positions: dict[Local, int] = field(factory=dict)
    readers: dict[Local, tuple[RowCluster, int]] = field(factory=dict)
    copies: dict[Arg, Bind] = field(factory=dict)
    clusters: list[RowCluster] = field(factory=list)
    clock: int = 0
    segment: int = 0

    def run(self) -> list[RowCluster]:
        """All clusters."""
        for position, bind in enumerate(self.fn.binds):
            is_candidate = _is_known(bind) or self.is_product(bind)
            cluster = self.join(bind) if is_candidate else None
            if cluster is None:
                self.leave_outside(bind)
            else:
                cluster.members.append(position)
                self.note_operands(cluster, bind)
                self.owners[bind.binders[0]] = cluster
            for binder in bind.binders:
                self.positions[binder] = position
        return [candidate for candidate in self.clusters if candidate.merged_into is None]

    # ---- one bind ----

    def join(self, bind: Bind) -> RowCluster | None:
        """The cluster to which the bind was added."""
        is_view = bind.op.memory == "view"
        if not (is_view or self.is_product(bind) or self.may_join(bind)):
            return None
        candidates = [*{id(c): c for arg in bind.args if (c := self.cluster_of(arg))}.values()]
        candidates = [c for c in candidates if c.segment == self.segment]
        candidates.sort(key=lambda c: not c.has_product)  # binds after a product join its rows
        for first in candidates:
            same = [first, *[c for c in candidates if c is not first and c.shape == first.shape]]
            for group in (same, [first])[len(same) == 1 :]:
                if self.try_to_fit(group, bind):
                    return self.merge(group)
        if is_view:
            return None
        return self.cluster_beside(bind) or self.new_cluster(bind)

    def try_to_fit(self, group: list[RowCluster], bind: Bind) -> bool:
        """Whether the clusters can be merged with a bind; if so, sets their splits and level."""
        shape, splits, level = group[0].shape, -1, self.level_outside(group, bind)
        for cluster in group:
            splits &= cluster.splits
            level = max(level, cluster.level)
        if any(cluster.is_read and cluster.level < level for cluster in group):
            return False
        inside: dict[Arg, str] = {
            arg: self.kinds[arg]
            for arg in _locals_among(bind.args)
            if self.cluster_of(arg) in group
        }
        inside |= {arg: "spread" for arg in _locals_among(bind.args) if self.is_copy(arg, shape)}
        kind, splits = fit_into_cluster(bind, shape, splits, inside)
        if not splits or not self.may_hold(group, bind, inside):
            return False
        for cluster in group:
            cluster.splits, cluster.level = splits, level
        self.kinds[bind.binders[0]] = kind
        return True

    def may_hold(self, group: list[RowCluster], bind: Bind, inside: dict) -> bool:
        """Whether the merged cluster has few operands, and keeps few large operands alive."""
        operands = dict.fromkeys([arg for arg in _locals_among(bind.args) if arg not in inside])
        start = len(self.fn.binds)
        for cluster in group:
            operands |= cluster.operands
            start = min([start, *cluster.members[:1]])
        made_late = [
            arg
            for arg in operands
            if arg.type.shape == group[0].shape and self.positions.get(arg, -1) > start
        ]
        count = sum([len(cluster.members) for cluster in group])
        most = _MAX_MEMBERS if math.prod(group[0].shape) < _LARGE else _MAX_OF_LARGE
        is_small = count < most and len(operands) <= _MAX_OPERANDS
        return is_small and len(made_late) <= _MAX_LATE

    def cluster_beside(self, bind: Bind) -> RowCluster | None:
        """A cluster that reads the same operand, if no bind outside of clusters came in between."""
        for arg in _locals_among(bind.args):
            if arg in self.readers:
                cluster, clock = self.readers[arg]
                cluster = enclosing_cluster(cluster)
                if clock == self.clock and self.try_to_fit([cluster], bind):
                    return cluster
        return None

    def new_cluster(self, bind: Bind) -> RowCluster | None:
        """A new cluster with the shape of the elementwise result, or of the reduction's operand."""
        shape = _full_shape(bind)
        if math.prod(shape) < _least_size(self.min_elements):
            return None
        # values of rows that do not depend on a product may be computed before its cluster
        level = _LEVEL_OF_PRODUCTS if self.is_product(bind) else 0
        result = RowCluster(shape, all_splits(shape), level, self.segment)
        result.has_product = self.is_product(bind)
        if not self.try_to_fit([result], bind):
            return None
        self.clusters.append(result)
        return result

    def is_product(self, bind: Bind) -> bool:
        """Whether a bind is one of the products that may join clusters."""
        return not self.products.isdisjoint(bind.binders)

    def leave_outside(self, bind: Bind) -> None:
        """Record that a bind stays outside of clusters. No bind moves across an effect."""
        level = self.level_outside([], bind)
        for arg in _locals_among(bind.args):
            if (cluster := self.cluster_of(arg)) is not None:
                cluster.is_read = True
        for binder in bind.binders:
            self.levels[binder] = level
            if _is_copy_of_number(bind):
                self.copies[binder] = bind
        if bind.op.memory != "view" and bind.op.role != "constant" and not _is_of_numbers(bind):
            self.clock += 1
        if bind.op.effect or (bind.op.holds_lambdas and has_effect(bind)):
            self.segment += 1

    # ---- clusters ----

    def cluster_of(self, arg: Arg) -> RowCluster | None:
        """The cluster that computes an operand."""
        result = self.owners.get(arg) if type(arg) is Local else None
        return result if result is None or result.merged_into is None else enclosing_cluster(result)

    def is_copy(self, arg: Arg, shape: tuple[int, ...]) -> bool:
        """Whether an operand of this shape is one number, broadcast outside of clusters."""
        return arg in self.copies and self.copies[arg].binders[0].type.shape == shape

    def level_outside(self, group: list[RowCluster], bind: Bind) -> int:
        """The level of a bind that follows from its operands outside of the clusters ``group``."""
        level = 0
        for arg in _locals_among(bind.args):
            cluster = self.cluster_of(arg)
            if cluster is None:
                level = max(level, self.levels.get(arg, 0))
            elif cluster not in group:
                level = max(level, cluster.level + 1)
        return level

    def merge(self, group: list[RowCluster]) -> RowCluster:
        """The union of clusters, merged into the longest one."""
        end = max(group, key=lambda cluster: len(cluster.members))
        for cluster in group:
            if cluster is not end:
                end.members += cluster.members
                end.operands |= cluster.operands
                end.copies |= cluster.copies
                end.is_read |= cluster.is_read
                end.has_product |= cluster.has_product
                cluster.merged_into, cluster.members, cluster.operands = end, [], {}
        end.members.sort()
        return end

    def note_operands(self, cluster: RowCluster, bind: Bind) -> None:
        """Record the operands of a bind that its cluster reads from outside."""
        copies = {x: self.copies[x] for x in bind.args if self.is_copy(x, cluster.shape)}
        cluster.copies |= copies  # type: ignore[arg-type]
        for arg in _locals_among([copies[x].args[0] if x in copies else x for x in bind.args]):
            owner = self.cluster_of(arg)
            if owner is not cluster:
                cluster.operands[arg] = self.positions.get(arg, -1)
                self.readers[arg] = cluster, self.clock
                if owner is not None:
                    owner.is_read = True


def _least_size(min_elements: int) -> int:
    """The fewest elements of a full value of a cluster that computes ``min_elements``."""
    return max(2, min_elements >> 5)


def _is_large(x: Local, min_elements: int) -> bool:
    """Whether a value may be a full value of a cluster."""
    shape = getattr(x.type, "shape", None) or ()
    is_static = Size not in map(type, shape)
    return is_static and math.prod(shape) >= _least_size(min_elements)


def _full_shape(bind: Bind) -> tuple[int, ...]:
    """The shape of the full value that a bind computes or reduces."""
    if is_product(bind):
        return operands_of_product(bind)[0].type.shape
    return (bind.binders[0] if bind.op.elementwise else bind.args[0]).type.shape


def _is_reduction_of(bind: Bind, shape: tuple[int, ...]) -> bool:
    """Whether a bind reduces a full value of this shape."""
    is_reduction = reduction_form(bind) is not None or is_product(bind)
    return is_reduction and _full_shape(bind) == shape


def _locals_among(args: Iterable[Arg]) -> list[Local]:
    return [arg for arg in args if type(arg) is Local]


def _is_copy_of_number(bind: Bind) -> bool:
    """Whether a bind broadcasts one number to an array: it is a view larger than its operand."""
    if bind.op.memory != "view" or not _is_known(bind) or type(bind.args[0]) is not Local:
        return False
    aval = bind.args[0].type
    return aval.size == 1 and not aval.weak and bind.binders[0].type.size > 1


def _is_of_numbers(bind: Bind) -> bool:
    """Whether all results of a bind have a single element."""
    avals = [binder.type for binder in bind.binders]
    return bool(avals) and all(
        aval is not None and aval is not NO_TYPE and aval.size == 1 for aval in avals
    )


def _is_known(bind: Bind) -> bool:
    """Whether a bind has one result, and all its types are known, with static shapes."""
    op = bind.op
    if len(bind.binders) != 1 or op.effect or op.random or op.holds_lambdas:
        return False
    for arg in (*bind.args, *bind.binders):
        if type(arg) is Const:
            continue
        if arg.type is None or arg.type is NO_TYPE or type(arg.type.size) is not int:
            return False
    return op.elementwise or op.reduction is not None or op.memory == "view"


# Note [Levels of clusters]
#
# A cluster becomes one bind, so it must not read a value that depends on its own results through a
# bind outside of it. The level of a value is at least the level of every value that it depends on,
# and higher than the level of every other cluster that it depends on. So a bind may join a cluster
# if its operands outside of the cluster have no higher level than the cluster. The level of a
# cluster may be raised as long as no bind outside reads its values.

"""``row_clusters``: groups of elementwise binds and reductions, each to become one kernel.

The full values of a cluster have one shape, of which the last axes are columns, and those before
count rows; see ``letir.kernels.row_passes``. Several splits may do until a bind decides. How cycles
are avoided is in Note [Levels of clusters] at the end.
"""

import math
from collections.abc import Callable, Iterable

from attrs import define, field

from letir.ast.liveness import has_effect
from letir.ast.terms import NO_TYPE, Arg, Bind, Const, Lambda, Local
from letir.kernels.row_passes import reduction_form
from letir.passes.fusion.cluster_fits import all_splits, fitted, least_split
from letir.passes.fusion.clustering import WORTH

_MOST_OPERANDS = 20
_MOST_MEMBERS = 100  # binds: LLVM takes about a millisecond for each
_MOST_LATE = 1  # large operands made while a cluster waits, which it keeps alive


@define(eq=False)
class RowCluster:
    """Positions of binds with full values of one ``shape``.

    ``operands``: the values read from outside, with the position of their binds. ``is_read``:
    whether a bind outside reads a value. ``segment``: the number of effects before.
    """

    shape: tuple[int, ...]
    splits: int
    level: int
    segment: int
    members: list[int] = field(factory=list)
    operands: dict[Local, int] = field(factory=dict)
    is_read: bool = False
    into: "RowCluster | None" = None

    @property
    def split(self) -> tuple[int, int]:
        """The best split that all binds allow: the numbers of axes before rows, and of columns."""
        return least_split(self.shape, self.splits)

    def pays(self, fn: Lambda, worth: int) -> bool:
        """Whether a kernel saves the memory of a full value, and computes at least ``worth``
        elements.
        """
        binds = [fn.binds[position] for position in self.members]
        reduces = [b for b in binds if reduction_form(b) and b.args[0].type.shape == self.shape]
        computes = [b for b in binds if b.op.elementwise and b.binders[0].type.shape == self.shape]
        count = len(reduces) + len(computes)
        return bool(reduces) and count > 1 and count * math.prod(self.shape) >= worth


def row_clusters(
    fn: Lambda, may_join: Callable[[Bind], bool], worth: int = WORTH
) -> list[RowCluster]:
    """The clusters of a program that pay, of binds for which ``may_join``. Linear time.

    ``worth``: the elements computed by a cluster, from which on it pays.
    """
    found = _Search(fn, may_join, worth).run()
    return [cluster for cluster in found if cluster.pays(fn, worth)]


def _enclosing(cluster: RowCluster) -> RowCluster:
    """The cluster into which a cluster was merged, finally."""
    end = cluster
    while end.into is not None:
        end = end.into
    while cluster is not end:  # shorter for those who ask next
        cluster.into, cluster = end, cluster.into
    return end


@define(eq=False)
class _Search:
    """The search for clusters.

    ``of``: the cluster that computes a value; ``kinds``: its kind there, "full", "row", "column",
    "total" of all elements, or "spread" for a row's value broadcast; ``levels`` of other values.
    ``readers``: the last cluster that reads a value, and ``clock`` then: the number of binds
    outside of clusters.
    """

    fn: Lambda
    may_join: Callable[[Bind], bool]
    worth: int
    of: dict[Local, RowCluster] = field(factory=dict)
    kinds: dict[Arg, str] = field(factory=dict)
    levels: dict[Local, int] = field(factory=dict)
    made: dict[Local, int] = field(factory=dict)
    readers: dict[Local, tuple[RowCluster, int]] = field(factory=dict)
    clusters: list[RowCluster] = field(factory=list)
    clock: int = 0
    segment: int = 0

    def run(self) -> list[RowCluster]:
        """All clusters."""
        for position, bind in enumerate(self.fn.binds):
            cluster = self.joined(bind) if _is_known(bind) else None
            if cluster is None:
                self.pass_by(bind)
            else:
                cluster.members.append(position)
                self.read_by(cluster, bind)
                self.of[bind.binders[0]] = cluster
            for binder in bind.binders:
                self.made[binder] = position
        return [one for one in self.clusters if one.into is None]

    # ---- one bind ----

    def joined(self, bind: Bind) -> RowCluster | None:
        """The cluster to which the bind was added."""
        is_view = bind.op.memory == "view"
        if not is_view and not self.may_join(bind):
            return None
        found = [*{id(c): c for arg in bind.args if (c := self.cluster_of(arg))}.values()]
        found = [c for c in found if c.segment == self.segment]
        for first in found:
            same = [first, *[c for c in found if c is not first and c.shape == first.shape]]
            for group in (same, [first])[len(same) == 1 :]:
                if self.fits(group, bind):
                    return self.merged(group)
        if is_view:
            return None
        return self.beside(bind) or self.opened(bind)

    def fits(self, group: list[RowCluster], bind: Bind) -> bool:
        """Whether clusters can be merged and a bind added; then their splits and level are set."""
        shape, splits, level = group[0].shape, -1, self.level_outside(group, bind)
        for cluster in group:
            splits &= cluster.splits
            level = max(level, cluster.level)
        if any(cluster.is_read and cluster.level < level for cluster in group):
            return False
        inside: dict[Arg, str] = {
            arg: self.kinds[arg] for arg in _locals(bind.args) if self.cluster_of(arg) in group
        }
        kind, splits = fitted(bind, shape, splits, inside)
        if not splits or not self.may_hold(group, bind, inside):
            return False
        for cluster in group:
            cluster.splits, cluster.level = splits, level
        self.kinds[bind.binders[0]] = kind
        return True

    def may_hold(self, group: list[RowCluster], bind: Bind, inside: dict) -> bool:
        """Whether the merged cluster has few operands, and keeps few large ones alive."""
        operands = dict.fromkeys([arg for arg in _locals(bind.args) if arg not in inside])
        start = len(self.fn.binds)
        for cluster in group:
            operands |= cluster.operands
            start = min([start, *cluster.members[:1]])
        late = [
            arg
            for arg in operands
            if arg.type.shape == group[0].shape and self.made.get(arg, -1) > start
        ]
        count = sum([len(cluster.members) for cluster in group])
        is_small = count < _MOST_MEMBERS and len(operands) <= _MOST_OPERANDS
        return is_small and len(late) <= _MOST_LATE

    def beside(self, bind: Bind) -> RowCluster | None:
        """The cluster that reads an operand too, if no bind outside came between."""
        for arg in _locals(bind.args):
            if arg in self.readers:
                cluster, clock = self.readers[arg]
                cluster = _enclosing(cluster)
                if clock == self.clock and self.fits([cluster], bind):
                    return cluster
        return None

    def opened(self, bind: Bind) -> RowCluster | None:
        """A new cluster, of the shape of an elementwise result or of a reduction's operand."""
        shape = (bind.binders[0] if bind.op.elementwise else bind.args[0]).type.shape
        if math.prod(shape) < max(2, self.worth >> 5):
            return None
        found = RowCluster(shape, all_splits(shape), 0, self.segment)
        if not self.fits([found], bind):
            return None
        self.clusters.append(found)
        return found

    def pass_by(self, bind: Bind) -> None:
        """Note a bind outside of clusters; nothing moves across an effect."""
        level = self.level_outside([], bind)
        for arg in _locals(bind.args):
            if (cluster := self.cluster_of(arg)) is not None:
                cluster.is_read = True
        for binder in bind.binders:
            self.levels[binder] = level
        if bind.op.memory != "view":
            self.clock += 1
        if bind.op.effect or (bind.op.holds_lambdas and has_effect(bind)):
            self.segment += 1

    # ---- clusters ----

    def cluster_of(self, arg: Arg) -> RowCluster | None:
        """The cluster that computes an operand."""
        found = self.of.get(arg) if type(arg) is Local else None
        return found if found is None or found.into is None else _enclosing(found)

    def level_outside(self, group: list[RowCluster], bind: Bind) -> int:
        """The level of a bind because of its operands from outside of the clusters ``group``."""
        level = 0
        for arg in _locals(bind.args):
            cluster = self.cluster_of(arg)
            if cluster is None:
                level = max(level, self.levels.get(arg, 0))
            elif cluster not in group:
                level = max(level, cluster.level + 1)
        return level

    def merged(self, group: list[RowCluster]) -> RowCluster:
        """The union of clusters, merged into the longest one."""
        end = max(group, key=lambda cluster: len(cluster.members))
        for cluster in group:
            if cluster is not end:
                end.members += cluster.members
                end.operands |= cluster.operands
                end.is_read |= cluster.is_read
                cluster.into, cluster.members, cluster.operands = end, [], {}
        end.members.sort()
        return end

    def read_by(self, cluster: RowCluster, bind: Bind) -> None:
        """Note the operands that a cluster reads from outside for a bind."""
        for arg in _locals(bind.args):
            owner = self.cluster_of(arg)
            if owner is not cluster:
                cluster.operands[arg] = self.made.get(arg, -1)
                self.readers[arg] = cluster, self.clock
                if owner is not None:
                    owner.is_read = True


def _locals(args: Iterable[Arg]) -> list[Local]:
    return [arg for arg in args if type(arg) is Local]


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
# A cluster is computed at once, so it must not need a value that depends on its own results by way
# of a bind outside. A value has at least the level of all that it depends on, and a higher one than
# each cluster that it depends on from outside. A bind whose operands from outside have no higher
# level than a cluster may therefore join it. The level of a cluster may be raised as long as no
# bind outside reads its values.

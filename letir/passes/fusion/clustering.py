"""``Grouping``: clusters of elementwise binds to be fused, decided in one pass over a program.

A cluster is open as long as only its own binds read its results. It is placed at its last bind, so
that all its operands come before and all its users after: no cycle can arise. Open clusters read by
one bind are merged. The effect on memory is in Note [Memory held by a cluster] at the end.
"""

import math
from bisect import bisect_left
from collections.abc import Container
from itertools import accumulate
from typing import Any

from attrs import define, field

from letir.ast import LATE_BOUND
from letir.ast.liveness import has_effect
from letir.ast.primitive import Primitive
from letir.ast.terms import Arg, Bind, Lambda, Local, Ret
from letir.ast.types import ArrayType, Size

_NOMINAL = 1024  # the assumed value of a symbolic size
_UNKNOWN = 8 * _NOMINAL**2  # the assumed bytes of a value of unknown type
MIN_KERNEL_ELEMENTS = 1 << 10  # elements: fewer are not worth a kernel on any computer
LONG_CHAIN = 32  # the fewest operations for which one kernel of many saves time
MIN_ITEMS = 1 << 9  # of a batch for whose items a kernel may pay
MAX_COMPILED = 400  # binds of a group that is compiled: LLVM's time grows faster than linearly
_NEGLIGIBLE_BYTES = 1 << 16  # of all values that are made between the binds of one cluster


def is_weightless(op: Primitive) -> bool:
    """Whether an operation allocates nothing."""
    return op.memory == "view" or op.role == "constant"


def bytes_of(aval: ArrayType | None) -> int:
    """The bytes of a value of this type, estimated if unknown."""
    return _UNKNOWN if aval is None else elements_of(aval) * aval.dtype.itemsize


def elements_of(aval: ArrayType) -> int:
    """The number of elements, with ``_NOMINAL`` for each symbolic size."""
    size = aval.size
    return size.evaluate(dict.fromkeys(size.names, _NOMINAL)) if type(size) is Size else size


def work_of(body: Lambda) -> float:
    """The elements that a group with this body computes; infinity for symbolic sizes.

    Whether a group becomes a kernel depends on them, and never on timing, so that every run of a
    script computes the same bits.
    """
    types = [bind.binders[0].type for bind in body.binds]
    if any(aval is None or type(aval.size) is Size for aval in types):
        return math.inf
    return sum(map(elements_of, types))


def work_alone(bind: Bind) -> float:
    """The elements of an elementwise operation that NumPy computes one at a time; 0 for others, and
    if kernels have no form of it.

    NumPy computes most elementary functions of float64 so, but on processors with AVX-512 only some
    of them.
    """
    op = bind.op
    if not op.elementwise or op.scalar is None or op.cost in ("free", "cheap"):
        return 0
    types = [x.type for x in (*bind.binders, *bind.locals())]
    chars = {aval.dtype.char if type(aval) is ArrayType else "" for aval in types}
    if chars != {"d"} and (len(chars) > 1 or chars.isdisjoint(op.by_element)):
        return 0
    size = math.inf if type(types[0].size) is Size else types[0].size
    if size < MIN_KERNEL_ELEMENTS or not chars.isdisjoint(op.by_element):
        return size
    return size if LATE_BOUND["machine_costs"]().compiles_functions else 0


def is_worth_kernel(elements: float) -> bool:
    """Whether a kernel pays that computes so many elements in one call."""
    return (
        elements >= MIN_KERNEL_ELEMENTS and elements >= LATE_BOUND["machine_costs"]().least_elements
    )


def reduces_much(bind: Bind) -> bool:
    """Whether a bind reduces enough elements for a kernel of it and its neighbours to pay."""
    return is_worth_kernel(work_around(bind))


def work_around(bind: Bind) -> int:
    """The elements that a reduction and its neighbours compute, estimated; 0 if unknown."""
    shape = getattr(bind.args[0].type, "shape", (0,))
    size = math.prod(shape)  # no call of a property: this runs for every program
    return 8 * size if type(size) is int else 0


class _Bytes(dict):
    """``bytes_of``, cached by type."""

    def __missing__(self, aval: ArrayType | None) -> int:
        self[aval] = result = bytes_of(aval)
        return result


def _has_one_shape(aval: ArrayType | None) -> bool:
    """Whether all arrays of this type have the same shape within one run."""
    if aval is None:
        return False
    # names with an underscore, such as a loop's number of steps, may stand for several sizes
    names = [name for n in aval.shape if type(n) is Size for name in n.names]
    return not any(name.startswith("_") for name in names)


@define(eq=False)
class Cluster:
    """Positions of binds to be fused; ``shape`` is the shape of all their results.

    ``start`` and ``clock``: the bytes made by the program before its first bind and up to its last
    one; ``own_bytes``: the bytes that its binds make. The note at the end explains ``gap_bytes``,
    ``held_bytes`` and ``saved_bytes``. ``merged_into``: the cluster into which it was merged.
    """

    shape: tuple
    start: int = 0
    members: list[int] = field(factory=list)
    clock: int = 0
    own_bytes: int = 0
    gap_bytes: int = 0
    held_bytes: int = 0
    saved_bytes: int = 0
    is_open: bool = True
    merged_into: "Cluster | None" = None


def enclosing_cluster(cluster: Any) -> Any:
    """The cluster at the end of a chain of merges: a union-find lookup with path compression.

    Each cluster names the cluster that it was ``merged_into``, or None.
    """
    end = cluster
    while end.merged_into is not None:
        end = end.merged_into
    while cluster is not end:  # path compression: later lookups are shorter
        cluster.merged_into, cluster = end, cluster.merged_into
    return end


@define(eq=False)
class Grouping:
    """The clusters of a program without dead binds.

    For a local, ``remaining`` counts the uses that are not yet seen or are outside of its own
    cluster, and ``owners`` has the cluster that computes it. For an array that owns memory,
    ``last`` is the position of its last use, and ``readers`` are the clusters that read it.
    ``unstored``: results of other binds that are not stored as arrays either.
    """

    fn: Lambda
    unstored: Container[Local] = ()
    remaining: dict = field(factory=dict)
    owners: dict = field(factory=dict)
    roots: dict = field(factory=dict)
    last: dict = field(factory=dict)
    readers: dict = field(factory=dict)
    nbytes: dict = field(factory=_Bytes)
    open: list = field(factory=list)
    clusters: list = field(factory=list)
    clock: int = 0

    def run(self) -> list[Cluster]:
        """All clusters of the program, also those of one bind."""
        self.find_uses()
        shapes: dict = {}  # the shapes of types that can be fused, by type
        for position, bind in enumerate(self.fn.binds):
            op = bind.op
            if op.elementwise:
                aval = bind.binders[0].type
                if aval not in shapes:
                    shapes[aval] = aval.shape if _has_one_shape(aval) else None
                if shapes[aval] is not None:
                    self.join_cluster(position, bind, shapes[aval])
                    continue
            may_end = op.ends_fusion and bind.attrs["axis"] is not None
            if may_end and self.end_at_concatenate(position, bind):
                continue
            self.leave_outside(position, bind)
        return self.clusters

    def find_uses(self) -> None:
        """Fill ``remaining``, ``roots`` and ``last``."""
        remaining, roots, last = self.remaining, self.roots, self.last
        terms: tuple[Bind | Ret, ...] = (*self.fn.binds, self.fn.ret)
        for position, bind in enumerate(terms):
            for arg in bind.args:
                if type(arg) is Local:
                    remaining[arg] = remaining.get(arg, 0) + 1
                    last[roots.get(arg, arg)] = position
            if not isinstance(bind, Bind):
                continue
            # of operations that may copy, see ``Primitive.views``, a copy counts as a view
            if bind.op.memory != "view" and not (self.unstored and self.is_unstored(bind)):
                continue
            viewed = bind.args[0]
            if type(viewed) is Local:
                root = roots.get(viewed, viewed)
                for binder in bind.binders:
                    roots[binder] = root

    # ---- one bind ----

    def join_cluster(self, position: int, bind: Bind, shape: tuple) -> None:
        """Add an elementwise bind to the cluster that it reads, or to a new one."""
        owners: list[Cluster] = []
        for arg in bind.args:
            # tested first: a constant computes its hash each time
            owner = self.owners.get(arg) if type(arg) is Local else None
            if owner is None or owner in owners:
                continue
            if owner.merged_into is not None:
                owner = enclosing_cluster(owner)
            if owner in owners or not owner.is_open:
                continue
            if owner.shape == shape:
                owners.append(owner)
            else:
                owner.is_open = False
        cluster = owners[0] if owners else None
        if cluster is not None and (len(owners) > 1 or cluster.clock != self.clock):
            cluster = self.union_of(owners)
        self.enter_bind(
            cluster or self.cluster_beside(bind, shape) or self.new_cluster(shape), position, bind
        )

    def end_at_concatenate(self, position: int, bind: Bind) -> bool:
        """Whether a ``concatenate`` reads open clusters: then it is their common last bind."""
        open_clusters = {
            id(c): c for c in map(self.cluster_of, bind.args) if c is not None and c.is_open
        }
        cluster = self.union_of([*open_clusters.values()])
        if cluster is None:
            return False
        cluster.is_open = False
        self.enter_bind(cluster, position, bind)
        return True

    def leave_outside(self, position: int, bind: Bind) -> None:
        """Close the clusters read by a bind outside of clusters; an effect closes all."""
        owners, roots, readers = self.owners, self.roots, self.readers
        for arg in bind.args:
            if type(arg) is not Local:
                continue
            owner = owners.get(arg)
            if owner is not None:
                enclosing_cluster(owner).is_open = False
            root = roots.get(arg, arg)
            if root in readers and self.last[root] == position:
                for reader in self.charge_readers(root):
                    # it may be updated in place now, so no cluster may read it any more
                    reader.is_open = reader.is_open and bind.op.update is None
        if bind.op.effect or (bind.op.holds_lambdas and has_effect(bind)):
            for cluster in self.open:
                cluster.is_open = False
            self.open.clear()
        if not is_weightless(bind.op) and not (self.unstored and self.is_unstored(bind)):
            for binder in bind.binders:
                self.clock += self.nbytes[binder.type]

    def is_unstored(self, bind: Bind) -> bool:
        """Whether kernels read the results of a bind from its operand."""
        return any(x in self.unstored for x in bind.binders)

    # ---- clusters ----

    def new_cluster(self, shape: tuple) -> Cluster:
        """A new cluster."""
        self.clusters.append(Cluster(shape, self.clock))
        self.open.append(self.clusters[-1])
        return self.clusters[-1]

    def cluster_beside(self, bind: Bind, shape: tuple) -> Cluster | None:
        """The cluster of the immediately preceding bind, if both binds read the same array."""
        for arg in bind.args:
            readers = self.readers.get(self.roots.get(arg, arg)) if type(arg) is Local else None
            if readers:
                result = enclosing_cluster(readers[-1])
                if result.is_open and result.shape == shape and result.clock == self.clock:
                    return result
        return None

    def cluster_of(self, arg: Arg) -> Cluster | None:
        """The cluster that computes an operand."""
        cluster = self.owners.get(arg) if type(arg) is Local else None
        return (
            cluster
            if cluster is None or cluster.merged_into is None
            else enclosing_cluster(cluster)
        )

    def union_of(self, clusters: list[Cluster]) -> Cluster | None:
        """The union of those open clusters that may wait for another bind; the others end here."""
        # bytes made since the last bind of a cluster do not count if one of the others made them
        starts = sorted([(cluster.start, cluster.own_bytes) for cluster in clusters])
        made_from = [*accumulate([made for _, made in reversed(starts)], initial=0)]
        ready, result = [], None
        for cluster in clusters:
            later = len(starts) - bisect_left(starts, (cluster.clock,))
            made = self.clock - cluster.clock - made_from[later]
            if (
                cluster.gap_bytes + made > _NEGLIGIBLE_BYTES
                and made
                and cluster.held_bytes > cluster.saved_bytes
            ):
                cluster.is_open = False
                continue
            cluster.gap_bytes += made
            ready.append(cluster)
        for cluster in ready:
            cluster.clock = self.clock
            result = cluster if result is None else self.merge(result, cluster)
        return result

    def merge(self, a: Cluster, b: Cluster) -> Cluster:
        """The union of two open clusters, merged into the longer one."""
        if len(a.members) < len(b.members):
            a, b = b, a
        a.members += b.members
        a.start, a.own_bytes = min(a.start, b.start), a.own_bytes + b.own_bytes
        a.held_bytes, a.saved_bytes, a.gap_bytes = (
            a.held_bytes + b.held_bytes,
            a.saved_bytes + b.saved_bytes,
            a.gap_bytes + b.gap_bytes,
        )
        b.merged_into, b.members = a, []
        return a

    def enter_bind(self, cluster: Cluster, position: int, bind: Bind) -> None:
        """Add a bind, and account for the bytes that the cluster holds and saves."""
        if cluster.members:
            cluster.gap_bytes += self.clock - cluster.clock
        cluster.members.append(position)
        owners, remaining, nbytes = self.owners, self.remaining, self.nbytes
        for arg in bind.args:
            if type(arg) is not Local:
                continue
            owner = owners.get(arg)
            if owner is not None and (owner is cluster or enclosing_cluster(owner) is cluster):
                uses = remaining[arg] = remaining[arg] - 1
                if not uses:
                    cluster.saved_bytes -= nbytes[arg.type]
            else:
                self.note_read(self.roots.get(arg, arg), cluster, position)
        for binder in bind.binders:
            size = nbytes[binder.type]
            self.clock += size
            cluster.own_bytes += size
            owners[binder] = cluster
            if binder in remaining:
                cluster.saved_bytes += size
        cluster.clock = self.clock

    def note_read(self, root: Local, cluster: Cluster, position: int) -> None:
        """Note that a cluster reads an array, and holds it after its last use."""
        readers = self.readers.get(root)
        is_last = self.last[root] == position
        if readers is None:
            if is_last:  # the usual case: no other cluster holds the array
                cluster.held_bytes += self.nbytes[root.type]
            else:
                self.readers[root] = [cluster]
            return
        if readers[-1] is not cluster:
            readers.append(cluster)
        if is_last:
            self.charge_readers(root)

    def charge_readers(self, root: Local) -> list[Cluster]:
        """Charge an array's bytes to the clusters that read it, after its last use."""
        size = self.nbytes[root.type]
        readers = self.readers.pop(root)
        if len(readers) > 1:
            readers = [*{id(c): c for c in map(enclosing_cluster, readers)}.values()]
        elif readers[0].merged_into is not None:
            readers = [enclosing_cluster(readers[0])]
        for reader in readers:
            reader.held_bytes += size
        return readers


# Note [Memory held by a cluster]
#
# The binds of a cluster wait for its last bind, and keep their operands alive: ``held_bytes`` are
# the bytes of arrays that the original program would have freed by now. ``saved_bytes`` are the
# bytes of its results that the original program would have computed by now. As long as no more is
# held than saved, other binds may come between. In a loop that sums large arrays, a cluster would
# hold one more array in every step, so each step gets its own cluster. If the bytes that are made
# in between, ``gap_bytes``, are few, the held bytes do not matter: the original program held them.
# Bytes made by a cluster that is merged with this one do not count: nothing is made there any more.

"""``Grouping``: which elementwise binds of a program belong together, decided in one walk.

A cluster of binds is open as long as only its own binds read its results. It will stand where its
last bind stands, so that all that it needs is there, and all who need it come later: no cycle can
arise. Two open clusters that a bind reads become one. What that means for memory is in Note
[What a cluster holds] at the end.
"""

from attrs import define, field

from letir.ast.liveness import has_effect
from letir.ast.primitive import Primitive
from letir.ast.terms import Bind, Lambda, Local
from letir.ast.types import ArrayType, Size

_NOMINAL = 1024  # stands for a size that is known by name only
_UNKNOWN = 8 * _NOMINAL**2  # bytes of a value of unknown type
_SMALL = 1 << 16  # bytes that are of no account, for all that comes between binds of one cluster


def is_weightless(op: Primitive) -> bool:
    """Whether an operation allocates nothing."""
    return op.memory == "view" or op.role == "constant"


def bytes_of(kind: ArrayType | None) -> int:
    """The bytes of a value of this type, as far as they are known."""
    return _UNKNOWN if kind is None else elements_of(kind) * kind.dtype.itemsize


def elements_of(kind: ArrayType) -> int:
    """The number of elements, with ``_NOMINAL`` for each named size."""
    size = kind.size
    return size.evaluate(dict.fromkeys(size.names, _NOMINAL)) if type(size) is Size else size


class _Bytes(dict):
    """``bytes_of``, computed once a type."""

    def __missing__(self, kind: ArrayType | None) -> int:
        self[kind] = found = bytes_of(kind)
        return found


def _has_one_shape(kind: ArrayType | None) -> bool:
    """Whether arrays of this type all have one shape in one run of the program."""
    if kind is None:
        return False
    # names with an underscore, as of the number of trips of a loop, may stand for several sizes
    names = [name for n in kind.shape if type(n) is Size for name in n.names]
    return not any(name.startswith("_") for name in names)


@define(eq=False)
class Cluster:
    """Binds that become one, by their positions; ``shape`` is that of all of their results.

    ``clock``: how many bytes the program had made up to its last one. ``gaps``, ``held`` and
    ``saved`` are bytes as well, see the note. ``into``: what this one has become part of.
    """

    shape: tuple
    members: list[int] = field(factory=list)
    clock: int = 0
    gaps: int = 0
    held: int = 0
    saved: int = 0
    is_open: bool = True
    into: "Cluster | None" = None


def _enclosing_cluster(cluster: Cluster) -> Cluster:
    """What a cluster is part of now."""
    end = cluster
    while end.into is not None:
        end = end.into
    while cluster is not end:  # shorter for those who ask next
        cluster.into, cluster = end, cluster.into
    return end


@define(eq=False)
class Grouping:
    """The clusters of a program, all of whose binds are needed.

    ``left`` has the uses of a local that are not seen yet or not by its own cluster, ``of`` the
    cluster that computes it. ``last`` and ``readers`` are by the array whose memory a value shows:
    the position of its last use, and the clusters that read it.
    """

    fn: Lambda
    left: dict = field(factory=dict)
    of: dict = field(factory=dict)
    roots: dict = field(factory=dict)
    last: dict = field(factory=dict)
    readers: dict = field(factory=dict)
    nbytes: dict = field(factory=_Bytes)
    open: list = field(factory=list)
    clusters: list = field(factory=list)
    clock: int = 0

    def run(self) -> list[Cluster]:
        """Go through the program: all clusters, those of one bind too."""
        self.find_uses()
        shapes: dict = {}  # by type: those that are fused
        for position, bind in enumerate(self.fn.binds):
            op = bind.op
            if op.elementwise:
                kind = bind.binders[0].type
                if kind not in shapes:
                    shapes[kind] = kind.shape if _has_one_shape(kind) else None
                if shapes[kind] is not None:
                    self.join(position, bind, shapes[kind])
                    continue
            may_end = op.ends_fusion and bind.attrs["axis"] is not None
            if may_end and self.ended(position, bind):
                continue
            self.pass_by(position, bind)
        return self.clusters

    def find_uses(self) -> None:
        """Fill ``left``, ``roots`` and ``last``."""
        left, roots, last = self.left, self.roots, self.last
        for position, bind in enumerate((*self.fn.binds, self.fn.ret)):
            for arg in bind.args:
                if type(arg) is Local:
                    left[arg] = left.get(arg, 0) + 1
                    last[roots.get(arg, arg)] = position
            # also where `views` says no: the results may be new, then
            is_part = type(bind) is Bind and bind.op.memory == "view"
            if is_part and type(bind.args[0]) is Local:
                root = roots.get(bind.args[0], bind.args[0])
                for binder in bind.binders:
                    roots[binder] = root

    # ---- one bind ----

    def join(self, position: int, bind: Bind, shape: tuple) -> None:
        """Enter an elementwise bind into the cluster that it reads, or into a new one."""
        cluster, of = None, self.of
        for arg in bind.args:
            # asked before: a constant computes its hash each time
            found = of.get(arg) if type(arg) is Local else None
            if found is None or found is cluster:
                continue
            if found.into is not None:
                found = _enclosing_cluster(found)
            if found is cluster or not found.is_open:
                continue
            if found.shape != shape or not self.may_grow(found):
                found.is_open = False
            else:
                cluster = found if cluster is None else self.merged(cluster, found)
        self.enter(cluster or self.beside(bind, shape) or self.opened(shape), position, bind)

    def ended(self, position: int, bind: Bind) -> bool:
        """Whether a ``concatenate`` reads open clusters: then it ends them, as one."""
        found = {id(c): c for c in map(self.cluster_of, bind.args) if c is not None and c.is_open}
        ready = [c for c in found.values() if self.may_grow(c)]
        if not ready:
            return False
        cluster, *others = ready
        for other in others:
            cluster = self.merged(cluster, other)
        for other in found.values():
            other.is_open = False
        self.enter(cluster, position, bind)
        return True

    def pass_by(self, position: int, bind: Bind) -> None:
        """Close the clusters that a bind which belongs to none reads; all at an effect."""
        of, roots, readers = self.of, self.roots, self.readers
        for arg in bind.args:
            if type(arg) is not Local:
                continue
            found = of.get(arg)
            if found is not None:
                _enclosing_cluster(found).is_open = False
            root = roots.get(arg, arg)
            if root in readers and self.last[root] == position:
                for reader in self.charge(root):
                    # it may be updated in place now, so that none may read it any more
                    reader.is_open = reader.is_open and bind.op.update is None
        if bind.op.effect or (bind.op.holds_lambdas and has_effect(bind)):
            for cluster in self.open:
                cluster.is_open = False
            self.open.clear()
        if not is_weightless(bind.op):
            for binder in bind.binders:
                self.clock += self.nbytes[binder.type]

    # ---- clusters ----

    def opened(self, shape: tuple) -> Cluster:
        """A new cluster."""
        self.clusters.append(Cluster(shape))
        self.open.append(self.clusters[-1])
        return self.clusters[-1]

    def beside(self, bind: Bind, shape: tuple) -> Cluster | None:
        """The cluster that got the bind just before this one, if both read one array."""
        for arg in bind.args:
            readers = self.readers.get(self.roots.get(arg, arg)) if type(arg) is Local else None
            if readers:
                found = _enclosing_cluster(readers[-1])
                if found.is_open and found.shape == shape and found.clock == self.clock:
                    return found
        return None

    def cluster_of(self, arg) -> Cluster | None:
        """The cluster that computes an operand."""
        cluster = self.of.get(arg) if type(arg) is Local else None
        return cluster if cluster is None or cluster.into is None else _enclosing_cluster(cluster)

    def may_grow(self, cluster: Cluster) -> bool:
        """Whether it may wait for one more bind."""
        between = cluster.gaps + self.clock - cluster.clock
        return between <= _SMALL or self.clock == cluster.clock or cluster.held <= cluster.saved

    def merged(self, a: Cluster, b: Cluster) -> Cluster:
        """Two open clusters as one, which keeps the longer list."""
        if len(a.members) < len(b.members):
            a, b = b, a
        a.members += b.members
        a.held, a.saved = a.held + b.held, a.saved + b.saved
        a.gaps += b.gaps + self.clock - b.clock
        b.into, b.members = a, []
        return a

    def enter(self, cluster: Cluster, position: int, bind: Bind) -> None:
        """Add a bind, and count what the cluster holds and saves."""
        if cluster.members:
            cluster.gaps += self.clock - cluster.clock
        cluster.members.append(position)
        of, left, nbytes = self.of, self.left, self.nbytes
        for arg in bind.args:
            if type(arg) is not Local:
                continue
            owner = of.get(arg)
            if owner is not None and (owner is cluster or _enclosing_cluster(owner) is cluster):
                uses = left[arg] = left[arg] - 1
                if not uses:
                    cluster.saved -= nbytes[arg.type]
            else:
                self.read(self.roots.get(arg, arg), cluster, position)
        for binder in bind.binders:
            size = nbytes[binder.type]
            self.clock += size
            of[binder] = cluster
            if binder in left:
                cluster.saved += size
        cluster.clock = self.clock

    def read(self, root: Local, cluster: Cluster, position: int) -> None:
        """Note that a cluster reads an array, which it holds from its last use on."""
        readers = self.readers.get(root)
        is_last = self.last[root] == position
        if readers is None:
            if is_last:  # nearly always: nobody else need know
                cluster.held += self.nbytes[root.type]
            else:
                self.readers[root] = [cluster]
            return
        if readers[-1] is not cluster:
            readers.append(cluster)
        if is_last:
            self.charge(root)

    def charge(self, root: Local) -> list[Cluster]:
        """Charge the clusters that read an array, from what was its last use on."""
        size = self.nbytes[root.type]
        readers = self.readers.pop(root)
        if len(readers) > 1:
            readers = [*{id(c): c for c in map(_enclosing_cluster, readers)}.values()]
        elif readers[0].into is not None:
            readers = [_enclosing_cluster(readers[0])]
        for reader in readers:
            reader.held += size
        return readers


# Note [What a cluster holds]
#
# Its binds wait for the last of them, and with them what they read: ``held`` are the bytes of
# arrays that would be free by now. Against that, ``saved`` are the bytes of its results that would
# be there by now, because they are read later. While no more is held than saved, other binds may
# come in between; so in a loop that adds up large arrays, where a sum would wait for one array more
# in every step, each step has a cluster of its own. If all that is made in between, ``gaps``, is
# small, it does not matter what is held: all else that is held was there with the first bind, where
# the program had it as well.

"""``batch_clusters``: groups of binds on the items of a batch, each to become one kernel.

All values of a cluster have the same length along their first axis; see
``letir.kernels.batches.item_binds``. A cluster is open until a bind reads a value that depends on
its results through binds outside of it; so no cycle arises.
"""

import math
from collections import Counter
from collections.abc import Iterator

from attrs import define, field

from letir.ast.liveness import has_effect
from letir.ast.terms import Bind, Lambda, Local
from letir.kernels.batches.item_binds import adds_to_operand, bind_kind, is_batch
from letir.passes.fusion.clustering import MIN_ITEMS
from letir.passes.fusion.early_gathers import early_gathers

_MAX_BATCHES = 3  # different numbers of items in a program
_MAX_WORK = 1_200  # scalars that a cluster computes for an item
_WORTH_OF_ONE = 8  # a fast NumPy call needs this many times the work of a group
_EXPENSIVE = 10  # the work of an expensive operation, in units of a cheap one


@define(eq=False)
class BatchCluster:
    """Positions of binds on ``n`` items. ``copies``: as in ``RowCluster``, none here."""

    n: int
    members: list[int] = field(factory=list)
    copies: dict[Local, Bind] = field(factory=dict)
    binders: set[Local] = field(factory=set)
    after: set[Local] = field(factory=set)  # values outside that depend on the cluster
    work: int = 0


def batch_sizes(fn: Lambda, least: int = MIN_ITEMS) -> list[int]:
    """The numbers of items for which ``fn`` may have clusters, the most frequent first."""
    counts: Counter[int] = Counter()
    for bind in fn.binds:
        for binder in bind.binders:
            shape = getattr(binder.type, "shape", ())
            if shape and type(shape[0]) is int and shape[0] >= least:
                counts[shape[0]] += is_batch(binder.type, shape[0])
    return [n for n, count in counts.most_common(_MAX_BATCHES) if count]


def batch_clusters(fn: Lambda, n: int, is_exact: bool, min_elements: int) -> list[BatchCluster]:
    """The clusters of ``fn`` on ``n`` items that save time. Linear time.

    A cluster pays if it reads or adds elements at indices, moves elements that it computes, or
    multiplies small matrices, and computes at least ``min_elements`` elements: other kernels serve
    the rest.
    """
    search = _Search(fn, n, is_exact)
    search.run()
    return [
        own
        for cluster in search.clusters
        for own in search.independent_parts(cluster)
        if search.pays(own, min_elements)
    ]


@define(eq=False)
class _Search:
    """The search for clusters in one program. ``kinds``: the ``bind_kind`` of each position."""

    fn: Lambda
    n: int
    is_exact: bool
    kinds: list[str] = field(init=False)
    clusters: list[BatchCluster] = field(factory=list)

    def run(self) -> None:
        """Fill ``clusters``."""
        self.kinds = [bind_kind(bind, self.n, self.is_exact) for bind in self.fn.binds]
        if any(bind.op.reduction is not None for bind in self.fn.binds):
            # kernels of rows need not store the tables of these
            early = early_gathers(self.fn)
            self.kinds = [
                "" if kind == "gather" and bind.binders[0] in early else kind
                for bind, kind in zip(self.fn.binds, self.kinds, strict=True)
            ]
        cluster = self.open_cluster()
        for position, (bind, kind) in enumerate(zip(self.fn.binds, self.kinds, strict=True)):
            read = set(bind.locals())
            if not kind:
                if bind.op.effect or (bind.op.holds_lambdas and has_effect(bind)):
                    cluster = self.open_cluster()
                elif not (cluster.binders.isdisjoint(read) and cluster.after.isdisjoint(read)):
                    cluster.after.update(bind.binders)
                continue
            own = self.work_of(bind) if kind == "item" else 0
            # a table, or an array to which parts are added, must be in memory
            first = bind.args[0] if kind == "gather" or adds_to_operand(bind) else None
            is_late = not cluster.after.isdisjoint(read) or first in cluster.binders
            if is_late or cluster.work + own > _MAX_WORK:
                cluster = self.open_cluster()
            cluster.members.append(position)
            cluster.work += own
            cluster.binders.update(bind.binders)
            if kind == "scatter":
                cluster.after.update(bind.binders)

    def open_cluster(self) -> BatchCluster:
        """A new cluster."""
        self.clusters.append(BatchCluster(self.n))
        return self.clusters[-1]

    def work_of(self, bind: Bind) -> int:
        """The number of scalars that a bind computes for an item, about."""
        if bind.op.moves_elements or bind.op.memory == "view":
            return 0
        avals = [arg.type for arg in (*bind.args, *bind.binders) if type(arg) is Local]
        most = max([math.prod(aval.shape[1:]) for aval in avals if is_batch(aval, self.n)])
        dear = bind.op.elementwise and bind.op.cost not in ("free", "cheap")
        return most * (_EXPENSIVE if dear else 1)

    def independent_parts(self, cluster: BatchCluster) -> Iterator[BatchCluster]:
        """The parts of a cluster between which no values pass."""
        root: dict[int, int] = {}
        maker: dict[Local, int] = {}

        def find(n: int) -> int:
            while root[n] != n:
                root[n] = n = root[root[n]]
            return n

        for position in cluster.members:
            root[position] = position
            bind = self.fn.binds[position]
            for arg in bind.locals():
                if arg in maker:
                    root[find(maker[arg])] = find(position)
            maker.update(dict.fromkeys(bind.binders, position))
        groups: dict[int, list[int]] = {}
        for position in cluster.members:
            groups.setdefault(find(position), []).append(position)
        for members in groups.values():
            yield BatchCluster(self.n, members)

    def min_work_of_products(self, binds: list[Bind], min_elements: int) -> float:
        """The least work for which a kernel of binds with products saves time.

        BLAS takes long only for the product of each item by a matrix of its own.
        """
        products = [bind for bind in binds if bind.op.product]
        shared = [[arg for arg in bind.args if not is_batch(arg.type, self.n)] for bind in products]
        if len(binds) > 1 or not shared[0] or products[0].op.product == "subscripts":
            return min_elements
        return math.inf if len(shared[0][0].type.shape) == 1 else _WORTH_OF_ONE * min_elements

    def pays(self, cluster: BatchCluster, min_elements: int) -> bool:
        """Whether a kernel of these binds saves time over other kernels and NumPy's calls."""
        binds = [self.fn.binds[n] for n in cluster.members]
        kinds = [self.kinds[n] for n in cluster.members]
        results = {binder for bind in binds for binder in bind.binders}
        work = self.n * sum([self.work_of(bind) for bind in binds])
        if "scatter" in kinds:
            return work + self.n >= min_elements
        count = sum([bool(self.work_of(bind)) for bind in binds])
        moves = any(
            not bind.op.elementwise
            and bind.op.reduction is None
            and not results.isdisjoint(bind.locals())
            for bind in binds
        )
        has_products = any(bind.op.product for bind in binds)
        if has_products and work >= self.min_work_of_products(binds, min_elements):
            return True
        gathers = kinds.count("gather")
        is_vectors = all(math.prod(result.type.shape[1:]) == 1 for result in results)
        # short arrays stay in the cache between NumPy's calls
        is_short = self.n < _WORTH_OF_ONE * min_elements
        if is_vectors and is_short and not moves and work <= 2 * self.n * gathers:
            return False  # NumPy reads single elements at indices faster
        return count > 0 and count + gathers > 1 and (gathers > 0 or moves) and work >= min_elements

"""Clusters of binds on few numbers, each of which may become one kernel without loops.

In one pass over the program, a bind joins the open cluster if its values are small and its
operation has a form in the loop language. The cluster ends where a bind outside needs one of its
results, at an effect, or when it is full.
"""

from collections.abc import Callable
from typing import Any

from attrs import define, field

from letir.ast.attrs import Attrs
from letir.ast.liveness import has_effect
from letir.ast.terms import Arg, Bind, Lambda, Local, Ret
from letir.ast.types import ArrayType
from letir.kernels.loop_language import count_accesses
from letir.kernels.scalar_lowering import DTYPES, MAX_ARRAYS
from letir.visitors.usedef import use_counts

_MAX_READ = 1 << 14  # elements of an operand of the cluster
_MAX_MADE = 64  # elements of a value that the cluster computes
_MAX_MOVED = 1 << 12  # elements of a value that only rearranges other elements
_MAX_STEP = 1_024  # scalars computed by one operation that is not elementwise
_MAX_WORK = 4_000  # scalars computed by one cluster: LLVM takes about 50 us for each
_MAX_TOTAL = 8_000  # scalars computed by different clusters; the rest is left to NumPy
_MAX_STORED = 1_000  # elements of the results of one cluster: LLVM takes longest for stores
_WORK_OF_ACCESS = 4  # scalars whose compilation takes as long as that of a load or store
_REPEATED = 1_000  # larger clusters end where their sequence of operations repeats
_PHASE = 8  # operations that are compared to find a repetition
_LONG_GROUP = 250  # operations: the most in one cluster
_MIN_NUMBERS, _NUMBERS_EACH = 50, 17  # operations on Python numbers that take as long as a call
MIN_WORK = 32  # scalars: a smaller kernel saves no time


@define(eq=False)
class UnrolledCluster:
    """Binds that run together. ``work``: the number of scalars that the kernel computes.

    ``operands``: the values that the cluster reads; ``outputs``: its values that other binds read.
    ``after``: binds on the outputs that NumPy computes after the ``kernel``, such as views.
    ``shared``: the body of an equal cluster.
    """

    binds: list[Bind] = field(factory=list)
    producers: dict[Local, Bind] = field(factory=dict)
    inside: dict[Local, int] = field(factory=dict)  # uses by binds of the cluster
    works: list[int] = field(factory=list)  # the work of each bind
    work: int = 0
    operands: list[Local] = field(factory=list)
    outputs: list[Local] = field(factory=list)
    after: list[Bind] = field(factory=list)
    shared: Lambda | None = None
    kernel: Any = None
    max_arrays: int = MAX_ARRAYS
    max_stored: int = _MAX_STORED  # elements of the results

    @property
    def pays(self) -> bool:
        """Whether a kernel, which takes the time of some calls of NumPy, saves time."""
        groups = [bind for bind in self.binds if bind.op.role == "fused"]
        calls = sum([len(bind.attrs["body"].binds) - 1 for bind in groups])
        calls += sum([bind.op.memory != "view" for bind in self.binds])
        arrays = len(self.operands) + len(self.outputs)
        if all(arg.type.weak for arg in self.operands):  # Python's operators are faster than calls
            return calls >= _MIN_NUMBERS + _NUMBERS_EACH * arrays
        return 4 * calls >= 20 + arrays

    def add(self, bind: Bind, work: int) -> None:
        self.binds.append(bind)
        self.works.append(work)
        self.work += work
        for arg in bind.args:
            if type(arg) is Local:
                self.inside[arg] = self.inside.get(arg, 0) + 1
        for binder in bind.binders:
            self.producers[binder] = bind

    def finish(self, uses: dict[Local, int]) -> bool:
        """Find operands and outputs; False if there are too many, or if a kernel would return an
        output in another form than NumPy (a scalar, an array, a view).
        """
        needed = [b for b in self.producers if uses.get(b, 0) > self.inside.get(b, 0)]
        outside: dict[int, Bind] = {}
        for binder in needed:  # grows: binds after the kernel append their operands
            bind = self.producers[binder]
            if self.has_form_of_numpys_result(bind, binder):
                self.outputs.append(binder)
            elif bind.op.memory == "view" or (binder.type.weak and bind.op.moves_elements):
                outside[id(bind)] = bind
                read = [a for a in bind.args if type(a) is Local and a in self.producers]
                needed += [a for a in read if a not in needed]
            else:
                return False
        self.after = [bind for bind in self.binds if id(bind) in outside]
        self.outputs = list(dict.fromkeys(self.outputs))
        self.operands = [arg for arg in self.inside if arg not in self.producers]
        stored = sum([_size_of(output.type) or 0 for output in self.outputs])
        arrays = len(self.operands) + len(self.outputs)
        return bool(self.outputs) and arrays <= self.max_arrays and stored <= self.max_stored

    def has_form_of_numpys_result(self, bind: Bind, binder: Local) -> bool:
        """Whether a kernel returns a result in NumPy's form: a scalar or a new array."""
        if binder.type.weak:
            return False
        if binder.type.shape:
            return bind.op.memory != "view"
        while bind.op.role == "fused":
            body = bind.attrs["body"]
            binder = body.ret.args[bind.binders.index(binder)]
            bind = next(inner for inner in body.binds if binder in inner.binders)
        if bind.op.role == "index":
            item = bind.attrs["item"]  # with an ellipsis NumPy gives a 0-d array
            return not any(entry is ... for entry in (item if type(item) is tuple else (item,)))
        if getattr(bind.op.impl, "ufunc", None) is not None:
            return True
        if bind.op.gives_scalars:
            return True
        # a cast gives a scalar for a scalar only; an argument may be a 0-d array
        return (
            bind.op.elementwise
            and bind.op.casts_operands
            and all(
                type(arg) is not Local
                or arg.type.weak
                or (
                    arg in self.producers
                    and self.has_form_of_numpys_result(self.producers[arg], arg)
                )
                for arg in bind.args
            )
        )

    def body(self) -> Lambda:
        """The cluster as a separate program."""
        names = {operand: Local(operand.type, operand.name) for operand in self.operands}
        inner = {**names, **{b: Local(b.type, b.name) for b in self.producers}}
        binds = []
        for bind in self.binds:
            args = tuple([inner[a] if type(a) is Local else a for a in bind.args])
            binders = tuple([inner[b] for b in bind.binders])
            binds.append(Bind(binders, bind.op, args, bind.attrs, bind.source))
        return Lambda(
            tuple(names.values()), tuple(binds), Ret(tuple([inner[o] for o in self.outputs]))
        )


def unrolled_clusters(
    fn: Lambda,
    has_form: Callable[[Bind], bool],
    kernel_of: Callable[[Lambda], Any],
    may_pay: Callable[[UnrolledCluster, int], bool],
) -> list:
    """The binds of ``fn`` and, in place of some, ``UnrolledCluster``s, in an order of execution.

    ``has_form(bind)``: whether the record of a bind allows it to be part of a kernel.
    ``kernel_of(body)``: the kernel of a body, None if it has none after all. Equal clusters, as of
    the steps of an unrolled loop, have the same body and the same kernel.
    ``may_pay(cluster, most)``: whether a kernel that so many clusters share may save time.
    """
    return _Clustering(fn, has_form, kernel_of, may_pay).run()


@define(eq=False)
class _Clustering:
    """The search for clusters.

    ``start``: the position where the open ``cluster`` begins; ``total``: the scalars computed by
    different clusters; ``cache``: (body, kernel) of each, by the body and its lines.
    """

    fn: Lambda
    has_form: Callable[[Bind], bool]
    kernel_of: Callable[[Lambda], Any]
    may_pay: Callable[[UnrolledCluster, int], bool]
    uses: dict[Local, int] = field(init=False)
    units: list[Bind | UnrolledCluster] = field(factory=list)
    cluster: UnrolledCluster = field(factory=UnrolledCluster)
    start: int = 0
    total: int = 0
    cache: dict[tuple, tuple[Lambda, Any]] = field(factory=dict)

    def run(self) -> list[Bind | UnrolledCluster]:
        """All binds and clusters."""
        self.uses = use_counts(self.fn)
        for position, bind in enumerate(self.fn.binds):
            is_full = self.total + self.cluster.work > _MAX_TOTAL
            work = _work_of(bind) if not is_full and self.has_form(bind) else None
            if work is None or work > _MAX_WORK:
                is_effect = bind.op.effect or (bind.op.holds_lambdas and has_effect(bind))
                makers = self.cluster.producers
                if is_effect or any(arg in makers for arg in bind.args if type(arg) is Local):
                    self.close_cluster()
                self.units.append(bind)
                continue
            if self.cluster.work >= _REPEATED and self.repeats(position):
                self.close_cluster(is_repeated=True)
            elif self.cluster.work + work > _MAX_WORK:
                self.close_cluster()
            if not self.cluster.binds:
                self.start = position
            self.cluster.add(bind, work)
        self.close_cluster()
        return self.units

    def repeats(self, position: int) -> bool:
        """Whether the operations at a position are those at the start of the open cluster."""
        binds, start = self.fn.binds, self.start
        if len(binds) - position < _PHASE:
            return False
        return all(_looks_like(binds[start + n], binds[position + n]) for n in range(_PHASE))

    def close_cluster(self, is_repeated: bool = False) -> None:
        """End the open cluster."""
        self.finish(self.cluster, is_repeated)
        self.cluster = UnrolledCluster()

    def finish(self, cluster: UnrolledCluster, is_repeated: bool) -> None:
        """Append a cluster with its kernel; if it has none, two smaller clusters or its binds."""
        is_one = len(cluster.binds) == 1
        if (
            not cluster.binds
            or cluster.work < MIN_WORK
            or (is_one and cluster.binds[0].op.role != "fused")
        ):
            self.units += cluster.binds
            return
        views, own = _with_windows(cluster) if is_repeated else ([], cluster)
        most = len(self.fn.binds) // len(own.binds)
        if own.finish(self.uses) and own.pays and self.may_pay(own, most):
            self.take_kernel(own)
            if own.kernel is not None:
                self.units += [*views, own]
                return
        if is_one:
            self.units += cluster.binds
            return
        half = len(cluster.binds) // 2
        pairs = list(zip(cluster.binds, cluster.works, strict=True))
        for few in (pairs[:half], pairs[half:]):
            part = UnrolledCluster()
            for bind, work in few:
                part.add(bind, work)
            self.finish(part, is_repeated)

    def take_kernel(self, cluster: UnrolledCluster) -> None:
        """Set the body and kernel of a cluster; equal clusters share them."""
        body = cluster.body()
        key = body, tuple([bind.source for bind in body.binds])
        if key not in self.cache:
            entry = self.cache[key] = body, self.kernel_of(body)
            accesses = 0 if entry[1] is None else count_accesses(entry[1][0])
            self.total += max(cluster.work, _WORK_OF_ACCESS * accesses)
        cluster.shared, cluster.kernel = self.cache[key]


def has_long_group(fn: Lambda) -> bool:
    """Whether a group of small arrays is too long for one cluster."""
    groups = [bind for bind in fn.binds if bind.op.role == "fused"]
    long = [bind for bind in groups if len(bind.attrs["body"].binds) > _LONG_GROUP]
    return any((_size_of(bind.binders[0].type) or _MAX_WORK) <= _MAX_MADE for bind in long)


def _looks_like(a: Bind, b: Bind) -> bool:
    """Whether two binds have the same operation, and results of the same types."""
    return a.op is b.op and [x.type for x in a.binders] == [x.type for x in b.binders]


def _with_windows(cluster: UnrolledCluster) -> tuple[list[Bind], UnrolledCluster]:
    """(views of the rows that ``cluster`` reads from arrays, the cluster on these views).

    Only arrays that the cluster indexes and does not read otherwise are replaced. The steps of a
    loop that reads one row after the other then have equal clusters.
    """
    reads: dict[Local, list[Bind | None]] = {}
    for bind in cluster.binds:
        for n, arg in enumerate(bind.args):
            if type(arg) is Local and arg not in cluster.producers:
                reads.setdefault(arg, []).append(bind if n == 0 else None)
    views: list[Bind] = []
    moved: dict[Arg | None, tuple[Local, int]] = {}
    for operand, binds in reads.items():
        rows = [_row_of(bind) for bind in binds]
        selected = [row for row in rows if row is not None]
        length = operand.type.shape[0] if operand.type.shape else 0
        if len(selected) < len(rows) or max(selected) + 1 - min(selected) == length:
            continue
        low, end = min(selected), max(selected) + 1
        part = Local(operand.type.with_shape((end - low, *operand.type.shape[1:])), operand.name)
        attrs = Attrs({**binds[0].attrs, "item": slice(low, end)})
        views.append(Bind((part,), binds[0].op, (operand,), attrs, binds[0].source))
        moved[operand] = part, low
    if not views:
        return [], cluster
    result = UnrolledCluster()
    for bind, work in zip(cluster.binds, cluster.works, strict=True):
        first = bind.args[0] if bind.args else None
        result.add(_index_row_from(bind, *moved[first]) if first in moved else bind, work)
    return views, result


def _index_row_from(bind: Bind, part: Local, first: int) -> Bind:
    """An indexing operation on the rows of its operand from ``first`` on."""
    entry, *rest = _index_entries(bind)
    item = (entry - first, *rest) if rest else entry - first
    return bind.replace(args=(part,), attrs=Attrs({**bind.attrs, "item": item}))


def _row_of(bind: Bind | None) -> int | None:
    """The row of its operand to which an indexing operation belongs; None for other operations."""
    if bind is None or bind.op.role != "index" or len(bind.args) != 1:
        return None
    entry, *_ = _index_entries(bind)
    return entry if type(entry) is int and entry >= 0 else None


def _index_entries(bind: Bind) -> tuple:
    """The entries of an index."""
    item = bind.attrs["item"]
    return item if type(item) is tuple and item else (item,)


def _work_of(bind: Bind) -> int | None:
    """The number of scalars that a bind computes; None if its values are not small."""
    for arg in bind.args:
        size = _size_of(arg.type)
        if size is None or size > _MAX_READ:
            return None
    sizes = [_size_of(binder.type) for binder in bind.binders]
    is_moved = bool(bind.op.moves_elements) or not bind.args
    most = _MAX_MOVED if is_moved else _MAX_MADE
    if any(size is None or size > most for size in sizes):
        return None
    if bind.op.role == "fused":
        results = [b for inner in bind.attrs["body"].binds for b in inner.binders]
        return sum([_size_of(b.type) or 0 for b in results])
    if is_moved:
        return 0
    total = sum([size for size in sizes if size is not None])
    if bind.op.elementwise:
        return total
    work = 2 * max([total, *[_size_of(arg.type) or 0 for arg in bind.args]])
    return work if work <= _MAX_STEP else None


def _size_of(aval: ArrayType | None) -> int | None:
    """The number of elements; None if it is unknown or 0, or if kernels do not have the dtype."""
    if not isinstance(aval, ArrayType) or any(type(n) is not int for n in aval.shape):
        return None
    if aval.dtype not in DTYPES:
        return None
    return int(aval.size) or None

"""Clusters of binds on few numbers, which may run as one kernel without loops.

One pass over the program: a bind joins the open cluster if its values are small and its operation
has a form in the loop language. The cluster ends where another bind needs one of its results, at an
effect, or where it is full.
"""

from collections.abc import Callable
from typing import Any

from attrs import define, field

from letir.ast.liveness import has_effect
from letir.ast.terms import Bind, Lambda, Local, Ret
from letir.ast.types import ArrayType
from letir.kernels.array_forms import GIVE_SCALARS
from letir.kernels.scalar_lowering import DTYPES
from letir.visitors.usedef import use_counts

_MOST_ARRAYS = 30  # operands and results of a NumPy ufunc, which takes at least 32
_MOST_READ = 1 << 14  # elements of an operand from outside
_MOST_MADE = 64  # elements of a value that the cluster computes
_MOST_MOVED = 1 << 12  # of one that is made of known elements
_MOST_STEP = 1_024  # scalars computed by one operation that is not elementwise
_MOST_WORK = 4_000  # scalars computed by one cluster: LLVM takes about 50 us for each
_MOST_TOTAL = 8_000  # scalars computed by all clusters; the rest of a program is left to NumPy
LEAST_WORK = 32  # scalars, below which a kernel saves no time


@define(eq=False)
class UnrolledCluster:
    """Binds that run together, with the work of the kernel in scalars.

    ``operands`` come from outside; ``outputs`` are read outside. ``after``: binds on the outputs
    that NumPy computes after the ``kernel``, such as views.
    """

    binds: list[Bind] = field(factory=list)
    made: dict[Local, Bind] = field(factory=dict)
    inside: dict[Local, int] = field(factory=dict)  # uses by binds of the cluster
    work: int = 0
    operands: list[Local] = field(factory=list)
    outputs: list[Local] = field(factory=list)
    after: list[Bind] = field(factory=list)
    kernel: Any = None

    def add(self, bind: Bind, work: int) -> None:
        self.binds.append(bind)
        self.work += work
        for arg in bind.args:
            if type(arg) is Local:
                self.inside[arg] = self.inside.get(arg, 0) + 1
        for binder in bind.binders:
            self.made[binder] = bind

    def finish(self, uses: dict[Local, int]) -> bool:
        """Find operands and outputs; False if NumPy would give an output in another form, or if
        there are too many.
        """
        needed = [b for b in self.made if uses.get(b, 0) > self.inside.get(b, 0)]
        outside: dict[int, Bind] = {}
        for binder in needed:  # binds after the cluster append what they read
            bind = self.made[binder]
            if self.is_given_as_by_numpy(bind, binder):
                self.outputs.append(binder)
            elif bind.op.memory == "view" or (binder.type.weak and bind.op.moves_elements):
                outside[id(bind)] = bind
                read = [a for a in bind.args if type(a) is Local and a in self.made]
                needed += [a for a in read if a not in needed]
            else:
                return False
        self.after = [bind for bind in self.binds if id(bind) in outside]
        self.outputs = list(dict.fromkeys(self.outputs))
        self.operands = [arg for arg in self.inside if arg not in self.made]
        return bool(self.outputs) and len(self.operands) + len(self.outputs) <= _MOST_ARRAYS

    def is_given_as_by_numpy(self, bind: Bind, binder: Local) -> bool:
        """Whether a kernel gives a result of ``bind`` as NumPy does: a scalar, or a new array."""
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
        if bind.op.scalar in GIVE_SCALARS:
            return True
        # a cast of a scalar is one, but not that of a 0-d array, which an argument may be
        return (
            bind.op.elementwise
            and bind.op.casts_operands
            and all(
                type(arg) is not Local
                or arg.type.weak
                or (arg in self.made and self.is_given_as_by_numpy(self.made[arg], arg))
                for arg in bind.args
            )
        )

    def body(self) -> Lambda:
        """The cluster as a program of its own."""
        names = {operand: Local(operand.type, operand.name) for operand in self.operands}
        inner = {**names, **{b: Local(b.type, b.name) for b in self.made}}
        binds = []
        for bind in self.binds:
            args = tuple([inner[a] if type(a) is Local else a for a in bind.args])
            binders = tuple([inner[b] for b in bind.binders])
            binds.append(Bind(binders, bind.op, args, bind.attrs, bind.source))
        return Lambda(
            tuple(names.values()), tuple(binds), Ret(tuple([inner[o] for o in self.outputs]))
        )


def unrolled_clusters(
    fn: Lambda, has_form: Callable[[Bind], bool], kernel_of: Callable[[Lambda], Any]
) -> list:
    """The binds of ``fn`` and, in place of some, ``UnrolledCluster``s, in an order of execution.

    ``has_form``: whether a bind may be part of a kernel, from its record; ``kernel_of``: the kernel
    of a body, None if there is none after all.
    """
    uses = use_counts(fn)
    units: list[Bind | UnrolledCluster] = []
    cluster, total = UnrolledCluster(), 0

    def close() -> None:
        nonlocal cluster, total
        total += cluster.work
        units.extend(_finished(cluster, uses, kernel_of))
        cluster = UnrolledCluster()

    for bind in fn.binds:
        is_full = total + cluster.work > _MOST_TOTAL
        work = _work_of(bind) if not is_full and has_form(bind) else None
        if work is None or work > _MOST_WORK:
            is_effect = bind.op.effect or (bind.op.holds_lambdas and has_effect(bind))
            if is_effect or any(arg in cluster.made for arg in bind.args if type(arg) is Local):
                close()
            units.append(bind)
            continue
        if cluster.work + work > _MOST_WORK:
            close()
        cluster.add(bind, work)
    close()
    return units


def _finished(cluster: UnrolledCluster, uses: dict[Local, int], kernel_of: Callable) -> list:
    """A cluster with its kernel; two smaller ones where it has none, or its binds."""
    is_one = len(cluster.binds) == 1
    if (
        not cluster.binds
        or cluster.work < LEAST_WORK
        or (is_one and cluster.binds[0].op.role != "fused")
    ):
        return cluster.binds
    if cluster.finish(uses):
        cluster.kernel = kernel_of(cluster.body())
        if cluster.kernel is not None:
            return [cluster]
    if is_one:
        return cluster.binds
    half = len(cluster.binds) // 2
    found: list = []
    for binds in (cluster.binds[:half], cluster.binds[half:]):
        part = UnrolledCluster()
        for bind in binds:
            part.add(bind, _work_of(bind) or 0)
        found += _finished(part, uses, kernel_of)
    return found


def _work_of(bind: Bind) -> int | None:
    """The scalars that a bind computes; None if its values are not small."""
    for arg in bind.args:
        size = _size_of(arg.type)
        if size is None or size > _MOST_READ:
            return None
    sizes = [_size_of(binder.type) for binder in bind.binders]
    is_moved = bool(bind.op.moves_elements) or not bind.args
    most = _MOST_MOVED if is_moved else _MOST_MADE
    if any(size is None or size > most for size in sizes):
        return None
    if bind.op.role == "fused":
        made = [b for inner in bind.attrs["body"].binds for b in inner.binders]
        return sum([_size_of(b.type) or 0 for b in made])
    if is_moved:
        return 0
    total = sum([size for size in sizes if size is not None])
    if bind.op.elementwise:
        return total
    work = 2 * max([total, *[_size_of(arg.type) or 0 for arg in bind.args]])
    return work if work <= _MOST_STEP else None


def _size_of(kind: ArrayType | None) -> int | None:
    """The number of elements; None if it is unknown or 0, or of a dtype that no kernel has."""
    if not isinstance(kind, ArrayType) or any(type(n) is not int for n in kind.shape):
        return None
    if kind.dtype not in DTYPES:
        return None
    return int(kind.size) or None

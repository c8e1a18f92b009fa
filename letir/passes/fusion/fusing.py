"""``fuse``: elementwise binds of one shape become one ``fused`` bind, which a plan runs as a group.

``letir.passes.fusion.clustering`` decides the groups; ``_Fuser`` moves the binds between their
members and makes the ``fused`` binds; ``_Group`` is the view of such a bind for plans.
"""

from collections.abc import Container

from attrs import define, field, frozen

from letir import passes
from letir.ast import entry_point
from letir.ast.attrs import Attrs
from letir.ast.bodies import all_bodies
from letir.ast.liveness import live_binds
from letir.ast.process_state import paused_gc
from letir.ast.terms import Arg, Bind, Lambda, Local, Ret
from letir.ops.autodiff.checkpoint_and_custom_jvp import fit_body
from letir.ops.elementwise.fused import fused
from letir.passes.fusion.clustering import Cluster, Grouping, bytes_of, elements_of, is_weightless
from letir.passes.type_propagation import map_fitting_bodies

_MAX_ALIKE = 4  # different groups of the same operations and lines that are compared


@entry_point
@paused_gc()
def fuse(fn: Lambda) -> Lambda:
    """Group elementwise binds of one shape into ``fused`` binds, whose bodies hold them in order.

    A group is placed at its last bind; independent binds in between, such as a ``split``, are
    computed before it. It ends where another bind needs one of its results, at an effect, and with
    a ``concatenate`` of its results, which it includes. At other binds it never keeps more bytes
    alive than the original program. Results are the same to the last bit, dead binds are dropped,
    names and source lines stay, and bodies are fused too. Linear in the number of binds; returns
    ``fn`` itself if there is nothing to fuse.

    >>> from letir.ast.text.parser import parse
    >>> f = parse('''lambda %0: float64[3], %1: float64[3, 3] {
    ...   %2: float64[3] = exp(%0);
    ...   %3: float64[3] = matmul(%1, %0);
    ...   %4: float64[3] = mul(%2, %3);
    ...   return %4 }''')
    >>> print(fuse(f).listing(), end="")
    %2 = matmul %1, %0
    %3 = fused %0, %2, lambda %4, %5 {
      %6 = exp %4
      %7 = mul %6, %5
      return %7
    }
    return %3
    """
    if not any(bind.op.holds_lambdas for bind in fn.binds):  # nearly all programs
        return fused_level(fn)
    group_bodies = {
        id(b.attrs["body"]) for body in all_bodies(fn) for b in body.binds if b.op.role == "fused"
    }
    return map_fitting_bodies(
        fn, lambda body: body if id(body) in group_bodies else fused_level(body)
    )


def fused_level(fn: Lambda, unstored: Container[Local] = ()) -> Lambda:
    """``fn`` with its own binds fused; ``unstored``: values without an array, see ``Grouping``."""
    if sum([bind.op.elementwise for bind in fn.binds]) < 2:
        return fn
    live = fn.with_binds(live_binds(fn))
    if any(len(bind.binders) > 1 for bind in live.binds):
        live = passes.splits_first(live)
    grouping = Grouping(live, unstored)
    grouping.run()
    binds = _Fuser(grouping).binds()
    return fn if binds is None else fn.with_binds(binds)


@define(eq=False)
class _Fuser:
    """Makes the binds of clusters."""

    grouping: Grouping
    units: list = field(factory=list)  # binds and clusters in their final order

    def binds(self) -> list[Bind] | None:
        """The program's binds with a bind for each cluster; None if all clusters are single."""
        binds, unstored = self.grouping.fn.binds, self.grouping.unstored
        cluster_at: list[Cluster | None] = [None] * len(binds)
        for cluster in self.grouping.clusters:
            cluster.members.sort()
            for position in cluster.members:
                cluster_at[position] = cluster
        for position, bind in enumerate(binds):
            cluster = cluster_at[position]
            if cluster is None:
                self.units.append(bind)
                if is_weightless(bind.op) or (unstored and self.grouping.is_unstored(bind)):
                    self.move(bind)
            elif position == cluster.members[-1]:
                self.units.append(cluster)
        if not any(type(u) is Cluster and len(u.members) > 1 for u in self.units):
            return None
        return [self.bind(u) if type(u) is Cluster else u for u in self.units]

    def move(self, bind: Bind) -> None:
        """Move the last bind before a cluster on which it does not depend."""
        last = self.units[-2] if len(self.units) > 1 else None
        if type(last) is Cluster and last not in map(self.grouping.cluster_of, bind.args):
            self.units[-2:] = bind, last

    def bind(self, cluster: Cluster) -> Bind:
        """The ``fused`` bind of a cluster; a cluster of one bind stays that bind."""
        members = [self.grouping.fn.binds[i] for i in cluster.members]
        if len(members) == 1:
            return members[0]
        remaining = self.grouping.remaining
        names: dict[Local, Local] = {}  # local outside -> local in the body
        operands: list[Local] = []
        outputs: list[Local] = []
        binds = []
        for bind in members:
            for arg in bind.args:
                if type(arg) is Local and arg not in names:
                    names[arg] = Local(arg.type, arg.name)
                    operands.append(arg)
            for binder in bind.binders:
                names[binder] = binder
                if remaining.get(binder):  # used outside as well: the body needs another local
                    names[binder] = Local(binder.type, binder.name)
                    outputs.append(binder)
            args = tuple([names[arg] if type(arg) is Local else arg for arg in bind.args])
            binders = tuple([names[binder] for binder in bind.binders])
            binds.append(Bind(binders, bind.op, args, bind.attrs, bind.source))
        ret = Ret(tuple([names[output] for output in outputs]))
        body = Lambda(tuple([names[operand] for operand in operands]), tuple(binds), ret)
        attrs = Attrs(body=body)
        return Bind(tuple(outputs), fused, tuple(operands), attrs, members[-1].source)


def with_shared_bodies(fn: Lambda, others: Container[Local] = ()) -> Lambda:
    """``fn``, where equal groups, such as those of the steps of an unrolled loop, share a body.

    Equal in names and source lines too. ``others``: the first results of groups that keep their
    bodies. Linear in the number of binds.
    """
    binds = list(fn.binds)
    groups = [n for n, bind in enumerate(binds) if bind.op.role == "fused"]
    groups = [n for n in groups if binds[n].binders[0] not in others]
    if len(groups) < 2:
        return fn
    # by operations and lines, of which equal bodies have the same objects: hashes take longer
    shared: dict[tuple, list[Attrs]] = {}
    for n in groups:
        attrs = binds[n].attrs
        body = attrs["body"]
        key = (
            *[x.name for x in body.params],
            *[x for b in body.binds for x in (id(b.op), id(b.source), b.binders[0].name)],
        )
        known = shared.setdefault(key, [])
        same = next((other for other in known if other["body"] == body), None)
        if same is not None:
            binds[n] = binds[n].replace(attrs=same)
        elif len(known) < _MAX_ALIKE:
            known.append(attrs)
    return fn.with_binds(binds)


# ---- the view for plans ----


@frozen
class _Cost:
    """The work of a group: computed ``elements``, bytes ``read`` and ``written``, and the bytes of
    intermediate values, ``avoided`` if they never reach memory.
    """

    elements: int
    read: int
    written: int
    avoided: int


@frozen(eq=False)
class _Group:
    """A fused bind as seen by a plan: ``body`` computes ``outputs`` from ``inputs``.

    The ``binds`` of the body are elementwise with results of one ``shape``, to which their operands
    broadcast. Only the last may be different: a ``concatenate`` of values of the group, which may
    then have several shapes, and ``shape`` is None.

    >>> from letir.ast.text.parser import parse
    >>> f = parse('''lambda %0: float64[3] {
    ...   %1: float64[3] = exp(%0); %2: float64[3] = neg(%1); return %2 }''')
    >>> group = group_of(fuse(f).binds[0])
    >>> [bind.op.name for bind in group.binds], group.shape, group.cost.avoided
    (['exp', 'neg'], (3,), 24)
    """

    inputs: tuple[Arg, ...]
    outputs: tuple[Local, ...]
    body: Lambda = field(repr=False)

    @property
    def binds(self) -> tuple[Bind, ...]:
        """The binds of the body, on its parameters."""
        return self.body.binds

    @property
    def shape(self) -> tuple | None:
        """The common shape of all values; None if a ``concatenate`` ends the group."""
        last = self.binds[-1]
        return last.binders[0].type.shape if last.op.elementwise else None

    @property
    def cost(self) -> _Cost:
        """Elements and bytes; a symbolic size counts as 1024."""
        types = [binder.type for bind in self.binds for binder in bind.binders]
        read = sum([bytes_of(param.type) for param in self.body.params])
        written = sum([bytes_of(output.type) for output in self.outputs])
        avoided = sum(map(bytes_of, types)) - written
        return _Cost(sum(map(elements_of, types)), read, written, avoided)


def group_of(bind: Bind) -> _Group:
    """The group of a ``fused`` bind, for the types of its operands."""
    body = fit_body(bind.attrs["body"], [arg.type for arg in bind.args])
    return _Group(bind.args, bind.binders, body)

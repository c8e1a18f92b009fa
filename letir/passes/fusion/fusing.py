"""``fuse``: elementwise binds of one shape become one bind ``fused``, which a plan compiles as one.

``_Group`` is what a plan sees of such a bind. Who belongs together is decided in
``letir.passes.fusion.clustering``; what stands in between is moved, and the binds are made, in
``_Fuser``.
"""

from attrs import define, field, frozen

from letir.ast.attrs import Attrs
from letir.ast.bodies import all_bodies
from letir.ast.gc_pause import paused_gc
from letir.ast.liveness import live_binds
from letir.ast.terms import Arg, Bind, Lambda, Local, Ret
from letir.ops.autodiff.checkpoint_and_custom_jvp import fit_body
from letir.ops.elementwise.fused import fused
from letir.passes.fusion.clustering import Cluster, Grouping, bytes_of, elements_of, is_weightless
from letir.passes.peephole_rules.split_hoisting import splits_first
from letir.passes.type_propagation import throughout_fitting


@paused_gc()
def fuse(fn: Lambda) -> Lambda:
    """Put elementwise binds of one shape into one bind ``fused``, whose body has them in order.

    A group stands where its last bind stood: what comes in between and does not need it, as a
    ``split``, is computed before. It ends where something else needs one of its results, at an
    effect, and with a ``concatenate`` of its results, which it takes in. At no bind outside of it
    does it keep more bytes alive than the program did. Results are the same to the last bit; binds
    that nothing needs are dropped; names and source lines stay; bodies that binds hold are fused
    too. Linear in the number of binds; ``fn`` itself is returned if there is nothing to put
    together.

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
        return _fused_level(fn)
    held = {
        id(b.attrs["body"]) for body in all_bodies(fn) for b in body.binds if b.op.role == "fused"
    }
    return throughout_fitting(fn, lambda body: body if id(body) in held else _fused_level(body))


def _fused_level(fn: Lambda) -> Lambda:
    """``fn`` with its own binds fused."""
    if sum([bind.op.elementwise for bind in fn.binds]) < 2:
        return fn
    grouping = Grouping(splits_first(fn.with_binds(live_binds(fn))))
    grouping.run()
    binds = _Fuser(grouping).binds()
    return fn if binds is None else fn.with_binds(binds)


@define(eq=False)
class _Fuser:
    """Makes the binds of clusters."""

    grouping: Grouping
    units: list = field(factory=list)  # binds and clusters, in the order of the result

    def binds(self) -> list[Bind] | None:
        """The program's binds with one for each cluster; None if no cluster has two."""
        binds = self.grouping.fn.binds
        of: list[Cluster | None] = [None] * len(binds)
        for cluster in self.grouping.clusters:
            cluster.members.sort()
            for position in cluster.members:
                of[position] = cluster
        for position, bind in enumerate(binds):
            cluster = of[position]
            if cluster is None:
                self.units.append(bind)
                if is_weightless(bind.op):
                    self.move(bind)
            elif position == cluster.members[-1]:
                self.units.append(cluster)
        if not any(type(u) is Cluster and len(u.members) > 1 for u in self.units):
            return None
        return [self.bind(u) if type(u) is Cluster else u for u in self.units]

    def move(self, bind: Bind) -> None:
        """Put the bind that is last before a cluster that it does not need."""
        last = self.units[-2] if len(self.units) > 1 else None
        if type(last) is Cluster and last not in map(self.grouping.cluster_of, bind.args):
            self.units[-2:] = bind, last

    def bind(self, cluster: Cluster) -> Bind:
        """The bind of a cluster; of one bind that itself."""
        members = [self.grouping.fn.binds[i] for i in cluster.members]
        if len(members) == 1:
            return members[0]
        left = self.grouping.left
        names: dict[Local, Local] = {}  # in the body
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
                if left.get(binder):  # bound outside, it needs another local in here
                    names[binder] = Local(binder.type, binder.name)
                    outputs.append(binder)
            args = tuple([names[arg] if type(arg) is Local else arg for arg in bind.args])
            binders = tuple([names[binder] for binder in bind.binders])
            binds.append(Bind(binders, bind.op, args, bind.attrs, bind.source))
        ret = Ret(tuple([names[output] for output in outputs]))
        body = Lambda(tuple([names[operand] for operand in operands]), tuple(binds), ret)
        attrs = Attrs(body=body)
        return Bind(tuple(outputs), fused, tuple(operands), attrs, members[-1].source)


# ---- what a plan sees ----


@frozen
class _Cost:
    """What a group computes and moves: ``elements`` that are computed, bytes that are ``read`` and
    ``written``, and bytes of values inside, ``spared`` if they never reach memory.
    """

    elements: int
    read: int
    written: int
    spared: int


@frozen(eq=False)
class _Group:
    """A fused bind as a plan compiles it: ``outputs`` are computed of ``inputs`` by ``body``.

    ``binds`` of the body are elementwise and give arrays of one ``shape``, to which their operands
    broadcast. Only the last may be another: a ``concatenate`` of values of the group, which may
    then be of several shapes; ``shape`` is None.

    >>> from letir.ast.text.parser import parse
    >>> f = parse('''lambda %0: float64[3] {
    ...   %1: float64[3] = exp(%0); %2: float64[3] = neg(%1); return %2 }''')
    >>> group = group_of(fuse(f).binds[0])
    >>> [bind.op.name for bind in group.binds], group.shape, group.cost.spared
    (['exp', 'neg'], (3,), 24)
    """

    inputs: tuple[Arg, ...]
    outputs: tuple[Local, ...]
    body: Lambda = field(repr=False)

    @property
    def binds(self) -> tuple[Bind, ...]:
        """The binds inside, on the parameters of the body."""
        return self.body.binds

    @property
    def shape(self) -> tuple | None:
        """The shape that all values inside have; None where a ``concatenate`` ends the group."""
        last = self.binds[-1]
        return last.binders[0].type.shape if last.op.elementwise else None

    @property
    def cost(self) -> _Cost:
        """Elements and bytes; a size that is known by name only counts as 1024."""
        made = [binder.type for bind in self.binds for binder in bind.binders]
        read = sum([bytes_of(param.type) for param in self.body.params])
        written = sum([bytes_of(output.type) for output in self.outputs])
        spared = sum(map(bytes_of, made)) - written
        return _Cost(sum(map(elements_of, made)), read, written, spared)


def group_of(bind: Bind) -> _Group:
    """The group that a bind of ``fused`` is, for the types of its operands."""
    body = fit_body(bind.attrs["body"], [arg.type for arg in bind.args])
    return _Group(bind.args, bind.binders, body)

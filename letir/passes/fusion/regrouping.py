"""``regroup_clusters``: a program with one bind for each of its clusters of elementwise binds and
reductions.
"""

from collections.abc import Callable, Container, Sequence
from typing import Any, Protocol

from attrs import define, field

from letir.ast.terms import Bind, Lambda, Local, Ret


class BindCluster(Protocol):
    """Positions of binds that become one bind, and binds from outside that it computes again."""

    members: list[int]
    copies: dict[Local, Bind]


Make = Callable[[Any, Lambda, tuple[Local, ...], tuple[Local, ...]], Bind | None]


def without_groups(fn: Lambda, kept: Container[Local] = ()) -> Lambda:
    """``fn`` with the bodies of its ``fused`` binds inlined, except for the results ``kept``."""
    if not any(bind.op.role == "fused" for bind in fn.binds):
        return fn
    binds: list[Bind] = []
    names: dict[Local, Local] = {}
    for bind in fn.binds:
        args = tuple([names.get(arg, arg) if type(arg) is Local else arg for arg in bind.args])
        if bind.op.role != "fused" or bind.binders[0] in kept or not has_operand_types(bind):
            binds.append(bind.replace(args=args))
            continue
        body = bind.attrs["body"]
        inner = dict(zip(body.params, args, strict=True))
        outer = dict(zip(body.ret.args, bind.binders, strict=True))
        for member in body.binds:
            for binder in member.binders:
                inner[binder] = outer.get(binder) or Local(binder.type, binder.name)
            operands = tuple([inner[arg] if type(arg) is Local else arg for arg in member.args])
            binders = tuple([inner[binder] for binder in member.binders])
            binds.append(Bind(binders, member.op, operands, member.attrs, member.source))
        for result, binder in zip(body.ret.args, bind.binders, strict=True):
            if inner[result] is not binder:  # a value is returned twice, or a parameter is returned
                names[binder] = inner[result]
    ret = tuple([names.get(arg, arg) if type(arg) is Local else arg for arg in fn.ret.args])
    return Lambda(fn.params, tuple(binds), Ret(ret), fn.in_tree, fn.out_tree)


def has_operand_types(bind: Bind) -> bool:
    """Whether the operands of a ``fused`` bind have the types of its body's parameters."""
    params = bind.attrs["body"].params
    return len(params) == len(bind.args) and all(
        param.type == arg.type for param, arg in zip(params, bind.args, strict=True)
    )


def regroup_clusters(fn: Lambda, clusters: Sequence[BindCluster], make: Make) -> Lambda:
    """``fn`` with the bind ``make(cluster, body, operands, results)`` for each cluster.

    If ``make`` returns None, the binds of the cluster stay. A view that binds outside of the
    cluster read is computed outside too.
    """
    return _Regrouping(fn, make).run(clusters)


@define(eq=False)
class _Regrouping:
    """The rewriting of one program. ``units``: for each position the bind's cluster, or None."""

    fn: Lambda
    make: Make
    units: list[BindCluster | None] = field(factory=list)
    made: dict[int, Bind] = field(factory=dict)  # by id of the cluster
    results: dict[int, list[Local]] = field(factory=dict)
    outside: set[Local] = field(factory=set)  # values read outside of their clusters

    def run(self, clusters: Sequence[BindCluster]) -> Lambda:
        """The program."""
        fn = self.fn
        self.units = [None] * len(fn.binds)
        for cluster in clusters:
            for position in cluster.members:
                self.units[position] = cluster
        self.find_results()
        for cluster in clusters:
            bind = self.cluster_bind(cluster)
            if bind is not None:
                self.made[id(cluster)] = bind
        if not self.made:
            return fn
        return fn.with_binds(self.order_binds())

    def find_results(self) -> None:
        """Fill ``outside`` and ``results``, from the last bind to the first."""
        owner = {
            binder: cluster
            for bind, cluster in zip(self.fn.binds, self.units, strict=True)
            for binder in bind.binders
        }
        self.outside.update(self.fn.ret.locals())
        for bind, cluster in zip(reversed(self.fn.binds), reversed(self.units), strict=True):
            # a view that binds outside read is computed outside too, from its operand
            is_outside = bind.op.memory == "view" and not self.outside.isdisjoint(bind.binders)
            for arg in bind.args:
                if type(arg) is Local and (is_outside or owner.get(arg) is not cluster):
                    self.outside.add(arg)
        for bind, cluster in zip(self.fn.binds, self.units, strict=True):
            if cluster is not None and bind.op.memory != "view":
                results = self.results.setdefault(id(cluster), [])
                results += [binder for binder in bind.binders if binder in self.outside]

    def cluster_bind(self, cluster: BindCluster) -> Bind | None:
        """The bind that ``make`` returns for the body of a cluster."""
        names: dict[Local, Local] = {}  # local outside -> local in the body
        operands: list[Local] = []
        binds = []
        for bind in (*cluster.copies.values(), *[self.fn.binds[n] for n in cluster.members]):
            for arg in bind.args:
                if type(arg) is Local and arg not in names:
                    names[arg] = Local(arg.type, arg.name)
                    operands.append(arg)
            names.update({binder: Local(binder.type, binder.name) for binder in bind.binders})
            args = tuple([names[arg] if type(arg) is Local else arg for arg in bind.args])
            binders = tuple([names[binder] for binder in bind.binders])
            binds.append(Bind(binders, bind.op, args, bind.attrs, bind.source))
        results = tuple(self.results.get(id(cluster), ()))
        ret = Ret(tuple([names[result] for result in results]))
        body = Lambda(tuple([names[operand] for operand in operands]), tuple(binds), ret)
        return self.make(cluster, body, tuple(operands), results) if results else None

    def order_binds(self) -> list[Bind]:
        """The binds, nearly in the program's order, each after the binds that it depends on."""
        new_binds = [self.new_binds(position) for position in range(len(self.fn.binds))]
        by_binder = {
            binder: bind for binds in new_binds for bind in binds for binder in bind.binders
        }
        order: list[Bind] = []
        done: set[int] = set()
        for binds in new_binds:
            stack = [(bind, False) for bind in reversed(binds)]
            while stack:
                bind, is_ready = stack.pop()
                if is_ready:
                    order.append(bind)
                elif id(bind) not in done:
                    done.add(id(bind))
                    stack.append((bind, True))
                    needed = [by_binder[arg] for arg in bind.locals() if arg in by_binder]
                    stack += [(item, False) for item in reversed(needed) if id(item) not in done]
        return order

    def new_binds(self, position: int) -> list[Bind]:
        """The binds in place of the bind at ``position``; a cluster replaces its last bind."""
        bind, cluster = self.fn.binds[position], self.units[position]
        whole = self.made.get(id(cluster)) if cluster is not None else None
        if cluster is None or whole is None:
            return [bind]
        binds = [whole] if position == cluster.members[-1] else []
        if bind.op.memory == "view" and not self.outside.isdisjoint(bind.binders):
            binds.append(bind)
        return binds

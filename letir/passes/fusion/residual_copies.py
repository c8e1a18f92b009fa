"""``recompute_residuals``: groups recompute cheap values of earlier groups instead of reading them
from memory.

A value that one kernel computes and a later one reads, such as a residual of a gradient, is written
to memory and read again. If a few instructions compute it from operands that are much smaller, or
that the later kernel reads anyway, both kernels are faster without the array.

``_Group`` is a group, or a single elementwise bind, to which binds are added; ``_Recomputation``
decides which binds are copied, and makes the new program.
"""

from collections.abc import Callable
from typing import Any

from attrs import define, field

from letir.ast.attrs import Attrs
from letir.ast.liveness import may_raise, needed_binds
from letir.ast.terms import Arg, Bind, Lambda, Local, Ret
from letir.passes.fusion.clustering import bytes_of, elements_of

_LARGE = 1 << 16  # bytes of a value that may not stay in the cache until it is read
_MAX_BINDS = 8  # the most binds that compute one value
_MAX_ARRAYS = 24  # the most operands and results of a group
_WRITTEN = 2  # the cost of writing a byte, which is first read into the cache, in bytes read
_MARGIN = 1.5  # by which the memory traffic that is saved has to exceed the cost


@define(eq=False)
class _Group:
    """A bind whose results other groups may compute again.

    ``binds`` compute ``results`` (binder -> value) from ``operands`` (parameter -> operand).
    ``origins``: the binder in the original program of each value that was copied into the group.
    """

    bind: Bind
    operands: dict[Local, Arg]
    binds: list[Bind]
    results: dict[Local, Arg]
    origins: dict[Local, Local] = field(factory=dict)

    @classmethod
    def from_bind(cls, bind: Bind) -> "_Group":
        if bind.op.role != "fused":
            same: dict = {arg: arg for arg in (*bind.locals(), *bind.binders)}
            return cls(bind, same, [bind], {binder: binder for binder in bind.binders})
        body = bind.attrs["body"]
        operands = dict(zip(body.params, bind.args, strict=True))
        return cls(
            bind, operands, [*body.binds], dict(zip(bind.binders, body.ret.args, strict=True))
        )

    def cheap_chain(self, value: Arg) -> list[Bind] | None:
        """The binds that compute a value of the group; None if they are many, or one is not
        cheap.
        """
        makers = {binder: bind for bind in self.binds for binder in bind.binders}
        chain: dict[Local, Bind] = {}
        todo = [value]
        while todo:
            arg = todo.pop()
            if type(arg) is not Local or arg not in makers or arg in chain:
                continue
            bind = chain[arg] = makers[arg]
            if len(chain) > _MAX_BINDS or not _is_cheap(bind):
                return None
            todo += bind.args
        return [bind for bind in self.binds if bind.binders[0] in chain]

    def operands_read(self, chain: list[Bind]) -> list[Local]:
        """The group's operands that a chain of its binds reads."""
        args = dict.fromkeys([arg for bind in chain for arg in bind.args if arg in self.operands])
        operands = [self.operands[arg] for arg in args]  # type: ignore[index]
        return [*dict.fromkeys([arg for arg in operands if type(arg) is Local])]

    def copy_value(self, value: Local, other: "_Group", chain: list[Bind]) -> None:
        """Compute ``value``, a result of another group, by copies of that group's binds."""
        params = {arg: param for param, arg in self.operands.items()}
        copied = {origin: local for local, origin in self.origins.items()}
        names: dict[Local, Arg] = {}
        copies = []
        for bind in chain:
            origin = other.origins.get(bind.binders[0], bind.binders[0])
            if origin in copied:
                names[bind.binders[0]] = copied[origin]
                continue
            for arg in bind.args:
                if type(arg) is Local and arg not in names:
                    outer = other.operands[arg]
                    if type(outer) is Local and outer not in params:
                        params[outer] = Local(arg.type, arg.name)
                        self.operands[params[outer]] = outer
                    names[arg] = params[outer] if type(outer) is Local else outer
            (binder,) = bind.binders
            names[binder] = local = Local(binder.type, binder.name)
            self.origins[local] = origin
            copies.append(bind.substitute(names).replace(binders=(local,)))
        param, computed = params[value], names[other.results[value]]  # type: ignore[index]
        del self.operands[param]
        first = len(self.origins) - len(copies)  # copies come before the group's own binds
        renamed = [bind.substitute({param: computed}) for bind in self.binds[first:]]
        self.binds = [*self.binds[:first], *copies, *renamed]
        self.results = {k: computed if v is param else v for k, v in self.results.items()}


def _is_cheap(bind: Bind) -> bool:
    """Whether a bind takes a few instructions for each element, and raises no errors."""
    if not bind.op.elementwise or bind.op.cost not in ("free", "cheap") or bind.op.random:
        return False
    return len(bind.binders) == 1 and bind.binders[0].type is not None and not may_raise(bind)


def recompute_residuals(
    fn: Lambda, is_kernel: Callable[[Bind], bool], fits: Callable[[Bind, Bind, set], bool]
) -> tuple[Lambda, dict[Local, int]]:
    """``fn`` with copies of cheap binds in groups that would read their results from memory.

    Only groups with ``is_kernel(group)`` get copies, and only of a bind with ``fits(group, bind,
    copied)``, where ``copied`` has the values that are copied with it. No arrays live longer,
    except in place of larger ones. Also returns, by the first result of each group, how many of its
    first binds repeat what an earlier group computes, whose warnings would come twice.
    """
    if not any(bind.op.role == "fused" and any(map(_is_large, bind.args)) for bind in fn.binds):
        return fn, {}
    result = _Recomputation(fn, is_kernel, fits)
    return result.rebuild_program() if result.run() else (fn, {})


def _is_large(value: Arg) -> bool:
    return type(value) is Local and bytes_of(value.type) >= _LARGE


@define(eq=False)
class _Recomputation:
    """The search for values to compute again.

    ``groups``: the groups that are needed so far, by the position of their bind.
    ``positions``: value -> the position of its group. ``users``: value -> the positions of binds
    that read it. ``last``: the last position at which an array that owns memory is read, through
    views too; ``roots``: view -> that array. ``kernels``: position -> whether the bind becomes a
    kernel.
    """

    fn: Lambda
    is_kernel: Callable[[Bind], bool]
    fits: Callable[[Bind, Bind, set], bool]
    groups: dict[int, _Group] = field(factory=dict)
    positions: dict[Arg, int] = field(factory=dict)
    users: dict[Arg, set[int]] = field(factory=dict)
    roots: dict[Arg, Arg] = field(factory=dict)
    last: dict[Arg, int] = field(factory=dict)
    kernels: dict[int, bool] = field(factory=dict)

    def run(self) -> bool:
        """Copy all binds for which it pays; returns whether any was copied."""
        self.find_uses()
        copied = False
        for position, bind in enumerate(self.fn.binds):
            if bind.op.role != "fused":
                continue
            for value in dict.fromkeys(bind.locals()):
                if value in self.positions and _is_large(value) and self.becomes_kernel(position):
                    copied |= self.copy_if_it_pays(value, position)
        return copied

    def group_at(self, position: int) -> _Group:
        """The group at a position."""
        if position not in self.groups:
            self.groups[position] = _Group.from_bind(self.fn.binds[position])
        return self.groups[position]

    def becomes_kernel(self, position: int) -> bool:
        """Whether the bind at a position becomes a kernel."""
        if position not in self.kernels:
            bind = self.fn.binds[position] if position < len(self.fn.binds) else None
            is_group = bind is not None and bind.op.role == "fused"
            self.kernels[position] = is_group and self.is_kernel(bind)  # type: ignore[arg-type]
        return self.kernels[position]

    def find_uses(self) -> None:
        """Fill ``positions``, ``users``, ``last`` and ``roots``."""
        end = len(self.fn.binds)
        terms: tuple[Any, ...] = (*self.fn.binds, self.fn.ret)
        for position, bind in enumerate(terms):
            for arg in bind.locals():
                self.users.setdefault(arg, set()).add(position)
                self.last[self.roots.get(arg, arg)] = position
            if position < end and bind.op.memory == "view":
                for binder in bind.binders:
                    self.roots[binder] = self.roots.get(bind.args[0], bind.args[0])
            if position < end and (bind.op.role == "fused" or bind.op.elementwise):
                self.positions.update(dict.fromkeys(bind.binders, position))
        self.last.update(dict.fromkeys(self.fn.params, end))  # the caller keeps them

    def copy_if_it_pays(self, value: Local, position: int) -> bool:
        """Let the group at ``position`` compute one of its operands if that pays."""
        group, source = self.group_at(position), self.group_at(self.positions[value])
        chain = source.cheap_chain(source.results[value])
        if not chain:
            return False
        new = [x for x in source.operands_read(chain) if x not in group.operands.values()]
        if len(group.operands) + len(group.results) + len(new) - 1 > _MAX_ARRAYS:
            return False
        if not self.pays(value, position, chain, new) or not self.chain_fits(group, source, chain):
            return False
        group.copy_value(value, source, chain)
        self.users[value].discard(position)
        for arg in new:
            self.users.setdefault(arg, set()).add(position)
            root = self.roots.get(arg, arg)
            self.last[root] = max(self.last.get(root, 0), position)
        return True

    def chain_fits(self, group: _Group, source: _Group, chain: list[Bind]) -> bool:
        """Whether all binds of a chain fit into a group."""
        results = {binder for bind in chain for binder in bind.binders}
        outer = [bind.substitute(source.operands) for bind in chain]
        return all(self.fits(group.bind, bind, results) for bind in outer)

    def pays(self, value: Local, position: int, chain: list[Bind], new: list[Local]) -> bool:
        """Whether recomputing saves time, and needs no more memory."""
        size, users = bytes_of(value.type), self.users[value]
        is_dropped = all(map(self.becomes_kernel, users))
        saved = size + (_WRITTEN * size / len(users) if is_dropped else 0)
        cost = elements_of(value.type) * len(chain) + sum([bytes_of(arg.type) for arg in new])
        freed_before = {
            root for x in new if self.last.get(root := self.roots.get(x, x), 0) < position
        }
        held_bytes = sum([bytes_of(root.type) for root in freed_before])  # type: ignore[union-attr]
        return cost * _MARGIN <= saved and held_bytes <= (size if is_dropped else 0)

    # ---- the new program ----

    def rebuild_program(self) -> tuple[Lambda, dict[Local, int]]:
        """The program without unused results of groups, and the numbers of repeated binds (see
        ``recompute_residuals``).
        """
        needed: set[Arg] = set(self.fn.ret.locals())
        live: list[tuple[Bind, _Group | None]] = []
        for position in reversed(range(len(self.fn.binds))):
            bind, group = self.fn.binds[position], None
            if bind.op.role == "fused" or bind.op.elementwise:
                if needed.isdisjoint(bind.binders):
                    continue
                group = self.group_at(position)
                bind = _with_needed_results(group, needed) if bind.op.role == "fused" else bind
            needed.update(bind.locals())
            live.append((bind, group))
        computed: set[Local] = set()
        repeated, binds = {}, []
        for bind, group in reversed(live):
            new_bind, n = (bind, 0) if group is None else _sorted_copies(bind, group, computed)
            binds.append(new_bind)
            if n:
                repeated[new_bind.binders[0]] = n
        return self.fn.with_binds(binds), repeated


def _with_needed_results(group: _Group, needed: set[Arg]) -> Bind:
    """The bind of a group with the results that are needed."""
    results = {k: v for k, v in group.results.items() if k in needed}
    if not group.origins and len(results) == len(group.bind.binders):
        return group.bind
    ret = Ret(tuple(results.values()))
    binds = needed_binds(group.binds, ret, lambda _: False)
    used = {arg for bind in binds for arg in bind.args} | {*ret.args}
    operands = {param: arg for param, arg in group.operands.items() if param in used}
    attrs = Attrs(body=Lambda(tuple(operands), binds, ret))
    return group.bind.replace(binders=tuple(results), args=tuple(operands.values()), attrs=attrs)


def _sorted_copies(bind: Bind, group: _Group, computed: set[Local]) -> tuple[Bind, int]:
    """(the bind of a group with its repeated binds first, the number of these).

    ``computed``: the values of the groups before; those of this group are added. The operands of a
    repeated bind are repeated too, so that the order is valid.
    """
    if bind.op.role != "fused":
        computed.update(bind.binders)
        return bind, 0
    body = bind.attrs["body"]
    origins = [group.origins.get(member.binders[0]) for member in body.binds]
    is_copy = [origin is not None and origin in computed for origin in origins]
    pairs = zip(body.binds, origins, strict=True)
    computed.update([member.binders[0] if origin is None else origin for member, origin in pairs])
    if not any(is_copy):
        return bind, 0
    order = sorted(range(len(is_copy)), key=lambda n: (not is_copy[n], n))
    changed = body.with_binds([body.binds[n] for n in order])
    return bind.replace(attrs=Attrs(body=changed)), sum(is_copy)

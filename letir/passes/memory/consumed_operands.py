"""``in_place_check``: updates consume their operand [semantics.md F6].

An update, ``index_set`` or ``index_add``, may be done in the memory of its first operand. The
evaluators do so only if the reference count proves sole ownership at run time; this pass finds the
operands that are certainly needed elsewhere.
"""

from attrs import define, field

from letir.ast import entry_point
from letir.ast.bodies import map_bodies
from letir.ast.terms import Bind, Lambda, Local, Ret, substitute_args
from letir.ops.elementwise.casting import copy
from letir.ops.indexing.basic import index
from letir.passes.memory.aliases import (
    may_share,
    reads_number,
    result_sharing_locals,
    shared_operands,
)


@entry_point
def in_place_check(fn: Lambda) -> Lambda:
    """Copy operands that an update consumes although they are needed later; also in bodies.

    An operand is needed later if it, or a value that may share its memory, is used after the update
    or as another operand of it, or if it is a constant. Afterwards each update may be done in
    place, unless its operand belongs to the caller. Values read from an argument after
    ``write_back`` changed it are copied before. Linear; a program without such uses is returned as
    it is.

    >>> from letir.ast.text.parser import parse
    >>> f = parse('''lambda %0: float64[3] {
    ...   %1: float64[3] = exp(%0);
    ...   %2: float64[3] = index_set(%1, 1.0, item=0);
    ...   %3: float64[3] = index_set(%2, 2.0, item=1);
    ...   return (%1, %3) }''')
    >>> print(in_place_check(f).listing(), end="")
    %1 = exp %0
    %2 = copy %1, 'K'
    %3 = index_set %2, 1.0, 0
    %4 = index_set %3, 2.0, 1
    return (%1, %4)
    """
    return map_bodies(fn, _copy_needed_operands)


def _copy_needed_operands(fn: Lambda) -> Lambda:
    """``fn`` with a copy before each write into an operand that is read later."""
    if not any(bind.op.update is not None or bind.op.role == "write_back" for bind in fn.binds):
        return fn
    sharing = _sharing_binds(fn)
    memory = with_numbers = _Memory(fn, sharing, is_shared_by_numbers=False)
    if any(bind.op.role == "write_back" for bind in fn.binds):
        with_numbers = _Memory(fn, sharing)
    binds: list[Bind] = []
    names: dict[Local, Local] = {}
    for i, bind in enumerate(fn.binds):
        args = substitute_args(bind.args, names) if names else bind.args
        if bind.op.role == "write_back":
            param = bind.args[0]
            for local in with_numbers.read_later(param, i) if type(param) is Local else ():
                binds.append(_copy_bind(names.get(local, local), bind))
                if local in memory.numbers:  # the copy of a NumPy scalar would be a 0-d array
                    binds.append(_number_bind(binds[-1]))
                names[local] = binds[-1].binders[0]
            args = (param, *args[1:])  # the argument itself is written, not a copy of it
        elif bind.op.update is not None and memory.is_needed(bind, i):
            x, *others = args
            assert type(x) is Local  # see ``is_needed``
            binds.append(_copy_bind(x, bind))
            args = (binds[-1].binders[0], *others)
        binds.append(bind if args is bind.args else bind.with_args(args))
    if len(binds) == len(fn.binds):
        return fn
    return fn.replace(binds=binds, ret=fn.ret.substitute(names))


def _copy_bind(local: Local, bind: Bind) -> Bind:
    """The bind that copies ``local`` to new memory."""
    return Bind((Local(local.type, local.name),), copy, (local,), copy.complete({}), bind.source)


def _number_bind(bind: Bind) -> Bind:
    """A bind that reads the only element of the result of ``bind``."""
    (local,) = bind.binders
    attrs = index.complete({"item": ()})
    return Bind((Local(local.type, local.name),), index, (local,), attrs, bind.source)


def shares_memory(bind: Bind) -> bool:
    """Whether a result of a bind may share memory with an operand."""
    if bind.op.memory == "new" and bind.op.role != "error_region":
        return False
    if bind.op.memory == "if_same_shape":
        avals = [local.type for local in (bind.args[0], bind.binders[0])]
        return None in avals or avals[0].shape == avals[1].shape
    if bind.op.role == "write_back" or all(
        x.type is not None and x.type.weak for x in bind.binders
    ):
        return False  # Python numbers have no memory that others could write
    if bind.op.role == "error_region":
        body = bind.attrs["body"]
        return not result_sharing_locals(body).isdisjoint(body.params)
    if bind.op.memory == "may_alias" and bind.op.views is not None:
        types = [arg.type for arg in bind.args]
        return None in types or bool(bind.op.views(*types, **bind.attrs))
    return may_share(bind.op)


def _sharing_binds(fn: Lambda) -> list[tuple[list[Local], bool]]:
    """For each bind by which locals may share memory: (its results and these operands, whether it
    reads one element).
    """
    return [
        ([*bind.binders, *shared_operands(bind)], reads_number(bind))
        for bind in fn.binds
        if shares_memory(bind)
    ]


@define(eq=False)
class _Memory:
    """The groups of locals that may share memory (a union-find), and the last use of each group.

    ``sharing``: see ``_sharing_binds``.
    ``numbers``: locals that are one element of an array: a scalar in NumPy, a view in CuPy.
    ``is_shared_by_numbers``: whether they count as views. An update may leave them out: in CuPy it
    finds that the array has a view, and copies it.
    """

    fn: Lambda
    sharing: list[tuple[list[Local], bool]]
    is_shared_by_numbers: bool = True
    parents: dict[Local, Local] = field(factory=dict)  # lead to the representative of the group
    last: dict[Local, int] = field(factory=dict)  # by representative
    fixed: set[Local] = field(factory=set)  # representatives of groups with a constant
    members: dict[Local, list[tuple[Local, int, int]]] | None = None
    numbers: set[Local] = field(factory=set)

    def __attrs_post_init__(self):
        for (first, *others), is_number in self.sharing:
            if is_number:
                self.numbers.add(first)
            if self.is_shared_by_numbers or not is_number:
                for local in others:
                    self.merge_groups(first, local)
        terms: tuple[Bind | Ret, ...] = (*self.fn.binds, self.fn.ret)
        for i, term in enumerate(terms):
            for local in term.locals():
                self.last[self.representative(local)] = i
        self.fixed = {
            self.representative(b.binders[0]) for b in self.fn.binds if b.op.role == "constant"
        }

    def representative(self, local: Local) -> Local:
        """The representative of the group of a local."""
        parents = self.parents
        while local in parents:
            above = parents[local]
            if above in parents:
                parents[local] = parents[above]  # halves the path for the next lookup
            local = above
        return local

    def merge_groups(self, x: Local, y: Local) -> None:
        """Merge the groups of two locals."""
        x, y = self.representative(x), self.representative(y)
        if x is not y:
            self.parents[y] = x

    def is_needed(self, bind: Bind, at: int) -> bool:
        """Whether the memory that an update consumes is needed later, or for another operand."""
        x, *others = bind.args
        if type(x) is not Local or (x.type is not None and x.type.weak):
            return False
        root = self.representative(x)
        if self.last[root] > at or root in self.fixed:
            return True
        if bind.op.updates_from_view and len(others) == 1:  # NumPy reads before it writes
            return False
        return any(type(arg) is Local and self.representative(arg) is root for arg in others)

    def read_later(self, param: Local, at: int) -> list[Local]:
        """The locals that may share memory with an argument, exist when bind ``at`` changes it, and
        are used afterwards.
        """
        if self.members is None:
            self.members = self.members_by_group()
        return [
            local
            for local, bound, last in self.members.get(self.representative(param), ())
            if bound < at < last
        ]

    def members_by_group(self) -> dict[Local, list[tuple[Local, int, int]]]:
        """Lists of (local, position of its bind, position of its last use), by representative."""
        terms: tuple[Bind | Ret, ...] = (*self.fn.binds, self.fn.ret)
        last = {local: i for i, term in enumerate(terms) for local in term.locals()}
        bound = dict.fromkeys(self.fn.params, -1)
        bound |= {local: i for i, bind in enumerate(self.fn.binds) for local in bind.binders}
        result: dict[Local, list] = {}
        for local, i in bound.items():
            if local in last:
                result.setdefault(self.representative(local), []).append((local, i, last[local]))
        return result

"""``stencil_groups``: groups that read parts of arrays or rolled arrays, or whose result is written
into a part of an array. Their kernels read and write the whole arrays.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator
from math import prod
from typing import Any

from attrs import define, evolve, field, frozen

from letir.ast.symbolic_sizes import has_static_shape
from letir.ast.terms import Arg, Bind, Lambda, Local, Ret
from letir.kernels.scalar_lowering import has_scalar_form
from letir.kernels.stencils.stencil_kernels import (
    StencilKernel,
    StencilRead,
    StencilTarget,
    stencil_kernel,
)
from letir.kernels.stencils.stencil_places import View, find_view, is_near_roll, is_placed_part
from letir.passes.fusion.clustering import MAX_COMPILED
from letir.passes.fusion.fusing import fused_level
from letir.passes.fusion.regrouping import without_groups

_COPIED = 4  # at most one in so many elements is copied around a part
_MAX_VARIANTS = 8  # the most kernels of groups that differ only in the parts that they access


@frozen(eq=False)
class StencilWrite:
    """The bind at ``position`` that writes a group's only result into the ``view`` of an array.

    ``copy``: the bind that has copied the array just for that. ``is_read``: there is such a copy,
    or the group reads the array too. The result is then a new array, with the elements around the
    view.
    """

    bind: Bind
    position: int
    view: View
    is_read: bool = False
    copy: Bind | None = None

    @property
    def array(self) -> Any:
        """The array with the elements around the view."""
        return (self.copy or self.bind).args[0]

    @property
    def copied(self) -> tuple[Any, ...]:
        """The array from which the kernel copies elements."""
        return (self.array,) if self.is_read else ()


@frozen(eq=False)
class StencilGroup:
    """The group ``bind``, with ``views``, the binds of its operands that are parts of ``arrays``.

    ``reads``: the part of an array that each parameter of the group's body is. ``lowered``: its
    kernel, which reads the arrays, and performs the ``write``, if there is one.
    """

    bind: Bind
    arrays: tuple[Local, ...]
    views: tuple[Bind, ...]
    reads: dict[Local, StencilRead]
    lowered: StencilKernel
    write: StencilWrite | None = None
    target: StencilTarget | None = None

    @property
    def binders(self) -> tuple[Local, ...]:
        """The values that the kernel computes."""
        return self.bind.binders if self.write is None else self.write.bind.binders

    def body(self, bind: Bind) -> Lambda:
        """The program that computes the results of ``bind``, a form of the group's bind, from the
        arrays, after the views; and writes them if that makes a new array.
        """
        steps = [bind]
        if self.write is not None and self.write.is_read:
            steps += [x for x in (self.write.copy, self.write.bind) if x is not None]
        names: dict[Local, Local] = {}

        def renamed(local: Local) -> Local:
            if local not in names:
                names[local] = Local(local.type, local.name)
            return names[local]

        params = tuple(map(renamed, self.arrays))
        binds = [
            Bind(
                tuple(map(renamed, inner.binders)),
                inner.op,
                tuple([renamed(arg) if type(arg) is Local else arg for arg in inner.args]),
                inner.attrs,
                inner.source,
            )
            for inner in (*self.views, *steps)
        ]
        return Lambda(params, tuple(binds), Ret(tuple(map(renamed, steps[-1].binders))))


def stencil_groups(
    fn: Lambda, positions: Iterable[int], is_exact: bool, least_size: Callable[[Lambda], int]
) -> dict[int, StencilGroup]:
    """The groups at these positions of a program whose kernels read or write parts of arrays.

    ``least_size(body)``: the elements from which on the kernel of a body runs in threads.
    """
    search = _Search(fn, is_exact, least_size)
    found = {n: parts for n in positions if (parts := search.parts(n)) is not None}
    # the steps of an unrolled loop that access one row after the other share a kernel of rows
    variants: dict[tuple, set] = defaultdict(set)
    for parts in found.values():
        variants[parts.operations].add((parts.accessed, parts.write and parts.write.view))
    groups = {}
    for n, parts in found.items():
        known = variants[parts.operations]
        if len(known) > _MAX_VARIANTS:
            if len({accessed for accessed, _ in known}) > _MAX_VARIANTS:
                continue
            parts = evolve(parts, write=None)  # noqa: PLW2901
        group = search.group(n, parts)
        if group is not None:
            groups[n] = group
    return groups


@frozen(eq=False)
class _Parts:
    """What a group of these ``operations`` accesses: its operands are ``views`` of ``arrays``, and
    ``write`` is the write of its result, if there is one.
    """

    operations: tuple
    arrays: tuple[Local, ...]
    views: tuple[tuple[Local, View], ...]
    write: StencilWrite | None

    @property
    def accessed(self) -> tuple:
        """The parts that are read, with the numbers of their arrays."""
        return tuple([(self.arrays.index(array), view) for array, view in self.views])


@define(eq=False)
class _Search:
    """The search in one program.

    ``makers``: the position of the bind that computes a value; ``uses``: the number of its uses;
    ``users``: the position of the last one.
    """

    fn: Lambda
    is_exact: bool
    least_size: Callable[[Lambda], int]
    makers: dict[Arg, int] = field(init=False)
    uses: Counter = field(init=False)
    users: dict[Arg, int] = field(init=False)

    def __attrs_post_init__(self):
        binds = [*self.fn.binds, self.fn.ret]
        self.makers = {x: n for n, bind in enumerate(self.fn.binds) for x in bind.binders}
        self.uses = Counter([arg for bind in binds for arg in bind.locals()])
        self.users = {arg: n for n, bind in enumerate(binds) for arg in bind.locals()}

    def definition(self, arg: Arg) -> Bind | None:
        """The bind that computes a value; None for parameters."""
        n = self.makers.get(arg)
        return None if n is None else self.fn.binds[n]

    def parts(self, n: int) -> _Parts | None:
        """What the group at position ``n`` accesses; None if it cannot be a stencil."""
        bind = self.fn.binds[n]
        found = [find_view(arg, self.definition) for arg in bind.args]
        views = tuple([view for view in found if view is not None])
        if len(views) < len(found):  # a shape is not known
            return None
        arrays = tuple(dict.fromkeys([array for array, _ in views]))
        write = self.write_of(n, arrays)
        if write is None and all(arg in arrays for arg in bind.args):
            return None
        operations = tuple([inner.op for inner in bind.attrs["body"].binds])
        return _Parts(operations, arrays, views, write)

    def group(self, n: int, parts: _Parts) -> StencilGroup | None:
        """The stencil of the group at position ``n``; None if it has no kernel."""
        bind, arrays = self.fn.binds[n], parts.arrays
        own: Lambda = bind.attrs["body"]
        reads = {
            param: StencilRead(arrays.index(array), view)
            for param, (array, view) in zip(own.params, parts.views, strict=True)
        }
        is_shifted = any(arg not in arrays for arg in bind.args)
        for write in (parts.write, None):
            if write is None and not is_shifted:
                continue
            read = arrays if write is None else tuple(dict.fromkeys([*arrays, *write.copied]))
            types = [array.type for array in read]
            target = None if write is None else self.target_of(write, read, own)
            lowered = stencil_kernel(own, reads, types, target, is_exact=self.is_exact)
            if lowered is not None:
                between = self.views_between(arrays, bind.args)
                return StencilGroup(bind, read, between, reads, lowered, write, target)
        return None

    def target_of(self, write: StencilWrite, arrays: tuple, body: Lambda) -> StencilTarget:
        """The target of a kernel for a write; ``arrays``: those that the kernel reads."""
        around = arrays.index(write.array) if write.is_read else None
        # not by a kernel that runs in threads, each of which computes some of the rows
        copies_rows = prod(write.view.shape) < self.least_size(body)
        return StencilTarget(write.array.type, write.view, around, copies_rows)

    def write_of(self, n: int, arrays: tuple[Local, ...]) -> StencilWrite | None:
        """The write of the only result of the group at ``n`` into a part of an array, if nothing
        else uses the result.
        """
        result, *others = self.fn.binds[n].binders
        place = self.users.get(result, 0)
        if others or self.uses[result] != 1 or place >= len(self.fn.binds):
            return None
        write = self.fn.binds[place]
        if write.op.role != "index_set" or len(write.args) != 2 or write.args[1] is not result:
            return None
        target: Any = write.args[0]
        if type(target) is not Local or not has_static_shape(target.type):
            return None
        # the kernel reads its arrays at the place of the write: an update of one of them, in
        # between, would have to copy it
        between = self.fn.binds[n + 1 : place]
        if any(b.op.update or b.op.effect or b.op.holds_lambdas for b in between):
            return None
        view = View.whole(target.type.shape).item(write.attrs["item"])
        if view is None or view.shape != result.type.shape:
            return None
        is_read = self.owner(target) in map(self.owner, arrays)
        copy = self.definition(target)
        if copy is not None and (copy.op.role != "copy" or self.uses[target] > 1):
            copy = None
        is_read = is_read or copy is not None
        # a new array pays if it has few elements around the part
        if is_read and _COPIED * (target.type.size - result.type.size) > target.type.size:
            return None
        return StencilWrite(write, place, view, is_read, copy)

    def owner(self, arg: Arg) -> Arg:
        """The value of whose memory a value may be a view."""
        while (bind := self.definition(arg)) is not None and bind.op.memory == "view":
            arg = bind.args[0]
        return arg

    def views_between(self, arrays: tuple[Local, ...], args: tuple) -> tuple[Bind, ...]:
        """The binds that compute the operands ``args`` of a group from ``arrays``, in order."""
        needed: set[int] = set()
        todo = [*args]
        while todo:
            arg = todo.pop()
            if arg not in arrays and self.makers[arg] not in needed:
                needed.add(self.makers[arg])
                todo.append(self.fn.binds[self.makers[arg]].args[0])
        return tuple([self.fn.binds[n] for n in sorted(needed)])


# ---- rolled arrays ----


def with_rolled_groups(fn: Lambda, kept: Container[Local], is_exact: bool) -> Lambda:
    """``fn`` with groups for kernels that read rolled arrays where they are, except for the groups
    of the results ``kept``.

    NumPy makes rolled arrays, so ``fuse`` keeps few of them alive; a kernel makes none of them.
    """
    if not any(bind.op.role == "roll" or bind.op.adds_parts == "zeros" for bind in fn.binds):
        return fn
    flat = without_groups(fn, kept)
    rolled = _unstored_rolls(flat, is_exact)
    result = fused_level(flat, rolled) if rolled else fn
    bodies = [bind.attrs["body"] for bind in result.binds if bind.op.role == "fused"]
    return fn if any(len(body.binds) > MAX_COMPILED for body in bodies) else result


def _unstored_rolls(fn: Lambda, is_exact: bool) -> frozenset[Local]:
    """Rolled arrays, and arrays of one part in zeros, that only elementwise kernels read."""
    stored = {arg for arg in fn.ret.args if type(arg) is Local}
    result = set()
    for bind in reversed(fn.binds):
        if bind.op.elementwise and has_scalar_form(bind, is_exact):
            continue
        if stored.isdisjoint(bind.binders):
            if is_near_roll(bind) or is_placed_part(bind):
                result.add(bind.binders[0])
                if is_placed_part(bind):  # the part must be an array
                    stored.update(bind.locals())
                continue
            if bind.op.role == "index":
                continue
        stored.update(bind.locals())
    return frozenset(result)


def shifted_binds(fn: Lambda, is_exact: bool) -> Iterator[int]:
    """The positions of elementwise binds outside of groups that a kernel on whole arrays computes
    faster than NumPy, which would copy parts of rows, or make rolled arrays.
    """
    parts = {bind.binders[0]: bind for bind in fn.binds if bind.op.role in ("roll", "index")}
    for n, bind in enumerate(fn.binds):
        if bind.op.elementwise and len(getattr(bind.binders[0].type, "shape", ())) > 1:
            operands = [parts[arg] for arg in bind.args if type(arg) is Local and arg in parts]
            if any(map(_cuts_rows, operands)) and has_scalar_form(bind, is_exact):
                yield n


def _cuts_rows(part: Bind) -> bool:
    """Whether the parts of an array are rows apart from each other, or a roll of it."""
    if part.op.role == "roll":
        return is_near_roll(part)
    if len(part.args) > 1 or not all(has_static_shape(x.type) for x in (*part.args, *part.binders)):
        return False
    whole, rows = part.args[0].type.shape, part.binders[0].type.shape
    return bool(whole and rows) and whole[-1] != rows[-1]

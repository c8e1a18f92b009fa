"""``group_row_binds``: groups the binds that act row by row; a group is one task for each block.

Binds are sorted into phases. Phase 0 needs only the arguments; phase 1 also needs reductions over
all rows that phase 0 computes, and so on. In each phase the binds that act on rows (``row_rules``)
form one group, which becomes one bind of the operation ``ROWS``; other binds do not change.
"""

import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from letir import passes
from letir.ast.attrs import Attrs
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.record_fields import never
from letir.ast.terms import Arg, Bind, Lambda, Local, Ret
from letir.ast.types import ArrayType
from letir.dask.row_rule import Partial, RowRule, SplitOperands, attrs_for, with_row_count
from letir.dask.row_rules import is_masked_mean, repeats_value, rule_for

MIXED = -1  # the axis of arrays that are split in another way


@frozen(eq=False)
class RowProgram:
    """The program that one task computes for a block; its types have all ``count`` rows.

    ``params``: the axis of rows of each parameter, None for whole values; the last ``numbers``
    parameters hold the row numbers of a block. ``rows`` and ``shape_axes``: the axes of rows
    of the results of each bind, and of its attribute ``shape``. ``results``: the axis of rows of
    each result, or a ``Partial`` that joins partial results.
    """

    fn: Lambda
    count: int
    params: tuple[int | None, ...]
    numbers: int
    rows: tuple[tuple[int | None, ...], ...]
    shape_axes: tuple[int | None, ...]
    results: tuple[int | Partial, ...]
    token: str = field(factory=lambda: uuid.uuid4().hex)

    def for_rows(self, count: int) -> Lambda:
        """The program for a block of ``count`` rows."""
        names: dict = {}
        for param, axis in zip(self.fn.params, self.params, strict=True):
            names[param] = Local(with_row_count(param.type, axis, count), param.name)
        params = [names[param] for param in self.fn.params]
        binds = []
        for bind, axes, shape_axis in zip(self.fn.binds, self.rows, self.shape_axes, strict=True):
            for binder, axis in zip(bind.binders, axes, strict=True):
                names[binder] = Local(with_row_count(binder.type, axis, count), binder.name)
            binders = tuple([names[binder] for binder in bind.binders])
            args = tuple([names.get(arg, arg) for arg in bind.args])
            attrs = attrs_for(bind.attrs, shape_axis, count)
            binds.append(Bind(binders, bind.op, args, attrs, bind.source))
        return Lambda(params, binds, Ret(tuple([names[arg] for arg in self.fn.ret.args])))


ROWS = Primitive(
    "rows",
    lambda xp, *arrays, group: NotImplemented,  # the evaluator on Dask arrays computes it
    lambda *types, group: tuple([arg.type for arg in group.fn.ret.args]),
    vjp=never("made after differentiation"),
    jvp=never("made after differentiation"),
    results=lambda *, group: len(group.results),
    role="rows",
)


@frozen
class RowSplit:
    """How a value is split: ``axis``, its axis of rows or None, and ``count``, the number of rows.

    ``phase``: the first phase in which groups may read the value; ``ready``: the first phase in
    which other binds may read it. ``repeats``: all rows are known outside of groups too, because
    the value is computed from values that are repeated for each row.
    """

    axis: int | None = None
    count: int = 0
    phase: int = 0
    ready: int = 0
    repeats: bool = False

    @property
    def is_split(self) -> bool:
        """Whether the value exists in blocks only."""
        return self.axis is not None and not self.repeats


def group_row_binds(fn: Lambda, axes: Sequence[int | None]) -> Lambda:
    """``fn`` with its binds in groups, for arguments of which these axes are split.

    Linear in the number of binds. Binds that draw, print or have bodies stay outside of groups.
    """
    fn = _without_masked_means(fn)
    partition = Partition(fn, axes)
    for index in range(len(fn.binds)):
        partition.add(index)
    return partition.program() if partition.groups else fn


@define(eq=False)
class Partition:
    """The state of the partition: places of values, phases of binds, and binds in groups."""

    fn: Lambda
    axes: Sequence[int | None]
    places: dict = field(factory=dict)  # local -> Place
    makers: dict = field(factory=dict)  # binder -> number of its bind
    values: dict = field(factory=dict)  # local -> elements of a constant
    rules: dict[int, RowRule] = field(factory=dict)
    whole: dict[int, list[int]] = field(factory=dict)  # phase -> binds outside of groups
    groups: dict[tuple[int, int], set[int]] = field(factory=dict)  # (phase, rows) -> binds
    counts: set[int] = field(factory=set)  # the numbers of rows that arguments have
    last_effect: int = 0  # the phase of the last effect: effects keep their order

    def __attrs_post_init__(self):
        for param, axis in zip(self.fn.params, self.axes, strict=True):
            count = 0 if axis is None or axis == MIXED else param.type.shape[axis]
            self.places[param] = RowSplit(axis, count)
            self.counts |= {count} - {0}

    def add(self, index: int) -> None:
        """Give a bind its place: outside of groups, in one, or both until it is used."""
        bind = self.fn.binds[index]
        self.makers.update(dict.fromkeys(bind.binders, index))
        if bind.op.role == "constant":
            self.values[bind.binders[0]] = bind.attrs["value"]
        places = [self._place(arg) for arg in bind.args]
        rule, count = self._rule(bind, places)
        if rule is None:
            self._add_whole(index, places)
            return
        self.rules[index] = rule
        phase = max([place.phase for place in places], default=0)
        repeats = rule.combine is None and not any(place.is_split for place in places)
        ready = self._add_whole(index, places) if repeats else phase + 1
        for binder, axis in zip(bind.binders, rule.results, strict=True):
            self.places[binder] = (
                RowSplit(None, 0, phase + 1, phase + 1)
                if axis is None
                else RowSplit(axis, count, phase, ready, repeats)
            )
        if not repeats:  # repeated values are in a group only if one asks for them
            self._add_to_group(index, (phase, count))

    def _place(self, arg: Arg) -> RowSplit:
        return self.places[arg] if type(arg) is Local else RowSplit()

    def _rule(self, bind: Bind, places: list[RowSplit]) -> tuple[RowRule | None, int]:
        """The rule of a bind for operands at these places, and the number of rows."""
        if any(place.axis == MIXED for place in places):
            return None, 0
        split_counts = {place.count for place in places if place.is_split}
        row_counts = {place.count for place in places if place.axis is not None}
        if not row_counts:
            return self._repeating(bind)
        if len(split_counts) > 1 or (not split_counts and len(row_counts) > 1):
            return None, 0
        (count,) = split_counts or row_counts
        axes = tuple([place.axis if place.count == count else None for place in places])
        result = rule_for(bind, SplitOperands(axes, count, self.values))
        if result is None and split_counts:  # with the repeated values as whole ones
            axes = tuple([a if not p.repeats else None for a, p in zip(axes, places, strict=True)])
            result = rule_for(bind, SplitOperands(axes, count, self.values))
        return result, count

    def _repeating(self, bind: Bind) -> tuple[RowRule | None, int]:
        """The rule of a bind that repeats a whole value along as many rows as an argument has."""
        shape = bind.attrs["shape"] if repeats_value(bind) else None
        old = bind.args[0].type.shape if bind.args and shape else ()
        for axis, n in enumerate(shape or ()):
            place = axis - len(shape) + len(old)
            if n in self.counts and (place < 0 or old[place] == 1):
                return RowRule((None,) * len(bind.args), (axis,), shape_axis=axis), n
        return None, 0

    def _add_whole(self, index: int, places: list[RowSplit]) -> int:
        """Leave a bind outside of groups, after all groups that it needs; returns its phase."""
        bind = self.fn.binds[index]
        phase = max([place.ready for place in places], default=0)
        if bind.op.effect:
            phase = self.last_effect = max(phase, self.last_effect)
        self.whole.setdefault(phase, []).append(index)
        axis = MIXED if any(place.is_split for place in places) else None
        self.places.update(dict.fromkeys(bind.binders, RowSplit(axis, 0, phase, phase)))
        return phase

    def _add_to_group(self, index: int, key: tuple[int, int]) -> None:
        """Put a bind into a group, with the repeated values that it reads as rows."""
        group, stack = self.groups.setdefault(key, set()), [index]
        while stack:
            index = stack.pop()
            if index in group:
                continue
            group.add(index)
            pairs = zip(self.fn.binds[index].args, self.rules[index].needed, strict=True)
            stack += [
                self.makers[arg]
                for arg, axis in pairs
                if axis is not None and arg in self.makers and self._place(arg).repeats
            ]

    def program(self) -> Lambda:
        """The program of all phases, one after the other."""
        phases = 1 + max([*self.whole, *[phase for phase, _ in self.groups]])
        order: list[list] = [[] for _ in range(phases)]
        for phase, indices in self.whole.items():
            order[phase] += [self.fn.binds[i] for i in indices]
        members = {key: sorted(group) for key, group in sorted(self.groups.items())}
        outside = set(self.fn.ret.locals())
        outside.update(arg for binds in order for bind in binds for arg in bind.locals())
        for (phase, count), group in reversed(members.items()):
            new = self._group(group, count, outside)
            outside.update(new.locals())
            order[phase].append(new)
        return passes.dead_code(self.fn.with_binds([bind for binds in order for bind in binds]))

    def _group(self, indices: list[int], count: int, outside: set) -> Bind:
        """The bind of a group; its results are the values that are used outside of the group."""
        inputs = _Inputs(count)
        binds = [self._member(index, inputs) for index in indices]
        triples = [
            (binder, inputs.made[binder], self.rules[i].combine or axis)
            for i in indices
            for binder, axis in zip(self.fn.binds[i].binders, self.rules[i].results, strict=True)
            if binder in outside and not self.places[binder].repeats
        ]
        if not any(axis is not None and self.places[arg].is_split for arg, axis in inputs.params):
            inputs.param(*self._any_rows(count))  # for its blocks
        params = sorted(inputs.params.items(), key=lambda item: item[0][1] is None)
        group = RowProgram(
            Lambda(
                [*[local for _, local in params], *inputs.numbers],
                binds,
                Ret(tuple([inner for _, inner, _ in triples])),
            ),
            count,
            (*[axis for (_, axis), _ in params], *inputs.number_axes),
            len(inputs.numbers),
            tuple([self.rules[i].results for i in indices]),
            tuple([self.rules[i].shape_axis for i in indices]),
            tuple([result for _, _, result in triples]),
        )
        args = tuple([arg for (arg, _), _ in params])
        return Bind(tuple([b for b, _, _ in triples]), ROWS, args, Attrs(group=group))

    def _any_rows(self, count: int) -> tuple[Local, int]:
        """An argument that has ``count`` rows in blocks."""
        return next(
            (param, place.axis)
            for param in self.fn.params
            if (place := self.places[param]).count == count
        )

    def _member(self, index: int, inputs: "_Inputs") -> Bind:
        """A bind as it is computed in a group."""
        bind, rule = self.fn.binds[index], self.rules[index]
        args: list[Arg] = []
        for i, (arg, axis) in enumerate(zip(bind.args, rule.needed, strict=True)):
            if i in rule.numbers:
                args.append(inputs.number(arg, axis))
            else:
                args.append(inputs.param(arg, axis))
        binders = tuple([Local(binder.type, binder.name) for binder in bind.binders])
        attrs = bind.attrs if rule.attrs is None else rule.attrs
        op = bind.op
        if rule.combine is not None and rule.combine.divisor:
            # a mean is computed as a sum, which the root of the tree of sums divides by the count
            op, attrs = PRIMITIVES["sum"], _sum_for_mean(bind)
            binders = (Local(ArrayType(attrs["dtype"], binders[0].type.shape), binders[0].name),)
        inputs.made.update(zip(bind.binders, binders, strict=True))
        return Bind(binders, op, tuple(args), attrs, bind.source)


@define(eq=False)
class _Inputs:
    """The parameters of a group that is being built, and its values so far."""

    count: int
    params: dict = field(factory=dict)  # (local outside, axis of rows) -> parameter
    made: dict = field(factory=dict)  # local of the program -> local of the group
    numbers: list[Local] = field(factory=list)  # parameters that number the rows
    number_axes: list[int | None] = field(factory=list)

    def param(self, arg: Arg, axis: int | None) -> Arg:
        """The local of an operand in the group."""
        if type(arg) is not Local:
            return arg
        if axis is not None and arg in self.made:
            return self.made[arg]
        return self.params.setdefault((arg, axis), Local(arg.type, arg.name))

    def number(self, arg: Arg, axis: int | None) -> Local:
        """A new parameter for row numbers."""
        result = Local(arg.type)
        self.numbers.append(result)
        self.number_axes.append(axis)
        return result


def _sum_for_mean(bind: Bind) -> Attrs:
    """The attributes of the sum in a mean, in the dtype in which NumPy computes it."""
    dtype = bind.attrs["dtype"] or bind.args[0].type.dtype
    dtype = np.dtype(dtype)
    if dtype.kind in "biu":
        dtype = np.dtype(float)
    elif dtype == np.float16:
        dtype = np.dtype(np.float32)
    return Attrs(
        axis=bind.attrs["axis"], dtype=dtype, keepdims=bind.attrs["keepdims"], initial=None
    )


def _without_masked_means(fn: Lambda) -> Lambda:
    """``fn`` with masked means as quotients of sums and counts, which can be joined."""
    binds: list[Bind] = []
    for bind in fn.binds:
        if is_masked_mean(bind):
            binds += _mean_of_chosen(bind)
        else:
            binds.append(bind)
    return fn.with_binds(binds) if len(binds) > len(fn.binds) else fn


def _mean_of_chosen(bind: Bind) -> list[Bind]:
    """A mean with a mask: its sum, its count, and their quotient in the dtype of the mean."""
    (x, mask), (mean,), total = bind.args, bind.binders, _sum_for_mean(bind)
    binds: list[Bind] = []

    def emit(name: str, aval: ArrayType, *args: Arg, **attrs: Any) -> Local:
        local = Local(aval)
        binds.append(Bind((local,), PRIMITIVES[name], args, Attrs(**attrs), bind.source))
        return local

    shape, whole = mean.type.shape, x.type.shape
    added = emit("sum", ArrayType(total["dtype"], shape), x, mask, **total)
    everywhere = emit("broadcast_to", ArrayType(bool, whole), mask, shape=whole)
    axes = {name: bind.attrs[name] for name in ("axis", "keepdims")}
    count = emit("count_nonzero", ArrayType(np.intp, shape), everywhere, **axes)
    dtype = np.result_type(total["dtype"], np.intp)
    quotient = emit("div", ArrayType(dtype, shape), added, count)
    cast = PRIMITIVES["cast"]
    return [*binds, Bind((mean,), cast, (quotient,), Attrs(dtype=mean.type.dtype), bind.source)]

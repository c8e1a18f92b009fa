"""Groups with reductions: which pass over a row computes which values.

The values of a group have a common ``Space``, a matrix. A *full* value has an element for each
place of the matrix; other values have one element for each *row* or each *column*, or a *single*
element. If the space is a stack of matrices, a *shared* value is the same for all of them: an
operand, or the result of a reduction along the stack.

Pass p over a row computes the full values that read results of the reductions in pass p - 1, and
then their reductions. A full value that a later pass reads is recomputed if that is cheap, and
otherwise kept in a buffer of one row.
"""

import math

from attrs import define, field, frozen

from letir.ast.terms import Arg, Bind, Const, Lambda, Local
from letir.kernels.loop_builder import Builder
from letir.kernels.reduction_forms import REDUCTIONS, Accumulator, Parts, ReductionForm
from letir.kernels.scalar_lowering import NoKernel, expect_known

_MANY = 1 << 18  # elements of a matrix that does not stay in the processor's cache
_MIN_AHEAD = 128  # elements from a row to the one that is read ahead
_MIN_ROW, _MAX_ROW = 65, 1 << 13  # elements of a row for which another one is read ahead
_CHEAP = 6  # instructions that take less time together than a store and a load


def is_costly(bind: Bind) -> bool:
    """Whether a bind takes many instructions for an element."""
    return bind.op.cost not in ("free", "cheap")


@frozen
class Space:
    """The ``shape`` of full values, read as a matrix for each index of the first ``lead`` axes.

    The axes before ``split`` are the rows of the matrix, the axes after it the columns.
    ``is_stacked``: the kernel, and not NumPy's ufunc, loops over the matrices.
    """

    shape: tuple[int, ...]
    lead: int
    split: int
    is_stacked: bool = False

    @property
    def stack(self) -> int:
        """The number of matrices over which the kernel loops."""
        return math.prod(self.shape[: self.lead]) if self.is_stacked else 1

    @property
    def rows(self) -> int:
        """The number of rows of a matrix."""
        return math.prod(self.shape[self.lead : self.split])

    @property
    def columns(self) -> int:
        """The number of columns."""
        return math.prod(self.shape[self.split :])

    @property
    def outer(self) -> tuple[int, ...]:
        """The lengths of the axes over which NumPy's ufunc loops."""
        return () if self.is_stacked else self.shape[: self.lead]

    @property
    def sizes(self) -> dict[str, int]:
        """The lengths of the kernel's axes by name."""
        return {"l": self.stack, "m": self.rows, "n": self.columns}

    def axes_of(self, kind: str) -> str:
        """The names of the kernel's axes of an array of this kind."""
        scope, _, own = kind.rpartition(" ")
        of_stack = "l" if self.is_stacked and scope != "shared" else ""
        return of_stack + {"full": "mn", "row": "m", "column": "n", "single": ""}[own]

    def place_of(self, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """The kind of an operand that full values read, and its shape as a kernel parameter."""
        full = (1,) * (len(self.shape) - len(shape)) + shape
        return self._operand_shape(
            full[: self.split], full[self.split :] == self.shape[self.split :]
        )

    def row_place_of(self, shape: tuple[int, ...], result: tuple[int, ...]) -> tuple:
        """The kind and shape of an operand that a value with one element per row reads.

        ``result``: the shape of that value.
        """
        if math.prod(shape) == math.prod(result):
            return self._operand_shape(self.shape[: self.split], False)
        full = ((1,) * (len(result) - len(shape)) + shape)[: self.split]
        return self._operand_shape(full if math.prod(shape) > 1 else (1,) * self.split, False)

    def _operand_shape(
        self, before: tuple[int, ...], has_columns: bool
    ) -> tuple[str, tuple[int, ...]]:
        """(kind, shape) of an operand; ``before``: the lengths of its axes before the columns."""
        lead, rows = before[: self.lead], before[self.lead :]
        has_rows = rows == self.shape[self.lead : self.split]
        kind = ("full" if has_columns else "row") if has_rows else "single"
        kind = "column" if kind == "single" and has_columns else kind
        core = (math.prod(rows),) * has_rows + (self.columns,) * has_columns
        if not self.is_stacked:
            return kind, (*lead, *core)
        is_shared = lead != self.shape[: self.lead]
        return (f"shared {kind}", core) if is_shared else (kind, (self.stack, *core))


def reduction_form(bind: Bind) -> ReductionForm | None:
    """The form of a bind's reduction; None if it is not a reduction that kernels support."""
    form = REDUCTIONS.get(bind.op.reduction or "")
    operand, *others = bind.args
    if form is None or type(operand) is Const or bind.attrs.get("initial") is not None:
        return None
    return None if any(type(arg) is Local for arg in others) else form


def may_reduce(bind: Bind, is_exact: bool) -> bool:
    """Whether a kernel may compute a bind that reduces its operand."""
    form, (binder, *_) = reduction_form(bind), bind.binders
    if form is None:
        return False
    operand, b = bind.args[0], Builder()
    try:
        expect_known(operand.type)
        expect_known(binder.type)
        dtype = binder.type.dtype
        element = form.element(b, b.scalar(operand.type.dtype), dtype)
        accumulator = form.accumulator(dtype)
        accumulator.with_value(b, accumulator.first(b), element)
    except (NoKernel, TypeError):
        return False
    return not binder.type.weak and (not is_exact or form.is_exact(dtype))


def reduced_axes(bind: Bind) -> tuple[int, ...]:
    """The axes along which a bind reduces its operand, without axes of length 1."""
    shape = bind.args[0].type.shape
    if "axis" in bind.attrs:
        axis = bind.attrs["axis"]
        numbers = range(len(shape)) if axis is None else axis if type(axis) is tuple else (axis,)
        axes = {n % len(shape) for n in numbers} if shape else set()
    else:  # to a shape that broadcasts to the operand's
        result = bind.binders[0].type.shape
        lead = len(shape) - len(result)
        axes = {n for n in range(len(shape)) if n < lead or result[n - lead] == 1}
    return tuple([n for n in sorted(axes) if shape[n] != 1])


@define(eq=False)
class Reduction:
    """A reduction in a group, computed in pass ``stage``.

    ``kind``: the kind of its result; ``operand_kind``: the kind of its operand.
    """

    bind: Bind
    form: ReductionForm
    accumulator: Accumulator
    operand_kind: str
    kind: str
    stage: int
    partial: Parts = ()  # the totals within the current row

    @property
    def source(self) -> Arg:
        return self.bind.args[0]


@define(eq=False)
class RowPasses:
    """The passes over a row that compute the group ``body``.

    ``kinds``, ``stages``: the kind of each value and the pass that computes it. ``same``: for each
    view the value that it is a view of. ``computed``, ``kept``: for each full value the passes that
    compute it, and the passes that load it from the buffer.
    """

    body: Lambda
    space: Space
    is_exact: bool
    kinds: dict[Arg, str] = field(factory=dict)
    stages: dict[Arg, int] = field(factory=dict)
    same: dict[Arg, Arg] = field(factory=dict)
    reductions: list[Reduction] = field(factory=list)
    elementwise: list[Bind] = field(factory=list)
    computed: dict[Arg, set[int]] = field(factory=dict)
    kept: dict[Arg, set[int]] = field(factory=dict)

    def __attrs_post_init__(self):
        for bind in self.body.binds:
            self.classify(bind)
        self.plan()

    @property
    def is_single(self) -> bool:
        """Whether a single pass computes all values, because none depends on a reduction."""
        firsts = [self.stages[bind.binders[0]] == 0 for bind in self.elementwise]
        return all(firsts) and all(reduction.stage == 0 for reduction in self.reductions)

    def source(self, arg: Arg) -> Arg:
        """The value of which ``arg`` is a view, or ``arg``."""
        return self.same.get(arg, arg)

    def classify(self, bind: Bind) -> None:
        """The kind of a bind's result, and the pass in which it is computed."""
        (binder,) = bind.binders
        expect_known(binder.type)
        args = [self.source(arg) for arg in bind.args if type(arg) is Local]
        stage = max([self.stages.get(arg, 0) for arg in args], default=0)
        form = reduction_form(bind)
        if bind.op.memory == "view":
            self.same[binder] = args[0]
        elif form is not None:
            self.classify_reduction(bind, form, stage)
        else:
            self.kinds[binder] = "full" if binder.type.shape == self.space.shape else "row"
            self.stages[binder] = stage
            self.elementwise.append(bind)

    def classify_reduction(self, bind: Bind, form: ReductionForm, stage: int) -> None:
        (binder,), operand = bind.binders, bind.args[0]
        expect_known(operand.type)
        operand_kind, kind = "row", "single"
        if operand.type.shape == self.space.shape:
            operand_kind, axes = "full", reduced_axes(bind)
            kind = self.kind_of_total(axes)
        dtype = binder.type.dtype
        if binder.type.weak or (self.is_exact and not form.is_exact(dtype)):
            raise NoKernel
        self.kinds[binder], self.stages[binder] = kind, stage + 1
        self.reductions.append(
            Reduction(bind, form, form.accumulator(dtype), operand_kind, kind, stage)
        )

    def kind_of_total(self, axes: tuple[int, ...]) -> str:
        """The kind of a full value's reduction along these axes."""
        space = self.space
        if min(axes) >= space.split:
            return "row"
        if space.is_stacked and min(axes) < space.lead:
            return "shared full" if max(axes) < space.lead else "shared column"
        kind = "column" if max(axes) < space.split else "single"
        assert kind == "single" or min(axes) >= space.lead, "NumPy's loops reduce nothing"
        return kind

    def plan(self) -> None:
        """Fill ``computed`` and ``kept``, going from the last bind to the first."""
        needed: dict[Arg, set[int]] = {}
        results = {self.source(arg) for arg in self.body.ret.args}
        for reduction in self.reductions:
            needed.setdefault(self.source(reduction.source), set()).add(reduction.stage)
        for value in results:
            needed.setdefault(value, set()).add(self.stages[value])
        costs = self.costs()
        for bind in reversed(self.elementwise):
            (value,) = bind.binders
            if self.kinds[value] != "full":
                continue
            first, passes = self.stages[value], needed.get(value, set())
            self.computed[value], self.kept[value] = set(passes), set()
            if value in results or costs[value] > _CHEAP:
                self.computed[value], self.kept[value] = {first}, passes - {first}
            for arg in bind.args:
                needed.setdefault(self.source(arg), set()).update(self.computed[value])

    @property
    def loops(self) -> list[int]:
        """The passes that loop over the elements of a row."""
        reduced = [r.stage for r in self.reductions if r.operand_kind == "full"]
        return sorted({*reduced, *[stage for own in self.computed.values() for stage in own]})

    def pass_with_prefetch(self, rows_ahead: int) -> int:
        """The pass in which the processor should read a later row ahead of its turn; -1 for none.

        The first pass waits for memory, the second one reads from the cache. A pass that only
        writes a full value has no time to spare.
        """
        space, results = self.space, {self.source(arg) for arg in self.body.ret.args}
        ahead = rows_ahead * space.columns
        is_long = _MIN_ROW <= space.columns <= _MAX_ROW and ahead >= _MIN_AHEAD
        loops = self.loops
        if not is_long or math.prod(space.shape) < _MANY or space.rows < 2 or len(loops) < 2:
            return -1
        binds = [b for b in self.elementwise if loops[1] in self.computed.get(b.binders[0], ())]
        is_free = any(map(is_costly, binds)) or results.isdisjoint([b.binders[0] for b in binds])
        return loops[1] if is_free else -1

    def costs(self) -> dict[Arg, int]:
        """The approximate number of instructions that compute each full value from arrays."""
        result: dict[Arg, int] = {}
        for bind in self.elementwise:
            if self.kinds[bind.binders[0]] != "full":
                continue
            own = 1 if bind.op.cost == "cheap" else 2 * _CHEAP
            args = [self.source(arg) for arg in bind.args]
            result[bind.binders[0]] = own + sum([result.get(arg, 1) for arg in args])
        return result

"""Innermost loops whose steps compute several vectors of elements side by side.

LLVM can vectorise these loops itself, but takes most of its time for it, and adds loops over the
last elements, which are as long as the vectorised loop. Here the last elements are computed by
vectors too, of which a mask leaves out some lanes.
"""

import numpy as np
from attrs import define, evolve, field

from letir.kernels.llvm.interleaving import COMMON, Vectors, interleave_count
from letir.kernels.llvm.llvm_types import memory_type, number_text, type_text, vector_type
from letir.kernels.llvm.vector_loops import VectorLoops
from letir.kernels.llvm.vectorisation import (
    IDEMPOTENT,
    Steps,
    VectorPlan,
    VectorStatement,
    vector_plan,
)
from letir.kernels.loop_language import (
    Let,
    Load,
    Loop,
    Number,
    Operand,
    Prefetch,
    Scalar,
    Store,
    While,
)

_MIN_INSTRUCTIONS = 32  # in a step, for which the counting of steps takes little of the time
_MOST_LEFT = 12  # statements of a loop that LLVM need not improve
_MOST_VECTORS = 4  # in a step of a short loop or of a reduction


@define(eq=False)
class WideLoops(VectorLoops):
    """Writes innermost loops with steps of several vectors.

    ``plan``: of the loop being written, or None. ``places``: the addresses of the elements that
    the first step accesses. ``wide``: the scalars that are vectors. ``splats``: vectors with one
    number in all lanes, which are written ``ahead`` of the loop. ``lanes_left``: the register of
    the mask of lanes that are not left out, "" if none is. ``first_element``: where a loop over
    single elements starts, "" in other loops. ``leaves_loops``: whether innermost loops were
    written that LLVM may improve; ``has_vectors``: whether others were.
    """

    vectors: Vectors = COMMON
    plan: VectorPlan | None = None
    places: dict[Load | Store, str] = field(factory=dict)
    wide: set[Operand] = field(factory=set)
    splats: dict[tuple[str, str, int], str] = field(factory=dict)
    ahead: list[str] = field(factory=list)
    lanes_left: str = ""
    first_element: str = ""
    leaves_loops: bool = False
    has_vectors: bool = False

    def loop(self, loop: Loop, bases: dict) -> None:
        plan = None if self.is_general or self.lanes > 1 else self.plan_of(loop)
        if plan is None:
            kinds = {type(x) for x in loop.body}
            is_innermost = kinds.isdisjoint((Loop, While, Prefetch))
            is_long = len(loop.body) > _MOST_LEFT
            self.leaves_loops |= is_innermost and is_long and not self.is_general
            super().loop(loop, bases)
        else:
            self.planned_loop(loop, plan, bases)

    def plan_of(self, loop: Loop) -> VectorPlan | None:
        """The plan of a loop that is written here."""
        plan = vector_plan(loop, self.strides)
        if plan is None or (plan.least < 4 and not self.vectors.has_masks):
            return None  # such processors have no masks for small elements
        return plan

    def lanes_of(self, loop: Loop, plan: VectorPlan) -> int:
        """The elements in a vector: as many as the processor computes, fewer in short loops."""
        lanes = self.vectors.lanes * 8 // plan.itemsize
        if type(loop.extent) is Number:
            lanes = min(lanes, 1 << max(1, (int(loop.extent.value) - 1).bit_length()))
        return lanes

    def vectors_of(self, loop: Loop, plan: VectorPlan) -> int:
        """How many vectors a step of a loop computes."""
        count = _MOST_VECTORS if loop.carried else interleave_count(loop, self.vectors)
        while count < _MOST_VECTORS and count * len(plan.varying) < _MIN_INSTRUCTIONS:
            count *= 2
        if type(loop.extent) is Number:
            count = min(count, max(1, int(loop.extent.value) // self.lanes_of(loop, plan)))
        return 1 << (count.bit_length() - 1)

    def step_of(self, loop: Loop, plan: VectorPlan) -> int:
        """The elements that a step of a loop computes."""
        return self.vectors_of(loop, plan) * self.lanes_of(loop, plan)

    # ---- loops ----

    def planned_loop(self, loop: Loop, plan: VectorPlan, bases: dict) -> None:
        """A loop over any number of elements."""
        number, extent, before = next(self.numbers), self.operand(loop.extent), self.block
        is_any = self.value(f"icmp slt i64 0, {extent}")
        self.emit(f"br i1 {is_any}, label %ahead{number}, label %after{number}")
        self.open(f"ahead{number}")
        step = self.step_of(loop, plan)
        if type(loop.extent) is Number:
            whole = str(int(extent) // step * step)
        else:
            whole = self.value(f"and i64 {extent}, {-step}")
        totals = self.steps_of_plan(loop, plan, whole, extent, bases)
        last = self.block
        self.emit(f"br label %after{number}")
        self.open(f"after{number}")
        for (scalar, first, _, result), total in zip(loop.carried, totals, strict=True):
            kind, known = type_text(scalar.dtype), self.operand(first)
            self.names[result] = self.value(f"phi {kind} [{known}, %{before}], [{total}, %{last}]")

    def steps_of_plan(
        self, loop: Loop, plan: VectorPlan, whole: str, extent: str, bases: dict
    ) -> list[str]:
        """The steps to ``whole``, and one vector at a time to ``extent``; returns reductions."""
        self.has_vectors = True
        self.names[loop.index] = "0"
        self.body(plan.invariant, bases, None)
        accesses = [x for x in plan.varying if isinstance(x, Load | Store)]
        self.places = {x: self.part_address(x, bases) for x in accesses}
        self.wide = {x.result for x in plan.varying if not isinstance(x, Store)}
        self.wide |= {scalar for _, scalar in plan.reductions}
        lets = [let for let, _ in plan.reductions]
        firsts = [first for _, first, _, _ in loop.carried]
        at, lanes = len(self.lines), self.lanes_of(loop, plan)
        self.plan, self.lanes = plan, lanes
        steps = Steps("0", whole, self.vectors_of(loop, plan))
        starts = [self.operand(_neutral(let, x)) for let, x in zip(lets, firsts, strict=True)]
        parts = self.run_steps(steps, [[start] * steps.count for start in starts], bases)
        totals = [self.joined(let, own) for let, own in zip(lets, parts, strict=True)]
        rest = Steps(whole, extent, is_masked=True)
        start = ""
        if whole == extent or rest.length() == 0:
            pass
        elif plan.is_short() and rest.length() and not totals:
            self.last_elements(int(whole), int(extent), bases)
        elif plan.accumulates:
            start = self.value(f"and i64 {extent}, {-lanes}")
            totals = self.single_vectors(Steps(whole, start), totals, bases)
        else:
            self.prefetch_places(whole)
            totals = self.single_vectors(rest, totals, bases)
        self.plan, self.lanes = None, 1
        self.lines[at:at] = self.ahead
        self.splats, self.ahead = {}, []
        totals = [
            self.over_lanes(let, self.operand(x), total, lanes)
            for let, x, total in zip(lets, firsts, totals, strict=True)
        ]
        return self.single_elements(loop, start, totals, bases) if start else totals

    def single_vectors(self, steps: Steps, totals: list[str], bases: dict) -> list[str]:
        """A loop with one vector in each step."""
        return [x for (x,) in self.run_steps(steps, [[x] for x in totals], bases)]

    def single_elements(self, loop: Loop, start: str, totals: list[str], bases: dict) -> list[str]:
        """A loop from ``start`` over the elements that do not fill a vector.

        A processor waits before it reads again what was stored under a mask, such as the sums of
        columns in the next row.
        """
        firsts = [Scalar(scalar.dtype, "") for scalar, *_ in loop.carried]
        self.names.update(zip(firsts, totals, strict=True))
        carried = [
            (scalar, first, then, result)
            for (scalar, _, then, result), first in zip(loop.carried, firsts, strict=True)
        ]
        general, self.is_general, self.first_element = self.is_general, True, start
        super().loop(evolve(loop, carried=tuple(carried)), bases)
        self.is_general, self.first_element = general, ""
        return [self.names[result] for *_, result in carried]

    def steps_of(self, loop: Loop) -> tuple[str, str]:
        return (self.first_element, "1") if self.first_element else super().steps_of(loop)

    def last_elements(self, start: int, stop: int, bases: dict) -> None:
        """The elements from ``start`` to ``stop`` in vectors of 8, 4 and 2, for example."""
        while start < stop:
            self.lanes = max(2, 1 << ((stop - start).bit_length() - 1))
            is_masked = stop - start < self.lanes
            steps = Steps(str(start), str(stop), is_masked=is_masked)
            self.one_step(steps, str(start), [], bases)
            start += self.lanes

    def run_steps(self, steps: Steps, totals: list[list[str]], bases: dict) -> list[list[str]]:
        """A loop; ``totals``: for each reduction the vectors that a step adds to."""
        assert self.plan is not None
        length, step = steps.length(), steps.count * self.lanes
        if length == 0:
            return totals
        if length is not None and length <= step:
            return self.one_step(steps, steps.start, totals, bases)
        number, before = next(self.numbers), self.block
        head, inside, end, index = (f"{name}{number}" for name in ("head", "in", "end", "%i"))
        self.emit(f"br label %{head}")
        self.open(head)
        at = len(self.lines)  # the phi nodes come here
        is_more = self.value(f"icmp slt i64 {index}, {steps.stop}")
        self.emit(f"br i1 {is_more}, label %{inside}, label %{end}")
        self.open(inside)
        own = [[f"%c{number}.{k}.{n}" for n, _ in enumerate(x)] for k, x in enumerate(totals)]
        results = self.one_step(steps, index, own, bases)
        then = self.value(f"add nuw nsw i64 {index}, {step}")
        phis = [f"  {index} = phi i64 [{steps.start}, %{before}], [{then}, %{self.block}]"]
        for (let, _), *columns in zip(self.plan.reductions, own, totals, results, strict=True):
            for name, first, result in zip(*columns, strict=True):
                ways = f"[{first}, %{before}], [{result}, %{self.block}]"
                phis.append(f"  {name} = phi {self.type_of(let.result.dtype)} {ways}")
        self.emit(f"br label %{head}")
        self.lines[at:at] = phis
        self.open(end)
        return own

    def one_step(
        self, steps: Steps, index: str, totals: list[list[str]], bases: dict
    ) -> list[list[str]]:
        """A step that begins at ``index``; returns the totals after it."""
        assert self.plan is not None
        plan, outer = self.plan, self.names
        read = {x for statement in plan.varying for x in _operands_of(statement)}
        known = {x: outer[x] for x in read if x in outer}
        scopes: list[dict[Operand, str]] = []
        if steps.is_masked:
            self.lanes_left = self.mask_of(index, steps)
        for n in range(steps.count):
            first = self.value(f"add i64 {index}, {n * self.lanes}") if n else index
            carried = [scalar for _, scalar in plan.reductions]
            scopes.append({**known, plan.index: first})
            scopes[-1].update(zip(carried, [total[n] for total in totals], strict=True))
        for statement in plan.varying:
            for self.names in scopes:
                self.statement((statement,), bases, "")
        self.names, self.lanes_left = outer, ""
        return [[scope[let.result] for scope in scopes] for let, _ in plan.reductions]

    def prefetch_places(self, index: str) -> None:
        """Let the processor read the lines of its cache in which the last elements are stored.

        It waits for each line of which a vector with a mask is stored.
        """
        name = "llvm.prefetch.p0"
        self.declared[name] = f"declare void @{name}(ptr, i32, i32, i32)"
        own, self.lines = self.lines, self.ahead
        for access, first in self.places.items():
            if isinstance(access, Store):
                kind = memory_type(access.array.dtype)
                place = self.value(f"getelementptr {kind}, ptr {first}, i64 {index}")
                self.emit(f"call void @{name}(ptr {place}, i32 1, i32 3, i32 1)")
        self.lines = own

    def mask_of(self, index: str, steps: Steps) -> str:
        """The lanes of a vector that begins at ``index`` which are not beyond the last step."""
        lanes = self.lanes
        if (length := steps.length()) is not None and length <= lanes:
            return f"<{', '.join([f'i1 {n < length}'.lower() for n in range(lanes)])}>"
        left = self.value(f"sub i64 {steps.stop}, {index}")
        self.declared["llvm.smin.i64"] = "declare i64 @llvm.smin.i64(i64, i64)"
        left = self.value(f"call i64 @llvm.smin.i64(i64 {left}, i64 {lanes})")
        count = self.splat(self.value(f"trunc i64 {left} to i32"), "i32")
        places = ", ".join([f"i32 {n}" for n in range(lanes)])
        return self.value(f"icmp sgt <{lanes} x i32> {count}, <{places}>")

    # ---- reductions ----

    def joined(self, let: Let, parts: list[str]) -> str:
        """One vector with the totals of these vectors, whose number is a power of 2."""
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self.combined(let, x, y) for x, y in pairs]
        return parts[0]

    def combined(self, let: Let, *values: str) -> str:
        """The instruction of a reduction on two values of ``lanes`` lanes."""
        operands = tuple([Scalar(let.result.dtype, "") for _ in values])
        self.names.update(zip(operands, values, strict=True))
        self.wide |= set(operands)
        return self.let(evolve(let, operands=operands))

    def over_lanes(self, let: Let, first: str, vector: str, lanes: int) -> str:
        """The reduction of ``first`` and all lanes of a vector."""
        dtype = let.result.dtype
        if dtype.kind == "f" and let.name == "add":
            return self.sum_lanes(first, vector, dtype, lanes)
        kind, wide = type_text(dtype), vector_type(dtype, lanes)
        prefix = "f" if dtype.kind == "f" else "s" if dtype.kind == "i" else "u"
        name = f"{prefix if let.name in ('max', 'min') else ''}{let.name}"
        bits = 1 if dtype.kind == "b" else 8 * dtype.itemsize
        name = f"llvm.vector.reduce.{name}.v{lanes}{'f' if dtype.kind == 'f' else 'i'}{bits}"
        self.declared[name] = f"declare {kind} @{name}({wide})"
        flags = "nnan nsz " if dtype.kind == "f" else ""
        total = self.value(f"call {flags}{kind} @{name}({wide} {vector})")
        return total if let.name in IDEMPOTENT else self.combined(let, first, total)

    # ---- statements in such a loop ----

    def splat(self, x: str, kind: str) -> str:
        """A vector with the scalar ``x`` in all lanes."""
        one = self.value(f"insertelement <1 x {kind}> poison, {kind} {x}, i64 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.value(f"shufflevector <1 x {kind}> {one}, <1 x {kind}> poison, {zeros}")

    def splat_ahead(self, x: str, kind: str) -> str:
        """A vector with a scalar from before the loop, written there, in all lanes."""
        key = x, kind, self.lanes
        if key not in self.splats:
            own, self.lines = self.lines, self.ahead
            self.splats[key] = self.splat(x, kind)
            self.lines = own
        return self.splats[key]

    def operand(self, x: Operand) -> str:
        if self.plan is None:
            return super().operand(x)
        if x in self.wide:
            return self.names[x]
        text = number_text(x) if type(x) is Number else self.names[x]
        return self.splat_ahead(text, type_text(x.dtype))

    def let(self, statement: Let) -> str:
        result = super().let(statement)
        if self.plan is None or not self.lanes_left:
            return result
        for let, scalar in self.plan.reductions:
            if let is statement:  # lanes that are left out keep their totals
                flags, kind = self.type_of(np.dtype("?")), self.type_of(scalar.dtype)
                old = f"{kind} {self.names[scalar]}"
                return self.value(f"select {flags} {self.lanes_left}, {kind} {result}, {old}")
        return result

    def load(self, statement: Load, bases: dict, group: str | None) -> str:
        if self.plan is None or statement not in self.places:
            return super().load(statement, bases, group)
        dtype = statement.result.dtype
        place, element = self.place(statement), memory_type(dtype)
        vector, align = f"<{self.lanes} x {element}>", dtype.itemsize
        if self.lanes_left:
            same = self.splat(self.value(f"load {element}, ptr {place}, align {align}"), element)
            result = self.masked_load(place, dtype, self.lanes_left, same)
        else:
            result = self.value(f"load {vector}, ptr {place}, align {align}")
        if dtype.kind != "b":
            return result
        return self.value(f"icmp ne {vector} {result}, zeroinitializer")

    def store(self, statement: Store, bases: dict, group: str | None) -> None:
        if self.plan is None:
            super().store(statement, bases, group)
            return
        dtype, value = statement.value.dtype, self.operand(statement.value)
        vector = f"<{self.lanes} x {memory_type(dtype)}>"
        if dtype.kind == "b":
            value = self.value(f"zext {self.type_of(dtype)} {value} to {vector}")
        place = self.place(statement)
        if self.lanes_left:
            self.masked_store(value, place, dtype, self.lanes_left)
        else:
            self.emit(f"store {vector} {value}, ptr {place}, align {dtype.itemsize}")

    def place(self, access: Load | Store) -> str:
        """The address of the first element of a vector."""
        assert self.plan is not None
        index, kind = self.names[self.plan.index], memory_type(access.array.dtype)
        return self.value(f"getelementptr {kind}, ptr {self.places[access]}, i64 {index}")


def _neutral(let: Let, first: Operand) -> Operand:
    """What the lanes of a reduction that begins with ``first`` begin with."""
    kind = let.result.dtype.type
    if let.name in IDEMPOTENT:
        return first
    zero = kind(-0.0) if let.result.dtype.kind == "f" else kind(0)
    return Number(kind(1) if let.name == "mul" else zero)


def _operands_of(statement: VectorStatement) -> tuple[Operand, ...]:
    """The scalars that a statement reads, other than indices."""
    if isinstance(statement, Store):
        return (statement.value,)
    return () if isinstance(statement, Load) else statement.operands

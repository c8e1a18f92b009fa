"""``PlanMemory``: the peak memory of a call of a plan, predicted from the types of its values.

The steps of the plan are simulated without arrays: the memory that each step allocates, shares with
an operand, or frees at a last use.
"""

import math
from typing import Any

import numpy as np
from attrs import define, field, frozen

from letir.ast import LATE_BOUND
from letir.ast.bodies import bodies_of
from letir.ast.sizes.size import Size
from letir.ast.terms import NO_TYPE, Bind, Const, Local
from letir.errors import ShapeError
from letir.kernels.flat_arrays.flat_memory import c_strides
from letir.ops.as_numpy.quick_numbers import OWNED
from letir.plan.plan import RUNS_BY_STEPS, Plan, plan_of
from letir.plan.reused_operands import reuse_test
from letir.plan.slot_allocation import OTHER, slots_of_step

_MAX_LINES = 20


@frozen
class HeldArray:
    """An array of the plan: ``text`` is its let line, ``line`` the line of user code."""

    text: str
    line: str
    bytes: int


@frozen(repr=False)
class PlanMemory:
    """The memory that a call of a plan allocates for the arrays of its values and results.

    ``peak``: the most bytes at once; ``step``: the operation at which this happens; ``held``: the
    arrays that exist then, the largest first, including temporary arrays of this step. ``results``:
    the bytes of the results. ``is_exact``: whether all types and memory orders are known, and no
    step runs a body, whose iterations are not followed.

    Not counted: arguments, constants, numbers, and what NumPy's functions allocate inside, such as
    buffers of up to 64 KiB an operand for casts.
    """

    peak: int
    step: str
    held: tuple[HeldArray, ...]
    results: int
    is_exact: bool

    def __str__(self):
        about = "" if self.is_exact else "about "
        rows = [(f"{array.bytes:,}", array.text, array.line) for array in self.held[:_MAX_LINES]]
        width = max([len(row[0]) for row in rows], default=0)
        lines = [f"  {size:>{width}}  {text}  {line}".rstrip() for size, text, line in rows]
        omitted = len(self.held) - len(rows)
        return "\n".join(
            [
                f"peak: {about}{self.peak:,} bytes, of these {self.results:,} for results",
                f"at {self.step}; with it exist:",
                *lines,
                *([f"  and {omitted} smaller arrays"] if omitted else []),
            ]
        )

    __repr__ = __str__

    def _repr_html_(self):
        return LATE_BOUND["memory_html"](self)


@define(eq=False)
class PlanBuffer:
    """The memory of an array: its bytes, the bind that made it, and how many slots refer to it."""

    bytes: int
    bind: Bind | None
    refs: int = 0


@define(eq=False)
class _Value:
    """An array in a slot. ``strides``: in elements, None if unknown; ``is_view``: it has a base."""

    buffer: PlanBuffer
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    is_view: bool = False

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in C order without gaps."""
        return self.strides == c_strides(self.shape)


def plan_memory(plan: Plan, sizes: dict[str, int], is_often: bool | None = None) -> PlanMemory:
    """The memory of the next call of a plan; if ``is_often``, of a later call, which reuses arrays.

    ``sizes``: the values of symbolic sizes. Linear in the number of steps.
    """
    if is_often is None:
        is_often = plan.straight is not None or plan.runs + 1 >= RUNS_BY_STEPS
    result = SimulatedRun(plan, sizes, is_often)
    result.run(len(plan.table.steps))
    if result.peak_at < 0:
        return PlanMemory(0, "no step", (), 0, result.is_exact)
    until_peak = SimulatedRun(plan, sizes, is_often)
    until_peak.run(result.peak_at)
    arrays = sorted(until_peak.held, key=lambda array: array.bytes, reverse=True)
    where = memory_text(plan.table.bind_at(result.peak_at))
    return PlanMemory(result.peak, where, tuple(arrays), result.results, result.is_exact)


def memory_text(bind: Bind) -> str:
    """A bind as the name of its operation and the types of its results."""
    return f"{bind.op.name}: {', '.join([str(binder.type) for binder in bind.binders])}"


@define(eq=False)
class SimulatedRun:
    """A call of a plan without arrays. It has the methods that ``reuse_test`` calls, too."""

    plan: Plan
    sizes: dict[str, int]
    is_often: bool
    values: dict[int, _Value] = field(factory=dict)  # by slot
    buffers: dict[PlanBuffer, None] = field(factory=dict)  # of the plan, oldest first
    live: int = 0
    peak: int = 0
    peak_at: int = -1
    results: int = 0
    temporary: int = 0  # bytes that the current step alone needs
    is_exact: bool = True
    last: int = 0
    held: list[HeldArray] = field(factory=list)  # at the last step, with its operands
    # state of the current step:
    bind: Any = None
    slots: tuple = ()
    dying: tuple = ()

    def run(self, last: int) -> None:
        """The steps up to and including number ``last``, then the results if that was all."""
        self.last = last
        table, params = self.plan.table, self.plan.params
        for n, param in enumerate(params):
            self.hold(n, self.array(param.type, PlanBuffer(0, None)))
        for n, constant in enumerate(table.rest, start=len(params)):
            if isinstance(constant, np.ndarray) and constant.shape:
                self.hold(n, _Value(PlanBuffer(0, None), constant.shape, c_strides(constant.shape)))
        for slot in table.unused:
            self.hold(slot, None)
        for n, step in enumerate(table.steps[: last + 1]):
            self.step(n, step)
        if last >= len(table.steps):
            results = [self.values.get(slot) for slot in table.results]
            buffers = {value.buffer for value in results if value is not None}
            self.results = sum([buffer.bytes for buffer in buffers])

    def step(self, n: int, step: tuple) -> None:
        """One step: what it allocates, and what is freed after it."""
        kind, _, i, j, k, c = step
        self.bind, self.temporary = self.plan.table.bind_at(n), 0
        self.slots, cleared = slots_of_step(kind, i, j, c)
        targets = k if kind == OTHER else (k,)
        self.dying = cleared if kind == OTHER else (*cleared, k)
        self.temporary = self.bytes_inside()
        results = [self.result_value(binder) for binder in self.bind.binders]
        for value in results:
            if value is not None:
                self.allocate(value.buffer)
                value.buffer.refs += 1  # the reference of the function that returns it
        self.note_bytes(n, self.live + self.temporary)
        if n == self.last:
            self.note_held()
        if kind == OTHER:
            self.clear(cleared)
        for slot, value in zip(targets, results, strict=True):
            if slot is not None:
                self.hold(slot, value)
        if kind != OTHER:
            self.clear(cleared)
        for value in results:
            self.release(value)

    def note_bytes(self, n: int, live: int) -> None:
        """Note the bytes that exist at step ``n``."""
        if live > self.peak:
            self.peak, self.peak_at = live, n

    def allocate(self, buffer: PlanBuffer) -> None:
        """Count the memory of a new array."""
        if buffer.bytes and buffer not in self.buffers:
            self.buffers[buffer] = None
            self.live += buffer.bytes

    def clear(self, slots: tuple) -> None:
        """Empty slots."""
        for slot in slots:
            self.release(self.values.pop(slot, None))

    def hold(self, slot: int, value: _Value | None) -> None:
        """Put a value into a slot; the old value is freed if nothing else refers to it."""
        old = self.values.pop(slot, None)
        if value is not None:
            self.values[slot] = value
            value.buffer.refs += 1
        self.release(old)

    def release(self, value: _Value | None) -> None:
        """Remove a reference to a value, and free its memory with the last reference."""
        if value is None:
            return
        value.buffer.refs -= 1
        if not value.buffer.refs and value.buffer in self.buffers:
            self.free(value.buffer)

    def free(self, buffer: PlanBuffer) -> None:
        """Remove the memory of an array from the count."""
        del self.buffers[buffer]
        self.live -= buffer.bytes

    # ---- results of a step ----

    def result_value(self, binder: Local) -> _Value | None:
        """The result of the current step; None for a number."""
        op, bind = self.bind.op, self.bind
        aval = binder.type
        if aval is None or aval is NO_TYPE:
            self.is_exact = False
            return None
        if not aval.shape:
            return None
        first = self.values.get(self.slots[0]) if self.slots else None
        if op.update is not None and self.is_alone(0):
            return first
        shared = None if op.memory in ("new", "may_alias") else self.shared_value(first)
        if shared is not None:
            return shared
        reused = reuse_test(self) if self.is_often else None
        if reused is not None and self.is_alone(reused[0]):
            if self.are_contiguous():
                return self.values[self.slots[reused[0]]]
            self.is_exact = self.is_exact and self.are_known()
        size = math.prod(self.shape(aval)) * aval.dtype.itemsize
        return self.array(
            aval, PlanBuffer(size, bind), is_ordered=op.order == "C" or self.are_contiguous()
        )

    def array(self, aval: Any, buffer: PlanBuffer, is_ordered: bool = True) -> _Value | None:
        """An array of this type."""
        if aval is None or aval is NO_TYPE or not aval.shape:
            return None
        shape = self.shape(aval)
        return _Value(buffer, shape, c_strides(shape) if is_ordered else None)

    def shape(self, aval: Any) -> tuple[int, ...]:
        """The sizes of a type as numbers. Raises ShapeError if one is not given."""
        names = {name for n in aval.shape if type(n) is Size for name in n.names}
        missing = sorted(names - self.sizes.keys())
        if missing:
            raise ShapeError(
                "memory: the plan has symbolic sizes, and no number was given for "
                f"{', '.join(missing)}\n  pass one: plan.memory({missing[0]}=100)"
            )
        sizes = self.sizes
        return tuple([n.evaluate(sizes) if type(n) is Size else n for n in aval.shape])

    def shared_value(self, first: _Value | None) -> _Value | None:
        """The result as a view of the first operand; None if it is a copy."""
        if first is None:
            return None
        op, bind = self.bind.op, self.bind
        avals = [arg.type for arg in bind.args]
        if op.views is not None and not op.views(*avals, **bind.attrs):
            return None
        shape = self.shape(bind.binders[0].type)
        if first.strides is None or any(type(arg) is Local for arg in bind.args[1:]):
            self.is_exact = self.is_exact and op.view_needs is None
            return _Value(first.buffer, shape, None, is_view=True)
        # the views are made of memory with one byte an element; NumPy reads it only for a copy
        if 0 in first.shape:
            return _Value(first.buffer, shape, None, is_view=True)
        ends = [(n - 1) * s for n, s in zip(first.shape, first.strides, strict=True)]
        memory = np.empty(1 + sum(map(abs, ends)), "i1")
        start = -sum([end for end in ends if end < 0])
        x = np.lib.stride_tricks.as_strided(memory[start:], first.shape, first.strides)
        others = [arg.value for arg in bind.args[1:] if type(arg) is Const]
        view = op.impl(np, x, *others, **bind.attrs)
        if not isinstance(view, np.ndarray) or not np.may_share_memory(view, memory):
            return None
        return _Value(first.buffer, shape, view.strides, is_view=True)

    def bytes_inside(self) -> int:
        """The bytes that the current step needs in addition to operands and results: for its
        kernel, or for one run of a body.
        """
        op = self.bind.op
        if op.holds_lambdas:
            self.is_exact = False
            plans = [plan_of(body) for body in bodies_of(self.bind)]
            return max([plan_memory(plan, self.sizes, False).peak for plan in plans], default=0)
        call: Any = getattr(op.impl, "call", None)
        return sum([dtype.itemsize * call.columns for dtype in getattr(call, "scratch", ())])

    def is_alone(self, i: int) -> bool:
        """Whether an operand, allocated by the plan, has its last use and no other reference."""
        value = self.values.get(self.slots[i]) if i < len(self.slots) else None
        is_last = self.slots[i : i + 1] != () and self.slots[i] in self.dying
        is_own = value is not None and value.buffer in self.buffers
        return is_last and is_own and value.buffer.refs == 1 and not value.is_view

    def are_contiguous(self) -> bool:
        """Whether all operands with axes lie in C order."""
        values = [self.values.get(slot) for slot in self.slots]
        return all(value.is_contiguous for value in values if value is not None)

    def are_known(self) -> bool:
        """Whether the memory order of all operands is known."""
        values = [self.values.get(slot) for slot in self.slots]
        return all(value.strides is not None for value in values if value is not None)

    # ---- methods for ``reuse_test`` ----

    @property
    def result(self) -> Any:
        aval = self.bind.binders[0].type
        return None if aval is NO_TYPE else aval

    def type(self, i: int) -> Any:
        aval = self.bind.args[i].type
        return None if aval is NO_TYPE else aval

    def is_dying(self, i: int) -> bool:
        return self.slots[i] in self.dying

    def fact(self, i: int) -> str | None:
        value = self.values.get(self.slots[i])
        is_new = value is not None and value.buffer.bind is not None and not value.is_view
        return OWNED if is_new else None

    def slot(self, i: int) -> str:
        return f"s{self.slots[i]}"

    def note_held(self) -> None:
        """Note the arrays that exist now, and the temporary ones of the step."""
        self.held = []
        for buffer in self.buffers:
            assert buffer.bind is not None
            line = buffer.bind.source.short if buffer.bind.source else ""
            self.held.append(HeldArray(memory_text(buffer.bind), line, buffer.bytes))
        if self.temporary:
            self.held.append(HeldArray(f"inside {memory_text(self.bind)}", "", self.temporary))


LATE_BOUND["plan_memory"] = plan_memory

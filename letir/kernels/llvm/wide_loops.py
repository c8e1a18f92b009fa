"""Elementwise loops whose steps compute several vectors of elements side by side.

LLVM can vectorise these loops itself, but takes most of its time for it, and adds a loop over the
last elements, one at a time, which is as long as the vectorised loop.
"""

from attrs import define, field

from letir.kernels.llvm.interleaving import COMMON, Vectors, interleave_count
from letir.kernels.llvm.llvm_statements import memory_type, number_text, type_text
from letir.kernels.llvm.vector_loops import VectorLoops
from letir.kernels.loop_language import (
    Array,
    Function,
    FunctionCall,
    Let,
    Load,
    Loop,
    Number,
    Operand,
    Statement,
    Store,
)

_SCALAR = ("quotient", "fmod")  # instructions that processors compute for one element at a time
_MIN_INSTRUCTIONS = 32  # in a step, for which the counting of steps takes little of the time


@define(eq=False)
class WideLoops(VectorLoops):
    """Writes parallel loops with steps of several vectors.

    ``wide_loop``: the loop being written, or None. ``varying``: the scalars that differ between its
    elements, each of which is a vector. ``splats``: vectors with one number in all lanes.
    ``ahead``: the lines before the loop.
    """

    vectors: Vectors = COMMON
    wide_loop: Loop | None = None
    varying: set[Operand] = field(factory=set)
    splats: dict[tuple[str, str], str] = field(factory=dict)
    ahead: list[str] = field(factory=list)

    def vectors_of(self, loop: Loop) -> tuple[int, int]:
        """How many vectors of how many elements a step of a loop can compute; (0, 0) if none."""
        if loop.carried or not loop.is_parallel or not all(map(_is_vectorisable, loop.body)):
            return 0, 0
        sizes = []
        for x in loop.body:
            if isinstance(x, Load | Store) and (x.part or x.indices != (loop.index,)):
                return 0, 0
            scalar = x.value if isinstance(x, Store) else getattr(x, "result", loop.index)
            sizes.append(scalar.dtype.itemsize)
        lanes = self.vectors.lanes * 8 // max(sizes)
        count = interleave_count(loop, self.vectors)
        while count < 4 and count * len(loop.body) < _MIN_INSTRUCTIONS:
            count *= 2
        # LLVM splits wide vectors, of which the text is shorter
        return (1, count * lanes) if self.vectors.has_masks else (count, lanes)

    def wide_steps(self, loop: Loop, bases: dict) -> None:
        """A loop over an extent that is a multiple of the elements of a step."""
        count, lanes = self.vectors_of(loop)
        number = next(self.numbers)
        head, inside, end = (f"{name}{number}" for name in ("head", "in", "end"))
        before, extent, index = self.block, self.operand(loop.extent), f"%i{number}"
        rest = self.invariants(loop, bases)
        at = len(self.lines)
        self.emit(f"br label %{head}")
        self.open(head)
        self.emit(f"{index} = phi i64 [0, %{before}], [%then{number}, %{inside}]")
        is_more = self.value(f"icmp slt i64 {index}, {extent}")
        self.emit(f"br i1 {is_more}, label %{inside}, label %{end}")
        self.open(inside)
        firsts = [index]
        firsts += [self.value(f"add i64 {index}, {n * lanes}") for n in range(1, count)]
        outer, self.wide_loop, self.lanes = self.names, loop, lanes
        scopes = [{**outer, loop.index: first} for first in firsts]
        for statement in rest:
            for scope in scopes:
                self.names = scope
                self.body((statement,), bases, "")
        self.names, self.wide_loop, self.lanes = outer, None, 1
        self.emit(f"%then{number} = add nuw nsw i64 {index}, {count * lanes}")
        self.emit(f"br label %{head}")
        self.open(end)
        self.lines[at:at] = self.ahead
        self.splats, self.ahead = {}, []

    def invariants(self, loop: Loop, bases: dict) -> tuple[Statement, ...]:
        """Write the statements that have the same result in each step; returns the others."""
        rest: list[Statement] = []
        self.varying = {loop.index}
        for x in loop.body:
            if type(x) is Load:
                is_invariant = self.strides[x.array, 0] == "0" and not x.array.is_written
            else:
                is_invariant = type(x) is Let and self.varying.isdisjoint(x.operands)
            if is_invariant:
                self.names[loop.index] = "0"
                self.body((x,), bases, None)
            else:
                rest.append(x)
                self.varying.add(getattr(x, "result", None))
        return tuple(rest)

    # ---- statements in such a loop ----

    def splat(self, x: str, kind: str) -> str:
        """A vector with the scalar ``x`` in all lanes."""
        one = self.value(f"insertelement <1 x {kind}> poison, {kind} {x}, i64 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.value(f"shufflevector <1 x {kind}> {one}, <1 x {kind}> poison, {zeros}")

    def operand(self, x: Operand) -> str:
        if self.lanes == 1 or self.vector_loop is not None:
            return super().operand(x)
        if self.wide_loop is None:
            if type(x) is not Number:
                return self.names[x]
            return self.splat(number_text(x), type_text(x.dtype))
        return self.names[x] if x in self.varying else self.invariant_operand(x)

    def invariant_operand(self, x: Operand) -> str:
        """A vector with a number, or a scalar from before the loop, in all lanes."""
        text, kind = number_text(x) if type(x) is Number else self.names[x], type_text(x.dtype)
        if (text, kind) not in self.splats:
            own, self.lines = self.lines, self.ahead
            self.splats[text, kind] = self.splat(text, kind)
            self.lines = own
        return self.splats[text, kind]

    def load(self, statement: Load, bases: dict, group: str | None) -> str:
        if self.wide_loop is None:
            return super().load(statement, bases, group)
        dtype = statement.result.dtype
        vector = f"<{self.lanes} x {memory_type(dtype)}>"
        place = self.place(statement.array, bases)
        result = self.value(f"load {vector}, ptr {place}, align {dtype.itemsize}")
        if dtype.kind != "b":
            return result
        return self.value(f"icmp ne {vector} {result}, zeroinitializer")

    def store(self, statement: Store, bases: dict, group: str | None) -> None:
        if self.wide_loop is None:
            super().store(statement, bases, group)
            return
        dtype, value = statement.value.dtype, self.operand(statement.value)
        vector = f"<{self.lanes} x {memory_type(dtype)}>"
        if dtype.kind == "b":
            value = self.value(f"zext {self.type_of(dtype)} {value} to {vector}")
        place = self.place(statement.array, bases)
        self.emit(f"store {vector} {value}, ptr {place}, align {dtype.itemsize}")

    def place(self, array: Array, bases: dict) -> str:
        """The address of the first element of a vector."""
        assert self.strides[array, 0] == str(array.dtype.itemsize), "elements lie side by side"
        assert self.wide_loop is not None
        index, kind = self.names[self.wide_loop.index], memory_type(array.dtype)
        return self.value(f"getelementptr {kind}, ptr {bases[array]}, i64 {index}")


def _is_vectorisable(statement: Statement) -> bool:
    """Whether a statement computes the elements of a vector as fast as separate ones."""
    if type(statement) is Let:
        return statement.name not in _SCALAR
    if type(statement) is FunctionCall:
        return _is_straight(statement.function)
    return type(statement) in (Load, Store)


def _is_straight(function: Function) -> bool:
    """Whether all statements of a function are instructions and calls of such functions."""
    return all(map(_is_vectorisable, (*function.test, *function.body)))

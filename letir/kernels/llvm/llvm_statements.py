"""LLVM text of the loop language's statements, shared by kernels for CPUs and for GPUs."""

from collections.abc import Iterator
from itertools import count

import numpy as np
from attrs import define, field

from letir.kernels.llvm.llvm_types import memory_type, number_text, type_text, vector_type
from letir.kernels.loop_language import (
    Array,
    Function,
    FunctionCall,
    Kernel,
    Let,
    Load,
    Loop,
    Number,
    Operand,
    Prefetch,
    Statement,
    Store,
    While,
)

_PARTIAL_SUMS = 4  # vectors of partial sums: short chains of additions, with small errors
_INTRINSICS = {"abs": "fabs"}  # others are called as the instruction
_BY_KIND = {  # instruction: (of floats, of signed, of unsigned integers)
    "add": ("fadd", "add", "add"),
    "sub": ("fsub", "sub", "sub"),
    "mul": ("fmul", "mul", "mul"),
    "div": ("fdiv", "", ""),
    "fmod": ("frem", "", ""),
    "quotient": ("", "sdiv", "udiv"),
    "and": ("", "and", "and"),
    "or": ("", "or", "or"),
    "xor": ("", "xor", "xor"),
    "shl": ("", "shl", "shl"),
    "shr": ("", "ashr", "lshr"),
    "lshr": ("", "lshr", "lshr"),
    "eq": ("fcmp oeq", "icmp eq", "icmp eq"),
    "ne": ("fcmp une", "icmp ne", "icmp ne"),
    "lt": ("fcmp olt", "icmp slt", "icmp ult"),
    "le": ("fcmp ole", "icmp sle", "icmp ule"),
    "gt": ("fcmp ogt", "icmp sgt", "icmp ugt"),
    "ge": ("fcmp oge", "icmp sge", "icmp uge"),
}


def _is_sum(loop: Loop) -> bool:
    return any(type(statement) is Let and statement.reassociates for statement in loop.body)


def _runs_of_calls(body: tuple[Statement, ...]) -> list[tuple]:
    """The statements in their order; neighbours that call a function independently are together."""
    runs: list[tuple] = []
    results: set = set()
    for statement in body:
        last = runs[-1][0] if runs else None
        alike = (
            type(statement) is FunctionCall
            and type(last) is FunctionCall
            and last.function is statement.function
        )
        if alike and results.isdisjoint(getattr(statement, "operands", ())):
            runs[-1] += (statement,)
        else:
            runs.append((statement,))
            results = set()
        results.add(getattr(statement, "result", None))
    return runs


def function_name(function: Function, lanes: int = 1) -> str:
    """The name in the module of a function of this number of lanes."""
    return function.name if lanes == 1 else f"{function.name}_x{lanes}"


def calling_convention(function: Function) -> str:
    """The calling convention of a function, with a space; loops are vectorised with C's alone."""
    return "fastcc " if function.condition is None else ""


@define(eq=False)
class StatementText:
    """Writes the LLVM module of one kernel; a subclass writes the entry function.

    ``strides``: the registers of the strides in bytes, by array and axis. ``is_general``: whether
    the loops being written have to work for arrays of any strides. ``lanes``: the number of
    elements for which the function being written computes. ``needed``: the functions that are
    called, by lanes.
    """

    kernel: Kernel
    name: str
    lines: list[str] = field(factory=list)
    declared: dict[str, str] = field(factory=dict)
    metadata: list[str] = field(factory=list)
    block: str = "entry"
    numbers: Iterator[int] = field(factory=count)
    names: dict[Operand, str] = field(factory=dict)
    strides: dict[tuple[Array, int], str] = field(factory=dict)
    is_general: bool = False
    lanes: int = 1
    needed: dict[tuple[Function, int], None] = field(factory=dict)

    def type_of(self, dtype: np.dtype) -> str:
        """LLVM's type of a scalar, in a function of several lanes of a vector."""
        return vector_type(dtype, self.lanes)

    # ---- lines ----

    def emit(self, line: str) -> None:
        self.lines.append(f"  {line}")

    def value(self, line: str) -> str:
        """A new register with the value of this instruction."""
        result = f"%r{next(self.numbers)}"
        self.emit(f"{result} = {line}")
        return result

    def open(self, block: str) -> None:
        self.block = block
        self.lines.append(f"{block}:")

    def note(self, text: str) -> str:
        """A new metadata node."""
        self.metadata.append(text)
        return f"!{len(self.metadata) - 1}"

    # ---- statements ----

    def body(self, body: tuple[Statement, ...], bases: dict, group: str | None) -> None:
        for run in _runs_of_calls(body):
            self.statement(run, bases, group)

    def statement(self, run: tuple, bases: dict, group: str | None) -> None:
        """A statement, or several calls of one function."""
        first = run[0]
        if type(first) is Let:
            self.names[first.result] = self.let(first)
        elif type(first) is Load:
            self.names[first.result] = self.load(first, bases, group)
        elif type(first) is Store:
            self.store(first, bases, group)
        elif type(first) is Prefetch:
            self.prefetch(first, bases)
        elif type(first) is FunctionCall:
            self.calls(run, group)
        elif type(first) is Loop:
            self.loop(first, bases)
        elif type(first) is While:
            self.repeat(first, bases)

    def calls(self, run: tuple[FunctionCall, ...], group: str | None) -> None:
        """Calls of one function, none of which needs the result of another one."""
        for call in run:
            self.names[call.result] = self.call(call)

    def call(self, statement: FunctionCall) -> str:
        return self.call_text(
            statement.function, list(map(self.operand, statement.operands)), self.lanes
        )

    def call_text(self, function: Function, operands: list[str], lanes: int) -> str:
        """A call of a function of this number of lanes, which is written later."""
        self.needed[function, lanes] = None
        avals = [vector_type(x.dtype, lanes) for x in (function.result, *function.params)]
        arguments = ", ".join([f"{kind} {x}" for kind, x in zip(avals[1:], operands, strict=True)])
        head = f"call {calling_convention(function)}{avals[0]}"
        return self.value(f"{head} @{function_name(function, lanes)}({arguments})")

    def operand(self, x: Operand) -> str:
        if type(x) is not Number:
            return self.names[x]
        text = number_text(x)
        if self.lanes == 1:
            return text
        return f"<{', '.join([f'{type_text(x.dtype)} {text}'] * self.lanes)}>"

    def address(self, array: Array, indices: tuple, bases: dict) -> str:
        place = bases[array]
        for axis, index in enumerate(indices):
            offset = self.offset(array, axis, index)
            place = self.value(f"getelementptr i8, ptr {place}, i64 {offset}")
        return place

    def part_address(self, access: Load | Store, bases: dict) -> str:
        """The address of an element, or of its real or imaginary part."""
        place = self.address(access.array, access.indices, bases)
        if access.part != "imag":
            return place
        return self.value(f"getelementptr i8, ptr {place}, i64 {access.array.dtype.itemsize // 2}")

    def offset(self, array: Array, axis: int, index: Operand) -> str:
        """The distance in bytes along an axis from the first element to the one at ``index``."""
        return self.value(f"mul i64 {self.operand(index)}, {self.strides[array, axis]}")

    def load(self, statement: Load, bases: dict, group: str | None) -> str:
        dtype = statement.result.dtype
        place = self.part_address(statement, bases)
        access = f", !llvm.access.group {group}" if group else ""
        stride = self.strides.get((statement.array, len(statement.indices) - 1))
        if not statement.array.is_written and stride == "0":
            # one element for a whole loop: NumPy copies it if a result overlaps it
            access += f", !invariant.load {self.note('!{}')}"
        # NumPy passes arrays to inner loops that are aligned for their dtype
        align = dtype.itemsize
        result = self.value(f"load {memory_type(dtype)}, ptr {place}, align {align}{access}")
        return self.value(f"icmp ne i8 {result}, 0") if dtype.kind == "b" else result

    def store(self, statement: Store, bases: dict, group: str | None) -> None:
        dtype = statement.value.dtype
        value = self.operand(statement.value)
        if dtype.kind == "b":
            value = self.value(f"zext i1 {value} to i8")
        place = self.part_address(statement, bases)
        access = f", !llvm.access.group {group}" if group else ""
        aval = memory_type(dtype)
        self.emit(f"store {aval} {value}, ptr {place}, align {dtype.itemsize}{access}")

    def prefetch(self, statement: Prefetch, bases: dict) -> None:
        place, name = self.address(statement.array, statement.indices, bases), "llvm.prefetch.p0"
        self.declared[name] = f"declare void @{name}(ptr, i32, i32, i32)"
        self.emit(f"call void @{name}(ptr {place}, i32 0, i32 3, i32 1)")  # reads, all levels

    def loop(self, loop: Loop, bases: dict) -> None:
        """A loop that tests before the first step, because an extent may be 0."""
        number = next(self.numbers)
        before, head, inside, after = self.block, *(f"{n}{number}" for n in ("head", "in", "end"))
        extent, index = self.operand(loop.extent), f"%i{number}"
        start, step = self.steps_of(loop)
        is_inner = not any(type(part) is Loop for part in loop.body)
        group = self.note("distinct !{}") if is_inner and loop.is_parallel else None
        self.emit(f"br label %{head}")
        self.open(head)
        at = len(self.lines)  # the phi nodes come here, when the last block is known
        self.names[loop.index] = index
        for number_, (scalar, *_) in enumerate(loop.carried):
            self.names[scalar] = f"%c{number}.{number_}"
        is_more = self.value(f"icmp slt i64 {index}, {extent}")
        self.emit(f"br i1 {is_more}, label %{inside}, label %{after}")
        self.open(inside)
        self.enter(loop)
        self.body(loop.body, bases, group)
        then = self.value(f"add nuw nsw i64 {index}, {step}")
        end = self.block
        self.emit(f"br label %{head}{self.loop_notes(loop, group)}")
        phis = [f"  {index} = phi i64 [{start}, %{before}], [{then}, %{end}]"]
        for part in loop.carried:
            phis.append(self.phi(part, before, end))
            self.names[part[3]] = self.names[part[0]]
        self.lines[at:at] = phis
        self.open(after)

    def steps_of(self, loop: Loop) -> tuple[str, str]:
        """(the first index of a loop, the difference between indices)."""
        return "0", "1"

    def enter(self, loop: Loop) -> None:
        """Called at the start of a loop's body."""

    def repeat(self, loop: While, bases: dict) -> None:
        """A ``While``: a loop that tests a condition."""
        number = next(self.numbers)
        before, head, inside, after = self.block, *(f"{n}{number}" for n in ("head", "in", "end"))
        self.emit(f"br label %{head}")
        self.open(head)
        at = len(self.lines)
        for n, (scalar, *_) in enumerate(loop.carried):
            self.names[scalar] = f"%c{number}.{n}"
        self.body(loop.test, bases, None)
        self.emit(f"br i1 {self.operand(loop.condition)}, label %{inside}, label %{after}")
        self.open(inside)
        self.body(loop.body, bases, None)
        self.emit(f"br label %{head}")
        self.lines[at:at] = [self.phi(part, before, self.block) for part in loop.carried]
        for scalar, _, _, result in loop.carried:
            self.names[result] = self.names[scalar]
        self.open(after)

    def phi(self, carried: tuple, before: str, end: str) -> str:
        """The line of a carried scalar at the head of its loop."""
        scalar, first, then, _ = carried
        kind, ways = self.type_of(scalar.dtype), [(first, before), (then, end)]
        values = ", ".join([f"[{self.operand(x)}, %{block}]" for x, block in ways])
        return f"  {self.names[scalar]} = phi {kind} {values}"

    def loop_notes(self, loop: Loop, group: str | None) -> str:
        """The loop's metadata for LLVM; vectorising does not speed up loops for any strides."""
        notes = ['!{!"llvm.loop.unroll.disable"}'] if group is not None else []
        if group is not None:
            notes.append(f'!{{!"llvm.loop.parallel_accesses", {group}}}')
            if (count := self.side_by_side(loop)) > 1:
                notes.append(f'!{{!"llvm.loop.interleave.count", i32 {count}}}')
        if self.is_general:
            notes.append('!{!"llvm.loop.vectorize.enable", i1 false}')
        if not notes:
            return ""
        named = ", ".join(map(self.note, notes))
        own = f"!{len(self.metadata)}"
        self.note(f"distinct !{{{own}, {named}}}")
        return f", !llvm.loop {own}"

    def side_by_side(self, loop: Loop) -> int:
        """The number of vectors that a step of an innermost loop computes side by side."""
        return _PARTIAL_SUMS if type(loop.extent) is not Number and _is_sum(loop) else 1

    # ---- instructions ----

    def let(self, statement: Let) -> str:
        name, operands = statement.name, [self.operand(x) for x in statement.operands]
        dtype, result = statement.operands[-1].dtype, statement.result.dtype
        aval = self.type_of(dtype)
        if name in _BY_KIND:
            opcode = _BY_KIND[name]["fiub".index(dtype.kind) % 3 if dtype.kind != "b" else 2]
            flags = " reassoc" if statement.reassociates else ""
            return self.value(f"{opcode}{flags} {aval} {', '.join(operands)}")
        if name == "neg" and dtype.kind == "f":
            return self.value(f"fneg {aval} {operands[0]}")
        if name == "neg":
            return self.value(f"sub {aval} zeroinitializer, {operands[0]}")
        if name == "select":
            condition, x, y = operands
            flag = self.type_of(np.dtype("?"))
            return self.value(f"select {flag} {condition}, {aval} {x}, {aval} {y}")
        if name.startswith("hide"):
            return self.hidden(operands[0], dtype, int(name[-1]))
        if name == "bits":
            return self.value(f"bitcast {aval} {operands[0]} to {self.type_of(result)}")
        if name == "convert":
            return self.conversion(operands[0], dtype, result)
        if name in ("max", "min"):
            return self.extremum(name, operands, dtype)
        return self.intrinsic(_INTRINSICS.get(name, name), operands, dtype)

    def hidden(self, x: str, dtype: np.dtype, number: int) -> str:
        """A number that LLVM does not recognise, if a subclass can hide it."""
        return x

    def extremum(self, name: str, operands: list[str], dtype: np.dtype) -> str:
        if dtype.kind == "f":  # with these flags it is one instruction
            return self.intrinsic(f"{name}num", operands, dtype, "nnan nsz ")
        return self.intrinsic(f"{'s' if dtype.kind == 'i' else 'u'}{name}", operands, dtype)

    def intrinsic(self, name: str, operands: list[str], dtype: np.dtype, flags: str = "") -> str:
        kind, vector = self.type_of(dtype), "" if self.lanes == 1 else f"v{self.lanes}"
        full = f"llvm.{name}.{vector}{'f' if dtype.kind == 'f' else 'i'}{8 * dtype.itemsize}"
        kinds = ", ".join([kind] * len(operands))
        self.declared[full] = f"declare {kind} @{full}({kinds})"
        arguments = ", ".join(f"{kind} {x}" for x in operands)
        return self.value(f"call {flags}{kind} @{full}({arguments})")

    def conversion(self, x: str, dtype: np.dtype, result: np.dtype) -> str:
        """``x`` as another dtype."""
        source, target = self.type_of(dtype), self.type_of(result)
        is_signed = dtype.kind == "i"
        if result.kind == "b":
            compare = "fcmp une" if dtype.kind == "f" else "icmp ne"
            return self.value(f"{compare} {source} {x}, zeroinitializer")
        if dtype.kind == "f" and result.kind == "f":
            if dtype.itemsize == result.itemsize:
                return x
            opcode = "fpext" if result.itemsize > dtype.itemsize else "fptrunc"
        elif dtype.kind == "f":
            opcode = "fptosi" if result.kind == "i" else "fptoui"
        elif result.kind == "f":
            opcode = "sitofp" if is_signed else "uitofp"
        elif result.itemsize == dtype.itemsize and dtype.kind != "b":
            return x
        elif dtype.kind == "b" or result.itemsize > dtype.itemsize:
            opcode = "sext" if is_signed else "zext"
        else:
            opcode = "trunc"
        return self.value(f"{opcode} {source} {x} to {target}")

"""Vectorised outer loops: consecutive steps of a loop, with the loops inside it, in one vector.

LLVM vectorises innermost loops only. A sum over many terms for each of many elements, such as a
convolution, is faster if the outer loop over the elements is vectorised, and the inner loop over
the terms adds vectors. Floats are vectors with a lane for each step; integers, which are indices,
are scalars with the value of the first step.
"""

import numpy as np
from attrs import define, evolve, field

from letir.kernels.llvm.llvm_functions import ModuleText
from letir.kernels.llvm.llvm_types import memory_type, number_text, type_text, vector_type
from letir.kernels.loop_language import Array, Let, Load, Loop, Number, Operand, Store


@define(eq=False)
class VectorLoops(ModuleText):
    """Writes loops with ``lanes``, see ``Loop``.

    ``vector_loop``: the loop being written, or None. ``start``: its first step. ``mask``: LLVM's
    text of a vector of flags, true in the lanes that hold a step; "" if all do. ``consecutive``:
    integers that increase by 1 from step to step.
    """

    vector_loop: Loop | None = None
    start: int = 0
    mask: str = ""
    consecutive: set[Operand] = field(factory=set)

    def loop(self, loop: Loop, bases: dict) -> None:
        if not loop.lanes or self.is_general:
            super().loop(loop, bases)
            return
        assert type(loop.extent) is Number, "the builder of such a loop knows its extent"
        extent = int(loop.extent.value)
        rest = extent % loop.lanes
        totals = [self.operand(first) for _, first, _, _ in loop.carried]
        if extent > rest:
            totals = self.steps(loop, (0, extent - rest), "", totals, bases)
        if rest:
            flags = [f"i1 {n < rest}".lower() for n in range(loop.lanes)]
            totals = self.steps(
                loop, (extent - rest, extent), f"<{', '.join(flags)}>", totals, bases
            )
        for (*_, result), total in zip(loop.carried, totals, strict=True):
            self.names[result] = total

    def steps(
        self, loop: Loop, limits: tuple[int, int], mask: str, totals: list[str], bases: dict
    ) -> list[str]:
        """Write the steps between these limits; returns ``totals`` plus the sums of these steps."""
        start, stop = limits
        zeros = tuple(
            [(x, Number(x.dtype.type(0)), then, result) for x, _, then, result in loop.carried]
        )
        self.vector_loop = evolve(loop, extent=Number(np.int64(stop)), carried=zeros, lanes=0)
        self.start, self.mask, self.lanes = start, mask, loop.lanes
        self.consecutive.add(loop.index)
        super().loop(self.vector_loop, bases)
        self.vector_loop, self.mask, self.lanes = None, "", 1
        return [
            self.sum_lanes(start_value, self.names[result], result.dtype, loop.lanes)
            for start_value, (*_, result) in zip(totals, loop.carried, strict=True)
        ]

    def steps_of(self, loop: Loop) -> tuple[str, str]:
        is_in_vectors = loop is self.vector_loop
        return (str(self.start), str(self.lanes)) if is_in_vectors else super().steps_of(loop)

    def sum_lanes(self, start: str, vector: str, dtype: np.dtype, lanes: int) -> str:
        """``start`` plus all lanes of a vector."""
        kind, vector_kind = type_text(dtype), vector_type(dtype, lanes)
        name = f"llvm.vector.reduce.fadd.v{lanes}f{8 * dtype.itemsize}"
        self.declared[name] = f"declare {kind} @{name}({kind}, {vector_kind})"
        return self.value(f"call reassoc {kind} @{name}({kind} {start}, {vector_kind} {vector})")

    # ---- statements in such a loop ----

    def operand(self, x: Operand) -> str:
        if self.vector_loop is None or x.dtype.kind == "f":
            return super().operand(x)
        return number_text(x) if type(x) is Number else self.names[x]

    def let(self, statement: Let) -> str:
        if self.vector_loop is None or statement.result.dtype.kind == "f":
            return super().let(statement)
        if any(x in self.consecutive for x in statement.operands):
            assert statement.name == "add", "an index in vectors is only added to"
            self.consecutive.add(statement.result)
        lanes, self.lanes = self.lanes, 1
        result = super().let(statement)
        self.lanes = lanes
        return result

    def load(self, statement: Load, bases: dict, group: str | None) -> str:
        if self.vector_loop is None:
            return super().load(statement, bases, group)
        place, dtype = self.part_address(statement, bases), statement.result.dtype
        element, vector, align = type_text(dtype), self.type_of(dtype), dtype.itemsize
        if not self.is_consecutive(statement.array, statement.indices):
            number = self.value(f"load {element}, ptr {place}, align {align}")
            first = self.value(f"insertelement {vector} poison, {element} {number}, i64 0")
            all_first = f"<{self.lanes} x i32> zeroinitializer"
            return self.value(f"shufflevector {vector} {first}, {vector} poison, {all_first}")
        if not self.mask:
            return self.value(f"load {vector}, ptr {place}, align {align}")
        return self.masked_load(place, dtype, self.mask, "zeroinitializer")

    def masked_load(self, place: str, dtype: np.dtype, mask: str, others: str) -> str:
        """The elements at ``place`` in the lanes of a mask, and those of ``others`` elsewhere."""
        element, align, flags = memory_type(dtype), dtype.itemsize, f"<{self.lanes} x i1>"
        vector, kind = f"<{self.lanes} x {element}>", "f" if dtype.kind == "f" else "i"
        name = f"llvm.masked.load.v{self.lanes}{kind}{8 * align}.p0"
        self.declared[name] = f"declare {vector} @{name}(ptr, i32, {flags}, {vector})"
        operands = f"ptr {place}, i32 {align}, {flags} {mask}, {vector} {others}"
        return self.value(f"call {vector} @{name}({operands})")

    def masked_store(self, value: str, place: str, dtype: np.dtype, mask: str) -> None:
        """Store the lanes of a mask."""
        element, align, flags = memory_type(dtype), dtype.itemsize, f"<{self.lanes} x i1>"
        vector, kind = f"<{self.lanes} x {element}>", "f" if dtype.kind == "f" else "i"
        name = f"llvm.masked.store.v{self.lanes}{kind}{8 * align}.p0"
        self.declared[name] = f"declare void @{name}({vector}, ptr, i32, {flags})"
        operands = f"{vector} {value}, ptr {place}, i32 {align}, {flags} {mask}"
        self.emit(f"call void @{name}({operands})")

    def store(self, statement: Store, bases: dict, group: str | None) -> None:
        if self.vector_loop is None:
            super().store(statement, bases, group)
            return
        assert self.is_consecutive(statement.array, statement.indices), (
            "steps store into neighbours"
        )
        value, dtype = self.operand(statement.value), statement.value.dtype
        place, vector, align = (
            self.part_address(statement, bases),
            self.type_of(dtype),
            dtype.itemsize,
        )
        if not self.mask:
            self.emit(f"store {vector} {value}, ptr {place}, align {align}")
            return
        self.masked_store(value, place, dtype, self.mask)

    def is_consecutive(self, array: Array, indices: tuple[Operand, ...]) -> bool:
        """Whether steps access consecutive elements; if not, all steps access the same element."""
        *others, last = indices
        assert not any(x in self.consecutive for x in others), "only the last index is in vectors"
        if last not in self.consecutive:
            return False
        stride = self.strides[array, len(others)]
        assert stride == str(array.dtype.itemsize), "the elements of a vector lie side by side"
        return True

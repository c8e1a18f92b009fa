"""The LLVM text of a kernel for CPUs: the inner loop of a NumPy ufunc.

The function has the signature of ``PyUFuncGenericFunction``, see
https://numpy.org/doc/stable/reference/c-api/generalized-ufuncs.html. It contains the kernel's loops
twice: in vectors for arrays whose last axis is contiguous, and for any strides. Long elementwise
loops are only for contiguous arrays, to which ``chunks`` copies others.
"""

import numpy as np
from attrs import define, field, frozen

from letir.kernels.llvm.chunks import Chunks, Strides
from letir.kernels.llvm.interleaving import COMMON, Vectors, interleave_count
from letir.kernels.llvm.llvm_statements import function_name
from letir.kernels.llvm.llvm_types import memory_type, type_text, vector_type
from letir.kernels.loop_language import (
    Array,
    Function,
    FunctionCall,
    Kernel,
    Loop,
    Number,
    Operand,
    Statement,
    While,
)
from letir.kernels.scalar_instructions import HIDDEN


@frozen
class HostText:
    """An LLVM module. ``needs_all_passes``: whether LLVM should optimise its loops and chains."""

    text: str
    needs_all_passes: bool


def llvm_text(kernel: Kernel, name: str, vectors: Vectors = COMMON) -> HostText:
    """The LLVM module with the function ``name``, the inner loop for the kernel.

    ``vectors``: the vectors of the processor.
    """
    module = _HostModule(kernel, name, vectors=vectors)
    text = module.text()
    return HostText(text, module.leaves_loops or not module.has_vectors)


@define(eq=False)
class _HostModule(Chunks):
    """The module of one kernel for the host."""

    zeros: list[str] = field(factory=list)  # registers that are 0, which LLVM does not know
    vectorised: dict[Function, None] = field(factory=dict)  # called in loops that LLVM vectorises

    def text(self) -> str:
        """The module."""
        kernel = self.kernel
        layouts, loop = self.layouts(), self.chunk_loop()
        head = f"define void @{self.name}(ptr %args, ptr %dimensions, ptr %steps, ptr %data)"
        self.lines += [f"{head} {'#0' if loop is None else '#4'} {{", "entry:"]
        for n, extent in enumerate(kernel.extents):
            self.names[extent] = self.entry_of("%dimensions", n, "i64")
        bases = {array: self.entry_of("%args", n, "ptr") for n, array in enumerate(kernel.arrays)}
        bases |= {buffer: self.buffer(buffer) for buffer in kernel.buffers}
        self.load_strides()
        self.load_zeros()
        if loop is None:
            self.any_loops(bases, layouts)
        else:
            self.elementwise(loop, bases, [layout for layout in layouts if layout is not None])
        if self.leaves_loops:
            called = _functions_in_loops(kernel.body)
            self.vectorised = {f: None for f in called if f.condition is not None}
        self.zeros = []
        self.functions()
        return "\n".join([*self.lines, *self.tail()]) + "\n"

    def any_loops(self, bases: dict, layouts: list[Strides | None]) -> None:
        """The entry function of a kernel with any loops, once for each of these layouts."""
        kernel = self.kernel
        for number, strides in enumerate(layouts):
            if strides is not None and not kernel.takes_contiguous:
                condition = self.condition_of(strides)
                self.emit(f"br i1 {condition}, label %layout{number}, label %not{number}")
                self.open(f"layout{number}")
            general, self.is_general = self.strides, strides is None
            self.strides = {**general, **(strides or {})}
            self.body(kernel.body, bases, None)
            self.strides = general
            self.emit("ret void")
            if strides is not None and not kernel.takes_contiguous:
                self.open(f"not{number}")
        self.lines.append("}")

    def functions(self) -> None:
        """The functions, for the lanes of a vector too if LLVM vectorises loops that call them."""
        lanes = self.vectors.lanes
        self.needed |= dict.fromkeys([(f, lanes) for f in self.vectorised])
        super().functions()
        forms = [function_name(f, n) for f in self.vectorised for n in (1, lanes)]
        names = [f"ptr @{name}" for name in forms]
        if names:  # LLVM must not drop them, or one of their parameters, before it vectorises loops
            pointers = f"[{len(names)} x ptr] [{', '.join(names)}]"
            head = "@llvm.compiler.used = appending global"
            self.lines.append(f'{head} {pointers}, section "llvm.metadata"')

    def calls(self, run: tuple[FunctionCall, ...], group: str | None) -> None:
        lanes = self.vectors.lanes_of(run[0].result.dtype)
        if group is not None or self.lanes > 1 or len(run) == 1:
            return super().calls(run, group)
        for n in range(0, len(run), lanes):
            self.call_together(run[n : n + lanes], lanes)

    def call_together(self, run: tuple[FunctionCall, ...], lanes: int) -> None:
        """A call of a function for several elements; the last one fills the lanes that are left."""
        function, vectors = run[0].function, []
        for n, param in enumerate(function.params):
            operands = [call.operands[n] for call in run]
            operands += [operands[-1]] * (lanes - len(run))
            vectors.append(self.vector_of(operands, param.dtype))
        vector = self.call_text(function, vectors, lanes)
        aval = vector_type(function.result.dtype, lanes)
        for n, call in enumerate(run):
            self.names[call.result] = self.value(f"extractelement {aval} {vector}, i64 {n}")

    def vector_of(self, operands: list[Operand], dtype: np.dtype) -> str:
        """A register with these scalars."""
        kind, result = vector_type(dtype, len(operands)), "poison"
        for n, x in enumerate(operands):
            value = f"{type_text(dtype)} {self.operand(x)}"
            result = self.value(f"insertelement {kind} {result}, {value}, i64 {n}")
        return result

    def function_notes(self, function: Function) -> str:
        if self.lanes > 1 or function not in self.vectorised:
            return ""
        lanes, params = self.vectors.lanes, "v" * len(function.params)
        name, vector_name = function.name, function_name(function, lanes)
        return f' "vector-function-abi-variant"="_ZGV_LLVM_N{lanes}{params}_{name}({vector_name})"'

    def entry_of(self, table: str, n: int, kind: str) -> str:
        place = self.value(f"getelementptr i64, ptr {table}, i64 {n}")
        return self.value(f"load {kind}, ptr {place}")

    def buffer(self, buffer: Array) -> str:
        """The address of a small array on the stack."""
        (length,), kind = buffer.extents, memory_type(buffer.dtype)
        self.strides[buffer, 0] = str(buffer.dtype.itemsize)
        return self.value(f"alloca [{length} x {kind}], align 64")

    # ---- hidden numbers ----

    def load_zeros(self) -> None:
        """Make zeros as the difference of a number of steps and the same number read again."""
        steps = [self.value("load volatile i64, ptr %dimensions") for _ in range(HIDDEN + 1)]
        self.zeros = [self.value(f"xor i64 {steps[0]}, {again}") for again in steps[1:]]

    def hidden(self, x: str, dtype: np.dtype, number: int) -> str:
        if not self.zeros:
            return x
        zero, kind = self.zeros[number], self.type_of(dtype)
        is_float, bits = dtype.kind == "f", np.dtype(f"u{dtype.itemsize}")
        integer = type_text(dtype if dtype.kind == "b" else bits)
        whole = kind if dtype.kind == "b" else self.type_of(bits)
        if self.lanes > 1:
            zero = self.splat_ahead(zero, "i64")
        if integer != "i64":
            zero = self.value(f"trunc {self.type_of(np.dtype('i8'))} {zero} to {whole}")
        x = self.value(f"bitcast {kind} {x} to {whole}") if is_float else x
        flipped = self.value(f"xor {whole} {x}, {zero}")
        return self.value(f"bitcast {whole} {flipped} to {kind}") if is_float else flipped

    # ---- strides ----

    def load_strides(self) -> None:
        """The strides in the order of NumPy: the first axis of all arrays, then the others."""
        arrays = self.kernel.arrays
        for n, array in enumerate(arrays):
            self.strides[array, 0] = self.entry_of("%steps", n, "i64")
        n = len(arrays)
        for array in arrays:
            for axis in range(1, len(array.extents)):
                self.strides[array, axis] = self.entry_of("%steps", n, "i64")
                n += 1

    def layouts(self) -> list[Strides | None]:
        """The stride patterns for which loops are written; the last is None, for any strides.

        NumPy may copy broadcast operands of elementwise functions to contiguous buffers.
        """
        kernel = self.kernel
        loops = [loop for loop in kernel.body if type(loop) is Loop]
        # known strides do not speed up loops that carry scalars from step to step
        if not loops or not (kernel.takes_contiguous or any(loop.is_parallel for loop in loops)):
            return [None]
        result: list[dict | None] = [self.contiguous_strides()]
        if kernel.takes_contiguous:
            return result
        full = {key: str(key[0].dtype.itemsize) for key in self.contiguous_strides()}
        return [*result, *([full] if kernel.is_elementwise and full != result[0] else []), None]

    def contiguous_strides(self) -> Strides:
        """The strides of last axes, as the vectorised loops expect them."""
        arrays = self.kernel.arrays
        if self.kernel.is_flat or all(len(a.extents) == 2 and not a.extents[0] for a in arrays):
            own = [(array, len(array.extents) - 1) for array in arrays if len(array.extents) > 1]
            return {(array, axis): str(array.dtype.itemsize) for array, axis in own}
        depth = max(len(array.extents) for array in self.kernel.arrays)
        innermost = self.kernel.extents[-1].name
        result = {}
        for array in self.kernel.arrays:
            last = len(array.extents) - 1
            if array.extents[last] == innermost:
                result[array, last] = str(array.dtype.itemsize)
            elif last == depth - 1 and not array.extents[last]:
                result[array, last] = "0"
            if self.kernel.columns and "m" in array.extents:  # rows lie side by side
                axis = array.extents.index("m")
                length = self.kernel.columns if last > axis else 1
                result[array, axis] = str(length * array.dtype.itemsize)
        return result

    def side_by_side(self, loop: Loop) -> int:
        is_short = type(loop.extent) is Number
        if self.is_general or loop.carried or is_short:
            return super().side_by_side(loop)
        return interleave_count(loop, self.vectors)

    def condition_of(self, strides: Strides) -> str:
        """Whether the arrays have these strides."""
        result = "true"
        for key, expected in strides.items():
            same = self.value(f"icmp eq i64 {self.strides[key]}, {expected}")
            result = self.value(f"and i1 {result}, {same}")
        return result


def _functions_in_loops(body: tuple[Statement, ...]) -> dict[Function, None]:
    """The functions that innermost parallel loops call, in a fixed order."""
    result: dict = {}
    for statement in body:
        if type(statement) is Loop and statement.is_parallel:
            result |= {x.function: None for x in statement.body if type(x) is FunctionCall}
        if isinstance(statement, Loop | While):
            result |= _functions_in_loops(statement.body)
    return result

"""The LLVM text of a kernel for CPUs: the inner loop of a NumPy ufunc.

The function has the signature of ``PyUFuncGenericFunction``, see
https://numpy.org/doc/stable/reference/c-api/generalized-ufuncs.html. It contains the kernel's loops
twice: for arrays whose last axis is contiguous, which LLVM vectorises, and for any strides.
"""

from attrs import define, field

from letir.kernels.llvm.interleaving import COMMON, Vectors, interleave_count
from letir.kernels.llvm.llvm_statements import StatementText, function_name
from letir.kernels.loop_language import Array, Call, Function, Kernel, Loop, While


def llvm_text(kernel: Kernel, name: str, vectors: Vectors = COMMON) -> str:
    """The LLVM module with the function ``name``, the inner loop for the kernel.

    ``vectors``: the vectors of the processor.
    """
    return _HostModule(kernel, name, vectors=vectors).text()


@define(eq=False)
class _HostModule(StatementText):
    """The module of one kernel for the host."""

    vectors: Vectors = COMMON
    vectorised: set[Function] = field(factory=set)  # functions that vectorised loops call

    def text(self) -> str:
        """The module."""
        kernel = self.kernel
        self.vectorised = {f for f in _functions_in_loops(kernel.body) if f.condition is not None}
        head = f"define void @{self.name}(ptr %args, ptr %dimensions, ptr %steps, ptr %data) #0 {{"
        self.lines += [head, "entry:"]
        for n, extent in enumerate(kernel.extents):
            self.names[extent] = self.entry_of("%dimensions", n, "i64")
        bases = [self.entry_of("%args", n, "ptr") for n in range(len(kernel.arrays))]
        self.load_strides()
        for number, strides in enumerate(self.layouts()):
            if strides is not None and not kernel.takes_contiguous:
                known = self.condition_of(strides)
                self.emit(f"br i1 {known}, label %layout{number}, label %not{number}")
                self.open(f"layout{number}")
            general, self.is_general = self.strides, strides is None
            self.strides = {**general, **(strides or {})}
            self.body(kernel.body, dict(zip(kernel.arrays, bases, strict=True)), None)
            self.strides = general
            self.emit("ret void")
            if strides is not None and not kernel.takes_contiguous:
                self.open(f"not{number}")
        self.lines.append("}")
        self.functions()
        return "\n".join([*self.lines, *self.tail()]) + "\n"

    def functions(self) -> None:
        """The functions of the kernel, also for several lanes if vectorised loops call them."""
        lanes, names = self.vectors.lanes, []
        for function in self.kernel.functions:
            self.function(function)
            if function in self.vectorised:
                self.function(function, lanes)
                names.append(f"ptr @{function_name(function, lanes)}")
        if names:  # LLVM must not drop them before it vectorises loops
            kept = f"[{len(names)} x ptr] [{', '.join(names)}]"
            head = "@llvm.compiler.used = appending global"
            self.lines.append(f'{head} {kept}, section "llvm.metadata"')

    def function_notes(self, function: Function) -> str:
        if self.lanes > 1 or function not in self.vectorised:
            return ""
        lanes, params = self.vectors.lanes, "v" * len(function.params)
        name, wide = function.name, function_name(function, lanes)
        return f' "vector-function-abi-variant"="_ZGV_LLVM_N{lanes}{params}_{name}({wide})"'

    def entry_of(self, table: str, n: int, kind: str) -> str:
        place = self.value(f"getelementptr i64, ptr {table}, i64 {n}")
        return self.value(f"load {kind}, ptr {place}")

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

    def layouts(self) -> list[dict[tuple[Array, int], str] | None]:
        """The stride patterns for which loops are written; the last is None, for any strides.

        NumPy may copy broadcast operands of elementwise functions to contiguous buffers.
        """
        kernel = self.kernel
        loops = [one for one in kernel.body if type(one) is Loop]
        # known strides do not speed up loops that carry scalars from step to step
        if not loops or not (kernel.takes_contiguous or any(one.is_parallel for one in loops)):
            return [None]
        found: list[dict | None] = [self.contiguous_strides()]
        if kernel.takes_contiguous:
            return found
        full = {key: str(key[0].dtype.itemsize) for key in self.contiguous_strides()}
        return [*found, *([full] if kernel.is_elementwise and full != found[0] else []), None]

    def contiguous_strides(self) -> dict[tuple[Array, int], str]:
        """The strides of last axes, as the vectorised loops expect them."""
        if all(len(array.extents) == 2 and not array.extents[0] for array in self.kernel.arrays):
            return {(array, 1): str(array.dtype.itemsize) for array in self.kernel.arrays}  # flat
        depth = max(len(array.extents) for array in self.kernel.arrays)
        innermost = self.kernel.extents[-1].name
        found = {}
        for array in self.kernel.arrays:
            last = len(array.extents) - 1
            if array.extents[last] == innermost:
                found[array, last] = str(array.dtype.itemsize)
            elif last == depth - 1 and not array.extents[last]:
                found[array, last] = "0"
            if self.kernel.columns and "m" in array.extents:  # rows lie side by side
                axis = array.extents.index("m")
                length = self.kernel.columns if last > axis else 1
                found[array, axis] = str(length * array.dtype.itemsize)
        return found

    def side_by_side(self, loop: Loop) -> int:
        if self.is_general or not self.kernel.is_elementwise:
            return super().side_by_side(loop)
        return interleave_count(loop, self.vectors)

    def condition_of(self, strides: dict[tuple[Array, int], str]) -> str:
        """Whether the arrays have these strides."""
        found = "true"
        for key, expected in strides.items():
            same = self.value(f"icmp eq i64 {self.strides[key]}, {expected}")
            found = self.value(f"and i1 {found}, {same}")
        return found


def _functions_in_loops(body: tuple) -> set[Function]:
    """The functions that innermost parallel loops call."""
    found = set()
    for one in body:
        if type(one) is Loop and one.is_parallel:
            found |= {x.function for x in one.body if type(x) is Call}
        if isinstance(one, Loop | While):
            found |= _functions_in_loops(one.body)
    return found

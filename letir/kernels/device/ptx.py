"""PTX, the assembly language of NVIDIA's GPUs, of kernels.

The statements are the same as on the host; only the entry differs: the outermost loop of a kernel
is spread over the threads of a launch, or over its warps (``lanes``), see
https://docs.nvidia.com/cuda/parallel-thread-execution. LLVM writes text only for this target, which
the driver compiles for the device at hand.
"""

from functools import partial
from typing import Any

import numpy as np
from attrs import define, evolve, field, frozen

from letir.ast.bounded_cache import BoundedCache
from letir.kernels.device.float_remainder import remainder_function
from letir.kernels.device.lanes import (
    LANES,
    has_waiting_lanes,
    neutral_element,
    shared_loops,
    spread_loop,
)
from letir.kernels.llvm.compile_threads import begin_compilation
from letir.kernels.llvm.llvm_functions import ModuleText
from letir.kernels.llvm.llvm_types import type_text
from letir.kernels.llvm.machine_code import emitted_code, llvmlite_version
from letir.kernels.llvm.object_cache import cached_code
from letir.kernels.loop_language import (
    Array,
    FunctionCall,
    Kernel,
    Let,
    Load,
    Loop,
    Operand,
    Scalar,
    Store,
)

ENTRY = "kernel"
_TRIPLE = "nvptx64-nvidia-cuda"
_OLDEST = "sm_70"  # devices of 2017 and later take this text
_ptx_texts = BoundedCache(1 << 10)  # (text of a kernel, form) -> PTX


@frozen(cache_hash=True)
class LaunchForm:
    """The properties of a launch on which the text of the entry depends, besides the kernel.

    ``rank``: the number of axes over which the index of the outermost loop runs, the last one
    fastest. ``numbers``: the names of arrays that are given as one number. ``shares``: whether the
    lanes of a warp share the steps of inner loops, see ``shared_loops``.
    """

    rank: int = 1
    numbers: frozenset[str] = frozenset()
    shares: bool = True


def ptx_text(kernel: Kernel, form: LaunchForm = LaunchForm()) -> str:
    """The PTX of a kernel, whose entry is ``ENTRY`` and takes the arguments
    ``entry_parameters``.
    """
    key = (str(kernel), form)
    result = _ptx_texts.get(key)
    if result is None:
        text = device_llvm_text(kernel, form)
        code = cached_code(
            (text, _TRIPLE, _OLDEST, llvmlite_version()), lambda: _compile_module(text)
        )
        result = _ptx_texts[key] = code.decode()
    return result


def device_llvm_text(kernel: Kernel, form: LaunchForm) -> str:
    """The LLVM module of a kernel for a device."""
    return _DeviceModule(kernel, ENTRY, form=form).text()


@frozen
class Parameter:
    """A parameter of an entry.

    ``role``: "array", "number", "extent" (of the loops inside, by name), "total" (the number of
    steps that are spread), "length" (of an axis of these, but the first), "stride" (in bytes, along
    an axis of these: ``axis`` < rank, or one of the array's further axes).
    """

    role: str
    kind: str  # LLVM's type
    array: Array | None = None
    axis: int = 0
    name: str = ""


def entry_parameters(kernel: Kernel, form: LaunchForm) -> list[Parameter]:
    """The parameters of the entry, in order."""
    arrays = [array for array in kernel.arrays if array.name not in form.numbers]
    result = []
    for array in kernel.arrays:
        if array in arrays:
            result.append(Parameter("array", "ptr", array))
        else:
            kind = "i8" if array.dtype.kind == "b" else type_text(array.dtype)
            result.append(Parameter("number", kind, array))
    result.append(Parameter("total", "i64"))
    result += [Parameter("length", "i32", axis=axis) for axis in range(1, form.rank)]
    result += [Parameter("extent", "i64", name=extent.name) for extent in kernel.extents[1:]]
    for array in arrays:
        axes = form.rank + len(array.extents) - 1
        result += [Parameter("stride", "i64", array, axis) for axis in range(axes)]
    return result


@define(eq=False)
class _DeviceModule(ModuleText):
    """The module of one kernel for a device.

    ``parts``: the registers of the current index along each axis. ``thread``: the number of the
    thread, or warp, and how many there are. ``shared``: see ``shared_loops``.
    """

    form: LaunchForm = field(kw_only=True)
    outer: Loop | None = field(init=False, default=None)
    total: str = ""
    lengths: list[str] = field(factory=list)
    axis_strides: dict[tuple[Array, int], str] = field(factory=dict)
    bases: dict[Array, str] = field(factory=dict)
    parts: list[str] = field(factory=list)
    thread: tuple[str, str] = ("", "")
    lane: str = ""
    shared: dict[Loop, tuple[str, ...]] = field(factory=dict)
    waits: bool = False  # whether lanes load elements that other lanes have stored

    def text(self) -> str:
        """The module."""
        kernel = self.kernel
        self.outer = spread_loop(kernel)
        if self.form.shares:
            self.shared, self.waits = shared_loops(kernel), has_waiting_lanes(kernel)
        notes = {"ptr": "ptr" if self.waits else "ptr noalias"}
        params = entry_parameters(kernel, self.form)
        parameters = [
            f"{notes.get(p.kind, p.kind)} {self.parameter_register(p, n)}"
            for n, p in enumerate(params)
        ]
        self.lines += [f"define ptx_kernel void @{self.name}({', '.join(parameters)}) #0 {{"]
        self.open("entry")
        if self.outer is not None:
            self.names[self.outer.extent] = self.total
            self.thread = self.thread_numbers()
        elif self.waits:
            self.lane = self.register("tid")
        self.body(self.kernel.body, self.bases, None)
        self.emit("ret void")
        self.lines.append("}")
        self.functions()
        return "\n".join([*self.lines, *self.tail()]) + "\n"

    def parameter_register(self, parameter: Parameter, n: int) -> str:
        """The register of the parameter at place ``n``, noted for its use."""
        result, rank = f"%a{n}", self.form.rank
        if parameter.role in ("array", "number"):
            self.bases[parameter.array] = result
        elif parameter.role == "total":
            self.total = result
            self.names[self.kernel.extents[0]] = result
        elif parameter.role == "length":
            self.lengths.append(result)
        elif parameter.role == "extent":
            (extent,) = [e for e in self.kernel.extents if e.name == parameter.name]
            self.names[extent] = result
        elif parameter.axis < rank:
            self.axis_strides[parameter.array, parameter.axis] = result
        else:
            self.strides[parameter.array, parameter.axis - rank + 1] = result
        return result

    # ---- threads ----

    def register(self, name: str) -> str:
        """A special register, as 64 bits."""
        full = f"llvm.nvvm.read.ptx.sreg.{name}.x"
        self.declared[full] = f"declare i32 @{full}()"
        number = self.value(f"call i32 @{full}()")
        return self.value(f"zext i32 {number} to i64")

    def thread_numbers(self) -> tuple[str, str]:
        width = self.register("ntid")
        before = self.value(f"mul i64 {self.register('ctaid')}, {width}")
        own = self.value(f"add i64 {before}, {self.register('tid')}")
        count = self.value(f"mul i64 {self.register('nctaid')}, {width}")
        if not self.shared:
            return own, count
        self.lane = self.value(f"urem i64 {own}, {LANES}")
        return self.value(f"udiv i64 {own}, {LANES}"), self.value(f"udiv i64 {count}, {LANES}")

    def steps_of(self, loop: Loop) -> tuple[str, str]:
        if loop is self.outer:
            return self.thread
        return (self.lane, str(LANES)) if loop in self.shared else super().steps_of(loop)

    def loop(self, loop: Loop, bases: dict) -> None:
        if loop not in self.shared:
            super().loop(loop, bases)
            return
        waits, self.waits = self.waits, False  # within the loop lanes do not wait for each other
        self.wait_for_lanes(waits)
        names = self.shared[loop]
        own_loop = self.with_own_carried(loop, names) if names else loop
        super().loop(own_loop, bases)
        self.wait_for_lanes(waits)
        self.waits = waits
        for name, (*_, result) in zip(names, loop.carried, strict=True):
            self.names[result] = self.combined_scalar(name, result)

    def with_own_carried(self, loop: Loop, names: tuple[str, ...]) -> Loop:
        """A loop that starts with the carried scalars in the first lane, neutral ones in others."""
        is_first = self.value(f"icmp eq i64 {self.lane}, 0")
        carried = []
        for name, (scalar, first, then, result) in zip(names, loop.carried, strict=True):
            own = Scalar(scalar.dtype, f"{scalar.name} in a lane")
            kind, start = type_text(scalar.dtype), self.operand(first)
            other = self.operand(neutral_element(name, scalar.dtype))
            self.names[own] = self.value(f"select i1 {is_first}, {kind} {start}, {kind} {other}")
            carried.append((scalar, own, then, result))
        renamed = evolve(loop, carried=tuple(carried))
        self.shared[renamed] = names
        return renamed

    def wait_for_lanes(self, is_needed: bool) -> None:
        """Let the lanes wait for each other, so that each sees the elements that others stored."""
        if is_needed:
            name = "llvm.nvvm.bar.warp.sync"
            self.declared[name] = f"declare void @{name}(i32)"
            self.emit(f"call void @{name}(i32 -1)")

    def store(self, statement: Store, bases: dict, group: str | None) -> None:
        self.wait_for_lanes(self.waits)
        super().store(statement, bases, group)
        self.wait_for_lanes(self.waits)

    def combined_scalar(self, name: str, own: Scalar) -> str:
        """The scalars of all lanes combined, to the same bits in each lane."""
        result = self.names[own]
        for distance in (16, 8, 4, 2, 1):
            x, y = Scalar(own.dtype, "x"), Scalar(own.dtype, "y")
            self.names[x], self.names[y] = result, self.exchange_scalar(result, own.dtype, distance)
            result = self.let(Let(own, name, (x, y)))
        return result

    def exchange_scalar(self, x: str, dtype: np.dtype, distance: int) -> str:
        """The scalar of the lane whose number differs in one bit, passed in words of 32 bits."""
        kind, bits = type_text(dtype), 1 if dtype.kind == "b" else 8 * dtype.itemsize
        if dtype.kind == "f":
            x = self.value(f"bitcast {kind} {x} to i{bits}")
        if bits < 64:
            word = x if bits == 32 else self.value(f"zext i{bits} {x} to i32")
            word = self.shuffle_word(word, distance)
            result = word if bits == 32 else self.value(f"trunc i32 {word} to i{bits}")
        else:
            low, high = self.value(f"trunc i64 {x} to i32"), self.value(f"lshr i64 {x}, 32")
            words = low, self.value(f"trunc i64 {high} to i32")
            low, high = [self.shuffle_word(word, distance) for word in words]
            low, high = [self.value(f"zext i32 {word} to i64") for word in (low, high)]
            result = self.value(f"or i64 {low}, {self.value(f'shl i64 {high}, 32')}")
        return self.value(f"bitcast i{bits} {result} to {kind}") if dtype.kind == "f" else result

    def shuffle_word(self, word: str, distance: int) -> str:
        full = "llvm.nvvm.shfl.sync.bfly.i32"
        self.declared[full] = f"declare i32 @{full}(i32, i32, i32, i32)"
        return self.value(f"call i32 @{full}(i32 -1, i32 {word}, i32 {distance}, i32 {LANES - 1})")

    def enter(self, loop: Loop) -> None:
        """The parts of the spread index, in 32 bits, whose division is several times as fast."""
        if loop is not self.outer:
            return
        index = self.names[loop.index]
        if not self.lengths:
            self.parts = [index]
            return
        rest, parts = self.value(f"trunc i64 {index} to i32"), []
        for length in reversed(self.lengths):
            parts.append(self.value(f"urem i32 {rest}, {length}"))
            rest = self.value(f"udiv i32 {rest}, {length}")
        self.parts = [self.value(f"zext i32 {x} to i64") for x in (rest, *reversed(parts))]

    def loop_notes(self, loop: Loop, group: str | None) -> str:
        return ""  # the metadata for CPUs is about vectorising

    # ---- arrays ----

    def offset(self, array: Array, axis: int, index: Operand) -> str:
        if axis:
            return super().offset(array, axis, index)
        if self.outer is None or index is not self.outer.index:
            return "0"  # a kernel that runs once
        result = "0"
        for n, part in enumerate(self.parts):
            along = self.value(f"mul i64 {part}, {self.axis_strides[array, n]}")
            result = self.value(f"add i64 {result}, {along}")
        return result

    def load(self, statement: Load, bases: dict, group: str | None) -> str:
        if statement.array.name not in self.form.numbers:
            return super().load(statement, bases, group)
        base = bases[statement.array]
        return self.value(f"icmp ne i8 {base}, 0") if statement.array.dtype.kind == "b" else base

    def let(self, statement: Let) -> str:
        if statement.name != "fmod":
            return super().let(statement)
        # LLVM's remainder for this target uses a rounded quotient
        return self.call(
            FunctionCall(
                statement.result, remainder_function(statement.result.dtype), statement.operands
            )
        )


# ---- LLVM ----


def _new_machine() -> Any:
    """A target machine that writes PTX."""
    import llvmlite.binding as binding

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding.Target.from_triple(_TRIPLE).create_target_machine(cpu=_OLDEST, opt=3)


def _compile_module(text: str) -> bytes:
    return begin_compilation(partial(_emit_ptx, text)).result()


def _emit_ptx(text: str) -> bytes:
    """The PTX of an LLVM module; no flag of it allows LLVM to skip the rounding of an operation."""
    options = {"loop_vectorization": False, "slp_vectorization": False}
    return emitted_code(text, _new_machine(), is_object=False, **options).rstrip(b"\0")

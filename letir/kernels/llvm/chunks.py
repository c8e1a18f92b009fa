"""Elementwise kernels for arrays of any strides: chunks of elements are copied to buffers.

LLVM vectorises loops over contiguous arrays only. These loops are a function of their own, which
the kernel calls for all elements at once if the arrays are contiguous. Otherwise it calls the
function for some elements at a time, and copies those of strided arrays, such as the columns of a
matrix, to buffers before and from buffers after the call. The kernel itself runs few instructions,
and is compiled without optimisation.
"""

from attrs import define

from letir.kernels.llvm.vector_loops import VectorLoops
from letir.kernels.loop_language import Array, Let, Loop

_BUFFERED = 1 << 14  # bytes of all buffers, half of the fastest cache
_MIN_CHUNK, _MAX_CHUNK = 32, 512  # elements
_MIN_WORK = 12  # statements of the loop: in shorter ones copying takes as long as computing
_SLOW = 12  # statements that take as long as a division

Strides = dict[tuple[Array, int], str]


@define(eq=False)
class Chunks(VectorLoops):
    """Writes the body of an elementwise kernel."""

    def uses_chunks(self) -> bool:
        """Whether the kernel is one parallel loop in which copies take little of the time."""
        kernel = self.kernel
        loop = kernel.body[-1]
        if not kernel.is_elementwise or kernel.takes_contiguous or type(loop) is not Loop:
            return False
        slow = [x for x in loop.body if type(x) is Let and x.name in ("div", "sqrt")]
        return loop.is_parallel and len(loop.body) + _SLOW * len(slow) >= _MIN_WORK

    def elementwise(self, bases: dict, layouts: list[Strides]) -> None:
        """The entry function, and a function for each layout, of which the last is contiguous."""
        (extent,), arrays = self.kernel.extents, self.kernel.arrays
        steps, strides = self.names[extent], self.strides
        most = _BUFFERED // sum([array.dtype.itemsize for array in arrays])
        size = max(_MIN_CHUNK, min(_MAX_CHUNK, most // _MIN_CHUNK * _MIN_CHUNK))
        buffers = [
            self.value(f"alloca [{size * array.dtype.itemsize} x i8], align 64") for array in arrays
        ]
        is_one = self.value(f"icmp slt i64 {steps}, 2")  # strides do not matter
        addresses = [bases[array] for array in arrays]
        for number, layout in enumerate(layouts):
            condition = self.value(f"or i1 {is_one}, {self.condition_of(layout)}")
            self.emit(f"br i1 {condition}, label %layout{number}, label %not{number}")
            self.open(f"layout{number}")
            self.call_loops(number, addresses, steps)
            self.emit("ret void")
            self.open(f"not{number}")
        self.chunks(len(layouts) - 1, size, addresses, buffers)
        self.lines.append("}")
        for number, layout in enumerate(layouts):
            self.loops(number, layout)
        self.strides = strides
        for size in {array.dtype.itemsize: None for array in arrays}:
            self.copying_functions(size)

    def call_loops(self, number: int, addresses: list[str], steps: str) -> None:
        """Call the loops over arrays at these addresses."""
        passed = ", ".join([f"ptr {address}" for address in addresses])
        self.emit(f"call void @loops{number}({passed}, i64 {steps}, ptr %dimensions)")

    def loops(self, number: int, layout: Strides) -> None:
        """The function that runs the kernel's loops on arrays with these strides."""
        arrays = self.kernel.arrays
        params = ", ".join([f"ptr %a{n}" for n in range(len(arrays))])
        head = f"define internal void @loops{number}({params}, i64 %steps, ptr %dimensions)"
        self.lines.append(f"{head} #3 {{")
        self.open("entry")
        self.names[self.kernel.extents[0]] = "%steps"
        self.load_zeros()
        self.strides = layout
        self.body(self.kernel.body, {array: f"%a{n}" for n, array in enumerate(arrays)}, None)
        self.emit("ret void")
        self.lines.append("}")

    def condition_of(self, strides: Strides) -> str:
        """Whether the arrays have these strides."""
        raise NotImplementedError

    def load_zeros(self) -> None:
        """Load the numbers that are zero, but not known to LLVM as such."""
        raise NotImplementedError

    # ---- chunks ----

    def chunks(self, number: int, size: int, addresses: list[str], buffers: list[str]) -> None:
        """A loop over chunks of ``size`` elements."""
        arrays, steps = self.kernel.arrays, self.names[self.kernel.extents[0]]
        before = self.block
        self.emit("br label %chunk")
        self.open("chunk")
        start, following = "%start", f"%next{number}"
        self.emit(f"{start} = phi i64 [0, %{before}], [{following}, %chunk]")
        left = self.value(f"sub i64 {steps}, {start}")
        is_last = self.value(f"icmp sle i64 {left}, {size}")
        count = self.value(f"select i1 {is_last}, i64 {left}, i64 {size}")
        places, stores = [], []
        for array, address, buffer in zip(arrays, addresses, buffers, strict=True):
            item, stride = array.dtype.itemsize, self.strides[array, 0]
            offset = self.value(f"mul i64 {start}, {stride}")
            place = self.value(f"getelementptr i8, ptr {address}, i64 {offset}")
            passed = f"(ptr {buffer}, ptr {place}, i64 {stride}, i64 {count})"
            if array.is_written:
                is_direct = self.value(f"icmp eq i64 {stride}, {item}")
                places.append(self.value(f"select i1 {is_direct}, ptr {place}, ptr {buffer}"))
                stores.append(f"call void @stored{item}{passed}")
            else:
                places.append(self.value(f"call ptr @contiguous{item}{passed}"))
        self.call_loops(number, places, count)
        for store in stores:
            self.emit(store)
        self.emit(f"{following} = add i64 {start}, {size}")
        self.emit(f"br i1 {is_last}, label %end, label %chunk")
        self.open("end")
        self.emit("ret void")

    def copying_functions(self, size: int) -> None:
        """The functions that copy elements of this size to a buffer, and from a buffer.

        They do nothing for contiguous arrays; the first one returns the address of its copy.
        """
        kind, align = f"i{8 * size}", min(size, 4)  # the parts of complex64 have four bytes
        own = f"!{len(self.metadata)}"
        self.note(f"distinct !{{{own}, !{len(self.metadata) + 1}}}")
        self.note('!{!"llvm.loop.disable_nonforced"}')  # LLVM would unroll the loops
        for name, result, to_buffer in (
            (f"contiguous{size}", ("ptr", "ptr %x", "ptr %buffer"), True),
            (f"stored{size}", ("void", "void", "void"), False),
        ):
            of_result, if_direct, if_copied = result
            ways = ("%there", "%here") if to_buffer else ("%here", "%there")
            self.lines += [
                f"define internal {of_result} @{name}"
                "(ptr %buffer, ptr %x, i64 %stride, i64 %n) #3 {",
                "entry:",
                f"  %direct = icmp eq i64 %stride, {size}",
                "  br i1 %direct, label %done, label %copy",
                "done:",
                f"  ret {if_direct}",
                "copy:",
                "  %i = phi i64 [0, %entry], [%next, %copy]",
                "  %offset = mul i64 %i, %stride",
                "  %there = getelementptr i8, ptr %x, i64 %offset",
                f"  %here = getelementptr {kind}, ptr %buffer, i64 %i",
                f"  %value = load {kind}, ptr {ways[0]}, align {align}",
                f"  store {kind} %value, ptr {ways[1]}, align {align}",
                "  %next = add nuw nsw i64 %i, 1",
                "  %more = icmp slt i64 %next, %n",
                f"  br i1 %more, label %copy, label %copied, !llvm.loop {own}",
                "copied:",
                f"  ret {if_copied}",
                "}",
            ]

"""Elementwise kernels for arrays of any strides: chunks of elements are copied to buffers.

Vectors contain neighbouring elements. Loops over contiguous arrays are a function of their own,
which the kernel calls for as many elements at once as fill its vectors, if the arrays are
contiguous. It calls the function for the other elements in chunks, which it copies to buffers
before, and from buffers after the call: a few last elements, or all elements of strided arrays,
such as the columns of a matrix. The kernel itself runs few instructions, and is compiled without
optimisation.
"""

from attrs import define

from letir.kernels.llvm.wide_loops import WideLoops
from letir.kernels.loop_language import Array, Let, Loop

_BUFFERED = 1 << 14  # bytes of all buffers, half of the fastest cache
_MIN_CHUNK, _MAX_CHUNK = 32, 512  # elements
_MIN_WORK = 12  # statements of the loop: in shorter ones copying takes as long as computing
_SLOW = 12  # statements that take as long as a division

Strides = dict[tuple[Array, int], str]


@define(eq=False)
class Chunks(WideLoops):
    """Writes the body of an elementwise kernel."""

    def chunk_loop(self) -> Loop | None:
        """The loop of a kernel that is nothing else, if copies take little of its time."""
        kernel = self.kernel
        loop = kernel.body[-1]
        if not kernel.is_elementwise or kernel.takes_contiguous or type(loop) is not Loop:
            return None
        if any(loop.index in getattr(x, "operands", ()) for x in loop.body):
            return None  # chunks have indices of their own
        slow = [x for x in loop.body if type(x) is Let and x.name in ("div", "sqrt")]
        is_long = len(loop.body) + _SLOW * len(slow) >= _MIN_WORK
        return loop if loop.is_parallel and is_long else None

    def elementwise(self, loop: Loop, bases: dict, layouts: list[Strides]) -> None:
        """The entry function, and a function for each layout, of which the last is contiguous."""
        (extent,), arrays = self.kernel.extents, self.kernel.arrays
        steps, strides = self.names[extent], self.strides
        width = self.width_of(loop, layouts)
        step = max(_MIN_CHUNK, width)
        most = _BUFFERED // sum([array.dtype.itemsize for array in arrays])
        size = max(step, min(_MAX_CHUNK, most // step * step))
        buffers = [
            self.value(f"alloca [{size * array.dtype.itemsize} x i8], align 64") for array in arrays
        ]
        addresses = [bases[array] for array in arrays]
        whole, starts = self.value(f"and i64 {steps}, {-width}") if width else steps, []
        for number, layout in enumerate(layouts):
            condition = self.condition_of(layout)
            self.emit(f"br i1 {condition}, label %layout{number}, label %not{number}")
            self.open(f"layout{number}")
            self.call_loops(number, addresses, whole)
            starts.append((whole, self.block))
            self.emit("br label %chunks")
            self.open(f"not{number}")
        starts.append(("0", self.block))
        self.emit("br label %chunks")
        self.chunks(len(layouts) - 1, size, width, starts, addresses, buffers)
        self.lines.append("}")
        for number, layout in enumerate(layouts):
            self.loops(number, layout, loop, width)
        self.strides = strides
        for item in {array.dtype.itemsize: None for array in arrays}:
            self.copying_functions(item, width)

    def width_of(self, loop: Loop, layouts: list[Strides]) -> int:
        """The elements in a step of a loop, whatever the layout; 0 if LLVM vectorises the loop."""
        strides, widths = self.strides, []
        for self.strides in layouts:
            plan = self.plan_of(loop)
            widths.append(0 if plan is None else self.step_of(loop, plan))
        self.strides = strides
        return max(widths) if all(widths) else 0

    def call_loops(self, number: int, addresses: list[str], steps: str) -> None:
        """Call the loops over arrays at these addresses."""
        passed = ", ".join([f"ptr {address}" for address in addresses])
        self.emit(f"call void @loops{number}({passed}, i64 {steps}, ptr %dimensions)")

    def loops(self, number: int, layout: Strides, loop: Loop, width: int) -> None:
        """The function that runs the kernel's loops on arrays with these strides."""
        arrays = self.kernel.arrays
        params = ", ".join([f"ptr %a{n}" for n in range(len(arrays))])
        head = f"define internal void @loops{number}({params}, i64 %steps, ptr %dimensions)"
        self.lines.append(f"{head} #3 {{")
        self.open("entry")
        self.names[self.kernel.extents[0]] = "%steps"
        self.load_zeros()
        self.strides = layout
        bases = {array: f"%a{n}" for n, array in enumerate(arrays)}
        if width:
            plan = self.plan_of(loop)
            assert plan is not None
            self.body(self.kernel.body[:-1], bases, None)
            self.steps_of_plan(loop, plan, "%steps", "%steps", bases)
        else:
            self.body(self.kernel.body, bases, None)
        self.emit("ret void")
        self.lines.append("}")

    def condition_of(self, strides: Strides) -> str:
        """Whether the arrays have these strides."""
        raise NotImplementedError

    def load_zeros(self) -> None:
        """Load the numbers that are zero, but not known to LLVM as such."""
        raise NotImplementedError

    # ---- chunks ----

    def chunks(
        self,
        number: int,
        size: int,
        width: int,
        starts: list[tuple[str, str]],
        addresses: list[str],
        buffers: list[str],
    ) -> None:
        """A loop over chunks of ``size`` elements; ``starts``: the first ones, by block."""
        steps = self.names[self.kernel.extents[0]]
        self.open("chunks")
        ways = ", ".join([f"[{start}, %{block}]" for start, block in starts])
        first = self.value(f"phi i64 {ways}")
        is_any = self.value(f"icmp slt i64 {first}, {steps}")
        self.emit(f"br i1 {is_any}, label %chunk, label %end")
        self.open("chunk")
        start, following = "%start", f"%next{number}"
        self.emit(f"{start} = phi i64 [{first}, %chunks], [{following}, %chunk]")
        left = self.value(f"sub i64 {steps}, {start}")
        is_last = self.value(f"icmp sle i64 {left}, {size}")
        count = filled = self.value(f"select i1 {is_last}, i64 {left}, i64 {size}")
        if width:
            filled = self.value(f"add i64 {count}, {width - 1}")
            filled = self.value(f"and i64 {filled}, {-width}")
        is_whole = self.value(f"icmp eq i64 {count}, {filled}")
        places, stores = self.chunk_places(start, count, is_whole, addresses, buffers)
        self.call_loops(number, places, filled)
        for store in stores:
            self.emit(store)
        self.emit(f"{following} = add i64 {start}, {size}")
        self.emit(f"br i1 {is_last}, label %end, label %chunk")
        self.open("end")
        self.emit("ret void")

    def chunk_places(
        self, start: str, count: str, is_whole: str, addresses: list[str], buffers: list[str]
    ) -> tuple[list[str], list[str]]:
        """(where the loops find a chunk of each array, the calls that store results from buffers).

        Writes the calls that copy operands to buffers.
        """
        places, stores = [], []
        for array, address, buffer in zip(self.kernel.arrays, addresses, buffers, strict=True):
            item, stride = array.dtype.itemsize, self.strides[array, 0]
            offset = self.value(f"mul i64 {start}, {stride}")
            place = self.value(f"getelementptr i8, ptr {address}, i64 {offset}")
            is_direct = self.value(f"icmp eq i64 {stride}, {item}")
            is_direct = self.value(f"and i1 {is_direct}, {is_whole}")
            places.append(self.value(f"select i1 {is_direct}, ptr {place}, ptr {buffer}"))
            passed = f"(i1 {is_direct}, ptr {buffer}, ptr {place}, i64 {stride}, i64 {count})"
            if array.is_written:
                stores.append(f"call void @stored{item}{passed}")
            else:
                self.emit(f"call void @loaded{item}{passed}")
        return places, stores

    def copying_functions(self, size: int, width: int) -> None:
        """The functions that copy elements of this size to a buffer, and from a buffer.

        They do nothing if the arrays are used directly. In the buffer, the last element is followed
        by copies of itself, so that the number of elements is a multiple of ``width``.
        """
        kind, align = f"i{8 * size}", min(size, 4)  # the parts of complex64 have four bytes
        own = f"!{len(self.metadata)}"
        self.note(f"distinct !{{{own}, !{len(self.metadata) + 1}}}")
        self.note('!{!"llvm.loop.disable_nonforced"}')  # LLVM would unroll the loops
        for name, ways, filling in (
            (f"loaded{size}", ("%there", "%here"), _filling(kind, width) if width else []),
            (f"stored{size}", ("%here", "%there"), []),
        ):
            self.lines += [
                f"define internal void @{name}"
                "(i1 %direct, ptr %buffer, ptr %x, i64 %stride, i64 %n) #3 {",
                "entry:",
                "  br i1 %direct, label %done, label %fill",
                "fill:",
                *filling,
                "  br label %copy",
                "copy:",
                "  %i = phi i64 [0, %fill], [%next, %copy]",
                "  %there = phi ptr [%x, %fill], [%beyond, %copy]",
                f"  %here = getelementptr {kind}, ptr %buffer, i64 %i",
                f"  %value = load {kind}, ptr {ways[0]}, align {align}",
                f"  store {kind} %value, ptr {ways[1]}, align {align}",
                "  %beyond = getelementptr i8, ptr %there, i64 %stride",
                "  %next = add nuw nsw i64 %i, 1",
                "  %more = icmp slt i64 %next, %n",
                f"  br i1 %more, label %copy, label %done, !llvm.loop {own}",
                "done:",
                "  ret void",
                "}",
            ]


def _filling(kind: str, width: int) -> list[str]:
    """The lines that store the last element of ``%x`` in the last ``width`` places of a buffer."""
    align = min(int(kind[1:]) // 8, 4)
    return [
        "  %last = sub i64 %n, 1",
        "  %distance = mul i64 %last, %stride",
        "  %end = getelementptr i8, ptr %x, i64 %distance",
        f"  %same = load {kind}, ptr %end, align {align}",
        f"  %one = insertelement <1 x {kind}> poison, {kind} %same, i64 0",
        f"  %all = shufflevector <1 x {kind}> %one, <1 x {kind}> poison,"
        f" <{width} x i32> zeroinitializer",
        f"  %before = and i64 %last, {-width}",
        f"  %place = getelementptr {kind}, ptr %buffer, i64 %before",
        f"  store <{width} x {kind}> %all, ptr %place, align {align}",
    ]

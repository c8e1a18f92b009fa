"""Kernels as machine code: loops over strided arrays, and the life of the code."""

import gc
import math
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Array, Kernel
from letir.kernels.scalar_instructions import INSTRUCTIONS

pytest.importorskip("llvmlite")
from llvmlite.binding import context, executionengine

from letir.kernels.llvm.machine_code import MachineCode, ufunc_of

F8 = np.dtype("f8")


def scaled_and_shifted(shift: float = 1.0) -> Kernel:
    """``y = x * z + shift``, with one ``z`` for a row."""
    x, z = Array("x", F8, ("n",)), Array("z", F8, ("",))
    y = Array("y", F8, ("n",), True)
    b = Builder()
    n = b.extent("n")
    with b.loop(n) as i:
        product = b.mul(b.load(x, (i,)), b.load(z, (i,)))
        b.store(y, (i,), b.add(product, b.number(shift, F8)))
    return Kernel("scaled_and_shifted", (x, z, y), (n,), b.statements())


def kernel_of_instruction(name: str, dtypes: tuple, given=None) -> Kernel:
    """An elementwise kernel of one instruction."""
    b = Builder()
    n = b.extent("n")
    inputs = [Array(f"x{k}", np.dtype(d), ("n",)) for k, d in enumerate(dtypes)]
    with b.loop(n) as i:
        result = b.let(name, *[b.load(x, (i,)) for x in inputs], dtype=given)
        out = Array("y", result.dtype, ("n",), True)
        b.store(out, (i,), result)
    return Kernel(name, (*inputs, out), (n,), b.statements())


GIVEN = np.random.default_rng(0).normal(size=(6, 7))


@pytest.mark.parametrize(
    "x",
    [GIVEN, GIVEN.T, GIVEN[::-1], GIVEN[:, ::2], GIVEN[:0], GIVEN[2, 3], np.asfortranarray(GIVEN)],
)
def test_arrays_of_any_strides_are_computed(x):
    z = np.float64(3.0) if not x.ndim else np.arange(float(len(x)))[:, None]

    assert np.array_equal(x * z + 1, ufunc_of(scaled_and_shifted())(x, z))


def test_unaligned_and_overlapping_arrays_are_computed():
    unaligned = np.frombuffer(b"x" + GIVEN.tobytes(), "u1")[1:].view("f8")
    memory = np.arange(10.0)

    assert np.array_equal(unaligned * 2 + 1, ufunc_of(scaled_and_shifted())(unaligned, 2.0))
    ufunc_of(scaled_and_shifted())(memory[:-1], 1.0, out=memory[1:])
    assert np.array_equal([0, *range(1, 10)], memory)


OPERANDS = {
    "f": [0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 5e-324, 1e300, -3.7, 0.5, 2.0],
    "i": [0, 1, -1, 5, -7, 127, -128, 3, 2, 64, 9, -3],
    "u": [0, 1, 255, 5, 7, 127, 128, 3, 2, 64, 9, 31],
    "b": [True, False] * 6,
}


@pytest.mark.parametrize("name", sorted(INSTRUCTIONS))
def test_an_instruction_computes_as_on_numpy_arrays(name):
    known = INSTRUCTIONS[name]
    for dtype in [np.dtype(c) for c in "?bhilBHILfd" if np.dtype(c).kind in known.kinds]:
        with np.errstate(over="ignore"):
            x = np.array(OPERANDS[dtype.kind]).astype(dtype)
        y = np.roll(x, 1)
        if name == "quotient":
            y = np.abs(y) + (y == 0)
            y, x = np.where(y <= 0, 1, y).astype(dtype), np.where(x < -100, 1, x).astype(dtype)
        if name in ("max", "min"):  # of nan they are any number
            x, y = np.nan_to_num(x), np.nan_to_num(y)
        if name in ("shl", "shr", "lshr"):
            y = np.abs(y % 8).astype(dtype)
        operands = (x, y, np.roll(x, 2))[: known.arity]
        if name == "select":
            operands = (x > y, x, y)
        given = {"convert": F8, "bits": np.dtype(f"u{dtype.itemsize}")}.get(name)
        kernel = kernel_of_instruction(name, tuple([o.dtype for o in operands]), given)
        with np.errstate(all="ignore"):
            expected = known.compute(*operands, *([given] if given else []))
            found = ufunc_of(kernel)(*operands)
            if name == "fma":  # the interpreter's own is rounded twice at rare ties
                expected = np.where(np.isclose(found, expected, rtol=1e-15), found, expected)
        assert found.dtype == np.asarray(expected).dtype
        assert np.array_equal(expected, found, equal_nan=dtype.kind == "f"), dtype


def test_equal_kernels_share_their_code():
    assert ufunc_of(scaled_and_shifted()) is ufunc_of(scaled_and_shifted())
    assert ufunc_of(scaled_and_shifted()) is not ufunc_of(scaled_and_shifted(2.0))


def test_code_lives_as_long_as_its_ufunc():
    code = MachineCode(scaled_and_shifted(7.0))
    ufunc = code.ufunc()
    del code
    gc.collect()
    assert ufunc(1.0, 2.0) == 9.0
    for _ in range(20):  # code that is dropped, and made again in the same place
        assert MachineCode(scaled_and_shifted(7.0)).ufunc()(1.0, 2.0) == 9.0


def test_loops_over_contiguous_arrays_are_vectorised():
    assembly = MachineCode(scaled_and_shifted()).assembly()

    assert "mm1" in assembly and "pd" in assembly  # packed doubles on x86


def row_totals():
    x, y = Array("x", F8, ("", "n")), Array("y", F8, ("",), True)
    b = Builder()
    rows, n = b.extent("rows"), b.extent("n")
    with b.loop(rows) as r:
        loop = b.loop(n, b.number(0.0, F8))
        with loop:
            value = b.load(x, (r, loop.index))
            loop.next(b.let("add", loop.carried[0], value, reassociates=True))
        b.store(y, (r,), loop.results[0])
    return Kernel("total", (x, y), (rows, n), b.statements())


def test_carried_scalars_add_up():
    kernel = row_totals()

    assert np.allclose(GIVEN.sum(1), ufunc_of(kernel, "(n)->()")(GIVEN))
    assert np.array_equal([0.0] * 6, ufunc_of(kernel, "(n)->()")(GIVEN[:, :0]))


def test_a_sum_has_eight_partial_sums_on_any_processor():
    x = np.full(256, 0.1)
    x[0] = 1e9

    found = ufunc_of(row_totals(), "(n)->()")(x)
    packed = re.findall(r"addpd|fadd\s+v", MachineCode(row_totals(), "(n)->()").assembly())

    assert abs(found - math.fsum(x)) < 8e-7  # 32 additions, each with an error of 2.4e-8
    # a vector of 512 bits holds eight sums, one of 128 bits two: four vectors are in the loop
    assert len(packed) >= 7  # and three additions of their sums follow it


reads_memory = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def resident_bytes() -> int:
    """The memory of this process, after the garbage collector."""
    gc.collect()
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


@reads_memory
def test_compiled_and_dropped_kernels_leave_no_memory(monkeypatch):
    monkeypatch.setenv("LETIR_CACHE_DIR", "")

    def compile_kernels(shifts: range) -> int:
        for shift in shifts:
            assert 6.0 + shift == MachineCode(scaled_and_shifted(shift)).ufunc()(2.0, 3.0)
        return resident_bytes()

    before = compile_kernels(range(8))

    assert compile_kernels(range(8, 40)) - before < 1 << 20  # LLVM's passes kept 3 MiB


@reads_memory
def test_code_from_the_cache_takes_no_memory_beyond_its_life(monkeypatch, tmp_path):
    monkeypatch.setenv("LETIR_CACHE_DIR", str(tmp_path))

    def load(times: int) -> int:
        for _ in range(times):
            assert 7.0 == MachineCode(scaled_and_shifted(1.0)).ufunc()(2.0, 3.0)
        return resident_bytes()

    before = load(20)

    assert load(100) - before < 5 << 20  # in LLVM's common context, 20 MiB stayed


def test_an_engine_is_freed_before_its_context(monkeypatch):
    """The engine frees its module, which lives in the context."""
    freed = []

    def noting(kind, name):
        dispose = kind._dispose

        def noted(self):
            freed.append(name)
            dispose(self)
            freed.append(f"{name} done")

        monkeypatch.setattr(kind, "_dispose", noted)

    noting(executionengine.ExecutionEngine, "engine")
    noting(context.ContextRef, "context")
    MachineCode(scaled_and_shifted(17.0)).ufunc()
    gc.collect()

    # before them, perhaps some of earlier tests
    assert freed[-4:] == ["engine", "engine done", "context", "context done"]


def test_code_reaches_its_constants_by_whole_addresses():
    """The loader aborts the process if they are more than 2 GiB away and distances have 32 bits."""
    text = MachineCode(scaled_and_shifted(0.1)).assembly()
    assert "(%rip)" not in text
    assert "adrp" not in text

"""Elementwise loops with steps of several vectors, and the elements that do not fill a step."""

import numpy as np
import pytest
from attrs import evolve

pytest.importorskip("llvmlite")
from letir.kernels.interpreter import run_kernel
from letir.kernels.llvm import machine_code
from letir.kernels.llvm.interleaving import Vectors
from letir.kernels.llvm.llvm_text import llvm_text
from letir.kernels.llvm.machine_code import host_vectors, ufunc_of
from letir.kernels.loop_builder import Builder
from letir.kernels.loop_language import Array, Kernel, Operand
from letir.kernels.scalar_instructions import HIDDEN
from tests.kernels.elementary.functions import kernel_of

F8, INDEX = np.dtype("f8"), np.dtype("int64")
LENGTHS = [1, 2, 7, 31, 32, 33, 100, 511, 513, 1000]


def polynomial(b: Builder, x: Operand, *others: Operand) -> Operand:
    """A value that depends on all operands, by enough instructions for vectors to pay."""
    y = x
    for n in range(8):
        y = b.add(b.mul(y, x), others[n % len(others)] if others else b.number(n, x.dtype))
    return y


def index(b: Builder, i: Operand, x: Operand) -> Operand:
    return polynomial(b, x, b.convert(i, x.dtype))


def number(b: Builder, i: Operand, x: Operand, one: Operand) -> Operand:
    return polynomial(b, x, b.mul(one, b.number(3, one.dtype)), one)


def selection(b: Builder, i: Operand, x: Operand, y: Operand) -> Operand:
    return polynomial(b, b.select(b.let("lt", x, y), x, y), y)


def hidden(b: Builder, i: Operand, x: Operand) -> Operand:
    constants = [b.hidden(b.number(n, x.dtype)) for n in range(HIDDEN)]
    return polynomial(b, x, *constants)


def flag(b: Builder, i: Operand, x: Operand, y: Operand) -> Operand:
    return b.let("xor", b.let("lt", polynomial(b, x, y), y), b.let("eq", x, y))


def mixed(b: Builder, i: Operand, x: Operand, y: Operand) -> Operand:
    return b.add(polynomial(b, b.convert(x, F8)), b.convert(polynomial(b, y), F8))


def choice(b: Builder, i: Operand, x: Operand, y: Operand) -> Operand:
    return b.select(x, polynomial(b, y), b.let("neg", y))


KERNELS = {  # the function, the dtypes of its operands, "1" after that of a number, the result's
    "floats": (lambda b, i, x: polynomial(b, x), ["f8"], "f8"),
    "single precision": (lambda b, i, x: polynomial(b, x), ["f4"], "f4"),
    "bytes": (lambda b, i, x: polynomial(b, x), ["u1"], "u1"),
    "number": (number, ["f8", "f81"], "f8"),
    "integers": (number, ["i4", "i41"], "i4"),
    "selection": (selection, ["f8", "f8"], "f8"),
    "hidden floats": (hidden, ["f4"], "f4"),
    "hidden integers": (hidden, ["i8"], "i8"),
    "flags": (flag, ["f8", "f8"], "?"),
    "dtypes": (mixed, ["i2", "f4"], "f8"),
    "choice": (choice, ["?", "f8"], "f8"),
}


def kernel(name: str) -> Kernel:
    compute, dtypes, result = KERNELS[name]
    b = Builder()
    arrays = [
        Array(f"x{n}", np.dtype(dtype[:2]), ("" if dtype[2:] else "n",))
        for n, dtype in enumerate(dtypes)
    ]
    y, n = Array("y", np.dtype(result), ("n",), True), b.extent("n")
    with b.loop(n) as i:
        b.store(y, (i,), compute(b, i, *[b.load(x, (i,)) for x in arrays]))
    return Kernel(name, (*arrays, y), (n,), b.statements())


def operands(made: Kernel, n: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    arrays = made.arrays[:-1]
    return [rng.integers(0, 5, n if x.extents[0] else 1).astype(x.dtype) for x in arrays]


@pytest.fixture(params=[True, False])
def vectors_for_masks(request, monkeypatch):
    """With and without masks for small elements."""
    vectors = evolve(host_vectors(), has_masks=request.param)
    monkeypatch.setattr(machine_code, "host_vectors", lambda: vectors)
    monkeypatch.setattr(machine_code, "_ufuncs", {})


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.usefixtures("vectors_for_masks")
def test_steps_of_vectors_compute_what_the_interpreter_computes(name):
    made = kernel(name)
    vectors = evolve(host_vectors(), has_masks=True)
    assert not llvm_text(made, "f", vectors).needs_all_passes
    ufunc = ufunc_of(made)

    for n in LENGTHS:
        given, expected = operands(made, n), np.zeros(n, made.arrays[-1].dtype)
        run_kernel(made, *given, expected, n=n)
        place = np.zeros(n + 2, expected.dtype)
        ufunc(*given, out=place[1:-1])
        assert np.array_equal(expected, place[1:-1]), n
        assert not place[0], "an element before the first one was written"
        assert not place[-1], "an element after the last one was written"


def test_indices_are_those_of_the_whole_array():
    x, y = [Array(k, F8, ("n",), is_written=k == "y") for k in "xy"]
    b = Builder()
    n = b.extent("n")
    with b.loop(n) as i:
        b.store(y, (i,), index(b, i, b.load(x, (i,))))
    made = Kernel("f", (x, y), (n,), b.statements())
    given, expected = np.linspace(0.0, 1.0, 3000)[::2], np.zeros(1500)

    run_kernel(made, given, expected, n=1500)

    assert np.array_equal(expected, ufunc_of(made)(given))


REDUCTIONS = {
    "f8": ["add", "max", "min"],
    "f4": ["add", "max", "min"],
    "i4": ["add", "max", "min", "mul", "and", "or", "xor"],
    "u8": ["add", "max", "min", "mul", "and", "or", "xor"],
    "?": ["and", "or", "xor"],
}


def reduction(name: str, dtype: str, length: int | None) -> Kernel:
    """y[k] = the reduction of x[k, i] over i, and z[k, i] = x[k, i] twice reduced with itself."""
    kind, axis = np.dtype(dtype), str(length or "n")
    x, z = [Array(a, kind, ("m", axis), is_written=a == "z") for a in "xz"]
    y, b = Array("y", kind, ("m",), is_written=True), Builder()
    m, n = b.extent("m"), b.extent("n")
    with b.loop(m, is_parallel=False) as k:
        first = b.load(x, (k, b.number(0, INDEX)))
        extent = n if length is None else b.number(length, INDEX)
        with b.loop(extent, first) as loop:
            given = b.load(x, (k, loop.index))
            b.store(z, (k, loop.index), b.let(name, given, first))
            loop.next(b.let(name, loop.carried[0], given, reassociates=kind.kind == "f"))
        b.store(y, (k,), loop.results[0])
    extents = (m,) if length else (m, n)
    body = b.statements()
    return Kernel("reduction", (x, y, z), extents, body, takes_contiguous=True, is_flat=True)


@pytest.mark.parametrize(
    ("name", "dtype"), [(n, d) for d, names in REDUCTIONS.items() for n in names]
)
@pytest.mark.parametrize("length", [None, 1, 3, 8, 37, 64])
def test_reductions_of_vectors_are_those_of_elements(name, dtype, length):
    made, rng = reduction(name, dtype, length), np.random.default_rng(0)
    vectors = evolve(host_vectors(), has_masks=True)
    assert not llvm_text(made, "f", vectors).needs_all_passes
    axis = length or "n"
    run = ufunc_of(made, f"({axis})->(),({axis})")

    for n in [length] if length else LENGTHS:
        x = rng.integers(0, 4, (5, n)).astype(dtype)
        y, z = np.zeros(5, dtype), np.zeros_like(x)
        run_kernel(made, x, y, z, m=5, n=n)
        found = run(x)
        assert np.array_equal(y, found[0]), n
        assert np.array_equal(z, found[1]), n


@pytest.mark.parametrize("length", [None, 13, 40])
@pytest.mark.parametrize("has_total", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
def test_sums_over_columns_are_those_of_elements(dtype, has_total, length):
    kind, axis = np.dtype(dtype), str(length or "n")
    x = Array("x", kind, ("o", "m", axis))
    y = Array("y", kind, ("o", axis), is_written=True)
    total = Array("t", kind, ("o",), is_written=True)
    b = Builder()
    o, m, n = [b.extent(name) for name in "omn"]
    extent, zero = n if length is None else b.number(length, INDEX), b.number(0, kind)
    with b.loop(o, is_parallel=False) as k:
        with b.loop(extent) as j:
            b.store(y, (k, j), zero)
        with b.loop(m, zero, is_parallel=False) as rows:
            with b.loop(extent, *[rows.carried[0]] * has_total) as loop:
                j = loop.index if has_total else loop
                value = b.load(x, (k, rows.index, j))
                b.store(y, (k, j), b.add(b.load(y, (k, j)), value))
                if has_total:
                    is_float = kind.kind == "f"
                    loop.next(b.let("add", loop.carried[0], value, reassociates=is_float))
            rows.next(loop.results[0] if has_total else rows.carried[0])
        b.store(total, (k,), rows.results[0])
    extents, body = (o, m, n)[: 2 if length else 3], b.statements()
    made = Kernel("columns", (x, y, total), extents, body, takes_contiguous=True, is_flat=True)
    run = ufunc_of(made, f"(m,{axis})->({axis}),()")

    for n in [length] if length else LENGTHS:
        given = np.random.default_rng(n).integers(0, 9, (2, 5, n)).astype(dtype)
        columns, totals = np.zeros((2, n), dtype), np.zeros(2, dtype)
        run_kernel(made, given, columns, totals, o=2, m=5, n=n)
        found = run(given)
        assert np.array_equal(columns, found[0]), n
        assert np.array_equal(totals, found[1]), n
        assert np.array_equal(given.sum(axis=1, dtype=dtype), found[0]), n


def test_elements_that_fill_a_step_raise_no_errors():
    ufunc = ufunc_of(kernel_of("log", F8))

    with np.errstate(all="raise"):
        for n in LENGTHS:
            ufunc(np.linspace(1.0, 2.0, n))


@pytest.mark.parametrize("n", LENGTHS)
def test_the_last_element_raises_its_error(n):
    ufunc, x = ufunc_of(kernel_of("log", F8)), np.ones(n)
    x[-1] = -1.0

    with np.errstate(invalid="raise"), pytest.raises(FloatingPointError):
        ufunc(x)


def test_loops_without_vector_instructions_are_left_to_llvm():
    def divided(b: Builder, x: Operand) -> Operand:
        return b.let("quotient", polynomial(b, x), b.number(7, x.dtype))

    for dtype, compute in (("f8", polynomial), ("i8", divided)):
        x, y = [Array(k, np.dtype(dtype), ("n",), is_written=k == "y") for k in "xy"]
        b = Builder()
        n = b.extent("n")
        with b.loop(n) as i:
            b.store(y, (i,), compute(b, b.load(x, (i,))))
        made = Kernel("f", (x, y), (n,), b.statements())
        needs_all_passes = llvm_text(made, "f", Vectors()).needs_all_passes
        assert needs_all_passes == (compute is divided)

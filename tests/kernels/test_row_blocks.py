"""Kernels that compute the values of eight rows together: the loops, and the bits of each row."""

from collections.abc import Iterator

import numpy as np
import pytest

import letir as lt
from letir.executor.compiled import kernels_setting
from letir.kernels.few_columns import row_kernel
from letir.kernels.interpreter import run_kernel
from letir.kernels.loop_language import Kernel, Let, Loop, Number
from letir.kernels.row_blocks import BLOCK_ROWS
from letir.kernels.row_interface import RowKernel
from letir.kernels.row_passes import Space

COMPILED = pytest.mark.skipif(kernels_setting() == "off", reason="LETIR_KERNELS=off")
ROWS = [32, 35, 41]  # in blocks of eight, and with a last block of three and of one


def log_sum_exp(x, y, w):
    top = x.max(axis=1, keepdims=True)
    return np.log(np.exp(x - top).sum(axis=1)) + top[:, 0] - y


def logistic(x, y, w):
    """The loss of a linear model, a total over all rows, and its gradient, a sum along columns."""
    z = (x * w).sum(axis=1)
    p = 1 / (1 + np.exp(-z))
    loss = (np.log1p(np.exp(-np.abs(z))) + np.maximum(z, 0) - z * y).mean()
    return loss, (x * (p - y)[:, None]).sum(axis=0)


def normalised(x, y, w):
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    return centred * np.exp(-0.5 * np.log(variance + 1e-5)) * w


def twice(x, y, w):
    """Functions of rows in two sections, with passes over the rows between them, and masks."""
    s = np.exp(-(x * x).sum(axis=1))
    u = x * s[:, None]
    v = np.log((u * u).sum(axis=1) + 1)
    return (u * v[:, None]).sum(axis=1), s > v, np.sin(v * s).max()


def of_operands(x, y, w):
    """Functions of operands alone, before the first pass."""
    a = np.exp(y)
    return (x * a[:, None]).sum(axis=1) + np.cos(y), a


FUNCTIONS = [log_sum_exp, logistic, normalised, twice, of_operands]


def operands(rows: int, columns: int, dtype: str = "f8") -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(rows)
    shapes = (rows, columns), rows, columns
    return tuple([0.3 * rng.normal(size=shape).astype(dtype) for shape in shapes])


def kernel_of(f, *args, in_blocks: bool = True) -> RowKernel:
    found = row_kernel(lt.trace(f, *args), Space(args[0].shape, 0, 1))
    assert found is not None
    return found if in_blocks else found.for_device


def results_of(found: RowKernel, args: tuple) -> tuple:
    """The results of a kernel's machine code."""
    from letir.kernels.llvm.machine_code import ufunc_of

    inputs = [args[n].reshape(shape) for n, _, shape in found.operands]
    inputs += [np.empty(found.space.columns, dtype) for dtype in found.scratch]
    results = ufunc_of(found.kernel, found.signature)(*inputs)
    return results if type(results) is tuple else (results,)


def loops_of(body: tuple) -> Iterator[Loop]:
    """All loops, each before those that it contains."""
    for statement in body:
        if type(statement) is Loop:
            yield statement
            yield from loops_of(statement.body)


def is_over_block(loop: Loop) -> bool:
    return type(loop.extent) is Number and loop.extent.value == BLOCK_ROWS


def polynomials(kernel: Kernel) -> tuple[int, int]:
    """How many steps of polynomials loops over a block compute, and all other loops."""
    counts = [0, 0]
    for loop in loops_of(kernel.body):
        steps = [one for one in loop.body if type(one) is Let and one.name == "fma"]
        counts[not is_over_block(loop)] += len(steps)
    return counts[0], counts[1]


@pytest.mark.parametrize("f", [logistic, normalised, twice, of_operands])
def test_functions_of_rows_are_computed_for_eight_rows_in_one_loop(f):
    args = operands(40, 30)
    in_blocks = kernel_of(f, *args).kernel
    by_rows = kernel_of(f, *args, in_blocks=False).kernel

    together, elsewhere = polynomials(in_blocks)
    assert (together > 0, elsewhere) == (True, 0)
    assert polynomials(by_rows) == (0, together)
    for loop in filter(is_over_block, loops_of(in_blocks.body)):
        assert loop.is_parallel and not loop.carried  # so that LLVM vectorises it
        assert not any(type(statement) is Loop for statement in loop.body)


def test_functions_of_rows_that_no_pass_needs_are_in_the_same_loop():
    args = operands(40, 30)
    found = [*filter(is_over_block, loops_of(kernel_of(logistic, *args).kernel.body))]

    assert 1 == len(found)  # the sigmoid for the gradient, and the logarithm for the loss


def test_buffers_are_printed():
    text = str(kernel_of(log_sum_exp, *operands(40, 30)).kernel)

    assert f"  buffer r0: float64[{BLOCK_ROWS}]\n" in text
    assert f"< {BLOCK_ROWS} {{\n" in text


@pytest.mark.parametrize("shape", [(40, 1100), (31, 30), (40, 8)])
def test_long_rows_few_rows_and_few_columns_are_not_taken_in_blocks(shape):
    assert () == kernel_of(log_sum_exp, *operands(*shape)).kernel.buffers


def test_longer_rows_are_taken_in_blocks_if_no_later_section_reads_them_again():
    args = operands(40, 300)

    assert kernel_of(log_sum_exp, *args).kernel.buffers
    assert () == kernel_of(logistic, *args).kernel.buffers


def test_rows_with_cheap_values_are_not_taken_in_blocks():
    found = kernel_of(lambda x: x / x.sum(axis=1, keepdims=True), operands(40, 30)[0])

    assert () == found.kernel.buffers
    assert found.for_device is found


def test_a_buffer_of_a_whole_row_is_not_read_in_a_later_section():
    def f(x):
        e = np.exp(x)
        return (e * np.log(e.sum(axis=1, keepdims=True))).sum(axis=1)

    found = kernel_of(f, operands(40, 30)[0])

    assert (1, ()) == (len(found.scratch), found.kernel.buffers)


@COMPILED
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_blocks_change_no_bits(f, rows, dtype):
    pytest.importorskip("llvmlite")
    for columns in (9, 31, 131):
        args = operands(rows, columns, dtype)
        found = results_of(kernel_of(f, *args), args)
        expected = results_of(kernel_of(f, *args, in_blocks=False), args)
        exact = f(*args)
        for x, y, z in zip(
            expected, found, exact if type(exact) is tuple else (exact,), strict=True
        ):
            assert np.asarray(x).tobytes() == np.asarray(y).tobytes()
            np.testing.assert_allclose(y, z, rtol=1e-4 if dtype == "f4" else 1e-12, atol=1e-6)


@COMPILED
@pytest.mark.parametrize("is_stacked", [False, True])
def test_blocks_of_the_matrices_of_a_stack_change_no_bits(is_stacked):
    pytest.importorskip("llvmlite")
    x, row = operands(35, 20)[0].reshape(5, 7, 20).repeat(6, axis=1), np.arange(20.0)

    def f(x, row):
        s = np.exp(-(x * row).sum(axis=2))
        return (x * s[:, :, None]).sum(axis=2), np.log1p(s)

    found = row_kernel(lt.trace(f, x, row), Space(x.shape, 1, 2, is_stacked))
    assert found is not None and found.kernel.buffers
    results = results_of(found, (x, row))
    for y, z in zip(results, results_of(found.for_device, (x, row)), strict=True):
        assert np.array_equal(y, z)
    for y, z in zip(f(x, row), results, strict=True):
        np.testing.assert_allclose(y, z.reshape(y.shape), rtol=1e-12)


@COMPILED
@pytest.mark.parametrize("start", [0, 3, 8, 13])
def test_a_row_gives_the_same_bits_at_each_place_of_a_block(start):
    pytest.importorskip("llvmlite")
    x, y, w = operands(72, 30)
    whole = results_of(kernel_of(log_sum_exp, x, y, w), (x, y, w))[0]
    cut = (x[start : start + 41], y[start : start + 41], w)

    assert np.array_equal(
        whole[start : start + 41], results_of(kernel_of(log_sum_exp, *cut), cut)[0]
    )


@COMPILED
def test_the_rows_that_fill_the_last_block_raise_no_flags():
    pytest.importorskip("llvmlite")
    x, y, w = operands(35, 30)
    found = kernel_of(lambda x, y, w: np.log(1 / (x * x).sum(axis=1)) / np.exp(y), x, y, w)
    assert found.kernel.buffers

    with np.errstate(all="raise"):
        results_of(found, (x, y, w))


@pytest.mark.parametrize("f", FUNCTIONS)
def test_the_interpreter_runs_blocks_within_all_bounds(f):
    args = operands(35, 9)
    found = kernel_of(f, *args)
    inputs = [args[n].reshape(shape)[None] for n, _, shape in found.operands]
    written = [array for array in found.kernel.arrays if array.is_written]
    results = [
        np.zeros((1, *found.shape_of(kind)), array.dtype)
        for kind, array in zip(found.results, written, strict=True)
    ]
    run_kernel(found.kernel, *inputs, *results, o=1, m=35, n=9)

    exact = f(*args)
    for expected, y in zip(exact if type(exact) is tuple else (exact,), results, strict=True):
        np.testing.assert_allclose(expected, y[0], rtol=1e-12, atol=1e-12)

"""Every operation on Dask arrays: NumPy's values, or an error that names the chunks to change."""

import contextlib
import warnings

import dask
import dask.array as da
import numpy as np
import pytest

import letir as lt
from letir.ast.primitive import PRIMITIVES
from letir.ast.types import Undef
from letir.dask.row_rules import _RULES
from letir.errors import LetirError
from letir.testing import SAMPLES, applied_program, assert_close, assert_same
from tests.each_sample import described, each_sample, samples_of

_MAX_SAMPLES = 6  # of each operation, in the slow tests


def is_first(op, sample) -> bool:
    """Whether this is the first sample of an operation without draws and effects."""
    return not (op.random or op.effect) and sample is SAMPLES[op.name][0]


def is_another(op, sample) -> bool:
    """Whether this is one of the next samples of such an operation."""
    return not (op.random or op.effect) and sample in SAMPLES[op.name][1:_MAX_SAMPLES]


def in_blocks(value, parts: int):
    """An array with about so many blocks along each axis."""
    if not isinstance(value, np.ndarray):
        return value
    return da.from_array(value, chunks=tuple(max(1, -(-n // parts)) for n in value.shape))


def in_rows(value, axis: int):
    """An array in blocks along one axis: the first of one row, the second empty."""
    if not isinstance(value, np.ndarray) or not -value.ndim <= axis < value.ndim:
        return value
    chunks: list = list(value.shape)
    n = chunks[axis]
    chunks[axis] = (1, 0, n // 2, n - 1 - n // 2) if n > 1 else n
    return da.from_array(value, chunks=tuple(chunks))


def ways_to_split(args) -> list:
    """The arguments with one operand, or all of them, in rows along one axis."""
    ranks = [arg.ndim if isinstance(arg, np.ndarray) else 0 for arg in args]
    found = [
        [in_rows(arg, axis) if i == k else arg for i, arg in enumerate(args)]
        for k, rank in enumerate(ranks)
        for axis in range(rank)
    ]
    most = max(ranks, default=0)
    if sum(rank > 0 for rank in ranks) > 1:
        found += [[in_rows(arg, axis) for arg in args] for axis in range(-most, most)]
    return found


def check_on_blocks(op, sample, parts: int) -> None:
    """Compare the results on blocks with those of NumPy. Skips if letir refuses to compute them."""
    program, args = applied_program(op, sample)
    check(program, args, [in_blocks(arg, parts) for arg in args], parts > 1)


def check(program, args, blocks, is_split: bool) -> None:
    """Compare the results on blocks with those on arrays, or skip."""
    expected = program(*args)
    try:
        found = program(*blocks)
    except LetirError as error:
        assert "rechunk" in str(error) or "depend on values" in str(error)
        assert is_split or "depend on values" in str(error), "one block is always computed"
        pytest.skip(str(error))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a block may be empty of numbers
        found = dask.compute(found, scheduler="sync")[0]
    pairs = zip(as_list(found), as_list(expected), strict=True)
    for a, b in pairs:
        if b is Undef:
            assert a is Undef
            continue
        assert np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype
        # sums in another order round differently
        is_half = np.asarray(b).dtype == np.float16
        np.testing.assert_allclose(
            a, b, rtol=2e-2 if is_half else 2e-5, atol=1e-3 if is_half else 1e-6
        )


def as_list(results) -> list:
    """One or several results as a list."""
    return list(results) if isinstance(results, tuple | list) else [results]


@each_sample(is_first, in_one_test=True)
def test_one_block_gives_numpys_values(op, sample):
    check_on_blocks(op, sample, 1)


@each_sample(is_first, in_one_test=True)
def test_several_blocks_give_numpys_values_or_an_error(op, sample):
    check_on_blocks(op, sample, 2)


def check_rows(op, sample) -> None:
    """Compare the results on blocks along one axis, for each operand and axis."""
    program, args = applied_program(op, sample)
    for blocks in ways_to_split(args):
        with contextlib.suppress(pytest.skip.Exception):
            check(program, args, blocks, True)


def test_rules_for_rows_are_of_operations_that_exist():
    assert [] == [name for name in _RULES if name not in PRIMITIVES]


@each_sample(lambda op, sample: op.name in _RULES and is_first(op, sample), in_one_test=True)
def test_blocks_of_rows_give_numpys_values_or_an_error(op, sample):
    check_rows(op, sample)


@pytest.mark.slow
def test_further_samples_in_blocks_of_rows():
    for name in SAMPLES:
        for index, sample in samples_of(name, lambda op, s: is_first(op, s) or is_another(op, s)):
            try:
                check_rows(PRIMITIVES[name], sample)
            except Exception as error:
                error.add_note(described(name, index, sample))
                raise


@pytest.mark.slow
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_further_samples_give_numpys_values_or_an_error(parts):
    for name in SAMPLES:
        for index, sample in samples_of(name, is_another):
            with contextlib.suppress(pytest.skip.Exception):
                try:
                    check_on_blocks(PRIMITIVES[name], sample, parts)
                except Exception as error:
                    error.add_note(described(name, index, sample))
                    raise


def test_tolerances_of_a_comparison_may_be_in_blocks():
    """Dask's own isclose would call itself in each block without an end."""
    x, tolerance = np.arange(6.0), np.linspace(0.0, 0.5, 6)
    program = lt.trace(lambda x, y, tolerance: np.isclose(x, y, tolerance, 1e-8), x, x, tolerance)
    args = x, x + 0.25, tolerance

    found = program(*[da.from_array(arg, chunks=2) for arg in args])

    assert_same(np.isclose(*args), found.compute())


@pytest.mark.parametrize("upper", [False, True])
def test_a_cholesky_factor_in_blocks_is_the_one_of_numpy(upper):
    """Dask's own is the upper one by default."""
    matrix = np.array([[4.0, 1.0, 0.5], [1.0, 5.0, -1.0], [0.5, -1.0, 6.0]])
    program = lt.trace(lambda x: np.linalg.cholesky(x, upper=upper), matrix)

    found = program(da.from_array(matrix, chunks=1))

    assert_close(np.linalg.cholesky(matrix, upper=upper), found.compute())

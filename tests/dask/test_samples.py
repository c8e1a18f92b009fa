"""Every operation on Dask arrays: NumPy's values, or an error that names the chunks to change."""

import contextlib
import warnings

import dask
import dask.array as da
import numpy as np
import pytest

from letir.ast.primitive import PRIMITIVES
from letir.errors import LetirError
from letir.testing import SAMPLES, applied
from tests.each_sample import described, each_sample, samples_of

_MOST_SAMPLES = 6  # of each operation, in the slow tests


def is_first(op, sample) -> bool:
    """Whether this is the first sample of an operation without draws and effects."""
    return not (op.random or op.effect) and sample is SAMPLES[op.name][0]


def is_another(op, sample) -> bool:
    """Whether this is one of the next samples of such an operation."""
    return not (op.random or op.effect) and sample in SAMPLES[op.name][1:_MOST_SAMPLES]


def in_blocks(value, parts: int):
    """An array with about so many blocks along each axis."""
    if not isinstance(value, np.ndarray):
        return value
    return da.from_array(value, chunks=tuple(max(1, -(-n // parts)) for n in value.shape))


def check_on_blocks(op, sample, parts: int) -> None:
    """Compare the results on blocks with those of NumPy. Skips if letir refuses to compute them."""
    program, args = applied(op, sample)
    expected = program(*args)
    try:
        found = program(*[in_blocks(arg, parts) for arg in args])
    except LetirError as error:
        assert "rechunk" in str(error) or "depend on values" in str(error)
        assert parts > 1 or "depend on values" in str(error), "one block is always computed"
        pytest.skip(str(error))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a block may be empty of numbers
        found = dask.compute(found, scheduler="sync")[0]
    pairs = zip(as_list(found), as_list(expected), strict=True)
    for a, b in pairs:
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

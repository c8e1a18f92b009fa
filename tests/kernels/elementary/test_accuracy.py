"""Elementary functions are within 2 units in the last place of the true values."""

import numpy as np
import pytest

from tests.each_sample import in_one_test
from tests.kernels.elementary.functions import (
    DTYPES,
    LARGEST_ERRORS,
    RANGES,
    compiled,
    drawn,
    errors_in_ulps,
    interpreted,
    true_values,
)

pytest.importorskip("llvmlite")
HAS_WIDE_TYPE = np.finfo(np.longdouble).nmant >= 63
CASES = [
    pytest.param(name, ranges, dtype, id=f"{name}-{k}-{dtype}")
    for name, all_ranges in RANGES.items()
    for k, ranges in enumerate(all_ranges)
    for dtype in DTYPES
    if dtype != np.float64 or HAS_WIDE_TYPE
]


def worst_error(name: str, ranges: tuple, dtype: np.dtype, count: int, seed: int = 0) -> float:
    """The largest error on random numbers."""
    rng = np.random.default_rng(seed)
    operands = [drawn(one, dtype, count, rng) for one in ranges]
    wide = np.longdouble if dtype == np.float64 else np.float64
    with np.errstate(all="ignore"):
        true = true_values(name, *[x.astype(wide) for x in operands])
        found = compiled(name, dtype)(*operands)
    return errors_in_ulps(found, true).max()


@pytest.mark.parametrize(("name", "ranges", "dtype"), CASES)
def test_machine_code_is_accurate(name, ranges, dtype):
    worst = LARGEST_ERRORS.get(name, 1.5)

    assert worst_error(name, ranges, dtype, 30_000) < worst


@pytest.mark.slow
@pytest.mark.parametrize(("name", "ranges", "dtype"), CASES)
def test_machine_code_is_accurate_on_many_points(name, ranges, dtype):
    worst = LARGEST_ERRORS.get(name, 1.5)

    for seed in range(1, 11):
        assert worst_error(name, ranges, dtype, 10**6, seed) < worst


@in_one_test
@pytest.mark.parametrize(("name", "ranges", "dtype"), CASES)
def test_the_interpreter_computes_as_machine_code(name, ranges, dtype):
    operands = [drawn(one, dtype, 1000, np.random.default_rng(1)) for one in ranges]
    with np.errstate(all="ignore"):
        expected = compiled(name, dtype)(*operands)

    # its fused multiply-add is rounded twice at rare ties
    assert errors_in_ulps(interpreted(name, *operands), expected).max() <= 1

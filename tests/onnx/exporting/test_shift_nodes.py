"""Shifts of bits give NumPy's numbers for every count."""

import numpy as np
import pytest

import letir as lt
from tests.onnx.running import assert_agrees


@pytest.mark.parametrize("shift", [np.left_shift, np.right_shift])
@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_counts_of_all_sizes(shift, dtype):
    kind = np.iinfo(dtype)
    numbers = np.array([kind.min, kind.max, 5, 100, kind.max // 3], dtype)
    counts = np.array([0, 1, 7, 8, kind.bits - 1, kind.bits, 100, kind.min], dtype)
    program = lt.trace(shift, numbers[:, None], counts)

    assert_agrees(lt.onnx.export(program), program, (numbers[:, None], counts))

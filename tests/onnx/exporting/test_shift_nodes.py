"""Shifts of bits and choices by a condition, for all dtypes."""

import numpy as np
import onnxruntime
import pytest

import letir as lt
from tests.each_sample import in_one_test
from tests.onnx.running import assert_agrees


@in_one_test
@pytest.mark.parametrize("shift", [np.left_shift, np.right_shift])
@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_counts_of_all_sizes(shift, dtype):
    kind = np.iinfo(dtype)
    numbers = np.array([kind.min, kind.max, 5, 100, kind.max // 3], dtype)
    counts = np.array([0, 1, 7, 8, kind.bits - 1, kind.bits, 100, kind.min], dtype)
    program = lt.trace(shift, numbers[:, None], counts)

    assert_agrees(lt.onnx.export(program), program, (numbers[:, None], counts))


@pytest.mark.parametrize("dtype", ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4"])
def test_choices_run_in_onnxruntime_for_all_dtypes(dtype):
    kind = np.dtype(dtype)
    x = np.array([1, 0, 1], kind) if kind.kind in "bf" else np.array([0, 3, 7], kind)
    x[0] = np.iinfo(kind).max if kind.kind in "iu" else x[0]
    args = np.array([True, False, True]), x, x[::-1].copy()
    program = lt.trace(np.where, *args)

    session = onnxruntime.InferenceSession(
        lt.onnx.export(program).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [given.name for given in session.get_inputs()]
    (found,) = session.run(None, dict(zip(names, args, strict=True)))
    assert (found.dtype, found.tolist()) == (kind, np.where(*args).tolist())

"""NumPy's classes of numbers under names of the user's module, which does not ask for ``type``."""

import pickle

import numpy as np
from numpy import float32, float64

import letir as lt
from letir.testing import assert_same

X = np.array([1.0, 2.0, 3.0])


def test_classes_of_numbers_that_a_module_imports_by_name():
    def f(x):
        total, table = float64(0.0), np.zeros(2, dtype=float64)
        for v in x:
            total += float64(v) * float32(2)
        table[0] = float32(x[0])
        return total, table, isinstance(total, float64), np.array([1]).astype(float32)

    assert_same(f(2 * X), lt.trace(f, X)(2 * X))
    assert float64 is np.float64
    assert pickle.loads(pickle.dumps(float64)) is np.float64

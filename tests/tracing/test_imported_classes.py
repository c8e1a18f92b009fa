"""NumPy's classes of numbers under names of the user's module, which does not ask for ``type``."""

import pickle

import numpy as np
from numpy import float16, float32, float64, uint8

import letir as lt
from letir.testing import assert_same

X = np.array([1.0, 2.0, 3.0])
SMALL = np.int8


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


def test_all_classes_of_numbers_have_stand_ins_under_other_names():
    def f(v):
        return SMALL(v), uint8(v), float16(v), SMALL(3), np.zeros(2, SMALL), isinstance(v, float16)

    assert_same(f(5.5), lt.trace(f, 3.7)(5.5))
    assert_same(f(float16(5.5)), lt.trace(f, float16(3.7))(float16(5.5)))
    assert SMALL is np.int8


def test_classes_of_numbers_that_a_function_captures_or_has_as_defaults():
    def converter(kind):
        def convert(v, other=np.int16, *, third=np.complex64):
            return kind(v), other(v), third(v), np.full(2, v, kind)

        return convert

    for kind in (np.int8, np.float32, np.float64):
        convert = converter(kind)

        assert_same(convert(5.5), lt.trace(convert, 3.7)(5.5))
        assert convert.__closure__[0].cell_contents is kind
        assert convert.__defaults__ == (np.int16,) and convert.__defaults__[0] is np.int16

"""Which values have derivatives, and the types of their cotangents."""

import pytest

from letir.ast.derivative_types import (
    carries_derivative,
    is_known_inexact,
    strong_type,
    type_carries_derivative,
)
from letir.ast.terms import Local
from letir.ast.types import WEAK, ArrayType


@pytest.mark.parametrize("dtype", [float, "float32", complex])
def test_floating_and_complex_values_have_cotangents(dtype):
    x = Local(ArrayType(dtype, (3,)))

    assert carries_derivative(x) and type_carries_derivative(x.type) and is_known_inexact(x)


@pytest.mark.parametrize("dtype", [bool, int, "uint8"])
def test_integers_and_booleans_have_no_cotangents(dtype):
    x = Local(ArrayType(dtype, (3,)))

    assert not (carries_derivative(x) or type_carries_derivative(x.type) or is_known_inexact(x))


def test_a_value_of_unknown_type_may_have_a_cotangent():
    assert carries_derivative(Local()) and type_carries_derivative(None)
    assert not is_known_inexact(Local())


def test_the_strong_type_of_a_python_number_is_the_type_of_a_0d_array():
    assert strong_type(WEAK[float]) is ArrayType(float)
    assert strong_type(ArrayType(int, (2,))) is ArrayType(int, (2,)) and strong_type(None) is None

"""Ufuncs of a device's module, for what CuPy's ufuncs lack."""

from types import SimpleNamespace

import numpy as np
import pytest

from letir.eval.device_ufuncs import DeviceUfunc
from letir.testing import assert_same

Z = np.array([0, 1, 2, 1j, 0, 1 + 1j])
W = np.array([0, 0, 1, 2j, 1, 0])


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor", "logical_not"])
def test_logical_functions_take_complex_numbers_by_whether_they_are_zero(name):
    """CuPy has no loops for them; NumPy, which has, is the module here."""
    operands = [Z, W][: getattr(np, name).nin]

    found = DeviceUfunc(SimpleNamespace(module=np), name)(*operands)

    assert_same(getattr(np, name)(*operands), found)

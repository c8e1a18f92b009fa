"""The source of a program that writes in place has the same effects."""

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same


def made(program, *args):
    """The function ``f`` that the source defines."""
    names: dict = {}
    exec(compile(lt.to_source(lt.trace(program, *args)), "made", "exec"), names)
    return names["f"]


def program(x, z):
    x.reshape(-1)[1] += 2.0
    y = z * 2
    y.real = x[0]
    y.imag[0] = 1.0
    return x[1:], y


def test_sources_write_into_arguments_and_parts():
    x, z = np.arange(6.0).reshape(2, 3), np.ones(3) * (1 + 2j)
    f = made(program, x, z)
    expected, found = x.copy(), x.copy()

    assert_same(program(expected, z), f(found, z))
    assert_same(expected, found)


def test_another_memory_order_is_an_error():
    x, z = np.arange(6.0).reshape(2, 3), np.ones(3) * (1 + 2j)

    with pytest.raises(ValueError, match="recorded for memory order C"):
        made(program, x, z)(np.asfortranarray(x), z)

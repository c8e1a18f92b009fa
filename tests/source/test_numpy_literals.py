"""Constants in sources are exact: type, dtype, shape and bits."""

import numpy as np
import pytest

import letir as lt
from letir.ast.builder import LetBuilder
from letir.testing import assert_same
from tests.each_sample import in_one_test


def loaded(source: str):
    """The function of a source."""
    namespace: dict = {}
    exec(compile(source, "<source>", "exec"), namespace)
    return namespace["f"]


SPECIAL = [
    np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1.7976931348623157e308]),
    np.array([np.nan, -0.0, 0.1, 65504.0], np.float16),
    np.array([0.1, 1e-45, 3.4028235e38, np.inf], np.float32),
    np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64),
    np.array([complex(-0.0, 1), complex(1, -0.0), complex(np.nan, np.inf), 1 - 2j, 2j, -2j]),
    np.array([[1 + 2j]], np.complex64),
    np.array([True, False]),
    np.array([2**63, 2**64 - 1], np.uint64),
    np.array([-(2**63), 2**63 - 1]),
    np.arange(6, dtype=np.int8).reshape(1, 2, 3),
    np.zeros((0, 3), np.float32),
    np.zeros((3, 0)),
    np.array(0.5),
    np.array(7, np.uint8),
    np.full((3, 4), -0.0),
    np.arange(200.0).reshape(4, 50) / 7,
    np.float32(0.1),
    np.float64(np.nan),
    np.complex64(-0.0),
    np.bool_(True),
    np.int8(-3),
]


@in_one_test
@pytest.mark.parametrize("value", SPECIAL, ids=lambda v: f"{v.dtype}{list(np.shape(v))}")
def test_constants_survive_to_the_last_bit(value):
    builder = LetBuilder()
    program = builder.build([builder.constant(value)])

    found = loaded(lt.to_source(program))()

    assert (type(found), found.dtype, found.shape) == (type(value), value.dtype, value.shape)
    assert found.tobytes() == value.tobytes()


@pytest.mark.parametrize("value", [0.0, -0.0, 1e300, np.nan, np.inf, -np.inf, 3, True, -2])
def test_numbers_among_the_results_survive_to_the_last_bit(value):
    program = lt.trace(lambda x: (value, complex(value, -0.0), x), 1.0)

    assert_same(program(1.0), loaded(lt.to_source(program))(1.0))


def test_the_caller_may_change_a_large_constant():
    program = lt.trace(lambda x: np.arange(100.0), 1.0)
    f = loaded(lt.to_source(program))

    f(1.0)[:] = 0.0

    assert_same(np.arange(100.0), f(1.0))

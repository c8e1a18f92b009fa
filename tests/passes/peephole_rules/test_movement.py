"""Peephole rules that merge and drop movements of elements."""

import numpy as np
import pytest

import letir as lt
from letir.ast.text.parser import parse
from letir.passes import peephole
from letir.passes.peephole_rules.movement import is_direct
from letir.testing import assert_same

OF_SCALAR = "lambda %0: float64[] {{ %1: float64[3] = broadcast_to(%0, shape=(3,)); {} }}"
OF_ROW = "lambda %0: float64[3] {{ %1: float64[2, 3] = broadcast_to(%0, shape=(2, 3)); {} }}"


@pytest.mark.parametrize(
    ("operand", "rest", "is_merged"),
    [
        (OF_SCALAR, "%2: float64[2, 3] = broadcast_to(%1, shape=(2, 3)); return %2", False),
        (OF_ROW, "%2: float64[4, 2, 3] = broadcast_to(%1, shape=(4, 2, 3)); return %2", True),
        (
            OF_SCALAR,
            "%2: float64[2, 3] = broadcast_to(%1, shape=(2, 3)); %3: float64[2, 3] = exp(%2)"
            "; return %3",
            True,
        ),
    ],
)
def test_broadcasts_merge_unless_numpy_would_allocate_a_result(operand, rest, is_merged):
    """NumPy allocates new memory for each view of a scalar."""
    found = peephole(lt.check(parse(operand.format(rest))))

    last = [bind for bind in found.binds if bind.op.name == "broadcast_to"][-1]
    assert is_merged == (last.args[0] is found.params[0])


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        *((("i1", "i2", "i4"), True), (("i4", "i1", "i2"), False), (("i4", "i2", "i1"), True)),
        *((("i1", "u2", "i4"), False), (("u1", "u2", "i4"), True), (("f4", "f8", "f4"), True)),
        *((("f8", "f4", "f8"), False), (("c8", "f4", "f8"), False), (("b1", "i1", "i8"), True)),
        *((("i8", "f8", "f4"), False), (("i4", "f8", "f2"), False), (("f4", "f8", "i4"), False)),
    ],
)
def test_two_casts_are_one_if_nothing_is_lost_in_between(kinds, expected):
    assert is_direct(*map(np.dtype, kinds)) is expected


def test_squeeze_of_all_axes_of_length_1_stays_after_expand_dims():
    fn = lt.trace(lambda x: np.squeeze(np.expand_dims(x, 0)), np.ones((1, 3)))

    assert ["expand_dims", "squeeze"] == [bind.op.name for bind in peephole(fn).binds]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.any(x < 0) * 2 + np.all(x > 0),
        lambda x: (np.any(x < 0), np.all(x < 0)),
        lambda x: x * 2.0 if np.any(x > 0) else x,
        lambda x: np.any(np.reshape(x, ()) < 0) + 1,
    ],
)
@pytest.mark.parametrize("x", [1.5, np.float64(-1.5), np.array(0.25)])
def test_any_and_all_of_one_number_give_numpys_types(f, x):
    fast = lt.jit(f)

    for _ in range(40):
        assert_same(f(x), fast(x))


def test_any_of_one_number_is_that_number_inside_of_a_program():
    fn = lt.trace(lambda x: x * 2.0 if np.any(x > 0) else x, 1.0)

    assert "any" not in [bind.op.name for bind in peephole(fn).binds]

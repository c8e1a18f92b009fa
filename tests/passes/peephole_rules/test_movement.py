"""Peephole rules that merge and drop movements of elements."""

import pytest

import letir as lt
from letir.ast.text.parser import parse
from letir.passes import peephole

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

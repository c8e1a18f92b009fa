"""Operations on copies of numbers: which are computed before the number is copied."""

import numpy as np
import pytest

import letir as lt
from letir.ast.text.parser import parse
from letir.passes.fusion.reduction_parts import with_numbers

COPIED = """lambda %0: float64[], %1: float64[5] {
  %2: float64[5] = broadcast_to(%0, shape=(5,));
  %3: float64[5] = mul(%2, 0.5);
  %4: float64[5] = sub(%3, %2);
  %5: float64[5] = add(%4, %1);
  return %5 }"""


def shapes(fn) -> dict[str, list[tuple]]:
    """The shapes of the results of each operation."""
    found: dict[str, list[tuple]] = {}
    for bind in fn.binds:
        found.setdefault(bind.op.name, []).append(bind.binders[0].type.shape)
    return found


def test_operations_on_copies_of_a_number_compute_the_number():
    fn = parse(COPIED)
    found = with_numbers(fn)

    assert {"mul": [()], "sub": [()], "add": [(5,)]}.items() <= shapes(found).items()
    args = np.float64(0.3), np.arange(5.0)
    for x, y in zip(lt.run_forward(fn, *args), lt.run_forward(found, *args), strict=True):
        assert np.array_equal(x, y)


@pytest.mark.parametrize(
    "last",
    [
        "return %3",
        "%4: float64[1, 5] = reshape(%3, shape=(1, 5)); return %4",
        "%4: float64[5] = index_set(%3, 1.0, item=0); return %4",
    ],
)
def test_copies_that_are_no_operands_of_formulas_stay_arrays(last):
    text = COPIED.partition("%4")[0] + last + " }"

    assert with_numbers(fn := parse(text)) is fn


@pytest.mark.parametrize("call", ["exp(%2)", "mul(%2, %1)"])
def test_expensive_operations_and_operations_on_arrays_stay(call):
    text = COPIED.replace("mul(%2, 0.5)", call).replace("sub(%3, %2)", "sub(%3, %1)")

    assert with_numbers(fn := parse(text)) is fn

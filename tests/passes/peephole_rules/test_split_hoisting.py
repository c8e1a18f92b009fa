"""Splits that move before elementwise operations."""

from letir.ast.text.parser import parse
from letir.passes.peephole_rules.split_hoisting import splits_first


def test_a_sum_is_computed_in_parts_that_keep_their_names():
    f = parse(
        "lambda %0: float64[65536], %1: float64[65536] {\n"
        "  %2: float64[65536] = add(%0, %1)\n"
        "  %3:left: float64[32768], %4:right: float64[32768] = split(%2, sections=2)\n"
        "  %5: float64[32768] = exp(%3)\n"
        "  %6: float64[32768] = mul(%5, %4)\n"
        "  return %6\n}"
    )

    found = splits_first(f)

    assert [bind.op.name for bind in found.binds] == ["split", "split", "add", "add", "exp", "mul"]
    assert [bind.binders[0].name for bind in found.binds[2:4]] == ["left", "right"]

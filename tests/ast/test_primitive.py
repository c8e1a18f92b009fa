"""Primitives: a single result is returned alone, several as a tuple."""

import pytest

from letir.ast.primitive import PRIMITIVES, result_count, results_tuple, unwrap_results


@pytest.mark.parametrize(
    ("name", "attrs", "out"), [("exp", {}, 1.5), ("split", {"sections": 2, "axis": 0}, (1.5, 2.5))]
)
def test_results_are_converted_to_a_tuple_and_back(name, attrs, out):
    op = PRIMITIVES[name]
    results = results_tuple(op, out)

    assert type(results) is tuple and result_count(op, attrs) == len(results)
    assert out == unwrap_results(op, results)


def test_several_results_may_come_in_a_list():
    assert (1.5, 2.5) == results_tuple(PRIMITIVES["split"], [1.5, 2.5])

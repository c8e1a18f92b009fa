"""Sources of loops in texts: initial numbers, unused results, sizes with names, unknown types."""

import numpy as np
import pytest

import letir as lt
from letir.errors import ExportError
from letir.testing import assert_same
from tests.source.test_reading import loaded

SUMS = (
    "lambda %0{x} {{ %1{s}, %2{x} = scan(1.0, %0, body=lambda %3{s}, %4{s} {{ %5{s} = add(%3, %4); "
    "return (%5, %3) }}, n_carry=1, n_xs=1, length=None, reverse=False); return {ret} }}"
)
TYPED = {"x": ": float64[3]", "s": ": float64[]"}
NAMED = {"x": ": float64[n]", "s": ": float64[]"}
UNTYPED = {"x": "", "s": ""}
X = np.arange(3.0)
ROWS = (
    "lambda %0{s} {{ %1{s}, %2{s} = while_scan(%0, test=lambda %4{s} {{ %5{b} = less(%4, 3.0); "
    "return %5 }}, body=lambda %6{s} {{ %7{s} = add(%6, 1.0); return (%7, %6) }}, n_carry=1, "
    "numbered=True); return %2 }}"
)

WRITTEN = {
    "a number at first": (SUMS.format(**TYPED, ret="(%1, %2)"), X),
    "rows that nothing uses": (SUMS.format(**TYPED, ret="%1"), X),
    "a carry that nothing uses": (SUMS.format(**TYPED, ret="%2"), X),
    "a named size": (SUMS.format(**NAMED, ret="%2"), X),
    "unknown types": (SUMS.format(**UNTYPED, ret="%1"), X),
    "an index that is an array": (
        "lambda %0: float32[3] { %1: float32[3] = fori_loop(0, 3, %0, body=lambda %2: int64[], "
        "%3: float32[3] { %4: float64[3] = add(%3, %2); %5: float32[3] = cast(%4, dtype=float32); "
        "return %5 }); return %1 }",
        X.astype(np.float32),
    ),
}
REFUSED = {
    "rows of a scan": (SUMS.format(**UNTYPED, ret="%2"), "of a result of scan is not known"),
    "rows of a loop": (ROWS.format(s="", b=""), "the type of a result of a loop is not known"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_the_source_of_a_loop_computes_the_same(name):
    text, x = WRITTEN[name]
    program = lt.parse(text)

    assert_same(lt.run_forward(program, x), loaded(lt.to_source(program))(x))


@pytest.mark.parametrize("name", REFUSED)
def test_a_loop_whose_rows_have_no_known_shape_is_refused(name):
    text, words = REFUSED[name]

    with pytest.raises(ExportError, match=words):
        lt.to_source(lt.parse(text))

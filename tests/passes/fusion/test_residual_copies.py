"""Groups that compute cheap values of earlier groups again: what is copied, and what is not."""

import numpy as np

import letir as lt
from letir.ast.terms import Bind, Lambda
from letir.ast.text.parser import parse
from letir.passes import fuse
from letir.passes.fusion.residual_copies import recompute_residuals

N = 1 << 14
TYPES = {"R": f"float64[{N}]", "S": "float64[]", "M": f"float64[128, {N // 128}]"}


def program(text: str) -> Lambda:
    """The fused program of a text in which R, S and M stand for types."""
    for name, kind in TYPES.items():
        text = text.replace(f": {name}", f": {kind}")
    return fuse(parse(text))


def recomputed(fn: Lambda) -> tuple[Lambda, dict]:
    def fits(group: Bind, bind: Bind, copied: set) -> bool:
        return bind.binders[0].type.shape == group.binders[0].type.shape

    return recompute_residuals(fn, lambda bind: True, fits)


def operations(fn: Lambda) -> list[str]:
    """The operations of each group, and the other operations."""
    return [
        " ".join([one.op.name for one in bind.attrs["body"].binds])
        if bind.op.role == "fused"
        else bind.op.name
        for bind in fn.binds
    ]


RESIDUAL = """lambda %0: R, %1: S {
  %2: R = sub(%0, %1); %3: R = exp(%2); %4: S = sum(%3);
  %5: R = mul(%2, %3); %6: R = mul(%5, %4); return %6 }"""


def results_stay(fn: Lambda, found: Lambda, *args) -> bool:
    pairs = zip(lt.run_forward(fn, *args), lt.run_forward(found, *args), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


X, HALF = np.linspace(0.5, 1.0, N), np.float64(0.5)


def test_a_cheap_residual_is_computed_again_but_not_an_expensive_one():
    fn = program(RESIDUAL)
    found, repeated = recomputed(fn)

    assert ["sub exp", "sum", "mul mul"] == operations(fn)
    assert ["sub exp", "sum", "sub mul mul"] == operations(found)
    assert [1, 1] == [len(found.binds[0].binders), repeated[found.binds[2].binders[0]]]
    assert np.array_equal(lt.run_forward(fn, X, HALF), lt.run_forward(found, X, HALF))


def test_a_bind_that_only_one_group_needs_moves_into_it():
    fn = program("""lambda %0: R {
      %1: R = exp(%0); %2: R = mul(%0, 3.0); %3: S = sum(%1); %4: R = add(%2, 1.0);
      %5: R = mul(%4, %3); %6: R = mul(%5, %5); return %6 }""")
    found, repeated = recomputed(fn)

    assert {} == repeated
    assert np.array_equal(lt.run_forward(fn, X), lt.run_forward(found, X))


def test_small_and_expensive_values_are_read():
    expensive = program(RESIDUAL.replace("sub(%0, %1)", "tanh(%0)"))
    small = program(RESIDUAL.replace(": R", ": S"))

    assert (expensive, {}) == recomputed(expensive)
    assert (small, {}) == recomputed(small)


def test_arrays_do_not_live_longer_except_in_place_of_larger_ones():
    two = """lambda %0: R {
      %1: R = sort(%0); %2: R = sort(%1);
      %3: R = sub(%1, %2); %4: R = exp(%3); %5: S = sum(%4);
      %6: R = mul(%3, %4); %7: R = mul(%6, %5); return %7 }"""
    fn = program(two)

    assert (fn, {}) == recomputed(fn)  # two sorted arrays in place of one difference


def test_a_value_that_is_a_result_is_stored_anyway():
    text = RESIDUAL.replace("return %6", "return (%6, %2)")
    fn = program(text)
    found, _ = recomputed(fn)

    assert 2 == len(found.binds[0].binders)
    assert results_stay(fn, found, X, HALF)


def test_a_value_is_computed_again_from_values_that_are_computed_again():
    fn = program("""lambda %0: R, %1: S {
      %2: R = sub(%0, %1); %3: R = tanh(%2); %4: S = sum(%3);
      %5: R = mul(%2, %4); %6: R = tanh(%5); %7: S = sum(%6);
      %8: R = mul(%5, %7); %9: R = mul(%2, %8); return %9 }""")
    found, repeated = recomputed(fn)

    assert ["sub tanh", "sum", "sub mul tanh", "sum", "sub mul mul mul"] == operations(found)
    assert [1, 2] == sorted(repeated.values())
    assert np.array_equal(lt.run_forward(fn, X, HALF), lt.run_forward(found, X, HALF))


def test_programs_without_large_groups_stay():
    fn = parse("lambda %0: float64[3] { %1: float64[3] = tanh(%0); return %1 }")

    assert (fn, {}) == recomputed(fn)

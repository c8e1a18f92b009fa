"""Through which binds a derivative flows, and which locals require grad."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letir as lt
from letir.ast.primitive import PRIMITIVES
from letir.ast.text.parser import parse
from letir.passes import is_differentiable, propagate_requires_grad
from letir.testing import programs


@pytest.mark.parametrize(
    "bind, expected",
    [
        ("exp(%0)", True),
        ("greater(%0, 0.0)", False),
        ("stop_gradient(%0)", False),
        ("grad_of(%0, op=exp, n_cts=1, body=lambda %5 { %6 = exp(%5); return %6 })", True),
        (  # its derivative is zero
            "grad_of(%0, op=exp, n_cts=1, body=lambda %5 { %6 = floor(%5); return %6 })",
            True,
        ),
        ("grad_of(%0, op=exp, n_cts=1, body=lambda %5 { %6 = mine.opaque(%5); return %6 })", False),
        (
            """cond(True, %0, on_true=lambda %5 { return %5 }, on_false=lambda %5 {
              %6 = cond(True, %5, on_true=lambda %7 { return %7 }, on_false=lambda %8 {
                %9 = mine.opaque(%8); return %9 }); return %6 })""",
            False,
        ),
    ],
)
def test_a_bind_is_differentiable_if_its_operands_and_results_are(bind, expected):
    lt.opaque(lambda x: x, lambda x: x, name="mine.opaque")
    try:
        f = parse(f"lambda %0 {{ %1 = {bind}; return %1 }}")
        assert is_differentiable(f.binds[0]) == expected
    finally:
        del PRIMITIVES["mine.opaque"]


def names(f, *flags) -> str:
    return "".join(sorted(local.name for local in propagate_requires_grad(f, flags) if local.name))


def test_requires_grad_propagates_from_operands_to_results():
    """[D1]"""
    f = parse("""lambda %0:x: float64[], %1:y: float64[], %2:n: int64[] {
      %3:a: float64[] = mul(%0, %1)
      %4:b: bool[] = greater(%3, 0.0)
      %5:c: float64[] = stop_gradient(%3)
      %6:d: float64[] = add(%5, %1)
      %7:e: float64[] = mul(%2, 2.0)
      return (%6, %7)
    }""")

    assert names(f, False, False, False) == ""
    assert names(f, True, False, False) == "ax"
    assert names(f, False, True, False) == "ady"
    assert names(f, False, False, True) == ""  # integers never require grad


def test_each_result_of_a_conditional_has_its_own_requires_grad():
    """[D1]"""
    f = parse(
        """lambda %0:p: bool[], %1:x: float64[], %2:y: float64[] {
      %3:a: float64[], %4:b: float64[] = cond(%0, %1, %2,
        on_true=lambda %5: float64[], %6: float64[] { return (%5, 1.0) },
        on_false=lambda %7: float64[], %8: float64[] { return (2.0, %8) })
      return (%3, %4)
    }""".replace("return (%5, 1.0)", "%9: float64[] = exp(0.0); return (%5, %9)").replace(
            "return (2.0, %8)", "%9: float64[] = exp(0.0); return (%9, %8)"
        )
    )

    assert names(f, False, True, False) == "ax"
    assert names(f, False, False, True) == "by"


def test_a_carried_value_requires_grad_if_it_does_in_any_iteration():
    """[D1] The fixpoint iteration ends."""
    f = parse("""lambda %0:x: float64[], %1:y: float64[], %2:z: float64[], %9:w: float64[] {
      %3:a: float64[], %4:b: float64[], %5:c: float64[] = fori_loop(0, 3, %0, %1, %2, %9,
        body=lambda %10: int64[], %11: float64[], %12: float64[], %13: float64[], %14: float64[] {
          return (%11, %11, %12) })
      return (%3, %4, %5)
    }""")

    assert names(f, True, False, False, False) == "abcx"
    assert names(f, False, True, False, False) == "bcy"
    assert names(f, False, False, True, False) == "cz"
    assert names(f, False, False, False, True) == "w"


@given(programs(), st.data())
def test_a_result_without_requires_grad_has_no_gradient(program, data):
    """The analysis finds at least every local to which the reverse transform gives a cotangent."""
    f, _ = program
    flags = data.draw(st.lists(st.booleans(), min_size=len(f.params), max_size=len(f.params)))
    try:
        gradient = lt.differentiate(f, flags)
    except lt.LetirError:  # there is no rule
        return

    found = propagate_requires_grad(f, flags)

    assert all(f.params[i] in found for i in gradient.df_output_vjps)
    for i in gradient.df_input_vjps:
        if i < gradient.f_real_outputs:
            assert f.ret.args[i] in found


def test_a_bind_may_introduce_requires_grad():
    f = parse("lambda %0:x: float64[] { %1:a: float64[] = exp(%0); return %1 }")

    found = propagate_requires_grad(f, [False], introduces=lambda bind: bind.op.name == "exp")

    assert [local.name for local in found] == ["a"]


def test_requires_grad_propagates_through_50_nested_loops():
    f = lt.trace(np.exp, np.ones(()))
    for _ in range(50):
        f = lt.checkpoint(f)

    assert is_differentiable(f.binds[0])
    assert len(propagate_requires_grad(f, [True])) == 2

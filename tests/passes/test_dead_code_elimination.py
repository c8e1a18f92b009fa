"""dead_code: unused binds are dropped, effects stay."""

import numpy as np
import pytest
from hypothesis import given

import letir as lt
from letir.ast.attrs import Attrs
from letir.ast.bodies import all_bodies
from letir.ast.builder import LetBuilder
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Const, Lambda, Ret
from letir.ast.text.parser import parse
from letir.passes import dead_code
from letir.testing import assert_same, programs


def test_an_unused_bind_is_dropped():
    f = parse("lambda %0 { %1 = exp(%0); %2 = neg(%0); return %2 }")

    assert parse("lambda %0 { %1 = neg(%0); return %1 }") == dead_code(f)


def test_a_let_that_only_dead_lets_use_is_dropped():
    f = parse("lambda %0 { %1 = exp(%0); %2 = neg(%1); return %0 }")

    assert parse("lambda %0 { return %0 }") == dead_code(f)


def test_a_bind_stays_if_any_of_its_results_is_used():
    f = parse("lambda %0 { %1, %2 = split(%0, sections=2); return %2 }")

    assert f == dead_code(f)


def test_unused_parameters_stay():
    f = parse("lambda %0, %1 { return () }")

    assert f == dead_code(f)


def test_the_remaining_binds_are_the_same_objects():
    f = lt.trace(lambda x: (x * 2, x + 1)[0], np.ones(2))

    assert [f.binds[0]] == list(dead_code(f).binds)
    assert dead_code(f).binds[0] is f.binds[0]


def test_the_nesting_of_arguments_and_results_is_kept():
    f = lt.trace(lambda p: {"y": p["w"] * 2}, {"w": np.ones(2)})

    assert (f.in_tree, f.out_tree) == (dead_code(f).in_tree, dead_code(f).out_tree)


def test_effects_and_their_operands_stay_in_order():
    """[C5]"""
    f = parse("""
    lambda %0 {
      %1 = exp(%0)
      guard(%1, value=1.0)
      %2 = neg(%0)
      %3 = sin(%0)
      guard(%3, value=0.0)
      return %0
    }""")

    expected = """
    lambda %0 {
      %1 = exp(%0)
      guard(%1, value=1.0)
      %2 = sin(%0)
      guard(%2, value=0.0)
      return %0
    }"""
    assert parse(expected) == dead_code(f)


def holding(body: Lambda, levels: int) -> Lambda:
    """A program that returns its argument, with ``body`` nested ``levels`` deep in dead binds."""
    for _ in range(levels):
        builder = LetBuilder()
        x = builder.param()
        builder.emit(PRIMITIVES["when_defined"], (x.arg,), Attrs(n_cts=1, body=body))
        body = builder.build([x])
    return body


@pytest.mark.parametrize("levels", [1, 3])
def test_a_bind_whose_body_has_an_effect_stays(levels):
    """[B4, C5]"""
    f = holding(parse("lambda %0 { guard(%0, value=True); return %0 }"), levels)

    assert [bind.op.name for bind in dead_code(f).binds] == ["when_defined"]
    with pytest.raises(lt.GuardError):
        lt.run_forward(lt.check(dead_code(f)), False)


@pytest.mark.parametrize("levels", [1, 3])
def test_a_bind_whose_body_has_no_effect_is_dropped(levels):
    f = holding(parse("lambda %0 { %1 = neg(%0); return %1 }"), levels)

    assert parse("lambda %0 { return %0 }") == dead_code(f)


def test_running_the_pass_twice_gives_the_result_of_running_it_once():
    f = parse("lambda %0 { %1 = exp(%0); %2 = neg(%1); %3 = sin(%0); return %3 }")

    assert dead_code(f) == dead_code(dead_code(f))


@given(programs())
def test_dead_code_elimination_changes_no_result(program):
    f, args = program

    assert_same(lt.run_forward(f, *args), lt.run_forward(lt.check(dead_code(f)), *args))


# ---- results of binds with bodies ----


def test_a_program_without_dead_binds_is_the_same_object():
    f = lt.trace(lambda x: (x * 2, x + 1), np.ones(2))

    assert dead_code(f) is f


def test_dead_results_of_a_conditional_are_dropped_with_their_operands():
    """[F4]"""
    f = parse("""
    lambda %0: bool[], %1: float64[3], %2: float64[3] {
      %3: float64[3] = exp(%2)
      %4: float64[3], %5: float64[3] = cond(%0, %1, %3,
      on_true=lambda %6: float64[3], %7: float64[3] {
        %8: float64[3] = sin(%6)
        %9: float64[3] = sin(%7)
        return (%8, %9)
      }, on_false=lambda %10: float64[3], %11: float64[3] { return (%10, %11) })
      return %4
    }""")

    expected = parse("""
    lambda %0: bool[], %1: float64[3], %2: float64[3] {
      %4: float64[3] = cond(%0, %1, on_true=lambda %6: float64[3] {
        %8: float64[3] = sin(%6)
        return %8
      }, on_false=lambda %10: float64[3] { return %10 })
      return %4
    }""")
    assert lt.check(dead_code(f)) == expected


def test_dead_results_of_a_switch_in_a_switch_are_dropped():
    """[F4] The results of the inner loop are dead once the outer loop's results are."""
    inner = """switch(%0, %1, %2, branches=(
      lambda %20: float64[], %21: float64[] { %22: float64[] = exp(%20); return (%22, %21) },))"""
    f = parse(f"""
    lambda %0: int64[], %1: float64[], %2: float64[] {{
      %3: float64[], %4: float64[] = switch(%0, %0, %1, %2, branches=(
        lambda %10: int64[], %11: float64[], %12: float64[] {{
          %13: float64[], %14: float64[] = {inner.replace("%0, %1, %2", "%10, %11, %12")}
          return (%13, %14) }},))
      return %4
    }}""")

    found = lt.check(dead_code(f))

    assert [b.op.name for b in all_binds(found)] == ["switch", "switch"]
    assert lt.run_forward(found, np.int64(0), np.float64(2), np.float64(3)) == 3.0
    assert [len(b.args) for b in all_binds(found)] == [3, 2]


def all_binds(f: Lambda) -> list:
    return [bind for body in all_bodies(f) for bind in body.binds]


def test_dead_results_of_a_backward_step_are_dropped():
    """[F4, D3] Captured values stay in the order of first use; the cotangents stay."""
    f = parse("""
    lambda %0, %1, %2 {
      %3, %4 = grad_of[mul](%0) { %5 = mul(%0, %1); %6 = mul(%0, %2); %7 = mul(%6, %1) -> (%5, %7) }
      return %4
    }""")

    expected = """
    lambda %0, %1, %2 {
      %4 = grad_of[mul](%0) { %6 = mul(%0, %2); %7 = mul(%6, %1) -> (%7) }
      return %4
    }"""
    assert dead_code(f) == parse(expected)


def test_an_unread_cotangent_stays():
    """[D7] Whether the cotangent is defined decides whether there is a result."""
    f = parse("""
    lambda %0, %1 {
      %2, %3 = grad_of(%0, %1, op=add, n_cts=2, body=lambda %4, %5 { return (%4, %5) })
      return %3
    }""")

    assert len(dead_code(f).binds[0].args) == 2 and len(dead_code(f).binds[0].binders) == 1


def test_a_checkpoint_does_not_save_an_unused_value():
    """[F4]"""
    layer = lt.checkpoint(lambda x: np.exp(np.sin(x) @ x), lambda bind: bind.op.name == "sin")
    f = lt.trace(layer, np.ones((2, 2)))

    found = dead_code(f)

    (bind,) = found.binds
    assert (bind.attrs["saved"], len(bind.binders), len(f.binds[0].binders)) == (0, 1, 2)
    assert_same(lt.run_forward(f, np.eye(2)), lt.run_forward(lt.check(found), np.eye(2)))


WHILE = """
lambda %0: int64[], %1: float64[], %2: float64[], %3: float64[], %4: float64[] {
  %5: int64[], %6: float64[], %7: float64[], %8: float64[] = while_loop(%0, %1, %2, %3, %4,
    test=lambda %10: int64[], %11: float64[], %12: float64[], %13: float64[], %14: float64[] {
      %15: bool[] = less(%10, 5); return %15 },
    body=lambda %20: int64[], %21: float64[], %22: float64[], %23: float64[], %24: float64[] {
      %25: int64[] = add(%20, 1)
      %26: float64[] = mul(%21, %22)
      %27: float64[] = add(%22, 1.0)
      %28: float64[] = mul(%23, %24)
      return (%25, %26, %27, %28) })
  return RESULT
}"""


@pytest.mark.parametrize(
    "result, operands",
    [
        ("%5", ["%0"]),  # the test reads it
        ("%7", ["%0", "%2"]),
        ("%6", ["%0", "%1", "%2"]),  # which depends on %7
        ("%8", ["%0", "%3", "%4"]),  # with the values that the body captures
        ("(%6, %8)", ["%0", "%1", "%2", "%3", "%4"]),
    ],
)
def test_a_carried_value_is_dropped_if_no_live_value_depends_on_it(result, operands):
    """[F4] In any number of iterations."""
    f = parse(WHILE.replace("RESULT", result))
    args = [np.int64(0), *map(np.float64, (1.5, 2.0, 1.0, 3.0))]

    found = lt.check(dead_code(f))

    (bind,) = found.binds
    assert [f"%{found.params.index(arg)}" for arg in bind.args] == operands
    assert_same(lt.run_forward(f, *args), lt.run_forward(found, *args))
    assert dead_code(found) is found


def test_a_loop_with_an_effect_keeps_the_values_that_the_effect_reads():
    """[C5, F4]"""
    f = parse(
        WHILE.replace("%27: float64[] = ", "guard(%23, value=1.0); %27: float64[] = ").replace(
            "RESULT", "%5"
        )
    )

    (bind,) = dead_code(f).binds

    assert len(bind.binders) == 2 and len(bind.args) == 3  # %3 and what it is multiplied by


def test_dead_values_of_a_counted_loop_are_dropped():
    """[F4]"""
    f = parse("""
    lambda %0: int64[], %1: float64[], %2: float64[] {
      %3: float64[], %4: float64[] = fori_loop(0, %0, %1, %2,
        body=lambda %10: int64[], %11: float64[], %12: float64[] {
          %13: float64[] = add(%11, %10); %14: float64[] = mul(%12, 2.0); return (%13, %14) })
      return %4
    }""")

    found = lt.check(dead_code(f))

    assert [len(bind.args) for bind in found.binds] == [3]
    assert lt.run_forward(found, np.int64(3), np.float64(1), np.float64(1)) == 8.0


SCAN = """
lambda %0: float64[], %1: float64[], %2: float64[4], %3: float64[4] {
  %5: float64[], %6: float64[], %7: float64[4], %8: float64[4] = scan(%0, %1, %2, %3,
    body=lambda %10: float64[], %11: float64[], %12: float64[], %13: float64[] {
      %14: float64[] = add(%10, %12)
      %15: float64[] = mul(%11, %13)
      %16: float64[] = exp(%12)
      return (%14, %15, %16, %15) }, n_carry=2, n_xs=2, length=LENGTH, reverse=False)
  return RESULT
}"""


@pytest.mark.parametrize(
    "result, length, kept",
    [
        ("%5", "4", (1, 1, 2)),  # carried values, scanned arrays, operands
        ("%6", "4", (1, 1, 2)),
        ("%7", "4", (0, 1, 1)),
        ("%8", "4", (1, 1, 2)),  # stacked, computed from a carried value
        ("%8", "None", (1, 2, 3)),  # the trip count follows from the scanned array
        ("(%5, %8)", "4", (2, 2, 4)),
    ],
)
def test_dead_values_of_a_scan_are_dropped(result, length, kept):
    """[F4]"""
    f = parse(SCAN.replace("RESULT", result).replace("LENGTH", length))
    args = [np.float64(1), np.float64(2), np.arange(4.0), np.arange(1.0, 5.0)]

    found = lt.check(dead_code(f))

    (bind,) = found.binds
    assert (bind.attrs["n_carry"], bind.attrs["n_xs"], len(bind.args)) == kept
    assert_same(lt.run_forward(f, *args), lt.run_forward(found, *args))


def test_loops_in_loops_are_cleaned_50_deep():
    body = parse("lambda %0: int64[], %1: float64[], %2: float64[] { return (%1, %2) }")
    for _ in range(50):
        builder = LetBuilder()
        _, x, y = [builder.param(p.type) for p in body.params]
        record = PRIMITIVES["fori_loop"]
        binders = builder.emit(record, (Const(0), Const(1), x.arg, y.arg), Attrs(body=body))
        body = builder.build(binders)
    f = Lambda(body.params, body.binds, Ret(body.ret.args[:1]))

    found = dead_code(f)

    assert {len(bind.binders) for bind in all_binds(found)} == {1}
    assert lt.run_forward(found, np.int64(0), np.float64(2), np.float64(3)) == 2.0


WHILE_SCAN = """
lambda %0: int64[], %1: float64[], %2: float64[] {
  %3: int64[], %4: float64[], %5: int64[_trips], %6: float64[_trips], %7: float64[_trips] =
    while_scan(%0, %1, %2,
      test=lambda %10: int64[], %11: float64[], %12: float64[] {
        %13: bool[] = less(%10, 5); return %13 },
      body=lambda %20: int64[], %21: float64[], %22: float64[] {
        %23: int64[] = add(%20, 1)
        %24: float64[] = mul(%21, 2.0)
        %25: float64[] = exp(%22)
        return (%23, %24, %24, %25) },
      n_carry=2, numbered=False)
  return RESULT
}"""


@pytest.mark.parametrize(
    "result, kept",
    [
        ("%3", (1, 2, 1)),  # carried, results, operands
        ("%4", (2, 3, 2)),
        ("%5", (1, 2, 1)),
        ("%6", (2, 4, 2)),
        ("%7", (1, 3, 2)),
        ("(%4, %7)", (2, 4, 3)),
    ],
)
def test_dead_values_of_a_loop_that_keeps_its_history_are_dropped(result, kept):
    """[F4]"""
    f = parse(WHILE_SCAN.replace("RESULT", result))
    args = [np.int64(2), np.float64(1.5), np.float64(0.5)]

    found = lt.check(dead_code(f))

    (bind,) = found.binds
    assert (bind.attrs["n_carry"], len(bind.binders), len(bind.args)) == kept
    assert_same(lt.run_forward(f, *args), lt.run_forward(found, *args))
    assert dead_code(found) is found

"""normalize_order: programs with the same graph get the same order of binds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import letir as lt
from letir.ast.liveness import has_effect
from letir.ast.text.parser import parse
from letir.ops.effects.writes_to_arguments import changed_params
from letir.passes import normalize_order
from letir.testing import assert_same, programs


def test_binds_stand_in_the_order_in_which_results_ask_for_them():
    f = parse("""lambda %0, %1 {
      %2 = cos(%1)
      %3 = exp(%0)
      %4 = sin(%0)
      %5 = sub(%4, %3)
      return (%5, %2)
    }""")

    expected = """lambda %0, %1 {
      %2 = sin(%0)
      %3 = exp(%0)
      %4 = sub(%2, %3)
      %5 = cos(%1)
      return (%4, %5)
    }"""
    assert normalize_order(f) == parse(expected)


def test_effects_keep_their_order_and_no_bind_moves_past_one():
    """[C5]"""
    f = parse("""lambda %0 {
      %1 = exp(%0)
      %2 = greater(%0, 0.0)
      guard(%2, value=True)
      %3 = log(%0)
      %4 = less(%3, 1.0)
      guard(%4, value=True)
      %5 = add(%3, %1)
      return %5
    }""")

    expected = """lambda %0 {
      %2 = greater(%0, 0.0)
      guard(%2, value=True)
      %3 = log(%0)
      %4 = less(%3, 1.0)
      guard(%4, value=True)
      %1 = exp(%0)
      %5 = add(%3, %1)
      return %5
    }"""
    assert normalize_order(f) == parse(expected)


def test_a_program_in_normal_order_stays():
    f = lt.trace(lambda x: np.exp(x) + np.sin(x), np.ones(3))

    assert normalize_order(f) is f


def test_a_program_that_changes_its_arguments_stays():
    f = parse("""lambda %0: float64[2], %1: float64[2] {
      %2: float64[2] = neg(%0)
      %3: float64[2] = write_back(%0, %1)
      %4: float64[2] = exp(%0)
      %5: float64[2] = add(%4, %2)
      return (%5, %3)
    }""")

    assert normalize_order(f) is f


def test_dead_binds_come_last():
    f = parse("lambda %0 { %1 = exp(%0); %2 = sin(%0); return %2 }")

    assert normalize_order(f) == parse("lambda %0 { %2 = sin(%0); %1 = exp(%0); return %2 }")


@given(programs(), st.randoms(use_true_random=False))
def test_shuffled_programs_have_the_same_normal_order(program, random):
    f, args = program
    g = shuffled(f, random)

    found = lt.check(normalize_order(g))

    assert_same(lt.run_forward(f, *args), lt.run_forward(found, *args))
    if not changed_params(f) and all_are_needed(f):
        assert found == normalize_order(f)


def all_are_needed(f) -> bool:
    return len(lt.passes.dead_code(f)) == len(f)


def shuffled(f, random):
    """``f`` with its binds in another valid order; effects keep their order."""
    left, done, binds = list(f.binds), set(f.params), []
    while left:
        ready = [b for b in left if done.issuperset(b.locals())]
        first = next((b for b in left if has_effect(b)), None)
        ready = [b for b in ready if b is first or not has_effect(b)]
        chosen = random.choice(ready)
        if first is not None and left.index(first) < left.index(chosen) and chosen is not first:
            chosen = left[0]  # no bind moves past an effect
        left.remove(chosen)
        done.update(chosen.binders)
        binds.append(chosen)
    return f.with_binds(binds)

"""inline_bodies: replaces a bind that certainly runs its body once by the body."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letir as lt
from letir.ast.attrs import Attrs
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Bind, Const, Lambda, Local, Ret
from letir.ast.text.parser import parse
from letir.passes import common_subexpressions, inline_bodies, without_barriers
from letir.testing import assert_same, programs


def names(f) -> list[str]:
    return [bind.op.name for bind in f.binds]


SWITCH = """lambda %0: int64[], %1: float64[] {
  CONSTANT
  %2:y: float64[] = switch(INDEX, %1, branches=(
    lambda %3: float64[] { %4: float64[] = exp(%3); return %4 },
    lambda %5: float64[] { %6: float64[] = sin(%5); return %6 },
    lambda %7: float64[] { return 2.0 }))
  %8: float64[] = neg(%2)
  return (%2, %8)
}"""


def switch(index: str, constant: str = "") -> Lambda:
    text = SWITCH.replace("INDEX", index).replace("CONSTANT", constant)
    return parse(text.replace("return 2.0", "%9: float64[] = cos(%7); return %9"))


@pytest.mark.parametrize(
    "index, name", [("0", "exp"), ("1", "sin"), ("2", "cos"), ("7", "cos"), ("-3", "exp")]
)
def test_a_constant_chooses_the_branch(index, name):
    f = switch(index)

    found = lt.check(inline_bodies(f))

    assert names(found) == [name, "neg"]
    assert found.binds[0].binders[0].name == "y"
    args = np.int64(0), np.float64(0.5)
    assert_same(lt.run_forward(f, *args), lt.run_forward(found, *args))


def test_a_bound_constant_chooses_too():
    f = switch("%10", "%10: int64[] = constant(value=int64(1))")

    assert names(inline_bodies(f)) == ["constant", "sin", "neg"]


def test_a_choice_that_depends_on_an_argument_stays():
    f = switch("%0")

    assert inline_bodies(f) is f


def test_a_switch_with_one_branch_is_inlined():
    f = parse("""lambda %0: int64[], %1: float64[] {
      %2: float64[] = switch(%0, %1, branches=(lambda %3: float64[] {
        %4: float64[] = exp(%3); return %4 },))
      return %2 }""")

    assert names(lt.check(inline_bodies(f))) == ["exp"]


@pytest.mark.parametrize("value, name", [("nan", "exp"), ("-0.0", "sin"), ("0", "sin")])
def test_a_condition_is_true_as_in_python(value, name):
    f = parse(f"""lambda %1: float64[] {{
      %2: float64[] = cond({value}, %1,
        on_true=lambda %3: float64[] {{ %4: float64[] = exp(%3); return %4 }},
        on_false=lambda %5: float64[] {{ %6: float64[] = sin(%5); return %6 }})
      return %2 }}""")

    assert names(inline_bodies(f)) == [name]


def test_nested_conditionals_are_inlined():
    """The inner condition is known once the outer conditional is inlined."""
    f = parse("""lambda %1: float64[] {
      %2: float64[] = cond(True, True, %1, on_true=lambda %10: bool*[], %3: float64[] {
          %4: float64[] = cond(%10, %3,
            on_true=lambda %5: float64[] { return %5 },
            on_false=lambda %6: float64[] { %7: float64[] = exp(%6); return %7 })
          return %4 },
        on_false=lambda %11: bool*[], %8: float64[] { return %8 })
      return %2 }""")

    found = inline_bodies(f)

    assert names(found) == [] and found.ret.args == f.params


def test_effects_keep_their_order():
    """[C5]"""
    f = parse("""lambda %1: float64[] {
      guard(%1, value=1.0)
      %2: float64[] = cond(True, %1,
        on_true=lambda %3: float64[] { guard(%3, value=2.0); return %3 },
        on_false=lambda %5: float64[] { return %5 })
      guard(%2, value=3.0)
      return %2 }""")

    assert [bind.attrs["value"] for bind in inline_bodies(f).binds] == [1.0, 2.0, 3.0]


def test_custom_rules_and_checkpoints_stay_unless_asked_otherwise():
    @lt.custom_vjp
    def mine(x):
        return np.exp(x)

    mine.defvjp(lambda x: (np.exp(x), x), lambda res, g: (g * 0 * res,))
    layer = lt.checkpoint(lambda x: np.sin(mine(x)))
    f = lt.trace(lambda x: layer(x) * mine(x), np.ones(3))

    found = lt.check(inline_bodies(f, keep_rules=False))

    assert inline_bodies(f) is f
    assert not {"checkpoint", "custom_vjp"} & set(names(found))
    assert_same(f(np.ones(3)), found(np.ones(3)))


def test_a_custom_jvp_is_inlined_as_its_function():
    @lt.custom_jvp
    def mine(x):
        return np.exp(x) * x

    mine.defjvp(lambda primals, tangents: (mine(*primals), tangents[0] * 0))
    f = lt.trace(lambda x: mine(x) + 1, np.ones(3))

    found = lt.check(inline_bodies(f, keep_rules=False))

    assert names(found) == ["exp", "mul", "add"]
    assert_same(f(np.ones(3)), found(np.ones(3)))


def test_a_checkpoints_recomputation_is_not_merged_with_its_inlined_forward_pass():
    """[F4]"""
    layer = lt.checkpoint(lambda x: np.tanh(np.sin(np.exp(x))))
    f = lt.value_and_grad(lt.trace(lambda x: layer(layer(x)).sum(), np.ones(3)))

    found = common_subexpressions(inline_bodies(f, keep_rules=False))

    assert names(found).count("exp") == 4  # two layers, twice each
    assert_same(f(np.ones(3)), found(np.ones(3)))


def test_barriers_are_removed_at_the_end():
    f = parse("""lambda %0 {
      %1 = barrier(%0)
      %2 = barrier(%1)
      %3 = checkpoint(%2, saved=0, body=lambda %4 { %5 = barrier(%4); %6 = exp(%5); return %6 })
      return (%2, %3) }""")

    expected = """lambda %0 {
      %3 = checkpoint(%0, saved=0, body=lambda %4 { %6 = exp(%4); return %6 })
      return (%0, %3) }"""
    assert without_barriers(f) == parse(expected)


def test_inlining_shared_bodies_does_not_grow_without_bound():
    body = parse("lambda %0: float64[] { %1: float64[] = exp(%0); return %1 }")
    for _ in range(30):
        x, y, z = (Local(body.params[0].type) for _ in range(3))
        attrs = Attrs(on_true=body, on_false=body)
        binds = [
            Bind((b,), PRIMITIVES["cond"], (Const(True), a), attrs) for a, b in ((x, y), (y, z))
        ]
        body = Lambda((x,), binds, Ret((z,)))

    assert len(inline_bodies(body)) < 1000


def test_nesting_50_deep_is_inlined():
    f = lt.trace(np.exp, np.ones(()))
    for _ in range(50):
        f = lt.checkpoint(f)

    assert names(inline_bodies(f, keep_rules=False)) == ["exp"]


@given(programs(), st.booleans())
def test_inlining_changes_no_result(program, keep_rules):
    f, args = program

    found = lt.check(inline_bodies(f, keep_rules=keep_rules))

    assert_same(lt.run_forward(f, *args), lt.run_forward(found, *args))

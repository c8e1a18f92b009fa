"""Which effects a plan logs, so that a run after a failed guard does not repeat them."""

import pytest

import letir as lt
from letir.plan.effect_log import before_guards


@pytest.mark.parametrize(("caught", "logged"), [(True, {0}), (False, set())])
def test_effects_before_a_guard_are_logged_if_another_plan_may_follow(caught, logged):
    """An error that the function does not catch ends the call."""
    fn = lt.parse(f"""lambda %0: float64[2, 2] {{
        print(%0, text='', names=())
        %1: float64[2, 2] = inv(%0)
        guard_computed(%1, caught={caught})
        return %1 }}""")

    assert logged == before_guards(fn)

"""Changes of outside state are reported once."""

import pytest

from letir.executor.external_state.earlier_changes import Change, new_changes


@pytest.mark.parametrize(("before", "now"), [({1}, {1, 2}), ([1], [1, 2])], ids=["set", "list"])
def test_a_set_or_a_list_of_another_length_that_changed_before_has_no_new_change(before, now):
    (change,) = new_changes([], [now], [before], [now])

    assert change.holder is now
    assert new_changes([change], [now], [before], [now]) == []


def test_keys_that_changed_before_are_no_new_changes():
    before, now = {"a": 1, "b": 1}, {"a": 2, "b": 2}

    (change,) = new_changes([Change(now, {"a": 1})], [now], [before], [now])

    assert {"b": 1} == change.before

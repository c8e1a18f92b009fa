"""The helpers that make one test of many go on after a failure, and name what fails."""

import re

import pytest

from tests.each_sample import each_sample, in_one_test


def halves(law):
    """``law`` for six numbers, each as an integer and as text, with names for the first two."""
    law = pytest.mark.parametrize("kind", [int, str])(law)
    rows = [pytest.param(1, 2, id="one"), pytest.param(2, 4, id="two"), *((i, 0) for i in range(4))]
    return pytest.mark.parametrize("half, whole", rows)(law)


def notes_of(test, **fixtures) -> list[list[str]]:
    """The notes of each error of a test that fails."""
    with pytest.raises(ExceptionGroup) as raised:
        test(record_property=lambda name, value: None, **fixtures)
    return [error.__notes__ for error in raised.value.exceptions]


def test_a_law_is_called_for_every_combination_of_parameters():
    calls, counts = [], {}

    @in_one_test
    @halves
    def test(half, whole, kind):
        calls.append((half, whole, kind))

    test(record_property=counts.__setitem__)

    assert 12 == len(set(calls))
    assert {"samples": 12, "skipped samples": 0} == counts


def test_each_failure_is_reported_with_its_name_and_arguments():
    @in_one_test
    @halves
    def test(half, whole, kind):
        assert kind is str or 2 * half == whole or half == 3

    assert [
        ["kind = <class 'int'>, half = 1, whole = 0"],
        ["kind = <class 'int'>, half = 2, whole = 0"],
    ] == notes_of(test)


def test_rows_with_ids_are_named_by_them_and_functions_by_their_lines():
    @in_one_test
    @pytest.mark.parametrize("f", [abs, lambda x: x], ids=["size", "itself"])
    @halves
    def test(half, whole, kind, f):
        assert f is abs

    notes = notes_of(test)

    assert 12 == len(notes)
    assert re.fullmatch(
        r"one-itself: kind = <class 'int'>, half = 1, .*<lambda> of line \d+", notes[0][0]
    )
    assert notes[-1][0].startswith("itself: kind = <class 'str'>, half = 3, whole = 0, f = ")


def test_other_arguments_are_fixtures_that_all_calls_share():
    @in_one_test
    @halves
    def test(half, whole, kind, shared):
        shared.append(half)

    shared: list[int] = []
    test(record_property=lambda name, value: None, shared=shared)

    assert 12 == len(shared)


def test_rows_with_marks_are_refused():
    @pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.slow)])
    def law(x):
        pass

    with pytest.raises(AssertionError, match="a row with marks"):
        in_one_test(law)


def test_a_sample_that_breaks_a_law_is_named():
    @each_sample(among=lambda op: op.name == "tanh", in_one_test=True)
    def test(op, sample):
        assert sample.args[0].shape != ()

    assert all(notes[0].startswith("sample ") for notes in notes_of(test))
    assert "of tanh: operands (" in notes_of(test)[0][0]

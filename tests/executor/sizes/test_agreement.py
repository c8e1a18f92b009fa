"""A program for symbolic sizes is used only if it agrees with the program for fixed sizes."""

import numpy as np
import pytest

import letir as lt
from letir.executor.symbolic_shapes import NoSymbolicProgram, check_agrees

X = np.array([1.0, 2.0])


def test_programs_of_equal_results_agree():
    check_agrees(lt.trace(lambda x: x * 3, X), lt.trace(lambda x: x + x + x, X), [X])


@pytest.mark.parametrize("other", [lambda x: x * 2, lambda x: x[:1], lambda x: x.astype("f4")])
def test_other_results_are_noticed(other):
    with pytest.raises(NoSymbolicProgram, match="gives different results"):
        check_agrees(lt.trace(other, X), lt.trace(lambda x: x * 3, X), [X])


def test_another_nesting_of_results_is_noticed():
    with pytest.raises(NoSymbolicProgram, match="nest differently"):
        check_agrees(lt.trace(lambda x: [x], X), lt.trace(lambda x: (x,), X), [X])


def test_programs_with_guards_are_compared():
    def guarded(x):
        return x * 2 if x.sum() > 0 else x

    named, fixed = lt.trace(guarded, X), lt.trace(lambda x: x * 3, X)

    assert any(bind.op.name == "guard" for bind in named.binds)
    with pytest.raises(NoSymbolicProgram):
        check_agrees(named, fixed, [X])


def test_programs_with_other_effects_are_not_run(capsys):
    def printing(x):
        lt.debug.print("{}", x)
        return x * 2

    check_agrees(lt.trace(printing, X), lt.trace(lambda x: x * 3, X), [X])

    assert capsys.readouterr().out == ""

"""Selections of few elements that come before the operations on the selected elements."""

import numpy as np
import pytest

import letir as lt
from letir.passes.fusion.early_gathers import early_gathers, with_early_gathers
from letir.testing import assert_same

X = np.random.default_rng(0).normal(size=(30, 40))
LABELS = np.arange(30)


def operations(f, *args) -> list[str]:
    """The operations of a program after the pass, in their order."""
    program = lt.trace(f, *args)
    found = with_early_gathers(program)
    assert_same(lt.run_forward(program, *args), lt.run_forward(found, *args))
    return [bind.op.name for bind in found.binds if bind.op.role != "constant"]


def test_few_elements_are_computed_from_few():
    def f(x, labels):
        shifted = x - x.max(axis=1, keepdims=True)
        return shifted[np.arange(30), labels], np.exp(shifted)

    expected = ["max", "sub", "index", "broadcast_to", "index", "sub", "exp"]
    assert expected == operations(f, X, LABELS)


def test_a_value_without_other_uses_is_computed_for_its_warnings():
    assert ["mul", "index"] == operations(lambda x, n: (x * 2)[n, n], X, LABELS)


def test_costly_operations_and_many_elements_stay_as_they_are():
    def f(x, labels):
        y, z = np.exp(x), x * 2
        return y[labels, labels], y.sum(), z[labels], z

    assert ["exp", "mul", "index", "sum", "index"] == operations(f, X, LABELS)


def test_elements_of_an_array_that_is_stored_anyway_are_selected_from_it():
    def f(x, labels):
        shifted = x - x.max(axis=1, keepdims=True)
        return shifted[np.arange(30), labels], shifted[:, 1:] @ x.T[1:]

    assert ["max", "sub", "index", "index", "transpose", "index", "matmul"] == operations(
        f, X, LABELS
    )


@pytest.mark.parametrize(("count", "is_early"), [(150, True), (151, False)])
def test_an_eighth_of_the_elements_is_selected_early_at_most(count, is_early):
    def f(x, labels):
        shifted = x - 1.0
        return shifted[labels, labels], np.exp(shifted)

    labels = np.arange(count) % 30
    program = lt.trace(f, X, labels)

    assert is_early == (["index", "sub"] == operations(f, X, labels)[1:3])
    selected = [bind.binders[0] for bind in program.binds if bind.op.name == "index"]
    assert early_gathers(program) == frozenset(selected if is_early else [])


def test_rows_are_selected_from_the_array():
    def f(x, labels):
        shifted = x - 1.0
        return shifted[labels[:2]], np.exp(shifted)

    assert ["sub", "index", "index", "exp"] == operations(f, X, LABELS)


def test_a_chain_of_five_operations_is_computed_again_at_most():
    def f(x, labels):
        total, y = x, x
        for n in range(7):
            y = y * (n + 1.5)
            total = total + y
        return y[labels, labels], total

    program = lt.trace(f, X, LABELS)
    found = with_early_gathers(program)

    assert 5 == len(found.binds) - len(program.binds)
    assert_same(lt.run_forward(program, X, LABELS), lt.run_forward(found, X, LABELS))

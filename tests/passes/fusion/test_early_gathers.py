"""Selections of few elements that come before the operations on the selected elements."""

import numpy as np

import letir as lt
from letir.passes.fusion.early_gathers import with_early_gathers
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

"""Matrices that are stacked row by row from scalars."""

import numpy as np

import letir as lt
from letir.passes import dead_code
from letir.passes.peephole_rules.flat_stacks import flatten_stacks
from letir.testing import assert_same

X = np.array([0.5, -1.5, 2.5])


def rotation(x):
    return np.array([[np.cos(x[0]), -np.sin(x[0]), 0], [1, x[1], 0.5], [0, 0, 1]]) @ x


def test_a_matrix_of_scalars_is_one_stack():
    fn = dead_code(lt.trace(rotation, X))
    flat = flatten_stacks(fn)

    names = [bind.op.name for bind in flat.binds]
    assert (names.count("stack"), names.count("reshape")) == (1, 1)
    lt.check(flat)
    assert_same(lt.run_forward(fn, X), lt.run_forward(flat, X))


def test_rows_that_are_used_elsewhere_stay():
    fn = lt.trace(lambda x: (np.stack([r := np.stack([x[0], x[1]]), r]), r), X)

    assert flatten_stacks(fn) is fn

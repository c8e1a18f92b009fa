"""Methods of arrays that programs use rarely: flat, setflags, resize, copies by Python's module."""

import copy

import numpy as np
import pytest
import scipy.spatial

import letir as lt
from letir.testing import assert_same

X = np.array([[1.5, -2.0], [0.25, 4.0], [3.0, 1.0]])
KEPT = [np.ones(2), np.zeros(3)]


def flat_elements(x):
    y = x * 1
    y.flat[x.ravel() > 1.2] = 9.0
    y.flat[[0, 1]] = [1, 2]
    y.flat[-1] = 5
    return y, np.asarray(y.flat) * 2, np.exp(y.flat)


def sizes_and_flags(x):
    y, z = x * 1, x[:1, :1] * 2
    y.setflags()
    y.resize()
    y.resize((2, 3))
    z.resize(())
    return y, z


def deep_copies(x):
    a, b = copy.deepcopy(KEPT)
    a[0] = x[0, 0]
    return a, b + x[0, 1]


def found_in_a_tree(x):
    tree, known = scipy.spatial.cKDTree(x), scipy.spatial.cKDTree(X)
    near = scipy.spatial.cKDTree.query(tree, x[:1])[0]
    return near, scipy.spatial.cKDTree.query(known, [[0.0, 0.0]])[0] * x[0, 0]


@pytest.mark.parametrize("f", [flat_elements, sizes_and_flags, deep_copies, found_in_a_tree])
def test_a_replay_gives_numpys_results(f):
    program = lt.trace(f, X)

    for x in (X, X * 1.125):
        assert_same(f(x), program(x))
    np.testing.assert_array_equal(KEPT[0], [1.0, 1.0])


def test_an_array_that_is_made_read_only_is_not_written():
    def f(x):
        y = x * 1
        y.setflags(write=False)
        y[0] = 1.0
        return y

    with pytest.raises(ValueError, match="assignment destination is read-only"):
        lt.trace(f, X)


def test_the_memory_of_a_traced_array_is_not_lent():
    with pytest.raises(lt.TraceError, match="cannot become an ordinary array"):
        lt.trace(np.from_dlpack, X)

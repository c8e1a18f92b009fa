"""Functions that test whether two dataclasses or named tuples among their arguments are one."""

from collections import namedtuple
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same


@dataclass
class Node:
    value: float
    left: "Node | None" = None
    right: "Node | None" = None


Pair = namedtuple("Pair", "x y")


def ancestor(root, p, q):
    """The value of the lowest node of which both nodes are descendants; None if there is none."""
    node = find_ancestor(root, p, q)
    return None if node is None else node.value


def find_ancestor(root, p, q):
    if root is None or root is p or root is q:
        return root
    left, right = find_ancestor(root.left, p, q), find_ancestor(root.right, p, q)
    if left is not None and right is not None:
        return root
    return right if left is None else left


def are_one(a, b):
    return 1.0 if a is b else 2.0


def is_left(a, b):
    return 1.0 if b is a.left else 2.0


def holds(a, b):
    return [n for n in range(2) if (lambda n: [a.left, a.right][n] is not b)(n)]


TREE = Node(1.0, Node(2.0, Node(4.0)), Node(3.0))
PAIR = Pair(1.0, 2.0)
CALLS = {
    "ancestor": (ancestor, [(TREE, TREE.left, TREE.right), (TREE, TREE.left.left, TREE.left)]),
    "are_one": (are_one, [(TREE, TREE), (TREE, TREE.left), (TREE.right, Node(3.0))]),
    "is_left": (is_left, [(TREE, TREE.left), (TREE, TREE.right)]),
    "holds": (holds, [(TREE, TREE.left), (TREE, TREE.right)]),
    "pairs": (are_one, [(PAIR, PAIR), (PAIR, Pair(1.0, 2.0))]),
    "executors": (lt.jit(are_one), [(TREE, TREE), (TREE, TREE.left)]),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_that_test_identities_run_as_python(name):
    f, calls = CALLS[name]

    @lt.jit
    def fast(*nodes):
        return f(*nodes)

    for args in calls * 2:
        assert f(*args) == fast(*args)
    assert fast.counters["compiles"] == 0


class Mode(Enum):
    FAST = 1


def test_tests_for_constants_and_of_one_object_keep_their_plans():
    def total(a, b, mode):
        return a.value + b.value if mode is Mode.FAST and a.left is None else a.value

    def moved(a, x):
        return x + a.value if a is not x else x

    leaf = Node(2.0)
    for f, args in ((total, (leaf, Node(3.0), Mode.FAST)), (moved, (leaf, np.ones(2)))):
        fast = lt.jit(f)
        for _ in range(3):
            assert_same(f(*args), fast(*args))
        assert fast.counters["compiles"] == 1

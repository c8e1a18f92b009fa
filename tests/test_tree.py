"""``letir.tree``: nested as letir nests arguments, with the results of ``jax.tree``."""

import dataclasses
from collections import OrderedDict, namedtuple

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letir as lt

Point = namedtuple("Point", ["x", "y"])


@attrs.frozen
class Weights:
    w: object
    b: object = None


@dataclasses.dataclass
class Layer:
    weights: object
    rate: float = 0.5


def nests():
    """Nested containers whose leaves are numbers."""

    def containers(items):
        return st.one_of(
            st.lists(items, max_size=3),
            st.lists(items, max_size=3).map(tuple),
            st.dictionaries(st.text("abc", max_size=2), items, max_size=3),
            st.builds(Point, items, items),
            st.builds(Weights, items, items),
            st.builds(Layer, items),
        )

    return st.recursive(st.none() | st.integers(-(2**63), 2**63 - 1), containers, max_leaves=8)


@given(nests())
def test_the_functions_agree_on_leaves_and_structure(tree):
    leaves, structure = lt.tree.flatten(tree)
    pairs = lt.tree.leaves_with_path(tree)

    assert (leaves, structure) == (lt.tree.leaves(tree), lt.tree.structure(tree))
    assert tree == lt.tree.unflatten(structure, leaves)
    assert lt.tree.map(lambda x: 2 * x, tree) == lt.tree.unflatten(
        structure, [2 * x for x in leaves]
    )
    assert (pairs, structure) == lt.tree.flatten_with_path(tree)
    assert leaves == [leaf for _, leaf in pairs]
    assert lt.tree.reduce(lambda a, b: [*a, b], tree, []) == leaves
    assert all(leaves) == lt.tree.all(tree)
    assert tree == lt.tree.broadcast(tree, tree)


@given(nests())
def test_leaves_and_their_order_are_those_of_trace(tree):
    leaves = lt.tree.leaves(tree)

    assert len(leaves) == len(lt.trace(lambda tree: 0, tree).params)


def test_paths_are_keys_indices_and_fields():
    tree = {"w": [Point(1, 2)], "l": Layer(3)}

    paths = [path for path, _ in lt.tree.leaves_with_path(tree)]
    assert paths == [("l", "weights"), ("l", "rate"), ("w", 0, "x"), ("w", 0, "y")]
    assert lt.tree.map_with_path(lambda path, a, b: (path, a + b), [1], [2]) == [((0,), 3)]


def test_further_trees_may_be_deeper():
    assert {"a": [1, 2, 3]} == lt.tree.map(lambda x, xs: [x, *xs], {"a": 1}, {"a": (2, 3)})
    assert ([7, 7], 8) == lt.tree.broadcast((7, 8), ([1, 2], 3))
    assert Weights(5, (6, 6)) == lt.tree.broadcast(Weights(5, 6), Weights(1, (2, 3)))


def test_is_leaf_stops_at_subtrees():
    tree = [(1, 2), (3, 4)]

    def is_pair(x):
        return isinstance(x, tuple)

    assert tree == lt.tree.leaves(tree, is_leaf=is_pair)
    assert [3, 7] == lt.tree.map(sum, tree, is_leaf=is_pair)
    assert [((0,), (1, 2)), ((1,), (3, 4))] == lt.tree.leaves_with_path(tree, is_leaf=is_pair)
    assert (1, 2, 3, 4) == lt.tree.reduce(lambda a, b: a + b, tree, is_leaf=is_pair)
    assert lt.tree.all([(), 0], is_leaf=is_pair) is False
    assert [None] == lt.tree.leaves([None], is_leaf=lambda x: x is None)


@pytest.mark.parametrize("inner", [lt.tree.structure(Point(0, 0)), None])
def test_transpose_turns_a_tree_inside_out(inner):
    tree = {"w": Point(1, 2), "b": Point(3, 4)}

    found = lt.tree.transpose(lt.tree.structure({"w": 0, "b": 0}), inner, tree)
    assert Point({"b": 3, "w": 1}, {"b": 4, "w": 2}) == found


def test_trees_of_traced_values_are_mapped_in_recorded_functions():
    params = {"w": np.arange(3.0), "b": 0.5}

    @lt.jit
    def step(params):
        slopes = lt.grad(lambda p: (p["w"] ** 2).sum() + p["b"])(params)
        return lt.tree.map(lambda p, g: p - 0.5 * g, params, slopes)

    found = step(params)
    assert found["b"] == 0.0
    assert found["w"].tolist() == [0.0, 0.0, 0.0]


def test_the_trees_of_programs_are_structures():
    program = lt.trace(lambda x: {"y": x, "z": (x,)}, 1.0)

    assert {"y": 1, "z": (2,)} == lt.tree.unflatten(program.out_tree, [1, 2])


def test_the_leaves_of_jax_are_found_in_the_same_order():
    jax = pytest.importorskip("jax")
    tree = OrderedDict(b=[1, (2, None)], a={"d": 3, "c": Point(4, [5])})

    assert jax.tree.leaves(tree) == lt.tree.leaves(tree)
    assert set(lt.tree.__all__) <= set(dir(jax.tree))


WRONG = {
    "shorter": (
        lambda: lt.tree.map(max, {"a": (1, 2)}, {"a": (1,)}),
        lt.ShapeError,
        r"tree.map: argument 2 is nested as \{'a': \(\*,\)\}, expected \{'a': \(\*, \*\)\}",
    ),
    "third": (lambda: lt.tree.map(max, [1], [1], [1, 2]), lt.ShapeError, "argument 3 is nested"),
    "few": (
        lambda: lt.tree.unflatten(lt.tree.structure((1, 2)), [1]),
        lt.ShapeError,
        r"the structure \(\*, \*\) has 2 leaves, found 1",
    ),
    "swapped": (
        lambda: lt.tree.unflatten([1, 2], lt.tree.structure((1, 2))),
        lt.DTypeError,
        r"a structure is expected, found \[1, 2\] of type list",
    ),
    "nothing": (lambda: lt.tree.reduce(max, ()), lt.DTypeError, "no initializer was given"),
    "prefix": (lambda: lt.tree.broadcast((1, 2), [1, 2]), lt.ShapeError, "tree.broadcast"),
    "inner": (
        lambda: lt.tree.transpose(lt.tree.structure([0]), lt.tree.structure((0, 0)), [(1,)]),
        lt.ShapeError,
        r"tree.transpose: the tree is nested as \(\*,\), expected \(\*, \*\)",
    ),
    "no subtree": (
        lambda: lt.tree.transpose(lt.tree.structure([]), None, []),
        lt.ShapeError,
        "pass the inner structure too",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_say_what_was_found_and_where(name):
    call, error, message = WRONG[name]

    with pytest.raises(error, match=message) as caught:
        call()
    assert "test_tree.py" in str(caught.value)

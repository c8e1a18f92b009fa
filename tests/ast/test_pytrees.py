"""Pytrees: how arguments nest, their text, and parsing it."""

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple

import attrs
import optree
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letir as lt
import letir.ops
from letir.ast.pytrees import LEAF, NAMESPACE, Static, Tree, flatten
from letir.ast.text.parser import parse
from letir.ast.text.printer import dumps
from letir.errors import DTypeError, ParseError
from tests.each_sample import in_one_test

Point = namedtuple("Point", ["x", "y"])


@attrs.frozen
class Weights:
    _scale: object
    bias: object = None


@dataclasses.dataclass
class Layer:
    width: int
    name: str = "layer"

    def __post_init__(self):
        self.doubled = 2 * self.width


def tree_of(structure) -> Tree:
    """The tree of a structure whose leaves are arrays."""
    return Tree(flatten(structure)[1])


def parsed(text: str) -> Tree:
    """The argument tree of the program that ``text`` denotes."""
    classes = (Point, Weights, Layer)
    return parse(f"lambda in {text} {{ return () }}", classes=classes).in_tree


def structures():
    """Nested containers of every kind that has a text."""
    keys = st.one_of(
        st.text(max_size=3), st.integers(), st.booleans(), st.none(), st.tuples(st.integers())
    )
    leaves = st.sampled_from(
        [LEAF, None, Static.from_value(1), Static.from_value("a'b"), Static.from_value(-0.0)]
    )

    def containers(items):
        mappings = st.dictionaries(keys, items, max_size=3)
        return st.one_of(
            st.lists(items, max_size=3),
            st.lists(items, max_size=3).map(tuple),
            st.lists(items, max_size=3).map(deque),
            mappings,
            mappings.map(OrderedDict),
            mappings.map(lambda content: defaultdict(list, content)),
            st.builds(Point, items, items),
            st.builds(Weights, items, items),
        )

    return st.recursive(leaves, containers, max_leaves=8)


@pytest.mark.parametrize(
    ("structure", "text"),
    [
        (1.0, "*"),
        (None, "None"),
        ((), "()"),
        ((1.0,), "(*,)"),
        ([1.0, (2.0, None)], "[*, (*, None)]"),
        ({"b": 1.0, "a": [2.0]}, "{'a': [*], 'b': *}"),
        (OrderedDict(b=1.0, a=2.0), "OrderedDict({'b': *, 'a': *})"),
        (defaultdict(int, k=1.0), "defaultdict({'k': *})"),
        (deque([1.0]), "deque([*])"),
        (Point(1.0, 2.0), "Point(x=*, y=*)"),
        (Weights(1.0), "Weights(_scale=*, bias=None)"),
        (Layer(1.0), "Layer(width=*, name=*, doubled=*)"),
    ],
)
def test_a_tree_prints_like_python(structure, text):
    assert repr(tree_of(structure)) == text


@given(structures())
def test_the_text_of_a_tree_parses_to_it(structure):
    """[A5]"""
    tree = Tree.from_pytree(structure)

    assert (parsed(tree.text), parsed(tree.text).statics) == (tree, tree.statics)


@given(structures())
def test_a_parsed_tree_flattens_and_unflattens_in_the_same_order(structure):
    """[A5]"""
    tree = Tree.from_pytree(structure)
    again = parsed(tree.written)

    # as texts, which tell dicts of other orders apart; the factory of a defaultdict is not in it
    made, expected = [repr(t.unflatten(range(t.spec.num_leaves))) for t in (again, tree)]
    assert made == expected.replace("<class 'list'>", "None")
    assert again == tree
    assert tree.with_sorted_keys().written == tree.text


def test_a_program_keeps_the_order_of_keys_in_its_text_and_source():
    """[A5] [A6]"""

    def f(x, options):
        return {"z": x, "a": [{"n": x, "b": x}], **options}

    program = lt.trace(f, 1.0, {"m": 2.0, "c": 3.0})
    namespace = {}
    exec(lt.to_source(program, name="made"), namespace)

    expected = repr(f(4.0, {"m": 5.0, "c": 6.0}))
    for made in (program, lt.parse(lt.dumps(program)), namespace["made"]):
        assert repr(made(4.0, {"m": 5.0, "c": 6.0})) == expected
    other = lt.trace(
        lambda x, o: {"c": o["c"], "m": o["m"], "z": x, "a": [{"b": x, "n": x}]},
        1.0,
        {"c": 2.0, "m": 3.0},
    )
    assert program == other
    assert str(lt.canonicalize(program)) == str(lt.canonicalize(other))


def test_the_order_of_an_ordered_dict_is_part_of_its_text():
    tree = parsed("OrderedDict({'b': *, 'a': *})")

    assert tree.unflatten([1, 2]) == OrderedDict(b=1, a=2)
    assert tree != parsed("OrderedDict({'a': *, 'b': *})")


def test_dataclasses_are_nodes_with_their_attributes_as_children():
    leaves, spec = flatten([Weights(1.0, 2.0), Layer(3.0, "x")])

    assert leaves == [1.0, 2.0, 3.0, "x", 6.0]
    assert spec.unflatten(leaves) == [Weights(1.0, 2.0), Layer(3.0, "x")]
    assert spec.unflatten([1.0, 2.0, 3.0, "x", 7.0])[1].doubled == 7.0


def test_a_tree_with_a_dataclass_prints_without_running_its_init():
    """``Layer.__post_init__`` computes with its width, which placeholder leaves do not support."""
    layer = parsed(tree_of(Layer(1.0)).text).unflatten([2, "name", 5])
    assert (layer, layer.doubled) == (Layer(2, "name"), 5)


@pytest.mark.parametrize("name", ["__class__", "__post_init__", "width.x"])
def test_a_text_sets_no_other_parts_of_a_trusted_class(name):
    with pytest.raises(ParseError):
        parsed(f"Layer(width=*, name=*, {name}=*)")


def test_classes_of_the_same_name_are_both_nodes():
    def made():
        @dataclasses.dataclass
        class Local:
            x: float

        return Local

    assert [flatten(made()(1.0))[0], flatten(made()(2.0))[0]] == [[1.0], [2.0]]


def test_a_class_unknown_here_becomes_a_namedtuple():
    tree = parsed("far.away.Pair(a=*, b=[*])")
    pair = tree.unflatten([1, 2])

    assert (pair.a, pair.b, type(pair).__name__) == (1, [2], "Pair")
    assert tree.text == "far.away.Pair(a=*, b=[*])"


def test_static_leaves_are_part_of_the_tree():
    """[A1]"""
    tree = Tree.from_pytree((LEAF, Static.from_value("mode")))

    assert (tree.arrays, tree.text) == (1, """(*, static("'mode'"))""")
    assert tree.leaves_of((1.0, "mode"), "call") == [1.0]


@pytest.mark.parametrize("other", ["other", 1, True, 1.0, None])
def test_another_value_of_a_static_leaf_is_refused(other):
    """[F1] Static values compare with their type."""
    tree = Tree.from_pytree((LEAF, Static.from_value(0)))

    with pytest.raises(DTypeError):
        tree.leaves_of((1.0, other), "call")


def test_arguments_of_another_structure_are_refused_with_both_trees():
    """[B7]"""
    with pytest.raises(DTypeError, match=r"expected arguments nested as \(\*, \*\), found \[\*\]"):
        Tree.from_pytree((LEAF, LEAF)).leaves_of([1.0], "call")


def test_none_has_no_leaves():
    assert flatten((None, 1.0))[0] == [1.0]


def test_trees_are_equal_if_their_texts_are():
    assert tree_of([1.0]) == parsed("[*]") and hash(tree_of([1.0])) == hash(parsed("[ * ]"))


def test_params_and_results_have_trees():
    """[A1]"""
    text = "lambda %0 in ((*,), {'k': None}) out {'a': *} {\n  return %0\n}"
    f = parse(text)

    assert (f.in_tree.arrays, f.out_tree.unflatten([1]), dumps(f)) == (1, {"a": 1}, text)


@in_one_test
@pytest.mark.parametrize(
    "text",
    [
        *("(*)", "(*", "[*", "{*}", "{'a' *}", "{'a': *", "static(*)", "static('a'", "Point(*)"),
        *("Point(x=*, x=*)", "Point(x=*)", "deque(*)", "OrderedDict([*])", "P(class=*)", "{n: *}"),
        *("P(__del__=*)", "P(_fields=*)", "P(__class__=*)", "Weights(scale=*, bias=*)"),
        *("Point", "**", "NoneType(", "{1: *, 1: *}", "{...: *}", "{(1:2,): *}"),
    ],
)
def test_malformed_text_of_a_tree_is_a_parse_error(text):
    with pytest.raises(ParseError):
        parsed(text)


def test_leaves_agree_with_optree_in_our_namespace():
    leaves, spec = optree.tree_flatten({"a": [1, (2,)]}, namespace=NAMESPACE)

    assert flatten({"a": [1, (2,)]}) == (leaves, spec)

"""Substitution, renaming, inlining and lifting; programs as graphs and back [A7]."""

import pytest
from hypothesis import given

import letir as lt
from letir.ast.builder import LetBuilder
from letir.ast.primitive import PRIMITIVES
from letir.ast.terms import Const, Local, Ret
from letir.ast.text.parser import parse
from letir.ast.types import ArrayType
from letir.errors import DTypeError
from letir.passes.dead_code_elimination import dead_code
from letir.testing import SAMPLES, assert_same, programs
from letir.visitors.substitution import (
    Input,
    Node,
    free_locals,
    from_dag,
    inline,
    lambda_lift,
    rename,
    substitute,
    to_dag,
)

ADD, NEG, SPLIT, EXP = (PRIMITIVES[name] for name in ("add", "neg", "split", "exp"))
LONG = 30_000
PURE = [name for name in SAMPLES if not PRIMITIVES[name].effect]


def bound(f) -> list:
    """The locals that ``f`` binds, in order."""
    return [binder for bind in f.binds for binder in bind.binders]


# ---- substitute and rename ----


def test_every_use_of_a_local_is_substituted():
    f = parse("lambda %0, %1 { %2 = add(%0, %1); %3 = mul(%2, %0); return (%3, %0) }")
    x, y = f.params

    assert parse("lambda %1 { %2 = add(%1, %1); %3 = mul(%2, %1); return (%3, %1) }") == substitute(
        f, {x: y}
    )


def test_a_parameter_becomes_a_constant():
    f = parse("lambda %0, %1 { %2 = add(%0, %1); return %2 }")

    assert parse("lambda %0 { %2 = add(%0, 2.0); return %2 }") == substitute(
        f, {f.params[1]: Const(2.0)}
    )


def test_substituting_a_parameter_drops_it_and_the_nesting():
    f = lt.trace(lambda p: p["a"] + p["b"], {"a": 1.0, "b": 2.0})
    g = substitute(f, {f.params[0]: Const(1.0)})

    assert (1, None, f.out_tree) == (len(g.params), g.in_tree, g.out_tree)


def test_binds_without_the_substituted_local_are_shared():
    f = parse("lambda %0, %1 { %2 = exp(%0); %3 = mul(%2, %1); return %3 }")
    g = substitute(f, {f.params[1]: Const(2.0)})

    assert [True, False] == [a is b for a, b in zip(f.binds, g.binds, strict=True)]


def test_a_renamed_program_is_equal_and_shares_no_local():
    f = parse("lambda %0:x: int8[2] { %1:y: int8[2] = neg(%0)  # a.py:3\n return %1 }")
    g = rename(f)

    assert f == g
    assert not {*f.params, *bound(f)} & {*g.params, *bound(g)}
    assert [("x", ArrayType("i1", (2,))), "y"] == [
        (g.params[0].name, g.params[0].type),
        bound(g)[0].name,
    ]
    assert "a.py:3" == str(g.binds[0].source)


def test_renaming_gives_the_requested_names():
    f = parse("lambda %0:x, %1:y { %2 = add(%0, %1); return %2 }")
    g = rename(f, {f.params[1]: "rate", bound(f)[0]: "total"})

    assert ["x", "rate", "total"] == [local.name for local in (*g.params, *bound(g))]


# ---- inline ----


def test_inlining_adds_the_binds_with_arguments_for_parameters():
    f = parse("lambda %0, %1 { %2 = mul(%0, %1); return (%2, %0) }")
    builder = LetBuilder()
    x = builder.param()

    results = inline(f, [x.arg, Const(3.0)], builder)

    expected = parse("lambda %0 { %1 = mul(%0, 3.0); return (%1, %0) }")
    assert expected == builder.build(results)


def test_inlining_infers_types_again_for_other_argument_types():
    f = parse("lambda %0: float64[3] { %1: float64[3] = exp(%0); return %1 }")
    builder = LetBuilder()
    x = builder.param(ArrayType("float32", (2,)))

    (result,) = inline(f, [x.arg], builder)

    assert ArrayType("float32", (2,)) is result.type


def test_inlining_twice_shares_no_locals():
    f = parse("lambda %0 { %1 = neg(%0); return %1 }")
    builder = LetBuilder()
    (once,) = inline(f, [builder.param().arg], builder)

    twice = inline(f, [once], builder)

    assert parse("lambda %0 { %1 = neg(%0); %2 = neg(%1); return %2 }") == builder.build(twice)


# ---- lambda lifting ----


def test_free_locals_are_lifted_in_order_of_first_use():
    """[G1] The order of first use in the body, not in the enclosing program."""
    f = parse("""
    lambda %0, %1, %2 {
      %3 = mul(%2, %1)
      %4 = add(%3, %0)
      %5 = sub(%4, %2)
      return (%5, %1)
    }""")
    a, b, c = f.params

    lifted, free = lambda_lift([a], f.binds, f.ret)

    expected = """
    lambda %0, %1, %2 {
      %3 = mul(%1, %2)
      %4 = add(%3, %0)
      %5 = sub(%4, %1)
      return (%5, %2)
    }"""
    assert [c, b] == free
    assert parse(expected) == lifted


def test_a_free_local_that_is_only_returned_is_lifted():
    x = Local(name="x")
    lifted, free = lambda_lift([], [], Ret((x, x)))

    assert [x] == free
    assert parse("lambda %0 { return (%0, %0) }") == lifted


def test_a_lifted_program_is_closed():
    f = parse("lambda %0, %1 { %2 = mul(%0, %1); %3 = neg(%2); return %3 }")

    lifted, free = lambda_lift([], f.binds[1:], f.ret)

    assert lt.check(lifted) is lifted
    assert [bound(f)[0]] == free


def test_a_lifted_program_shares_no_locals_with_its_original():
    """It may be nested in the original, whose text has one number for each local."""
    f = parse("lambda %0, %1 { %2 = mul(%0, %1); %3 = neg(%2); return %3 }")

    lifted, _ = lambda_lift(f.params, f.binds[1:], f.ret)

    assert not {*f.params, *bound(f)} & {*lifted.params, *bound(lifted)}


def test_nothing_is_free_in_a_closed_program():
    f = parse("lambda %0 { %1 = exp(%0); return (%1, 2.0) }")

    assert [] == free_locals(f.params, f.binds, f.ret)


# ---- graphs ----


def test_a_shared_node_is_bound_once():
    """[A7] 30 doublings give 30 binds."""
    x = Input(Local(name="x"))
    node = x
    for _ in range(30):
        node = Node(ADD, (node, node))

    f = from_dag([node])

    assert 30 == len(f)
    assert 2.0**30 == f(1.0)


def test_a_shared_local_is_one_node():
    f = parse("lambda %0 { %1 = exp(%0); %2 = add(%1, %1); return (%2, %1) }")
    (x,), (total, y) = to_dag(f)

    assert total.args == (y, y)
    assert y.args == (x,)


def test_the_text_of_a_node_does_not_grow_with_its_graph():
    """[A3] Shared subterms are not printed once for each path."""
    node = Input(Local())
    for _ in range(30):
        node = Node(ADD, (node, node))

    assert "Node(add, result 0)" == repr(node)


def test_operands_are_bound_before_their_users():
    x = Input(Local())
    below = Node(NEG, (x,))
    above = Node(ADD, (below, Node(EXP, (below,))))

    expected = parse("lambda %0 { %1 = neg(%0); %2 = exp(%1); %3 = add(%1, %2); return (%3, %1) }")
    assert expected == from_dag([above, below])


def test_inputs_are_reached_in_order():
    """Without a list of inputs, inputs become parameters in the order in which they are reached."""
    x, y = Input(Local(name="x")), Input(Local(name="y"))

    f = from_dag([Node(ADD, (y, x))])

    assert ["y", "x"] == [param.name for param in f.params]


def test_given_inputs_come_first_and_stay_even_if_unused():
    x, y, z = (Input(Local(name=name)) for name in "xyz")

    f = from_dag([Node(ADD, (z, y))], [x, y])

    assert ["x", "y", "z"] == [param.name for param in f.params]


def test_two_programs_of_one_graph_share_no_locals():
    x = Input(Local())
    f, g = from_dag([Node(NEG, (x,))]), from_dag([Node(NEG, (x,))])

    assert not {*f.params, *bound(f)} & {*g.params, *bound(g)}


def test_inputs_and_constants_may_be_outputs():
    x = Input(Local())

    assert parse("lambda %0 { return (2.0, %0) }") == from_dag([Const(2.0), x])


def test_the_results_of_one_node_are_bound_together():
    """[A1] A multi-result operation is one bind."""
    attrs = SPLIT.complete({"sections": 2})
    whole = Node(SPLIT, (Input(Local()),), attrs)
    second = Node(SPLIT, (), attrs, 1, whole)

    expected = parse("lambda %0 { %1, %2 = split(%0, sections=2); %3 = add(%2, %1); return %3 }")
    assert expected == from_dag([Node(ADD, (second, whole))])


def test_a_later_result_of_a_node_may_be_the_only_output():
    f = parse("lambda %0 { %1, %2 = split(%0, sections=2); return %2 }")

    assert f == from_dag(to_dag(f)[1])


def test_a_graph_keeps_source_lines():
    f = parse("lambda %0 { %1 = exp(%0)  # a.py:3\n return %1 }")

    assert "a.py:3" == str(from_dag(to_dag(f)[1]).binds[0].source)


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_cycle_is_an_error(length):
    nodes = [Node(NEG, ()) for _ in range(length)]
    for i, node in enumerate(nodes):
        node.args = (nodes[i - 1],)

    with pytest.raises(lt.ScopeError, match="the graph has a cycle through neg"):
        from_dag([nodes[0]])


def test_a_node_that_is_reached_twice_is_not_a_cycle():
    x = Input(Local())
    low = Node(NEG, (x,))
    middle = Node(ADD, (low, low))

    assert 4 == len(from_dag([Node(ADD, (middle, Node(ADD, (low, middle)))), low]))


def test_an_effect_in_a_graph_is_an_error():
    """[C5]"""
    f = parse("lambda %0 { guard(%0, value=True)  # a.py:3\n return %0 }")

    with pytest.raises(lt.LetirError, match=r"cannot hold the effect of guard\(.*a.py:3"):
        to_dag(f)


def test_a_deep_graph_becomes_a_program():
    """[A3] 30 000 nodes, each the operand of the next; test_depth has the opposite direction."""
    node = Input(Local())
    for _ in range(LONG):
        node = Node(NEG, (node,))

    assert LONG == len(from_dag([node]))


@given(programs(PURE))
def test_a_program_without_dead_code_survives_a_round_trip_through_a_graph(program):
    f, args = program
    inputs, outputs = to_dag(dead_code(f))
    g = lt.check(from_dag(outputs, inputs))

    assert len(g) == len(dead_code(f))
    assert_same(tuple(outputs_of(f, args)), tuple(outputs_of(g, args)))


def outputs_of(f, args) -> list:
    """The results as a flat tuple."""
    found = lt.run_forward(f, *args)
    return list(found) if len(f.ret.args) != 1 else [found]


@pytest.mark.parametrize(
    ("outputs", "message"),
    [(3, "expected in a list, found int"), ([3], "an output is int, expected Node, Input, Const")],
)
def test_a_value_that_is_not_a_graph_is_an_error(outputs, message):
    with pytest.raises(DTypeError, match=message):
        from_dag(outputs)

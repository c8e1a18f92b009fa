"""Bodies of binds: Lambdas that are attributes, alone or in tuples."""

import pickle

import numpy as np
import pytest

import letir.ops  # noqa: F401  registers all operations
from letir.ast.alpha_equality import canonicalize
from letir.ast.attrs import Attrs
from letir.ast.bodies import all_bodies, bodies_of, map_bodies, with_bodies
from letir.ast.checker import check
from letir.ast.liveness import has_effect
from letir.ast.primitive import PRIMITIVES
from letir.ast.record_fields import never
from letir.ast.terms import Bind, Lambda, Local, Ret
from letir.ast.text.parser import parse
from letir.ast.text.printer import dumps, listing
from letir.eval.evaluator import run_forward
from letir.ops.define.records import define
from letir.storage import load, save

CHOICE = """lambda %0: float64[3], %1: int64[] {
  %2: float64[3] = branching(%1, %0, branches=(lambda %3: float64[3] {
    %4: float64[3] = exp(%3)
    return %4
  }, lambda %5: float64[3] {
    %6: float64[3] = neg(%5)
    return %6
  },))
  return %2
}"""


@pytest.fixture
def branching():
    """An operation whose bodies are in a tuple."""
    made = define(
        "branching",
        lambda xp, which, *args, call, branches: call(branches[int(which)], list(args))[0],
        lambda which, *types, branches: branches[0].ret.args[0].type,
        vjp=never("a test's"),
        jvp=never("a test's"),
        holds_lambdas=True,
    )
    yield made
    del PRIMITIVES["branching"]


def nested(depth: int, branches: int) -> Lambda:
    """A conditional nested ``depth`` deep, whose branches at each level are one object."""
    fn = parse("lambda %0: float64[3], %1: int64[] { %2: float64[3] = sin(%0); return %2 }")
    for _ in range(depth):
        x, i, y = (Local(local.type) for local in (*fn.params, fn.ret.args[0]))
        attrs = Attrs(branches=(fn,) * branches)
        fn = Lambda((x, i), [Bind((y,), PRIMITIVES["branching"], (i, x, i), attrs)], Ret((y,)))
    return fn


def test_bodies_in_a_tuple_print_indented_and_parse_back(branching):
    fn = parse(CHOICE)

    assert dumps(fn) == CHOICE.replace("},))", "}))")
    assert parse(dumps(fn)) == fn and hash(parse(dumps(fn))) == hash(fn)


def test_bodies_in_a_tuple_take_part_in_equality(branching):
    assert parse(CHOICE) == parse(CHOICE)
    assert parse(CHOICE) != parse(CHOICE.replace("neg", "abs"))


def test_bodies_in_a_tuple_are_evaluated_pickled_and_saved(branching, tmp_path):
    fn = check(parse(CHOICE))
    save(fn, tmp_path / "f.letir")
    x = np.arange(3.0)

    for same in (pickle.loads(pickle.dumps(fn)), load(tmp_path / "f.letir"), canonicalize(fn)):
        assert same == fn
        np.testing.assert_array_equal(run_forward(same, x, np.int64(1)), -x)


def test_check_finds_an_ill_formed_body_in_a_tuple(branching):
    fn = parse(CHOICE.replace("%6: float64[3]", "%6: float32[3]"))

    with pytest.raises(Exception, match="float32"):
        check(fn)


def test_an_effect_inside_a_tuple_of_bodies_is_found(branching):
    guarded = CHOICE.replace("return %6", "guard(%5, value=float64[3]{0, 0, 0})\n    return %6")

    assert [has_effect(parse(text).binds[0]) for text in (CHOICE, guarded)] == [False, True]


def test_map_bodies_replaces_bodies_in_place(branching):
    (bind,) = parse(CHOICE).binds
    first, second = bodies_of(bind)

    assert bodies_of(with_bodies(bind, [second, first])) == (second, first)
    assert with_bodies(bind, [first, second]) is bind


def test_an_identity_mapping_returns_the_same_program(branching):
    fn = parse(CHOICE)

    assert map_bodies(fn, lambda body: body) is fn


def test_a_shared_body_is_mapped_once_at_any_depth(branching):
    fn, seen = nested(50, branches=2), []

    def change(body):
        seen.append(body)
        return body.with_binds(body.binds)

    assert len(all_bodies(fn)) == 51
    assert map_bodies(fn, change) == fn
    assert len(seen) == 51


def test_bodies_may_nest_50_deep(branching):
    fn = nested(50, branches=1)

    assert check(fn) == parse(dumps(fn)) == pickle.loads(pickle.dumps(fn)) == canonicalize(fn)
    assert listing(fn).count("sin") == 1 and not has_effect(fn.binds[0])
    np.testing.assert_array_equal(run_forward(fn, np.zeros(3), np.int64(0)), np.zeros(3))

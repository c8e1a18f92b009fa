"""propagate_shapes: unknown types are inferred from the types of operands."""

import numpy as np
from hypothesis import given

import letir as lt
from letir.ast.bodies import all_bodies
from letir.ast.checker import retype
from letir.ast.terms import Bind, Lambda, Local
from letir.ast.text.parser import parse
from letir.ast.types import ArrayType
from letir.passes import propagate_shapes
from letir.testing import assert_same, programs


def test_unknown_types_are_filled_in():
    f = parse("lambda %0: float32[2, 3] { %1 = exp(%0); %2 = matmul(%1, %0); return %2 }")
    g = parse("lambda %0: float32[3, 3] { %1 = exp(%0); %2:y = matmul(%1, %0); return %2 }")

    assert propagate_shapes(f).binds[0].binders[0].type is ArrayType(np.float32, (2, 3))
    assert propagate_shapes(f).binds[1].binders[0].type is None  # types do not fit
    assert propagate_shapes(g).ret.args[0].type is ArrayType(np.float32, (3, 3))
    assert propagate_shapes(g).ret.args[0].name == "y"


def test_symbolic_sizes_become_numbers_where_they_are_known():
    f = parse("""lambda %0: float64[3] {
      %1: float64[n] = barrier(%0)
      %2: float64[n] = exp(%1)
      return %2
    }""")
    f = f.with_binds([Bind((Local(None),), *attributes(f.binds[0])), *f.binds[1:]])
    f = f.with_binds([f.binds[0], Bind(f.binds[1].binders, f.binds[1].op, f.binds[0].binders)])

    found = lt.check(propagate_shapes(f))

    assert [b.binders[0].type for b in found.binds] == [ArrayType(float, (3,))] * 2


def attributes(bind: Bind) -> tuple:
    return bind.op, bind.args, bind.attrs, bind.source


def test_a_type_that_cannot_be_inferred_stays_unknown():
    f = parse("lambda %0 { %1 = exp(%0); return %1 }")

    assert propagate_shapes(f) is f


def test_bodies_are_typed_by_the_operands_of_their_binds():
    f = parse("""
    lambda %0: bool[], %1: float64[3] {
      %2 = cond(%0, %1, on_true=lambda %3 { %4 = exp(%3); return %4 },
        on_false=lambda %5 { return %5 })
      %6 = neg(%2)
      return %6
    }""")

    found = lt.check(propagate_shapes(f))

    types = [b.type for body in all_bodies(found) for bind in body.binds for b in bind.binders]
    assert types == [ArrayType(float, (3,))] * 3
    assert_same(lt.run_forward(f, True, np.ones(3)), lt.run_forward(found, True, np.ones(3)))


def test_unknown_types_in_the_body_of_a_loop_are_filled_in():
    f = parse("""
    lambda %0: float64[3] {
      %1 = fori_loop(0, 3, %0, body=lambda %2: int64[], %3: float64[3] { %4 = exp(%3); return %4 })
      return %1
    }""")

    _, body = all_bodies(lt.check(propagate_shapes(f)))

    assert body.ret.args[0].type is ArrayType(float, (3,))


def test_a_body_that_two_binds_share_is_typed_for_each():
    f = parse(
        """
    lambda %0: float64[3], %1: float32[2] {
      %2, = checkpoint(%0, body=lambda %3 { %4 = exp(%3); return %4 }, saved=0)
      return %2
    }""".replace("%2, =", "%2 =")
    )
    (bind,) = f.binds
    x, y = f.params
    other = Local()
    f = Lambda((x, y), [bind, Bind((other,), bind.op, (y,), bind.attrs)], f.ret)

    found = lt.check(propagate_shapes(f))

    assert [b.binders[0].type for b in found.binds] == [
        *(ArrayType(float, (3,)), ArrayType(np.float32, (2,)))
    ]


def test_a_program_of_known_types_is_the_same_object():
    f = lt.trace(lambda x: np.exp(x) * x, np.ones(3))

    assert propagate_shapes(f) is f


@given(programs())
def test_propagation_restores_all_erased_types(program):
    """Every type that can be inferred is inferred, and results are unchanged."""
    f, args = program
    bare = untyped(f)

    found = lt.check(propagate_shapes(bare))

    assert_same(lt.run_forward(bare, *args), lt.run_forward(found, *args))
    for bind, expected in zip(
        found.binds, retype(f, *[p.type for p in f.params]).binds, strict=True
    ):
        assert [b.type for b in bind.binders] == [b.type for b in expected.binders]


def untyped(f: Lambda) -> Lambda:
    """``f`` with the types of its parameters only."""
    names = {param: param for param in f.params}
    binds = []
    for bind in f.binds:
        args = tuple([names.get(a, a) if type(a) is Local else a for a in bind.args])
        binders = tuple([Local(None, b.name) for b in bind.binders])
        names.update(zip(bind.binders, binders, strict=True))
        binds.append(Bind(binders, bind.op, args, bind.attrs, bind.source))
    args = tuple([names.get(a, a) if type(a) is Local else a for a in f.ret.args])
    return Lambda(f.params, binds, type(f.ret)(args), f.in_tree, f.out_tree)

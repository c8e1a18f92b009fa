"""Facts that ``peephole`` uses: sharing of memory, bodies, symbolic sizes."""

import numpy as np
import pytest

import letir as lt
from letir import passes, run_forward
from letir.ast.bodies import all_bodies
from letir.ast.primitive import PRIMITIVES as OPS
from letir.ast.types import ArrayType, Size
from letir.passes import peephole
from letir.testing import assert_same
from tests.passes.exactness import assert_unchanged, ops, program


def test_a_result_never_becomes_an_argument_or_another_result():
    """[C4]."""
    three = ArrayType(float, (3,))
    fn = program(lambda x: (x * 1, x - 0, OPS["copy"](x)), three)
    assert fn is peephole(fn)

    twice = program(lambda x: ((y := x + x), y * 1, y * 1), three)
    assert_unchanged(peephole, twice, np.ones(3))


def test_a_result_becomes_a_new_array_that_only_it_holds():
    three = ArrayType(float, (3,))

    assert ["add"] == ops(peephole(program(lambda x: (x + x) * 1, three)))
    assert ["add"] == ops(peephole(program(lambda x: (x + x).T, three)))


def test_a_view_of_a_result_is_another_object():
    fn = program(lambda x: ((y := x + x), OPS["transpose"](y)), ArrayType(float, (3,)))
    y, view = run_forward(peephole(fn), np.ones(3))

    assert view is not y
    assert np.shares_memory(y, view)


def test_a_view_of_an_argument_is_not_the_argument():
    x = np.ones((2, 3))
    y = run_forward(peephole(program(lambda x: x.T.T, ArrayType(float, (2, 3)))), x)

    assert y is not x
    assert np.shares_memory(x, y)


def test_a_read_never_moves_past_a_write_to_an_argument():
    def function(x, new):
        y = x.astype("float64")
        OPS["write_back"](x, new)
        return y.astype("float32")

    three = ArrayType(np.float32, (3,))
    fn = program(function, three, three)

    assert_same(
        run_forward(fn, np.ones(3, "f"), np.zeros(3, "f")),
        run_forward(peephole(fn), np.ones(3, "f"), np.zeros(3, "f")),
    )


def test_each_body_is_rewritten_once():
    inner = lt.checkpoint(lambda x: (x * 2).T.T * 1)
    fn = lt.trace(lambda x: inner(inner(x)), np.ones((2, 3)))

    found = peephole(fn)

    bodies = {id(bind.attrs["body"]) for bind in found.binds}
    assert len(bodies) == len({id(bind.attrs["body"]) for bind in fn.binds})
    assert ["mul"] == ops(found.binds[0].attrs["body"])
    assert_same(fn(np.ones((2, 3))), found(np.ones((2, 3))))


def test_a_body_for_other_types_does_not_change():
    fn = lt.trace(lt.checkpoint(lambda x: (x * 2).astype("float64")), np.ones(3))
    other = lt.retype(fn, ArrayType(np.float32, (3,)))

    assert np.float64 == peephole(other)(np.ones(3, "f")).dtype


def test_symbolic_sizes_are_compared_by_name():
    n = Size.named("n")
    kind = ArrayType(float, (n, 3))

    def function(x, y):
        sizes = OPS["size"](x + y), OPS["size"](x * y)
        return OPS["equal"](sizes[0][0], sizes[1][0]), sizes[0][1]

    found = ops(peephole(program(function, kind, kind)))

    assert found.count("size") == 1
    assert "constant" in found


def test_private_symbolic_sizes_are_never_compared():
    kind = ArrayType(float, (Size.named("_trips"),))
    fn = program(lambda x, y: (OPS["size"](x * 2), OPS["size"](y * 2)), kind, kind)

    assert fn is peephole(fn)


EACH = [
    *(passes.peephole, passes.canonicalize_ops, passes.remove_implicit_expands, passes.decompose),
    *(passes.lower_tuples, passes.erase_number_types, passes.in_place_check),
]


@pytest.mark.parametrize("change", EACH, ids=lambda change: change.__name__)
def test_nested_bodies_are_rewritten_at_any_depth(change):
    x = np.ones((2, 2))

    def innermost(x):
        y = np.square(x) * 1 + OPS["broadcast_to"](x[0], (2, 2))
        y = OPS["linear"](y, y, x[0]) + OPS["split"](x, 2)[1]
        return y.at[0].set(1.0) + 2 * y

    fn = lt.trace(innermost, x)
    for _ in range(50):
        fn = lt.checkpoint(fn)
    found = change(fn)

    assert len(all_bodies(found)) == 51
    assert all_bodies(found)[-1] != all_bodies(fn)[-1]
    assert_same(fn(x), found(x))


def test_a_product_of_transposed_stacks_is_not_taken_for_rows():
    def function(x):
        x = x.transpose(1, 0, 2, 3)
        return np.copy(np.matmul(x, x), order="C")

    x = np.arange(48.0).reshape(3, 4, 2, 2)

    assert not np.matmul(*[x.transpose(1, 0, 2, 3)] * 2).flags.c_contiguous
    assert run_forward(peephole(lt.trace(function, x)), x).flags.c_contiguous

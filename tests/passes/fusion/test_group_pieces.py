"""``with_group_pieces``: groups that are too long for one kernel are computed in pieces."""

import numpy as np
import pytest

import letir as lt
from letir.passes import fuse
from letir.passes.fusion.group_pieces import with_group_pieces
from letir.testing import assert_same

X, Y = np.linspace(0.0, 1.0, 500), np.linspace(1.0, 2.0, 500)


def trajectory(x, y, steps=60, step=lambda x, y: x * 0.5 + y):
    points = []
    for _ in range(steps):
        x = step(x, y)
        points.append(x)
    return points


def pieces_of(f, *, max_arrays=30, min_elements=1, fits=lambda body: True):
    """(the program in pieces, its groups)."""
    fn = with_group_pieces(fuse(lt.trace(f, X, Y)), fits, max_arrays, min_elements)
    return fn, [bind for bind in fn.binds if bind.op.name == "fused"]


def test_a_group_with_a_result_for_each_step_has_pieces_of_few_arrays():
    fn, pieces = pieces_of(trajectory)

    assert len(pieces) == 3
    assert all(len(piece.args) + len(piece.binders) <= 30 for piece in pieces)
    assert_same(trajectory(X, Y), fn(X, Y))


@pytest.mark.parametrize("function, most", [(np.sin, 8), (np.negative, 107)])
def test_a_long_chain_has_pieces_of_as_many_operations_as_instructions_allow(function, most):
    def chain(x, y):
        for _ in range(400):
            x = function(x) * 0.5 + y
        return x

    fn, pieces = pieces_of(chain)
    counts = [len(piece.attrs["body"].binds) // 3 for piece in pieces]

    assert max(counts) <= most
    assert sum(counts) >= 380  # operations of cut steps are not counted
    assert_same(chain(X, Y), fn(X, Y))


def test_short_and_small_groups_stay():
    _, (group,) = pieces_of(lambda x, y: trajectory(x, y, steps=20))
    assert len(group.binders) == 20

    _, (group,) = pieces_of(trajectory, min_elements=1 << 20)
    assert len(group.binders) == 60


def test_a_group_with_a_piece_that_has_no_kernel_stays():
    def two(x, y):
        other = trajectory(x, y, step=lambda x, y: np.cos(x) + y)
        return trajectory(x[::-1] @ np.ones((500, 500)), y), other

    def has_no_cosine(body):
        return all(bind.op.name != "cos" for bind in body.binds)

    fn, groups = pieces_of(two, fits=has_no_cosine)

    assert sorted(len(group.binders) for group in groups)[-1] == 60
    assert len(groups) > 2
    assert_same(two(X, Y), fn(X, Y))


def test_a_value_that_is_returned_twice_and_a_last_operation_of_another_piece():
    def f(x, y):
        points = trajectory(x, y)
        return [*points, points[3], points[-1] - points[0]]

    fn, _ = pieces_of(f)

    assert_same(f(X, Y), fn(X, Y))

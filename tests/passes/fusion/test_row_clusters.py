"""Clusters of elementwise binds and reductions: what belongs to one, and what must stay outside."""

import numpy as np

import letir as lt
from letir.ast.terms import Lambda
from letir.passes.fusion.regrouping import regroup_clusters, without_groups
from letir.passes.fusion.row_clusters import row_clusters

X = np.arange(2000.0).reshape(40, 50)


def program(f, *args) -> Lambda:
    """The optimised program of a function, without groups."""
    return without_groups(lt.compile(lt.trace(f, *args)).optimized)


def clusters_of(f, *args) -> list[tuple[str, int]]:
    """The operations of each cluster, with the number of axes before its columns."""
    fn = program(f, *args)
    found = row_clusters(fn, lambda bind: True, min_elements=1)
    return [(" ".join([fn.binds[n].op.name for n in c.members]), c.split[1]) for c in found]


def test_a_full_reduction_joins_its_operand():
    assert [("mul sum", 0)] == clusters_of(lambda x: (x * x).sum(), X)
    assert [("mul sum", 1)] == clusters_of(lambda x, row: (x * row).sum(), X, X[0])


def test_a_reduction_alone_is_left_to_numpy():
    assert [] == clusters_of(lambda x: x.sum(axis=1), X)
    assert [] == clusters_of(lambda x: np.log(x.sum(axis=1)), X)


def test_rows_use_their_own_reductions():
    def f(x):
        centred = x - x.mean(axis=1)[:, None]
        return centred / np.sqrt((centred * centred).mean(axis=1))[:, None]

    assert 1 == len(clusters_of(f, X))


def test_columns_are_reduced_but_not_used():
    def f(x):
        return (x * 2) / (x * 2).sum(axis=0)

    assert [("mul sum", 1)] == clusters_of(f, X)


def test_operands_may_be_broadcast_along_any_axes_before_the_columns():
    x, y = np.ones((5, 6, 7)), np.ones((6, 7))
    row = np.ones(6)

    assert [("mul sum mul", 2)] == clusters_of(lambda x, y: (x * y).sum(axis=2) * row, x, y)
    assert [("mul sum", 2)] == clusters_of(lambda x, y: (x * y).sum(axis=1), x, y)


def test_broadcast_values_of_rows_are_read_in_the_cluster():
    def f(x):
        return np.where(x > 0, np.broadcast_to(x.max(axis=1, keepdims=True), x.shape), x)

    assert 1 == len(clusters_of(f, X))


def test_views_of_row_values_belong_to_the_cluster():
    assert [("max add reshape mul", 1)] == clusters_of(
        lambda x: x * (x.max(axis=1) + 1).reshape(-1, 1), X
    )
    assert [("max sqrt index sub", 1)] == clusters_of(
        lambda x: x - np.sqrt(x.max(axis=1))[:, None], X
    )


def test_a_sum_of_all_is_used_where_all_is_one_row():
    def f(x):
        return (x * x) / (x * x).sum(), x.max()

    assert [("mul sum div max", 0)] == clusters_of(f, X)


def test_a_value_that_depends_on_a_cluster_from_outside_does_not_join_it():
    def f(x):
        y = x * x
        return y.sum(axis=1), (y + (y @ x.T).sum()).max(axis=1)

    assert [("mul sum", 1), ("add max", 1)] == clusters_of(f, X)


def test_nothing_moves_across_an_effect():
    def f(x):
        y = x * x
        lt.debug.print("between {}", x[0, 0])
        return y.sum(axis=1), (y * 2).sum(axis=1)

    assert [("sum mul sum", 1)] == clusters_of(f, X)


def test_few_large_operands_wait_for_a_cluster():
    def f(x, others):
        total = x * 0
        for other in others:
            total = total + (other @ other.T) @ x
        return total.sum(axis=1)

    assert all(len(names.split()) < 10 for names, _ in clusters_of(f, X, [X] * 10))


def test_long_programs_are_several_clusters():
    def f(x):
        for _ in range(60):
            x = x / x.max(axis=1, keepdims=True) + 1
        return x

    assert 1 < len(clusters_of(f, X)) < 5


def test_regrouped_programs_keep_their_order_and_results():
    def f(x):
        y = x * x
        s = y.sum(axis=1)
        return (y @ x.T) * s, y - s[:, None], s

    fn = program(f, X)
    found = regroup_clusters(
        fn, row_clusters(fn, lambda bind: True, min_elements=1), lambda *given: None
    )

    assert found is fn

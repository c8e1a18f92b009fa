"""Groups for kernels that read parts of arrays, or rolled arrays, and write into parts."""

import numpy as np
import pytest

import letir as lt
from letir.passes.fusion.fusing import fuse
from letir.passes.fusion.stencil_groups import shifted_binds, stencil_groups, with_rolled_groups

X = np.random.default_rng(0).normal(size=(12, 20))


def groups_of(f, *args) -> list:
    """The stencils of a function's groups."""
    fn = with_rolled_groups(fuse(lt.trace(f, *args)), (), False)
    fused = [n for n, bind in enumerate(fn.binds) if bind.op.role == "fused"]
    return [*stencil_groups(fn, fused, False, lambda body: 1 << 20).values()]


def near(a):
    return np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1)


def test_one_group_reads_all_rolls_of_an_array():
    (group,) = groups_of(lambda a: (near(a) - 4 * a) / 2, X)

    assert 1 == len(group.arrays)
    assert ["roll"] * 4 == [view.op.name for view in group.views]


def test_a_roll_of_a_result_needs_the_whole_result_first():
    groups = groups_of(lambda a: near(near(a) + a), X)

    assert 2 == len(groups)


def rolled_values(fn) -> list:
    """The results of ``np.roll`` outside of groups."""
    return [bind.binders[0] for bind in fn.binds if bind.op.role == "roll"]


def test_rolls_that_must_be_made_anyway_do_not_join_groups():
    kept = with_rolled_groups(fuse(lt.trace(lambda a: (near(a), np.roll(a, 1, 1)), X)), (), False)
    far = with_rolled_groups(fuse(lt.trace(lambda a: np.roll(a, 9, 1) * 2 + a, X)), (), False)

    assert 1 == len([arg for arg in kept.ret.args if arg in rolled_values(kept)])
    assert [] == [*stencil_groups(far, [1], False, lambda body: 1 << 20)]
    with_sort = fuse(lt.trace(lambda a: np.sort(np.roll(a, 1, 0)) + a * 2, X))
    assert with_rolled_groups(with_sort, (), False) is with_sort


def test_an_operation_without_a_kernel_reads_rolls_as_arrays():
    fn = fuse(lt.trace(lambda a: np.sin(np.roll(a, 1, 0)) * 2 + a, X))

    assert with_rolled_groups(fn, (), True) is fn  # NumPy computes the exact sine
    assert with_rolled_groups(fn, (), False) is not fn


def test_parts_of_rolls_are_read_where_the_array_is():
    def f(a):
        total = a[1:]
        for shift in (1, -1, 2, -2):
            total = total * 0.5 + np.roll(a, shift, 1)[1:]
        return total

    (group,) = groups_of(f, np.ones((200, 200)))

    assert 4 == [view.op.name for view in group.views].count("roll")


def test_groups_that_would_be_too_long_for_a_kernel_stay_as_they_are():
    def f(a, steps):
        total = a
        for k in range(steps):
            total = total * 0.5 + np.roll(a, 1, 0) * (k + 1.0)
        return total

    few, many = (fuse(lt.trace(lambda a, n=n: f(a, n), X)) for n in (20, 200))
    assert with_rolled_groups(few, (), False) is not few
    assert with_rolled_groups(many, (), False) is many


@pytest.mark.parametrize("f", [lambda a: near(a) * a, lambda a: near(np.sin(a))[1:] + a[1:] * 2])
def test_regrouped_programs_give_the_same_results(f):
    fn = with_rolled_groups(fuse(lt.trace(f, X)), (), False)

    np.testing.assert_array_equal(f(X), lt.run_forward(fn, X))


def written_from(source):
    """A function that writes a formula of ``source(a, b)`` into a part of ``b``."""

    def f(a, b):
        b = b * 1.0
        c = source(a, b)
        b[1:-1, 1:-1] = c[2:, 1:-1] * 0.5 + c[:-2, 1:-1]
        return b

    return f


def test_the_only_use_of_a_result_is_a_write_into_a_part():
    (group,) = groups_of(written_from(lambda a, b: a), X, X)

    assert "index_set" == group.write.bind.op.name


@pytest.mark.parametrize("source", [lambda a, b: b, lambda a, b: b[...], lambda a, b: b[::1]])
def test_a_group_that_reads_the_array_that_it_changes_makes_a_new_one(source):
    (group,) = groups_of(written_from(source), X, X)

    assert group.write.is_read
    assert group.lowered.shape == X.shape


def test_a_small_part_of_an_array_is_copied_into_the_array():
    def f(a):
        a = a * 1.0
        a[1:3, 1:9] = a[2:4, 1:9] * 0.5 + a[:2, :8]
        return a

    (group,) = groups_of(f, X)

    assert group.write is None


def test_rows_around_a_part_are_copied_by_kernels_of_one_thread_only():
    fn = fuse(lt.trace(written_from(lambda a, b: b), X, X))
    (n,) = [n for n, bind in enumerate(fn.binds) if bind.op.role == "fused"]

    for least_size in (10 * 18, 10 * 18 + 1):  # elements of the part
        (group,) = stencil_groups(fn, [n], False, lambda body, least=least_size: least).values()
        assert (least_size > 10 * 18) == group.target.copies_rows


def test_a_new_array_is_made_if_a_quarter_of_it_is_copied_at_most():
    def f(a, end):
        a = a * 1.0
        a[:end] = a[:end] * 0.5 + a[12 - end :]
        return a

    for end in (8, 9):
        (write,) = [group.write for group in groups_of(lambda a, end=end: f(a, end), X)] or [None]
        assert (end == 9) == (write is not None)


def test_a_write_of_any_size_into_another_array_is_in_place():
    def f(a, b):
        b = b * 1.0
        b[:1, :16] = a[1:2, 1:17] * 0.5 + a[2:3, :16]
        return b

    (group,) = groups_of(f, X, X)

    assert not group.write.is_read


def test_a_view_of_the_written_array_is_read_before_the_write():
    def f(b):
        b = b * 1.0
        c = b.T
        b[1:-1, 1:-1] = c[2:, 1:-1] * 0.5 + c[:-2, 1:-1]
        return b

    (group,) = groups_of(f, np.ones((30, 30)))

    assert group.write.is_read


def between(act):
    """The writes of a group of which ``act(a, b)`` is between the computation and the write."""

    def f(a, b):
        a, b = a * 1.0, b * 1.0
        part = a[2:, 1:-1] * 0.5 + a[:-2, 1:-1]
        more = act(a, part)
        b[1:-1, 1:-1] = part
        return a, b, more

    fn = fuse(lt.trace(f, X, X))
    fused = [n for n, bind in enumerate(fn.binds) if bind.op.role == "fused"]
    return [g.write for g in stencil_groups(fn, fused, False, lambda body: 1 << 20).values()]


def test_a_group_does_not_move_to_its_write_across_updates_effects_and_loops():
    def update(a, part):
        a[0] = 1.0

    def effect(a, part):
        lt.debug.print("between")

    def loop(a, part):
        return lt.fori_loop(0, 3, lambda i, x: x * 2.0, a[0])

    for act in (update, effect, loop):
        assert between(act) == [None]
    assert between(lambda a, part: None) != [None]


def test_a_result_that_something_else_reads_before_the_write_is_an_array():
    assert between(lambda a, part: np.sort(part)) == [None]


def test_a_result_into_which_another_array_is_written_is_an_array():
    def f(a):
        part = a[1:] * 0.5 + a[:-1]
        part[:] = a[1:]
        return part

    assert [None] == [group.write for group in groups_of(f, X)]


def test_a_copy_that_something_else_reads_is_made():
    def f(a, b, read):
        c = b.copy()
        part = a[2:, 1:-1] * 0.5 + a[:-2, 1:-1]
        before = read(c)
        c[1:-1, 1:-1] = part
        return c, before

    for read, is_kept in ((np.sort, True), (lambda c: None, False)):
        (group,) = groups_of(lambda a, b, read=read: f(a, b, read), X, X)
        assert is_kept == (not group.write.is_read)


def test_a_group_with_two_results_writes_none_of_them_into_an_array():
    def f(a, b):
        b = b * 1.0
        part = a[2:, 1:-1] * 0.5 + a[:-2, 1:-1]
        other = part * 2.0
        b[1:-1, 1:-1] = part
        return b, other

    assert groups_of(f, X, X)
    assert all(group.write is None for group in groups_of(f, X, X))


def test_a_result_that_is_used_again_or_converted_is_an_array():
    def again(a, b):
        part = a[2:, 1:-1] * 0.5 + a[:-2, 1:-1]
        b = b * 1.0
        b[1:-1, 1:-1] = part
        return b, part

    def converted(a, b):
        b = b.astype(np.float32)
        b[1:-1, 1:-1] = a[2:, 1:-1] * 0.5 + a[:-2, 1:-1]
        return b

    def repeated(a, b):
        b = b * 1.0
        b[1:-1, 1:-1] = a[5:6, 1:-1] * 0.5 + a[6:7, 1:-1]
        return b

    for f in (again, converted, repeated):
        assert [None] == [group.write for group in groups_of(f, X, X)]


def test_single_operations_on_parts_of_rows_and_rolls_are_found():
    def f(a):
        return a[1:, 1:] - a[:-1, :-1], np.roll(a, 1, 0) - a, a[1:] - a[:-1], a[1:, ::2] * 2

    fn = lt.trace(f, X)
    assert ["sub", "sub", "mul"] == [fn.binds[n].op.name for n in shifted_binds(fn, False)]


def test_single_operations_that_numpy_computes_as_fast_are_not_found():
    def f(a, index):
        return np.roll(a, 9, 1) * 2, np.roll(a[0], 1) * 2, a[index, :3] + a[index, 1:4]

    fn = lt.trace(f, X, np.array([1, 3]))
    assert [] == [*shifted_binds(fn, False)]

    exact = lt.trace(lambda a: np.sin(a[1:, 1:]), X)
    assert [] == [*shifted_binds(exact, True)]
    assert [1] == [*shifted_binds(exact, False)]


def test_axes_added_to_a_number_are_no_part_of_rows():
    fn = lt.trace(lambda a, x: a * x[None, None], X, np.array(2.0))

    assert [] == [*shifted_binds(fn, False)]


def steps(access):
    """The stencils of 20 equal groups, on parts of an array for each ``k``."""

    def f(a, b):
        b = b * 1.0
        for k in range(1, 21):
            access(a, b, k)
        return b

    return groups_of(f, np.ones((30, 200)), np.ones((30, 200)))


def test_a_loop_over_rows_shares_a_kernel_of_rows():
    def row(a, b, k):
        b[k] = a[k] * 0.5 + a[k - 1]

    def end(a, b, k):
        b[0, k:] = a[1, k:] * 0.5 + a[2, k:]

    assert not steps(row)
    assert not steps(end)


@pytest.mark.parametrize(("rows", "writes"), [(8, True), (9, False)])
def test_equal_groups_write_into_eight_different_parts_at_most(rows, writes):
    def halves(a, b, k):
        row = a[k]
        b[k % rows, :100] = row[:100] * 0.5 + row[100:]

    assert [writes] * 20 == [group.write is not None for group in steps(halves)]


def test_parts_of_rows_at_the_same_places_are_read_in_place():
    def halves(a, b, k):
        row = a[k]
        b[k, :100] = row[:100] * 0.5 + row[100:]

    found = steps(halves)

    assert len(found) == 20
    assert len({str(group.lowered.kernel) for group in found}) == 1
    assert all(group.write is None for group in found)

"""Groups that read and write parts of arrays: results and arguments are those of NumPy."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import letir as lt
from letir.executor.compiled import kernels_setting
from letir.testing import assert_close, assert_same

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)
from letir.executor.kernels.stencil_calls import StencilCall

RNG = np.random.default_rng(5)
A, B = RNG.normal(size=(2, 90, 200))
LARGE = RNG.normal(size=(700, 700))


def laplacian(x):
    return x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2] - 4 * x[1:-1, 1:-1]


def alternate(a, b):
    for _ in range(3):
        b[1:-1, 1:-1] = 0.2 * laplacian(a) + a[1:-1, 1:-1]
        a[1:-1, 1:-1] = 0.2 * laplacian(b) + b[1:-1, 1:-1]
    return a


def onto_itself(a):
    for _ in range(3):
        a[1:-1, 1:-1] = 0.2 * laplacian(a) + a[1:-1, 1:-1]
        a[0] = a[1]
    return a


def rolled(a):
    for _ in range(3):
        near = np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1)
        a = a + 0.1 * (near - 4 * a)
    return a


def into_a_copy(a):
    for _ in range(2):
        b = a.copy()  # in C order, unlike np.copy
        b[1:-1, 1:-1] = 0.2 * laplacian(a)
        a = np.copy(b)
        a[2:] = b[:-2] * 0.5 + b[2:]
    return a, b


def stencils_of(f, *args) -> list:
    """The kernels on whole arrays in the plan of a function."""
    binds = lt.compile(lt.trace(f, *args)).plan.binds
    found = [bind for bind in binds if bind.op.role == "kernel"]
    return [bind for bind in found if type(bind.op.impl.call) is StencilCall]


def check_calls(f, *args, calls: int = 10):
    """Whether calls of ``jit`` give the results of NumPy, and change the arguments as NumPy does.

    The first calls run the steps of the plan, later ones its function.
    """
    fast = lt.jit(f)
    ours, theirs = [[x.copy(order="K") for x in args] for _ in range(2)]
    for _ in range(calls):
        assert_same(f(*theirs), fast(*ours))
        assert_same(theirs, ours)


def test_a_write_into_a_part_is_one_kernel_without_views():
    binds = lt.compile(lt.trace(alternate, A, B)).plan.binds

    assert {"kernel", "write_back"} == {bind.op.name for bind in binds}
    updates = [bind.op.update is not None for bind in stencils_of(alternate, A, B)]
    assert [False, False, True, True, True, True] == updates  # the first ones copy the arguments


def test_a_group_that_reads_the_array_that_it_changes_makes_a_new_array():
    updates = [bind.op.update is not None for bind in stencils_of(onto_itself, A)]

    assert [False, False, False] == updates


def test_rolled_arrays_are_not_made():
    assert "roll" not in {bind.op.name for bind in lt.compile(lt.trace(rolled, A)).plan.binds}


@pytest.mark.parametrize("f", [alternate, onto_itself, rolled, into_a_copy])
def test_results_and_changed_arguments_are_those_of_numpy(f):
    args = (A, B) if f is alternate else (A,)

    check_calls(f, *args)
    check_calls(f, *[np.asfortranarray(x) for x in args])
    check_calls(f, *[x.astype(np.float32) for x in args])


@pytest.mark.parametrize("f", [alternate, onto_itself, rolled, into_a_copy])
def test_arrays_in_other_orders_are_refused_by_the_kernel_and_computed(f):
    program = lt.compile(lt.trace(f, *[A, B][: 2 if f is alternate else 1]))
    layouts = [
        np.asfortranarray,
        lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
        lambda x: x.T.copy().T,
    ]
    layouts += [lambda x: np.repeat(x, 2, axis=1)[:, ::2]]
    for layout in layouts:
        ours, theirs = [
            [layout(x) for x in (A, B)][: len(program.program.params)] for _ in range(2)
        ]
        for _ in range(10):
            result, expected = program(*ours), f(*theirs)
            assert_same(expected, result)
            for x, y in zip(lt.tree.leaves(expected), lt.tree.leaves(result), strict=True):
                assert x.strides == y.strides


def test_columns_of_a_matrix_are_copied_for_a_large_result():
    points = np.random.default_rng(0).normal(size=(200, 3))

    def f(points, scale):
        return np.exp(-((points[:, 0][:, None] - points[:, 1][None]) ** 2) * scale)

    for scale in (0.5, np.float64(0.5), np.array(0.5)):
        (bind,) = stencils_of(f, points, scale)

        assert bind.op.impl.stencil is None  # a plan calls no kernel that would read with gaps
        compiled = lt.compile(lt.trace(f, points, scale))
        assert_close(f(points, scale), compiled(points, scale), rtol=1e-14)


def test_arguments_that_share_memory_are_computed_as_by_numpy():
    def f(a, b):
        b[1:-1, 1:-1] = laplacian(a)
        return a * 2

    fast = lt.jit(f)
    for offset in (0, 1, 200, 201):
        ours, theirs = np.resize(A, 92 * 200), np.resize(A, 92 * 200)
        for _ in range(3):
            parts = [
                [m[:18_000].reshape(90, 200), m[offset : offset + 18_000]] for m in (ours, theirs)
            ]
            (a, b), (c, d) = [(x, y.reshape(90, 200)) for x, y in parts]
            assert_same(f(c, d), fast(a, b))
            assert_same(theirs, ours)


def test_an_array_that_is_still_needed_is_copied():
    def f(a, b):
        c = a * 2
        kept = c[3:]
        c[1:-1, 1:-1] = laplacian(b)
        d = c.copy()
        c[1:-1, 1:-1] = laplacian(d)
        return kept, c, d

    check_calls(f, A, B)
    check_calls(lambda a, b: (f(a, b)[1], a, b), A, B)


def test_views_of_the_written_array_see_the_write():
    def f(a):
        b = np.zeros((92, 202))
        inner = b[1:-1, 1:-1]
        inner[1:, 1:] = a[1:, :-1] * 2 + a[:-1, 1:]
        inner[:, :] = inner + laplacian(b)
        return b, inner[0]

    check_calls(f, A)


def test_warnings_and_errors_are_those_of_numpy_and_name_the_line():
    def f(a):
        b = np.zeros(a.shape)
        b[1:-1, 1:-1] = 1 / a[1:-1, :-2] + a[1:-1, 2:]
        return b

    fast, zeros = lt.jit(f), np.zeros((90, 200))
    for _ in range(10):
        assert_same(f(A), fast(A))
        with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide") as caught:
            result = fast(zeros)
        assert 1 == len(caught)
        assert __file__ == caught[0].filename
        with np.errstate(divide="ignore"):
            assert_same(f(zeros), result)
            assert_same(f(zeros), fast(zeros))
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError, match="in divide"):
            fast(zeros)


def test_after_an_error_in_the_middle_arguments_are_as_numpy_leaves_them():
    def f(a, b):
        b[1:-1, 1:-1] = laplacian(a)
        b[1:, 1:] = np.sqrt(b[:-1, :-1])
        return b

    fast = lt.jit(f)
    with np.errstate(invalid="ignore"):
        fast(A, B.copy())
    for _ in range(10):
        ours, theirs = B.copy(), B.copy()
        for function, changed in ((f, theirs), (fast, ours)):
            with np.errstate(invalid="raise"), pytest.raises(FloatingPointError, match="in sqrt"):
                function(A, changed)
        assert_same(theirs, ours)


def test_after_a_guard_that_fails_nothing_has_been_written():
    def f(a, b):
        b[1:-1, 1:-1] = laplacian(a) * 2
        if b[5, 5] > 0:
            b[1:-1, 1:-1] = laplacian(a)
        return b

    fast = lt.jit(f)
    for sign in (1, -1, -1, 1, -1, 1, 1, 1, -1, -1, 1, -1):
        ours, theirs = B.copy(), B.copy()
        assert_same(f(sign * A, theirs), fast(sign * A, ours))
        assert_same(theirs, ours)


def test_nans_in_comparisons_are_computed():
    def f(a):
        return np.where(a[1:, 1:] > a[:-1, :-1], a[1:, :-1], 0.0)

    with_nan = A.copy()
    with_nan[3, 4] = np.nan
    check_calls(f, with_nan)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_large_arrays_are_cut_into_rows(threads):
    lt.set_num_threads(threads)
    try:
        for f in (alternate, onto_itself, rolled)[:3]:
            check_calls(f, *([LARGE, LARGE[::-1].copy()] if f is alternate else [LARGE]), calls=2)
        check_calls(lambda x: np.sqrt(x[::2, 1:] ** 2) * x[1::2, :-1] + x[0, 1:], LARGE, calls=2)
    finally:
        lt.set_num_threads(None)


def test_integers_and_booleans_are_read_and_written():
    def f(z):
        near = z[:-2, 1:-1] + z[2:, 1:-1] + z[1:-1, :-2] + z[1:-1, 2:]
        born, kept = (near == 3) & (z[1:-1, 1:-1] == 0), (near > 1) & (z[1:-1, 1:-1] == 1)
        z[1:-1, 1:-1] = born | kept
        return z, born

    check_calls(f, (A > 0).astype(int))
    check_calls(f, (A > 0).astype(np.int8))


def test_a_program_that_rolls_an_empty_array_has_kernels():
    f, empty = lambda a, e: (rolled(a), np.roll(e, 1, 0)), np.zeros((0, 3))

    assert stencils_of(f, A, empty)
    check_calls(f, A, empty)


def test_a_kernel_with_several_results_is_called_for_arrays_of_any_size():
    def f(x):
        near = x[2:] * x[:-2]
        return np.sqrt(near * near), near + x[1:-1]

    (bind,) = stencils_of(f, LARGE)

    for y, expected in zip(bind.op.impl(np, LARGE), f(LARGE), strict=True):
        assert_same(expected, y)
    check_calls(f, LARGE, calls=2)


def test_a_kernel_whose_operand_must_stay_writes_into_a_copy():
    def f(a):
        b = np.sort(a)
        b[1:-1, 1:-1] = laplacian(a)
        return b

    (bind,) = [bind for bind in stencils_of(f, LARGE) if bind.op.update]
    target = np.sort(LARGE)
    result = bind.op.impl(np, target, LARGE)

    np.testing.assert_array_equal(np.sort(LARGE), target)
    np.testing.assert_array_equal(f(LARGE), result)


def test_bodies_of_loops_have_such_kernels_too():
    def f(a, n):
        def step(_, x):
            return x.at[1:-1, 1:-1].set(x[1:-1, 1:-1] + 0.1 * laplacian(x))

        return lt.fori_loop(0, n, step, a)

    def plain(a, n):
        a = a.copy()
        for _ in range(n):
            a[1:-1, 1:-1] = a[1:-1, 1:-1] + 0.1 * laplacian(a)
        return a

    fast = lt.jit(f)
    for _ in range(3):
        np.testing.assert_array_equal(plain(A, 5), fast(A, 5))


def updated(a):
    for _ in range(3):
        a = a + 0
        a[1:-1, 1:-1] = a[1:-1, 1:-1] + 0.1 * laplacian(a)
    return a


def padded(a):
    b = np.pad(a, 1)
    return laplacian(b) * a


@pytest.mark.parametrize("f", [updated, padded, rolled, lambda a: laplacian(a) ** 2])
def test_gradients_have_the_bits_of_gradients_without_kernels(f):
    for function in (lt.grad(lambda a: (f(a) ** 2).sum()), lt.vjp(f, A)[1]):
        args = (A,) if hasattr(function, "__wrapped__") else (f(A),)
        expected = lt.jit(function, kernels="off")(*args)

        fast = lt.jit(function)
        for _ in range(10):
            assert_same(expected, fast(*args))


def test_parts_of_gradients_are_not_written_into_zeros():
    gradient = lt.trace(lt.grad(lambda a: (updated(a) ** 2).sum()), A)

    names = [bind.op.name for bind in lt.compile(gradient).plan.binds]
    assert "assemble" not in names


@pytest.mark.parametrize("f", [alternate, onto_itself, rolled, into_a_copy])
def test_no_index_is_outside_of_an_array(f, everything_pays, monkeypatch):
    monkeypatch.setenv("LETIR_CHECK_KERNELS", "1")

    check_calls(f, *[x[:7, :21].copy() for x in (A, B)][: 2 if f is alternate else 1], calls=2)


# ---- generated programs ----

SHAPE = (5, 26)
SHIFTS = st.integers(0, 2)


@st.composite
def parts(draw):
    """A part of three rows of 20 elements: their offset, and whether they are read backwards."""
    back = draw(st.sampled_from([1, 1, 1, -1])), draw(st.sampled_from([1, 1, 1, 1, -1]))
    slices = []
    for n, (length, step) in enumerate(zip((3, 20), back, strict=True)):
        start = draw(SHIFTS) + (n and draw(st.sampled_from([0, 3])))
        part = slice(start, start + length)
        slices.append(
            part if step > 0 else slice(start + length - 1, start - 1 if start else None, -1)
        )
    return tuple(slices)


@st.composite
def statements(draw):
    """(kind, array written, part, arrays and parts read, coefficient)."""
    kind = draw(st.sampled_from(["set", "set", "add", "fill", "row", "roll", "new", "view"]))
    reads = [(draw(st.integers(0, 2)), draw(parts())) for _ in range(draw(st.integers(1, 3)))]
    return kind, draw(st.integers(0, 2)), draw(parts()), reads, draw(st.sampled_from([0.5, 1, -2]))


def run_statements(program, arrays):
    """The program on arrays, which it changes."""
    arrays = list(arrays)
    views = []
    for kind, n, part, reads, factor in program:
        value = factor * arrays[reads[0][0]][reads[0][1]]
        for m, read in reads[1:]:
            value = value - arrays[m][read] * factor
        if kind == "set":
            arrays[n][part] = value + 1.0
        elif kind == "add":
            arrays[n][part] += value
        elif kind == "fill":
            arrays[n][part] = factor
        elif kind == "row":
            arrays[n][0] = arrays[reads[0][0]][-1]
        elif kind == "roll":
            x = arrays[reads[0][0]]
            arrays[n] = np.roll(x, 1, 1) + factor * np.roll(x, -2, 0) - np.roll(x, (1, 2), (0, 1))
        elif kind == "new":
            arrays[n] = arrays[n] * factor + arrays[reads[0][0]]
        else:
            views.append(arrays[n][part])
    return arrays, views


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(statements(), min_size=1, max_size=7), st.sampled_from(["C", "F", "one", "gaps"]))
def test_programs_that_write_in_place_give_the_results_of_numpy(everything_pays, program, layout):
    def made():
        rng = np.random.default_rng(1)
        if layout == "gaps":
            return list(np.repeat(rng.normal(size=(3, *SHAPE)), 2, axis=2)[:, :, ::2])
        arrays = [
            np.array(x, order="F" if layout == "F" else "C") for x in rng.normal(size=(3, *SHAPE))
        ]
        return arrays[:2] + arrays[:1] if layout == "one" else arrays

    def f(a, b, c):
        return run_statements(program, (a, b, c))

    fast, ours, theirs = lt.jit(f), made(), made()
    for _ in range(3):
        assert_same(f(*theirs), fast(*ours))
        assert_same(theirs, ours)

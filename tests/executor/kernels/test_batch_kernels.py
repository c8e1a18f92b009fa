"""Groups on the items of a batch run as kernels: rows at indices, points, small matrices."""

import functools
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import letir as lt
from letir.ast.pytrees import flatten
from letir.ast.types import ArrayType
from letir.eval.float_warnings import KernelError
from letir.executor.compiled import kernels_setting
from letir.executor.default_pipeline import optimize_program
from letir.executor.kernels.batch_kernels import BatchCall, with_batch_kernels
from letir.executor.kernels.kernel_binds import LayoutError
from letir.plan.plan import plan_of
from letir.testing import assert_close, assert_same
from tests.rounding_noise import assert_within_rounding

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)

RNG = np.random.default_rng(5)
N, K = 600, 23  # items, and rows of tables
POINTS, TABLE = RNG.normal(size=(N, 3)), RNG.normal(size=(K, 3))
PLACES, OTHERS = RNG.integers(-K, K, N), RNG.integers(0, K, N)
MATRICES, SQUARE = RNG.normal(size=(N, 3, 3)), RNG.normal(size=(3, 3))
FEW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(FEW, max_examples=2_000)


def batch_calls(program: lt.Lambda) -> list[BatchCall]:
    """The calls of kernels over batches in a program."""
    calls = [getattr(bind.op.impl, "call", None) for bind in program.binds]
    return [call for call in calls if type(call) is BatchCall]


def with_kernels(f, *args, exact: bool = False) -> lt.Lambda:
    """The program of a function with each group on items as a kernel, however small."""
    program = optimize_program(lt.trace(f, *args), exact=exact)
    return with_batch_kernels(program, exact, min_elements=1)


def run(f, *args, exact: bool = False, count: int | None = 1) -> tuple:
    """The leaves of the result of a function whose groups on items are ``count`` kernels."""
    program = with_kernels(f, *args, exact=exact)
    assert count is None or len(batch_calls(program)) == count
    return plan_of(program).run(list(args))


def leaves(tree) -> tuple:
    return tuple(flatten(tree)[0])


def rotated(points, table, places):
    """Points turned about axes that are read from a table, as a formula of vectors."""
    axis, x, y = table[places], points[:, :1], points[..., 1]
    crossed = np.cross(axis, points)
    length = np.sqrt(np.sum(crossed * crossed, axis=1, keepdims=True))
    joined = np.concatenate([crossed / (1 + length), x * 2], axis=1)
    return joined, np.stack([y, length[:, 0]], axis=-1)


def energies(table, a, b):
    """A sum over pairs of particles, as molecular dynamics computes it."""
    apart = table[a] - table[b]
    square = np.sum(apart * apart, axis=-1) + 1.0
    return 1 / square**3 - np.exp(-square)


def transformed(points, matrices, places):
    """A matrix for each point, by einsum's older relatives."""
    return (matrices[places] @ points[:, :, None])[:, :, 0] + points @ matrices[0]


def one_row_each(x, places):
    return np.take_along_axis(x, places[:, None], axis=1)[:, 0] * 2 + x[:, 0]


FUNCTIONS = [
    (rotated, (POINTS, TABLE, PLACES)),
    (energies, (TABLE, PLACES, OTHERS)),
    (transformed, (POINTS, RNG.normal(size=(K, 3, 3)), PLACES)),
    (one_row_each, (POINTS, RNG.integers(-3, 3, N))),
    (lambda x, i, j: x[i, j] * x[j, 0] + 1, (RNG.normal(size=(K, K)), PLACES, OTHERS)),
    (lambda x, i: np.take(x, i, axis=0) * 2 - 1, (TABLE, OTHERS.astype("i4"))),
    (lambda x, i: x[i + 1, 1:] - x[i, :-1], (TABLE, OTHERS - 1)),
    (lambda x, i: x[i][:, ::-1] * x[i], (TABLE.astype("f4"), PLACES.astype("i2"))),
    (np.matmul, (MATRICES, MATRICES[::-1].copy())),
    (lambda a, x: (a @ x[..., None])[..., 0], (MATRICES, POINTS)),
    (lambda x, a, b: x @ a.T + b, (POINTS, SQUARE, SQUARE[0])),
    (lambda p, f, q: f @ p @ f.T + q, (MATRICES, SQUARE, np.eye(3))),
    (functools.partial(np.einsum, "nij,nj->ni"), (MATRICES, POINTS)),
    (functools.partial(np.einsum, "nij,njk->nik"), (MATRICES, MATRICES)),
    (functools.partial(np.einsum, "ni,ij,nj->n"), (POINTS, SQUARE, POINTS)),
    (functools.partial(np.einsum, "...i,...j->...ij"), (POINTS, POINTS)),
    (functools.partial(np.einsum, "nii,nj->nj"), (MATRICES, POINTS)),
]


@pytest.mark.parametrize(("f", "args"), FUNCTIONS)
def test_a_function_on_items_is_one_kernel(f, args):
    found, expected = run(f, *args), leaves(f(*args))

    assert_within_rounding(lt.trace(f, *args), args, expected, found)


@pytest.mark.parametrize(("f", "args"), FUNCTIONS)
def test_gradients_add_at_indices_as_numpy(f, args):
    def loss(*args):
        return sum((y * y).sum() for y in leaves(f(*args)))

    wanted = tuple(n for n, x in enumerate(args) if x.dtype.kind == "f")
    program = lt.trace(lt.grad(loss, wanted), *args)
    found = run(lt.grad(loss, wanted), *args, count=None)

    assert_close(leaves(lt.run_forward(program, *args)), found, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("bad", [K, -K - 1, 1 << 62, -(1 << 62)])
def test_an_index_out_of_bounds_is_numpys_error(bad):
    places = PLACES.copy()
    places[-1] = bad
    fast = lt.jit(energies)
    table = RNG.normal(size=(K, 3))
    many = np.tile(places, 40)
    fast(table, many * 0, many * 0)

    with pytest.raises(IndexError, match=f"index {bad} is out of bounds for axis 0 with size {K}"):
        fast(table, many, many * 0)
    assert_close(energies(table, many * 0, many * 0), fast(table, many * 0, many * 0), rtol=1e-13)


def test_an_index_into_an_empty_table_is_numpys_error():
    def f(table, places):
        return table[places] * 2 + 1

    with pytest.raises(IndexError):
        run(f, np.zeros((0, 3)), PLACES, count=None)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u2"])
@pytest.mark.parametrize("width", [(), (3,)])
def test_sums_at_indices_have_the_bits_of_numpy(dtype, width):
    def f(start, places, part):
        out = start.copy()
        np.add.at(out, places, part * part)
        return out

    start = (RNG.normal(size=(K, *width)) * 9).astype(dtype)
    part = (RNG.normal(size=(N, *width)) * 9).astype(dtype)

    (found,) = run(f, start, PLACES, part, exact=True)

    assert_same(f(start, PLACES, part), found)


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("nij,nj->in", [(N, 3, 3), (N, 3)]),  # the items are columns of the result
        ("nij,njk->nki", [(N, 3, 3), (N, 3, 2)]),  # NumPy's result is not in the order of C
        ("ni,ni->n", [(N, 1), (N, 3)]),  # a broadcast axis
        ("nij->nji", [(N, 3, 3)]),  # a view
        ("nab,ncd->nacbd", [(N, 4, 4), (N, 4, 4)]),  # too many elements
    ],
)
def test_other_sums_of_products_are_numpys(subscripts, shapes):
    args = [RNG.normal(size=shape) for shape in shapes]
    f = functools.partial(np.einsum, subscripts)

    (found,) = run(f, *args, count=0)

    assert_close(found, f(*args), rtol=1e-13, atol=1e-13)
    assert found.strides == f(*args).strides


@pytest.mark.parametrize(
    ("f", "shapes"),
    [
        (lambda x, y: x @ y, [(N, 3), (3, 3)]),
        (lambda x, y: x @ y, [(N, 3), (3,)]),
    ],
)
def test_a_product_that_blas_computes_fast_does_not_become_a_kernel(f, shapes):
    program = lt.trace(f, *[RNG.normal(size=shape) for shape in shapes])

    assert not batch_calls(with_batch_kernels(program, min_elements=N))


def test_products_of_matrices_overflow_as_in_numpy():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = lt.jit(np.matmul)(np.full((2_000, 3, 3), 1e200), np.full((2_000, 3, 3), 1e200))

    assert np.isinf(found).all()
    assert ["overflow encountered in matmul"] == [str(one.message) for one in caught]


def test_sums_at_several_indices():
    def f(places, others, part):
        out = np.zeros((K, 4, K))
        np.add.at(out, (places, 2, others), part * 0.5)
        np.add.at(out, (others, slice(1, 3), places), np.stack([part, part + 1], axis=1))
        return out

    part = RNG.normal(size=N)

    assert_close(f(PLACES, OTHERS, part), run(f, PLACES, OTHERS, part, count=None)[0], rtol=1e-12)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_memory_orders_of_results_are_numpys(order):
    layouts = [np.asfortranarray, lambda x: x[::-1], lambda x: np.repeat(x, 2, 1)[:, ::2], np.copy]
    lay = layouts[order]
    f = lt.jit(rotated)
    points, places = np.tile(POINTS, (50, 1)), np.tile(PLACES, 50)

    for args in ((lay(points), TABLE, places), (points, lay(TABLE), places)):
        expected, found = rotated(*args), f(*args)
        assert [y.strides for y in expected] == [y.strides for y in found]
        assert_close(expected, found, rtol=1e-12)


def test_warnings_have_the_users_line():
    def f(table, places):
        square = np.sum(table[places] ** 2, axis=1)
        return 1 / square

    table, places = TABLE.copy(), np.tile(PLACES, 50)
    table[3] = 0
    fast = lt.jit(f)

    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn"):
        warnings.simplefilter("always")
        found = fast(table, places)

    assert "divide by zero encountered in divide" in str(caught[-1].message)
    assert caught[-1].filename == __file__
    with np.errstate(all="ignore"):
        assert_close(f(table, places), found, rtol=1e-13)


def test_threads_do_not_change_bits():
    table, places, others = TABLE, np.tile(PLACES, 2_000), np.tile(OTHERS, 2_000)
    fast = lt.jit(energies)
    expected = fast(table, places, others)
    bad = places.copy()
    bad[len(bad) // 2] = K
    lt.set_num_threads(3)
    try:
        found = fast(table, places, others)
        with pytest.raises(IndexError, match="out of bounds"):
            fast(table, bad, others)
    finally:
        lt.set_num_threads(None)

    assert any(kernel.uses_threads for kernel in fast.debug_state().plans[0].kernels)
    assert_same(expected, found)


def test_values_that_depend_on_a_group_are_read_by_a_later_one():
    def f(table, places):
        rows = table[places]
        total = np.concatenate([rows, rows * 2], axis=1) * 3
        centre = np.sort(total.ravel())[len(total)]
        return np.concatenate([total - centre, rows], axis=1) * 2, centre

    found = run(f, TABLE, PLACES, count=2)

    assert_close(f(TABLE, PLACES), found, rtol=1e-13)


def test_a_table_that_rows_need_not_store_is_not_made_for_a_selection():
    """A cross entropy selects one element of each row, and reads the rows for their sums."""

    def cross_entropy(x, labels):
        z = x - np.max(x, axis=-1, keepdims=True)
        chosen = z[np.arange(len(labels)), labels]
        return np.mean(np.log(np.sum(np.exp(z), axis=-1)) - chosen)

    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(5000, 30)), rng.integers(0, 30, 5000)
    for f, most in ((cross_entropy, 0), (lt.value_and_grad(cross_entropy), 1)):
        fast = lt.jit(f)

        assert_close(lt.trace(f, x, labels)(x, labels), fast(x, labels), rtol=1e-12)
        kernels = fast.debug_state().plans[0].plan.kernels
        assert sum([kind.shape == x.shape for one in kernels for kind in one.results]) == most


def test_groups_of_two_sizes():
    def f(table, places, others):
        a, b = table[places] * 2 + 1, table[others] * 3 - 1
        return a[:, 0] + a[:, 1], b[:, 0] * b[:, 1]

    few = OTHERS[:550]

    assert_close(f(TABLE, PLACES, few), run(f, TABLE, PLACES, few, count=2), rtol=1e-13)


# ---- generated programs ----


STEPS = [  # of known values x and y, and of the arguments
    lambda x, y, table, places, numbers: x + y,
    lambda x, y, table, places, numbers: x * table[0] - y,
    lambda x, y, table, places, numbers: np.where(x > y, x, y),
    lambda x, y, table, places, numbers: np.concatenate([x[:, 1:], y[:, :1]], axis=1),
    lambda x, y, table, places, numbers: table[places] + x,
    lambda x, y, table, places, numbers: np.stack([x[:, 0], numbers, y[:, 2]], axis=-1),
    lambda x, y, table, places, numbers: np.cross(x, y),
    lambda x, y, table, places, numbers: np.sum(x, axis=1, keepdims=True) + y,
    lambda x, y, table, places, numbers: x[:, ::-1] - table[places, 1][:, None],
    lambda x, y, table, places, numbers: x.reshape(N, 3, 1)[:, :, 0].max(axis=1)[:, None] * y,
    lambda x, y, table, places, numbers: (x[:, None, :] @ np.stack([y, x, y], axis=2))[:, 0],
    lambda x, y, table, places, numbers: np.minimum(x, y[0]) * 2,
    lambda x, y, table, places, numbers: np.flip(x, axis=0) + y,
    lambda x, y, table, places, numbers: np.cumsum(y, axis=1) - x,
]


@st.composite
def item_programs(draw):
    """A function that combines values on items by operations of all kinds, and its arguments."""
    dtype = draw(st.sampled_from(["f8", "f8", "f4", "i8"]))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 30)))

    def array(*shape):
        return (rng.normal(size=shape) * 4).astype(dtype)

    signed = rng.integers(-K, K, N).astype(draw(st.sampled_from(["i8", "i4"])))
    unsigned = rng.integers(0, K, N).astype(draw(st.sampled_from(["u1", "u4", "i2"])))
    args = array(N, 3), array(N), array(K, 3), signed, unsigned
    number = st.integers(0, 99)
    steps = draw(st.lists(st.tuples(number, number, number), min_size=2, max_size=14))
    wanted = draw(st.lists(number, min_size=1, max_size=4))

    def f(points, numbers, table, signed, unsigned):
        known, out = [points, numbers[:, None] + points, table[signed]], []
        for step, one, two in steps:
            x, y = known[one % len(known)], known[two % len(known)]
            places = (signed, unsigned)[one % 2]
            known.append(STEPS[step % len(STEPS)](x, y, table, places, numbers))
            if step > 80:
                total = np.zeros_like(table)
                np.add.at(total, places, known[-1])
                out.append(total)
        return *out, *[known[n % len(known)] for n in wanted]

    return f, args


def on_items_agrees(data, exact):
    f, args = data.draw(item_programs())
    program = lt.trace(f, *args)
    with np.errstate(all="ignore"):
        expected = leaves(lt.run_forward(program, *args))
        found = run(f, *args, exact=exact, count=None)
        if exact:
            assert_same(expected, found)
        else:
            assert_within_rounding(program, args, expected, found)


@FEW
@given(st.data(), st.booleans())
def test_programs_on_items_agree_with_numpy(data, exact):
    on_items_agrees(data, exact)


@pytest.mark.slow
@MANY
@given(st.data(), st.booleans())
def test_many_programs_on_items_agree_with_numpy(data, exact):
    on_items_agrees(data, exact)


@settings(FEW, max_examples=15)
@given(st.data())
def test_no_index_of_a_kernel_is_outside_of_its_array(data):
    """The interpreter tests every index."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LETIR_CHECK_KERNELS", "1")
        on_items_agrees(data, False)


def test_bad_indices_are_not_read():
    """The interpreter would raise InternalError."""
    places = PLACES.copy()
    places[:4] = K, -K - 1, 1 << 62, -(1 << 63)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LETIR_CHECK_KERNELS", "1")
        program = with_kernels(energies, TABLE, PLACES, OTHERS)
        assert batch_calls(program)
        with pytest.raises(IndexError, match=f"index {K} is out of bounds"):
            plan_of(program).run([TABLE, places, OTHERS])


def test_operands_that_a_kernel_cannot_read_are_left_to_numpy():
    def f(points, table, places, factor):
        return (table[places] * points).sum(axis=1) * factor

    args = POINTS, TABLE, PLACES, 3
    program = with_kernels(f, *args)
    (call,) = batch_calls(program)
    avals = dict(zip(map(str, call.avals), call.avals, strict=True))
    wide = np.zeros((40 * N, 3))

    for x, aval in (
        (POINTS[1:], avals[f"float64[{N}, 3]"]),
        (np.zeros((2, K, 3))[:, ::2], avals[f"float64[{K}, 3]"]),
        (2**70, ArrayType(np.int64)),
        (wide[::2], ArrayType(float, wide[::2].shape)),
    ):
        with pytest.raises((KernelError, LayoutError)):
            call.flatten_operand(x, aval)
    assert_same(f(*args), plan_of(program).run([POINTS, TABLE, PLACES, 3])[0])
    strided = np.repeat(POINTS, 2, axis=0)[::2]
    assert_same(f(strided, *args[1:]), plan_of(program).run([strided, *args[1:]])[0])


def test_few_operations_on_single_elements_at_indices_are_left_to_numpy():
    x, places = RNG.normal(size=20_000), RNG.integers(0, 20_000, 20_000)

    def calls(f):
        return batch_calls(with_batch_kernels(lt.trace(f, x, places)))

    assert not calls(lambda x, i: x[i] * 2 + 1)
    assert calls(lambda x, i: ((x[i] * 2 + 1) * x - x) * x)
    assert calls(lambda x, i: np.exp(x[i]) + 1)

"""Programs, jitted functions and gradients on Dask arrays, compared with NumPy."""

import pickle

import dask
import dask.array as da
import numpy as np
import optree
import pytest

import letir as lt
from letir.errors import DTypeError, GuardError, LetirError, TraceError


@pytest.fixture(autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="sync"):
        yield


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)), (rng.random(60) > 0.5).astype(float)
    return x, y, da.from_array(x, chunks=(17, 3)), da.from_array(y, chunks=25)


def logistic_loss(w, x, y):
    z = x @ w["slope"] + w["offset"]
    return np.mean(np.logaddexp(0.0, z) - y * z) + 0.1 * np.sum(w["slope"] ** 2)


W = {"offset": np.float64(0.3), "slope": np.array([0.5, -1.0, 2.0])}


def assert_same(found, expected):
    for a, b in zip(*map(optree.tree_leaves, (found, expected)), strict=True):
        assert np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_every_way_to_run_a_program_gives_lazy_results(data):
    """[C3]"""
    x, y, lazy_x, lazy_y = data
    program = lt.trace(logistic_loss, W, x, y)
    gradient = lt.differentiate(program)
    expected = program(W, x, y)
    ways = {
        "call": program(W, lazy_x, lazy_y),
        "run_forward": lt.run_forward(program, W, lazy_x, lazy_y),
        "compile": lt.compile(program)(W, lazy_x, lazy_y),
        "jit": lt.jit(logistic_loss)(W, lazy_x, lazy_y),
        "forward": gradient.forward(W, lazy_x, lazy_y)[0],
    }
    for way, result in ways.items():
        assert isinstance(result, da.Array), way
        assert_same(result.compute(), expected)


def test_gradients_equal_those_of_the_whole_arrays(data):
    x, y, lazy_x, lazy_y = data
    for argnums in (0, 1, (0, 2)):
        expected = lt.value_and_grad(logistic_loss, argnums)(W, x, y)
        for transform in (lt.value_and_grad, lambda f, n: lt.jit(lt.value_and_grad(f, n))):
            found = transform(logistic_loss, argnums)(W, lazy_x, lazy_y)
            assert_same(dask.compute(found)[0], expected)


def test_a_gradient_program_runs_backward_on_blocks(data):
    x, y, lazy_x, lazy_y = data
    gradient = lt.differentiate(lt.trace(logistic_loss, W, x, y))
    expected = gradient.backward(gradient.forward(W, x, y)[1], 1.0)
    found = gradient.backward(gradient.forward(W, lazy_x, lazy_y)[1], 1.0)
    assert_same(dask.compute(found)[0], expected)


def test_second_derivatives_equal_those_of_the_whole_arrays(data):
    x, y, lazy_x, lazy_y = data

    def loss(w, x, y):
        return logistic_loss({**W, "slope": w}, x, y)

    direction = np.array([1.0, 2.0, 3.0])
    args = W["slope"], direction

    def product(w, v, x, y):
        return lt.jvp(lambda w: lt.grad(loss)(w, x, y), (w,), (v,))[1]

    assert_same(lt.jit(product)(*args, lazy_x, lazy_y).compute(), product(*args, x, y))


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_goes_from_block_to_block(data, reverse):
    x, _, lazy_x, _ = data

    def run(h, x):
        return lt.scan(lambda h, row: (np.tanh(0.5 * h + row), h.sum()), h, x, reverse=reverse)

    h = np.zeros(3)
    assert_same(dask.compute(lt.jit(run)(h, lazy_x))[0], run(h, x))
    gradient = lt.grad(lambda h, x: run(h, x)[1].sum(), argnums=(0, 1))
    found = gradient(h, lazy_x)
    assert found[1].numblocks == (4, 1)
    assert_same(dask.compute(found)[0], gradient(h, x))


def test_blocks_along_several_axes():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 30)), rng.normal(size=(30, 10))
    f = lt.jit(lambda x, y: np.tanh(x @ y).sum(axis=0) + y.max(axis=0) * x.mean())
    found = f(da.from_array(x, chunks=(7, 11)), da.from_array(y, chunks=(4, 5)))
    assert_same(found.compute(), f(x, y))


def test_python_numbers_stay_weak():
    x = np.arange(6, dtype=np.float32)
    f = lt.trace(lambda x, s: x * s + 0.1, x, 0.5)
    found = f(da.from_array(x, chunks=4), 0.5).compute()
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, f(x, 0.5))


def test_results_are_not_computed_early():
    calls = []

    def note(block):
        calls.append(1)
        return block

    x = da.ones(6, chunks=2).map_blocks(note, dtype=float)
    calls.clear()
    result = lt.grad(lambda x: np.sin(x).sum())(x)
    assert not calls
    result.compute()
    assert len(calls) == 3


def test_group_of_elementwise_operations_is_one_task_for_each_block():
    x = da.from_array(np.ones(40), chunks=10)
    found = lt.trace(lambda x: np.exp(np.sin(x) * 2.0 + x**2), np.ones(40))(x)
    programs = [layer for layer in found.dask.layers if layer.startswith("letir-")]
    assert len(programs) == 1


def test_a_loss_is_one_task_for_each_block():
    def tasks(blocks: int) -> int:
        x = dask.persist(da.ones((10 * blocks, 3), chunks=(10, 3)))[0]
        found = lt.jit(lt.value_and_grad(mixture_loss))(MIXTURE, x)
        (*graphs,) = (dict(v.__dask_graph__()) for v in dask.optimize(*optree.tree_leaves(found)))
        return len({key for graph in graphs for key in graph})

    # the data, the task of the block, and its part of a tree of eight partial results a task
    assert tasks(64) - tasks(8) <= (64 - 8) * (2 + 1 / 7)


def mixture_loss(w, x):
    """The mean negative logarithm of the density of a Gaussian mixture."""
    scaled = (x[:, None, :] - w["means"]) * np.exp(w["scales"])
    terms = w["weights"] + w["scales"].sum(axis=1) - 0.5 * (scaled**2).sum(axis=2)
    top = terms.max(axis=1, keepdims=True)
    return -(np.log(np.exp(terms - top).sum(axis=1)) + top[:, 0]).mean()


MIXTURE = {
    "means": np.array([[0.0, 1.0, 0.5], [1.0, -1.0, 0.0]]),
    "scales": np.zeros((2, 3)),
    "weights": np.array([0.1, -0.2]),
}


@pytest.mark.parametrize("chunks", [(60,), (1,) * 60, (1, 0, 30, 0, 29), (59, 1), (7, 53)])
def test_blocks_of_all_sizes_give_the_same_gradient(data, chunks):
    x = data[0]
    expected = lt.value_and_grad(mixture_loss)(MIXTURE, x)
    found = lt.dask.value_and_grad(mixture_loss)(MIXTURE, da.from_array(x, chunks=(chunks, 3)))
    assert_same(found, expected)
    across = lt.jit(lt.grad(lambda w, x: mixture_loss(w, x.T)))
    assert_same(
        dask.compute(across(MIXTURE, da.from_array(x.T, chunks=(3, chunks))))[0], expected[1]
    )


def test_means_of_all_dtypes_are_numpys(data):
    for dtype in (np.float32, np.float16, np.complex64, np.int8, bool):
        x = (data[0] * 3).astype(dtype)
        lazy = da.from_array(x, chunks=(17, 3))
        for f in (lambda x: x.mean(), lambda x: x.mean(axis=0), lambda x: x.sum(axis=0)):
            found, expected = lt.jit(f)(lazy).compute(), f(x)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=2e-3 if dtype == np.float16 else 1e-5)


def test_a_mean_of_half_precision_adds_in_single_precision():
    x = np.full(2_000, 100.0, np.float16)  # its sum is not a number of half precision
    assert lt.jit(lambda x: x.mean())(da.from_array(x, chunks=900)).compute() == x.mean() == 100


def test_means_of_chosen_elements_are_quotients_of_sums(data):
    x, chosen = data[0].astype(np.float32), data[0][:1] > -2
    f = lt.jit(lambda x: (x.mean(where=x > 0), np.nanmean(np.where(x > 0, x, np.nan), axis=0)))
    g = lt.jit(lambda x: np.mean(x, axis=0, keepdims=True, where=chosen))
    for h in (f, g):
        found = dask.compute(h(da.from_array(x, chunks=(17, 3))))[0]
        for a, b in zip(*map(optree.tree_leaves, (found, h(x))), strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_extrema_leave_out_empty_blocks(data):
    x = da.from_array(data[0], chunks=((0, 30, 0, 30), 3))
    assert_same(
        dask.compute(lt.jit(lambda x: (x.max(), x.min(axis=0)))(x))[0],
        (data[0].max(), data[0].min(axis=0)),
    )


def test_not_a_number_in_one_block_reaches_sums_and_extrema(data):
    x = data[0].copy()
    x[40, 1] = np.nan
    f = lt.jit(lambda x: (x.sum(axis=0), x.max(axis=0), x.min(), x.mean()))
    assert_same(dask.compute(f(da.from_array(x, chunks=(17, 3))))[0], f(x))


def sorted_rows(x):
    ranks = np.argsort(x, axis=1)
    return np.take_along_axis(x, ranks, axis=1).cumsum(axis=1), np.median(x, axis=1)


def written_rows(x):
    x = x.copy()
    x[:, 0] = 1.0
    x[:, 1] += x[:, 2]
    return x


@pytest.mark.parametrize(
    "f",
    [
        sorted_rows,
        written_rows,
        lambda x: np.linalg.inv(np.eye(3) + x[:, :, None] * x[:, None, :]),
        lambda x: (x - x.mean(axis=0)) / x.std(axis=0),  # two phases
        lambda x: np.cov(x.T) @ np.linalg.solve(x.T @ x, np.ones(3)),
        lambda x: np.einsum("ni,nj,nj->ij", x, x, x),
        lambda x: np.concatenate([x, np.ones((len(x), 1))], axis=1) @ np.arange(4.0),
        lambda x: x @ x.T,
        lambda x: np.dot(x, 2.0) + np.dot(0.5, x),
        lambda x: np.einsum("...i,i->...", x, np.ones(3)) + np.einsum("ij,j", x, np.ones(3)),
        lambda x: np.stack([x, 2 * x], axis=1).sum(axis=(0, 2)),
        lambda x: np.linalg.solve(np.eye(3) + x[:, :, None] * x[:, None, :], x[:, :, None]),
        lambda x: np.outer(x[:, 0], x[:, 1]) + np.broadcast_to(x[:, :1], (60, 60)),
        lambda x: (x > 0).T @ (x > 0),
        lambda x: x[1:, 0] * x[:-1, 1],
        lambda x: (np.ones((60, 60)) @ x).sum() + np.ones((60, 60)).sum(),
    ],
)
def test_operations_that_act_in_rows_run_in_each_block(data, f):
    assert_same(dask.compute(lt.jit(f)(data[2]))[0], f(data[0]))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.concatenate([x, x], axis=None),
        lambda x: np.split(x, [10, 30]),
        lambda x: np.full_like(x, x[0, 0]) + np.full((60, 3), x.sum()),
        lambda x: np.take(x, [3, 1]) + np.take(x, 4, axis=0)[1],
        lambda x: np.take(x, [3, 61], axis=0, mode="wrap"),
        lambda x: np.searchsorted(np.linspace(-1.0, 1.0, 9), x),
        lambda x: np.searchsorted(np.maximum.accumulate(x @ np.ones(3)), 0.5),
        lt.value_and_grad(
            lambda x: ((x @ np.ones((3, 4)))[np.arange(60), np.arange(60) % 4] ** 2).sum()
        ),
    ],
)
def test_blocks_along_both_axes_give_numpys_results(data, f):
    found = lt.jit(f)(da.from_array(data[0], chunks=(17, 2)))
    assert_same(dask.compute(found)[0], f(data[0]))


def test_rows_of_a_table_are_read_and_added_up(data):
    table, places = np.arange(12.0).reshape(4, 3), np.arange(60) % 4
    read = lt.value_and_grad(lambda table, i: (table[i] ** 2).sum())
    found = lt.jit(read)(table, da.from_array(places, chunks=17))
    assert_same(dask.compute(found)[0], read(table, places))


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_an_error_in_a_block_names_the_operation_and_the_line(scheduler):
    places = da.from_array(np.array([0, 1, 9, 2]), chunks=2)
    found = lt.jit(lambda table, i: table[i].sum())(np.ones((4, 3)), places)
    with pytest.raises(IndexError, match="index 9") as caught:
        found.compute(scheduler=scheduler)
    (note,) = caught.value.__notes__
    assert "= index(" in note and "test_programs.py" in note


def test_kernels_use_one_thread_for_a_block(monkeypatch):
    from letir.dask import row_tasks

    monkeypatch.delenv("LETIR_NUM_THREADS", raising=False)
    found, run = [], row_tasks.Compiled.run_flat
    monkeypatch.setattr(
        row_tasks.Compiled,
        "run_flat",
        lambda self, leaves: found.append(lt.get_num_threads()) or run(self, leaves),
    )
    lt.jit(lambda x: np.exp(x).sum())(da.ones(40, chunks=10)).compute()
    assert found == [1] * 4
    lt.set_num_threads(3)
    try:
        lt.jit(lambda x: np.exp(x).sum())(da.ones(40, chunks=20)).compute()
    finally:
        lt.set_num_threads(None)
    assert found[4:] == [3] * 2


def test_a_second_step_compiles_nothing(data, monkeypatch):
    from letir.dask import row_tasks

    step = lt.dask.value_and_grad(logistic_loss)
    step(W, *data[2:])
    monkeypatch.setattr(row_tasks, "compile", lambda fn: pytest.fail("compiled again"))
    step({**W, "offset": np.float64(1.0)}, *data[2:])


def test_an_operation_that_mixes_blocks_is_refused_with_the_line_and_the_remedy(data):
    with pytest.raises(LetirError, match=r"sort cannot be computed on these blocks") as caught:
        lt.jit(lambda x: np.sort(x, axis=0))(data[2])
    text = "\n".join([str(caught.value), *caught.value.__notes__])
    assert "(4, 1) blocks" in text and "x.rechunk(-1)" in text and "test_programs.py" in text
    whole = data[2].rechunk(-1)
    assert_same(lt.jit(lambda x: np.sort(x, axis=0))(whole).compute(), np.sort(data[0], axis=0))


def test_singular_values_of_split_rows_are_numpys(data):
    for f in (lambda x: np.linalg.svd(x, compute_uv=False), lambda x: np.linalg.norm(x, 2)):
        np.testing.assert_allclose(lt.jit(f)(data[2]).compute(), f(data[0]), rtol=1e-12)


@pytest.mark.parametrize(
    ("f", "why"),
    [
        (lambda x: np.linalg.svd(x, full_matrices=False)[0], "the signs of its vectors"),
        (lambda x: np.linalg.qr(x)[1], "the signs of its factors"),
        (np.linalg.pinv, "dask.array.linalg has no pinv"),
        (lambda x: np.argsort(x, axis=0), "dask.array has no argsort"),
        (lambda x: x.reshape(180, order="F"), "reshape in another order than C"),
        (lambda x: np.searchsorted(x[:, 0], 0.5, sorter=np.arange(60)), "with a sorter"),
    ],
)
def test_operations_that_dask_lacks_or_computes_differently_are_named(data, f, why):
    with pytest.raises(LetirError, match=why):
        lt.jit(f)(data[2])


def test_cumulative_extrema_go_from_block_to_block(data):
    for f in (np.maximum.accumulate, lambda x: np.minimum.accumulate(x, axis=0)):
        for x in (data[0], (data[0] * 9).astype(int)):
            assert_same(lt.jit(f)(da.from_array(x, chunks=(17, 3))).compute(), f(x))


def test_a_mask_of_the_program_selects_rows(data):
    def f(x):
        return x[np.arange(60) % 3 == 1] * 2.0

    found = lt.jit(f)(data[2])
    assert found.chunks[0] == (15, 5)  # Dask's choice
    assert_same(found.compute(), f(data[0]))


def test_the_reason_of_dask_is_a_sentence(data):
    with pytest.raises(LetirError) as caught:
        lt.jit(lambda x: x.reshape(90, 2))(data[2])
    assert "merge or split existing dimensions evenly\n" in str(caught.value)


def test_a_question_about_values_is_an_error():
    with pytest.raises(TraceError):
        lt.jit(lambda x: x if x.sum() > 0 else -x)(da.ones(4, chunks=2))


def test_a_guard_of_a_recorded_program_is_answered_at_once():
    f = lt.trace(lambda x: x if x.sum() > 0 else -x, np.ones(4))
    assert_same(f(da.ones(4, chunks=2)).compute(), np.ones(4))
    with pytest.raises(GuardError):
        f(-da.ones(4, chunks=2))


def test_unknown_sizes_and_writes_are_refused():
    x = da.ones(4, chunks=2)
    with pytest.raises(DTypeError, match="compute_chunk_sizes"):
        lt.jit(np.sin)(x[x > 0])

    def write(x):
        x[0] = 1.0
        return x

    with pytest.raises(LetirError, match="written"):
        lt.trace(write, np.ones(4))(x)


def test_losses_are_computed_on_blocks(data):
    x, y, lazy_x, lazy_y = data
    expected = lt.value_and_grad(logistic_loss)(W, x, y)
    step = lt.dask.value_and_grad(logistic_loss)
    assert_same(step(W, lazy_x, lazy_y), expected)
    assert_same(lt.dask.grad(logistic_loss)(W, lazy_x, lazy_y), expected[1])
    first, second = step(W, lazy_x, lazy_y), step(W, lazy_x, lazy_y)
    assert all(
        np.array_equal(a, b)
        for a, b in zip(optree.tree_leaves(first), optree.tree_leaves(second), strict=True)
    )
    with pytest.raises(DTypeError, match="none of the arguments is a Dask array"):
        step(W, x, y)


def test_a_task_is_compiled_once_for_blocks_of_one_type(monkeypatch):
    from letir.dask import row_tasks

    made = []
    compile = row_tasks.compile
    monkeypatch.setattr(row_tasks, "compile", lambda fn: made.append(fn) or compile(fn))
    x = da.from_array(np.ones(50), chunks=10)
    lt.trace(lambda x: np.exp(np.sin(x)), np.ones(50))(x).compute()
    assert len(made) == 1


def test_tasks_pickle_without_code():
    from letir.dask.blocks import BlockProgram

    task = BlockProgram(lt.trace(lambda x: np.sin(x) * 2.0, np.ones(3)))
    copy = pickle.loads(pickle.dumps(task))
    np.testing.assert_array_equal(copy(np.ones(5)), np.sin(np.ones(5)) * 2.0)


@pytest.mark.parametrize(
    "use",
    [
        lambda w, x: (x @ w).sum(),
        lambda w, x: np.dot(x, w).sum(),
        lambda w, x: (w * x).sum(),
        lambda w, x: (w.sum(), x),
    ],
)
def test_a_dask_array_from_outside_is_refused(data, use):
    with pytest.raises(LetirError, match=r"argument|nested in tuples"):
        lt.trace(lambda w: use(w, data[2]), np.ones(3))
    with pytest.raises(DTypeError, match=r"use letir\.grad"):
        lt.Variable(data[2])


def test_other_transforms_take_dask_arrays(data):
    x, _, lazy_x, _ = data
    w = np.array([0.1, 0.2, 0.3])

    def f(x):
        return np.tanh(x).sum(axis=1)

    ct = np.linspace(-1.0, 1.0, 60)
    assert_same(lt.vjp(f, lazy_x)[1](ct)[0].compute(), lt.vjp(f, x)[1](ct)[0])
    assert_same(lt.linearize(f, lazy_x)[1](lazy_x).compute(), lt.linearize(f, x)[1](x))
    assert_same(lt.jvp(f, (lazy_x,), (lazy_x,))[1].compute(), lt.jvp(f, (x,), (x,))[1])
    assert_same(lt.vmap(lambda row: np.sin(row).sum())(lazy_x).compute(), np.sin(x).sum(axis=1))
    hessian = lt.hessian(lambda w, x: (np.tanh(x @ w) ** 2).sum())
    assert_same(hessian(w, lazy_x).compute(), hessian(w, x))


def test_labels_pick_one_score_of_each_row(data):
    x, _, lazy_x, _ = data
    labels = np.arange(60) % 3
    lazy_labels = da.from_array(labels, chunks=10)

    def cross_entropy(x, labels):
        shifted = x - x.max(axis=1, keepdims=True)
        picked = shifted[np.arange(len(labels)), labels]
        return (np.log(np.exp(shifted).sum(axis=1)) - picked).mean()

    for picks in (lazy_labels, labels):
        found = lt.value_and_grad(cross_entropy)(lazy_x, picks)
        assert_same(dask.compute(found)[0], lt.value_and_grad(cross_entropy)(x, labels))
    with pytest.raises(LetirError, match="index cannot be computed on these blocks"):
        lt.jit(lambda x, i, j: x[i, j])(lazy_x, lazy_labels, lazy_labels)


def test_another_number_of_rows_takes_as_many_tasks_a_block(monkeypatch):
    step, sizes, compute = lt.dask.value_and_grad(logistic_loss), [], dask.compute

    def counting(*collections):
        sizes.append(len({key for x in dask.optimize(*collections) for key in x.dask}))
        return compute(*collections)

    monkeypatch.setattr(dask, "compute", counting)
    for rows in (20, 40, 60):
        step(W, da.ones((rows, 3), chunks=(rows // 4, 3)), da.ones(rows, chunks=rows // 4))

    assert sizes == [sizes[0]] * 3

"""Groups with reductions that run as kernels: the results of NumPy, in its types and order."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import letir as lt
from letir.ast.terms import Lambda
from letir.executor.compiled import kernels_setting
from letir.executor.default_pipeline import optimize_program
from letir.plan.plan import plan_of
from letir.testing import assert_close, assert_same
from tests.rounding_noise import assert_within_rounding

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)
from letir.executor.kernels.group_kernels import with_kernels

RNG = np.random.default_rng(2)
X = RNG.normal(size=(150, 200))


def plan_binds(f, *args) -> list[str]:
    """The operations of a function's plan."""
    return [bind.op.name for bind in lt.compile(lt.trace(f, *args)).plan.binds]


def run_kernels(program: Lambda, *args, exact: bool = False) -> tuple:
    """The results of a program, with a kernel for each group that can have one."""
    made = with_kernels(optimize_program(program, exact=exact), exact, min_elements=1)
    return plan_of(made).run(list(args))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def normalised(x):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)


def several(x):
    """Reductions along rows, along columns and of all, of one array."""
    y = x * x - 1
    return y.sum(axis=1), y.mean(axis=0), y.max(), (y > 3).any(axis=1), y.min(axis=0), y.sum()


def standardised(x):
    """Composites, whose parts join the kernel."""
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)


def norms(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True), x.std(axis=-1), np.nansum(x, axis=-1)


@pytest.mark.parametrize("f", [softmax, normalised, several, standardised, norms])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_a_function_with_reductions_is_one_kernel(f, dtype):
    x = X.astype(dtype)

    assert ["kernel"] == plan_binds(f, x)
    found, expected = lt.jit(f)(x), f(x)
    assert_close(expected, found, rtol=1e-5 if dtype == "f4" else 1e-13, atol=1e-5)
    for a, b in zip(*[y if type(y) is tuple else (y,) for y in (expected, found)], strict=True):
        assert (type(a), a.dtype) == (type(b), b.dtype)


def test_the_elements_of_a_stored_mask_are_counted_by_numpy():
    def selected(x):
        x = x.copy()
        mask = (x > 0.5) & (x < 1.5)
        x[mask] = np.sqrt(x[mask])
        return x, mask.sum()

    def fraction(x):
        return ((x > 0.5) & (x < 1.5)).sum() / x.size

    assert "sum" in plan_binds(selected, X)
    assert "sum" not in plan_binds(fraction, X)
    for f in (selected, fraction):
        assert_same(f(X), lt.compile(lt.trace(f, X))(X))


def test_a_loss_and_its_gradient_have_no_arrays_between():
    def loss(x, target):
        shifted = x - x.max(axis=-1, keepdims=True)
        logs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
        return -(target * logs).sum() / len(x)

    found = lt.jit(lt.value_and_grad(loss))(X, X)

    assert 1 == plan_binds(lt.value_and_grad(loss), X, X).count("kernel")
    assert_close(lt.run_forward(lt.trace(lt.value_and_grad(loss), X, X), X, X), found)


@pytest.mark.parametrize(
    "x",
    [X.T.copy().T, X[::-1], X[:, ::2], X[::2], X.T, np.broadcast_to(X[:1], X.shape)],
)
def test_memory_orders_equal_numpys(x):
    def f(x):
        y = x * 2 + 1
        return y, y.sum(axis=1), y / y.max(axis=0)

    found, expected = lt.jit(f)(x), f(x)

    assert_close(expected, found, rtol=1e-14)
    assert [y.strides for y in expected] == [y.strides for y in found]


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "i8", "u8"])
def test_integers_are_reduced_in_the_dtypes_of_numpy(dtype):
    def f(x):
        y = np.where(x > x.min(), x, x + x)
        return y.sum(), y.sum(axis=0), y.max(axis=1), y.mean(axis=1), y.prod(axis=0), y.all()

    x = (X * 100).astype("i4").astype(dtype)

    assert "kernel" in plan_binds(f, x)
    assert_same(f(x), lt.jit(f)(x))


def test_nan_and_infinities_are_reduced_as_by_numpy():
    def f(x):
        y = x + 0.0 * x
        return y.max(axis=1), y.min(axis=0), y.max(), y.sum(axis=0), y.any(axis=1)

    x = X.copy()
    x[3, 4], x[5, 6], x[7] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        found, expected = lt.jit(f)(x), f(x)

    assert_close(expected, found, rtol=1e-13)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "any"])
@pytest.mark.parametrize("shape", [(30_000, 1), (30_000, 3), (100, 50, 7), (70_000, 16)])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "?"])
def test_a_reduction_of_many_short_rows_is_a_kernel(name, shape, dtype):
    x = (RNG.normal(size=shape) + 1).astype(dtype)
    axes = tuple(range(len(shape) - 1))

    def f(x):
        return getattr(np, name)(x, axis=axes)

    expected, found = f(x), lt.jit(f)(x)

    assert ["kernel" if shape[-1] > 1 else name] == plan_binds(f, x)
    assert (expected.dtype, type(expected)) == (found.dtype, type(found))
    assert_close(expected, found, rtol=1e-4 if dtype == "f4" else 1e-11)
    columns = np.asfortranarray(x)  # NumPy adds these faster
    assert_close(f(columns), lt.jit(f)(columns), rtol=1e-4 if dtype == "f4" else 1e-11)


def test_a_warning_is_numpys():
    def f(x):
        return np.log(np.exp(x).sum(axis=1))

    x = X.copy()
    x[3, 4] = 1e4
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = lt.jit(f)(x)

    assert ["overflow encountered in exp"] == [str(w.message) for w in caught]
    assert __file__ == caught[0].filename
    assert np.isinf(found[3])


def test_sums_are_as_accurate_as_pairwise_ones():
    def f(x):
        y = x * 1.0
        return y.sum(), y.sum(axis=1)

    x = (RNG.random((10, 200_000)) + 1).astype("f4")
    total, rows = lt.jit(f)(x)

    assert np.allclose(x.astype("f8").sum(), total, rtol=3e-7, atol=0)
    assert np.allclose(x.astype("f8").sum(axis=1), rows, rtol=3e-7, atol=0)


def test_a_large_sum_loses_no_small_terms():
    x = np.full(2_000_000, 0.1)
    x[0] = 1e9
    # only additions to the first block, of 2**8 elements, are without compensation; how many of
    # them meet the large element depends on the width of the processor's vectors
    most = 2**8 * np.spacing(1e9) / 2

    assert abs(lt.jit(lambda x: (x * 1.0).sum())(x) - 1e9 - 199_999.9) < most


def test_few_degrees_of_freedom_are_the_warning_of_numpy():
    x = X.reshape(-1, 1)
    f = lt.jit(lambda x: (x * 2).var(axis=1, ddof=2).sum())

    with pytest.warns(RuntimeWarning, match="Degrees of freedom"), np.errstate(all="ignore"):
        f(x)


def test_exact_kernels_have_no_floating_sums():
    def f(x, n):
        return (x * x).sum(axis=1), (n + n).sum(axis=1), (n > 3).any(axis=0)

    n = (X * 10).astype("i8")
    found = lt.jit(f, exact=True)(X, n)

    assert_same(f(X, n), found)


# ---- generated programs ----

SHAPES = [(5,), (3, 7), (4, 1), (2, 3, 4), (3, 2, 2, 5), (600,), (3, 600), (1, 9)]
UNARY = [np.negative, np.abs, np.square, np.exp, lambda x: x > 0.5, lambda x: x[..., None]]
BINARY = [np.add, np.multiply, np.subtract, np.maximum, lambda x, y: np.where(x > y, x, y * 2)]
REDUCTIONS = [np.sum, np.mean, np.max, np.min, np.any, np.prod, np.all]


@st.composite
def reducing_functions(draw):
    """A function of elementwise steps, views and reductions, and its arguments."""
    shape = draw(st.sampled_from(SHAPES))
    dtype = draw(st.sampled_from(["f8", "f8", "f4", "i4"]))
    seed = np.random.default_rng(draw(st.integers(0, 9)))
    ones = [1] * len(shape[1:-1])
    others = [
        shape,
        shape[-1:],
        shape[1:],
        (*shape[:1], *ones, *shape[-1:][: len(shape) - 1]),
        (1,) * len(shape),
        (*shape[:1], *[1] * (len(shape) - 1)),
    ]
    values = [
        (seed.normal(size=s) * 2).astype(dtype) for s in [shape, draw(st.sampled_from(others))]
    ]
    step = st.tuples(st.sampled_from([0, 1, 1, 2, 2]), *[st.integers(0, 1 << 12) for _ in range(4)])
    steps = draw(st.lists(step, min_size=2, max_size=12))
    kept = draw(st.lists(st.integers(0, 15), min_size=1, max_size=4))

    def f(*given):
        found = list(given)
        for kind, which, *places in steps:
            x, y = (found[place % len(found)] for place in places[:2])
            made = _step(kind, which, x, y, places[2])
            if made is not None:
                found.append(made)
        return tuple([found[-1 - n % len(found)] for n in kept])

    return f, values


def _step(kind: int, which: int, x, y, options: int):
    """A step on ``x``, and on ``y`` if it takes two operands; None if it does not fit."""
    if kind == 0:
        made = UNARY[which % len(UNARY)]
        return None if np.ndim(x) > 3 or (x.dtype == bool and made is np.negative) else made(x)
    if kind == 1:
        is_fit = all(
            a == b or 1 in (a, b) for a, b in zip(x.shape[::-1], y.shape[::-1], strict=False)
        )
        return BINARY[which % len(BINARY)](x + 0, y + 0) if is_fit else None
    axes = range(x.ndim)
    axis = [None, *axes, tuple(axes[1:]), tuple(axes[:2])][options % (3 + x.ndim)]
    return REDUCTIONS[which % len(REDUCTIONS)](x, axis=axis, keepdims=bool(options & 64))


@given(reducing_functions())
def test_programs_with_reductions_compute_the_values_of_numpy(drawn):
    f, args = drawn
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = lt.trace(f, *args)
        expected = lt.run_forward(program, *args)
        found = run_kernels(program, *args)
        assert_within_rounding(program, args, expected, found)
    assert [y.strides for y in expected] == [y.strides for y in found]


def test_one_number_broadcast_to_an_array_is_not_an_array_of_a_kernel():
    """The gradient of a sum broadcasts one number."""

    def loss(x, scale, shift):
        return (normalised(x) * scale + shift).sum()

    gradient = lt.value_and_grad(loss, argnums=(0, 1, 2))
    args = X, X[0], X[1]
    plan = lt.compile(lt.trace(gradient, *args)).plan
    kernels = [bind for bind in plan.binds if bind.op.name == "kernel"]

    assert 1 == len(kernels)
    assert 1 == sum(arg.type.shape == X.shape for arg in kernels[0].args)
    with np.errstate(all="ignore"):
        assert_close(lt.run_forward(lt.trace(gradient, *args), *args), lt.jit(gradient)(*args))


def test_a_length_that_no_operand_has_is_left_to_numpy():
    """The arguments are a number and a column, the results have rows."""

    def f(t, column):
        y = np.hypot(column, np.broadcast_to(t, (150, 200)))
        return y, (y * y).sum(axis=1)

    args = np.float64(0.7), X[:, :1]

    assert_close(f(*args), lt.compile(lt.trace(f, *args))(*args), rtol=1e-13)


def test_a_sum_of_copies_of_a_number_is_a_multiple():
    def f(x, t):
        copies = np.broadcast_to(t, x.shape)
        return (x * x).sum(axis=1), copies.sum(axis=0), copies.sum(), copies.mean()

    args = X, np.float64(0.1)
    plan = lt.compile(lt.trace(f, *args)).plan

    assert ["full", "kernel", "mean", "mul", "mul"] == sorted(
        bind.op.name for bind in plan.binds if bind.op.name not in ("broadcast_to", "reshape")
    )
    assert_close(f(*args), plan.run(list(args)))


def test_small_reductions_become_a_kernel_where_they_are_many():
    def loss(z, targets):
        z = z - z.max(axis=1, keepdims=True)
        return -(targets * (z - np.log(np.exp(z).sum(axis=1, keepdims=True)))).sum(axis=1).mean()

    z = np.random.default_rng(0).normal(size=(256, 10))
    gradient = lt.value_and_grad(lt.trace(loss, z, z))

    (kernel,) = lt.compile(gradient).kernels
    assert "max" in str(kernel)
    assert not lt.compile(lt.trace(lambda z: z.sum(axis=1), z)).kernels


def few_columns(x, y, w):
    """Reductions in all directions over a short last axis."""
    d = x[:, None, :] - y[None, :, :]
    k = np.exp(-0.5 * (d * d).sum(axis=-1))
    unit = d / np.sqrt((d * d).sum(axis=-1, keepdims=True) + 1)
    centred = unit - unit.mean(axis=-1, keepdims=True)
    return k, centred * w, unit.max(axis=-1), (d * w).mean(axis=0), (d > 1).sum()


@pytest.mark.parametrize("columns", [1, 2, 3, 8, 9])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
def test_a_short_last_axis_is_computed_without_a_loop(columns, dtype):
    x = (10 * RNG.normal(size=(41, columns))).astype(dtype)
    y, w = np.asfortranarray(x[::-1]), x[3]
    program = lt.trace(few_columns, x, y, w)
    found = run_kernels(program, x, y, w)

    expected = few_columns(x, y, w)
    for one, other in zip(expected, found, strict=True):
        assert_close(one, other, rtol=1e-4 if dtype == "f4" else 1e-12, atol=1e-5)


def test_the_gradient_over_a_short_last_axis():
    x, y = RNG.normal(size=(60, 3)), RNG.normal(size=(70, 3))

    def loss(x, y):
        return np.exp(-((x[:, None, :] - y[None, :, :]) ** 2).sum(axis=-1)).sum()

    gradient = lt.value_and_grad(loss, argnums=(0, 1))
    program = lt.trace(gradient, x, y)

    assert_close(tuple(lt.run_forward(program, x, y)[1]), tuple(lt.compile(program)(x, y)[1]))


def test_few_operations_do_not_transpose_an_operand():
    """A copy of an array whose columns lie side by side takes longer than NumPy's own calls."""
    x = np.asfortranarray(np.random.default_rng(0).normal(size=(3000, 40)))

    def few(x):
        return (x > 0).any(1), (x < 2).all(0)

    def many(x):
        return np.exp(x - x.max(0)) / np.exp(x - x.max(0)).sum(0)

    for f, copies in ((few, False), (many, True)):
        compiled = lt.compile(lt.trace(f, x))
        calls = [b.op.impl.call for b in compiled.plan.binds if b.op.role == "kernel"]
        assert [copies] == [call.copies_columns for call in calls]
        assert_close(f(x), compiled(x), rtol=1e-12)

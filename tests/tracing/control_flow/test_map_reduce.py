"""``map``, ``reduce``, ``associative_scan``, ``reduce_by_index``, ``scatter``, against loops."""

import functools

import numpy as np
import pytest

import letir as lt
from letir.ast.primitive import PRIMITIVES
from letir.testing import check_grads

RNG = np.random.default_rng(0)
SQUARES = RNG.normal(size=(9, 2, 2))
MANY = RNG.normal(size=9)
PLACES = np.array([0, 2, 2, -1, 7, 1, 0, 3, 2])
DEST = RNG.normal(size=4)


def affine(first, second):
    """The composition of two affine maps."""
    a, b = first
    c, d = second
    return a * c, b * c + d


# ---- map ----


def test_a_map_is_one_bind_with_the_body_of_one_element():
    fn = lt.trace(lambda x, w: lt.map(lambda row: (row * w).sum(), x), np.ones((5, 3)), 2.0)

    (bind,) = fn.binds
    assert "map" == bind.op.name
    assert (3,) == bind.attrs["body"].params[0].type.shape
    assert bind.attrs["batched"] is True
    np.testing.assert_array_equal(fn(np.ones((5, 3)), 2.0), np.full(5, 6.0))


def test_a_map_takes_and_gives_pytrees():
    found = lt.map(
        lambda p, y: {"a": p["x"] * y, "b": (y, 1)}, {"x": np.ones((3, 2))}, np.arange(3)
    )

    np.testing.assert_array_equal(found["a"], np.arange(3)[:, None] * np.ones((3, 2)))
    np.testing.assert_array_equal(found["b"][0], np.arange(3))
    np.testing.assert_array_equal(found["b"][1], np.ones(3))


def test_a_map_without_a_batching_rule_handles_elements_one_by_one():
    def shift(x, k):
        return x * lt.run_forward(looped, x, k)

    builder = lt.LetBuilder()
    x, k = builder.param(lt.ArrayType(float)), builder.param(lt.ArrayType(float))
    looped = builder.build([lt.opaque(np.hypot, aval=lambda a, b: a)(x, k)])
    fn = lt.trace(lambda xs: lt.map(lambda x: shift(x, 2.0 * x), xs), MANY)

    assert fn.binds[0].attrs["batched"] is False
    np.testing.assert_allclose(fn(MANY), MANY * np.hypot(MANY, 2 * MANY))


def test_effects_of_a_map_happen_in_the_order_of_the_elements(capsys):
    lt.map(lambda x: (lt.debug.print("{}", x), x)[1], np.arange(3))

    assert "0\n1\n2\n" == capsys.readouterr().out


@pytest.mark.parametrize("n", [0, 1, 4])
def test_derivatives_of_a_map_agree_with_the_loop(n):
    x = RNG.normal(size=(n, 3))

    def mapped(x, w):
        return lt.map(lambda row: np.tanh(row @ w), x)

    def looped(x, w):
        return np.stack([np.tanh(row @ w) for row in x]) if n else x[:, 0] * 0

    w = RNG.normal(size=3)
    for by_map, by_loop in zip(
        lt.jacobian(mapped, (0, 1))(x, w), lt.jacobian(looped, (0, 1))(x, w), strict=True
    ):
        np.testing.assert_allclose(by_map, by_loop, rtol=1e-12)


def test_a_map_in_a_map():
    x = RNG.normal(size=(3, 4))
    fn = lt.trace(lambda x: lt.map(lambda row: lt.map(lambda e: np.sin(e) * row[0], row), x), x)

    np.testing.assert_allclose(fn(x), np.sin(x) * x[:, :1])
    check_grads(fn, [x], order=2)


# ---- reduce and associative_scan ----

UFUNCS = (np.add, np.multiply, np.maximum, np.minimum, np.logaddexp, np.fmax)


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda f: f.__name__)
def test_ufuncs_are_numpys_reductions_and_accumulations(ufunc):
    assert ufunc.reduce(MANY) == pytest.approx(lt.reduce(ufunc, MANY[0], MANY[1:]), rel=1e-15)
    np.testing.assert_array_equal(ufunc.accumulate(MANY), lt.associative_scan(ufunc, MANY))


@pytest.mark.parametrize("dtype", ["int8", "bool", "float32", "complex64"])
def test_a_reduction_keeps_the_dtype_of_its_elements(dtype):
    x = np.array([1, 1, 0, 1]).astype(dtype)

    for op in (lambda a, b: a + b, lambda a, b: a * b):
        assert dtype == lt.reduce(op, x[0], x).dtype
        assert dtype == lt.associative_scan(op, x).dtype
    # a Python number takes part as it does in NumPy
    assert np.result_type(dtype, 1.0) == lt.reduce(lambda a, b: a + b, 1.0, x).dtype


@pytest.mark.parametrize("n", range(10))
def test_an_operation_that_does_not_commute_keeps_the_order(n):
    mats, start = SQUARES[:n], SQUARES[-1]
    prefixes = [functools.reduce(np.matmul, mats[: i + 1]) for i in range(n)]
    suffixes = [functools.reduce(np.matmul, mats[: i - 1 if i else None : -1]) for i in range(n)]

    def matmul(a, b):
        return a @ b

    np.testing.assert_allclose(
        lt.reduce(matmul, start, mats), functools.reduce(np.matmul, mats, start)
    )
    np.testing.assert_allclose(lt.associative_scan(matmul, mats), np.reshape(prefixes, mats.shape))
    np.testing.assert_allclose(
        lt.associative_scan(matmul, mats, reverse=True), np.reshape(suffixes, mats.shape)
    )


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_reductions_run_along_any_axis(axis):
    x = RNG.normal(size=(3, 4))

    def op(a, b):
        return a + b + a * b

    by_hand = np.moveaxis(x, axis, 0)
    np.testing.assert_allclose(
        lt.reduce(op, 0.0, x, axis=axis), functools.reduce(op, by_hand), rtol=1e-12
    )
    found = lt.associative_scan(op, x, axis=axis)
    np.testing.assert_allclose(found, np.moveaxis(lt.associative_scan(op, by_hand), 0, axis))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [0, 1, 5, 8])
def test_associative_scans_agree_with_the_loop(n, reverse):
    a, b = MANY[:n], MANY[::-1][:n].copy()
    found = lt.associative_scan(affine, (a, b), reverse=reverse)

    expected, state = np.zeros((2, n)), (1.0, 0.0)
    for i in range(n)[:: -1 if reverse else 1]:
        state = affine(state, (a[i], b[i]))
        expected[:, i] = state
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_values_that_an_operation_closes_over_are_differentiated():
    def loss(w, x):
        return lt.reduce(lambda a, b: a + b + w * a * b, 0.0, x).sum()

    def loop(w, x):
        return functools.reduce(lambda a, b: a + b + w * a * b, x)

    check_grads(lt.trace(loss, 0.3, MANY[:5]), [0.3, MANY[:5]], order=2)
    by_pairs, by_loop = lt.grad(loss, (0, 1))(0.3, MANY), lt.grad(loop, (0, 1))(0.3, MANY)
    np.testing.assert_allclose(by_pairs[0], by_loop[0], rtol=1e-12)
    np.testing.assert_allclose(by_pairs[1], by_loop[1], rtol=1e-12)


def test_the_derivative_of_a_product_is_right_where_factors_are_zero():
    x = np.array([2.0, 0.0, 3.0, 0.0])

    gradient = lt.grad(lambda x: lt.reduce(lambda a, b: a * b, 1.0, x))(x[:3])
    np.testing.assert_array_equal(gradient, [0.0, 6.0, 0.0])
    hessian = lt.hessian(lambda x: lt.reduce(lambda a, b: a * b, 1.0, x))(x)
    expected = np.zeros((4, 4))
    expected[1, 3] = expected[3, 1] = 6.0
    np.testing.assert_array_equal(hessian, expected)


def test_ties_of_extrema_share_the_gradient():
    gradient = lt.grad(lambda x: lt.reduce(np.maximum, -1.0, x))(np.array([1.0, 3.0, 3.0]))

    np.testing.assert_array_equal(gradient, [0.0, 0.5, 0.5])


def test_the_size_of_the_program_does_not_depend_on_the_number_of_elements():
    sizes = {
        len(
            lt.trace(
                lambda x: (
                    lt.reduce(affine, (1.0, 0.0), (x, x)),
                    lt.associative_scan(affine, (x, x)),
                    lt.map(np.sin, x),
                ),
                np.ones(n),
            )
        )
        for n in (3, 1000)
    }

    assert 1 == len(sizes)


def test_vmap_agrees_with_the_loop():
    x = RNG.normal(size=(4, 5))

    def f(x):
        return lt.reduce(affine, (1.0, 0.0), (x, x + 1)), lt.associative_scan(np.maximum, x)

    for found, each in zip(
        lt.vmap(f)(x)[0], zip(*[f(row)[0] for row in x], strict=True), strict=True
    ):
        np.testing.assert_allclose(found, each, rtol=1e-12)
    np.testing.assert_array_equal(lt.vmap(f)(x)[1], np.maximum.accumulate(x, axis=1))


# ---- reduce_by_index and scatter ----

OPERATIONS = {
    "add": (lambda a, b: a + b, 0.0),
    "mul": (lambda a, b: a * b, 1.0),
    "maximum": (np.maximum, -np.inf),
    "logaddexp": (np.logaddexp, -np.inf),
    "pairs": (lambda a, b: a + b + a * b, 0.0),
}


def histogram(dest, op, places, values):
    """``reduce_by_index`` as a loop."""
    found = list(dest)
    for i, value in zip(places, values, strict=True):
        if 0 <= i < len(found):
            found[i] = op(found[i], value)
    return np.stack(found)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_histogram_agrees_with_the_loop(name):
    op, neutral = OPERATIONS[name]

    found = lt.reduce_by_index(DEST, op, neutral, PLACES, MANY)
    np.testing.assert_allclose(found, histogram(DEST, op, PLACES, MANY), rtol=1e-14)


@pytest.mark.parametrize("name", OPERATIONS)
def test_derivatives_of_a_histogram_agree_with_the_loop(name):
    op, neutral = OPERATIONS[name]

    def loss(dest, values):
        return (lt.reduce_by_index(dest, op, neutral, PLACES, values) ** 2).sum()

    def by_loop(dest, values):
        return (histogram(dest, op, PLACES, values) ** 2).sum()

    for transform in (lt.grad, lt.jacfwd):
        for found, expected in zip(
            transform(loss, (0, 1))(DEST, MANY), lt.grad(by_loop, (0, 1))(DEST, MANY), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)
    found, expected = (lt.hessian(f, 1)(DEST, MANY) for f in (loss, by_loop))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)


def test_no_nan_comes_from_a_neutral_element_at_infinity():
    def op(a, b):
        return np.log(np.exp(a) + np.exp(b))

    def loss(values):
        return lt.reduce_by_index(DEST, op, -np.inf, PLACES, values).sum()

    expected = lt.grad(lambda values: histogram(DEST, op, PLACES, values).sum())(MANY)
    np.testing.assert_allclose(lt.grad(loss)(MANY), expected, rtol=1e-12)


def test_elements_may_be_arrays_and_pytrees():
    values = {"n": np.ones(9, int), "x": RNG.normal(size=(9, 2))}
    dest = {"n": np.zeros(4, int), "x": np.zeros((4, 2))}

    def op(a, b):
        return {"n": a["n"] + b["n"], "x": a["x"] + b["x"]}

    found = lt.reduce_by_index(dest, op, {"n": 0, "x": 0.0}, PLACES, values)
    np.testing.assert_array_equal(found["n"], [2, 1, 3, 1])
    np.testing.assert_allclose(found["x"], histogram(dest["x"], np.add, PLACES, values["x"]))
    assert np.dtype(int) == found["n"].dtype


def test_a_scatter_ignores_places_outside_and_the_last_value_wins():
    found = lt.scatter(DEST, PLACES, MANY)

    np.testing.assert_array_equal(found, [MANY[6], MANY[5], MANY[8], MANY[7]])
    gradient = lt.grad(lambda d, v: lt.scatter(d, [1, 1, 9], v).sum(), (0, 1))(DEST, MANY[:3])
    np.testing.assert_array_equal(gradient[0], [1, 0, 1, 1])
    np.testing.assert_array_equal(gradient[1], [0, 1, 0])


def test_empty_destinations_and_values():
    none = np.zeros(0)
    np.testing.assert_array_equal(lt.scatter(none, PLACES, MANY), none)
    np.testing.assert_array_equal(lt.scatter(DEST, [], none), DEST)
    for op, neutral in OPERATIONS.values():
        np.testing.assert_array_equal(lt.reduce_by_index(none, op, neutral, PLACES, MANY), none)
        np.testing.assert_array_equal(lt.reduce_by_index(DEST, op, neutral, [], none), DEST)


def test_vmap_of_histograms_agrees_with_the_loop():
    values = RNG.normal(size=(3, 9))
    op, neutral = OPERATIONS["pairs"]

    def f(values):
        return lt.reduce_by_index(DEST, op, neutral, PLACES, values)

    np.testing.assert_allclose(lt.vmap(f)(values), np.stack([f(v) for v in values]), rtol=1e-12)


# ---- errors ----

WRONG = {
    "bool": (lambda: lt.reduce(lambda a, b: a > b, 0.0, MANY), "into bool"),
    "nesting": (lambda: lt.associative_scan(lambda a, b: (a, b), MANY), r"returns .*nest as"),
    "sizes": (lambda: lt.map(lambda a, b: a, MANY, MANY[1:]), "differ: 9, 8"),
    "no axis": (lambda: lt.reduce(np.add, 0.0, 3.0), "has no axis 0"),
    "indices": (lambda: lt.scatter(DEST, [0.5], MANY[:1]), "vector of integers"),
    "dtype": (lambda: lt.scatter(np.zeros(3, int), [0], MANY[:1]), "cannot hold float64"),
    "shape": (lambda: lt.scatter(SQUARES, [0], MANY[:1]), "cannot hold float64"),
    "nothing": (lambda: lt.map(lambda: 0), "an array is needed"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_say_what_was_found_and_where(name):
    call, message = WRONG[name]

    with pytest.raises(lt.LetirError, match=message) as caught:
        call()
    assert "test_map_reduce.py" in str(caught.value)


@pytest.mark.parametrize("name", ["map", "reduce", "associative_scan", "scatter"])
def test_rules_called_by_eager_mode_agree_with_the_transforms(name):
    """The history of a Variable is differentiated bind by bind."""
    calls = {
        "map": lambda x: lt.map(np.sin, x),
        "reduce": lambda x: lt.reduce(lambda a, b: a + b + a * b, 0.0, x),
        "associative_scan": lambda x: lt.associative_scan(lambda a, b: a + b + a * b, x),
        "scatter": lambda x: lt.scatter(x, [1, 2], x[:2] * x[1:3]),
    }

    def loss(x):
        return (calls[name](x) ** 2).sum()

    x = lt.Variable(MANY, requires_grad=True)
    loss(x).backward()
    assert PRIMITIVES[name].inlined
    np.testing.assert_allclose(np.asarray(x.grad), lt.grad(loss)(MANY), rtol=1e-12)


# ---- other sizes ----

SIZED = {
    "map": lambda x: lt.map(lambda row: np.tanh(row).sum(), x).sum(),
    "reduce": lambda x: lt.reduce(lambda a, b: a + b + a * b, 0.0, x).sum(),
    "sum": lambda x: lt.reduce(np.add, 0.0, x).sum(),
    "associative_scan": lambda x: (lt.associative_scan(lambda a, b: a + b + a * b, x) ** 2).sum(),
    "cumsum": lambda x: (lt.associative_scan(np.add, x, reverse=True) ** 2).sum(),
    "reduce_by_index": lambda x: lt.reduce_by_index(
        np.ones((4, 3)), lambda a, b: a + b + a * b, 0.0, (3 * x[:, 0]).astype(int), x
    ).sum(),
    "scatter": lambda x: lt.scatter(np.ones((4, 3)), (3 * x[:, 0]).astype(int), x).sum(),
}


@pytest.mark.parametrize("name", SIZED)
def test_a_program_with_a_symbolic_size_works_for_any_number_of_elements(name):
    f = SIZED[name]
    fn = lt.trace(f, lt.ShapeDtype(("n", 3)))

    for n in (0, 1, 4):
        x = RNG.normal(size=(n, 3))
        np.testing.assert_allclose(fn(x), f(x), rtol=1e-12)
        np.testing.assert_allclose(lt.grad(fn)(x), lt.grad(f)(x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", SIZED)
def test_a_compiled_function_takes_any_number_of_elements(name):
    f = SIZED[name]
    compiled = lt.jit(lt.value_and_grad(f))

    for n in (3, 4, 0, 5):
        x = RNG.normal(size=(n, 3))
        value, gradient = lt.value_and_grad(f)(x)
        np.testing.assert_allclose(compiled(x)[0], value, rtol=1e-12)
        np.testing.assert_allclose(compiled(x)[1], gradient, rtol=1e-10, atol=1e-12)

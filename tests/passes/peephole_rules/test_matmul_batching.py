"""batch_matmuls: one large product instead of many small ones, equal up to rounding."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import letir as lt
from letir.ast.builder import LetBuilder
from letir.ast.types import ArrayType
from letir.passes import batch_matmuls
from letir.testing import assert_close, assert_same


def names(f: lt.Lambda) -> list[str]:
    """The names of the operations, in order."""
    return [bind.op.name for bind in f.binds]


def products(f: lt.Lambda) -> int:
    """The number of matrix products in a program."""
    return names(f).count("matmul")


def batched(f, *args) -> lt.Lambda:
    """``f`` recorded and batched. Raises AssertionError unless results agree up to rounding."""
    recorded = lt.trace(f, *args)
    found = lt.check(batch_matmuls(recorded))
    assert_close(recorded(*args), found(*args), rtol=1e-12, atol=1e-12)
    return found


def matrices(count: int, *shape: int) -> list[np.ndarray]:
    """Matrices of random numbers."""
    rng = np.random.default_rng(count)
    return [rng.normal(size=shape) for _ in range(count)]


# ---- a common factor ----


def test_products_with_a_common_right_factor_are_merged():
    w = np.linspace(-1, 1, 15).reshape(3, 5)

    assert 1 == products(batched(lambda xs: [x @ w for x in xs], matrices(5, 2, 3)))


def test_products_with_a_common_left_factor_are_merged():
    x = np.linspace(-1, 1, 6).reshape(2, 3)

    assert 1 == products(batched(lambda ws: [x @ w for w in ws], matrices(6, 3, 4)))


def test_products_of_different_numbers_of_rows_are_merged():
    w, xs = np.linspace(-1, 1, 15).reshape(3, 5), [*matrices(2, 2, 3), *matrices(3, 4, 3)]

    assert 1 == products(batched(lambda xs: [x @ w for x in xs], xs))


def test_an_unrolled_rnn_multiplies_all_its_inputs_at_once():
    """Each state depends on the one before, the inputs do not."""

    def rnn(xs, w, u):
        h = np.zeros((2, 4))
        for t in range(8):
            h = np.tanh(xs[t] @ w + h @ u)
        return h

    args = np.linspace(-1, 1, 48).reshape(8, 2, 3), *matrices(1, 3, 4), *matrices(1, 4, 4)

    assert 1 + 8 == products(batched(rnn, *args))


def test_products_that_depend_on_each_other_stay():
    def f(x, w):
        for _ in range(6):
            x = np.tanh(x @ w)
        return x

    recorded = lt.trace(f, *matrices(1, 2, 4), *matrices(1, 4, 4))

    assert recorded is batch_matmuls(recorded)


def test_too_few_products_are_not_merged():
    w, xs = np.linspace(-1, 1, 15).reshape(3, 5), matrices(3, 2, 3)
    recorded = lt.trace(lambda xs: [x @ w for x in xs], xs)

    assert recorded is batch_matmuls(recorded)


def test_large_products_are_not_merged():
    w, xs = np.ones((80, 90)), matrices(6, 70, 80)
    recorded = lt.trace(lambda xs: [x @ w for x in xs], xs)

    assert recorded is batch_matmuls(recorded)


def test_a_batch_has_no_more_rows_than_is_profitable():
    w = np.ones((3, 5))

    assert 4 == products(batched(lambda xs: [x @ w for x in xs], matrices(48, 20, 3)))


def test_nothing_moves_past_an_effect():
    """[C5]"""

    def f(xs, w):
        return [x @ w for x in xs] if xs[0].sum() > 0 else xs

    def halves(xs, w):
        first = [x @ w for x in xs[:3]]
        return first + [x @ w for x in xs[3:]] if xs[0].sum() > 0 else first

    args = [np.abs(x) for x in matrices(6, 2, 3)], np.ones((3, 5))

    assert 1 == products(batched(f, *args))
    assert 6 == products(batched(halves, *args))


def test_exact_mode_leaves_products_as_they_are():
    """[F4]"""
    w, xs = np.linspace(-1, 1, 15).reshape(3, 5), matrices(6, 2, 3)
    recorded = lt.trace(lambda xs: [x @ w for x in xs], xs)

    assert recorded is batch_matmuls(recorded, exact=True)
    assert recorded is not batch_matmuls(recorded)


def test_a_product_keeps_the_name_of_its_variable():
    def f(xs, w):
        first = xs[0] @ w
        return [first, *[x @ w for x in xs[1:]]]

    found = batched(f, matrices(6, 2, 3), np.ones((3, 5)))

    assert "first" in {binder.name for bind in found.binds for binder in bind.binders}


def test_products_in_the_body_of_a_loop_are_batched():
    def f(xs, w):
        return lt.fori_loop(0, 2, lambda i, ys: [np.tanh(y @ w) for y in ys], xs)

    found = batched(f, matrices(6, 2, 3), np.eye(3))

    assert 1 == products(found.binds[0].attrs["body"])


# ---- sums ----


def test_a_sum_of_thin_products_becomes_one_product():
    """A tree of sums of products becomes one product of concatenated factors."""

    def in_a_row(xs, ys):
        first, *others = [x[:, None] @ y[None, :] for x, y in zip(xs, ys, strict=True)]
        return sum(others, start=first)

    xs, ys = list(np.ones((8, 5))), list(np.linspace(-1, 1, 56).reshape(8, 7))
    assert 1 == products(batched(in_pairs, xs, ys))
    assert 1 == products(batched(in_a_row, xs, ys))


def in_pairs(xs, ys):
    """A sum of products added pairwise, as a tree."""
    terms = [x[:, None] @ y[None, :] for x, y in zip(xs, ys, strict=True)]
    while len(terms) > 1:
        terms = [terms[i] + terms[i + 1] for i in range(0, len(terms), 2)]
    return terms[0]


# ---- all programs ----


@st.composite
def product_programs(draw):
    """Programs of products, views and elementwise operations of small square matrices."""
    builder, kind = LetBuilder(), ArrayType(float, (3, 3))
    values = [builder.param(kind) for _ in range(3)]
    for _ in range(draw(st.integers(4, 24))):
        x, y = (values[-1 - draw(st.integers(0, len(values) - 1))] for _ in range(2))
        w = values[draw(st.integers(0, 1))]  # few, so that factors repeat
        made = {
            "right": lambda x=x, w=w: x @ w,
            "left": lambda x=x, w=w: w @ x,
            "turned": lambda x=x: x.T,
            "sum": lambda x=x, y=y: x * 0.5 + y * 0.25,
        }
        values.append(made[draw(st.sampled_from(["right", "right", "left", "turned", "sum"]))]())
    return builder.build(values[3 + draw(st.integers(0, len(values) - 4)) :])


@given(product_programs())
def test_results_are_the_same_within_rounding(f):
    args = [np.random.default_rng(i).normal(size=(3, 3)) * 0.4 for i in range(3)]
    found = lt.check(batch_matmuls(f))

    assert_close(f(*args), found(*args), rtol=1e-10, atol=1e-10)
    assert_same(found(*args), found(*args))

"""combine_sums: cotangents added up in a gradient program are assembled in one bind."""

import numpy as np
import pytest
from hypothesis import given

import letir as lt
import letir.numpy as lnp
from letir import run_forward
from letir.ast.text.parser import parse
from letir.passes import combine_sums, dead_code
from letir.passes.peephole_rules.sum_merging import MAX_WAITING
from letir.testing import assert_close, assert_same, check_grads, programs
from tests.test_linear_time import counted_lines

PARTS = """lambda %0: float64[2], %1: float64[3] {{
  %2: float64[5] = assemble(%0, items=({0},), shape=(5,));
  %3: float64[5] = assemble(%1, items=({1},), shape=(5,));
  %4: float64[5] = add(%2, %3);
  return {2} }}"""
PRODUCTS = """
lambda %0: float64[{0}, 1], %1: float64[1, 5], %2: float64[{0}, 2], %3: float64[2, 5] {{
  %4: float64[{0}, 5] = matmul(%0, %1);
  %5: float64[{0}, 5] = matmul(%2, %3);
  %6: float64[{0}, 5] = add(%4, %5);
  return %6 }}"""


def ops(f: lt.Lambda) -> list[str]:
    """The names of the operations, in order."""
    return [bind.op.name for bind in f.binds]


def results_of(f: lt.Lambda, seed: int = 0):
    """The results of ``f`` for random arguments."""
    rng = np.random.default_rng(seed)
    return run_forward(f, *[rng.normal(size=p.type.shape) for p in f.params])


def test_cotangents_of_different_parts_are_assembled_once():
    f = parse(PARTS.format(":2", "2:", "%4"))

    merged = lt.check(combine_sums(f))

    assert ["assemble"] == ops(merged)
    assert_same(results_of(f), results_of(merged))


def test_cotangents_of_overlapping_parts_are_added():
    f = parse(PARTS.format(":2", "1:4", "%4"))

    assert_same(results_of(f), results_of(combine_sums(f)))


def test_a_guard_next_to_a_sum_stays():
    def f(x, y):
        return x.T @ x + y.T @ y if x.sum() > 0 else x

    traced = lt.trace(f, np.ones((1, 3)), np.ones((1, 3)))
    merged = lt.check(combine_sums(traced))

    assert "guard" in ops(merged)
    assert 1 == ops(merged).count("matmul")


def test_cotangents_of_the_same_part_are_added_first():
    f = lt.trace(lambda x: x[1:] * x[1:] + x[1:] * x[:-1], np.ones(9))
    df = lt.differentiate(f, defined=[True]).df

    assert 1 == ops(df).count("assemble")
    (assemble,) = [bind for bind in df.binds if bind.op.name == "assemble"]
    assert 2 == len(assemble.attrs["items"])


def test_a_partial_sum_that_is_read_is_not_merged_with_later_terms():
    f = parse(PARTS.format(":2", "2:", "(%4, %2)"))

    assert f is combine_sums(f)


def added_from_the_left(n: int) -> lt.Lambda:
    """A sum of ``n`` parts, each of which is added to the left of the sum so far."""
    lines = [
        f"%{i}: float64[{n}] = assemble(%0, items=({i - 1},), shape=({n},))"
        for i in range(1, n + 1)
    ]
    total = 1
    for i in range(2, n + 1):
        lines.append(f"%{n + i}: float64[{n}] = add(%{i}, %{total})")
        total = n + i
    return parse(f"lambda %0: float64[] {{ {'; '.join(lines)}; return %{total} }}")


def test_a_sum_that_grows_to_the_left_is_merged_in_linear_time():
    lines = []
    for f in map(added_from_the_left, (100, 400)):
        with counted_lines() as count:
            merged = combine_sums(f)
        lines.append(count[0])
        assert ["assemble"] == ops(merged)

    assert lines[1] < 5 * lines[0]


def test_thin_products_become_one_product():
    f = parse(PRODUCTS.format(4))

    merged = lt.check(combine_sums(f))

    assert ["concatenate", "concatenate", "matmul"] == ops(merged)
    assert_close(results_of(f), results_of(merged))


def test_products_that_are_not_thin_stay():
    f = parse(PRODUCTS.format(1))

    assert f is combine_sums(f)


def test_a_sum_keeps_no_more_than_a_few_results_unmerged():
    """The number of terms kept alive is bounded, whatever the length of the sum."""

    def rnn(w, xs):
        total = 0.0
        for x in xs:
            total = total + np.tanh(x @ w).sum()
        return total

    w, xs = np.ones((3, 4)), np.linspace(0.0, 1.0, 3000).reshape(1000, 3)
    df = lt.grad(lt.trace(rnn, w, xs))

    widest = max(p.type.size for b in df.binds if b.op.name == "matmul" for p in b.args)
    assert widest <= (MAX_WAITING + 1) * w.size
    assert ops(df).count("matmul") <= 1000 + 1000 * 7 // (MAX_WAITING * w.size) + 2
    assert_close(lt.grad(rnn)(w, xs), sum(np.outer(x, 1 - np.tanh(x @ w) ** 2) for x in xs))


def test_products_of_a_matrix_and_vectors_become_one_product():
    def rnn(w, xs):
        return sum(np.tanh(w @ x).sum() for x in xs)

    w, xs = np.full((5, 4), 0.1), np.linspace(0.0, 1.0, 12).reshape(3, 4)
    df = lt.differentiate(lt.trace(rnn, w, xs), [True, False], defined=[True]).df

    assert 1 == ops(df).count("matmul")
    assert_close(lt.grad(rnn)(w, xs), sum(np.outer(1 - np.tanh(w @ x) ** 2, x) for x in xs))


def test_reading_every_element_costs_one_bind_in_the_gradient():
    def f(x):
        return sum(x[i] * x[i] for i in range(100))

    df = lt.differentiate(lt.trace(f, np.ones(100)), defined=[True]).df

    assert 1 == ops(df).count("assemble")
    assert_same(2 * np.arange(100.0), lt.grad(f)(np.arange(100.0)))


def test_gates_split_from_one_product_cost_one_bind_in_the_gradient():
    def gates(x):
        a, b = x[:, :2], x[:, 2:]
        return (np.tanh(a) * b).sum()

    df = lt.differentiate(lt.trace(gates, np.ones((3, 4))), defined=[True]).df

    assert 1 == ops(df).count("assemble")
    assert "add" not in ops(df)


def test_outer_products_of_a_loop_stack_their_vectors_once():
    """Weights of one layer share the cotangents; no vector is expanded to a column or row."""

    def rnn(w, u, xs):
        h = np.zeros(4)
        for x in xs:
            h = np.tanh(w @ x + u @ h)
        return h.sum()

    args = np.full((4, 4), 0.1), np.full((4, 4), 0.2), np.linspace(0.0, 1.0, 12).reshape(3, 4)
    f = lt.trace(rnn, *args)
    df = lt.differentiate(f, [True, True, False], defined=[True]).df

    assert 3 == ops(df).count("stack")
    assert "expand_dims" not in ops(df)
    check_grads(rnn, args)


def test_products_with_a_matrix_and_its_transpose_become_one_product():
    """Also if other terms come first, as in the gradient of Sinkhorn's iteration."""

    def scaled(c):
        k, u = np.exp(-c), np.ones(7)
        for _ in range(4):
            v = 1 / (k.T @ u)
            u = 1 / (k @ v)
        return (u[:, None] * k * v).sum()

    c = np.linspace(0.0, 1.0, 35).reshape(7, 5)
    df = lt.differentiate(lt.trace(scaled, c), defined=[True]).df

    products = [bind for bind in df.binds if bind.op.name == "matmul"]
    assert 1 == sum(len(bind.binders[0].type.shape) == 2 for bind in products)
    check_grads(scaled, (c,))


SUMS = """
lambda %0: float64[4, 1], %1: float64[1, 5], %2: float64[5], %3: float64[4], %4: float64[4, 5] {{
  %5: float64[5, 1] = expand_dims(%2, axis=1);
  %6: float64[1, 4] = expand_dims(%3, axis=0);
  %7: float64[5, 4] = matmul(%5, %6);
  %8: float64[4, 5] = transpose(%7);
  %9: float64[4, 5] = matmul(%0, %1);
  %10: float64[4, 5] = {0};
  %11: float64[4, 5] = {1};
  return {2} }}"""


@pytest.mark.parametrize(
    ("first", "second", "results", "products"),
    [
        ("add(%4, %8)", "add(%10, %9)", "%11", 1),
        ("add(%8, %4)", "add(%9, %10)", "%11", 1),
        ("add(%8, %9)", "add(%10, %4)", "%11", 1),
        ("add(%4, %9)", "add(%8, %10)", "%11", 1),
        ("add(%4, %8)", "add(%10, %9)", "(%11, %7)", 2),  # the product has other uses,
        ("add(%4, %8)", "add(%10, %9)", "(%11, %8)", 2),  # its transpose,
        ("add(%4, %8)", "add(%10, %9)", "(%11, %10)", 2),  # or the sum
        ("add(%4, %8)", "add(%10, %4)", "(%11, %9)", 2),
    ],
)
def test_transposed_products_and_sums_that_begin_with_another_value(
    first, second, results, products
):
    f = parse(SUMS.format(first, second, results))

    merged = lt.check(combine_sums(f))

    assert products == ops(merged).count("matmul")
    assert_close(results_of(f), results_of(merged), rtol=1e-14)


def products_added_to_a_value(n: int) -> lt.Lambda:
    """A value to which ``n`` products are added, one after the other."""
    lines, total = [], "%2"
    for i in range(3, 2 * n + 3, 2):
        lines.append(f"%{i}: float64[4, 5] = matmul(%0, %1)")
        lines.append(f"%{i + 1}: float64[4, 5] = add({total}, %{i})")
        total = f"%{i + 1}"
    params = "%0: float64[4, 1], %1: float64[1, 5], %2: float64[4, 5]"
    return parse(f"lambda {params} {{ {'; '.join(lines)}; return {total} }}")


def test_a_long_sum_that_begins_with_another_value_is_merged_in_linear_time():
    counts = []
    for f in map(products_added_to_a_value, (100, 400)):
        with counted_lines() as count:
            merged = combine_sums(f)
        counts.append(count[0])
        assert_close(results_of(f), results_of(merged), rtol=1e-12)

    assert counts[1] < 5 * counts[0]


def test_the_cotangent_of_a_buffer_that_is_read_and_written_is_updated():
    """[F6] It is not added as an array of zeros around the part."""

    def filled(v):
        buffer = lnp.zeros((10, 4))
        for i in range(1, 10):
            buffer[i] = np.sin(buffer[i - 1]) + v[i]
        return (buffer**2).sum()

    v = np.linspace(0.0, 1.0, 40).reshape(10, 4)
    df = lt.differentiate(lt.trace(filled, v), defined=[True]).df

    assert 8 == ops(df).count("index_add")
    check_grads(filled, (v,))


@given(programs())
def test_merging_sums_keeps_results(program):
    f, args = program
    merged = lt.check(combine_sums(f))

    with np.errstate(all="ignore"):
        assert_close(run_forward(f, *args), run_forward(dead_code(merged), *args))

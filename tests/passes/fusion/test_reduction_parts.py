"""Reductions that are rewritten before clustering: into parts, into products, and on numbers."""

import numpy as np
import pytest

import letir as lt
from letir.ast.text.parser import parse
from letir.passes.fusion.reduction_parts import with_numbers, with_parts, with_products

COPIED = """lambda %0: float64[], %1: float64[5] {
  %2: float64[5] = broadcast_to(%0, shape=(5,));
  %3: float64[5] = mul(%2, 0.5);
  %4: float64[5] = sub(%3, %2);
  %5: float64[5] = add(%4, %1);
  return %5 }"""


def shapes(fn) -> dict[str, list[tuple]]:
    """The shapes of the results of each operation."""
    found: dict[str, list[tuple]] = {}
    for bind in fn.binds:
        found.setdefault(bind.op.name, []).append(bind.binders[0].type.shape)
    return found


def test_operations_on_copies_of_a_number_compute_the_number():
    fn = parse(COPIED)
    found = with_numbers(fn)

    assert {"mul": [()], "sub": [()], "add": [(5,)]}.items() <= shapes(found).items()
    args = np.float64(0.3), np.arange(5.0)
    for x, y in zip(lt.run_forward(fn, *args), lt.run_forward(found, *args), strict=True):
        assert np.array_equal(x, y)


@pytest.mark.parametrize(
    "last",
    [
        "return %3",
        "%4: float64[1, 5] = reshape(%3, shape=(1, 5)); return %4",
        "%4: float64[5] = index_set(%3, 1.0, item=0); return %4",
    ],
)
def test_copies_that_are_no_operands_of_formulas_stay_arrays(last):
    text = COPIED.partition("%4")[0] + last + " }"

    assert with_numbers(fn := parse(text)) is fn


@pytest.mark.parametrize("call", ["exp(%2)", "maximum(%2, 0.5)", "copy(%2)", "mul(%2, %1)"])
def test_operations_that_are_not_exact_and_operations_on_arrays_stay(call):
    text = COPIED.replace("mul(%2, 0.5)", call).replace("sub(%3, %2)", "sub(%3, %1)")

    assert with_numbers(fn := parse(text)) is fn


def test_operations_on_no_elements_are_not_computed_for_the_number():
    text = """lambda %0: float64[] {
      %1: float64[0, 4] = broadcast_to(%0, shape=(0, 4));
      %2: float64[0, 4] = div(%1, 0.0);
      %3: float64[] = sum(%2);
      return %3 }"""

    assert with_numbers(fn := parse(text)) is fn


# ---- sums of copies ----


def sum_of_copies(dtype: str, shape: tuple[int, ...], result: str, attrs: str) -> lt.Lambda:
    """The sum of copies of a number, as a program."""
    return parse(
        f"lambda %0: {dtype}[] {{ %1: {dtype}{[*shape]} = broadcast_to(%0, shape={shape});"
        f" %2: {result} = sum(%1{attrs}); return %2 }}"
    )


@pytest.mark.parametrize(
    ("shape", "result", "attrs", "operations"),
    [
        ((4, 5), "float64[]", "", ["broadcast_to", "mul"]),
        ((4, 5), "float64[5]", ", axis=0", ["broadcast_to", "mul", "full"]),
        ((4, 5), "float64[4, 1]", ", axis=1, keepdims=True", ["broadcast_to", "mul", "full"]),
    ],
)
def test_a_sum_of_copies_is_a_product(shape, result, attrs, operations):
    fn = sum_of_copies("float64", shape, result, attrs)
    found = with_products(fn)

    assert operations == [bind.op.name for bind in found.binds]
    x = np.float64(0.1)
    before, after = lt.run_forward(fn, x), lt.run_forward(found, x)
    assert (type(before), np.shape(before)) == (type(after), np.shape(after))
    np.testing.assert_allclose(after, before, rtol=1e-15)


@pytest.mark.parametrize(
    ("dtype", "shape", "result", "attrs"),
    [
        ("int64", (4, 5), "int64[]", ""),
        ("float32", (4, 5), "float64[]", ", dtype=float64"),
        ("float64", (0, 5), "float64[]", ""),
        ("float64", (0, 5), "float64[5]", ", axis=0"),
        ("float64", (4, 5), "float64[]", ", initial=1.0"),
    ],
)
def test_other_sums_of_copies_stay(dtype, shape, result, attrs):
    found = with_products(sum_of_copies(dtype, shape, result, attrs))

    assert ["broadcast_to", "sum"] == [bind.op.name for bind in found.binds]


# ---- composite reductions ----

X = np.random.default_rng(1).normal(size=(64, 1024))


def operations(f, x) -> list[str]:
    """The operations of a function with its large reductions in parts."""
    return [bind.op.name for bind in with_parts(lt.trace(f, x)).binds]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.var(axis=1),
        lambda x: x.std(axis=0, ddof=63),
        lambda x: x.var(ddof=0.5),
        lambda x: np.ptp(x, axis=0),
    ],
)
def test_large_variances_and_ranges_become_sums_and_extrema(f):
    found = with_parts(lt.trace(f, X))

    assert {"sum", "max"} & set(operations(f, X))
    assert {"var", "std", "ptp"}.isdisjoint(operations(f, X))
    np.testing.assert_allclose(lt.run_forward(found, X), f(X), rtol=1e-13)
    assert isinstance(lt.run_forward(found, X), type(f(X)))


@pytest.mark.filterwarnings("ignore:Degrees of freedom", "ignore:(invalid|divide)")
@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: x.var(axis=1), X[:10, :20]),
        (lambda x: x.std(axis=0, ddof=64), X),  # NumPy warns
        (lambda x: x.var(axis=1, ddof=1), X.reshape(-1, 1)),
        (np.ptp, (X * 100).astype(int)),
    ],
)
def test_small_reductions_and_those_that_warn_stay(f, x):
    assert {"var", "std", "ptp"} & set(operations(f, x))


def test_a_part_that_two_reductions_have_is_computed_once():
    found = operations(lambda x: x.var(axis=1) + x.std(axis=1), X)

    assert 1 == found.count("mean")
    assert 1 == found.count("sum")

"""unroll: the steps of a counted loop written one after the other, with the same results [F5]."""

import numpy as np
import pytest

import letir as lt
from letir.ast.text.parser import parse
from letir.passes import unroll
from letir.testing import assert_same
from tests.each_sample import in_one_test

FORI = """
lambda %0: float64[3], %1: float64[3], %2: int64[], %3: int64[], %4: float64[] {{
  %5: float64[3], %6: float64[] = fori_loop({lower}, {upper}, %0, %4, %1,
    body=lambda %7: int64[], %8: float64[3], %9: float64[], %10: float64[3] {{
      {body}
      return (%20, %21) }})
  return (%5, %6) }}"""
SCAN = """
lambda %0: float64[3], %1: float64[{n}, 3], %2: float64[{n}], %3: float64[3] {{
  %4: float64[3], %5: float64[{n}, 3], %6: float64[{n}] = scan(%0, %1, %2, %3,
    body=lambda %7: float64[3], %8: float64[3], %9: float64[], %10: float64[3] {{
      {body}
      return (%20, %21, %22) }}, n_carry=1, n_xs=2, length={length}, reverse={reverse})
  return (%4, %5, %6) }}"""
BODIES = {
    "number": "%18: float64[3] = mul(%8, %10); %19: float64[] = add(%7, %9);"
    "%20: float64[3] = add(%18, %19); %21: float64[] = sin(%9);",
    "no number": "%20: float64[3] = mul(%8, %10); %21: float64[] = sin(%9);",
    "hands on": "%20: float64[3] = add(%10, %7); %21: float64[] = sum(%8, axis=0);",
}
FEW = """%20: float64[3] = add(%7, %8); %21: float64[3] = mul(%7, %9);
      %22: float64[] = neg(%9)"""
STEPS = {
    "all": "%18: float64[3] = mul(%7, %10); %20: float64[3] = add(%18, %8);"
    "%21: float64[3] = mul(%18, %9); %22: float64[] = sum(%8, axis=0);",
    "few": FEW,
}
BOUNDS = [(0, 0), (0, -3), (2, 7), (0, 63), (0, 64), (5, 105), (-7, 200)]
LATE = [("%2", "%3"), ("%2", 20), (-3, "%3")]


def fori(lower, upper, body: str = BODIES["number"]) -> lt.Lambda:
    """A loop that carries a vector and a number."""
    return lt.check(parse(FORI.format(lower=lower, upper=upper, body=body)))


def scan(n: int, *, body: str = STEPS["all"], reverse: bool = False, length=None) -> lt.Lambda:
    """A loop over two arrays that carries a vector and stacks a vector and a number."""
    return lt.check(parse(SCAN.format(n=n, body=body, reverse=reverse, length=length)))


def arguments(lower: int, upper: int) -> list:
    """Arguments of ``fori``."""
    numbers = np.linspace(-1, 1.5, 6)
    return [numbers[:3], numbers[3:], np.int64(lower), np.int64(upper), np.float64(0.3)]


def names(f: lt.Lambda) -> list[str]:
    """The names of the operations, in order."""
    return [bind.op.name for bind in f.binds]


# ---- fori_loop ----


@in_one_test
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("bounds", BOUNDS, ids=map(str, BOUNDS))
def test_unrolling_a_loop_with_known_bounds_keeps_every_bit(bounds, body):
    """[F5]"""
    f = fori(*bounds, body)
    g = lt.check(unroll(f))

    assert g is not f
    assert_same(f(*arguments(0, 0)), g(*arguments(0, 0)))


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("bounds", LATE, ids=map(str, LATE))
def test_unrolling_a_loop_with_traced_bounds_keeps_every_bit(bounds, body):
    """[F5] Bounds that are a multiple of the block size, or less or more than a block beyond it."""
    f = fori(*bounds, body)
    g = lt.check(unroll(f))

    assert 2 == names(g).count("fori_loop")
    for given in [(0, 0), (3, 1), (2, 9), (-5, 60), (0, 100), (-100, -92)]:
        assert_same(f(*arguments(*given)), g(*arguments(*given)))


def test_fewer_than_64_steps_are_unrolled_completely():
    """[F5]"""
    assert "fori_loop" not in names(unroll(fori(0, 63)))
    assert 63 == names(unroll(fori(0, 63))).count("sin")


def test_64_or_more_steps_become_a_loop_over_blocks_of_eight():
    """[F5]"""
    f = unroll(fori(0, 67))
    (loop,) = [bind for bind in f.binds if bind.op.name == "fori_loop"]

    assert 8 == names(loop.attrs["body"]).count("sin")
    assert 3 == names(f).count("sin")
    assert [0, 8] == [arg.value for arg in loop.args[:2]]


@pytest.mark.parametrize("bounds", [(3, 3), (5, -1)])
def test_a_loop_with_trip_count_zero_disappears(bounds):
    """[F5]"""
    f = unroll(fori(*bounds))

    assert 0 == len(f)
    assert [f.params[0], f.params[4]] == list(f.ret.args)


@pytest.mark.parametrize(("size", "is_unrolled"), [(32, True), (33, False)])
def test_a_body_of_more_than_32_binds_stays_a_loop(size, is_unrolled):
    """[F5]"""
    more = "".join(f"%{30 + i}: float64[] = neg(%9);" for i in range(size - 4))
    f = fori(0, 3, BODIES["number"] + more)

    assert is_unrolled == (unroll(f) is not f)


def test_loops_of_other_kinds_stay():
    f = parse("""
    lambda %0: float64[] {
      %1: float64[] = while_loop(%0, test=lambda %2: float64[] {
        %3: bool[] = less(%2, 3.0); return %3
      }, body=lambda %4: float64[] { %5: float64[] = add(%4, 1.0); return %5 })
      return %1 }""")

    assert f is unroll(f)


def test_a_bound_that_is_a_constant_is_known():
    f = parse("""
    lambda %0: float64[] {
      %1: int64[] = constant(value=int64[]{4});
      %2: float64[] = fori_loop(0, %1, %0, body=lambda %3: int64[], %4: float64[] {
        %5: float64[] = add(%4, %3); return %5 })
      return %2 }""")

    assert 4 == names(unroll(f)).count("add")
    assert_same(f(np.float64(1.0)), unroll(f)(np.float64(1.0)))


def test_the_step_number_is_a_numpy_integer():
    """A Python number would leave float32 as it is, an int64 widens it."""
    f = parse("""
    lambda %0: float32[], %1: float64[] {
      %2: float32[], %3: float64[] = fori_loop(0, 2, %0, %1, body=
        lambda %4: int64[], %5: float32[], %6: float64[] {
          %7: float64[] = mul(%5, %4); return (%5, %7) })
      return %3 }""")
    args = np.float32(0.1), np.float64(0.0)

    assert_same(f(*args), unroll(f)(*args))


def test_an_effect_happens_in_every_step():
    """[C5]"""
    f = parse("""
    lambda %0: float64[] {
      %1: float64[] = fori_loop(0, 3, %0, body=lambda %2: int64[], %3: float64[] {
        %4: bool[] = less(%3, 2.0); guard(%4, value=True); %5: float64[] = add(%3, 1.0); return %5
      })
      return %1 }""")

    assert 3 == names(unroll(f)).count("guard")
    with pytest.raises(lt.GuardError):
        unroll(f)(np.float64(0.0))


def test_inner_loops_are_unrolled_first():
    inner = """%6: float64[] = fori_loop(0, 3, %5, body=lambda %7: int64[], %8: float64[] {
      %9: float64[] = sin(%8); return %9 });"""
    f = parse(f"""
    lambda %0: float64[] {{
      %1: float64[] = fori_loop(0, 4, %0, body=lambda %4: int64[], %5: float64[] {{
        {inner} return %6 }})
      return %1 }}""")

    assert ["sin"] * 12 == names(unroll(f))


def test_names_and_source_lines_are_kept():
    def f(x):
        return lt.fori_loop(0, 2, lambda i, y: np.sin(y), x)

    before = lt.trace(f, np.ones(2))
    after = unroll(before)

    assert ["sin", "sin"] == names(after)
    (body,) = [bind.attrs["body"] for bind in before.binds]
    assert {body.binds[0].source} == {bind.source for bind in after.binds}


def test_a_step_number_that_is_a_python_number_prevents_blocks_only_where_it_is_read():
    def loop(body):
        return unroll(lt.trace(lambda x: lt.fori_loop(0, 67, body, x), np.ones(3)))

    assert 3 == names(loop(lambda i, x: np.sin(x))).count("sin")
    assert ["fori_loop"] == names(loop(lambda i, x: np.sin(x) * i))


# ---- scan ----


@in_one_test
@pytest.mark.parametrize("body", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("n", [0, 1, 5, 63, 64, 65, 203])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
def test_unrolling_a_scan_keeps_every_bit(n, reverse, body, order):
    """[F5] Rows of an array in Fortran order stay strided views."""
    f = scan(n, body=body, reverse=reverse, length=n or None)
    rng = np.random.default_rng(n)
    x = np.array(rng.normal(size=(n, 3)), order=order)
    args = rng.normal(size=3), x, rng.normal(size=n), rng.normal(size=3)
    g = lt.check(unroll(f))

    assert g is not f
    assert_same(f(*args), g(*args))


def test_a_long_scan_becomes_a_scan_over_blocks_of_eight():
    """[F5]"""
    (loop,) = [bind for bind in unroll(scan(100)).binds if bind.op.name == "scan"]

    assert 8 == names(loop.attrs["body"]).count("sum")
    assert (12, 16) == (loop.attrs["length"], loop.attrs["n_xs"])


def test_blocks_of_a_scan_read_every_captured_value():
    xs, h, a, b = np.cos(np.arange(70.0)), np.float64(0.1), np.float64(0.5), np.float64(-0.25)
    f = lt.trace(
        lambda xs, h, a, b: lt.scan(lambda h, x: (h * a + x * b, h), h, xs),
        *(xs, h, a, b),
    )

    assert "scan" in names(unroll(f))
    assert_same(f(xs, h, a, b), unroll(f)(xs, h, a, b))


def test_a_scan_with_large_results_stays():
    """Unrolled, the results of the steps and the stacked results would be in memory at once."""
    f = lt.trace(
        lambda xs: lt.scan(lambda h, x: (h + 1, np.tanh(x)), 0.0, xs), np.ones((40, 100, 100))
    )

    assert f is unroll(f)


def test_a_scan_with_an_unknown_trip_count_stays():
    f = parse("""
    lambda %0: float64[], %1: float64[n] {
      %2: float64[] = scan(%0, %1, body=lambda %3: float64[], %4: float64[] {
        %5: float64[] = add(%3, %4); return %5 }, n_carry=1, n_xs=1, length=None, reverse=False)
      return %2 }""")

    assert f is unroll(f)


def test_a_carried_python_number_has_the_type_that_the_loop_gives_it():
    """A Python number cannot be an operand of the second step."""
    f = parse("""
    lambda %0: float32[3] {
      %1: float64[] = scan(1.5, %0, body=lambda %2: float64[], %3: float32[] {
        %4: float64[] = mul(%2, %3); return %4 }, n_carry=1, n_xs=1, length=None, reverse=False)
      return %1 }""")

    assert_same(f(np.float32([0.1, 0.2, 0.3])), unroll(f)(np.float32([0.1, 0.2, 0.3])))

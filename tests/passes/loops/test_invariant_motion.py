"""loop_invariants: binds with the same result in every step are computed once, before the loop."""

import numpy as np

import letir as lt
from letir.ast.text.parser import parse
from letir.passes.loops.invariant_motion import loop_invariants
from letir.testing import assert_same

FORI = """
lambda %0: float64[3], %1: float64[3], %2: int64[] {{
  %3: float64[3] = fori_loop({bounds}, %0, %1,
    body=lambda %4: int64[], %5: float64[3], %6: float64[3] {{
      {body}; return %9 }})
  return %3 }}"""
WHILE = """
lambda %0: float64[3], %1: float64[3] {{
  %3: float64[3] = while_loop(%0, %1,
    test=lambda %4: float64[3], %5: float64[3] {{
      {test}; %8: bool[] = less(%7, 3.0); return %8 }},
    body=lambda %9: float64[3], %10: float64[3] {{
      {body}; return %13 }})
  return %3 }}"""
TWO, NONE = np.int64(2), np.int64(0)
X, Y = np.array([0.5, -1.0, 2.0]), np.array([1.5, 0.25, -0.5])


def fori(body: str, bounds: str = "0, 4") -> lt.Lambda:
    """A loop that carries %5 and captures %6."""
    return lt.check(parse(FORI.format(body=body, bounds=bounds)))


def names(f: lt.Lambda) -> list[str]:
    """The names of the operations, in order."""
    return [bind.op.name for bind in f.binds]


def moved(f: lt.Lambda) -> list[str]:
    """The operations that now come before the loop."""
    return names(lt.check(loop_invariants(f)))[:-1]


def test_a_bind_that_reads_captured_values_only_moves():
    f = fori("%7: float64[3] = exp(%6); %8: float64[3] = sin(%7); %9: float64[3] = mul(%5, %8)")

    assert ["exp", "sin"] == moved(f)
    assert_same(f(X, Y, TWO), loop_invariants(f)(X, Y, TWO))


def test_a_value_that_only_moved_binds_read_is_no_longer_captured():
    f = fori("%8: float64[3] = exp(%6); %9: float64[3] = mul(%5, %8)")
    before, after = f.binds[-1], loop_invariants(f).binds[-1]

    assert len(before.args) == len(after.args)
    assert f.params[1] not in after.args


def test_a_bind_that_nothing_reads_stays():
    f = fori("%7: float64[3] = exp(%6); %8: float64[3] = sin(%6); %9: float64[3] = mul(%5, %8)")

    assert ["sin"] == moved(f)


def test_a_bind_that_reads_the_carry_or_the_step_number_stays():
    f = fori("%8: float64[3] = exp(%5); %7: float64[3] = mul(%4, %6); %9: float64[3] = add(%8, %7)")

    assert f is loop_invariants(f)


def test_a_bind_that_may_warn_stays_if_the_trip_count_may_be_zero():
    """A division by zero warns; a comparison does not."""
    body = (
        "%7: float64[3] = div(1.0, %6); %10: bool[3] = less(%6, %6);"
        "%9: float64[3] = where(%10, %5, %7)"
    )

    assert ["less"] == moved(fori(body, "0, %2"))
    assert ["div", "less"] == moved(fori(body, "0, 1"))
    assert ["less"] == moved(fori(body, "1, 1"))


def test_an_expensive_bind_moves_if_the_trip_count_is_not_zero():
    def f(x, w, n):
        return lt.fori_loop(0, n, lambda i, y: y / (w @ w).sum(), x)

    def g(x, w, n):
        return lt.while_loop(lambda y: y[0] < n, lambda y: y + 1 / (w @ w).sum(), x)

    for loop in (f, g):
        traced = lt.trace(loop, X, np.eye(3), np.int64(2), abstract=True)
        found = loop_invariants(traced)
        (choice,) = [bind for bind in found.binds if bind.op.name == "cond"]

        assert "matmul" in names(choice.attrs["on_true"])
        assert "matmul" not in names(found.binds[-1].attrs["body"])
        for w, n in [(np.eye(3), 3), (np.zeros((3, 3)), 0), (np.zeros((3, 3)), -5)]:
            with np.errstate(all="raise"):  # no step divides by zero
                assert_same(traced(X, w, np.int64(n)), found(X, w, np.int64(n)))


def test_a_bind_that_may_warn_never_moves_before_an_effect():
    """[C5] The guard prevents the quotient from being computed."""
    body = (
        "%7: bool[] = all(%6, axis=None); guard(%7, value=True); %8: float64[3] = div(1.0, %6);"
        "%9: float64[3] = mul(%5, %8)"
    )

    assert ["all"] == moved(fori(body))


def test_effects_and_random_draws_stay_in_the_loop():
    key = lt.random.key(3)

    def body(i, x):
        return x + lt.random.uniform(key, (3,))

    f = lt.trace(lambda x: lt.fori_loop(0, 3, body, x), X)

    assert not [bind for bind in loop_invariants(f).binds if bind.op.random]


def test_a_large_value_is_not_kept_alive_through_a_loop():
    def f(x, n):
        grid = lambda i, y: y + (n[:, None] * n[None, :]).sum()  # noqa: E731
        return lt.fori_loop(0, 3, grid, x)

    traced = lt.trace(f, np.float64(1.0), np.ones(1000))

    assert "mul" in moved(traced)  # its sum is kept, not the large product
    assert "sum" in moved(traced)

    def g(x, n):
        return lt.fori_loop(0, 3, lambda i, y: (y[:, None] * (n[:, None] * n[None, :])).sum(0), x)

    traced = lt.trace(g, np.ones(1000), np.ones(1000))

    assert "mul" not in moved(traced)
    assert_same(
        traced(np.ones(1000), np.ones(1000)), loop_invariants(traced)(np.ones(1000), np.ones(1000))
    )


def test_the_test_of_a_while_loop_runs_at_least_once_and_its_body_may_not():
    f = lt.check(
        parse(
            WHILE.format(
                test="%6: float64[3] = exp(%5); %11: float64[3] = mul(%6, %4);"
                "%7: float64[] = sum(%11, axis=None)",
                body="%11: float64[3] = sin(%10); %12: float64[3] = neg(%10);"
                "%14: float64[3] = sub(%11, %12); %13: float64[3] = add(%9, %14)",
            )
        )
    )

    assert ["exp", "neg"] == moved(f)
    for x in (X, 100 * Y):
        assert_same(f(x, Y), loop_invariants(f)(x, Y))


def test_a_bind_moves_out_of_nested_loops():
    def f(x, w):
        def outer(i, y):
            return lt.fori_loop(0, 2, lambda j, z: z * np.exp(w) + y, y)

        return lt.fori_loop(0, 3, outer, x)

    traced = lt.trace(f, X, Y)

    assert ["exp"] == moved(traced)
    assert_same(traced(X, Y), loop_invariants(traced)(X, Y))


def test_binds_move_out_of_scans_and_maps():
    def f(h, xs, w):
        def step(h, x):
            h = np.tanh(h @ w.T + x)
            return h, h * np.exp(w).sum()

        return lt.scan(step, h, xs)

    args = X, np.linspace(-1, 1, 12).reshape(4, 3), np.linspace(0, 1, 9).reshape(3, 3)
    traced = lt.trace(f, *args)

    assert ["exp", "sum", "transpose"] == sorted(moved(traced))
    assert_same(traced(*args), loop_invariants(traced)(*args))


def test_a_moved_bind_is_no_longer_in_the_body():
    f = fori("%8: bool[3] = isnan(%6); %9: float64[3] = where(%8, %5, %5)", "0, %2")

    assert ["isnan"] == moved(f)
    assert_same(f(X, Y, NONE), loop_invariants(f)(X, Y, NONE))


def test_constants_stay_next_to_the_binds_that_read_them():
    """Constants cost nothing; outside the body they would be further operands."""
    f = fori(
        "%7: float64[3] = constant(value=float64[3]{1, 2, 3}); %8: float64[3] = mul(%6, %7);"
        "%10: float64[3] = add(%5, %7); %9: float64[3] = mul(%8, %10)"
    )
    after = loop_invariants(f)

    assert ["constant", "mul"] == moved(f)
    assert "constant" in names(after.binds[-1].attrs["body"])
    assert_same(f(X, Y, TWO), after(X, Y, TWO))


def test_running_the_pass_twice_gives_the_result_of_running_it_once():
    f = loop_invariants(fori("%8: float64[3] = exp(%6); %9: float64[3] = mul(%5, %8)"))

    assert f is loop_invariants(f)


def test_names_and_source_lines_are_kept():
    def f(x, w):
        def body(i, y):
            wave = np.sin(w)
            return y * wave

        return lt.fori_loop(0, 3, body, x)

    traced = lt.trace(f, X, Y)
    (sine, _) = loop_invariants(traced).binds

    assert "wave" == sine.binders[0].name
    assert traced.binds[0].attrs["body"].binds[0].source == sine.source

"""Guards: every replay checks the values that Python code read from traced values [B2]."""

import math

import numpy as np
import pytest

import letir as lt
import letir.numpy as lnp
from letir.errors import GuardError, TraceError
from letir.testing import assert_same
from tests.each_sample import in_one_test

X = np.array([1.0, 2.0, 3.0])


def signed(x):
    if x.sum() > 0:  # here
        return 2 * x
    return -x


def test_a_condition_records_a_guard():
    assert """\
%1 = sum %0, None, None, False, None
%2 = greater %1, 0
guard %2, True
%3 = mul 2, %0
return %3
""" == lt.trace(signed, X).listing()


def test_a_replay_that_takes_the_recorded_branch_is_right():
    f = lt.trace(signed, X)

    assert_same(2 * (X + 1), f(X + 1))


def test_a_failing_guard_reports_both_values_and_the_line(told_by):
    f = lt.trace(signed, X)

    message = """\
the program was recorded where this was True, now it is False
  at test_guards.py:NN: x.sum() > 0
  trace again with these arguments, or write the choice with numpy.where
letir: in guard(%2, value=True)  # test_guards.py:NN: x.sum() > 0"""
    assert (GuardError, message) == told_by(lambda: f(-X), signed)


def test_tracing_the_other_branch_gives_another_program():
    f = lt.trace(signed, -X)

    assert_same(X, f(-X))
    with pytest.raises(GuardError):
        f(X)


def test_a_guard_is_kept_by_a_gradient():
    df = lt.grad(lambda x: signed(x).sum())

    assert_same(np.full(3, 2.0), df(X))
    assert_same(np.full(3, -1.0), df(-X))
    with pytest.raises(GuardError):
        lt.grad(lt.trace(lambda x: signed(x).sum(), X))(-X)


INTEGERS = {
    "range": (lambda n, x: sum(x for _ in range(n)), 3, 4),
    "a slice": (lambda n, x: x[:n], 2, 1),
    "an index": (lambda n, x: X[n] * x, 1, 2),
    "a shape": (lambda n, x: np.zeros((n, 3)) + x, 2, 3),
    "a repeated list": (lambda n, x: np.stack([x] * n), 2, 3),
    "int": (lambda n, x: x * int(n), 2, 3),
    "math": (lambda n, x: x / math.factorial(n), 4, 5),
    "item": (lambda n, x: x * n.item(), np.int64(2), np.int64(3)),
    "a range of letir": (lambda n, x: lnp.arange(n).sum() * x, 3, 4),
    "a size of letir": (lambda n, x: lnp.zeros(n).size * x, 3, 4),
    "a full array of letir": (lambda n, x: lnp.full(n, 2.0).sum() * x, 3, 4),
    "sizes in an array": (lambda n, x: lnp.ones(n * np.array([1, 2])).sum() * x, 2, 3),
    "a like": (lambda n, x: np.zeros_like(x, shape=n).size * x, 3, 4),
    "a full like": (lambda n, x: np.full_like(x, 1.0, shape=n).sum() * x, 3, 4),
    "a reshape": (lambda n, x: np.reshape(x, n), 3, 2),
    "a method's shape": (lambda n, x: x.reshape(n), 3, 2),
    "a broadcast": (lambda n, x: np.broadcast_to(x[0], n) * 1.0, 3, 4),
    "a setting": (lambda n, x: np.var(x, ddof=n), 1, 2),
    "an axis of weights": (lambda n, x: np.average(np.outer(x, X), n, X), 0, 1),
    "an axis in a tuple": (lambda n, x: np.gradient(np.outer(x, X), axis=(n,))[0], 0, 1),
    "an order": (lambda n, x: np.gradient(x, edge_order=n), 1, 2),
    "a range of bins": (lambda n, x: np.histogram2d(x, x, 3, [(0, n), (-2, n)])[0], 2, 3),
    "a size of linspace": (lambda n, x: np.linspace(0.0, 1.0, n).sum() * x, 3, 4),
    "a string": (lambda n, x: x * len("ab" * n), 3, 4),
}


@in_one_test
@pytest.mark.parametrize(("program", "n", "other"), INTEGERS.values(), ids=list(INTEGERS))
def test_an_integer_that_python_reads_is_guarded(program, n, other):
    f = lt.trace(program, n, X)

    assert_same(program(n, 2 * X), f(n, 2 * X))
    with pytest.raises(GuardError, match=f"where this was {n}.*, now it is {other}"):
        f(other, X)


def test_a_float_that_must_be_in_the_program_is_refused():
    with pytest.raises(TraceError, match=r"ranges is a traced value(.*\n)*.*concrete\(ranges\)"):
        lt.trace(lambda s, x: np.histogram2d(x, x, 3, [(-s, s), (0.0, s)]), 2.0, X)


def test_an_integer_that_is_not_read_is_not_guarded():
    f = lt.trace(lambda n, x: x * n, 3, X)

    assert_same(4 * X, f(4, X))


def test_int_of_a_float_guards_the_integer_only():
    f = lt.trace(lambda x: x * int(x.sum()), X)

    assert_same((X + 0.1) * 6, f(X + 0.1))
    with pytest.raises(GuardError):
        f(X + 1)


def test_round_of_a_scalar_guards_the_integer_only():
    f = lt.trace(lambda x, y: y * round(x), 2.4, X)

    assert_same(2 * X, f(1.6, X))
    with pytest.raises(GuardError):
        f(2.6, X)


def test_the_truth_value_of_a_one_element_array_is_guarded():
    f = lt.trace(lambda x: 1.0 if x else 0.0, np.array([[2.0]]))

    assert_same(1.0, f(np.array([[3.0]])))
    with pytest.raises(GuardError):
        f(np.array([[0.0]]))


def test_a_choice_of_python_is_guarded():
    f = lt.trace(lambda a, b: max(a, b) * 2, 1.0, 2.0)

    assert_same(6.0, f(1.0, 3.0))
    with pytest.raises(GuardError):
        f(3.0, 1.0)


def test_a_loop_until_convergence_records_one_guard_a_step():
    def root(x):
        y = x
        while abs(y * y - x) > 1e-6:
            y = (y + x / y) / 2
        return y

    f = lt.trace(root, 2.0)

    assert_same(root(2.0), f(2.0))
    assert 5 == sum(bind.op.name == "guard" for bind in f.binds)


def test_a_mask_guards_the_number_that_it_selects():
    f = lt.trace(lambda x: x[x > 1.5].sum(), X)

    assert_same(np.float64(12.0), f(np.array([5.0, 0.0, 7.0])))
    with pytest.raises(GuardError):
        f(np.zeros(3))


def test_membership_is_guarded():
    f = lt.trace(lambda x: x if 2.0 in x else -x, X)

    assert_same(-X, lt.trace(lambda x: x if 4.0 in x else -x, X)(X))
    with pytest.raises(GuardError):
        f(X + 10)


def test_a_guard_runs_before_what_its_branch_recorded():
    """[C5] For the other sign the square root would warn, which fails the test."""
    f = lt.trace(lambda x: np.sqrt(x) if x > 0 else x, np.float64(4.0))

    with pytest.raises(GuardError):
        f(np.float64(-4.0))


def test_a_guard_has_no_derivative():
    assert_same(np.float64(2.0), lt.grad(lambda x: x * int(x))(2.5))


def test_a_guard_is_kept_when_nothing_else_is_used():
    f = lt.trace(lambda x, y: y if x > 0 else -y, 1.0, X)

    assert ["greater", "guard"] == [bind.op.name for bind in f.binds]


# ---- concrete ----


def test_concrete_gives_the_value_and_guards_it():
    f = lt.trace(lambda x, y: y * math.sin(lt.concrete(x)), 0.5, X)

    assert_same(X * math.sin(0.5), f(0.5, X))
    with pytest.raises(GuardError, match=r"where this was 0\.5, now it is 0\.25"):
        f(0.25, X)


def test_concrete_leaves_other_values_as_they_are():
    assert X is lt.concrete(X)
    assert 2.5 == lt.concrete(2.5)


def test_concrete_has_no_derivative():
    assert_same(np.float64(0.5), lt.grad(lambda x: x * lt.concrete(x))(0.5))


@pytest.mark.parametrize(
    "wrapped", [lambda x: {"v": x}, lambda x: {"v": x, "w": (x, None, "text")}]
)
def test_concrete_leaves_of_a_pytree_are_guarded_and_have_no_derivative(wrapped):
    f = lt.trace(lambda x: x * lt.concrete(wrapped(x))["v"], 0.5)

    assert_same(np.float64(0.5), lt.grad(lambda x: x * lt.concrete(wrapped(x))["v"])(0.5))
    with pytest.raises(GuardError):
        f(0.25)


def test_concrete_of_an_array_guards_every_element():
    f = lt.trace(lambda x: x * lt.concrete(x).max(), X)

    assert_same(3 * X, f(X))
    with pytest.raises(GuardError):
        f(X + 1)


def test_a_guard_in_an_abstract_trace_is_an_error():
    with pytest.raises(TraceError, match="trace with concrete arguments"):
        lt.trace(signed, X, abstract=True)


def test_values_that_depend_on_a_shape_only_argument_are_abstract():
    """Concrete arguments together with a ``ShapeDtype`` have values."""

    def program(x, n):
        return x[:n] if n > 1 else x

    f = lt.trace(program, lt.ShapeDtype(3), 2)

    assert_same(X[:2], f(X, 2))
    with pytest.raises(TraceError):
        lt.trace(signed, lt.ShapeDtype(3))


# ---- the condition ----


def twice(x):
    if x.sum() > 0 and x[0] < 5:
        while x.sum() > 3:
            x = x / 2
    return x[x > 1]


def test_the_text_shows_each_condition_with_its_line():
    """[B2] Two conditions on one line have a text each; other binds have their line only."""
    guards = [line for line in str(lt.trace(twice, X)).splitlines() if "guard(" in line]
    first = twice.__code__.co_firstlineno
    conditions = ["x.sum() > 0", "x[0] < 5", *["x.sum() > 3"] * 2, "x[x > 1]"]
    lines = [first + 1, first + 1, first + 2, first + 2, first + 4]

    assert [f"# test_guards.py:{n}: {text}" for n, text in zip(lines, conditions, strict=True)] == [
        line.partition("  ")[2].partition("  ")[2] for line in guards
    ]


def test_a_condition_over_several_lines_is_shown_on_one_and_a_long_one_is_cut():
    f = lt.trace(
        lambda x: max(
            x[0],
            x[1] + x[0] * x[1] + x[0] * x[1] - x[0] * x[1] - x[0] * x[1] - x[0] * x[1],
        ),
        X,
    )

    assert "max( x[0], x[1] + x[0] * x[1] + x[0] * x[1] - x[0] * x[1]..." in str(f)


def test_the_condition_is_kept_by_the_text_and_no_file_is_opened_for_it():
    f = lt.trace(signed, X)
    text = lt.dumps(f)

    assert "py:18: x.sum() > 0\n" in text.replace(str(signed.__code__.co_firstlineno + 1), "18")
    assert text == lt.dumps(lt.parse(text))
    elsewhere = lt.parse(f"lambda %0 {{\n  guard(%0, value=True)  # {__file__}:3\n  return %0\n}}")
    assert f"{__file__}:3\n" in lt.dumps(elsewhere)


def test_a_condition_whose_source_file_is_missing_is_left_out():
    scope = {}
    exec(compile("def program(x):\n    return 1.0 if x > 0 else x\n", "<gone>", "exec"), scope)

    assert "guard(%1, value=True)  # <gone>:2\n" in str(lt.trace(scope["program"], 1.0))


def test_a_failing_guard_of_an_inner_replay_reports_its_own_line(told_by):
    """[B3]"""
    f = lt.trace(signed, X)

    found, message = told_by(lambda: lt.trace(lambda x: f(-x) * 2, X), signed)

    assert found is GuardError
    assert "\n  at test_guards.py:NN: x.sum() > 0\n" in message


# ---- reads without a guard ----


def rectified(x):
    y = x * 1
    y[y < 2] = 0
    return y


def test_a_number_written_by_a_mask_is_a_choice_for_each_element():
    """For any number of selected elements, also under vmap and in abstract traces."""
    f = lt.trace(rectified, X)

    assert "%1 = mul %0, 1\n%2 = less %1, 2\n%3 = where %2, 0, %1\nreturn %3\n" == f.listing()
    assert_same(rectified(-X), f(-X))
    rows = np.stack([X, X[::-1], -X])
    assert_same(np.stack([rectified(row) for row in rows]), lt.vmap(rectified)(rows))
    assert f == lt.trace(rectified, lt.ShapeDtype((3,), float))
    assert_same(np.array([0.0, 1.0, 1.0]), lt.grad(lambda x: rectified(x).sum())(X))


def test_the_number_of_selected_elements_of_a_mask_is_guarded_once():
    def program(x, v):
        y = x * 1
        y[y > 1.5] = v
        return y

    f = lt.trace(program, X, X[:2])

    assert_same(program(X + 0.1, X[1:]), f(X + 0.1, X[1:]))
    assert 1 == sum(bind.op.name == "guard" for bind in f.binds)


def test_an_ordinary_array_at_traced_integers_is_guarded():
    """The elements that it gives do not depend on the argument in any other way."""
    table = np.array([10.0, 20.0, 30.0])
    f = lt.trace(lambda x: table[np.argsort(x)] * x + table[x > 1.5].sum(), X)

    assert_same(table * (X + 0.1) + 50.0, f(X + 0.1))
    with pytest.raises(GuardError):
        f(-X)
    assert_same(table, lt.grad(lambda x: (table[np.argsort(x)] * x).sum())(X))

"""A replay applies the function's in-place changes of its arguments to the caller's arrays [B6]."""

import numpy as np
import pytest

import letir as lt
from letir.ast.text.parser import parse
from letir.errors import GuardError, TraceError
from letir.testing import assert_close, assert_same

X = np.arange(6.0).reshape(2, 3)


def change(x, y):
    x[0] += y.sum()
    x.T[1] *= 2
    return x, x[1:], y


def test_a_replay_changes_what_the_function_changes():
    expected, found = X.copy(), X.copy()
    f = lt.trace(change, X, np.ones(2))

    assert_same(change(expected, np.ones(2)), f(found, np.ones(2)))

    assert_same(expected, found)


def test_a_trace_changes_nothing():
    x = X.copy()

    lt.trace(change, x, np.ones(2))

    assert_same(X, x)


def test_results_are_the_callers_array_and_views_of_it_as_in_numpy():
    """[C4]"""
    x = X.copy()

    whole, part, _ = lt.trace(change, X, np.ones(2))(x, np.ones(2))

    assert whole is x
    assert part.base is x


def test_an_argument_that_is_not_changed_is_never_written():
    x = X.copy()
    x.flags.writeable = False

    f = lt.trace(lambda x: x.copy().__iadd__(1.0), X)

    assert_same(X + 1, f(x))


def test_a_program_that_changes_arguments_survives_printing_and_parsing():
    """[A5]"""
    f = lt.trace(change, X, np.ones(2))

    assert f == parse(lt.dumps(f))
    assert "write_back(%0" in lt.dumps(f)


def test_a_read_only_argument_is_refused_before_anything_runs():
    x, seen = X.copy(), []
    x.flags.writeable = False

    with pytest.raises(ValueError, match="x: assignment destination is read-only"):
        lt.run_forward(lt.trace(change, X, np.ones(2)), x, np.ones(2), observe=seen.append)
    assert not seen


def test_arguments_that_overlap_are_refused():
    """[B1] They are two parameters: how a change of one affects the other is not recorded."""
    x = X.copy()
    f = lt.trace(change, X, np.ones(3))

    with pytest.raises(TraceError, match="x, which the program changes, shares memory with y"):
        f(x, x[0])


def test_transforms_change_no_arguments_and_differentiate_by_the_initial_values():
    def total(x, y):
        return (change(x, y)[0] * X).sum()

    x, y = X.copy(), np.ones(2)
    slopes = lt.grad(total, argnums=(0, 1))(x, y)
    pushed = lt.jvp(total, (x, y), (X, y))[1]
    rows = lt.vmap(lambda x: change(x[None], np.ones(2))[0])(x)

    assert_same(X, x)
    assert_close((np.array([[0.0, 2, 2], [3, 8, 5]]), np.array([4.0, 4])), slopes)
    assert_close(np.sum(slopes[0] * X) + 8, pushed)
    assert_same(np.stack([change(row[None].copy(), np.ones(2))[0] for row in X]), rows)


def test_a_program_inside_a_trace_changes_the_traced_argument():
    f = lt.trace(change, X, np.ones(2))

    def twice(x, y):
        f(x, y)
        view = x[0]
        f(x, y)
        return view, x

    expected, found = X.copy(), X.copy()
    assert_same(twice(expected, np.ones(2)), lt.trace(twice, X, np.ones(2))(found, np.ones(2)))
    assert_same(expected, found)


def test_a_variable_is_changed_with_its_history():
    x, y = lt.Variable(X.copy()), lt.Variable(np.ones(2), requires_grad=True)

    found = lt.trace(change, X, np.ones(2))(x, y)[0]
    found.sum().backward()

    assert found is x
    assert_same(np.array([4.0, 4.0]), y.grad.numpy())


def test_a_program_for_one_memory_order_refuses_another():
    """[B6] A reshape is a view in one memory order and a copy in the other."""

    def flat(x):
        x.reshape(-1)[0] = 9.0
        return x

    f = lt.trace(flat, X)
    assert_same(flat(X.copy()), f(X.copy()))

    with pytest.raises(GuardError, match=r"memory order 'C', now it is 'F'"):
        f(np.asfortranarray(X))
    fortran = lt.trace(flat, np.asfortranarray(X))
    assert_same(X, fortran(np.asfortranarray(X)))


@pytest.mark.parametrize(
    "transform",
    [
        lambda f, *args: lt.grad(f, 2)(*args),
        lt.vjp,
        lambda f, *args: lt.jacobian(f, 2)(*args),
        lambda f, *args: lt.trace(lambda a, x: lt.grad(f, 2)(a, a, x), args[0], args[2]),
    ],
)
def test_a_transform_refuses_an_array_that_changes_and_is_another_argument_too(transform):
    def f(a, b, x):
        a += x
        return (b * b).sum()

    a, x = np.ones(3), np.ones(3)
    assert_same(np.zeros(3), lt.grad(f, 2)(a, a.copy(), x))
    with pytest.raises(lt.TraceError, match="a, which the program changes, shares memory with b"):
        transform(f, a, a, x)
    with pytest.raises(lt.TraceError, match="shares memory with"):
        lt.grad(f, 2)(a, a[1:2], x)
    assert_same(np.ones(3), a)

"""Plans of programs that are recorded again and again."""

import threading
import traceback
import weakref

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from letir.transforms import repeated_programs
from tests.executor.frequent_calls.each_transform import TRANSFORMS

X = np.linspace(0.5, 2.0, 4)
TABLE = np.arange(12.0).reshape(3, 4) / 7

FUNCTIONS = [
    lambda x: np.tanh(x).sum(),
    lambda x: np.sum(TABLE @ x) + x[0] * x[-1] ** 2,
    lambda x: np.mean(np.log(1 + np.exp(-(TABLE * x).sum(axis=1)))),
    lambda x: sum(float(k) * x[k] ** k for k in range(4)),
    lambda x: np.linalg.norm(x) + np.max(x) + np.sort(x)[1] + np.where(x > 1, x, -x).sum(),
    lambda x: np.sum(np.concatenate([x[1:], x[:1]]) * np.cumsum(x)[::-1]) + 0.0 * x[0] + -0.0,
    lambda x: lt.fori_loop(0, 3, lambda i, s: s * x.sum(), x[0]),
]


@pytest.fixture(autouse=True)
def _no_plans(monkeypatch):
    monkeypatch.setattr(repeated_programs, "_plans", {})
    monkeypatch.setattr(repeated_programs, "_seen", {})
    monkeypatch.setattr(repeated_programs, "_functions", {})


def bits(result) -> list:
    """The types, shapes and bytes of arrays nested in tuples."""
    if isinstance(result, tuple):
        return [bits(part) for part in result]
    array = np.asarray(result)
    return [type(result), array.dtype, array.shape, array.tobytes()]


@pytest.mark.parametrize("f", FUNCTIONS, ids=range(len(FUNCTIONS)))
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_all_calls_give_the_same_bits(transform, f):
    first, *others = [bits(TRANSFORMS[transform](f)(X)) for _ in range(4)]

    assert others == [first] * 3


def test_a_plan_is_made_when_a_program_is_met_twice():
    counts = []
    for _ in range(3):
        lt.grad(FUNCTIONS[0])(X)
        counts.append(len(repeated_programs._plans))

    assert counts == [0, 1, 1]


def test_array_constants_may_differ_between_calls():
    weights = np.ones(4)
    g = lt.grad(lambda x: (x * weights).sum())
    found = []
    for step in range(4):
        weights[:] = step
        found.append(g(X)[0])

    assert found == [0.0, 1.0, 2.0, 3.0]


def test_numbers_and_paths_may_differ_between_calls():
    factor = 0.0

    def f(x):
        return (x * factor).sum() if x[0] > 1 else x.sum() ** 2

    for factor in (0.0, -0.0, 1, 1.0, True, 2.5) * 3:
        for x in (X, X + 1, X):
            expected = 2 * x.sum() if x[0] <= 1 else factor
            assert bits(lt.grad(f)(x)) == bits(np.full(4, expected, float))


def test_results_are_the_callers_own():
    g = lt.value_and_grad(lambda x: (TABLE[0] @ x, TABLE), has_aux=True)
    for _ in range(3):
        (_, aux), gradient = g(X)
        aux[:], gradient[:] = 9.0, 9.0

    assert TABLE[0, 0] == 0.0
    np.testing.assert_array_equal(g(X)[1], TABLE[0])


def test_arguments_and_results_nest_in_every_call():
    g = lt.value_and_grad(lambda p, k: ((p["w"] * X).sum() * k, {"k": k}), has_aux=True)
    for _ in range(3):
        (value, aux), gradient = g({"w": X, "b": X}, 2.0)
        assert value == 2 * (X * X).sum()
        assert aux == {"k": 2.0}
        assert gradient.keys() == {"b", "w"}
        np.testing.assert_array_equal(gradient["w"], 2 * X)


def test_options_belong_to_the_key():
    def f(x, y):
        return (x * y * y).sum()

    for _ in range(3):
        np.testing.assert_array_equal(lt.grad(f)(X, X), X * X)
        np.testing.assert_array_equal(lt.grad(f, 1)(X, X), 2 * X * X)
        assert len(lt.grad(f, (0, 1))(X, X)) == 2
        np.testing.assert_array_equal(lt.grad(f, policy="min_bytes")(X, X), X * X)


def test_an_error_names_the_line_of_the_call():
    def here(x):
        return np.linalg.inv(x).sum()

    def there(x):
        return np.linalg.inv(x).sum()

    for f in (here, there) * 3:
        with pytest.raises(np.linalg.LinAlgError) as caught:
            lt.grad(f)(np.zeros((2, 2)))
        notes = "".join(traceback.format_exception(caught.value))
        assert f"test_repeated_programs.py:{f.__code__.co_firstlineno + 1}" in notes


def test_gradients_of_gradients_are_recorded_again():
    for _ in range(3):
        second = lt.grad(lambda x: lt.grad(lambda y: np.sin(y).sum())(x).sum())(X)
        np.testing.assert_allclose(second, -np.sin(X))


def test_few_plans_are_kept(monkeypatch):
    monkeypatch.setattr(repeated_programs, "_MAX_BINDS_OF_ALL", 10)
    for k in [*range(6), *range(6)]:
        lt.grad(lambda x: (x * float(k)).sum())(X)  # noqa: B023  called at once

    assert 0 < len(repeated_programs._plans) < 6


def test_threads_share_plans():
    def work():
        for n in range(50):
            x = X + n % 3
            found.append(np.array_equal(lt.grad(lambda x: (x * x).sum())(x), 2 * x))

    found: list = []
    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]

    assert found == [True] * 200


def test_arrays_that_depend_on_no_argument_are_made_once_and_belong_to_no_caller():
    g = lt.grad(lambda x, y: x.sum(), (0, 1))
    for _ in range(4):
        ones, zeros = g(X, X)
        assert (ones[0], zeros[0]) == (1.0, 0.0)
        ones[:], zeros[:] = 9.0, 9.0
    (known,) = repeated_programs._plans.values()

    assert not {"ones", "zeros", "broadcast_to"} & {bind.op.name for bind in known.plan.binds}


def test_a_plan_asks_no_questions_that_the_recording_has_answered():
    def f(x):
        return (x * x).sum() if x[0] > 1 else x.sum()

    for _ in range(3):
        np.testing.assert_array_equal(lt.grad(f)(X + 1), 2 * (X + 1))
    (known,) = repeated_programs._plans.values()

    assert {bind.op.name for bind in known.plan.binds}.isdisjoint({"guard", "greater"})


def test_a_plan_asks_again_where_a_users_function_may_give_another_answer():
    answers = [True, True, True, True, True, False]

    def _answer(x):
        return np.array(answers.pop(0))

    ask = lt.opaque(_answer, lambda x: lt.ArrayType(bool, ()))

    def f(x):
        return x.sum() if ask(x) else -x.sum()

    for _ in range(2):  # each call asks when it records, and when it runs
        np.testing.assert_array_equal(lt.grad(f)(X), np.ones(4))
    with pytest.raises(lt.GuardError):
        lt.grad(f)(X)


def test_a_plan_keeps_no_arrays_alive():
    weights = np.ones(1000)
    weights.flags.writeable = False  # else the recording holds a copy
    alive = weakref.ref(weights)
    for _ in range(3):
        lt.grad(lambda x, w=weights: (x[0] * w).sum())(X)
    del weights

    assert alive() is None
    assert len(repeated_programs._plans) == 1


def test_derivatives_of_a_program_transform_it_once():
    fn = lt.trace(lambda x: (np.sin(x) * x, x), np.ones(3))
    x, ct = np.arange(3.0), (np.ones(3), np.ones(3))

    pulls = [lt.vjp(fn, x + i)[1] for i in range(3)]
    others = [lt.vjp(fn, x, policy="recompute_cheap")[1], lt.vjp(lt.trace(np.exp, x), x)[1]]
    lines = [lt.linearize(fn, x)[1] for _ in range(2)]

    assert pulls[0].program is pulls[1].program is pulls[2].program
    assert lines[0].program is lines[1].program
    assert all(pull.program is not pulls[0].program for pull in others)
    for i, pull in enumerate(pulls):
        assert_same(lt.vjp(lambda x: (np.sin(x) * x, x), x + i)[1](ct), pull(ct))


def test_products_with_the_hessian_of_a_program_depend_on_which_tangents_are_given():
    def f(x, y):
        return (x * x * y).sum()

    fn, x, y = lt.trace(f, np.ones(2), np.ones(2)), np.array([1.0, 2.0]), np.array([3.0, 4.0])
    for tangents in ((x, y), (x, None), (None, y), (x, y), (y, x)):
        assert_same(lt.hvp(f, (x, y), tangents), lt.hvp(fn, (x, y), tangents))
        assert_same(lt.jvp(f, (x, y), tangents), lt.jvp(fn, (x, y), tangents))


def test_programs_that_follow_each_other_in_memory_are_not_confused():
    for k in range(20):
        fn = lt.trace(lambda x, k=k: x * k, 2.0)

        assert lt.vjp(fn, 2.0)[1](1.0) == (float(k),)
        del fn

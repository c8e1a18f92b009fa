"""Calls of small plans as one function: results, errors and warnings equal the function's."""

import math
import warnings
from itertools import accumulate

import numpy as np
import pytest

import letir as lt
from letir.plan.generated_calls import GeneratedCall, shortest_time
from letir.plan.plan import Miss
from letir.testing import assert_same

X = np.array([0.5, 1.5, 2.5])
POSITIVE = np.array([[2.0, 0.5, 0.25], [0.5, 3.0, 0.0], [0.25, 0.0, 1.0]])


@pytest.fixture(autouse=True)
def plans_are_fastest(monkeypatch):
    """Functions of Python's numbers, which are as fast as their plans, are not called as Python."""
    monkeypatch.setattr(GeneratedCall, "shortest_time", lambda *_: 0)


def quick_of(fast):
    """The quick calls of a jitted function, the one that is tried first at the front."""
    return fast.__letir_executor__.quick


def warmed(f, *args):
    """An executor that runs its plan as one function."""
    fast = lt.jit(f)
    for _ in range(12):
        fast(*args)
    assert quick_of(fast)[0].in_parts is not None
    return fast


def outcome(f, *args):
    """The results of a call, or its error, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = f(*args)
        except (ValueError, OverflowError, ZeroDivisionError, np.linalg.LinAlgError) as error:
            found = type(error), str(error)
    return found, {str(w.message).replace(" scalar", "") for w in caught}


def numbers(a, b):
    """More operations on Python's numbers than a kernel needs."""
    total = 0.0
    for n in range(1, 9):
        total += math.log(a * n) / (b + n) - math.exp(-a / n) * math.sqrt(a + b)
    return {"total": total, "parts": (total * a, [b - a])}


def kept_comparison(s):
    """A comparison that decides a branch and is a result too."""
    is_small = s < 1.0
    return (s * 2.0 if is_small else s), is_small


FUNCTIONS = {
    "numbers": (numbers, (0.5, 2.0), [(-1.0, 2.0), (0.0, 2.0), (0.5, -1.0), (1e-320, 1e308)]),
    "infinite": (
        lambda a, b: (abs(-(a * b) + 1.0) * 0.5 - b, 1.0 / (a * b + 1.0), min(a * b, 1.0)),
        (0.5, 2.0),
        [(1e300, 1e300), (-1e300, 1e300), (np.inf, 0.0), (np.nan, 1.0), (1e300, -1e9)],
    ),
    "compared": (
        lambda a, b: a * 2.0 if a * b < 1.0 else a + b if a != b else b,
        (0.5, 1.0),
        [(1.5, 1.0), (1e300, 1e300), (np.nan, 1.0), (0.5, 1.0), (1.5, 1.5)],
    ),
    "arrays": (lambda x, s: np.log(x) / s, (X, 2.0), [(X - 0.5, 2.0), (X - 1, 2.0), (X, 0.0)]),
    "sums": (
        lambda x: x.std() + x.mean() * x.sum(),
        (X,),
        [(np.full(3, 1e308),), (np.full(3, np.inf),)],
    ),
    "factors": (
        lambda x, y: (
            np.linalg.solve(x, y),
            np.linalg.solve(x, x.T),
            np.linalg.cholesky(x) + np.linalg.cholesky(x, upper=True),
            np.linalg.det(x),
            (np.linalg.slogdet(x).logabsdet, np.linalg.eigvalsh(x, "U")),
        ),
        (POSITIVE, X),
        [(-POSITIVE, X), (np.zeros((3, 3)), X), (POSITIVE * np.nan, X), (POSITIVE * 1e300, X)],
    ),
    "values": (
        lambda x: (*np.linalg.svd(x)[:2], np.linalg.eigh(x @ x.T)[1], np.linalg.svdvals(x[:2])),
        (POSITIVE,),
        [(POSITIVE * np.nan,), (POSITIVE + np.inf,), (np.zeros((3, 3)),)],
    ),
    "linalg": (np.linalg.inv, (np.eye(2),), [(np.ones((2, 2)),), (np.eye(2) * np.nan,)]),
    "branches": (lambda s: s * 2 if s > 1 else (s, s + 1), (0.5,), [(2.0,), (np.nan,), (0.5,)]),
    "kept": (kept_comparison, (0.5,), [(2.0,), (0.0,), (np.nan,), (-1.0,)]),
    "integers": (lambda n: (n * n) // 3 % 5, (7,), [(-8,), (2**40,), (0,)]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("mode", ["warn", "ignore", "raise", "print"])
def test_outcomes_equal_the_functions(name, mode, capsys):
    f, usual, others = FUNCTIONS[name]
    fast = warmed(f, *usual)
    with np.errstate(all=mode):
        for args in [usual, *others, usual]:
            try:
                expected, told = outcome(f, *args)
            except FloatingPointError:
                with pytest.raises(FloatingPointError):
                    fast(*args)
                continue
            found, ours = outcome(fast, *args)
            assert_same(expected, found)
            assert told <= ours  # letir warns of infinite Python numbers too
    capsys.readouterr()


def test_a_plan_that_often_warns_runs_in_parts():
    fast = warmed(np.log, X)
    for _ in range(20):
        outcome(fast, X - 0.5)
        assert_same(np.log(X), fast(X))

    assert quick_of(fast)[0].in_parts is None


def test_effects_run_in_parts(capsys):
    def f(x):
        lt.debug.print("{x}", x=x)
        return x * 2.0

    fast = lt.jit(f)
    for _ in range(12):
        fast(X.copy())

    assert quick_of(fast)[0].in_parts is None


def stepped(x, y):
    """Writes to both arguments and returns one of them."""
    x += y
    y[:] = x * 2.0
    return x


def test_writes_to_arguments_come_last():
    fast = warmed(stepped, X.copy(), X.copy())
    ours, own = (X.copy(), X + 1.0), (X.copy(), X + 1.0)

    assert fast(*ours) is ours[0]
    stepped(*own)

    assert_same(own, ours)
    assert quick_of(fast)[0].failures == 0


def test_read_only_arguments_are_refused():
    fast, frozen = warmed(stepped, X.copy(), X.copy()), X.copy()
    frozen.flags.writeable = False

    with pytest.raises(ValueError, match="read-only"):
        fast(frozen, X.copy())

    assert_same(X, frozen)


@pytest.mark.parametrize("other", [slice(2, 5), slice(0, 3), slice(3, 6)])
def test_arguments_that_share_memory_are_computed_by_python(other):
    fast = warmed(stepped, X.copy(), X.copy())
    whole, expected = np.arange(6.0), np.arange(6.0)

    stepped(expected[:3], expected[other])
    fast(whole[:3], whole[other])

    assert_same(expected, whole)


def test_an_interrupt_is_not_called_again():
    fast = warmed(np.sin, X)

    def interrupted(args, kwargs):
        raise KeyboardInterrupt

    quick_of(fast)[0].run, quick_of(fast)[0].own_call = interrupted, None
    fast.__letir_executor__.try_first(quick_of(fast))
    with pytest.raises(KeyboardInterrupt):
        fast(X)


def test_a_caught_error_costs_no_location(monkeypatch):
    def f(x):
        try:
            return np.linalg.cholesky(x)
        except np.linalg.LinAlgError:
            return np.linalg.cholesky(x + 9.0 * np.eye(2))

    fast = lt.jit(f)
    told = []
    monkeypatch.setitem(lt.ast.LATE_BOUND, "say_where", lambda *place: told.append(place))
    for sign in (-1.0, -1.0, 1.0, -1.0, 1.0) * 3:
        assert_same(f(sign * np.eye(2)), fast(sign * np.eye(2)))

    assert not told


def test_named_results_come_from_one_function():
    m = np.array([[2.0, 1.0], [1.0, 3.0]])
    fast = warmed(np.linalg.eigh, m)

    found = fast(m)
    assert type(found) is type(np.linalg.eigh(m))
    assert_same(np.linalg.eigh(m).eigenvalues, found.eigenvalues)


def test_a_program_with_constants_is_one_function():
    a = np.arange(4.0).reshape(2, 2)
    fast = warmed(lambda x: (a @ x, np.sort(x)), X[:2])

    assert_same(a @ X[:2], fast(X[:2])[0])


def test_results_next_to_constants_need_no_second_function():
    names = {0: "none", 2: "two"}

    def f(x, s):
        y = np.linalg.solve(POSITIVE, x)
        return {n: len(word) for n, word in names.items()}, POSITIVE, y[::-1], [s * 2.0, None]

    fast = warmed(f, X, 0.5)

    assert_same(f(X, 1.5), fast(X, 1.5))
    fast(X, 0.5)[1][:] = 0.0
    assert_same(f(X, 0.5), fast(X, 0.5))


def test_lists_of_numbers_become_arrays_without_numpys_scalars():
    def f(a, b, x):
        first = np.float64(a)
        return np.array([a, b, first, a * b]), np.array([a, b]), first + x

    narrow = X.astype(np.float32)
    fast = warmed(f, 0.5, 2.5, narrow)

    for args in ((0.5, 2.5, narrow), (1.5, -0.0, narrow), (1e300, 1e300, narrow)):
        expected, _ = outcome(f, *args)
        found, _ = outcome(fast, *args)
        assert_same(expected, found)


def test_generators_get_back_their_states_if_a_call_runs_another_way():
    def f(x, g):
        y = g.normal(size=3) * x
        return (np.log(y.sum() + 3.0), g.random()) if g.random() < 0.7 else (y, g.integers(5))

    fast, ours, numpys = lt.jit(f), np.random.default_rng(4), np.random.default_rng(4)
    for _ in range(60):
        expected, told = outcome(f, X, numpys)
        found, warned = outcome(fast, X, ours)
        assert_same(expected, found)
        assert told == warned
    assert numpys.random() == ours.random()
    assert all(quick.in_parts is not None for quick in quick_of(fast))


def test_singular_matrices_raise_next_to_functions_that_warn():
    fast = lt.compile(lt.trace(lambda x: np.linalg.inv(x) + np.unwrap(x), POSITIVE))
    for _ in range(6):
        assert_same(np.linalg.inv(POSITIVE) + np.unwrap(POSITIVE), fast(POSITIVE))

    with warnings.catch_warnings(), pytest.raises(np.linalg.LinAlgError, match="Singular"):
        warnings.simplefilter("ignore")
        fast(np.zeros((3, 3)))


def test_a_guard_of_a_rounded_number_holds_for_all_numbers_that_round_to_it():
    fast = warmed(lambda limit: sum(range(int(limit**0.5))) * limit, 37.0)
    compiles = fast.counters["compiles"]

    assert [quick_of(fast)[0].run((limit,), {}) for limit in (37.0, 40.5)] == [
        555.0,
        607.5,
    ]
    assert quick_of(fast)[0].run((49.0,), {}) is Miss
    assert fast(49.0) == 21 * 49.0 and fast(36.0) == 540.0
    assert fast.counters["compiles"] == compiles + 1


FORMS = {
    "cross": (
        lambda a, b: (np.cross(a, b), np.cross(b * 2.0, a)),
        [(X, X[::-1].copy()), (X * 1e300, -X * 1e300), (np.array([0.0, -0.0, 1.0]), X)],
    ),
    "crosses": (
        lambda a, b: np.cross(a, b) + np.cross(a, b, axis=1),
        [(np.outer(X, X), np.eye(3)), (np.outer(X, X) * 1e300, np.ones((3, 3)) * 1e300)],
    ),
    "norms": (
        lambda a, b: (np.linalg.norm(a), np.linalg.norm(np.outer(a, b)), np.sqrt(a.sum() - 3.0)),
        [(X, X), (X - 1.0, X), (X * 1e300, X), (X * np.nan, X), (X * 0.0 + 1.0, X)],
    ),
    "norms along axes": (
        lambda a, b: [
            np.linalg.norm(np.outer(a, b).T, axis=n, keepdims=k) for n in (0, -1) for k in (0, 1)
        ],
        [(X, X), (X * 1e300, X), (X * np.nan, X), (X[::-1], X)],
    ),
    "bincount": (
        lambda a, b: (np.bincount(b), np.bincount(b, a, 2), np.minimum(b.max(), 7), b.max() // 2),
        [(X, np.array(n)) for n in ([0, 2, 1], [5, 5, 5], [0, 0, 0], [9, 1, 0])],
    ),
    "accumulated": (
        lambda a, b: (
            *[np.maximum.accumulate(a - b), np.minimum.accumulate(np.outer(a, b), 1)],
            *[np.multiply.accumulate(np.outer(a, b)), np.logical_or.accumulate(a > b)],
        ),
        [(X, X[::-1].copy()), (X * 1e300, X), (X * np.nan, X)],
    ),
    "clipped": (
        lambda a, b: (np.clip(a @ b, -1, 1), np.clip(a.sum(), -3.0, 5)),
        [(X, X), (X * 1e-9, X), (X * np.nan, X)],
    ),
    "counts": (
        lambda a, b: ((a > b).sum(), np.count_nonzero(a), (a < b).mean(), (a > 1).sum(axis=0)),
        [(X, X[::-1].copy()), (X * 0.0, X)],
    ),
    "rolled": (
        lambda a, b: (
            *[np.roll(np.outer(a, b), n, axis) for n in (-7, -1, 0, 1, 2) for axis in (0, 1, -1)],
            *[np.roll(np.outer(a, b).T, 1, 0), np.roll(a, -1), np.roll(np.outer(a, b), 2)],
        ),
        [(X, np.arange(5.0))],
    ),
    "convolved": (
        lambda a, b: [np.convolve(*ab, m) for ab in ((a, b), (b, a)) for m in ("full", "same")],
        [(np.arange(6.0), X), (np.arange(6.0) * np.nan, X)],
    ),
}


def divisions(n, m):
    """Python's integers in quotients, whose signs decide how they are rounded."""
    return n % m, n // m, (n * 7 - 1) % 5, (n * 7 - 1) // -5, n % 2**40


def bits(n, m):
    """Python's operators of bits, whose results may not fit 64 bits."""
    return n & m, n | 7, n ^ m, ~n, (n & 15) << 3, n >> 2, n << 63 >> 63, n >> 80, n >> m, n << m


def sides(points, x):
    """Comparisons of integers and floats, and of their outcomes."""
    above = [x < n for n in points]
    return above[0] != above[1], above[1] == above[2], x > points[2], points[0] <= x


NUMBERS = {
    "divisions": (divisions, [(n, m) for n in (7, -7, 2**62 // 7) for m in (3, -3)]),
    "bits": (bits, [(n, m) for n in (0, -1) for m in (0, 1, 5, 62)]),
    "sides": (
        sides,
        [([1, 5, 2**53 + 1], x) for x in (2.0, 7.5, np.nan, float(2**53), -np.inf)],
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_operators_of_numbers_of_two_kinds_give_pythons_results(name):
    f, calls = NUMBERS[name]
    traced = lt.jit(f)
    for args in calls:
        expected = lt.run_forward(lt.trace(f, *args), *args)
        for _ in range(12):
            found = traced(*args)
        assert_same(np.array(expected), np.array(found))
        assert [*map(type, expected)] == [*map(type, found)]


@pytest.mark.parametrize("name", FORMS)
def test_short_forms_give_numpys_bits(name):
    f, calls = FORMS[name]
    fast = warmed(f, *calls[0])

    for args in [*calls, calls[0]]:
        (expected, told), (found, ours) = outcome(f, *args), outcome(fast, *args)
        assert_same(expected, found)
        assert told == ours


@pytest.mark.parametrize("axis", [0, 1])
def test_rolled_arrays_are_joined_parts_in_the_order_of_the_array(axis):
    for order in "CF":
        x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], order=order)
        fast, sliced = warmed(lambda x: np.roll(x, 1, axis), x), x[:, ::2]
        result = fast(x)

        assert_same(np.roll(x, 1, axis), result)
        assert np.roll(x, 1, axis).strides == result.strides
        assert_same(np.roll(sliced, 1, axis), fast(sliced))
        assert any(v is np.concatenate for v in quick_of(fast)[0].own_call.__globals__.values())


def test_a_view_of_a_new_array_is_written_to_in_place():
    def f(x):
        y = np.sqrt(x @ x.T)
        np.fill_diagonal(y, np.inf)
        return y.min(1)

    fast = warmed(f, POSITIVE)

    assert_same(f(POSITIVE), fast(POSITIVE))
    used = quick_of(fast)[0].own_call.__globals__.values()
    assert not [v for v in used if getattr(v, "__module__", "") == "letir.plan.instructions"]


def test_a_call_without_arguments_is_one_function():
    """A guard that does not hold makes it call the function."""

    def f():
        x = np.random.uniform(-1.0, 1.0, 3)
        return x + 1.0 if x[0] > -0.5 else x - 1.0

    fast = lt.jit(f)
    np.random.seed(0)
    found = [fast() for _ in range(60)]
    np.random.seed(0)
    expected = [f() for _ in range(60)]

    assert quick_of(fast)
    assert_same(expected, found)


def test_a_call_during_which_another_process_runs_is_not_the_only_one_timed(monkeypatch):
    moments = accumulate([0, 5_000_000, *[100] * 20])  # nanoseconds; the first call is interrupted
    monkeypatch.setattr("letir.plan.generated_calls.time.perf_counter_ns", lambda: next(moments))

    assert shortest_time(lambda args, kwargs: None, (), {}) == 100

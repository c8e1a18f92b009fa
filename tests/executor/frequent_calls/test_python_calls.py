"""Functions of arrays that are called in place of plans that save no time and give equal bits."""

import bisect
import contextlib
import copy
import heapq
import random
import statistics
import sys
import warnings
from collections import namedtuple

import numpy as np
import pytest
import scipy.ndimage
import scipy.signal
import scipy.spatial.distance
import scipy.special

import letir as lt
from letir.executor.frequent_calls import python_calls
from letir.executor.frequent_calls.external_values import values_read
from letir.plan.generated_calls import GeneratedCall
from letir.testing import assert_same

X = np.linspace(0.5, 2.0, 6)
SHIFT = 0.25


def plans_take_longer(call, *_):
    """A time of 0 for the call of a function, of 1 for the call of a plan."""
    return "FUNCTION" not in call.names


@pytest.fixture(autouse=True)
def functions_are_fastest(monkeypatch):
    """Plans take more time than functions."""
    monkeypatch.setattr(GeneratedCall, "shortest_time", plans_take_longer)
    monkeypatch.setattr(python_calls, "shortest_time", lambda *_: 1)


def is_python(f, *args, **options):
    """Whether an executor of ``f`` calls the function after some calls; results are compared."""
    fast = lt.jit(f, **options)
    for _ in range(20):
        assert_same(f(*args), fast(*args))
    return fast.__letir_executor__.quick[0].is_python


def shifted(x):
    return np.sort(x) + SHIFT


def test_a_plan_of_the_same_operations_is_not_faster():
    assert is_python(lambda x: np.sort(x)[1:], X)
    assert is_python(lambda p, x: p["w"] * x[0], {"w": X}, [X, X])


def test_a_plan_of_other_operations_stays():
    assert not is_python(lambda x: x**3, X)  # multiplied, which may differ in the last bit
    assert not is_python(lambda x: np.round(scipy.signal.convolve(x, X), 6), X)
    assert is_python(lambda x: x**3, X, exact=True)


@pytest.mark.parametrize("is_faster", [False, True])
def test_no_time_decides_where_numpys_scalars_round_in_another_way(monkeypatch, is_faster):
    """NumPy's scalars and ufuncs may differ in the last bit of powers and of complex products."""
    monkeypatch.setattr(python_calls, "_is_faster", lambda *_: is_faster)

    def calls_python(f, *args):
        fast = lt.jit(f)
        for _ in range(20):
            np.testing.assert_allclose(fast(*args), f(*args), rtol=1e-14)
        return fast.__letir_executor__.quick[0].is_python

    assert calls_python(lambda s, t: np.cbrt(s) + t**2.5, np.float64(1.5), np.float64(2.5))
    assert calls_python(lambda z: z * z + 1.0, np.complex128(1 + 2j))
    assert not calls_python(lambda x: sum(np.sort(x)[0] ** 0.3 for _ in range(5)), X)  # one power
    assert calls_python(lambda x: np.sort(x)[1:] + 1.0, X) == is_faster


def test_views_and_the_unchanged_part_of_an_update_are_no_work():
    def marched(table, x):
        """A long loop that reads rows of a large table and writes numbers into a long array."""
        for i in range(1, 40):
            x[i] = x[i - 1] - table[i, 0] * table[i, 1] / table[i, 2]
        return x

    table = np.linspace(0.5, 2.0, 1 << 18).reshape(64, -1)
    fast, x = lt.jit(marched, kernels="off"), np.linspace(0.0, 1.0, 1 << 17)
    for _ in range(20):
        assert_same(marched(table, x.copy()), fast(table, x.copy()))

    assert fast.__letir_executor__.quick[0].is_python


def smoothed(x):
    return scipy.ndimage.gaussian_filter1d(x, 1.0) * SHIFT


def test_functions_of_scipy_that_are_faster_than_operations_are_called_from_the_first_call_on():
    fast = lt.jit(smoothed)
    for _ in range(10):
        assert_same(smoothed(X), fast(X))

    assert fast.counters["compiles"] == 0
    assert "SciPy's own functions take less time" in str(lt.explain(fast, X))
    gradient = lt.jit(lt.grad(lambda x: smoothed(x).sum()))
    np.testing.assert_allclose(gradient(X), lt.grad(lambda x: smoothed(x).sum())(X))
    variable = lt.Variable(X, requires_grad=True)
    fast(variable).sum().backward()
    np.testing.assert_allclose(variable.grad, gradient(X))


def test_functions_of_scipy_are_known_by_module_not_by_name():
    fast = lt.jit(lambda x: np.convolve(scipy.special.gamma(x), x))  # not scipy.ndimage.convolve
    for _ in range(3):
        fast(X)

    assert fast.counters["compiles"] == 1
    assert is_python(lambda x: scipy.special.gamma(x)[:3], X)  # not scipy.stats.gamma


def test_small_distances_are_computed_by_scipy():
    def distances(x):
        return scipy.spatial.distance.cdist(x, x) * SHIFT

    small, large = np.arange(12.0).reshape(4, 3), np.arange(600.0).reshape(200, 3) ** 0.5
    fast = lt.jit(distances)
    for x in (small, large, large[1:], large[2:], small[1:]):
        for _ in range(3):
            np.testing.assert_allclose(distances(x), fast(x), atol=1e-6)

    assert fast.counters["compiles"] == 1  # for all sizes but the first
    fast = lt.jit(distances)
    fast(small)
    assert_same(distances(small), fast(small))
    assert fast.counters["compiles"] == 0


def test_functions_of_a_module_in_a_variable_are_not_known():
    def smoothed_twice(x):
        images = scipy.ndimage
        return images.gaussian_filter1d(images.gaussian_filter1d(x, 1.0), 1.0)

    outside = values_read(smoothed_twice)
    assert outside is not None
    assert not outside.is_complete


def test_functions_of_pythons_modules_are_parts_of_a_function():
    def of_copy(rows, x):
        rows = copy.deepcopy(rows)
        rows[0][0] += x
        heapq.heapify(rows[1])
        return statistics.fmean(rows[0]) + rows[1][bisect.bisect([0.5], x)]

    assert values_read(of_copy) is not None
    assert is_python(of_copy, [[1.0, 2.0], [2.5, 0.5]], 1.5)


def without_warnings(x):
    with warnings.catch_warnings(), contextlib.suppress(ZeroDivisionError):
        warnings.simplefilter("ignore")
        return np.log(x)


def ever_silent(x):
    warnings.simplefilter("ignore")
    return np.log(x)


def outspoken(x):
    with warnings.catch_warnings():
        warnings.warn("a warning", stacklevel=1)
    return np.log(x)


def test_filters_of_warnings_that_are_taken_back_are_no_effect():
    assert values_read(without_warnings) is not None
    assert is_python(without_warnings, X)
    assert values_read(ever_silent) is None
    assert values_read(outspoken) is None


def strict_logarithm(x):
    old = np.seterr(all="raise")
    try:
        return np.log(x)
    except FloatingPointError:
        return np.log(np.abs(x) + 1.0)
    finally:
        np.seterr(**old)


def test_a_setting_of_numpy_is_an_effect_unless_the_plan_raises():
    before = np.geterr()
    assert is_python(strict_logarithm, np.zeros(3))
    assert values_read(strict_logarithm) is None
    assert np.geterr() == before


def test_numbers_at_which_the_plan_leaves_its_function_are_timed():
    assert is_python(lambda x, y: (x + y) * 2.0 + x, np.inf, 1.0)
    assert is_python(lambda n, m: n * m - n, 2**40, 2**20)


def normalised(x):
    q = np.array([x[0] / x[1], x[1]])
    return q / np.linalg.norm(q)


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_arguments_at_which_the_plan_warns_are_timed():
    assert is_python(normalised, np.zeros(2))
    assert is_python(lambda x: np.sort(x / x)[0], np.zeros(2))


def test_timing_a_block_of_errstate_does_not_repeat_its_warnings(monkeypatch):
    monkeypatch.undo()

    def logarithms(x):
        with np.errstate(divide="ignore"):
            return np.log(x) * 2.0, np.exp(x)

    fast, x = lt.jit(logarithms), np.array([-1.0, 0.0, 1.0])
    for _ in range(20):
        with pytest.warns(RuntimeWarning, match="invalid value") as found:
            fast(x)
        assert len(found) == 1


def test_timing_a_function_does_not_write_into_its_arguments():
    def count(x, state):
        x += 1.0
        state["n"][0] += 2.0

    fast, x, state = lt.jit(count), X.copy(), {"n": np.zeros(1)}
    for _ in range(20):
        fast(x, state)
    assert fast.__letir_executor__.quick[0].is_python
    assert_same(X + 20.0, x)
    assert state["n"][0] == 40.0


def test_arguments_that_cannot_be_copied_keep_the_plan(monkeypatch):
    def refuse(value):
        raise TypeError(f"cannot copy {value}")

    monkeypatch.setattr("letir.executor.frequent_calls.python_calls.deepcopy", refuse)
    fast, x = lt.jit(lambda x: np.copyto(x, x + 1.0)), X.copy()
    for _ in range(20):
        fast(x)
    assert not fast.__letir_executor__.quick[0].is_python
    assert_same(X + 20.0, x)


def test_draws_stay_in_the_plan():
    def draw(rng):
        return rng.normal(size=3)

    fast, rng = lt.jit(draw), np.random.default_rng(0)
    found = [fast(rng) for _ in range(20)]
    assert_same(np.random.default_rng(0).normal(size=(20, 3)), np.array(found))


def test_arrays_of_other_types_and_sizes_have_plans():
    def doubled(x):
        return np.flip(np.sort(x)) * 2

    fast = lt.jit(doubled)
    for _ in range(20):
        fast(X)
    for x in (X, X[:4], X.astype(np.float32), np.arange(3), X[::2], 1j * X):
        assert_same(doubled(x), fast(x))
    assert fast.counters["compiles"] > 1


def test_a_global_number_has_its_recorded_value(monkeypatch):
    fast = lt.jit(shifted)
    for _ in range(20):
        fast(X)
    assert fast.__letir_executor__.quick[0].is_python
    monkeypatch.setitem(globals(), "SHIFT", 7.0)

    assert_same(np.sort(X) + 0.25, fast(X))


def test_a_function_that_needs_traced_values_is_not_called(monkeypatch):
    monkeypatch.undo()
    fast = lt.jit(lambda x: x.at[0].set(5.0))
    for _ in range(20):
        assert 5.0 == fast(X)[0]


def test_functions_that_draw_from_an_argument_are_compared():
    def noisy(rng, x):
        return x + rng.normal(size=6)

    ours, pythons, fast = np.random.default_rng(2), np.random.default_rng(2), lt.jit(noisy)
    for _ in range(20):
        assert_same(noisy(pythons, X), fast(ours, X))

    assert fast.__letir_executor__.quick[0].is_python
    assert ours.bit_generator.state == pythons.bit_generator.state


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_few_operations_beside_draws_from_a_captured_generator_run_as_python(make):
    ours, pythons = make(2), make(2)

    def noisy(rng):
        return lambda x: x + rng.normal(size=6)

    def very_noisy(rng):
        return lambda x: sum(x * n + rng.normal(size=6) for n in range(10))

    few, many = lt.jit(noisy(ours)), lt.jit(very_noisy(ours))
    for _ in range(20):
        assert_same(noisy(pythons)(X), few(X))
        assert_same(very_noisy(pythons)(X), many(X))

    assert few.__letir_executor__.quick[0].is_python
    assert not many.__letir_executor__.quick[0].is_python


def test_functions_that_draw_globally_run_as_python():
    def noisy(x):
        return x + np.random.random(6)

    fast, found, expected = lt.jit(noisy), [], []
    for f, results in ((fast, found), (noisy, expected)):
        np.random.seed(3)
        results += [f(X) for _ in range(20)]

    assert_same(expected, found)
    assert fast.__letir_executor__.quick[0].is_python


def test_an_einsum_that_blas_computes_stays_in_its_plan():
    """Otherwise the time would decide on the last bits."""

    def product(x):
        return np.einsum("ij,jk->ik", x, x)

    fast, x = lt.jit(product, kernels="on"), np.random.default_rng(2).normal(size=(64, 64))
    results = [fast(x) for _ in range(20)]

    assert not fast.__letir_executor__.quick[0].is_python
    assert_same(results[0], results[-1])
    assert is_python(product, np.ones((3, 3)), kernels="on")


class NotConverged(Exception):
    """As numerical code of users defines it."""


class Counted(Exception):
    count = 0


class Noted(Exception):
    def __init__(self):
        super().__init__()
        SEEN.append(self)


SEEN: list = []
Step = namedtuple("Step", "x width")


class Point:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __sub__(self, other):
        return Point(self.x - other.x, self.y - other.y)

    @property
    def square(self):
        return self.x * self.x + self.y * self.y


class Moving(Point):
    __slots__ = ()

    def move(self):
        self.x += 1


class Filling:
    def __init__(self, other):
        other.x = 0


class Renamed:
    def __init__(self, other):
        self = other  # noqa: PLW0642
        self.x = 0


class Swapped:
    def __init__(self, other):
        x, self = 0, other  # noqa: PLW0642
        self.x = x


class Scaled:
    def __init__(self, x):
        half = x / 2
        self.x = half + x


size = np.zeros(2)


def newton(x, limit):
    try:
        for _ in range(20):
            step = (x * x - 2.0) / (2.0 * x)
            if abs(step) < limit:
                return x
            x = x - step
        raise NotConverged
    except NotConverged:
        return float("nan")


@pytest.mark.parametrize(
    ("f", "is_found"),
    [
        (newton, True),
        (lambda x: Step(x, 1.0), True),
        (lambda x: Counted.count * x, False),
        (lambda x: (Point(x, x) - Point(1, 2)).square, True),
        (lambda x: Moving(x, x).square, False),
        (lambda x: [Filling(x)], False),
        (lambda x: [Renamed(x)], False),
        (lambda x: [Swapped(x)], False),
        (lambda x: [Scaled(x)], True),
        (lambda x: [random.Random(x)], False),
        (lambda x: isinstance(x, Noted), False),
        (lambda x: x.size + 1, True),  # not the global of this name
        (lambda x: x.size + size, False),
    ],
)
def test_classes_without_effects_are_parts_of_functions(f, is_found):
    assert (values_read(f) is not None) == is_found


def test_a_loop_of_decisions_in_a_try_statement_runs_as_python():
    fast = lt.jit(newton)
    for _ in range(20):
        assert newton(3.0, 1e-9) == fast(3.0, 1e-9)

    assert np.isnan(fast(3.0, -1.0))
    assert fast.__letir_executor__.quick[0].is_python


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: x.mean(), np.ones(0)),
        (lambda x: np.std(x, ddof=3), np.ones(3)),
        (np.nanmax, np.full(3, np.nan)),
        (lambda x: np.nanpercentile(x, 50), np.full(3, np.nan)),
        (lambda x: x.astype(float), np.ones(3) * 1j),
    ],
)
def test_timing_does_not_repeat_warnings_of_numpys_python_functions(f, x):
    def texts(function):
        with warnings.catch_warnings(record=True) as shown, np.errstate(all="ignore"):
            warnings.simplefilter("always")
            function(x)
        return [str(warning.message) for warning in shown]

    jitted = lt.jit(f)

    assert len(texts(f)) == 1
    assert all(texts(f) == texts(jitted) for _ in range(20))


def test_functions_that_warn_are_not_timed_under_a_profiler():
    jitted = lt.jit(lambda x: x.mean())
    seen = []
    sys.setprofile(lambda *event: seen.append(event[1]))
    try:
        with pytest.warns(RuntimeWarning, match="Mean of empty slice") as shown:
            for _ in range(20):
                with np.errstate(all="ignore"):
                    jitted(np.ones(0))
    finally:
        sys.setprofile(None)

    assert len(shown) == 20
    assert seen

"""Recordings that end early: of many decisions, or of many operations on few numbers."""

import functools

import numpy as np
import pytest

import letir as lt
from letir.tracing.checks import recording_limits

TABLE: list = []


def escape_times(w, h):
    out = np.zeros((h, w), dtype=int)
    for i in range(h):
        for j in range(w):
            c, z = complex(3 * j / w - 2, 2 * i / h - 1), 0j
            k = 0
            while k < 10:
                z, k = z * z + c, k + 1
                if z.real * z.real + z.imag * z.imag > 4:
                    break
            out[i, j] = k
    return out


def test_a_recording_of_thousands_of_decisions_ends_and_the_function_runs_as_python():
    fast = lt.jit(escape_times)
    for _ in range(20):
        np.testing.assert_array_equal(escape_times(20, 15), fast(20, 15))

    assert fast.counters["compiles"] == 0
    assert len(fast.__letir_executor__.as_python) == 1
    assert not fast.__letir_executor__.runs_python


def test_arguments_of_other_types_are_recorded_once_more():
    def count(x, n):
        return sum(1.0 for i in range(n) if x > i) + 0.0 * n

    fast = lt.jit(count)
    assert count(700.5, 1_000) == fast(700.5, 1_000)
    assert fast(2, 9) == 2.0
    assert fast.counters["compiles"] == 1
    assert count(np.float64(700.5), 1_000) == fast(np.float64(700.5), 1_000)
    assert fast.__letir_executor__.runs_python


def test_a_function_cannot_catch_the_end_of_its_recording():
    def caught(n):
        steps = 0
        for i in range(n):
            try:
                steps += 1 if n > i else 2
            except:  # noqa: E722  any error
                steps -= 1000
        return steps

    fast = lt.jit(caught)

    assert [fast(600), fast(600)] == [600, 600]
    assert fast.counters["compiles"] == 0


class Ray:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def dot(self, other):
        return self.x * other.x + self.y * other.y


def test_a_function_that_makes_objects_of_its_own_classes_may_run_as_python():
    def render(w, h):
        image, light = np.zeros((h, w)), Ray(0.5, 0.25)
        for j in range(h):
            for i in range(w):
                bright = Ray(i / w, j / h).dot(light)
                if bright > 0.25:
                    image[j, i] = bright
        return image

    fast = lt.jit(render)
    for _ in range(2):
        np.testing.assert_array_equal(render(32, 24), fast(32, 24))
    assert fast.counters["compiles"] == 0


def test_an_error_of_the_function_is_its_own():
    def raising(n):
        for i in range(n):
            if i == 600:
                raise ValueError("at 600")
            if n < i:
                return 0
        return 1

    fast = lt.jit(raising)
    for _ in range(2):
        with pytest.raises(ValueError, match="at 600"):
            fast(1_000)


def test_a_function_with_effects_is_recorded_to_its_end():
    def appending(n):
        TABLE.append(1)
        return sum(1 for i in range(n) if n > i)

    fast, before = lt.jit(appending), len(TABLE)

    assert [fast(600), fast(600)] == [600, 600]
    assert len(TABLE) == before + 2


@pytest.mark.parametrize("is_argument", [True, False])
def test_generators_draw_the_same_numbers(is_argument):
    def walk(rng, x, n):
        accepted = 0
        for _ in range(n):
            y = x + rng.normal()
            if rng.random() < np.exp(min(0.0, (x * x - y * y) / 2)):
                x, accepted = y, accepted + 1
        return x, accepted

    def results(compiled):
        rng = np.random.default_rng(3)
        if is_argument:
            call = lt.jit(walk) if compiled else walk
            return [call(rng, 0.5, 400) for _ in range(3)], rng.random()
        call = (
            (lambda x, n: walk(rng, x, n)) if not compiled else lt.jit(lambda x, n: walk(rng, x, n))
        )
        return [call(0.5, 400) for _ in range(3)], rng.random()

    assert results(False) == results(True)


def test_values_stored_in_a_default_are_restored():
    def memoised(n, memo={}):  # noqa: B006
        steps = 0
        for i in range(n):
            memo[i % 7] = steps + n
            steps += 1 if memo[i % 7] > i else 0
        return steps

    fast = lt.jit(memoised)

    assert [fast(600), fast(600)] == [600, 600]
    assert {type(value) for value in memoised.__defaults__[0].values()} == {int}


def test_a_function_that_calls_itself_by_its_jitted_name():
    @lt.jit
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    assert [fib(14), fib(14)] == [377, 377]
    assert fib.counters["compiles"] == 0


@pytest.mark.parametrize(
    ("options", "compiles"), [({}, 0), ({"static_argnums": 1}, 0), ({"exact": True}, 1)]
)
def test_jitted_functions_that_it_calls_are_parts_of_the_function(options, compiles):
    @lt.jit(**options)
    def clamp(i, end):
        return end if i > end else i

    def count(x):
        return sum(1.0 for i in range(600) if x > clamp(i, 300))

    fast = lt.jit(count)
    for _ in range(3):
        assert count(250.5) == fast(250.5)
    assert fast.counters["compiles"] == compiles


def test_a_jitted_function_with_effects_is_an_effect():
    seen = []

    @lt.jit
    def note(i):
        seen.append(i)
        return i

    fast = lt.jit(lambda x: sum(1.0 for i in range(600) if x > note(i)))
    assert [fast(250.5), fast(250.5)] == [251.0, 251.0]
    assert len(seen) == 1200


def test_a_function_with_many_operations_between_its_decisions_has_a_plan():
    def relaxed(x, n):
        for i in range(n):
            if x[0] > -i - 9:
                x = np.sqrt(x * x + 1.0) * 0.5 + np.cos(x) * 0.25
        return x

    x = np.full(200, 1000.0)
    fast = lt.jit(relaxed)
    fast(x, 530)

    assert fast.counters["compiles"] == 1


# ---- many operations on few numbers ----


def smoothed(x, sweeps):
    for _ in range(sweeps):
        for i in range(1, x.shape[0] - 1):
            x[i] = (x[i - 1] + x[i] + x[i + 1]) / 3.0
    return x.sum()


def relaxed_until(x, tolerance):
    """The number of steps that the relaxation of ``x`` needs."""
    steps, change = 0, 1.0
    while change > tolerance:
        before = x.copy()
        x[1:-1] = 0.5 * (x[:-2] + x[2:])
        change = np.abs(x - before).max()
        steps += 1
    return steps


def test_a_recording_of_very_many_operations_on_small_arrays_ends():
    fast, x = lt.jit(smoothed), np.linspace(0.0, 1.0, 40) ** 2
    for _ in range(3):
        ours, numpys = x.copy(), x.copy()
        assert smoothed(numpys, 600) == fast(ours, 600)
        np.testing.assert_array_equal(numpys, ours)

    assert fast.counters["compiles"] == 0
    assert "operations on small arrays: to record" in lt.explain(fast, x.copy(), 600).why_python
    assert "lt.fori_loop" in str(lt.explain(fast, x.copy(), 600))


@pytest.fixture
def low_limit(monkeypatch):
    monkeypatch.setattr(recording_limits, "_OPERATIONS", 512)
    monkeypatch.setattr(recording_limits, "_TESTED_EVERY", 64)


@pytest.mark.usefixtures("low_limit")
def test_a_shorter_recording_of_the_same_function_has_a_plan():
    fast, x = lt.jit(smoothed), np.linspace(0.0, 1.0, 10)

    assert smoothed(x.copy(), 4) == fast(x.copy(), 4)
    assert fast.counters["compiles"] == 1
    assert smoothed(x.copy(), 40) == fast(x.copy(), 40)
    assert fast.counters["compiles"] == 1
    assert smoothed(x.copy(), 4) == fast(x.copy(), 4)


@pytest.mark.usefixtures("low_limit")
def test_decisions_count_as_operations():
    x = np.linspace(0.0, 1.0, 10) ** 2
    straight, deciding = lt.jit(smoothed), lt.jit(relaxed_until)
    straight(x.copy(), 3)
    assert straight.counters["compiles"] == 1

    for _ in range(2):
        ours, numpys = x.copy(), x.copy()
        assert relaxed_until(numpys, 1e-3) == deciding(ours, 1e-3)
        np.testing.assert_array_equal(numpys, ours)
    assert deciding.counters["compiles"] == 0
    assert "operations on small arrays and" in lt.explain(deciding, x.copy(), 1e-3).why_python


@pytest.mark.usefixtures("low_limit")
def test_operations_and_decisions_on_python_numbers_count_less():
    def stepped(x, n):
        for i in range(2):
            for j in range(n):
                if (n - 1) * i + j * n - 2 == n * n:
                    x = x * 0.5
        return x

    fast, x = lt.jit(stepped), np.linspace(0.0, 1.0, 10)
    np.testing.assert_array_equal(stepped(x, 60), fast(x, 60))

    assert fast.counters["compiles"] == 1


@pytest.mark.usefixtures("low_limit")
def test_selections_by_masks_count_as_decisions():
    def means_in_bins(x, n):
        bins = [x[(x >= i / n) & (x < (i + 1) / n)] for i in range(n)]
        return np.array([bin.mean() for bin in bins])

    fast, x = lt.jit(means_in_bins), np.random.default_rng(3).random(400)
    for _ in range(2):
        np.testing.assert_array_equal(means_in_bins(x, 24), fast(x, 24))

    assert fast.counters["compiles"] == 0


@pytest.mark.usefixtures("low_limit")
def test_other_sizes_are_not_recorded_without_a_limit():
    def decayed(x):
        for _ in range(400):
            x = x * 0.99 + 0.01
        return x

    fast = lt.jit(decayed)
    for n in (3, 4, 5, 4, 6):
        np.testing.assert_array_equal(decayed(np.ones(n)), fast(np.ones(n)))

    assert fast.counters["compiles"] == 0


@pytest.mark.usefixtures("low_limit")
@pytest.mark.parametrize("static_shapes", [None, False])
def test_a_longer_recording_for_another_size_ends_too(static_shapes):
    def forward_sums(x):
        y = np.zeros_like(x)
        for i in range(x.shape[0]):
            for j in range(i):
                y[i] += x[j]
        return y

    fast = lt.jit(forward_sums, static_shapes=static_shapes)
    for n in (5, 40, 5, 41, 60):
        x = np.linspace(1.0, 2.0, n)
        np.testing.assert_allclose(forward_sums(x), fast(x), rtol=1e-14)

    assert fast.counters["compiles"] <= 1


class Diffusion:
    def __init__(self):
        self.u, self.rate, self.steps = np.linspace(0.0, 1.0, 12) ** 2, 0.1, 0

    def moved(self, n):
        u = self.u.copy()
        for _ in range(n):
            for i in range(1, 11):
                u[i] = u[i] + self.rate * (u[i - 1] - u[i])
        return u

    def __call__(self, n):
        return self.moved(n) * 2.0

    def counted(self, n):
        self.steps += n
        return self.moved(n)


@pytest.mark.usefixtures("low_limit")
@pytest.mark.parametrize(
    "make",
    [
        lambda compiled: compiled(Diffusion.moved, Diffusion()),
        lambda compiled: compiled(Diffusion()),
        lambda compiled: compiled(functools.partial(smoothed, sweeps=40), Diffusion().u),
    ],
    ids=["method", "object", "partial"],
)
def test_recordings_of_methods_objects_and_partials_end(make):
    def called(f, *first):
        return f(*first, *(() if first and type(first[0]) is np.ndarray else (20,)))

    def jitted(f, *first):
        fast = lt.jit(f)
        results = [called(fast, *first) for _ in range(3)]
        executors = [fast, getattr(fast, "executor", None), getattr(fast, "method", None)]
        assert all(e.counters["compiles"] == 0 for e in executors if hasattr(e, "counters"))
        return results

    expected = make(called)
    for result in make(jitted)[:1]:
        np.testing.assert_array_equal(expected, result)


@pytest.mark.usefixtures("low_limit")
def test_a_method_that_counts_is_recorded_to_its_end_and_counts_once():
    ours, numpys = Diffusion(), Diffusion()
    fast = lt.jit(Diffusion.counted)
    for _ in range(3):
        np.testing.assert_array_equal(numpys.counted(20), fast(ours, 20))

    assert ours.steps == numpys.steps == 60


@pytest.mark.usefixtures("low_limit")
def test_operations_on_large_arrays_are_not_limited():
    def iterated(x, n):
        for _ in range(n):
            x = np.sqrt(x * x + 1.0)
        return x

    fast, x = lt.jit(iterated), np.linspace(0.0, 1.0, 9_000)
    np.testing.assert_allclose(iterated(x, 250), fast(x, 250), rtol=1e-12)

    assert fast.counters["compiles"] == 1


@pytest.mark.usefixtures("low_limit")
def test_programs_that_are_traced_or_differentiated_are_not_limited():
    x = np.linspace(0.0, 1.0, 10)
    program = lt.trace(smoothed, x.copy(), 40)

    assert len(program) > 512
    assert smoothed(x.copy(), 40) == pytest.approx(lt.compile(program)(x.copy(), 40), rel=1e-12)
    assert lt.jit(lt.grad(lambda x: smoothed(x.copy(), 40)))(x).shape == (10,)


@pytest.mark.usefixtures("low_limit")
def test_the_limit_ends_with_the_recording():
    x = np.linspace(0.0, 1.0, 10)
    lt.jit(smoothed)(x.copy(), 40)

    assert len(lt.trace(smoothed, x.copy(), 40)) > 512

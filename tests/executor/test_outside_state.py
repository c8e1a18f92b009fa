"""What a jitted function changes outside of itself is not repeated by plans."""

import copy
import functools
import inspect
import itertools
from collections import Counter, deque
from types import ModuleType

import numpy as np
import pytest

import letir as lt
from letir import jit
from letir.testing import assert_same

ONES = np.ones(2)
COUNT = itertools.count(1)


def multiples():
    number = 0
    while True:
        number += 1
        yield number


class Numbers:
    def __init__(self):
        self.last = 0

    def __iter__(self):
        return self

    def __next__(self):
        self.last += 1
        return self.last


def scaled_by(iterator):
    return lambda x: x * next(iterator)


def first_elements(f, calls=4):
    return [float(f(ONES)[0]) for _ in range(calls)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: itertools.count(1),
        lambda: iter([1, 2, 3, 4]),
        lambda: iter(range(1, 9)),
        lambda: map(abs, itertools.count(1)),
        lambda: itertools.cycle([1, 2, 3]),
        lambda: (n for n in range(1, 9)),
        multiples,
        Numbers,
    ],
)
def test_an_iterator_of_a_closure_moves_on(make):
    assert first_elements(lt.jit(scaled_by(make()))) == first_elements(scaled_by(make()))


def test_a_global_iterator_moves_on_through_a_helper():
    def helper(x):
        return x * next(COUNT)

    first, *others = first_elements(lt.jit(lambda x: helper(x) + 0.0))

    assert others == [first + 1, first + 2, first + 3]


def test_an_iterator_of_an_object_moves_on():
    class Layer:
        def __init__(self):
            self.numbers = itertools.count(1)

        def forward(self, x):
            return x * next(self.numbers)

    assert first_elements(lt.jit(Layer().forward)) == [1, 2, 3, 4]


def test_a_loop_over_an_iterator_outside_moves_on():
    numbers = itertools.count(1)
    f = lt.jit(lambda x: sum(a * n for a, n in zip(x, numbers, strict=False)))

    assert [float(f(ONES)) for _ in range(2)] == [3.0, 7.0]


def test_values_kept_next_to_an_iterator_are_numbers():
    names, kept = itertools.count(1), {}

    def f(x):
        kept[next(names)] = x[0] * 2
        return sum(kept.values())

    jitted = lt.jit(f)

    assert [2.0, 6.0, 12.0] == [jitted(k * ONES) for k in (1, 2, 3)]
    assert {1: 2.0, 2: 4.0, 3: 6.0} == kept
    assert {np.float64} == set(map(type, kept.values()))


def test_a_first_call_that_raises_after_it_has_taken_a_value():
    numbers, kept = itertools.count(1), []

    def f(x):
        kept.append(x[0] * next(numbers))
        if x[0] < 0:
            raise ValueError("negative")
        return sum(kept)

    jitted = lt.jit(f)

    with pytest.raises(ValueError, match="negative"):
        jitted(-ONES)
    with pytest.raises(ValueError, match="negative"):
        jitted(-2 * ONES)
    assert -2.0 == jitted(ONES)
    assert [-1.0, -4.0, 3.0] == kept
    assert {np.float64} == set(map(type, kept))


def test_a_function_with_an_iterator_that_it_does_not_use_is_compiled():
    class Loader:
        def __init__(self):
            self.batches = iter([1, 2, 3])

        def scaled(self, x):
            return x * 2.0

    loader = Loader()
    jitted = lt.jit(lambda x: loader.scaled(x) + 1.0)

    for _ in range(3):
        assert_same(3 * ONES, jitted(ONES))
    assert next(loader.batches) == jitted.counters["compiles"] == 1


def running_mean():
    total, n, mean = 0.0, 0, None
    while True:
        total = total + (yield mean)
        n += 1
        mean = total / n


def test_a_generator_takes_what_a_function_sends_to_it():
    ours, numpys = running_mean(), running_mean()
    next(ours), next(numpys)
    jitted, sends = lt.jit(ours.send), lt.jit(lambda x: ours.send(x) * 2)

    for x in (1.0, 2.0, 6.0):
        assert_same(numpys.send(x), jitted(x))
        assert_same(numpys.send(x) * 2, sends(x))


TABLES: dict = {}


def from_table(x, n):
    if n not in TABLES:
        TABLES[n] = *np.polynomial.legendre.leggauss(n), [np.hanning(n)], np.zeros(n)
        TABLES[n][3][0] = 1.0
    points, weights, (window,), first = TABLES[n]
    return (weights * window * np.exp(x * points)).sum() + first[0]


@pytest.mark.parametrize("record", [lt.trace, lambda f, x, n: lt.grad(f)(x, n)])
def test_a_table_that_a_recording_has_filled_is_read_by_jit(record):
    TABLES.clear()
    expected = from_table(0.5, 3)
    TABLES.clear()
    record(from_table, 0.5, 3)
    fast = lt.jit(from_table)

    for _ in range(3):
        np.testing.assert_allclose(fast(0.5, 3), expected, rtol=1e-14)


def test_iterators_that_the_function_makes_leave_it_compiled():
    f = lt.jit(lambda x: x * next(itertools.count(3)) + next(iter(x)))
    for _ in range(3):
        np.testing.assert_array_equal(f(ONES), [4.0, 4.0])

    assert f.counters["compiles"] == 1
    assert f.counters["hits"] == 2


# ---- variables, attributes and containers ----


class State:
    """What the functions below change."""

    shared = 0

    def __init__(self):
        self.n, self.total, self.log, self.counts = 0, 0.0, [], {}
        self.queue, self.array = deque([1, 2, 3]), np.zeros(2)

    def number(self, x):
        self.n += 1
        return x * self.n

    def traced_number(self, x):
        self.total = self.total + x.sum()
        return self.total * x

    def array_in_place(self, x):
        self.array += 1
        return x * self.array

    def item(self, x):
        self.counts["calls"] = self.counts.get("calls", 0) + 1
        return x * self.counts["calls"]

    def length(self, x):
        self.log.append(x.sum())
        return x * len(self.log)

    def rotation(self, x):
        self.queue.rotate()
        return x * self.queue[0]

    def of_class(self, x):
        State.shared += 1
        return x * State.shared

    def of_function(self, x):
        vars(sum_of_calls)["calls"] = vars(sum_of_calls).get("calls", 0) + 1
        return x * vars(sum_of_calls)["calls"]


def sum_of_calls():
    """Keeps a number as its attribute."""


CHANGES = [name for name, value in vars(State).items() if inspect.isfunction(value)][1:]


@pytest.mark.parametrize("name", CHANGES)
def test_a_function_that_reads_what_it_changes_runs_as_python(name):
    def called():
        State.shared = 0
        vars(sum_of_calls).clear()
        change = getattr(State(), name)
        return lambda x: change(x) + len(sum_of_calls.__name__)  # reads the attributes of both

    x = np.array([1.0, 2.0])
    plain = called()
    expected = [plain(x), plain(2 * x), plain(x), plain(3 * x)]
    jitted = jit(called())

    found = [jitted(x), jitted(2 * x), jitted(x), jitted(3 * x)]

    assert_same(expected, found)


def test_a_variable_of_an_enclosing_function_and_its_gradient():
    def called():
        n = 0

        def f(x):
            nonlocal n
            n += 1
            return n * (x * x).sum()

        return f

    x = np.array([1.0, 2.0])
    jitted = jit(lt.grad(called()))

    assert_same([2 * x, 4 * x, 6 * x], [jitted(x) for _ in range(3)])


def test_a_global_of_another_module():
    module = ModuleType("counted")
    exec("n = 0\ndef advance():\n    global n\n    n += 1\n    return n", vars(module))
    space = {"module": module}
    exec("def f(x):\n    return x * module.advance() + module.n", space)

    assert_same([2 * ONES, 4 * ONES, 6 * ONES], [*map(jit(space["f"]), [ONES] * 3)])


def test_state_that_is_only_written_changes_in_each_call():
    calls, log = [], State()

    @jit
    def f(x):
        calls.append(1)
        log.n += 1
        return x * 2

    for _ in range(3):
        assert_same(2 * np.ones(2), f(np.ones(2)))
    assert ([1] * 3, 3) == (calls, log.n)
    assert f.counters["compiles"] == 0


class Layer:
    """It keeps its input, as layers with a backward pass of their own do."""

    def __init__(self):
        self.weights, self.input = np.eye(2), None

    def forward(self, x):
        self.input = x
        return x @ self.weights

    def backward(self, ct):
        return np.outer(self.input, ct)


def test_computed_values_in_attributes_are_those_of_the_last_call():
    layer = Layer()
    forward = jit(lambda x: layer.forward(x) + 0.0)

    for k in range(4):
        x = np.array([k, 1.0])
        assert_same(x, forward(x))
        assert_same(x, layer.input)
        assert_same(np.outer(x, ONES), layer.backward(ONES))


def test_computed_values_in_dicts_globals_and_queues_are_those_of_the_last_call():
    last = {}
    latest = deque([None], maxlen=1)
    space = {"last": last, "latest": latest}
    exec(
        "found = None\n"
        "def f(x):\n"
        "    global found\n"
        "    found, last['x'] = x * 3, [x + 1]\n"
        "    latest.append(x)\n"
        "    return x",
        space,
    )
    f = jit(space["f"])

    for k in range(4):
        x = np.array([k, 1.0])
        assert_same(x, f(x))
        assert_same((x * 3, [x + 1], x), (space["found"], last["x"], latest[0]))


def test_an_array_that_is_kept_from_the_first_call_has_a_plan():
    table = {}

    @jit
    def f(x):
        if "sines" not in table:
            table["sines"] = np.sin(np.arange(3.0))
        return x * table["sines"]

    for _ in range(4):
        assert_same(np.sin(np.arange(3.0)), f(np.ones(3)))
    assert f.counters["compiles"] == 1


@pytest.mark.parametrize("entry", [lambda x: x, lambda x: {"loss": x.sum(), "step": (1, x)}])
def test_a_list_of_computed_values_grows_in_each_call(entry):
    log, last = [], deque(maxlen=2)

    @jit
    def f(x):
        log.append(entry(x * 2))
        last.append(x[0])
        return x + 1

    for n in range(4):
        assert_same(ONES * n + 1, f(ONES * n))
    assert_same([entry(ONES * n * 2) for n in range(4)], log)
    assert_same([np.float64(2), np.float64(3)], list(last))


class Measured(np.ndarray):
    """A user's class of arrays."""


@pytest.mark.parametrize(
    "kept",
    [np.ma.masked_array([1.0, 2.0], [0, 1]), ONES.view(Measured), np.rec.fromarrays([ONES])],
    ids=["masked", "user", "records"],
)
def test_arrays_of_other_classes_may_be_state(kept):
    compiled = jit(lambda x: (kept.shape, x + 1)[1])

    for x in (ONES, 2 * ONES):
        assert_same(x + 1, compiled(x))


def test_a_written_array_of_another_class_is_put_back_before_python_runs():
    total = np.zeros(2).view(Measured)

    @jit
    def f(x):
        total[0] += x[0]
        return x * 2

    for n in range(3):
        f(ONES)
        assert [n + 1.0, 0.0] == total.tolist()


class Machine:
    """Objects whose first calls give the same program, and later ones another."""

    def __init__(self):
        self.n, self.mode, self.sums = 0, "idle", np.zeros(3)
        self.__class__.calls = 0

    def third_call(self, x):
        self.n += 1
        return x if self.n < 3 else -x

    def every_other(self, x):
        if self.mode == "idle":
            self.mode = "run"
            return 0 * x
        self.n += 1
        if self.n % 2 == 0:
            self.mode = "idle"
        return 2 * x

    def growing_rate(self, x):
        Machine.calls += 1
        return x * (0.5 if Machine.calls > 4 else 1.0)

    def ring(self, x):
        self.sums[self.n % 3] = x.sum()
        self.n += 1
        return self.sums.mean() * x

    def running(self, x):
        self.n += 1
        self.sums[:2] += (x - self.sums[:2]) / self.n
        return self.sums.copy()

    def partly(self, x):
        self.sums[0] += 1
        self.n += 1
        if x[0] > 0:
            self.sums[1:] += x
        return self.sums * self.n


@pytest.mark.parametrize(
    "name", [name for name, value in vars(Machine).items() if inspect.isfunction(value)][1:]
)
def test_state_that_later_calls_read_is_not_frozen(name):
    """Also arrays outside of the function, into which a plan cannot write."""

    def called(transform):
        machine = Machine()
        step = transform(lambda x: getattr(machine, name)(x))  # noqa: PLW0108  not a method of jit
        found = [step(np.array([n - 2.0, 1.0])) for n in range(7)]
        return found, vars(machine)

    assert_same(called(lambda f: f), called(jit))


def test_a_counter_that_nothing_reads_counts_the_calls():
    log = State()

    @jit
    def f(x):
        log.n += 1
        log.total = 0.5 + log.n
        return x * 2

    for n in range(4):
        assert_same(2.0 * n, f(float(n)))
    assert (log.n, log.total, f.counters["compiles"]) == (4, 4.5, 0)


def test_changes_of_large_arrays_outside_cannot_be_set_back():
    table, counts = np.zeros(1 << 18), np.zeros(1 << 18)

    @jit
    def stores(x):
        table[0] = x
        return x

    @jit
    def counts_and_stores(x):
        counts[0] += 1
        table[0] = x
        return x

    assert [stores(x) for x in (1.0, 2.0)] == [1.0, 2.0] and table[0] == 2.0
    with pytest.raises(lt.TraceError, match="ordinary array"):
        counts_and_stores(1.0)


@pytest.mark.parametrize("size", [10, 1 << 17, (1 << 17) + 1, 1 << 18])
def test_a_change_of_one_element_of_a_large_array_happens_in_each_call(size):
    counts = np.zeros(size)

    def f(x):
        counts[size // 2 + 1] += 1
        return x * counts[size // 2 : size // 2 + 3].sum()

    jitted = jit(f)

    assert [1.0, 2.0, 3.0, 4.0, 5.0] == [jitted(x) for x in np.ones(5)]
    assert counts.sum() == 5


def test_a_change_of_one_object_in_a_large_array_happens_in_each_call():
    names = np.full(2000, "a", object)

    @jit
    def f(x, name="b"):
        names[1234] = names[1234] + name
        return x

    for x in np.ones(3):
        f(x)

    assert names[1234] == "abbb"


def test_an_array_changed_for_other_sizes_changes_once_in_each_call():
    counts = np.zeros(1 << 18)

    @jit
    def f(x):
        counts[1001] += len(x)
        return x * 2

    for n in (2, 3, 4, 5):
        f(np.ones(n))

    assert counts[1001] == 14


def test_a_function_that_fills_a_cache_gets_a_plan_afterwards():
    cache = {}

    @jit
    def f(x):
        if "table" not in cache:
            cache["table"] = np.arange(2.0)
        return x * cache["table"]

    for _ in range(3):
        assert_same(np.array([0.0, 1.0]), f(np.ones(2)))
    assert (1, 1) == (f.counters["compiles"], f.counters["hits"])


def test_explain_shows_a_plan_of_a_function_that_runs_as_python():
    change = State().number
    f = jit(lambda x: change(x) + 0.0)

    f(np.ones(2)), f(np.ones(2))

    assert "run the Python function" in lt.explain(f, np.ones(2)).note


# ---- lists and dicts among the arguments ----


def changed_item(state, x):
    state["n"] = state["n"] + 1
    return state["n"] * x


def longer_list(values, x):
    values.append(x.sum())
    return len(values) * x


def sorted_list(values, x):
    values.sort()
    return values[0] * x


@pytest.mark.parametrize(
    ("f", "given"),
    [(changed_item, {"n": 0}), (longer_list, [1.0]), (sorted_list, [3.0, 1.0])],
)
def test_a_list_or_dict_that_the_function_changes_is_changed(f, given):
    plain, changed, jitted = copy.copy(given), copy.copy(given), jit(f)

    for x in (ONES, 2 * ONES, ONES):
        assert_same(f(plain, x), jitted(changed, x))
        assert plain == changed


def test_a_counter_next_to_a_changed_list_counts_each_call_once():
    calls = []

    @jit
    def f(values):
        calls.append(len(values))
        values.append(0.0)
        return values[0] * 2

    values = [1.0]
    f(values), f(values)

    assert ([1, 2], [1.0, 0.0, 0.0]) == (calls, values)


def test_an_array_in_a_dict_that_is_changed_in_place_keeps_its_plan():
    @jit
    def f(state):
        state["w"] -= 1
        return state["w"].sum()

    state = {"w": np.zeros(2)}

    assert [-2.0, -4.0] == [f(state), f(state)]
    assert f.counters["compiles"] == 1


def test_a_global_that_still_holds_a_traced_value_is_no_state():
    """A trace that is over has left it there; the function replaces it in every call."""
    kept = {}

    def f(x):
        kept["buffer"] = np.zeros(3)
        kept["buffer"][0] = x[0]
        return kept["buffer"] + x

    lt.trace(f, np.ones(3))
    fast = lt.jit(f)

    for i in range(3):
        assert_same(np.array([2.0, 1.0, 1.0]) * i, fast(i * np.ones(3)))


def test_a_function_that_writes_numbers_into_an_array_outside_of_it_is_called_as_python():
    table = np.array([0.5, -0.25])

    def bounded(x):
        table[0] = 1.0
        return x + table

    jitted = lt.jit(bounded)
    for k in range(4):
        table[0] = 0.5
        assert_same(k + np.array([1.0, -0.25]), jitted(np.full(2, float(k))))
        assert table[0] == 1.0


def test_an_array_that_the_first_call_fills_leaves_a_plan():
    table, ready = np.zeros(2), []

    def filled(x):
        if not ready:
            table[:] = 3.0
            ready.append(True)
        return x + table

    jitted = lt.jit(filled)
    for k in range(3):
        assert_same(np.full(2, 3.0 + k), jitted(np.full(2, float(k))))
    assert len(jitted.debug_state().plans) == 1


# ---- sizes that become symbols: the function is recorded twice for them ----


def test_a_list_that_a_function_reads_grows_once_for_a_new_size():
    seen = []

    def f(x, k):
        try:
            return x.sum() / x[k]
        except IndexError:
            seen.append("too large")
            return x.sum() * len(seen)

    jitted = jit(f)
    calls = [(3, 0), (3, 0), (4, 1), (4, 9), (5, 9), (5, 9)]
    expected = [3.0, 3.0, 4.0, 4.0, 10.0, 15.0]

    assert expected == [jitted(np.ones(n), k) for n, k in calls]
    assert ["too large"] * 3 == seen


def test_a_variable_of_a_closure_counts_once_for_a_new_size():
    def make():
        count, best = 0, -np.inf

        def step(value):
            nonlocal count, best
            count += 1
            best = max(best, float(value))
            return best * count

        return step

    plain, step = make(), make()
    jitted = jit(lambda x: step(x[0]) + x.sum())

    for x in (ONES, np.arange(5.0), np.arange(7.0), ONES):
        assert_same(plain(x[0]) + x.sum(), jitted(x))


def test_an_iterator_outside_moves_once_for_a_new_size():
    signs = iter([1.0, -1.0, 2.0, 3.0])
    jitted = jit(lambda x: x * next(signs, 0.0))

    results = [jitted(np.ones(n)).tolist()[0] for n in (2, 3, 4, 4, 2)]

    assert [1.0, -1.0, 2.0, 3.0, 0.0] == results


def test_settings_of_numpy_that_a_function_leaves_changed_are_changed_in_each_call():
    def quiet_exponential(x):
        np.seterr(over="ignore")
        np.set_printoptions(precision=3)
        return np.exp(x * 1000.0)

    fast, error_state, options = lt.jit(quiet_exponential), np.geterr(), np.get_printoptions()
    try:
        for _ in range(15):
            np.seterr(over="warn")
            np.set_printoptions(precision=8)
            fast(np.ones(2))
            assert np.geterr()["over"] == "ignore"
            assert np.get_printoptions()["precision"] == 3
    finally:
        np.seterr(**error_state)
        np.set_printoptions(**options)


def test_settings_of_numpy_that_a_function_restores_leave_it_a_plan():
    def quotient(x):
        before = np.seterr(divide="ignore")
        result = 1.0 / x
        np.seterr(**before)
        return result

    fast = lt.jit(quotient)
    for _ in range(3):
        fast(np.zeros(2))
    assert fast.counters["compiles"] == 1
    assert fast.counters["hits"] == 2


def test_a_counter_that_a_function_with_a_cache_fills_counts_each_key_once():
    counts, made = Counter(), []

    @functools.cache
    def table(n):
        counts[n] += 1
        made.append(n)
        return np.arange(n) ** 2.0

    fast = jit(lambda x, n: x * table(n).sum(), static_argnums=1)
    for n in (3, 4, 3, 5, 4, 3):
        assert_same(np.ones(2) * (np.arange(n) ** 2.0).sum(), fast(np.ones(2), n))
    assert counts == {3: 1, 4: 1, 5: 1}
    assert made == [3, 4, 5]

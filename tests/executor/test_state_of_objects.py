"""``jit`` of methods that change attributes other than arrays, and generators made on first use."""

import functools
from collections import OrderedDict, defaultdict, deque

import numpy as np
import pytest

from letir import jit
from letir.testing import assert_same

X = np.array([1.0, 2.0])


class Holder:
    """An object with attributes of several kinds."""

    generator = None
    shared = None

    def __init__(self):
        self.total, self.count, self.mean = np.zeros(3), 0, 0.0
        self.log, self.named, self.recent = [], defaultdict(int), deque(maxlen=2)
        self.previous, self.mode = None, "a"

    def counter(self, x):
        self.count += 1
        self.total += x
        return self.total / self.count

    def logged(self, x):
        self.log.append(x.sum())
        self.named["calls"] += 1
        return x * sum(self.log) + self.named["calls"]

    def window(self, x):
        self.recent.append(x)
        return sum(self.recent)

    def difference(self, x):
        before, self.previous = self.previous, x * 1
        return x if before is None else x - before

    def smoothed(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.mean()
        self.mode = "b" if self.mode == "a" else "a"
        return x - self.mean if self.mode == "a" else x

    def noisy(self, x):
        if self.generator is None:
            self.generator = np.random.default_rng(0)
        return x + self.generator.normal(size=3)

    def noisy_of_class(self, x):
        if Holder.shared is None:
            Holder.shared = np.random.RandomState(0)
        return x + Holder.shared.randn(3)

    @functools.cached_property
    def cached(self):
        return np.random.default_rng(7)

    def noisy_of_property(self, x):
        return x * self.cached.random()


class Empty:
    """An object without attributes at first."""

    generator = None

    def noisy(self, x):
        if self.generator is None:
            self.generator = np.random.default_rng(2)
        return x + self.generator.normal(size=3)


class Outer:
    """Holds an object without attributes."""

    def __init__(self):
        self.inner = Empty()

    def noisy(self, x):
        return self.inner.noisy(x) * 2


METHODS = [
    *(Holder.counter, Holder.logged, Holder.window, Holder.difference, Holder.smoothed),
    *(Holder.noisy, Holder.noisy_of_class, Holder.noisy_of_property, Empty.noisy, Outer.noisy),
]


def results_of(f):
    """The results of five calls."""
    Holder.shared = None
    return [f(np.random.default_rng(seed % 3).normal(size=3)) for seed in range(5)]


def attributes_of(x):
    """The attributes as text, without generators."""
    return {name: str(value) for name, value in vars(x).items() if "at 0x" not in str(value)}


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.__qualname__)
def test_a_method_changes_its_object_in_each_call(method):
    kind = globals()[method.__qualname__.partition(".")[0]]
    plain, fast = kind(), kind()

    expected = results_of(getattr(plain, method.__name__))
    actual = results_of(jit(getattr(fast, method.__name__)))

    np.testing.assert_array_equal(expected, actual)
    assert attributes_of(plain) == attributes_of(fast)


# ---- generators of functions ----


def with_cache():
    @functools.lru_cache
    def generator():
        return np.random.default_rng(7)

    return lambda x: x + generator().normal()


def with_spawned_seeds():
    seeds = np.random.SeedSequence(1)
    return lambda x: x + np.random.default_rng(seeds.spawn(1)[0]).normal()


def with_state_set_back():
    generator = np.random.default_rng(1)

    def f(x):
        state = generator.bit_generator.state
        first = generator.normal()
        generator.bit_generator.state = state
        return x + first - generator.normal()

    return f


def with_state_read():
    generator = np.random.default_rng(1)

    def f(x):
        word = generator.bit_generator.state["state"]["state"] % 1000
        return x * word + generator.normal()

    return f


def with_object_in_a_circle():
    kept = {}

    class Source:
        def __init__(self):
            self.itself, self.generator = self, np.random.default_rng(3)

    def f(x):
        if "source" not in kept:
            kept["source"] = Source()
        return x + kept["source"].generator.random() + Source().generator.random()

    return f


MAKERS = [
    *(with_cache, with_spawned_seeds, with_state_set_back, with_state_read),
    with_object_in_a_circle,
]


@pytest.mark.parametrize("make", MAKERS, ids=lambda m: m.__name__)
def test_a_generator_moves_on_wherever_it_is_kept(make):
    expected = results_of(make())
    actual = results_of(jit(make()))

    np.testing.assert_array_equal(expected, actual)


def test_a_generator_made_again_in_each_call_leaves_the_function_compiled():
    def f(x):
        return x + np.random.default_rng(4).normal()

    fast = jit(f)
    np.testing.assert_array_equal(results_of(f), results_of(fast))

    assert fast.counters["hits"] == 4


class Layer:
    """A layer with an attribute that is a function."""

    def __init__(self, make):
        self.w = np.array([2.0, 3.0])
        self.f = make(self)

    def apply(self, x):
        return self.f(x) + 1


def test_the_arrays_of_a_partial_in_an_attribute_are_arguments():
    layer, fast = Layer(lambda layer: functools.partial(np.multiply, layer.w)), jit(Layer.apply)

    for _ in range(12):
        layer.w += 1
        assert_same(layer.w * X + 1, fast(layer, X))
    assert fast.__letir_executor__.method.counters["compiles"] == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda layer: lambda x: layer.w * x,
        lambda layer: lambda x, w=layer.w: w * x,
        lambda layer: functools.partial(lambda g, x: g(x), lambda x: layer.w * x),
    ],
    ids=["object", "default", "within a partial"],
)
def test_with_an_attribute_that_uses_an_array_the_method_runs_as_python(make):
    layer, fast = Layer(make), jit(Layer.apply)

    with pytest.warns(RuntimeWarning, match="which may change between calls"):
        assert_same(layer.w * X + 1, fast(layer, X))
    for _ in range(12):
        layer.w += 1
        assert_same(layer.w * X + 1, fast(layer, X))


def test_functions_in_attributes_that_use_numbers_get_a_plan():
    def leaky(slope):
        return lambda x: np.where(x > 0, x, slope * x)

    fast = jit(Layer.apply)
    for slope in (0.1, 0.2, 0.1):
        layer = Layer(lambda _, slope=slope: leaky(slope))
        assert_same(leaky(slope)(-X) + 1, fast(layer, -X))
    assert fast.__letir_executor__.method.counters["compiles"] == 2


class HoldsExecutors(Layer):
    """An object whose attributes are jitted methods and partials of itself."""

    def __init__(self):
        super().__init__(lambda layer: np.tanh)
        self.compiled = jit(self.apply)
        self.scaled = jit(functools.partial(np.multiply, self.w))

    def apply(self, x):
        return self.w * x

    def both(self, x):
        return self.compiled(x) + self.scaled(x)


def test_jitted_methods_in_attributes_see_the_arrays_of_the_object():
    layer = HoldsExecutors()
    fast = jit(layer.both)

    for _ in range(4):
        layer.w += 1
        assert_same(layer.w * X, layer.compiled(X))
        assert_same(layer.w * X * 2, fast(X))
    assert (fast.counters["compiles"], layer.compiled.counters["compiles"]) == (1, 1)


class Shapeshifter:
    """An object whose methods change which attributes it has, or share containers among them."""

    def __init__(self):
        self.w, self.pair, self.same, self.scratch = np.ones(2), None, 0.5, np.zeros(2)
        self.recent = OrderedDict(a=np.zeros(2), b=np.ones(2))

    def numbers_become_containers(self, x):
        self.pair, self.same = (x, self.w * x), {"x": x}
        return self.pair[1]

    def shares_a_list(self, x):
        values = [x * 2]
        self.pair, self.same = values, values
        return values[0]

    def deletes(self, x):
        if hasattr(self, "scratch"):
            del self.scratch
        return x * 2

    def deletes_an_item(self, x):
        self.recent.pop("a", None)
        return self.recent["b"] * x

    def reorders(self, x):
        self.recent.move_to_end(next(iter(self.recent)))
        return x * 2


@pytest.mark.parametrize("name", [n for n in vars(Shapeshifter) if not n.startswith("_")])
@pytest.mark.parametrize("is_method", [True, False])
def test_a_method_changes_which_attributes_its_object_has(name, is_method):
    method = vars(Shapeshifter)[name]
    ours, numpys = Shapeshifter(), Shapeshifter()
    kind = type("Fast", (Shapeshifter,), {name: jit(method)}) if is_method else Shapeshifter
    ours.__class__ = kind
    call = kind.__dict__[name] if is_method else jit(method)
    for _ in range(12):
        assert_same(method(numpys, X), call(ours, X))
        assert sorted(vars(numpys)) == sorted(vars(ours))
        assert_same([*numpys.recent.items()], [*ours.recent.items()])
        assert_same((numpys.pair, numpys.same), (ours.pair, ours.same))
        assert (numpys.pair is numpys.same) == (ours.pair is ours.same)

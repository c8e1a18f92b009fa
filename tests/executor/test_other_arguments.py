"""``jit`` called with functions, objects and other values that are not arrays [F1]."""

import functools
import warnings
from decimal import Decimal

import numpy as np
import pytest

import letir as lt
from letir.ast import LATE_BOUND
from letir.executor.frequent_calls import python_calls
from letir.testing import assert_same

X = np.array([1.0, 2.0])


def apply_twice(f, x):
    return f(f(x))


def multiply_by(factor):
    return lambda x: factor * x


class Layer:
    def __init__(self):
        self.w = np.array([2.0, 3.0])
        self.steps = 0

    def apply(self, x):
        return self.w * x


def test_lambdas_of_one_line_with_equal_captured_values_share_a_plan():
    fast = lt.jit(apply_twice)

    for factor in (2.0, 2.0, 3.0, 2, 3.0):
        assert_same(factor * (factor * X), fast(multiply_by(factor), X))
    assert fast.counters["compiles"] == 3  # 2 and 2.0 give results of other types


def test_a_changed_captured_variable_is_seen():
    factor = 2.0

    def scale(x):
        return factor * x

    fast = lt.jit(apply_twice)
    assert_same(4 * X, fast(scale, X))
    factor = 3.0
    assert_same(9 * X, fast(scale, X))


def test_functions_of_equal_code_share_a_plan_only_while_their_globals_are_the_same():
    fast, names = lt.jit(apply_twice), {}

    for factor in (2.0, 2.0, 3.0, 2.0):  # a new function each time, as in a loop of a script
        exec(f"factor = {factor}; scale = lambda x: (lambda y: factor * y)(x)", names)
        assert_same(factor * (factor * X), fast(names["scale"], X))
    assert fast.counters["compiles"] <= 4

    names["factor"] = 5.0
    assert_same(25 * X, fast(names["scale"], X))

    same = [lambda x: -x for _ in range(4)]
    compiles = fast.counters["compiles"]
    for f in same:
        assert_same(X, fast(f, X))
    assert fast.counters["compiles"] == compiles + 1


W = np.ones(2)


def test_a_global_array_of_a_function_argument_is_read_in_each_call():
    fast = lt.jit(apply_twice)
    with pytest.warns(RuntimeWarning, match="uses an object of type ndarray"):
        fast(lambda x: W * x, X)
    for _ in range(12):
        W[:] += 1
        assert_same(W * (W * X), fast(lambda x: W * x, X))


def test_functions_that_capture_each_other_can_be_compared():
    def even(n, x):
        return x if n == 0 else odd(n - 1, x)

    def odd(n, x):
        return -x if n == 0 else even(n - 1, x)

    assert_same(-X, lt.jit(lambda f, x: f(3, x))(even, X))


@pytest.mark.parametrize(
    "bound", ["closure", "default", "method", "partial", "jitted method", "jitted partial"]
)
def test_arrays_behind_a_function_are_seen_when_they_change(bound):
    layer = Layer()
    w = layer.w
    f = {
        "closure": lambda x: w * x,
        "default": lambda x, w=w: w * x,
        "method": layer.apply,
        "partial": functools.partial(np.multiply, w),
        "jitted method": lt.jit(layer.apply),
        "jitted partial": lt.jit(functools.partial(np.multiply, w)),
    }[bound]
    fast = lt.jit(apply_twice)

    with pytest.warns(RuntimeWarning, match="as Python, without a plan"):
        assert_same(w * (w * X), fast(f, X))
    for _ in range(20):
        w += 1
        assert_same(w * (w * X), fast(f, X))


def test_a_jitted_function_is_an_argument():
    inner = lt.jit(lambda x: np.sin(x) * 2)
    fast = lt.jit(apply_twice)

    for x in (X, 2 * X, X):
        assert_same(inner(inner(x)), fast(inner, x))
    assert fast.counters["compiles"] == 1


def test_the_arrays_of_an_object_that_is_the_first_argument_are_arguments():
    def step(layer, x):
        layer.w = layer.w * 0.5
        return layer.w + x

    layer, plain, fast = Layer(), Layer(), lt.jit(step)
    for _ in range(12):
        assert_same(step(plain, X), fast(layer, X))
        assert_same(plain.w, layer.w)
    layer.w[0] = plain.w[0] = 7.0
    assert_same(step(plain, X), fast(layer, X))


def test_counters_of_an_object_advance():
    def count(layer, x):
        layer.steps += 1
        return x * layer.steps

    layer, fast = Layer(), lt.jit(count)
    for n in range(1, 13):
        assert_same(X * n, fast(layer, X))


OTHERS = {
    "an object": (lambda x, layer: layer.apply(x), Layer()),
    "a set": (lambda x, names: x * len(names), {"a", "b"}),
    "an array of texts": (lambda x, names: x[names == "a"], np.array(["a", "b"])),
    "an array of objects": (lambda x, items: x * len(items), np.array([None, "a"])),
    "a masked array": (lambda x, mask: x * mask.sum(), np.ma.array([1.0, 2.0], mask=[0, 1])),
}


@pytest.mark.parametrize(("f", "value"), OTHERS.values(), ids=OTHERS)
def test_with_other_values_the_function_runs_as_python(f, value):
    fast = lt.jit(f)

    with pytest.warns(RuntimeWarning, match="as Python, without a plan: argument"):
        assert_same(f(X, value), fast(X, value))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_same(f(2 * X, value), fast(2 * X, value))


def collect(found, word, n):
    if n == 0:
        return word * 2.0
    found.add(f"{word}{n}")
    return len(found)


@pytest.mark.filterwarnings("ignore:jit calls collect as Python")
@pytest.mark.parametrize("has_plan", [False, True])
def test_refused_arguments_of_ever_new_types_end_the_search_for_plans(has_plan):
    fast, found, expected = lt.jit(collect), set(), set()
    if has_plan:
        fast(0.0, 1.0, 0)

    for n in range(1, 400):
        assert collect(expected, str(n), n) == fast(found, str(n), n)
    assert expected == found
    assert fast.__letir_executor__.runs_python is not has_plan
    assert fast.counters["invocations"] == 399 + has_plan
    assert fast(0.0, 4.0, 0) == 8.0
    assert fast.counters["hits"] == has_plan


def test_an_error_of_python_about_a_static_argument_names_the_argument():
    with pytest.raises(lt.DTypeError, match=r"where what is \{1\} of type set"):
        lt.jit(lambda x, what: x * what)(X, {1})


def test_errors_that_the_function_raises_stay_its_own():
    def refuse(x, what):
        raise TypeError("not this")

    with pytest.raises(TypeError, match=r"^not this$") as caught:
        lt.jit(refuse)(X, {1})
    assert type(caught.value) is TypeError


EQUAL_BUT_DIFFERENT = {
    "sets": (lambda x, s: x * next(iter(s)), frozenset([1]), frozenset([1.0]), frozenset([True])),
    "decimals": (lambda x, d: x * len(str(d)), Decimal("1.0"), Decimal("1.00")),
    "ranges": (lambda x, r: x * r.stop, range(0), range(1, 1), range(3, 3)),
    "slices": (lambda x, s: x * s.start, slice(1, 2), slice(1.0, 2), slice(True, 2)),
    "zeros": (lambda x, f: x * f(1), multiply_by(0.0), multiply_by(-0.0), multiply_by(0)),
    "captured sets": (
        lambda x, f: x * f(),
        (lambda s: lambda: max(s))(frozenset([1])),
        (lambda s: lambda: max(s))(frozenset([1.0])),
    ),
}


@pytest.mark.parametrize("name", EQUAL_BUT_DIFFERENT)
def test_values_that_are_equal_but_compute_differently_have_plans_of_their_own(name):
    f, *values = EQUAL_BUT_DIFFERENT[name]
    fast, x = lt.jit(f), np.arange(3)

    for value in values * 3:
        assert_same(f(x, value), fast(x, value))


def write_doubled(x, y):
    y[:] = x * 2
    return x + y


@pytest.mark.parametrize("kinds", [("same", "other"), ("other", "same"), ("other", "reversed")])
def test_arguments_that_share_memory_are_written_as_python_writes_them(kinds):
    """A program is recorded for arrays that do not overlap; then jit calls the function."""
    second = {"same": lambda x: x, "other": np.ones_like, "reversed": lambda x: x[::-1]}
    fast = lt.jit(write_doubled)

    for n in range(40):  # calls by spec, by key and quick calls
        wanted, x = np.arange(4.0) + n, np.arange(4.0) + n
        kind = kinds[n % 2]
        assert_same(write_doubled(wanted, second[kind](wanted)), fast(x, second[kind](x)))
        assert_same(wanted, x)


class Tree:
    def __init__(self, value, left=None, right=None):
        self.value, self.left, self.right = value, left, right


def test_a_recursion_over_objects_makes_few_tests_of_arguments(monkeypatch):
    made = []
    of_plans = python_calls.python_kinds

    def counted(executor, args, kwargs):
        before = executor.as_python
        kinds = of_plans(executor, args, kwargs)
        made.append(kinds is not before)
        return kinds

    monkeypatch.setitem(LATE_BOUND, "python_kinds", counted)

    @lt.jit
    def values(tree, found):
        if tree is None:
            return []
        values(tree.left, found)
        found.append(tree.value)
        values(tree.right, found)
        return found

    tree = Tree(1, Tree(2, Tree(3), Tree(4)), Tree(5, Tree(6)))
    for _ in range(200):
        assert values(tree, []) == [3, 2, 4, 1, 6, 5]
    assert sum(made) <= 64


def test_a_function_goes_through_a_dict_in_its_order():
    f = lambda d: sum(n * d[key].sum() for n, key in enumerate(d, 1))  # noqa: E731
    jitted, gradient = lt.jit(f), lt.jit(lt.grad(f))
    x = np.ones(3)
    for _ in range(2):
        for _ in range(24):
            assert jitted({"a": x, "b": 2 * x}) == 15.0
            assert gradient({"a": x, "b": x})["b"].tolist() == [2.0] * 3
        for _ in range(24):
            assert jitted({"b": 2 * x, "a": x}) == 12.0
            assert gradient({"b": x, "a": x})["b"].tolist() == [1.0] * 3
    nested = lt.jit(lambda tree: f(tree[0]["in"]))
    for _ in range(12):
        assert nested([{"in": {"a": x, "b": 2 * x}}]) == 15.0
        assert nested([{"in": {"b": 2 * x, "a": x}}]) == 12.0

"""Arguments and results are pytrees; some leaves are static."""

import argparse
import collections
import dataclasses
import enum
import functools
from types import SimpleNamespace

import attrs
import numpy as np
import pytest

import letir as lt
from letir.errors import DTypeError
from letir.testing import assert_same
from tests.each_sample import in_one_test

X = np.array([1.0, 2.0, 3.0])

Point = collections.namedtuple("Point", ["x", "y"])


@attrs.frozen
class Layer:
    weights: np.ndarray
    bias: np.ndarray
    _scale: float = 1.0


@dataclasses.dataclass
class State:
    params: dict
    step: int


NESTINGS = {
    "a tuple": (X, 2.0),
    "an empty tuple": (),
    "a tuple of one": (X,),
    "a list": [X, [2.0, X]],
    "a dict": {"b": X, "a": 2.0},
    "a dict with numbers as keys": {2: X, 1: 2.0},
    "an ordered dict": collections.OrderedDict([("b", X), ("a", 2.0)]),
    "a default dict": collections.defaultdict(list, {"a": [X]}),
    "a deque": collections.deque([X, 2.0]),
    "a namedtuple": Point(X, 2.0),
    "attrs": Layer(X, X, 2.0),
    "a dataclass": State({"w": X}, 3),
    "a namespace": SimpleNamespace(w=X, n=2.0, inner=argparse.Namespace(b=[X])),
    "none": None,
    "none among others": {"a": None, "b": (X, None)},
    "all at once": {"layers": [Layer(X, X), Layer(X, 2.0)], "state": State({"w": (X,)}, 3)},
}


@in_one_test
@pytest.mark.parametrize("tree", NESTINGS.values(), ids=list(NESTINGS))
def test_arguments_and_results_nest_in_the_same_way(tree):
    f = lt.trace(lambda tree: tree, tree)

    assert_same(tree, f(tree))
    assert type(tree) is type(f(tree))


@in_one_test
@pytest.mark.parametrize("tree", NESTINGS.values(), ids=list(NESTINGS))
def test_keyword_arguments_nest_too(tree):
    f = lt.trace(lambda x, *, tree: (tree, x), X, tree=tree)

    assert_same((tree, X), f(X, tree=tree))


def test_the_function_sees_its_own_classes():
    def program(layer, point):
        assert type(layer) is Layer
        assert type(point) is Point
        return Point(layer.weights @ point.x + layer.bias[0], point.y)

    args = (Layer(X, X), Point(X, 2.0))

    assert_same(program(*args), lt.trace(program, *args)(*args))


def test_a_function_changes_its_own_copy_of_a_container():
    def program(model):
        model["w"] = model["w"] * 2.0
        model["new"] = 1.0
        return model

    model = {"w": X}
    f = lt.trace(program, model)

    assert {"w": X} == model
    assert_same({"w": 2 * X, "new": 1.0}, f({"w": X}))


def test_a_leaf_that_occurs_twice_is_two_parameters():
    """[B1]"""
    f = lt.trace(lambda pair: pair["a"] + pair["b"], {"a": X, "b": X})

    assert_same(X + 2 * X, f({"a": X, "b": 2 * X}))


def test_flat_arguments_need_no_tree():
    f = lt.trace(lambda x, y: (x, y), X, 2.0)

    assert f.in_tree is None
    assert f.out_tree is None


def test_a_tuple_of_one_result_stays_a_tuple():
    assert_same((X,), lt.trace(lambda x: (x,), X)(X))


def test_a_function_that_returns_nothing_is_a_program_without_results():
    f = lt.trace(lambda x: None, X)

    assert f(X) is None
    assert () == f.ret.args


def test_gradients_nest_as_the_arguments_do():
    layer = Layer(X, X, 2.0)
    slope = lt.grad(lambda layer: (layer.weights * layer.bias).sum() * layer._scale)(layer)

    assert_same(Layer(2 * X, 2 * X, np.float64(14.0)), slope)


def test_a_nested_argument_may_be_a_shape():
    f = lt.trace(lambda model: model["w"] * model["rate"], {"w": lt.ShapeDtype(3), "rate": 0.1})

    assert_same(X * 0.5, f({"w": X, "rate": 0.5}))


# ---- static leaves ----


@pytest.mark.parametrize("value", [True, False, "mean"])
def test_booleans_and_strings_are_static_wherever_they_are(value):
    def program(x, options):
        return 2 * x if options["value"] in (True, "mean") else x

    f = lt.trace(program, X, {"value": value})

    assert 1 == len(f.params)
    assert_same(program(X, {"value": value}), f(X, {"value": value}))


def test_a_numpy_boolean_is_an_array():
    f = lt.trace(lambda x, keep: np.where(keep, x, 0.0), X, np.True_)

    assert_same(np.zeros(3), f(X, np.False_))


class Mode(enum.Enum):
    SUM = "sum"
    MEAN = "mean"


@pytest.mark.parametrize(
    "value", [3, 2.5, Mode.MEAN, np.tanh, np.float32, frozenset("ab"), range(3)]
)
def test_hashable_values_are_static_where_they_are_marked(value):
    seen = []
    f = lt.trace(lambda x, value: seen.append(value) or x, X, value, static_argnums=1)

    assert value is seen[0]
    assert 1 == len(f.params)
    assert_same(X, f(X, value))


@pytest.mark.parametrize("value", [None, (0, 1), Point(1, 2), Layer(1, 2)])
def test_containers_are_static_where_they_are_marked(value):
    f = lt.trace(lambda x, value: x, X, value, static_argnums=1)

    assert_same(X, f(X, value))


def test_static_arguments_of_different_types_are_different():
    """1 == True == 1.0 in Python."""
    f = lt.trace(lambda x, n: x * n, X, 1, static_argnums=1)

    for other in (True, 1.0):
        with pytest.raises(DTypeError, match="the static argument 1 is part of the program"):
            f(X, other)


def test_a_static_argument_may_be_passed_by_keyword():
    f = lt.trace(lambda x, *, axis: x.sum(axis), np.ones((2, 3)), axis=1, static_argnames="axis")

    assert_same(np.array([3.0, 3.0]), f(np.ones((2, 3)), axis=1))


def test_an_option_of_trace_is_bound_by_partial():
    def program(x, *, abstract=False):
        return -x if abstract else x

    assert_same(-X, lt.trace(functools.partial(program, abstract=True), X)(X))


# ---- strings and None among results ----


def report(x):
    """A report of a fit, as users return it."""
    return {"name": "fit", "value": x.sum(), "note": None, "all": [x * 2, ("a", None)], "n": 3}


def test_strings_and_none_are_results_of_every_transform():
    program = lt.trace(report, X)

    assert repr(report(X * 2)) == repr(program(X * 2))
    assert repr(report(X)) == repr(lt.jit(report)(X)) == repr(lt.jit(report)(X))
    assert repr(("s", X * 2)) == repr(lt.vmap(lambda x: ("s", x * 2))(X))
    assert repr((X, "s")) == repr(lt.parse(lt.dumps(lt.trace(lambda x: (x, "s"), X)))(X))
    assert "text" == lt.trace(lambda x: "text", X)(X)
    assert lt.trace(lambda x: None, X)(X) is None


def test_aux_may_hold_strings_and_none():
    def f(x):
        return x.sum(), {"note": "hi", "x": x * 2, "nothing": None}

    for gradient in (lt.grad(f, has_aux=True), lt.jit(lt.grad(f, has_aux=True))):
        assert repr((np.ones(3), f(X)[1])) == repr(gradient(X))


def test_a_string_made_of_a_traced_value_without_a_value_is_refused():
    with pytest.raises(lt.TraceError, match="return the traced value itself"):
        lt.trace(lambda x: f"the sum is {x.sum()}", X, abstract=True)


def train(X, y, options):
    w = np.zeros(X.shape[1])
    for _ in range(options.epochs):
        step = 2 * X.T @ (X @ w - y)
        w = w - options.rate * (np.sign(step) if options.mode == "sign" else step)
    return w


def test_options_in_a_namespace_are_arguments():
    X, y = np.arange(6.0).reshape(3, 2), np.ones(3)
    jitted = lt.jit(train)
    program = lt.trace(train, X, y, argparse.Namespace(rate=0.1, epochs=2, mode="sign"))

    for rate, epochs, mode in ((0.1, 2, "sign"), (0.01, 2, "sign"), (0.01, 3, ""), (0.1, 2, "")):
        options = argparse.Namespace(mode=mode, rate=rate, epochs=epochs)
        assert_same(train(X, y, options), jitted(X, y, options))
        if (epochs, mode) == (2, "sign"):
            assert_same(train(X, y, options), program(X, y, options))
    with pytest.raises(lt.GuardError):
        program(X, y, argparse.Namespace(rate=0.1, epochs=3, mode="sign"))


# ---- containers that the function changes ----


def replaces(state, x):
    state["w"] = state["w"] + x
    state["n"] += 1
    return state


def test_a_value_that_a_function_stores_in_a_container_may_be_returned():
    f = lt.trace(replaces, {"w": X, "n": 1}, 2.0)

    assert_same({"w": X + 3.0, "n": 6}, f({"w": X, "n": 5}, 3.0))


@pytest.mark.parametrize(
    "function",
    [
        lambda state, x: replaces(state, x)["w"],
        lambda state, x: state.update(w=x),
        lambda state, x: state.update(new=state["w"]),
        lambda state, x: state.pop("n"),
        lambda state, x: state.pop("n") and None,
    ],
    ids=["item", "update", "new key", "pop", "pop of a number"],
)
def test_an_item_that_a_function_stores_in_a_container_is_not_silently_lost(function):
    for call in (lt.jit(function), lt.trace(function, {"w": X, "n": 1}, 2.0)):
        expected, actual = {"w": X, "n": 1}, {"w": X, "n": 1}
        assert_same(function(expected, 2.0), call(actual, 2.0))
        assert_same(expected, actual)
    square = lt.grad(lambda x, state: (function(state, x), x * x)[1])
    assert square(2.0, {"w": X, "n": 1.0}) == 4.0


# ---- dataclasses with other attributes than the arguments of __init__ ----


@dataclasses.dataclass
class Scaled:
    w: np.ndarray
    n: int = dataclasses.field(init=False, default=0)

    def __post_init__(self):
        self.w = self.w * 2
        self.norm = self.w @ self.w


@attrs.define
class Counted:
    w: np.ndarray = attrs.field(converter=lambda w: w * 2)
    n: int = attrs.field(init=False, default=0)


def changed(kind):
    """An instance whose attributes are not those that ``__init__`` gives."""
    result = kind(X)
    result.n = 5
    if kind is Scaled:
        result.norm, result.extra = 100.0, X
    return result


@in_one_test
@pytest.mark.parametrize("kind", [Scaled, Counted])
@pytest.mark.parametrize("make", [lambda kind: kind(X), changed])
def test_all_attributes_of_a_dataclass_are_arguments_and_results(kind, make):
    def f(state, x):
        total = (
            state.w.sum() * getattr(state, "norm", 1.0) + state.n + sum(getattr(state, "extra", X))
        )
        made = kind(x)
        made.n = total
        return total * x, made

    expected, other = f(make(kind), X)
    program, fast = lt.trace(f, make(kind), X), lt.jit(f)
    calls = [program, lt.compile(program), lt.parse(lt.dumps(program), classes=[kind]), *[fast] * 8]
    for call in calls:
        result, made = call(make(kind), X)
        assert_same((expected, other.w, other.n), (result, made.w, made.n))
        assert getattr(other, "norm", None) == getattr(made, "norm", None)
    assert_same(expected / X, lt.grad(lambda x, s: f(s, x)[0].sum())(X, make(kind)))


def test_jit_sees_attributes_that_are_added_to_a_dataclass():
    def f(state, x):
        return x * getattr(state, "extra", 1.0) + state.norm

    fast, state = lt.jit(f), Scaled(X)
    for step in range(30):
        if step % 10 == 5:
            state.extra = float(step)
        if step % 10 == 9:
            del state.extra
        state.norm = np.float64(step)
        assert_same(f(state, X), fast(state, X))


CYCLIC: list = [1.0]
CYCLIC.append(CYCLIC)
CALLS_WITH_CYCLES = {
    "trace": lambda: lt.trace(lambda x: x[0], CYCLIC),
    "a result": lambda: lt.trace(lambda x: CYCLIC, 1.0),
    "grad": lambda: lt.grad(lambda x: x[0])(CYCLIC),
    "jit": lambda: lt.jit(lambda x: x[0])(CYCLIC),
    "tree": lambda: lt.tree.leaves(CYCLIC),
}


@pytest.mark.parametrize("call", CALLS_WITH_CYCLES.values(), ids=CALLS_WITH_CYCLES)
def test_a_list_that_contains_itself_is_an_error(call):
    with pytest.raises(DTypeError, match="an argument or a result contains itself"):
        call()

"""Objects of users' classes among the arguments and results of ``trace`` and ``grad`` [B2]."""

import functools
import pickle
import warnings
from collections import OrderedDict, defaultdict

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from tests.each_sample import in_one_test

X = np.array([1.0, 2.0, 3.0])


class Vector:
    """A class with slots."""

    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)


class Layer:
    """A class with arrays, numbers, a text, a function, containers and another object."""

    def __init__(self, scale=1.0, name="dense"):
        self.weights, self.steps, self.name, self.is_on = X * scale, 2, name, True
        self.parts, self.options = [Vector(scale, 3.0)], {"f": np.sin, "none": None}

    def run(self, x):
        """The result of a layer."""
        if not self.is_on:
            return x
        for _ in range(self.steps):
            x = self.options["f"](x) * self.weights + self.parts[0].x
        return x


class Quiet(Layer):
    """A class that adds nothing."""


def run(layer, x):
    return layer.run(x)


def test_attributes_are_parameters():
    program = lt.trace(run, Layer(), X)

    assert [p.name for p in program.params] == [
        *("layer.weights", "layer.steps", "layer.parts.0.x", "layer.parts.0.y", "x")
    ]
    for layer in (Layer(), Layer(2.0)):
        assert_same(layer.run(X), program(layer, X))
        assert_same(layer.run(X), lt.compile(program)(layer, X))
        assert_same(layer.run(X), lt.trace(program, layer, X)(layer, X))
    longer = Layer()
    longer.steps = 3
    with pytest.raises(lt.GuardError):
        program(longer, X)


@in_one_test
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda layer: setattr(layer, "name", "other"), "the static argument 'dense' is part"),
        (lambda layer: setattr(layer, "is_on", False), "the static argument True is part"),
        (lambda layer: setattr(layer, "extra", 1.0), "expected arguments nested as"),
        (lambda layer: layer.options.update(f=np.cos), "the static argument ufunc"),
        (lambda layer: setattr(layer, "weights", np.ones(2)), "layer.weights.: expected float64.3"),
    ],
)
def test_a_replay_takes_objects_with_the_same_attributes(change, message):
    layer, program = Layer(), lt.trace(run, Layer(), X)
    change(layer)
    with pytest.raises((lt.DTypeError, lt.ShapeError), match=message):
        program(layer, X)
    with pytest.raises(lt.DTypeError, match="expected arguments nested as"):
        program(Quiet(), X)


def test_programs_with_objects_are_written_and_read(tmp_path):
    program = lt.trace(run, Layer(), X)
    lt.save(program, tmp_path / "program.letir")
    for other in (
        *(lt.parse(lt.dumps(program)), pickle.loads(pickle.dumps(program))),
        lt.load(tmp_path / "program.letir"),
    ):
        assert other == program
        assert_same(run(Layer(3.0), X), other(Layer(3.0), X))


def test_results_are_new_objects():
    def f(a, b):
        return (
            a + b,
            {"nested": [Vector(True, Vector(X * b.y, 1))], "vector": Vector(a.x * b.y, "text")},
            "text",
        )

    program = lt.trace(f, Vector(1.0, 2.0), Vector(3.0, 4.0))
    total, named, text = program(Vector(2.0, 3.0), Vector(4.0, 5.0))
    assert (type(total), total.x, total.y, text) == (Vector, 6.0, 8.0, "text")
    assert (named["vector"].x, named["vector"].y) == (10.0, "text")
    assert named["nested"][0].x is True
    assert_same((X * 5.0, 1), (named["nested"][0].y.x, named["nested"][0].y.y))
    with pytest.raises(lt.TraceError, match="the traced function returned the function sin"):
        lt.trace(Layer, 1.0)


def test_gradients_with_and_beside_objects():
    layer = Layer()
    by_argument = lt.grad(lambda layer, x: layer.run(x).sum(), argnums=1)
    assert_same(lt.grad(lambda x: layer.run(x).sum())(X), by_argument(layer, X))
    gradient = lt.grad(lambda v, x: (v.x * x).sum() * v.y)(Vector(X, 2.0), X)
    assert type(gradient) is Vector
    assert_same((2 * X, 14.0), (gradient.x, float(gradient.y)))
    with pytest.raises(lt.DTypeError, match=r"layer.steps is int64\*\[\], which has no derivative"):
        lt.grad(lambda layer, x: layer.run(x).sum())(layer, X)


def test_arrays_of_an_object_are_written_into():
    def f(layer):
        layer.weights[0] = layer.parts[0].x * 7
        return layer.weights.sum()

    ours, numpys = Layer(2.0), Layer(2.0)
    result = lt.trace(f, Layer())(ours)
    assert_same(f(numpys), result)
    assert_same(numpys.weights, ours.weights)


class Options(dict):
    """A dict whose items are attributes."""

    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


def test_an_object_may_be_a_dict_with_names_as_keys():
    def f(options, x):
        return options.w @ x + options["b"], Options(y=options.w * 2, text="kept")

    program = lt.trace(f, Options(w=X, b=0.5), X)
    value, result = program(Options(w=2 * X, b=1.5), X)
    assert_same(f(Options(w=2 * X, b=1.5), X)[0], value)
    assert (type(result), result.text) == (Options, "kept")
    assert_same(4 * X, result.y)
    assert_same(X, lt.grad(lambda o, x: f(o, x)[0], argnums=1)(Options(w=X, b=0.5), X))
    with pytest.warns(RuntimeWarning, match="as Python"):
        fast = lt.jit(lambda o, x: f(o, x)[0])
        assert_same(f(Options(w=X, b=0.5), X)[0], fast(Options(w=X, b=0.5), X))
    for refused in (Options({1: X, "w": X, "b": 1.0}), Options({"two words": X})):
        with pytest.raises(lt.DTypeError, match="Options is not an array of numbers"):
            lt.trace(f, refused, X)
    options = Options(w=X, b=0.5)
    lt.trace(lambda options: options.update(b=options.w), options)(options)
    assert options.b is options.w is X


def assign(layer):
    layer.weights = layer.weights * 2
    return layer


def append(layer):
    layer.parts.append(layer.weights)
    return layer


def count(layer):
    layer.steps += 1
    return layer.weights


@in_one_test
@pytest.mark.parametrize("f", [assign, append, count])
def test_jit_calls_functions_that_change_an_object_as_python(f):
    ours, numpys, fast = Layer(), Layer(), lt.jit(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of functions that return the object
        for _ in range(12):
            fast(ours), f(numpys)
    assert_same(numpys.weights, ours.weights)
    assert (len(numpys.parts), numpys.steps) == (len(ours.parts), ours.steps)


def with_itself(layer):
    layer.own = layer


def with_its_method(layer):
    layer.f = layer.run


def with_a_partial(layer):
    layer.f = functools.partial(run, layer)


def with_a_closure(layer):
    layer.f = lambda x: layer.run(2 * x)


def with_a_part_twice(layer):
    layer.parts *= 2


@pytest.mark.parametrize("change", [with_itself, with_a_part_twice])
def test_objects_may_hold_themselves_or_a_part_twice(change):
    layer, other = Layer(), Layer(2.0)
    change(layer)
    change(other)
    assert_same(run(other, X), lt.trace(run, layer, X)(other, X))
    with pytest.raises(lt.DTypeError, match="nested as"):
        lt.trace(run, layer, X)(Layer(), X)


def with_a_set(layer):
    layer.options = {1.0, object()}


@in_one_test
@pytest.mark.parametrize(
    "change",
    [with_its_method, with_a_partial, with_a_closure, with_a_set],
)
def test_objects_that_a_copy_would_not_replace_are_refused(change):
    layer = Layer()
    change(layer)
    with pytest.raises(lt.DTypeError, match=r"argument layer.*is not an array of numbers"):
        lt.trace(run, layer, X)


def test_an_object_that_the_function_did_not_make_is_no_result():
    kept = Layer()
    with pytest.raises(lt.TraceError, match="the traced function returned an object of type Layer"):
        lt.trace(lambda x: kept, X)
    fast = lt.jit(lambda x: kept)
    with pytest.warns(RuntimeWarning, match="as Python"):
        assert all(fast(X) is kept for _ in range(12))


def test_functions_of_objects_are_checked():
    assert lt.trace(lambda v, x: Vector(v.x * x, v.y), Vector(X, 2.0), X, check=True)
    with pytest.raises(lt.DTypeError, match="Vector is not an array of numbers"):
        lt.vmap(lambda v, x: v.x * x)(Vector(X, X), X)


@in_one_test
@pytest.mark.parametrize(
    "names",
    [
        {"__slots__": ("__private",)},
        {"__slots__": "value"},
        {"__del__": lambda self: None},
    ],
)
def test_classes_with_state_elsewhere_are_refused(names):
    kind = type("Odd", (), {"__module__": __name__, **names})
    with pytest.raises(lt.DTypeError, match="is not an array of numbers"):
        lt.trace(lambda odd, x: x, kind(), X)


def move_to_end(d):
    d.move_to_end("b")
    return d["a"] * 2


def put_last(d):
    d["b"] = d.pop("b")
    return d["a"] * 2


def in_an_object(d):
    d["object"].options["f"] = d["object"].options.pop("f")
    return d["a"] * 2


@in_one_test
@pytest.mark.parametrize("kind", [dict, OrderedDict, functools.partial(defaultdict, float)])
@pytest.mark.parametrize("f", [move_to_end, put_last, in_an_object])
def test_the_order_of_the_keys_of_an_argument_is_state(f, kind):
    if f is move_to_end and kind is not OrderedDict:
        return

    def made():
        result = kind(b=2 * X, a=X)
        if f is in_an_object:
            result["object"] = Layer()
        return result

    fast, program = lt.jit(f), lt.trace(f, made())
    for call in (fast, fast, fast, program):
        ours, numpys = made(), made()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of objects that are not the first argument
            assert_same(f(numpys), call(ours))
        assert list(numpys) == list(ours)
        if f is in_an_object:
            assert list(ours["object"].options) == ["none", "f"]


def test_classes_of_modules_that_are_not_imported_are_users():
    names: dict = {"__name__": "made_by_exec"}
    exec("class Point:\n    def __init__(self, x):\n        self.x = x", names)
    assert lt.trace(lambda p: p.x * 2, names["Point"](3.0))(names["Point"](4.0)) == 8.0


class Settings(dict):
    """A dict whose items are its attributes, too, under any names."""

    def __init__(self, **items):
        super().__init__(**items)
        self.__dict__ = self


def settings():
    return Settings(values=X.copy(), items=3.0, rate=0.5)


def stepped(s, x):
    s.values = s["values"] - s.rate * x
    s["last"] = s.values.sum() * s["items"]
    return s, s.last


@pytest.mark.filterwarnings("ignore:jit calls stepped as Python")
@pytest.mark.parametrize("transform", [lambda f: lt.trace(f, settings(), X), lt.jit])
def test_a_dict_that_is_its_own_dict_has_its_items_as_attributes(transform):
    fn = transform(stepped)

    for _ in range(3):
        given, expected = settings(), settings()
        stepped(expected, 2 * X)

        result, last = fn(given, 2 * X)

        for s in (given, result):
            assert type(s) is Settings and vars(s) is s
            assert list(s) == ["values", "items", "rate", "last"]
            assert_same(s.values, expected.values)
        assert last == given.last == expected["last"]


def test_the_gradient_of_a_dict_that_is_its_own_dict_is_one_as_well():
    gradient = lt.grad(lambda s: np.sum(s.values * s["rate"]))(settings())

    assert type(gradient) is Settings and gradient.values is gradient["values"]
    assert_same(gradient.values, np.full(3, 0.5))
    assert gradient.rate == X.sum()
    assert vars(pickle.loads(pickle.dumps(lt.trace(stepped, settings(), X)))(settings(), X)[0])

"""Programs of functions that change lists, dicts and objects among their arguments [B6]."""

import copy
import dataclasses
import pickle
import warnings
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from types import SimpleNamespace

import attrs
import numpy as np
import pytest

import letir as lt
from letir.testing import assert_same
from tests.each_sample import in_one_test

X = np.array([1.0, 2.0, 3.0])


class Layer:
    """An object with an array, numbers, a function, a list and a dict."""

    def __init__(self, scale=1.0):
        self.w, self.b, self.t = scale * X, 0.5, 0.0
        self.f, self.losses, self.cache = np.tanh, [1.0], {}


class Slotted:
    """An object without a dict of attributes."""

    __slots__ = ("n", "w")

    def __init__(self, scale=1.0):
        self.w = scale * X


class Guarded:
    """An object that computes while attributes are set."""

    def __init__(self, scale=1.0):
        self._w, self.sets = scale * X, 0

    @property
    def w(self):
        """The weights."""
        return self._w

    @w.setter
    def w(self, value):
        self._w, self.sets = value, self.sets + 1


@dataclasses.dataclass
class State:
    """A dataclass, whose derived attribute is not a field."""

    w: np.ndarray
    t: float = 0.0

    def __post_init__(self):
        self.norm = self.w @ self.w


@attrs.define
class Record:
    """An attrs class."""

    w: np.ndarray
    n: int = 0


class Named(dict):
    """A dict of a user's class."""


Pair = namedtuple("Pair", "state x")


def train(layer, x):
    error = layer.w @ x - layer.b
    layer.w = layer.w - 0.1 * error * x
    layer.b -= 0.1 * float(error)
    layer.t += 1.0
    return error**2


def forward_with_cache(layer, x):
    layer.cache["x"], layer.last = x, (x, layer.w * x)
    layer.losses += [x.sum()]
    return layer.last[1].sum()


def rename(layer, x):
    layer.f, layer.g = None, layer.f
    del layer.b
    layer.name, layer.is_done = "done", True
    return layer.g(x)


def share(layer, x):
    entry = {"x": x}
    layer.losses.append(entry)
    layer.entry, layer.same = entry, layer.losses
    return entry


def new_objects(layer, x):
    layer.parts = [Slotted(), State(x), Record(x)]
    layer.parts[0].w = layer.w * x
    layer.parts[0].n = layer
    return layer


def with_slots(slotted, x):
    slotted.n = x.sum()
    slotted.w = slotted.w * 2
    return slotted.w


def with_setter(guarded, x):
    guarded.w = guarded.w + x
    return guarded.sets


def of_dataclass(state, x):
    state.w = state.w * x
    state.t += 0.5
    state.norm = x.sum()
    return state.w


def of_attrs(record, x):
    record.w, record.n = x * 2, record.n + 1


def of_dict(state, x):
    state["w"] = state["w"] + x
    state.setdefault("steps", []).append(x)
    state[(0, "a")] = state.pop("old")
    state["self"] = state
    return state


def swap(state, x):
    state["a"], state["b"] = state["b"], state["a"]
    state["a"][0] = x


def of_order(state, x):
    state.move_to_end("a")
    return x


def of_defaultdict(state, x):
    state["loss"].append(x)
    state["new"].append(2 * x)


def of_list(values, x):
    values.append(x)
    values[0] = values[0] * 2
    values.reverse()
    return len(values)


def shorter(values, x):
    return values.pop() * x


def of_deque(window, x):
    window.append(x)
    return sum(window)


def in_tuples(pair, x):
    pair.state[0]["w"] += x
    pair.state[1].append(pair.x)
    return pair.x


def of_counter(state, x):
    state["letters"].update("abca")
    state["letters"]["d"] += 2
    state["common"] = state["letters"].most_common(1)[0][1]
    return state["letters"]["none"] + x


def of_set(state, x):
    if "b" not in state["seen"]:
        state["seen"].add("b")
        state["seen"].discard(1)
    state["n"] = len(state["seen"])
    return 2 in state["seen"]


def write_and_store(layer, x):
    layer.before = layer.w
    layer.w *= x
    return layer.before


CHANGES = {
    "attributes": (train, Layer),
    "new attributes": (forward_with_cache, Layer),
    "deleted and moved attributes": (rename, Layer),
    "a list at two places": (share, Layer),
    "new objects": (new_objects, Layer),
    "an array written in place": (write_and_store, Layer),
    "slots": (with_slots, Slotted),
    "a property": (with_setter, Guarded),
    "a dataclass": (of_dataclass, lambda scale=1.0: State(scale * X)),
    "an attrs class": (of_attrs, lambda scale=1.0: Record(scale * X)),
    "a namespace": (of_attrs, lambda scale=1.0: SimpleNamespace(w=scale * X, n=1)),
    "a dict": (of_dict, lambda scale=1.0: {"w": scale * X, "old": {"v": scale}}),
    "a user's dict": (swap, lambda scale=1.0: Named(a=[scale], b=[2 * scale])),
    "lists that change places": (swap, lambda scale=1.0: {"a": [scale], "b": [2 * scale]}),
    "an order": (of_order, lambda scale=1.0: OrderedDict(a=scale, b=[scale])),
    "a defaultdict": (of_defaultdict, lambda scale=1.0: defaultdict(list, loss=[scale])),
    "a list": (of_list, lambda scale=1.0: [scale, 2.0]),
    "a list that gets shorter": (shorter, lambda scale=1.0: [scale, 2.0]),
    "a deque": (of_deque, lambda scale=1.0: deque([scale * X, 2 * X], maxlen=2)),
    "a Counter": (of_counter, lambda scale=1.0: {"letters": Counter("abb")}),
    "a set": (of_set, lambda scale=1.0: {"seen": {1, 2, "a"}, "n": 0}),
    "parts of tuples": (in_tuples, lambda scale=1.0: Pair(({"w": scale * X}, []), scale)),
}


def graph_of(value, known=None):
    """The values in ``value``, with a number in place of a container or array that is met again."""
    known = {} if known is None else known
    is_plain = value is None or isinstance(value, bool | int | float | str | np.generic)
    if is_plain or callable(value):
        return type(value), value
    if isinstance(value, set):
        return known.setdefault(id(value), (len(known), value))[0], frozenset(value)
    if id(value) in known:
        return known[id(value)][0]
    known[id(value)] = len(known), value
    if isinstance(value, np.ndarray):
        return value.tolist(), value.dtype
    parts = {} if isinstance(value, tuple | list | deque) else dict(getattr(value, "__dict__", {}))
    parts |= {n: getattr(value, n) for n in getattr(value, "__slots__", ()) if hasattr(value, n)}
    items = list(value.items()) if isinstance(value, dict) else ()
    items = items or (list(enumerate(value)) if isinstance(value, tuple | list | deque) else ())
    pairs = [*items, *sorted(parts.items())]
    return type(value), [(key, graph_of(part, known)) for key, part in pairs]


@in_one_test
@pytest.mark.parametrize("case", CHANGES)
def test_a_program_changes_its_arguments_as_the_function_does(case):
    function, make = CHANGES[case]
    given = make(), 2 * X
    before = graph_of(given)
    program = lt.trace(function, *given)
    assert graph_of(given) == before
    calls = [program, lt.compile(program), lt.parse(lt.dumps(program))]
    for call in calls[: 2 if case == "new objects" else 3]:  # a text does not have their classes
        for scale in (1.0, 3.0):
            numpys, ours = (make(scale), 3 * X), (make(scale), 3 * X)
            expected, result = function(*numpys), call(*ours)
            assert graph_of((expected, numpys)) == graph_of((result, ours))
    assert pickle.loads(pickle.dumps(program)) == program == copy.deepcopy(program)


@in_one_test
@pytest.mark.parametrize("case", ["attributes", "a property", "a dataclass", "a deque"])
def test_programs_that_keep_the_structure_run_again_and_again(case):
    function, make = CHANGES[case]
    numpys, ours = make(), make()
    program = lt.compile(lt.trace(function, make(), X))
    for _ in range(6):
        assert graph_of(function(numpys, X)) == graph_of(program(ours, X))
    assert graph_of(numpys) == graph_of(ours)


def test_the_text_of_a_program_says_what_it_stores():
    program = lt.trace(
        lambda s, x: (s.update(t=s["t"] + 1), s["l"].append(x)), {"t": 1, "l": []}, 2
    )
    assert "out stores((None, None), {\"args[0]['t']\": *, \"args[0]['l'][0:]\": [*]}) {" in str(
        program
    )
    state = {"t": 5, "l": []}
    assert program(s := state, 7) == (None, None)
    assert s == {"t": 6, "l": [7]}


def test_a_guard_that_fails_stores_nothing():
    def step(state, x):
        state["x"] = x
        return x if x > 0 else -x

    program, state = lt.trace(step, {"x": 1.0}, 2.0), {"x": 1.0}
    with pytest.raises(lt.GuardError):
        program(state, -1.0)
    assert state == {"x": 1.0}


def test_another_structure_than_the_recorded_one_is_refused():
    program, losses = lt.trace(of_list, [1.0, 2.0], X), [1.0, 2.0]
    program(losses, X)
    with pytest.raises(lt.DTypeError, match=r"nested as \(\[\*, \*\], \*\)") as caught:
        program(losses, X)
    assert "may differ after a call: trace again, or use letir.jit" in str(caught.value)


def test_a_container_that_is_there_twice_is_refused():
    def step(a, b, x):
        a.append(x)
        return b["a"][0]

    losses = [1.0]
    with pytest.raises(lt.TraceError, match="the list with this part is among the arguments 2"):
        lt.trace(step, losses, {"a": losses}, 2.0)
    program = lt.trace(step, [1.0], {"a": [1.0]}, 2.0)
    with pytest.raises(lt.DTypeError, match="the list with this part is among the arguments 2"):
        program(losses, {"a": losses}, 2.0)
    with pytest.raises(lt.DTypeError, match="the dict with this part is among the arguments 2"):
        outer = {"a": [1.0]}
        lt.trace(lambda a, b: a["a"].append(1.0), {"a": [1.0]}, {"a": [1.0]})(outer, outer)
    assert losses == outer["a"] == [1.0]


@in_one_test
@pytest.mark.parametrize(
    "value", [np.sin, {1.0, 2.0}, {object()}, object(), Layer, np.random.default_rng(1)]
)
def test_values_that_no_program_can_make_are_refused(value):
    def keep(layer, x):
        layer.kept = value
        return x

    with pytest.raises(lt.TraceError, match=r"of type .*in an argument, at args\[0\].kept"):
        lt.trace(keep, Layer(), X)


def test_keys_that_a_text_cannot_name_are_refused():
    with pytest.raises(lt.TraceError, match="whose key a program cannot name"):
        lt.trace(lambda state, x: state.update({np.float64: x}), {"a": 1.0}, X)


def test_traced_keys_are_numbers_in_the_dict():
    def visit(table, i, x):
        table[i, 0] = x
        table[i] = {i: x}
        return table[i, 0]

    table = {(1, 0): 0.0}
    assert lt.trace(visit, {(1, 0): 0.0}, 1, 2.0)(table, 1, 3.0) == 3.0
    assert table == {(1, 0): 3.0, 1: {1: 3.0}}
    assert {type(key) for key in table} == {tuple, int}
    with pytest.raises(lt.GuardError):
        lt.trace(visit, {(1, 0): 0.0}, 1, 2.0)({(1, 0): 0.0}, 2, 3.0)


def test_transforms_change_no_argument():
    layer = Layer()
    program = lt.trace(train, layer, X)
    before = graph_of(layer)
    for f in (train, program):
        assert_same(2 * (X @ X - 0.5) * X, lt.grad(f, 1)(layer, X))
        assert_same(np.float64((X @ X - 0.5) ** 2), lt.vjp(f, layer, X)[0])
        assert_same(2 * (X @ X - 0.5) * X, lt.grad(f)(layer, X).w)
    assert graph_of(layer) == before
    assert not lt.passes.without_writes(program).out_tree


def test_a_changed_argument_among_the_results_has_a_derivative():
    def step(state, x):
        state["w"] = state["w"] * x
        state["name"] = "w"
        return state, [state["w"]]

    program = lt.trace(step, {"w": X}, 2.0)
    state = {"w": X}
    assert lt.grad(lambda w: program({"w": w}, 2.0)[0]["w"].sum())(X).tolist() == [2.0, 2.0, 2.0]
    jacobian = lt.jacobian(program, 1)(state, 2.0)
    assert_same(({"name": "w", "w": X}, [X]), jacobian)
    assert state["w"] is X


def test_programs_change_traced_arguments_and_variables():
    def twice(layer, x):
        return PROGRAM(layer, x) + PROGRAM(layer, 2 * x)

    def twice_numpys(layer, x):
        return train(layer, x) + train(layer, 2 * x)

    numpys = Layer()
    expected = twice_numpys(numpys, X)
    for call in (twice, lt.trace(twice, Layer(), X), lt.jit(twice)):
        ours = Layer()
        assert_same(expected, call(ours, X))
        assert graph_of(numpys) == graph_of(ours)
    assert_same(lt.grad(twice_numpys, 1)(Layer(), X), lt.grad(twice, 1)(Layer(), X))
    layer = Layer()
    layer.w = w = lt.Variable(X, requires_grad=True)
    twice(layer, X).backward()
    assert layer.w is not w
    assert_same(lt.grad(twice_numpys)(Layer(), X).w, w.grad.array)


PROGRAM = lt.trace(train, Layer(), X)


def test_values_of_an_enclosing_trace_cannot_be_stored():
    def outer(x):
        lt.trace(lambda state: state.update(x=x), {"x": 1.0})
        return x

    with pytest.raises(lt.TraceError, match="cannot store the new value"):
        lt.trace(outer, 2.0)


def test_a_loaded_program_stores_in_objects(tmp_path):
    lt.save(PROGRAM, tmp_path / "train.letir")
    program, ours, numpys = lt.load(tmp_path / "train.letir"), Layer(), Layer()
    assert_same(train(numpys, X), program(ours, X))
    assert graph_of(numpys) == graph_of(ours)
    assert_same(lt.grad(train, 1)(Layer(), X), lt.grad(program, 1)(Layer(), X))
    returned = lt.trace(lambda layer: setattr(layer, "t", layer.t + 1) or layer, Layer())
    lt.save(returned, tmp_path / "count.letir")
    counting = lt.load(tmp_path / "count.letir")
    assert counting(ours) is ours
    assert ours.t == 2.0
    with pytest.raises(lt.DTypeError, match="its class is not known here"):
        lt.passes.without_writes(counting)


def test_check_compares_what_is_stored():
    def step(state, x):
        with lt.pause_tracing():
            state["x"] = float(x.sum())
        return x

    assert lt.trace(train, Layer(), X, check=True) == PROGRAM
    with pytest.raises(lt.TraceError, match="check: recorded at other values"):
        lt.trace(step, {"x": 0.0}, X, check=True)


# ---- objects at several places ----


class Node:
    """A node of a graph, which may refer to others and to itself."""

    def __init__(self, value):
        self.value, self.links = value, []


class Optimizer:
    """An optimizer that holds its model."""

    def __init__(self, model):
        self.model, self.rate = model, 0.5

    def step(self, gradient):
        """Change the weights of the model."""
        self.model.w = self.model.w - self.rate * gradient


def ring(scale=1.0):
    """Three nodes in a circle, one of which refers to itself."""
    nodes = [Node(scale), Node(2 * scale), Node(3 * scale)]
    for i, node in enumerate(nodes):
        node.links.append(nodes[i - 1])
    nodes[0].links.append(nodes[0])
    return nodes


def walk(nodes, x):
    for node in nodes:
        node.links[0].value = node.value * x + node.links[-1].value
    nodes[1].links = [nodes[2]]
    return nodes[0].links[0].value


def step_of_optimizer(model, optimizer, x):
    optimizer.step(x * model.w)
    return model.w @ x


def layers(scale=1.0):
    """A network in which two layers are one."""
    layer = Layer(scale)
    return [layer, Layer(2 * scale), layer]


def run_layers(network, x):
    for layer in network:
        x = layer.w * x
        layer.w = layer.w + 1.0
    return x


def with_optimizer(scale=1.0):
    model = Layer(scale)
    return model, Optimizer(model)


SHARED = {
    "a circle": (walk, lambda scale=1.0: (ring(scale), 2.0)),
    "a model and its optimizer": (
        step_of_optimizer,
        lambda scale=1.0: (*with_optimizer(scale), scale * X),
    ),
    "layers that share weights": (run_layers, lambda scale=1.0: (layers(scale), scale * X)),
}


@in_one_test
@pytest.mark.parametrize("case", SHARED)
def test_an_object_at_several_places_is_one_object(case):
    function, make = SHARED[case]
    program = lt.trace(function, *make())
    for call in (program, lt.compile(program), lt.parse(lt.dumps(program)), lt.jit(function)):
        for scale in (1.0, 3.0):
            numpys, ours = make(scale), make(scale)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # jit calls some of them as Python
                expected, result = function(*numpys), call(*ours)
            assert graph_of((expected, numpys)) == graph_of((result, ours))
    assert lt.trace(function, *make(), check=True) == program
    *others, x = make()

    def total(x):
        return np.sum(function(*copy.deepcopy(others), x))

    numeric = lt.jacobian(total)(x)
    number = len(others)
    assert_same(numeric, lt.grad(lambda *args: np.sum(function(*args)), number)(*others, x))
    assert_same(numeric, lt.grad(lambda *args: np.sum(program(*args)), number)(*others, x))


def test_sharing_is_a_part_of_the_structure():
    program = lt.trace(run_layers, layers(), X)
    assert "[Layer(w=*, b=*, t=*" in str(program)
    assert "same_as('args[0][0]')]" in str(program)
    with pytest.raises(lt.DTypeError, match="expected arguments nested as"):
        program([Layer(), Layer(), Layer()], X)


def test_a_gradient_of_a_shared_object_is_refused_or_the_total():
    model, optimizer = with_optimizer()

    def loss(model, optimizer):
        return (model.w * optimizer.model.w).sum()

    for argnums in (0, 1):
        gradient = lt.grad(loss, argnums)(model, optimizer)
        assert_same(2 * X, gradient.w if argnums == 0 else gradient.model.w)
    with pytest.raises(lt.DTypeError, match="has an object at two places"):
        lt.grad(lambda network: run_layers(network, X).sum())(layers())


def test_a_set_is_a_static_argument():
    def visit(seen, key, x):
        seen.add(key)
        return x * len(seen)

    program = lt.trace(visit, {7, 2}, 3, X, check=True)
    seen = {2, 7}
    assert_same(3 * X, program(seen, 3, X))
    assert (seen, {type(key) for key in seen}) == ({2, 3, 7}, {int})
    with pytest.raises(lt.DTypeError, match=r"static argument set \{2, 7\} is part of the program"):
        program(seen, 3, X)
    with pytest.raises(lt.GuardError):
        program({2, 7}, 4, X)
    assert_same(np.full(3, 3.0), lt.grad(lambda s, x: visit(s, 3, x).sum(), 1)({2, 7}, X))


def test_a_transform_refuses_a_list_or_dict_that_changes_at_two_places():
    def append(a, b, x):
        a.append(x)
        return b[-1] * x

    def step(model, optimizer, x):
        optimizer.w["w"] = optimizer.w["w"] - x
        return (model.w["w"] ** 2).sum()

    losses, model, optimizer = [1.0], Slotted(), Slotted()
    model.w = optimizer.w = {"w": X}
    for transform in (lambda f, *args: lt.grad(f, 2)(*args), lt.vjp):
        with pytest.raises(lt.TraceError, match="the list with this part is among the arguments 2"):
            transform(append, losses, losses, 2.0)
        with pytest.raises(lt.TraceError, match="the dict with this part is among the arguments 2"):
            transform(step, model, optimizer, X)
    assert lt.grad(append, 2)(losses, [3.0], 2.0) == 3.0
    assert lt.grad(lambda a, b, x: a[0] * b[0] * x, 2)(losses, losses, 2.0) == 1.0
    assert (losses, model.w) == ([1.0], {"w": X})

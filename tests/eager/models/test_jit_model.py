"""``jit_model``: models whose forward is recorded and replayed."""

import gc
import weakref

import numpy as np
import pytest

import letir as lt
from letir.eager import Variable, jit_model, no_grad
from letir.testing import assert_same

X = np.array([1.0, -2.0, 3.0])


class Layer:
    def __init__(self, n, m, seed):
        rng = np.random.default_rng(seed)
        self.w, self.b = rng.normal(size=(n, m)), np.zeros(m)

    def parameters(self):
        return [self.w, self.b]

    def forward(self, x):
        return x @ self.w + self.b


class Network:
    """Two layers in a list, a running mean, a flag, a function, and a reference to itself."""

    def __init__(self):
        self.layers = [Layer(3, 4, 0), Layer(4, 2, 1)]
        self.mean = np.zeros(2)
        self.training = True
        self.activation = np.tanh
        self.options = {"scale": (np.array(2.0), 0.5), "unused": []}
        self.itself = self

    def parameters(self):
        return [p for layer in self.layers for p in layer.parameters()]

    def forward(self, x, *, shift=0.0):
        for layer in self.layers:
            x = self.activation(layer.forward(x))
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x
        return {"y": x * self.options["scale"][0] + shift, "centred": x - self.mean}


def assert_equal_results(expected, found):
    assert expected.keys() == found.keys()
    for name in expected:
        np.testing.assert_array_equal(expected[name], found[name])


def test_a_model_is_recorded_once_and_then_replayed():
    plain, fast = Network(), jit_model(Network())

    for x in (X, 2 * X, -X):
        assert_equal_results(plain.forward(x), fast(x))
        np.testing.assert_array_equal(plain.mean, fast.model.mean)

    assert 1 == len(fast.programs)


def test_a_replay_reads_parameters_changed_in_place_or_replaced():
    fast = jit_model(Network())
    fast(X)

    for layer in fast.model.layers:
        layer.w *= 0.5
        layer.b = layer.b + 1
    plain = Network()
    for old, new in zip(plain.layers, fast.model.layers, strict=True):
        old.w, old.b = new.w.copy(), new.b
    plain.mean = fast.model.mean

    assert_equal_results(plain.forward(X), fast(X))
    assert 1 == len(fast.programs)


def test_another_attribute_value_or_argument_type_is_recorded_again():
    fast = jit_model(Network())
    fast(X)
    fast.model.training = False
    fast(X)
    fast(X.astype(np.float32))
    fast(X, shift=1.0)

    assert 4 == len(fast.programs)
    fast.model.training = True
    fast(X)
    assert 4 == len(fast.programs)


class Choice(Layer):
    def forward(self, x):
        return x @ self.w if x.sum() > 0 else x * 0


def test_a_branch_not_taken_before_is_recorded_when_it_is_taken():
    fast = jit_model(Choice(3, 3, 0))

    for x in (X, -X, X):
        np.testing.assert_array_equal(Choice(3, 3, 0).forward(x), fast(x))


def test_alternating_branches_are_recorded_once_each():
    fast = jit_model(Choice(3, 3, 0))

    for x in (X, -X, X):
        fast(x)
    known = {id(program) for program in fast.programs}
    for x in (-X, X, -X):
        fast(x)

    assert 2 == len(known)
    assert known == {id(program) for program in fast.programs}


def test_a_buffer_that_forward_changes_in_place_is_updated():
    """[B6, B8]"""

    class Counter(Layer):
        def forward(self, x):
            self.b += x.sum()
            return x * self.b

    plain, recorded = Counter(1, 1, 0), Counter(1, 1, 0)
    fast, buffer = jit_model(recorded), recorded.b

    for _ in range(3):
        assert_same(plain.forward(np.ones(2)), fast(np.ones(2)))

    assert buffer is recorded.b
    assert_same(plain.b, buffer)


def test_an_attribute_that_forward_sets_is_set_on_the_model():
    class Remembering(Layer):
        def forward(self, x):
            self.last = {"x": 2 * x}
            return x

    fast = jit_model(Remembering(1, 1, 0))

    for scale in (1.0, 2.0, 3.0):
        fast(scale * X)
        np.testing.assert_array_equal(2 * scale * X, fast.model.last["x"])


def test_an_attribute_number_that_forward_changes_is_an_error():
    class Counting(Layer):
        def forward(self, x):
            self.calls = getattr(self, "calls", 0) + 1
            return x * self.calls

    model = Counting(1, 1, 0)
    model.calls = 0

    with pytest.raises(lt.TraceError, match=r"changes model\.calls from 0 to 1"):
        jit_model(model)(X)
    assert 0 == model.calls


def test_a_parameter_outside_all_attributes_is_an_error():
    class Hidden(Layer):
        def parameters(self):
            return [np.ones(3)]

    with pytest.raises(lt.TraceError, match="parameter 0 is not in any attribute"):
        jit_model(Hidden(1, 1, 0))(X)


@pytest.mark.parametrize("missing", [object(), np.ones(3)])
def test_an_object_without_forward_is_refused(missing):
    with pytest.raises(lt.TraceError, match="has no forward"):
        jit_model(missing)


def test_an_exception_while_recording_leaves_the_model_unchanged():
    class Failing(Layer):
        def forward(self, x):
            self.w = x
            raise ZeroDivisionError

    model = Failing(1, 1, 0)
    w = model.w

    with pytest.raises(ZeroDivisionError):
        jit_model(model)(X)
    assert w is model.w


def test_tied_weights_are_one_argument():
    class Tied(Layer):
        def __init__(self):
            super().__init__(3, 3, 0)
            self.again = {"w": self.w}

        def forward(self, x):
            return x @ self.w @ self.again["w"]

    fast = jit_model(Tied())
    fast(X)

    assert 3 == len(fast.programs[0].params)  # w, b, x


def test_outputs_are_not_kept_alive():
    fast = jit_model(Layer(3, 3, 0))
    fast(X)
    gc.disable()
    try:
        out = weakref.ref(fast(X))
        assert out() is None
    finally:
        gc.enable()


def test_a_recorded_model_can_be_differentiated_and_traced():
    model = Layer(3, 2, 0)
    fast = jit_model(model)

    np.testing.assert_allclose(model.w.sum(axis=1), lt.grad(lambda x: fast(x).sum())(X))
    np.testing.assert_array_equal(model.forward(X), lt.trace(fast, X)(X))


class Linear(Layer):
    """A layer whose parameters are Variables."""

    def __init__(self):
        super().__init__(3, 2, 0)
        self.w, self.b = (Variable(p, requires_grad=True) for p in (self.w, self.b))


def test_a_model_with_variables_is_trained():
    fast, plain = jit_model(Linear()), Linear()

    for _ in range(3):
        for forward, model in ((fast, fast.model), (plain.forward, plain)):
            (forward(X) ** 2).sum().backward()
            with no_grad():
                for parameter in model.parameters():
                    parameter[...] = parameter - 0.1 * parameter.grad
                    parameter.zero_grad()

    assert 1 == len(fast.programs)
    np.testing.assert_array_equal(plain.w.numpy(), fast.model.w.numpy())


class Branching:
    def __init__(self):
        self.weight = np.array([2.0, 3.0])

    def parameters(self):
        return [self.weight]

    def forward(self, x):
        lt.debug.print("{}", x)
        return self.weight * x if x.sum() > 0 else x


def test_a_model_says_which_program_a_call_would_replay(capsys):
    model, x = jit_model(Branching()), np.ones(2)
    assert not model.has_trace_for(x)
    model(x)
    capsys.readouterr()

    assert [True, False, False] == [model.has_trace_for(a) for a in (x, -x, np.ones(3))]
    assert model.programs[0] is model.graph_for(3 * x)
    with pytest.raises(lt.TraceError, match="there is no program for these arguments"):
        model.graph_for(-x)
    assert 1 == len(model.programs)
    assert "" == capsys.readouterr().out
    model(-x)
    assert model.graph_for(x) != model.graph_for(-x)

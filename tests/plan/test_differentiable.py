"""Optimised programs on Variables: results, gradients and histories are those of eager mode."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings

import letir as lt
from letir import Variable
from letir.eager import gradients, history
from letir.plan.differentiable import differentiable
from letir.plan.subgraphs import smallest_subgraphs
from letir.testing import assert_same, programs

X, W = np.linspace(-1.0, 1.5, 12).reshape(3, 4), np.linspace(0.2, -0.7, 16).reshape(4, 4)


def net(x, w):
    """A result of each kind: a scalar, integers, an array on the way."""
    h = np.tanh(np.tanh(x @ w) @ w) * 2
    return (h * h).sum(), h.argmax(), h


def leaf(array):
    return Variable(array, requires_grad=True)


def compiled(f, *args):
    """``f`` for Variables of which all require grad."""
    fn = lt.trace(f, *args)
    return differentiable(fn, [True] * len(fn.params))


def test_a_program_is_one_step_of_the_history():
    f = compiled(lambda x, w: net(x, w)[:2], X, W)

    value, _ = f(leaf(X), leaf(W))

    assert 1 == len(f.graphs)
    assert "differentiable_graph" == value.grad_fn.op.name
    assert value.grad_fn.args[0].is_leaf


def test_a_result_from_which_others_are_computed_ends_a_graph():
    f = compiled(net, X, W)

    _, _, h = f(leaf(X), leaf(W))

    assert ["differentiable_graph", "mul", "sum"] == [
        b.op.name for b in f.optimized.binds if b.op.name not in ("argmax",)
    ]
    assert h.grad_fn.op.name == "differentiable_graph"


def test_gradients_of_every_subset_of_results_are_those_of_eager_mode():
    f = compiled(net, X, W)
    for chosen in ([0], [2], [0, 2]):
        found, expected = [], []
        for function, grads in ((f, found), (net, expected)):
            x, w = leaf(X), leaf(W)
            results = function(x, w)
            sum(results[i].sum() for i in chosen).backward()
            grads += [x.grad.numpy(), w.grad.numpy()]

        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13)


def test_gradients_of_gradients_to_the_third_order():
    f = compiled(net, X, W)
    found = []
    for function in (f, net):
        x, w = leaf(X), leaf(W)
        value, _, h = function(x, w)
        first = gradients(value + h.sum(), w, create_graph=True)
        second = gradients((first * first).sum(), [w, x], create_graph=True)
        found.append(gradients((second[0] * second[0]).sum() + second[1].sum(), w).numpy())

    np.testing.assert_allclose(*found, rtol=1e-11)


def test_the_gradient_program_is_made_at_the_first_backward_and_once():
    f = compiled(net, X, W)
    for _ in range(3):
        value = f(leaf(X), leaf(W))[0]
        value.backward()

    (graph,) = f.graphs
    (backward,) = graph.backwards.values()
    assert 1 == len(backward.made)


def test_nothing_is_made_for_backward_before_it_runs():
    f = compiled(net, X, W)
    f(leaf(X), leaf(W))

    assert not f.graphs[0].backwards


def test_hooks_see_what_they_see_in_eager_mode():
    seen = []
    for function in (compiled(net, X, W), net):
        w, calls = leaf(W), []
        value, _, h = function(Variable(X), w)
        h.register_hook(lambda g, calls=calls: calls.append(g.numpy().copy()))
        w.register_hook(lambda g: g * 2)
        (value + h.sum()).backward()
        seen.append((calls[0], w.grad.numpy()))

    np.testing.assert_allclose(seen[0][0], seen[1][0])
    np.testing.assert_allclose(seen[0][1], seen[1][1])


def test_values_go_free_after_backward_unless_the_graph_is_retained():
    f, w = compiled(net, X, W), leaf(W)
    value = f(leaf(X), w)[0]
    value.backward(retain_graph=True)
    value.backward()

    with pytest.raises(lt.TraceError, match="retain_graph"):
        value.backward()


def test_no_grad_records_nothing():
    f = compiled(net, X, W)
    with lt.no_grad():
        value, index, _ = f(leaf(X), leaf(W))

    assert not value.requires_grad
    assert isinstance(index, Variable)


def test_a_result_that_was_changed_in_place_is_only_an_error_if_backward_reads_it():
    f = compiled(lambda x: (np.exp(np.sin(x) * 2) * 3 + x, np.cos(x)), X)
    x = leaf(X)
    y, _ = f(x)
    y += 1.0  # no rule reads it
    y.sum().backward()

    g = compiled(lambda x: np.exp(np.sin(np.cos(x) * 2) * 3), X)
    y = g(leaf(X))
    y += 1.0
    with pytest.raises(lt.TraceError, match="changed in place"):
        y.sum().backward()


def test_an_argument_that_was_changed_in_place_is_an_error():
    f, x = compiled(lambda x: np.sin(np.cos(x) * x) * x * 2, X), leaf(X)
    x = x * 1.0
    y = f(x)
    x += 1.0

    with pytest.raises(lt.TraceError, match="changed in place"):
        y.sum().backward()


def test_only_arguments_that_require_grad_get_one():
    f = differentiable(lt.trace(net, X, W), [False, True])
    x, w = Variable(X), leaf(W)
    f(x, w)[0].backward()

    assert x.grad is None
    assert w.grad is not None


def test_a_function_that_is_taken_as_it_is_may_have_variables_of_its_own():
    hidden = leaf(np.array([1.0, 2.0]))
    op = lt.opaque(lambda x: x * hidden, lambda x: x, name="test_differentiable.scaled")
    fn = lt.trace(lambda x: np.exp(np.sin(op(x) * 2) * 2) * 3 + x, np.ones(2))
    f = differentiable(fn, [False])

    f(Variable(np.ones(2))).sum().backward()
    found, hidden.grad = hidden.grad, None
    (np.exp(np.sin(hidden * 2) * 2) * 3).sum().backward()

    np.testing.assert_allclose(found.numpy(), hidden.grad.numpy())


def test_the_history_is_a_program_with_the_graph():
    f, w = compiled(lambda x, w: net(x, w)[0], X, W), leaf(W)
    fn = history(f(Variable(X), w), [w])

    assert ["constant", "differentiable_graph"] == [bind.op.name for bind in fn.binds]
    eager = leaf(W)
    net(Variable(X), eager)[0].backward()
    np.testing.assert_allclose(lt.grad(fn)(W), eager.grad.numpy(), rtol=1e-13)


def test_a_history_holds_no_results():
    f, w = compiled(net, X, W), leaf(W)
    value, _, h = f(leaf(X), w)
    gc.disable()
    try:
        ref = weakref.ref(h)
        del h
        assert ref() is None
    finally:
        gc.enable()
    value.backward()


def test_writes_into_arguments_are_seen():
    def add_one(x, y):
        x[0] = x[0] + 1.0
        return np.sin(np.exp(x) * y) * np.cos(y) + x

    found = []
    for function in (differentiable(lt.trace(add_one, X, X), [False, True]), add_one):
        x, y = Variable(X.copy()), leaf(X)
        out = function(x, y)
        out.sum().backward()
        found.append((x.numpy(), out.numpy(), y.grad.numpy()))

    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other)


def variables(fn, args):
    """The arguments as Variables that require grad where that can be."""
    return [
        leaf(arg) if p.type.inexact and not p.type.weak else arg
        for p, arg in zip(fn.params, args, strict=True)
    ]


def slopes(call, inputs, *, again: bool):
    """The results of a call, and the gradients of their sum; with ``again`` of those gradients."""
    results = call(*inputs)
    outs = results if isinstance(results, tuple) else (results,)
    leaves = [x for x in inputs if isinstance(x, Variable)]
    flowing = [y for y in outs if isinstance(y, Variable) and y.requires_grad]
    found = [[y.numpy() if isinstance(y, Variable) else y for y in outs]]
    for _ in range(1 + again):
        if not flowing or not leaves:
            break
        seeds = [Variable(np.ones(y.shape, y.dtype)) for y in flowing]
        grads = gradients(flowing, leaves, seeds, create_graph=again, allow_unused=True)
        found.append([None if g is None else g.numpy() for g in grads])
        flowing = [g for g in grads if g is not None and g.requires_grad]
    return found


@settings(max_examples=60)
@given(programs(dtypes=("float64", "complex128", "int64", "bool")))
def test_generated_programs_have_the_results_and_gradients_of_eager_mode(program):
    fn, args = program
    requires = [p.type.inexact and not p.type.weak for p in fn.params]
    try:
        expected = slopes(fn, variables(fn, args), again=True)
    except lt.LetirError:
        return  # no rule, or none of a second order
    with smallest_subgraphs():
        f = differentiable(fn, requires, exact=True)

    found = slopes(f, variables(fn, args), again=True)

    assert_same(tuple(expected[0]), tuple(found[0]))
    assert len(expected) == len(found)
    for one, other in zip(expected[1:], found[1:], strict=True):
        for x, y in zip(one, other, strict=True):
            zero = [np.zeros(1) if g is None else g for g in (x, y)]
            np.testing.assert_allclose(*zero, rtol=1e-9, atol=1e-9, equal_nan=True)

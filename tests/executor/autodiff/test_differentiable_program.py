"""Optimised programs on Variables: results, gradients and histories agree with eager mode."""

import gc
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import letir as lt
from letir import Variable, jit
from letir.eager import gradients, history
from letir.executor.autodiff.differentiable_program import compile_differentiable
from letir.executor.autodiff.subgraphs import smallest_subgraphs
from letir.testing import assert_same, programs

X, W = np.linspace(-1.0, 1.5, 12).reshape(3, 4), np.linspace(0.2, -0.7, 16).reshape(4, 4)


def net(x, w):
    """A scalar, an array of integers, and an intermediate array."""
    h = np.tanh(np.tanh(x @ w) @ w) * 2
    return (h * h).sum(), h.argmax(), h


def leaf(array):
    return Variable(array, requires_grad=True)


def compiled(f, *args):
    """``f`` compiled for Variables that all require grad."""
    fn = lt.trace(f, *args)
    return compile_differentiable(fn, [True] * len(fn.params))


def test_a_program_is_one_node_of_the_history():
    f = compiled(lambda x, w: net(x, w)[:2], X, W)

    value, _ = f(leaf(X), leaf(W))

    assert 1 == len(f.graphs)
    assert "differentiable_graph" == value.grad_fn.op.name
    assert value.grad_fn.args[0].is_leaf


def test_a_result_that_others_are_computed_from_ends_a_graph():
    f = compiled(net, X, W)

    _, _, h = f(leaf(X), leaf(W))

    assert ["differentiable_graph", "mul", "sum"] == [
        b.op.name for b in f.optimized.binds if b.op.name not in ("argmax",)
    ]
    assert h.grad_fn.op.name == "differentiable_graph"


def test_gradients_of_every_subset_of_results_agree_with_eager_mode():
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


def test_gradients_agree_with_eager_mode_to_the_third_order():
    f = compiled(net, X, W)
    found = []
    for function in (f, net):
        x, w = leaf(X), leaf(W)
        value, _, h = function(x, w)
        first = gradients(value + h.sum(), w, create_graph=True)
        second = gradients((first * first).sum(), [w, x], create_graph=True)
        found.append(gradients((second[0] * second[0]).sum() + second[1].sum(), w).numpy())

    np.testing.assert_allclose(*found, rtol=1e-11)


def test_the_gradient_program_is_made_once_at_the_first_backward():
    f = compiled(net, X, W)
    for _ in range(3):
        value = f(leaf(X), leaf(W))[0]
        value.backward()

    (graph,) = f.graphs
    (backward,) = graph.backwards.values()
    assert 1 == len(backward.plans)


def test_no_gradient_program_is_made_before_backward():
    f = compiled(net, X, W)
    f(leaf(X), leaf(W))

    assert not f.graphs[0].backwards


def test_hooks_see_the_gradients_of_eager_mode():
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


def test_residuals_are_freed_by_backward_unless_the_graph_is_retained():
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


def test_a_result_changed_in_place_is_an_error_only_if_backward_reads_it():
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


def test_an_argument_changed_in_place_is_an_error():
    f, x = compiled(lambda x: np.sin(np.cos(x) * x) * x * 2, X), leaf(X)
    x = x * 1.0
    y = f(x)
    x += 1.0

    with pytest.raises(lt.TraceError, match="changed in place"):
        y.sum().backward()


def test_only_arguments_that_require_grad_get_a_gradient():
    f = compile_differentiable(lt.trace(net, X, W), [False, True])
    x, w = Variable(X), leaf(W)
    f(x, w)[0].backward()

    assert x.grad is None
    assert w.grad is not None


def test_an_opaque_function_may_capture_variables():
    hidden = leaf(np.array([1.0, 2.0]))
    op = lt.opaque(lambda x: x * hidden, lambda x: x, name="test_differentiable.scaled")
    fn = lt.trace(lambda x: np.exp(np.sin(op(x) * 2) * 2) * 3 + x, np.ones(2))
    f = compile_differentiable(fn, [False])

    f(Variable(np.ones(2))).sum().backward()
    found, hidden.grad = hidden.grad, None
    (np.exp(np.sin(hidden * 2) * 2) * 3).sum().backward()

    np.testing.assert_allclose(found.numpy(), hidden.grad.numpy())


def test_a_history_contains_the_differentiable_graph():
    f, w = compiled(lambda x, w: net(x, w)[0], X, W), leaf(W)
    fn = history(f(Variable(X), w), [w])

    assert ["constant", "differentiable_graph"] == [bind.op.name for bind in fn.binds]
    eager = leaf(W)
    net(Variable(X), eager)[0].backward()
    np.testing.assert_allclose(lt.grad(fn)(W), eager.grad.numpy(), rtol=1e-13)


def test_a_history_keeps_no_results_alive():
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


def test_writes_into_arguments_reach_the_caller():
    def add_one(x, y):
        x[0] = x[0] + 1.0
        return np.sin(np.exp(x) * y) * np.cos(y) + x

    found = []
    for function in (compile_differentiable(lt.trace(add_one, X, X), [False, True]), add_one):
        x, y = Variable(X.copy()), leaf(X)
        out = function(x, y)
        out.sum().backward()
        found.append((x.numpy(), out.numpy(), y.grad.numpy()))

    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other)


def variables(fn, args):
    """The arguments as Variables, floating ones requiring grad."""
    return [
        leaf(arg) if p.type.inexact and not p.type.weak else arg
        for p, arg in zip(fn.params, args, strict=True)
    ]


def slopes(call, inputs, *, again: bool):
    """The results of a call and the gradients of their sum; with ``again`` second gradients too."""
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
def test_generated_programs_agree_with_eager_mode(program):
    fn, args = program
    requires = [p.type.inexact and not p.type.weak for p in fn.params]
    try:
        expected = slopes(fn, variables(fn, args), again=True)
    except lt.LetirError:
        return  # no derivative rule, or none of second order
    with smallest_subgraphs():
        f = compile_differentiable(fn, requires, exact=True)

    found = slopes(f, variables(fn, args), again=True)

    assert_same(tuple(expected[0]), tuple(found[0]))
    assert len(expected) == len(found)
    for one, other in zip(expected[1:], found[1:], strict=True):
        for x, y in zip(one, other, strict=True):
            zero = [np.zeros(1) if g is None else g for g in (x, y)]
            np.testing.assert_allclose(*zero, rtol=1e-9, atol=1e-9, equal_nan=True)


# ---- jit ----


def test_jit_compiles_once_with_and_once_without_required_gradients():
    fast = jit(net)
    for _ in range(3):
        for requires in (True, False):
            w = Variable(W, requires)
            value = fast(X, w)[0]
            assert requires == value.requires_grad
    with lt.no_grad():
        assert not fast(X, leaf(W))[0].requires_grad

    assert 2 == fast.counters["compiles"]  # under no_grad nothing requires grad


def test_arrays_and_variables_have_separate_plans():
    fast = jit(net)

    assert type(fast(X, W)[0]) is np.float64
    assert isinstance(fast(X, Variable(W))[0], Variable)
    assert type(fast(X, W)[0]) is np.float64


def test_training_with_jit_agrees_with_training_without():
    def trained(function):
        w, b = leaf(W * 0.1), leaf(np.zeros(4))
        for _ in range(20):
            error = function(w, b)
            error.backward()
            with lt.no_grad():
                for p in (w, b):
                    p.data = p.data - 0.1 * p.grad.data
                    p.grad = None
        return error.numpy(), w.numpy(), b.numpy()

    def error(w, b):
        return ((np.tanh(X @ w + b) - X) ** 2).mean()

    fast = jit(error)
    for one, other in zip(trained(fast), trained(error), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert 1 == fast.counters["compiles"]


def test_guards_select_among_plans_of_variables():
    def branch(x):
        return (np.sin(x) * x * np.exp(x)).sum() if x.sum() > 0 else (x * x * np.cos(x)).sum()

    fast = jit(branch)
    for sign in (1, -1, 1, -1):
        found, expected = leaf(sign * X[2]), leaf(sign * X[2])
        fast(found).backward()
        branch(expected).backward()
        np.testing.assert_allclose(found.grad.numpy(), expected.grad.numpy())
    assert 2 == fast.counters["compiles"]


def test_threads_share_a_plan_and_its_gradient_program():
    fast, errors = jit(net), []
    expected = leaf(W)
    net(X, expected)[0].backward()

    def work():
        for _ in range(20):
            w = leaf(W)
            fast(X, w)[0].backward()
            if not np.allclose(w.grad.numpy(), expected.grad.numpy(), rtol=1e-12):
                errors.append(w.grad)

    threads = [threading.Thread(target=work) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]

    assert not errors
    assert 1 == fast.counters["compiles"]
    (entry,) = fast.__letir_executor__.cache.entries.values()
    assert [1] * len(entry.plans[0].graphs) == [len(g.backwards) for g in entry.plans[0].graphs]


def test_backward_with_workers_runs_graphs():
    fast, x = jit(net), leaf(X)
    total = sum(fast(x, leaf(W * k))[0] for k in (1.0, 0.5, 0.25))
    total.backward(workers=3)
    eager = leaf(X)
    sum(net(eager, leaf(W * k))[0] for k in (1.0, 0.5, 0.25)).backward()

    np.testing.assert_allclose(x.grad.numpy(), eager.grad.numpy(), rtol=1e-12)


def test_a_failed_call_does_not_affect_later_calls():
    def f(x, w):
        return np.linalg.cholesky(x @ x.T * np.sin(w).sum()).sum() * w.sum()

    fast = jit(f)
    good, bad = np.eye(3), np.zeros((3, 3))
    for _ in range(3):
        with pytest.raises(np.linalg.LinAlgError):
            fast(leaf(bad), leaf(np.ones(3)))
        x, y = leaf(good), leaf(good)
        fast(x, leaf(np.ones(3))).backward()
        f(y, leaf(np.ones(3))).backward()
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy())


def test_anomaly_detection_finds_nans_in_graphs():
    fast, x = jit(lambda x: np.sqrt(np.sin(x) * x * 2 * np.cos(x)).sum()), leaf(np.zeros(3))
    with np.errstate(all="ignore"), lt.eager.detect_anomaly():
        value = fast(x)
        with pytest.raises(FloatingPointError, match="nan"):
            value.backward()


def test_results_that_backward_does_not_read_may_be_written_into():
    fast, x = jit(lambda x: (np.sin(np.exp(x) * 2) * x, x.T)), leaf(X)
    y, _ = fast(x)
    with lt.no_grad():
        y[0] = 7.0
    y.sum().backward()

    eager = leaf(X)
    (np.sin(np.exp(eager) * 2) * eager).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), eager.grad.numpy())


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["float64", "float32", "complex128"]),
            st.sampled_from([(3,), (2, 3), (1,), (0,), ()]),
            st.booleans(),
            st.sampled_from([2.0, -1.5, 3, np.float32(2)]),
        ),
        max_size=5,
    )
)
def test_jit_on_variables_agrees_with_the_function_for_all_arguments(calls):
    def f(x, k):
        return (np.sin(x * k) * x + np.tanh(x) * k) * np.cos(x)

    fast = jit(f, exact=True)
    for dtype, shape, requires, k in calls:
        given = np.linspace(0.5, 1.0, int(np.prod(shape))).reshape(shape).astype(dtype)
        one, other = Variable(given, requires), Variable(given, requires)
        found, expected = fast(one, k), f(other, k)
        assert_same(expected.numpy(), found.numpy())
        if requires:
            for result in (found, expected):
                result.backward(np.ones(result.shape, result.dtype))
            rtol = 1e-5 if dtype == "float32" else 1e-12
            np.testing.assert_allclose(one.grad.numpy(), other.grad.numpy(), rtol=rtol)
            assert one.grad.dtype == other.grad.dtype


def test_a_users_function_keeps_its_own_backward():
    class Scaled(lt.Function):
        calls = 0

        @staticmethod
        def forward(ctx, x, factor):
            Scaled.calls += 1
            ctx.save_for_backward(x)
            ctx.factor = factor
            return x * x * factor

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * x * 2 * ctx.factor, None

    def f(x):
        return (Scaled.apply(np.exp(x) * 2, 3) * np.sin(x) * x).sum()

    found = []
    for function in (jit(f), f):
        x = leaf(X[0])
        first = gradients(function(x), x, create_graph=True)
        before = Scaled.calls
        found += [first.numpy(), gradients((first * first).sum(), x).numpy()]
        assert before == Scaled.calls  # backward does not run forward again

    np.testing.assert_allclose(found[0], found[2])
    np.testing.assert_allclose(found[1], found[3])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: lt.cond(x.sum() > 0, lambda x: np.sin(x) * x, np.cos, x) * x * np.exp(x) * 3,
        lambda x: lt.scan(lambda c, a: (np.tanh(c + a), c.sum()), np.zeros(4), x)[1] * 2 + 1,
        lambda x: lt.fori_loop(0, 5, lambda i, c: np.sin(c) * c, x) * np.exp(x) * x + x,
        lambda x: lt.map(lambda r: np.sin(r) * r.sum() * 2, x) * x + x * 2,
        lambda x: lt.checkpoint(lambda x: np.sin(np.exp(x) * x) * 2)(x) * x * np.cos(x),
    ],
    ids=["cond", "scan", "fori_loop", "map", "checkpoint"],
)
def test_control_flow_in_graphs_has_the_gradients_of_eager_mode(f):
    fn = lt.trace(f, X)
    found = slopes(jit(f), [leaf(X)], again=True)
    expected = slopes(fn, [leaf(X)], again=True)

    for one, other in zip(expected[1:], found[1:], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11)


def test_a_dropped_plan_is_freed_at_once():
    constant = np.arange(4.0)
    f = compile_differentiable(lt.trace(lambda x: np.exp(np.sin(x) * 2) * x * constant, X), [True])
    f(leaf(X)).sum().backward()
    gc.collect()
    gc.disable()
    try:
        ref = weakref.ref(f.graphs[0])
        del f
        assert ref() is None
    finally:
        gc.enable()


def test_results_that_share_memory_change_together():
    def f(x):
        y = np.exp(np.sin(x) * 2) * x + 1
        return y, lt.stop_gradient(y)

    fast = jit(f)
    y, z = fast(leaf(X))
    before = z.numpy().copy()
    with lt.no_grad():
        y += 1.0

    np.testing.assert_allclose(z.numpy(), before + 1.0)
    found = []
    for function in (f, fast):
        x = leaf(X)
        y, z = function(x)
        (y * z).sum().backward()
        found.append(x.grad.numpy())
    np.testing.assert_allclose(*found)


@pytest.mark.parametrize(
    "y", [np.ones(4), 2.0, lt.Variable(np.ones(4))], ids=["array", "number", "variable"]
)
def test_arguments_that_require_no_grad_may_be_arrays_numbers_and_variables(y):
    def f(x, y):
        return (x * np.sin(y).sum()) ** 2 + np.cos(y).sum() * x

    outs, grads = [], []
    for called in (f, lt.jit(f)):
        x = leaf(np.arange(3.0))
        outs.append(called(x, y))
        outs[-1].sum().backward()
        grads.append(x.grad.array)

    assert_same(outs[0].array, outs[1].array)
    assert_same(*grads)


def test_arrays_and_numbers_may_stand_next_to_variables_in_functions_that_write():
    def f(x, y, n):
        y[:] = n
        return (x * np.sin(y).sum()) ** 2

    for called in (f, jit(f)):
        y = np.ones(4)
        found = called(leaf(np.arange(3.0)), y, 2.0)
        np.testing.assert_allclose((np.arange(3.0) * 4 * np.sin(2.0)) ** 2, found.array, rtol=1e-14)
        assert_same(np.full(4, 2.0), y)

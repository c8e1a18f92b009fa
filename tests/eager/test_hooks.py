"""[E2] Hooks of Variables and of tape nodes."""

import numpy as np
import pytest

import letir as lt
from letir import Variable
from letir.eager import enable_grad

A = np.array([0.5, 2.0])


def leaf(array=A):
    return Variable(array, requires_grad=True)


def test_hooks_of_one_node_run_in_the_documented_order():
    """[E2] The sum, hooks of the Variable, pre-hooks in their order, the node, post-hooks."""
    events = []
    x = leaf()
    y = x * 3.0
    y.register_hook(lambda g: events.append(("hook", g.data.tolist())))
    y.grad_fn.register_prehook(lambda gs: events.append(("pre 1", gs[0].data.tolist())))

    def second(gs):
        events.append(("pre 2", gs[0].data.tolist()))
        return (gs[0] * 10.0,)

    y.grad_fn.register_prehook(second)

    def post(inputs, outputs):
        events.append(("post", inputs[0].data.tolist(), inputs[1], outputs[0].data.tolist()))

    y.grad_fn.register_hook(post)
    x.register_hook(lambda g: events.append(("leaf", g.data.tolist())))
    (y + y).sum().backward()

    assert [
        ("hook", [2.0, 2.0]),
        ("pre 1", [2.0, 2.0]),
        ("pre 2", [2.0, 2.0]),
        ("post", [60.0, 60.0], None, [20.0, 20.0]),
        ("leaf", [60.0, 60.0]),
    ] == events
    np.testing.assert_allclose([60.0, 60.0], x.grad.data)


def test_a_hook_of_a_variable_sees_the_full_sum_once():
    seen = []
    x = leaf()
    y = np.sin(x)
    y.register_hook(lambda g: seen.append(g.data))
    (y * 2.0 + y * 3.0 + y).sum().backward()

    assert 1 == len(seen)
    np.testing.assert_allclose([6.0, 6.0], seen[0])


def test_a_hook_of_a_leaf_may_replace_its_gradient():
    x = leaf()
    x.register_hook(lambda g: g * 2.0)
    x.register_hook(lambda g: g + 1.0)
    (x * 3.0 + x).sum().backward()

    np.testing.assert_allclose([9.0, 9.0], x.grad.data)


def test_a_post_hook_may_replace_the_outgoing_gradients():
    x, y = leaf(), leaf()
    z = x * y
    z.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 0.0, inputs[1]))
    z.sum().backward()

    np.testing.assert_array_equal([0.0, 0.0], x.grad.data)
    np.testing.assert_allclose(A, y.grad.data)


def test_a_hook_that_returns_none_keeps_the_gradient():
    x = leaf()
    x.register_hook(lambda g: None)
    (x * 3.0).sum().backward()

    np.testing.assert_allclose([3.0, 3.0], x.grad.data)


def test_a_handle_removes_its_hook():
    seen = []
    x = leaf()
    handle = x.register_hook(seen.append)
    with x.register_hook(seen.append):
        (x * 3.0).sum().backward()
    assert 2 == len(seen)
    handle.remove()
    handle.remove()
    (x * 3.0).sum().backward()

    assert 2 == len(seen)


@pytest.mark.parametrize(
    ("new", "error"),
    [
        (np.ones(3), lt.ShapeError),
        (np.ones(2, np.float32), lt.DTypeError),
        (np.ones(2, int), lt.DTypeError),
        ("text", lt.DTypeError),
    ],
)
def test_a_replacement_of_another_type_is_an_error_that_names_the_hook(new, error):
    def wrong(grad):
        return new

    x = leaf()
    x.register_hook(wrong)
    with pytest.raises(error, match="wrong"):
        (x * 3.0).sum().backward()


def test_a_pre_hook_must_return_as_many_gradients_as_it_got():
    def wrong(grads):
        return (*grads, None)

    y = leaf() * 3.0
    y.grad_fn.register_prehook(wrong)
    with pytest.raises(lt.ShapeError, match=r"wrong.*returned 2 gradients, expected 1"):
        y.sum().backward()


def test_pre_hooks_see_none_for_missing_gradients():
    """[E2] Only one of several results has a gradient."""
    seen = []
    x = leaf(np.arange(4.0))
    first, _ = np.split(x, 2)
    first.grad_fn.register_prehook(lambda gs: seen.append([g is None for g in gs]))
    first.grad_fn.register_hook(lambda inputs, outputs: seen.append([g is None for g in outputs]))
    first.sum().backward()

    assert [[False, True], [False, True]] == seen


def test_hooks_of_several_results_see_their_own_gradients():
    seen = {}
    x = leaf(np.arange(4.0))
    parts = np.split(x, 2)
    for i, part in enumerate(parts):
        part.register_hook(lambda g, i=i: seen.update({i: g.data.tolist()}))
    (parts[0] * 2.0 + parts[1] * 3.0).sum().backward()

    assert {0: [2.0, 2.0], 1: [3.0, 3.0]} == seen


def test_a_hook_records_history_under_create_graph():
    x = leaf()
    x.register_hook(lambda g: g * x)
    (x * x).sum().backward(create_graph=True)
    dx, x.grad = x.grad, None
    (dx).sum().backward()

    np.testing.assert_allclose(4 * A * A, x.grad.data)


def test_a_hook_that_raises_leaves_no_gradient_behind():
    x = leaf()
    y = x * x

    def fail(grad):
        raise KeyError("mine")

    handle = y.register_hook(fail)
    with pytest.raises(KeyError, match="mine"):
        y.sum().backward()
    handle.remove()
    y.sum().backward()

    np.testing.assert_allclose(2 * A, x.grad.data)


def test_retain_grad_keeps_the_gradient_of_an_intermediate_value_after_its_hooks():
    x = leaf()
    y = x * 3.0
    z = y * 2.0
    y.retain_grad()
    y.register_hook(lambda g: g * 10.0)
    z.sum().backward()

    np.testing.assert_allclose([20.0, 20.0], y.grad.data)
    assert z.grad is None


def test_hooks_require_a_variable_that_requires_grad():
    for ask in (Variable(A).retain_grad, lambda: Variable(A).register_hook(print)):
        with pytest.raises(lt.TraceError, match="does not require grad"):
            ask()


def test_a_hook_must_be_a_function():
    with pytest.raises(lt.TraceError, match="a hook must be a function"):
        leaf().register_hook(3)


def test_a_hook_may_run_backward():
    x, w = leaf(), leaf()

    @enable_grad()
    def inner(grad):
        (w * grad).sum().backward()

    x.register_hook(inner)
    (x * 3.0).sum().backward()

    np.testing.assert_allclose([3.0, 3.0], w.grad.data)

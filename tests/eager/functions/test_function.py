"""[E1] ``Function``: operations of users with a forward and a backward."""

import numpy as np
import pytest

import letir as lt
from letir import Function, Variable
from letir.eager import gradients, history, once_differentiable

A, B = np.array([1.0, 2.0]), np.array([3.0, 5.0])


def leaf(array):
    return Variable(array, requires_grad=True)


class Example(Function):
    """t1 + s*t2 + t1*t2."""

    @staticmethod
    def forward(ctx, t1, s, t2):
        ctx.s = s
        ctx.save_for_backward(t1, t2)
        return t1 + s * t2 + t1 * t2

    @staticmethod
    def backward(ctx, grad):
        t1, t2 = ctx.saved_tensors
        return grad + grad * t2, None, grad * ctx.s + grad * t1


class Traceable(Example):
    traceable = True


def make(backward, forward=None, **fields):
    """A Function of one array with this backward."""
    forward = forward or (lambda ctx, x: x * 2.0)
    return type(
        "Made",
        (Function,),
        {"forward": staticmethod(forward), "backward": staticmethod(backward), **fields},
    )


@pytest.mark.parametrize("function", [Example, Traceable])
def test_the_example_of_the_docs_computes_and_differentiates(function):
    """[E1]"""
    x, y, g = leaf(A), leaf(B), np.array([0.5, -1.0])
    z = function.apply(x, 3, y)
    z.backward(g)

    np.testing.assert_allclose(A + 3 * B + A * B, z.data)
    np.testing.assert_allclose(g + g * B, x.grad.data)
    np.testing.assert_allclose(g * 3 + g * A, y.grad.data)


@pytest.mark.parametrize("function", [Example, Traceable])
def test_the_backward_of_the_example_is_differentiated(function):
    x, y = leaf(A), leaf(B)
    (dx,) = gradients(function.apply(x, 3, y).sum(), [x], create_graph=True)

    np.testing.assert_allclose([1.0, 1.0], gradients(dx.sum(), y).data)


@pytest.mark.parametrize("function", [Example, Traceable])
def test_a_function_can_be_traced(function):
    """[B12]"""
    program = lt.trace(lambda a, b: function.apply(a, 3, b).sum(), A, B)
    by_a, by_b = lt.grad(program, (0, 1))(A, B)

    np.testing.assert_allclose(1 + B, by_a)
    np.testing.assert_allclose(3 + A, by_b)


def test_a_call_in_a_trace_is_one_operation():
    """[B12]"""
    program = lt.trace(lambda a, b: Example.apply(a, 3, b), A, B)

    assert [f"{__name__}.Example"] == [bind.op.name for bind in program.binds]
    assert lt.parse(lt.dumps(program)) == program
    np.testing.assert_array_equal(A + 3 * B + A * B, program(A, B))


def test_a_call_with_an_untraceable_backward_is_one_operation():
    """[B12]"""
    program = lt.grad(lt.trace(lambda a, b: Example.apply(a, 3, b).sum(), A, B))
    names = [bind.op.name for bind in program.binds]

    assert f"{__name__}.Example.backward" in names
    assert 1 == sum("Example" in name for name in names)


def test_a_call_is_one_operation_in_a_history():
    x, y = leaf(A), leaf(B)
    program = history(Example.apply(x, 3, y) * 2.0)

    assert [f"{__name__}.Example", "mul"] == [bind.op.name for bind in program.binds]
    np.testing.assert_allclose(2 * (B + 3 * A + A * B), program(B, A))


def test_saving_twice_is_an_error():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_backward(x)
        return x * 1.0

    with pytest.raises(lt.TraceError, match="once"):
        make(None, forward).apply(leaf(A))


def test_none_may_be_saved_for_backward():
    def forward(ctx, x):
        ctx.save_for_backward(x, None)
        return x * 1.0

    def backward(ctx, grad):
        x, nothing = ctx.saved_tensors
        assert nothing is None
        return grad * x

    x = leaf(A)
    make(backward, forward).apply(x).sum().backward()

    np.testing.assert_allclose(A, x.grad.data)


def test_a_saved_value_that_was_changed_in_place_is_an_error():
    x = leaf(A)
    y = x * 1.0
    z = Example.apply(y, 1, B)
    y += 1

    with pytest.raises(lt.TraceError, match="changed in place"):
        z.sum().backward()


def test_a_saved_result_that_was_changed_in_place_is_an_error():
    def forward(ctx, x):
        y = np.exp(x)
        ctx.save_for_backward(y)
        return y

    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y

    y = make(backward, forward).apply(leaf(A))
    y *= 2.0

    with pytest.raises(lt.TraceError, match="changed in place"):
        y.sum().backward()


def test_a_saved_result_keeps_its_history():
    def forward(ctx, x):
        y = np.exp(x)
        ctx.save_for_backward(y)
        return y

    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y

    x = leaf(A)
    first = gradients(make(backward, forward).apply(x).sum(), x, create_graph=True)

    np.testing.assert_allclose(np.exp(A), gradients(first.sum(), x).data)


def test_a_dirty_argument_is_changed_and_gets_a_gradient():
    def forward(ctx, x):
        x *= 2.0
        ctx.mark_dirty(x)
        return x

    x = leaf(A.copy())
    y = x * 1.0
    z = make(lambda ctx, grad: grad * 2.0, forward).apply(y)
    z.sum().backward()

    assert z is y
    np.testing.assert_allclose(2 * A, y.data)
    np.testing.assert_allclose([2.0, 2.0], x.grad.data)


def test_a_leaf_cannot_be_marked_dirty():
    def forward(ctx, x):
        x *= 2.0
        ctx.mark_dirty(x)
        return x

    with pytest.raises(lt.TraceError, match="leaf"):
        make(None, forward).apply(leaf(A.copy()))


def test_a_dirty_argument_must_be_returned():
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x * 2.0

    with pytest.raises(lt.TraceError, match="dirty"):
        make(None, forward).apply(leaf(A) * 1.0)


def test_backward_gets_zeros_for_a_nondifferentiable_result():
    seen = []

    def forward(ctx, x):
        low = x - 1.0
        ctx.mark_non_differentiable(low)
        return x * 2.0, low

    def backward(ctx, grad, none):
        seen.append(none.data)
        return grad * 2.0

    x = leaf(A)
    y, low = make(backward, forward).apply(x)
    assert not low.requires_grad
    y.sum().backward()

    np.testing.assert_array_equal(np.zeros(2), seen[0])
    np.testing.assert_allclose([2.0, 2.0], x.grad.data)


def test_backward_gets_zeros_for_an_unused_result():
    def backward(ctx, first, second):
        np.testing.assert_array_equal(np.zeros(2), first.data)
        return second * 3.0

    x = leaf(A)
    _, y = make(backward, lambda ctx, x: (x * 1.0, x * 3.0)).apply(x)
    y.sum().backward()

    np.testing.assert_allclose([3.0, 3.0], x.grad.data)


def test_needs_input_grad_marks_inputs_that_require_grad():
    asked = []

    class Asked(Function):
        @staticmethod
        def forward(ctx, x, y, s):
            asked.append(ctx.needs_input_grad)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    Asked.apply(leaf(A), Variable(B), 3)

    assert [(True, False, False)] == asked


@pytest.mark.parametrize("surplus", [(), (None,), (None, None)])
def test_surplus_trailing_nones_are_dropped(surplus):
    x = leaf(A)
    make(lambda ctx, grad: (grad * 2.0, *surplus)).apply(x).sum().backward()

    np.testing.assert_allclose([2.0, 2.0], x.grad.data)


@pytest.mark.parametrize("found", [(), (None, A), (A, A, None)])
def test_a_wrong_number_of_gradients_is_an_error(found):
    with pytest.raises(lt.ShapeError, match="gradients for the 1 arguments"):
        make(lambda ctx, grad: found).apply(leaf(A)).sum().backward()


def test_a_gradient_for_an_argument_that_is_not_an_array_is_an_error():
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, s):
            return x * s

        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    with pytest.raises(lt.DTypeError, match="argument 1, which is not an array"):
        Wrong.apply(leaf(A), 2.0).sum().backward()


@pytest.mark.parametrize(
    ("gradient", "error"), [(np.ones(3), lt.ShapeError), (np.ones(2, np.float32), lt.DTypeError)]
)
def test_a_returned_gradient_of_another_type_is_an_error(gradient, error):
    """[D9]"""
    with pytest.raises(error, match=r"Made.* argument 0, expected float64\[2\]"):
        make(lambda ctx, grad: gradient).apply(leaf(A)).sum().backward()


def test_none_in_the_middle_does_not_shift_later_gradients():
    """[D9]"""

    class Middle(Function):
        @staticmethod
        def forward(ctx, x, y, z):
            return x + y + z

        @staticmethod
        def backward(ctx, grad):
            return grad, None, 3.0 * grad

    x, y, z = leaf(A), leaf(A), leaf(A)
    Middle.apply(x, y, z).sum().backward()

    np.testing.assert_allclose([1.0, 1.0], x.grad.data)
    np.testing.assert_array_equal(np.zeros(2), y.grad.data)
    np.testing.assert_allclose([3.0, 3.0], z.grad.data)
    zeros = gradients(Middle.apply(x, y, z).sum(), y)
    np.testing.assert_array_equal(np.zeros(2), zeros.data)


@pytest.mark.parametrize("workers", [1, 2])
def test_functions_before_one_that_returns_none_get_zeros(workers):
    """[D9]"""
    seen = []

    class Upstream(Function):
        @staticmethod
        def forward(ctx, x):
            return 2.0 * x

        @staticmethod
        def backward(ctx, grad):
            seen.append(grad.numpy())
            return 2.0 * grad

    x = leaf(A)
    make(lambda ctx, grad: None).apply(Upstream.apply(x)).sum().backward(workers=workers)

    np.testing.assert_array_equal([np.zeros(2)], seen)
    np.testing.assert_array_equal(np.zeros(2), x.grad.data)


def test_a_second_derivative_of_a_once_differentiable_function_is_an_error_when_taken():
    """[E1]"""

    @once_differentiable
    def backward(ctx, grad):
        assert not grad.requires_grad or not (grad * 1.0).requires_grad
        return grad * ctx.x

    def forward(ctx, x):
        ctx.x = x.data
        return x * x / 2

    x = leaf(A)
    y = make(backward, forward).apply(x)
    first = gradients(y.sum(), x, create_graph=True)

    np.testing.assert_allclose(A, first.data)
    with pytest.raises(lt.TraceError, match="once_differentiable"):
        first.sum().backward()


def test_forward_records_nothing_and_backward_records_only_under_create_graph():
    recorded = []

    def forward(ctx, x):
        recorded.append((x * 2.0).requires_grad)
        return x * 2.0

    def backward(ctx, grad):
        recorded.append((grad * 2.0).requires_grad)
        return grad * 2.0

    x = leaf(A)
    function = make(backward, forward)
    function.apply(x).sum().backward()
    gradients((function.apply(x) * x).sum(), x, create_graph=True)

    assert [False, False, False, True] == recorded


def test_arguments_that_are_not_arrays_are_attributes_of_the_operation():
    program = lt.trace(lambda x: Example.apply(x, 3, B), A)

    assert "3" in str(program.binds[-1].attrs["arguments"])


def test_an_unhashable_argument_works_outside_a_trace_and_is_refused_inside():
    class Weighted(Function):
        @staticmethod
        def forward(ctx, x, weights):
            ctx.weights = weights
            return x * weights["w"]

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.weights["w"], None

    x = leaf(A)
    Weighted.apply(x, {"w": 3.0}).sum().backward()

    np.testing.assert_allclose([3.0, 3.0], x.grad.data)
    with pytest.raises(lt.DTypeError, match="hashable"):
        lt.trace(lambda x: Weighted.apply(x, {"w": 3.0}), A)


def test_a_function_of_a_traced_value_computes_while_tracing_is_paused():
    seen = []

    def paused(x):
        with lt.pause_tracing():
            seen.append(make(None).apply(x))
        return x + 1

    program = lt.trace(paused, A)

    assert ["add"] == [bind.op.name for bind in program.binds]
    np.testing.assert_array_equal([2 * A], seen)
    with pytest.raises(lt.TraceError, match="while tracing is paused"):
        lt.trace(paused, lt.ShapeDtype((2,)))


def test_results_of_other_kinds():
    """An array becomes a Variable, a number stays, an argument becomes a Variable of its own."""

    def array_and_number(ctx, x):
        return x.data * 2.0, 3

    x = leaf(A)
    y, n = make(lambda ctx, g, h: g * 2.0, array_and_number).apply(x)
    y.sum().backward()
    assert (n, type(y)) == (3, Variable)
    np.testing.assert_array_equal(x.grad.data, [2.0, 2.0])

    z = make(lambda ctx, g: g * 3.0, lambda ctx, x: x).apply(w := leaf(A))
    z.sum().backward()
    assert z is not w
    np.testing.assert_array_equal(w.grad.data, [3.0, 3.0])


def test_a_view_of_an_argument_gets_an_edge_of_its_own():
    def backward(ctx, g):
        return np.stack([g.data * 5.0, 0.0 * g.data])

    x = leaf(np.arange(4.0).reshape(2, 2))
    make(backward, lambda ctx, x: x[0]).apply(x * 1.0).sum().backward()

    np.testing.assert_array_equal(x.grad.data, [[5.0, 5.0], [0.0, 0.0]])


def test_a_view_cannot_be_marked_dirty():
    def forward(ctx, x):
        x *= 2.0
        ctx.mark_dirty(x)
        return x

    whole = leaf(np.ones((2, 2))) * 1.0
    with pytest.raises(lt.TraceError, match="a view cannot be marked as dirty"):
        make(None, forward).apply(whole[0])


def test_a_missing_backward_is_named_when_it_is_called():
    function = type("Made", (Function,), {"forward": staticmethod(lambda ctx, x: x * 2.0)})

    with pytest.raises(lt.MissingRule, match=r"must define backward\(ctx, \*grads\)"):
        function.apply(leaf(A)).sum().backward()

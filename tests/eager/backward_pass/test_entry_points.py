"""``backward`` and ``gradients``, the entry points of the backward pass."""

import threading

import numpy as np
import pytest

import letir as lt
from letir import Variable
from letir.eager import backward, detect_anomaly, gradients

A, B = np.array([0.5, 2.0]), np.array([3.0, -1.0])


def leaf(array=A):
    return Variable(array, requires_grad=True)


# ---- accumulation and retained graphs ----


def test_grad_accumulates_until_it_is_zeroed():
    x = leaf()
    for _ in range(3):
        (x * B).sum().backward()

    np.testing.assert_allclose(3 * B, x.grad.data)
    x.zero_grad()
    assert x.grad is None


def test_a_second_backward_is_an_error_that_names_retain_graph():
    """[E4]"""
    y = (leaf() * leaf(B)).sum()
    y.backward()

    with pytest.raises(
        lt.TraceError, match=r"mul for the second time.*\n  at .*test_entry_points.py"
    ):
        y.backward()


def test_retain_graph_allows_a_second_backward():
    """[E4]"""
    x = leaf()
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()

    np.testing.assert_allclose(4 * A, x.grad.data)


def test_nodes_without_residuals_may_be_shared_by_two_backwards():
    x = leaf()
    shared = x + 1.0
    (shared * 2.0).sum().backward()
    (shared * 3.0).sum().backward()

    np.testing.assert_allclose([5.0, 5.0], x.grad.data)


def test_cotangents_of_shared_subexpressions_are_summed():
    x = leaf()
    y = np.sin(x)
    (y * y + y).sum().backward()

    np.testing.assert_allclose((2 * np.sin(A) + 1) * np.cos(A), x.grad.data)


def test_thirty_doublings_are_thirty_nodes():
    x = leaf()
    y = x
    for _ in range(30):
        y = y + y
    y.sum().backward()

    np.testing.assert_allclose([2.0**30] * 2, x.grad.data)


def test_gradients_of_two_leaves_share_no_memory():
    """[C2] A rule may return the same array for both operands."""
    x, y = leaf(np.ones((2, 2))), leaf(np.ones((2, 2)))
    g = np.ones((2, 2))
    (x.T + y).backward(g)
    x.grad.data[0, 0] = 7.0

    assert 1.0 == y.grad.data[0, 0] == g[0, 0]


def test_gradients_with_a_history_are_distinct_variables():
    """[C2]"""
    x, y = leaf(), leaf()
    (x + y).backward(np.ones(2), create_graph=True)
    (w := x * y).backward(leaf(np.ones(2)), create_graph=True)
    dx, dy = gradients((x + y).sum(), (x, y), create_graph=True)

    assert w.requires_grad
    assert x.grad is not y.grad
    assert dx is not dy
    assert not np.shares_memory(dx.data, dy.data)


# ---- given cotangents ----


def test_backward_from_a_non_scalar_needs_a_gradient():
    x = leaf()
    with pytest.raises(lt.ShapeError, match="not a real scalar, needs a gradient"):
        (x * x).backward()
    (x * x).backward(B)

    np.testing.assert_allclose(2 * A * B, x.grad.data)


@pytest.mark.parametrize(
    ("gradient", "error"), [(np.ones(3), lt.ShapeError), (np.ones(2, np.float32), lt.DTypeError)]
)
def test_a_given_gradient_of_another_type_is_an_error(gradient, error):
    x = leaf()
    with pytest.raises(error, match=r"float64\[2\] is expected"):
        (x * x).backward(gradient)


def test_several_outputs_take_a_gradient_each():
    x = leaf()
    backward([x * 2.0, (x * x).sum()], [B, None])

    np.testing.assert_allclose(2 * B + 2 * A, x.grad.data)


def test_a_complex_result_needs_a_gradient():
    x = leaf(np.array([1.0 + 2.0j]))
    with pytest.raises(lt.ShapeError, match="not a real scalar"):
        (x * x).sum().backward()
    (x * x).sum().backward(1.0 + 0j)

    np.testing.assert_allclose([2.0 + 4.0j], x.grad.data)  # not conjugated, as in JAX and autograd


def test_gradients_of_float32_are_float32():
    x = leaf(np.ones(2, np.float32))
    (x * 2.0 + 1).sum().backward()

    assert np.float32 == x.grad.dtype


# ---- gradients with respect to inputs ----


def test_gradients_leaves_grad_attributes_alone():
    x, y = leaf(), leaf(B)
    dx, dy = gradients((x * y).sum(), (x, y))

    np.testing.assert_allclose(B, dx.data)
    np.testing.assert_allclose(A, dy.data)
    assert x.grad is None
    assert y.grad is None


def test_gradients_with_respect_to_intermediate_values():
    x = leaf()
    y = np.sin(x)
    z = y * y
    dy, dx = gradients(z.sum(), [y, x])

    np.testing.assert_allclose(2 * np.sin(A), dy.data)
    np.testing.assert_allclose(2 * np.sin(A) * np.cos(A), dx.data)


def test_the_gradient_with_respect_to_the_output_itself_is_one():
    x = leaf()
    y = (x * x).sum()

    assert 1.0 == gradients(y, y).item()


def test_an_input_on_which_nothing_depends_is_an_error_or_none():
    x, unused = leaf(), leaf()
    with pytest.raises(lt.TraceError, match="no output depends on input 1"):
        gradients((x * x).sum(), [x, unused])

    dx, none = gradients((x * x).sum(), [x, unused], allow_unused=True)
    np.testing.assert_allclose(2 * A, dx.data)
    assert none is None


def test_an_input_that_requires_no_grad_is_an_error():
    with pytest.raises(lt.TraceError, match="input 0 must be a Variable that requires grad"):
        gradients(leaf().sum(), Variable(A))


def test_nodes_that_do_not_lead_to_the_inputs_do_not_run():
    ran = []
    x, y = leaf(), leaf()
    aside = np.exp(y)
    aside.grad_fn.register_hook(lambda *_: ran.append("exp"))
    gradients((np.sin(x) * aside).sum(), x)

    assert [] == ran


# ---- derivatives of derivatives ----


def test_derivatives_to_the_fourth_order():
    x = leaf()
    y, expected = np.sin(x), [np.cos(A), -np.sin(A), -np.cos(A), np.sin(A)]
    for k in range(4):
        y = gradients(y.sum(), x, create_graph=True)
        np.testing.assert_allclose(expected[k], y.data)


def test_backward_with_create_graph_gives_gradients_with_a_history():
    x = leaf()
    (x**3).sum().backward(create_graph=True)
    dx, x.grad = x.grad, None
    dx.sum().backward()

    np.testing.assert_allclose(6 * A, x.grad.data)


def test_a_given_gradient_may_have_a_history():
    x, v = leaf(), leaf(B)
    (dx,) = gradients(x * x, [x], [v], create_graph=True)

    np.testing.assert_allclose(2 * A, gradients(dx.sum(), v).data)


def test_a_hessian_vector_product():
    x = leaf()
    (dx,) = gradients((x[0] ** 2 * x[1]), [x], create_graph=True)
    product = gradients((dx * B).sum(), x)

    hessian = np.array([[2 * A[1], 2 * A[0]], [2 * A[0], 0.0]])
    np.testing.assert_allclose(hessian @ B, product.data)


# ---- several results ----


@pytest.mark.parametrize("used", [(0,), (1,), (2,), (0, 2), (0, 1, 2)])
def test_unused_results_have_zero_cotangents(used):
    """[D7]"""
    x = leaf(np.arange(6.0))
    parts = np.split(x, 3)
    sum((parts[i] * (i + 1.0)).sum() for i in used).backward()

    expected = np.repeat([i + 1.0 if i in used else 0.0 for i in range(3)], 2)
    np.testing.assert_allclose(expected, x.grad.data)


def test_the_second_derivative_of_one_of_several_results():
    x = leaf(np.arange(1.0, 5.0))
    first, _ = np.split(x, 2)
    (dx,) = gradients((first**3).sum(), [x], create_graph=True)

    np.testing.assert_allclose([6.0, 12.0, 0.0, 0.0], gradients(dx.sum(), x).data)


# ---- operations without a derivative ----


def test_integer_and_boolean_results_require_no_grad():
    """[D1]"""
    x = leaf()

    assert not (x > 1.0).requires_grad
    assert not np.argmax(x).requires_grad
    assert not x.astype(int).requires_grad
    assert not lt.stop_gradient(x).requires_grad


def test_only_floating_variables_require_grad():
    with pytest.raises(lt.DTypeError, match=r"this is int64\[2\]"):
        Variable(np.arange(2), requires_grad=True)


def test_backward_names_an_operation_without_a_rule():
    double = lt.opaque(lambda x: 2 * x, lt.ShapeDtype(2), name="tests.no_rule")
    y = double(leaf())

    with pytest.raises(lt.MissingRule, match=r"(?s)tests.no_rule.*test_entry_points.py"):
        y.sum().backward()


# ---- anomaly detection ----


def test_anomaly_detection_names_the_line_of_the_first_nan_in_backward():
    x = leaf(np.array([0.0]))
    with np.errstate(all="ignore"), detect_anomaly():
        y = np.log(x)
        z = (y * 0.0).sum()
        with pytest.raises(FloatingPointError, match=r"log.*\n  at .*test_entry_points.py:\d+"):
            z.backward()


def test_a_nan_passes_without_anomaly_detection():
    x = leaf(np.array([0.0]))
    with np.errstate(all="ignore"):
        (np.log(x) * 0.0).sum().backward()

    assert np.isnan(x.grad.item())


# ---- threads ----


def test_threads_record_graphs_of_their_own():
    answers = {}

    def act(i):
        x = leaf(np.full(3, float(i)))
        y = x
        for _ in range(200):
            y = np.sin(y) * x
        y.sum().backward()
        answers[i] = x.grad.data

    threads = [threading.Thread(target=act, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = dict(answers)
    for i in range(4):
        act(i)
        np.testing.assert_array_equal(answers[i], together[i])


def test_two_threads_may_run_backward_through_a_shared_part():
    x = leaf()
    shared = np.sin(x)
    outs = [(shared * float(i)).sum() for i in range(1, 5)]
    threads = [threading.Thread(target=out.backward, kwargs={"retain_graph": True}) for out in outs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    np.testing.assert_allclose(10 * np.cos(A), x.grad.data)


def test_gradients_through_a_result_that_its_own_rule_reads_add_up():
    """The rule of an operation with several results reads one result, and the user uses it too."""

    def rule(cts, outs, x):
        square, cube = cts
        found = 0.0 if square is None else square * 2 * x
        return (found if cube is None else found + cube * 3 * outs[0],)

    both = lt.primitive(
        "test_backward.both",
        lambda xp, x: (x * x, x * x * x),
        lambda x: (x, x),
        vjp=rule,
        results=lambda: 2,
    )
    x = Variable(2.0, requires_grad=True)
    square, cube = both(x)
    slope = gradients(cube, x, create_graph=True)

    assert 32.0 == gradients(slope + 5 * square, x).numpy()  # 6 x + 10 x

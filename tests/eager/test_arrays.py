"""Variables behave like NumPy arrays."""

import copy
import io
import math
import operator
import pickle

import numpy as np
import pytest

import letir as lt
import letir.numpy as lnp
from letir import Variable
from letir.eager import gradients, no_grad
from letir.eager.unrecorded_calls import call_on_arrays, unwrap_arrays
from letir.testing import assert_same
from tests.each_sample import in_one_test

A, B = np.array([[0.5, 2.0, 1.5]]), np.array([[3.0], [1.0]])


def leaf(array=A):
    return Variable(array, requires_grad=True)


EXPRESSIONS = {
    "operators": lambda x, y: -x + y * 2 - x / y + x**2 + 3 // y + 5 % x + abs(-y) + (1 - x),
    "reflected": lambda x, y: 2.0 + x * (3 - y) / (1.0 / x) + 2.0**y,
    "matmul": lambda x, y: x.T @ x + (x @ x.T).sum(),
    "methods": lambda x, y: x.sum(axis=1) + y.mean() + x.max() + x.reshape(3).min() + x.T.ravel(),
    "functions": lambda x, y: np.where(x > y, np.sin(x), np.log(y)) + np.exp(x).sum(0),
    "stacks": lambda x, y: np.concatenate([x, x * 2]) + np.stack([x[0], x[0]]) * y,
    "indices": lambda x, y: x[0, 1:] * y[0] + x[:, [0, 2]] + y[-1],
    "lists": lambda x, y: x * [1.0, 2.0, 3.0] + [[1.0], [2.0]] * y,
    "arrays": lambda x, y: np.ones(3) * x + y - np.arange(3.0),
    "scalars": lambda x, y: x * np.float64(2.0) + y * True + x[0, 0] * 1j,
    "linear algebra": lambda x, y: np.einsum("ij,kj->ik", x, x) + np.dot(y.T, y),
    "axes": lambda x, y: np.moveaxis(x[None], 0, 1).squeeze(1) + np.swapaxes(y, 0, 1).sum(),
    "constructors": lambda x, y: x * np.ones_like(x) + np.full_like(x, 3.0) + np.zeros_like(y),
}


@in_one_test
@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.parametrize("requires_grad", [True, False])
def test_expressions_compute_what_numpy_computes(name, requires_grad):
    expression = EXPRESSIONS[name]
    x, y = Variable(A, requires_grad=requires_grad), Variable(B, requires_grad=requires_grad)

    found = expression(x, y)

    assert isinstance(found, Variable)
    assert_same(expression(A, B), found.data)


@pytest.mark.parametrize("name", [name for name in EXPRESSIONS if name != "scalars"])
def test_expressions_have_the_gradients_of_a_traced_function(name):
    expression = EXPRESSIONS[name]
    x, y = leaf(), leaf(B)
    np.sum(expression(x, y)).backward()
    by_x, by_y = lt.grad(lambda a, b: np.sum(expression(a, b)), (0, 1))(A, B)

    np.testing.assert_allclose(by_x, x.grad.data, rtol=1e-12)
    np.testing.assert_allclose(by_y, 0.0 if y.grad is None else y.grad.data, rtol=1e-12)


def test_array_attributes_and_conversions_work():
    x = leaf()

    assert ((1, 3), 2, 3, np.float64) == (x.shape, x.ndim, x.size, x.dtype)
    assert (8, 24, 1) == (x.itemsize, x.nbytes, len(x))
    assert [0.5, 2.0, 1.5] == [float(v) for v in x[0]] == x.tolist()[0]
    assert 2 == int(x[0, 1]) == math.floor(x[0, 1])
    assert bool(x[0, 0] > 0)
    assert 1.5 == x[0, 2].item()
    assert "1.50" == f"{x[0, 2]:.2f}"
    assert [1, 2, 3][Variable(np.int64(1))] == 2
    assert 2.0 in x
    assert "Variable([[0.5, 2. , 1.5]], requires_grad=True)" == repr(x)


def test_the_truth_value_of_several_elements_is_refused_as_in_numpy():
    with pytest.raises(ValueError, match="ambiguous"):
        bool(leaf())


def test_conversion_to_an_array_is_refused_where_it_would_lose_history():
    x = leaf()
    for lose in (np.asarray, np.array, lambda v: np.zeros(3).__setitem__(0, v)):
        with pytest.raises((lt.TraceError, ValueError)):
            lose(x)
    with pytest.raises(lt.TraceError, match=r"x.detach\(\) or x.numpy\(\)"):
        np.asarray(x)
    np.testing.assert_array_equal(A, np.asarray(x.detach()))
    np.testing.assert_array_equal(A, x.numpy())
    with no_grad():
        np.testing.assert_array_equal(A, np.asarray(x))


def test_a_scalar_that_requires_grad_is_not_stored_in_an_ordinary_array():
    """NumPy converts it to a number, as float() does."""
    x, buffer = leaf(), np.zeros(2)
    with pytest.raises((lt.TraceError, ValueError)):
        buffer[0] = x[0, 0]
    buffer[1] = x[0, 0].detach()
    taken = Variable(np.zeros(2))
    taken[0] = x[0, 0]

    assert [0.0, 0.5] == buffer.tolist()
    assert taken.requires_grad
    assert 0.5 == float(x[0, 0]) == math.fabs(x[0, 0])


def test_letir_numpy_accepts_lists_of_variables():
    x = leaf()
    made = lnp.array([[1.0, x[0, 1]], [x[0, 0], 3]])
    made.sum().backward()

    np.testing.assert_array_equal([[1.0, 2.0], [0.5, 3.0]], made.data)
    np.testing.assert_array_equal([[1.0, 1.0, 0.0]], x.grad.data)
    assert np.float32 == lnp.asarray(x, np.float32).dtype


def test_ordinary_arrays_accept_variables_that_require_no_grad():
    weights = np.ones(3)
    weights -= 0.5 * Variable(np.ones(3))
    np.add(weights, Variable(np.ones(3)), out=weights)

    assert type(weights) is np.ndarray
    np.testing.assert_array_equal([1.5, 1.5, 1.5], weights)
    with pytest.raises(lt.TraceError, match="ordinary array"):
        weights -= leaf(np.ones(3))


def test_unrecorded_functions_compute_on_variables_that_require_no_grad():
    """Every function of numbers is recorded; this one writes a file."""
    file = io.BytesIO()
    np.save(file, Variable(A))

    np.testing.assert_array_equal(A, np.load(io.BytesIO(file.getvalue())))
    with pytest.raises(lt.MissingRule, match=r"numpy\.save.*\n  at .*test_arrays"):
        np.save(file, leaf())


def test_named_tuples_keep_their_type():
    values = call_on_arrays(np.unique_counts, (Variable(A[0]),), {})
    arrays = unwrap_arrays(values)

    assert ("values", "counts") == values._fields == arrays._fields
    assert isinstance(values.counts, Variable)
    assert isinstance(arrays.counts, np.ndarray)


def test_functions_without_a_derivative_compute_even_if_unrecorded():
    """[D1]"""
    x = leaf()

    assert np.allclose(x, A)
    assert np.array_equal(x * 1.0, x)
    assert [[0, 2, 1]] == np.argsort(x).tolist()
    assert 3 == np.count_nonzero(x)
    assert lt.trace(lambda t: np.allclose(x.detach(), t), A)(A)


def test_variables_are_hashable():
    x, y = leaf(), leaf()

    assert {x: 1, y: 2}[x] == 1


def test_a_leaf_can_be_pickled_and_copied():
    x = leaf(A.copy())
    (x * x).sum().backward()
    for new in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        np.testing.assert_array_equal(x.data, new.data)
        np.testing.assert_array_equal(x.grad.data, new.grad.data)
        assert new.requires_grad
        assert not np.shares_memory(x.data, new.data)
        assert not np.shares_memory(x.grad.data, new.grad.data)


def test_a_variable_with_a_history_is_refused_by_pickle_and_deepcopy():
    for make in (pickle.dumps, copy.deepcopy):
        with pytest.raises(lt.TraceError, match="history"):
            make(leaf() * 2.0)


def test_a_copy_requires_grad_and_shares_no_memory():
    x = leaf()
    for made in (x.copy(), copy.copy(x), np.copy(x)):
        assert made.requires_grad
        assert not np.shares_memory(x.data, made.data)


def test_other_objects_are_refused_as_data():
    for other in ("text", np.array(["text"]), None, {}):
        with pytest.raises(lt.DTypeError):
            Variable(other)
    with pytest.raises(TypeError):
        leaf() + "text"


def test_an_unknown_attribute_is_an_error_that_names_the_variable():
    x = leaf()

    with pytest.raises(AttributeError, match="a Variable has no attribute 'sums'"):
        _ = x.sums


@pytest.mark.parametrize(("name", "remedy"), [("exp", r"use numpy\.exp\(x\)"), ("dim", "x.ndim")])
def test_a_name_of_pytorchs_tensors_is_an_error_that_says_what_to_write(name, remedy):
    with pytest.raises(AttributeError, match=remedy):
        getattr(leaf(), name)


def test_requires_grad_can_be_changed_on_leaves_only():
    x = Variable(A)
    assert x.requires_grad_() is x
    assert x.requires_grad
    x.requires_grad = False
    assert not x.requires_grad
    with pytest.raises(lt.TraceError, match="for leaves only"):
        (leaf() * 2.0).requires_grad_(False)


def test_data_may_be_replaced_by_an_array_of_the_same_type():
    x = leaf(A.copy())
    assert isinstance(x.data, np.ndarray)
    x.data -= 1.0
    x.data = np.zeros((1, 3))
    with pytest.raises(lt.DTypeError, match="data must keep the type"):
        x.data = np.zeros(3)

    np.testing.assert_array_equal(np.zeros((1, 3)), x.numpy())


def test_grad_may_be_set_to_a_value_of_the_same_type():
    x = leaf()
    x.grad = np.ones((1, 3))
    (x * 1.0).sum().backward()

    np.testing.assert_array_equal(np.full((1, 3), 2.0), x.grad.data)
    with pytest.raises(lt.DTypeError, match="does not fit a Variable"):
        x.grad = np.ones(3)


def test_variable_may_be_subclassed():
    class Parameter(Variable):
        pass

    p = Parameter(A.copy(), requires_grad=True)
    (p * p + np.sin(p)).sum().backward()

    np.testing.assert_allclose(2 * A + np.cos(A), p.grad.data)


def test_a_users_rule_receives_python_numbers():
    def root_vjp(ct, y, x, n):
        return ct * y / (x * n) if n > 1 else ct, None

    root = lt.primitive("tests.root", lambda xp, x, n: x ** (1 / n), lambda x, n: x, vjp=root_vjp)
    for n in (1, 2, 3.0, 4.0):
        x = leaf(np.array([4.0]))
        root(x, n).backward(np.ones(1))

        np.testing.assert_allclose([4.0 ** (1 / n - 1) / n], x.grad.data)


@pytest.mark.parametrize("n", [2, 3, 0, 1, -1, 0.5, 2.0, -0.0, True])
def test_the_rule_of_a_power_depends_on_its_exponent(n):
    x = leaf(np.array([2.0, 3.0]))
    found = gradients((x**n).sum(), x)

    np.testing.assert_allclose(n * np.array([2.0, 3.0]) ** (n - 1), found.data)


def test_a_python_number_is_weakly_typed():
    x = leaf(np.ones(2, np.float32))

    for made in (x * 2.0, 2 + x, x**2, x**0.5, operator.truediv(1, x)):
        assert np.float32 == made.dtype


def test_each_mask_selects_as_many_elements_as_are_true():
    x = Variable(np.arange(4.0), requires_grad=True)

    types = [x[x > bound].type.shape for bound in (2.5, 0.5, 2.5)]

    assert [(1,), (3,), (1,)] == types


def test_results_of_data_dependent_length_have_gradients():
    x = Variable(np.array([3.0, 1.0, 3.0, -2.0]), requires_grad=True)

    loss = (np.unique(x) * np.array([1.0, 10.0, 100.0])).sum() + (x[np.where(x > 0)] ** 2).sum()
    loss.backward()

    assert_same(np.array([106.0, 12.0, 6.0, 1.0]), x.grad.array)


def test_a_number_may_be_assigned_by_a_mask():
    x = Variable(np.array([3.0, -1.0, 2.0]), requires_grad=True)
    y = x * 1
    y[y < 0] = 0

    y.sum().backward()

    assert_same(np.array([1.0, 0.0, 1.0]), x.grad.array)


@pytest.mark.parametrize(
    ("call", "gradient"),
    [
        (lambda v: np.reshape(v, (2, 2), copy=True), [1, 1, 1, 1]),
        (lambda v: v.reshape(2, 2, copy=True), [1, 1, 1, 1]),
        (lambda v: np.linspace(v[0], v[1], 3, retstep=True)[1], [-0.5, 0.5, 0, 0]),
        (lambda v: np.pad(v, 1, constant_values=v[1]), [1, 3, 1, 1]),
    ],
)
def test_numpy_calls_that_take_several_operations_have_gradients(call, gradient):
    v = lt.Variable(np.arange(4.0), requires_grad=True)
    call(v).sum().backward()

    np.testing.assert_allclose(v.grad, gradient)

"""In-place changes of Variables."""

import numpy as np
import pytest

import letir as lt
from letir import Variable
from letir.eager import no_grad

A = np.array([0.5, 2.0, -1.0])


def leaf(array=A):
    return Variable(array.copy(), requires_grad=True)


def test_an_augmented_assignment_is_recorded():
    x = leaf()
    y = x * 1.0
    same = y
    y += x
    y *= 3.0
    y.sum().backward()

    assert same is y
    np.testing.assert_allclose(6 * A, y.data)
    np.testing.assert_allclose([6.0, 6.0, 6.0], x.grad.data)


def test_an_item_assignment_is_recorded():
    x = leaf()
    y = x * 2.0
    y[1] = x[0] * 10.0
    y.sum().backward()

    np.testing.assert_allclose([2 * A[0], 10 * A[0], 2 * A[2]], y.data)
    np.testing.assert_allclose([12.0, 0.0, 2.0], x.grad.data)


def test_an_augmented_item_assignment_is_recorded():
    x = leaf()
    y = x * 2.0
    y[1:] += x[:2]
    y.sum().backward()

    np.testing.assert_allclose([3.0, 3.0, 2.0], x.grad.data)


def test_an_array_that_requires_no_grad_may_be_assigned_items_that_do():
    x = leaf()
    buffer = Variable(np.zeros(3))
    buffer[:2] = x[:2] * 3.0
    buffer.sum().backward()

    np.testing.assert_allclose([3.0, 3.0, 0.0], x.grad.data)


def test_out_arguments_are_written_into():
    x = leaf()
    y = x * 1.0
    np.multiply(y, 3.0, out=y)
    y.sum().backward()

    np.testing.assert_allclose([3.0, 3.0, 3.0], x.grad.data)


def test_an_augmented_scalar_is_rebound_as_in_numpy():
    x = leaf()
    total = 0.0
    for i in range(3):
        total += x[i] * x[i]
    total.backward()

    np.testing.assert_allclose(2 * A, x.grad.data)


def test_an_in_place_change_of_a_leaf_that_requires_grad_is_refused():
    x = leaf()
    with pytest.raises(lt.TraceError, match=r"a leaf that requires grad.*\n  at .*test_changes"):
        x += 1.0
    with pytest.raises(lt.TraceError, match="a leaf that requires grad"):
        x[0] = 1.0
    y = x[1:]
    with pytest.raises(lt.TraceError, match="a view of a leaf that requires grad"):
        y += 1.0
    np.testing.assert_array_equal(A, x.data)


def test_a_leaf_may_be_changed_inside_no_grad():
    x = leaf()
    (x * x).sum().backward()
    with no_grad():
        x -= 0.5 * x.grad
        x[0] = 7.0

    np.testing.assert_allclose([7.0, 0.0, 0.0], x.data)
    assert x.is_leaf
    assert x.requires_grad
    x.zero_grad()
    (x * x).sum().backward()
    np.testing.assert_allclose([14.0, 0.0, 0.0], x.grad.data)


@pytest.mark.parametrize("change", ["operand", "result", "constant", "view", "base", "detached"])
def test_backward_refuses_a_saved_value_that_was_changed_and_names_both_lines(change):
    x = leaf()
    y, w = x * 1.0, Variable(A.copy())
    part = y[:2]
    if change == "result":
        z = np.exp(y)
        z += 1.0
    elif change == "constant":
        z = y * w
        w += 1.0
    elif change == "base":
        z = part * part
        del part
        y[0] = 5.0
    elif change == "view":
        z = y * y
        part[0] = 5.0
    elif change == "detached":
        z = y * y
        y.detach()[0] = 5.0
    else:
        z = y * y
        del part
        y += 1.0

    with pytest.raises(lt.TraceError, match=r"(?s)later changed in place, at .*test_changes.*\n"):
        z.sum().backward()


def test_a_value_that_no_rule_reads_may_be_changed():
    x = leaf()
    y = x * 1.0
    z = y + 1.0
    y += 1.0
    (y * z).sum().backward()

    np.testing.assert_allclose(2 * (A + 1), x.grad.data)


def test_a_value_saved_after_its_change_gives_the_right_gradient():
    x = leaf()
    y = x * 1.0
    y += 1.0
    (y * y).sum().backward()

    np.testing.assert_allclose(2 * (A + 1), x.grad.data)


def test_a_change_of_a_leaf_after_it_was_saved_is_an_error():
    x = leaf()
    z = x * x
    with no_grad():
        x += 1.0

    with pytest.raises(lt.TraceError, match="changed in place"):
        z.sum().backward()


def test_the_version_counts_in_place_changes():
    y = Variable(A.copy())
    assert 0 == y.version
    y += 1.0
    y[0] = 2.0

    assert 2 == y.version


def test_a_write_into_a_view_changes_its_base():
    """[B6]"""
    x = leaf()
    y = x * 1.0
    part = y[1:]
    part *= 10.0
    y.sum().backward()

    np.testing.assert_allclose([A[0], 10 * A[1], 10 * A[2]], y.data)
    np.testing.assert_allclose([1.0, 10.0, 10.0], x.grad.data)


def test_a_write_into_a_base_or_view_changes_other_views():
    """[B6]"""
    x = leaf()
    y = x * 1.0
    first, last = y[:2], y[1:]
    y *= 3.0
    first += 10.0 * x[:2]
    (last * 1.0).sum().backward()

    np.testing.assert_allclose([13 * A[1], 3 * A[2]], last.data)
    np.testing.assert_allclose([0.0, 13.0, 3.0], x.grad.data)


def test_views_of_views_may_be_written_into():
    """[B6]"""
    x = leaf(np.ones((2, 3)))
    y = x * 1.0
    row = y[1]
    row[1:] *= 5.0
    row[2] = 0.0
    y[0][0] = 7.0
    (y.sum() + row.sum()).backward()

    np.testing.assert_allclose([[7.0, 1.0, 1.0], [1.0, 5.0, 0.0]], y.data)
    np.testing.assert_allclose([[0.0, 1.0, 1.0], [2.0, 10.0, 0.0]], x.grad.data)


def test_a_detached_array_that_is_written_into_gets_its_own_history():
    x = leaf()
    y = x * 1.0
    apart = y.detach()
    apart[1:] *= 2.0
    apart[0] = x[2] * 3.0
    apart.sum().backward()

    np.testing.assert_allclose([0.0, 0.0, 3.0], x.grad.data)
    part = y.detach()[1:]
    with pytest.raises(lt.TraceError, match="other than a plain"):
        part += x[1:]


def test_an_item_may_be_assigned_from_another_item():
    x = leaf(np.array([[1.0, 2.0], [3.0, 4.0]]))
    y = x * 1.0
    y[0] = y[1]
    y[:, 0] *= 2.0
    y.sum().backward()

    np.testing.assert_allclose([[0.0, 0.0], [4.0, 2.0]], x.grad.data)


def test_a_write_while_a_transposed_view_is_in_use_is_an_error():
    y = leaf(np.ones((2, 3))) * 1.0
    turned = y.T
    with pytest.raises(lt.TraceError, match=r"other than a plain .* is in use"):
        y += 1.0
    assert turned.shape == (3, 2)


def test_a_write_into_a_transposed_view_is_an_error():
    y = leaf(np.ones((2, 3))) * 1.0
    turned = y.T
    with pytest.raises(lt.TraceError, match="other than a plain"):
        turned += 1.0


def test_a_detached_value_shares_the_array():
    x = leaf()
    d = x.detach()

    assert d.is_leaf
    assert not d.requires_grad
    assert np.shares_memory(d.data, x.data)


def test_shapes_and_dtypes_of_writes_are_checked():
    y = leaf() * 1.0
    with pytest.raises(lt.ShapeError):
        y += np.ones((2, 3))
    counts = Variable(np.arange(3))
    with pytest.raises(lt.DTypeError):
        counts += 0.5

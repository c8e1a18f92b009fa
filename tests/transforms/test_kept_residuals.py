"""``vjp`` and ``linearize`` keep copies of the primals and results that their linear maps read."""

import numpy as np
import pytest

import letir as lt
from letir import Variable
from tests.each_sample import in_one_test


def product(x, y):
    return x * y


def pulled(f, *primals, **options):
    """(result, function of a cotangent or a tangent for each primal): the transforms compared."""
    return lt.vjp(f, *primals, **options)


def pushed(f, *primals, **options):
    out, lin = lt.linearize(f, *primals, **options)
    return out, lambda ct: lin(*[ct] * len(primals))


TRANSFORMS = [pulled, pushed]
FUNCTIONS = {
    "an argument": lambda x: x * x,
    "a view of an argument": lambda x: x.T @ x,
    "a result": np.exp,
    "a view of a result": lambda x: np.exp(x.T).T,
    "a value of its own": lambda x: np.exp(x) * np.sin(x),
    "a reversed view": lambda x: x[::-1] * x,
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_writes_into_arguments_and_results_do_not_change_the_linear_map(name, transform):
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    expected = transform(FUNCTIONS[name], x.copy())[1](np.ones((2, 2)))
    out, linear = transform(FUNCTIONS[name], x)
    x[...] = 100.0
    out[...] = 100.0

    np.testing.assert_array_equal(expected, linear(np.ones((2, 2))))


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_without_copies_the_linear_map_shares_the_memory_of_arguments(transform):
    x = np.array([1.0, 2.0])
    _, linear = transform(lambda x: x * x, x, copy=False)
    x[...] = 100.0

    np.testing.assert_array_equal([200.0, 200.0], np.ravel(linear(np.ones(2))))


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("layout", [lambda x: x, lambda x: x.T, lambda x: x[::-1, ::-1]])
def test_copies_have_the_memory_order_of_the_arguments(layout, transform):
    """Products and sums round by it."""
    x = layout(np.arange(6.0).reshape(2, 3))
    y = x + 1.0
    pull = lt.vjp(product, x, y)[1] if transform is pulled else lt.linearize(product, x, y)[1]

    assert [x.strides] == [kept.strides for kept in pull.captured if (kept == x).all()]


def test_residuals_that_no_one_else_has_are_not_copied():
    x = np.ones(3)
    shared = lt.vjp(lambda x: np.exp(np.sin(x)) + 1.0, x, copy=False)[1].captured
    kept = lt.vjp(lambda x: np.exp(np.sin(x)) + 1.0, x)[1].captured

    owned = [not np.shares_memory(value, x) for value in shared]
    assert any(owned) and len(owned) == len(kept)
    assert all(value.base is None for value in kept)


@pytest.mark.parametrize("wrap", [Variable, lambda x: Variable(x, requires_grad=True)])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_writes_into_variables_do_not_change_the_linear_map(transform, wrap):
    x = wrap(np.array([3.0]))
    _, linear = transform(lambda x: x * x, x)
    with lt.no_grad():
        x *= 100.0

    np.testing.assert_array_equal([6.0], np.ravel(linear(np.ones(1))[0].data))


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_writes_in_a_traced_function_do_not_change_the_linear_map(transform):
    def doubled(x):
        x = x.copy()
        _, linear = transform(np.square, x)
        x *= 100.0
        (found,) = [linear(np.ones(2))] if transform is pushed else linear(np.ones(2))
        return found

    x = np.array([1.0, 3.0])

    np.testing.assert_array_equal([2.0, 6.0], doubled(x))
    np.testing.assert_array_equal([2.0, 6.0], lt.trace(doubled, x)(x))


CALLS = {
    "identity": (lambda x: x, np.ones((2, 3))),
    "nested results": (lambda x: {"a": (x, [x.T]), "b": x[0]}, np.ones((2, 3))),
    "nested arguments": (lambda tree: tree["a"][0], {"a": (np.ones((2, 3)), np.ones(2))}),
    "a view": (lambda x: x.T.reshape(3, 2, 1)[:, ::-1], np.ones((2, 3))),
    "a broadcast": (lambda x: np.broadcast_to(x, (4, 2, 3)), np.ones((2, 3))),
    "a broadcast of one": (lambda x: np.broadcast_to(x, (1, 2, 3)), np.ones((2, 3))),
    "no elements": (lambda x: x, np.ones((0, 3))),
    "no axes": (lambda x: x, np.array(1.0)),
    "two arguments": (lambda xs: xs[0] + xs[1], (np.ones((2, 3)), np.ones((2, 3)))),
    "subtraction": (lambda xs: xs[0] - xs[1], [np.ones(3), np.ones(3)]),
}


def arrays_of(tree):
    """The arrays in a nesting of dicts, lists and tuples."""
    if isinstance(tree, np.ndarray):
        return [tree]
    parts = tree.values() if isinstance(tree, dict) else tree
    return [array for part in parts for array in arrays_of(part)] if np.iterable(parts) else []


def ones_like(tree):
    """Writable ones for each array of a nesting."""
    if isinstance(tree, dict):
        return {key: ones_like(part) for key, part in tree.items()}
    return (
        type(tree)(map(ones_like, tree)) if isinstance(tree, list | tuple) else np.ones(tree.shape)
    )


@in_one_test
@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("name", CALLS)
def test_pull_does_not_return_the_memory_of_its_cotangent(name, copy):
    f, primal = CALLS[name]
    out, pull = lt.vjp(f, primal, copy=copy)
    ct = ones_like(out)
    found = arrays_of(pull(ct))
    addresses = [a.__array_interface__["data"][0] for a in arrays_of(ct) + arrays_of(primal)]

    for i, array in enumerate(found):
        assert array.flags.writeable
        assert not any(np.shares_memory(array, other) for other in arrays_of(ct) + found[:i])
        assert array.__array_interface__["data"][0] not in addresses


@pytest.mark.parametrize("name", CALLS)
def test_a_linear_map_does_not_return_the_memory_of_its_tangents(name):
    f, primal = CALLS[name]
    _, lin = lt.linearize(f, primal)
    tangent = ones_like(primal)
    found = arrays_of(lin(tangent))

    for array in found:
        assert not any(np.shares_memory(array, other) for other in arrays_of(tangent))

"""Transforms of jitted functions are jitted functions that share plans."""

import functools
import pickle

import numpy as np
import pytest

import letir as lt
from letir import Variable, jit
from letir.executor import transformed_executors

X = np.array([1.0, 2.0, 3.0])


def cube(x):
    return (x**3).sum()


def test_the_gradient_of_a_jitted_function_is_one_executor_that_compiles_once():
    fast = jit(cube)

    for _ in range(3):
        np.testing.assert_allclose(lt.grad(fast)(X), 3 * X**2)

    assert lt.grad(fast) is lt.grad(fast, argnums=0)
    assert 1 == lt.grad(fast).counters["compiles"]
    assert 0 == fast.counters["compiles"]


@jit
def fourth(x):
    return (x**4).sum()


def test_a_gradient_of_a_decorated_function_is_pickled_by_the_names_of_both():
    for executor in (fourth, lt.grad(fourth), lt.value_and_grad(fourth, 0)):
        content = pickle.dumps(executor)

        assert len(content) < 300  # no code, no plan
        assert pickle.loads(content) is executor


def test_only_the_latest_transforms_are_kept(monkeypatch):
    monkeypatch.setattr(transformed_executors, "_MAX_TRANSFORMS", 4)
    fast = jit(lambda x, n: (x**n).sum(), static_argnums=1)

    found = [lt.grad(fast, argnums=(0,) * (1 + n)) for n in range(9)]

    assert len(fast.__letir_executor__.transformed) == 4
    np.testing.assert_allclose(found[0](X, 3)[0], 3 * X**2)


def test_options_of_a_transform_are_in_its_cache_key():
    fast = jit(lambda x, y: ((x * y).sum(), x))

    first, second = lt.grad(fast, has_aux=True), lt.grad(fast, argnums=1, has_aux=True)

    assert first is not second
    np.testing.assert_allclose(first(X, 2 * X)[0], 2 * X)
    np.testing.assert_allclose(second(X, 2 * X)[0], X)


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (lt.value_and_grad, (36.0, 3 * X**2)),
        (lt.jacfwd, 3 * X**2),
        (lt.jacrev, 3 * X**2),
        (lt.jacobian, 3 * X**2),
        (lt.hessian, np.diag(6 * X)),
        (lt.checkpoint, 36.0),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_transform_of_a_jitted_function_is_jitted(transform, expected):
    fast = jit(cube)

    for _ in range(2):
        found = transform(fast)(X)
        for one, other in zip(lt.ravel(found)[0], lt.ravel(expected)[0], strict=True):
            np.testing.assert_allclose(one, other)

    assert transform(fast) is transform(fast)
    assert 1 == transform(fast).counters["compiles"]


def test_transforms_nest_in_any_order():
    batch = np.stack([X, 2 * X])
    fast = jit(cube)
    all_jitted = jit(lt.vmap(lt.grad(jit(cube))))

    for _ in range(2):
        np.testing.assert_allclose(all_jitted(batch), 3 * batch**2)
        np.testing.assert_allclose(jit(lt.grad(cube))(X), 3 * X**2)
        np.testing.assert_allclose(lt.vmap(lt.grad(fast))(batch), 3 * batch**2)

    assert 1 == all_jitted.counters["compiles"]
    assert lt.vmap(lt.grad(fast)) is lt.vmap(lt.grad(fast))
    assert 1 == lt.vmap(lt.grad(fast)).counters["compiles"]
    np.testing.assert_allclose(lt.grad(lt.grad(jit(lambda x: x**3)))(2.0), 12.0)


def test_vjp_and_jvp_accept_jitted_functions():
    fast = jit(cube)

    assert 36.0 == lt.vjp(fast, X)[0]
    np.testing.assert_allclose(lt.vjp(fast, X)[1](1.0)[0], 3 * X**2)
    np.testing.assert_allclose(lt.jvp(fast, (X,), (X,))[1], 108.0)
    np.testing.assert_allclose(lt.linearize(fast, X)[1](X), 108.0)
    np.testing.assert_allclose(lt.hvp(fast, (X,), (X,)), 6 * X * X)


def test_static_arguments_stay_static():
    fast = jit(lambda x, n, act: (act(x) ** n).sum(), static_argnums=(1,), static_argnames=("act",))

    for n in (2, 3, 2):
        np.testing.assert_allclose(
            lt.grad(fast)(X, n, act=np.sin), n * np.sin(X) ** (n - 1) * np.cos(X)
        )
        np.testing.assert_allclose(lt.grad(fast)(X, n, np.exp), n * np.exp(n * X))
        np.testing.assert_allclose(
            lt.vmap(fast, in_axes=(0, None, None))(np.stack([X, X]), n, np.exp),
            [np.exp(n * X).sum()] * 2,
        )
    assert 4 == lt.grad(fast).counters["compiles"]


def test_a_transform_of_a_jitted_function_is_recorded_inside_a_trace():
    fast = jit(cube)

    fn = lt.trace(lambda x: lt.grad(fast)(x) * 2, X)

    assert {bind.op.name for bind in fn.binds} <= {"power", "mul", "ones", "broadcast_to"}
    np.testing.assert_allclose(fn(X), 6 * X**2)


def test_a_policy_may_be_a_partial():
    fast = jit(cube)
    policy = functools.partial(lambda bind: False)

    assert lt.grad(fast, policy=policy) is lt.grad(fast, policy=policy)
    np.testing.assert_allclose(lt.grad(fast, policy=policy)(X), 3 * X**2)


def test_transforms_of_jitted_functions_accept_variables():
    fast, x = jit(lambda x: (np.sin(x) * np.exp(x) * x + x**3).sum()), Variable(X, True)
    eager = Variable(X, True)

    g = lt.grad(fast)(x)
    (g * g).sum().backward()
    h = lt.grad(fast.__wrapped__)(eager)
    (h * h).sum().backward()

    np.testing.assert_allclose(x.grad.numpy(), eager.grad.numpy())


class Scale:
    """A model with a jitted method."""

    def __init__(self, weight):
        self.weight = weight

    @jit
    def loss(self, x, n=2):
        return (self.weight * x**n).sum()


def test_the_gradient_of_a_jitted_method_is_a_jitted_method():
    model, other = Scale(X.copy()), Scale(3 * X)

    for _ in range(2):
        np.testing.assert_allclose(lt.grad(model.loss)(X), 2 * X * X)
        np.testing.assert_allclose(lt.grad(other.loss)(X), 6 * X * X)
        np.testing.assert_allclose(lt.value_and_grad(model.loss)(X, n=3)[1], 3 * X**3)
    model.weight = model.weight * 2
    np.testing.assert_allclose(lt.grad(model.loss)(X), 4 * X * X)

    assert 1 == lt.grad(model.loss).counters["compiles"]


def test_transforms_of_partials_read_their_bound_arrays():
    weight = X.copy()
    fast = jit(functools.partial(lambda w, x, n: (w * x**n).sum(), weight), static_argnums=1)

    np.testing.assert_allclose(lt.grad(fast)(X, 2), 2 * X * X)
    weight[:] = 1.0
    np.testing.assert_allclose(lt.grad(fast)(X, 2), 2 * X)
    assert 1 == lt.grad(fast).counters["compiles"]

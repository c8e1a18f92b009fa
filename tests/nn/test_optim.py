"""Optimisers, learning rate schedules and weight initialisers."""

import numpy as np
import pytest

import letir as lt
from letir.nn import initializers, optim
from letir.random import key, split
from letir.testing import assert_close, assert_same, check_grads

TARGET = np.array([1.0, -2.0, 0.5])
START = {"w": np.zeros(3), "b": [np.array(4.0)]}
ALL = {
    "sgd": optim.sgd(0.1),
    "momentum": optim.momentum(0.05),
    "nesterov": optim.sgd(0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": optim.adam(0.1),
    "adamw": optim.adamw(0.1, weight_decay=0.02),
    "rmsprop": optim.rmsprop(0.05),
    "adagrad": optim.adagrad(0.5),
    "decaying": optim.adam(optim.warmup(optim.cosine_decay(0.3, 100), 5)),
}


def loss(params):
    return ((params["w"] - TARGET) ** 2).sum() + params["b"][0] ** 2


def trained(optimizer, step, count: int):
    params, state = START, optimizer.init(START)
    for _ in range(count):
        params, state = step(optimizer, params, state)
    return params, state


def plain(optimizer, params, state):
    return optimizer.update(lt.grad(loss)(params), state, params)


@pytest.mark.parametrize("name", ALL)
def test_an_optimiser_converges_to_the_minimum(name):
    params, state = trained(ALL[name], plain, 150)

    assert loss(params) < 0.02
    assert state["step"] == 150


@pytest.mark.parametrize("name", ALL)
def test_a_step_is_recorded_once_and_replayed(name):
    """Parameters and state keep their types, so that one program serves all steps."""
    optimizer = ALL[name]
    program = lt.trace(lambda p, s: plain(optimizer, p, s), START, optimizer.init(START))

    found = trained(optimizer, lambda _, p, s: program(p, s), 3)

    assert_same(trained(optimizer, plain, 3), found)


@pytest.mark.parametrize("name", ALL)
def test_single_precision_is_kept(name):
    optimizer, params = ALL[name], {"w": np.ones(2, np.float32)}

    params, state = optimizer.update(params, optimizer.init(params), params)

    kept = [params["w"], *[v["w"] for k, v in state.items() if k != "step" and v is not None]]
    assert {np.dtype(np.float32)} == {leaf.dtype for leaf in kept}


@pytest.mark.parametrize("name", ["nesterov", "adam", "adamw"])
def test_optimizer_steps_have_derivatives(name):
    """With respect to the gradient and the parameters, as for learning to learn."""
    optimizer = ALL[name]

    def two(w, rate):
        params, state = {"w": w * rate}, optimizer.init({"w": w})
        for _ in range(2):
            params, state = optimizer.update({"w": params["w"] ** 3}, state, params)
        return params["w"]

    check_grads(two, (TARGET, 1.3), order=2, rtol=1e-4)


def test_gradients_and_parameters_must_have_the_same_structure():
    optimizer = optim.adam()

    with pytest.raises(lt.ShapeError, match="must nest alike"):
        optimizer.update({"w": TARGET}, optimizer.init(START), START)


def test_clipping_keeps_small_gradients_and_the_direction_of_large_ones():
    tree = (np.array([3.0]), {"x": np.array([4.0])})

    assert_same(tree, optim.clip_by_global_norm(tree, 5.0))
    assert_close((np.array([1.5]), {"x": np.array([2.0])}), optim.clip_by_global_norm(tree, 2.5))
    zeros = lt.grad(lambda v: optim.global_norm([v]))(np.zeros(2))
    assert_same(np.zeros(2), zeros)  # [D13]


def test_learning_rate_schedules_have_their_documented_values():
    decay, cosine = optim.exponential_decay(1.0, 10, 0.5), optim.cosine_decay(2.0, 10, 0.1)

    assert_close([0.5, 0.25], [decay(10), decay(20)])
    assert_close([2.0, 1.1, 0.2, 0.2], [cosine(t) for t in (0, 5, 10, 99)])
    assert_close([0.25, 1.0, 1.0], [optim.warmup(1.0, 4)(t) for t in (0, 3, 9)])


# ---- weight initialisers ----

RANDOM = ["uniform", "normal", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal"]


@pytest.mark.parametrize("name", [*RANDOM, "orthogonal"])
def test_initial_weights_are_determined_by_the_key(name):
    make, (first, second) = getattr(initializers, name), split(key(3))

    found = make(first, (4, 3), dtype=np.float32)

    assert (np.float32, (4, 3)) == (found.dtype, found.shape)
    assert_same(found, make(first, (4, 3), dtype=np.float32))
    assert not np.array_equal(found, make(second, (4, 3), dtype=np.float32))


@pytest.mark.parametrize(
    ("name", "variance"),
    [
        ("glorot_uniform", 2 / (300 + 600)),
        ("glorot_normal", 2 / (300 + 600)),
        ("he_uniform", 2 / 300),
        ("he_normal", 2 / 300),
        ("normal", 1.0),
        ("uniform", 1 / 12),
        ("orthogonal", 1 / 300),
    ],
)
def test_initial_weights_have_the_documented_variance(name, variance):
    found = getattr(initializers, name)(key(1), (200, 100, 3))

    assert_close(variance, found.var(), rtol=0.03)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 2, 2)])
def test_orthogonal_initial_weights_are_orthonormal(shape):
    found = initializers.orthogonal(key(0), shape, gain=2.0).reshape(shape[0], -1)

    gram = found @ found.T if found.shape[0] <= found.shape[1] else found.T @ found
    assert_close(4 * np.eye(len(gram)), gram, atol=1e-12)


def test_constant_initialisers_return_their_value():
    made = [initializers.zeros(None, 2), initializers.ones(None, 2)]

    assert_same([np.zeros(2), np.ones(2)], made)
    assert_same(np.full(2, 0.5), initializers.constant(None, 2, 0.5))


def test_truncated_initial_weights_are_bounded():
    pytest.importorskip("scipy")

    found = initializers.truncated_normal(key(0), (1000,), mean=1.0, std=0.5)

    assert np.abs(found - 1).max() <= 1
    assert np.abs(found - 1).max() > 0.9

"""checkpoint: the same values and derivatives with fewer residuals."""

import functools
import gc
import tracemalloc
import weakref

import numpy as np
import pytest

import letir as lt
from letir.testing import assert_close, assert_same, check_grads

X = np.linspace(0.1, 1.0, 5)


def wave(x):
    return np.tanh(np.sin(np.exp(x) * x))


WAVE = "lambda %0 { %1 = exp(%0); %2 = mul(%1, %0); %3 = sin(%2); %4 = tanh(%3); return %4 }"


def is_sine(bind):
    return bind.op.name == "sin"


CHECKPOINTED = {
    "plain": lt.checkpoint(wave),
    "with a policy": lt.checkpoint(wave, policy=is_sine),
    "a program": lt.checkpoint(lt.retype(lt.parse(WAVE), lt.ShapeDtype((5,)))),
    "nested": lt.checkpoint(lambda x: lt.checkpoint(np.tanh)(lt.checkpoint(np.sin)(np.exp(x) * x))),
}


@pytest.mark.parametrize("f", CHECKPOINTED.values(), ids=CHECKPOINTED)
def test_values_and_derivatives_of_every_order_agree_with_the_function(f):
    assert_same(wave(X), f(X))
    assert_close(lt.grad(lambda x: wave(wave(x)).sum())(X), lt.grad(lambda x: f(f(x)).sum())(X))
    check_grads(f, (X,), order=3)


def test_a_checkpointed_function_is_one_bind_that_holds_its_program():
    program = lt.trace(lambda x: lt.checkpoint(wave)(x) + 1, X)

    assert ["checkpoint", "add"] == [bind.op.name for bind in program.binds]
    assert program.binds[0].source.file == __file__
    assert program == lt.parse(lt.dumps(program))


def test_a_program_keeps_its_nesting():
    program = lt.trace(lambda p: {"y": p["x"] * 2}, {"x": X})

    found = lt.checkpoint(program)

    assert 1 == len(found)
    assert_same({"y": X * 2}, found({"x": X}))
    assert (program.in_tree, program.out_tree) == (found.in_tree, found.out_tree)


def kept(f, *args) -> int:
    """The bytes of residuals of the backward pass, arguments included."""
    gradient = lt.differentiate(lt.trace(f, *args))
    _, residuals = gradient.forward(*args)
    return sum(residual.nbytes for residual in residuals)


def layers(step, count):
    return lambda x: functools.reduce(lambda y, _: step(y), range(count), x)


def test_a_checkpoint_keeps_only_the_arguments():
    x = np.ones(1000)

    assert 4 * 8000 == kept(layers(lt.checkpoint(wave), 4), x)  # one per layer
    assert kept(layers(wave, 4), x) >= 12 * 8000


def test_values_that_the_policy_selects_are_kept_and_not_recomputed():
    x = np.ones(1000)
    gradient = lt.differentiate(lt.trace(lt.checkpoint(wave, is_sine), x))

    assert 2 * 8000 == kept(lt.checkpoint(wave, is_sine), x)
    assert not any(is_sine(bind) for step in gradient.df.binds for bind in steps_of(step))


def steps_of(bind):
    """The binds of the body of a ``grad_of``."""
    return bind.attrs["body"].binds if "body" in bind.attrs else ()


def living_values(program, *args) -> int:
    """The peak number of live values of a replay, without arguments."""
    alive, most = set(), 0

    def watch(bind, results):
        nonlocal most
        for result in results:
            if isinstance(result, np.ndarray) and result.size > 1:
                alive.add(key := id(result))
                weakref.finalize(result, alive.discard, key)
        most = max(most, len(alive))

    gc.disable()
    try:
        lt.run_forward(program, *args, observe=watch)
    finally:
        gc.enable()
    return most


def test_a_replay_of_the_gradient_holds_fewer_values_at_once():
    x = np.ones(10)
    plain, checkpointed = (
        lt.grad(lt.trace(lambda x, step=step: layers(step, 20)(x).sum(), x))
        for step in (wave, lt.checkpoint(wave))
    )

    assert_close(plain(x), checkpointed(x))
    assert living_values(plain, x) >= 60
    assert living_values(checkpointed, x) <= 35


def peak(program, *args) -> int:
    """The peak memory of a replay in bytes."""
    program(*args)
    tracemalloc.start()
    try:
        program(*args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_replay_of_the_gradient_takes_less_memory():
    x = np.ones(100_000)
    plain, checkpointed = (
        peak(lt.grad(lt.trace(lambda x, step=step: layers(step, 20)(x).sum(), x)), x) / x.nbytes
        for step in (wave, lt.checkpoint(wave))
    )

    assert plain >= 60
    assert checkpointed <= 30


def test_the_backward_pass_of_a_forward_derivative_recomputes_too():
    x = np.ones(1000)

    def slope(step):
        return lambda x: lt.jvp(layers(step, 4), (x,), (x,))[1]

    assert kept(slope(lt.checkpoint(wave)), x) * 2 <= kept(slope(wave), x)
    assert_close(
        lt.grad(lambda x: slope(wave)(x).sum())(X),
        lt.grad(lambda x: slope(lt.checkpoint(wave))(x).sum())(X),
    )


def test_guards_inside_a_checkpoint_are_checked_only_once():
    """[C5]"""

    @lt.checkpoint
    def f(x):
        return x**2 if x.sum() > 0 else x**3

    program = lt.trace(lambda x: f(x).sum(), X)
    gradient = lt.grad(program)

    assert_close(2 * X, gradient(X))
    with pytest.raises(lt.GuardError):
        gradient(-X)
    guards = [b for bind in gradient.binds for b in (bind, *steps_of(bind)) if b.op.name == "guard"]
    assert 1 == len(guards)
    assert_close(3 * X**2, lt.grad(lambda x: f(x).sum())(-X))


def test_traced_values_that_the_function_uses_get_their_derivative():
    """[B3]"""
    found = lt.grad(lambda w: lt.checkpoint(lambda x: np.sin(x * w))(X).sum())(2.0)

    assert_close((np.cos(2 * X) * X).sum(), found)


def test_static_arguments_keywords_and_pytrees_pass_through():
    @lt.checkpoint
    def f(p, *, square=True, scale=1.0):
        return {"y": p["x"] ** 2 if square else p["x"], "n": scale}

    found = lt.grad(lambda x: f({"x": x}, square=True, scale=2.0)["y"].sum())(X)

    assert_close(2 * X, found)


def test_without_a_trace_the_function_itself_runs():
    calls = []

    lt.checkpoint(lambda x: calls.append(x) or x)(X)

    assert calls[0] is X


def test_vmap_agrees_with_a_loop_over_examples():
    batch = np.stack([X, -X, 2 * X])

    found = lt.vmap(lt.grad(lambda x: lt.checkpoint(wave, is_sine)(x).sum()))(batch)

    assert_close(lt.grad(lambda x: wave(x).sum())(batch), found)


def test_retyped_programs_hold_retyped_bodies():
    program = lt.trace(lt.checkpoint(wave, is_sine), X)

    narrow = lt.retype(program, lt.ShapeDtype(5, "float32"))

    assert "float32" == narrow.ret.args[0].type.dtype
    assert "float32" == lt.vjp(narrow, X.astype("f4"))[1](X.astype("f4"))[0].dtype


def network(x):
    return np.tanh(np.ones((5, 5)) @ np.exp(x)) * 2.0 + x


def operations_again(policy):
    """The functions and products in the backward pass of ``network``."""
    gradient = lt.differentiate(lt.trace(lt.checkpoint(network, policy), X), defined=[True])
    found = [bind.op.name for bind in gradient.df.binds]
    return sorted(name for name in found if name in ("matmul", "exp", "tanh"))


def test_checkpoint_takes_the_policies_of_differentiate():
    assert ["exp", "matmul", "matmul", "tanh"] == operations_again(None)
    assert ["exp", "matmul", "tanh"] == operations_again("min_bytes")
    assert ["matmul"] == operations_again("keep_all")
    with pytest.raises(lt.LetirError, match="'recompute_cheap'"):
        lt.checkpoint(network, policy="nothing_saveable")


def test_a_bind_with_an_effect_is_never_recomputed():
    """[C5]"""
    calls = []
    counted = lt.primitive(
        "tests.counted_once",
        lambda xp, x: calls.append(1) or np.sin(x),
        lambda x: x,
        vjp=lambda ct, y, x: (ct * np.cos(x),),
        effect=True,
    )

    program = lt.grad(lt.trace(lambda x: lt.checkpoint(lambda x: np.exp(counted(x)))(x).sum(), X))
    calls.clear()

    assert_close(np.exp(np.sin(X)) * np.cos(X), program(X))
    assert [1] == calls


def test_static_arguments_may_be_anything():
    @functools.partial(lt.checkpoint, static_argnums=(0, -1))
    def f(function, x, options):
        return function(x) * options["scale"]

    found = lt.grad(lambda x: f(np.exp, x, {"scale": 2.0}).sum())(X)

    assert_close(2 * np.exp(X), found)


def test_an_array_that_several_calls_close_over_is_copied_once():
    w = np.ones((5, 5))
    layer = lt.checkpoint(lambda x: np.tanh(w @ x))

    program = lt.trace(lambda x: layer(layer(x)), X)

    first, second = (bind.attrs["body"].constants[0].attrs["value"] for bind in program.binds)
    assert first is second


def test_a_named_policy_keeps_results_of_users_operations():
    """They may be impure, and are not computed again."""
    calls = []

    def double(x):
        calls.append(1)
        return 2 * x

    doubled = lt.opaque(
        double, lambda x: x, name="test_checkpointing.double", vjp=lambda g, *_: (g,)
    )
    f = lt.checkpoint(lambda x: np.exp(doubled(np.sin(x))).sum(), "min_bytes")
    program = lt.value_and_grad(lt.trace(f, np.ones(3)))
    calls.clear()
    program(np.ones(3))

    assert 1 == len(calls)


def test_values_that_nothing_reads_are_not_saved():
    def f(x):
        np.exp(x)
        y = np.cos(x)
        return y * y

    (bind,) = lt.trace(lt.checkpoint(f, lambda bind: True), np.ones(3)).binds

    assert 1 == bind.attrs["saved"]

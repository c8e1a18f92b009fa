"""no_grad, enable_grad and set_grad_enabled."""

import asyncio
import threading

import numpy as np

from letir import Variable
from letir.eager import enable_grad, is_grad_enabled, no_grad, set_grad_enabled


def leaf():
    return Variable(np.ones(2), requires_grad=True)


def test_nothing_is_recorded_inside_no_grad():
    x = leaf()
    with no_grad():
        assert not is_grad_enabled()
        y = x * x
        with enable_grad():
            z = x * x
        assert not is_grad_enabled()

    assert is_grad_enabled()
    assert (False, True) == (y.requires_grad, z.requires_grad)
    assert y.is_leaf


def test_modes_decorate_recursive_functions():
    @no_grad()
    def product(x, depth):
        return x * x if depth == 0 else product(x, depth - 1) * x

    x = leaf()

    assert not product(x, 3).requires_grad
    assert is_grad_enabled()
    assert (x * x).requires_grad


def test_set_grad_enabled_takes_a_flag():
    x = leaf()
    for flag in (True, False):
        with set_grad_enabled(flag):
            assert flag == (x * x).requires_grad


def test_an_exception_exits_a_mode():
    try:
        with no_grad():
            raise KeyError
    except KeyError:
        pass

    assert is_grad_enabled()


def test_a_mode_object_may_be_entered_twice():
    mode = no_grad()
    with mode:
        with mode:
            pass
        assert not is_grad_enabled()

    assert is_grad_enabled()


def test_modes_are_local_to_their_thread():
    seen = []
    with no_grad():
        thread = threading.Thread(target=lambda: seen.append(is_grad_enabled()))
        thread.start()
        thread.join()

    assert [True] == seen


def test_set_grad_enabled_is_a_plain_call_too():
    x = leaf()
    try:
        set_grad_enabled(False)
        assert not (x * x).requires_grad
        with set_grad_enabled(True):
            assert (x * x).requires_grad
        assert not is_grad_enabled()
    finally:
        set_grad_enabled(True)

    @set_grad_enabled(False)
    def square(x):
        return x * x

    assert is_grad_enabled()
    assert not square(x).requires_grad
    assert is_grad_enabled()


def test_a_mode_decorates_each_step_of_a_generator():
    seen = []

    @no_grad()
    def squares(x):
        try:
            for _ in range(3):
                seen.append(is_grad_enabled())
                factor = yield x * x
                seen.append((is_grad_enabled(), factor))
        except KeyError:
            yield is_grad_enabled()
        finally:
            seen.append(is_grad_enabled())
        return "end"

    x, steps = leaf(), squares(leaf())
    assert not next(steps).requires_grad
    assert is_grad_enabled()
    assert not steps.send(2.0).requires_grad
    assert not steps.throw(KeyError())
    steps.close()

    assert [False, (False, 2.0), False, False] == seen
    assert [False] * 3 == [y.requires_grad for y in squares(x)]
    assert is_grad_enabled()


def test_a_mode_decorates_a_coroutine():
    @no_grad()
    async def square(x):
        await asyncio.sleep(0)
        return x * x

    async def both(x):
        return await square(x), x * x

    without, recorded = asyncio.run(both(leaf()))

    assert (False, True) == (without.requires_grad, recorded.requires_grad)

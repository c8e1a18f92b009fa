"""no_grad, enable_grad and set_grad_enabled."""

import asyncio
import sys
import threading

import numpy as np
import pytest

import letir as lt
from letir import Variable
from letir.ast import process_state
from letir.eager import enable_grad, grad_mode, is_grad_enabled, no_grad, set_grad_enabled
from tests.own_thread import in_own_thread


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


def test_a_task_keeps_the_mode_in_which_it_was_started():
    seen = []

    async def later():
        seen.append(is_grad_enabled())
        await asyncio.sleep(0)
        seen.append(is_grad_enabled())

    async def start():
        with no_grad():
            task = asyncio.create_task(later())
            await asyncio.sleep(0)
        assert is_grad_enabled()
        await task

    asyncio.run(start())

    assert [False, False] == seen


def test_a_mode_cannot_end_in_another_thread():
    mode, errors = no_grad(), []

    def end():
        try:
            mode.__exit__(None, None, None)
        except ValueError as error:
            errors.append(error)

    mode.__enter__()
    in_own_thread(end)()
    set_grad_enabled(True)

    assert 1 == len(errors)


# ---- in recorded functions ----


def scaled(x):
    with no_grad():
        total = np.exp(x).sum()
        with enable_grad():
            double = x * 2
        shift = total * x
    return (x * total + double + shift).sum()


def switched(x):
    set_grad_enabled(False)
    y = x * 3
    set_grad_enabled(True)
    return (x * y).sum()


def decorated(x):
    return (no_grad()(np.sin)(x) * x).sum()


def left_by_an_exception(x):
    try:
        with no_grad():
            y = x * 2
            raise KeyError
    except KeyError:
        return (x * y).sum()


def in_a_loop(x):
    def step(i, carry):
        with no_grad():
            before = carry * 1
        return carry + before * x

    return lt.fori_loop(0, 3, step, x).sum()


@pytest.mark.parametrize(
    "f", [scaled, switched, decorated, left_by_an_exception, in_a_loop], ids=lambda f: f.__name__
)
def test_no_grad_stops_gradients_in_recorded_functions(f):
    x = np.array([0.5, -1.25])
    eager, jitted = (Variable(x, requires_grad=True) for _ in range(2))

    f(eager).backward()
    lt.jit(f)(jitted).backward()

    np.testing.assert_allclose(eager.grad, jitted.grad)
    np.testing.assert_allclose(eager.grad, lt.grad(f)(x))
    np.testing.assert_allclose(eager.grad, lt.grad(lt.jit(f))(x))
    np.testing.assert_array_equal(f(x), lt.trace(f, x)(x))
    assert is_grad_enabled()


def test_a_write_inside_of_no_grad_to_a_value_from_outside_is_an_error_in_a_recorded_function():
    def f(x):
        y = x * 1
        with no_grad():
            y[0] = 3.0
        return y.sum()

    with pytest.raises(
        lt.TraceError, match=r"(?s)is changed in place inside of it.*test_grad_mode"
    ):
        lt.grad(f)(np.ones(2))


def test_no_grad_leaves_no_trace_where_its_values_are_not_used_outside():
    def f(x):
        with no_grad():
            x.sum()
        return x * 2

    assert ["sum", "mul"] == [bind.op.name for bind in lt.trace(f, np.ones(2)).binds]


# ---- interrupts ----


def interrupted(action, number):
    """Run an action, interrupted at its call or line with this number in the modules that set and
    restore modes; whether it has so many.
    """
    files, left = (grad_mode.__file__, process_state.__file__), number

    def trace(frame, event, arg):
        nonlocal left
        if event in ("call", "line"):
            left -= 1
            if left == -1:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    def follow(frame, event, arg):
        return trace(frame, event, arg) if frame.f_code.co_filename in files else None

    old = sys.gettrace()
    sys.settrace(follow)
    try:
        action()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(old)
    return False


def entered():
    with no_grad():
        pass


def exited():
    mode = set_grad_enabled(False)
    mode.__enter__()
    yield
    mode.__exit__(None, None, None)
    yield


def exit_of_a_setting():
    steps = exited()
    next(steps)
    return lambda: next(steps)


@pytest.mark.parametrize("prepare", [lambda: entered, exit_of_a_setting], ids=["block", "exit"])
@in_own_thread
def test_an_interrupt_anywhere_in_a_mode_leaves_gradients_recorded(prepare):
    """In a frame that runs on, where nothing but the next operation can restore the mode."""
    number = 0
    while interrupted(prepare(), number):
        number += 1
        assert (leaf() * 2).requires_grad, number
    assert number > 8
    assert is_grad_enabled()

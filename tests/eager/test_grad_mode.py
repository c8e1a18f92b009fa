"""no_grad, enable_grad and set_grad_enabled."""

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

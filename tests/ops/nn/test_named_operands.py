"""Operands of operations passed by the names that their signatures show."""

import numpy as np
import pytest

import letir as lt
from letir import nn

x, weight, bias = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(4, 3), np.arange(4.0)
CALLS = {
    "the last operand": (
        lambda x, w, b: nn.linear(x, w, bias=b),
        nn.linear,
    ),
    "all operands": (lambda x, w, b: nn.linear(bias=b, weight=w, x=x), nn.linear),
    "an operand after one with its default": (
        lambda x, w, b: nn.layer_norm(x, bias=w[0], eps=0.1),
        lambda x, w, b: nn.layer_norm(x, None, w[0], eps=0.1),
    ),
    "a mask": (
        lambda x, w, b: nn.attention(x, x, x, mask=x[:, :2] > 1, scale=2.0),
        lambda x, w, b: nn.attention(x, x, x, x[:, :2] > 1, scale=2.0),
    ),
}


@pytest.mark.parametrize("by_name, by_position", CALLS.values(), ids=CALLS)
def test_named_operands_are_recorded_like_positional_ones(by_name, by_position):
    expected = by_position(x, weight, bias)
    np.testing.assert_array_equal(by_name(x, weight, bias), expected)
    np.testing.assert_array_equal(lt.jit(by_name)(x, weight, bias), expected)
    binds = [lt.trace(f, x, weight, bias).binds for f in (by_name, by_position)]
    recorded = [[(bind.op, len(bind.args), bind.attrs) for bind in side] for side in binds]
    assert recorded[0] == recorded[1]


def test_users_operations_take_operands_by_name():
    scaled = lt.primitive(
        "named_operands.scaled",
        impl=lambda xp, x, by=None: x if by is None else x * by,
        aval=lambda x, by=None: x,
    )
    np.testing.assert_array_equal(scaled(by=np.full(3, 2.0), x=x), 2 * x)
    np.testing.assert_array_equal(scaled(x=x), x)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nn.linear(x, bias=bias), "linear: missing a required argument: 'weight'"),
        (lambda: nn.linear(x, weight, weight=weight), "linear: multiple values for argument"),
        (lambda: nn.one_hot(x=np.arange(3)), "one_hot: missing a required argument: 'classes'"),
    ],
)
def test_calls_that_do_not_fit_show_the_signature(call, message):
    with pytest.raises(lt.DTypeError, match=rf"{message}.*\n  write \w+\(x, "):
        call()


def test_unknown_names_are_no_operands():
    with pytest.raises(lt.DTypeError, match="linear: there is no attribute 'wieght'"):
        nn.linear(x, wieght=weight)

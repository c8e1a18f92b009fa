"""Hazards: views, buffers and other shared memory [B6]."""

import types

import numpy as np
import pytest

import letir.numpy as lnp
from tests.each_sample import in_one_test

X, Y = np.array([1.0, 2.0, 3.0]), np.array([4.0, -1.0, 2.0])
LONG = np.arange(5.0)
M = np.array([[1.0, 2.0], [3.0, 4.0]])
SHAPE, REFUSED = "ShapeError", "TraceError"
TABLE = np.ones(3)


def through_a_view(x):
    y = x * 1
    part = y[1:]
    part[0] = 9.0
    return y, part


def view_after_write(x):
    y = x * 1
    part = y[:2]
    y[0] = 7.0
    return part * 2


def shifted(x):
    y = x * 1
    y[1:] = y[:-1]
    return y


def swapped(x):
    y = x.copy()
    y[[0, 2]] = y[[2, 0]]
    y[0], y[1] = y[1], y[0]
    return y


def swapped_views(x):
    y = x * np.ones((2, 1))
    y[0], y[1] = y[1], y[0] * 2
    return y


def two_names(x):
    y = z = x * 1
    y += 1
    return z


def augmented(x):
    y = x
    y = y + 1
    y *= 2
    return y, x


def filled(x):
    out = np.zeros_like(x)
    for i in range(len(x)):
        out[i] = x[i] * i
    return out


def filled_by_letir(x):
    out = lnp.zeros(3)
    out[:] = x
    out[out > 1.5] = 0.0
    return out


def repeated(x):
    y = x * 1
    y[[0, 0, 1]] += 1
    np.add.at(y, [0, 0, 2], x)
    return y


def transposed(m):
    y = m * 1
    y.T[0] = 5.0
    y.reshape(-1)[0] = 6.0
    return y


def real_part(x):
    y = x * (1 + 1j)
    y.real[1:] = 0.0
    return y


def ordinary_buffer(x):
    out = np.zeros(3)
    out[:2] = x[:2]
    return out


def ordinary_sum(x):
    total = np.zeros(3)
    total += x
    return total


def ordinary_out(x):
    out = np.zeros(3)
    np.multiply(x, 2, out=out)
    return out


def into_a_global(x):
    TABLE[0] = x[0]
    return x


def sorted_in_place(x):
    y = x * 1
    y.sort()
    return y[::-1]


def masked_write(x):
    y = x * 1
    y[y > 1.5] = -1.0
    y[y < 0] *= 2
    return y


def rectified(x):
    y = x * 1
    y[y < 0] = 0
    return y


def rows_by_mask(m):
    y = m * 1
    y[y[:, 0] > 1] = 7.5
    return y


def rounded_into_integers(n, limit):
    y = n * 1
    y[y > limit] = 2.7
    return y


def in_a_dict(x):
    params = {"w": x * 1}
    params["w"] -= 0.5 * params["w"]
    return params["w"]


def in_a_list(x):
    rows = [x * 1] * 2
    rows[0] += 1
    return rows[1]


def in_an_object(x):
    holder = types.SimpleNamespace(w=x * 1)
    alias = holder.w
    holder.w += 1
    return alias


MEMORY = {
    "a view": (through_a_view, [X], [([Y], "right")]),
    "a view of what changes": (view_after_write, [X], [([Y], "right")]),
    "an overlap": (shifted, [X], [([Y], "right"), ([LONG], SHAPE)]),
    "a swap": (swapped, [X], [([Y], "right")]),
    "a swap of rows": (swapped_views, [X], [([Y], "right")]),
    "two names": (two_names, [X], [([Y], "right")]),
    "a new array": (augmented, [X], [([Y], "right")]),
    "a buffer like it": (filled, [X], [([Y], "right"), ([LONG], SHAPE)]),
    "a buffer of letir": (filled_by_letir, [X], [([X + 0.1], "right"), ([Y], "right")]),
    "an index twice": (repeated, [X], [([Y], "right")]),
    "a transpose": (transposed, [M], [([M.T.copy()], "right")]),
    "a real part": (real_part, [X], [([Y], "right")]),
    "a sort": (sorted_in_place, [X], [([Y], "right")]),
    "a number by a mask": (rectified, [X], [([Y], "right"), ([-Y], "right"), ([LONG], SHAPE)]),
    "rows by a mask": (rows_by_mask, [M], [([-M], "right"), ([9 * M], "right")]),
    "a number by a mask, cast": (
        rounded_into_integers,
        [np.arange(4), 1],
        [([np.arange(4), 0], "right"), ([np.arange(4), 9], "right")],
    ),
    "a mask": (masked_write, [X], [([X + 0.1], "right")]),
    "in a dict": (in_a_dict, [X], [([Y], "right")]),
    "in a list": (in_a_list, [X], [([Y], "right")]),
    "in an object": (in_an_object, [X], [([Y], "right")]),
    "an ordinary buffer": (ordinary_buffer, [X], [([Y], "right")]),
    "an ordinary sum": (ordinary_sum, [X], [([Y], "right")]),
    "out=": (ordinary_out, [X], [([Y], "right")]),
    "a global array": (into_a_global, [X], REFUSED),
}


@in_one_test
@pytest.mark.parametrize("name", MEMORY)
def test_writes_are_visible_as_in_numpy(name, replays):
    replays(*MEMORY[name])

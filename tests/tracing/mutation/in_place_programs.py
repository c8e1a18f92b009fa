"""Random NumPy programs with views and writes in place, for ``test_in_place_programs``.

A program is a list of steps on a list of arrays. A step is data, which Hypothesis shrinks: the name
of an operation and numbers that choose its operands. The same code runs on arrays and on traced
values; a step at which NumPy raises is left out of both.
"""

import warnings

import numpy as np
from attrs import frozen
from hypothesis import strategies as st

import letir.numpy as lnp

MOST = 6  # arrays at a time


@frozen
class Step:
    """One statement: a name of ``STEPS``, which arrays, and numbers that choose the details."""

    name: str
    on: int
    other: int
    pick: tuple[int, ...]

    def apply(self, held: list) -> None:
        """Perform the step on the arrays."""
        target, other = held[self.on % len(held)], held[self.other % len(held)]
        made = STEPS[self.name](target, other, self.pick)
        if made is not None:
            held.append(made)
            del held[:-MOST]


# ---- indices ----


def basic_item(x, pick) -> tuple:
    """An index of integers, slices, None and ``...`` that fits ``x``."""
    item: list = []
    for axis, n in enumerate(x.shape):
        p = pick[axis % len(pick)] + 3 * axis
        choices = [slice(None), slice(1, None), slice(None, None, -1), slice(None, None, 2)]
        choices += [slice(-2, None), slice(p % 3, 1 + p % 4), slice(None, 0)]
        choices += [p % n, -1 - p % n] * 2 if n else []
        item.append(choices[p % len(choices)])
    place = pick[0] % (len(item) + 3)
    if place < len(item):
        item.insert(place, (None, ...)[pick[1] % 2])
    return tuple(item[: 1 + pick[2] % 4] if len(item) > 1 and pick[1] % 3 else item)


def places(x, pick) -> np.ndarray:
    """Positions along the first axis, which may repeat."""
    return np.array([p % len(x) for p in pick[: 1 + pick[0] % 3]])


def mask_of(x, pick) -> np.ndarray:
    """A mask, the same for arrays and traced values."""
    return np.arange(x.size).reshape(x.shape) % (2 + pick[0] % 2) == pick[1] % 2


def fitted(x, shape, pick):
    """``x``, or a part of it that broadcasts to a shape."""
    if pick[0] % 3 == 0:
        return 0.25 * (pick[1] % 9)
    try:
        np.broadcast_to(np.empty(x.shape), shape)
    except ValueError:
        return x.sum() * 0.125
    return x


# ---- views ----


def indexed(x, other, pick):
    return x[basic_item(x, pick)]


def reshaped(x, other, pick):
    shapes = [(-1,), (1, -1), x.shape[::-1], (*x.shape, 1), (2, -1), (-1, 3), (-1, 2, 1)]
    return x.reshape(shapes[pick[0] % len(shapes)], order="CCF"[pick[1] % 3])


def raveled(x, other, pick):
    return (x.ravel, lambda: np.ravel(x))[pick[0] % 2]()


def transposed(x, other, pick):
    axes = sorted(range(x.ndim), key=lambda i: (pick[i % len(pick)], i))
    ways = [lambda: x.T, lambda: x.transpose(axes), lambda: np.swapaxes(x, 0, -1)]
    ways.append(lambda: np.moveaxis(x, 0, -1))
    return ways[pick[0] % 4]()


def other_view(x, other, pick):
    ways = [
        lambda: np.expand_dims(x, pick[1] % (x.ndim + 1)),
        lambda: np.squeeze(x),
        lambda: np.flip(x, pick[1] % max(x.ndim, 1)),
        lambda: np.split(x, [1, 2], axis=pick[1] % max(x.ndim, 1))[pick[2] % 3],
        lambda: np.array_split(x, 2)[pick[1] % 2],
        lambda: np.broadcast_to(x, (2, *x.shape)),
        lambda: list(x)[-1],
        lambda: np.atleast_2d(x),
        lambda: x[...],
        lambda: np.diagonal(x),
        lambda: x.real,
        lambda: x.imag,
    ]
    return ways[pick[0] % len(ways)]()


# ---- new arrays ----


def computed(x, other, pick):
    ways = [
        lambda: x * 0.5 + fitted(other, x.shape, pick),
        x.copy,
        lambda: np.copy(x),
        lambda: lnp.zeros(x.shape) + x,
        lambda: np.zeros_like(x),
        lambda: x[places(x, pick)],
        lambda: np.sin(x),
        x.flatten,
        lambda: np.concatenate([x, x]),
        lambda: x.sum(axis=0),
    ]
    return ways[pick[0] % len(ways)]()


# ---- writes ----


def set_item(x, other, pick):
    item = basic_item(x, pick)
    x[item] = fitted(other, np.empty(x.shape)[item].shape, pick)


def set_all(x, other, pick):
    x[...] = fitted(other, x.shape, pick)


def set_places(x, other, pick):
    if pick[1] % 2:
        x[places(x, pick)] = fitted(other, x[places(x, pick)].shape, pick)
    else:
        x[mask_of(x, pick)] = 0.5 * pick[2]


def augment(x, other, pick):
    value = fitted(other, x.shape, pick)
    if pick[1] % 3 == 0:
        x += value
    elif pick[1] % 3 == 1:
        x *= 0.5
    else:
        x -= value * 0.5


def augment_item(x, other, pick):
    if pick[0] % 3 == 0:
        x[mask_of(x, pick)] *= 0.5
    elif pick[0] % 3 == 1:
        x[places(x, pick)] += 1.5
    else:
        x[basic_item(x, pick)] += 0.25


def swap(x, other, pick):
    i, j = pick[0] % len(x), pick[1] % len(x)
    if pick[2] % 2:
        x[[i, j]] = x[[j, i]]
    else:
        x[i], x[j] = x[j], x[i]


def shift(x, other, pick):
    if pick[0] % 2:
        x[1:] = x[:-1]
    else:
        x[:-1] += x[1:]


def with_out(x, other, pick):
    if pick[0] % 3 == 0:
        np.add(x, fitted(other, x.shape, pick), out=x)
    elif pick[0] % 3 == 1:
        np.multiply(x[::-1], 0.5, out=x)
    else:
        np.subtract(x[0], 1.0, out=x[-1])


def refuse_read_only(x):
    """Raise for read-only arrays, as most writes of NumPy do. ``ufunc.at`` writes into np.diagonal,
    and copyto does not check when it copies an array onto itself.
    """
    x[:0] = 0


def by_function(x, other, pick):
    value = fitted(other, x.shape, pick)
    ways = [
        lambda: (refuse_read_only(x), np.copyto(x, value)),
        lambda: x.fill(0.5 * pick[1]),
        lambda: (refuse_read_only(x), np.add.at(x, places(x, pick), 0.5)),
        lambda: np.put(x, [0, -1], [1.5, 2.5]),
        lambda: (refuse_read_only(x), np.copyto(x, value, where=mask_of(x, pick))),
        lambda: np.putmask(x, mask_of(x, pick), 0.25),
        lambda: np.place(x, mask_of(x, pick), [0.5, 1.5]),
        lambda: x.flat.__setitem__(slice(1, 3), 4.5),
        x.sort,
        lambda: np.fill_diagonal(x, 0.75),
    ]
    if x.shape:  # a scalar has these methods too, with other effects
        ways[pick[0] % len(ways)]()


def by_rows(x, other, pick):
    for i, row in enumerate(x):
        row[0] = i + 0.5
        np.multiply(row, 2, out=row)


VIEWS = [indexed, reshaped, raveled, transposed, other_view]
WRITES = [set_item, set_all, set_places, augment, augment_item, swap, shift, with_out]
WRITES += [by_function, by_rows]
STEPS = {f.__name__: f for f in [*VIEWS, *WRITES, computed]}


# ---- arguments ----


DTYPES = {"f": np.float64, "c": np.complex128, "i": np.int64}


def argument(shape, order: str, kind: str, seed: int) -> np.ndarray:
    """An array in this order: C, F, or every second column of a larger one."""
    rng = np.random.default_rng(seed)
    is_strided = order == "strided" and len(shape) > 0
    whole = rng.normal(size=(*shape[:-1], 2 * shape[-1]) if is_strided else shape)
    whole = np.round(9 * whole) if kind == "i" else whole
    whole = np.array(whole * (1 + 0.5j) if kind == "c" else whole, DTYPES[kind], order="K")
    return whole[..., ::2] if is_strided else np.array(whole, order="F" if order == "F" else "C")


shapes = st.sampled_from([(4,), (2, 3), (3, 3), (2, 1, 3), (2, 2, 2), (1, 4), (6,), (), (0, 2)])
numbers = st.integers(0, 11)
steps = st.builds(
    Step,
    st.one_of(*[st.sampled_from([f.__name__ for f in fs]) for fs in (VIEWS, WRITES, [computed])]),
    numbers,
    numbers,
    st.tuples(numbers, numbers, numbers),
)
orders = st.sampled_from(["C", "C", "F", "strided"])


def programs(kinds: str) -> st.SearchStrategy:
    """(shape, memory order and kind of each argument, steps)."""
    arguments = st.lists(st.tuples(shapes, orders, st.sampled_from(kinds)), min_size=1, max_size=2)
    return st.tuples(arguments, st.lists(steps, min_size=1, max_size=10))


def run(todo: list[Step], args: tuple) -> tuple:
    """The arrays at the end of a program."""
    held = list(args)
    for step in todo:
        step.apply(held)
    return tuple(held)


def possible(todo: list[Step], args: tuple) -> list[Step]:
    """The steps at which NumPy does not raise."""
    held, kept = list(args), []
    for step in todo:
        try:
            with warnings.catch_warnings(action="error"):  # about a discarded imaginary part
                step.apply(held)
        except (ValueError, IndexError, TypeError, ArithmeticError, AttributeError, Warning):
            # a failing step may have changed arrays before it raised: start again without it
            return kept
        kept.append(step)
    return kept

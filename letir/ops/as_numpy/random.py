"""NumPy source of random numbers by key: the ``source`` of the records that draw."""

from typing import Any

import numpy as np

from letir.ops.as_numpy.arrays import shape_text

_PHILOX = '''
def philox(key, counter=(0, 0, 0, 0)):
    """The counter-based generator of each key of a batch, from this counter on."""
    words = np.asarray(key).astype(np.uint64).reshape(-1, 2)
    return [np.random.Philox(counter=np.array(counter, np.uint64), key=word) for word in words]
'''
_KEY = '''
def random_key(seed):
    """A seed as its low and its high word."""
    low = np.asarray(seed).astype(np.uint64)
    return np.stack([low, np.where(np.asarray(seed) < 0, ~np.zeros_like(low), 0 * low)], -1)
'''
_SPLIT = '''
def random_split(key, num):
    """New keys for each key of a batch."""
    found = [p.random_raw(2 * int(np.prod(num))) for p in philox(key, (0, 0, 0, 1))]
    return np.array(found, np.uint64).reshape((*key.shape[:-1], *num, 2))
'''
_FOLD_IN = '''
def random_fold_in(key, data):
    """For each key and number a new key."""
    shape = np.broadcast_shapes(key.shape[:-1], np.shape(data))
    keys = np.broadcast_to(key, (*shape, 2)).reshape(-1, 2)
    numbers = np.broadcast_to(np.asarray(data).astype(np.uint64), shape).reshape(-1).tolist()
    found = [philox(k, (n, 0, 0, 2))[0].random_raw(2) for k, n in zip(keys, numbers)]
    return np.array(found, np.uint64).reshape((*shape, 2))
'''
_DRAW = '''
def random_draw(key, shape, draw, dtype):
    """What each key of a batch draws."""
    found = [np.asarray(draw(np.random.Generator(p), shape)) for p in philox(key)]
    return np.array(found).reshape((*key.shape[:-1], *shape)).astype(dtype)[()]
'''
_GENERATED = {
    "uniform": "g.random(s, {0})",
    "normal": "g.standard_normal(s, {0})",
    "exponential": "g.standard_exponential(s, {0})",
    "bits": "g.integers(0, 2**64 - 1, s, {0}, endpoint=True)",
    "permutation": "np.argsort(g.integers(0, 2**64 - 1, s, np.uint64, endpoint=True))",
}


def _philox_helper(write, text: str) -> str:
    """Add the helper function ``text``, which calls ``philox``, and return its name."""
    return write.helper(text.replace("philox(", f"{write.helper(_PHILOX)}("))


def key(write: Any, seed: str) -> str:
    """A call that makes a key of a seed."""
    return f"{write.helper(_KEY)}({seed})"


def split(write: Any, key: str, *, num: tuple[int, ...]) -> str:
    """A call that splits a key."""
    return f"{_philox_helper(write, _SPLIT)}({key}, {write.literal(num)})"


def fold_in(write: Any, key: str, data: str) -> str:
    """A call that folds a number into a key."""
    return f"{_philox_helper(write, _FOLD_IN)}({key}, {data})"


def draw(
    write: Any, key: str, *sizes: str, distribution: str, shape: tuple, dtype: np.dtype
) -> str:
    """A call that draws numbers, by a generator for each key."""
    single = "np.float32" if dtype.itemsize < 8 else write.literal(dtype)
    drawn = _GENERATED[distribution].format(single)
    size, function = shape_text(write, sizes, shape), _philox_helper(write, _DRAW)
    return f"{function}({key}, {size}, lambda g, s: {drawn}, {write.literal(dtype)})"


def random_places(write: Any, key: str, *p: str, n: int, shape: tuple, replace: bool) -> str:
    """A call that draws random places among ``n``."""
    count = 1
    for size in shape:
        count *= size
    if not replace:
        rate = f" / {p[0]}" if p else ""
        drawn = f"np.argsort(g.standard_exponential({n}){rate})[:{count}].reshape(s)"
    elif not p:
        drawn = f"g.integers(0, {n}, s)"
    else:
        total = f"np.cumsum({p[0]})"
        drawn = f'np.searchsorted({total}, g.random(s) * {total}[-1], side="right")'
    function = _philox_helper(write, _DRAW)
    return f"{function}({key}, {write.literal(shape)}, lambda g, s: {drawn}, np.int64)"


def gamma_draw(write: Any, key: str, a: str, *sizes: str, shape: tuple, dtype: np.dtype) -> str:
    """A call that draws gamma numbers."""
    size, function = shape_text(write, sizes, shape), _philox_helper(write, _DRAW)
    drawn = f"lambda g, s: g.standard_gamma({a}, s)"
    return f"{function}({key}, {size}, {drawn}, {write.literal(dtype)})"

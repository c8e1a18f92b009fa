"""Random numbers by key: keys, and the one operation that draws.

A key is two words of Philox, an integer array of shape (2,); an array of shape (..., 2) is a batch
of keys, each of which draws numbers of its own. Philox is counter-based: key and counter determine
the numbers, and there is no state (Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy
as 1, 2, 3, SC 2011). Draws count from 0. The last word of the counter is 0 for draws and a purpose
for other uses of a key, so that new keys never repeat drawn numbers.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from letir.ast.builder import Value
from letir.ast.record_fields import never
from letir.ast.types import ArrayType, broadcast_shapes, number_dtype
from letir.errors import DTypeError, ShapeError
from letir.ops.as_numpy import random
from letir.ops.define.batch_rules import batch_first, emit_op, rank_of, widen_rank
from letir.ops.define.records import DISCRETE, define
from letir.ops.shape.shape_and_creation import as_size, runtime_shape, shape_operands

_SPLITTING, _FOLDING, _SEEDING = 1, 2, 3  # purposes, in the last word of the counter
_NO_PARAMETERS = never("the numbers depend on the key only")
NO_ONNX = never(
    "ONNX has no keyed random numbers: make the key in the program, whose numbers then are "
    "constants of the model, or draw outside of it"
)
_FLOATS = {np.dtype(c): np.dtype(drawn) for c, drawn in (("e", "f"), ("f", "f"), ("d", "d"))}

# ---- Philox, on the host ----


def _words_of(key) -> np.ndarray:
    """The words of a batch of keys, of shape (keys, 2), on the host: Philox runs there for CuPy."""
    host = np.asarray(key.get() if hasattr(key, "get") else key)
    return host.astype(np.uint64, copy=False).reshape(-1, 2)


def _philox_words(words: np.ndarray, counter: tuple, count: int) -> np.ndarray:
    """``count`` words of the Philox generator with one key, starting at this counter."""
    return np.random.Philox(counter=np.array(counter, np.uint64), key=words).random_raw(count)


def key_generators(key: Any, xp: Any) -> Iterator:
    """Yield a generator of ``xp`` for each key of a batch; each is valid until the next."""
    if xp is not np:
        for words in _words_of(key):  # CuPy's Philox takes a seed of one word
            seed = int(_philox_words(words, (0, 0, 0, _SEEDING), 1)[0] >> np.uint64(1))
            yield xp.random.Generator(xp.random.Philox4x3210(seed))
        return
    philox = None
    for words in _words_of(key):
        if philox is None:
            philox = np.random.Philox(key=words)
            fresh = philox.state
        else:  # takes an eighth of the time of making another Philox
            fresh["state"]["key"] = words
            philox.state = fresh
        yield np.random.Generator(philox)


def stack_results(key: Any, results: list, shape: tuple, dtype: Any, xp: Any) -> Any:
    """The results, one for each key of a batch, as one array."""
    lead = key.shape[:-1]
    if not lead:
        return results[0]
    if not results:
        return xp.zeros((*lead, *shape), dtype)
    return xp.stack(results).reshape((*lead, *shape))


# ---- types ----


def check_key(key: ArrayType) -> None:
    """Raise DTypeError unless ``key`` is the type of a key, or of a batch of keys."""
    if key is None or key.dtype.kind not in "iu" or key.shape[-1:] != (2,):
        raise DTypeError(
            f"a random key is two integers, an array of shape (2,), found {key}\n"
            "  make one of a seed: letir.random.key(0)"
        )


# ---- keys ----


def _key_impl(xp, seed):
    """A seed as two words: its 64 bits, and 0, or all ones if it is negative."""
    seed = xp.asarray(seed)
    low = seed.astype("uint64")
    return xp.stack([low, xp.where(seed < 0, ~xp.zeros_like(low), xp.zeros_like(low))], -1)


def _key_aval(seed):
    """Two words for each seed."""
    if seed.dtype.kind not in "iu":
        raise DTypeError(
            f"a seed must be an integer, found {seed}\n  pass a whole number, or seed.astype(int)"
        )
    return ArrayType(np.uint64, (*seed.shape, 2))


random_key = define(
    "random_key",
    _key_impl,
    _key_aval,
    vjp=DISCRETE,
    jvp=DISCRETE,
    batch=batch_first(lambda args, mapped: emit_op("random_key", args)),
    onnx=NO_ONNX,
    source=random.key,
)


def _new_keys(key, count: int) -> np.ndarray:
    """``count`` new keys for each key of a batch, from counters that draws never reach."""
    result = [_philox_words(words, (0, 0, 0, _SPLITTING), 2 * count) for words in _words_of(key)]
    return np.array(result, np.uint64).reshape(len(result), count, 2)


def _split_impl(xp, key, *, num):
    """New keys for each key of a batch."""
    return xp.asarray(_new_keys(key, math.prod(num)).reshape(*key.shape[:-1], *num, 2))


def _split_aval(key, *, num):
    """Keys in the shape ``num``, for each key of a batch."""
    check_key(key)
    if any(n < 0 for n in num):
        raise ShapeError(
            f"split: the number of keys must not be negative, found {num}\n"
            "  pass how many keys to make"
        )
    return ArrayType(np.uint64, (*key.shape[:-1], *num, 2))


random_split = define(
    "random_split",
    _split_impl,
    _split_aval,
    vjp=DISCRETE,
    jvp=DISCRETE,
    batch=batch_first(lambda args, mapped, **attrs: emit_op("random_split", args, **attrs)),
    prepare=lambda key, num=2: (
        (key,),
        {"num": tuple(map(as_size, num if isinstance(num, tuple | list) else (num,)))},
    ),
    random=True,
    onnx=NO_ONNX,
    source=random.split,
)


def _fold_in(key, data) -> np.ndarray:
    """For each key and number a new key: the words of the key's generator at that counter."""
    numbers = np.asarray(data.get() if hasattr(data, "get") else data).astype(np.uint64)
    lead = np.broadcast_shapes(key.shape[:-1], numbers.shape)
    keys = np.broadcast_to(_words_of(key).reshape(key.shape), (*lead, 2)).reshape(-1, 2)
    counters = np.broadcast_to(numbers, lead).reshape(-1).tolist()
    result = [
        _philox_words(words, (counter, 0, 0, _FOLDING), 2)
        for words, counter in zip(keys, counters, strict=True)
    ]
    return np.array(result, np.uint64).reshape(*lead, 2)


def _fold_in_aval(key, data):
    """One key for each key and number."""
    check_key(key)
    if data.dtype.kind not in "iu":
        raise DTypeError(
            f"fold_in: data must be an integer, found {data}\n"
            "  pass a whole number such as the number of the step"
        )
    return ArrayType(np.uint64, (*broadcast_shapes(key.shape[:-1], data.shape), 2))


@batch_first
def _fold_in_batch(args, mapped):
    """The batching rule of fold_in: ranks are aligned behind the batch axis."""
    key, data = args
    lead, ndim = rank_of(key, mapped[0]) - 1, rank_of(data, mapped[1])
    if mapped[0] and lead < ndim:
        key = widen_rank(key, ndim + 1)
    if mapped[1] and ndim < lead:
        data = widen_rank(data, lead)
    return emit_op("random_fold_in", (key, data))


random_fold_in = define(
    "random_fold_in",
    lambda xp, key, data: xp.asarray(_fold_in(key, data)),
    _fold_in_aval,
    vjp=DISCRETE,
    jvp=DISCRETE,
    batch=_fold_in_batch,
    random=True,
    onnx=NO_ONNX,
    source=random.fold_in,
    role="fold_in",
)

# ---- draws ----

_DRAWS = {  # methods that the generators of NumPy and CuPy both have
    "uniform": lambda g, shape, dtype: g.random(shape, dtype),
    "normal": lambda g, shape, dtype: g.standard_normal(shape, dtype),
    "exponential": lambda g, shape, dtype: g.standard_exponential(shape, dtype),
    "bits": lambda g, shape, dtype: g.integers(0, (1 << 64) - 1, shape, dtype, endpoint=True),
}


def _draw_impl(xp, key, *sizes, distribution, shape, dtype):
    """Draw with the generator of each key: the same numbers in every evaluator of ``xp``."""
    shape = runtime_shape(shape, sizes)
    if distribution == "permutation":
        # the order of 64-bit numbers, as CuPy's generators have no permutation
        bits = [_DRAWS["bits"](g, shape, "uint64") for g in key_generators(key, xp)]
        results = [xp.argsort(b).astype(dtype, copy=False) for b in bits]
    else:
        drawn = _FLOATS.get(dtype, dtype)  # generators draw float32 and float64 only
        results = [
            xp.asarray(_DRAWS[distribution](g, shape, drawn)).astype(dtype, copy=False)
            for g in key_generators(key, xp)
        ]
    out = stack_results(key, results, shape, dtype, xp)
    return out if out.shape else out[()]


def _draw_aval(key, *sizes, distribution, shape, dtype):
    """The declared type for each key of a batch."""
    check_key(key)
    if distribution not in _DRAWS and distribution != "permutation":
        raise DTypeError(
            f"random_draw: there is no distribution {distribution!r}\n"
            f"  there are {', '.join(_DRAWS)} and permutation"
        )
    return None if shape is None else ArrayType(dtype, (*key.shape[:-1], *shape))


def _draw_prepare(key, distribution, shape, dtype=float):
    """(operands, attributes): the key, operands for a shape with traced sizes; the distribution."""
    sizes, shape = shape_operands(shape)
    return (key, *sizes), {
        "distribution": distribution,
        "shape": shape,
        "dtype": number_dtype(dtype),
    }


random_draw = define(
    "random_draw",
    _draw_impl,
    _draw_aval,
    vjp=_NO_PARAMETERS,
    jvp=_NO_PARAMETERS,
    # random_draw takes batches of keys itself; a shape cannot be mapped
    batch=batch_first(lambda args, mapped, **attrs: emit_op("random_draw", args, **attrs)),
    prepare=_draw_prepare,
    random=True,
    onnx=NO_ONNX,
    source=random.draw,
    key_operand=None,
    for_scripts=False,
)


def as_key(key: Any) -> Value:
    """``key``, or the key of an integer seed."""
    if isinstance(key, Value) and key.type is not None and not key.type.shape:
        return random_key(key)
    return key

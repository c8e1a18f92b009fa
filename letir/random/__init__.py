"""``letir.random``: random numbers by key, the same in every evaluator [semantics.md B9].

A key is an array of two integers, which determines all numbers drawn with it; so use each key only
once. ``split`` makes new keys, ``fold_in`` makes a key from a key and a number, ``reused_keys``
finds keys that a program uses twice. The functions take arrays and traced values; a call is one
bind.

>>> import letir, numpy as np
>>> from letir import random
>>> k1, k2 = random.split(random.key(0))
>>> random.normal(k1, (2,)).shape, random.bernoulli(k2, 0.5)
((2,), np.False_)
>>> def noisy(key, x):
...     return (x + random.normal(key, None, 0.0, x)).sum()
>>> f = letir.trace(noisy, k1, np.ones(3))
>>> bool(f(k1, np.ones(3)) == noisy(k1, np.ones(3)))
True
"""

import operator
import sys
from typing import Any

import numpy as np

from letir.ast import entry_point, load_module
from letir.ast.builder import Value
from letir.ast.primitive import PRIMITIVES
from letir.eval.array_modules import type_of
from letir.eval.evaluator import compute
from letir.random.parameters import refuse_bounds, refuse_dtypes, refuse_values
from letir.random.reuse import Reuse, reused_keys

__all__ = [
    "Reuse",
    "bernoulli",
    "categorical",
    "choice",
    "exponential",
    "fold_in",
    "gamma",
    "key",
    "normal",
    "permutation",
    "randint",
    "reused_keys",
    "split",
    "truncated_normal",
    "uniform",
]
_WORD = (1 << 64) - 1


def _draw_checked(name: str, *args):
    """Call the operation ``name``, with the types of operands checked outside of traces too."""
    op = PRIMITIVES[name]
    refuse_dtypes(name.removeprefix("random_"), args[:-1])  # the last one may be the dtype
    operands, attrs = op.prepare(*args) if op.prepare else (args, {})
    emitter = next((o.emitter for o in operands if isinstance(o, Value)), None)
    attrs = op.complete(attrs)
    if emitter is not None:
        return emitter.apply(op, operands, attrs)
    operands = [np.asarray(o) if type(o) in (list, tuple) else o for o in operands]
    op.aval(*map(type_of, operands), **attrs)
    return compute(op, operands, attrs)


# ---- keys ----


@entry_point
def key(seed: Any) -> Any:
    """The key of an integer seed: the lower 128 bits of a Python int, or a traced int64.

    >>> from letir import random
    >>> random.key(0)
    array([0, 0], dtype=uint64)
    """
    if isinstance(seed, Value) or np.ndim(seed):
        return _draw_checked("random_key", seed)
    seed = operator.index(seed)
    return np.array([seed & _WORD, seed >> 64 & _WORD], np.uint64)


@entry_point
def split(key: Any, num: Any = 2) -> Any:
    """``num`` new keys with independent numbers, as an array of shape (num, 2).

    ``num``: an int or a shape. The first keys do not depend on ``num``.

    >>> from letir import random
    >>> first, second = random.split(random.key(0))
    >>> random.split(random.key(0), 3).shape
    (3, 2)
    """
    return _draw_checked("random_split", key, num)


@entry_point
def fold_in(key: Any, data: Any) -> Any:
    """A new key from ``key`` and an integer, such as the number of a step.

    >>> from letir import random
    >>> step_key = random.fold_in(random.key(0), 7)  # the key of step 7
    >>> random.normal(step_key, (2,)).shape
    (2,)
    """
    return _draw_checked("random_fold_in", key, data)


# ---- numbers ----


@entry_point
def normal(key: Any, shape: Any = None, loc: Any = 0.0, scale: Any = 1.0, dtype: Any = None) -> Any:
    """Normal numbers of mean ``loc`` and standard deviation ``scale``.

    ``shape``: by default the broadcast shape of the parameters, as in all functions here.
    ``dtype``: by default the parameters' dtype, float64 for Python numbers. The derivative with
    respect to ``loc`` is 1, with respect to ``scale`` it is the standard normal number drawn.

    >>> from letir import random
    >>> random.normal(random.key(0), (2,)).round(2)
    array([ 0.16, -1.77])
    """
    refuse_values("normal", "scale", scale)
    return _draw_checked("random_normal", key, shape, loc, scale, dtype)


@entry_point
def uniform(key: Any, shape: Any = None, low: Any = 0.0, high: Any = 1.0, dtype: Any = None) -> Any:
    """Uniform numbers in [low, high).

    The derivative with respect to ``low`` is 1 - u, with respect to ``high`` it is u, where u is
    the number in [0, 1) that was drawn.

    >>> from letir import random
    >>> random.uniform(random.key(0), (2,), low=1.0, high=3.0).round(2)
    array([1.02, 1.48])
    """
    return _draw_checked("random_uniform", key, shape, low, high, dtype)


@entry_point
def exponential(key: Any, shape: Any = None, scale: Any = 1.0, dtype: Any = None) -> Any:
    """Exponential numbers of mean ``scale``; the derivative is the number drawn for mean 1.

    >>> from letir import random
    >>> random.exponential(random.key(0), (2, 3)).shape
    (2, 3)
    """
    refuse_values("exponential", "scale", scale)
    return _draw_checked("random_exponential", key, shape, scale, dtype)


@entry_point
def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Gamma numbers of shape parameter ``a`` and scale 1; multiply them by another scale.

    The derivative with respect to ``a`` is implicit, at a fixed quantile. It can be differentiated
    once more.

    >>> from letir import random
    >>> random.gamma(random.key(0), 2.0, (2, 3)).shape
    (2, 3)
    """
    refuse_values("gamma", "a", a)
    return _draw_checked("random_gamma", key, a, shape, dtype)


@entry_point
def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Standard normal numbers between ``lower`` and ``upper``, differentiable in the bounds.

    Drawn by the inverse of the distribution function. Needs SciPy.

    >>> from letir import random
    >>> numbers = random.truncated_normal(random.key(0), -1.0, 1.0, (100,))
    >>> bool((abs(numbers) <= 1).all())
    True
    """
    refuse_bounds("truncated_normal", lower, upper)
    return _draw_checked("random_truncated_normal", key, lower, upper, shape, dtype)


# ---- choices, which have no derivatives with respect to probabilities ----


@entry_point
def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Any:
    """True with probability ``p``.

    >>> from letir import random
    >>> random.bernoulli(random.key(0), 0.5, (4,))
    array([ True,  True,  True, False])
    """
    refuse_values("bernoulli", "p", p, "probabilities, from 0 to 1", most=1)
    return _draw_checked("random_bernoulli", key, p, shape)


@entry_point
def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Any:
    """Indices along ``axis`` of ``logits``, with probabilities proportional to exp(logits).

    ``shape``: the shape of the result, to which the other axes of ``logits`` broadcast.

    >>> import numpy as np
    >>> from letir import random
    >>> random.categorical(random.key(0), np.log([0.1, 0.9]), shape=(5,))
    array([0, 1, 1, 1, 1])
    """
    return _draw_checked("random_categorical", key, logits, axis, shape)


@entry_point
def randint(key: Any, shape: Any, low: Any, high: Any, dtype: Any = np.int64) -> Any:
    """Integers from ``low`` up to, but not including, ``high``, which may be arrays.

    >>> from letir import random
    >>> random.randint(random.key(0), (4,), 0, 10)
    array([9, 8, 9, 6])
    """
    return _draw_checked("random_randint", key, shape, low, high, dtype)


@entry_point
def permutation(key: Any, x: Any, axis: int = 0) -> Any:
    """``x`` in random order along ``axis``; for an int n, the numbers 0 to n - 1 in random order.

    Derivatives flow to the elements in their original places.

    >>> from letir import random
    >>> random.permutation(random.key(0), 5)
    array([0, 2, 1, 4, 3])
    """
    if np.ndim(x) == 0:
        return _draw_checked("random_draw", key, "permutation", (operator.index(x),), np.int64)
    return _draw_checked("random_permutation", key, x, axis)


@entry_point
def choice(
    key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0
) -> Any:
    """Elements of ``a`` along ``axis``, or numbers below the int ``a``, with probabilities ``p``.

    ``p``: numbers from 0; they are divided by their sum. Derivatives flow to the chosen elements.

    >>> from letir import random
    >>> random.choice(random.key(0), 10, (3,))
    array([0, 0, 6])
    """
    refuse_values("choice", "p", p, "probabilities, at least 0")
    if np.ndim(a) == 0:
        return _draw_checked("random_places", key, operator.index(a), shape, replace, p)
    return _draw_checked("random_choice", key, a, shape, replace, p, axis)


def __getattr__(name: str):
    raise load_module("letir.foreign_names").missing_name(sys.modules[__name__], name)


def __dir__() -> list[str]:
    return __all__

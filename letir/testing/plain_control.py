"""letir's control flow as plain Python on NumPy arrays, the reference for recorded programs."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np


def _map_leaves(f: Callable, *trees):
    """``f`` on the leaves of nested tuples that nest alike."""
    if isinstance(trees[0], tuple):
        return tuple([_map_leaves(f, *parts) for parts in zip(*trees, strict=True)])
    return f(*trees)


def _elements_of(tree) -> list:
    """The elements along the leading axes."""
    first = tree
    while isinstance(first, tuple):
        first = first[0]
    return [_map_leaves(lambda x, i=i: x[i], tree) for i in range(len(first))]


def _stack_trees(trees: list, example: Callable):
    """Pytrees stacked leaf by leaf; ``example()`` gives the structure if there are no pytrees."""
    if trees:
        return _map_leaves(lambda *leaves: np.stack(leaves), *trees)
    return _map_leaves(lambda x: np.zeros((0, *np.shape(x)), np.asarray(x).dtype), example())


def _blank_element(tree):
    """An element of zeros with the shape of the elements along the leading axes."""
    return _map_leaves(lambda x: np.zeros(x.shape[1:], x.dtype)[()], tree)


def cond(pred: Any, true_fun: Callable, false_fun: Callable, *operands: Any) -> Any:
    """``lt.cond``: calls one of two functions."""
    return true_fun(*operands) if pred else false_fun(*operands)


def switch(index: Any, branches: Sequence[Callable], *operands: Any) -> Any:
    """``lt.switch``: calls one of several functions."""
    return branches[min(max(int(index), 0), len(branches) - 1)](*operands)


def while_loop(
    cond_fun: Callable, body_fun: Callable, init: Any, *, checkpoint_every: int | None = None
) -> Any:
    """``lt.while_loop``: a loop with a test."""
    while cond_fun(init):
        init = body_fun(init)
    return init


def fori_loop(
    lower: Any, upper: Any, body_fun: Callable, init: Any, *, checkpoint_every: int | None = None
) -> Any:
    """``lt.fori_loop``: a counted loop."""
    for i in range(int(lower), int(upper)):
        init = body_fun(np.int64(i), init)
    return init


def scan(
    f: Callable,
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    *,
    checkpoint_every: int | None = None,
) -> tuple[Any, Any]:
    """``lt.scan``: a loop over elements that stacks the results of the steps."""
    elements = [None] * length if xs is None else _elements_of(xs)
    carry, ys = init, []
    for x in elements[::-1] if reverse else elements:
        carry, y = f(carry, x)
        ys.append(y)
    example = lambda: f(carry, None if xs is None else _blank_element(xs))[1]  # noqa: E731
    return carry, _stack_trees(ys[::-1] if reverse else ys, example)


def _call_each(f, *xs):
    """A call for each element."""
    return _stack_trees([f(*x) for x in _elements_of(xs)], lambda: f(*_blank_element(xs)))


def reduce(op: Callable, init: Any, xs: Any) -> Any:
    """``lt.reduce``: all elements combined, one after the other."""
    for x in _elements_of(xs):
        init = op(init, x)
    return init


def associative_scan(op: Callable, xs: Any, reverse: bool = False) -> Any:
    """``lt.associative_scan``: the combinations of all elements up to each one."""
    result: list = []
    elements = _elements_of(xs)
    for x in elements[::-1] if reverse else elements:
        result.append(op(result[-1], x) if result else x)
    return _stack_trees(result[::-1] if reverse else result, lambda: _blank_element(xs))


def reduce_by_index(dest: Any, op: Callable, ne: Any, indices: Any, values: Any) -> Any:
    """``lt.reduce_by_index``: each element combined with the one at its index."""
    out = dest.copy()
    for i, value in zip(indices, values, strict=True):
        if 0 <= i < len(out):
            out[i] = op(out[i], value)
    return out


def scatter(dest: Any, indices: Any, values: Any) -> Any:
    """``lt.scatter``: each element written to its index."""
    return reduce_by_index(dest, lambda a, b: b, None, indices, values)


PLAIN = SimpleNamespace(
    cond=cond,
    switch=switch,
    while_loop=while_loop,
    fori_loop=fori_loop,
    scan=scan,
    map=_call_each,
    reduce=reduce,
    associative_scan=associative_scan,
    reduce_by_index=reduce_by_index,
    scatter=scatter,
)

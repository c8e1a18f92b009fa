"""Optimisers as pure functions over pytrees: ``init(params)`` and ``update(grads, state, params)``.

``update`` returns the new parameters and the new state. Nothing is changed in place, so a training
step is a function that can be traced, replayed and differentiated. Leaves keep their dtype. A
learning rate is a number, or a function of the step number (from 0), such as ``cosine_decay``.

>>> import numpy as np
>>> optimizer = sgd(0.1)
>>> params = {"w": np.ones(2)}
>>> state = optimizer.init(params)
>>> params, state = optimizer.update({"w": np.array([1.0, -2.0])}, state, params)
>>> params
{'w': array([0.9, 1.2])}
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import field, frozen

from letir.ast import LATE_BOUND, entry_point
from letir.ast.builder import Value
from letir.ast.pytrees import Tree, flatten
from letir.errors import DTypeError, ShapeError
from letir.eval.array_modules import type_of
from letir.nn.schedules import cosine_decay, exponential_decay, rate_at_step, warmup
from letir.ops.nn.distances import safe_sqrt

__all__ = [
    "Optimizer",
    "adagrad",
    "adam",
    "adamw",
    "clip_by_global_norm",
    "cosine_decay",
    "exponential_decay",
    "global_norm",
    "momentum",
    "rmsprop",
    "sgd",
    "warmup",
]

# ---- parts of optimisers ----


def _init_for_users(init: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``init``, which refuses parameters that are not arrays."""

    @entry_point
    @functools.wraps(init)
    def checked(params):
        for leaf in flatten(params)[0]:
            if not isinstance(leaf, Value):
                type_of(leaf)  # DTypeError for an object that is not an array
        return init(params)

    return checked


def _update_for_users(update: Callable[..., Any]) -> Callable[..., Any]:
    """``update``, which refuses a state that ``init`` did not make."""

    @entry_point
    @functools.wraps(update)
    def checked(grads, state, params):
        if not isinstance(state, dict) or "step" not in state:
            raise DTypeError(
                f"optim: expected a state from optimizer.init(params), found "
                f"{LATE_BOUND['describe_value'](state)}\n"
                "  begin with that state, and go on with the one that update returns"
            )
        return update(grads, state, params)

    return checked


@frozen
class Optimizer:
    """``init(params)`` returns a state, ``update(grads, state, params)`` new params and state.

    >>> by_hand = Optimizer(lambda w: {"step": 0}, lambda grads, state, w: (w - grads, state))
    >>> by_hand.update(np.array([0.5, -1.0]), {"step": 0}, np.array([1.0, 2.0]))[0]
    array([0.5, 3. ])
    """

    init: Callable[[Any], Any] = field(converter=_init_for_users)
    update: Callable[[Any, Any, Any], tuple[Any, Any]] = field(converter=_update_for_users)


@entry_point
def zeros_like_params(params: Any) -> Any:
    """A pytree of zeros like ``params``."""
    leaves, spec = flatten(params)
    return spec.unflatten([np.zeros_like(leaf) for leaf in leaves])


def _refuse_rate(name: str, learning_rate: Any, **shares: Any) -> None:
    """Raise ShapeError for a negative learning rate, or a decay rate that is not in [0, 1), and
    DTypeError for a schedule that does not take the step.
    """
    if type(learning_rate) in (int, float) and not learning_rate >= 0:
        raise ShapeError(
            f"{name}: a learning rate must be at least 0, found {learning_rate}\n"
            "  steps go against the gradient already; to maximise, negate the loss"
        )
    if callable(learning_rate):
        _refuse_schedule(name, learning_rate)
    for share, value in shares.items():
        if type(value) in (int, float) and not 0 <= value < 1:
            raise ShapeError(
                f"{name}: {share} must be at least 0 and less than 1, found {value}\n"
                f"  typical values are 0.9 and 0.99"
            )


def _refuse_schedule(name: str, schedule: Callable) -> None:
    """Raise DTypeError for a schedule that cannot be called with the number of the step."""
    try:
        signature = inspect.signature(schedule)
    except (TypeError, ValueError):  # functions in C have no signature
        return
    try:
        signature.bind(0)
    except TypeError as error:
        raise DTypeError(
            f"{name}: learning_rate must be a number or a function of the step: {error}\n"
            "  write lambda step: ..., or see letir.nn.optim.cosine_decay"
        ) from None


@entry_point
def map_leaves(function: Callable, *trees: Any) -> tuple:
    """Apply ``function``, which returns a tuple, to corresponding leaves: a tuple of pytrees."""
    leaves, spec = flatten(trees[0])
    columns = [leaves]
    for tree in trees[1:]:
        more, nesting = flatten(tree)
        if nesting != spec:
            raise ShapeError(
                "optim: gradients, state and parameters must nest alike, found "
                f"{Tree(spec)} and {Tree(nesting)}\n"
                "  take the gradients with respect to the parameters, and the state of init(params)"
            )
        columns.append(more)
    for i, row in enumerate(zip(*columns, strict=True)):
        if len({np.shape(leaf) for leaf in row}) > 1:
            place = "".join([f"[{key!r}]" for key in spec.paths()[i]])
            raise ShapeError(
                "optim: a parameter, its gradient and its state must have one shape, found "
                f"{', '.join([str(np.shape(leaf)) for leaf in row])} at params{place}\n"
                "  take the gradients with respect to the parameters, and the state of init(params)"
            )
    rows = [function(*row) for row in zip(*columns, strict=True)]
    return tuple([spec.unflatten(column) for column in zip(*rows, strict=True)])


@entry_point
def cast_to_leaf(number: Any, leaf: Any) -> Any:
    """A number in the dtype of a leaf, so that arithmetic with it does not change that dtype."""
    return number.astype(leaf.dtype) if hasattr(number, "dtype") else number


_FIRST_STEP = np.int64(0)  # not a Python int: replays return NumPy integers, and types must agree

# ---- optimisers ----


@entry_point
def sgd(
    learning_rate: float | Callable,
    momentum: float = 0.0,
    nesterov: bool = False,
    weight_decay: float = 0.0,
) -> Optimizer:
    """Gradient descent; with ``momentum``, the factor by which the sum of past gradients decays.

    Sutskever, Martens, Dahl and Hinton, On the importance of initialization and momentum, 2013.

    >>> optimizer, w = sgd(0.1, momentum=0.9), np.array([1.0, 2.0])
    >>> optimizer.update(np.array([0.5, -1.0]), optimizer.init(w), w)[0].round(3)
    array([0.95, 2.1 ])
    """

    _refuse_rate("sgd", learning_rate, momentum=momentum)

    def init(params):
        return {"step": _FIRST_STEP, "velocity": zeros_like_params(params) if momentum else None}

    def update(grads, state, params):
        rate = rate_at_step(learning_rate, state["step"])

        def moved(p, g, v):
            g = g + weight_decay * p if weight_decay else g
            v = momentum * v + g
            return p - cast_to_leaf(rate, p) * (g + momentum * v if nesterov else v), v

        if momentum:
            params, velocity = map_leaves(moved, params, grads, state["velocity"])
        else:
            (params,), velocity = map_leaves(lambda p, g: moved(p, g, 0)[:1], params, grads), None
        return params, {"step": state["step"] + 1, "velocity": velocity}

    return Optimizer(init, update)


@entry_point
def momentum(
    learning_rate: float | Callable, decay: float = 0.9, nesterov: bool = False
) -> Optimizer:
    """``sgd`` with momentum.

    >>> optimizer, w = momentum(0.1), np.array([1.0, 2.0])
    >>> optimizer.update(np.array([0.5, -1.0]), optimizer.init(w), w)[0].round(3)
    array([0.95, 2.1 ])
    """
    _refuse_rate("momentum", learning_rate, decay=decay)
    return sgd(learning_rate, momentum=decay, nesterov=nesterov)


@entry_point
def adam(
    learning_rate: float | Callable = 1e-3,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> Optimizer:
    """Steps along the mean gradient divided by the root of its mean square.

    ``weight_decay`` times the parameters is added to the gradients.

    Kingma and Ba, Adam, ICLR 2015.

    >>> optimizer, w = adam(0.1), np.array([1.0, 2.0])
    >>> optimizer.update(np.array([0.5, -1.0]), optimizer.init(w), w)[0].round(3)
    array([0.9, 2.1])
    """
    return build_adam(learning_rate, b1, b2, eps, added=weight_decay, taken=0.0)


@entry_point
def adamw(
    learning_rate: float | Callable = 1e-3,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 1e-2,
) -> Optimizer:
    """``adam`` with decoupled ``weight_decay``: the parameters themselves decay.

    Loshchilov and Hutter, Decoupled weight decay regularization, ICLR 2019.

    >>> optimizer, w = adamw(0.1, weight_decay=0.5), np.array([1.0, 2.0])
    >>> optimizer.update(np.array([0.5, -1.0]), optimizer.init(w), w)[0].round(3)
    array([0.85, 2.  ])
    """
    return build_adam(learning_rate, b1, b2, eps, added=0.0, taken=weight_decay)


@entry_point
def build_adam(
    learning_rate: float | Callable, b1: float, b2: float, eps: float, *, added: float, taken: float
) -> Optimizer:
    """adam, with weight decay ``added`` to the gradients; or adamw, with weight decay ``taken``
    from the parameters."""

    _refuse_rate("adam", learning_rate, b1=b1, b2=b2)

    def init(params):
        return {
            "step": _FIRST_STEP,
            "mean": zeros_like_params(params),
            "square": zeros_like_params(params),
        }

    def update(grads, state, params):
        step = state["step"] + 1
        rate = rate_at_step(learning_rate, state["step"])
        # bias correction: both means start at 0 and are too small by these factors
        first, second = 1 - b1**step, np.sqrt(1 - b2**step)

        def moved(p, g, m, s):
            g = g + added * p if added else g
            m, s = b1 * m + (1 - b1) * g, b2 * s + (1 - b2) * (g * g)
            change = (m / cast_to_leaf(first, p)) / (np.sqrt(s) / cast_to_leaf(second, p) + eps)
            change = change + taken * p if taken else change
            return p - cast_to_leaf(rate, p) * change, m, s

        params, mean, square = map_leaves(moved, params, grads, state["mean"], state["square"])
        return params, {"step": step, "mean": mean, "square": square}

    return Optimizer(init, update)


@entry_point
def rmsprop(
    learning_rate: float | Callable = 1e-2, decay: float = 0.99, eps: float = 1e-8
) -> Optimizer:
    """Gradients divided by the root of their running mean square. Tieleman and Hinton, 2012.

    >>> optimizer, w = rmsprop(0.1), np.array([1.0, 2.0])
    >>> optimizer.update(np.array([0.5, -1.0]), optimizer.init(w), w)[0].round(3)
    array([0., 3.])
    """

    _refuse_rate("rmsprop", learning_rate, decay=decay)

    def init(params):
        return {"step": _FIRST_STEP, "square": zeros_like_params(params)}

    def update(grads, state, params):
        rate = rate_at_step(learning_rate, state["step"])

        def moved(p, g, s):
            s = decay * s + (1 - decay) * (g * g)
            return p - cast_to_leaf(rate, p) * g / (np.sqrt(s) + eps), s

        params, square = map_leaves(moved, params, grads, state["square"])
        return params, {"step": state["step"] + 1, "square": square}

    return Optimizer(init, update)


@entry_point
def adagrad(learning_rate: float | Callable = 1e-2, eps: float = 1e-10) -> Optimizer:
    """Gradients divided by the root of the sum of their squares.

    Duchi, Hazan and Singer, Adaptive subgradient methods, JMLR 2011.

    >>> optimizer, w = adagrad(0.1), np.array([1.0, 2.0])
    >>> optimizer.update(np.array([0.5, -1.0]), optimizer.init(w), w)[0].round(3)
    array([0.9, 2.1])
    """

    _refuse_rate("adagrad", learning_rate)

    def init(params):
        return {"step": _FIRST_STEP, "square": zeros_like_params(params)}

    def update(grads, state, params):
        rate = rate_at_step(learning_rate, state["step"])

        def moved(p, g, s):
            s = s + g * g
            return p - cast_to_leaf(rate, p) * g / (np.sqrt(s) + eps), s

        params, square = map_leaves(moved, params, grads, state["square"])
        return params, {"step": state["step"] + 1, "square": square}

    return Optimizer(init, update)


# ---- gradients ----


@entry_point
def global_norm(tree: Any) -> Any:
    """The 2-norm of all numbers in a pytree, with a derivative of 0 at 0.

    >>> float(global_norm({"a": np.array([3.0]), "b": 4.0}))
    5.0
    """
    return safe_sqrt(sum([np.sum(leaf * leaf) for leaf in flatten(tree)[0]]))


@entry_point
def clip_by_global_norm(tree: Any, max_norm: float) -> Any:
    """The pytree, scaled down to a ``global_norm`` of ``max_norm`` if its norm is greater.

    >>> clip_by_global_norm([np.array([3.0]), np.array([4.0])], 1.0)
    [array([0.6]), array([0.8])]
    """
    if type(max_norm) in (int, float) and not max_norm > 0:
        raise ShapeError(
            f"clip_by_global_norm: the greatest norm must be positive, found {max_norm}\n"
            "  pass the norm that gradients may have"
        )
    scale = max_norm / np.maximum(global_norm(tree), max_norm)
    leaves, spec = flatten(tree)
    return spec.unflatten([leaf * cast_to_leaf(scale, leaf) for leaf in leaves])
